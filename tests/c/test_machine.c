/* SPDX-License-Identifier: MIT
**
** test_machine.c - how ranks are spread over machines: what one rank learns from simulated other
** ranks, compared with counting them one by one.
*/
#include "random.h"

#include "comm/state.h"

#include <unistd.h>

enum { MOST = 200 };

/* A backend whose other ranks are on machines of the test's choice. */
typedef struct fake {
  mgrid_backend base;
  int machine[MOST]; /* of each rank; 0: this one */
  int failed;        /* a rank that brings a failure, or -1 */
  int calls;
} fake;

static uint64_t id_of(const fake *f, int64_t rank) {
  return f->machine[rank] ? (uint64_t)f->machine[rank] * UINT64_C(0x9E3779B97F4A7C15)
                          : mgrid_machine_id();
}

static mgrid_status fake_min(mgrid_backend *b, uint64_t *words, size_t n, mgrid_error *err) {
  fake *f = (fake *)b;
  (void)err;
  f->calls++;
  for (int64_t r = 0; r < b->world; r++) {
    uint64_t id = id_of(f, r), verdict = f->failed == r ? (uint64_t)r : UINT64_MAX;
    if (r == b->rank) continue;
    if (f->calls == 1) { /* the agreement: alike but for the machine */
      if (id < words[6]) words[6] = id;
      if (~id < words[7]) words[7] = ~id;
    } else {
      if (n > 1) words[r] = id;
      if (verdict < words[n - 1]) words[n - 1] = verdict;
    }
  }
  return MGRID_OK;
}

static mgrid_status fake_bcast(mgrid_backend *b, void *data, size_t bytes, int64_t root,
                               mgrid_error *err) {
  mgrid_error first = MGRID_ERROR_INIT;
  (void)b, (void)err;
  assert_int_equal(bytes, sizeof first);
  mgrid_fail(&first, MGRID_BACKEND, "what rank %d says", (int)root);
  memcpy(data, &first, bytes);
  return MGRID_OK;
}

static mgrid_status fake_check(mgrid_backend *b, size_t n, const mgrid_comm_spec *spec,
                               mgrid_error *err) {
  (void)b, (void)n, (void)spec, (void)err;
  return MGRID_OK;
}

static mgrid_outcome fake_create(mgrid_backend *b, size_t n, const mgrid_comm_spec *spec,
                                 void **native, mgrid_error *err) {
  (void)b, (void)n, (void)spec, (void)native, (void)err;
  return MGRID_OK;
}

static void fake_destroy(mgrid_backend *b, size_t n, void **native) {
  (void)b, (void)n, (void)native;
}
static void fake_close(mgrid_backend *b) { (void)b; }

static const mgrid_descriptor kind = { .name = "fake" };
static const mgrid_backend_ops ops = { .allreduce_min = fake_min,
                                       .bcast = fake_bcast,
                                       .check = fake_check,
                                       .create = fake_create,
                                       .destroy = fake_destroy,
                                       .close = fake_close };

static mgrid_error why = MGRID_ERROR_INIT;

static mgrid_state *materialize(fake *f, int64_t world, int64_t rank) {
  f->base = (mgrid_backend){
    .layout = MGRID_LAYOUT, .kind = &kind, .ops = &ops, .rank = rank, .world = world, .users = 1
  };
  mgrid_topology *t = mgrid_topology_new(world, anew(&why));
  mgrid_plan *p = mgrid_plan_new(t, anew(&why));
  mgrid_state *s = mgrid_materialize(p, &f->base, "", anew(&why));
  mgrid_plan_free(p);
  mgrid_topology_free(t);
  return s;
}

/* The same numbers, counted rank by rank. */
static void count(const fake *f, int64_t world, int64_t rank, mgrid_machine *want) {
  memset(want, 0, sizeof *want);
  for (int64_t r = 0; r < world; r++) {
    bool first = true, same = f->machine[r] == f->machine[rank];
    for (int64_t k = 0; k < r; k++) first &= f->machine[k] != f->machine[r];
    want->machines += first;
    want->local_size += same;
    want->local_rank += same && r < rank;
  }
  bool seen[MOST + 1] = { false };
  for (int64_t r = 0; r < world && f->machine[r] != f->machine[rank]; r++) {
    want->index += !seen[f->machine[r]];
    seen[f->machine[r]] = true;
  }
}

/* The least number by which a rank divided is a machine of its own; 0: none that would tell ranks
** apart. */
static int64_t block_of(const fake *f, int64_t world) {
  for (int64_t n = 2; n < world; n++) {
    bool fits = true;
    for (int64_t a = 0; a < world && fits; a++)
      for (int64_t b = 0; b < a && fits; b++)
        fits = (f->machine[a] == f->machine[b]) == (a / n == b / n);
    if (fits) return n;
  }
  return 0;
}

static void test_places(void **state) {
  (void)state;
  for (uint64_t seed = first_seed(); seed < first_seed() + 2000; seed++) {
    rng r = rng_new(seed);
    fake f = { .failed = -1 };
    int64_t world = rng_between(&r, 1, MOST), rank = rng_between(&r, 0, world - 1);
    int64_t machines = rng_between(&r, 1, seed % 3 ? 5 : world);
    for (int64_t i = 0; i < world; i++) /* one after the other, or by chance */
      f.machine[i] = 1 + (int)(seed % 2 ? rng_between(&r, 0, machines - 1) : i * machines / world);
    for (int64_t i = 0, here = f.machine[rank]; i < world; i++)
      if (f.machine[i] == here) f.machine[i] = 0;
    mgrid_state *s = materialize(&f, world, rank);
    mgrid_machine is = MGRID_MACHINE_INIT, want = MGRID_MACHINE_INIT;
    check(&r, s);
    mgrid_state_machine(s, &is, NULL);
    count(&f, world, rank, &want);
    check(&r, is.machines == want.machines);
    check(&r, is.index == want.index);
    check(&r, is.local_size == want.local_size);
    check(&r, is.local_rank == want.local_rank);
    check(&r, s->backend->spread.block == block_of(&f, world));
    check(&r, f.calls == 2); /* agreement and verdict: it takes no call of its own */
    mgrid_state_free(s);
  }
}

static void test_verdict_over_machines(void **state) {
  (void)state;
  fake f = { .machine = { 0, 1, 1, 0 }, .failed = 2 };
  assert_null(materialize(&f, 4, 0));
  assert_int_equal(why.status, MGRID_BACKEND);
  assert_string_equal(why.message, "rank 2: what rank 2 says");
}

static void test_facts(void **state) {
  (void)state;
  mgrid_backend *b = mgrid_backend_dry(12, 5, anew(&why));
  mgrid_topology *t = mgrid_topology_new(12, anew(&why));
  mgrid_plan *p = mgrid_plan_new(t, anew(&why));
  mgrid_state *s = mgrid_materialize(p, b, NULL, anew(&why));
  mgrid_machine m = MGRID_MACHINE_INIT;
  char name[64] = "";
  mgrid_state_machine(s, &m, NULL);
  gethostname(name, sizeof name - 1);
  assert_string_equal(m.name, name);
  assert_int_equal(m.cores, sysconf(_SC_NPROCESSORS_ONLN));
  assert_true(m.usable_cores >= 1 && m.usable_cores <= m.cores && m.memory > (64 << 20));
  assert_true(m.gpus == 0 && m.gpu == -1);
  /* as if all ran here */
  assert_true(m.machines == 1 && m.index == 0 && m.local_size == 12 && m.local_rank == 5);
  mgrid_state_free(s);
  mgrid_backend_free(b);
  mgrid_plan_free(p);
  mgrid_topology_free(t);
}

int main(int argc, char **argv) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_places),
    cmocka_unit_test(test_verdict_over_machines),
    cmocka_unit_test(test_facts),
  };
  return run_program("machine", tests, argc, argv);
}
