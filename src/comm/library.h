/* SPDX-License-Identifier: MIT
**
** library.h - load moongrid's own libraries on demand: those of the backends (open.c), and libmoongrid_lua (recipe.c).
*/
#ifndef MGRID_LIBRARY_H
#define MGRID_LIBRARY_H

#include "comm/backend.h"

/* Load a library, with `flags` of dlopen besides RTLD_NOW | RTLD_LOCAL. It stays loaded. If it is missing, return NULL with
** MGRID_MISSING; the message calls it `what`: "the mpi backend". */
void *mgrid_library_open(const char *file, int flags, const char *what, mgrid_error *err);
/* Load a library and return its symbol `name`: a struct whose first field is an int, which must be MGRID_LAYOUT. */
const void *mgrid_library_entry(const char *file, int flags, const char *name, const char *what, mgrid_error *err);

#endif
