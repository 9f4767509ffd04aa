/* SPDX-License-Identifier: MIT
**
** groups.c - the groups, members and grids that a step sees. They answer as those of a state do,
** and note what was asked. A member is a position in its group: its rank, which would differ for
** every rank, only on request.
*/
#include "step/lua/words.h"

#include <string.h>

step_writer *mgrid_step_lua_writer(lua_State *L, const step_anchor *a) {
  if (!a->writer)
    mgrid_lua_raise(
        L, "the evaluation of the step is over; s and its groups are of that evaluation alone");
  return a->writer;
}

int64_t mgrid_step_lua_ask(lua_State *L, step_writer *w, step_asked asked, int32_t of,
                           int32_t nth) {
  step_read read = { (int32_t)asked, of, nth };
  int64_t answer;
  if (!mgrid_step_ask(w, &read, &answer)) mgrid_lua_oom(L);
  return answer;
}

static step_word_group *groups_check_group(lua_State *L, step_writer **w) {
  step_word_group *g = luaL_checkudata(L, 1, STEP_LUA_GROUP);
  *w = mgrid_step_lua_writer(L, g->anchor);
  return g;
}

/* Push a userdata with the anchor at that index. */
static void *new_word(lua_State *L, int anchor, size_t size, const char *class) {
  anchor = lua_absindex(L, anchor);
  void *word = lua_newuserdatauv(L, size, 1);
  luaL_setmetatable(L, class);
  lua_pushvalue(L, anchor);
  lua_setiuservalue(L, -2, 1);
  return word;
}

void mgrid_step_lua_push_group(lua_State *L, int anchor, int32_t entry, int32_t nth) {
  step_anchor *a = lua_touserdata(L, anchor);
  step_writer *w = mgrid_step_lua_writer(L, a);
  int64_t size = mgrid_step_lua_ask(L, w, STEP_ASKED_SIZE, entry, nth);
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
  return mgrid_step_lua_ask(L, w, STEP_ASKED_POSITION, g->entry, g->nth);
}

static int groups_group_position(lua_State *L) {
  step_writer *w;
  const step_word_group *g = groups_check_group(L, &w);
  return lua_pushinteger(L, position_of(L, w, g)), 1;
}

static int groups_group_size(lua_State *L) {
  step_writer *w;
  return lua_pushinteger(L, groups_check_group(L, &w)->size), 1;
}

static int groups_group_index(lua_State *L) {
  step_writer *w;
  step_word_group *g = groups_check_group(L, &w);
  return lua_pushinteger(L, mgrid_step_lua_ask(L, w, STEP_ASKED_INDEX, g->entry, g->nth)), 1;
}

static int groups_group_name(lua_State *L) {
  step_writer *w;
  step_word_group *g = groups_check_group(L, &w);
  return lua_pushstring(L, w->step->plan->content.entry[g->entry].name), 1;
}

/* Push the member at a position, nil beyond the ends. */
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

static int groups_group_next(lua_State *L) { return beside(L, 1); }
static int groups_group_prev(lua_State *L) { return beside(L, -1); }

static int groups_group_at(lua_State *L) {
  step_writer *w;
  step_word_group *g = groups_check_group(L, &w);
  int64_t position = mgrid_lua_check_integer(L, 2);
  return push_peer(L, g, position < 0 ? position + g->size : position);
}

static int groups_group_first(lua_State *L) {
  step_writer *w;
  return push_peer(L, groups_check_group(L, &w), 0);
}

static int groups_group_last(lua_State *L) {
  step_writer *w;
  step_word_group *g = groups_check_group(L, &w);
  return push_peer(L, g, g->size - 1);
}

static int groups_group_tostring(lua_State *L) {
  step_word_group *g = luaL_checkudata(L, 1, STEP_LUA_GROUP);
  step_writer *w = g->anchor->writer;
  lua_pushfstring(L, "Group %s of %I",
                  w ? w->step->plan->content.entry[g->entry].name : "of a step that is over",
                  (LUAI_UACINT)g->size);
  return 1;
}

static const luaL_Reg group_fields[] = { { "position", groups_group_position },
                                         { "size", groups_group_size },
                                         { "index", groups_group_index },
                                         { "name", groups_group_name },
                                         { "first", groups_group_first },
                                         { "last", groups_group_last },
                                         { NULL, NULL } };
static const luaL_Reg group_methods[] = { { "next", groups_group_next },
                                          { "prev", groups_group_prev },
                                          { "at", groups_group_at },
                                          { NULL, NULL } };
static const luaL_Reg group_meta[] = { { "__len", groups_group_size },
                                       { "__tostring", groups_group_tostring },
                                       { NULL, NULL } };
const mgrid_lua_class mgrid_step_lua_group_class = { STEP_LUA_GROUP, group_fields, group_methods,
                                                     NULL, group_meta };

/* ----------------------------------------------------------------- a member */

static int peer_position(lua_State *L) {
  return lua_pushinteger(L, ((step_word_peer *)luaL_checkudata(L, 1, STEP_LUA_PEER))->position), 1;
}

/* Its rank differs from group to group: this reads the index of the group. */
static int peer_rank(lua_State *L) {
  step_word_peer *p = luaL_checkudata(L, 1, STEP_LUA_PEER);
  step_writer *w = mgrid_step_lua_writer(L, p->anchor);
  const mgrid_family *f = w->step->plan->content.entry[p->entry].family;
  int64_t group = mgrid_step_lua_ask(L, w, STEP_ASKED_INDEX, p->entry, p->nth);
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
const mgrid_lua_class mgrid_step_lua_peer_class = { STEP_LUA_PEER, peer_fields, NULL, NULL,
                                                    peer_meta };

/* ------------------------------------------------------------------- a grid */

typedef struct step_word_grid {
  step_anchor *anchor;
  int32_t grid;
} step_word_grid;

void mgrid_step_lua_push_grid(lua_State *L, int anchor, int32_t grid) {
  step_anchor *a = lua_touserdata(L, anchor);
  *(step_word_grid *)new_word(L, anchor, sizeof(step_word_grid), STEP_LUA_GRID) =
      (step_word_grid){ a, grid };
}

/* s.dense.tp: the coordinate of this rank, nil outside of the grid */
static int groups_grid_index(lua_State *L) {
  step_word_grid *m = luaL_checkudata(L, 1, STEP_LUA_GRID);
  step_writer *w = mgrid_step_lua_writer(L, m->anchor);
  const mgrid_grid *g = w->step->plan->content.grid[m->grid].grid;
  const char *key = luaL_checkstring(L, 2), *known[MGRID_DIMS_MAX];
  for (size_t i = 0; i < g->n; i++) {
    known[i] = g->axis[i].name;
    if (strcmp(known[i], key) != 0) continue;
    int64_t coord = mgrid_step_lua_ask(L, w, STEP_ASKED_COORD, m->grid, (int32_t)i);
    return coord < 0 ? lua_pushnil(L) : lua_pushinteger(L, coord), 1;
  }
  return mgrid_lua_unknown(L, "dim", key, known, g->n);
}

static const luaL_Reg grid_meta[] = { { "__index", groups_grid_index }, { NULL, NULL } };
const mgrid_lua_class mgrid_step_lua_grid_class = { STEP_LUA_GRID, NULL, NULL, NULL, grid_meta };
