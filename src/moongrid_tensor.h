/* SPDX-License-Identifier: MIT
**
** moongrid_tensor.h - tensors, how a layout cuts them, and moves from one layout to another.
** moongrid.h includes this header, and its rules hold here.
**
** WORDS
**   tensor    an array with named axes, slowest first as C stores it, and a rule that cuts it over dims of a grid
**   part      what one rank holds of it: all elements at some runs of indices on each axis, stored one after the other
**             in C order
**   copies    ranks that hold the same part
**   move      the elements that each rank sends to others, so that the tensors of one plan become those of another
*/
#ifndef MOONGRID_H
#include "moongrid.h" /* includes this header after the headers that it needs */
#elif !defined MOONGRID_TENSOR_H
#define MOONGRID_TENSOR_H

#ifdef __cplusplus
extern "C" {
#endif

/* ----------------------------------------------------------------- tensors */

enum { MGRID_AXES_MAX = 8 }; /* most axes of a tensor */

/* How an axis of n elements is cut into pieces, one for each coordinate of a dim. With several
** dims, the second cuts the pieces of the first, and so on. */
typedef enum mgrid_cutting {
  MGRID_CUT_EVEN = 0, /* sizes differ by at most one, larger ones first */
  /* n / pieces elements each, rounded up; the last pieces may be smaller or empty */
  MGRID_CUT_CEIL = 1,
  MGRID_CUT_CYCLIC = 2, /* blocks of `block` elements, dealt to the pieces in turn */
  MGRID_CUT_BOUNDS = 3, /* piece i is bounds[i] to bounds[i + 1] - 1 */
  /* unit i of elements belongs to piece owners[i]: experts that are placed by their loads */
  MGRID_CUT_OWNERS = 4
} mgrid_cutting;

typedef struct mgrid_tensor_axis {
  /* sizeof(mgrid_tensor_axis); in an array, the size of the first element counts for all */
  size_t size;
  const char *name;        /* as that of a dim */
  int64_t length;          /* elements, 1 or more */
  size_t ndims;            /* 0: not cut */
  const char *const *dims; /* [ndims], outermost first */
  mgrid_cutting cutting;   /* ignored without dims, as are the next fields */
  /* for MGRID_CUT_CYCLIC: elements of a block, 1 or more. There are at most 2^24 blocks */
  int64_t block;
  int64_t unit; /* pieces are multiples of it, such as whole heads. It divides the length; 0 is 1 */
  /* arrays that lie side by side on the axis, each cut by itself (fused QKV); 0: one */
  size_t nparts;
  const int64_t *parts; /* [nparts], their lengths, which sum to `length` */
  size_t nbounds;       /* of MGRID_CUT_BOUNDS: pieces + 1 */
  /* [nbounds], from 0 to `length`, ascending; equal neighbours are an empty piece */
  const int64_t *bounds;
  size_t nowners;        /* of MGRID_CUT_OWNERS: length / unit */
  const int64_t *owners; /* [nowners], each in [0, pieces); a piece may have none */
  /* if there are fewer units than pieces, neighbouring pieces get the same unit, as heads of keys
  ** and values do in grouped-query attention. The number of pieces must be a multiple of the number
  ** of units, and the same multiple in each of `parts`. false: the last pieces are empty. Only for
  ** MGRID_CUT_EVEN and MGRID_CUT_CEIL
  */
  bool copies;
} mgrid_tensor_axis;
#define MGRID_TENSOR_AXIS_INIT \
  { \
    sizeof(mgrid_tensor_axis), NULL, 0, 0, NULL, MGRID_CUT_EVEN, 0, 0, 0, NULL, 0, NULL, 0, NULL, \
        false \
  }

typedef struct mgrid_tensor mgrid_tensor;

/* Make a tensor over a grid. Each rank of the grid holds the part of its coordinates, so ranks
** along dims that cut nothing hold copies. Other ranks of the world hold nothing. `type` is "bf16",
** "f32", ... (if it is unknown, the error lists all). naxes is 1 to 8; a dim cuts at most one axis.
** `on` (NULL: all ranks of the grid) is a family: only its members hold the tensor. The members of
** `on` must be all combinations of some coordinates of each dim; each dim then counts as having
** only these coordinates. Immutable and counted. O(axes x dims), with `on` O(its members). */
MGRID_API mgrid_tensor *mgrid_tensor_new(const mgrid_grid *over, const char *type, size_t naxes,
                                         const mgrid_tensor_axis *axes, const mgrid_family *on,
                                         mgrid_error *err);
/* Find new owners for an axis cut by MGRID_CUT_OWNERS, so that the fewest elements move. Unit i
** (for example an expert) was in piece was[i]. New loads put the units into sets: unit i is in set
** now[i], and any piece may get any one of the sets. Assign sets to pieces so that the sum of
** weight[i] over all units that stay, out[i] == was[i], is the largest possible. out[i] is the new
** piece of unit i, and *kept (may be NULL) gets the sum. Deterministic, also if several assignments
** are best.
**
** The n values of was are 0 or more, those of now 0 to pieces - 1; weight NULL: 1 each, else 0 or
** more. pieces is 1 to 1024; a unit whose was[i] is `pieces` or more must move. out may be was or
** now. O(n + k^2 pieces) for k sets that are not empty, about 2 s for 1024; memory O(n +
** pieces). */
MGRID_API mgrid_status mgrid_relabel(size_t n, const int64_t *was, const int64_t *now,
                                     const int64_t *weight, int64_t pieces, int64_t *out,
                                     int64_t *kept, mgrid_error *err);
/* Flatten tensors as ZeRO and FSDP do. The parts that a rank has of n tensors lie one after the
** other in an array of one dimension. `ndims` dims of the grid, outermost first, cut this array
** into slices of one size, a multiple of `pad` elements (1 or more). Padding is at the end of the
** last slices, and a slice may begin and end inside a tensor. out[i] is tensor i, flattened: a
** rank's part is the range of elements, in C order, that lies in the rank's slice.
**
** The tensors have one grid and one type, are not flat themselves, and are not cut by these dims. A
** dim along which parts of one tensor differ in size (or are absent) must cut all tensors, so that
** ranks with equal parts have equal ranges. On failure out is all NULL. O(n x dims), with bounds
** O(bounds). */
MGRID_API mgrid_status mgrid_tensor_flatten(size_t n, const mgrid_tensor *const *tensors,
                                            size_t ndims, const char *const *dims, int64_t pad,
                                            mgrid_tensor **out, mgrid_error *err);
MGRID_API mgrid_tensor *mgrid_tensor_ref(const mgrid_tensor *t); /* another owner; never fails */
MGRID_API void mgrid_tensor_free(mgrid_tensor *t);

MGRID_API size_t mgrid_tensor_naxes(const mgrid_tensor *t);
/* NULL: no such axis */
MGRID_API const char *mgrid_tensor_axis_name(const mgrid_tensor *t, size_t axis);
MGRID_API int64_t mgrid_tensor_length(const mgrid_tensor *t, size_t axis); /* -1: no such axis */
MGRID_API const char *mgrid_tensor_type(const mgrid_tensor *t);
MGRID_API int64_t mgrid_tensor_bytes(const mgrid_tensor *t);  /* of the whole tensor, once */
MGRID_API int64_t mgrid_tensor_copies(const mgrid_tensor *t); /* ranks that hold the same part */
/* ranks that hold it, maybe an empty part */
MGRID_API int64_t mgrid_tensor_holders(const mgrid_tensor *t);
/* Write the rule as canonical text, as snprintf: "bf16 layer 32 by pp, hidden 4096 over pp 2 x dp 4
** over ranks 0..7".
*/
MGRID_API size_t mgrid_tensor_describe(const mgrid_tensor *t, char *buf, size_t len);

/* Add a tensor to a topology: it is printed, part of the digest, and needs no communicator. The
** names of families, grids and tensors must all be different. That of a tensor may be as in
** checkpoints, "model.layers.0.mlp.up_proj.weight": letters, digits, _ . - and /, at most 255. */
MGRID_API mgrid_status mgrid_topology_add_tensor(mgrid_topology *topology, const char *name,
                                                 const mgrid_tensor *t, mgrid_error *err);
MGRID_API size_t mgrid_plan_ntensors(const mgrid_plan *p);
/* NULL: no such tensor */
MGRID_API const char *mgrid_plan_tensor_name(const mgrid_plan *p, size_t i);
/* or NULL */
MGRID_API const mgrid_tensor *mgrid_plan_tensor(const mgrid_plan *p, const char *name);

/* The part of a rank. mgrid_tensor_runs has its runs on each axis. */
typedef struct mgrid_tensor_part {
  size_t size;                   /* sizeof(mgrid_tensor_part) */
  bool held;                     /* false: the rank holds nothing of this tensor; all else is 0 */
  size_t naxes;                  /* of the tensor */
  int64_t shape[MGRID_AXES_MAX]; /* elements of the part on each axis; one may be 0 */
  int64_t elements, bytes;       /* of the part */
  int64_t copy; /* which of the copies this rank has, 0 to mgrid_tensor_copies - 1 */
  /* of a flat tensor: elements of the rank's slice, padding included. `shape` is then the shape of
  ** the part before it is cut into slices */
  int64_t slice;
  /* of a flat tensor: the rank has `elements` elements of that part, in C order from `first` on.
  ** They begin at `offset` in the slice. 0 where it has none */
  int64_t first, offset;
} mgrid_tensor_part;
#define MGRID_TENSOR_PART_INIT \
  { sizeof(mgrid_tensor_part), false, 0, { 0 }, 0, 0, 0, 0, 0, 0 }
/* Describe what a rank holds of a plan's tensor. MGRID_UNKNOWN_NAME with the nearest name,
** MGRID_OUT_OF_RANGE for the rank. Local, O(dims), of flat tensors with uneven parts O(tensors x
** dims); no allocation. */
MGRID_API mgrid_status mgrid_tensor_local(const mgrid_plan *p, const char *name, int64_t rank,
                                          mgrid_tensor_part *out, mgrid_error *err);
typedef struct mgrid_run { /* never changes */
  int64_t start, length;   /* indices of the tensor's axis */
} mgrid_run;
/* Write at most `cap` of the runs of a rank's part on an axis, ascending; for a flat tensor those
** of the part before it is cut into slices. Return how many runs there are, 0 if the rank holds no
** part, or -1 after filling *err. Local, O(dims + runs), no allocation. */
MGRID_API int64_t mgrid_tensor_runs(const mgrid_plan *p, const char *name, int64_t rank,
                                    size_t axis, size_t cap, mgrid_run *runs, mgrid_error *err);

/* ------------------------------------------------------------------- moves */

/* What one rank sends and receives so that the tensors of plan `from` become those of plan `to`. A
** rank receives each element that it needs and does not have exactly once, so the job sends the
** fewest bytes possible. Ranks that hold the same part share the sending: for each tensor, their
** numbers of messages differ by at most one. If machines are given, this holds for the messages to
** ranks of their own machine, and for those to other ranks. */
typedef struct mgrid_move mgrid_move;

typedef struct mgrid_move_options {
  size_t size; /* sizeof(mgrid_move_options) */
  /* put the messages into rounds. In a round a rank sends at most one message, and receives at most
  ** one. There are as few rounds as the busiest rank has messages. This looks at the messages of
  ** all ranks, so time and memory grow with the job. false: all messages are in flight at once */
  bool rounds;
  size_t nranks; /* 0: rank i of `to` is rank i of `from`; else the number of ranks of `to` */
  /* [nranks]: the number in the move of each rank of `to`. Numbers below the world of `from` are
  ** ranks of `from`; higher ones are new ranks */
  const int64_t *ranks;
  /* a tensor may be f32 in one plan and bf16 in the other. Its elements are sent as bf16, rounded
  ** to the nearest, and counted as bf16. false: a changed type is refused */
  bool convert;
  /* how many consecutive ranks each machine has, at most 4096. A rank then receives from its own
  ** machine what a rank there holds, so the fewest bytes go between machines that can, if ranks do
  ** not pass on what they receive. 0: all ranks are equally near */
  int64_t machine;
  size_t nold; /* 0: rank i of `from` is rank i of the move; else the number of ranks of `from` */
  /* [nold]: the number in the move of each rank of `from`; -1: it is lost, and sends nothing. The
  ** ranks of `to` are then those of the move, unless `ranks` says otherwise. Elements that no
  ** remaining rank holds are missing: they are in no message, and a run leaves them in the buffer
  ** as they are */
  const int64_t *old;
} mgrid_move_options;
#define MGRID_MOVE_OPTIONS_INIT \
  { sizeof(mgrid_move_options), false, 0, NULL, false, 0, 0, NULL }

/* Plan the move of the named tensors, or of all (ntensors 0), seen from one rank of the move. The
** ranks of a move are those of `from`, and new ones that only `to` has; the plans may have
** different worlds. The move has the tensors in the order of the names, or without names in that of
** `from`. MGRID_REFUSED if a tensor is in only one of the plans, or differs in its axes or type, or
** if there are no tensors. options may be NULL. Local, no messages.
**
** O(dims) for each message of this rank, in any worlds, even if grids do not fit into each other,
** as 6 x 4 and 4 x 6 ranks. Each message costs O(copies of the tensor) more in four cases: ranks
** get other numbers; pieces are dealt in turn or by owners; `on` or a machine leaves out some
** coordinates of a dim; the sizes of large dims have no common divisors. O(ranks that need the
** slice) for flat tensors whose slices have copies. With machines each message costs O(ranks of a
** machine) more. */
MGRID_API mgrid_move *mgrid_move_new(const mgrid_plan *from, const mgrid_plan *to, int64_t rank,
                                     size_t ntensors, const char *const *tensors,
                                     const mgrid_move_options *options, mgrid_error *err);
/* Plan the same between two states of this process, as mgrid_reload leaves them: from the tensors
** of the old state to those of the new one, seen from the rank of the old one. If `machine` is 0,
** or options is NULL, the machines of the job count, provided that all have equally many
** consecutive ranks. A NULL state gives NULL; pass the error that explains it to mgrid_move_run. */
MGRID_API mgrid_move *mgrid_state_move(const mgrid_state *from, const mgrid_state *to,
                                       size_t ntensors, const char *const *tensors,
                                       const mgrid_move_options *options, mgrid_error *err);
MGRID_API mgrid_move *mgrid_move_ref(mgrid_move *m); /* another owner; never fails */
MGRID_API void mgrid_move_free(mgrid_move *m);
MGRID_API size_t mgrid_move_ntensors(const mgrid_move *m);
/* its name; NULL: no such tensor */
MGRID_API const char *mgrid_move_tensor(const mgrid_move *m, size_t i);

/* A rank with which this rank exchanges messages: at most one in each direction, with the elements
** of all tensors. */
typedef struct mgrid_move_peer {
  size_t size;                       /* sizeof(mgrid_move_peer) */
  int64_t rank;                      /* of the move; never this rank */
  int64_t send, receive;             /* bytes, 0: no message */
  int64_t send_round, receive_round; /* 0 or more; -1: no message, or no rounds */
} mgrid_move_peer;
#define MGRID_MOVE_PEER_INIT \
  { sizeof(mgrid_move_peer), -1, 0, 0, -1, -1 }
/* mgrid_move_npeers returns how many ranks this rank sends to or receives from. mgrid_move_peers
** describes the ith of them, in the order of ranks; MGRID_OUT_OF_RANGE: there is none. */
MGRID_API size_t mgrid_move_npeers(const mgrid_move *m);
MGRID_API mgrid_status mgrid_move_peers(const mgrid_move *m, size_t i, mgrid_move_peer *out,
                                        mgrid_error *err);

typedef struct mgrid_move_sums {
  size_t size;             /* sizeof(mgrid_move_sums) */
  int64_t stay;            /* bytes that this rank needs and has */
  int64_t send, receive;   /* bytes */
  int64_t sends, receives; /* messages */
  int64_t rounds;          /* of the job; 0: not asked for */
  int64_t missing;         /* bytes that this rank needs and no rank is left to send */
} mgrid_move_sums;
#define MGRID_MOVE_SUMS_INIT \
  { sizeof(mgrid_move_sums), 0, 0, 0, 0, 0, 0, 0 }
MGRID_API mgrid_status mgrid_move_bytes(const mgrid_move *m, mgrid_move_sums *out,
                                        mgrid_error *err);

typedef enum mgrid_way { MGRID_STAYS = 0, MGRID_SENDS = 1, MGRID_RECEIVES = 2 } mgrid_way;

/* A box of elements of one tensor that goes from part to part: lengths[0] x ... x lengths[naxes -
** 1], the last one fastest. Element i, j, ... lies at offset + i * strides[0] + j * strides[1] +
** ... in the part, counted in elements.
*/
typedef struct mgrid_move_piece {
  size_t size;   /* sizeof(mgrid_move_piece) */
  mgrid_way way; /* seen from this rank */
  int64_t peer;  /* the other rank; this one for MGRID_STAYS */
  size_t tensor; /* its number in the move */
  size_t naxes;
  int64_t bytes; /* of the piece */
  int64_t lengths[MGRID_AXES_MAX];
  int64_t from_offset, from_strides[MGRID_AXES_MAX]; /* in the sender's part in `from` */
  int64_t to_offset, to_strides[MGRID_AXES_MAX];     /* in the receiver's part in `to` */
} mgrid_move_piece;
/* Returns 0 to go on, any other number to stop. */
typedef int (*mgrid_piece_fn)(void *ud, const mgrid_move_piece *piece);
/* Call fn for each piece that this rank sends to a peer or receives from it, or that stays
** (MGRID_STAYS; peer is ignored), tensor by tensor. Both sides have the same order: packed one
** after the other, the pieces are the message. MGRID_OUTPUT if fn stopped. O(dims + pieces). */
MGRID_API mgrid_status mgrid_move_pieces(const mgrid_move *m, mgrid_way way, int64_t peer,
                                         mgrid_piece_fn fn, void *ud, mgrid_error *err);

/* The pieces as ranges of bytes, in one call, for transports that copy contiguous bytes of
** registered memory (NIXL, libfabric, verbs, cuFile). A one-sided read or write needs a descriptor,
** and the addresses of the tensor's parts on both ranks. */
typedef struct mgrid_move_descriptor { /* never changes */
  int64_t peer;                        /* the other rank; this one for MGRID_STAYS */
  size_t tensor;                       /* its number in the move */
  /* bytes, in the sender's part in `from` and in the receiver's part in `to` */
  int64_t from_offset, to_offset;
  int64_t bytes;
} mgrid_move_descriptor;
/* Write descriptors of the bytes that this rank sends (or receives, or keeps), sorted by peer, then
** tensor, at most `cap`; return how many there are, or -1 after filling *err. Bytes that are
** neighbours on both sides are in one descriptor. Sender and receiver have the same descriptors of
** a message, in the same order. MGRID_UNSUPPORTED if a tensor changes its type. Local. O(dims +
** rows of the pieces). */
MGRID_API int64_t mgrid_move_descriptors(const mgrid_move *m, mgrid_way way, size_t cap,
                                         mgrid_move_descriptor *out, mgrid_error *err);

/* ------------------------------------------------------------------ run it */

typedef struct mgrid_buffer { /* never changes */
  void *data;                 /* NULL only if bytes is 0 */
  int64_t bytes;
} mgrid_buffer;

typedef struct mgrid_move_run_options {
  size_t size;    /* sizeof(mgrid_move_run_options) */
  int64_t window; /* most bytes of memory for packing on a rank; 0: 64 MiB. Equal on all ranks */
  /* a rank gives up after this many seconds without progress. It is also the limit of a call over
  ** all ranks. 0: as the backend. Equal on all ranks */
  double timeout;
} mgrid_move_run_options;
#define MGRID_MOVE_RUN_OPTIONS_INIT \
  { sizeof(mgrid_move_run_options), 0, 0 }

/* Move the elements: from[i] is this rank's part of tensor i in the old layout, to[i] that in the
** new one; the rest of a larger buffer is not touched. Buffers may not overlap, and a move runs
** once at a time. options may be NULL.
**
** Collective over the backend, whose ranks are those of the move: if ranks bring different moves,
** every rank gets the same error and nothing is touched. A rank whose mgrid_move_new failed passes
** NULL and its error, which all get. After any other error the contents of `to` are undefined, and
** after a failure in transfer the backend cannot be used any more. At most `window` bytes are
** packed at a time; pieces that are contiguous in both parts are not packed.
**
** mpi: buffers are in memory of the CPU, or of a GPU if MPI is CUDA-aware. nccl: buffers are on
** this rank's GPU, and nothing writes `from` any more. The window is there, too, and stays with the
** backend; the first move makes a communicator of all ranks. dry, pmix and the host's carriers move
** nothing (MGRID_UNSUPPORTED), except in a world of one rank. Types of elements change in memory of
** the CPU only. */
MGRID_API mgrid_status mgrid_move_run(const mgrid_move *m, mgrid_backend *b,
                                      const mgrid_buffer *from, const mgrid_buffer *to,
                                      const mgrid_move_run_options *options, mgrid_error *err);
/* Prove a move: every rank fills its parts with numbers that identify tensor and element, moves
** them by mgrid_move_run, and checks every element of its new parts. MGRID_UNPROVED on all ranks,
** with the first element that is wrong; MGRID_REFUSED if elements are missing. Collective. It
** allocates both parts of all tensors, and the window. */
MGRID_API mgrid_status mgrid_move_prove(const mgrid_move *m, mgrid_backend *b,
                                        const mgrid_move_run_options *options, mgrid_error *err);

#ifdef __cplusplus
}
#endif
#endif
