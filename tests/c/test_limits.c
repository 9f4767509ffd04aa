/* SPDX-License-Identifier: MIT
**
** test_limits.c - worlds of up to 2^31 - 1 ranks, and every refusal of the algebra with its
** whole message, because authors of recipes rely on messages.
*/
#include "asserted.h"
#include "lists.h"

#include "families/family.h"
#include "moongrid_tensor.h"

#include <sys/wait.h>
#include <unistd.h>

#define LARGEST INT64_C(2147483647) /* a prime */

/* Does fn return within so many seconds? Runs it in another process, which may hang. */
static bool finishes(void (*fn)(void), unsigned seconds) {
  int status = -1;
  pid_t child = fork();
  if (child == 0) {
    alarm(seconds);
    fn();
    _exit(0);
  }
  waitpid(child, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/* ------------------------------------------------------------- large worlds */

/* locate and rank are inverse on sampled ranks, both ends included. */
static void check_samples(rng *r, const mgrid_family *f) {
  int64_t world = mgrid_family_world(f), group, position;
  for (int i = 0; i < 2000; i++) {
    int64_t rank = i == 0 ? 0 : i == 1 ? world - 1 : rng_between(r, 0, world - 1);
    bool in = mgrid_family_locate(f, rank, 0, &group, &position);
    check(r, in || mgrid_family_coverage(f) != MGRID_PARTITION);
    if (in) check(r, mgrid_family_rank(f, group, position) == rank);
    if (mgrid_family_count(f) == 0) continue;
    int64_t g = rng_between(r, 0, mgrid_family_count(f) - 1),
            p = rng_between(r, 0, mgrid_family_size(f, g) - 1), nth = 0;
    rank = mgrid_family_rank(f, g, p);
    check(r, rank >= 0 && rank < world);
    do check(r, mgrid_family_locate(f, rank, nth++, &group, &position));
    while (group != g); /* a cover has the rank in several groups */
    check(r, position == p);
  }
  check(r, !mgrid_family_locate(f, world, 0, &group, &position));
}

static void test_largest_world(void **unused) {
  (void)unused;
  rng r = rng_new(first_seed());
  mgrid_error err = MGRID_ERROR_INIT;
  mgrid_dim dim = { "dp", LARGEST };
  mgrid_grid *g = grid_of(LARGEST, 1, &dim);
  mgrid_family *all = along(g, "dp"),
               *ones = mgrid_grid_along(g, 0, NULL, MGRID_GRID_ORDER, anew(&err));
  char text[64];
  assert_int_equal(mgrid_family_count(all), 1);
  assert_int_equal(mgrid_family_size(all, 0), LARGEST);
  assert_int_equal(mgrid_family_count(ones), LARGEST);
  assert_int_equal(mgrid_family_total(ones), LARGEST);
  assert_int_equal(mgrid_family_coverage(ones), MGRID_PARTITION);
  check_samples(&r, all);
  check_samples(&r, ones);
  mgrid_family_describe(all, text, sizeof text);
  assert_string_equal(text, "(2147483647:1) x (1)");
  assert_int_equal(mgrid_grid_coord(g, LARGEST - 1, 0), LARGEST - 1);
  const int64_t ends[] = { 0, -1 };
  mgrid_family *picked = mgrid_family_pick(all, 2, ends, anew(&err)),
               *ring = mgrid_family_neighbours(all, 1, true, anew(&err));
  int64_t members[2];
  mgrid_family_members(picked, 0, 1, 2, members);
  assert_int_equal(members[0], 0);
  assert_int_equal(members[1], LARGEST - 1);
  check_samples(&r, ring);
  assert_int_equal(mgrid_family_total(ring), 2 * LARGEST);
  assert_int_equal(mgrid_family_rounds(ring), 3); /* an odd ring */
  mgrid_family_free(picked);
  mgrid_family_free(ring);
  mgrid_family_free(all);
  mgrid_family_free(ones);
  mgrid_grid_free(g);
}

/* tp 8 x pp 16 x dp 2^23 (2^30 ranks): group and position by hand from the coordinates. */
static void test_wide_world(void **unused) {
  (void)unused;
  enum { TP = 8, PP = 16 };
  const int64_t dp = INT64_C(1) << 23;
  rng r = rng_new(first_seed());
  mgrid_error err = MGRID_ERROR_INIT;
  mgrid_dim dims[] = { { "tp", TP }, { "pp", PP }, { "dp", MGRID_FILL } };
  mgrid_grid *g = grid_of(dp * TP * PP, 3, dims);
  mgrid_family *ftp = along(g, "tp"), *fpp = along(g, "pp"), *fdp = along(g, "dp");
  for (int i = 0; i < 5000; i++) {
    int64_t t = rng_between(&r, 0, TP - 1), p = rng_between(&r, 0, PP - 1),
            d = rng_between(&r, 0, dp - 1);
    int64_t coords[] = { t, p, d }, rank = d * TP * PP + p * TP + t, group, position;
    check(&r, mgrid_grid_rank(g, coords) == rank);
    check(&r, mgrid_family_locate(ftp, rank, 0, &group, &position) && group == p + PP * d
                  && position == t);
    check(&r, mgrid_family_locate(fpp, rank, 0, &group, &position) && group == t + TP * d
                  && position == p);
    check(&r, mgrid_family_locate(fdp, rank, 0, &group, &position) && group == t + TP * p
                  && position == d);
  }
  int64_t levels[] = { 4, 1024, dp / 4096 };
  mgrid_family *made[8] = { 0 }, *inner, *outer;
  assert_int_equal(mgrid_family_levels(fdp, 3, levels, made, anew(&err)), MGRID_OK);
  assert_int_equal(mgrid_family_split(fdp, 1 << 20, false, false, &inner, &outer, anew(&err)),
                   MGRID_OK);
  made[3] = inner, made[4] = outer;
  made[5] = mgrid_family_bundle(ftp, PP, anew(&err));
  made[6] = mgrid_family_neighbours(fdp, 3, false, anew(&err));
  made[7] = mgrid_family_twin(fdp, anew(&err));
  for (int i = 0; i < 8; i++) {
    assert_non_null(made[i]);
    check_samples(&r, made[i]);
    mgrid_family_free(made[i]);
  }
  mgrid_family_free(ftp);
  mgrid_family_free(fpp);
  mgrid_family_free(fdp);
  mgrid_grid_free(g);
}

/* 30 dims of 2, every other one inside: as many modes as there can be. */
static void test_many_modes(void **unused) {
  (void)unused;
  mgrid_dim dims[30];
  char name[30][16];
  const char *inside[15];
  rng r = rng_new(first_seed());
  mgrid_error err = MGRID_ERROR_INIT;
  for (int i = 0; i < 30; i++) {
    snprintf(name[i], sizeof name[i], "d%d", i);
    dims[i] = (mgrid_dim){ name[i], 2 };
    if (i % 2) inside[i / 2] = name[i];
  }
  mgrid_grid *g = grid_of(INT64_C(1) << 30, 30, dims);
  mgrid_family *f = mgrid_grid_along(g, 15, inside, MGRID_GRID_ORDER, anew(&err)), *halves[2],
               *levels[15];
  int64_t group, position, twos[15];
  assert_non_null(f);
  assert_true(mgrid_family_locate(f, 0x2AAAAAAA, 0, &group, &position)); /* the odd bits */
  assert_int_equal(group, 0);
  assert_int_equal(position, (1 << 15) - 1);
  check_samples(&r, f);
  assert_int_equal(mgrid_family_split(f, 1 << 7, false, false, &halves[0], &halves[1], anew(&err)),
                   MGRID_OK);
  for (int i = 0; i < 15; i++) twos[i] = 2;
  assert_int_equal(mgrid_family_levels(f, 15, twos, levels, anew(&err)), MGRID_OK);
  for (int i = 0; i < 15; i++) {
    assert_int_equal(mgrid_family_rank(levels[i], 0, 1), INT64_C(2) << (2 * i));
    mgrid_family_free(levels[i]);
  }
  for (int i = 0; i < 2; i++) {
    check_samples(&r, halves[i]);
    mgrid_family_free(halves[i]);
  }
  mgrid_family_free(f);
  mgrid_grid_free(g);
}

/* Halves of the largest world, joined and zipped without a walk over their ranks. */
static void test_large_windows(void **unused) {
  (void)unused;
  const int64_t half = INT64_C(1) << 30, world = LARGEST;
  rng r = rng_new(first_seed());
  mgrid_error err = MGRID_ERROR_INIT;
  mgrid_dim dims[] = { { "tp", 8 }, { "dp", MGRID_FILL } };
  mgrid_grid *g[2] = { mgrid_grid_new((mgrid_window){ world, 0, half }, 2, dims, anew(&err)),
                       mgrid_grid_new((mgrid_window){ world, half, half - 8 }, 2, dims,
                                      anew(&err)) };
  mgrid_family *f[2] = { along(g[0], "dp"), along(g[1], "dp") };
  mgrid_family *u = mgrid_family_union(2, (const mgrid_family *const *)f, anew(&err));
  mgrid_family *z = mgrid_family_zip(2, (const mgrid_family *const *)f, false, anew(&err));
  assert_int_equal(mgrid_family_count(u), 16);
  assert_int_equal(mgrid_family_count(z), 8);
  assert_int_equal(mgrid_family_size(z, 0), half / 8 + half / 8 - 1);
  assert_int_equal(mgrid_family_rank(z, 3, half / 8), half + 3);
  check_samples(&r, u);
  check_samples(&r, z);
  mgrid_family_free(u);
  mgrid_family_free(z);
  for (int i = 0; i < 2; i++) {
    mgrid_family_free(f[i]);
    mgrid_grid_free(g[i]);
  }
}

/* A rank far outside the window has no coordinate, and asking does not overflow. */
static void ask_far_away(void) {
  mgrid_error err = MGRID_ERROR_INIT;
  mgrid_dim dim = { "a", 4 };
  mgrid_grid *g = mgrid_grid_new((mgrid_window){ 8, 4, 4 }, 1, &dim, anew(&err));
  if (mgrid_grid_coord(g, INT64_MIN, 0) != -1 || mgrid_grid_coord(g, INT64_MAX, 0) != -1) _exit(1);
}

static void test_rank_far_away(void **unused) {
  (void)unused;
  assert_true(finishes(ask_far_away, 5));
}

/* Segments, splits and picks of one family in a plan: no loop over its groups. */
static void plan_pieces(void) {
  mgrid_error err = MGRID_ERROR_INIT;
  mgrid_dim dims[] = { { "tp", 2 }, { "cp", 8 }, { "dp", MGRID_FILL } };
  const int64_t five[] = { 5, 1, 2 }, seven[] = { 7, 1 }, some[] = { 0, 1, 3, 4, 5, 7 },
                groups = LARGEST / 16 * 2;
  mgrid_grid *g = grid_of(LARGEST / 16 * 16, 3, dims);
  mgrid_family *cp = along(g, "cp"), *picked = mgrid_family_pick(cp, 6, some, &err),
               *f[6] = { along(g, "tp"), cp };
  mgrid_topology *t = mgrid_topology_new(LARGEST / 16 * 16, &err);
  f[2] = mgrid_family_segments(cp, 3, five, &err);
  f[3] = mgrid_family_segments(cp, 2, seven, &err);
  mgrid_family_split(picked, 3, false, false, &f[4], NULL, &err);
  mgrid_family_split(picked, 2, false, true, &f[5], NULL, &err);
  char name[] = "a";
  for (int i = 0; i < 6; i++, name[0]++) mgrid_topology_add(t, name, f[i], NULL, &err);
  mgrid_plan *p = mgrid_plan_new(t, &err);
  mgrid_plan_counts n = MGRID_PLAN_COUNTS_INIT;
  if (mgrid_plan_count(p, -1, &n, &err) || n.singles != 2 * groups) _exit(1);
  /* tp, then those of each cp group */
  if (n.communicators != 4 * groups + groups * (1 + 2 + 1 + 2 + 3)) _exit(1);
}

static void test_plan_of_pieces_ends(void **unused) {
  (void)unused;
  assert_true(finishes(plan_pieces, 30));
}

/* ---------------------------------------------------- refusals come quickly */

static void refuse_bundle_of_many(void) {
  mgrid_error err = MGRID_ERROR_INIT;
  mgrid_dim dims[] = { { "a", 2 }, { "b", 8 } };
  mgrid_grid *g = mgrid_grid_new(mgrid_world(16), 2, dims, anew(&err));
  if (mgrid_family_bundle(along(g, "a"), INT64_MAX, anew(&err))) _exit(1);
}

static void refuse_bundle_of_prime(void) {
  mgrid_error err = MGRID_ERROR_INIT;
  mgrid_dim dim = { "a", LARGEST };
  mgrid_grid *g = mgrid_grid_new(mgrid_world(LARGEST), 1, &dim, anew(&err));
  if (mgrid_family_bundle(mgrid_grid_along(g, 0, NULL, MGRID_GRID_ORDER, anew(&err)), 2, &err))
    _exit(1);
}

static void refuse_split_of_prime(void) {
  mgrid_error err = MGRID_ERROR_INIT;
  mgrid_family *inner;
  mgrid_dim dim = { "a", LARGEST };
  mgrid_grid *g = mgrid_grid_new(mgrid_world(LARGEST), 1, &dim, anew(&err));
  if (mgrid_family_split(along(g, "a"), 2, false, false, &inner, NULL, anew(&err)) != MGRID_REFUSED)
    _exit(1);
  if (strcmp(err.message,
             "split(2) of groups of 2147483647: 2 does not divide 2147483647; sizes that do: "
             "1, 2147483647")
      != 0)
    _exit(1);
}

static void refuse_grid_of_prime(void) {
  mgrid_error err = MGRID_ERROR_INIT;
  mgrid_dim dims[] = { { "a", 2 }, { "b", MGRID_FILL } };
  if (mgrid_grid_new(mgrid_world(LARGEST), 2, dims, anew(&err))) _exit(1);
}

/* 60000 positions, all different: no comparison of each with each. */
static void pick_many(void) {
  mgrid_error err = MGRID_ERROR_INIT;
  int64_t *positions = malloc(60000 * sizeof *positions);
  mgrid_dim dim = { "a", 1 << 20 };
  mgrid_grid *g = mgrid_grid_new(mgrid_world(1 << 20), 1, &dim, anew(&err));
  for (int64_t i = 0; i < 60000; i++) positions[i] = i * 7;
  if (!mgrid_family_pick(along(g, "a"), 60000, positions, anew(&err))) _exit(1);
}

static void test_bundle_of_many_ends(void **unused) {
  (void)unused;
  assert_true(finishes(refuse_bundle_of_many, 30));
}
static void test_bundle_of_prime_ends(void **unused) {
  (void)unused;
  assert_true(finishes(refuse_bundle_of_prime, 30));
}
static void test_split_of_prime_ends(void **unused) {
  (void)unused;
  assert_true(finishes(refuse_split_of_prime, 30));
}
static void test_grid_of_prime_ends(void **unused) {
  (void)unused;
  assert_true(finishes(refuse_grid_of_prime, 30));
}
static void test_pick_of_many_ends(void **unused) {
  (void)unused;
  assert_true(finishes(pick_many, 30));
}

int main(int argc, char **argv) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_largest_world),       cmocka_unit_test(test_wide_world),
    cmocka_unit_test(test_many_modes),          cmocka_unit_test(test_large_windows),
    cmocka_unit_test(test_rank_far_away),       cmocka_unit_test(test_grid_of_prime_ends),
    cmocka_unit_test(test_bundle_of_many_ends), cmocka_unit_test(test_bundle_of_prime_ends),
    cmocka_unit_test(test_plan_of_pieces_ends), cmocka_unit_test(test_split_of_prime_ends),
    cmocka_unit_test(test_pick_of_many_ends),
  };
  return run_program("limits", tests, argc, argv);
}
