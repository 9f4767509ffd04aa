/* SPDX-License-Identifier: MIT
**
** simulated.h - what SimGrid's SMPI (3.32) lacks. scripts/lab/simulate includes this file before
** code that waits or calls MPI. All ranks are threads of one process, of which one runs at a time.
** So clocks and sleeps are those of the simulation, and a watchdog cannot run beside the ranks.
*/
#ifndef MGRID_SIMULATED_H
#define MGRID_SIMULATED_H

#include <errno.h>
#include <mpi.h>
#include <pthread.h>
#include <time.h>

/* SMPI looks main up in a copy of the program for each rank. */
__attribute__((visibility("default"))) int main(int argc, char **argv);

int smpi_clock_gettime(clockid_t clock, struct timespec *t);
int smpi_nanosleep(const struct timespec *t, struct timespec *left);

/* Sleep a microsecond of simulated time, whatever *t is: frequent polls cost nothing here, and find
** a message soon after it arrives. */
static inline int simulated_sleep(const struct timespec *t, struct timespec *left) {
  const struct timespec microsecond = { 0, 1000 };
  (void)t;
  return smpi_nanosleep(&microsecond, left);
}

static inline int simulated_thread(pthread_t *t, const pthread_attr_t *a, void *(*run)(void *),
                                   void *ud) {
  (void)t, (void)a, (void)run, (void)ud;
  return EAGAIN;
}

/* SMPI itself answers yes only on rank 0. */
static inline int simulated_main_thread(int *flag) {
  *flag = 1;
  return MPI_SUCCESS;
}

/* SMPI reports that a null request has ended only if the caller asks for a status. */
static inline int simulated_test(MPI_Request *request, int *flag, MPI_Status *status) {
  MPI_Status own;
  return MPI_Test(request, flag, status == MPI_STATUS_IGNORE ? &own : status);
}

/* SMPI's non-blocking collectives send a message from each rank to each other rank; its blocking
** collectives use trees, as MPI libraries do. So make a blocking call: it cannot deadlock, since
** all ranks call collectives in one order. */
#define SIMULATED_AT_ONCE(call) (*request = MPI_REQUEST_NULL, call)

static inline int simulated_iallreduce(const void *send, void *recv, int n, MPI_Datatype type,
                                       MPI_Op op, MPI_Comm comm, MPI_Request *request) {
  return SIMULATED_AT_ONCE(MPI_Allreduce(send, recv, n, type, op, comm));
}

static inline int simulated_iallgather(const void *send, int n, MPI_Datatype type, void *recv,
                                       int m, MPI_Datatype of, MPI_Comm comm,
                                       MPI_Request *request) {
  return SIMULATED_AT_ONCE(MPI_Allgather(send, n, type, recv, m, of, comm));
}

static inline int simulated_ialltoall(const void *send, int n, MPI_Datatype type, void *recv, int m,
                                      MPI_Datatype of, MPI_Comm comm, MPI_Request *request) {
  return SIMULATED_AT_ONCE(MPI_Alltoall(send, n, type, recv, m, of, comm));
}

static inline int simulated_ibcast(void *data, int n, MPI_Datatype type, int root, MPI_Comm comm,
                                   MPI_Request *request) {
  return SIMULATED_AT_ONCE(MPI_Bcast(data, n, type, root, comm));
}

/* SMPI creates a communicator by one broadcast of its id. MPI libraries agree on the id: Open MPI
** (4.1: comm_cid.c) by three all-reduces of one or two numbers, over the new communicator's members
** if they alone create it, else over the parent's. */
static inline int simulated_agreement(int rc, MPI_Comm over) {
  for (int i = 0, word = 0; i < 3 && !rc && over != MPI_COMM_NULL; i++)
    rc = MPI_Allreduce(MPI_IN_PLACE, &word, 1, MPI_INT, MPI_MAX, over);
  return rc;
}

static inline int simulated_create_group(MPI_Comm parent, MPI_Group group, int tag,
                                         MPI_Comm *comm) {
  int rc = MPI_Comm_create_group(parent, group, tag, comm);
  return simulated_agreement(rc, *comm);
}

static inline int simulated_create(MPI_Comm parent, MPI_Group group, MPI_Comm *comm) {
  return simulated_agreement(MPI_Comm_create(parent, group, comm), parent);
}

static inline int simulated_split(MPI_Comm parent, int color, int key, MPI_Comm *comm) {
  return simulated_agreement(MPI_Comm_split(parent, color, key, comm), parent);
}

static inline int simulated_idup(MPI_Comm parent, MPI_Comm *comm, MPI_Request *request) {
  return SIMULATED_AT_ONCE(simulated_agreement(MPI_Comm_dup(parent, comm), parent));
}

#define clock_gettime         smpi_clock_gettime
#define nanosleep             simulated_sleep
#define pthread_create        simulated_thread
#define MPI_Is_thread_main    simulated_main_thread
#define MPI_Test              simulated_test
#define MPI_Iallreduce        simulated_iallreduce
#define MPI_Iallgather        simulated_iallgather
#define MPI_Ialltoall         simulated_ialltoall
#define MPI_Ibcast            simulated_ibcast
#define MPI_Comm_create_group simulated_create_group
#define MPI_Comm_create       simulated_create
#define MPI_Comm_split        simulated_split
#define MPI_Comm_idup         simulated_idup

#endif
