/* SPDX-License-Identifier: MIT
**
** tap.h - TAP from rank 0 of programs under mpirun: a test passes when it passes on all
** ranks. Results are combined at the end of a test, so that a failure on one rank does not leave the others
** waiting.
*/
#ifndef TEST_TAP_H
#define TEST_TAP_H

#include "../anew.h"

#include <mpi.h>

#include <stdbool.h>
#include <stdio.h>

static int rank, size; /* of MPI_COMM_WORLD */
static int number, failures;

static inline void tap_begin(int *argc, char ***argv) {
  MPI_Init(argc, argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
}

static inline void test(bool ok, const char *what) {
  int mine = ok, all;
  MPI_Allreduce(&mine, &all, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
  if (!ok) fprintf(stderr, "# rank %d: %s\n", rank, what);
  if (rank == 0) printf("%sok %d - %s\n", all ? "" : "not ", ++number, what);
  failures += !all;
}

/* The exit code. */
static inline int tap_end(void) {
  if (rank == 0) printf("1..%d\n", number);
  MPI_Finalize();
  return failures ? 1 : 0;
}

#endif
