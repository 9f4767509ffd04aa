/* SPDX-License-Identifier: MIT
**
** bundle.h - Lua text inside the library; bundle.c is made by scripts/embed.lua.
*/
#ifndef MG_BUNDLE_H
#define MG_BUNDLE_H

#include <stddef.h>

extern const char        mg_prelude[];        /* lua/moongrid/recipe.lua */
extern const char *const mg_bundled_names[];  /* NULL at the end */
extern const char *const mg_bundled_texts[];

#endif
