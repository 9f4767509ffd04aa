/* SPDX-License-Identifier: MIT
**
** optimizer.c - gradients summed over the ranks that share a parameter, then AdamW.
**
** The policy gradient_family chooses the groups: dense parameters over dp x cp, those of an expert over the
** ranks that have the same expert (tokens of other ranks were sent to it). The embedding is in two stages,
** whose gradients are added last.
*/
#include "model.h"

#include <math.h>
#include <stdlib.h>

static size_t values(const param *p) { return (size_t)p->nrows * (size_t)p->ncols; }

/* Sum the gradients of parameters [from, to) of one family in one call. */
static void reduce_bucket(model *m, const group *g, int from, int to, double *bucket) {
  size_t n = 0;
  for (int round = 0; round < 2; round++) {
    n = 0;
    for (int i = from; i < to; i++) {
      param *p = &m->params[i];
      if (p->sum != g) continue;
      for (size_t k = 0; k < values(p); k++, n++) {
        if (round == 0)
          bucket[n] = p->g[k];
        else
          p->g[k] = (real)bucket[n];
      }
    }
    if (round == 0) group_sum_double(g, bucket, (int)n);
  }
}

/* A bucket ends before the parameter that would make it too large. */
static void reduce_family(model *m, const group *g) {
  size_t  most = g->bucket / sizeof(double), n = 0;
  double *bucket = room(m->nvalues, sizeof *bucket);
  int     from = 0;
  if (g->size <= 1) from = m->nparams;
  for (int i = from; i < m->nparams; i++) {
    const param *p = &m->params[i];
    if (p->sum != g) continue;
    if (n && n + values(p) > most) {
      reduce_bucket(m, g, from, i, bucket);
      from = i, n = 0;
    }
    n += values(p);
  }
  fault_at("bucket");
  if (n) reduce_bucket(m, g, from, m->nparams, bucket);
  free(bucket);
}

void optimizer_reduce(model *m) {
  reduce_family(m, &m->l.dp_cp);
  reduce_family(m, &m->l.expert_data);
  fault_at("embedding");
  if (m->l.embedding.size > 1) group_sum(&m->l.embedding, m->embedding->g, (int)values(m->embedding));
}

void optimizer_update(model *m, int64_t step, double rate) {
  const double keep1 = 0.9, keep2 = 0.99, small = 1e-8, decay = 0.01;
  double       full1 = 1 - pow(keep1, (double)step + 1), full2 = 1 - pow(keep2, (double)step + 1);
  for (int i = 0; i < m->nparams; i++) {
    param *p = &m->params[i];
    if (i == m->nparams / 2) fault_at("update");
    for (size_t k = 0; k < values(p); k++) {
      double g = p->g[k], w = p->w[k];
      p->m[k] = (real)(keep1 * p->m[k] + (1 - keep1) * g);
      p->v[k] = (real)(keep2 * p->v[k] + (1 - keep2) * g * g);
      if (p->rows > 1) w -= rate * decay * w; /* matrices decay, norms do not */
      p->w[k] = (real)(w - rate * (p->m[k] / full1) / (sqrt(p->v[k] / full2) + small));
    }
  }
}
