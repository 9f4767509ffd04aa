/* SPDX-License-Identifier: MIT
**
** group_words.c - Group for Lua: this rank's group of a family, in a state.
*/
#include "moongrid_lua.h"
#include "recipe/bind.h"
#include "recipe/words/lookup.h"

#include <string.h>

/* ------------------------------------------------------------------- fields: lookup.h */

const char mgrid_lua_state_key = 's', mgrid_lua_group_key = 'g';

void mgrid_lua_own_metatable(lua_State *L, const char *class, const char *key,
                             lua_CFunction missing) {
  int box = lua_gettop(L);

  lua_createtable(L, 0, 12);
  luaL_getmetatable(L, class);
  for (lua_pushnil(L); mgrid_lua_next(L, box + 2);) {
    lua_pushvalue(L, -2);
    lua_insert(L, -2);
    lua_rawset(L, box + 1);
  }
  lua_pop(L, 1);
  lua_pushboolean(L, 1);
  lua_rawsetp(L, box + 1, key);
  lua_createtable(L, 0, 12); /* the answers */
  lua_createtable(L, 0, 1);
  lua_pushvalue(L, box);
  lua_pushcclosure(L, missing, 1);
  lua_setfield(L, -2, "__index");
  lua_setmetatable(L, -2);
  lua_pushvalue(L, -1);
  lua_setiuservalue(L, box, MGRID_ANSWERS);
  lua_setfield(L, box + 1, "__index");
  lua_setmetatable(L, box);
}

void *mgrid_lua_test_own(lua_State *L, int i, const char *key) {
  if (lua_type(L, i) != LUA_TUSERDATA || !lua_getmetatable(L, i)) return NULL;
  bool own = lua_rawgetp(L, -1, key) == LUA_TBOOLEAN;
  lua_pop(L, 2);
  return own ? lua_touserdata(L, i) : NULL;
}

void *mgrid_lua_check_own(lua_State *L, int i, const char *class, const char *key) {
  void *box = mgrid_lua_test_own(L, i, key);
  if (!box) luaL_typeerror(L, i, class);
  return box;
}

void mgrid_lua_keep_answer(lua_State *L, int answers, const char *name) {
  answers = lua_absindex(L, answers);
  lua_pushstring(L, name);
  lua_pushvalue(L, -2);
  lua_rawset(L, answers);
}

/* ------------------------------------------------------------------- memory
** The windows and the device communicator of a group, and the GPU memory of a state. Addresses are
** light userdata, which a program passes to kernels of a GPU.
*/

static void set_address(lua_State *L, const char *key, const void *address) {
  if (address)
    lua_pushlightuserdata(L, (void *)(uintptr_t)address);
  else
    lua_pushnil(L);
  lua_setfield(L, -2, key);
}

/* group:window(name) -> { buffer, bytes, handle }, or nil if the group has no communicator */
static int group_window(lua_State *L) {
  mgrid_lua_check_group(L, 1);
  const char *name = luaL_checkstring(L, 2);
  mgrid_nccl_window w = MGRID_NCCL_WINDOW_INIT;
  mgrid_error e = MGRID_ERROR_INIT;
  if (mgrid_group_window(mgrid_lua_check_group(L, 1), name, &w, &e))
    return mgrid_lua_raise_error(L, &e);
  if (!w.buffer) {
    lua_pushnil(L);
    return 1;
  }
  lua_createtable(L, 0, 3);
  set_address(L, "buffer", w.buffer);
  set_address(L, "handle", w.handle);
  mgrid_lua_set_integer(L, "bytes", w.bytes);
  return 1;
}

/* group:device() -> address, version of NCCL; or nil */
static int group_device(lua_State *L) {
  int version = 0;
  const void *device = mgrid_group_device(mgrid_lua_check_group(L, 1), &version);
  if (!device) {
    lua_pushnil(L);
    return 1;
  }
  lua_pushlightuserdata(L, (void *)(uintptr_t)device);
  lua_pushinteger(L, version);
  return 2;
}

static int group_change(lua_State *L, mgrid_status (*call)(mgrid_state *s, mgrid_error *err)) {
  mgrid_error e = MGRID_ERROR_INIT;
  return mgrid_lua_done(L, call(mgrid_lua_check_host_state(L), &e), &e);
}

int mgrid_lua_state_suspend(lua_State *L) { return group_change(L, mgrid_state_suspend); }
int mgrid_lua_state_resume(lua_State *L) { return group_change(L, mgrid_state_resume); }

/* state:held_memory() -> { communicators, suspended, total, suspendable, persistent } */
int mgrid_lua_state_held_memory(lua_State *L) {
  mgrid_held_memory m = MGRID_HELD_MEMORY_INIT;
  mgrid_error e = MGRID_ERROR_INIT;
  if (mgrid_state_held_memory(mgrid_lua_check_host_state(L), &m, &e))
    return mgrid_lua_failure(L, &e);
  lua_createtable(L, 0, 5);
  mgrid_lua_set_integer(L, "communicators", m.communicators);
  mgrid_lua_set_integer(L, "suspended", m.suspended);
  mgrid_lua_set_integer(L, "total", m.total);
  mgrid_lua_set_integer(L, "suspendable", m.suspendable);
  mgrid_lua_set_integer(L, "persistent", m.persistent);
  return 1;
}

/* ------------------------------------------------------------------- groups */

typedef struct group_box { /* user value MGRID_OWNER is the State, whose box is `from` */
  const mgrid_group *g;
  const mgrid_state_box *from;
} group_box;

static int group_missing(lua_State *L);

/* The Group is kept among the answers, at the address of g. */
int mgrid_lua_push_group_of(lua_State *L, int state, const mgrid_group *g) {
  if (!g) {
    lua_pushnil(L);
    return 1;
  }
  state = lua_absindex(L, state);
  lua_getiuservalue(L, state, MGRID_ANSWERS);
  if (lua_rawgetp(L, -1, g) == LUA_TNIL) {
    lua_pop(L, 1);
    group_box *box = lua_newuserdatauv(L, sizeof *box, 2);
    *box = (group_box){ g, lua_touserdata(L, state) };
    mgrid_lua_own_metatable(L, MGRID_LUA_GROUP, &mgrid_lua_group_key, group_missing);
    lua_pushvalue(L, state);
    lua_setiuservalue(L, -2, MGRID_OWNER);
    lua_pushvalue(L, -1);
    lua_rawsetp(L, -3, g);
  }
  lua_remove(L, -2);
  return 1;
}

static group_box *check_group_box(lua_State *L, int i) {
  return mgrid_lua_check_own(L, i, MGRID_LUA_GROUP, &mgrid_lua_group_key);
}

const mgrid_group *mgrid_lua_to_group(lua_State *L, int i) {
  group_box *box = mgrid_lua_test_own(L, i, &mgrid_lua_group_key);
  return box && box->from->s ? box->g : NULL;
}

const mgrid_group *mgrid_lua_check_group(lua_State *L, int i) {
  group_box *box = check_group_box(L, i);
  if (!box->from->s) mgrid_lua_raise(L, "the state of this group is closed");
  return box->g;
}

const mgrid_group *mgrid_lua_check_group_of_host(lua_State *L, int i) {
  const mgrid_group *g = mgrid_lua_check_group(L, i);
  if (!((group_box *)lua_touserdata(L, i))->from->owned)
    mgrid_lua_raise(L, "a query or policy cannot communicate: one rank asks it alone");
  if (g->none)
    mgrid_lua_raise_as(L, MGRID_UNSUPPORTED,
                       "%s has no communicator: the backend of its family is 'none'", g->name);
  return g;
}

static int group_next(lua_State *L) {
  mgrid_lua_check_group(L, 1);
  bool wrap = mgrid_lua_check_wrap(L, 2);
  return mgrid_lua_push_index(L, mgrid_group_beside(mgrid_lua_check_group(L, 1), 1, wrap));
}
static int group_prev(lua_State *L) {
  mgrid_lua_check_group(L, 1);
  bool wrap = mgrid_lua_check_wrap(L, 2);
  return mgrid_lua_push_index(L, mgrid_group_beside(mgrid_lua_check_group(L, 1), -1, wrap));
}

/* group:at(position) -> rank of the world | nil. A negative position counts from the end */
static int group_at(lua_State *L) {
  const mgrid_group *g = mgrid_lua_check_group(L, 1);
  int64_t position = mgrid_lua_check_integer(L, 2);
  if (position < 0) position += mgrid_group_size(g);
  return mgrid_lua_push_index(L, mgrid_group_at(g, position));
}

/* group:position_of(rank) -> position | nil */
static int group_position_of(lua_State *L) {
  const mgrid_group *g = mgrid_lua_check_group(L, 1);
  return mgrid_lua_push_index(L, mgrid_group_position_of(g, mgrid_lua_check_integer(L, 2)));
}

/* group:shift(dim [, displacement]) -> the positions of the source and the destination; nil past an
** end of a dim that is not periodic */
static int group_shift(lua_State *L) {
  mgrid_lua_check_group(L, 1);
  const char *dim = luaL_checkstring(L, 2);
  int64_t displacement = mgrid_lua_opt_integer(L, 3, 1), source, dest;
  mgrid_error e = MGRID_ERROR_INIT;
  if (mgrid_group_shift(mgrid_lua_check_group(L, 1), dim, displacement, &source, &dest, &e))
    return mgrid_lua_raise_error(L, &e);
  mgrid_lua_push_index(L, source);
  mgrid_lua_push_index(L, dest);
  return 2;
}

static int group_contains(lua_State *L) {
  const mgrid_group *g = mgrid_lua_check_group(L, 1);
  lua_pushboolean(L, mgrid_group_position_of(g, mgrid_lua_check_integer(L, 2)) >= 0);
  return 1;
}

static int group_position(lua_State *L) {
  lua_pushinteger(L, mgrid_group_position(mgrid_lua_check_group(L, 1)));
  return 1;
}

static int group_size(lua_State *L) {
  lua_pushinteger(L, mgrid_group_size(mgrid_lua_check_group(L, 1)));
  return 1;
}

static int group_index(lua_State *L) {
  lua_pushinteger(L, mgrid_group_index(mgrid_lua_check_group(L, 1)));
  return 1;
}

static int group_launch_order(lua_State *L) {
  lua_pushinteger(L, mgrid_group_launch_order(mgrid_lua_check_group(L, 1)));
  return 1;
}

static int group_first(lua_State *L) {
  lua_pushinteger(L, mgrid_group_at(mgrid_lua_check_group(L, 1), 0));
  return 1;
}

static int group_last(lua_State *L) {
  const mgrid_group *g = mgrid_lua_check_group(L, 1);
  lua_pushinteger(L, mgrid_group_at(g, mgrid_group_size(g) - 1));
  return 1;
}

static int group_name(lua_State *L) {
  lua_pushstring(L, mgrid_group_family(mgrid_lua_check_group(L, 1)));
  return 1;
}

static int group_backend(lua_State *L) {
  const mgrid_group *g = mgrid_lua_check_group(L, 1);
  lua_pushstring(L, mgrid_group_native(g) ? mgrid_group_backend(g) : "");
  return 1;
}

static int group_ranks(lua_State *L) { /* a new list each time */
  int64_t n = mgrid_group_size(mgrid_lua_check_group(L, 1));
  lua_createtable(L, n < INT32_MAX ? (int)n : 0, 0);
  const mgrid_group *g = mgrid_lua_check_group(L, 1);
  for (int64_t p = 0; p < n; p++) {
    lua_pushinteger(L, mgrid_group_at(g, p));
    lua_rawseti(L, -2, p + 1);
  }
  mgrid_lua_printed_list(L);
  return 1;
}

/* Lua also calls this to compare a Group with another userdata. */
static int group_eq(lua_State *L) {
  bool both = mgrid_lua_test_own(L, 1, &mgrid_lua_group_key)
              && mgrid_lua_test_own(L, 2, &mgrid_lua_group_key);
  if (both) {
    const mgrid_group *a = mgrid_lua_check_group(L, 1), *b = mgrid_lua_check_group(L, 2);
    both = a->position == b->position && mgrid_same_group(a->family, a->index, b->family, b->index);
  }
  lua_pushboolean(L, both);
  return 1;
}

static int group_tostring(lua_State *L) {
  group_box *box = check_group_box(L, 1);
  const mgrid_group *g = box->g;
  if (!box->from->s) { /* then `g` has been freed */
    lua_pushliteral(L, "Group (closed)");
    return 1;
  }
  lua_pushfstring(L, "Group %s[%I]: %I of %I", g->name, (LUAI_UACINT)g->index,
                  (LUAI_UACINT)g->position, (LUAI_UACINT)g->size);
  return 1;
}

static const luaL_Reg group_fields[] = { { "position", group_position },
                                         { "size", group_size },
                                         { "index", group_index },
                                         { "first", group_first },
                                         { "last", group_last },
                                         { "ranks", group_ranks },
                                         { "name", group_name },
                                         { "backend", group_backend },
                                         { "launch_order", group_launch_order },
                                         { NULL, NULL } };
static const luaL_Reg group_methods[] = { { "next", group_next },
                                          { "prev", group_prev },
                                          { "at", group_at },
                                          { "position_of", group_position_of },
                                          { "contains", group_contains },
                                          { "shift", group_shift },
                                          { "segment", mgrid_lua_group_segment },
                                          { "window", group_window },
                                          { "device", group_device },
                                          { NULL, NULL } };
static const luaL_Reg group_meta[] = {
  { "__len", group_size }, { "__eq", group_eq }, { "__tostring", group_tostring }, { NULL, NULL }
};
static const mgrid_lua_class group_class = { MGRID_LUA_GROUP, group_fields, group_methods,
                                             mgrid_lua_group_use, group_meta };

/* missing(answers, key): see lookup.h */
static int group_missing(lua_State *L) {
  enum { GROUP = lua_upvalueindex(1) };
  const char *key = luaL_checkstring(L, 2);
  mgrid_lua_check_group(L, GROUP); /* raises if its state is closed */
  if (strcmp(key, "rank") == 0)
    return mgrid_lua_raise_as(
        L, MGRID_UNKNOWN_NAME,
        "a Group has no field 'rank'; `position` is the index of this rank in the group, and the "
        "`rank` of the state is its rank in the world");
  if (!mgrid_lua_class_get(L, &group_class, GROUP, key))
    return mgrid_lua_unknown_field(L, &group_class, key);
  if (strcmp(key, "ranks") != 0 && strcmp(key, "backend") != 0) mgrid_lua_keep_answer(L, 1, key);
  return 1;
}

void mgrid_lua_open_group(lua_State *L) { mgrid_lua_open_class(L, &group_class); }
