/* SPDX-License-Identifier: MIT
**
** nccl.h - shared by the files of the nccl backend. The backend needs a carrier, such as mpi. The
** carrier sends ids between ranks, knows the ranks of this node, and makes the communicators of
** families that ask for mpi. A file calls only files before it: library.c, process.c, comm.c,
** end.c, create.c, nccl_recover.c, collectives.c, nccl_move.c, nccl.c.
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
  bool lost; /* members are lost, or a call on it failed: abort it, do not destroy it */
  /* no kernel ran in its proof, and NCCL's proxies may wait for that kernel forever: abort it,
  ** too */
  bool idle;
  bool revoked; /* mgrid_state_revoke was called: only shrink and destroy are allowed */
  /* NCCL may still use it, as in a thread that was left behind, so its memory may not be freed */
  bool stuck;
  bool suspended; /* mgrid_state_suspend was called */
  bool device;    /* device_room contains a device communicator */
  size_t nwindows;
  nccl_window window[MGRID_NUMBERS_MAX]; /* [nwindows], in the order of their names */
  /* NULL: the family does not ask for a device communicator */
  void *device_room;
  ncclResult_t (*free_memory)(void *); /* ncclMemFree */
  /* how often its members tried to make a smaller communicator of it; the same on all remaining
  ** members */
  uint32_t shrinks;
  char name[128];        /* NCCL keeps a pointer to this, so it lives as long as `comm` */
  mgrid_choice *options; /* options of its family; NCCL may still read their strings */
};

typedef struct nccl_moving { /* nccl_move.c */
  nccl_comm *comm;           /* of all ranks, made by the first move */
  mgrid_choice *options;     /* of comm; NULL before the first move */
  int32_t *ranks;            /* [world], of comm; NULL before the first move */
  double before;             /* options.timeout before the move, which has a timeout of its own */
  void *memory;              /* [bytes], kept for the next move */
  size_t bytes;
  cudaEvent_t copied;     /* recorded when all messages of an NCCL group have been packed */
  cudaEvent_t sent[2];    /* recorded when an NCCL group has ended: group i uses sent[i % 2] */
  uint64_t posted, ended; /* how many NCCL groups of this move were posted; how many have ended */
  /* [2 * half]: the slots (mgrid_post.slot) of the messages of two groups, nslots[0] and nslots[1]
  ** of them */
  int *slot;
  size_t half, nslots[2];
} nccl_moving;

typedef struct nccl_backend {
  mgrid_backend base; /* first: ops get a pointer to it */
  mgrid_backend *carrier;
  const mgrid_carrier_ops *carry; /* of the carrier */
  nccl_library lib;
  mgrid_nccl_options options;
  int device;                 /* index of the GPU */
  int local_rank, local_size; /* index of this rank on its node; how many ranks are there */
  nccl_comm *made;            /* list of all communicators */
  int64_t bytes;              /* predicted GPU memory of all communicators in the list */
  /* mgrid_now() at the start of the last creation; deadlines of creations count from there */
  double begun;
  double asked; /* mgrid_now() when mgrid_nccl_lost last asked the carrier */
  bool creates; /* a creation over all ranks is in progress, or its verdict is still to come */
  bool after;   /* a creation has run since the last call over all ranks */
  /* a collective, or another call with a deadline, has run since the last call over all ranks, so
  ** other ranks may come a deadline later */
  bool used;
  bool broken; /* a collective or an end has failed: abort communicators, do not destroy them */
  uint32_t attempt; /* nccl_header.attempt */
  /* how many threads and sockets failed calls have left in this process; nothing ends them */
  int leaks;
  cudaStream_t stream; /* for copies and proofs, so that they do not wait for the host's calls */
  /* two numbers on the GPU, so that a proof need not allocate or free anything */
  int64_t *number;
  nccl_moving move;
  struct nccl_streams *streams; /* of collectives.c; NULL: no step is executed */
} nccl_backend;

/* The deadline of an abort. NCCL sleeps up to 3.4 seconds before it connects again, and does not
** check the abort flag meanwhile. */
#define NCCL_END_SECONDS 10.0

/* The limit of nccl_backend.leaks: with so many leaks, create nothing more. */
enum { NCCL_LEAKS_MAX = 32 };

/* Return whether this backend makes communicators of `kind`. If not, the carrier does. */
static inline bool mgrid_nccl_makes(const mgrid_descriptor *kind) {
  return strcmp(kind->name, MAKER) == 0;
}

/* Return whether the result of a call, or the state of a communicator, is an error. ncclInProgress
** is not: a non-blocking call goes on. */
static inline bool mgrid_nccl_is_error(ncclResult_t r) {
  return r != ncclSuccess && r != ncclInProgress;
}

/* End an NCCL group. Return r, the result of the calls in it, if that is an error; else the result
** of ncclGroupEnd. */
static inline ncclResult_t mgrid_nccl_group_end(const nccl_library *lib, ncclResult_t r) {
  ncclResult_t end = lib->GroupEnd();
  return mgrid_nccl_is_error(r) ? r : end;
}

/* ----------------------------------------------------------------- process.c */

/* Make the error of a failed call: "nccl: CALL for NAME: invalid usage (NCCL's details)". */
mgrid_status mgrid_nccl_failed(const nccl_backend *n, mgrid_error *err, ncclResult_t r,
                               const char *call, const char *name);
mgrid_status mgrid_cuda_failed(const nccl_backend *n, mgrid_error *err, cudaError_t r,
                               const char *call, const char *name);

/* Set *err for a wait that ended because rank `who` gave up. Return MGRID_GAVE_UP. */
mgrid_outcome mgrid_nccl_gave_up(int64_t who, mgrid_error *err);
/* In a creation over all ranks, return whether a rank is lost. Ask the carrier at most ten times a
** second; in between, and outside of such a creation, return false. */
bool mgrid_nccl_lost(nccl_backend *n, const char *name, mgrid_error *err);
/* Notify all members that this rank gave up, so that they do not wait for it. */
void mgrid_nccl_tell(nccl_backend *n, const mgrid_comm_spec *spec);
/* Notify all ranks that this rank gave up. For calls in which a rank goes from group to group: a
** rank that gives up in one group does not come to the next. */
void mgrid_nccl_tell_world(nccl_backend *n);
/* Make a blocking call in a thread, with a deadline. *left_behind: the call still runs, so never
** free ud; the thread counts as a leak. listen: also stop waiting when another rank gives up or is
** lost. */
mgrid_outcome mgrid_nccl_watch(nccl_backend *n, double seconds, bool listen,
                               ncclResult_t (*call)(const nccl_library *lib, void *ud), void *ud,
                               const char *what, const char *name, bool *left_behind,
                               mgrid_error *err);
/* Return MGRID_GAVE_UP if another rank failed first, else s. If s is MGRID_BACKEND or another
** status from 400 to 499, wait a moment for the notice of such a rank. */
mgrid_outcome mgrid_nccl_whose(nccl_backend *n, mgrid_outcome s);

enum { NCCL_SETTING = 128 };
/* Get the value of a variable as NCCL will read it, from the environment or from its files. False:
** it is not set. */
bool mgrid_nccl_setting(const char *name, char value[NCCL_SETTING]);
/* Append the variables that override options of families: "NCCL_MAX_CTAS=2, NCCL_NET=Socket"; or
** nothing. */
void mgrid_nccl_overridden(mgrid_text *t);
/* Return whether a communicator with these options blocks. The environment decides, else the
** family, else the backend. */
bool mgrid_nccl_blocks(const nccl_backend *n, const mgrid_nccl_values *v);
/* If these communicators may need more open files than the limit allows, raise the limit. If that
** is not possible, warn in the host's log. */
void mgrid_nccl_files(const nccl_backend *n, size_t nspecs, const mgrid_comm_spec *spec);

/* Choose the GPU of this rank. */
mgrid_status mgrid_nccl_choose_gpu(nccl_backend *n, mgrid_error *err);
/* Refuse two ranks on one GPU, as NCCL does. If they may share the GPU, make NCCL take them for
** ranks of different nodes. Collective; the caller makes the verdict. */
mgrid_status mgrid_nccl_check_sharing(nccl_backend *n, mgrid_error *err);
/* Wait until nothing runs on the GPU, because the creation of a communicator may wait for running
** kernels, even forever. */
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
/* Return how many seconds of the deadline of a creation are left. In a creation over all ranks the
** deadline counts from its start, and at least 0.1 is returned; elsewhere it counts from now. */
double mgrid_nccl_left(const nccl_backend *n, const mgrid_comm_spec *spec);
/* Wait until nothing is in progress on the communicator. listen: also stop waiting when another
** rank gives up or is lost. */
mgrid_outcome mgrid_nccl_wait(nccl_backend *n, const nccl_comm *c, double seconds, bool listen,
                              const char *call, const char *name, mgrid_error *err);
/* Wait until nothing is in progress on the communicator, until the time `until`, but at least 0.1
** seconds. Only the deadline is an error, not a failure of the communicator. */
mgrid_outcome mgrid_nccl_wait_out(nccl_backend *n, nccl_comm *c, double until, const char *call,
                                  mgrid_error *err);
/* Check that NCCL has made what was planned, and create the stream. */
mgrid_status mgrid_nccl_finish(nccl_backend *n, const mgrid_comm_spec *spec, nccl_comm *made,
                               mgrid_error *err);
/* Add a communicator to the backend's list. Its memory counts against the budget. */
void mgrid_nccl_keep(nccl_backend *n, nccl_comm *made);
/* Find a communicator in the list. NULL: it is not there, because the carrier made it. */
nccl_comm *mgrid_nccl_find(nccl_backend *n, const void *native);
/* Remove a communicator from the list, and free it. */
void mgrid_nccl_forget(nccl_backend *n, nccl_comm *c);
/* Take over a communicator from the list of another backend. */
void mgrid_nccl_adopt(mgrid_backend *b, mgrid_backend *from, void *native);
/* Note that members of a communicator are lost, so that it is aborted at its end. */
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
/* Undo mgrid_nccl_register_windows, in the opposite order, before the communicator ends. Local. */
void mgrid_nccl_clear(nccl_backend *n, nccl_comm *c);
void mgrid_nccl_read_window(mgrid_backend *b, void *native, size_t i, mgrid_nccl_window *out);
const void *mgrid_nccl_read_device(mgrid_backend *b, void *native, int *version);

mgrid_outcome mgrid_nccl_suspend(mgrid_backend *b, size_t n, void **native, bool resume, bool dry,
                                 mgrid_error *err);
mgrid_outcome mgrid_nccl_resume_one(nccl_backend *n, nccl_comm *c, mgrid_error *err);
mgrid_status mgrid_nccl_held(mgrid_backend *b, size_t n, void **native, mgrid_held_memory *sum,
                             mgrid_error *err);

/* --------------------------------------------------------------------- end.c */

void mgrid_nccl_destroy(mgrid_backend *b, size_t n, void **native);
void mgrid_nccl_abort(mgrid_backend *b, size_t n, void **native);
/* Abort communicators, all in one call, within NCCL_END_SECONDS. If the call does not end, leave it
** behind, with a line in the host's log. In any case `comm` of each becomes NULL. */
void mgrid_nccl_abort_all(nccl_backend *n, size_t count, nccl_comm **comm);
/* Abort a communicator that is not in the list, and free it. */
void mgrid_nccl_abort_one(nccl_backend *n, nccl_comm *made);
mgrid_status mgrid_nccl_revoke(mgrid_backend *b, size_t n, void **native, mgrid_error *err);

/* ------------------------------------------------------------------ create.c */

mgrid_outcome mgrid_nccl_create(mgrid_backend *b, size_t n, const mgrid_comm_spec *spec,
                                void **native, mgrid_error *err);
/* Create one communicator; only the ranks of spec exchange messages. *made is not in the list yet.
** After a failure the caller must notify the others. */
mgrid_outcome mgrid_nccl_create_one(nccl_backend *n, const mgrid_comm_spec *spec, nccl_comm **made,
                                    mgrid_error *err);
/* Call ncclCommShrink. *made is not in the list yet. After a failure *made may be an unfinished
** communicator. An abort of `from` writes to *made, even if that was freed (NVIDIA/nccl#2373), so
** abort both in one call. */
mgrid_outcome mgrid_nccl_derive(nccl_backend *n, const mgrid_comm_spec *spec, nccl_comm *from,
                                int nlost, const int *lost, nccl_comm **made, mgrid_error *err);

/* The header of a message between members. It says to which call the message belongs. */
typedef struct nccl_header {
  uint64_t epoch; /* of the creation */
  /* number of the attempt to make a communicator after a loss (nccl_recover.c); else 0 */
  uint32_t attempt;
  /* the number of a vote in this creation (nccl_recover.c); 0: the message has unique ids */
  uint32_t round;
} nccl_header;
nccl_header mgrid_nccl_header(const nccl_backend *n, uint32_t round);
/* Receive a message with this header. Drop messages that earlier calls have left after their
** failure. */
mgrid_outcome mgrid_nccl_receive(nccl_backend *n, int64_t from, int tag, nccl_header expected,
                                 void *data, size_t bytes, double seconds, mgrid_error *err);
/* Return how many bytes the longest message between members has. */
size_t mgrid_nccl_message(const nccl_backend *n, const mgrid_comm_spec *spec);

/* ----------------------------------------------------------------- nccl_recover.c */

void mgrid_nccl_remake(mgrid_backend *b, size_t n, const mgrid_comm_spec *spec,
                       mgrid_origin *origin, void **native);
mgrid_outcome mgrid_nccl_shrink(mgrid_backend *b, const mgrid_comm_spec *spec, void *from, int n,
                                const int *positions, void **native, mgrid_error *err);

mgrid_outcome mgrid_nccl_growth(mgrid_backend *b, size_t n, const mgrid_comm_spec *spec,
                                mgrid_origin *origin, mgrid_error *err);
mgrid_outcome mgrid_nccl_grow(mgrid_backend *b, const mgrid_comm_spec *spec,
                              const mgrid_origin *origin, void **native, mgrid_error *err);

/* ------------------------------------------------------------- collectives.c */

mgrid_outcome mgrid_nccl_prove(mgrid_backend *b, const mgrid_comm_spec *spec, void *native,
                               mgrid_error *err);
mgrid_status mgrid_nccl_copy(mgrid_backend *b, const mgrid_descriptor *kind, void *to,
                             const void *from, size_t bytes, bool to_buffer, mgrid_error *err);
mgrid_outcome mgrid_nccl_collective(mgrid_backend *b, const mgrid_comm_spec *spec, void *native,
                                    const mgrid_work *w, mgrid_error *err);
/* Make a call on a communicator, and wait until it is in its stream. `job` is malloc'ed, and freed
** here. *stuck: the call has not returned in its thread, so `job` is not freed, and the
** communicator must not be used again. */
mgrid_outcome mgrid_nccl_call(nccl_backend *n, const nccl_comm *c,
                              ncclResult_t (*call)(const nccl_library *, void *), void *job,
                              const char *what, const char *name, bool *stuck, mgrid_error *err);

extern const mgrid_streams_ops mgrid_nccl_streams;

/* -------------------------------------------------------------------- nccl_move.c */

extern const mgrid_transport_ops mgrid_nccl_transport;
void mgrid_nccl_move_end(nccl_backend *n); /* free nccl_backend.move, when the backend ends */

#endif
