/* SPDX-License-Identifier: MIT
**
** test_pieces.c - groups cut into pieces and counted in another order: compared with lists, which
** forms they keep, and what is refused.
*/
#include "asserted.h"
#include "lists.h"

#include "families/family.h"

enum { CASES = 3000 };

static mgrid_error why;

/* -------------------------------------------------------------- split by row */

/* A strided family keeps its form exactly where the plain split does, and the groups are those,
** reordered. */
static void test_split_rows(void **unused) {
  (void)unused;
  int strided = 0, cut = 0;
  for (uint64_t seed = first_seed(); seed < first_seed() + CASES; seed++) {
    rng r = rng_new(seed);
    drawn d = draw_grid(&r, 200);
    drawn_along a = draw_along(&r, &d);
    mgrid_family *f = mgrid_grid_along_by(d.grid, a.nin, a.in_name, a.nix, a.ix_name, anew(&why));
    lists l = lists_along(&d, a.nin, a.in, a.nix, a.ix);
    int64_t size = mgrid_family_max_size(f), k = rng_divisor(&r, size);
    mgrid_family *plain = NULL, *inner = NULL, *outer = NULL;
    bool layout = mgrid_family_split(f, k, false, false, &plain, NULL, anew(&why)) == MGRID_OK;
    mgrid_status s = mgrid_family_split(f, k, false, true, &inner, &outer, anew(&why));
    check(&r, layout == (s == MGRID_OK));
    if (s) s = mgrid_family_split(f, k, true, true, &inner, &outer, anew(&why));
    check(&r, s == MGRID_OK);
    lists in = lists_split(&l, k, true), out = lists_split(&l, k, false);
    lists_replace(&in, lists_by_row(&in, size / k));
    lists_replace(&out, lists_by_row(&out, k));
    lists_check(&r, inner, &in);
    lists_check(&r, outer, &out);
    check(&r, (inner->form == &mgrid_strided_form && outer->form == &mgrid_strided_form) == layout);
    strided += layout, cut += !layout;
    for (int64_t i = 0; i < in.n; i++) { /* what the header says of the numbers */
      int64_t group, position;
      check(&r, mgrid_family_locate(f, mgrid_family_rank(inner, i, 0), 0, &group, &position));
      check(&r, group == i % mgrid_family_count(f));
    }
    lists_free(&in);
    lists_free(&out);
    lists_free(&l);
    mgrid_family_free(plain);
    mgrid_family_free(inner);
    mgrid_family_free(outer);
    mgrid_family_free(f);
    mgrid_grid_free(d.grid);
  }
  assert_true(strided > 1000 && cut > 20);
}

/* ------------------------------------------------------------ cuts and picks */

/* Bundles and splits of picks need no lists, and the runs of a split bundled again are the pick. */
static void test_cuts_of_picks(void **unused) {
  (void)unused;
  int cut = 0, bundled = 0;
  for (uint64_t seed = first_seed(); seed < first_seed() + CASES; seed++) {
    rng r = rng_new(seed);
    int64_t size = rng_between(&r, 1, 24), count = rng_between(&r, 1, 6), positions[24];
    mgrid_dim dims[] = { { "a", size }, { "b", count } };
    const char *a = "a";
    mgrid_grid *g = mgrid_grid_new(mgrid_world(size * count), 2, dims, anew(&why));
    mgrid_family *f = mgrid_grid_along(g, 1, &a, MGRID_GRID_ORDER, anew(&why)), *half[2] = { 0 };
    lists all = lists_of(f);
    int64_t n = (int64_t)draw_positions(&r, size, positions), some = rng_divisor(&r, count),
            k = rng_divisor(&r, n);
    mgrid_family *p = mgrid_family_pick(f, (size_t)n, positions, anew(&why));
    lists l = lists_pick(&all, (size_t)n, positions);
    mgrid_family *b = mgrid_family_bundle(p, some, anew(&why));
    check(&r, p && b && (p->form == &mgrid_picked_form || p->form == &mgrid_strided_form)
                  && b->form != &mgrid_table_form);
    lists want = lists_bundle(&l, some);
    lists_check(&r, b, &want);
    bundled += b->form == &mgrid_picked_form && some > 1;
    mgrid_status s = mgrid_family_split(p, k, true, false, &half[0], &half[1], anew(&why));
    check(&r, s == MGRID_OK);
    for (int side = 0; side < 2; side++) {
      lists_replace(&want, lists_split(&l, k, side == 0));
      lists_check(&r, half[side], &want);
      check(&r, half[side]->form != &mgrid_table_form);
      cut += half[side]->form == &mgrid_cut_form;
      mgrid_family *rebundled = mgrid_family_bundle(half[side], side == 0 ? n / k : k, anew(&why));
      if (side == 0) { /* the runs of a group are the group again */
        check(&r, rebundled && mgrid_family_equal(rebundled, p));
      } else if (rebundled) {
        lists_replace(&want, lists_bundle(&want, k));
        lists_check(&r, rebundled, &want);
      }
      mgrid_family_free(rebundled);
      mgrid_family_free(half[side]);
    }
    mgrid_family *freed[] = { b, p, f };
    for (int i = 0; i < 3; i++) mgrid_family_free(freed[i]);
    mgrid_grid_free(g);
    lists_free(&all);
    lists_free(&want);
    lists_free(&l);
  }
  assert_true(cut > 1000 && bundled > 100);
}

static int64_t ends(void *ud, int64_t size, int64_t *positions, int64_t cap, mgrid_error *err) {
  (void)ud, (void)err, (void)cap;
  positions[0] = 0, positions[1] = size - 1;
  return 2;
}

/* The first and last rank of every segment, by a function of its size. */
static void test_picks_of_segments(void **unused) {
  (void)unused;
  for (uint64_t seed = first_seed(); seed < first_seed() + CASES; seed++) {
    rng r = rng_new(seed);
    drawn d = draw_grid(&r, 80);
    drawn_along a = draw_along(&r, &d);
    mgrid_family *f = mgrid_grid_along_by(d.grid, a.nin, a.in_name, a.nix, a.ix_name, anew(&why));
    lists l = lists_along(&d, a.nin, a.in, a.nix, a.ix);
    mgrid_family *s = draw_segments(&r, f, &l);
    check(&r, s != NULL);
    lists_check(&r, s, &l);
    mgrid_family *picked = mgrid_family_pick_by(s, ends, NULL, anew(&why));
    const int64_t both[] = { 0, -1 };
    lists want = lists_pick(&l, 2, both);
    check(&r, picked && picked->form != &mgrid_table_form);
    lists_check(&r, picked, &want);
    lists_free(&want);
    lists_free(&l);
    mgrid_family_free(picked);
    mgrid_family_free(s);
    mgrid_family_free(f);
    mgrid_grid_free(d.grid);
  }
}

/* In the largest world: no list is made, so it takes no time. */
static void test_large_segments(void **unused) {
  (void)unused;
  const int64_t world = INT64_C(2147483646), sizes[] = { 5, MGRID_FILL, 1 }, half = world / 2;
  mgrid_dim dims[] = { { "a", MGRID_FILL }, { "b", 2 } };
  const char *a = "a";
  mgrid_grid *g = mgrid_grid_new(mgrid_world(world), 2, dims, anew(&why));
  mgrid_family *f = mgrid_grid_along(g, 1, &a, MGRID_GRID_ORDER, anew(&why));
  mgrid_family *s = mgrid_family_segments(f, 3, sizes, anew(&why));
  int64_t group, position;
  assert_int_equal(mgrid_family_count(s), 6);
  assert_int_equal(mgrid_family_max_size(s), half - 6);
  assert_int_equal(mgrid_family_size(s, 4), half - 6);
  assert_int_equal(mgrid_family_coverage(s), MGRID_PARTITION);
  assert_true(mgrid_family_locate(s, half + 7, 0, &group, &position) && group == 4
              && position == 2);
  assert_true(mgrid_family_locate(s, world - 1, 0, &group, &position) && group == 5
              && position == 0);
  mgrid_family *halves =
      mgrid_family_segments(f, 2, (int64_t[]){ half / 2, half - half / 2 }, anew(&why));
  assert_int_equal(mgrid_family_rank(halves, 3, 0), half + half / 2);
  mgrid_family_free(halves);
  mgrid_family_free(s);
  mgrid_family_free(f);
  mgrid_grid_free(g);
}

static mgrid_family *eights(void) {
  mgrid_dim dims[] = { { "a", 8 }, { "b", 2 } };
  const char *a = "a";
  mgrid_grid *g = mgrid_grid_new(mgrid_world(16), 2, dims, anew(&why));
  mgrid_family *f = mgrid_grid_along(g, 1, &a, MGRID_GRID_ORDER, anew(&why));
  assert_non_null(f);
  mgrid_grid_free(g);
  return f;
}

static void test_refused_segments(void **unused) {
  (void)unused;
  mgrid_family *f = eights(), *ring = mgrid_family_neighbours(f, 1, true, anew(&why));
  mgrid_family *uneven = mgrid_family_segments(f, 2, (int64_t[]){ 5, 3 }, anew(&why));
#define SEGMENTS(family, status, text, ...) \
  REFUSED(mgrid_family_segments(family, sizeof((int64_t[]){ __VA_ARGS__ }) / sizeof(int64_t), \
                                (int64_t[]){ __VA_ARGS__ }, anew(&why)), \
          status, text)
  REFUSED(mgrid_family_segments(f, 0, NULL, anew(&why)), MGRID_REFUSED,
          "segments: give sizes with the sum 8, the group size");
  SEGMENTS(f, MGRID_REFUSED,
           "segments: the sizes sum to 7, the groups have 8; a last size of 3 fits", 5, 2);
  SEGMENTS(f, MGRID_REFUSED,
           "segments: the sizes sum to 9, the groups have 8; a last size of 3 fits", 5, 4);
  SEGMENTS(f, MGRID_REFUSED, "segments: the sizes sum to 9, the groups have 8", 8, 1);
  SEGMENTS(f, MGRID_REFUSED,
           "segments: the sizes sum to 8, which leaves nothing to fill of groups of 8", 8,
           MGRID_FILL);
  SEGMENTS(f, MGRID_OUT_OF_RANGE, "segments: size 0 of segment 1; sizes are 1 to 8", 8, 0);
  SEGMENTS(f, MGRID_OUT_OF_RANGE, "segments: size -2 of segment 0; sizes are 1 to 8", -2, 10);
  SEGMENTS(f, MGRID_DUPLICATE, "segments: two sizes are fill; only one can be", MGRID_FILL, 3,
           MGRID_FILL);
  SEGMENTS(
      f, MGRID_REFUSED,
      "segments: the sizes sum to 9223372036854775807, the groups have 8; a last size of 8 fits",
      INT64_MAX);
  SEGMENTS(f, MGRID_OVERFLOW, "segments: the sum of the sizes overflows 64 bits", INT64_MAX,
           INT64_MAX);
  SEGMENTS(ring, MGRID_REFUSED, "segments: the groups share ranks" MGRID_BY_LIST, 1, 1);
  SEGMENTS(uneven, MGRID_REFUSED,
           "segments: the groups must have one size; their sizes vary, up to 5", 1, MGRID_FILL);
  assert_null(mgrid_family_segments(NULL, 1, (int64_t[]){ 8 }, anew(&why)));
  assert_int_equal(why.status, MGRID_OK);
  mgrid_family *in = NULL, *out = NULL;
  assert_int_equal(mgrid_family_split(uneven, 1, true, true, &in, &out, anew(&why)), MGRID_REFUSED);
  assert_string_equal(why.message,
                      "split by row: the groups must have one size; their sizes vary, up to 5");
  assert_int_equal(mgrid_family_split(uneven, 1, false, false, &in, &out, anew(&why)),
                   MGRID_REFUSED);
  assert_string_equal(why.message, "a split of a cut family needs explicit lists: call lists() "
                                   "first; its cost grows with the number of ranks");
  assert_int_equal(mgrid_family_split(f, 3, true, true, &in, &out, anew(&why)), MGRID_REFUSED);
  assert_string_equal(why.message,
                      "split(3) of groups of 8: 3 does not divide 8; sizes that do: 1, 2, 4, 8");
  assert_true(!in && !out);
  /* 5 + 3 of both groups: whole groups again */
  mgrid_family *odd = mgrid_family_bundle(uneven, 4, anew(&why));
  assert_int_equal(mgrid_family_count(odd), 1);
  mgrid_family *all[] = { f, ring, uneven, odd };
  for (size_t i = 0; i < 4; i++) mgrid_family_free(all[i]);
}

/* Every rank's segments of every group, asked of handles, are those of the family of segments. */
static void test_group_segments(void **unused) {
  (void)unused;
  for (uint64_t seed = first_seed(); seed < first_seed() + 100; seed++) {
    rng r = rng_new(seed);
    drawn d = draw_grid(&r, 40);
    drawn_along a = draw_along(&r, &d);
    mgrid_family *f = mgrid_grid_along_by(d.grid, a.nin, a.in_name, a.nix, a.ix_name, anew(&why));
    int64_t sizes[8], world = d.window.world;
    size_t n = draw_sizes(&r, mgrid_family_max_size(f), sizes);
    lists l = lists_of(f);
    mgrid_topology *t = mgrid_topology_new(world, anew(&why));
    mgrid_topology_add(t, "f", f, NULL, &why);
    mgrid_plan *p = mgrid_plan_new(t, &why);
    lists_replace(&l, lists_segments(&l, n, sizes));
    if (rng_chance(&r, 50)) sizes[rng_between(&r, 0, (int64_t)n - 1)] = MGRID_FILL;
    for (int64_t rank = 0; rank < world; rank++) {
      mgrid_backend *b = mgrid_backend_dry(world, rank, &why);
      mgrid_state *s = mgrid_materialize(p, b, NULL, &why);
      const mgrid_group *g = mgrid_state_group(s, "f", &why);
      mgrid_segment at = MGRID_SEGMENT_INIT;
      check(&r, mgrid_group_segment(g, n, sizes, &at, &why) == (g ? MGRID_OK : MGRID_USAGE)
                    && !why.status);
      if (g) {
        int64_t group = mgrid_group_index(g) * (int64_t)n + at.index, last = at.members - 1;
        const int64_t *want = lists_group(&l, group);
        check(&r, at.members == lists_size(&l, group) && want[at.position] == rank);
        for (int64_t i = 0; i <= last; i++) check(&r, mgrid_group_at(g, at.start + i) == want[i]);
        check(&r, at.first == want[0] && at.last == want[last]);
        check(&r, at.next == want[at.position == last ? 0 : at.position + 1]);
        check(&r, at.prev == want[at.position == 0 ? last : at.position - 1]);
      }
      mgrid_state_free(s);
      mgrid_backend_free(b);
    }
    mgrid_plan_free(p);
    mgrid_topology_free(t);
    mgrid_family_free(f);
    mgrid_grid_free(d.grid);
    lists_free(&l);
  }
}

static void test_refused_group_segments(void **unused) {
  (void)unused;
  mgrid_family *f = eights();
  mgrid_topology *t = mgrid_topology_new(16, anew(&why));
  mgrid_topology_add(t, "f", f, NULL, &why);
  mgrid_plan *p = mgrid_plan_new(t, &why);
  mgrid_backend *b = mgrid_backend_dry(16, 9, &why);
  mgrid_state *s = mgrid_materialize(p, b, NULL, &why);
  const mgrid_group *g = mgrid_state_group(s, "f", &why);
  mgrid_segment at = MGRID_SEGMENT_INIT, was = at;
  const int64_t good[] = { 5, 3 };
  assert_int_equal(why.status, MGRID_OK);
#define ASKED(status, text, n, ...) \
  assert_int_equal(mgrid_group_segment(g, n, (const int64_t[]){ __VA_ARGS__ }, &at, anew(&why)), \
                   status); \
  assert_string_equal(why.message, text); \
  assert_memory_equal(&at, &was, sizeof at)
  ASKED(MGRID_REFUSED, "segments: give sizes with the sum 8, the group size", 0, 0);
  ASKED(MGRID_REFUSED, "segments: the sizes sum to 7, the groups have 8; a last size of 4 fits", 2,
        4, 3);
  ASKED(MGRID_OUT_OF_RANGE, "segments: size 0 of segment 0; sizes are 1 to 8", 2, 0, 8);
  ASKED(MGRID_DUPLICATE, "segments: two sizes are fill; only one can be", 2, MGRID_FILL,
        MGRID_FILL);
  assert_int_equal(mgrid_group_segment(NULL, 2, good, &at, anew(&why)), MGRID_USAGE);
  assert_int_equal(why.status, MGRID_OK);
  at.size = 0;
  assert_int_equal(mgrid_group_segment(g, 2, good, &at, anew(&why)), MGRID_BAD_STRUCT);
  /* of an older header: the fields behind it are not written */
  at.size = offsetof(mgrid_segment, first);
  assert_int_equal(mgrid_group_segment(g, 2, good, &at, anew(&why)), MGRID_OK);
  assert_true(at.index == 0 && at.members == 5 && at.position == 1 && at.first == -1
              && at.prev == -1);
  mgrid_state_free(s);
  mgrid_backend_free(b);
  mgrid_plan_free(p);
  mgrid_topology_free(t);
  mgrid_family_free(f);
}

/* ------------------------------------------------------------------ renumber */

/* Orders that step through the dims keep the rule; any other is lists. */
static void test_renumber(void **unused) {
  (void)unused;
  int ruled = 0;
  for (uint64_t seed = first_seed(); seed < first_seed() + CASES; seed++) {
    rng r = rng_new(seed);
    int64_t size = rng_between(&r, 1, 6), x = rng_between(&r, 1, 6), y = rng_between(&r, 1, 6),
            order[36];
    mgrid_dim dims[] = { { "a", size }, { "x", x }, { "y", y } };
    const char *a = "a";
    mgrid_grid *g = mgrid_grid_new(mgrid_world(size * x * y), 3, dims, anew(&why));
    mgrid_family *f = mgrid_grid_along(g, 1, &a, MGRID_GRID_ORDER, anew(&why));
    lists l = lists_of(f);
    for (int64_t i = 0; i < x * y; i++) order[i] = i / y + i % y * x; /* y varies first */
    mgrid_family *by_y = mgrid_family_renumber(f, (size_t)(x * y), order, anew(&why));
    mgrid_family *zipped[2] = { mgrid_family_pick(f, 1, (int64_t[]){ -1 }, anew(&why)), NULL },
                 *z = NULL;
    lists want = lists_renumber(&l, order);
    lists_check(&r, by_y, &want);
    check(&r, by_y->form == &mgrid_strided_form);
    if (size > 1) { /* part by part */
      zipped[1] = mgrid_family_pick(f, 1, (int64_t[]){ 0 }, anew(&why));
      mgrid_family *both =
          mgrid_family_zip(2, (const mgrid_family *const *)zipped, false, anew(&why));
      z = mgrid_family_renumber(both, (size_t)(x * y), order, anew(&why));
      check(&r, z && z->form == &mgrid_zip_form);
      lists_replace(&want, lists_pick(&want, 2, (int64_t[]){ -1, 0 }));
      lists_check(&r, z, &want);
      mgrid_family_free(both);
    }
    mgrid_family *any = draw_order(&r, f, &l);
    lists_check(&r, any, &l);
    check(&r, any->form == &mgrid_strided_form || any->form == &mgrid_table_form);
    ruled += any->form == &mgrid_strided_form;
    mgrid_family *all[] = { f, by_y, zipped[0], zipped[1], z, any };
    for (size_t i = 0; i < 6; i++) mgrid_family_free(all[i]);
    mgrid_grid_free(g);
    lists_free(&want);
    lists_free(&l);
  }
  assert_true(ruled > 100);
}

static void test_refused_renumber(void **unused) {
  (void)unused;
  mgrid_family *f = eights(), *ring = mgrid_family_neighbours(f, 7, true, anew(&why));
#define RENUMBER(status, text, ...) \
  REFUSED(mgrid_family_renumber(f, sizeof((int64_t[]){ __VA_ARGS__ }) / sizeof(int64_t), \
                                (int64_t[]){ __VA_ARGS__ }, anew(&why)), \
          status, text)
  RENUMBER(MGRID_REFUSED, "renumber: the list names 1, but there are 2 groups", 0);
  RENUMBER(MGRID_REFUSED, "renumber: the list names 3, but there are 2 groups", 0, 1, 2);
  RENUMBER(MGRID_OUT_OF_RANGE, "renumber: group 2 is out of range (0 to 1)", 2, 0);
  RENUMBER(MGRID_OUT_OF_RANGE, "renumber: group -1 is out of range (0 to 1)", 0, -1);
  RENUMBER(MGRID_DUPLICATE, "renumber: group 1 is listed twice", 1, 1);
  assert_null(mgrid_family_renumber(NULL, 0, NULL, anew(&why)));
  assert_int_equal(why.status, MGRID_OK);
  int64_t order[16]; /* a cover keeps its groups that share ranks */
  for (int64_t i = 0; i < 16; i++) order[i] = 15 - i;
  mgrid_family *back = mgrid_family_renumber(ring, 16, order, anew(&why));
  assert_int_equal(mgrid_family_coverage(back), MGRID_COVER);
  assert_int_equal(mgrid_family_rank(back, 0, 0), 15);
  mgrid_family *all[] = { f, ring, back };
  for (size_t i = 0; i < 3; i++) mgrid_family_free(all[i]);
}

int main(int argc, char **argv) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_split_rows),
    cmocka_unit_test(test_cuts_of_picks),
    cmocka_unit_test(test_picks_of_segments),
    cmocka_unit_test(test_large_segments),
    cmocka_unit_test(test_refused_segments),
    cmocka_unit_test(test_renumber),
    cmocka_unit_test(test_refused_renumber),
    cmocka_unit_test(test_group_segments),
    cmocka_unit_test(test_refused_group_segments),
  };
  return run_program("pieces", tests, argc, argv);
}
