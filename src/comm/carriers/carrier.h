/* SPDX-License-Identifier: MIT
**
** carrier.h - shared by the files of a carrier: the backend over an mgrid_carrier, whose functions
** are the host's or those of pmix.c. Calls go in one direction: carrier.c -> call.c -> carrier_messages.c.
*/
#ifndef MGRID_COMM_CARRIER_H
#define MGRID_COMM_CARRIER_H

#include "comm/backend.h"

/* Counts the messages to or from a rank under one tag in this phase, to distinguish them. */
typedef struct mgrid_ordinal {
  uint64_t which; /* direction, tag, rank */
  uint64_t count;
} mgrid_ordinal;

typedef struct mgrid_relay {
  mgrid_backend base; /* first: ops get a pointer to it */
  mgrid_carrier host; /* the host's functions */
  double seconds;     /* deadline of a call over all ranks */
  uint64_t opened;    /* backends over this store before this one; part of the keys */
  uint64_t calls;     /* calls over all ranks so far; identical on all ranks */
  uint64_t phase;     /* of messages between two ranks: mgrid_carrier_ops.phase */
  uint64_t *words;    /* [8 * (world + 1)], memory for calls, so that a verdict allocates nothing */
  bool broken;        /* a call over all ranks did not end: make no other */
  mgrid_ordinal *ordinal; /* [room], first those of this phase */
  size_t ordinals, room;
  /* Notices: how many this rank sent, the last one received; when to look again, and at which
  ** rank. */
  uint64_t tells, told[2];
  double look;
  int64_t next;
} mgrid_relay;

/* Tags of the library's own, above those of communicators. */
enum { MGRID_TAG_UP = 32768, MGRID_TAG_DOWN, MGRID_TAG_ROOT, MGRID_TAG_NOTICE, MGRID_TAG_BYE };

/* carrier_messages.c: a message between two ranks, identified by `number` (of a call or a phase) and tag.
** Both sides use a pair once, or count in nth. */
mgrid_status mgrid_relay_post(mgrid_relay *m, uint64_t number, int tag, uint64_t nth, int64_t to,
                              const void *data, size_t bytes, double seconds, mgrid_error *err);
/* Wait; MGRID_LATE when mgrid_now() reaches `until`. With `who` also watch for notices:
** MGRID_GAVE_UP if rank *who gave up. */
mgrid_outcome mgrid_relay_take(mgrid_relay *m, uint64_t number, int tag, uint64_t nth, int64_t from,
                               void *data, size_t bytes, double until, int64_t *who,
                               mgrid_error *err);
/* count the backends that used this store before */
mgrid_status mgrid_relay_enter(mgrid_relay *m, mgrid_error *err);
/* Report an error of the host's function `call`. */
mgrid_status mgrid_relay_failed(mgrid_relay *m, mgrid_status s, const char *call, mgrid_error *err);
/* For mgrid_carrier_ops. */
mgrid_outcome mgrid_relay_send(mgrid_backend *b, int64_t to, int tag, const void *data,
                               size_t bytes, double seconds, mgrid_error *err);
mgrid_outcome mgrid_relay_recv(mgrid_backend *b, int64_t from, int tag, void *data, size_t bytes,
                               double seconds, mgrid_error *err);
void mgrid_relay_tell(mgrid_backend *b, int64_t to);
int64_t mgrid_relay_heard(mgrid_backend *b);
void mgrid_relay_phase(mgrid_backend *b, uint64_t number);

/* call.c: calls over all ranks, with a deadline. */
mgrid_status mgrid_relay_allreduce(mgrid_backend *b, uint64_t *words, size_t n, mgrid_error *err);
mgrid_status mgrid_relay_allgather(mgrid_backend *b, const void *mine, void *all, size_t bytes,
                                   mgrid_error *err);
mgrid_status mgrid_relay_bcast(mgrid_backend *b, void *data, size_t bytes, int64_t root,
                               mgrid_error *err);
/* Wait until all ranks leave, a few seconds at most. Then the others may go; rank 0 waits until
** they have read that, because it may own the store. */
void mgrid_relay_leave(mgrid_relay *m, double seconds);

#endif
