/* SPDX-License-Identifier: MIT
**
** extra.c - what a communicator has besides: memory of ncclMemAlloc and windows over it, device
** communicators; its own memory, counted, given back for a while. Registering, making and
** suspending are calls over all its ranks.
*/
#include "comm.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool si_newer(int since, const char *call) {
  if (si_version() >= since) return true;
  si_wrong(ncclInvalidUsage, "%s came with NCCL %d.%d.%d: a program would not find it", call,
           since / 10000, since / 100 % 100, since % 100);
  return false;
}

/* ---------------------------------------------------------------------------- memory */

typedef struct block {
  struct block *next;
  char *at;
  size_t bytes;
  int windows; /* over it */
} block;

struct ncclWindow_vidmem { /* never freed: one that is used after its end can be reported */
  ncclComm_t comm;
  block *memory;
  bool gone;
};

static block *blocks; /* under si_lock, as the windows in them */

static block *block_of(const void *p, size_t bytes) {
  block *b = blocks;
  while (b && !((const char *)p >= b->at && (const char *)p + bytes <= b->at + b->bytes))
    b = b->next;
  return b;
}

SI_API ncclResult_t ncclMemAlloc(void **ptr, size_t size) {
  block *b = calloc(1, sizeof *b);
  if (!ptr || !size || !b || cudaMalloc(ptr, size)) {
    free(b);
    return si_fail(ncclUnhandledCudaError, "ncclMemAlloc of %zu bytes", size);
  }
  b->at = *ptr, b->bytes = size;
  si_lock();
  b->next = blocks;
  blocks = b;
  si_unlock();
  return ncclSuccess;
}

SI_API ncclResult_t ncclMemFree(void *ptr) {
  if (!ptr) return ncclSuccess;
  si_lock();
  block **at = &blocks, *b;
  while (*at && (*at)->at != (char *)ptr) at = &(*at)->next;
  b = *at;
  int windows = b ? b->windows : 0;
  if (b) *at = b->next;
  si_unlock();
  if (!b)
    return si_wrong(ncclInvalidUsage, "ncclMemFree of %p, which ncclMemAlloc did not give", ptr);
  if (windows)
    si_wrong(ncclInvalidUsage, "ncclMemFree of memory with %d windows; real NCCL would fault here",
             windows);
  free(b);
  return cudaFree(ptr) ? si_fail(ncclUnhandledCudaError, "ncclMemFree of %p", ptr) : ncclSuccess;
}

/* --------------------------------------------------------------- calls over all ranks */

typedef struct extra {
  const char *call;
  int meeting;
  uint64_t hash; /* of the arguments that must be equal */
  ncclWindow_t made, *window;
  void *device;
  bool suspend, resume;
} extra;

static ncclResult_t meet_all(ncclComm_t c, const extra *x, shm_stop stop) {
  char text[SI_TEXT] = "", line[SI_TEXT], label[160];
  si_comm_label(c, label, sizeof label);
  shm_lock(&c->seg);
  c->seg.slot[c->rank].extra = x->hash;
  shm_unlock(&c->seg);
  shm_end end = shm_meet(&c->seg, x->meeting, stop, text);
  for (int r = 0; end == SHM_OK && r < c->nranks; r++)
    if (c->seg.slot[r].extra != x->hash)
      return si_wrong(ncclInvalidUsage, "%s of %s: rank %d has other arguments; " STANDIN_HANG,
                      x->call, label, r);
  if (end == SHM_OK) end = shm_meet(&c->seg, x->meeting, stop, text); /* all have read them */
  if (end == SHM_OK) return ncclSuccess;
  if (end == SHM_STOPPED) return ncclInternalError;
  snprintf(line, sizeof line, "%s of %s: %.500s; " STANDIN_HANG, x->call, label, text);
  shm_poison(&c->seg, line);
  return si_wrong(ncclInternalError, "%s", line);
}

static long long suspendable(const struct ncclComm *c) { return c->memory * 3 / 4; }

static ncclResult_t run_extra(si_op *op) {
  extra *x = op->data;
  ncclComm_t c = op->comm;
  ncclResult_t r = meet_all(c, x, si_op_stop(op));
  if (r) return r;
  if (x->window) *x->window = x->made; /* as late as in NCCL: at the end of the group */
  if (x->device) memcpy(x->device, (int[2]){ c->rank, c->nranks }, 2 * sizeof(int));
  si_lock();
  c->extras += x->window || x->device;
  if (x->suspend || x->resume) {
    c->suspended = x->suspend ? suspendable(c) : 0;
    rig_take(RIG_DEVICE, c->device, x->suspend ? -suspendable(c) : suspendable(c));
  }
  si_unlock();
  return ncclSuccess;
}

static ncclResult_t begin(ncclComm_t c, const extra *x) {
  si_op *op = calloc(1, sizeof *op);
  extra *copy = malloc(sizeof *copy);
  if (!op || !copy) {
    free(op);
    free(copy);
    return ncclSystemError;
  }
  *copy = *x;
  op->kind = OP_EXTRA, op->comm = c, op->run = run_extra, op->data = copy;
  return si_group_add(op);
}

/* ---------------------------------------------------------------------------- windows */

static ncclResult_t register_window(ncclComm_t comm, char *buff, size_t size, ncclWindow_t *win,
                                    int flags) {
  ncclResult_t r = si_comm_ready(comm, "ncclCommWindowRegister");
  if (r) return r;
  if (si_version() >= 22902) {
    *win = NULL;
    if (!buff || !size)
      return si_fail(ncclInvalidArgument, "invalid pointer %p / size %zu", (void *)buff, size);
  }
  if (!buff || !size || standin_env("STANDIN_NO_WINDOWS", 0))
    return ncclSuccess; /* *win stays as it was, in NCCL too */
  si_lock();
  block *b = block_of(buff, size);
  size_t offset = b ? (size_t)(buff - b->at) : 0;
  si_unlock();
  if (!b)
    return si_fail(ncclUnhandledCudaError,
                   "ncclCommWindowRegister: %p is not memory of ncclMemAlloc", (void *)buff);
  if (offset % NCCL_WIN_REQUIRED_ALIGNMENT)
    return si_fail(ncclInvalidArgument, "Window address must be suitably aligned.");
  extra x = { .call = "ncclCommWindowRegister", .meeting = MEET_WINDOW, .window = win };
  x.hash = si_hash(si_hash(1, &size, sizeof size), &flags, sizeof flags);
  if (!(x.made = calloc(1, sizeof *x.made))) return ncclSystemError;
  *x.made = (struct ncclWindow_vidmem){ comm, b, false };
  si_lock();
  b->windows++;
  si_unlock();
  standin_trace("window id=%016llx bytes=%zu flags=%d name=%s", (unsigned long long)comm->id, size,
                flags, *comm->name ? comm->name : "-");
  return begin(comm, &x);
}

SI_API ncclResult_t ncclCommWindowRegister(ncclComm_t comm, void *buff, size_t size,
                                           ncclWindow_t *win, int winFlags) {
  if (!si_newer(22703, "ncclCommWindowRegister") || !win) return ncclInvalidArgument;
  si_group_enter();
  return si_group_leave(register_window(comm, buff, size, win, winFlags));
}

SI_API ncclResult_t ncclCommWindowDeregister(ncclComm_t comm, ncclWindow_t win) {
  ncclResult_t r = si_comm_alive(comm, "ncclCommWindowDeregister");
  if (r || !win) return r;
  si_lock();
  bool wrong = win->gone || win->comm != comm;
  if (!wrong) win->gone = true, win->memory->windows--, comm->extras--;
  si_unlock();
  if (wrong)
    return si_wrong(ncclInvalidArgument,
                    "ncclCommWindowDeregister of no window of it; real NCCL would fault here");
  standin_trace("unwindow id=%016llx", (unsigned long long)comm->id);
  return ncclSuccess;
}

/* --------------------------------------------------------------- device communicators */

/* Before 2.29 the requirements had no head. */
static bool has_head(const void *reqs) {
  unsigned magic;
  memcpy(&magic, (const char *)reqs + sizeof(size_t), sizeof magic);
  return magic == 0xcafebeef;
}

static ncclResult_t make_device(ncclComm_t comm, const char *reqs, void *out) {
  enum { HEAD = sizeof(size_t) + 2 * sizeof(unsigned) };
  bool new = si_version() >= 22902;
  ncclResult_t r = si_comm_ready(comm, "ncclDevCommCreate");
  if (r) return r;
  if (standin_env("STANDIN_NO_WINDOWS", 0))
    return si_fail(ncclInvalidUsage, "Communicator does not support symmetric memory!");
  if (new != has_head(reqs))
    return new ? si_fail(ncclInvalidArgument,
                         "ncclDevCommRequirements_t not initialized via its INITIALIZER")
               : si_wrong(ncclInvalidArgument,
                          "ncclDevCommRequirements of NCCL 2.29; real NCCL would fault here");
  extra x = { .call = "ncclDevCommCreate", .meeting = MEET_WINDOW, .device = out };
  reqs += new ? HEAD : 0; /* two lists; a flag, five numbers; a flag, three numbers */
  x.hash = si_hash(si_hash(si_hash(2, reqs + 16, 1), reqs + 20, 20), reqs + 44, 12);
  standin_trace("device id=%016llx name=%s", (unsigned long long)comm->id,
                *comm->name ? comm->name : "-");
  return begin(comm, &x);
}

/* Without the C++ headers of the device's side: moongrid and its tests call these by name. */
SI_API ncclResult_t ncclDevCommCreate(ncclComm_t comm, const void *reqs, void *out);
SI_API ncclResult_t ncclDevCommCreate(ncclComm_t comm, const void *reqs, void *out) {
  if (!si_newer(22807, "ncclDevCommCreate") || !reqs || !out) return ncclInvalidArgument;
  si_group_enter();
  return si_group_leave(make_device(comm, reqs, out));
}

SI_API ncclResult_t ncclDevCommDestroy(ncclComm_t comm, const void *device);
SI_API ncclResult_t ncclDevCommDestroy(ncclComm_t comm, const void *device) {
  int rank = -1;
  ncclResult_t r = si_comm_alive(comm, "ncclDevCommDestroy");
  if (r) return r;
  memcpy(&rank, device, sizeof rank);
  if (rank != comm->rank)
    return si_wrong(
        ncclInvalidArgument,
        "ncclDevCommDestroy of no device communicator of it; real NCCL would fault here");
  si_lock();
  comm->extras--;
  si_unlock();
  standin_trace("undevice id=%016llx", (unsigned long long)comm->id);
  return ncclSuccess;
}

/* ------------------------------------------------------------ memory of a communicator */

static ncclResult_t suspend(ncclComm_t comm, bool resume) {
  const char *call = resume ? "ncclCommResume" : "ncclCommSuspend";
  extra x = {
    .call = call, .meeting = MEET_SUSPEND, .hash = resume, .suspend = !resume, .resume = resume
  };
  ncclResult_t r = si_comm_ready(comm, call);
  double until = standin_now() + standin_deadline() / 2;
  if (r) return r;
  if (comm->family != comm || comm->config.splitShare || comm->config.shrinkShare)
    return si_fail(ncclInvalidUsage, "Memory suspend not supported with split_share communicators");
  if ((comm->suspended != 0) != resume)
    return si_fail(ncclInvalidUsage, "MemManager: %s",
                   resume ? "Not suspended" : "Already suspended");
  while (rig_busy(comm->device) && standin_now() < until) standin_nap(0.002);
  if (rig_busy(comm->device))
    return si_wrong(ncclInternalError, "%s waits for what runs on device %d; " STANDIN_HANG, call,
                    comm->device);
  standin_trace("%s id=%016llx name=%s", resume ? "resume" : "suspend",
                (unsigned long long)comm->id, *comm->name ? comm->name : "-");
  return begin(comm, &x);
}

SI_API ncclResult_t ncclCommSuspend(ncclComm_t comm, int flags);
SI_API ncclResult_t ncclCommSuspend(ncclComm_t comm, int flags) {
  if (!si_newer(22907, "ncclCommSuspend")) return ncclInvalidArgument;
  if (!(flags & 1)) return ncclSuccess;
  si_group_enter();
  return si_group_leave(suspend(comm, false));
}

SI_API ncclResult_t ncclCommResume(ncclComm_t comm);
SI_API ncclResult_t ncclCommResume(ncclComm_t comm) {
  if (!si_newer(22907, "ncclCommResume")) return ncclInvalidArgument;
  si_group_enter();
  return si_group_leave(suspend(comm, true));
}

#if NCCL_VERSION_CODE >= 22907
typedef ncclCommMemStat_t memory_stat;
#else
typedef int memory_stat;
#endif

/* The totals stay while it is suspended, as in NCCL. */
SI_API ncclResult_t ncclCommMemStats(ncclComm_t comm, memory_stat stat, uint64_t *value);
SI_API ncclResult_t ncclCommMemStats(ncclComm_t comm, memory_stat stat, uint64_t *value) {
  if (!si_newer(22907, "ncclCommMemStats")) return ncclInvalidArgument;
  ncclResult_t r = si_comm_ready(comm, "ncclCommMemStats");
  if (r || !value) return r ? r : ncclInvalidArgument;
  long long all[] = { suspendable(comm), comm->suspended != 0, comm->memory - suspendable(comm),
                      comm->memory };
  if ((int)stat < 0 || stat > 3) return ncclInvalidArgument;
  *value = (uint64_t)all[stat];
  return ncclSuccess;
}
