/* SPDX-License-Identifier: MIT
**
** grid_words.c - Grid for Lua: making one, its families and coordinates, and other grids made from
** it.
*/
#include "recipe/bind.h"

#include <inttypes.h>
#include <string.h>

void mgrid_lua_check_ndims(lua_State *L, size_t n) {
  if (n > MGRID_DIMS_MAX)
    mgrid_lua_raise_as(L, MGRID_OUT_OF_RANGE, "a grid has at most %d dims", MGRID_DIMS_MAX);
}

int mgrid_lua_unknown_dim(lua_State *L, const mgrid_grid *g, const char *name) {
  const char *known[MGRID_DIMS_MAX];
  for (size_t i = 0; i < g->n; i++) known[i] = g->axis[i].name;
  return mgrid_lua_unknown(L, "dim", name, known, g->n);
}

/* Read the order at i, "tp-cp-dp" or {"tp","cp","dp"}: push its names, and return their number. */
static size_t push_order(lua_State *L, int i, const char **names) {
  size_t n = 0;

  mgrid_lua_stack(L, MGRID_DIMS_MAX + 8);
  if (lua_istable(L, i)) {
    size_t len = lua_rawlen(L, i);
    for (size_t k = 1; k <= len; k++) {
      mgrid_lua_check_ndims(L, n + 1);
      if (lua_rawgeti(L, i, (lua_Integer)k) != LUA_TSTRING)
        mgrid_lua_raise_as(L, MGRID_BAD_VALUE, "dim %d of the order is %s, not a name", (int)k,
                           mgrid_lua_kind(L, -1));
      names[n++] = lua_tostring(L, -1);
    }
    return n;
  }
  const char *s = luaL_checkstring(L, i);
  if (*s == '\0') mgrid_lua_raise_as(L, MGRID_BAD_VALUE, "the order is empty");
  if (strpbrk(s, ", "))
    mgrid_lua_raise_as(L, MGRID_BAD_VALUE, "order '%s': a - stands between names, as in \"tp-dp\"",
                       s);
  while (true) {
    size_t len = strcspn(s, "-");
    mgrid_lua_check_ndims(L, n + 1);
    lua_pushlstring(L, s, len);
    names[n] = lua_tostring(L, -1);
    if (len == 0)
      mgrid_lua_raise_as(L, MGRID_BAD_VALUE, "order '%s' has an empty name",
                         luaL_checkstring(L, i));
    n++;
    if (s[len] == '\0') return n;
    s += len + 1;
  }
}

static int64_t dim_size(lua_State *L, const char *name) {
  if (mgrid_lua_is_fill(L, -1)) return MGRID_FILL;
  if (lua_type(L, -1) == LUA_TNUMBER && !lua_isinteger(L, -1))
    mgrid_lua_raise_as(L, MGRID_BAD_VALUE,
                       "the size of dim '%s' is %.14g, a float, not an integer or fill; a // b and "
                       "math.floor(x) are integers",
                       name, mgrid_lua_number(L, -1));
  if (!lua_isinteger(L, -1))
    mgrid_lua_raise_as(L, MGRID_BAD_VALUE, "the size of dim '%s' is %s, not an integer or fill",
                       name, mgrid_lua_kind(L, -1));
  int64_t size = lua_tointeger(L, -1);
  if (size < 1)
    mgrid_lua_raise_as(L, MGRID_OUT_OF_RANGE,
                       "dim '%s' has size %" PRId64 "; sizes are 1 to %" PRId64, name, size,
                       MGRID_WORLD_MAX);
  return size;
}

/* The table at `sizes` may have dims that are not in the order. Append them to `dims` if their size
** is 1, else raise; messages show the text `order`. Return the number of all dims. */
static size_t append_unordered(lua_State *L, int sizes, mgrid_dim *dims, size_t n,
                               const char *order) {
  const char *extra[MGRID_DIMS_MAX], *known[MGRID_DIMS_MAX];
  size_t nextra = 0, nordered = n;

  for (size_t i = 0; i < n; i++) known[i] = dims[i].name;
  sizes = lua_absindex(L, sizes);
  lua_Integer k = 0;
  mgrid_lua_keys(L, sizes);
  for (int keys = lua_gettop(L); mgrid_lua_step(L, sizes, keys, &k); lua_pop(L, 1)) {
    lua_pop(L, 1);
    if (lua_type(L, -1) != LUA_TSTRING)
      mgrid_lua_raise_as(L, MGRID_BAD_VALUE, "each size needs a name as its key, not %s",
                         mgrid_lua_kind(L, -1));
    const char *name = lua_tostring(L, -1); /* the table of sizes keeps the string alive */
    bool found = false;
    for (size_t i = 0; i < n && !found; i++) found = strcmp(known[i], name) == 0;
    if (found) continue;
    mgrid_lua_check_ndims(L, n + nextra + 1);
    extra[nextra++] = name;
  }
  lua_pop(L, 1);
  for (size_t i = 0; i < nextra; i++) {
    char tail[512];
    lua_getfield(L, sizes, extra[i]);
    int64_t size = dim_size(L, extra[i]);
    lua_pop(L, 1);
    mgrid_suggest(tail, sizeof tail, extra[i], known, nordered);
    if (size == MGRID_FILL)
      mgrid_lua_raise(L, "dim '%s' is to be inferred but is not in the order%s%s", extra[i], order,
                      tail);
    if (size != 1)
      mgrid_lua_raise(L, "dim '%s' of size %" PRId64 " is not in the order%s%s", extra[i], size,
                      order, tail);
    dims[n++] = (mgrid_dim){ extra[i], 1 };
  }
  return n;
}

/* Set `dims` to the dims of a grid, the fastest first, and return their number. The names come from
** the order at `order`, which with `slowest` has the slowest dim first; the sizes come from the
** table at `sizes`. The names stay on the stack, which keeps them alive. */
static size_t push_dims(lua_State *L, int order, int sizes, bool slowest, mgrid_dim *dims) {
  const char *names[MGRID_DIMS_MAX];
  luaL_argexpected(L, lua_isstring(L, order) || lua_istable(L, order), order,
                   "order such as \"tp-dp\"");
  mgrid_lua_check_table(L, sizes, "{ tp = 2, dp = fill }");
  size_t n = push_order(L, order, names);
  for (size_t i = 0; i < n; i++) {
    const char *name = names[slowest ? n - 1 - i : i];
    bool given = lua_getfield(L, sizes, name) != LUA_TNIL;
    dims[i] = (mgrid_dim){ name, given ? dim_size(L, name) : 1 };
    lua_pop(L, 1);
  }
  char said[256] = "";
  if (lua_type(L, order) == LUA_TSTRING)
    snprintf(said, sizeof said, " \"%.200s\"", lua_tostring(L, order));
  return append_unordered(L, sizes, dims, n, said);
}

/* Finish making a grid in this box: raise the error, or count the grid's memory and return 1. */
static int made_grid(lua_State *L, mgrid_grid **box, const mgrid_error *e) {
  if (!*box) return mgrid_lua_raise_error(L, e);
  size_t order = (*box)->order ? (*box)->order->bytes : 0;
  mgrid_lua_weigh(L, box, sizeof **box + (*box)->n * sizeof *(*box)->axis + order);
  return 1;
}

/* Return true if argument i is the word `known`, false if it is nil or absent. Else raise. */
static bool check_word(lua_State *L, int i, const char *known) {
  if (lua_isnoneornil(L, i)) return false;
  const char *word = luaL_checkstring(L, i);
  if (strcmp(word, known) != 0) mgrid_lua_unknown(L, "option", word, &known, 1);
  return true;
}

/* grid(world, order, sizes [, "slowest first"]). A dim without a size has size 1 */
static int new_grid(lua_State *L) {
  const mgrid_lua_world *w = mgrid_lua_world_argument(L);
  bool slowest = check_word(L, 4, "slowest first");
  mgrid_dim dims[MGRID_DIMS_MAX];
  size_t n = push_dims(L, 2, 3, slowest, dims);
  mgrid_error e = MGRID_ERROR_INIT;
  mgrid_grid **box = mgrid_lua_new_grid(L);
  *box = w->order ? mgrid_grid_over(w->order, n, dims, &e) : mgrid_grid_new(w->window, n, dims, &e);
  return made_grid(L, box, &e);
}

void mgrid_lua_charge_listed(lua_State *L, const mgrid_grid *g, const mgrid_chosen *c) {
  int64_t ranks = mgrid_grid_listed(g, c);
  if (ranks) mgrid_lua_charge(L, 16 * ranks);
  mgrid_lua_reserve(L, ranks, 24);
}

/* Return the name of a dim at index i of the stack. Messages call it argument `nth`. */
static const char *dim_name(lua_State *L, int i, int nth) {
  if (lua_type(L, i) != LUA_TSTRING)
    mgrid_lua_raise_as(L, MGRID_BAD_VALUE, "argument %d is %s, not the name of a dim", nth,
                       mgrid_lua_kind(L, i));
  const char *name = lua_tostring(L, i);
  if (strpbrk(name, "-, "))
    mgrid_lua_raise_as(
        L, MGRID_BAD_VALUE,
        "'%s' is not a dim name; give several as separate arguments: (\"tp\", \"dp\")", name);
  return name;
}

/* Push an empty family of the Grid at 1. */
static mgrid_lua_family *new_family_of_grid(lua_State *L) {
  mgrid_lua_family *box = mgrid_lua_new_family(L, NULL);
  lua_pushvalue(L, 1);
  lua_setiuservalue(L, -2, 1);
  return box;
}

/* Read the arguments from 2 on, which are names of dims. Return their number. */
static size_t check_dims(lua_State *L, const char **dims) {
  int n = lua_gettop(L) - 1;
  mgrid_lua_check_ndims(L, (size_t)n);
  for (int i = 0; i < n; i++) dims[i] = dim_name(L, i + 2, i + 1);
  return (size_t)n;
}

static int along(lua_State *L, mgrid_order order) {
  mgrid_grid *g = mgrid_lua_check_grid(L, 1);
  const char *inside[MGRID_DIMS_MAX], *index[MGRID_DIMS_MAX];
  size_t n = 0, nindex = 0;
  bool chosen = false; /* as in grid:along{ "tp", index = {...} } */

  if (lua_istable(L, 2)) {
    static const char *const options[] = { "index" };
    lua_settop(L, 2);
    mgrid_lua_check_keys(L, 2, "option", options, 1, true);
    n = push_order(L, 2, inside);
    chosen = lua_getfield(L, 2, "index") != LUA_TNIL;
    if (chosen) nindex = push_order(L, lua_gettop(L), index);
  } else {
    n = check_dims(L, inside);
  }
  mgrid_error e = MGRID_ERROR_INIT;
  mgrid_chosen c;
  mgrid_lua_family *box = new_family_of_grid(L);
  mgrid_status s = chosen ? mgrid_grid_choose_by(g, n, inside, nindex, index, &c, &e)
                          : mgrid_grid_choose(g, n, inside, order, &c, &e);
  if (s) return mgrid_lua_raise_error(L, &e);
  mgrid_lua_charge_listed(L, g, &c);
  box->f = mgrid_grid_family(g, &c, &e);
  return mgrid_lua_made_family(L, box, &e);
}

static int grid_along(lua_State *L) {
  if (lua_gettop(L) == 3 && lua_isnil(L, 2) && lua_isnil(L, 3)) /* as in: for x in grid do */
    return mgrid_lua_no_iterator(L, MGRID_LUA_GRID);
  return along(L, MGRID_GRID_ORDER);
}
static int grid_ordered(lua_State *L) { return along(L, MGRID_AS_WRITTEN); }

/* Choose the dims whose names are the arguments from 2 on. */
static void choose_dims(lua_State *L, const mgrid_grid *g, mgrid_chosen *c) {
  const char *dims[MGRID_DIMS_MAX];
  mgrid_error e = MGRID_ERROR_INIT;
  if (mgrid_grid_choose(g, check_dims(L, dims), dims, MGRID_GRID_ORDER, c, &e))
    mgrid_lua_raise_error(L, &e);
}

/* grid:except(dim, ...): the family along all other dims */
static int grid_except(lua_State *L) {
  mgrid_grid *g = mgrid_lua_check_grid(L, 1);
  mgrid_chosen c;
  choose_dims(L, g, &c);
  lua_settop(L, 1);
  mgrid_lua_stack(L, MGRID_DIMS_MAX + 8);
  for (size_t i = 0; i < c.nix; i++) lua_pushstring(L, g->axis[c.ix[i]].name);
  return along(L, MGRID_GRID_ORDER);
}

/* Push the value of the option `cartesian`, "x:4:periodic y:2", for the groups along the dims that
** are marked in `inside`. The value at `periods` is a table { x = true } of periodic dims, or
** nil. */
static const char *push_shape(lua_State *L, const mgrid_grid *g, const bool *inside, int periods) {
  luaL_Buffer text;
  bool periodic[MGRID_DIMS_MAX] = { false };

  for (size_t d = 0; d < g->n && !lua_isnil(L, periods); d++) {
    if (inside[d] && lua_getfield(L, periods, g->axis[d].name) != LUA_TNIL) {
      if (!lua_isboolean(L, -1))
        mgrid_lua_raise_as(L, MGRID_BAD_VALUE, "the period of dim '%s' is %s, not true or false",
                           g->axis[d].name, mgrid_lua_kind(L, -1));
      periodic[d] = lua_toboolean(L, -1);
    }
    if (inside[d]) lua_pop(L, 1);
  }
  luaL_buffinit(L, &text);
  for (size_t d = 0; d < g->n; d++) {
    char side[MGRID_NAME_MAX + 40];
    if (!inside[d]) continue;
    snprintf(side, sizeof side, "%s:%" PRId64 "%s ", g->axis[d].name, g->axis[d].size,
             periodic[d] ? ":periodic" : "");
    luaL_addstring(&text, side);
  }
  luaL_pushresult(&text);
  return lua_tostring(L, -1);
}

/* grid:cartesian{ "x", "y", periods = { x = true } }: the family of grid:along("x", "y"), with the
** option `cartesian`, by which communicators of MPI get a Cartesian topology. If no dim is named,
** the family is along all dims */
static int grid_cartesian(lua_State *L) {
  static const char *const options[] = { "periods" };
  mgrid_grid *g = mgrid_lua_check_grid(L, 1);
  const char *dims[MGRID_DIMS_MAX];
  bool inside[MGRID_DIMS_MAX] = { false };

  if (lua_isnoneornil(L, 2)) lua_settop(L, 1), lua_newtable(L);
  mgrid_lua_check_table(L, 2, "{ \"x\", \"y\" }");
  lua_settop(L, 2);
  mgrid_lua_check_keys(L, 2, "option of a Cartesian family", options, 1, true);
  if (lua_getfield(L, 2, "periods") != LUA_TNIL && !lua_istable(L, 3))
    return mgrid_lua_raise_as(L, MGRID_BAD_VALUE,
                              "periods are a table such as { x = true }, not %s",
                              mgrid_lua_kind(L, 3));
  size_t n = push_order(L, 2, dims);
  for (size_t d = 0; d < g->n && lua_rawlen(L, 2) == 0; d++) dims[n++] = g->axis[d].name;
  if (n == 0) return mgrid_lua_raise(L, "a grid without dims has no Cartesian groups");
  mgrid_error e = MGRID_ERROR_INIT;
  mgrid_options o = MGRID_OPTIONS_INIT;
  mgrid_chosen c;
  mgrid_lua_family *box = new_family_of_grid(L);
  if (mgrid_grid_choose(g, n, dims, MGRID_GRID_ORDER, &c, &e)) return mgrid_lua_raise_error(L, &e);
  mgrid_lua_charge_listed(L, g, &c);
  if (!(box->f = mgrid_grid_family(g, &c, &e))) return mgrid_lua_raise_error(L, &e);
  if (!lua_isnil(L, 3)) mgrid_lua_check_keys(L, 3, "periodic dim", dims, n, false);
  for (size_t i = 0; i < n; i++) inside[mgrid_grid_find(g, dims[i])] = true;
  int at = lua_gettop(L);
  o.cartesian = push_shape(L, g, inside, 3);
  if (mgrid_choice_new(&o, &box->choice, &e)) return mgrid_lua_raise_error(L, &e);
  lua_settop(L, at);
  return 1;
}

/* grid:coord(rank, dim) -> integer | nil */
static int grid_coord(lua_State *L) {
  mgrid_grid *g = mgrid_lua_check_grid(L, 1);
  int64_t rank = mgrid_lua_check_integer(L, 2);
  const char *dim = luaL_checkstring(L, 3);
  int64_t d = mgrid_grid_find(g, dim);
  return d < 0 ? mgrid_lua_unknown_dim(L, g, dim)
               : mgrid_lua_push_index(L, mgrid_grid_coord(g, rank, (size_t)d));
}

/* grid:coords(rank) -> { tp = 0, dp = 1 } | nil */
static int grid_coords(lua_State *L) {
  mgrid_grid *g = mgrid_lua_check_grid(L, 1);
  int64_t rank = mgrid_lua_check_integer(L, 2);
  lua_newtable(L);
  for (size_t i = 0; i < g->n; i++) {
    int64_t coord = mgrid_grid_coord(g, rank, i);
    if (coord < 0) return 0;
    mgrid_lua_set_integer(L, g->axis[i].name, coord);
  }
  return 1;
}

void mgrid_lua_check_coords(lua_State *L, int at, const mgrid_grid *g, int64_t absent,
                            int64_t *coords) {
  const char *known[MGRID_DIMS_MAX];

  mgrid_lua_check_table(L, at, "{ pp = 0 }");
  for (size_t i = 0; i < g->n; i++) known[i] = g->axis[i].name;
  mgrid_lua_check_keys(L, at, "dim", known, g->n, false);
  for (size_t i = 0; i < g->n; i++) {
    coords[i] = absent;
    if (lua_getfield(L, at, known[i]) != LUA_TNIL) {
      coords[i] = lua_tointeger(L, -1);
      if (!lua_isinteger(L, -1))
        mgrid_lua_raise_as(L, MGRID_BAD_VALUE, "the coordinate of dim '%s' is %s, not an integer",
                           known[i], mgrid_lua_kind(L, -1));
      const int64_t size = g->axis[i].size, given = coords[i];
      /* not for absent 0, where the coordinates are those of a rank */
      if (given < 0 && absent < 0 && given >= -size) coords[i] += size;
      if (coords[i] < 0 || coords[i] >= size)
        mgrid_lua_raise_as(L, MGRID_OUT_OF_RANGE,
                           "coordinate %" PRId64 " of dim '%s' is out of range (0 to %" PRId64 ")",
                           given, known[i], size - 1);
    }
    lua_pop(L, 1);
  }
}

/* grid:rank{ tp = 0, dp = 1 } -> integer. A dim that is not named has coordinate 0 */
static int grid_rank(lua_State *L) {
  mgrid_grid *g = mgrid_lua_check_grid(L, 1);
  int64_t coords[MGRID_DIMS_MAX];
  mgrid_lua_check_coords(L, 2, g, 0, coords);
  lua_pushinteger(L, mgrid_grid_rank(g, coords));
  return 1;
}

/* grid:dims() -> { {name, size}, ... }, fastest first */
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

static int grid_len(lua_State *L) {
  lua_pushinteger(L, mgrid_lua_check_grid(L, 1)->size);
  return 1;
}

static int grid_tostring(lua_State *L) {
  char text[2048];
  mgrid_text_ellipsis(text, sizeof text,
                      mgrid_grid_describe(mgrid_lua_check_grid(L, 1), text, sizeof text));
  lua_pushfstring(L, "Grid %s", text);
  return 1;
}

static int grid_eq(lua_State *L) {
  lua_pushboolean(L, mgrid_grid_equal(mgrid_lua_check_grid(L, 1), mgrid_lua_check_grid(L, 2)));
  return 1;
}

/* -------------------------------------------------------------- other grids */

/* Push the order of { NAME = size, NAME = fill } at i, as a list: the filled dim is the slower one.
** Raise for other sizes; the message shows an order. */
static void push_default_order(lua_State *L, int i) {
  const char *names[MGRID_DIMS_MAX];
  size_t n = 0, fills = 0, slower = 0;
  lua_Integer at = 0;

  mgrid_lua_keys(L, i);
  for (int keys = lua_gettop(L); n < MGRID_DIMS_MAX && mgrid_lua_step(L, i, keys, &at);
       lua_pop(L, 2)) {
    if (lua_type(L, -2) != LUA_TSTRING)
      mgrid_lua_raise_as(L, MGRID_BAD_VALUE, "each size needs a name as its key, not %s",
                         mgrid_lua_kind(L, -2));
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
                  "unflatten needs the order of the new dims, fastest first, as in (dim, \"%s\", "
                  "sizes); only two dims of which one is fill need no order",
                  n ? order : "shard-rep");
}

/* grid:unflatten(dim, order, sizes), or (dim, { NAME = size, NAME = fill }) */
static int grid_unflatten(lua_State *L) {
  mgrid_grid *g = mgrid_lua_check_grid(L, 1);
  const char *dim = luaL_checkstring(L, 2);
  mgrid_dim dims[MGRID_DIMS_MAX];
  if (lua_isnoneornil(L, 4) && lua_istable(L, 3)) {
    lua_settop(L, 3);
    push_default_order(L, 3);
    lua_insert(L, 3);
  }
  size_t n = push_dims(L, 3, 4, false, dims);
  mgrid_error e = MGRID_ERROR_INIT;
  mgrid_grid **box = mgrid_lua_new_grid(L);
  *box = mgrid_grid_unflatten(g, dim, n, dims, &e);
  return made_grid(L, box, &e);
}

/* grid:flatten(name, dim, ...) */
static int grid_flatten(lua_State *L) {
  mgrid_grid *g = mgrid_lua_check_grid(L, 1);
  const char *name = luaL_checkstring(L, 2), *dims[MGRID_DIMS_MAX];
  int n = lua_gettop(L) - 2;
  mgrid_lua_check_ndims(L, (size_t)n);
  for (int i = 0; i < n; i++) dims[i] = luaL_checkstring(L, i + 3);
  mgrid_error e = MGRID_ERROR_INIT;
  mgrid_grid **box = mgrid_lua_new_grid(L);
  *box = mgrid_grid_flatten(g, name, (size_t)n, dims, &e);
  return made_grid(L, box, &e);
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
  for (size_t i = 0; i < g->n; i++) { /* the names stay on the stack, which keeps them alive */
    int type = lua_getfield(L, 2, known[i]);
    if (type != LUA_TNIL && type != LUA_TSTRING)
      return mgrid_lua_raise_as(L, MGRID_BAD_VALUE, "the new name of dim '%s' is a %s, not a name",
                                known[i], lua_typename(L, type));
    names[i] = lua_tostring(L, -1);
  }
  mgrid_error e = MGRID_ERROR_INIT;
  mgrid_grid **box = mgrid_lua_new_grid(L);
  *box = mgrid_grid_rename(g, names, &e);
  return made_grid(L, box, &e);
}

/* grid:at{ pp = 0 }: a grid of the other dims, over the ranks at these coordinates */
static int grid_at(lua_State *L) {
  mgrid_grid *g = mgrid_lua_check_grid(L, 1);
  int64_t coords[MGRID_DIMS_MAX];
  mgrid_chosen c;
  mgrid_lua_check_coords(L, 2, g, -1, coords);
  mgrid_grid_free_dims(g, coords, &c);
  mgrid_lua_charge_listed(L, g, &c);
  mgrid_error e = MGRID_ERROR_INIT;
  mgrid_grid **box = mgrid_lua_new_grid(L);
  *box = mgrid_grid_at(g, coords, &e);
  return made_grid(L, box, &e);
}

/* grid:squeeze(dim, ...): remove these dims if they have size 1. grid:squeeze(): remove all dims of
** size 1 */
static int grid_squeeze(lua_State *L) {
  mgrid_grid *g = mgrid_lua_check_grid(L, 1);
  mgrid_chosen c;
  mgrid_dim dims[MGRID_DIMS_MAX];
  bool named[MGRID_DIMS_MAX] = { false };
  size_t n = 0;
  choose_dims(L, g, &c);
  for (size_t i = 0; i < c.nin; i++) named[c.in[i]] = true;
  for (size_t i = 0; i < g->n; i++)
    if (g->axis[i].size > 1 || !(named[i] || c.nin == 0)) dims[n++] = mgrid_grid_dim(g, i);
  mgrid_error e = MGRID_ERROR_INIT;
  mgrid_grid **box = mgrid_lua_new_grid(L);
  *box = mgrid_grid_like(g, n, dims, &e);
  return made_grid(L, box, &e);
}

static const luaL_Reg other_grids[] = {
  { "unflatten", grid_unflatten }, { "flatten", grid_flatten },
  { "rename", grid_rename },       { "at", grid_at },
  { "squeeze", grid_squeeze },     { NULL, NULL }
};

static const luaL_Reg grid_methods[] = {
  { "along", grid_along }, { "ordered", grid_ordered },     { "except", grid_except },
  { "coord", grid_coord }, { "cartesian", grid_cartesian }, { "coords", grid_coords },
  { "rank", grid_rank },   { "dims", grid_dims },           { NULL, NULL }
};
static int grid_index(lua_State *L);
static const luaL_Reg grid_meta[] = { { "__index", grid_index },
                                      { "__call", grid_along },
                                      { "__len", grid_len },
                                      { "__tostring", grid_tostring },
                                      { "__eq", grid_eq },
                                      { "__gc", mgrid_lua_free_box },
                                      { NULL, NULL } };
static const mgrid_lua_class grid_class = { MGRID_LUA_GRID, NULL, grid_methods, other_grids,
                                            grid_meta };

/* grid.tp is the size of dim tp. Methods come first */
static int grid_index(lua_State *L) {
  mgrid_grid *g = mgrid_lua_check_grid(L, 1);
  if (lua_type(L, 2) == LUA_TNUMBER) return mgrid_lua_no_list(L, MGRID_LUA_GRID);
  const char *key = luaL_checkstring(L, 2);
  if (mgrid_lua_class_get(L, &grid_class, 1, key)) return 1;
  int64_t d = mgrid_grid_find(g, key);
  if (d < 0) return mgrid_lua_unknown_dim(L, g, key);
  lua_pushinteger(L, g->axis[d].size);
  return 1;
}

void mgrid_lua_open_grid(lua_State *L) {
  mgrid_lua_open_class(L, &grid_class);
  lua_pushcfunction(L, new_grid);
  lua_setfield(L, -2, "grid");
  mgrid_lua_push_fill(L);
  lua_setfield(L, -2, "fill");
}
