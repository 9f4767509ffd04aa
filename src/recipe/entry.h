/* SPDX-License-Identifier: MIT
**
** entry.h - the entry points that libmoongrid calls. comm/recipe.h explains them; moongrid_recipe.h
** is the manual.
*/
#ifndef MGRID_SCRIPT_ENTRY_H
#define MGRID_SCRIPT_ENTRY_H

#include "comm/recipe.h"

/* The only symbol that this library exports for libmoongrid, which finds it by name. */
extern MGRID_API const mgrid_recipe_entry mgrid_lua_entry;

#define X(name, type) type mgrid_script_##name;
MGRID_RECIPE_FUNCTIONS(X)
#undef X

#endif
