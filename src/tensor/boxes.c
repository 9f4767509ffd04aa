/* SPDX-License-Identifier: MIT
**
** boxes.c - what a message has, as boxes of both parts: on each axis the runs that both have, and of these every
** combination.
*/
#include "tensor/move.h"

#include <stdlib.h>

typedef struct shared_run { /* a run of an axis, and where it is in both pieces */
  int64_t from, to, length;
} shared_run;

typedef struct shared_axis {
  size_t      n;
  shared_run *at; /* [n] */
} shared_axis;

/* The runs that two pieces have in common, into out, which may be NULL; returns how many. */
static size_t shared_runs(const mgrid_slicing *a, int64_t p, const mgrid_slicing *b, int64_t q, shared_run *out) {
  mgrid_walk wa = mgrid_walk_begin(a, p), wb = mgrid_walk_begin(b, q);
  mgrid_run  x, y;
  int64_t    x_at = 0, y_at = 0; /* where they begin in their pieces */
  size_t     n = 0;
  bool       more = mgrid_walk_next(&wa, &x) && mgrid_walk_next(&wb, &y);
  while (more) {
    int64_t x_end = x.start + x.length, y_end = y.start + y.length;
    int64_t start = x.start > y.start ? x.start : y.start, end = x_end < y_end ? x_end : y_end;
    if (start < end) {
      if (out) out[n] = (shared_run){ x_at + start - x.start, y_at + start - y.start, end - start };
      n++;
    }
    if (x_end < y_end) {
      x_at += x.length;
      more = mgrid_walk_next(&wa, &x);
    } else {
      y_at += y.length;
      more = mgrid_walk_next(&wb, &y);
    }
  }
  return n;
}

static void fill(mgrid_move_piece *piece, const mgrid_pair *p, const shared_axis *axis, const size_t *at) {
  piece->from_offset = piece->to_offset = 0;
  piece->bytes = p->from->width;
  for (size_t i = 0; i < p->from->naxes; i++) {
    const shared_run *run = &axis[i].at[at[i]];
    piece->lengths[i] = run->length;
    piece->from_offset += run->from * piece->from_strides[i];
    piece->to_offset += run->to * piece->to_strides[i];
    piece->bytes *= run->length;
  }
}

mgrid_status mgrid_pair_boxes(const mgrid_pair *p, const mgrid_seat *shard, const mgrid_seat *part,
                              mgrid_move_piece *piece, mgrid_piece_fn fn, void *ud, mgrid_error *err) {
  const mgrid_slicing *from = p->from->axis, *to = p->to->axis;
  shared_axis          axis[MGRID_AXES_MAX] = { { 0, NULL } };
  size_t               at[MGRID_AXES_MAX] = { 0 }, naxes = p->from->naxes;
  int64_t              boxes = 1, from_stride = 1, to_stride = 1;
  mgrid_status         s = MGRID_OK;
  piece->naxes = naxes;
  for (size_t i = naxes; i-- > 0 && !s;) {
    piece->from_strides[i] = from_stride;
    piece->to_strides[i] = to_stride;
    from_stride *= mgrid_piece_size(&from[i], shard->piece[i]);
    to_stride *= mgrid_piece_size(&to[i], part->piece[i]);
    axis[i].n = shared_runs(&from[i], shard->piece[i], &to[i], part->piece[i], NULL);
    boxes *= (int64_t)axis[i].n;
    axis[i].at = malloc((axis[i].n ? axis[i].n : 1) * sizeof *axis[i].at);
    if (!axis[i].at)
      s = mgrid_oom(err);
    else
      shared_runs(&from[i], shard->piece[i], &to[i], part->piece[i], axis[i].at);
  }
  for (int64_t k = 0; k < boxes && !s; k++) {
    fill(piece, p, axis, at);
    if (fn(ud, piece) != 0) s = mgrid_fail(err, MGRID_OUTPUT, "the pieces of a message were not taken");
    for (size_t i = naxes; i-- > 0 && ++at[i] == axis[i].n;) at[i] = 0;
  }
  for (size_t i = 0; i < naxes; i++) free(axis[i].at);
  return s;
}
