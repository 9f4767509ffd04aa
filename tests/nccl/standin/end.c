/* SPDX-License-Identifier: MIT
**
** end.c - Finalize, Destroy, Abort, Revoke. A destroy of a communicator that was used waits
** until every other rank that used it has finalized it (a destroy does that first): this is
** what makes two communicators destroyed in opposite order hang, and what makes "finalize
** all, then destroy in any order" right.
*/
#include "comm.h"

#include <stdio.h>
#include <stdlib.h>

static ncclResult_t queue(ncclComm_t c, si_op_kind kind, ncclResult_t (*run)(si_op *)) {
  si_op *op = calloc(1, sizeof *op);
  if (!op) return ncclSystemError;
  op->kind = kind;
  op->comm = c;
  op->run = run;
  return si_group_add(op);
}

/* Waits for what was issued; everything on a stream ends by itself. */
static void quiet(ncclComm_t c) {
  si_lock();
  while (c->executed < c->issued) si_wait_change(standin_now() + 1);
  si_unlock();
}

static ncclResult_t finalize(si_op *op) {
  ncclComm_t c = op->comm;
  quiet(c);
  shm_lock(&c->seg);
  c->seg.slot[c->rank].finalized = 1;
  shm_changed(&c->seg);
  shm_unlock(&c->seg);
  return ncclSuccess;
}

SI_API ncclResult_t ncclCommFinalize(ncclComm_t comm) {
  char label[160];
  if (!comm) return ncclSuccess;
  si_group_enter();
  ncclResult_t r = si_comm_ready(comm, "ncclCommFinalize");
  if (!r && (comm->finalized || comm->revoked))
    r = si_wrong(ncclInvalidArgument, "ncclCommFinalize of %s, which is %s already",
                 si_comm_label(comm, label, sizeof label), comm->finalized ? "finalized" : "revoked");
  if (!r) {
    si_comm_check_name(comm, "ncclCommFinalize");
    standin_trace("finalize id=%016llx name=%s", (unsigned long long)comm->id, *comm->name ? comm->name : "-");
    comm->finalized = true;
    r = queue(comm, OP_FINALIZE, finalize);
  }
  return si_group_leave(r);
}

/* ---------------------------------------------------------------------------- Destroy */

static bool waits_for(const shm_slot *s) { return s->used && !s->finalized && !s->gone; }

static ncclResult_t wait_for_users(si_op *op) {
  ncclComm_t c = op->comm;
  shm_stop   stop = si_op_stop(op);
  shm_end    end = SHM_OK;
  double     until = standin_now() + standin_deadline();
  char       label[160], text[SI_TEXT] = "";
  int        r = 0;
  shm_lock(&c->seg);
  while (!end) {
    for (r = 0; r < c->nranks && !waits_for(&c->seg.slot[r]); r++) {}
    if (r == c->nranks) break;
    end = shm_wait(&c->seg, until, stop);
  }
  uint64_t *gone = &c->seg.head->given_up[MEET_END];
  if (end == SHM_LATE) *gone = 1;
  if (end == SHM_OK && *gone) end = SHM_POISONED;
  if (end == SHM_POISONED) shm_reason(&c->seg, text);
  shm_unlock(&c->seg);
  if (end == SHM_OK || end == SHM_STOPPED) return ncclSuccess;
  si_comm_label(c, label, sizeof label);
  if (end == SHM_POISONED) return si_wrong(ncclInternalError, "destroy of %s: %.700s", label, text);
  snprintf(text, sizeof text, "destroy of %s: rank %d has used it and neither finalizes nor destroys it; " STANDIN_HANG,
           label, r);
  shm_poison(&c->seg, text);
  return si_wrong(ncclInternalError, "%s", text);
}

static ncclResult_t destroy(si_op *op) {
  ncclComm_t   c = op->comm;
  ncclResult_t r = ncclSuccess;
  if (!c->finalized) r = finalize(op);
  if (!r && c->used) r = wait_for_users(op);
  si_lock();
  si_comm_release(c);
  si_unlock();
  return r;
}

/* The real one returns without closing its group if the communicator is busy or in error. */
SI_API ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  if (!comm) return ncclSuccess;
  ncclResult_t r = si_comm_alive(comm, "ncclCommDestroy");
  if (r) return r;
  si_group_enter();
  r = si_comm_ready(comm, "ncclCommDestroy");
  if (r) {
    standin_log("the group of this thread stays open, as real NCCL leaves it; ncclCommAbort is the call for this");
    return r;
  }
  si_comm_check_name(comm, "ncclCommDestroy");
  standin_trace("destroy id=%016llx name=%s", (unsigned long long)comm->id, *comm->name ? comm->name : "-");
  if (si_group_holds(comm)) {
    r = si_wrong(ncclInvalidUsage, "ncclCommDestroy of a communicator that the open group works on");
    return si_group_leave(r);
  }
  return si_group_leave(queue(comm, OP_DESTROY, destroy));
}

/* ------------------------------------------------------------------------------ Abort */

/* Under si_lock: the communicator has nothing more to do. */
static bool idle(ncclComm_t c) { return (!c->job || c->job->done) && c->executed == c->issued; }

static bool come_to_rest(ncclComm_t c) {
  double until = standin_now() + standin_deadline();
  bool   ok = true;
  si_lock();
  while (!idle(c) && ok) ok = si_wait_change(until);
  ok = idle(c);
  si_unlock();
  return ok;
}

SI_API ncclResult_t ncclCommAbort(ncclComm_t comm) {
  char label[160];
  if (!comm) return ncclSuccess;
  ncclResult_t r = si_comm_alive(comm, "ncclCommAbort");
  if (r) return r;
  standin_trace("abort id=%016llx name=%s", (unsigned long long)comm->id, *comm->name ? comm->name : "-");
  if (si_group_holds(comm))
    return si_wrong(ncclInvalidUsage, "ncclCommAbort of a communicator that the open group works on");
  si_lock();
  bool busy = atomic_load(&comm->busy), blocking = comm->config.blocking;
  bool running = comm->job && !comm->job->done;
  atomic_store(&comm->stop, 1);
  if (running) atomic_store(&comm->job->stop, 1); /* all that is made with it ends too, as in NCCL */
  si_unlock();
  if (running && blocking && !busy)
    standin_violation("ncclCommAbort of blocking %s while another thread is inside NCCL with it",
                      si_comm_label(comm, label, sizeof label));
  si_comm_wake_all();
  if (!come_to_rest(comm))
    return si_wrong(ncclInternalError, "ncclCommAbort of %s: it does not come to rest; " STANDIN_HANG,
                    si_comm_label(comm, label, sizeof label));
  si_lock();
  if (comm->family && (comm->family != comm || comm->config.splitShare || comm->config.shrinkShare))
    atomic_store(&comm->family->family_broken, 1);
  si_comm_release(comm);
  si_unlock();
  return ncclSuccess;
}

/* Ends what runs; split, shrink and destroy may follow, collectives and finalize may not. */
SI_API ncclResult_t ncclCommRevoke(ncclComm_t comm, int revokeFlags) {
  ncclResult_t r = si_comm_alive(comm, "ncclCommRevoke");
  if (r) return r;
  if (revokeFlags != NCCL_REVOKE_DEFAULT)
    return si_fail(ncclInvalidArgument, "ncclCommRevoke: the flags must be 0, not %d", revokeFlags);
  if (comm->finalized || comm->revoked)
    return si_wrong(ncclInvalidUsage, "ncclCommRevoke of a communicator that is finalized or revoked already");
  standin_trace("revoke id=%016llx name=%s", (unsigned long long)comm->id, *comm->name ? comm->name : "-");
  atomic_store(&comm->pause, 1);
  si_comm_wake_all();
  if (!come_to_rest(comm))
    return si_wrong(ncclInternalError, "ncclCommRevoke: it does not come to rest; " STANDIN_HANG);
  atomic_store(&comm->pause, 0);
  comm->revoked = true;
  return ncclSuccess;
}
