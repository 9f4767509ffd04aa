/* SPDX-License-Identifier: MIT
**
** memory.c - memory of devices and pinned memory. A process has one sparse file for all its
** devices: each allocation is a mapping of its own of it, so other processes can map it too.
*/
#include "rig.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* New memory is not zeros, unless it is so large that filling it would cost more than it finds. */
enum { POISON_MOST = 4 << 20 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static rig_block *blocks;
static int file = -1;
static off_t file_end;
static _Thread_local int current;

int rig_device(void) { return current; }

int rig_set_device(int device) {
  if (!rig_devices()) return CUDA_ERROR_NO_DEVICE;
  if (rig_physical(device) < 0) return CUDA_ERROR_INVALID_DEVICE;
  current = device;
  return 0;
}

bool rig_find(const void *p, rig_block *out) {
  bool found = false;
  pthread_mutex_lock(&lock);
  for (const rig_block *b = blocks; b && !found; b = b->next)
    if ((uintptr_t)p - (uintptr_t)b->at < b->bytes) *out = *b, found = true;
  pthread_mutex_unlock(&lock);
  return found;
}

bool rig_on_device(const void *p, size_t bytes, int device) {
  rig_block b;
  return rig_find(p, &b) && b.kind != RIG_HOST && (device < 0 || b.device == device)
         && bytes <= b.bytes - (size_t)((const char *)p - b.at);
}

bool rig_add(rig_block what) {
  rig_block *b = malloc(sizeof *b);
  if (!b) return false;
  *b = what;
  pthread_mutex_lock(&lock);
  b->next = blocks;
  blocks = b;
  pthread_mutex_unlock(&lock);
  return true;
}

bool rig_remove(const void *at, rig_block *out) {
  rig_block *found = NULL;
  pthread_mutex_lock(&lock);
  for (rig_block **b = &blocks; *b && !found; b = found ? b : &(*b)->next)
    if ((*b)->at == at) {
      found = *b;
      *b = found->next;
      break;
    }
  pthread_mutex_unlock(&lock);
  if (found) *out = *found;
  free(found);
  return found;
}

/* A place in the file that was never used, so that no old data shows. -1: none. */
static off_t place_in_file(size_t bytes) {
  pthread_mutex_lock(&lock);
  off_t at = file_end;
  if (file < 0) file = memfd_create("cudarig", MFD_CLOEXEC);
  if (file < 0 || ftruncate(file, at + (off_t)bytes))
    at = -1;
  else
    file_end += (off_t)bytes;
  pthread_mutex_unlock(&lock);
  return at;
}

static void give_back(off_t place, size_t bytes) {
  fallocate(file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, place, (off_t)bytes);
}

int rig_alloc(void **p, size_t bytes) {
  if (!p) return CUDA_ERROR_INVALID_VALUE;
  if (!rig_devices()) return CUDA_ERROR_NO_DEVICE;
  *p = NULL;
  if (!bytes) return 0;
  if (bytes > (size_t)1 << 46 || !rig_take(RIG_DEVICE, current, (long long)bytes))
    return CUDA_ERROR_OUT_OF_MEMORY;
  size_t length = RIG_ROUND(bytes, RIG_PAGE);
  off_t place = place_in_file(length);
  void *at = MAP_FAILED;
  if (place >= 0)
    at = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, file, place);
  if (at != MAP_FAILED
      && rig_add((rig_block){
          .at = at, .bytes = bytes, .kind = RIG_DEVICE, .device = current, .place = place }))
    return *p = bytes <= POISON_MOST ? memset(at, 0xA5, length) : at, 0;
  if (at != MAP_FAILED) munmap(at, length);
  rig_take(RIG_DEVICE, current, -(long long)bytes);
  return CUDA_ERROR_OUT_OF_MEMORY;
}

/* Remove the block at p if it is what the call may free; put another one back. */
static int claim(void *p, rig_kind kind, bool registered, bool foreign, rig_block *b) {
  if (!rig_remove(p, b)) return CUDA_ERROR_INVALID_VALUE;
  if (b->kind == kind && b->registered == registered && b->foreign == foreign) return 0;
  rig_add(*b);
  return CUDA_ERROR_INVALID_VALUE;
}

/* As CUDA does, wait for what is on the streams: it may use the memory. */
int rig_free(void *p) {
  rig_block b;
  if (!p) return 0;
  rig_drain(-1);
  int e = claim(p, RIG_DEVICE, false, false, &b);
  if (e) return e;
  munmap(b.at, RIG_ROUND(b.bytes, RIG_PAGE));
  give_back(b.place, RIG_ROUND(b.bytes, RIG_PAGE));
  rig_take(RIG_DEVICE, b.device, -(long long)b.bytes);
  return 0;
}

void rig_memory_leaks(void) {
  pthread_mutex_lock(&lock);
  for (const rig_block *b = blocks; b; b = b->next)
    if (!b->foreign && !b->registered && !b->physical)
      rig_wrong("leak: %zu bytes of %smemory on device %d were never freed", b->bytes,
                b->kind == RIG_HOST ? "pinned " : "", b->device);
  pthread_mutex_unlock(&lock);
}

/* ----------------------------------------------------------------- memory of the host */

int rig_host_alloc(void **p, size_t bytes) {
  if (!p) return CUDA_ERROR_INVALID_VALUE;
  *p = NULL;
  if (!bytes) return 0;
  size_t length = RIG_ROUND(bytes, RIG_PAGE);
  void *at = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                  -1, 0);
  if (at == MAP_FAILED) return CUDA_ERROR_OUT_OF_MEMORY;
  if (!rig_add((rig_block){
          .at = at, .bytes = bytes, .kind = RIG_HOST, .device = current, .place = -1 })) {
    munmap(at, length);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  rig_take(RIG_HOST, current, (long long)bytes);
  *p = at;
  return 0;
}

int rig_host_free(void *p) {
  rig_block b;
  if (!p) return 0;
  rig_drain(-1);
  int e = claim(p, RIG_HOST, false, false, &b);
  if (e) return e;
  if (b.physical) return rig_add(b), CUDA_ERROR_INVALID_VALUE;
  munmap(b.at, RIG_ROUND(b.bytes, RIG_PAGE));
  rig_take(RIG_HOST, b.device, -(long long)b.bytes);
  return 0;
}

int rig_host_register(void *p, size_t bytes) {
  rig_block b;
  if (!p || !bytes) return CUDA_ERROR_INVALID_VALUE;
  if (rig_find(p, &b)) return CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
  b = (rig_block){
    .at = p, .bytes = bytes, .kind = RIG_HOST, .device = current, .place = -1, .registered = true
  };
  return rig_add(b) ? 0 : CUDA_ERROR_OUT_OF_MEMORY;
}

int rig_host_unregister(void *p) {
  rig_block b;
  return claim(p, RIG_HOST, true, false, &b) ? CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED : 0;
}

/* ------------------------------------------------------------- memory of other processes */

/* The bytes of an IPC handle: where the owner's file is. */
typedef struct ipc {
  char magic[8];
  int process, file, device; /* device as the machine counts it */
  off_t place;
  size_t bytes;
} ipc;

_Static_assert(sizeof(ipc) <= CU_IPC_HANDLE_SIZE, "an IPC handle has 64 bytes");

int rig_ipc_get(void *handle, const void *p) {
  rig_block b;
  if (!handle || !rig_find(p, &b) || b.kind != RIG_DEVICE || b.foreign)
    return CUDA_ERROR_INVALID_VALUE;
  ipc h = { "cudarig", getpid(), file, rig_physical(b.device), b.place, b.bytes };
  memset(handle, 0, CU_IPC_HANDLE_SIZE);
  memcpy(handle, &h, sizeof h);
  return 0;
}

int rig_ipc_open(void **p, const void *handle) {
  ipc h;
  char path[64];
  memcpy(&h, handle, sizeof h);
  if (!p || memcmp(h.magic, "cudarig", 8)) return CUDA_ERROR_INVALID_VALUE;
  /* CUDA opens no handle where it was made */
  if (h.process == getpid()) return CUDA_ERROR_INVALID_CONTEXT;
  int mine = rig_physical(current);
  if (mine != h.device && !rig_peers(mine, h.device)) return CUDA_ERROR_PEER_ACCESS_UNSUPPORTED;
  snprintf(path, sizeof path, "/proc/%d/fd/%d", h.process, h.file);
  int fd = open(path, O_RDWR | O_CLOEXEC);
  if (fd < 0) return CUDA_ERROR_MAP_FAILED;
  void *at =
      mmap(NULL, RIG_ROUND(h.bytes, RIG_PAGE), PROT_READ | PROT_WRITE, MAP_SHARED, fd, h.place);
  close(fd);
  if (at == MAP_FAILED) return CUDA_ERROR_MAP_FAILED;
  int device = 0;
  while (rig_physical(device) >= 0 && rig_physical(device) != h.device) device++;
  if (rig_physical(device) < 0) device = current;
  rig_block b = {
    .at = at, .bytes = h.bytes, .kind = RIG_DEVICE, .device = device, .place = -1, .foreign = true
  };
  if (rig_add(b)) return *p = at, 0;
  munmap(at, RIG_ROUND(h.bytes, RIG_PAGE));
  return CUDA_ERROR_OUT_OF_MEMORY;
}

int rig_ipc_close(void *p) {
  rig_block b;
  rig_drain(-1);
  int e = claim(p, RIG_DEVICE, false, true, &b);
  if (!e) munmap(b.at, RIG_ROUND(b.bytes, RIG_PAGE));
  return e;
}
