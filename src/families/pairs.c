/* SPDX-License-Identifier: MIT
**
** pairs.c - pairs of ranks at a fixed distance inside every group, with or without those around the
** end. No two ranks make two pairs: half way around a group the pairs around the end are those before it.
*/
#include "families/family.h"

#include <inttypes.h>
#include <stdlib.h>

/* A ring of two steps is one pair, not the same two ranks twice. (No sum: groups of one take any step.) */
static bool closes(int64_t size, int64_t step, bool wrap) { return wrap && step != size - step; }

/* Write out the pairs as a table, because groups differ in size. */
static mgrid_family *list_pairs(const mgrid_family *f, int64_t step, bool wrap, mgrid_error *err) {
  int64_t count = 0, at = 0;
  for (int64_t g = 0; g < f->count; g++) {
    int64_t n = mgrid_family_size(f, g);
    if (n > 1 && step >= n)
      return mgrid_null(err, MGRID_REFUSED, "neighbours(%" PRId64 "): group %" PRId64 " has %" PRId64 " ranks", step, g,
                        n);
    count += mgrid_pairs_of(n, step, closes(n, step, wrap));
  }
  int64_t *starts = malloc((size_t)(count + 1) * sizeof *starts);
  int32_t *ranks = malloc((size_t)(count > 0 ? 2 * count : 1) * sizeof *ranks);
  if (starts && ranks) {
    for (int64_t i = 0; i <= count; i++) starts[i] = 2 * i;
    for (int64_t g = 0; g < f->count; g++) {
      int64_t n = mgrid_family_size(f, g);
      for (int64_t i = 0, pairs = mgrid_pairs_of(n, step, closes(n, step, wrap)); i < pairs; i++) {
        ranks[at++] = (int32_t)mgrid_family_rank(f, g, i);
        ranks[at++] = (int32_t)mgrid_family_rank(f, g, (i + step) % n);
      }
    }
  }
  return mgrid_table_adopt(mgrid_world(f->world), count, starts, ranks, MGRID_COVER, true, err);
}

typedef struct neighbours {
  int64_t step;
  bool    wrap;
} neighbours;

static mgrid_family *neighbours_of_child(const mgrid_family *child, void *ud, mgrid_error *err) {
  const neighbours *n = ud;
  return mgrid_family_neighbours(child, n->step, n->wrap, err);
}

mgrid_family *mgrid_family_neighbours(const mgrid_family *f, int64_t step, bool wrap, mgrid_error *err) {
  if (!f) return NULL;
  if (f->overlapping) return mgrid_null(err, MGRID_REFUSED, "neighbours: the groups share ranks already" MGRID_BY_LIST);
  if (f->form == MGRID_UNION) return mgrid_union_map(f, neighbours_of_child, &(neighbours){ step, wrap }, err);
  if (step < 1 || (f->max_size > 1 && step >= f->max_size))
    return mgrid_null(err, MGRID_OUT_OF_RANGE,
                      "neighbours(%" PRId64 "): the step is 1 to %" PRId64 " in groups of %" PRId64, step,
                      f->max_size > 1 ? f->max_size - 1 : 1, f->max_size);
  if (f->size < 0) return list_pairs(f, step, wrap, err);
  wrap = closes(f->size, step, wrap);
  if (f->size == 2 && !wrap) return mgrid_family_ref(f->origin ? f->origin : f);
  mgrid_family *pairs = mgrid_family_alloc(MGRID_PAIRS, f->world, 0, err);
  if (!pairs) return NULL;
  pairs->as.pairs.base = mgrid_family_ref(f);
  if (mgrid_family_put_above(pairs, f, err)) {
    mgrid_family_free(pairs);
    return NULL;
  }
  pairs->as.pairs.step = step;
  pairs->as.pairs.wrap = wrap;
  pairs->overlapping = f->size >= 2;
  pairs->count = f->count * mgrid_pairs_of(f->size, step, wrap);
  pairs->size = pairs->max_size = pairs->count > 0 ? 2 : 0;
  pairs->total = 2 * pairs->count;
  pairs->low = pairs->count > 0 ? f->low : 0;
  pairs->high = pairs->count > 0 ? f->high : -1;
  return pairs;
}
