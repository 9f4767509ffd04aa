/* SPDX-License-Identifier: MIT
**
** simulated.h - what SimGrid's SMPI (3.32) lacks, for scripts/simulate, which includes it ahead of what waits and what
** calls MPI. All ranks are threads of one process, of which one runs at a time: so clocks and sleeps are the
** simulation's, and there can be no watchdog beside them.
*/
#ifndef MGRID_SIMULATED_H
#define MGRID_SIMULATED_H

#include <errno.h>
#include <mpi.h>
#include <pthread.h>
#include <time.h>

__attribute__((visibility("default"))) int main(int argc, char **argv); /* it is looked up in a copy for each rank */

int smpi_clock_gettime(clockid_t clock, struct timespec *t);
int smpi_nanosleep(const struct timespec *t, struct timespec *left);

/* A microsecond: to wait costs nobody anything here, and what naps were for, the next message, comes sooner than any ends. */
static inline int simulated_sleep(const struct timespec *t, struct timespec *left) {
  const struct timespec microsecond = { 0, 1000 };
  (void)t;
  return smpi_nanosleep(&microsecond, left);
}

static inline int simulated_thread(pthread_t *t, const pthread_attr_t *a, void *(*run)(void *), void *ud) {
  (void)t, (void)a, (void)run, (void)ud;
  return EAGAIN;
}

/* True of rank 0 alone. */
static inline int simulated_main_thread(int *flag) {
  *flag = 1;
  return MPI_SUCCESS;
}

/* Not there; and a request that is null never ends. */
static inline int simulated_idup(MPI_Comm parent, MPI_Comm *comm, MPI_Request *request) {
  int rc = MPI_Comm_dup(parent, comm);
  return rc ? rc : MPI_Ibarrier(*comm, request);
}

#define clock_gettime      smpi_clock_gettime
#define nanosleep          simulated_sleep
#define pthread_create     simulated_thread
#define MPI_Is_thread_main simulated_main_thread
#define MPI_Comm_idup      simulated_idup

#endif
