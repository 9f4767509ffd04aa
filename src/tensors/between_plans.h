/* SPDX-License-Identifier: MIT
**
** between_plans.h - a move between two plans: the pairs of tensors, the messages of one rank, and
** of all ranks for a survey.
*/
#ifndef MGRID_MOVES_H
#define MGRID_MOVES_H

#include "tensors/move.h"
#include "tensors/of_plan.h"

#include <stdatomic.h>

/* A tensor whose type changes. `wide` is it on the side of the wider type; the pair holds `narrow`
** instead, because elements are sent in the narrower type. */
typedef struct mgrid_typing {
  const mgrid_tensor *wide; /* the plan's tensor; NULL: the type does not change */
  bool before;              /* `wide` is of the plan before the move, else after */
  mgrid_tensor *narrow;     /* owned: `wide` in the type of the other side */
} mgrid_typing;

/* The tensors of two plans, by name. */
typedef struct mgrid_pairs {
  mgrid_plan *from, *to;      /* owned */
  mgrid_renaming names, olds; /* of ranks of `to`, of `from`; owned arrays */
  int64_t ranks;              /* number of ranks of the move */
  int64_t machine;            /* ranks of a machine; 0: not given */
  size_t n;
  const char **name;    /* [n], of `from` */
  mgrid_pair *pair;     /* [n] */
  mgrid_typing *typing; /* [room]; NULL: no type changes */
  size_t room;
} mgrid_pairs;

mgrid_status mgrid_pairs_init(mgrid_pairs *p, const mgrid_plan *from, const mgrid_plan *to,
                              size_t n, const char *const *names, const mgrid_move_options *options,
                              mgrid_error *err);
void mgrid_pairs_free(mgrid_pairs *p);
/* Return whether the type of tensor i changes. */
bool mgrid_pairs_converts(const mgrid_pairs *p, size_t i);
/* Return tensor i as it is before the move, or after. */
const mgrid_tensor *mgrid_pairs_tensor(const mgrid_pairs *p, size_t i, bool before);

/* The pieces of one message, kept by the first walk over them, so that later runs of the move do
** not plan them again. */
typedef struct mgrid_kept {
  mgrid_move_piece *piece; /* [n], owned */
  size_t n;
  bool all; /* the list is complete; false: not known yet, or too many to keep */
} mgrid_kept;

struct mgrid_move {
  atomic_int refs;
  mgrid_pairs pairs;
  int64_t rank;
  size_t npeers;
  mgrid_move_peer *peer; /* [npeers], by rank */
  /* [2 * npeers]: sent to each peer, received from each. Written even through a const move */
  mgrid_kept *kept;
  mgrid_move_sums sums;
};

/* Walks the pieces of mgrid_move_pieces: those sent to a peer, received from it, or that stay. */
typedef struct mgrid_stream {
  const mgrid_move *move;
  mgrid_kept *kept; /* of the message; NULL: of what stays */
  size_t done;      /* pieces so far */
  size_t next;      /* the tensor after that of `boxes` */
  mgrid_boxes boxes;
  mgrid_move_piece piece; /* the last one */
} mgrid_stream;
void mgrid_stream_begin(mgrid_stream *s, const mgrid_move *m, mgrid_way way, int64_t peer);
void mgrid_stream_end(mgrid_stream *s); /* also of { 0 } */
/* Go to the next piece, s->piece. *more: there is one. MGRID_NO_MEMORY. */
mgrid_status mgrid_stream_next(mgrid_stream *s, bool *more, mgrid_error *err);

/* The messages between all ranks, all tensors of a message in one, by `from`, then `to`; each with
** its round. */
typedef struct mgrid_schedule {
  size_t n;
  mgrid_edge *edge; /* [n] */
  int64_t rounds;
} mgrid_schedule;
/* Make the schedule. O(messages of all ranks). MGRID_LIMIT if there are too many. */
mgrid_status mgrid_schedule_make(mgrid_schedule *s, const mgrid_pairs *p, mgrid_error *err);
void mgrid_schedule_free(mgrid_schedule *s);
/* Return the round of a message, or -1. O(log messages). */
int64_t mgrid_schedule_round(const mgrid_schedule *s, int64_t from, int64_t to);

/* Sums over all ranks for one tensor, or for all together. */
typedef struct mgrid_tally {
  int64_t minimum; /* bytes that ranks need and do not hold, from the layouts only */
  int64_t sent;    /* the sum of all messages */
  int64_t stay, max_send, max_receive;
  int64_t messages, peers; /* peers: those of the rank with most */
  int64_t busiest, rounds; /* messages that a rank sends or receives at most; rounds, or -1 */
  int64_t gather; /* bytes that would be sent if each rank gathered the whole and took its slice */
  int64_t crossing; /* of `sent`, bytes that leave their machine */
} mgrid_tally;

/* List the messages that a rank sends (else receives), of all tensors, by sender, then receiver,
** then tensor, in place of what the list has. False: no memory. */
bool mgrid_pairs_messages(const mgrid_pairs *p, int64_t rank, bool sends, mgrid_messages *list);
/* Sum over all ranks: tally[i] for tensor i, tally[n] for all. O(messages of all ranks) time;
** memory for those of one rank. */
mgrid_status mgrid_pairs_tally(const mgrid_pairs *p, const mgrid_schedule *s, mgrid_tally *tally,
                               mgrid_error *err);

#endif
