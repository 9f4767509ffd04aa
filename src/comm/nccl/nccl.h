/* SPDX-License-Identifier: MIT
**
** nccl.h - shared by the files of the nccl backend. The backend needs a carrier (mpi), which sends
** ids between ranks, knows the ranks of this machine, and makes the groups whose family asks for
** mpi. Calls go in one direction: library.c <- process.c <- comm.c <- end.c <- create.c
** <- nccl_recover.c, collectives.c <- nccl_move.c <- nccl.c.
*/
#ifndef MGRID_COMM_NCCL_H
#define MGRID_COMM_NCCL_H

#include "comm/backend.h"
#include "comm/nccl/library.h"

typedef struct nccl_window { /* of the option `windows` */
  void *buffer;
  int64_t bytes;
  ncclWindow_t handle; /* NULL until it is registered */
} nccl_window;

enum { NCCL_DEVICE_BYTES = 4096 }; /* more than any ncclDevComm has */

typedef struct nccl_comm nccl_comm;
struct nccl_comm {
  ncclComm_t comm; /* the first two are an mgrid_nccl_pair of moongrid_nccl.h */
  cudaStream_t stream;
  nccl_comm *next; /* in the backend's list */
  int64_t bytes;   /* predicted GPU memory */
  /* config.blocking; an NCCL group may not mix blocking and non-blocking communicators */
  bool blocking;
  bool lost; /* some of its ranks are lost, or a call failed: abort it instead of destroying it */
  bool idle; /* no kernel ran on it, so NCCL's proxies may wait for one forever: abort it, too */
  bool revoked;   /* by mgrid_state_revoke: only shrink and destroy are allowed */
  bool stuck;     /* a thread is left inside NCCL with it: none of its memory may be freed */
  bool suspended; /* by mgrid_state_suspend */
  bool device;    /* device_room holds a device communicator */
  size_t nwindows;
  nccl_window window[MGRID_NUMBERS_MAX]; /* [nwindows], in the order of their names */
  void *device_room;                     /* NULL: the family does not ask for one */
  ncclResult_t (*free_memory)(void *);   /* ncclMemFree */
  /* attempts to make a smaller one of it; identical on all its remaining members */
  uint32_t shrinks;
  char name[128];        /* NCCL keeps the pointer: it lives as long as comm */
  mgrid_choice *options; /* of its family; NCCL may still read strings of it */
};

typedef struct nccl_moving { /* nccl_move.c */
  nccl_comm *comm;           /* of all ranks, made by the first move */
  mgrid_choice *options;     /* its options; NULL before the first move, like the next */
  int32_t *ranks;            /* [world] */
  double before;             /* options.timeout, which a move replaces until it ends */
  void *memory;              /* [bytes], the window */
  size_t bytes;              /* identical moves allocate only once */
  cudaEvent_t copied;        /* what was packed before a group */
  cudaEvent_t sent[2];       /* the group has ended: group i uses i % 2 */
  uint64_t posted, ended;    /* groups of this move so far */
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
  int local_rank, local_size; /* index of this rank on its machine; ranks there */
  nccl_comm *made;            /* list of all communicators */
  int64_t bytes;              /* predicted GPU memory of all in the list */
  double begun; /* mgrid_now() at the start of the last creation, from which its deadlines count */
  double asked; /* mgrid_now() when mgrid_nccl_lost last asked */
  bool creates; /* a creation over all ranks goes on, or its verdict is still to come */
  bool after;   /* a creation has run since the last call over all ranks */
  /* a collective has run since then. After either, other ranks may be late by a deadline */
  bool used;
  bool broken; /* a collective or an end failed: abort communicators, do not destroy them */
  /* of a communicator that is created again (nccl_recover.c), else 0; part of each message */
  uint32_t attempt;
  /* threads and sockets that failed creations have left in this process: NCCL never ends them */
  int leaks;
  cudaStream_t stream; /* for copies and proofs: they do not wait for the host's calls */
  /* on the GPU: two numbers, for proofs, so that a proof allocates and frees nothing */
  int64_t *number;
  nccl_moving move;
  struct nccl_streams *streams; /* of collectives.c; NULL: no program runs */
} nccl_backend;

/* NCCL sleeps 3.4 seconds between retries to connect, without checking the abort flag; then its
** threads end. */
#define NCCL_END_SECONDS 10.0

/* The threads and sockets that failed creations may leave in a process before it creates no
** more. */
enum { NCCL_LEAKS_MAX = 32 };

/* Return whether this backend makes the communicator; if not, the carrier does. */
static inline bool mgrid_nccl_makes(const mgrid_descriptor *kind) {
  return strcmp(kind->name, MAKER) == 0;
}

/* ----------------------------------------------------------------- process.c */

/* Report "nccl: what for name: ncclInvalidUsage (...)". */
mgrid_status mgrid_nccl_failed(const nccl_backend *n, mgrid_error *err, ncclResult_t r,
                               const char *call, const char *name);
mgrid_status mgrid_cuda_failed(const nccl_backend *n, mgrid_error *err, cudaError_t r,
                               const char *call, const char *name);

/* A wait ended because rank `who` gave up: set *err, return MGRID_GAVE_UP. */
mgrid_outcome mgrid_nccl_gave_up(int64_t who, mgrid_error *err);
/* Return whether a rank is lost, so that a creation over all ranks fails; ask the carrier a few
** times a second. False in other calls. */
bool mgrid_nccl_lost(nccl_backend *n, const char *name, mgrid_error *err);
/* Notify all members that this rank gave up, so that they stop waiting for it. */
void mgrid_nccl_tell(nccl_backend *n, const mgrid_comm_spec *spec);
/* Notify all ranks, in calls where a rank goes from group to group: those that give up in one do
** not come to the next. */
void mgrid_nccl_tell_world(nccl_backend *n);
/* Make a blocking call in a thread, with a deadline. If *left_behind is set the call still runs:
** then never free ud. Such threads count as leaks. listen: also stop waiting when another rank
** gives up. */
mgrid_outcome mgrid_nccl_watch(nccl_backend *n, double seconds, bool listen,
                               ncclResult_t (*call)(const nccl_library *lib, void *ud), void *ud,
                               const char *what, const char *name, bool *left_behind,
                               mgrid_error *err);
/* Return s, or MGRID_GAVE_UP if a notice, which may be late, says that another rank failed
** first. */
mgrid_outcome mgrid_nccl_whose(nccl_backend *n, mgrid_outcome s);

/* Return the value of a variable as NCCL will read it, from the environment or its files. False:
** not set. */
enum { NCCL_SETTING = 128 };
bool mgrid_nccl_setting(const char *name, char value[NCCL_SETTING]);
/* Append what overrides the options of families: "NCCL_MAX_CTAS=2, NCCL_NET=Socket"; nothing if
** nothing does. */
void mgrid_nccl_overridden(mgrid_text *t);
/* Return whether a communicator with these options blocks: by the environment, else the family,
** else the backend. */
bool mgrid_nccl_blocks(const nccl_backend *n, const mgrid_nccl_values *v);
/* Raise the limit of open files to what these communicators may need, or warn in the log that it is
** too low. */
void mgrid_nccl_files(const nccl_backend *n, size_t nspecs, const mgrid_comm_spec *spec);

/* Choose the GPU of this rank. */
mgrid_status mgrid_nccl_choose_gpu(nccl_backend *n, mgrid_error *err);
/* Collective: refuse two ranks on one GPU, as NCCL does, but on all ranks at once. If they may
** share it, make NCCL take them for ranks of different hosts. */
mgrid_status mgrid_nccl_check_sharing(nccl_backend *n, mgrid_error *err);
/* Wait until nothing runs on the GPU: creating a communicator beside a running kernel may wait
** forever for that kernel. */
mgrid_outcome mgrid_nccl_idle(nccl_backend *n, double seconds, const char *name, mgrid_error *err);

/* -------------------------------------------------------------------- comm.c */

/* Check what a family asks for, before any rank creates; local. */
mgrid_status mgrid_nccl_check(mgrid_backend *b, size_t n, const mgrid_comm_spec *spec,
                              mgrid_error *err);
/* Allocate a communicator that NCCL has not made yet, and fill in its ncclConfig_t. */
mgrid_status mgrid_nccl_new(const nccl_backend *n, const mgrid_comm_spec *spec, nccl_comm **made,
                            ncclConfig_t *config, mgrid_error *err);
void mgrid_nccl_drop(nccl_comm *made); /* free only the memory; made may be NULL */
double mgrid_nccl_patience(const nccl_backend *n,
                           /* deadline of its creation, in seconds */
                           const mgrid_comm_spec *spec);
/* Seconds that are left of it: in a creation over all ranks since that began, else all. At least
** 0.1. */
double mgrid_nccl_left(const nccl_backend *n, const mgrid_comm_spec *spec);
/* Wait until nothing is in progress on it; listen: or until another rank gives up. */
mgrid_outcome mgrid_nccl_wait(nccl_backend *n, const nccl_comm *c, double seconds, bool listen,
                              const char *call, const char *name, mgrid_error *err);
/* The same until the time `until`, with any result: only the deadline is an error. */
mgrid_outcome mgrid_nccl_wait_out(nccl_backend *n, nccl_comm *c, double until, const char *call,
                                  mgrid_error *err);
/* Check that NCCL made what was planned, and create the stream. */
mgrid_status mgrid_nccl_finish(nccl_backend *n, const mgrid_comm_spec *spec, nccl_comm *made,
                               mgrid_error *err);
/* Add to the backend's list, whose memory counts against the budget; find; remove and free. */
void mgrid_nccl_keep(nccl_backend *n, nccl_comm *made);
nccl_comm *mgrid_nccl_find(nccl_backend *n, const void *native); /* NULL: the carrier made it */
void mgrid_nccl_forget(nccl_backend *n, nccl_comm *c);           /* frees it, too */
/* Some of its ranks are lost: abort it when it ends. */
void mgrid_nccl_lose(mgrid_backend *b, void *native);

/* What a family asks for besides its communicator. Refuse what this NCCL does not have. */
mgrid_status mgrid_nccl_can_register(const nccl_backend *n, const mgrid_comm_spec *spec,
                                     mgrid_error *err);
/* Allocate the memory. Local. */
mgrid_status mgrid_nccl_allocate(const nccl_backend *n, const mgrid_comm_spec *spec, nccl_comm *c,
                                 mgrid_error *err);
void mgrid_nccl_free_memory(nccl_comm *c);
/* Register the windows, and make the device communicator. Calls over the members. */
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

/* End communicators, all in one call, within NCCL_END_SECONDS. Those that do not end are left
** behind, with a line in the host's log. */
void mgrid_nccl_destroy(mgrid_backend *b, size_t n, void **native);
void mgrid_nccl_abort(mgrid_backend *b, size_t n, void **native);
/* their `comm` is NULL then */
void mgrid_nccl_abort_all(nccl_backend *n, size_t count, nccl_comm **comm);
void mgrid_nccl_abort_one(nccl_backend *n, nccl_comm *made); /* one in no list: free it, too */
mgrid_status mgrid_nccl_revoke(mgrid_backend *b, size_t n, void **native, mgrid_error *err);

/* ------------------------------------------------------------------ create.c */

/* Create all communicators of this rank, in schedule order. */
mgrid_outcome mgrid_nccl_create(mgrid_backend *b, size_t n, const mgrid_comm_spec *spec,
                                void **native, mgrid_error *err);
/* Create one communicator, with messages only among the ranks of spec; *made is not in the list
** yet. A rank that fails must notify the others. */
mgrid_outcome mgrid_nccl_create_one(nccl_backend *n, const mgrid_comm_spec *spec, nccl_comm **made,
                                    mgrid_error *err);
/* Call ncclCommShrink: *made is not in the list yet. After a failure *made may be set, too, to the
** unfinished communicator: NCCL writes to it when `from` is aborted, even if it was freed
** (NVIDIA/nccl#2373), so abort both in one call. */
mgrid_outcome mgrid_nccl_derive(nccl_backend *n, const mgrid_comm_spec *spec, nccl_comm *from,
                                int nlost, const int *lost, nccl_comm **made, mgrid_error *err);

/* The header of each message between members says what it is for; those of earlier calls, which
** failed, are dropped. */
typedef struct nccl_header {
  uint64_t epoch;          /* of the creation */
  uint32_t attempt, round; /* of a communicator that is created again; of its vote, 0: unique ids */
} nccl_header;
nccl_header mgrid_nccl_header(const nccl_backend *n, uint32_t round);
mgrid_outcome mgrid_nccl_receive(nccl_backend *n, int64_t from, int tag, nccl_header expected,
                                 void *data, size_t bytes, double seconds, mgrid_error *err);
/* bytes of the longest one */
size_t mgrid_nccl_message(const nccl_backend *n, const mgrid_comm_spec *spec);

/* ----------------------------------------------------------------- nccl_recover.c */

/* Shrink those whose origin can be shrunk, each by the vote of mgrid_nccl_shrink and
** ncclCommShrink; make none from an id. */
void mgrid_nccl_remake(mgrid_backend *b, size_t n, const mgrid_comm_spec *spec,
                       mgrid_origin *origin, void **native);
mgrid_outcome mgrid_nccl_shrink(mgrid_backend *b, const mgrid_comm_spec *spec, void *from, int n,
                                const int *positions, void **native, mgrid_error *err);

/* Let the members vote what becomes of each communicator. */
/* Make one from its origin. */
mgrid_outcome mgrid_nccl_growth(mgrid_backend *b, size_t n, const mgrid_comm_spec *spec,
                                mgrid_origin *origin, mgrid_error *err);
mgrid_outcome mgrid_nccl_grow(mgrid_backend *b, const mgrid_comm_spec *spec,
                              const mgrid_origin *origin, void **native, mgrid_error *err);
/* Take over one that stays as it is. */
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
void mgrid_nccl_move_end(nccl_backend *n); /* with the backend */

#endif
