/* SPDX-License-Identifier: MIT
**
** launch.c - from the end of a group to the streams. The first collective of a communicator
** and the first send or receive of a pair block the calling thread until the others have come
** ("first use connects"), all of a group at once; then the calls go to their streams, sends
** and receives of one communicator together.
*/
#include "comm.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Work on a stream: one collective, or the sends and receives of a group. */
typedef struct batch {
  ncclComm_t comm;
  uint64_t turn;
  const char *struck; /* by which switch */
  size_t n;
  si_call call[];
} batch;

static atomic_long collectives, groups;

static bool is_parcel(const si_call *c) { return c->kind == SEND || c->kind == RECV; }

/* ------------------------------------------------------------------------ first use */

static shm_pair *pair_of(ncclComm_t c, const si_call *call) {
  return call->kind == SEND ? shm_pair_of(&c->seg, c->rank, call->root)
                            : shm_pair_of(&c->seg, call->root, c->rank);
}

static void say_first(const si_op *op) {
  ncclComm_t c = op->comm;
  const si_call *call = op->data;
  if (!c->used) {
    shm_lock(&c->seg);
    c->seg.slot[c->rank].used = 1;
    shm_unlock(&c->seg);
    c->used = true;
  }
  if (is_parcel(call)) {
    shm_lock(&c->seg);
    *(call->kind == SEND ? &pair_of(c, call)->sender : &pair_of(c, call)->receiver) = 1;
    shm_changed(&c->seg);
    shm_unlock(&c->seg);
  } else if (c->first == FIRST_NONE) {
    c->first_meeting = shm_arrive(&c->seg, MEET_FIRST);
    c->first = FIRST_SAID;
  }
}

static shm_end await_pair(ncclComm_t c, const si_call *call, shm_stop stop, char *text) {
  const shm_pair *p = pair_of(c, call);
  double until = standin_now() + standin_deadline();
  shm_end end = SHM_OK;
  shm_lock(&c->seg);
  while (!end && !(p->sender && p->receiver)) end = shm_wait(&c->seg, until, stop);
  snprintf(text, SI_TEXT, "its peer has not called");
  if (end == SHM_POISONED) shm_reason(&c->seg, text);
  shm_unlock(&c->seg);
  return end;
}

static ncclResult_t hold_first(const si_op *op) {
  ncclComm_t c = op->comm;
  const si_call *call = op->data;
  char text[SI_TEXT] = "", label[160], line[SI_TEXT];
  shm_end end = SHM_OK;
  if (is_parcel(call))
    end = await_pair(c, call, si_op_stop(op), text);
  else if (c->first == FIRST_SAID)
    end = shm_await(&c->seg, MEET_FIRST, c->first_meeting, si_op_stop(op), text);
  if (!end) {
    if (!is_parcel(call)) c->first = FIRST_HELD;
    return ncclSuccess;
  }
  si_comm_break(c, ncclInternalError);
  if (end == SHM_STOPPED) return ncclInternalError;
  si_comm_label(c, label, sizeof label);
  if (end == SHM_POISONED)
    return si_wrong(ncclInternalError, "%s on %s: %.600s", si_kind_name[call->kind], label, text);
  snprintf(line, sizeof line,
           "first use of %s by %s (root or peer %d): %.400s after %.1f s; " STANDIN_HANG, label,
           si_kind_name[call->kind], call->root, text, standin_deadline());
  shm_poison(&c->seg, line);
  return si_wrong(ncclInternalError, "%s", line);
}

/* -------------------------------------------------------------------- on the stream */

/* The network fails: the proxy keeps the error for ever, and the kernel does not end. */
static void strike(ncclComm_t c, shm_stop stop, const char *why) {
  char label[160];
  double until = standin_now() + standin_deadline();
  si_comm_label(c, label, sizeof label);
  standin_log("%s gets ncclRemoteError (%s)", label, why);
  atomic_store(&c->proxy, (int)ncclRemoteError);
  while (standin_now() < until && !atomic_load(stop.flag[0]) && !atomic_load(stop.flag[1]))
    standin_nap(0.005);
  if (standin_now() >= until)
    si_wrong(ncclRemoteError,
             "%s is in error and was not aborted; its kernel does not end: " STANDIN_HANG, label);
}

static cudaError_t outcome(const batch *b, shm_end end, const char *text) {
  ncclComm_t c = b->comm;
  char label[160], line[SI_TEXT];
  if (end == SHM_OK || end == SHM_STOPPED) return cudaSuccess;
  si_comm_break(c, ncclInternalError);
  si_comm_label(c, label, sizeof label);
  snprintf(line, sizeof line, "%s number %llu on %s: %.600s%s",
           b->n == 1 ? si_kind_name[b->call[0].kind] : "send/recv group",
           (unsigned long long)b->turn, label, text, end == SHM_LATE ? "; " STANDIN_HANG : "");
  if (end == SHM_LATE) shm_poison(&c->seg, line);
  si_wrong(ncclInternalError, "%s", line);
  return cudaErrorLaunchTimeout;
}

static void run(void *arg) {
  batch *b = arg;
  ncclComm_t c = b->comm;
  shm_stop stop = { { &c->stop, &c->pause } };
  char text[SI_TEXT] = "";
  cudaError_t e = cudaSuccess;
  si_lock(); /* calls of one communicator run in the order in which they were made, on any stream */
  while (c->executed != b->turn) si_wait_change(standin_now() + 1);
  si_unlock();
  if (b->struck) {
    strike(c, stop, b->struck);
  } else if (!atomic_load(&c->stop) && !atomic_load(&c->pause)) {
    shm_end end = SHM_OK;
    if (si_comm_error(c))
      e = cudaErrorLaunchTimeout;
    else if (is_parcel(&b->call[0]))
      end = si_run_parcels(c, b->call, b->n, stop, text);
    else
      end = si_run_collective(c, &b->call[0], b->turn, stop, text);
    if (end == SHM_DIED)
      strike(c, stop, "a rank died");
    else
      e = e ? e : outcome(b, end, text);
  }
  if (e) rig_stream_fail(b->call[0].stream, (int)e);
  free(b);
  si_lock();
  c->executed++;
  si_changed();
  si_unlock();
}

static ncclResult_t to_stream(ncclComm_t c, batch *b) {
  cudaStream_t stream = b->call[0].stream;
  b->comm = c;
  bool parcels = is_parcel(&b->call[0]);
  const char *fault = parcels ? "STANDIN_SEND_ERROR" : "STANDIN_ASYNC_ERROR";
  if (standin_fault(fault, atomic_fetch_add(parcels ? &groups : &collectives, 1) + 1))
    b->struck = fault;
  si_lock();
  b->turn = c->issued++;
  si_unlock();
  cudaError_t e = (cudaError_t)rig_submit(stream, run, b, true);
  if (!e) return ncclSuccess;
  free(b);
  si_lock();
  c->issued--;
  si_unlock();
  si_comm_break(c, ncclUnhandledCudaError);
  return si_fail(ncclUnhandledCudaError, "Cuda failure '%s'", cudaGetErrorString(e));
}

/* The sends and receives of this communicator from op on, on its stream. */
static size_t gather(const si_op *op, batch *b) {
  const si_call *first = op->data;
  size_t n = 0;
  for (const si_op *o = op; o; o = o->next) {
    const si_call *call = o->data;
    if (o->comm != op->comm || !is_parcel(call) || call->stream != first->stream) continue;
    if (b) b->call[n] = *call;
    n++;
  }
  return n;
}

static bool sent_before(const si_op *head, const si_op *op) {
  const si_call *mine = op->data;
  for (const si_op *o = head; o != op; o = o->next) {
    const si_call *call = o->data;
    if (o->comm == op->comm && is_parcel(call) && call->stream == mine->stream) return true;
  }
  return false;
}

static ncclResult_t launch_one(const si_op *op, size_t n) {
  const si_call *call = op->data;
  batch *b = calloc(1, sizeof *b + n * sizeof *b->call);
  if (!b) return ncclSystemError;
  b->n = n;
  b->call[0] = *call;
  if (is_parcel(call)) gather(op, b);
  return to_stream(op->comm, b);
}

/* Of a group the collectives go first, as in NCCL's plans. */
ncclResult_t si_launch(si_group *g) {
  ncclResult_t r = ncclSuccess;
  if (!g->head || g->head->kind != OP_CALL) return r;
  for (const si_op *op = g->head; op; op = op->next) say_first(op);
  for (const si_op *op = g->head; op; op = op->next) {
    ncclResult_t one = hold_first(op);
    if (one && !r) r = one;
  }
  for (const si_op *op = g->head; op && !r; op = op->next)
    if (!is_parcel(op->data)) r = launch_one(op, 1);
  for (const si_op *op = g->head; op && !r; op = op->next)
    if (is_parcel(op->data) && !sent_before(g->head, op)) r = launch_one(op, gather(op, NULL));
  return r;
}
