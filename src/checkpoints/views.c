/* SPDX-License-Identifier: MIT
**
** views.c - read a wanted tensor through its view.
**
** The elements wanted now are a few boxes of the rank's part. What each of them has in common with a box of the view is
** a part of a stored tensor: it is read as such, and its rows are put where they belong.
*/
#include "checkpoints/views.h"
#include "checkpoints/elements.h"

#include <stdlib.h>
#include <string.h>

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t most(int64_t a, int64_t b) { return a > b ? a : b; }

/* ------------------------------------------------------------------- making */

mgrid_status view_begin(view *v, const char *type, size_t naxes, const int64_t *shape, const shards_tensor *same,
                        mgrid_error *err) {
  *v = (view){ .type = type, .naxes = naxes };
  memcpy(v->shape, shape, naxes * sizeof *shape);
  if (!same) return MGRID_OK;
  view_box *b = view_add(v, err);
  if (!b) return err->status;
  b->of = same;
  for (size_t k = 0; k < naxes; k++) {
    b->length[k] = shape[k];
    b->axis[k] = (int8_t)k;
  }
  v->plain = strcmp(type, same->type) == 0;
  return MGRID_OK;
}

view_box *view_add(view *v, mgrid_error *err) {
  if (!MGRID_GROW(v->box, v->n, 1)) return mgrid_null_oom(err);
  v->box[v->n] = (view_box){ .blocks = 1 };
  return &v->box[v->n++];
}

void view_free(view *v) {
  free(v->box);
  *v = (view){ 0 };
}

/* ------------------------------------------------------------------ reading */

typedef struct place { /* indices of the part on one axis: */
  int64_t at, length;  /* where they are in the part; the stored ones have no gap in what was read */
} place;

typedef struct putting {
  const view     *v;
  const view_box *box;
  size_t          n[MGRID_AXES_MAX];
  place          *place[MGRID_AXES_MAX];
  int64_t         in_stride[MGRID_AXES_MAX], out_stride[MGRID_AXES_MAX]; /* by wanted axis, in elements */
  const char     *in;
  char           *out;
  int64_t         in_width, out_width;
} putting;

static void put_axis(const putting *p, size_t axis, int64_t in, int64_t out) {
  for (size_t i = 0; i < p->n[axis]; i++) {
    int64_t from = out + p->place[axis][i].at * p->out_stride[axis], n = p->place[axis][i].length;
    if (axis + 1 == p->v->naxes)
      elements_copy(p->box->of->type, p->in + in * p->in_width, p->in_stride[axis], p->v->type,
                    p->out + from * p->out_width, n);
    else
      for (int64_t k = 0; k < n; k++)
        put_axis(p, axis + 1, in + k * p->in_stride[axis], from + k * p->out_stride[axis]);
    in += n * p->in_stride[axis];
  }
}

enum { BLOCKS_AT_ONCE = 4096 };

typedef struct cursor { /* the next block to read, and of which run of the part */
  size_t  run;
  int64_t block;
} cursor;

/* What the part and a box have in common on an axis. */
typedef struct shared {
  size_t     nplaces, nruns, room;
  place     *place; /* in the part */
  mgrid_run *run;   /* of the stored tensor */
} shared;

/* Add `length` indices; those that continue the last ones are one with them. */
static void add_shared(shared *s, int64_t in_part, int64_t stored, int64_t length) {
  place     *p = s->nplaces ? &s->place[s->nplaces - 1] : NULL;
  mgrid_run *r = s->nruns ? &s->run[s->nruns - 1] : NULL;
  if (p && p->at + p->length == in_part)
    p->length += length;
  else
    s->place[s->nplaces++] = (place){ in_part, length };
  if (r && r->start + r->length == stored)
    r->length += length;
  else
    s->run[s->nruns++] = (mgrid_run){ stored, length };
}

/* Find what the elements low to high - 1 of the part have in common with a box on an axis, from the cursor on as far as
** there is room. */
static void common(const shards_part *want, size_t axis, int64_t low, int64_t high, const view_box *b, cursor *next,
                   shared *s) {
  const bool    many = axis == b->along && b->blocks > 1;
  const int64_t start = b->start[axis], length = b->length[axis], step = many ? b->step : 1;
  int64_t       before = 0;
  for (size_t i = 0; i < want->nruns[axis] && length > 0; before += want->runs[axis][i++].length) {
    mgrid_run r = want->runs[axis][i]; /* of which `before` to before + length - 1 are the part's */
    int64_t   from = most(r.start + low - before, r.start), to = least(r.start + high - before, r.start + r.length);
    if (from >= to || i < next->run) continue;
    int64_t g = many && from > start ? (from - start) / step : 0;
    if (i == next->run) g = most(g, next->block);
    for (; g < (many ? b->blocks : 1) && start + g * step < to; g++) {
      int64_t at = start + g * step, first = most(from, at), end = least(to, at + length);
      if (s->nplaces == s->room || s->nruns == s->room) {
        *next = (cursor){ i, g };
        return;
      }
      int64_t stored = b->axis[axis] < 0 ? 0 : b->at[b->axis[axis]] + (many ? g * b->at_step : 0);
      if (first < end) add_shared(s, before + first - r.start, stored + first - at, end - first);
    }
  }
  *next = (cursor){ want->nruns[axis], 0 };
}

/* Read what the part and the blocks of a box have in common. `first` is the element of the part that `out` begins with. */
static mgrid_status read_shared(shards *s, const shards_part *want, const view_box *b, const shared *has, const view *v,
                                int64_t first, char *out, mgrid_error *err) {
  shards_part part = { .naxes = b->of->naxes };
  putting     p = { .v = v, .box = b, .in_width = b->of->width, .out_width = st_width(v->type) };
  for (size_t k = 0; k < part.naxes; k++) part.nruns[k] = 1; /* of an axis that the wanted tensor lacks */
  for (size_t k = 0; k < v->naxes; k++) {
    p.n[k] = has[k].nplaces, p.place[k] = has[k].place;
    if (b->axis[k] >= 0) part.nruns[b->axis[k]] = has[k].nruns;
  }
  if (shards_part_room(&part, err)) return err->status;
  for (size_t k = 0; k < part.naxes; k++) part.runs[k][0] = (mgrid_run){ b->at[k], 1 };
  for (size_t k = 0; k < v->naxes; k++)
    if (b->axis[k] >= 0) memcpy(part.runs[b->axis[k]], has[k].run, has[k].nruns * sizeof *has[k].run);
  shards_part_shape(&part);
  part.elements = st_elements(part.naxes, part.shape);
  int64_t stride[MGRID_AXES_MAX + 1] = { 0 }, wide = 1;
  for (size_t k = part.naxes; k-- > 0; wide *= part.shape[k]) stride[k] = wide;
  wide = 1;
  for (size_t k = v->naxes; k-- > 0; wide *= want->shape[k]) {
    p.out_stride[k] = wide;
    p.in_stride[k] = b->axis[k] < 0 ? 0 : stride[b->axis[k]];
  }
  char *got = malloc((size_t)(part.elements * p.in_width));
  if (!got) mgrid_oom(err);
  if (got && !shards_read(s, b->of, &part, 0, part.elements, got, err)) {
    p.in = got, p.out = out;
    put_axis(&p, 0, 0, -first);
  }
  free(got);
  shards_part_free(&part);
  return err->status;
}

/* Read what a box of the part has in common with a box of the view, some blocks at once. */
static mgrid_status read_box(shards *s, const view *v, const shards_part *want, const shards_box *in, const view_box *b,
                             int64_t first, char *out, mgrid_error *err) {
  shared has[MGRID_AXES_MAX];
  size_t room = 1, at = 0;
  for (size_t k = 0; k < v->naxes; k++)
    room += has[k].room = k == b->along && b->blocks > 1 ? BLOCKS_AT_ONCE : want->nruns[k];
  place     *places = malloc(room * sizeof *places);
  mgrid_run *runs = malloc(room * sizeof *runs);
  cursor     next = { 0 };
  if (!places || !runs) mgrid_oom(err);
  for (size_t k = 0; k < v->naxes; at += has[k++].room) has[k].place = places + at, has[k].run = runs + at;
  for (bool any = true; any && !err->status;) {
    for (size_t k = 0; k < v->naxes && any; k++) {
      cursor all = { 0 };
      has[k].nplaces = has[k].nruns = 0;
      common(want, k, in->low[k], in->high[k], b, k == b->along ? &next : &all, &has[k]);
      any = has[k].nplaces > 0;
    }
    if (any) read_shared(s, want, b, has, v, first, out, err);
    any &= v->naxes > 0 && next.run < want->nruns[b->along];
  }
  free(places), free(runs);
  return err->status;
}

mgrid_status view_read(shards *s, const view *v, const shards_part *want, int64_t from, int64_t n, void *to,
                       mgrid_error *err) {
  shards_box boxes[SHARDS_BOXES_MAX];
  if (v->plain) return shards_read(s, v->box[0].of, want, from, n, to, err);
  size_t nboxes = shards_boxes(v->naxes, want->shape, want->first + from, n, boxes);
  for (size_t i = 0; i < nboxes; i++)
    for (size_t k = 0; k < v->n && !err->status; k++)
      read_box(s, v, want, &boxes[i], &v->box[k], want->first + from, to, err);
  return err->status;
}
