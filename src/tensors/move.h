/* SPDX-License-Identifier: MIT
**
** move.h - the move of one tensor: which rank sends which part of it to which.
*/

/* THE RULE. The old layout, `from`, cuts the tensor into shards: a shard is a tuple with one piece
** of each axis. Each element is in one shard, and `copies` ranks hold each shard. A rank may need
** elements of a shard that it does not hold. It then receives them from one holder. So each element
** arrives once, and only where it is missing: a move sends the fewest bytes possible.
**
** WHICH HOLDER SENDS. Number the ranks that need a shard and do not hold it, in the order of their
** pieces in the new layout, `to`, the first axis slowest, and then of their copies. Copy (i + turn)
** mod copies sends to the rank with number i. So the numbers of messages of two copies differ by at
** most one. `turn` is the index of the tensor; without it, tensors with few messages would all load
** the same copy.
**
** If machines are given, each of `machine` consecutive ranks, a rank receives from a holder on its
** own machine if there is one. Number the ranks of this machine that need the shard and do not hold
** it, in the order of ranks. If the machine has h holders, its holder (i + turn) mod h sends to the
** rank with number i. The receivers of all other messages are numbered as above.
**
** THE COST. Sender and receiver compute this by themselves, by divisions, and by one count of the
** holders with a smaller number (ranges.c). That count takes about as many steps as there are dims;
** more if the dims of the two grids do not nest (`from` on 6 x 4 ranks, `to` on 4 x 6). It needs
** holders with a range of coordinates in each dim. The holders are listed instead if the move
** renumbers ranks, if ranks hold nothing because of `on`, if the pieces needed on an axis are not
** consecutive, if machines do not divide the runs or the periods of a coordinate evenly, or if the
** list is shorter than the count.
**
** FLATS. If a side is flat, a shard or a part is a range of a tuple's part (tensor.h), and the
** ranks that share elements are not all combinations of pieces. So their numbers are found by going
** through the slices of each tuple, in the same order (messages.c). If a shard has one holder,
** numbers are not needed.
**
** LOST RANKS. Ranks of `from` may be lost: they have no number in the move, and send nothing. Then
** "copies" and "holders" above mean the ones that are left, which are found by looking at all
** copies of a shard. If no copy is left, no rank sends, and the bytes are counted as missing.
*/

#ifndef MGRID_MOVE_H
#define MGRID_MOVE_H

#include "tensors/tensor.h"

/* Maps the ranks of one side to the ranks of the move. */
typedef struct mgrid_renaming {
  int64_t n; /* ranks of the side; 0: they have the same numbers in the move */
  /* [n]: the number of each rank in the move; -1: the rank is lost (only ranks of `from` can be) */
  int32_t *ranks;
  int64_t nback; /* the largest of these numbers, plus 1 */
  int32_t *back; /* [nback]: the rank of the side with each number, or -1 */
} mgrid_renaming;

/* The ranks whose coordinate in a dim is in a range: (rank - origin) / stride % size is low to
** high - 1. */
typedef struct mgrid_range {
  int64_t origin, stride, size, low, high;
  int32_t dim; /* a dim of `from`; or -1 - a dim of `to` */
  int32_t div; /* so many coordinates of a dim of `from` make one coordinate of the range */
} mgrid_range;

enum { MGRID_RANGES_MAX = 16 }; /* if the two grids have more dims, holders are listed */

/* One tensor of a move. */
typedef struct mgrid_pair {
  const mgrid_tensor *from, *to; /* they have the same axes and type; not owned */
  /* the numbers in the move of the ranks of `to`, and of `from` */
  const mgrid_renaming *names, *olds;
  int64_t turn;
  int64_t machine;    /* ranks of a machine; 0: machines do not matter */
  bool flat;          /* at least one side is flat */
  bool apart;         /* no rank (with machines, no machine) is in the windows of both grids */
  bool ranged;        /* holders are counted by the ranges below */
  int64_t first, end; /* ranks first to end - 1 of `to` are in `from`, or on a machine of it */
  size_t nranges;     /* one range for each dim that cuts `from`, and for each dim of `to` */
  mgrid_range range[MGRID_RANGES_MAX]; /* the longest period first */
  uint8_t range_of[MGRID_DIMS_MAX];    /* the index of the range of each dim of `to` */
} mgrid_pair;

/* Prepare a pair. Refuse tensors whose axes or types differ. `name` is for the message. */
mgrid_status mgrid_pair_init(mgrid_pair *p, const mgrid_tensor *from, const mgrid_tensor *to,
                             const mgrid_renaming *names, const mgrid_renaming *olds, int64_t turn,
                             int64_t machine, const char *name, mgrid_error *err);
/* Find the part of `to` that a rank of the move has. False: none. */
bool mgrid_pair_coords(const mgrid_pair *p, int64_t rank, mgrid_coords *at);
/* Find the shard of `from` that a rank of the move holds. False: none. */
bool mgrid_pair_held(const mgrid_pair *p, int64_t rank, mgrid_coords *at);

/* ----------------------------------------------------- messages.c: receivers */

enum { MGRID_FEW = 4 }; /* up to this many holders are always listed */

/* The ranks that need a shard, each with a number. Numbers of ranks that hold the shard are "held".
** With machines, the numbers of all ranks on a holder's machine are held. */
typedef struct mgrid_needs {
  const mgrid_pair *pair;
  int64_t piece[MGRID_AXES_MAX];           /* the shard's pieces; -1: not set yet */
  mgrid_overlaps overlaps[MGRID_AXES_MAX]; /* the pieces of `to` that overlap with the shard's */
  int64_t total;                           /* how many numbers there are */
  int64_t held;                            /* how many numbers are held */
  bool ranged;                             /* held numbers are counted by ranges, not listed */
  mgrid_range range[MGRID_RANGES_MAX];     /* of the held numbers */
  int64_t *list; /* [held]: the held numbers, ascending; in `few` or in `more` */
  int64_t few[MGRID_FEW], *more;
  size_t room; /* of `more` */
} mgrid_needs;

void mgrid_needs_begin(mgrid_needs *d, const mgrid_pair *p);
/* Set the shard; it may be set several times. False: no memory. */
bool mgrid_needs_of(mgrid_needs *d, const mgrid_coords *shard);
void mgrid_needs_free(mgrid_needs *d);
/* Find the part of the rank with number i, if only numbers that are not held are counted. Return
** how many steps this took: at most a few dozen. */
int mgrid_needs_coords(const mgrid_needs *d, int64_t i, mgrid_coords *at);

/* ---------------------------------------------------------------- ranges.c */

/* Prepare to count holders by ranges. False: this is not possible, or not faster (THE COST). */
bool mgrid_ranges_find(mgrid_pair *p);
/* Set the ranges of the ranks with held numbers. Return how many numbers are held. */
int64_t mgrid_ranges_of(mgrid_needs *d);
/* Return how many held numbers are smaller than the number of the rank with a part. */
int64_t mgrid_ranges_before(const mgrid_needs *d, const mgrid_coords *at);

/* ------------------------------------------------------ messages.c: messages */

typedef struct mgrid_message {
  int64_t from, to; /* ranks of the move */
  int64_t tensor;   /* index of the pair in the move */
  int64_t bytes;
} mgrid_message;

typedef struct mgrid_messages { /* a growing list */
  size_t n, room;
  mgrid_message *at;
  int64_t missing; /* bytes that receivers need, and of which no copy is left */
} mgrid_messages;

/* Append the messages of one tensor that a rank sends, or receives. False: no memory. O(dims) for
** each message, and O(copies) more where copies are listed. */
bool mgrid_pair_sends(const mgrid_pair *p, int64_t rank, int64_t tensor, mgrid_messages *list);
bool mgrid_pair_receives(const mgrid_pair *p, int64_t rank, int64_t tensor, mgrid_messages *list);
/* Set *goes to whether this copy of a shard is the one that is sent to a part. It is not if the
** part's rank holds the shard, or if another copy is sent. If shard and part have no elements in
** common, *goes may be true or false. Return false if memory runs out. It takes as long as one
** message of mgrid_pair_receives. */
bool mgrid_pair_goes(const mgrid_pair *p, const mgrid_coords *shard, const mgrid_coords *part,
                     bool *goes);
/* Return the bytes that a rank needs and already holds. */
int64_t mgrid_pair_stays(const mgrid_pair *p, int64_t rank);

/* ------------------------------------------------------------------- boxes.c */

/* A run that two pieces have in common, and where it starts in the piece of `from` and of `to`. */
typedef struct mgrid_shared_run {
  int64_t from, to, length;
} mgrid_shared_run;

/* The elements that a shard and a part have in common. */
typedef struct mgrid_common {
  int64_t elements;              /* how many */
  int64_t from_first, from_last; /* the first and the last, in C order of the shard's tuple */
  int64_t to_first, to_last;     /* the same in the part's tuple */
} mgrid_common;
/* Find the elements in common, among `of_shard` of the shard's tuple and `of_part` of the part's
** tuple. O(runs). */
mgrid_common mgrid_common_of(const mgrid_pair *p, const mgrid_coords *shard,
                             const mgrid_coords *part, const mgrid_blocks *of_shard,
                             const mgrid_blocks *of_part);
/* Return the bytes that a shard and a part of `to` have in common. */
int64_t mgrid_common_bytes(const mgrid_pair *p, const mgrid_coords *shard,
                           const mgrid_coords *part);

/* Walks the boxes that a shard and a part of `to` have in common. A slice of a flat is a few boxes,
** so the walk goes through each pair of a box of the shard and a box of the part. Its memory grows
** with the runs of the axes, not with the boxes. */
typedef struct mgrid_boxes {
  size_t naxes;
  int64_t width;            /* bytes of an element */
  size_t n[MGRID_AXES_MAX]; /* on each axis, how many runs the two tuples have in common */
  mgrid_shared_run one[MGRID_AXES_MAX];   /* the first of these runs */
  mgrid_shared_run *more[MGRID_AXES_MAX]; /* [n - 1]: the others */
  mgrid_blocks from, to;                  /* the current box of the shard, and of the part */
  mgrid_blocks first;                     /* the first box of the part */
  /* on each axis, of the runs that are in both current boxes: the index of the first, and how
  ** many */
  size_t low[MGRID_AXES_MAX], met[MGRID_AXES_MAX];
  size_t at[MGRID_AXES_MAX];    /* the next combination of these runs, which is a box */
  int64_t left;                 /* how many combinations are left */
  int64_t from_begin, to_begin; /* where the ranges of the two sides start in C order */
  int64_t from_strides[MGRID_AXES_MAX], to_strides[MGRID_AXES_MAX];
} mgrid_boxes;
/* Begin a walk. False: no memory; there is nothing to end. */
bool mgrid_boxes_begin(mgrid_boxes *w, const mgrid_pair *p, const mgrid_coords *shard,
                       const mgrid_coords *part);
void mgrid_boxes_end(mgrid_boxes *w); /* w may also be { 0 } */
/* Write the next box to *piece, except its way, peer and tensor. False: no box is left. */
bool mgrid_boxes_next(mgrid_boxes *w, mgrid_move_piece *piece);

/* ---------------------------------------------------- all_messages.c: rounds */

typedef struct mgrid_edge { /* a message between two ranks, with all tensors */
  int32_t from, to;
  int32_t round;
} mgrid_edge;

enum { MGRID_EDGES_MAX = 1 << 26 }; /* most messages that can be put into rounds */

/* Put n messages into rounds. In a round a rank sends at most one message and receives at most one.
** No two messages may have the same sender and receiver. Set *rounds to the number of rounds: the
** most messages that a rank sends or receives, which always suffices (Koenig). */
mgrid_status mgrid_edges_colour(size_t n, mgrid_edge *edge, int64_t ranks, int64_t *rounds,
                                mgrid_error *err);

#endif
