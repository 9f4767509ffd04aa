/* SPDX-License-Identifier: MIT
**
** library.h - a table of the functions of NCCL and the CUDA runtime, or of RCCL and HIP (maker.h).
** The libraries are opened at run time. The types of the functions come from the headers, so the
** compiler checks every call as if the libraries were linked.
*/
#ifndef MGRID_NCCL_LIBRARY_H
#define MGRID_NCCL_LIBRARY_H

#include "base/base.h"
#include "comm/nccl/maker.h"

/* All of NCCL_FUNCTIONS and CUDA_FUNCTIONS are needed. Other functions are NULL if the library
** lacks them. */
/* clang-format off */
#define NCCL_FUNCTIONS(X) \
  X(GetVersion) X(GetUniqueId) X(GetErrorString) X(CommInitRankConfig) X(CommCount) X(CommUserRank) X(CommCuDevice) \
  X(CommGetAsyncError) X(CommFinalize) X(CommDestroy) X(CommAbort) X(CommSplit) X(GroupStart) X(GroupEnd) \
  X(AllReduce) X(Broadcast) X(Reduce) X(AllGather) X(ReduceScatter) X(Send) X(Recv)
#define NCCL_OPTIONAL_FUNCTIONS(X) X(GetLastError)
/* Functions that some headers lack, or declare only for C++; so their types are written here.
** X(name, the first version of NCCL that has it, parameters). In an older NCCL the function is not
** used. Version 0: use the function wherever it is found. */
#define NCCL_NEWER_FUNCTIONS(X) \
  X(CommInitRankScalable, 0, (ncclComm_t *, int, int, int, ncclUniqueId *, ncclConfig_t *)) \
  X(CommShrink, 0, (ncclComm_t, int *, int, ncclComm_t *, ncclConfig_t *, int)) \
  X(CommRevoke, 0, (ncclComm_t, int)) \
  X(MemAlloc, 21900, (void **, size_t)) X(MemFree, 21900, (void *)) \
  X(CommWindowRegister, 22703, (ncclComm_t, void *, size_t, ncclWindow_t *, int)) \
  X(CommWindowDeregister, 22703, (ncclComm_t, ncclWindow_t)) \
  X(DevCommCreate, 22807, (ncclComm_t, const void *, void *)) X(DevCommDestroy, 22807, (ncclComm_t, const void *)) \
  X(CommGetUniqueId, 22902, (ncclComm_t, ncclUniqueId *)) \
  X(CommGrow, 22902, (ncclComm_t, int, const ncclUniqueId *, int, ncclComm_t *, ncclConfig_t *)) \
  X(CommSuspend, 22907, (ncclComm_t, int)) X(CommResume, 22907, (ncclComm_t)) \
  X(CommMemStats, 22907, (ncclComm_t, int, uint64_t *))
#define CUDA_FUNCTIONS(X) \
  X(RuntimeGetVersion) X(DriverGetVersion) X(GetDeviceCount) X(SetDevice) X(GetErrorName) X(GetErrorString) \
  X(DeviceGetPCIBusId) X(Malloc) X(Free) X(MemcpyAsync) X(MemsetAsync) X(MemGetInfo) X(StreamCreateWithPriority) \
  X(DeviceGetStreamPriorityRange) X(DeviceSynchronize) X(StreamSynchronize) X(StreamQuery) X(StreamDestroy) \
  X(StreamWaitEvent) X(EventCreateWithFlags) X(EventRecord) X(EventQuery) X(EventElapsedTime) X(EventDestroy) \
  X(LaunchHostFunc) X(Memcpy2DAsync) X(Memcpy3DAsync) X(PointerGetAttributes)
/* clang-format on */

typedef struct nccl_library {
#define X(name) __typeof__(nccl##name) *name;
  NCCL_FUNCTIONS(X)
  NCCL_OPTIONAL_FUNCTIONS(X)
#undef X
#define X(name, since, parameters) ncclResult_t(*name) parameters;
  NCCL_NEWER_FUNCTIONS(X)
#undef X
#define X(name) __typeof__(GPU_FUNCTION(name)) *cuda##name;
  CUDA_FUNCTIONS(X)
#undef X
  int version; /* of the NCCL that runs, such as 22809 */
  /* versions of CUDA or HIP (GPU_MAJOR); how many GPUs this process sees */
  int runtime, driver, devices;
  char node[64]; /* the name of this node, for messages */
} nccl_library;

/* Return the parts of a version: 13 and 0 for 13000 of CUDA. */
#define GPU_MAJOR(version) ((version) / GPU_MAJOR_UNIT)
#define GPU_MINOR(version) ((version) % GPU_MAJOR_UNIT / GPU_MINOR_UNIT)

enum { NCCL_GROUPS_ABORTS = 22200 }; /* since this version a group may hold aborts */

/* The first NCCL that has a function of NCCL_NEWER_FUNCTIONS. */
enum {
#define X(name, since, parameters) NCCL_SINCE_##name = since,
  NCCL_NEWER_FUNCTIONS(X)
#undef X
};

/* Open both libraries: NCCL, and the CUDA runtime that the process has loaded, or else the newest
** that the driver supports. Check their versions, the driver (which may be a stub) and the GPUs,
** without a call of NCCL that needs a GPU. MGRID_MISSING names the first thing that is missing. */
mgrid_status mgrid_nccl_open(nccl_library *lib, mgrid_error *err);
/* If the function was not `found`, return MGRID_UNSUPPORTED. The error says that `what` needs the
** function, and that it came with version `since`, if this is an older one. */
mgrid_status mgrid_nccl_has(const nccl_library *lib, bool found, const char *function, int since,
                            const char *what, mgrid_error *err);
#define MGRID_NCCL_HAS(lib, name, what, err) \
  mgrid_nccl_has(lib, (lib)->name != NULL, "nccl" #name, NCCL_SINCE_##name, what, err)
/* Write a version as "2.28.9", and return text. */
const char *mgrid_nccl_library_text(int version, char text[24]);

#endif
