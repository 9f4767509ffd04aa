/* SPDX-License-Identifier: MIT
**
** starved.c [STEP] - one rank runs out of memory, at each allocation in turn of planning,
** materialize, a lazy family, prove, a policy that is agreed, reload and shrink: every rank gets an
** error or every rank succeeds, nobody hangs, and afterwards the same call works. Of reload, which
** evaluates a recipe, every STEPth (97) allocation; test_starved.c has all of them. Linked from the
** archives, so that the linker can route their allocations.
*/
#include "tap.h"

#include "../failing.h"
#include "moongrid_mpi.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
  VICTIMS = 2
  /* which rank runs out: the first, which has other work than the others in some calls, and rank
  ** 2 */
};

static char path[64];
static mgrid_backend *mpi;
static mgrid_runtime *rt;
static mgrid_plan *plan;
static mgrid_state *state;
static mgrid_policy *policy;
static int64_t tried;

typedef mgrid_status body(mgrid_error *err);

static mgrid_status materialize(mgrid_error *err) {
  mgrid_state *s = mgrid_materialize(plan, mpi, "other", err);
  mgrid_status status = err->status;
  if ((s != NULL) != (status == MGRID_OK)) status = MGRID_UNPROVED;
  mgrid_state_free(s);
  return status;
}

/* A rank whose planning failed takes part with that error. */
static mgrid_status plan_and_materialize(mgrid_error *err) {
  mgrid_plan *p = mgrid_runtime_plan(rt, size, NULL, 0, NULL, err);
  mgrid_state *s = mgrid_materialize(p, mpi, "planned", err);
  mgrid_state_free(s);
  mgrid_plan_free(p);
  return s ? MGRID_OK : err->status ? err->status : MGRID_UNPROVED;
}

static mgrid_status agree(mgrid_error *err) { return mgrid_agree(mpi, plan, NULL, err); }

static mgrid_status lazy(mgrid_error *err) { return mgrid_state_create(state, "late", err); }

static mgrid_status prove(mgrid_error *err) {
  int64_t proved;
  return mgrid_state_prove(state, &proved, err);
}

static mgrid_status decide(mgrid_error *err) { return mgrid_policy_call(policy, 0, NULL, err); }

static mgrid_status reload(mgrid_error *err) {
  mgrid_state *new_s;
  mgrid_status s = mgrid_reload(rt, state, NULL, 0, NULL, &new_s, NULL, err);
  mgrid_state_free(new_s);
  return s;
}

static mgrid_status shrink(mgrid_error *err) { /* MPI cannot, but says so on each rank */
  const int64_t lost[] = { 3 };
  mgrid_state *s = rank == 3 ? NULL : mgrid_state_shrink(state, "dp", 1, lost, err);
  mgrid_state_free(s);
  return rank == 3 || err->status == MGRID_UNSUPPORTED ? MGRID_OK : err->status;
}

/* Whether all ranks did the same, and if they failed each was told of memory, or that another rank
** failed. */
static bool together(mgrid_status s, const mgrid_error *e) {
  int mine[3] = { s != MGRID_OK, s == MGRID_OK, s && strstr(e->message, "memory") }, any[3];
  MPI_Allreduce(mine, any, 3, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  bool ok = any[0] != any[1] && (!any[0] || any[2]);
  if (!ok || (s && !*e->message))
    fprintf(stderr, "# rank %d: status %d, '%s'\n", rank, (int)s, e->message);
  return ok && (!s || *e->message);
}

static void sweep(const char *what, body *once, int step, bool local) {
  char says[160];
  long n = 0;
  bool ok = true;
  for (int v = 0; v < VICTIMS && ok; v++) {
    int victim = v * 2 % size, done = 0;
    for (long at = 0; !done && ok; at += step, n++) {
      mgrid_error e = MGRID_ERROR_INIT;
      size_t held = mgrid_backend_ncomms(mpi);
      if (rank == victim) until_failure = at;
      mgrid_status s = once(&e);
      done = until_failure >= 0;
      until_failure = -1;
      MPI_Bcast(&done, 1, MPI_INT, victim, MPI_COMM_WORLD);
      ok = local || together(s, &e);
      ok &= done ? !s : true;
      if (s && mgrid_backend_ncomms(mpi) != held) ok = false;
      ok &= once(&(mgrid_error)MGRID_ERROR_INIT) == MGRID_OK; /* it works again */
      int all = ok;
      MPI_Allreduce(MPI_IN_PLACE, &all, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
      if (!ok)
        fprintf(stderr, "# rank %d: %s, allocation %ld of rank %d: '%s'\n", rank, what, at, victim,
                e.message);
      ok = all;
    }
  }
  tried += n;
  snprintf(says, sizeof says, "%s: %s", what, local ? "each rank for itself" : "all ranks or none");
  test(ok, says);
  if (rank == 0) printf("# allocations: %ld failed on one of %d ranks in %s\n", n, size, what);
}

static void write_recipe(void) {
  FILE *f = rank == 0 ? fopen(path, "w") : NULL;
  if (rank == 0
      && (!f
          || fputs("return recipe { build = function(world)\n"
                   "  local g, t = grid(world, 'tp-dp', { tp = 2, dp = fill }), topology(world)\n"
                   "  t.grid, t.tp, t.dp = g, g 'tp', g 'dp'\n"
                   "  t.late, t.all = g('tp', 'dp'):with { lazy = true, unique = true }, g('tp', "
                   "'dp')\n"
                   "  return t end,\n"
                   "policy = { all = function(s) return { s.world, 'text' } end }, agreed = { all "
                   "= 'world' } }\n",
                   f)
                 < 0
          || fclose(f) != 0))
    MPI_Abort(MPI_COMM_WORLD, 1);
  MPI_Barrier(MPI_COMM_WORLD);
}

int main(int argc, char **argv) {
  mgrid_error e = MGRID_ERROR_INIT;
  int step = argc > 1 ? atoi(argv[1]) : 97, pid = (int)getpid();
  tap_begin(&argc, &argv);
  MPI_Bcast(&pid, 1, MPI_INT, 0, MPI_COMM_WORLD);
  snprintf(path, sizeof path, "/tmp/moongrid-starved-%d.lua", pid);
  write_recipe();
  mpi = mgrid_mpi_backend(MPI_COMM_WORLD, NULL, &e);
  rt = mgrid_runtime_new(NULL, NULL, &e);
  mgrid_runtime_load(rt, path, NULL, 0, &e);
  plan = mgrid_runtime_plan(rt, size, NULL, 0, NULL, &e);
  state = mgrid_materialize(plan, mpi, "train", &e);
  policy = mgrid_policy_new(rt, state, "all", &e);
  test(!e.status, "a state and a policy to begin with");
  if (e.status) fprintf(stderr, "# rank %d: %s\n", rank, e.message);
  sweep("mgrid_agree", agree, 1, false);
  sweep("mgrid_materialize", materialize, 1, false);
  sweep("mgrid_runtime_plan and mgrid_materialize", plan_and_materialize, step > 7 ? 7 : step,
        false);
  sweep("mgrid_state_create", lazy, 1, false);
  sweep("mgrid_state_prove", prove, 1, false);
  sweep("mgrid_policy_call", decide, 1, false);
  sweep("mgrid_reload", reload, step, false);
  sweep("mgrid_state_shrink", shrink, 1, true);
  mgrid_policy_free(policy);
  mgrid_state_free(state);
  mgrid_plan_free(plan);
  mgrid_runtime_free(rt);
  test(mgrid_backend_ncomms(mpi) == 0, "at the end no communicator is held");
  mgrid_backend_free(mpi);
  if (rank == 0) unlink(path);
  return tap_end();
}
