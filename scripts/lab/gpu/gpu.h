/* SPDX-License-Identifier: MIT
**
** gpu.h - the functions of NCCL and the CUDA runtime that the programs of gpu-test use. Both
** libraries are opened at run time by the names that moongrid uses, so the programs build without
** them and use the same copies. Types come from the headers, as for a linked call.
*/
#ifndef GPU_H
#define GPU_H

#include "bench.h"

#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <nccl.h>
#include <stdbool.h>
#include <unistd.h>

/* clang-format off */
#define NCCL_CALLS(X) \
  X(GetVersion) \
  X(GetErrorString) X(GetUniqueId) X(CommInitRankConfig) X(CommSplit) X(CommCount) X(CommUserRank) X(CommCuDevice) \
      X(CommGetAsyncError) X(CommFinalize) X(CommDestroy) X(CommAbort) X(GroupStart) X(GroupEnd) X(AllReduce) \
          X(Broadcast) X(Reduce) X(AllGather) X(ReduceScatter) X(Send) X(Recv)
/* newer than 2.18: NULL if the library lacks it */
#define NCCL_NEWER(X) X(CommInitRankScalable) X(CommRevoke) X(MemAlloc) X(MemFree)
#define CUDA_CALLS(X) \
  X(RuntimeGetVersion) \
  X(DriverGetVersion) X(GetDeviceCount) X(GetErrorName) X(GetErrorString) X(SetDevice) X(DeviceGetPCIBusId) \
      X(DeviceGetAttribute) X(DeviceSynchronize) X(Malloc) X(Free) X(Memcpy) X(Memset) X(MemGetInfo) X(StreamCreateWithFlags) \
          X(StreamSynchronize) X(StreamQuery) X(StreamDestroy)

static struct gpu {
#define X(name) __typeof__(nccl##name) *name;
  NCCL_CALLS(X)
  NCCL_NEWER(X)
#undef X
#define X(name) __typeof__(cuda##name) *cuda##name;
  CUDA_CALLS(X)
#undef X
  int rank, ranks; /* of the job; 0 of 0 before a program has a job */
  int devices, device;
  void (*end_all)(void); /* a rank that fails calls it: the other ranks would wait for it */
} gpu;

__attribute__((noreturn, format(printf, 1, 2))) static inline void fail(const char *format, ...) {
  va_list args;
  va_start(args, format);
  fprintf(stderr, "rank %d: ", gpu.rank);
  vfprintf(stderr, format, args);
  fputc('\n', stderr);
  va_end(args);
  fflush(NULL);
  if (gpu.end_all) gpu.end_all();
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
#define X(name) \
  if (dlsym(nccl, "nccl" #name)) gpu_symbol(nccl, "nccl" #name, &gpu.name);
  NCCL_NEWER(X)
#undef X
#define X(name) gpu_symbol(cuda, "cuda" #name, &gpu.cuda##name);
  CUDA_CALLS(X)
#undef X
  cuda_must(gpu.cudaGetDeviceCount(&gpu.devices), "cudaGetDeviceCount");
  if (gpu.devices < 1) fail("no GPU");
}

/* Several ranks on one GPU have to look like different machines to NCCL, which reads NCCL_HOSTID
** once: before the first call. NCCL 2.30.3 has a switch of its own for it. */
static inline void choose_device(int local) {
  char id[32];
  gpu.device = local % gpu.devices;
  snprintf(id, sizeof id, "moongrid-%d", gpu.rank);
  if (gpu.devices < gpu.ranks && !getenv("NCCL_MULTI_RANK_GPU_ENABLE")) setenv("NCCL_HOSTID", id, 0);
  cuda_must(gpu.cudaSetDevice(gpu.device), "cudaSetDevice");
}

/* Print one number for the record; flush it, since the next call may hang. */
__attribute__((format(printf, 2, 3))) static inline void tell(double value, const char *key, ...) {
  va_list args;
  if (gpu.rank != 0) return;
  va_start(args, key);
  vprintf(key, args);
  va_end(args);
  printf("\t%.1f\n", value);
  fflush(stdout);
}

/* Wait until the last call on a communicator has ended: on a non-blocking one it returns at
** once. */
static inline void settle(ncclComm_t comm, ncclResult_t r, const char *call) {
  for (double begun = now(); r == ncclInProgress; usleep(100)) {
    nccl_must(gpu.CommGetAsyncError(comm, &r), "ncclCommGetAsyncError");
    if (now() - begun > 120) fail("%s did not end within 120 seconds", call);
  }
  nccl_must(r, call);
}

/* Likewise for a call that makes a communicator, whose handle may be written after the call. */
static inline void settle_new(ncclComm_t *comm, ncclResult_t r, const char *call) {
  for (double begun = now(); r == ncclInProgress && !*comm; usleep(100))
    if (now() - begun > 120) fail("%s gave no communicator within 120 seconds", call);
  settle(*comm, r, call);
}

/* Check a group of calls, or an abort, which may go on after the call if it does not block. */
static inline void nccl_begun(ncclResult_t r, const char *call) {
  if (r != ncclInProgress) nccl_must(r, call);
}

/* A stream, and numbers on the GPU for it. */
enum { LANE = 65536 };
typedef struct lane {
  cudaStream_t stream;
  int64_t     *data; /* [LANE] */
} lane;

static inline lane lane_open(void) {
  lane l = { NULL, NULL };
  cuda_must(gpu.cudaStreamCreateWithFlags(&l.stream, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
  cuda_must(gpu.cudaMalloc((void **)&l.data, LANE * sizeof *l.data), "cudaMalloc");
  return l;
}

static inline void lane_close(lane l) {
  cuda_must(gpu.cudaStreamDestroy(l.stream), "cudaStreamDestroy");
  cuda_must(gpu.cudaFree(l.data), "cudaFree");
}

static inline double ms_since(double begun) { return 1e3 * (now() - begun); }

/* Make a sum over a communicator and check every element. `want`: the sum of the members' ranks.
** Element i of a rank is that rank + i. `data` is on the GPU. */
static inline void sum_checked(ncclComm_t comm, cudaStream_t stream, int64_t *data, size_t count, int64_t size,
                               int64_t want, const char *what) {
  int64_t *host = malloc(count * sizeof *host);
  if (!host) fail("no memory");
  for (size_t i = 0; i < count; i++) host[i] = gpu.rank + (int64_t)i;
  cuda_must(gpu.cudaMemcpy(data, host, count * sizeof *host, cudaMemcpyHostToDevice), "cudaMemcpy");
  /* the copy may still be on its way */
  cuda_must(gpu.cudaStreamSynchronize(NULL), "cudaStreamSynchronize");
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
