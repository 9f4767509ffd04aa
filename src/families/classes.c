/* SPDX-License-Identifier: MIT
**
** classes.c - all groups of a family at once: as classes of shifted copies (classes.h), its members
** as sets of points, and whether two families have the same groups. The family's form gives classes
** and points. If the form cannot, groups are compared rank by rank, which is charged to the budget.
*/
#include "families/classes.h"

#include <stdlib.h>
#include <string.h>

/* ======================================================== classes and points */

enum { COMPARED_MAX = 4096 }; /* positions that are compared one by one */

mgrid_class *mgrid_classes_add(mgrid_classes *list) {
  return list->n < MGRID_CLASSES_MAX && MGRID_GROW(list->at, list->n, 1) ? &list->at[list->n++]
                                                                         : NULL;
}

mgrid_points *mgrid_sets_add(mgrid_sets *list) {
  return list->n < MGRID_CLASSES_MAX && MGRID_GROW(list->at, list->n, 1) ? &list->at[list->n++]
                                                                         : NULL;
}

void mgrid_class_spread(mgrid_class *c, int64_t times) {
  for (int i = 0; i < c->nsteps; i++) c->step[i].weight *= times;
}

bool mgrid_class_step(mgrid_class *c, int64_t size, int64_t stride, int64_t weight) {
  if (size == 1) return true;
  if (c->nsteps == MGRID_MODES_MAX) return false;
  c->step[c->nsteps++] = (mgrid_repeat){ size, stride, weight };
  return true;
}

void mgrid_class_line(mgrid_class *c, int64_t size, int64_t stride) {
  c->ruled = true;
  c->size = size;
  c->nshape = size > 1;
  c->shape[0] = (mgrid_mode){ size, stride };
}

bool mgrid_classes_of(const mgrid_family *f, mgrid_classes *list) {
  return f->count == 0 || (f->form->classes && f->form->classes(f, list));
}

/* ---------------------------------------------------------------- questions */

bool mgrid_class_starts(const mgrid_class *c, mgrid_points *out) {
  out->offset = c->start;
  out->n = 0;
  for (int i = 0; i < c->nsteps; i++) mgrid_points_push(out, c->step[i].size, c->step[i].stride);
  return mgrid_points_apart(out);
}

bool mgrid_class_numbered(const mgrid_class *c, mgrid_points *out) {
  out->offset = c->group << 31 | c->start;
  out->n = 0;
  for (int i = 0; i < c->nsteps; i++)
    mgrid_points_push(out, c->step[i].size, (c->step[i].weight << 31) + c->step[i].stride);
  return mgrid_points_apart(out);
}

mgrid_tristate mgrid_class_alike(const mgrid_family *f, const mgrid_class *c, const mgrid_family *g,
                                 const mgrid_class *d) {
  if (c->size != d->size) return MGRID_NO;
  if (c->ruled && d->ruled)
    return c->nshape == d->nshape
                   && memcmp(c->shape, d->shape, (size_t)c->nshape * sizeof *c->shape) == 0
               ? MGRID_YES
               : MGRID_NO;
  int64_t shift = d->start - c->start, last = c->size - 1;
  if (mgrid_family_rank(f, c->group, last) + shift != mgrid_family_rank(g, d->group, last))
    return MGRID_NO;
  for (int64_t p = 1; p < last; p++) {
    if (p == COMPARED_MAX) return MGRID_UNDECIDED;
    if (mgrid_family_rank(f, c->group, p) + shift != mgrid_family_rank(g, d->group, p))
      return MGRID_NO;
  }
  return MGRID_YES;
}

bool mgrid_sets_each(const mgrid_points *a, const mgrid_sets *sets, bool every, mgrid_points_fn fn,
                     void *ud, mgrid_budget *budget) {
  const mgrid_points **others = malloc((sets->n + 1) * sizeof *others);
  for (size_t i = 0; i < sets->n && others; i++) others[i] = &sets->at[i];
  bool done = others && mgrid_points_each(a, sets->n, others, every, fn, ud, budget);
  free(others);
  return done;
}

static bool find_outside(void *lowest, int64_t point, int64_t weight, int64_t in) {
  int64_t *low = lowest;
  (void)weight;
  if (in < 0 && (*low < 0 || point < *low)) *low = point;
  return true;
}

bool mgrid_sets_lack(const mgrid_points *a, const mgrid_sets *sets, int64_t *lowest,
                     mgrid_budget *budget) {
  *lowest = -1;
  return mgrid_sets_each(a, sets, false, find_outside, lowest, budget);
}

static bool find_inside(void *lowest, int64_t point, int64_t weight, int64_t in) {
  return in < 0 || find_outside(lowest, point, weight, -1);
}

bool mgrid_sets_overlap(const mgrid_points *a, const mgrid_sets *sets, int64_t *lowest,
                        mgrid_budget *budget) {
  *lowest = -1;
  return mgrid_sets_each(a, sets, false, find_inside, lowest, budget);
}

/* ----------------------------------------------------------------- partners */

bool mgrid_class_position(const mgrid_family *f, const mgrid_class *c, int64_t p,
                          mgrid_sets *list) {
  mgrid_points *set = mgrid_sets_add(list);
  if (!set || !mgrid_class_starts(c, set)) return false;
  set->offset = mgrid_family_rank(f, c->group, p);
  return true;
}

/* Find all ways to write a distance as a sum of steps, forward or backward, along the modes of a
** shape. This call handles at[mode] and the smaller modes, whose steps must sum to `left`. For each
** way, the digits from which these steps stay inside their modes make a set. */
static bool add_ways(mgrid_sets *list, const mgrid_class *c, const mgrid_points *shape, int mode,
                     int64_t left, const mgrid_points *so_far) {
  if (mode == shape->n) {
    mgrid_points *set = left == 0 ? mgrid_sets_add(list) : NULL;
    if (!set) return left != 0;
    *set = *so_far;
    for (int i = 0; i < c->nsteps; i++)
      if (!mgrid_points_push(set, c->step[i].size, c->step[i].stride)) return false;
    return mgrid_points_apart(set);
  }

  mgrid_mode m = shape->at[mode];
  int64_t low = left / m.stride - (left % m.stride < 0), reach = 0;
  for (int i = mode + 1; i < shape->n; i++) reach += (shape->at[i].size - 1) * shape->at[i].stride;

  for (int64_t step = low; step <= low + 1; step++) {
    int64_t rest = left - step * m.stride, length = m.size - (step < 0 ? -step : step);
    if (length < 1 || rest > reach || -rest > reach) continue;
    mgrid_points set = *so_far;
    if (step < 0) set.offset -= step * m.stride;
    if (!mgrid_points_push(&set, length, m.stride)
        || !add_ways(list, c, shape, mode + 1, rest, &set))
      return false;
  }
  return true;
}

bool mgrid_class_partners(const mgrid_family *f, const mgrid_class *c, int64_t distance,
                          mgrid_sets *list) {
  if (c->ruled) {
    mgrid_points shape = { 0 }, none = { .offset = c->start };
    for (int i = 0; i < c->nshape; i++)
      mgrid_points_push(&shape, c->shape[i].size, c->shape[i].stride);
    return add_ways(list, c, &shape, 0, distance, &none);
  }
  if (c->size > MGRID_LISTED_MAX) return false;
  for (int64_t p = 0; p < c->size; p++)
    for (int64_t q = 0; q < c->size; q++)
      if (mgrid_family_rank(f, c->group, q) - mgrid_family_rank(f, c->group, p) == distance
          && !mgrid_class_position(f, c, p, list))
        return false;
  return true;
}

/* ------------------------------------------------------------------ members */

static bool classes_by_class(mgrid_sets *list, const mgrid_family *f) {
  mgrid_classes classes = { 0 };
  bool told = mgrid_classes_of(f, &classes);
  for (size_t i = 0; i < classes.n && told; i++)
    for (int64_t p = 0; p < classes.at[i].size && told; p++)
      told = mgrid_class_position(f, &classes.at[i], p, list);
  free(classes.at);
  return told;
}

bool mgrid_members_of(const mgrid_family *f, mgrid_sets *list) {
  if (f->count == 0) return true;
  return f->form->members ? f->form->members(f, list)
                          : f->max_size <= MGRID_LISTED_MAX && classes_by_class(list, f);
}

/* ============================================================ equal families */

/* If their rules differ, families are compared class by class; if classes cannot tell, rank by
** rank. */

enum { FEW = 64 }; /* families of up to FEW members are not compared by classes */

mgrid_tristate mgrid_classes_equal(const mgrid_family *a, const mgrid_family *b, int64_t *differs,
                                   mgrid_budget *budget) {
  mgrid_classes own = { 0 }, theirs = { 0 };
  mgrid_sets sets = { 0 };
  bool told = mgrid_classes_of(a, &own) && mgrid_classes_of(b, &theirs);
  int64_t lowest = INT64_MAX, other = -1;

  for (size_t i = 0; i < own.n && told; i++) {
    mgrid_points groups;
    sets.n = 0;
    told = mgrid_class_numbered(&own.at[i], &groups) && mgrid_spend(budget, (int64_t)theirs.n + 1);
    for (size_t k = 0; k < theirs.n && told; k++) {
      mgrid_tristate alike = mgrid_class_alike(a, &own.at[i], b, &theirs.at[k]);
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
  return !told ? MGRID_UNDECIDED : lowest == INT64_MAX ? MGRID_YES : MGRID_NO;
}

static bool equal_groups(const mgrid_family *a, const mgrid_family *b, mgrid_budget *budget) {
  for (int64_t g = 0; g < a->count; g++) {
    int64_t n = mgrid_family_size(a, g);
    if (n != mgrid_family_size(b, g)) return false;
    for (int64_t p = 0; p < n; p++)
      if (mgrid_family_rank(a, g, p) != mgrid_family_rank(b, g, p)
          || !mgrid_spend(budget, 2 * (a->nodes + b->nodes)))
        return false;
  }
  return true;
}

bool mgrid_family_equal_paid(const mgrid_family *a, const mgrid_family *b, mgrid_budget *budget) {
  if (a == b) return true;
  if (!a || !b) return false;
  if (a->world != b->world || a->count != b->count || a->total != b->total || a->size != b->size)
    return false;
  mgrid_spend(budget, (int64_t)(a->bytes + b->bytes) / 16);
  if (mgrid_family_same_rule(a, b)) return true;
  if (a->rule && b->rule) return false;
  if (a->total > FEW) {
    int64_t last = a->count - 1; /* the first or last group usually shows that they differ */
    if (mgrid_family_rank(a, 0, 0) != mgrid_family_rank(b, 0, 0)
        || mgrid_family_rank(a, last, 0) != mgrid_family_rank(b, last, 0))
      return false;
    mgrid_tristate equal = mgrid_classes_equal(a, b, NULL, budget);
    if (equal != MGRID_UNDECIDED || (budget && budget->exhausted)) return equal == MGRID_YES;
  }
  return equal_groups(a, b, budget);
}

bool mgrid_family_equal(const mgrid_family *a, const mgrid_family *b) {
  return mgrid_family_equal_paid(a, b, NULL);
}
