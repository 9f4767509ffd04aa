/* SPDX-License-Identifier: MIT
**
** test_operations.c - each operation compared with the same operation on lists; exactly which sizes
** split and bundle accept; which tables are recognized as rules.
*/
#include "lists.h"

#include "families/family.h"

enum { CASES = 3000 };

/* ------------------------------------------------------------ split, levels */

/* A layout of runs of k exists where every run of every group is the first one, shifted. */
static bool runs_are_copies(const lists *l, int64_t k) {
  for (int64_t g = 0; g < l->n; g++) {
    const int64_t *m = lists_group(l, g);
    if (lists_size(l, g) % k != 0) return false;
    for (int64_t i = 0; i < lists_size(l, g); i++)
      if (m[i] - m[i / k * k] != m[i % k] - m[0]) return false;
  }
  return true;
}

/* Strided families: refused exactly where there is no layout; else equal to the lists. */
static void test_split_border(void **unused) {
  (void)unused;
  int refused = 0, accepted = 0;
  for (uint64_t seed = first_seed(); seed < first_seed() + CASES; seed++) {
    rng r = rng_new(seed);
    drawn d = draw_grid(&r, 200);
    drawn_along a = draw_along(&r, &d);
    mgrid_error err = MGRID_ERROR_INIT;
    mgrid_family *f = mgrid_grid_along_by(d.grid, a.nin, a.in_name, a.nix, a.ix_name, anew(&err));
    lists l = lists_along(&d, a.nin, a.in, a.nix, a.ix);
    for (int64_t k = 1; k <= mgrid_family_max_size(f) + 2; k++) {
      mgrid_family *inner = NULL, *outer = NULL;
      mgrid_status s = mgrid_family_split(f, k, false, false, &inner, &outer, anew(&err));
      check(&r, s == (runs_are_copies(&l, k) ? MGRID_OK : MGRID_REFUSED));
      /* by its modes, not by number */
      refused += s != MGRID_OK && mgrid_family_max_size(f) % k == 0;
      if (s) {
        check(&r, !inner && !outer && err.status == MGRID_REFUSED && err.message[0]);
        continue;
      }
      accepted++;
      lists in = lists_split(&l, k, true), out = lists_split(&l, k, false);
      lists_check(&r, inner, &in);
      lists_check(&r, outer, &out);
      check(&r, inner->form == &mgrid_strided_form && outer->form == &mgrid_strided_form);
      lists_free(&in);
      lists_free(&out);
      mgrid_family_free(inner);
      mgrid_family_free(outer);
    }
    lists_free(&l);
    mgrid_family_free(f);
    mgrid_grid_free(d.grid);
  }
  assert_true(refused > 100 && accepted > 1000);
}

/* With `lists` any size that divides is made; what stays refused does not divide. */
static void test_split_lists(void **unused) {
  (void)unused;
  for (uint64_t seed = first_seed(); seed < first_seed() + CASES; seed++) {
    lists l;
    mgrid_error err = MGRID_ERROR_INIT;
    rng r = rng_new(seed);
    drawn d = draw_grid(&r, 100);
    mgrid_family *f = draw_family(&r, &d, (int)rng_between(&r, 0, 3), &l);
    int64_t k = rng_between(&r, 1, mgrid_family_max_size(f) + 1);
    bool divides = mgrid_family_coverage(f) != MGRID_COVER;
    for (int64_t g = 0; g < l.n; g++) divides &= lists_size(&l, g) % k == 0;
    mgrid_family *inner = NULL, *outer = NULL;
    mgrid_status s = mgrid_family_split(f, k, true, false, &inner, &outer, anew(&err));
    check(&r, s == (divides ? MGRID_OK : MGRID_REFUSED));
    if (!s) {
      lists in = lists_split(&l, k, true), out = lists_split(&l, k, false);
      lists_check(&r, inner, &in);
      lists_check(&r, outer, &out);
      lists_free(&in);
      lists_free(&out);
    } else {
      check(&r, !inner && !outer && err.message[0]);
    }
    mgrid_family_free(inner);
    mgrid_family_free(outer);
    mgrid_family_free(f);
    mgrid_grid_free(d.grid);
    lists_free(&l);
  }
}

/* Levels of one dim: any factoring fits, and is the split repeated. */
static void test_levels(void **unused) {
  (void)unused;
  for (uint64_t seed = first_seed(); seed < first_seed() + CASES; seed++) {
    mgrid_error err = MGRID_ERROR_INIT;
    rng r = rng_new(seed);
    int64_t per = rng_between(&r, 1, 48), side = rng_between(&r, 1, 4), sizes[4], left = per;
    mgrid_dim dims[] = { { "a", side }, { "b", per } };
    const char *b = "b";
    mgrid_grid *g = mgrid_grid_new(mgrid_world(per * side), 2, dims, anew(&err));
    mgrid_family *f = mgrid_grid_along(g, 1, &b, MGRID_GRID_ORDER, anew(&err)), *out[4];
    size_t n = (size_t)rng_between(&r, 1, 4);
    for (size_t i = 0; i < n; i++) left /= sizes[i] = i + 1 == n ? left : rng_divisor(&r, left);
    check(&r, mgrid_family_levels(f, n, sizes, out, anew(&err)) == MGRID_OK);
    lists all = lists_of(f);
    int64_t below = 1;
    /* in runs of all levels up to this one, what is not below it */
    for (size_t i = 0; i < n; i++) {
      lists runs = lists_split(&all, below * sizes[i], true);
      lists level = lists_split(&runs, below, false);
      lists_check(&r, out[i], &level);
      lists_free(&runs);
      lists_free(&level);
      mgrid_family_free(out[i]);
      below *= sizes[i];
    }
    lists_free(&all);
    mgrid_family_free(f);
    mgrid_grid_free(g);
  }
}

/* ---------------------------------------------------------------------- pick */

/* First, last, and the middle of larger groups: a function of the size. */
static int64_t ends_and_middle(void *ud, int64_t size, int64_t *positions, int64_t cap,
                               mgrid_error *err) {
  int64_t n = 0, wanted[] = { 0, -1, size / 2 };
  (void)err;
  ++*(int *)ud;
  for (int i = 0; i < (size > 2 ? 3 : 2) && n < cap; i++) positions[n++] = wanted[i];
  return n;
}

static void test_pick(void **unused) {
  (void)unused;
  int irregular = 0, regular = 0;
  for (uint64_t seed = first_seed(); seed < first_seed() + CASES; seed++) {
    mgrid_error err = MGRID_ERROR_INIT;
    rng r = rng_new(seed);
    drawn d = draw_grid(&r, 200);
    drawn_along a = draw_along(&r, &d);
    mgrid_family *f = mgrid_grid_along_by(d.grid, a.nin, a.in_name, a.nix, a.ix_name, anew(&err)),
                 *listed;
    lists l = lists_along(&d, a.nin, a.in, a.nix, a.ix), want;
    int64_t size = mgrid_family_max_size(f), positions[12];
    size_t n = (size_t)rng_between(&r, 1, 12); /* duplicates come by themselves */
    for (size_t i = 0; i < n; i++) positions[i] = rng_between(&r, -size, size - 1);
    want = lists_pick(&l, n, positions);
    listed = mgrid_family_lists(f, anew(&err));
    mgrid_family *both[] = { mgrid_family_pick(f, n, positions, anew(&err)),
                             mgrid_family_pick(listed, n, positions, anew(&err)) };
    for (int i = 0; i < 2; i++) {
      check(&r, both[i] != NULL);
      lists_check(&r, both[i], &want);
      check(&r, both[i]->form != &mgrid_table_form || i == 1);
    }
    check(&r, mgrid_family_equal(both[0], both[1]));
    irregular += both[0]->form == &mgrid_picked_form;
    regular += both[0]->form == &mgrid_strided_form && lists_size(&want, 0) > 1;

    int calls = 0;
    mgrid_family *by = mgrid_family_pick_by(f, ends_and_middle, &calls, anew(&err));
    int64_t ends[] = { 0, -1, size / 2 };
    lists_replace(&want, lists_pick(&l, size > 2 ? 3 : 2, ends));
    check(&r, by != NULL && calls == 1); /* one size, one call, whatever the number of groups */
    lists_check(&r, by, &want);
    mgrid_family_free(by);
    mgrid_family_free(both[0]);
    mgrid_family_free(both[1]);
    mgrid_family_free(listed);
    mgrid_family_free(f);
    mgrid_grid_free(d.grid);
    lists_free(&want);
    lists_free(&l);
  }
  assert_true(irregular > 100 && regular > 100);
}

/* ------------------------------------------------------- bundle, neighbours */

static void test_bundle(void **unused) {
  (void)unused;
  int made = 0, refused = 0;
  for (uint64_t seed = first_seed(); seed < first_seed() + CASES; seed++) {
    mgrid_error err = MGRID_ERROR_INIT;
    rng r = rng_new(seed);
    drawn d = draw_grid(&r, 100);
    drawn_along a = draw_along(&r, &d);
    mgrid_family *f = mgrid_grid_along_by(d.grid, a.nin, a.in_name, a.nix, a.ix_name, anew(&err));
    mgrid_family *listed = mgrid_family_lists(f, anew(&err));
    lists l = lists_along(&d, a.nin, a.in, a.nix, a.ix), starts = lists_new();
    for (int64_t g = 0; g < l.n; g++) lists_add(&starts, lists_group(&l, g)[0]);
    lists_close(&starts); /* the first ranks of the groups: what a bundle cuts into runs */
    for (int64_t n = 1; n <= l.n + 1; n++) {
      mgrid_family *b[] = { mgrid_family_bundle(f, n, anew(&err)),
                            mgrid_family_bundle(listed, n, anew(&err)) };
      check(&r, (b[0] != NULL) == runs_are_copies(&starts, n));
      check(&r, (b[1] != NULL) == (l.n % n == 0)); /* lists take every divisor */
      lists want = l.n % n == 0 ? lists_bundle(&l, n) : lists_new();
      for (int i = 0; i < 2; i++)
        if (b[i]) lists_check(&r, b[i], &want);
      made += b[0] != NULL;
      refused += !b[0] && b[1];
      mgrid_family_free(b[0]);
      mgrid_family_free(b[1]);
      lists_free(&want);
    }
    mgrid_family_free(f);
    mgrid_family_free(listed);
    mgrid_grid_free(d.grid);
    lists_free(&l);
    lists_free(&starts);
  }
  assert_true(made > 1000 && refused > 50);
}

/* Every step, with and without wrap, of families of every form. */
static void test_neighbours(void **unused) {
  (void)unused;
  for (uint64_t seed = first_seed(); seed < first_seed() + CASES; seed++) {
    lists l;
    mgrid_error err = MGRID_ERROR_INIT;
    rng r = rng_new(seed);
    drawn d = draw_grid(&r, 60);
    mgrid_family *f = draw_family(&r, &d, (int)rng_between(&r, 0, 2), &l);
    bool cover = mgrid_family_coverage(f) == MGRID_COVER;
    int64_t least = INT64_MAX;
    for (int64_t g = 0; g < l.n; g++)
      if (lists_size(&l, g) > 1 && lists_size(&l, g) < least) least = lists_size(&l, g);
    for (int64_t step = 0; step <= mgrid_family_max_size(f) + 1; step++)
      for (int wrap = 0; wrap < 2; wrap++) {
        mgrid_family *p = mgrid_family_neighbours(f, step, wrap, anew(&err));
        bool fits = step >= 1 && step < least; /* groups of one rank take any step */
        check(&r, (p != NULL) == (fits && !cover));
        if (p) {
          lists want = lists_pairs(&l, step, wrap);
          lists_check(&r, p, &want);
          lists_free(&want);
        }
        mgrid_family_free(p);
      }
    mgrid_family *far = mgrid_family_neighbours(f, INT64_MAX, true, anew(&err));
    check(&r, (far != NULL) == (least == INT64_MAX && !cover));
    mgrid_family_free(far);
    mgrid_family_free(f);
    mgrid_grid_free(d.grid);
    lists_free(&l);
  }
}

/* -------------------------------------------------------- table, map, lists */

/* A table of a grid's groups is strided again; lists() leaves the lists as they are. */
static void test_table_recognized(void **unused) {
  (void)unused;
  for (uint64_t seed = first_seed(); seed < first_seed() + CASES; seed++) {
    mgrid_error err = MGRID_ERROR_INIT;
    rng r = rng_new(seed);
    drawn d = draw_grid(&r, 200);
    drawn_along a = draw_along(&r, &d);
    lists l = lists_along(&d, a.nin, a.in, a.nix, a.ix);
    mgrid_family *f = mgrid_grid_along_by(d.grid, a.nin, a.in_name, a.nix, a.ix_name, anew(&err));
    char text[2][512];
    mgrid_coverage declared = d.window.size == d.window.world ? MGRID_PARTITION : MGRID_PARTIAL;
    mgrid_family *table = mgrid_family_table(mgrid_world(d.window.world), l.n, l.starts, l.ranks,
                                             declared, anew(&err));
    mgrid_family *listed = mgrid_family_lists(f, anew(&err));
    check(&r, table && listed);
    check(&r, table->form == &mgrid_strided_form && listed->form == &mgrid_table_form);
    mgrid_family_describe(f, text[0], sizeof text[0]);
    mgrid_family_describe(table, text[1], sizeof text[1]);
    check(&r, strcmp(text[0], text[1]) == 0);
    lists_check(&r, table, &l);
    lists_check(&r, listed, &l);
    mgrid_family_free(f);
    mgrid_family_free(table);
    mgrid_family_free(listed);
    mgrid_grid_free(d.grid);
    lists_free(&l);
  }
}

/* Any disjoint or overlapping lists: a table answers as the lists do. */
static void test_table_irregular(void **unused) {
  (void)unused;
  for (uint64_t seed = first_seed(); seed < first_seed() + CASES; seed++) {
    mgrid_error err = MGRID_ERROR_INIT;
    rng r = rng_new(seed);
    int64_t world = rng_between(&r, 1, 40);
    lists l = draw_lists(&r, world, rng_chance(&r, 50));
    mgrid_family *f = table_of(&l, world, &err), *copy, *reversed;
    check(&r, f != NULL);
    lists_check(&r, f, &l);
    check(&r, (copy = mgrid_family_lists(f, anew(&err))) != NULL);
    lists_check(&r, copy, &l);
    check(&r, mgrid_family_equal(f, copy));
    lists back = lists_reversed(&l);
    reversed = mgrid_family_map(f, reverse_map, NULL, anew(&err));
    check(&r, reversed != NULL);
    lists_check(&r, reversed, &back);
    mgrid_family_free(f);
    mgrid_family_free(copy);
    mgrid_family_free(reversed);
    lists_free(&l);
    lists_free(&back);
  }
}

/* Any ranks removed from families of every form: the rest, regular or not, equals the rest of the
** lists. */
static void test_without(void **unused) {
  (void)unused;
  int regular = 0, irregular = 0, none = 0;
  for (uint64_t seed = first_seed(); seed < first_seed() + CASES; seed++) {
    lists l;
    mgrid_error err = MGRID_ERROR_INIT;
    rng r = rng_new(seed);
    drawn d = draw_grid(&r, 60);
    mgrid_family *f = draw_family(&r, &d, (int)rng_between(&r, 0, 3), &l);
    int64_t world = mgrid_family_world(f), ranks[64];
    size_t n = (size_t)rng_between(&r, 0, rng_chance(&r, 30) ? 60 : 4);
    bool tail = rng_chance(&r, 40); /* the last n ranks; else any, some of them twice */
    for (size_t i = 0; i < n; i++)
      ranks[i] = tail ? (world - 1 - (int64_t)i % world) : rng_between(&r, 0, world - 1);
    mgrid_family *g = mgrid_family_without(f, n, ranks, anew(&err));
    lists want = lists_without(&l, n, ranks);
    check(&r, g != NULL);
    lists_check(&r, g, &want);
    if (want.n > 0) {
      mgrid_family *table = table_of(&want, world, &err);
      check(&r, table->form == g->form && mgrid_family_equal(table, g));
      mgrid_family_free(table);
    }
    none += want.n == 0;
    if (want.total < l.total)
      regular += g->form == &mgrid_strided_form, irregular += g->form == &mgrid_table_form;
    mgrid_family_free(g);
    mgrid_family_free(f);
    mgrid_grid_free(d.grid);
    lists_free(&want);
    lists_free(&l);
  }
  assert_true(regular > 100 && irregular > 100 && none > 10);
}

/* Drops all but the even ranks, and makes room for more than came in. */
static int64_t grow_or_shrink(void *ud, int64_t group, int64_t *ranks, int64_t n, int64_t cap,
                              mgrid_error *err) {
  int64_t *next = ud;
  (void)err, (void)n;
  int64_t wanted = group % 2 ? 1 : cap < 5 ? cap : 5;
  for (int64_t i = 0; i < wanted; i++) ranks[i] = (int64_t)(*next)++;
  return wanted;
}

/* A thousand ranks, where one came in. */
static int64_t thousand(void *ud, int64_t group, int64_t *ranks, int64_t n, int64_t cap,
                        mgrid_error *err) {
  (void)ud, (void)n, (void)cap, (void)err;
  for (int64_t i = 0; i < 1000; i++) ranks[i] = (int64_t)(1000 * group) + i;
  return 1000;
}

static void test_map_grows(void **unused) {
  (void)unused;
  mgrid_error err = MGRID_ERROR_INIT;
  const char *a = "a";
  const int64_t first = 0;
  mgrid_dim dims[] = { { "a", 1024 }, { "b", 8 } };
  mgrid_grid *g = mgrid_grid_new(mgrid_world(8192), 2, dims, anew(&err));
  mgrid_family *f = mgrid_grid_along(g, 1, &a, MGRID_GRID_ORDER, &err),
               *heads = mgrid_family_pick(f, 1, &first, &err),
               *wide = mgrid_family_map(heads, thousand, NULL, &err);
  assert_int_equal(err.status, MGRID_OK);
  for (int64_t group = 0; group < 8; group++) {
    assert_int_equal(mgrid_family_size(wide, group), 1000);
    for (int64_t i = 0; i < 1000; i++)
      assert_int_equal(mgrid_family_rank(wide, group, i), 1000 * group + i);
  }
  mgrid_family_free(wide);
  mgrid_family_free(heads);
  mgrid_family_free(f);
  mgrid_grid_free(g);
}

static void test_map_changes_sizes(void **unused) {
  (void)unused;
  mgrid_error err = MGRID_ERROR_INIT;
  const char *a = "a";
  mgrid_dim dims[] = { { "a", 2 }, { "b", 2000 } };
  mgrid_grid *g = mgrid_grid_new(mgrid_world(4000), 2, dims, anew(&err));
  mgrid_family *f = mgrid_grid_along(g, 1, &a, MGRID_GRID_ORDER, anew(&err)), *twos, *odd;
  int64_t next = 0;
  const int64_t first = 0;
  rng r = rng_new(0);
  twos = mgrid_family_bundle(f, 2, anew(&err)); /* 1000 groups of 4 become 5, 1, 5, 1, ... */
  odd = mgrid_family_map(twos, grow_or_shrink, &next, anew(&err));
  assert_non_null(odd);
  lists want = lists_new();
  for (int64_t i = 0, rank = 0; i < 1000; i++) {
    for (int64_t n = i % 2 ? 1 : 5; n > 0; n--) lists_add(&want, rank++);
    lists_close(&want);
  }
  lists_check(&r, odd, &want);
  assert_int_equal(mgrid_family_coverage(odd), MGRID_PARTIAL);
  /* tables are picked group by group */
  mgrid_family *heads = mgrid_family_pick(odd, 1, &first, anew(&err));
  lists_replace(&want, lists_pick(&want, 1, &first));
  lists_check(&r, heads, &want);
  mgrid_family_free(heads);
  mgrid_family_free(odd);
  mgrid_family_free(twos);
  mgrid_family_free(f);
  mgrid_grid_free(g);
  lists_free(&want);
}

int main(int argc, char **argv) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_split_border),
    cmocka_unit_test(test_split_lists),
    cmocka_unit_test(test_levels),
    cmocka_unit_test(test_pick),
    cmocka_unit_test(test_bundle),
    cmocka_unit_test(test_neighbours),
    cmocka_unit_test(test_table_recognized),
    cmocka_unit_test(test_table_irregular),
    cmocka_unit_test(test_map_changes_sizes),
    cmocka_unit_test(test_map_grows),
    cmocka_unit_test(test_without),
  };
  return run_program("operations", tests, argc, argv);
}
