/* SPDX-License-Identifier: MIT
**
** test_nccl.c - NCCL communicators without NCCL: their options as text, and their memory, compared
** with the sizes that runs of NCCL's CPU code asked for.
*/
#include "random.h"

#include "plan/nccl_options.h"
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

static mgrid_demand demand(const char *options, int64_t n, int64_t local, bool nvls) {
  mgrid_nccl_values v;
  mgrid_demand d;
  assert_int_equal(mgrid_nccl_read(options, &v, anew(&why)), MGRID_OK);
  mgrid_nccl_demand(&v, n, local, nvls, &d);
  return d;
}

/* n channels to a neighbour and from one, on this machine and on another. */
static int64_t near(int64_t n) { return n * (INT64_C(12) << 20); }
static int64_t far(int64_t n) { return n * (INT64_C(20) << 20); }

/* The numbers that src/comm/README.md derives, by hand. */
static void test_demand(void **unused) {
  (void)unused;
  const int64_t mib = 1 << 20;
  const mgrid_demand none = { 0 };
  mgrid_demand d = demand("max_ctas=16", 1, 1, true);
  assert_memory_equal(&d, &none, sizeof d); /* a group of one rank */
  d = demand("max_ctas=16", 8, 8, true);    /* a whole machine */
  assert_int_equal(d.created, 100 * mib);
  assert_int_equal(d.nvls_created, (16 + 1) * 2 * mib);
  assert_int_equal(d.ring, near(16));
  assert_int_equal(d.tree, near(16));
  assert_int_equal(d.nvls, 256 * mib);
  assert_int_equal(d.p2p, 7 * 16 * 12 * mib);
  assert_int_equal(d.blocks, 16);
  assert_int_equal(d.multicast, 2);
  assert_int_equal(d.files, 14);
  d = demand("max_ctas=16", 8, 1, true); /* a rank on each of 8 machines */
  assert_int_equal(d.nvls_created + d.nvls + d.multicast, 0);
  assert_int_equal(d.tree, far(16 * 3));
  assert_int_equal(d.p2p, 16 * 4 * mib);
  assert_int_equal(d.files, 14 + 4 * 16); /* 20 of them, and a limit of 1,024 is passed */
  d = demand("max_ctas=16", 16, 8, true); /* two machines */
  assert_int_equal(d.nvls, 256 * mib + far(16));
  assert_int_equal(d.p2p, 16 * 4 * mib + 7 * 2 * 12 * mib);
  assert_int_equal(demand("max_ctas=16 n_channels_per_net_peer=3", 16, 8, true).p2p,
                   16 * 4 * mib + 7 * 4 * 12 * mib);
  d = demand("max_ctas=16", 2, 2, false); /* a pair: up and down are the ring's neighbours */
  assert_int_equal(d.tree, 0);
  assert_int_equal(d.nvls_created + d.nvls + d.multicast, 0);
  /* a power of two of channels */
  assert_int_equal(demand("max_ctas=12", 2, 2, false).p2p, 16 * 12 * mib);
  assert_int_equal(demand("max_ctas=4", 8, 8, true).nvls, 64 * mib);
  assert_int_equal(demand("max_ctas=64 nvls_ctas=8", 8, 8, true).nvls, 128 * mib);
  assert_int_equal(demand("min_ctas=20 nvls_ctas=8", 8, 8, true).nvls, 320 * mib);
  assert_int_equal(demand("", 8, 8, true).blocks, MGRID_NCCL_CHANNELS);
}

static void test_text(void **unused) {
  (void)unused;
  mgrid_nccl_values v;
  mgrid_text t = { 0 };
  assert_int_equal(
      mgrid_nccl_read(" net_name=Socket,max_ctas=08\toptional=1 blocking=0", &v, anew(&why)),
      MGRID_OK);
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
  const char *dp = "dp", *tp = "tp";
  mgrid_options few = MGRID_OPTIONS_INIT, cpu = MGRID_OPTIONS_INIT;
  mgrid_grid *g = mgrid_grid_new(mgrid_world(8), 2, dims, anew(&why));
  mgrid_topology *t = mgrid_topology_new(8, anew(&why));
  mgrid_family *f = mgrid_grid_along(g, 1, &dp, MGRID_GRID_ORDER, anew(&why)),
               *one = mgrid_grid_along(g, 1, &tp, MGRID_GRID_ORDER, anew(&why));
  mgrid_family *pairs = mgrid_family_neighbours(f, 1, true, anew(&why));
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
  assert_int_equal(m.first_use, far(32) + far(1));
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

/* Two machines of 4: tp inside each, dp across, all over both. */
static mgrid_plan *machines(const char *first, const char *second) {
  const mgrid_dim dims[] = { { "tp", 4 }, { "dp", 2 } };
  const char *names[] = { "tp", "dp" };
  mgrid_options few = MGRID_OPTIONS_INIT, more = MGRID_OPTIONS_INIT, cpu = MGRID_OPTIONS_INIT;
  mgrid_grid *g = mgrid_grid_new(mgrid_world(8), 2, dims, anew(&why));
  mgrid_topology *t = mgrid_topology_new(8, anew(&why));
  mgrid_family *f[] = { mgrid_grid_along(g, 1, &names[0], MGRID_GRID_ORDER, anew(&why)),
                        mgrid_grid_along(g, 1, &names[1], MGRID_GRID_ORDER, anew(&why)),
                        mgrid_grid_along(g, 2, names, MGRID_GRID_ORDER, anew(&why)) };
  few.nccl = "max_ctas=4";
  more.nccl = "max_ctas=8";
  cpu.backend = "mpi";
  mgrid_topology_add(t, "tp", f[0], &few, anew(&why));
  mgrid_topology_add(t, "dp", f[1], &more, anew(&why));
  mgrid_topology_add(t, "all", f[2], &few, anew(&why));
  mgrid_topology_add(t, "cpu", f[2], &cpu, anew(&why));
  if (first)
    assert_int_equal(mgrid_topology_concurrent(t, 2, (const char *[]){ first, second }, anew(&why)),
                     MGRID_OK);
  mgrid_plan *p = mgrid_plan_new(t, anew(&why));
  for (int i = 0; i < 3; i++) mgrid_family_free(f[i]);
  mgrid_topology_free(t);
  mgrid_grid_free(g);
  return p;
}

static void test_resources(void **unused) {
  (void)unused;
  mgrid_plan *p = machines(NULL, NULL);
  mgrid_resources r = MGRID_RESOURCES_INIT, any = MGRID_RESOURCES_INIT;
  mgrid_site site = MGRID_SITE_INIT;
  mgrid_demand tp = demand("max_ctas=4", 4, 4, true), dp = demand("max_ctas=8", 2, 1, true),
               all = demand("max_ctas=4", 8, 4, true);
  site.machine_ranks = 4;
  for (int64_t rank = -1; rank < 8; rank++) { /* every rank is alike */
    assert_int_equal(mgrid_plan_resources(p, rank, &site, &r, anew(&why)), MGRID_OK);
    assert_int_equal(r.communicators, 3);
    assert_int_equal(r.created, tp.created + dp.created + all.created);
    assert_int_equal(r.nvls_created, tp.nvls_created + all.nvls_created);
    assert_int_equal(r.ring, tp.ring + dp.ring + all.ring);
    assert_int_equal(r.tree, tp.tree + dp.tree + all.tree);
    assert_int_equal(r.nvls, tp.nvls + all.nvls);
    assert_int_equal(r.p2p, tp.p2p + dp.p2p + all.p2p);
    assert_int_equal(r.files, 14 + 14 + 4 * 8 + 14 + 4 * 4);
    assert_int_equal(r.nvls_slots, 4); /* tp, all; the four of dp are across */
    assert_int_equal(r.blocks, 8);     /* one at a time */
    assert_false(r.sampled);
  }
  site.machine_ranks = 8; /* now dp is local, too, four times */
  assert_int_equal(mgrid_plan_resources(p, 0, NULL, &any, anew(&why)), MGRID_OK);
  assert_int_equal(mgrid_plan_resources(p, 0, &site, &r, anew(&why)), MGRID_OK);
  assert_memory_equal(&any, &r, sizeof r); /* 8 is the default */
  assert_int_equal(r.nvls_slots, 2 * (2 + 4 + 1));
  assert_int_equal(r.files, 3 * 14);
  site.no_nvls = true;
  assert_int_equal(mgrid_plan_resources(p, 0, &site, &r, anew(&why)), MGRID_OK);
  assert_int_equal(r.nvls_slots + r.nvls + r.nvls_created, 0);
  site.max_ctas = 2; /* from the environment: over every family */
  assert_int_equal(mgrid_plan_resources(p, -1, &site, &r, anew(&why)), MGRID_OK);
  assert_int_equal(r.blocks, 2);
  assert_int_equal(r.created, 3 * demand("max_ctas=2", 8, 8, false).created);
  mgrid_plan_free(p);
  p = machines("dp", "tp"); /* both kernels at once */
  assert_int_equal(mgrid_plan_resources(p, 3, NULL, &r, anew(&why)), MGRID_OK);
  assert_int_equal(r.blocks, 4 + 8);
  mgrid_plan_free(p);
}

static void test_resources_refused(void **unused) {
  (void)unused;
  mgrid_plan *p = machines(NULL, NULL);
  mgrid_resources r = MGRID_RESOURCES_INIT, before = r;
  mgrid_site site = MGRID_SITE_INIT;
  assert_int_equal(mgrid_plan_resources(p, 8, NULL, &r, anew(&why)), MGRID_OUT_OF_RANGE);
  assert_string_equal(why.message, "rank 8 is out of range; ranks are 0 to 7");
  site.machine_ranks = 4097;
  assert_int_equal(mgrid_plan_resources(p, 0, &site, &r, anew(&why)), MGRID_OUT_OF_RANGE);
  assert_string_equal(why.message, "a machine has 1 to 4096 ranks, not 4097");
  site = (mgrid_site)MGRID_SITE_INIT;
  site.min_ctas = 65;
  assert_int_equal(mgrid_plan_resources(p, 0, &site, &r, anew(&why)), MGRID_OUT_OF_RANGE);
  assert_string_equal(why.message, "min_ctas of a site is 1 to 64, not 65");
  site.min_ctas = 0, site.max_ctas = -1;
  assert_int_equal(mgrid_plan_resources(p, 0, &site, &r, anew(&why)), MGRID_OUT_OF_RANGE);
  assert_string_equal(why.message, "max_ctas of a site is 1 to 64, not -1");
  assert_int_equal(mgrid_plan_resources(NULL, 0, NULL, &r, anew(&why)), MGRID_USAGE);
  assert_memory_equal(&r, &before, sizeof r);
  mgrid_plan_free(p);
}

/* In the largest world three machines are looked at. */
static void test_resources_of_a_large_world(void **unused) {
  (void)unused;
  const int64_t world = INT64_C(1) << 30;
  const mgrid_dim dims[] = { { "tp", 8 }, { "dp", MGRID_FILL } };
  const char *names[] = { "tp", "dp" };
  mgrid_grid *g = mgrid_grid_new(mgrid_world(world), 2, dims, anew(&why));
  mgrid_topology *t = mgrid_topology_new(world, anew(&why));
  mgrid_family *tp = mgrid_grid_along(g, 1, &names[0], MGRID_GRID_ORDER, anew(&why)),
               *dp = mgrid_grid_along(g, 1, &names[1], MGRID_GRID_ORDER, anew(&why));
  mgrid_resources r = MGRID_RESOURCES_INIT;
  mgrid_gpu_memory m = MGRID_GPU_MEMORY_INIT;
  mgrid_topology_add(t, "tp", tp, NULL, anew(&why));
  mgrid_topology_add(t, "dp", dp, NULL, anew(&why));
  mgrid_plan *p = mgrid_plan_new(t, anew(&why));
  assert_int_equal(mgrid_plan_resources(p, -1, NULL, &r, anew(&why)), MGRID_OK);
  assert_int_equal(mgrid_plan_gpu_memory(p, -1, &m, anew(&why)), MGRID_OK);
  assert_true(r.sampled);
  assert_int_equal(r.created, m.created);
  assert_int_equal(r.ring, m.first_use);
  assert_int_equal(r.nvls_slots, 2); /* tp; of dp there are 8, all across */
  assert_int_equal(r.files, 2 * 14 + 4 * 32);
  mgrid_plan_free(p);
  mgrid_family_free(tp);
  mgrid_family_free(dp);
  mgrid_topology_free(t);
  mgrid_grid_free(g);
}

int main(int argc, char **argv) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_memory),
    cmocka_unit_test(test_text),
    cmocka_unit_test(test_plan_memory),
    cmocka_unit_test(test_demand),
    cmocka_unit_test(test_resources),
    cmocka_unit_test(test_resources_refused),
    cmocka_unit_test(test_resources_of_a_large_world),
  };
  return run_program("nccl", tests, argc, argv);
}
