/* SPDX-License-Identifier: MIT
**
** sandbox.h - what a recipe can see.
*/
#ifndef MG_SANDBOX_H
#define MG_SANDBOX_H

#include <lua.h>

/* Push the environment of recipes: an allow list of Lua's own functions, changed where they
** would differ between processes or run without end. The caller adds the vocabulary and then
** calls mg_sandbox_seal with the table on the top. */
void mg_sandbox_push(lua_State *L);
void mg_sandbox_seal(lua_State *L);

#endif
