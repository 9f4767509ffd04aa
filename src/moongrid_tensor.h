/* SPDX-License-Identifier: MIT
**
** moongrid_tensor.h - tensors, how a layout cuts them, and moves from one layout to another. moongrid.h includes
** this header, and its rules hold here.
**
** WORDS
**   tensor    an array with named axes, slowest first as C stores it, and a rule that cuts it over dims of a grid
**   part      what one rank holds of it: on each axis some runs of indices, and of these every combination, stored
**             in C order one behind the other
**   copies    ranks that hold the same part
**   move      who sends which elements to whom, so that the tensors of one plan become those of another
*/
#ifndef MOONGRID_H
#include "moongrid.h" /* which includes this header in its place */
#elif !defined MOONGRID_TENSOR_H
#define MOONGRID_TENSOR_H

#ifdef __cplusplus
extern "C" {
#endif

/* ----------------------------------------------------------------- tensors */

enum { MGRID_AXES_MAX = 8 }; /* axes of a tensor, at most */

/* How an axis of n elements becomes pieces, one for each coordinate of a dim. Over several dims the pieces of the
** first are cut by the second, and so on. */
typedef enum mgrid_cutting {
  MGRID_CUT_EVEN = 0,   /* sizes differ by one at most, larger ones first */
  MGRID_CUT_CEIL = 1,   /* all but the last have n / pieces, rounded up; trailing ones may be empty */
  MGRID_CUT_CYCLIC = 2, /* blocks of `block` elements, dealt to the pieces in turn */
  MGRID_CUT_BOUNDS = 3, /* piece i is bounds[i] to bounds[i + 1] - 1 */
  MGRID_CUT_OWNERS = 4  /* unit i of elements is of piece owners[i]: experts that were placed by their loads */
} mgrid_cutting;

typedef struct mgrid_tensor_axis {
  size_t             size;    /* sizeof(mgrid_tensor_axis); in an array that of the first is that of all */
  const char        *name;    /* as that of a dim */
  int64_t            length;  /* elements, 1 or more */
  size_t             ndims;   /* 0: not cut */
  const char *const *dims;    /* [ndims], outermost first */
  mgrid_cutting      cutting; /* without dims not looked at, and so the following */
  int64_t            block;   /* of MGRID_CUT_CYCLIC, 1 or more; they make at most 2^24 blocks */
  int64_t            unit;    /* pieces are multiples of it, which divides the length (whole heads); 0 is 1 */
  size_t             nparts;  /* the axis is several arrays side by side, each cut by itself (fused QKV); 0: one */
  const int64_t     *parts;   /* [nparts], their lengths, which sum to `length` */
  size_t             nbounds; /* of MGRID_CUT_BOUNDS: pieces + 1 */
  const int64_t     *bounds;  /* [nbounds], from 0 to `length`, ascending; equal neighbours are an empty piece */
  size_t             nowners; /* of MGRID_CUT_OWNERS: length / unit */
  const int64_t     *owners;  /* [nowners], each in [0, pieces); a piece may have none */
} mgrid_tensor_axis;
#define MGRID_TENSOR_AXIS_INIT \
  { sizeof(mgrid_tensor_axis), "", 0, 0, NULL, MGRID_CUT_EVEN, 0, 0, 0, NULL, 0, NULL, 0, NULL }

typedef struct mgrid_tensor mgrid_tensor;

/* A tensor over a grid: each rank of the grid holds the part that its coordinates say, so that there are copies along
** dims that cut nothing; other ranks of the world hold nothing. `type` is "bf16", "f32", ... (a refusal lists all);
** naxes in [1, 8]; a dim cuts one axis at most. `on` (NULL: all ranks of the grid) says which of them hold it at all:
** the members of a family, which must be every combination of some coordinates of each dim. A dim that has only
** some of its coordinates there counts as that many. Immutable and counted. O(axes x dims), with `on` O(its members). */
MGRID_API mgrid_tensor *mgrid_tensor_new(const mgrid_grid *over, const char *type, size_t naxes,
                                         const mgrid_tensor_axis *axes, const mgrid_family *on, mgrid_error *err);
/* New owners for an axis cut by MGRID_CUT_OWNERS, of which the fewest elements have to move. Element i (or unit, as an
** expert) was with piece was[i], and new shares were made, by new loads for example: it is in share now[i], and which
** piece has which share is free. out[i] is the piece that then has it: shares get pieces, each one, so that the sum of
** weight[i] over the i with out[i] == was[i] is the largest that there is, and this sum goes to *kept (may be NULL). Of
** several best ones it is always the same. n owners each, all 0 or more, those of now in [0, pieces); weight NULL: 1
** each, else 0 or more; pieces in [1, 1024]; what was with pieces beyond has to move. out may be was or now. O(n +
** k^2 pieces) at most for k shares that are not empty, some 2 s for 1024; memory O(n + pieces). */
MGRID_API mgrid_status mgrid_relabel(size_t n, const int64_t *was, const int64_t *now, const int64_t *weight,
                                     int64_t pieces, int64_t *out, int64_t *kept, mgrid_error *err);
/* What ZeRO and FSDP do: the parts that each rank would have of n tensors lie one after the other in an array of one
** dimension, which `ndims` dims of the grid cut, outermost first. Slices have one size, a multiple of `pad` elements, so
** that padding is at the end of the last ones, and a slice may begin and end inside of a tensor. out[i] is the ith tensor
** so held: its part is what the slice has of it, a range in C order. The tensors are of one grid and one type, not flat
** themselves, and not cut by these dims; a dim along which parts differ in size (or are absent) cuts all of them, so
** that ranks with equal parts have equal ranges. On failure they are NULL. O(n x dims), with bounds O(bounds). */
MGRID_API mgrid_status  mgrid_tensor_flatten(size_t n, const mgrid_tensor *const *tensors, size_t ndims,
                                             const char *const *dims, int64_t pad, mgrid_tensor **out, mgrid_error *err);
MGRID_API mgrid_tensor *mgrid_tensor_ref(const mgrid_tensor *t); /* another owner; never fails */
MGRID_API void          mgrid_tensor_free(mgrid_tensor *t);

MGRID_API size_t      mgrid_tensor_naxes(const mgrid_tensor *t);
MGRID_API const char *mgrid_tensor_axis_name(const mgrid_tensor *t, size_t axis); /* NULL: no such axis */
MGRID_API int64_t     mgrid_tensor_length(const mgrid_tensor *t, size_t axis);    /* -1: no such axis */
MGRID_API const char *mgrid_tensor_type(const mgrid_tensor *t);
MGRID_API int64_t     mgrid_tensor_bytes(const mgrid_tensor *t);   /* of the whole, held once */
MGRID_API int64_t     mgrid_tensor_copies(const mgrid_tensor *t);  /* ranks that hold the same part */
MGRID_API int64_t     mgrid_tensor_holders(const mgrid_tensor *t); /* ranks that hold it, some maybe an empty part */
/* Canonical text of the rule, as snprintf: "bf16 layer 32 by pp, hidden 4096 over pp 2 x dp 4 over ranks 0..7". */
MGRID_API size_t mgrid_tensor_describe(const mgrid_tensor *t, char *buf, size_t len);

/* Name a tensor in a topology: printed, and part of the digest. Names of families, grids and tensors are one name
** space. It needs no communicator. */
MGRID_API mgrid_status mgrid_topology_add_tensor(mgrid_topology *topology, const char *name, const mgrid_tensor *t,
                                                 mgrid_error *err);
MGRID_API size_t       mgrid_plan_ntensors(const mgrid_plan *p);
MGRID_API const char  *mgrid_plan_tensor_name(const mgrid_plan *p, size_t i);           /* NULL: no such tensor */
MGRID_API const mgrid_tensor *mgrid_plan_tensor(const mgrid_plan *p, const char *name); /* or NULL */

/* The part of a rank. Its runs on an axis are those of mgrid_tensor_runs. */
typedef struct mgrid_tensor_part {
  size_t  size;                  /* sizeof(mgrid_tensor_part) */
  bool    held;                  /* false: the rank holds nothing of this tensor; all else is 0 */
  size_t  naxes;                 /* of the tensor */
  int64_t shape[MGRID_AXES_MAX]; /* elements of the part on each axis; one may be 0 */
  int64_t elements, bytes;       /* of the part */
  int64_t copy;                  /* which of the copies this rank has, 0 to mgrid_tensor_copies - 1 */
  int64_t slice;                 /* of a flat tensor: elements of the rank's slice, padding included. `shape` is that of
                                    the part before it is cut into slices, and the rank has only `elements` of it: */
  int64_t first, offset;         /* from this one on, in C order; where they begin in the slice. 0 where it has none */
} mgrid_tensor_part;
#define MGRID_TENSOR_PART_INIT \
  { sizeof(mgrid_tensor_part), false, 0, { 0 }, 0, 0, 0, 0, 0, 0 }
/* What a rank holds of a plan's tensor. MGRID_UNKNOWN_NAME with the nearest name, MGRID_OUT_OF_RANGE for the rank.
** Local, O(dims), of flat tensors with uneven parts O(tensors x dims); no allocation. */
MGRID_API mgrid_status mgrid_tensor_local(const mgrid_plan *p, const char *name, int64_t rank, mgrid_tensor_part *out,
                                          mgrid_error *err);
typedef struct mgrid_run { /* never changes */
  int64_t start, length;   /* indices of the tensor's axis */
} mgrid_run;
/* The runs of a rank's part on an axis (of a flat tensor: before it is cut into slices), ascending, at most `cap` of
** them; returns how many there are, 0 where the rank holds none, or -1 after filling *err. Local, O(dims + runs), no
** allocation. */
MGRID_API int64_t mgrid_tensor_runs(const mgrid_plan *p, const char *name, int64_t rank, size_t axis, size_t cap,
                                    mgrid_run *runs, mgrid_error *err);

/* ------------------------------------------------------------------- moves */

/* What one rank sends and receives so that the tensors of plan `from` become those of plan `to`. Each element that a
** rank needs and does not have is sent to it once, so the bytes of the job are the fewest that there can be. Holders of
** the same part share the sending: two of them differ by one message of a tensor at most, where machines are given by one
** to ranks of their own machine and by one to others. */
typedef struct mgrid_move mgrid_move;

typedef struct mgrid_move_options {
  size_t         size;   /* sizeof(mgrid_move_options) */
  bool           rounds; /* put the messages into rounds, in which a rank sends one at most and receives one at most, as
                            few as the busiest rank has messages. Takes the messages of all ranks: time and memory
                            grow with the job. Without: all are in flight at once */
  size_t         nranks; /* 0: rank i of `to` is rank i of `from`; else the ranks of `to` */
  const int64_t *ranks;  /* [nranks], which rank of the move each is: those of `from`, and beyond them new ones */
  bool    convert; /* a tensor may be f32 in one plan and bf16 in the other: its elements go as bf16, in which bytes
                             are counted, rounded to the nearest. Without: other types are refused */
  int64_t machine; /* ranks of a machine, which has them in order: a rank gets from its own machine what is there, and
                      the bytes between machines are the fewest that there can be; at most 4096. 0: all ranks are equally near */
} mgrid_move_options;
#define MGRID_MOVE_OPTIONS_INIT \
  { sizeof(mgrid_move_options), false, 0, NULL, false, 0 }

/* The move of some tensors, by name, or with ntensors 0 of all, seen from one rank of the move: those of `from`, and
** further ones that only `to` has. The plans may have different worlds. Tensors keep their order as they are named, or
** that of `from`. Refused where a tensor is in one plan alone, or has other axes or another type in the other. options
** may be NULL. Local, no messages; O(dims) for each message of this rank, whatever the worlds, also where grids do not
** fit into each other, as 6 x 4 and 4 x 6 ranks. O(copies of the tensor) more for each message where ranks get other
** numbers, for pieces that are dealt in turn or by owners, where `on` or a machine leaves out some coordinates of a dim,
** and where the sizes of large dims have no common divisors; O(ranks that need the slice) for flat tensors whose slices
** have copies. With machines O(ranks of a machine) more for each message. */
MGRID_API mgrid_move *mgrid_move_new(const mgrid_plan *from, const mgrid_plan *to, int64_t rank, size_t ntensors,
                                     const char *const *tensors, const mgrid_move_options *options, mgrid_error *err);
/* The same between two states of this process, as mgrid_reload leaves them: from the tensors of the old one to those
** of the new one, seen from the rank of the old. With machine 0 in the options (NULL, too) parts come from the same
** machine where it has them, if each machine of the job has as many ranks, one after the other. A NULL state gives
** NULL, so that the error that made it so can be passed on to mgrid_move_run with it. */
MGRID_API mgrid_move *mgrid_state_move(const mgrid_state *from, const mgrid_state *to, size_t ntensors,
                                       const char *const *tensors, const mgrid_move_options *options, mgrid_error *err);
MGRID_API void        mgrid_move_free(mgrid_move *m);
MGRID_API size_t      mgrid_move_ntensors(const mgrid_move *m);
MGRID_API const char *mgrid_move_tensor(const mgrid_move *m, size_t i); /* its name; NULL: no such tensor */

/* All that goes between two ranks is one message in each direction, whatever the tensors. */
typedef struct mgrid_move_peer {
  size_t  size;                      /* sizeof(mgrid_move_peer) */
  int64_t rank;                      /* of the move; never this rank */
  int64_t send, receive;             /* bytes, 0: no message */
  int64_t send_round, receive_round; /* 0 or more; -1: no message, or no rounds */
} mgrid_move_peer;
#define MGRID_MOVE_PEER_INIT \
  { sizeof(mgrid_move_peer), -1, 0, 0, -1, -1 }
/* How many ranks this one sends to or receives from, and the ith, by rank. */
MGRID_API size_t       mgrid_move_npeers(const mgrid_move *m);
MGRID_API mgrid_status mgrid_move_peers(const mgrid_move *m, size_t i, mgrid_move_peer *out, mgrid_error *err);

typedef struct mgrid_move_sums {
  size_t  size;            /* sizeof(mgrid_move_sums) */
  int64_t stay;            /* bytes that this rank needs and has */
  int64_t send, receive;   /* bytes */
  int64_t sends, receives; /* messages */
  int64_t rounds;          /* of the job; 0: they were not asked for */
} mgrid_move_sums;
#define MGRID_MOVE_SUMS_INIT \
  { sizeof(mgrid_move_sums), 0, 0, 0, 0, 0, 0 }
MGRID_API mgrid_status mgrid_move_bytes(const mgrid_move *m, mgrid_move_sums *out, mgrid_error *err);

typedef enum mgrid_way { MGRID_STAYS = 0, MGRID_SENDS = 1, MGRID_RECEIVES = 2 } mgrid_way;

/* A box of elements of one tensor that goes from a part to a part: lengths[0] x ... x lengths[naxes - 1], the last one
** fastest. Element i, j, ... is at offset + i * strides[0] + j * strides[1] + ... of the part, counted in elements. */
typedef struct mgrid_move_piece {
  size_t    size;   /* sizeof(mgrid_move_piece) */
  mgrid_way way;    /* seen from this rank */
  int64_t   peer;   /* the other rank; this one where it stays */
  size_t    tensor; /* its number in the move */
  size_t    naxes;
  int64_t   bytes; /* of the piece */
  int64_t   lengths[MGRID_AXES_MAX];
  int64_t   from_offset, from_strides[MGRID_AXES_MAX]; /* in the part that its sender has of `from` */
  int64_t   to_offset, to_strides[MGRID_AXES_MAX];     /* in the part that its receiver has of `to` */
} mgrid_move_piece;
/* Returns 0, or anything else to stop. */
typedef int (*mgrid_piece_fn)(void *ud, const mgrid_move_piece *piece);
/* Call fn for each piece that goes to a peer, comes from it, or for MGRID_STAYS (peer is not looked at) stays. By
** tensor, and in an order that is the same on both sides: packed one behind the other they are the message.
** MGRID_OUTPUT where fn stopped. O(dims + pieces). */
MGRID_API mgrid_status mgrid_move_pieces(const mgrid_move *m, mgrid_way way, int64_t peer, mgrid_piece_fn fn, void *ud,
                                         mgrid_error *err);

/* ------------------------------------------------------------------ run it */

typedef struct mgrid_buffer { /* never changes */
  void   *data;               /* NULL only where there are no bytes */
  int64_t bytes;
} mgrid_buffer;

typedef struct mgrid_move_run_options {
  size_t  size;     /* sizeof(mgrid_move_run_options) */
  int64_t window;   /* bytes of memory for packing on a rank, at most; default 64 MiB. Equal on all ranks */
  double  timeout;  /* without any progress, after which a rank gives up, and of a call over all ranks; 0: that of the
                      backend. Equal on all ranks */
  bool    messages; /* ranks of one host do not read each other's memory: all goes by messages. Equal on all ranks */
} mgrid_move_run_options;
#define MGRID_MOVE_RUN_OPTIONS_INIT \
  { sizeof(mgrid_move_run_options), (int64_t)64 << 20, 0, false }

/* Carry the elements, a move once at a time: from[i] is this rank's part of tensor i of the move in the layout before
** it, to[i] that after it; the rest of larger buffers is not touched. They may not overlap. Collective over the
** backend, whose ranks are those of the move: all bring the same move, else every rank gets the same error and
** nothing is touched. A rank whose mgrid_move_new failed passes NULL and its error, which all get. After any other
** error what `to` holds is undefined, and a failure on the way leaves the backend of no further use. Memory: what is
** packed, `window` at most; pieces that lie side by side in both parts are not. mpi: ranks of one host and user read
** each other's memory (process_vm_readv) where the kernel lets all of them, which the first move finds out
** (MGRID_LOG_DEBUG tells), and what they packed for that stays for the next move; memory of the CPU, or of a GPU
** where MPI is CUDA-aware. nccl: of this rank's GPU, also the window, which the backend keeps; what writes `from`
** there has ended; the first move makes a communicator of all ranks. dry, pmix and the host's carriers move nothing
** (MGRID_UNSUPPORTED), but for a world of one rank; types of elements change in memory of the CPU alone. options may
** be NULL. */
MGRID_API mgrid_status mgrid_move_run(const mgrid_move *m, mgrid_backend *b, const mgrid_buffer *from,
                                      const mgrid_buffer *to, const mgrid_move_run_options *options, mgrid_error *err);
/* Prove a move: every rank fills what it has of each tensor with numbers that say tensor and index of the element,
** carries them by mgrid_move_run, and checks every element that it gets. MGRID_UNPROVED on all ranks with the first
** element that is wrong. Collective. Memory: both parts of all tensors, and the window. */
MGRID_API mgrid_status mgrid_move_prove(const mgrid_move *m, mgrid_backend *b, const mgrid_move_run_options *options,
                                        mgrid_error *err);

#ifdef __cplusplus
}
#endif
#endif
