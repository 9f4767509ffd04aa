/* SPDX-License-Identifier: MIT
**
** test_algebra.c - laws of the algebra over thousands of random grids: a family lists the same
** ranks as it answers by group and position, and by rank, and these are the ranks that follow from
** the coordinates.
*/
#include "lists.h"

enum { GRIDS = 5000, CHAINS = 6000, WINDOWS = 2000 };

/* rank -> coordinates -> rank, and the coordinates are those that counting gives. */
static void check_coordinates(const rng *r, const drawn *d) {
  int64_t coord[DRAWN_DIMS] = { 0 }, asked[DRAWN_DIMS + 1];
  for (int64_t rank = d->window.offset; rank < d->window.offset + d->window.size; rank++) {
    for (size_t i = 0; i < d->n; i++) {
      asked[i] = mgrid_grid_coord(d->grid, rank, i);
      check(r, asked[i] == coord[i]);
    }
    check(r, mgrid_grid_rank(d->grid, asked) == rank);
    for (size_t i = 0; i < d->n && ++coord[i] == d->dim[i].size; i++) coord[i] = 0;
  }
  for (size_t i = 0; i < d->n; i++) {
    check(r, mgrid_grid_coord(d->grid, d->window.offset - 1, i) == -1);
    check(r, mgrid_grid_coord(d->grid, d->window.offset + d->window.size, i) == -1);
    for (int side = 0; side < 2; side++) { /* one coordinate just out of range */
      memset(asked, 0, sizeof asked);
      asked[i] = side ? d->dim[i].size : -1;
      check(r, mgrid_grid_rank(d->grid, asked) == -1);
    }
  }
  check(r, mgrid_grid_coord(d->grid, d->window.offset, d->n) == -1); /* no such dim */
}

static void check_questions(const rng *r, const drawn *d) {
  mgrid_window w = mgrid_grid_window(d->grid);
  check(r, w.world == d->window.world && w.offset == d->window.offset && w.size == d->window.size);
  check(r, mgrid_grid_ndims(d->grid) == d->n);
  for (size_t i = 0; i < d->n; i++) {
    check(r, mgrid_grid_find(d->grid, drawn_name(i)) == (int)i);
    check(r, strcmp(mgrid_grid_dim(d->grid, i).name, drawn_name(i)) == 0);
    check(r, mgrid_grid_dim(d->grid, i).size == d->dim[i].size); /* also where it was inferred */
  }
  check(r, mgrid_grid_find(d->grid, "zz") == -1);
}

static void test_grids(void **unused) {
  (void)unused;
  for (uint64_t seed = first_seed(); seed < first_seed() + GRIDS; seed++) {
    rng r = rng_new(seed);
    drawn d = draw_grid(&r, 300);
    check_questions(&r, &d);
    check_coordinates(&r, &d);
    mgrid_grid_free(d.grid);
  }
}

static int by_number(const void *a, const void *b) {
  size_t x = *(const size_t *)a, y = *(const size_t *)b;
  return (x > y) - (x < y);
}

/* Grid order, as written, and a chosen order of the groups, against the coordinates. */
static void test_along(void **unused) {
  (void)unused;
  int differ = 0;
  for (uint64_t seed = first_seed(); seed < first_seed() + GRIDS; seed++) {
    mgrid_error err = MGRID_ERROR_INIT;
    rng r = rng_new(seed);
    drawn d = draw_grid(&r, 300);
    drawn_along a = draw_along(&r, &d), sorted = a;
    qsort(sorted.in, sorted.nin, sizeof *sorted.in, by_number);
    qsort(sorted.ix, sorted.nix, sizeof *sorted.ix, by_number);
    mgrid_family *grid_order =
        mgrid_grid_along(d.grid, a.nin, a.in_name, MGRID_GRID_ORDER, anew(&err));
    mgrid_family *written =
        mgrid_grid_along(d.grid, a.nin, a.in_name, MGRID_AS_WRITTEN, anew(&err));
    mgrid_family *chosen =
        mgrid_grid_along_by(d.grid, a.nin, a.in_name, a.nix, a.ix_name, anew(&err));
    check(&r, grid_order && written && chosen);
    mgrid_grid_free(d.grid); /* families do not need their grid to live */
    lists want[3] = { lists_along(&d, a.nin, sorted.in, a.nix, sorted.ix),
                      lists_along(&d, a.nin, a.in, a.nix, sorted.ix),
                      lists_along(&d, a.nin, a.in, a.nix, a.ix) };
    lists_check(&r, grid_order, &want[0]);
    lists_check(&r, written, &want[1]);
    lists_check(&r, chosen, &want[2]);
    check(&r, mgrid_family_equal(grid_order, written) == lists_same(&want[0], &want[1]));
    check(&r, mgrid_family_equal(written, chosen) == lists_same(&want[1], &want[2]));
    differ += !lists_same(&want[0], &want[1]) && !lists_same(&want[1], &want[2]);
    for (int i = 0; i < 3; i++) lists_free(&want[i]);
    mgrid_family_free(grid_order);
    mgrid_family_free(written);
    mgrid_family_free(chosen);
  }
  assert_true(differ > GRIDS / 50); /* else the test did not tell the orders apart */
}

/* Dims of size 1 need not be named as index, whatever the grid. */
static void test_index_may_leave_out_ones(void **unused) {
  (void)unused;
  mgrid_error err = MGRID_ERROR_INIT;
  mgrid_dim dims[] = { { "tp", 2 }, { "cp", 1 }, { "dp", 3 } };
  const char *in[] = { "tp" }, *ix[] = { "dp" };
  mgrid_grid *g = mgrid_grid_new(mgrid_world(6), 3, dims, anew(&err));
  mgrid_family *by = mgrid_grid_along_by(g, 1, in, 1, ix, anew(&err));
  mgrid_family *all = mgrid_grid_along(g, 1, in, MGRID_GRID_ORDER, anew(&err));
  assert_non_null(by);
  assert_true(mgrid_family_equal(by, all));
  mgrid_family_free(by);
  mgrid_family_free(all);
  mgrid_grid_free(g);
}

/* Chains of random operations: each result against the same operations on lists. */
static void test_chains(void **unused) {
  (void)unused;
  int covers = 0, partial = 0, partitions = 0;
  for (uint64_t seed = first_seed(); seed < first_seed() + CHAINS; seed++) {
    lists want;
    rng r = rng_new(seed);
    drawn d = draw_grid(&r, 240);
    mgrid_family *f = draw_family(&r, &d, (int)rng_between(&r, 0, 5), &want);
    check(&r, mgrid_family_world(f) == d.window.world);
    lists_check(&r, f, &want);
    covers += mgrid_family_coverage(f) == MGRID_COVER;
    partial += mgrid_family_coverage(f) == MGRID_PARTIAL;
    partitions += mgrid_family_coverage(f) == MGRID_PARTITION;
    mgrid_family_free(f);
    mgrid_grid_free(d.grid);
    lists_free(&want);
  }
  assert_true(covers > CHAINS / 20 && partial > CHAINS / 20 && partitions > CHAINS / 20);
}

/* Two grids side by side in one world: union, and zip where the numbers agree. */
static void test_windows(void **unused) {
  (void)unused;
  int zipped = 0, refused = 0;
  for (uint64_t seed = first_seed(); seed < first_seed() + WINDOWS; seed++) {
    mgrid_error err = MGRID_ERROR_INIT;
    rng r = rng_new(seed);
    drawn d[2];
    memset(d, 0, sizeof d);
    int64_t size[2] = { draw_dims(&r, &d[0], 60), draw_dims(&r, &d[1], 60) };
    int64_t gap = rng_chance(&r, 50) ? 0 : rng_between(&r, 1, 5), world = size[0] + gap + size[1];
    d[0].window = (mgrid_window){ world, 0, size[0] };
    d[1].window = (mgrid_window){ world, size[0] + gap, size[1] };
    lists want[2], joined;
    mgrid_family *f[2];
    for (int i = 0; i < 2; i++) {
      drawn_make(&r, &d[i]);
      f[i] = draw_family(&r, &d[i], (int)rng_between(&r, 0, 2), &want[i]);
      mgrid_grid_free(d[i].grid);
    }
    int first = (int)rng_between(&r, 0, 1); /* in either order of the windows */
    const mgrid_family *const both[2] = { f[first], f[!first] };
    mgrid_family *u = mgrid_family_union(2, both, anew(&err));
    check(&r, u != NULL);
    joined = lists_union(&want[first], &want[!first]);
    lists_check(&r, u, &joined);
    mgrid_family_free(u);
    lists_free(&joined);
    bool covers = mgrid_family_coverage(f[0]) == MGRID_COVER
                  || mgrid_family_coverage(f[1]) == MGRID_COVER;
    mgrid_family *z = mgrid_family_zip(2, both, false, anew(&err));
    check(&r, (z != NULL) == (want[0].n == want[1].n && !covers));
    if (z) {
      joined = lists_zip(&want[first], &want[!first]);
      lists_check(&r, z, &joined);
      lists_free(&joined);
      zipped++;
    } else {
      refused++;
    }
    mgrid_family_free(z);
    for (int i = 0; i < 2; i++) {
      mgrid_family_free(f[i]);
      lists_free(&want[i]);
    }
  }
  assert_true(zipped > 50 && refused > 50);
}

/* Where the written pattern is longer than the buffer it is made in: a large family, in pieces
** that begin and end anywhere, against the question for one rank. */
static void test_long_lists(void **unused) {
  (void)unused;
  enum { LONGEST = 20000 };
  int64_t *out = malloc(LONGEST * sizeof *out);
  int32_t *piece = malloc(LONGEST * sizeof *piece);
  assert_true(out && piece);
  for (uint64_t seed = first_seed(); seed < first_seed() + 60; seed++) {
    rng r = rng_new(seed);
    mgrid_error err = MGRID_ERROR_INIT;
    const char *names[] = { "a", "b", "c", "d" };
    const mgrid_dim dims[] = { { "a", rng_between(&r, 1, 9) },
                               { "b", rng_between(&r, 1, 3000) },
                               { "c", rng_between(&r, 1, 40) },
                               { "d", rng_between(&r, 1, 9) } };
    int64_t world = dims[0].size * dims[1].size * dims[2].size * dims[3].size + 5;
    mgrid_grid *g = mgrid_grid_new((mgrid_window){ world, 5, world - 5 }, 4, dims, anew(&err));
    size_t from = (size_t)rng_between(&r, 0, 3), n = (size_t)rng_between(&r, 1, 4 - (int64_t)from);
    mgrid_family *f = mgrid_grid_along(g, n, names + from, MGRID_GRID_ORDER, anew(&err));
    check(&r, f != NULL);
    for (int k = 0; k < 8; k++) {
      int64_t group = rng_between(&r, 0, mgrid_family_count(f) - 1),
              size = mgrid_family_max_size(f);
      int64_t at = rng_between(&r, 0, size - 1), most = size - at < LONGEST ? size - at : LONGEST;
      int64_t some = rng_between(&r, 1, most);
      mgrid_family_slice(f, group, at, some, piece);
      for (int64_t i = 0; i < some; i++) check(&r, piece[i] == mgrid_family_rank(f, group, at + i));
      if (size > LONGEST) continue;
      int64_t many = LONGEST / size;
      if (many > mgrid_family_count(f) - group) many = mgrid_family_count(f) - group;
      check(&r, mgrid_family_members(f, group, many, LONGEST, out) == many * size);
      for (int64_t i = 0; i < many * size; i++)
        check(&r, out[i] == mgrid_family_rank(f, group + i / size, i % size));
    }
    mgrid_family_free(f);
    mgrid_grid_free(g);
  }
  free(out);
  free(piece);
}

int main(int argc, char **argv) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_grids),
    cmocka_unit_test(test_along),
    cmocka_unit_test(test_index_may_leave_out_ones),
    cmocka_unit_test(test_chains),
    cmocka_unit_test(test_windows),
    cmocka_unit_test(test_long_lists),
  };
  return run_program("algebra", tests, argc, argv);
}
