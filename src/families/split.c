/* SPDX-License-Identifier: MIT
**
** split.c - groups cut into smaller ones, and several made into one: split, levels, bundle. Modes are
** moved between inside and index wherever a layout exists. Where the modes of a family allow none, a split is
** refused with the sizes that fit; families without modes are cut as they are (cut.c).
*/
#include "families/family.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* --------------------------------------------------------------------- split */

/* The sizes that a split would take, smallest first, for the message. `inside` NULL: every divisor. */
static void admissible_text(const mgrid_modes *inside, int64_t size, mgrid_text *t) {
  enum { SHOWN = 12 };
  MGRID_MODES(inner);
  MGRID_MODES(outer);
  int shown = 0;
  for (int64_t k = 0; k < size && shown < SHOWN;) {
    int64_t below;
    mgrid_nearest_divisors(size, k, &below, &k); /* the next divisor */
    if (!inside || mgrid_modes_cut(inside, k, &inner, &outer, NULL))
      mgrid_text_add(t, "%s%" PRId64, shown++ ? ", " : " ", k);
  }
}

static mgrid_status refuse_split(const mgrid_family *f, int64_t k, const mgrid_mode *blocking, mgrid_error *err) {
  const mgrid_modes *inside = f->form == MGRID_STRIDED ? &f->as.strided.inside : NULL;
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

/* A split that is being made. */
typedef struct splitting {
  int64_t       k;      /* members of a run */
  bool          by_row; /* count the groups of the family before their pieces */
  bool          lists;  /* also where no layout exists */
  mgrid_family *inner, *outer;
} splitting;

/* One half of a split: `inside` in its groups, and the other half's modes beside the old index modes. */
static mgrid_family *half(const splitting *x, const mgrid_family *f, const mgrid_modes *inside,
                          const mgrid_modes *pieces, mgrid_error *err) {
  MGRID_MODES(index);
  mgrid_modes_append(&index, x->by_row ? &f->as.strided.index : pieces);
  mgrid_modes_append(&index, x->by_row ? pieces : &f->as.strided.index);
  return mgrid_strided_new(f->world, f->as.strided.offset, inside, &index, err);
}

/* Any family with groups of one size: its own questions answer for the pieces. */
static mgrid_status split_cut(splitting *x, const mgrid_family *f, mgrid_error *err) {
  if (f->size % x->k != 0) return refuse_split(f, x->k, NULL, err);
  x->inner = mgrid_cut_evenly(f, f->size / x->k, false, x->by_row, err);
  x->outer = mgrid_cut_evenly(f, x->k, true, x->by_row, err);
  return x->inner && x->outer ? MGRID_OK : MGRID_NO_MEMORY;
}

static mgrid_status split_strided(splitting *x, const mgrid_family *f, mgrid_error *err) {
  MGRID_MODES(in);
  MGRID_MODES(out);
  mgrid_mode blocking;
  if (f->size % x->k != 0) return refuse_split(f, x->k, NULL, err);
  if (!mgrid_modes_cut(&f->as.strided.inside, x->k, &in, &out, &blocking))
    return x->lists ? split_cut(x, f, err) : refuse_split(f, x->k, &blocking, err);
  x->inner = half(x, f, &in, &out, err);
  x->outer = half(x, f, &out, &in, err);
  return x->inner && x->outer ? MGRID_OK : MGRID_NO_MEMORY;
}

static mgrid_status split_table(splitting *x, const mgrid_family *f, mgrid_error *err) {
  const int64_t *from = f->as.table.starts;
  int64_t        pieces = 0, k = x->k;
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
  x->inner = mgrid_table_adopt(w, pieces, in_starts, in_ranks, MGRID_PARTIAL, true, err);
  x->outer = mgrid_table_adopt(w, group, out_starts, out_ranks, MGRID_PARTIAL, true, err);
  return x->inner && x->outer ? MGRID_OK : MGRID_NO_MEMORY;
}

/* Groups of different sizes: write them out and split the lists. */
static mgrid_status split_lists(splitting *x, const mgrid_family *f, mgrid_error *err) {
  mgrid_family *table = x->lists ? mgrid_family_lists(f, err) : mgrid_needs_lists("a split", f, err);
  mgrid_status  s = table ? split_table(x, table, err) : x->lists ? MGRID_NO_MEMORY : MGRID_REFUSED;
  mgrid_family_free(table);
  return s;
}

static mgrid_status split(splitting *x, const mgrid_family *f, mgrid_error *err);

typedef struct children {
  const splitting *x;
  mgrid_status     status; /* of the last child */
  size_t           n;      /* children split so far */
  mgrid_family   **outer;  /* [n]: their outer halves */
} children;

/* The inner half of a child; the outer one is kept for later. */
static mgrid_family *inner_of_child(const mgrid_family *child, void *ud, mgrid_error *err) {
  children *c = ud;
  splitting own = { .k = c->x->k, .lists = c->x->lists };
  if ((c->status = split(&own, child, err))) {
    mgrid_family_free(own.inner);
    mgrid_family_free(own.outer);
    return NULL;
  }
  c->outer[c->n++] = own.outer;
  return own.inner;
}

static mgrid_status split_union(splitting *x, const mgrid_family *f, mgrid_error *err) {
  children c = { x, MGRID_OK, 0, calloc(f->as.parts.n, sizeof *c.outer) };
  if (!c.outer) return mgrid_oom(err);
  x->inner = mgrid_union_map(f, inner_of_child, &c, err);
  if (x->inner)
    x->outer = mgrid_family_join(MGRID_UNION, c.n, c.outer, NULL, err);
  else
    mgrid_families_free(c.n, c.outer);
  return c.status ? c.status : x->inner && x->outer ? MGRID_OK : MGRID_NO_MEMORY;
}

static mgrid_status split(splitting *x, const mgrid_family *f, mgrid_error *err) {
  if (f->count == 0) x->by_row = false;
  switch (f->form) {
  case MGRID_STRIDED: return split_strided(x, f, err);
  case MGRID_PICKED: return split_cut(x, f, err); /* regular runs at regular distances would not be picked */
  case MGRID_UNION: return x->by_row ? split_cut(x, f, err) : split_union(x, f, err);
  case MGRID_TABLE: return x->by_row ? split_cut(x, f, err) : split_table(x, f, err);
  case MGRID_PAIRS: return split_lists(x, f, err);
  case MGRID_CUT:
  case MGRID_ZIP: return f->size < 0 ? split_lists(x, f, err) : split_cut(x, f, err);
  }
  return MGRID_USAGE;
}

static mgrid_status split_into(splitting x, const mgrid_family *f, mgrid_family **inner, mgrid_family **outer,
                               mgrid_error *err) {
  if (inner) *inner = NULL;
  if (outer) *outer = NULL;
  if (!f) return MGRID_USAGE;
  if (x.k < 1) return mgrid_fail(err, MGRID_OUT_OF_RANGE, "split(%" PRId64 "): the size is 1 or more", x.k);
  if (f->overlapping) return mgrid_fail(err, MGRID_REFUSED, "split: the groups share ranks" MGRID_BY_LIST);
  if (x.by_row && f->size < 0)
    return mgrid_fail(err, MGRID_REFUSED, "split by row: groups of different sizes, up to %" PRId64, f->max_size);
  mgrid_status s = split(&x, f, err);
  if (!s && inner)
    *inner = x.inner;
  else
    mgrid_family_free(x.inner);
  if (!s && outer)
    *outer = x.outer;
  else
    mgrid_family_free(x.outer);
  return s;
}

mgrid_status mgrid_family_split(const mgrid_family *f, int64_t k, bool lists, mgrid_family **inner,
                                mgrid_family **outer, mgrid_error *err) {
  return split_into((splitting){ .k = k, .lists = lists }, f, inner, outer, err);
}

mgrid_status mgrid_family_split_rows(const mgrid_family *f, int64_t k, bool lists, mgrid_family **inner,
                                     mgrid_family **outer, mgrid_error *err) {
  return split_into((splitting){ .k = k, .by_row = true, .lists = lists }, f, inner, outer, err);
}

/* With the nearest sizes that would do: each the nearest divisor of what the ones before leave, the last one the rest. */
static mgrid_status refuse_levels(const mgrid_family *f, size_t n, const int64_t *sizes, int64_t product,
                                  mgrid_error *err) {
  if (f->size < 0)
    return mgrid_fail(err, MGRID_REFUSED, "levels of groups of different sizes, up to %" PRId64, f->max_size);
  if (n == 0)
    return mgrid_fail(err, MGRID_REFUSED, "levels: no sizes; those of groups of %" PRId64 " multiply to that", f->size);
  enum { SHOWN = 8 };
  mgrid_text t = { 0 };
  int64_t    left = f->size;
  for (size_t i = 0; i + 1 < n && i < SHOWN; i++) {
    int64_t below, above, size = sizes[i];
    mgrid_nearest_divisors(left, size, &below, &above);
    if (left % size) size = below && (!above || size - below <= above - size) ? below : above;
    mgrid_text_add(&t, "%" PRId64 ", ", size);
    left /= size;
  }
  mgrid_text_add(&t, "%" PRId64, left);
  mgrid_status s =
      t.failed || n > SHOWN
          ? mgrid_fail(err, MGRID_REFUSED, "levels: the sizes multiply to %" PRId64 ", the groups have %" PRId64,
                       product, f->size)
          : mgrid_fail(err, MGRID_REFUSED,
                       "levels: the sizes multiply to %" PRId64 ", the groups have %" PRId64 "; nearest: %s", product,
                       f->size, t.data);
  mgrid_text_free(&t);
  return s;
}

mgrid_status mgrid_family_levels(const mgrid_family *f, size_t n, const int64_t *sizes, mgrid_family **out,
                                 mgrid_error *err) {
  if (mgrid_count_check("levels", n, err)) return MGRID_OUT_OF_RANGE;
  for (size_t i = 0; out && i < n; i++) out[i] = NULL;
  if (!f || mgrid_lacks_list(n, sizes, "sizes", err) || mgrid_lacks_list(n, out, "results", err)) return MGRID_USAGE;
  int64_t product = 1;
  for (size_t i = 0; i < n; i++)
    if (sizes[i] < 1 || __builtin_mul_overflow(product, sizes[i], &product) || product > MGRID_WORLD_MAX)
      return mgrid_fail(err, sizes[i] < 1 ? MGRID_OUT_OF_RANGE : MGRID_OVERFLOW,
                        "levels: size %" PRId64 " of level %zu does not fit", sizes[i], i);
  if (n == 0 || product != f->size) return refuse_levels(f, n, sizes, n ? product : 0, err);
  mgrid_status s = MGRID_OK;
  int64_t      below = 1;                /* product of the sizes of the levels before */
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

/* The groups of a rule of modes, n joined to one: the index modes that are cut off go behind the inside ones. */
static mgrid_family *bundle_strided(const mgrid_family *f, const mgrid_strided *rule, int64_t n, mgrid_error *err) {
  MGRID_MODES(joined);
  MGRID_MODES(index);
  MGRID_MODES(inside);
  mgrid_mode blocking;
  if (!mgrid_modes_cut(&rule->index, n, &joined, &index, &blocking))
    return mgrid_null(err, MGRID_REFUSED,
                      "bundle(%" PRId64 "): %" PRId64 " does not meet index mode (%" PRId64 ":%" PRId64
                      "); use explicit lists",
                      n, n, blocking.size, blocking.stride);
  mgrid_modes_append(&inside, &rule->inside);
  mgrid_modes_append(&inside, &joined);
  return mgrid_strided_new(f->world, rule->offset, &inside, &index, err);
}

/* The same positions of n groups of the base, which is bundled. */
static mgrid_family *bundle_picked(const mgrid_family *f, int64_t n, mgrid_error *err) {
  mgrid_family *base = bundle_strided(f, &f->as.picked.base, n, err), *bundled = NULL;
  int64_t      *positions = base ? malloc((size_t)(f->size * n) * sizeof *positions) : NULL;
  int64_t       size = mgrid_modes_count(&f->as.picked.base.inside);
  for (int64_t i = 0; i < f->size * n && positions; i++)
    positions[i] = f->as.picked.positions[i % f->size] + i / f->size * size;
  if (positions)
    bundled = mgrid_pick_strided(f->world, &base->as.strided, f->size * n, positions, err);
  else if (base)
    mgrid_oom(err);
  free(positions);
  mgrid_family_free(base);
  return bundled;
}

/* Pieces that follow each other grow together: to larger pieces, or to whole groups of the base. */
static mgrid_family *bundle_cut(const mgrid_family *f, int64_t n, mgrid_error *err) {
  int64_t pieces = f->as.cut.n, left = pieces / n;
  if (f->as.cut.links || f->as.cut.by_row || (n % pieces != 0 && pieces % n != 0))
    return mgrid_needs_lists("this bundle", f, err);
  if (n % pieces == 0) return mgrid_family_bundle(f->as.cut.base, n / pieces, err);
  int64_t *starts = malloc((size_t)(left + 1) * sizeof *starts);
  for (int64_t i = 0; i < left && starts; i++) starts[i] = mgrid_cut_position(f, i * n, 0);
  if (starts) starts[left] = f->as.cut.base->size;
  return mgrid_cut_at(f->as.cut.base, left, starts, false, err);
}

static mgrid_family *bundle_child(const mgrid_family *child, void *n, mgrid_error *err) {
  return mgrid_family_bundle(child, *(const int64_t *)n, err);
}

bool mgrid_bundle_lists(const mgrid_family *f, int64_t n) {
  if (f->form == MGRID_TABLE) return true;
  if (f->form != MGRID_UNION || n < 1) return false;
  for (size_t i = 0; i < f->as.parts.n; i++)
    if (f->as.parts.child[i]->count % n != 0 || mgrid_bundle_lists(f->as.parts.child[i], n)) return true;
  return false;
}

/* Bundles lie inside the children of a union, or else are listed. */
static mgrid_family *bundle_union(const mgrid_family *f, int64_t n, mgrid_error *err) {
  if (!mgrid_bundle_lists(f, n)) return mgrid_union_map(f, bundle_child, &n, err);
  mgrid_family *lists = mgrid_family_lists(f, err), *bundled = lists ? bundle_table(lists, n, err) : NULL;
  mgrid_family_free(lists);
  return bundled;
}

mgrid_family *mgrid_family_bundle(const mgrid_family *f, int64_t n, mgrid_error *err) {
  if (!f) return NULL;
  if (n < 1) return mgrid_null(err, MGRID_OUT_OF_RANGE, "bundle(%" PRId64 "): the number of groups is 1 or more", n);
  if (f->overlapping) return mgrid_null(err, MGRID_REFUSED, "bundle: the groups share ranks" MGRID_BY_LIST);
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
  switch (f->form) {
  case MGRID_TABLE: return bundle_table(f, n, err);
  case MGRID_UNION: return bundle_union(f, n, err);
  case MGRID_STRIDED: return bundle_strided(f, &f->as.strided, n, err);
  case MGRID_PICKED: return bundle_picked(f, n, err);
  case MGRID_CUT: return bundle_cut(f, n, err);
  default: return mgrid_needs_lists("a bundle", f, err);
  }
}
