/* SPDX-License-Identifier: MIT
**
** mesh_words.c - Mesh for Lua: a rank in a grid. A Mesh is a table with the rank's coordinates by
** dim, so `pairs` and copies see only these. Its metatable holds the grid and the rank, and has the
** fields and methods.
*/
#include "recipe/bind.h"

static const char grid_key = 'g', rank_key = 'r'; /* their addresses are keys in the metatable */

typedef struct mesh {
  mgrid_grid *grid;
  int64_t rank;
} mesh;

static mesh check_mesh(lua_State *L, int i) {
  if (!lua_istable(L, i) || !lua_getmetatable(L, i)
      || lua_rawgetp(L, -1, &grid_key) != LUA_TUSERDATA)
    luaL_typeerror(L, i, "moongrid.Mesh");
  mesh m = { mgrid_lua_check_grid(L, -1), 0 };
  lua_rawgetp(L, -2, &rank_key);
  m.rank = lua_tointeger(L, -1);
  lua_pop(L, 3);
  return m;
}

static int mesh_grid(lua_State *L) {
  check_mesh(L, 1);
  lua_getmetatable(L, 1);
  lua_rawgetp(L, -1, &grid_key);
  return 1;
}

static int mesh_position(lua_State *L) {
  mesh m = check_mesh(L, 1);
  lua_pushinteger(L, mgrid_grid_position(m.grid, m.rank));
  return 1;
}

static int mesh_size(lua_State *L) {
  lua_pushinteger(L, check_mesh(L, 1).grid->size);
  return 1;
}

static int mesh_shape(lua_State *L) {
  const mgrid_grid *g = check_mesh(L, 1).grid;
  MGRID_LUA_LIST(L, g->n, lua_pushinteger(L, g->axis[i].size));
  return 1;
}

static int mesh_ranks(lua_State *L) { /* a new list each time */
  const mgrid_grid *g = check_mesh(L, 1).grid;
  lua_createtable(L, g->size < INT32_MAX ? (int)g->size : 0, 0);
  for (int64_t i = 0; i < g->size; i++) {
    lua_pushinteger(L, g->order ? mgrid_family_rank(g->order, 0, i) : g->window.offset + i);
    lua_rawseti(L, -2, i + 1);
  }
  return 1;
}

/* mesh:submesh(dim, ...): the slice along these dims that contains the rank */
static int mesh_submesh(lua_State *L) {
  mesh m = check_mesh(L, 1);
  const char *dims[MGRID_DIMS_MAX];
  int64_t coords[MGRID_DIMS_MAX];
  int n = lua_gettop(L) - 1;
  mgrid_chosen c;
  mgrid_error e = MGRID_ERROR_INIT;
  mgrid_lua_check_ndims(L, (size_t)n);
  for (int i = 0; i < n; i++) dims[i] = luaL_checkstring(L, i + 2);
  if (mgrid_grid_around(m.grid, m.rank, (size_t)n, dims, coords, &e))
    return mgrid_lua_raise_error(L, &e);
  mgrid_grid_free_dims(m.grid, coords, &c);
  mgrid_lua_charge_listed(L, m.grid, &c);
  mgrid_grid **box = mgrid_lua_new_grid(L);
  if (!(*box = mgrid_grid_at(m.grid, coords, &e))) return mgrid_lua_raise_error(L, &e);
  mgrid_lua_push_mesh_metatable(L, *box, m.rank);
  mgrid_lua_push_mesh(L, *box, m.rank, lua_gettop(L));
  return 1;
}

static int mesh_tostring(lua_State *L) {
  mesh m = check_mesh(L, 1);
  char text[2048];
  mgrid_text_ellipsis(text, sizeof text, mgrid_grid_describe(m.grid, text, sizeof text));
  lua_pushfstring(L, "Mesh %s, at position %I", text,
                  (LUAI_UACINT)mgrid_grid_position(m.grid, m.rank));
  return 1;
}

static const luaL_Reg mesh_fields[] = { { "position", mesh_position }, { "size", mesh_size },
                                        { "shape", mesh_shape },       { "ranks", mesh_ranks },
                                        { "grid", mesh_grid },         { NULL, NULL } };
static const luaL_Reg mesh_methods[] = { { "submesh", mesh_submesh }, { NULL, NULL } };
static const mgrid_lua_class mesh_class = { MGRID_LUA_MESH, mesh_fields, mesh_methods, NULL, NULL };

/* __index of a Mesh, for a name that is not a coordinate. */
static int mesh_index(lua_State *L) {
  mesh m = check_mesh(L, 1);
  const char *key = luaL_checkstring(L, 2);
  return mgrid_lua_class_get(L, &mesh_class, 1, key) ? 1 : mgrid_lua_unknown_dim(L, m.grid, key);
}

void mgrid_lua_push_mesh_metatable(lua_State *L, const mgrid_grid *g, int64_t rank) {
  static const luaL_Reg meta[] = { { "__index", mesh_index },
                                   { "__tostring", mesh_tostring },
                                   { NULL, NULL } };
  luaL_newlib(L, meta);
  mgrid_lua_set_boolean(L, "__metatable", false);
  mgrid_grid **box = mgrid_lua_new_grid(L);
  *box = mgrid_grid_ref(g);
  lua_rawsetp(L, -2, &grid_key);
  lua_pushinteger(L, rank);
  lua_rawsetp(L, -2, &rank_key);
}

void mgrid_lua_push_mesh(lua_State *L, const mgrid_grid *g, int64_t rank, int metatable) {
  if (mgrid_grid_position(g, rank) < 0) {
    lua_pushnil(L);
    return;
  }
  lua_createtable(L, 0, (int)g->n);
  for (size_t i = 0; i < g->n; i++)
    mgrid_lua_set_integer(L, g->axis[i].name, mgrid_grid_coord(g, rank, i));
  lua_pushvalue(L, metatable);
  lua_setmetatable(L, -2);
}
