/* SPDX-License-Identifier: MIT
**
** cost.c - what the communicators of a plan take of a GPU.
*/
#include "plan/nccl.h"
#include "plan/plan.h"

#include <string.h>

static mgrid_status add(const mgrid_entry *e, int64_t size, int64_t times, mgrid_gpu_memory *out, mgrid_error *err) {
  mgrid_nccl_values v;
  if (size < 2 || strcmp(e->choice.backend, "mpi") == 0) return MGRID_OK;
  mgrid_status s = mgrid_nccl_read(e->choice.nccl, &v, err);
  if (s) return s;
  out->communicators += times;
  out->created += times * mgrid_nccl_memory(&v, size);
  out->first_use += times * mgrid_nccl_buffers(&v, size);
  return MGRID_OK;
}

mgrid_status mgrid_plan_gpu_memory(const mgrid_plan *p, int64_t rank, mgrid_gpu_memory *out, mgrid_error *err) {
  if (!p) return MGRID_USAGE;
  mgrid_status s = MGRID_OK;
  memset(out, 0, sizeof *out);
  if (rank >= 0) {
    mgrid_view v;
    s = mgrid_view_init(&v, p, rank, err);
    for (size_t i = 0; i < v.ncomms && !s; i++)
      s = add(&p->content.entry[v.comm[i].entry], v.comm[i].size, 1, out, err);
    mgrid_view_free(&v);
    return s;
  }
  for (size_t i = 0; i < p->content.nentries && !s; i++) { /* in each round a rank is in one group at most */
    const mgrid_entry *e = &p->content.entry[i];
    if (p->shares[i] < 0) s = add(e, e->family->max_size, mgrid_family_rounds(e->family), out, err);
  }
  return s;
}
