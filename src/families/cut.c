/* SPDX-License-Identifier: MIT
**
** cut.c - pieces of the groups of another family: segments of any sizes, and the splits that no layout
** exists for. A rank is asked of the base, so that a cut costs the memory of its sizes alone.
*/
#include "families/family.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* -------------------------------------------------------------------- making */

/* A cut whose pieces have `size` members, or -1 where they differ. It owns `starts`, also on failure. */
static mgrid_family *new_cut(const mgrid_family *base, int64_t n, int64_t *starts, int64_t size, mgrid_error *err) {
  mgrid_family *f = mgrid_family_alloc(MGRID_CUT, base->world, 0, err);
  if (!f) {
    free(starts);
    return NULL;
  }
  f->as.cut.base = mgrid_family_ref(base->origin ? base->origin : base);
  f->as.cut.n = n;
  f->as.cut.starts = starts;
  f->bytes += starts ? (size_t)(n + 1) * sizeof *starts : 0;
  if (mgrid_family_put_above(f, base, err)) {
    mgrid_family_free(f);
    return NULL;
  }
  f->count = base->count * n;
  f->size = f->max_size = size;
  for (int64_t i = 0; i < n && starts; i++)
    if (mgrid_cut_size(f, i) > f->max_size) f->max_size = mgrid_cut_size(f, i);
  f->total = base->total;
  f->low = base->low;
  f->high = base->high;
  return f;
}

mgrid_family *mgrid_cut_evenly(const mgrid_family *base, int64_t n, bool links, bool by_row, mgrid_error *err) {
  if (n <= 1 || base->count == 0) return mgrid_family_ref(base->origin ? base->origin : base);
  mgrid_family *f = new_cut(base, n, NULL, base->size / n, err);
  if (!f) return NULL;
  f->as.cut.links = links && f->size > 1; /* a piece of one position is both */
  f->as.cut.by_row = by_row && base->count > 1;
  return f;
}

mgrid_family *mgrid_cut_at(const mgrid_family *base, int64_t n, int64_t *starts, bool by_row, mgrid_error *err) {
  if (!starts) return mgrid_null_oom(err);
  int64_t first = starts[1], equal = 1;
  while (equal < n && starts[equal + 1] - starts[equal] == first) equal++;
  if (equal == n) {
    mgrid_family *runs = NULL;
    free(starts);
    by_row ? mgrid_family_split_rows(base, first, true, &runs, NULL, err)
           : mgrid_family_split(base, first, true, &runs, NULL, err);
    return runs;
  }
  mgrid_family *f = new_cut(base, n, starts, -1, err);
  if (f) f->as.cut.by_row = by_row && base->count > 1;
  return f;
}

/* ----------------------------------------------------------------- questions */

int64_t mgrid_cut_size(const mgrid_family *f, int64_t piece) {
  const int64_t *starts = f->as.cut.starts;
  return starts ? starts[piece + 1] - starts[piece] : f->size;
}

int64_t mgrid_cut_position(const mgrid_family *f, int64_t piece, int64_t position) {
  if (f->as.cut.links) return piece + position * f->as.cut.n;
  return position + (f->as.cut.starts ? f->as.cut.starts[piece] : piece * f->size);
}

int64_t mgrid_cut_piece(const mgrid_family *f, int64_t *group) {
  int64_t at = *group, groups = f->as.cut.base->count, n = f->as.cut.n;
  *group = f->as.cut.by_row ? at % groups : at / n;
  return f->as.cut.by_row ? at / groups : at % n;
}

/* The piece that has a position of the base; *position becomes the one in the piece. */
static int64_t piece_at(const mgrid_family *f, int64_t *position) {
  const int64_t *starts = f->as.cut.starts;
  int64_t        at = *position;
  if (f->as.cut.links) {
    *position = at / f->as.cut.n;
    return at % f->as.cut.n;
  }
  if (!starts) {
    *position = at % f->size;
    return at / f->size;
  }
  int64_t piece = mgrid_run_at(starts, f->as.cut.n, at);
  *position = at - starts[piece];
  return piece;
}

bool mgrid_cut_locate(const mgrid_family *f, int64_t rank, int64_t *group, int64_t *position) {
  const mgrid_family *base = f->as.cut.base;
  if (!mgrid_family_locate(base, rank, 0, group, position)) return false;
  int64_t piece = piece_at(f, position);
  *group = f->as.cut.by_row ? *group + piece * base->count : piece + *group * f->as.cut.n;
  return true;
}

bool mgrid_cut_same_rule(const mgrid_family *a, const mgrid_family *b) {
  const int64_t *x = a->as.cut.starts, *y = b->as.cut.starts;
  int64_t        n = a->as.cut.n;
  return n == b->as.cut.n && a->as.cut.links == b->as.cut.links && a->as.cut.by_row == b->as.cut.by_row && !x == !y
         && (!x || memcmp(x, y, (size_t)(n + 1) * sizeof *x) == 0)
         && mgrid_family_same_rule(a->as.cut.base, b->as.cut.base);
}

void mgrid_cut_text(const mgrid_family *f, mgrid_text *t) {
  const int64_t *starts = f->as.cut.starts;
  mgrid_text_str(t, starts ? "segments{" : f->as.cut.links ? "links(" : "split(");
  for (int64_t i = 0; i < f->as.cut.n && starts; i++) {
    if (i) mgrid_text_str(t, ",");
    mgrid_text_int(t, mgrid_cut_size(f, i));
  }
  if (!starts) mgrid_text_int(t, f->as.cut.links ? f->as.cut.n : f->size);
  if (f->as.cut.by_row) mgrid_text_str(t, " by row");
  mgrid_text_str(t, starts ? "}" : ")");
}

/* ------------------------------------------------------------------ segments */

mgrid_status mgrid_segments_check(int64_t size, size_t n, const int64_t *sizes, int64_t *fill, mgrid_error *err) {
  int64_t sum = 0;
  bool    filled = false;
  if (mgrid_count_check("segments", n, err)) return MGRID_OUT_OF_RANGE;
  if (mgrid_lacks_list(n, sizes, "sizes", err)) return MGRID_USAGE;
  if (n == 0) return mgrid_fail(err, MGRID_REFUSED, "segments: no sizes for groups of %" PRId64, size);
  for (size_t i = 0; i < n; i++) {
    if (sizes[i] == MGRID_FILL) {
      if (filled) return mgrid_fail(err, MGRID_DUPLICATE, "segments: two sizes are fill; only one can be");
      filled = true;
    } else if (sizes[i] < 1) {
      return mgrid_fail(err, MGRID_OUT_OF_RANGE, "segments: size %" PRId64 " of segment %zu; sizes are 1 to %" PRId64,
                        sizes[i], i, size);
    } else if (__builtin_add_overflow(sum, sizes[i], &sum)) {
      return mgrid_fail(err, MGRID_OVERFLOW, "segments: the sum of the sizes overflows 64 bits");
    }
  }
  if (filled && sum >= size)
    return mgrid_fail(err, MGRID_REFUSED,
                      "segments: the sizes sum to %" PRId64 ", which leaves nothing to fill of groups of %" PRId64, sum,
                      size);
  if (!filled && sum != size) {
    int64_t fits = size - (sum - sizes[n - 1]);
    if (fits > 0)
      return mgrid_fail(err, MGRID_REFUSED,
                        "segments: the sizes sum to %" PRId64 ", the groups have %" PRId64 "; a last size of %" PRId64
                        " fits",
                        sum, size, fits);
    return mgrid_fail(err, MGRID_REFUSED, "segments: the sizes sum to %" PRId64 ", the groups have %" PRId64, sum,
                      size);
  }
  *fill = size - sum;
  return MGRID_OK;
}

typedef struct wanted {
  size_t         n;
  const int64_t *sizes;
} wanted;

static mgrid_family *segments_of_child(const mgrid_family *child, void *ud, mgrid_error *err) {
  const wanted *w = ud;
  return mgrid_family_segments(child, w->n, w->sizes, err);
}

mgrid_family *mgrid_family_segments(const mgrid_family *f, size_t n, const int64_t *sizes, mgrid_error *err) {
  int64_t fill;
  if (!f) return NULL;
  if (f->overlapping) return mgrid_null(err, MGRID_REFUSED, "segments: the groups share ranks" MGRID_BY_LIST);
  if (f->form == MGRID_UNION) return mgrid_union_map(f, segments_of_child, &(wanted){ n, sizes }, err);
  if (f->count == 0) return mgrid_family_ref(f->origin ? f->origin : f);
  if (f->size < 0)
    return mgrid_null(err, MGRID_REFUSED, "segments: groups of different sizes, up to %" PRId64, f->max_size);
  if (mgrid_segments_check(f->size, n, sizes, &fill, err)) return NULL;
  int64_t *starts = malloc((n + 1) * sizeof *starts);
  for (size_t i = 0; i <= n && starts; i++)
    starts[i] = i == 0 ? 0 : starts[i - 1] + (sizes[i - 1] == MGRID_FILL ? fill : sizes[i - 1]);
  return mgrid_cut_at(f, (int64_t)n, starts, false, err);
}
