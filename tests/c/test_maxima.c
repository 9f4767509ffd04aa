/* SPDX-License-Identifier: MIT
**
** test_maxima.c - counts that lie, and the most of everything: depth, rounds, modes, parts, names,
** axes. At each maximum, and one beyond it, with the whole message.
*/
#include "asserted.h"
#include "lists.h"

#include "families/family.h"
#include "moongrid_tensor.h"

#define LARGEST INT64_C(2147483647)

/* ---------------------------------------------------------- counts, depth, parts */

/* The call fails with this message. */
#define SAYS(call, text) \
  do { \
    anew(&err); \
    assert_true(!(call)); \
    assert_string_equal(err.message, text); \
  } while (0)

/* Counts and enums that were never meant are refused, and nothing is read. */
static void test_counts_that_lie(void **unused) {
  mgrid_error err = MGRID_ERROR_INIT;
  mgrid_dim dims[] = { { "a", 2 }, { "b", 4 } };
  const char *names[] = { "a", "b" };
  const int64_t starts[] = { 0, 1 }, sizes[] = { 1 };
  const int64_t ranks[] = { 0 };
  mgrid_grid *g = grid_of(8, 2, dims);
  mgrid_family *f = along(g, "b"), *out[1];
  (void)unused;
#define MANY(what) what ": 18446744073709551615 elements; at most 2147483647"
  SAYS(mgrid_grid_along_by(g, SIZE_MAX, names, 2, names, &err),
       "18446744073709551615 and 2 dims asked of a grid that has 2");
  SAYS(mgrid_grid_along_by(g, 2, names, SIZE_MAX, names, &err),
       "2 and 18446744073709551615 dims asked of a grid that has 2");
  SAYS(mgrid_grid_along(g, 1, names, (mgrid_order)77, &err),
       "an order of members is MGRID_GRID_ORDER or MGRID_AS_WRITTEN, not 77");
  SAYS(mgrid_family_table(mgrid_world(8), 1, starts, ranks, (mgrid_coverage)77, &err),
       "a coverage is MGRID_PARTITION, MGRID_PARTIAL or MGRID_COVER, not 77");
  SAYS(mgrid_family_table(mgrid_world(8), INT64_MAX, starts, ranks, MGRID_COVER, &err),
       "table: 9223372036854775807 elements; at most 2147483647");
  SAYS(mgrid_family_pick(f, SIZE_MAX, sizes, &err), MANY("pick"));
  SAYS(mgrid_family_without(f, SIZE_MAX, sizes, &err), MANY("without"));
  SAYS(mgrid_family_segments(f, SIZE_MAX, sizes, &err), MANY("segments"));
  SAYS(mgrid_family_union(SIZE_MAX, (const mgrid_family *const *)&f, &err), MANY("union"));
  SAYS(mgrid_family_zip(SIZE_MAX, (const mgrid_family *const *)&f, false, &err), MANY("zip"));
  SAYS(mgrid_family_closure(SIZE_MAX, (const mgrid_family *const *)&f, &err), MANY("closure"));
  SAYS(mgrid_family_levels(f, SIZE_MAX, sizes, out, &err) == MGRID_OK, MANY("levels"));
#undef MANY
  mgrid_family_free(f);
  mgrid_grid_free(g);
}

/* At the limit of depth, and one beyond; twins do not count, and nothing needs a deep stack. */
static void test_depth(void **unused) {
  mgrid_error err = MGRID_ERROR_INIT;
  mgrid_dim dim = { "a", 8 };
  mgrid_grid *g = grid_of(8, 1, &dim);
  mgrid_family *f = along(g, "a"), *next;
  char text[4096];
  (void)unused;
  for (int i = 0; i < MGRID_DEPTH_MAX; i++) {
    next = mgrid_family_zip(1, (const mgrid_family *const *)&f, false, anew(&err));
    assert_non_null(next);
    mgrid_family_free(f);
    f = next;
  }
  SAYS(mgrid_family_zip(1, (const mgrid_family *const *)&f, false, &err),
       "families are nested more than 64 deep");
  SAYS(mgrid_family_union(1, (const mgrid_family *const *)&f, &err),
       "families are nested more than 64 deep");
  SAYS(mgrid_family_neighbours(f, 1, false, &err), "families are nested more than 64 deep");
  for (int i = 0; i < 100000; i++) {
    next = mgrid_family_twin(f, anew(&err));
    assert_non_null(next);
    mgrid_family_free(f);
    f = next;
  }
  assert_int_equal(mgrid_family_rank(f, 0, 7), 7);
  assert_true(mgrid_family_describe(f, text, sizeof text) > 64 * 5);
  mgrid_family_free(f);
  mgrid_grid_free(g);
}

/* As many rounds as there may be, and one more. */
static void test_rounds_of_a_cover(void **unused) {
  enum { MOST = MGRID_ROUNDS_MAX };
  mgrid_error err = MGRID_ERROR_INIT;
  int64_t *starts = malloc((MOST + 2) * sizeof *starts);
  int64_t *ranks = malloc((MOST + 1) * 2 * sizeof *ranks);
  (void)unused;
  assert_true(starts && ranks);
  for (int i = 0; i <= MOST + 1; i++) starts[i] = 2 * i;
  for (int i = 0; i <= MOST; i++) ranks[2 * i] = 0, ranks[2 * i + 1] = i + 1;
  mgrid_family *f =
      mgrid_family_table(mgrid_world(4096), MOST, starts, ranks, MGRID_COVER, anew(&err));
  assert_non_null(f);
  assert_int_equal(mgrid_family_rounds(f), MOST);
  mgrid_family_free(f);
  SAYS(mgrid_family_table(mgrid_world(4096), MOST + 1, starts, ranks, MGRID_COVER, &err),
       "group 1024 of the table shares ranks with 1024 others or more; at most 1023");
  free(starts);
  free(ranks);
}

/* As many modes as there may be, of 2 and in no run, and one more. */
static void test_modes(void **unused) {
  enum { MOST = MGRID_MODES_MAX };
  mgrid_error err = MGRID_ERROR_INIT;
  mgrid_mode mode[MOST + 1];
  char text[1024];
  int64_t group, position;
  (void)unused;
  for (int i = 0; i <= MOST; i++) mode[i] = (mgrid_mode){ 2, INT64_C(1) << (MOST - i) };
  mgrid_family *f =
      mgrid_family_modes(mgrid_world(LARGEST), 0, MOST, mode + 1, 0, NULL, anew(&err));
  assert_non_null(f);
  assert_int_equal(mgrid_family_size(f, 0), INT64_C(1) << MOST);
  assert_true(mgrid_family_locate(f, 1, 0, &group, &position)); /* the last mode's stride */
  assert_int_equal(position, INT64_C(1) << (MOST - 1));
  mgrid_family_describe(f, text, sizeof text);
  assert_non_null(strstr(text, "(2:536870912)(2:268435456)"));
  mgrid_family *inner, *outer;
  assert_int_equal(mgrid_family_split(f, 2, false, false, &inner, &outer, anew(&err)), MGRID_OK);
  assert_int_equal(mgrid_family_rank(outer, 1, 1), (1 << (MOST - 1)) + (1 << (MOST - 2)));
  mgrid_family_free(inner);
  mgrid_family_free(outer);
  mgrid_family_free(f);
  SAYS(mgrid_family_modes(mgrid_world(LARGEST), 0, MOST + 1, mode, 0, NULL, &err),
       "inside mode 30 makes the modes larger than any world");
  SAYS(mgrid_family_modes(mgrid_world(LARGEST), 0, MOST, mode + 1, 1, mode, &err),
       "index mode 0 makes the modes larger than any world");
}

/* As many parts as there may be, and one more. */
static void test_parts(void **unused) {
  enum { MOST = MGRID_PARTS_MAX - 1 }; /* and the union itself */
  static mgrid_family *part[MOST + 1];
  mgrid_error err = MGRID_ERROR_INIT;
  mgrid_mode pair = { 2, 1 };
  int64_t world = 2 * (MOST + 1);
  (void)unused;
  for (int i = 0; i <= MOST; i++) {
    part[i] =
        mgrid_family_modes((mgrid_window){ world, 2 * i, 2 }, 2 * i, 1, &pair, 0, NULL, anew(&err));
    assert_non_null(part[i]);
  }
  mgrid_family *all = mgrid_family_union(MOST, (const mgrid_family *const *)part, anew(&err));
  assert_non_null(all);
  assert_int_equal(mgrid_family_count(all), MOST);
  assert_int_equal(mgrid_family_rank(all, MOST - 1, 1), 2 * MOST - 1);
  mgrid_family_free(all);
  SAYS(mgrid_family_union(MOST + 1, (const mgrid_family *const *)part, &err),
       "a family has at most 4096 parts, counting nested ones");
  SAYS(mgrid_family_zip(MOST + 1, (const mgrid_family *const *)part, false, &err),
       "a family has at most 4096 parts, counting nested ones");
  for (int i = 0; i <= MOST; i++) mgrid_family_free(part[i]);
}

/* A name of 31 bytes, and one of 32, wherever there is one. */
#define LONG_NAME "_23456789_123456789_123456789_1"
#define TOO_LONG  LONG_NAME "2"
#define NO_NAME(what) \
  "'" TOO_LONG "' is not " what " name (a letter or _, then letters, digits or _; at most 31)"

static void test_names(void **unused) {
  mgrid_error err = MGRID_ERROR_INIT;
  mgrid_dim dim = { LONG_NAME, 8 }, far = { TOO_LONG, 8 };
  mgrid_tensor_axis axis = { .size = sizeof axis, .name = LONG_NAME, .length = 8 };
  mgrid_grid *g = grid_of(8, 1, &dim);
  mgrid_family *f = along(g, LONG_NAME);
  mgrid_tensor *x = mgrid_tensor_new(g, "f32", 1, &axis, NULL, anew(&err));
  mgrid_options o = MGRID_OPTIONS_INIT;
  (void)unused;
  assert_int_equal(strlen(LONG_NAME), 31);
  assert_string_equal(mgrid_tensor_axis_name(x, 0), LONG_NAME);
  SAYS(mgrid_grid_new(mgrid_world(8), 1, &far, &err), NO_NAME("a dim"));
  axis.name = TOO_LONG;
  SAYS(mgrid_tensor_new(g, "f32", 1, &axis, NULL, &err), NO_NAME("an axis"));

  mgrid_topology *t[3];
  for (int i = 0; i < 3; i++) t[i] = mgrid_topology_new(8, anew(&err));
  assert_int_equal(mgrid_topology_add(t[0], LONG_NAME, f, NULL, anew(&err)), MGRID_OK);
  assert_int_equal(mgrid_topology_add_grid(t[1], LONG_NAME, g, anew(&err)), MGRID_OK);
  assert_int_equal(mgrid_topology_add_tensor(t[2], LONG_NAME, x, anew(&err)), MGRID_OK);
  o.parent = LONG_NAME, o.windows = LONG_NAME "=4096", o.cartesian = LONG_NAME ":8";
  assert_int_equal(mgrid_topology_add(t[0], "child", f, &o, anew(&err)), MGRID_OK);
  mgrid_plan *p = mgrid_plan_new(t[0], anew(&err));
  assert_non_null(p);
  assert_string_equal(mgrid_plan_family_name(p, 0), LONG_NAME);
  mgrid_plan_free(p);
  SAYS(mgrid_topology_add(t[0], TOO_LONG, f, NULL, &err) == MGRID_OK, NO_NAME("a family"));
  SAYS(mgrid_topology_add_grid(t[1], TOO_LONG, g, &err) == MGRID_OK, NO_NAME("a grid"));
  struct {
    const char *parent, *windows, *cartesian, *said;
  } wrong[] = {
    { TOO_LONG, "", "", "option 'parent' is the name of a family, not '" TOO_LONG "'" },
    { "", TOO_LONG "=1", "",
      "a name in option 'windows' has at most 31 characters: '" TOO_LONG "'" },
    { "", "", TOO_LONG ":8", "cartesian: " NO_NAME("a dim") },
  };
  for (int i = 0; i < 3; i++) {
    mgrid_topology_free(t[i]);
    t[i] = mgrid_topology_new(8, anew(&err));
    o.parent = wrong[i].parent, o.windows = wrong[i].windows, o.cartesian = wrong[i].cartesian;
    SAYS(mgrid_topology_add(t[i], "f", f, &o, &err) == MGRID_OK, wrong[i].said);
    mgrid_topology_free(t[i]);
  }
  mgrid_tensor_free(x);
  mgrid_family_free(f);
  mgrid_grid_free(g);
}

/* A tensor with as many axes as there may be. One more: test_tensors.c. */
static void test_axes(void **unused) {
  mgrid_error err = MGRID_ERROR_INIT;
  mgrid_dim dim = { "x", 8 };
  mgrid_grid *g = grid_of(8, 1, &dim);
  char name[MGRID_AXES_MAX][2];
  mgrid_tensor_axis axis[MGRID_AXES_MAX];
  (void)unused;
  for (int i = 0; i < MGRID_AXES_MAX; i++) {
    name[i][0] = (char)('a' + i), name[i][1] = '\0';
    axis[i] = (mgrid_tensor_axis){ .size = sizeof *axis, .name = name[i], .length = 2 };
  }
  mgrid_tensor *t = mgrid_tensor_new(g, "i8", MGRID_AXES_MAX, axis, NULL, anew(&err));
  assert_non_null(t);
  assert_int_equal(mgrid_tensor_bytes(t), 1 << MGRID_AXES_MAX);
  mgrid_tensor_free(t);
  mgrid_grid_free(g);
}

int main(int argc, char **argv) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_counts_that_lie),
    cmocka_unit_test(test_depth),
    cmocka_unit_test(test_rounds_of_a_cover),
    cmocka_unit_test(test_modes),
    cmocka_unit_test(test_parts),
    cmocka_unit_test(test_names),
    cmocka_unit_test(test_axes),
  };
  return run_program("maxima", tests, argc, argv);
}
