/* SPDX-License-Identifier: MIT
**
** carrier.h - shared by the files of a backend over an mgrid_carrier, whose functions are the
** host's or those of pmix.c. The files call each other in one direction: carrier.c -> call.c ->
** carrier_messages.c.
*/
#ifndef MGRID_COMM_CARRIER_H
#define MGRID_COMM_CARRIER_H

#include "comm/backend.h"

/* How many messages with one tag went to a rank, or came from it, in this phase. The count is a
** part of their keys. */
typedef struct mgrid_ordinal {
  uint64_t which; /* direction, tag, rank */
  uint64_t count;
} mgrid_ordinal;

typedef struct mgrid_relay {
  mgrid_backend base; /* first: ops get a pointer to it */
  mgrid_carrier host; /* the host's functions */
  double seconds;     /* deadline of a call over all ranks */
  uint64_t opened;    /* how many backends this store had before; part of the keys */
  uint64_t calls;     /* calls over all ranks so far; identical on all ranks */
  uint64_t phase;     /* of messages between two ranks: mgrid_carrier_ops.phase */
  uint64_t *words;    /* [8 * (world + 1)]: memory for calls, so that a verdict need not allocate */
  bool broken;        /* a call over all ranks did not end, so make no other */
  mgrid_ordinal *ordinal; /* [room], of which `ordinals` are in use in this phase */
  size_t ordinals, room;
  uint64_t tells;   /* how many notices this rank has sent */
  uint64_t told[2]; /* the last notice that it received */
  double look;      /* when to look for notices again */
  int64_t next;     /* the rank to ask first then */
} mgrid_relay;

/* Tags of the library's own messages, above the tags of communicators. */
enum { MGRID_TAG_UP = 32768, MGRID_TAG_DOWN, MGRID_TAG_ROOT, MGRID_TAG_NOTICE, MGRID_TAG_BYE };

/* Send a message to a rank (carrier_messages.c). The number of the call or phase, the tag, and nth
** identify it between two ranks. */
mgrid_status mgrid_relay_post(mgrid_relay *m, uint64_t number, int tag, uint64_t nth, int64_t to,
                              const void *data, size_t bytes, double seconds, mgrid_error *err);
/* Wait for a message from a rank. MGRID_LATE: mgrid_now() reached `until`. who: look for notices,
** too; MGRID_GAVE_UP: rank *who gave up. */
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
/* Before the backend closes, wait until all ranks leave, at most a few seconds. Rank 0 waits for
** the others once more, because its process may hold the store from which they read that. */
void mgrid_relay_leave(mgrid_relay *m, double seconds);

#endif
