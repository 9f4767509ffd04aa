/* SPDX-License-Identifier: MIT
**
** bundle.h - Lua inside the library; bundle.c is made by scripts/embed.lua.
**
** A chunk is there twice: as text, and compiled when the library was built. The compiled form
** is loaded ten times faster, and it is trusted because it is ours: a recipe of a user's is
** text, always. Nothing promises that it means the same to another release of Lua, so the
** library looks at the release that runs (mgrid_bundle_load) and has the text to fall back on.
*/
#ifndef MGRID_BUNDLE_H
#define MGRID_BUNDLE_H

#include <lua.h>
#include <stddef.h>

typedef struct mgrid_chunk {
  const char          *name; /* in messages; a bundled recipe's own */
  const char          *text;
  size_t               text_size;
  const unsigned char *binary;
  size_t               binary_size;
} mgrid_chunk;

extern const char               mgrid_bundle_release[]; /* "Lua 5.4.4 ": what made the binaries */
extern const mgrid_chunk        mgrid_prelude_recipe;   /* where the prelude begins: lua/prelude/recipe.lua */
extern const mgrid_chunk *const mgrid_prelude[];        /* all files of lua/prelude/; NULL at the end */
extern const mgrid_chunk        mgrid_bundled[];        /* lua/moongrid/recipes/; a NULL name at the end */
extern const char *const        mgrid_bundled_names[];  /* NULL at the end */

/* Push the chunk as a function, as luaL_loadbuffer does. */
int mgrid_bundle_load(lua_State *L, const mgrid_chunk *c);

#endif
