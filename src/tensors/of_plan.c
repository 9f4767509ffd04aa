/* SPDX-License-Identifier: MIT
**
** of_plan.c - the tensors of a plan, and what a rank holds of them.
*/
#include "tensors/of_plan.h"

/* ---------------------------------------------- the kind, for topology and plan */

static int64_t world_of(const void *x) { return ((const mgrid_tensor *)x)->grid->window.world; }
static void   *ref(const void *x) { return mgrid_tensor_ref(x); }
static void    free_tensor(void *x) { mgrid_tensor_free(x); }
static size_t  held(const void *x) { return mgrid_tensor_held(x); }
static void    text(const void *x, mgrid_text *t) { mgrid_tensor_text(x, t); }
static void    json(const void *x, int64_t rank, struct mgrid_json *w) { mgrid_tensor_json(x, rank, w); }

/* Append a line for each axis whose cut leaves ranks without any element, with the ranks and the nearest size. */
static void notes(const void *x, const char *name, bool listed, mgrid_text *t) {
  const mgrid_tensor *tensor = x;
  for (size_t i = 0; i < tensor->naxes; i++) {
    if (!listed && mgrid_slicing_listed(&tensor->axis[i])) continue;
    if (mgrid_axis_hollow(tensor, i, name, t)) mgrid_text_str(t, "\n");
  }
}

const mgrid_item_kind mgrid_tensor_kind = {
  .name = "tensor",
  .names = "tensors",
  .world = world_of,
  .ref = ref,
  .free = free_tensor,
  .held = held,
  .text = text,
  .rule = mgrid_tensor_rule,
  .json = json,
  .notes = notes,
};

mgrid_status mgrid_topology_add_tensor(mgrid_topology *t, const char *name, const mgrid_tensor *x, mgrid_error *err) {
  return mgrid_topology_add_item(t, name, &mgrid_tensor_kind, x, err);
}

/* ----------------------------------------------------------------- questions */

size_t mgrid_plan_ntensors(const mgrid_plan *p) { return p ? mgrid_content_items(&p->content, &mgrid_tensor_kind) : 0; }

const char *mgrid_plan_tensor_name(const mgrid_plan *p, size_t i) {
  const mgrid_item *item = p ? mgrid_content_nth(&p->content, &mgrid_tensor_kind, i) : NULL;
  return item ? item->name : NULL;
}

const mgrid_tensor *mgrid_plan_tensor(const mgrid_plan *p, const char *name) {
  const mgrid_item *item = p && name ? mgrid_content_item(&p->content, &mgrid_tensor_kind, name) : NULL;
  return item ? item->x : NULL;
}

const mgrid_tensor *mgrid_plan_require_tensor(const mgrid_plan *p, const char *name, mgrid_error *err) {
  const mgrid_tensor *t = mgrid_plan_tensor(p, name);
  const char         *known[256] = { NULL };
  char                tail[512];
  size_t              n = 0;
  if (t || mgrid_lacks(name, "the name of the tensor", err)) return t;
  while (n < 256 && (known[n] = mgrid_plan_tensor_name(p, n))) n++;
  mgrid_suggest(tail, sizeof tail, name, known, n);
  mgrid_fail(err, MGRID_UNKNOWN_NAME, "unknown tensor '%s'%s", name, n ? tail : "; the plan has none");
  return NULL;
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
