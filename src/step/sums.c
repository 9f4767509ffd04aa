/* SPDX-License-Identifier: MIT
**
** sums.c - calls and bytes of a program by family, and its memory over time. Loops are multiplied,
** not gone through.
*/
#include "step/step.h"

#include <string.h>

static int64_t sums_add(int64_t a, int64_t b) { return b > INT64_MAX - a ? INT64_MAX : a + b; }
static int64_t times(int64_t a, int64_t b) { return a && b > INT64_MAX / a ? INT64_MAX : a * b; }

static void sum_up(const mgrid_step *s, const step_program *p, uint32_t from, uint32_t end,
                   int64_t often, step_sum *sum) {
  for (uint32_t i = from; i < end; i = p->node[i].end) {
    const step_node *n = &p->node[i];
    if (mgrid_step_rows[n->kind].role == STEP_BLOCK)
      sum_up(s, p, i + 1, n->end, n->kind == STEP_LOOP ? times(often, n->number) : often, sum);
    if (n->slot < 0) continue;
    step_sum *to = &sum[s->slot[n->slot].entry];
    to->calls = sums_add(to->calls, often);
    to->bytes = sums_add(to->bytes, times(often, n->bytes));
  }
}

void mgrid_step_sums(const mgrid_step *s, const step_program *p, step_sum *sum) {
  memset(sum, 0, s->plan->content.nentries * sizeof *sum);
  sum_up(s, p, 0, (uint32_t)p->n, 1, sum);
}

int64_t mgrid_step_total(const mgrid_step *s) {
  int64_t total = 0;
  for (size_t i = 0; i < s->nclasses; i++)
    total = sums_add(total, times(s->program[s->class[i].program].calls, s->class[i].ranks));
  return total;
}

/* ------------------------------------------------------------------- memory */

typedef struct memory {
  const step_program *p;
  mgrid_budget *budget;
  step_memory now, most;        /* now.peak: the bytes in use; now.at: the last mark */
  int64_t last[STEP_NAMED_MAX]; /* bytes of the last allocation of a name */
} memory;

static size_t index_of(memory *m, uint32_t name) {
  size_t i = 0;
  while (i < m->now.n && m->now.name[i] != name) i++;
  if (i == STEP_NAMED_MAX) return i - 1; /* the rest is under one name */
  if (i == m->now.n) m->now.name[m->now.n++] = name;
  return i;
}

static void sums_change(memory *m, size_t i, int64_t by) {
  m->now.bytes[i] = by > 0 ? sums_add(m->now.bytes[i], by) : m->now.bytes[i] + by;
  m->now.peak = by > 0 ? sums_add(m->now.peak, by) : m->now.peak + by;
  if (m->now.peak > m->most.peak) m->most = m->now;
}

/* A loop that keeps memory from iteration to iteration has its most in the last one, one that frees
** some in the first. */
static void go_through(memory *m, uint32_t from, uint32_t end) {
  for (uint32_t i = from; i < end && mgrid_spend(m->budget, 1); i = m->p->node[i].end) {
    const step_node *n = &m->p->node[i];
    if (n->kind == STEP_MARK) m->now.at = n->name;
    if (n->kind == STEP_ALLOC) {
      size_t k = index_of(m, n->name);
      m->last[k] = n->bytes;
      sums_change(m, k, n->bytes);
    } else if (n->kind == STEP_FREE) {
      size_t k = index_of(m, n->name);
      int64_t has = m->now.bytes[k];
      sums_change(m, k, -(m->last[k] < has ? m->last[k] : has));
    } else if (n->kind == STEP_LOOP) {
      step_memory before = m->now;
      go_through(m, i + 1, n->end);
      for (size_t k = 0; k < m->now.n && n->number > 2; k++) {
        int64_t by = m->now.bytes[k] - before.bytes[k];
        if (by > 0) sums_change(m, k, times(by, n->number - 2));
        if (by < 0)
          sums_change(m, k,
                      times(-by, n->number - 2) > m->now.bytes[k] ? -m->now.bytes[k]
                                                                  : by * (n->number - 2));
      }
      if (n->number > 1) go_through(m, i + 1, n->end);
    }
  }
}

mgrid_status mgrid_step_memory(const mgrid_step *s, step_memory *out, mgrid_error *err) {
  step_budget b;
  bool *seen = calloc(s->nprograms + 1, sizeof *seen);
  memset(out, 0, sizeof *out);
  out->rank = -1;
  if (!seen) return mgrid_oom(err);
  mgrid_step_budget_begin(&b, &s->limits, "the memory of the step");
  for (size_t i = 0; i < s->nclasses; i++) { /* the first class of a program has its lowest rank */
    const step_program *p = &s->program[s->class[i].program];
    memory m = { .p = p, .budget = &b.work };
    if (seen[s->class[i].program]) continue;
    seen[s->class[i].program] = true;
    go_through(&m, 0, (uint32_t)p->n);
    if (m.most.peak <= out->peak) continue;
    *out = m.most;
    out->rank = s->class[i].first;
  }
  free(seen);
  return b.work.exhausted ? mgrid_step_budget_spent(&b, err) : MGRID_OK;
}
