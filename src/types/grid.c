/* SPDX-License-Identifier: MIT
**
** grid.c - World and Grid for Lua.
*/
#include "types/bind.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const char fill_key = 'f'; /* its address is the value of `fill` */

/* ------------------------------------------------------------------- World */

static int world_window(lua_State *L) {
  mgrid_window w = mgrid_lua_check_window(L, 1);
  int64_t      offset = luaL_checkinteger(L, 2);
  if (offset < 0 || offset >= w.size)
    return mgrid_lua_raise_as(L, MGRID_OUT_OF_RANGE,
                              "window offset %" PRId64 " is outside the %" PRId64 " ranks (0 to %" PRId64 ")", offset,
                              w.size, w.size - 1);
  int64_t size = luaL_optinteger(L, 3, w.size - offset);
  if (size < 1 || size > w.size - offset)
    return mgrid_lua_raise_as(L, MGRID_OUT_OF_RANGE,
                              "a window from %" PRId64 " has 1 to %" PRId64 " ranks, not %" PRId64, offset,
                              w.size - offset, size);
  *mgrid_lua_new_world(L) = (mgrid_window){ w.world, w.offset + offset, size };
  return 1;
}

/* world:table(lists, "partition" | "partial" | "cover") */
static int world_table(lua_State *L) {
  static const char *const kinds[] = { "partition", "partial", "cover", NULL };
  mgrid_window             w = mgrid_lua_check_window(L, 1);
  luaL_checktype(L, 2, LUA_TTABLE);
  int               kind = luaL_checkoption(L, 3, "partition", kinds);
  int64_t           count = (int64_t)lua_rawlen(L, 2), total = 0;
  mgrid_lua_family *box = mgrid_lua_new_family(L, NULL);
  for (int64_t g = 1; g <= count; g++) { /* check all before allocating: an error would leak */
    if (lua_rawgeti(L, 2, g) != LUA_TTABLE)
      return mgrid_lua_raise_as(L, MGRID_BAD_VALUE, "group %" PRId64 " of the table is %s, not a list of ranks", g - 1,
                                luaL_typename(L, -1));
    int64_t n = (int64_t)lua_rawlen(L, -1);
    mgrid_lua_charge(L, 16 * n);
    for (int64_t i = 1; i <= n; i++) {
      lua_rawgeti(L, -1, i);
      int64_t rank = lua_tointeger(L, -1);
      if (!lua_isinteger(L, -1))
        return mgrid_lua_raise_as(L, MGRID_BAD_VALUE, "group %" PRId64 " of the table holds %s, not a rank", g - 1,
                                  luaL_typename(L, -1));
      if (rank < 0 || rank > MGRID_WORLD_MAX)
        return mgrid_lua_raise_as(L, MGRID_OUT_OF_RANGE,
                                  "rank %" PRId64 " of group %" PRId64 " is out of range; ranks are %" PRId64
                                  " to %" PRId64,
                                  rank, g - 1, w.offset, w.offset + w.size - 1);
      lua_pop(L, 1);
    }
    total += n;
    lua_pop(L, 1);
  }
  int64_t *starts = malloc((size_t)(count + 1) * sizeof *starts);
  int32_t *ranks = malloc((size_t)(total + 1) * sizeof *ranks);
  int64_t  at = 0;
  for (int64_t g = 1; starts && ranks && g <= count; g++) {
    lua_rawgeti(L, 2, g);
    starts[g - 1] = at;
    for (int64_t i = 1, n = (int64_t)lua_rawlen(L, -1); i <= n; i++) {
      lua_rawgeti(L, -1, i);
      ranks[at++] = (int32_t)lua_tointeger(L, -1);
      lua_pop(L, 1);
    }
    lua_pop(L, 1);
  }
  mgrid_error e = MGRID_ERROR_INIT;
  if (starts) starts[count] = at;
  if (starts && ranks)
    box->f = mgrid_family_table(w, count, starts, ranks, (mgrid_coverage)kind, &e);
  else
    mgrid_oom(&e);
  free(starts);
  free(ranks);
  return box->f ? 1 : mgrid_lua_raise_error(L, &e);
}

static int world_size(lua_State *L) {
  lua_pushinteger(L, mgrid_lua_check_window(L, 1).size);
  return 1;
}

static int world_offset(lua_State *L) {
  lua_pushinteger(L, mgrid_lua_check_window(L, 1).offset);
  return 1;
}

static int world_tostring(lua_State *L) {
  mgrid_window w = mgrid_lua_check_window(L, 1);
  if (w.size == w.world)
    lua_pushfstring(L, "World of %I ranks", (LUAI_UACINT)w.world);
  else
    lua_pushfstring(L, "World of %I ranks, window %I..%I", (LUAI_UACINT)w.world, (LUAI_UACINT)w.offset,
                    (LUAI_UACINT)(w.offset + w.size - 1));
  return 1;
}

static int world_eq(lua_State *L) {
  mgrid_window a = mgrid_lua_check_window(L, 1), b = mgrid_lua_check_window(L, 2);
  lua_pushboolean(L, a.world == b.world && a.offset == b.offset && a.size == b.size);
  return 1;
}

static int new_world(lua_State *L) {
  int64_t size = luaL_checkinteger(L, 1);
  if (size < 1 || size > MGRID_WORLD_MAX)
    return mgrid_lua_raise_as(L, MGRID_OUT_OF_RANGE, "a world has 1 to %" PRId64 " ranks, not %" PRId64,
                              MGRID_WORLD_MAX, size);
  *mgrid_lua_new_world(L) = mgrid_world(size);
  return 1;
}

/* -------------------------------------------------------------------- Grid */

/* The names of an order, "tp-cp-dp" or {"tp","cp","dp"}; returns how many. Pushes each name: the strings
** live as long as they are on the stack. */
static size_t push_order(lua_State *L, int i, const char **names) {
  size_t n = 0;
  mgrid_lua_stack(L, MGRID_DIMS_MAX + 8);
  if (lua_istable(L, i)) {
    size_t len = lua_rawlen(L, i);
    for (size_t k = 1; k <= len; k++) {
      if (n == MGRID_DIMS_MAX) mgrid_lua_raise_as(L, MGRID_OUT_OF_RANGE, "a grid has at most %d dims", MGRID_DIMS_MAX);
      if (lua_rawgeti(L, i, (lua_Integer)k) != LUA_TSTRING)
        mgrid_lua_raise_as(L, MGRID_BAD_VALUE, "dim %d of the order is %s, not a name", (int)k, luaL_typename(L, -1));
      names[n++] = lua_tostring(L, -1);
    }
    return n;
  }
  const char *s = luaL_checkstring(L, i);
  if (*s == '\0') mgrid_lua_raise_as(L, MGRID_BAD_VALUE, "the order is empty");
  while (true) {
    size_t len = strcspn(s, "-");
    if (n == MGRID_DIMS_MAX) mgrid_lua_raise_as(L, MGRID_OUT_OF_RANGE, "a grid has at most %d dims", MGRID_DIMS_MAX);
    lua_pushlstring(L, s, len);
    names[n] = lua_tostring(L, -1);
    if (len == 0) mgrid_lua_raise_as(L, MGRID_BAD_VALUE, "order '%s' has an empty name", luaL_checkstring(L, i));
    n++;
    if (s[len] == '\0') return n;
    s += len + 1;
  }
}

static int64_t dim_size(lua_State *L, const char *name) {
  if (lua_islightuserdata(L, -1) && lua_touserdata(L, -1) == &fill_key) return MGRID_FILL;
  if (lua_type(L, -1) == LUA_TNUMBER && !lua_isinteger(L, -1))
    mgrid_lua_raise_as(L, MGRID_BAD_VALUE,
                       "the size of dim '%s' is %.14g, a float, not an integer or fill; // divides integers", name,
                       lua_tonumber(L, -1));
  if (!lua_isinteger(L, -1))
    mgrid_lua_raise_as(L, MGRID_BAD_VALUE, "the size of dim '%s' is a %s, not an integer or fill", name,
                       luaL_typename(L, -1));
  int64_t size = lua_tointeger(L, -1);
  if (size < 1)
    mgrid_lua_raise_as(L, MGRID_OUT_OF_RANGE, "dim '%s' has size %" PRId64 "; sizes are 1 to %" PRId64, name, size,
                       MGRID_WORLD_MAX);
  return size;
}

/* Append the dims that have a size but are not in the order: those of size 1; a larger one is an error. */
static size_t append_unordered(lua_State *L, int sizes, mgrid_dim *dims, size_t n, const char *order) {
  const char *extra[MGRID_DIMS_MAX], *known[MGRID_DIMS_MAX];
  size_t      nextra = 0, nordered = n;
  for (size_t i = 0; i < n; i++) known[i] = dims[i].name;
  lua_pushnil(L);
  while (lua_next(L, sizes)) {
    lua_pop(L, 1);
    if (lua_type(L, -1) != LUA_TSTRING)
      mgrid_lua_raise_as(L, MGRID_BAD_VALUE, "sizes are by name; a key is a %s", luaL_typename(L, -1));
    const char *name = lua_tostring(L, -1); /* the table of sizes keeps the string alive */
    bool        found = false;
    for (size_t i = 0; i < n && !found; i++) found = strcmp(known[i], name) == 0;
    if (!found && n + nextra == MGRID_DIMS_MAX)
      mgrid_lua_raise_as(L, MGRID_OUT_OF_RANGE, "a grid has at most %d dims", MGRID_DIMS_MAX);
    if (!found) extra[nextra++] = name;
  }
  mgrid_sort_names(extra, nextra);
  for (size_t i = 0; i < nextra; i++) {
    char tail[512];
    lua_getfield(L, sizes, extra[i]);
    int64_t size = dim_size(L, extra[i]);
    lua_pop(L, 1);
    mgrid_suggest(tail, sizeof tail, extra[i], known, nordered);
    if (size == MGRID_FILL)
      mgrid_lua_raise(L, "dim '%s' is to be inferred but is not in the order%s%s", extra[i], order, tail);
    if (size != 1)
      mgrid_lua_raise(L, "dim '%s' of size %" PRId64 " is not in the order%s%s", extra[i], size, order, tail);
    dims[n++] = (mgrid_dim){ extra[i], 1 };
  }
  return n;
}

/* grid(world, order, sizes): order fastest first; a name without a size has size 1 */
static int new_grid(lua_State *L) {
  mgrid_window w = mgrid_lua_check_window(L, 1);
  const char  *names[MGRID_DIMS_MAX];
  mgrid_dim    dims[MGRID_DIMS_MAX];
  luaL_argexpected(L, lua_isstring(L, 2) || lua_istable(L, 2), 2, "order");
  luaL_checktype(L, 3, LUA_TTABLE);
  lua_settop(L, 3);
  size_t n = push_order(L, 2, names);
  for (size_t i = 0; i < n; i++) {
    if (lua_getfield(L, 3, names[i]) == LUA_TNIL)
      dims[i] = (mgrid_dim){ names[i], 1 };
    else
      dims[i] = (mgrid_dim){ names[i], dim_size(L, names[i]) };
    lua_pop(L, 1);
  }
  char order[256] = "";
  if (lua_type(L, 2) == LUA_TSTRING) snprintf(order, sizeof order, " \"%.200s\"", lua_tostring(L, 2));
  n = append_unordered(L, 3, dims, n, order);
  mgrid_error  e = MGRID_ERROR_INIT;
  mgrid_grid **box = mgrid_lua_new_grid(L);
  *box = mgrid_grid_new(w, n, dims, &e);
  return *box ? 1 : mgrid_lua_raise_error(L, &e);
}

static int along(lua_State *L, mgrid_order order) {
  mgrid_grid *g = mgrid_lua_check_grid(L, 1);
  const char *inside[MGRID_DIMS_MAX], *index[MGRID_DIMS_MAX];
  size_t      n = 0, nindex = 0;
  bool        chosen = false; /* grid:along{ "tp", index = {...} } */
  if (lua_istable(L, 2)) {
    static const char *const options[] = { "index" };
    lua_settop(L, 2);
    mgrid_lua_check_keys(L, 2, "option", options, 1, true);
    n = push_order(L, 2, inside);
    chosen = lua_getfield(L, 2, "index") != LUA_TNIL;
    if (chosen) nindex = push_order(L, lua_gettop(L), index);
  } else {
    for (int i = 2; i <= lua_gettop(L); i++) {
      if (n == MGRID_DIMS_MAX)
        return mgrid_lua_raise_as(L, MGRID_OUT_OF_RANGE, "a grid has at most %d dims", MGRID_DIMS_MAX);
      inside[n++] = luaL_checkstring(L, i);
    }
  }
  mgrid_error       e = MGRID_ERROR_INIT;
  mgrid_lua_family *box = mgrid_lua_new_family(L, NULL);
  box->f = chosen ? mgrid_grid_along_by(g, n, inside, nindex, index, &e) : mgrid_grid_along(g, n, inside, order, &e);
  return box->f ? 1 : mgrid_lua_raise_error(L, &e);
}

static int grid_along(lua_State *L) { return along(L, MGRID_GRID_ORDER); }
static int grid_ordered(lua_State *L) { return along(L, MGRID_AS_WRITTEN); }

/* grid:coord(rank, dim) -> integer | nil */
static int grid_coord(lua_State *L) {
  mgrid_grid *g = mgrid_lua_check_grid(L, 1);
  int64_t     rank = luaL_checkinteger(L, 2);
  const char *dim = luaL_checkstring(L, 3);
  int64_t     d = mgrid_grid_find(g, dim);
  if (d < 0) {
    const char *known[MGRID_DIMS_MAX];
    for (size_t i = 0; i < g->n; i++) known[i] = g->axis[i].name;
    return mgrid_lua_unknown(L, "dim", dim, known, g->n);
  }
  int64_t at = mgrid_grid_coord(g, rank, (size_t)d);
  if (at < 0)
    lua_pushnil(L);
  else
    lua_pushinteger(L, at);
  return 1;
}

/* grid:coords(rank) -> { tp = 0, dp = 1 } | nil */
static int grid_coords(lua_State *L) {
  mgrid_grid *g = mgrid_lua_check_grid(L, 1);
  int64_t     rank = luaL_checkinteger(L, 2);
  lua_newtable(L);
  for (size_t i = 0; i < g->n; i++) {
    int64_t at = mgrid_grid_coord(g, rank, i);
    if (at < 0) return 0;
    lua_pushinteger(L, at);
    lua_setfield(L, -2, g->axis[i].name);
  }
  return 1;
}

/* grid:rank{ tp = 0, dp = 1 } -> integer; a dim that is not named is at 0 */
static int grid_rank(lua_State *L) {
  mgrid_grid *g = mgrid_lua_check_grid(L, 1);
  int64_t     coords[MGRID_DIMS_MAX] = { 0 };
  const char *known[MGRID_DIMS_MAX];
  luaL_checktype(L, 2, LUA_TTABLE);
  for (size_t i = 0; i < g->n; i++) known[i] = g->axis[i].name;
  mgrid_lua_check_keys(L, 2, "dim", known, g->n, false);
  for (size_t i = 0; i < g->n; i++) {
    if (lua_getfield(L, 2, known[i]) != LUA_TNIL) {
      coords[i] = lua_tointeger(L, -1);
      if (!lua_isinteger(L, -1))
        return mgrid_lua_raise_as(L, MGRID_BAD_VALUE, "the coordinate of dim '%s' is %s, not an integer", known[i],
                                  luaL_typename(L, -1));
      if (coords[i] < 0 || coords[i] >= g->axis[i].size)
        return mgrid_lua_raise_as(L, MGRID_OUT_OF_RANGE,
                                  "coordinate %" PRId64 " of dim '%s' is out of range (0 to %" PRId64 ")", coords[i],
                                  known[i], g->axis[i].size - 1);
    }
    lua_pop(L, 1);
  }
  lua_pushinteger(L, mgrid_grid_rank(g, coords));
  return 1;
}

/* grid:dims() -> { {name, size}, ... } fastest first */
static int grid_dims(lua_State *L) {
  mgrid_grid *g = mgrid_lua_check_grid(L, 1);
  lua_createtable(L, (int)g->n, 0);
  for (size_t i = 0; i < g->n; i++) {
    lua_createtable(L, 2, 0);
    lua_pushstring(L, g->axis[i].name);
    lua_rawseti(L, -2, 1);
    lua_pushinteger(L, g->axis[i].size);
    lua_rawseti(L, -2, 2);
    lua_rawseti(L, -2, (lua_Integer)i + 1);
  }
  return 1;
}

static int grid_gc(lua_State *L) {
  mgrid_grid **box = luaL_checkudata(L, 1, MGRID_LUA_GRID);
  mgrid_grid_free(*box);
  *box = NULL;
  return 0;
}

static int grid_len(lua_State *L) {
  lua_pushinteger(L, mgrid_lua_check_grid(L, 1)->window.size);
  return 1;
}

static int grid_tostring(lua_State *L) {
  char text[2048];
  mgrid_grid_describe(mgrid_lua_check_grid(L, 1), text, sizeof text);
  lua_pushfstring(L, "Grid %s", text);
  return 1;
}

static int grid_eq(lua_State *L) {
  char a[2048], b[2048];
  mgrid_grid_describe(mgrid_lua_check_grid(L, 1), a, sizeof a);
  mgrid_grid_describe(mgrid_lua_check_grid(L, 2), b, sizeof b);
  lua_pushboolean(L, strcmp(a, b) == 0);
  return 1;
}

static const luaL_Reg world_fields[] = { { "size", world_size }, { "offset", world_offset }, { NULL, NULL } };
static const luaL_Reg world_methods[] = { { "window", world_window }, { "table", world_table }, { NULL, NULL } };
static const luaL_Reg world_meta[] = {
  { "__len", world_size }, { "__tostring", world_tostring }, { "__eq", world_eq }, { NULL, NULL }
};
static const mgrid_lua_class world_class = { MGRID_LUA_WORLD, world_fields, world_methods, NULL, world_meta };

static const luaL_Reg grid_methods[] = { { "along", grid_along }, { "ordered", grid_ordered },
                                         { "coord", grid_coord }, { "coords", grid_coords },
                                         { "rank", grid_rank },   { "dims", grid_dims },
                                         { NULL, NULL } };
static int            grid_index(lua_State *L);
static const luaL_Reg grid_meta[] = {
  { "__index", grid_index }, { "__call", grid_along }, { "__len", grid_len }, { "__tostring", grid_tostring },
  { "__eq", grid_eq },       { "__gc", grid_gc },      { NULL, NULL }
};
static const mgrid_lua_class grid_class = { MGRID_LUA_GRID, NULL, grid_methods, NULL, grid_meta };

/* grid.tp is the size of dim tp; the methods come first */
static int grid_index(lua_State *L) {
  mgrid_grid *g = mgrid_lua_check_grid(L, 1);
  const char *key = luaL_checkstring(L, 2);
  if (mgrid_lua_class_get(L, &grid_class, 1, key)) return 1;
  int64_t d = mgrid_grid_find(g, key);
  if (d < 0) {
    const char *known[MGRID_DIMS_MAX];
    for (size_t i = 0; i < g->n; i++) known[i] = g->axis[i].name;
    return mgrid_lua_unknown(L, "dim", key, known, g->n);
  }
  lua_pushinteger(L, g->axis[d].size);
  return 1;
}

void mgrid_lua_open_grid(lua_State *L) {
  static const luaL_Reg functions[] = { { "world", new_world }, { "grid", new_grid }, { NULL, NULL } };
  mgrid_lua_open_class(L, &world_class);
  mgrid_lua_open_class(L, &grid_class);
  luaL_setfuncs(L, functions, 0);
  lua_pushlightuserdata(L, (void *)&fill_key);
  lua_setfield(L, -2, "fill");
}
