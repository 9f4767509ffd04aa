/* SPDX-License-Identifier: MIT
**
** library.h - libraries of moongrid's own that are loaded when something needs them: those of backends
** (open.c), and the one that speaks Lua (recipe.c).
*/
#ifndef MGRID_LIBRARY_H
#define MGRID_LIBRARY_H

#include "comm/backend.h"

/* Load a library; `flags` are those of dlopen beside RTLD_NOW | RTLD_LOCAL. It stays loaded. NULL and
** MGRID_MISSING where it is not here; `what` is in the message then: "the mpi backend". */
void *mgrid_library_open(const char *file, int flags, const char *what, mgrid_error *err);
/* The same, and what it exports under a name: a struct that begins with an int, which must be MGRID_LAYOUT. */
const void *mgrid_library_entry(const char *file, int flags, const char *name, const char *what, mgrid_error *err);

#endif
