/* SPDX-License-Identifier: MIT
**
** peer_memory.h - moves between ranks of one host without messages. Long rows are read out of the memory of another process
** straight to where they belong (process_vm_readv), so that each byte is copied once. Short ones, which would cost more
** that way than two copies, are packed by their sender in memory that both share.
**
** Each rank has a board in a file in memory, which those near to it have mapped. Before the ranks meet at the begin of a
** move it says there where its parts are, and for each of these ranks where its packed rows are, or that all goes by
** messages. So the meeting says that all boards are of this move, and the verdict at its end that all have read: no
** further word is needed. A rank that gives up takes its board down before it returns, and who has read a message looks at
** the board once more: if it is still of this move, what was read is what was there.
*/
#ifndef MGRID_READS_H
#define MGRID_READS_H

#include "tensors/parcels.h"

/* Of a backend: its board, and the ranks that it reads and that read it: of this host, this user and these process ids.
** All of a job do, or none does. */
typedef struct mgrid_reading mgrid_reading;
/* Local, before the first move agrees; nothing in later ones. */
mgrid_status   mgrid_reading_new(mgrid_backend *b, mgrid_error *err);
mgrid_reading *mgrid_reading_of(const mgrid_backend *b); /* NULL before the first move */
/* Has the job found out who reads whom, and does anybody? */
bool mgrid_reading_found(const mgrid_reading *r);
bool mgrid_reading_on(const mgrid_reading *r); /* r may be NULL */

typedef struct mgrid_offer {
  const mgrid_move *move;
  char *const      *part;   /* [tensors], as they are before the move */
  int64_t           window; /* of the move */
} mgrid_offer;
/* Let others read what the move sends to them, as far as there is memory for what is packed. Local, before the ranks meet;
** nothing where they do not read. */
void mgrid_reading_offer(mgrid_backend *b, const mgrid_offer *o);
/* In the first move of a backend, after its meeting, find out who can read whom, and offer. Collective. */
mgrid_status mgrid_reading_find(mgrid_backend *b, const mgrid_offer *o, mgrid_error *err);
/* Nothing may be read from now on; also NULL. */
void mgrid_reading_end(mgrid_reading *r);
/* Bytes of the window of a move that are for what is packed so; equal on all ranks. */
int64_t mgrid_reading_room(const mgrid_backend *b, int64_t window);
/* Does that rank read what this one has for it? Else it gets messages. */
bool mgrid_reading_offered(const mgrid_reading *r, int64_t peer);

/* Reads one message after the other. */
typedef struct mgrid_read mgrid_read;
mgrid_read               *mgrid_read_new(const mgrid_move *m, mgrid_backend *b, char *const *to, mgrid_error *err);
void                      mgrid_read_free(mgrid_read *r);
/* *reads: is what that rank has for this one to be read? MGRID_GAVE_UP where it is not in the move any more. */
mgrid_outcome mgrid_read_ask(mgrid_read *r, int64_t peer, bool *reads, mgrid_error *err);
/* Read some MiB of the message of that rank, until there is no more. */
mgrid_outcome mgrid_read_some(mgrid_read *r, int64_t peer, bool *more, mgrid_error *err);

/* Whether one process may read another of its user, without a backend: this one makes a trial (NULL: errno), a child that has
** it by fork takes it, without memory of its own, and this one ends it. Returns errno of what it tried; -1: it has not.
** A child may read its parent where ranks, none of which is another's parent, may read each other. */
typedef struct mgrid_trial mgrid_trial;
mgrid_trial               *mgrid_trial_new(void);
void                       mgrid_trial_take(mgrid_trial *t);
int                        mgrid_trial_end(mgrid_trial *t);

#endif
