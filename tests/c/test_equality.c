/* SPDX-License-Identifier: MIT
**
** test_equality.c - the laws of equality, twins, and rounds in which no rank occurs twice.
*/
#include "lists.h"

#include "families/family.h"

enum { CASES = 3000 };

/* -------------------------------------------------------------------- twins */

static void test_twin(void **unused) {
  (void)unused;
  for (uint64_t seed = first_seed(); seed < first_seed() + 500; seed++) {
    lists l;
    mgrid_error err = MGRID_ERROR_INIT;
    rng r = rng_new(seed);
    drawn d = draw_grid(&r, 60);
    mgrid_family *f = draw_family(&r, &d, 2, &l), *twin = mgrid_family_twin(f, anew(&err));
    mgrid_family *again = mgrid_family_twin(twin, anew(&err));
    check(&r, twin->twin && again->twin && mgrid_family_equal(f, twin));
    mgrid_family_free(f); /* a twin keeps alive what it shares */
    mgrid_family_free(twin);
    lists_check(&r, again, &l);
    mgrid_family_free(again);
    mgrid_grid_free(d.grid);
    lists_free(&l);
  }
}

/* A family made from a twin is not a twin, whatever the size of its groups. */
static void test_twin_ends_with_operations(void **unused) {
  (void)unused;
  mgrid_error err = MGRID_ERROR_INIT;
  const char *a = "a";
  for (int64_t size = 2; size <= 4; size++) {
    mgrid_dim dims[] = { { "a", size }, { "b", 3 } };
    mgrid_grid *g = mgrid_grid_new(mgrid_world(3 * size), 2, dims, anew(&err));
    mgrid_family *f = mgrid_grid_along(g, 1, &a, MGRID_GRID_ORDER, anew(&err)),
                 *twin = mgrid_family_twin(f, anew(&err));
    mgrid_family *made[] = { mgrid_family_neighbours(twin, 1, false, anew(&err)),
                             mgrid_family_bundle(twin, 1, anew(&err)),
                             mgrid_family_lists(twin, anew(&err)) };
    for (size_t i = 0; i < 3; i++) {
      assert_non_null(made[i]);
      assert_false(made[i]->twin);
      mgrid_family_free(made[i]);
    }
    mgrid_family_free(f);
    mgrid_family_free(twin);
    mgrid_grid_free(g);
  }
}

/* ------------------------------------------------------------------ equality */

/* Families of the same small world, so that many are equal: equal exactly as the lists. */
static void test_equality(void **unused) {
  (void)unused;
  int equal = 0, other = 0;
  for (uint64_t seed = first_seed(); seed < first_seed() + 4 * CASES; seed++) {
    lists l[2];
    mgrid_error err = MGRID_ERROR_INIT;
    rng r = rng_new(seed);
    mgrid_family *f[2], *listed;
    int64_t size = rng_between(&r, 1, 8) * (rng_chance(&r, 30) ? 2 : 1);
    for (int i = 0; i < 2; i++) {
      drawn d = draw_grid_over(&r, (mgrid_window){ size + 2, 1, size });
      f[i] = draw_family(&r, &d, (int)rng_between(&r, 0, 3), &l[i]);
      mgrid_grid_free(d.grid);
    }
    bool same = lists_same(&l[0], &l[1]);
    check(&r, mgrid_family_equal(f[0], f[1]) == same);
    check(&r, mgrid_family_equal(f[1], f[0]) == same);
    check(&r, mgrid_family_equal(f[0], f[0]));
    listed = mgrid_family_lists(f[0], anew(&err));
    check(&r, mgrid_family_equal(f[0], listed) && mgrid_family_equal(listed, f[0]));
    /* one canonical text */
    if (same && f[0]->form == &mgrid_strided_form && f[1]->form == &mgrid_strided_form) {
      char text[2][256];
      for (int i = 0; i < 2; i++) mgrid_family_describe(f[i], text[i], sizeof text[i]);
      check(&r, strcmp(text[0], text[1]) == 0);
    }
    equal += same;
    other += !same;
    mgrid_family_free(listed);
    for (int i = 0; i < 2; i++) {
      mgrid_family_free(f[i]);
      lists_free(&l[i]);
    }
  }
  assert_true(equal > CASES / 20 && other > CASES / 20);
}

/* Families without groups are equal, however they were made. */
static void test_equality_without_groups(void **unused) {
  (void)unused;
  mgrid_error err = MGRID_ERROR_INIT;
  mgrid_dim all = { "a", MGRID_FILL };
  mgrid_grid *g[2] = { mgrid_grid_new((mgrid_window){ 4, 0, 2 }, 1, &all, anew(&err)),
                       mgrid_grid_new((mgrid_window){ 4, 2, 2 }, 1, &all, anew(&err)) };
  mgrid_family *ones[2], *none[2], *joined, *of_joined, *listed;
  for (int i = 0; i < 2; i++) {
    ones[i] = mgrid_grid_along(g[i], 0, NULL, MGRID_GRID_ORDER, anew(&err));
    none[i] = mgrid_family_neighbours(ones[i], 1, false, anew(&err));
    assert_non_null(none[i]);
    assert_int_equal(mgrid_family_count(none[i]), 0);
  }
  joined = mgrid_family_union(2, (const mgrid_family *const *)ones, anew(&err));
  of_joined = mgrid_family_neighbours(joined, 1, false, anew(&err));
  assert_non_null(of_joined);
  listed = mgrid_family_lists(of_joined, anew(&err));
  assert_true(mgrid_family_equal(none[0], none[1]));
  assert_true(mgrid_family_equal(of_joined, listed));
  assert_true(mgrid_family_equal(of_joined, none[0]));
  mgrid_family_free(joined);
  mgrid_family_free(of_joined);
  mgrid_family_free(listed);
  for (int i = 0; i < 2; i++) {
    mgrid_family_free(ones[i]);
    mgrid_family_free(none[i]);
    mgrid_grid_free(g[i]);
  }
}

/* Ragged groups that make even ones: sizes {1, 2} zipped with {2, 1} are {3, 3}. */
static void test_zip_of_ragged_is_even(void **unused) {
  (void)unused;
  mgrid_error err = MGRID_ERROR_INIT;
  rng r = rng_new(0);
  const int64_t s1[] = { 0, 1, 3 }, s2[] = { 0, 2, 3 };
  const int64_t r1[] = { 5, 0, 3 }, r2[] = { 1, 4, 2 };
  mgrid_family *part[2] = {
    mgrid_family_table(mgrid_world(6), 2, s1, r1, MGRID_PARTIAL, anew(&err)),
    mgrid_family_table(mgrid_world(6), 2, s2, r2, MGRID_PARTIAL, anew(&err))
  };
  mgrid_family *zip = mgrid_family_zip(2, (const mgrid_family *const *)part, false, anew(&err));
  lists want = lists_of(zip);
  lists_check(&r, zip, &want);
  assert_int_equal(want.ranks[0], 5);
  assert_int_equal(want.ranks[2], 4);
  mgrid_family *listed = mgrid_family_lists(zip, anew(&err));
  assert_true(mgrid_family_equal(zip, listed));
  mgrid_family_free(listed);
  mgrid_family_free(zip);
  mgrid_family_free(part[0]);
  mgrid_family_free(part[1]);
  lists_free(&want);
}

/* -------------------------------------------------------------------- rounds */

/* Groups of a round share no rank; every group has a round below the number of rounds; no
** round is empty, and their counts add up. */
static void check_rounds(const rng *r, const mgrid_family *f) {
  int64_t world = mgrid_family_world(f), rounds = mgrid_family_rounds(f), sum = 0;
  lists l = lists_of(f);
  char *seen = malloc((size_t)world);
  assert_non_null(seen);
  check(r, rounds >= 1);
  for (int64_t round = 0; round < rounds; round++) {
    int64_t groups = 0;
    memset(seen, 0, (size_t)world);
    for (int64_t g = 0; g < l.n; g++) {
      check(r, mgrid_family_round(f, g) >= 0 && mgrid_family_round(f, g) < rounds);
      if (mgrid_family_round(f, g) != round) continue;
      groups++;
      for (int64_t p = 0; p < lists_size(&l, g); p++) check(r, !seen[lists_group(&l, g)[p]]++);
    }
    check(r, mgrid_family_in_round(f, round) == groups);
    check(r, groups > 0 || l.n == 0);
    sum += groups;
  }
  check(r, sum == l.n && mgrid_family_in_round(f, rounds) == 0);
  free(seen);
  lists_free(&l);
}

/* Pairs in groups of n for every n up to 24, every step, with and without wrap: and no more
** rounds than a path or a ring needs. */
static void test_rounds_of_pairs(void **unused) {
  (void)unused;
  const char *a = "a";
  rng r = rng_new(0);
  mgrid_error err = MGRID_ERROR_INIT;
  for (int64_t n = 2; n <= 24; n++) {
    mgrid_dim dims[] = { { "a", n }, { "b", 3 } };
    mgrid_grid *g = mgrid_grid_new((mgrid_window){ 3 * n + 2, 1, 3 * n }, 2, dims, anew(&err));
    mgrid_family *f = mgrid_grid_along(g, 1, &a, MGRID_GRID_ORDER, anew(&err));
    for (int64_t step = 1; step < n; step++)
      for (int wrap = 0; wrap < 2; wrap++) {
        mgrid_family *pairs = mgrid_family_neighbours(f, step, wrap, anew(&err));
        lists want = lists_of(f);
        assert_non_null(pairs);
        check_rounds(&r, pairs);
        lists_replace(&want, lists_pairs(&want, step, wrap));
        lists_check(&r, pairs, &want);
        assert_true(mgrid_family_rounds(pairs) <= (wrap ? 3 : 2));
        lists_free(&want);
        mgrid_family_free(pairs);
      }
    mgrid_family_free(f);
    mgrid_grid_free(g);
  }
}

static void test_rounds_of_covers(void **unused) {
  (void)unused;
  int several = 0;
  for (uint64_t seed = first_seed(); seed < first_seed() + CASES; seed++) {
    mgrid_error err = MGRID_ERROR_INIT;
    rng r = rng_new(seed);
    int64_t world = rng_between(&r, 2, 30);
    lists l = draw_lists(&r, world, true);
    mgrid_family *f = table_of(&l, world, &err);
    check(&r, f != NULL);
    check_rounds(&r, f);
    several += mgrid_family_rounds(f) > 2;
    mgrid_family_free(f);
    lists_free(&l);
  }
  assert_true(several > CASES / 10);
}

/* One rank in far more groups than the bit mask of rounds has bits. */
static void test_rounds_of_a_star(void **unused) {
  (void)unused;
  mgrid_error err = MGRID_ERROR_INIT;
  rng r = rng_new(0);
  lists l = lists_new();
  for (int64_t i = 1; i < 200; i++) {
    lists_add(&l, 0);
    lists_add(&l, i);
    lists_close(&l);
  }
  for (int64_t i = 1; i + 1 < 200; i += 2) { /* leaves meet each other in low rounds */
    lists_add(&l, i);
    lists_add(&l, i + 1);
    lists_close(&l);
  }
  mgrid_family *f = table_of(&l, 200, &err);
  assert_non_null(f);
  check_rounds(&r, f);
  assert_int_equal(mgrid_family_rounds(f), 199);
  mgrid_family_free(f);
  lists_free(&l);
}

int main(int argc, char **argv) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_twin),
    cmocka_unit_test(test_twin_ends_with_operations),
    cmocka_unit_test(test_equality),
    cmocka_unit_test(test_equality_without_groups),
    cmocka_unit_test(test_zip_of_ragged_is_even),
    cmocka_unit_test(test_rounds_of_pairs),
    cmocka_unit_test(test_rounds_of_covers),
    cmocka_unit_test(test_rounds_of_a_star),
  };
  return run_program("equality", tests, argc, argv);
}
