/* SPDX-License-Identifier: MIT
**
** reshape.c - grids made from a grid, for Lua: unflatten, flatten, rename, at.
*/
#include "recipe/bind.h"

/* Push the order of { NAME = size, NAME = fill } at i as a list: the filled dim is the slower one. Other sizes need an
** order, and the message shows one. */
static void push_default_order(lua_State *L, int i) {
  const char *names[MGRID_DIMS_MAX];
  size_t      n = 0, fills = 0, slower = 0;
  lua_Integer at = 0;
  mgrid_lua_keys(L, i);
  for (int keys = lua_gettop(L); n < MGRID_DIMS_MAX && mgrid_lua_step(L, i, keys, &at); lua_pop(L, 2)) {
    if (lua_type(L, -2) != LUA_TSTRING)
      mgrid_lua_raise_as(L, MGRID_BAD_VALUE, "sizes are by name; a key is %s", mgrid_lua_kind(L, -2));
    if (mgrid_lua_is_fill(L, -1)) slower = n, fills++;
    names[n++] = lua_tostring(L, -2);
  }
  lua_pop(L, 1);
  if (n == 2 && fills == 1) {
    lua_createtable(L, 2, 0);
    lua_pushstring(L, names[1 - slower]);
    lua_rawseti(L, -2, 1);
    lua_pushstring(L, names[slower]);
    lua_rawseti(L, -2, 2);
    return;
  }
  char order[256] = "";
  for (size_t k = 0, len = 0; k < n && len < sizeof order - 40; k++)
    len += (size_t)snprintf(order + len, sizeof order - len, "%s%.31s", k ? "-" : "", names[k]);
  mgrid_lua_raise(L,
                  "unflatten needs the order of the new dims, fastest first, as in (dim, \"%s\", sizes); only two "
                  "dims, one of them fill, go without",
                  n ? order : "shard-rep");
}

/* grid:unflatten(dim, order, sizes), or (dim, { NAME = size, NAME = fill }) */
static int grid_unflatten(lua_State *L) {
  mgrid_grid *g = mgrid_lua_check_grid(L, 1);
  const char *dim = luaL_checkstring(L, 2);
  mgrid_dim   dims[MGRID_DIMS_MAX];
  if (lua_isnoneornil(L, 4) && lua_istable(L, 3)) {
    lua_settop(L, 3);
    push_default_order(L, 3);
    lua_insert(L, 3);
  }
  size_t       n = mgrid_lua_push_dims(L, 3, 4, dims);
  mgrid_error  e = MGRID_ERROR_INIT;
  mgrid_grid **box = mgrid_lua_new_grid(L);
  *box = mgrid_grid_unflatten(g, dim, n, dims, &e);
  return mgrid_lua_made_grid(L, box, &e);
}

/* grid:flatten(name, dim, ...) */
static int grid_flatten(lua_State *L) {
  mgrid_grid *g = mgrid_lua_check_grid(L, 1);
  const char *name = luaL_checkstring(L, 2), *dims[MGRID_DIMS_MAX];
  int         n = lua_gettop(L) - 2;
  if (n > MGRID_DIMS_MAX)
    return mgrid_lua_raise_as(L, MGRID_OUT_OF_RANGE, "a grid has at most %d dims", MGRID_DIMS_MAX);
  for (int i = 0; i < n; i++) dims[i] = luaL_checkstring(L, i + 3);
  mgrid_error  e = MGRID_ERROR_INIT;
  mgrid_grid **box = mgrid_lua_new_grid(L);
  *box = mgrid_grid_flatten(g, name, (size_t)n, dims, &e);
  return mgrid_lua_made_grid(L, box, &e);
}

/* grid:rename{ dp = "data" } */
static int grid_rename(lua_State *L) {
  mgrid_grid *g = mgrid_lua_check_grid(L, 1);
  const char *known[MGRID_DIMS_MAX], *names[MGRID_DIMS_MAX];
  mgrid_lua_check_table(L, 2, "{ dp = \"data\" }");
  lua_settop(L, 2);
  mgrid_lua_stack(L, MGRID_DIMS_MAX + 4);
  for (size_t i = 0; i < g->n; i++) known[i] = g->axis[i].name;
  mgrid_lua_check_keys(L, 2, "dim", known, g->n, false);
  for (size_t i = 0; i < g->n; i++) { /* the names stay on the stack, which keeps them */
    int type = lua_getfield(L, 2, known[i]);
    if (type != LUA_TNIL && type != LUA_TSTRING)
      return mgrid_lua_raise_as(L, MGRID_BAD_VALUE, "the new name of dim '%s' is a %s, not a name", known[i],
                                lua_typename(L, type));
    names[i] = lua_tostring(L, -1);
  }
  mgrid_error  e = MGRID_ERROR_INIT;
  mgrid_grid **box = mgrid_lua_new_grid(L);
  *box = mgrid_grid_rename(g, names, &e);
  return mgrid_lua_made_grid(L, box, &e);
}

/* grid:at{ pp = 0 }: the grid of the dims that are not named, over the ranks there */
static int grid_at(lua_State *L) {
  mgrid_grid  *g = mgrid_lua_check_grid(L, 1);
  int64_t      coords[MGRID_DIMS_MAX];
  mgrid_chosen c;
  mgrid_lua_check_coords(L, 2, g, -1, coords);
  mgrid_grid_free_dims(g, coords, &c);
  mgrid_lua_charge_listed(L, g, &c);
  mgrid_error  e = MGRID_ERROR_INIT;
  mgrid_grid **box = mgrid_lua_new_grid(L);
  *box = mgrid_grid_at(g, coords, &e);
  return mgrid_lua_made_grid(L, box, &e);
}

const luaL_Reg mgrid_lua_grid_reshape[] = { { "unflatten", grid_unflatten },
                                            { "flatten", grid_flatten },
                                            { "rename", grid_rename },
                                            { "at", grid_at },
                                            { NULL, NULL } };
