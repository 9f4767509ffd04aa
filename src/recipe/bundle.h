/* SPDX-License-Identifier: MIT
**
** bundle.h - the Lua files that are embedded in the library; scripts/make/embed.lua makes bundle.c.
**
** Each file is embedded as text. Files that every start needs are embedded in compiled form, too.
** That form loads ten times faster, but is safe only for the release of Lua that compiled it; with
** another release, mgrid_bundle_load uses the text. Nothing else is ever loaded in compiled form:
** recipes of users are always text.
*/
#ifndef MGRID_BUNDLE_H
#define MGRID_BUNDLE_H

#include <lua.h>
#include <stddef.h>

typedef struct mgrid_chunk {
  const char *name; /* in messages; for a bundled recipe, the recipe's name */
  const unsigned char *text;
  size_t text_size;
  const unsigned char *binary; /* NULL: the chunk is only embedded as text */
  size_t binary_size;
} mgrid_chunk;

extern const char mgrid_bundle_release[]; /* "Lua 5.4.4 ": the release that compiled the chunks */

/* Each list ends with a NULL name. */
extern const mgrid_chunk mgrid_prelude[];     /* lua/prelude/, "moongrid/recipe.lua" */
extern const mgrid_chunk mgrid_machine_lua[]; /* lua/machine/, "moongrid/machine/hwloc.lua" */
/* lua/moongrid/recipes/ as text: "megatron", "megatron.grids" */
extern const mgrid_chunk mgrid_bundled[];
/* the files of lua/pictures/ that the library needs: "moongrid.pictures.svg" */
extern const mgrid_chunk mgrid_pictures[];

/* the names of bundled recipes, without their parts; NULL at the end */
extern const char *const mgrid_bundled_names[];

/* Return the chunk with this name from a list. NULL: there is none. bind.c */
const mgrid_chunk *mgrid_bundle_find(const mgrid_chunk *list, const char *name);
/* Push the chunk as a function, or an error. Return a status of Lua, as luaL_loadbuffer does. */
int mgrid_bundle_load(lua_State *L, const mgrid_chunk *c);
/* Push lua/prelude/NAME.lua as a function, or raise. */
void mgrid_bundle_push(lua_State *L, const char *name);

#endif
