/* SPDX-License-Identifier: MIT
**
** step_module.c - what steps add to Lua: the object s, the argument of a recipe's step function, and
** the function that evaluates a step.
*/
#include "recipe/module_row.h"
#include "step/lua/step_words.h"

static const mgrid_lua_class adds[] = {
  { MGRID_LUA_PLAN, NULL, mgrid_step_lua_plan_methods, NULL, NULL },
  { MGRID_LUA_STATE, NULL, mgrid_step_lua_state_methods, NULL, NULL },
  { .name = NULL }
};

extern const mgrid_lua_module mgrid_lua_module_step;
const mgrid_lua_module mgrid_lua_module_step = { .open = mgrid_step_lua_open,
                                                 .open_host = mgrid_step_lua_open_host,
                                                 .adds = adds,
                                                 .name = "step",
                                                 .serve = mgrid_step_lua_serve };
