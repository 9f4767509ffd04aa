/* SPDX-License-Identifier: MIT
**
** moongrid_elastic.h - states that change while the job runs: ranks are lost, ranks come, GPU memory is given up for a
** while. moongrid.h includes this header, and its rules on words, errors, ownership and structs hold here, too.
*/
#ifndef MOONGRID_ELASTIC_H
#define MOONGRID_ELASTIC_H

#include "moongrid.h"

#ifdef __cplusplus
extern "C" {
#endif

/* After ranks are lost: make the groups of a family without them, in the same order, as a new state with
** that one family. The remaining ranks of a group ask each other, by messages of the carrier that have deadlines,
** whether all of them can use ncclCommShrink (NCCL 2.27 and later; never after an error of the network, which
** stays with a communicator); if not, or if it fails, they abort the old communicator and make a new one from a
** fresh id. The host's log says which: MGRID_LOG_INFO "...: 3 ranks, by ncclCommShrink", or MGRID_LOG_WARN
** "...: made anew of 3 ranks, from a fresh id, since ..." with the reason of this rank. The lost are never
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
** MPI all communicators are made anew, a dry state has none; the calls work all the same. Names of states, and
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
