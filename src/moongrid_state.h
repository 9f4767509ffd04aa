/* SPDX-License-Identifier: MIT
**
** moongrid_state.h - states: the communicators of a plan, a trainer's questions about its groups,
** and states that change while the job runs.
*/
#ifndef MOONGRID_H
#include "moongrid.h" /* includes this header after the headers that it needs */
#elif !defined MOONGRID_STATE_H
#define MOONGRID_STATE_H

#ifdef __cplusplus
extern "C" {
#endif

typedef struct mgrid_state mgrid_state; /* this rank's groups and communicators of a plan */
typedef struct mgrid_group mgrid_group; /* this rank's group of a family */

/* Check that all ranks have the same plan. Collective over the backend. A rank whose planning
** failed passes plan NULL and its error in *failed, so that the other ranks do not wait for it. If
** plans differ, every rank gets MGRID_DISAGREE, which names the first family and the ranks that
** differ. If planning failed on some ranks, every rank gets MGRID_DISAGREE with the error of the
** first of them; if on all, each rank gets its own error back. failed may be NULL, or err
** itself. */
MGRID_API mgrid_status mgrid_agree(mgrid_backend *b, const mgrid_plan *plan,
                                   const mgrid_error *failed, mgrid_error *err);
/* Agree on the plan, then create this rank's communicators in schedule order, except those of lazy
** families. Collective over the backend. If one rank fails, every rank gets an error and no
** communicator stays. Groups with equal members and options share a communicator, also with earlier
** states of the same backend. `name` (NULL: "") becomes part of the communicators' names;
** MGRID_DUPLICATE if a state of another plan has that name, unless it is "". The host's log gets a
** warning about options that the backend ignores. A rank whose planning failed passes plan NULL and
** its error in *err, so that the other ranks do not wait for it; every rank gets an error. If the
** recipe has policies, its text is compared as well: if it differs, all ranks get MGRID_DISAGREE,
** even if their plans are equal. */
MGRID_API mgrid_state *mgrid_materialize(const mgrid_plan *plan, mgrid_backend *b, const char *name,
                                         mgrid_error *err);
/* Add an owner; this never fails. Add the same number of owners on every rank. Local. */
MGRID_API mgrid_state *mgrid_state_ref(mgrid_state *s);
/* Remove an owner. The call that removes the last owner is collective like mgrid_materialize, and
** all ranks make these calls in the same order. It ends the state and its group handles.
** Communicators that other states use stay. */
MGRID_API void mgrid_state_free(mgrid_state *s);
/* Free the state on this rank before the other ranks do. Local. If this rank shares a communicator
** of the state with another rank, even one that a lazy family would create later, return
** MGRID_REFUSED and free nothing. The other ranks keep their communicators and free the state
** later; they may no longer make calls over all ranks of the state (prove, create, move). This rank
** may still take part in other calls over all ranks. Such calls check that all ranks have the same
** states; from now on this check skips this rank. */
MGRID_API mgrid_status mgrid_state_leave(mgrid_state *s, mgrid_error *err);
/* Create the communicators of a lazy family. Collective over the backend, also if they exist
** already; then nothing is created. */
MGRID_API mgrid_status mgrid_state_create(mgrid_state *s, const char *family, mgrid_error *err);
/* Prove every communicator of this rank by collectives: a broadcast from every position (members
** and order), a sum, a ring, and with MPI an all-to-all (up to 512 members). Collective over the
** backend; every rank gets the verdict. *proved (may be NULL) is the number of communicators of
** this rank with several members on which the proof ran. Return MGRID_NO_KERNEL if calls end but
** write nothing, as over a GPU runtime without kernels. Then nothing is proved, and the
** communicators stay usable. */
MGRID_API mgrid_status mgrid_state_prove(mgrid_state *s, int64_t *proved, mgrid_error *err);

MGRID_API const mgrid_plan *mgrid_state_plan(const mgrid_state *s);
MGRID_API int64_t mgrid_state_rank(const mgrid_state *s);
/* Return the number of communicators of this state. Those of groups of one rank do not count. */
MGRID_API size_t mgrid_state_ncomms(const mgrid_state *s);

/* The machine of this rank, and how the job is spread over machines. Host name and boot id identify
** a machine; machines are numbered in the order of their lowest ranks. Ranks exchange this data
** when the first state of the backend is made, so the call is local. A dry state answers as if the
** whole job ran on this machine. */
typedef struct mgrid_machine {
  size_t size;             /* sizeof(mgrid_machine) */
  int64_t machines, index; /* machines of the job; index of this one, 0 to machines - 1 */
  /* ranks of the job on this machine; index of this rank among them */
  int64_t local_size, local_rank;
  /* logical processors that are online; those that this process may use */
  int64_t cores, usable_cores;
  int64_t memory; /* bytes of the machine */
  /* with the nccl backend: GPUs that this process sees, index of its own; else 0, -1 */
  int64_t gpus, gpu;
  char name[64]; /* its host name */
} mgrid_machine;
#define MGRID_MACHINE_INIT \
  { sizeof(mgrid_machine), 0, 0, 0, 0, 0, 0, 0, 0, -1, "" }
MGRID_API mgrid_status mgrid_state_machine(const mgrid_state *s, mgrid_machine *m,
                                           mgrid_error *err);

/* Return this rank's group of a family; NULL if the rank is in none (no error) or the name is
** unknown (MGRID_UNKNOWN_NAME, with the nearest name). Look it up once: the handle is valid as long
** as the state. */
MGRID_API const mgrid_group *mgrid_state_group(const mgrid_state *s, const char *family,
                                               mgrid_error *err);
/* For covers: return the nth group of this rank in a family (from 0); NULL past the last. */
MGRID_API const mgrid_group *mgrid_state_group_nth(const mgrid_state *s, const char *family,
                                                   size_t nth, mgrid_error *err);
/* Return this rank's coordinate in a dim of a named grid; -1 outside the grid (no error) or for an
** unknown name (MGRID_UNKNOWN_NAME). */
MGRID_API int64_t mgrid_state_coord(const mgrid_state *s, const char *grid, const char *dim,
                                    mgrid_error *err);
/* Return the part of a named grid along n of its dims that contains this rank. It equals
** mgrid_grid_at with this rank's coordinates in the other dims. Its dims keep the grid's order,
** whatever the order of the names; mgrid_grid_position gives this rank's position in it. The caller
** frees it. Return NULL if this rank is outside the grid (no error) or the name is unknown. */
MGRID_API mgrid_grid *mgrid_state_submesh(const mgrid_state *s, const char *grid, size_t n,
                                          const char *const *dims, mgrid_error *err);

/* These functions query a group. They are local, allocate nothing, and take O(1) to O(modes). */
MGRID_API const char *mgrid_group_family(const mgrid_group *g);
MGRID_API int64_t mgrid_group_position(const mgrid_group *g); /* of this rank in it */
MGRID_API int64_t mgrid_group_size(const mgrid_group *g);
MGRID_API int64_t mgrid_group_index(const mgrid_group *g); /* which group of the family */
MGRID_API int64_t mgrid_group_at(const mgrid_group *g, int64_t position); /* global rank or -1 */
/* Return the global rank `steps` positions after this one: 1 is the next rank, -1 the previous one.
** Past an end return -1, or with `wrap` continue from the other end. For MPI calls use
** mgrid_mpi_next and mgrid_mpi_prev of moongrid_mpi.h: they return positions in the communicator,
** or MPI_PROC_NULL. */
MGRID_API int64_t mgrid_group_beside(const mgrid_group *g, int64_t steps, bool wrap);
/* Return the position of a global rank in the group, or -1. */
MGRID_API int64_t mgrid_group_position_of(const mgrid_group *g, int64_t rank);
/* Do what MPI_Cart_shift does, for a family with a Cartesian shape (mgrid_options.cartesian): find
** the positions that this rank receives from and sends to if all ranks of the group send
** `displacement` steps along a dim. A position past an end is -1 if the dim is not periodic. The
** call needs no communicator. Either output may be NULL. Return MGRID_REFUSED for a family without
** a shape, MGRID_UNKNOWN_NAME for an unknown dim; both outputs are -1 then. */
MGRID_API mgrid_status mgrid_group_shift(const mgrid_group *g, const char *dim,
                                         int64_t displacement, int64_t *source, int64_t *dest,
                                         mgrid_error *err);
/* Write the members in order, at most `cap` of them; return how many there are. */
MGRID_API int64_t mgrid_group_ranks(const mgrid_group *g, size_t cap, int64_t *out);
/* Return the place of the group in the launch order of this rank's groups. A trainer that launches
** calls on several groups at a time launches the lowest place first. The place is equal on all
** members, and differs between the groups of a rank. Families in a list of
** mgrid_topology_concurrent follow that list; other families follow the order of creation. Local,
** O(modes). */
MGRID_API int64_t mgrid_group_launch_order(const mgrid_group *g);
/* A segment of a group has no communicator. It is for trainers whose segments change from step to
** step. */
typedef struct mgrid_segment {
  size_t size;         /* sizeof(mgrid_segment) */
  int64_t index;       /* which segment of the group this rank is in */
  int64_t start;       /* its first position in the group */
  int64_t members;     /* how many ranks it has */
  int64_t position;    /* of this rank in it, 0 to members - 1 */
  int64_t first, last; /* global ranks of its first and last position */
  /* global ranks of the neighbours, around the ends; without neighbours: this rank */
  int64_t next, prev;
} mgrid_segment;
#define MGRID_SEGMENT_INIT \
  { sizeof(mgrid_segment), -1, -1, -1, -1, -1, -1, -1, -1 }
/* Cut the group into n consecutive segments, the first of sizes[0] members and so on, and describe
** the one that this rank is in; mgrid_family_segments cuts a whole family. The sizes, each 1 or
** more, sum to the group size, or one is MGRID_FILL. A refusal leaves *out unchanged. Local, O(n),
** no allocation. Position p of the segment is global rank mgrid_group_at(g, out->start + p). */
MGRID_API mgrid_status mgrid_group_segment(const mgrid_group *g, size_t n, const int64_t *sizes,
                                           mgrid_segment *out, mgrid_error *err);
/* Return the backend of the group's communicator: that of the family's option `backend` ("mpi",
** "nccl", "rccl" or "none"), else that of the state, which makes no communicators if it is "dry",
** "pmix" or "carrier". "" for groups of one rank without a communicator of their own, unless the
** family chose "none". */
MGRID_API const char *mgrid_group_backend(const mgrid_group *g);
/* Return the communicator, which mgrid_mpi_comm (moongrid_mpi.h) and mgrid_nccl_comm
** (moongrid_nccl.h) read. It is NULL for most groups of one rank, for a lazy family that is not
** created yet, for backend "none", and in a state without communicators ("dry", "pmix",
** "carrier"). */
MGRID_API void *mgrid_group_native(const mgrid_group *g);
/* The type that mgrid_group_native points to. */
typedef enum mgrid_native {
  MGRID_NATIVE_NONE, /* no communicator */
  MGRID_NATIVE_MPI,  /* an MPI_Comm */
  MGRID_NATIVE_NCCL, /* an mgrid_nccl_pair */
  MGRID_NATIVE_OTHER /* a type of the header of its backend (mgrid_group_backend) */
} mgrid_native;
MGRID_API mgrid_native mgrid_group_native_kind(const mgrid_group *g);

/* ------------------------------------------ what NCCL has beside communicators */

/* A window of a group is memory of this rank from ncclMemAlloc. All members have registered their
** windows as symmetric (ncclCommWindowRegister). A family names its windows and their bytes in the
** option `windows`. The windows are made with the communicators, in schedule order, and freed
** before them. Such a family shares communicators with no other family. With NCCL before 2.27.3 it
** is refused before anything is made. The plan counts windows as GPU memory. */
typedef struct mgrid_nccl_window {
  size_t size;   /* sizeof(mgrid_nccl_window) */
  void *buffer;  /* on the GPU, not zeroed; borrowed: it ends with the communicator */
  int64_t bytes; /* as the family says */
  void *handle;  /* its ncclWindow_t: mgrid_nccl_window_of in moongrid_nccl.h */
} mgrid_nccl_window;
#define MGRID_NCCL_WINDOW_INIT \
  { sizeof(mgrid_nccl_window), NULL, 0, NULL }
/* Get a window by name. If the group has no communicator of NCCL, the fields of *out are NULL and
** 0, without an error. Return MGRID_UNKNOWN_NAME for an unknown name. Local, no allocation. */
MGRID_API mgrid_status mgrid_group_window(const mgrid_group *g, const char *name,
                                          mgrid_nccl_window *out, mgrid_error *err);
/* Return the group's ncclDevComm, which the option `device` asks for (NCCL 2.28.7 and later). It is
** created in schedule order, and destroyed before the communicator. *version (may be NULL) is the
** version of NCCL that it belongs to, 22809 for 2.28.9: kernels built with headers of another 2.x
** cannot read it. mgrid_nccl_device in moongrid_nccl.h checks this. Return NULL and 0 if there is
** none. Local. */
MGRID_API const void *mgrid_group_device(const mgrid_group *g, int *version);

/* ------------------------------ states that change: lost ranks, new ranks, memory */

/* After ranks are lost, make a new state with one family: its groups without the lost ranks, in the
** same order. Groups without lost ranks keep their communicator. MPI's communicators cannot shrink
** (MGRID_UNSUPPORTED).
**
** Collective over the remaining ranks of each group that lost some; all of them pass the same n
** ranks. It is not a call over the world, because lost ranks cannot answer. The remaining ranks ask
** each other, by messages with deadlines over the carrier, whether all of them can use
** ncclCommShrink. It needs NCCL 2.27 or later, and a communicator without an earlier error of the
** network. If some ranks cannot use it, or if it fails, all of them abort the old communicator and
** make a new one from a fresh id. The host's log says which: MGRID_LOG_INFO "...: 3 ranks, by
** ncclCommShrink", or MGRID_LOG_WARN "...: created again with 3 ranks, from a fresh id, because
** ..." with the reason of this rank. Lost ranks are never contacted.
**
** Shrinking ends the calls that still run on the old communicator. To end calls that hang on other
** communicators, call mgrid_state_revoke first. Free the old state as usual; its communicators with
** lost ranks are then aborted. */
MGRID_API mgrid_state *mgrid_state_shrink(mgrid_state *s, const char *family, size_t n,
                                          const int64_t *lost, mgrid_error *err);
/* End the calls that run on the communicators of the state on this rank, for example a collective
** that waits for a lost rank. Afterwards only mgrid_state_shrink and mgrid_state_free work on them.
** All remaining ranks must call it, because NCCL waits for the ranks of the same machine. Return
** MGRID_TIMED_OUT after the backend's timeout.
**
** A state of the nccl backend revokes NCCL's communicators, not MPI's. NCCL before 2.28.7 cannot
** revoke: then its communicators are aborted, and mgrid_state_shrink makes new ones. A state of the
** mpi backend revokes MPI's, so that a waiting call ends with MPI's error (Open MPI 5.0 under
** mpirun --with-ft ulfm). With other MPI libraries the call changes nothing and returns
** MGRID_UNSUPPORTED. */
MGRID_API mgrid_status mgrid_state_revoke(mgrid_state *s, mgrid_error *err);
/* After ranks have joined, make the state of the larger world on an old rank. mgrid_state_enlarge
** (moongrid_survive.h) does this on old and new ranks, and also makes the plan and the move.
** `larger` is a backend over all ranks, old and new. The old ranks keep their numbers, and the new
** ones follow (as MPI_Intercomm_merge orders them, with high = false on the old ones). `plan` is
** for that world. New ranks call mgrid_state_join with an equal plan and name. MGRID_UNSUPPORTED if
** a family of the plan has a `parent`. For each NCCL group the members take the first of these ways
** that is open to all of them:
**
**   keep   An unchanged group with the same options keeps its communicator, which leaves the old
**          state. No other state may use it, and it may have no windows and no device communicator.
**   grow   If a group starts with all its old members in their order, ncclCommGrow adds the new
**          ones (NCCL 2.29.2 and later, without NCCL_COMM_ID). Old members keep their positions,
**          and the old communicator stays.
**   anew   Any other group gets a communicator from a fresh id, as in mgrid_materialize.
**
** For each group the host's log says which way was taken, and why not an earlier one
** (MGRID_LOG_INFO). Other backends cannot keep or grow: with MPI all communicators are created
** again, and a dry state has none. The new state shares communicators only with states of `larger`,
** and its name may equal that of the old state.
**
** Collective over `larger`, all or nothing. During the call no old rank may use the old state's
** NCCL communicators. A rank that cannot plan calls with plan NULL and its error in *err, as with
** mgrid_materialize. After a failure the old state is unchanged, with one exception: if another
** rank failed and ncclCommGrow of a blocking communicator did not return, that communicator is no
** longer usable. The call does not free s: free it after success, which is collective over the old
** world. Until then s only answers queries. */
MGRID_API mgrid_state *mgrid_state_grow(mgrid_state *s, const mgrid_plan *plan,
                                        mgrid_backend *larger, const char *name, mgrid_error *err);
/* Make the state of the larger world on a new rank. Collective over `larger`. */
MGRID_API mgrid_state *mgrid_state_join(const mgrid_plan *plan, mgrid_backend *larger,
                                        const char *name, mgrid_error *err);

/* The memory of this rank's GPU that the NCCL communicators of a state hold, as NCCL counts it
** (ncclCommMemStats, NCCL 2.29.7 and later). */
typedef struct mgrid_held_memory {
  size_t size;           /* sizeof(mgrid_held_memory) */
  int64_t communicators; /* of NCCL, including those that other states use, too */
  int64_t suspended;     /* communicators that mgrid_state_suspend has suspended */
  int64_t total;         /* bytes, also while they are suspended */
  int64_t suspendable;   /* bytes of `total` that mgrid_state_suspend gives back */
  int64_t persistent;    /* bytes of `total` that it does not give back */
} mgrid_held_memory;
#define MGRID_HELD_MEMORY_INIT \
  { sizeof(mgrid_held_memory), 0, 0, 0, 0, 0 }
/* Get the memory that a state holds. Return MGRID_UNSUPPORTED with an older NCCL; the message has
** its version. For a state without NCCL communicators all numbers are 0. Local,
** O(communicators). */
MGRID_API mgrid_status mgrid_state_held_memory(const mgrid_state *s, mgrid_held_memory *out,
                                               mgrid_error *err);
/* Suspend gives back the GPU memory of all NCCL communicators of the state, as far as NCCL can
** (ncclCommSuspend, NCCL 2.29.7 and later). Resume takes it again. In between nothing may use these
** communicators, not even another state that shares one. Suspending waits for the GPU. A second
** suspend or resume does nothing; freeing a suspended state resumes it first. NCCL refuses to
** suspend communicators that share resources with another (split_share).
**
** Collective over the backend; all ranks return the same result. After a failure some communicators
** are suspended and some are not: free the state. An older NCCL gives MGRID_UNSUPPORTED before
** anything is done; the message has its version. With other backends the calls do nothing. */
MGRID_API mgrid_status mgrid_state_suspend(mgrid_state *s, mgrid_error *err);
MGRID_API mgrid_status mgrid_state_resume(mgrid_state *s, mgrid_error *err);

#ifdef __cplusplus
}
#endif
#endif
