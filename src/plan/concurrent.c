/* SPDX-License-Identifier: MIT
**
** concurrent.c - lists of families that a trainer uses at the same time. NCCL runs the calls on one
** communicator one after the other, whatever their streams, so the families of a list must not
** share one. Each family of a list therefore gets a lane, a number in the record of its options;
** families of different lanes share no communicator, in a plan and between states. The lists also
** give the order in which calls are launched.
*/
#include "plan/plan.h"

#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------------- lists */

void mgrid_concurrent_text(const mgrid_concurrent *list, const char *between, mgrid_text *t) {
  for (size_t k = 0; k < list->n; k++) {
    if (k) mgrid_text_str(t, between);
    mgrid_text_str(t, list->name[k]);
  }
}

static mgrid_status concurrent_check_names(const mgrid_content *c, size_t n,
                                           const char *const *names, mgrid_error *err) {
  if (n < 2)
    return mgrid_fail(err, MGRID_REFUSED, "concurrent: a list has two families or more, not %zu",
                      n);
  if (mgrid_lacks_list(n, names, "families", err)) return MGRID_USAGE;
  for (size_t k = 0; k < n; k++) {
    const char *name = names[k];
    if (mgrid_content_require(c, "concurrent: ", name, err) < 0)
      return name ? MGRID_UNKNOWN_NAME : MGRID_USAGE;
    for (size_t i = 0; i < k; i++)
      if (strcmp(names[i], name) == 0)
        return mgrid_fail(err, MGRID_DUPLICATE, "concurrent: family '%s' is in the list twice",
                          name);
  }
  return MGRID_OK;
}

static size_t names_in_lists(const mgrid_content *c) {
  size_t n = 0;
  for (size_t i = 0; i < c->nconcurrent; i++) n += c->concurrent[i].n;
  return n;
}

/* Mark in `later` every family that the lists put after this one. next[]: marked families whose own
** followers are not marked yet. */
static void mark_later(const mgrid_content *c, const char *family, bool *later, int *next,
                       mgrid_budget *budget) {
  int64_t all = (int64_t)names_in_lists(c);
  size_t left = 0;
  while (mgrid_spend(budget, all)) {
    for (size_t i = 0; i < c->nconcurrent; i++) {
      const mgrid_concurrent *list = &c->concurrent[i];
      for (size_t k = mgrid_concurrent_place(list, family) + 1; k < list->n; k++) {
        int entry = mgrid_content_find(c, list->name[k]);
        if (!later[entry]) next[left++] = entry;
        later[entry] = true;
      }
    }
    if (left == 0) return;
    family = c->entry[next[--left]].name;
  }
}

/* Refuse a list that has two families in the opposite order of an earlier list. */
static mgrid_status concurrent_check_order(const mgrid_content *c, size_t n,
                                           const char *const *names, mgrid_budget *budget,
                                           mgrid_error *err) {
  int *next = malloc(c->nentries * (sizeof *next + sizeof(bool)));
  bool *later = (bool *)(next + c->nentries);
  if (!next) return mgrid_oom(err);
  mgrid_status s = MGRID_OK;
  for (size_t k = 1; k < n && !s; k++) {
    memset(later, 0, c->nentries * sizeof *later);
    mark_later(c, names[k], later, next, budget);
    if (!mgrid_spend(budget, (int64_t)(k * c->nentries))) break;
    for (size_t i = 0; i < k && !s; i++)
      if (later[mgrid_content_find(c, names[i])])
        s = mgrid_fail(
            err, MGRID_REFUSED,
            "concurrent: '%s' is before '%s' in this list, but after it by earlier lists", names[i],
            names[k]);
  }
  free(next);
  return s;
}

mgrid_status mgrid_topology_concurrent(mgrid_topology *t, size_t n, const char *const *names,
                                       mgrid_error *err) {
  if (!t) return MGRID_USAGE;
  mgrid_error mine = mgrid_topology_begin(err);
  return mgrid_topology_end(t, mgrid_concurrent_add(t, n, names, NULL, &mine), &mine, err);
}

mgrid_status mgrid_concurrent_add(mgrid_topology *t, size_t n, const char *const *names,
                                  mgrid_budget *budget, mgrid_error *err) {
  if (!t) return MGRID_USAGE;
  size_t had = names_in_lists(&t->content);
  if (n > MGRID_CONCURRENT_MAX - had)
    return mgrid_fail(err, MGRID_OUT_OF_RANGE, "concurrent: more than %d names in all lists",
                      MGRID_CONCURRENT_MAX);
  mgrid_spend(budget, (int64_t)(n * n));
  mgrid_status s = concurrent_check_names(&t->content, n, names, err);
  if (!s) s = concurrent_check_order(&t->content, n, names, budget, err);
  return s ? s : mgrid_concurrent_append(&t->content, n, names, err);
}

/* ------------------------------------------------------------------- lanes */

/* The lane of a family, -1 if it is in no list, and whether its calls have priority. */
typedef struct place {
  int lane;
  bool urgent, listed;
} place;

/* Return whether the family makes communicators that others could share. */
static bool can_share(const mgrid_entry *e) {
  return e->family->max_size > 1 && !e->choice->none && !e->choice->asked.unique;
}

/* Return whether a family of this lane is in one list with `family`. */
static bool is_taken(const mgrid_content *c, const char *family, int lane, const place *p) {
  for (size_t i = 0; i < c->nconcurrent; i++) {
    const mgrid_concurrent *list = &c->concurrent[i];
    if (mgrid_concurrent_place(list, family) == list->n) continue;
    for (size_t k = 0; k < list->n; k++)
      if (p[mgrid_content_find(c, list->name[k])].lane == lane) return true;
  }
  return false;
}

static bool is_listed(const mgrid_content *c, const char *family) {
  for (size_t i = 0; i < c->nconcurrent; i++)
    if (mgrid_concurrent_place(&c->concurrent[i], family) < c->concurrent[i].n) return true;
  return false;
}

/* Give a lane to each family of a list. Go in the order of the topology, not of the lists: then a
** change of the launch order makes no other communicators. */
static void give_lanes(const mgrid_content *c, place *p, mgrid_budget *budget) {
  int64_t names = (int64_t)names_in_lists(c);
  for (size_t i = 0; i < c->nentries && mgrid_spend(budget, names); i++) {
    const mgrid_entry *e = &c->entry[i];
    p[i].listed = is_listed(c, e->name);
    if (!can_share(e) || !p[i].listed) continue;
    int lane = 0;
    while (is_taken(c, e->name, lane, p) && mgrid_spend(budget, 2 * names)) lane++;
    p[i].lane = lane;
  }
}

/* In each list, give priority to the first family that makes communicators, unless a family of the
** list asks for priority itself. */
static void give_priority(const mgrid_content *c, place *p) {
  for (size_t i = 0; i < c->nconcurrent; i++) {
    const mgrid_concurrent *list = &c->concurrent[i];
    place *first = NULL;
    bool asked = false;
    for (size_t k = 0; k < list->n; k++) {
      int entry = mgrid_content_find(c, list->name[k]);
      const mgrid_entry *e = &c->entry[entry];
      asked |= e->choice->asked.high_priority;
      if (!first && e->family->max_size > 1 && !e->choice->none) first = &p[entry];
    }
    if (first && !asked) first->urgent = true;
  }
}

/* If a family is in no list, give it the lane of a listed family with the same groups, so that the
** two still share communicators. */
static void concurrent_follow(const mgrid_content *c, place *p, mgrid_budget *budget) {
  for (size_t i = 0; i < c->nentries && mgrid_spend(budget, (int64_t)c->nentries); i++) {
    const mgrid_entry *e = &c->entry[i];
    bool found = !can_share(e) || p[i].listed;
    for (size_t k = 0; k < c->nentries && !found; k++) {
      const mgrid_entry *other = &c->entry[k];
      if (!p[k].listed || !mgrid_choice_shares(e->choice, other->choice)) continue;
      found = mgrid_all_within(e->family, other->family, budget)
              || mgrid_all_within(other->family, e->family, budget);
      if (found) p[i] = p[k];
    }
  }
}

mgrid_status mgrid_concurrent_lanes(mgrid_content *c, mgrid_budget *budget, mgrid_error *err) {
  if (c->nconcurrent == 0) return MGRID_OK;
  place *p = malloc(c->nentries * sizeof *p);
  if (!p) return mgrid_oom(err);
  for (size_t i = 0; i < c->nentries; i++) p[i] = (place){ -1, false, false };
  give_lanes(c, p, budget);
  if (mgrid_spend(budget, (int64_t)names_in_lists(c))) give_priority(c, p);
  concurrent_follow(c, p, budget);
  mgrid_status s = MGRID_OK;
  for (size_t i = 0; i < c->nentries && !s; i++) {
    mgrid_choice *own = NULL;
    if (p[i].lane <= 0 && !p[i].urgent) continue;
    s = mgrid_choice_in_lane(c->entry[i].choice, p[i].lane > 0 ? p[i].lane : 0, p[i].urgent, &own,
                             err);
    if (s) break;
    mgrid_choice_free(c->entry[i].choice);
    c->entry[i].choice = own;
  }
  free(p);
  return s;
}

/* ------------------------------------------------------------ launch order */

/* The family that follows `family` in a list waits for it. Add `change` to waits[] of each such
** family. waits[entry]: the number of families that an entry still waits for. */
static void each_next(const mgrid_content *c, const char *family, int *waits, int change) {
  for (size_t i = 0; i < c->nconcurrent; i++) {
    const mgrid_concurrent *list = &c->concurrent[i];
    size_t next = mgrid_concurrent_place(list, family) + 1;
    if (next < list->n) waits[mgrid_content_find(c, list->name[next])] += change;
  }
}

mgrid_status mgrid_plan_take_launch(mgrid_plan *p, mgrid_budget *budget, mgrid_error *err) {
  const mgrid_content *c = &p->content;
  int64_t names = (int64_t)names_in_lists(c), entries = (int64_t)c->nentries;
  int64_t number = 0;
  int *waits = NULL;

  if (c->nconcurrent == 0) { /* then launch in the order of creation */
    for (size_t k = 0; k < c->nentries;
         number += mgrid_family_rounds(c->entry[p->order[k++]].family))
      p->launch[p->order[k]] = number;
    return MGRID_OK;
  }
  if (!(waits = calloc(c->nentries + 1, sizeof *waits))) return mgrid_oom(err);
  for (size_t i = 0; i < c->nentries && mgrid_spend(budget, 2 * names); i++) {
    p->launch[i] = -1;
    each_next(c, c->entry[i].name, waits, 1);
  }
  /* each time, launch the first family of the schedule that waits for none */
  for (size_t n = 0, from = 0; n < c->nentries; n++) {
    size_t k = from;
    if (!mgrid_spend(budget, 2 * names + entries / 8)) break;
    while (k < c->nentries && (p->launch[p->order[k]] >= 0 || waits[p->order[k]] > 0)) k++;
    /* mgrid_concurrent_add refuses such lists, unless its budget was exhausted */
    if (k == c->nentries) {
      free(waits);
      return mgrid_fail(err, MGRID_REFUSED, "concurrent: the lists have no common order");
    }
    int i = p->order[k];
    p->launch[i] = number;
    number += mgrid_family_rounds(c->entry[i].family);
    each_next(c, c->entry[i].name, waits, -1);
    while (from < c->nentries && p->launch[p->order[from]] >= 0) from++;
  }
  free(waits);
  return MGRID_OK;
}

int64_t mgrid_plan_launch(const mgrid_plan *p, int entry, int64_t group) {
  return p->launch[entry] + mgrid_family_round(p->content.entry[entry].family, group);
}
