/* SPDX-License-Identifier: MIT
**
** test_threads.c - what the header promises of threads: two with a runtime each, eight that read
** one plan, its families and grids, and count owners of them. Also built with TSan, which sees what
** a run by chance does not.
*/
#include "program.h"

#include "moongrid.h"
#include "moongrid_tensor.h"
#include "results.h"

#include <pthread.h>
#include <unistd.h>

enum { READERS = 8, TURNS = 20 };

static char path[] = P_tmpdir "/moongrid-threads-XXXXXX.lua";
static const char recipe[] =
    "return recipe { params = { tp = 2 }, build = function(world, p)\n"
    "  local g, t = grid(world, 'tp-dp-pp', { tp = p.tp, pp = 2, dp = fill }), topology(world)\n"
    "  t.grid, t.tp, t.dp, t.pp, t.ends = g, g 'tp', g 'dp', g 'pp', g 'pp':pick(0, -1)\n"
    "  t.odd = world:table({ { 0, 3, 5 }, { 1, 2 } }, 'partial') t.both = union(g:at { pp = 0 } "
    "'tp', g:at { pp = 1 } "
    "'dp')\n"
    "  t.w = tensor { axes = { { 'x', 16 } }, type = 'f32', cut = { x = 'tp' } } return t end,\n"
    "queries = { size = function(s) return s.tp.size end },\n"
    "policy = { one = function(s) return s.tp.size end } }\n";

static int take(void *ud, const char *text, size_t len) {
  return *(size_t *)ud += len, text ? 0 : 1;
}

/* What went wrong in a thread; cmocka's asserts are for the first thread alone. */
static const char *use_runtime(void) {
  mgrid_error e = MGRID_ERROR_INIT;
  int64_t size = 0, answer = 0;
  size_t length = 0;
  const char *args[] = { "tp=4" };
  mgrid_runtime *rt = mgrid_runtime_new(NULL, NULL, &e);
  mgrid_runtime_load(rt, path, NULL, 0, &e);
  mgrid_runtime_describe(rt, true, take, &length, &e);
  mgrid_plan *p = mgrid_runtime_plan(rt, 16, NULL, 1, args, &e);
  mgrid_backend *b = mgrid_backend_dry(16, 5, &e);
  mgrid_state *s = mgrid_materialize(p, b, "train", &e);
  mgrid_policy *one = mgrid_policy_new(rt, s, "one", &e);
  mgrid_policy_call(one, 0, NULL, &e);
  read_integer(one, NULL, &size, &e);
  ask_integer(rt, s, "size", 0, NULL, &answer, &e);
  mgrid_policy_free(one);
  mgrid_state_free(s);
  mgrid_backend_free(b);
  mgrid_plan_free(p);
  mgrid_runtime_free(rt);
  return e.status ? "a call failed" : size != 4 || answer != 4 ? "another answer" : NULL;
}

static const char *read_plan(mgrid_plan *shared) {
  mgrid_error e = MGRID_ERROR_INIT;
  size_t length = 0;
  char digest[33], text[256];
  mgrid_plan *p = mgrid_plan_ref(shared);
  mgrid_plan_checked checked = MGRID_PLAN_CHECKED_INIT;
  mgrid_resources resources = MGRID_RESOURCES_INIT;
  mgrid_change change = MGRID_CHANGE_INIT;
  mgrid_plan_digest(p, digest);
  mgrid_plan_print(p, take, &length, &e);
  mgrid_plan_print_json(p, 3, take, &length, &e);
  mgrid_plan_print_schedule(p, -1, take, &length, &e);
  mgrid_plan_check(p, &checked, &e);
  mgrid_plan_resources(p, -1, NULL, &resources, &e);
  mgrid_plan_diff(p, p, 3, &change, take, &length, &e);
  for (size_t i = 0; i < mgrid_plan_nfamilies(p); i++) {
    const mgrid_family *f = mgrid_plan_family(p, mgrid_plan_family_name(p, i));
    mgrid_family *mine = mgrid_family_ref(f), *twin = mgrid_family_twin(mine, &e);
    int64_t group, position;
    mgrid_family_locate(f, 3, 0, &group, &position);
    mgrid_family_describe(twin, text, sizeof text);
    mgrid_family_free(twin);
    mgrid_family_free(mine);
  }
  mgrid_backend *b = mgrid_backend_dry(16, 5, &e); /* of this thread alone, over the plan of all */
  mgrid_state *s = mgrid_materialize(p, b, "train", &e);
  bool has = mgrid_group_size(mgrid_state_group(s, "tp", &e)) == 2;
  mgrid_state_free(s);
  mgrid_backend_free(b);
  mgrid_plan_free(p);
  return e.status ? "a call failed" : !has || length == 0 ? "another answer" : NULL;
}

typedef struct job {
  pthread_t thread;
  mgrid_plan *plan; /* NULL: a runtime of its own */
  const char *why;
} job;

static void *run(void *job_) {
  job *j = job_;
  for (int i = 0; i < TURNS && !j->why; i++) j->why = j->plan ? read_plan(j->plan) : use_runtime();
  return NULL;
}

static void run_all(int n, mgrid_plan *plan) {
  job jobs[READERS] = { 0 };
  for (int i = 0; i < n; i++) {
    jobs[i].plan = plan;
    assert_int_equal(pthread_create(&jobs[i].thread, NULL, run, &jobs[i]), 0);
  }
  for (int i = 0; i < n; i++) pthread_join(jobs[i].thread, NULL);
  for (int i = 0; i < n; i++)
    if (jobs[i].why) fail_msg("thread %d: %s", i, jobs[i].why);
}

static void test_two_runtimes(void **state) {
  (void)state;
  run_all(2, NULL);
}

static void test_eight_readers(void **state) {
  mgrid_error e = MGRID_ERROR_INIT;
  mgrid_runtime *rt = mgrid_runtime_new(NULL, NULL, &e);
  (void)state;
  mgrid_runtime_load(rt, path, NULL, 0, &e);
  mgrid_plan *p = mgrid_runtime_plan(rt, 16, NULL, 0, NULL, &e);
  if (e.status) fail_msg("%s", e.message);
  run_all(READERS, p);
  mgrid_plan_free(p);
  mgrid_runtime_free(rt);
}

static bool write_recipe(void) {
  int file = mkstemps(path, 4);
  return write(file, recipe, sizeof recipe - 1) == (ssize_t)sizeof recipe - 1 && close(file) == 0;
}

int main(int argc, char **argv) {
  const struct CMUnitTest tests[] = { cmocka_unit_test(test_two_runtimes),
                                      cmocka_unit_test(test_eight_readers) };
  if (!write_recipe()) return 1;
  int rc = run_program("threads", tests, argc, argv);
  return unlink(path) == 0 ? rc : 1;
}
