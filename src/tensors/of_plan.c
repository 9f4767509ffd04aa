/* SPDX-License-Identifier: MIT
**
** of_plan.c - the tensors of a plan, and what a rank holds of them.
*/
#include "plan/plan.h"

size_t mgrid_plan_ntensors(const mgrid_plan *p) { return p ? p->content.ntensors : 0; }

const char *mgrid_plan_tensor_name(const mgrid_plan *p, size_t i) {
  return p && i < p->content.ntensors ? p->content.tensor[i].name : NULL;
}

const mgrid_tensor *mgrid_plan_tensor(const mgrid_plan *p, const char *name) {
  int at = p && name ? mgrid_content_tensor(&p->content, name) : -1;
  return at < 0 ? NULL : p->content.tensor[at].tensor;
}

const mgrid_tensor *mgrid_plan_require_tensor(const mgrid_plan *p, const char *name, mgrid_error *err) {
  const mgrid_tensor *t = mgrid_plan_tensor(p, name);
  const char         *known[256] = { NULL };
  char                tail[512];
  size_t              n = 0;
  if (t || mgrid_lacks(name, "the name of the tensor", err)) return t;
  for (; n < p->content.ntensors && n < 256; n++) known[n] = p->content.tensor[n].name;
  mgrid_suggest(tail, sizeof tail, name, known, n);
  mgrid_fail(err, MGRID_UNKNOWN_NAME, "unknown tensor '%s'%s", name, n ? tail : "; the plan has none");
  return NULL;
}

void mgrid_plan_hollow(const mgrid_plan *p, bool listed, mgrid_text *out) {
  for (size_t i = 0; i < p->content.ntensors; i++) {
    const mgrid_tensor *t = p->content.tensor[i].tensor;
    for (size_t k = 0; k < t->naxes; k++) {
      if (!listed && mgrid_slicing_listed(&t->axis[k])) continue;
      if (mgrid_axis_hollow(t, k, p->content.tensor[i].name, out)) mgrid_text_str(out, "\n");
    }
  }
}

mgrid_status mgrid_tensor_local(const mgrid_plan *p, const char *name, int64_t rank, mgrid_tensor_part *out,
                                mgrid_error *err) {
  mgrid_tensor_part part;
  if (!p) return MGRID_USAGE;
  mgrid_status        s = mgrid_struct_check(out, sizeof part, "mgrid_tensor_part", err);
  const mgrid_tensor *t = s ? NULL : mgrid_plan_require_tensor(p, name, err);
  if (!s && !t) s = name ? MGRID_UNKNOWN_NAME : MGRID_USAGE;
  if (!s) s = mgrid_check_rank(rank, p->content.world, err);
  if (s) return s;
  mgrid_tensor_part_of(t, rank, &part);
  mgrid_struct_write(out, &part, sizeof part);
  return MGRID_OK;
}

int64_t mgrid_tensor_runs(const mgrid_plan *p, const char *name, int64_t rank, size_t axis, size_t cap, mgrid_run *runs,
                          mgrid_error *err) {
  const mgrid_tensor *t = p ? mgrid_plan_require_tensor(p, name, err) : NULL;
  mgrid_seat          at;
  mgrid_run           run;
  int64_t             n = 0;
  if (!t || mgrid_check_rank(rank, p->content.world, err) || mgrid_lacks_list(cap, runs, "runs", err)) return -1;
  if (axis >= t->naxes) {
    mgrid_fail(err, MGRID_OUT_OF_RANGE, "tensor '%s' has %zu axes, no axis %zu", name, t->naxes, axis);
    return -1;
  }
  if (!mgrid_tensor_seat(t, rank, &at)) return 0;
  for (mgrid_walk w = mgrid_walk_begin(&t->axis[axis], at.piece[axis]); mgrid_walk_next(&w, &run); n++)
    if ((size_t)n < cap) runs[n] = run;
  return n;
}
