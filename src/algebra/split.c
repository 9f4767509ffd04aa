/* SPDX-License-Identifier: MIT
**
** split.c - groups cut into smaller ones, and several made into one: split, levels, bundle. Modes are
** moved between inside and index wherever a layout exists; elsewhere the operation is refused with the
** sizes that fit, rather than silently made as lists.
*/
#include "algebra/family.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* --------------------------------------------------------------------- split */

/* The sizes that a split would take, smallest first, for the message. */
static void admissible_text(const mgrid_modes *inside, int64_t size, mgrid_text *t) {
  enum { SHOWN = 12 };
  MGRID_MODES(inner);
  MGRID_MODES(outer);
  int shown = 0;
  for (int64_t k = 0; k < size && shown < SHOWN;) {
    int64_t below;
    mgrid_nearest_divisors(size, k, &below, &k); /* the next divisor */
    if (mgrid_modes_cut(inside, k, &inner, &outer, NULL)) mgrid_text_add(t, "%s%" PRId64, shown++ ? ", " : " ", k);
  }
}

static mgrid_status refuse_split(const mgrid_family *f, int64_t k, const mgrid_mode *blocking, mgrid_error *err) {
  const mgrid_modes *inside = &f->as.strided.inside;
  mgrid_text         t = { 0 };
  mgrid_text_add(&t, "split(%" PRId64 ") of groups of %" PRId64 ": ", k, f->size);
  if (blocking) {
    mgrid_text_add(&t, "%" PRId64 " does not meet mode (%" PRId64 ":%" PRId64 ") of ", k, blocking->size,
                   blocking->stride);
    mgrid_modes_text(inside, &t);
  } else {
    mgrid_text_add(&t, "%" PRId64 " does not divide %" PRId64, k, f->size);
  }
  mgrid_text_add(&t, "; sizes that do:");
  admissible_text(inside, f->size, &t);
  mgrid_status s = t.failed ? mgrid_oom(err) : mgrid_fail(err, MGRID_REFUSED, "%s", t.data);
  mgrid_text_free(&t);
  return s;
}

/* One half of a split: `inside` in its groups, and the other half's modes before the old index modes. */
static mgrid_family *half(const mgrid_family *f, const mgrid_modes *inside, const mgrid_modes *pieces,
                          mgrid_error *err) {
  MGRID_MODES(index);
  mgrid_modes_append(&index, pieces);
  mgrid_modes_append(&index, &f->as.strided.index);
  return mgrid_strided_new(f->world, f->as.strided.offset, inside, &index, err);
}

static mgrid_status split_strided(const mgrid_family *f, int64_t k, mgrid_family **inner, mgrid_family **outer,
                                  mgrid_error *err) {
  MGRID_MODES(in);
  MGRID_MODES(out);
  mgrid_mode blocking;
  if (f->size % k != 0) return refuse_split(f, k, NULL, err);
  if (!mgrid_modes_cut(&f->as.strided.inside, k, &in, &out, &blocking)) return refuse_split(f, k, &blocking, err);
  *inner = half(f, &in, &out, err);
  *outer = half(f, &out, &in, err);
  return *inner && *outer ? MGRID_OK : MGRID_NO_MEMORY;
}

static mgrid_status split_table(const mgrid_family *f, int64_t k, mgrid_family **inner, mgrid_family **outer,
                                mgrid_error *err) {
  const int64_t *from = f->as.table.starts;
  int64_t        pieces = 0;
  for (int64_t g = 0; g < f->count; g++) {
    int64_t n = from[g + 1] - from[g];
    if (n % k != 0)
      return mgrid_fail(err, MGRID_REFUSED, "split(%" PRId64 "): group %" PRId64 " has %" PRId64 " ranks", k, g, n);
    pieces += n / k;
  }
  int64_t *in_starts = malloc((size_t)(pieces + 1) * sizeof *in_starts);
  int64_t *out_starts = malloc((size_t)(f->count * k + 1) * sizeof *out_starts);
  int32_t *in_ranks = malloc((size_t)f->total * sizeof *in_ranks);
  int32_t *out_ranks = malloc((size_t)f->total * sizeof *out_ranks);
  if (!in_starts || !out_starts || !in_ranks || !out_ranks) {
    free(in_starts), free(out_starts), free(in_ranks), free(out_ranks);
    return mgrid_oom(err);
  }
  memcpy(in_ranks, f->as.table.ranks, (size_t)f->total * sizeof *in_ranks);
  for (int64_t i = 0; i <= pieces; i++) in_starts[i] = i * k;
  int64_t at = 0, group = 0;
  for (int64_t g = 0; g < f->count; g++) {
    int64_t runs = (from[g + 1] - from[g]) / k;
    for (int64_t p = 0; p < k; p++) { /* one group: the ranks at position p of each run */
      out_starts[group++] = at;
      for (int64_t r = 0; r < runs; r++) out_ranks[at++] = f->as.table.ranks[from[g] + r * k + p];
    }
  }
  out_starts[group] = at;
  mgrid_window w = mgrid_world(f->world);
  *inner = mgrid_table_adopt(w, pieces, in_starts, in_ranks, MGRID_PARTIAL, true, err);
  *outer = mgrid_table_adopt(w, group, out_starts, out_ranks, MGRID_PARTIAL, true, err);
  return *inner && *outer ? MGRID_OK : MGRID_NO_MEMORY;
}

/* No layout exists: write the groups out and split the lists. */
static mgrid_status split_as_table(const mgrid_family *f, int64_t k, mgrid_family **inner, mgrid_family **outer,
                                   mgrid_error *err) {
  mgrid_family *table = mgrid_family_lists(f, err);
  mgrid_status  s = table ? split_table(table, k, inner, outer, err) : MGRID_NO_MEMORY;
  mgrid_family_free(table);
  return s;
}

typedef struct splitting {
  int64_t        k; /* as for mgrid_family_split */
  bool           lists;
  mgrid_status   status; /* of the last child */
  size_t         n;      /* children split so far */
  mgrid_family **outer;  /* [n]: their outer halves */
} splitting;

/* The inner half of a child; the outer one is kept for later. */
static mgrid_family *inner_of_child(const mgrid_family *child, void *ud, mgrid_error *err) {
  splitting    *x = ud;
  mgrid_family *inner = NULL;
  x->status = mgrid_family_split(child, x->k, x->lists, &inner, &x->outer[x->n], err);
  x->n += x->status == MGRID_OK;
  return inner;
}

static mgrid_status split_union(const mgrid_family *f, int64_t k, bool lists, mgrid_family **inner,
                                mgrid_family **outer, mgrid_error *err) {
  splitting x = { k, lists, MGRID_OK, 0, calloc(f->as.parts.n, sizeof *x.outer) };
  if (!x.outer) return mgrid_oom(err);
  *inner = mgrid_union_map(f, inner_of_child, &x, err);
  if (*inner)
    *outer = mgrid_family_join(MGRID_UNION, x.n, x.outer, err);
  else
    mgrid_families_free(x.n, x.outer);
  return x.status ? x.status : *inner && *outer ? MGRID_OK : MGRID_NO_MEMORY;
}

mgrid_status mgrid_family_split(const mgrid_family *f, int64_t k, bool lists, mgrid_family **inner,
                                mgrid_family **outer, mgrid_error *err) {
  mgrid_family *in = NULL, *out = NULL;
  mgrid_error   why = MGRID_ERROR_INIT;
  mgrid_status  s = MGRID_REFUSED;
  if (!f) return MGRID_USAGE;
  if (k < 1) return mgrid_fail(err, MGRID_OUT_OF_RANGE, "split(%" PRId64 "): the size is 1 or more", k);
  if (f->overlapping) return mgrid_fail(err, MGRID_REFUSED, "split: the groups share ranks");
  switch (f->form) {
  case MGRID_STRIDED:
    s = split_strided(f, k, &in, &out, &why);
    if (s == MGRID_REFUSED && lists)
      s = split_as_table(f, k, &in, &out, err);
    else if (s)
      mgrid_error_pass(err, &why);
    break;
  case MGRID_UNION: s = split_union(f, k, lists, &in, &out, err); break;
  case MGRID_TABLE: s = split_table(f, k, &in, &out, err); break;
  case MGRID_PICKED:
  case MGRID_PAIRS:
  case MGRID_ZIP:
    if (lists)
      s = split_as_table(f, k, &in, &out, err);
    else
      mgrid_needs_lists("a split", f, err);
    break;
  }
  if (!s && inner)
    *inner = in;
  else
    mgrid_family_free(in);
  if (!s && outer)
    *outer = out;
  else
    mgrid_family_free(out);
  return s;
}

mgrid_status mgrid_family_levels(const mgrid_family *f, size_t n, const int64_t *sizes, mgrid_family **out,
                                 mgrid_error *err) {
  if (!f) return MGRID_USAGE;
  int64_t product = 1;
  for (size_t i = 0; i < n; i++)
    if (sizes[i] < 1 || __builtin_mul_overflow(product, sizes[i], &product) || product > MGRID_WORLD_MAX)
      return mgrid_fail(err, sizes[i] < 1 ? MGRID_OUT_OF_RANGE : MGRID_OVERFLOW,
                        "levels: size %" PRId64 " of level %zu does not fit", sizes[i], i);
  if (n == 0 || product != f->size)
    return mgrid_fail(err, MGRID_REFUSED, "levels: the sizes multiply to %" PRId64 ", the groups have %" PRId64,
                      n ? product : 0, f->size);
  mgrid_status s = MGRID_OK;
  int64_t      below = 1; /* product of the sizes of the levels before */
  for (size_t i = 0; i < n; i++) out[i] = NULL;
  for (size_t i = 0; i < n && !s; i++) { /* cut runs of levels 0 to i; level i links the runs below inside them */
    mgrid_family *runs = NULL;
    s = mgrid_family_split(f, below * sizes[i], false, &runs, NULL, err);
    if (!s) s = mgrid_family_split(runs, below, false, NULL, &out[i], err);
    mgrid_family_free(runs);
    below *= sizes[i];
  }
  for (size_t i = 0; i < n && s; i++) {
    mgrid_family_free(out[i]);
    out[i] = NULL;
  }
  return s;
}

/* -------------------------------------------------------------------- bundle */

static mgrid_family *bundle_table(const mgrid_family *f, int64_t n, mgrid_error *err) {
  int64_t  count = f->count / n;
  int64_t *starts = malloc((size_t)(count + 1) * sizeof *starts);
  int32_t *ranks = malloc((size_t)f->total * sizeof *ranks);
  if (starts && ranks) {
    for (int64_t g = 0; g <= count; g++) starts[g] = f->as.table.starts[g * n];
    memcpy(ranks, f->as.table.ranks, (size_t)f->total * sizeof *ranks);
  }
  return mgrid_table_adopt(mgrid_world(f->world), count, starts, ranks, MGRID_PARTIAL, true, err);
}

static mgrid_family *bundle_child(const mgrid_family *child, void *n, mgrid_error *err) {
  return mgrid_family_bundle(child, *(const int64_t *)n, err);
}

mgrid_family *mgrid_family_bundle(const mgrid_family *f, int64_t n, mgrid_error *err) {
  if (!f) return NULL;
  if (n < 1) return mgrid_null(err, MGRID_OUT_OF_RANGE, "bundle(%" PRId64 "): the number of groups is 1 or more", n);
  if (f->overlapping) return mgrid_null(err, MGRID_REFUSED, "bundle: the groups share ranks");
  if (f->form == MGRID_UNION) return mgrid_union_map(f, bundle_child, &n, err);
  if (f->count % n != 0) {
    int64_t below, above;
    mgrid_nearest_divisors(f->count, n, &below, &above);
    if (!below || !above)
      return mgrid_null(err, MGRID_REFUSED,
                        "bundle(%" PRId64 "): %" PRId64 " groups do not divide by it; nearest: %" PRId64, n, f->count,
                        below ? below : above);
    return mgrid_null(err, MGRID_REFUSED,
                      "bundle(%" PRId64 "): %" PRId64 " groups do not divide by it; nearest: %" PRId64 " or %" PRId64,
                      n, f->count, below, above);
  }
  if (f->form == MGRID_TABLE) return bundle_table(f, n, err);
  if (f->form != MGRID_STRIDED) return mgrid_needs_lists("a bundle", f, err);
  MGRID_MODES(joined);
  MGRID_MODES(index);
  MGRID_MODES(inside);
  mgrid_mode blocking;
  if (!mgrid_modes_cut(&f->as.strided.index, n, &joined, &index, &blocking))
    return mgrid_null(err, MGRID_REFUSED,
                      "bundle(%" PRId64 "): %" PRId64 " does not meet index mode (%" PRId64 ":%" PRId64
                      "); use explicit lists",
                      n, n, blocking.size, blocking.stride);
  mgrid_modes_append(&inside, &f->as.strided.inside);
  mgrid_modes_append(&inside, &joined);
  return mgrid_strided_new(f->world, f->as.strided.offset, &inside, &index, err);
}
