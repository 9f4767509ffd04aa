/* SPDX-License-Identifier: MIT
**
** moongrid_nccl.h - the few functions of moongrid that speak of NCCL, or of RCCL. They need the headers of
** NCCL and of the CUDA runtime, or of RCCL and HIP, and no library: moongrid opens both at run time, and calls the
** copies that are loaded.
*/
#ifndef MOONGRID_NCCL_H
#define MOONGRID_NCCL_H

#include "moongrid.h"

#ifdef __HIP_PLATFORM_AMD__ /* a program of ROCm: RCCL has NCCL's names, HIP a stream of its own */
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

/* What mgrid_group_native points to where mgrid_group_native_kind is MGRID_NATIVE_NCCL. */
typedef struct mgrid_nccl_pair {
  ncclComm_t       comm;
  mgrid_gpu_stream stream;
} mgrid_nccl_pair;

/* The communicator of a group, ranks in group order. Borrowed: never destroy it; it may be shared
** by families of equal members, and ends with the last state that uses it. It blocks, as those of
** ncclCommInitRank do, unless the backend's options or its family say blocking = 0: then a call may return
** ncclInProgress, and is looked at with ncclCommGetAsyncError. NULL for a group of one rank,
** a rank that is in no group (g NULL), a lazy family not created yet, a dry state, and a group
** whose communicator is MPI's. */
static inline ncclComm_t mgrid_nccl_comm(const mgrid_group *g) {
  void *native = g && mgrid_group_native_kind(g) == MGRID_NATIVE_NCCL ? mgrid_group_native(g) : NULL;
  return native ? ((mgrid_nccl_pair *)native)->comm : NULL;
}

/* A stream of its own for the calls of this communicator, of high priority where the family says
** so. Borrowed. NULL where there is no communicator. */
static inline mgrid_gpu_stream mgrid_nccl_stream(const mgrid_group *g) {
  void *native = g && mgrid_group_native_kind(g) == MGRID_NATIVE_NCCL ? mgrid_group_native(g) : NULL;
  return native ? ((mgrid_nccl_pair *)native)->stream : NULL;
}

/* The window of that name (mgrid_group_window), and its memory in *buffer, which may be NULL. NULL where there is none. */
static inline ncclWindow_t mgrid_nccl_window_of(const mgrid_group *g, const char *name, void **buffer,
                                                mgrid_error *err) {
  mgrid_nccl_window w = MGRID_NCCL_WINDOW_INIT;
  mgrid_group_window(g, name, &w, err);
  if (buffer) *buffer = w.buffer;
  return (ncclWindow_t)w.handle;
}

/* The device communicator (mgrid_group_device), for kernels of this program. NULL where there is none, and where the
** NCCL that runs has another ncclDevComm than the headers that this program is built with. */
struct ncclDevComm;
static inline const struct ncclDevComm *mgrid_nccl_device(const mgrid_group *g) {
  int         version = 0;
  const void *device = mgrid_group_device(g, &version);
  return version / 100 == NCCL_VERSION_CODE / 100 ? (const struct ncclDevComm *)device : NULL;
}

#ifdef __cplusplus
}
#endif
#endif
