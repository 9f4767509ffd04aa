/* SPDX-License-Identifier: MIT
**
** move.h - what a move of one tensor is: who sends which part of it to whom.
**
** THE RULE. `from` cuts the tensor into shards, the tuples of one piece of each axis; each element is in one of them,
** and `copies` ranks hold a shard. A rank that needs elements of a shard, and does not hold it, gets them from one of
** these. So each element arrives once, and only where it was not: the fewest bytes that there can be.
** Which of the holders sends: number the ranks that need a shard by their pieces of `to`, the first axis slowest, then
** by their copy. Leave those out that hold it themselves. Number i is served by copy (i + turn) mod copies: so two
** copies differ by one message at most. `turn` is the number of the tensor, so that tensors with few messages do not
** all burden the same copy.
** Where a machine is given, so many ranks in order, a needing rank is served on its own one if a holder is there: of those
** on the machine that need the shard, by rank, number i gets it from holder (i + turn) mod holders there. Only what no holder
** is near to leaves a machine, and is numbered as above, near ones left out.
** Both sides compute it alone. All but one of the steps are divisions: how many holders have a smaller number. That is
** counted by ranges of coordinates (ranges.c), in about as many steps as there are dims, and more where the dims of both
** grids do not fit into each other (`from` on 6 x 4 ranks, `to` on 4 x 6). Where no such ranges say who holds a shard,
** its copies are listed: ranks have other numbers after the move, hold nothing because of `on`, pieces of an axis do
** not lie side by side, a machine ends within a coordinate, or the steps would be more than the copies.
** With a flat on a side a shard or a part is a slice of a tuple's array, and who meets whom is no product any more: the
** slices of each tuple that meet are walked, in the same order (flat_senders.c). A shard with one holder needs no numbers.
*/
#ifndef MGRID_MOVE_H
#define MGRID_MOVE_H

#include "tensors/tensor.h"

/* How ranks of `to` are ranks of the move, whose numbers are those of `from`. */
typedef struct mgrid_renaming {
  int64_t  n;     /* ranks of `to`, or 0: the numbers are the same */
  int32_t *ranks; /* [n], the rank of the move that each is */
  int64_t  nback; /* 1 + the largest of these */
  int32_t *back;  /* [nback], the rank of `to` that each is, or -1 */
} mgrid_renaming;

/* Ranks whose coordinate of a dim is in a range: (rank - origin) / stride % size is low .. high - 1. */
typedef struct mgrid_range {
  int64_t origin, stride, size, low, high;
  int32_t dim, div; /* the dim of `from`, and its coordinates in one step of the range; or -1 - the dim of `to` */
} mgrid_range;

enum { MGRID_RANGES_MAX = 16 }; /* holders of grids with more dims are listed */

/* One tensor of a move. */
typedef struct mgrid_pair {
  const mgrid_tensor   *from, *to; /* of equal axes and type; not owned */
  const mgrid_renaming *names;
  int64_t               turn;
  int64_t               machine;                  /* ranks of one; 0: all ranks are equally near */
  bool                  flat;                     /* a flat is on one side or both */
  bool                  apart;                    /* no rank is of both grids */
  bool                  ranged;                   /* holders are counted by ranges: */
  int64_t               first, end;               /* ranks that are of both grids, or near to one that is */
  size_t                nranges;                  /* of the dims that cut `from`, and of all dims of `to` */
  mgrid_range           range[MGRID_RANGES_MAX];  /* the longest period first */
  uint8_t               range_of[MGRID_DIMS_MAX]; /* of each dim of `to` */
} mgrid_pair;

/* Refused unless both have the same axes and type; `name` is for the message. */
mgrid_status mgrid_pair_init(mgrid_pair *p, const mgrid_tensor *from, const mgrid_tensor *to,
                             const mgrid_renaming *names, int64_t turn, int64_t machine, const char *name,
                             mgrid_error *err);
/* The rank of the move at a seat of `to`, and the seat of a rank: false where it has none. */
int64_t mgrid_pair_rank(const mgrid_pair *p, const mgrid_seat *at);
bool    mgrid_pair_seat(const mgrid_pair *p, int64_t rank, mgrid_seat *at);

/* ----------------------------------------------------------------- needs.c */

enum { MGRID_FEW = 4 }; /* so many holders are always listed */

/* The ranks that need a shard, by number; `held`: with machines also who is near to a holder. */
typedef struct mgrid_needs {
  const mgrid_pair *pair;
  int64_t           piece[MGRID_AXES_MAX];   /* the shard; -1: not yet looked at */
  mgrid_meets       meets[MGRID_AXES_MAX];   /* pieces of `to` on each axis */
  int64_t           total;                   /* numbers, those of holders included */
  int64_t           held;                    /* numbers of holders */
  bool              ranged;                  /* counted by */
  mgrid_range       range[MGRID_RANGES_MAX]; /* of holders */
  int64_t          *list;                    /* else [held], their numbers, ascending: in `few`, or in `more` */
  int64_t           few[MGRID_FEW], *more, room;
} mgrid_needs;

void mgrid_needs_begin(mgrid_needs *d, const mgrid_pair *p);  /* of a pair: */
bool mgrid_needs_of(mgrid_needs *d, const mgrid_seat *shard); /* one shard after the other; false: no memory */
void mgrid_needs_free(mgrid_needs *d);
/* The number of a seat of `to`, which needs some of the shard; how many holders come before a number; the seat of
** the ith that is no holder, found in as many steps as it returns: some dozens at most. */
int64_t mgrid_needs_number(const mgrid_needs *d, const mgrid_seat *at);
int64_t mgrid_needs_before(const mgrid_needs *d, int64_t number);
int     mgrid_needs_seat(const mgrid_needs *d, int64_t i, mgrid_seat *at);

/* ---------------------------------------------------------------- ranges.c */

/* Prepare to count holders by ranges, if that can be done: ranks have the numbers that their grids give them, all of them
** hold something, and counting takes fewer steps than there are copies of a shard. */
bool mgrid_ranges_find(mgrid_pair *p);
/* Set the ranges of the holders of d's shard. Returns how many of its numbers they have. */
int64_t mgrid_ranges_of(mgrid_needs *d);
/* How many of these come before the number of a seat. */
int64_t mgrid_ranges_before(const mgrid_needs *d, const mgrid_seat *at);

/* ------------------------------------------------------------------ near.c */

/* Does the rank hold the shard? */
bool mgrid_holds(const mgrid_pair *p, const mgrid_seat *shard, int64_t rank);
/* Is there a holder on the machine of a rank that needs a shard and does not hold it? *copy: which of them sends it. `d` is
** of the shard; NULL: with a flat. O(dims) for each rank of the machine. */
bool mgrid_near_sender(const mgrid_pair *p, const mgrid_needs *d, const mgrid_seat *shard, int64_t rank, int64_t *copy);
/* Walks the ranks on the machine of a holder to which it sends its shard. */
typedef struct mgrid_near {
  const mgrid_pair  *pair;
  const mgrid_needs *needs;
  const mgrid_seat  *shard;
  int64_t            holders, mine; /* on the machine; which of them this one is */
  int64_t            next, end, number;
} mgrid_near;
mgrid_near mgrid_near_begin(const mgrid_pair *p, const mgrid_needs *d, const mgrid_seat *shard, int64_t rank);
bool       mgrid_near_next(mgrid_near *w, int64_t *rank, mgrid_seat *part);

/* -------------------------------------------------------------- messages.c */

typedef struct mgrid_message {
  int64_t from, to; /* ranks of the move */
  int64_t tensor;   /* the pair's number in the move */
  int64_t bytes;
} mgrid_message;

typedef struct mgrid_messages { /* a growing list */
  size_t         n, room;
  mgrid_message *at;
} mgrid_messages;

/* Append what a rank sends and what it receives of one tensor. False: no memory. O(dims) for each message, and
** where copies are listed O(copies) more. */
bool mgrid_pair_sends(const mgrid_pair *p, int64_t rank, int64_t tensor, mgrid_messages *list);
bool mgrid_pair_receives(const mgrid_pair *p, int64_t rank, int64_t tensor, mgrid_messages *list);
/* *goes: is the seat of `from` the one that sends its shard to this part, or would be if they had anything in common? False
** where the part's rank holds it itself, or another copy sends. Returns false where memory is out. O(dims). */
bool mgrid_pair_goes(const mgrid_pair *p, const mgrid_seat *shard, const mgrid_seat *part, bool *goes);
/* Bytes that a rank needs and has already. */
int64_t mgrid_pair_stays(const mgrid_pair *p, int64_t rank);

/* Do two seats of `from` have the same shard? */
bool mgrid_same_shard(const mgrid_pair *p, const mgrid_seat *a, const mgrid_seat *b);
bool mgrid_append_message(mgrid_messages *list, mgrid_message m); /* false: no memory */

/* --------------------------------------------------------------- common.c */

typedef struct mgrid_shared_run { /* a run of an axis, and where it is in both pieces */
  int64_t from, to, length;
} mgrid_shared_run;

/* Walks the runs that two pieces of an axis have in common. */
typedef struct mgrid_sharing {
  mgrid_walk a, b;
  mgrid_run  x, y;       /* the runs it is at, */
  int64_t    x_at, y_at; /* and where they begin in their pieces */
  bool       more;
} mgrid_sharing;
mgrid_sharing mgrid_sharing_begin(const mgrid_slicing *a, int64_t p, const mgrid_slicing *b, int64_t q);
bool          mgrid_sharing_next(mgrid_sharing *w, mgrid_shared_run *run);
/* Cut a run to the indices that a box of each side has on the axis; its length may become 0 or less. */
void mgrid_shared_clip(mgrid_shared_run *run, const mgrid_blocks *from, const mgrid_blocks *to, size_t axis);

/* What a shard and a part have in common, and the first and last index of it in either's tuple, in C order. */
typedef struct mgrid_common {
  int64_t elements;
  int64_t from_first, from_last, to_first, to_last;
} mgrid_common;
/* `shard` and `part` say which elements of the tuples: those of a seat, or all of them. O(runs). */
mgrid_common mgrid_common_of(const mgrid_pair *p, const mgrid_seat *shard, const mgrid_seat *part,
                             const mgrid_blocks *of_shard, const mgrid_blocks *of_part);
/* Bytes that a shard and a part of `to` have in common. */
int64_t mgrid_common_bytes(const mgrid_pair *p, const mgrid_seat *shard, const mgrid_seat *part);

/* ----------------------------------------------------------------- flat_senders.c */

/* The same as mgrid_pair_sends, _receives and _goes, of pairs with a flat. For each message O(slices that it meets), and
** where a shard has several holders O(ranks that need it). */
bool mgrid_flats_send(const mgrid_pair *p, int64_t rank, const mgrid_seat *shard, int64_t tensor, mgrid_messages *list);
bool mgrid_flats_receive(const mgrid_pair *p, int64_t rank, const mgrid_seat *part, int64_t tensor,
                         mgrid_messages *list);
bool mgrid_flats_go(const mgrid_pair *p, const mgrid_seat *shard, const mgrid_seat *part, bool *goes);

/* ----------------------------------------------------------------- boxes.c */

/* The boxes that a shard and a part of `to` have in common, one after the other. Memory grows with the runs of the
** axes, not with the boxes. */
typedef struct mgrid_boxes {
  size_t           naxes;
  int64_t          width, left; /* bytes of an element; boxes to come of the two that are met */
  size_t           n[MGRID_AXES_MAX], at[MGRID_AXES_MAX];
  mgrid_shared_run one[MGRID_AXES_MAX], *more[MGRID_AXES_MAX]; /* the first of them; the [n - 1] others */
  mgrid_blocks     from, to, first; /* which boxes of the shard and the part; the first one of `to` */
  size_t           low[MGRID_AXES_MAX], met[MGRID_AXES_MAX]; /* the runs that these have in common: low, and how many */
  int64_t          from_begin, to_begin;                     /* where the ranges begin in C order */
  int64_t          from_strides[MGRID_AXES_MAX], to_strides[MGRID_AXES_MAX];
} mgrid_boxes;
/* False: no memory, and nothing to end. */
bool mgrid_boxes_begin(mgrid_boxes *w, const mgrid_pair *p, const mgrid_seat *shard, const mgrid_seat *part);
void mgrid_boxes_end(mgrid_boxes *w); /* also of { 0 } */
/* The next one: `piece` keeps its way, peer and tensor. */
bool mgrid_boxes_next(mgrid_boxes *w, mgrid_move_piece *piece);

/* ---------------------------------------------------------------- rounds.c */

typedef struct mgrid_edge { /* a message of a job, all its tensors in one */
  int32_t from, to;
  int32_t round;
} mgrid_edge;

enum { MGRID_EDGES_MAX = 1 << 26 }; /* that may be put into rounds */

/* Put n messages into rounds, so that in each a rank sends one at most and receives one at most. No two have both ends
** in common. *rounds: as many as the busiest rank sends or receives, which are always enough (Koenig). */
mgrid_status mgrid_edges_colour(size_t n, mgrid_edge *edge, int64_t ranks, int64_t *rounds, mgrid_error *err);

#endif
