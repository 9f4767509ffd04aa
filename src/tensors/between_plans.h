/* SPDX-License-Identifier: MIT
**
** between_plans.h - a move between two plans: pairs of tensors, the messages of one rank, and sums
** over the messages of all ranks.
*/
#ifndef MGRID_MOVES_H
#define MGRID_MOVES_H

#include "tensors/move.h"
#include "tensors/of_plan.h"

#include <stdatomic.h>

/* The types of a tensor that is f32 in one plan and bf16 in the other. Elements are sent as bf16,
** so mgrid_pair has bf16 tensors on both sides. */
typedef struct mgrid_typing {
  const mgrid_tensor *wide; /* the plan's f32 tensor; NULL: the type does not change */
  bool before;              /* `wide` is in the plan before the move, not in the plan after it */
  mgrid_tensor *narrow;     /* `wide` as bf16; owned */
} mgrid_typing;

/* The tensors of two plans, by name. */
typedef struct mgrid_pairs {
  mgrid_plan *from, *to;      /* owned */
  mgrid_renaming names, olds; /* of the ranks of `to`, and of `from`; they own their arrays */
  int64_t ranks;              /* how many ranks the move has */
  int64_t machine;            /* ranks of a machine; 0: machines are not given */
  size_t n;
  const char **name;    /* [n]: the tensors' names in `from` */
  mgrid_pair *pair;     /* [n] */
  mgrid_typing *typing; /* [room]; NULL: no type changes */
  size_t room;          /* tensors for which the arrays have memory */
} mgrid_pairs;

mgrid_status mgrid_pairs_init(mgrid_pairs *p, const mgrid_plan *from, const mgrid_plan *to,
                              size_t n, const char *const *names, const mgrid_move_options *options,
                              mgrid_error *err);
void mgrid_pairs_free(mgrid_pairs *p);
bool mgrid_pairs_converts(const mgrid_pairs *p, size_t i);
/* Return tensor i as it is before the move, or after. */
const mgrid_tensor *mgrid_pairs_tensor(const mgrid_pairs *p, size_t i, bool before);

/* The pieces of one message; each is a box of one tensor (mgrid_move_piece). The first run of a
** move keeps them, so that later runs need not plan them again. */
typedef struct mgrid_kept {
  mgrid_move_piece *piece; /* [n], owned */
  size_t n;
  bool all; /* these are all pieces; false: no run yet, or the message has too many pieces */
} mgrid_kept;

struct mgrid_move {
  atomic_int refs;
  mgrid_pairs pairs;
  int64_t rank;
  size_t npeers;
  mgrid_move_peer *peer; /* [npeers], by rank */
  /* [2 * npeers]: for each peer, the pieces sent and the pieces received. A run writes here even if
  ** the move is const */
  mgrid_kept *kept;
  mgrid_move_sums sums;
};

/* Walks the pieces of a message, or the pieces that stay on this rank. */
typedef struct mgrid_stream {
  const mgrid_move *move;
  mgrid_kept *kept; /* where to keep the pieces; NULL: nowhere */
  size_t done;      /* how many pieces so far */
  size_t next;      /* index of the tensor that comes after the one of `boxes` */
  mgrid_boxes boxes;
  mgrid_move_piece piece; /* the last piece */
} mgrid_stream;
void mgrid_stream_begin(mgrid_stream *s, const mgrid_move *m, mgrid_way way, int64_t peer);
void mgrid_stream_end(mgrid_stream *s); /* s may also be { 0 } */
/* Go to the next piece, s->piece. *more false: none is left. */
mgrid_status mgrid_stream_next(mgrid_stream *s, bool *more, mgrid_error *err);

/* The messages between all ranks, with their rounds (mgrid_edges_colour). */
typedef struct mgrid_schedule {
  size_t n;
  mgrid_edge *edge; /* [n], by `from`, then by `to` */
  int64_t rounds;
} mgrid_schedule;
/* Make the schedule. O(messages of all ranks). MGRID_LIMIT if there are too many. */
mgrid_status mgrid_schedule_make(mgrid_schedule *s, const mgrid_pairs *p, mgrid_error *err);
void mgrid_schedule_free(mgrid_schedule *s);
/* Return the round of a message; -1: there is no such message. O(log messages). */
int64_t mgrid_schedule_round(const mgrid_schedule *s, int64_t from, int64_t to);

/* Sums over all ranks, for one tensor or for all tensors. */
typedef struct mgrid_tally {
  int64_t minimum; /* bytes that ranks need and do not hold, counted from the layouts alone */
  int64_t sent;    /* bytes of all messages */
  int64_t stay;    /* bytes that ranks need and hold */
  int64_t max_send, max_receive; /* the most bytes that a rank sends, or receives */
  int64_t messages;              /* how many */
  int64_t peers;                 /* the most peers of a rank */
  int64_t busiest;               /* the most messages that a rank sends, or receives */
  int64_t rounds;                /* -1: there is no schedule */
  /* bytes that would be sent if each rank gathered the whole tensor and then took its part */
  int64_t gather;
  int64_t crossing; /* bytes that go from one machine to another */
} mgrid_tally;

/* Replace the list by the messages of all tensors that a rank sends (if `sends`) or receives,
** sorted by sender, then receiver, then tensor. False: no memory. */
bool mgrid_pairs_messages(const mgrid_pairs *p, int64_t rank, bool sends, mgrid_messages *list);
/* Sum over all ranks: tally[i] is for tensor i, tally[n] for all tensors. s may be NULL. Time
** O(messages of all ranks), memory O(messages of one rank). */
mgrid_status mgrid_pairs_tally(const mgrid_pairs *p, const mgrid_schedule *s, mgrid_tally *tally,
                               mgrid_error *err);

#endif
