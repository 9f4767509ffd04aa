/* SPDX-License-Identifier: MIT
**
** boxes.c - what a message has, as boxes of both parts: on each axis the runs that both have, and of these every
** combination.
*/
#include "tensor/move.h"

#include <stdlib.h>

/* The runs that two pieces have in common, into out, which may be NULL; returns how many. */
static size_t shared_runs(const mgrid_slicing *a, int64_t p, const mgrid_slicing *b, int64_t q, mgrid_shared_run *out) {
  mgrid_walk wa = mgrid_walk_begin(a, p), wb = mgrid_walk_begin(b, q);
  mgrid_run  x, y;
  int64_t    x_at = 0, y_at = 0; /* where they begin in their pieces */
  size_t     n = 0;
  bool       more = mgrid_walk_next(&wa, &x) && mgrid_walk_next(&wb, &y);
  while (more) {
    int64_t x_end = x.start + x.length, y_end = y.start + y.length;
    int64_t start = x.start > y.start ? x.start : y.start, end = x_end < y_end ? x_end : y_end;
    if (start < end) {
      if (out) out[n] = (mgrid_shared_run){ x_at + start - x.start, y_at + start - y.start, end - start };
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

bool mgrid_boxes_begin(mgrid_boxes *w, const mgrid_pair *p, const mgrid_seat *shard, const mgrid_seat *part) {
  const mgrid_slicing *from = p->from->axis, *to = p->to->axis;
  int64_t              from_stride = 1, to_stride = 1;
  *w = (mgrid_boxes){ .naxes = p->from->naxes, .width = p->from->width, .left = 1 };
  for (size_t i = w->naxes; i-- > 0;) {
    w->from_strides[i] = from_stride;
    w->to_strides[i] = to_stride;
    from_stride *= mgrid_piece_size(&from[i], shard->piece[i]);
    to_stride *= mgrid_piece_size(&to[i], part->piece[i]);
    w->n[i] = shared_runs(&from[i], shard->piece[i], &to[i], part->piece[i], NULL);
    w->left *= (int64_t)w->n[i];
    w->run[i] = malloc((w->n[i] ? w->n[i] : 1) * sizeof *w->run[i]);
    if (!w->run[i]) {
      mgrid_boxes_end(w);
      return false;
    }
    shared_runs(&from[i], shard->piece[i], &to[i], part->piece[i], w->run[i]);
  }
  return true;
}

void mgrid_boxes_end(mgrid_boxes *w) {
  for (size_t i = 0; i < w->naxes; i++) free(w->run[i]);
  *w = (mgrid_boxes){ .naxes = 0 };
}

bool mgrid_boxes_next(mgrid_boxes *w, mgrid_move_piece *piece) {
  if (w->left == 0) return false;
  w->left--;
  piece->naxes = w->naxes;
  piece->from_offset = piece->to_offset = 0;
  piece->bytes = w->width;
  for (size_t i = 0; i < w->naxes; i++) {
    const mgrid_shared_run *run = &w->run[i][w->at[i]];
    piece->lengths[i] = run->length;
    piece->from_strides[i] = w->from_strides[i];
    piece->to_strides[i] = w->to_strides[i];
    piece->from_offset += run->from * w->from_strides[i];
    piece->to_offset += run->to * w->to_strides[i];
    piece->bytes *= run->length;
  }
  for (size_t i = w->naxes; i-- > 0 && ++w->at[i] == w->n[i];) w->at[i] = 0;
  return true;
}
