/* SPDX-License-Identifier: MIT
**
** prelude.h - the part of the language that is written in Lua (lua/prelude/): what it gets from C
** (core.c, load.c), and how it and the recipes' environment come into a Lua state (prelude.c).
*/
#ifndef MGRID_PRELUDE_H
#define MGRID_PRELUDE_H

#include "types/bind.h"

/* Registry keys, by their addresses. env: the globals of recipes. place: "file:line: " where a recipe last read
** the word `recipe`. */
extern const char mgrid_env_key, mgrid_place_key;

/* Open Lua's libraries, the vocabulary, the sandbox and the prelude. Raises. */
void mgrid_prelude_open(lua_State *L);
/* Push a function of lua/prelude/recipe.lua: "load", "evaluate", "ask", "policy", "info". */
void mgrid_prelude_push(lua_State *L, const char *name);
/* Push the chunk of a Lua file, with what recipes see as its environment. Raises. */
void mgrid_prelude_load(lua_State *L, const char *path);

/* Push the table `core`, all that the prelude gets from C. */
void mgrid_core_push(lua_State *L);
/* core.load(name [, path of the file that is being run]) -> path, chunk with the recipe environment,
** key: one for all spellings of a path, hash of its text (0: bundled) */
int mgrid_core_load(lua_State *L);
/* core.library(name, ...): run another file of the prelude with these arguments */
int mgrid_core_library(lua_State *L);

#endif
