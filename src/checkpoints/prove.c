/* SPDX-License-Identifier: MIT
**
** prove.c - prove that the parts of a tensor hold each of its elements exactly once, before anything is read.
**
** A part is every combination of its runs on each axis: a set of boxes. A slice of a part in C order is a few boxes, too. On
** the first axis the runs of all boxes cut the axis into intervals; in each interval the same boxes are present. For each
** interval, ask the same of these boxes on the next axis. On the last axis the remaining runs must follow each other
** without gap or overlap, from the first index to the last.
*/
#include "checkpoints/index.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

typedef struct box {
  const shards_part *part;
  shards_box         in;
} box;

typedef struct span {
  int64_t    start, end; /* indices of the tensor's axis */
  const box *of;
} span;

typedef struct proof {
  const shards_tensor *t;
  int64_t              at[MGRID_AXES_MAX]; /* the element under test */
  mgrid_error         *err;
} proof;

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t most(int64_t a, int64_t b) { return a > b ? a : b; }

/* ------------------------------------------------------------------ refusals */

static const char *file_name(const box *b) {
  const char *slash = strrchr(b->part->file->path, '/');
  return slash ? slash + 1 : b->part->file->path;
}

/* Refuse because of element p->at, which is in no part, or in both a and b. */
static mgrid_status refuse(const proof *p, const box *a, const box *b) {
  char   element[MGRID_AXES_MAX * 24] = "";
  size_t n = 0;
  for (size_t k = 0; k < p->t->naxes; k++)
    n += (size_t)snprintf(element + n, sizeof element - n, "%s%" PRId64, k ? ", " : "", p->at[k]);
  if (!a)
    return mgrid_fail(p->err, MGRID_REFUSED, "the index on tensor '%.200s': no part has element [%s]", p->t->name,
                      element);
  return mgrid_fail(p->err, MGRID_REFUSED,
                    "the index on tensor '%.200s': the parts in %.80s and %.80s both have element [%s]", p->t->name,
                    file_name(a), file_name(b), element);
}

/* --------------------------------------------------------------------- boxes */

size_t shards_boxes(size_t naxes, const int64_t *shape, int64_t first, int64_t n, shards_box *out) {
  size_t  boxes = 0, last = naxes - 1;
  int64_t stride[MGRID_AXES_MAX], at = first, end = first + n;
  stride[last] = 1;
  for (size_t k = last; k-- > 0;) stride[k] = stride[k + 1] * shape[k + 1];
  for (; at < end; boxes++) {
    size_t axis = 0;
    while (at % stride[axis] || stride[axis] > end - at) axis++;
    shards_box *b = &out[boxes];
    for (size_t k = 0; k <= last; k++) {
      int64_t index = at / stride[k] % shape[k];
      b->low[k] = k > axis ? 0 : index;
      b->high[k] = k > axis ? shape[k] : index + 1;
    }
    int64_t more = least(shape[axis] - b->low[axis], (end - at) / stride[axis]);
    b->high[axis] = b->low[axis] + more;
    at += more * stride[axis];
  }
  return boxes;
}

/* Cut a part into boxes. */
static size_t boxes_of(const shards_part *part, box *out) {
  shards_box list[SHARDS_BOXES_MAX];
  size_t     n = part->elements ? shards_boxes(part->naxes, part->shape, part->first, part->elements, list) : 0;
  for (size_t i = 0; i < n; i++) out[i] = (box){ part, list[i] };
  return n;
}

static int by_start(const void *a, const void *b) {
  const span *x = a, *y = b;
  return (x->start > y->start) - (x->start < y->start);
}

/* List the spans of the boxes on an axis, sorted by start. NULL: out of memory. */
static span *spans_of(size_t axis, size_t n, const box *const *boxes, size_t *nspans) {
  size_t room = 1;
  for (size_t i = 0; i < n; i++) room += boxes[i]->part->nruns[axis];
  span *list = malloc(room * sizeof *list);
  *nspans = 0;
  for (size_t i = 0; i < n && list; i++) {
    const shards_part *part = boxes[i]->part;
    int64_t            before = 0; /* elements of the part before this run */
    for (size_t k = 0; k < part->nruns[axis]; before += part->runs[axis][k++].length) {
      const mgrid_run *run = &part->runs[axis][k];
      int64_t low = most(boxes[i]->in.low[axis], before), high = least(boxes[i]->in.high[axis], before + run->length);
      if (low < high) list[(*nspans)++] = (span){ run->start + low - before, run->start + high - before, boxes[i] };
    }
  }
  if (*nspans) qsort(list, *nspans, sizeof *list, by_start);
  return list;
}

/* --------------------------------------------------------------------- proof */

static mgrid_status prove_last(proof *p, size_t n, const span *spans) {
  size_t  axis = p->t->naxes - 1;
  int64_t end = 0;
  for (size_t i = 0; i < n; end = spans[i++].end) {
    p->at[axis] = least(end, spans[i].start);
    if (spans[i].start != end)
      return spans[i].start > end ? refuse(p, NULL, NULL) : refuse(p, spans[i - 1].of, spans[i].of);
  }
  p->at[axis] = end;
  return end == p->t->shape[axis] ? MGRID_OK : refuse(p, NULL, NULL);
}

static mgrid_status prove_axis(proof *p, size_t axis, size_t n, const box *const *boxes);

/* Go through the intervals. now[0 .. nnow) are the spans that contain the current one; their boxes go to `in`. */
static mgrid_status prove_intervals(proof *p, size_t axis, size_t n, const span *spans, const span **now,
                                    const box **in) {
  size_t  next = 0, nnow = 0;
  int64_t length = p->t->shape[axis];
  for (int64_t x = 0, end = 0; x < length && !p->err->status; x = end) {
    size_t kept = 0;
    for (size_t i = 0; i < nnow; i++)
      if (now[i]->end > x) now[kept++] = now[i];
    nnow = kept;
    while (next < n && spans[next].start == x) now[nnow++] = &spans[next++];
    end = next < n ? spans[next].start : length;
    for (size_t i = 0; i < nnow; i++) {
      end = least(end, now[i]->end);
      in[i] = now[i]->of;
    }
    p->at[axis] = x;
    prove_axis(p, axis + 1, nnow, in);
  }
  return p->err->status;
}

static mgrid_status prove_axis(proof *p, size_t axis, size_t n, const box *const *boxes) {
  size_t       nspans;
  span        *spans = spans_of(axis, n, boxes, &nspans);
  const span **now = malloc((n + 1) * sizeof(span *));
  const box  **in = malloc((n + 1) * sizeof(box *));
  for (size_t k = axis; k < p->t->naxes; k++) p->at[k] = 0;
  if (!spans || !now || !in)
    mgrid_oom(p->err);
  else if (n == 0)
    refuse(p, NULL, NULL);
  else if (axis + 1 == p->t->naxes)
    prove_last(p, nspans, spans);
  else
    prove_intervals(p, axis, nspans, spans, now, in);
  free(spans), free(now), free(in);
  return p->err->status;
}

mgrid_status shards_prove(const shards_tensor *t, mgrid_error *err) {
  proof  p = { t, { 0 }, err };
  size_t n = 0, room = 1;
  for (size_t i = 0; i < t->nparts; i++) {
    const shards_part *part = &t->part[i];
    bool               slice = part->elements != st_elements(part->naxes, part->shape);
    room += slice ? 2 * part->naxes - 1 : 1;
  }
  box        *boxes = malloc(room * sizeof *boxes);
  const box **each = malloc(room * sizeof(box *));
  for (size_t i = 0; i < t->nparts && boxes; i++) n += boxes_of(&t->part[i], boxes + n);
  for (size_t i = 0; i < n && each && boxes; i++) each[i] = &boxes[i];
  if (boxes && each)
    prove_axis(&p, 0, n, each);
  else
    mgrid_oom(err);
  free(boxes), free(each);
  return err->status;
}
