/* SPDX-License-Identifier: MIT
**
** equal.c - whether two families have the same groups. Families of different rules are compared class by class, else
** rank by rank.
*/
#include "families/classes.h"

#include <stdlib.h>

enum { FEW = 64 }; /* members up to which ranks are compared one by one */

mgrid_told mgrid_classes_equal(const mgrid_family *a, const mgrid_family *b, int64_t *differs, mgrid_budget *budget) {
  mgrid_classes own = { 0 }, theirs = { 0 };
  mgrid_sets    sets = { 0 };
  bool          told = mgrid_classes_of(a, &own) && mgrid_classes_of(b, &theirs);
  int64_t       lowest = INT64_MAX, other = -1;
  for (size_t i = 0; i < own.n && told; i++) {
    mgrid_points groups;
    sets.n = 0;
    told = mgrid_class_numbered(&own.at[i], &groups) && mgrid_spend(budget, (int64_t)theirs.n + 1);
    for (size_t k = 0; k < theirs.n && told; k++) {
      mgrid_told alike = mgrid_class_alike(a, &own.at[i], b, &theirs.at[k]);
      if (alike == MGRID_NO) continue;
      mgrid_points *set = alike == MGRID_YES ? mgrid_sets_add(&sets) : NULL;
      told = set && mgrid_class_numbered(&theirs.at[k], set);
    }
    told = told && mgrid_sets_lack(&groups, &sets, &other, budget);
    if (told && other >= 0 && other < lowest) lowest = other;
  }
  free(own.at);
  free(theirs.at);
  free(sets.at);
  if (differs) *differs = mgrid_numbered_group(lowest);
  return !told ? MGRID_UNTOLD : lowest == INT64_MAX ? MGRID_YES : MGRID_NO;
}

static bool equal_groups(const mgrid_family *a, const mgrid_family *b, mgrid_budget *budget) {
  for (int64_t g = 0; g < a->count; g++) {
    int64_t n = mgrid_family_size(a, g);
    if (n != mgrid_family_size(b, g)) return false;
    for (int64_t p = 0; p < n; p++)
      if (mgrid_family_rank(a, g, p) != mgrid_family_rank(b, g, p) || !mgrid_spend(budget, 2 * (a->nodes + b->nodes)))
        return false;
  }
  return true;
}

bool mgrid_family_equal_paid(const mgrid_family *a, const mgrid_family *b, mgrid_budget *budget) {
  if (a == b) return true;
  if (!a || !b) return false;
  if (a->world != b->world || a->count != b->count || a->total != b->total || a->size != b->size) return false;
  mgrid_spend(budget, (int64_t)(a->bytes + b->bytes) / 16);
  if (mgrid_family_same_rule(a, b)) return true;
  if (a->rule && b->rule) return false;
  if (a->total > FEW) {
    int64_t last = a->count - 1; /* the first or last group usually shows that they differ */
    if (mgrid_family_rank(a, 0, 0) != mgrid_family_rank(b, 0, 0)
        || mgrid_family_rank(a, last, 0) != mgrid_family_rank(b, last, 0))
      return false;
    mgrid_told equal = mgrid_classes_equal(a, b, NULL, budget);
    if (equal != MGRID_UNTOLD || (budget && budget->exhausted)) return equal == MGRID_YES;
  }
  return equal_groups(a, b, budget);
}

bool mgrid_family_equal(const mgrid_family *a, const mgrid_family *b) { return mgrid_family_equal_paid(a, b, NULL); }
