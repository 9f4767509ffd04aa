/* SPDX-License-Identifier: MIT
**
** backend.h - what a backend is: a descriptor, which is there before the backend is opened
** (plan/backends.h), and a table of operations: create communicators, use them, and the few
** collectives over all ranks that agreement needs.
*/
#ifndef MGRID_BACKEND_H
#define MGRID_BACKEND_H

#include "plan/options.h"

/* One communicator to create: ordered members, and where this rank is among them. */
typedef struct mgrid_comm_spec {
  const char             *name;           /* "state/family[index]" for logs */
  const mgrid_descriptor *backend;        /* what the family asked for, else the state's own */
  const mgrid_choice     *options;        /* of its family; NULL for a group of one rank, which is not created */
  const int32_t          *ranks;          /* [size], global ranks in group order; NULL where no backend wants lists */
  int64_t                 size, position; /* size 0: a communicator of others (mgrid_backend.whole) */
  int64_t                 group;          /* its index in the family */
  int                     tag;            /* [0, 32768), equal on all members; another one per family and round */
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

/* How something that waits for other ranks ended here: an mgrid_status, or one of these, which stay
** inside the library. */
typedef int mgrid_outcome;
enum {
  MGRID_GAVE_UP = -1, /* another rank failed and said so: its message is the one to see */
  MGRID_LATE = -2,    /* of mgrid_wait: its time is over */
  MGRID_NOT_YET = -3  /* of an mgrid_look: look again */
};
/* For a caller outside, where no verdict follows. */
static inline mgrid_status mgrid_status_of(mgrid_outcome o) { return o == MGRID_GAVE_UP ? MGRID_OTHER_RANK : o; }

/* What a backend does for another that stands on it (mpi for nccl): ranks tell each other a few
** bytes, and nothing waits for ever. */
typedef struct mgrid_carrier_ops {
  /* Before all others: make what messages need, and set the first deadline. Which of the ranks of
  ** this machine is this one, and of how many? Collective. After MGRID_LIMIT (no memory) a verdict
  ** can still be had. */
  mgrid_status (*start)(mgrid_backend *b, double seconds, int *local_rank, int *local_size, mgrid_error *err);
  /* From now on a call over all ranks waits no longer than that, and a rank that is not there by
  ** then is named. 0: it waits as long as the backend does by itself. */
  void (*deadline)(mgrid_backend *b, double seconds);
  /* A message between two ranks; both wait no longer than `seconds`. */
  mgrid_outcome (*send)(mgrid_backend *b, int64_t to, int tag, const void *data, size_t bytes, double seconds,
                        mgrid_error *err);
  mgrid_outcome (*recv)(mgrid_backend *b, int64_t from, int tag, void *data, size_t bytes, double seconds,
                        mgrid_error *err);
  /* Tell a rank that we failed, so that it does not wait for us; and who has told us so, or -1.
  ** Each word is heard once, and only in the phase in which it was said: `phase` begins another one,
  ** which all ranks give the same number. */
  void (*tell)(mgrid_backend *b, int64_t to);
  int64_t (*heard)(mgrid_backend *b);
  void (*phase)(mgrid_backend *b, uint64_t number);
} mgrid_carrier_ops;

typedef struct mgrid_backend_ops {
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
  mgrid_outcome (*create)(mgrid_backend *b, size_t n, const mgrid_comm_spec *spec, void **native, mgrid_error *err);
  /* All members destroy theirs in the same order. abort (NULL: destroy) waits for nobody. */
  void (*destroy)(mgrid_backend *b, size_t n, void **native);
  void (*abort)(mgrid_backend *b, size_t n, void **native);
  /* The communicator of spec->ranks out of an older one that has more: those at the n positions of the
  ** older one are left out, and take no part. NULL where the descriptor says that it cannot. */
  mgrid_outcome (*shrink)(mgrid_backend *b, const mgrid_comm_spec *spec, void *from, int n, const int *positions,
                          void **native, mgrid_error *err);
  /* Some of its ranks are lost: it is aborted when its users are gone, and waits for nobody. May be NULL. */
  void (*lose)(mgrid_backend *b, void *native);
  /* End what runs on a communicator, on this rank; it is good for shrink and destroy alone then.
  ** NULL where the descriptor says that it cannot. */
  mgrid_outcome (*revoke)(mgrid_backend *b, const mgrid_comm_spec *spec, void *native, mgrid_error *err);
  /* Over the members: do the members and their order arrive, do sums, broadcasts, a ring? */
  mgrid_outcome (*prove)(mgrid_backend *b, const mgrid_comm_spec *spec, void *native, mgrid_error *err);
  void (*close)(mgrid_backend *b); /* releases b itself */

  /* Use, for proofs and benchmarks; all four NULL where there are no communicators. A buffer lies
  ** where those of `kind` want it (on the GPU); all calls have ended when they return. native NULL:
  ** a group of one rank. */
  void *(*buffer_new)(mgrid_backend *b, const mgrid_descriptor *kind, size_t bytes, mgrid_error *err);
  void (*buffer_free)(mgrid_backend *b, const mgrid_descriptor *kind, void *buffer);
  mgrid_status (*copy)(mgrid_backend *b, const mgrid_descriptor *kind, void *to, const void *from, size_t bytes,
                       bool to_buffer, mgrid_error *err);
  mgrid_outcome (*collective)(mgrid_backend *b, const mgrid_comm_spec *spec, void *native, const mgrid_work *w,
                              mgrid_error *err);

  const mgrid_carrier_ops *carrier; /* NULL: no other backend can stand on this one */
} mgrid_backend_ops;

typedef struct mgrid_shared mgrid_shared; /* a communicator and its users: pool.c */

/* How the ranks lie over machines, machines being numbered by their lowest rank. machine.c */
typedef struct mgrid_place {
  int64_t machines, index; /* machines 0: not known before the first state is made */
  int64_t local_size, local_rank;
  int     gpus, gpu; /* of the nccl backend, set where it is opened; gpu is an index */
} mgrid_place;

/* What the structs of this header look like. A backend library and a libmoongrid of two versions may
** meet in one process: each looks at the other's number before it touches anything else. */
enum { MGRID_LAYOUT = 0x6d000000 + MGRID_VERSION_MAJOR * 10000 + MGRID_VERSION_MINOR * 100 + MGRID_VERSION_PATCH };
/* MGRID_MISSING unless both are of one version; `what` names the other. verdict.c */
mgrid_status mgrid_layout_check(int layout, const char *what, mgrid_error *err);

/* A backend fills in the first five and `users` = 1; all else begins as 0. */
struct mgrid_backend {
  int                      layout; /* MGRID_LAYOUT */
  const mgrid_descriptor  *kind;
  const mgrid_backend_ops *ops;
  int64_t                  rank, world;
  int                      users;     /* the opener and the states; the last one closes */
  bool                     whole;     /* a creation is a call over all ranks: they name also the communicators
                                    of others, and no state shares with another */
  mgrid_shared            *pool;      /* of core: communicators that states may share */
  mgrid_state             *abandoned; /* of core: states that nobody freed; mgrid_state_abandon */
  double                   longest;   /* of core: timeout of any family so far, equal on all ranks */
  uint64_t                 epoch;     /* of core: creations so far, equal on all ranks */
  mgrid_place              place;
  bool                     settled; /* of core: a state was made, so the hooks stay */
  mgrid_hooks              hooks;   /* of core: mgrid_backend_set_hooks */
};

/* Look until the look says that it is over (MGRID_OK) or failed (its status), or until mgrid_now() is
** `until` (MGRID_LATE), or until a rank says over the carrier that it gave up (MGRID_GAVE_UP: *who).
** carrier NULL: nobody is heard, and who may be NULL. wait.c */
typedef mgrid_outcome mgrid_look(void *ud);
mgrid_outcome         mgrid_wait(mgrid_look *look, void *ud, double until, mgrid_backend *carrier, int64_t *who);

/* Collective: does any rank bring a failure? Then every rank returns the first one's. verdict.c */
mgrid_status mgrid_verdict(mgrid_backend *b, mgrid_outcome mine, const mgrid_error *failed, mgrid_error *err);
/* The same in two halves, for a caller whose own all-reduce carries the word as one of several:
** what to bring, and what to do with the minimum over all ranks. */
uint64_t     mgrid_verdict_of(const mgrid_backend *b, mgrid_outcome mine);
mgrid_status mgrid_verdict_tell(mgrid_backend *b, uint64_t who, mgrid_outcome mine, const mgrid_error *failed,
                                mgrid_error *err);

/* What a backend library exports, under the name that its descriptor has: the way in. */
typedef struct mgrid_backend_entry {
  int layout;                               /* MGRID_LAYOUT */
  mgrid_backend *(*open)(mgrid_error *err); /* by itself; NULL where it stands on a carrier */
  /* Over an open carrier, of which it becomes another owner. Collective. */
  mgrid_backend *(*over)(mgrid_backend *carrier, const mgrid_nccl_options *o, mgrid_error *err);
  mgrid_status (*probe)(char *buf, size_t len, mgrid_error *err); /* what is here, as text; or what is missing */
} mgrid_backend_entry;
/* MGRID_ENTRY(mpi) = { MGRID_LAYOUT, .open = ... }; the descriptor's `entry` is this name (comm/backends.c). */
#define MGRID_ENTRY(backend) \
  extern MGRID_API const mgrid_backend_entry mgrid_##backend##_entry; \
  const mgrid_backend_entry                  mgrid_##backend##_entry

#endif
