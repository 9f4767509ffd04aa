/* SPDX-License-Identifier: MIT
**
** tap.h - TAP from rank 0 of programs under mpirun: a test passes when it passes on all ranks.
** Results are combined at the end of a test, so that a failure on one rank does not leave the
** others waiting.
*/
#ifndef TEST_TAP_H
#define TEST_TAP_H

#include "../anew.h"

#include <mpi.h>

#include <stdbool.h>
#include <stdio.h>

#ifndef TAP_COMM /* a program without MPI_COMM_WORLD says which has all ranks */
#define TAP_COMM MPI_COMM_WORLD
#endif

static int rank, size; /* of TAP_COMM */
static int number, failures;

static inline void tap_begin(int *argc, char ***argv) {
  MPI_Init(argc, argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
}

static inline void test(bool ok, const char *what) {
  int mine = ok, all;
  MPI_Allreduce(&mine, &all, 1, MPI_INT, MPI_MIN, TAP_COMM);
  if (!ok) fprintf(stderr, "# rank %d: %s\n", rank, what);
  if (rank == 0) printf("%sok %d - %s\n", all ? "" : "not ", ++number, what);
  failures += !all;
}

/* The exit code. MPI stays. */
static inline int tap_total(void) {
  if (rank == 0) printf("1..%d\n", number);
  return failures ? 1 : 0;
}

static inline int tap_end(void) {
  int code = tap_total();
  MPI_Finalize();
  return code;
}

#endif
