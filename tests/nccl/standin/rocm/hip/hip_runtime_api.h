/* SPDX-License-Identifier: MIT
**
** hip_runtime_api.h - a stand-in for HIP's header, where no ROCm is: what our backend uses of it,
** as names of CUDA's, whose types, values and layouts it has in HIP 6.
*/
#ifndef STANDIN_HIP_RUNTIME_API_H
#define STANDIN_HIP_RUNTIME_API_H

#include <cuda_runtime_api.h>

typedef cudaError_t hipError_t;
typedef cudaStream_t hipStream_t;
typedef cudaEvent_t hipEvent_t;
enum {
  hipStreamNonBlocking = cudaStreamNonBlocking,
  hipEventDisableTiming = cudaEventDisableTiming
};
#undef cudaStreamNonBlocking /* macros of CUDA, which comm/nccl/maker.h makes names of HIP */
#undef cudaEventDisableTiming

#define hipSuccess                      cudaSuccess
#define hipErrorNoDevice                cudaErrorNoDevice
#define hipErrorNotReady                cudaErrorNotReady
#define hipErrorInsufficientDriver      cudaErrorInsufficientDriver
#define hipMemcpyDeviceToDevice         cudaMemcpyDeviceToDevice
#define hipMemcpyDeviceToHost           cudaMemcpyDeviceToHost
#define hipMemcpyHostToDevice           cudaMemcpyHostToDevice
#define hipMemoryTypeDevice             cudaMemoryTypeDevice
#define hipMemoryTypeManaged            cudaMemoryTypeManaged
#define hipPointerAttribute_t           cudaPointerAttributes
#define hipPitchedPtr                   cudaPitchedPtr
#define hipMemcpy3DParms                cudaMemcpy3DParms
#define hipRuntimeGetVersion            cudaRuntimeGetVersion
#define hipDriverGetVersion             cudaDriverGetVersion
#define hipGetDeviceCount               cudaGetDeviceCount
#define hipSetDevice                    cudaSetDevice
#define hipGetErrorName                 cudaGetErrorName
#define hipGetErrorString               cudaGetErrorString
#define hipDeviceGetPCIBusId            cudaDeviceGetPCIBusId
#define hipMalloc                       cudaMalloc
#define hipFree                         cudaFree
#define hipMemcpyAsync                  cudaMemcpyAsync
#define hipMemsetAsync                  cudaMemsetAsync
#define hipMemGetInfo                   cudaMemGetInfo
#define hipStreamCreateWithPriority     cudaStreamCreateWithPriority
#define hipDeviceGetStreamPriorityRange cudaDeviceGetStreamPriorityRange
#define hipDeviceSynchronize            cudaDeviceSynchronize
#define hipStreamSynchronize            cudaStreamSynchronize
#define hipStreamQuery                  cudaStreamQuery
#define hipStreamDestroy                cudaStreamDestroy
#define hipStreamWaitEvent              cudaStreamWaitEvent
#define hipEventCreateWithFlags         cudaEventCreateWithFlags
#define hipEventRecord                  cudaEventRecord
#define hipEventQuery                   cudaEventQuery
#define hipEventElapsedTime             cudaEventElapsedTime
#define hipEventDestroy                 cudaEventDestroy
#define hipLaunchHostFunc               cudaLaunchHostFunc
#define hipMemcpy2DAsync                cudaMemcpy2DAsync
#define hipMemcpy3DAsync                cudaMemcpy3DAsync
#define hipPointerGetAttributes         cudaPointerGetAttributes

#endif
