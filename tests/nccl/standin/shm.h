/* SPDX-License-Identifier: MIT
**
** shm.h - the shared memory of one communicator: a place per rank, one per pair of ranks, and
** the meetings of the ranks. All words in it are read and written under its lock; the data
** that a collective carries is written before a meeting and read after it.
*/
#ifndef STANDIN_SHM_H
#define STANDIN_SHM_H

#include "standin.h"

#include <pthread.h>
#include <stdatomic.h>

#define SHM_NAME    64
#define SHM_PAYLOAD 32768 /* of a rank, in a collective */
#define SHM_PARCEL  8192  /* of a pair, in a send */
#define SHM_CONFIG  512

/* The kinds of meetings of all ranks; each kind is counted on its own. */
enum {
  MEET_INIT,
  MEET_SPLIT,
  MEET_FIRST,
  MEET_DATA,
  MEET_END,
  MEET_WINDOW,
  MEET_SUSPEND,
  MEET_KINDS
};

/* Arguments of a collective that must be equal on all ranks. */
typedef struct shm_call {
  uint64_t number, count;
  int kind, type, op, root;
} shm_call;

typedef struct shm_slot {
  uint64_t met[MEET_KINDS];
  uint64_t machine, ids; /* hashes: of the machine, of all ids */
  int taken, used, finalized, gone;
  int leaving; /* its abort or revoke has begun */
  int dead;    /* the process has ended, or plays so */
  int pid;
  int color, key; /* of the split that is going on */
  int bus;        /* of the device, as NCCL prints it */
  uint64_t extra; /* hash of the arguments of a window or device communicator */
  shm_call call;
  char config[SHM_CONFIG];
} shm_slot;

/* From one rank to another: one parcel at a time. */
typedef struct shm_pair {
  uint64_t count, total;
  uint32_t bytes;
  int type;
  int full, sender, receiver; /* sender, receiver: has issued its first call */
} shm_pair;

typedef struct shm_head {
  pthread_mutex_t lock;
  uint32_t pulse; /* a futex: grows with every change */
  int ready, nranks, joined, used, unlinked;
  uint64_t given_up[MEET_KINDS]; /* number of the meeting that a rank has given up */
  uint64_t grown;                /* ids that ncclCommGetUniqueId has given; the last one's object */
  char grow[SHM_NAME];
  char poison[SI_TEXT]; /* why all waits here fail from now on; "": they do not */
} shm_head;

typedef struct shm {
  char name[SHM_NAME]; /* empty: none */
  shm_head *head;
  shm_slot *slot;
  shm_pair *pair;
  char *payload, *parcel;
  size_t bytes;
  int nranks, rank;
  bool child; /* its name may come again */
} shm;

/* Up to two flags that end a wait early. */
typedef struct shm_stop {
  atomic_int *flag[2];
} shm_stop;

typedef enum shm_end { SHM_OK, SHM_LATE, SHM_STOPPED, SHM_POISONED, SHM_DIED } shm_end;

/* Makes the object of a unique id; only its head is mapped. */
bool shm_make(const char *name, shm_head **head);
void shm_drop_head(const char *name, shm_head *head, bool unlink_too);

/* Joins as a rank. create: the ranks make it between them (children of a communicator).
** False with text: it is not there, the numbers differ, the rank is taken. */
bool shm_join(shm *s, const char *name, int nranks, int rank, bool create, char *text);
void shm_leave(shm *s);
/* the same, still mapped: threads may look at it at the end */
void shm_abandon(shm *s, bool at_end);
void shm_sweep(void); /* at the end of the process: the names of what failed */

/* Marks an id as used that nobody joins (the others of InitRankScalable). */
bool shm_mark_used(const char *name);

void shm_lock(shm *s);
void shm_unlock(shm *s);
void shm_changed(shm *s); /* under the lock */
void shm_wake(shm *s);

/* Under the lock: waits for a change until the time `until`. Returns why not to wait on. */
shm_end shm_wait(shm *s, double until, shm_stop stop);

/* Make all waits here fail from now on; the first reason stays. A meeting that is complete still
** counts for a rank that has not noticed yet, unless some rank has given it up. */
void shm_poison(shm *s, const char *text);
void shm_reason(shm *s, char *text); /* under the lock: why */

/* Says that this rank is at its next meeting of the kind; returns its number. */
uint64_t shm_arrive(shm *s, int kind);

/* Has this rank's process ended? */
bool shm_is_dead(const shm_slot *slot);

/* Waits until all ranks are at the meeting; text: who is missing, or the poison. SHM_DIED: only of
** MEET_DATA. */
shm_end shm_await(shm *s, int kind, uint64_t number, shm_stop stop, char *text);
shm_end shm_meet(shm *s, int kind, shm_stop stop, char *text);

uint64_t si_hash(uint64_t h, const void *data, size_t n);

static inline shm_pair *shm_pair_of(shm *s, int from, int to) {
  return &s->pair[(size_t)from * s->nranks + to];
}
static inline char *shm_payload_of(shm *s, int rank) {
  return s->payload + (size_t)rank * SHM_PAYLOAD;
}
static inline char *shm_parcel_of(shm *s, int from, int to) {
  return s->parcel + ((size_t)from * s->nranks + to) * SHM_PARCEL;
}

/* "/mg-standin-", and the first letters of STANDIN_TAG: whose the objects are. Its length. */
size_t shm_prefix(char *name, size_t room);

#endif
