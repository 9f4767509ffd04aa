/* SPDX-License-Identifier: MIT
**
** peer_memory.c - what a rank offers to its readers, and how they read it: peer_memory.h.
*/
#include "tensors/readable_peers.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
  DIRECT = 16 << 10,   /* bytes of rows that are read in place; shorter ones are packed: scripts/README.md */
  TYPED = 512 << 10,   /* bytes of a piece above which messages are faster, as MPI's datatypes need no packing */
  APART = 128,         /* bytes of rows that are read directly to their place; shorter ones are unpacked there, */
  MANY = 16,           /* if there are at least this many */
  SPANS = 512,         /* of a call, on each side; the kernel accepts 1024 */
  UNPACKED = 64 << 10, /* bytes of a call whose rows are unpacked, so that they stay in the fastest caches */
  SOME = 1 << 20,      /* bytes to read before polling again */
  ROOM_LEAST = 512     /* bytes of the window for each rank of the job; with less nothing is packed */
};

/* ------------------------------------------------------------------- offer */

int64_t mgrid_reading_room(const mgrid_backend *b, int64_t window) {
  return mgrid_reading_on(mgrid_reading_of(b)) && window / ROOM_LEAST >= b->world ? window / 2 : 0;
}

/* Return whether rows are packed; both sides compute the same. */
static bool is_packed(const mgrid_rows *from) { return from->row < DIRECT; }

/* Return whether messages are faster than packing. */
static bool is_for_messages(const mgrid_backend *b, const mgrid_pairs *p, const mgrid_move_piece *piece,
                            const mgrid_rows *from) {
  mgrid_rows to;
  if (!b->ops->transport->typed || piece->bytes <= TYPED || from->row < MGRID_ROW_LEAST) return false;
  mgrid_rows_of(&to, p, piece, false, NULL);
  return to.row >= MGRID_ROW_LEAST;
}

/* Return whether the CPU can read the memory. It cannot if it is a device's, for example. */
static bool is_readable(const void *data) {
  char byte;
  return mgrid_read_bytes(getpid(), &byte, data, 1) == 0;
}

/* Pack the short rows of the message to a peer, from *end of the file on. Return where they start; 0: they do not
** fit. */
static int64_t pack(mgrid_backend *b, const mgrid_offer *o, int64_t peer, int64_t *end, int64_t most) {
  mgrid_reading *r = mgrid_reading_of(b);
  mgrid_stream   stream;
  int64_t        at = *end;
  bool           more = true, fits = true;
  mgrid_stream_begin(&stream, o->move, MGRID_SENDS, peer);
  while (fits && (fits = !mgrid_stream_next(&stream, &more, NULL)) && more) {
    const mgrid_move_piece *piece = &stream.piece;
    mgrid_rows              rows;
    mgrid_rows_of(&rows, &o->move->pairs, piece, true, o->part[piece->tensor]);
    if (!is_packed(&rows)) continue;
    fits = piece->bytes <= most - at && !is_for_messages(b, &o->move->pairs, piece, &rows)
           && mgrid_board_grow(r, at + piece->bytes)
           && !mgrid_rows_copy(b, &rows, (char *)r->board + at, piece->bytes, MGRID_PACK, NULL);
    at += piece->bytes;
  }
  mgrid_stream_end(&stream);
  int64_t begun = !fits ? 0 : at > *end ? *end : MGRID_NOWHERE;
  if (fits) *end = at;
  return begun;
}

void mgrid_reading_offer(mgrid_backend *b, const mgrid_offer *o) {
  mgrid_reading    *r = mgrid_reading_of(b);
  const mgrid_move *m = o->move;
  if (!mgrid_reading_on(r)) return;
  int64_t parts = mgrid_board_size(r), end = parts + (int64_t)(m->pairs.n * sizeof *o->part);
  int64_t most = end + mgrid_reading_room(b, o->window);
  bool    can = mgrid_board_grow(r, end);
  for (size_t i = 0; i < m->pairs.n && can; i++)
    can = !mgrid_pairs_converts(&m->pairs, i) && (!o->part[i] || is_readable(o->part[i]));
  memset(r->board->packed, 0, (r->n + 1) * sizeof *r->board->packed);
  if (can) memcpy((char *)r->board + parts, o->part, m->pairs.n * sizeof *o->part);
  for (size_t i = 0; i < m->npeers && can; i++) {
    const mgrid_mapped *n = m->peer[i].send > 0 ? mgrid_mapped_of(r, m->peer[i].rank) : NULL;
    int64_t             at = n ? pack(b, o, n->rank, &end, most) : 0;
    if (n) r->board->packed[mgrid_mapped_place(r, n)] = at; /* of a board that may have moved meanwhile */
  }
  uint64_t number = r->found ? b->meetings + 1 : b->meetings; /* the rendezvous to come, or the one that was */
  __atomic_store_n(&r->board->number, number, __ATOMIC_SEQ_CST);
}

bool mgrid_reading_offered(const mgrid_reading *r, int64_t peer) {
  const mgrid_mapped *n = mgrid_mapped_of(r, peer);
  return n && r->board->packed[mgrid_mapped_place(r, n)];
}

void mgrid_reading_end(mgrid_reading *r) {
  if (r && r->board) __atomic_store_n(&r->board->number, 0, __ATOMIC_SEQ_CST);
}

/* -------------------------------------------------------------------- read */

struct mgrid_read {
  const mgrid_move *move;
  mgrid_backend    *backend;
  char *const      *to;   /* [tensors] */
  mgrid_mapped     *near; /* the peer; NULL: no message was started */
  mgrid_stream      stream;
  int64_t           packed; /* where the next packed piece starts */
  mgrid_rows        there, here;
  int64_t           left;          /* bytes left of the piece that is read directly */
  size_t            nhere, nthere; /* spans to read */
  int64_t           bytes;         /* of the spans */
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

/* Return whether that rank is still in this move. */
static bool is_in_move(const mgrid_read *r, const mgrid_mapped *n) {
#ifndef __SANITIZE_THREAD__ /* does not support fences */
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
#endif
  return __atomic_load_n(&n->board->number, __ATOMIC_SEQ_CST) == r->backend->meetings;
}

static mgrid_outcome gave_up(const mgrid_mapped *n, mgrid_error *err) {
  mgrid_fail(err, MGRID_OTHER_RANK, "rank %" PRId64 " gave up", n->rank);
  return MGRID_GAVE_UP;
}

static mgrid_outcome failed_to_read(const mgrid_read *r, const mgrid_mapped *n, int failed, mgrid_error *err) {
  if (failed == ESRCH || !is_in_move(r, n)) return gave_up(n, err);
  return mgrid_fail(err, MGRID_BACKEND, "the memory of rank %" PRId64 " cannot be read: %s", n->rank, strerror(failed));
}

/* Read what another process may write at any time: once, so that what is checked is what is used. */
static int64_t read_once(const int64_t *at) { return __atomic_load_n(at, __ATOMIC_RELAXED); }

mgrid_outcome mgrid_read_ask(mgrid_read *r, int64_t peer, bool *reads, mgrid_error *err) {
  const mgrid_reading *reading = mgrid_reading_of(r->backend);
  mgrid_mapped        *n = mgrid_mapped_of(reading, peer);
  *reads = false;
  if (!n) return MGRID_OK;
  if (!is_in_move(r, n)) return gave_up(n, err);
  int64_t size = read_once(&n->board->size);
  int     failed = size > n->size ? mgrid_mapped_renew(n, size) : 0;
  if (failed) return failed_to_read(r, n, failed, err);
  int64_t least = mgrid_board_size(reading);
  if (n->size >= least) *reads = read_once(&n->board->packed[reading->place]) != 0;
  if (*reads) least += (int64_t)(r->move->pairs.n * sizeof(void *));
  if (n->size < least) return mgrid_cannot_be(err, "a board of %" PRId64 " bytes of rank %" PRId64, n->size, peer);
  return MGRID_OK;
}

/* Add a span, or extend the last one. */
static void add_span(struct iovec *spans, size_t *n, char *at, int64_t bytes) {
  struct iovec *last = *n > 0 ? &spans[*n - 1] : NULL;
  if (last && (char *)last->iov_base + last->iov_len == at)
    last->iov_len += (size_t)bytes;
  else
    spans[(*n)++] = (struct iovec){ at, (size_t)bytes };
}

/* Add spans for rows of the next bytes, as far as there is room. */
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
  int failed = mgrid_read_spans(r->near->pid, r->nhere, r->to_span, r->nthere, r->from_span);
  if (failed) return failed_to_read(r, r->near, failed, err);
  r->backend->read += r->bytes;
  r->nhere = r->nthere = 0;
  r->bytes = 0;
  return MGRID_OK;
}

/* Go to the next piece that is read directly; unpack packed ones on the way. */
static mgrid_status next_piece(mgrid_read *r, bool *more, mgrid_error *err) {
  mgrid_status s = MGRID_OK;
  for (*more = true; *more && r->left == 0 && !s;) {
    const mgrid_move_piece *piece = &r->stream.piece;
    s = mgrid_stream_next(&r->stream, more, err);
    if (s || !*more) break;
    char *const *part = (char *const *)((const char *)r->near->board + mgrid_board_size(mgrid_reading_of(r->backend)));
    mgrid_rows_of(&r->here, &r->move->pairs, piece, false, r->to[piece->tensor]);
    mgrid_rows_of(&r->there, &r->move->pairs, piece, true, part[piece->tensor]);
    if (is_packed(&r->there)) {
      char *at = (char *)r->near->board + r->packed; /* read only */
      if (r->packed < 0 || r->packed > r->near->size - piece->bytes)
        return mgrid_cannot_be(err, "packed rows at %" PRId64 " of the %" PRId64 " bytes of rank %" PRId64, r->packed,
                               r->near->size, r->near->rank);
      s = mgrid_rows_copy(r->backend, &r->here, at, piece->bytes, MGRID_UNPACK, err);
      r->packed += piece->bytes;
      r->backend->read += piece->bytes;
    } else {
      r->left = piece->bytes;
    }
  }
  return s;
}

/* For many short rows here: read them into the buffer, and unpack them from there. */
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

/* Add the spans of rows on both sides; read when there are enough. */
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
  const mgrid_reading *reading = mgrid_reading_of(r->backend);
  int64_t              before = r->backend->read;
  mgrid_outcome        s = MGRID_OK;
  if (!r->near) {
    r->near = mgrid_mapped_of(reading, peer);
    r->packed = read_once(&r->near->board->packed[reading->place]);
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
  const mgrid_mapped *n = r->near;
  if (r->bytes) s = read_now(r, err);
  r->near = NULL;
  return s || is_in_move(r, n) ? s : gave_up(n, err);
}
