/* SPDX-License-Identifier: MIT
**
** carrier.h - shared by the files of a carrier: a backend over an mgrid_carrier, whose functions
** are the host's or those of pmix.c. Calls go in one direction: carrier.c -> call.c ->
** carrier_messages.c.
*/
#ifndef MGRID_COMM_CARRIER_H
#define MGRID_COMM_CARRIER_H

#include "comm/backend.h"

/* How many messages with one tag went to, or came from, a rank in this phase. The count
** distinguishes them. */
typedef struct mgrid_ordinal {
  uint64_t which; /* direction, tag, rank */
  uint64_t count;
} mgrid_ordinal;

typedef struct mgrid_relay {
  mgrid_backend base; /* first: ops get a pointer to it */
  mgrid_carrier host; /* the host's functions */
  double seconds;     /* deadline of a call over all ranks */
  uint64_t opened;    /* how many backends over this store were opened before; part of the keys */
  uint64_t calls;     /* calls over all ranks so far; identical on all ranks */
  uint64_t phase;     /* of messages between two ranks: mgrid_carrier_ops.phase */
  uint64_t *words;    /* [8 * (world + 1)]: memory for calls, so that a verdict need not allocate */
  bool broken;        /* a call over all ranks did not end, so make no other */
  mgrid_ordinal *ordinal; /* [room]; those of this phase come first */
  size_t ordinals, room;
  /* Notices: how many this rank sent; the last one that it received. Below: when to look again, and
  ** at which rank. */
  uint64_t tells, told[2];
  double look;
  int64_t next;
} mgrid_relay;

/* Tags of the library's own messages, above the tags of communicators. */
enum { MGRID_TAG_UP = 32768, MGRID_TAG_DOWN, MGRID_TAG_ROOT, MGRID_TAG_NOTICE, MGRID_TAG_BYE };

/* Send a message to a rank (carrier_messages.c). `number`, which is of a call or a phase, and the
** tag identify it. Two ranks use such a pair once, or count its messages in nth. */
mgrid_status mgrid_relay_post(mgrid_relay *m, uint64_t number, int tag, uint64_t nth, int64_t to,
                              const void *data, size_t bytes, double seconds, mgrid_error *err);
/* Wait for a message from a rank. MGRID_LATE: mgrid_now() reached `until`. With `who`, also watch
** for notices. MGRID_GAVE_UP: rank *who gave up. */
mgrid_outcome mgrid_relay_take(mgrid_relay *m, uint64_t number, int tag, uint64_t nth, int64_t from,
                               void *data, size_t bytes, double until, int64_t *who,
                               mgrid_error *err);
/* count how many backends used this store before */
mgrid_status mgrid_relay_enter(mgrid_relay *m, mgrid_error *err);
/* Report an error of the host's function `call`. */
mgrid_status mgrid_relay_failed(mgrid_relay *m, mgrid_status s, const char *call, mgrid_error *err);
/* The next functions are for mgrid_carrier_ops. */
mgrid_outcome mgrid_relay_send(mgrid_backend *b, int64_t to, int tag, const void *data,
                               size_t bytes, double seconds, mgrid_error *err);
mgrid_outcome mgrid_relay_recv(mgrid_backend *b, int64_t from, int tag, void *data, size_t bytes,
                               double seconds, mgrid_error *err);
void mgrid_relay_tell(mgrid_backend *b, int64_t to);
int64_t mgrid_relay_heard(mgrid_backend *b);
void mgrid_relay_phase(mgrid_backend *b, uint64_t number);

/* Calls over all ranks, with a deadline (call.c). */
mgrid_status mgrid_relay_allreduce(mgrid_backend *b, uint64_t *words, size_t n, mgrid_error *err);
mgrid_status mgrid_relay_allgather(mgrid_backend *b, const void *mine, void *all, size_t bytes,
                                   mgrid_error *err);
mgrid_status mgrid_relay_bcast(mgrid_backend *b, void *data, size_t bytes, int64_t root,
                               mgrid_error *err);
/* Wait until all ranks leave, at most a few seconds. After that the others may go. Rank 0 also
** waits until they have read this, because the store may belong to it. */
void mgrid_relay_leave(mgrid_relay *m, double seconds);

#endif
