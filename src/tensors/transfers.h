/* SPDX-License-Identifier: MIT
**
** transfers.h - what carries the messages of a move.
**
** A lane is what goes to one peer or comes from it. It has two halves of a buffer, so that one parcel is packed while
** the other is on its way, and these are all of the window: a half is window / (2 x lanes), with the lanes of the
** busiest rank of the job, which all ranks learn when they agree. So every lane can always go on, nothing waits in a
** circle, and both sides cut parcels alike. With rounds a rank has one lane in each direction at a time.
**
** Where what all ranks post at once must fit together (NCCL's groups), lanes go in step: parcel i of each lane is in step
** i on both its sides, so each step waits only for the same one of other ranks, and for earlier ones.
*/
#ifndef MGRID_LANES_H
#define MGRID_LANES_H

#include "tensors/peer_memory.h"

enum { MGRID_HALF_LEAST = 64 }; /* bytes of a half */

typedef struct mgrid_lane mgrid_lane;

/* A move on its way; begins as { .move, .backend, .ops, .from, .to }. */
typedef struct mgrid_running {
  const mgrid_move          *move;
  mgrid_backend             *backend;
  const mgrid_transport_ops *ops;
  char                     **from, **to; /* [tensors] */
  size_t                     nlanes, left;
  mgrid_lane                *lane; /* senders first; each sort by round */
  size_t                     nsend;
  char                      *staging;
  mgrid_read                *read;         /* what is read of ranks of this host, in no lane: peer_memory.h */
  int64_t                   *reads;        /* [nreads], of whom */
  size_t                     nreads, done; /* done: so many of them */
  bool                       news;         /* some was read since ops->look */
  int                       *ended;        /* [2 * nlanes], of ops->look */
  mgrid_post                *step;         /* [nlanes], what is posted at once */
  mgrid_error               *err;
} mgrid_running;

/* Lanes and memory of at most `window` bytes for the messages of this rank; `lanes`: of the busiest rank. What ranks of
** this host have to be read is in no lane, unless `messages`. */
mgrid_outcome mgrid_lanes_new(mgrid_running *r, int64_t window, bool messages, int64_t lanes, mgrid_error *err);
/* Carry all of it, and what stays on this rank; `seconds` without progress are too long, 0: never. Errors go to r->err. */
mgrid_outcome mgrid_lanes_run(mgrid_running *r, double seconds);
/* `ours`: nobody uses their memory any more. Also of none. */
void mgrid_lanes_free(mgrid_running *r, bool ours);
/* The carrier of the backend, which tells peers that this rank gives up; NULL: it has none. */
mgrid_backend *mgrid_running_carrier(const mgrid_running *r);

#endif
