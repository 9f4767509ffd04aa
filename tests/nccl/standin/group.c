/* SPDX-License-Identifier: MIT
**
** group.c - what a thread collects between ncclGroupStart and ncclGroupEnd, and how it runs:
** creations and ends in a thread each, so that their order does not matter; calls after one
** rendezvous of all. A call outside a group is a group of one. A group of non-blocking
** communicators runs in the background, and all of them stay ncclInProgress until its end.
*/
#include "comm.h"

#include <stdlib.h>

static _Thread_local int depth;
static _Thread_local ncclResult_t error;
static _Thread_local si_op *head;

static void drop(si_op *op) {
  free(op->data);
  free(op);
}

void si_group_unref(si_group *g) {
  if (--g->refs > 0) return;
  for (si_op *op = g->head, *next; op; op = next) {
    next = op->next;
    drop(op);
  }
  free(g);
}

shm_stop si_op_stop(const si_op *op) {
  return (shm_stop){ { op->child ? &op->child->stop : &op->comm->stop, &op->group->stop } };
}

bool si_group_holds(ncclComm_t c) {
  for (const si_op *op = head; op; op = op->next)
    if (op->comm == c || op->child == c) return true;
  return false;
}

/* ----------------------------------------------------------------------- collecting */

void si_group_enter(void) { depth++; }

static ncclResult_t may_join(const si_op *op) {
  for (const si_op *o = head; o; o = o->next) {
    if ((o->kind == OP_CALL) != (op->kind == OP_CALL))
      return si_wrong(ncclInvalidUsage,
                      "creations or ends of communicators and collectives are mixed in one group; "
                      "NCCL's manual forbids it");
    /* of both kinds: their group always blocks */
    if (o->kind == OP_ABORT && op->kind == OP_ABORT) continue;
    if (o->comm->config.blocking != op->comm->config.blocking)
      return si_fail(ncclInvalidArgument,
                     "Blocking and nonblocking communicators are not allowed in the same group.");
    if (op->kind == OP_CREATE && op->comm != op->child && o->kind == OP_CREATE
        && o->comm == op->comm)
      return si_wrong(
          ncclInvalidUsage,
          "two splits of one communicator in one group: broken in real NCCL (" STANDIN_HANG
          ", or the messages of the two are mixed up)");
  }
  return ncclSuccess;
}

ncclResult_t si_group_add(si_op *op) {
  ncclResult_t r = may_join(op);
  if (r) {
    if (op->child) si_comm_break(op->child, r);
    drop(op);
    return r;
  }
  si_op **at = &head;
  while (*at) at = &(*at)->next;
  *at = op;
  return ncclSuccess;
}

/* -------------------------------------------------------------------------- running */

static void *job(void *arg) {
  si_op *op = arg;
  op->result = op->run(op);
  return NULL;
}

static ncclResult_t run_jobs(si_group *g) {
  ncclResult_t r = ncclSuccess;
  size_t n = 0;
  for (const si_op *op = g->head; op; op = op->next) n += op->kind != OP_CALL;
  for (si_op *op = g->head; op; op = op->next) {
    if (op->kind == OP_CALL) continue;
    op->threaded = n > 1 && pthread_create(&op->thread, NULL, job, op) == 0;
    if (!op->threaded) job(op);
  }
  for (si_op *op = g->head; op; op = op->next) {
    if (op->kind == OP_CALL) continue;
    if (op->threaded) pthread_join(op->thread, NULL);
    if (op->result && !r) r = op->result;
  }
  return r;
}

static ncclResult_t run(si_group *g) {
  ncclResult_t r = run_jobs(g);
  if (!r) r = si_launch(g);
  si_lock();
  for (si_op *op = g->head; op; op = op->next) {
    /* one fails, all do */
    if (r && !g->blocking && op->kind != OP_REVOKE) si_comm_break(op->comm, r);
    atomic_store(&op->comm->busy, 0);
  }
  g->done = true;
  si_changed();
  si_group_unref(g);
  si_unlock();
  return r;
}

static void *background(void *arg) {
  run(arg);
  return NULL;
}

/* The communicators point to the group from here on: an abort must find it. */
static si_group *form(si_op *ops) {
  si_group *g = calloc(1, sizeof *g);
  bool destroys = true;
  if (!g) return NULL;
  g->head = ops;
  g->refs = 1;
  si_lock();
  for (si_op *op = ops; op; op = op->next) {
    op->group = g;
    destroys = destroys && (op->kind == OP_DESTROY || op->kind == OP_ABORT);
    if (op->comm->job) si_group_unref(op->comm->job);
    op->comm->job = g;
    g->refs++;
  }
  g->blocking = destroys || ops->comm->config.blocking;
  if (!g->blocking)
    for (si_op *op = ops; op; op = op->next) atomic_store(&op->comm->busy, 1);
  si_unlock();
  return g;
}

/* The call failed before anything ran: nothing of the group shall run. */
static ncclResult_t cancel(si_op *ops, ncclResult_t r) {
  for (si_op *op = ops, *next; op; op = next) {
    next = op->next;
    if (op->child) si_comm_break(op->child, r);
    drop(op);
  }
  return r;
}

ncclResult_t si_group_leave(ncclResult_t so_far) {
  pthread_t thread;
  if (so_far && so_far != ncclInProgress && !error) error = so_far;
  if (--depth > 0) return so_far;
  si_op *ops = head;
  ncclResult_t r = error;
  head = NULL;
  error = ncclSuccess;
  if (r) return cancel(ops, r);
  if (!ops) return ncclSuccess;
  si_group *g = form(ops);
  if (!g) return cancel(ops, ncclSystemError);
  if (g->blocking || pthread_create(&thread, NULL, background, g)) return run(g);
  pthread_detach(thread);
  return ncclInProgress;
}

SI_API ncclResult_t ncclGroupStart(void) {
  standin_trace("group-start");
  depth++;
  return ncclSuccess;
}

SI_API ncclResult_t ncclGroupEnd(void) {
  standin_trace("group-end");
  if (!depth) return si_fail(ncclInvalidUsage, "ncclGroupEnd: not in a group call.");
  return si_group_leave(ncclSuccess);
}
