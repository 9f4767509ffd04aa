/* SPDX-License-Identifier: MIT
**
** renumber.c - the same groups, counted in another order.
*/
#include "families/family.h"

#include <inttypes.h>
#include <stdlib.h>

/* Does the list have each group of f once? */
static mgrid_status check_order(const mgrid_family *f, size_t n, const int64_t *order, mgrid_error *err) {
  if ((uint64_t)n != (uint64_t)f->count)
    return mgrid_fail(err, MGRID_REFUSED, "renumber: a list of %zu for %" PRId64 " groups", n, f->count);
  bool *seen = calloc(n + 1, sizeof *seen);
  if (!seen) return mgrid_oom(err);
  mgrid_status s = MGRID_OK;
  for (size_t i = 0; i < n && !s; i++) {
    if (order[i] < 0 || order[i] >= f->count)
      s = mgrid_fail(err, MGRID_OUT_OF_RANGE, "renumber: group %" PRId64 " is out of range (0 to %" PRId64 ")",
                     order[i], f->count - 1);
    else if (seen[order[i]])
      s = mgrid_fail(err, MGRID_DUPLICATE, "renumber: group %" PRId64 " is listed twice", order[i]);
    else
      seen[order[i]] = true;
  }
  free(seen);
  return s;
}

/* The index modes of a rule with its groups in that order, and the first group's distance to the old one. False
** where there are none. */
static bool index_of(const mgrid_strided *rule, int64_t n, const int64_t *order, int64_t *offset, mgrid_modes *index,
                     int64_t *first) {
  *first = mgrid_modes_offset(&rule->index, order[0]);
  for (int64_t i = 0; i < n; i++) offset[i] = mgrid_modes_offset(&rule->index, order[i]) - *first;
  return mgrid_modes_of(offset, n, index);
}

/* The family with the same rule inside its groups; NULL where the order follows no modes, with *err untouched. */
static mgrid_family *by_modes(const mgrid_family *f, const int64_t *order, int64_t *offset, mgrid_error *err) {
  MGRID_MODES(index);
  int64_t              first;
  const mgrid_strided *rule = f->form == MGRID_STRIDED ? &f->as.strided : &f->as.picked.base;
  if (!index_of(rule, f->count, order, offset, &index, &first)) return NULL;
  mgrid_family *base = mgrid_strided_new(f->world, rule->offset + first, &rule->inside, &index, err), *picked;
  if (f->form == MGRID_STRIDED || !base) return base;
  picked = mgrid_pick_strided(f->world, &base->as.strided, f->size, f->as.picked.positions, err);
  mgrid_family_free(base);
  return picked;
}

/* All groups as lists, in that order. */
static mgrid_family *by_lists(const mgrid_family *f, const int64_t *order, mgrid_error *err) {
  int64_t *starts = malloc((size_t)(f->count + 1) * sizeof *starts);
  int32_t *ranks = malloc((size_t)(f->total > 0 ? f->total : 1) * sizeof *ranks);
  if (starts && ranks) {
    starts[0] = 0;
    for (int64_t i = 0; i < f->count; i++) {
      mgrid_family_members(f, order[i], ranks + starts[i]);
      starts[i + 1] = starts[i] + mgrid_family_size(f, order[i]);
    }
  }
  return mgrid_table_adopt(mgrid_world(f->world), f->count, starts, ranks, mgrid_table_coverage(f), true, err);
}

/* Each part of every group has the same order. */
static mgrid_family *by_parts(const mgrid_family *f, size_t n, const int64_t *order, mgrid_error *err) {
  mgrid_family **child = malloc(f->as.parts.n * sizeof *child);
  if (!child) return mgrid_null_oom(err);
  for (size_t i = 0; i < f->as.parts.n; i++)
    if (!(child[i] = mgrid_family_renumber(f->as.parts.child[i], n, order, err))) {
      mgrid_families_free(i, child);
      return NULL;
    }
  return mgrid_family_join(MGRID_ZIP, f->as.parts.n, child, NULL, err);
}

mgrid_family *mgrid_renumber_by_rule(const mgrid_family *f, size_t n, const int64_t *order, mgrid_error *err) {
  if (check_order(f, n, order, err)) return NULL;
  if (n == 0) return mgrid_family_ref(f->origin ? f->origin : f);
  if (f->form == MGRID_ZIP) return by_parts(f, n, order, err);
  if (f->form != MGRID_STRIDED && f->form != MGRID_PICKED) return NULL;
  int64_t *offset = malloc(n * sizeof *offset);
  if (!offset) return mgrid_null_oom(err);
  mgrid_family *g = by_modes(f, order, offset, err);
  free(offset);
  return g;
}

mgrid_family *mgrid_family_renumber(const mgrid_family *f, size_t n, const int64_t *order, mgrid_error *err) {
  mgrid_error   why = MGRID_ERROR_INIT;
  mgrid_family *g = f ? mgrid_renumber_by_rule(f, n, order, &why) : NULL;
  if (g || !f) return g;
  if (!why.status) return by_lists(f, order, err);
  mgrid_error_pass(err, &why);
  return NULL;
}
