/* SPDX-License-Identifier: MIT
**
** carrier.h - shared by the files of a backend over an mgrid_carrier. The carrier's functions are
** those of the host, or of pmix.c. The files call each other in one direction: carrier.c -> call.c
** -> carrier_messages.c.
*/
#ifndef MGRID_COMM_CARRIER_H
#define MGRID_COMM_CARRIER_H

#include "comm/backend.h"

/* How many messages with one tag went to a rank, or came from it, in this phase. The key of a
** message contains the count. */
typedef struct mgrid_ordinal {
  uint64_t which; /* direction, tag, rank */
  uint64_t count;
} mgrid_ordinal;

typedef struct mgrid_relay {
  mgrid_backend base; /* first: ops get a pointer to it */
  mgrid_carrier host; /* the host's functions */
  double seconds;     /* deadline of a call over all ranks */
  /* how many backends this rank had opened before over the store (moongrid_carrier.h); part of the
  ** keys of messages */
  uint64_t opened;
  uint64_t calls; /* calls over all ranks so far; identical on all ranks */
  uint64_t phase; /* of messages between two ranks: mgrid_carrier_ops.phase */
  /* [8 * (world + 1)]: memory for calls over all ranks, so that a verdict allocates nothing */
  uint64_t *words;
  bool broken;            /* a call over all ranks failed, so no other is made */
  mgrid_ordinal *ordinal; /* [room], of which `ordinals` are in use in this phase */
  size_t ordinals, room;
  uint64_t tells;   /* how many notices this rank has sent */
  uint64_t told[2]; /* the last notice that this rank received: its `from` and `count` */
  double look;      /* when to look for notices again */
  int64_t next;     /* at the next look: the first rank to ask */
} mgrid_relay;

/* Tags of the library's own messages, above the tags of communicators. */
enum { MGRID_TAG_UP = 32768, MGRID_TAG_DOWN, MGRID_TAG_ROOT, MGRID_TAG_NOTICE, MGRID_TAG_BYE };

/* Send a message to a rank (carrier_messages.c). Between two ranks, `number` (of the call or
** phase), tag and nth identify the message. */
mgrid_status mgrid_relay_post(mgrid_relay *m, uint64_t number, int tag, uint64_t nth, int64_t to,
                              const void *data, size_t bytes, double seconds, mgrid_error *err);
/* Wait for a message from a rank. MGRID_LATE: mgrid_now() reached `until`. If `who` is not NULL,
** also look for notices; MGRID_GAVE_UP: rank *who gave up. */
mgrid_outcome mgrid_relay_take(mgrid_relay *m, uint64_t number, int tag, uint64_t nth, int64_t from,
                               void *data, size_t bytes, double until, int64_t *who,
                               mgrid_error *err);
/* Set m->opened. */
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
/* Before the backend closes, wait until all ranks close theirs, at most a few times `seconds`.
** Without an all-gather of the host, rank 0 then waits for a last message of each other rank,
** because its process may hold the store from which they still read. */
void mgrid_relay_leave(mgrid_relay *m, double seconds);

#endif
