/* SPDX-License-Identifier: MIT
**
** test_chains.c - calls that are made one after the other and looked at once: the first error stays
** through all that follow, whether these fail or not, until somebody clears it.
*/
#include "program.h"

#include "comm/backend.h"
#include "moongrid_recipe.h"
#include "results.h"

#include <unistd.h>

typedef struct chain { /* all that the long way makes */
  mgrid_grid *g;
  mgrid_family *f, *halves[2];
  mgrid_topology *t;
  mgrid_plan *p, *planned;
  mgrid_backend *b;
  mgrid_state *s, *trained;
  mgrid_runtime *rt;
  mgrid_policy *policy;
} chain;

static int nothing(void *ud, const char *text, size_t len) {
  (void)ud, (void)text, (void)len;
  return 0;
}

/* The whole way, with every kind of call, checked nowhere. Where `dim` is not "tp" it fails in its
** second call. */
static void long_way(chain *c, const char *dim, const char *recipe, mgrid_error *e) {
  const mgrid_dim dims[] = { { "tp", 2 }, { "dp", 4 } };
  const mgrid_arg arg = mgrid_arg_integer("global_batch", 64);
  const char *text = NULL, *args[] = { "tp=2" };
  mgrid_plan_counts counts = MGRID_PLAN_COUNTS_INIT;
  mgrid_machine machine = MGRID_MACHINE_INIT;
  int64_t number = 7, proved;
  size_t n;
  *c = (chain){ 0 };
  c->g = mgrid_grid_new(mgrid_world(8), 2, dims, e);
  c->f = mgrid_grid_along(c->g, 1, &dim, MGRID_GRID_ORDER, e);
  mgrid_family_split(c->f, 1, false, false, &c->halves[0], &c->halves[1], e);
  mgrid_family_free(mgrid_family_pick(c->f, 1, &(const int64_t){ -1 }, e));
  mgrid_family_free(mgrid_family_twin(c->f, e));
  mgrid_family_free(mgrid_family_lists(c->f, e));
  c->t = mgrid_topology_new(8, e);
  mgrid_topology_add(c->t, "tp", c->f, NULL, e);
  mgrid_topology_add_grid(c->t, "grid", c->g, e);
  mgrid_topology_param(c->t, "tp", "2", e);
  c->p = mgrid_plan_new(c->t, e);
  mgrid_plan_print(c->p, nothing, NULL, e);
  mgrid_plan_print_json(c->p, -1, nothing, NULL, e);
  mgrid_plan_count(c->p, -1, &counts, e);
  mgrid_plan_check(c->p, NULL, e);
  c->b = mgrid_backend_dry(8, 3, e);
  mgrid_agree(c->b, c->p, NULL, e);
  c->s = mgrid_materialize(c->p, c->b, "c", e);
  mgrid_state_group(c->s, "tp", e);
  mgrid_state_coord(c->s, "grid", "tp", e);
  mgrid_state_machine(c->s, &machine, e);
  mgrid_state_prove(c->s, &proved, e);
  c->rt = mgrid_runtime_new(NULL, NULL, e);
  mgrid_runtime_load(c->rt, recipe, NULL, 0, e);
  c->planned = mgrid_runtime_plan(c->rt, 8, NULL, 1, args, e);
  c->trained = mgrid_materialize(c->planned, c->b, "recipe", e);
  ask_as(MGRID_IS_JSON, c->rt, c->trained, "none", 0, NULL, NULL, 0, &n, e);
  c->policy = mgrid_policy_new(c->rt, c->trained, "batches", e);
  mgrid_policy_call(c->policy, 1, &arg, e);
  read_integer(c->policy, NULL, &number, e);
  read_text(c->policy, NULL, &text, e); /* it is a number */
  assert_null(text);
  assert_int_equal(number, c->policy ? 16 : 0); /* what was asked of nothing is nothing */
}

static void end(const chain *c) {
  mgrid_policy_free(c->policy);
  mgrid_state_free(c->trained);
  mgrid_state_free(c->s);
  mgrid_backend_free(c->b);
  mgrid_plan_free(c->planned);
  mgrid_plan_free(c->p);
  mgrid_runtime_free(c->rt);
  mgrid_topology_free(c->t);
  mgrid_family_free(c->halves[0]);
  mgrid_family_free(c->halves[1]);
  mgrid_family_free(c->f);
  mgrid_grid_free(c->g);
}

static char path[64];

static void write_recipe(const char *policy) {
  FILE *file = fopen(path, "w");
  assert_non_null(file);
  fprintf(file,
          "return recipe { params = { tp = 2 }, build = function(world, p)\n"
          "  local g, t = grid(world, 'tp-dp', { tp = p.tp, dp = fill }), topology(world)\n"
          "  t.tp, t.dp = g 'tp', g 'dp' return t end,\n"
          "  policy = { batches = function(s, q) %s end } }\n",
          policy);
  fclose(file);
}

#define BATCHES "return q.global_batch // s.dp.size"

static void test_the_first_error_stays(void **state) {
  mgrid_error e = MGRID_ERROR_INIT;
  chain c;
  (void)state;
  write_recipe(BATCHES);
  /* everything behind the second call goes on, or has nothing to work on */
  long_way(&c, "tq", path, &e);
  assert_int_equal(e.status, MGRID_UNKNOWN_NAME);
  assert_string_equal(e.message, "unknown dim 'tq'; nearest is 'tp' (tp, dp)");
  assert_true(e.line == 0 && !*e.file);
  end(&c);
}

static void test_the_last_call_may_be_the_first_to_fail(void **state) {
  mgrid_error e = MGRID_ERROR_INIT;
  chain c;
  (void)state;
  write_recipe(BATCHES);
  long_way(&c, "tp", path, &e);
  assert_true(c.policy && c.s && c.trained);
  assert_int_equal(e.status, MGRID_UNKNOWN_NAME); /* the query that the recipe has not */
  end(&c);
  mgrid_error_clear(&e);
  assert_true(e.status == MGRID_OK && e.line == 0 && !*e.message && !*e.file && e.size == sizeof e);
}

static void test_a_recipe_that_is_not_there(void **state) {
  mgrid_error e = MGRID_ERROR_INIT;
  chain c;
  (void)state;
  long_way(&c, "tp", "/nowhere/none.lua", &e);
  assert_int_equal(e.status, MGRID_REFUSED);
  assert_string_equal(e.message, "cannot open /nowhere/none.lua: No such file or directory");
  assert_true(c.s && !c.planned && !c.trained && !c.policy);
  end(&c);
}

/* A later failure that has a place does not give it to the first, which has none. */
static void test_the_place_is_that_of_the_first(void **state) {
  mgrid_error e = MGRID_ERROR_INIT, was;
  char json[80];
  (void)state;
  write_recipe("error 'no'");
  snprintf(json, sizeof json, "%s.json", path);
  FILE *file = fopen(json, "w");
  fputs("{ \"tp\": }\n", file);
  fclose(file);
  mgrid_runtime *rt = mgrid_runtime_new(NULL, NULL, &e);
  mgrid_runtime_load(rt, path, NULL, 0, &e);
  mgrid_plan *p = mgrid_runtime_plan(rt, 8, NULL, 0, NULL, &e);
  mgrid_backend *b = mgrid_backend_dry(8, 0, &e);
  mgrid_state *s = mgrid_materialize(p, b, "", &e);
  mgrid_policy *policy = mgrid_policy_new(rt, s, "batches", &e);
  assert_int_equal(e.status, MGRID_OK);
  mgrid_fail(&e, MGRID_TIMED_OUT, "a:7: the first one");
  was = e;
  assert_int_equal(mgrid_policy_call(policy, 0, NULL, &e), MGRID_REFUSED);
  assert_null(mgrid_runtime_plan(rt, 8, json, 0, NULL, &e));
  assert_null(mgrid_runtime_plan(rt, 8, NULL, 1, (const char *const[]){ "tp=3" }, &e));
  assert_memory_equal(&e, &was, sizeof e);
  mgrid_policy_free(policy);
  mgrid_state_free(s);
  mgrid_backend_free(b);
  mgrid_plan_free(p);
  mgrid_runtime_free(rt);
  unlink(json);
}

/* What went wrong on the way and was mended leaves nothing: the error says that all is well. */
static void test_what_was_mended_is_no_error(void **state) {
  const mgrid_dim dims[] = { { "a", 3 }, { "b", 2 }, { "c", 2 } };
  const char *names[] = { "a", "c" };
  mgrid_error e = MGRID_ERROR_INIT;
  mgrid_family *in = NULL, *out = NULL;
  (void)state;
  mgrid_grid *g = mgrid_grid_new(mgrid_world(12), 3, dims, &e);
  mgrid_family *f = mgrid_grid_along(g, 2, names, MGRID_GRID_ORDER, &e);
  /* no layout */
  assert_int_equal(mgrid_family_split(f, 2, false, false, &in, &out, NULL), MGRID_REFUSED);
  /* so by lists */
  assert_int_equal(mgrid_family_split(f, 2, true, false, &in, &out, &e), MGRID_OK);
  assert_int_equal(e.status, MGRID_OK);
  assert_string_equal(e.message, "");
  mgrid_family_free(in);
  mgrid_family_free(out);
  mgrid_family_free(f);
  mgrid_grid_free(g);
}

/* Of a failure to materialize *err may be the reason why there is no plan: it stays the reason. */
static void test_materialize_of_nothing(void **state) {
  mgrid_error e = MGRID_ERROR_INIT;
  mgrid_backend *b = mgrid_backend_dry(8, 0, &e);
  (void)state;
  assert_null(mgrid_plan_new(NULL, &e));
  assert_int_equal(e.status, MGRID_OK); /* whoever made no topology has said why */
  mgrid_fail(&e, MGRID_OUT_OF_RANGE, "no plan");
  assert_null(mgrid_materialize(NULL, b, "", &e));
  assert_int_equal(e.status, MGRID_OUT_OF_RANGE);
  assert_string_equal(e.message, "no plan");
  assert_null(mgrid_materialize(NULL, NULL, "", &e));
  assert_int_equal(mgrid_agree(b, NULL, &e, NULL), MGRID_OUT_OF_RANGE);
  assert_int_equal(mgrid_agree(b, NULL, &e, &e), MGRID_OUT_OF_RANGE);
  assert_string_equal(e.message, "no plan");
  mgrid_backend_free(b);
}

/* Collective calls go on without a runtime, or with a struct that is refused: the others would
** wait. */
static void test_a_reload_that_cannot_be(void **state) {
  mgrid_error e = MGRID_ERROR_INIT;
  mgrid_change change = MGRID_CHANGE_INIT;
  mgrid_runtime *fresh;
  mgrid_state *new_s;
  chain c;
  (void)state;
  write_recipe(BATCHES);
  long_way(&c, "tp", path, &e);
  mgrid_error_clear(&e);
  assert_int_equal(mgrid_reload(NULL, c.trained, NULL, 0, NULL, &new_s, NULL, &e), MGRID_USAGE);
  fresh = mgrid_runtime_ref(mgrid_state_runtime(new_s));
  assert_string_equal(e.message, "there is no runtime to reload");
  mgrid_error_clear(&e);
  mgrid_runtime *unloaded = mgrid_runtime_new(NULL, NULL, &e);
  assert_int_equal(mgrid_reload(unloaded, c.trained, NULL, 0, NULL, &new_s, NULL, &e),
                   MGRID_NOT_NOW);
  fresh = mgrid_runtime_ref(mgrid_state_runtime(new_s));
  mgrid_error_clear(&e);
  change.kept = 5;
  assert_int_equal(mgrid_reload(c.rt, c.trained, "picotorn", 0, NULL, &new_s, &change, &e),
                   MGRID_UNKNOWN_NAME);
  fresh = mgrid_runtime_ref(mgrid_state_runtime(new_s));
  assert_true(!fresh && !new_s && change.kept == 5); /* on failure as it was */
  mgrid_error_clear(&e);
  assert_int_equal(mgrid_reload(c.rt, c.trained, NULL, 0, NULL, &new_s, &change, &e), MGRID_OK);
  fresh = mgrid_runtime_ref(mgrid_state_runtime(new_s));
  assert_true(fresh && new_s && change.kept == 2 && change.created == 0 && change.dropped == 0);
  mgrid_state_free(new_s);
  mgrid_runtime_free(fresh);
  mgrid_runtime_free(unloaded);
  end(&c);
}

/* The text of an error may quote the one that it replaces; what is handed on keeps the size of the
** host's struct. */
static void test_errors_of_errors(void **state) {
  mgrid_error e = MGRID_ERROR_INIT, other = MGRID_ERROR_INIT;
  (void)state;
  mgrid_fail(&e, MGRID_REFUSED, "first");
  assert_int_equal(mgrid_error_reword(&e, "more: %s", e.message), MGRID_REFUSED);
  assert_string_equal(e.message, "more: first");
  mgrid_fail(&other, MGRID_LIMIT, "second");
  other.size = 1;
  assert_int_equal(mgrid_error_pass(&e, &other), MGRID_LIMIT);
  assert_string_equal(e.message, "more: first");
  assert_int_equal(mgrid_error_replace(&e, &other), MGRID_LIMIT);
  assert_string_equal(e.message, "second");
  assert_int_equal(e.size, sizeof e);
}

static int tear_down(void **state) {
  (void)state;
  unlink(path);
  return 0;
}

/* Questions to what a failed call did not make: an answer that means nothing, and no crash. */
static void test_questions_to_null(void **state) {
  char text[40] = "x";
  int64_t a = 0, b = 0;
  int64_t rank = 7;
  const int64_t coords[1] = { 0 };
  (void)state;
  assert_true(mgrid_grid_ndims(NULL) == 0 && mgrid_grid_dim(NULL, 0).name == NULL
              && mgrid_grid_window(NULL).size == -1);
  assert_true(mgrid_grid_find(NULL, "tp") == -1 && mgrid_grid_coord(NULL, 0, 0) == -1
              && mgrid_grid_rank(NULL, coords) == -1);
  assert_true(mgrid_grid_describe(NULL, text, sizeof text) == 0 && *text == '\0');
  assert_true(mgrid_family_world(NULL) == -1 && mgrid_family_count(NULL) == -1
              && mgrid_family_size(NULL, 0) == -1);
  assert_true(mgrid_family_max_size(NULL) == -1 && mgrid_family_total(NULL) == -1
              && mgrid_family_rank(NULL, 0, 0) == -1);
  assert_true(!mgrid_family_locate(NULL, 0, 0, &a, &b)
              && mgrid_family_members(NULL, 0, 1, 1, &rank) == -1);
  assert_true(mgrid_family_coverage(NULL) == MGRID_PARTIAL && mgrid_family_equal(NULL, NULL));
  assert_int_equal(mgrid_family_members(NULL, 0, 1, 1, &rank), -1);
  assert_true(mgrid_family_describe(NULL, text, sizeof text) == 0);
  assert_true(mgrid_plan_world(NULL) == -1 && mgrid_plan_nfamilies(NULL) == 0
              && mgrid_plan_family_name(NULL, 0) == NULL);
  assert_true(mgrid_plan_family(NULL, "tp") == NULL && mgrid_plan_grid_name(NULL, 0) == NULL);
  assert_true(mgrid_plan_grid_name(NULL, 0) == NULL && mgrid_plan_grid(NULL, "g") == NULL
              && mgrid_plan_shares(NULL, "tp") == NULL);
  mgrid_plan_digest(NULL, text);
  assert_string_equal(text, "00000000000000000000000000000000");
  assert_true(mgrid_backend_name(NULL) == NULL && mgrid_backend_rank(NULL) == -1
              && mgrid_backend_world(NULL) == -1);
  assert_true(mgrid_backend_ncomms(NULL) == 0 && mgrid_state_plan(NULL) == NULL
              && mgrid_state_rank(NULL) == -1);
  assert_true(mgrid_state_ncomms(NULL) == 0);
  assert_true(mgrid_group_family(NULL) == NULL && mgrid_group_position(NULL) == -1
              && mgrid_group_size(NULL) == -1);
  assert_true(mgrid_group_index(NULL) == -1 && mgrid_group_at(NULL, 0) == -1
              && mgrid_group_at(NULL, 0) == -1);
  assert_true(mgrid_group_at(NULL, mgrid_group_size(NULL) - 1) == -1
              && mgrid_group_beside(NULL, 1, true) == -1
              && mgrid_group_beside(NULL, -1, true) == -1);
  assert_true(mgrid_group_position_of(NULL, 0) == -1 && mgrid_group_native(NULL) == NULL);
  assert_true(mgrid_group_native_kind(NULL) == MGRID_NATIVE_NONE
              && *mgrid_group_backend(NULL) == '\0');
  assert_int_equal(mgrid_group_ranks(NULL, 1, &rank), -1);
  assert_int_equal(rank, 7);
}

int main(int argc, char **argv) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_questions_to_null),
    cmocka_unit_test_teardown(test_the_first_error_stays, tear_down),
    cmocka_unit_test_teardown(test_the_last_call_may_be_the_first_to_fail, tear_down),
    cmocka_unit_test(test_a_recipe_that_is_not_there),
    cmocka_unit_test_teardown(test_the_place_is_that_of_the_first, tear_down),
    cmocka_unit_test(test_what_was_mended_is_no_error),
    cmocka_unit_test(test_materialize_of_nothing),
    cmocka_unit_test_teardown(test_a_reload_that_cannot_be, tear_down),
    cmocka_unit_test(test_errors_of_errors),
  };
  snprintf(path, sizeof path, "/tmp/chains-%d.lua", (int)getpid());
  return run_program("chains", tests, argc, argv);
}
