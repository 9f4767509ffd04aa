/* SPDX-License-Identifier: MIT
**
** test_losses.c - losses against plain lists: who holds which element before and after, who
** survives, which groups stay. The moves are carried by hand.
*/
#include "random.h"
#include "survive/next.h"

enum { CASES = 200, WORLD = 32, SIDE = 12, ELEMENTS = SIDE * SIDE, LARGE = 4096, LOSSES = 60 };

/* ------------------------------------------------------------------ layouts */

typedef struct layout {
  mgrid_runtime *rt;
  mgrid_plan *plan;
  mgrid_losses *losses;
  int64_t world;
} layout;

static void layout_of(const char *text, int64_t world, size_t n, const char *const *args,
                      const mgrid_losses_options *options, layout *l) {
  mgrid_error err;
  l->world = world;
  l->rt = mgrid_runtime_new(NULL, NULL, anew(&err));
  if (strchr(text, ' '))
    mgrid_runtime_load(l->rt, "case", text, strlen(text), &err);
  else
    mgrid_runtime_load(l->rt, text, NULL, 0, &err);
  l->plan = mgrid_runtime_plan(l->rt, world, NULL, n, args, &err);
  if (!l->plan) fail_msg("%s", err.message);
  l->losses = mgrid_losses_new(l->rt, l->plan, n, args, options, &err);
  assert_non_null(l->losses);
}

static void layout_free(layout *l) {
  mgrid_losses_free(l->losses);
  mgrid_plan_free(l->plan);
  mgrid_runtime_free(l->rt);
}

/* A random layout of three dims in any order, with tensors cut over some of them, and spares. */
static void draw_layout(rng *r, layout *l) {
  static const char *const names[] = { "tp", "dp", "pp" };
  static const char *const cuts[] = { "row = 'tp'",
                                      "column = 'tp'",
                                      "row = 'pp', column = 'tp'",
                                      "row = { 'tp', 'pp' }",
                                      "column = { 'pp', cyclic = 2 }",
                                      "row = 'dp'" };
  char text[2048];
  size_t at[] = { 0, 1, 2 };
  int64_t size[] = { rng_between(r, 1, 3), rng_between(r, 1, 4), rng_between(r, 1, 2) },
          spares = rng_between(r, 0, 3);
  rng_shuffle(r, 3, at);
  int n = snprintf(text, sizeof text,
                   "return recipe { spares = %d, build = function(world)\n"
                   "local g = grid(world, '%s-%s-%s', { tp = %d, pp = %d, dp = fill })\n"
                   "local t = topology(world)\nt.g = g t.tp = g 'tp' t.dp = g 'dp' t.pp = g 'pp' "
                   "t.mp = g('tp', 'pp')\n",
                   (int)spares, names[at[0]], names[at[1]], names[at[2]], (int)size[0],
                   (int)size[2]);
  for (int i = 0; i < 2; i++)
    n += snprintf(text + n, sizeof text - (size_t)n,
                  "t.x%d = tensor { over = 'g', axes = { { 'row', %d }, { 'column', %d } }, type = "
                  "'f32', cut = { %s } }\n",
                  i, (int)rng_between(r, 1, SIDE), (int)rng_between(r, 1, SIDE),
                  cuts[rng_between(r, 0, 5)]);
  if (rng_chance(r, 50))
    n += snprintf(text + n, sizeof text - (size_t)n,
                  "t.f0, t.f1 = flat { tensor { over = 'g', axes = { { 'row', %d } }, type = "
                  "'f32', cut = { row = 'tp' } },\n"
                  "tensor { over = 'g', axes = { { 'row', %d }, { 'column', 6 } }, type = 'f32', "
                  "cut = { column = 'tp' } },\n"
                  "over = 'dp', pad = 2 }\n",
                  6 * (int)rng_between(r, 1, 2), (int)rng_between(r, 1, SIDE));
  snprintf(text + n, sizeof text - (size_t)n, "return t end }");
  int64_t world = size[0] * size[1] * size[2] + spares;
  layout_of(text, world, 0, NULL, NULL, l);
}

/* ----------------------------------------------------------------- elements */

/* List the elements that a rank has of a tensor, in the order of its part; return how many. */
static int64_t part_of(const mgrid_plan *p, const char *name, int64_t rank, int32_t out[ELEMENTS]) {
  mgrid_tensor_part part = MGRID_TENSOR_PART_INIT;
  const mgrid_tensor *t = mgrid_plan_tensor(p, name);
  int64_t index[2][SIDE], n[2] = { 1, 1 }, all = 0, kept = 0, width = 1;
  mgrid_error err;
  mgrid_tensor_local(p, name, rank, &part, anew(&err));
  index[1][0] = 0;
  for (size_t i = 0; i < part.naxes && part.held; i++) {
    mgrid_run runs[SIDE];
    int64_t k = mgrid_tensor_runs(p, name, rank, i, SIDE, runs, &err);
    n[i] = 0;
    for (int64_t j = 0; j < k; j++)
      for (int64_t x = 0; x < runs[j].length; x++) index[i][n[i]++] = runs[j].start + x;
  }
  if (mgrid_tensor_naxes(t) == 2) width = mgrid_tensor_length(t, 1);
  for (int64_t a = 0; a < n[0] && part.held; a++)
    for (int64_t b = 0; b < n[1]; b++, all++)
      if (!part.slice || (all >= part.first && all < part.first + part.elements))
        out[kept++] = (int32_t)(index[0][a] * width + index[1][b]);
  assert_int_equal(part.held ? part.elements : 0, kept);
  return kept;
}

static bool is_lost(const int64_t *lost, size_t n, int64_t rank) {
  for (size_t i = 0; i < n; i++)
    if (lost[i] == rank) return true;
  return false;
}

typedef struct packed {
  const int32_t *source; /* pack from here, or NULL: unpack to `target`; both: copy */
  int32_t *target;
  int64_t n;
  int32_t at[ELEMENTS];
} packed;

static int take_piece(void *ud, const mgrid_move_piece *x) {
  packed *m = ud;
  int64_t i[MGRID_AXES_MAX] = { 0 }, count = 1;
  for (size_t a = 0; a < x->naxes; a++) count *= x->lengths[a];
  for (int64_t k = 0; k < count; k++) {
    int64_t from = x->from_offset, to = x->to_offset;
    for (size_t a = 0; a < x->naxes; a++)
      from += i[a] * x->from_strides[a], to += i[a] * x->to_strides[a];
    if (m->source && m->target)
      m->target[to] = m->source[from];
    else if (m->source)
      m->at[m->n++] = m->source[from];
    else
      m->target[to] = m->at[m->n++];
    for (size_t a = x->naxes; a-- > 0 && ++i[a] == x->lengths[a];) i[a] = 0;
  }
  return 0;
}

/* Carry one tensor by hand; add what was received, and what nobody has left. */
static void carry(const rng *r, const layout *l, const mgrid_loss *x, const char *name, size_t n,
                  const int64_t *lost, mgrid_loss_sums *sums) {
  const mgrid_plan *to = mgrid_loss_plan(x);
  int64_t ranks = mgrid_plan_world(to), count;
  int32_t source[WORLD][ELEMENTS], want[ELEMENTS], got[ELEMENTS];
  bool left[ELEMENTS] = { false }, any[ELEMENTS] = { false };
  mgrid_move *move[WORLD];
  mgrid_error err;
  for (int64_t old = 0; old < l->world; old++) {
    count = part_of(l->plan, name, old, want);
    for (int64_t e = 0; e < count; e++) any[want[e]] = true;
    for (int64_t e = 0; e < count; e++) left[want[e]] |= !is_lost(lost, n, old);
  }
  for (int64_t e = 0; e < ELEMENTS; e++) sums->missing += any[e] && !left[e] ? 4 : 0;
  for (int64_t k = 0; k < ranks; k++) {
    part_of(l->plan, name, mgrid_loss_old(x, k), source[k]);
    move[k] = mgrid_loss_move(x, k, 1, &name, NULL, anew(&err));
    if (!move[k]) fail_msg("%s; MOONGRID_SEED=%" PRIu64, err.message, r->seed);
  }
  for (int64_t k = 0; k < ranks; k++) {
    packed m = { .source = source[k], .target = got };
    mgrid_move_sums of = MGRID_MOVE_SUMS_INIT;
    int64_t missing = 0;
    count = part_of(to, name, k, want);
    for (int64_t e = 0; e < count; e++) got[e] = -1;
    check(r, !mgrid_move_pieces(move[k], MGRID_STAYS, -1, take_piece, &m, &err));
    for (size_t i = 0; i < mgrid_move_npeers(move[k]); i++) {
      mgrid_move_peer p = MGRID_MOVE_PEER_INIT;
      mgrid_move_peers(move[k], i, &p, &err);
      m = (packed){ .source = source[p.rank] };
      check(r, !mgrid_move_pieces(move[p.rank], MGRID_SENDS, k, take_piece, &m, &err)
                   && 4 * m.n == p.receive);
      m.source = NULL, m.target = got, m.n = 0;
      check(r, !mgrid_move_pieces(move[k], MGRID_RECEIVES, p.rank, take_piece, &m, &err));
    }
    for (int64_t e = 0; e < count; e++) {
      check(r, got[e] == (left[want[e]] ? want[e] : -1));
      missing += 4 * !left[want[e]];
    }
    mgrid_move_bytes(move[k], &of, &err);
    check(r, of.missing == missing);
    sums->moved += of.receive, sums->stay += of.stay;
  }
  for (int64_t k = 0; k < ranks; k++) mgrid_move_free(move[k]);
}

/* ------------------------------------------------------------------- groups */

/* The old ranks of a group of the next plan are a group of the old one. */
static bool is_old_group(const layout *l, const mgrid_loss *x, const mgrid_family *f,
                         int64_t group) {
  int64_t size = mgrid_family_size(f, group);
  for (size_t i = 0; i < mgrid_plan_nfamilies(l->plan); i++) {
    const mgrid_family *old = mgrid_plan_family(l->plan, mgrid_plan_family_name(l->plan, i));
    for (int64_t g = 0; g < mgrid_family_count(old); g++) {
      bool same = mgrid_family_size(old, g) == size;
      for (int64_t k = 0; k < size && same; k++)
        same = mgrid_loss_old(x, mgrid_family_rank(f, group, k)) == mgrid_family_rank(old, g, k);
      if (same) return true;
    }
  }
  return false;
}

/* Another family, or an earlier group, has the same members. */
static bool is_repeated(const mgrid_plan *p, size_t family, int64_t group) {
  const mgrid_family *f = mgrid_plan_family(p, mgrid_plan_family_name(p, family));
  for (size_t i = 0; i < family; i++) {
    const mgrid_family *other = mgrid_plan_family(p, mgrid_plan_family_name(p, i));
    for (int64_t g = 0; g < mgrid_family_count(other); g++) {
      bool same = mgrid_family_size(other, g) == mgrid_family_size(f, group);
      for (int64_t k = 0; k < mgrid_family_size(f, group) && same; k++)
        same = mgrid_family_rank(other, g, k) == mgrid_family_rank(f, group, k);
      if (same) return true;
    }
  }
  return false;
}

static void check_groups(const rng *r, const layout *l, const mgrid_loss *x,
                         const mgrid_loss_sums *sums) {
  const mgrid_plan *p = mgrid_loss_plan(x);
  int64_t kept = 0, made = 0;
  for (size_t i = 0; i < mgrid_plan_nfamilies(p); i++) {
    const char *name = mgrid_plan_family_name(p, i), *old = NULL;
    const mgrid_family *f = mgrid_plan_family(p, name);
    for (int64_t g = 0; g < mgrid_family_count(f); g++) {
      int64_t at = -1;
      bool several = mgrid_family_size(f, g) > 1, stays = several && is_old_group(l, x, f, g);
      check(r, mgrid_loss_kept(x, name, g, &old, &at) == stays);
      if (stays) /* and this is the one */
        for (int64_t k = 0; k < mgrid_family_size(f, g); k++)
          check(r, mgrid_family_rank(mgrid_plan_family(l->plan, old), at, k)
                       == mgrid_loss_old(x, mgrid_family_rank(f, g, k)));
      if (!several || is_repeated(p, i, g)) continue;
      kept += stays, made += !stays;
    }
  }
  check(r, sums->kept == kept && sums->made == made);
}

/* -------------------------------------------------------------------- tests */

static size_t draw_lost(rng *r, int64_t world, size_t most, int64_t *lost) {
  size_t any[LARGE],
      n = (size_t)rng_between(r, 1, (int64_t)most < world - 1 ? (int64_t)most : world - 1);
  for (size_t i = 0; i < (size_t)world; i++) any[i] = i;
  rng_shuffle(r, (size_t)world, any);
  for (size_t i = 0; i < n; i++) lost[i] = (int64_t)any[i];
  return n;
}

static mgrid_loss_sums sums_of(const mgrid_loss *x) {
  mgrid_loss_sums sums = MGRID_LOSS_SUMS_INIT;
  mgrid_loss_describe(x, &sums, NULL);
  return sums;
}

/* Every survivor is in the next world, once, and nobody else. */
static void check_map(const rng *r, const mgrid_loss *x, int64_t world, size_t n,
                      const int64_t *lost) {
  int64_t survivors = 0;
  for (int64_t old = 0; old < world; old++) {
    int64_t is = mgrid_loss_rank(x, old);
    if (is_lost(lost, n, old)) {
      check(r, is == -1);
      continue;
    }
    check(r, is >= 0 && is < world - (int64_t)n && mgrid_loss_old(x, is) == old);
    survivors++;
  }
  check(r, survivors == mgrid_plan_world(mgrid_loss_plan(x)) && mgrid_loss_old(x, survivors) == -1);
}

/* A layout that did not shrink changes nobody's place but those of the lost. */
static void check_places(const rng *r, const layout *l, const mgrid_loss *x, size_t n,
                         const int64_t *lost) {
  int64_t spares = mgrid_plan_nspares(l->plan), places = l->world - spares;
  for (int64_t i = 0; i < places && sums_of(x).how == MGRID_LOSS_REPLACE; i++)
    if (!is_lost(lost, n, i))
      check(r, mgrid_loss_old(x, i) == i);
    else
      check(r, mgrid_loss_old(x, i) >= places); /* a spare */
}

static void test_random_losses(void **state) {
  int64_t replaced = 0, shrunk = 0, stopped = 0, gone = 0, moved = 0;
  (void)state;
  for (uint64_t seed = first_seed(); seed < first_seed() + CASES; seed++) {
    rng r = rng_new(seed);
    layout l;
    int64_t lost[WORLD];
    mgrid_error err;
    draw_layout(&r, &l);
    for (int again = 0; again < 3 && l.world > 1; again++) {
      mgrid_loss_sums sums = MGRID_LOSS_SUMS_INIT, by_hand = MGRID_LOSS_SUMS_INIT;
      size_t n = draw_lost(&r, l.world, 4, lost);
      mgrid_loss *x = mgrid_loss_new(l.losses, n, lost, anew(&err));
      if (!x) fail_msg("%s; MOONGRID_SEED=%" PRIu64, err.message, seed);
      mgrid_loss_describe(x, &sums, &err);
      check(&r, (sums_of(x).how == MGRID_LOSS_STOP) == !mgrid_loss_plan(x));
      check(&r, !*sums_of(x).why == !!mgrid_loss_plan(x));
      if (mgrid_loss_plan(x)) {
        check_map(&r, x, l.world, n, lost);
        check_places(&r, &l, x, n, lost);
        check_groups(&r, &l, x, &sums);
        for (size_t i = 0; i < mgrid_plan_ntensors(l.plan); i++)
          carry(&r, &l, x, mgrid_plan_tensor_name(l.plan, i), n, lost, &by_hand);
        check(&r, sums.missing == by_hand.missing && sums.moved == by_hand.moved
                      && sums.stay == by_hand.stay);
        check(&r, (mgrid_loss_missing(x, 0) != NULL) == (sums.missing > 0));
        check(&r, sums.layout + mgrid_plan_nspares(mgrid_loss_plan(x)) == sums.survivors
                      && sums.uncounted == 0);
      }
      replaced += sums_of(x).how == MGRID_LOSS_REPLACE;
      shrunk += sums_of(x).how == MGRID_LOSS_SHRINK;
      stopped += sums_of(x).how == MGRID_LOSS_STOP;
      gone += sums.missing > 0, moved += sums.moved > 0;
      mgrid_loss_free(x);
    }
    layout_free(&l);
  }
  if (!getenv("MOONGRID_SEED"))
    assert_true(replaced > 50 && shrunk > 50 && stopped > 5 && gone > 50 && moved > 50);
}

/* Many losses of a large world, single ranks and whole nodes: each has an answer. MOONGRID_LOSSES
** is their number. */
static void test_large_world(void **state) {
  const char *const args[] = { "tp=8", "pp=8" }, *number = getenv("MOONGRID_LOSSES");
  layout l;
  (void)state;
  layout_of("megatron", LARGE, 2, args, NULL, &l);
  rng r = rng_new(first_seed());
  for (int i = 0; i < (number ? atoi(number) : LOSSES); i++) {
    int64_t lost[LARGE];
    mgrid_error err;
    mgrid_loss_sums sums = MGRID_LOSS_SUMS_INIT;
    size_t n = draw_lost(&r, LARGE, i % 8 == 0 ? LARGE - 1 : 16, lost);
    if (i % 4 == 1) { /* a node */
      for (n = 0; n < 8; n++) lost[n] = i * 8 % LARGE + (int64_t)n;
    }
    mgrid_loss *x = mgrid_loss_new(l.losses, n, lost, anew(&err));
    if (!x) fail_msg("%s", err.message);
    mgrid_loss_describe(x, &sums, &err);
    check(&r, sums_of(x).how == ((int64_t)n > LARGE - 64 ? MGRID_LOSS_STOP : MGRID_LOSS_SHRINK));
    if (mgrid_loss_plan(x)) {
      check(&r, sums.layout == (LARGE - (int64_t)n) / 64 * 64);
      check_map(&r, x, LARGE, n, lost);
      /* one replica of 64 goes, the others stay together */
      if (n == 1) check(&r, sums.kept > sums.made / 2);
    }
    mgrid_loss_free(x);
  }
  layout_free(&l);
}

/* The same loss is decided alike, whatever was asked before, and its ranks may be given in any
** order. */
static void test_same_everywhere(void **state) {
  const char *const args[] = { "tp=2", "pp=2" };
  layout a, b;
  char x[33], y[33], z[33];
  mgrid_error err;
  (void)state;
  layout_of("megatron", 24, 2, args, NULL, &a);
  layout_of("megatron", 24, 2, args, NULL, &b);
  mgrid_loss_free(mgrid_loss_new(b.losses, 1, (int64_t[]){ 7 }, anew(&err)));
  mgrid_loss *p = mgrid_loss_new(a.losses, 2, (int64_t[]){ 3, 11 }, &err);
  mgrid_loss *q = mgrid_loss_new(b.losses, 2, (int64_t[]){ 11, 3 }, &err);
  mgrid_loss *o = mgrid_loss_new(b.losses, 2, (int64_t[]){ 11, 4 }, &err);
  layout_free(&b); /* a loss needs no more than itself */
  mgrid_loss_digest(p, x), mgrid_loss_digest(q, y), mgrid_loss_digest(o, z);
  assert_string_equal(x, y);
  assert_string_not_equal(x, z);
  for (int64_t i = 0; i < 22; i++) assert_int_equal(mgrid_loss_old(p, i), mgrid_loss_old(q, i));
  mgrid_loss_free(p), mgrid_loss_free(q), mgrid_loss_free(o);
  layout_free(&a);
}

static void expect(mgrid_losses *l, size_t n, const int64_t *lost, mgrid_status status,
                   const char *message) {
  mgrid_error err;
  assert_null(mgrid_loss_new(l, n, lost, anew(&err)));
  assert_int_equal(status, err.status);
  assert_string_equal(message, err.message);
}

static void test_refusals(void **state) {
  mgrid_losses_options how = MGRID_LOSSES_OPTIONS_INIT;
  layout l;
  mgrid_error err;
  int64_t all[8] = { 0, 1, 2, 3, 4, 5, 6, 7 };
  (void)state;
  layout_of("megatron", 8, 1, (const char *[]){ "tp=2" }, NULL, &l);
  expect(l.losses, 1, (int64_t[]){ 8 }, MGRID_OUT_OF_RANGE, "rank 8 is out of range (0 to 7)");
  expect(l.losses, 1, (int64_t[]){ -1 }, MGRID_OUT_OF_RANGE, "rank -1 is out of range (0 to 7)");
  expect(l.losses, 3, (int64_t[]){ 2, 5, 2 }, MGRID_DUPLICATE, "rank 2 is lost twice");
  expect(l.losses, 8, all, MGRID_REFUSED, "all 8 ranks are lost, and nobody is left to go on");
  expect(l.losses, 0, NULL, MGRID_REFUSED, "no rank is lost");
  how.how = "shrimk";
  assert_null(mgrid_losses_new(l.rt, l.plan, 0, NULL, &how, anew(&err)));
  assert_string_equal(
      "unknown answer to a loss 'shrimk'; nearest is 'shrink' (stop, replace, shrink)",
      err.message);
  /* one rank is left, and a group has two */
  mgrid_loss *x = mgrid_loss_new(l.losses, 7, all, anew(&err));
  assert_int_equal(MGRID_LOSS_STOP, sums_of(x).how);
  assert_null(mgrid_loss_plan(x));
  assert_int_equal(-1, mgrid_loss_rank(x, 7));
  assert_null(mgrid_loss_move(x, 0, 0, NULL, NULL, anew(&err)));
  assert_string_equal("the job stops after this loss: nothing moves", err.message);
  mgrid_loss_free(x);
  layout_free(&l);
}

static void expect_spares(size_t n, const int64_t *ranks, mgrid_status status,
                          const char *message) {
  mgrid_error err;
  mgrid_topology *t = mgrid_topology_new(8, anew(&err));
  mgrid_dim dim = { "dp", 6 };
  mgrid_grid *g = mgrid_grid_new((mgrid_window){ 8, 0, 6 }, 1, &dim, &err);
  mgrid_family *f = mgrid_grid_along(g, 1, (const char *[]){ "dp" }, MGRID_GRID_ORDER, &err);
  mgrid_topology_add(t, "dp", f, NULL, &err);
  assert_int_equal(status, mgrid_topology_spares(t, n, ranks, &err));
  assert_string_equal(message, err.message);
  mgrid_plan *p = mgrid_plan_new(t, anew(&err));
  assert_int_equal(!status, p != NULL); /* a failed call breaks the topology */
  if (p) assert_int_equal(6, mgrid_plan_spare(p, 0));
  assert_int_equal(p ? 2 : 0, mgrid_plan_nspares(p));
  assert_int_equal(-1, mgrid_plan_spare(p, 2));
  mgrid_plan_free(p);
  mgrid_family_free(f);
  mgrid_grid_free(g);
  mgrid_topology_free(t);
}

static void test_spares(void **state) {
  (void)state;
  expect_spares(2, (int64_t[]){ 7, 6 }, MGRID_OK, "");
  expect_spares(2, (int64_t[]){ 7, 7 }, MGRID_DUPLICATE, "rank 7 is given twice as a spare");
  expect_spares(1, (int64_t[]){ 8 }, MGRID_OUT_OF_RANGE, "spare 8 is out of range (0 to 7)");
  expect_spares(0, NULL, MGRID_OUT_OF_RANGE, "a world of 8 ranks has 1 to 7 spares, not 0");
  expect_spares(1, (int64_t[]){ 5 }, MGRID_REFUSED,
                "rank 5 is a spare, and in group 0 of family 'dp'; families are made over the "
                "World that build gets");
}

int main(int argc, char **argv) {
  const struct CMUnitTest tests[] = { cmocka_unit_test(test_random_losses),
                                      cmocka_unit_test(test_large_world),
                                      cmocka_unit_test(test_same_everywhere),
                                      cmocka_unit_test(test_refusals),
                                      cmocka_unit_test(test_spares) };
  return run_program("losses", tests, argc, argv);
}
