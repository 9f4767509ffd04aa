/* SPDX-License-Identifier: MIT
**
** backend.h - what a backend is: who creates communicators, and the few collectives over
** all ranks that agreement needs. A backend is a library of its own: this header and those it
** includes are all it shares with the rest.
*/
#ifndef MGRID_BACKEND_H
#define MGRID_BACKEND_H

#include "base/base.h"
#include "plan/options.h"

/* One communicator to create: ordered members, and where this rank is among them. */
typedef struct mgrid_comm_spec {
  const char         *name;           /* "state/family[index]" for logs */
  const char         *backend;        /* "mpi" or "nccl": what the family asked for, else the state's own */
  const mgrid_choice *options;        /* of its family; NULL for a group of one rank, which is not created */
  const int32_t      *ranks;          /* [size], global ranks in group order; NULL where ops->lists is false */
  int64_t             size, position; /* size 0: a communicator of others (mgrid_backend.whole) */
  int64_t             group;          /* its index in the family */
  int                 tag;            /* [0, 32768), equal on all members; another one per family and round */
} mgrid_comm_spec;

/* Of numbers, for mgrid_backend_ops.collective; both MPI and NCCL have them. */
typedef enum mgrid_type { MGRID_INT32, MGRID_INT64, MGRID_FLOAT, MGRID_DOUBLE } mgrid_type;
typedef enum mgrid_reduction { MGRID_SUM, MGRID_PROD, MGRID_MIN, MGRID_MAX } mgrid_reduction;
typedef enum mgrid_call {
  MGRID_ALLREDUCE,
  MGRID_BROADCAST,
  MGRID_ALLGATHER,
  MGRID_REDUCE_SCATTER,
  MGRID_SENDRECV,
  MGRID_BARRIER
} mgrid_call;

/* A collective over the members. Buffers are the backend's own (buffer_new). */
typedef struct mgrid_work {
  mgrid_call      call;
  mgrid_type      type;
  mgrid_reduction reduction;
  const void     *send;
  void           *recv;
  size_t          count;    /* elements: of all-gather and reduce-scatter those of one member */
  int64_t         root;     /* MGRID_BROADCAST: position */
  int64_t         to, from; /* MGRID_SENDRECV: positions, -1 for none */
} mgrid_work;

typedef struct mgrid_backend_ops {
  const char *name;
  bool        lists; /* does it want the ranks written out? */
  /* Over all ranks; words become the element-wise minimum. */
  mgrid_status (*allreduce_min)(mgrid_backend *b, uint64_t *words, size_t n, mgrid_error *err);
  /* Over all ranks; all is [world * bytes]. */
  mgrid_status (*allgather)(mgrid_backend *b, const void *mine, void *all, size_t bytes, mgrid_error *err);
  mgrid_status (*bcast)(mgrid_backend *b, void *data, size_t bytes, int64_t root, mgrid_error *err);
  /* Can these n be created? Local: what fails here is told to all ranks before anything is made. */
  mgrid_status (*check)(mgrid_backend *b, size_t n, const mgrid_comm_spec *spec, mgrid_error *err);
  /* n communicators of this rank, in schedule order; each is a call over its members, who all
  ** name what they share in the same order. After a failure it goes on to the end, because other
  ** members wait in the rest. native[i] is the backend's own and goes back to destroy; it stays
  ** NULL where nothing was made. */
  mgrid_status (*create)(mgrid_backend *b, size_t n, const mgrid_comm_spec *spec, void **native, mgrid_error *err);
  /* All members destroy theirs in the same order. abort (NULL: destroy) waits for nobody. */
  void (*destroy)(mgrid_backend *b, size_t n, void **native);
  void (*abort)(mgrid_backend *b, size_t n, void **native);
  /* The communicator of spec->ranks out of an older one that has more: those at the n positions of the
  ** older one are left out, and take no part. NULL: cannot. */
  mgrid_status (*shrink)(mgrid_backend *b, const mgrid_comm_spec *spec, void *from, int n, const int *positions,
                         void **native, mgrid_error *err);
  /* Some of its ranks are lost: it is aborted when its users are gone, and waits for nobody. */
  void (*lose)(mgrid_backend *b, void *native);
  /* End what runs on a communicator, on this rank; it is good for shrink and destroy alone then. */
  mgrid_status (*revoke)(mgrid_backend *b, const mgrid_comm_spec *spec, void *native, mgrid_error *err);
  /* Over the members: do the members and their order arrive, do sums, broadcasts, a ring? */
  mgrid_status (*prove)(mgrid_backend *b, const mgrid_comm_spec *spec, void *native, mgrid_error *err);
  void (*close)(mgrid_backend *b); /* releases b itself */

  /* Between two ranks, for a backend that stands on this one (nccl on mpi). NULL elsewhere.
  ** own: from now on nothing over all ranks waits longer than `seconds`, and a rank that is not
  ** there by then is named; collective. local: ranks of this machine. */
  mgrid_status (*own)(mgrid_backend *b, double seconds, int *local_rank, int *local_size, mgrid_error *err);
  mgrid_status (*send)(mgrid_backend *b, int64_t to, int tag, const void *data, size_t bytes, double seconds,
                       mgrid_error *err);
  mgrid_status (*recv)(mgrid_backend *b, int64_t from, int tag, void *data, size_t bytes, double seconds,
                       mgrid_error *err);
  /* A word to one who may be waiting for us that we gave up; and who has said so to us, or -1.
  ** Words of an earlier creation are not heard any more. */
  void (*tell)(mgrid_backend *b, int64_t to);
  int64_t (*heard)(mgrid_backend *b);

  /* Use, for proofs and benchmarks. A buffer lies where the communicators want it (on the GPU).
  ** `backend` says which kind; all calls have ended when they return. */
  void *(*buffer_new)(mgrid_backend *b, const char *backend, size_t bytes, mgrid_error *err);
  void (*buffer_free)(mgrid_backend *b, const char *backend, void *buffer);
  mgrid_status (*copy)(mgrid_backend *b, const char *backend, void *to, const void *from, size_t bytes, bool to_buffer,
                       mgrid_error *err);
  mgrid_status (*collective)(mgrid_backend *b, const mgrid_comm_spec *spec, void *native, const mgrid_work *w,
                             mgrid_error *err);
} mgrid_backend_ops;

typedef struct mgrid_shared mgrid_shared; /* a communicator and its users: pool.c */

/* How the ranks lie over machines, machines being numbered by their lowest rank. machine.c */
typedef struct mgrid_place {
  int64_t hosts, host; /* hosts 0: not known before the first state is made */
  int64_t local_size, local_rank;
  int     gpus, gpu; /* of the nccl backend, set where it is opened; gpu is an index */
} mgrid_place;

struct mgrid_backend {
  const mgrid_backend_ops *ops;
  int64_t                  rank, world;
  int                      users;     /* the opener and the states; the last one closes */
  mgrid_shared            *pool;      /* of core: communicators that states may share */
  mgrid_state             *abandoned; /* of core: states that nobody freed; mgrid_state_abandon */
  double                   seconds;   /* deadline of what all ranks do together; 0: none */
  bool                     whole;     /* a creation is a call over all ranks: they name also the communicators
                                    of others, and no state shares with another */
  double                   longest;   /* of core: timeout of any family so far, equal on all ranks */
  uint64_t                 epoch;     /* of core: creations so far, equal on all ranks */
  mgrid_place              place;
};

/* A status of create's alone: another rank failed and said so, and its message is the one to see. */
#define MGRID_GAVE_UP ((mgrid_status)100)
/* Collective: does any rank bring a failure? Then every rank returns the first one's. verdict.c */
mgrid_status mgrid_verdict(mgrid_backend *b, mgrid_status mine, const mgrid_error *failed, mgrid_error *err);
/* Its halves, for who brings the minimum of the words of all ranks about in a way of its own. */
uint64_t     mgrid_verdict_of(const mgrid_backend *b, mgrid_status mine);
mgrid_status mgrid_verdict_tell(mgrid_backend *b, uint64_t who, mgrid_status mine, const mgrid_error *failed,
                                mgrid_error *err);

#define MGRID_MPI_LIBRARY  "libmoongrid_mpi.so.0.1"
#define MGRID_NCCL_LIBRARY "libmoongrid_nccl.so.0.1"
/* What a backend library exports for mgrid_backend_open: */
typedef mgrid_backend *mgrid_backend_opener(mgrid_error *err);                        /* "mgrid_mpi_open" */
typedef size_t         mgrid_backend_describer(char *buf, size_t len);                /* "mgrid_mpi_describe" */
typedef mgrid_status   mgrid_backend_prober(char *buf, size_t len, mgrid_error *err); /* "mgrid_nccl_probe" */
typedef mgrid_backend *mgrid_backend_over(mgrid_backend *host, const mgrid_nccl_options *o, bool own_host,
                                          mgrid_error *err); /* "mgrid_nccl_over" */

#endif
