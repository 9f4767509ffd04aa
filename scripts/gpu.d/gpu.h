/* SPDX-License-Identifier: MIT
**
** gpu.h - the functions of NCCL and the CUDA runtime that the measuring program uses. Both libraries
** are opened at run time by the names that moongrid uses, so the program builds without them and uses the
** same copies. Types come from the headers, as for a linked call.
*/
#ifndef GPU_H
#define GPU_H

#include "bench.h"

#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <mpi.h>
#include <nccl.h>
#include <unistd.h>

/* clang-format off */
#define NCCL_CALLS(X) \
  X(GetVersion) \
  X(GetErrorString) X(GetUniqueId) X(CommInitRankConfig) X(CommSplit) X(CommCount) X(CommUserRank) \
      X(CommGetAsyncError) X(CommFinalize) X(CommDestroy) X(GroupStart) X(GroupEnd) X(AllReduce)
#define CUDA_CALLS(X) \
  X(RuntimeGetVersion) \
  X(DriverGetVersion) X(GetDeviceCount) X(GetErrorName) X(GetErrorString) X(SetDevice) X(DeviceGetPCIBusId) \
      X(DeviceGetAttribute) X(DeviceSynchronize) X(Malloc) X(Free) X(Memcpy) X(MemGetInfo) X(StreamCreateWithFlags) \
          X(StreamSynchronize) X(StreamDestroy)

static struct gpu {
#define X(name) __typeof__(nccl##name) *name;
  NCCL_CALLS(X)
#undef X
#define X(name) __typeof__(cuda##name) *cuda##name;
  CUDA_CALLS(X)
#undef X
  int rank, ranks; /* of the job; 0 of 0 before MPI */
  int devices, device;
} gpu;

/* If one rank fails end all, because the others would wait for it. */
__attribute__((noreturn, format(printf, 1, 2))) static inline void fail(const char *format, ...) {
  va_list args;
  va_start(args, format);
  fprintf(stderr, "measure: rank %d: ", gpu.rank);
  vfprintf(stderr, format, args);
  fputc('\n', stderr);
  va_end(args);
  if (gpu.ranks > 0) MPI_Abort(MPI_COMM_WORLD, 1);
  exit(1);
}

static inline void cuda_must(cudaError_t e, const char *call) {
  if (e != cudaSuccess) fail("%s: %s (%s)", call, gpu.cudaGetErrorName(e), gpu.cudaGetErrorString(e));
}

static inline void nccl_must(ncclResult_t r, const char *call) {
  if (r != ncclSuccess) fail("%s: %s", call, gpu.GetErrorString(r));
}

static inline void *gpu_library(const char *file) {
  void       *lib = dlopen(file, RTLD_NOW | RTLD_LOCAL);
  const char *why = lib ? NULL : dlerror();
  if (!lib) fail("%s: %s", file, why ? why : "unknown reason");
  return lib;
}

static inline void gpu_symbol(void *lib, const char *name, void *function) {
  void *found = dlsym(lib, name);
  if (!found) fail("there is no function %s", name);
  memcpy(function, &found, sizeof found); /* all function pointers are alike here */
}

static inline void gpu_open(void) {
  char  cudart[32];
  void *nccl = gpu_library("libnccl.so.2");
  snprintf(cudart, sizeof cudart, "libcudart.so.%d", CUDART_VERSION / 1000);
  void *cuda = gpu_library(cudart);
#define X(name) gpu_symbol(nccl, "nccl" #name, &gpu.name);
  NCCL_CALLS(X)
#undef X
#define X(name) gpu_symbol(cuda, "cuda" #name, &gpu.cuda##name);
  CUDA_CALLS(X)
#undef X
  cuda_must(gpu.cudaGetDeviceCount(&gpu.devices), "cudaGetDeviceCount");
  if (gpu.devices < 1) fail("no GPU");
}

/* Wait until the last call on a communicator has ended: on a non-blocking one it returns at once. */
static inline void settle(ncclComm_t comm, ncclResult_t r, const char *call) {
  for (double begun = now(); r == ncclInProgress; usleep(100)) {
    nccl_must(gpu.CommGetAsyncError(comm, &r), "ncclCommGetAsyncError");
    if (now() - begun > 120) fail("%s did not end within 120 seconds", call);
  }
  nccl_must(r, call);
}

/* A sum over a communicator whose members' ranks sum to `want`, every element looked at. Element i
** of a rank is that rank + i. `data` is on the GPU. */
static inline void sum_checked(ncclComm_t comm, cudaStream_t stream, int64_t *data, size_t count, int64_t size,
                               int64_t want, const char *what) {
  int64_t *host = malloc(count * sizeof *host);
  if (!host) fail("no memory");
  for (size_t i = 0; i < count; i++) host[i] = gpu.rank + (int64_t)i;
  cuda_must(gpu.cudaMemcpy(data, host, count * sizeof *host, cudaMemcpyHostToDevice), "cudaMemcpy");
  settle(comm, gpu.AllReduce(data, data, count, ncclInt64, ncclSum, comm, stream), "ncclAllReduce");
  cuda_must(gpu.cudaStreamSynchronize(stream), "cudaStreamSynchronize");
  cuda_must(gpu.cudaMemcpy(host, data, count * sizeof *host, cudaMemcpyDeviceToHost), "cudaMemcpy");
  for (size_t i = 0; i < count; i++)
    if (host[i] != want + size * (int64_t)i)
      fail("all-reduce over %s: element %zu is %lld, not %lld", what, i, (long long)host[i],
           (long long)(want + size * (int64_t)i));
  free(host);
}

#endif
