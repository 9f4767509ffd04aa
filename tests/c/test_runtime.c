/* SPDX-License-Identifier: MIT
**
** test_runtime.c - recipes from C: errors with their position, budgets that a recipe cannot
** catch, a runtime that outlives a failure, several at once.
*/
#include "backends.h"
#include "program.h"

#include "recipe/runtime.h"
#include "results.h"

#include <unistd.h>

/* A recipe in a temporary file; the path is written to `path`. */
static void write_recipe(char path[64], const char *text) {
  strcpy(path, "/tmp/moongrid-test-XXXXXX.lua");
  int fd = mkstemps(path, 4);
  FILE *file = fdopen(fd, "w");
  assert_non_null(file);
  fputs(text, file);
  fclose(file);
}

static mgrid_runtime *load(const char *text, const mgrid_limits *limits, mgrid_error *err) {
  char path[64];
  mgrid_runtime *rt = mgrid_runtime_new(limits, NULL, err);
  assert_non_null(rt);
  write_recipe(path, text);
  mgrid_status s = mgrid_runtime_load(rt, path, NULL, 0, err);
  unlink(path);
  if (s == MGRID_OK) return rt;
  mgrid_runtime_free(rt);
  return NULL;
}

static void test_plan(void **state) {
  mgrid_error err = MGRID_ERROR_INIT;
  const char *args[] = { "tp_size=2", "cp=2" };
  mgrid_runtime *rt = mgrid_runtime_new(NULL, NULL, anew(&err));
  (void)state;
  assert_int_equal(mgrid_runtime_load(rt, "picotron", NULL, 0, anew(&err)), MGRID_OK);
  mgrid_plan *p = mgrid_runtime_plan(rt, 8, NULL, 2, args, anew(&err));
  assert_non_null(p);
  assert_int_equal(mgrid_plan_nfamilies(p), 7);
  assert_int_equal(mgrid_content_find(&p->content, "cp_dp"), 4);
  assert_int_equal(mgrid_family_size(p->content.entry[4].family, 0), 4);
  assert_int_equal(mgrid_runtime_load(rt, "picotron", NULL, 0, anew(&err)), MGRID_NOT_NOW);
  assert_string_equal(err.message, "the runtime has a recipe already: picotron");
  mgrid_runtime_free(rt); /* the plan outlives it */
  assert_int_equal(mgrid_plan_world(p), 8);
  mgrid_plan_free(p);
}

static void test_same_plan_in_two_runtimes(void **state) {
  mgrid_error err = MGRID_ERROR_INIT;
  const char *byname[] = { "tensor_model_parallel_size=2" }, *byalias[] = { "tp=2" };
  mgrid_runtime *a = mgrid_runtime_new(NULL, NULL, anew(&err)),
                *b = mgrid_runtime_new(NULL, NULL, anew(&err));
  char x[33], y[33];
  (void)state;
  assert_int_equal(mgrid_runtime_load(a, "megatron_deepspeed", NULL, 0, anew(&err)), MGRID_OK);
  assert_int_equal(mgrid_runtime_load(b, "megatron_deepspeed", NULL, 0, anew(&err)), MGRID_OK);
  mgrid_plan *p = mgrid_runtime_plan(a, 8, NULL, 1, byname, anew(&err)),
             *q = mgrid_runtime_plan(b, 8, NULL, 1, byalias, anew(&err));
  mgrid_plan_digest(p, x);
  mgrid_plan_digest(q, y);
  assert_string_equal(x, y);
  mgrid_plan_free(p);
  mgrid_plan_free(q);
  mgrid_runtime_free(a);
  mgrid_runtime_free(b);
}

static void test_position(void **state) {
  mgrid_error err = MGRID_ERROR_INIT;
  mgrid_runtime *rt = mgrid_runtime_new(NULL, NULL, anew(&err));
  const char *bad[] = { "tp=3" }, *good[] = { "tp=4" };
  (void)state;
  assert_int_equal(mgrid_runtime_load(rt, "picotron", NULL, 0, anew(&err)), MGRID_OK);
  assert_null(mgrid_runtime_plan(rt, 8, NULL, 1, bad, anew(&err)));
  assert_int_equal(err.status, MGRID_REFUSED);
  assert_string_equal(err.file, "picotron");
  assert_int_equal(err.line, 39);
  assert_string_equal(err.message, "picotron:39: tp 3 does not divide the 8 ranks; nearest: tp 2 "
                                   "or 4, or a world of 6 or 9 ranks");
  mgrid_plan *p = mgrid_runtime_plan(rt, 8, NULL, 1, good, anew(&err)); /* still usable */
  assert_non_null(p);
  mgrid_plan_free(p);
  mgrid_runtime_free(rt);
}

static void expect_refused(const char *text, mgrid_status status, const char *tail,
                           const mgrid_limits *limits) {
  mgrid_error err = MGRID_ERROR_INIT;
  mgrid_runtime *rt = load(text, limits, &err);
  mgrid_plan *p = rt ? mgrid_runtime_plan(rt, 8, NULL, 0, NULL, anew(&err)) : NULL;
  assert_null(p);
  assert_int_equal(err.status, status);
  size_t len = strlen(err.message), want = strlen(tail);
  if (len < want || strcmp(err.message + len - want, tail) != 0)
    fail_msg("'%s' does not end in '%s'", err.message, tail);
  mgrid_runtime_free(rt);
}

static void test_budgets(void **state) {
  mgrid_limits few = MGRID_LIMITS_INIT, small = MGRID_LIMITS_INIT, short_time = MGRID_LIMITS_INIT;
  (void)state;
  few.instructions = 100000;
  expect_refused("while true do end", MGRID_LIMIT,
                 ".lua:1: the recipe runs for more than 100000 instructions", &few);
  /* a pcall in the recipe does not catch a limit */
  expect_refused("while true do pcall(function() while true do end end) end", MGRID_LIMIT,
                 ":1: the recipe runs for more than 100000 instructions", &few);
  expect_refused("return recipe { build = function() while true do end end }", MGRID_LIMIT,
                 ":1: the recipe runs for more than 100000 instructions", &few);
  /* nor is the way to a refusal free: which name may be meant is work, and so is looking for a
  ** file */
  static const char *const refused[] = { "recipe 'picotronn'", "recipe './none.lua'",
                                         "return worldd", "recipe { bild = 1 }" };
  for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
    char loop[128];
    snprintf(loop, sizeof loop, "for i = 1, 1000 do pcall(function() %s end) end", refused[i]);
    expect_refused(loop, MGRID_LIMIT, ":1: the recipe runs for more than 100000 instructions",
                   &few);
  }
  small.memory = 1 << 20;
  expect_refused("local t = {} for i = 1, 1e9 do t[i] = i end", MGRID_LIMIT,
                 "the recipe needs more than 1 MiB of memory", &small);
  short_time.seconds = 0.05;
  short_time.instructions = UINT64_MAX;
  expect_refused("local n = 0 for i = 1, 100000 do n = n + i end return recipe { build = "
                 "function() while true do end end }",
                 MGRID_LIMIT, ".lua:1: the recipe takes more than 0.05 s of processor time",
                 &short_time); /* with what loading took */
  expect_refused("while true do end", MGRID_LIMIT,
                 ".lua:1: the recipe takes more than 0.05 s of processor time", &short_time);
}

static void test_what_a_recipe_returns(void **state) {
  (void)state;
  expect_refused("local x = 1", MGRID_REFUSED,
                 "returned nothing; end it with 'return recipe { ... }'", NULL);
  expect_refused("return 7", MGRID_REFUSED,
                 "returned a number; end it with 'return recipe { ... }'", NULL);
  expect_refused("return recipe { build = function() end }", MGRID_REFUSED,
                 ":1: build returned nothing; end it with 'return t', a topology", NULL);
  expect_refused("return recipe { build = function() return 1 end }", MGRID_REFUSED,
                 ":1: build returned a number; end it with 'return t', a topology", NULL);
  expect_refused("return recipe {}", MGRID_REFUSED,
                 ": a recipe needs 'build', a function (world, p) that returns a topology", NULL);
  expect_refused("error { code = 1 }", MGRID_REFUSED,
                 ":1: error got a table, not a message such as \"tp must be even\"", NULL);
  expect_refused("return recipe { build = function(world) return topolgy(world) end }",
                 MGRID_UNKNOWN_NAME, ":1: undefined global 'topolgy'; nearest is 'topology'", NULL);
}

static void test_arguments(void **state) {
  mgrid_error err = MGRID_ERROR_INIT;
  mgrid_runtime *rt = mgrid_runtime_new(NULL, NULL, anew(&err));
  const char *noeq[] = { "tp" }, *twice[] = { "tp=1", "tp=2" }, *both[] = { "tp=1", "tp_size=1" };
  (void)state;
  assert_null(mgrid_runtime_plan(rt, 8, NULL, 0, NULL, anew(&err)));
  assert_string_equal(err.message, "the runtime has no recipe: call mgrid_runtime_load first");
  assert_int_equal(mgrid_runtime_load(rt, "picotron", NULL, 0, anew(&err)), MGRID_OK);
  assert_null(mgrid_runtime_plan(rt, 8, NULL, 1, noeq, anew(&err)));
  assert_string_equal(err.message, "argument 'tp' is not of the form NAME=VALUE");
  assert_null(mgrid_runtime_plan(rt, 8, NULL, 2, twice, anew(&err)));
  assert_string_equal(err.message, "parameter 'tp' is given twice");
  assert_null(mgrid_runtime_plan(rt, 8, NULL, 2, both, anew(&err)));
  assert_string_equal(err.message,
                      "picotron:33: parameter 'tp_size' is given twice, as 'tp' and as 'tp_size'");
  assert_null(mgrid_runtime_plan(rt, 0, NULL, 0, NULL, anew(&err)));
  assert_string_equal(err.message, "a world has 1 to 2147483647 ranks, not 0");
  mgrid_runtime_free(rt);
}

static void test_queries(void **state) {
  mgrid_error err = MGRID_ERROR_INIT;
  mgrid_runtime *rt = mgrid_runtime_new(NULL, NULL, anew(&err));
  const char *args[] = { "pp=4" };
  (void)state;
  assert_int_equal(mgrid_runtime_load(rt, "picotron", NULL, 0, anew(&err)), MGRID_OK);
  mgrid_plan *p = mgrid_runtime_plan(rt, 8, NULL, 1, args, anew(&err));
  mgrid_backend *b = mgrid_backend_dry(8, 5, anew(&err));
  mgrid_state *s = mgrid_materialize(p, b, NULL, anew(&err));
  char text[64];
  size_t length = 0;
  assert_int_equal(
      ask_as(MGRID_IS_JSON, rt, s, "pp_nxt_rank", 0, NULL, text, sizeof text, &length, anew(&err)),
      MGRID_UNKNOWN_NAME);
  assert_non_null(strstr(err.message, "unknown query 'pp_nxt_rank'; nearest is 'pp_next_rank'"));
  int64_t number = 0;
  assert_int_equal(
      ask_as(MGRID_IS_JSON, rt, s, "pp_group_ids", 0, NULL, text, sizeof text, &length, anew(&err)),
      MGRID_OK);
  assert_string_equal(text, "[4,5,6,7]");
  assert_int_equal(ask_as(MGRID_IS_JSON, rt, s, "str", 0, NULL, text, 5, &length, anew(&err)),
                   MGRID_OK);
  assert_string_equal(text, "\"TP(");
  assert_int_equal(length, strlen("\"TP(1)-CP(1)-PP(4)-DP(2)-Rank(5)\""));
  assert_int_equal(ask_as(MGRID_IS_TEXT, rt, s, "str", 0, NULL, text, 5, &length, anew(&err)),
                   MGRID_OK);
  assert_string_equal(text, "TP(1");
  assert_int_equal(length, strlen("TP(1)-CP(1)-PP(4)-DP(2)-Rank(5)"));
  assert_int_equal(
      ask_as(MGRID_IS_TEXT, rt, s, "pp_next_rank", 0, NULL, text, sizeof text, NULL, anew(&err)),
      MGRID_BAD_VALUE);
  assert_string_equal(err.message, "query 'pp_next_rank' returned an integer, not text");
  assert_int_equal(ask_integer(rt, s, "pp_next_rank", 0, NULL, &number, anew(&err)), MGRID_OK);
  assert_int_equal(number, 6);
  mgrid_arg first = MGRID_ARG_INIT;
  assert_int_equal(
      mgrid_runtime_ask(rt, s, "pp_is_first_stage", 0, NULL, MGRID_IS_BOOLEAN, &first, anew(&err)),
      MGRID_OK);
  assert_true(first.kind == MGRID_IS_BOOLEAN && !first.as.boolean);
  assert_int_equal(ask_integer(rt, s, "str", 0, NULL, &number, anew(&err)), MGRID_BAD_VALUE);
  assert_string_equal(err.message, "query 'str' returned text, not an integer");
  const mgrid_arg unnamed = mgrid_arg_integer(NULL, 1);
  assert_int_equal(ask_integer(rt, s, "str", 1, &unnamed, &number, anew(&err)), MGRID_BAD_VALUE);
  assert_string_equal(err.message, "an argument has no name");
  assert_int_equal(ask_integer(rt, s, "str", 1, NULL, &number, anew(&err)), MGRID_USAGE);
  assert_string_equal(err.message, "the list of 1 arguments is NULL");
  mgrid_state_free(s);
  mgrid_backend_free(b);
  mgrid_plan_free(p);
  mgrid_runtime_free(rt);
}

/* Getters give the handle that the state has for their family. */
static void test_getters(void **state) {
  mgrid_error err = MGRID_ERROR_INIT;
  mgrid_runtime *rt = mgrid_runtime_new(NULL, NULL, anew(&err));
  (void)state;
  mgrid_runtime_load(rt, "megatron", NULL, 0, anew(&err));
  const char *args[] = { "tp=2", "pp=2", "cp=2" };
  mgrid_plan *p = mgrid_runtime_plan(rt, 16, NULL, 3, args, anew(&err));
  mgrid_backend *b = mgrid_backend_dry(16, 12, anew(&err));
  mgrid_state *s = mgrid_materialize(p, b, NULL, anew(&err));
  const char *getter = "get_tensor_and_data_parallel_group";
  mgrid_arg with = mgrid_arg_boolean("with_context_parallel", true);
  mgrid_arg unchecked = mgrid_arg_boolean("check_initialized", false);
  assert_ptr_equal(mgrid_runtime_group(rt, s, getter, 0, NULL, anew(&err)),
                   mgrid_state_group(s, "tp_dp", NULL));
  assert_ptr_equal(mgrid_runtime_group(rt, s, getter, 1, &with, &err),
                   mgrid_state_group(s, "tp_dp_cp", NULL));
  assert_int_equal(err.status, MGRID_OK);
  assert_null(
      mgrid_runtime_group(rt, s, "get_hierarchical_context_parallel_groups", 1, &unchecked, &err));
  assert_null(mgrid_runtime_group(rt, s, "get_position_embedding_group", 0, NULL, anew(&err)));
  assert_int_equal(err.status, MGRID_OK);
  assert_null(
      mgrid_runtime_group(rt, s, "get_hierarchical_context_parallel_groups", 0, NULL, &err));
  assert_int_equal(err.status, MGRID_REFUSED);
  assert_string_equal(
      err.message,
      "getter 'get_hierarchical_context_parallel_groups': there is no family 'hcp_0' in "
      "this plan; it is there with hierarchical_context_parallel_sizes; hcp_0 is the innermost "
      "level");
  assert_null(mgrid_runtime_group(rt, s, "get_tensor_group", 0, NULL, anew(&err)));
  assert_int_equal(err.status, MGRID_UNKNOWN_NAME);
  with = mgrid_arg_integer("with_context_parallel", 1);
  assert_null(mgrid_runtime_group(rt, s, getter, 1, &with, anew(&err)));
  assert_int_equal(err.status, MGRID_BAD_VALUE);
  with.size = 3;
  assert_null(mgrid_runtime_group(rt, s, getter, 1, &with, anew(&err)));
  assert_int_equal(err.status, MGRID_BAD_STRUCT);
  mgrid_state_free(s);
  mgrid_backend_free(b);
  mgrid_plan_free(p);
  mgrid_runtime_free(rt);
}

static int64_t ask(mgrid_runtime *rt, mgrid_state *s, const char *query) {
  mgrid_error err = MGRID_ERROR_INIT;
  mgrid_arg answer = MGRID_ARG_INIT;
  if (mgrid_runtime_ask(rt, s, query, 0, NULL, MGRID_IS_NONE, &answer, &err))
    fail_msg("%s: %s", query, err.message);
  return answer.kind == MGRID_IS_BOOLEAN ? answer.as.boolean : answer.as.integer;
}

/* A setting is switched for one state, until it is given back its default. */
static void test_settings(void **state) {
  mgrid_error err = MGRID_ERROR_INIT;
  mgrid_runtime *rt = mgrid_runtime_new(NULL, NULL, &err);
  const char *args[] = { "sp=4", "version=f3e24ce9" };
  char before[33], after[33];
  (void)state;
  assert_int_equal(mgrid_runtime_load(rt, "optimum_habana", NULL, 0, &err), MGRID_OK);
  mgrid_plan *p = mgrid_runtime_plan(rt, 8, NULL, 2, args, &err);
  mgrid_backend *b = mgrid_backend_dry(8, 6, &err);
  mgrid_state *s = mgrid_materialize(p, b, NULL, &err),
              *other = mgrid_materialize(p, b, NULL, &err);
  mgrid_plan_digest(p, before);
  assert_int_equal(ask(rt, s, "is_training_mode"), 1);
  assert_int_equal(ask(rt, s, "sequence_parallel_world_size"), 4);
  assert_int_equal(ask(rt, s, "sequence_parallel_rank"), 2);
  assert_int_equal(ask(rt, s, "data_parallel_world_size"), 8); /* sp x dp */

  mgrid_arg evaluation = mgrid_arg_boolean("training", false),
            size = mgrid_arg_integer("sp_world_size", 3),
            unset = mgrid_arg_of("sequence_parallel_world_size", MGRID_IS_NONE);
  assert_int_equal(mgrid_runtime_set(rt, s, &evaluation, &err), MGRID_OK);
  assert_int_equal(ask(rt, s, "is_training_mode"), 0);
  assert_int_equal(ask(rt, s, "sequence_parallel_world_size"), 1);
  assert_int_equal(ask(rt, s, "sequence_parallel_src_rank"), 6);
  assert_int_equal(mgrid_runtime_set(rt, s, &size, &err), MGRID_OK);
  assert_int_equal(ask(rt, s, "sequence_parallel_world_size"), 3);
  assert_int_equal(ask(rt, other, "sequence_parallel_world_size"), 4);
  assert_int_equal(mgrid_runtime_set(rt, s, &unset, &err), MGRID_OK);
  assert_int_equal(ask(rt, s, "sequence_parallel_world_size"), 1);
  mgrid_plan_digest(mgrid_state_plan(s), after);
  assert_string_equal(before, after);

  mgrid_arg typo = mgrid_arg_boolean("trainin", true), number = mgrid_arg_integer("training", 1),
            none = mgrid_arg_integer("sp_world_size", 0), nameless = mgrid_arg_integer(NULL, 1),
            unsized = { 0 };
  assert_int_equal(mgrid_runtime_set(rt, s, &typo, anew(&err)), MGRID_UNKNOWN_NAME);
  assert_non_null(
      strstr(err.message, ": unknown setting 'trainin'; nearest is 'training' (training, "));
  assert_string_equal(err.file, "optimum_habana");
  assert_int_equal(mgrid_runtime_set(rt, s, &number, anew(&err)), MGRID_BAD_VALUE);
  assert_non_null(strstr(err.message, ": setting 'training' is true or false, not 1"));
  assert_int_equal(mgrid_runtime_set(rt, s, &none, anew(&err)), MGRID_OUT_OF_RANGE);
  assert_int_equal(mgrid_runtime_set(rt, s, &nameless, anew(&err)), MGRID_USAGE);
  assert_string_equal(err.message,
                      "a setting needs a name, a kind, text in UTF-8, and finite numbers");
  assert_int_equal(mgrid_runtime_set(rt, s, &unsized, anew(&err)), MGRID_BAD_STRUCT);
  assert_int_equal(mgrid_runtime_set(NULL, s, &evaluation, anew(&err)), MGRID_USAGE);
  assert_int_equal(mgrid_runtime_set(rt, NULL, &evaluation, anew(&err)), MGRID_USAGE);
  assert_int_equal(ask(rt, s, "is_training_mode"), 0); /* what was refused has changed nothing */
  mgrid_state_free(other);
  mgrid_state_free(s);
  mgrid_backend_free(b);
  mgrid_plan_free(p);
  mgrid_runtime_free(rt);
}

/* A recipe that keeps what a query gave it finds it closed: the state was the caller's. */
static void test_kept_state(void **state) {
  mgrid_error err = MGRID_ERROR_INIT;
  mgrid_runtime *rt = load("local kept\n"
                           "return recipe { base = 'picotron', queries = {\n"
                           "  keep = function(s) kept = s.tp return s.tp.size end,\n"
                           "  use = function(s) return kept.size end,\n"
                           "} }",
                           NULL, &err);
  (void)state;
  assert_non_null(rt);
  mgrid_plan *p = mgrid_runtime_plan(rt, 2, NULL, 0, NULL, anew(&err));
  mgrid_backend *b = mgrid_backend_dry(2, 0, anew(&err));
  mgrid_state *s = mgrid_materialize(p, b, NULL, anew(&err));
  assert_int_equal(ask_as(MGRID_IS_JSON, rt, s, "keep", 0, NULL, NULL, 0, NULL, anew(&err)),
                   MGRID_OK);
  mgrid_state_free(s);
  s = mgrid_materialize(p, b, NULL, anew(&err));
  assert_int_equal(ask_as(MGRID_IS_JSON, rt, s, "use", 0, NULL, NULL, 0, NULL, anew(&err)),
                   MGRID_REFUSED);
  assert_non_null(strstr(err.message, ":4: the state of this group is closed"));
  mgrid_state_free(s);
  mgrid_backend_free(b);
  mgrid_plan_free(p);
  mgrid_runtime_free(rt);
}

static void test_backends_by_name(void **state) {
  mgrid_error err = MGRID_ERROR_INIT;
  char text[512];
  (void)state;
  assert_null(mgrid_backend_open("mpj", NULL, anew(&err)));
  assert_string_equal(err.message,
                      unknown_backend(text, "mpj", "mpi", "auto", MGRID_BACKENDS_OPENED, ""));
  assert_null(mgrid_backend_open("dry", NULL, anew(&err)));
  assert_string_equal(err.message,
                      "the dry backend has no world of its own: use mgrid_backend_dry");
}

/* Values that are not limits are refused, with a message. */
static void test_limits_given(void **state) {
  mgrid_error err = MGRID_ERROR_INIT;
  mgrid_limits none = { 0 }, odd = MGRID_LIMITS_INIT, small = MGRID_LIMITS_INIT;
  (void)state;
  assert_null(mgrid_runtime_new(&none, NULL, anew(&err)));
  assert_string_equal(err.message, "mgrid_limits without its INIT macro (size 0)");
  odd.seconds = -1;
  assert_null(mgrid_runtime_new(&odd, NULL, anew(&err)));
  assert_int_equal(err.status, MGRID_OUT_OF_RANGE);
  assert_string_equal(err.message,
                      "limits are 0 (the default) or more, not seconds -1, call_seconds 0");
  small.memory = 40 << 10;
  assert_null(mgrid_runtime_new(&small, NULL, anew(&err)));
  assert_string_equal(err.message, "the recipe needs more than 40 KiB of memory");
}

/* Calls may be chained: the first error stays. */
static void test_first_error(void **state) {
  mgrid_error err = MGRID_ERROR_INIT, was;
  mgrid_machine m = MGRID_MACHINE_INIT;
  mgrid_runtime *rt = mgrid_runtime_new(NULL, NULL, &err);
  (void)state;
  assert_int_equal(mgrid_runtime_load(rt, "layuot.lua", NULL, 0, &err), MGRID_REFUSED);
  was = err;
  mgrid_plan *p = mgrid_runtime_plan(rt, 8, NULL, 0, NULL, &err);
  assert_null(p);
  assert_string_equal(err.message, was.message);
  assert_non_null(strstr(err.message, "layuot.lua"));
  mgrid_backend *b = mgrid_backend_dry(8, 0, NULL);
  mgrid_state *s = mgrid_materialize(p, b, NULL, &err);
  assert_null(s);
  assert_null(mgrid_state_group(s, "tp", &err));
  assert_int_equal(mgrid_state_coord(s, "dense", "tp", &err), -1);
  assert_int_equal(mgrid_state_create(s, "tp", &err), MGRID_USAGE);
  assert_int_equal(mgrid_state_prove(s, NULL, &err), MGRID_USAGE);
  assert_null(mgrid_policy_new(rt, s, "layers", &err));
  assert_int_equal(mgrid_policy_call(NULL, 0, NULL, &err), MGRID_USAGE);
  assert_int_equal(mgrid_policy_result(NULL, NULL, MGRID_IS_NONE, NULL, &err), MGRID_USAGE);
  assert_int_equal(kind_of(NULL, NULL), MGRID_IS_NONE);
  mgrid_state_machine(s, &m, NULL);
  assert_int_equal(m.machines, 0);
  assert_int_equal(mgrid_plan_print(p, NULL, NULL, &err), MGRID_USAGE);
  assert_int_equal(mgrid_plan_print_schedule(p, -1, NULL, NULL, &err), MGRID_USAGE);
  assert_int_equal(mgrid_plan_print_json(p, -1, NULL, NULL, &err), MGRID_USAGE);
  assert_int_equal(mgrid_plan_count(p, -1, NULL, &err), MGRID_USAGE);
  assert_int_equal(mgrid_plan_count(p, 0, NULL, &err), MGRID_USAGE);
  assert_int_equal(mgrid_plan_diff(p, p, 0, NULL, NULL, NULL, &err), MGRID_USAGE);
  assert_int_equal(mgrid_plan_gpu_memory(p, -1, NULL, &err), MGRID_USAGE);
  assert_int_equal(mgrid_plan_check(p, NULL, &err), MGRID_USAGE);
  assert_null(mgrid_state_shrink(s, "tp", 0, NULL, &err));
  assert_int_equal(mgrid_state_revoke(s, &err), MGRID_USAGE);
  assert_int_equal(ask_as(MGRID_IS_JSON, rt, s, "x", 0, NULL, NULL, 0, NULL, &err), MGRID_REFUSED);
  assert_int_equal(mgrid_runtime_describe(NULL, false, NULL, NULL, &err), MGRID_USAGE);
  assert_null(mgrid_runtime_plan(rt, 8, "none.json", 0, NULL, &err));
  assert_non_null(strstr(err.message, "layuot.lua"));
  mgrid_backend_free(b);
  mgrid_runtime_free(rt);
}

int main(int argc, char **argv) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_plan),
    cmocka_unit_test(test_same_plan_in_two_runtimes),
    cmocka_unit_test(test_position),
    cmocka_unit_test(test_budgets),
    cmocka_unit_test(test_what_a_recipe_returns),
    cmocka_unit_test(test_arguments),
    cmocka_unit_test(test_queries),
    cmocka_unit_test(test_getters),
    cmocka_unit_test(test_settings),
    cmocka_unit_test(test_kept_state),
    cmocka_unit_test(test_backends_by_name),
    cmocka_unit_test(test_limits_given),
    cmocka_unit_test(test_first_error),
  };
  return run_program("runtime", tests, argc, argv);
}
