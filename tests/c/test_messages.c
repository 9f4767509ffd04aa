/* SPDX-License-Identifier: MIT
**
** test_messages.c - every refusal of the algebra with its message whole: one line that names
** the thing, what was expected, and the nearest that would be accepted.
*/
#include "lists.h"

#include "families/family.h"

static mgrid_error why = MGRID_ERROR_INIT; /* of the last call */

/* The call gives NULL (a constructor) and the error is exactly this one. */
#define REFUSED(call, text) \
  do { \
    mgrid_error_clear(&why); \
    assert_null(call); \
    assert_string_equal(why.message, text); \
    assert_int_equal(why.status / 100, MGRID_REFUSED / 100); \
    assert_null(strchr(why.message, '\n')); \
  } while (0)

/* The same for calls that return a status. */
#define REFUSED_STATUS(call, text) \
  do { \
    mgrid_error_clear(&why); \
    assert_int_equal(call / 100, MGRID_REFUSED / 100); \
    assert_string_equal(why.message, text); \
    assert_int_equal(why.status / 100, MGRID_REFUSED / 100); \
  } while (0)

#define GRID(window, ...) \
  mgrid_grid_new(window, sizeof((mgrid_dim[]){ __VA_ARGS__ }) / sizeof(mgrid_dim), \
                 (mgrid_dim[]){ __VA_ARGS__ }, anew(&why))

/* ------------------------------------------------------------ windows, grids */

static void test_window(void **unused) {
  (void)unused;
  mgrid_dim dim = { "a", MGRID_FILL };
  static const struct {
    mgrid_window w;
    const char *text;
  } bad[] = {
    { { 0, 0, 0 }, "a world has 1 to 2147483647 ranks, not 0" },
    { { -4, 0, 1 }, "a world has 1 to 2147483647 ranks, not -4" },
    { { INT64_C(2147483648), 0, 1 }, "a world has 1 to 2147483647 ranks, not 2147483648" },
    { { INT64_MIN, 0, 1 }, "a world has 1 to 2147483647 ranks, not -9223372036854775808" },
    { { 8, 8, 1 }, "window offset 8 is outside the world (0 to 7)" },
    { { 8, -1, 1 }, "window offset -1 is outside the world (0 to 7)" },
    { { 8, INT64_MAX, 1 }, "window offset 9223372036854775807 is outside the world (0 to 7)" },
    { { 8, 2, 7 }, "a window from rank 2 of 8 has 1 to 6 ranks, not 7" },
    { { 8, 2, 0 }, "a window from rank 2 of 8 has 1 to 6 ranks, not 0" },
    { { 8, 7, INT64_MAX }, "a window from rank 7 of 8 has 1 to 1 ranks, not 9223372036854775807" },
  };
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
    REFUSED(mgrid_grid_new(bad[i].w, 1, &dim, anew(&why)), bad[i].text);
}

static void test_grid_sizes(void **unused) {
  (void)unused;
  mgrid_window w8 = mgrid_world(8), w12 = mgrid_world(12);
  REFUSED(GRID(w8, { "tp", 3 }, { "dp", MGRID_FILL }),
          "tp 3 does not divide the 8 ranks; nearest: tp 2 or 4, or a world of 6 or 9 ranks");
  REFUSED(GRID(w8, { "tp", 16 }, { "dp", MGRID_FILL }),
          "tp 16 does not divide the 8 ranks; nearest: tp 8, or a world of 16 ranks");
  REFUSED(GRID(w12, { "tp", 2 }, { "pp", 4 }, { "dp", MGRID_FILL }),
          "tp 2 x pp 4 = 8 does not divide the 12 ranks; nearest: tp 1 or 3, or a world of 8 or 16 "
          "ranks");
  REFUSED(GRID(w12, { "tp", 5 }, { "pp", 7 }, { "dp", MGRID_FILL }),
          "tp 5 x pp 7 = 35 does not divide the 12 ranks; nearest: a world of 35 ranks");
  REFUSED(GRID(w12, { "tp", 5 }, { "cp", 1 }, { "pp", 6 }, { "dp", MGRID_FILL }),
          "tp 5 x pp 6 = 30 does not divide the 12 ranks; nearest: tp 2, or a world of 30 ranks");
  REFUSED(GRID(w8, { "tp", 2 }, { "dp", 2 }),
          "tp 2 x dp 2 = 4 does not make the 8 ranks; nearest: tp 4, or a world of 4 ranks");
  REFUSED(GRID(w8, { "tp", 3 }, { "dp", 3 }),
          "tp 3 x dp 3 = 9 does not make the 8 ranks; nearest: a world of 9 ranks");
  REFUSED(GRID(w8, { "tp", 3 }, { "dp", 2 }),
          "tp 3 x dp 2 = 6 does not make the 8 ranks; nearest: tp 4, or a world of 6 ranks");
  REFUSED(GRID(((mgrid_window){ 8, 2, 6 }), { "tp", 4 }, { "dp", MGRID_FILL }),
          "tp 4 does not divide the 6 ranks of the window; nearest: tp 3 or 6, or a window of 4 or "
          "8 ranks");
  REFUSED(GRID(((mgrid_window){ 8, 2, 6 }), { "tp", 8 }),
          "tp 8 does not make the 6 ranks of the window; nearest: tp 6, or a window of 8 ranks");
  REFUSED(mgrid_grid_new(w8, 0, NULL, anew(&why)),
          "1 does not make the 8 ranks; nearest: a world of 1 ranks");
}

/* A message suggests only possible worlds: none has more than 2^31 - 1 ranks. */
static void test_grid_offers_what_exists(void **unused) {
  (void)unused;
  const int64_t large = INT64_C(2147483647);
  assert_null(GRID(mgrid_world(8), { "a", large }, { "b", large }));
  assert_null(strstr(why.message, " 4611686014132420609 ranks"));
  assert_null(GRID(mgrid_world(8), { "a", large }, { "b", 5 }, { "c", MGRID_FILL }));
  assert_null(strstr(why.message, " 10737418235 ranks"));
  assert_null(GRID(mgrid_world(large), { "a", 2 }, { "b", MGRID_FILL }));
  assert_null(strstr(why.message, " 2147483648 ranks"));
}

static void test_grid_dims(void **unused) {
  (void)unused;
  mgrid_window w = mgrid_world(8);
  const int64_t large = INT64_C(2147483647);
  mgrid_dim many[65];
  char name[65][16];
  REFUSED(GRID(w, { "tp", 0 }), "dim 'tp' has size 0; sizes are 1 to 2147483647");
  REFUSED(GRID(w, { "tp", -2 }), "dim 'tp' has size -2; sizes are 1 to 2147483647");
  REFUSED(GRID(w, { "tp", large + 1 }), "dim 'tp' has size 2147483648; sizes are 1 to 2147483647");
  REFUSED(GRID(w, { "tp", 2 }, { "pp", 2 }, { "tp", 2 }), "dim 'tp' occurs twice in the grid");
  REFUSED(GRID(w, { "tp", MGRID_FILL }, { "pp", 2 }, { "dp", MGRID_FILL }),
          "dims 'tp' and 'dp' are both to be inferred; only one can be");
  REFUSED(GRID(w, { "a", large }, { "b", large }, { "c", large }),
          "the product of the sizes overflows 64 bits at dim 'c'");
  REFUSED(GRID(w, { "a", large }, { "b", large }, { "f", MGRID_FILL }, { "c", 3 }),
          "the product of the sizes overflows 64 bits at dim 'c'");
#define NO_NAME " is not a dim name (a letter or _, then letters, digits or _; at most 31)"
  REFUSED(GRID(w, { "", 8 }), "''" NO_NAME);
  REFUSED(GRID(w, { NULL, 8 }), "''" NO_NAME);
  REFUSED(GRID(w, { "2tp", 8 }), "'2tp'" NO_NAME);
  REFUSED(GRID(w, { "tp-cp", 8 }), "'tp-cp'" NO_NAME);
  REFUSED(GRID(w, { "d\xc3\xa9", 8 }), "'d\xc3\xa9'" NO_NAME);
  REFUSED(GRID(w, { "abcdefghijklmnopqrstuvwxyz_0123456", 8 }),
          "'abcdefghijklmnopqrstuvwxyz_0123456'" NO_NAME);
  for (int i = 0; i < 65; i++) {
    snprintf(name[i], sizeof name[i], "d%d", i);
    many[i] = (mgrid_dim){ name[i], i == 0 ? 8 : 1 };
  }
  REFUSED(mgrid_grid_new(w, 65, many, anew(&why)), "a grid has at most 64 dims, not 65");
  mgrid_grid *g = mgrid_grid_new(w, 64, many, anew(&why));
  assert_non_null(g); /* the border itself is inside */
  mgrid_grid_free(g);
  g = GRID(w, { "abcdefghijklmnopqrstuvwxyz_0123", 8 }); /* 31 letters */
  assert_non_null(g);
  mgrid_grid_free(g);
}

#define NAMES(...) \
  sizeof((const char *[]){ __VA_ARGS__ }) / sizeof(char *), (const char *[]) { __VA_ARGS__ }

static void test_along(void **unused) {
  (void)unused;
  mgrid_grid *g = GRID(mgrid_world(24), { "tp", 2 }, { "cp", 1 }, { "pp", 3 }, { "dp", 4 });
  mgrid_grid *flat = mgrid_grid_new(mgrid_world(1), 0, NULL, anew(&why));
  REFUSED(mgrid_grid_along(g, NAMES("dq"), MGRID_GRID_ORDER, anew(&why)),
          "unknown dim 'dq'; nearest is 'dp' (tp, cp, pp, dp)");
  REFUSED(mgrid_grid_along(g, NAMES("expert"), MGRID_GRID_ORDER, anew(&why)),
          "unknown dim 'expert'; known: tp, cp, pp, dp");
  REFUSED(mgrid_grid_along(g, NAMES(""), MGRID_GRID_ORDER, anew(&why)),
          "unknown dim ''; known: tp, cp, pp, dp");
  REFUSED(mgrid_grid_along(g, NAMES("TPP", "dp"), MGRID_AS_WRITTEN, anew(&why)),
          "unknown dim 'TPP'; nearest is 'tp' (tp, cp, pp, dp)");
  REFUSED(mgrid_grid_along(g, NAMES("tp", "dp", "tp"), MGRID_AS_WRITTEN, anew(&why)),
          "dim 'tp' is named twice");
  REFUSED(mgrid_grid_along(g, NAMES("tp", "cp", "pp", "dp", "ep"), MGRID_GRID_ORDER, anew(&why)),
          "5 dims asked of a grid that has 4");
  REFUSED(mgrid_grid_along(flat, NAMES("tp"), MGRID_GRID_ORDER, anew(&why)),
          "1 dims asked of a grid that has 0");
  REFUSED(mgrid_grid_along_by(g, NAMES("tp"), NAMES("dp"), anew(&why)),
          "dim 'pp' of size 3 is neither inside nor in the index");
  REFUSED(mgrid_grid_along_by(g, NAMES("tp"), NAMES("dp", "pp", "tp"), anew(&why)),
          "dim 'tp' is named twice");
  REFUSED(mgrid_grid_along_by(g, NAMES("tp"), NAMES("dp", "qq"), anew(&why)),
          "unknown dim 'qq'; known: tp, cp, pp, dp");
  REFUSED(mgrid_grid_along_by(g, NAMES("tp", "cp"), NAMES("dp", "pp", "tp"), anew(&why)),
          "2 and 3 dims asked of a grid that has 4");
  mgrid_grid_free(g);
  mgrid_grid_free(flat);
}

/* -------------------------------------------------------------- operations */

static mgrid_family *along(mgrid_window w, size_t n, const mgrid_dim *dims, const char *dim) {
  mgrid_grid *g = mgrid_grid_new(w, n, dims, anew(&why));
  mgrid_family *f = mgrid_grid_along(g, 1, &dim, MGRID_GRID_ORDER, anew(&why));
  assert_non_null(f);
  mgrid_grid_free(g);
  return f;
}

/* 4 groups of 6 neighbours; "a" 6 x "b" 4. */
static mgrid_family *sixes(void) {
  const mgrid_dim dims[] = { { "a", 6 }, { "b", 4 } };
  return along(mgrid_world(24), 2, dims, "a");
}

/* Groups of 12 made of 4 neighbours, three times: (4:1)(3:8). */
static mgrid_family *of_two_modes(void) {
  const mgrid_dim dims[] = { { "a", 4 }, { "b", 2 }, { "c", 3 } };
  const char *in[] = { "a", "c" };
  mgrid_grid *g = mgrid_grid_new(mgrid_world(24), 3, dims, anew(&why));
  mgrid_family *f = mgrid_grid_along(g, 2, in, MGRID_GRID_ORDER, anew(&why));
  assert_non_null(f);
  mgrid_grid_free(g);
  return f;
}

static mgrid_family *ragged(void) { /* {0,1,2} {3,4} {5} */
  static const int64_t starts[] = { 0, 3, 5, 6 };
  static const int64_t ranks[] = { 0, 1, 2, 3, 4, 5 };
  mgrid_family *f =
      mgrid_family_table(mgrid_world(6), 3, starts, ranks, MGRID_PARTITION, anew(&why));
  assert_non_null(f);
  return f;
}

static void test_split(void **unused) {
  (void)unused;
  mgrid_family *f = sixes(), *two = of_two_modes(), *odd = ragged(), *inner = NULL, *outer = NULL;
  mgrid_family *ring = mgrid_family_neighbours(f, 1, true, anew(&why)),
               *listed = mgrid_family_lists(ring, anew(&why));
  const int64_t some[] = { 0, 1, 5, 2 };
  mgrid_family *picked = mgrid_family_pick(f, 4, some, anew(&why));
#define SPLIT(family, k, as_lists, text) \
  REFUSED_STATUS(mgrid_family_split(family, k, as_lists, false, &inner, &outer, anew(&why)), text)
  SPLIT(f, 0, false, "split(0): the size is 1 or more");
  SPLIT(f, -3, true, "split(-3): the size is 1 or more");
  SPLIT(f, 4, false, "split(4) of groups of 6: 4 does not divide 6; sizes that do: 1, 2, 3, 6");
  SPLIT(f, 7, false, "split(7) of groups of 6: 7 does not divide 6; sizes that do: 1, 2, 3, 6");
  SPLIT(f, INT64_MAX, false,
        "split(9223372036854775807) of groups of 6: 9223372036854775807 does not divide 6; sizes "
        "that do: 1, 2, 3, 6");
  SPLIT(two, 6, false,
        "split(6) of groups of 12: 6 does not meet mode (4:1) of (4:1)(3:8); sizes that do: 1, 2, "
        "4, 12");
  SPLIT(two, 3, false,
        "split(3) of groups of 12: 3 does not meet mode (4:1) of (4:1)(3:8); sizes that do: 1, 2, "
        "4, 12");
  SPLIT(two, 5, false,
        "split(5) of groups of 12: 5 does not divide 12; sizes that do: 1, 2, 4, 12");
  SPLIT(picked, 3, false, "split(3) of groups of 4: 3 does not divide 4; sizes that do: 1, 2, 4");
  SPLIT(odd, 2, false, "split(2): group 0 has 3 ranks");
  SPLIT(odd, 3, true, "split(3): group 1 has 2 ranks");
  /* a rank is in several groups, so lists would not help: the message must not suggest them */
  SPLIT(ring, 2, false, "split: the groups share ranks" MGRID_BY_LIST);
  SPLIT(ring, 2, true, "split: the groups share ranks" MGRID_BY_LIST);
  SPLIT(listed, 2, true, "split: the groups share ranks" MGRID_BY_LIST);
  assert_true(!inner && !outer);
  assert_int_equal(mgrid_family_split(NULL, 2, false, false, &inner, &outer, anew(&why)),
                   MGRID_USAGE);
  mgrid_family *all[] = { f, two, odd, ring, listed, picked };
  for (size_t i = 0; i < 6; i++) mgrid_family_free(all[i]);
}

static void test_levels(void **unused) {
  (void)unused;
  mgrid_family *f = sixes(), *two = of_two_modes(), *out[3];
#define LEVELS(family, text, ...) \
  REFUSED_STATUS(mgrid_family_levels(family, sizeof((int64_t[]){ __VA_ARGS__ }) / sizeof(int64_t), \
                                     (int64_t[]){ __VA_ARGS__ }, out, anew(&why)), \
                 text)
  LEVELS(f, "levels: the sizes multiply to 4, the groups have 6; nearest: 2, 3", 2, 2);
  LEVELS(f, "levels: the sizes multiply to 12, the groups have 6; nearest: 2, 3, 1", 2, 3, 2);
  LEVELS(f, "levels: size 0 of level 1 does not fit", 6, 0);
  LEVELS(f, "levels: size -6 of level 0 does not fit", -6, -1);
  LEVELS(f, "levels: size 9223372036854775807 of level 1 does not fit", 2, INT64_MAX);
  LEVELS(two,
         "split(6) of groups of 12: 6 does not meet mode (4:1) of (4:1)(3:8); sizes that do: 1, 2, "
         "4, 12",
         6, 2);
  LEVELS(two,
         "split(6) of groups of 12: 6 does not meet mode (4:1) of (4:1)(3:8); sizes that do: 1, 2, "
         "4, 12",
         2, 3, 2);
  mgrid_family_free(f);
  mgrid_family_free(two);
}

static int64_t too_many(void *ud, int64_t size, int64_t *positions, int64_t cap, mgrid_error *err) {
  (void)ud, (void)size, (void)positions, (void)err;
  return cap + 1;
}

static int64_t complains(void *ud, int64_t size, int64_t *positions, int64_t cap,
                         mgrid_error *err) {
  (void)positions, (void)cap;
  err->status = MGRID_REFUSED;
  snprintf(err->message, sizeof err->message, "%s %" PRId64, (const char *)ud, size);
  return -1;
}

static void test_pick(void **unused) {
  (void)unused;
  mgrid_family *f = sixes(), *odd = ragged(),
               *ring = mgrid_family_neighbours(f, 1, true, anew(&why));
  char word[] = "no position in groups of";
#define PICK(family, text, ...) \
  REFUSED(mgrid_family_pick(family, sizeof((int64_t[]){ __VA_ARGS__ }) / sizeof(int64_t), \
                            (int64_t[]){ __VA_ARGS__ }, &why), \
          text)
  PICK(f, "pick of position 6: groups of 6 have positions 0 to 5, or -1 to -6 from the end", 0, 6);
  PICK(f, "pick of position -7: groups of 6 have positions 0 to 5, or -1 to -6 from the end", -7);
  PICK(f,
       "pick of position -9223372036854775808: groups of 6 have positions 0 to 5, or -1 to -6 from "
       "the end",
       INT64_MIN);
  PICK(odd, "pick of position 2: groups of 2 have positions 0 to 1, or -1 to -2 from the end", 2);
  PICK(ring,
       "a pick of a neighbours family needs explicit lists: call lists() first; its cost grows "
       "with the number of ranks",
       0);
  REFUSED(mgrid_family_pick(f, 0, NULL, anew(&why)),
          "pick: name at least one position of groups of 6");
  REFUSED(mgrid_family_pick(odd, 0, NULL, anew(&why)),
          "pick: name at least one position of groups of 3");
  REFUSED(mgrid_family_pick_by(f, complains, word, anew(&why)), "no position in groups of 6");
  REFUSED(mgrid_family_pick_by(odd, complains, word, anew(&why)), "no position in groups of 3");
  REFUSED(mgrid_family_pick_by(f, too_many, NULL, anew(&why)),
          "pick: 29 positions of groups of 6; name at most 28");
  mgrid_family_free(f);
  mgrid_family_free(odd);
  mgrid_family_free(ring);
}

static void test_without(void **unused) {
  (void)unused;
  mgrid_family *f = sixes(), *odd = ragged();
  const int64_t high[] = { 0, 24 }, low[] = { -1 };
  REFUSED(mgrid_family_without(f, 2, high, anew(&why)),
          "without: rank 24 is out of range; ranks are 0 to 23");
  REFUSED(mgrid_family_without(odd, 1, low, anew(&why)),
          "without: rank -1 is out of range; ranks are 0 to 5");
  mgrid_family_free(f);
  mgrid_family_free(odd);
}

static void test_bundle_neighbours(void **unused) {
  (void)unused;
  mgrid_family *f = sixes(), *two = of_two_modes(), *odd = ragged(),
               *ring = mgrid_family_neighbours(f, 1, true, anew(&why));
  const mgrid_dim dims[] = { { "a", 2 }, { "b", 2 }, { "c", 3 } };
  mgrid_family *across = along(mgrid_world(12), 3, dims, "b"); /* index (2:1)(3:4) */
  REFUSED(mgrid_family_bundle(f, 0, anew(&why)), "bundle(0): the number of groups is 1 or more");
  REFUSED(mgrid_family_bundle(f, -1, anew(&why)), "bundle(-1): the number of groups is 1 or more");
  REFUSED(mgrid_family_bundle(f, 3, anew(&why)),
          "bundle(3): the number of groups, 4, is not a multiple of it; nearest: 2 or 4");
  REFUSED(mgrid_family_bundle(f, 5, anew(&why)),
          "bundle(5): the number of groups, 4, is not a multiple of it; nearest: 4");
  REFUSED(mgrid_family_bundle(odd, 2, anew(&why)),
          "bundle(2): the number of groups, 3, is not a multiple of it; nearest: 1 or 3");
  REFUSED(mgrid_family_bundle(across, 3, anew(&why)),
          "bundle(3): 3 does not meet index mode (2:1); call lists() first");
  REFUSED(mgrid_family_bundle(ring, 2, anew(&why)), "bundle: the groups share ranks" MGRID_BY_LIST);
  REFUSED(mgrid_family_neighbours(f, 0, false, anew(&why)),
          "neighbours(0): the step is 1 to 5 in groups of 6");
  REFUSED(mgrid_family_neighbours(f, 6, true, anew(&why)),
          "neighbours(6): the step is 1 to 5 in groups of 6");
  REFUSED(mgrid_family_neighbours(f, -1, true, anew(&why)),
          "neighbours(-1): the step is 1 to 5 in groups of 6");
  REFUSED(mgrid_family_neighbours(odd, 3, false, anew(&why)),
          "neighbours(3): the step is 1 to 2 in groups of 3");
  REFUSED(mgrid_family_neighbours(odd, 2, false, anew(&why)), "neighbours(2): group 1 has 2 ranks");
  REFUSED(mgrid_family_neighbours(ring, 1, false, anew(&why)),
          "neighbours: the groups share ranks already" MGRID_BY_LIST);
  mgrid_family *all[] = { f, two, odd, ring, across };
  for (size_t i = 0; i < 5; i++) mgrid_family_free(all[i]);
}

static mgrid_family *zip(size_t n, const mgrid_family *const *families, mgrid_error *err) {
  return mgrid_family_zip(n, families, false, err);
}

static void test_union_zip(void **unused) {
  (void)unused;
  const mgrid_dim pair[] = { { "a", 2 }, { "b", MGRID_FILL } };
  mgrid_family *f = sixes(), *odd = ragged(),
               *low = along((mgrid_window){ 24, 0, 8 }, 2, pair, "a");
  mgrid_family *high = along((mgrid_window){ 24, 8, 16 }, 2, pair, "a"),
               *ring = mgrid_family_neighbours(f, 1, true, anew(&why));
#define JOIN(what, text, ...) \
  REFUSED(what(sizeof((const mgrid_family *[]){ __VA_ARGS__ }) / sizeof(mgrid_family *), \
               (const mgrid_family *[]){ __VA_ARGS__ }, &why), \
          text)
  JOIN(mgrid_family_union, "union: families of worlds of 24 and 6 ranks", f, odd);
  JOIN(zip, "zip: families of worlds of 24 and 6 ranks", f, odd);
  JOIN(mgrid_family_closure, "closure: families of worlds of 24 and 6 ranks", f, odd);
  JOIN(mgrid_family_union, "union: rank 0 is in families 1 and 2" MGRID_BY_LIST, f, low);
  JOIN(mgrid_family_union, "union: rank 8 is in families 2 and 3" MGRID_BY_LIST, low, high, high);
  JOIN(zip, "zip: rank 0 is in families 1 and 2" MGRID_BY_LIST, f, f);
  JOIN(zip,
       "zip: 4 groups and 8 groups; the numbers must be equal (bundle, split or spread one side)",
       low, high);
  JOIN(zip, "zip: the groups of a family share ranks" MGRID_BY_LIST, ring);
  memset(&why, 0, sizeof why);
  assert_null(mgrid_family_union(0, NULL, anew(&why)));
  assert_string_equal(why.message, "a union of no families");
  assert_null(mgrid_family_zip(0, NULL, false, anew(&why)));
  assert_string_equal(why.message, "a zip of no families");
  assert_null(mgrid_family_closure(0, NULL, anew(&why)));
  assert_string_equal(why.message, "a closure of no families");
  mgrid_family *all[] = { f, odd, low, high, ring };
  for (size_t i = 0; i < 5; i++) mgrid_family_free(all[i]);
}

/* --------------------------------------------------------------- table, map */

static void test_table(void **unused) {
  (void)unused;
  mgrid_window w = mgrid_world(6), part = { 8, 2, 4 };
  const int64_t two[] = { 0, 2, 4 }, empty[] = { 0, 2, 2 };
#define TABLE(window, n, starts, declared, text, ...) \
  REFUSED(mgrid_family_table(window, n, starts, (int64_t[]){ __VA_ARGS__ }, declared, anew(&why)), \
          text)
  TABLE(w, 2, two, MGRID_PARTIAL, "rank 6 of group 1 is out of range; ranks are 0 to 5", 0, 1, 2,
        6);
  TABLE(w, 2, two, MGRID_PARTIAL, "rank -1 of group 0 is out of range; ranks are 0 to 5", 0, -1, 2,
        3);
  TABLE(part, 2, two, MGRID_PARTIAL, "rank 1 of group 1 is out of range; ranks are 2 to 5", 2, 3, 1,
        4);
  TABLE(part, 2, two, MGRID_COVER, "rank 6 of group 1 is out of range; ranks are 2 to 5", 2, 3, 4,
        6);
  TABLE(w, 2, empty, MGRID_PARTIAL, "group 1 of the table is empty", 0, 1);
  TABLE(w, 2, two, MGRID_PARTIAL, "rank 2 occurs twice in group 1 of the table", 0, 1, 2, 2);
  TABLE(w, 2, two, MGRID_COVER, "rank 2 occurs twice in group 1 of the table", 0, 1, 2, 2);
  TABLE(w, 2, two, MGRID_PARTIAL,
        "rank 1 is in groups 0 and 1 of the table; declare a 'cover' if that is meant", 0, 1, 1, 2);
  TABLE(w, 2, two, MGRID_PARTITION,
        "rank 0 is in groups 0 and 1 of the table; declare a 'cover' if that is meant", 0, 1, 0, 2);
  TABLE(w, 2, two, MGRID_PARTITION,
        "rank 4 is in no group of the table; declare it 'partial' if that is meant", 0, 1, 2, 3);
  TABLE(w, 2, two, MGRID_PARTITION,
        "rank 0 is in no group of the table; declare it 'partial' if that is meant", 5, 1, 2, 3);
  TABLE(part, 1, two, MGRID_PARTITION,
        "rank 3 is in no group of the table; declare it 'partial' if that is meant", 2, 5);
  TABLE(w, 0, two, MGRID_PARTIAL, "a table has one group or more", 0);
  TABLE(w, -1, two, MGRID_PARTIAL, "a table has one group or more", 0);
  TABLE(((mgrid_window){ 4, 2, 3 }), 1, two, MGRID_PARTIAL,
        "the table's window does not fit its world", 0, 1);
  TABLE(((mgrid_window){ 0, 0, 0 }), 1, two, MGRID_PARTIAL,
        "the table's window does not fit its world", 0, 1);
}

/* Starts that do not ascend, or do not begin at 0, are refused before a list is read. */
static void test_table_starts(void **unused) {
  (void)unused;
  const int64_t shifted[] = { 1, 3 }, back[] = { 0, 3, 2 };
  const int64_t ranks[] = { 0, 1, 2 };
  assert_null(mgrid_family_table(mgrid_world(6), 2, back, ranks, MGRID_PARTIAL, anew(&why)));
  assert_null(mgrid_family_table(mgrid_world(6), 1, shifted, ranks, MGRID_PARTIAL, anew(&why)));
}

static int64_t constant(void *ud, int64_t group, int64_t *ranks, int64_t n, int64_t cap,
                        mgrid_error *err) {
  (void)group, (void)n, (void)cap, (void)err;
  memcpy(ranks, ud, 2 * sizeof *ranks);
  return 2;
}

static int64_t count_only(void *ud, int64_t group, int64_t *ranks, int64_t n, int64_t cap,
                          mgrid_error *err) {
  (void)ranks, (void)n, (void)cap;
  int64_t count = *(int64_t *)ud;
  if (count < 0) {
    snprintf(err->message, sizeof err->message, "stopped at group %" PRId64, group);
    err->status = MGRID_REFUSED;
  }
  return count;
}

static void test_map(void **unused) {
  (void)unused;
  mgrid_family *f = sixes();
  int64_t twice[] = { 3, 3 }, outside[] = { 24, 0 }, shared[] = { 4, 5 };
  int64_t none = 0, stop = -1, many = 1025;
  REFUSED(mgrid_family_map(f, constant, twice, anew(&why)),
          "rank 3 occurs twice in group 0 of the table");
  REFUSED(mgrid_family_map(f, constant, outside, anew(&why)),
          "rank 24 of group 0 is out of range; ranks are 0 to 23");
  REFUSED(mgrid_family_map(f, count_only, &none, anew(&why)), "group 0 of the table is empty");
  REFUSED(mgrid_family_map(f, count_only, &stop, anew(&why)), "stopped at group 0");
  REFUSED(mgrid_family_map(f, count_only, &many, anew(&why)),
          "map: group 0 got 1025 ranks; at most 1024");
  /* a map cannot declare a coverage: the message must not suggest it */
  assert_null(mgrid_family_map(f, constant, shared, anew(&why)));
  assert_null(strstr(why.message, "declare"));
  mgrid_family_free(f);
}

/* A constructor given the NULL of a failed one leaves the error alone: the caller sees the first
** one. */
static void test_chained_failures(void **unused) {
  (void)unused;
  const mgrid_dim dim = { "tp", 3 };
  const char *tp = "tp";
  const int64_t zero = 0;
  mgrid_grid *g = mgrid_grid_new(mgrid_world(8), 1, &dim, anew(&why));
  mgrid_family *f = mgrid_grid_along(g, 1, &tp, MGRID_GRID_ORDER, &why);
  const mgrid_family *pair[] = { f, f };
  assert_null(mgrid_grid_along_by(g, 1, &tp, 0, NULL, &why));
  assert_null(mgrid_family_pick(f, 1, &zero, &why));
  assert_null(mgrid_family_bundle(f, 2, &why));
  assert_null(mgrid_family_neighbours(f, 1, false, &why));
  assert_null(mgrid_family_union(2, pair, &why));
  assert_null(mgrid_family_zip(2, pair, false, &why));
  assert_null(mgrid_family_lists(f, &why));
  assert_null(mgrid_family_map(f, constant, NULL, &why));
  assert_null(mgrid_family_twin(f, &why));
  assert_int_equal(mgrid_family_split(f, 2, true, false, NULL, NULL, &why), MGRID_USAGE);
  assert_int_equal(mgrid_family_levels(f, 0, NULL, NULL, &why), MGRID_USAGE);
  assert_string_equal(why.message,
                      "tp 3 does not make the 8 ranks; nearest: tp 8, or a world of 3 ranks");
}

int main(int argc, char **argv) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_window),
    cmocka_unit_test(test_grid_sizes),
    cmocka_unit_test(test_grid_offers_what_exists),
    cmocka_unit_test(test_grid_dims),
    cmocka_unit_test(test_along),
    cmocka_unit_test(test_split),
    cmocka_unit_test(test_levels),
    cmocka_unit_test(test_pick),
    cmocka_unit_test(test_without),
    cmocka_unit_test(test_bundle_neighbours),
    cmocka_unit_test(test_union_zip),
    cmocka_unit_test(test_table),
    cmocka_unit_test(test_map),
    cmocka_unit_test(test_chained_failures),
    cmocka_unit_test(test_table_starts),
  };
  return run_program("messages", tests, argc, argv);
}
