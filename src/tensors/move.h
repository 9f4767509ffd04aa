/* SPDX-License-Identifier: MIT
**
** move.h - the move of one tensor: which rank sends which part of it to which.
*/

/* THE RULE. The old layout, `from`, cuts the tensor into shards: a shard is a tuple with one piece
** of each axis. Each element is in one shard, and `copies` ranks hold each shard. A rank may need
** elements of a shard that it does not hold. It then receives them from one holder. So each element
** arrives once, and only where it is missing: these are the fewest bytes.
**
** WHICH HOLDER SENDS. Number the ranks that need a shard by their pieces in the new layout, `to`,
** the first axis slowest, and then by their copy. Leave out the holders. Copy (i + turn) mod copies
** sends to number i. So the numbers of messages of two copies differ by at most one. `turn` is the
** index of the tensor; otherwise tensors with few messages would all load the same copy. Machines
** may be given, each of `machine` consecutive ranks. A rank then receives from its own machine, if
** a holder is there: number the ranks of that machine that need the shard, by rank; holder (i +
** turn) mod holders of that machine sends to number i. Only the other messages leave a machine.
** Their receivers are numbered as above, without those that are served on their own machine.
**
** THE COST. Each side computes this by itself. All steps but one are divisions. That one step
** counts the holders with a smaller number, by ranges of coordinates (ranges.c). It takes about as
** many steps as there are dims. More steps are needed if the dims of the two grids do not nest
** (`from` on 6 x 4 ranks, `to` on 4 x 6). If no such ranges describe the holders, the copies are
** listed instead. The reasons can be: the move renumbers ranks; ranks hold nothing because of `on`;
** the pieces needed on an axis are not consecutive; a machine ends inside of a coordinate; there
** would be more steps than copies.
**
** FLATS. If a side is flat, a shard or a part is a slice of a tuple's array (tensor.h). The ranks
** that share elements are then not a product over axes. So go through the slices of each tuple, in
** the same order (messages.c). A shard with one holder needs no numbers.
**
** LOST RANKS. Ranks of `from` may be lost: they have no number in the move, and send nothing.
** `copies` and `holders` are then those that are left, found by looking at all copies of a shard.
** If none is left, no rank sends, and the bytes are counted as missing.
*/

#ifndef MGRID_MOVE_H
#define MGRID_MOVE_H

#include "tensors/tensor.h"

/* Maps the ranks of one side to the ranks of the move. */
typedef struct mgrid_renaming {
  /* how many ranks the side has; 0: ranks have the same numbers on the side and in the move */
  int64_t n;
  int32_t *ranks; /* [n]: the number in the move of each; for `from` also -1: it is lost */
  int64_t nback;  /* the largest of these, plus 1 */
  int32_t *back;  /* [nback]: the number on the side of each rank of the move, or -1 */
} mgrid_renaming;

/* The ranks whose coordinate in a dim is in a range: (rank - origin) / stride % size is low .. high
** - 1. */
typedef struct mgrid_range {
  int64_t origin, stride, size, low, high;
  /* the dim of `from`, and how many of its coordinates are one step of the range; for a dim of
  ** `to`: -1 - dim */
  int32_t dim, div;
} mgrid_range;

enum { MGRID_RANGES_MAX = 16 }; /* if grids have more dims, holders are listed */

/* One tensor of a move. */
typedef struct mgrid_pair {
  const mgrid_tensor *from, *to; /* they have the same axes and type; not owned */
  /* names: of the ranks of `to`; olds: of the ranks of `from` */
  const mgrid_renaming *names, *olds;
  int64_t turn;
  int64_t machine;    /* ranks of a machine; 0: machines do not matter */
  bool flat;          /* at least one side is flat */
  bool apart;         /* no rank is in both grids; with machines: no machine is */
  bool ranged;        /* holders are counted by ranges; the next fields are for that */
  int64_t first, end; /* the ranks of `to` that are in `from`, or on a machine of it */
  size_t nranges;     /* one range for each dim that cuts `from`, and for each dim of `to` */
  mgrid_range range[MGRID_RANGES_MAX]; /* the longest period first */
  uint8_t range_of[MGRID_DIMS_MAX];    /* the index of the range of each dim of `to` */
} mgrid_pair;

/* Prepare a pair. Refuse tensors whose axes or types differ; the message names `name`. */
mgrid_status mgrid_pair_init(mgrid_pair *p, const mgrid_tensor *from, const mgrid_tensor *to,
                             const mgrid_renaming *names, const mgrid_renaming *olds, int64_t turn,
                             int64_t machine, const char *name, mgrid_error *err);
/* Return the rank of the move at these coordinates of `to`. */
int64_t mgrid_pair_rank(const mgrid_pair *p, const mgrid_coords *at);
/* Find the coordinates of `to` of a rank of the move. False: it has none. */
bool mgrid_pair_coords(const mgrid_pair *p, int64_t rank, mgrid_coords *at);
/* Return the rank of the move at these coordinates of `from`; -1: it is lost. */
int64_t mgrid_pair_holder(const mgrid_pair *p, const mgrid_coords *at);
bool mgrid_pair_held(const mgrid_pair *p, int64_t rank, mgrid_coords *at);
/* Return how many copies of a shard are left, and in *before (may be NULL) how many of these come
** before the copy in `shard`. O(1) if no ranks are lost, else O(copies). */
int64_t mgrid_pair_left(const mgrid_pair *p, const mgrid_coords *shard, int64_t *before);
/* Return the nth copy that is left, from 0. */
int64_t mgrid_pair_nth_left(const mgrid_pair *p, const mgrid_coords *shard, int64_t nth);

/* ----------------------------------------------------- messages.c: receivers */

enum { MGRID_FEW = 4 }; /* up to this many holders are always listed */

/* The ranks that need a shard, by number. The holders count as `held`; with machines, all ranks on
** their machines do. */
typedef struct mgrid_needs {
  const mgrid_pair *pair;
  int64_t piece[MGRID_AXES_MAX];           /* the pieces of the shard; -1: it is not set yet */
  mgrid_overlaps overlaps[MGRID_AXES_MAX]; /* the pieces of `to` that overlap on each axis */
  int64_t total;                           /* how many numbers there are, with those of holders */
  int64_t held;                            /* how many of them are held */
  bool ranged;                             /* holders are counted by ranges */
  mgrid_range range[MGRID_RANGES_MAX];     /* their ranges */
  int64_t *list; /* else [held]: their numbers, ascending; in `few` or in `more` */
  int64_t few[MGRID_FEW], *more;
  size_t room; /* size of `more` */
} mgrid_needs;

void mgrid_needs_begin(mgrid_needs *d, const mgrid_pair *p); /* prepare for a pair */
/* set the shard, any number of times; false: no memory */
bool mgrid_needs_of(mgrid_needs *d, const mgrid_coords *shard);
void mgrid_needs_free(mgrid_needs *d);
/* Return the number of these coordinates of `to`. -1: they need nothing of the shard. */
int64_t mgrid_needs_number(const mgrid_needs *d, const mgrid_coords *at);
/* Return how many holders come before a number. */
int64_t mgrid_needs_before(const mgrid_needs *d, int64_t number);
/* Find the coordinates of number i, not counting holders. Return how many steps this took: at most
** a few dozen. */
int mgrid_needs_coords(const mgrid_needs *d, int64_t i, mgrid_coords *at);

/* ---------------------------------------------------------------- ranges.c */

/* Prepare to count holders by ranges. False: this is not possible, or not faster. Ranks must have
** the numbers that their grids give them; all of them must hold something; and counting must take
** fewer steps than a shard has copies. */
bool mgrid_ranges_find(mgrid_pair *p);
/* Set the ranges of the holders of d's shard. Return how many numbers are in them. */
int64_t mgrid_ranges_of(mgrid_needs *d);
/* Return how many of these come before the number of the coordinates. */
int64_t mgrid_ranges_before(const mgrid_needs *d, const mgrid_coords *at);

/* ------------------------------------- messages.c */

/* Return whether a rank holds the shard. */
bool mgrid_holds(const mgrid_pair *p, const mgrid_coords *shard, int64_t rank);

typedef struct mgrid_message {
  int64_t from, to; /* ranks of the move */
  int64_t tensor;   /* number of the pair in the move */
  int64_t bytes;
} mgrid_message;

typedef struct mgrid_messages { /* a growing list */
  size_t n, room;
  mgrid_message *at;
  int64_t missing; /* bytes that receivers need and that no rank is left to send */
} mgrid_messages;

/* Append the messages of one tensor that a rank sends, or receives. False: no memory. O(dims) for
** each message, and O(copies) more where copies are listed. */
bool mgrid_pair_sends(const mgrid_pair *p, int64_t rank, int64_t tensor, mgrid_messages *list);
bool mgrid_pair_receives(const mgrid_pair *p, int64_t rank, int64_t tensor, mgrid_messages *list);
/* Set *goes to whether the rank at these coordinates of `from` sends its shard to this part, or
** would send it if the two had elements in common. It does not if the part's rank holds the shard,
** or if another copy sends it. False: no memory. O(dims). */
bool mgrid_pair_goes(const mgrid_pair *p, const mgrid_coords *shard, const mgrid_coords *part,
                     bool *goes);
/* Return the bytes that a rank needs and already holds. */
int64_t mgrid_pair_stays(const mgrid_pair *p, int64_t rank);

/* Return whether two tuples of coordinates of `from` have one shard. */
bool mgrid_same_shard(const mgrid_pair *p, const mgrid_coords *a, const mgrid_coords *b);
bool mgrid_append_message(mgrid_messages *list, mgrid_message m); /* false: no memory */
/* as mgrid_append_message; `from` -1: the bytes are missing */
bool mgrid_append_receipt(mgrid_messages *list, mgrid_message m);

/* ------------------------------------------------------------------- boxes.c */

/* a run of an axis, and where it starts in the pieces of both sides */
typedef struct mgrid_shared_run {
  int64_t from, to, length;
} mgrid_shared_run;

/* Walks the runs that two pieces of an axis have in common. */
typedef struct mgrid_sharing {
  mgrid_walk a, b;
  mgrid_run x, y;     /* the current runs */
  int64_t x_at, y_at; /* where they start in their pieces */
  bool more;
} mgrid_sharing;
mgrid_sharing mgrid_sharing_begin(const mgrid_slicing *a, int64_t p, const mgrid_slicing *b,
                                  int64_t q);
bool mgrid_sharing_next(mgrid_sharing *w, mgrid_shared_run *run);
/* Clip a run to the indices of both boxes on the axis. Its length may become 0 or negative. */
void mgrid_shared_clip(mgrid_shared_run *run, const mgrid_blocks *from, const mgrid_blocks *to,
                       size_t axis);

/* What a shard and a part have in common: how many elements, and in each of the two tuples the
** first and the last index of them, in C order. */
typedef struct mgrid_common {
  int64_t elements;
  int64_t from_first, from_last, to_first, to_last;
} mgrid_common;
/* Return it. `of_shard` and `of_part` are the elements of the two tuples to compare: those of the
** coordinates, or all. O(runs). */
mgrid_common mgrid_common_of(const mgrid_pair *p, const mgrid_coords *shard,
                             const mgrid_coords *part, const mgrid_blocks *of_shard,
                             const mgrid_blocks *of_part);
/* Return the bytes that a shard and a part of `to` have in common. */
int64_t mgrid_common_bytes(const mgrid_pair *p, const mgrid_coords *shard,
                           const mgrid_coords *part);

/* Walks the boxes that a shard and a part of `to` have in common. The memory grows with the runs of
** the axes, not with the boxes. */
typedef struct mgrid_boxes {
  size_t naxes;
  int64_t width, left; /* bytes of an element; how many boxes of the current two are left */
  size_t n[MGRID_AXES_MAX], at[MGRID_AXES_MAX];
  /* the runs of each axis: the first; [n - 1] the others */
  mgrid_shared_run one[MGRID_AXES_MAX], *more[MGRID_AXES_MAX];
  /* the current box of the shard; that of the part; the first box of the part */
  mgrid_blocks from, to, first;
  /* on each axis, the runs that are in both of these boxes: index of the first; how many */
  size_t low[MGRID_AXES_MAX], met[MGRID_AXES_MAX];
  int64_t from_begin, to_begin; /* where the two ranges start in C order */
  int64_t from_strides[MGRID_AXES_MAX], to_strides[MGRID_AXES_MAX];
} mgrid_boxes;
/* Begin a walk. False: no memory; there is nothing to end. */
bool mgrid_boxes_begin(mgrid_boxes *w, const mgrid_pair *p, const mgrid_coords *shard,
                       const mgrid_coords *part);
void mgrid_boxes_end(mgrid_boxes *w); /* w may also be { 0 } */
/* Go to the next box. `way`, `peer` and `tensor` of piece are not changed. False: there are no
** more. */
bool mgrid_boxes_next(mgrid_boxes *w, mgrid_move_piece *piece);

/* ---------------------------------------------------- all_messages.c: rounds */

typedef struct mgrid_edge { /* a message of the job; all its tensors together */
  int32_t from, to;
  int32_t round;
} mgrid_edge;

enum { MGRID_EDGES_MAX = 1 << 26 }; /* most messages that can be put into rounds */

/* Put n messages into rounds, so that in a round a rank sends at most one and receives at most one.
** No two messages may have both ends in common. *rounds: the most messages that a rank sends or
** receives; so many always suffice (Koenig). */
mgrid_status mgrid_edges_colour(size_t n, mgrid_edge *edge, int64_t ranks, int64_t *rounds,
                                mgrid_error *err);

#endif
