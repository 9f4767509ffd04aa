/* SPDX-License-Identifier: MIT
**
** nccl.h - shared by the files of the nccl backend. The backend needs a carrier, such as mpi. The
** carrier sends ids between ranks, knows the ranks of this machine, and makes the groups whose
** family asks for mpi. Calls go in one direction: library.c <- process.c <- comm.c <- end.c <-
** create.c <- nccl_recover.c, collectives.c <- nccl_move.c <- nccl.c.
*/
#ifndef MGRID_COMM_NCCL_H
#define MGRID_COMM_NCCL_H

#include "comm/backend.h"
#include "comm/nccl/library.h"

typedef struct nccl_window { /* a window of the option `windows` */
  void *buffer;
  int64_t bytes;
  ncclWindow_t handle; /* NULL until it is registered */
} nccl_window;

enum { NCCL_DEVICE_BYTES = 4096 }; /* more than any ncclDevComm has */

typedef struct nccl_comm nccl_comm;
struct nccl_comm {
  ncclComm_t comm; /* the first two fields are an mgrid_nccl_pair of moongrid_nccl.h */
  cudaStream_t stream;
  nccl_comm *next; /* in the backend's list */
  int64_t bytes;   /* predicted GPU memory */
  /* config.blocking. An NCCL group may not mix blocking and non-blocking communicators */
  bool blocking;
  bool lost;    /* ranks of it are lost, or a call failed. So abort it instead of destroying it */
  bool idle;    /* no kernel ran on it, so NCCL's proxies may wait for one forever. Abort it, too */
  bool revoked; /* mgrid_state_revoke was called: only shrink and destroy are allowed */
  /* a thread that uses it is left inside NCCL, so none of its memory may be freed */
  bool stuck;
  bool suspended; /* mgrid_state_suspend was called */
  bool device;    /* device_room holds a device communicator */
  size_t nwindows;
  nccl_window window[MGRID_NUMBERS_MAX]; /* [nwindows], in the order of their names */
  /* NULL: the family does not ask for a device communicator */
  void *device_room;
  ncclResult_t (*free_memory)(void *); /* ncclMemFree */
  /* how often its members tried to make a smaller one of it; the same on all that remain */
  uint32_t shrinks;
  char name[128];        /* NCCL keeps the pointer, so this lives as long as comm */
  mgrid_choice *options; /* options of its family; NCCL may still read their strings */
};

typedef struct nccl_moving { /* nccl_move.c */
  nccl_comm *comm;           /* of all ranks, made by the first move */
  mgrid_choice *options;     /* its options. NULL before the first move, and so is the next field */
  int32_t *ranks;            /* [world] */
  double before;             /* options.timeout before the move, which has its own */
  void *memory;              /* [bytes], the window */
  size_t bytes;              /* so moves of one size allocate only once */
  cudaEvent_t copied;        /* recorded when all that a group needs has been packed */
  cudaEvent_t sent[2];       /* recorded when a group has ended: group i uses i % 2 */
  uint64_t posted, ended;    /* how many groups of this move were posted, and have ended */
  int *slot;                 /* [2 * half], of the messages of a group */
  size_t half, nslots[2];
} nccl_moving;

typedef struct nccl_backend {
  mgrid_backend base; /* first: ops get a pointer to it */
  mgrid_backend *carrier;
  const mgrid_carrier_ops *carry; /* of the carrier */
  nccl_library lib;
  mgrid_nccl_options options;
  int device;                 /* index of the GPU */
  int local_rank, local_size; /* index of this rank on its machine; how many ranks are there */
  nccl_comm *made;            /* list of all communicators */
  int64_t bytes;              /* predicted GPU memory of all communicators in the list */
  double begun; /* mgrid_now() at the start of the last creation; deadlines count from there */
  double asked; /* mgrid_now() when mgrid_nccl_lost last asked the carrier */
  bool creates; /* a creation over all ranks is going on, or its verdict is still to come */
  bool after;   /* a creation has run since the last call over all ranks */
  /* a collective has run since the last call over all ranks. If this or `after` is set, other ranks
  ** may be late by a deadline */
  bool used;
  bool broken; /* a collective or an end has failed: abort communicators, do not destroy them */
  /* number of the attempt to create a communicator again (nccl_recover.c), else 0. Part of each
  ** message */
  uint32_t attempt;
  /* how many threads and sockets failed creations have left in this process; NCCL never ends
  ** them */
  int leaks;
  cudaStream_t stream; /* for copies and proofs, so that they do not wait for the host's calls */
  /* two numbers on the GPU, so that a proof need not allocate or free anything */
  int64_t *number;
  nccl_moving move;
  struct nccl_streams *streams; /* of collectives.c; NULL: no program runs */
} nccl_backend;

/* NCCL sleeps 3.4 seconds between two tries to connect, and does not check the abort flag
** meanwhile. Its threads end after that. */
#define NCCL_END_SECONDS 10.0

/* If failed creations have left so many threads and sockets in this process, it creates nothing
** more. */
enum { NCCL_LEAKS_MAX = 32 };

/* Return whether this backend makes the communicator. If not, the carrier does. */
static inline bool mgrid_nccl_makes(const mgrid_descriptor *kind) {
  return strcmp(kind->name, MAKER) == 0;
}

/* ----------------------------------------------------------------- process.c */

/* Report "nccl: what for name: ncclInvalidUsage (...)". */
mgrid_status mgrid_nccl_failed(const nccl_backend *n, mgrid_error *err, ncclResult_t r,
                               const char *call, const char *name);
mgrid_status mgrid_cuda_failed(const nccl_backend *n, mgrid_error *err, cudaError_t r,
                               const char *call, const char *name);

/* A wait ended because rank `who` gave up. Set *err and return MGRID_GAVE_UP. */
mgrid_outcome mgrid_nccl_gave_up(int64_t who, mgrid_error *err);
/* Return whether a rank is lost, so that a creation over all ranks fails. Ask the carrier a few
** times a second. In other calls return false. */
bool mgrid_nccl_lost(nccl_backend *n, const char *name, mgrid_error *err);
/* Notify all members that this rank gave up, so that they do not wait for it. */
void mgrid_nccl_tell(nccl_backend *n, const mgrid_comm_spec *spec);
/* Notify all ranks. This is for calls in which a rank goes from group to group, because a rank that
** gives up in one group does not come to the next. */
void mgrid_nccl_tell_world(nccl_backend *n);
/* Make a blocking call in a thread, with a deadline. If *left_behind is set, the call still runs:
** never free ud then. Such threads count as leaks. listen: also stop waiting when another rank
** gives up. */
mgrid_outcome mgrid_nccl_watch(nccl_backend *n, double seconds, bool listen,
                               ncclResult_t (*call)(const nccl_library *lib, void *ud), void *ud,
                               const char *what, const char *name, bool *left_behind,
                               mgrid_error *err);
/* Return MGRID_GAVE_UP if another rank failed first, else s. Its notice may arrive late, so wait
** for it for a moment. */
mgrid_outcome mgrid_nccl_whose(nccl_backend *n, mgrid_outcome s);

/* Return the value of a variable as NCCL will read it, from the environment or from its files.
** False: it is not set. */
enum { NCCL_SETTING = 128 };
bool mgrid_nccl_setting(const char *name, char value[NCCL_SETTING]);
/* Append the variables that override options of families: "NCCL_MAX_CTAS=2, NCCL_NET=Socket"; or
** nothing. */
void mgrid_nccl_overridden(mgrid_text *t);
/* Return whether a communicator with these options blocks. The environment decides, else the
** family, else the backend. */
bool mgrid_nccl_blocks(const nccl_backend *n, const mgrid_nccl_values *v);
/* Raise the limit of open files to what these communicators may need. If it stays too low, warn in
** the log. */
void mgrid_nccl_files(const nccl_backend *n, size_t nspecs, const mgrid_comm_spec *spec);

/* Choose the GPU of this rank. */
mgrid_status mgrid_nccl_choose_gpu(nccl_backend *n, mgrid_error *err);
/* Refuse two ranks on one GPU, as NCCL does, but on all ranks at once. If they may share it, make
** NCCL take them for ranks of different hosts. Collective. */
mgrid_status mgrid_nccl_check_sharing(nccl_backend *n, mgrid_error *err);
/* Wait until nothing runs on the GPU. To create a communicator beside a running kernel may mean to
** wait for that kernel forever. */
mgrid_outcome mgrid_nccl_idle(nccl_backend *n, double seconds, const char *name, mgrid_error *err);

/* -------------------------------------------------------------------- comm.c */

/* Check what a family asks for, before any rank creates. Local. */
mgrid_status mgrid_nccl_check(mgrid_backend *b, size_t n, const mgrid_comm_spec *spec,
                              mgrid_error *err);
/* Allocate a communicator that NCCL has not made yet, and fill in its ncclConfig_t. */
mgrid_status mgrid_nccl_new(const nccl_backend *n, const mgrid_comm_spec *spec, nccl_comm **made,
                            ncclConfig_t *config, mgrid_error *err);
void mgrid_nccl_drop(nccl_comm *made); /* free only the memory; made may be NULL */
/* Return the deadline of the creation, in seconds. */
double mgrid_nccl_patience(const nccl_backend *n, const mgrid_comm_spec *spec);
/* Return how many seconds of the deadline are left: in a creation over all ranks since it began,
** else all of them. At least 0.1. */
double mgrid_nccl_left(const nccl_backend *n, const mgrid_comm_spec *spec);
/* Wait until nothing is in progress on the communicator. listen: stop when another rank gives
** up. */
mgrid_outcome mgrid_nccl_wait(nccl_backend *n, const nccl_comm *c, double seconds, bool listen,
                              const char *call, const char *name, mgrid_error *err);
/* Wait until the time `until`. Any result will do: only the deadline is an error. */
mgrid_outcome mgrid_nccl_wait_out(nccl_backend *n, nccl_comm *c, double until, const char *call,
                                  mgrid_error *err);
/* Check that NCCL has made what was planned, and create the stream. */
mgrid_status mgrid_nccl_finish(nccl_backend *n, const mgrid_comm_spec *spec, nccl_comm *made,
                               mgrid_error *err);
/* keep: add to the backend's list, whose memory counts against the budget. find: search the list.
** forget: remove from the list, and free. */
void mgrid_nccl_keep(nccl_backend *n, nccl_comm *made);
nccl_comm *mgrid_nccl_find(nccl_backend *n, const void *native); /* NULL: the carrier made it */
void mgrid_nccl_forget(nccl_backend *n, nccl_comm *c);           /* frees it, too */
/* Note that ranks of it are lost, so that it is aborted when it ends. */
void mgrid_nccl_lose(mgrid_backend *b, void *native);

/* Refuse windows and device communicators that this NCCL does not have. */
mgrid_status mgrid_nccl_can_register(const nccl_backend *n, const mgrid_comm_spec *spec,
                                     mgrid_error *err);
/* Allocate the memory of the windows. Local. */
mgrid_status mgrid_nccl_allocate(const nccl_backend *n, const mgrid_comm_spec *spec, nccl_comm *c,
                                 mgrid_error *err);
void mgrid_nccl_free_memory(nccl_comm *c);
/* Register the windows, and make the device communicator. These are calls over the members. */
mgrid_outcome mgrid_nccl_register_windows(nccl_backend *n, const mgrid_comm_spec *spec,
                                          nccl_comm *c, mgrid_error *err);
/* Undo both, in the opposite order, before the communicator ends. Local. */
void mgrid_nccl_clear(nccl_backend *n, nccl_comm *c);
void mgrid_nccl_read_window(mgrid_backend *b, void *native, size_t i, mgrid_nccl_window *out);
const void *mgrid_nccl_read_device(mgrid_backend *b, void *native, int *version);

/* Give the memory of communicators back, or take it again. */
mgrid_outcome mgrid_nccl_suspend(mgrid_backend *b, size_t n, void **native, bool resume, bool dry,
                                 mgrid_error *err);
mgrid_outcome mgrid_nccl_resume_one(nccl_backend *n, nccl_comm *c, mgrid_error *err);
/* Report the memory that communicators hold. */
mgrid_status mgrid_nccl_held(mgrid_backend *b, size_t n, void **native, mgrid_held_memory *sum,
                             mgrid_error *err);

/* --------------------------------------------------------------------- end.c */

/* End communicators, all in one call, within NCCL_END_SECONDS. Leave those behind that do not end,
** with a line in the host's log. */
void mgrid_nccl_destroy(mgrid_backend *b, size_t n, void **native);
void mgrid_nccl_abort(mgrid_backend *b, size_t n, void **native);
/* afterwards their `comm` is NULL */
void mgrid_nccl_abort_all(nccl_backend *n, size_t count, nccl_comm **comm);
/* it is in no list; this frees it, too */
void mgrid_nccl_abort_one(nccl_backend *n, nccl_comm *made);
mgrid_status mgrid_nccl_revoke(mgrid_backend *b, size_t n, void **native, mgrid_error *err);

/* ------------------------------------------------------------------ create.c */

/* Create all communicators of this rank, in schedule order. */
mgrid_outcome mgrid_nccl_create(mgrid_backend *b, size_t n, const mgrid_comm_spec *spec,
                                void **native, mgrid_error *err);
/* Create one communicator; only the ranks of spec exchange messages. *made is not in the list yet.
** A rank that fails must notify the others. */
mgrid_outcome mgrid_nccl_create_one(nccl_backend *n, const mgrid_comm_spec *spec, nccl_comm **made,
                                    mgrid_error *err);
/* Call ncclCommShrink. *made is not in the list yet. After a failure *made may be set, to an
** unfinished communicator. NCCL writes to it when `from` is aborted, even if it was freed
** (NVIDIA/nccl#2373). So abort both in one call. */
mgrid_outcome mgrid_nccl_derive(nccl_backend *n, const mgrid_comm_spec *spec, nccl_comm *from,
                                int nlost, const int *lost, nccl_comm **made, mgrid_error *err);

/* The header of a message between members. It says to which call the message belongs. Messages of
** earlier calls, which failed, are dropped. */
typedef struct nccl_header {
  uint64_t epoch; /* of the creation */
  /* attempt to create a communicator again; round of its vote, 0: unique ids */
  uint32_t attempt, round;
} nccl_header;
nccl_header mgrid_nccl_header(const nccl_backend *n, uint32_t round);
mgrid_outcome mgrid_nccl_receive(nccl_backend *n, int64_t from, int tag, nccl_header expected,
                                 void *data, size_t bytes, double seconds, mgrid_error *err);
/* return how many bytes the longest message has */
size_t mgrid_nccl_message(const nccl_backend *n, const mgrid_comm_spec *spec);

/* ----------------------------------------------------------------- nccl_recover.c */

/* Shrink the communicators whose origin can be shrunk. For each, mgrid_nccl_shrink lets the members
** vote, then ncclCommShrink is called. Make none from an id. */
void mgrid_nccl_remake(mgrid_backend *b, size_t n, const mgrid_comm_spec *spec,
                       mgrid_origin *origin, void **native);
mgrid_outcome mgrid_nccl_shrink(mgrid_backend *b, const mgrid_comm_spec *spec, void *from, int n,
                                const int *positions, void **native, mgrid_error *err);

/* growth: let the members of each communicator vote what becomes of it. */
/* grow: make one communicator from its origin. */
mgrid_outcome mgrid_nccl_growth(mgrid_backend *b, size_t n, const mgrid_comm_spec *spec,
                                mgrid_origin *origin, mgrid_error *err);
mgrid_outcome mgrid_nccl_grow(mgrid_backend *b, const mgrid_comm_spec *spec,
                              const mgrid_origin *origin, void **native, mgrid_error *err);
/* Take over a communicator that stays as it is. */
void mgrid_nccl_adopt(mgrid_backend *b, mgrid_backend *from, void *native);

/* ------------------------------------------------------------- collectives.c */

mgrid_outcome mgrid_nccl_prove(mgrid_backend *b, const mgrid_comm_spec *spec, void *native,
                               mgrid_error *err);
mgrid_status mgrid_nccl_copy(mgrid_backend *b, const mgrid_descriptor *kind, void *to,
                             const void *from, size_t bytes, bool to_buffer, mgrid_error *err);
mgrid_outcome mgrid_nccl_collective(mgrid_backend *b, const mgrid_comm_spec *spec, void *native,
                                    const mgrid_work *w, mgrid_error *err);
/* Make a call on a communicator, and wait until it is in its stream. `job` is malloc'ed, and freed
** here. *stuck: the thread that made the call has not returned, so the communicator must not be
** used again. */
mgrid_outcome mgrid_nccl_call(nccl_backend *n, const nccl_comm *c,
                              ncclResult_t (*call)(const nccl_library *, void *), void *job,
                              const char *what, const char *name, bool *stuck, mgrid_error *err);

extern const mgrid_streams_ops mgrid_nccl_streams;

/* -------------------------------------------------------------------- nccl_move.c */

extern const mgrid_transport_ops mgrid_nccl_transport;
void mgrid_nccl_move_end(nccl_backend *n); /* call it when the backend ends */

#endif
