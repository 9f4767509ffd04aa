/* SPDX-License-Identifier: MIT
**
** materialize.c - a C trainer on real ranks, with the public headers alone: groups of grids built
** in C become communicators; every question; states side by side; lazy families; failures that
** every rank reports alike. Runs on any number of ranks.
**
** Every rank collects its results first; one all-reduce per test then combines them, so that a
** failure on one rank does not leave the others waiting.
*/
#include "../anew.h"
#include "moongrid_mpi.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int me, world, failures, number;

#define CHECK(x) check((x), #x, __LINE__)
static bool bad;

static void check(bool ok, const char *what, int line) {
  if (ok) return;
  fprintf(stderr, "rank %d of %d: line %d: %s\n", me, world, line, what);
  bad = true;
}

static void verdict(const char *name) {
  int mine = bad, any = 0;
  MPI_Allreduce(&mine, &any, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  if (me == 0) printf("%s %d - %s on %d ranks\n", any ? "not ok" : "ok", ++number, name, world);
  failures += any;
  bad = false;
}

/* tp 2 (1 on an odd world) x dp: families tp, dp, all (both), a twin of dp, and pairs. */
static mgrid_plan *layout(int64_t tp, bool lazy, mgrid_error *err) {
  mgrid_dim dims[] = { { "tp", tp }, { "dp", MGRID_FILL } };
  const char *const names[] = { "tp", "dp" };
  mgrid_options opt = MGRID_OPTIONS_INIT;
  mgrid_grid *g = mgrid_grid_new(mgrid_world(world), 2, dims, err);
  mgrid_family *ftp = mgrid_grid_along(g, 1, &names[0], MGRID_GRID_ORDER, err);
  mgrid_family *fdp = mgrid_grid_along(g, 1, &names[1], MGRID_GRID_ORDER, err);
  mgrid_family *all = mgrid_grid_along(g, 2, names, MGRID_GRID_ORDER, err);
  mgrid_family *twin = mgrid_family_twin(fdp, err);
  mgrid_family *ring = mgrid_family_neighbours(all, 1, true, err);
  mgrid_topology *t = mgrid_topology_new(world, err);
  mgrid_topology_add_grid(t, "grid", g, err);
  mgrid_topology_add(t, "tp", ftp, NULL, err);
  mgrid_topology_add(t, "dp", fdp, NULL, err);
  mgrid_topology_add(t, "data", fdp, NULL, err); /* another name for the same groups */
  mgrid_topology_add(t, "gather", twin, NULL, err);
  mgrid_topology_add(t, "all", all, NULL, err);
  opt.lazy = lazy;
  mgrid_topology_add(t, "ring", ring, &opt, err);
  mgrid_plan *p = mgrid_plan_new(t, err);
  mgrid_topology_free(t);
  mgrid_family_free(ring);
  mgrid_family_free(twin);
  mgrid_family_free(all);
  mgrid_family_free(fdp);
  mgrid_family_free(ftp);
  mgrid_grid_free(g);
  return p;
}

static int64_t tp_size(void) { return world % 2 == 0 ? 2 : 1; }

/* The neighbours are positions in the communicator, and no message of anybody comes from where
** there is none. */
static void check_neighbours(const mgrid_group *g) {
  MPI_Comm comm = mgrid_mpi_comm(g);
  int at = (int)mgrid_group_position(g), size = (int)mgrid_group_size(g), mine = me, got = -5,
      stray = 77;
  CHECK(mgrid_mpi_next(g, true) == (at + 1) % size
        && mgrid_mpi_prev(g, true) == (at + size - 1) % size);
  CHECK(mgrid_mpi_next(g, false) == (at + 1 < size ? at + 1 : MPI_PROC_NULL));
  CHECK(mgrid_mpi_prev(g, false) == (at > 0 ? at - 1 : MPI_PROC_NULL));
  MPI_Request ignored = MPI_REQUEST_NULL;
  /* nobody's left neighbour */
  if (at == size - 1 && size > 1) MPI_Isend(&stray, 1, MPI_INT, 0, 3, comm, &ignored);
  MPI_Sendrecv(&mine, 1, MPI_INT, mgrid_mpi_next(g, false), 3, &got, 1, MPI_INT,
               mgrid_mpi_prev(g, false), 3, comm, MPI_STATUS_IGNORE);
  CHECK(got == (at > 0 ? mgrid_group_at(g, at - 1) : -5));
  if (at == 0 && size > 1) MPI_Recv(&stray, 1, MPI_INT, size - 1, 3, comm, MPI_STATUS_IGNORE);
  MPI_Wait(&ignored, MPI_STATUS_IGNORE);
  CHECK(mgrid_mpi_next(NULL, true) == MPI_PROC_NULL && mgrid_mpi_prev(NULL, true) == MPI_PROC_NULL);
}

static void test_questions(void) {
  mgrid_error e = MGRID_ERROR_INIT;
  mgrid_plan *p = layout(tp_size(), false, &e);
  mgrid_backend *b = mgrid_mpi_backend(MPI_COMM_WORLD, NULL, anew(&e));
  mgrid_state *s = mgrid_materialize(p, b, "train", anew(&e));
  int64_t proved = -1, tp = tp_size();
  CHECK(s != NULL);
  if (s) {
    const mgrid_group *g = mgrid_state_group(s, "tp", anew(&e)),
                      *d = mgrid_state_group(s, "dp", anew(&e));
    CHECK(mgrid_group_size(g) == tp && mgrid_group_position(g) == me % tp
          && mgrid_group_index(g) == me / tp);
    CHECK(mgrid_group_at(g, 0) == me - me % tp
          && mgrid_group_at(g, mgrid_group_size(g) - 1) == mgrid_group_at(g, 0) + tp - 1);
    CHECK(mgrid_group_size(d) == world / tp && mgrid_group_position(d) == me / tp);
    CHECK(mgrid_group_beside(d, 1, true) == (me + tp) % world
          && mgrid_group_beside(d, -1, false) == (me < tp ? -1 : me - tp));
    CHECK(mgrid_state_coord(s, "grid", "dp", anew(&e)) == me / tp);
    check_neighbours(d);
    check_neighbours(g);
    CHECK(mgrid_state_group(s, "data", anew(&e)) != d);
    CHECK(mgrid_mpi_comm(mgrid_state_group(s, "data", anew(&e))) == mgrid_mpi_comm(d)); /* shared */
    CHECK(mgrid_group_size(d) == 1
          || mgrid_mpi_comm(mgrid_state_group(s, "gather", anew(&e))) != mgrid_mpi_comm(d));
    CHECK(mgrid_group_size(g) > 1 || mgrid_mpi_comm(g) == MPI_COMM_SELF);
    CHECK(mgrid_mpi_comm(NULL) == MPI_COMM_NULL);
    int sum = 0, one = 1, len = 0;
    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, mgrid_mpi_comm(d));
    CHECK(sum == world / tp);
    char name[MPI_MAX_OBJECT_NAME] = "", want[64];
    MPI_Comm_get_name(mgrid_mpi_comm(d), name, &len);
    snprintf(want, sizeof want, "train/dp[%d]", (int)(me % tp));
    CHECK(mgrid_group_size(d) == 1 || tp == 1 || strcmp(name, want) == 0);
    CHECK(mgrid_state_group(s, "dpp", anew(&e)) == NULL && e.status == MGRID_UNKNOWN_NAME);
    CHECK(
        strcmp(e.message, "unknown family 'dpp'; nearest is 'dp' (tp, dp, data, gather, all, ring)")
        == 0);
    size_t around = 0;
    while (mgrid_state_group_nth(s, "ring", around, anew(&e))) around++;
    CHECK(around == (world > 2 ? 2u : world - 1u)); /* a ring of two is one pair */
    CHECK(mgrid_state_prove(s, &proved, anew(&e)) == MGRID_OK
          && (size_t)proved == mgrid_state_ncomms(s));
  }
  mgrid_state_free(s);
  mgrid_backend_free(b);
  mgrid_plan_free(p);
  verdict("questions and proof");
}

static char warned[256];

static void keep_warning(void *ud, mgrid_level level, const char *message) {
  (void)ud;
  if (level == MGRID_LOG_WARN) snprintf(warned, sizeof warned, "%s", message);
}

/* What MPI does not heed is told once; a name is one plan's at a time. */
static void test_warnings(void) {
  mgrid_error e = MGRID_ERROR_INIT;
  mgrid_hooks hooks = MGRID_HOOKS_INIT;
  mgrid_options patient = MGRID_OPTIONS_INIT;
  mgrid_dim all = { "all", world };
  mgrid_grid *g = mgrid_grid_new(mgrid_world(world), 1, &all, &e);
  mgrid_family *f = mgrid_grid_along(g, 1, &all.name, MGRID_GRID_ORDER, &e);
  mgrid_topology *t = mgrid_topology_new(world, &e);
  patient.timeout = 60;
  patient.nccl = "max_ctas=4";
  mgrid_topology_add(t, "all", f, &patient, &e);
  patient.nccl = NULL;
  mgrid_topology_add(t, "again", f, &patient, &e);
  mgrid_plan *p = mgrid_plan_new(t, &e), *other = layout(tp_size(), false, &e);
  mgrid_backend *b = mgrid_mpi_backend(MPI_COMM_WORLD, NULL, &e);
  hooks.log = keep_warning;
  mgrid_backend_set_hooks(b, &hooks, &e);
  mgrid_state *s = mgrid_materialize(p, b, "slow", &e);
  CHECK(s
        && strcmp(warned,
                  "state 'slow': without effect on mpi: timeout of 2 families, nccl of 1 family")
               == 0);
  CHECK(mgrid_materialize(other, b, "slow", &e) == NULL && e.status == MGRID_DUPLICATE);
  CHECK(strcmp(e.message,
               "there is already a state 'slow' with another plan; free it first, or give this one "
               "another name")
        == 0);
  mgrid_state_free(s);
  *warned = '\0';
  s = mgrid_materialize(other, b, "slow", anew(&e)); /* the name is free again */
  CHECK(s && *warned == '\0');
  mgrid_state_free(s);
  mgrid_backend_free(b);
  mgrid_plan_free(p);
  mgrid_plan_free(other);
  mgrid_topology_free(t);
  mgrid_family_free(f);
  mgrid_grid_free(g);
  verdict("warnings, and names of states");
}

static void test_states_side_by_side(void) {
  mgrid_error e = MGRID_ERROR_INIT;
  mgrid_plan *actor_plan = layout(tp_size(), false, &e), *critic_plan = layout(world, false, &e);
  mgrid_backend *b = mgrid_mpi_backend(MPI_COMM_WORLD, NULL, anew(&e));
  mgrid_state *actor = mgrid_materialize(actor_plan, b, "actor", anew(&e));
  mgrid_state *critic = mgrid_materialize(critic_plan, b, "critic", anew(&e));
  CHECK(actor && critic);
  if (actor && critic && world > 1) {
    const mgrid_group *a = mgrid_state_group(actor, "all", anew(&e)),
                      *c = mgrid_state_group(critic, "tp", anew(&e));
    CHECK(mgrid_group_size(c) == world
          && mgrid_group_size(mgrid_state_group(critic, "dp", anew(&e))) == 1);
    CHECK(mgrid_mpi_comm(a) == mgrid_mpi_comm(c)); /* equal members and options: one communicator */
    mgrid_state_free(actor);
    actor = NULL;
    int sum = 0, one = 1;
    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, mgrid_mpi_comm(c)); /* outlives the other */
    CHECK(sum == world);
    CHECK(mgrid_state_prove(critic, NULL, anew(&e)) == MGRID_OK);
  }
  mgrid_state_free(actor);
  mgrid_backend_free(b); /* the last state still keeps it */
  mgrid_state_free(critic);
  mgrid_plan_free(actor_plan);
  mgrid_plan_free(critic_plan);
  verdict("two states with different layouts, shared communicators");
}

static void test_lazy(void) {
  mgrid_error e = MGRID_ERROR_INIT;
  mgrid_plan *p = layout(1, true, &e); /* its pairs are not groups of another family */
  mgrid_backend *b = mgrid_mpi_backend(MPI_COMM_WORLD, NULL, anew(&e));
  mgrid_state *s = mgrid_materialize(p, b, NULL, anew(&e));
  CHECK(s != NULL);
  if (s && world > 2) {
    const mgrid_group *ring = mgrid_state_group(s, "ring", anew(&e));
    size_t before = mgrid_state_ncomms(s);
    CHECK(mgrid_group_native(ring) == NULL && mgrid_mpi_comm(ring) == MPI_COMM_NULL);
    CHECK(mgrid_state_create(s, "ring", anew(&e)) == MGRID_OK
          && mgrid_state_create(s, "ring", anew(&e)) == MGRID_OK);
    CHECK(mgrid_mpi_comm(ring) != MPI_COMM_NULL && mgrid_state_ncomms(s) > before);
    CHECK(mgrid_state_prove(s, NULL, anew(&e)) == MGRID_OK);
    CHECK(mgrid_state_create(s, "rung", anew(&e)) == MGRID_UNKNOWN_NAME);
  }
  mgrid_state_free(s);
  mgrid_backend_free(b);
  mgrid_plan_free(p);
  verdict("a lazy family");
}

/* A family that only answers beside one that is made. */
static void test_backend_none(void) {
  mgrid_error e = MGRID_ERROR_INIT;
  const mgrid_dim dim = { "all", world };
  const char *const name = "all";
  mgrid_options o = MGRID_OPTIONS_INIT;
  mgrid_grid *g = mgrid_grid_new(mgrid_world(world), 1, &dim, &e);
  mgrid_family *all = mgrid_grid_along(g, 1, &name, MGRID_GRID_ORDER, &e);
  mgrid_family *one = mgrid_grid_along(g, 0, NULL, MGRID_GRID_ORDER, &e);
  mgrid_topology *t = mgrid_topology_new(world, &e);
  o.backend = "none";
  mgrid_topology_add(t, "asked", all, &o, &e);
  mgrid_topology_add(t, "alone", one, &o, &e);
  mgrid_topology_add(t, "all", all, NULL, &e);
  mgrid_plan *p = mgrid_plan_new(t, &e);
  mgrid_backend *b = mgrid_mpi_backend(MPI_COMM_WORLD, NULL, &e);
  mgrid_state *s = mgrid_materialize(p, b, NULL, &e);
  const mgrid_group *asked = mgrid_state_group(s, "asked", &e);
  mgrid_segment half = MGRID_SEGMENT_INIT;
  const int64_t sizes[] = { 1, MGRID_FILL };
  int64_t proved = -1;
  CHECK(s && !e.status);
  CHECK(mgrid_state_ncomms(s) == (world > 1) && mgrid_backend_ncomms(b) == (world > 1));
  CHECK(mgrid_group_native(asked) == NULL && mgrid_mpi_comm(asked) == MPI_COMM_NULL);
  CHECK(mgrid_mpi_comm(mgrid_state_group(s, "alone", &e)) == MPI_COMM_NULL);
  CHECK(mgrid_mpi_comm(mgrid_state_group(s, "all", &e)) != MPI_COMM_NULL);
  CHECK(mgrid_group_position(asked) == me && mgrid_group_size(asked) == world);
  if (world > 1)
    CHECK(mgrid_group_segment(asked, 2, sizes, &half, &e) == MGRID_OK && half.index == (me > 0));
  CHECK(mgrid_state_create(s, "asked", &e) == MGRID_OK);
  CHECK(mgrid_state_prove(s, &proved, &e) == MGRID_OK && proved == (world > 1));
  mgrid_state_free(s);
  mgrid_backend_free(b);
  mgrid_plan_free(p);
  mgrid_topology_free(t);
  mgrid_family_free(all);
  mgrid_family_free(one);
  mgrid_grid_free(g);
  verdict("a family of backend none");
}

/* Creation on a part of the world: the backend takes what communicator it is given. */
static void test_other_parent(void) {
  mgrid_error e = MGRID_ERROR_INIT;
  MPI_Comm half;
  MPI_Comm_split(MPI_COMM_WORLD, me % 2, -me, &half); /* ranks reversed, too */
  int rank, size, whole = world;
  MPI_Comm_rank(half, &rank);
  MPI_Comm_size(half, &size);
  world = size;
  mgrid_plan *p = layout(1, false, &e);
  mgrid_backend *b = mgrid_mpi_backend(half, NULL, anew(&e));
  mgrid_state *s = mgrid_materialize(p, b, "half", anew(&e));
  CHECK(s && mgrid_state_rank(s) == rank && mgrid_state_prove(s, NULL, anew(&e)) == MGRID_OK);
  MPI_Errhandler h;
  MPI_Comm_get_errhandler(half, &h);
  CHECK(h == MPI_ERRORS_ARE_FATAL); /* as it was before */
  MPI_Errhandler_free(&h);
  mgrid_state_free(s);
  mgrid_backend_free(b);
  mgrid_plan_free(p);
  MPI_Comm_free(&half);
  world = whole;
  verdict("a parent that is not MPI_COMM_WORLD");
}

static void test_disagreement(void) {
  mgrid_error e = MGRID_ERROR_INIT;
  mgrid_plan *p = layout(me == world - 1 ? world : 1, false, &e);
  mgrid_backend *b = mgrid_mpi_backend(MPI_COMM_WORLD, NULL, anew(&e));
  mgrid_state *s = mgrid_materialize(p, b, NULL, anew(&e));
  if (world > 1) {
    CHECK(s == NULL && e.status == MGRID_DISAGREE);
    char want[64];
    snprintf(want, sizeof want, "ranks do not have the same plan: rank %d has",
             world == 2 ? 1 : world - 1);
    CHECK(strncmp(e.message, want, strlen(want)) == 0 && strstr(e.message, "family tp"));
  } else {
    CHECK(s != NULL);
  }
  mgrid_state_free(s);
  mgrid_plan_free(p);
  /* one rank has no plan at all */
  mgrid_error mine = MGRID_ERROR_INIT;
  p = me == world - 1 ? NULL : layout(1, false, &e);
  if (!p) {
    mine.status = MGRID_REFUSED;
    snprintf(mine.message, sizeof mine.message, "recipe.lua:1: no");
    CHECK(mgrid_agree(b, NULL, &mine, anew(&e)) == (world > 1 ? MGRID_DISAGREE : MGRID_REFUSED));
  } else {
    CHECK(mgrid_materialize(p, b, NULL, anew(&e)) == NULL && e.status == MGRID_DISAGREE);
  }
  char want[128];
  snprintf(want, sizeof want,
           "ranks do not have the same plan: rank %d has none (recipe.lua:1: no)", world - 1);
  CHECK(strcmp(e.message, world > 1 ? want : "recipe.lua:1: no") == 0);
  mgrid_plan_free(p);
  /* after a refusal the communicator and the backend still work */
  p = layout(1, false, &e);
  s = mgrid_materialize(p, b, NULL, anew(&e));
  CHECK(s && mgrid_state_prove(s, NULL, anew(&e)) == MGRID_OK);
  mgrid_state_free(s);
  mgrid_plan_free(p);
  mgrid_backend_free(b);
  verdict("disagreement, told alike on every rank");
}

static void test_wrong_world(void) {
  mgrid_error e = MGRID_ERROR_INIT;
  mgrid_topology *t = mgrid_topology_new(world + 1, anew(&e));
  mgrid_plan *p = mgrid_plan_new(t, anew(&e));
  mgrid_backend *b = mgrid_mpi_backend(MPI_COMM_WORLD, NULL, anew(&e));
  CHECK(mgrid_materialize(p, b, NULL, anew(&e)) == NULL && e.status == MGRID_REFUSED);
  char want[96];
  snprintf(want, sizeof want, "the plan is for %d ranks, the communicator has %d", world + 1,
           world);
  CHECK(strcmp(e.message, want) == 0);
  CHECK(mgrid_mpi_backend(MPI_COMM_NULL, NULL, anew(&e)) == NULL
        && strcmp(e.message, "mpi: the parent is MPI_COMM_NULL") == 0);
  mgrid_backend_free(b);
  mgrid_plan_free(p);
  mgrid_topology_free(t);
  verdict("a plan for another world");
}

/* Explicit groups of one family that overlap, created on every rank without a deadlock. */
static void test_overlapping_table(void) {
  mgrid_error e = MGRID_ERROR_INIT;
  int64_t starts[65];
  int64_t ranks[3 * 64];
  int n = world < 3 ? 0 : world;
  for (int g = 0; g < n; g++) { /* {g, g+1, g+2} around the world, in descending group order */
    starts[g] = 3 * g;
    for (int i = 0; i < 3; i++) ranks[3 * g + i] = (n - 1 - g + i) % world;
  }
  starts[n] = 3 * n;
  if (n) {
    mgrid_family *f =
        mgrid_family_table(mgrid_world(world), n, starts, ranks, MGRID_COVER, anew(&e));
    mgrid_topology *t = mgrid_topology_new(world, anew(&e));
    mgrid_topology_add(t, "triples", f, NULL, anew(&e));
    mgrid_plan *p = mgrid_plan_new(t, anew(&e));
    mgrid_backend *b = mgrid_mpi_backend(MPI_COMM_WORLD, NULL, anew(&e));
    mgrid_state *s = mgrid_materialize(p, b, NULL, anew(&e));
    CHECK(s && mgrid_state_ncomms(s) == 3 && mgrid_state_prove(s, NULL, anew(&e)) == MGRID_OK);
    mgrid_state_free(s);
    mgrid_backend_free(b);
    mgrid_plan_free(p);
    mgrid_topology_free(t);
    mgrid_family_free(f);
  }
  verdict("overlapping explicit groups");
}

int main(int argc, char **argv) {
  mgrid_error e = MGRID_ERROR_INIT;
  bool early = mgrid_mpi_backend(MPI_COMM_WORLD, NULL, anew(&e)) == NULL
               && strcmp(e.message, "mpi: MPI is not initialized yet") == 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &me);
  MPI_Comm_size(MPI_COMM_WORLD, &world);
  CHECK(early);
  test_questions();
  test_warnings();
  test_states_side_by_side();
  test_lazy();
  test_backend_none();
  test_other_parent();
  test_disagreement();
  test_wrong_world();
  test_overlapping_table();
  bool late = !(argc > 1 && strcmp(argv[1], "--no-late") == 0);
  /* A state that is freed after MPI_Finalize must not call MPI any more. Its communicators are
  ** never freed then, so a leak check leaves this out (--no-late). */
  mgrid_plan *p = layout(1, false, &e);
  mgrid_backend *b = late ? mgrid_mpi_backend(MPI_COMM_WORLD, NULL, anew(&e)) : NULL;
  mgrid_state *s = late ? mgrid_materialize(p, b, NULL, anew(&e)) : NULL;
  CHECK(s != NULL || !late);
  verdict("a state that outlives MPI_Finalize");
  if (me == 0) printf("1..%d\n", number);
  MPI_Finalize();
  mgrid_state_free(s);
  mgrid_backend_free(b);
  mgrid_plan_free(p);
  return failures ? EXIT_FAILURE : EXIT_SUCCESS;
}
