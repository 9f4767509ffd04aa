/* SPDX-License-Identifier: MIT
**
** test_selection.c - the groups at some coordinates of a grid, groups by number, and zips of
** unequal numbers of groups: by lists, without a list at the largest world, and what is refused.
*/
#include "lists.h"

#include "families/grid.h"

enum { CASES = 4000 };

#define REFUSED(call, text) \
  do { \
    assert_null(call); \
    assert_string_equal(err.message, text); \
    anew(&err); \
  } while (0)

static bool is_there(const mgrid_grid *g, const int64_t *coords, int64_t rank) {
  bool there = mgrid_grid_position(g, rank) >= 0;
  for (size_t d = 0; d < mgrid_grid_ndims(g) && there; d++)
    there = coords[d] < 0 || mgrid_grid_coord(g, rank, d) == coords[d];
  return there;
}

static lists lists_where(const lists *l, const mgrid_grid *g, const int64_t *coords) {
  lists out = lists_new();
  out.pairs = l->pairs;
  for (int64_t i = 0; i < l->n; i++) {
    bool all = true;
    for (int64_t p = 0; p < lists_size(l, i); p++) all &= is_there(g, coords, lists_group(l, i)[p]);
    if (!all) continue;
    for (int64_t p = 0; p < lists_size(l, i); p++) lists_add(&out, lists_group(l, i)[p]);
    lists_close(&out);
  }
  return out;
}

/* Families after any operations; every dim is fixed, or not. */
static void test_where(void **unused) {
  (void)unused;
  int64_t rules = 0, listed = 0, refused = 0;
  for (uint64_t seed = first_seed(); seed < first_seed() + CASES; seed++) {
    rng r = rng_new(seed);
    mgrid_error err = MGRID_ERROR_INIT;
    lists l;
    drawn d = draw_grid(&r, 240);
    mgrid_family *f = draw_family(&r, &d, (int)rng_between(&r, 0, 3), &l);
    int64_t coords[MGRID_DIMS_MAX];
    for (size_t i = 0; i < mgrid_grid_ndims(d.grid); i++)
      coords[i] = rng_chance(&r, 60) ? -1 : rng_between(&r, 0, mgrid_grid_dim(d.grid, i).size - 1);
    lists want = lists_where(&l, d.grid, coords);
    mgrid_family *made = mgrid_family_where(f, d.grid, coords, anew(&err));
    mgrid_error why = MGRID_ERROR_INIT;
    mgrid_family *rule = mgrid_where_by_rule(f, d.grid, coords, anew(&why));
    check(&r, (made != NULL) == (want.n > 0));
    check(&r, made || err.status == MGRID_REFUSED);
    check(&r, !rule || mgrid_family_equal(rule, made));
    if (made) lists_check(&r, made, &want);
    rules += rule != NULL, listed += made && !rule, refused += !made;
    mgrid_family_free(rule);
    mgrid_family_free(made);
    mgrid_family_free(f);
    mgrid_grid_free(d.grid);
    lists_free(&want);
    lists_free(&l);
  }
  assert_true(rules > CASES / 8 && listed > CASES / 50 && refused > CASES / 20);
}

/* What one line says another way, without a list: families along dims, at any coordinates of the
** others. */
static void test_rule(void **unused) {
  (void)unused;
  enum { RANKS = 1 << 30 };
  mgrid_error err = MGRID_ERROR_INIT;
  const mgrid_dim dims[] = { { "tp", 8 }, { "cp", 4 }, { "dp", MGRID_FILL }, { "pp", 16 } };
  mgrid_grid *g = mgrid_grid_new(mgrid_world(RANKS), 4, dims, anew(&err));
  const char *const tp[] = { "tp" }, *const tp_dp[] = { "tp", "dp" }, *const pp[] = { "pp" };
  const int64_t stage[] = { -1, -1, -1, 3 }, corner[] = { -1, 2, -1, 15 }, some[] = { 0, 2 };
  const struct {
    size_t n;
    const char *const *along;
    const int64_t *at;
  } cases[] = { { 1, tp, stage }, { 2, tp_dp, stage }, { 1, tp, corner }, { 2, tp_dp, corner } };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    mgrid_family *f = mgrid_grid_along(g, cases[i].n, cases[i].along, MGRID_GRID_ORDER, anew(&err));
    mgrid_grid *part = mgrid_grid_at(g, cases[i].at, anew(&err));
    mgrid_family *want =
        mgrid_grid_along(part, cases[i].n, cases[i].along, MGRID_GRID_ORDER, anew(&err));
    mgrid_family *made = mgrid_family_where(f, g, cases[i].at, anew(&err));
    assert_non_null(made);
    assert_ptr_equal(made->form, &mgrid_strided_form);
    assert_true(mgrid_family_equal(made, want));
    mgrid_family_free(made);
    mgrid_family_free(want);
    mgrid_family_free(f);
    mgrid_grid_free(part);
  }
  mgrid_family *f = mgrid_grid_along(g, 1, tp, MGRID_GRID_ORDER, anew(&err));
  mgrid_family *ends = mgrid_family_pick(f, 2, some, anew(&err)),
               *made = mgrid_family_where(ends, g, stage, anew(&err));
  assert_ptr_equal(made->form, &mgrid_strided_form);
  assert_int_equal(mgrid_family_count(made), RANKS / 8 / 16);
  mgrid_family *all[] = { ends, made, f };
  for (size_t i = 0; i < 3; i++) mgrid_family_free(all[i]);
  f = mgrid_grid_along(g, 1, pp, MGRID_GRID_ORDER, anew(&err));
  REFUSED(mgrid_family_where(f, g, stage, &err),
          "where: no group has all its ranks at pp 3; pp varies inside the groups");
  REFUSED(mgrid_family_where(f, g, corner, &err),
          "where: no group has all its ranks at cp 2, pp 15; pp varies inside the groups");
  mgrid_family_free(f);
  mgrid_grid_free(g);
}

static void test_where_refused(void **unused) {
  (void)unused;
  mgrid_error err = MGRID_ERROR_INIT;
  const mgrid_dim dims[] = { { "x", 2 }, { "y", 2 } };
  mgrid_grid *g = mgrid_grid_new((mgrid_window){ 8, 0, 4 }, 2, dims, anew(&err));
  mgrid_grid *high = mgrid_grid_new((mgrid_window){ 8, 4, 4 }, 2, dims, anew(&err));
  mgrid_grid *small = mgrid_grid_new(mgrid_world(4), 2, dims, anew(&err));
  const char *const x[] = { "x" };
  mgrid_family *f = mgrid_grid_along(g, 1, x, MGRID_GRID_ORDER, anew(&err));
  const int64_t any[] = { -1, -1 }, second[] = { -1, 1 }, beyond[] = { -1, 2 },
                below[] = { -2, -1 };
  REFUSED(mgrid_family_where(f, small, any, &err),
          "where: the family is of a world of 8 ranks, the grid of 4");
  REFUSED(mgrid_family_where(f, g, beyond, &err),
          "coordinate 2 of dim 'y' is out of range (0 to 1)");
  REFUSED(mgrid_family_where(f, g, below, &err),
          "coordinate -2 of dim 'x' is out of range (0 to 1)");
  REFUSED(mgrid_family_where(f, high, any, &err), "where: no group has all its ranks in the grid");
  REFUSED(mgrid_family_where(f, high, second, &err), "where: no group has all its ranks at y 1");
  mgrid_family *same = mgrid_family_where(f, g, any, anew(&err));
  assert_true(mgrid_family_equal(same, f));
  mgrid_family_free(same);
  mgrid_family_free(f);
  mgrid_grid_free(small);
  mgrid_grid_free(high);
  mgrid_grid_free(g);
}

/* ---------------------------------------------------------------- by number */

/* Any groups of families after any operations, in any order. */
static void test_groups(void **unused) {
  (void)unused;
  int64_t rules = 0, listed = 0;
  for (uint64_t seed = first_seed(); seed < first_seed() + CASES; seed++) {
    rng r = rng_new(seed);
    mgrid_error err = MGRID_ERROR_INIT;
    lists l;
    drawn d = draw_grid(&r, 240);
    mgrid_family *f = draw_family(&r, &d, (int)rng_between(&r, 0, 3), &l);
    size_t count = (size_t)l.n, n, *any = malloc((count + 1) * sizeof *any);
    int64_t *groups = malloc((count + 1) * sizeof *groups), step = rng_between(&r, 1, 3);
    assert_true(any && groups);
    for (size_t i = 0; i < count; i++) any[i] = i;
    if (rng_chance(&r, 50)) {
      rng_shuffle(&r, count, any);
      n = count ? (size_t)rng_between(&r, 1, (int64_t)count) : 0;
    } else { /* a regular list */
      for (n = 0; n * (size_t)step < count; n++) any[n] = n * (size_t)step;
    }
    lists want = lists_new();
    want.pairs = l.pairs;
    for (size_t i = 0; i < n; i++) {
      groups[i] = (int64_t)any[i] - (rng_chance(&r, 30) ? l.n : 0);
      for (int64_t p = 0; p < lists_size(&l, (int64_t)any[i]); p++)
        lists_add(&want, lists_group(&l, (int64_t)any[i])[p]);
      lists_close(&want);
    }
    mgrid_family *made = mgrid_family_select(f, n, groups, anew(&err)),
                 *rule = mgrid_select_by_rule(f, n, groups, &err);
    check(&r, (made != NULL) == (n > 0));
    check(&r, !rule || mgrid_family_equal(rule, made));
    if (made) lists_check(&r, made, &want);
    rules += rule != NULL, listed += made && !rule;
    groups[n] = n ? groups[0] : 0; /* twice, or one of no groups */
    check(&r, !mgrid_family_select(f, n + 1, groups, anew(&err)));
    mgrid_family_free(rule);
    mgrid_family_free(made);
    mgrid_family_free(f);
    mgrid_grid_free(d.grid);
    lists_free(&want);
    lists_free(&l);
    free(any);
    free(groups);
  }
  assert_true(rules > CASES / 8 && listed > CASES / 8);
}

static void test_groups_refused(void **unused) {
  (void)unused;
  mgrid_error err = MGRID_ERROR_INIT;
  const mgrid_dim dims[] = { { "x", 1 << 28 }, { "y", 4 } };
  mgrid_grid *g = mgrid_grid_new(mgrid_world(1 << 30), 2, dims, &err);
  const char *x = "x";
  mgrid_family *f = mgrid_grid_along(g, 1, &x, MGRID_GRID_ORDER, &err);
  const int64_t ends[] = { 0, -1 }, twice[] = { 3, -1 }, beyond[] = { 0, 4 }, below[] = { -5 };
  const int64_t many[] = { 0, 1, 2, 3, 0 };
  REFUSED(mgrid_family_select(f, 0, NULL, &err), "groups: name at least one of the 4 groups");
  REFUSED(mgrid_family_select(f, 2, NULL, &err), "the list of 2 groups is NULL");
  REFUSED(mgrid_family_select(f, 2, twice, &err), "groups: group 3 is listed twice");
  REFUSED(mgrid_family_select(f, 2, beyond, &err),
          "groups: group 4 is out of range (0 to 3, or -1 to -4 from the end)");
  REFUSED(mgrid_family_select(f, 1, below, &err),
          "groups: group -5 is out of range (0 to 3, or -1 to -4 from the end)");
  REFUSED(mgrid_family_select(f, 5, many, &err),
          "groups: the list names 5, but there are 4 groups");
  assert_null(mgrid_family_select(NULL, 2, ends, &err));
  mgrid_family *made = mgrid_family_select(f, 2, ends, &err); /* without a list of 2^29 ranks */
  assert_ptr_equal(made->form, &mgrid_strided_form);
  assert_int_equal(mgrid_family_rank(made, 1, 7), 3 * (INT64_C(1) << 28) + 7);
  mgrid_family_free(made);
  mgrid_family_free(f);
  mgrid_grid_free(g);
}

/* ------------------------------------------------------------------- spread */

/* Windows side by side, cut into any numbers of groups. */
static void test_spread(void **unused) {
  (void)unused;
  int64_t uneven = 0;
  for (uint64_t seed = first_seed(); seed < first_seed() + CASES; seed++) {
    enum { MOST = 3 };
    rng r = rng_new(seed);
    mgrid_error err = MGRID_ERROR_INIT;
    size_t n = (size_t)rng_between(&r, 1, MOST);
    mgrid_family *f[MOST];
    mgrid_dim dims[] = { { "x", 1 }, { "y", 1 } };
    int64_t count = 0, at = 0, size[MOST], of[MOST];
    const char *x = "x";
    for (size_t i = 0; i < n; i++) {
      of[i] = rng_chance(&r, 80) ? 1 << rng_between(&r, 0, 3) : rng_between(&r, 1, 7),
      size[i] = rng_between(&r, 1, 3);
      count = of[i] > count ? of[i] : count;
    }
    for (size_t i = 0; i < n; i++, at += of[i - 1] * size[i - 1]) {
      dims[0].size = size[i], dims[1].size = of[i];
      mgrid_grid *g =
          mgrid_grid_new((mgrid_window){ 80, at, of[i] * size[i] }, 2, dims, anew(&err));
      check(&r, g && (f[i] = mgrid_grid_along(g, 1, &x, MGRID_GRID_ORDER, anew(&err))));
      mgrid_grid_free(g);
    }
    mgrid_family *zip = mgrid_family_zip(n, (const mgrid_family *const *)f, true, anew(&err));
    check(&r, zip != NULL);
    lists want = lists_new();
    for (int64_t g = 0; g < count; g++) {
      at = 0;
      for (size_t i = 0; i < n; at += of[i] * size[i], i++)
        for (int64_t p = 0; p < size[i]; p++)
          lists_add(&want, at + g * of[i] / count * size[i] + p);
      lists_close(&want);
    }
    lists_check(&r, zip, &want);
    lists_free(&want);
    uneven += zip->form == &mgrid_table_form;
    mgrid_family_free(zip);
    for (size_t i = 0; i < n; i++) mgrid_family_free(f[i]);
  }
  assert_true(uneven > CASES / 8);
}

/* Groups of a spread family that differ in size, each in one or two of the larger number. */
static void test_spread_of_sizes(void **unused) {
  (void)unused;
  for (uint64_t seed = first_seed(); seed < first_seed() + CASES / 8; seed++) {
    rng r = rng_new(seed);
    mgrid_error err = MGRID_ERROR_INIT;
    int64_t few = rng_between(&r, 1, 6), many = rng_between(&r, few, 12), starts[7] = { 0 },
            ranks[40];
    mgrid_dim one[] = { { "x", 1 }, { "y", many } };
    const char *x = "x";
    for (int64_t i = 0; i < few; i++) starts[i + 1] = starts[i] + rng_between(&r, 1, 5);
    for (int64_t i = 0; i < starts[few]; i++) ranks[i] = i;
    mgrid_grid *g = mgrid_grid_new((mgrid_window){ 60, 40, many }, 2, one, &err);
    mgrid_family *f[] = { mgrid_family_table((mgrid_window){ 60, 0, 40 }, few, starts, ranks,
                                             MGRID_PARTIAL, &err),
                          mgrid_grid_along(g, 1, &x, MGRID_GRID_ORDER, &err) };
    mgrid_family *zip = mgrid_family_zip(2, (const mgrid_family *const *)f, true, &err);
    check(&r, zip != NULL);
    lists want = lists_new();
    int64_t total = 0;
    for (int64_t i = 0; i < many; i++) {
      int64_t own = i * few / many;
      for (int64_t k = starts[own]; k < starts[own + 1]; k++) lists_add(&want, k), total++;
      lists_add(&want, 40 + i);
      lists_close(&want);
    }
    check(&r, mgrid_spread_total(f[0], many) == total);
    lists_check(&r, zip, &want);
    lists_free(&want);
    mgrid_family_free(zip);
    mgrid_family_free(f[0]);
    mgrid_family_free(f[1]);
    mgrid_grid_free(g);
  }
}

static void test_spread_refused(void **unused) {
  (void)unused;
  mgrid_error err = MGRID_ERROR_INIT;
  const mgrid_dim six[] = { { "x", 1 }, { "y", 6 } }, four[] = { { "x", 1 }, { "y", 4 } };
  const mgrid_dim many[] = { { "x", 1 }, { "y", 1 << 20 } },
                  large[] = { { "x", 1 << 20 }, { "y", 1 } };
  mgrid_grid *g[] = { mgrid_grid_new((mgrid_window){ 10, 0, 6 }, 2, six, &err),
                      mgrid_grid_new((mgrid_window){ 10, 6, 4 }, 2, four, &err),
                      mgrid_grid_new((mgrid_window){ 1 << 21, 0, 1 << 20 }, 2, many, &err),
                      mgrid_grid_new((mgrid_window){ 1 << 21, 1 << 20, 1 << 20 }, 2, large, &err) };
  mgrid_family *f[4];
  const char *x = "x";
  for (int i = 0; i < 4; i++) f[i] = mgrid_grid_along(g[i], 1, &x, MGRID_GRID_ORDER, &err);
#define SPREAD(text, ...) \
  REFUSED(mgrid_family_zip(2, (const mgrid_family *const[]){ __VA_ARGS__ }, true, &err), text)
  mgrid_family *none = mgrid_family_without(f[1], 4, (const int64_t[]){ 6, 7, 8, 9 }, &err);
  SPREAD("zip: a family without groups cannot be spread over 6", f[0], none);
  mgrid_family_free(none);
  SPREAD("zip: families of worlds of 10 and 2097152 ranks", f[1], f[2]);
  SPREAD("zip: the groups have more than 2147483647 members in all", f[2], f[3]);
  SPREAD("zip: rank 6 is in families 1 and 2" MGRID_BY_LIST, f[1], f[1]);
#undef SPREAD
  REFUSED(mgrid_family_zip(0, NULL, true, &err), "a zip of no families");
  for (int i = 0; i < 4; i++) mgrid_family_free(f[i]), mgrid_grid_free(g[i]);
}

/* ------------------------------------------------------- unions and pairs */

/* The groups of a union are counted over all of its families: what a refusal advises is taken. */
static void test_bundle_of_union(void **unused) {
  (void)unused;
  mgrid_error err = MGRID_ERROR_INIT;
  const mgrid_dim two[] = { { "x", 2 }, { "y", 4 } }, four[] = { { "x", 4 }, { "y", 2 } };
  mgrid_grid *a = mgrid_grid_new((mgrid_window){ 16, 0, 8 }, 2, two, &err);
  mgrid_grid *b = mgrid_grid_new((mgrid_window){ 16, 8, 8 }, 2, four, &err);
  const char *x = "x";
  mgrid_family *half[] = { mgrid_grid_along(a, 1, &x, MGRID_GRID_ORDER, &err),
                           mgrid_grid_along(b, 1, &x, MGRID_GRID_ORDER, &err) };
  mgrid_family *all = mgrid_family_union(2, (const mgrid_family *const *)half, &err);
  mgrid_family *listed = mgrid_family_lists(all, &err);
  for (int64_t n = 1; n <= 6; n++) {
    mgrid_family *made = mgrid_family_bundle(all, n, anew(&err));
    mgrid_family *want = mgrid_family_bundle(listed, n, anew(&err));
    assert_true((made != NULL) == (6 % n == 0));
    assert_true(made == want || mgrid_family_equal(made, want));
    mgrid_family_free(made);
    mgrid_family_free(want);
  }
  int64_t work;
  assert_false(mgrid_bundle_lists(all, 2, &work));
  assert_true(mgrid_bundle_lists(all, 3, &work));
  REFUSED(mgrid_family_bundle(all, 4, &err),
          "bundle(4): the number of groups, 6, is not a multiple of it; nearest: 3 or 6");
  mgrid_family *made[] = { half[0], half[1], all, listed };
  for (int i = 0; i < 4; i++) mgrid_family_free(made[i]);
  mgrid_grid_free(a);
  mgrid_grid_free(b);
}

/* Around the end of a group of two lies the same pair, and so half way around any. */
static void test_pairs_once(void **unused) {
  (void)unused;
  mgrid_error err = MGRID_ERROR_INIT;
  const mgrid_dim dims[] = { { "x", 2 }, { "y", 3 } };
  mgrid_grid *g = mgrid_grid_new(mgrid_world(6), 2, dims, &err);
  const char *names[] = { "x", "y" };
  mgrid_family *x = mgrid_grid_along(g, 1, names, MGRID_GRID_ORDER, &err);
  mgrid_family *all = mgrid_grid_along(g, 2, names, MGRID_GRID_ORDER, &err);
  mgrid_family *ring = mgrid_family_neighbours(x, 1, true, &err),
               *across = mgrid_family_neighbours(all, 3, true, &err);
  mgrid_family *line = mgrid_family_neighbours(all, 3, false, &err);
  assert_true(mgrid_family_equal(ring, x));
  assert_true(mgrid_family_equal(across, line));
  assert_int_equal(mgrid_family_count(across), 3);
  mgrid_family *made[] = { x, all, ring, across, line };
  for (int i = 0; i < 5; i++) mgrid_family_free(made[i]);
  mgrid_grid_free(g);
}

int main(int argc, char **argv) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_where),           cmocka_unit_test(test_rule),
    cmocka_unit_test(test_where_refused),   cmocka_unit_test(test_groups),
    cmocka_unit_test(test_groups_refused),  cmocka_unit_test(test_spread_of_sizes),
    cmocka_unit_test(test_spread),          cmocka_unit_test(test_spread_refused),
    cmocka_unit_test(test_bundle_of_union), cmocka_unit_test(test_pairs_once),
  };
  return run_program("selection", tests, argc, argv);
}
