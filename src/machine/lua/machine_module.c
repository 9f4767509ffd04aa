/* SPDX-License-Identifier: MIT
**
** machine_module.c - what machines add to Lua: the word `machine` and the laws about domains, the
** field `machine` of recipe { ... }, and fields of Plan.
*/
#include "machine/lua/machine_words.h"

static const luaL_Reg plan_fields[] = { { "machine", mgrid_lua_plan_machine },
                                        { "traffic", mgrid_lua_plan_traffic },
                                        { "laws", mgrid_lua_plan_laws },
                                        { NULL, NULL } };
static const luaL_Reg recipe_methods[] = { { "on", mgrid_lua_recipe_on }, { NULL, NULL } };
static const luaL_Reg job_methods[] = { { "machine", mgrid_lua_job_machine }, { NULL, NULL } };
static const mgrid_lua_class adds[] = { { MGRID_LUA_PLAN, plan_fields, NULL, NULL, NULL },
                                        { MGRID_LUA_RECIPE, NULL, recipe_methods, NULL, NULL },
                                        { MGRID_LUA_JOB, NULL, job_methods, NULL, NULL },
                                        { .name = NULL } };
static const mgrid_lua_field fields[] = { { "machine", "string" },
                                          { "traffic", "table" },
                                          { NULL, NULL } };

extern const mgrid_lua_module mgrid_lua_module_machine;
const mgrid_lua_module mgrid_lua_module_machine = {
  .open = mgrid_lua_open_machine,
  .open_host = mgrid_lua_open_machine_host,
  .adds = adds,
  .fields = fields,
  .begin = mgrid_lua_machine_begin,
  .end = mgrid_lua_machine_end,
  .law = mgrid_lua_machine_law,
  .name = "machine",
  .serve = mgrid_lua_machine_serve,
};
