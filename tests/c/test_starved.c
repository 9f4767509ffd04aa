/* SPDX-License-Identifier: MIT
**
** test_starved.c - every allocation of what a running job does fails once, one at a time: loading,
** planning, queries, settings, policies, states, lazy families, reload and shrink, over a dry
** backend. (test_memory.c: what plans are made of; tests/mpi/starved.c: on real ranks.) What is
** there before a call that fails is as good afterwards.
*/
#include "program.h"

#include "../failing.h"
#include "moongrid.h"
#include "moongrid_tensor.h"
#include "results.h"

#include <unistd.h>

static char path[] = P_tmpdir "/moongrid-starved-XXXXXX.lua";

static const char recipe[] =
    "return recipe { params = { tp = 2, more = param.list({ 1, 2 }) }, build = function(world, p)\n"
    "  local g, t = grid(world, 'tp-dp', { tp = p.tp, dp = fill }), topology(world)\n"
    "  t.grid, t.tp, t.dp, t.late = g, g 'tp', g 'dp', g('tp', 'dp'):with { lazy = true, nccl = { "
    "max_ctas = 4 } }\n"
    "  t.w = tensor { axes = { { 'x', 16 } }, type = 'f32', cut = { x = 'tp' } }\n"
    "  return t end, concurrent = { 'tp', 'dp' },\n"
    "queries = { size = function(s, q) return { s.tp.size, q.a, 'text' } end }, arguments = { a = "
    "param.integer(1) },\n"
    "settings = { training = param.flag(true) }, getters = { get = 'tp' },\n"
    "policy = { one = function(s, q) return { one = q.a, list = s.tp.ranks, text = 'a' } end } }\n";

static mgrid_runtime *rt;
static mgrid_plan *plan;
static mgrid_backend *dry;
static mgrid_state *state;
static mgrid_policy *policy;

static int64_t tried;

static int take(void *ud, const char *text, size_t len) { return ud && text && len > 0 ? 0 : 0; }

static mgrid_status load(mgrid_error *err) {
  mgrid_runtime *mine = mgrid_runtime_new(NULL, NULL, err);
  mgrid_runtime_load(mine, path, NULL, 0, err);
  mgrid_runtime_free(mine);
  return err->status;
}

static mgrid_status make_plan(mgrid_error *err) {
  const char *args[] = { "tp=4", "dp.timeout=60" };
  mgrid_plan *p = mgrid_runtime_plan(rt, 8, NULL, 2, args, err);
  char digest[33];
  mgrid_plan_digest(p, digest);
  mgrid_plan_free(p);
  return err->status;
}

static mgrid_status values(mgrid_error *err) {
  const int64_t list[] = { 1, 2, 3 };
  mgrid_arg args[] = { mgrid_arg_integer("tp", 4), mgrid_arg_integers("more", 3, list) };
  mgrid_plan_free(mgrid_runtime_plan_values(rt, 8, 2, args, err));
  return err->status;
}

static mgrid_status describe(mgrid_error *err) {
  mgrid_runtime_describe(rt, false, take, &tried, err);
  mgrid_runtime_describe(rt, true, take, &tried, err);
  return err->status;
}

static mgrid_status ask(mgrid_error *err) {
  char answer[64];
  size_t length;
  mgrid_arg training = mgrid_arg_boolean("training", false), three = mgrid_arg_integer("a", 3);
  ask_as(MGRID_IS_JSON, rt, state, "size", 1, &three, answer, sizeof answer, &length, err);
  if (!err->status) assert_string_equal(answer, "[2,3,\"text\"]");
  const mgrid_group *g = mgrid_runtime_group(rt, state, "get", 0, NULL, err);
  if (!err->status) assert_non_null(g);
  mgrid_runtime_set(rt, state, &training, err);
  return err->status;
}

static mgrid_status decide(mgrid_error *err) {
  mgrid_policy *p = mgrid_policy_new(rt, state, "one", err);
  mgrid_arg q = mgrid_arg_integer("a", 7);
  int64_t one = 0, list[4];
  size_t n = 0;
  mgrid_arg all = MGRID_ARG_INIT, json = MGRID_ARG_INIT;
  mgrid_policy_call(p, 1, &q, err);
  read_integer(p, "one", &one, err);
  read_integers(p, "list", 4, list, &n, err);
  mgrid_policy_result(p, NULL, MGRID_IS_TABLE, &all, err);
  mgrid_policy_result(p, NULL, MGRID_IS_JSON, &json, err);
  mgrid_policy_free(p);
  if (!err->status) assert_true(one == 7 && n == 2);
  return err->status;
}

/* A policy that failed for want of memory works again. */
static mgrid_status decide_again(mgrid_error *err) {
  mgrid_arg q = mgrid_arg_integer("a", 7);
  return mgrid_policy_call(policy, 1, &q, err);
}

static mgrid_status materialize(mgrid_error *err) {
  static const char *const dims[] = { "tp" };
  int64_t proved;
  mgrid_machine m = MGRID_MACHINE_INIT;
  mgrid_state *s = mgrid_materialize(plan, dry, "other", err);
  mgrid_state_create(s, "late", err);
  mgrid_state_prove(s, &proved, err);
  mgrid_state_machine(s, &m, err);
  mgrid_grid_free(mgrid_state_submesh(s, "grid", 1, dims, err));
  mgrid_state_free(s);
  return err->status;
}

static mgrid_status reload(mgrid_error *err) {
  const char *args[] = { "tp=4" };
  mgrid_state *new_s;
  mgrid_change change = MGRID_CHANGE_INIT;
  mgrid_reload(rt, state, NULL, 1, args, &new_s, &change, err);
  assert_true((new_s != NULL) == !err->status);
  mgrid_state_free(new_s);
  return err->status;
}

static mgrid_status shrink(mgrid_error *err) {
  const int64_t lost[] = { 6, 7 };
  mgrid_state *s = mgrid_state_shrink(state, "dp", 2, lost, err);
  mgrid_state_free(s);
  return err->status == MGRID_UNSUPPORTED ? MGRID_OK : err->status;
}

/* With the 1st, 2nd, ... allocation failing until the body needs no more of them. */
static void sweep(const char *what, mgrid_status (*body)(mgrid_error *err)) {
  long n = 0;
  for (bool done = false; !done; n++) {
    mgrid_error err = MGRID_ERROR_INIT;
    until_failure = n;
    mgrid_status s = body(&err);
    done = until_failure >= 0;
    until_failure = -1;
    if (done && s) fail_msg("%s: status %d, '%s'", what, (int)s, err.message);
    if (s && (s / 100 != MGRID_LIMIT / 100 || !strstr(err.message, "memory")))
      fail_msg("%s, allocation %ld: status %d, '%s'", what, n, (int)s, err.message);
    /* nothing is left of the failure */
    if (s) assert_int_equal(body(&(mgrid_error)MGRID_ERROR_INIT), MGRID_OK);
  }
  assert_true(n > 1);
  tried += n - 1;
  print_message("# allocations: %ld failed in %s\n", n - 1, what);
}

static bool open_job(void) {
  mgrid_error e = MGRID_ERROR_INIT;
  mgrid_arg q = mgrid_arg_integer("a", 7);
  int file = mkstemps(path, 4);
  if (write(file, recipe, sizeof recipe - 1) != (ssize_t)sizeof recipe - 1 || close(file) != 0)
    return false;
  rt = mgrid_runtime_new(NULL, NULL, &e);
  mgrid_runtime_load(rt, path, NULL, 0, &e);
  plan = mgrid_runtime_plan(rt, 8, NULL, 0, NULL, &e);
  dry = mgrid_backend_dry(8, 3, &e);
  state = mgrid_materialize(plan, dry, "train", &e);
  policy = mgrid_policy_new(rt, state, "one", &e);
  mgrid_policy_call(policy, 1, &q, &e);
  if (e.status) print_error("%s\n", e.message);
  return e.status == MGRID_OK;
}

static void close_job(void) {
  mgrid_policy_free(policy);
  mgrid_state_free(state);
  mgrid_backend_free(dry);
  mgrid_plan_free(plan);
  mgrid_runtime_free(rt);
  unlink(path);
}

static void test_load(void **s) { (void)s, sweep("mgrid_runtime_load", load); }
static void test_plan(void **s) { (void)s, sweep("mgrid_runtime_plan", make_plan); }
static void test_values(void **s) { (void)s, sweep("mgrid_runtime_plan_values", values); }
static void test_describe(void **s) { (void)s, sweep("mgrid_runtime_describe", describe); }
static void test_ask(void **s) { (void)s, sweep("queries, getters and settings", ask); }
static void test_policy(void **s) { (void)s, sweep("mgrid_policy_new and _call", decide); }
static void test_policy_again(void **s) { (void)s, sweep("mgrid_policy_call", decide_again); }
static void test_materialize(void **s) {
  (void)s, sweep("mgrid_materialize, _create, _prove", materialize);
}
static void test_reload(void **s) { (void)s, sweep("mgrid_reload", reload); }
static void test_shrink(void **s) { (void)s, sweep("mgrid_state_shrink", shrink); }

int main(int argc, char **argv) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_load),        cmocka_unit_test(test_plan),
    cmocka_unit_test(test_values),      cmocka_unit_test(test_ask),
    cmocka_unit_test(test_describe),    cmocka_unit_test(test_policy),
    cmocka_unit_test(test_reload),      cmocka_unit_test(test_policy_again),
    cmocka_unit_test(test_materialize), cmocka_unit_test(test_shrink),
  };
  if (!open_job()) return 1;
  int rc = run_program("starved", tests, argc, argv);
  close_job();
  return rc;
}
