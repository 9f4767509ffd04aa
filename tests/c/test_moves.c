/* SPDX-License-Identifier: MIT
**
** test_moves.c - tensors and moves against plain dealing: who holds which element is written down
** for every rank, and every message of every rank is compared with it.
*/
#include "tensors/chunks.h"
#include "moved.h"

enum { PAIRS = 4000, LARGE = 400, MOVES = 500 };

/* ------------------------------------------------------------------- tensors */

/* Ranks that were dealt nothing of an axis, or of one of its parts, are told, and counted; no
** others are. */
static void check_hollow(const rng *r, const dealt *t) {
  int64_t without = 0;
  for (size_t i = 0; i < t->naxes; i++) {
    const mgrid_slicing *s = &t->tensor->axis[i];
    mgrid_text note = { 0 };
    bool empty = false;
    for (size_t k = 0; k < s->nparts; k++)
      for (int64_t rank = 0; rank < t->d.window.world && rank < DEALT_WORLD; rank++) {
        bool any = !t->on[rank];
        for (int64_t x = s->starts[k]; x < s->starts[k + 1]; x++) any |= t->has[i][rank][x];
        empty |= !any;
      }
    check(r, mgrid_axis_hollow(t->tensor, i, NULL, &note) == empty && (note.len > 0) == empty);
    mgrid_text_free(&note);
  }
  for (int64_t rank = 0; rank < t->d.window.world && rank < DEALT_WORLD; rank++) {
    bool any = true;
    for (size_t i = 0; i < t->naxes; i++) {
      bool some = false;
      for (int64_t x = 0; x < t->axis[i].given.length; x++) some |= t->has[i][rank][x];
      any &= some;
    }
    without += t->on[rank] && !any;
  }
  check(r, mgrid_tensor_hollow(t->tensor) == without);
}

/* The part of every rank: its runs are the indices that it was dealt. */
static void check_parts(const rng *r, const dealt *t) {
  int64_t largest = 0;
  check_hollow(r, t);
  for (int64_t rank = 0; rank < t->d.window.world; rank++) {
    mgrid_coords at;
    mgrid_tensor_part part = MGRID_TENSOR_PART_INIT;
    bool held = rank < DEALT_WORLD && t->on[rank];
    check(r, mgrid_tensor_coords(t->tensor, rank, &at) == held);
    mgrid_tensor_part_of(t->tensor, rank, &part);
    check(r, part.held == held);
    if (!held) continue;
    check(r, mgrid_tensor_rank(t->tensor, &at) == rank);
    for (size_t i = 0; i < t->naxes; i++) {
      bool seen[DEALT_LENGTH] = { false };
      int64_t n = 0, last = -1;
      mgrid_run run;
      mgrid_walk w = mgrid_walk_begin(&t->tensor->axis[i], at.piece[i]);
      while (mgrid_walk_next(&w, &run)) {
        check(r, run.length > 0 && run.start > last);
        last = run.start + run.length; /* the next does not touch it */
        for (int64_t k = 0; k < run.length; k++) seen[run.start + k] = true;
        n += run.length;
      }
      check(r, memcmp(seen, t->has[i][rank], (size_t)t->axis[i].given.length) == 0);
      check(r, n == part.shape[i] && n == mgrid_piece_size(&t->tensor->axis[i], at.piece[i]));
    }
    int64_t elements = 0, all = dealt_elements(t);
    for (int64_t e = 0; e < all; e++) elements += holds(t, rank, e);
    check(r, part.elements == elements && part.bytes == 4 * elements);
    largest = part.bytes > largest ? part.bytes : largest;
    if (!t->flat) continue;
    check(r, part.slice == t->each[rank]);
    if (elements) check(r, part.first == t->first[rank] && part.offset == t->offset[rank]);
  }
  check(r, mgrid_tensor_largest(t->tensor) == largest);
}

/* --------------------------------------------------------------------- moves */

static int by_ends(const void *a, const void *b) {
  const mgrid_message *x = a, *y = b;
  return x->from != y->from ? (x->from > y->from) - (x->from < y->from)
                            : (x->to > y->to) - (x->to < y->to);
}

static bool together(const mgrid_pair *p, int64_t a, int64_t b) {
  return p->machine && a / p->machine == b / p->machine;
}

/* Two holders of a shard differ by one message at most: to other machines, and if both are on one
** to ranks of it. */
static void check_balance(const rng *r, const world *w, const mgrid_pair *p, const int64_t *far,
                          const int64_t *near) {
  for (int64_t a = 0; a < w->ranks; a++)
    for (int64_t b = 0; b < a; b++) {
      mgrid_coords x, y;
      if (!mgrid_pair_held(p, a, &x) || !mgrid_pair_held(p, b, &y)) continue;
      bool same = x.slice == y.slice;
      for (size_t i = 0; i < w->from.naxes; i++) same = same && x.piece[i] == y.piece[i];
      if (same) check(r, far[a] - far[b] <= 1 && far[b] - far[a] <= 1);
      if (same && together(p, a, b)) check(r, near[a] - near[b] <= 1 && near[b] - near[a] <= 1);
    }
}

static void check_move(const rng *r, const world *w, const mgrid_pair *p) {
  mgrid_messages sends = { 0 }, receives = { 0 };
  int64_t far[DEALT_WORLD] = { 0 }, near[DEALT_WORLD] = { 0 };
  for (int64_t rank = 0; rank < w->ranks; rank++) {
    check(r, mgrid_pair_sends(p, rank, 0, &sends));
    check(r, mgrid_pair_receives(p, rank, 0, &receives));
    int64_t stays = 0;
    for (int64_t e = 0; e < w->elements; e++) stays += had(w, rank, e) && needs(w, rank, e);
    check(r, mgrid_pair_stays(p, rank) == 4 * stays);
  }
  check(r, sends.n == receives.n);
  if (sends.n) {
    qsort(sends.at, sends.n, sizeof *sends.at, by_ends);
    qsort(receives.at, receives.n, sizeof *receives.at, by_ends);
  }
  uint8_t *arrives = calloc((size_t)(w->ranks * w->elements), 1);
  assert_non_null(arrives);
  int64_t bytes = 0, nobody = 0, minimum = 0, crossing = 0, must_cross = 0;
  for (size_t i = 0; i < sends.n; i++) {
    const mgrid_message *m = &sends.at[i];
    int64_t n = 0;
    check(r, by_ends(m, &receives.at[i]) == 0 && m->bytes == receives.at[i].bytes && m->bytes > 0
                 && m->from != m->to);
    check(r, i == 0 || by_ends(m - 1, m) != 0);
    ++*(together(p, m->from, m->to) ? &near[m->from] : &far[m->from]);
    bytes += m->bytes;
    if (p->machine && !together(p, m->from, m->to)) crossing += m->bytes;
    for (int64_t e = 0; e < w->elements; e++)
      if (had(w, m->from, e) && needs(w, m->to, e)) arrives[m->to * w->elements + e]++, n++;
    check(r, m->bytes == 4 * n);
  }
  for (int64_t rank = 0; rank < w->ranks; rank++)
    /* what is needed and not there, once; and nothing else */
    for (int64_t e = 0; e < w->elements; e++) {
      bool missing = needs(w, rank, e) && !had(w, rank, e), left = is_left(w, e);
      bool there = false; /* on its machine? */
      for (int64_t k = 0; k < w->ranks && p->machine; k++)
        there |= together(p, rank, k) && had(w, k, e);
      nobody += 4 * (missing && !left);
      missing = missing && left;
      minimum += 4 * missing;
      must_cross += 4 * (missing && p->machine && !there);
      check(r, arrives[rank * w->elements + e] == missing);
    }
  check(r, receives.missing == nobody);
  check(r, bytes == minimum && crossing == must_cross);
  check_balance(r, w, p, far, near);
  free(arrives);
  free(sends.at);
  free(receives.at);
}

/* Does of each two strides one divide the other? */
static bool fit(const mgrid_grid *a, const mgrid_grid *b) {
  for (size_t i = 0; i < a->n; i++)
    for (size_t k = 0; k < b->n; k++) {
      int64_t x = a->axis[i].stride, y = b->axis[k].stride;
      if (x % y != 0 && y % x != 0) return false;
    }
  return true;
}

static void test_random_pairs(void **state) {
  (void)state;
  int64_t machines = 0, losing = 0, odd_dims = 0, shared[2] = { 0 },
          kinds[6] = { 0 }; /* the last: a flat after the move, before it, on both sides */
  world *w = malloc(sizeof *w);
  assert_non_null(w);
  for (uint64_t seed = first_seed(); seed < first_seed() + PAIRS; seed++) {
    rng r = rng_new(seed);
    int64_t length[DEALT_AXES];
    mgrid_renaming names, olds;
    mgrid_pair p;
    mgrid_error err;
    memset(w, 0, sizeof *w);
    draw_sides(&r, w);
    size_t naxes = (size_t)rng_between(&r, 1, DEALT_AXES);
    w->elements = 1;
    for (size_t i = 0; i < naxes; i++)
      w->elements *= length[i] = rng_between(&r, 1, naxes > 2 ? 8 : DEALT_LENGTH);
    bool odd = rng_chance(&r, 40);
    draw_tensor(&r, &w->from, naxes, length, odd);
    draw_tensor(&r, &w->to, naxes, length, odd);
    if (rng_chance(&r, 35)) draw_flat(&r, &w->from);
    if (rng_chance(&r, 35)) draw_flat(&r, &w->to);
    draw_names(&r, w, &names);
    draw_lost(&r, w, &olds);
    check_parts(&r, &w->from);
    check_parts(&r, &w->to);
    int64_t machine = rng_chance(&r, 50) ? (int64_t[]){ 2, 3, 4, 8, 6, 16 }[rng_between(&r, 0, 5)]
                                         : 0;
    check(&r, mgrid_pair_init(&p, w->from.tensor, w->to.tensor, &names, &olds,
                              rng_between(&r, 0, 5), machine, "t", anew(&err))
                  == MGRID_OK);
    /* also of few; or by a list */
    p.ranged = !p.apart && !p.flat && rng_chance(&r, 80) && mgrid_ranges_find(&p);
    check_move(&r, w, &p);
    machines += p.machine && p.ranged;
    losing += w->loses;
    for (size_t i = 0; i < naxes; i++)
      shared[p.ranged] += w->from.axis[i].given.copies && w->from.axis[i].shared > 1;
    odd_dims += p.ranged && !fit(w->from.d.grid, w->to.d.grid);
    kinds[p.flat ? 3 + w->to.flat + 2 * w->from.flat - 1 : p.apart ? 0 : p.ranged ? 1 : 2]++;
    dealt_free(&w->from);
    dealt_free(&w->to);
  }
  free(w);
  if (!getenv("MOONGRID_SEED"))
    assert_true(kinds[0] > 100 && kinds[1] > 500 && kinds[2] > 500 && kinds[3] > 100
                && kinds[4] > 100 && kinds[5] > 20 && machines > 200 && losing > 500
                && odd_dims > 100 && shared[0] > 50 && shared[1] > 50); /* all ways were tried */
}

/* -------------------------------------------------------------- large worlds */

/* Two axes, each cut by some dims of the grid, in any order. */
static mgrid_tensor *draw_square(rng *r, const drawn *d) {
  mgrid_tensor_axis axis[] = { MGRID_TENSOR_AXIS_INIT, MGRID_TENSOR_AXIS_INIT };
  const char *dims[2][DRAWN_DIMS];
  size_t at[DRAWN_DIMS], n[3] = { 0 };
  mgrid_error err;
  for (size_t i = 0; i < d->n; i++) at[i] = i;
  rng_shuffle(r, d->n, at);
  for (size_t i = 0; i < d->n; i++) {
    size_t side = (size_t)rng_between(r, 0, 2); /* 2: it numbers copies */
    if (side < 2) dims[side][n[side]] = d->dim[at[i]].name;
    n[side]++;
  }
  for (size_t i = 0; i < 2; i++)
    axis[i].name = i ? "column" : "row", axis[i].length = 100000, axis[i].ndims = n[i],
    axis[i].dims = dims[i];
  mgrid_tensor *t = mgrid_tensor_new(d->grid, "f32", 2, axis, NULL, anew(&err));
  check(r, t != NULL);
  return t;
}

static void check_alike(const rng *r, const mgrid_messages *a, const mgrid_messages *b) {
  check(r, a->n == b->n);
  for (size_t i = 0; i < a->n; i++)
    check(r, by_ends(&a->at[i], &b->at[i]) == 0 && a->at[i].bytes == b->at[i].bytes);
}

/* What is counted by ranges is what a list of all holders says, where no table of all elements
** would end. */
static void test_ranges_are_lists(void **state) {
  (void)state;
  int64_t ranged = 0, unfit = 0, messages = 0;
  for (uint64_t seed = first_seed(); seed < first_seed() + LARGE; seed++) {
    rng r = rng_new(seed);
    mgrid_renaming same = { 0 };
    mgrid_error err;
    mgrid_pair p, q;
    int64_t size = (int64_t[]){ 720, 2016, 4320, 5040 }[rng_between(&r, 0, 3)];
    int64_t offset = rng_chance(&r, 50) ? 0 : rng_between(&r, 0, size / 16) * 16;
    drawn from = draw_grid_over(&r, (mgrid_window){ 2 * size, 0, size });
    drawn to = draw_grid_over(&r, (mgrid_window){ 2 * size, offset, size });
    mgrid_tensor *a = draw_square(&r, &from), *b = draw_square(&r, &to);
    int64_t machine = rng_chance(&r, 50) ? (int64_t[]){ 2, 4, 6, 8 }[rng_between(&r, 0, 3)] : 0;
    check(&r,
          mgrid_pair_init(&p, a, b, &same, &same, rng_between(&r, 0, 5), machine, "t", anew(&err))
              == MGRID_OK);
    q = p;
    q.ranged = false;
    ranged += p.ranged;
    unfit += p.ranged && !fit(from.grid, to.grid);
    for (int i = 0; i < 8 && p.ranged; i++) {
      int64_t rank = rng_between(&r, 0, 2 * size - 1);
      mgrid_messages x = { 0 }, y = { 0 };
      check(&r, mgrid_pair_sends(&p, rank, 0, &x) && mgrid_pair_receives(&p, rank, 0, &x));
      check(&r, mgrid_pair_sends(&q, rank, 0, &y) && mgrid_pair_receives(&q, rank, 0, &y));
      check_alike(&r, &x, &y);
      messages += (int64_t)x.n;
      free(x.at);
      free(y.at);
    }
    mgrid_tensor_free(a);
    mgrid_tensor_free(b);
    mgrid_grid_free(from.grid);
    mgrid_grid_free(to.grid);
  }
  if (!getenv("MOONGRID_SEED")) assert_true(ranged > 100 && unfit > 50 && messages > 10000);
}

/* An axis cut by n dims of size 4, the fastest in a world of 4^10 ranks after `copies`. */
static mgrid_tensor *cut_often(size_t n, int64_t copies) {
  static const char *const names[] = { "a", "b", "c", "d", "e", "f", "g", "h", "i", "j" };
  mgrid_tensor_axis axis = MGRID_TENSOR_AXIS_INIT;
  mgrid_dim dims[11] = { { "copy", copies } };
  mgrid_error err;
  for (size_t i = 0; i < n; i++) dims[i + 1] = (mgrid_dim){ names[i], 4 };
  axis.name = "row", axis.length = 1 << 20, axis.ndims = n,
  axis.dims = (const char **)(uintptr_t)names;
  mgrid_grid *g = mgrid_grid_new(mgrid_world(1 << 20), n + 1, dims, anew(&err));
  mgrid_tensor *t = mgrid_tensor_new(g, "f32", 1, &axis, NULL, anew(&err));
  assert_non_null(t);
  mgrid_grid_free(g);
  return t;
}

/* Many dims that fit into each other are not a reason for lists. */
static void test_many_dims_that_fit(void **state) {
  mgrid_tensor *a = cut_often(5, 1024), *b = cut_often(10, 1);
  mgrid_renaming same = { 0 };
  mgrid_messages x = { 0 }, y = { 0 };
  mgrid_error err;
  mgrid_pair p;
  (void)state;
  assert_int_equal(MGRID_OK, mgrid_pair_init(&p, a, b, &same, &same, 1, 0, "t", anew(&err)));
  assert_true(p.ranged);
  for (int64_t rank = 77; rank < 1 << 20; rank += 99991)
    assert_true(mgrid_pair_sends(&p, rank, 0, &x) && mgrid_pair_receives(&p, rank, 0, &x));
  p.ranged = false;
  for (int64_t rank = 77; rank < 1 << 20; rank += 99991)
    assert_true(mgrid_pair_sends(&p, rank, 0, &y) && mgrid_pair_receives(&p, rank, 0, &y));
  assert_true(x.n > 10 && x.n == y.n);
  for (size_t i = 0; i < x.n; i++) assert_int_equal(0, by_ends(&x.at[i], &y.at[i]));
  free(x.at);
  free(y.at);
  mgrid_tensor_free(a);
  mgrid_tensor_free(b);
}

/* One copy of a tensor on each rank of a window. */
static mgrid_tensor *copied(mgrid_window w) {
  mgrid_tensor_axis axis = MGRID_TENSOR_AXIS_INIT;
  mgrid_dim dim = { "dp", w.size };
  mgrid_error err;
  axis.name = "row", axis.length = 10;
  mgrid_grid *g = mgrid_grid_new(w, 1, &dim, anew(&err));
  mgrid_tensor *t = mgrid_tensor_new(g, "f32", 1, &axis, NULL, anew(&err));
  assert_non_null(t);
  mgrid_grid_free(g);
  return t;
}

/* Who needs a tensor may be far behind holders that are side by side: to find him takes no step for
** each of them. */
static void test_holders_side_by_side(void **state) {
  const int64_t worlds[] = { 100, 1 << 20, INT32_MAX };
  mgrid_renaming same = { 0 };
  (void)state;
  for (size_t i = 0; i < sizeof worlds / sizeof *worlds; i++) {
    int64_t ranks = worlds[i], shift = 3;
    mgrid_tensor *a = copied((mgrid_window){ ranks, 0, ranks - shift });
    mgrid_tensor *b = copied((mgrid_window){ ranks, shift, ranks - shift });
    mgrid_messages list = { 0 };
    mgrid_error err;
    mgrid_pair p;
    mgrid_needs d;
    mgrid_coords shard, at;
    assert_int_equal(MGRID_OK, mgrid_pair_init(&p, a, b, &same, &same, 0, 0, "t", anew(&err)));
    for (int64_t rank = 0; rank < 5; rank++) assert_true(mgrid_pair_sends(&p, rank, 0, &list));
    assert_int_equal(shift, list.n);
    for (int64_t k = 0; k < shift; k++) {
      assert_int_equal(k, list.at[k].from);
      assert_int_equal(ranks - shift + k, list.at[k].to);
    }
    mgrid_needs_begin(&d, &p);
    assert_true(mgrid_tensor_coords(a, 0, &shard) && mgrid_needs_of(&d, &shard));
    for (int64_t k = 0; k < shift; k++) assert_true(mgrid_needs_coords(&d, k, &at) <= 12 + 31);
    mgrid_needs_free(&d);
    free(list.at);
    mgrid_tensor_free(a);
    mgrid_tensor_free(b);
  }
}

/* --------------------------------------------------- whole moves, with data */

static void test_data_arrives(void **state) {
  (void)state;
  world *w = malloc(sizeof *w);
  assert_non_null(w);
  for (uint64_t seed = first_seed(); seed < first_seed() + MOVES; seed++) {
    rng r = rng_new(seed);
    check_drawn_move(&r, w);
  }
  free(w);
}

/* -------------------------------------------------------------------- types */

static void test_floats_are_rounded_to_the_nearest(void **state) {
  static const struct {
    uint32_t wide;
    uint16_t narrow;
  } cases[] = { { 0, 0 },
                { 0x80000000, 0x8000 },
                { 0x3f800000, 0x3f80 },
                { 0x3f808000, 0x3f80 }, /* halfway: to the even one */
                { 0x3f818000, 0x3f82 },
                { 0x3f808001, 0x3f81 },
                { 0x3f807fff, 0x3f80 },
                { 0x7f7fffff, 0x7f80 }, /* the largest float is nearer to infinity */
                { 0x7f800000, 0x7f80 },
                { 0xff800000, 0xff80 },
                { 0x7f800001, 0x7fc0 }, /* a NaN stays one */
                { 0xffffffff, 0xffff },
                { 0x00000001, 0 } };
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    assert_int_equal(mgrid_bf16_of(cases[i].wide), cases[i].narrow);
  for (uint32_t i = 0; i < 0x10000; i++) { /* there and back; of NaNs the quiet ones */
    uint32_t back = mgrid_bf16_of(mgrid_f32_of((uint16_t)i));
    assert_true(back == i || ((i & 0x7fff) > 0x7f80 && back == (i | 0x40)));
  }
}

int main(int argc, char **argv) {
  const struct CMUnitTest tests[] = { cmocka_unit_test(test_random_pairs),
                                      cmocka_unit_test(test_ranges_are_lists),
                                      cmocka_unit_test(test_holders_side_by_side),
                                      cmocka_unit_test(test_many_dims_that_fit),
                                      cmocka_unit_test(test_data_arrives),
                                      cmocka_unit_test(test_floats_are_rounded_to_the_nearest) };
  return run_program("moves", tests, argc, argv);
}
