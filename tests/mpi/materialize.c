/* SPDX-License-Identifier: MIT
**
** materialize.c - what a C trainer does, on real ranks, against the public headers alone:
** groups of grids built in C become communicators; every question; states side by side;
** lazy families; failures that come out equal on every rank. Runs on any number of ranks.
**
** Every rank gathers its verdicts first; one all-reduce per test then decides, so that a
** failure on one rank cannot leave the others waiting.
*/
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
static mg_plan *layout(int64_t tp, bool lazy, mg_error *err) {
  mg_dim            dims[] = { { "tp", tp }, { "dp", MG_FILL } };
  const char *const names[] = { "tp", "dp" };
  mg_options        opt = MG_OPTIONS_INIT;
  mg_grid          *g = mg_grid_new(mg_world(world), 2, dims, err);
  mg_family        *ftp = mg_grid_along(g, 1, &names[0], MG_GRID_ORDER, err);
  mg_family        *fdp = mg_grid_along(g, 1, &names[1], MG_GRID_ORDER, err);
  mg_family        *all = mg_grid_along(g, 2, names, MG_GRID_ORDER, err);
  mg_family        *twin = mg_family_twin(fdp, err);
  mg_family        *ring = mg_family_neighbours(all, 1, true, err);
  mg_topology      *t = mg_topology_new(world, err);
  mg_topology_add_grid(t, "grid", g, err);
  mg_topology_add(t, "tp", ftp, NULL, err);
  mg_topology_add(t, "dp", fdp, NULL, err);
  mg_topology_add(t, "data", fdp, NULL, err); /* another name for the same groups */
  mg_topology_add(t, "gather", twin, NULL, err);
  mg_topology_add(t, "all", all, NULL, err);
  opt.lazy = lazy;
  mg_topology_add(t, "ring", ring, &opt, err);
  mg_plan *p = mg_plan_new(t, err);
  mg_topology_free(t);
  mg_family_free(ring);
  mg_family_free(twin);
  mg_family_free(all);
  mg_family_free(fdp);
  mg_family_free(ftp);
  mg_grid_free(g);
  return p;
}

static int64_t tp_size(void) { return world % 2 == 0 ? 2 : 1; }

static void test_questions(void) {
  mg_error    e = { 0 };
  mg_plan    *p = layout(tp_size(), false, &e);
  mg_backend *b = mg_mpi_backend(MPI_COMM_WORLD, &e);
  mg_state   *s = mg_materialize(p, b, "train", &e);
  int64_t     proved = -1, tp = tp_size();
  CHECK(s != NULL);
  if (s) {
    const mg_group *g = mg_state_group(s, "tp", &e), *d = mg_state_group(s, "dp", &e);
    CHECK(mg_group_size(g) == tp && mg_group_rank(g) == me % tp && mg_group_index(g) == me / tp);
    CHECK(mg_group_first(g) == me - me % tp && mg_group_last(g) == mg_group_first(g) + tp - 1);
    CHECK(mg_group_size(d) == world / tp && mg_group_rank(d) == me / tp);
    CHECK(mg_group_next(d, true) == (me + tp) % world && mg_group_prev(d, false) == (me < tp ? -1 : me - tp));
    CHECK(mg_state_coord(s, "grid", "dp", &e) == me / tp);
    CHECK(mg_state_group(s, "data", &e) != d);
    CHECK(mg_mpi_comm(mg_state_group(s, "data", &e)) == mg_mpi_comm(d)); /* shared */
    CHECK(mg_group_size(d) == 1 || mg_mpi_comm(mg_state_group(s, "gather", &e)) != mg_mpi_comm(d));
    CHECK(mg_group_size(g) > 1 || mg_mpi_comm(g) == MPI_COMM_SELF);
    CHECK(mg_mpi_comm(NULL) == MPI_COMM_NULL);
    int sum = 0, one = 1, len = 0;
    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, mg_mpi_comm(d));
    CHECK(sum == world / tp);
    char name[MPI_MAX_OBJECT_NAME] = "", want[64];
    MPI_Comm_get_name(mg_mpi_comm(d), name, &len);
    snprintf(want, sizeof want, "train/dp[%d]", (int)(me % tp));
    CHECK(mg_group_size(d) == 1 || tp == 1 || strcmp(name, want) == 0);
    CHECK(mg_state_group(s, "dpp", &e) == NULL && e.status == MG_USAGE);
    CHECK(strcmp(e.message, "unknown family 'dpp'; nearest is 'dp' (tp, dp, data, gather, all, ring)") == 0);
    size_t around = 0;
    while (mg_state_group_nth(s, "ring", around, &e)) around++;
    CHECK(around == (world > 1 ? 2u : 0u));
    CHECK(mg_state_prove(s, &proved, &e) == MG_OK && (size_t)proved == mg_state_ncomms(s));
  }
  mg_state_free(s);
  mg_backend_free(b);
  mg_plan_free(p);
  verdict("questions and proof");
}

static void test_states_side_by_side(void) {
  mg_error    e = { 0 };
  mg_plan    *actor_plan = layout(tp_size(), false, &e), *critic_plan = layout(world, false, &e);
  mg_backend *b = mg_mpi_backend(MPI_COMM_WORLD, &e);
  mg_state   *actor = mg_materialize(actor_plan, b, "actor", &e);
  mg_state   *critic = mg_materialize(critic_plan, b, "critic", &e);
  CHECK(actor && critic);
  if (actor && critic && world > 1) {
    const mg_group *a = mg_state_group(actor, "all", &e), *c = mg_state_group(critic, "tp", &e);
    CHECK(mg_group_size(c) == world && mg_group_size(mg_state_group(critic, "dp", &e)) == 1);
    CHECK(mg_mpi_comm(a) == mg_mpi_comm(c)); /* equal members and options: one communicator */
    mg_state_free(actor);
    actor = NULL;
    int sum = 0, one = 1;
    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, mg_mpi_comm(c)); /* outlives the other */
    CHECK(sum == world);
    CHECK(mg_state_prove(critic, NULL, &e) == MG_OK);
  }
  mg_state_free(actor);
  mg_backend_free(b); /* the last state still keeps it */
  mg_state_free(critic);
  mg_plan_free(actor_plan);
  mg_plan_free(critic_plan);
  verdict("two states with different layouts, shared communicators");
}

static void test_lazy(void) {
  mg_error    e = { 0 };
  mg_plan    *p = layout(1, true, &e); /* its pairs are no groups of another family */
  mg_backend *b = mg_mpi_backend(MPI_COMM_WORLD, &e);
  mg_state   *s = mg_materialize(p, b, NULL, &e);
  CHECK(s != NULL);
  if (s && world > 2) {
    const mg_group *ring = mg_state_group(s, "ring", &e);
    size_t          before = mg_state_ncomms(s);
    CHECK(mg_group_native(ring) == NULL && mg_mpi_comm(ring) == MPI_COMM_NULL);
    CHECK(mg_state_create(s, "ring", &e) == MG_OK && mg_state_create(s, "ring", &e) == MG_OK);
    CHECK(mg_mpi_comm(ring) != MPI_COMM_NULL && mg_state_ncomms(s) > before);
    CHECK(mg_state_prove(s, NULL, &e) == MG_OK);
    CHECK(mg_state_create(s, "rung", &e) == MG_USAGE);
  }
  mg_state_free(s);
  mg_backend_free(b);
  mg_plan_free(p);
  verdict("a lazy family");
}

/* Creation on a part of the world: the backend takes what communicator it is given. */
static void test_other_parent(void) {
  mg_error e = { 0 };
  MPI_Comm half;
  MPI_Comm_split(MPI_COMM_WORLD, me % 2, -me, &half); /* ranks reversed, too */
  int rank, size, whole = world;
  MPI_Comm_rank(half, &rank);
  MPI_Comm_size(half, &size);
  world = size;
  mg_plan    *p = layout(1, false, &e);
  mg_backend *b = mg_mpi_backend(half, &e);
  mg_state   *s = mg_materialize(p, b, "half", &e);
  CHECK(s && mg_state_rank(s) == rank && mg_state_prove(s, NULL, &e) == MG_OK);
  MPI_Errhandler h;
  MPI_Comm_get_errhandler(half, &h);
  CHECK(h == MPI_ERRORS_ARE_FATAL); /* as it was before */
  MPI_Errhandler_free(&h);
  mg_state_free(s);
  mg_backend_free(b);
  mg_plan_free(p);
  MPI_Comm_free(&half);
  world = whole;
  verdict("a parent that is not MPI_COMM_WORLD");
}

static void test_disagreement(void) {
  mg_error    e = { 0 };
  mg_plan    *p = layout(me == world - 1 ? world : 1, false, &e);
  mg_backend *b = mg_mpi_backend(MPI_COMM_WORLD, &e);
  mg_state   *s = mg_materialize(p, b, NULL, &e);
  if (world > 1) {
    CHECK(s == NULL && e.status == MG_DISAGREE);
    char want[64];
    snprintf(want, sizeof want, "ranks do not have the same plan: rank %d has", world == 2 ? 1 : world - 1);
    CHECK(strncmp(e.message, want, strlen(want)) == 0 && strstr(e.message, "family tp"));
  } else {
    CHECK(s != NULL);
  }
  mg_state_free(s);
  mg_plan_free(p);
  /* one rank has no plan at all */
  mg_error mine = { 0 };
  p = me == world - 1 ? NULL : layout(1, false, &e);
  if (!p) {
    mine.status = MG_REFUSED;
    snprintf(mine.message, sizeof mine.message, "recipe.lua:1: no");
    CHECK(mg_agree(b, NULL, &mine, &e) == (world > 1 ? MG_DISAGREE : MG_REFUSED));
  } else {
    CHECK(mg_materialize(p, b, NULL, &e) == NULL && e.status == MG_DISAGREE);
  }
  char want[128];
  snprintf(want, sizeof want, "ranks do not have the same plan: rank %d has none (recipe.lua:1: no)", world - 1);
  CHECK(strcmp(e.message, world > 1 ? want : "recipe.lua:1: no") == 0);
  mg_plan_free(p);
  /* after a refusal the communicator and the backend still work */
  p = layout(1, false, &e);
  s = mg_materialize(p, b, NULL, &e);
  CHECK(s && mg_state_prove(s, NULL, &e) == MG_OK);
  mg_state_free(s);
  mg_plan_free(p);
  mg_backend_free(b);
  verdict("disagreement, told alike on every rank");
}

static void test_wrong_world(void) {
  mg_error     e = { 0 };
  mg_topology *t = mg_topology_new(world + 1, &e);
  mg_plan     *p = mg_plan_new(t, &e);
  mg_backend  *b = mg_mpi_backend(MPI_COMM_WORLD, &e);
  CHECK(mg_materialize(p, b, NULL, &e) == NULL && e.status == MG_REFUSED);
  char want[96];
  snprintf(want, sizeof want, "the plan is for %d ranks, the communicator has %d", world + 1, world);
  CHECK(strcmp(e.message, want) == 0);
  CHECK(mg_mpi_backend(MPI_COMM_NULL, &e) == NULL && strcmp(e.message, "mpi: the parent is MPI_COMM_NULL") == 0);
  mg_backend_free(b);
  mg_plan_free(p);
  mg_topology_free(t);
  verdict("a plan for another world");
}

/* Explicit groups of one family that overlap, created on every rank without a deadlock. */
static void test_overlapping_table(void) {
  mg_error e = { 0 };
  int64_t  starts[65];
  int32_t  ranks[3 * 64];
  int      n = world < 3 ? 0 : world;
  for (int g = 0; g < n; g++) { /* {g, g+1, g+2} around the world, in descending group order */
    starts[g] = 3 * g;
    for (int i = 0; i < 3; i++) ranks[3 * g + i] = (n - 1 - g + i) % world;
  }
  starts[n] = 3 * n;
  if (n) {
    mg_family   *f = mg_family_table(mg_world(world), n, starts, ranks, MG_COVER, &e);
    mg_topology *t = mg_topology_new(world, &e);
    mg_topology_add(t, "triples", f, NULL, &e);
    mg_plan    *p = mg_plan_new(t, &e);
    mg_backend *b = mg_mpi_backend(MPI_COMM_WORLD, &e);
    mg_state   *s = mg_materialize(p, b, NULL, &e);
    CHECK(s && mg_state_ncomms(s) == 3 && mg_state_prove(s, NULL, &e) == MG_OK);
    mg_state_free(s);
    mg_backend_free(b);
    mg_plan_free(p);
    mg_topology_free(t);
    mg_family_free(f);
  }
  verdict("overlapping explicit groups");
}

int main(int argc, char **argv) {
  mg_error e = { 0 };
  bool     early = mg_mpi_backend(MPI_COMM_WORLD, &e) == NULL && strcmp(e.message, "mpi: MPI is not initialized yet") == 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &me);
  MPI_Comm_size(MPI_COMM_WORLD, &world);
  CHECK(early);
  test_questions();
  test_states_side_by_side();
  test_lazy();
  test_other_parent();
  test_disagreement();
  test_wrong_world();
  test_overlapping_table();
  bool late = !(argc > 1 && strcmp(argv[1], "--no-late") == 0);
  /* A state that is freed after MPI_Finalize must not touch MPI any more. Its communicators
  ** are then MPI's to lose, so a leak check leaves this out. */
  mg_plan    *p = layout(1, false, &e);
  mg_backend *b = mg_mpi_backend(MPI_COMM_WORLD, &e);
  mg_state   *s = late ? mg_materialize(p, b, NULL, &e) : NULL;
  CHECK(s != NULL || !late);
  verdict("a state that outlives MPI_Finalize");
  if (me == 0) printf("1..%d\n", number);
  MPI_Finalize();
  mg_state_free(s);
  mg_backend_free(b);
  mg_plan_free(p);
  return failures ? EXIT_FAILURE : EXIT_SUCCESS;
}
