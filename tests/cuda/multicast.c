/* SPDX-License-Identifier: MIT
**
** multicast.c - multicast objects: a copy, a fill or a value that is written to one is written to
** the memory of every device that is bound to it. The object is a file that processes share: its
** bytes, which nobody reads, and a page that lists devices and memory, by the process and the
** descriptor of the owner. A program's own stores reach nobody.
*/
#include "vmm.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define MAGIC "rig multicast"

typedef struct bound {
  int process, file, device; /* device as the machine counts it; process 0: the place is free */
  size_t at, from, bytes;    /* in the object, in the memory */
} bound;

/* The last page of the file. */
typedef struct page {
  char magic[16];
  size_t bytes;
  int wanted; /* devices */
  atomic_int added;
  atomic_flag held;
  int device[RIG_DEVICES];
  bound bound[RIG_DEVICES];
} page;
_Static_assert(sizeof(page) <= RIG_PAGE, "one page");

struct rig_multicast {
  page *page;
  /* what this process has bound, at its place in the list */
  rig_physical_memory *mine[RIG_DEVICES];
};

static void nap(void) {
  struct timespec t = { 0, 200000 };
  nanosleep(&t, NULL);
}

static void hold_page(page *p) {
  while (atomic_flag_test_and_set(&p->held)) nap();
}

static void leave_page(page *p) { atomic_flag_clear(&p->held); }

rig_multicast *rig_multicast_open(int file) {
  struct stat st;
  if (fstat(file, &st) || (size_t)st.st_size % RIG_GRANULE != RIG_PAGE) return NULL;
  page *p =
      mmap(NULL, RIG_PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, file, st.st_size - (off_t)RIG_PAGE);
  if (p == MAP_FAILED) return NULL;
  rig_multicast *m = strcmp(p->magic, MAGIC) ? NULL : calloc(1, sizeof *m);
  if (m)
    m->page = p;
  else
    munmap(p, RIG_PAGE);
  return m;
}

size_t rig_multicast_bytes(const rig_multicast *m) { return m->page->bytes; }

void rig_multicast_whole(const rig_multicast *m) {
  while (atomic_load(&m->page->added) < m->page->wanted) nap();
}

static void unbind(rig_multicast *m, int i) {
  hold_page(m->page);
  m->page->bound[i].process = 0;
  leave_page(m->page);
  rig_drop(m->mine[i]);
  m->mine[i] = NULL;
}

void rig_multicast_end(rig_multicast *m) {
  for (int i = 0; i < RIG_DEVICES; i++)
    if (m->mine[i]) unbind(m, i);
  munmap(m->page, RIG_PAGE);
  free(m);
}

/* ------------------------------------------------------------------------------ writing */

static void write_one(const bound *b, size_t at, const char *from, int value, size_t bytes) {
  char path[64];
  size_t first = at > b->at ? at : b->at,
         end = at + bytes < b->at + b->bytes ? at + bytes : b->at + b->bytes;
  if (first >= end) return;
  snprintf(path, sizeof path, "/proc/%d/fd/%d", b->process, b->file);
  int fd = open(path, O_RDWR | O_CLOEXEC);
  size_t place = b->from + first - b->at, into = place % RIG_PAGE;
  char *to = fd < 0 ? MAP_FAILED
                    : mmap(NULL, end - first + into, PROT_READ | PROT_WRITE, MAP_SHARED, fd,
                           (off_t)(place - into));
  if (fd >= 0) close(fd);
  if (to == MAP_FAILED) return; /* its owner is gone */
  size_t n = end - first;
  if (from && n == 8) /* somebody may wait for it */
    __atomic_store_n((uint64_t *)(void *)(to + into),
                     *(const uint64_t *)(const void *)(from + (first - at)), __ATOMIC_RELEASE);
  else if (from && n == 4)
    __atomic_store_n((uint32_t *)(void *)(to + into),
                     *(const uint32_t *)(const void *)(from + (first - at)), __ATOMIC_RELEASE);
  else if (from)
    memcpy(to + into, from + (first - at), n);
  else
    memset(to + into, value, n);
  munmap(to, n + into);
}

int rig_multicast_write(void *physical, size_t at, const void *from, int value, size_t bytes) {
  const rig_physical_memory *h = physical;
  bound all[RIG_DEVICES];
  hold_page(h->multicast->page);
  memcpy(all, h->multicast->page->bound, sizeof all);
  leave_page(h->multicast->page);
  for (int i = 0; i < RIG_DEVICES; i++)
    if (all[i].process) write_one(&all[i], at, from, value, bytes);
  return 0;
}

/* ----------------------------------------------------------------------------- functions */

static bool right(const CUmulticastObjectProp *prop) {
  return prop && prop->numDevices > 0 && prop->numDevices <= RIG_DEVICES && !prop->flags;
}

static bool modelled(const CUmulticastObjectProp *prop) {
  return rig_the_machine()->multicast
         && !(prop->handleTypes & ~(unsigned)CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
}

RIG_API CUresult cuMulticastGetGranularity(size_t *granule, const CUmulticastObjectProp *prop,
                                           CUmulticastGranularity_flags option) {
  RIG_ENTER(CUresult);
  (void)option;
  if (!granule || !right(prop)) return CUDA_ERROR_INVALID_VALUE;
  if (!modelled(prop)) return CUDA_ERROR_NOT_SUPPORTED;
  *granule = RIG_GRANULE;
  return CUDA_SUCCESS;
}

RIG_API CUresult cuMulticastCreate(CUmemGenericAllocationHandle *out,
                                   const CUmulticastObjectProp *prop) {
  RIG_ENTER(CUresult);
  if (!out || !right(prop) || !prop->size || prop->size % RIG_GRANULE)
    return CUDA_ERROR_INVALID_VALUE;
  if (!modelled(prop)) return CUDA_ERROR_NOT_SUPPORTED;
  CUmemAllocationProp as = { .type = CU_MEM_ALLOCATION_TYPE_PINNED,
                             .requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
                             .location = { .type = CU_MEM_LOCATION_TYPE_DEVICE,
                                           .id = rig_device() } };
  page first = { .magic = MAGIC, .bytes = prop->size, .wanted = (int)prop->numDevices };
  int file = memfd_create("cudarig-multicast", MFD_CLOEXEC);
  rig_multicast *m = NULL;
  if (file >= 0 && !ftruncate(file, (off_t)(prop->size + RIG_PAGE))
      && pwrite(file, &first, sizeof first, (off_t)prop->size) == (ssize_t)sizeof first)
    m = rig_multicast_open(file);
  /* it takes no memory: counted as another's */
  if (m && rig_new_handle(out, file, prop->size, true, &as, m)) return CUDA_SUCCESS;
  if (m) rig_multicast_end(m);
  if (file >= 0) close(file);
  return CUDA_ERROR_OUT_OF_MEMORY;
}

/* The object behind a handle, with a reference. */
static rig_physical_memory *object(CUmemGenericAllocationHandle handle) {
  rig_physical_memory *h = rig_hold(handle);
  if (h && h->multicast) return h;
  if (h) rig_drop(h);
  return NULL;
}

RIG_API CUresult cuMulticastAddDevice(CUmemGenericAllocationHandle handle, CUdevice device) {
  RIG_ENTER(CUresult);
  int physical = rig_physical(device);
  if (physical < 0) return CUDA_ERROR_INVALID_DEVICE;
  rig_physical_memory *h = object(handle);
  if (!h) return CUDA_ERROR_INVALID_VALUE;
  page *p = h->multicast->page;
  hold_page(p);
  int n = atomic_load(&p->added);
  bool ok = n < p->wanted;
  for (int i = 0; i < n; i++) ok &= p->device[i] != physical;
  if (ok) {
    p->device[n] = physical;
    atomic_store(&p->added, n + 1);
  }
  leave_page(p);
  rig_drop(h);
  return ok ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* Bind memory, once all devices have been added, its own among them. Takes the reference to it if
** that works. */
static CUresult bind(CUmemGenericAllocationHandle handle, size_t at, rig_physical_memory *memory,
                     size_t from, size_t bytes) {
  rig_physical_memory *h = object(handle);
  if (!h) return CUDA_ERROR_INVALID_VALUE;
  page *p = h->multicast->page;
  CUresult e = CUDA_SUCCESS;
  int physical = rig_physical(memory->prop.location.id), place = -1;
  bool member = false, free_there = true;
  if (memory->multicast || !bytes || (at | from | bytes) % RIG_GRANULE || bytes > p->bytes
      || at > p->bytes - bytes || bytes > memory->bytes || from > memory->bytes - bytes)
    e = CUDA_ERROR_INVALID_VALUE;
  if (!e) rig_multicast_whole(h->multicast);
  for (int i = 0; i < p->wanted && !e; i++) member |= p->device[i] == physical;
  hold_page(p);
  for (int i = 0; i < RIG_DEVICES && !e; i++) {
    const bound *b = &p->bound[i];
    if (!b->process)
      place = i;
    else if (b->device == physical && at < b->at + b->bytes && b->at < at + bytes)
      free_there = false;
  }
  if (!e && (!member || !free_there)) e = CUDA_ERROR_INVALID_VALUE;
  if (!e && place < 0) e = CUDA_ERROR_OUT_OF_MEMORY;
  if (!e) {
    p->bound[place] = (bound){ (int)getpid(), memory->file, physical, at, from, bytes };
    h->multicast->mine[place] = memory;
  }
  leave_page(p);
  rig_drop(h);
  return e;
}

RIG_API CUresult cuMulticastBindMem(CUmemGenericAllocationHandle handle, size_t at,
                                    CUmemGenericAllocationHandle memory, size_t from, size_t bytes,
                                    unsigned long long flags) {
  RIG_ENTER(CUresult);
  rig_physical_memory *m = flags ? NULL : rig_hold(memory);
  if (!m) return CUDA_ERROR_INVALID_VALUE;
  CUresult e = bind(handle, at, m, from, bytes);
  if (e) rig_drop(m);
  return e;
}

RIG_API CUresult cuMulticastBindAddr(CUmemGenericAllocationHandle handle, size_t at, CUdeviceptr p,
                                     size_t bytes, unsigned long long flags) {
  RIG_ENTER(CUresult);
  rig_block b;
  if (flags || !rig_find((void *)(uintptr_t)p, &b) || !b.physical) return CUDA_ERROR_INVALID_VALUE;
  rig_physical_memory *m = rig_hold((uintptr_t)b.physical);
  if (!m) return CUDA_ERROR_INVALID_VALUE;
  CUresult e = bind(handle, at, m, p - (uintptr_t)b.at, bytes);
  if (e) rig_drop(m);
  return e;
}

RIG_API CUresult cuMulticastUnbind(CUmemGenericAllocationHandle handle, CUdevice device, size_t at,
                                   size_t bytes) {
  RIG_ENTER(CUresult);
  rig_physical_memory *h = object(handle);
  if (!h) return CUDA_ERROR_INVALID_VALUE;
  const bound *b = h->multicast->page->bound;
  bool found = false;
  for (int i = 0; i < RIG_DEVICES; i++)
    if (h->multicast->mine[i] && b[i].device == rig_physical(device) && b[i].at >= at
        && b[i].at + b[i].bytes <= at + bytes) {
      unbind(h->multicast, i);
      found = true;
    }
  rig_drop(h);
  return found ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
