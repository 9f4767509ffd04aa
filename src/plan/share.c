/* SPDX-License-Identifier: MIT
**
** share.c - finds which groups have a communicator of their own, and which use the communicator of
** an equal, earlier group, their leader (plan.h). It also finds which groups one rank is in, and
** which communicators the rank creates. Groups are compared by rules or class by class, so the size
** of the world does not matter. If modes cannot decide, groups are compared one by one.
*/
#include "families/classes.h"
#include "plan/plan.h"

#include <stdlib.h>
#include <string.h>

/* ============================================================== equal groups */

enum { PAID = 1024 }; /* members that are compared before the budget is charged */

/* Return whether the first rank of each group of a is also the first rank of a group of b. True is
** exact. False may be wrong, but not for families of grids: there each index mode of a steps along
** one index mode of b, without a carry into another. */
static bool starts_within(const mgrid_strided *a, const mgrid_strided *b) {
  int64_t digit[MGRID_MODES_MAX], rest = a->offset - b->offset;

  if (rest < 0) return false;
  for (int i = 0; i < b->ndigits; i++) { /* the digits, in b, of the first start of a */
    const mgrid_digit *d = &b->digits[i];
    int64_t value = rest / d->stride;
    if (value >= d->size || (d->inside && value != 0)) return false;
    rest -= value * d->stride;
    for (int k = 0; k < b->index.n && !d->inside; k++)
      if (b->index.at[k].stride == d->stride) digit[k] = value;
  }
  if (rest != 0) return false;
  for (int i = 0; i < a->index.n; i++) {
    /* what is still to be covered: one mode of a may cover several modes of b */
    mgrid_mode left = a->index.at[i];
    for (int k = b->index.n - 1; k >= 0 && left.size > 1; k--) {
      mgrid_mode m = b->index.at[k];
      if (left.stride % m.stride != 0 || left.stride / m.stride >= m.size) continue;
      int64_t step = left.stride / m.stride, room = (m.size - 1 - digit[k]) / step + 1;
      if (room >= left.size) {
        digit[k] += (left.size - 1) * step;
        left.size = 1;
      } else if (digit[k] == 0 && m.size % step == 0 && left.size % (m.size / step) == 0) {
        /* the steps go through all of mode m; what is left goes on in multiples of m */
        digit[k] = m.size - 1;
        left = (mgrid_mode){ left.size / (m.size / step), m.size * m.stride };
        k = b->index.n; /* begin again, because the carry may go to any mode */
      }
    }
    if (left.size > 1) return false;
  }
  return true;
}

/* In a family of pairs, return the distance between the two ranks of every ascending pair, or 0 if
** it varies. *around: whether some pairs go around an end. */
static int64_t pair_distance(const mgrid_family *f, bool *around) {
  return f->size == 2 && f->form->distance ? f->form->distance(f, around) : 0;
}

static mgrid_shapes shapes_of(const mgrid_family *f) {
  return f->form->shapes ? f->form->shapes(f) : (mgrid_shapes){ 0 };
}

/* Return the size of a group and the distance between its first two ranks. */
static void share_shape_of(const mgrid_family *f, int64_t group, int64_t *size, int64_t *step) {
  *size = mgrid_family_size(f, group);
  *step = *size < 2 ? 0 : mgrid_family_rank(f, group, 1) - mgrid_family_rank(f, group, 0);
}

/* Compare two families by their shapes. If both have the same root, the shapes decide. Else they
** can only show that no groups are equal. */
static mgrid_overlap by_shapes(const mgrid_family *a, const mgrid_family *b) {
  enum { LOOKS = 1 << 16 };
  mgrid_shapes x = shapes_of(a), y = shapes_of(b);
  int64_t some = 0, found = 0;
  if (x.n == 0 || y.n == 0 || x.n > LOOKS || y.n > LOOKS || x.n * y.n > LOOKS) return MGRID_SOME;
  bool one_root = mgrid_strided_equal(x.root, y.root);
  for (int64_t i = 0; i < x.n; i++) {
    bool equal = false;
    int64_t size[2], step[2];
    share_shape_of(a, i * x.every, &size[0], &step[0]);
    for (int64_t k = 0; k < y.n && size[0] > 1 && !equal; k++) {
      share_shape_of(b, k * y.every, &size[1], &step[1]);
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
  bool a_descends, b_descends; /* whether some pairs go around the end of their ring */
  int64_t x = pair_distance(a, &a_descends), y = pair_distance(b, &b_descends);
  return x && y && x != y && !(a_descends && b_descends) ? MGRID_NONE : MGRID_SOME;
}

static bool same_group(const mgrid_family *a, int64_t ga, const mgrid_family *b, int64_t gb,
                       mgrid_budget *budget) {
  int64_t n = mgrid_family_size(a, ga);
  if (n != mgrid_family_size(b, gb)) return false;
  if (a == b && ga == gb) return true;
  mgrid_tristate told = a->form == b->form && a->form->same_group
                            ? a->form->same_group(a, ga, b, gb)
                            : MGRID_UNDECIDED;
  if (told != MGRID_UNDECIDED) return told == MGRID_YES;
  for (int64_t p = 0; p < n; p++) {
    if (mgrid_family_rank(a, ga, p) != mgrid_family_rank(b, gb, p)) return false;
    if (p % PAID == PAID - 1 && !mgrid_spend(budget, PAID * (a->nodes + b->nodes))) return false;
  }
  return true;
}

bool mgrid_same_group(const mgrid_family *a, int64_t ga, const mgrid_family *b, int64_t gb) {
  return same_group(a, ga, b, gb, NULL);
}

int64_t mgrid_group_in(const mgrid_family *a, int64_t ga, const mgrid_family *b, int64_t limit,
                       mgrid_budget *budget) {
  int64_t group, position, first = mgrid_family_rank(a, ga, 0), found = -1;
  for (int64_t nth = 0; mgrid_family_locate(b, first, nth, &group, &position); nth++) {
    if (position == 0 && group < limit && (found < 0 || group < found)
        && same_group(a, ga, b, group, budget))
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

/* Return whether each group of a class is a group of the classes of b. */
static mgrid_tristate class_within(const mgrid_family *a, const mgrid_class *c,
                                   const mgrid_family *b, const mgrid_classes *theirs,
                                   mgrid_budget *budget) {
  size_t n = 0;
  bool all = true;
  mgrid_points own, *sets = malloc((theirs->n + 1) * sizeof *sets);
  const mgrid_points **others = malloc((theirs->n + 1) * sizeof *others);
  bool told = sets && others && mgrid_class_starts(c, &own);
  for (size_t k = 0; k < theirs->n && told; k++) {
    mgrid_tristate alike = mgrid_class_alike(a, c, b, &theirs->at[k]);
    if (alike == MGRID_NO) continue;
    told = alike == MGRID_YES && mgrid_class_starts(&theirs->at[k], &sets[n]);
    others[n] = &sets[n];
    n++;
  }
  told = told && (mgrid_points_each(&own, n, others, false, is_in, &all, budget) || !all);
  free(sets);
  free(others);
  return !told ? MGRID_UNDECIDED : all ? MGRID_YES : MGRID_NO;
}

static mgrid_tristate all_by_class(const mgrid_family *a, const mgrid_family *b,
                                   mgrid_budget *budget) {
  mgrid_classes own = { 0 }, theirs = { 0 };
  mgrid_tristate r = mgrid_classes_of(a, &own) && mgrid_classes_of(b, &theirs) ? MGRID_YES
                                                                               : MGRID_UNDECIDED;
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
  int64_t last = a->count - 1; /* the last group usually shows it when a is not within b */
  if (mgrid_family_size(a, last) > 1 && mgrid_group_in(a, last, b, INT64_MAX, budget) < 0)
    return false;
  for (int64_t g = 0; g < last; g++) {
    if (mgrid_family_size(a, g) > 1
        && (!mgrid_spend(budget, a->nodes + b->nodes + 8)
            || mgrid_group_in(a, g, b, INT64_MAX, budget) < 0))
      return false;
    if (g != FEW) continue;
    mgrid_tristate all = all_by_class(a, b, budget);
    if (all != MGRID_UNDECIDED || (budget && budget->exhausted) || a->count > COMPARE_MAX)
      return all == MGRID_YES;
  }
  return !budget || !budget->exhausted;
}

/* =================================================================== leaders */

/* Return whether a group may occur twice in the family: only in a cover that the user lists. */
static bool may_repeat(const mgrid_family *f) {
  const mgrid_parts *parts = mgrid_family_in_turn(f);
  for (size_t i = 0; parts && i < parts->n; i++)
    if (may_repeat(parts->child[i])) return true;
  return f->form->listed && f->overlapping;
}

bool mgrid_plan_rivals(const mgrid_plan *p, int i, int j) {
  return p->shares[j] < 0 && mgrid_plan_may_share(p, i, j)
         && mgrid_groups_within(p->content.entry[i].family, p->content.entry[j].family)
                != MGRID_NONE;
}

/* Return whether some group of entry i may have a leader, and must be compared. */
static bool is_open(const mgrid_plan *p, int i) {
  if (may_repeat(p->content.entry[i].family)) return true;
  for (size_t e = 0; p->order[e] != i; e++)
    if (mgrid_plan_rivals(p, i, p->order[e])) return true;
  return false;
}

/* ------------------------------------------------------------ class by class */

typedef struct rivals {
  mgrid_classes classes;
  int owner[MGRID_CLASSES_MAX]; /* entry of each class */
} rivals;

typedef struct tally {
  const int *owner; /* entry of each set */
  int64_t *groups;  /* groups that each entry leads; may be NULL */
  int64_t alone;    /* groups that no entry leads */
} tally;

static bool share_count(void *ud, int64_t start, int64_t weight, int64_t in) {
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
    int j = p->order[e];
    size_t first = r->classes.n;
    if (!mgrid_plan_rivals(p, i, j)) continue;
    if (!mgrid_classes_of(p->content.entry[j].family, &r->classes)) return false;
    for (size_t k = first; k < r->classes.n; k++) r->owner[k] = j;
  }
  return true;
}

/* Count the groups of a class that each entry leads, and those without a leader. Return false if
** modes cannot decide. */
static bool share_count_class(const mgrid_plan *p, int i, const mgrid_class *c, const rivals *r,
                              tally *t, mgrid_budget *budget) {
  size_t room = r->classes.n + 1, n = 0;
  mgrid_points own;
  mgrid_points *sets = malloc(room * sizeof *sets);
  const mgrid_points **others = malloc(room * sizeof *others);
  int *owner = malloc(room * sizeof *owner);
  bool told = sets && others && owner && mgrid_class_starts(c, &own)
              && mgrid_spend(budget, (int64_t)room);

  for (size_t k = 0; k < r->classes.n && told; k++) {
    const mgrid_class *d = &r->classes.at[k];
    mgrid_tristate alike =
        mgrid_class_alike(p->content.entry[i].family, c, p->content.entry[r->owner[k]].family, d);
    if (alike == MGRID_NO) continue;
    told = alike == MGRID_YES && mgrid_class_starts(d, &sets[n]);
    others[n] = &sets[n];
    owner[n++] = r->owner[k];
  }
  t->owner = owner;
  told = told && mgrid_points_each(&own, n, others, false, share_count, t, budget);
  free(sets);
  free(others);
  free(owner);
  return told;
}

/* Return how many groups of entry i have no leader, or -1 if modes cannot decide. With round >= 0,
** count only groups of that round. groups[] is as in mgrid_plan_leaders, or NULL. */
static int64_t share_by_class(const mgrid_plan *p, int i, int64_t round, int64_t *groups,
                              mgrid_budget *budget) {
  const mgrid_family *f = p->content.entry[i].family;
  mgrid_classes own = { 0 };
  rivals *r = calloc(1, sizeof *r);
  tally t = { NULL, groups, 0 };
  bool told = r && !may_repeat(f) && mgrid_classes_of(f, &own) && find_rivals(p, i, r);
  for (size_t k = 0; k < own.n && told; k++) {
    const mgrid_class *c = &own.at[k];
    if (c->size < 2 || (round >= 0 && c->round >= 0 && c->round != round)) continue;
    told = (round < 0 || c->round >= 0) && share_count_class(p, i, c, r, &t, budget);
  }
  free(own.at);
  if (r) free(r->classes.at);
  free(r);
  return told ? t.alone : -1;
}

/* ------------------------------------------------------------ group by group */

int mgrid_plan_leader(const mgrid_plan *p, int i, int64_t group) {
  const mgrid_family *f = p->content.entry[i].family;
  for (size_t e = 0; p->order[e] != i; e++) {
    int j = p->order[e];
    if (mgrid_plan_may_share(p, i, j)
        && mgrid_group_in(f, group, p->content.entry[j].family, INT64_MAX, NULL) >= 0)
      return j;
  }
  bool again = may_repeat(f) && mgrid_plan_may_share(p, i, i);
  return again && mgrid_group_in(f, group, f, group, NULL) >= 0 ? i : -1;
}

/* Charge the budget for comparing one group. Return whether it is not exhausted. */
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
  int64_t led = share_by_class(p, i, round, NULL, budget);
  if (led >= 0) return led;
  led = 0;
  for (int64_t g = 0; g < f->count && pay_group(p, i, budget); g++)
    led += mgrid_family_size(f, g) > 1 && (round < 0 || mgrid_family_round(f, g) == round)
           && mgrid_plan_leader(p, i, g) < 0;
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
  if (!is_open(p, i) || share_by_class(p, i, -1, groups, budget) >= 0) return;
  /* share_by_class may have counted some groups before it failed */
  memset(groups, 0, p->content.nentries * sizeof *groups);
  for (int64_t g = 0; g < f->count && pay_group(p, i, budget); g++) {
    int leader = mgrid_family_size(f, g) > 1 ? mgrid_plan_leader(p, i, g) : -1;
    if (leader >= 0) groups[leader]++;
  }
}

void mgrid_plan_led_by_round(const mgrid_plan *p, int i, int64_t led[MGRID_ROUNDS_MAX],
                             mgrid_budget *budget) {
  const mgrid_family *f = p->content.entry[i].family;
  int64_t rounds = mgrid_family_rounds(f);
  if (rounds <= 3) { /* covers of pairs have at most 3; modes may decide */
    for (int64_t r = 0; r < rounds; r++) led[r] = mgrid_plan_led(p, i, rounds > 1 ? r : -1, budget);
    return;
  }
  memset(led, 0, (size_t)rounds * sizeof *led);
  if (p->shares[i] >= 0 || f->max_size < 2 || p->content.entry[i].choice->none) return;
  for (int64_t g = 0; g < f->count && pay_group(p, i, budget); g++)
    led[mgrid_family_round(f, g)] += mgrid_family_size(f, g) > 1 && mgrid_plan_leader(p, i, g) < 0;
}

/* ========================================== counts, and the view of one rank */

bool mgrid_plan_may_share(const mgrid_plan *p, int later, int earlier) {
  return mgrid_choice_shares(p->content.entry[later].choice, p->content.entry[earlier].choice);
}

/* --------------------------------------------------------- the job's total */

mgrid_status mgrid_plan_count_paid(const mgrid_plan *p, mgrid_budget *budget,
                                   mgrid_plan_counts *out, mgrid_error *err) {
  if (!p) return MGRID_USAGE;
  mgrid_plan_counts c = MGRID_PLAN_COUNTS_INIT;
  mgrid_status s = mgrid_struct_check(out, sizeof c, "mgrid_plan_counts", err);
  if (s) return s;
  c.families = (int64_t)p->content.nentries;
  for (int i = 0; i < (int)p->content.nentries; i++) {
    const mgrid_family *f = p->content.entry[i].family;
    int64_t ones = mgrid_family_singles(f);
    c.singles += ones;
    c.groups += f->count - ones;
    c.communicators += mgrid_plan_led(p, i, -1, budget);
  }
  mgrid_struct_write(out, &c, sizeof c);
  return MGRID_OK;
}

mgrid_status mgrid_plan_count(const mgrid_plan *p, int64_t rank, mgrid_plan_counts *out,
                              mgrid_error *err) {
  if (!p) return MGRID_USAGE;
  if (rank < 0) return mgrid_plan_count_paid(p, NULL, out, err);
  mgrid_view v;
  mgrid_plan_counts c = MGRID_PLAN_COUNTS_INIT;
  mgrid_status s = mgrid_struct_check(out, sizeof c, "mgrid_plan_counts", err);
  if (!s) s = mgrid_view_init(&v, p, rank, err);
  if (s) return s;
  c.families = (int64_t)p->content.nentries;
  c.communicators = (int64_t)v.ncomms;
  for (size_t i = 0; i < v.nmembers; i++) {
    c.singles += v.member[i].size == 1;
    c.groups += v.member[i].size > 1;
  }
  mgrid_view_free(&v);
  mgrid_struct_write(out, &c, sizeof c);
  return MGRID_OK;
}

/* -------------------------------------------------------------- one rank's view */

static int share_by_round(const void *a, const void *b) {
  const mgrid_creation *x = a, *y = b;
  if (x->round != y->round) return x->round < y->round ? -1 : 1;
  return (x->group > y->group) - (x->group < y->group);
}

static int by_entry(const void *a, const void *b) {
  const mgrid_member *x = a, *y = b;
  if (x->entry != y->entry) return x->entry < y->entry ? -1 : 1;
  return (x->group > y->group) - (x->group < y->group);
}

/* Return the index of the creation in this view that makes the same group, or -1. */
static int made_already(const mgrid_view *v, const mgrid_plan *p, const mgrid_creation *c) {
  const mgrid_entry *e = &p->content.entry[c->entry];
  for (size_t k = 0; k < v->ncomms; k++) {
    const mgrid_creation *made = &v->comm[k];
    if (made->size == c->size && made->position == c->position
        && mgrid_plan_may_share(p, c->entry, made->entry)
        && mgrid_same_group(e->family, c->group, p->content.entry[made->entry].family, made->group))
      return (int)k;
  }
  return -1;
}

mgrid_status mgrid_view_init(mgrid_view *v, const mgrid_plan *p, int64_t rank, mgrid_error *err) {
  memset(v, 0, sizeof *v);
  mgrid_status s = mgrid_check_rank(rank, p->content.world, err);
  if (s) return s;
  v->rank = rank;
  int64_t group, position;
  size_t total = 0;
  for (size_t i = 0; i < p->content.nentries; i++)
    for (int64_t nth = 0;
         mgrid_family_locate(p->content.entry[i].family, rank, nth, &group, &position); nth++)
      total++;
  v->member = malloc((total + 1) * sizeof *v->member);
  v->comm = malloc((total + 1) * sizeof *v->comm);

  /* this rank's groups of one family */
  mgrid_creation *groups = malloc((total + 1) * sizeof *groups);
  if (!v->member || !v->comm || !groups) {
    free(groups);
    mgrid_view_free(v);
    return mgrid_oom(err);
  }
  for (size_t k = 0; k < p->content.nentries; k++) {
    int i = p->order[k];
    const mgrid_family *f = p->content.entry[i].family;
    size_t n = 0;
    for (int64_t nth = 0; mgrid_family_locate(f, rank, nth, &group, &position); nth++)
      groups[n++] = (mgrid_creation){ i, group, mgrid_family_round(f, group), position,
                                      mgrid_family_size(f, group) };
    if (n > 1) qsort(groups, n, sizeof *groups, share_by_round);
    for (size_t g = 0; g < n; g++) {
      bool made = groups[g].size > 1 && !p->content.entry[i].choice->none;
      int comm = made ? made_already(v, p, &groups[g]) : -1;
      if (comm < 0 && made) {
        comm = (int)v->ncomms;
        v->comm[v->ncomms++] = groups[g];
      }
      v->member[v->nmembers++] =
          (mgrid_member){ i, groups[g].group, groups[g].position, groups[g].size, comm };
    }
  }
  free(groups);
  qsort(v->member, v->nmembers, sizeof *v->member, by_entry);
  return MGRID_OK;
}

void mgrid_view_free(mgrid_view *v) {
  free(v->member);
  free(v->comm);
  memset(v, 0, sizeof *v);
}
