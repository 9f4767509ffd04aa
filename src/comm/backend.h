/* SPDX-License-Identifier: MIT
**
** backend.h - what a backend is: who creates communicators, and the few collectives over
** all ranks that agreement needs. A backend is a library of its own: this header is all it
** shares with the rest, besides the error helpers.
*/
#ifndef MG_BACKEND_H
#define MG_BACKEND_H

#include "base/base.h"

/* One communicator to create: ordered members, and where this rank is among them. */
typedef struct mg_comm_spec {
  const char    *name;    /* "state/family[index]" for logs */
  const char    *backend; /* "mpi" or "nccl": what the family asked for, else the state's own */
  const char    *nccl;    /* canonical options, "" for the defaults: plan/nccl.h */
  double         timeout; /* seconds; 0: the backend's own */
  bool           high_priority;
  const int32_t *ranks; /* [size], global ranks in group order; NULL where ops->lists is false */
  int64_t        size, position; /* size 0: a communicator of others (mg_backend.whole) */
  int64_t        group;          /* its index in the family */
  int            tag; /* [0, 32768), equal on all members; another one per family and round */
} mg_comm_spec;

/* Of numbers, for mg_backend_ops.collective; both MPI and NCCL have them. */
typedef enum mg_type { MG_INT32, MG_INT64, MG_FLOAT, MG_DOUBLE } mg_type;
typedef enum mg_reduction { MG_SUM, MG_PROD, MG_MIN, MG_MAX } mg_reduction;
typedef enum mg_call { MG_ALLREDUCE, MG_BROADCAST, MG_ALLGATHER, MG_REDUCE_SCATTER, MG_SENDRECV, MG_BARRIER } mg_call;

/* A collective over the members. Buffers are the backend's own (buffer_new). */
typedef struct mg_work {
  mg_call      call;
  mg_type      type;
  mg_reduction reduction;
  const void  *send;
  void        *recv;
  size_t       count;    /* elements: of all-gather and reduce-scatter those of one member */
  int64_t      root;     /* MG_BROADCAST: position */
  int64_t      to, from; /* MG_SENDRECV: positions, -1 for none */
} mg_work;

typedef struct mg_backend_ops {
  const char *name;
  bool        lists; /* does it want the ranks written out? */
  /* Over all ranks; words become the element-wise minimum. */
  mg_status (*allreduce_min)(mg_backend *b, uint64_t *words, size_t n, mg_error *err);
  /* Over all ranks; all is [world * bytes]. */
  mg_status (*allgather)(mg_backend *b, const void *mine, void *all, size_t bytes, mg_error *err);
  mg_status (*bcast)(mg_backend *b, void *data, size_t bytes, int64_t root, mg_error *err);
  /* Can these n be created? Local: what fails here is told to all ranks before anything is made. */
  mg_status (*check)(mg_backend *b, size_t n, const mg_comm_spec *spec, mg_error *err);
  /* n communicators of this rank, in schedule order; each is a call over its members, who all
  ** name what they share in the same order. After a failure it goes on to the end, because other
  ** members wait in the rest. native[i] is the backend's own and goes back to destroy; it stays
  ** NULL where nothing was made. */
  mg_status (*create)(mg_backend *b, size_t n, const mg_comm_spec *spec, void **native, mg_error *err);
  /* All members destroy theirs in the same order. abort (NULL: destroy) waits for nobody. */
  void (*destroy)(mg_backend *b, size_t n, void **native);
  void (*abort)(mg_backend *b, size_t n, void **native);
  /* The communicator of spec->ranks out of an older one that has more: those at the n positions of the
  ** older one are left out, and take no part. NULL: cannot. */
  mg_status (*shrink)(mg_backend *b, const mg_comm_spec *spec, void *from, int n, const int *positions, void **native,
                      mg_error *err);
  /* Some of its ranks are lost: it is aborted when its users are gone, and waits for nobody. */
  void (*lose)(mg_backend *b, void *native);
  /* End what runs on a communicator, on this rank; it is good for shrink and destroy alone then. */
  mg_status (*revoke)(mg_backend *b, const mg_comm_spec *spec, void *native, mg_error *err);
  /* Over the members: do the members and their order arrive, do sums, broadcasts, a ring? */
  mg_status (*prove)(mg_backend *b, const mg_comm_spec *spec, void *native, mg_error *err);
  void (*close)(mg_backend *b); /* releases b itself */

  /* Between two ranks, for a backend that stands on this one (nccl on mpi). NULL elsewhere.
  ** own: from now on nothing over all ranks waits longer than `seconds`, and a rank that is not
  ** there by then is named; collective. local: ranks of this machine. */
  mg_status (*own)(mg_backend *b, double seconds, int *local_rank, int *local_size, mg_error *err);
  mg_status (*send)(mg_backend *b, int64_t to, int tag, const void *data, size_t bytes, double seconds, mg_error *err);
  mg_status (*recv)(mg_backend *b, int64_t from, int tag, void *data, size_t bytes, double seconds, mg_error *err);
  /* A word to one who may be waiting for us that we gave up; and who has said so to us, or -1.
  ** Words of an earlier creation are not heard any more. */
  void (*tell)(mg_backend *b, int64_t to);
  int64_t (*heard)(mg_backend *b);

  /* Use, for proofs and benchmarks. A buffer lies where the communicators want it (on the GPU).
  ** `backend` says which kind; all calls have ended when they return. */
  void *(*buffer_new)(mg_backend *b, const char *backend, size_t bytes, mg_error *err);
  void (*buffer_free)(mg_backend *b, const char *backend, void *buffer);
  mg_status (*copy)(mg_backend *b, const char *backend, void *to, const void *from, size_t bytes, bool to_buffer,
                    mg_error *err);
  mg_status (*collective)(mg_backend *b, const mg_comm_spec *spec, void *native, const mg_work *w, mg_error *err);
} mg_backend_ops;

typedef struct mg_shared mg_shared; /* a communicator and its users: pool.c */

/* How the ranks lie over machines, machines being numbered by their lowest rank. machine.c */
typedef struct mg_place {
  int64_t hosts, host; /* hosts 0: not known before the first state is made */
  int64_t local_size, local_rank;
  int     gpus, gpu; /* of the nccl backend, set where it is opened; gpu is an index */
} mg_place;

struct mg_backend {
  const mg_backend_ops *ops;
  int64_t               rank, world;
  int                   users; /* the opener and the states; the last one closes */
  mg_shared            *pool;  /* of core: communicators that states may share */
  mg_state             *abandoned; /* of core: states that nobody freed; mg_state_abandon */
  double                seconds; /* deadline of what all ranks do together; 0: none */
  bool                  whole;   /* a creation is a call over all ranks: they name also the communicators
                                    of others, and no state shares with another */
  double                longest; /* of core: timeout of any family so far, equal on all ranks */
  uint64_t              epoch;   /* of core: creations so far, equal on all ranks */
  mg_place              place;
};

/* A status of create's alone: another rank failed and said so, and its message is the one to see. */
#define MG_GAVE_UP ((mg_status)100)
/* Collective: does any rank bring a failure? Then every rank returns the first one's. verdict.c */
mg_status mg_verdict(mg_backend *b, mg_status mine, const mg_error *failed, mg_error *err);
/* Its halves, for who brings the minimum of the words of all ranks about in a way of its own. */
uint64_t  mg_verdict_of(const mg_backend *b, mg_status mine);
mg_status mg_verdict_tell(mg_backend *b, uint64_t who, mg_status mine, const mg_error *failed, mg_error *err);

#define MG_MPI_LIBRARY "libmoongrid_mpi.so.0.1"
#define MG_NCCL_LIBRARY "libmoongrid_nccl.so.0.1"
/* What a backend library exports for mg_backend_open: */
typedef mg_backend *mg_backend_opener(mg_error *err);                              /* "mg_mpi_open" */
typedef size_t      mg_backend_describer(char *buf, size_t len);                   /* "mg_mpi_describe" */
typedef mg_status   mg_backend_prober(char *buf, size_t len, mg_error *err);       /* "mg_nccl_probe" */
typedef mg_backend *mg_backend_over(mg_backend *host, const mg_nccl_options *o, bool own_host,
                                    mg_error *err);                                /* "mg_nccl_over" */

#endif
