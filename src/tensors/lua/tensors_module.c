/* SPDX-License-Identifier: MIT
**
** tensors_module.c - tensors for Lua: words of recipes, `move` for hosts, fields and methods of Plan.
*/
#include "recipe/module_row.h"
#include "tensors/lua/tensor_words.h"

static const luaL_Reg plan_fields[] = { { "tensors", mgrid_lua_plan_tensors }, { NULL, NULL } };
static const luaL_Reg plan_methods[] = { { "tensor", mgrid_lua_plan_tensor }, { NULL, NULL } };
static const mgrid_lua_class adds[] = { { MGRID_LUA_PLAN, plan_fields, plan_methods, NULL, NULL },
                                        { .name = NULL } };

extern const mgrid_lua_module mgrid_lua_module_tensors;
const mgrid_lua_module mgrid_lua_module_tensors = {
  .open = mgrid_lua_open_tensor,
  .open_host = mgrid_lua_open_move,
  .adds = adds,
  .kind = &mgrid_tensor_kind,
  .class = MGRID_LUA_TENSOR,
  .assign = mgrid_lua_add_tensor,
  .handed = &mgrid_lua_move_handed,
};
