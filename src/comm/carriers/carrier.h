/* SPDX-License-Identifier: MIT
**
** carrier.h - what the files of a carrier share: the backend over an mgrid_carrier, whose functions are the host's
** or those of pmix.c. Calls go one way: carrier.c -> call.c -> talk.c.
*/
#ifndef MGRID_COMM_CARRIER_H
#define MGRID_COMM_CARRIER_H

#include "comm/backend.h"

/* How often a message went to or came from a rank under one tag in this phase, which tells equal ones apart. */
typedef struct mgrid_ordinal {
  uint64_t which; /* direction, tag, rank */
  uint64_t count;
} mgrid_ordinal;

typedef struct mgrid_relay {
  mgrid_backend  base;    /* first: ops get a pointer to it */
  mgrid_carrier  host;    /* its functions */
  double         seconds; /* a call over all ranks may take */
  uint64_t       opened;  /* backends over this store before this one: a part of the keys */
  uint64_t       calls;   /* calls over all ranks so far; equal on all ranks */
  uint64_t       phase;   /* of messages between two ranks: mgrid_carrier_ops.phase */
  uint64_t      *words;   /* [8 * (world + 1)], memory of calls, so that a verdict needs none */
  bool           broken;  /* a call over all ranks did not end: make no more */
  mgrid_ordinal *ordinal; /* [room], those of this phase first */
  size_t         ordinals, room;
  /* Notices: how many this rank gave, the last one heard; when to look again, and at whom. */
  uint64_t tells, told[2];
  double   look;
  int64_t  next;
} mgrid_relay;

/* Tags of the library's own, above those of communicators. */
enum { MGRID_TAG_UP = 32768, MGRID_TAG_DOWN, MGRID_TAG_ROOT, MGRID_TAG_NOTICE, MGRID_TAG_BYE };

/* talk.c: a message between two ranks. `number` (a call, or a phase) and tag tell which one it is; both sides
** use them once, or else count in nth. */
mgrid_status mgrid_relay_post(mgrid_relay *m, uint64_t number, int tag, uint64_t nth, int64_t to, const void *data,
                              size_t bytes, double seconds, mgrid_error *err);
/* Wait until mgrid_now() is `until`, then MGRID_LATE. who: listen as well; MGRID_GAVE_UP if rank *who gave up. */
mgrid_outcome mgrid_relay_take(mgrid_relay *m, uint64_t number, int tag, uint64_t nth, int64_t from, void *data,
                               size_t bytes, double until, int64_t *who, mgrid_error *err);
mgrid_status  mgrid_relay_enter(mgrid_relay *m, mgrid_error *err); /* how many backends used this store before */
/* An error of the host's function `call`. */
mgrid_status mgrid_relay_failed(mgrid_relay *m, mgrid_status s, const char *call, mgrid_error *err);
/* For mgrid_carrier_ops. */
mgrid_outcome mgrid_relay_send(mgrid_backend *b, int64_t to, int tag, const void *data, size_t bytes, double seconds,
                               mgrid_error *err);
mgrid_outcome mgrid_relay_recv(mgrid_backend *b, int64_t from, int tag, void *data, size_t bytes, double seconds,
                               mgrid_error *err);
void          mgrid_relay_tell(mgrid_backend *b, int64_t to);
int64_t       mgrid_relay_heard(mgrid_backend *b);
void          mgrid_relay_phase(mgrid_backend *b, uint64_t number);

/* call.c: calls over all ranks, with a deadline. */
mgrid_status mgrid_relay_allreduce(mgrid_backend *b, uint64_t *words, size_t n, mgrid_error *err);
mgrid_status mgrid_relay_allgather(mgrid_backend *b, const void *mine, void *all, size_t bytes, mgrid_error *err);
mgrid_status mgrid_relay_bcast(mgrid_backend *b, void *data, size_t bytes, int64_t root, mgrid_error *err);
/* Wait until all ranks leave, some seconds at most; then the others are free, and rank 0 waits until they have read
** that, as the store may be its own. */
void mgrid_relay_leave(mgrid_relay *m, double seconds);

#endif
