/* SPDX-License-Identifier: MIT
**
** tensor_words.c - tensor { ... } and flat { ... } for Lua, and the fields and methods of Plan about
** tensors. A Tensor keeps its table until it is assigned to a topology, because the table may name
** grids of the topology. Then the table is read, axis by axis. Arrays are userdata that stay on the
** stack while a tensor is read, so an error leaks nothing.
*/
#include "tensors/lua/tensor_words.h"

#include <inttypes.h>
#include <string.h>

/* =================================================================== tensors */

#define AXIS_DIMS 16 /* dims that may cut one axis in a recipe */

/* Make a Tensor. User value 1 is its table. */
static int lua_tensor_new(lua_State *L) {
  static const char *const known[] = { "axes", "type", "over", "cut", "on" };
  luaL_argexpected(L, lua_istable(L, 1), 1, "table");
  mgrid_lua_check_keys(L, 1, "field", known, 5, false);
  lua_settop(L, 1);
  lua_newuserdatauv(L, 0, 1);
  luaL_setmetatable(L, MGRID_LUA_TENSOR);
  lua_pushvalue(L, 1);
  lua_setiuservalue(L, -2, 1);
  return 1;
}

/* -------------------------------------------------------------------- axes */

/* A tensor that is being read. A function of the recipe that returns bounds may change its table and
** the topology meanwhile, so names and the grid stay on the stack. */
typedef struct reading {
  lua_State *L;
  const char *what; /* "tensor 'x'", for messages */
  int table;
  const mgrid_grid *grid;
  mgrid_family *on;
  const char *type;
  size_t naxes;
  mgrid_tensor_axis axis[MGRID_AXES_MAX];
} reading;

/* Raise an error about the tensor. */
static void tensor_refuse(const reading *r, mgrid_status status, const char *fmt, ...)
    MGRID_PRINTF(3, 4);
static void tensor_refuse(const reading *r, mgrid_status status, const char *fmt, ...) {
  char text[512];
  va_list args;
  va_start(args, fmt);
  mgrid_vformat(text, sizeof text, fmt, args);
  va_end(args);
  mgrid_lua_raise_as(r->L, status, "%s: %s", r->what, text);
}

/* Return the length of the list on the top. Charge for the copies and the text that the topology
** makes of it. */
static size_t tensor_length(const reading *r, const char *axis, const char *what) {
  size_t n = lua_istable(r->L, -1) ? lua_rawlen(r->L, -1) : 0;
  if (n > (size_t)MGRID_WORLD_MAX) /* a list with holes may have any length */
    tensor_refuse(r, MGRID_OUT_OF_RANGE, "axis '%s': '%s' has more than %" PRId64 " elements", axis,
                  what, MGRID_WORLD_MAX);
  mgrid_lua_charge(r->L, 16 * (int64_t)n);
  mgrid_lua_reserve(r->L, (int64_t)n, 48);
  return n;
}

/* Replace the list on the top by an array of its integers. */
static int64_t *read_integers(const reading *r, const char *axis, const char *what, size_t *n) {
  lua_State *L = r->L;
  *n = tensor_length(r, axis, what);
  if (*n == 0)
    tensor_refuse(r, MGRID_BAD_VALUE, "axis '%s': '%s' is %s, not a list of integers", axis, what,
                  lua_istable(L, -1) ? "an empty table"
                                     : lua_pushfstring(L, "a %s", luaL_typename(L, -1)));
  int64_t *list = lua_newuserdatauv(L, *n * sizeof *list, 0);
  for (size_t i = 0; i < *n; i++) {
    if (lua_rawgeti(L, -2, (lua_Integer)i + 1) != LUA_TNUMBER || !lua_isinteger(L, -1))
      tensor_refuse(r, MGRID_BAD_VALUE, "axis '%s': element %zu of '%s' is a %s, not an integer",
                    axis, i + 1, what, luaL_typename(L, -1));
    list[i] = lua_tointeger(L, -1);
    lua_pop(L, 1);
  }
  lua_remove(L, -2);
  return list;
}

static int64_t integer_field(const reading *r, const char *axis, const char *field) {
  lua_State *L = r->L;
  if (!lua_isinteger(L, -1) || lua_tointeger(L, -1) < 1)
    tensor_refuse(r, MGRID_BAD_VALUE, "axis '%s': '%s' is %s, not an integer of 1 or more", axis,
                  field,
                  lua_isinteger(L, -1) ? lua_pushfstring(L, "%I", (LUAI_UACINT)lua_tointeger(L, -1))
                                       : lua_pushfstring(L, "a %s", luaL_typename(L, -1)));
  return lua_tointeger(L, -1);
}

/* Return how many pieces the dims of an axis make. With `on`, only the coordinates that hold parts
** are counted. */
MGRID_APART static int64_t count_pieces(const reading *r, const mgrid_tensor_axis *a) {
  mgrid_error e = MGRID_ERROR_INIT;
  int64_t n = 1;
  mgrid_tensor_axis one = MGRID_TENSOR_AXIS_INIT;
  one.name = a->name;
  one.length = a->length;
  one.ndims = a->ndims;
  one.dims = a->dims;
  mgrid_tensor *t = mgrid_tensor_new(r->grid, r->type, 1, &one, r->on, &e);
  if (!t) tensor_refuse(r, e.status, "%s", e.message);
  n = t->axis[0].pieces;
  mgrid_tensor_free(t);
  return n;
}

/* Replace the value on the top by an array of bounds. The value is a list of bounds or sizes, or a
** function that gets the number of pieces and the length of the axis, and returns such a list. */
static void read_bounds(const reading *r, mgrid_tensor_axis *a, const char *field) {
  lua_State *L = r->L;
  bool sizes = strcmp(field, "sizes") == 0;

  if (lua_isfunction(L, -1)) {
    int64_t pieces = count_pieces(r, a);
    lua_pushinteger(L, pieces);
    lua_pushinteger(L, a->length);
    lua_call(L, 2, 1);
    sizes = lua_istable(L, -1) && (int64_t)lua_rawlen(L, -1) == pieces;
  }
  size_t n;
  int64_t *list = read_integers(r, a->name, field, &n);
  a->cutting = MGRID_CUT_BOUNDS;
  a->bounds = list;
  a->nbounds = n;
  if (!sizes) return;
  int64_t *bounds = lua_newuserdatauv(L, (n + 1) * sizeof *bounds, 0);
  bounds[0] = 0;
  for (size_t i = 0; i < n; i++) {
    if (list[i] < 0)
      tensor_refuse(r, MGRID_OUT_OF_RANGE,
                    "axis '%s': piece %zu has %" PRId64 " elements; pieces have 0 or more", a->name,
                    i, list[i]);
    if (__builtin_add_overflow(bounds[i], list[i], &bounds[i + 1]))
      tensor_refuse(r, MGRID_OVERFLOW, "axis '%s': its sizes overflow 64 bits", a->name);
  }
  lua_remove(L, -2);
  a->bounds = bounds;
  a->nbounds = n + 1;
}

/* Read the dims at `cut`: a list, or one name. Their array stays on the stack. */
static void tensor_read_dims(const reading *r, mgrid_tensor_axis *a, int cut) {
  lua_State *L = r->L;
  bool one = lua_type(L, cut) == LUA_TSTRING;
  size_t n = one ? 1 : lua_istable(L, cut) ? lua_rawlen(L, cut) : 0;

  if (n == 0 || n > AXIS_DIMS)
    tensor_refuse(
        r, MGRID_BAD_VALUE,
        "axis '%s' is cut by %s; a dim cuts it, \"tp\", or a list of them, outermost first",
        a->name,
        n                     ? "too many dims"
        : lua_istable(L, cut) ? "no dim"
                              : lua_pushfstring(L, "a %s", luaL_typename(L, cut)));
  const char **dims = lua_newuserdatauv(L, n * sizeof *dims, 0);
  for (size_t i = 0; i < n; i++) {
    if (one)
      lua_pushvalue(L, cut);
    else
      lua_rawgeti(L, cut, (lua_Integer)i + 1);
    if (lua_type(L, -1) != LUA_TSTRING)
      tensor_refuse(r, MGRID_BAD_VALUE,
                    "axis '%s': element %zu of its cut is a %s, not the name of a dim", a->name,
                    i + 1, luaL_typename(L, -1));
    dims[i] = lua_tostring(L, -1);
  }
  a->ndims = n;
  a->dims = dims;
}

/* Read the cut of an axis, which is on the top: "tp", or { "dp", "tp", HOW }. Arrays stay above it
** on the stack. */
static void read_cut(const reading *r, mgrid_tensor_axis *a) {
  enum { SIZES, CYCLIC, PARTS, BOUNDS, UNIT, OWNERS, COPIES, FIELDS };
  static const char *const known[FIELDS] = { "sizes", "cyclic", "parts", "bounds",
                                             "unit",  "owners", "copies" };
  lua_State *L = r->L;
  int cut = lua_gettop(L);
  const char *how = NULL;

  mgrid_lua_stack(L, AXIS_DIMS + 16);
  tensor_read_dims(r, a, cut);
  if (!lua_istable(L, cut)) return;
  mgrid_lua_check_keys(L, cut, "way to cut", known, FIELDS, true);
  for (int i = 0; i < FIELDS; i++) {
    if (lua_getfield(L, cut, known[i]) == LUA_TNIL) {
      lua_pop(L, 1);
      continue;
    }
    if (i == COPIES) {
      if (!lua_isboolean(L, -1))
        tensor_refuse(r, MGRID_BAD_VALUE, "axis '%s': 'copies' is a %s, not true or false", a->name,
                      luaL_typename(L, -1));
      a->copies = lua_toboolean(L, -1);
      lua_pop(L, 1);
      continue;
    }
    if (i != PARTS && i != UNIT) {
      if (how)
        tensor_refuse(r, MGRID_REFUSED, "axis '%s' is cut by '%s' and by '%s'", a->name, how,
                      known[i]);
      how = known[i];
    }
    if (i == SIZES && lua_type(L, -1) == LUA_TSTRING) {
      if (strcmp(lua_tostring(L, -1), "ceil") != 0)
        tensor_refuse(r, MGRID_BAD_VALUE,
                      "axis '%s': sizes are '%.40s'; they are \"ceil\" or a list", a->name,
                      lua_tostring(L, -1));
      a->cutting = MGRID_CUT_CEIL;
      lua_pop(L, 1);
    } else if (i == SIZES || i == BOUNDS) {
      read_bounds(r, a, known[i]);
    } else if (i == PARTS) {
      a->parts = read_integers(r, a->name, "parts", &a->nparts);
    } else if (i == OWNERS) {
      a->owners = read_integers(r, a->name, "owners", &a->nowners);
      a->cutting = MGRID_CUT_OWNERS;
    } else {
      int64_t n = integer_field(r, a->name, known[i]);
      if (i == CYCLIC) a->cutting = MGRID_CUT_CYCLIC;
      *(i == CYCLIC ? &a->block : &a->unit) = n;
      lua_pop(L, 1);
    }
  }
}

/* Read axes = { { "layer", 32 }, ... }. */
MGRID_APART static void read_axes(reading *r) {
  lua_State *L = r->L;

  if (lua_getfield(L, r->table, "axes") != LUA_TTABLE || (r->naxes = lua_rawlen(L, -1)) == 0)
    tensor_refuse(r, MGRID_BAD_VALUE,
                  "its axes are %s; they are a list, { { \"layer\", 32 }, ... }, slowest first",
                  lua_isnil(L, -1)     ? "missing"
                  : lua_istable(L, -1) ? "an empty table"
                                       : lua_pushfstring(L, "a %s", luaL_typename(L, -1)));
  if (r->naxes > MGRID_AXES_MAX)
    tensor_refuse(r, MGRID_OUT_OF_RANGE, "a tensor has 1 to %d axes, not %zu", MGRID_AXES_MAX,
                  r->naxes);
  for (int i = 0, axes = lua_gettop(L); i < (int)r->naxes; i++) {
    bool two = lua_rawgeti(L, axes, (lua_Integer)i + 1) == LUA_TTABLE && lua_rawlen(L, -1) == 2,
         pair = false;
    if (two) {
      lua_rawgeti(L, -1, 1);
      lua_rawgeti(L, -2, 2);
      pair = lua_type(L, -2) == LUA_TSTRING && lua_isinteger(L, -1);
    }
    if (two && !pair && lua_type(L, -2) == LUA_TSTRING) {
      const char *name = lua_tostring(L, -2),
                 *kind = lua_type(L, -1) == LUA_TNUMBER ? "a float" : mgrid_lua_kind(L, -1);
      tensor_refuse(r, MGRID_BAD_VALUE, "the length of axis '%s' is %s, not an integer", name,
                    kind);
    }
    if (!pair)
      tensor_refuse(r, MGRID_BAD_VALUE, "axis %d is not { name, length }, as { \"row\", 4096 }",
                    i + 1);
    r->axis[i] = (mgrid_tensor_axis)MGRID_TENSOR_AXIS_INIT;
    r->axis[i].name = lua_tostring(L, -2);
    r->axis[i].length = lua_tointeger(L, -1);
    lua_pop(L, 1);
  }
}

static void read_cuts(reading *r) {
  lua_State *L = r->L;
  const char *known[MGRID_AXES_MAX];
  if (lua_getfield(L, r->table, "cut") == LUA_TNIL) return;
  int cut = lua_gettop(L);
  if (!lua_istable(L, cut))
    tensor_refuse(r, MGRID_BAD_VALUE,
                  "its cut is a %s; it names the dims by axis, { layer = \"pp\" }",
                  luaL_typename(L, cut));
  for (size_t i = 0; i < r->naxes; i++) known[i] = r->axis[i].name;
  mgrid_lua_check_keys(L, cut, "axis", known, r->naxes, false);
  for (size_t i = 0; i < r->naxes; i++) {
    mgrid_lua_stack(L, 4);
    if (lua_getfield(L, cut, r->axis[i].name) != LUA_TNIL) read_cut(r, &r->axis[i]);
  }
}

/* ------------------------------------------------------------ other fields */

MGRID_APART static void tensor_read_grid(reading *r, const mgrid_content *c) {
  lua_State *L = r->L;
  const char *known[64];
  size_t n = c->ngrids < 64 ? c->ngrids : 64;
  mgrid_grid **grid = NULL;
  int type = lua_getfield(L, r->table, "over");

  if (type == LUA_TSTRING) {
    int at = mgrid_content_grid(c, lua_tostring(L, -1));
    for (size_t i = 0; i < n; i++) known[i] = c->grid[i].name;
    if (at < 0 && n == 0)
      tensor_refuse(r, MGRID_REFUSED,
                    "there is no grid '%.40s' in the topology yet: assign it before the tensor",
                    lua_tostring(L, -1));
    if (at < 0) mgrid_lua_unknown(L, "grid", lua_tostring(L, -1), known, n);
    r->grid = c->grid[at].grid;
  } else if (type == LUA_TNIL) {
    if (c->ngrids != 1)
      tensor_refuse(r, MGRID_REFUSED, "the topology has %s say `over`, a grid or the name of one",
                    c->ngrids ? "several grids:" : "no grid yet: write t.grid = g before, or");
    r->grid = c->grid[0].grid;
  } else if ((grid = mgrid_lua_test_box(L, -1, MGRID_LUA_GRID))) {
    r->grid = *grid;
  } else {
    tensor_refuse(r, MGRID_BAD_VALUE, "`over` is a %s, not a grid or the name of one",
                  luaL_typename(L, -1));
  }
  mgrid_grid **box = mgrid_lua_new_grid(L);
  *box = mgrid_grid_ref(r->grid);
}

/* Charge for the coordinates of each member of `on`. */
static void charge_members(const reading *r, const mgrid_family *f) {
  int64_t coords = 0;
  for (size_t d = 0; d < r->grid->n; d++) coords += r->grid->axis[d].size;
  mgrid_lua_charge(r->L, f->total < INT64_MAX / 64
                             ? 8 * (f->total + coords) * (f->nodes + (int64_t)r->grid->n)
                             : f->total);
  mgrid_lua_reserve(r->L, coords, 8);
}

static void read_on(reading *r) {
  lua_State *L = r->L;
  if (lua_getfield(L, r->table, "on") == LUA_TNIL) return;
  mgrid_lua_family *f = mgrid_lua_test_box(L, -1, MGRID_LUA_FAMILY);
  if (!f) tensor_refuse(r, MGRID_BAD_VALUE, "`on` is a %s, not a family", luaL_typename(L, -1));
  charge_members(r, f->f);
  r->on = f->f;
}

static void read_type(reading *r) {
  lua_State *L = r->L;
  if (lua_getfield(L, r->table, "type") != LUA_TSTRING)
    tensor_refuse(r, MGRID_BAD_VALUE, "its type is %s; it is a text, as \"bf16\"",
                  lua_isnil(L, -1) ? "missing" : lua_pushfstring(L, "a %s", luaL_typename(L, -1)));
  r->type = lua_tostring(L, -1);
}

MGRID_APART static mgrid_tensor *tensor_make(const reading *r) {
  mgrid_error e = MGRID_ERROR_INIT;
  mgrid_tensor *made = mgrid_tensor_new(r->grid, r->type, r->naxes, r->axis, r->on, &e);
  if (!made) tensor_refuse(r, e.status, "%s", e.message);
  return made;
}

/* Read a tensor's table with the grids of a topology. `what` is for messages. */
static mgrid_tensor *read_tensor(lua_State *L, const mgrid_content *c, const char *what,
                                 int table) {
  int top = lua_gettop(L);
  mgrid_lua_stack(L, 32);
  /* not on the C stack: a function of the recipe may read another tensor, and so on */
  reading *r = lua_newuserdatauv(L, sizeof *r, 0);
  *r = (reading){ .L = L, .what = what, .table = table };
  tensor_read_grid(r, c);
  read_type(r);
  read_on(r);
  read_axes(r);
  read_cuts(r);
  mgrid_tensor *made = tensor_make(r);
  lua_settop(L, top);
  return made;
}

/* ===================================================================== flats */

/* flat { a, b, over = "dp" } returns as many tensors as it gets. These tensors share a Flat, which
** keeps the tables of its members. When one of the tensors is assigned to a topology, all tables
** are read. */

/* User values of a Flat: a table with the members' tables, the list of dims `over`, and `pad`; the
** topology for which it was read. User values of a Tensor: its table; its Flat; its index in the
** Flat. */
typedef struct flat_box {
  size_t n;
  bool read;
  mgrid_tensor *member[]; /* [n], once the Flat is read */
} flat_box;

static void tensor_drop(flat_box *b) {
  for (size_t i = 0; i < b->n; i++) mgrid_tensor_free(b->member[i]);
  memset(b->member, 0, b->n * sizeof *b->member);
  b->read = false;
}

static void tensor_release(void *box) { tensor_drop(box); }

static flat_box *push_flat(lua_State *L, size_t n, int values) {
  flat_box *box = mgrid_lua_new_box(L, sizeof *box + n * sizeof *box->member, values,
                                    MGRID_LUA_FLAT, tensor_release);
  box->n = n;
  return box;
}

/* ------------------------------------------------------------------ flat {} */

/* Push the table of element i of the argument, which must be a Tensor. */
static void tensor_push_member(lua_State *L, lua_Integer i) {
  lua_rawgeti(L, 1, i);
  if (!luaL_testudata(L, -1, MGRID_LUA_TENSOR))
    mgrid_lua_raise_as(L, MGRID_BAD_VALUE, "flat: element %" PRId64 " is %s, not a tensor",
                       (int64_t)i, mgrid_lua_kind(L, -1));
  if (lua_getiuservalue(L, -1, 2) == LUA_TUSERDATA)
    mgrid_lua_raise(L, "flat: tensor %" PRId64 " is flat already", (int64_t)i);
  lua_pop(L, 1);
  lua_getiuservalue(L, -1, 1);
  lua_remove(L, -2);
}

/* Put the argument's `over` into the table on the top, as a list of dims. */
static void set_dims(lua_State *L) {
  lua_newtable(L);
  int type = lua_getfield(L, 1, "over"), list = lua_gettop(L) - 1;

  if (type == LUA_TSTRING) {
    lua_rawseti(L, list, 1);
  } else {
    lua_Integer n = type == LUA_TTABLE ? (lua_Integer)lua_rawlen(L, -1) : 0;
    if (n == 0 || n > MGRID_DIMS_MAX)
      mgrid_lua_raise_as(L, MGRID_BAD_VALUE,
                         "flat: `over` is %s; it is the dim that cuts it, \"dp\", or a list of "
                         "them, outermost first",
                         type == LUA_TNIL     ? "missing"
                         : type == LUA_TTABLE ? n ? "too long" : "an empty table"
                                              : mgrid_lua_kind(L, -1));
    for (lua_Integer i = 1; i <= n; i++) {
      if (lua_rawgeti(L, -1, i) != LUA_TSTRING)
        mgrid_lua_raise_as(L, MGRID_BAD_VALUE,
                           "flat: element %" PRId64 " of `over` is %s, not the name of a dim",
                           (int64_t)i, mgrid_lua_kind(L, -1));
      lua_rawseti(L, list, i);
    }
    lua_pop(L, 1);
  }

  lua_setfield(L, -2, "over");
}

static void set_pad(lua_State *L) {
  bool none = lua_getfield(L, 1, "pad") == LUA_TNIL;
  if (!none && (!lua_isinteger(L, -1) || lua_tointeger(L, -1) < 1))
    mgrid_lua_raise_as(L, MGRID_BAD_VALUE, "flat: `pad` is %s, not an integer of 1 or more",
                       lua_isinteger(L, -1) ? luaL_tolstring(L, -1, NULL) : mgrid_lua_kind(L, -1));
  lua_pushinteger(L, none ? 1 : lua_tointeger(L, -1));
  lua_setfield(L, -3, "pad");
  lua_pop(L, 1);
}

static int new_flat_tensors(lua_State *L) {
  static const char *const known[] = { "over", "pad" };

  luaL_argexpected(L, lua_istable(L, 1), 1, "table");
  mgrid_lua_check_keys(L, 1, "field", known, 2, true);
  lua_settop(L, 1);
  size_t n = mgrid_lua_charge_list(L, 1, 16);
  if (n == 0) mgrid_lua_raise(L, "flat has no tensors: flat { a, b, over = \"dp\" }");
  if (n > INT32_MAX / 2) mgrid_lua_raise_as(L, MGRID_OUT_OF_RANGE, "flat has too many tensors");
  mgrid_lua_reserve(L, (int64_t)n, 128);
  mgrid_lua_stack(L, (int)n + 8);
  lua_createtable(L, (int)n, 2);
  for (lua_Integer i = 1; i <= (lua_Integer)n; i++) {
    tensor_push_member(L, i);
    lua_rawseti(L, 2, i);
  }
  set_dims(L);
  set_pad(L);
  push_flat(L, n, 2);
  lua_pushvalue(L, 2);
  lua_setiuservalue(L, 3, 1);
  for (lua_Integer i = 1; i <= (lua_Integer)n; i++) {
    lua_newuserdatauv(L, 0, 3);
    luaL_setmetatable(L, MGRID_LUA_TENSOR);
    lua_rawgeti(L, 2, i);
    lua_setiuservalue(L, -2, 1);
    lua_pushvalue(L, 3);
    lua_setiuservalue(L, -2, 2);
    lua_pushinteger(L, i);
    lua_setiuservalue(L, -2, 3);
  }
  return (int)n;
}

/* ------------------------------------------------------------------- reading */

/* Move the members of `from` to `box`, flattened by the `over` and `pad` of the table at `table`. */
MGRID_APART static void lay_out(lua_State *L, flat_box *from, flat_box *box, const char *name,
                                int table) {
  const char *dims[MGRID_DIMS_MAX];
  mgrid_error e = MGRID_ERROR_INIT;
  mgrid_lua_charge(L, 16 * (int64_t)box->n * ((int64_t)from->member[0]->grid->n + 4));
  lua_getfield(L, table, "over");
  size_t ndims = lua_rawlen(L, -1);
  for (size_t i = 0; i < ndims; i++) {
    lua_rawgeti(L, -1, (lua_Integer)i + 1);
    dims[i] = lua_tostring(L, -1); /* the list keeps the string */
    lua_pop(L, 1);
  }
  lua_getfield(L, table, "pad");
  mgrid_tensor **made = lua_newuserdatauv(L, box->n * sizeof *made, 0);
  mgrid_status s = mgrid_tensor_flatten(box->n, (const mgrid_tensor *const *)from->member, ndims,
                                        dims, lua_tointeger(L, -2), made, &e);
  if (s) mgrid_lua_raise_as(L, s, "tensor '%s': %s", name, e.message);
  tensor_drop(from);
  tensor_drop(box);
  memcpy(box->member, made, box->n * sizeof *made);
  box->read = true;
}

/* Read all members, whose tables are in the table at `table`, with the grids of a topology. A
** function of the recipe that returns bounds may read the same Flat meanwhile, so the members go
** into a Flat of their own first. */
static void read_flat(lua_State *L, flat_box *box, const mgrid_topology *t, const char *name,
                      int table) {
  size_t bytes = 0;
  flat_box *read = push_flat(L, box->n, 0);
  for (size_t i = 0; i < box->n; i++) {
    lua_rawgeti(L, table, (lua_Integer)i + 1);
    const char *what =
        lua_pushfstring(L, "tensor '%s': tensor %I of its flat", name, (LUAI_UACINT)i + 1);
    read->member[i] = read_tensor(L, &t->content, what, lua_gettop(L) - 1);
    lua_pop(L, 2);
    bytes += 2 * mgrid_tensor_held(read->member[i]) + sizeof(mgrid_tensor *);
    mgrid_lua_weigh(L, read, sizeof *read + bytes);
  }
  lay_out(L, read, box, name, table);
  mgrid_lua_weigh(L, read, sizeof *read);
  mgrid_lua_weigh(L, box, sizeof *box + bytes);
}

/* Return a Tensor as a member of its flat, with one more owner; NULL if it belongs to no flat. */
static mgrid_tensor *flat_member(lua_State *L, int topology, const char *name, int tensor) {
  int top = lua_gettop(L);
  mgrid_lua_stack(L, 8);
  if (lua_getiuservalue(L, tensor, 2) != LUA_TUSERDATA) {
    lua_settop(L, top);
    return NULL;
  }
  flat_box *box = mgrid_lua_check_box(L, top + 1, MGRID_LUA_FLAT);
  lua_getiuservalue(L, top + 1, 2);
  if (!box->read || !lua_rawequal(L, -1, topology)) {
    lua_getiuservalue(L, top + 1, 1);
    read_flat(L, box, mgrid_lua_check_topology(L, topology), name, lua_gettop(L));
    lua_pushvalue(L, topology);
    lua_setiuservalue(L, top + 1, 2);
  }
  lua_getiuservalue(L, tensor, 3);
  mgrid_tensor *t = mgrid_tensor_ref(box->member[lua_tointeger(L, -1) - 1]);
  lua_settop(L, top);
  return t;
}

/* ===================================================== topologies and plans */

MGRID_APART static void tensor_put(lua_State *L, mgrid_topology *t, const char *name,
                                   mgrid_tensor *made) {
  mgrid_error e = MGRID_ERROR_INIT;
  mgrid_status s = mgrid_topology_put_item(t, name, &mgrid_tensor_kind, made, &e);
  mgrid_tensor_free(made);
  if (s) mgrid_lua_raise_error(L, &e);
}

void mgrid_lua_add_tensor(lua_State *L, int topology, const char *name, int tensor) {
  mgrid_topology *t = mgrid_lua_check_topology(L, topology);
  int top = lua_gettop(L);
  mgrid_tensor *made = flat_member(L, topology, name, tensor);
  if (!made) {
    lua_getiuservalue(L, tensor, 1);
    made = read_tensor(L, &t->content, lua_pushfstring(L, "tensor '%s'", name), top + 1);
  }
  tensor_put(L, t, name, made);
  lua_settop(L, top);
}

/* ---------------------------------------------------------------- questions */

/* Return plan.tensors: the names, in the order of the topology. */
int mgrid_lua_plan_tensors(lua_State *L) {
  const mgrid_plan *p = mgrid_lua_check_plan(L, 1);
  const char *name;
  lua_createtable(L, (int)mgrid_plan_ntensors(p), 0);
  for (size_t i = 0; (name = mgrid_plan_tensor_name(p, i)); i++) {
    lua_pushstring(L, name);
    lua_rawseti(L, -2, (lua_Integer)i + 1);
  }
  return 1;
}

/* Push { axes, bytes, largest, copies, without, rule } of the whole tensor. */
static int push_whole(lua_State *L, const mgrid_plan *p, const char *name) {
  mgrid_error e = MGRID_ERROR_INIT;
  const mgrid_tensor *t = mgrid_plan_require_tensor(p, name, &e);
  char rule[1024];
  if (!t) return mgrid_lua_raise_error(L, &e);
  mgrid_lua_charge(L, p->content.world);
  lua_createtable(L, 0, 6);
  MGRID_LUA_LIST(L, t->naxes, lua_pushstring(L, mgrid_tensor_axis_name(t, i)));
  lua_setfield(L, -2, "axes");
  mgrid_lua_set_integer(L, "bytes", t->bytes);
  mgrid_lua_set_integer(L, "largest", mgrid_tensor_largest(t));
  mgrid_lua_set_integer(L, "copies", t->copies);
  mgrid_lua_set_integer(L, "without",
                        p->content.world - mgrid_tensor_holders(t) + mgrid_tensor_hollow(t));
  mgrid_text_ellipsis(rule, sizeof rule, mgrid_tensor_describe(t, rule, sizeof rule));
  mgrid_lua_set_string(L, "rule", rule);
  return 1;
}

/* plan:tensor(name, rank [, most]) -> { shape, elements, bytes, copy, copies, runs, nruns; of a
** flat first, offset, slice } | nil if the rank has no part. `most`: list at most so many runs of
** an axis; only then nruns has how many there are. Without a rank, describe the whole tensor */
int mgrid_lua_plan_tensor(lua_State *L) {
  mgrid_plan *p = mgrid_lua_check_plan(L, 1);
  const char *name = luaL_checkstring(L, 2);

  if (lua_isnoneornil(L, 3)) return push_whole(L, p, name);
  int64_t rank = mgrid_lua_check_integer(L, 3), most = mgrid_lua_opt_integer(L, 4, INT64_MAX);
  mgrid_tensor_part part = MGRID_TENSOR_PART_INIT;
  mgrid_error e = MGRID_ERROR_INIT;
  if (mgrid_tensor_local(p, name, rank, &part, &e)) return mgrid_lua_raise_error(L, &e);
  lua_settop(L, 3);
  if (!part.held) return lua_pushnil(L), 1;
  const mgrid_tensor *t = mgrid_plan_tensor(p, name);
  mgrid_coords at;
  mgrid_tensor_coords(t, rank, &at);
  lua_createtable(L, 0, 6);
  mgrid_lua_set_integer(L, "elements", part.elements);
  mgrid_lua_set_integer(L, "bytes", part.bytes);
  mgrid_lua_set_integer(L, "copy", part.copy);
  mgrid_lua_set_integer(L, "copies", t->copies);
  MGRID_LUA_LIST(L, t->naxes, lua_pushinteger(L, part.shape[i]));
  lua_setfield(L, -2, "shape");
  if (t->flat) {
    mgrid_lua_set_integer(L, "first", part.first);
    mgrid_lua_set_integer(L, "offset", part.offset);
    mgrid_lua_set_integer(L, "slice", part.slice);
  }
  lua_createtable(L, (int)t->naxes, 0);
  lua_createtable(L, (int)t->naxes, 0);
  for (size_t i = 0; i < t->naxes; i++) {
    mgrid_run run;
    lua_Integer n = 0;
    lua_newtable(L);
    for (mgrid_walk w = mgrid_walk_begin(&t->axis[i], at.piece[i]); mgrid_walk_next(&w, &run);) {
      mgrid_lua_charge(L, 4);
      if (n++ >= most) continue;
      lua_createtable(L, 2, 0);
      lua_pushinteger(L, run.start);
      lua_rawseti(L, -2, 1);
      lua_pushinteger(L, run.length);
      lua_rawseti(L, -2, 2);
      lua_rawseti(L, -2, n);
    }
    lua_rawseti(L, -3, (lua_Integer)i + 1);
    lua_pushinteger(L, n);
    lua_rawseti(L, -2, (lua_Integer)i + 1);
  }
  if (most == INT64_MAX) lua_pushnil(L), lua_replace(L, -2);
  lua_setfield(L, -3, "nruns");
  lua_setfield(L, -2, "runs");
  return 1;
}

/* The text has nothing that depends on a topology. */
static int tensor_tostring(lua_State *L) {
  luaL_checkudata(L, 1, MGRID_LUA_TENSOR);
  lua_getiuservalue(L, 1, 1);
  bool list = lua_getfield(L, -1, "axes") == LUA_TTABLE;
  lua_pushfstring(L, "Tensor of %d axes", list ? (int)lua_rawlen(L, -1) : 0);
  return 1;
}

static const luaL_Reg tensor_meta[] = { { "__tostring", tensor_tostring }, { NULL, NULL } };
static const mgrid_lua_class tensor_class = { MGRID_LUA_TENSOR, NULL, NULL, NULL, tensor_meta };
static const luaL_Reg flat_meta[] = { { "__gc", mgrid_lua_free_box }, { NULL, NULL } };
static const mgrid_lua_class flat_class = { MGRID_LUA_FLAT, NULL, NULL, NULL, flat_meta };

void mgrid_lua_open_tensor(lua_State *L) {
  static const luaL_Reg functions[] = { { "tensor", lua_tensor_new },
                                        { "flat", new_flat_tensors },
                                        { "relabel", mgrid_lua_relabel },
                                        { NULL, NULL } };
  mgrid_lua_open_class(L, &tensor_class);
  mgrid_lua_open_class(L, &flat_class);
  luaL_setfuncs(L, functions, 0);
}
