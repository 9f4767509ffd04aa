/* SPDX-License-Identifier: MIT
**
** sandbox.h - the globals that a recipe can see.
*/
#ifndef MGRID_SANDBOX_H
#define MGRID_SANDBOX_H

#include <lua.h>
#include <stdbool.h>
#include <stddef.h>

/* Push a table with the functions of Lua that recipes may call. Functions whose results differ
** between processes, or that may run without end, are replaced or left out. The caller adds
** moongrid's own functions, and then calls mgrid_sandbox_seal. */
void mgrid_sandbox_push(lua_State *L);
/* Replace the table on the top by a read-only view of it. on_read is called with the name of every
** global that is read. */
typedef void mgrid_sandbox_read(lua_State *L, const char *name);
void mgrid_sandbox_seal(lua_State *L, mgrid_sandbox_read *on_read);
/* Push the table behind the view that the registry has at mgrid_env_key. */
void mgrid_sandbox_words(lua_State *L);
/* Return whether a name is a global of recipes or of Lua, or a word of Lua's syntax. */
bool mgrid_sandbox_is_taken(lua_State *L, const char *name);
/* Pop a function and make it a global of recipes. */
void mgrid_sandbox_add(lua_State *L, const char *name);

#endif
