/* SPDX-License-Identifier: MIT
**
** state.c - State and Group for Lua: what a trainer asks.
**
** A trainer reads `state.tp.position` in every step, so it is as fast as reading a Lua table, and allocates
** nothing. Every State and Group has a metatable of its own, whose __index is a table of answers that
** never change. A name that is not there yet goes to a function, that table's own __index, which adds it.
** Closing a state empties these tables; from then on its groups raise.
*/
#include "types/bind.h"

#include <inttypes.h>
#include <string.h>

typedef struct state_box {
  mgrid_state *s; /* NULL once closed */
  bool         owned;
  bool         kept; /* a dry one: user value KEEPER owns it */
} state_box;

typedef struct group_box { /* user value 2 is the State userdata, whose box is `from` */
  const mgrid_group *g;
  const state_box   *from;
} group_box;

/* User values: the table of answers; the State of a Group; of a State what frees it, if it is dry. */
enum { ANSWERS = 1, OWNER = 2, KEEPER = 2 };

/* Keys in the metatables, by their addresses: they tell a State and a Group from other userdata. */
static const char state_key = 's', group_key = 'g';

/* Give the userdata on the top its own metatable: the metamethods of its class, and a table of answers.
** For what is not in there, missing(answers, key) is called, with the userdata as upvalue. */
static void own_metatable(lua_State *L, const char *class, const char *key, lua_CFunction missing) {
  int box = lua_gettop(L);
  lua_createtable(L, 0, 12);
  luaL_getmetatable(L, class);
  for (lua_pushnil(L); lua_next(L, box + 2);) {
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
  lua_setiuservalue(L, box, ANSWERS);
  lua_setfield(L, box + 1, "__index");
  lua_setmetatable(L, box);
}

/* The userdata at i if it has this key in its metatable, else NULL. */
static void *test_own(lua_State *L, int i, const char *key) {
  if (lua_type(L, i) != LUA_TUSERDATA || !lua_getmetatable(L, i)) return NULL;
  bool is = lua_rawgetp(L, -1, key) == LUA_TBOOLEAN;
  lua_pop(L, 2);
  return is ? lua_touserdata(L, i) : NULL;
}

static void *check_own(lua_State *L, int i, const char *class, const char *key) {
  void *box = test_own(L, i, key);
  if (!box) luaL_typeerror(L, i, class);
  return box;
}

/* Keep the value on the top as the answer to `name`. */
static void keep(lua_State *L, int answers, const char *name) {
  answers = lua_absindex(L, answers);
  lua_pushstring(L, name);
  lua_pushvalue(L, -2);
  lua_rawset(L, answers);
}

static int state_missing(lua_State *L);
static int group_missing(lua_State *L);

mgrid_state **mgrid_lua_new_state(lua_State *L, bool owned) {
  state_box *box = lua_newuserdatauv(L, sizeof *box, 2);
  *box = (state_box){ NULL, owned, false };
  own_metatable(L, MGRID_LUA_STATE, &state_key, state_missing);
  return &box->s;
}

static void free_kept(void *box) { mgrid_state_free(*(mgrid_state **)box); }

/* Freeing a dry state asks no other rank, so its garbage can be collected; another userdata does that, in whose box it
** is found again if Lua skips the finalizer. */
void mgrid_lua_keep_dry(lua_State *L, mgrid_state **state, const mgrid_plan *p, int64_t rank, mgrid_error *err) {
  state_box     *box = (state_box *)state;
  mgrid_state  **kept = mgrid_lua_new_box(L, sizeof *kept, 0, MGRID_LUA_KEPT, free_kept);
  mgrid_backend *b = mgrid_backend_dry(p->content.world, rank, err);
  if (b) *kept = mgrid_materialize(p, b, NULL, err);
  mgrid_backend_free(b); /* the state keeps it */
  if (!*kept) return;
  size_t bytes = (*kept)->view.nmembers * sizeof(mgrid_group) + (*kept)->view.ncomms * 256 + 1024;
  mgrid_lua_weigh(L, kept, bytes);
  box->s = *kept, box->kept = true;
  lua_setiuservalue(L, -2, KEEPER);
}

static state_box *check_state_box(lua_State *L, int i) { return check_own(L, i, MGRID_LUA_STATE, &state_key); }

mgrid_state *mgrid_lua_check_state(lua_State *L, int i) {
  state_box *box = check_state_box(L, i);
  if (!box->s) mgrid_lua_raise(L, "the state is closed");
  return box->s;
}

/* Empty a table of answers, and those of the groups in it. */
static void forget(lua_State *L, int answers) {
  answers = lua_absindex(L, answers);
  for (lua_pushnil(L); lua_next(L, answers);) {
    if (test_own(L, -1, &group_key)) {
      lua_getiuservalue(L, -1, ANSWERS);
      forget(L, -1);
      lua_pop(L, 1);
    }
    lua_pop(L, 1);
    lua_pushvalue(L, -1);
    lua_pushnil(L);
    lua_rawset(L, answers); /* lua_next allows to clear the key that it gave */
  }
}

void mgrid_lua_close_state(lua_State *L, int i) {
  state_box *box = check_state_box(L, i);
  lua_getiuservalue(L, i, ANSWERS);
  forget(L, -1);
  lua_pop(L, 1);
  if (box->kept && lua_getiuservalue(L, i, KEEPER) == LUA_TUSERDATA) {
    *(mgrid_state **)mgrid_lua_in_box(lua_touserdata(L, -1)) = NULL;
    lua_pop(L, 1);
  }
  if (box->owned) mgrid_state_free(box->s);
  box->s = NULL;
}

/* ------------------------------------------------------------------- State */

/* The Group is kept among the answers by the handle's address, so each call pushes the same one. */
int mgrid_lua_push_group(lua_State *L, int state, const mgrid_group *g) {
  if (!g) {
    lua_pushnil(L);
    return 1;
  }
  state = lua_absindex(L, state);
  lua_getiuservalue(L, state, ANSWERS);
  if (lua_rawgetp(L, -1, g) == LUA_TNIL) {
    lua_pop(L, 1);
    group_box *box = lua_newuserdatauv(L, sizeof *box, 2);
    *box = (group_box){ g, lua_touserdata(L, state) };
    own_metatable(L, MGRID_LUA_GROUP, &group_key, group_missing);
    lua_pushvalue(L, state);
    lua_setiuservalue(L, -2, OWNER);
    lua_pushvalue(L, -1);
    lua_rawsetp(L, -3, g);
  }
  lua_remove(L, -2);
  return 1;
}

/* state:groups(family) -> list of Group: one of a partition, several of a cover, or none */
static int state_groups(lua_State *L) {
  mgrid_state *s = mgrid_lua_check_state(L, 1);
  const char  *family = luaL_checkstring(L, 2);
  mgrid_error  e = MGRID_ERROR_INIT;
  lua_newtable(L);
  for (size_t nth = 0;; nth++) {
    const mgrid_group *g = mgrid_state_group_nth(s, family, nth, &e);
    if (e.status) return mgrid_lua_raise_error(L, &e);
    if (!g) return 1;
    mgrid_lua_push_group(L, 1, g);
    lua_rawseti(L, -2, (lua_Integer)nth + 1);
  }
}

/* state:has(family) -> boolean: is there a family of that name? This rank need not be in it. */
static int state_has(lua_State *L) {
  lua_pushboolean(L, mgrid_plan_find(mgrid_lua_check_state(L, 1)->plan, luaL_checkstring(L, 2)) >= 0);
  return 1;
}

/* state:coord(grid, dim) -> integer | nil */
static int state_coord(lua_State *L) {
  mgrid_state *s = mgrid_lua_check_state(L, 1);
  mgrid_error  e = MGRID_ERROR_INIT;
  int64_t      at = mgrid_state_coord(s, luaL_checkstring(L, 2), luaL_checkstring(L, 3), &e);
  if (e.status) return mgrid_lua_raise_error(L, &e);
  if (at < 0)
    lua_pushnil(L);
  else
    lua_pushinteger(L, at);
  return 1;
}

mgrid_state *mgrid_lua_check_host_state(lua_State *L) {
  mgrid_state *s = mgrid_lua_check_state(L, 1);
  if (!check_state_box(L, 1)->owned) mgrid_lua_raise(L, "a query or policy cannot communicate: one rank asks it alone");
  return s;
}

static int state_prove(lua_State *L) {
  int64_t     n = 0;
  mgrid_error e = MGRID_ERROR_INIT;
  if (mgrid_state_prove(mgrid_lua_check_host_state(L), &n, &e)) return mgrid_lua_failure(L, &e);
  lua_pushinteger(L, n);
  return 1;
}

static int state_create(lua_State *L) {
  mgrid_error e = MGRID_ERROR_INIT;
  if (mgrid_state_create(mgrid_lua_check_host_state(L), luaL_checkstring(L, 2), &e)) return mgrid_lua_failure(L, &e);
  lua_pushboolean(L, 1);
  return 1;
}

static int state_close(lua_State *L) {
  state_box *box = check_state_box(L, 1);
  if (box->s && !box->owned) return mgrid_lua_raise(L, "a query or policy cannot close the state");
  mgrid_lua_close_state(L, 1);
  return 0;
}

/* Freeing a state is collective unless it is dry, and ranks collect garbage at different moments: only disown it here. */
static int state_gc(lua_State *L) {
  state_box *box = check_state_box(L, 1);
  if (box->owned && box->s && !box->kept) mgrid_state_abandon(box->s);
  box->s = NULL;
  return 0;
}

static int state_rank(lua_State *L) {
  lua_pushinteger(L, mgrid_lua_check_state(L, 1)->view.rank);
  return 1;
}

static int state_world(lua_State *L) {
  lua_pushinteger(L, mgrid_lua_check_state(L, 1)->plan->content.world);
  return 1;
}

static int state_plan(lua_State *L) {
  mgrid_state *s = mgrid_lua_check_state(L, 1);
  *mgrid_lua_new_plan(L) = mgrid_plan_ref(s->plan);
  return 1;
}

static int state_machine(lua_State *L) {
  mgrid_lua_push_machine(L, mgrid_lua_check_state(L, 1));
  return 1;
}

static int state_ncomms(lua_State *L) {
  lua_pushinteger(L, (lua_Integer)mgrid_state_ncomms(mgrid_lua_check_state(L, 1)));
  return 1;
}

static int state_ngroups(lua_State *L) {
  lua_pushinteger(L, (lua_Integer)mgrid_state_ngroups(mgrid_lua_check_state(L, 1)));
  return 1;
}

/* Push the Mesh of a named grid, fresh each time: its table is the caller's to change. Its metatable is kept among
** the answers. */
static void push_mesh(lua_State *L, int answers, const mgrid_grid *grid, int64_t rank) {
  if (lua_rawgetp(L, answers, grid) == LUA_TNIL) {
    lua_pop(L, 1);
    mgrid_lua_push_mesh_metatable(L, grid, rank);
    lua_pushvalue(L, -1);
    lua_rawsetp(L, answers, grid);
  }
  mgrid_lua_push_mesh(L, grid, rank, lua_gettop(L));
}

/* state.tp is a Group or nil, state.dense the Mesh of a named grid; the State's own fields and methods come
** first. Called with (answers, key). */
static int state_missing(lua_State *L) {
  enum { STATE = lua_upvalueindex(1) };
  const char *key = luaL_checkstring(L, 2);
  if (mgrid_lua_class_get(L, &mgrid_lua_state_class, STATE, key)) {
    bool fresh = strcmp(key, "ncomms") == 0 || strcmp(key, "ngroups") == 0 || strcmp(key, "plan") == 0;
    if (!fresh) keep(L, 1, key);
    return 1;
  }
  mgrid_state      *s = mgrid_lua_check_state(L, STATE);
  const mgrid_grid *grid = mgrid_plan_grid(s->plan, key);
  if (grid) {
    push_mesh(L, 1, grid, s->view.rank);
    return 1;
  }
  mgrid_error        e = MGRID_ERROR_INIT;
  const mgrid_group *g = mgrid_state_group(s, key, &e);
  if (e.status) return mgrid_lua_raise_error(L, &e);
  lua_pushvalue(L, STATE);
  mgrid_lua_push_group(L, -1, g);
  if (g) keep(L, 1, key);
  return 1;
}

static int state_tostring(lua_State *L) {
  state_box *box = check_state_box(L, 1);
  if (!box->s)
    lua_pushliteral(L, "State (closed)");
  else
    lua_pushfstring(L, "State of rank %I of %I: %d groups, %d communicators", (LUAI_UACINT)box->s->view.rank,
                    (LUAI_UACINT)box->s->plan->content.world, (int)mgrid_state_ngroups(box->s),
                    (int)mgrid_state_ncomms(box->s));
  return 1;
}

static int state_next(lua_State *L) { /* state, last name or nil -> name, Group or false */
  mgrid_state *s = mgrid_lua_check_state(L, 1);
  int64_t      i = lua_isnil(L, 2) ? -1 : mgrid_plan_find(s->plan, luaL_checkstring(L, 2));
  if ((size_t)(i + 1) >= s->plan->content.nentries) return 0;
  const char        *name = s->plan->content.entry[i + 1].name;
  const mgrid_group *g = mgrid_state_group(s, name, NULL);
  lua_pushstring(L, name);
  if (g)
    mgrid_lua_push_group(L, 1, g);
  else
    lua_pushboolean(L, 0);
  return 2;
}

static int state_pairs(lua_State *L) {
  mgrid_lua_check_state(L, 1);
  lua_pushcfunction(L, state_next);
  lua_pushvalue(L, 1);
  lua_pushnil(L);
  return 3;
}

/* ------------------------------------------------------------------- Group */

static group_box *check_group_box(lua_State *L, int i) { return check_own(L, i, MGRID_LUA_GROUP, &group_key); }

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
    mgrid_lua_raise_as(L, MGRID_UNSUPPORTED, "%s has no communicator: the backend of its family is 'none'", g->name);
  return g;
}

static int push_rank(lua_State *L, int64_t rank) {
  if (rank < 0)
    lua_pushnil(L);
  else
    lua_pushinteger(L, rank);
  return 1;
}

static int group_next(lua_State *L) {
  return push_rank(L, mgrid_group_next(mgrid_lua_check_group(L, 1), mgrid_lua_check_wrap(L, 2)));
}
static int group_prev(lua_State *L) {
  return push_rank(L, mgrid_group_prev(mgrid_lua_check_group(L, 1), mgrid_lua_check_wrap(L, 2)));
}

/* group:at(position) -> global rank | nil; negative positions count from the end */
static int group_at(lua_State *L) {
  const mgrid_group *g = mgrid_lua_check_group(L, 1);
  int64_t            position = mgrid_lua_check_integer(L, 2);
  return push_rank(L, mgrid_group_at(g, position < 0 ? position + mgrid_group_size(g) : position));
}

/* group:position_of(rank) -> position | nil */
static int group_position_of(lua_State *L) {
  return push_rank(L, mgrid_group_position_of(mgrid_lua_check_group(L, 1), mgrid_lua_check_integer(L, 2)));
}

/* group:shift(dim [, displacement]) -> source, dest: positions, nil past an end that is not periodic */
static int group_shift(lua_State *L) {
  const mgrid_group *g = mgrid_lua_check_group(L, 1);
  const char        *dim = luaL_checkstring(L, 2);
  int64_t            source, dest;
  mgrid_error        e = MGRID_ERROR_INIT;
  if (mgrid_group_shift(g, dim, mgrid_lua_opt_integer(L, 3, 1), &source, &dest, &e))
    return mgrid_lua_raise_error(L, &e);
  push_rank(L, source);
  push_rank(L, dest);
  return 2;
}

static int group_contains(lua_State *L) {
  lua_pushboolean(L, mgrid_group_position_of(mgrid_lua_check_group(L, 1), mgrid_lua_check_integer(L, 2)) >= 0);
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
  lua_pushinteger(L, mgrid_group_first(mgrid_lua_check_group(L, 1)));
  return 1;
}

static int group_last(lua_State *L) {
  lua_pushinteger(L, mgrid_group_last(mgrid_lua_check_group(L, 1)));
  return 1;
}

static int group_name(lua_State *L) {
  lua_pushstring(L, mgrid_group_family(mgrid_lua_check_group(L, 1)));
  return 1;
}

static int group_ranks(lua_State *L) { /* a list of the caller's own each time */
  const mgrid_group *g = mgrid_lua_check_group(L, 1);
  int64_t            n = mgrid_group_size(g);
  lua_createtable(L, n < INT32_MAX ? (int)n : 0, 0);
  for (int64_t p = 0; p < n; p++) {
    lua_pushinteger(L, mgrid_group_at(g, p));
    lua_rawseti(L, -2, p + 1);
  }
  return 1;
}

static int group_eq(lua_State *L) {
  bool both = test_own(L, 1, &group_key)
              && test_own(L, 2, &group_key); /* Lua also calls this to compare a Group with another userdata */
  if (both) {
    const mgrid_group *a = mgrid_lua_check_group(L, 1), *b = mgrid_lua_check_group(L, 2);
    both = a->position == b->position && mgrid_same_group(a->family, a->index, b->family, b->index);
  }
  lua_pushboolean(L, both);
  return 1;
}

static int group_tostring(lua_State *L) {
  group_box         *box = check_group_box(L, 1);
  const mgrid_group *g = box->g;
  if (!box->from->s) { /* then `g` is freed */
    lua_pushliteral(L, "Group (closed)");
    return 1;
  }
  lua_pushfstring(L, "Group %s[%I]: %I of %I", g->name, (LUAI_UACINT)g->index, (LUAI_UACINT)g->position,
                  (LUAI_UACINT)g->size);
  return 1;
}

static const luaL_Reg state_fields[] = {
  { "rank", state_rank },     { "world", state_world },     { "plan", state_plan }, { "machine", state_machine },
  { "ncomms", state_ncomms }, { "ngroups", state_ngroups }, { NULL, NULL }
};
static const luaL_Reg state_methods[] = { { "groups", state_groups },
                                          { "coord", state_coord },
                                          { "has", state_has },
                                          { "prove", state_prove },
                                          { "create", state_create },
                                          { "close", state_close },
                                          { "suspend", mgrid_lua_state_suspend },
                                          { "resume", mgrid_lua_state_resume },
                                          { "held_memory", mgrid_lua_state_held_memory },
                                          { NULL, NULL } };
static const luaL_Reg state_meta[] = { { "__gc", state_gc },       { "__close", state_close },
                                       { "__len", state_ngroups }, { "__tostring", state_tostring },
                                       { "__pairs", state_pairs }, { NULL, NULL } };
const mgrid_lua_class mgrid_lua_state_class = { MGRID_LUA_STATE, state_fields, state_methods, NULL, state_meta };

static const luaL_Reg group_fields[] = { { "position", group_position },
                                         { "size", group_size },
                                         { "index", group_index },
                                         { "first", group_first },
                                         { "last", group_last },
                                         { "ranks", group_ranks },
                                         { "name", group_name },
                                         { "launch_order", group_launch_order },
                                         { NULL, NULL } };
static const luaL_Reg group_methods[] = { { "next", group_next },
                                          { "prev", group_prev },
                                          { "at", group_at },
                                          { "position_of", group_position_of },
                                          { "contains", group_contains },
                                          { "shift", group_shift },
                                          { "segment", mgrid_lua_group_segment },
                                          { "window", mgrid_lua_group_window },
                                          { "device", mgrid_lua_group_device },
                                          { NULL, NULL } };
static const luaL_Reg group_meta[] = {
  { "__len", group_size }, { "__eq", group_eq }, { "__tostring", group_tostring }, { NULL, NULL }
};
static const mgrid_lua_class group_class = { MGRID_LUA_GROUP, group_fields, group_methods, mgrid_lua_group_use,
                                             group_meta };

/* Called with (answers, key). */
static int group_missing(lua_State *L) {
  enum { GROUP = lua_upvalueindex(1) };
  const char *key = luaL_checkstring(L, 2);
  mgrid_lua_check_group(L, GROUP); /* raises if it is closed */
  if (strcmp(key, "rank") == 0)
    return mgrid_lua_raise_as(L, MGRID_UNKNOWN_NAME,
                              "a Group has no rank: its `position` is that of this rank in it, the `rank` of the state "
                              "that in the world");
  if (!mgrid_lua_class_get(L, &group_class, GROUP, key)) return mgrid_lua_unknown_field(L, &group_class, key);
  if (strcmp(key, "ranks") != 0) keep(L, 1, key);
  return 1;
}

void mgrid_lua_open_state(lua_State *L) {
  static const luaL_Reg        kept_meta[] = { { "__gc", mgrid_lua_free_box }, { NULL, NULL } };
  static const mgrid_lua_class kept_class = { MGRID_LUA_KEPT, NULL, NULL, NULL, kept_meta };
  mgrid_lua_open_class(L, &mgrid_lua_state_class);
  mgrid_lua_open_class(L, &group_class);
  mgrid_lua_open_class(L, &kept_class);
}
