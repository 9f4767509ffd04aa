/* SPDX-License-Identifier: MIT
**
** peer_memory.h - moves between ranks of one host without messages. Long rows are read from the memory of another
** process directly to their place (process_vm_readv), so each byte is copied once. Short rows would cost more that way
** than two copies. Their sender packs them in shared memory.
**
** Each rank has a board in a file in memory, which the ranks of its group have mapped. Before the rendezvous of a move
** it writes there where its parts are, and for each of these ranks where its packed rows are, or that everything goes
** by messages. So after the rendezvous all boards are of this move, and after the verdict at its end all have read: no
** other message is needed. A rank that gives up clears its board before it returns. A rank that has read a message
** checks the board again: if it is still of this move, the data was valid.
*/
#ifndef MGRID_PEER_MEMORY_H
#define MGRID_PEER_MEMORY_H

#include "tensors/chunks.h"

/* For a backend: its board, and its group, the ranks that it reads and that read it. They share host, user and process
** ids. All ranks of a job read, or none. */
typedef struct mgrid_reading mgrid_reading;
/* Attach one before the first move agrees; do nothing in later ones. Local. */
mgrid_status   mgrid_reading_new(mgrid_backend *b, mgrid_error *err);
mgrid_reading *mgrid_reading_of(const mgrid_backend *b); /* NULL before the first move */
/* Return whether the job has found out who can read whom. */
bool mgrid_reading_found(const mgrid_reading *r);
bool mgrid_reading_on(const mgrid_reading *r); /* whether ranks read; r may be NULL */

typedef struct mgrid_offer {
  const mgrid_move *move;
  char *const      *part;   /* [tensors], before the move */
  int64_t           window; /* of the move */
} mgrid_offer;
/* Let the group read what the move sends to it, as far as memory for packing lasts. Local, before the rendezvous. Do
** nothing if ranks do not read. */
void mgrid_reading_offer(mgrid_backend *b, const mgrid_offer *o);
/* In the first move of a backend, after its rendezvous: find out who can read whom, and offer. Collective. */
mgrid_status mgrid_reading_find(mgrid_backend *b, const mgrid_offer *o, mgrid_error *err);
/* Let nobody read from now on. r may be NULL. */
void mgrid_reading_end(mgrid_reading *r);
/* Return the bytes of a move's window that are for packing; identical on all ranks. */
int64_t mgrid_reading_room(const mgrid_backend *b, int64_t window);
/* Return whether that rank reads what this one sends to it. Else it gets messages. */
bool mgrid_reading_offered(const mgrid_reading *r, int64_t peer);

/* Reads messages, one at a time. */
typedef struct mgrid_read mgrid_read;
mgrid_read               *mgrid_read_new(const mgrid_move *m, mgrid_backend *b, char *const *to, mgrid_error *err);
void                      mgrid_read_free(mgrid_read *r);
/* *reads: whether the message from that rank is to be read. MGRID_GAVE_UP if that rank is no longer in the move. */
mgrid_outcome mgrid_read_ask(mgrid_read *r, int64_t peer, bool *reads, mgrid_error *err);
/* Read about a MiB of the message from that rank. *more: there is more to read. */
mgrid_outcome mgrid_read_some(mgrid_read *r, int64_t peer, bool *more, mgrid_error *err);

/* Find out without a backend whether a process may read another of its user. This process makes a trial (NULL: errno).
** A forked child takes it, without allocating. This process ends it, and gets the errno of the attempt; -1: the child
** made none. The kernel lets a child read its parent if it lets ranks, none of which is another's parent, read each
** other. */
typedef struct mgrid_trial mgrid_trial;
mgrid_trial               *mgrid_trial_new(void);
void                       mgrid_trial_take(mgrid_trial *t);
int                        mgrid_trial_end(mgrid_trial *t);

#endif
