/* SPDX-License-Identifier: MIT
**
** step.c - s, what a step of a recipe gets: its operations, the groups and grids of its rank, and
** the answers it has had.
*/
#include "step/lua/words.h"

#include <string.h>

step_word_step *mgrid_step_lua_check(lua_State *L, int i, step_writer **w) {
  step_word_step *s = luaL_checkudata(L, i, STEP_LUA_STEP);
  *w = mgrid_step_lua_writer(L, s->anchor);
  return s;
}

/* s:groups(family): the groups of this rank in it, of which a cover may have several */
static int groups(lua_State *L) {
  step_writer *w;
  mgrid_step_lua_check(L, 1, &w);
  mgrid_error e = MGRID_ERROR_INIT;
  int entry = mgrid_content_require(&w->step->plan->content, "", luaL_checkstring(L, 2), &e);
  if (entry < 0) return mgrid_lua_raise_error(L, &e);
  lua_getiuservalue(L, 1, 1);
  lua_newtable(L);
  for (int32_t nth = 0;; nth++) {
    mgrid_step_lua_push_group(L, -2, entry, nth);
    if (lua_isnil(L, -1)) break;
    lua_rawseti(L, -2, nth + 1);
    if (!w->step->plan->content.entry[entry].family->overlapping) return 1;
  }
  lua_pop(L, 1);
  return 1;
}

static int step_has(lua_State *L) {
  step_writer *w;
  mgrid_step_lua_check(L, 1, &w);
  lua_pushboolean(L, mgrid_content_find(&w->step->plan->content, luaL_checkstring(L, 2)) >= 0);
  return 1;
}

static int rank(lua_State *L) {
  step_writer *w;
  mgrid_step_lua_check(L, 1, &w);
  return lua_pushinteger(L, mgrid_step_lua_ask(L, w, STEP_ASKED_RANK, 0, 0)), 1;
}

static int world(lua_State *L) {
  step_writer *w;
  mgrid_step_lua_check(L, 1, &w);
  return lua_pushinteger(L, w->step->plan->content.world), 1;
}

/* Raise about a name that is neither an operation nor a family. */
static int step_unknown(lua_State *L, const step_writer *w, const char *key) {
  const mgrid_content *c = &w->step->plan->content;
  const char *known[256];
  size_t n = 0;
  for (size_t i = 0; i < c->nentries && n < 200; i++) known[n++] = c->entry[i].name;
  for (int i = 0; i < STEP_KINDS; i++) known[n++] = mgrid_step_rows[i].name;
  known[n++] = "on";
  return mgrid_lua_unknown(L, "family or operation of a step", key, known, n);
}

/* s.NAME: an operation, a family's group, a grid. Answers are kept in the user value of the
** anchor. */
static int index_step(lua_State *L) {
  step_writer *w;
  mgrid_step_lua_check(L, 1, &w);
  lua_settop(L, 2);
  lua_getiuservalue(L, 1, 1);
  lua_getiuservalue(L, 3, 1); /* the answers */
  lua_pushvalue(L, 2);
  if (lua_rawget(L, 4) != LUA_TNIL) return lua_toboolean(L, -1) ? 1 : (lua_pushnil(L), 1);
  const char *key = luaL_checkstring(L, 2);
  if (strcmp(key, "rank") == 0) return rank(L);
  if (strcmp(key, "world") == 0) return world(L);
  const mgrid_content *c = &w->step->plan->content;
  if (strcmp(key, "groups") == 0) {
    lua_pushcfunction(L, groups);
  } else if (strcmp(key, "has") == 0) {
    lua_pushcfunction(L, step_has);
  } else if (!mgrid_step_lua_push_operation(L, key)) {
    int entry = mgrid_content_find(c, key), grid = entry < 0 ? mgrid_content_grid(c, key) : -1;
    if (entry < 0 && grid < 0) return step_unknown(L, w, key);
    if (entry >= 0)
      mgrid_step_lua_push_group(L, 3, entry, 0);
    else
      mgrid_step_lua_push_grid(L, 3, grid);
  }
  lua_pushvalue(L, 2);
  if (lua_isnil(L, -2))
    lua_pushboolean(L, 0);
  else
    lua_pushvalue(L, -2);
  lua_rawset(L, 4);
  return 1;
}

static int step_tostring(lua_State *L) { return lua_pushliteral(L, "Step"), 1; }

void mgrid_step_lua_open(lua_State *L) {
  static const luaL_Reg meta[] = { { "__index", index_step },
                                   { "__tostring", step_tostring },
                                   { NULL, NULL } };
  static const luaL_Reg none[] = { { NULL, NULL } };
  static const mgrid_lua_class step = { STEP_LUA_STEP, NULL, NULL, NULL, meta };
  static const mgrid_lua_class event_class = { STEP_LUA_EVENT, NULL, NULL, NULL, none };
  mgrid_lua_open_class(L, &step);
  mgrid_lua_open_class(L, &event_class);
  mgrid_lua_open_class(L, &mgrid_step_lua_group_class);
  mgrid_lua_open_class(L, &mgrid_step_lua_peer_class);
  mgrid_lua_open_class(L, &mgrid_step_lua_grid_class);
}

void mgrid_step_lua_push(lua_State *L, step_writer *w, const void *key) {
  step_anchor *a = lua_newuserdatauv(L, sizeof *a, 1);
  *a = (step_anchor){ w, 0 };
  lua_newtable(L);
  lua_setiuservalue(L, -2, 1);
  lua_pushvalue(L, -1);
  lua_rawsetp(L, LUA_REGISTRYINDEX, key);
  step_word_step *s = lua_newuserdatauv(L, sizeof *s, 1);
  *s = (step_word_step){ a, 0 };
  luaL_setmetatable(L, STEP_LUA_STEP);
  lua_insert(L, -2);
  lua_setiuservalue(L, -2, 1);
}
