/* SPDX-License-Identifier: MIT
**
** runtime.c - the runtime's devices, errors, memory, copies, streams and events, each over the rig's own function.
*/
#include "rig.h"

#include <cuda_runtime_api.h>
#include <stdio.h>
#include <string.h>

#define FN RIG_API cudaError_t

static _Thread_local cudaError_t                last;
static _Thread_local enum cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal;

static cudaError_t answer(int e) {
  if (e && e != cudaErrorNotReady) last = (cudaError_t)e;
  return (cudaError_t)e;
}

/* A function: count the call, check its condition, answer by the rig's. */
#define ENTER \
  do { \
    static rig_site site_; \
    int             e_ = rig_enter(&site_, __func__); \
    if (e_) return answer(e_); \
  } while (0)
#define NEED(condition) \
  if (!(condition)) return answer(cudaErrorInvalidValue)

/* ------------------------------------------------------------------------------- errors */

static const struct {
  cudaError_t error;
  const char *name, *text;
} errors[] = {
  { cudaSuccess, "cudaSuccess", "no error" },
  { cudaErrorInvalidValue, "cudaErrorInvalidValue", "invalid argument" },
  { cudaErrorMemoryAllocation, "cudaErrorMemoryAllocation", "out of memory" },
  { cudaErrorInvalidDeviceFunction, "cudaErrorInvalidDeviceFunction", "invalid device function" },
  { cudaErrorNoDevice, "cudaErrorNoDevice", "no CUDA-capable device is detected" },
  { cudaErrorInvalidDevice, "cudaErrorInvalidDevice", "invalid device ordinal" },
  { cudaErrorMapBufferObjectFailed, "cudaErrorMapBufferObjectFailed", "mapping of buffer object failed" },
  { cudaErrorPeerAccessUnsupported, "cudaErrorPeerAccessUnsupported",
    "peer access is not supported between these two devices" },
  { cudaErrorInvalidResourceHandle, "cudaErrorInvalidResourceHandle", "invalid resource handle" },
  { cudaErrorNotReady, "cudaErrorNotReady", "device not ready" },
  { cudaErrorNotSupported, "cudaErrorNotSupported", "operation not supported" },
  { cudaErrorUnknown, "cudaErrorUnknown", "unknown error" },
};

RIG_API const char *cudaGetErrorName(cudaError_t error) {
  for (size_t i = 0; i < sizeof errors / sizeof *errors; i++)
    if (errors[i].error == error) return errors[i].name;
  return "unrecognized error code";
}

RIG_API const char *cudaGetErrorString(cudaError_t error) {
  for (size_t i = 0; i < sizeof errors / sizeof *errors; i++)
    if (errors[i].error == error) return errors[i].text;
  return "unrecognized error code";
}

FN cudaGetLastError(void) {
  cudaError_t e = last;
  last = cudaSuccess;
  return e;
}

FN cudaPeekAtLastError(void) { return last; }

/* ------------------------------------------------------------------------------ devices */

FN cudaRuntimeGetVersion(int *version) {
  ENTER;
  NEED(version);
  *version = CUDART_VERSION;
  return cudaSuccess;
}
FN cudaDriverGetVersion(int *version) {
  ENTER;
  NEED(version);
  *version = CUDA_VERSION;
  return cudaSuccess;
}
FN cudaSetDevice(int device) {
  ENTER;
  return answer(rig_set_device(device));
}
FN cudaDeviceSynchronize(void) {
  ENTER;
  return answer(rig_drain(rig_device()));
}
FN cudaDeviceGetByPCIBusId(int *device, const char *id) {
  ENTER;
  return answer(rig_by_bus_id(device, id));
}
FN cudaDeviceGetPCIBusId(char *id, int room, int device) {
  ENTER;
  return answer(rig_bus_id(id, room, device));
}

FN cudaGetDeviceCount(int *count) {
  ENTER;
  NEED(count);
  if (!rig_devices()) return answer(cudaErrorNoDevice);
  *count = rig_devices();
  return cudaSuccess;
}

FN cudaGetDevice(int *device) {
  ENTER;
  NEED(device);
  if (!rig_devices()) return answer(cudaErrorNoDevice);
  *device = rig_device();
  return cudaSuccess;
}

FN cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr attribute, int device) {
  ENTER;
  return answer(rig_attribute(value, (int)attribute, device));
}

FN cudaDeviceCanAccessPeer(int *can, int device, int peer) {
  ENTER;
  NEED(can);
  if (rig_physical(device) < 0 || rig_physical(peer) < 0) return answer(cudaErrorInvalidDevice);
  *can = rig_peers(rig_physical(device), rig_physical(peer));
  return cudaSuccess;
}

FN cudaDeviceEnablePeerAccess(int peer, unsigned flags) {
  ENTER;
  NEED(!flags);
  if (rig_physical(peer) < 0) return answer(cudaErrorInvalidDevice);
  return answer(rig_peers(rig_physical(rig_device()), rig_physical(peer)) ? 0 : cudaErrorPeerAccessUnsupported);
}

/* Kernels have no stack here, so that its limit has no effect. */
FN cudaDeviceSetLimit(enum cudaLimit limit, size_t value) {
  ENTER;
  (void)value;
  return answer(limit == cudaLimitStackSize ? 0 : cudaErrorUnsupportedLimit);
}

FN cudaDeviceGetStreamPriorityRange(int *least, int *greatest) {
  ENTER;
  if (least) *least = 0;
  if (greatest) *greatest = -5;
  return cudaSuccess;
}

FN cudaGetDeviceProperties(struct cudaDeviceProp *p, int device) {
  ENTER;
  NEED(p);
  const rig_machine *m = rig_the_machine();
  if (rig_physical(device) < 0) return answer(cudaErrorInvalidDevice);
  *p = (struct cudaDeviceProp){ .name = RIG_NAME, .totalGlobalMem = (size_t)m->memory, .warpSize = 32 };
  p->major = m->capability / 10, p->minor = m->capability % 10;
  p->multiProcessorCount = 132, p->maxThreadsPerBlock = 1024, p->sharedMemPerBlockOptin = 232448;
  p->pciBusID = rig_bus(rig_physical(device)), p->unifiedAddressing = 1;
  return cudaSuccess;
}

/* ------------------------------------------------------------------------------- memory */

FN cudaMalloc(void **p, size_t bytes) {
  ENTER;
  return answer(rig_alloc(p, bytes));
}
FN cudaFree(void *p) {
  ENTER;
  return answer(rig_free(p));
}
FN cudaHostAlloc(void **p, size_t bytes, unsigned flags) {
  ENTER;
  NEED(flags <= 7);
  return answer(rig_host_alloc(p, bytes));
}
FN cudaMallocHost(void **p, size_t bytes) {
  ENTER;
  return answer(rig_host_alloc(p, bytes));
}
FN cudaFreeHost(void *p) {
  ENTER;
  return answer(rig_host_free(p));
}
FN cudaHostRegister(void *p, size_t bytes, unsigned flags) {
  ENTER;
  NEED(flags <= 15);
  return answer(rig_host_register(p, bytes));
}
FN cudaHostUnregister(void *p) {
  ENTER;
  return answer(rig_host_unregister(p));
}
FN cudaIpcGetMemHandle(cudaIpcMemHandle_t *handle, void *p) {
  ENTER;
  return answer(rig_ipc_get(handle, p));
}
FN cudaIpcOpenMemHandle(void **p, cudaIpcMemHandle_t handle, unsigned flags) {
  ENTER;
  NEED(flags == cudaIpcMemLazyEnablePeerAccess);
  return answer(rig_ipc_open(p, &handle));
}
FN cudaIpcCloseMemHandle(void *p) {
  ENTER;
  return answer(rig_ipc_close(p));
}

FN cudaHostGetDevicePointer(void **device, void *host, unsigned flags) {
  rig_block b;
  ENTER;
  NEED(device && !flags && rig_find(host, &b) && b.kind == RIG_HOST);
  *device = host;
  return cudaSuccess;
}

FN cudaMemGetInfo(size_t *unused, size_t *total) {
  ENTER;
  NEED(unused && total);
  *total = (size_t)rig_the_machine()->memory;
  long long n = rig_free_bytes(rig_device());
  *unused = n > 0 ? (size_t)n : 0;
  return cudaSuccess;
}

FN cudaPointerGetAttributes(struct cudaPointerAttributes *a, const void *p) {
  rig_block b;
  ENTER;
  NEED(a);
  memset(a, 0, sizeof *a);
  a->type = cudaMemoryTypeUnregistered, a->device = cudaInvalidDeviceId;
  a->hostPointer = (void *)(uintptr_t)p;
  if (!rig_find(p, &b)) return cudaSuccess;
  a->type = b.kind == RIG_HOST ? cudaMemoryTypeHost : cudaMemoryTypeDevice;
  a->device = b.device;
  a->devicePointer = (void *)(uintptr_t)p;
  if (b.kind != RIG_HOST) a->hostPointer = NULL;
  return cudaSuccess;
}

/* A pool is a mark: what is taken from it is taken at once and given back in the stream's order. */
static char pools[64];

static bool is_pool(cudaMemPool_t p) {
  uintptr_t i = (uintptr_t)p - (uintptr_t)pools;
  return i < sizeof pools && pools[i];
}

FN cudaMemPoolCreate(cudaMemPool_t *pool, const struct cudaMemPoolProps *props) {
  ENTER;
  NEED(pool && props && props->location.type == cudaMemLocationTypeDevice && rig_physical(props->location.id) >= 0);
  for (size_t i = 0; i < sizeof pools; i++) {
    char none = 0;
    if (!__atomic_compare_exchange_n(&pools[i], &none, 1, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) continue;
    *pool = (cudaMemPool_t)(uintptr_t)&pools[i];
    return cudaSuccess;
  }
  return answer(cudaErrorMemoryAllocation);
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
  return answer(attribute == cudaMemPoolAttrReleaseThreshold ? 0 : cudaErrorNotSupported);
}

FN cudaMallocAsync(void **p, size_t bytes, cudaStream_t s) {
  ENTER;
  int e = rig_stream_query(s);
  return answer(e == cudaErrorInvalidResourceHandle ? e : rig_alloc(p, bytes));
}

FN cudaMallocFromPoolAsync(void **p, size_t bytes, cudaMemPool_t pool, cudaStream_t s) {
  ENTER;
  NEED(is_pool(pool));
  int e = rig_stream_query(s);
  return answer(e == cudaErrorInvalidResourceHandle ? e : rig_alloc(p, bytes));
}

/* After what is on the stream: as long as the real one may take. */
FN cudaFreeAsync(void *p, cudaStream_t s) {
  ENTER;
  int e = rig_stream_wait(s);
  return answer(e ? e : rig_free(p));
}

/* ------------------------------------------------------------------------------- copies */

/* Does the place of either end agree with the kind? */
static bool agrees(const void *to, const void *from, enum cudaMemcpyKind kind) {
  rig_block a, b;
  bool      d = rig_find(to, &a) && a.kind != RIG_HOST, s = rig_find(from, &b) && b.kind != RIG_HOST;
  switch (kind) {
  case cudaMemcpyDefault: return true;
  case cudaMemcpyHostToHost: return !d && !s;
  case cudaMemcpyHostToDevice: return d && !s;
  case cudaMemcpyDeviceToHost: return !d && s;
  default: return kind == cudaMemcpyDeviceToDevice && d && s;
  }
}

FN cudaMemcpy(void *to, const void *from, size_t n, enum cudaMemcpyKind kind) {
  ENTER;
  NEED(!n || agrees(to, from, kind));
  return answer(rig_copy_line(to, from, n, NULL, true));
}

FN cudaMemcpyAsync(void *to, const void *from, size_t n, enum cudaMemcpyKind kind, cudaStream_t s) {
  ENTER;
  NEED(!n || agrees(to, from, kind));
  return answer(rig_copy_line(to, from, n, s, false));
}

static int copy_2d(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width, size_t height,
                   enum cudaMemcpyKind kind, cudaStream_t s, bool wait) {
  if (to_pitch < width || from_pitch < width) return cudaErrorInvalidPitchValue;
  if (width && height && !agrees(to, from, kind)) return cudaErrorInvalidValue;
  return rig_copy((rig_slab){ .to = to,
                              .from = from,
                              .row = width,
                              .rows = height,
                              .planes = 1,
                              .to_pitch = to_pitch,
                              .from_pitch = from_pitch },
                  s, wait);
}

FN cudaMemcpy2D(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width, size_t height,
                enum cudaMemcpyKind kind) {
  ENTER;
  return answer(copy_2d(to, to_pitch, from, from_pitch, width, height, kind, NULL, true));
}

FN cudaMemcpy2DAsync(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width, size_t height,
                     enum cudaMemcpyKind kind, cudaStream_t s) {
  ENTER;
  return answer(copy_2d(to, to_pitch, from, from_pitch, width, height, kind, s, false));
}

FN cudaMemcpy3DAsync(const struct cudaMemcpy3DParms *p, cudaStream_t s) {
  ENTER;
  NEED(p && !p->srcArray && !p->dstArray);
  struct cudaPitchedPtr d = p->dstPtr, f = p->srcPtr;
  if (d.pitch < p->extent.width || f.pitch < p->extent.width) return answer(cudaErrorInvalidPitchValue);
  rig_slab a = { .row = p->extent.width,
                 .rows = p->extent.height,
                 .planes = p->extent.depth,
                 .to_pitch = d.pitch,
                 .from_pitch = f.pitch };
  a.to_plane = d.pitch * d.ysize, a.from_plane = f.pitch * f.ysize;
  a.to = (char *)d.ptr + p->dstPos.z * a.to_plane + p->dstPos.y * d.pitch + p->dstPos.x;
  a.from = (const char *)f.ptr + p->srcPos.z * a.from_plane + p->srcPos.y * f.pitch + p->srcPos.x;
  NEED(!a.row || !a.rows || !a.planes || agrees(a.to, a.from, p->kind));
  return answer(rig_copy(a, s, false));
}

FN cudaMemcpyBatchAsync(void *const *to, const void *const *from, const size_t *bytes, size_t n,
                        struct cudaMemcpyAttributes *attributes, size_t *which, size_t nattributes, cudaStream_t s) {
  ENTER;
  (void)attributes, (void)which, (void)nattributes; /* hints of when the source may be read */
  NEED(to && from && bytes && n && s);
  int e = 0;
  for (size_t i = 0; i < n && !e; i++) e = rig_copy_line(to[i], from[i], bytes[i], s, false);
  return answer(e);
}

FN cudaMemset(void *p, int value, size_t n) {
  ENTER;
  return answer(rig_set(p, value, n, NULL, true));
}
FN cudaMemsetAsync(void *p, int value, size_t n, cudaStream_t s) {
  ENTER;
  return answer(rig_set(p, value, n, s, false));
}

/* -------------------------------------------------------------------- streams and events */

FN cudaStreamCreate(cudaStream_t *s) {
  ENTER;
  return answer(rig_stream_create(s, 0));
}
FN cudaStreamCreateWithFlags(cudaStream_t *s, unsigned flags) {
  ENTER;
  return answer(rig_stream_create(s, flags));
}
FN cudaStreamCreateWithPriority(cudaStream_t *s, unsigned flags, int priority) {
  ENTER;
  (void)priority; /* a hint */
  return answer(rig_stream_create(s, flags));
}
FN cudaStreamDestroy(cudaStream_t s) {
  ENTER;
  return answer(rig_stream_end(s));
}
FN cudaStreamSynchronize(cudaStream_t s) {
  ENTER;
  return answer(rig_stream_wait(s));
}
FN cudaStreamQuery(cudaStream_t s) {
  ENTER;
  return answer(rig_stream_query(s));
}
FN cudaStreamGetId(cudaStream_t s, unsigned long long *id) {
  ENTER;
  return answer(rig_stream_id(s, id));
}
FN cudaStreamWaitEvent(cudaStream_t s, cudaEvent_t event, unsigned flags) {
  ENTER;
  NEED(!flags);
  return answer(rig_wait_event(s, event));
}
FN cudaLaunchHostFunc(cudaStream_t s, cudaHostFn_t function, void *arg) {
  ENTER;
  return answer(rig_host_function(s, function, arg));
}
FN cudaEventCreate(cudaEvent_t *event) {
  ENTER;
  return answer(rig_event_create(event, 0));
}
FN cudaEventCreateWithFlags(cudaEvent_t *event, unsigned flags) {
  ENTER;
  return answer(rig_event_create(event, flags));
}
FN cudaEventDestroy(cudaEvent_t event) {
  ENTER;
  return answer(rig_event_end(event));
}
FN cudaEventRecord(cudaEvent_t event, cudaStream_t s) {
  ENTER;
  return answer(rig_event_record(event, s));
}
FN cudaEventQuery(cudaEvent_t event) {
  ENTER;
  return answer(rig_event_state(event, false));
}
FN cudaEventSynchronize(cudaEvent_t event) {
  ENTER;
  return answer(rig_event_state(event, true));
}
FN cudaEventElapsedTime(float *ms, cudaEvent_t from, cudaEvent_t to) {
  ENTER;
  return answer(rig_event_ms(ms, from, to));
}

/* Nothing is ever captured; what belongs to a capture is refused. */
static int not_capturing(cudaStream_t s, enum cudaStreamCaptureStatus *status) {
  int e = rig_stream_query(s);
  if (e == cudaErrorInvalidResourceHandle || !status) return status ? e : (int)cudaErrorInvalidValue;
  *status = cudaStreamCaptureStatusNone;
  return 0;
}

FN cudaStreamIsCapturing(cudaStream_t s, enum cudaStreamCaptureStatus *status) {
  ENTER;
  return answer(not_capturing(s, status));
}

FN cudaStreamGetCaptureInfo(cudaStream_t s, enum cudaStreamCaptureStatus *status, unsigned long long *id,
                            cudaGraph_t *graph, const cudaGraphNode_t **from, const cudaGraphEdgeData **edges,
                            size_t *n) {
  ENTER;
  (void)id, (void)graph, (void)from, (void)edges, (void)n; /* set only while a stream is captured */
  return answer(not_capturing(s, status));
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
  return answer(cudaErrorNotSupported);
}
FN cudaStreamUpdateCaptureDependencies(cudaStream_t s, cudaGraphNode_t *from, const cudaGraphEdgeData *edges, size_t n,
                                       unsigned flags) {
  ENTER;
  (void)s, (void)from, (void)edges, (void)n, (void)flags;
  return answer(cudaErrorNotSupported);
}
FN cudaUserObjectCreate(cudaUserObject_t *o, void *p, cudaHostFn_t end, unsigned refs, unsigned flags) {
  ENTER;
  (void)o, (void)p, (void)end, (void)refs, (void)flags;
  return answer(cudaErrorNotSupported);
}
FN cudaGraphRetainUserObject(cudaGraph_t graph, cudaUserObject_t o, unsigned n, unsigned flags) {
  ENTER;
  (void)graph, (void)o, (void)n, (void)flags;
  return answer(cudaErrorNotSupported);
}
FN cudaGraphAddEventRecordNode(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *from, size_t n,
                               cudaEvent_t event) {
  ENTER;
  (void)node, (void)graph, (void)from, (void)n, (void)event;
  return answer(cudaErrorNotSupported);
}
FN cudaGraphAddDependencies(cudaGraph_t graph, const cudaGraphNode_t *from, const cudaGraphNode_t *to,
                            const cudaGraphEdgeData *edges, size_t n) {
  ENTER;
  (void)graph, (void)from, (void)to, (void)edges, (void)n;
  return answer(cudaErrorNotSupported);
}

FN cudaGetDriverEntryPointByVersion(const char *name, void **function, unsigned version, unsigned long long flags,
                                    enum cudaDriverEntryPointQueryResult *status) {
  ENTER;
  NEED(name && function && version && flags <= cudaEnablePerThreadDefaultStream);
  *function = rig_entry(name);
  if (!*function) {
    char line[128];
    snprintf(line, sizeof line, "no entry point %.80s", name);
    rig_note(line);
  }
  if (status) *status = *function ? cudaDriverEntryPointSuccess : cudaDriverEntryPointSymbolNotFound;
  return answer(*function || status ? 0 : cudaErrorSymbolNotFound);
}
