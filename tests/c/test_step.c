/* SPDX-License-Identifier: MIT
**
** test_step.c - the proof of steps: verdicts and counterexamples against an executor that goes rank
** by rank, for thousands of random steps; loops of any length; the number of classes.
*/
#include "executor.h"
#include "stepping.h"

#include "step/step.h"

#include <time.h>

static mgrid_step *step_of(mgrid_runtime *rt, const char *text, size_t length, int64_t world,
                           mgrid_plan **plan, mgrid_error *err) {
  if (mgrid_runtime_load(rt, "random.lua", text, length, err)) return NULL;
  *plan = mgrid_runtime_plan(rt, world, NULL, 0, NULL, err);
  return *plan ? mgrid_step_new(rt, *plan, NULL, err) : NULL;
}

/* The verdict that the executor finds: it knows no hazards, which are of two executions. */
static step_verdict_kind expected(const mgrid_step *s, step_rules rules, bool lazy) {
  step_verdict_kind told = executor_told(s, rules, lazy);
  bool streams = false;
  for (size_t i = 0; i < s->nprograms; i++) streams |= s->program[i].nstreams > 1;
  if (told == STEP_PROVED && rules == STEP_NCCL && streams
      && executor_told(s, STEP_ISSUED, lazy) != STEP_PROVED)
    return STEP_HAZARD;
  return told;
}

/* Each rank of a counterexample is really in that call, and waits for the next one, which has not
** come. */
static void check_counterexample(rng *r, const mgrid_step *s, step_rules rules,
                                 const step_verdict *v) {
  executor x = executor_new(s, v->told == STEP_HAZARD ? STEP_ISSUED : rules, true);
  execute_all(&x);
  check(r, v->n > 0);
  for (size_t i = 0; i < v->n; i++) {
    const step_waiting *w = &v->waiting[i];
    bool in = false, waits = v->told == STEP_MISMATCH;
    if (v->told == STEP_UNMATCHED && i == 1) break;
    for (int k = 0; k < x.n[w->rank]; k++) {
      const entry *e = &x.all[w->rank][k];
      for (int j = 0; j < e->nparts && e->begun && !e->done; j++) {
        int64_t who[RANKS];
        if (e->part[j].node != &s->program[w->program].node[w->node] || e->creates != w->creates)
          continue;
        in |= !e->part[j].met;
        for (int n = needed(&x, w->rank, &e->part[j], who); n > 0; n--) {
          entry *owner = NULL;
          part *o = meets(&x, who[n - 1], &e->part[j], &owner);
          waits |= who[n - 1] == w->waits_for && (!o || !owner->begun);
        }
      }
    }
    check(r, in);
    check(r, waits || w->waits_for == w->rank);
    if (v->told == STEP_CYCLE) check(r, v->waiting[(i + 1) % v->n].rank == w->waits_for);
  }
  executor_free(&x);
}

/* told[5]: only the creation of a lazy communicator makes the step hang. */
static void try_step(rng *r, bool streams, int mutate, size_t told[6]) {
  mgrid_error err;
  mgrid_text text = { 0 };
  stepping x = { .r = r,
                 .t = &text,
                 .streams = streams,
                 .covers = rng_chance(r, 20),
                 .mutate = mutate,
                 .lazy = rng_chance(r, 50) };
  int64_t world = draw_step(&x);
  mgrid_plan *plan = NULL;
  mgrid_runtime *rt = mgrid_runtime_new(NULL, NULL, anew(&err));
  mgrid_step *s = step_of(rt, mgrid_text_chars(&text), text.len, world, &plan, anew(&err));
  if (!s) fail_msg("%s\n%s\nMOONGRID_SEED=%" PRIu64, err.message, mgrid_text_chars(&text), r->seed);
  for (int rules = 0; rules < 2; rules++) {
    step_rules by = rules ? STEP_BLOCKING : STEP_NCCL;
    step_verdict v;
    step_verdict_kind should = expected(s, by, true);
    told[5] += should != STEP_PROVED && expected(s, by, false) == STEP_PROVED;
    assert_int_equal(MGRID_OK, mgrid_step_conclude(s, by, 0, &v, anew(&err)));
    if (v.told != should) fputs(mgrid_text_chars(&text), stderr);
    if (v.told != should)
      fail_msg("MOONGRID_SEED=%" PRIu64 ": %s, not %s, under rules %d\n%s", r->seed,
               mgrid_step_verdict_names[v.told], mgrid_step_verdict_names[should], (int)by,
               mgrid_text_chars(&text));
    if (v.told != STEP_PROVED) check_counterexample(r, s, by, &v);
    told[v.told]++;
  }
  mgrid_step_free(s);
  mgrid_plan_free(plan);
  mgrid_runtime_free(rt);
  mgrid_text_free(&text);
}

/* The calls of each rank are those of its program unrolled, in order; another one is refused. */
static void follow_all(rng *r, const mgrid_step *s, mgrid_runtime *rt, const mgrid_plan *plan) {
  executor x = executor_new(s, STEP_BLOCKING, false);
  (void)rt;
  for (int64_t rank = 0; rank < x.world; rank++) {
    mgrid_error err;
    mgrid_backend *b = mgrid_backend_dry(x.world, rank, anew(&err));
    mgrid_state *state = mgrid_materialize(plan, b, NULL, &err);
    mgrid_step_follower *f = mgrid_step_follow(s, rank, &err),
                        *g = mgrid_step_follow(s, rank, &err);
    mgrid_step_call call = MGRID_STEP_CALL_INIT;
    for (int i = 0; i < x.n[rank]; i++)
      for (int k = 0; k < x.all[rank][i].nparts; k++) {
        const step_node *n = x.all[rank][i].part[k].node;
        const step_slot *slot = &s->slot[n->slot];
        const mgrid_group *group = mgrid_state_group_nth(
            state, plan->content.entry[slot->entry].name, (size_t)slot->nth, &err);
        check(r, mgrid_step_next(f, &call));
        check(r, strcmp(call.operation, mgrid_step_rows[n->kind].name) == 0
                     && call.bytes == n->bytes && call.line == n->line);
        check(r, strcmp(call.family, plan->content.entry[slot->entry].name) == 0);
        check(r, mgrid_step_expect(g, (mgrid_step_operation)n->kind, group, n->bytes + 1, NULL)
                     == MGRID_DISAGREE);
        check(r, mgrid_step_expect(g, (mgrid_step_operation)((n->kind + 1) % 11), group, n->bytes,
                                   NULL)
                     == MGRID_DISAGREE);
        check(r, mgrid_step_expect(g, (mgrid_step_operation)n->kind, group, n->bytes, &err)
                     == MGRID_OK);
      }
    check(r, !mgrid_step_next(f, &call) && !mgrid_step_next(g, &call));
    mgrid_step_rewind(f);
    check(r, mgrid_step_next(f, &call) == (s->program[s->class[s->of[rank]].program].calls > 0));
    mgrid_step_follower_free(f);
    mgrid_step_follower_free(g);
    mgrid_state_free(state);
    mgrid_backend_free(b);
  }
  executor_free(&x);
}

static void test_following(void **state) {
  (void)state;
  bool one = getenv("MOONGRID_SEED");
  for (uint64_t seed = first_seed(), end = seed + (one ? 1 : cases(200)); seed < end; seed++) {
    mgrid_error err;
    rng r = rng_new(seed);
    mgrid_text text = { 0 };
    stepping x = {
      .r = &r, .t = &text, .streams = seed % 2, .covers = rng_chance(&r, 20), .mutate = 20
    };
    int64_t world = draw_step(&x);
    mgrid_plan *plan = NULL;
    mgrid_runtime *rt = mgrid_runtime_new(NULL, NULL, anew(&err));
    mgrid_step *s = step_of(rt, mgrid_text_chars(&text), text.len, world, &plan, anew(&err));
    check(&r, s != NULL);
    follow_all(&r, s, rt, plan);
    mgrid_step_free(s);
    mgrid_plan_free(plan);
    mgrid_runtime_free(rt);
    mgrid_text_free(&text);
  }
}

/* A trainer that makes another call than its step is told which one, with its line. */
static void test_unexpected_call(void **state) {
  static const char text[] = "return recipe { build = function(world) local t = topology(world)\n"
                             "  t.all = grid(world, 'a', { a = fill }) 'a' return t end,\n"
                             "  step = function(s) s:loop(2, function() s:all_reduce(s.all, 64) "
                             "end) s:barrier(s.all) end }";
  mgrid_error err;
  mgrid_plan *plan = NULL;
  mgrid_runtime *rt = mgrid_runtime_new(NULL, NULL, anew(&err));
  mgrid_step *s = step_of(rt, text, sizeof text - 1, 4, &plan, anew(&err));
  mgrid_backend *b = mgrid_backend_dry(4, 2, anew(&err));
  mgrid_state *of = mgrid_materialize(plan, b, NULL, &err);
  const mgrid_group *all = mgrid_state_group(of, "all", &err);
  mgrid_step_follower *f = mgrid_step_follow(s, 2, &err);
  (void)state;
  assert_int_equal(MGRID_OK, mgrid_step_prove(s, false, &err));
  assert_int_equal(MGRID_OK, mgrid_step_prove(s, true, &err));
  assert_int_equal(MGRID_DISAGREE,
                   mgrid_step_expect(f, MGRID_STEP_ALL_GATHER, all, 64, anew(&err)));
  assert_string_equal(
      err.message,
      "the call is all_gather(all) of 64 bytes, and the step has all_reduce(all) of 64 bytes, "
      "random.lua:3 next");
  for (int i = 0; i < 2; i++)
    assert_int_equal(MGRID_OK, mgrid_step_expect(f, MGRID_STEP_ALL_REDUCE, all, 64, anew(&err)));
  assert_int_equal(MGRID_OK, mgrid_step_expect(f, MGRID_STEP_BARRIER, all, 0, anew(&err)));
  assert_int_equal(MGRID_DISAGREE, mgrid_step_expect(f, MGRID_STEP_BARRIER, all, 0, anew(&err)));
  assert_string_equal(err.message,
                      "the call is barrier(all) of 0 bytes, and the step has its end next");
  assert_null(mgrid_step_follow(s, 4, anew(&err)));
  assert_string_equal(err.message, "rank 4 is out of range; ranks are 0 to 3");
  mgrid_step_follower_free(f);
  mgrid_state_free(of);
  mgrid_backend_free(b);
  mgrid_step_free(s);
  mgrid_plan_free(plan);
  mgrid_runtime_free(rt);
}

static void test_random_steps(void **state) {
  (void)state;
  size_t told[6] = { 0 };
  bool one = getenv("MOONGRID_SEED");
  for (uint64_t seed = first_seed(), end = seed + (one ? 1 : cases(3000)); seed < end; seed++) {
    rng r = rng_new(seed);
    try_step(&r, seed % 2, (int)(seed % 3) * 15, told);
  }
  for (int i = 0; i < 5; i++) print_message("%s %zu\n", mgrid_step_verdict_names[i], told[i]);
  print_message("only for a creation %zu\n", told[5]);
  /* every verdict occurs */
  for (int i = 0; i < 6 && !one; i++) assert_true(told[i] >= (cases(1) ? 10 : 1));
}

/* 100000 waits for events, the last event first: the proof takes the time of 100000 operations.
** Without events between, it took 11 s. */
static void test_many_events(void **state) {
  static const char text[] =
      "return recipe { build = function(world) local t = topology(world)\n"
      "  t.all = grid(world, 'a', { a = fill }) 'a' return t end,\n"
      "  step = function(s) local es, x = {}, s:on 'x' for k = 1, 100000 do es[k] = s:event() end\n"
      "  for k = 100000, 1, -1 do x:wait(es[k]) x:all_reduce(s.all, 8) end end }";
  mgrid_error err;
  mgrid_plan *plan = NULL;
  mgrid_runtime *rt = mgrid_runtime_new(NULL, NULL, anew(&err));
  mgrid_step *s = step_of(rt, text, sizeof text - 1, 4, &plan, anew(&err));
  (void)state;
  assert_non_null(s);
  clock_t began = clock();
  assert_int_equal(mgrid_step_prove(s, false, anew(&err)), MGRID_OK);
  assert_true(clock() - began < 4 * CLOCKS_PER_SEC); /* 0.03 s */
  mgrid_step_free(s);
  mgrid_plan_free(plan);
  mgrid_runtime_free(rt);
}

/* What meets the limits of the runtime says what is proved so far; under larger ones the same step
** is proved. */
static void test_limits(void **state) {
  static const char text[] = "return recipe { build = function(world) local t = topology(world)\n"
                             "  t.all = grid(world, 'a', { a = fill }) 'a' return t end,\n"
                             "  step = function(s) local function nest(d) if d == 0 then s:mark "
                             "'m' s:all_reduce(s.all, 8) else\n"
                             "  s:loop(3, function() nest(d - 1) end) end end nest(8) end }";
  (void)state;
  for (int large = 0; large < 2; large++) {
    mgrid_error err;
    mgrid_limits limits = MGRID_LIMITS_INIT;
    mgrid_plan *plan = NULL;
    limits.instructions = large ? 1000000 : 20000;
    mgrid_runtime *rt = mgrid_runtime_new(&limits, NULL, anew(&err));
    mgrid_step *s = step_of(rt, text, sizeof text - 1, 4, &plan, anew(&err));
    assert_non_null(s);
    assert_int_equal(mgrid_step_prove(s, false, anew(&err)), large ? MGRID_OK : MGRID_LIMIT);
    if (!large) {
      static const char says[] = "the proof of the step takes more than 20000 instructions; proved "
                                 "so far: all ranks get to operation ";
      assert_memory_equal(err.message, says, sizeof says - 1);
      assert_non_null(strstr(err.message, " of 13122 or further, rank 0 is last, in line 3"));
    }
    mgrid_step_free(s);
    mgrid_plan_free(plan);
    mgrid_runtime_free(rt);
  }
}

/* In as many seconds as a slow machine needs: the command gives a recipe only 2. */
static void test_entries(void **state) {
  static const char text[] = "return recipe { build = function(world) local t = topology(world)\n"
                             "  t.all = grid(world, 'a', { a = fill }) 'a' return t end,\n"
                             "  step = function(s) while true do s:barrier(s.all) end end }";
  mgrid_error err;
  mgrid_limits limits = MGRID_LIMITS_INIT;
  mgrid_plan *plan = NULL;
  (void)state;
  limits.seconds = limits.call_seconds = 600;
  mgrid_runtime *rt = mgrid_runtime_new(&limits, NULL, anew(&err));
  assert_null(step_of(rt, text, sizeof text - 1, 4, &plan, anew(&err)));
  assert_int_equal(err.status, MGRID_LIMIT);
  assert_non_null(strstr(err.message, "3: the step has more than 2097152 entries; s:loop(n, "
                                      "function() ... end) makes its entries only once"));
  mgrid_plan_free(plan);
  mgrid_runtime_free(rt);
}

int main(int argc, char **argv) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_random_steps),    cmocka_unit_test(test_following),
    cmocka_unit_test(test_unexpected_call), cmocka_unit_test(test_many_events),
    cmocka_unit_test(test_limits),          cmocka_unit_test(test_entries),
  };
  return run_program("step", tests, argc, argv);
}
