/* SPDX-License-Identifier: MIT
**
** programs.c - plan:step() and the class Programs for hosts: the step of a plan, its verdict, and
** the program of each rank, as tables and as text.
*/
#include "recipe/runtime.h"
#include "recipe/values.h"
#include "step/lua/step_words.h"

#include <inttypes.h>
#include <string.h>

#define STEP_LUA_PROGRAMS "moongrid.Programs"

static mgrid_step *check_step(lua_State *L) {
  return *(mgrid_step **)mgrid_lua_check_box(L, 1, STEP_LUA_PROGRAMS);
}

static void free_step(void *box) { mgrid_step_free(*(mgrid_step **)box); }

mgrid_step **mgrid_step_lua_new(lua_State *L) {
  return mgrid_lua_new_box(L, sizeof(mgrid_step *), 0, STEP_LUA_PROGRAMS, free_step);
}

/* plan:has_step() -> whether plan:step() can work: the plan's recipe has a step, and the world is
** not too large */
static int plan_has_step(lua_State *L) {
  step_request r = { .plan = mgrid_lua_check_plan(L, 1), .ask = true };
  mgrid_error e = MGRID_ERROR_INIT;
  lua_getiuservalue(L, 1, 1);
  mgrid_runtime **rt = luaL_testudata(L, -1, MGRID_LUA_RECIPE);
  bool may = rt && *rt && r.plan->content.world <= STEP_WORLD_MAX;
  if (may && mgrid_step_lua_serve(*rt, &r, &e)) return mgrid_lua_raise_runtime(L, &e);
  lua_pushboolean(L, may && !r.none);
  return 1;
}

/* plan:step([file]) -> Programs. The plan has its Recipe as a user value. */
static int plan_step(lua_State *L) {
  mgrid_plan *p = mgrid_lua_check_plan(L, 1);
  const char *file = luaL_optstring(L, 2, NULL);
  mgrid_error e = MGRID_ERROR_INIT;
  lua_settop(L, 2);
  lua_getiuservalue(L, 1, 1);
  mgrid_runtime **rt = luaL_testudata(L, 3, MGRID_LUA_RECIPE);
  if (!rt || !*rt)
    return mgrid_lua_raise_as(
        L, MGRID_NOT_NOW,
        "the plan has no recipe, and so no step: recipe:plan(...) makes a plan with its recipe");
  step_request r = { .plan = p, .file = file };
  mgrid_step **box = mgrid_step_lua_new(L);
  if (mgrid_step_lua_serve(*rt, &r, &e)) return mgrid_lua_raise_runtime(L, &e);
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

static int programs_count(lua_State *L) {
  return lua_pushinteger(L, (lua_Integer)check_step(L)->nprograms), 1;
}

static int programs_operations(lua_State *L) {
  return lua_pushinteger(L, mgrid_step_total(check_step(L))), 1;
}

/* programs.reads -> a list of the questions to which ranks give different answers */
static int programs_reads(lua_State *L) {
  static const char *const what[] = { [STEP_ASKED_SIZE] = "size",
                                      [STEP_ASKED_POSITION] = "position",
                                      [STEP_ASKED_INDEX] = "index",
                                      [STEP_ASKED_RANK] = "rank" };
  const mgrid_step *s = check_step(L);

  lua_createtable(L, (int)s->reads.n, 0);
  for (size_t i = 0; i < s->reads.n; i++) {
    const step_read *r = mgrid_step_read_of(s, i);
    lua_createtable(L, 0, 3);
    if (r->asked == STEP_ASKED_COORD) {
      mgrid_lua_set_string(L, "grid", s->plan->content.grid[r->of].name);
      mgrid_lua_set_string(L, "what", s->plan->content.grid[r->of].grid->axis[r->nth].name);
    } else {
      mgrid_lua_set_string(L, "what", what[r->asked]);
      if (r->asked != STEP_ASKED_RANK) {
        mgrid_lua_set_string(L, "family", s->plan->content.entry[r->of].name);
        mgrid_lua_set_integer(L, "nth", r->nth);
      }
    }
    lua_rawseti(L, -2, (lua_Integer)i + 1);
  }
  return 1;
}

/* programs:class(rank) -> the number of the rank's class, from 0 on; the number of ranks in the
** class | nil for a number that is not a rank */
static int programs_class(lua_State *L) {
  const mgrid_step *s = check_step(L);
  int64_t class = mgrid_step_class(s, mgrid_lua_check_integer(L, 2));
  if (class < 0) return lua_pushnil(L), 1;
  lua_pushinteger(L, class);
  lua_pushinteger(L, s->class[class].ranks);
  return 2;
}

step_rules mgrid_step_lua_rules(lua_State *L, int i) {
  static const char *const known[] = { "nccl", "mpi" };
  const char *rules = luaL_optstring(L, i, known[0]);
  if (strcmp(rules, known[0]) == 0) return STEP_NCCL;
  if (strcmp(rules, known[1]) != 0) mgrid_lua_unknown(L, "rules of a step", rules, known, 2);
  return STEP_BLOCKING;
}

/* Push the counterexample, a list of ranks. */
static void push_waiting(lua_State *L, const mgrid_step *s, const step_verdict *v) {
  lua_createtable(L, (int)v->n, 0);
  for (size_t i = 0; i < v->n; i++) {
    const step_waiting *w = &v->waiting[i];
    const step_program *p = &s->program[w->program];
    lua_createtable(L, 0, 7);
    mgrid_lua_set_integer(L, "rank", w->rank);
    if (w->waits_for >= 0) mgrid_lua_set_integer(L, "waits_for", w->waits_for);
    if (w->node < p->n) {
      const step_node *n = &p->node[w->node];
      mgrid_lua_set_string(L, "operation", w->creates ? "create" : mgrid_step_rows[n->kind].name);
      mgrid_lua_set_string(L, "family", mgrid_step_family_of(s, n));
      mgrid_lua_set_string(L, "file", s->word[n->file]);
      mgrid_lua_set_integer(L, "line", n->line);
      mgrid_lua_set_integer(L, "bytes", w->creates ? 0 : n->bytes);
    }
    lua_rawseti(L, -2, (lua_Integer)i + 1);
  }
}

/* Push the pairs of families about which the proof assumes something. */
static int push_assumes(lua_State *L, const mgrid_step *s, const step_verdict *v) {
  lua_createtable(L, (int)v->nassumes, 0);
  for (size_t i = 0; i < v->nassumes; i++) {
    lua_createtable(L, 2, 0);
    for (int k = 0; k < 2; k++) {
      lua_pushstring(L, s->plan->content.entry[k ? v->assumes[i].b : v->assumes[i].a].name);
      lua_rawseti(L, -2, k + 1);
    }
    lua_rawseti(L, -2, (lua_Integer)i + 1);
  }
  return 1;
}

/* programs:prove(["nccl" | "mpi" [, eager]]) -> true [, the assumed pairs of families] | false,
** verdict, the counterexample as text, and as a list */
static int programs_prove(lua_State *L) {
  const mgrid_step *s = check_step(L);
  step_rules rules = mgrid_step_lua_rules(L, 2);
  int64_t eager = luaL_optinteger(L, 3, 0);
  mgrid_error e = MGRID_ERROR_INIT;
  step_verdict v;
  if (eager < 0)
    return mgrid_lua_raise_as(L, MGRID_BAD_VALUE, "eager is a number of bytes, not %" PRId64,
                              eager);
  if (mgrid_step_conclude(s, rules, eager, &v, &e)) return mgrid_lua_raise_error(L, &e);
  lua_pushboolean(L, v.told == STEP_PROVED);
  if (v.told == STEP_PROVED) return v.nassumes ? 1 + push_assumes(L, s, &v) : 1;
  lua_pushstring(L, mgrid_step_verdict_names[v.told]);
  mgrid_text why = { 0 };
  mgrid_step_verdict_text(s, &v, &why);
  mgrid_lua_push_text(L, &why);
  push_waiting(L, s, &v);
  return 4;
}

/* programs:sums() -> { families, memory }: for each family the most calls and the most bytes of any
** rank; the most memory of any rank */
static int programs_sums(lua_State *L) {
  mgrid_error e = MGRID_ERROR_INIT;
  json_t *all = mgrid_step_report(check_step(L), NULL, &e);
  if (!all) return mgrid_lua_raise_error(L, &e);
  return mgrid_take_json(L, all) ? lua_error(L) : 1;
}

/* programs:traffic() -> "tp = 12 B all_reduce; dp = 3 B send", means over the members of a
** family */
static int programs_traffic(lua_State *L) {
  mgrid_text t = { 0 };
  mgrid_error e = MGRID_ERROR_INIT;
  if (!mgrid_step_sends(check_step(L), &t, &e)) return mgrid_lua_push_text(L, &t), 1;
  mgrid_text_free(&t);
  return mgrid_lua_raise_error(L, &e);
}

/* Set the fields of a compute. */
static void put_work(lua_State *L, const step_node *n) {
  mgrid_lua_set_number(L, "flops", n->flops);
  if (n->bytes > 0) mgrid_lua_set_integer(L, "bytes", n->bytes);
  if (n->seconds > 0) mgrid_lua_set_number(L, "seconds", n->seconds);
}

/* Push an entry without its contents. */
static void push_entry(lua_State *L, const mgrid_step *s, const step_program *p, uint32_t at) {
  const step_node *n = &p->node[at];
  const step_operation *o = &mgrid_step_rows[n->kind];
  lua_createtable(L, 0, 8);
  mgrid_lua_set_string(L, "operation", o->name);
  if (n->slot >= 0) mgrid_lua_set_string(L, "family", mgrid_step_family_of(s, n));
  if (n->slot >= 0 && s->slot[n->slot].nth) mgrid_lua_set_integer(L, "nth", s->slot[n->slot].nth);
  if (n->stream) mgrid_lua_set_string(L, "stream", s->word[p->stream[n->stream]]);
  if (o->sized && n->kind != STEP_SENDRECV) mgrid_lua_set_integer(L, "bytes", n->bytes);
  if (n->type) mgrid_lua_set_string(L, "type", s->word[n->type]);
  if (n->name) mgrid_lua_set_string(L, n->slot >= 0 ? "by_position" : "name", s->word[n->name]);
  if (o->rooted) mgrid_lua_set_integer(L, "root", n->number);
  if (n->kind == STEP_SEND) mgrid_lua_set_integer(L, "to", n->number);
  if (n->kind == STEP_RECV) mgrid_lua_set_integer(L, "from", n->number);
  if (n->kind == STEP_LOOP) mgrid_lua_set_integer(L, "times", n->number);
  if (n->kind == STEP_COMPUTE) put_work(L, n);
  if (o->role == STEP_ORDER && n->other >= 0)
    mgrid_lua_set_string(L, "waits_for",
                         s->word[p->stream[n->listed ? p->node[n->other].stream : n->other]]);
  if (n->line) mgrid_lua_set_integer(L, "line", n->line);
}

/* Push the entries from `at` to `end` as a list. */
static void push_entries(lua_State *L, const mgrid_step *s, const step_program *p, uint32_t at,
                         uint32_t end) {
  lua_newtable(L);
  mgrid_lua_stack(L, 8);
  for (lua_Integer k = 1; at < end; at = p->node[at].end, k++) {
    push_entry(L, s, p, at);
    if (mgrid_step_rows[p->node[at].kind].role == STEP_BLOCK) {
      push_entries(L, s, p, at + 1, p->node[at].end);
      lua_setfield(L, -2, "body");
    }
    lua_rawseti(L, -2, k);
  }
}

static const step_program *programs_find(lua_State *L, const mgrid_step *s, int64_t rank) {
  mgrid_error e = MGRID_ERROR_INIT;
  if (mgrid_check_rank(rank, s->plan->content.world, &e)) mgrid_lua_raise_error(L, &e);
  return mgrid_step_of_rank(s, rank);
}

/* programs:program(rank) -> a list of entries; the contents of a loop or a group are in its field
** `body` */
static int programs_of_rank(lua_State *L) {
  const mgrid_step *s = check_step(L);
  const step_program *p = programs_find(L, s, mgrid_lua_check_integer(L, 2));
  push_entries(L, s, p, 0, (uint32_t)p->n);
  return 1;
}

/* programs:entry(rank, i) -> entry i of the rank's program, counted from 1 as in programs:text,
** with its file. Its field `after` is the number of the first entry after it and its contents */
static int programs_entry(lua_State *L) {
  const mgrid_step *s = check_step(L);
  const step_program *p = programs_find(L, s, mgrid_lua_check_integer(L, 2));
  int64_t i = mgrid_lua_check_integer(L, 3);
  if (i < 1 || (uint64_t)i > p->n)
    return mgrid_lua_raise_as(L, MGRID_OUT_OF_RANGE, "the program has entries 1 to %zu", p->n);
  push_entry(L, s, p, (uint32_t)i - 1);
  mgrid_lua_set_string(L, "file", s->word[p->node[i - 1].file]);
  mgrid_lua_set_integer(L, "after", p->node[i - 1].end + 1);
  return 1;
}

static void put_class(const mgrid_step *s, int64_t rank, mgrid_text *t) {
  int32_t class = s->of[rank];
  mgrid_text_add(t, "rank %" PRId64 ", class %d of %zu, %" PRId64 " ranks\n", rank, class,
                 s->nclasses, s->class[class].ranks);
  mgrid_step_program_text(s, mgrid_step_of_rank(s, rank), true, t);
}

/* programs:text([rank]) -> the program of a rank, one entry on each line; without a rank, the
** program of the lowest rank of each class */
static int programs_text(lua_State *L) {
  const mgrid_step *s = check_step(L);
  bool one = !lua_isnoneornil(L, 2);
  int64_t rank = one ? mgrid_lua_check_integer(L, 2) : 0;
  mgrid_text t = { 0 };
  programs_find(L, s, rank);
  if (one) put_class(s, rank, &t);
  for (size_t i = 0; !one && i < s->nclasses; i++) put_class(s, s->class[i].first, &t);
  mgrid_lua_push_text(L, &t);
  return 1;
}

static int programs_price(lua_State *L) { return mgrid_step_lua_price(L, check_step(L)); }

static int programs_tostring(lua_State *L) {
  const mgrid_step *s = check_step(L);
  mgrid_text t = { 0 }, reads = { 0 };
  char digest[33];
  mgrid_step_digest(s, digest);
  mgrid_step_reads_text(s, &reads);
  mgrid_text_add(&t,
                 "Step of %" PRId64 " ranks: %zu class%s, %zu program%s, %" PRId64
                 " operation%s%s%.200s\ndigest %s",
                 s->plan->content.world, s->nclasses, s->nclasses == 1 ? "" : "es", s->nprograms,
                 mgrid_s_of((int64_t)s->nprograms), mgrid_step_total(s),
                 mgrid_s_of(mgrid_step_total(s)), reads.len ? "; it reads " : "",
                 mgrid_text_chars(&reads), digest);
  mgrid_text_free(&reads);
  mgrid_lua_push_text(L, &t);
  return 1;
}

static const luaL_Reg fields[] = {
  { "classes", programs_classes },       { "programs", programs_count },
  { "operations", programs_operations }, { "digest", programs_digest },
  { "reads", programs_reads },           { NULL, NULL }
};
static const luaL_Reg methods[] = {
  { "class", programs_class }, { "prove", programs_prove },     { "sums", programs_sums },
  { "entry", programs_entry }, { "program", programs_of_rank }, { "text", programs_text },
  { "price", programs_price }, { "traffic", programs_traffic }, { NULL, NULL }
};
static const luaL_Reg meta[] = { { "__tostring", programs_tostring },
                                 { "__gc", mgrid_lua_free_box },
                                 { NULL, NULL } };
static const mgrid_lua_class class = { STEP_LUA_PROGRAMS, fields, methods, NULL, meta };

void mgrid_step_lua_open_host(lua_State *L) {
  mgrid_lua_open_class(L, &class);
  mgrid_lua_open_class(L, &mgrid_step_lua_timeline_class);
}

const luaL_Reg mgrid_step_lua_plan_methods[] = { { "step", plan_step },
                                                 { "has_step", plan_has_step },
                                                 { NULL, NULL } };
