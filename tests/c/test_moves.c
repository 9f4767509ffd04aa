/* SPDX-License-Identifier: MIT
**
** test_moves.c - tensors and moves against plain dealing: who holds which element is written down for every rank, and
** every message of every rank is compared with it.
*/
#include "tensors.h"

enum { PAIRS = 4000 };

/* ------------------------------------------------------------------- tensors */

/* The part of every rank: its runs are the indices that it was dealt. */
static void check_parts(const rng *r, const dealt *t) {
  for (int64_t rank = 0; rank < t->d.window.world; rank++) {
    mgrid_seat        at;
    mgrid_tensor_part part = MGRID_TENSOR_PART_INIT;
    bool              held = rank < DEALT_WORLD && t->on[rank];
    check(r, mgrid_tensor_seat(t->tensor, rank, &at) == held);
    mgrid_tensor_part_of(t->tensor, rank, &part);
    check(r, part.held == held);
    if (!held) continue;
    check(r, mgrid_tensor_rank(t->tensor, &at) == rank);
    for (size_t i = 0; i < t->naxes; i++) {
      bool       seen[DEALT_LENGTH] = { false };
      int64_t    n = 0, last = -1;
      mgrid_run  run;
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
  }
}

/* --------------------------------------------------------------------- moves */

typedef struct world {
  int64_t ranks, elements;
  dealt   from, to;
  int32_t names[DEALT_WORLD], back[DEALT_WORLD];
  bool    renamed;
} world;

static bool holds(const dealt *t, int64_t rank, int64_t element) {
  if (rank < 0 || rank >= DEALT_WORLD || !t->on[rank]) return false;
  for (size_t i = t->naxes; i-- > 0; element /= t->axis[i].given.length)
    if (!t->has[i][rank][element % t->axis[i].given.length]) return false;
  return true;
}

static bool needs(const world *w, int64_t rank, int64_t element) {
  return holds(&w->to, w->renamed ? w->back[rank] : rank, element);
}

static int by_ends(const void *a, const void *b) {
  const mgrid_message *x = a, *y = b;
  return x->from != y->from ? (x->from > y->from) - (x->from < y->from) : (x->to > y->to) - (x->to < y->to);
}

/* Two holders of a shard differ by one message at most. */
static void check_balance(const rng *r, const world *w, const int64_t *sent) {
  for (int64_t a = 0; a < w->ranks; a++)
    for (int64_t b = 0; b < a; b++) {
      mgrid_seat x, y;
      if (!mgrid_tensor_seat(w->from.tensor, a, &x) || !mgrid_tensor_seat(w->from.tensor, b, &y)) continue;
      bool same = true;
      for (size_t i = 0; i < w->from.naxes; i++) same = same && x.piece[i] == y.piece[i];
      if (same) check(r, sent[a] - sent[b] <= 1 && sent[b] - sent[a] <= 1);
    }
}

static void check_move(const rng *r, const world *w, const mgrid_pair *p) {
  mgrid_messages sends = { 0 }, receives = { 0 };
  int64_t        sent[DEALT_WORLD] = { 0 };
  for (int64_t rank = 0; rank < w->ranks; rank++) {
    check(r, mgrid_pair_sends(p, rank, 0, &sends));
    check(r, mgrid_pair_receives(p, rank, 0, &receives));
    int64_t stays = 0;
    for (int64_t e = 0; e < w->elements; e++) stays += holds(&w->from, rank, e) && needs(w, rank, e);
    check(r, mgrid_pair_stays(p, rank) == 4 * stays);
  }
  check(r, sends.n == receives.n);
  if (sends.n) {
    qsort(sends.at, sends.n, sizeof *sends.at, by_ends);
    qsort(receives.at, receives.n, sizeof *receives.at, by_ends);
  }
  uint8_t *arrives = calloc((size_t)(w->ranks * w->elements), 1);
  assert_non_null(arrives);
  int64_t bytes = 0, minimum = 0;
  for (size_t i = 0; i < sends.n; i++) {
    const mgrid_message *m = &sends.at[i];
    int64_t              n = 0;
    check(r, by_ends(m, &receives.at[i]) == 0 && m->bytes == receives.at[i].bytes && m->bytes > 0 && m->from != m->to);
    check(r, i == 0 || by_ends(m - 1, m) != 0);
    sent[m->from]++;
    bytes += m->bytes;
    for (int64_t e = 0; e < w->elements; e++)
      if (holds(&w->from, m->from, e) && needs(w, m->to, e)) arrives[m->to * w->elements + e]++, n++;
    check(r, m->bytes == 4 * n);
  }
  for (int64_t rank = 0; rank < w->ranks; rank++)
    for (int64_t e = 0; e < w->elements; e++) { /* what is needed and not there, once; and nothing else */
      bool missing = needs(w, rank, e) && !holds(&w->from, rank, e);
      minimum += 4 * missing;
      check(r, arrives[rank * w->elements + e] == missing);
    }
  check(r, bytes == minimum);
  check_balance(r, w, sent);
  free(arrives);
  free(sends.at);
  free(receives.at);
}

/* Grids of two sides: any two; or of one window cut in another way; or windows apart. */
static void draw_sides(rng *r, world *w) {
  do {
    mgrid_grid_free(w->from.d.grid);
    w->from.d = draw_grid(r, 32);
  } while (w->from.d.window.world > DEALT_WORLD);
  mgrid_window at = w->from.d.window;
  if (rng_chance(r, 60)) {
    int64_t all = at.size * rng_between(r, 1, 2);
    if (rng_chance(r, 30)) at.offset += at.size;
    if (at.offset + all > DEALT_WORLD) all = at.size;
    if (at.offset + all > DEALT_WORLD) at.offset = 0;
    if (at.world < at.offset + all) at.world = at.offset + all;
    at.size = all;
    w->to.d = draw_grid_over(r, at);
  } else {
    w->to.d = draw_grid(r, 32);
  }
  w->ranks = w->from.d.window.world > w->to.d.window.world ? w->from.d.window.world : w->to.d.window.world;
}

static void draw_names(rng *r, world *w, mgrid_renaming *names) {
  size_t any[DEALT_WORLD];
  w->renamed = rng_chance(r, 15);
  *names = (mgrid_renaming){ 0 };
  if (!w->renamed) return;
  for (size_t i = 0; i < (size_t)w->ranks; i++) any[i] = i, w->back[i] = -1;
  rng_shuffle(r, (size_t)w->ranks, any);
  int64_t n = w->to.d.window.world;
  for (int64_t i = 0; i < n; i++) {
    w->names[i] = (int32_t)any[i];
    w->back[any[i]] = (int32_t)i;
  }
  *names = (mgrid_renaming){ n, w->names, w->ranks, w->back };
}

static void test_random_pairs(void **state) {
  (void)state;
  int64_t kinds[3] = { 0, 0, 0 };
  world  *w = malloc(sizeof *w);
  assert_non_null(w);
  for (uint64_t seed = first_seed(); seed < first_seed() + PAIRS; seed++) {
    rng            r = rng_new(seed);
    int64_t        length[DEALT_AXES];
    mgrid_renaming names;
    mgrid_pair     p;
    mgrid_error    err;
    memset(w, 0, sizeof *w);
    draw_sides(&r, w);
    size_t naxes = (size_t)rng_between(&r, 1, DEALT_AXES);
    w->elements = 1;
    for (size_t i = 0; i < naxes; i++) w->elements *= length[i] = rng_between(&r, 1, naxes > 2 ? 8 : DEALT_LENGTH);
    bool odd = rng_chance(&r, 40);
    draw_tensor(&r, &w->from, naxes, length, odd);
    draw_tensor(&r, &w->to, naxes, length, odd);
    draw_names(&r, w, &names);
    check_parts(&r, &w->from);
    check_parts(&r, &w->to);
    check(&r, mgrid_pair_init(&p, w->from.tensor, w->to.tensor, &names, rng_between(&r, 0, 5), "t", anew(&err))
                  == MGRID_OK);
    check_move(&r, w, &p);
    kinds[p.apart ? 0 : p.closed ? 1 : 2]++;
    dealt_free(&w->from);
    dealt_free(&w->to);
  }
  free(w);
  if (!getenv("MOONGRID_SEED"))
    assert_true(kinds[0] > 100 && kinds[1] > 500 && kinds[2] > 500); /* all ways were tried */
}

int main(int argc, char **argv) {
  const struct CMUnitTest tests[] = { cmocka_unit_test(test_random_pairs) };
  return run_program("moves", tests, argc, argv);
}
