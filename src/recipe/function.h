/* SPDX-License-Identifier: MIT
**
** function.h - functions of the host that its recipes call by name.
*/
#ifndef MGRID_RECIPE_FUNCTION_H
#define MGRID_RECIPE_FUNCTION_H

#include "recipe/runtime.h"

typedef struct mgrid_host_function {
  mgrid_function f;                 /* name and version are copies */
  bool named;                       /* the text that was loaded last names this function */
  struct mgrid_host_function *next; /* in the order of their names */
} mgrid_host_function;

/* Register the functions of one runtime in another that has no recipe yet. */
mgrid_status mgrid_functions_copy(mgrid_runtime *to, const mgrid_runtime *from, mgrid_error *err);
void mgrid_functions_free(mgrid_runtime *rt);

/* Mark the functions of the host that the text of a recipe names, or all if it names _ENV. `text`
** is NULL for a bundled recipe, which names none. May raise. */
void mgrid_functions_note(lua_State *L, const char *text, size_t len);
/* Push { name = version } of the marked functions; nil if there are none. */
void mgrid_functions_push(lua_State *L);

#endif
