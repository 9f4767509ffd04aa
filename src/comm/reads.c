/* SPDX-License-Identifier: MIT
**
** reads.c - who reads whom, what a rank offers, and how it is read: reads.h.
*/
#include "comm/reads.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>
#include <xxhash.h>

enum {
  DIRECT = 16 << 10,   /* bytes of rows that are read where they lie; shorter ones are packed: scripts/README.md */
  TYPED = 512 << 10,   /* bytes of a piece above which messages, whose datatypes need no packing, are faster */
  APART = 128,         /* bytes of rows that are read to where they belong; many that are shorter are unpacked there */
  MANY = 16,           /* are so many */
  SPANS = 512,         /* of a call, on each side; the kernel takes 1024 */
  UNPACKED = 64 << 10, /* bytes of a call whose rows are unpacked, so that they stay in the nearest caches */
  SOME = 1 << 20,      /* bytes after which others are heard */
  ROOM_LEAST = 512     /* bytes of the window for each rank of the job; with less nothing is packed */
};

/* How a file begins. Behind it are the addresses of the parts, in the memory of its rank, then what is packed. */
typedef struct board {
  uint64_t cookie, number; /* of this one; of the meeting of the move, 0: nothing may be read */
  int64_t  size, parts;    /* bytes of the file; where the addresses begin */
  int64_t  packed[];       /* [group], by rank: where what is packed for it begins; 0: it gets messages */
} board;
enum { NOWHERE = 1 }; /* of board.packed: nothing is */

typedef struct near {
  int64_t  rank;
  uint64_t cookie;
  int      pid, file;
  board   *board; /* mapped, so many bytes of it */
  int64_t  size;
} near;

/* What ranks tell each other of themselves. */
typedef struct card {
  uint64_t key, cookie; /* those with the same key may try to read each other; 0: nobody */
  uint64_t at;          /* of the cookie in its memory */
  int32_t  pid, file;
} card;

struct mgrid_reading {
  uint64_t cookie;
  int      file;
  board   *board; /* of this rank; NULL: it has none */
  bool     found, on;
  size_t   n;
  near    *near;  /* [n], the group without this rank, by rank */
  size_t   place; /* of this rank in the group */
  card    *cards; /* [world], until they are found */
};

static int64_t whole_pages(int64_t bytes) { return (bytes + 4095) / 4096 * 4096; }

/* --------------------------------------------------------------------- who */

/* Make the own file so long, with all its memory. False: errno says why. */
static bool grow(mgrid_reading *r, int64_t size) {
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

/* Likewise of a file that is not there yet. */
static bool begin_board(mgrid_reading *r) {
  r->file = memfd_create("moongrid", MFD_CLOEXEC);
  return r->file >= 0 && grow(r, (int64_t)sizeof *r->board);
}

static void end_board(mgrid_reading *r) {
  if (r->board) munmap(r->board, (size_t)r->board->size);
  if (r->file >= 0) close(r->file);
}

mgrid_status mgrid_reading_new(mgrid_backend *b, mgrid_error *err) {
  if (b->reading) return MGRID_OK;
  mgrid_reading *r = b->reading = calloc(1, sizeof *r);
  if (!r) return mgrid_oom(err);
  r->file = -1;
  r->cards = malloc((size_t)b->world * sizeof *r->cards);
  if (!r->cards) {
    mgrid_reading_free(b);
    return mgrid_oom(err);
  }
  begin_board(r);
  return MGRID_OK;
}

void mgrid_reading_free(mgrid_backend *b) {
  mgrid_reading *r = b->reading;
  mgrid_reading_end(r);
  if (!r) return;
  for (size_t i = 0; i < r->n; i++)
    if (r->near[i].board) munmap(r->near[i].board, (size_t)r->near[i].size);
  end_board(r);
  free(r->near);
  free(r->cards);
  free(r);
  b->reading = NULL;
}

bool mgrid_reading_found(const mgrid_reading *r) { return r->found; }
bool mgrid_reading_on(const mgrid_reading *r) { return r && r->on; }

/* What another process needs to know to read this one; `r` has a board. */
static card shown(mgrid_reading *r) {
  const uint64_t salt[] = { (uint64_t)getpid(), (uint64_t)(uintptr_t)r, (uint64_t)(mgrid_now() * 1e9) };
  r->cookie = r->board->cookie = XXH3_64bits(salt, sizeof salt);
  return (card){ .cookie = r->cookie, .at = (uint64_t)(uintptr_t)&r->cookie, .pid = getpid(), .file = r->file };
}

/* Process ids mean the same in one namespace of a host. What belongs to another user is left alone, whatever the kernel
** would allow. */
static card card_of(mgrid_backend *b) {
  mgrid_reading *r = b->reading;
  struct stat    ids;
  if (!r->board || !b->ops->transport->reads(b) || stat("/proc/self/ns/pid", &ids)) return (card){ .key = 0 };
  const uint64_t who[] = { mgrid_machine_id(), (uint64_t)geteuid(), (uint64_t)ids.st_dev, (uint64_t)ids.st_ino };
  card           c = shown(r);
  c.key = XXH3_64bits(who, sizeof who) | 1;
  return c;
}

/* Map all of another's file, which may have grown. Returns errno. */
static int map(near *n, int64_t size) {
  char path[64];
  snprintf(path, sizeof path, "/proc/%d/fd/%d", n->pid, n->file);
  int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return errno;
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

/* Read spans of another process into as many bytes here, in their order. They may come in parts. Returns errno. */
static int read_spans(int pid, size_t nto, struct iovec *to, size_t nfrom, struct iovec *from) {
  while (nto > 0) {
    ssize_t n = process_vm_readv(pid, to, nto, from, nfrom, 0);
    if (n <= 0) return n < 0 ? errno : EFAULT;
    advance(&to, &nto, (size_t)n);
    advance(&from, &nfrom, (size_t)n);
  }
  return 0;
}

static int read_bytes(int pid, void *to, const void *from, size_t bytes) {
  struct iovec here = { to, bytes }, there = { (void *)(uintptr_t)from, bytes };
  return read_spans(pid, 1, &here, 1, &there);
}

/* Can this rank read that one's file, and its memory? Returns errno. */
static int try(near *n, const card *c) {
  uint64_t cookie = 0;
  *n = (near){ .rank = n->rank, .cookie = c->cookie, .pid = c->pid, .file = c->file };
  int failed = map(n, whole_pages((int64_t)sizeof(board)));
  if (!failed) failed = read_bytes(n->pid, &cookie, (const void *)(uintptr_t)c->at, sizeof cookie);
  return failed || (cookie == c->cookie && cookie == n->board->cookie) ? failed : ESRCH;
}

struct mgrid_trial {
  mgrid_reading reading; /* a board alone, which both processes have */
  card          card;
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
  near n = { .rank = 0 };
  t->reading.board->number = (uint64_t)try(&n, &t->card);
  t->reading.board->parts = 1;
}

int mgrid_trial_end(mgrid_trial *t) {
  const board *b = t->reading.board;
  int          failed = b && b->parts ? (int)b->number : -1;
  end_board(&t->reading);
  free(t);
  return failed;
}

/* Find the group, and try all of it. Returns errno; *rank: of whom. */
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

/* Bytes of a board. */
static int64_t board_size(const mgrid_reading *r) {
  return (int64_t)(sizeof *r->board + (r->n + 1) * sizeof *r->board->packed);
}

mgrid_status mgrid_reading_find(mgrid_backend *b, const mgrid_offer *o, mgrid_error *err) {
  mgrid_reading *r = b->reading;
  const card     mine = card_of(b);
  int64_t        rank = b->rank;
  mgrid_status   s = b->ops->allgather(b, &mine, r->cards, sizeof mine, err);
  if (s) return s;
  char why[MGRID_REFUSAL];
  int  failed = try_group(r, b, &rank);
  if (!failed && r->n > 0 && !grow(r, board_size(r))) failed = ENOMEM;
  r->on = !failed && r->n > 0; /* so that it offers */
  mgrid_reading_offer(b, o);
  uint64_t all[] = { !failed, r->n == 0 }; /* can all; has nobody anybody? */
  s = b->ops->allreduce_min(b, all, 2, err);
  r->found = true;
  r->on = !s && all[0] && !all[1];
  free(r->cards);
  r->cards = NULL;
  if (failed)
    mgrid_log(&b->hooks, MGRID_LOG_DEBUG, "moves go by messages: rank %" PRId64 " cannot be read: %s%s", rank,
              strerror(failed), mgrid_refused_by(failed, why));
  else if (!s)
    mgrid_log(&b->hooks, MGRID_LOG_DEBUG, "moves %s %zu other ranks of this host", r->on ? "read" : "do not read",
              r->n);
  return s;
}

static near *near_of(const mgrid_reading *r, int64_t rank) {
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

/* The place of a near rank in the group, in which this one is, too. */
static size_t place_of(const mgrid_reading *r, const near *n) {
  size_t i = (size_t)(n - r->near);
  return i + (i >= r->place);
}

/* ------------------------------------------------------------------- offer */

int64_t mgrid_reading_room(const mgrid_backend *b, int64_t window) {
  return mgrid_reading_on(b->reading) && window / ROOM_LEAST >= b->world ? window / 2 : 0;
}

/* Both sides know it of a piece. */
static bool is_packed(const mgrid_rows *from) { return from->row < DIRECT; }

/* Are messages faster than to pack it? */
static bool is_for_messages(const mgrid_backend *b, const mgrid_pairs *p, const mgrid_move_piece *piece,
                            const mgrid_rows *from) {
  mgrid_rows to;
  if (!b->ops->transport->typed || piece->bytes <= TYPED || from->row < MGRID_ROW_LEAST) return false;
  mgrid_rows_of(&to, p, piece, false, NULL);
  return to.row >= MGRID_ROW_LEAST;
}

/* Not, for example, if it is a device's. */
static bool is_readable(const void *data) {
  char byte;
  return read_bytes(getpid(), &byte, data, 1) == 0;
}

/* Pack what is packed of the message to a peer, from *end of the file on. Returns where it begins; 0: it does not fit. */
static int64_t pack(mgrid_backend *b, const mgrid_offer *o, int64_t peer, int64_t *end, int64_t most) {
  mgrid_reading *r = b->reading;
  mgrid_stream   stream;
  int64_t        at = *end;
  bool           more = true, fits = true;
  mgrid_stream_begin(&stream, o->move, MGRID_SENDS, peer);
  while (fits && (fits = !mgrid_stream_next(&stream, &more, NULL)) && more) {
    const mgrid_move_piece *piece = &stream.piece;
    mgrid_rows              rows;
    mgrid_rows_of(&rows, &o->move->pairs, piece, true, o->part[piece->tensor]);
    if (!is_packed(&rows)) continue;
    fits = piece->bytes <= most - at && !is_for_messages(b, &o->move->pairs, piece, &rows) && grow(r, at + piece->bytes)
           && !mgrid_rows_copy(b, &rows, (char *)r->board + at, piece->bytes, MGRID_PACK, NULL);
    at += piece->bytes;
  }
  mgrid_stream_end(&stream);
  int64_t begun = !fits ? 0 : at > *end ? *end : NOWHERE;
  if (fits) *end = at;
  return begun;
}

void mgrid_reading_offer(mgrid_backend *b, const mgrid_offer *o) {
  mgrid_reading    *r = b->reading;
  const mgrid_move *m = o->move;
  if (!mgrid_reading_on(r)) return;
  int64_t parts = board_size(r), end = parts + (int64_t)(m->pairs.n * sizeof *o->part);
  int64_t most = end + mgrid_reading_room(b, o->window);
  bool    can = grow(r, end);
  for (size_t i = 0; i < m->pairs.n && can; i++)
    can = !mgrid_pairs_converts(&m->pairs, i) && (!o->part[i] || is_readable(o->part[i]));
  memset(r->board->packed, 0, (r->n + 1) * sizeof *r->board->packed);
  if (can) memcpy((char *)r->board + (r->board->parts = parts), o->part, m->pairs.n * sizeof *o->part);
  for (size_t i = 0; i < m->npeers && can; i++) {
    const near *n = m->peer[i].send > 0 ? near_of(r, m->peer[i].rank) : NULL;
    int64_t     at = n ? pack(b, o, n->rank, &end, most) : 0;
    if (n) r->board->packed[place_of(r, n)] = at; /* of a board that may have moved meanwhile */
  }
  uint64_t number = r->found ? b->meetings + 1 : b->meetings; /* of the one to come, or that was */
  __atomic_store_n(&r->board->number, number, __ATOMIC_SEQ_CST);
}

bool mgrid_reading_offered(const mgrid_reading *r, int64_t peer) {
  const near *n = near_of(r, peer);
  return n && r->board->packed[place_of(r, n)];
}

void mgrid_reading_end(mgrid_reading *r) {
  if (r && r->board) __atomic_store_n(&r->board->number, 0, __ATOMIC_SEQ_CST);
}

/* -------------------------------------------------------------------- read */

struct mgrid_read {
  const mgrid_move *move;
  mgrid_backend    *backend;
  char *const      *to;   /* [tensors] */
  near             *near; /* the peer; NULL: no message was begun */
  mgrid_stream      stream;
  int64_t           packed; /* where the next piece that was packed begins */
  mgrid_rows        there, here;
  int64_t           left;          /* bytes of the piece to come, which is read from there */
  size_t            nhere, nthere; /* spans to read */
  int64_t           bytes;         /* of them */
  struct iovec      to_span[SPANS], from_span[SPANS];
  char              buffer[UNPACKED];
};

mgrid_read *mgrid_read_new(const mgrid_move *m, mgrid_backend *b, char *const *to, mgrid_error *err) {
  mgrid_read *r = malloc(sizeof *r);
  if (!r) return mgrid_null_oom(err);
  r->move = m, r->backend = b, r->to = to;
  r->near = NULL;
  mgrid_stream_begin(&r->stream, m, MGRID_RECEIVES, 0);
  return r;
}

void mgrid_read_free(mgrid_read *r) {
  if (r) mgrid_stream_end(&r->stream);
  free(r);
}

/* Is it in this move still? */
static bool is_in_move(const mgrid_read *r, const near *n) {
#ifndef __SANITIZE_THREAD__ /* knows no fences */
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
#endif
  return __atomic_load_n(&n->board->number, __ATOMIC_SEQ_CST) == r->backend->meetings;
}

static mgrid_outcome gave_up(const near *n, mgrid_error *err) {
  mgrid_fail(err, MGRID_OTHER_RANK, "rank %" PRId64 " gave up", n->rank);
  return MGRID_GAVE_UP;
}

static mgrid_outcome failed_to_read(const mgrid_read *r, const near *n, int failed, mgrid_error *err) {
  if (failed == ESRCH || !is_in_move(r, n)) return gave_up(n, err);
  return mgrid_fail(err, MGRID_BACKEND, "the memory of rank %" PRId64 " cannot be read: %s", n->rank, strerror(failed));
}

mgrid_outcome mgrid_read_ask(mgrid_read *r, int64_t peer, bool *reads, mgrid_error *err) {
  const mgrid_reading *reading = r->backend->reading;
  near                *n = near_of(reading, peer);
  *reads = false;
  if (!n) return MGRID_OK;
  if (!is_in_move(r, n)) return gave_up(n, err);
  int failed = n->board->size > n->size ? map(n, n->board->size) : 0;
  if (failed) return failed_to_read(r, n, failed, err);
  *reads = n->board->packed[reading->place];
  return MGRID_OK;
}

/* Another span, or more of the last one. */
static void add_span(struct iovec *spans, size_t *n, char *at, int64_t bytes) {
  struct iovec *last = *n > 0 ? &spans[*n - 1] : NULL;
  if (last && (char *)last->iov_base + last->iov_len == at)
    last->iov_len += (size_t)bytes;
  else
    spans[(*n)++] = (struct iovec){ at, (size_t)bytes };
}

/* Rows of the next bytes, as far as there is room for spans of them. */
static int64_t add_rows(struct iovec *spans, size_t *n, mgrid_rows *rows, int64_t bytes) {
  int64_t left = bytes;
  while (left > 0 && *n < SPANS) {
    int64_t k = rows->row - rows->done < left ? rows->row - rows->done : left;
    add_span(spans, n, rows->at + rows->done, k);
    mgrid_rows_pass(rows, k);
    left -= k;
  }
  return bytes - left;
}

static mgrid_outcome read_now(mgrid_read *r, mgrid_error *err) {
  int failed = read_spans(r->near->pid, r->nhere, r->to_span, r->nthere, r->from_span);
  if (failed) return failed_to_read(r, r->near, failed, err);
  r->backend->read += r->bytes;
  r->nhere = r->nthere = 0;
  r->bytes = 0;
  return MGRID_OK;
}

/* The next piece of which anything is read where it lies; what was packed goes to where it belongs on the way. */
static mgrid_status next_piece(mgrid_read *r, bool *more, mgrid_error *err) {
  mgrid_status s = MGRID_OK;
  for (*more = true; *more && r->left == 0 && !s;) {
    const mgrid_move_piece *piece = &r->stream.piece;
    s = mgrid_stream_next(&r->stream, more, err);
    if (s || !*more) break;
    char *const *part = (char *const *)((const char *)r->near->board + r->near->board->parts);
    mgrid_rows_of(&r->here, &r->move->pairs, piece, false, r->to[piece->tensor]);
    mgrid_rows_of(&r->there, &r->move->pairs, piece, true, part[piece->tensor]);
    if (is_packed(&r->there)) {
      char *at = (char *)r->near->board + r->packed; /* only read */
      s = mgrid_rows_copy(r->backend, &r->here, at, piece->bytes, MGRID_UNPACK, err);
      r->packed += piece->bytes;
      r->backend->read += piece->bytes;
    } else {
      r->left = piece->bytes;
    }
  }
  return s;
}

/* Many short rows here: read them one behind the other, and put them where they belong. */
static mgrid_outcome unpack(mgrid_read *r, mgrid_error *err) {
  mgrid_outcome s = r->bytes ? read_now(r, err) : MGRID_OK;
  if (s) return s;
  int64_t bytes = add_rows(r->from_span, &r->nthere, &r->there, r->left < UNPACKED ? r->left : UNPACKED);
  add_span(r->to_span, &r->nhere, r->buffer, r->bytes = bytes);
  r->left -= bytes;
  s = read_now(r, err);
  if (!s) s = mgrid_rows_copy(r->backend, &r->here, r->buffer, bytes, MGRID_UNPACK, err);
  return s;
}

/* Rows from where they are to where they belong. */
static mgrid_outcome add(mgrid_read *r, mgrid_error *err) {
  while (r->left > 0 && r->nhere < SPANS && r->nthere < SPANS && r->bytes < SOME) {
    int64_t n = r->left < SOME - r->bytes ? r->left : SOME - r->bytes, row = r->here.row - r->here.done;
    n = add_rows(r->from_span, &r->nthere, &r->there, row < n ? row : n);
    add_rows(r->to_span, &r->nhere, &r->here, n);
    r->left -= n;
    r->bytes += n;
  }
  return r->nhere == SPANS || r->nthere == SPANS || r->bytes >= SOME ? read_now(r, err) : MGRID_OK;
}

mgrid_outcome mgrid_read_some(mgrid_read *r, int64_t peer, bool *more, mgrid_error *err) {
  const mgrid_reading *reading = r->backend->reading;
  int64_t              before = r->backend->read;
  mgrid_outcome        s = MGRID_OK;
  if (!r->near) {
    r->near = near_of(reading, peer);
    r->packed = r->near->board->packed[reading->place];
    r->left = r->bytes = 0;
    r->nhere = r->nthere = 0;
    mgrid_stream_end(&r->stream);
    mgrid_stream_begin(&r->stream, r->move, MGRID_RECEIVES, peer);
  }
  for (*more = true; *more && !s && r->backend->read - before < SOME;) {
    s = next_piece(r, more, err);
    if (s || !*more) break;
    s = r->here.row < APART && r->left >= MANY * r->here.row ? unpack(r, err) : add(r, err);
  }
  if (s || *more) return s;
  const near *n = r->near;
  if (r->bytes) s = read_now(r, err);
  r->near = NULL;
  return s || is_in_move(r, n) ? s : gave_up(n, err);
}
