/* SPDX-License-Identifier: MIT
**
** cost.c - GPU memory of the communicators of a plan.
*/
#include "plan/plan.h"

/* The fields of a family, with what the environment of the job puts in their place. */
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

/* A family that names no backend may be made by any: count the one that takes most memory. */
void mgrid_entry_demand(const mgrid_entry *e, int64_t size, int64_t local, const mgrid_site *site, mgrid_demand *out) {
  const mgrid_nccl_values v = values_at(e, site);
  *out = (mgrid_demand){ 0 };
  for (const mgrid_descriptor *d = mgrid_backends; d->name && size >= 2; d++) {
    mgrid_demand one = { 0 };
    if (!d->demand || (e->choice->backend && e->choice->backend != d)) continue;
    d->demand(&v, size, local, site->nvls, &one);
    if (one.created + one.ring > out->created + out->ring) *out = one;
  }
}

static void add(const mgrid_entry *e, int64_t size, int64_t times, const mgrid_site *site, mgrid_gpu_memory *out) {
  mgrid_demand d;
  mgrid_entry_demand(e, size, 1, site, &d); /* the sizes here are the same wherever the ranks are */
  out->communicators += d.created > 0 ? times : 0;
  out->created += times * d.created;
  out->first_use += times * d.ring;
}

/* What a rank may have at most, that lies within the bounds of the same families as `at`. */
static mgrid_gpu_memory at_rank(const mgrid_plan *p, int64_t at, const mgrid_site *site) {
  mgrid_gpu_memory m = MGRID_GPU_MEMORY_INIT;
  for (size_t i = 0; i < p->content.nentries; i++) { /* a rank is in at most one group of each round */
    const mgrid_entry  *e = &p->content.entry[i];
    const mgrid_family *f = e->family;
    if (p->shares[i] < 0 && !e->choice->none && f->low <= at && at <= f->high)
      add(e, f->max_size, mgrid_family_rounds(f), site, &m);
  }
  return m;
}

/* Families on ranks apart from each other do not add up: the most is where one of them begins. Of very many families
** all are added. */
void mgrid_plan_memory_bound(const mgrid_plan *p, const mgrid_site *site, mgrid_gpu_memory *out) {
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
    if (m.communicators > most.communicators) most.communicators = m.communicators;
    if (m.created > most.created) most.created = m.created;
    if (m.first_use > most.first_use) most.first_use = m.first_use;
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
