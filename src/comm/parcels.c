/* SPDX-License-Identifier: MIT
**
** parcels.c - messages of a move cut into parcels, packed and unpacked.
*/
#include "comm/parcels.h"

#include <string.h>

/* -------------------------------------------------------------------- rows */

void mgrid_rows_of(mgrid_rows *r, const mgrid_move_piece *piece, bool from, int64_t width, char *part) {
  const int64_t *strides = from ? piece->from_strides : piece->to_strides;
  int64_t        elements = 1;
  size_t         inner = piece->naxes;
  *r = (mgrid_rows){ .at = part + (from ? piece->from_offset : piece->to_offset) * width };
  while (inner > 0 && (piece->lengths[inner - 1] == 1 || strides[inner - 1] == elements))
    elements *= piece->lengths[--inner];
  r->row = elements * width;
  for (size_t i = 0; i < inner; i++) {
    int64_t length = piece->lengths[i], stride = strides[i] * width;
    if (length == 1) continue;
    if (r->n > 0 && r->stride[r->n - 1] == length * stride) { /* two loops that are one */
      r->length[r->n - 1] *= length;
      r->stride[r->n - 1] = stride;
    } else {
      r->length[r->n] = length;
      r->stride[r->n++] = stride;
    }
  }
}

/* Go on by `count` rows, which are no more than the innermost loop still has. */
static void pass(mgrid_rows *r, int64_t count) {
  int k = r->n - 1;
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

/* Loops whose bodies the compiler makes a load and a store. */
#define ROWS(bytes) \
  for (int64_t i = 0; i < count; i++, at += stride, buffer += (bytes)) \
  pack ? memcpy(buffer, at, (size_t)(bytes)) : memcpy(at, buffer, (size_t)(bytes))

static void copy_rows(char *buffer, char *at, int64_t count, int64_t stride, int64_t row, bool pack) {
  switch (row) {
  case 2: ROWS(2); break;
  case 4: ROWS(4); break;
  case 8: ROWS(8); break;
  case 16: ROWS(16); break;
  default: ROWS(row); break;
  }
}

static void copy(mgrid_rows *r, char *buffer, int64_t bytes, mgrid_handling how) {
  while (bytes > 0) {
    int64_t part = r->row - r->done < bytes ? r->row - r->done : bytes, count = 1;
    if (part == r->row) { /* whole rows */
      int k = r->n - 1;
      count = bytes / r->row;
      if (k < 0 || count > r->length[k] - r->index[k]) count = k < 0 ? 1 : r->length[k] - r->index[k];
      if (how != MGRID_MEASURE) copy_rows(buffer, r->at, count, k < 0 ? 0 : r->stride[k], r->row, how == MGRID_PACK);
      pass(r, count);
    } else {
      if (how == MGRID_PACK) memcpy(buffer, r->at + r->done, (size_t)part);
      if (how == MGRID_UNPACK) memcpy(r->at + r->done, buffer, (size_t)part);
      r->done += part;
      if (r->done == r->row) {
        r->done = 0;
        pass(r, 1);
      }
    }
    buffer += count * part;
    bytes -= count * part;
  }
}

/* ----------------------------------------------------------------- parcels */

void mgrid_parcels_begin(mgrid_parcels *p, const mgrid_move *m, mgrid_way way, int64_t peer, char *const *part,
                         bool typed) {
  *p = (mgrid_parcels){ .part = part, .typed = typed };
  mgrid_stream_begin(&p->stream, m, way, peer);
}

void mgrid_parcels_end(mgrid_parcels *p) { mgrid_stream_end(&p->stream); }

/* Go to the next piece that has any bytes. */
static mgrid_status next_piece(mgrid_parcels *p, bool *more, mgrid_error *err) {
  const mgrid_move_piece *piece = &p->stream.piece;
  mgrid_rows              other;
  for (*more = true; *more && p->left == 0;) {
    mgrid_status s = mgrid_stream_next(&p->stream, more, err);
    if (s || !*more) return s;
    int64_t width = p->stream.move->pairs.pair[piece->tensor].from->width;
    bool    sends = piece->way == MGRID_SENDS;
    p->left = piece->bytes;
    mgrid_rows_of(&p->rows, piece, sends, width, p->part[piece->tensor]);
    if (piece->bytes < MGRID_LARGE) continue;
    mgrid_rows_of(&other, piece, !sends, width, NULL);
    p->whole = p->rows.n == 0 && other.n == 0;
    p->direct = p->typed && p->left <= MGRID_PARCEL_MAX && p->rows.row >= MGRID_ROW_LEAST
                && other.row >= MGRID_ROW_LEAST;
  }
  return MGRID_OK;
}

/* A parcel of a large piece. */
static void cut(mgrid_parcels *p, int64_t most, char *buffer, mgrid_handling how, mgrid_parcel *out) {
  mgrid_rows *r = &p->rows;
  if (p->direct) { /* at its beginning, since it is one parcel */
    *out = (mgrid_parcel){ r->at, (size_t)p->left, r->n > 0, *r };
    p->left = 0;
    return;
  }
  if (p->whole) most = MGRID_PARCEL_MAX;
  int64_t n = p->left < most ? p->left : most;
  bool    in_place = r->row - r->done >= n;
  *out = (mgrid_parcel){ .data = in_place ? r->at + r->done : buffer, .bytes = (size_t)n };
  copy(r, buffer, n, in_place ? MGRID_MEASURE : how);
  p->left -= n;
}

mgrid_status mgrid_parcels_next(mgrid_parcels *p, int64_t most, char *buffer, mgrid_handling how, mgrid_parcel *out,
                                mgrid_error *err) {
  *out = (mgrid_parcel){ .data = buffer };
  for (int64_t room = most; room > 0;) {
    bool         more;
    mgrid_status s = next_piece(p, &more, err);
    if (s || !more) return s;
    if (p->stream.piece.bytes >= MGRID_LARGE) {
      if (out->bytes == 0) cut(p, most, buffer, how, out);
      return MGRID_OK;
    }
    int64_t n = p->left < room ? p->left : room;
    copy(&p->rows, buffer + out->bytes, n, how);
    p->left -= n;
    room -= n;
    out->bytes += (size_t)n;
  }
  return MGRID_OK;
}

mgrid_status mgrid_parcels_stay(const mgrid_move *m, char *const *from, char *const *to, mgrid_error *err) {
  mgrid_stream s;
  mgrid_status status;
  bool         more;
  mgrid_stream_begin(&s, m, MGRID_STAYS, 0);
  while (!(status = mgrid_stream_next(&s, &more, err)) && more) {
    const mgrid_move_piece *piece = &s.piece;
    const mgrid_pair       *pair = &m->pairs.pair[piece->tensor];
    mgrid_rows              a, b;
    mgrid_rows_of(&a, piece, true, pair->from->width, from[piece->tensor]);
    mgrid_rows_of(&b, piece, false, pair->from->width, to[piece->tensor]);
    /* one side's row is the other's buffer: the shorter ones are copied into or out of it */
    mgrid_rows *shorter = a.row < b.row ? &a : &b, *longer = shorter == &a ? &b : &a;
    for (int64_t left = piece->bytes; left > 0; left -= longer->row) {
      copy(shorter, longer->at, longer->row, shorter == &a ? MGRID_PACK : MGRID_UNPACK);
      if (left > longer->row) pass(longer, 1);
    }
  }
  mgrid_stream_end(&s);
  return status;
}
