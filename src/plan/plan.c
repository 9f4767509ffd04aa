/* SPDX-License-Identifier: MIT
**
** plan.c - a topology made canonical for one world, and one rank's view of it.
*/
#include "plan/plan.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Groups up to this many are compared one by one where the rules leave it open whether a
** whole family is shared. It affects what is reported, never what is created. */
enum { COMPARE_MAX = 4096 };

static bool may_share(const mg_plan *p, int later, int earlier) {
  return mg_choice_shares(&p->content.entry[later].choice, &p->content.entry[earlier].choice);
}

/* Does every group of more than one rank of `a` occur in `b`? */
static bool all_within(const mg_family *a, const mg_family *b) {
  mg_overlap r = mg_groups_within(a, b);
  if (r != MG_SOME) return r == MG_ALL;
  if (a->count > COMPARE_MAX) return false;
  for (int64_t g = 0; g < a->count; g++)
    if (mg_family_size(a, g) > 1 && mg_group_in(a, g, b, INT64_MAX) < 0) return false;
  return true;
}

static int rank_of_choice(const mg_choice *c) { return c->first ? 0 : c->lazy ? 2 : 1; }

mg_plan *mg_plan_new(const mg_topology *t, mg_error *err) {
  if (!t) return NULL;
  mg_plan *p = calloc(1, sizeof *p);
  if (!p) return mg_null_oom(err);
  atomic_init(&p->refs, 1);
  if (mg_content_copy(&p->content, &t->content, err)) {
    free(p);
    return NULL;
  }
  size_t n = p->content.nentries, at = 0;
  p->order = malloc((n + 1) * sizeof *p->order);
  p->shares = malloc((n + 1) * sizeof *p->shares);
  if (!p->order || !p->shares) {
    mg_plan_free(p);
    return mg_null_oom(err);
  }
  for (int pass = 0; pass < 3; pass++)
    for (size_t i = 0; i < n; i++)
      if (rank_of_choice(&p->content.entry[i].choice) == pass) p->order[at++] = (int)i;
  for (size_t k = 0; k < n; k++) {
    int i = p->order[k];
    p->shares[i] = -1;
    for (size_t e = 0; e < k && p->shares[i] < 0; e++) {
      int j = p->order[e]; /* what shares with another itself adds nothing to that one */
      if (p->shares[j] < 0 && may_share(p, i, j) && all_within(p->content.entry[i].family, p->content.entry[j].family))
        p->shares[i] = j;
    }
  }
  if (mg_plan_take_digest(p, err)) {
    mg_plan_free(p);
    return NULL;
  }
  return p;
}

mg_plan *mg_plan_ref(const mg_plan *p) {
  mg_plan *owned = (mg_plan *)p; /* only the count changes */
  if (owned) atomic_fetch_add(&owned->refs, 1);
  return owned;
}

void mg_plan_free(mg_plan *p) {
  if (!p || atomic_fetch_sub(&p->refs, 1) != 1) return;
  mg_content_free(&p->content);
  free(p->order);
  free(p->shares);
  free(p);
}

/* --------------------------------------------------------------- questions */

int64_t          mg_plan_world(const mg_plan *p) { return p->content.world; }
size_t           mg_plan_nfamilies(const mg_plan *p) { return p->content.nentries; }
const char      *mg_plan_family_name(const mg_plan *p, size_t i) { return p->content.entry[i].name; }
const mg_family *mg_plan_family(const mg_plan *p, size_t i) { return p->content.entry[i].family; }
int              mg_plan_find(const mg_plan *p, const char *family) { return mg_content_find(&p->content, family); }
size_t           mg_plan_ngrids(const mg_plan *p) { return p->content.ngrids; }
const char      *mg_plan_grid_name(const mg_plan *p, size_t i) { return p->content.grid[i].name; }
int              mg_plan_shares(const mg_plan *p, size_t i) { return p->shares[i]; }

const mg_grid *mg_plan_grid(const mg_plan *p, const char *name) {
  int at = mg_content_grid(&p->content, name);
  return at < 0 ? NULL : p->content.grid[at].grid;
}

/* --------------------------------------------------------- the job's total */

/* Only explicit covers may list a group twice. */
static bool may_repeat(const mg_family *f) {
  if (f->form == MG_UNION)
    for (size_t i = 0; i < f->as.parts.n; i++)
      if (may_repeat(f->as.parts.child[i])) return true;
  return f->form == MG_TABLE && f->overlapping;
}

/* Is the group led by one of an earlier family, or of its own family? */
static bool is_led(const mg_plan *p, int i, int64_t group) {
  const mg_family *f = p->content.entry[i].family;
  for (size_t e = 0; p->order[e] != i; e++) {
    int j = p->order[e];
    if (may_share(p, i, j) && mg_group_in(f, group, p->content.entry[j].family, INT64_MAX) >= 0) return true;
  }
  return may_repeat(f) && !p->content.entry[i].choice.unique && mg_group_in(f, group, f, group) >= 0;
}

int64_t mg_plan_led(const mg_plan *p, int i, int64_t round) {
  const mg_family *f = p->content.entry[i].family;
  if (p->shares[i] >= 0 || f->max_size < 2) return 0;
  bool open = f->size < 0 || may_repeat(f); /* does it take a look at every group? */
  for (size_t e = 0; p->order[e] != i && !open; e++)
    open = may_share(p, i, p->order[e]) &&
           mg_groups_within(f, p->content.entry[p->order[e]].family) != MG_NONE;
  if (!open) return round < 0 ? f->count : mg_family_in_round(f, round);
  int64_t led = 0;
  for (int64_t g = 0; g < f->count; g++)
    led += mg_family_size(f, g) > 1 && (round < 0 || mg_family_round(f, g) == round) && !is_led(p, i, g);
  return led;
}

static int64_t singles(const mg_family *f) {
  if (f->size >= 0) return f->size == 1 ? f->count : 0;
  int64_t n = 0;
  for (int64_t g = 0; g < f->count; g++) n += mg_family_size(f, g) == 1;
  return n;
}

mg_status mg_plan_count(const mg_plan *p, mg_plan_counts *out, mg_error *err) {
  if (!p) return MG_USAGE;
  (void)err;
  memset(out, 0, sizeof *out);
  out->families = (int64_t)p->content.nentries;
  for (int i = 0; i < (int)p->content.nentries; i++) {
    const mg_family *f = p->content.entry[i].family;
    int64_t          ones = singles(f);
    out->singles += ones;
    out->groups += f->count - ones;
    out->communicators += mg_plan_led(p, i, -1);
  }
  return MG_OK;
}

mg_status mg_plan_count_rank(const mg_plan *p, int64_t rank, mg_plan_counts *out, mg_error *err) {
  if (!p) return MG_USAGE;
  mg_view   v;
  mg_status s = mg_view_init(&v, p, rank, err);
  if (s) return s;
  memset(out, 0, sizeof *out);
  out->families = (int64_t)p->content.nentries;
  out->communicators = (int64_t)v.ncomms;
  for (size_t i = 0; i < v.nmembers; i++) {
    out->singles += v.member[i].size == 1;
    out->groups += v.member[i].size > 1;
  }
  mg_view_free(&v);
  return MG_OK;
}

/* -------------------------------------------------------------- one rank's view */

static int by_round(const void *a, const void *b) {
  const mg_creation *x = a, *y = b;
  if (x->round != y->round) return x->round < y->round ? -1 : 1;
  return (x->group > y->group) - (x->group < y->group);
}

static int by_entry(const void *a, const void *b) {
  const mg_member *x = a, *y = b;
  if (x->entry != y->entry) return x->entry < y->entry ? -1 : 1;
  return (x->group > y->group) - (x->group < y->group);
}

/* The creation of this view that already makes this very group, or -1. */
static int made_already(const mg_view *v, const mg_plan *p, const mg_creation *c) {
  const mg_entry *e = &p->content.entry[c->entry];
  for (size_t k = 0; k < v->ncomms; k++) {
    const mg_creation *made = &v->comm[k];
    if (made->size == c->size && made->position == c->position && may_share(p, c->entry, made->entry) &&
        mg_same_group(e->family, c->group, p->content.entry[made->entry].family, made->group))
      return (int)k;
  }
  return -1;
}

mg_status mg_view_init(mg_view *v, const mg_plan *p, int64_t rank, mg_error *err) {
  memset(v, 0, sizeof *v);
  if (rank < 0 || rank >= p->content.world)
    return mg_fail(err, MG_USAGE, "rank %" PRId64 " is out of range; ranks are 0 to %" PRId64, rank,
                   p->content.world - 1);
  v->rank = rank;
  int64_t group, position;
  size_t  total = 0;
  for (size_t i = 0; i < p->content.nentries; i++)
    for (int64_t nth = 0; mg_family_locate(p->content.entry[i].family, rank, nth, &group, &position); nth++) total++;
  v->member = malloc((total + 1) * sizeof *v->member);
  v->comm = malloc((total + 1) * sizeof *v->comm);
  mg_creation *here = malloc((total + 1) * sizeof *here); /* this rank's groups of one family */
  if (!v->member || !v->comm || !here) {
    free(here);
    mg_view_free(v);
    return mg_oom(err);
  }
  for (size_t k = 0; k < p->content.nentries; k++) {
    int              i = p->order[k];
    const mg_family *f = p->content.entry[i].family;
    size_t           n = 0;
    for (int64_t nth = 0; mg_family_locate(f, rank, nth, &group, &position); nth++)
      here[n++] = (mg_creation){ i, group, mg_family_round(f, group), position, mg_family_size(f, group) };
    if (n > 1) qsort(here, n, sizeof *here, by_round);
    for (size_t g = 0; g < n; g++) {
      int comm = here[g].size > 1 ? made_already(v, p, &here[g]) : -1;
      if (comm < 0 && here[g].size > 1) {
        comm = (int)v->ncomms;
        v->comm[v->ncomms++] = here[g];
      }
      v->member[v->nmembers++] = (mg_member){ i, here[g].group, here[g].position, here[g].size, comm };
    }
  }
  free(here);
  qsort(v->member, v->nmembers, sizeof *v->member, by_entry);
  return MG_OK;
}

void mg_view_free(mg_view *v) {
  free(v->member);
  free(v->comm);
  memset(v, 0, sizeof *v);
}
