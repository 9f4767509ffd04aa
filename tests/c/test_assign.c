/* SPDX-License-Identifier: MIT
**
** test_assign.c - which host takes which ranks: against all assignments where there are few, and
** never worse than the order in which the hosts are listed, or than the order of places.
*/
#include "topologies.h"

#include "machine/assign.h"
#include "machine/traffic.h"

enum { CASES = 300, LARGE = 60, HOSTS = 7, ROOM = 4096 };

typedef struct job {
  mgrid_machine_model *m;
  mgrid_plan *plan;
  mgrid_traffic *traffic;
  int64_t hosts, each, world;
} job;

/* Hosts below racks of random sizes, in a random order of arrival, and a grid over them. */
static void draw_job(rng *r, job *j, int64_t hosts, int64_t racks) {
  char text[ROOM];
  mgrid_error err = MGRID_ERROR_INIT;
  size_t order[1024];
  int64_t size[64] = { 0 };
  static const char *const names[] = { "a", "b", "c" };
  static const char *const flows[] = { "1 GB all_reduce x 3", "2 GB all_gather",
                                       "1 GB all_to_all x 2", "3 GB send", "1 GB broadcast" };
  j->hosts = hosts, j->each = rng_between(r, 1, 3);
  for (int64_t h = 0; h < hosts; h++) size[h < racks ? h : rng_between(r, 0, racks - 1)]++;
  int len = snprintf(text, sizeof text, "rack:%" PRId64 " node:", racks);
  for (int64_t k = 0; k < racks; k++)
    len += snprintf(text + len, sizeof text - (size_t)len, "%s%" PRId64, k ? "," : "", size[k]);
  len += snprintf(text + len, sizeof text - (size_t)len, " gpu:%" PRId64 " ranks = ", j->each);
  for (int64_t h = 0; h < hosts; h++) order[h] = (size_t)h;
  rng_shuffle(r, (size_t)hosts, order);
  for (int64_t h = 0; h < hosts; h++)
    len += snprintf(text + len, sizeof text - (size_t)len, "%s%" PRId64 "..%" PRId64, h ? "," : "",
                    (int64_t)order[h] * j->each, (int64_t)(order[h] + 1) * j->each - 1);
  j->m = mgrid_machine_parse(text, &err);
  if (!j->m) fail_msg("%s: %s", text, err.message);
  j->world = hosts * j->each;
  int64_t a = rng_divisor(r, j->world), b = rng_divisor(r, j->world / a);
  mgrid_dim dims[] = { { "a", a }, { "b", b }, { "c", MGRID_FILL } };
  mgrid_grid *g = mgrid_grid_new(mgrid_world(j->world), 3, dims, &err);
  mgrid_topology *t = mgrid_topology_new(j->world, &err);
  j->traffic = mgrid_traffic_new(j->world, &err);
  for (int i = 0; i < 3; i++) {
    mgrid_family *f = mgrid_grid_along(g, 1, &names[i], MGRID_GRID_ORDER, &err);
    mgrid_topology_add(t, names[i], f, NULL, &err);
    if (i == 0 || rng_chance(r, 70))
      mgrid_traffic_add(j->traffic, names[i], flows[rng_between(r, 0, 4)], &err);
    mgrid_family_free(f);
  }
  j->plan = mgrid_plan_new(t, &err);
  check(r, err.status == MGRID_OK);
  mgrid_topology_free(t);
  mgrid_grid_free(g);
}

static void free_job(job *j) {
  mgrid_machine_free(j->m);
  mgrid_plan_free(j->plan);
  mgrid_traffic_free(j->traffic);
}

static double bytes_of(const job *j, const mgrid_machine_model *m, double *bound) {
  mgrid_cost cost;
  mgrid_error err = MGRID_ERROR_INIT;
  assert_int_equal(mgrid_cost_of(m, j->plan, j->traffic, false, &cost, &err), MGRID_OK);
  if (bound) *bound = cost.bound[0];
  return cost.bytes[0]; /* across racks */
}

static double bytes_on(const job *j, const mgrid_assignment *a, const int32_t *hosts) {
  mgrid_error err = MGRID_ERROR_INIT;
  mgrid_machine_model *m = mgrid_assigned(j->m, a, hosts, j->world, &err);
  assert_non_null(m);
  double bytes = bytes_of(j, m, NULL);
  mgrid_machine_free(m);
  return bytes;
}

static void least_of(const job *j, const mgrid_assignment *a, int32_t *host, int64_t n,
                     double *least) {
  if (n == j->hosts) {
    double bytes = bytes_on(j, a, host);
    if (bytes < *least) *least = bytes;
  }
  for (int64_t i = n; i < j->hosts; i++) {
    int32_t kept = host[n];
    host[n] = host[i], host[i] = kept;
    least_of(j, a, host, n + 1, least);
    host[i] = host[n], host[n] = kept;
  }
}

/* Of few hosts every assignment is tried. */
static void test_small(void **unused) {
  (void)unused;
  for (uint64_t seed = first_seed(); seed < first_seed() + CASES; seed++) {
    rng r = rng_new(seed);
    job j;
    mgrid_assignment a;
    mgrid_error err = MGRID_ERROR_INIT;
    int32_t host[HOSTS];
    int64_t hosts = rng_between(&r, 2, seed % 20 ? HOSTS - 2 : HOSTS);
    draw_job(&r, &j, hosts, rng_between(&r, 2, hosts < 3 ? hosts : 3));
    check(&r, mgrid_assign(j.m, j.plan, j.traffic, &a, &err) == MGRID_OK && a.blocks == hosts
                  && a.each == j.each);
    bool taken[HOSTS] = { false };
    for (int64_t b = 0; b < hosts; b++) {
      check(&r, a.node[b] >= 0 && a.node[b] < hosts && !taken[a.node[b]]);
      taken[a.node[b]] = true;
    }
    double bound, own = bytes_on(&j, &a, a.node), arrival = bytes_of(&j, j.m, &bound), least = own;
    for (int32_t h = 0; h < hosts; h++) host[h] = h;
    least_of(&j, &a, host, 0, &least);
    check(&r, own <= arrival * (1 + 1e-12));
    check(&r, own <= least * (1 + 1e-12));
    check(&r, bound <= least * (1 + 1e-12));
    mgrid_assignment_free(&a);
    free_job(&j);
  }
}

static void test_large(void **unused) {
  (void)unused;
  for (uint64_t seed = first_seed(); seed < first_seed() + LARGE; seed++) {
    rng r = rng_new(seed);
    job j;
    mgrid_assignment a;
    mgrid_error err = MGRID_ERROR_INIT;
    draw_job(&r, &j, rng_between(&r, 16, 96), rng_between(&r, 2, 9));
    check(&r, mgrid_assign(j.m, j.plan, j.traffic, &a, &err) == MGRID_OK);
    double own = bytes_on(&j, &a, a.node), arrival = bytes_of(&j, j.m, NULL),
           sorted = bytes_on(&j, &a, NULL);
    check(&r, own <= arrival * (1 + 1e-12) && own <= sorted * (1 + 1e-12));
    mgrid_assignment_free(&a);
    free_job(&j);
  }
}

static void test_refusals(void **unused) {
  mgrid_error err = MGRID_ERROR_INIT;
  mgrid_assignment a;
  rng r = rng_new(1);
  job j;
  (void)unused;
  draw_job(&r, &j, 4, 2);
  static const char *const none[] = { "node:8 gpu:8", "rack:1 node:8 gpu:8",
                                      "rack:2 node:2 gpu:4,4,4,3", "rack:* node:2 gpu:8" };
  for (int i = 0; i < 4; i++) {
    mgrid_machine_model *m = mgrid_machine_parse(none[i], &err);
    assert_int_equal(mgrid_assign(m, j.plan, NULL, &a, &err), MGRID_REFUSED);
    assert_string_equal(
        err.message,
        "no nodes to assign: they must have one size and lie in several domains, and the "
        "ranks must need several of them");
    mgrid_error_clear(&err);
    mgrid_machine_free(m);
  }
  free_job(&j);
}

int main(int argc, char **argv) {
  const struct CMUnitTest tests[] = { cmocka_unit_test(test_small), cmocka_unit_test(test_large),
                                      cmocka_unit_test(test_refusals) };
  return run_program("assign", tests, argc, argv);
}
