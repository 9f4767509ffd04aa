/* SPDX-License-Identifier: MIT
**
** test_function_digests.c - what a plan has of the functions of the host that its recipe calls: the
** digest, through files, saved plans, queries, policies, and a reload.
*/
#include "functions.h"
#include "results.h"

#include <unistd.h>

static int64_t two = 2;

static void digest_of(const mgrid_function *f, const char *text, char digest[33]) {
  mgrid_error e = MGRID_ERROR_INIT;
  mgrid_plan *p = plan_of(f, text, &e);
  assert_string_equal(e.message, "");
  mgrid_plan_digest(p, digest);
  mgrid_plan_free(p);
}

/* The digest depends on the name and the version where the recipe's text names the function, and on
** nothing else of it. */
static void test_digest(void **unused) {
  static const char other[] =
      BUILD("  -- rack_of\n  local text = 'rack_of'\n  return topology(world)");
  static const char hidden[] =
      BUILD("  local t = topology(world)\n  local f = _ENV['rack' .. '_of']\n  return t");
  static const char later[] =
      "return recipe { build = function(world) return topology(world) end,\n"
      "  policy = { rack = function(state) return rack_of(state.rank) end } }";
  mgrid_function one = mgrid_function_of("rack_of", "1", rack_of, &four);
  mgrid_function next = mgrid_function_of("rack_of", "2", rack_of, &four);
  mgrid_function alike = mgrid_function_of("rack_of", "1", echo, NULL);
  const char *const texts[] = { by_rack, hidden, later };
  char a[33], b[33], c[33];
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

/* Functions that a base or an imported file names, or a recipe that build builds, in the order of
** their names. */
static void test_files(void **unused) {
  mgrid_function f[] = { mgrid_function_of("zone_of", "1", echo, NULL),
                         mgrid_function_of("rack_of", "1", rack_of, &four),
                         mgrid_function_of("node_of", "1", echo, NULL),
                         mgrid_function_of("rail_of", "1", echo, NULL) };
  mgrid_error e = MGRID_ERROR_INIT;
  char text[1024] = "";
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
  mgrid_runtime_load(rt, "build/fn.lua", NULL, 0, &e);
  for (int inner = 2; inner >= 0;
       inner--) { /* with the file that build loads, twice, and without: as a new runtime would */
    const char *args[] = { inner ? "inner=true" : "inner=false" };
    mgrid_plan *p = mgrid_runtime_plan(rt, 8, NULL, 1, args, &e);
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
  unlink("build/fn.lua"), unlink("build/fn_base.lua"), unlink("build/fn_helper.lua"),
      unlink("build/fn_inner.lua");
}

static void test_queries_and_policies(void **unused) {
  static const char text[] =
      "return recipe { build = function(world) local t = topology(world)\n"
      "  t.all = grid(world, 'all', { all = fill }) 'all' return t end,\n"
      "queries = { rack = function(state, q) return rack_of(q.rank or state.rank) end },\n"
      "arguments = { 'rank' },\n"
      "policy = { rack = function(state, q) return { rack_of(q.rank), rack_of(state.rank) } end } "
      "}";
  mgrid_function f = mgrid_function_of("rack_of", "1", rack_of, &four);
  mgrid_error e = MGRID_ERROR_INIT;
  char answer[32], info[4096] = "";
  int64_t racks[2];
  size_t n;
  (void)unused;
  mgrid_runtime *rt = with(&f, text, &e);
  mgrid_plan *p = mgrid_runtime_plan(rt, 8, NULL, 0, NULL, &e);
  mgrid_backend *b = mgrid_backend_dry(8, 6, &e);
  mgrid_state *s = mgrid_materialize(p, b, "s", &e);
  ask_as(MGRID_IS_JSON, rt, s, "rack", 0, NULL, answer, sizeof answer, NULL, &e);
  assert_string_equal(answer, "1");
  mgrid_arg q = mgrid_arg_integer("rank", 12);
  ask_as(MGRID_IS_JSON, rt, s, "rack", 1, &q, answer, sizeof answer, NULL, &e);
  assert_string_equal(answer, "3");
  mgrid_policy *policy = mgrid_policy_new(rt, s, "rack", &e);
  q = mgrid_arg_integer("rank", 8);
  mgrid_policy_call(policy, 1, &q, &e);
  read_integers(policy, NULL, 2, racks, &n, &e);
  assert_string_equal(e.message, "");
  assert_int_equal(racks[0], 2);
  assert_int_equal(racks[1], 1);
  q = mgrid_arg_text("rank", "8");
  assert_int_equal(mgrid_policy_call(policy, 1, &q, &e), MGRID_BAD_VALUE);
  assert_string_equal(e.message, "r:5: rack_of: bad value");
  mgrid_runtime_describe(rt, false, put_text, info, anew(&e));
  assert_non_null(
      strstr(info, "\nfunctions of the host\n  rack_of                              version 1\n"));
  mgrid_policy_free(policy);
  mgrid_state_free(s);
  mgrid_backend_free(b);
  mgrid_plan_free(p);
  mgrid_runtime_free(rt);
}

/* A saved plan needs no function, and its digest is that of the plan. */
static void test_saved(void **unused) {
  mgrid_function f = mgrid_function_of("rack_of", "1 = one", rack_of, &four);
  mgrid_error e = MGRID_ERROR_INIT;
  char saved[4096] = "", text[1024] = "", a[33], b[33], difference[1024] = "";
  (void)unused;
  mgrid_plan *p = plan_of(&f, by_rack, &e);
  mgrid_plan_save(p, put_text, saved, &e);
  mgrid_plan *again = mgrid_plan_read(saved, strlen(saved), "saved", &e);
  assert_string_equal(e.message, "");
  mgrid_plan_digest(p, a), mgrid_plan_digest(again, b);
  assert_string_equal(a, b);
  mgrid_plan_free(again);
  f.version = "2";
  mgrid_plan *other = plan_of(&f, by_rack, &e),
             *without = plan_of(NULL, BUILD("  return topology(world)"), &e);
  mgrid_plan_diff(p, other, 0, NULL, put_text, difference, &e);
  assert_non_null(
      strstr(difference, "~ function rack_of: 1 = one -> 2\n1 of 1 family as before\n"));
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
    { "\"function\": \"2a\", \"version\": \"1\"", "saved: rules[1]: '2a' is not a function name" },
    { "\"function\": \"rack_of\", \"version\": \"\"",
      "saved: rules[1]: the version of function 'rack_of' is one line of text" },
    { "\"function\": \"rack_of\"",
      "saved: rules[1].version: a text expected, but it is not there" },
    { "\"function\": \"a\", \"version\": \"1\"}, {\"function\": \"a\", \"version\": \"1\"",
      "saved: rules[2]: the topology already has a function 'a'" },
  };
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    snprintf(text, sizeof text, "{\"format\": 1, \"rules\": [{\"world\": 8}, {%s}]}", bad[i][0]);
    assert_null(mgrid_plan_read(text, strlen(text), "saved", anew(&e)));
    if (strncmp(e.message, bad[i][1], strlen(bad[i][1])) != 0)
      fail_msg("%s: %s", bad[i][0], e.message);
  }
}

static void test_open_and_reload(void **unused) {
  mgrid_function f[] = { mgrid_function_of("rack_of", "1", rack_of, &two),
                         mgrid_function_of("echo", "1", echo, NULL) };
  mgrid_open_options o = MGRID_OPEN_OPTIONS_INIT;
  mgrid_error e = MGRID_ERROR_INIT;
  mgrid_runtime *rt;
  mgrid_state *again;
  mgrid_change change = MGRID_CHANGE_INIT;
  (void)unused;
  mgrid_backend *b = mgrid_backend_dry(8, 6, &e);
  o.text = by_rack, o.length = sizeof by_rack - 1, o.functions = f, o.nfunctions = 2;
  mgrid_state *s = mgrid_open(b, "r", 0, NULL, &o, &e);
  assert_string_equal(e.message, "");
  assert_int_equal(mgrid_group_size(mgrid_state_group(s, "rack", &e)), 2);
  mgrid_reload(mgrid_state_runtime(s), s, NULL, 0, NULL, &again, &change, &e);
  rt = mgrid_runtime_ref(mgrid_state_runtime(again));
  assert_string_equal(e.message, "");
  assert_int_equal(change.kept, 1);
  mgrid_state_free(again);
  mgrid_runtime_free(rt);
  mgrid_state_free(s);
  f[1].name = "rack_of";
  assert_null(mgrid_open(b, "r", 0, NULL, &o, &e));
  assert_string_equal(
      e.message,
      "the runtime has a function 'rack_of' already, of version 1 (while loading the recipe)");
  o.functions = NULL;
  assert_null(mgrid_open(b, "r", 0, NULL, &o, anew(&e)));
  assert_string_equal(e.message, "the list of 2 functions is NULL (while loading the recipe)");
  mgrid_backend_free(b);
}

int main(int argc, char **argv) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_digest),
    cmocka_unit_test(test_files),
    cmocka_unit_test(test_queries_and_policies),
    cmocka_unit_test(test_saved),
    cmocka_unit_test(test_open_and_reload),
  };
  return run_program("function_digests", tests, argc, argv);
}
