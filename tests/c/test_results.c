/* SPDX-License-Identifier: MIT
**
** test_results.c - what a policy returned, read by path: tables in tables, lists, kinds that do not
** fit, and paths that lead nowhere.
*/
#include "program.h"

#include "results.h"

#include <inttypes.h>
#include <unistd.h>

static const char recipe[] =
    "return recipe { build = function(world) local t = topology(world)\n"
    "  t.all = grid(world, 'dp', { dp = fill }) 'dp' return t end,\n"
    "  policy = { one = function() return {\n"
    "    layers = { { first = 0, last = 3 }, { first = 4, last = 7 } },\n"
    "    steps = { 5, 6, 7 }, rates = { 0.5, 1, 2.0 }, wholes = { 1.0, 2.0 },\n"
    "    names = { 'a', 'b' }, deep = { { { 1 }, { 2, 3 } } }, empty = {},\n"
    "    lr = 0.25, n = 3, whole = 4.0, on = true, name = '1f1b', nul = 'a\\0b',\n"
    "    ['any key'] = { ['a.b'] = 1, ['[0]'] = 2, [''] = 3 },\n"
    "    keys = { b = 1, a = 2, ['\\xff'] = 3, Z = 4, aa = 5, [7] = 6 },\n"
    "    sparse = { [5] = 1 }, big = 1 << 62,\n"
    "  } end, scalar = function() return 42 end, none = function() end,\n"
    "  fails = function() error 'no' end, echo = function(s, q) return q.x end } }\n";

typedef struct fixture {
  mgrid_runtime *rt;
  mgrid_plan *p;
  mgrid_backend *b;
  mgrid_state *s;
  mgrid_policy *one;
} fixture;

static mgrid_error e = MGRID_ERROR_INIT;

static int set_up(void **state) {
  fixture *f = *state = calloc(1, sizeof *f);
  char path[64];
  snprintf(path, sizeof path, "/tmp/results-%d.lua", (int)getpid());
  FILE *file = fopen(path, "w");
  fputs(recipe, file);
  fclose(file);
  mgrid_error_clear(&e);
  f->rt = mgrid_runtime_new(NULL, NULL, &e);
  mgrid_runtime_load(f->rt, path, NULL, 0, &e);
  unlink(path);
  f->p = mgrid_runtime_plan(f->rt, 8, NULL, 0, NULL, &e);
  f->b = mgrid_backend_dry(8, 0, &e);
  f->s = mgrid_materialize(f->p, f->b, "", &e);
  f->one = mgrid_policy_new(f->rt, f->s, "one", &e);
  mgrid_policy_call(f->one, 0, NULL, &e);
  if (e.status) fprintf(stderr, "%s\n", e.message);
  return e.status;
}

static int tear_down(void **state) {
  fixture *f = *state;
  mgrid_policy_free(f->one);
  mgrid_state_free(f->s);
  mgrid_backend_free(f->b);
  mgrid_plan_free(f->p);
  mgrid_runtime_free(f->rt);
  free(f);
  return 0;
}

static void test_kinds(void **state) {
  static const struct {
    const char *path;
    mgrid_kind kind;
    int64_t length; /* -1: it has none */
  } cases[] = {
    { NULL, MGRID_IS_TABLE, 17 },
    { "", MGRID_IS_TABLE, 17 },
    { "lr", MGRID_IS_NUMBER, -1 },
    { "n", MGRID_IS_INTEGER, -1 },
    { "whole", MGRID_IS_NUMBER, -1 },
    { "on", MGRID_IS_BOOLEAN, -1 },
    { "name", MGRID_IS_TEXT, -1 },
    { "steps", MGRID_IS_INTEGERS, 3 },
    { "rates", MGRID_IS_NUMBERS, 3 },
    { "wholes", MGRID_IS_NUMBERS, 2 },
    { "names", MGRID_IS_LIST, 2 },
    { "layers", MGRID_IS_LIST, 2 },
    { "layers[0]", MGRID_IS_TABLE, 2 },
    { "layers[1].first", MGRID_IS_INTEGER, -1 },
    { "deep", MGRID_IS_LIST, 1 },
    { "deep[0]", MGRID_IS_LIST, 2 },
    { "deep[0][1]", MGRID_IS_INTEGERS, 2 },
    { "deep[0][1][1]", MGRID_IS_INTEGER, -1 },
    { "empty", MGRID_IS_TABLE, 0 },
    { "sparse", MGRID_IS_TABLE, 0 },
    { "[\"any key\"]", MGRID_IS_TABLE, 3 },
    { "[\"any key\"][\"a.b\"]", MGRID_IS_INTEGER, -1 },
    { "[\"any key\"][\"[0]\"]", MGRID_IS_INTEGER, -1 },
    { "[\"any key\"][\"\"]", MGRID_IS_INTEGER, -1 },
    { "[\"layers\"][0][\"last\"]", MGRID_IS_INTEGER, -1 },
    { "keys", MGRID_IS_TABLE, 5 },
    /* these lead nowhere: what is not there, and what is not a path */
    { "none", MGRID_IS_NONE, -1 },
    { "lr.none", MGRID_IS_NONE, -1 },
    { "name[0]", MGRID_IS_NONE, -1 },
    { "steps[3]", MGRID_IS_NONE, -1 },
    { "steps.1", MGRID_IS_NONE, -1 },
    { "layers.first", MGRID_IS_NONE, -1 },
    { "layers[0].first.x", MGRID_IS_NONE, -1 },
    { "layers..first", MGRID_IS_NONE, -1 },
    { ".layers", MGRID_IS_NONE, -1 },
    { "layers.", MGRID_IS_NONE, -1 },
    { "layers[", MGRID_IS_NONE, -1 },
    { "layers[0", MGRID_IS_NONE, -1 },
    { "layers[]", MGRID_IS_NONE, -1 },
    { "layers[x]", MGRID_IS_NONE, -1 },
    { "layers[-1]", MGRID_IS_NONE, -1 },
    { "layers[+0]", MGRID_IS_NONE, -1 },
    { "layers[ 0]", MGRID_IS_NONE, -1 },
    { "layers[0x0]", MGRID_IS_NONE, -1 },
    { "layers[0]first", MGRID_IS_NONE, -1 },
    { "layers[0] first", MGRID_IS_NONE, -1 },
    { "layers]", MGRID_IS_NONE, -1 },
    { "[\"layers", MGRID_IS_NONE, -1 },
    { "[\"layers\"", MGRID_IS_NONE, -1 },
    { "['layers']", MGRID_IS_NONE, -1 },
    { "layers[2147483648]", MGRID_IS_NONE, -1 },
    { "layers[9223372036854775807]", MGRID_IS_NONE, -1 },
    { "layers[99999999999999999999999999]", MGRID_IS_NONE, -1 },
    { "any key", MGRID_IS_TABLE, 3 }, /* a key needs the other form only for a point or a bracket */
  };
  fixture *f = *state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    const char *path = cases[i].path;
    mgrid_arg value = mgrid_arg_integer(NULL, 77), again = MGRID_ARG_INIT;
    assert_int_equal(mgrid_policy_result(f->one, path, MGRID_IS_NONE, &value, anew(&e)), MGRID_OK);
    if (value.kind != cases[i].kind)
      fail_msg("'%s' is of kind %d", path ? path : "NULL", (int)value.kind);
    /* all lists begin with it */
    int64_t n = value.kind < MGRID_IS_INTEGERS ? -1 : (int64_t)value.as.table.n;
    if (n != cases[i].length) fail_msg("'%s' has %" PRId64, path ? path : "NULL", n);
    assert_int_equal(mgrid_policy_result(f->one, path, value.kind, &again, &e), MGRID_OK);
    assert_true(n < 1 || again.as.table.at == value.as.table.at); /* it is made once */
  }
}

static void wrong(mgrid_status s, const char *message) {
  assert_int_equal(s, MGRID_BAD_VALUE);
  assert_int_equal(e.status, MGRID_BAD_VALUE);
  const char *text = strstr(e.message, "policy 'one'");
  assert_non_null(text);
  assert_string_equal(text, message);
  assert_int_equal(e.line, 3); /* where the policy is */
}

static void test_values(void **state) {
  fixture *f = *state;
  int64_t n = 7;
  double x = 7;
  bool on = false;
  const char *text = "?";
  assert_int_equal(read_integer(f->one, "layers[1].last", &n, &e), MGRID_OK);
  assert_int_equal(n, 7);
  assert_int_equal(read_integer(f->one, "whole", &n, &e), MGRID_OK); /* a number that is one */
  assert_int_equal(n, 4);
  assert_int_equal(read_integer(f->one, "big", &n, &e), MGRID_OK);
  assert_true(n == INT64_C(1) << 62);
  assert_int_equal(read_number(f->one, "n", &x, &e), MGRID_OK); /* an integer is one */
  assert_true(x == 3);
  assert_int_equal(read_number(f->one, "rates[0]", &x, &e), MGRID_OK);
  assert_true(x == 0.5);
  assert_int_equal(read_boolean(f->one, "on", &on, &e), MGRID_OK);
  assert_true(on);
  assert_int_equal(read_text(f->one, "names[1]", &text, &e), MGRID_OK);
  assert_string_equal(text, "b");
  wrong(read_integer(f->one, "lr", &n, anew(&e)),
        "policy 'one' returned a number at 'lr', not an integer");
  assert_int_equal(n, 0);
  wrong(read_number(f->one, "name", &x, anew(&e)),
        "policy 'one' returned text at 'name', not a number");
  assert_true(x == 0);
  wrong(read_boolean(f->one, "n", &on, anew(&e)),
        "policy 'one' returned an integer at 'n', not a boolean");
  assert_false(on);
  wrong(read_text(f->one, "layers[0]", &text, anew(&e)),
        "policy 'one' returned a table by key at 'layers[0]', not text");
  assert_null(text);
  wrong(read_text(f->one, "a..b", &text, anew(&e)),
        "policy 'one' returned nothing at 'a..b', not text");
  wrong(read_text(f->one, NULL, &text, anew(&e)), "policy 'one' returned a table by key, not text");
}

static void test_lists(void **state) {
  fixture *f = *state;
  int64_t n[4] = { 9, 9, 9, 9 };
  double x[4] = { 9, 9, 9, 9 };
  size_t all = 0;
  assert_int_equal(read_integers(f->one, "steps", 4, n, &all, &e), MGRID_OK);
  assert_true(all == 3 && n[0] == 5 && n[1] == 6 && n[2] == 7 && n[3] == 9);
  /* how many are there? */
  assert_int_equal(read_integers(f->one, "steps", 0, n, &all, &e), MGRID_OK);
  assert_int_equal(all, 3);
  n[0] = n[1] = 9;
  assert_int_equal(read_integers(f->one, "steps", 1, n, &all, &e), MGRID_OK);
  assert_true(all == 3 && n[0] == 5 && n[1] == 9);
  assert_int_equal(read_integers(f->one, "wholes", 4, n, NULL, &e), MGRID_OK);
  assert_true(n[0] == 1 && n[1] == 2);
  assert_int_equal(read_numbers(f->one, "rates", 2, x, &all, &e), MGRID_OK);
  assert_true(all == 3 && x[0] == 0.5 && x[1] == 1 && x[2] == 9);
  assert_int_equal(read_numbers(f->one, "deep[0][1]", 4, x, &all, &e), MGRID_OK);
  assert_true(all == 2 && x[0] == 2 && x[1] == 3);
  assert_int_equal(read_integers(f->one, "empty", 4, n, &all, &e), MGRID_OK);
  assert_int_equal(all, 0);
  assert_int_equal(e.status, MGRID_OK);
  /* also where nobody wants the element */
  wrong(read_integers(f->one, "rates", 0, n, &all, anew(&e)),
        "policy 'one' returned a list of numbers at 'rates', not a list of integers");
  assert_int_equal(all, 0);
  wrong(read_numbers(f->one, "names", 4, x, &all, anew(&e)),
        "policy 'one' returned a list at 'names', not a list of numbers");
  wrong(read_integers(f->one, "sparse", 4, n, &all, anew(&e)),
        "policy 'one' returned a table by key at 'sparse', not a list of integers");
}

static void test_tables(void **state) {
  /* by bytes; a key that is not text is left out */
  static const char *const sorted[] = { "Z", "a", "aa", "b", "\xff" };
  fixture *f = *state;
  mgrid_arg keys = MGRID_ARG_INIT, list = MGRID_ARG_INIT;
  assert_int_equal(mgrid_policy_result(f->one, "keys", MGRID_IS_TABLE, &keys, &e), MGRID_OK);
  assert_int_equal(keys.as.table.n, 5);
  for (size_t i = 0; i < 5; i++) assert_string_equal(keys.as.table.at[i].name, sorted[i]);
  assert_int_equal(keys.as.table.at[2].as.integer, 5);
  assert_int_equal(mgrid_policy_result(f->one, "layers", MGRID_IS_LIST, &list, &e), MGRID_OK);
  const mgrid_arg *last = &list.as.table.at[1].as.table.at[1];
  assert_string_equal(last->name, "last");
  assert_int_equal(last->as.integer, 7);
  assert_int_equal(mgrid_policy_result(f->one, "empty", MGRID_IS_LIST, &list, &e), MGRID_OK);
  assert_int_equal(list.as.table.n, 0);
  wrong(mgrid_policy_result(f->one, "steps", MGRID_IS_TABLE, &list, anew(&e)),
        "policy 'one' returned a list of integers at 'steps', not a table by key");
  assert_int_equal(list.kind, MGRID_IS_NONE);
  assert_int_equal(mgrid_policy_result(f->one, "steps", (mgrid_kind)99, &list, anew(&e)),
                   MGRID_USAGE);
}

/* JSON in and out. */
static void test_json(void **state) {
  static const struct {
    const char *path, *text;
  } cases[] = { { "layers", "[{\"first\":0,\"last\":3},{\"first\":4,\"last\":7}]" },
                { "lr", "0.25" },
                { "name", "\"1f1b\"" },
                { "on", "true" },
                { "none", "null" },
                { "deep[0]", "[[1],[2,3]]" } };
  fixture *f = *state;
  mgrid_arg json = MGRID_ARG_INIT;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    assert_int_equal(mgrid_policy_result(f->one, cases[i].path, MGRID_IS_JSON, &json, anew(&e)),
                     MGRID_OK);
    assert_int_equal(json.kind, MGRID_IS_JSON);
    assert_string_equal(json.as.text, cases[i].text);
  }
  assert_int_equal(mgrid_policy_result(f->one, "keys", MGRID_IS_JSON, &json, anew(&e)),
                   MGRID_BAD_VALUE);
  assert_non_null(strstr(e.message, "policy 'one' returned a value that JSON does not have: "));
  mgrid_policy *echo = mgrid_policy_new(f->rt, f->s, "echo", anew(&e));
  const mgrid_arg good = mgrid_arg_json("x", "{\"b\": [1, 2.5], \"a\": {\"c\": true}}"),
                  bad = mgrid_arg_json("x", "{");
  assert_int_equal(mgrid_policy_call(echo, 1, &good, &e), MGRID_OK);
  assert_int_equal(mgrid_policy_result(echo, NULL, MGRID_IS_JSON, &json, &e), MGRID_OK);
  assert_string_equal(json.as.text, "{\"a\":{\"c\":true},\"b\":[1,2.5]}");
  assert_int_equal(mgrid_policy_call(echo, 1, &bad, anew(&e)), MGRID_BAD_VALUE);
  assert_non_null(strstr(e.message, "argument 'x' is not JSON that Lua can have: "));
  mgrid_policy_free(echo);
}

/* What is not a table has only its whole; a call that failed leaves no result of the call before. */
static void test_other_results(void **state) {
  fixture *f = *state;
  mgrid_policy *scalar = mgrid_policy_new(f->rt, f->s, "scalar", anew(&e)),
               *none = mgrid_policy_new(f->rt, f->s, "none", &e),
               *fails = mgrid_policy_new(f->rt, f->s, "fails", &e);
  int64_t n = 0;
  assert_int_equal(kind_of(scalar, NULL), MGRID_IS_NONE); /* not called yet */
  mgrid_policy_call(scalar, 0, NULL, &e);
  mgrid_policy_call(none, 0, NULL, &e);
  read_integer(scalar, "", &n, &e);
  assert_int_equal(e.status, MGRID_OK);
  assert_int_equal(n, 42);
  assert_int_equal(kind_of(scalar, "[0]"), MGRID_IS_NONE);
  assert_int_equal(kind_of(none, NULL), MGRID_IS_NONE);
  assert_int_equal(mgrid_policy_call(fails, 0, NULL, anew(&e)), MGRID_REFUSED);
  assert_int_equal(kind_of(fails, NULL), MGRID_IS_NONE);
  assert_int_equal(kind_of(NULL, NULL), MGRID_IS_NONE);
  assert_int_equal(read_integer(NULL, NULL, &n, anew(&e)), MGRID_USAGE);
  assert_int_equal(e.status, MGRID_OK); /* whoever made no policy has said why */
  mgrid_policy_free(scalar);
  mgrid_policy_free(none);
  mgrid_policy_free(fails);
}

int main(int argc, char **argv) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(test_kinds, set_up, tear_down),
    cmocka_unit_test_setup_teardown(test_values, set_up, tear_down),
    cmocka_unit_test_setup_teardown(test_lists, set_up, tear_down),
    cmocka_unit_test_setup_teardown(test_tables, set_up, tear_down),
    cmocka_unit_test_setup_teardown(test_json, set_up, tear_down),
    cmocka_unit_test_setup_teardown(test_other_results, set_up, tear_down),
  };
  return run_program("results", tests, argc, argv);
}
