/* SPDX-License-Identifier: MIT
**
** read.c - read a part of a tensor from the stored parts.
**
** The wanted part and a stored one have runs in common on each axis. Their intersection is every combination of these: for
** each combination of the outer axes a row of elements that is contiguous in both. Each row is one read, straight into
** place.
*/
#include "checkpoints/index.h"

#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>

enum { OPEN_FILES = 64 }; /* at most */

typedef struct common_run {
  int64_t from, to, length; /* indices in the stored part and in the wanted one */
} common_run;

typedef struct reading {
  shards              *s;
  const shards_tensor *t;
  const shards_part   *from, *want;
  const st_tensor     *in;                /* the tensor in the file of `from` */
  size_t               inner;             /* the last axis that does not merge with those after it into one row */
  size_t               n[MGRID_AXES_MAX]; /* common runs */
  common_run          *run[MGRID_AXES_MAX];
  int64_t              from_stride[MGRID_AXES_MAX], to_stride[MGRID_AXES_MAX];
  int64_t              from_low, from_high, to_low, to_high; /* elements stored, and elements wanted now */
  char                *out;                                  /* where element to_low goes */
  int64_t              found;                                /* elements so far */
  mgrid_error         *err;
} reading;

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t most(int64_t a, int64_t b) { return a > b ? a : b; }

static size_t find_common(size_t na, const mgrid_run *a, size_t nb, const mgrid_run *b, common_run *out) {
  size_t  n = 0;
  int64_t a_at = 0, b_at = 0; /* elements before the current runs */
  for (size_t i = 0, k = 0; i < na && k < nb;) {
    int64_t a_end = a[i].start + a[i].length, b_end = b[k].start + b[k].length;
    int64_t low = most(a[i].start, b[k].start), high = least(a_end, b_end);
    if (low < high) out[n++] = (common_run){ a_at + low - a[i].start, b_at + low - b[k].start, high - low };
    if (a_end < b_end)
      a_at += a[i++].length;
    else
      b_at += b[k++].length;
  }
  return n;
}

/* Narrow the indices *low to *high - 1 to those with elements in begin to end - 1. Each index has `stride` elements; those
** of index 0 start at `at`. */
static void narrow(int64_t at, int64_t stride, int64_t begin, int64_t end, int64_t *low, int64_t *high) {
  if (begin > at) *low = most(*low, (begin - at) / stride);
  *high = end > at ? least(*high, (end - at - 1) / stride + 1) : 0;
}

/* Before a file is reopened, close all of them after every OPEN_FILES reopenings: a process may have only a few open. */
static void keep_open(shards *s, st_file *f) {
  if (f->fd >= 0 || s->nfiles <= OPEN_FILES) return;
  if (++s->recent % OPEN_FILES) return;
  for (size_t i = 0; i < s->nfiles; i++) {
    if (s->file[i]->fd >= 0) close(s->file[i]->fd);
    s->file[i]->fd = -1;
  }
}

static void read_row(reading *r, int64_t from, int64_t to, int64_t n) {
  int64_t skip = most(0, most(r->from_low - from, r->to_low - to)), width = r->t->width;
  n = least(n, least(r->from_high - from, r->to_high - to)) - skip;
  if (n <= 0) return;
  keep_open(r->s, r->from->file);
  int64_t place = (from + skip - r->from_low) * width;
  if (st_read(r->from->file, r->in, place, r->out + (to + skip - r->to_low) * width, n * width, r->err)) return;
  r->found += n;
  r->s->read += n * width;
}

static void read_axis(reading *r, size_t axis, int64_t from, int64_t to) {
  int64_t from_stride = r->from_stride[axis], to_stride = r->to_stride[axis];
  for (size_t i = 0; i < r->n[axis] && !r->err->status; i++) {
    const common_run *c = &r->run[axis][i];
    int64_t           low = 0, high = c->length, a = from + c->from * from_stride, b = to + c->to * to_stride;
    narrow(a, from_stride, r->from_low, r->from_high, &low, &high);
    narrow(b, to_stride, r->to_low, r->to_high, &low, &high);
    if (axis == r->inner && low < high)
      read_row(r, a, b, c->length * from_stride);
    else
      for (; low < high && !r->err->status; low++) read_axis(r, axis + 1, a + low * from_stride, b + low * to_stride);
  }
}

/* Read what one stored part holds of it. */
static void read_from(reading *r, const shards_part *from) {
  const shards_part *want = r->want;
  size_t             room = 1;
  r->from = from;
  r->in = st_find(from->file, r->t->name);
  r->from_low = from->first, r->from_high = from->first + from->elements;
  for (size_t k = 0; k < r->t->naxes; k++) room += from->nruns[k] + want->nruns[k];
  common_run *runs = malloc(room * sizeof *runs), *at = runs;
  bool        any = runs != NULL;
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
  if (any) read_axis(r, 0, 0, 0);
  free(runs);
}

mgrid_status shards_read(shards *s, const shards_tensor *t, const shards_part *want, int64_t from, int64_t n, void *to,
                         mgrid_error *err) {
  reading r = { .s = s, .t = t, .want = want, .out = to, .err = err };
  r.to_low = want->first + from, r.to_high = r.to_low + n;
  for (size_t i = 0; i < t->nparts && !err->status && r.found < n; i++) read_from(&r, &t->part[i]);
  if (!err->status && r.found != n)
    mgrid_fail(err, MGRID_REFUSED, "the index on tensor '%.200s': %" PRId64 " elements of it are in no part", t->name,
               n - r.found);
  return err->status;
}
