/* SPDX-License-Identifier: MIT
**
** reduce.c - gradients summed over the ranks that share a parameter, while backward goes on.
**
** The policy gradient_family chooses the groups: dense parameters over dp x cp, those of an expert over the
** ranks that have the same expert (tokens of other ranks were sent to it). Gradients go in buckets, made from the last
** parameter to the first, which is the order in which the backward pass of the last microbatch finishes them. A bucket
** starts when all its gradients are final, so all ranks of a group start the same buckets in the same order. The embedding is
** in two stages, whose gradients are added last.
*/
#include "model.h"

#include <stdlib.h>
#include <string.h>

static size_t values(const param *p) { return (size_t)p->nrows * (size_t)p->ncols; }

/* Add a bucket to the list, which is in the order of their first parameters, the last one first. */
static void add(model *m, bucket b) {
  int i = m->nbuckets++;
  for (; i > 0 && m->buckets[i - 1].from < b.from; i--) m->buckets[i] = m->buckets[i - 1];
  m->buckets[i] = b;
}

/* A bucket ends before the parameter that would make it too large. */
static void cut_family(model *m, group *g) {
  size_t most = g->bucket / sizeof(double), n = 0;
  int    to = m->nparams, from = to;
  if (g->size <= 1) return;
  for (int i = m->nparams - 1; i >= 0; i--) {
    const param *p = &m->params[i];
    if (p->sum != g) continue;
    if (n && n + values(p) > most) {
      add(m, (bucket){ .sum = g, .from = from, .to = to, .n = n, .request = MPI_REQUEST_NULL });
      to = from, n = 0;
    }
    n += values(p), from = i;
  }
  if (n) add(m, (bucket){ .sum = g, .from = from, .to = to, .n = n, .request = MPI_REQUEST_NULL });
}

void gradients_cut(model *m) {
  m->buckets = room((size_t)m->nparams, sizeof *m->buckets);
  cut_family(m, &m->l.dp_cp);
  cut_family(m, &m->l.expert_data);
}

static void start(model *m, bucket *b) {
  double *x = b->values = room(b->n, sizeof *x);
  for (int i = b->from; i < b->to; i++) {
    const param *p = &m->params[i];
    for (size_t k = 0; p->sum == b->sum && k < values(p); k++) *x++ = p->g[k];
  }
  b->request = group_sum_start(b->sum, b->values, (int)b->n);
}

static void finish(model *m, bucket *b) {
  const double *x = b->values;
  group_finish(b->sum, &b->request);
  for (int i = b->from; i < b->to; i++) {
    param *p = &m->params[i];
    for (size_t k = 0; p->sum == b->sum && k < values(p); k++) p->g[k] = (real)*x++;
  }
  free(b->values);
  b->values = NULL;
}

void gradients_final(model *m, const param *from) {
  const int first = (int)(from - m->params);
  if (first == 0) fault_at("bucket");
  for (; m->started < m->nbuckets && m->buckets[m->started].from >= first; m->started++)
    start(m, &m->buckets[m->started]);
  for (int i = 0; i < m->started; i++) group_poke(m->buckets[i].sum, &m->buckets[i].request);
}

void gradients_sum(model *m) {
  for (int i = 0; i < m->nbuckets; i++) finish(m, &m->buckets[i]);
  m->started = 0;
  fault_at("embedding");
  if (m->l.embedding.size > 1) group_sum(&m->l.embedding, m->embedding->g, (int)values(m->embedding));
}

void gradients_forget(model *m) {
  for (int i = 0; i < m->nbuckets; i++) {
    if (group_forget(&m->buckets[i].request)) free(m->buckets[i].values); /* else MPI may still write there */
    m->buckets[i].values = NULL;
  }
}
