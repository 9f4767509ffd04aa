/* SPDX-License-Identifier: MIT
**
** moongrid_backend.h - the part of moongrid.h on opening a backend, which includes it: by name, and with what deadline
** and threads.
*/
#ifndef MOONGRID_BACKEND_H
#define MOONGRID_BACKEND_H

#include "moongrid.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What threads of the host may do with MPI, as MPI_THREAD_FUNNELED and so on. */
typedef enum mgrid_threads {
  MGRID_THREADS_ANY,        /* what MPI was initialized with; funneled where this library initializes it */
  MGRID_THREADS_FUNNELED,   /* the thread that initialized MPI alone may call it, and so this library's collectives */
  MGRID_THREADS_SERIALIZED, /* any thread, one at a time */
  MGRID_THREADS_MULTIPLE    /* any at once: two backends may be used in two threads, each in one at a time */
} mgrid_threads;

/* What becomes of a rank in the one place where MPI gives no way back after the deadline: inside MPI_Comm_create_group,
** when a rank dies or is stopped there after all have come to it, or inside MPI_Comm_create while a backend opens. A
** watchdog says on stderr which group of which family it is, and its ranks. */
typedef enum mgrid_on_deadline {
  MGRID_DEADLINE_ERROR, /* it waits on; everywhere else the call returns an error */
  MGRID_DEADLINE_ABORT  /* the process ends with status 4; then the launcher ends the job */
} mgrid_on_deadline;

/* How a backend reaches the other ranks: of mgrid_backend_open, and of mgrid_mpi_backend in moongrid_mpi.h. Equal on
** all ranks. */
typedef struct mgrid_mpi_options {
  size_t            size;      /* sizeof(mgrid_mpi_options) */
  double            timeout;   /* seconds that a call over all ranks may take, not above 0: 120 */
  mgrid_threads     threads;   /* MPI is asked for that level where it is initialized here; less is MGRID_UNSUPPORTED */
  bool              duplicate; /* of mgrid_mpi_backend. false: the communicator is ours, without a duplicate, until the
                              backend ends; the host makes no call on it, and it outlives the backend. Attributes
                              of it are MPI's: Open MPI copies them when a group's communicator is made */
  mgrid_on_deadline on_deadline;
  int64_t communicators; /* of the backend on a rank, at most: more is MGRID_LIMIT on all ranks before the first is
                              made, also where only some ranks would have more. 0: 65,000 in Open MPI, 1,900 in MPICH */
} mgrid_mpi_options;
enum { MGRID_MPI_TIMEOUT = 120 };
#define MGRID_MPI_OPTIONS_INIT \
  { sizeof(mgrid_mpi_options), MGRID_MPI_TIMEOUT, MGRID_THREADS_ANY, true, MGRID_DEADLINE_ERROR, 0 }

/* Open a backend by name: "mpi", "pmix", "nccl", or "auto", which is nccl over mpi if every rank can open it, else
** mpi. "mpi" loads libmoongrid_mpi, initializes MPI if it is not yet (mgrid_backend_free then finalizes
** it) and uses a duplicate of MPI_COMM_WORLD. "pmix" loads libmoongrid_pmix and asks the launcher (mpirun, prterun, srun
** --mpi=pmix) by PMIx alone, without MPI: a carrier, as of mgrid_carrier_backend. A library that the program was
** linked with (-Wl,-u,mgrid_mpi_entry -l:libmoongrid_mpi.a) is not loaded. options may be NULL; they are those of mpi,
** over which nccl stands, and pmix heeds `timeout`. Collective.
** A host that has MPI uses mgrid_mpi_backend of moongrid_mpi.h with its own communicator. */
MGRID_API mgrid_backend *mgrid_backend_open(const char *name, const mgrid_mpi_options *options, mgrid_error *err);

#ifdef __cplusplus
}
#endif
#endif
