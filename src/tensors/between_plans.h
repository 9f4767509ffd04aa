/* SPDX-License-Identifier: MIT
**
** between_plans.h - a move between plans: their tensors side by side, a rank's messages, and all ranks' for a survey.
*/
#ifndef MGRID_MOVES_H
#define MGRID_MOVES_H

#include "tensors/move.h"
#include "tensors/of_plan.h"

/* A tensor whose type changes on the way, as it is before or after: the other side's is the one that the pair has, in
** which its elements go, since it is the narrower. */
typedef struct mgrid_typing {
  const mgrid_tensor *wide;   /* of the plan; NULL: the type stays */
  bool                before; /* it is of the plan before the move, else after */
  mgrid_tensor       *narrow; /* owned: the same in the type of the other side */
} mgrid_typing;

/* The tensors of two plans, by name. */
typedef struct mgrid_pairs {
  mgrid_plan    *from, *to; /* owned */
  mgrid_renaming names;     /* owned arrays */
  int64_t        ranks;     /* of the move */
  int64_t        machine;   /* ranks of one; 0: none is given */
  size_t         n;
  const char   **name;   /* [n], of `from` */
  mgrid_pair    *pair;   /* [n] */
  mgrid_typing  *typing; /* [room]; NULL: all types stay */
  size_t         room;
} mgrid_pairs;

mgrid_status mgrid_pairs_init(mgrid_pairs *p, const mgrid_plan *from, const mgrid_plan *to, size_t n,
                              const char *const *names, const mgrid_move_options *options, mgrid_error *err);
void         mgrid_pairs_free(mgrid_pairs *p);
/* Does the type of the ith tensor change? The tensor as it is before the move, or after. */
bool                mgrid_pairs_converts(const mgrid_pairs *p, size_t i);
const mgrid_tensor *mgrid_pairs_tensor(const mgrid_pairs *p, size_t i, bool before);

/* The pieces of one message, as the first walk over them has found them: a later run of the move plans them no more. */
typedef struct mgrid_kept {
  mgrid_move_piece *piece; /* [n], owned */
  size_t            n;
  bool              all; /* there are no more; false: not known yet, or too many to keep */
} mgrid_kept;

struct mgrid_move {
  mgrid_pairs      pairs;
  int64_t          rank;
  size_t           npeers;
  mgrid_move_peer *peer; /* [npeers], by rank */
  mgrid_kept *kept; /* [2 * npeers]: what is sent to each, what comes from each. Written also where the move is const */
  mgrid_move_sums sums;
};

/* The pieces of mgrid_move_pieces one after the other: what goes to a peer, comes from it, or stays. */
typedef struct mgrid_stream {
  const mgrid_move *move;
  mgrid_kept       *kept; /* of the message; NULL: of what stays */
  size_t            done; /* pieces so far */
  size_t            next; /* tensor after the one that `boxes` is of */
  mgrid_boxes       boxes;
  mgrid_move_piece  piece; /* the last one */
} mgrid_stream;
void mgrid_stream_begin(mgrid_stream *s, const mgrid_move *m, mgrid_way way, int64_t peer);
void mgrid_stream_end(mgrid_stream *s); /* also of { 0 } */
/* *more: there is another piece, s->piece. MGRID_NO_MEMORY. */
mgrid_status mgrid_stream_next(mgrid_stream *s, bool *more, mgrid_error *err);

/* What goes between each two ranks, all tensors in one: in rounds, in order of `from`, then `to`. */
typedef struct mgrid_schedule {
  size_t      n;
  mgrid_edge *edge; /* [n] */
  int64_t     rounds;
} mgrid_schedule;
/* O(messages of all ranks). MGRID_LIMIT where they are too many. */
mgrid_status mgrid_schedule_make(mgrid_schedule *s, const mgrid_pairs *p, mgrid_error *err);
void         mgrid_schedule_free(mgrid_schedule *s);
/* The round of a message, or -1. O(log messages). */
int64_t mgrid_schedule_round(const mgrid_schedule *s, int64_t from, int64_t to);

/* Sums over all ranks of one tensor, or of all as if they were one. */
typedef struct mgrid_tally {
  int64_t minimum; /* bytes that ranks need and do not have, from what they hold alone */
  int64_t sent;    /* the sum of all messages */
  int64_t stay, max_send, max_receive;
  int64_t messages, peers; /* peers: of the rank that has most */
  int64_t busiest, rounds; /* messages that a rank sends or receives at most; rounds, or -1 */
  int64_t gather;          /* bytes that would go if each rank gathered the whole and took its slice */
  int64_t crossing;        /* of `sent`, bytes that leave their machine */
} mgrid_tally;

/* Count over all ranks: tally[i] of tensor i, tally[n] of all. `each` (may be NULL) gets every
** message, by sender, then receiver, then tensor. O(messages of all ranks) time, and memory of one rank's. */
typedef void (*mgrid_each_message)(void *ud, const mgrid_message *m);
mgrid_status mgrid_pairs_tally(const mgrid_pairs *p, const mgrid_schedule *s, mgrid_tally *tally,
                               mgrid_each_message each, void *ud, mgrid_error *err);

#endif
