/* SPDX-License-Identifier: MIT
**
** values.h - plain values (nil, booleans, numbers, strings, lists, tables by name) between
** Lua states, as Jansson values.
*/
#ifndef MG_VALUES_H
#define MG_VALUES_H

#include <jansson.h>
#include <lua.h>

/* The value at i, or NULL when it holds something else than plain values or memory is out.
** Never raises. A new reference. */
json_t *mg_json_of(lua_State *L, int i);
/* Push a value. May raise for lack of memory: the caller still owns v. */
void mg_push_json(lua_State *L, const json_t *v);

#endif
