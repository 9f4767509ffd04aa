/* SPDX-License-Identifier: MIT
**
** boxes.c - the contents of a message, as boxes of both parts: on each axis the runs in common, and all combinations
** of these.
*/
#include "tensors/move.h"

#include <stdlib.h>

/* Return the kth run of axis i. */
static mgrid_shared_run run_at(const mgrid_boxes *w, size_t i, size_t k) {
  return w->more[i] && k > 0 ? w->more[i][k - 1] : w->one[i];
}

/* Find the runs on each axis that both boxes have in common; they are neighbours in the list. */
static void meet(mgrid_boxes *w) {
  w->left = 1;
  for (size_t i = 0; i < w->naxes; i++) {
    w->low[i] = w->met[i] = w->at[i] = 0;
    for (size_t k = 0; k < w->n[i]; k++) {
      mgrid_shared_run run = run_at(w, i, k);
      mgrid_shared_clip(&run, &w->from, &w->to, i);
      if (run.length > 0 && w->met[i]++ == 0) w->low[i] = k;
    }
    w->left *= (int64_t)w->met[i];
  }
}

/* Go to the next two boxes: each of the shard with each of the part. */
static bool next_boxes(mgrid_boxes *w) {
  if (!mgrid_blocks_next(&w->to)) {
    if (!mgrid_blocks_next(&w->from)) return false;
    w->to = w->first;
    mgrid_blocks_next(&w->to);
  }
  meet(w);
  return true;
}

bool mgrid_boxes_begin(mgrid_boxes *w, const mgrid_pair *p, const mgrid_seat *shard, const mgrid_seat *part) {
  const mgrid_slicing *from = p->from->axis, *to = p->to->axis;
  int64_t              from_stride = 1, to_stride = 1;
  *w = (mgrid_boxes){ .naxes = p->from->naxes, .width = p->from->width };
  w->from = mgrid_blocks_begin(p->from, shard);
  w->to = w->first = mgrid_blocks_begin(p->to, part);
  w->from_begin = w->from.at;
  w->to_begin = w->to.at;
  for (size_t i = w->naxes; i-- > 0;) {
    mgrid_sharing    both = mgrid_sharing_begin(&from[i], shard->piece[i], &to[i], part->piece[i]);
    mgrid_shared_run run;
    w->from_strides[i] = from_stride;
    w->to_strides[i] = to_stride;
    from_stride *= w->from.shape[i];
    to_stride *= w->to.shape[i];
    if (!mgrid_sharing_next(&both, &w->one[i])) continue;
    mgrid_sharing others = both;
    for (w->n[i] = 1; mgrid_sharing_next(&both, &run);) w->n[i]++;
    if (w->n[i] == 1) continue; /* the usual case: nothing is allocated */
    w->more[i] = malloc((w->n[i] - 1) * sizeof *w->more[i]);
    if (!w->more[i]) {
      mgrid_boxes_end(w);
      return false;
    }
    for (size_t k = 0; mgrid_sharing_next(&others, &run); k++) w->more[i][k] = run;
  }
  if (!mgrid_blocks_next(&w->from) || !mgrid_blocks_next(&w->to)) { /* one side has none */
    w->from.at = w->from.end;
    w->to.at = w->to.end;
    return true;
  }
  meet(w);
  return true;
}

void mgrid_boxes_end(mgrid_boxes *w) {
  for (size_t i = 0; i < w->naxes; i++) free(w->more[i]);
  w->naxes = 0;
  w->left = w->from.at = w->from.end = w->to.at = w->to.end = 0; /* there are no more */
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
    mgrid_shared_clip(&run, &w->from, &w->to, i);
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
