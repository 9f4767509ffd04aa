/* SPDX-License-Identifier: MIT
**
** words.h - spares and losses for Lua.
*/
#ifndef MGRID_SURVIVE_WORDS_H
#define MGRID_SURVIVE_WORDS_H

#include "recipe/slice.h"
#include "survive/next.h"

void mgrid_lua_open_spares(lua_State *L);
bool mgrid_lua_spares_world(lua_State *L, int world, int values, const char *where);
void mgrid_lua_spares_end(lua_State *L, int topology, const char *where);
int  mgrid_lua_plan_spares(lua_State *L);
int  mgrid_lua_plan_lose(lua_State *L);
/* What a runtime has been lent: an mgrid_lent_request. */
mgrid_status mgrid_lua_serve_lent(mgrid_runtime *rt, void *request, mgrid_error *err);

#endif
