/* SPDX-License-Identifier: MIT
**
** test_price.c - the price of steps: times computed by hand; and thousands of random steps whose
** ranks are all executed with their loops unrolled, by the definition of when an operation begins,
** as executor.h does for the proof.
*/
#include "executor.h"
#include "stepping.h"

#include "step/price.h"

#include <math.h>

typedef struct fixture {
  mgrid_runtime *rt;
  mgrid_plan *plan;
  mgrid_step *s;
  mgrid_machine_model *m;
} fixture;

static void fixture_free(fixture *f) {
  mgrid_machine_free(f->m);
  mgrid_step_free(f->s);
  mgrid_plan_free(f->plan);
  mgrid_runtime_free(f->rt);
}

static bool fixture_make(fixture *f, const char *text, int64_t world, const char *machine,
                         mgrid_error *err) {
  *f = (fixture){ .rt = mgrid_runtime_new(NULL, NULL, err) };
  if (!f->rt || mgrid_runtime_load(f->rt, "random.lua", text, strlen(text), err)) return false;
  f->plan = mgrid_runtime_plan(f->rt, world, NULL, 0, NULL, err);
  f->s = f->plan ? mgrid_step_new(f->rt, f->plan, NULL, err) : NULL;
  f->m = f->s ? mgrid_machine_parse(machine, err) : NULL;
  return f->m != NULL;
}

/* ------------------------------------------------------ every rank in time */

typedef struct interval {
  double from, to;
  int what; /* 0: computes, 1: moves bytes */
} interval;

typedef struct timed {
  executor x;
  const step_price *price;
  /* of entries; moved: when a part began to move */
  int64_t *begin[RANKS], *end[RANKS], *moved[RANKS][PARTS];
} timed;

/* When entry i of a rank may begin; -1: not all that is before it has a time. The rules are those
** of may_begin. */
static int64_t begin_of(const timed *t, int64_t rank, int i) {
  const executor *x = &t->x;
  const entry *all = x->all[rank], *e = &all[i];
  int64_t at = 0;
  bool nccl = x->rules == STEP_NCCL;
  for (int b = 0; b < i; b++) {
    const entry *o = &all[b];
    bool order = o->node->kind == STEP_HOST_WAIT, after = false;
    if (nccl && e->node->kind == STEP_HOST_WAIT)
      after = order || o->node->stream == e->node->other;
    else
      after = stream_at(x, o) == stream_at(x, e) || (nccl && order);
    for (int j = 0; j < o->nparts && !after; j++)
      for (int k = 0; k < e->nparts; k++) after |= o->part[j].comm == e->part[k].comm;
    if (nccl && e->node->kind == STEP_WAIT && !e->node->listed)
      after |= o->node->stream == e->node->other;
    if (nccl && e->node->kind == STEP_WAIT && e->node->listed)
      after |= b < e->after && o->node->stream == all[e->after].node->stream;
    if (!after) continue;
    if (t->end[rank][b] < 0) return -1;
    if (t->end[rank][b] > at) at = t->end[rank][b];
  }
  return at;
}

/* Set the times of a part if all that it meets have begun; *end. */
static bool part_time(const timed *t, int64_t rank, int i, int k, int64_t *end) {
  entry *e = &t->x.all[rank][i];
  part *a = &e->part[k];
  int64_t who[RANKS], start = t->begin[rank][i], bytes = a->node->bytes;
  int n = needed(&t->x, rank, a, who);
  for (int j = 0; j < n; j++) {
    entry *owner = e;
    part *o = who[j] == rank && a->from < 0 ? a : meets(&t->x, who[j], a, &owner);
    assert_non_null(o);
    int64_t began = t->begin[who[j]][owner - t->x.all[who[j]]];
    if (began < 0) return false;
    if (began > start) start = began;
    if (o->node->bytes > bytes) bytes = o->node->bytes;
  }
  int32_t type = t->price->by.types.of[rank];
  t->moved[rank][k][i] = start;
  *end = start
         + mgrid_step_ticks(n == 1 && a->from < 0
                                ? 0
                                : mgrid_step_way_of(&t->price->by, type, a->node, bytes).seconds);
  return true;
}

static bool advance_entry(timed *t, int64_t rank, int i) {
  entry *e = &t->x.all[rank][i];
  bool changed = false;
  int64_t end;
  if (t->end[rank][i] >= 0) return false;
  if (t->begin[rank][i] < 0) {
    t->begin[rank][i] = begin_of(t, rank, i);
    changed = t->begin[rank][i] >= 0;
  }
  if (t->begin[rank][i] < 0) return false;
  int64_t last = t->begin[rank][i];
  if (e->node->kind == STEP_COMPUTE)
    last += mgrid_step_ticks(mgrid_step_work_of(&t->price->by, e->node));
  for (int k = 0; k < e->nparts; k++) {
    if (!part_time(t, rank, i, k, &end)) return changed;
    if (end > last) last = end;
  }
  t->end[rank][i] = last;
  return true;
}

static int by_from(const void *a, const void *b) {
  const interval *x = a, *y = b;
  return (x->from > y->from) - (x->from < y->from);
}

/* The time in which something computes, and in which bytes move and nothing computes. */
static void account(const timed *t, int64_t rank, double *compute, double *exposed,
                    double *hidden) {
  int n = 0;
  interval *all = malloc(((size_t)t->x.n[rank] * PARTS + 1) * sizeof *all);
  double at[2 * 4096];
  int edges = 0;
  for (int i = 0; i < t->x.n[rank]; i++) {
    const entry *e = &t->x.all[rank][i];
    if (e->node->kind == STEP_COMPUTE)
      all[n++] = (interval){ (double)t->begin[rank][i], (double)t->end[rank][i], 0 };
    for (int k = 0; k < e->nparts; k++) {
      int64_t end;
      part_time(t, rank, i, k, &end);
      if (end > t->moved[rank][k][i])
        all[n++] = (interval){ (double)t->moved[rank][k][i], (double)end, 1 };
    }
  }
  qsort(all, (size_t)n, sizeof *all, by_from);
  assert_true(2 * n <= 2 * 4096);
  for (int i = 0; i < n; i++) at[edges++] = all[i].from, at[edges++] = all[i].to;
  for (int i = 1; i < edges; i++) /* insertion: they are nearly sorted */
    for (int j = i; j > 0 && at[j - 1] > at[j]; j--) {
      double swap = at[j];
      at[j] = at[j - 1], at[j - 1] = swap;
    }
  *compute = *exposed = *hidden = 0;
  for (int i = 0, first = 0; i + 1 < edges; i++) {
    bool what[2] = { false, false };
    while (first < n && all[first].to <= at[i]) first++;
    for (int k = first; k < n && all[k].from <= at[i]; k++)
      if (all[k].to >= at[i + 1] && all[k].from <= at[i]) what[all[k].what] = true;
    double d = at[i + 1] - at[i];
    if (what[0]) *compute += d;
    if (what[1] && !what[0]) *exposed += d;
    if (what[1] && what[0]) *hidden += d;
  }
  free(all);
}

/* The bytes that leave domains of a level, call by call. */
static double bytes_of(const timed *t, int entry_of, size_t level) {
  double sum = 0;
  for (int64_t r = 0; r < t->x.world; r++)
    for (int i = 0; i < t->x.n[r]; i++)
      for (int k = 0; k < t->x.all[r][i].nparts; k++) {
        const part *a = &t->x.all[r][i].part[k];
        const step_slot *slot = &t->x.s->slot[a->node->slot];
        int64_t group, position, all[RANKS];
        if (slot->entry != entry_of) continue;
        const mgrid_family *f = t->x.s->plan->content.entry[slot->entry].family;
        mgrid_family_locate(f, r, slot->nth, &group, &position);
        int64_t n = mgrid_family_members(f, group, 1, RANKS, all),
                mine = mgrid_machine_domain(t->price->by.m, level, r);
        double b = (double)a->node->bytes;
        for (int64_t p = 0; p < n; p++) {
          bool next = p == (position + 1) % n,
               apart = mgrid_machine_domain(t->price->by.m, level, all[p]) != mine;
          if (!apart || p == position) continue;
          switch (a->node->kind) {
          case STEP_ALL_REDUCE: sum += next ? 2 * b * (double)(n - 1) / (double)n : 0; break;
          case STEP_ALL_GATHER:
          case STEP_REDUCE_SCATTER: sum += next ? b * (double)(n - 1) / (double)n : 0; break;
          case STEP_BROADCAST:
          case STEP_REDUCE: sum += p == position + 1 ? b : 0; break;
          case STEP_ALL_TO_ALL: sum += b / (double)n; break;
          case STEP_SEND: sum += p == a->node->number ? b : 0; break;
          default: break;
          }
        }
      }
  return sum;
}

/* Each rank's group touches as many domains as the shape of its type says. */
static void check_shapes(rng *r, const fixture *f, const step_price *price) {
  for (int64_t rank = 0; rank < mgrid_plan_world(f->plan); rank++)
    for (size_t i = 0; i < f->s->nslots; i++) {
      int32_t shape = price->by.shapes.of[(size_t)price->by.types.of[rank] * f->s->nslots + i];
      const mgrid_family *of = f->plan->content.entry[f->s->slot[i].entry].family;
      int64_t group, position, all[RANKS];
      bool in = mgrid_family_locate(of, rank, f->s->slot[i].nth, &group, &position);
      check(r, in == (shape >= 0));
      int64_t n = in ? mgrid_family_members(of, group, 1, RANKS, all) : 0;
      for (size_t l = 0; l < f->m->ntiers && in; l++) {
        int64_t touched = 0, share = 0;
        for (int64_t p = 0; p < n; p++) {
          int64_t d = mgrid_machine_domain(f->m, l, all[p]), leave = 0, turns = 1;
          int64_t calls[RANKS] = { 0 };
          bool first = true;
          for (int64_t q = 0; q < p; q++) first &= mgrid_machine_domain(f->m, l, all[q]) != d;
          touched += first;
          /* groups that have members here, and elsewhere */
          for (int64_t g = 0; g < mgrid_family_count(of); g++) {
            int64_t other[RANKS], m = mgrid_family_members(of, g, 1, RANKS, other), here = 0;
            for (int64_t q = 0; q < m; q++) here += mgrid_machine_domain(f->m, l, other[q]) == d;
            if (here == 0 || here == m) continue;
            leave++;
            /* a rank is in one group after another */
            for (int64_t q = 0; q < m; q++)
              if (mgrid_machine_domain(f->m, l, other[q]) == d && ++calls[other[q]] > turns)
                turns = calls[other[q]];
          }
          leave = (leave + turns - 1) / turns;
          if (leave > share) share = leave;
        }
        check(r, price->by.shapes.shape[shape].at[l].domains == touched);
        if (touched > 1 && (l + 1 < f->m->ntiers || !of->overlapping))
          check(r, price->by.shapes.shape[shape].at[l].share == share);
      }
    }
}

static void check_price(rng *r, const fixture *f, bool mpi, size_t *repeats) {
  mgrid_error err;
  step_costs costs;
  step_price price[2];
  step_records records = { 0 };
  timed t = { 0 };
  assert_int_equal(MGRID_OK,
                   mgrid_step_costs_of(f->m, mpi, "{ \"flops\": 1e6 }", &costs, anew(&err)));
  for (int i = 0; i < 2; i++)
    if (mgrid_step_price_of(f->s, f->m, &costs, i ? STEP_IN_SHORT : STEP_IN_FULL,
                            i ? NULL : &records, &price[i], anew(&err)))
      fail_msg("%s\nMOONGRID_SEED=%" PRIu64, err.message, r->seed);
  check_shapes(r, f, &price[0]);
  t.x = executor_new(f->s, mpi ? STEP_BLOCKING : STEP_NCCL, false);
  t.price = &price[0];
  for (int64_t k = 0; k < t.x.world; k++) {
    size_t n = (size_t)t.x.n[k] + 1;
    t.begin[k] = malloc(n * sizeof(int64_t)), t.end[k] = malloc(n * sizeof(int64_t));
    memset(t.begin[k], -1, n * sizeof(int64_t)), memset(t.end[k], -1, n * sizeof(int64_t));
    for (int i = 0; i < PARTS; i++) t.moved[k][i] = calloc(n, sizeof(int64_t));
  }
  for (bool changed = true; changed;) {
    changed = false;
    for (int64_t k = 0; k < t.x.world; k++)
      for (int i = 0; i < t.x.n[k]; i++) changed |= advance_entry(&t, k, i);
  }
  int64_t last = 0;
  double sum[3] = { 0 };
  for (int64_t k = 0; k < t.x.world; k++) {
    double own[3];
    for (int i = 0; i < t.x.n[k]; i++) {
      check(r, t.end[k][i] >= 0);
      if (t.end[k][i] > last) last = t.end[k][i];
    }
    account(&t, k, &own[0], &own[1], &own[2]);
    for (int i = 0; i < 3; i++) sum[i] += own[i] / (double)t.x.world / STEP_SECOND;
  }
  for (int i = 0; i < 2; i++)
    if (llround(price[i].seconds * STEP_SECOND) != last)
      fail_msg("%.12g, not %" PRId64 " ps, MOONGRID_SEED=%" PRIu64, price[i].seconds, last,
               r->seed);
  check(r, fabs(price[0].mean.compute - sum[0]) < 1e-11
               && fabs(price[0].mean.exposed - sum[1]) < 1e-11);
  check(r, fabs(price[0].mean.hidden - sum[2]) < 1e-11);
  for (size_t e = 0; e < f->plan->content.nentries; e++)
    for (size_t l = 0; l < f->m->ntiers; l++)
      check(r,
            fabs(price[0].crossing[e * f->m->ntiers + l].bytes - bytes_of(&t, (int)e, l)) < 1e-6);
  *repeats += records.nrepeats;
  for (int64_t k = 0; k < t.x.world; k++) {
    free(t.begin[k]), free(t.end[k]);
    for (int i = 0; i < PARTS; i++) free(t.moved[k][i]);
  }
  executor_free(&t.x);
  mgrid_step_records_free(&records);
  mgrid_step_price_free(&price[0]);
  mgrid_step_price_free(&price[1]);
}

static void test_random_prices(void **state) {
  static const char *const machines[] = {
    "node:*[50GB/s,2us] gpu:2[300GB/s,1us]",
    "node:*[50GB/s,2us] gpu:3[300GB/s,1us]",
    "rack:2[10GB/s,5us] node:4[50GB/s,2us] gpu:2[300GB/s,1us]",
    "node:6[40GB/s] gpu:3,1,4,2,5,1[200GB/s,1us]",
    "node:4[50GB/s,2us] gpu:4[300GB/s,1us] ranks = 5,3,9..15,0..2,8,4,6..7",
    "gpu:*[100GB/s,1us]",
  };
  size_t priced = 0, repeats = 0;
  bool one = getenv("MOONGRID_SEED");
  (void)state;
  for (uint64_t seed = first_seed(), end = seed + (one ? 1 : 500); seed < end; seed++) {
    rng r = rng_new(seed);
    mgrid_error err;
    fixture f;
    mgrid_text text = { 0 };
    stepping x = { .r = &r,
                   .t = &text,
                   .streams = seed % 2,
                   .covers = rng_chance(&r, 20),
                   .mutate = 10,
                   .timed = true };
    int64_t world = draw_step(&x);
    const char *machine = machines[rng_between(&r, 0, 5)];
    if (!fixture_make(&f, mgrid_text_chars(&text), world, machine, anew(&err)))
      fail_msg("%s\n%s\nMOONGRID_SEED=%" PRIu64, err.message, mgrid_text_chars(&text), seed);
    for (int mpi = 0; mpi < 2; mpi++) {
      if (executor_told(f.s, mpi ? STEP_BLOCKING : STEP_NCCL, true) != STEP_PROVED) continue;
      check_price(&r, &f, mpi, &repeats);
      priced++;
    }
    fixture_free(&f);
    mgrid_text_free(&text);
  }
  print_message("%zu priced, %zu stretches of loops skipped\n", priced, repeats);
  if (!one) assert_true(priced > 600 && repeats > 50);
}

/* ----------------------------------------------------------------- by hand */

#define NODES \
  "node:2[50GB/s,2us] gpu:4[300GB/s,1us]" /* two nodes of four; tp is a node, dp goes across */
#define RAILS "node:2[100GB/s,2us] gpu:4[300GB/s,1us] rail = gpu[10GB/s]"

typedef struct sample {
  const char *step, *machine, *costs;
  bool mpi;
  double seconds, compute, exposed, hidden;
} sample;

static const sample samples[] = {
  /* a ring: twice, 3 hops, and 3/4 of the bytes */
  { "s:all_reduce(s.tp, 3e9)", NODES, "", false, 2 * (3e-6 + 0.0075), 0, 0.015006, 0 },
  /* a tree: up and down 2 levels, twice the bytes */
  { "s:all_reduce(s.tp, 300)", NODES, "", false, 4e-6 + 2e-9, 0, 4.002e-6, 0 },
  /* four groups share the link of a node */
  { "s:all_gather(s.dp, 10^9)", NODES, "", false, 2e-6 + 0.5 / 12.5, 0, 0.040002, 0 },
  /* one hop between nodes, six within; one group leaves the node */
  { "s:all_gather(s.all, 8 * 10^9)", NODES, "", false, 8e-6 + 7.0 / 50, 0, 0.140008, 0 },
  { "s:reduce_scatter(s.all, 8 * 10^9)", NODES, "", false, 8e-6 + 7.0 / 50, 0, 0.140008, 0 },
  /* four rails of 10 GB/s are slower than the node */
  { "s:all_gather(s.all, 8 * 10^9)", RAILS, "", false, 8e-6 + 7.0 / 40, 0, 0.175008, 0 },
  /* NVLink within the node does not need rails */
  { "s:all_gather(s.tp, 3e9)", RAILS, "\"nvlink\": \"node\"", false, 3e-6 + 0.0075, 0, 0.007503,
    0 },
  /* each of four members sends half of its bytes to the other node */
  { "s:all_to_all(s.all, 10^9)", NODES, "", false, 2e-6 + 2.0 / 50, 0, 0.040002, 0 },
  { "s:broadcast(s.all, 10^9)", NODES, "", false, 8e-6 + 1.0 / 50, 0, 0.020008, 0 },
  /* half of it comes from the other node to the root's; within a node 7/8 come to the root */
  { "s:gather(s.all, 10^9)", NODES, "", false, 2e-6 + 0.5 / 50, 0, 0.010002, 0 },
  { "s:barrier(s.all)", NODES, "", false, 4e-6, 0, 4e-6, 0 },
  /* switches reduce, no faster than links: 3/2 of the bytes, two hops */
  { "s:all_reduce(s.tp, 3e9)", NODES, "\"nvlink\": \"node\", \"nvls\": true", false, 2e-6 + 0.015,
    0, 0.015002, 0 },
  /* of a measured 0.5 at 100 MB and 1 at 10 GB, 0.75 at 1 GB; and a call takes 10 us before */
  { "s:all_gather(s.dp, 10^9)", NODES,
    "\"call\": 1e-5, \"efficiency\": { \"all_gather\": { \"node\": [[1e8, 0.5], [1e10, 1]] } }",
    false, 12e-6 + 0.5 / 9.375, 0, 12e-6 + 0.5 / 9.375, 0 },
  /* of all, unless there is one of the operation */
  { "s:all_gather(s.dp, 10^9)", NODES,
    "\"efficiency\": { \"*\": { \"*\": [[1, 0.5]] }, \"send\": { \"*\": [[1, 0.1]] } }", false,
    2e-6 + 0.08, 0, 0.080002, 0 },
  /* fitted to two calls of 2 members: a hop of 4 us, 0.8 of the bandwidth; four groups share the
  ** link */
  { "s:all_gather(s.dp, 10^9)", NODES,
    "\"measured\": [[\"all_gather\", \"node\", 2, 80000, 5e-6], [\"send\", \"node\", 2, 4e9, "
    "0.100004]]",
    false, 4e-6 + 0.5 / 10, 0, 0.050004, 0 },
  { "s:all_reduce(s.tp, 3e9)", NODES, "\"latency\": { \"gpu\": 2e-6 }", false, 2 * (6e-6 + 0.0075),
    0, 0.015012, 0 },
  /* a compute of 10 ms beside a call; ranks of the other node compute longer, and bytes move once
  ** all have come */
  { "s:compute { seconds = 0.01 } s:on('side'):all_gather(s.dp, 10^9) s:wait 'side'", NODES, "",
    false, 0.040002, 0.01, 0.030002, 0.01 },
  { "s:compute { seconds = 0.01 * (1 + s.dp.position) } s:all_gather(s.dp, 10^9)", NODES, "", false,
    0.060002, 0.015, 0.040002, 0 },
  { "s:compute { flops = 4 * 10^12 }", NODES, "\"flops\": 1e15", false, 0.004, 0.004, 0, 0 },
  { "s:compute { flops = 10^12, bytes = 10^12 }", NODES, "\"flops\": 1e15, \"memory\": 1e13", false,
    0.1, 0.1, 0, 0 },
  /* a pipeline of two stages and four microbatches of 10 ms, without bytes: a fifth of each stage's
  ** time is bubble */
  { "s:loop(4, function() if s.dp.position == 1 then s:recv(s.dp, 0, 0) end s:compute { seconds = "
    "0.01 }\n"
    "if s.dp.position == 0 then s:send(s.dp, 1, 0) end end)",
    NODES, "\"latency\": { \"node\": 0 }", false, 0.05, 0.04, 0, 0 },
  /* a million rounds of 2 us and 10 us */
  { "s:loop(10^6, function() s:sendrecv(s.dp, s.dp:next(true), s.dp:prev(true), 0) s:compute { "
    "seconds = 10e-6 } end)",
    NODES, "", false, 12, 10, 2, 0 },
  /* MPI: doubling, 3 rounds; members of a node share its link */
  { "s:all_reduce(s.all, 300)", NODES, "", true, 4e-6 + 300 * 4 / 50e9 + 2 * 300 / 300e9, 0,
    4e-6 + 26e-9, 0 },
  /* of two levels: within the node a quarter goes three hops twice, one group of two between
  ** nodes */
  { "s:all_reduce(s.all, 8 * 10^9)", NODES, "", true, 2 * (3e-6 + 0.02) + 2 * (2e-6 + 0.08), 0,
    0.20001, 0 },
  /* streams do not exist there: 10 ms, then the call, in which each waits for its turn */
  { "s:compute { seconds = 0.01 } s:on('side'):all_gather(s.dp, 10^9)", NODES, "", true, 0.050002,
    0.01, 0.040002, 0 },
};

static void test_by_hand(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof samples / sizeof *samples; i++) {
    const sample *x = &samples[i];
    for (int detail = STEP_IN_FULL; detail <= STEP_IN_SHORT; detail++) {
      mgrid_error err;
      fixture f;
      step_costs costs;
      step_price p;
      mgrid_text text = { 0 }, of = { 0 };
      mgrid_text_add(&text,
                     "return recipe { build = function(world) local g = grid(world, 'tp-dp', { tp "
                     "= 4, dp = fill })\n"
                     "local t = topology(world) t.tp, t.dp, t.all = g 'tp', g 'dp', g('tp', 'dp') "
                     "return t end,\n"
                     "step = function(s) %s end }",
                     x->step);
      mgrid_text_add(&of, "{ %s%s%s }", strstr(x->costs, "call") ? "" : "\"call\": 0",
                     *x->costs && !strstr(x->costs, "call") ? ", " : "", x->costs);
      if (!fixture_make(&f, mgrid_text_chars(&text), 8, x->machine, anew(&err))
          || mgrid_step_costs_of(f.m, x->mpi, mgrid_text_chars(&of), &costs, &err)
          || mgrid_step_price_of(f.s, f.m, &costs, (step_detail)detail, NULL, &p, &err))
        fail_msg("%s: %s", x->step, err.message);
      if (fabs(p.seconds - x->seconds) > 2e-12
          || fabs(p.mean.compute - x->compute) > 1e-11 * (1 + x->compute)
          || fabs(p.mean.exposed - x->exposed) > 1e-11 * (1 + x->exposed)
          || fabs(p.mean.hidden - x->hidden) > 1e-11)
        fail_msg("%s on %s: %.15g s, %.15g computes, %.15g exposed, %.15g hidden", x->step,
                 x->machine, p.seconds, p.mean.compute, p.mean.exposed, p.mean.hidden);
      mgrid_step_price_free(&p);
      fixture_free(&f);
      mgrid_text_free(&text);
      mgrid_text_free(&of);
    }
  }
}

/* A fit says what it is of, and how far it is off. */
static void test_fit(void **state) {
  static const step_measured exact[] = { { STEP_ALL_REDUCE, 0, 4, 8e6,
                                           2 * (3 * 5e-6 + 6e6 / 40e9) + 1e-6 },
                                         { STEP_SEND, 0, 2, 4e3, 5e-6 + 4e3 / 40e9 + 1e-6 },
                                         { STEP_ALL_TO_ALL, 0, 8, 8e9, 5e-6 + 7e9 / 40e9 + 1e-6 } };
  static const step_measured apart[] = { { STEP_SEND, 0, 2, 1e9, 0.02 },
                                         { STEP_SEND, 0, 2, 1e9, 0.03 },
                                         { STEP_SEND, 0, 2, 1e9, 0.03 } };
  static const step_measured fast[] = { { STEP_SEND, 0, 2, 1e9, 0.01 } };
  step_fit f;
  (void)state;
  mgrid_step_fit(exact, 3, 1e-6, 50e9, &f);
  assert_true(f.n == 3 && fabs(f.latency - 5e-6) < 1e-12 && fabs(f.share - 0.8) < 1e-9
              && f.worst < 1e-9);
  mgrid_step_fit(apart, 3, 0, 50e9,
                 /* 1/x with the least squares of x/t - 1, t = 2, 3, 3: x = (1/2 + 2/3) / (1/4 +
                 ** 2/9) */
                 &f);
  double x = 0.01 * (0.5 + 2.0 / 3) / (0.25 + 2.0 / 9);
  assert_true(f.latency < 1e-15 && fabs(f.share - 0.02 / x) < 1e-9);
  assert_true(fabs(f.median - (1 - x / 0.03)) < 1e-9 && fabs(f.worst - (x / 0.02 - 1)) < 1e-9);
  mgrid_step_fit(fast, 1, 0, 50e9, &f); /* twice as fast as the link can be */
  assert_true(f.latency < 1e-15 && fabs(f.share - 1) < 1e-9 && fabs(f.worst - 1) < 1e-9);
}

/* What cannot be priced is refused with what is missing. */
static void test_refusals(void **state) {
  static const struct {
    const char *step, *machine, *costs, *message;
  } bad[] = {
    { "s:all_reduce(s.dp, 8)", "node:2 gpu:4[300GB/s]", NULL,
      "groups of dp cross the level node, whose bandwidth is not known; a machine gives it as "
      "node[50GB/s]; the bandwidth of a nearer level does not replace it" },
    { "s:all_reduce(s.tp, 8)", "node:2 gpu:4", NULL,
      "groups of tp cross the level gpu, whose bandwidth is not known; a machine gives it as "
      "gpu[50GB/s]" },
    { "s:all_reduce(s.tp, 8)", "node:1[1GB/s] gpu:4[1GB/s]", NULL,
      "a world of 8 ranks does not fit the machine, which has 4 places" },
    { "s:compute { name = 'layer', flops = 1 }", NODES, NULL,
      "compute 'layer', line 1, has flops, but the flops of a GPU in a second are not known; "
      "--flops 400T gives them" },
    { "s:loop(10^6, function() s:compute { seconds = 10^4 } end)", NODES, NULL,
      "the step takes more than 53 days" },
    { "if s.dp.position == 0 then s:send(s.dp, 1, 8) end", NODES, NULL,
      "the step has no price, because some rank does not reach its end" },
    { "", NODES, "{ \"flop\": 1 }",
      "costs: unknown key 'flop'; nearest is 'flops' (flops, start, memory, capacity, "
      "beside, call, latency, nvlink, nvls, efficiency, measured, source, error)" },
    { "", NODES, "{ \"flops\": -1 }", "costs: flops: a number from 0 on expected" },
    { "", NODES, "[]", "costs: an object expected, { \"flops\": 4e14 }" },
    { "", NODES, "{", "costs: line 1: string or '}' expected near end of file" },
    { "", NODES, "{ \"latency\": { \"nod\": 1 } }",
      "costs: unknown level 'nod'; nearest is 'node' (node, gpu)" },
    { "", NODES, "{ \"nvls\": true }", "costs: nvls: the level nvlink, too, expected" },
    { "", NODES, "{ \"nvlink\": \"gpu\" }",
      "costs: nvlink: a level with levels within it expected" },
    { "", NODES, "{ \"efficiency\": { \"allreduce\": {} } }",
      "costs: unknown operation 'allreduce'; nearest is 'all_reduce' (all_reduce, all_gather, "
      "reduce_scatter, "
      "all_to_all, broadcast, "
      "reduce, gather, scatter, barrier, send, recv)" },
    { "", NODES, "{ \"efficiency\": { \"loop\": {} } }",
      "costs: unknown operation 'loop'; known: all_reduce, all_gather, reduce_scatter, all_to_all, "
      "broadcast, reduce, gather, scatter, barrier, send, recv" },
    { "", NODES, "{ \"measured\": [[\"barrier\", \"node\", 2, 8, 1e-3]] }",
      "costs: measured: [\"all_reduce\", \"node\", 4, 1e9, 0.05]: operation, level, members, "
      "bytes, and more seconds "
      "than a call "
      "takes without bytes, expected" },
    { "", NODES, "{ \"efficiency\": { \"*\": { \"*\": [[8, 0.5], [4, 0.6]] } } }",
      "costs: *: [bytes, share] with bytes that ascend, and a share above 0 and up to 8, "
      "expected" },
  };
  (void)state;
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    mgrid_error err;
    fixture f;
    mgrid_text text = { 0 };
    mgrid_step_price_options o = MGRID_STEP_PRICE_OPTIONS_INIT;
    mgrid_step_time t = MGRID_STEP_TIME_INIT;
    mgrid_text_add(
        &text,
        "return recipe { build = function(world) local g = grid(world, 'tp-dp', { tp = 4, dp = "
        "fill }) local t = "
        "topology(world) t.tp, t.dp = g 'tp', g 'dp' return t end, step = function(s) %s end }",
        bad[i].step);
    if (!fixture_make(&f, mgrid_text_chars(&text), 8, bad[i].machine, anew(&err)))
      fail_msg("%s", err.message);
    o.costs = bad[i].costs;
    assert_int_not_equal(MGRID_OK, mgrid_step_price(f.s, f.m, &o, &t, NULL, NULL, anew(&err)));
    assert_string_equal(bad[i].message, err.message);
    assert_true(t.seconds == 0);
    fixture_free(&f);
    mgrid_text_free(&text);
  }
}

int main(int argc, char **argv) {
  const struct CMUnitTest tests[] = { cmocka_unit_test(test_by_hand), cmocka_unit_test(test_fit),
                                      cmocka_unit_test(test_refusals),
                                      cmocka_unit_test(test_random_prices) };
  return run_program("price", tests, argc, argv);
}
