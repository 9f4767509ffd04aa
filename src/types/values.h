/* SPDX-License-Identifier: MIT
**
** values.h - plain values (nil, booleans, numbers, strings, lists, tables by name) between
** Lua states, as Jansson values.
*/
#ifndef MGRID_VALUES_H
#define MGRID_VALUES_H

#include <jansson.h>
#include <lua.h>
#include <stdbool.h>

/* The value at i, or NULL when it holds something else than plain values or memory is out.
** Never raises. A new reference. */
json_t *mgrid_json_of(lua_State *L, int i);
/* Push a copy of the plain value at i of `from`, which it leaves as it is; a table with a metatable is
** one unless `views`. May raise in `to` for lack of memory, and then, as when it returns false (not
** plain, or nested too deep), leaves values behind. */
bool mgrid_copy_value(lua_State *from, int i, lua_State *to, bool views);
/* Push a value. May raise for lack of memory: the caller still owns v. */
void mgrid_push_json(lua_State *L, const json_t *v);

#endif
