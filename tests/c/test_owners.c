/* SPDX-License-Identifier: MIT
**
** test_owners.c - who keeps whom alive: all that a job is made of, freed in every order, and used
** as long as one owner is left. Under ASan nothing is used too late, and nothing is left.
*/
#include "program.h"

#include "comm/backend.h"
#include "moongrid_recipe.h"
#include "results.h"

#include <unistd.h>

/* A job in C. The order in which its parts are freed is a permutation of these. */
enum { GRID, FAMILY, TOPOLOGY, PLAN, BACKEND, STATE, PARTS };

typedef struct job {
  mgrid_grid *grid;
  mgrid_family *family;
  mgrid_topology *topology;
  mgrid_plan *plan;
  mgrid_backend *backend;
  mgrid_state *state;
} job;

static job begin(void) {
  const mgrid_dim dims[] = { { "tp", 2 }, { "dp", 4 } };
  mgrid_error e = MGRID_ERROR_INIT;
  job j;
  j.grid = mgrid_grid_new(mgrid_world(8), 2, dims, &e);
  j.family = mgrid_grid_along(j.grid, 1, &dims[1].name, MGRID_GRID_ORDER, &e);
  j.topology = mgrid_topology_new(8, &e);
  mgrid_topology_add(j.topology, "dp", j.family, NULL, &e);
  mgrid_topology_add_grid(j.topology, "grid", j.grid, &e);
  j.plan = mgrid_plan_new(j.topology, &e);
  j.backend = mgrid_backend_dry(8, 5, &e);
  j.state = mgrid_materialize(j.plan, j.backend, "job", &e);
  assert_int_equal(e.status, MGRID_OK);
  return j;
}

static void end(const job *j, int part) {
  switch (part) {
  case GRID: mgrid_grid_free(j->grid); return;
  case FAMILY: mgrid_family_free(j->family); return;
  case TOPOLOGY: mgrid_topology_free(j->topology); return;
  case PLAN: mgrid_plan_free(j->plan); return;
  case BACKEND: mgrid_backend_free(j->backend); return;
  case STATE: mgrid_state_free(j->state); return;
  }
}

/* The state answers, whatever of the rest is still owned by the host. */
static void answers(const mgrid_state *s) {
  mgrid_error e = MGRID_ERROR_INIT;
  const mgrid_group *g = mgrid_state_group(s, "dp", &e);
  assert_int_equal(mgrid_group_size(g), 4);
  assert_int_equal(mgrid_group_at(g, 3), 7);
  assert_string_equal(mgrid_group_backend(g), "dry");
  assert_int_equal(mgrid_state_coord(s, "grid", "dp", &e), 2);
  assert_int_equal(mgrid_plan_world(mgrid_state_plan(s)), 8);
}

static void permute(int *order, int n) {
  if (n == PARTS) {
    job j = begin();
    bool alive = true;
    for (int i = 0; i < PARTS; i++) {
      if (alive) answers(j.state);
      alive &= order[i] != STATE;
      end(&j, order[i]);
    }
    return;
  }
  for (int i = n; i < PARTS; i++) {
    int was = order[n];
    order[n] = order[i], order[i] = was;
    permute(order, n + 1);
    order[i] = order[n], order[n] = was;
  }
}

static void test_every_order(void **state) {
  int order[PARTS] = { GRID, FAMILY, TOPOLOGY, PLAN, BACKEND, STATE };
  (void)state;
  permute(order, 0);
}

/* Another owner is another _free; what is owned stays as it was. */
static void test_refs(void **state) {
  mgrid_error e = MGRID_ERROR_INIT;
  job j = begin();
  (void)state;
  assert_ptr_equal(mgrid_grid_ref(j.grid), j.grid);
  assert_ptr_equal(mgrid_family_ref(j.family), j.family);
  assert_ptr_equal(mgrid_plan_ref(j.plan), j.plan);
  assert_ptr_equal(mgrid_backend_ref(j.backend), j.backend);
  assert_true(!mgrid_grid_ref(NULL) && !mgrid_family_ref(NULL) && !mgrid_plan_ref(NULL)
              && !mgrid_backend_ref(NULL) && !mgrid_runtime_ref(NULL));
  for (int part = 0; part < PARTS; part++) end(&j, part);
  assert_int_equal(mgrid_grid_ndims(j.grid), 2);
  assert_int_equal(mgrid_family_count(j.family), 2);
  assert_int_equal(mgrid_plan_nfamilies(j.plan), 1);
  j.state = mgrid_materialize(j.plan, j.backend, "again", &e);
  answers(j.state);
  end(&j, BACKEND);
  assert_int_equal(mgrid_backend_ncomms(j.backend), 1); /* the state is its owner now */
  end(&j, STATE);
  end(&j, GRID), end(&j, FAMILY), end(&j, PLAN);
}

static void test_a_policy_keeps_its_runtime(void **state) {
  mgrid_error e = MGRID_ERROR_INIT;
  char path[64];
  int64_t n = 0;
  (void)state;
  snprintf(path, sizeof path, "/tmp/owners-%d.lua", (int)getpid());
  FILE *file = fopen(path, "w");
  fputs("local calls = 0\n"
        "return recipe { build = function(world) local t = topology(world)\n"
        "  t.all = grid(world, 'dp', { dp = fill }) 'dp' return t end,\n"
        "  policy = { count = function(s) calls = calls + s.all.size return calls end } }\n",
        file);
  fclose(file);
  mgrid_runtime *rt = mgrid_runtime_new(NULL, NULL, &e);
  mgrid_runtime_load(rt, path, NULL, 0, &e);
  unlink(path);
  mgrid_plan *p = mgrid_runtime_plan(rt, 8, NULL, 0, NULL, &e);
  mgrid_backend *b = mgrid_backend_dry(8, 0, &e);
  mgrid_state *s = mgrid_materialize(p, b, "", &e);
  mgrid_policy *one = mgrid_policy_new(rt, s, "count", &e),
               *other = mgrid_policy_new(rt, s, "count", &e);
  assert_ptr_equal(mgrid_runtime_ref(rt), rt);
  mgrid_runtime_free(rt);
  mgrid_runtime_free(rt); /* both of the host's */
  mgrid_plan_free(p);
  mgrid_backend_free(b);
  mgrid_policy_call(one, 0, NULL, &e);
  mgrid_policy_free(one);
  mgrid_policy_call(other, 0, NULL, &e);
  read_integer(other, NULL, &n, &e);
  assert_int_equal(e.status, MGRID_OK);
  assert_int_equal(n, 16); /* two calls, of one recipe */
  mgrid_policy_free(other);
  mgrid_state_free(s);
}

/* A backend, or the way into its library, that is of another version is not touched. */
static void test_layouts(void **state) {
  static const struct {
    int layout;
    const char *says;
  } cases[] = { { MGRID_LAYOUT, "" },
                { 0x6d000000 + 10203, "the library is of moongrid 1.2.3, this is " MGRID_VERSION
                                      "; install both from one version" },
                { 0, "the library is not of any moongrid" },
                { 0x7f454c46, "the library is not of any moongrid" } };
  mgrid_error e = MGRID_ERROR_INIT;
  job j = begin();
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    mgrid_error_clear(&e);
    assert_int_equal(mgrid_layout_check(cases[i].layout, "the library", &e),
                     *cases[i].says ? MGRID_MISSING : MGRID_OK);
    assert_string_equal(e.message, cases[i].says);
  }
  mgrid_hooks hooks = MGRID_HOOKS_INIT;
  /* all else is NULL: using it would crash */
  mgrid_backend strange = { .layout = 0x6d000000 + 10203 };
  static const char says[] = "is of moongrid 1.2.3, this is " MGRID_VERSION;
  assert_null(mgrid_materialize(j.plan, &strange, "", anew(&e)));
  assert_true(e.status == MGRID_MISSING && strstr(e.message, says));
  assert_int_equal(mgrid_agree(&strange, j.plan, NULL, anew(&e)), MGRID_MISSING);
  assert_non_null(strstr(e.message, says));
  assert_int_equal(mgrid_backend_set_hooks(&strange, &hooks, anew(&e)), MGRID_MISSING);
  assert_null(mgrid_backend_over(&strange, "nccl", NULL, anew(&e)));
  assert_true(e.status == MGRID_MISSING && strstr(e.message, says));
  for (int part = 0; part < PARTS; part++) end(&j, part);
}

int main(int argc, char **argv) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_every_order),
    cmocka_unit_test(test_refs),
    cmocka_unit_test(test_a_policy_keeps_its_runtime),
    cmocka_unit_test(test_layouts),
  };
  return run_program("owners", tests, argc, argv);
}
