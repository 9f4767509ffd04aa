/* SPDX-License-Identifier: MIT
**
** moongrid_backend.h - backends, which create communicators: by name over MPI, NCCL or PMIx, with their deadline and
** threads; or a dry one, which only answers questions. Over a communicator of the host: mgrid_mpi_backend of moongrid_mpi.h; over functions of
** the host: moongrid_carrier.h.
*/
#ifndef MOONGRID_H
#include "moongrid.h" /* which includes this header in its place */
#elif !defined MOONGRID_BACKEND_H
#define MOONGRID_BACKEND_H

#ifdef __cplusplus
extern "C" {
#endif

typedef struct mgrid_backend mgrid_backend; /* creates communicators */

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

enum { MGRID_TIMEOUT = 120 }; /* seconds: the default of a call over all ranks, and of a creation */

/* What a backend over MPI asks of it: of mgrid_mpi_backend in moongrid_mpi.h, and of mgrid_backend_open. Equal on all
** ranks. */
typedef struct mgrid_mpi_options {
  size_t            size;      /* sizeof(mgrid_mpi_options) */
  double            timeout;   /* that a call over all ranks may take; 0: MGRID_TIMEOUT */
  mgrid_threads     threads;   /* MPI is asked for that level where it is initialized here; less is MGRID_UNSUPPORTED */
  bool              duplicate; /* of mgrid_mpi_backend. false: the communicator is ours, without a duplicate, until the
                              backend ends; the host makes no call on it, and it outlives the backend. Attributes
                              of it are MPI's: Open MPI copies them when a group's communicator is made */
  mgrid_on_deadline on_deadline;
  int64_t communicators; /* of the backend on a rank, at most: more is MGRID_LIMIT on all ranks before the first is
                              made, also where only some ranks would have more. 0: 65,000 in Open MPI, 1,900 in MPICH */
} mgrid_mpi_options;
#define MGRID_MPI_OPTIONS_INIT \
  { sizeof(mgrid_mpi_options), 0, MGRID_THREADS_ANY, true, MGRID_DEADLINE_ERROR, 0 }

/* How a backend is opened by its name. Equal on all ranks. */
typedef struct mgrid_backend_options {
  size_t                   size;    /* sizeof(mgrid_backend_options) */
  double                   timeout; /* that a call over all ranks may take; 0: MGRID_TIMEOUT */
  const mgrid_mpi_options *mpi; /* of MPI, also under another backend; its timeout, where it is not 0, goes before the
                                       one above. NULL: the defaults */
} mgrid_backend_options;
#define MGRID_BACKEND_OPTIONS_INIT \
  { sizeof(mgrid_backend_options), 0, NULL }

/* Open a backend by name: "mpi", "pmix", "nccl", "rccl", or "auto", which is nccl, else rccl, over mpi if every rank can
** open it, else mpi. "mpi" loads libmoongrid_mpi, initializes MPI if it is not yet (mgrid_backend_free then finalizes
** it) and uses a duplicate of MPI_COMM_WORLD. "pmix" loads libmoongrid_pmix and asks the launcher (mpirun, prterun, srun
** --mpi=pmix) by PMIx alone, without MPI: a carrier, as of mgrid_carrier_backend. A library that the program was
** linked with (-Wl,-u,mgrid_mpi_entry -l:libmoongrid_mpi.a) is not loaded. options may be NULL. Collective.
** A host that has MPI uses mgrid_mpi_backend of moongrid_mpi.h with its own communicator. */
MGRID_API mgrid_backend *mgrid_backend_open(const char *name, const mgrid_backend_options *options, mgrid_error *err);

/* One process plays `rank` of `world`: every question works, no communicator exists. */
MGRID_API mgrid_backend *mgrid_backend_dry(int64_t world, int64_t rank, mgrid_error *err);

/* "nccl", "rccl": communicators of NCCL or RCCL on the GPUs of the ranks. It needs a carrier, a backend that sends unique
** ids between ranks: mpi, which also makes the groups whose family asks for mpi; pmix; or the host's. */
typedef struct mgrid_nccl_options {
  size_t     size;         /* sizeof(mgrid_nccl_options) */
  int        device;       /* GPU of this rank, -1: by its index among the ranks of its machine */
  bool       share_gpu;    /* let several ranks use one GPU: for tests; slow, and only between those that do */
  double     timeout;      /* that a creation, or a call over all ranks, may take; 0: MGRID_TIMEOUT */
  int64_t    budget;       /* bytes of GPU memory for communicators, as predicted; 0: no limit */
  void      *parent;       /* an ncclComm_t of the host's over all ranks in the order of the world, or NULL:
                        communicators are split from it (ncclCommSplit; with its splitShare they share
                        its resources). Then every creation is a call over all ranks, one after the
                        other, `lazy` is not looked at, and states share nothing. It outlives the
                        backend. */
  const int *devices;      /* with device -1: [ndevices], the GPU of each rank of a machine by that index; */
  int        ndevices;     /* 0: GPU i for index i, around again where ranks share */
  int        ranks_per_id; /* groups above that many ranks get several unique ids, each served by another
                           rank (ncclCommInitRankScalable, NCCL 2.23.4); equal on all ranks; below 1: 128 */
  bool       blocking;     /* true: communicators behave as those of ncclCommInitRank: calls return ncclSuccess. false:
                           calls may return ncclInProgress, and a creation that fails is cancelled, where one that
                           blocks leaves a thread in NCCL behind; a family may say otherwise */
} mgrid_nccl_options;
enum { MGRID_NCCL_RANKS_PER_ID = 128 };
#define MGRID_NCCL_OPTIONS_INIT \
  { sizeof(mgrid_nccl_options), -1, false, 0, 0, NULL, NULL, 0, MGRID_NCCL_RANKS_PER_ID, true }
/* "nccl" or "rccl" over a backend that carries its messages (mpi, pmix, mgrid_carrier_backend), which it keeps alive; or
** with carrier NULL as mgrid_backend_open(name) does it: MPI is opened too. options may be NULL. Loads moongrid's library of
** that name, NCCL and the CUDA runtime, or RCCL and HIP, and says exactly what is missing. Collective: one rank without a
** GPU is an error on all. */
MGRID_API mgrid_backend *mgrid_backend_over(mgrid_backend *carrier, const char *name, const mgrid_nccl_options *options,
                                            mgrid_error *err);
/* Another owner; never fails. */
MGRID_API mgrid_backend *mgrid_backend_ref(mgrid_backend *b);
/* Give up one owner. States are owners too; when the last owner is gone the backend ends, and with it
** all communicators that were not freed. Collective with MPI: duplicates are freed, and MPI is finalized where the
** backend initialized it. */
MGRID_API void mgrid_backend_free(mgrid_backend *b);
/* The host's own allocator and log; `hooks` (NULL: none) is copied. Before the first state of the backend,
** else MGRID_NOT_NOW. Local. */
MGRID_API mgrid_status mgrid_backend_set_hooks(mgrid_backend *b, const mgrid_hooks *hooks, mgrid_error *err);
MGRID_API const char  *mgrid_backend_name(const mgrid_backend *b);
MGRID_API int64_t      mgrid_backend_rank(const mgrid_backend *b);
MGRID_API int64_t      mgrid_backend_world(const mgrid_backend *b);
/* Communicators that all states of the backend hold on this rank, shared ones once. */
MGRID_API size_t mgrid_backend_ncomms(const mgrid_backend *b);

#ifdef __cplusplus
}
#endif
#endif
