/* SPDX-License-Identifier: MIT
**
** collectives.c - the calls that carry data. Wrong arguments on this rank are found here; arguments
** that differ between ranks are found when the call runs (run.c).
*/
#include "comm.h"

#include <stdio.h>
#include <stdlib.h>

const char *const si_kind_name[] = { "ncclAllReduce", "ncclBroadcast",     "ncclReduce",
                                     "ncclAllGather", "ncclReduceScatter", "ncclSend",
                                     "ncclRecv" };

size_t si_type_size(ncclDataType_t type) {
  switch (type) {
  case ncclInt8:
  case ncclUint8: return 1;
  case ncclFloat16:
  case ncclBfloat16: return 2;
  case ncclInt32:
  case ncclUint32:
  case ncclFloat32: return 4;
  case ncclInt64:
  case ncclUint64:
  case ncclFloat64: return 8;
  default: return 0;
  }
}

static bool reduces(si_kind k) { return k == ALL_REDUCE || k == REDUCE || k == REDUCE_SCATTER; }

/* A buffer must lie in memory of the communicator's device, with all its bytes. */
static ncclResult_t buffer(ncclComm_t c, const si_call *call, const char *which, const void *p,
                           size_t bytes) {
  char label[160];
  if (!bytes || rig_on_device(p, bytes, c->device)) return ncclSuccess;
  return si_wrong(ncclInvalidArgument,
                  "%s on %s: %zu bytes of %s at %p are not in live memory of device %d; "
                  "real NCCL would fault here",
                  si_kind_name[call->kind], si_comm_label(c, label, sizeof label), bytes, which, p,
                  c->device);
}

static bool overlap(const char *a, size_t na, const char *b, size_t nb) {
  uintptr_t x = (uintptr_t)a, y = (uintptr_t)b;
  return na && nb && x < y + nb && y < x + na;
}

static ncclResult_t buffers(ncclComm_t c, const si_call *call) {
  size_t n = (size_t)c->nranks, bytes = call->count * si_type_size(call->type),
         me = (size_t)c->rank;
  size_t from = bytes, to = bytes;
  const char *in_place = call->to; /* where `from` may lie although it overlaps */
  ncclResult_t r = ncclSuccess;
  switch (call->kind) {
  case ALL_REDUCE: break;
  case BROADCAST: from = c->rank == call->root ? bytes : 0; break;
  case REDUCE: to = c->rank == call->root ? bytes : 0; break;
  case ALL_GATHER:
    to = n * bytes;
    in_place = call->to ? call->to + me * bytes : NULL;
    break;
  case REDUCE_SCATTER: from = n * bytes; break;
  case SEND: to = 0; break;
  case RECV: from = 0; break;
  }
  r = buffer(c, call, "sendbuff", call->from, from);
  if (!r) r = buffer(c, call, "recvbuff", call->to, to);
  bool same = call->kind == REDUCE_SCATTER ? call->to == call->from + me * bytes
                                           : call->from == in_place;
  if (!r && overlap(call->from, from, call->to, to) && !same)
    r = si_wrong(ncclInvalidArgument,
                 "%s: sendbuff and recvbuff overlap and are not in place: the result is undefined",
                 si_kind_name[call->kind]);
  return r;
}

static ncclResult_t arguments(ncclComm_t c, const si_call *call) {
  const char *name = si_kind_name[call->kind];
  char label[160];
  int device = rig_stream_device(call->stream);
  si_comm_label(c, label, sizeof label);
  if (c->finalized) return si_wrong(ncclInvalidUsage, "%s on %s after its finalize", name, label);
  if (c->revoked) return si_wrong(ncclInvalidUsage, "%s on %s after its revoke", name, label);
  if (atomic_load(&c->family->family_broken))
    return si_fail(ncclInternalError, "%s on %s, which shares resources with one that was aborted",
                   name, label);
  if (call->type < 0 || call->type >= ncclNumTypes)
    return si_fail(ncclInvalidArgument, "%s : invalid type %d", name, (int)call->type);
  if (!si_type_size(call->type))
    return si_fail(ncclInvalidArgument, "%s: type %d (fp8) is not played", name, (int)call->type);
  if (reduces(call->kind) && (call->op < 0 || call->op >= ncclNumOps))
    return si_fail(ncclInvalidArgument, "%s : invalid reduction operation %d", name, (int)call->op);
  if (call->root < 0 || call->root >= c->nranks)
    return si_fail(ncclInvalidArgument,
                   "%s : invalid root or peer %d (root should be in the 0..%d range)", name,
                   call->root, c->nranks);
  if (device != c->device)
    return si_wrong(ncclInvalidArgument,
                    "%s on %s: the stream is %s device %d, the communicator on %d", name, label,
                    device < 0 ? "no live stream, not of" : "on", device, c->device);
  si_comm_check_name(c, name);
  return buffers(c, call);
}

static ncclResult_t queue(ncclComm_t c, si_call call) {
  ncclResult_t r = si_comm_ready(c, si_kind_name[call.kind]);
  if (!r && c->suspended)
    r = si_wrong(ncclInvalidUsage,
                 "%s on a communicator that is suspended; real NCCL would fault here",
                 si_kind_name[call.kind]);
  if (!r) r = arguments(c, &call);
  if (r) return r;
  si_op *op = calloc(1, sizeof *op);
  si_call *copy = malloc(sizeof *copy);
  if (!op || !copy) {
    free(op);
    free(copy);
    return ncclSystemError;
  }
  *copy = call;
  op->kind = OP_CALL;
  op->comm = c;
  op->data = copy;
  standin_trace("%s id=%016llx name=%s count=%zu type=%d op=%d root=%d", si_kind_name[call.kind],
                (unsigned long long)c->id, *c->name ? c->name : "-", call.count, (int)call.type,
                (int)call.op, call.root);
  return si_group_add(op);
}

static ncclResult_t issue(ncclComm_t c, si_call call) {
  si_group_enter();
  return si_group_leave(queue(c, call));
}

SI_API ncclResult_t ncclAllReduce(const void *sendbuff, void *recvbuff, size_t count,
                                  ncclDataType_t datatype, ncclRedOp_t op, ncclComm_t comm,
                                  cudaStream_t stream) {
  return issue(comm, (si_call){ ALL_REDUCE, sendbuff, recvbuff, count, datatype, op, 0, stream });
}

SI_API ncclResult_t ncclBroadcast(const void *sendbuff, void *recvbuff, size_t count,
                                  ncclDataType_t datatype, int root, ncclComm_t comm,
                                  cudaStream_t stream) {
  return issue(comm,
               (si_call){ BROADCAST, sendbuff, recvbuff, count, datatype, ncclSum, root, stream });
}

SI_API ncclResult_t ncclReduce(const void *sendbuff, void *recvbuff, size_t count,
                               ncclDataType_t datatype, ncclRedOp_t op, int root, ncclComm_t comm,
                               cudaStream_t stream) {
  return issue(comm, (si_call){ REDUCE, sendbuff, recvbuff, count, datatype, op, root, stream });
}

SI_API ncclResult_t ncclAllGather(const void *sendbuff, void *recvbuff, size_t sendcount,
                                  ncclDataType_t datatype, ncclComm_t comm, cudaStream_t stream) {
  return issue(
      comm, (si_call){ ALL_GATHER, sendbuff, recvbuff, sendcount, datatype, ncclSum, 0, stream });
}

SI_API ncclResult_t ncclReduceScatter(const void *sendbuff, void *recvbuff, size_t recvcount,
                                      ncclDataType_t datatype, ncclRedOp_t op, ncclComm_t comm,
                                      cudaStream_t stream) {
  return issue(comm,
               (si_call){ REDUCE_SCATTER, sendbuff, recvbuff, recvcount, datatype, op, 0, stream });
}

SI_API ncclResult_t ncclSend(const void *sendbuff, size_t count, ncclDataType_t datatype, int peer,
                             ncclComm_t comm, cudaStream_t stream) {
  return issue(comm, (si_call){ SEND, sendbuff, NULL, count, datatype, ncclSum, peer, stream });
}

SI_API ncclResult_t ncclRecv(void *recvbuff, size_t count, ncclDataType_t datatype, int peer,
                             ncclComm_t comm, cudaStream_t stream) {
  return issue(comm, (si_call){ RECV, NULL, recvbuff, count, datatype, ncclSum, peer, stream });
}
