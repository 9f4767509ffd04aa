/* SPDX-License-Identifier: MIT
**
** shm.c - see shm.h. Ranks wait on a futex, not on a condition variable, because a process
** that is killed in pthread_cond_wait can block the others for ever; the lock is robust.
** An object is unlinked when its last rank has mapped it, when a rank leaves it early, or, if
** it has failed, at the end of a process that was in it.
*/
#include "shm.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define SLICE 0.1 /* seconds after which a missed wake-up is noticed */

uint64_t si_hash(uint64_t h, const void *data, size_t n) {
  const unsigned char *p = data;
  if (!h) h = 0xcbf29ce484222325u;
  for (size_t i = 0; i < n; i++) h = (h ^ p[i]) * 0x100000001b3u;
  return h;
}

static size_t aligned(size_t n) { return (n + 4095) & ~(size_t)4095; }

static size_t size_of(int nranks) {
  size_t n = (size_t)nranks;
  return aligned(sizeof(shm_head)) + aligned(n * sizeof(shm_slot))
         + aligned(n * n * sizeof(shm_pair)) + n * SHM_PAYLOAD + n * n * SHM_PARCEL;
}

/* Fills the head once. The caller holds the file's lock or is alone. */
static bool fill_head(int fd) {
  if (ftruncate(fd, (off_t)aligned(sizeof(shm_head)))) return false;
  shm_head *h = mmap(NULL, sizeof *h, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (h == MAP_FAILED) return false;
  pthread_mutexattr_t attr;
  pthread_mutexattr_init(&attr);
  pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
  pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST);
  pthread_mutex_init(&h->lock, &attr);
  pthread_mutexattr_destroy(&attr);
  h->ready = 1;
  munmap(h, sizeof *h);
  return true;
}

static shm_head *map_head(int fd) {
  void *p = mmap(NULL, sizeof(shm_head), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  return p == MAP_FAILED ? NULL : p;
}

/* A rank may have died while it held the lock; each change is a few words, so the data is
** usable. */
static void lock_head(shm_head *h) {
  if (pthread_mutex_lock(&h->lock) == EOWNERDEAD) pthread_mutex_consistent(&h->lock);
}

bool shm_make(const char *name, shm_head **head) {
  int fd = shm_open(name, O_RDWR | O_CREAT | O_EXCL, 0600);
  if (fd < 0) return false;
  *head = fill_head(fd) ? map_head(fd) : NULL;
  close(fd);
  if (!*head) shm_unlink(name);
  return *head != NULL;
}

void shm_drop_head(const char *name, shm_head *head, bool unlink_too) {
  if (unlink_too) {
    lock_head(head);
    if (!head->unlinked) shm_unlink(name);
    head->unlinked = 1;
    pthread_mutex_unlock(&head->lock);
  }
  munmap(head, sizeof *head);
}

bool shm_mark_used(const char *name) {
  int fd = shm_open(name, O_RDWR, 0);
  if (fd < 0) return false;
  shm_head *h = map_head(fd);
  close(fd);
  if (!h) return false;
  lock_head(h);
  h->used = 1;
  pthread_mutex_unlock(&h->lock);
  shm_drop_head(name, h, true);
  return true;
}

/* ------------------------------------------------------------------ joining, leaving */

static int open_object(const char *name, bool create) {
  int fd = shm_open(name, create ? O_RDWR | O_CREAT : O_RDWR, 0600);
  struct stat st;
  if (fd < 0 || !create) return fd;
  flock(fd, LOCK_EX);
  bool ok = fstat(fd, &st) == 0 && (st.st_size > 0 || fill_head(fd));
  flock(fd, LOCK_UN);
  if (ok) return fd;
  close(fd);
  return -1;
}

static void lay_out(shm *s, char *at) {
  size_t n = (size_t)s->nranks;
  s->head = (shm_head *)at, at += aligned(sizeof(shm_head));
  s->slot = (shm_slot *)at, at += aligned(n * sizeof(shm_slot));
  s->pair = (shm_pair *)at, at += aligned(n * n * sizeof(shm_pair));
  s->payload = at, at += n * SHM_PAYLOAD;
  s->parcel = at;
}

/* The first rank says how many there are. */
static bool agree_on_size(shm_head *h, int fd, int nranks, char *text) {
  bool ok = true;
  lock_head(h);
  h->used = 1;
  if (h->poison[0]) {
    snprintf(text, SI_TEXT, "%.900s", h->poison);
    ok = false;
  } else if (!h->nranks) {
    ok = ftruncate(fd, (off_t)size_of(nranks)) == 0;
    if (ok) h->nranks = nranks;
    if (!ok) snprintf(text, SI_TEXT, "no shared memory for %d ranks: %s", nranks, strerror(errno));
  } else if (h->nranks != nranks) {
    snprintf(text, SI_TEXT, "nranks differ: %d here, %d on another rank; " STANDIN_HANG, nranks,
             h->nranks);
    snprintf(h->poison, sizeof h->poison, "%.900s", text);
    ok = false;
  }
  if (!ok) {
    h->pulse++;
    syscall(SYS_futex, &h->pulse, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
  }
  pthread_mutex_unlock(&h->lock);
  return ok;
}

bool shm_join(shm *s, const char *name, int nranks, int rank, bool create, char *text) {
  int fd = open_object(name, create);
  if (fd < 0) {
    snprintf(text, SI_TEXT,
             "the unique id names no communicator in the making (used before, given up, or not of "
             "ncclGetUniqueId); %s",
             STANDIN_HANG);
    return false;
  }
  shm_head *h = map_head(fd);
  bool ok = h && agree_on_size(h, fd, nranks, text);
  s->nranks = nranks, s->rank = rank, s->child = create, s->bytes = size_of(nranks);
  void *all = ok ? mmap(NULL, s->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) : MAP_FAILED;
  if (!h || (ok && all == MAP_FAILED))
    snprintf(text, SI_TEXT, "cannot map %s: %s", name, strerror(errno));
  if (h) munmap(h, sizeof *h);
  close(fd);
  if (all == MAP_FAILED) return false;
  lay_out(s, all);
  snprintf(s->name, sizeof s->name, "%s", name);
  shm_lock(s);
  bool twice = s->slot[rank].taken;
  if (!twice) {
    s->slot[rank].taken = 1;
    s->slot[rank].pid = (int)getpid();
    if (++s->head->joined == nranks) {
      shm_unlink(name);
      s->head->unlinked = 1;
    }
    shm_changed(s);
  }
  shm_unlock(s);
  if (!twice) return true;
  snprintf(text, SI_TEXT, "rank %d of %d is there twice; " STANDIN_HANG, rank, nranks);
  shm_poison(s, text);
  shm_leave(s);
  return false;
}

/* A failed object keeps its name until the process ends, so that late ranks can read the reason. */
typedef struct failed {
  struct failed *next;
  char name[SHM_NAME];
} failed;

static pthread_mutex_t failed_lock = PTHREAD_MUTEX_INITIALIZER;
static failed *all_failed;

static bool unlink_later(const char *name) {
  failed *f = malloc(sizeof *f);
  if (!f) return false;
  snprintf(f->name, sizeof f->name, "%s", name);
  pthread_mutex_lock(&failed_lock);
  f->next = all_failed;
  all_failed = f;
  pthread_mutex_unlock(&failed_lock);
  return true;
}

void shm_sweep(void) {
  for (failed *f = all_failed, *next; f; f = next) {
    next = f->next;
    shm_unlink(f->name);
    free(f);
  }
  all_failed = NULL;
}

void shm_abandon(shm *s, bool at_end) {
  shm_lock(s);
  s->slot[s->rank].gone = 1;
  bool now = at_end || s->child || !s->head->poison[0];
  if (!s->head->unlinked && (now || !unlink_later(s->name))) {
    shm_unlink(s->name);
    s->head->unlinked = 1;
  }
  shm_changed(s);
  shm_unlock(s);
}

void shm_leave(shm *s) {
  if (!s->name[0]) return;
  shm_abandon(s, false);
  munmap(s->head, s->bytes);
  *s = (shm){ .nranks = s->nranks, .rank = s->rank };
}

/* --------------------------------------------------------------------------- waiting */

void shm_lock(shm *s) { lock_head(s->head); }
void shm_unlock(shm *s) { pthread_mutex_unlock(&s->head->lock); }

void shm_changed(shm *s) {
  s->head->pulse++;
  syscall(SYS_futex, &s->head->pulse, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

void shm_wake(shm *s) {
  shm_lock(s);
  shm_changed(s);
  shm_unlock(s);
}

static bool stopped(shm_stop stop) {
  for (int i = 0; i < 2; i++)
    if (stop.flag[i] && atomic_load(stop.flag[i])) return true;
  return false;
}

shm_end shm_wait(shm *s, double until, shm_stop stop) {
  if (s->head->poison[0]) return SHM_POISONED;
  if (stopped(stop)) return SHM_STOPPED;
  double left = until - standin_now();
  if (left <= 0) return SHM_LATE;
  if (left > SLICE) left = SLICE;
  struct timespec t = { 0, (long)(left * 1e9) };
  uint32_t pulse = s->head->pulse;
  shm_unlock(s);
  syscall(SYS_futex, &s->head->pulse, FUTEX_WAIT, pulse, &t, NULL, 0);
  shm_lock(s);
  return SHM_OK;
}

void shm_poison(shm *s, const char *text) {
  shm_lock(s);
  if (!s->head->poison[0]) snprintf(s->head->poison, sizeof s->head->poison, "%.900s", text);
  shm_changed(s);
  shm_unlock(s);
}

uint64_t shm_arrive(shm *s, int kind) {
  shm_lock(s);
  uint64_t number = ++s->slot[s->rank].met[kind];
  shm_changed(s);
  shm_unlock(s);
  return number;
}

/* The ranks that are not at the meeting, as text. */
static void missing(shm *s, int kind, uint64_t number, char *text) {
  size_t at = (size_t)snprintf(text, SI_TEXT, "missing rank");
  for (int r = 0; r < s->nranks && at < SI_TEXT / 2; r++)
    if (s->slot[r].met[kind] < number) at += (size_t)snprintf(text + at, SI_TEXT - at, " %d", r);
}

void shm_reason(shm *s, char *text) {
  snprintf(text, SI_TEXT, "%.900s",
           s->head->poison[0] ? s->head->poison : "another rank gave up; " STANDIN_HANG);
}

bool shm_is_dead(const shm_slot *slot) {
  return slot->dead || (slot->pid && kill(slot->pid, 0) != 0 && errno == ESRCH);
}

shm_end shm_await(shm *s, int kind, uint64_t number, shm_stop stop, char *text) {
  double until = standin_now() + standin_deadline();
  shm_end end = SHM_OK;
  int r = 0;
  shm_lock(s);
  while (end == SHM_OK) {
    while (r < s->nranks && s->slot[r].met[kind] >= number) r++;
    if (r == s->nranks) break;
    end = kind == MEET_DATA && shm_is_dead(&s->slot[r]) ? SHM_DIED : shm_wait(s, until, stop);
  }
  uint64_t *gone = &s->head->given_up[kind];
  if (end == SHM_LATE) missing(s, kind, number, text);
  if (end == SHM_LATE && !*gone) *gone = number;
  if (end == SHM_OK && *gone && *gone <= number) end = SHM_POISONED;
  if (end == SHM_POISONED) shm_reason(s, text);
  if (end == SHM_STOPPED) snprintf(text, SI_TEXT, "aborted");
  shm_unlock(s);
  return end;
}

shm_end shm_meet(shm *s, int kind, shm_stop stop, char *text) {
  return shm_await(s, kind, shm_arrive(s, kind), stop, text);
}

size_t shm_prefix(char *name, size_t room) {
  const char *tag = getenv("STANDIN_TAG");
  return (size_t)snprintf(name, room, "/mg-standin-%.12s%s", tag ? tag : "", tag ? "-" : "");
}
