/* SPDX-License-Identifier: MIT
**
** overlap.c - what a shard and a part have in common: on each axis the runs in common, within the boxes to which flats
** limit them.
*/
#include "tensors/move.h"

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t most(int64_t a, int64_t b) { return a > b ? a : b; }

mgrid_sharing mgrid_sharing_begin(const mgrid_slicing *a, int64_t p, const mgrid_slicing *b, int64_t q) {
  mgrid_sharing w = { .a = mgrid_walk_begin(a, p), .b = mgrid_walk_begin(b, q) };
  w.more = mgrid_walk_next(&w.a, &w.x) && mgrid_walk_next(&w.b, &w.y);
  return w;
}

bool mgrid_sharing_next(mgrid_sharing *w, mgrid_shared_run *run) {
  while (w->more) {
    int64_t x_end = w->x.start + w->x.length, y_end = w->y.start + w->y.length;
    int64_t start = most(w->x.start, w->y.start), end = least(x_end, y_end);
    *run = (mgrid_shared_run){ w->x_at + start - w->x.start, w->y_at + start - w->y.start, end - start };
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

void mgrid_shared_clip(mgrid_shared_run *run, const mgrid_blocks *from, const mgrid_blocks *to, size_t axis) {
  int64_t skip = most(0, most(from->low[axis] - run->from, to->low[axis] - run->to));
  int64_t end = least(run->length, least(from->high[axis] - run->from, to->high[axis] - run->to));
  *run = (mgrid_shared_run){ run->from + skip, run->to + skip, end - skip };
}

/* Return what one box of each side have in common. */
static mgrid_common common_of_boxes(const mgrid_pair *p, const mgrid_seat *shard, const mgrid_seat *part,
                                    const mgrid_blocks *from, const mgrid_blocks *to) {
  mgrid_common o = { .elements = 1 };
  int64_t      from_stride = 1, to_stride = 1;
  for (size_t i = p->from->naxes; i-- > 0;) {
    mgrid_sharing    w = mgrid_sharing_begin(&p->from->axis[i], shard->piece[i], &p->to->axis[i], part->piece[i]);
    mgrid_shared_run run, last = { 0, 0, 0 };
    int64_t          n = 0;
    while (mgrid_sharing_next(&w, &run)) {
      mgrid_shared_clip(&run, from, to, i);
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

mgrid_common mgrid_common_of(const mgrid_pair *p, const mgrid_seat *shard, const mgrid_seat *part,
                             const mgrid_blocks *of_shard, const mgrid_blocks *of_part) {
  mgrid_common sum = { .elements = 0 };
  for (mgrid_blocks from = *of_shard; mgrid_blocks_next(&from);)
    for (mgrid_blocks to = *of_part; mgrid_blocks_next(&to);) {
      mgrid_common o = common_of_boxes(p, shard, part, &from, &to);
      if (o.elements == 0) continue;
      bool first = sum.elements == 0;
      sum = (mgrid_common){ .elements = sum.elements + o.elements,
                            .from_first = first ? o.from_first : least(sum.from_first, o.from_first),
                            .from_last = first ? o.from_last : most(sum.from_last, o.from_last),
                            .to_first = first ? o.to_first : least(sum.to_first, o.to_first),
                            .to_last = first ? o.to_last : most(sum.to_last, o.to_last) };
    }
  return sum;
}

int64_t mgrid_common_bytes(const mgrid_pair *p, const mgrid_seat *shard, const mgrid_seat *part) {
  int64_t bytes = p->from->width;
  if (p->flat) {
    mgrid_blocks from = mgrid_blocks_begin(p->from, shard), to = mgrid_blocks_begin(p->to, part);
    return bytes * mgrid_common_of(p, shard, part, &from, &to).elements;
  }
  for (size_t i = 0; i < p->from->naxes; i++)
    bytes *= mgrid_pieces_common(&p->from->axis[i], shard->piece[i], &p->to->axis[i], part->piece[i]);
  return bytes;
}
