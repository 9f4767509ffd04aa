/* SPDX-License-Identifier: MIT
**
** reduce.c - sum gradients over the ranks that share a parameter, during the backward pass; gather
** weights from their slices.
**
** The policy gradient_family chooses the ranks: dense parameters over dp x cp, those of an expert
** over the ranks that have the same expert (tokens of other ranks were sent to it). Gradients are
** summed in buckets, made from the last parameter to the first: the backward pass of the last
** microbatch ends in this order. A sum starts when all gradients of its bucket are final, so all
** ranks of a group start the same sums in the same order. If ranks share the optimizer's state, a
** reduce-scatter gives each the sum of its slices, and an all-reduce over the ranks with copies of
** these slices follows when the next bucket starts. The embedding is on the first and the last
** stage; its two gradients are summed last.
*/
#include "model.h"

#include <stdlib.h>

static size_t values(const param *p) { return (size_t)p->nrows * (size_t)p->ncols; }

/* Add a bucket to the list, which is in descending order of the first parameter. */
static void add(model *m, bucket b) {
  int i = m->nbuckets++;
  for (; i > 0 && m->buckets[i - 1].from < b.from; i--) m->buckets[i] = m->buckets[i - 1];
  m->buckets[i] = b;
}

/* Cut the parameters that these ranks share into buckets of at most over->bucket bytes; a larger
** parameter has a bucket of its own. */
static void cut_family(model *m, const sharing *over) {
  const bucket none = { .over = over, .to = m->nparams, .request = MPI_REQUEST_NULL };
  bucket b = none;
  size_t n = 0;
  if (over->all->size <= 1) return;
  for (int i = m->nparams - 1; i >= 0; i--) {
    const param *p = &m->params[i];
    if (p->sum != over) continue;
    if (n && n + values(p) > over->bucket / sizeof(double)) {
      add(m, b);
      b = none, b.to = i + 1, n = 0;
    }
    b.from = i, b.each += p->slice, n += values(p);
  }
  if (n) add(m, b);
}

void buckets_cut(model *m) {
  m->buckets = room((size_t)m->nparams, sizeof *m->buckets);
  cut_family(m, &m->dense);
  cut_family(m, &m->expert);
}

void buckets_forget(model *m) {
  for (int i = 0; i < m->nbuckets; i++) {
    /* if the call has not ended, MPI may still write to its memory */
    if (group_forget(&m->buckets[i].request)) free(m->buckets[i].values);
    m->buckets[i].values = NULL;
  }
}

static void fill(bucket *b) {
  b->values = room((size_t)b->over->shard->size * b->each, sizeof *b->values);
}

static void empty(bucket *b) {
  free(b->values);
  b->values = NULL;
}

/* Return the bucket's parameter after p, its first one if p is NULL; NULL if there is none. */
static param *after(model *m, const bucket *b, param *p) {
  for (p = p ? p + 1 : m->params + b->from; p < m->params + b->to; p++)
    if (p->sum == b->over) return p;
  return NULL;
}

/* Return the number of values in the slice that rank i of `shard` has of a parameter; *first: the
** index of the first of them. */
static size_t slice(const param *p, int i, size_t *first) {
  size_t left = values(p), before = (size_t)i * p->slice;
  *first = before < left ? before : left;
  left -= *first;
  return left < p->slice ? left : p->slice;
}

/* ------------------------------------------------------------------ gradients */

static void start(model *m, bucket *b) {
  const group *shard = b->over->shard;
  fill(b);
  for (int i = 0; i < shard->size; i++) {
    double *x = b->values + (size_t)i * b->each;
    for (param *p = NULL; (p = after(m, b, p)); x += p->slice) {
      size_t first, n = slice(p, i, &first);
      for (size_t k = 0; k < n; k++) x[k] = p->g[first + k];
    }
  }
  b->request = shard->size > 1 ? group_scatter_sum_start(shard, b->values, (int)b->each)
                               : group_sum_start(b->over->copies, b->values, (int)b->each);
}

/* If a bucket has slices and copies of them: end the sum over `shard`, start that over `copies`. */
static void go_on(bucket *b) {
  if (b->over->shard->size <= 1 || b->over->copies->size <= 1) return;
  group_finish(b->over->shard, &b->request);
  b->request = group_sum_start(b->over->copies, b->values, (int)b->each);
}

static void finish(model *m, bucket *b) {
  double *x = b->values;
  group_finish(b->over->all, &b->request);
  for (param *p = NULL; (p = after(m, b, p)); x += p->slice)
    for (size_t k = 0; k < p->n; k++) p->g[p->first + k] = (real)x[k];
  empty(b);
}

void gradients_final(model *m, const param *from) {
  const int first = (int)(from - m->params);
  if (first == 0) fault_at("bucket");
  for (; m->started < m->nbuckets && m->buckets[m->started].from >= first; m->started++) {
    if (m->started) go_on(&m->buckets[m->started - 1]);
    start(m, &m->buckets[m->started]);
  }
  for (int i = 0; i < m->started; i++) group_poke(m->buckets[i].over->all, &m->buckets[i].request);
}

void gradients_sum(model *m) {
  if (m->nbuckets) go_on(&m->buckets[m->nbuckets - 1]);
  for (int i = 0; i < m->nbuckets; i++) finish(m, &m->buckets[i]);
  m->started = 0;
  fault_at("embedding");
  if (m->l.embedding.size > 1)
    group_sum(&m->l.embedding, m->embedding->g + m->embedding->first, (int)m->embedding->n);
}

/* -------------------------------------------------------------------- weights */

static void gather(model *m, bucket *b) {
  const group *shard = b->over->shard;
  if (shard->size <= 1) return;
  fill(b);
  real *all = (real *)b->values, *x = all + (size_t)shard->rank * b->each;
  for (param *p = NULL; (p = after(m, b, p)); x += p->slice)
    for (size_t k = 0; k < p->n; k++) x[k] = p->w[p->first + k];
  group_gather(shard, NULL, all, (int)b->each);
  for (int i = 0; i < shard->size; i++) {
    x = all + (size_t)i * b->each;
    for (param *p = NULL; (p = after(m, b, p)); x += p->slice) {
      size_t first, n = slice(p, i, &first);
      for (size_t k = 0; k < n; k++) p->w[first + k] = x[k];
    }
  }
  empty(b);
}

void weights_gather(model *m) {
  const int half = m->nbuckets / 2;
  for (int i = 0; i < half; i++) gather(m, &m->buckets[i]);
  fault_at("gather");
  for (int i = half; i < m->nbuckets; i++) gather(m, &m->buckets[i]);
}
