/* SPDX-License-Identifier: MIT
**
** prelude.h - the part of the recipe language that is written in Lua (lua/prelude/), and the C
** functions that it uses (core.c, load.c).
*/
#ifndef MGRID_PRELUDE_H
#define MGRID_PRELUDE_H

#include "recipe/bind.h"

/* Their addresses are registry keys. env: the globals of recipes. place: "file:line: " of the last
** read of the word `recipe`. */
extern const char mgrid_env_key, mgrid_place_key;

/* Push the function M.name of lua/prelude/recipe.lua, such as M.evaluate. */
void mgrid_prelude_push(lua_State *L, const char *name);
/* Push a Lua file as a function with the globals of recipes. Until mgrid_budget_back_home, the
** positions of errors name this file by its path. May raise. */
void mgrid_prelude_load(lua_State *L, const char *path);

/* Let the next recipe that the host loads be this text, which must live until it is loaded. NULL:
** the next recipe is a file, or bundled. */
void mgrid_prelude_give(lua_State *L, const mgrid_text *text);

/* Push the table `core`, with all C functions of the prelude. */
void mgrid_core_push(lua_State *L);
/* core.load(name [, path of the file that is running [, whether the host names the file]]) returns
**     the path from the folder of the host's recipe,
**     the file as a function with the globals of recipes,
**     a key that is equal for all spellings of a path,
**     the hash of the text, 0 for a bundled recipe,
**     the path for messages,
**     { name = version } of the host's functions that the text names, or nil. */
int mgrid_core_load(lua_State *L);
/* core.library(name, ...): run another file of the prelude with these arguments */
int mgrid_core_library(lua_State *L);

#endif
