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

/* _changed: push the parameters of a plan that differ from their defaults, "tp=2", and return them as a list; *n: how many.
** _lost: push a list of ranks that is a field of the table at 2 as an array; `call` is for the messages. */
const char **mgrid_lua_push_changed(lua_State *L, const mgrid_content *c, size_t *n);
int64_t     *mgrid_lua_push_lost(lua_State *L, const char *call, const char *name, size_t *n);
/* Return what mgrid_loss_print says as JSON, and the next plan in *next. Does not raise; _raise_loss does. */
json_t *mgrid_lua_loss_json(const mgrid_loss *x, mgrid_plan **next, mgrid_error *err);
int     mgrid_lua_raise_loss(lua_State *L, const mgrid_error *e);

extern const luaL_Reg mgrid_lua_survive_state[]; /* methods of State: recover.c */

/* What a runtime has been lent: an mgrid_lent_request. */
mgrid_status mgrid_lua_serve_lent(mgrid_runtime *rt, void *request, mgrid_error *err);

#endif
