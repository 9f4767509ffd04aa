/* SPDX-License-Identifier: MIT
**
** operations.c - families from families: split, levels, pick, bundle, neighbours, union,
** zip. Strided in, strided out wherever a layout exists; what a form cannot do by modes
** is refused with the way out, not silently listed.
*/
#include "algebra/family.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static void *needs_lists(const char *operation, const mgrid_family *f, mgrid_error *err) {
  static const char *const form[] = { "strided", "picked", "neighbours", "union", "zip", "table" };
  return mgrid_null(err, MGRID_REFUSED,
                    "%s of a %s family works on explicit lists alone: call lists() first, which "
                    "costs by rank",
                    operation, form[f->form]);
}

/* A union or zip of n children, which it takes over, also on failure; the caller has
** checked that they fit together. */
static mgrid_family *join(mgrid_form form, size_t n, mgrid_family **child, mgrid_error *err) {
  mgrid_family *f = n == 0 ? mgrid_null(err, MGRID_USAGE, "a %s of no families", form == MGRID_UNION ? "union" : "zip")
                           : mgrid_family_alloc(form, child[0]->world, 0, err);
  if (!f) {
    for (size_t i = 0; i < n; i++) mgrid_family_free(child[i]);
    free(child);
    return NULL;
  }
  f->as.parts.n = n;
  f->as.parts.child = child;
  f->low = INT64_MAX, f->high = -1;
  f->count = form == MGRID_ZIP ? child[0]->count : 0;
  int64_t uniform = form == MGRID_ZIP ? 0 : -2; /* -2: not known yet, -1: sizes differ */
  for (size_t i = 0; i < n; i++) {
    const mgrid_family *c = child[i];
    f->total += c->total;
    f->overlapping |= c->overlapping;
    if (form == MGRID_UNION) {
      f->count += c->count;
      if (c->count > 0) uniform = uniform == -2 || uniform == c->size ? c->size : -1;
      if (c->max_size > f->max_size) f->max_size = c->max_size;
    } else {
      uniform = uniform < 0 || c->size < 0 ? -1 : uniform + c->size;
    }
    if (c->count > 0) {
      if (c->low < f->low) f->low = c->low;
      if (c->high > f->high) f->high = c->high;
    }
  }
  f->size = uniform == -2 ? 0 : uniform;
  if (form == MGRID_ZIP) {
    int64_t least = f->size < 0 ? INT64_MAX : f->size;
    f->max_size = f->size;
    for (int64_t g = 0; f->size < 0 && g < f->count; g++) {
      int64_t size = mgrid_family_size(f, g);
      if (size > f->max_size) f->max_size = size;
      if (size < least) least = size;
    }
    if (least == f->max_size) f->size = least; /* ragged parts that make even groups */
  }
  if (f->total == 0) f->low = 0;
  return f;
}

/* -------------------------------------------------------------- split, levels */

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

/* inside and index modes of one half: the pieces vary before the old groups do */
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
  return *inner && *outer ? MGRID_OK : MGRID_LIMIT;
}

static mgrid_status split_union(const mgrid_family *f, int64_t k, bool lists, mgrid_family **inner,
                                mgrid_family **outer, mgrid_error *err) {
  size_t         n = f->as.parts.n;
  mgrid_family **in = calloc(n, sizeof *in), **out = calloc(n, sizeof *out);
  mgrid_status   s = in && out ? MGRID_OK : mgrid_oom(err);
  for (size_t i = 0; i < n && !s; i++) s = mgrid_family_split(f->as.parts.child[i], k, lists, &in[i], &out[i], err);
  if (!s) {
    *inner = join(MGRID_UNION, n, in, err);
    *outer = join(MGRID_UNION, n, out, err);
    return *inner && *outer ? MGRID_OK : MGRID_LIMIT;
  }
  for (size_t i = 0; i < n; i++) {
    if (in) mgrid_family_free(in[i]);
    if (out) mgrid_family_free(out[i]);
  }
  free(in);
  free(out);
  return s;
}

mgrid_status mgrid_family_split(const mgrid_family *f, int64_t k, bool lists, mgrid_family **inner,
                                mgrid_family **outer, mgrid_error *err) {
  mgrid_family *in = NULL, *out = NULL;
  mgrid_status  s;
  if (!f) return MGRID_USAGE;
  if (k < 1) return mgrid_fail(err, MGRID_REFUSED, "split(%" PRId64 "): the size is 1 or more", k);
  if (f->overlapping) return mgrid_fail(err, MGRID_REFUSED, "split: the groups share ranks");
  if (f->form == MGRID_STRIDED) {
    s = split_strided(f, k, &in, &out, err);
  } else if (f->form == MGRID_UNION) {
    s = split_union(f, k, lists, &in, &out, err);
  } else if (f->form == MGRID_TABLE) {
    s = mgrid_table_split(f, k, &in, &out, err);
  } else {
    s = MGRID_REFUSED;
    if (!lists) needs_lists("a split", f, err);
  }
  if (s == MGRID_REFUSED && lists && f->form != MGRID_TABLE && f->form != MGRID_UNION) {
    mgrid_family *table = mgrid_family_lists(f, err);
    s = table ? mgrid_table_split(table, k, &in, &out, err) : MGRID_LIMIT;
    mgrid_family_free(table);
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
      return mgrid_fail(err, MGRID_REFUSED, "levels: size %" PRId64 " of level %zu does not fit", sizes[i], i);
  if (n == 0 || product != f->size)
    return mgrid_fail(err, MGRID_REFUSED, "levels: the sizes multiply to %" PRId64 ", the groups have %" PRId64,
                      n ? product : 0, f->size);
  mgrid_status s = MGRID_OK;
  int64_t      below = 1; /* product of the sizes of the levels before */
  for (size_t i = 0; i < n; i++) out[i] = NULL;
  for (size_t i = 0; i < n && !s; i++) { /* runs up to this level, and in them what is not below it */
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

/* ------------------------------------------------------------------------ pick */

/* Pairs of numbers, by the first, then by the second. */
static int ascending(const void *a, const void *b) {
  const int64_t *x = a, *y = b;
  if (x[0] != y[0]) return x[0] < y[0] ? -1 : 1;
  return (x[1] > y[1]) - (x[1] < y[1]);
}

/* Drop what was there before, keeping the order: O(n log n) by way of (position, place). */
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

int64_t mgrid_positions(int64_t size, int64_t *positions, int64_t n, mgrid_error *err) {
  if (n <= 0) {
    mgrid_fail(err, MGRID_REFUSED, "an empty pick: name at least one position of groups of %" PRId64, size);
    return -1;
  }
  for (int64_t i = 0; i < n; i++) {
    int64_t p = positions[i] < 0 ? positions[i] + size : positions[i];
    if (p < 0 || p >= size) {
      mgrid_fail(err, MGRID_REFUSED,
                 "pick of position %" PRId64 ": groups of %" PRId64 " have positions 0 to %" PRId64
                 ", or -1 to %" PRId64 " from the end",
                 positions[i], size, size - 1, -size);
      return -1;
    }
    positions[i] = p;
  }
  return drop_repeats(positions, n, err);
}

/* Positions of a strided base: a run of modes where it is one, else a list. */
static mgrid_family *pick_positions(int64_t world, const mgrid_strided *base, int64_t n, const int64_t *positions,
                                    mgrid_error *err) {
  int64_t *copy = malloc((size_t)n * 3 * sizeof *copy);
  if (!copy) return mgrid_null_oom(err);
  int64_t first = mgrid_modes_offset(&base->inside, positions[0]);
  for (int64_t i = 0; i < n; i++) copy[i] = mgrid_modes_offset(&base->inside, positions[i]) - first;
  MGRID_MODES(inside);
  mgrid_family *f = NULL;
  if (mgrid_modes_of(copy, n, &inside)) f = mgrid_strided_new(world, base->offset + first, &inside, &base->index, NULL);
  if (f || !(f = mgrid_family_alloc(MGRID_PICKED, world, base->inside.n + base->index.n, err))) {
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

/* Positions of a zip, part by part: each part picks its own, and what is left of them is
** joined again. They must come in the order of the parts. */
static mgrid_family *pick_zip(const mgrid_family *f, int64_t n, const int64_t *positions, mgrid_error *err) {
  mgrid_family **child = calloc(f->as.parts.n, sizeof *child);
  int64_t       *own = malloc((size_t)n * sizeof *own), at = 0, before = 0;
  size_t         parts = 0;
  bool           failed = !child || !own;
  if (failed) mgrid_oom(err);
  for (size_t i = 0; i < f->as.parts.n && !failed; i++) {
    const mgrid_family *part = f->as.parts.child[i];
    size_t              picks = 0;
    if (part->size < 0) break; /* parts of varying sizes: the positions below find no place */
    for (; at < n && positions[at] >= before && positions[at] < before + part->size; at++)
      own[picks++] = positions[at] - before;
    before += part->size;
    if (picks == 0) continue;
    failed = !(child[parts] = mgrid_family_pick(part, picks, own, err));
    parts += !failed;
  }
  free(own);
  if (!failed && at == n && parts > 1) return join(MGRID_ZIP, parts, child, err);
  mgrid_family *only = !failed && at == n ? child[0] : NULL;
  for (size_t i = 0; i < parts && child[i] != only; i++) mgrid_family_free(child[i]);
  free(child);
  return only || failed ? only : needs_lists("this pick", f, err);
}

mgrid_family *mgrid_family_pick_by(const mgrid_family *f, mgrid_pick_fn fn, void *ud, mgrid_error *err) {
  if (!f) return NULL;
  if (f->form == MGRID_TABLE) return mgrid_table_pick(f, fn, ud, err);
  if (f->form == MGRID_UNION) {
    size_t         n = f->as.parts.n;
    mgrid_family **child = calloc(n, sizeof *child);
    if (!child) return mgrid_null_oom(err);
    for (size_t i = 0; i < n; i++) {
      if ((child[i] = mgrid_family_pick_by(f->as.parts.child[i], fn, ud, err))) continue;
      while (i > 0) mgrid_family_free(child[--i]);
      free(child);
      return NULL;
    }
    return join(MGRID_UNION, n, child, err);
  }
  if (f->form != MGRID_STRIDED && f->form != MGRID_PICKED && !(f->form == MGRID_ZIP && f->size >= 0))
    return needs_lists("a pick", f, err);
  int64_t  cap = f->size < 32768 ? 2 * f->size + 16 : 65536;
  int64_t *positions = malloc((size_t)cap * sizeof *positions);
  if (!positions) return mgrid_null_oom(err);
  int64_t       n = fn(ud, f->size, positions, cap, err);
  mgrid_family *picked = NULL;
  if (n > cap) {
    mgrid_fail(err, MGRID_REFUSED, "a pick of %" PRId64 " positions of groups of %" PRId64, n, f->size);
  } else if (n >= 0 && (n = mgrid_positions(f->size, positions, n, err)) > 0 && f->form == MGRID_ZIP) {
    picked = pick_zip(f, n, positions, err);
  } else if (n > 0) {
    const mgrid_strided *base = f->form == MGRID_STRIDED ? &f->as.strided : &f->as.picked.base;
    for (int64_t i = 0; f->form == MGRID_PICKED && i < n; i++) positions[i] = f->as.picked.positions[positions[i]];
    picked = pick_positions(f->world, base, n, positions, err);
  }
  free(positions);
  return picked;
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
  struct fixed_list list = { n, positions };
  return mgrid_family_pick_by(f, fixed_positions, &list, err);
}

/* ---------------------------------------------------------- bundle, neighbours */

static mgrid_family *each_child(const mgrid_family *f,
                                mgrid_family *(*op)(const mgrid_family *, int64_t, bool, mgrid_error *), int64_t n,
                                bool flag, mgrid_error *err) {
  mgrid_family **child = calloc(f->as.parts.n, sizeof *child);
  if (!child) return mgrid_null_oom(err);
  for (size_t i = 0; i < f->as.parts.n; i++) {
    if ((child[i] = op(f->as.parts.child[i], n, flag, err))) continue;
    while (i > 0) mgrid_family_free(child[--i]);
    free(child);
    return NULL;
  }
  return join(MGRID_UNION, f->as.parts.n, child, err);
}

static mgrid_family *bundle_child(const mgrid_family *f, int64_t n, bool flag, mgrid_error *err) {
  (void)flag;
  return mgrid_family_bundle(f, n, err);
}

mgrid_family *mgrid_family_bundle(const mgrid_family *f, int64_t n, mgrid_error *err) {
  if (!f) return NULL;
  if (n < 1) return mgrid_null(err, MGRID_REFUSED, "bundle(%" PRId64 "): the number of groups is 1 or more", n);
  if (f->overlapping) return mgrid_null(err, MGRID_REFUSED, "bundle: the groups share ranks");
  if (f->form == MGRID_UNION) return each_child(f, bundle_child, n, false, err);
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
  if (f->form == MGRID_TABLE) return mgrid_table_bundle(f, n, err);
  if (f->form != MGRID_STRIDED) return needs_lists("a bundle", f, err);
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

mgrid_family *mgrid_family_neighbours(const mgrid_family *f, int64_t step, bool wrap, mgrid_error *err) {
  if (!f) return NULL;
  if (f->overlapping) return mgrid_null(err, MGRID_REFUSED, "neighbours: the groups share ranks already");
  if (f->form == MGRID_UNION) return each_child(f, mgrid_family_neighbours, step, wrap, err);
  if (step < 1 || (f->max_size > 1 && step >= f->max_size))
    return mgrid_null(err, MGRID_REFUSED, "neighbours(%" PRId64 "): the step is 1 to %" PRId64 " in groups of %" PRId64,
                      step, f->max_size > 1 ? f->max_size - 1 : 1, f->max_size);
  if (f->size < 0) return mgrid_table_neighbours(f, step, wrap, err);
  if (f->size == 2 && !wrap) return mgrid_family_ref(f->origin ? f->origin : f);
  mgrid_family *pairs = mgrid_family_alloc(MGRID_PAIRS, f->world, 0, err);
  if (!pairs) return NULL;
  pairs->as.pairs.base = mgrid_family_ref(f);
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

/* ------------------------------------------------------------------ union, zip */

/* The first rank that is in both, or -1. Families of disjoint spans cost nothing. */
static int64_t shared_rank(const mgrid_family *a, const mgrid_family *b) {
  int64_t group, position;
  if (a->high < b->low || b->high < a->low) return -1;
  const mgrid_family *small = a->total <= b->total ? a : b, *large = small == a ? b : a;
  for (int64_t g = 0; g < small->count; g++)
    for (int64_t p = 0, n = mgrid_family_size(small, g); p < n; p++) {
      int64_t rank = mgrid_family_rank(small, g, p);
      if (mgrid_family_locate(large, rank, 0, &group, &position)) return rank;
    }
  return -1;
}

static mgrid_family *combine(mgrid_form form, size_t n, const mgrid_family *const *fs, mgrid_error *err) {
  const char *what = form == MGRID_UNION ? "union" : "zip";
  for (size_t i = 0; i < n; i++) {
    if (!fs[i]) return NULL;
    if (fs[i]->world != fs[0]->world)
      return mgrid_null(err, MGRID_REFUSED, "%s: families of worlds of %" PRId64 " and %" PRId64 " ranks", what,
                        fs[0]->world, fs[i]->world);
    if (form == MGRID_ZIP && fs[i]->count != fs[0]->count)
      return mgrid_null(err, MGRID_REFUSED,
                        "zip: %" PRId64 " groups meet %" PRId64
                        "; the numbers must be equal (bundle or split one side)",
                        fs[0]->count, fs[i]->count);
    if (form == MGRID_ZIP && fs[i]->overlapping)
      return mgrid_null(err, MGRID_REFUSED, "zip: the groups of a family share ranks");
    for (size_t k = 0; k < i; k++) {
      int64_t rank = shared_rank(fs[k], fs[i]);
      if (rank >= 0)
        return mgrid_null(err, MGRID_REFUSED, "%s: rank %" PRId64 " is in two of the families", what, rank);
    }
  }
  mgrid_family **child = malloc((n ? n : 1) * sizeof *child);
  if (!child) return mgrid_null_oom(err);
  for (size_t i = 0; i < n; i++) child[i] = mgrid_family_ref(fs[i]);
  return join(form, n, child, err);
}

mgrid_family *mgrid_family_union(size_t n, const mgrid_family *const *fs, mgrid_error *err) {
  return combine(MGRID_UNION, n, fs, err);
}

mgrid_family *mgrid_family_zip(size_t n, const mgrid_family *const *fs, mgrid_error *err) {
  return combine(MGRID_ZIP, n, fs, err);
}
