/* SPDX-License-Identifier: MIT
**
** moongrid_backend.h - backends, which create communicators. They are opened by name, over MPI,
** NCCL or PMIx; a dry backend only answers questions. moongrid_mpi.h has mgrid_mpi_backend, over a
** communicator of the host, and moongrid_carrier.h mgrid_carrier_backend, over functions of the
** host.
*/
#ifndef MOONGRID_H
#include "moongrid.h" /* includes this header after the headers that it needs */
#elif !defined MOONGRID_BACKEND_H
#define MOONGRID_BACKEND_H

#ifdef __cplusplus
extern "C" {
#endif

typedef struct mgrid_backend mgrid_backend; /* creates communicators */

/* What threads of the host may do with MPI: the levels MPI_THREAD_FUNNELED and so on. */
typedef enum mgrid_threads {
  /* the level with which MPI was initialized; funneled if this library initializes it */
  MGRID_THREADS_ANY,
  /* only the thread that initialized MPI may call MPI, and the collectives of this library */
  MGRID_THREADS_FUNNELED,
  MGRID_THREADS_SERIALIZED, /* any thread, one at a time */
  /* any threads at once. A backend is still used by one thread at a time */
  MGRID_THREADS_MULTIPLE
} mgrid_threads;

/* What a rank does at the deadline if a call of MPI does not return. These calls may not return if
** another rank dies or is stopped after all ranks have entered the call: MPI_Comm_create_group;
** MPI_Comm_create, while a backend opens or mgrid_mpi_world makes a communicator; MPIX_Comm_shrink
** and MPI_Comm_split, in a recovery; MPI_Finalize, where mgrid_backend_free calls it. Under mpirun
** --with-ft ulfm, groups are made by MPI_Comm_create, and only a stopped rank holds up the others;
** a dead one does not. A watchdog prints on stderr which group of which family is being made, and
** which ranks are missing. */
typedef enum mgrid_on_deadline {
  MGRID_DEADLINE_ERROR, /* the rank keeps waiting in these calls; other calls return an error */
  MGRID_DEADLINE_ABORT  /* the process ends with status 4; then the launcher ends the job */
} mgrid_on_deadline;

enum { MGRID_TIMEOUT = 120 }; /* seconds: the default of a call over all ranks, and of a creation */

/* Options of a backend over MPI, for mgrid_mpi_backend in moongrid_mpi.h and mgrid_backend_open.
** Equal on all ranks. */
typedef struct mgrid_mpi_options {
  size_t size;    /* sizeof(mgrid_mpi_options) */
  double timeout; /* seconds that a call over all ranks may take; 0: MGRID_TIMEOUT */
  /* the level to request if this call initializes MPI, else the least level that MPI must have (if
  ** not: MGRID_UNSUPPORTED) */
  mgrid_threads threads;
  /* for mgrid_mpi_backend: use the communicator itself until the backend ends, and no duplicate.
  ** Until then the host makes no call on it; afterwards the host frees it. Open MPI copies the
  ** attributes of a borrowed communicator to each communicator of a group */
  bool borrow;
  mgrid_on_deadline on_deadline;
  /* for mgrid_backend_open: the Fortran handle (MPI_Comm_c2f) of the communicator whose ranks are
  ** the world; NULL: MPI_COMM_WORLD */
  const int *comm;
  /* most communicators of the backend on a rank: if any rank needs more, all ranks get MGRID_LIMIT
  ** before the first is made. 0: 65,000 in Open MPI, 1,900 in MPICH */
  int64_t communicators;
} mgrid_mpi_options;
#define MGRID_MPI_OPTIONS_INIT \
  { sizeof(mgrid_mpi_options), 0, MGRID_THREADS_ANY, false, MGRID_DEADLINE_ERROR, NULL, 0 }

/* Options of mgrid_backend_open. Equal on all ranks. */
typedef struct mgrid_backend_options {
  size_t size;    /* sizeof(mgrid_backend_options) */
  double timeout; /* seconds that a call over all ranks may take; 0: MGRID_TIMEOUT */
  /* options of MPI, also where MPI is the carrier; NULL: the defaults. If mpi->timeout is not 0, it
  ** overrides `timeout` */
  const mgrid_mpi_options *mpi;
} mgrid_backend_options;
#define MGRID_BACKEND_OPTIONS_INIT \
  { sizeof(mgrid_backend_options), 0, NULL }

/* Open a backend by name. options may be NULL. Collective over all ranks.
**
**   mpi         loads libmoongrid_mpi, initializes MPI unless it is initialized (mgrid_backend_free then
**               finalizes it), and uses a duplicate of MPI_COMM_WORLD, or of mgrid_mpi_options.comm. A host that has
**               MPI calls mgrid_mpi_backend instead
**   pmix        loads libmoongrid_pmix and reaches the other ranks through the launcher (mpirun, prterun, srun
**               --mpi=pmix) by PMIx alone, without MPI; it makes no communicators, as mgrid_carrier_backend
**   nccl, rccl  opens mpi, and over it that backend, as mgrid_backend_over does
**   auto        nccl if every rank can open it, else rccl if every rank can open that, else mpi
**
** A library that the program was linked with (-Wl,-u,mgrid_mpi_entry -l:libmoongrid_mpi.a) is not
** loaded. */
MGRID_API mgrid_backend *mgrid_backend_open(const char *name, const mgrid_backend_options *options,
                                            mgrid_error *err);

/* Open a dry backend: this process answers all questions as `rank` of `world` would. No
** communicator exists. */
MGRID_API mgrid_backend *mgrid_backend_dry(int64_t world, int64_t rank, mgrid_error *err);

/* Options of the backends nccl and rccl, which make communicators on the GPUs of the ranks. They
** need a carrier: a backend that sends messages between ranks. It is mpi, pmix or the host's. mpi
** also makes the groups of families with backend "mpi". */
typedef struct mgrid_nccl_options {
  size_t size;    /* sizeof(mgrid_nccl_options) */
  bool share_gpu; /* let several ranks use one GPU, for tests; slow */
  /* seconds that a creation, or a call over all ranks, may take; 0: MGRID_TIMEOUT */
  double timeout;
  int64_t budget; /* bytes of GPU memory for communicators, as predicted; 0: no limit */
  /* NULL, or an ncclComm_t of the host over all ranks in the order of the world. Communicators are
  ** then split from `parent` (ncclCommSplit; with its splitShare they share its resources). Every
  ** creation is then a call over all ranks, one after the other, `lazy` is ignored, and states
  ** share no communicators. `parent` must outlive the backend. */
  void *parent;
  /* [ndevices]: the GPU of each rank of this machine, by its index there. If ndevices is 1: the GPU
  ** of this rank */
  const int *devices;
  /* 0: rank i of the machine gets GPU i, modulo the number of GPUs if ranks share them */
  int ndevices;
  /* a group of more ranks than this gets several unique ids, each served by another rank
  ** (ncclCommInitRankScalable, NCCL 2.23.4). Equal on all ranks; 0: 128 */
  int ranks_per_id;
  /* false: communicators block, as those of ncclCommInitRank do, and a creation that fails may
  ** leave a thread inside NCCL. true: calls may return ncclInProgress, and a creation that fails is
  ** cancelled. A family may choose otherwise */
  bool nonblocking;
} mgrid_nccl_options;
enum { MGRID_NCCL_RANKS_PER_ID = 128 };
#define MGRID_NCCL_OPTIONS_INIT \
  { sizeof(mgrid_nccl_options), false, 0, 0, NULL, NULL, 0, 0, false }
/* Open "nccl" or "rccl" over `carrier`, a backend that carries its messages (mpi, pmix,
** mgrid_carrier_backend), and become an owner of the carrier. carrier NULL: open mpi, as
** mgrid_backend_open does. options may be NULL. This loads moongrid's library of that name and NCCL
** with the CUDA runtime, or RCCL with HIP; an error names exactly what is missing. Collective: if a
** rank has no GPU, all get an error. */
MGRID_API mgrid_backend *mgrid_backend_over(mgrid_backend *carrier, const char *name,
                                            const mgrid_nccl_options *options, mgrid_error *err);
/* Add an owner; never fails. */
MGRID_API mgrid_backend *mgrid_backend_ref(mgrid_backend *b);
/* Remove an owner; states are owners, too. When the last owner is removed, the backend ends, and
** with it all communicators that were not freed. Collective with MPI: the last call frees
** duplicates, and finalizes MPI if the backend initialized it. */
MGRID_API void mgrid_backend_free(mgrid_backend *b);
/* Set the host's allocator and log; `hooks` (NULL: none) is copied. Call it before the first state
** of the backend is made, else MGRID_NOT_NOW. Local. */
MGRID_API mgrid_status mgrid_backend_set_hooks(mgrid_backend *b, const mgrid_hooks *hooks,
                                               mgrid_error *err);
MGRID_API const char *mgrid_backend_name(const mgrid_backend *b);
MGRID_API int64_t mgrid_backend_rank(const mgrid_backend *b);
MGRID_API int64_t mgrid_backend_world(const mgrid_backend *b);
/* Return the number of communicators of all states of the backend on this rank; shared ones count
** once. */
MGRID_API size_t mgrid_backend_ncomms(const mgrid_backend *b);

#ifdef __cplusplus
}
#endif
#endif
