/* SPDX-License-Identifier: MIT
**
** serve.c - what C functions of slices ask of a recipe: each slice answers for itself.
*/
#include "recipe/entry.h"
#include "recipe/slice.h"

#include <string.h>

mgrid_status mgrid_script_serve(mgrid_runtime *rt, const char *slice, void *request, mgrid_error *err) {
  for (const mgrid_lua_slice *const *s = mgrid_lua_slices; *s; s++)
    if ((*s)->serve && strcmp((*s)->name, slice) == 0) return (*s)->serve(rt, request, err);
  return mgrid_fail(err, MGRID_MISSING, "this libmoongrid_lua was built without %s", slice);
}
