/* SPDX-License-Identifier: MIT
**
** step_words.c - the object s, the argument of a recipe's step function: its operations, and the
** groups, members and grids of the rank. These objects have some fields of the objects of a state, and each read is noted. A
** member is only a position in its group, which is the same for many ranks. The rank of the member
** differs from group to group, so it is read only if the step asks for it.
*/
#include "step/lua/step_words.h"

#include <string.h>

/* =================================================== groups, members, grids */

/* Return the writer of an anchor. Raise if the evaluation is over. */
static step_writer *writer_of(lua_State *L, const step_anchor *a) {
  if (!a->writer)
    mgrid_lua_raise(
        L, "the evaluation of the step is over; s and its groups can be used only during it");
  return a->writer;
}

/* Return the answer for the rank whose program is being written, and note the read. It may
** raise. */
static int64_t ask(lua_State *L, step_writer *w, step_asked asked, int32_t of, int32_t nth) {
  step_read read = { (int32_t)asked, of, nth };
  int64_t answer;
  if (!mgrid_step_ask(w, &read, &answer)) mgrid_lua_oom(L);
  return answer;
}

static step_word_group *groups_check_group(lua_State *L, step_writer **w) {
  step_word_group *g = luaL_checkudata(L, 1, STEP_LUA_GROUP);
  *w = writer_of(L, g->anchor);
  return g;
}

/* Push a userdata of a class. Its user value is the anchor at index `anchor`. */
static void *new_word(lua_State *L, int anchor, size_t size, const char *class) {
  anchor = lua_absindex(L, anchor);
  void *word = lua_newuserdatauv(L, size, 1);
  luaL_setmetatable(L, class);
  lua_pushvalue(L, anchor);
  lua_setiuservalue(L, -2, 1);
  return word;
}

/* Push the rank's nth group in a family, or nil if there is none. `anchor`: index of the anchor. */
static void push_step_group(lua_State *L, int anchor, int32_t entry, int32_t nth) {
  step_anchor *a = lua_touserdata(L, anchor);
  step_writer *w = writer_of(L, a);
  int64_t size = ask(L, w, STEP_ASKED_SIZE, entry, nth);
  if (size < 0) {
    lua_pushnil(L);
    return;
  }
  int32_t slot = mgrid_step_slot_of(w->step, entry, nth);
  if (slot < 0) mgrid_lua_oom(L);
  *(step_word_group *)new_word(L, anchor, sizeof(step_word_group), STEP_LUA_GROUP) =
      (step_word_group){ a, entry, nth, slot, size };
}

/* ------------------------------------------------------------------ a group */

static int64_t position_of(lua_State *L, step_writer *w, const step_word_group *g) {
  return ask(L, w, STEP_ASKED_POSITION, g->entry, g->nth);
}

static int step_group_position(lua_State *L) {
  step_writer *w;
  const step_word_group *g = groups_check_group(L, &w);
  return lua_pushinteger(L, position_of(L, w, g)), 1;
}

static int step_group_size(lua_State *L) {
  step_writer *w;
  return lua_pushinteger(L, groups_check_group(L, &w)->size), 1;
}

static int step_group_index(lua_State *L) {
  step_writer *w;
  step_word_group *g = groups_check_group(L, &w);
  return lua_pushinteger(L, ask(L, w, STEP_ASKED_INDEX, g->entry, g->nth)), 1;
}

static int step_group_name(lua_State *L) {
  step_writer *w;
  step_word_group *g = groups_check_group(L, &w);
  return lua_pushstring(L, w->step->plan->content.entry[g->entry].name), 1;
}

/* Push the member at a position, or nil beyond the ends of the group. */
static int push_peer(lua_State *L, const step_word_group *g, int64_t position) {
  if (position < 0 || position >= g->size) return lua_pushnil(L), 1;
  lua_getiuservalue(L, 1, 1);
  *(step_word_peer *)new_word(L, -1, sizeof(step_word_peer), STEP_LUA_PEER) =
      (step_word_peer){ g->anchor, g->entry, g->nth, position };
  return 1;
}

static int beside(lua_State *L, int64_t by) {
  step_writer *w;
  step_word_group *g = groups_check_group(L, &w);
  int64_t at = position_of(L, w, g) + by;
  if (mgrid_lua_check_wrap(L, 2)) at = (at + g->size) % g->size;
  return push_peer(L, g, at);
}

static int step_group_next(lua_State *L) { return beside(L, 1); }
static int step_group_prev(lua_State *L) { return beside(L, -1); }

static int step_group_at(lua_State *L) {
  step_writer *w;
  step_word_group *g = groups_check_group(L, &w);
  int64_t position = mgrid_lua_check_integer(L, 2);
  return push_peer(L, g, position < 0 ? position + g->size : position);
}

static int step_group_first(lua_State *L) {
  step_writer *w;
  return push_peer(L, groups_check_group(L, &w), 0);
}

static int step_group_last(lua_State *L) {
  step_writer *w;
  step_word_group *g = groups_check_group(L, &w);
  return push_peer(L, g, g->size - 1);
}

static int step_group_tostring(lua_State *L) {
  step_word_group *g = luaL_checkudata(L, 1, STEP_LUA_GROUP);
  step_writer *w = g->anchor->writer;
  lua_pushfstring(L, "Group %s of %I",
                  w ? w->step->plan->content.entry[g->entry].name : "of a step that is over",
                  (LUAI_UACINT)g->size);
  return 1;
}

static const luaL_Reg group_fields[] = { { "position", step_group_position },
                                         { "size", step_group_size },
                                         { "index", step_group_index },
                                         { "name", step_group_name },
                                         { "first", step_group_first },
                                         { "last", step_group_last },
                                         { NULL, NULL } };
static const luaL_Reg group_methods[] = {
  { "next", step_group_next }, { "prev", step_group_prev }, { "at", step_group_at }, { NULL, NULL }
};
static const luaL_Reg group_meta[] = { { "__len", step_group_size },
                                       { "__tostring", step_group_tostring },
                                       { NULL, NULL } };
static const mgrid_lua_class group_class = { STEP_LUA_GROUP, group_fields, group_methods, NULL,
                                             group_meta };

/* ----------------------------------------------------------------- a member */

static int peer_position(lua_State *L) {
  return lua_pushinteger(L, ((step_word_peer *)luaL_checkudata(L, 1, STEP_LUA_PEER))->position), 1;
}

/* The rank of a member differs from group to group, so this reads the index of the group. */
static int peer_rank(lua_State *L) {
  step_word_peer *p = luaL_checkudata(L, 1, STEP_LUA_PEER);
  step_writer *w = writer_of(L, p->anchor);
  const mgrid_family *f = w->step->plan->content.entry[p->entry].family;
  int64_t group = ask(L, w, STEP_ASKED_INDEX, p->entry, p->nth);
  return lua_pushinteger(L, f->form->rank(f, group, p->position)), 1;
}

static int peer_tostring(lua_State *L) {
  lua_pushfstring(L, "position %I",
                  (LUAI_UACINT)((step_word_peer *)luaL_checkudata(L, 1, STEP_LUA_PEER))->position);
  return 1;
}

static int peer_eq(lua_State *L) {
  step_word_peer *a = luaL_testudata(L, 1, STEP_LUA_PEER), *b = luaL_testudata(L, 2, STEP_LUA_PEER);
  lua_pushboolean(L,
                  a && b && a->entry == b->entry && a->nth == b->nth && a->position == b->position);
  return 1;
}

static const luaL_Reg peer_fields[] = { { "position", peer_position },
                                        { "rank", peer_rank },
                                        { NULL, NULL } };
static const luaL_Reg peer_meta[] = { { "__tostring", peer_tostring },
                                      { "__eq", peer_eq },
                                      { NULL, NULL } };
static const mgrid_lua_class peer_class = { STEP_LUA_PEER, peer_fields, NULL, NULL, peer_meta };

/* ------------------------------------------------------------------- a grid */

typedef struct step_word_grid {
  step_anchor *anchor;
  int32_t grid;
} step_word_grid;

static void push_step_grid(lua_State *L, int anchor, int32_t grid) {
  step_anchor *a = lua_touserdata(L, anchor);
  *(step_word_grid *)new_word(L, anchor, sizeof(step_word_grid), STEP_LUA_GRID) =
      (step_word_grid){ a, grid };
}

/* s.dense.tp: the coordinate of the rank, or nil outside the grid */
static int step_grid_index(lua_State *L) {
  step_word_grid *m = luaL_checkudata(L, 1, STEP_LUA_GRID);
  step_writer *w = writer_of(L, m->anchor);
  const mgrid_grid *g = w->step->plan->content.grid[m->grid].grid;
  const char *key = luaL_checkstring(L, 2), *known[MGRID_DIMS_MAX];
  for (size_t i = 0; i < g->n; i++) {
    known[i] = g->axis[i].name;
    if (strcmp(known[i], key) != 0) continue;
    int64_t coord = ask(L, w, STEP_ASKED_COORD, m->grid, (int32_t)i);
    return coord < 0 ? lua_pushnil(L) : lua_pushinteger(L, coord), 1;
  }
  return mgrid_lua_unknown(L, "dim", key, known, g->n);
}

static const luaL_Reg grid_meta[] = { { "__index", step_grid_index }, { NULL, NULL } };
static const mgrid_lua_class grid_class = { STEP_LUA_GRID, NULL, NULL, NULL, grid_meta };

/* ======================================================================== s */

step_word_step *mgrid_step_lua_check(lua_State *L, int i, step_writer **w) {
  step_word_step *s = luaL_checkudata(L, i, STEP_LUA_STEP);
  *w = writer_of(L, s->anchor);
  return s;
}

/* s:groups(family): the rank's groups in the family; a cover may have several */
static int groups(lua_State *L) {
  step_writer *w;
  mgrid_step_lua_check(L, 1, &w);
  mgrid_error e = MGRID_ERROR_INIT;
  int entry = mgrid_content_require(&w->step->plan->content, "", luaL_checkstring(L, 2), &e);
  if (entry < 0) return mgrid_lua_raise_error(L, &e);
  lua_getiuservalue(L, 1, 1);
  lua_newtable(L);
  for (int32_t nth = 0;; nth++) {
    push_step_group(L, -2, entry, nth);
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
  return lua_pushinteger(L, ask(L, w, STEP_ASKED_RANK, 0, 0)), 1;
}

static int world(lua_State *L) {
  step_writer *w;
  mgrid_step_lua_check(L, 1, &w);
  return lua_pushinteger(L, w->step->plan->content.world), 1;
}

/* Raise the error about an unknown name. */
static int step_unknown(lua_State *L, const step_writer *w, const char *key) {
  const mgrid_content *c = &w->step->plan->content;
  const char *known[256];
  size_t n = 0;
  for (size_t i = 0; i < c->nentries && n < 200; i++) known[n++] = c->entry[i].name;
  for (int i = 0; i < STEP_KINDS; i++) known[n++] = mgrid_step_rows[i].name;
  known[n++] = "on";
  return mgrid_lua_unknown(L, "family or operation of a step", key, known, n);
}

/* s.NAME: an operation, the group in a family, or a grid. The user value of the anchor is a table
** that keeps these objects by name. */
static int index_step(lua_State *L) {
  step_writer *w;

  mgrid_step_lua_check(L, 1, &w);
  lua_settop(L, 2);
  lua_getiuservalue(L, 1, 1);
  lua_getiuservalue(L, 3, 1); /* the results so far */
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
      push_step_group(L, 3, entry, 0);
    else
      push_step_grid(L, 3, grid);
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
  mgrid_lua_open_class(L, &group_class);
  mgrid_lua_open_class(L, &peer_class);
  mgrid_lua_open_class(L, &grid_class);
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
