/* SPDX-License-Identifier: MIT
**
** op_closure.c - the closure of families: ranks that share a group of any of them are in one group,
** directly or through a chain of such groups.
*/
#include "families/family.h"

#include <inttypes.h>
#include <stdlib.h>

/* ------------------------------------------------------------------ by a rule
** This works for families over the same ranks whose modes can all be cut into the same digits. In
** a group of a family some of the digits vary. In a group of the closure, all digits vary that vary
** in any family.
*/

static int by_stride(const void *a, const void *b) {
  const mgrid_mode *x = a, *y = b;
  return (x->stride > y->stride) - (x->stride < y->stride);
}

/* Fill `ranks` with the modes of all ranks of a rule, smallest stride first. Append to cuts[] where
** the modes of the rule start and end. */
static void closure_ranks(const mgrid_strided *rule, mgrid_modes *ranks, int64_t *cuts, int *n) {
  MGRID_MODES(all);
  for (int i = 0; i < rule->inside.n; i++) all.at[all.n++] = rule->inside.at[i];
  for (int i = 0; i < rule->index.n; i++) all.at[all.n++] = rule->index.at[i];
  qsort(all.at, (size_t)all.n, sizeof *all.at, by_stride);
  mgrid_modes_append(ranks, &all);
  for (int i = 0; i < all.n; i++) {
    cuts[(*n)++] = all.at[i].stride;
    cuts[(*n)++] = all.at[i].size * all.at[i].stride;
  }
}

/* Return whether one mode covers the steps from `low` to `high`. */
static bool closure_has(const mgrid_modes *m, int64_t low, int64_t high) {
  for (int i = 0; i < m->n; i++)
    if (m->at[i].stride <= low && high <= m->at[i].size * m->at[i].stride) return true;
  return false;
}

/* Cut a run of ranks into digits. Put a digit inside the groups if it is inside in one of the
** families. False: the cuts do not divide each other. */
static bool closure_digits(mgrid_mode run, int ncuts, const int64_t *cuts, size_t n,
                           const mgrid_family *const *fs, mgrid_modes *inside, mgrid_modes *index) {
  int64_t low = run.stride, end = run.size * run.stride;
  while (low < end) {
    int64_t high = end;
    bool joined = false;
    for (int i = 0; i < ncuts; i++)
      if (cuts[i] > low && cuts[i] < high) high = cuts[i];
    if (high % low) return false;
    for (size_t i = 0; i < n && !joined; i++) joined = closure_has(&fs[i]->rule->inside, low, high);
    mgrid_modes_push(joined ? inside : index, high / low, low);
    low = high;
  }
  return true;
}

mgrid_family *mgrid_closure_by_rule(size_t n, const mgrid_family *const *fs, mgrid_error *err) {
  enum { MOST = 8 }; /* families */
  int64_t cuts[2 * MGRID_MODES_MAX * MOST];
  int ncuts = 0;
  MGRID_MODES(ranks);
  MGRID_MODES(inside);
  MGRID_MODES(index);
  for (size_t i = 0; i < n; i++) {
    MGRID_MODES(own);
    if (n > MOST || !fs[i]->rule || fs[i]->rule->offset != fs[0]->rule->offset) return NULL;
    closure_ranks(fs[i]->rule, i ? &own : &ranks, cuts, &ncuts);
    if (i && !mgrid_modes_equal(&own, &ranks)) return NULL;
  }
  for (int i = 0; i < ranks.n; i++)
    if (!closure_digits(ranks.at[i], ncuts, cuts, n, fs, &inside, &index)) return NULL;
  return mgrid_strided_new(fs[0]->world, fs[0]->rule->offset, &inside, &index, err);
}

/* ------------------------------------------------------------------- by lists
** Each rank points to a lower rank in the same group, or to itself. -1: it is in no group.
*/

static int32_t closure_root(int32_t *below, int32_t rank) {
  while (below[rank] != rank) rank = below[rank] = below[below[rank]];
  return rank;
}

static void closure_join(int32_t *below, const int32_t *ranks, int64_t n) {
  for (int64_t i = 0; i < n; i++) {
    if (below[ranks[i]] < 0) below[ranks[i]] = ranks[i];
    int32_t a = closure_root(below, ranks[0]), b = closure_root(below, ranks[i]);
    below[a < b ? b : a] = a < b ? a : b;
  }
}

/* Make the groups in the order of their lowest ranks. Their members ascend. */
static mgrid_family *closure_lists(int32_t *below, int64_t world, mgrid_error *err) {
  int64_t *starts = calloc((size_t)world + 2, sizeof *starts), count = 0;
  int32_t *group = malloc((size_t)world * sizeof *group), *ranks = malloc((size_t)world * 4);
  for (int32_t r = 0; starts && group && ranks && r < world; r++) {
    if (below[r] < 0) continue;
    int32_t root = closure_root(below, r);
    group[r] = root == r ? (int32_t)count++ : group[root];
    starts[group[r] + 2]++;
  }
  for (int64_t g = 0; starts && g < count; g++) starts[g + 2] += starts[g + 1];
  for (int32_t r = 0; starts && group && ranks && r < world; r++)
    if (below[r] >= 0) ranks[starts[group[r] + 1]++] = r;
  bool fine = group;
  free(group);
  if (fine)
    return mgrid_table_adopt(mgrid_world(world), count, starts, ranks, MGRID_PARTIAL, true, err);
  free(starts);
  free(ranks);
  return mgrid_null_oom(err);
}

mgrid_family *mgrid_family_closure(size_t n, const mgrid_family *const *fs, mgrid_error *err) {
  if (mgrid_count_check("closure", n, err) || mgrid_lacks_list(n, fs, "families", err)) return NULL;
  if (n == 0) return mgrid_null(err, MGRID_REFUSED, "a closure of no families");

  int64_t largest = 1;
  for (size_t i = 0; i < n; i++) {
    if (!fs[i]) return NULL;
    if (fs[i]->world != fs[0]->world)
      return mgrid_null(err, MGRID_REFUSED,
                        "closure: families of worlds of %" PRId64 " and %" PRId64 " ranks",
                        fs[0]->world, fs[i]->world);
    if (fs[i]->max_size > largest) largest = fs[i]->max_size;
  }

  mgrid_error why = MGRID_ERROR_INIT;
  mgrid_family *made = mgrid_closure_by_rule(n, fs, &why);
  if (made || why.status) return mgrid_error_pass(err, &why), made;

  int64_t world = fs[0]->world;
  int32_t *below = malloc((size_t)world * sizeof *below);
  int32_t *ranks = malloc((size_t)largest * sizeof *ranks);
  if (below && ranks) {
    for (int64_t r = 0; r < world; r++) below[r] = -1;
    for (size_t i = 0; i < n; i++)
      for (int64_t g = 0; g < fs[i]->count; g++) {
        mgrid_family_group(fs[i], g, ranks);
        closure_join(below, ranks, mgrid_family_size(fs[i], g));
      }
    made = closure_lists(below, world, err);
  } else {
    mgrid_oom(err);
  }

  free(below);
  free(ranks);
  return made;
}
