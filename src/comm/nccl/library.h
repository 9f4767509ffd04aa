/* SPDX-License-Identifier: MIT
**
** library.h - NCCL and the CUDA runtime, opened at run time: a table of their functions.
** Types come from the headers, so the compiler sees every call as it would a linked one.
*/
#ifndef MGRID_NCCL_LIBRARY_H
#define MGRID_NCCL_LIBRARY_H

#include "base/base.h"

#include <cuda_runtime_api.h>
#include <nccl.h>

/* All are needed but NCCL_OPTIONAL_FUNCTIONS, NULL if the library is older than CommInitRankScalable (2.23.4),
** CommShrink (2.27.3) or CommRevoke (2.28.7). */
/* clang-format off */
#define NCCL_FUNCTIONS(X) \
  X(GetVersion) X(GetUniqueId) X(GetErrorString) X(CommInitRankConfig) X(CommCount) X(CommUserRank) X(CommCuDevice) \
  X(CommGetAsyncError) X(CommFinalize) X(CommDestroy) X(CommAbort) X(CommSplit) X(GroupStart) X(GroupEnd) \
  X(AllReduce) X(Broadcast) X(AllGather) X(ReduceScatter) X(Send) X(Recv)
#define NCCL_OPTIONAL_FUNCTIONS(X) X(GetLastError) X(CommInitRankScalable) X(CommShrink) X(CommRevoke)
#define CUDA_FUNCTIONS(X) \
  X(RuntimeGetVersion) X(DriverGetVersion) X(GetDeviceCount) X(SetDevice) X(GetErrorName) X(GetErrorString) \
  X(DeviceGetPCIBusId) X(Malloc) X(Free) X(MemcpyAsync) X(MemsetAsync) X(MemGetInfo) X(StreamCreateWithPriority) \
  X(DeviceGetStreamPriorityRange) X(DeviceSynchronize) X(StreamSynchronize) X(StreamQuery) X(StreamDestroy)
/* clang-format on */

typedef struct nccl_library {
#define X(name) __typeof__(nccl##name) *name;
  NCCL_FUNCTIONS(X)
  NCCL_OPTIONAL_FUNCTIONS(X)
#undef X
#define X(name) __typeof__(cuda##name) *cuda##name;
  CUDA_FUNCTIONS(X)
#undef X
  int  version;                  /* of the NCCL that runs: 22809 */
  int  runtime, driver, devices; /* versions of CUDA: 13000; GPUs that this process sees */
  char machine[64];              /* its host name, for messages */
} nccl_library;

enum { NCCL_GROUPS_ABORTS = 22200 }; /* from this version on a group may hold aborts */

/* Open both libraries, the CUDA runtime that the process has already or the newest for which the driver is new
** enough, and check their versions, the driver (which may be a stub) and the GPUs, without a call
** of NCCL that needs a GPU. MGRID_MISSING names the first thing that is missing. */
mgrid_status mgrid_nccl_open(nccl_library *lib, mgrid_error *err);
/* "2.28.9" */
const char *mgrid_nccl_library_text(int version, char text[24]);

#endif
