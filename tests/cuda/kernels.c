/* SPDX-License-Identifier: MIT
**
** kernels.c - what a compiler's host code registers, and launches. A launch is counted and takes
** its place on the stream; the kernel does not run.
*/
#include "rig.h"

#include <cuda_runtime_api.h>
#include <pthread.h>
#include <stdlib.h>

typedef struct kernel {
  struct kernel *next;
  const void *symbol;
  const char *name;
} kernel;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static kernel *kernels;

/* What nvcc's code calls; no header of C declares these. */
RIG_API void **__cudaRegisterFatBinary(void *binary);
RIG_API void __cudaRegisterFatBinaryEnd(void **handle);
RIG_API void __cudaUnregisterFatBinary(void **handle);
RIG_API char __cudaInitModule(void **handle);
RIG_API void __cudaRegisterVar(void **handle, char *host, char *device, const char *name, int ext,
                               size_t size, int constant, int global);
RIG_API void __cudaRegisterFunction(void **handle, const char *host, char *device, const char *name,
                                    int limit, void *tid, void *bid, void *bdim, void *gdim,
                                    int *warp);
RIG_API unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared, void *stream);
RIG_API cudaError_t __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared,
                                               void *stream);
RIG_API cudaError_t __cudaGetKernel(cudaKernel_t *out, const void *symbol);
RIG_API cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void **args,
                                       size_t shared, cudaStream_t stream);

static const kernel *look(const void *symbol) {
  pthread_mutex_lock(&lock);
  const kernel *k = kernels;
  while (k && k->symbol != symbol) k = k->next;
  pthread_mutex_unlock(&lock);
  return k;
}

void **__cudaRegisterFatBinary(void *binary) {
  static void *handle;
  (void)binary;
  return &handle;
}

void __cudaRegisterFatBinaryEnd(void **handle) { (void)handle; }
void __cudaUnregisterFatBinary(void **handle) { (void)handle; }

char __cudaInitModule(void **handle) {
  (void)handle;
  return 1;
}

void __cudaRegisterVar(void **handle, char *host, char *device, const char *name, int ext,
                       size_t size, int constant, int global) {
  (void)handle, (void)host, (void)device, (void)name, (void)ext, (void)size, (void)constant,
      (void)global;
}

void __cudaRegisterFunction(void **handle, const char *host, char *device, const char *name,
                            int limit, void *tid, void *bid, void *bdim, void *gdim, int *warp) {
  (void)handle, (void)device, (void)limit, (void)tid, (void)bid, (void)bdim, (void)gdim, (void)warp;
  kernel *k = malloc(sizeof *k);
  if (!k) return;
  *k = (kernel){ NULL, host, name };
  pthread_mutex_lock(&lock);
  k->next = kernels;
  kernels = k;
  pthread_mutex_unlock(&lock);
}

static _Thread_local struct {
  dim3 grid, block;
  size_t shared;
  void *stream;
} pushed;

unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared, void *stream) {
  pushed.grid = grid, pushed.block = block, pushed.shared = shared, pushed.stream = stream;
  return 0;
}

cudaError_t __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared, void *stream) {
  *grid = pushed.grid, *block = pushed.block, *shared = pushed.shared;
  *(void **)stream = pushed.stream;
  return cudaSuccess;
}

cudaError_t __cudaGetKernel(cudaKernel_t *out, const void *symbol) {
  *out = (cudaKernel_t)(uintptr_t)symbol;
  return look(symbol) ? cudaSuccess : cudaErrorInvalidDeviceFunction;
}

static void nothing(void *arg) { (void)arg; }

static cudaError_t launch(const void *symbol, cudaStream_t stream) {
  const kernel *k = look(symbol);
  if (!k) return cudaErrorInvalidDeviceFunction;
  rig_launched(k->name);
  return (cudaError_t)rig_submit(stream, nothing, NULL, false);
}

cudaError_t __cudaLaunchKernel(cudaKernel_t k, dim3 grid, dim3 block, void **args, size_t shared,
                               cudaStream_t stream) {
  RIG_ENTER(cudaError_t);
  (void)grid, (void)block, (void)args, (void)shared;
  return launch((const void *)(uintptr_t)k, stream);
}

RIG_API cudaError_t cudaLaunchKernel(const void *symbol, dim3 grid, dim3 block, void **args,
                                     size_t shared, cudaStream_t stream) {
  RIG_ENTER(cudaError_t);
  (void)grid, (void)block, (void)args, (void)shared;
  return launch(symbol, stream);
}

/* Of a kernel of NCCL: registers and threads as its own, no stack. */
RIG_API cudaError_t cudaFuncGetAttributes(struct cudaFuncAttributes *a, const void *symbol) {
  RIG_ENTER(cudaError_t);
  if (!a) return cudaErrorInvalidValue;
  if (!look(symbol)) return cudaErrorInvalidDeviceFunction;
  *a = (struct cudaFuncAttributes){ .maxThreadsPerBlock = 1024, .numRegs = 96 };
  a->binaryVersion = a->ptxVersion = rig_the_machine()->capability;
  return cudaSuccess;
}

RIG_API cudaError_t cudaFuncSetAttribute(const void *symbol, enum cudaFuncAttribute attribute,
                                         int value) {
  RIG_ENTER(cudaError_t);
  (void)value;
  if (!look(symbol)) return cudaErrorInvalidDeviceFunction;
  bool known = attribute == cudaFuncAttributeMaxDynamicSharedMemorySize
               || attribute == cudaFuncAttributePreferredSharedMemoryCarveout;
  return known ? cudaSuccess : cudaErrorNotSupported;
}

RIG_API cudaError_t cudaGetFuncBySymbol(cudaFunction_t *function, const void *symbol) {
  RIG_ENTER(cudaError_t);
  if (!function) return cudaErrorInvalidValue;
  *function = (cudaFunction_t)(uintptr_t)symbol;
  return look(symbol) ? cudaSuccess : cudaErrorInvalidDeviceFunction;
}
