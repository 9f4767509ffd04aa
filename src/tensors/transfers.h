/* SPDX-License-Identifier: MIT
**
** transfers.h - carries the messages of a move.
**
** A lane is a message sent to one peer or received from it. Its buffer has two halves, so that one chunk is packed
** while the other is in transit. These buffers are the whole window: a half is window / (2 x lanes), with the lanes of
** the busiest rank of the job, which all ranks learn when they agree. So every lane can always continue, there is no
** cyclic wait, and both sides cut the same chunks. With rounds a rank has one lane in each direction at a time.
**
** Where all that ranks post at once must match (NCCL's groups), lanes go in step: chunk i of each lane is in step i on
** both sides. So each step waits only for the same step of other ranks, and for earlier ones.
*/
#ifndef MGRID_LANES_H
#define MGRID_LANES_H

#include "tensors/chunks.h"

enum { MGRID_HALF_LEAST = 64 }; /* bytes of a half */

typedef struct mgrid_lane mgrid_lane;

/* A move being carried out; starts as { .move, .backend, .ops, .from, .to }. */
typedef struct mgrid_running {
  const mgrid_move          *move;
  mgrid_backend             *backend;
  const mgrid_transport_ops *ops;
  char                     **from, **to; /* [tensors] */
  size_t                     nlanes, left;
  mgrid_lane                *lane; /* senders first; each direction by round */
  size_t                     nsend;
  char                      *staging;
  int                       *ended; /* [2 * nlanes], from ops->look */
  mgrid_post                *step;  /* [nlanes], posted at once */
  mgrid_rows                *boxes; /* [MGRID_BOXES_MAX], of the chunk planned last */
  mgrid_error               *err;
} mgrid_running;

/* As mgrid_move_run. *begun: messages may have been sent, so that after a failure something may still write to `to`. */
mgrid_status mgrid_move_begin(const mgrid_move *m, mgrid_backend *b, const mgrid_buffer *from, const mgrid_buffer *to,
                              const mgrid_move_run_options *options, bool *begun, mgrid_error *err);
/* Make lanes, and at most `window` bytes of memory, for the messages of this rank; `lanes`: those of the busiest rank. */
mgrid_outcome mgrid_lanes_new(mgrid_running *r, int64_t window, int64_t lanes, mgrid_error *err);
/* Carry everything, and copy what stays on this rank. Fail after `seconds` without progress; 0: never. Errors go to
** r->err. */
mgrid_outcome mgrid_lanes_run(mgrid_running *r, double seconds);
/* Free the lanes. `ours`: nobody uses their memory any more. There may be none. */
void mgrid_lanes_free(mgrid_running *r, bool ours);
/* Return the backend's carrier, which notifies peers that this rank gives up; NULL: it has none. */
mgrid_backend *mgrid_running_carrier(const mgrid_running *r);

#endif
