/* SPDX-License-Identifier: MIT
**
** test_relabel.c - new owners of which the fewest elements move: against every permutation of names
** where there are few pieces, and where there are many by a proof that no swaps, of two or around a
** circle, keep more.
*/
#include "random.h"
#include "moongrid_tensor.h"

enum { CASES = 3000, LARGE = 40, FEW = 7, MANY = 150, ELEMENTS = 1000 };

typedef struct drawing {
  size_t n;
  int64_t pieces, was[ELEMENTS], now[ELEMENTS], weight[ELEMENTS];
  bool weighted;
} drawing;

static drawing draw(rng *r, int64_t pieces, size_t most) {
  drawing d = { .n = (size_t)rng_between(r, 0, (int64_t)most),
                .pieces = pieces,
                .weighted = rng_chance(r, 50) };
  int64_t turn = rng_between(r, 0, pieces - 1), stays = rng_between(r, 0, 100);
  for (size_t i = 0; i < d.n; i++) {
    /* some were with pieces that are gone */
    d.was[i] = rng_between(r, 0, pieces - 1 + (rng_chance(r, 10) ? 2 : 0));
    d.now[i] = rng_chance(r, (int)stays) ? (d.was[i] + turn) % pieces
                                         : rng_between(r, 0, pieces - 1);
    d.weight[i] = rng_between(r, 0, 9);
  }
  return d;
}

static int64_t weight(const drawing *d, size_t i) { return d->weighted ? d->weight[i] : 1; }

/* What stays when share k is with piece name[k]. */
static int64_t stays(const drawing *d, const int64_t *name) {
  int64_t sum = 0;
  for (size_t i = 0; i < d->n; i++) sum += name[d->now[i]] == d->was[i] ? weight(d, i) : 0;
  return sum;
}

static int64_t best(const drawing *d, int64_t *name, int64_t k) {
  if (k == d->pieces) return stays(d, name);
  int64_t most = 0;
  for (int64_t i = k; i < d->pieces; i++) {
    int64_t kept = name[k];
    name[k] = name[i], name[i] = kept;
    int64_t found = best(d, name, k + 1);
    most = found > most ? found : most;
    name[i] = name[k], name[k] = kept;
  }
  return most;
}

/* Run it, and check that shares have names, each its own. */
static int64_t relabel(const rng *r, const drawing *d, int64_t *name) {
  int64_t out[ELEMENTS], kept = -1, again, sum = 0;
  bool named[MANY] = { false };
  mgrid_error e = MGRID_ERROR_INIT;
  const int64_t *w = d->weighted ? d->weight : NULL;
  check(r, mgrid_relabel(d->n, d->was, d->now, w, d->pieces, out, &kept, &e) == MGRID_OK);
  for (int64_t k = 0; k < d->pieces; k++) name[k] = -1;
  for (size_t i = 0; i < d->n; i++) {
    check(r, out[i] >= 0 && out[i] < d->pieces);
    check(r, name[d->now[i]] < 0 || name[d->now[i]] == out[i]);
    check(r, name[d->now[i]] == out[i] || !named[out[i]]);
    named[name[d->now[i]] = out[i]] = true;
    sum += out[i] == d->was[i] ? weight(d, i) : 0;
  }
  check(r, sum == kept);
  drawing copy = *d; /* into the list itself, the same */
  check(r, mgrid_relabel(d->n, copy.was, copy.now, w, d->pieces, copy.now, &again, &e) == MGRID_OK
               && again == kept);
  check(r, memcmp(copy.now, out, d->n * sizeof *out) == 0);
  /* empty shares have the names that are left */
  for (int64_t k = 0, free = 0; k < d->pieces; k++) {
    while (free < d->pieces && named[free]) free++;
    if (name[k] < 0) name[k] = free++;
  }
  return kept;
}

static void test_few_pieces(void **state) {
  (void)state;
  for (uint64_t seed = first_seed(); seed < first_seed() + CASES; seed++) {
    rng r = rng_new(seed);
    int64_t name[FEW], any[FEW];
    drawing d = draw(&r, rng_between(&r, 1, rng_chance(&r, 5) ? FEW : 5), 24);
    int64_t kept = relabel(&r, &d, name);
    for (int64_t k = 0; k < d.pieces; k++) any[k] = k;
    check(&r, kept == best(&d, any, 0));
  }
}

/* The best assignment is one that no circle of shares, each taking the name of the next, makes
** better: there is no circle of positive gain, which would never let the longest paths settle
** (Bellman and Ford). */
static void test_many_pieces(void **state) {
  (void)state;
  static int64_t common[MANY][MANY];
  for (uint64_t seed = first_seed(); seed < first_seed() + LARGE; seed++) {
    rng r = rng_new(seed);
    int64_t name[MANY], far[MANY] = { 0 };
    drawing d = draw(&r, rng_between(&r, 30, MANY), ELEMENTS);
    relabel(&r, &d, name);
    memset(common, 0, sizeof common);
    for (size_t i = 0; i < d.n; i++)
      if (d.was[i] < d.pieces) common[d.now[i]][d.was[i]] += weight(&d, i);
    bool changed = true;
    for (int64_t round = 0; round <= d.pieces && changed; round++) {
      changed = false;
      for (int64_t a = 0; a < d.pieces; a++)
        for (int64_t b = 0; b < d.pieces; b++) {
          int64_t gain = common[a][name[b]] - common[a][name[a]];
          if (far[a] + gain > far[b]) far[b] = far[a] + gain, changed = true;
        }
    }
    check(&r, !changed);
  }
}

static void test_refusals(void **state) {
  (void)state;
  static const int64_t low[] = { 0, 1, 2 }, high[] = { 0, 1, 3 }, minus[] = { 0, -1, 2 },
                       huge[] = { 1, INT64_MAX / 4, 1 };
  static const struct {
    const int64_t *was, *now, *weight;
    int64_t pieces;
    mgrid_status status;
    const char *message;
  } cases[] = {
    { low, high, NULL, 3, MGRID_OUT_OF_RANGE, "new owner 2 is 3; 3 pieces are 0 to 2" },
    { low, minus, NULL, 3, MGRID_OUT_OF_RANGE, "new owner 1 is -1; 3 pieces are 0 to 2" },
    { minus, low, NULL, 3, MGRID_OUT_OF_RANGE, "owner 1 is -1; owners are 0 or more" },
    { low, low, minus, 3, MGRID_OUT_OF_RANGE, "weight 1 is -1; weights are 0 or more" },
    { low, low, huge, 3, MGRID_OVERFLOW, "the weights sum to more than 2^61 at number 1" },
    { low, low, NULL, 0, MGRID_OUT_OF_RANGE, "0 pieces; there are 1 to 1024" },
    { low, low, NULL, 1025, MGRID_OUT_OF_RANGE, "1025 pieces; there are 1 to 1024" },
    { NULL, low, NULL, 3, MGRID_USAGE, "the list of 3 owners before is NULL" },
    { low, NULL, NULL, 3, MGRID_USAGE, "the list of 3 new owners is NULL" },
  };
  int64_t out[3] = { 7, 7, 7 }, kept;
  mgrid_error e;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    kept = 7;
    assert_int_equal(mgrid_relabel(3, cases[i].was, cases[i].now, cases[i].weight, cases[i].pieces,
                                   out, &kept, anew(&e)),
                     cases[i].status);
    assert_string_equal(e.message, cases[i].message);
    assert_true(kept == 0 && out[0] == 7 && out[2] == 7);
  }
  assert_int_equal(mgrid_relabel(3, low, low, NULL, 3, NULL, NULL, anew(&e)), MGRID_USAGE);
  assert_int_equal(mgrid_relabel(3, high, low, NULL, 3, out, &kept, anew(&e)), MGRID_OK);
  assert_true(kept == 2 && out[0] == 0 && out[1] == 1 && out[2] == 2); /* piece 3 is gone */
  assert_int_equal(mgrid_relabel(0, NULL, NULL, NULL, 1, NULL, &kept, anew(&e)), MGRID_OK);
  assert_int_equal(kept, 0);
}

int main(int argc, char **argv) {
  const struct CMUnitTest tests[] = { cmocka_unit_test(test_few_pieces),
                                      cmocka_unit_test(test_many_pieces),
                                      cmocka_unit_test(test_refusals) };
  return run_program("relabel", tests, argc, argv);
}
