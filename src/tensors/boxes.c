/* SPDX-License-Identifier: MIT
**
** boxes.c - divides into boxes: the elements of a part, the elements that a shard and a part have
** in common, and the elements of a message. A box has one run of indices on each axis; its elements
** are all combinations of these indices.
*/
#include "tensors/move.h"
#include "tensors/tensor.h"

#include <stdlib.h>

/* ================================================================= of a part */

mgrid_blocks mgrid_blocks_whole(const mgrid_tensor *t, const mgrid_coords *at) {
  mgrid_blocks w = { .naxes = t->naxes, .end = 1 };
  for (size_t i = 0; i < t->naxes; i++)
    w.end *= w.shape[i] = mgrid_piece_size(&t->axis[i], at->piece[i]);
  return w;
}

mgrid_blocks mgrid_blocks_begin(const mgrid_tensor *t, const mgrid_coords *at) {
  mgrid_blocks w = mgrid_blocks_whole(t, at);
  if (!t->flat) return w;
  mgrid_run range = mgrid_tensor_range(t, at);
  w.at = range.start;
  w.end = range.start + range.length;
  return w;
}

/* Go to the next box: take whole steps along the slowest axis on which a step starts here and
** fits. */
static bool blocks_next(mgrid_blocks *w) {
  int64_t stride = 1, step = 1;
  size_t axis = w->naxes - 1;
  if (w->at >= w->end) return false;
  for (size_t i = w->naxes; i-- > 0; stride *= w->shape[i]) {
    if (w->at % stride != 0 || stride > w->end - w->at) break;
    step = stride;
    axis = i;
  }
  stride = 1;
  for (size_t i = w->naxes; i-- > 0; stride *= w->shape[i]) {
    w->low[i] = i > axis ? 0 : w->at / stride % w->shape[i];
    w->high[i] = i > axis ? w->shape[i] : w->low[i] + 1;
  }
  int64_t rest = (w->end - w->at) / step, steps = w->shape[axis] - w->low[axis];
  if (rest < steps) steps = rest;
  w->high[axis] = w->low[axis] + steps;
  w->at += steps * step;
  return true;
}

/* ================================================================= in common */

/* Walks the runs that two pieces of an axis have in common, ascending. */
typedef struct sharing {
  mgrid_walk a, b;
  mgrid_run x, y;     /* the current run of each piece */
  int64_t x_at, y_at; /* where it starts in the piece */
  bool more;
} sharing;

static sharing sharing_begin(const mgrid_slicing *a, int64_t p, const mgrid_slicing *b, int64_t q) {
  sharing w = { .a = mgrid_walk_begin(a, p), .b = mgrid_walk_begin(b, q) };
  w.more = mgrid_walk_next(&w.a, &w.x) && mgrid_walk_next(&w.b, &w.y);
  return w;
}

static bool sharing_next(sharing *w, mgrid_shared_run *run) {
  while (w->more) {
    int64_t x_end = w->x.start + w->x.length, y_end = w->y.start + w->y.length;
    int64_t start = mgrid_max(w->x.start, w->y.start), end = mgrid_min(x_end, y_end);
    *run = (mgrid_shared_run){ w->x_at + start - w->x.start, w->y_at + start - w->y.start,
                               end - start };
    if (x_end < y_end) {
      w->x_at += w->x.length;
      w->more = mgrid_walk_next(&w->a, &w->x);
    } else {
      w->y_at += w->y.length;
      w->more = mgrid_walk_next(&w->b, &w->y);
    }
    if (start < end) return true;
  }
  return false;
}

/* Clip a run to the indices of both boxes on the axis. Its length may become 0 or negative. */
static void shared_clip(mgrid_shared_run *run, const mgrid_blocks *from, const mgrid_blocks *to,
                        size_t axis) {
  int64_t skip = mgrid_max(0, mgrid_max(from->low[axis] - run->from, to->low[axis] - run->to));
  int64_t end =
      mgrid_min(run->length, mgrid_min(from->high[axis] - run->from, to->high[axis] - run->to));
  *run = (mgrid_shared_run){ run->from + skip, run->to + skip, end - skip };
}

/* Return what a box of one side and a box of the other have in common. */
static mgrid_common common_of_boxes(const mgrid_pair *p, const mgrid_coords *shard,
                                    const mgrid_coords *part, const mgrid_blocks *from,
                                    const mgrid_blocks *to) {
  mgrid_common o = { .elements = 1 };
  int64_t from_stride = 1, to_stride = 1;

  for (size_t i = p->from->naxes; i-- > 0;) {
    sharing w = sharing_begin(&p->from->axis[i], shard->piece[i], &p->to->axis[i], part->piece[i]);
    mgrid_shared_run run, last = { 0, 0, 0 };
    int64_t n = 0;
    while (sharing_next(&w, &run)) {
      shared_clip(&run, from, to, i);
      if (run.length <= 0) continue;
      if (n == 0) {
        o.from_first += run.from * from_stride;
        o.to_first += run.to * to_stride;
      }
      n += run.length;
      last = run;
    }
    if (n == 0) return (mgrid_common){ .elements = 0 };
    o.elements *= n;
    o.from_last += (last.from + last.length - 1) * from_stride;
    o.to_last += (last.to + last.length - 1) * to_stride;
    from_stride *= from->shape[i];
    to_stride *= to->shape[i];
  }
  return o;
}

mgrid_common mgrid_common_of(const mgrid_pair *p, const mgrid_coords *shard,
                             const mgrid_coords *part, const mgrid_blocks *of_shard,
                             const mgrid_blocks *of_part) {
  mgrid_common sum = { .elements = 0 };
  for (mgrid_blocks from = *of_shard; blocks_next(&from);)
    for (mgrid_blocks to = *of_part; blocks_next(&to);) {
      mgrid_common o = common_of_boxes(p, shard, part, &from, &to);
      if (o.elements == 0) continue;
      bool first = sum.elements == 0;
      sum =
          (mgrid_common){ .elements = sum.elements + o.elements,
                          .from_first = first ? o.from_first
                                              : mgrid_min(sum.from_first, o.from_first),
                          .from_last = first ? o.from_last : mgrid_max(sum.from_last, o.from_last),
                          .to_first = first ? o.to_first : mgrid_min(sum.to_first, o.to_first),
                          .to_last = first ? o.to_last : mgrid_max(sum.to_last, o.to_last) };
    }
  return sum;
}

int64_t mgrid_common_bytes(const mgrid_pair *p, const mgrid_coords *shard,
                           const mgrid_coords *part) {
  int64_t bytes = p->from->width;
  if (p->flat) {
    mgrid_blocks from = mgrid_blocks_begin(p->from, shard), to = mgrid_blocks_begin(p->to, part);
    return bytes * mgrid_common_of(p, shard, part, &from, &to).elements;
  }
  for (size_t i = 0; i < p->from->naxes; i++)
    bytes *=
        mgrid_pieces_common(&p->from->axis[i], shard->piece[i], &p->to->axis[i], part->piece[i]);
  return bytes;
}

/* ============================================================== of a message */

/* Return the kth run of axis i. */
static mgrid_shared_run run_at(const mgrid_boxes *w, size_t i, size_t k) {
  return w->more[i] && k > 0 ? w->more[i][k - 1] : w->one[i];
}

/* On each axis, find the runs that are in both current boxes. They are consecutive in the list of
** the axis. */
static void boxes_overlap(mgrid_boxes *w) {
  w->left = 1;
  for (size_t i = 0; i < w->naxes; i++) {
    w->low[i] = w->met[i] = w->at[i] = 0;
    for (size_t k = 0; k < w->n[i]; k++) {
      mgrid_shared_run run = run_at(w, i, k);
      shared_clip(&run, &w->from, &w->to, i);
      if (run.length > 0 && w->met[i]++ == 0) w->low[i] = k;
    }
    w->left *= (int64_t)w->met[i];
  }
}

/* Go to the next pair of a box of the shard and a box of the part. */
static bool next_boxes(mgrid_boxes *w) {
  if (!blocks_next(&w->to)) {
    if (!blocks_next(&w->from)) return false;
    w->to = w->first;
    blocks_next(&w->to);
  }
  boxes_overlap(w);
  return true;
}

bool mgrid_boxes_begin(mgrid_boxes *w, const mgrid_pair *p, const mgrid_coords *shard,
                       const mgrid_coords *part) {
  const mgrid_slicing *from = p->from->axis, *to = p->to->axis;
  int64_t from_stride = 1, to_stride = 1;

  *w = (mgrid_boxes){ .naxes = p->from->naxes, .width = p->from->width };
  w->from = mgrid_blocks_begin(p->from, shard);
  w->to = w->first = mgrid_blocks_begin(p->to, part);
  w->from_begin = w->from.at;
  w->to_begin = w->to.at;
  for (size_t i = w->naxes; i-- > 0;) {
    sharing both = sharing_begin(&from[i], shard->piece[i], &to[i], part->piece[i]);
    mgrid_shared_run run;
    w->from_strides[i] = from_stride;
    w->to_strides[i] = to_stride;
    from_stride *= w->from.shape[i];
    to_stride *= w->to.shape[i];
    if (!sharing_next(&both, &w->one[i])) continue;
    sharing others = both;
    for (w->n[i] = 1; sharing_next(&both, &run);) w->n[i]++;
    if (w->n[i] == 1) continue; /* the usual case, in which nothing is allocated */
    w->more[i] = malloc((w->n[i] - 1) * sizeof *w->more[i]);
    if (!w->more[i]) {
      mgrid_boxes_end(w);
      return false;
    }
    for (size_t k = 0; sharing_next(&others, &run); k++) w->more[i][k] = run;
  }
  if (!blocks_next(&w->from) || !blocks_next(&w->to)) { /* one side has no box */
    w->from.at = w->from.end;
    w->to.at = w->to.end;
    return true;
  }
  boxes_overlap(w);
  return true;
}

void mgrid_boxes_end(mgrid_boxes *w) {
  for (size_t i = 0; i < w->naxes; i++) free(w->more[i]);
  w->naxes = 0;
  w->left = w->from.at = w->from.end = w->to.at = w->to.end = 0; /* no box is left */
}

bool mgrid_boxes_next(mgrid_boxes *w, mgrid_move_piece *piece) {
  while (w->left == 0)
    if (!next_boxes(w)) return false;
  w->left--;
  piece->naxes = w->naxes;
  piece->from_offset = -w->from_begin;
  piece->to_offset = -w->to_begin;
  piece->bytes = w->width;
  for (size_t i = 0; i < w->naxes; i++) {
    mgrid_shared_run run = run_at(w, i, w->low[i] + w->at[i]);
    shared_clip(&run, &w->from, &w->to, i);
    piece->lengths[i] = run.length;
    piece->from_strides[i] = w->from_strides[i];
    piece->to_strides[i] = w->to_strides[i];
    piece->from_offset += run.from * w->from_strides[i];
    piece->to_offset += run.to * w->to_strides[i];
    piece->bytes *= run.length;
  }
  for (size_t i = w->naxes; i-- > 0 && ++w->at[i] == w->met[i];) w->at[i] = 0;
  return true;
}
