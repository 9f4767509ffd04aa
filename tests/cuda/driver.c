/* SPDX-License-Identifier: MIT
**
** driver.c - the driver's devices, contexts, pointers, and its memory and streams under their own
** names.
*/
#include "rig.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#define FN RIG_API CUresult

/* ------------------------------------------------------------------------------ devices */

FN cuInit(unsigned flags) {
  RIG_ENTER(CUresult);
  if (flags) return CUDA_ERROR_INVALID_VALUE;
  return rig_devices() ? CUDA_SUCCESS : CUDA_ERROR_NO_DEVICE;
}

FN cuDriverGetVersion(int *version) {
  RIG_ENTER(CUresult);
  if (!version) return CUDA_ERROR_INVALID_VALUE;
  *version = CUDA_VERSION;
  return CUDA_SUCCESS;
}

FN cuDeviceGetCount(int *n) {
  RIG_ENTER(CUresult);
  if (!n) return CUDA_ERROR_INVALID_VALUE;
  *n = rig_devices();
  return CUDA_SUCCESS;
}

FN cuDeviceGet(CUdevice *device, int i) {
  RIG_ENTER(CUresult);
  if (!device) return CUDA_ERROR_INVALID_VALUE;
  if (rig_physical(i) < 0) return CUDA_ERROR_INVALID_DEVICE;
  *device = i;
  return CUDA_SUCCESS;
}

FN cuDeviceGetAttribute(int *value, CUdevice_attribute attribute, CUdevice device) {
  RIG_ENTER(CUresult);
  return (CUresult)rig_attribute(value, (int)attribute, device);
}

/* A GPU's identity; the same for a process that sees it under another number. */
FN cuDeviceGetUuid(CUuuid *uuid, CUdevice device) {
  RIG_ENTER(CUresult);
  if (rig_physical(device) < 0) return CUDA_ERROR_INVALID_DEVICE;
  if (!uuid) return CUDA_ERROR_INVALID_VALUE;
  memset(uuid, 0, sizeof *uuid);
  snprintf(uuid->bytes, sizeof uuid->bytes, "moongrid GPU %d", rig_physical(device));
  return CUDA_SUCCESS;
}

/* ------------------------------------------------------------------------------- errors */

static const struct {
  CUresult error;
  const char *name, *text;
} errors[] = {
  { CUDA_SUCCESS, "CUDA_SUCCESS", "no error" },
  { CUDA_ERROR_INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE", "invalid argument" },
  { CUDA_ERROR_OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory" },
  { CUDA_ERROR_NO_DEVICE, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected" },
  { CUDA_ERROR_INVALID_DEVICE, "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal" },
  { CUDA_ERROR_INVALID_HANDLE, "CUDA_ERROR_INVALID_HANDLE", "invalid resource handle" },
  { CUDA_ERROR_NOT_FOUND, "CUDA_ERROR_NOT_FOUND", "named symbol not found" },
  { CUDA_ERROR_NOT_READY, "CUDA_ERROR_NOT_READY", "device not ready" },
  { CUDA_ERROR_NOT_SUPPORTED, "CUDA_ERROR_NOT_SUPPORTED", "operation not supported" },
  { CUDA_ERROR_MAP_FAILED, "CUDA_ERROR_MAP_FAILED", "mapping of buffer object failed" },
  { CUDA_ERROR_UNKNOWN, "CUDA_ERROR_UNKNOWN", "unknown error" },
};

static CUresult about(CUresult error, bool name, const char **out) {
  if (!out) return CUDA_ERROR_INVALID_VALUE;
  *out = NULL;
  for (size_t i = 0; i < sizeof errors / sizeof *errors; i++)
    if (errors[i].error == error) *out = name ? errors[i].name : errors[i].text;
  return *out ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

FN cuGetErrorName(CUresult error, const char **name) {
  RIG_ENTER(CUresult);
  return about(error, true, name);
}

FN cuGetErrorString(CUresult error, const char **text) {
  RIG_ENTER(CUresult);
  return about(error, false, text);
}

/* ----------------------------------------------------------------------------- contexts */

/* One context a device, the primary one; a handle is the device + 1. */
static int of_context(CUcontext c) { return (int)(uintptr_t)c - 1; }

FN cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device) {
  RIG_ENTER(CUresult);
  if (!context) return CUDA_ERROR_INVALID_VALUE;
  if (rig_physical(device) < 0) return CUDA_ERROR_INVALID_DEVICE;
  *context = (CUcontext)(uintptr_t)(device + 1);
  return CUDA_SUCCESS;
}

FN cuDevicePrimaryCtxRelease(CUdevice device) {
  RIG_ENTER(CUresult);
  return rig_physical(device) < 0 ? CUDA_ERROR_INVALID_DEVICE : CUDA_SUCCESS;
}

FN cuCtxGetCurrent(CUcontext *context) {
  RIG_ENTER(CUresult);
  if (!context) return CUDA_ERROR_INVALID_VALUE;
  *context = (CUcontext)(uintptr_t)(rig_device() + 1);
  return CUDA_SUCCESS;
}

FN cuCtxSetCurrent(CUcontext context) {
  RIG_ENTER(CUresult);
  return (CUresult)(context ? rig_set_device(of_context(context)) : 0);
}

FN cuCtxGetDevice(CUdevice *device) {
  RIG_ENTER(CUresult);
  if (!device) return CUDA_ERROR_INVALID_VALUE;
  *device = rig_device();
  return CUDA_SUCCESS;
}

FN cuCtxSynchronize(void) {
  RIG_ENTER(CUresult);
  return (CUresult)rig_drain(rig_device());
}

/* ----------------------------------------------------------------------------- pointers */

int rig_pointer(void *out, CUpointer_attribute attribute, const void *p) {
  rig_block b;
  if (!out) return CUDA_ERROR_INVALID_VALUE;
  if (!rig_find(p, &b)) return CUDA_ERROR_INVALID_VALUE;
  bool host = b.kind == RIG_HOST;
  switch (attribute) {
  case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
    return *(unsigned *)out = host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE, 0;
  case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL: return *(int *)out = b.device, 0;
  case CU_POINTER_ATTRIBUTE_CONTEXT:
    return *(CUcontext *)out = (CUcontext)(uintptr_t)(b.device + 1), 0;
  case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
    return *(CUdeviceptr *)out = (CUdeviceptr)(uintptr_t)p, 0;
  case CU_POINTER_ATTRIBUTE_HOST_POINTER:
    return host ? (*(const void **)out = p, 0) : CUDA_ERROR_INVALID_VALUE;
  case CU_POINTER_ATTRIBUTE_BUFFER_ID: return *(unsigned long long *)out = (uintptr_t)b.at, 0;
  case CU_POINTER_ATTRIBUTE_IS_MANAGED: return *(int *)out = 0, 0;
  case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
    return *(int *)out = b.kind == RIG_DEVICE && !b.foreign, 0;
  case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
    return *(unsigned long long *)out = b.physical ? CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR : 0,
                                0;
  case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR: return *(CUdeviceptr *)out = (uintptr_t)b.at, 0;
  case CU_POINTER_ATTRIBUTE_RANGE_SIZE: return *(size_t *)out = b.bytes, 0;
  default: return CUDA_ERROR_NOT_SUPPORTED;
  }
}

FN cuPointerGetAttribute(void *out, CUpointer_attribute attribute, CUdeviceptr p) {
  RIG_ENTER(CUresult);
  return (CUresult)rig_pointer(out, attribute, (void *)(uintptr_t)p);
}

FN cuPointerSetAttribute(const void *value, CUpointer_attribute attribute, CUdeviceptr p) {
  RIG_ENTER(CUresult);
  rig_block b;
  if (!value || !rig_find((void *)(uintptr_t)p, &b)) return CUDA_ERROR_INVALID_VALUE;
  /* copies of the rig are as ordered as this asks for */
  return attribute == CU_POINTER_ATTRIBUTE_SYNC_MEMOPS ? CUDA_SUCCESS : CUDA_ERROR_NOT_SUPPORTED;
}

FN cuMemGetAddressRange(CUdeviceptr *base, size_t *bytes, CUdeviceptr p) {
  RIG_ENTER(CUresult);
  rig_block b;
  if (!rig_find((void *)(uintptr_t)p, &b)) return CUDA_ERROR_NOT_FOUND;
  if (base) *base = (uintptr_t)b.at;
  if (bytes) *bytes = b.bytes;
  return CUDA_SUCCESS;
}

FN cuMemGetHandleForAddressRange(void *out, CUdeviceptr p, size_t bytes, CUmemRangeHandleType type,
                                 unsigned long long flags) {
  RIG_ENTER(CUresult);
  (void)out, (void)p, (void)bytes, (void)type, (void)flags;
  return CUDA_ERROR_NOT_SUPPORTED;
}

/* ----------------------------------------------------------------------- memory, streams */

FN cuMemAlloc(CUdeviceptr *p, size_t bytes) {
  RIG_ENTER(CUresult);
  void *at = NULL;
  int e = p && bytes ? rig_alloc(&at, bytes) : CUDA_ERROR_INVALID_VALUE;
  if (!e) *p = (uintptr_t)at;
  return (CUresult)e;
}

FN cuMemFree(CUdeviceptr p) {
  RIG_ENTER(CUresult);
  return (CUresult)rig_free((void *)(uintptr_t)p);
}

FN cuStreamWaitValue32(CUstream stream, CUdeviceptr at, cuuint32_t value, unsigned flags) {
  RIG_ENTER(CUresult);
  return (CUresult)rig_value(stream, at, value, flags, 32, false);
}

FN cuStreamWaitValue64(CUstream stream, CUdeviceptr at, cuuint64_t value, unsigned flags) {
  RIG_ENTER(CUresult);
  return (CUresult)rig_value(stream, at, value, flags, 64, false);
}

FN cuStreamWriteValue32(CUstream stream, CUdeviceptr at, cuuint32_t value, unsigned flags) {
  RIG_ENTER(CUresult);
  return (CUresult)rig_value(stream, at, value, flags, 32, true);
}

FN cuStreamWriteValue64(CUstream stream, CUdeviceptr at, cuuint64_t value, unsigned flags) {
  RIG_ENTER(CUresult);
  return (CUresult)rig_value(stream, at, value, flags, 64, true);
}

FN cuStreamBatchMemOp(CUstream stream, unsigned n, CUstreamBatchMemOpParams *ops, unsigned flags) {
  RIG_ENTER(CUresult);
  int e = flags || (n && !ops) ? CUDA_ERROR_INVALID_VALUE : 0;
  for (unsigned i = 0; i < n && !e; i++) {
    const CUstreamBatchMemOpParams *o = &ops[i];
    switch (o->operation) {
    case CU_STREAM_MEM_OP_WAIT_VALUE_32:
      e = rig_value(stream, o->waitValue.address, o->waitValue.value, o->waitValue.flags, 32,
                    false);
      break;
    case CU_STREAM_MEM_OP_WAIT_VALUE_64:
      e = rig_value(stream, o->waitValue.address, o->waitValue.value64, o->waitValue.flags, 64,
                    false);
      break;
    case CU_STREAM_MEM_OP_WRITE_VALUE_32:
      e = rig_value(stream, o->writeValue.address, o->writeValue.value, 0, 32, true);
      break;
    case CU_STREAM_MEM_OP_WRITE_VALUE_64:
      e = rig_value(stream, o->writeValue.address, o->writeValue.value64, 0, 64, true);
      break;
    default: e = CUDA_ERROR_NOT_SUPPORTED;
    }
  }
  return (CUresult)e;
}

static void nothing(void *arg) { (void)arg; }

FN cuLaunchKernel(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                  unsigned bz, unsigned shared, CUstream stream, void **params, void **extra) {
  RIG_ENTER(CUresult);
  (void)gx, (void)gy, (void)gz, (void)bx, (void)by, (void)bz, (void)shared, (void)params,
      (void)extra;
  if (!f) return CUDA_ERROR_INVALID_HANDLE;
  rig_launched(NULL);
  return (CUresult)rig_submit(stream, nothing, NULL, false);
}

FN cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction f, void **params, void **extra) {
  RIG_ENTER(CUresult);
  (void)params, (void)extra;
  if (!config || !f) return CUDA_ERROR_INVALID_VALUE;
  rig_launched(NULL);
  return (CUresult)rig_submit(config->hStream, nothing, NULL, false);
}

/* The newest version of a name that is here. */
void *rig_entry(const char *name) {
  Dl_info self;
  char versioned[128];
  if (!name || strncmp(name, "cu", 2) || !dladdr((void *)(uintptr_t)&rig_entry, &self)) return NULL;
  void *library = dlopen(self.dli_fname, RTLD_NOW | RTLD_NOLOAD), *at = NULL;
  for (int v = 4; v >= 1 && library && !at; v--) {
    snprintf(versioned, sizeof versioned, v > 1 ? "%s_v%d" : "%s", name, v);
    at = dlsym(library, versioned);
  }
  if (library) dlclose(library);
  return at;
}
