/* SPDX-License-Identifier: MIT
**
** backend_open.h - backend.c for the command and the Lua module, which need more than
** mgrid_backend_open, and for recipe.c.
*/
#ifndef MGRID_BACKEND_OPEN_H
#define MGRID_BACKEND_OPEN_H

#include "comm/backend.h"

/* Describe what a backend finds on this machine (its library's version, GPUs) in buf, without
** opening it; or fail and name what is missing. MGRID_MISSING: its library is not installed.
** Local. */
mgrid_status mgrid_backend_probe(const mgrid_descriptor *d, char *buf, size_t len,
                                 mgrid_error *err);

/* Return the first backend with a GPU that every rank can open, over this carrier, else the carrier
** itself with one more reference; NULL: ranks are missing. Collective. */
mgrid_backend *mgrid_backend_best(mgrid_backend *carrier, const mgrid_nccl_options *options,
                                  mgrid_error *err);

/* Load a library, with `flags` of dlopen besides RTLD_NOW | RTLD_LOCAL. It stays loaded. If it is
** missing, return NULL with MGRID_MISSING; the message calls it `what`: "the mpi backend". */
void *mgrid_library_open(const char *file, int flags, const char *what, mgrid_error *err);
/* Load a library and return its symbol `name`: a struct whose first field is an int, which must be
** MGRID_LAYOUT. */
const void *mgrid_library_entry(const char *file, int flags, const char *name, const char *what,
                                mgrid_error *err);

#endif
