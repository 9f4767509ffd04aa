/* SPDX-License-Identifier: MIT
**
** survive_module.c - losses for Lua: the field `spares` of recipes, and methods of Plan and State.
*/
#include "survive/lua/survive_words.h"

static const luaL_Reg plan_fields[] = { { "spares", mgrid_lua_plan_spares }, { NULL, NULL } };
static const luaL_Reg plan_methods[] = { { "lose", mgrid_lua_plan_lose },
                                         { "losses", mgrid_lua_plan_losses },
                                         { "together", mgrid_lua_plan_together },
                                         { "holders", mgrid_lua_plan_holders },
                                         { NULL, NULL } };
static const mgrid_lua_class adds[] = { { MGRID_LUA_PLAN, plan_fields, plan_methods, NULL, NULL },
                                        { MGRID_LUA_STATE, NULL, mgrid_lua_survive_state, NULL,
                                          NULL },
                                        { .name = NULL } };
static const mgrid_lua_field fields[] = { { "spares", "any" }, { NULL, NULL } };

extern const mgrid_lua_module mgrid_lua_module_survive;
const mgrid_lua_module mgrid_lua_module_survive = {
  .open = mgrid_lua_open_spares,
  .open_host = mgrid_lua_open_losses,
  .adds = adds,
  .fields = fields,
  .world = mgrid_lua_spares_world,
  .end = mgrid_lua_spares_end,
  .name = "survive",
  .serve = mgrid_lua_serve_lent,
};
