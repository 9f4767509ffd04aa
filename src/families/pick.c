/* SPDX-License-Identifier: MIT
**
** pick.c - some positions of every group. A run of positions is strided again, others are a list of
** positions beside the modes.
*/
#include "families/family.h"

#include <inttypes.h>
#include <stdlib.h>

/* ----------------------------------------------------------------- positions */

/* Compare pairs of numbers: by the first, then by the second. */
static int ascending(const void *a, const void *b) {
  const int64_t *x = a, *y = b;
  if (x[0] != y[0]) return x[0] < y[0] ? -1 : 1;
  return (x[1] > y[1]) - (x[1] < y[1]);
}

/* Drop positions that occurred before, keeping the order; how many are left, or -1. O(n log n): sorted as
** (position, place), all but the first of equal ones are marked. */
static int64_t drop_repeats(int64_t *positions, int64_t n, mgrid_error *err) {
  int64_t *pair = malloc((size_t)n * 2 * sizeof *pair), kept = 0;
  if (!pair) {
    mgrid_oom(err);
    return -1;
  }
  for (int64_t i = 0; i < n; i++) pair[2 * i] = positions[i], pair[2 * i + 1] = i;
  qsort(pair, (size_t)n, 2 * sizeof *pair, ascending);
  for (int64_t i = 1; i < n; i++)
    if (pair[2 * i] == pair[2 * i - 2]) positions[pair[2 * i + 1]] = -1;
  for (int64_t i = 0; i < n; i++)
    if (positions[i] >= 0) positions[kept++] = positions[i];
  free(pair);
  return kept;
}

/* Turn positions as the user wrote them into positions in [0, size), in place: check the range, count
** negative ones from the end, drop repeats. Return how many are left, or -1 after filling *err. */
static int64_t resolve(int64_t size, int64_t *positions, int64_t n, mgrid_error *err) {
  if (n <= 0) {
    mgrid_fail(err, MGRID_REFUSED, "an empty pick: name at least one position of groups of %" PRId64, size);
    return -1;
  }
  for (int64_t i = 0; i < n; i++) {
    int64_t p = positions[i] < 0 ? positions[i] + size : positions[i];
    if (p < 0 || p >= size) {
      mgrid_fail(err, MGRID_OUT_OF_RANGE,
                 "pick of position %" PRId64 ": groups of %" PRId64 " have positions 0 to %" PRId64
                 ", or -1 to %" PRId64 " from the end",
                 positions[i], size, size - 1, -size);
      return -1;
    }
    positions[i] = p;
  }
  return drop_repeats(positions, n, err);
}

/* Ask for the positions in groups of `size`; how many, or -1 after filling *err. */
static int64_t ask(mgrid_pick_fn fn, void *ud, int64_t size, int64_t *positions, int64_t cap, mgrid_error *err) {
  mgrid_error *own = mgrid_error_open(err);
  if (!own) return -1;
  int64_t n = fn(ud, size, positions, cap, own);
  mgrid_error_close(own, n < 0, "the function of a pick", err);
  if (n > cap) mgrid_fail(err, MGRID_REFUSED, "a pick of %" PRId64 " positions of groups of %" PRId64, n, size);
  return n < 0 || n > cap ? -1 : resolve(size, positions, n, err);
}

/* --------------------------------------------------------- one form after another */

mgrid_family *mgrid_pick_strided(int64_t world, const mgrid_strided *base, int64_t n, const int64_t *positions,
                                 mgrid_error *err) {
  int64_t *copy = malloc((size_t)n * 3 * sizeof *copy);
  if (!copy) return mgrid_null_oom(err);
  int64_t first = mgrid_modes_offset(&base->inside, positions[0]);
  for (int64_t i = 0; i < n; i++) copy[i] = mgrid_modes_offset(&base->inside, positions[i]) - first;
  MGRID_MODES(inside);
  mgrid_family *f = NULL;
  mgrid_error   why = MGRID_ERROR_INIT; /* of memory, which does not mean that there is no rule */
  if (mgrid_modes_of(copy, n, &inside)) f = mgrid_strided_new(world, base->offset + first, &inside, &base->index, &why);
  if (why.status) mgrid_error_pass(err, &why);
  if (f || why.status || !(f = mgrid_family_alloc(MGRID_PICKED, world, base->inside.n + base->index.n, err))) {
    free(copy);
    return f;
  }
  int64_t *sorted = malloc((size_t)n * 2 * sizeof *sorted);
  if (!sorted) {
    free(copy);
    free(f);
    return mgrid_null_oom(err);
  }
  for (int64_t i = 0; i < n; i++) copy[i] = positions[i], sorted[2 * i] = positions[i], sorted[2 * i + 1] = i;
  qsort(sorted, (size_t)n, 2 * sizeof *sorted, ascending);
  mgrid_strided_put(f, &f->as.picked.base, base->offset, &base->inside, &base->index);
  f->as.picked.positions = copy;
  f->as.picked.sorted = sorted;
  f->bytes += (size_t)n * 3 * sizeof *copy;
  f->size = f->max_size = n;
  f->count = mgrid_modes_count(&base->index);
  f->total = n * f->count;
  f->low = INT64_MAX;
  for (int64_t i = 0; i < n; i++) {
    int64_t low = base->offset + mgrid_modes_offset(&base->inside, positions[i]);
    int64_t high = low + mgrid_modes_span(&base->index);
    if (low < f->low) f->low = low;
    if (high > f->high) f->high = high;
  }
  return f;
}

/* Positions of a zip: those that follow each other in one part are a pick of it, and the picks are joined again. */
static mgrid_family *pick_zip(const mgrid_family *f, int64_t n, const int64_t *positions, mgrid_error *err) {
  mgrid_family **child = malloc((size_t)n * sizeof *child);
  int64_t       *own = malloc((size_t)n * sizeof *own), at = 0;
  size_t         picks = 0;
  bool           failed = !child || !own;
  if (failed) mgrid_oom(err);
  while (at < n && !failed) {
    const mgrid_family *const *part = (const mgrid_family *const *)f->as.parts.child;
    int64_t                    before = 0, run = 0;
    for (; (*part)->size >= 0 && positions[at] >= before + (*part)->size; part++) before += (*part)->size;
    for (; at < n && positions[at] >= before && positions[at] < before + (*part)->size; at++)
      own[run++] = positions[at] - before;
    child[picks] = run > 0 ? mgrid_family_pick(*part, (size_t)run, own, err)
                           : mgrid_needs_lists("this pick", f, err); /* sizes vary: no fixed part has the position */
    failed = !child[picks];
    picks += !failed;
  }
  free(own);
  if (!failed && picks > 1) return mgrid_family_join(MGRID_ZIP, picks, child, NULL, err);
  mgrid_family *only = failed ? NULL : child[0];
  for (size_t i = 0; i < picks && failed; i++) mgrid_family_free(child[i]);
  free(child);
  return only;
}

/* Room for what a function may answer about groups of that size. */
static int64_t room_for(int64_t size) { return size < 32768 ? 2 * size + 16 : 65536; }

/* All groups have one size, so the function is called once. */
static mgrid_family *pick_even(const mgrid_family *f, mgrid_pick_fn fn, void *ud, mgrid_error *err) {
  int64_t  cap = room_for(f->size);
  int64_t *positions = malloc((size_t)cap * sizeof *positions);
  if (!positions) return mgrid_null_oom(err);
  mgrid_family *picked = NULL;
  int64_t       n = ask(fn, ud, f->size, positions, cap, err);
  if (n > 0 && f->form == MGRID_ZIP) {
    picked = pick_zip(f, n, positions, err);
  } else if (n > 0 && f->form == MGRID_PICKED) {
    for (int64_t i = 0; i < n; i++) positions[i] = f->as.picked.positions[positions[i]];
    picked = mgrid_pick_strided(f->world, &f->as.picked.base, n, positions, err);
  } else if (n > 0) {
    picked = mgrid_pick_strided(f->world, &f->as.strided, n, positions, err);
  }
  free(positions);
  return picked;
}

/* Of every piece its own positions: picked from the base piece after piece, and cut into pieces again. */
static mgrid_family *pick_cut(const mgrid_family *f, mgrid_pick_fn fn, void *ud, mgrid_error *err) {
  const mgrid_family *base = f->as.cut.base;
  int64_t             pieces = f->as.cut.n, cap = room_for(f->max_size), room = 0, n = 0;
  int64_t            *own = malloc((size_t)cap * sizeof *own), *all = NULL;
  int64_t            *starts = malloc((size_t)(pieces + 1) * sizeof *starts);
  bool                failed = !own || !starts;
  if (failed) mgrid_oom(err);
  for (int64_t i = 0, at = 0; i < pieces && !failed; i++) {
    if (i == 0 || mgrid_cut_size(f, i) != mgrid_cut_size(f, i - 1))
      n = ask(fn, ud, mgrid_cut_size(f, i), own, cap, err);
    if (n > room - at) { /* a first look, or pieces that give more */
      room = at + n * (pieces - i);
      int64_t *more = realloc(all, (size_t)room * sizeof *all);
      if (!more) mgrid_oom(err), n = -1;
      all = more ? more : all;
    }
    failed = n < 0;
    starts[i] = at;
    for (int64_t k = 0; k < n; k++) all[at++] = mgrid_cut_position(f, i, own[k]);
    starts[i + 1] = at;
  }
  free(own);
  mgrid_family *picked = failed ? NULL : mgrid_family_pick(base, (size_t)starts[pieces], all, err), *cut = NULL;
  free(all);
  if (picked)
    cut = mgrid_cut_at(picked, pieces, starts, f->as.cut.by_row, err);
  else
    free(starts);
  mgrid_family_free(picked);
  return cut;
}

static mgrid_family *pick_table(const mgrid_family *f, mgrid_pick_fn fn, void *ud, mgrid_error *err) {
  int64_t  cap = 2 * f->max_size + 16, total = 0;
  int64_t *positions = malloc((size_t)cap * sizeof *positions);
  int64_t *starts = malloc((size_t)(f->count + 1) * sizeof *starts);
  int32_t *ranks = malloc((size_t)(f->total > 0 ? f->total : 1) * sizeof *ranks);
  bool     failed = !positions || !starts || !ranks;
  if (failed) mgrid_oom(err);
  for (int64_t g = 0; g < f->count && !failed; g++) {
    int64_t n = ask(fn, ud, mgrid_family_size(f, g), positions, cap, err);
    starts[g] = total;
    for (int64_t i = 0; i < n; i++) ranks[total++] = f->as.table.ranks[f->as.table.starts[g] + positions[i]];
    failed = n < 0;
  }
  free(positions);
  if (failed) {
    free(starts);
    free(ranks);
    return NULL;
  }
  starts[f->count] = total;
  return mgrid_table_adopt(mgrid_world(f->world), f->count, starts, ranks, mgrid_table_coverage(f), true, err);
}

typedef struct picking {
  mgrid_pick_fn fn;
  void         *ud;
} picking;

static mgrid_family *pick_child(const mgrid_family *child, void *ud, mgrid_error *err) {
  const picking *x = ud;
  return mgrid_family_pick_by(child, x->fn, x->ud, err);
}

mgrid_family *mgrid_family_pick_by(const mgrid_family *f, mgrid_pick_fn fn, void *ud, mgrid_error *err) {
  if (!f || mgrid_lacks(fn, "the function of a pick", err)) return NULL;
  if (f->form == MGRID_TABLE) return pick_table(f, fn, ud, err);
  if (f->form == MGRID_UNION) return mgrid_union_map(f, pick_child, &(picking){ fn, ud }, err);
  if (f->form == MGRID_CUT) return pick_cut(f, fn, ud, err);
  if (f->form == MGRID_PAIRS || f->size < 0) return mgrid_needs_lists("a pick", f, err);
  return pick_even(f, fn, ud, err);
}

struct fixed_list {
  size_t         n;
  const int64_t *positions;
};

static int64_t fixed_positions(void *ud, int64_t size, int64_t *positions, int64_t cap, mgrid_error *err) {
  const struct fixed_list *list = ud;
  (void)size, (void)err;
  for (size_t i = 0; i < list->n && (int64_t)i < cap; i++) positions[i] = list->positions[i];
  return (int64_t)list->n;
}

mgrid_family *mgrid_family_pick(const mgrid_family *f, size_t n, const int64_t *positions, mgrid_error *err) {
  if (mgrid_count_check("pick", n, err)) return NULL;
  struct fixed_list list = { n, positions };
  if (mgrid_lacks_list(n, positions, "positions", err)) return NULL;
  return mgrid_family_pick_by(f, fixed_positions, &list, err);
}
