/* SPDX-License-Identifier: MIT
**
** slice.c - the step for Lua: what a step sees, and how one is evaluated.
*/
#include "recipe/slice.h"
#include "step/lua/step_words.h"

static const mgrid_lua_class adds[] = {
  { MGRID_LUA_PLAN, NULL, mgrid_step_lua_plan_methods, NULL, NULL },
  { MGRID_LUA_STATE, NULL, mgrid_step_lua_state_methods, NULL, NULL },
  { .name = NULL }
};

extern const mgrid_lua_slice mgrid_lua_slice_step;
const mgrid_lua_slice mgrid_lua_slice_step = { .open = mgrid_step_lua_open,
                                               .open_host = mgrid_step_lua_open_host,
                                               .adds = adds,
                                               .name = "step",
                                               .serve = mgrid_step_lua_serve };
