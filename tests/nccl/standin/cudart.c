/* SPDX-License-Identifier: MIT
**
** cudart.c - devices, errors and memory of the stand-in libcudart. Device memory is
** ordinary memory listed in a table, so that wrong copies and wrong frees are found.
*/
#include "cudart.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct block {
  struct block *next;
  char         *at;
  size_t        bytes;
  int           device;
} block;

static pthread_mutex_t           lock = PTHREAD_MUTEX_INITIALIZER;
static block                    *blocks;
static long long                 taken[SI_MAX_DEVICE];
static _Thread_local int         current;
static _Thread_local cudaError_t last;

/* ------------------------------------------------------------------------- errors */

cudaError_t cuda_answer(cudaError_t e) {
  if (e != cudaSuccess && e != cudaErrorNotReady) last = e;
  return e;
}

cudaError_t cuda_wrong(cudaError_t e, const char *format, ...) {
  char    text[SI_TEXT];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  standin_violation("%s", text);
  return cuda_answer(e);
}

static const struct {
  cudaError_t code;
  const char *name, *text;
} errors[] = {
  { cudaSuccess, STANDIN_GPU "Success", "no error" },
  { cudaErrorInvalidValue, STANDIN_GPU "ErrorInvalidValue", "invalid argument" },
  { cudaErrorMemoryAllocation, STANDIN_GPU "ErrorMemoryAllocation", "out of memory" },
  { cudaErrorStubLibrary, STANDIN_GPU "ErrorStubLibrary", "CUDA driver is a stub library" },
  { cudaErrorInsufficientDriver, STANDIN_GPU "ErrorInsufficientDriver",
    "CUDA driver version is insufficient for CUDA runtime version" },
  { cudaErrorNoDevice, STANDIN_GPU "ErrorNoDevice", "no CUDA-capable device is detected" },
  { cudaErrorInvalidDevice, STANDIN_GPU "ErrorInvalidDevice", "invalid device ordinal" },
  { cudaErrorInvalidPitchValue, STANDIN_GPU "ErrorInvalidPitchValue", "invalid pitch argument" },
  { cudaErrorInvalidResourceHandle, STANDIN_GPU "ErrorInvalidResourceHandle", "invalid resource handle" },
  { cudaErrorNotReady, STANDIN_GPU "ErrorNotReady", "device not ready" },
  { cudaErrorIllegalAddress, STANDIN_GPU "ErrorIllegalAddress", "an illegal memory access was encountered" },
  { cudaErrorLaunchTimeout, STANDIN_GPU "ErrorLaunchTimeout", "the launch timed out and was terminated" },
  { cudaErrorUnknown, STANDIN_GPU "ErrorUnknown", "unknown error" },
};

SI_API const char *cudaGetErrorName(cudaError_t error) {
  for (size_t i = 0; i < sizeof errors / sizeof *errors; i++)
    if (errors[i].code == error) return errors[i].name;
  return "unrecognized error code";
}

SI_API const char *cudaGetErrorString(cudaError_t error) {
  for (size_t i = 0; i < sizeof errors / sizeof *errors; i++)
    if (errors[i].code == error) return errors[i].text;
  return "unrecognized error code";
}

SI_API cudaError_t cudaGetLastError(void) {
  cudaError_t e = last;
  last = cudaSuccess;
  return e;
}

SI_API cudaError_t cudaPeekAtLastError(void) { return last; }

/* ------------------------------------------------------------------------ devices */

static int on_the_machine(void) {
  long n = standin_env("STANDIN_DEVICES", 8);
  return n < 0 ? 0 : n > SI_MAX_DEVICE ? SI_MAX_DEVICE : (int)n;
}

/* The nth visible device as the machine counts it, or -1: CUDA_VISIBLE_DEVICES is a list that ends at the first
** number that is no device. */
static int visible(int nth) {
  const char *at = getenv("CUDA_VISIBLE_DEVICES");
  if (!at) return nth < on_the_machine() ? nth : -1;
  for (int i = 0;; i++) {
    char *end;
    long  device = strtol(at, &end, 10);
    if (end == at || device < 0 || device >= on_the_machine()) return -1;
    if (i == nth) return (int)device;
    at = end + (*end == ',');
  }
}

static int devices(void) {
  int n = 0;
  while (visible(n) >= 0) n++;
  return n;
}

int standin_physical(int device) { return visible(device); }

/* The runtime that the process has loaded: an older one (cudart12.c) says so when it is loaded. */
static int runtime = STANDIN_RUNTIME;

void standin_runtime(int version) { runtime = version; }

static int driver_version(void) { return (int)standin_env("STANDIN_DRIVER", STANDIN_RUNTIME); }

cudaError_t standin_driver(void) {
  if (standin_env("STANDIN_NO_DRIVER", 0)) return cudaErrorInsufficientDriver;
  if (driver_version() / STANDIN_MAJOR < runtime / STANDIN_MAJOR) return cudaErrorInsufficientDriver;
  if (standin_env("STANDIN_STUB_DRIVER", 0)) return cudaErrorStubLibrary;
  return devices() ? cudaSuccess : cudaErrorNoDevice;
}

int cuda_device(void) { return current; }

SI_API cudaError_t cudaRuntimeGetVersion(int *version) {
  if (!version) return cuda_answer(cudaErrorInvalidValue);
  *version = STANDIN_RUNTIME;
  return cudaSuccess;
}

/* 0 is "no driver", and no error, for a stub as well. */
SI_API cudaError_t cudaDriverGetVersion(int *version) {
  cudaError_t e = standin_driver();
  if (!version) return cuda_answer(cudaErrorInvalidValue);
  bool none = standin_env("STANDIN_NO_DRIVER", 0) || e == cudaErrorStubLibrary;
  *version = none ? 0 : driver_version();
  return cudaSuccess;
}

/* On an error the count is left alone, as the real library leaves it. */
SI_API cudaError_t cudaGetDeviceCount(int *count) {
  cudaError_t e = standin_driver();
  if (!e && !count) e = cudaErrorInvalidValue;
  if (!e) *count = devices();
  return cuda_answer(e);
}

SI_API cudaError_t cudaSetDevice(int device) {
  cudaError_t e = standin_driver();
  if (!e && (device < 0 || device >= devices())) e = cudaErrorInvalidDevice;
  if (!e) current = device;
  return cuda_answer(e);
}

SI_API cudaError_t cudaGetDevice(int *device) {
  cudaError_t e = standin_driver();
  if (!e && !device) e = cudaErrorInvalidValue;
  if (!e) *device = current;
  return cuda_answer(e);
}

SI_API cudaError_t cudaDeviceGetPCIBusId(char *id, int len, int device) {
  cudaError_t e = standin_driver();
  if (!e && (device < 0 || device >= devices())) e = cudaErrorInvalidDevice;
  if (!e && (!id || len < 13)) e = cudaErrorInvalidValue;
  if (!e) snprintf(id, (size_t)len, "0000:%02X:00.0", 0x10 + visible(device));
  return cuda_answer(e);
}

/* The few that a program about communicators asks for, those of an H100. */
SI_API cudaError_t cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr attr, int device) {
  cudaError_t e = standin_driver();
  if (!e && (device < 0 || device >= devices())) e = cudaErrorInvalidDevice;
  if (!e && !value) e = cudaErrorInvalidValue;
  if (e) return cuda_answer(e);
  switch (attr) {
  case cudaDevAttrComputeCapabilityMajor: *value = 9; return cudaSuccess;
  case cudaDevAttrComputeCapabilityMinor: *value = 0; return cudaSuccess;
  case cudaDevAttrMultiProcessorCount: *value = 132; return cudaSuccess;
  case cudaDevAttrPciDomainId: *value = 0; return cudaSuccess;
  case cudaDevAttrPciBusId: *value = 0x10 + visible(device); return cudaSuccess;
  case cudaDevAttrPciDeviceId: *value = 0; return cudaSuccess;
  default: return cuda_wrong(cudaErrorInvalidValue, "cudaDeviceGetAttribute: attribute %d is not played", (int)attr);
  }
}

/* ------------------------------------------------------------------------- memory */

static long long room(void) { return standin_env("STANDIN_MEMORY", 80 * 1024) * (1LL << 20); }

bool standin_take(int device, long long bytes) {
  pthread_mutex_lock(&lock);
  bool fits = bytes <= 0 || taken[device] + bytes <= room();
  if (fits) taken[device] += bytes;
  pthread_mutex_unlock(&lock);
  return fits;
}

static bool inside(const block *b, const void *p, size_t bytes) {
  uintptr_t at = (uintptr_t)b->at, x = (uintptr_t)p;
  return x >= at && x - at <= b->bytes && bytes <= b->bytes - (x - at);
}

bool standin_on_device(const void *p, size_t bytes, int device) {
  bool found = false;
  pthread_mutex_lock(&lock);
  for (const block *b = blocks; b && !found; b = b->next)
    found = (device < 0 || b->device == device) && inside(b, p, bytes);
  pthread_mutex_unlock(&lock);
  return found;
}

bool cuda_live(const void *p, size_t bytes) { return standin_on_device(p, bytes, -1); }

SI_API cudaError_t cudaMalloc(void **p, size_t size) {
  cudaError_t e = standin_driver();
  if (!e && !p) e = cudaErrorInvalidValue;
  if (e) return cuda_answer(e);
  if (!size) {
    *p = NULL;
    return cudaSuccess;
  }
  if (!standin_take(current, (long long)size)) return cuda_answer(cudaErrorMemoryAllocation);
  block *b = malloc(sizeof *b);
  char  *at = b ? malloc(size) : NULL;
  if (!at) {
    free(b);
    standin_take(current, -(long long)size);
    return cuda_answer(cudaErrorMemoryAllocation);
  }
  memset(at, 0xA5, size); /* makes use of uninitialized memory visible */
  pthread_mutex_lock(&lock);
  *b = (block){ blocks, at, size, current };
  blocks = b;
  pthread_mutex_unlock(&lock);
  *p = at;
  return cudaSuccess;
}

/* Waits for the device, as the real one does: a free while a peer is late blocks. */
SI_API cudaError_t cudaFree(void *p) {
  cudaError_t e = standin_driver();
  block      *found = NULL;
  if (e || !p) return cuda_answer(e);
  cuda_drain(-1);
  pthread_mutex_lock(&lock);
  for (block **at = &blocks; *at; at = &(*at)->next)
    if ((*at)->at == p) {
      found = *at;
      *at = found->next;
      taken[found->device] -= (long long)found->bytes;
      break;
    }
  pthread_mutex_unlock(&lock);
  if (!found) return cuda_wrong(cudaErrorInvalidValue, "cudaFree of %p, which is no live device memory", p);
  free(found->at);
  free(found);
  return cudaSuccess;
}

SI_API cudaError_t cudaMemGetInfo(size_t *unused, size_t *total) {
  cudaError_t e = standin_driver();
  if (!e && (!unused || !total)) e = cudaErrorInvalidValue;
  if (e) return cuda_answer(e);
  pthread_mutex_lock(&lock);
  *total = (size_t)room();
  *unused = (size_t)(room() - taken[current]);
  pthread_mutex_unlock(&lock);
  return cudaSuccess;
}

/* ------------------------------------------------------------------------- copies */

typedef struct copy {
  char       *to;
  const char *from;
  char       *stage; /* copy of a CPU buffer as it was when the call was made */
  int         value;
  size_t      bytes;
} copy;

static cudaError_t do_copy(void *arg) {
  copy *c = arg;
  if (c->from)
    memcpy(c->to, c->from, c->bytes);
  else
    memset(c->to, c->value, c->bytes);
  free(c->stage);
  free(c);
  return cudaSuccess;
}

static cudaError_t direction(const char *call, void *dst, const void *src, size_t n, enum cudaMemcpyKind kind) {
  bool to = cuda_live(dst, n), from = cuda_live(src, n);
  bool want_to = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice;
  bool want_from = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice;
  if (kind == cudaMemcpyDefault || (to == want_to && from == want_from)) return cudaSuccess;
  return cuda_wrong(
      cudaErrorInvalidValue, "%s of %zu bytes, kind %d: %s is %s device memory; real CUDA would fault here", call, n,
      (int)kind, to != want_to ? "the target" : "the source", (to != want_to ? want_to : want_from) ? "no live" : "in");
}

static cudaError_t submit_copy(cudaStream_t stream, copy what, bool stage, bool wait) {
  copy *c = malloc(sizeof *c);
  if (!c) return cuda_answer(cudaErrorMemoryAllocation);
  *c = what;
  if (stage) {
    c->stage = malloc(c->bytes);
    if (!c->stage) {
      free(c);
      return cuda_answer(cudaErrorMemoryAllocation);
    }
    memcpy(c->stage, c->from, c->bytes);
    c->from = c->stage;
  }
  cudaError_t e = cuda_submit(stream, do_copy, c, wait);
  return cuda_answer(e);
}

static cudaError_t any_copy(const char *call, void *dst, const void *src, size_t n, enum cudaMemcpyKind kind,
                            cudaStream_t stream, bool wait) {
  cudaError_t e = standin_driver();
  if (!e && n) e = direction(call, dst, src, n, kind);
  if (e || !n) return cuda_answer(e);
  return submit_copy(stream, (copy){ dst, src, NULL, 0, n }, !wait && !cuda_live(src, n), wait);
}

SI_API cudaError_t cudaMemcpy(void *dst, const void *src, size_t count, enum cudaMemcpyKind kind) {
  return any_copy("cudaMemcpy", dst, src, count, kind, NULL, true);
}

SI_API cudaError_t cudaMemcpyAsync(void *dst, const void *src, size_t count, enum cudaMemcpyKind kind,
                                   cudaStream_t stream) {
  return any_copy("cudaMemcpyAsync", dst, src, count, kind, stream, false);
}

static cudaError_t any_set(const char *call, void *p, int value, size_t n, cudaStream_t stream, bool wait) {
  cudaError_t e = standin_driver();
  if (e || !n) return cuda_answer(e);
  if (!cuda_live(p, n))
    return cuda_wrong(cudaErrorInvalidValue, "%s of %zu bytes at %p, which is no live device memory", call, n, p);
  return submit_copy(stream, (copy){ p, NULL, NULL, value, n }, false, wait);
}

SI_API cudaError_t cudaMemset(void *p, int value, size_t count) {
  return any_set("cudaMemset", p, value, count, NULL, true);
}

SI_API cudaError_t cudaMemsetAsync(void *p, int value, size_t count, cudaStream_t stream) {
  return any_set("cudaMemsetAsync", p, value, count, stream, false);
}

/* -------------------------------------------------------------------------- the end */

void standin_cuda_leaks(void) {
  cuda_stream_leaks();
  pthread_mutex_lock(&lock);
  for (const block *b = blocks; b; b = b->next)
    standin_violation("leak: %zu bytes of memory on device %d were never freed", b->bytes, b->device);
  pthread_mutex_unlock(&lock);
}
