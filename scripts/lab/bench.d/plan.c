/* SPDX-License-Identifier: MIT
**
** plan.c - the cost of one rank's whole plan.
**
**     plan time ROUNDS WORLD...   microseconds, the worlds in turn, so that drift affects all alike
**     plan once recipe|c WORLD    once, in a separate function: for callgrind, for memory
**     plan check WORLD            check that the C layout is the recipe's, family by family
*/
#include "layout.h"

static int recipe_args(sizes s, bool gloo, char text[7][48], const char *args[7]) {
  snprintf(text[0], 48, "tp=%d", (int)s.tp);
  snprintf(text[1], 48, "cp=%d", (int)s.cp);
  snprintf(text[2], 48, "pp=%d", (int)s.pp);
  snprintf(text[3], 48, "ep=%d", (int)s.ep);
  snprintf(text[4], 48, "etp=%d", (int)s.etp);
  snprintf(text[5], 48, "gloo=%s", gloo ? "true" : "false");
  for (int i = 0; i < 6; i++) args[i] = text[i];
  return 6;
}

typedef struct stages { /* seconds */
  double open, load, plan, view, close;
} stages;

/* A fresh Lua state, the recipe compiled and run, the plan, this rank's view of it. */
__attribute__((noipa)) static int64_t from_recipe(sizes s, bool gloo, stages *spent) {
  mgrid_error e = MGRID_ERROR_INIT;
  mgrid_plan_counts mine = MGRID_PLAN_COUNTS_INIT;
  char text[7][48];
  const char *args[7];
  int n = recipe_args(s, gloo, text, args);
  double t0 = now();
  mgrid_runtime *rt = mgrid_runtime_new(NULL, NULL, &e);
  double t1 = now();
  if (!rt || mgrid_runtime_load(rt, "megatron", NULL, 0, &e)) die(e.message);
  double t2 = now();
  mgrid_plan *p = mgrid_runtime_plan(rt, s.world, NULL, (size_t)n, args, &e);
  if (!p) die(e.message);
  double t3 = now();
  if (mgrid_plan_count(p, s.world / 2 + 5, &mine, &e)) die(e.message);
  double t4 = now();
  mgrid_plan_free(p);
  mgrid_runtime_free(rt);
  if (spent) *spent = (stages){ t1 - t0, t2 - t1, t3 - t2, t4 - t3, now() - t4 };
  return mine.communicators;
}

/* The same families through the C functions. */
__attribute__((noipa)) static int64_t from_c(sizes s, bool gloo, stages *spent) {
  mgrid_error e = MGRID_ERROR_INIT;
  mgrid_plan_counts mine = MGRID_PLAN_COUNTS_INIT;
  double t0 = now();
  mgrid_topology *t = layout_topology(&MEGATRON, s, gloo, &e);
  if (!t) die(e.message);
  double t1 = now();
  mgrid_plan *p = mgrid_plan_new(t, &e);
  if (!p) die(e.message);
  double t2 = now();
  if (mgrid_plan_count(p, s.world / 2 + 5, &mine, &e)) die(e.message);
  double t3 = now();
  mgrid_plan_free(p);
  mgrid_topology_free(t);
  if (spent) *spent = (stages){ t1 - t0, 0, t2 - t1, t3 - t2, now() - t3 };
  return mine.communicators;
}

/* The least work: base, group and position of one rank for every rule, from the dims alone. No
** names, sharing, order or digest. */
__attribute__((noipa)) static int64_t descriptors(const bare *b, int n, int64_t rank) {
  int64_t all = 0;
  for (int i = 0; i < n; i++) {
    int64_t position = 0, base = rank, weight = 1, group = 0;
    for (int a = 0; a < b[i].ninside; a++) {
      int64_t c = rank / b[i].inside[a].stride % b[i].inside[a].size;
      base -= c * b[i].inside[a].stride;
      position += c * weight;
      weight *= b[i].inside[a].size;
    }
    weight = 1;
    for (int a = 0; a < b[i].nindex; a++) {
      group += rank / b[i].index[a].stride % b[i].index[a].size * weight;
      weight *= b[i].index[a].size;
    }
    all += base ^ position ^ group;
  }
  return all;
}

static volatile int64_t sink;

/* The family whose communicators the ith one uses; "": its own. */
static const char *sharer(const mgrid_plan *p, size_t i) {
  const char *other = mgrid_plan_shares(p, mgrid_plan_family_name(p, i));
  return other ? other : "";
}

static void measure(int rounds, int nworlds, char **worlds) {
  enum { BATCH = 100 };
  for (int round = -1; round < rounds; round++) /* one to warm up */
    for (int i = 0; i < nworlds; i++) {
      sizes s = plan_sizes(strtoll(worlds[i], NULL, 10));
      mgrid_dim dims[GRIDS][AXES];
      bare b[RULES_MAX];
      layout_dims(s, dims);
      for (int r = 0; r < MEGATRON.n; r++) b[r] = bare_rule(&MEGATRON, &MEGATRON.rule[r], dims);
      double t0 = now();
      for (int k = 0; k < BATCH; k++) sink = descriptors(b, MEGATRON.n, s.world / 2 + 5 + k);
      double least = (now() - t0) / BATCH;
      if (round >= 0) sample(1e6 * least, "least %s", worlds[i]);
      for (int gloo = 1; gloo >= 0; gloo--) {
        stages r, c;
        const char *tail = gloo ? "" : " nogloo";
        from_recipe(s, gloo, &r);
        /* warm up, so that the next calls are like the second plan of a program */
        from_c(s, gloo, &c);
        for (int k = 0; k < 4; k++) {
          from_c(s, gloo, &c);
          if (round < 0) continue;
          sample(1e6 * (c.open + c.plan + c.view), "c%s %s", tail, worlds[i]);
          sample(1e6 * c.open, "c build%s %s", tail, worlds[i]);
          sample(1e6 * c.plan, "c plan%s %s", tail, worlds[i]);
          sample(1e6 * c.view, "c view%s %s", tail, worlds[i]);
          sample(1e6 * c.close, "c close%s %s", tail, worlds[i]);
        }
        if (round < 0) continue;
        sample(1e6 * (r.open + r.load + r.plan + r.view), "recipe%s %s", tail, worlds[i]);
        sample(1e6 * r.open, "recipe open%s %s", tail, worlds[i]);
        sample(1e6 * r.load, "recipe load%s %s", tail, worlds[i]);
        sample(1e6 * r.plan, "recipe plan%s %s", tail, worlds[i]);
        sample(1e6 * r.view, "recipe view%s %s", tail, worlds[i]);
        sample(1e6 * r.close, "recipe close%s %s", tail, worlds[i]);
      }
    }
}

static void check(int64_t world) {
  mgrid_error e = MGRID_ERROR_INIT;
  sizes s = plan_sizes(world);
  char text[7][48];
  const char *args[7];
  int n = recipe_args(s, true, text, args);
  mgrid_runtime *rt = mgrid_runtime_new(NULL, NULL, &e);
  if (!rt || mgrid_runtime_load(rt, "megatron", NULL, 0, &e)) die(e.message);
  mgrid_plan *a = mgrid_runtime_plan(rt, world, NULL, (size_t)n, args, &e);
  mgrid_topology *t = layout_topology(&MEGATRON, s, true, &e);
  mgrid_plan *b = mgrid_plan_new(t, &e);
  if (!a || !b) die(e.message);
  if (mgrid_plan_nfamilies(a) != mgrid_plan_nfamilies(b))
    die("the C layout has another number of families than the recipe");
  for (size_t i = 0; i < mgrid_plan_nfamilies(a); i++)
    if (strcmp(mgrid_plan_family_name(a, i), mgrid_plan_family_name(b, i)) != 0
        || !mgrid_family_equal(family_of(a, i), family_of(b, i))
        || strcmp(sharer(a, i), sharer(b, i)) != 0)
      die(mgrid_plan_family_name(a, i));
  sample((double)mgrid_plan_nfamilies(a), "families");
  mgrid_plan_free(a);
  mgrid_plan_free(b);
  mgrid_topology_free(t);
  mgrid_runtime_free(rt);
}

#ifdef WITH_MEMORY
/* Print the most bytes allocated at a time, the bytes that the plan keeps, and the calls of the
** allocator. */
static void once(bool recipe, sizes s, bool gloo) {
  mgrid_error e = MGRID_ERROR_INIT;
  char text[7][48];
  const char *args[7];
  int n = recipe_args(s, gloo, text, args);
  mgrid_runtime_free(mgrid_runtime_new(NULL, NULL, &e)); /* loads libmoongrid_lua, which stays */
  memory before = memory_used;
  memory_used.peak = memory_used.live;
  recipe ? from_recipe(s, gloo, NULL) : from_c(s, gloo, NULL);
  memory after = memory_used; /* before printf takes its buffer */
  const char *what = recipe ? "recipe" : "c";
  sample((double)(after.peak - before.live), "%s peak %lld", what, (long long)s.world);
  sample((double)(after.calls - before.calls), "%s calls %lld", what, (long long)s.world);
  if (after.live != before.live) die("planning leaves memory behind");
  if (!recipe) return;
  before = memory_used;
  mgrid_runtime *rt = mgrid_runtime_new(NULL, NULL, &e);
  if (!rt || mgrid_runtime_load(rt, "megatron", NULL, 0, &e)) die(e.message);
  mgrid_plan *p = mgrid_runtime_plan(rt, s.world, NULL, (size_t)n, args, &e);
  if (!p) die(e.message);
  mgrid_runtime_free(rt);
  sample((double)(memory_used.live - before.live), "plan keeps %lld", (long long)s.world);
  mgrid_plan_free(p);
}
#else
static void once(bool recipe, sizes s, bool gloo) {
  /* loads libmoongrid_lua, which stays */
  if (recipe) mgrid_runtime_free(mgrid_runtime_new(NULL, NULL, NULL));
  recipe ? from_recipe(s, gloo, NULL) : from_c(s, gloo, NULL);
}
#endif

int main(int argc, char **argv) {
  if (argc >= 4 && strcmp(argv[1], "time") == 0)
    measure(atoi(argv[2]), argc - 3, argv + 3);
  else if (argc == 4 && strcmp(argv[1], "once") == 0)
    once(strcmp(argv[2], "recipe") == 0, plan_sizes(strtoll(argv[3], NULL, 10)), true);
  else if (argc == 3 && strcmp(argv[1], "check") == 0)
    check(strtoll(argv[2], NULL, 10));
  else
    die("plan time ROUNDS WORLD... | plan once recipe|c WORLD | plan check WORLD");
  return 0;
}
