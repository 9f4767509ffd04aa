/* SPDX-License-Identifier: MIT
**
** move.h - the move of one tensor: which rank sends which part of it to which.
*/

/* THE RULE. `from` cuts the tensor into shards: a shard is a tuple with one piece of each axis.
** Each element is in one shard, and `copies` ranks hold each shard. A rank that needs elements of a
** shard and does not hold it receives them from one holder. So each element arrives once, and only
** where it was missing: the minimum of bytes.
**
** WHICH HOLDER SENDS. Number the ranks that need a shard by their pieces of `to`, the first axis
** slowest, then by their copy. Leave out the holders. Copy (i + turn) mod copies sends to number i,
** so the messages of two copies differ by one at most. `turn` is the number of the tensor, so that
** tensors with few messages do not all load the same copy. With machines, each of `machine`
** consecutive ranks, a rank receives from its own machine if a holder is there: number the ranks of
** that machine that need the shard by rank; holder (i + turn) mod holders there sends to number i.
** Only the other messages leave a machine. Their receivers are numbered as above, without those
** served on their own machine.
**
** THE COST. Each side computes this by itself. All steps but one are divisions. That one counts the
** holders with a smaller number, by ranges of coordinates (ranges.c), in about as many steps as
** there are dims, and more if the dims of the grids do not nest (`from` on 6 x 4 ranks, `to` on 4 x
** 6). The copies are listed instead where no such ranges describe the holders: the move renumbers
** ranks, ranks hold nothing because of `on`, the pieces needed of an axis are not consecutive, a
** machine ends within a coordinate, or there would be more steps than copies.
**
** FLATS AND LOST RANKS. With a flat on either side a shard or a part is a slice of a tuple's array,
** and the ranks that share elements are no longer a product over axes. The slices of each tuple are
** walked instead, in the same order (messages.c). A shard with one holder needs no numbers. Ranks
** of `from` may be lost: they have no number in the move, and send nothing. Everywhere above,
** `copies` and `holders` are then those that are left, found by looking at all copies of a shard.
** Where none is left nobody sends, and the bytes are counted as missing.
*/

#ifndef MGRID_MOVE_H
#define MGRID_MOVE_H

#include "tensors/tensor.h"

/* Maps ranks of one side to ranks of the move. */
typedef struct mgrid_renaming {
  int64_t n;      /* ranks of the side, or 0: the numbers are the same */
  int32_t *ranks; /* [n], the rank of the move of each; of `from` also -1: it is lost */
  int64_t nback;  /* 1 + the largest of these */
  int32_t *back;  /* [nback], the rank of the side of each, or -1 */
} mgrid_renaming;

/* Ranks whose coordinate of a dim is in a range: (rank - origin) / stride % size is low .. high -
** 1. */
typedef struct mgrid_range {
  int64_t origin, stride, size, low, high;
  /* the dim of `from`, and its coordinates in one step of the range; or -1 - the dim of `to` */
  int32_t dim, div;
} mgrid_range;

enum { MGRID_RANGES_MAX = 16 }; /* holders of grids with more dims are listed */

/* One tensor of a move. */
typedef struct mgrid_pair {
  const mgrid_tensor *from, *to;      /* with the same axes and type; not owned */
  const mgrid_renaming *names, *olds; /* of `to`, of `from` */
  int64_t turn;
  int64_t machine;    /* ranks of a machine; 0: machines do not matter */
  bool flat;          /* a side is flat, or both */
  bool apart;         /* no rank (with machines: no machine) is in both grids */
  bool ranged;        /* holders are counted by ranges: */
  int64_t first, end; /* ranks of `to` that are in `from`, or on one of its machines */
  size_t nranges;     /* of the dims that cut `from`, and of all dims of `to` */
  mgrid_range range[MGRID_RANGES_MAX]; /* the longest period first */
  uint8_t range_of[MGRID_DIMS_MAX];    /* the range of each dim of `to` */
} mgrid_pair;

/* Refuse tensors whose axes or types differ; `name` is for the message. */
mgrid_status mgrid_pair_init(mgrid_pair *p, const mgrid_tensor *from, const mgrid_tensor *to,
                             const mgrid_renaming *names, const mgrid_renaming *olds, int64_t turn,
                             int64_t machine, const char *name, mgrid_error *err);
/* Return the rank of the move at coordinates of `to`. */
int64_t mgrid_pair_rank(const mgrid_pair *p, const mgrid_coords *at);
/* Find the coordinates of `to` of a rank of the move; false: it has none. */
bool mgrid_pair_coords(const mgrid_pair *p, int64_t rank, mgrid_coords *at);
/* The same for coordinates of `from`: the rank is -1 where it is lost. */
int64_t mgrid_pair_holder(const mgrid_pair *p, const mgrid_coords *at);
bool mgrid_pair_held(const mgrid_pair *p, int64_t rank, mgrid_coords *at);
/* Return how many copies of a shard are left, and *before (may be NULL) how many of them come
** before its own copy. O(1) without lost ranks, else O(copies). */
int64_t mgrid_pair_left(const mgrid_pair *p, const mgrid_coords *shard, int64_t *before);
/* Return the nth of them, from 0. */
int64_t mgrid_pair_nth_left(const mgrid_pair *p, const mgrid_coords *shard, int64_t nth);

/* ----------------------------------------------------- messages.c: receivers */

enum { MGRID_FEW = 4 }; /* up to this many holders are always listed */

/* The ranks that need a shard, by number. Holders count as `held`, with machines also the ranks on
** their machines. */
typedef struct mgrid_needs {
  const mgrid_pair *pair;
  int64_t piece[MGRID_AXES_MAX];           /* the shard; -1: not set yet */
  mgrid_overlaps overlaps[MGRID_AXES_MAX]; /* pieces of `to` on each axis */
  int64_t total;                           /* count of numbers, those of holders included */
  int64_t held;                            /* count of numbers of holders */
  bool ranged;                             /* holders are counted by: */
  mgrid_range range[MGRID_RANGES_MAX];     /* their ranges */
  int64_t *list; /* else [held], their numbers, ascending: in `few`, or in `more` */
  int64_t few[MGRID_FEW], *more;
  size_t room; /* of `more` */
} mgrid_needs;

void mgrid_needs_begin(mgrid_needs *d, const mgrid_pair *p); /* prepare for a pair */
/* set the shard, any number of times; false: no memory */
bool mgrid_needs_of(mgrid_needs *d, const mgrid_coords *shard);
void mgrid_needs_free(mgrid_needs *d);
/* Return the number of coordinates of `to`; -1: it needs nothing of the shard. */
int64_t mgrid_needs_number(const mgrid_needs *d, const mgrid_coords *at);
/* Return how many holders come before a number. */
int64_t mgrid_needs_before(const mgrid_needs *d, int64_t number);
/* Find the coordinates of the ith number that is not a holder's. Return the steps this took: a few
** dozen at most. */
int mgrid_needs_coords(const mgrid_needs *d, int64_t i, mgrid_coords *at);

/* ---------------------------------------------------------------- ranges.c */

/* Prepare to count holders by ranges. False: not possible, or not faster. Ranks must have the
** numbers that their grids give them, all of them must hold something, and counting must take fewer
** steps than a shard has copies. */
bool mgrid_ranges_find(mgrid_pair *p);
/* Set the ranges of the holders of d's shard. Return how many of its numbers are in them. */
int64_t mgrid_ranges_of(mgrid_needs *d);
/* Return how many of these come before the number of coordinates. */
int64_t mgrid_ranges_before(const mgrid_needs *d, const mgrid_coords *at);

/* ------------------------------------- messages.c */

/* Return whether the rank holds the shard. */
bool mgrid_holds(const mgrid_pair *p, const mgrid_coords *shard, int64_t rank);

typedef struct mgrid_message {
  int64_t from, to; /* ranks of the move */
  int64_t tensor;   /* number of the pair in the move */
  int64_t bytes;
} mgrid_message;

typedef struct mgrid_messages { /* a growing list */
  size_t n, room;
  mgrid_message *at;
  int64_t missing; /* bytes that receivers need and nobody is left to send */
} mgrid_messages;

/* Append the messages that a rank sends, or receives, of one tensor. False: no memory. O(dims) for
** each message, plus O(copies) where copies are listed. */
bool mgrid_pair_sends(const mgrid_pair *p, int64_t rank, int64_t tensor, mgrid_messages *list);
bool mgrid_pair_receives(const mgrid_pair *p, int64_t rank, int64_t tensor, mgrid_messages *list);
/* *goes: whether the rank at these coordinates of `from` sends its shard to this part, or would if
** they had elements in common. It does not if the part's rank holds the shard, or another copy sends
** it. Return false without memory. O(dims). */
bool mgrid_pair_goes(const mgrid_pair *p, const mgrid_coords *shard, const mgrid_coords *part,
                     bool *goes);
/* Return the bytes that a rank needs and already holds. */
int64_t mgrid_pair_stays(const mgrid_pair *p, int64_t rank);

/* Return whether two tuples of coordinates of `from` have the same shard. */
bool mgrid_same_shard(const mgrid_pair *p, const mgrid_coords *a, const mgrid_coords *b);
bool mgrid_append_message(mgrid_messages *list, mgrid_message m); /* false: no memory */
/* the same; `from` is -1: its bytes are missing */
bool mgrid_append_receipt(mgrid_messages *list, mgrid_message m);

/* ------------------------------------------------------------------- boxes.c */

typedef struct mgrid_shared_run { /* a run of an axis, and where it is in both pieces */
  int64_t from, to, length;
} mgrid_shared_run;

/* Walks the runs that two pieces of an axis have in common. */
typedef struct mgrid_sharing {
  mgrid_walk a, b;
  mgrid_run x, y;     /* the current runs, */
  int64_t x_at, y_at; /* and where they start in their pieces */
  bool more;
} mgrid_sharing;
mgrid_sharing mgrid_sharing_begin(const mgrid_slicing *a, int64_t p, const mgrid_slicing *b,
                                  int64_t q);
bool mgrid_sharing_next(mgrid_sharing *w, mgrid_shared_run *run);
/* Clip a run to the indices of both boxes on the axis; its length may become 0 or less. */
void mgrid_shared_clip(mgrid_shared_run *run, const mgrid_blocks *from, const mgrid_blocks *to,
                       size_t axis);

/* The elements that a shard and a part have in common: how many, and the first and last index of
** them in either tuple, in C order. */
typedef struct mgrid_common {
  int64_t elements;
  int64_t from_first, from_last, to_first, to_last;
} mgrid_common;
/* `of_shard` and `of_part` are the elements to compare of the two tuples: those of coordinates, or
** all. O(runs). */
mgrid_common mgrid_common_of(const mgrid_pair *p, const mgrid_coords *shard,
                             const mgrid_coords *part, const mgrid_blocks *of_shard,
                             const mgrid_blocks *of_part);
/* Return the bytes that a shard and a part of `to` have in common. */
int64_t mgrid_common_bytes(const mgrid_pair *p, const mgrid_coords *shard,
                           const mgrid_coords *part);

/* Walks the boxes that a shard and a part of `to` have in common. Memory grows with the runs of the
** axes, not with the boxes. */
typedef struct mgrid_boxes {
  size_t naxes;
  int64_t width, left; /* bytes of an element; boxes left of the current two */
  size_t n[MGRID_AXES_MAX], at[MGRID_AXES_MAX];
  /* [n] runs of each axis: the first; the rest */
  mgrid_shared_run one[MGRID_AXES_MAX], *more[MGRID_AXES_MAX];
  mgrid_blocks from, to, first; /* the current box of the shard, of the part; `to` at its start */
  /* the runs in common of these two: the first, how many */
  size_t low[MGRID_AXES_MAX], met[MGRID_AXES_MAX];
  int64_t from_begin, to_begin; /* where the ranges start in C order */
  int64_t from_strides[MGRID_AXES_MAX], to_strides[MGRID_AXES_MAX];
} mgrid_boxes;
/* False: no memory, and nothing to end. */
bool mgrid_boxes_begin(mgrid_boxes *w, const mgrid_pair *p, const mgrid_coords *shard,
                       const mgrid_coords *part);
void mgrid_boxes_end(mgrid_boxes *w); /* also of { 0 } */
/* Go to the next box; `piece` keeps its way, peer and tensor. False: there are no more. */
bool mgrid_boxes_next(mgrid_boxes *w, mgrid_move_piece *piece);

/* ---------------------------------------------------- all_messages.c: rounds */

typedef struct mgrid_edge { /* a message of a job, all its tensors in one */
  int32_t from, to;
  int32_t round;
} mgrid_edge;

enum { MGRID_EDGES_MAX = 1 << 26 }; /* that may be put into rounds */

/* Put n messages into rounds, so that in each a rank sends at most one and receives at most one. No
** two messages may have both ends in common. *rounds: as many as the busiest rank sends or
** receives, which always suffice (Koenig). */
mgrid_status mgrid_edges_colour(size_t n, mgrid_edge *edge, int64_t ranks, int64_t *rounds,
                                mgrid_error *err);

#endif
