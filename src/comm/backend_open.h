/* SPDX-License-Identifier: MIT
**
** backend_open.h - functions of backend.c that are not public: for the command, the Lua module and
** recipe.c.
*/
#ifndef MGRID_BACKEND_OPEN_H
#define MGRID_BACKEND_OPEN_H

#include "comm/backend.h"

/* Write into buf what a backend finds on this node (the version of its library, GPUs), without
** opening the backend. If something is missing, fail and name it; MGRID_MISSING also if the library
** of the backend itself is missing. Local. */
mgrid_status mgrid_backend_probe(const mgrid_descriptor *d, char *buf, size_t len,
                                 mgrid_error *err);

/* Open the first GPU backend that every rank can open over this carrier. If there is none, return
** the carrier, with one more owner. NULL: the ranks could not agree. Collective. */
mgrid_backend *mgrid_backend_best(mgrid_backend *carrier, const mgrid_nccl_options *options,
                                  mgrid_error *err);

/* Load a library, by dlopen with `flags` and RTLD_NOW | RTLD_LOCAL. It stays loaded. If it cannot
** be loaded, return NULL with MGRID_MISSING. what: its name in the message, such as "the mpi
** backend". */
void *mgrid_library_open(const char *file, int flags, const char *what, mgrid_error *err);
/* Load a library and return its symbol `name`. This is a struct whose first field is an int, which
** must be MGRID_LAYOUT. */
const void *mgrid_library_entry(const char *file, int flags, const char *name, const char *what,
                                mgrid_error *err);

#endif
