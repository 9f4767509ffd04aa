/* SPDX-License-Identifier: MIT
**
** plan.c - make a topology canonical for one world, and one rank's view of it.
*/
#include "plan/plan.h"

#include <stdlib.h>
#include <string.h>

bool mgrid_plan_may_share(const mgrid_plan *p, int later, int earlier) {
  return mgrid_choice_shares(p->content.entry[later].choice, p->content.entry[earlier].choice);
}

static int rank_of_choice(const mgrid_choice *c) { return c->asked.first ? 0 : c->asked.lazy ? 2 : 1; }

mgrid_plan *mgrid_plan_new(const mgrid_topology *t, mgrid_error *err) { return mgrid_plan_make(t, NULL, err); }

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
  mgrid_spend(budget, (int64_t)p->content.held / 2); /* the text of items, for the digest */
  p->order = malloc((n + 1) * sizeof *p->order);
  p->shares = malloc((n + 1) * sizeof *p->shares);
  p->launch = malloc((n + 1) * sizeof *p->launch);
  if (!p->order || !p->shares || !p->launch) {
    mgrid_plan_free(p);
    return mgrid_null_oom(err);
  }
  for (int pass = 0; pass < 3; pass++)
    for (size_t i = 0; i < n; i++)
      if (rank_of_choice(p->content.entry[i].choice) == pass) p->order[filled++] = (int)i;
  for (size_t k = 0; k < n; k++) {
    int i = p->order[k];
    p->shares[i] = -1;
    mgrid_spend(budget, (int64_t)(k + p->content.entry[i].family->bytes / 2)); /* comparing, and text for the digest */
    for (size_t e = 0; e < k && p->shares[i] < 0; e++) {
      int j = p->order[e];
      /* a family that shares is led by an earlier one, which this loop also reaches */
      if (p->shares[j] < 0 && mgrid_plan_may_share(p, i, j)
          && mgrid_all_within(p->content.entry[i].family, p->content.entry[j].family, budget))
        p->shares[i] = j;
    }
    if (budget && budget->exhausted) {
      mgrid_plan_free(p);
      return NULL;
    }
  }
  if (mgrid_plan_check_parents(p, err) || mgrid_plan_take_launch(p, budget, err) || (budget && budget->exhausted)
      || mgrid_plan_take_digest(p, err)) {
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

int64_t     mgrid_plan_world(const mgrid_plan *p) { return p ? p->content.world : -1; }
size_t      mgrid_plan_nfamilies(const mgrid_plan *p) { return p ? p->content.nentries : 0; }
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

/* --------------------------------------------------------- the job's total */

mgrid_status mgrid_plan_count_paid(const mgrid_plan *p, mgrid_budget *budget, mgrid_plan_counts *out,
                                   mgrid_error *err) {
  if (!p) return MGRID_USAGE;
  mgrid_plan_counts c = MGRID_PLAN_COUNTS_INIT;
  mgrid_status      s = mgrid_struct_check(out, sizeof c, "mgrid_plan_counts", err);
  if (s) return s;
  c.families = (int64_t)p->content.nentries;
  for (int i = 0; i < (int)p->content.nentries; i++) {
    const mgrid_family *f = p->content.entry[i].family;
    int64_t             ones = mgrid_family_singles(f);
    c.singles += ones;
    c.groups += f->count - ones;
    c.communicators += mgrid_plan_led(p, i, -1, budget);
  }
  mgrid_struct_write(out, &c, sizeof c);
  return MGRID_OK;
}

mgrid_status mgrid_plan_count(const mgrid_plan *p, int64_t rank, mgrid_plan_counts *out, mgrid_error *err) {
  if (!p) return MGRID_USAGE;
  if (rank < 0) return mgrid_plan_count_paid(p, NULL, out, err);
  mgrid_view        v;
  mgrid_plan_counts c = MGRID_PLAN_COUNTS_INIT;
  mgrid_status      s = mgrid_struct_check(out, sizeof c, "mgrid_plan_counts", err);
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

static int by_round(const void *a, const void *b) {
  const mgrid_creation *x = a, *y = b;
  if (x->round != y->round) return x->round < y->round ? -1 : 1;
  return (x->group > y->group) - (x->group < y->group);
}

static int by_entry(const void *a, const void *b) {
  const mgrid_member *x = a, *y = b;
  if (x->entry != y->entry) return x->entry < y->entry ? -1 : 1;
  return (x->group > y->group) - (x->group < y->group);
}

/* Return the creation of this view that makes the same group, or -1. */
static int made_already(const mgrid_view *v, const mgrid_plan *p, const mgrid_creation *c) {
  const mgrid_entry *e = &p->content.entry[c->entry];
  for (size_t k = 0; k < v->ncomms; k++) {
    const mgrid_creation *made = &v->comm[k];
    if (made->size == c->size && made->position == c->position && mgrid_plan_may_share(p, c->entry, made->entry)
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
  size_t  total = 0;
  for (size_t i = 0; i < p->content.nentries; i++)
    for (int64_t nth = 0; mgrid_family_locate(p->content.entry[i].family, rank, nth, &group, &position); nth++) total++;
  v->member = malloc((total + 1) * sizeof *v->member);
  v->comm = malloc((total + 1) * sizeof *v->comm);
  mgrid_creation *groups = malloc((total + 1) * sizeof *groups); /* this rank's groups of one family */
  if (!v->member || !v->comm || !groups) {
    free(groups);
    mgrid_view_free(v);
    return mgrid_oom(err);
  }
  for (size_t k = 0; k < p->content.nentries; k++) {
    int                 i = p->order[k];
    const mgrid_family *f = p->content.entry[i].family;
    size_t              n = 0;
    for (int64_t nth = 0; mgrid_family_locate(f, rank, nth, &group, &position); nth++)
      groups[n++] = (mgrid_creation){ i, group, mgrid_family_round(f, group), position, mgrid_family_size(f, group) };
    if (n > 1) qsort(groups, n, sizeof *groups, by_round);
    for (size_t g = 0; g < n; g++) {
      bool made = groups[g].size > 1 && !p->content.entry[i].choice->none;
      int  comm = made ? made_already(v, p, &groups[g]) : -1;
      if (comm < 0 && made) {
        comm = (int)v->ncomms;
        v->comm[v->ncomms++] = groups[g];
      }
      v->member[v->nmembers++] = (mgrid_member){ i, groups[g].group, groups[g].position, groups[g].size, comm };
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
