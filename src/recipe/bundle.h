/* SPDX-License-Identifier: MIT
**
** bundle.h - Lua inside the library; bundle.c is made by scripts/make/embed.lua.
**
** A chunk is embedded as text, and what a start waits for also compiled when the library was built.
** The compiled form loads ten times faster, but is safe only for the release of Lua that made it;
** with another release mgrid_bundle_load uses the text. Only this code is loaded in compiled form:
** recipes of users are always text.
*/
#ifndef MGRID_BUNDLE_H
#define MGRID_BUNDLE_H

#include <lua.h>
#include <stddef.h>

typedef struct mgrid_chunk {
  const char *name; /* in messages; of a bundled recipe the name of the recipe */
  const unsigned char *text;
  size_t text_size;
  const unsigned char *binary; /* NULL: only as text */
  size_t binary_size;
} mgrid_chunk;

extern const char mgrid_bundle_release[]; /* "Lua 5.4.4 ": what made the binaries */

/* Lists with a NULL name at the end: */
extern const mgrid_chunk mgrid_prelude[];     /* lua/prelude/, "moongrid/recipe.lua" */
extern const mgrid_chunk mgrid_machine_lua[]; /* lua/machine/, "moongrid/machine/hwloc.lua" */
/* lua/moongrid/recipes/ as they were written, "megatron", "megatron.grids" */
extern const mgrid_chunk mgrid_bundled[];
/* what the library needs of lua/pictures/, "moongrid.pictures.svg" */
extern const mgrid_chunk mgrid_pictures[];

/* of recipes, not of their parts; NULL at the end */
extern const char *const mgrid_bundled_names[];

/* Return that of a list; NULL: none has the name. bind.c */
const mgrid_chunk *mgrid_bundle_find(const mgrid_chunk *list, const char *name);
/* Push the chunk as a function, as luaL_loadbuffer does. */
int mgrid_bundle_load(lua_State *L, const mgrid_chunk *c);
/* Push what lua/prelude/NAME.lua is, a function, or raise. */
void mgrid_bundle_push(lua_State *L, const char *name);

#endif
