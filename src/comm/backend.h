/* SPDX-License-Identifier: MIT
**
** backend.h - what a backend is. It has a descriptor, which can be read before the backend is
** opened (plan/backend_row.h), and a table of operations. The operations create and use
** communicators, and make the collectives over all ranks by which these agree.
*/
#ifndef MGRID_BACKEND_H
#define MGRID_BACKEND_H

#include "plan/options.h"

/* One communicator to create: ordered members, and where this rank is among them. */
typedef struct mgrid_comm_spec {
  const char *name;                /* "state/family[index]" for logs */
  const mgrid_descriptor *backend; /* the backend that the family asks for, else the state's */
  /* the options of the group's family; NULL: the group has one rank and no communicator */
  const mgrid_choice *options;
  /* [size]: the members, as ranks of the world, in group order; NULL if the descriptor lacks
  ** `lists` */
  const int32_t *ranks;
  /* size 0: this rank is not a member, but takes part in the call: mgrid_backend.whole, or a
  ** split */
  int64_t size, position;
  int64_t group; /* index of the group in the family */
  /* 0 to 32767, equal on all members. Groups of two families, or of two rounds of a family
  ** (mgrid_family_rounds), may have the same tag, because all members create their communicators in
  ** the same order */
  int tag;
  /* a number that grows with family and round, in schedule order; groups with the same turn share
  ** no rank */
  int64_t turn;
  /* the address of the handle of the communicator from which to split this one. Read the handle
  ** late: it may be set only when the specs before this one have been created. Also set where size
  ** is 0. NULL: it is not a split */
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
  MGRID_SENDRECV, /* or only a send, or only a receive */
  MGRID_BARRIER,
  MGRID_ALL_TO_ALL /* out of place */
} mgrid_call;

/* One collective over the members. Buffers come from buffer_new. */
typedef struct mgrid_work {
  mgrid_call call;
  mgrid_type type;
  mgrid_reduction reduction; /* for MGRID_ALLREDUCE and MGRID_REDUCE_SCATTER */
  const void *send;
  void *recv;
  /* elements; for all-gather, reduce-scatter and all-to-all, those of one member */
  size_t count;
  int64_t root;     /* for MGRID_BROADCAST: position of the sender */
  int64_t to, from; /* for MGRID_SENDRECV: positions; -1: none */
  /* only for `together` and for streams: only `root` gets the result of an all-reduce or
  ** all-gather, or only `root` sends in an all-to-all */
  bool rooted;
  bool ours; /* the library itself makes this call, so errors name it by mgrid_backend.doing */
} mgrid_work;

/* The most calls that begin together, and one such call. */
enum { MGRID_TOGETHER_MAX = 64 };
typedef struct mgrid_together {
  const struct mgrid_comm_spec *spec;
  void *native;
  /* the two sides of MGRID_SENDRECV are two calls here: `to` or `from` is -1 */
  mgrid_work work;
} mgrid_together;

/* What a call that waits for other ranks returns on this rank: an mgrid_status, or one of these.
** They never leave the library. */
typedef int mgrid_outcome;
enum {
  MGRID_GAVE_UP = -1, /* another rank failed and told us; its error is the one to report */
  MGRID_LATE = -2,    /* the deadline passed */
  MGRID_NOT_YET = -3, /* returned by an mgrid_look: not finished, look again */
  MGRID_BUSY = -4     /* as MGRID_NOT_YET, but there is progress only during a look */
};
/* Turn an outcome into a status, for calls after which no verdict follows. */
static inline mgrid_status mgrid_status_of(mgrid_outcome o) {
  return o == MGRID_GAVE_UP ? MGRID_OTHER_RANK : o;
}

/* Small messages that a carrier (the backend mpi or pmix, or functions of the host) sends for a
** backend that is opened over it (mgrid_descriptor.carried). Every wait has a deadline. */
typedef struct mgrid_carrier_ops {
  /* This is called first. Prepare for messages, and set the first deadline. *local_rank and
  ** *local_size: index of this rank among the ranks of its node, and their number. Collective.
  ** After MGRID_NO_MEMORY, mgrid_verdict still works. */
  mgrid_status (*start)(mgrid_backend *b, double seconds, int *local_rank, int *local_size,
                        mgrid_error *err);
  /* Set the deadline of the calls over all ranks from now on. A call that fails after `seconds`
  ** names the missing ranks. 0: set the deadline with which the carrier was opened. */
  void (*deadline)(mgrid_backend *b, double seconds);
  /* A message between two ranks. Each side waits at most `seconds`. */
  mgrid_outcome (*send)(mgrid_backend *b, int64_t to, int tag, const void *data, size_t bytes,
                        double seconds, mgrid_error *err);
  mgrid_outcome (*recv)(mgrid_backend *b, int64_t from, int tag, void *data, size_t bytes,
                        double seconds, mgrid_error *err);
  /* tell: send a notice to a rank that this one failed, so that it stops waiting. heard: return a
  ** rank that has sent a notice to this one, or -1 if there is none; each notice is returned once.
  ** phase: begin the next phase; its number is equal on all ranks. A notice counts only in the
  ** phase in which it was sent. */
  void (*tell)(mgrid_backend *b, int64_t to);
  int64_t (*heard)(mgrid_backend *b);
  void (*phase)(mgrid_backend *b, uint64_t number);
} mgrid_carrier_ops;

/* The rows of a box in the part of one rank (moongrid_tensor.h). A row is contiguous bytes. */
typedef struct mgrid_rows {
  char *at;          /* the current row */
  int64_t row, done; /* bytes of a row; how many bytes of the current row are packed or unpacked */
  int n;             /* loops around the rows, the slowest first */
  /* [n]; strides are in bytes */
  int64_t length[MGRID_AXES_MAX], stride[MGRID_AXES_MAX], index[MGRID_AXES_MAX];
  bool converts; /* packing changes the type of the elements: tensors/chunks.c */
} mgrid_rows;

enum { MGRID_BOXES_MAX = 64 }; /* the most boxes of a message */

/* A message between two ranks of the world; it is part of a move. mpi/mpi_move.c,
** nccl/nccl_move.c */
typedef struct mgrid_post {
  /* `look` reports by this number that the message ended; until then no other message has the
  ** number */
  size_t slot;
  int64_t peer;
  bool receive;
  void *data;
  size_t bytes; /* 1 or more, and equal on both sides */
  /* boxes of one tensor, the first at `data`; 0: the bytes are contiguous */
  size_t nboxes;
  const mgrid_rows *boxes; /* [nboxes] */
} mgrid_post;

/* A copy of strided rows, to or from contiguous memory: `planes` times `count` rows. */
typedef struct mgrid_slab {
  char *apart, *packed; /* the strided rows; the contiguous memory */
  /* row: bytes of a row. Strides are in bytes; those in use are 1 or more */
  int64_t row, count, stride, planes, plane_stride;
  bool pack; /* true: from `apart` to `packed`; false: back */
} mgrid_slab;

/* What a move of data needs. To post a message is to begin it. Between two ranks, messages of one
** direction arrive in the order in which they were posted. */
typedef struct mgrid_transport_ops {
  bool typed;  /* messages may have boxes */
  bool polled; /* messages move only during calls of this table */
  /* the messages of one `post` must match those of one `post` of each peer, and end together */
  bool together;
  /* `look` decides when to give up: it returns MGRID_LATE if nothing moves, MGRID_GAVE_UP if ranks
  ** are missing */
  bool watches;
  /* Return the backend over which ranks notify each other that they gave up. If that is NULL, or
  ** this pointer is NULL, there are no notices. */
  mgrid_backend *(*carrier)(mgrid_backend *b);
  /* Begin a move. Until `close`, a call over all ranks may take *seconds; 0: set *seconds to the
  ** backend's own deadline, which then applies. A rank that fails here does not take part. */
  mgrid_status (*open)(mgrid_backend *b, double *seconds, mgrid_error *err);
  /* Check that this rank can move data. This comes before the ranks agree, so that all learn of a
  ** failure. Local. NULL: it always can. */
  mgrid_status (*ready)(mgrid_backend *b, mgrid_error *err);
  /* Check that messages can begin and end in this memory, which errors call `what`. Local. NULL:
  ** any memory will do. */
  mgrid_status (*reaches)(mgrid_backend *b, const void *data, const char *what, mgrid_error *err);
  /* After the ranks agreed, make what messages need. All ranks call this; if it makes a
  ** communicator, it ends with a verdict. NULL: messages need nothing. */
  mgrid_status (*connect)(mgrid_backend *b, mgrid_error *err);
  /* Return memory in which to pack. It belongs to the backend; the next call may return the same
  ** memory. Local. NULL: malloc. */
  void *(*memory)(mgrid_backend *b, size_t bytes, mgrid_error *err);
  /* copy: copy between the memory of parts and of messages. The copy may go on after the call:
  ** messages and copies that begin later wait for it. The CPU copies if `copy` is NULL, or if
  ** `copies` is not NULL and returns false. */
  bool (*copies)(mgrid_backend *b);
  mgrid_status (*copy)(mgrid_backend *b, const mgrid_slab *rows, mgrid_error *err);
  /* An mgrid_look for the end of all copies. NULL: a copy ends in its call. */
  mgrid_outcome (*copied)(mgrid_backend *b, mgrid_error *err);
  /* Prepare for messages in slots 0 to n - 1. Local. */
  mgrid_status (*prepare)(mgrid_backend *b, size_t n, mgrid_error *err);
  /* Begin n messages, and do not wait for their end. */
  mgrid_outcome (*post)(mgrid_backend *b, size_t n, const mgrid_post *message, mgrid_error *err);
  /* Get the slots of the messages that ended since the last `look`; `ended` has room for all. news:
  ** this rank made other progress since then. */
  mgrid_outcome (*look)(mgrid_backend *b, bool news, size_t *n, int *ended, mgrid_error *err);
  /* End a move. Return false if memory of messages may still be read or written, which is possible
  ** only after a failure. Local. */
  bool (*close)(mgrid_backend *b, bool failed);
} mgrid_transport_ops;

enum { MGRID_ALL_LIVE = 1 << 30 }; /* for `agree_and` */

/* What survivors call when ranks are lost and calls over all ranks do not end. NULL: the backend
** ends with its first lost rank. */
typedef struct mgrid_survival_ops {
  /* Local. Return whether this job can go on. MGRID_UNSUPPORTED says what is missing. */
  mgrid_status (*able)(const mgrid_backend *b, mgrid_error *err);
  /* Local. End the calls over all ranks, on every rank that waits in such a call. Afterwards only
  ** the operations of this table and `close` work. */
  void (*interrupt)(mgrid_backend *b);
  /* Local. Return whether a rank is lost, or a rank has interrupted the backend. */
  bool (*hurt)(mgrid_backend *b);
  /* Over all survivors, also on an interrupted backend, within `seconds` (0: the backend's
  ** timeout). *mine has 31 bits, and becomes the bitwise `and` over all ranks, equal on all. If a
  ** rank of the backend is lost, the result lacks MGRID_ALL_LIVE. Only in that case results may
  ** differ: a rank whose *mine had this bit may get 0 instead of the `and`. */
  mgrid_status (*agree_and)(mgrid_backend *b, uint64_t *mine, double seconds, mgrid_error *err);
  /* Over all survivors, after an `agree_and` on an interrupted backend. Set lost[i] for each lost
  ** rank i of the world. Where this succeeds, it is equal on all ranks. If it fails on some ranks
  ** only, the next `agree_and` shows that to the others. */
  mgrid_status (*find_lost)(mgrid_backend *b, bool *lost, mgrid_error *err);
  /* Over all survivors, after `find_lost` succeeded on all. Open a backend of the survivors, in
  ** which this rank has the number `rank`. Like `find_lost`, this may fail on some ranks only. */
  mgrid_backend *(*rest)(mgrid_backend *b, int64_t rank, mgrid_error *err);
} mgrid_survival_ops;

typedef struct mgrid_timed_call { /* when a call, or a sleep, began and how long it took */
  uint64_t tag;                   /* the tag that was passed to `begin` or `sleep` */
  double begun, seconds;          /* begun: since `zero`, by the GPU's clock */
} mgrid_timed_call;
/* Begin calls on streams of a GPU without waiting for their end. The execution of a step uses these
** functions; only one step at a time is executed. */
typedef struct mgrid_streams_ops {
  /* Local. Make n streams and `marks` marks. */
  mgrid_status (*open)(mgrid_backend *b, int n, size_t marks, mgrid_error *err);
  /* Begin n calls together. Their communicators are all of this backend, or all of the carrier. For
  ** calls of the carrier the rank waits until all earlier calls in the stream, and then these
  ** calls, have ended. For calls of this backend it waits only while communicators still connect,
  ** at most `seconds`. */
  mgrid_outcome (*begin)(mgrid_backend *b, int stream, size_t n, const mgrid_together *calls,
                         uint64_t tag, double seconds, mgrid_error *err);
  mgrid_status (*sleep)(mgrid_backend *b, int stream, double seconds, uint64_t tag,
                        mgrid_error *err);
  /* mark: put a mark into a stream. after: let later calls of a stream wait for a mark. */
  mgrid_status (*mark)(mgrid_backend *b, int stream, size_t mark, mgrid_error *err);
  mgrid_status (*after)(mgrid_backend *b, int stream, size_t mark, mgrid_error *err);
  /* Return the calls that ended since the last `look`, in order. *in: the tag of the first call
  ** that has not ended; UINT64_MAX: all have. */
  mgrid_status (*look)(mgrid_backend *b, int stream, size_t most, mgrid_timed_call *ended,
                       size_t *n, uint64_t *in, mgrid_error *err);
  mgrid_status (*zero)(mgrid_backend *b, mgrid_error *err); /* set time 0; no call is in a stream */
  void (*close)(mgrid_backend *b, bool failed);             /* local; failed: calls may hang */
} mgrid_streams_ops;

/* What becomes of a communicator in a larger world, or in the world of the survivors (shrunk). The
** values are in order, the best last. Each member names the best that is possible for it, and the
** group gets the lowest of these. */
typedef enum mgrid_growth { MGRID_ANEW, MGRID_SHRUNK, MGRID_GROWN, MGRID_KEPT } mgrid_growth;
typedef struct mgrid_origin {
  void *native; /* the communicator that this rank had for the group, or NULL */
  int nlost;    /* to shrink: how many members are left out */
  int *lost;    /* [nlost]: their positions, ascending; malloc'ed */
  /* the best value that the members and their order allow; MGRID_ANEW if `native` is NULL */
  mgrid_growth can;
  mgrid_growth agreed; /* the value that the group gets */
  char why[96];        /* why `can` or `agreed` is not higher on this rank, or "" */
} mgrid_origin;

typedef struct mgrid_backend_ops {
  /* Over all ranks. Each of the n words becomes its minimum over the ranks. */
  mgrid_status (*allreduce_min)(mgrid_backend *b, uint64_t *words, size_t n, mgrid_error *err);
  /* Over all ranks; all is [world * bytes]. */
  mgrid_status (*allgather)(mgrid_backend *b, const void *mine, void *all, size_t bytes,
                            mgrid_error *err);
  mgrid_status (*bcast)(mgrid_backend *b, void *data, size_t bytes, int64_t root, mgrid_error *err);
  /* Check that these n communicators can be created. This comes before the ranks agree, so that all
  ** learn of a failure before anything is made. Local. */
  mgrid_status (*check)(mgrid_backend *b, size_t n, const mgrid_comm_spec *spec, mgrid_error *err);
  /* Create n communicators of this rank, in schedule order. Each is a call over its members, and
  ** any two ranks create the communicators that they share in the same order. After a failure go on
  ** to the end, because other members wait in the rest. native[i] becomes a handle for the calls
  ** below; NULL: the communicator was not created. */
  mgrid_outcome (*create)(mgrid_backend *b, size_t n, const mgrid_comm_spec *spec, void **native,
                          mgrid_error *err);
  /* destroy: all members call this in one order. abort: end without waiting for other ranks; NULL:
  ** use destroy. */
  void (*destroy)(mgrid_backend *b, size_t n, void **native);
  void (*abort)(mgrid_backend *b, size_t n, void **native);
  /* Make the communicator of spec->ranks from the larger communicator `from`, or create it anew
  ** where that is not possible. The members of `from` at the n positions are left out, and do not
  ** take part. NULL unless the descriptor has `shrinks`. */
  mgrid_outcome (*shrink)(mgrid_backend *b, const mgrid_comm_spec *spec, void *from, int n,
                          const int *positions, void **native, mgrid_error *err);
  /* Note that ranks of a communicator are lost: `destroy` then aborts it. May be NULL. */
  void (*lose)(mgrid_backend *b, void *native);
  /* On this rank, end the calls that run on n communicators. Afterwards only shrink and destroy
  ** work on these. NULL unless the descriptor has `revokes`. */
  mgrid_status (*revoke)(mgrid_backend *b, size_t n, void **native, mgrid_error *err);
  /* Prove a communicator by calls over its members: broadcasts (members and order), a sum, a ring,
  ** and if the descriptor has `exchanges` an all-to-all. NULL if create makes nothing. */
  mgrid_outcome (*prove)(mgrid_backend *b, const mgrid_comm_spec *spec, void *native,
                         mgrid_error *err);
  void (*close)(mgrid_backend *b); /* frees b */

  /* Collectives over groups, and their buffers. These four are NULL in a backend without
  ** communicators. A buffer is in the memory (GPU or CPU) that communicators of `kind` use.
  ** `collective` returns when the collective has ended on this rank. native NULL: a group of one
  ** rank. */
  void *(*buffer_new)(mgrid_backend *b, const mgrid_descriptor *kind, size_t bytes,
                      mgrid_error *err);
  void (*buffer_free)(mgrid_backend *b, const mgrid_descriptor *kind, void *buffer);
  mgrid_status (*copy)(mgrid_backend *b, const mgrid_descriptor *kind, void *to, const void *from,
                       size_t bytes, bool to_buffer, mgrid_error *err);
  mgrid_outcome (*collective)(mgrid_backend *b, const mgrid_comm_spec *spec, void *native,
                              const mgrid_work *w, mgrid_error *err);
  /* Begin n calls over communicators of this backend, then wait for all of them, at most `seconds`.
  ** MGRID_TIMED_OUT names the group of the first call, and if n is 1 and the call is a collective,
  ** also the members that did not arrive. Between `connect` of the transport and the next verdict
  ** `seconds` does not count: as in a move, ranks wait as long as anything moves. MGRID_GAVE_UP:
  ** the verdict names the missing ranks. NULL: not supported. */
  mgrid_outcome (*together)(mgrid_backend *b, size_t n, const mgrid_together *calls, double seconds,
                            mgrid_error *err);

  /* Suspend n communicators in this order, or with `resume` resume them. For each this is a call
  ** over its members. With `dry` only check that this is possible; the caller does so first. NULL:
  ** there is nothing to do. */
  mgrid_outcome (*suspend)(mgrid_backend *b, size_t n, void **native, bool resume, bool dry,
                           mgrid_error *err);
  /* Add to *sum the memory that n communicators hold. NULL: the backend does not know. */
  mgrid_status (*held)(mgrid_backend *b, size_t n, void **native, mgrid_held_memory *sum,
                       mgrid_error *err);
  /* growth: for each of n communicators, its members vote by messages on what becomes of it; the
  ** result goes into origin[i].agreed. grow: grow one communicator; this is a call over its
  ** members. NULL: all communicators are created again. */
  mgrid_outcome (*growth)(mgrid_backend *b, size_t n, const mgrid_comm_spec *spec,
                          mgrid_origin *origin, mgrid_error *err);
  mgrid_outcome (*grow)(mgrid_backend *b, const mgrid_comm_spec *spec, const mgrid_origin *origin,
                        void **native, mgrid_error *err);
  /* Shrink the old communicators where origin[i].can is MGRID_SHRUNK; for each this is a call over
  ** the new members. Where this succeeds on all members, set native[i] and `agreed`. `create` makes
  ** the other communicators. NULL: `create` makes all. */
  void (*remake)(mgrid_backend *b, size_t n, const mgrid_comm_spec *spec, mgrid_origin *origin,
                 void **native);
  /* Take over a communicator from another backend. */
  void (*adopt)(mgrid_backend *b, mgrid_backend *from, void *native);

  /* window: get the ith window of the option `windows`, if there is one. device: return the device
  ** communicator, or NULL, and the version of NCCL to whose headers its ncclDevComm belongs. Local.
  ** Both are NULL unless the descriptor has `has_windows`. */
  void (*window)(mgrid_backend *b, void *native, size_t i, mgrid_nccl_window *out);
  const void *(*device)(mgrid_backend *b, void *native, int *version);

  const mgrid_carrier_ops *carrier;     /* NULL: this backend carries no other */
  const mgrid_transport_ops *transport; /* NULL: it moves no data */
  const mgrid_survival_ops *survival;   /* NULL: it ends with its first lost rank */
  const mgrid_streams_ops *streams;     /* NULL: calls wait */
} mgrid_backend_ops;

typedef struct mgrid_shared mgrid_shared; /* a communicator and its users: pool.c */

/* How the ranks are spread over nodes. Nodes are numbered in the order of their lowest ranks.
** nodes.c */
typedef struct mgrid_rank_spread {
  int64_t nodes, index; /* nodes of the job, 0 while they are not known; index of this node */
  int64_t local_size, local_rank; /* ranks on this node; index of this rank among them */
  /* ranks of a node, if each node has equally many consecutive ranks (the last may have fewer). 0
  ** otherwise, and also if there is one node, one node for each rank, or more than
  ** MGRID_MACHINE_RANKS_MAX ranks on a node */
  int64_t block;
  /* set when a backend on GPUs is opened: how many GPUs this rank sees, and the index of its own */
  int gpus, gpu;
} mgrid_rank_spread;

/* The version of the structs in this header. One process may load a backend's library and a
** libmoongrid of different versions. So each library compares this number before it reads anything
** else of the other. */
enum {
  MGRID_LAYOUT = 0x6d000000 + MGRID_VERSION_MAJOR * 10000 + MGRID_VERSION_MINOR * 100
                 + MGRID_VERSION_PATCH
};
/* Return MGRID_MISSING unless `layout`, of the other library, is MGRID_LAYOUT. `what` names that
** library. verdict.c */
mgrid_status mgrid_layout_check(int layout, const char *what, mgrid_error *err);

/* A backend. The function that opens it sets the first five fields, sets `users` to 1, and may set
** others, except those "of core": the core sets these, and they begin as 0. */
struct mgrid_backend {
  int layout; /* MGRID_LAYOUT */
  const mgrid_descriptor *kind;
  const mgrid_backend_ops *ops;
  int64_t rank, world;
  /* how many owners: who opened it, each mgrid_backend_ref, each state. The last owner closes it */
  int users;
  /* every creation is a call over all ranks. So each rank takes part in creations for other ranks,
  ** and states share no communicators */
  bool whole;
  mgrid_shared *pool;  /* set by pool.c: communicators that states may share */
  mgrid_state *states; /* set by state.c: states that are not freed yet, the newest first */
  /* of core: the longest timeout of a family so far, in seconds; the same on all ranks */
  double longest;
  mgrid_backend *carrier; /* of a backend over a carrier: the carrier; else NULL */
  /* creations so far (pool.c, nccl_move.c), of this backend and of those over it; begins as 0; the
  ** same on all ranks */
  uint64_t creations;
  /* the value of that count (over a carrier, of the carrier's count) after this backend's last
  ** creation */
  uint64_t epoch;
  uint64_t meetings; /* of core: rendezvous so far; the same on all ranks */
  /* of core: the name of the call in which this rank is, or was last: rendezvous.c */
  char doing[96];
  /* Groups of one rank, where the descriptor has `singles`. wants_single: return whether such a
  ** group gets a communicator, if its family has these options. single: make that communicator.
  ** Both are local, and NULL if the backend makes no such communicators. */
  bool (*wants_single)(const mgrid_backend *b, const mgrid_choice *options);
  mgrid_status (*single)(mgrid_backend *b, const mgrid_comm_spec *spec, void **native,
                         mgrid_error *err);
  mgrid_rank_spread spread;
  /* set by a backend over this one: how many seconds of its deadline have passed before the next
  ** call over all ranks; errors add them to the time of the call */
  double waited;
  bool left; /* of core: mgrid_state_leave was called, and other ranks may still have that state */
  bool hooks_fixed;  /* of core: a state was made, so the hooks cannot change */
  mgrid_hooks hooks; /* of core: mgrid_backend_set_hooks */
};

/* Call look(ud) again and again, until it returns something other than MGRID_NOT_YET or MGRID_BUSY;
** return that. After MGRID_NOT_YET the loop may sleep; after MGRID_BUSY it only yields the
** processor. Return MGRID_LATE when mgrid_now() has passed `until`. Return MGRID_GAVE_UP when the
** carrier has a notice that a rank gave up, and put the rank into *who. carrier NULL: do not look
** for notices; then `who` may be NULL. verdict.c */
typedef mgrid_outcome mgrid_look(void *ud);
mgrid_outcome mgrid_wait(mgrid_look *look, void *ud, double until, mgrid_backend *carrier,
                         int64_t *who);

/* Ranks that did not arrive at a call over all ranks. verdict.c */
typedef struct mgrid_missing {
  int64_t n;                         /* how many; 0 if they are not known */
  int64_t rank[MGRID_MISSING_SHOWN]; /* the first of them */
  uint8_t lost; /* 1: their processes have failed. Not a bool, because other ranks send it */
} mgrid_missing;
void mgrid_missing_add(mgrid_missing *m, int64_t rank);
enum { MGRID_MISSING_TEXT = MGRID_MISSING_SHOWN * 24 + 80 };
/* Write who is missing: "ranks 3, 5 are not there", "rank 3 is lost: ...", or "some rank is not
** there". */
const char *mgrid_missing_text(const mgrid_missing *m, char to[MGRID_MISSING_TEXT]);
/* Fail with MGRID_TIMED_OUT, "after 3 seconds not all ranks had come: ranks 3, 5 are not there", or
** with MGRID_LOST_RANK. The ranks and the seconds are in the error, too. */
mgrid_status mgrid_missing_fail(const mgrid_missing *m, double seconds, mgrid_error *err);

/* End a call over all ranks, of which this rank has the outcome `mine` and the error *failed. If
** ranks failed, every rank returns the error of the lowest of them; a rank that only gave up
** because another failed (MGRID_GAVE_UP) counts last. Collective. verdict.c */
mgrid_status mgrid_verdict(mgrid_backend *b, mgrid_outcome mine, const mgrid_error *failed,
                           mgrid_error *err);
/* The next three functions are the steps of mgrid_verdict, for a caller whose all-reduce has other
** words, too. mgrid_verdict_min makes the all-reduce. If the all-reduce fails, its error comes
** first in *err, and the error of this rank after it. */
mgrid_status mgrid_verdict_min(mgrid_backend *b, uint64_t *words, size_t n, mgrid_outcome mine,
                               const mgrid_error *failed, mgrid_error *err);
/* Return the word of this rank for that all-reduce. */
uint64_t mgrid_verdict_of(const mgrid_backend *b, mgrid_outcome mine);
/* Return the verdict. who: the minimum over all ranks of the words of mgrid_verdict_of. */
mgrid_status mgrid_verdict_tell(mgrid_backend *b, uint64_t who, mgrid_outcome mine,
                                const mgrid_error *failed, mgrid_error *err);

/* Broadcast the data of rank `root` to all ranks; other ranks may have sent the number `root`.
** MGRID_BACKEND: there is no such rank. Other ranks, carriers and stores may send anything, so this
** function and the next ones check what was received before it is used. */
mgrid_status mgrid_hear(mgrid_backend *b, uint64_t root, void *data, size_t bytes,
                        mgrid_error *err);
/* Fail with "another rank sent an impossible value: WHAT". */
mgrid_status mgrid_cannot_be(mgrid_error *err, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
/* Make an error of another rank safe: end its texts, replace control characters, drop impossible
** missing ranks, and turn an unknown status into MGRID_BACKEND. */
void mgrid_error_heard(mgrid_error *e);
/* Return the rank, which another rank sent, if a world of this size has it. Else fill *err and
** return -1. */
int64_t mgrid_rank_heard(uint64_t rank, int64_t world, mgrid_error *err);
/* Check a list of missing ranks that another rank sent. verdict.c */
mgrid_status mgrid_missing_heard(const mgrid_missing *m, int64_t world, mgrid_error *err);

/* Add the name of the call to an error about missing or lost ranks. verdict.c */
void mgrid_doing_add(const mgrid_backend *b, mgrid_error *err);

/* The entry points that a backend library exports, under the name in its descriptor. */
typedef struct mgrid_backend_entry {
  int layout; /* MGRID_LAYOUT */
  /* Open the backend; the options are complete. NULL: it needs a carrier. */
  mgrid_backend *(*open)(const mgrid_backend_options *options, mgrid_error *err);
  /* Open the backend over a carrier, and become another owner of the carrier. Collective. */
  mgrid_backend *(*over)(mgrid_backend *carrier, const mgrid_nccl_options *o, mgrid_error *err);
  /* Write into buf what is installed, or fail with an error that names what is missing. */
  mgrid_status (*probe)(char *buf, size_t len, mgrid_error *err);
} mgrid_backend_entry;
/* Begin the definition of a backend's entry points: MGRID_ENTRY(mpi) = { MGRID_LAYOUT, .open = ...
** }. It gives them the name that is `entry` in the descriptor (plan/backend_list.c). */
#define MGRID_ENTRY(backend) \
  extern MGRID_API const mgrid_backend_entry mgrid_##backend##_entry; \
  const mgrid_backend_entry mgrid_##backend##_entry

/* Check a timeout that the host gives: MGRID_OUT_OF_RANGE if it is below 0 or not a number. `what`
** names the call. */
static inline mgrid_status mgrid_timeout_check(double timeout, const char *what, mgrid_error *err) {
  return timeout >= 0 ? MGRID_OK
                      : mgrid_fail(err, MGRID_OUT_OF_RANGE,
                                   "%s: a timeout is 0 (the default) seconds or more, not %g", what,
                                   timeout);
}
static inline double mgrid_timeout_of(double timeout) {
  return timeout > 0 ? timeout : MGRID_TIMEOUT;
}

/* Flip the highest bit of each word. Before and after a minimum of signed words, this gives the
** minimum of unsigned words. The collectives of groups take signed words alone; and MPICH 4.0.2
** (Debian 12) compares unsigned long as if it were signed. */
static inline void mgrid_flip(uint64_t *words, size_t n) {
  for (size_t i = 0; i < n; i++) words[i] ^= UINT64_C(1) << 63;
}

#endif
