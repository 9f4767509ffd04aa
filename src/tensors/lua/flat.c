/* SPDX-License-Identifier: MIT
**
** flat.c - flat { a, b, over = "dp" } for Lua: returns as many tensors as it is given. These share a Flat, which keeps
** the tables of its members until one of them is assigned to a topology. Then it reads all of them, once.
*/

#include "tensors/lua/words.h"

#include <inttypes.h>
#include <string.h>

/* User values of a Flat: a table of members' tables with `over`, a list of dims, and `pad`; the topology that it was
** read for. User values of a Tensor: its table; its Flat; its index there. */
typedef struct flat_box {
  size_t        n;
  bool          read;
  mgrid_tensor *member[]; /* [n], after reading */
} flat_box;

static void drop(flat_box *b) {
  for (size_t i = 0; i < b->n; i++) mgrid_tensor_free(b->member[i]);
  memset(b->member, 0, b->n * sizeof *b->member);
  b->read = false;
}

static void release(void *box) { drop(box); }

static flat_box *push_flat(lua_State *L, size_t n, int values) {
  flat_box *box = mgrid_lua_new_box(L, sizeof *box + n * sizeof *box->member, values, MGRID_LUA_FLAT, release);
  box->n = n;
  return box;
}

/* ------------------------------------------------------------------ flat {} */

/* Push the table of member i of the argument. */
static void push_member(lua_State *L, lua_Integer i) {
  lua_rawgeti(L, 1, i);
  if (!luaL_testudata(L, -1, MGRID_LUA_TENSOR))
    mgrid_lua_raise_as(L, MGRID_BAD_VALUE, "flat: element %" PRId64 " is %s, not a tensor", (int64_t)i,
                       mgrid_lua_kind(L, -1));
  if (lua_getiuservalue(L, -1, 2) == LUA_TUSERDATA)
    mgrid_lua_raise(L, "flat: tensor %" PRId64 " is flat already", (int64_t)i);
  lua_pop(L, 1);
  lua_getiuservalue(L, -1, 1);
  lua_remove(L, -2);
}

/* Put the dims that the argument names into field `over` of the table on the top. */
static void set_dims(lua_State *L) {
  lua_newtable(L);
  int type = lua_getfield(L, 1, "over"), list = lua_gettop(L) - 1;
  if (type == LUA_TSTRING) {
    lua_rawseti(L, list, 1);
  } else {
    lua_Integer n = type == LUA_TTABLE ? (lua_Integer)lua_rawlen(L, -1) : 0;
    if (n == 0 || n > MGRID_DIMS_MAX)
      mgrid_lua_raise_as(L, MGRID_BAD_VALUE,
                         "flat: `over` is %s; it is the dim that cuts it, \"dp\", or a list of them, outermost first",
                         type == LUA_TNIL     ? "missing"
                         : type == LUA_TTABLE ? n ? "too long" : "an empty table"
                                              : mgrid_lua_kind(L, -1));
    for (lua_Integer i = 1; i <= n; i++) {
      if (lua_rawgeti(L, -1, i) != LUA_TSTRING)
        mgrid_lua_raise_as(L, MGRID_BAD_VALUE, "flat: element %" PRId64 " of `over` is %s, not the name of a dim",
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

int mgrid_lua_flat(lua_State *L) {
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
    push_member(L, i);
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

/* Concatenate the members of `from`, as the table at `table` says. */
MGRID_APART static void lay_out(lua_State *L, flat_box *from, flat_box *box, const char *name, int table) {
  const char *dims[MGRID_DIMS_MAX];
  mgrid_error e = MGRID_ERROR_INIT;
  mgrid_lua_charge(L, 16 * (int64_t)box->n * ((int64_t)from->member[0]->grid->n + 4));
  lua_getfield(L, table, "over");
  size_t ndims = lua_rawlen(L, -1);
  for (size_t i = 0; i < ndims; i++) {
    lua_rawgeti(L, -1, (lua_Integer)i + 1);
    dims[i] = lua_tostring(L, -1); /* the list keeps it */
    lua_pop(L, 1);
  }
  lua_getfield(L, table, "pad");
  mgrid_tensor **made = lua_newuserdatauv(L, box->n * sizeof *made, 0);
  mgrid_status   s = mgrid_tensor_flatten(box->n, (const mgrid_tensor *const *)from->member, ndims, dims,
                                          lua_tointeger(L, -2), made, &e);
  if (s) mgrid_lua_raise_as(L, s, "tensor '%s': %s", name, e.message);
  drop(from);
  drop(box);
  memcpy(box->member, made, box->n * sizeof *made);
  box->read = true;
}

/* Read all members, whose tables are in the one at `table`, with the grids of a topology. Meanwhile a function of the
** recipe that gives bounds may cause the same. */
static void read_flat(lua_State *L, flat_box *box, const mgrid_topology *t, const char *name, int table) {
  size_t    bytes = 0;
  flat_box *read = push_flat(L, box->n, 0);
  for (size_t i = 0; i < box->n; i++) {
    lua_rawgeti(L, table, (lua_Integer)i + 1);
    const char *what = lua_pushfstring(L, "tensor '%s': tensor %I of its flat", name, (LUAI_UACINT)i + 1);
    read->member[i] = mgrid_lua_read_tensor(L, &t->content, what, lua_gettop(L) - 1);
    lua_pop(L, 2);
    bytes += 2 * mgrid_tensor_held(read->member[i]) + sizeof(mgrid_tensor *);
    mgrid_lua_weigh(L, read, sizeof *read + bytes);
  }
  lay_out(L, read, box, name, table);
  mgrid_lua_weigh(L, read, sizeof *read);
  mgrid_lua_weigh(L, box, sizeof *box + bytes);
}

mgrid_tensor *mgrid_lua_flat_member(lua_State *L, int topology, const char *name, int tensor) {
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

void mgrid_lua_open_flat(lua_State *L) {
  static const luaL_Reg        meta[] = { { "__gc", mgrid_lua_free_box }, { NULL, NULL } };
  static const mgrid_lua_class flat_class = { MGRID_LUA_FLAT, NULL, NULL, NULL, meta };
  mgrid_lua_open_class(L, &flat_class);
}
