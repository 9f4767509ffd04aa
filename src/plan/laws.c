/* SPDX-License-Identifier: MIT
**
** laws.c - laws: what a recipe claims about its families, and the first counterexample to it. A
** recipe checks them while it is built. mgrid_plan_law reads a law as text and checks it in a plan.
*/
#include "families/classes.h"
#include "plan/plan.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { RULE = 160 };

/* A family of up to FEW members is checked member by member, which finds the first counterexample
** directly. */
enum { FEW = 64 };

mgrid_status mgrid_law_same(const mgrid_family *a, const mgrid_family *b, mgrid_budget *budget,
                            mgrid_error *err) {
  char x[RULE], y[RULE];
  int64_t g = 0, p = 0;

  if (mgrid_family_equal_paid(a, b, budget)) return MGRID_OK;
  mgrid_family_describe(a, x, sizeof x);
  mgrid_family_describe(b, y, sizeof y);
  if (a->world != b->world || a->count != b->count)
    return mgrid_fail(err, MGRID_REFUSED,
                      "the families are not the same: %" PRId64 " groups %s, %" PRId64 " groups %s",
                      a->count, x, b->count, y);
  if (a->total > FEW && mgrid_classes_equal(a, b, &g, budget) != MGRID_NO) g = 0;
  while (mgrid_same_group(a, g, b, g)
         && mgrid_spend(budget, 2 * (a->nodes + b->nodes) * mgrid_family_size(a, g)))
    g++;
  while (mgrid_family_rank(a, g, p) == mgrid_family_rank(b, g, p)
         && mgrid_spend(budget, 2 * (a->nodes + b->nodes)))
    p++;
  int64_t in_a = mgrid_family_rank(a, g, p), in_b = mgrid_family_rank(b, g, p);
  if (in_a < 0 || in_b < 0)
    return mgrid_fail(err, MGRID_REFUSED,
                      "the families are not the same: group %" PRId64 " has %" PRId64
                      " ranks in %s and %" PRId64 " in %s",
                      g, mgrid_family_size(a, g), x, mgrid_family_size(b, g), y);
  return mgrid_fail(err, MGRID_REFUSED,
                    "the families are not the same: position %" PRId64 " of group %" PRId64
                    " is rank %" PRId64 " in %s and rank %" PRId64 " in %s",
                    p, g, in_a, x, in_b, y);
}

/* ------------------------------------------------------------------- within */

static bool laws_has(const mgrid_family *f, int64_t group, int64_t rank) {
  int64_t index, position;
  for (int64_t nth = 0; mgrid_family_locate(f, rank, nth, &index, &position); nth++)
    if (index == group) return true;
  return false;
}

/* Return how many members at the front of group g of a are in group `group` of b. */
static int64_t members_in(const mgrid_family *a, int64_t g, const mgrid_family *b, int64_t group,
                          mgrid_budget *budget) {
  int64_t n = 0;
  while (n < mgrid_family_size(a, g) && laws_has(b, group, mgrid_family_rank(a, g, n))
         && mgrid_spend(budget, a->nodes + b->nodes))
    n++;
  return n;
}

/* Return whether group g of a is inside one group of b. */
static bool is_within(const mgrid_family *a, int64_t g, const mgrid_family *b,
                      mgrid_budget *budget) {
  int64_t size = mgrid_family_size(a, g), first = mgrid_family_rank(a, g, 0), group, position;
  for (int64_t nth = 0; mgrid_family_locate(b, first, nth, &group, &position); nth++)
    if (members_in(a, g, b, group, budget) == size) return true;
  return false;
}

/* Return whether a group of the family has both ranks. */
static bool laws_together(const mgrid_family *f, int64_t x, int64_t y) {
  int64_t group, position;
  for (int64_t nth = 0; mgrid_family_locate(f, x, nth, &group, &position); nth++)
    if (laws_has(f, group, y)) return true;
  return false;
}

/* The state of a check by modes that each group of a is inside a group of b. */
typedef struct pairing {
  const mgrid_family *a, *b;
  mgrid_classes of_b;
  mgrid_sets sets;
  mgrid_budget *budget;
  int64_t worst; /* the lowest group of a that is not inside one of b */
} pairing;

static bool note_group(void *ud, int64_t rank, int64_t weight, int64_t in) {
  pairing *w = ud;
  int64_t group, position;
  (void)weight;
  for (int64_t nth = 0; in < 0 && mgrid_family_locate(w->a, rank, nth, &group, &position); nth++)
    if (group < w->worst && !is_within(w->a, group, w->b, w->budget)) w->worst = group;
  return true;
}

/* Check for all ranks x of a set that x and x + distance are in one group of b. With distance 0,
** check that x is in a group at all. Return false if modes cannot tell. */
static bool laws_look(pairing *w, const mgrid_points *ranks, int64_t distance) {
  bool told = true;
  w->sets.n = 0;
  if (distance == 0) told = mgrid_members_of(w->b, &w->sets);
  for (size_t k = 0; k < w->of_b.n && told && distance; k++)
    told = mgrid_class_partners(w->b, &w->of_b.at[k], distance, &w->sets);
  return told && mgrid_sets_each(ranks, &w->sets, false, note_group, w, w->budget);
}

/* Check that adjacent members of a group of a are always in one group of b, for all groups of a
** class of a. Then all members are in one group of b, if groups of b share no ranks or groups of a
** are pairs. Return false if modes cannot tell. */
static bool look_at_class(pairing *w, const mgrid_class *c) {
  enum { LISTED = 256 };
  mgrid_points ranks;
  if (c->size == 1) return mgrid_class_starts(c, &ranks) && laws_look(w, &ranks, 0);
  if (!c->ruled) {
    for (int64_t p = 0; p + 1 < c->size; p++) {
      int64_t rank = mgrid_family_rank(w->a, c->group, p),
              next = mgrid_family_rank(w->a, c->group, p + 1);
      if (c->size > LISTED || !mgrid_class_starts(c, &ranks)) return false;
      ranks.offset = rank;
      if (!laws_look(w, &ranks, next - rank)) return false;
    }
    return true;
  }
  for (int i = 0; i < c->nshape; i++) {
    if (!mgrid_class_starts(c, &ranks)) return false;
    for (int k = 0; k < c->nshape; k++)
      if (!mgrid_points_push(&ranks, c->shape[k].size - (k == i), c->shape[k].stride)) return false;
    if (!mgrid_points_apart(&ranks) || !laws_look(w, &ranks, c->shape[i].stride)) return false;
  }
  return true;
}

/* Return the first group of a that is not inside a group of b; a->count if there is none, -1 if the
** modes cannot tell. */
static int64_t first_not_within(const mgrid_family *a, const mgrid_family *b,
                                mgrid_budget *budget) {
  pairing w = { .a = a, .b = b, .budget = budget, .worst = a->count };
  mgrid_classes own = { 0 };
  bool told = (!b->overlapping || a->max_size <= 2) && mgrid_classes_of(a, &own)
              && mgrid_classes_of(b, &w.of_b);
  for (size_t i = 0; i < own.n && told && mgrid_spend(budget, (int64_t)w.of_b.n + 1); i++)
    told = look_at_class(&w, &own.at[i]);
  free(own.at);
  free(w.of_b.at);
  free(w.sets.at);
  return told ? w.worst : -1;
}

mgrid_status mgrid_law_within(const mgrid_family *a, const mgrid_family *b,
                              const mgrid_law_names *names, mgrid_budget *budget,
                              mgrid_error *err) {
  int64_t g = 0, p = 0;
  if (a->world != b->world)
    return mgrid_fail(err, MGRID_REFUSED,
                      "the families are of worlds of %" PRId64 " and %" PRId64 " ranks", a->world,
                      b->world);
  if (a->total > FEW && (g = first_not_within(a, b, budget)) < 0) g = 0;
  while (g < a->count && is_within(a, g, b, budget) && mgrid_spend(budget, a->nodes + b->nodes))
    g++;
  if (g == a->count) return MGRID_OK;

  int64_t size = mgrid_family_size(a, g), first = mgrid_family_rank(a, g, 0);
  while (p < size && laws_together(b, first, mgrid_family_rank(a, g, p))
         && mgrid_spend(budget, a->nodes + b->nodes))
    p++;
  if (p == 0)
    return mgrid_fail(err, MGRID_REFUSED,
                      "rank %" PRId64 " of group %" PRId64 " of %s is in no group of %s", first, g,
                      names->a, names->b);
  if (p == size)
    return mgrid_fail(err, MGRID_REFUSED, "no group of %s has all ranks of group %" PRId64 " of %s",
                      names->b, g, names->a);
  return mgrid_fail(err, MGRID_REFUSED,
                    "group %" PRId64 " of %s has ranks %" PRId64 " and %" PRId64
                    ", and no group of %s has both",
                    g, names->a, first, mgrid_family_rank(a, g, p), names->b);
}

/* --------------------------------------------------------- disjoint, covers */

/* Find the lowest rank that is in both families, or with `b` NULL the lowest that is in no group of
** a. *rank is -1 if there is none. False: the modes cannot tell. */
static bool find_rank(const mgrid_family *a, const mgrid_family *b, int64_t *rank,
                      mgrid_budget *budget) {
  mgrid_sets own = { 0 }, theirs = { 0 };
  mgrid_points world = { .offset = 0 };
  int64_t found, lowest = -1;
  bool told = mgrid_points_push(&world, a->world, 1) && mgrid_members_of(a, &own)
              && (!b || mgrid_members_of(b, &theirs));
  if (told && !b) told = mgrid_sets_lack(&world, &own, &lowest, budget);
  for (size_t i = 0; i < own.n && told && b && mgrid_spend(budget, (int64_t)theirs.n + 1); i++) {
    told = mgrid_sets_overlap(&own.at[i], &theirs, &found, budget);
    if (told && found >= 0 && (lowest < 0 || found < lowest)) lowest = found;
  }
  free(own.at);
  free(theirs.at);
  *rank = lowest;
  return told;
}

static mgrid_status refuse_disjoint(const mgrid_family *a, const mgrid_family *b,
                                    const mgrid_law_names *names, int64_t rank, mgrid_error *err) {
  int64_t in_a = -1, in_b = -1, position;
  mgrid_family_locate(a, rank, 0, &in_a, &position);
  mgrid_family_locate(b, rank, 0, &in_b, &position);
  return mgrid_fail(err, MGRID_REFUSED,
                    "rank %" PRId64 " is in group %" PRId64 " of %s and in group %" PRId64 " of %s",
                    rank, in_a, names->a, in_b, names->b);
}

mgrid_status mgrid_law_disjoint(const mgrid_family *a, const mgrid_family *b,
                                const mgrid_law_names *names, mgrid_budget *budget,
                                mgrid_error *err) {
  const mgrid_family *f = a->total < b->total ? a : b, *other = f == a ? b : a;
  int64_t group, position, rank;
  if (f->total > FEW && find_rank(a, b, &rank, budget))
    return rank < 0 ? MGRID_OK : refuse_disjoint(a, b, names, rank, err);
  for (int64_t g = 0; g < f->count; g++)
    for (int64_t k = 0, n = mgrid_family_size(f, g);
         k < n && mgrid_spend(budget, a->nodes + b->nodes); k++) {
      rank = mgrid_family_rank(f, g, k);
      if (mgrid_family_locate(other, rank, 0, &group, &position))
        return refuse_disjoint(a, b, names, rank, err);
    }
  return MGRID_OK;
}

mgrid_status mgrid_law_covers(const mgrid_family *f, mgrid_budget *budget, mgrid_error *err) {
  int64_t group, position, rank = 0;
  if (mgrid_family_coverage(f) == MGRID_PARTITION) return MGRID_OK;
  if (!find_rank(f, NULL, &rank, budget)) {
    rank = 0;
    while (rank < f->world && mgrid_spend(budget, f->nodes)
           && mgrid_family_locate(f, rank, 0, &group, &position))
      rank++;
    if (rank == f->world) rank = -1;
  }
  return rank < 0 ? MGRID_OK
                  : mgrid_fail(err, MGRID_REFUSED, "rank %" PRId64 " is in no group", rank);
}

/* ------------------------------------------------------------------ by text */

mgrid_status mgrid_plan_law(const mgrid_plan *p, const char *law, mgrid_error *err) {
  static const char *const known[] = { "same", "within", "disjoint", "covers" };
  char name[MGRID_NAME_MAX + 1], word[2][MGRID_NAME_MAX + 1], tail[512];
  int end = 0, n = sscanf(law, " %31[a-z] ( %31[A-Za-z0-9_] %n", name, word[0], &end);
  bool two = n == 2 && sscanf(law + end, " , %31[A-Za-z0-9_] %n", word[1], &n) == 1;

  if (two) end += n;
  if (end == 0 || strcmp(law + end, ")") != 0)
    return mgrid_fail(err, MGRID_BAD_VALUE,
                      "a law is within(a, b), disjoint(a, b), same(a, b) or covers(a), not '%s'",
                      law);
  size_t which = 0;
  while (which < 4 && strcmp(known[which], name) != 0) which++;
  if (which == 4) {
    mgrid_suggest(tail, sizeof tail, name, known, 4);
    return mgrid_fail(err, MGRID_UNKNOWN_NAME, "unknown law '%s'%s", name, tail);
  }
  if (two != (which < 3))
    return mgrid_fail(err, MGRID_BAD_VALUE, "law '%s' needs %s", name,
                      which < 3 ? "two families" : "one family");
  const mgrid_family *f[2] = { NULL, NULL };
  mgrid_error why = MGRID_ERROR_INIT;
  for (int i = 0; i <= two; i++) {
    int entry = mgrid_content_require(&p->content, "", word[i], &why);
    if (entry < 0) return mgrid_fail(err, why.status, "law %s: %s", law, why.message);
    f[i] = p->content.entry[entry].family;
  }
  mgrid_law_names names = { word[0], word[1] };
  mgrid_status s = which == 0   ? mgrid_law_same(f[0], f[1], NULL, &why)
                   : which == 1 ? mgrid_law_within(f[0], f[1], &names, NULL, &why)
                   : which == 2 ? mgrid_law_disjoint(f[0], f[1], &names, NULL, &why)
                                : mgrid_law_covers(f[0], NULL, &why);
  return s ? mgrid_fail(err, s, "law %s does not hold: %s", law, why.message) : s;
}
