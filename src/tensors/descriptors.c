/* SPDX-License-Identifier: MIT
**
** descriptors.c - a move as lists of contiguous bytes, for transports that read and write registered memory.
**
** A piece is a box with strides on both sides. Its last axes that are contiguous on both merge into rows; each row is a
** descriptor, and a row that goes on where the previous one ended, on both sides, belongs to it.
*/
#include "tensors/between_plans.h"

typedef struct listing {
  size_t                 cap;
  mgrid_move_descriptor *out;
  int64_t                n;
  mgrid_move_descriptor  last; /* the one that may still grow; bytes 0: none */
} listing;

static void flush(listing *l) {
  if (l->last.bytes == 0) return;
  if ((size_t)l->n < l->cap) l->out[l->n] = l->last;
  l->n++;
  l->last.bytes = 0;
}

static void add(listing *l, mgrid_move_descriptor d) {
  mgrid_move_descriptor *at = &l->last;
  if (at->bytes && at->peer == d.peer && at->tensor == d.tensor && at->from_offset + at->bytes == d.from_offset
      && at->to_offset + at->bytes == d.to_offset) {
    at->bytes += d.bytes;
    return;
  }
  flush(l);
  *at = d;
}

/* List the rows of a piece. */
static void add_piece(listing *l, const mgrid_move_piece *p) {
  int64_t elements = 1, index[MGRID_AXES_MAX] = { 0 }, row = 1, width;
  size_t  n = p->naxes; /* the axes before those of a row */
  for (size_t k = 0; k < p->naxes; k++) elements *= p->lengths[k];
  width = p->bytes / elements;
  while (n > 0 && (p->lengths[n - 1] == 1 || (p->from_strides[n - 1] == row && p->to_strides[n - 1] == row)))
    row *= p->lengths[--n];
  for (bool more = true; more;) {
    int64_t from = p->from_offset, to = p->to_offset;
    for (size_t k = 0; k < n; k++) {
      from += index[k] * p->from_strides[k];
      to += index[k] * p->to_strides[k];
    }
    add(l, (mgrid_move_descriptor){ p->peer, p->tensor, from * width, to * width, row * width });
    size_t k = n;
    while (k > 0 && ++index[k - 1] == p->lengths[k - 1]) index[--k] = 0;
    more = k > 0;
  }
}

int64_t mgrid_move_descriptors(const mgrid_move *m, mgrid_way way, size_t cap, mgrid_move_descriptor *out,
                               mgrid_error *err) {
  listing l = { cap, out, 0, { 0 } };
  if (!m || mgrid_lacks_list(cap, out, "descriptors", err)) return -1;
  for (size_t i = 0; i < m->pairs.n; i++)
    if (mgrid_pairs_converts(&m->pairs, i)) {
      mgrid_fail(err, MGRID_UNSUPPORTED, "tensor '%s' changes its type, which no copy of bytes does", m->pairs.name[i]);
      return -1;
    }
  size_t n = way == MGRID_STAYS ? 1 : m->npeers;
  for (size_t i = 0; i < n; i++) {
    mgrid_stream stream;
    mgrid_status s;
    bool         more;
    mgrid_stream_begin(&stream, m, way, way == MGRID_STAYS ? m->rank : m->peer[i].rank);
    stream.kept = NULL; /* the list is for runs; this function may be called in several threads */
    while (!(s = mgrid_stream_next(&stream, &more, err)) && more) add_piece(&l, &stream.piece);
    mgrid_stream_end(&stream);
    flush(&l);
    if (s) return -1;
  }
  return l.n;
}
