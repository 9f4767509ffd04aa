/* SPDX-License-Identifier: MIT
**
** state_words.c - State for Lua: this rank's groups, its place in each grid, and its node.
*/
#include "recipe/bind.h"
#include "recipe/words/lookup.h"

#include <inttypes.h>
#include <string.h>

/* ------------------------------------------------------------ state.machine
** Where this rank runs, and how the job is spread over nodes. It is read-only.
*/

static const char *const fields[] = { "name",  "machines",     "index",  "local_size", "local_rank",
                                      "cores", "usable_cores", "memory", "gpus",       "gpu" };
enum { FIELDS = sizeof fields / sizeof fields[0] };

/* __index, for a name without a value: `gpu` is nil if there is no GPU; any other name raises. */
static int machine_missing(lua_State *L) {
  const char *key = luaL_checkstring(L, 2);
  return strcmp(key, "gpu") == 0
             ? 0
             : mgrid_lua_unknown(L, "field of the machine", key, fields, FIELDS);
}

static int machine_fixed(lua_State *L) {
  return mgrid_lua_raise(L, "the machine cannot be changed");
}

/* next(machine, last name or nil) -> the next name that has a value, and the value */
static int machine_next(lua_State *L) {
  size_t i = 0;
  if (!lua_isnil(L, 2))
    while (i < FIELDS && strcmp(fields[i++], luaL_checkstring(L, 2)) != 0) continue;
  for (; i < FIELDS; i++) {
    lua_pushstring(L, fields[i]);
    if (lua_getfield(L, 1, fields[i]) != LUA_TNIL) return 2;
    lua_pop(L, 2);
  }
  return 0;
}

static int machine_pairs(lua_State *L) {
  lua_pushcfunction(L, machine_next);
  lua_pushvalue(L, 1);
  lua_pushnil(L);
  return 3;
}

/* Push an empty table whose metatable holds the values, so that __newindex is called for every
** assignment. */
static void push_machine(lua_State *L, const mgrid_state *s) {
  static const luaL_Reg meta[] = { { "__newindex", machine_fixed },
                                   { "__pairs", machine_pairs },
                                   { NULL, NULL } };
  mgrid_machine m = MGRID_MACHINE_INIT;

  mgrid_state_machine(s, &m, NULL);
  const int64_t values[] = { m.machines,     m.index,  m.local_size, m.local_rank, m.cores,
                             m.usable_cores, m.memory, m.gpus,       m.gpu };
  lua_newtable(L);
  luaL_newlib(L, meta);
  lua_createtable(L, 0, FIELDS); /* the values */
  lua_pushstring(L, m.name);
  lua_setfield(L, -2, fields[0]);
  for (int i = 1; i < FIELDS; i++) {
    if (values[i - 1] < 0) continue; /* there is no GPU */
    lua_pushinteger(L, values[i - 1]);
    lua_setfield(L, -2, fields[i]);
  }
  lua_createtable(L, 0, 1);
  lua_pushcfunction(L, machine_missing);
  lua_setfield(L, -2, "__index");
  lua_setmetatable(L, -2);
  lua_setfield(L, -2, "__index");
  mgrid_lua_set_boolean(L, "__metatable", false);
  lua_setmetatable(L, -2);
}

/* ------------------------------------------------------------------- states */

static int state_missing(lua_State *L);

mgrid_state **mgrid_lua_new_state(lua_State *L, bool owned) {
  mgrid_state_box *box = lua_newuserdatauv(L, sizeof *box, 2);
  *box = (mgrid_state_box){ NULL, owned, false };
  mgrid_lua_own_metatable(L, MGRID_LUA_STATE, &mgrid_lua_state_key, state_missing);
  return &box->s;
}

static void free_kept(void *box) { mgrid_state_free(*(mgrid_state **)box); }

/* Freeing a dry state involves no other rank, so the state may be garbage-collected: with another
** userdata, the keeper. If Lua skips the finalizer of the keeper, the keeper's box is still in the
** list of the budget. */
void mgrid_lua_keep_dry(lua_State *L, mgrid_state **state, const mgrid_plan *p, int64_t rank,
                        mgrid_error *err) {
  mgrid_state_box *box = (mgrid_state_box *)state;
  mgrid_state **kept = mgrid_lua_new_box(L, sizeof *kept, 0, MGRID_LUA_KEPT, free_kept);
  mgrid_backend *b = mgrid_backend_dry(p->content.world, rank, err);
  if (b) *kept = mgrid_materialize(p, b, NULL, err);
  mgrid_backend_free(b); /* the state is an owner of it */
  if (!*kept) return;
  size_t bytes = (*kept)->view.nmembers * sizeof(mgrid_group) + (*kept)->view.ncomms * 256 + 1024;
  mgrid_lua_weigh(L, kept, bytes);
  box->s = *kept, box->kept = true;
  lua_setiuservalue(L, -2, MGRID_KEEPER);
}

void mgrid_lua_keep_recipe(lua_State *L, int plan) {
  lua_getiuservalue(L, plan, 1);
  lua_setiuservalue(L, -2, MGRID_KEEPER);
}

void mgrid_lua_push_recipe(lua_State *L, int state) { lua_getiuservalue(L, state, MGRID_KEEPER); }

static mgrid_state_box *check_state_box(lua_State *L, int i) {
  return mgrid_lua_check_own(L, i, MGRID_LUA_STATE, &mgrid_lua_state_key);
}

mgrid_state *mgrid_lua_check_state(lua_State *L, int i) {
  mgrid_state_box *box = check_state_box(L, i);
  if (!box->s) mgrid_lua_raise(L, "the state is closed");
  return box->s;
}

/* Empty a table of answers, and the tables of the groups in it. */
static void state_forget(lua_State *L, int answers) {
  answers = lua_absindex(L, answers);
  for (lua_pushnil(L); mgrid_lua_next(L, answers);) {
    if (mgrid_lua_test_own(L, -1, &mgrid_lua_group_key)) {
      lua_getiuservalue(L, -1, MGRID_ANSWERS);
      state_forget(L, -1);
      lua_pop(L, 1);
    }
    lua_pop(L, 1);
    lua_pushvalue(L, -1);
    lua_pushnil(L);
    lua_rawset(L, answers); /* lua_next allows clearing the key that it has returned */
  }
}

void mgrid_lua_close_state(lua_State *L, int i) {
  mgrid_state_box *box = check_state_box(L, i);
  lua_getiuservalue(L, i, MGRID_ANSWERS);
  state_forget(L, -1);
  lua_pop(L, 1);
  /* the state is freed below, so the keeper must not free it again */
  if (box->s && box->kept && lua_getiuservalue(L, i, MGRID_KEEPER) == LUA_TUSERDATA) {
    *(mgrid_state **)mgrid_lua_in_box(lua_touserdata(L, -1)) = NULL;
    lua_pop(L, 1);
  }
  if (box->owned) mgrid_state_free(box->s);
  box->s = NULL;
}

/* ------------------------------------------------------------------- State */

/* state:groups(family) -> list of Group: one for a partition, several for a cover, or none */
static int state_groups(lua_State *L) {
  mgrid_lua_check_state(L, 1);
  const char *family = luaL_checkstring(L, 2);
  mgrid_error e = MGRID_ERROR_INIT;
  lua_newtable(L);
  for (size_t nth = 0;; nth++) {
    const mgrid_group *g = mgrid_state_group_nth(mgrid_lua_check_state(L, 1), family, nth, &e);
    if (e.status) return mgrid_lua_raise_error(L, &e);
    if (!g) return 1;
    mgrid_lua_push_group_of(L, 1, g);
    lua_rawseti(L, -2, (lua_Integer)nth + 1);
  }
}

/* state:has(family) -> whether there is a family of that name; this rank need not be in it */
static int state_has(lua_State *L) {
  mgrid_lua_check_state(L, 1);
  const char *family = luaL_checkstring(L, 2);
  lua_pushboolean(L, mgrid_content_find(&mgrid_lua_check_state(L, 1)->plan->content, family) >= 0);
  return 1;
}

/* state:coord(grid, dim) -> integer | nil */
static int state_coord(lua_State *L) {
  mgrid_lua_check_state(L, 1);
  const char *grid = luaL_checkstring(L, 2), *dim = luaL_checkstring(L, 3);
  mgrid_error e = MGRID_ERROR_INIT;
  int64_t coord = mgrid_state_coord(mgrid_lua_check_state(L, 1), grid, dim, &e);
  return e.status ? mgrid_lua_raise_error(L, &e) : mgrid_lua_push_index(L, coord);
}

mgrid_state *mgrid_lua_check_host_state(lua_State *L) {
  mgrid_state *s = mgrid_lua_check_state(L, 1);
  if (!check_state_box(L, 1)->owned)
    mgrid_lua_raise(L, "a query or policy cannot communicate: one rank asks it alone");
  return s;
}

static int state_prove(lua_State *L) {
  int64_t n = 0;
  mgrid_error e = MGRID_ERROR_INIT;
  if (mgrid_state_prove(mgrid_lua_check_host_state(L), &n, &e)) return mgrid_lua_failure(L, &e);
  lua_pushinteger(L, n);
  return 1;
}

static int state_create(lua_State *L) {
  mgrid_lua_check_host_state(L);
  const char *family = luaL_checkstring(L, 2);
  mgrid_error e = MGRID_ERROR_INIT;
  return mgrid_lua_done(L, mgrid_state_create(mgrid_lua_check_host_state(L), family, &e), &e);
}

static int state_close(lua_State *L) {
  mgrid_state_box *box = check_state_box(L, 1);
  if (box->s && !box->owned) return mgrid_lua_raise(L, "a query or policy cannot close the state");
  mgrid_lua_close_state(L, 1);
  return 0;
}

/* Freeing a state is collective, unless it is dry. Ranks collect garbage at different moments, so
** the communicators of the state stay until the backend is freed. */
static int state_gc(lua_State *L) {
  mgrid_state_box *box = check_state_box(L, 1);
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
  mgrid_lua_check_state(L, 1);
  mgrid_plan **box = mgrid_lua_new_plan(L);
  *box = mgrid_plan_ref(mgrid_lua_check_state(L, 1)->plan);
  return 1;
}

static int state_machine(lua_State *L) {
  push_machine(L, mgrid_lua_check_state(L, 1));
  return 1;
}

static int state_ncomms(lua_State *L) {
  lua_pushinteger(L, (lua_Integer)mgrid_state_ncomms(mgrid_lua_check_state(L, 1)));
  return 1;
}

static int state_ngroups(lua_State *L) {
  lua_pushinteger(L, (lua_Integer)mgrid_lua_check_state(L, 1)->view.nmembers);
  return 1;
}

/* Push a new Mesh of a named grid, each time, because a program may change its table. The metatable
** is kept among the answers. */
static void push_mesh(lua_State *L, int answers, const mgrid_grid *grid, int64_t rank) {
  if (lua_rawgetp(L, answers, grid) == LUA_TNIL) {
    lua_pop(L, 1);
    mgrid_lua_push_mesh_metatable(L, grid, rank);
    lua_pushvalue(L, -1);
    lua_rawsetp(L, answers, grid);
  }
  mgrid_lua_push_mesh(L, grid, rank, lua_gettop(L));
}

/* missing(answers, key): see lookup.h. state.tp is a Group or nil; state.dense is the Mesh of a
** named grid. The State's own fields and methods come first */
static int state_missing(lua_State *L) {
  enum { STATE = lua_upvalueindex(1) };
  const char *key = luaL_checkstring(L, 2);

  if (mgrid_lua_class_get(L, &mgrid_lua_state_class, STATE, key)) {
    /* fields that may change are not kept */
    bool fresh = strcmp(key, "ncomms") == 0 || strcmp(key, "ngroups") == 0
                 || strcmp(key, "plan") == 0;
    if (!fresh) mgrid_lua_keep_answer(L, 1, key);
    return 1;
  }
  if (mgrid_plan_grid(mgrid_lua_check_state(L, STATE)->plan, key)) {
    mgrid_grid **grid = mgrid_lua_new_grid(L);
    const mgrid_state *s = mgrid_lua_check_state(L, STATE);
    int64_t rank = s->view.rank;
    *grid = mgrid_grid_ref(mgrid_plan_grid(s->plan, key));
    push_mesh(L, 1, *grid, rank);
    return 1;
  }
  mgrid_error e = MGRID_ERROR_INIT;
  const mgrid_group *g = mgrid_state_group(mgrid_lua_check_state(L, STATE), key, &e);
  if (e.status) return mgrid_lua_raise_error(L, &e);
  lua_pushvalue(L, STATE);
  mgrid_lua_push_group_of(L, -1, g);
  if (g) mgrid_lua_keep_answer(L, 1, key);
  return 1;
}

/* Write a line about a group. A finalizer may have closed the State since the last line. */
static size_t write_membership(lua_State *L, const void *of, size_t i,
                               char line[MGRID_LUA_COLUMNS + 1]) {
  const mgrid_group *g = &mgrid_lua_check_state(L, 1)->group[i];
  (void)of;
  return (size_t)snprintf(line, MGRID_LUA_COLUMNS + 1,
                          "  %-20s  position %" PRId64 " of %" PRId64 " in group %" PRId64, g->name,
                          (int64_t)g->position, (int64_t)g->size, (int64_t)g->index);
}

static int state_tostring(lua_State *L) {
  const mgrid_state *s = check_state_box(L, 1)->s;
  if (!s) return lua_pushliteral(L, "State (closed)"), 1;
  int64_t n = (int64_t)s->view.nmembers, comms = (int64_t)mgrid_state_ncomms(s);
  lua_pushfstring(L, "State of rank %I of %I: %I group%s, %I communicator%s",
                  (LUAI_UACINT)s->view.rank, (LUAI_UACINT)s->plan->content.world, (LUAI_UACINT)n,
                  mgrid_s_of(n), (LUAI_UACINT)comms, mgrid_s_of(comms));
  mgrid_lua_add_lines(L, (size_t)n, NULL, write_membership);
  return 1;
}

static int state_next(lua_State *L) { /* state, last name or nil -> name, Group or false */
  mgrid_lua_check_state(L, 1);
  const char *last = lua_isnil(L, 2) ? NULL : luaL_checkstring(L, 2);
  const mgrid_state *s = mgrid_lua_check_state(L, 1);
  int64_t i = last ? mgrid_content_find(&s->plan->content, last) : -1;
  if ((size_t)(i + 1) >= s->plan->content.nentries) return 0;
  const char *name = s->plan->content.entry[i + 1].name;
  const mgrid_group *g = mgrid_state_group(s, name, NULL);
  lua_pushstring(L, name);
  if (g)
    mgrid_lua_push_group_of(L, 1, g);
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

static const luaL_Reg state_fields[] = { { "rank", state_rank },
                                         { "world", state_world },
                                         { "plan", state_plan },
                                         { "machine", state_machine },
                                         { "ncomms", state_ncomms },
                                         { "ngroups", state_ngroups },
                                         { NULL, NULL } };
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
const mgrid_lua_class mgrid_lua_state_class = { MGRID_LUA_STATE, state_fields, state_methods, NULL,
                                                state_meta };

void mgrid_lua_open_state(lua_State *L) {
  static const luaL_Reg kept_meta[] = { { "__gc", mgrid_lua_free_box }, { NULL, NULL } };
  static const mgrid_lua_class kept_class = { MGRID_LUA_KEPT, NULL, NULL, NULL, kept_meta };
  mgrid_lua_open_class(L, &mgrid_lua_state_class);
  mgrid_lua_open_group(L);
  mgrid_lua_open_class(L, &kept_class);
}
