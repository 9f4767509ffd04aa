/* SPDX-License-Identifier: MIT
**
** runtime.c - the runtime's devices, errors, memory, copies, streams and events, each over the
** rig's own function.
*/
#include "runtime.h"

#include <link.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

static _Thread_local cudaError_t last;
static _Thread_local const char *calling;

/* Another runtime in the process would have other devices, streams and memory. Whoever has the rig
** inside has its own second one, which shares them. */
static bool another;
static pthread_once_t looked = PTHREAD_ONCE_INIT;

static int look_at(struct dl_phdr_info *library, size_t bytes, void *arg) {
  const char *slash = strrchr(library->dlpi_name, '/'),
             *file = slash ? slash + 1 : library->dlpi_name;
  (void)bytes, (void)arg;
  if (another || strncmp(file, "libcudart.so.", 13) != 0 || !strncmp(file, "libcudart.so.13", 15))
    return 0;
  another = true;
  rig_say("two CUDA runtimes are in this process, %s beside the one here: every call fails", file);
  return 0;
}

static void look_around(void) {
  if (!rig_the_manner.wrong) dl_iterate_phdr(look_at, NULL);
}

int rig_call(rig_site *site, const char *name, bool needs_driver) {
  int e = rig_enter(site, name);
  calling = name;
  if (e || !needs_driver) return e;
  pthread_once(&looked, look_around);
  return another ? (int)cudaErrorInitializationError : rig_refuses();
}

cudaError_t rig_answer(int e) {
  if (e && e != cudaErrorNotReady) last = (cudaError_t)e;
  if (e == cudaErrorInvalidValue || e == cudaErrorInvalidPitchValue
      || e == cudaErrorInvalidResourceHandle)
    rig_wrong("%s: %s", calling, cudaGetErrorString((cudaError_t)e));
  return (cudaError_t)e;
}

/* ------------------------------------------------------------------------------- errors */

static const struct {
  cudaError_t error;
  const char *name, *text;
} errors[] = {
  { cudaSuccess, RIG_GPU "Success", "no error" },
  { cudaErrorInvalidValue, RIG_GPU "ErrorInvalidValue", "invalid argument" },
  { cudaErrorInitializationError, RIG_GPU "ErrorInitializationError", "initialization error" },
  { cudaErrorMemoryAllocation, RIG_GPU "ErrorMemoryAllocation", "out of memory" },
  { cudaErrorInvalidPitchValue, RIG_GPU "ErrorInvalidPitchValue", "invalid pitch argument" },
  { cudaErrorStubLibrary, RIG_GPU "ErrorStubLibrary", "CUDA driver is a stub library" },
  { cudaErrorInsufficientDriver, RIG_GPU "ErrorInsufficientDriver",
    "CUDA driver version is insufficient for CUDA runtime version" },
  { cudaErrorInvalidDeviceFunction, RIG_GPU "ErrorInvalidDeviceFunction",
    "invalid device function" },
  { cudaErrorNoDevice, RIG_GPU "ErrorNoDevice", "no CUDA-capable device is detected" },
  { cudaErrorInvalidDevice, RIG_GPU "ErrorInvalidDevice", "invalid device ordinal" },
  { cudaErrorMapBufferObjectFailed, RIG_GPU "ErrorMapBufferObjectFailed",
    "mapping of buffer object failed" },
  { cudaErrorPeerAccessUnsupported, RIG_GPU "ErrorPeerAccessUnsupported",
    "peer access is not supported between these two devices" },
  { cudaErrorInvalidResourceHandle, RIG_GPU "ErrorInvalidResourceHandle",
    "invalid resource handle" },
  { cudaErrorNotReady, RIG_GPU "ErrorNotReady", "device not ready" },
  { cudaErrorIllegalAddress, RIG_GPU "ErrorIllegalAddress",
    "an illegal memory access was encountered" },
  { cudaErrorLaunchTimeout, RIG_GPU "ErrorLaunchTimeout",
    "the launch timed out and was terminated" },
  { cudaErrorNotSupported, RIG_GPU "ErrorNotSupported", "operation not supported" },
  { cudaErrorUnknown, RIG_GPU "ErrorUnknown", "unknown error" },
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
  ENTER_ANYWAY;
  NEED(version);
  *version = rig_the_manner.runtime;
  return cudaSuccess;
}
/* 0 is "no driver", and no error, for a stub as well. */
FN cudaDriverGetVersion(int *version) {
  ENTER_ANYWAY;
  NEED(version);
  *version = rig_driver();
  return cudaSuccess;
}
FN cudaSetDevice(int device) {
  ENTER;
  return rig_answer(rig_set_device(device));
}
FN cudaDeviceSynchronize(void) {
  ENTER;
  return rig_answer(rig_drain(rig_device()));
}
FN cudaDeviceGetByPCIBusId(int *device, const char *id) {
  ENTER;
  return rig_answer(rig_by_bus_id(device, id));
}
FN cudaDeviceGetPCIBusId(char *id, int room, int device) {
  ENTER;
  return rig_answer(rig_bus_id(id, room, device));
}

FN cudaGetDeviceCount(int *count) {
  ENTER;
  NEED(count);
  *count = rig_devices();
  return cudaSuccess;
}

FN cudaGetDevice(int *device) {
  ENTER;
  NEED(device);
  *device = rig_device();
  return cudaSuccess;
}

FN cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr attribute, int device) {
  ENTER;
  return rig_answer(rig_attribute(value, (int)attribute, device));
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
  if (rig_physical(device) < 0) return rig_answer(cudaErrorInvalidDevice);
  *p = (struct cudaDeviceProp){ .name = RIG_NAME,
                                .totalGlobalMem = (size_t)m->memory,
                                .warpSize = 32 };
  p->major = m->capability / 10, p->minor = m->capability % 10;
  p->multiProcessorCount = 132, p->maxThreadsPerBlock = 1024, p->sharedMemPerBlockOptin = 232448;
  p->pciBusID = rig_bus(rig_physical(device)), p->unifiedAddressing = 1;
  return cudaSuccess;
}

/* ------------------------------------------------------------------------------- memory */

FN cudaMalloc(void **p, size_t bytes) {
  ENTER;
  return rig_answer(rig_alloc(p, bytes));
}
FN cudaFree(void *p) {
  ENTER;
  return rig_answer(rig_free(p));
}
FN cudaHostAlloc(void **p, size_t bytes, unsigned flags) {
  ENTER;
  NEED(flags <= 7);
  return rig_answer(rig_host_alloc(p, bytes));
}
FN cudaMallocHost(void **p, size_t bytes) {
  ENTER;
  return rig_answer(rig_host_alloc(p, bytes));
}
FN cudaFreeHost(void *p) {
  ENTER;
  return rig_answer(rig_host_free(p));
}
FN cudaHostRegister(void *p, size_t bytes, unsigned flags) {
  ENTER;
  NEED(flags <= 15);
  return rig_answer(rig_host_register(p, bytes));
}
FN cudaHostUnregister(void *p) {
  ENTER;
  return rig_answer(rig_host_unregister(p));
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

/* ------------------------------------------------------------------------------- copies */

typedef enum place {
  OF_HOST,
  OF_DEVICE,
  BEYOND
} place; /* the last: it begins in memory of a device, and ends outside */

/* cuMem handles may be mapped side by side. */
static place place_of(const void *p, size_t bytes) {
  rig_block b;
  if (!rig_find(p, &b) || b.kind == RIG_HOST) return OF_HOST;
  return b.physical || bytes <= b.bytes - (size_t)((const char *)p - b.at) ? OF_DEVICE : BEYOND;
}

/* Does the place of either end agree with the kind? */
static bool agrees(const void *to, size_t to_bytes, const void *from, size_t from_bytes,
                   enum cudaMemcpyKind kind) {
  place t = place_of(to, to_bytes), f = place_of(from, from_bytes);
  switch (kind) {
  case cudaMemcpyDefault: return t != BEYOND && f != BEYOND;
  case cudaMemcpyHostToHost: return t == OF_HOST && f == OF_HOST;
  case cudaMemcpyHostToDevice: return t == OF_DEVICE && f == OF_HOST;
  case cudaMemcpyDeviceToHost: return t == OF_HOST && f == OF_DEVICE;
  default: return kind == cudaMemcpyDeviceToDevice && t == OF_DEVICE && f == OF_DEVICE;
  }
}

static int copy_slab(rig_slab a, enum cudaMemcpyKind kind, cudaStream_t s, bool wait) {
  if (a.to_pitch < a.row || a.from_pitch < a.row || a.to_pitch > INT32_MAX
      || a.from_pitch > INT32_MAX)
    return cudaErrorInvalidPitchValue;
  if (a.row && a.rows && a.planes
      && !agrees(a.to, (a.planes - 1) * a.to_plane + (a.rows - 1) * a.to_pitch + a.row, a.from,
                 (a.planes - 1) * a.from_plane + (a.rows - 1) * a.from_pitch + a.row, kind))
    return cudaErrorInvalidValue;
  return rig_copy(a, s, wait);
}

FN cudaMemcpy(void *to, const void *from, size_t n, enum cudaMemcpyKind kind) {
  ENTER;
  NEED(!n || agrees(to, n, from, n, kind));
  return rig_answer(rig_copy_line(to, from, n, NULL, true));
}

FN cudaMemcpyAsync(void *to, const void *from, size_t n, enum cudaMemcpyKind kind, cudaStream_t s) {
  ENTER;
  NEED(!n || agrees(to, n, from, n, kind));
  return rig_answer(rig_copy_line(to, from, n, s, false));
}

static int copy_2d(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width,
                   size_t height, enum cudaMemcpyKind kind, cudaStream_t s, bool wait) {
  return copy_slab((rig_slab){ .to = to,
                               .from = from,
                               .row = width,
                               .rows = height,
                               .planes = 1,
                               .to_pitch = to_pitch,
                               .from_pitch = from_pitch },
                   kind, s, wait);
}

FN cudaMemcpy2D(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width,
                size_t height, enum cudaMemcpyKind kind) {
  ENTER;
  return rig_answer(copy_2d(to, to_pitch, from, from_pitch, width, height, kind, NULL, true));
}

FN cudaMemcpy2DAsync(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width,
                     size_t height, enum cudaMemcpyKind kind, cudaStream_t s) {
  ENTER;
  return rig_answer(copy_2d(to, to_pitch, from, from_pitch, width, height, kind, s, false));
}

FN cudaMemcpy3DAsync(const struct cudaMemcpy3DParms *p, cudaStream_t s) {
  ENTER;
  NEED(p && !p->srcArray && !p->dstArray);
  struct cudaPitchedPtr d = p->dstPtr, f = p->srcPtr;
  NEED(d.ysize >= p->extent.height && f.ysize >= p->extent.height);
  rig_slab a = { .row = p->extent.width,
                 .rows = p->extent.height,
                 .planes = p->extent.depth,
                 .to_pitch = d.pitch,
                 .from_pitch = f.pitch };
  a.to_plane = d.pitch * d.ysize, a.from_plane = f.pitch * f.ysize;
  a.to = (char *)d.ptr + p->dstPos.z * a.to_plane + p->dstPos.y * d.pitch + p->dstPos.x;
  a.from = (const char *)f.ptr + p->srcPos.z * a.from_plane + p->srcPos.y * f.pitch + p->srcPos.x;
  return rig_answer(copy_slab(a, p->kind, s, false));
}

FN cudaMemset(void *p, int value, size_t n) {
  ENTER;
  return rig_answer(rig_set(p, value, n, NULL, true));
}
FN cudaMemsetAsync(void *p, int value, size_t n, cudaStream_t s) {
  ENTER;
  return rig_answer(rig_set(p, value, n, s, false));
}

/* -------------------------------------------------------------------- streams and events */

FN cudaStreamCreate(cudaStream_t *s) {
  ENTER;
  return rig_answer(rig_stream_create(s, 0));
}
FN cudaStreamCreateWithFlags(cudaStream_t *s, unsigned flags) {
  ENTER;
  return rig_answer(rig_stream_create(s, flags));
}
FN cudaStreamCreateWithPriority(cudaStream_t *s, unsigned flags, int priority) {
  ENTER;
  (void)priority; /* a hint */
  return rig_answer(rig_stream_create(s, flags));
}
FN cudaStreamDestroy(cudaStream_t s) {
  ENTER;
  return rig_answer(rig_stream_end(s));
}
FN cudaStreamSynchronize(cudaStream_t s) {
  ENTER;
  return rig_answer(rig_stream_wait(s));
}
FN cudaStreamQuery(cudaStream_t s) {
  ENTER;
  return rig_answer(rig_stream_query(s));
}
FN cudaStreamWaitEvent(cudaStream_t s, cudaEvent_t event, unsigned flags) {
  ENTER;
  NEED(!flags);
  return rig_answer(rig_wait_event(s, event));
}
FN cudaLaunchHostFunc(cudaStream_t s, cudaHostFn_t function, void *arg) {
  ENTER;
  return rig_answer(rig_host_function(s, function, arg));
}
FN cudaEventCreate(cudaEvent_t *event) {
  ENTER;
  return rig_answer(rig_event_create(event, 0));
}
FN cudaEventCreateWithFlags(cudaEvent_t *event, unsigned flags) {
  ENTER;
  return rig_answer(rig_event_create(event, flags));
}
FN cudaEventDestroy(cudaEvent_t event) {
  ENTER;
  return rig_answer(rig_event_end(event));
}
FN cudaEventRecord(cudaEvent_t event, cudaStream_t s) {
  ENTER;
  return rig_answer(rig_event_record(event, s));
}
FN cudaEventQuery(cudaEvent_t event) {
  ENTER;
  return rig_answer(rig_event_state(event, false));
}
FN cudaEventSynchronize(cudaEvent_t event) {
  ENTER;
  return rig_answer(rig_event_state(event, true));
}
FN cudaEventElapsedTime(float *ms, cudaEvent_t from, cudaEvent_t to) {
  ENTER;
  return rig_answer(rig_event_ms(ms, from, to));
}
