/* SPDX-License-Identifier: MIT
**
** host_objects.c - what a C host and the scripts in its own Lua give each other: each object has owners on both sides. A userdata is
** made before it becomes an owner, in a statement of its own, so an error in between leaks nothing.
*/
#include "moongrid_lua.h"

#include "recipe/entry.h"
#include "recipe/runtime.h"
#include "recipe/slice.h"
#include "recipe/words/lookup.h"

#include <string.h>

static void push_grid(lua_State *L, const void *g) {
  mgrid_grid **box = mgrid_lua_new_grid(L);
  *box = mgrid_grid_ref(g);
}
static void push_family(lua_State *L, const void *f) {
  mgrid_lua_family *box = mgrid_lua_new_family(L, NULL);
  box->f = mgrid_family_ref(f);
}
static void push_topology(lua_State *L, const void *t) {
  mgrid_topology **box = mgrid_lua_new_topology(L);
  *box = mgrid_topology_ref((void *)t);
}
static void push_plan(lua_State *L, const void *p) {
  mgrid_plan **box = mgrid_lua_new_plan(L);
  *box = mgrid_plan_ref(p);
}
static void push_backend(lua_State *L, const void *b) {
  mgrid_backend **box = mgrid_lua_new_job(L);
  *box = mgrid_backend_ref((void *)b);
}
static void push_state(lua_State *L, const void *s) {
  mgrid_state **box = mgrid_lua_new_state(L, true);
  *box = mgrid_state_ref((void *)s);
}

static void push_group(lua_State *L, const void *g) {
  push_state(L, ((const mgrid_group *)g)->state);
  mgrid_lua_push_group_of(L, -1, g);
  lua_remove(L, -2);
}

/* A runtime knows its budget by the address of a function of the library that made it. */
static void push_runtime(lua_State *L, const void *object) {
  mgrid_runtime *rt = (void *)object;
  if (rt->made_by.entry != &mgrid_lua_entry)
    luaL_error(L, "the runtime was made by another libmoongrid_lua than the one that is open in this Lua");
  mgrid_runtime **box = lua_newuserdatauv(L, sizeof *box, 0);
  *box = NULL;
  luaL_setmetatable(L, MGRID_LUA_RECIPE);
  *box = mgrid_script_runtime_ref(rt);
}

/* Return the object of a userdata that points to it; of a box, whose first member does. */
static void *pointed(lua_State *L, int i, const char *class) {
  void **box = luaL_testudata(L, i, class);
  return box ? *box : NULL;
}

static void *boxed(lua_State *L, int i, const char *class) {
  void **box = mgrid_lua_test_box(L, i, class);
  return box ? *box : NULL;
}

static void *state_at(lua_State *L, int i, const char *class) {
  (void)class;
  mgrid_state_box *box = mgrid_lua_test_own(L, i, &mgrid_lua_state_key);
  return box ? box->s : NULL;
}

static void *group_at(lua_State *L, int i, const char *class) {
  (void)class;
  return (void *)(uintptr_t)mgrid_lua_to_group(L, i);
}

static const mgrid_lua_handed classes[] = {
  { MGRID_LUA_GRID, push_grid, boxed },         { MGRID_LUA_FAMILY, push_family, boxed },
  { MGRID_LUA_TOPOLOGY, push_topology, boxed }, { MGRID_LUA_PLAN, push_plan, boxed },
  { MGRID_LUA_JOB, push_backend, pointed },     { MGRID_LUA_STATE, push_state, state_at },
  { MGRID_LUA_GROUP, push_group, group_at },    { MGRID_LUA_RECIPE, push_runtime, pointed },
};

/* Find a class by its name without "moongrid."; NULL: there is none. */
static const mgrid_lua_handed *class_of(const char *name) {
  const size_t before = sizeof "moongrid." - 1;
  for (size_t i = 0; name && i < sizeof classes / sizeof *classes; i++)
    if (strcmp(classes[i].class + before, name) == 0) return &classes[i];
  for (const mgrid_lua_slice *const *s = mgrid_lua_slices; name && *s; s++)
    if ((*s)->handed && strcmp((*s)->handed->class + before, name) == 0) return (*s)->handed;
  return NULL;
}

int mgrid_lua_push(lua_State *L, const char *class_name, const void *object) {
  const mgrid_lua_handed *c = class_of(class_name);
  luaL_checkstack(L, 8, "moongrid");
  if (!c) return luaL_error(L, "'%s' is no class of objects for scripts", class_name ? class_name : "NULL");
  if (!object) return lua_pushnil(L), 1;
  if (luaL_getmetatable(L, c->class) == LUA_TNIL)
    luaL_error(L, "open moongrid in this Lua first: luaL_requiref(L, \"moongrid\", mgrid_lua_open, 0)");
  lua_pop(L, 1);
  c->push(L, object);
  return 1;
}

void *mgrid_lua_to(lua_State *L, int i, const char *class_name) {
  const mgrid_lua_handed *c = class_of(class_name);
  return c ? c->to(L, i, c->class) : NULL;
}
