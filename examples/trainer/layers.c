/* SPDX-License-Identifier: MIT
**
** layers.c - the layers that work on one position at a time: norm, activation, linear, the MLP, the
** embedding and the output with its loss.
**
** MLPs are cut as in Megatron: each rank of tp has some rows of `up` and the matching columns of
** `down`, so that one sum over tp per MLP is enough in each direction: forward of the result,
** backward of the gradient of the input. Norms are not cut: all ranks of tp have equal inputs and
** gradients of them, so the gradients need no sum over tp.
*/
#include "model.h"

#include <cblas.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void *room(size_t n, size_t size) {
  void *p = calloc(n ? n : 1, size);
  if (p) return p;
  fprintf(stderr, "trainer: no memory for %zu x %zu bytes\n", n, size);
  exit(exit_code(MGRID_LIMIT));
}

real *reals(size_t n) { return room(n, sizeof(real)); }

/* Each rank uses one core, so keep OpenBLAS from starting a thread per core. Other BLAS libraries
** have no such function. */
extern void openblas_set_num_threads(int n) __attribute__((weak));

void gemm_one_thread(void) {
  if (openblas_set_num_threads) openblas_set_num_threads(1);
}

void gemm(bool ta, bool tb, int m, int n, int k, real alpha, const real *a, int lda, const real *b,
          int ldb, real beta, real *c, int ldc) {
  if (m <= 0 || n <= 0) return;
#ifdef TRAINER_F32
  cblas_sgemm
#else
  cblas_dgemm
#endif
      (CblasRowMajor, ta ? CblasTrans : CblasNoTrans, tb ? CblasTrans : CblasNoTrans, m, n, k,
       alpha, a, lda, b, ldb, beta, c, ldc);
}

/* -------------------------------------------------------------------- norm */

void norm_room(norm_cache *n, int T, int D) {
  n->unit = reals((size_t)T * (size_t)D);
  n->y = reals((size_t)T * (size_t)D);
  n->scale = reals((size_t)T);
}

void norm_forward(const norm_params *p, norm_cache *n, const real *x, int T, int D) {
  for (int t = 0; t < T; t++, x += D) {
    real *unit = n->unit + (size_t)t * D, *y = n->y + (size_t)t * D;
    double mean = 0, square = 0;
    for (int i = 0; i < D; i++) mean += x[i];
    mean /= D;
    for (int i = 0; i < D; i++) square += (x[i] - mean) * (x[i] - mean);
    n->scale[t] = (real)(1 / sqrt(square / D + 1e-5));
    for (int i = 0; i < D; i++) {
      unit[i] = (real)(x[i] - mean) * n->scale[t];
      y[i] = unit[i] * p->gain->w[i] + p->bias->w[i];
    }
  }
}

void norm_backward(const norm_params *p, const norm_cache *n, const real *dy, real *d, int T,
                   int D) {
  for (int t = 0; t < T; t++, dy += D, d += D) {
    const real *unit = n->unit + (size_t)t * D;
    double mean = 0, along = 0;
    for (int i = 0; i < D; i++) {
      real du = dy[i] * p->gain->w[i];
      mean += du;
      along += (double)du * unit[i];
      p->gain->g[i] += dy[i] * unit[i];
      p->bias->g[i] += dy[i];
    }
    mean /= D, along /= D;
    for (int i = 0; i < D; i++)
      d[i] += n->scale[t] * (real)(dy[i] * p->gain->w[i] - mean - unit[i] * along);
  }
}

/* -------------------------------------------------- activation and linear */

/* GELU in its tanh form. */
static const double bend = 0.044715, root = 0.79788456080286535588; /* sqrt(2 / pi) */

void activation_forward(const real *x, real *y, size_t n) {
  for (size_t i = 0; i < n; i++) {
    double u = x[i];
    y[i] = (real)(0.5 * u * (1 + tanh(root * (u + bend * u * u * u))));
  }
}

void activation_backward(const real *x, real *d, size_t n) {
  for (size_t i = 0; i < n; i++) {
    double u = x[i], th = tanh(root * (u + bend * u * u * u));
    d[i] =
        (real)(d[i] * (0.5 * (1 + th) + 0.5 * u * (1 - th * th) * root * (1 + 3 * bend * u * u)));
  }
}

void linear_forward(const param *p, const real *x, real *y, int n) {
  gemm(false, true, n, p->nrows, p->ncols, 1, x, p->ncols, p->w, p->ncols, 0, y, p->nrows);
}

void linear_backward(param *p, const real *x, const real *dy, real *dx, int n) {
  gemm(true, false, p->nrows, p->ncols, n, 1, dy, p->nrows, x, p->ncols, 1, p->g, p->ncols);
  if (dx)
    gemm(false, false, n, p->ncols, p->nrows, 1, dy, p->nrows, p->w, p->ncols, 0, dx, p->ncols);
}

/* --------------------------------------------------------------------- MLP */

void mlp_forward(model *m, layer_params *p, layer_cache *c, real *x) {
  int D = m->c.width;
  size_t n = (size_t)m->T * (size_t)D;
  norm_forward(&p->norm2, &c->norm2, x, m->T, D);
  if (p->moe) {
    moe_forward(m, p, &c->moe, c->norm2.y, m->a);
  } else {
    linear_forward(p->up, c->norm2.y, c->before, m->T);
    activation_forward(c->before, c->after, (size_t)m->T * (size_t)m->hidden);
    linear_forward(p->down, c->after, m->a, m->T);
    group_sum(&m->l.tp, m->a, (int)n);
  }
  for (size_t i = 0; i < n; i++) x[i] += m->a[i];
}

void mlp_backward(model *m, layer_params *p, layer_cache *c, real *d) {
  int D = m->c.width;
  size_t n = (size_t)m->T * (size_t)D;
  if (p->moe) {
    moe_backward(m, p, &c->moe, c->norm2.y, d, m->a);
  } else {
    linear_backward(p->down, c->after, d, m->b1, m->T);
    activation_backward(c->before, m->b1, (size_t)m->T * (size_t)m->hidden);
    linear_backward(p->up, c->norm2.y, m->b1, m->a, m->T);
    group_sum(&m->l.tp, m->a, (int)n);
  }
  norm_backward(&p->norm2, &c->norm2, m->a, d, m->T, D);
}

/* ------------------------------------------------------------ both ends */

/* Each rank of tp has the rows of some symbols, and zeros for the other tokens; the sum over tp has
** the rows of all tokens. */
void embed_forward(model *m, slot *s) {
  int D = m->c.width;
  const param *e = m->embedding, *at = m->position;
  memset(s->x, 0, (size_t)m->T * (size_t)D * sizeof(real));
  for (int t = 0; t < m->T; t++) {
    int row = s->symbols[t] - e->row0;
    if (row >= 0 && row < e->nrows)
      memcpy(s->x + (size_t)t * D, e->w + (size_t)row * D, (size_t)D * sizeof(real));
  }
  group_sum(&m->l.tp, s->x, m->T * D);
  for (int t = 0; t < m->T; t++) {
    const real *w = at->w + (size_t)(m->l.cp.rank * m->s + t % m->s) * D;
    for (int i = 0; i < D; i++) s->x[(size_t)t * D + i] += w[i];
  }
}

void embed_backward(model *m, slot *s) {
  int D = m->c.width;
  param *e = m->embedding, *at = m->position;
  for (int t = 0; t < m->T; t++) {
    const real *d = s->d + (size_t)t * D;
    int row = s->symbols[t] - e->row0;
    real *g = at->g + (size_t)(m->l.cp.rank * m->s + t % m->s) * D;
    for (int i = 0; i < D; i++) g[i] += d[i];
    if (row < 0 || row >= e->nrows) continue;
    g = e->g + (size_t)row * D;
    for (int i = 0; i < D; i++) g[i] += d[i];
  }
}

/* Each rank of tp has the scores of its symbols. The ranks exchange 3 values per token: the largest
** score, the sum of the exponentials and the score of the target. */
double head_forward(model *m, slot *s) {
  const param *e = m->embedding;
  int V = m->vocab, T = m->T;
  real *top = m->b1;
  double *sums = room((size_t)T * 2, sizeof *sums), loss = 0;
  norm_forward(&m->norm, &s->norm, s->x, T, m->c.width);
  linear_forward(e, s->norm.y, s->dlogits, T);
  for (int t = 0; t < T; t++) {
    const real *z = s->dlogits + (size_t)t * V;
    top[t] = z[0];
    for (int v = 1; v < V; v++)
      if (z[v] > top[t]) top[t] = z[v];
  }
  group_max(&m->l.tp, top, T);
  for (int t = 0; t < T; t++) {
    real *z = s->dlogits + (size_t)t * V;
    int target = s->targets[t] - e->row0;
    if (target >= 0 && target < V) sums[T + t] = z[target] - top[t];
    for (int v = 0; v < V; v++) {
      double chance = exp((double)z[v] - top[t]);
      sums[t] += chance;
      z[v] = (real)chance;
    }
  }
  group_sum_double(&m->l.tp, sums, 2 * T);
  double share = 1.0 / ((double)m->c.batch * m->c.seq); /* the loss is the mean over all tokens */
  for (int t = 0; t < T; t++) {
    real *z = s->dlogits + (size_t)t * V;
    int target = s->targets[t] - e->row0;
    loss += log(sums[t]) - sums[T + t];
    for (int v = 0; v < V; v++) z[v] = (real)((z[v] / sums[t] - (v == target)) * share);
  }
  free(sums);
  return loss;
}

void head_backward(model *m, slot *s) {
  size_t n = (size_t)m->T * (size_t)m->c.width;
  linear_backward(m->embedding, s->norm.y, s->dlogits, m->a, m->T);
  group_sum(&m->l.tp, m->a, (int)n);
  memset(s->d, 0, n * sizeof(real));
  norm_backward(&m->norm, &s->norm, m->a, s->d, m->T, m->c.width);
}
