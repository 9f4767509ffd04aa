/* SPDX-License-Identifier: MIT
**
** test_functions.c - functions of the host that recipes call: values in and out, refusals, budgets, and what a plan has of
** them.
*/
#include "program.h"

#include "moongrid.h"

#include <unistd.h>

/* ------------------------------------------------------------- functions of a host */

static mgrid_status rack_of(void *ud, size_t n, const mgrid_arg *args, mgrid_arg *result, mgrid_error *err) {
  (void)err;
  if (n != 1 || args[0].kind != MGRID_IS_INTEGER) return MGRID_BAD_VALUE;
  *result = mgrid_arg_integer(NULL, args[0].as.integer / *(int64_t *)ud);
  return MGRID_OK;
}

/* Return its first argument. */
static mgrid_status echo(void *ud, size_t n, const mgrid_arg *args, mgrid_arg *result, mgrid_error *err) {
  (void)ud, (void)err;
  if (n > 0) *result = args[0];
  return MGRID_OK;
}

typedef struct failure {
  mgrid_status status;
  const char  *message;
} failure;

static mgrid_status fails(void *ud, size_t n, const mgrid_arg *args, mgrid_arg *result, mgrid_error *err) {
  const failure *f = ud;
  (void)n, (void)args, (void)result;
  if (f->message) {
    err->status = f->status;
    snprintf(err->message, sizeof err->message, "%s", f->message);
  }
  return f->status;
}

/* ------------------------------------------------------------------------- helpers */

#define BUILD(lines) "return recipe { build = function(world, p)\n" lines "\nend }"

static const char by_rack[] = BUILD("  local racks = {}\n"
                                    "  for rank = 0, world.size - 1 do\n"
                                    "    local rack = rack_of(rank) + 1\n"
                                    "    racks[rack] = racks[rack] or {}\n"
                                    "    table.insert(racks[rack], rank)\n"
                                    "  end\n"
                                    "  local t = topology(world)\n"
                                    "  t.rack = world:table(racks)\n"
                                    "  return t");

static mgrid_runtime *with(const mgrid_function *f, const char *text, mgrid_error *e) {
  mgrid_runtime *rt = mgrid_runtime_new(NULL, NULL, e);
  if (f) mgrid_runtime_function(rt, f, e);
  if (!e->status) mgrid_runtime_load_text(rt, text, strlen(text), "r", e);
  return rt;
}

static int put_text(void *ud, const char *text, size_t len) {
  strncat(ud, text, len);
  return 0;
}

static mgrid_plan *plan_of(const mgrid_function *f, const char *text, mgrid_error *e) {
  mgrid_runtime *rt = with(f, text, e);
  mgrid_plan    *p = e->status ? NULL : mgrid_runtime_plan(rt, 8, 0, NULL, e);
  mgrid_runtime_free(rt);
  return p;
}

static void expect(const mgrid_function *f, const char *text, mgrid_status status, const char *message) {
  mgrid_error e = MGRID_ERROR_INIT;
  mgrid_plan *p = plan_of(f, text, &e);
  mgrid_plan_free(p);
  assert_string_equal(e.message, message);
  assert_int_equal(e.status, status);
}

static int64_t four = 4, two = 2;

/* --------------------------------------------------------------------------- tests */

static void test_build(void **unused) {
  mgrid_function f = mgrid_function_of("rack_of", "cluster 2026-11", rack_of, &four);
  mgrid_error    e = MGRID_ERROR_INIT;
  char           text[1024] = "", json[4096] = "";
  (void)unused;
  mgrid_plan *p = plan_of(&f, by_rack, &e);
  assert_string_equal(e.message, "");
  mgrid_plan_print(p, put_text, text, &e);
  assert_string_equal(text, "moongrid 1\nworld 8\nfunction rack_of = cluster 2026-11\nfamily rack: (4:1) x (2:4)\n");
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
    char        text[1024];
    mgrid_error e = MGRID_ERROR_INIT;
    snprintf(text, sizeof text,
             "local function equal(a, b)\n"
             "  if type(a) ~= 'table' or type(b) ~= 'table' then return a == b and math.type(a) == math.type(b) end\n"
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

static mgrid_status check_kinds(void *ud, size_t n, const mgrid_arg *args, mgrid_arg *result, mgrid_error *err) {
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
  expect(&f, BUILD("  look(nil, { 5, 6 }, { 1, 0.5 }, { 'a', true }, { b = 1, a = 2 }, {})\n  return topology(world)"),
         MGRID_OK, "");
}

#define NOT_PLAIN "; it takes plain values: finite numbers, text in UTF-8, true, false, nil, lists, tables by name"

static void test_arguments_refused(void **unused) {
  static const struct {
    const char *argument, *message;
  } cases[] = {
    { "world", "r:2: echo: argument 1 is a World" NOT_PLAIN },
    { "1, grid(world, 'a', { a = fill })", "r:2: echo: argument 2 is a Grid" NOT_PLAIN },
    { "function() end", "r:2: echo: argument 1 is a function" NOT_PLAIN },
    { "{ function() end }", "r:2: echo: argument 1 is a table of other values" NOT_PLAIN },
    { "{ 1, a = 2 }", "r:2: echo: argument 1 is a table of other values" NOT_PLAIN },
    { "{ [3] = 1 }", "r:2: echo: argument 1 is a table of other values" NOT_PLAIN },
    { "1 / 0", "r:2: echo: argument 1 is a number" NOT_PLAIN },
    { "'\\xff'", "r:2: echo: argument 1 is a string" NOT_PLAIN },
    { "'a\\0b'", "r:2: echo: a text has a zero byte in it" },
    { "{ 'a\\0b' }", "r:2: echo: a text has a zero byte in it" },
    { "p", "r:2: echo: a table that is to be read, such as p, is no argument" },
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
  static failure    cases[] = { { MGRID_BAD_VALUE, NULL },
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
  expect(&f, text, MGRID_REFUSED, "r:2: fails: it returned 7, which is no status");
  f.ud = &cases[1]; /* a recipe may catch it */
  expect(&f, BUILD("  assert(not pcall(fails))\n  return topology(world)"), MGRID_OK, "");
}

static mgrid_status bad_result(void *ud, size_t n, const mgrid_arg *args, mgrid_arg *result, mgrid_error *err) {
  (void)n, (void)args, (void)err;
  *result = *(mgrid_arg *)ud;
  return MGRID_OK;
}

static void test_results_refused(void **unused) {
  static const char text[] = BUILD("  bad()\n  return topology(world)");
  mgrid_arg         nothing = MGRID_ARG_INIT, loop = mgrid_arg_list(NULL, 1, NULL), result;
  mgrid_function    f = mgrid_function_of("bad", "1", bad_result, &result);
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

static void refused(mgrid_runtime *rt, const mgrid_function *f, mgrid_status status, const char *message) {
  mgrid_error e = MGRID_ERROR_INIT;
  assert_int_equal(mgrid_runtime_function(rt, f, &e), status);
  assert_string_equal(e.message, message);
}

static void test_registration_refused(void **unused) {
  mgrid_error    e = MGRID_ERROR_INIT;
  mgrid_runtime *rt = mgrid_runtime_new(NULL, NULL, &e);
  mgrid_function f = mgrid_function_of("echo", "1", echo, NULL);
  (void)unused;
  static const char *const not_names[] = { "", "2a", "a-b", "a name", "of_more_than_thirty_one_characters" };
  for (size_t i = 0; i < sizeof not_names / sizeof *not_names; i++) {
    char message[200];
    snprintf(message, sizeof message,
             "'%s' is not a function name (a letter or _, then letters, digits or _; at most 31)", not_names[i]);
    f.name = not_names[i];
    refused(rt, &f, MGRID_BAD_VALUE, message);
  }
  static const char *const taken[] = { "grid", "recipe", "print", "end", "goto",
                                       "math", "load",   "_ENV",  "_G",  "topology" };
  for (size_t i = 0; i < sizeof taken / sizeof *taken; i++) {
    char message[200];
    snprintf(message, sizeof message,
             "'%s' is a word of recipes or of Lua already: a function of the host has another name", taken[i]);
    f.name = taken[i];
    refused(rt, &f, MGRID_DUPLICATE, message);
  }
  f.name = NULL;
  refused(rt, &f, MGRID_USAGE, "the name of a function is NULL");
  f.name = "echo", f.version = NULL;
  refused(rt, &f, MGRID_USAGE, "the version of a function is NULL");
  f.version = "";
  refused(rt, &f, MGRID_BAD_VALUE,
          "the version of function 'echo' is one line of text in UTF-8, without control characters");
  f.version = "1\nfamily x: (8:1)";
  refused(rt, &f, MGRID_BAD_VALUE,
          "the version of function 'echo' is one line of text in UTF-8, without control characters");
  f.version = "1", f.work = -1;
  refused(rt, &f, MGRID_OUT_OF_RANGE, "the work of function 'echo' is 0 or more, not -1");
  f.work = 1, f.call = NULL;
  refused(rt, &f, MGRID_USAGE, "the function is NULL");
  f.call = echo, f.size = 0;
  refused(rt, &f, MGRID_BAD_STRUCT, "mgrid_function without its INIT macro (size 0)");
  f.size = sizeof f, f.arg_size = 8;
  refused(rt, &f, MGRID_BAD_STRUCT, "arg_size of function 'echo' is sizeof(mgrid_arg), not 8");
  f.arg_size = sizeof(mgrid_arg);
  assert_int_equal(mgrid_runtime_function(rt, &f, &e), MGRID_OK);
  refused(rt, &f, MGRID_DUPLICATE, "the runtime has a function 'echo' already, of version 1");
  assert_int_equal(mgrid_runtime_load(rt, "none", anew(&e)), MGRID_UNKNOWN_NAME);
  f.name = "other";
  refused(rt, &f, MGRID_NOT_NOW, "functions of the host are registered before the recipe is loaded");
  assert_int_equal(mgrid_runtime_load(rt, "picotron", anew(&e)), MGRID_OK);
  refused(rt, &f, MGRID_NOT_NOW, "functions of the host are registered before the recipe is loaded");
  mgrid_runtime_free(rt);
}

static void test_a_host_without_it(void **unused) {
  mgrid_function f = mgrid_function_of("rank_of", "1", echo, NULL);
  (void)unused;
  expect(NULL, by_rack, MGRID_UNKNOWN_NAME,
         "r:4: undefined global 'rack_of': neither a word of recipes nor a function that this program has registered");
  expect(&f, by_rack, MGRID_UNKNOWN_NAME, "r:4: undefined global 'rack_of'; nearest is 'rank_of'");
  expect(&f, BUILD("  rank_of = 1"), MGRID_REFUSED, "r:2: assignment to global 'rank_of': use 'local'");
}

static void test_budget(void **unused) {
  mgrid_limits      few = MGRID_LIMITS_INIT;
  mgrid_error       e = MGRID_ERROR_INIT;
  mgrid_function    f = mgrid_function_of("echo", "1", echo, NULL);
  static const char text[] = BUILD("  for i = 1, 1000 do echo(i) end\n  return topology(world)");
  (void)unused;
  few.instructions = 200000;
  for (int dear = 0; dear < 2; dear++) {
    f.work = dear ? 200 : 100;
    mgrid_runtime *rt = mgrid_runtime_new(&few, NULL, &e);
    mgrid_runtime_function(rt, &f, &e);
    mgrid_runtime_load_text(rt, text, sizeof text - 1, "r", &e);
    mgrid_plan *p = mgrid_runtime_plan(rt, 8, 0, NULL, &e);
    assert_string_equal(e.message, dear ? "r:2: the recipe runs for more than 200000 instructions" : "");
    mgrid_plan_free(p);
    mgrid_runtime_free(rt);
  }
}

static void digest_of(const mgrid_function *f, const char *text, char digest[33]) {
  mgrid_error e = MGRID_ERROR_INIT;
  mgrid_plan *p = plan_of(f, text, &e);
  assert_string_equal(e.message, "");
  mgrid_plan_digest(p, digest);
  mgrid_plan_free(p);
}

/* The digest depends on the name and the version where the recipe's text names the function, and on nothing else of it. */
static void test_digest(void **unused) {
  static const char other[] = BUILD("  -- rack_of\n  local text = 'rack_of'\n  return topology(world)");
  static const char hidden[] = BUILD("  local t = topology(world)\n  local f = _ENV['rack' .. '_of']\n  return t");
  static const char later[] = "return recipe { build = function(world) return topology(world) end,\n"
                              "  policy = { rack = function(state) return rack_of(state.rank) end } }";
  mgrid_function    one = mgrid_function_of("rack_of", "1", rack_of, &four);
  mgrid_function    next = mgrid_function_of("rack_of", "2", rack_of, &four);
  mgrid_function    alike = mgrid_function_of("rack_of", "1", echo, NULL);
  const char *const texts[] = { by_rack, hidden, later };
  char              a[33], b[33], c[33];
  (void)unused;
  for (size_t i = 0; i < 3; i++) {
    digest_of(&one, texts[i], a), digest_of(&next, texts[i], b);
    assert_string_not_equal(a, b);
  }
  digest_of(&one, later, a), digest_of(&alike, later, b);
  assert_string_equal(a, b);
  digest_of(&one, other, a), digest_of(&next, other, b), digest_of(NULL, other, c);
  assert_string_equal(a, b);
  assert_string_equal(a, c);
}

static void write_file(const char *path, const char *text) {
  FILE *file = fopen(path, "w");
  assert_non_null(file);
  fputs(text, file);
  fclose(file);
}

/* Functions that a base or an imported file names, or a recipe that build builds, in the order of their names. */
static void test_files(void **unused) {
  mgrid_function f[] = { mgrid_function_of("zone_of", "1", echo, NULL),
                         mgrid_function_of("rack_of", "1", rack_of, &four),
                         mgrid_function_of("node_of", "1", echo, NULL), mgrid_function_of("rail_of", "1", echo, NULL) };
  mgrid_error    e = MGRID_ERROR_INIT;
  char           text[1024] = "";
  (void)unused;
  write_file("build/fn_base.lua", by_rack);
  write_file("build/fn_helper.lua", "return { zone = function(r) return zone_of(r) end }");
  write_file("build/fn_inner.lua", BUILD("  local r = rail_of(1)\n  return topology(world)"));
  write_file("build/fn.lua", "local h = recipe.import './fn_helper.lua'\n"
                             "return recipe { base = './fn_base.lua', params = { inner = false },\n"
                             "  build = function(world, p, t)\n"
                             "    if p.inner then recipe './fn_inner.lua'.build(world, {}) end\n"
                             "    return t\n"
                             "  end }");
  mgrid_runtime *rt = mgrid_runtime_new(NULL, NULL, &e);
  for (size_t i = 0; i < 4; i++) mgrid_runtime_function(rt, &f[i], &e);
  mgrid_runtime_load(rt, "build/fn.lua", &e);
  for (int inner = 2; inner >= 0;
       inner--) { /* with the file that build loads, twice, and without: as a new runtime would */
    const char *args[] = { inner ? "inner=true" : "inner=false" };
    mgrid_plan *p = mgrid_runtime_plan(rt, 8, 1, args, &e);
    assert_string_equal(e.message, "");
    *text = '\0';
    mgrid_plan_print(p, put_text, text, &e);
    char expected[300];
    snprintf(expected, sizeof expected,
             "moongrid 1\nworld 8\nparam inner = %s\nfunction rack_of = 1\n%sfunction zone_of = 1\n"
             "family rack: (4:1) x (2:4)\n",
             inner ? "true" : "false", inner ? "function rail_of = 1\n" : "");
    assert_string_equal(text, expected);
    mgrid_plan_free(p);
  }
  mgrid_runtime_free(rt);
  unlink("build/fn.lua"), unlink("build/fn_base.lua"), unlink("build/fn_helper.lua"), unlink("build/fn_inner.lua");
}

static void test_queries_and_policies(void **unused) {
  static const char text[] =
      "return recipe { build = function(world) local t = topology(world)\n"
      "  t.all = grid(world, 'all', { all = fill }) 'all' return t end,\n"
      "queries = { rack = function(state, q) return rack_of(q.rank or state.rank) end },\n"
      "arguments = { 'rank' },\n"
      "policy = { rack = function(state, q) return { rack_of(q.rank), rack_of(state.rank) } end } }";
  mgrid_function f = mgrid_function_of("rack_of", "1", rack_of, &four);
  mgrid_error    e = MGRID_ERROR_INIT;
  char           answer[32], info[4096] = "";
  int64_t        racks[2];
  size_t         n;
  (void)unused;
  mgrid_runtime *rt = with(&f, text, &e);
  mgrid_plan    *p = mgrid_runtime_plan(rt, 8, 0, NULL, &e);
  mgrid_backend *b = mgrid_backend_dry(8, 6, &e);
  mgrid_state   *s = mgrid_materialize(p, b, "s", &e);
  mgrid_runtime_ask(rt, s, "rack", 0, NULL, answer, sizeof answer, NULL, &e);
  assert_string_equal(answer, "1");
  mgrid_arg q = mgrid_arg_integer("rank", 12);
  mgrid_runtime_ask(rt, s, "rack", 1, &q, answer, sizeof answer, NULL, &e);
  assert_string_equal(answer, "3");
  mgrid_policy *policy = mgrid_policy_new(rt, s, "rack", &e);
  q = mgrid_arg_integer("rank", 8);
  mgrid_policy_call(policy, 1, &q, &e);
  mgrid_policy_integers(policy, NULL, 2, racks, &n, &e);
  assert_string_equal(e.message, "");
  assert_int_equal(racks[0], 2);
  assert_int_equal(racks[1], 1);
  q = mgrid_arg_text("rank", "8");
  assert_int_equal(mgrid_policy_call(policy, 1, &q, &e), MGRID_BAD_VALUE);
  assert_string_equal(e.message, "r:5: rack_of: bad value");
  mgrid_runtime_describe(rt, false, put_text, info, anew(&e));
  assert_non_null(strstr(info, "\nfunctions of the host\n  rack_of                              version 1\n"));
  mgrid_policy_free(policy);
  mgrid_state_free(s);
  mgrid_backend_free(b);
  mgrid_plan_free(p);
  mgrid_runtime_free(rt);
}

/* A saved plan needs no function, and its digest is that of the plan. */
static void test_saved(void **unused) {
  mgrid_function f = mgrid_function_of("rack_of", "1 = one", rack_of, &four);
  mgrid_error    e = MGRID_ERROR_INIT;
  char           saved[4096] = "", text[1024] = "", a[33], b[33], difference[1024] = "";
  (void)unused;
  mgrid_plan *p = plan_of(&f, by_rack, &e);
  mgrid_plan_save(p, put_text, saved, &e);
  mgrid_plan_print(p, put_text, text, &e);
  for (int i = 0; i < 2; i++) {
    const char *from = i ? text : saved;
    mgrid_plan *again = mgrid_plan_read(from, strlen(from), "saved", &e);
    assert_string_equal(e.message, "");
    mgrid_plan_digest(p, a), mgrid_plan_digest(again, b);
    assert_string_equal(a, b);
    mgrid_plan_free(again);
  }
  f.version = "2";
  mgrid_plan *other = plan_of(&f, by_rack, &e), *without = plan_of(NULL, BUILD("  return topology(world)"), &e);
  mgrid_plan_diff(p, other, 0, NULL, put_text, difference, &e);
  assert_non_null(strstr(difference, "~ function rack_of: 1 = one -> 2\n1 of 1 family as before\n"));
  *difference = '\0';
  mgrid_plan_diff(p, without, 0, NULL, put_text, difference, &e);
  assert_non_null(strstr(difference, "- function rack_of: 1 = one\n"));
  *difference = '\0';
  mgrid_plan_diff(without, p, 0, NULL, put_text, difference, &e);
  assert_non_null(strstr(difference, "+ function rack_of: 1 = one\n"));
  mgrid_plan_free(without);
  mgrid_plan_free(other);
  mgrid_plan_free(p);
  static const char *const bad[][2] = {
    { "function 2a = 1", "saved:3: '2a' is not a function name" },
    { "function rack_of = ", "saved:3: the version of function 'rack_of' is one line of text" },
    { "function rack_of", "saved:3: it ends where ' = ' is expected" },
  };
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    snprintf(text, sizeof text, "moongrid 1\nworld 8\n%s\n", bad[i][0]);
    assert_null(mgrid_plan_read(text, strlen(text), "saved", anew(&e)));
    if (strncmp(e.message, bad[i][1], strlen(bad[i][1])) != 0) fail_msg("%s: %s", bad[i][0], e.message);
  }
}

static void test_open_and_reload(void **unused) {
  mgrid_function f[] = { mgrid_function_of("rack_of", "1", rack_of, &two), mgrid_function_of("echo", "1", echo, NULL) };
  mgrid_open_options o = MGRID_OPEN_OPTIONS_INIT;
  mgrid_error        e = MGRID_ERROR_INIT;
  mgrid_runtime     *rt;
  mgrid_state       *again;
  mgrid_change       change = MGRID_CHANGE_INIT;
  (void)unused;
  mgrid_backend *b = mgrid_backend_dry(8, 6, &e);
  o.text = by_rack, o.length = sizeof by_rack - 1, o.functions = f, o.nfunctions = 2;
  mgrid_state *s = mgrid_open(b, "r", 0, NULL, &o, &e);
  assert_string_equal(e.message, "");
  assert_int_equal(mgrid_group_size(mgrid_state_group(s, "rack", &e)), 2);
  mgrid_reload(mgrid_state_runtime(s), s, NULL, 0, NULL, &rt, &again, &change, &e);
  assert_string_equal(e.message, "");
  assert_int_equal(change.kept, 1);
  mgrid_state_free(again);
  mgrid_runtime_free(rt);
  mgrid_state_free(s);
  f[1].name = "rack_of";
  assert_null(mgrid_open(b, "r", 0, NULL, &o, &e));
  assert_string_equal(e.message,
                      "the runtime has a function 'rack_of' already, of version 1 (while loading the recipe)");
  o.functions = NULL;
  assert_null(mgrid_open(b, "r", 0, NULL, &o, anew(&e)));
  assert_string_equal(e.message, "the list of 2 functions is NULL (while loading the recipe)");
  mgrid_backend_free(b);
}

static mgrid_runtime *in_use;

static mgrid_status call_back(void *ud, size_t n, const mgrid_arg *args, mgrid_arg *result, mgrid_error *err) {
  (void)n, (void)args, (void)result;
  mgrid_plan_free(mgrid_runtime_plan(in_use, 8, 0, NULL, err));
  return *(mgrid_status *)ud = err->status;
}

static void test_a_function_that_calls_back(void **unused) {
  mgrid_status   status = MGRID_OK;
  mgrid_error    e = MGRID_ERROR_INIT;
  mgrid_function f = mgrid_function_of("back", "1", call_back, &status);
  (void)unused;
  in_use = with(&f, BUILD("  back()\n  return topology(world)"), &e);
  assert_null(mgrid_runtime_plan(in_use, 8, 0, NULL, &e));
  assert_int_equal(status, MGRID_NOT_NOW);
  assert_string_equal(e.message,
                      "r:2: back: a hook or a function of the host runs in it, and neither may call moongrid");
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
    cmocka_unit_test(test_digest),
    cmocka_unit_test(test_files),
    cmocka_unit_test(test_queries_and_policies),
    cmocka_unit_test(test_saved),
    cmocka_unit_test(test_open_and_reload),
    cmocka_unit_test(test_a_function_that_calls_back),
  };
  return run_program("functions", tests, argc, argv);
}
