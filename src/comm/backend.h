/* SPDX-License-Identifier: MIT
**
** backend.h - what a backend is: a descriptor, known before the backend is opened
** (plan/backend_row.h), and a table of operations: create communicators, use them, and the
** collectives over all ranks that agreement needs.
*/
#ifndef MGRID_BACKEND_H
#define MGRID_BACKEND_H

#include "plan/options.h"

/* One communicator to create: ordered members, and where this rank is among them. */
typedef struct mgrid_comm_spec {
  const char *name;                /* "state/family[index]" for logs */
  const mgrid_descriptor *backend; /* the backend that the family asks for, else the state's */
  /* of its family; NULL: a group of one rank, which needs no communicator */
  const mgrid_choice *options;
  /* [size], global ranks in group order; NULL if the descriptor has no `lists` */
  const int32_t *ranks;
  /* size 0: this rank is not a member, but takes part (mgrid_backend.whole) */
  int64_t size, position;
  int64_t group; /* its index in the family */
  /* [0, 32768), equal on all members; two families or rounds may have the same one, since members
  ** create their communicators in one order */
  int tag;
  int64_t turn; /* of the family and round, in schedule order: groups of one turn share no rank */
  /* the communicator to split it from: NULL, or a pointer to it, which is filled once the specs
  ** before this one are created; also where size is 0 */
  void *const *parent;
} mgrid_comm_spec;

/* Element types of mgrid_backend_ops.collective, which MPI and NCCL both have. */
typedef enum mgrid_type { MGRID_INT32, MGRID_INT64, MGRID_FLOAT, MGRID_DOUBLE } mgrid_type;
typedef enum mgrid_reduction { MGRID_SUM, MGRID_PROD, MGRID_MIN, MGRID_MAX } mgrid_reduction;
typedef enum mgrid_call {
  MGRID_ALLREDUCE,
  MGRID_BROADCAST,
  MGRID_ALLGATHER,
  MGRID_REDUCE_SCATTER,
  MGRID_SENDRECV, /* also a send or a receive alone */
  MGRID_BARRIER,
  MGRID_ALL_TO_ALL /* out of place */
} mgrid_call;

/* One collective over the members. Buffers come from buffer_new. */
typedef struct mgrid_work {
  mgrid_call call;
  mgrid_type type;
  mgrid_reduction reduction; /* of MGRID_ALLREDUCE and MGRID_REDUCE_SCATTER */
  const void *send;
  void *recv;
  size_t count;     /* elements; of all-gather, reduce-scatter and all-to-all: of one member */
  int64_t root;     /* MGRID_BROADCAST: position of the sender */
  int64_t to, from; /* MGRID_SENDRECV: positions, -1 for none */
  /* of `together`: an all-reduce or all-gather to `root` alone, an all-to-all from it alone */
  bool rooted;
  bool ours; /* a call of the library's own: an error names what this rank does */
} mgrid_work;

/* One of several calls that begin together. */
enum { MGRID_TOGETHER_MAX = 64 };
typedef struct mgrid_together {
  const struct mgrid_comm_spec *spec;
  void *native;
  /* the two sides of MGRID_SENDRECV are calls of their own: `to` or `from` is -1 */
  mgrid_work work;
} mgrid_together;

/* Result on this rank of a call that waits for other ranks: an mgrid_status, or one of these, which
** never leave the library. */
typedef int mgrid_outcome;
enum {
  MGRID_GAVE_UP = -1, /* another rank failed and notified us; its error is the one to report */
  MGRID_LATE = -2,    /* of mgrid_wait: the deadline passed */
  MGRID_NOT_YET = -3, /* of an mgrid_look: not finished, look again */
  MGRID_BUSY = -4     /* the same, and what it waits for moves only while it looks */
};
/* The outcome as a status, for calls after which no verdict follows. */
static inline mgrid_status mgrid_status_of(mgrid_outcome o) {
  return o == MGRID_GAVE_UP ? MGRID_OTHER_RANK : o;
}

/* Small messages that one backend (mpi, pmix, the host's functions) carries for another, which is
** `carried`. Every wait has a deadline. */
typedef struct mgrid_carrier_ops {
  /* Called first: prepare for messages and set the first deadline. *local_rank and *local_size:
  ** index of this rank among the ranks of its machine, and their number. Collective. After
  ** MGRID_NO_MEMORY mgrid_verdict still works. */
  mgrid_status (*start)(mgrid_backend *b, double seconds, int *local_rank, int *local_size,
                        mgrid_error *err);
  /* From now on a call over all ranks fails after `seconds` and names the rank that is missing. 0:
  ** as the carrier was opened. */
  void (*deadline)(mgrid_backend *b, double seconds);
  /* A message between two ranks; each side waits `seconds` at most. */
  mgrid_outcome (*send)(mgrid_backend *b, int64_t to, int tag, const void *data, size_t bytes,
                        double seconds, mgrid_error *err);
  mgrid_outcome (*recv)(mgrid_backend *b, int64_t from, int tag, void *data, size_t bytes,
                        double seconds, mgrid_error *err);
  /* tell: notify a rank that this one failed, so that it stops waiting. heard: return a rank that
  ** has notified this one, or -1; each notice is returned once. A notice counts only in the phase
  ** in which it was sent; `phase` begins the next one, with a number that is equal on all ranks. */
  void (*tell)(mgrid_backend *b, int64_t to);
  int64_t (*heard)(mgrid_backend *b);
  void (*phase)(mgrid_backend *b, uint64_t number);
} mgrid_carrier_ops;

/* The rows of a box in the part of one rank. A row is contiguous bytes. */
typedef struct mgrid_rows {
  char *at;          /* the current row */
  int64_t row, done; /* bytes of a row; bytes of the current row that are done */
  int n;             /* loops around it, the slowest first */
  /* [n]; strides in bytes */
  int64_t length[MGRID_AXES_MAX], stride[MGRID_AXES_MAX], index[MGRID_AXES_MAX];
  bool converts; /* elements change their type when they are packed: tensors/chunks.c */
} mgrid_rows;

enum { MGRID_BOXES_MAX = 64 }; /* of a message */

/* A message between two ranks of the world, a part of a move: mpi/mpi_move.c, nccl/nccl_move.c */
typedef struct mgrid_post {
  size_t slot; /* `look` reports its end by this number, which no other message has until then */
  int64_t peer;
  bool receive;
  void *data;
  size_t bytes;            /* 1 or more, and equal on both sides */
  size_t nboxes;           /* of one tensor, the first at `data`; 0: the bytes are contiguous */
  const mgrid_rows *boxes; /* [nboxes] */
} mgrid_post;

/* A copy of strided rows, `planes` times `count` of them, to or from contiguous memory. */
typedef struct mgrid_slab {
  char *apart, *packed;
  /* bytes of a row; strides that are used are 1 or more */
  int64_t row, count, stride, planes, plane_stride;
  bool pack; /* from `apart` to `packed`, else back */
} mgrid_slab;

/* Between two ranks, messages of one direction arrive in the order in which they were posted. */
typedef struct mgrid_transport_ops {
  bool typed;    /* takes boxes */
  bool polled;   /* messages move only in its calls */
  bool together; /* what ranks post in one call must match, and ends together */
  /* `look` knows when to give up: MGRID_LATE if nothing moves, MGRID_GAVE_UP if ranks are missing
  ** */
  bool watches;
  /* Return the backend by which ranks notify each other that they gave up. May be NULL, and return
  ** NULL. */
  mgrid_backend *(*carrier)(mgrid_backend *b);
  /* Until `close` let calls over all ranks take *seconds at most; 0: the backend's own limit, which
  ** it writes there. A rank that fails here does not take part. */
  mgrid_status (*open)(mgrid_backend *b, double *seconds, mgrid_error *err);
  /* Check that it can move; before the ranks agree, so that a failure reaches all of them. Local.
  ** NULL: it can. */
  mgrid_status (*ready)(mgrid_backend *b, mgrid_error *err);
  /* Check that messages can begin and end in this memory, which `what` names. Local. NULL: in
  ** any. */
  mgrid_status (*reaches)(mgrid_backend *b, const void *data, const char *what, mgrid_error *err);
  /* After the ranks agreed, make what messages go over. Collective, with a verdict. NULL: it is
  ** there. */
  mgrid_status (*connect)(mgrid_backend *b, mgrid_error *err);
  /* Return memory to pack in. It is the backend's; the next call may return the same. Local. NULL:
  ** malloc. */
  void *(*memory)(mgrid_backend *b, size_t bytes, mgrid_error *err);
  /* Copy between memory of parts and of messages. The copy may go on after the call: later posts
  ** and copies wait for it. NULL, or while `copies` is there and returns false: the CPU copies. */
  bool (*copies)(mgrid_backend *b);
  mgrid_status (*copy)(mgrid_backend *b, const mgrid_slab *rows, mgrid_error *err);
  /* An mgrid_look for the end of all copies. NULL: they end in the call. */
  mgrid_outcome (*copied)(mgrid_backend *b, mgrid_error *err);
  /* Prepare for messages in slots 0 to n - 1. Local. */
  mgrid_status (*prepare)(mgrid_backend *b, size_t n, mgrid_error *err);
  mgrid_outcome (*post)(mgrid_backend *b, size_t n, const mgrid_post *message, mgrid_error *err);
  /* Get the slots of messages that ended since the last call; `ended` has room for all. news: this
  ** rank made other progress since then. */
  mgrid_outcome (*look)(mgrid_backend *b, bool news, size_t *n, int *ended, mgrid_error *err);
  /* Return false, only after a failure, if memory of messages may still be read or written.
  ** Local. */
  bool (*close)(mgrid_backend *b, bool failed);
} mgrid_transport_ops;

enum { MGRID_ALL_LIVE = 1 << 30 }; /* of `agree_and` */

/* What survivors call when ranks are lost and calls over all ranks did not end. NULL in a backend
** that ends with its first lost rank. */
typedef struct mgrid_survival_ops {
  /* Local: can this job go on? MGRID_UNSUPPORTED with what it needs. */
  mgrid_status (*able)(const mgrid_backend *b, mgrid_error *err);
  /* Local: end what any rank waits for in calls over all ranks, so that it notices. Afterwards only
  ** these operations and close work. */
  void (*interrupt)(mgrid_backend *b);
  /* Local: is a rank lost, or did one interrupt the backend? */
  bool (*hurt)(mgrid_backend *b);
  /* Over all survivors, also on an interrupted backend: *mine, 31 bits, becomes the `and` of all,
  ** equal on all, within `seconds` (0: the backend's timeout). If a rank of the backend is lost,
  ** the result lacks MGRID_ALL_LIVE. A rank that passes this bit may get 0 then, whatever the
  ** others get. */
  mgrid_status (*agree_and)(mgrid_backend *b, uint64_t *mine, double seconds, mgrid_error *err);
  /* Over all survivors, after an `agree_and` on an interrupted backend: find the lost ranks;
  ** lost[i] of the world. Equal on all ranks where it succeeds. If it fails on some ranks only, the
  ** next `agree_and` shows it to the others. */
  mgrid_status (*find_lost)(mgrid_backend *b, bool *lost, mgrid_error *err);
  /* Over all survivors, after `find_lost` on all: open a backend of them, with this rank as `rank`.
  ** It can fail on some ranks only, like `find_lost`. */
  mgrid_backend *(*rest)(mgrid_backend *b, int64_t rank, mgrid_error *err);
} mgrid_survival_ops;

/* Calls on streams of a GPU: they begin without waiting, as in a step that is executed. One program
** at a time. */
typedef struct mgrid_timed_call { /* of a call, or of a sleep */
  uint64_t tag;                   /* as it was begun */
  double begun, seconds;          /* begun: since `zero`, by the clock of the GPU */
} mgrid_timed_call;
typedef struct mgrid_streams_ops {
  /* Local: make n streams, and as many marks. */
  mgrid_status (*open)(mgrid_backend *b, int n, size_t marks, mgrid_error *err);
  /* Begin n calls together. Those that the carrier makes must be alone; the rank waits for what is
  ** in the stream, and for them. Else it waits, `seconds` at most, only where communicators still
  ** connect. */
  mgrid_outcome (*begin)(mgrid_backend *b, int stream, size_t n, const mgrid_together *calls,
                         uint64_t tag, double seconds, mgrid_error *err);
  mgrid_status (*sleep)(mgrid_backend *b, int stream, double seconds, uint64_t tag,
                        mgrid_error *err);
  /* Put a mark into a stream; let what comes later in a stream wait for a mark. */
  mgrid_status (*mark)(mgrid_backend *b, int stream, size_t mark, mgrid_error *err);
  mgrid_status (*after)(mgrid_backend *b, int stream, size_t mark, mgrid_error *err);
  /* Take what ended since the last look, in order. *in: the first that has not ended, UINT64_MAX:
  ** there is none. */
  mgrid_status (*look)(mgrid_backend *b, int stream, size_t most, mgrid_timed_call *ended,
                       size_t *n, uint64_t *in, mgrid_error *err);
  mgrid_status (*zero)(mgrid_backend *b, mgrid_error *err); /* nothing is in the streams */
  void (*close)(mgrid_backend *b, bool failed);             /* local. failed: calls may hang */
} mgrid_streams_ops;

/* What becomes of a communicator in a larger world, or in that of the survivors (shrunk). The
** members of a group choose the lowest value of all members. */
typedef enum mgrid_growth { MGRID_ANEW, MGRID_SHRUNK, MGRID_GROWN, MGRID_KEPT } mgrid_growth;
typedef struct mgrid_origin {
  void *native; /* the communicator that this rank had of the group, or NULL */
  int nlost;    /* for a shrink: the number of lost members, */
  int *lost;    /* [nlost] their positions, ascending; malloc'ed */
  /* what the members and their order allow; on a new rank, which cannot know, MGRID_KEPT */
  mgrid_growth can;
  mgrid_growth agreed; /* what all members do */
  char why[96];        /* why this rank cannot do better, or "" */
} mgrid_origin;

typedef struct mgrid_backend_ops {
  /* Over all ranks; words become the element-wise minimum. */
  mgrid_status (*allreduce_min)(mgrid_backend *b, uint64_t *words, size_t n, mgrid_error *err);
  /* Over all ranks; all is [world * bytes]. */
  mgrid_status (*allgather)(mgrid_backend *b, const void *mine, void *all, size_t bytes,
                            mgrid_error *err);
  mgrid_status (*bcast)(mgrid_backend *b, void *data, size_t bytes, int64_t root, mgrid_error *err);
  /* Check that these n can be created; before agreement, so that a failure reaches all ranks before
  ** anything is made. Local. */
  mgrid_status (*check)(mgrid_backend *b, size_t n, const mgrid_comm_spec *spec, mgrid_error *err);
  /* Create n communicators of this rank, in schedule order; each is a call over its members, and
  ** all members create those that they share in the same order. After a failure go on to the end,
  ** because other members wait in the rest. native[i] is a handle for the calls below; NULL: not
  ** created. */
  mgrid_outcome (*create)(mgrid_backend *b, size_t n, const mgrid_comm_spec *spec, void **native,
                          mgrid_error *err);
  /* All members call destroy in the same order. abort does not wait for other ranks; NULL: use
  ** destroy. */
  void (*destroy)(mgrid_backend *b, size_t n, void **native);
  void (*abort)(mgrid_backend *b, size_t n, void **native);
  /* Make the communicator of spec->ranks from the larger one `from`, or anew. The members at the n
  ** positions are left out and do not take part. NULL unless the descriptor has `shrinks`. */
  mgrid_outcome (*shrink)(mgrid_backend *b, const mgrid_comm_spec *spec, void *from, int n,
                          const int *positions, void **native, mgrid_error *err);
  /* Note that some of its ranks are lost: abort it instead of destroying it when its last user is
  ** gone. May be NULL. */
  void (*lose)(mgrid_backend *b, void *native);
  /* End the calls that run on n communicators on this rank; afterwards only shrink and destroy
  ** work. NULL unless the descriptor has `revokes`. */
  mgrid_status (*revoke)(mgrid_backend *b, size_t n, void **native, mgrid_error *err);
  /* Check members and order, a sum, broadcasts, a ring, and anything else that keeps no memory
  ** afterwards. Collective over the members. NULL if create makes nothing. */
  mgrid_outcome (*prove)(mgrid_backend *b, const mgrid_comm_spec *spec, void *native,
                         mgrid_error *err);
  void (*close)(mgrid_backend *b); /* frees b */

  /* Collectives for proofs and benchmarks; all four are NULL in a backend without communicators. A
  ** buffer is in the memory that communicators of `kind` use (GPU or CPU). Calls return when they
  ** are finished. native NULL: a group of one rank. */
  void *(*buffer_new)(mgrid_backend *b, const mgrid_descriptor *kind, size_t bytes,
                      mgrid_error *err);
  void (*buffer_free)(mgrid_backend *b, const mgrid_descriptor *kind, void *buffer);
  mgrid_status (*copy)(mgrid_backend *b, const mgrid_descriptor *kind, void *to, const void *from,
                       size_t bytes, bool to_buffer, mgrid_error *err);
  mgrid_outcome (*collective)(mgrid_backend *b, const mgrid_comm_spec *spec, void *native,
                              const mgrid_work *w, mgrid_error *err);
  /* Begin n calls over communicators of this backend, then wait at most `seconds` for all of them.
  ** MGRID_TIMED_OUT names the calls that did not end; for a single collective, also the members
  ** that did not arrive. Between `connect` of its transport and a verdict ranks wait as in a move,
  ** while anything moves; MGRID_GAVE_UP: the verdict names the missing ranks. NULL: not
  ** supported. */
  mgrid_outcome (*together)(mgrid_backend *b, size_t n, const mgrid_together *calls, double seconds,
                            mgrid_error *err);

  /* Suspend the n communicators in this order, or resume them; each is a call over its members. A
  ** first call with `dry` only checks that it can be done. NULL: there is nothing to do. */
  mgrid_outcome (*suspend)(mgrid_backend *b, size_t n, void **native, bool resume, bool dry,
                           mgrid_error *err);
  /* Add the memory that they hold to *sum. NULL: none. */
  mgrid_status (*held)(mgrid_backend *b, size_t n, void **native, mgrid_held_memory *sum,
                       mgrid_error *err);
  /* For each of the n let its members vote by messages what becomes of it: origin[i].agreed. `grow`
  ** then grows one, a call over its members. NULL: all are created again. */
  mgrid_outcome (*growth)(mgrid_backend *b, size_t n, const mgrid_comm_spec *spec,
                          mgrid_origin *origin, mgrid_error *err);
  mgrid_outcome (*grow)(mgrid_backend *b, const mgrid_comm_spec *spec, const mgrid_origin *origin,
                        void **native, mgrid_error *err);
  /* Shrink the origins of those of the n that can be MGRID_SHRUNK, each by a call over the new
  ** members. If all members could, set native[i] and `agreed`; `create` makes the others. NULL:
  ** `create` makes all. */
  void (*remake)(mgrid_backend *b, size_t n, const mgrid_comm_spec *spec, mgrid_origin *origin,
                 void **native);
  /* Take over a communicator from another backend. */
  void (*adopt)(mgrid_backend *b, mgrid_backend *from, void *native);

  /* Get the ith window of the option `windows`, if there is one; the device communicator, or NULL,
  ** and the version of NCCL whose ncclDevComm it is. Local. Both are NULL unless the descriptor has
  ** `has_windows`. */
  void (*window)(mgrid_backend *b, void *native, size_t i, mgrid_nccl_window *out);
  const void *(*device)(mgrid_backend *b, void *native, int *version);

  const mgrid_carrier_ops *carrier;     /* NULL: this backend carries no other */
  const mgrid_transport_ops *transport; /* NULL: it moves no data */
  const mgrid_survival_ops *survival;   /* NULL: it ends with its first lost rank */
  const mgrid_streams_ops *streams;     /* NULL: calls wait */
} mgrid_backend_ops;

typedef struct mgrid_shared mgrid_shared; /* a communicator and its users: pool.c */

/* How ranks are spread over machines, which are numbered by their lowest rank. hosts.c */
typedef struct mgrid_rank_spread {
  /* machines of the job, 0 until the first state is made; index of this one */
  int64_t machines, index;
  int64_t local_size, local_rank; /* ranks on this machine; index of this rank among them */
  /* ranks of a machine, if those of each are consecutive and equally many (the last one may have
  ** fewer); 0: otherwise, and with one machine, or one for each rank */
  int64_t block;
  /* of a backend on GPUs, set when it is opened: how many, and index of this rank's */
  int gpus, gpu;
} mgrid_rank_spread;

/* Version of the structs in this header. A backend library and a libmoongrid of different versions
** may be loaded in one process, so each compares this number before it reads anything else of the
** other. */
enum {
  MGRID_LAYOUT = 0x6d000000 + MGRID_VERSION_MAJOR * 10000 + MGRID_VERSION_MINOR * 100
                 + MGRID_VERSION_PATCH
};
/* MGRID_MISSING unless both are of one version; `what` names the other. verdict.c */
mgrid_status mgrid_layout_check(int layout, const char *what, mgrid_error *err);

/* A backend sets the first five fields and `users` = 1; all others begin as 0. */
struct mgrid_backend {
  int layout; /* MGRID_LAYOUT */
  const mgrid_descriptor *kind;
  const mgrid_backend_ops *ops;
  int64_t rank, world;
  int users; /* owners: who opened it, each mgrid_backend_ref, each state; the last one closes it */
  /* every creation is a call over all ranks, so ranks also take part in those of others, and states
  ** share no communicators */
  bool whole;
  mgrid_shared *pool;  /* set by pool.c: communicators that states may share */
  mgrid_state *states; /* set by state.c: those not freed yet, the newest first */
  double longest; /* of core: longest timeout of a family so far, seconds; identical on all ranks */
  mgrid_backend *carrier; /* of a backend over another one: that, else NULL */
  /* of core: of it and of the backends over it, so far; identical on all ranks */
  uint64_t creations;
  uint64_t epoch;    /* of core: the number of its last creation among those */
  uint64_t meetings; /* of core: rendezvous so far; identical on all ranks */
  char doing[96];    /* of core: the call that this rank is in, or was in last: rendezvous.c */
  /* Groups of one rank, where the descriptor has `singles`. wants_single: return whether the group
  ** of a family with these options gets a communicator; single: make it. Both are local; NULL if
  ** the backend makes none. */
  bool (*wants_single)(const mgrid_backend *b, const mgrid_choice *options);
  mgrid_status (*single)(mgrid_backend *b, const mgrid_comm_spec *spec, void **native,
                         mgrid_error *err);
  mgrid_rank_spread spread;
  /* of a backend over this one: seconds of the deadline that passed before the call */
  double waited;
  bool left; /* of core: mgrid_state_leave was called, and others may have that state still */
  bool hooks_fixed;  /* of core: a state was made, so the hooks are fixed */
  mgrid_hooks hooks; /* of core: mgrid_backend_set_hooks */
};

/* Call look(ud) until it returns something else than MGRID_NOT_YET, after which the loop may sleep,
** or MGRID_BUSY, after which it only yields the processor; that is the result. Or until mgrid_now()
** reaches `until` (MGRID_LATE), or until a rank tells over the carrier that it gave up
** (MGRID_GAVE_UP, with the rank in *who). carrier NULL: do not listen; who may be NULL then.
** verdict.c */
typedef mgrid_outcome mgrid_look(void *ud);
mgrid_outcome mgrid_wait(mgrid_look *look, void *ud, double until, mgrid_backend *carrier,
                         int64_t *who);

/* Ranks that did not arrive at a call over all ranks. verdict.c */
typedef struct mgrid_missing {
  int64_t n;                         /* how many; 0 if they are not known */
  int64_t rank[MGRID_MISSING_SHOWN]; /* the first of them */
  uint8_t lost; /* 1: their processes have failed; not a bool, since other ranks send it */
} mgrid_missing;
void mgrid_missing_add(mgrid_missing *m, int64_t rank);
/* Write who is missing, "ranks 3, 5 are not there", "rank 3 is lost: ...", "some rank is not
** there". */
enum { MGRID_MISSING_TEXT = MGRID_MISSING_SHOWN * 24 + 80 };
const char *mgrid_missing_text(const mgrid_missing *m, char to[MGRID_MISSING_TEXT]);
/* MGRID_TIMED_OUT: "after 3 seconds not all ranks had come: ranks 3, 5 are not there", or
** MGRID_LOST_RANK; the ranks and the seconds are in the error, too. */
mgrid_status mgrid_missing_fail(const mgrid_missing *m, double seconds, mgrid_error *err);

/* Collective: if any rank failed, every rank returns the error of the first that did. verdict.c */
mgrid_status mgrid_verdict(mgrid_backend *b, mgrid_outcome mine, const mgrid_error *failed,
                           mgrid_error *err);
/* The same in three steps, for a caller whose all-reduce has other words, too. Make the all-reduce;
** its own failure counts before that of this rank. */
mgrid_status mgrid_verdict_min(mgrid_backend *b, uint64_t *words, size_t n, mgrid_outcome mine,
                               const mgrid_error *failed, mgrid_error *err);
/* Return the word of this rank for it. */
uint64_t mgrid_verdict_of(const mgrid_backend *b, mgrid_outcome mine);
/* Return the verdict that follows from the minimum `who` of these words. */
mgrid_status mgrid_verdict_tell(mgrid_backend *b, uint64_t who, mgrid_outcome mine,
                                const mgrid_error *failed, mgrid_error *err);

/* Other ranks, carriers and stores may send anything. These functions check what was received
** before it is used. mgrid_hear: a broadcast from `root` over all ranks; MGRID_BACKEND if there is
** no such rank. */
mgrid_status mgrid_hear(mgrid_backend *b, uint64_t root, void *data, size_t bytes,
                        mgrid_error *err);
/* The error: "another rank sent an impossible value: WHAT". */
mgrid_status mgrid_cannot_be(mgrid_error *err, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
/* Make an error of another rank safe: end its texts, replace control characters, and turn an
** unknown status into MGRID_BACKEND. */
void mgrid_error_heard(mgrid_error *e);
/* Return the rank if a world of this size has it, else -1 after filling *err. */
int64_t mgrid_rank_heard(uint64_t rank, int64_t world, mgrid_error *err);
/* Check a carrier's list of missing ranks. verdict.c */
mgrid_status mgrid_missing_heard(const mgrid_missing *m, int64_t world, mgrid_error *err);

/* Add the name of the call to an error about ranks that did not arrive. verdict.c */
void mgrid_doing_add(const mgrid_backend *b, mgrid_error *err);

/* What a backend library exports, under the name in its descriptor: its entry points. */
typedef struct mgrid_backend_entry {
  int layout; /* MGRID_LAYOUT */
  /* Open with complete options. NULL: it needs a carrier. */
  mgrid_backend *(*open)(const mgrid_backend_options *options, mgrid_error *err);
  /* Open over a carrier, and become another owner of it. Collective. */
  mgrid_backend *(*over)(mgrid_backend *carrier, const mgrid_nccl_options *o, mgrid_error *err);
  mgrid_status (*probe)(char *buf, size_t len,
                        /* what is installed, as text; or an error that names what is missing */
                        mgrid_error *err);
} mgrid_backend_entry;
/* MGRID_ENTRY(mpi) = { MGRID_LAYOUT, .open = ... }; the descriptor's `entry` is this name
** (plan/backend_list.c). */
#define MGRID_ENTRY(backend) \
  extern MGRID_API const mgrid_backend_entry mgrid_##backend##_entry; \
  const mgrid_backend_entry mgrid_##backend##_entry

/* Check a timeout of the host: MGRID_OUT_OF_RANGE if it is below 0 or not a number. `what` says
** whose it is. */
static inline mgrid_status mgrid_timeout_check(double timeout, const char *what, mgrid_error *err) {
  return timeout >= 0 ? MGRID_OK
                      : mgrid_fail(err, MGRID_OUT_OF_RANGE,
                                   "%s: a timeout is 0 (the default) seconds or more, not %g", what,
                                   timeout);
}
static inline double mgrid_timeout_of(double timeout) {
  return timeout > 0 ? timeout : MGRID_TIMEOUT;
}

#endif
