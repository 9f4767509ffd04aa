/* SPDX-License-Identifier: MIT
**
** chunks.c - cuts the messages of a move into chunks (chunks.h), packs, unpacks and converts their
** elements. It also lists a move as contiguous ranges of bytes, for the host's own transport.
*/
#include "tensors/between_plans.h"
#include "tensors/chunks.h"

#include <string.h>

/* ================================================================ conversion */

/* Convert f32 to bf16. Neither side has to be aligned. */
static void chunks_narrow(char *to, const char *from, int64_t n) {
  for (int64_t i = 0; i < n; i++) {
    uint32_t wide;
    memcpy(&wide, from + i * (int64_t)sizeof wide, sizeof wide);
    uint16_t half = mgrid_bf16_of(wide);
    memcpy(to + i * (int64_t)sizeof half, &half, sizeof half);
  }
}

static void chunks_widen(char *to, const char *from, int64_t n) {
  for (int64_t i = 0; i < n; i++) {
    uint16_t half;
    memcpy(&half, from + i * (int64_t)sizeof half, sizeof half);
    uint32_t wide = mgrid_f32_of(half);
    memcpy(to + i * (int64_t)sizeof wide, &wide, sizeof wide);
  }
}

/* Convert strided rows of f32 to contiguous bf16, or back. */
static void chunks_convert(const mgrid_slab *s) {
  char *packed = s->packed;
  int64_t n = s->row / (int64_t)sizeof(uint32_t);
  for (int64_t k = 0; k < s->planes; k++)
    for (int64_t i = 0; i < s->count; i++, packed += s->row / MGRID_CONVERT_SCALE) {
      char *apart = s->apart + k * s->plane_stride + i * s->stride;
      if (s->pack)
        chunks_narrow(packed, apart, n);
      else
        chunks_widen(apart, packed, n);
    }
}

/* ==================================================================== chunks */

/* Least bytes of rows that a transport takes strided. Shorter rows are packed (measured by
** scripts/lab/bench moves). */
enum { ROW_LEAST = 256 };

/* -------------------------------------------------------------------- rows */

/* Set r to the rows of a piece, on one side. The rank's part of the tensor starts at `part`. */
static void rows_of(mgrid_rows *r, const mgrid_pairs *p, const mgrid_move_piece *piece, bool from,
                    char *part) {
  const int64_t *strides = from ? piece->from_strides : piece->to_strides;
  int64_t elements = 1, width = mgrid_pairs_tensor(p, piece->tensor, from)->width;
  size_t inner = piece->naxes;
  *r = (mgrid_rows){ .at = part + (from ? piece->from_offset : piece->to_offset) * width,
                     .converts = width != p->pair[piece->tensor].from->width };
  while (inner > 0 && (piece->lengths[inner - 1] == 1 || strides[inner - 1] == elements))
    elements *= piece->lengths[--inner];
  r->row = elements * width;
  for (size_t i = 0; i < inner; i++) {
    int64_t length = piece->lengths[i], stride = strides[i] * width;
    if (length == 1) continue;
    if (r->n > 0 && r->stride[r->n - 1] == length * stride) { /* then the two loops are one */
      r->length[r->n - 1] *= length;
      r->stride[r->n - 1] = stride;
    } else {
      r->length[r->n] = length;
      r->stride[r->n++] = stride;
    }
  }
}

/* Advance by `count` iterations of loop k, at most to its end. */
static void chunks_pass(mgrid_rows *r, int k, int64_t count) {
  if (k < 0) return;
  r->at += count * r->stride[k];
  r->index[k] += count;
  while (r->index[k] == r->length[k]) {
    r->at -= r->length[k] * r->stride[k];
    r->index[k] = 0;
    if (--k < 0) return;
    r->at += r->stride[k];
    r->index[k]++;
  }
}

/* Copy rows. If their length is a constant, the body compiles to a load and a store. */
#define ROWS(bytes) \
  for (int64_t i = 0; i < count; i++, at += stride, buffer += (bytes)) \
  pack ? memcpy(buffer, at, (size_t)(bytes)) : memcpy(at, buffer, (size_t)(bytes))

static void copy_rows(char *buffer, char *at, int64_t count, int64_t stride, int64_t row,
                      bool pack) {
  switch (row) {
  case 2: ROWS(2); break;
  case 4: ROWS(4); break;
  case 8: ROWS(8); break;
  case 16: ROWS(16); break;
  default: ROWS(row); break;
  }
}

static mgrid_status copy_strided(mgrid_backend *b, const mgrid_slab *s, mgrid_error *err) {
  const mgrid_transport_ops *ops = b->ops->transport;
  if (ops && ops->copy && (!ops->copies || ops->copies(b))) return ops->copy(b, s, err);
  for (int64_t k = 0; k < s->planes; k++)
    copy_rows(s->packed + k * s->count * s->row, s->apart + k * s->plane_stride, s->count,
              s->stride, s->row, s->pack);
  return MGRID_OK;
}

/* Return the largest slab within the next `bytes`: whole planes of rows, whole rows of a plane, or
** part of a row. */
static mgrid_slab next_rows(const mgrid_rows *r, int64_t bytes) {
  int k = r->n - 1;
  mgrid_slab s = { .apart = r->at + r->done, .row = r->row - r->done, .count = 1, .planes = 1 };
  if (bytes < s.row) s.row = bytes;
  if (s.row < r->row || k < 0) return s;
  s.stride = r->stride[k];
  s.count = bytes / r->row < r->length[k] - r->index[k] ? bytes / r->row
                                                        : r->length[k] - r->index[k];
  if (k == 0 || s.count < r->length[k]) return s;
  int64_t left = r->length[k - 1] - r->index[k - 1], planes = bytes / (r->row * s.count);
  s.planes = planes < left ? planes : left;
  s.plane_stride = r->stride[k - 1];
  return s;
}

/* Advance by `bytes` in the current row, at most to its end. */
static void pass_row(mgrid_rows *r, int64_t bytes) {
  if ((r->done += bytes) < r->row) return;
  r->done = 0;
  chunks_pass(r, r->n - 1, 1);
}

/* Copy the next bytes of the rows, and advance. `bytes` is counted in the buffer. */
static mgrid_status rows_copy(mgrid_backend *b, mgrid_rows *r, char *buffer, int64_t bytes,
                              mgrid_handling how, mgrid_error *err) {
  int64_t scale = r->converts ? MGRID_CONVERT_SCALE : 1;
  while (bytes > 0) {
    mgrid_slab s = next_rows(r, bytes * scale);
    int64_t n = s.row * s.count * s.planes / scale;
    mgrid_status failed = MGRID_OK;
    s.packed = buffer, s.pack = how == MGRID_PACK;
    if (how != MGRID_MEASURE && r->converts)
      chunks_convert(&s);
    else if (how != MGRID_MEASURE && (failed = copy_strided(b, &s, err)))
      return failed;
    if (s.row == r->row)
      chunks_pass(r, s.planes > 1 ? r->n - 2 : r->n - 1, s.planes > 1 ? s.planes : s.count);
    else
      pass_row(r, s.row);
    buffer += n;
    bytes -= n;
  }
  return MGRID_OK;
}

/* ----------------------------------------------------------------- chunks */

void mgrid_chunks_begin(mgrid_chunks *p, const mgrid_move *m, mgrid_way way, int64_t peer,
                        char *const *part, mgrid_rows *boxes, mgrid_backend *b) {
  *p = (mgrid_chunks){ .part = part, .boxes = boxes, .backend = b };
  mgrid_stream_begin(&p->stream, m, way, peer);
}

void mgrid_chunks_end(mgrid_chunks *p) { mgrid_stream_end(&p->stream); }

/* If the current piece has no bytes left, go to the next piece that has any. */
static mgrid_status chunks_next_piece(mgrid_chunks *p, bool *more, mgrid_error *err) {
  const mgrid_transport_ops *ops = p->backend->ops->transport;
  const mgrid_move_piece *piece = &p->stream.piece;
  mgrid_rows other;
  for (*more = true; *more && p->left == 0;) {
    mgrid_status s = mgrid_stream_next(&p->stream, more, err);
    if (s || !*more) return s;
    const mgrid_pairs *pairs = &p->stream.move->pairs;
    bool sends = piece->way == MGRID_SENDS;
    p->left = piece->bytes;
    rows_of(&p->rows, pairs, piece, sends, p->part[piece->tensor]);
    p->converts = mgrid_pairs_converts(pairs, piece->tensor);
    rows_of(&other, pairs, piece, !sends, NULL);
    bool large = piece->bytes >= MGRID_LARGE, contiguous = p->rows.n == 0 && other.n == 0;
    p->whole = large && contiguous && !p->converts;
    p->direct = ops->typed && (large || !contiguous) && p->rows.row >= ROW_LEAST
                && other.row >= ROW_LEAST && !p->converts && p->left <= MGRID_CHUNK_MAX;
  }
  return MGRID_OK;
}

/* Make a chunk of the next pieces of one tensor, as long as the transport moves them directly. */
static mgrid_status take_boxes(mgrid_chunks *p, mgrid_chunk *out, mgrid_error *err) {
  size_t tensor = p->stream.piece.tensor;
  mgrid_status s = MGRID_OK;
  *out = (mgrid_chunk){ .data = p->rows.at };
  for (bool more = true; !s && more && p->direct && p->stream.piece.tensor == tensor
                         && out->nboxes < MGRID_BOXES_MAX
                         && out->bytes + (size_t)p->left <= MGRID_CHUNK_MAX;) {
    p->boxes[out->nboxes++] = p->rows;
    out->bytes += (size_t)p->left;
    p->left = 0;
    s = chunks_next_piece(p, &more, err);
  }
  if (out->nboxes == 1 && p->boxes[0].n == 0) out->nboxes = 0;
  return s;
}

/* Cut the next chunk of a large piece. */
static mgrid_status chunks_cut(mgrid_chunks *p, int64_t most, char *buffer, mgrid_handling how,
                               mgrid_chunk *out, mgrid_error *err) {
  mgrid_rows *r = &p->rows;
  if (p->whole) most = MGRID_CHUNK_MAX;
  int64_t n = p->left < most ? p->left : most;
  if (p->converts) n -= n % MGRID_CONVERT_SCALE; /* cut at a whole element */
  bool in_place = !r->converts && r->row - r->done >= n;
  *out = (mgrid_chunk){ .data = in_place ? r->at + r->done : buffer, .bytes = (size_t)n };
  p->left -= n;
  return rows_copy(p->backend, r, buffer, n, in_place ? MGRID_MEASURE : how, err);
}

mgrid_status mgrid_chunks_next(mgrid_chunks *p, int64_t most, char *buffer, mgrid_handling how,
                               mgrid_chunk *out, mgrid_error *err) {
  *out = (mgrid_chunk){ .data = buffer };
  for (int64_t room = most; room > 0;) {
    bool more;
    mgrid_status s = chunks_next_piece(p, &more, err);
    if (s || !more) return s;
    if (p->direct) return out->bytes == 0 ? take_boxes(p, out, err) : MGRID_OK;
    if (p->stream.piece.bytes >= MGRID_LARGE)
      return out->bytes == 0 ? chunks_cut(p, most, buffer, how, out, err) : MGRID_OK;
    int64_t n = p->left < room ? p->left : room;
    if (p->converts) n -= n % MGRID_CONVERT_SCALE;
    if (n == 0) return MGRID_OK; /* not even one more element fits */
    if ((s = rows_copy(p->backend, &p->rows, buffer + out->bytes, n, how, err))) return s;
    p->left -= n;
    room -= n;
    out->bytes += (size_t)n;
  }
  return MGRID_OK;
}

mgrid_status mgrid_chunks_stay(const mgrid_move *m, char *const *from, char *const *to,
                               mgrid_backend *backend, mgrid_error *err) {
  mgrid_stream s;
  mgrid_status status;
  bool more;

  mgrid_stream_begin(&s, m, MGRID_STAYS, 0);
  while (!(status = mgrid_stream_next(&s, &more, err)) && more) {
    const mgrid_move_piece *piece = &s.piece;
    mgrid_rows a, b;
    rows_of(&a, &m->pairs, piece, true, from[piece->tensor]);
    rows_of(&b, &m->pairs, piece, false, to[piece->tensor]);
    /* Use the rows of one side as the buffer, and pack or unpack the rows of the other side. The
    ** buffer is the side that has bf16; if no side converts, the side with the longer rows. */
    mgrid_rows *shorter = a.converts || (!b.converts && a.row < b.row) ? &a : &b,
               *longer = shorter == &a ? &b : &a;
    for (int64_t left = piece->bytes; left > 0 && !status; left -= longer->row) {
      status = rows_copy(backend, shorter, longer->at, longer->row,
                         shorter == &a ? MGRID_PACK : MGRID_UNPACK, err);
      if (left > longer->row) chunks_pass(longer, longer->n - 1, 1);
    }
    if (status) break;
  }
  mgrid_stream_end(&s);
  return status;
}

/* =============================================================== descriptors */

/* A move as lists of contiguous bytes, for transports that read and write registered memory. The
** last axes of a piece that are contiguous on both sides merge into rows. Each row becomes a
** descriptor, or extends the descriptor before it if it continues that on both sides. */

typedef struct listing {
  size_t cap;
  mgrid_move_descriptor *out;
  int64_t n;
  mgrid_move_descriptor last; /* the descriptor that may still grow; bytes 0: there is none */
} listing;

static void chunks_flush(listing *l) {
  if (l->last.bytes == 0) return;
  if ((size_t)l->n < l->cap) l->out[l->n] = l->last;
  l->n++;
  l->last.bytes = 0;
}

static void chunks_add(listing *l, mgrid_move_descriptor d) {
  mgrid_move_descriptor *at = &l->last;
  if (at->bytes && at->peer == d.peer && at->tensor == d.tensor
      && at->from_offset + at->bytes == d.from_offset && at->to_offset + at->bytes == d.to_offset) {
    at->bytes += d.bytes;
    return;
  }
  chunks_flush(l);
  *at = d;
}

/* List the rows of a piece. */
static void chunks_add_piece(listing *l, const mgrid_move_piece *p) {
  int64_t elements = 1, index[MGRID_AXES_MAX] = { 0 }, row = 1, width;
  size_t n = p->naxes; /* axes that are outside of a row */
  for (size_t k = 0; k < p->naxes; k++) elements *= p->lengths[k];
  width = p->bytes / elements;
  while (
      n > 0
      && (p->lengths[n - 1] == 1 || (p->from_strides[n - 1] == row && p->to_strides[n - 1] == row)))
    row *= p->lengths[--n];
  for (bool more = true; more;) {
    int64_t from = p->from_offset, to = p->to_offset;
    for (size_t k = 0; k < n; k++) {
      from += index[k] * p->from_strides[k];
      to += index[k] * p->to_strides[k];
    }
    chunks_add(
        l, (mgrid_move_descriptor){ p->peer, p->tensor, from * width, to * width, row * width });
    size_t k = n;
    while (k > 0 && ++index[k - 1] == p->lengths[k - 1]) index[--k] = 0;
    more = k > 0;
  }
}

int64_t mgrid_move_descriptors(const mgrid_move *m, mgrid_way way, size_t cap,
                               mgrid_move_descriptor *out, mgrid_error *err) {
  listing l = { cap, out, 0, { 0 } };

  if (!m || mgrid_lacks_list(cap, out, "descriptors", err)) return -1;
  for (size_t i = 0; i < m->pairs.n; i++)
    if (mgrid_pairs_converts(&m->pairs, i)) {
      mgrid_fail(err, MGRID_UNSUPPORTED,
                 "tensor '%s' changes its type, which descriptors cannot convert",
                 m->pairs.name[i]);
      return -1;
    }
  size_t n = way == MGRID_STAYS ? 1 : m->npeers;
  for (size_t i = 0; i < n; i++) {
    mgrid_stream stream;
    mgrid_status s;
    bool more;
    mgrid_stream_begin(&stream, m, way, way == MGRID_STAYS ? m->rank : m->peer[i].rank);
    /* the kept lists are for runs of the move; several threads may call this function */
    stream.kept = NULL;
    while (!(s = mgrid_stream_next(&stream, &more, err)) && more)
      chunks_add_piece(&l, &stream.piece);
    mgrid_stream_end(&stream);
    chunks_flush(&l);
    if (s) return -1;
  }
  return l.n;
}
