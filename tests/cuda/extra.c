/* SPDX-License-Identifier: MIT
**
** extra.c - what NCCL's own host code takes of the runtime besides: peers and their memory, pools,
** batches of copies, streams that may be captured, entry points of the driver.
*/
#include "runtime.h"

#include <stdio.h>

static _Thread_local enum cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal;

/* -------------------------------------------------------------------------------- peers */

FN cudaDeviceCanAccessPeer(int *can, int device, int peer) {
  ENTER;
  NEED(can);
  if (rig_physical(device) < 0 || rig_physical(peer) < 0) return rig_answer(cudaErrorInvalidDevice);
  *can = rig_peers(rig_physical(device), rig_physical(peer));
  return cudaSuccess;
}

FN cudaDeviceEnablePeerAccess(int peer, unsigned flags) {
  ENTER;
  NEED(!flags);
  if (rig_physical(peer) < 0) return rig_answer(cudaErrorInvalidDevice);
  return rig_answer(rig_peers(rig_physical(rig_device()), rig_physical(peer))
                        ? 0
                        : cudaErrorPeerAccessUnsupported);
}

/* Kernels have no stack here, so that its limit has no effect. */
FN cudaDeviceSetLimit(enum cudaLimit limit, size_t value) {
  ENTER;
  (void)value;
  return rig_answer(limit == cudaLimitStackSize ? 0 : cudaErrorUnsupportedLimit);
}

FN cudaIpcGetMemHandle(cudaIpcMemHandle_t *handle, void *p) {
  ENTER;
  return rig_answer(rig_ipc_get(handle, p));
}
FN cudaIpcOpenMemHandle(void **p, cudaIpcMemHandle_t handle, unsigned flags) {
  ENTER;
  NEED(flags == cudaIpcMemLazyEnablePeerAccess);
  return rig_answer(rig_ipc_open(p, &handle));
}
FN cudaIpcCloseMemHandle(void *p) {
  ENTER;
  return rig_answer(rig_ipc_close(p));
}

/* -------------------------------------------------------------------------------- pools */

/* A pool is a mark: what is taken from it is taken at once and given back in the stream's order. */
static char pools[64];

static bool is_pool(cudaMemPool_t p) {
  uintptr_t i = (uintptr_t)p - (uintptr_t)pools;
  return i < sizeof pools && pools[i];
}

FN cudaMemPoolCreate(cudaMemPool_t *pool, const struct cudaMemPoolProps *props) {
  ENTER;
  NEED(pool && props && props->location.type == cudaMemLocationTypeDevice
       && rig_physical(props->location.id) >= 0);
  for (size_t i = 0; i < sizeof pools; i++) {
    char none = 0;
    if (!__atomic_compare_exchange_n(&pools[i], &none, 1, false, __ATOMIC_SEQ_CST,
                                     __ATOMIC_SEQ_CST))
      continue;
    *pool = (cudaMemPool_t)(uintptr_t)&pools[i];
    return cudaSuccess;
  }
  return rig_answer(cudaErrorMemoryAllocation);
}

FN cudaMemPoolDestroy(cudaMemPool_t pool) {
  ENTER;
  NEED(is_pool(pool));
  *(char *)(uintptr_t)pool = 0;
  return cudaSuccess;
}

FN cudaMemPoolSetAttribute(cudaMemPool_t pool, enum cudaMemPoolAttr attribute, void *value) {
  ENTER;
  NEED(is_pool(pool) && value);
  return rig_answer(attribute == cudaMemPoolAttrReleaseThreshold ? 0 : cudaErrorNotSupported);
}

FN cudaMallocAsync(void **p, size_t bytes, cudaStream_t s) {
  ENTER;
  int e = rig_stream_query(s);
  return rig_answer(e == cudaErrorInvalidResourceHandle ? e : rig_alloc(p, bytes));
}

FN cudaMallocFromPoolAsync(void **p, size_t bytes, cudaMemPool_t pool, cudaStream_t s) {
  ENTER;
  NEED(is_pool(pool));
  int e = rig_stream_query(s);
  return rig_answer(e == cudaErrorInvalidResourceHandle ? e : rig_alloc(p, bytes));
}

/* After what is on the stream: as long as the real one may take. */
FN cudaFreeAsync(void *p, cudaStream_t s) {
  ENTER;
  int e = rig_stream_wait(s);
  return rig_answer(e ? e : rig_free(p));
}

/* ------------------------------------------------------------------------------ streams */

FN cudaMemcpyBatchAsync(void *const *to, const void *const *from, const size_t *bytes, size_t n,
                        struct cudaMemcpyAttributes *attributes, size_t *which, size_t nattributes,
                        cudaStream_t s) {
  ENTER;
  (void)attributes, (void)which, (void)nattributes; /* hints of when the source may be read */
  NEED(to && from && bytes && n && s);
  int e = 0;
  for (size_t i = 0; i < n && !e; i++) e = rig_copy_line(to[i], from[i], bytes[i], s, false);
  return rig_answer(e);
}

FN cudaStreamGetId(cudaStream_t s, unsigned long long *id) {
  ENTER;
  return rig_answer(rig_stream_id(s, id));
}
/* Nothing is ever captured; what belongs to a capture is refused. */
static int not_capturing(cudaStream_t s, enum cudaStreamCaptureStatus *status) {
  int e = rig_stream_query(s);
  if (e == cudaErrorInvalidResourceHandle || !status)
    return status ? e : (int)cudaErrorInvalidValue;
  *status = cudaStreamCaptureStatusNone;
  return 0;
}

FN cudaStreamIsCapturing(cudaStream_t s, enum cudaStreamCaptureStatus *status) {
  ENTER;
  return rig_answer(not_capturing(s, status));
}

FN cudaStreamGetCaptureInfo(cudaStream_t s, enum cudaStreamCaptureStatus *status,
                            unsigned long long *id, cudaGraph_t *graph,
                            const cudaGraphNode_t **from, const cudaGraphEdgeData **edges,
                            size_t *n) {
  ENTER;
  (void)id, (void)graph, (void)from, (void)edges, (void)n; /* set only while a stream is captured */
  return rig_answer(not_capturing(s, status));
}

FN cudaThreadExchangeStreamCaptureMode(enum cudaStreamCaptureMode *other) {
  ENTER;
  NEED(other);
  enum cudaStreamCaptureMode was = mode;
  mode = *other;
  *other = was;
  return cudaSuccess;
}

FN cudaStreamBeginCapture(cudaStream_t s, enum cudaStreamCaptureMode how) {
  ENTER;
  (void)s, (void)how;
  return rig_answer(cudaErrorNotSupported);
}
FN cudaStreamUpdateCaptureDependencies(cudaStream_t s, cudaGraphNode_t *from,
                                       const cudaGraphEdgeData *edges, size_t n, unsigned flags) {
  ENTER;
  (void)s, (void)from, (void)edges, (void)n, (void)flags;
  return rig_answer(cudaErrorNotSupported);
}
FN cudaUserObjectCreate(cudaUserObject_t *o, void *p, cudaHostFn_t end, unsigned refs,
                        unsigned flags) {
  ENTER;
  (void)o, (void)p, (void)end, (void)refs, (void)flags;
  return rig_answer(cudaErrorNotSupported);
}
FN cudaGraphRetainUserObject(cudaGraph_t graph, cudaUserObject_t o, unsigned n, unsigned flags) {
  ENTER;
  (void)graph, (void)o, (void)n, (void)flags;
  return rig_answer(cudaErrorNotSupported);
}
FN cudaGraphAddEventRecordNode(cudaGraphNode_t *node, cudaGraph_t graph,
                               const cudaGraphNode_t *from, size_t n, cudaEvent_t event) {
  ENTER;
  (void)node, (void)graph, (void)from, (void)n, (void)event;
  return rig_answer(cudaErrorNotSupported);
}
FN cudaGraphAddDependencies(cudaGraph_t graph, const cudaGraphNode_t *from,
                            const cudaGraphNode_t *to, const cudaGraphEdgeData *edges, size_t n) {
  ENTER;
  (void)graph, (void)from, (void)to, (void)edges, (void)n;
  return rig_answer(cudaErrorNotSupported);
}

FN cudaGetDriverEntryPointByVersion(const char *name, void **function, unsigned version,
                                    unsigned long long flags,
                                    enum cudaDriverEntryPointQueryResult *status) {
  ENTER;
  NEED(name && function && version && flags <= cudaEnablePerThreadDefaultStream);
  *function = rig_entry(name);
  if (!*function) {
    char line[128];
    snprintf(line, sizeof line, "no entry point %.80s", name);
    rig_note(line);
  }
  if (status)
    *status = *function ? cudaDriverEntryPointSuccess : cudaDriverEntryPointSymbolNotFound;
  return rig_answer(*function || status ? 0 : cudaErrorSymbolNotFound);
}
