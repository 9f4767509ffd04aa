/* SPDX-License-Identifier: MIT
**
** comm.h - what the files of the stand-in libnccl share: communicators, groups, errors.
**
** Two locks. si_lock() guards the communicators of this process; the lock of shm.h guards the
** shared memory of one. A thread that holds the second never takes the first.
*/
#ifndef STANDIN_COMM_H
#define STANDIN_COMM_H

#include "shm.h"

#include <nccl.h>

/* nccl.h declares them without a prototype. */
ncclResult_t ncclGroupStart(void);
ncclResult_t ncclGroupEnd(void);

typedef struct si_group si_group;

typedef enum si_life { LIFE_MAKING, LIFE_LIVE, LIFE_DEAD } si_life;

/* Progress of this rank towards the first use of a communicator, at which all ranks meet. */
typedef enum si_first { FIRST_NONE, FIRST_SAID, FIRST_HELD } si_first;

/* Never freed: a communicator that is used after its destruction can be reported as that. */
struct ncclComm {
  ncclComm_t next;
  shm seg;
  si_life life;
  int nranks, rank, device;
  ncclConfig_t config;
  char *net_name;
  char config_text[SHM_CONFIG];
  char name[64];         /* the caller's commName as it was at creation */
  const char *name_kept; /* the caller's pointer: NCCL keeps it, so the string must stay valid */
  uint64_t id;
  atomic_int busy;        /* an operation that was begun without blocking has not ended */
  atomic_int broken;      /* the error of a call */
  atomic_int proxy;       /* an error of the network: no call makes it good again */
  atomic_int stop, pause; /* flags for waiting threads: abort; end what runs (revoke, shrink) */
  bool used, finalized, revoked;
  si_first first;
  uint64_t first_meeting;
  uint64_t issued, executed; /* number of calls made; number of calls executed */
  int splits;
  uint64_t grows;      /* ncclCommGrow of this rank */
  int extras;          /* windows and device communicators that are not freed yet */
  long long suspended; /* bytes that ncclCommSuspend has given back; 0: not suspended */
  long long memory;
  /* what could not be made from it, which NCCL writes to as long as this one lives */
  ncclComm_t unmade;
  ncclComm_t family; /* the oldest of those that share resources with it */
  atomic_int family_broken;
  si_group *job; /* the last group that works on it */
};

/* --------------------------------------------------------------------------- comm.c */

void si_lock(void);
void si_unlock(void);
bool si_wait_change(double until); /* under si_lock; false: it is past */
void si_changed(void);             /* under si_lock */

/* an error that NCCL reports */
ncclResult_t si_fail(ncclResult_t r, const char *format, ...) SI_PRINTF(2);
ncclResult_t si_wrong(ncclResult_t r, const char *format, ...)
    SI_PRINTF(2);                /* a violation, which NCCL would not report */
ncclResult_t si_no_driver(void); /* ncclSuccess if there is a device to work with */

int si_version(void);
ncclComm_t si_comm_new(void);
void si_comm_release(ncclComm_t c); /* under si_lock */
const char *si_comm_label(const struct ncclComm *c, char *text, size_t room);
void si_comm_wake_all(void);    /* every wait of this process looks at its flags */
ncclComm_t si_comm_first(void); /* under si_lock */

/* Alive; and without an operation in progress or an error. */
ncclResult_t si_comm_alive(ncclComm_t c, const char *call);
ncclResult_t si_comm_ready(ncclComm_t c, const char *call);
ncclResult_t si_comm_error(ncclComm_t c); /* of a call, or of the network */
void si_comm_break(ncclComm_t c, ncclResult_t r);
void si_comm_check_unmade(ncclComm_t c, const char *call);
void si_comm_check_name(ncclComm_t c, const char *call);

/* ------------------------------------------------------------------------- config.c */

/* Make an object for a unique id, and read its name out of one. */
ncclResult_t si_new_id(ncclUniqueId *id, char *object);
bool si_read_id(const ncclUniqueId *id, char *object);

ncclResult_t si_config_parse(ncclComm_t c, const ncclConfig_t *config);
void si_config_inherit(ncclComm_t c, const struct ncclComm *parent);
void si_config_free(ncclComm_t c);

/* -------------------------------------------------------------------------- group.c */

typedef enum si_op_kind {
  OP_EXTRA,
  OP_CREATE,
  OP_FINALIZE,
  OP_DESTROY,
  OP_ABORT,
  OP_REVOKE,
  OP_CALL
} si_op_kind;

typedef struct si_op {
  struct si_op *next;
  si_op_kind kind;
  ncclComm_t comm;                       /* its state shows the progress */
  ncclComm_t child;                      /* the one that is made */
  ncclResult_t (*run)(struct si_op *op); /* in a thread of its own; not of an OP_CALL */
  void *data;                            /* freed with it */
  si_group *group;
  ncclResult_t result;
  pthread_t thread;
  bool threaded;
} si_op;

struct si_group {
  si_op *head;
  atomic_int stop;
  bool blocking, done;
  int refs;
};

void si_group_enter(void);
ncclResult_t si_group_add(si_op *op); /* takes op, also on failure */
ncclResult_t si_group_leave(ncclResult_t so_far);
bool si_group_holds(ncclComm_t c); /* the open group of this thread */
void si_group_unref(si_group *g);  /* under si_lock */
shm_stop si_op_stop(const si_op *op);

/* -------------------------------------------------------------------------- extra.c */

/* a call that the imitated version has not: a violation, and false */
bool si_newer(int since, const char *call);

/* --------------------------------------------------------------------- collectives.c */

typedef enum si_kind {
  ALL_REDUCE,
  BROADCAST,
  REDUCE,
  ALL_GATHER,
  REDUCE_SCATTER,
  SEND,
  RECV
} si_kind;

typedef struct si_call {
  si_kind kind;
  const char *from;
  char *to;
  size_t count;
  ncclDataType_t type;
  ncclRedOp_t op;
  int root; /* or the peer */
  cudaStream_t stream;
} si_call;

extern const char *const si_kind_name[];
size_t si_type_size(ncclDataType_t type);

/* ------------------------------------------------------------ launch.c, run.c, reduce.c */

ncclResult_t si_launch(si_group *g);
shm_end si_run_collective(ncclComm_t c, const si_call *call, uint64_t number, shm_stop stop,
                          char *text);
shm_end si_run_parcels(ncclComm_t c, const si_call *call, size_t n, shm_stop stop, char *text);

/* out[i] = op over the ranks of what lies at `at` of their payloads. */
void si_reduce(char *out, shm *s, size_t at, size_t n, ncclDataType_t type, ncclRedOp_t op);

#endif
