/* SPDX-License-Identifier: MIT
**
** test_modes.c - families by their modes: compared with lists, their notations, and what is
** refused.
*/
#include "asserted.h"
#include "lists.h"

#include "families/family.h"

enum { CASES = 3000 };

static mgrid_error why;

/* The offsets of modes, walked as an odometer. */
static lists lists_modes(int64_t offset, size_t nin, const mgrid_mode *in, size_t nix,
                         const mgrid_mode *ix) {
  mgrid_mode all[8];
  int64_t digit[8] = { 0 }, size = 1;
  size_t n = 0, i = 0;
  lists l = lists_new();
  for (size_t k = 0; k < nin; k++) all[n++] = in[k], size *= in[k].size;
  for (size_t k = 0; k < nix; k++) all[n++] = ix[k];
  do {
    int64_t rank = offset;
    for (size_t k = 0; k < n; k++) rank += digit[k] * all[k].stride;
    lists_add(&l, rank);
    if (l.total % size == 0) lists_close(&l);
    for (i = 0; i < n && ++digit[i] == all[i].size; i++) digit[i] = 0;
  } while (i < n);
  return l;
}

/* Any modes: made exactly where no rank is in two places and all are in the world; read back from
** their text. */
static void test_modes(void **unused) {
  (void)unused;
  int strided = 0, listed = 0, refused = 0;
  for (uint64_t seed = first_seed(); seed < first_seed() + 4 * CASES; seed++) {
    rng r = rng_new(seed);
    mgrid_mode mode[2][3];
    size_t n[2] = { (size_t)rng_between(&r, 0, 3), (size_t)rng_between(&r, 0, 2) };
    int64_t offset = rng_chance(&r, 50) ? 0 : rng_between(&r, 0, 9), world = 200;
    /* strides that fit: products of the sizes before, with gaps */
    bool regular = rng_chance(&r, 60);
    int64_t product = 1, strides[] = { 1, 2, 3, 4, 6, 8, 12, 16, 24, 32 };
    for (int side = 0; side < 2; side++)
      for (size_t i = 0; i < n[side]; i++) {
        int64_t size = rng_between(&r, 1, 4);
        mode[side][i] = (mgrid_mode){ size, regular ? product : strides[rng_between(&r, 0, 9)] };
        product *= size * (rng_chance(&r, 20) ? 2 : 1);
      }
    lists l = lists_modes(offset, n[0], mode[0], n[1], mode[1]);
    int64_t highest = 0;
    for (int64_t i = 0; i < l.total; i++)
      if (l.ranks[i] > highest) highest = l.ranks[i];
    bool fits = highest < world && !lists_overlap(&l, highest + 1);
    mgrid_family *f =
        mgrid_family_modes(mgrid_world(world), offset, n[0], mode[0], n[1], mode[1], anew(&why));
    check(&r, fits == (f != NULL));
    if (f) {
      char text[512];
      lists_check(&r, f, &l);
      strided += f->form == &mgrid_strided_form, listed += f->form == &mgrid_table_form;
      mgrid_family_describe(f, text, sizeof text);
      mgrid_family *back = f->form == &mgrid_strided_form
                               ? mgrid_family_parse(mgrid_world(world), text, anew(&why))
                               : NULL;
      if (f->form == &mgrid_strided_form) check(&r, back && mgrid_family_equal(f, back));
      mgrid_family_free(back);
    } else {
      check(&r, why.status != MGRID_OK);
      refused++;
    }
    mgrid_family_free(f);
    lists_free(&l);
  }
  assert_true(strided > 3000 && listed > 50 && refused > 1000);
}

static void test_notations(void **unused) {
  (void)unused;
  static const char *const same[][2] = { { "(2:1) x (8:2)", " ( 2 : 1 )x(8:2) " },
                                         { "(2:1) x (4:2) + 8", "2:1 x 4:2 + 8" },
                                         { "(1) x (16:1)", "1:0 x 16:1" },
                                         { "(2:8)(4:1) x (1)", "(2,4):(8,1)" },
                                         { "(2:8)(4:1) x (2:4)", "(2,4):(8,1) x (2):(4)" },
                                         { "(2:1)(2:4)(2:2) x (1)", "((2,2),2):((1,4),2)" },
                                         { "(2:1)(2:4)(2:2) x (1)", "(2,2,2):((1,4),2,)" },
                                         { "(8:1) x (2:8)", "(4,2):(1,4) x (1,2):(0,8)" },
                                         { "(1) x (1) + 15", "(1) + 15" },
                                         { "(8:1) x (1)", "8:1" } };
  for (size_t i = 0; i < sizeof same / sizeof *same; i++) {
    char text[128];
    mgrid_family *f = mgrid_family_parse(mgrid_world(16), same[i][1], anew(&why));
    mgrid_family_describe(f, text, sizeof text);
    assert_string_equal(text, same[i][0]);
    mgrid_family_free(f);
  }
}

static void test_refused_modes(void **unused) {
  (void)unused;
  mgrid_window w = mgrid_world(16), window = { 16, 8, 8 };
#define PARSE(status, text, message) \
  REFUSED(mgrid_family_parse(w, text, anew(&why)), status, message)
  PARSE(MGRID_BAD_VALUE, "", "layout '' ends where a number is expected");
  PARSE(MGRID_BAD_VALUE, "x", "layout 'x', character 1: a number expected, not 'x'");
  PARSE(MGRID_BAD_VALUE, "(2:1 x (4:2)",
        "layout '(2:1 x (4:2)', character 6: ')' expected, not 'x (4:2)'");
  PARSE(MGRID_BAD_VALUE, "(2:1) x", "layout '(2:1) x' ends where a number is expected");
  PARSE(MGRID_BAD_VALUE, "(2:1) x (4:2) +",
        "layout '(2:1) x (4:2) +' ends where a number is expected");
  PARSE(MGRID_BAD_VALUE, "(2:1) x (4:2) + -1",
        "layout '(2:1) x (4:2) + -1', character 17: a number expected, not '-1'");
  PARSE(MGRID_BAD_VALUE, "(2:1) y",
        "layout '(2:1) y', character 7: 'x', '+' or the end expected, not 'y'");
  PARSE(MGRID_BAD_VALUE, "(2)", "layout '(2)', character 3: ':' expected, not ')'");
  PARSE(MGRID_BAD_VALUE, "2", "layout '2' ends where ':' and the strides is expected");
  PARSE(MGRID_BAD_VALUE, "(2,4:(1,2)",
        "layout '(2,4:(1,2)', character 5: ',' or ')' expected, not ':(1,2)'");
  PARSE(MGRID_BAD_VALUE, "3:1:2",
        "layout '3:1:2', character 4: 'x', '+' or the end expected, not ':2'");
  PARSE(MGRID_BAD_VALUE, "99999999999999999999:1",
        "layout '99999999999999999999:1', character 19: a smaller number expected, not '99:1'");
  PARSE(MGRID_REFUSED, "(2,4):(8)", "layout '(2,4):(8)': 2 sizes and 1 strides in '(2,4):(8)'");
  PARSE(MGRID_OUT_OF_RANGE, "(0:1)", "mode (0:1) has size 0; sizes are 1 to 2147483647");
  PARSE(MGRID_OUT_OF_RANGE, "(2:0)", "mode (2:0) has stride 0; strides are 1 to 2147483647");
  PARSE(MGRID_OUT_OF_RANGE, "(2,2):(1,0)", "mode 2:0 has stride 0; strides are 1 to 2147483647");
  PARSE(MGRID_OVERFLOW, "(65536:1)(65536:65536)",
        "mode (65536:65536) makes the modes larger than any world");
  PARSE(MGRID_OUT_OF_RANGE, "(2:1) x (16:2)",
        "modes (2:1) x (16:2): rank 31 is out of range; ranks are 0 to 15");
  PARSE(MGRID_OUT_OF_RANGE, "(2:1) x (4:2) + 16",
        "modes (2:1) x (4:2): offset 16 is out of range; ranks are 0 to 15");
  PARSE(MGRID_REFUSED, "(2:1) x (2:1)", "modes (2:1) x (2:1) overlap: 4 members, but only 3 ranks");
  PARSE(MGRID_REFUSED, "(2:4) x (3:2)",
        "modes (2:4) x (3:2) overlap: rank 4 is in groups 0 and 2; groups must be disjoint");
  PARSE(MGRID_DUPLICATE, "(2:4)(3:2)",
        "modes (2:4)(3:2) x (1) overlap: rank 4 occurs twice in group 0 of the table");
  w = window;
  PARSE(MGRID_OUT_OF_RANGE, "(2:1) x (4:2)",
        "modes (2:1) x (4:2): offset 0 is out of range; ranks are 8 to 15");
  const mgrid_mode two = { 2, 1 }, none = { 0, 1 }, still = { 2, 0 }, far = { 2, INT64_MAX };
  w = mgrid_world(16);
  REFUSED(mgrid_family_modes(w, 0, 1, &none, 0, NULL, anew(&why)), MGRID_OUT_OF_RANGE,
          "inside mode 0 has size 0; sizes are 1 to 2147483647");
  REFUSED(mgrid_family_modes(w, 0, 1, &two, 1, &still, anew(&why)), MGRID_OUT_OF_RANGE,
          "index mode 0 has stride 0; strides are 1 to 2147483647");
  REFUSED(mgrid_family_modes(w, 0, 1, &two, 1, &far, anew(&why)), MGRID_OVERFLOW,
          "index mode 0 makes the modes larger than any world");
  REFUSED(mgrid_family_modes(w, -1, 1, &two, 0, NULL, anew(&why)), MGRID_OUT_OF_RANGE,
          "modes (2:1) x (1): offset -1 is out of range; ranks are 0 to 15");
  REFUSED(mgrid_family_modes(mgrid_world(0), 0, 0, NULL, 0, NULL, anew(&why)), MGRID_OUT_OF_RANGE,
          "a world has 1 to 2147483647 ranks, not 0");
}

int main(int argc, char **argv) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_modes),
    cmocka_unit_test(test_notations),
    cmocka_unit_test(test_refused_modes),
  };
  return run_program("modes", tests, argc, argv);
}
