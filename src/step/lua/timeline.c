/* SPDX-License-Identifier: MIT
**
** timeline.c - Timeline: what each type of ranks did when, as step:price { timeline = ... }
** executed it, or each rank, as state:run_step { timeline = true } measured it. One call for one
** span, without a table, because there are hundreds of thousands.
*/
#include "step/lua/words.h"

#define STEP_LUA_TIMELINE "moongrid.Timeline"

static step_timeline *timeline_check(lua_State *L) {
  return mgrid_lua_check_box(L, 1, STEP_LUA_TIMELINE);
}

void mgrid_step_lua_empty_timeline(step_timeline *t) {
  mgrid_step_records_free(&t->records);
  mgrid_step_price_free(&t->price);
}

static void free_timeline(void *box) {
  step_timeline *t = box;
  mgrid_step_lua_empty_timeline(t);
  mgrid_machine_free(t->machine);
  mgrid_step_free(t->step);
}

step_timeline *mgrid_step_lua_new_timeline(lua_State *L, const mgrid_step *s) {
  step_timeline *t = mgrid_lua_new_box(L, sizeof *t, 0, STEP_LUA_TIMELINE, free_timeline);
  t->step = mgrid_step_ref(s);
  return t;
}

/* Return the type at i, counted from 1. */
static int32_t timeline_check_type(lua_State *L, const step_timeline *t, int i) {
  lua_Integer n = luaL_checkinteger(L, i);
  if (n < 1 || (uint64_t)n > t->price.by.types.n)
    mgrid_lua_raise_as(L, MGRID_OUT_OF_RANGE, "the timeline has types 1 to %zu",
                       t->price.by.types.n);
  return (int32_t)n - 1;
}

static const step_program *timeline_program_of(const step_timeline *t, int32_t type) {
  return &t->step->program[t->step->class[t->price.by.types.type[type].class].program];
}

/* timeline:span(i) -> type, stream, entry, began, moved, ended, the type that was waited for */
static int timeline_span(lua_State *L) {
  const step_timeline *t = timeline_check(L);
  lua_Integer i = luaL_checkinteger(L, 2);
  if (i < 1 || (uint64_t)i > t->records.n)
    return mgrid_lua_raise_as(L, MGRID_OUT_OF_RANGE, "the timeline has spans 1 to %zu",
                              t->records.n);
  const step_record *r = &t->records.record[i - 1];
  lua_pushinteger(L, r->type + 1);
  lua_pushinteger(L, r->stream + 1);
  lua_pushinteger(L, (lua_Integer)r->node + 1);
  lua_pushinteger(L, r->began);
  lua_pushinteger(L, r->moved);
  lua_pushinteger(L, r->ended);
  r->began < r->moved ? lua_pushinteger(L, r->by + 1) : lua_pushnil(L);
  return 7;
}

/* timeline:seconds(type, entry): of one compute or call, without waiting; 0 of other entries, and
** where it was measured */
static int timeline_seconds(lua_State *L) {
  const step_timeline *t = timeline_check(L);
  int32_t type = timeline_check_type(L, t, 2);
  const step_program *p = timeline_program_of(t, type);
  lua_Integer i = luaL_checkinteger(L, 3);
  if (i < 1 || (uint64_t)i > p->n)
    return mgrid_lua_raise_as(L, MGRID_OUT_OF_RANGE, "the program has entries 1 to %zu", p->n);
  const step_node *n = &p->node[i - 1];
  lua_pushnumber(L, !t->machine               ? 0
                    : n->kind == STEP_COMPUTE ? mgrid_step_work_of(&t->price.by, n)
                    : n->slot >= 0 ? mgrid_step_way_of(&t->price.by, type, n, n->bytes).seconds
                                   : 0);
  return 1;
}

/* timeline:type(rank) -> its number in `types` */
static int timeline_type(lua_State *L) {
  const step_timeline *t = timeline_check(L);
  int64_t rank = mgrid_lua_check_integer(L, 2);
  mgrid_error e = MGRID_ERROR_INIT;
  if (mgrid_check_rank(rank, t->step->plan->content.world, &e)) return mgrid_lua_raise_error(L, &e);
  lua_pushinteger(L, (t->machine ? t->price.by.types.of[rank] : rank) + 1);
  return 1;
}

static int timeline_types(lua_State *L) {
  const step_timeline *t = timeline_check(L);
  lua_createtable(L, (int)t->price.by.types.n, 0);
  for (size_t i = 0; i < t->price.by.types.n; i++) {
    const step_type *type = &t->price.by.types.type[i];
    const step_program *p = timeline_program_of(t, (int32_t)i);
    lua_createtable(L, 0, 4);
    mgrid_lua_set_integer(L, "rank", type->first);
    mgrid_lua_set_integer(L, "ranks", type->ranks);
    mgrid_lua_set_integer(L, "program", p - t->step->program + 1);
    lua_createtable(L, p->nstreams, 0);
    for (int k = 0; k < p->nstreams; k++)
      lua_pushstring(L, t->step->word[p->stream[k]]), lua_rawseti(L, -2, k + 1);
    lua_setfield(L, -2, "streams");
    lua_rawseti(L, -2, (lua_Integer)i + 1);
  }
  return 1;
}

static int timeline_repeats(lua_State *L) {
  const step_records *r = &timeline_check(L)->records;
  lua_createtable(L, (int)r->nrepeats, 0);
  for (size_t i = 0; i < r->nrepeats; i++) {
    lua_createtable(L, 0, 3);
    mgrid_lua_set_integer(L, "from", r->repeat[i].from);
    mgrid_lua_set_integer(L, "to", r->repeat[i].to);
    mgrid_lua_set_integer(L, "times", r->repeat[i].times);
    lua_rawseti(L, -2, (lua_Integer)i + 1);
  }
  return 1;
}

static int timeline_cut(lua_State *L) {
  return lua_pushboolean(L, timeline_check(L)->records.full), 1;
}
static int timeline_len(lua_State *L) {
  return lua_pushinteger(L, (lua_Integer)timeline_check(L)->records.n), 1;
}

static int timeline_tostring(lua_State *L) {
  const step_timeline *t = timeline_check(L);
  lua_pushfstring(L, "Timeline of %I spans of %I types of ranks", (LUAI_UACINT)t->records.n,
                  (LUAI_UACINT)t->price.by.types.n);
  return 1;
}

static const luaL_Reg fields[] = { { "types", timeline_types },
                                   { "repeats", timeline_repeats },
                                   { "cut", timeline_cut },
                                   { NULL, NULL } };
static const luaL_Reg methods[] = { { "span", timeline_span },
                                    { "seconds", timeline_seconds },
                                    { "type", timeline_type },
                                    { NULL, NULL } };
static const luaL_Reg meta[] = { { "__len", timeline_len },
                                 { "__tostring", timeline_tostring },
                                 { "__gc", mgrid_lua_free_box },
                                 { NULL, NULL } };
const mgrid_lua_class mgrid_step_lua_timeline_class = { STEP_LUA_TIMELINE, fields, methods, NULL,
                                                        meta };
