/* SPDX-License-Identifier: MIT
**
** leaders.c - which groups of a plan have their own communicator, and which are led by an earlier group. Groups are
** compared class by class, so the size of the world does not matter; where no modes tell, group by group.
*/
#include "families/classes.h"
#include "plan/plan.h"

#include <stdlib.h>
#include <string.h>

/* Return whether a group may occur twice in the family: only in a cover that the user listed. */
static bool may_repeat(const mgrid_family *f) {
  const mgrid_parts *parts = mgrid_family_in_turn(f);
  for (size_t i = 0; parts && i < parts->n; i++)
    if (may_repeat(parts->child[i])) return true;
  return f->form->listed && f->overlapping;
}

/* Entries that share are led by another entry, which comes before them. */
bool mgrid_plan_rivals(const mgrid_plan *p, int i, int j) {
  return p->shares[j] < 0 && mgrid_plan_may_share(p, i, j)
         && mgrid_groups_within(p->content.entry[i].family, p->content.entry[j].family) != MGRID_NONE;
}

/* Return whether some group of entry i must be compared. */
static bool is_open(const mgrid_plan *p, int i) {
  if (may_repeat(p->content.entry[i].family)) return true;
  for (size_t e = 0; p->order[e] != i; e++)
    if (mgrid_plan_rivals(p, i, p->order[e])) return true;
  return false;
}

/* ------------------------------------------------------------ class by class */

typedef struct rivals {
  mgrid_classes classes;
  int           owner[MGRID_CLASSES_MAX]; /* entry of each class */
} rivals;

typedef struct tally {
  const int *owner;  /* entry of each set */
  int64_t   *groups; /* led, by entry; may be NULL */
  int64_t    alone;
} tally;

static bool count(void *ud, int64_t start, int64_t weight, int64_t in) {
  tally *t = ud;
  (void)start;
  if (in < 0)
    t->alone += weight;
  else if (t->groups)
    t->groups[t->owner[in]] += weight;
  return true;
}

static bool find_rivals(const mgrid_plan *p, int i, rivals *r) {
  for (size_t e = 0; p->order[e] != i; e++) {
    int    j = p->order[e];
    size_t first = r->classes.n;
    if (!mgrid_plan_rivals(p, i, j)) continue;
    if (!mgrid_classes_of(p->content.entry[j].family, &r->classes)) return false;
    for (size_t k = first; k < r->classes.n; k++) r->owner[k] = j;
  }
  return true;
}

/* Count the groups of a class by the entry that leads them. */
static bool count_class(const mgrid_plan *p, int i, const mgrid_class *c, const rivals *r, tally *t,
                        mgrid_budget *budget) {
  size_t               room = r->classes.n + 1, n = 0;
  mgrid_points         own;
  mgrid_points        *sets = malloc(room * sizeof *sets);
  const mgrid_points **others = malloc(room * sizeof *others);
  int                 *owner = malloc(room * sizeof *owner);
  bool told = sets && others && owner && mgrid_class_starts(c, &own) && mgrid_spend(budget, (int64_t)room);
  for (size_t k = 0; k < r->classes.n && told; k++) {
    const mgrid_class *d = &r->classes.at[k];
    mgrid_told alike = mgrid_class_alike(p->content.entry[i].family, c, p->content.entry[r->owner[k]].family, d);
    if (alike == MGRID_NO) continue;
    told = alike == MGRID_YES && mgrid_class_starts(d, &sets[n]);
    others[n] = &sets[n];
    owner[n++] = r->owner[k];
  }
  t->owner = owner;
  told = told && mgrid_points_each(&own, n, others, false, count, t, budget);
  free(sets);
  free(others);
  free(owner);
  return told;
}

/* Return how many groups of entry i (with round >= 0 of that round) no group leads; -1: no modes tell. groups[] as in
** mgrid_plan_leaders; it may be NULL. */
static int64_t by_class(const mgrid_plan *p, int i, int64_t round, int64_t *groups, mgrid_budget *budget) {
  const mgrid_family *f = p->content.entry[i].family;
  mgrid_classes       own = { 0 };
  rivals             *r = calloc(1, sizeof *r);
  tally               t = { NULL, groups, 0 };
  bool                told = r && !may_repeat(f) && mgrid_classes_of(f, &own) && find_rivals(p, i, r);
  for (size_t k = 0; k < own.n && told; k++) {
    const mgrid_class *c = &own.at[k];
    if (c->size < 2 || (round >= 0 && c->round >= 0 && c->round != round)) continue;
    told = (round < 0 || c->round >= 0) && count_class(p, i, c, r, &t, budget);
  }
  free(own.at);
  if (r) free(r->classes.at);
  free(r);
  return told ? t.alone : -1;
}

/* ------------------------------------------------------------ group by group */

/* Return the entry, which may be i, whose earlier group leads this one; -1: none does. */
static int leader_of(const mgrid_plan *p, int i, int64_t group) {
  const mgrid_family *f = p->content.entry[i].family;
  for (size_t e = 0; p->order[e] != i; e++) {
    int j = p->order[e];
    if (mgrid_plan_may_share(p, i, j) && mgrid_group_in(f, group, p->content.entry[j].family, INT64_MAX, NULL) >= 0)
      return j;
  }
  bool again = may_repeat(f) && !p->content.entry[i].choice->asked.unique;
  return again && mgrid_group_in(f, group, f, group, NULL) >= 0 ? i : -1;
}

/* Pay for checking one group. */
static bool pay_group(const mgrid_plan *p, int i, mgrid_budget *budget) {
  const mgrid_family *f = p->content.entry[i].family;
  return mgrid_spend(budget, 4 * f->nodes + (int64_t)p->content.nentries);
}

int64_t mgrid_plan_led(const mgrid_plan *p, int i, int64_t round, mgrid_budget *budget) {
  const mgrid_family *f = p->content.entry[i].family;
  if (p->shares[i] >= 0 || f->max_size < 2 || p->content.entry[i].choice->none) return 0;
  mgrid_spend(budget, f->nodes + (int64_t)p->content.nentries);
  if (!is_open(p, i)) {
    if (round < 0 || !f->overlapping) return round > 0 ? 0 : f->count - mgrid_family_singles(f);
    if (f->size >= 0) return mgrid_family_in_round(f, round);
  }
  int64_t led = by_class(p, i, round, NULL, budget);
  if (led >= 0) return led;
  led = 0;
  for (int64_t g = 0; g < f->count && pay_group(p, i, budget); g++)
    led += mgrid_family_size(f, g) > 1 && (round < 0 || mgrid_family_round(f, g) == round) && leader_of(p, i, g) < 0;
  return led;
}

void mgrid_plan_leaders(const mgrid_plan *p, int i, int64_t *groups, mgrid_budget *budget) {
  const mgrid_family *f = p->content.entry[i].family;
  memset(groups, 0, p->content.nentries * sizeof *groups);
  if (f->max_size < 2 || p->content.entry[i].choice->none) return;
  if (p->shares[i] >= 0) {
    groups[p->shares[i]] = f->count - mgrid_family_singles(f);
    return;
  }
  if (!is_open(p, i) || by_class(p, i, -1, groups, budget) >= 0) return;
  memset(groups, 0, p->content.nentries * sizeof *groups); /* some were counted before it failed */
  for (int64_t g = 0; g < f->count && pay_group(p, i, budget); g++) {
    int leader = mgrid_family_size(f, g) > 1 ? leader_of(p, i, g) : -1;
    if (leader >= 0) groups[leader]++;
  }
}

void mgrid_plan_led_by_round(const mgrid_plan *p, int i, int64_t led[MGRID_ROUNDS_MAX], mgrid_budget *budget) {
  const mgrid_family *f = p->content.entry[i].family;
  int64_t             rounds = mgrid_family_rounds(f);
  if (rounds <= 3) { /* pairs, which modes may decide */
    for (int64_t r = 0; r < rounds; r++) led[r] = mgrid_plan_led(p, i, rounds > 1 ? r : -1, budget);
    return;
  }
  memset(led, 0, (size_t)rounds * sizeof *led);
  if (p->shares[i] >= 0 || f->max_size < 2 || p->content.entry[i].choice->none) return;
  for (int64_t g = 0; g < f->count && pay_group(p, i, budget); g++)
    led[mgrid_family_round(f, g)] += mgrid_family_size(f, g) > 1 && leader_of(p, i, g) < 0;
}
