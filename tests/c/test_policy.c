/* SPDX-License-Identifier: MIT
**
** test_policy.c - policies: typed arguments, typed results, and every error; after each error the
** policy works as before.
*/
#include "random.h"

#include "comm/state.h"
#include "recipe/values.h"
#include "results.h"

#include <math.h>
#include <stdio.h>
#include <unistd.h>

static const char recipe[] =
    "return recipe {\n"
    "  params = { tp = 2, depth = 6 },\n"
    "  build = function(world, p)\n"
    "    local g = grid(world, 'tp-dp', { tp = p.tp, dp = fill })\n"
    "    local t = topology(world)\n"
    "    t.dense = g\n"
    "    t.tp, t.dp = g 'tp', g 'dp'\n"
    "    return t\n"
    "  end,\n"
    "  policy = {\n"
    "    microbatches = function(state, q) return q.global_batch // state.dp.size end,\n"
    "    echo = function(_, q) return q end,\n"
    "    value = function(_, q) return q.value end,\n"
    "    layers = function(_, q, p)\n"
    "      local list = {}\n"
    "      for stage = 1, q.stages do list[stage] = p.depth // q.stages end\n"
    "      return { layers = list, name = '1f1b', warm = true, rate = 0.5, none = {} }\n"
    "    end,\n"
    "    raises = function() error 'not today' end,\n"
    "    loops = function() while true do end end,\n"
    "    eats = function() local t = {} for i = 1, math.huge do t[i] = {} end end,\n"
    "    leaks = function(state) return state end,\n"
    "    talks = function(state) return state:prove() end,\n"
    "    sees = function(state) return { state.rank, state.world, state.dense.tp, "
    "state.tp.size, state.dp:at(0) } end,\n"
    "    by_tp = function(state) return state.rank end,\n"
    "    throws = function() error { code = 3 } end,\n"
    "    closes = function(state) state:close() end,\n"
    "    gives = function(state) return state.machine end,\n"
    "    writes = function(state) table.insert(state.machine, 7) end,\n"
    "    assigns = function(state) state.rank = 3 end,\n"
    "    wholes = function() return { 1.0, 2.0, 1 << 40 } end,\n"
    "    split = policies.layers(),\n"
    "    nan = function() return 0 / 0 end,\n"
    "  },\n"
    "  agreed = { by_tp = 'tp', microbatches = 'world', nan = 'world' },\n"
    "}\n";

typedef struct fixture {
  char path[64];
  mgrid_runtime *rt;
  mgrid_plan *plan;
  mgrid_backend *backend;
  mgrid_state *state;
} fixture;

static mgrid_error why = MGRID_ERROR_INIT;

static void write_recipe(const char *path, const char *text) {
  FILE *file = fopen(path, "w");
  assert_non_null(file);
  fputs(text, file);
  fclose(file);
}

static int set_up(void **state) {
  fixture *f = calloc(1, sizeof *f);
  mgrid_limits limits = MGRID_LIMITS_INIT;
  limits.instructions = 2000000;
  limits.memory = (size_t)4 << 20;
  snprintf(f->path, sizeof f->path, "/tmp/policy-%d.lua", (int)getpid());
  write_recipe(f->path, recipe);
  f->rt = mgrid_runtime_new(&limits, NULL, anew(&why));
  assert_int_equal(mgrid_runtime_load(f->rt, f->path, NULL, 0, anew(&why)), MGRID_OK);
  f->plan = mgrid_runtime_plan(f->rt, 8, NULL, 0, NULL, anew(&why));
  f->backend = mgrid_backend_dry(8, 5, anew(&why));
  f->state = mgrid_materialize(f->plan, f->backend, NULL, anew(&why));
  assert_non_null(f->state);
  *state = f;
  return 0;
}

static int tear_down(void **state) {
  fixture *f = *state;
  mgrid_state_free(f->state);
  mgrid_backend_free(f->backend);
  mgrid_plan_free(f->plan);
  mgrid_runtime_free(f->rt);
  unlink(f->path);
  free(f);
  return 0;
}

static mgrid_policy *policy(void **state, const char *name) {
  fixture *f = *state;
  mgrid_policy *p = mgrid_policy_new(f->rt, f->state, name, anew(&why));
  if (!p) fail_msg("%s", why.message);
  return p;
}

/* ------------------------------------------------------------------------- tests */

static void test_numbers(void **state) {
  mgrid_policy *p = policy(state, "microbatches");
  int64_t n = 0;
  mgrid_arg q = mgrid_arg_integer("global_batch", 64);
  for (q.as.integer = 4; q.as.integer < 4000; q.as.integer += 4) {
    assert_int_equal(mgrid_policy_call(p, 1, &q, anew(&why)), MGRID_OK);
    assert_int_equal(read_integer(p, NULL, &n, anew(&why)), MGRID_OK);
    assert_int_equal(n, q.as.integer / 4);
  }
  mgrid_policy_free(p);
}

static void test_every_kind(void **state) {
  mgrid_policy *p = policy(state, "echo");
  const int64_t ints[] = { 3, -1, INT64_MAX };
  const double nums[] = { 0.5, 2 };
  const mgrid_arg inner[] = { mgrid_arg_integer("deep", 7) };
  const mgrid_arg args[] = {
    mgrid_arg_boolean("yes", true),      mgrid_arg_integer("count", INT64_MIN),
    mgrid_arg_number("rate", 0.1),       mgrid_arg_text("text", "a b"),
    mgrid_arg_integers("ints", 3, ints), mgrid_arg_numbers("nums", 2, nums),
    mgrid_arg_table("table", 1, inner),  mgrid_arg_of("nothing", MGRID_IS_NONE)
  };
  bool yes = false;
  int64_t count = 0, list[4];
  double rate = 0, numbers[4];
  const char *text = NULL;
  size_t n = 9;
  assert_int_equal(mgrid_policy_call(p, 8, args, anew(&why)), MGRID_OK);
  assert_int_equal(kind_of(p, NULL), MGRID_IS_TABLE);
  assert_int_equal(kind_of(p, "nothing"), MGRID_IS_NONE);
  assert_int_equal(kind_of(p, "ints"), MGRID_IS_INTEGERS);
  assert_int_equal(kind_of(p, "nums"), MGRID_IS_NUMBERS);
  assert_int_equal(kind_of(p, "table"), MGRID_IS_TABLE);
  assert_int_equal(read_boolean(p, "yes", &yes, anew(&why)), MGRID_OK);
  assert_int_equal(read_integer(p, "count", &count, anew(&why)), MGRID_OK);
  assert_int_equal(read_number(p, "rate", &rate, anew(&why)), MGRID_OK);
  assert_int_equal(read_text(p, "text", &text, anew(&why)), MGRID_OK);
  assert_true(yes && count == INT64_MIN && rate == 0.1);
  assert_string_equal(text, "a b");
  /* what there is room for */
  assert_int_equal(read_integers(p, "ints", 2, list, &n, anew(&why)), MGRID_OK);
  assert_true(n == 3 && list[0] == 3 && list[1] == -1);
  assert_int_equal(read_numbers(p, "nums", 4, numbers, &n, anew(&why)), MGRID_OK);
  assert_true(n == 2 && numbers[0] == 0.5 && numbers[1] == 2);
  /* integers are numbers */
  assert_int_equal(read_numbers(p, "ints", 4, numbers, &n, anew(&why)), MGRID_OK);
  assert_int_equal(read_number(p, "count", &rate, anew(&why)), MGRID_OK);
  mgrid_policy_free(p);
}

static void test_tables(void **state) {
  mgrid_policy *p = policy(state, "layers");
  mgrid_arg q = mgrid_arg_integer("stages", 2);
  int64_t layers[4] = { 0 };
  size_t n = 0;
  assert_int_equal(mgrid_policy_call(p, 1, &q, anew(&why)), MGRID_OK);
  assert_int_equal(read_integers(p, "layers", 4, layers, &n, anew(&why)), MGRID_OK);
  assert_true(n == 2 && layers[0] == 3 && layers[1] == 3);
  /* {} is an empty list, too */
  assert_int_equal(read_integers(p, "none", 4, layers, &n, anew(&why)), MGRID_OK);
  assert_int_equal(n, 0);
  mgrid_policy_free(p);
}

static void refused(mgrid_policy *p, mgrid_status s, mgrid_status want, const char *text) {
  (void)p;
  assert_int_equal(s, want);
  if (!strstr(why.message, text)) fail_msg("\"%s\" is not in \"%s\"", text, why.message);
}

/* A list of numbers that are whole is one of integers as well. */
static void test_whole_numbers(void **state) {
  mgrid_policy *p = policy(state, "wholes");
  int64_t list[2] = { 0 };
  size_t n = 0;
  assert_int_equal(mgrid_policy_call(p, 0, NULL, anew(&why)), MGRID_OK);
  assert_int_equal(kind_of(p, NULL), MGRID_IS_NUMBERS);
  assert_int_equal(read_integers(p, NULL, 2, list, &n, anew(&why)), MGRID_OK);
  assert_true(n == 3 && list[0] == 1 && list[1] == 2);
  mgrid_policy_free(p);
}

/* A bundled policy with an absurdly large argument ends by a limit, with the place of the
** policy. */
static void test_bundled_limits(void **state) {
  mgrid_policy *p = policy(state, "split");
  mgrid_arg q[] = { mgrid_arg_integer("layers", 8), mgrid_arg_integer("stages", 100000000) };
  mgrid_status s = mgrid_policy_call(p, 2, q, anew(&why));
  assert_int_equal(s, MGRID_LIMIT);
  assert_true(why.line == 32 && strstr(why.message, ".lua:32: policy 'split': the recipe "));
  q[1].as.integer = 3;
  assert_int_equal(mgrid_policy_call(p, 2, q, anew(&why)), MGRID_OK);
  assert_int_equal(kind_of(p, NULL), MGRID_IS_INTEGERS);
  /* the earlier result is gone */
  assert_int_equal(mgrid_policy_call(p, 1, q, anew(&why)), MGRID_REFUSED);
  assert_int_equal(kind_of(p, NULL), MGRID_IS_NONE);
  mgrid_policy_free(p);
}

static void test_wrong_kinds(void **state) {
  mgrid_policy *p = policy(state, "value");
  mgrid_arg q = mgrid_arg_text("value", "4");
  int64_t n = 17;
  double d;
  bool b;
  const char *t;
  assert_int_equal(mgrid_policy_call(p, 1, &q, anew(&why)), MGRID_OK);
  refused(p, read_integer(p, NULL, &n, anew(&why)), MGRID_BAD_VALUE,
          ".lua:13: policy 'value' returned text, not an integer");
  assert_int_equal(n, 0); /* never what was there before */
  refused(p, read_number(p, NULL, &d, anew(&why)), MGRID_BAD_VALUE, "returned text, not a number");
  refused(p, read_boolean(p, NULL, &b, anew(&why)), MGRID_BAD_VALUE,
          "returned text, not a boolean");
  refused(p, read_integers(p, NULL, 1, &n, NULL, anew(&why)), MGRID_BAD_VALUE,
          "returned text, not a list of integers");
  refused(p, read_integer(p, "x", &n, anew(&why)), MGRID_BAD_VALUE,
          "returned nothing at 'x', not an integer");
  q = mgrid_arg_number("value", 2.5);
  assert_int_equal(mgrid_policy_call(p, 1, &q, anew(&why)), MGRID_OK);
  refused(p, read_integer(p, NULL, &n, anew(&why)), MGRID_BAD_VALUE,
          "returned a number, not an integer");
  refused(p, read_text(p, NULL, &t, anew(&why)), MGRID_BAD_VALUE, "returned a number, not text");
  q.as.number = 3;
  assert_int_equal(mgrid_policy_call(p, 1, &q, anew(&why)), MGRID_OK);
  assert_int_equal(read_integer(p, NULL, &n, anew(&why)), MGRID_OK); /* 3.0 is one */
  assert_int_equal(n, 3);
  mgrid_policy_free(p);
}

/* Whether a call is collective is known before it. */
static void test_agreed(void **state) {
  static const char *const by[][2] = { { "nan", "world" }, { "by_tp", "tp" }, { "value", "" } };
  for (size_t i = 0; i < sizeof by / sizeof *by; i++) {
    mgrid_policy *p = policy(state, by[i][0]);
    assert_string_equal(mgrid_policy_agreed(p), by[i][1]);
    mgrid_policy_free(p);
  }
  assert_string_equal(mgrid_policy_agreed(NULL), "");
}

static void test_errors(void **state) {
  static const struct {
    const char *name, *text;
    mgrid_status status;
  } bad[] = {
    { "raises", ".lua:19: not today", MGRID_REFUSED },
    { "loops", ".lua:20: the recipe runs for more than 2000000 instructions", MGRID_LIMIT },
    { "eats", ".lua:21: the recipe needs more than 4 MiB of memory", MGRID_LIMIT },
    { "leaks", "policy 'leaks' returned a State; it can return plain values only",
      MGRID_BAD_VALUE },
    { "talks", "a query or policy cannot communicate: one rank asks it alone", MGRID_REFUSED },
    { "throws", ".lua:26: error got a table, not a message such as \"tp must be even\"",
      MGRID_REFUSED },
    { "closes", ".lua:27: a query or policy cannot close the state", MGRID_REFUSED },
    { "gives",
      ".lua:28: policy 'gives' returned a read-only table, such as p; it can return plain values "
      "only",
      MGRID_BAD_VALUE },
    { "writes", ".lua:29: this table is read-only", MGRID_REFUSED },
    { "assigns", ".lua:30: a State cannot be changed", MGRID_REFUSED },
    { "split",
      ".lua:32: policies.layers: argument 'layers', an integer of 0 to 2147483647, is missing; "
      "given: none",
      MGRID_REFUSED },
    { "nan",
      ".lua:33: policy 'nan' is agreed, and returned a value that ranks cannot compare: a number "
      "that is not finite",
      MGRID_BAD_VALUE }
  };
  mgrid_policy *good = policy(state, "value");
  mgrid_arg q = mgrid_arg_integer("value", 1);
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    mgrid_policy *p = policy(state, bad[i].name);
    for (int again = 0; again < 2; again++) {
      int64_t n = 0;
      refused(p, mgrid_policy_call(p, 0, NULL, anew(&why)), bad[i].status, bad[i].text);
      /* the runtime still works */
      assert_int_equal(mgrid_policy_call(good, 1, &q, anew(&why)), MGRID_OK);
      assert_int_equal(read_integer(good, NULL, &n, anew(&why)), MGRID_OK);
    }
    assert_int_equal(kind_of(p, NULL), MGRID_IS_NONE); /* nor a result that was not agreed on */
    mgrid_policy_call(p, 0, NULL, anew(&why));
    assert_true(why.line > 18 && strncmp(why.file, "/tmp/policy-", 12) == 0);
    mgrid_policy_free(p);
  }
  mgrid_policy_free(good);
}

static void test_look_up(void **state) {
  fixture *f = *state;
  assert_null(mgrid_policy_new(f->rt, f->state, "microbatch", anew(&why)));
  refused(NULL, why.status, MGRID_UNKNOWN_NAME,
          "unknown policy 'microbatch'; nearest is 'microbatches' (");
  assert_null(mgrid_policy_new(f->rt, NULL, "value", &why)); /* the first error stays */
  refused(NULL, why.status, MGRID_UNKNOWN_NAME,
          "unknown policy 'microbatch'; nearest is 'microbatches' (");
  assert_int_equal(mgrid_policy_call(NULL, 0, NULL, &why), MGRID_USAGE);
  refused(NULL, why.status, MGRID_UNKNOWN_NAME,
          "unknown policy 'microbatch'; nearest is 'microbatches' (");
  mgrid_runtime *other = mgrid_runtime_new(NULL, NULL, anew(&why));
  assert_null(mgrid_policy_new(other, f->state, "value", anew(&why)));
  refused(NULL, why.status, MGRID_NOT_NOW, "the runtime has no recipe");
  mgrid_runtime_load(other, "picotron", NULL, 0, anew(&why));
  assert_null(mgrid_policy_new(other, f->state, "value", anew(&why)));
  refused(NULL, why.status, MGRID_NOT_NOW,
          "the state's plan is not of this recipe (picotron) but of /tmp/policy-");
  mgrid_runtime_free(other);
  mgrid_policy_free(NULL);
}

static void test_sees_its_rank(void **state) {
  mgrid_policy *p = policy(state, "sees");
  int64_t got[5];
  size_t n;
  assert_int_equal(mgrid_policy_call(p, 0, NULL, anew(&why)), MGRID_OK);
  assert_int_equal(read_integers(p, NULL, 5, got, &n, anew(&why)), MGRID_OK);
  assert_true(n == 5 && got[0] == 5 && got[1] == 8 && got[2] == 1 && got[3] == 2 && got[4] == 1);
  mgrid_policy_free(p);
}

/* Wrong definitions of policies in a recipe. */
static void test_definitions(void **state) {
  fixture *f = *state;
  static const struct {
    const char *fields, *text;
  } bad[] = { { "policy = { rate = 3 }", "policy 'rate' is not a name with a function" },
              { "policy = { function() end }", "policy '1' is not a name with a function" },
              { "policy = 'rate'", "field 'policy' of a recipe is a table, not a string" },
              { "policy = { rate = function() end }, agreed = { rat = 'world' }",
                ":1: agreed: unknown policy 'rat'; nearest is 'rate'" },
              { "policy = { rate = function() end }, agreed = { rate = true }",
                "agreed: policy 'rate' has the name of a family, \"world\" or false, not true" },
              { "polcy = {}", "unknown field of a recipe 'polcy'; nearest is 'policy'" } };
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    char text[512];
    snprintf(text, sizeof text,
             "return recipe { build = function(world) return topology(world) end,\n%s }",
             bad[i].fields);
    write_recipe(f->path, text);
    mgrid_runtime *rt = mgrid_runtime_new(NULL, NULL, anew(&why));
    mgrid_runtime_load(rt, f->path, NULL, 0, anew(&why));
    refused(NULL, why.status, strstr(bad[i].text, "unknown ") ? MGRID_UNKNOWN_NAME : MGRID_REFUSED,
            bad[i].text);
    mgrid_runtime_free(rt);
  }
  static const struct {
    const char *by, *text;
  } groups[] = {
    { "tpp", ":1: policy 'a' is agreed: unknown family 'tpp'; nearest is 'tp' (tp, ring, world)" },
    { "ring", ":1: policy 'a' is agreed: the groups of 'ring' share ranks; name a family whose "
              "groups share none, or \"world\"" }
  };
  for (size_t i = 0; i < sizeof groups / sizeof *groups; i++) {
    char text[512];
    snprintf(text, sizeof text,
             "return recipe { build = function(world) local t, g = topology(world), grid(world, "
             "'tp', { tp = fill })\n"
             "t.tp = g 'tp' t.ring = t.tp:pairs() return t end,\n"
             "policy = { a = function() return 1 end }, agreed = { a = '%s' } }",
             groups[i].by);
    write_recipe(f->path, text);
    mgrid_runtime *rt = mgrid_runtime_new(NULL, NULL, anew(&why));
    assert_int_equal(mgrid_runtime_load(rt, f->path, NULL, 0, anew(&why)), MGRID_OK);
    assert_null(mgrid_runtime_plan(rt, 8, NULL, 0, NULL, anew(&why)));
    refused(NULL, why.status, i == 0 ? MGRID_UNKNOWN_NAME : MGRID_REFUSED, groups[i].text);
    mgrid_runtime_free(rt);
  }
}

/* What C gives is looked at before it is read: at its limits, and one beyond. */
static void test_bounds_of_arguments(void **state) {
  enum { VALUES = 1 << 18, BYTES = 1 << 22 };
  int64_t *many = calloc(VALUES, sizeof *many);
  char *text = malloc(BYTES + 1);
  mgrid_policy *p = policy(state, "echo");
  mgrid_arg q = mgrid_arg_integers("l", VALUES - 1, many), deep[18];
  const mgrid_arg none = mgrid_arg_integers("l", 3, NULL);
  assert_true(many && text);
  memset(text, 'x', BYTES);
  text[BYTES] = '\0';
  assert_int_equal(mgrid_args_check(1, &q, NULL, anew(&why)), MGRID_OK);
  q.as.integers.n = VALUES;
  refused(NULL, mgrid_args_check(1, &q, NULL, anew(&why)), MGRID_OUT_OF_RANGE,
          "arguments of more than 262144 values");
  q.as.integers.n = SIZE_MAX;
  refused(NULL, mgrid_policy_call(p, 1, &q, anew(&why)), MGRID_OUT_OF_RANGE,
          "arguments of more than 262144 values");
  refused(NULL, mgrid_policy_call(p, SIZE_MAX, &q, anew(&why)), MGRID_OUT_OF_RANGE,
          "arguments of more than 262144 values");
  refused(NULL, mgrid_policy_call(p, 1, &none, anew(&why)), MGRID_USAGE,
          "the list of 3 values of an argument is NULL");
  q = mgrid_arg_text("t", text + 1); /* and the name */
  assert_int_equal(mgrid_args_check(1, &q, NULL, anew(&why)), MGRID_OK);
  q.as.text = text;
  refused(NULL, mgrid_policy_call(p, 1, &q, anew(&why)), MGRID_OUT_OF_RANGE,
          "arguments with texts of more than 4194304 bytes");
  deep[0] = mgrid_arg_integer("n", 1);
  for (int i = 1; i < 18; i++) deep[i] = mgrid_arg_table("t", 1, &deep[i - 1]);
  assert_int_equal(mgrid_args_check(1, &deep[16], NULL, anew(&why)), MGRID_OK);
  refused(NULL, mgrid_policy_call(p, 1, &deep[17], anew(&why)), MGRID_USAGE,
          "arguments are nested more than 16 deep");
  mgrid_policy_free(p);
  free(many);
  free(text);
}

/* Parameters as C values, and as the same text. */
static void test_plan_values(void **state) {
  fixture *f = *state;
  const mgrid_arg args[] = { mgrid_arg_integer("tp", 4), mgrid_arg_integer("depth", 3) };
  const mgrid_arg twice[] = { args[0], args[0] }, none[] = { mgrid_arg_integer(NULL, 0) };
  const mgrid_arg wrong[] = { mgrid_arg_text("tp", "many") };
  const char *text[] = { "depth=3", "tp=4" };
  char a[33], b[33];
  mgrid_plan *p = mgrid_runtime_plan_values(f->rt, 8, 2, args, anew(&why)),
             *q = mgrid_runtime_plan(f->rt, 8, NULL, 2, text, anew(&why));
  assert_true(p && q);
  mgrid_plan_digest(p, a);
  mgrid_plan_digest(q, b);
  assert_string_equal(a, b);
  mgrid_plan_free(p);
  mgrid_plan_free(q);
  assert_null(mgrid_runtime_plan_values(f->rt, 8, 2, twice, anew(&why)));
  refused(NULL, why.status, MGRID_DUPLICATE, "a parameter is given twice");
  assert_null(mgrid_runtime_plan_values(f->rt, 8, 1, none, anew(&why)));
  refused(NULL, why.status, MGRID_USAGE,
          "a parameter needs a name, a kind, text in UTF-8, and finite numbers");
  const mgrid_arg unsound[] = { mgrid_arg_text("tp", "\xff"), mgrid_arg_number("tp", INFINITY),
                                mgrid_arg_of("tp", (mgrid_kind)99),
                                mgrid_arg_table("tp", 1, none) };
  for (size_t i = 0; i < sizeof unsound / sizeof unsound[0]; i++) {
    assert_null(mgrid_runtime_plan_values(f->rt, 8, 1, &unsound[i], anew(&why)));
    refused(NULL, why.status, MGRID_USAGE,
            "a parameter needs a name, a kind, text in UTF-8, and finite numbers");
  }
  assert_null(mgrid_runtime_plan_values(f->rt, 8, 1, wrong, anew(&why)));
  refused(NULL, why.status, MGRID_BAD_VALUE, "parameter 'tp' is an integer, not 'many'");
}

/* What earlier policies leave does not count against later ones. */
static void test_many_in_turn(void **state) {
  for (int i = 0; i < 20000; i++) {
    mgrid_policy *p = policy(state, "microbatches");
    mgrid_arg q = mgrid_arg_integer("global_batch", 64);
    if (mgrid_policy_call(p, 1, &q, anew(&why))) fail_msg("policy %d: %s", i, why.message);
    mgrid_policy_free(p);
  }
}

int main(int argc, char **argv) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(test_numbers, set_up, tear_down),
    cmocka_unit_test_setup_teardown(test_every_kind, set_up, tear_down),
    cmocka_unit_test_setup_teardown(test_tables, set_up, tear_down),
    cmocka_unit_test_setup_teardown(test_whole_numbers, set_up, tear_down),
    cmocka_unit_test_setup_teardown(test_bundled_limits, set_up, tear_down),
    cmocka_unit_test_setup_teardown(test_wrong_kinds, set_up, tear_down),
    cmocka_unit_test_setup_teardown(test_agreed, set_up, tear_down),
    cmocka_unit_test_setup_teardown(test_bounds_of_arguments, set_up, tear_down),
    cmocka_unit_test_setup_teardown(test_errors, set_up, tear_down),
    cmocka_unit_test_setup_teardown(test_look_up, set_up, tear_down),
    cmocka_unit_test_setup_teardown(test_sees_its_rank, set_up, tear_down),
    cmocka_unit_test_setup_teardown(test_definitions, set_up, tear_down),
    cmocka_unit_test_setup_teardown(test_plan_values, set_up, tear_down),
    cmocka_unit_test_setup_teardown(test_many_in_turn, set_up, tear_down),
  };
  return run_program("policy", tests, argc, argv);
}
