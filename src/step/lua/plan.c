/* SPDX-License-Identifier: MIT
**
** plan.c - plan:step() for hosts: the step of a plan's recipe, its verdict, and the program of a rank as tables.
*/
#include "recipe/runtime.h"
#include "step/lua/words.h"

#include <string.h>

#define STEP_LUA_PROGRAMS "moongrid.Programs"

static mgrid_step *check_step(lua_State *L) { return *(mgrid_step **)mgrid_lua_check_box(L, 1, STEP_LUA_PROGRAMS); }

static void free_step(void *box) { mgrid_step_free(*(mgrid_step **)box); }

mgrid_step **mgrid_step_lua_new(lua_State *L) {
  return mgrid_lua_new_box(L, sizeof(mgrid_step *), 0, STEP_LUA_PROGRAMS, free_step);
}

/* plan:step([file]) -> Programs. The plan is of a Recipe, which is its user value. */
static int plan_step(lua_State *L) {
  mgrid_plan *p = mgrid_lua_check_plan(L, 1);
  const char *file = luaL_optstring(L, 2, NULL);
  mgrid_error e = MGRID_ERROR_INIT;
  lua_settop(L, 2);
  lua_getiuservalue(L, 1, 1);
  mgrid_runtime **rt = luaL_testudata(L, 3, MGRID_LUA_RECIPE);
  if (!rt || !*rt)
    return mgrid_lua_raise_as(L, MGRID_NOT_NOW,
                              "the step of a plan is its recipe's: recipe:plan(...) makes one that has it");
  step_request r = { .plan = p, .file = file };
  mgrid_step **box = mgrid_step_lua_new(L);
  if (mgrid_step_lua_serve(*rt, &r, &e)) {
    if (!e.line) return mgrid_lua_raise_error(L, &e);
    lua_pushstring(L, e.message);
    return lua_error(L);
  }
  *box = r.made;
  return 1;
}

static int programs_classes(lua_State *L) {
  return lua_pushinteger(L, (lua_Integer)mgrid_step_nclasses(check_step(L))), 1;
}

static int programs_digest(lua_State *L) {
  char digest[33];
  mgrid_step_digest(check_step(L), digest);
  return lua_pushstring(L, digest), 1;
}

/* programs:class(rank) -> integer, from 0 on */
static int programs_class(lua_State *L) {
  int64_t class = mgrid_step_class(check_step(L), mgrid_lua_check_integer(L, 2));
  return class < 0 ? lua_pushnil(L) : lua_pushinteger(L, class), 1;
}

/* programs:prove(["nccl" | "mpi"]) -> true | false, verdict, the counterexample as text */
static int programs_prove(lua_State *L) {
  static const char *const known[] = { "nccl", "mpi" };
  mgrid_step              *s = check_step(L);
  const char              *rules = luaL_optstring(L, 2, known[0]);
  mgrid_error              e = MGRID_ERROR_INIT;
  step_verdict             v;
  bool                     mpi = strcmp(rules, known[1]) == 0;
  if (!mpi && strcmp(rules, known[0]) != 0) return mgrid_lua_unknown(L, "rules of a step", rules, known, 2);
  if (mgrid_step_conclude(s, mpi ? STEP_BLOCKING : STEP_NCCL, 0, &v, &e)) return mgrid_lua_raise_error(L, &e);
  lua_pushboolean(L, v.told == STEP_PROVED);
  if (v.told == STEP_PROVED) return 1;
  mgrid_text why = { 0 };
  mgrid_step_verdict_text(s, &v, &why);
  lua_pushstring(L, mgrid_step_told_names[v.told]);
  mgrid_lua_push_text(L, &why);
  return 3;
}

static void set_text(lua_State *L, const char *name, const char *text) {
  lua_pushstring(L, text);
  lua_setfield(L, -2, name);
}

static void set_number(lua_State *L, const char *name, int64_t n) {
  lua_pushinteger(L, n);
  lua_setfield(L, -2, name);
}

/* What a compute says of itself. */
static void put_work(lua_State *L, const step_node *n) {
  lua_pushnumber(L, n->flops);
  lua_setfield(L, -2, "flops");
  if (n->bytes > 0) set_number(L, "bytes", n->bytes);
  if (n->seconds > 0) lua_pushnumber(L, n->seconds), lua_setfield(L, -2, "seconds");
}

/* Push the entries from `at` to `end` as a list. */
static void push_entries(lua_State *L, const mgrid_step *s, const step_program *p, uint32_t at, uint32_t end) {
  lua_newtable(L);
  mgrid_lua_stack(L, 8);
  for (lua_Integer k = 1; at < end; at = p->node[at].end, k++) {
    const step_node      *n = &p->node[at];
    const step_operation *o = &mgrid_step_rows[n->kind];
    lua_createtable(L, 0, 8);
    set_text(L, "operation", o->name);
    if (n->slot >= 0) set_text(L, "family", mgrid_step_family_of(s, n));
    if (n->stream) set_text(L, "stream", s->word[p->stream[n->stream]]);
    if (o->sized && n->kind != STEP_SENDRECV) set_number(L, "bytes", n->bytes);
    if (n->type) set_text(L, "type", s->word[n->type]);
    if (n->name) set_text(L, n->slot >= 0 ? "by_position" : "name", s->word[n->name]);
    if (o->rooted) set_number(L, "root", n->number);
    if (n->kind == STEP_SEND) set_number(L, "to", n->number);
    if (n->kind == STEP_RECV) set_number(L, "from", n->number);
    if (n->kind == STEP_LOOP) set_number(L, "times", n->number);
    if (n->kind == STEP_COMPUTE) put_work(L, n);
    if (o->role == STEP_ORDER && n->other >= 0)
      set_text(L, "waits_for", s->word[p->stream[n->listed ? p->node[n->other].stream : n->other]]);
    if (n->line) set_number(L, "line", n->line);
    if (o->role == STEP_BLOCK) {
      push_entries(L, s, p, at + 1, n->end);
      lua_setfield(L, -2, "body");
    }
    lua_rawseti(L, -2, k);
  }
}

/* programs:program(rank) -> list of entries; a loop or group has its own in `body` */
static int programs_program(lua_State *L) {
  mgrid_step *s = check_step(L);
  int64_t     rank = mgrid_lua_check_integer(L, 2);
  mgrid_error e = MGRID_ERROR_INIT;
  if (mgrid_check_rank(rank, s->plan->content.world, &e)) return mgrid_lua_raise_error(L, &e);
  const step_program *p = &s->program[s->class[s->of[rank]].program];
  push_entries(L, s, p, 0, (uint32_t)p->n);
  return 1;
}

static int programs_price(lua_State *L) { return mgrid_step_lua_price(L, check_step(L)); }

static int programs_tostring(lua_State *L) {
  const mgrid_step *s = check_step(L);
  lua_pushfstring(L, "Programs of %I ranks: %d classes", (LUAI_UACINT)s->plan->content.world, (int)s->nclasses);
  return 1;
}

static const luaL_Reg fields[] = { { "classes", programs_classes }, { "digest", programs_digest }, { NULL, NULL } };
static const luaL_Reg methods[] = { { "class", programs_class },
                                    { "prove", programs_prove },
                                    { "program", programs_program },
                                    { "price", programs_price },
                                    { NULL, NULL } };
static const luaL_Reg meta[] = { { "__tostring", programs_tostring }, { "__gc", mgrid_lua_free_box }, { NULL, NULL } };
static const mgrid_lua_class class = { STEP_LUA_PROGRAMS, fields, methods, NULL, meta };

void mgrid_step_lua_open_host(lua_State *L) { mgrid_lua_open_class(L, &class); }

const luaL_Reg mgrid_step_lua_plan_methods[] = { { "step", plan_step }, { NULL, NULL } };
