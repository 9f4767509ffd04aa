/* SPDX-License-Identifier: MIT
**
** idle_ranks.c - ranks that are in no group.
*/
#include "families/classes.h"
#include "plan/plan.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { LOOKED_AT = 1 << 22, RANGES = 6 };

/* The ranks of an item that are in no group on purpose; NULL: it has none. */
static const mgrid_family *unused_of(const mgrid_item *item) {
  return item->kind->unused ? item->kind->unused(item->x) : NULL;
}

static bool is_idle(const mgrid_plan *p, int64_t rank) {
  int64_t group, position;
  for (size_t i = 0; i < p->content.nitems; i++) {
    const mgrid_family *f = unused_of(&p->content.item[i]);
    if (f && mgrid_family_locate(f, rank, 0, &group, &position)) return false;
  }
  for (size_t i = 0; i < p->content.nentries; i++)
    if (mgrid_family_locate(p->content.entry[i].family, rank, 0, &group, &position)) return false;
  return true;
}

typedef struct seeker {
  const mgrid_plan *p;
  mgrid_sets        sets; /* of all members */
  bool              told; /* by modes; else each rank is checked */
} seeker;

/* Return the next rank from `rank` on that is idle, or with `idle` false that is not; world: none. */
static int64_t next_rank(seeker *s, int64_t rank, bool idle) {
  int64_t      world = s->p->content.world, found;
  mgrid_points rest = { .offset = rank };
  if (rank == world) return world;
  mgrid_points_push(&rest, world - rank, 1);
  if (s->told && (idle ? mgrid_sets_lack : mgrid_sets_meet)(&rest, &s->sets, &found, NULL))
    return found < 0 ? world : found;
  while (rank < world && is_idle(s->p, rank) != idle) rank++;
  return rank;
}

static bool count_idle(void *idle, int64_t rank, int64_t weight, int64_t in) {
  (void)rank;
  if (in < 0) *(int64_t *)idle += weight;
  return true;
}

/* Collect the members of all families. False: there are too many for modes. */
static bool take_sets(seeker *s) {
  for (size_t i = 0; i < s->p->content.nitems; i++) {
    const mgrid_family *f = unused_of(&s->p->content.item[i]);
    if (f && !mgrid_members_of(f, &s->sets)) return false;
  }
  for (size_t i = 0; i < s->p->content.nentries; i++) {
    size_t first = s->sets.n, kept = first;
    if (!mgrid_members_of(s->p->content.entry[i].family, &s->sets)) return false;
    for (size_t k = first; k < s->sets.n; k++) { /* add each set once */
      const mgrid_points *one = &s->sets.at[k];
      bool                known = false;
      for (size_t e = 0; e < kept && !known; e++)
        known = s->sets.at[e].offset == one->offset && s->sets.at[e].n == one->n
                && memcmp(s->sets.at[e].at, one->at, (size_t)one->n * sizeof *one->at) == 0;
      if (!known) s->sets.at[kept++] = *one;
    }
    s->sets.n = kept;
  }
  return true;
}

int64_t mgrid_plan_idle(const mgrid_plan *p, mgrid_text *which) {
  int64_t      world = p->content.world, idle = 0;
  int          ranges = 0;
  seeker       s = { .p = p };
  mgrid_points all = { .offset = 0 };
  for (size_t i = 0; i < p->content.nentries; i++)
    if (mgrid_family_coverage(p->content.entry[i].family) == MGRID_PARTITION) return 0;
  if (p->content.nentries == 0) return 0; /* without any group, other messages say so */
  mgrid_points_push(&all, world, 1);
  s.told = take_sets(&s) && mgrid_sets_each(&all, &s.sets, false, count_idle, &idle, NULL);
  if (!s.told) {
    idle = world > LOOKED_AT ? -1 : 0;
    for (int64_t r = 0; r < world && idle >= 0; r++) idle += is_idle(p, r);
  }
  for (int64_t r = 0, end; idle > 0 && (r = next_rank(&s, r, true)) < world; r = end) {
    end = next_rank(&s, r, false);
    if (ranges++ == RANGES) break;
    mgrid_text_add(which, "%s%" PRId64, ranges > 1 ? ", " : "", r);
    if (end - r > 1) mgrid_text_add(which, "%s%" PRId64, end - r > 2 ? " to " : ", ", end - 1);
  }
  if (ranges > RANGES) mgrid_text_str(which, ", ...");
  free(s.sets.at);
  return idle;
}
