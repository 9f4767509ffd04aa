/* SPDX-License-Identifier: MIT
**
** op_regroup.c - other groups of the same ranks. Of one family: cut groups into smaller ones
** (split, levels, segments), or join several (bundle); the family's form does the work. Of several
** families: union, zip, and zip of different numbers of groups. The checks and refusals are here,
** so a form gets only what it can do.
*/
#include "families/classes.h"

#include <inttypes.h>
#include <stdlib.h>

/* ============================================================= of one family */

/* --------------------------------------------------------------------- split */

mgrid_status mgrid_family_split(const mgrid_family *f, int64_t k, bool lists, bool by_row,
                                mgrid_family **inner, mgrid_family **outer, mgrid_error *err) {
  if (inner) *inner = NULL;
  if (outer) *outer = NULL;
  if (!f) return MGRID_USAGE;

  if (k < 1)
    return mgrid_fail(err, MGRID_OUT_OF_RANGE, "split(%" PRId64 "): the size is 1 or more", k);
  if (f->overlapping)
    return mgrid_fail(err, MGRID_REFUSED, "split: the groups share ranks" MGRID_BY_LIST);
  if (by_row && f->size < 0)
    return mgrid_fail(
        err, MGRID_REFUSED,
        "split by row: the groups must have one size; their sizes vary, up to %" PRId64,
        f->max_size);

  mgrid_splitting x = { .k = k, .by_row = by_row, .lists = lists, .write_out = mgrid_family_lists };
  mgrid_status s = mgrid_split(&x, f, err);
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

/* Refuse the sizes of levels, and name the nearest sizes that fit. Each is the nearest divisor of
** what the levels before it leave; the last takes the rest. */
static mgrid_status refuse_levels(const mgrid_family *f, size_t n, const int64_t *sizes,
                                  int64_t product, mgrid_error *err) {
  if (f->size < 0)
    return mgrid_fail(err, MGRID_REFUSED,
                      "levels: the groups must have one size; their sizes vary, up to %" PRId64,
                      f->max_size);
  if (n == 0)
    return mgrid_fail(err, MGRID_REFUSED,
                      "levels: give sizes with the product %" PRId64 ", the group size", f->size);

  enum { SHOWN = 8 };
  mgrid_text t = { 0 };
  int64_t left = f->size;
  for (size_t i = 0; i + 1 < n && i < SHOWN; i++) {
    int64_t below, above, size = sizes[i];
    mgrid_nearest_divisors(left, size, &below, &above);
    if (left % size) size = below && (!above || size - below <= above - size) ? below : above;
    mgrid_text_add(&t, "%" PRId64 ", ", size);
    left /= size;
  }
  mgrid_text_add(&t, "%" PRId64, left);

  bool named = !t.failed && n <= SHOWN;
  mgrid_status s = mgrid_fail(err, MGRID_REFUSED,
                              "levels: the sizes multiply to %" PRId64 ", the groups have %" PRId64
                              "%s%s",
                              product, f->size, named ? "; nearest: " : "", named ? t.data : "");
  mgrid_text_free(&t);
  return s;
}

mgrid_status mgrid_family_levels(const mgrid_family *f, size_t n, const int64_t *sizes,
                                 mgrid_family **out, mgrid_error *err) {
  if (mgrid_count_check("levels", n, err)) return MGRID_OUT_OF_RANGE;
  for (size_t i = 0; out && i < n; i++) out[i] = NULL;
  if (!f || mgrid_lacks_list(n, sizes, "sizes", err) || mgrid_lacks_list(n, out, "results", err))
    return MGRID_USAGE;
  int64_t product = 1;
  for (size_t i = 0; i < n; i++)
    if (sizes[i] < 1 || __builtin_mul_overflow(product, sizes[i], &product)
        || product > MGRID_WORLD_MAX)
      return mgrid_fail(err, sizes[i] < 1 ? MGRID_OUT_OF_RANGE : MGRID_OVERFLOW,
                        "levels: size %" PRId64 " of level %zu does not fit", sizes[i], i);
  if (n == 0 || product != f->size) return refuse_levels(f, n, sizes, n ? product : 0, err);
  mgrid_status s = MGRID_OK;
  int64_t below = 1; /* product of the sizes of all inner levels */

  /* cut runs of levels 0 to i; level i then links the smaller runs inside them */
  for (size_t i = 0; i < n && !s; i++) {
    mgrid_family *runs = NULL;
    s = mgrid_family_split(f, below * sizes[i], false, false, &runs, NULL, err);
    if (!s) s = mgrid_family_split(runs, below, false, false, NULL, &out[i], err);
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

mgrid_family *mgrid_family_bundle(const mgrid_family *f, int64_t n, mgrid_error *err) {
  if (!f) return NULL;
  if (n < 1)
    return mgrid_null(err, MGRID_OUT_OF_RANGE,
                      "bundle(%" PRId64 "): the number of groups is 1 or more", n);
  if (f->overlapping)
    return mgrid_null(err, MGRID_REFUSED, "bundle: the groups share ranks" MGRID_BY_LIST);
  if (f->count % n != 0) {
    int64_t below, above;
    mgrid_nearest_divisors(f->count, n, &below, &above);
    char other[32] = "";
    if (below && above) snprintf(other, sizeof other, " or %" PRId64, above);
    return mgrid_null(err, MGRID_REFUSED,
                      "bundle(%" PRId64 "): the number of groups, %" PRId64
                      ", is not a multiple of it; nearest: %" PRId64 "%s",
                      n, f->count, below ? below : above, other);
  }
  return mgrid_bundle(f, n, err);
}

/* ------------------------------------------------------------------ segments */

mgrid_status mgrid_segments_check(int64_t size, size_t n, const int64_t *sizes, int64_t *fill,
                                  mgrid_error *err) {
  int64_t sum = 0;
  bool filled = false;

  if (mgrid_count_check("segments", n, err)) return MGRID_OUT_OF_RANGE;
  if (mgrid_lacks_list(n, sizes, "sizes", err)) return MGRID_USAGE;
  if (n == 0)
    return mgrid_fail(err, MGRID_REFUSED,
                      "segments: give sizes with the sum %" PRId64 ", the group size", size);
  for (size_t i = 0; i < n; i++) {
    if (sizes[i] == MGRID_FILL) {
      if (filled)
        return mgrid_fail(err, MGRID_DUPLICATE, "segments: two sizes are fill; only one can be");
      filled = true;
    } else if (sizes[i] < 1) {
      return mgrid_fail(err, MGRID_OUT_OF_RANGE,
                        "segments: size %" PRId64 " of segment %zu; sizes are 1 to %" PRId64,
                        sizes[i], i, size);
    } else if (__builtin_add_overflow(sum, sizes[i], &sum)) {
      return mgrid_fail(err, MGRID_OVERFLOW, "segments: the sum of the sizes overflows 64 bits");
    }
  }
  if (filled && sum >= size)
    return mgrid_fail(err, MGRID_REFUSED,
                      "segments: the sizes sum to %" PRId64
                      ", which leaves nothing to fill of groups of %" PRId64,
                      sum, size);
  if (!filled && sum != size) {
    int64_t fits = size - (sum - sizes[n - 1]);
    char hint[64] = "";
    if (fits > 0) snprintf(hint, sizeof hint, "; a last size of %" PRId64 " fits", fits);
    return mgrid_fail(err, MGRID_REFUSED,
                      "segments: the sizes sum to %" PRId64 ", the groups have %" PRId64 "%s", sum,
                      size, hint);
  }
  *fill = size - sum;
  return MGRID_OK;
}

typedef struct wanted {
  size_t n;
  const int64_t *sizes;
} wanted;

static mgrid_family *segments_of_child(const mgrid_family *child, void *ud, mgrid_error *err) {
  const wanted *w = ud;
  return mgrid_family_segments(child, w->n, w->sizes, err);
}

mgrid_family *mgrid_family_segments(const mgrid_family *f, size_t n, const int64_t *sizes,
                                    mgrid_error *err) {
  int64_t fill;
  if (!f) return NULL;
  if (f->overlapping)
    return mgrid_null(err, MGRID_REFUSED, "segments: the groups share ranks" MGRID_BY_LIST);
  if (mgrid_family_in_turn(f))
    return mgrid_union_map(f, segments_of_child, &(wanted){ n, sizes }, err);
  if (f->count == 0) return mgrid_family_origin(f);
  if (f->size < 0)
    return mgrid_null(err, MGRID_REFUSED,
                      "segments: the groups must have one size; their sizes vary, up to %" PRId64,
                      f->max_size);
  if (mgrid_segments_check(f->size, n, sizes, &fill, err)) return NULL;
  int64_t *starts = malloc((n + 1) * sizeof *starts);
  for (size_t i = 0; i <= n && starts; i++)
    starts[i] = i == 0 ? 0 : starts[i - 1] + (sizes[i - 1] == MGRID_FILL ? fill : sizes[i - 1]);
  return mgrid_cut_at(f, (int64_t)n, starts, false, err);
}

/* ======================================================= of several families */

/* Return a rank that is in both families, or -1. If their spans are disjoint, this costs nothing,
** else O(modes). In small families, or if modes cannot tell, all members are searched. */
static int64_t shared_rank(const mgrid_family *a, const mgrid_family *b, mgrid_budget *budget) {
  enum { FEW = 64 };
  int64_t group, position, rank = -1;
  if (a->high < b->low || b->high < a->low) return -1;
  const mgrid_family *small = a->total <= b->total ? a : b, *large = small == a ? b : a;
  if (small->total > FEW) {
    mgrid_sets own = { 0 }, theirs = { 0 };
    bool told = mgrid_members_of(small, &own) && mgrid_members_of(large, &theirs);
    for (size_t i = 0; i < own.n && told && rank < 0 && mgrid_spend(budget, (int64_t)theirs.n); i++)
      told = mgrid_sets_overlap(&own.at[i], &theirs, &rank, budget);
    free(own.at);
    free(theirs.at);
    if (told) return rank;
  }
  for (int64_t g = 0; g < small->count; g++)
    for (int64_t p = 0, n = mgrid_family_size(small, g); p < n; p++) {
      rank = mgrid_family_rank(small, g, p);
      if (mgrid_family_locate(large, rank, 0, &group, &position)) return rank;
      if (!mgrid_spend(budget, 2 * (a->nodes + b->nodes))) return -1;
    }
  return -1;
}

/* Check that the families have one world, and that no two share a rank. For a zip, also check that
** the groups of a family share no ranks, and with `even` that all families have as many groups. */
static bool can_join(bool zip, bool even, size_t n, const mgrid_family *const *fs,
                     mgrid_budget *budget, mgrid_error *err) {
  const char *what = (zip ? &mgrid_zip_form : &mgrid_union_form)->name;

  if (mgrid_count_check(what, n, err) || mgrid_lacks_list(n, fs, "families", err)) return false;
  for (size_t i = 0; i < n; i++) {
    if (!fs[i]) return false;
    if (fs[i]->world != fs[0]->world) {
      mgrid_fail(err, MGRID_REFUSED, "%s: families of worlds of %" PRId64 " and %" PRId64 " ranks",
                 what, fs[0]->world, fs[i]->world);
      return false;
    }
    if (even && fs[i]->count != fs[0]->count) {
      mgrid_fail(err, MGRID_REFUSED,
                 "zip: %" PRId64 " groups and %" PRId64
                 " groups; the numbers must be equal (bundle, split or spread one side)",
                 fs[0]->count, fs[i]->count);
      return false;
    }
    if (zip && fs[i]->overlapping) {
      mgrid_fail(err, MGRID_REFUSED, "zip: the groups of a family share ranks" MGRID_BY_LIST);
      return false;
    }
    for (size_t k = 0; k < i; k++) {
      int64_t rank = shared_rank(fs[k], fs[i], budget);
      if (rank < 0) continue;
      mgrid_fail(err, MGRID_REFUSED,
                 "%s: rank %" PRId64 " is in families %zu and %zu" MGRID_BY_LIST, what, rank, k + 1,
                 i + 1);
      return false;
    }
  }
  return true;
}

mgrid_family *mgrid_family_combine(bool zip, size_t n, const mgrid_family *const *fs,
                                   mgrid_budget *budget, mgrid_error *err) {
  if (!can_join(zip, zip, n, fs, budget, err)) return NULL;
  mgrid_family **child = malloc((n ? n : 1) * sizeof *child);
  if (!child) return mgrid_null_oom(err);
  for (size_t i = 0; i < n; i++) child[i] = mgrid_family_ref(fs[i]);
  return zip ? mgrid_zip_new(n, child, budget, err) : mgrid_union_new(n, child, err);
}

mgrid_family *mgrid_family_union(size_t n, const mgrid_family *const *fs, mgrid_error *err) {
  return mgrid_family_combine(false, n, fs, NULL, err);
}

mgrid_family *mgrid_family_zip(size_t n, const mgrid_family *const *fs, bool spread,
                               mgrid_error *err) {
  return spread ? mgrid_family_spread(n, fs, NULL, err)
                : mgrid_family_combine(true, n, fs, NULL, err);
}

int64_t mgrid_spread_total(const mgrid_family *f, int64_t count) {
  if (f->size >= 0) return count * f->size;
  int64_t total = 0;
  for (int64_t g = 0, next; g < count && total <= MGRID_WORLD_MAX; g = next) {
    int64_t own = g * f->count / count;
    /* the first group of the result that gets another group of f */
    next = ((own + 1) * count + f->count - 1) / f->count;
    total += (next - g) * mgrid_family_size(f, own);
  }
  return total;
}

/* Write out the groups of a zip. Its families have at most `count` groups. */
static mgrid_family *list_spread(size_t n, const mgrid_family *const *fs, int64_t count,
                                 int64_t total, mgrid_error *err) {
  int64_t *starts = malloc((size_t)(count + 1) * sizeof *starts), filled = 0;
  int32_t *ranks = malloc((size_t)total * sizeof *ranks);
  for (int64_t g = 0; starts && ranks && g < count; g++) {
    starts[g] = filled;
    for (size_t i = 0; i < n; i++) {
      int64_t own = g * fs[i]->count / count; /* no overflow, because both are below 2^31 */
      mgrid_family_group(fs[i], own, ranks + filled);
      filled += mgrid_family_size(fs[i], own);
    }
  }
  if (starts) starts[count] = total;
  return mgrid_table_adopt(mgrid_world(fs[0]->world), count, starts, ranks, MGRID_COVER, true, err);
}

mgrid_family *mgrid_family_spread(size_t n, const mgrid_family *const *fs, mgrid_budget *budget,
                                  mgrid_error *err) {
  if (!can_join(true, false, n, fs, budget, err)) return NULL;
  int64_t count = 0, total = 0;
  bool even = true;
  for (size_t i = 0; i < n; i++) count = fs[i]->count > count ? fs[i]->count : count;
  for (size_t i = 0; i < n; i++) {
    even &= fs[i]->count == count;
    if (fs[i]->count == 0)
      return mgrid_null(err, MGRID_REFUSED,
                        "zip: a family without groups cannot be spread over %" PRId64, count);
    if (!mgrid_spend(budget, fs[i]->size < 0 ? fs[i]->count * fs[i]->nodes : 1)) return NULL;
    total += mgrid_spread_total(fs[i], count);
    if (total > MGRID_WORLD_MAX)
      return mgrid_null(err, MGRID_OUT_OF_RANGE,
                        "zip: the groups have more than %" PRId64 " members in all",
                        MGRID_WORLD_MAX);
  }
  if (even) return mgrid_family_combine(true, n, fs, budget, err);
  if (budget && budget->exhausted) return NULL;
  return list_spread(n, fs, count, total, err);
}
