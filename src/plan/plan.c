/* SPDX-License-Identifier: MIT
**
** plan.c - makes a plan from a topology: the order in which groups are created, which families
** share communicators, the lanes of families that are used at the same time (concurrent.c), and the
** digest. A plan does not change after it is made. The file also answers questions about a whole
** plan: its families and grids, which ranks are in no group, likely mistakes.
*/
#include "families/classes.h"
#include "plan/plan.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* =================================================================== parents */

/* A family may name a parent: another family, from whose communicators its own are split. The
** parent must exist and be created first. Both are created by one call, mgrid_materialize. Checking
** that each group is inside a group of the parent takes O(members), so a rank checks only its own
** groups (comm/state.c). */

/* Return the index of a family in the schedule, which is the order of creation. */
static size_t plan_turn_of(const mgrid_plan *p, int entry) {
  size_t k = 0;
  while (p->order[k] != entry) k++;
  return k;
}

static mgrid_status plan_unknown(const mgrid_content *c, const mgrid_entry *e, mgrid_error *err) {
  enum { SHOWN = 64 };
  const char *known[SHOWN];
  size_t n = 0;
  char tail[512] = "";
  for (size_t i = 0; i < c->nentries && n < SHOWN; i++)
    if (&c->entry[i] != e) known[n++] = c->entry[i].name;
  mgrid_suggest(tail, sizeof tail, e->choice->asked.parent, known, n);
  return mgrid_fail(err, MGRID_UNKNOWN_NAME, "family '%s': unknown parent '%s'%s", e->name,
                    e->choice->asked.parent, tail);
}

static mgrid_status check_parents(const mgrid_plan *p, mgrid_error *err) {
  const mgrid_content *c = &p->content;

  for (size_t i = 0; i < c->nentries; i++) {
    const mgrid_entry *e = &c->entry[i];
    const char *name = e->choice->asked.parent, *why = NULL;
    if (!*name) continue;
    int other = mgrid_content_find(c, name);
    if (other < 0) return plan_unknown(c, e, err);
    const mgrid_choice *parent = c->entry[other].choice;
    if (other == (int)i)
      why = "is the family itself";
    else if (e->choice->asked.lazy || parent->asked.lazy)
      why = "is made in the same call, so neither can be 'lazy'";
    else if (parent->none || e->choice->none)
      why = "or the family itself has no communicators: its backend is 'none'";
    else if (e->choice->backend != parent->backend)
      why = "has another backend";
    else if (c->entry[other].family->overlapping || e->family->overlapping)
      why = "or the family itself has groups that share ranks";
    else if (plan_turn_of(p, other) > plan_turn_of(p, (int)i))
      why = "is made later; put the parent before the family";
    if (why)
      return mgrid_fail(err, MGRID_REFUSED, "family '%s': its parent '%s' %s", e->name, name, why);
  }
  return MGRID_OK;
}

mgrid_status mgrid_plan_check_parent(const mgrid_plan *p, int entry, int64_t group,
                                     mgrid_error *err) {
  const mgrid_entry *e = &p->content.entry[entry];
  const mgrid_family *parent =
      p->content.entry[mgrid_content_find(&p->content, e->choice->asked.parent)].family;
  int64_t first = -1, in_parent, position;
  for (int64_t i = 0; i < mgrid_family_size(e->family, group); i++) {
    int64_t rank = mgrid_family_rank(e->family, group, i);
    bool found = mgrid_family_locate(parent, rank, 0, &in_parent, &position);
    if (found && i == 0) first = in_parent;
    if (!found || in_parent != first)
      return mgrid_fail(err, MGRID_REFUSED,
                        "family '%s': group %" PRId64
                        " is not within one group of its parent '%s': rank %" PRId64 " is outside",
                        e->name, group, e->choice->asked.parent, rank);
  }
  return MGRID_OK;
}

/* ================================================================== the plan */

/* Return the pass of mgrid_plan_make that puts a family into the schedule: `first` families come
** before all others, lazy ones after. */
static int schedule_pass(const mgrid_choice *c) {
  return c->asked.first ? 0 : c->asked.lazy ? 2 : 1;
}

mgrid_plan *mgrid_plan_new(const mgrid_topology *t, mgrid_error *err) {
  return mgrid_plan_make(t, NULL, err);
}

mgrid_plan *mgrid_plan_make(const mgrid_topology *t, mgrid_budget *budget, mgrid_error *err) {
  if (!t) return NULL;
  if (t->broken.status) {
    mgrid_error_pass(err, &t->broken);
    return NULL;
  }

  mgrid_plan *p = calloc(1, sizeof *p);
  if (!p) return mgrid_null_oom(err);
  atomic_init(&p->refs, 1);
  if (mgrid_content_copy(&p->content, &t->content, err)) {
    free(p);
    return NULL;
  }
  if (mgrid_concurrent_lanes(&p->content, budget, err)) {
    mgrid_plan_free(p);
    return NULL;
  }

  size_t n = p->content.nentries, filled = 0;
  /* for the digest, which reads the text of all items (item.h), such as tensors and spares */
  mgrid_spend(budget, (int64_t)p->content.held / 2);
  p->order = malloc((n + 1) * sizeof *p->order);
  p->shares = malloc((n + 1) * sizeof *p->shares);
  p->launch = malloc((n + 1) * sizeof *p->launch);
  if (!p->order || !p->shares || !p->launch) {
    mgrid_plan_free(p);
    return mgrid_null_oom(err);
  }

  for (int pass = 0; pass < 3; pass++)
    for (size_t i = 0; i < n; i++)
      if (schedule_pass(p->content.entry[i].choice) == pass) p->order[filled++] = (int)i;

  for (size_t k = 0; k < n; k++) {
    int i = p->order[k];
    p->shares[i] = -1;
    /* for comparing i with the families before, and for writing its rule into the digest */
    mgrid_spend(budget, (int64_t)(k + p->content.entry[i].family->bytes / 2));
    for (size_t e = 0; e < k && p->shares[i] < 0; e++) {
      int j = p->order[e];
      /* skip j if it shares: this loop also compares i with the leader of j, which is earlier */
      if (p->shares[j] < 0 && mgrid_plan_may_share(p, i, j)
          && mgrid_all_within(p->content.entry[i].family, p->content.entry[j].family, budget))
        p->shares[i] = j;
    }
    if (budget && budget->exhausted) {
      mgrid_plan_free(p);
      return NULL;
    }
  }

  if (check_parents(p, err) || mgrid_plan_take_launch(p, budget, err)
      || (budget && budget->exhausted) || mgrid_plan_take_digest(p, err)) {
    mgrid_plan_free(p);
    return NULL;
  }
  return p;
}

mgrid_plan *mgrid_plan_ref(const mgrid_plan *p) {
  mgrid_plan *owned = (mgrid_plan *)p; /* only the count changes */
  if (owned) atomic_fetch_add(&owned->refs, 1);
  return owned;
}

void mgrid_plan_free(mgrid_plan *p) {
  if (!p || atomic_fetch_sub(&p->refs, 1) != 1) return;
  mgrid_content_free(&p->content);
  free(p->order);
  free(p->shares);
  free(p->launch);
  free(p);
}

/* --------------------------------------------------------------- questions */

int64_t mgrid_plan_world(const mgrid_plan *p) { return p ? p->content.world : -1; }
size_t mgrid_plan_nfamilies(const mgrid_plan *p) { return p ? p->content.nentries : 0; }
const char *mgrid_plan_family_name(const mgrid_plan *p, size_t i) {
  return p && i < p->content.nentries ? p->content.entry[i].name : NULL;
}
const mgrid_family *mgrid_plan_family(const mgrid_plan *p, const char *name) {
  int at = p ? mgrid_content_find(&p->content, name) : -1;
  return at < 0 ? NULL : p->content.entry[at].family;
}
const char *mgrid_plan_grid_name(const mgrid_plan *p, size_t i) {
  return p && i < p->content.ngrids ? p->content.grid[i].name : NULL;
}
const char *mgrid_plan_shares(const mgrid_plan *p, const char *family) {
  int at = p ? mgrid_content_find(&p->content, family) : -1;
  return at < 0 || p->shares[at] < 0 ? NULL : p->content.entry[p->shares[at]].name;
}

const mgrid_grid *mgrid_plan_grid(const mgrid_plan *p, const char *name) {
  int index = p ? mgrid_content_grid(&p->content, name) : -1;
  return index < 0 ? NULL : p->content.grid[index].grid;
}

/* ================================================================ idle ranks */

/* Ranks that are in no group. */

enum {
  LOOKED_AT = 1 << 22, /* most ranks that are checked one by one */
  RANGES = 6           /* most ranges of idle ranks that the text names */
};

/* Return the ranks that an item, such as spares, keeps out of all groups. NULL: none. */
static const mgrid_family *unused_of(const mgrid_item *item) {
  return item->kind->unused ? item->kind->unused(item->x) : NULL;
}

static bool plan_is_idle(const mgrid_plan *p, int64_t rank) {
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
  mgrid_sets sets; /* the members of all families */
  bool told;       /* sets is complete; if not, ranks are checked one by one */
} seeker;

/* Return the first rank from `rank` on that is idle, or with `idle` false the first that is not. If
** there is none, return the size of the world. */
static int64_t next_rank(seeker *s, int64_t rank, bool idle) {
  int64_t world = s->p->content.world, found;
  mgrid_points rest = { .offset = rank };
  if (rank == world) return world;
  mgrid_points_push(&rest, world - rank, 1);
  if (s->told && (idle ? mgrid_sets_lack : mgrid_sets_overlap)(&rest, &s->sets, &found, NULL))
    return found < 0 ? world : found;
  while (rank < world && plan_is_idle(s->p, rank) != idle) rank++;
  return rank;
}

/* Called by mgrid_sets_each with ranks that are in a set, or in none (in < 0). Count the latter. */
static bool count_idle(void *idle, int64_t rank, int64_t weight, int64_t in) {
  (void)rank;
  if (in < 0) *(int64_t *)idle += weight;
  return true;
}

/* Collect the ranks that are not idle: the members of all families, and the ranks that items keep
** out of groups. Return false if these are too many sets to hold. */
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
      bool known = false;
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
  int64_t world = p->content.world, idle = 0;
  int ranges = 0;
  seeker s = { .p = p };
  mgrid_points all = { .offset = 0 };

  for (size_t i = 0; i < p->content.nentries; i++)
    if (mgrid_family_coverage(p->content.entry[i].family) == MGRID_PARTITION) return 0;
  if (p->content.nentries == 0) return 0; /* other messages report a plan without groups */
  mgrid_points_push(&all, world, 1);
  s.told = take_sets(&s) && mgrid_sets_each(&all, &s.sets, false, count_idle, &idle, NULL);
  if (!s.told) {
    idle = world > LOOKED_AT ? -1 : 0;
    for (int64_t r = 0; r < world && idle >= 0; r++) idle += plan_is_idle(p, r);
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

/* ===================================================================== notes */

/* Options that a backend does not support, and the notes of modules about likely mistakes. */

void mgrid_plan_unheeded(const mgrid_plan *p, const mgrid_descriptor *backend, mgrid_text *t) {
  for (const mgrid_option *row = mgrid_option_table; row->name; row++) {
    int64_t n = 0;
    for (size_t i = 0; i < p->content.nentries; i++) {
      const mgrid_choice *c = p->content.entry[i].choice;
      n += mgrid_choice_has(c, row)
           && !mgrid_backend_heeds(c->backend ? c->backend : backend, row->name);
    }
    if (n > 0)
      mgrid_text_add(t, "%s%s of %" PRId64 " famil%s", t->len ? ", " : "", row->name, n,
                     n == 1 ? "y" : "ies");
  }
}

void mgrid_plan_notes(const mgrid_plan *p, bool listed, mgrid_text *out) {
  const mgrid_content *c = &p->content;
  for (size_t i = 0; i < c->nitems; i++)
    if (c->item[i].kind->notes) c->item[i].kind->notes(c->item[i].x, c->item[i].name, listed, out);
}
