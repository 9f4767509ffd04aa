/* SPDX-License-Identifier: MIT
**
** entry.h - what libmoongrid calls here: comm/recipe.h explains, moongrid_recipe.h has the manual.
*/
#ifndef MGRID_SCRIPT_ENTRY_H
#define MGRID_SCRIPT_ENTRY_H

#include "comm/recipe.h"

/* The one thing that the library exports for it, found by this name. */
extern MGRID_API const mgrid_recipe_entry mgrid_lua_entry;

#define X(name, type) type mgrid_script_##name;
MGRID_RECIPE_FUNCTIONS(X)
#undef X

#endif
