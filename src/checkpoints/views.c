/* SPDX-License-Identifier: MIT
**
** views.c - reads a part of a stored tensor from the files, and a part of a wanted tensor through
** its view, in the wanted type.
*/
#include "checkpoints/views.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ========================================================== rows of elements */

/* Gather elements, and convert them between f64, f32, f16 and bf16. A conversion goes through f64,
** which has all values of the other types, so it rounds only once. */

/* the bits of exponent and fraction */
static const struct {
  const char *type;
  int exponent, fraction;
} floats[] = { { "f64", 11, 52 }, { "f32", 8, 23 }, { "f16", 5, 10 }, { "bf16", 8, 7 } };
enum { NFLOATS = sizeof floats / sizeof floats[0] };

static int float_of(const char *type) {
  for (int i = 0; i < NFLOATS; i++)
    if (strcmp(floats[i].type, type) == 0) return i;
  return -1;
}

bool elements_convert(const char *from, const char *to) {
  return strcmp(from, to) == 0 || (float_of(from) >= 0 && float_of(to) >= 0);
}

/* Return the bits of a narrower float as the bits of an f64. */
static uint64_t views_widen(uint64_t bits, int exponent, int fraction) {
  uint64_t sign = bits >> (exponent + fraction) << 63,
           part = bits & ((UINT64_C(1) << fraction) - 1);
  int64_t power = (int64_t)(bits >> fraction & ((UINT64_C(1) << exponent) - 1)),
          top = (INT64_C(1) << exponent) - 1;
  int64_t bias = top / 2;
  if (power == top) return sign | UINT64_C(0x7ff) << 52 | part << (52 - fraction);
  if (power == 0 && part == 0) return sign;
  if (power == 0) { /* a subnormal number becomes a normal f64, unless it is an f64 */
    if (exponent == 11) return bits;
    for (power = 1; !(part >> fraction); power--) part <<= 1;
    part &= (UINT64_C(1) << fraction) - 1;
  }
  return sign | (uint64_t)(power - bias + 1023) << 52 | part << (52 - fraction);
}

/* Return the bits of an f64 as the bits of a narrower float, rounded to the nearest, ties to
** even. */
static uint64_t element_narrow(uint64_t bits, int exponent, int fraction) {
  uint64_t sign = bits >> 63 << (exponent + fraction), part = bits & ((UINT64_C(1) << 52) - 1);
  int64_t power = (int64_t)(bits >> 52 & 0x7ff), top = (INT64_C(1) << exponent) - 1, bias = top / 2;
  if (exponent == 11) return bits;
  if (power == 0x7ff) /* infinity, or a NaN, which stays a quiet NaN */
    return sign | (uint64_t)top << fraction
           | (part ? part >> (52 - fraction) | UINT64_C(1) << (fraction - 1) : 0);
  if (power == 0) return sign; /* subnormals of f64 are far below half of the least value */
  int64_t drop = 52 - fraction, to = power - 1023 + bias;
  part |= UINT64_C(1) << 52;
  if (to <= 0) drop += 1 - to, to = 0; /* the result is subnormal */
  if (drop > 53) return sign;
  uint64_t kept = part >> drop, rest = part & ((UINT64_C(1) << drop) - 1),
           half = UINT64_C(1) << (drop - 1);
  kept += rest > half || (rest == half && (kept & 1));
  /* if the rounding carries into the exponent, the result is right */
  uint64_t all = to ? ((uint64_t)to << fraction) + (kept - (UINT64_C(1) << fraction)) : kept;
  return all >= (uint64_t)top << fraction ? sign | (uint64_t)top << fraction : sign | all;
}

static uint64_t views_load(const char *at, size_t width) {
  uint64_t bits = 0;
  for (size_t i = 0; i < width; i++) bits |= (uint64_t)(unsigned char)at[i] << 8 * i;
  return bits;
}

static void views_store(char *at, size_t width, uint64_t bits) {
  for (size_t i = 0; i < width; i++) at[i] = (char)(unsigned char)(bits >> 8 * i & 0xff);
}

/* Copy n elements of `from`, `stride` elements apart, to contiguous elements of `to`. A value that is
** too large for the type becomes infinite. Nothing has to be aligned. */
static void copy_elements(const char *from_type, const void *from, int64_t stride,
                          const char *to_type, void *to, int64_t n) {
  size_t width = (size_t)st_width(from_type), wide = (size_t)st_width(to_type);
  const char *in = from;
  char *out = to;
  int a = float_of(from_type), b = float_of(to_type);
  if (strcmp(from_type, to_type) == 0) {
    if (stride == 1)
      memcpy(out, in, (size_t)n * width);
    else
      for (int64_t i = 0; i < n; i++)
        memcpy(out + (size_t)i * width, in + (size_t)(i * stride) * width, width);
    return;
  }
  for (int64_t i = 0; i < n; i++) {
    uint64_t bits = views_widen(views_load(in + (size_t)(i * stride) * width, width),
                                floats[a].exponent, floats[a].fraction);
    views_store(out + (size_t)i * wide, wide,
                element_narrow(bits, floats[b].exponent, floats[b].fraction));
  }
}

/* ============================================================== stored parts */

/* On each axis, the wanted part and a stored part have runs in common. Their common elements are
** all combinations of these runs. For each combination on the outer axes, the common elements are a
** row that is contiguous in each of the two parts. Each row is one read, straight to its place. */

enum { OPEN_FILES = 64 }; /* most files that are open */

typedef struct common_run {
  int64_t from, to, length; /* indices in the stored part, and in the wanted part */
} common_run;

typedef struct reading {
  shards *s;
  const shards_tensor *t;
  const shards_part *from, *want;
  const st_tensor *in;      /* the tensor in the file of the stored part */
  size_t inner;             /* both parts have all indices of the axes after this one */
  size_t n[MGRID_AXES_MAX]; /* how many runs are common on each axis */
  common_run *run[MGRID_AXES_MAX];
  int64_t from_stride[MGRID_AXES_MAX], to_stride[MGRID_AXES_MAX];
  int64_t from_low, from_high; /* the stored part has elements from_low to from_high - 1 */
  int64_t to_low, to_high;     /* elements to_low to to_high - 1 of the wanted part are wanted */
  char *out;                   /* where element to_low goes */
  int64_t found;               /* how many elements were found so far */
  mgrid_error *err;
} reading;

static size_t find_common(size_t na, const mgrid_run *a, size_t nb, const mgrid_run *b,
                          common_run *out) {
  size_t n = 0;
  int64_t a_at = 0, b_at = 0; /* how many elements are before the current runs */
  for (size_t i = 0, k = 0; i < na && k < nb;) {
    int64_t a_end = a[i].start + a[i].length, b_end = b[k].start + b[k].length;
    int64_t low = shards_max(a[i].start, b[k].start), high = shards_min(a_end, b_end);
    if (low < high)
      out[n++] = (common_run){ a_at + low - a[i].start, b_at + low - b[k].start, high - low };
    if (a_end < b_end)
      a_at += a[i++].length;
    else
      b_at += b[k++].length;
  }
  return n;
}

/* Narrow the indices *low to *high - 1 to indices with elements in begin to end - 1. Index i has
** `stride` elements, from at + i x stride on. */
static void part_narrow(int64_t at, int64_t stride, int64_t begin, int64_t end, int64_t *low,
                        int64_t *high) {
  if (begin > at) *low = shards_max(*low, (begin - at) / stride);
  *high = end > at ? shards_min(*high, (end - at - 1) / stride + 1) : 0;
}

/* Before every OPEN_FILES-th time that a file is opened, close all files, because a process may have
** only a few open. */
static void keep_open(shards *s, st_file *f) {
  if (f->fd >= 0 || s->nfiles <= OPEN_FILES) return;
  if (++s->opened % OPEN_FILES) return;
  for (size_t i = 0; i < s->nfiles; i++) {
    if (s->file[i]->fd >= 0) close(s->file[i]->fd);
    s->file[i]->fd = -1;
  }
}

static void read_row(reading *r, int64_t from, int64_t to, int64_t n) {
  int64_t skip = shards_max(0, shards_max(r->from_low - from, r->to_low - to)), width = r->t->width;
  n = shards_min(n, shards_min(r->from_high - from, r->to_high - to)) - skip;
  if (n <= 0) return;
  keep_open(r->s, r->from->file);
  int64_t place = (from + skip - r->from_low) * width;
  if (st_read(r->from->file, r->in, place, r->out + (to + skip - r->to_low) * width, n * width,
              r->err))
    return;
  r->found += n;
  r->s->read += n * width;
}

static void views_read_axis(reading *r, size_t axis, int64_t from, int64_t to) {
  int64_t from_stride = r->from_stride[axis], to_stride = r->to_stride[axis];
  for (size_t i = 0; i < r->n[axis] && !r->err->status; i++) {
    const common_run *c = &r->run[axis][i];
    int64_t low = 0, high = c->length, a = from + c->from * from_stride, b = to + c->to * to_stride;
    part_narrow(a, from_stride, r->from_low, r->from_high, &low, &high);
    part_narrow(b, to_stride, r->to_low, r->to_high, &low, &high);
    if (axis == r->inner && low < high)
      read_row(r, a, b, c->length * from_stride);
    else
      for (; low < high && !r->err->status; low++)
        views_read_axis(r, axis + 1, a + low * from_stride, b + low * to_stride);
  }
}

/* Read the elements of the wanted part that a stored part has. */
static void read_from(reading *r, const shards_part *from) {
  const shards_part *want = r->want;
  size_t room = 1;

  r->from = from;
  r->in = st_find(from->file, r->t->name);
  r->from_low = from->first, r->from_high = from->first + from->elements;
  for (size_t k = 0; k < r->t->naxes; k++) room += from->nruns[k] + want->nruns[k];
  common_run *runs = malloc(room * sizeof *runs), *at = runs;
  bool any = runs != NULL;
  if (!runs) mgrid_oom(r->err);
  for (size_t k = 0; k < r->t->naxes && any; at += r->n[k++]) {
    r->run[k] = at;
    r->n[k] = find_common(from->nruns[k], from->runs[k], want->nruns[k], want->runs[k], at);
    any = r->n[k] > 0;
  }
  r->from_stride[r->t->naxes - 1] = r->to_stride[r->t->naxes - 1] = 1;
  for (size_t k = r->t->naxes - 1; k-- > 0;) {
    r->from_stride[k] = r->from_stride[k + 1] * from->shape[k + 1];
    r->to_stride[k] = r->to_stride[k + 1] * want->shape[k + 1];
  }
  for (r->inner = r->t->naxes - 1; r->inner > 0; r->inner--) {
    int64_t all = r->t->shape[r->inner];
    if (from->shape[r->inner] != all || want->shape[r->inner] != all) break;
  }
  if (any) views_read_axis(r, 0, 0, 0);
  free(runs);
}

mgrid_status shards_read(shards *s, const shards_tensor *t, const shards_part *want, int64_t from,
                         int64_t n, void *to, mgrid_error *err) {
  reading r = { .s = s, .t = t, .want = want, .out = to, .err = err };
  r.to_low = want->first + from, r.to_high = r.to_low + n;
  for (size_t i = 0; i < t->nparts && !err->status && r.found < n; i++) read_from(&r, &t->part[i]);
  if (!err->status && r.found != n)
    mgrid_fail(err, MGRID_REFUSED,
               "the index on tensor '%.200s': %" PRId64 " elements of it are in no part", t->name,
               n - r.found);
  return err->status;
}

/* ===================================================================== views */

/* The wanted elements are a few boxes of the rank's part. The elements that such a box and a box of
** the view have in common are a part of a stored tensor. Read this part, then put its elements where
** they belong. */

/* ------------------------------------------------------------------- making */

mgrid_status view_begin(view *v, const char *type, size_t naxes, const int64_t *shape,
                        const shards_tensor *same, mgrid_error *err) {
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

typedef struct place { /* consecutive indices of the part on an axis, read one after the other */
  int64_t at, length;
} place;

typedef struct putting {
  const view *v;
  const view_box *box;
  size_t n[MGRID_AXES_MAX];
  place *place[MGRID_AXES_MAX];
  /* for each wanted axis, in elements */
  int64_t in_stride[MGRID_AXES_MAX], out_stride[MGRID_AXES_MAX];
  const char *in;
  char *out;
  int64_t in_width, out_width;
} putting;

static void put_axis(const putting *p, size_t axis, int64_t in, int64_t out) {
  for (size_t i = 0; i < p->n[axis]; i++) {
    int64_t from = out + p->place[axis][i].at * p->out_stride[axis], n = p->place[axis][i].length;
    if (axis + 1 == p->v->naxes)
      copy_elements(p->box->of->type, p->in + in * p->in_width, p->in_stride[axis], p->v->type,
                    p->out + from * p->out_width, n);
    else
      for (int64_t k = 0; k < n; k++)
        put_axis(p, axis + 1, in + k * p->in_stride[axis], from + k * p->out_stride[axis]);
    in += n * p->in_stride[axis];
  }
}

enum { BLOCKS_AT_ONCE = 4096 };

typedef struct cursor { /* where to go on: a run of the part, and a block of the box */
  size_t run;
  int64_t block;
} cursor;

/* The indices that the part and a box have in common on an axis. */
typedef struct shared {
  size_t nplaces, nruns, room;
  place *place;   /* in the part */
  mgrid_run *run; /* in the stored tensor */
} shared;

/* Add `length` indices: extend the last place or run if they continue it, otherwise add another. */
static void add_shared(shared *s, int64_t in_part, int64_t stored, int64_t length) {
  place *p = s->nplaces ? &s->place[s->nplaces - 1] : NULL;
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

/* On an axis, find the indices that elements low to high - 1 of the part and a box have in common.
** Begin at the cursor, and stop when s is full. */
static void views_common(const shards_part *want, size_t axis, int64_t low, int64_t high,
                         const view_box *b, cursor *next, shared *s) {
  const bool many = axis == b->along && b->blocks > 1;
  const int64_t start = b->start[axis], length = b->length[axis], step = many ? b->step : 1;
  int64_t before = 0;

  for (size_t i = 0; i < want->nruns[axis] && length > 0; before += want->runs[axis][i++].length) {
    /* run i has elements `before` to `before` + length - 1 of the part */
    mgrid_run r = want->runs[axis][i];
    int64_t from = shards_max(r.start + low - before, r.start),
            to = shards_min(r.start + high - before, r.start + r.length);
    if (from >= to || i < next->run) continue;
    int64_t g = many && from > start ? (from - start) / step : 0;
    if (i == next->run) g = shards_max(g, next->block);
    for (; g < (many ? b->blocks : 1) && start + g * step < to; g++) {
      int64_t at = start + g * step, first = shards_max(from, at),
              end = shards_min(to, at + length);
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

/* Read the elements that the part and a box have in common, at the indices in `has`. `out` begins
** with element `first` of the part. */
static mgrid_status read_shared(shards *s, const shards_part *want, const view_box *b,
                                const shared *has, const view *v, int64_t first, char *out,
                                mgrid_error *err) {
  shards_part part = { .naxes = b->of->naxes };
  putting p = { .v = v, .box = b, .in_width = b->of->width, .out_width = st_width(v->type) };

  /* an axis that the wanted tensor does not have keeps one run, of one index */
  for (size_t k = 0; k < part.naxes; k++) part.nruns[k] = 1;
  for (size_t k = 0; k < v->naxes; k++) {
    p.n[k] = has[k].nplaces, p.place[k] = has[k].place;
    if (b->axis[k] >= 0) part.nruns[b->axis[k]] = has[k].nruns;
  }
  if (shards_part_room(&part, err)) return err->status;
  for (size_t k = 0; k < part.naxes; k++) part.runs[k][0] = (mgrid_run){ b->at[k], 1 };
  for (size_t k = 0; k < v->naxes; k++)
    if (b->axis[k] >= 0)
      memcpy(part.runs[b->axis[k]], has[k].run, has[k].nruns * sizeof *has[k].run);
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

/* Read the elements that a box of the part and a box of the view have in common, several blocks at a
** time. */
static mgrid_status read_box(shards *s, const view *v, const shards_part *want,
                             const shards_box *in, const view_box *b, int64_t first, char *out,
                             mgrid_error *err) {
  shared has[MGRID_AXES_MAX];
  size_t room = 1, at = 0;

  for (size_t k = 0; k < v->naxes; k++)
    room += has[k].room = k == b->along && b->blocks > 1 ? BLOCKS_AT_ONCE : want->nruns[k];
  place *places = malloc(room * sizeof *places);
  mgrid_run *runs = malloc(room * sizeof *runs);
  cursor next = { 0 };
  if (!places || !runs) mgrid_oom(err);
  for (size_t k = 0; k < v->naxes; at += has[k++].room)
    has[k].place = places + at, has[k].run = runs + at;
  for (bool any = true; any && !err->status;) {
    for (size_t k = 0; k < v->naxes && any; k++) {
      cursor all = { 0 };
      has[k].nplaces = has[k].nruns = 0;
      views_common(want, k, in->low[k], in->high[k], b, k == b->along ? &next : &all, &has[k]);
      any = has[k].nplaces > 0;
    }
    if (any) read_shared(s, want, b, has, v, first, out, err);
    any &= v->naxes > 0 && next.run < want->nruns[b->along];
  }
  free(places), free(runs);
  return err->status;
}

mgrid_status view_read(shards *s, const view *v, const shards_part *want, int64_t from, int64_t n,
                       void *to, mgrid_error *err) {
  shards_box boxes[SHARDS_BOXES_MAX];
  if (v->plain) return shards_read(s, v->box[0].of, want, from, n, to, err);
  size_t nboxes = shards_boxes(v->naxes, want->shape, want->first + from, n, boxes);
  for (size_t i = 0; i < nboxes; i++)
    for (size_t k = 0; k < v->n && !err->status; k++)
      read_box(s, v, want, &boxes[i], &v->box[k], want->first + from, to, err);
  return err->status;
}
