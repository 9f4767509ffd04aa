/* SPDX-License-Identifier: MIT
**
** mpi.h - what the files of the mpi backend share: mpi.c, mpi_*.c.
*/
#ifndef MGRID_COMM_MPI_H
#define MGRID_COMM_MPI_H

#include "comm/backend.h"
#include "moongrid_mpi.h"

/* MPICH's MPI_STATUSES_IGNORE is the address 1, which gcc takes for an array that is too short. */
#if defined(__GNUC__) && !defined(__clang__) && !defined(OPEN_MPI)
#pragma GCC diagnostic ignored "-Wstringop-overflow"
#endif

/* Open MPI 5 has sessions, and is of MPI 3.1. */
#if MPI_VERSION >= 4 || (defined(OPEN_MPI) && OMPI_MAJOR_VERSION >= 5)
#define MGRID_MPI_SESSIONS
#else
typedef int MPI_Session;
#endif

typedef struct mpi_note  mpi_note;
typedef struct mpi_watch mpi_watch;

/* What a rank reported in a roll call: the call that it is in, a count of what it has moved, and when. */
typedef struct mpi_report {
  uint64_t number, moved;
  double   at;
} mpi_report;

/* Who has come to one call: roll.c. */
typedef struct mpi_backend mpi_backend;
typedef struct mpi_roll {
  mpi_backend   *m;
  const int32_t *ranks; /* [size] that take part; NULL: all */
  int64_t        size;
  uint64_t       number;               /* of the call: equal on all of them, different from others' */
  double         begun, seconds;       /* now; at most */
  double         look, looked;         /* when to look again; when that was done last */
  double         next;                 /* when to report again; of the first in a move, to look who is silent */
  double         since;                /* when the first was heard last; before that, when this rank began to listen */
  bool           moves;                /* of a move, whose end all ranks wait for */
  bool           away, answered, told; /* this rank was not there for long; the first is; the roll has been called: */
  mgrid_missing  missing;              /* the result */
} mpi_roll;

/* The least of some words over all ranks, along a tree: tree.c. Its memory is the backend's, because MPI may still
** write there if it does not end. */
enum { MGRID_TREE_WORDS = 8, MGRID_TREE_CHILDREN = 16 };
typedef struct mpi_tree {
  enum { MGRID_TREE_RISES, MGRID_TREE_FALLS, MGRID_TREE_ENDS } phase;
  size_t      n;         /* words */
  int         nchildren; /* of this rank */
  uint64_t    words[MGRID_TREE_WORDS], answer[MGRID_TREE_WORDS], child[MGRID_TREE_CHILDREN][MGRID_TREE_WORDS];
  MPI_Request children[MGRID_TREE_CHILDREN], own[2]; /* of those; the answer, and what was sent for it */
} mpi_tree;

struct mpi_backend {
  mgrid_backend base; /* first: ops get a pointer to it */
  /* Duplicates of the host's communicator, which is never used for our traffic: for calls over all ranks, creations and
  ** notices, which tags tell apart; for the messages of a carrier, made by its `start`. Errors on them return. */
  MPI_Comm       comm, talk;
  MPI_Comm       given;          /* the host's own in place of `comm`, which ends as it was; else MPI_COMM_NULL */
  MPI_Errhandler handler;        /* of the host's communicator when it was handed over: that of the groups */
  MPI_Group      members;        /* of comm */
  int            guard;          /* a keyval: an attribute of each communicator of a group, which keeps it */
  bool           finalize;       /* mpi_open has initialized MPI, so close finalizes it */
  bool           sessions;       /* the host has those alone: there is no MPI_COMM_WORLD, no MPI_COMM_SELF */
  MPI_Session    session;        /* then ours, which keeps MPI until the backend ends */
  bool           main;           /* MPI lets the main thread alone call it */
  double         seconds, usual; /* a call over all ranks may take: now; unless a carrier's user says otherwise */
  uint64_t       phase;          /* notices of this phase count: mgrid_carrier_ops.phase */
  uint64_t       calls;          /* calls over all ranks so far; equal on all ranks */
  /* Of a move: move.c. */
  MPI_Request *request; /* [nrequests], by slot */
  int          nrequests;
  double       before;    /* `seconds` as it was before */
  struct {                /* until all ranks are through with it: wait.c */
    bool     on, stalled; /* the verdict is to come; nothing moved for a deadline */
    uint64_t count;       /* what has ended on this rank, in all moves */
    double   last;        /* on the first rank: when any rank has told that something ended */
    mpi_roll roll;
  } moving;
  struct {              /* of moves in memory of a GPU: gpu.c */
    bool  looked, used; /* for the runtime of CUDA; by parts of this move */
    void *lib;          /* NULL: the process has none */
    int (*copy)(void *, size_t, const void *, size_t, size_t, size_t, int); /* cudaMemcpy2D */
  } cuda;
  mpi_tree    tree;       /* of the small call over all ranks that goes on */
  mpi_watch  *watch;      /* of creations, and of the verdict on them; NULL: there was none yet */
  uint64_t    job;        /* a number of this backend, equal on all ranks, of no other in the world: watchdog.c */
  mpi_note   *note;       /* those that MPI has not taken yet */
  mpi_report *here;       /* [world], of the roll call: what each reported last; NULL before */
  int64_t     made, most; /* communicators of this backend; it may have, 0: what MPI has numbers for */
  bool        survives;   /* MPI goes on when a process fails, and tells it: lost.c */
  bool        dies;       /* where MPI cannot return the process ends at the deadline: MGRID_DEADLINE_ABORT */
  bool        hurry;      /* a call over a group did not end: the next one over all has a quarter of the time */
  bool        pending;    /* a call over a group is still there: its memory is leaked */
  bool        broken;     /* a call over all ranks did not end: make no more calls of MPI */
};

/* A communicator of a group: what mgrid_group_native gives, of which moongrid_mpi.h reads the first field. */
typedef struct mpi_comm {
  MPI_Comm comm;
  uint64_t calls; /* of ours over it; equal on all members */
  bool     stuck; /* one of them did not end */
  bool     ends;  /* we free it; else nobody may: mgrid_mpi_keeps */
} mpi_comm;

/* Tags on `comm`: a rank failed (has its phase); it is in a call (has the number); who is missing; the data of a move
** (tests/mpi/move.c knows it); the first has heard of a call; a tree; those of creations, whose messages some libraries send as
** any others, are MGRID_TAGS and above. */
enum {
  MGRID_TAG_FAILED = 1,
  MGRID_TAG_HERE = 2,
  MGRID_TAG_MISSING = 3,
  MGRID_TAG_MOVE = 4,
  MGRID_TAG_THERE = 5,
  MGRID_TAG_RISE = 6,
  MGRID_TAG_FALL = 7,
  MGRID_TAGS = 8
};

/* notes.c. Send a rank some bytes (160 at most), without waiting until MPI has taken them; the result of MPI. */
int mgrid_mpi_post(mpi_backend *m, int64_t to, int tag, const void *data, size_t bytes);
/* Wait until it has taken all, for a deadline at most: has it? */
bool mgrid_mpi_posted(mpi_backend *m);

/* roll.c. _look: what a rank does for it while it waits; has it been told who is missing? _end: after the deadline. */
mpi_roll      mgrid_roll_begin(mpi_backend *m, const int32_t *ranks, int64_t size, uint64_t number, double seconds);
bool          mgrid_roll_look(mpi_roll *r);
mgrid_missing mgrid_roll_end(mpi_roll *r);

/* The number of the nth call over a group of this name: the name (FNV-1a) above, the call in the low bits. Calls over all
** ranks have small numbers. */
enum { MGRID_MPI_CALL_BITS = 24 };
static inline uint64_t mgrid_mpi_number(const char *name, uint64_t nth) {
  uint64_t h = UINT64_C(0xcbf29ce484222325);
  for (; *name; name++) h = (h ^ (unsigned char)*name) * UINT64_C(0x100000001b3);
  return UINT64_C(1) << 63 | h << MGRID_MPI_CALL_BITS | (nth & ((1 << MGRID_MPI_CALL_BITS) - 1));
}

/* A call that does not block: MPI's, or ours along the tree of a backend. */
typedef struct mpi_request {
  MPI_Request  request;
  int          rc; /* result of MPI */
  mpi_backend *tree;
} mpi_request;
mgrid_outcome mgrid_mpi_through(void *request); /* mgrid_look: has it finished? */
/* Wait for a call over a group, of which it names the missing. Its buffers outlive a failure: MPI may write there. */
mgrid_status mgrid_mpi_finish_group(mpi_backend *m, const mgrid_comm_spec *spec, mpi_comm *c, mpi_request call,
                                    double seconds, const char *name, mgrid_error *err);

mgrid_status mgrid_mpi_failed(mgrid_error *err, int rc, const char *call, const char *what);
/* lost.c. Has MPI told that processes of these ranks (NULL: of any) have failed? And the error of a call that did: it
** names them, if there are any. */
bool         mgrid_mpi_lost(const mpi_backend *m, const int32_t *ranks, int64_t size, mgrid_missing *lost);
mgrid_status mgrid_mpi_failed_in(const mpi_backend *m, mgrid_error *err, int rc, const char *call, const char *what);
/* May MPI be called now, here? Not when it is finalized, from a thread that may not, or after a call that did not end. */
bool         mgrid_mpi_there(const mpi_backend *m); /* it is neither finalized nor not initialized yet */
mgrid_status mgrid_mpi_usable(const mpi_backend *m, mgrid_error *err);
/* Let errors of a communicator return while we use it: _quiet gives the handler that it had before. */
MPI_Errhandler mgrid_mpi_quiet(MPI_Comm comm);
void           mgrid_mpi_restore(MPI_Comm comm, MPI_Errhandler was);

extern const mgrid_backend_ops mgrid_mpi_ops; /* mpi.c */
mgrid_status                   mgrid_mpi_revoke(mgrid_backend *b, size_t n, void **native, mgrid_error *err);
void                           mgrid_mpi_close(mgrid_backend *b);

/* gpu.c: of mgrid_transport_ops */
mgrid_status mgrid_mpi_reaches(mgrid_backend *b, const void *data, const char *what, mgrid_error *err);
bool         mgrid_mpi_reads(mgrid_backend *b);
bool         mgrid_mpi_copies(mgrid_backend *b);
mgrid_status mgrid_mpi_copy(mgrid_backend *b, const mgrid_slab *s, mgrid_error *err);

/* launch.c: is one MPI library in this process, and was it its launcher that started it? */
enum { MGRID_MPI_VERSION = 16384 }; /* more than any library's MPI_MAX_LIBRARY_VERSION_STRING: it may be another's */
mgrid_status mgrid_mpi_one_library(mgrid_error *err);
/* Before MPI_Init, of MPI_COMM_NULL, what is sure already; then of the communicator that the host hands over. */
mgrid_status mgrid_mpi_launched(MPI_Comm parent, mgrid_error *err);
/* Was Open MPI started with ULFM on (mpirun --with-ft ulfm)? Without, what it revokes hangs on some ranks. */
bool mgrid_mpi_survives(void);

/* The least of unsigned words is asked for as that of signed ones, turned over before and after: MPICH 4.0.2 (Debian
** 12) compares unsigned long as if it were signed. */
static inline void mgrid_mpi_turn(uint64_t *words, size_t n) {
  for (size_t i = 0; i < n; i++) words[i] ^= UINT64_C(1) << 63;
}

/* wait.c: what waits for other ranks. */
mgrid_status mgrid_mpi_allreduce(mgrid_backend *b, uint64_t *words, size_t n, mgrid_error *err);
mgrid_status mgrid_mpi_allgather(mgrid_backend *b, const void *mine, void *all, size_t bytes, mgrid_error *err);
mgrid_status mgrid_mpi_bcast(mgrid_backend *b, void *data, size_t bytes, int64_t root, mgrid_error *err);
/* Duplicate a communicator. Collective over it; the missing are not known by name. */
mgrid_status                   mgrid_mpi_duplicate(mpi_backend *m, MPI_Comm from, MPI_Comm *to, mgrid_error *err);
int64_t                        mgrid_mpi_heard(mgrid_backend *b);
void                           mgrid_mpi_tell(mgrid_backend *b, int64_t to);
extern const mgrid_carrier_ops mgrid_mpi_carrier;

/* From here on until the next call over all ranks, which is the verdict on a move, ranks tell the first that they go on.
** _goes_on: what a rank does for it while it moves, `n` messages since the last time; MGRID_LATE: nothing moves anywhere;
** MGRID_GAVE_UP: ranks are missing, and the verdict names them. */
void          mgrid_mpi_moving(mpi_backend *m);
mgrid_outcome mgrid_mpi_goes_on(mpi_backend *m, size_t n, mgrid_error *err);

/* create.c. Of the attribute `guard`: refuses that the host frees a communicator which it has borrowed. */
int mgrid_mpi_keeps(MPI_Comm comm, int key, void *box, void *backend);
/* Of mgrid_backend. */
bool          mgrid_mpi_wants_single(const mgrid_backend *b, const mgrid_choice *c);
mgrid_status  mgrid_mpi_single(mgrid_backend *b, const mgrid_comm_spec *spec, void **native, mgrid_error *err);
mgrid_outcome mgrid_mpi_create(mgrid_backend *b, size_t n, const mgrid_comm_spec *spec, void **native,
                               mgrid_error *err);

/* tree.c. Begin with up to MGRID_TREE_WORDS words, go on: is it through? The result is in `tree.words`. */
mpi_request   mgrid_mpi_tree_begin(mpi_backend *m, const uint64_t *words, size_t n);
mgrid_outcome mgrid_mpi_tree_through(mpi_backend *m, int *rc);

/* watchdog.c. From _begin to _end, which is that of the verdict, a thread looks at the clock. _enter: this rank is in a
** creation, of that spec; NULL: in none. _through: it waits for the verdict. _is_on: the deadline has not passed yet.
** _missing: wait for that; the ranks that are neither in a creation nor through; false: nobody can know here. */
void mgrid_watch_begin(mpi_backend *m);
void mgrid_watch_enter(mpi_backend *m, const mgrid_comm_spec *spec);
void mgrid_watch_through(mpi_backend *m);
bool mgrid_watch_is_on(const mpi_backend *m);
bool mgrid_watch_missing(const mpi_backend *m, mgrid_missing *missing);
void mgrid_watch_end(mpi_backend *m);
void mgrid_watch_free(mpi_backend *m);

/* move.c */
extern const mgrid_transport_ops mgrid_mpi_transport;

#endif
