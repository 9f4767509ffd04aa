/* SPDX-License-Identifier: MIT
**
** mpi.h - shared by the files of the mpi backend: the backend's struct, and the functions of each
** file.
*/
#ifndef MGRID_COMM_MPI_H
#define MGRID_COMM_MPI_H

#include "comm/backend.h"
#include "moongrid_mpi.h"

#include <sys/types.h>

/* For gcc, MPICH's MPI_STATUSES_IGNORE (the address 1) is an array that is too short. */
#if defined(__GNUC__) && !defined(__clang__) && !defined(OPEN_MPI)
#pragma GCC diagnostic ignored "-Wstringop-overflow"
#endif

/* Open MPI 5 has sessions, although it reports MPI 3.1. */
#if MPI_VERSION >= 4 || (defined(OPEN_MPI) && OMPI_MAJOR_VERSION >= 5)
#define MGRID_MPI_SESSIONS
#else
typedef int MPI_Session;
#endif

typedef struct mpi_note mpi_note;
typedef struct mpi_watch mpi_watch;
typedef struct mpi_channel mpi_channel;

/* The roll call (arrivals.c): ranks that wait for long in a call find out by small messages which
** ranks have not arrived. They report to the first rank of the call. An mpi_report is the last
** report of a rank. */
typedef struct mpi_report {
  /* the call in which the rank is; how many messages of moves it has finished */
  uint64_t number, moved;
  mgrid_missing missing; /* the ranks for which the rank waits, as far as it knows */
  double at;             /* when the report came */
} mpi_report;

typedef struct mpi_backend mpi_backend;

/* The roll call of one call, as one rank sees it. */
typedef struct mpi_roll {
  mpi_backend *m;
  const int32_t *ranks; /* [size]: the ranks that take part; NULL: all */
  int64_t size;
  /* the number of the call: the same on all these ranks; other calls have other numbers */
  uint64_t number;
  double begun, seconds; /* when the call began; after how many seconds its deadline passes */
  double look, looked;   /* when to look again; when this rank last looked */
  /* when to report again. On the first rank, in a move: when to look for silent ranks */
  double next;
  double next_to_0; /* when to report again to rank 0 */
  /* when the first rank last answered, or if it has not, when the call began; or when this rank ran
  ** again after it was `away` */
  double since;
  bool moves; /* the call is a move or a step */
  /* the call is a message between two ranks: each of them is its own first rank, and asks the
  ** other */
  bool pairs;
  /* the first rank waits in another call. So this rank asks the others itself, unless they are
  ** many */
  bool left;
  bool away;     /* this rank was stopped, or got no processor, for three quarters of a deadline */
  bool answered; /* the first rank has answered, and is not silent since */
  bool told;     /* `missing` is the result */
  /* this rank alone decided who is missing: the first rank, which does not answer, or if this rank
  ** was away, this rank itself */
  bool guessed;
  mgrid_missing blamed;  /* the ranks for which this rank waits, as far as it knows */
  mgrid_missing missing; /* the missing ranks */
} mpi_roll;

/* The minimum of a few words over all ranks, along a tree (mpi_calls.c). The memory belongs to the
** backend, because MPI may still write to it if the call does not end. */
enum { MGRID_TREE_WORDS = 8, MGRID_TREE_CHILDREN = 16 };
typedef struct mpi_tree {
  enum { MGRID_TREE_RISES, MGRID_TREE_FALLS, MGRID_TREE_ENDS } phase;
  size_t n;      /* words */
  int nchildren; /* of this rank */
  uint64_t words[MGRID_TREE_WORDS], answer[MGRID_TREE_WORDS],
      child[MGRID_TREE_CHILDREN][MGRID_TREE_WORDS];
  MPI_Request children[MGRID_TREE_CHILDREN]; /* messages from and to the children */
  /* requests: the parent's answer, and the report to the parent */
  MPI_Request own[2];
} mpi_tree;

/* Buffers of a proof. They are not freed if a call of the proof does not end. Groups of up to
** MGRID_PAIRS_MAX ranks make an all-to-all; the limit bounds the memory. */
enum { MGRID_PAIRS_MAX = 512 };
typedef struct mpi_proof {
  int32_t mine, before, sent;
  long long sum;
  /* for and from each member: the rank of the sender, and the position of the receiver */
  int32_t to[2 * MGRID_PAIRS_MAX], from[2 * MGRID_PAIRS_MAX];
} mpi_proof;

struct mpi_backend {
  mgrid_backend base; /* first: ops get a pointer to it */
  /* Duplicates of the host's communicator. On the original the library makes only calls that open a
  ** backend, unless the host lends it (borrow): then the original is `comm`. comm: collectives,
  ** creations and notices, which differ by tag. talk: messages of a carrier; its `start` makes this
  ** duplicate. Errors on both return. */
  MPI_Comm comm, talk;
  /* the channel to which `comm` and `members` belong; NULL: they belong to this backend alone */
  mpi_channel *channel;
  mpi_backend *beside; /* the next backend in that channel */
  pid_t pid;           /* the process that opened the backend: a forked child may not call MPI */
  /* the host's communicator, if `comm` is that (borrow); else MPI_COMM_NULL */
  MPI_Comm given;
  MPI_Comm rest;          /* `comm` without lost ranks, during a recovery: open.c */
  MPI_Errhandler handler; /* that of the host's communicator; groups get it, too */
  MPI_Group members;      /* of comm */
  int guard; /* keyval of an attribute that keeps the host from freeing a group's communicator */
  bool finalize; /* mpi_open initialized MPI, so close finalizes it */
  bool sessions; /* the host uses only sessions: there is no MPI_COMM_WORLD, no MPI_COMM_SELF */
  MPI_Session session; /* if `sessions`: this backend's own session, which keeps MPI alive */
  bool main;           /* only the main thread may call MPI */
  bool survives;       /* MPI survives a loss, on all ranks: lost.c */
  /* seconds that a call over all ranks may take: now; when the backend was opened */
  double seconds, usual;
  uint64_t phase; /* only notices of this phase count: mgrid_carrier_ops.phase */
  uint64_t calls; /* calls over all ranks so far; the same on all ranks */
  /* For a move: mpi_move.c. */
  MPI_Request *request; /* [nrequests], by mgrid_post.slot */
  int nrequests;
  double before; /* the value of `seconds` before the move */
  struct {       /* until all ranks have finished the move: mpi_calls.c */
    /* the verdict on the move is still to come; for a whole deadline nothing moved */
    bool on, stalled;
    uint64_t count; /* messages that this rank has finished, in all moves */
    double last;    /* when this rank, or on rank 0 another rank, last made progress */
    mpi_roll roll;
  } moving;
  struct {             /* for moves of GPU memory: mpi_move.c */
    bool looked, used; /* CUDA's runtime was looked for; parts of this move are in GPU memory */
    void *lib;         /* NULL: the process has not loaded it */
    int (*copy)(void *, size_t, const void *, size_t, size_t, size_t, int); /* cudaMemcpy2D */
  } cuda;
  /* the tree of the small call over all ranks that is in progress; also that of the call that opens
  ** the backend */
  mpi_tree tree;
  /* the buffers of a proof on a rank without memory, which must take part, too */
  mpi_proof spare;
  /* watches creations, their verdict, recoveries and MPI_Finalize; NULL before the first of
  ** these */
  mpi_watch *watch;
  uint64_t job;     /* a random number, the same on all ranks of this backend: watchdog.c */
  mpi_note *note;   /* small messages that MPI has not accepted yet */
  mpi_report *here; /* [world]: the last report of each rank in roll calls; NULL before the first */
  /* how many communicators of groups this backend has; how many it may have, 0: MPI's limit */
  int64_t made, most;
  bool dies; /* end the process at the deadline where MPI cannot return: MGRID_DEADLINE_ABORT */
  /* a call over a group did not end, so the next call over all ranks has a quarter of the time */
  bool hurry;
  bool pending; /* a call over a group is still in progress, so its memory is not freed */
  /* a call over all ranks failed or was interrupted, so only a recovery may call MPI again */
  bool broken;
};

/* A group's communicator, which mgrid_group_native returns. moongrid_mpi.h reads its first
** field. */
typedef struct mpi_comm {
  MPI_Comm comm;
  uint64_t calls; /* calls of the library over this communicator; the same on all members */
  bool stuck;     /* one of these calls did not end */
  bool ends;      /* the library is freeing it; mgrid_mpi_keeps forbids that to others */
} mpi_comm;

/* Tags on `comm`. */
enum {
  MGRID_TAG_FAILED = 1,  /* a notice: the sender has failed, in the phase that the message names */
  MGRID_TAG_HERE = 2,    /* a report, or a question, of a roll call */
  MGRID_TAG_MISSING = 3, /* the result of a roll call: the missing ranks */
  MGRID_TAG_MOVE = 4,    /* data of a move (tests/mpi/move.c uses it) */
  MGRID_TAG_THERE = 5,   /* the answer to MGRID_TAG_HERE */
  MGRID_TAG_RISE = 6,    /* up the tree */
  MGRID_TAG_FALL = 7,    /* down the tree */
  MGRID_TAGS = 8         /* and above: creations, which some libraries send as ordinary messages */
};

/* ------------------------------------------------------------------ lost.c */

/* Make the error of a failed call. what: the communicator or group of the call, or "". */
mgrid_status mgrid_mpi_failed(mgrid_error *err, int rc, const char *call, const char *what);
/* Make the error of a failed call over several ranks. It names the lost ranks, if there are any. */
mgrid_status mgrid_mpi_failed_in(const mpi_backend *m, mgrid_error *err, int rc, const char *call,
                                 const char *what);
/* Let errors on a communicator return while the library uses it. Return the handler that it had,
** for mgrid_mpi_restore. */
MPI_Errhandler mgrid_mpi_quiet(MPI_Comm comm);
void mgrid_mpi_restore(MPI_Comm comm, MPI_Errhandler was);
/* Return whether Open MPI runs with ULFM (mpirun --with-ft ulfm). Without ULFM, revoke hangs on
** some ranks. This function takes as long as opening a backend, so mpi_backend.survives keeps the
** answer. */
bool mgrid_mpi_survives(void);
/* Find those of `ranks` (NULL: all) whose processes MPI reports as failed. Return whether there are
** any. */
bool mgrid_mpi_lost(const mpi_backend *m, const int32_t *ranks, int64_t size, mgrid_missing *lost);
/* Return an array with a byte for each rank: 1 if its process has failed. The caller frees the
** array. NULL: no process has failed. */
uint8_t *mgrid_mpi_all_lost(const mpi_backend *m);
/* Return whether MPI has news that any rank has interrupted the backend, or that a rank is lost. */
bool mgrid_mpi_is_hurt(const mpi_backend *m);
/* Return whether any rank has interrupted the backend. */
bool mgrid_mpi_is_interrupted(const mpi_backend *m);
/* Make the error of a wait that ended because another rank has interrupted the backend. */
mgrid_status mgrid_mpi_fail_interrupted(mgrid_error *err, const char *what);
/* End the calls of all ranks on a communicator, which then cannot be used again. */
void mgrid_mpi_end_waits(MPI_Comm comm);

/* ------------------------------------------------------------------ host.c */

enum { MGRID_MPI_VERSION = 16384 }; /* more than any library's MPI_MAX_LIBRARY_VERSION_STRING */

/* Fail if this backend calls, or the host has initialized, another MPI library than the one for
** which this backend was built. */
mgrid_status mgrid_mpi_one_library(mgrid_error *err);
/* Fail if the launcher of another library has started this process. parent: the host's
** communicator. MPI_COMM_NULL: MPI is not initialized yet, so fail only if the launcher needs PMIx
** and this MPI lacks it. */
mgrid_status mgrid_mpi_launched(MPI_Comm parent, mgrid_error *err);
/* Fail if the host's communicator is invalid or an intercommunicator. */
mgrid_status mgrid_mpi_check_parent(MPI_Comm parent, bool sessions, mgrid_error *err);
/* Return the duplicate that is kept with the host's communicator, or NULL. */
mpi_channel *mgrid_channel_of(MPI_Comm parent);
/* Return whether a backend of this rank may join the channel. */
bool mgrid_channel_is_free(const mpi_channel *c);
void mgrid_channel_join(mpi_channel *c, mpi_backend *m);
/* Keep m's duplicate with the host's communicator. alone: only one backend at a time may use it.
** Return MPI's result. */
int mgrid_channel_keep(mpi_backend *m, MPI_Comm parent, bool alone);
/* Remove m from its channel. usable: MPI may be called, and all calls of m have ended. */
void mgrid_channel_leave(mpi_backend *m, bool usable);
/* Fail if MPI is not initialized yet, or is finalized. */
mgrid_status mgrid_mpi_initialized(mgrid_error *err);
mgrid_status mgrid_mpi_in_main_thread(mgrid_error *err);
/* Return whether MPI is initialized and not finalized, in the process that opened the backend. */
bool mgrid_mpi_there(const mpi_backend *m);
/* Fail if MPI may not be called now: after MPI_Finalize, from the wrong thread, or in a forked
** child. */
mgrid_status mgrid_mpi_callable(const mpi_backend *m, mgrid_error *err);
/* Fail if MPI may not be called now, or if an earlier call over all ranks failed. */
mgrid_status mgrid_mpi_usable(const mpi_backend *m, mgrid_error *err);

/* -------------------------------------------------------------- watchdog.c */

/* Watch the deadline of creations from now until mgrid_watch_end, which follows their verdict. */
void mgrid_watch_begin(mpi_backend *m);
/* Watch the deadline of a call of a recovery. Ranks then show early that they have come, and lost
** ranks do not count as missing. */
void mgrid_watch_recovery(mpi_backend *m, double seconds);
/* Watch the deadline while this rank is in MPI_Finalize. */
void mgrid_watch_finalize(mpi_backend *m);
/* Tell the watchdog that this rank creates the communicator of this spec, by this call of MPI. spec
** NULL: the call has returned. */
void mgrid_watch_enter(mpi_backend *m, const mgrid_comm_spec *spec, const char *call);
/* Tell the watchdog that this rank has made all its communicators, and waits for the verdict. */
void mgrid_watch_through(mpi_backend *m);
/* Return whether creations are watched and their deadline has not passed. */
bool mgrid_watch_is_on(const mpi_backend *m);
/* Wait for the deadline. Then list the ranks of this node that are neither in a creation nor done
** with all creations. Return false if this rank knows of no such rank. */
bool mgrid_watch_missing(const mpi_backend *m, mgrid_missing *missing);
/* Make the error after mgrid_watch_missing has returned false. silent: the ranks that, by the roll
** call, did not report to rank 0. */
mgrid_status mgrid_watch_fail(const mpi_backend *m, const mgrid_missing *silent, mgrid_error *err);
/* After the deadline of a recovery, make the error that names the survivors who have not come. */
mgrid_status mgrid_watch_survivors(const mpi_backend *m, mgrid_error *err);
void mgrid_watch_end(mpi_backend *m);
void mgrid_watch_free(mpi_backend *m);

/* -------------------------------------------------------------- arrivals.c */

/* Send at most 160 bytes to a rank without waiting. The message ends when MPI has accepted it.
** Return MPI's result. */
int mgrid_mpi_post(mpi_backend *m, int64_t to, int tag, const void *data, size_t bytes);
/* Wait until all messages of mgrid_mpi_post have ended, at most `seconds`. Return whether they
** have. */
bool mgrid_mpi_posted(mpi_backend *m, double seconds);
/* Begin the roll call of a call over these ranks (NULL: all). */
mpi_roll mgrid_roll_begin(mpi_backend *m, const int32_t *ranks, int64_t size, uint64_t number,
                          double seconds);
/* Take part in the roll call while waiting. Return whether the missing ranks are known. */
bool mgrid_roll_look(mpi_roll *r);
/* After the deadline, return the missing ranks. */
mgrid_missing mgrid_roll_end(mpi_roll *r);

/* ----------------------------------------------------------------- mpi_calls.c */

/* Numbers of calls. The number of a call over all ranks is a count. The number of a call over a
** group has a count in its lowest MGRID_MPI_CALL_BITS bits, and a hash of the group's name above
** them. */
enum { MGRID_MPI_CALL_BITS = 24 };

/* A non-blocking call. */
typedef struct mpi_request {
  MPI_Request request; /* if it is a call of MPI */
  int rc;              /* result of MPI */
  mpi_backend *tree;   /* if it is a call along the tree: the backend; else NULL */
} mpi_request;

extern const mgrid_carrier_ops mgrid_mpi_carrier;

/* An mgrid_look at one mpi_request. */
mgrid_outcome mgrid_mpi_through(void *request);
/* Wait for a call over a group. The error names the missing members. After a failure the caller
** keeps the buffers, because MPI may write to them. */
mgrid_status mgrid_mpi_finish_group(mpi_backend *m, const mgrid_comm_spec *spec, mpi_comm *c,
                                    mpi_request call, double seconds, const char *name,
                                    mgrid_error *err);
/* The next five functions are `allreduce_min`, `allgather`, `bcast`, `collective` and `together` of
** backend.h. */
mgrid_status mgrid_mpi_allreduce(mgrid_backend *b, uint64_t *words, size_t n, mgrid_error *err);
mgrid_status mgrid_mpi_allgather(mgrid_backend *b, const void *mine, void *all, size_t bytes,
                                 mgrid_error *err);
mgrid_status mgrid_mpi_bcast(mgrid_backend *b, void *data, size_t bytes, int64_t root,
                             mgrid_error *err);
mgrid_outcome mgrid_mpi_collective(mgrid_backend *b, const mgrid_comm_spec *spec, void *native,
                                   const mgrid_work *w, mgrid_error *err);
mgrid_outcome mgrid_mpi_together(mgrid_backend *b, size_t n, const mgrid_together *calls,
                                 double seconds, mgrid_error *err);
/* Begin a move. The next call over all ranks is its verdict; until then, ranks report progress to
** rank 0. */
void mgrid_mpi_moving(mpi_backend *m);
/* Note that n messages of a move have finished on this rank, and take part in the roll call of the
** move. MGRID_LATE: nothing moves on any rank. MGRID_GAVE_UP: ranks are missing, and the verdict
** names them. */
mgrid_outcome mgrid_mpi_goes_on(mpi_backend *m, size_t n, mgrid_error *err);

/* --------------------------------------------------------- communicators.c */

/* The next four functions are `check`, `create`, `destroy` and `prove` of backend.h. */
mgrid_status mgrid_mpi_check(mgrid_backend *b, size_t n, const mgrid_comm_spec *spec,
                             mgrid_error *err);
mgrid_outcome mgrid_mpi_create(mgrid_backend *b, size_t n, const mgrid_comm_spec *spec,
                               void **native, mgrid_error *err);
void mgrid_mpi_destroy(mgrid_backend *b, size_t n, void **native);
mgrid_outcome mgrid_mpi_prove(mgrid_backend *b, const mgrid_comm_spec *spec, void *native,
                              mgrid_error *err);
/* The next two functions are `wants_single` and `single` of a backend: communicators of one
** rank. */
bool mgrid_mpi_wants_single(const mgrid_backend *b, const mgrid_choice *c);
mgrid_status mgrid_mpi_single(mgrid_backend *b, const mgrid_comm_spec *spec, void **native,
                              mgrid_error *err);
/* Delete function of the attribute `guard`. It fails when the host frees a group's communicator. */
int mgrid_mpi_keeps(MPI_Comm comm, int key, void *box, void *backend);

/* ------------------------------------------------------------------ mpi_move.c */

extern const mgrid_transport_ops mgrid_mpi_transport;

/* ------------------------------------------------------------------ open.c */

/* Return MPI's number of a level of threads; for MGRID_THREADS_ANY that of MPI_THREAD_FUNNELED. */
int mgrid_mpi_level(mgrid_threads wanted);

#endif
