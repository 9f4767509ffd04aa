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

#define GROUP_ABORT 22200 /* the first version in which a group may hold aborts */

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
                 si_comm_label(comm, label, sizeof label),
                 comm->finalized ? "finalized" : "revoked");
  if (!r) {
    si_comm_check_name(comm, "ncclCommFinalize");
    standin_trace("finalize id=%016llx name=%s", (unsigned long long)comm->id,
                  *comm->name ? comm->name : "-");
    comm->finalized = true;
    r = queue(comm, OP_FINALIZE, finalize);
  }
  return si_group_leave(r);
}

/* ---------------------------------------------------------------------------- Destroy */

static bool waits_for(const shm_slot *s) { return s->used && !s->finalized && !s->gone; }

static ncclResult_t wait_for_users(si_op *op) {
  ncclComm_t c = op->comm;
  shm_stop stop = si_op_stop(op);
  shm_end end = SHM_OK;
  double until = standin_now() + standin_deadline();
  char label[160], text[SI_TEXT] = "";
  int r = 0;
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
  snprintf(
      text, sizeof text,
      "destroy of %s: rank %d has used it and neither finalizes nor destroys it; " STANDIN_HANG,
      label, r);
  shm_poison(&c->seg, text);
  return si_wrong(ncclInternalError, "%s", text);
}

static ncclResult_t destroy(si_op *op) {
  ncclComm_t c = op->comm;
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
    standin_log("the group of this thread stays open, as real NCCL leaves it; ncclCommAbort is the "
                "call for this");
    return r;
  }
  si_comm_check_name(comm, "ncclCommDestroy");
  if (comm->extras || comm->suspended)
    si_wrong(ncclInvalidUsage,
             "ncclCommDestroy of %s: %d windows or device communicators are left%s",
             *comm->name ? comm->name : "a communicator", comm->extras,
             comm->suspended ? ", and it is suspended" : "");
  standin_trace("destroy id=%016llx name=%s", (unsigned long long)comm->id,
                *comm->name ? comm->name : "-");
  if (si_group_holds(comm)) {
    r = si_wrong(ncclInvalidUsage,
                 "ncclCommDestroy of a communicator that the open group works on");
    return si_group_leave(r);
  }
  return si_group_leave(queue(comm, OP_DESTROY, destroy));
}

/* ------------------------------------------------------------------------------ Abort */

/* Under si_lock: its kernels have ended; `call`: the call that is in progress has. */
static bool is_at_rest(ncclComm_t c, bool call) {
  return call ? !c->job || c->job->done : c->executed == c->issued;
}

/* An abort waits for a call at once, and for kernels at the end of its group: a kernel may be
** behind that of another communicator of the group, in one stream. */
static bool come_to_rest(ncclComm_t c, bool call) {
  double until = standin_now() + standin_deadline();
  bool ok = true;
  si_lock();
  while (!is_at_rest(c, call) && ok) ok = si_wait_change(until);
  ok = is_at_rest(c, call);
  si_unlock();
  return ok;
}

/* The proxy thread, which lives while a rank of this machine is connected: the rank that holds it
** up, or -1. */
static int connected(ncclComm_t c) {
  int who = -1;
  shm_lock(&c->seg);
  for (int r = 0; r < c->nranks && who < 0; r++) {
    const shm_slot *s = &c->seg.slot[r];
    bool near = s->used && s->machine == c->seg.slot[c->rank].machine && r != c->rank;
    if (near && !s->leaving && !s->gone && !s->finalized && !shm_is_dead(s)) who = r;
  }
  shm_unlock(&c->seg);
  return who;
}

static ncclResult_t join_proxy(ncclComm_t c, const char *what) {
  char label[160];
  double until = standin_now() + standin_deadline() / 2;
  int who = -1;
  while (c->used && (who = connected(c)) >= 0 && standin_now() < until) standin_nap(0.005);
  if (who < 0) return ncclSuccess;
  return si_wrong(
      ncclInternalError,
      "%s of %s waits for its proxy thread, to which rank %d is connected; " STANDIN_HANG, what,
      si_comm_label(c, label, sizeof label), who);
}

/* Under si_lock: another communicator whose kernel runs on this device and was not told to end. */
static ncclComm_t running_beside(ncclComm_t c) {
  for (ncclComm_t o = si_comm_first(); o; o = o->next)
    if (o != c && o->life == LIFE_LIVE && o->device == c->device && o->executed < o->issued
        && !atomic_load(&o->stop) && !atomic_load(&o->pause))
      return o;
  return NULL;
}

/* To free memory is to wait for all kernels of the device (NVIDIA/nccl#1013). */
static ncclResult_t free_memory(ncclComm_t c) {
  char label[160], other[160];
  /* sooner than the kernel itself gives up */
  double until = standin_now() + standin_deadline() / 2;
  ncclComm_t beside;
  si_lock();
  while ((beside = running_beside(c)) && si_wait_change(until)) {}
  si_unlock();
  if (!beside) return ncclSuccess;
  return si_wrong(ncclInternalError, "abort of %s waits for the kernel of %s; " STANDIN_HANG,
                  si_comm_label(c, label, sizeof label),
                  si_comm_label(beside, other, sizeof other));
}

static void leave(ncclComm_t c, atomic_int *flag) {
  atomic_store(flag, 1);
  si_lock(); /* it may be in the making */
  if (c->seg.name[0]) {
    shm_lock(&c->seg);
    c->seg.slot[c->rank].leaving = 1;
    shm_unlock(&c->seg);
  }
  si_unlock();
  si_comm_wake_all();
}

static ncclResult_t reclaim(si_op *op) {
  ncclComm_t c = op->comm;
  char label[160];
  ncclResult_t r = come_to_rest(c, false)
                       ? join_proxy(c, "abort")
                       : si_wrong(ncclInternalError,
                                  "ncclCommAbort of %s: it does not come to rest; " STANDIN_HANG,
                                  si_comm_label(c, label, sizeof label));
  if (!r) r = free_memory(c);
  si_lock();
  if (c->family && (c->family != c || c->config.splitShare || c->config.shrinkShare))
    atomic_store(&c->family->family_broken, 1);
  si_comm_release(c);
  si_unlock();
  return r;
}

/* A connect that is tried again sleeps without a look at the abort flag. */
static void retry_connect(ncclComm_t c) {
  double seconds = standin_fault_seconds("STANDIN_CONNECT_RETRY");
  si_lock();
  bool making = c->life == LIFE_MAKING;
  si_unlock();
  if (making && seconds > 0) standin_nap(seconds);
}

/* The call sets the flags; since 2.22 the end of the group does the rest, of all communicators in
** it at once. */
SI_API ncclResult_t ncclCommAbort(ncclComm_t comm) {
  char label[160];
  if (!comm) return ncclSuccess;
  ncclResult_t r = si_comm_alive(comm, "ncclCommAbort");
  if (r) return r;
  si_comm_check_unmade(comm, "ncclCommAbort");
  standin_trace("abort id=%016llx name=%s", (unsigned long long)comm->id,
                *comm->name ? comm->name : "-");
  if (si_group_holds(comm))
    return si_wrong(ncclInvalidUsage,
                    "ncclCommAbort of a communicator that the open group works on");
  si_lock();
  bool busy = atomic_load(&comm->busy), blocking = comm->config.blocking;
  bool running = comm->job && !comm->job->done;
  /* all that is made with it ends too, as in NCCL */
  if (running) atomic_store(&comm->job->stop, 1);
  si_unlock();
  if (running && blocking && !busy)
    standin_violation("ncclCommAbort of blocking %s while another thread is inside NCCL with it",
                      si_comm_label(comm, label, sizeof label));
  leave(comm, &comm->stop);
  retry_connect(comm);
  if (!come_to_rest(comm, true))
    return si_wrong(ncclInternalError,
                    "ncclCommAbort of %s: it does not come to rest; " STANDIN_HANG,
                    si_comm_label(comm, label, sizeof label));
  if (si_version() < GROUP_ABORT) return reclaim(&(si_op){ .kind = OP_ABORT, .comm = comm });
  si_group_enter();
  return si_group_leave(queue(comm, OP_ABORT, reclaim));
}

/* ----------------------------------------------------------------------------- Revoke */

static ncclResult_t revoke(si_op *op) {
  ncclComm_t c = op->comm;
  ncclResult_t r =
      come_to_rest(c, false)
          ? join_proxy(c, "revoke")
          : si_wrong(ncclInternalError, "ncclCommRevoke: it does not come to rest; " STANDIN_HANG);
  atomic_store(&c->pause, 0);
  atomic_store(&c->broken, (int)r);
  return r;
}

/* Ends what runs; split, shrink and destroy may follow, collectives and finalize may not. An error
** of the network stays: a non-blocking communicator returns it here, and all return it from what
** follows. */
SI_API ncclResult_t ncclCommRevoke(ncclComm_t comm, int revokeFlags) {
  ncclResult_t now, r = si_comm_alive(comm, "ncclCommRevoke");
  if (r) return r;
  if (revokeFlags != NCCL_REVOKE_DEFAULT)
    return si_fail(ncclInvalidArgument, "ncclCommRevoke: the flags must be 0, not %d", revokeFlags);
  if (comm->finalized || comm->revoked)
    return si_wrong(ncclInvalidArgument,
                    "ncclCommRevoke of a communicator that is finalized or revoked already");
  si_comm_check_unmade(comm, "ncclCommRevoke");
  standin_trace("revoke id=%016llx name=%s", (unsigned long long)comm->id,
                *comm->name ? comm->name : "-");
  comm->revoked = true;
  leave(comm, &comm->pause);
  si_group_enter();
  r = si_group_leave(queue(comm, OP_REVOKE, revoke));
  if (comm->config.blocking || (r && r != ncclInProgress)) return r;
  return ncclCommGetAsyncError(comm, &now) ? r : now;
}
