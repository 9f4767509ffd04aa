/* SPDX-License-Identifier: MIT
**
** test_first_error.c - a program that looks at its error once, at the end, or not at all, never
** goes on with less than it asked for.
*/
#include "program.h"

#include "moongrid.h"

static const mgrid_dim dims[] = { { "tp", 2 }, { "dp", MGRID_FILL } };
static const char *tp = "tp", *misspelt = "pt";

static mgrid_grid *grid_of(int64_t world) {
  return mgrid_grid_new(mgrid_world(world), 2, dims, NULL);
}

#define WRONG_DIM "unknown dim 'pt'; nearest is 'tp' (tp, dp)"

/* A misspelt dim, whose error is in `one`; the topology and its plan report to `two`, which may be
** the same. */
static void misspell(mgrid_error *one, mgrid_error *two, const char *wanted) {
  mgrid_grid *grid = grid_of(8);
  mgrid_family *none = mgrid_grid_along(grid, 1, &misspelt, MGRID_GRID_ORDER, one);
  mgrid_family *good = mgrid_grid_along(grid, 1, &tp, MGRID_GRID_ORDER, two);
  mgrid_topology *t = mgrid_topology_new(8, two);
  mgrid_error e = MGRID_ERROR_INIT;
  assert_null(none);
  assert_int_equal(mgrid_topology_add(t, "wrong", none, NULL, two), MGRID_USAGE);
  assert_int_equal(mgrid_topology_add(t, "right", good, NULL, NULL), MGRID_OK);
  assert_null(mgrid_plan_new(t, two));
  if (two) assert_string_equal(two->message, wanted);
  assert_null(mgrid_plan_new(t, &e)); /* also for one who has not followed the chain */
  assert_string_equal(e.message, wanted);
  mgrid_topology_free(t);
  mgrid_family_free(good);
  mgrid_grid_free(grid);
}

static void test_misspelt_dim(void **state) {
  mgrid_error chain = MGRID_ERROR_INIT, one = MGRID_ERROR_INIT, two = MGRID_ERROR_INIT;
  (void)state;
  misspell(&chain, &chain, WRONG_DIM);
  assert_int_equal(chain.status, MGRID_UNKNOWN_NAME);
  misspell(&one, &two, "family 'wrong' or its topology is NULL");
  assert_int_equal(two.status, MGRID_USAGE);
  misspell(NULL, NULL, "family 'wrong' or its topology is NULL");
}

/* Calls that break a topology, and what the plan says then. */
static void broken(int how, const char *wanted, mgrid_status status) {
  mgrid_grid *grid = grid_of(8), *other = grid_of(16);
  mgrid_family *f = mgrid_grid_along(grid, 1, &tp, MGRID_GRID_ORDER, NULL);
  mgrid_topology *t = mgrid_topology_new(8, NULL);
  mgrid_options o = MGRID_OPTIONS_INIT;
  mgrid_error e = MGRID_ERROR_INIT;
  mgrid_topology_add(t, "tp", f, NULL, NULL);
  o.timeout = -1;
  switch (how) {
  case 0: mgrid_topology_add(t, "tp", f, NULL, NULL); break;
  case 1: mgrid_topology_add(t, "t p", f, NULL, NULL); break;
  case 2: mgrid_topology_add(t, NULL, f, NULL, NULL); break;
  case 3: mgrid_topology_add_grid(t, "grid", other, NULL); break;
  case 4: mgrid_topology_add_grid(t, "grid", NULL, NULL); break;
  case 5: mgrid_topology_param(t, "lines", "one\ntwo", NULL); break;
  case 6: mgrid_topology_param(t, "none", NULL, NULL); break;
  case 7: mgrid_topology_recipe(t, NULL, NULL); break;
  default: mgrid_topology_add(t, "late", f, &o, NULL); break;
  }
  mgrid_topology_add(t, "9", f, NULL, NULL); /* a later fault changes nothing */
  assert_null(mgrid_plan_new(t, &e));
  assert_string_equal(e.message, wanted);
  assert_int_equal(e.status, status);
  mgrid_topology_free(t);
  mgrid_family_free(f);
  mgrid_grid_free(grid);
  mgrid_grid_free(other);
}

static void test_broken_topology(void **state) {
  (void)state;
  broken(0, "the topology already has a family 'tp'", MGRID_DUPLICATE);
  broken(1, "'t p' is not a family name (a letter or _, then letters, digits or _; at most 31)",
         MGRID_BAD_VALUE);
  broken(2, "'' is not a family name (a letter or _, then letters, digits or _; at most 31)",
         MGRID_BAD_VALUE);
  broken(3, "grid 'grid' is of a world of 16 ranks, the topology of 8", MGRID_REFUSED);
  broken(4, "grid 'grid' or its topology is NULL", MGRID_USAGE);
  broken(5,
         "the value of parameter 'lines' is one line of text in UTF-8, without control characters, "
         "not 'one\\ntwo'",
         MGRID_BAD_VALUE);
  broken(6, "the value of a parameter is NULL", MGRID_USAGE);
  broken(7, "the name of the recipe is NULL", MGRID_USAGE);
  broken(8, "a timeout is 0 (the default) to 1e9 seconds, not -1", MGRID_OUT_OF_RANGE);
}

/* The successes of a chain leave the error of its first call alone. */
static void test_success_after_error(void **state) {
  mgrid_error e = MGRID_ERROR_INIT;
  mgrid_grid *grid = grid_of(8);
  mgrid_family *none = mgrid_grid_along(grid, 1, &misspelt, MGRID_GRID_ORDER, &e), *inner, *outer;
  mgrid_family *f = mgrid_grid_along(grid, 1, &tp, MGRID_GRID_ORDER, &e);
  (void)state;
  memset(&inner, 0xa5, sizeof inner);
  memset(&outer, 0xa5, sizeof outer);
  assert_int_equal(mgrid_family_split(none, 2, false, false, &inner, &outer, &e), MGRID_USAGE);
  assert_null(inner);
  assert_null(outer);
  assert_int_equal(mgrid_family_split(f, 3, false, false, &inner, &outer, NULL), MGRID_REFUSED);
  assert_null(inner);
  assert_null(outer);
  assert_int_equal(mgrid_family_split(f, 2, false, false, &inner, &outer, &e), MGRID_OK);
  mgrid_family_free(inner);
  mgrid_family_free(outer);

  mgrid_topology *t = mgrid_topology_new(8, &e);
  assert_int_equal(mgrid_topology_add(t, "tp", f, NULL, &e), MGRID_OK);
  mgrid_plan *p = mgrid_plan_new(t, &e);
  mgrid_backend *b = mgrid_backend_dry(8, 0, &e);
  mgrid_state *s = mgrid_materialize(p, b, "train", NULL);
  assert_non_null(mgrid_state_group(s, "tp", &e));
  assert_string_equal(e.message, WRONG_DIM);
  assert_int_equal(e.status, MGRID_UNKNOWN_NAME);
  mgrid_state_free(s);
  mgrid_backend_free(b);
  mgrid_plan_free(p);
  mgrid_topology_free(t);
  mgrid_family_free(f);
  mgrid_grid_free(grid);
}

/* Functions of a host that fail: by a word written over what is there, or by none. */
static int64_t says_why(void *ud, int64_t size, int64_t *positions, int64_t cap, mgrid_error *err) {
  (void)ud, (void)size, (void)positions, (void)cap;
  *err = (mgrid_error)MGRID_ERROR_INIT;
  err->status = MGRID_BAD_VALUE;
  snprintf(err->message, sizeof err->message, "the host's reason");
  return -1;
}

static int64_t says_nothing(void *ud, int64_t group, int64_t *ranks, int64_t n, int64_t cap,
                            mgrid_error *err) {
  (void)ud, (void)group, (void)ranks, (void)n, (void)cap, (void)err;
  return -1;
}

static void test_functions_of_the_host(void **state) {
  mgrid_grid *grid = grid_of(8);
  mgrid_family *f = mgrid_grid_along(grid, 1, &tp, MGRID_GRID_ORDER, NULL);
  mgrid_error e = MGRID_ERROR_INIT, first = MGRID_ERROR_INIT;
  (void)state;
  assert_null(mgrid_family_pick_by(f, says_why, NULL, &e));
  assert_string_equal(e.message, "the host's reason");
  assert_int_equal(e.status, MGRID_BAD_VALUE);
  assert_null(mgrid_family_map(f, says_nothing, NULL, &first));
  assert_string_equal(first.message, "the function of a map failed and did not say why");
  assert_int_equal(first.status, MGRID_REFUSED);
  assert_null(mgrid_family_pick_by(f, says_why, NULL, &first)); /* the first error stays */
  assert_string_equal(first.message, "the function of a map failed and did not say why");
  assert_null(mgrid_family_pick_by(f, says_why, NULL, NULL));
  mgrid_family_free(f);
  mgrid_grid_free(grid);
}

int main(int argc, char **argv) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_misspelt_dim),
    cmocka_unit_test(test_broken_topology),
    cmocka_unit_test(test_functions_of_the_host),
    cmocka_unit_test(test_success_after_error),
  };
  return run_program("first error", tests, argc, argv);
}
