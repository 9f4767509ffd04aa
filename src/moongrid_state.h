/* SPDX-License-Identifier: MIT
**
** moongrid_state.h - states: the communicators of a plan, the questions of a trainer to its groups, and states that change while
** the job runs.
*/
#ifndef MOONGRID_H
#include "moongrid.h" /* which includes this header in its place */
#elif !defined MOONGRID_STATE_H
#define MOONGRID_STATE_H

#ifdef __cplusplus
extern "C" {
#endif

typedef struct mgrid_state mgrid_state; /* a plan made real, seen from this rank */
typedef struct mgrid_group mgrid_group; /* a handle: this rank's group of a family */

/* Collective over the backend: do all ranks hold the same plan? A rank whose planning
** failed calls with plan NULL and its own error in *failed, so that nobody waits for it.
** MGRID_DISAGREE on every rank, naming the first family that differs and the ranks that differ;
** if planning failed on all ranks, each gets its own error back. failed may be NULL, or err itself. */
MGRID_API mgrid_status mgrid_agree(mgrid_backend *b, const mgrid_plan *plan, const mgrid_error *failed,
                                   mgrid_error *err);
/* Collective over the backend: agree, then create this rank's communicators in schedule
** order. All or nothing: on failure every rank gets an error and nothing stays. Groups
** with equal members and options share a communicator, also with earlier states of the
** same backend. `name` (NULL: "") goes into the names of the communicators; a name that a state of another
** plan has is MGRID_DUPLICATE. Options that the backend does not heed are a warning in the host's log.
** A rank whose planning failed calls with plan NULL and that error alone in *err: it takes part, so that
** nobody waits for it, and every rank gets the error. If the recipe has policies its text is compared as
** well: ranks with equal groups but different files are MGRID_DISAGREE. */
MGRID_API mgrid_state *mgrid_materialize(const mgrid_plan *plan, mgrid_backend *b, const char *name, mgrid_error *err);
/* Collective like mgrid_materialize, in the same order on all ranks. Communicators that
** other states use stay. The state's group handles end here. */
MGRID_API void mgrid_state_free(mgrid_state *s);
/* mgrid_state_free on this rank alone, ahead of the others: of a rank that shares none of its communicators, also lazy
** ones, with another rank; else MGRID_REFUSED, and nothing is freed. Local. The others go on with their communicators
** and free the state later; calls over all ranks of that state (prove, create, move) they make no more. Meanwhile this
** rank may take part in other calls over all ranks, in which only the others compare what states they have. */
MGRID_API mgrid_status mgrid_state_leave(mgrid_state *s, mgrid_error *err);
/* Create the communicators of a lazy family. Collective over the backend; calling it
** again is harmless. */
MGRID_API mgrid_status mgrid_state_create(mgrid_state *s, const char *family, mgrid_error *err);
/* Prove every communicator of this rank by collectives: members and order gathered,
** a sum, a broadcast from every position, a ring, with MPI an all-to-all (up to 512
** members). Collective over the backend; every rank gets the verdict. *proved (may be NULL): communicators proved on
** this rank. */
MGRID_API mgrid_status mgrid_state_prove(mgrid_state *s, int64_t *proved, mgrid_error *err);

MGRID_API const mgrid_plan *mgrid_state_plan(const mgrid_state *s);
MGRID_API int64_t           mgrid_state_rank(const mgrid_state *s);
/* Communicators this state holds, those of groups of one rank left out, and groups this rank belongs to. */
MGRID_API size_t mgrid_state_ncomms(const mgrid_state *s);
MGRID_API size_t mgrid_state_ngroups(const mgrid_state *s);

/* The machine this rank runs on, and how the job is spread over machines, which are told apart by host
** name and boot id and numbered by their lowest rank. Known since the first state of the backend was
** made, so this is local. A dry state answers as if the whole job ran on this machine. */
typedef struct mgrid_machine {
  size_t  size;                   /* sizeof(mgrid_machine) */
  int64_t machines, index;        /* machines of the job; index of this one, 0 to machines - 1 */
  int64_t local_size, local_rank; /* ranks of the job on this machine; index of this rank among them */
  int64_t cores, usable_cores;    /* logical processors: online; that this process is bound to */
  int64_t memory;                 /* bytes of the machine */
  int64_t gpus, gpu;              /* with the nccl backend: GPUs that this process sees, index of its own; else 0, -1 */
  char    name[64];               /* its host name */
} mgrid_machine;
#define MGRID_MACHINE_INIT \
  { sizeof(mgrid_machine), 0, 0, 0, 0, 0, 0, 0, 0, -1, "" }
MGRID_API mgrid_status mgrid_state_machine(const mgrid_state *s, mgrid_machine *m, mgrid_error *err);

/* This rank's group of a family; NULL where the rank is in none (no error) and for an unknown name
** (MGRID_UNKNOWN_NAME, with the nearest one). Looked up once; the handle then costs a pointer read
** and lives as long as the state. */
MGRID_API const mgrid_group *mgrid_state_group(const mgrid_state *s, const char *family, mgrid_error *err);
/* For covers: the nth of this rank's groups of a family (nth = 0, 1, ...); NULL past the last. */
MGRID_API const mgrid_group *mgrid_state_group_nth(const mgrid_state *s, const char *family, size_t nth,
                                                   mgrid_error *err);
/* This rank's coordinate in a dim of a named grid; -1 outside the grid (no error) or for an unknown name
** (MGRID_UNKNOWN_NAME). */
MGRID_API int64_t mgrid_state_coord(const mgrid_state *s, const char *grid, const char *dim, mgrid_error *err);
/* The slice of a named grid along n of its dims that has this rank: mgrid_grid_at with this rank's coordinates in
** the other dims. Its dims have the grid's order, whatever the order of the names; mgrid_grid_position tells this
** rank's position in it. The caller's, as any grid. NULL outside the grid (no error) or for an unknown name. */
MGRID_API mgrid_grid *mgrid_state_submesh(const mgrid_state *s, const char *grid, size_t n, const char *const *dims,
                                          mgrid_error *err);

/* Questions to a handle: local, no allocation, O(1) to O(modes). */
MGRID_API const char *mgrid_group_family(const mgrid_group *g);
MGRID_API int64_t     mgrid_group_position(const mgrid_group *g); /* of this rank in it */
MGRID_API int64_t     mgrid_group_size(const mgrid_group *g);
MGRID_API int64_t     mgrid_group_index(const mgrid_group *g);                /* which group of the family */
MGRID_API int64_t     mgrid_group_at(const mgrid_group *g, int64_t position); /* global rank or -1 */
MGRID_API int64_t     mgrid_group_first(const mgrid_group *g);
MGRID_API int64_t     mgrid_group_last(const mgrid_group *g);
/* Global rank one position on or back; at the ends around the group with wrap, else -1. MPI needs positions in the
** communicator, and MPI_PROC_NULL for none: mgrid_mpi_next and mgrid_mpi_prev of moongrid_mpi.h. */
MGRID_API int64_t mgrid_group_next(const mgrid_group *g, bool wrap);
MGRID_API int64_t mgrid_group_prev(const mgrid_group *g, bool wrap);
/* Position of a global rank in the group, or -1. */
MGRID_API int64_t mgrid_group_position_of(const mgrid_group *g, int64_t rank);
/* For a family with a Cartesian shape (mgrid_options.cartesian), as MPI_Cart_shift: the positions that this rank
** receives from and sends to when all ranks of the group send `displacement` steps along a dim; -1 where that
** is past an end that is not periodic. Neither needs a communicator. Either output may be NULL.
** MGRID_REFUSED for a family without a shape, MGRID_UNKNOWN_NAME for a dim that it has not; both are -1 then. */
MGRID_API mgrid_status mgrid_group_shift(const mgrid_group *g, const char *dim, int64_t displacement, int64_t *source,
                                         int64_t *dest, mgrid_error *err);
/* Write the members in order, at most `cap` of them; returns how many there are. */
MGRID_API int64_t mgrid_group_ranks(const mgrid_group *g, size_t cap, int64_t *out);
/* Where calls on the group come among those on this rank's other groups: a trainer that uses several at a time
** launches the lowest number first. Equal on all members, and no two groups of a rank have the same. Families of a
** list of mgrid_topology_concurrent come in its order, others as they are created. Local, O(modes). */
MGRID_API int64_t mgrid_group_launch_order(const mgrid_group *g);
/* A piece of a group that no communicator is made for: trainers whose pieces change from step to step ask anew in
** every step, since asking is local and costs O(n). */
typedef struct mgrid_segment {
  size_t  size;        /* sizeof(mgrid_segment) */
  int64_t index;       /* which segment of the group this rank is in */
  int64_t start;       /* its first position in the group */
  int64_t members;     /* how many ranks it has */
  int64_t position;    /* of this rank in it, 0 to members - 1 */
  int64_t first, last; /* global ranks of its first and last position */
  int64_t next, prev;  /* global ranks beside this one, around the ends of the segment; alone: this rank */
} mgrid_segment;
#define MGRID_SEGMENT_INIT \
  { sizeof(mgrid_segment), -1, -1, -1, -1, -1, -1, -1, -1 }
/* Cut the group into n consecutive pieces, the first of sizes[0] members and so on, as mgrid_family_segments does with
** a family, and say which one this rank is in. The sizes, each 1 or more, sum to the group's, or one is MGRID_FILL. A
** refusal leaves *out as it was. Local, no allocation. Position p of the segment is global rank
** mgrid_group_at(g, out->start + p). */
MGRID_API mgrid_status mgrid_group_segment(const mgrid_group *g, size_t n, const int64_t *sizes, mgrid_segment *out,
                                           mgrid_error *err);
/* The backend that made the group's communicator: "mpi", "nccl" or "rccl" (a family may ask for one with the
** option `backend`); of a state without communicators "dry", "pmix" or "carrier"; "none" where the family asked for
** that, "" for another group of one rank that has no communicator of its own. */
MGRID_API const char *mgrid_group_backend(const mgrid_group *g);
/* The communicator, or NULL: most groups of one rank, a lazy family not created yet, backend "none", a dry state. See
** mgrid_mpi_comm in moongrid_mpi.h and mgrid_nccl_comm in moongrid_nccl.h, which read it. */
MGRID_API void *mgrid_group_native(const mgrid_group *g);
/* What mgrid_group_native points to. */
typedef enum mgrid_native {
  MGRID_NATIVE_NONE, /* no communicator */
  MGRID_NATIVE_MPI,  /* an MPI_Comm */
  MGRID_NATIVE_NCCL, /* an mgrid_nccl_pair */
  MGRID_NATIVE_OTHER /* what the header of its backend says: mgrid_group_backend */
} mgrid_native;
MGRID_API mgrid_native mgrid_group_native_kind(const mgrid_group *g);

/* ------------------------------------------ what NCCL has beside communicators */

/* A window of a group: memory of this rank from ncclMemAlloc, which all members have registered with
** ncclCommWindowRegister, as symmetric. A family names windows and their bytes in its option `windows`; they are made
** with its communicators, in schedule order, and freed before them. The family shares communicators with no other.
** Refused before anything is made where NCCL is older than 2.27.3. The plan counts them as GPU memory. */
typedef struct mgrid_nccl_window {
  size_t  size;   /* sizeof(mgrid_nccl_window) */
  void   *buffer; /* on the GPU, not zeroed; borrowed: it ends with the communicator */
  int64_t bytes;  /* as the family says */
  void   *handle; /* its ncclWindow_t: mgrid_nccl_window_of in moongrid_nccl.h */
} mgrid_nccl_window;
#define MGRID_NCCL_WINDOW_INIT \
  { sizeof(mgrid_nccl_window), NULL, 0, NULL }
/* The window of that name. All its fields are NULL and 0, without an error, where mgrid_group_native is NULL. An unknown
** name is MGRID_UNKNOWN_NAME. Local, no allocation. */
MGRID_API mgrid_status mgrid_group_window(const mgrid_group *g, const char *name, mgrid_nccl_window *out,
                                          mgrid_error *err);
/* The ncclDevComm that the option `device` asks for (NCCL 2.28.7), made in schedule order and destroyed before the
** communicator. *version (may be NULL): 22809 is NCCL 2.28.9, whose ncclDevComm it is; kernels built with headers of
** another 2.x cannot read it, which mgrid_nccl_device in moongrid_nccl.h looks at. NULL and 0 where there is none.
** Local. */
MGRID_API const void *mgrid_group_device(const mgrid_group *g, int *version);

/* -------------------------- states that change: ranks are lost, come, give memory */

/* After ranks are lost: make the groups of a family without them, in the same order, as a new state with
** that one family. The remaining ranks of a group ask each other, by messages of the carrier that have deadlines,
** whether all of them can use ncclCommShrink (NCCL 2.27 and later; never after an error of the network, which
** stays with a communicator); if not, or if it fails, they abort the old communicator and make a new one from a
** fresh id. The host's log says which: MGRID_LOG_INFO "...: 3 ranks, by ncclCommShrink", or MGRID_LOG_WARN
** "...: created again with 3 ranks, from a fresh id, because ..." with the reason of this rank. The lost are never
** contacted, what runs on the old communicator ends, and groups without lost ranks keep theirs. What hangs on
** other communicators ends by mgrid_state_revoke, called before.
** Collective over the remaining ranks of each group that lost some, with the same n ranks on all; not
** over the world, since lost ranks cannot answer. Free the old state as usual; its communicators with
** lost ranks are then aborted. MPI's communicators cannot shrink (MGRID_UNSUPPORTED). */
MGRID_API mgrid_state *mgrid_state_shrink(mgrid_state *s, const char *family, size_t n, const int64_t *lost,
                                          mgrid_error *err);
/* End what runs on the communicators of the state, on this rank: a collective that waits for a
** lost rank ends. Afterwards only mgrid_state_shrink and mgrid_state_free work on them. With NCCL
** before 2.28.7, which cannot revoke, they are aborted, and shrink makes them anew. All ranks that remain call
** it: NCCL waits for those of this machine. MGRID_TIMED_OUT after the backend's timeout. A state of the nccl backend
** revokes NCCL's, and MPI's go on; one of the mpi backend revokes MPI's, where a call that waits then ends with MPI's
** error (Open MPI 5.0 under mpirun --with-ft ulfm); else nothing changes and it is MGRID_UNSUPPORTED. */
MGRID_API mgrid_status mgrid_state_revoke(mgrid_state *s, mgrid_error *err);
/* After ranks have come: the state of a larger world, on the ranks that were there. `larger` is a backend over all ranks,
** old and new; the old ones keep their numbers (as MPI_Intercomm_merge gives them with high = false), the new ones
** come behind. `plan` is for that world. New ranks call mgrid_state_join, with an equal plan and name. For each group
** of NCCL's its members ask each other what all of them can, and do the best of these:
**   keep  a group that is as it was, with the same options, keeps its communicator, which leaves the old state (it is
**         unique to that state, and has neither windows nor a device communicator)
**   grow  a group whose first members are all that it had, in their order, is grown by ncclCommGrow (NCCL 2.29.2
**         and later, without NCCL_COMM_ID), which keeps their positions; the old communicator stays
**   anew  all others are made from a fresh id, as by mgrid_materialize
** The host's log says for each which, and why not better (MGRID_LOG_INFO). Other backends cannot keep or grow: with
** MPI all communicators are created again, a dry state has none; the calls work all the same. Names of states, and
** communicators that are shared, belong to one backend: those of `larger`.
** Collective over `larger`: agree, then all or nothing; after a failure the old state is as it was, except that a
** communicator that blocks, whose ncclCommGrow did not end since another rank failed, is of no more use. After success
** free it: what it can still do is answer questions and be freed, and that is collective over the old world. A rank that
** cannot plan calls with plan NULL and its error in *err, as with mgrid_materialize. No old rank may use the old
** state's NCCL communicators while the call runs. s is not freed. */
MGRID_API mgrid_state *mgrid_state_grow(mgrid_state *s, const mgrid_plan *plan, mgrid_backend *larger, const char *name,
                                        mgrid_error *err);
/* The same on a rank that is new. */
MGRID_API mgrid_state *mgrid_state_join(const mgrid_plan *plan, mgrid_backend *larger, const char *name,
                                        mgrid_error *err);

/* What the NCCL communicators of a state hold of this rank's GPU, as NCCL counts it (ncclCommMemStats, NCCL 2.29.7). */
typedef struct mgrid_held_memory {
  size_t  size;          /* sizeof(mgrid_held_memory) */
  int64_t communicators; /* of NCCL, those that other states share too */
  int64_t suspended;     /* of these by mgrid_state_suspend */
  int64_t total;         /* bytes */
  int64_t suspendable;   /* of these: what mgrid_state_suspend gives back */
  int64_t persistent;    /* and what it does not */
} mgrid_held_memory;
#define MGRID_HELD_MEMORY_INIT \
  { sizeof(mgrid_held_memory), 0, 0, 0, 0, 0 }
/* MGRID_UNSUPPORTED by name and version where NCCL is older; all 0 for a state without communicators of NCCL. Local,
** O(communicators). */
MGRID_API mgrid_status mgrid_state_held_memory(const mgrid_state *s, mgrid_held_memory *out, mgrid_error *err);
/* Give the GPU memory of all NCCL communicators of the state back, as far as NCCL can (ncclCommSuspend, NCCL 2.29.7),
** and take it again. Between the two nothing may use them; other states that share one lose it, too. Suspending waits
** for the GPU. A state that is suspended already, or not, is left as it is; one that is freed is resumed first.
** Communicators that share resources with another (split_share) cannot be suspended, which NCCL refuses. Collective
** over the backend, all ranks get the verdict; after a failure some are suspended and some not, and the state is to be
** freed. MGRID_UNSUPPORTED by name and version before anything is done where NCCL is older; with other backends
** there is nothing to do. */
MGRID_API mgrid_status mgrid_state_suspend(mgrid_state *s, mgrid_error *err);
MGRID_API mgrid_status mgrid_state_resume(mgrid_state *s, mgrid_error *err);

#ifdef __cplusplus
}
#endif
#endif
