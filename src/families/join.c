/* SPDX-License-Identifier: MIT
**
** join.c - families made of several families: union, zip, and zip of different numbers of groups.
*/
#include "families/classes.h"

#include <inttypes.h>
#include <stdlib.h>

/* Return a rank that is in both, or -1. Families of disjoint spans cost nothing, others O(modes). In small families, or
** where modes cannot tell, all members are searched. */
static int64_t shared_rank(const mgrid_family *a, const mgrid_family *b, mgrid_budget *budget) {
  enum { FEW = 64 };
  int64_t group, position, rank = -1;
  if (a->high < b->low || b->high < a->low) return -1;
  const mgrid_family *small = a->total <= b->total ? a : b, *large = small == a ? b : a;
  if (small->total > FEW) {
    mgrid_sets own = { 0 }, theirs = { 0 };
    bool       told = mgrid_members_of(small, &own) && mgrid_members_of(large, &theirs);
    for (size_t i = 0; i < own.n && told && rank < 0 && mgrid_spend(budget, (int64_t)theirs.n); i++)
      told = mgrid_sets_meet(&own.at[i], &theirs, &rank, budget);
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

/* Check that the families are of one world and that no two share a rank. For a zip, also that the groups within a
** family share none; with `even`, that all have the same number of groups. */
static bool can_join(bool zip, bool even, size_t n, const mgrid_family *const *fs, mgrid_budget *budget,
                     mgrid_error *err) {
  const char *what = (zip ? &mgrid_zip_form : &mgrid_union_form)->name;
  if (mgrid_count_check(what, n, err) || mgrid_lacks_list(n, fs, "families", err)) return false;
  for (size_t i = 0; i < n; i++) {
    if (!fs[i]) return false;
    if (fs[i]->world != fs[0]->world) {
      mgrid_fail(err, MGRID_REFUSED, "%s: families of worlds of %" PRId64 " and %" PRId64 " ranks", what, fs[0]->world,
                 fs[i]->world);
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
      mgrid_fail(err, MGRID_REFUSED, "%s: rank %" PRId64 " is in families %zu and %zu" MGRID_BY_LIST, what, rank, k + 1,
                 i + 1);
      return false;
    }
  }
  return true;
}

mgrid_family *mgrid_family_combine(bool zip, size_t n, const mgrid_family *const *fs, mgrid_budget *budget,
                                   mgrid_error *err) {
  if (!can_join(zip, zip, n, fs, budget, err)) return NULL;
  mgrid_family **child = malloc((n ? n : 1) * sizeof *child);
  if (!child) return mgrid_null_oom(err);
  for (size_t i = 0; i < n; i++) child[i] = mgrid_family_ref(fs[i]);
  return zip ? mgrid_zip_new(n, child, budget, err) : mgrid_union_new(n, child, err);
}

mgrid_family *mgrid_family_union(size_t n, const mgrid_family *const *fs, mgrid_error *err) {
  return mgrid_family_combine(false, n, fs, NULL, err);
}

mgrid_family *mgrid_family_zip(size_t n, const mgrid_family *const *fs, bool spread, mgrid_error *err) {
  return spread ? mgrid_family_spread(n, fs, NULL, err) : mgrid_family_combine(true, n, fs, NULL, err);
}

int64_t mgrid_spread_total(const mgrid_family *f, int64_t count) {
  if (f->size >= 0) return count * f->size;
  int64_t total = 0;
  for (int64_t g = 0, next; g < count && total <= MGRID_WORLD_MAX; g = next) {
    int64_t own = g * f->count / count;
    next = ((own + 1) * count + f->count - 1) / f->count; /* where the next group begins */
    total += (next - g) * mgrid_family_size(f, own);
  }
  return total;
}

/* Write out the groups of a zip whose families have at most `count` groups. */
static mgrid_family *list_spread(size_t n, const mgrid_family *const *fs, int64_t count, int64_t total,
                                 mgrid_error *err) {
  int64_t *starts = malloc((size_t)(count + 1) * sizeof *starts), filled = 0;
  int32_t *ranks = malloc((size_t)total * sizeof *ranks);
  for (int64_t g = 0; starts && ranks && g < count; g++) {
    starts[g] = filled;
    for (size_t i = 0; i < n; i++) {
      int64_t own = g * fs[i]->count / count; /* both are below 2^31 */
      mgrid_family_group(fs[i], own, ranks + filled);
      filled += mgrid_family_size(fs[i], own);
    }
  }
  if (starts) starts[count] = total;
  return mgrid_table_adopt(mgrid_world(fs[0]->world), count, starts, ranks, MGRID_COVER, true, err);
}

mgrid_family *mgrid_family_spread(size_t n, const mgrid_family *const *fs, mgrid_budget *budget, mgrid_error *err) {
  if (!can_join(true, false, n, fs, budget, err)) return NULL;
  int64_t count = 0, total = 0;
  bool    even = true;
  for (size_t i = 0; i < n; i++) count = fs[i]->count > count ? fs[i]->count : count;
  for (size_t i = 0; i < n; i++) {
    even &= fs[i]->count == count;
    if (fs[i]->count == 0)
      return mgrid_null(err, MGRID_REFUSED, "zip: no groups cannot be spread over %" PRId64, count);
    if (!mgrid_spend(budget, fs[i]->size < 0 ? fs[i]->count * fs[i]->nodes : 1)) return NULL;
    total += mgrid_spread_total(fs[i], count);
    if (total > MGRID_WORLD_MAX)
      return mgrid_null(err, MGRID_OUT_OF_RANGE, "zip: the groups have more than %" PRId64 " members in all",
                        MGRID_WORLD_MAX);
  }
  if (even) return mgrid_family_combine(true, n, fs, budget, err);
  if (budget && budget->exhausted) return NULL;
  return list_spread(n, fs, count, total, err);
}
