/* SPDX-License-Identifier: MIT
**
** attention.c - causal attention, heads cut over tp and positions over cp.
**
** A rank of cp has the queries of its own positions and gathers the keys and values of all
** positions. In the backward pass the gradients of keys and values are summed, and each rank keeps
** those of its own positions. Each row of scores has all keys, so that the result is that of one
** rank.
*/
#include "model.h"

#include <math.h>
#include <string.h>

/* Copy the keys and values of this rank's positions out of rows of q, k and v. */
static void pack(const model *m, const real *qkv, real *kv) {
  int n = m->mine;
  for (int t = 0; t < m->T; t++)
    memcpy(kv + (size_t)t * 2 * n, qkv + (size_t)t * 3 * n + n, 2 * (size_t)n * sizeof *kv);
}

/* Reorder from [cp, b, s, row], by rank, to [b, cp x s, row], by sample, or the other way. */
static void reorder(const model *m, const real *from, real *to, bool by_sample) {
  size_t run = (size_t)m->s * 2 * (size_t)m->mine, cp = (size_t)m->l.cp.size, b = (size_t)m->b;
  for (size_t r = 0; r < cp; r++)
    for (size_t i = 0; i < b; i++) {
      size_t ranks = (r * b + i) * run, samples = (i * cp + r) * run;
      memcpy(to + (by_sample ? samples : ranks), from + (by_sample ? ranks : samples),
             run * sizeof *to);
    }
}

/* Replace the scores of each query by the weights of its keys. */
static void weigh(const model *m, real *chance) {
  int S = m->c.seq;
  for (int i = 0; i < m->s; i++, chance += S) {
    int keys = m->l.cp.rank * m->s + i + 1; /* the query's own position and all before it */
    double top = chance[0], sum = 0;
    for (int j = 1; j < keys; j++) top = chance[j] > top ? chance[j] : top;
    for (int j = 0; j < keys; j++) {
      double e = exp(chance[j] - top);
      chance[j] = (real)e;
      sum += e;
    }
    for (int j = 0; j < keys; j++) chance[j] = (real)(chance[j] / sum);
    for (int j = keys; j < S; j++) chance[j] = 0;
  }
}

/* Where the data of one head of one sample is. */
typedef struct head {
  size_t q, kv, mixed, chance; /* offsets into the arrays of layer_cache */
} head;

static head head_of(const model *m, int i, int h) {
  size_t n = (size_t)m->mine, at = (size_t)h * (n / (size_t)m->heads), b = (size_t)i,
         s = (size_t)m->s, S = (size_t)m->c.seq;
  return (head){ b * s * 3 * n + at, b * S * 2 * n + at, b * s * n + at,
                 (b * (size_t)m->heads + (size_t)h) * s * S };
}

void attention_forward(model *m, layer_params *p, layer_cache *c, real *x) {
  int D = m->c.width, n = m->mine, w = n / m->heads, S = m->c.seq, s = m->s;
  size_t all = (size_t)m->T * (size_t)D;
  real scale = (real)(1 / sqrt(w));
  norm_forward(&p->norm1, &c->norm1, x, m->T, D);
  gemm(false, true, m->T, 3 * n, D, 1, c->norm1.y, D, p->q->w, D, 0, c->qkv, 3 * n);
  if (m->l.cp.size > 1) {
    pack(m, c->qkv, m->b1);
    group_gather(&m->l.cp, m->b1, m->b2, m->T * 2 * n);
    reorder(m, m->b2, c->kv, true);
  } else {
    pack(m, c->qkv, c->kv);
  }
  for (int i = 0; i < m->b; i++)
    for (int h = 0; h < m->heads; h++) {
      head o = head_of(m, i, h);
      real *chance = c->chance + o.chance;
      gemm(false, true, s, S, w, scale, c->qkv + o.q, 3 * n, c->kv + o.kv, 2 * n, 0, chance, S);
      weigh(m, chance);
      gemm(false, false, s, w, S, 1, chance, S, c->kv + o.kv + n, 2 * n, 0, c->mixed + o.mixed, n);
    }
  linear_forward(p->out, c->mixed, m->a, m->T);
  group_sum(&m->l.tp, m->a, (int)all);
  for (size_t i = 0; i < all; i++) x[i] += m->a[i];
}

void attention_backward(model *m, layer_params *p, layer_cache *c, real *d) {
  int D = m->c.width, n = m->mine, w = n / m->heads, S = m->c.seq, s = m->s;
  real scale = (real)(1 / sqrt(w));
  real *dmixed = m->b1, *dqkv = m->b2, *dkv = m->b3, *dchance = m->a;
  linear_backward(p->out, c->mixed, d, dmixed, m->T);
  for (int i = 0; i < m->b; i++)
    for (int h = 0; h < m->heads; h++) {
      head o = head_of(m, i, h);
      const real *chance = c->chance + o.chance;
      gemm(false, true, s, S, w, 1, dmixed + o.mixed, n, c->kv + o.kv + n, 2 * n, 0, dchance, S);
      gemm(true, false, S, w, s, 1, chance, S, dmixed + o.mixed, n, 0, dkv + o.kv + n, 2 * n);
      for (int r = 0; r < s; r++) {
        double sum = 0;
        for (int j = 0; j < S; j++) sum += (double)chance[r * S + j] * dchance[r * S + j];
        for (int j = 0; j < S; j++)
          dchance[r * S + j] = (real)(chance[r * S + j] * (dchance[r * S + j] - sum));
      }
      gemm(false, false, s, w, S, scale, dchance, S, c->kv + o.kv, 2 * n, 0, dqkv + o.q, 3 * n);
      gemm(true, false, S, w, s, scale, dchance, S, c->qkv + o.q, 3 * n, 0, dkv + o.kv, 2 * n);
    }
  if (m->l.cp.size > 1) {
    reorder(m, dkv, m->a, false);
    group_scatter_sum(&m->l.cp, m->a, dkv, m->T * 2 * n);
  }
  for (int t = 0; t < m->T; t++)
    memcpy(dqkv + (size_t)t * 3 * n + n, dkv + (size_t)t * 2 * n, 2 * (size_t)n * sizeof *dkv);
  gemm(true, false, 3 * n, D, m->T, 1, dqkv, 3 * n, c->norm1.y, D, 1, p->q->g, D);
  gemm(false, false, m->T, D, 3 * n, 1, dqkv, 3 * n, p->q->w, D, 0, m->a, D);
  group_sum(&m->l.tp, m->a, m->T * D);
  norm_backward(&p->norm1, &c->norm1, m->a, d, m->T, D);
}
