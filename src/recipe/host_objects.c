/* SPDX-License-Identifier: MIT
**
** host_objects.c - what a C host and the scripts in its own Lua give each other: each object has owners on both sides. A userdata is
** made before it becomes an owner, so an error in between leaks nothing.
*/
#include "moongrid_lua.h"

#include "recipe/entry.h"
#include "recipe/runtime.h"
#include "recipe/words/lookup.h"

bool mgrid_lua_push_nothing(lua_State *L, const void *object, const char *class) {
  luaL_checkstack(L, 8, "moongrid");
  if (!object) {
    lua_pushnil(L);
    return true;
  }
  if (luaL_getmetatable(L, class) == LUA_TNIL)
    luaL_error(L, "open moongrid in this Lua first: luaL_requiref(L, \"moongrid\", mgrid_lua_open, 0)");
  lua_pop(L, 1);
  return false;
}

int mgrid_lua_push_grid(lua_State *L, const mgrid_grid *g) {
  if (!mgrid_lua_push_nothing(L, g, MGRID_LUA_GRID)) *mgrid_lua_new_grid(L) = mgrid_grid_ref(g);
  return 1;
}

int mgrid_lua_push_family(lua_State *L, const mgrid_family *f) {
  if (!mgrid_lua_push_nothing(L, f, MGRID_LUA_FAMILY)) mgrid_lua_new_family(L, NULL)->f = mgrid_family_ref(f);
  return 1;
}

int mgrid_lua_push_topology(lua_State *L, mgrid_topology *t) {
  if (!mgrid_lua_push_nothing(L, t, MGRID_LUA_TOPOLOGY)) *mgrid_lua_new_topology(L) = mgrid_topology_ref(t);
  return 1;
}

int mgrid_lua_push_plan(lua_State *L, const mgrid_plan *p) {
  if (!mgrid_lua_push_nothing(L, p, MGRID_LUA_PLAN)) *mgrid_lua_new_plan(L) = mgrid_plan_ref(p);
  return 1;
}

int mgrid_lua_push_backend(lua_State *L, mgrid_backend *b) {
  if (!mgrid_lua_push_nothing(L, b, MGRID_LUA_JOB)) *mgrid_lua_new_job(L) = mgrid_backend_ref(b);
  return 1;
}

int mgrid_lua_push_state(lua_State *L, mgrid_state *s) {
  if (!mgrid_lua_push_nothing(L, s, MGRID_LUA_STATE)) *mgrid_lua_new_state(L, true) = mgrid_state_ref(s);
  return 1;
}

int mgrid_lua_push_group(lua_State *L, const mgrid_group *g) {
  if (mgrid_lua_push_nothing(L, g, MGRID_LUA_GROUP)) return 1;
  mgrid_lua_push_state(L, (mgrid_state *)(uintptr_t)g->state);
  mgrid_lua_push_group_of(L, -1, g);
  lua_remove(L, -2);
  return 1;
}

/* A runtime knows its budget by the address of a function of the library that made it. */
int mgrid_lua_push_runtime(lua_State *L, mgrid_runtime *rt) {
  if (mgrid_lua_push_nothing(L, rt, MGRID_LUA_RECIPE)) return 1;
  if (rt->made_by.entry != &mgrid_lua_entry)
    return luaL_error(L, "the runtime was made by another libmoongrid_lua than the one that is open in this Lua");
  mgrid_runtime **box = lua_newuserdatauv(L, sizeof *box, 0);
  *box = NULL;
  luaL_setmetatable(L, MGRID_LUA_RECIPE);
  *box = mgrid_script_runtime_ref(rt);
  return 1;
}

/* Return the object in the box at i, whose first member points to it. */
static void *boxed(lua_State *L, int i, const char *class) {
  void **box = mgrid_lua_test_box(L, i, class);
  return box ? *box : NULL;
}

mgrid_grid     *mgrid_lua_to_grid(lua_State *L, int i) { return boxed(L, i, MGRID_LUA_GRID); }
mgrid_family   *mgrid_lua_to_family(lua_State *L, int i) { return boxed(L, i, MGRID_LUA_FAMILY); }
mgrid_topology *mgrid_lua_to_topology(lua_State *L, int i) { return boxed(L, i, MGRID_LUA_TOPOLOGY); }
mgrid_plan     *mgrid_lua_to_plan(lua_State *L, int i) { return boxed(L, i, MGRID_LUA_PLAN); }

mgrid_backend *mgrid_lua_to_backend(lua_State *L, int i) {
  mgrid_backend **box = luaL_testudata(L, i, MGRID_LUA_JOB);
  return box ? *box : NULL;
}

mgrid_state *mgrid_lua_to_state(lua_State *L, int i) {
  mgrid_state_box *box = mgrid_lua_test_own(L, i, &mgrid_lua_state_key);
  return box ? box->s : NULL;
}

mgrid_runtime *mgrid_lua_to_runtime(lua_State *L, int i) {
  mgrid_runtime **box = luaL_testudata(L, i, MGRID_LUA_RECIPE);
  return box ? *box : NULL;
}
