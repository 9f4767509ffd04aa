/* SPDX-License-Identifier: MIT
**
** maker.h - the names of the library that makes communicators: NCCL on CUDA; or RCCL on HIP, if the
** same files are compiled with MGRID_RCCL. RCCL has NCCL's names, and follows NCCL's versions and
** ncclConfig_t (ROCm/rccl, src/nccl.h.in). HIP has the functions of CUDA's runtime under other
** names, with the same arguments. The code uses CUDA's names.
*/
#ifndef MGRID_NCCL_MAKER_H
#define MGRID_NCCL_MAKER_H

#ifdef MGRID_RCCL
#include <hip/hip_runtime_api.h>
#include <hip/hip_version.h>
#include <rccl/rccl.h>

#define MAKER            "rccl"
#define MAKER_TITLE      "RCCL"
#define MAKER_ENTRY      MGRID_ENTRY(rccl)
#define MAKER_FILE       "librccl.so.1" /* rocm_set_soversion(rccl "1.0") */
#define MAKER_SETTINGS   "rccl.conf"    /* src/misc/param.cc */
#define GPU_TITLE        "HIP"
#define GPU_CALL(name)   "hip" name
#define GPU_FUNCTION(of) hip##of
#define GPU_FILE         "libamdhip64.so.%d"
#define GPU_MASK         "HIP_VISIBLE_DEVICES"
/* hipPointerAttribute_t has CUDA's fields since HIP 6. */
enum {
  GPU_NEWEST = HIP_VERSION_MAJOR,
  GPU_OLDEST = 6,
  GPU_MAJOR_UNIT = 10000000,
  GPU_MINOR_UNIT = 100000
};

#define cudaError_t                 hipError_t
#define cudaSuccess                 hipSuccess
#define cudaErrorNoDevice           hipErrorNoDevice
#define cudaErrorNotReady           hipErrorNotReady
#define cudaErrorInsufficientDriver hipErrorInsufficientDriver
#define cudaErrorStubLibrary        ((hipError_t)-1) /* HIP has no stub */
#define cudaStream_t                hipStream_t
#define cudaStreamNonBlocking       hipStreamNonBlocking
#define cudaEvent_t                 hipEvent_t
#define cudaEventDisableTiming      hipEventDisableTiming
#define cudaMemcpyDeviceToDevice    hipMemcpyDeviceToDevice
#define cudaMemcpyDeviceToHost      hipMemcpyDeviceToHost
#define cudaMemcpyHostToDevice      hipMemcpyHostToDevice
#define cudaMemoryTypeDevice        hipMemoryTypeDevice
#define cudaMemoryTypeManaged       hipMemoryTypeManaged
#define cudaPointerAttributes       hipPointerAttribute_t
#define cudaPitchedPtr              hipPitchedPtr
#define cudaMemcpy3DParms           hipMemcpy3DParms
#else
#include <cuda_runtime_api.h>
#include <nccl.h>

#define MAKER            "nccl"
#define MAKER_TITLE      "NCCL"
#define MAKER_ENTRY      MGRID_ENTRY(nccl)
#define MAKER_FILE       "libnccl.so.2"
#define MAKER_SETTINGS   "nccl.conf"
#define GPU_TITLE        "CUDA"
#define GPU_CALL(name)   "cuda" name
#define GPU_FUNCTION(of) cuda##of
#define GPU_FILE         "libcudart.so.%d"
#define GPU_MASK         "CUDA_VISIBLE_DEVICES"
enum {
  GPU_NEWEST = CUDART_VERSION / 1000,
  GPU_OLDEST = 11,
  GPU_MAJOR_UNIT = 1000,
  GPU_MINOR_UNIT = 10
};
#endif

/* Headers before 2.28.7 lack some of these names. The library that runs may be newer. */
#if NCCL_VERSION_CODE < 22703
typedef void *ncclWindow_t;
#define NCCL_WIN_COLL_SYMMETRIC 0x01
#define NCCL_SHRINK_ABORT       0x01
#endif
#if NCCL_VERSION_CODE < 22807
#define NCCL_REVOKE_DEFAULT 0x00
#endif

#endif
