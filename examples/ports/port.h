/* SPDX-License-Identifier: MIT
**
** port.h - what the ports share: MPI, a recipe, checks by numbers, and an exit status over all
** ranks. port_error keeps the first error of moongrid, which counts as a failed check.
*/
#ifndef PORT_H
#define PORT_H

#include <moongrid_mpi.h>

#include <stdio.h>
#include <stdlib.h>

static mgrid_error port_error = MGRID_ERROR_INIT;
static int port_rank, port_size;
static long port_checks, port_failures;

/* Check a condition on this rank. After a failure the rank goes on, since others wait for it. */
#define EXPECT(condition) port_expect((condition), #condition, __LINE__)
static inline void port_expect(bool holds, const char *what, int line) {
  port_checks++;
  if (holds) return;
  if (port_failures++ < 5) fprintf(stderr, "rank %d: line %d: %s\n", port_rank, line, what);
}

/* End the program after a set-up that failed. A set-up fails on all ranks or on none. */
static inline void port_give_up(const char *name) {
  if (port_rank == 0) fprintf(stderr, "%s: %s\n", name, port_error.message);
  MPI_Finalize();
  exit(1);
}

static inline mgrid_backend *port_begin(int *argc, char ***argv) {
  MPI_Init(argc, argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &port_rank);
  MPI_Comm_size(MPI_COMM_WORLD, &port_size);
  return mgrid_mpi_backend(MPI_COMM_WORLD, NULL, &port_error);
}

/* Return a state of a recipe, or on failure NULL, on all ranks. */
static inline mgrid_state *port_state(mgrid_backend *mpi, const char *recipe, int n,
                                      const char *const *args, const char *name) {
  mgrid_open_options o = MGRID_OPEN_OPTIONS_INIT;
  o.name = name;
  return mgrid_open(mpi, recipe, (size_t)n, args, &o, &port_error);
}

/* Ask a query of the modelled system. Return an integer; 1 or 0 for a boolean; -1 for no answer. */
static inline int port_ask(mgrid_state *s, const char *getter) {
  mgrid_arg answer = MGRID_ARG_INIT;
  mgrid_runtime_ask(mgrid_state_runtime(s), s, getter, 0, NULL, MGRID_IS_NONE, &answer,
                    &port_error);
  if (answer.kind == MGRID_IS_NONE) return -1;
  return answer.kind == MGRID_IS_BOOLEAN ? answer.as.boolean : (int)answer.as.integer;
}

/* Return the group of a getter of the modelled system. */
static inline const mgrid_group *port_group(mgrid_state *s, const char *getter) {
  return mgrid_runtime_group(mgrid_state_runtime(s), s, getter, 0, NULL, &port_error);
}

/* End, and return the exit status, the same on all ranks: 0 if all checks of all ranks held. */
static inline int port_end(const char *name, mgrid_backend *mpi) {
  if (port_error.status) port_expect(false, port_error.message, 0);
  EXPECT(mgrid_backend_ncomms(mpi) == 0); /* nothing is left */
  mgrid_backend_free(mpi);
  long mine[2] = { port_checks, port_failures }, all[2];
  MPI_Allreduce(mine, all, 2, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
  if (port_rank == 0)
    printf("%s: %d ranks, %ld checks, %ld failed\n", name, port_size, all[0], all[1]);
  MPI_Finalize();
  return all[1] != 0;
}

#endif
