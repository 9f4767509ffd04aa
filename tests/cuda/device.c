/* SPDX-License-Identifier: MIT
**
** device.c - what devices are: their buses and their attributes.
*/
#include "rig.h"

#include <stdio.h>
#include <strings.h>

int rig_bus_id(char *id, int room, int device) {
  if (rig_physical(device) < 0) return CUDA_ERROR_INVALID_DEVICE;
  if (!id || room < 13) return CUDA_ERROR_INVALID_VALUE;
  snprintf(id, (size_t)room, "0000:%02x:00.0", (unsigned)rig_bus(rig_physical(device)));
  return 0;
}

int rig_by_bus_id(int *device, const char *id) {
  char own[32];
  for (int d = 0; device && id && d < rig_devices(); d++)
    if (!rig_bus_id(own, sizeof own, d) && !strcasecmp(own, id)) return *device = d, 0;
  return CUDA_ERROR_INVALID_VALUE;
}

/* Those of an H100 that code about communicators asks for. */
static const struct {
  int attribute, value;
} attributes[] = {
  { CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 132 },
  { CU_DEVICE_ATTRIBUTE_WARP_SIZE, 32 },
  { CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 1024 },
  { CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK, 49152 },
  { CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, 232448 },
  { CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID, 0 },
  { CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID, 0 },
  { CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING, 1 },
  { CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY, 1 },
  { CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM, 1 },
  { CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, 1 },
  { CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED, 1 },
  { CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED, 1 },
  { CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS, 1 },
  { CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH, 1 },
  { CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT, 3 },
  { CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID, 0 },
  { CU_DEVICE_ATTRIBUTE_COMPUTE_MODE, CU_COMPUTEMODE_DEFAULT },
  /* what the rig has not */
  { CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_FABRIC_SUPPORTED, 0 },
  { CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED, 0 },
  { CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_SUPPORTED, 0 },
  { CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED, 0 },
  { CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_FLUSH_WRITES_OPTIONS, 0 },
  { CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WRITES_ORDERING, 0 },
  { CU_DEVICE_ATTRIBUTE_CAN_FLUSH_REMOTE_WRITES, 0 },
  { CU_DEVICE_ATTRIBUTE_INTEGRATED, 0 },
};

int rig_attribute(int *value, int attribute, int device) {
  int physical = rig_physical(device), capability = rig_the_machine()->capability;
  if (physical < 0) return CUDA_ERROR_INVALID_DEVICE;
  if (!value) return CUDA_ERROR_INVALID_VALUE;
  switch (attribute) {
  case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR: return *value = capability / 10, 0;
  case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR: return *value = capability % 10, 0;
  case CU_DEVICE_ATTRIBUTE_MULTICAST_SUPPORTED: return *value = rig_the_machine()->multicast, 0;
  case CU_DEVICE_ATTRIBUTE_PCI_BUS_ID: return *value = rig_bus(physical), 0;
  default: break;
  }
  for (size_t i = 0; i < sizeof attributes / sizeof *attributes; i++)
    if (attributes[i].attribute == attribute) return *value = attributes[i].value, 0;
  char line[64];
  snprintf(line, sizeof line, "no attribute %d of a device", attribute);
  rig_note(line);
  return CUDA_ERROR_NOT_SUPPORTED;
}
