/* SPDX-License-Identifier: MIT
**
** ulfm.c - a rank is killed and MPI survives it (Open MPI 5: LAUNCH_OPTIONS="--with-ft ulfm"
** scripts/launch 4 build/tests/mpi/ulfm [RANK]). Every call of the others reports the rank as lost,
** the host shrinks its communicator, and groups of the survivors are created and proved. Each call
** has a backend of its own, because a backend that has lost a rank reports it in every later call.
** TAP from rank 0; skipped without ULFM.
*/
#include "../anew.h"
#include "moongrid_mpi.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#ifdef OPEN_MPI
#include <mpi-ext.h>
#endif

#ifndef OMPI_HAVE_MPI_EXT_FTMPI
int main(void) {
  puts("1..0 # SKIP this MPI has no ULFM");
  return 0;
}
#else

static int number, failures;

/* A test passes when it does on all ranks of `comm`. */
static void test(MPI_Comm comm, bool ok, const char *what, const mgrid_error *e) {
  int all = ok, rank = 0;
  MPI_Comm_rank(comm, &rank);
  MPI_Allreduce(MPI_IN_PLACE, &all, 1, MPI_INT, MPI_MIN, comm);
  if (!ok) fprintf(stderr, "# rank %d: %s: %s\n", rank, what, e->message);
  if (rank == 0) printf("%sok %d - %s\n", all ? "" : "not ", ++number, what);
  failures += !all;
}

static mgrid_plan *plan(mgrid_runtime *rt, int world, const char *tp, mgrid_error *err) {
  return mgrid_runtime_plan(rt, world, NULL, 1, &tp, err);
}

static const char recipe[] =
    "return recipe { params = { tp = 2 }, build = function(world, p)\n"
    "  local g = grid(world, 'tp-dp', { tp = p.tp, dp = fill }) local t = topology(world) t.grid = "
    "g\n"
    "  t.tp, t.dp = g 'tp', g 'dp'\n"
    "  t.w = tensor { axes = { { 'r', 64 }, { 'c', 64 } }, type = 'f32', cut = { r = 'tp', c = "
    "'dp' } } return t end,\n"
    "policy = { of_all = function() return 1 end }, agreed = { of_all = 'world' } }\n";

typedef enum call { MATERIALIZE, PROVE, POLICY, RELOAD, MOVE, AGREE, AGAIN, CALLS } call;
static const char *const calls[] = { "materialize", "prove",           "a policy",         "reload",
                                     "a move",      "agree on a plan", "a call after that" };

typedef struct job { /* what a call is made with */
  mgrid_backend *backend;
  mgrid_state *state;
  mgrid_policy *policy;
} job;

static mgrid_status move(mgrid_backend *b, const mgrid_plan *p, const mgrid_plan *to, int rank,
                         mgrid_error *e) {
  mgrid_move *m = mgrid_move_new(p, to, rank, 0, NULL, NULL, e);
  mgrid_status s = mgrid_move_prove(m, b, NULL, e);
  mgrid_move_free(m);
  return s;
}

static mgrid_status make(call c, job *j, mgrid_runtime *rt, const mgrid_plan *p,
                         const mgrid_plan *to, int rank, mgrid_error *e) {
  mgrid_state *new_state = NULL;
  switch (c) {
  case PROVE: return mgrid_state_prove(j->state, NULL, e);
  case POLICY: return mgrid_policy_call(j->policy, 0, NULL, e);
  case RELOAD: return mgrid_reload(rt, j->state, NULL, 0, NULL, &new_state, NULL, e);
  case MOVE: return move(j->backend, p, to, rank, e);
  case AGREE: return mgrid_agree(j->backend, p, NULL, e);
  default: return mgrid_materialize(p, j->backend, "more", e) ? MGRID_OK : e->status;
  }
}

int main(int argc, char **argv) {
  int rank, size;
  job jobs[CALLS] = { 0 };
  mgrid_error e = MGRID_ERROR_INIT, lost[CALLS];
  char path[64], name[48];
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  snprintf(path, sizeof path, "/tmp/moongrid-ulfm-%d-%d.lua", (int)getpid(), rank);
  FILE *f = fopen(path, "w");
  if (!f || fputs(recipe, f) < 0 || fclose(f)) return 1;
  mgrid_runtime *rt = mgrid_runtime_new(NULL, NULL, &e);
  mgrid_runtime_load(rt, path, NULL, 0, &e);
  mgrid_plan *p = plan(rt, size, "tp=2", &e), *to = plan(rt, size, "tp=1", &e);
  for (call c = 0; c < AGAIN; c++) {
    jobs[c].backend = mgrid_mpi_backend(MPI_COMM_WORLD, NULL, &e);
    jobs[c].state = mgrid_materialize(p, jobs[c].backend, "first", &e);
    jobs[c].policy = mgrid_policy_new(rt, jobs[c].state, "of_all", &e);
  }
  jobs[AGAIN] = jobs[MATERIALIZE];
  mgrid_state_prove(jobs[PROVE].state, NULL, &e);
  test(MPI_COMM_WORLD, !e.status, "groups of all are created and proved", &e);
  int victim = argc > 1 ? atoi(argv[1]) : size - 1;
  if (rank == victim) raise(SIGKILL);

  for (call c = 0; c < CALLS; c++) {
    lost[c] = (mgrid_error)MGRID_ERROR_INIT;
    make(c, &jobs[c], rt, p, to, rank, &lost[c]);
  }
  unlink(path);
  MPI_Comm rest;
  if (MPIX_Comm_shrink(MPI_COMM_WORLD, &rest) != MPI_SUCCESS) return 1;
  snprintf(name, sizeof name, "rank %d is lost", victim);
  for (call c = 0; c < CALLS; c++)
    test(rest, lost[c].status == MGRID_LOST_RANK && strstr(lost[c].message, name), calls[c],
         &lost[c]);

  mgrid_backend *after = mgrid_mpi_backend(rest, NULL, anew(&e));
  mgrid_plan *less = plan(rt, size - 1, "tp=1", &e);
  mgrid_state *t = mgrid_materialize(less, after, NULL, &e);
  test(rest, t && mgrid_state_prove(t, NULL, &e) == MGRID_OK,
       "groups of those are created and proved", &e);
  MPI_Comm_rank(rest, &rank);
  if (rank == 0) printf("1..%d\n", number);
  fflush(stdout);
  MPI_Barrier(rest);
  _exit(failures ? 1 : 0); /* MPI_Finalize and the old state would wait for the rank that is gone */
}
#endif
