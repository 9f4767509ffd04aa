/* SPDX-License-Identifier: MIT
**
** bundle.h - Lua inside the library; bundle.c is made by scripts/embed.lua.
**
** A chunk, but those of pictures, is embedded twice: as text, and compiled when the library was built. The compiled form
** loads ten times faster, but is safe only for the release of Lua that made it; with another release
** mgrid_bundle_load uses the text. Only this code is loaded in compiled form: recipes of users are always text.
*/
#ifndef MGRID_BUNDLE_H
#define MGRID_BUNDLE_H

#include <lua.h>
#include <stddef.h>

typedef struct mgrid_chunk {
  const char          *name; /* in messages; of a bundled recipe the name of the recipe */
  const unsigned char *text;
  size_t               text_size;
  const unsigned char *binary; /* NULL: only as text */
  size_t               binary_size;
} mgrid_chunk;

extern const char               mgrid_bundle_release[]; /* "Lua 5.4.4 ": what made the binaries */
extern const mgrid_chunk        mgrid_prelude_recipe;   /* where the prelude begins: lua/prelude/recipe.lua */
extern const mgrid_chunk        mgrid_prelude_hints, mgrid_prelude_words;
extern const mgrid_chunk *const mgrid_prelude[];       /* all files of lua/prelude/; NULL at the end */
extern const mgrid_chunk        mgrid_machine_lua[];   /* lua/machine/: readers; a NULL name at the end */
extern const mgrid_chunk        mgrid_bundled[];       /* lua/moongrid/recipes/; a NULL name at the end */
extern const mgrid_chunk        mgrid_pictures[];      /* lua/pictures/, "moongrid.pictures.svg"; likewise */
extern const char *const        mgrid_bundled_names[]; /* NULL at the end */

/* Push the chunk as a function, as luaL_loadbuffer does. bundled.c */
int mgrid_bundle_load(lua_State *L, const mgrid_chunk *c);

#endif
