/* SPDX-License-Identifier: MIT
**
** test_open.c - mgrid_open: from a recipe to a state in one call; and recipes that are text of the
** host's.
*/
#include "program.h"
#include "results.h"

static const char recipe[] = "return recipe { params = { tp = 2 }, build = function(world, p)\n"
                             "  local t = topology(world)\n"
                             "  t.tp = grid(world, 'tp-dp', { tp = p.tp, dp = fill }) 'tp'\n"
                             "  return t end,\n"
                             "queries = { twice = function(s) return 2 * s.world end }, policy = { "
                             "one = function(s) return s.tp.size end } }";

static mgrid_status load(mgrid_runtime *rt, const char *text, const char *name, mgrid_error *err) {
  return mgrid_runtime_load(rt, name, text, strlen(text), anew(err));
}

static void test_one_call(void **state) {
  mgrid_error e = MGRID_ERROR_INIT;
  mgrid_backend *b = mgrid_backend_dry(8, 3, anew(&e));
  const char *args[] = { "tp=4" };
  int64_t n = 0;
  (void)state;
  mgrid_state *s = mgrid_open(b, "picotron", 1, args, NULL, &e);
  mgrid_backend_free(b); /* the state has the rest */
  assert_int_equal(e.status, MGRID_OK);
  assert_int_equal(mgrid_group_size(mgrid_state_group(s, "tp", &e)), 4);
  assert_int_equal(mgrid_plan_world(mgrid_state_plan(s)), 8);
  ask_integer(mgrid_state_runtime(s), s, "tp_rank", 0, NULL, &n, &e);
  assert_int_equal(n, 3);
  assert_int_equal(e.status, MGRID_OK);
  mgrid_runtime *kept = mgrid_runtime_ref(mgrid_state_runtime(s));
  mgrid_state_free(s);
  mgrid_plan_free(mgrid_runtime_plan(kept, 4, NULL, 0, NULL, &e));
  assert_int_equal(e.status, MGRID_OK);
  mgrid_runtime_free(kept);
  assert_null(mgrid_state_runtime(NULL));
}

/* A state of other calls has no runtime. */
static void test_of_other_states(void **state) {
  mgrid_error e = MGRID_ERROR_INIT;
  mgrid_backend *b = mgrid_backend_dry(8, 3, anew(&e));
  mgrid_state *s = mgrid_open(b, "picotron", 0, NULL, NULL, &e), *reloaded = NULL;
  mgrid_state *made = mgrid_materialize(mgrid_state_plan(s), b, "again", &e);
  (void)state;
  assert_non_null(made);
  assert_null(mgrid_state_runtime(made));
  assert_int_equal(mgrid_reload(mgrid_state_runtime(s), s, NULL, 0, NULL, &reloaded, NULL, &e),
                   MGRID_OK);
  assert_ptr_not_equal(mgrid_state_runtime(reloaded), mgrid_state_runtime(s));
  mgrid_state_free(s); /* with its runtime; the new state has its own, and goes on */
  mgrid_policy_free(mgrid_policy_new(mgrid_state_runtime(reloaded), reloaded, "none", &e));
  assert_int_equal(e.status, MGRID_UNKNOWN_NAME);
  mgrid_state_free(reloaded);
  mgrid_state_free(made);
  mgrid_backend_free(b);
}

/* Parameters as C values, as queries take them; text beside them is refused. */
static void test_values(void **state) {
  mgrid_error e = MGRID_ERROR_INIT;
  mgrid_backend *b = mgrid_backend_dry(8, 3, anew(&e));
  const mgrid_arg values[] = { mgrid_arg_integer("tp", 2), mgrid_arg_integer("pp", 2) };
  const char *text = "tp=2";
  mgrid_open_options o = MGRID_OPEN_OPTIONS_INIT;
  (void)state;
  o.nvalues = 2, o.values = values;
  mgrid_state *s = mgrid_open(b, "picotron", 0, NULL, &o, &e);
  assert_int_equal(mgrid_group_size(mgrid_state_group(s, "tp", &e)), 2);
  assert_int_equal(mgrid_group_size(mgrid_state_group(s, "dp", &e)), 2);
  assert_int_equal(e.status, MGRID_OK);
  mgrid_state_free(s);
  assert_null(mgrid_open(b, "picotron", 1, &text, &o, &e));
  assert_int_equal(e.status, MGRID_USAGE);
  assert_non_null(strstr(e.message, "not both ways (while planning for 8 ranks)"));
  mgrid_backend_free(b);
}

static void test_stages(void **state) {
  static const struct {
    const char *recipe, *text, *arg;
    mgrid_status status;
    const char *message;
  } rows[] = {
    { "none.lua", NULL, NULL, MGRID_REFUSED, "(while loading the recipe)" },
    { "picotrom", NULL, NULL, MGRID_UNKNOWN_NAME, ") (while loading the recipe)" },
    { "mine", "return recipe {", NULL, MGRID_REFUSED,
      "mine:1: unexpected symbol near <eof>; write } to close the { of line 1 (while loading the "
      "recipe)" },
    { "mine", "return recipe { x = = 2 }", NULL, MGRID_REFUSED,
      "mine:1: unexpected symbol near '='\n  return recipe { x = = 2 }\n                      ^" },
    { NULL, NULL, NULL, MGRID_USAGE, "(while loading the recipe)" },
    { "picotron", NULL, "tp=3", MGRID_REFUSED, "(while planning for 8 ranks)" },
    { "picotron", NULL, "tb=2", MGRID_UNKNOWN_NAME, "(while planning for 8 ranks)" },
    { "mine", "return recipe { build = function() error 'no' end }", NULL, MGRID_REFUSED,
      "mine:1: no (while planning for 8 ranks)" },
  };
  (void)state;
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    mgrid_error e = MGRID_ERROR_INIT;
    mgrid_open_options o = MGRID_OPEN_OPTIONS_INIT;
    mgrid_backend *b = mgrid_backend_dry(8, 3, &e);
    o.text = rows[i].text, o.length = rows[i].text ? strlen(rows[i].text) : 0;
    assert_null(mgrid_open(b, rows[i].recipe, rows[i].arg != NULL, &rows[i].arg, &o, &e));
    if (e.status != rows[i].status || !strstr(e.message, rows[i].message))
      fail_msg("row %zu: %d '%s'", i, e.status, e.message);
    mgrid_backend_free(b);
  }
  mgrid_error e = MGRID_ERROR_INIT; /* two states of one name, with other plans */
  mgrid_open_options o = MGRID_OPEN_OPTIONS_INIT;
  mgrid_backend *b = mgrid_backend_dry(8, 3, &e);
  o.name = "train";
  mgrid_state *s = mgrid_open(b, "picotron", 0, NULL, &o, &e);
  assert_null(mgrid_open(b, "megatron", 0, NULL, &o, &e));
  assert_int_equal(e.status, MGRID_DUPLICATE);
  assert_non_null(strstr(e.message, "(while creating the state)"));
  mgrid_state_free(s);
  mgrid_backend_free(b);
  mgrid_backend *none = mgrid_backend_dry(0, 0, anew(&e)); /* of a chain, the first error stays */
  assert_null(mgrid_open(none, "picotron", 0, NULL, NULL, &e));
  assert_int_equal(e.status, MGRID_OUT_OF_RANGE);
  assert_null(strstr(e.message, "while"));
}

static void test_text(void **state) {
  mgrid_error e = MGRID_ERROR_INIT;
  char text[sizeof recipe];
  mgrid_backend *b = mgrid_backend_dry(8, 3, &e);
  mgrid_state *s = NULL;
  mgrid_runtime *rt = mgrid_runtime_new(NULL, NULL, &e), *new_rt = NULL;
  int64_t n = 0;
  (void)state;
  memcpy(text, recipe, sizeof recipe - 1); /* not ended by 0 */
  text[sizeof recipe - 1] = 'x';
  assert_int_equal(mgrid_runtime_load(rt, "layout", text, sizeof recipe - 1, &e), MGRID_OK);
  memset(text, 'x', sizeof text); /* it was borrowed for the call alone */
  mgrid_plan *p = mgrid_runtime_plan(rt, 8, NULL, 0, NULL, &e);
  mgrid_state *first = mgrid_materialize(p, b, "train", &e);
  ask_integer(rt, first, "twice", 0, NULL, &n, &e);
  assert_int_equal(n, 16);
  const char *args[] = { "tp=4" };
  assert_int_equal(mgrid_reload(rt, first, NULL, 1, args, &s, NULL, &e), MGRID_OK);
  new_rt = mgrid_runtime_ref(mgrid_state_runtime(s)); /* the same text */
  assert_int_equal(mgrid_group_size(mgrid_state_group(s, "tp", &e)), 4);
  assert_int_equal(load(rt, recipe, "other", &e), MGRID_NOT_NOW);
  assert_string_equal(e.message, "the runtime has a recipe already: layout");
  mgrid_state_free(s);
  mgrid_runtime_free(new_rt);
  mgrid_state_free(first);
  mgrid_plan_free(p);
  mgrid_runtime_free(rt);
  mgrid_backend_free(b);
}

/* The message has the name that the host gave, and the text names no files; the runtime may be used
** again. */
static void test_texts_refused(void **state) {
  static const struct {
    const char *text, *message;
  } rows[] = {
    { "return recipe {\n  build = }",
      "layout:2: unexpected symbol near '}'\n  build = }\n          ^" },
    { "", "layout returned nothing; end it with 'return recipe { ... }'" },
    { "\x1bLua", "layout: a recipe is text, and this is a binary chunk" },
    { "return recipe { base = './a.lua' }",
      "layout:1: './a.lua' is a file, and a recipe without a folder, such as one from standard "
      "input, cannot name files" },
    { "recipe.import './a.lua'", "layout:1: './a.lua' is a file, and a recipe without a folder, "
                                 "such as one from standard input, cannot name files" },
    { "return recipe '/etc/passwd'",
      "layout:1: '/etc/passwd' is a file, and a recipe without a folder, such as one from standard "
      "input, cannot name files" },
  };
  mgrid_error e = MGRID_ERROR_INIT;
  mgrid_runtime *rt = mgrid_runtime_new(NULL, NULL, &e);
  (void)state;
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    assert_int_equal(load(rt, rows[i].text, "layout", &e), MGRID_REFUSED);
    if (strcmp(e.message, rows[i].message) != 0) fail_msg("row %zu: '%s'", i, e.message);
  }
  size_t much = (1 << 20) + 1;
  char *big = malloc(much);
  assert_non_null(big);
  memset(big, ' ', much);
  assert_int_equal(mgrid_runtime_load(rt, "layout", big, much, anew(&e)), MGRID_REFUSED);
  assert_string_equal(e.message, "recipe layout has 1048577 bytes; a recipe has at most 1048576");
  free(big);
  /* a bundled recipe may have the same name, and be what this one is based on */
  assert_int_equal(load(rt, "return recipe { base = 'picotron' }", "picotron", &e), MGRID_OK);
  mgrid_plan *p = mgrid_runtime_plan(rt, 8, NULL, 0, NULL, &e);
  assert_int_equal(mgrid_plan_nfamilies(p), 7);
  mgrid_plan_free(p);
  mgrid_runtime_free(rt);
}

/* A text means what a file of it means, wherever it may be cut. */
static void test_any_length(void **state) {
  mgrid_error e = MGRID_ERROR_INIT;
  size_t loaded = 0;
  (void)state;
  for (size_t n = 0; n < sizeof recipe; n++) {
    mgrid_runtime *rt = mgrid_runtime_new(NULL, NULL, anew(&e));
    loaded += mgrid_runtime_load(rt, "cut", recipe, n, &e) == MGRID_OK;
    mgrid_runtime_free(rt);
  }
  assert_int_equal(loaded, 1);
}

int main(int argc, char **argv) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_one_call),   cmocka_unit_test(test_of_other_states),
    cmocka_unit_test(test_stages),     cmocka_unit_test(test_values),
    cmocka_unit_test(test_text),       cmocka_unit_test(test_texts_refused),
    cmocka_unit_test(test_any_length),
  };
  return run_program("open", tests, argc, argv);
}
