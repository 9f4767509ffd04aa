/* SPDX-License-Identifier: MIT
**
** test_pictures.c - mgrid_plan_draw: pictures of a plan for a program in C, which has no Lua of its
** own.
*/
#include "program.h"

#include "base/base.h"
#include "moongrid_recipe.h"

#include <string.h>

static mgrid_plan *plan_of(const char *recipe, int64_t world, const char *argument) {
  mgrid_error e = MGRID_ERROR_INIT;
  mgrid_runtime *rt = mgrid_runtime_new(NULL, NULL, &e);
  assert_int_equal(mgrid_runtime_load(rt, recipe, NULL, 0, &e), MGRID_OK);
  mgrid_plan *p = mgrid_runtime_plan(rt, world, NULL, 1, &argument, &e);
  assert_int_equal(e.status, MGRID_OK);
  mgrid_runtime_free(rt); /* pictures need no recipe */
  return p;
}

static int collect(void *text, const char *s, size_t len) { return mgrid_text_sink(text, s, len); }

/* Take some pieces, then stop. */
static int stop(void *left, const char *s, size_t len) {
  (void)s, (void)len;
  return --*(int *)left < 0;
}

static void draw(const mgrid_plan *p, const char *how, const char *options, mgrid_text *t) {
  mgrid_error e = MGRID_ERROR_INIT;
  mgrid_text_free(t);
  assert_int_equal(mgrid_plan_draw(p, how, options, collect, t, &e), MGRID_OK);
  assert_int_equal(e.status, MGRID_OK);
}

static void test_pictures(void **unused) {
  (void)unused;
  mgrid_plan *p = plan_of("picotron", 8, "tp=2");
  mgrid_text t = { 0 };
  draw(p, "text", "{\"families\": [\"tp\"], \"rank\": 5}", &t);
  assert_string_equal(t.data, "tp: 4 groups of 2\n"
                              "         tp 0  tp 1\n"
                              "       +-----------+\n"
                              "  dp 0 |   0     1 |\n"
                              "       +-----------+\n"
                              "  dp 1 |   2     3 |\n"
                              "       +-----------+\n"
                              "  dp 2 |  *4    >5 |\n"
                              "       +-----------+\n"
                              "  dp 3 |   6     7 |\n"
                              "       +-----------+\n");
  draw(p, "text", NULL, &t);
  assert_non_null(strstr(t.data, "{0,1} {2,3} {4,5} {6,7}"));
  draw(p, "svg", "{\"all\": true}", &t);
  assert_true(strncmp(t.data, "<?xml", 5) == 0 && strstr(t.data, "picotron over 8 ranks")
              && strstr(t.data, "tp_size=2"));
  draw(p, "page", NULL, &t);
  assert_true(strstr(t.data, "<title>picotron</title>") && strstr(t.data, "</html>"));
  draw(p, "page", "{\"recipe\": \"<mine>\"}", &t);
  assert_non_null(strstr(t.data, "<title>&lt;mine&gt;</title>"));
  draw(p, "explain", "{\"families\": [\"tp\"]}", &t);
  assert_true(strncmp(t.data, "tp: 4 groups of 2\n", 18) == 0 && !strstr(t.data, "made by"));
  draw(p, "explain", "{\"recipe\": {\"name\": \"picotron\", \"args\": [\"tp=2\"]}}", &t);
  assert_true(strncmp(t.data, "picotron over 8 ranks: tp_size=2\n", 33) == 0);
  assert_non_null(strstr(t.data, "  made by      picotron:"));
  mgrid_text_free(&t);
  mgrid_plan_free(p);
}

static void test_refusals(void **unused) {
  (void)unused;
  static const struct {
    const char *how, *options, *says;
    mgrid_status status;
  } cases[] = {
    { "png", NULL, "a picture is text, svg, explain or page, not 'png'", MGRID_UNKNOWN_NAME },
    { "svg", "[1]", "the options of a picture are a JSON object", MGRID_BAD_VALUE },
    { "svg", "{", "the options of a picture are a JSON object", MGRID_BAD_VALUE },
    { "text", "{\"families\": [\"dpp\"]}",
      "unknown family 'dpp'; nearest is 'dp' (tp, cp, pp, dp, cp_dp, pp_dp, world_group)",
      MGRID_UNKNOWN_NAME },
    { "text", "{\"rank\": 8}", "rank 8 is out of range; ranks are 0 to 7", MGRID_OUT_OF_RANGE },
    { "explain", "{\"rank\": 1}",
      "unknown option of a report 'rank'; known: families, columns, read, recipe",
      MGRID_UNKNOWN_NAME },
    { "explain", "{\"recipe\": \"picotron\"}",
      "option 'recipe' of a report is a table, not a string", MGRID_BAD_VALUE },
    { "page", "{\"recipe\": 3}", "option 'recipe' of a page is a text, not 3", MGRID_BAD_VALUE },
    { "page", "{\"all\": true}", "unknown option of a page 'all'; known: recipe",
      MGRID_UNKNOWN_NAME },
  };
  mgrid_plan *p = plan_of("picotron", 8, "tp=2");
  mgrid_text t = { 0 };
  mgrid_error e = MGRID_ERROR_INIT;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    assert_int_equal(mgrid_plan_draw(p, cases[i].how, cases[i].options, collect, &t, anew(&e)),
                     cases[i].status);
    assert_string_equal(e.message, cases[i].says);
  }
  for (int pieces = 0; pieces < 60; pieces += 20) {
    int left = pieces;
    assert_int_equal(mgrid_plan_draw(p, "svg", "{\"all\": true}", stop, &left, anew(&e)),
                     MGRID_OUTPUT);
  }
  assert_int_equal(mgrid_plan_draw(NULL, "svg", NULL, collect, &t, anew(&e)), MGRID_USAGE);
  assert_int_equal(mgrid_plan_draw(p, NULL, NULL, collect, &t, anew(&e)), MGRID_USAGE);
  assert_int_equal(mgrid_plan_draw(p, "svg", NULL, NULL, NULL, anew(&e)), MGRID_USAGE);
  mgrid_text_free(&t);
  mgrid_plan_free(p);
}

int main(int argc, char **argv) {
  const struct CMUnitTest tests[] = { cmocka_unit_test(test_pictures),
                                      cmocka_unit_test(test_refusals) };
  return run_program("pictures", tests, argc, argv);
}
