/* SPDX-License-Identifier: MIT
**
** ulfm.c - a rank is killed and MPI survives it (Open MPI 5: LAUNCH_OPTIONS="--with-ft ulfm" scripts/launch): the others
** are told by the call that they are in, the host shrinks its communicator, and groups of those that remain are
** created and proved. TAP from rank 0; skipped where the MPI has no ULFM.
*/
#include "../anew.h"
#include "moongrid_mpi.h"

#include <signal.h>
#include <stdio.h>
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
  return mgrid_runtime_plan(rt, world, 1, &tp, err);
}

int main(int argc, char **argv) {
  int         rank, size;
  mgrid_error e = MGRID_ERROR_INIT;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  mgrid_runtime *rt = mgrid_runtime_new(NULL, NULL, &e);
  mgrid_runtime_load(rt, "megatron", &e);
  mgrid_backend *b = mgrid_mpi_backend(MPI_COMM_WORLD, NULL, &e);
  mgrid_plan    *p = plan(rt, size, "tp=2", &e);
  mgrid_state   *s = mgrid_materialize(p, b, NULL, &e);
  test(MPI_COMM_WORLD, s && mgrid_state_prove(s, NULL, &e) == MGRID_OK, "groups of all are created and proved", &e);
  if (rank == size - 1) raise(SIGKILL);

  /* One rank is told of the loss; when it revokes the communicator the others, who wait for it, are told too. */
  mgrid_state *more = mgrid_materialize(p, b, NULL, anew(&e));
  bool         told = !more && e.status == MGRID_BACKEND && strstr(e.message, "mpi: ");
  MPI_Comm     rest;
  MPIX_Comm_revoke(MPI_COMM_WORLD);
  if (MPIX_Comm_shrink(MPI_COMM_WORLD, &rest) != MPI_SUCCESS) return 1;
  test(rest, told, "the loss is an error on all that remain, and ends no process", &e);

  mgrid_backend *after = mgrid_mpi_backend(rest, NULL, anew(&e));
  mgrid_plan    *less = plan(rt, size - 1, "tp=1", &e);
  mgrid_state   *t = mgrid_materialize(less, after, NULL, &e);
  test(rest, t && mgrid_state_prove(t, NULL, &e) == MGRID_OK, "groups of those are created and proved", &e);
  MPI_Comm_rank(rest, &rank);
  if (rank == 0) printf("1..%d\n", number);
  fflush(stdout);
  MPI_Barrier(rest);
  _exit(failures ? 1 : 0); /* MPI_Finalize and the old state would wait for the rank that is gone */
}
#endif
