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

/* Push a function of lua/prelude/recipe.lua: "load", "evaluate", "ask", "group", "set", "policy" or
** "info". */
void mgrid_prelude_push(lua_State *L, const char *name);
/* Push the chunk of a Lua file, with the environment of recipes. The file is then the home for
** positions. May raise. */
void mgrid_prelude_load(lua_State *L, const char *path);

/* The next recipe that the host loads is this text; messages use its name. The text must live until
** then. NULL: the next recipe is a file, or bundled. */
void mgrid_prelude_give(lua_State *L, const mgrid_text *text);

/* Push the table `core`, with all C functions of the prelude. */
void mgrid_core_push(lua_State *L);
/* core.load(name [, path of the file that is running [, named by the host]]) returns: the path from
** the folder of the host's recipe; the chunk, with the environment of recipes; a key that is equal
** for all spellings of a path; the hash of the text (0: bundled); the path for messages, as the
** host named it if it did; the functions of the host that the text names, { name = version } or
** nil */
int mgrid_core_load(lua_State *L);
/* core.library(name, ...): run another file of the prelude with these arguments */
int mgrid_core_library(lua_State *L);

#endif
