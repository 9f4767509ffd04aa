/* SPDX-License-Identifier: MIT
**
** comm.c - the table of communicators, unique ids, questions, errors, and leaks at the end of the
** process.
*/
#include "comm.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

/* The unique ids of this process; the head says whether somebody has joined. */
typedef struct made_id {
  struct made_id *next;
  char name[SHM_NAME];
  shm_head *head;
} made_id;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed;
static ncclComm_t comms;
static made_id *ids;
static char last_error[SI_TEXT] = "";

void si_lock(void) { pthread_mutex_lock(&lock); }
void si_unlock(void) { pthread_mutex_unlock(&lock); }
void si_changed(void) { pthread_cond_broadcast(&changed); }

bool si_wait_change(double until) {
  double now = standin_now();
  struct timespec t = { (time_t)until, 0 };
  if (now >= until) return false;
  t.tv_nsec = (long)((until - (double)t.tv_sec) * 1e9);
  pthread_cond_timedwait(&changed, &lock, &t);
  return true;
}

/* --------------------------------------------------------------------------- errors */

static void remember(const char *text) {
  si_lock();
  snprintf(last_error, sizeof last_error, "%.900s (" STANDIN_NAME ")", text);
  si_unlock();
}

ncclResult_t si_fail(ncclResult_t r, const char *format, ...) {
  char text[SI_TEXT];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  standin_log("%s", text);
  remember(text);
  return r;
}

ncclResult_t si_wrong(ncclResult_t r, const char *format, ...) {
  char text[SI_TEXT];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  standin_violation("%s", text);
  remember(text);
  return r;
}

ncclResult_t si_no_driver(void) {
  cudaError_t e = (cudaError_t)rig_refuses();
  return e ? si_fail(ncclUnhandledCudaError, "Cuda failure '%s'", cudaGetErrorString(e))
           : ncclSuccess;
}

SI_API const char *ncclGetErrorString(ncclResult_t result) {
  static const char *const full[] = {
    "no error (" STANDIN_NAME ")",
    "unhandled cuda error (" STANDIN_NAME ")",
    "unhandled system error (" STANDIN_NAME ")",
    "internal error (" STANDIN_NAME ")",
    "invalid argument (" STANDIN_NAME ")",
    "invalid usage (" STANDIN_NAME ")",
    "remote process exited or there was a network error (" STANDIN_NAME ")",
    "NCCL operation in progress (" STANDIN_NAME ")",
  };
  return result >= 0 && result < ncclNumResults ? full[result]
                                                : "unknown result code (" STANDIN_NAME ")";
}

SI_API const char *ncclGetLastError(ncclComm_t comm) {
  static _Thread_local char copy[SI_TEXT];
  (void)comm;
  si_lock();
  memcpy(copy, last_error, sizeof copy);
  si_unlock();
  return copy;
}

/* ---------------------------------------------------------------- versions, memory */

int si_version(void) { return (int)standin_env("STANDIN_NCCL_VERSION", NCCL_VERSION_CODE); }

SI_API ncclResult_t ncclGetVersion(int *version) {
  if (!version) return si_fail(ncclInvalidArgument, "GetVersion : version argument is NULL");
  *version = si_version();
  return ncclSuccess;
}

/* ----------------------------------------------------------------------- unique ids */

/* 8 bytes of noise, the name of the object with its zero, a hash of both at the end. */
ncclResult_t si_new_id(ncclUniqueId *id, char *object) {
  unsigned char noise[24];
  made_id *m = calloc(1, sizeof *m);
  if (!id || !m || getrandom(noise, sizeof noise, 0) != sizeof noise) {
    free(m);
    return si_fail(ncclInvalidArgument, "GetUniqueId : out argument is NULL");
  }
  size_t at = shm_prefix(m->name, sizeof m->name);
  for (size_t i = 8; i < sizeof noise; i++)
    at += (size_t)snprintf(m->name + at, sizeof m->name - at, "%02x", noise[i]);
  if (!shm_make(m->name, &m->head)) {
    free(m);
    return si_fail(ncclSystemError, "no shared memory object for a unique id");
  }
  memset(id, 0, sizeof *id);
  memcpy(id->internal, noise, 8);
  memcpy(id->internal + 8, m->name, at + 1);
  uint64_t sum = si_hash(0, id->internal, sizeof id->internal - 8);
  memcpy(id->internal + sizeof id->internal - 8, &sum, 8);
  si_lock();
  m->next = ids;
  ids = m;
  si_unlock();
  if (object) memcpy(object, m->name, sizeof m->name);
  standin_trace("id id=%016llx", (unsigned long long)si_hash(0, id, sizeof *id));
  return ncclSuccess;
}

SI_API ncclResult_t ncclGetUniqueId(ncclUniqueId *id) { return si_new_id(id, NULL); }

bool si_read_id(const ncclUniqueId *id, char *object) {
  uint64_t sum;
  memcpy(&sum, id->internal + sizeof id->internal - 8, 8);
  memcpy(object, id->internal + 8, SHM_NAME);
  return sum == si_hash(0, id->internal, sizeof id->internal - 8) && memchr(object, 0, SHM_NAME);
}

/* ---------------------------------------------------------------------------- table */

ncclComm_t si_comm_new(void) {
  ncclComm_t c = calloc(1, sizeof *c);
  if (!c) return NULL;
  si_lock();
  c->next = comms;
  comms = c;
  si_unlock();
  return c;
}

ncclComm_t si_comm_first(void) { return comms; }

void si_comm_release(ncclComm_t c) {
  rig_take(RIG_DEVICE, c->device, c->suspended - c->memory);
  c->memory = 0;
  shm_leave(&c->seg);
  si_config_free(c);
  c->life = LIFE_DEAD;
  if (c->job) si_group_unref(c->job);
  c->job = NULL;
}

const char *si_comm_label(const struct ncclComm *c, char *text, size_t room) {
  snprintf(text, room, "%s%016llx%s%s (rank %d of %d)", *c->name ? "" : "comm ",
           (unsigned long long)c->id, *c->name ? " " : "", c->name, c->rank, c->nranks);
  return text;
}

void si_comm_wake_all(void) {
  si_lock();
  for (ncclComm_t c = comms; c; c = c->next)
    if (c->seg.name[0]) shm_wake(&c->seg);
  si_changed();
  si_unlock();
}

ncclResult_t si_comm_alive(ncclComm_t c, const char *call) {
  if (!c) return si_fail(ncclInvalidArgument, "%s : comm argument is NULL", call);
  si_lock();
  ncclComm_t at = comms;
  while (at && at != c) at = at->next;
  si_life life = at ? at->life : LIFE_DEAD;
  si_unlock();
  if (!at)
    return si_wrong(ncclInvalidArgument, "%s: %p is not a communicator; real NCCL would fault here",
                    call, (void *)c);
  if (life == LIFE_DEAD)
    return si_wrong(ncclInvalidArgument,
                    "%s: communicator %s is used after its destroy; real NCCL would fault here",
                    call, *c->name ? c->name : "without a name");
  return ncclSuccess;
}

ncclResult_t si_comm_ready(ncclComm_t c, const char *call) {
  char label[160];
  ncclResult_t r = si_comm_alive(c, call);
  if (r) return r;
  si_lock();
  bool making = c->life == LIFE_MAKING;
  si_unlock();
  r = si_comm_error(c);
  if (r)
    return si_fail(r, "%s: communicator %s is in error %d", call,
                   si_comm_label(c, label, sizeof label), (int)r);
  if (making || atomic_load(&c->busy))
    return si_wrong(
        ncclInvalidArgument,
        "%s: Attempt to use communicator before the previous operation returned ncclSuccess: %s",
        call, si_comm_label(c, label, sizeof label));
  return ncclSuccess;
}

ncclResult_t si_comm_error(ncclComm_t c) {
  int of_call = atomic_load(&c->broken);
  return (ncclResult_t)(of_call ? of_call : atomic_load(&c->proxy));
}

void si_comm_break(ncclComm_t c, ncclResult_t r) {
  int none = 0;
  atomic_compare_exchange_strong(&c->broken, &none, (int)r);
}

/* Abort, revoke and shrink set the abort flag of the last child, too; after a failure NCCL does not
** forget it. */
void si_comm_check_unmade(ncclComm_t c, const char *call) {
  char label[160];
  si_lock();
  bool gone = c->unmade && c->unmade->life == LIFE_DEAD;
  si_unlock();
  if (gone)
    standin_violation("%s of %s after what could not be made from it has ended: NCCL writes to "
                      "memory that it has freed",
                      call, si_comm_label(c, label, sizeof label));
}

/* Reads through the caller's pointer as NCCL does: a freed name is seen here, or by a sanitizer. */
void si_comm_check_name(ncclComm_t c, const char *call) {
  if (!c->name_kept || strncmp(c->name, c->name_kept, sizeof c->name - 1) == 0) return;
  c->name_kept = NULL;
  standin_violation("%s: the commName of %s has changed or was freed while the communicator lives; "
                    "NCCL keeps the pointer",
                    call, c->name);
}

/* ------------------------------------------------------------------------ questions */

SI_API ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t *error) {
  ncclResult_t r = si_comm_alive(comm, "ncclCommGetAsyncError");
  if (r) return r;
  if (!error)
    return si_fail(ncclInvalidArgument, "ncclCommGetAsyncError : asyncError argument is NULL");
  *error = atomic_load(&comm->busy) ? ncclInProgress : si_comm_error(comm);
  return ncclSuccess;
}

static ncclResult_t ask(ncclComm_t comm, const char *call, size_t field, int *out) {
  ncclResult_t r = si_comm_ready(comm, call);
  if (r) return r;
  if (!out) return si_fail(ncclInvalidArgument, "%s : the result argument is NULL", call);
  memcpy(out, (const char *)comm + field, sizeof *out);
  return ncclSuccess;
}

SI_API ncclResult_t ncclCommCount(const ncclComm_t comm, int *count) {
  return ask(comm, "ncclCommCount", offsetof(struct ncclComm, nranks), count);
}

SI_API ncclResult_t ncclCommCuDevice(const ncclComm_t comm, int *device) {
  return ask(comm, "ncclCommCuDevice", offsetof(struct ncclComm, device), device);
}

SI_API ncclResult_t ncclCommUserRank(const ncclComm_t comm, int *rank) {
  return ask(comm, "ncclCommUserRank", offsetof(struct ncclComm, rank), rank);
}

/* ------------------------------------------------------------------ beginning and end */

__attribute__((constructor)) static void the_beginning(void) {
  pthread_condattr_t attr;
  int v = si_version();
  pthread_condattr_init(&attr);
  pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
  pthread_cond_init(&changed, &attr);
  pthread_condattr_destroy(&attr);
  standin_log("loaded as " STANDIN_LIBRARY
              ", plays NCCL %d.%d.%d; no result of it is a result of a GPU",
              v / 10000, v / 100 % 100, v % 100);
}

/* As if this process were killed now, as the others see it; for tests under a launcher that would
** end the job. */
SI_API void standin_vanish(void);
SI_API void standin_vanish(void) {
  si_lock();
  for (ncclComm_t c = comms; c; c = c->next) {
    if (c->life == LIFE_DEAD || !c->seg.name[0]) continue;
    atomic_store(&c->stop, 1);
    shm_lock(&c->seg);
    c->seg.slot[c->rank].dead = 1;
    shm_changed(&c->seg);
    shm_unlock(&c->seg);
  }
  si_unlock();
}

__attribute__((destructor)) static void the_end(void) {
  char label[160];
  si_lock();
  for (ncclComm_t c = comms; c; c = c->next) {
    if (c->life == LIFE_DEAD) continue;
    standin_violation("leak: communicator %s was never destroyed",
                      si_comm_label(c, label, sizeof label));
    if (c->seg.name[0]) shm_abandon(&c->seg, true);
  }
  for (made_id *m = ids, *next; m; m = next) {
    next = m->next;
    if (!m->head->used)
      standin_violation("leak: a unique id was made and never used (%s)", m->name + 1);
    if (m->head->used && m->head->joined < m->head->nranks)
      standin_log("left: the root thread of a creation that did not end, and its socket");
    shm_drop_head(m->name, m->head, true);
    free(m);
  }
  ids = NULL;
  si_unlock();
  shm_sweep();
}
