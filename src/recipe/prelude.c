/* SPDX-License-Identifier: MIT
**
** prelude.c - prepare a Lua state for recipes: Lua's libraries, the sandbox, and the vocabulary in C and in the
** prelude.
*/
#include "recipe/prelude.h"

#include "recipe/bundle.h"
#include "recipe/slice.h"
#include "recipe/sandbox.h"
#include "recipe/budget.h"

#include <lualib.h>
#include <string.h>

const char        mgrid_env_key = 'e', mgrid_place_key = 'l';
static const char prelude_key = 'p'; /* its address: what recipe.lua returned, functions by name */

static void note_place(lua_State *L, const char *name) {
  if (strcmp(name, "recipe") != 0) return;
  mgrid_lua_where(L);
  lua_rawsetp(L, LUA_REGISTRYINDEX, &mgrid_place_key);
}

void mgrid_prelude_open(lua_State *L) {
  static const luaL_Reg libraries[] = { { LUA_GNAME, luaopen_base },
                                        { LUA_TABLIBNAME, luaopen_table },
                                        { LUA_STRLIBNAME, luaopen_string },
                                        { LUA_MATHLIBNAME, luaopen_math },
                                        { NULL, NULL } };
  for (const luaL_Reg *lib = libraries; lib->func; lib++) {
    luaL_requiref(L, lib->name, lib->func, 1);
    lua_pop(L, 1);
  }
  mgrid_budget_no_home(L);
  mgrid_sandbox_push(L);
  int env = lua_gettop(L);
  mgrid_lua_open_world(L);
  mgrid_lua_open_grid(L);
  mgrid_lua_open_family(L);
  mgrid_lua_open_topology(L);
  mgrid_lua_open_plan(L);
  mgrid_lua_open_state(L);
  for (const mgrid_lua_slice *const *s = mgrid_lua_slices; *s; s++)
    if ((*s)->open) (*s)->open(L);
  static const char *const not_for_recipes[] = { "world", "plan" };
  for (int i = 0; i < 2; i++) { /* build gets its world, and returns no plan */
    lua_pushnil(L);
    lua_setfield(L, env, not_for_recipes[i]);
  }
  mgrid_bundle_push(L, "recipe");
  mgrid_core_push(L);
  lua_call(L, 1, 1);
  static const char *const from_prelude[] = { "recipe", "param", "policies", "steps" };
  for (int i = 0; i < 4; i++) {
    lua_getfield(L, -1, from_prelude[i]);
    lua_setfield(L, env, from_prelude[i]);
  }
  lua_rawsetp(L, LUA_REGISTRYINDEX, &prelude_key);
  mgrid_sandbox_seal(L, note_place);
  lua_rawsetp(L, LUA_REGISTRYINDEX, &mgrid_env_key);
}

void mgrid_prelude_push(lua_State *L, const char *name) {
  lua_rawgetp(L, LUA_REGISTRYINDEX, &prelude_key);
  lua_getfield(L, -1, name);
  lua_remove(L, -2);
}
