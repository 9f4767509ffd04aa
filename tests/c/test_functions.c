/* SPDX-License-Identifier: MIT
**
** test_functions.c - functions of the host that recipes call: values in and out, refusals, budgets.
*/
#include "functions.h"

#include <unistd.h>

typedef struct failure {
  mgrid_status status;
  const char *message;
} failure;

static mgrid_status fails(void *ud, size_t n, const mgrid_arg *args, mgrid_arg *result,
                          mgrid_error *err) {
  const failure *f = ud;
  (void)n, (void)args, (void)result;
  if (f->message) {
    err->status = f->status;
    snprintf(err->message, sizeof err->message, "%s", f->message);
  }
  return f->status;
}

static void expect(const mgrid_function *f, const char *text, mgrid_status status,
                   const char *message) {
  mgrid_error e = MGRID_ERROR_INIT;
  mgrid_plan *p = plan_of(f, text, &e);
  mgrid_plan_free(p);
  assert_string_equal(e.message, message);
  assert_int_equal(e.status, status);
}

static void test_build(void **unused) {
  mgrid_function f = mgrid_function_of("rack_of", "cluster 2026-11", rack_of, &four);
  mgrid_error e = MGRID_ERROR_INIT;
  char text[1024] = "", json[4096] = "";
  (void)unused;
  mgrid_plan *p = plan_of(&f, by_rack, &e);
  assert_string_equal(e.message, "");
  mgrid_plan_print(p, put_text, text, &e);
  assert_string_equal(
      text,
      "moongrid 1\nworld 8\nfunction rack_of = cluster 2026-11\nfamily rack: (4:1) x (2:4)\n");
  mgrid_plan_print_json(p, -1, put_text, json, &e);
  assert_non_null(strstr(json, "\n  \"functions\": {\"rack_of\": \"cluster 2026-11\"},\n"));
  mgrid_plan_free(p);
}

/* What comes back is what was given, of every kind, as deep as values go. */
static void test_values(void **unused) {
  static const char *const values[] = {
    "nil",
    "true",
    "false",
    "7",
    "-0.5",
    "'text'",
    "''",
    "{}",
    "{ 1, 2, 3 }",
    "{ 1.5, 2.5 }",
    "{ 'a', 'b' }",
    "{ { 1 }, { 'x', true }, 4 }",
    "{ a = 1, b = { c = { 'd' } }, e = {} }",
    "math.maxinteger",
    "math.mininteger",
    "{ true, false }",
    "{ { {}, { {} } } }",
    "'a\xc3\xa4'",
  };
  mgrid_function f = mgrid_function_of("echo", "1", echo, NULL);
  (void)unused;
  for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
    char text[1024];
    mgrid_error e = MGRID_ERROR_INIT;
    snprintf(text, sizeof text,
             "local function equal(a, b)\n"
             "  if type(a) ~= 'table' or type(b) ~= 'table' then return a == b and math.type(a) == "
             "math.type(b) end\n"
             "  for k, v in pairs(a) do if not equal(v, b[k]) then return false end end\n"
             "  for k in pairs(b) do if a[k] == nil then return false end end\n"
             "  return true\n"
             "end\n" BUILD("  local v = %s\n"
                           "  local w = echo(v)\n"
                           "  assert(equal(v, w), 'another value')\n"
                           "  assert(type(v) ~= 'table' or v ~= w, 'the same table')\n"
                           "  return topology(world)"),
             values[i]);
    mgrid_plan *p = plan_of(&f, text, &e);
    if (!p) fail_msg("%s: %s", values[i], e.message);
    mgrid_plan_free(p);
  }
}

static mgrid_status check_kinds(void *ud, size_t n, const mgrid_arg *args, mgrid_arg *result,
                                mgrid_error *err) {
  (void)ud, (void)err, (void)result;
  assert_int_equal(n, 6);
  assert_int_equal(args[0].kind, MGRID_IS_NONE);
  assert_int_equal(args[1].kind, MGRID_IS_INTEGERS);
  assert_int_equal(args[1].as.integers.n, 2);
  assert_int_equal(args[1].as.integers.at[1], 6);
  assert_int_equal(args[2].kind, MGRID_IS_NUMBERS);
  assert_true(args[2].as.numbers.at[0] == 1.0 && args[2].as.numbers.at[1] == 0.5);
  assert_int_equal(args[3].kind, MGRID_IS_LIST);
  assert_int_equal(args[3].as.table.n, 2);
  assert_null(args[3].as.table.at[0].name);
  assert_string_equal(args[3].as.table.at[0].as.text, "a");
  assert_true(args[3].as.table.at[1].as.boolean);
  assert_int_equal(args[4].kind, MGRID_IS_TABLE);
  assert_int_equal(args[4].as.table.n, 2); /* by the bytes of their names */
  assert_string_equal(args[4].as.table.at[0].name, "a");
  assert_string_equal(args[4].as.table.at[1].name, "b");
  assert_int_equal(args[4].as.table.at[1].as.integer, 1);
  assert_int_equal(args[5].kind, MGRID_IS_TABLE);
  assert_int_equal(args[5].as.table.n, 0);
  for (size_t i = 0; i < n; i++) assert_int_equal(args[i].size, sizeof(mgrid_arg));
  return MGRID_OK;
}

static void test_kinds(void **unused) {
  mgrid_function f = mgrid_function_of("look", "1", check_kinds, NULL);
  (void)unused;
  expect(&f,
         BUILD("  look(nil, { 5, 6 }, { 1, 0.5 }, { 'a', true }, { b = 1, a = 2 }, {})\n  return "
               "topology(world)"),
         MGRID_OK, "");
}

#define NOT_PLAIN \
  "; arguments are finite numbers, text in UTF-8, true, false, nil, lists, and tables with names " \
  "as keys"

static void test_arguments_refused(void **unused) {
  static const struct {
    const char *argument, *message;
  } cases[] = {
    { "world", "r:2: echo: argument 1 is a World" NOT_PLAIN },
    { "1, grid(world, 'a', { a = fill })", "r:2: echo: argument 2 is a Grid" NOT_PLAIN },
    { "function() end", "r:2: echo: argument 1 is a function" NOT_PLAIN },
    { "{ function() end }",
      "r:2: echo: argument 1 is a table with other keys or values, or too many" NOT_PLAIN },
    { "{ 1, a = 2 }",
      "r:2: echo: argument 1 is a table with other keys or values, or too many" NOT_PLAIN },
    { "{ [3] = 1 }",
      "r:2: echo: argument 1 is a table with other keys or values, or too many" NOT_PLAIN },
    { "1 / 0", "r:2: echo: argument 1 is a number" NOT_PLAIN },
    { "'\\xff'", "r:2: echo: argument 1 is a string" NOT_PLAIN },
    { "'a\\0b'", "r:2: echo: a text has a zero byte in it" },
    { "{ 'a\\0b' }", "r:2: echo: a text has a zero byte in it" },
    { "p", "r:2: echo: a read-only table, such as p, is not a plain value" },
  };
  mgrid_function f = mgrid_function_of("echo", "1", echo, NULL);
  (void)unused;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    char text[512];
    snprintf(text, sizeof text, BUILD("  echo(%s)\n  return topology(world)"), cases[i].argument);
    expect(&f, text, MGRID_BAD_VALUE, cases[i].message);
  }
}

static void test_failures(void **unused) {
  static const char text[] = BUILD("  fails()\n  return topology(world)");
  static failure cases[] = { { MGRID_BAD_VALUE, NULL },
                             { MGRID_OUT_OF_RANGE, "rank 9 is in no rack" },
                             { MGRID_LOST_RANK, "the store\nis gone" } };
  (void)unused;
  mgrid_function f = mgrid_function_of("fails", "1", fails, &cases[0]);
  expect(&f, text, MGRID_BAD_VALUE, "r:2: fails: bad value");
  f.ud = &cases[1];
  expect(&f, text, MGRID_OUT_OF_RANGE, "r:2: fails: rank 9 is in no rack");
  f.ud = &cases[2];
  expect(&f, text, MGRID_REFUSED, "r:2: fails: the store\\nis gone");
  f.ud = &(failure){ MGRID_NO_MEMORY, "none" };
  expect(&f, text, MGRID_NO_MEMORY, "out of memory");
  f.ud = &(failure){ 7, NULL };
  expect(&f, text, MGRID_REFUSED, "r:2: fails: it returned 7, which is not a status");
  f.ud = &cases[1]; /* a recipe may catch it */
  expect(&f, BUILD("  assert(not pcall(fails))\n  return topology(world)"), MGRID_OK, "");
}

static mgrid_status bad_result(void *ud, size_t n, const mgrid_arg *args, mgrid_arg *result,
                               mgrid_error *err) {
  (void)n, (void)args, (void)err;
  *result = *(mgrid_arg *)ud;
  return MGRID_OK;
}

static void test_results_refused(void **unused) {
  static const char text[] = BUILD("  bad()\n  return topology(world)");
  mgrid_arg nothing = MGRID_ARG_INIT, loop = mgrid_arg_list(NULL, 1, NULL), result;
  mgrid_function f = mgrid_function_of("bad", "1", bad_result, &result);
  (void)unused;
  result = mgrid_arg_integers(NULL, 3, NULL);
  expect(&f, text, MGRID_REFUSED, "r:2: bad: the list of 3 values of an argument is NULL");
  result = mgrid_arg_list(NULL, 1, &nothing);
  expect(&f, text, MGRID_BAD_VALUE, "r:2: a list has nothing (MGRID_IS_NONE) in it");
  nothing.kind = MGRID_IS_BOOLEAN;
  result = mgrid_arg_table(NULL, 1, &nothing);
  expect(&f, text, MGRID_BAD_VALUE, "r:2: an argument has no name");
  result = mgrid_arg_of(NULL, (mgrid_kind)99);
  expect(&f, text, MGRID_BAD_VALUE, "r:2: a value has no kind (99)");
  result = mgrid_arg_integers(NULL, SIZE_MAX, &four);
  expect(&f, text, MGRID_OUT_OF_RANGE, "r:2: bad: arguments of more than 262144 values");
  loop.as.table.at = &loop;
  result = loop;
  expect(&f, text, MGRID_REFUSED, "r:2: bad: arguments are nested more than 16 deep");
}

static void refused(mgrid_runtime *rt, const mgrid_function *f, mgrid_status status,
                    const char *message) {
  mgrid_error e = MGRID_ERROR_INIT;
  assert_int_equal(mgrid_runtime_function(rt, f, &e), status);
  assert_string_equal(e.message, message);
}

static void test_registration_refused(void **unused) {
  mgrid_error e = MGRID_ERROR_INIT;
  mgrid_runtime *rt = mgrid_runtime_new(NULL, NULL, &e);
  mgrid_function f = mgrid_function_of("echo", "1", echo, NULL);
  (void)unused;
  static const char *const not_names[] = { "", "2a", "a-b", "a name",
                                           "of_more_than_thirty_one_characters" };
  for (size_t i = 0; i < sizeof not_names / sizeof *not_names; i++) {
    char message[200];
    snprintf(message, sizeof message,
             "'%s' is not a function name (a letter or _, then letters, digits or _; at most 31)",
             not_names[i]);
    f.name = not_names[i];
    refused(rt, &f, MGRID_BAD_VALUE, message);
  }
  static const char *const taken[] = { "grid", "recipe", "print", "end", "goto",
                                       "math", "load",   "_ENV",  "_G",  "topology" };
  for (size_t i = 0; i < sizeof taken / sizeof *taken; i++) {
    char message[200];
    snprintf(
        message, sizeof message,
        "'%s' is a word of recipes or of Lua already: give the function of the host another name",
        taken[i]);
    f.name = taken[i];
    refused(rt, &f, MGRID_DUPLICATE, message);
  }
  f.name = NULL;
  refused(rt, &f, MGRID_USAGE, "the name of a function is NULL");
  f.name = "echo", f.version = NULL;
  refused(rt, &f, MGRID_USAGE, "the version of a function is NULL");
  f.version = "";
  refused(rt, &f, MGRID_BAD_VALUE, "the version of function 'echo' is one line of text, not empty");
  f.version = "1\nfamily x: (8:1)";
  refused(rt, &f, MGRID_BAD_VALUE,
          "the version of function 'echo' is one line of text in UTF-8, without control "
          "characters, not "
          "'1\\nfamily x: (8:1)'");
  f.version = "1", f.work = -1;
  refused(rt, &f, MGRID_OUT_OF_RANGE,
          "the work of function 'echo' is 0 (the default) or more, not -1");
  f.work = 1, f.call = NULL;
  refused(rt, &f, MGRID_USAGE, "the function is NULL");
  f.call = echo, f.size = 0;
  refused(rt, &f, MGRID_BAD_STRUCT, "mgrid_function without its INIT macro (size 0)");
  f.size = sizeof f, f.arg_size = 8;
  refused(rt, &f, MGRID_BAD_STRUCT, "arg_size of function 'echo' is sizeof(mgrid_arg), not 8");
  f.arg_size = sizeof(mgrid_arg);
  assert_int_equal(mgrid_runtime_function(rt, &f, &e), MGRID_OK);
  refused(rt, &f, MGRID_DUPLICATE, "the runtime has a function 'echo' already, of version 1");
  assert_int_equal(mgrid_runtime_load(rt, "none", NULL, 0, anew(&e)), MGRID_UNKNOWN_NAME);
  f.name = "other";
  refused(rt, &f, MGRID_NOT_NOW,
          "functions of the host are registered before the recipe is loaded");
  assert_int_equal(mgrid_runtime_load(rt, "picotron", NULL, 0, anew(&e)), MGRID_OK);
  refused(rt, &f, MGRID_NOT_NOW,
          "functions of the host are registered before the recipe is loaded");
  mgrid_runtime_free(rt);
}

static void test_a_host_without_it(void **unused) {
  mgrid_function f = mgrid_function_of("rank_of", "1", echo, NULL);
  (void)unused;
  expect(NULL, by_rack, MGRID_UNKNOWN_NAME,
         "r:4: undefined global 'rack_of': neither a word of recipes nor a function that this "
         "program has registered; "
         "a dim is written g \"rack_of\", a family t.rack_of, a parameter p.rack_of, a text "
         "\"rack_of\"");
  expect(&f, by_rack, MGRID_UNKNOWN_NAME, "r:4: undefined global 'rack_of'; nearest is 'rank_of'");
  expect(&f, BUILD("  rank_of = 1"), MGRID_REFUSED,
         "r:2: assignment to global 'rank_of': use 'local'");
}

static void test_budget(void **unused) {
  mgrid_limits few = MGRID_LIMITS_INIT;
  mgrid_error e = MGRID_ERROR_INIT;
  mgrid_function f = mgrid_function_of("echo", "1", echo, NULL);
  static const char text[] = BUILD("  for i = 1, 1000 do echo(i) end\n  return topology(world)");
  (void)unused;
  few.instructions = 200000;
  for (int dear = 0; dear < 2; dear++) {
    f.work = dear ? 200 : 100;
    mgrid_runtime *rt = mgrid_runtime_new(&few, NULL, &e);
    mgrid_runtime_function(rt, &f, &e);
    mgrid_runtime_load(rt, "r", text, sizeof text - 1, &e);
    mgrid_plan *p = mgrid_runtime_plan(rt, 8, NULL, 0, NULL, &e);
    assert_string_equal(e.message,
                        dear ? "r:2: the recipe runs for more than 200000 instructions" : "");
    mgrid_plan_free(p);
    mgrid_runtime_free(rt);
  }
}

/* The names in a file are looked for in Lua: an error there leaves nothing of the file (ASan). */
static void test_budget_of_a_file(void **unused) {
  char path[] = P_tmpdir "/moongrid-functions-XXXXXX.lua";
  mgrid_limits few = MGRID_LIMITS_INIT;
  mgrid_error e = MGRID_ERROR_INIT;
  mgrid_function f = mgrid_function_of("echo", "1", echo, NULL);
  FILE *file = fdopen(mkstemps(path, 4), "w");
  (void)unused;
  for (int i = 0; i < 2000; i++) fputs("local a = 1\n", file);
  fclose(file);
  few.instructions = 20000;
  mgrid_runtime *rt = mgrid_runtime_new(&few, NULL, &e);
  mgrid_runtime_function(rt, &f, &e);
  assert_int_equal(mgrid_runtime_load(rt, path, NULL, 0, &e), MGRID_LIMIT);
  assert_non_null(strstr(e.message, "the recipe runs for more than 20000 instructions"));
  mgrid_runtime_free(rt);
  unlink(path);
}

static mgrid_runtime *in_use;

static mgrid_status call_back(void *ud, size_t n, const mgrid_arg *args, mgrid_arg *result,
                              mgrid_error *err) {
  (void)n, (void)args, (void)result;
  mgrid_plan_free(mgrid_runtime_plan(in_use, 8, NULL, 0, NULL, err));
  return *(mgrid_status *)ud = err->status;
}

static void test_a_function_that_calls_back(void **unused) {
  mgrid_status status = MGRID_OK;
  mgrid_error e = MGRID_ERROR_INIT;
  mgrid_function f = mgrid_function_of("back", "1", call_back, &status);
  (void)unused;
  in_use = with(&f, BUILD("  back()\n  return topology(world)"), &e);
  assert_null(mgrid_runtime_plan(in_use, 8, NULL, 0, NULL, &e));
  assert_int_equal(status, MGRID_NOT_NOW);
  assert_string_equal(
      e.message, "r:2: back: the runtime is running a hook or a function of the host, which must "
                 "not call moongrid, nor leave by an exception (moongrid_cpp.h)");
  mgrid_runtime_free(in_use);
}

int main(int argc, char **argv) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_build),
    cmocka_unit_test(test_values),
    cmocka_unit_test(test_kinds),
    cmocka_unit_test(test_arguments_refused),
    cmocka_unit_test(test_failures),
    cmocka_unit_test(test_results_refused),
    cmocka_unit_test(test_registration_refused),
    cmocka_unit_test(test_a_host_without_it),
    cmocka_unit_test(test_budget),
    cmocka_unit_test(test_budget_of_a_file),
    cmocka_unit_test(test_a_function_that_calls_back),
  };
  return run_program("functions", tests, argc, argv);
}
