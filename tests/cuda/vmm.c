/* SPDX-License-Identifier: MIT
**
** vmm.c - cuMem: reserved addresses, handles of memory that are files, mappings and who may reach
** them. As in CUDA, memory that is mapped cannot be used before cuMemSetAccess.
*/
#include "vmm.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct range {
  struct range *next;
  uintptr_t at;
  size_t bytes;
} range;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static rig_physical_memory *handles;
static range *ranges;

static bool on_device(const rig_physical_memory *h) {
  return h->prop.location.type == CU_MEM_LOCATION_TYPE_DEVICE;
}

static void count(const rig_physical_memory *h, int sign) {
  if (!h->imported)
    rig_take(on_device(h) ? RIG_CUMEM : RIG_HOST, on_device(h) ? h->prop.location.id : 0,
             sign * (long long)h->bytes);
}

rig_physical_memory *rig_hold(CUmemGenericAllocationHandle handle) {
  pthread_mutex_lock(&lock);
  rig_physical_memory *h = handles;
  while (h && (uintptr_t)h != handle) h = h->next;
  if (h) h->refs++;
  pthread_mutex_unlock(&lock);
  return h;
}

void rig_drop(rig_physical_memory *h) {
  pthread_mutex_lock(&lock);
  bool last = --h->refs == 0;
  if (last)
    for (rig_physical_memory **at = &handles; *at; at = &(*at)->next)
      if (*at == h) {
        *at = h->next;
        break;
      }
  pthread_mutex_unlock(&lock);
  if (!last) return;
  if (h->multicast) rig_multicast_end(h->multicast);
  close(h->file);
  count(h, -1);
  free(h);
}

bool rig_new_handle(CUmemGenericAllocationHandle *out, int file, size_t bytes, bool imported,
                    const CUmemAllocationProp *prop, rig_multicast *multicast) {
  rig_physical_memory *h = malloc(sizeof *h);
  if (!h) return false;
  *h = (rig_physical_memory){ NULL, multicast, file, 1, bytes, imported, *prop };
  pthread_mutex_lock(&lock);
  h->next = handles;
  handles = h;
  pthread_mutex_unlock(&lock);
  *out = (uintptr_t)h;
  return true;
}

static bool modelled(const CUmemAllocationProp *prop) {
  CUmemLocationType t = prop->location.type;
  bool host = t == CU_MEM_LOCATION_TYPE_HOST || t == CU_MEM_LOCATION_TYPE_HOST_NUMA
              || t == CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT;
  return prop->type == CU_MEM_ALLOCATION_TYPE_PINNED
         && (host || (t == CU_MEM_LOCATION_TYPE_DEVICE && rig_physical(prop->location.id) >= 0))
         && !(prop->requestedHandleTypes & ~(unsigned)CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
}

RIG_API CUresult cuMemGetAllocationGranularity(size_t *granule, const CUmemAllocationProp *prop,
                                               CUmemAllocationGranularity_flags option) {
  RIG_ENTER(CUresult);
  (void)option;
  if (!granule || !prop) return CUDA_ERROR_INVALID_VALUE;
  if (!modelled(prop)) return CUDA_ERROR_NOT_SUPPORTED;
  *granule = RIG_GRANULE;
  return CUDA_SUCCESS;
}

RIG_API CUresult cuMemCreate(CUmemGenericAllocationHandle *out, size_t bytes,
                             const CUmemAllocationProp *prop, unsigned long long flags) {
  RIG_ENTER(CUresult);
  if (!out || !prop || flags || !bytes || bytes % RIG_GRANULE) return CUDA_ERROR_INVALID_VALUE;
  if (!modelled(prop)) return CUDA_ERROR_NOT_SUPPORTED;
  bool device = prop->location.type == CU_MEM_LOCATION_TYPE_DEVICE;
  int where = device ? prop->location.id : 0, file = -1;
  if (!rig_take(device ? RIG_CUMEM : RIG_HOST, where, (long long)bytes))
    return CUDA_ERROR_OUT_OF_MEMORY;
  file = memfd_create("cudarig-cumem", MFD_CLOEXEC);
  if (file >= 0 && !ftruncate(file, (off_t)bytes)
      && rig_new_handle(out, file, bytes, false, prop, NULL))
    return CUDA_SUCCESS;
  if (file >= 0) close(file);
  rig_take(device ? RIG_CUMEM : RIG_HOST, where, -(long long)bytes);
  return CUDA_ERROR_OUT_OF_MEMORY;
}

RIG_API CUresult cuMemRelease(CUmemGenericAllocationHandle handle) {
  RIG_ENTER(CUresult);
  rig_physical_memory *h = rig_hold(handle);
  if (!h) return CUDA_ERROR_INVALID_VALUE;
  rig_drop(h);
  rig_drop(h);
  return CUDA_SUCCESS;
}

/* --------------------------------------------------------------------------- addresses */

RIG_API CUresult cuMemAddressReserve(CUdeviceptr *p, size_t bytes, size_t align, CUdeviceptr wish,
                                     unsigned long long flags) {
  RIG_ENTER(CUresult);
  (void)wish; /* CUDA, too, takes it for a hint */
  if (!p || !bytes || bytes % RIG_PAGE || flags || (align & (align - 1)))
    return CUDA_ERROR_INVALID_VALUE;
  size_t a = align > RIG_GRANULE ? align : RIG_GRANULE;
  char *all = mmap(NULL, bytes + a, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  range *r = malloc(sizeof *r);
  if (all == MAP_FAILED || !r) {
    if (all != MAP_FAILED) munmap(all, bytes + a);
    free(r);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  char *at = (char *)RIG_ROUND((uintptr_t)all, a);
  if (at > all) munmap(all, (size_t)(at - all));
  munmap(at + bytes, (size_t)(all + a - at));
  pthread_mutex_lock(&lock);
  *r = (range){ ranges, (uintptr_t)at, bytes };
  ranges = r;
  pthread_mutex_unlock(&lock);
  *p = (CUdeviceptr)(uintptr_t)at;
  return CUDA_SUCCESS;
}

RIG_API CUresult cuMemAddressFree(CUdeviceptr p, size_t bytes) {
  RIG_ENTER(CUresult);
  range *found = NULL;
  pthread_mutex_lock(&lock);
  for (range **at = &ranges; *at; at = &(*at)->next)
    if ((*at)->at == p && (*at)->bytes == bytes) {
      found = *at;
      *at = found->next;
      break;
    }
  pthread_mutex_unlock(&lock);
  if (!found) return CUDA_ERROR_INVALID_VALUE;
  munmap((void *)found->at, bytes);
  free(found);
  return CUDA_SUCCESS;
}

static bool reserved(CUdeviceptr p, size_t bytes) {
  pthread_mutex_lock(&lock);
  const range *r = ranges;
  while (r && !(p >= r->at && p - r->at <= r->bytes && bytes <= r->bytes - (p - r->at)))
    r = r->next;
  pthread_mutex_unlock(&lock);
  return r;
}

RIG_API CUresult cuMemMap(CUdeviceptr p, size_t bytes, size_t offset,
                          CUmemGenericAllocationHandle handle, unsigned long long flags) {
  RIG_ENTER(CUresult);
  rig_block b;
  void *at = (void *)(uintptr_t)p;
  if (offset || flags || !reserved(p, bytes) || rig_find(at, &b)) return CUDA_ERROR_INVALID_VALUE;
  rig_physical_memory *h = rig_hold(handle);
  if (!h) return CUDA_ERROR_INVALID_VALUE;
  if (h->multicast) rig_multicast_whole(h->multicast);
  b = (rig_block){ .at = at, .bytes = bytes, .place = -1, .physical = h };
  if (h->multicast) b.write = rig_multicast_write;
  b.kind = on_device(h) ? RIG_CUMEM : RIG_HOST;
  b.device = on_device(h) ? h->prop.location.id : 0;
  int e = bytes > h->bytes ? CUDA_ERROR_INVALID_VALUE : 0;
  if (!e
      && mmap(at, bytes, PROT_NONE, MAP_SHARED | MAP_FIXED | MAP_NORESERVE, h->file, 0)
             == MAP_FAILED)
    e = CUDA_ERROR_MAP_FAILED;
  if (!e && !rig_add(b)) e = CUDA_ERROR_OUT_OF_MEMORY;
  if (e) rig_drop(h);
  return (CUresult)e;
}

RIG_API CUresult cuMemUnmap(CUdeviceptr p, size_t bytes) {
  RIG_ENTER(CUresult);
  rig_block b;
  void *at = (void *)(uintptr_t)p;
  rig_drain(-1);
  if (!rig_find(at, &b) || !b.physical || b.at != at || b.bytes != bytes || !rig_remove(at, &b))
    return CUDA_ERROR_INVALID_VALUE;
  mmap(at, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0);
  rig_drop(b.physical);
  return CUDA_SUCCESS;
}

RIG_API CUresult cuMemSetAccess(CUdeviceptr p, size_t bytes, const CUmemAccessDesc *access,
                                size_t n) {
  RIG_ENTER(CUresult);
  rig_block b;
  if (!access || !n || !rig_find((void *)(uintptr_t)p, &b) || !b.physical)
    return CUDA_ERROR_INVALID_VALUE;
  for (size_t i = 0; i < n; i++) {
    CUmemLocation to = access[i].location;
    if (to.type != CU_MEM_LOCATION_TYPE_DEVICE) continue;
    int from = rig_physical(to.id), there = rig_physical(b.device);
    if (from < 0) return CUDA_ERROR_INVALID_DEVICE;
    if (b.kind == RIG_CUMEM && from != there && !rig_peers(from, there))
      return CUDA_ERROR_INVALID_VALUE;
  }
  bool some = access[0].flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  return mprotect((void *)(uintptr_t)p, bytes, some ? PROT_READ | PROT_WRITE : PROT_NONE)
             ? CUDA_ERROR_INVALID_VALUE
             : CUDA_SUCCESS;
}

/* ----------------------------------------------------------------------------- handles */

RIG_API CUresult cuMemRetainAllocationHandle(CUmemGenericAllocationHandle *out, void *p) {
  RIG_ENTER(CUresult);
  rig_block b;
  if (!out || !rig_find(p, &b) || !b.physical || !rig_hold((uintptr_t)b.physical))
    return CUDA_ERROR_INVALID_VALUE;
  *out = (uintptr_t)b.physical;
  return CUDA_SUCCESS;
}

RIG_API CUresult cuMemGetAllocationPropertiesFromHandle(CUmemAllocationProp *prop,
                                                        CUmemGenericAllocationHandle handle) {
  RIG_ENTER(CUresult);
  rig_physical_memory *h = prop ? rig_hold(handle) : NULL;
  if (!h) return CUDA_ERROR_INVALID_VALUE;
  *prop = h->prop;
  rig_drop(h);
  return CUDA_SUCCESS;
}

RIG_API CUresult cuMemExportToShareableHandle(void *out, CUmemGenericAllocationHandle handle,
                                              CUmemAllocationHandleType type,
                                              unsigned long long flags) {
  RIG_ENTER(CUresult);
  if (!out || flags) return CUDA_ERROR_INVALID_VALUE;
  if (type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) return CUDA_ERROR_NOT_SUPPORTED;
  rig_physical_memory *h = rig_hold(handle);
  if (!h) return CUDA_ERROR_INVALID_VALUE;
  bool asked = h->imported
               || h->prop.requestedHandleTypes & CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  int file = asked ? fcntl(h->file, F_DUPFD_CLOEXEC, 0) : -1;
  rig_drop(h);
  if (file < 0) return asked ? CUDA_ERROR_OPERATING_SYSTEM : CUDA_ERROR_INVALID_VALUE;
  memcpy(out, &file, sizeof file);
  return CUDA_SUCCESS;
}

RIG_API CUresult cuMemImportFromShareableHandle(CUmemGenericAllocationHandle *out, void *handle,
                                                CUmemAllocationHandleType type) {
  RIG_ENTER(CUresult);
  struct stat st;
  if (type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) return CUDA_ERROR_NOT_SUPPORTED;
  int file = out ? fcntl((int)(intptr_t)handle, F_DUPFD_CLOEXEC, 0) : -1;
  CUmemAllocationProp prop = { .type = CU_MEM_ALLOCATION_TYPE_PINNED,
                               .requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
                               .location = { .type = CU_MEM_LOCATION_TYPE_DEVICE,
                                             .id = rig_device() } };
  if (file < 0) return CUDA_ERROR_INVALID_VALUE;
  rig_multicast *m = rig_multicast_open(file);
  size_t bytes = m ? rig_multicast_bytes(m) : !fstat(file, &st) ? (size_t)st.st_size : 0;
  if (bytes && rig_new_handle(out, file, bytes, true, &prop, m)) return CUDA_SUCCESS;
  if (m) rig_multicast_end(m);
  close(file);
  return CUDA_ERROR_INVALID_VALUE;
}
