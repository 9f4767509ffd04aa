/* SPDX-License-Identifier: MIT
**
** test_nccl.c - NCCL communicators without NCCL: their options as text, and their memory, compared with
** the sizes that runs of NCCL's CPU code asked for.
*/
#include "random.h"

#include "plan/nccl.h"
#include "plan/plan.h"

static mgrid_error why = MGRID_ERROR_INIT;

static int64_t memory(const char *options, int64_t n) {
  mgrid_nccl_values v;
  assert_int_equal(mgrid_nccl_read(options, &v, anew(&why)), MGRID_OK);
  int64_t bytes = mgrid_nccl_memory(&v, n);
  assert_int_equal(bytes % (2 << 20), 0);
  return bytes >> 20;
}

static void test_memory(void **unused) {
  (void)unused;
  assert_int_equal(memory("", 1), 0);
  assert_int_equal(memory("max_ctas=1", 2), 10);
  assert_int_equal(memory("max_ctas=2", 2), 16);
  assert_int_equal(memory("max_ctas=16", 8), 100);
  assert_int_equal(memory("max_ctas=32", 512), 196);
  assert_int_equal(memory("max_ctas=64", 8), 388);
  assert_int_equal(memory("", 8), 196); /* 32 channels by default */
  assert_int_equal(memory("min_ctas=40", 8), 244);
  assert_int_equal(memory("", 16384), 448 + 4);
  assert_int_equal(memory("", 100000), 1984 + 4);
}

static void test_text(void **unused) {
  (void)unused;
  mgrid_nccl_values v;
  mgrid_text        t = { 0 };
  assert_int_equal(mgrid_nccl_read(" net_name=Socket,max_ctas=08\toptional=1 blocking=0", &v, anew(&why)), MGRID_OK);
  mgrid_nccl_text(&v, &t);
  assert_string_equal(t.data, "blocking=0 max_ctas=8 net_name=Socket optional=1");
  mgrid_text_free(&t);
  for (int i = 1; i < MGRID_NCCL_FIELDS; i++) /* the table is by name, so that the text is */
    assert_true(strcmp(mgrid_nccl_fields[i - 1].name, mgrid_nccl_fields[i].name) < 0);
}

/* dp of 8 twice with another configuration, tp of one rank, and one that MPI makes. */
static void test_plan_memory(void **unused) {
  (void)unused;
  const mgrid_dim dims[] = { { "tp", 1 }, { "dp", 8 } };
  const char     *dp = "dp", *tp = "tp";
  mgrid_options   few = MGRID_OPTIONS_INIT, cpu = MGRID_OPTIONS_INIT;
  mgrid_grid     *g = mgrid_grid_new(mgrid_world(8), 2, dims, anew(&why));
  mgrid_topology *t = mgrid_topology_new(8, anew(&why));
  mgrid_family   *f = mgrid_grid_along(g, 1, &dp, MGRID_GRID_ORDER, anew(&why)),
               *one = mgrid_grid_along(g, 1, &tp, MGRID_GRID_ORDER, anew(&why));
  mgrid_family    *pairs = mgrid_family_neighbours(f, 1, true, anew(&why));
  mgrid_gpu_memory m = MGRID_GPU_MEMORY_INIT;
  few.nccl = "max_ctas=1";
  cpu.backend = "mpi";
  mgrid_topology_add(t, "dp", f, NULL, anew(&why));
  mgrid_topology_add(t, "same", f, NULL, anew(&why));
  mgrid_topology_add(t, "few", f, &few, anew(&why));
  mgrid_topology_add(t, "cpu", f, &cpu, anew(&why));
  mgrid_topology_add(t, "tp", one, NULL, anew(&why));
  mgrid_plan *p = mgrid_plan_new(t, anew(&why));
  assert_int_equal(mgrid_plan_gpu_memory(p, -1, &m, anew(&why)), MGRID_OK);
  assert_int_equal(m.communicators, 2);
  assert_int_equal(m.created >> 20, 196 + 10);
  assert_int_equal(m.first_use, (INT64_C(184) << 20) * 32 / 10 + (INT64_C(184) << 20) / 10);
  for (int64_t r = 0; r < 8; r++) {
    mgrid_gpu_memory mine = MGRID_GPU_MEMORY_INIT;
    assert_int_equal(mgrid_plan_gpu_memory(p, r, &mine, anew(&why)), MGRID_OK);
    assert_int_equal(mine.created, m.created);
  }
  assert_int_equal(mgrid_plan_gpu_memory(p, 8, &m, anew(&why)), MGRID_OUT_OF_RANGE);
  mgrid_plan_free(p);
  mgrid_topology_add(t, "ring", pairs, NULL, anew(&why)); /* a rank is in two of its groups */
  p = mgrid_plan_new(t, anew(&why));
  mgrid_plan_gpu_memory(p, -1, &m, anew(&why));
  assert_int_equal(m.communicators, 4);
  mgrid_plan_free(p);
  mgrid_family_free(pairs);
  mgrid_family_free(one);
  mgrid_family_free(f);
  mgrid_topology_free(t);
  mgrid_grid_free(g);
}

int main(int argc, char **argv) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_memory),
    cmocka_unit_test(test_text),
    cmocka_unit_test(test_plan_memory),
  };
  return run_program("nccl", tests, argc, argv);
}
