/* SPDX-License-Identifier: MIT
**
** cost.c - GPU memory of the communicators of a plan.
*/
#include "plan/plan.h"

#include <string.h>

/* A family that names no backend may be made by any: count the one that takes most memory. */
static void add(const mgrid_entry *e, int64_t size, int64_t times, mgrid_gpu_memory *out) {
  int64_t created = 0, first_use = 0;
  for (const mgrid_descriptor *d = mgrid_backends; d->name && size >= 2; d++) {
    int64_t one = 0, more = 0;
    if (!d->gpu_memory || (e->choice->backend && e->choice->backend != d)) continue;
    d->gpu_memory(&e->choice->nccl, size, &one, &more);
    if (one + more > created + first_use) created = one, first_use = more;
  }
  out->communicators += created > 0 ? times : 0;
  out->created += times * created;
  out->first_use += times * first_use;
}

mgrid_status mgrid_plan_gpu_memory(const mgrid_plan *p, int64_t rank, mgrid_gpu_memory *out, mgrid_error *err) {
  if (!p) return MGRID_USAGE;
  mgrid_gpu_memory m = MGRID_GPU_MEMORY_INIT;
  mgrid_view       v = { 0 };
  mgrid_status     s = mgrid_struct_check(out, sizeof m, "mgrid_gpu_memory", err);
  if (!s && rank >= 0) s = mgrid_view_init(&v, p, rank, err);
  if (s) return s;
  for (size_t i = 0; i < v.ncomms; i++) add(&p->content.entry[v.comm[i].entry], v.comm[i].size, 1, &m);
  mgrid_view_free(&v);
  for (size_t i = 0; rank < 0 && i < p->content.nentries;
       i++) { /* bound for any rank: it is in at most one group of each round */
    const mgrid_entry *e = &p->content.entry[i];
    if (p->shares[i] < 0 && !e->choice->none) add(e, e->family->max_size, mgrid_family_rounds(e->family), &m);
  }
  mgrid_struct_write(out, &m, sizeof m);
  return MGRID_OK;
}
