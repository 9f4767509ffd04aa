/* SPDX-License-Identifier: MIT
**
** moongrid_nccl.h - the few functions of moongrid with types of NCCL or RCCL. A program that
** includes this header needs the headers of NCCL and of the CUDA runtime, or of RCCL and HIP, but
** links neither: moongrid opens the libraries at run time, and uses copies that are already loaded.
*/
#ifndef MOONGRID_NCCL_H
#define MOONGRID_NCCL_H

#include "moongrid.h"

#ifdef __HIP_PLATFORM_AMD__ /* ROCm: RCCL has NCCL's names, HIP has its own type of streams */
#include <hip/hip_runtime_api.h>
#include <rccl/rccl.h>
typedef hipStream_t mgrid_gpu_stream;
#if NCCL_VERSION_CODE < 22703
typedef void *ncclWindow_t;
#endif
#else
#include <cuda_runtime_api.h>
#include <nccl.h>
typedef cudaStream_t mgrid_gpu_stream;
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* What mgrid_group_native points to if mgrid_group_native_kind is MGRID_NATIVE_NCCL. */
typedef struct mgrid_nccl_pair {
  ncclComm_t comm;
  mgrid_gpu_stream stream;
} mgrid_nccl_pair;

/* Return the communicator of a group, ranks in group order. Borrowed: never destroy it; families
** with equal members may share it, and it ends with the last state that uses it. Its calls block,
** as with ncclCommInitRank. If the backend is `nonblocking` or the family has blocking = 0, a call
** may return ncclInProgress, and ncclCommGetAsyncError tells when the call is done. NULL for a
** group of one rank, if the rank is in no group (g NULL), for a lazy family that is not created
** yet, in a dry state, and for a group whose communicator is MPI's. */
MGRID_INLINE ncclComm_t mgrid_nccl_comm(const mgrid_group *g) {
  void *native = g && mgrid_group_native_kind(g) == MGRID_NATIVE_NCCL ? mgrid_group_native(g)
                                                                      : NULL;
  return native ? ((mgrid_nccl_pair *)native)->comm : NULL;
}

/* Return the communicator's own stream for its calls, of high priority if the family has that
** option. Borrowed. NULL without a communicator. */
MGRID_INLINE mgrid_gpu_stream mgrid_nccl_stream(const mgrid_group *g) {
  void *native = g && mgrid_group_native_kind(g) == MGRID_NATIVE_NCCL ? mgrid_group_native(g)
                                                                      : NULL;
  return native ? ((mgrid_nccl_pair *)native)->stream : NULL;
}

/* Return the window of that name (mgrid_group_window), with its memory in *buffer (may be NULL);
** NULL if there is none. */
MGRID_INLINE ncclWindow_t mgrid_nccl_window_of(const mgrid_group *g, const char *name,
                                               void **buffer, mgrid_error *err) {
  mgrid_nccl_window w = MGRID_NCCL_WINDOW_INIT;
  mgrid_group_window(g, name, &w, err);
  if (buffer) *buffer = w.buffer;
  return (ncclWindow_t)w.handle;
}

/* Return the device communicator (mgrid_group_device) for kernels of this program; NULL if there is
** none, or if the NCCL that runs has another ncclDevComm than the headers of this program. */
struct ncclDevComm;
MGRID_INLINE const struct ncclDevComm *mgrid_nccl_device(const mgrid_group *g) {
  int version = 0;
  const void *device = mgrid_group_device(g, &version);
  return version / 100 == NCCL_VERSION_CODE / 100 ? (const struct ncclDevComm *)device : NULL;
}

#ifdef __cplusplus
}
#endif
#endif
