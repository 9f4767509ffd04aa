/* SPDX-License-Identifier: MIT
**
** backends.h - messages that list the backends, whichever there are.
*/
#ifndef TEST_BACKENDS_H
#define TEST_BACKENDS_H

#include "plan/backend_row.h"

#include <stdio.h>

/* "unknown backend 'mpj'; nearest is 'mpi' (auto, mpi, nccl)", or without `nearest` "...; known:
** auto, mpi, nccl"; `first` or `last` is "" or a word that is not a backend. */
static inline const char *unknown_backend(char text[512], const char *name, const char *nearest,
                                          const char *first, mgrid_backends_of which,
                                          const char *last) {
  const char *names[MGRID_BACKENDS_MAX];
  size_t n = mgrid_backend_names(names, which), at;
  at = (size_t)snprintf(text, 512, "unknown backend '%s'; %s%s%s%s", name,
                        *nearest ? "nearest is '" : "known: ", nearest, *nearest ? "' (" : "",
                        first);
  for (size_t i = 0; i < n; i++)
    at += (size_t)snprintf(text + at, 512 - at, "%s%s", i > 0 || *first ? ", " : "", names[i]);
  snprintf(text + at, 512 - at, "%s%s%s", *last ? ", " : "", last, *nearest ? ")" : "");
  return text;
}

#endif
