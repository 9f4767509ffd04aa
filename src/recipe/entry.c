/* SPDX-License-Identifier: MIT
**
** entry.c - the entry points of libmoongrid_lua.
*/
#include "recipe/entry.h"

#include "recipe/bundle.h"

const mgrid_recipe_entry mgrid_lua_entry = { .layout = MGRID_LAYOUT,
                                             .names = mgrid_bundled_names,
#define X(name, type) .name = mgrid_script_##name,
                                             MGRID_RECIPE_FUNCTIONS(X)
#undef X
};
