/* SPDX-License-Identifier: MIT
**
** sends.c - what a step sends, as traffic of families: the mean of all members of a family's
** groups.
*/
#include "step/step.h"

#include <stdlib.h>

/* The traffic that stands for each operation; a gather or a scatter goes through the group as a
** broadcast does. Receives are the other side of sends. A sendrecv both ways lies on every edge of
** a ring, and so does an all_gather. */
static const char *const as[STEP_KINDS] = {
  [STEP_ALL_REDUCE] = "all_reduce",
  [STEP_ALL_GATHER] = "all_gather",
  [STEP_REDUCE_SCATTER] = "reduce_scatter",
  [STEP_ALL_TO_ALL] = "all_to_all",
  [STEP_BROADCAST] = "broadcast",
  [STEP_REDUCE] = "reduce",
  [STEP_GATHER] = "broadcast",
  [STEP_SCATTER] = "broadcast",
  [STEP_SEND] = "send",
  [STEP_SENDRECV] = "all_gather",
};

typedef struct summing {
  const mgrid_step *s;
  const step_program *p;
  double (*sum)[STEP_KINDS]; /* [entries] of the plan: bytes of all ranks */
} summing;

/* Add a part of a program, `often` times. `ring`: the sends are those of a sendrecv both ways. */
static void sends_add(const summing *x, uint32_t from, uint32_t end, double often, bool ring) {
  for (uint32_t i = from; i < end; i = x->p->node[i].end) {
    const step_node *n = &x->p->node[i];
    bool both = n->kind == STEP_SENDRECV && i + 2 < n->end;
    if (mgrid_step_rows[n->kind].role == STEP_BLOCK)
      sends_add(x, i + 1, n->end, n->kind == STEP_LOOP ? often * (double)n->number : often, both);
    else if (n->slot >= 0 && as[n->kind])
      x->sum[x->s->slot[n->slot].entry][ring && n->kind == STEP_SEND ? STEP_SENDRECV : n->kind] +=
          often * (double)n->bytes;
  }
}

/* Append "tp = 12 B all_reduce + 3 B all_gather". Each edge of a chain has all that its two members
** send over it, and a ring of n members puts (n - 1) / n of an all_gather on each edge. */
static void put_family(const mgrid_entry *e, const double sum[STEP_KINDS], mgrid_text *t) {
  double members = (double)e->family->total, groups = (double)e->family->count;
  bool some = false;
  for (int k = 0; k < STEP_KINDS; k++) {
    double by = k == STEP_SEND ? members - groups : k == STEP_SENDRECV ? members - groups : members;
    if (!(sum[k] > 0) || !(by > 0)) continue;
    double bytes = sum[k] / by;
    if (!some) mgrid_text_add(t, "%s%s =", t->len ? "; " : "", e->name);
    mgrid_text_add(t, "%s %.17g B %s", some ? " +" : "", bytes < 9e17 ? bytes : 9e17, as[k]);
    some = true;
  }
}

mgrid_status mgrid_step_sends(const mgrid_step *s, mgrid_text *t, mgrid_error *err) {
  size_t entries = s->plan->content.nentries;
  summing x = { s, NULL, calloc(entries + 1, sizeof *x.sum) };
  if (!x.sum) return mgrid_oom(err);
  for (size_t i = 0; i < s->nprograms; i++) {
    double ranks = 0;
    for (size_t k = 0; k < s->nclasses; k++)
      if ((size_t)s->class[k].program == i) ranks += (double)s->class[k].ranks;
    x.p = &s->program[i];
    sends_add(&x, 0, (uint32_t)x.p->n, ranks, false);
  }
  for (size_t i = 0; i < entries; i++) put_family(&s->plan->content.entry[i], x.sum[i], t);
  free(x.sum);
  return t->failed ? mgrid_oom(err) : MGRID_OK;
}
