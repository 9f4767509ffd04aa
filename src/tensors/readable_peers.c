/* SPDX-License-Identifier: MIT
**
** readable_peers.c - find out which ranks can read which: each rank shows a card to the others, and tries to read
** those of its host, user and process ids. Also boards, and reading bytes of other processes: readable_peers.h.
*/
#include "tensors/readable_peers.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

struct mgrid_card {
  uint64_t key, cookie; /* ranks with the same key may try to read each other; 0: none */
  uint64_t at;          /* the address of the cookie in its memory */
  int32_t  pid, file;
};

static int64_t whole_pages(int64_t bytes) { return (bytes + 4095) / 4096 * 4096; }

bool mgrid_board_grow(mgrid_reading *r, int64_t size) {
  int64_t was = r->board ? r->board->size : 0;
  if (size <= was) return true;
  if (was && size < 2 * was) size = 2 * was;
  size = whole_pages(size);
  if ((errno = posix_fallocate(r->file, was, size - was))) return false;
  void *all = was ? mremap(r->board, (size_t)was, (size_t)size, MREMAP_MAYMOVE)
                  : mmap(NULL, (size_t)size, PROT_READ | PROT_WRITE, MAP_SHARED, r->file, 0);
  if (all == MAP_FAILED) return false;
  r->board = all;
  r->board->size = size;
  return true;
}

/* The same for a file that does not exist yet. */
static bool begin_board(mgrid_reading *r) {
  r->file = memfd_create("moongrid", MFD_CLOEXEC);
  return r->file >= 0 && mgrid_board_grow(r, (int64_t)sizeof *r->board);
}

static void end_board(mgrid_reading *r) {
  if (r->board) munmap(r->board, (size_t)r->board->size);
  if (r->file >= 0) close(r->file);
}

static void free_reading(mgrid_attached *a) {
  mgrid_reading *r = (mgrid_reading *)a;
  mgrid_reading_end(r);
  for (size_t i = 0; i < r->n; i++)
    if (r->near[i].board) munmap(r->near[i].board, (size_t)r->near[i].size);
  end_board(r);
  free(r->near);
  free(r->cards);
  free(r);
}

mgrid_reading *mgrid_reading_of(const mgrid_backend *b) { return (mgrid_reading *)mgrid_attached_of(b, free_reading); }

mgrid_status mgrid_reading_new(mgrid_backend *b, mgrid_error *err) {
  if (mgrid_reading_of(b)) return MGRID_OK;
  mgrid_reading *r = calloc(1, sizeof *r);
  if (!r) return mgrid_oom(err);
  r->base.free = free_reading;
  r->file = -1;
  r->cards = malloc((size_t)b->world * sizeof *r->cards);
  if (!r->cards) {
    free(r);
    return mgrid_oom(err);
  }
  begin_board(r);
  mgrid_attach(b, &r->base);
  return MGRID_OK;
}

bool mgrid_reading_found(const mgrid_reading *r) { return r->found; }
bool mgrid_reading_on(const mgrid_reading *r) { return r && r->on; }

/* Return what another process needs to know to read this one; `r` has a board. */
static mgrid_card shown(mgrid_reading *r) {
  const uint64_t salt[] = { (uint64_t)getpid(), (uint64_t)(uintptr_t)r, (uint64_t)(mgrid_now() * 1e9) };
  r->cookie = r->board->cookie = XXH3_64bits(salt, sizeof salt);
  return (mgrid_card){ .cookie = r->cookie, .at = (uint64_t)(uintptr_t)&r->cookie, .pid = getpid(), .file = r->file };
}

/* Return this rank's card. Process ids mean the same within one namespace of a host. Ranks of another user are left
** alone, even if the kernel would allow it. */
static mgrid_card card_of(mgrid_backend *b) {
  mgrid_reading *r = mgrid_reading_of(b);
  struct stat    ids;
  if (!r->board || !b->ops->transport->reads(b) || stat("/proc/self/ns/pid", &ids)) return (mgrid_card){ .key = 0 };
  const uint64_t who[] = { mgrid_machine_id(), (uint64_t)geteuid(), (uint64_t)ids.st_dev, (uint64_t)ids.st_ino };
  mgrid_card     c = shown(r);
  c.key = XXH3_64bits(who, sizeof who) | 1;
  return c;
}

int mgrid_mapped_renew(mgrid_mapped *n, int64_t size) {
  char path[64];
  snprintf(path, sizeof path, "/proc/%d/fd/%d", n->pid, n->file);
  struct stat info; /* another rank chose the file; it must not end before what is read */
  int         file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file < 0) return errno;
  if (fstat(file, &info) || !S_ISREG(info.st_mode) || info.st_size < size) {
    close(file);
    return ESRCH;
  }
  void *all = mmap(NULL, (size_t)size, PROT_READ, MAP_SHARED, file, 0);
  int   failed = all == MAP_FAILED ? errno : 0;
  close(file);
  if (failed) return failed;
  if (n->board) munmap(n->board, (size_t)n->size);
  n->board = all;
  n->size = size;
  return 0;
}

static void advance(struct iovec **v, size_t *n, size_t bytes) {
  while (*n > 0 && bytes >= (*v)->iov_len) bytes -= (*v)->iov_len, ++*v, --*n;
  if (bytes == 0) return;
  (*v)->iov_base = (char *)(*v)->iov_base + bytes;
  (*v)->iov_len -= bytes;
}

int mgrid_read_spans(int pid, size_t nto, struct iovec *to, size_t nfrom, struct iovec *from) {
  while (nto > 0) { /* they may arrive in parts */
    ssize_t n = process_vm_readv(pid, to, nto, from, nfrom, 0);
    if (n <= 0) return n < 0 ? errno : EFAULT;
    advance(&to, &nto, (size_t)n);
    advance(&from, &nfrom, (size_t)n);
  }
  return 0;
}

int mgrid_read_bytes(int pid, void *to, const void *from, size_t bytes) {
  struct iovec here = { to, bytes }, there = { (void *)(uintptr_t)from, bytes };
  return mgrid_read_spans(pid, 1, &here, 1, &there);
}

/* Return whether this rank can read that rank's file and memory, as errno. */
static int try(mgrid_mapped *n, const mgrid_card *c) {
  uint64_t cookie = 0;
  *n = (mgrid_mapped){ .rank = n->rank, .cookie = c->cookie, .pid = c->pid, .file = c->file };
  int failed = mgrid_mapped_renew(n, whole_pages((int64_t)sizeof(mgrid_board)));
  if (!failed) failed = mgrid_read_bytes(n->pid, &cookie, (const void *)(uintptr_t)c->at, sizeof cookie);
  return failed || (cookie == c->cookie && cookie == n->board->cookie) ? failed : ESRCH;
}

struct mgrid_trial {
  mgrid_reading reading; /* only a board, which both processes have */
  mgrid_card    card;
};

mgrid_trial *mgrid_trial_new(void) {
  mgrid_trial *t = calloc(1, sizeof *t);
  if (!t) return NULL;
  if (begin_board(&t->reading)) {
    t->card = shown(&t->reading);
    return t;
  }
  int number = errno;
  mgrid_trial_end(t);
  errno = number;
  return NULL;
}

void mgrid_trial_take(mgrid_trial *t) {
  mgrid_mapped n = { .rank = 0 };
  t->reading.board->number = 1 + (uint64_t)try(&n, &t->card);
}

int mgrid_trial_end(mgrid_trial *t) {
  const mgrid_board *b = t->reading.board;
  int                failed = b ? (int)b->number - 1 : -1;
  end_board(&t->reading);
  free(t);
  return failed;
}

/* Find the group, and try all of its ranks. Return errno; *rank: the rank that it is about. */
static int try_group(mgrid_reading *r, const mgrid_backend *b, int64_t *rank) {
  const uint64_t key = r->cards[b->rank].key;
  size_t         n = 0;
  int            failed = 0;
  for (int64_t i = 0; i < b->world; i++) n += key && r->cards[i].key == key;
  r->near = calloc(n + 1, sizeof *r->near);
  if (!r->near) return ENOMEM;
  for (int64_t i = 0; i < b->world && key && !failed; i++) {
    if (i == b->rank) r->place = r->n;
    if (i == b->rank || r->cards[i].key != key) continue;
    r->near[r->n].rank = *rank = i;
    failed = try(&r->near[r->n++], &r->cards[i]);
  }
  return failed;
}

int64_t mgrid_board_size(const mgrid_reading *r) {
  return (int64_t)(sizeof *r->board + (r->n + 1) * sizeof *r->board->packed);
}

mgrid_status mgrid_reading_find(mgrid_backend *b, const mgrid_offer *o, mgrid_error *err) {
  mgrid_reading   *r = mgrid_reading_of(b);
  const mgrid_card mine = card_of(b);
  int64_t          rank = b->rank;
  mgrid_status     s = b->ops->allgather(b, &mine, r->cards, sizeof mine, err);
  if (s) return s;
  char why[MGRID_REFUSAL];
  int  failed = try_group(r, b, &rank);
  if (!failed && r->n > 0 && !mgrid_board_grow(r, mgrid_board_size(r))) failed = ENOMEM;
  r->on = !failed && r->n > 0; /* so that it can offer */
  mgrid_reading_offer(b, o);
  uint64_t all[] = { !failed, r->n == 0 }; /* all ranks can; no rank has a group */
  s = b->ops->allreduce_min(b, all, 2, err);
  r->found = true;
  r->on = !s && all[0] && !all[1];
  free(r->cards);
  r->cards = NULL;
  if (failed)
    mgrid_log(&b->hooks, MGRID_LOG_DEBUG, "moves go by messages: rank %" PRId64 " cannot be read: %s%s", rank,
              strerror(failed), mgrid_refused_by(failed, why));
  else if (!s)
    mgrid_log(&b->hooks, MGRID_LOG_DEBUG, "moves %s the memory of %zu other ranks of this host",
              r->on ? "read" : "do not read", r->n);
  return s;
}

mgrid_mapped *mgrid_mapped_of(const mgrid_reading *r, int64_t rank) {
  size_t low = 0, high = mgrid_reading_on(r) ? r->n : 0;
  while (low < high) {
    size_t mid = (low + high) / 2;
    if (r->near[mid].rank == rank) return &r->near[mid];
    if (r->near[mid].rank < rank)
      low = mid + 1;
    else
      high = mid;
  }
  return NULL;
}

size_t mgrid_mapped_place(const mgrid_reading *r, const mgrid_mapped *n) {
  size_t i = (size_t)(n - r->near);
  return i + (i >= r->place);
}
