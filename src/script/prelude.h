/* SPDX-License-Identifier: MIT
**
** prelude.h - the part of the language that is written in Lua (lua/moongrid/recipe.lua): what
** it gets from C, and how it and the recipes' environment come into a Lua state.
*/
#ifndef MGRID_PRELUDE_H
#define MGRID_PRELUDE_H

#include "types/bind.h"

/* Open Lua's libraries, the vocabulary, the sandbox and the prelude. Raises. */
void mgrid_prelude_open(lua_State *L);
/* Push a function of the prelude: "load", "evaluate", "ask", "policy", "info". */
void mgrid_prelude_push(lua_State *L, const char *name);

/* Push the chunk of a Lua file, with what recipes see as its environment. Raises. */
void mgrid_prelude_load(lua_State *L, const char *path);

#endif
