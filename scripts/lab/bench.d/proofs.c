/* SPDX-License-Identifier: MIT
**
** proofs.c - measure the cost of steps: mgrid_step_expect, in nanoseconds for a call; the executor,
** in operations a second if each rank has a program of its own; and steps of megatron, in
** milliseconds.
**
**     proofs ROUNDS
*/
#include "bench.h"
#include "moongrid.h"

#include <inttypes.h>

static mgrid_error err = MGRID_ERROR_INIT;
static double evaluated; /* seconds of the processor that the last step took */

/* A layer's calls in a loop, as a trainer makes them. */
static const char followed[] =
    "return recipe { build = function(world) local g = grid(world, 'tp-dp', { tp = 8, dp = "
    "fill }) local t = topology(world) "
    "t.tp, t.dp = g 'tp', g 'dp' return t end, step = function(s) "
    "s:loop(1000, function() s:all_reduce(s.tp, 4096) s:compute { flops = 1 } "
    "s:all_gather(s.tp, 8192) s:reduce_scatter(s.tp, 8192) "
    "s:all_reduce(s.dp, 64) end) end }";

/* A step in which all ranks have different programs, and no call repeats. */
static const char executed[] = "return recipe { build = function(world) local g = grid(world, "
                               "'tp-pp-dp', { tp = 4, pp = 8, dp = fill }) "
                               "local t = topology(world) t.tp, t.pp, t.dp = g 'tp', g 'pp', g "
                               "'dp' return t end, step = function(s) "
                               "s:mark(tostring(s.rank)) "
                               "for i = 1, 200 do s:all_reduce(s.tp, i) if s.pp.position > 0 then "
                               "s:recv(s.pp, s.pp.position - 1, 8) end "
                               "if s.pp.position < 7 then s:send(s.pp, s.pp.position + 1, 8) end "
                               "s:all_reduce(s.dp, i) end end }";

static mgrid_step *step_of(const char *name, const char *text, int64_t world, size_t n,
                           const char *const *args, mgrid_plan **plan) {
  mgrid_runtime *rt = mgrid_runtime_new(NULL, NULL, &err);
  mgrid_status s = text ? mgrid_runtime_load(rt, name, text, strlen(text), &err)
                        : mgrid_runtime_load(rt, name, NULL, 0, &err);
  if (s || !(*plan = mgrid_runtime_plan(rt, world, NULL, n, args, &err))) die(err.message);
  mgrid_step *step = NULL;
  for (int i = 0; i < 2; i++) { /* the first evaluation loads the files of the step */
    clock_t t0 = clock();
    mgrid_step_free(step);
    if (!(step = mgrid_step_new(rt, *plan, NULL, &err))) die(err.message);
    evaluated = (double)(clock() - t0) / CLOCKS_PER_SEC;
  }
  mgrid_runtime_free(rt);
  return step;
}

static double expecting(void) {
  mgrid_plan *p = NULL;
  mgrid_step *s = step_of("followed", followed, 64, 0, NULL, &p);
  mgrid_backend *b = mgrid_backend_dry(64, 3, &err);
  mgrid_state *state = b ? mgrid_materialize(p, b, NULL, &err) : NULL;
  mgrid_step_follower *f = mgrid_step_follow(s, 3, &err);
  if (!state || !f) die(err.message);
  const mgrid_group *tp = mgrid_state_group(state, "tp", &err),
                    *dp = mgrid_state_group(state, "dp", &err);
  enum { STEPS = 50 };
  double t0 = now();
  for (int i = 0; i < STEPS; i++) {
    int bad = 0;
    for (int k = 0; k < 1000; k++)
      bad |= mgrid_step_expect(f, MGRID_STEP_ALL_REDUCE, tp, 4096, &err)
             | mgrid_step_expect(f, MGRID_STEP_ALL_GATHER, tp, 8192, &err)
             | mgrid_step_expect(f, MGRID_STEP_REDUCE_SCATTER, tp, 8192, &err)
             | mgrid_step_expect(f, MGRID_STEP_ALL_REDUCE, dp, 64, &err);
    if (bad) die(err.message);
    mgrid_step_rewind(f);
  }
  double took = 1e9 * (now() - t0) / (4000 * STEPS);
  mgrid_step_follower_free(f);
  mgrid_state_free(state);
  mgrid_backend_free(b);
  mgrid_step_free(s);
  mgrid_plan_free(p);
  return took;
}

static double executing(void) {
  mgrid_plan *p = NULL;
  mgrid_step *s = step_of("executed", executed, 512, 0, NULL, &p);
  int64_t all = 0;
  for (int64_t r = 0; r < 512; r++) all += mgrid_step_operations(s, r);
  double t0 = now();
  if (mgrid_step_prove(s, false, &err)) die(err.message);
  double rate = (double)all / (now() - t0);
  mgrid_step_free(s);
  mgrid_plan_free(p);
  return rate;
}

static void of_megatron(const char *name, int64_t world, size_t n, const char *const *args) {
  mgrid_plan *p = NULL;
  mgrid_step *s = step_of("megatron", NULL, world, n, args, &p);
  double t0 = now();
  char proved[64];
  if (mgrid_step_prove(s, false, &err)) die(err.message);
  snprintf(proved, sizeof proved, "%s proved", name);
  sample(1e3 * (now() - t0), proved);
  sample(1e3 * evaluated, name);
  mgrid_step_free(s);
  mgrid_plan_free(p);
}

/* Measure steps of 96 layers of the size of GPT-3. */
static void all_of_megatron(void) {
  const char *const args[] = { "layers=96",         "hidden=12288", "heads=96", "tp=8",
                               "global_batch=2048", "pp=8",         "vpp=12" };
  const char *const overlap[] = { "layers=96",         "hidden=12288", "heads=96",         "tp=8",
                                  "global_batch=2048", "pp=8",         "overlap=gradients" };
  const char *const million[] = { "layers=96", "hidden=12288", "heads=96", "tp=8", "pp=16" };
  of_megatron("1f1b", 1024, 6, args);
  of_megatron("interleaved", 1024, 7, args);
  of_megatron("overlap", 1024, 7, overlap);
  of_megatron("million", 1048576, 5, million);
}

int main(int argc, char **argv) {
  int rounds = argc > 1 ? atoi(argv[1]) : 1;
  for (int i = 0; i < rounds; i++) {
    sample(expecting(), "expect");
    sample(executing(), "executed");
    if (i < 9) all_of_megatron();
  }
  return 0;
}
