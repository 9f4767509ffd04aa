/* SPDX-License-Identifier: MIT
**
** share.c - which groups are the same list of ranks, decided by rules where possible.
*/
#include "families/classes.h"
#include "plan/plan.h"

#include <stdlib.h>

enum { PAID = 1024 }; /* members that are compared between payments */

/* Return whether the first rank of every group of a is the first rank of some group of b. True is exact. False may be
** wrong, but not for families of grids: there each index mode of a steps along one index mode of b without carrying. */
static bool starts_within(const mgrid_strided *a, const mgrid_strided *b) {
  int64_t digit[MGRID_MODES_MAX], rest = a->offset - b->offset;
  if (rest < 0) return false;
  for (int i = 0; i < b->ndigits; i++) { /* the digits of a's first start in b */
    const mgrid_digit *d = &b->digits[i];
    int64_t            value = rest / d->stride;
    if (value >= d->size || (d->inside && value != 0)) return false;
    rest -= value * d->stride;
    for (int k = 0; k < b->index.n && !d->inside; k++)
      if (b->index.at[k].stride == d->stride) digit[k] = value;
  }
  if (rest != 0) return false;
  for (int i = 0; i < a->index.n; i++) {
    mgrid_mode left = a->index.at[i]; /* one mode of a may cover several modes of b */
    for (int k = b->index.n - 1; k >= 0 && left.size > 1; k--) {
      mgrid_mode m = b->index.at[k];
      if (left.stride % m.stride != 0 || left.stride / m.stride >= m.size) continue;
      int64_t step = left.stride / m.stride, room = (m.size - 1 - digit[k]) / step + 1;
      if (room >= left.size) {
        digit[k] += (left.size - 1) * step;
        left.size = 1;
      } else if (digit[k] == 0 && m.size % step == 0 && left.size % (m.size / step) == 0) {
        digit[k] = m.size - 1; /* the steps cover all of m; what remains of the mode steps by multiples of it */
        left = (mgrid_mode){ left.size / (m.size / step), m.size * m.stride };
        k = b->index.n; /* the carry may go to any mode */
      }
    }
    if (left.size > 1) return false;
  }
  return true;
}

/* Return the distance of the two ranks of all ascending groups of a family of pairs; 0: it varies. */
static int64_t pair_distance(const mgrid_family *f, bool *around) {
  return f->size == 2 && f->form->distance ? f->form->distance(f, around) : 0;
}

static mgrid_shapes shapes_of(const mgrid_family *f) {
  return f->form->shapes ? f->form->shapes(f) : (mgrid_shapes){ 0 };
}

/* Find the size of a group, and the distance of its first two ranks. */
static void shape_of(const mgrid_family *f, int64_t group, int64_t *size, int64_t *step) {
  *size = mgrid_family_size(f, group);
  *step = *size < 2 ? 0 : mgrid_family_rank(f, group, 1) - mgrid_family_rank(f, group, 0);
}

/* Compare shape by shape. If both families have one root, the shapes decide; if not, they can only show that no groups
** are equal. */
static mgrid_overlap by_shapes(const mgrid_family *a, const mgrid_family *b) {
  enum { LOOKS = 1 << 16 };
  mgrid_shapes x = shapes_of(a), y = shapes_of(b);
  int64_t      some = 0, found = 0;
  if (x.n == 0 || y.n == 0 || x.n > LOOKS || y.n > LOOKS || x.n * y.n > LOOKS) return MGRID_SOME;
  bool one_root = mgrid_strided_equal(x.root, y.root);
  for (int64_t i = 0; i < x.n; i++) {
    bool    equal = false;
    int64_t size[2], step[2];
    shape_of(a, i * x.every, &size[0], &step[0]);
    for (int64_t k = 0; k < y.n && size[0] > 1 && !equal; k++) {
      shape_of(b, k * y.every, &size[1], &step[1]);
      equal = size[0] == size[1] && step[0] == step[1];
      if (equal && size[0] > LOOKS) return MGRID_SOME;
      equal = equal && (!one_root || mgrid_same_group(a, i * x.every, b, k * y.every));
    }
    some += size[0] > 1;
    found += equal;
  }
  return found == 0 ? MGRID_NONE : one_root && found == some ? MGRID_ALL : MGRID_SOME;
}

mgrid_overlap mgrid_groups_within(const mgrid_family *a, const mgrid_family *b) {
  if (a->max_size < 2 || b->max_size < 2 || a->high < b->low || b->high < a->low) return MGRID_NONE;
  if (mgrid_family_same_rule(a, b)) return MGRID_ALL;
  const mgrid_parts *of_a = mgrid_family_in_turn(a), *of_b = mgrid_family_in_turn(b);
  if (of_a) {
    bool some = false, every = true;
    for (size_t i = 0; i < of_a->n; i++) {
      if (of_a->child[i]->max_size < 2) continue;
      mgrid_overlap r = mgrid_groups_within(of_a->child[i], b);
      some |= r != MGRID_NONE;
      every &= r == MGRID_ALL;
    }
    return every ? MGRID_ALL : some ? MGRID_SOME : MGRID_NONE;
  }
  if (of_b) {
    bool some = false;
    for (size_t i = 0; i < of_b->n; i++) {
      mgrid_overlap r = mgrid_groups_within(a, of_b->child[i]);
      if (r == MGRID_ALL) return MGRID_ALL;
      some |= r == MGRID_SOME;
    }
    return some ? MGRID_SOME : MGRID_NONE;
  }
  if (a->size >= 0 && b->size >= 0 && a->size != b->size) return MGRID_NONE;
  if (a->rule && b->rule) {
    if (!mgrid_modes_equal(&a->rule->inside, &b->rule->inside)) return MGRID_NONE;
    return starts_within(a->rule, b->rule) ? MGRID_ALL : MGRID_SOME;
  }
  mgrid_overlap told = by_shapes(a, b);
  if (told != MGRID_SOME) return told;
  bool    a_descends, b_descends; /* whether some pairs go around an end */
  int64_t x = pair_distance(a, &a_descends), y = pair_distance(b, &b_descends);
  return x && y && x != y && !(a_descends && b_descends) ? MGRID_NONE : MGRID_SOME;
}

static bool same_group(const mgrid_family *a, int64_t ga, const mgrid_family *b, int64_t gb, mgrid_budget *budget) {
  int64_t n = mgrid_family_size(a, ga);
  if (n != mgrid_family_size(b, gb)) return false;
  if (a == b && ga == gb) return true;
  mgrid_told told = a->form == b->form && a->form->same_group ? a->form->same_group(a, ga, b, gb) : MGRID_UNTOLD;
  if (told != MGRID_UNTOLD) return told == MGRID_YES;
  for (int64_t p = 0; p < n; p++) {
    if (mgrid_family_rank(a, ga, p) != mgrid_family_rank(b, gb, p)) return false;
    if (p % PAID == PAID - 1 && !mgrid_spend(budget, PAID * (a->nodes + b->nodes))) return false;
  }
  return true;
}

bool mgrid_same_group(const mgrid_family *a, int64_t ga, const mgrid_family *b, int64_t gb) {
  return same_group(a, ga, b, gb, NULL);
}

int64_t mgrid_group_in(const mgrid_family *a, int64_t ga, const mgrid_family *b, int64_t limit, mgrid_budget *budget) {
  int64_t group, position, first = mgrid_family_rank(a, ga, 0), found = -1;
  for (int64_t nth = 0; mgrid_family_locate(b, first, nth, &group, &position); nth++) {
    if (position == 0 && group < limit && (found < 0 || group < found) && same_group(a, ga, b, group, budget))
      found = group;
    if (nth % 16 == 15 && !mgrid_spend(budget, 64 * b->nodes)) break;
  }
  return found;
}

/* ---------------------------------------------------------------- all groups */

static bool is_in(void *all, int64_t start, int64_t weight, int64_t in) {
  (void)start, (void)weight;
  return *(bool *)all = in >= 0;
}

/* Return whether the groups of a class are among those of the classes of b. */
static mgrid_told class_within(const mgrid_family *a, const mgrid_class *c, const mgrid_family *b,
                               const mgrid_classes *theirs, mgrid_budget *budget) {
  size_t               n = 0;
  bool                 all = true;
  mgrid_points         own, *sets = malloc((theirs->n + 1) * sizeof *sets);
  const mgrid_points **others = malloc((theirs->n + 1) * sizeof *others);
  bool                 told = sets && others && mgrid_class_starts(c, &own);
  for (size_t k = 0; k < theirs->n && told; k++) {
    mgrid_told alike = mgrid_class_alike(a, c, b, &theirs->at[k]);
    if (alike == MGRID_NO) continue;
    told = alike == MGRID_YES && mgrid_class_starts(&theirs->at[k], &sets[n]);
    others[n] = &sets[n];
    n++;
  }
  told = told && (mgrid_points_each(&own, n, others, false, is_in, &all, budget) || !all);
  free(sets);
  free(others);
  return !told ? MGRID_UNTOLD : all ? MGRID_YES : MGRID_NO;
}

static mgrid_told all_by_class(const mgrid_family *a, const mgrid_family *b, mgrid_budget *budget) {
  mgrid_classes own = { 0 }, theirs = { 0 };
  mgrid_told    r = mgrid_classes_of(a, &own) && mgrid_classes_of(b, &theirs) ? MGRID_YES : MGRID_UNTOLD;
  for (size_t i = 0; i < own.n && r == MGRID_YES && mgrid_spend(budget, (int64_t)theirs.n + 1); i++)
    if (own.at[i].size > 1) r = class_within(a, &own.at[i], b, &theirs, budget);
  free(own.at);
  free(theirs.at);
  return r;
}

bool mgrid_all_within(const mgrid_family *a, const mgrid_family *b, mgrid_budget *budget) {
  enum { FEW = 16, COMPARE_MAX = 4096 };
  if (a->nodes + b->nodes > 2 && !mgrid_spend(budget, a->nodes * b->nodes)) return false;
  mgrid_overlap r = mgrid_groups_within(a, b);
  if (r != MGRID_SOME) return r == MGRID_ALL;
  int64_t last = a->count - 1; /* usually the last group shows that the answer is no */
  if (mgrid_family_size(a, last) > 1 && mgrid_group_in(a, last, b, INT64_MAX, budget) < 0) return false;
  for (int64_t g = 0; g < last; g++) {
    if (mgrid_family_size(a, g) > 1
        && (!mgrid_spend(budget, a->nodes + b->nodes + 8) || mgrid_group_in(a, g, b, INT64_MAX, budget) < 0))
      return false;
    if (g != FEW) continue;
    mgrid_told all = all_by_class(a, b, budget);
    if (all != MGRID_UNTOLD || (budget && budget->exhausted) || a->count > COMPARE_MAX) return all == MGRID_YES;
  }
  return !budget || !budget->exhausted;
}
