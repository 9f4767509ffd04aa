/* SPDX-License-Identifier: MIT
**
** prelude.h - the part of the recipe language that is written in Lua (lua/prelude/): the C
** functions that it uses (core.c, load.c).
*/
#ifndef MGRID_PRELUDE_H
#define MGRID_PRELUDE_H

#include "recipe/bind.h"

/* Their addresses are registry keys. env: the globals of recipes. place: "file:line: " of the last
** read of the word `recipe`. */
extern const char mgrid_env_key, mgrid_place_key;

/* Push a function of lua/prelude/recipe.lua: "load", "evaluate", "ask", "group", "set", "policy",
** "info". */
void mgrid_prelude_push(lua_State *L, const char *name);
/* Push the chunk of a Lua file, with the environment of recipes. Raises. The file is then the home
** for positions. */
void mgrid_prelude_load(lua_State *L, const char *path);

/* The next recipe that the host loads is this text, which must live until then; its name is used in
** messages. NULL: it is a file or bundled again. */
void mgrid_prelude_give(lua_State *L, const mgrid_text *text);

/* Push the table `core`: all C functions of the prelude. */
void mgrid_core_push(lua_State *L);
/* core.load(name [, path of the file that is being run [, named by the host]]) -> path, from the
** folder of the host's recipe; chunk with the environment of recipes; key, equal for all spellings
** of a path; hash of its text (0: bundled); the path for messages, for the host as the host named
** it; the functions of the host that the text names, { name = version } or nil */
int mgrid_core_load(lua_State *L);
/* core.library(name, ...): run another file of the prelude with these arguments */
int mgrid_core_library(lua_State *L);

#endif
