/* SPDX-License-Identifier: MIT
**
** cost.c - GPU memory of the communicators of a plan.
*/
#include "families/classes.h"
#include "plan/plan.h"

#include <stdlib.h>

/* Return the fields of a family; the job's environment overrides them. */
static mgrid_nccl_values values_at(const mgrid_entry *e, const mgrid_site *site) {
  mgrid_nccl_values v = e->choice->nccl;
  const struct {
    int     field;
    int64_t value;
  } set[] = { { MGRID_NCCL_MIN_CTAS, site->min_ctas }, { MGRID_NCCL_MAX_CTAS, site->max_ctas } };
  for (int i = 0; i < 2; i++)
    if (set[i].value) v.given[set[i].field] = true, v.number[set[i].field] = set[i].value;
  return v;
}

/* A family that names no backend may be made by any of them: count the one that takes the most memory. */
void mgrid_entry_demand(const mgrid_entry *e, int64_t size, int64_t local, const mgrid_site *site, mgrid_demand *out) {
  const mgrid_nccl_values v = values_at(e, site);
  *out = (mgrid_demand){ 0 };
  for (const mgrid_descriptor *d = mgrid_backends; d->name && size >= 2; d++) {
    mgrid_demand one = { 0 };
    if (!d->demand || (e->choice->backend && e->choice->backend != d)) continue;
    d->demand(&v, size, local, !site->no_nvls, &one);
    if (one.created + one.ring > out->created + out->ring) *out = one;
  }
}

static void add(const mgrid_entry *e, int64_t size, int64_t times, const mgrid_site *site, mgrid_gpu_memory *out) {
  mgrid_demand d;
  mgrid_entry_demand(e, size, 1, site, &d); /* these sizes are the same wherever the ranks are */
  out->communicators += d.created > 0 ? times : 0;
  out->created += times * d.created;
  out->first_use += times * d.ring;
}

/* Return an upper bound for the ranks that lie within the bounds of the same families as `rank`. */
static mgrid_gpu_memory at_rank(const mgrid_plan *p, int64_t rank, const mgrid_site *site) {
  mgrid_gpu_memory m = MGRID_GPU_MEMORY_INIT;
  for (size_t i = 0; i < p->content.nentries; i++) { /* a rank is in at most one group of each round */
    const mgrid_entry  *e = &p->content.entry[i];
    const mgrid_family *f = e->family;
    if (p->shares[i] < 0 && !e->choice->none && f->low <= rank && rank <= f->high)
      add(e, f->max_size, mgrid_family_rounds(f), site, &m);
  }
  return m;
}

static void take_most(mgrid_gpu_memory *most, const mgrid_gpu_memory *m) {
  if (m->communicators > most->communicators) most->communicators = m->communicators;
  if (m->created > most->created) most->created = m->created;
  if (m->first_use > most->first_use) most->first_use = m->first_use;
}

/* ----------------------------------------------------------- kinds of ranks */

typedef struct kinds {
  const mgrid_plan *p;
  const mgrid_site *site;
  mgrid_gpu_memory  most;
  int               seen;
  bool              failed;
} kinds;

/* Take the memory of one rank of a kind, which all ranks of the kind need. */
static bool look_at_kind(void *ud, int64_t rank, int64_t weight, int64_t in) {
  enum { KINDS_MAX = 1024 };
  kinds           *k = ud;
  mgrid_error      err = MGRID_ERROR_INIT;
  mgrid_gpu_memory m = MGRID_GPU_MEMORY_INIT;
  mgrid_view       v;
  (void)weight;
  if (in < 0) return true; /* in no group */
  k->failed = ++k->seen > KINDS_MAX || mgrid_view_init(&v, k->p, rank, &err);
  mgrid_error_clear(&err);
  if (k->failed) return false;
  for (size_t i = 0; i < v.ncomms; i++) add(&k->p->content.entry[v.comm[i].entry], v.comm[i].size, 1, k->site, &m);
  mgrid_view_free(&v);
  take_most(&k->most, &m);
  return true;
}

/* Add the sets of a class: all its members, which are in one group of it each; or with `positions` those at each
** position, which also show whether two classes have the same group there. */
static bool add_class(const mgrid_family *f, const mgrid_class *c, bool positions, mgrid_sets *sets) {
  enum { LISTED = 256 };
  mgrid_points *set = NULL;
  if (c->size == 1) return true;
  if (c->ruled && !positions) {
    if (!(set = mgrid_sets_add(sets))) return false;
    bool told = mgrid_class_starts(c, set);
    for (int i = 0; i < c->nshape && told; i++) told = mgrid_points_push(set, c->shape[i].size, c->shape[i].stride);
    if (told && mgrid_points_apart(set)) return true;
    sets->n--;
  }
  for (int64_t p = 0; p < c->size; p++)
    if (c->size > LISTED || !mgrid_class_position(f, c, p, sets)) return false;
  return true;
}

static bool add_entry(const mgrid_plan *p, int i, mgrid_sets *sets) {
  bool          compared = false; /* whether some of its groups are groups of another entry */
  mgrid_classes classes = { 0 };
  for (size_t e = 0, later = 0; e < p->content.nentries && !compared; e++) {
    int j = p->order[e];
    if (j == i)
      later = 1;
    else
      compared = p->shares[j] < 0 && (later ? mgrid_plan_rivals(p, j, i) : mgrid_plan_rivals(p, i, j));
  }
  const mgrid_family *f = p->content.entry[i].family;
  bool                told = mgrid_classes_of(f, &classes);
  for (size_t k = 0; k < classes.n && told; k++) told = add_class(f, &classes.at[k], compared, sets);
  free(classes.at);
  return told;
}

static bool by_kinds(const mgrid_plan *p, const mgrid_site *site, mgrid_gpu_memory *most) {
  enum { ENTRIES = 256 }; /* entries that are compared with each other */
  kinds        k = { .p = p, .site = site, .most = MGRID_GPU_MEMORY_INIT };
  mgrid_sets   sets = { 0 };
  mgrid_points world = { .offset = 0 };
  bool         told = p->content.nentries <= ENTRIES && mgrid_points_push(&world, p->content.world, 1);
  for (size_t i = 0; i < p->content.nentries && told; i++)
    if (p->shares[i] < 0 && !p->content.entry[i].choice->none) told = add_entry(p, (int)i, &sets);
  told = told && mgrid_sets_each(&world, &sets, true, look_at_kind, &k, NULL) && !k.failed;
  free(sets.at);
  *most = k.most;
  return told;
}

/* ------------------------------------------------------------------- bounds */

/* Add an upper bound. Families on separate ranks do not add up, so the most is where one of them starts. With very many
** families all are added. */
static void bound(const mgrid_plan *p, const mgrid_site *site, mgrid_gpu_memory *out) {
  enum { STARTS = 64 };
  int64_t start[STARTS];
  int     n = 0;
  for (size_t i = 0; i < p->content.nentries && n <= STARTS; i++) {
    const mgrid_family *f = p->content.entry[i].family;
    bool                known = f->low > f->high;
    for (int k = 0; k < n && !known; k++) known = start[k] == f->low;
    if (known) continue;
    if (n < STARTS) start[n] = f->low;
    n++;
  }
  if (n > STARTS) {
    for (size_t i = 0; i < p->content.nentries; i++) {
      const mgrid_entry *e = &p->content.entry[i];
      if (p->shares[i] < 0 && !e->choice->none) add(e, e->family->max_size, mgrid_family_rounds(e->family), site, out);
    }
    return;
  }
  mgrid_gpu_memory most = MGRID_GPU_MEMORY_INIT;
  for (int k = 0; k < n; k++) {
    mgrid_gpu_memory m = at_rank(p, start[k], site);
    take_most(&most, &m);
  }
  out->communicators += most.communicators, out->created += most.created, out->first_use += most.first_use;
}

void mgrid_plan_memory_bound(const mgrid_plan *p, const mgrid_site *site, mgrid_gpu_memory *out) {
  mgrid_gpu_memory most;
  if (!by_kinds(p, site, &most)) {
    bound(p, site, out);
    return;
  }
  out->communicators += most.communicators, out->created += most.created, out->first_use += most.first_use;
}

mgrid_status mgrid_plan_gpu_memory(const mgrid_plan *p, int64_t rank, mgrid_gpu_memory *out, mgrid_error *err) {
  if (!p) return MGRID_USAGE;
  const mgrid_site site = MGRID_SITE_INIT;
  mgrid_gpu_memory m = MGRID_GPU_MEMORY_INIT;
  mgrid_view       v = { 0 };
  mgrid_status     s = mgrid_struct_check(out, sizeof m, "mgrid_gpu_memory", err);
  if (!s && rank >= 0) s = mgrid_view_init(&v, p, rank, err);
  if (s) return s;
  for (size_t i = 0; i < v.ncomms; i++) add(&p->content.entry[v.comm[i].entry], v.comm[i].size, 1, &site, &m);
  mgrid_view_free(&v);
  if (rank < 0) mgrid_plan_memory_bound(p, &site, &m);
  mgrid_struct_write(out, &m, sizeof m);
  return MGRID_OK;
}
