/* SPDX-License-Identifier: MIT
**
** cost.c - what the communicators of a plan take of a GPU.
*/
#include "plan/nccl.h"
#include "plan/plan.h"

#include <string.h>

static mg_status add(const mg_entry *e, int64_t size, int64_t times, mg_gpu_memory *out, mg_error *err) {
  mg_nccl_values v;
  if (size < 2 || strcmp(e->choice.backend, "mpi") == 0) return MG_OK;
  mg_status s = mg_nccl_read(e->choice.nccl, &v, err);
  if (s) return s;
  out->communicators += times;
  out->created += times * mg_nccl_memory(&v, size);
  out->first_use += times * mg_nccl_buffers(&v, size);
  return MG_OK;
}

mg_status mg_plan_gpu_memory(const mg_plan *p, int64_t rank, mg_gpu_memory *out, mg_error *err) {
  if (!p) return MG_USAGE;
  mg_status s = MG_OK;
  memset(out, 0, sizeof *out);
  if (rank >= 0) {
    mg_view v;
    s = mg_view_init(&v, p, rank, err);
    for (size_t i = 0; i < v.ncomms && !s; i++)
      s = add(&p->content.entry[v.comm[i].entry], v.comm[i].size, 1, out, err);
    mg_view_free(&v);
    return s;
  }
  for (size_t i = 0; i < p->content.nentries && !s; i++) { /* in each round a rank is in one group at most */
    const mg_entry *e = &p->content.entry[i];
    if (p->shares[i] < 0) s = add(e, e->family->max_size, mg_family_rounds(e->family), out, err);
  }
  return s;
}
