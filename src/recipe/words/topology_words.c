/* SPDX-License-Identifier: MIT
**
** topology_words.c - Topology for Lua: families, grids and items of modules by name.
*/
#include "recipe/budget.h"
#include "recipe/module_row.h"

#include <string.h>

/* User values of a Topology. 1: name -> the Family, Grid or other value that was assigned. 2: name
** -> "file:line: " of the assignment. */

static void free_topology(void *box) { mgrid_topology_free(*(mgrid_topology **)box); }

mgrid_topology **mgrid_lua_new_topology(lua_State *L) {
  mgrid_topology **box = mgrid_lua_new_box(L, sizeof *box, 2, MGRID_LUA_TOPOLOGY, free_topology);
  lua_newtable(L);
  lua_setiuservalue(L, -2, 1);
  lua_newtable(L);
  lua_setiuservalue(L, -2, 2);
  return box;
}

static int new_topology(lua_State *L) {
  int64_t world = mgrid_lua_world_argument(L)->window.world;
  mgrid_topology **box = mgrid_lua_new_topology(L);
  mgrid_error e = MGRID_ERROR_INIT;
  *box = mgrid_topology_new(world, &e);
  if (!*box) return mgrid_lua_raise_error(L, &e);
  mgrid_lua_weigh(L, box, 2 * sizeof **box);
  return 1;
}

/* Set field `name` of user value i of the topology to the value on the top. Pop the value. */
static void remember(lua_State *L, int i, const char *name) {
  lua_getiuservalue(L, 1, i);
  lua_insert(L, -2);
  lua_setfield(L, -2, name);
  lua_pop(L, 1);
}

/* Do t.x = nil. False: there is no x. */
static bool topology_forget(lua_State *L, mgrid_topology *t, const char *name) {
  if (!mgrid_topology_remove(t, name)) return false;
  for (int i = 1; i <= 2; i++) {
    lua_pushnil(L);
    remember(L, i, name);
  }
  return true;
}

/* Return whether the topology holds f itself under this name. */
static bool has_already(lua_State *L, const char *name, const mgrid_lua_family *f) {
  lua_getiuservalue(L, 1, 1);
  lua_getfield(L, -1, name);
  const mgrid_lua_family *held = mgrid_lua_test_box(L, -1, MGRID_LUA_FAMILY);
  lua_pop(L, 2);
  return f && held && held->f == f->f;
}

static void weigh_topology(lua_State *L, int i) {
  const mgrid_content *c = &mgrid_lua_check_topology(L, i)->content;
  size_t names = c->nentries + c->ngrids + c->nitems;
  for (size_t k = 0; k < c->nconcurrent; k++) names += c->concurrent[k].n;
  mgrid_lua_weigh(L, mgrid_lua_in_box(lua_touserdata(L, i)),
                  sizeof(mgrid_topology) + 2 * names * sizeof(mgrid_entry) + c->held);
}

/* Put the Family f under this name, or if f is NULL the grid g. `again`: the topology has the
** family of f under this name already, so only give it the options of f, as by t.x = t.x:with { ...
** }. */
MGRID_APART static void topology_put(lua_State *L, mgrid_topology *t, const char *name,
                                     const mgrid_lua_family *f, bool again, mgrid_grid *g) {
  mgrid_error e = MGRID_ERROR_INIT;
  mgrid_status s = again ? mgrid_topology_choose(t, name, f->choice, &e)
                   : f   ? mgrid_topology_put(t, name, f->f, f->choice, &e)
                         : mgrid_topology_put_grid(t, name, g, &e);
  if (s) mgrid_lua_raise_error(L, &e);
}

/* Return the module whose items have the class of this value. NULL: there is none. */
static const mgrid_lua_module *topology_module_of(lua_State *L, int value) {
  const mgrid_lua_module *const *s = mgrid_lua_modules;
  while (*s && !((*s)->class && luaL_testudata(L, value, (*s)->class))) s++;
  return *s;
}

/* Push the kinds of contents of a topology, "families, grids and tensors". */
static const char *push_all_kinds(lua_State *L) {
  int left = 0;
  for (const mgrid_lua_module *const *s = mgrid_lua_modules; *s; s++) left += (*s)->kind != NULL;
  lua_pushstring(L, left ? "families, grids" : "families and grids");
  for (const mgrid_lua_module *const *s = mgrid_lua_modules; *s; s++)
    if ((*s)->kind)
      lua_pushfstring(L, "%s%s%s", lua_tostring(L, -1), --left ? ", " : " and ", (*s)->kind->names);
  return lua_tostring(L, -1);
}

static int topology_newindex(lua_State *L) {
  mgrid_topology *t = mgrid_lua_check_topology(L, 1);

  if (lua_type(L, 2) != LUA_TSTRING)
    return mgrid_lua_raise_as(L, MGRID_BAD_VALUE,
                              "what a topology holds has a name as its key, not %s",
                              mgrid_lua_kind(L, 2));
  const char *name = mgrid_lua_name(L, 2);
  mgrid_lua_family *f = mgrid_lua_test_box(L, 3, MGRID_LUA_FAMILY);
  mgrid_grid **g = mgrid_lua_test_box(L, 3, MGRID_LUA_GRID);
  const mgrid_lua_module *module = f || g ? NULL : topology_module_of(L, 3);
  const char *what = f ? "family" : g ? "grid" : module ? module->kind->name : NULL;
  if (lua_isnil(L, 3) && topology_forget(L, t, name)) return 0;
  if (!what)
    return mgrid_lua_raise_as(
        L, MGRID_BAD_VALUE, "'%s' is assigned %s; a topology holds %s%s", name,
        lua_isnil(L, 3) ? "nothing (nil)" : mgrid_lua_kind(L, 3), push_all_kinds(L),
        lua_isinteger(L, 3)  ? ": of a grid g, g.tp is a size, and g \"tp\" the family"
        : lua_isstring(L, 3) ? ": g \"tp\" is the family along dim tp"
        : lua_istable(L, 3)  ? ": world:table{ {0, 1}, {2, 3} } makes groups of lists"
                             : "");
  if (mgrid_lua_class_has(&mgrid_lua_state_class, name))
    return mgrid_lua_raise(
        L, "'%s' is a field or method of a State; give the %s another name, such as '%s_group'",
        name, what, name);
  lua_getiuservalue(L, 1, 2);
  bool again = has_already(L, name, f);
  if (!again && lua_getfield(L, -1, name) == LUA_TSTRING) {
    const char *where = lua_tostring(L, -1);
    int len = (int)strlen(where);
    return mgrid_lua_raise_as(
        L, MGRID_DUPLICATE,
        "'%s' is in the topology already%s%.*s; name yours otherwise, or assign nil first", name,
        len ? ", since " : "", len > 2 ? len - 2 : 0, where);
  }
  if (f || g)
    topology_put(L, t, name, f, again, g ? *g : NULL);
  else
    module->assign(L, 1, name, 3);
  weigh_topology(L, 1);
  mgrid_lua_where(L);
  remember(L, 2, name);
  lua_pushvalue(L, 3);
  remember(L, 1, name);
  return 0;
}

/* Push the Family, Grid or other value that the topology at 1 has under this name. For a family or
** grid that a host has added, make a Family or Grid first. False: there is none, and nothing is
** pushed. */
static bool push_named(lua_State *L, const mgrid_content *c, const char *name) {
  lua_getiuservalue(L, 1, 1);
  int type = lua_getfield(L, -1, name);
  lua_remove(L, -2);
  if (type != LUA_TNIL) return true;
  lua_pop(L, 1);
  int entry = mgrid_content_find(c, name), grid = mgrid_content_grid(c, name);
  if (entry < 0 && grid < 0) return false;
  if (entry >= 0) {
    mgrid_lua_family *box =
        mgrid_lua_new_family(L, &(mgrid_lua_family){ NULL, c->entry[entry].choice });
    box->f = mgrid_family_ref(c->entry[entry].family);
  } else {
    mgrid_grid **box = mgrid_lua_new_grid(L);
    *box = mgrid_grid_ref(c->grid[grid].grid);
  }
  lua_pushvalue(L, -1);
  remember(L, 1, name);
  return true;
}

/* t:has "x": whether there is a family, grid or item x. A State has this method, too, so no family
** can be called "has" */
static int topology_has(lua_State *L) {
  mgrid_topology *t = mgrid_lua_check_topology(L, 1);
  lua_pushboolean(L, push_named(L, &t->content, luaL_checkstring(L, 2)));
  return 1;
}

static int topology_index(lua_State *L) {
  mgrid_topology *t = mgrid_lua_check_topology(L, 1);
  if (lua_type(L, 2) == LUA_TNUMBER) return mgrid_lua_no_list(L, MGRID_LUA_TOPOLOGY);
  const char *name = luaL_checkstring(L, 2);
  const mgrid_content *c = &t->content;
  if (push_named(L, c, name)) return 1;
  if (strcmp(name, "has") == 0) {
    lua_pushcfunction(L, topology_has);
    return 1;
  }
  const char *known[256];
  size_t n = 0;
  for (size_t i = 0; i < c->nentries && n < 256; i++) known[n++] = c->entry[i].name;
  for (size_t i = 0; i < c->ngrids && n < 256; i++) known[n++] = c->grid[i].name;
  for (size_t i = 0; i < c->nitems && n < 256; i++) known[n++] = c->item[i].name;
  return mgrid_lua_unknown(L, "family", name, known, n);
}

/* next(topology) -> name, Family. Upvalues: the names of the families when the loop started, since
** its body may remove some; the number of names that were visited */
static int topology_next(lua_State *L) {
  mgrid_topology *t = mgrid_lua_check_topology(L, 1);
  lua_Integer i = lua_tointeger(L, lua_upvalueindex(2));
  while (lua_rawgeti(L, lua_upvalueindex(1), ++i) == LUA_TSTRING) {
    if (mgrid_content_find(&t->content, lua_tostring(L, -1)) < 0) {
      lua_pop(L, 1);
      continue;
    }
    lua_pushinteger(L, i);
    lua_replace(L, lua_upvalueindex(2));
    push_named(L, &t->content, lua_tostring(L, -1));
    return 2;
  }
  return 0;
}

static int topology_pairs(lua_State *L) {
  const mgrid_content *c = &mgrid_lua_check_topology(L, 1)->content;
  MGRID_LUA_LIST(L, c->nentries, lua_pushstring(L, c->entry[i].name));
  lua_pushinteger(L, 0);
  lua_pushcclosure(L, topology_next, 2);
  lua_pushvalue(L, 1);
  return 2;
}

static int topology_len(lua_State *L) {
  lua_pushinteger(L, (lua_Integer)mgrid_lua_check_topology(L, 1)->content.nentries);
  return 1;
}

static int topology_tostring(lua_State *L) {
  mgrid_topology *t = mgrid_lua_check_topology(L, 1);
  lua_pushfstring(L, "Topology of %d famil%s over %I rank%s", (int)t->content.nentries,
                  t->content.nentries == 1 ? "y" : "ies", (LUAI_UACINT)t->content.world,
                  mgrid_s_of(t->content.world));
  mgrid_lua_add_families(L, &t->content);
  return 1;
}

/* -------------------------------------------------------------- concurrent
** Families of a topology that are used at the same time.
*/

/* Raise with the position at 3, "file:line: ", if there is one; else with that of the caller. */
static int topology_fail(lua_State *L, mgrid_status status, const char *text) {
  return lua_type(L, 3) == LUA_TSTRING ? mgrid_lua_raise_at(L, lua_tostring(L, 3), status, text)
                                       : mgrid_lua_raise_as(L, status, "%s", text);
}

static int no_list(lua_State *L, const char *what) {
  char text[160];
  snprintf(text, sizeof text,
           "concurrent is a list of families' names, or a list of such lists; this %s", what);
  return topology_fail(L, MGRID_BAD_VALUE, text);
}

/* Check that the table at i is a list of values of one type, and return its length. */
static lua_Integer topology_check_list(lua_State *L, int i, int type) {
  lua_Integer n = (lua_Integer)lua_rawlen(L, i);
  mgrid_lua_charge(L, n < INT64_MAX / 16 ? 16 * n : n);
  n = mgrid_lua_length(L, i);
  if (n < 0) no_list(L, "has names for its values, or gaps");
  for (lua_Integer k = 1; k <= n; k++) {
    if (lua_rawgeti(L, i, k) != type)
      no_list(L, lua_pushfstring(L, "has %s in it", mgrid_lua_kind(L, -1)));
    lua_pop(L, 1);
  }
  return n;
}

static void topology_put_list(lua_State *L, int i, mgrid_topology *t) {
  size_t n = (size_t)topology_check_list(L, i, LUA_TSTRING);
  const char **names = lua_newuserdatauv(L, (n + 1) * sizeof *names, 0);
  mgrid_error e = MGRID_ERROR_INIT;
  for (size_t k = 0; k < n; k++) {
    lua_rawgeti(L, i, (lua_Integer)k + 1);
    names[k] = lua_tostring(L, -1); /* the list keeps it alive */
    lua_pop(L, 1);
  }
  mgrid_budget *budget = mgrid_lua_work(L);
  mgrid_status s = mgrid_concurrent_add(t, n, names, budget, &e);
  mgrid_lua_charge(L, 0);
  if (s) topology_fail(L, e.status, e.message);
  weigh_topology(L, 1);
  lua_pop(L, 1);
}

int mgrid_lua_concurrent_at(lua_State *L) {
  mgrid_topology *t = mgrid_lua_check_topology(L, 1);
  lua_settop(L, 3);
  if (lua_type(L, 2) != LUA_TTABLE)
    return no_list(L, lua_pushfstring(L, "is %s", mgrid_lua_kind(L, 2)));
  int first = lua_rawgeti(L, 2, 1);
  if (first == LUA_TSTRING) {
    topology_put_list(L, 2, t);
    return 0;
  }
  /* an empty list says that nothing is used at the same time */
  lua_Integer n = topology_check_list(L, 2, LUA_TTABLE);
  for (lua_Integer k = 1; k <= n; k++) {
    lua_rawgeti(L, 2, k);
    topology_put_list(L, lua_gettop(L), t);
    lua_pop(L, 1);
  }
  return 0;
}

/* concurrent(topology, names | lists of names) */
static int concurrent(lua_State *L) {
  if (lua_type(L, 2) == LUA_TSTRING)
    return mgrid_lua_raise_as(L, MGRID_BAD_VALUE,
                              "concurrent takes a list of names: concurrent(t, { \"%s\", ... })",
                              lua_tostring(L, 2));
  lua_settop(L, 2);
  return mgrid_lua_concurrent_at(L);
}

static const luaL_Reg topology_meta[] = { { "__index", topology_index },
                                          { "__newindex", topology_newindex },
                                          { "__len", topology_len },
                                          { "__pairs", topology_pairs },
                                          { "__tostring", topology_tostring },
                                          { "__gc", mgrid_lua_free_box },
                                          { NULL, NULL } };
static const mgrid_lua_class topology_class = { MGRID_LUA_TOPOLOGY, NULL, NULL, NULL,
                                                topology_meta };

void mgrid_lua_open_topology(lua_State *L) {
  static const luaL_Reg functions[] = { { "topology", new_topology },
                                        { "concurrent", concurrent },
                                        { NULL, NULL } };
  mgrid_lua_open_class(L, &topology_class);
  luaL_setfuncs(L, functions, 0);
}
