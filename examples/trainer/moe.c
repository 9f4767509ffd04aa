/* SPDX-License-Identifier: MIT
**
** moe.c - an MLP of several experts; each token goes to the expert to which the router gives the
** highest score.
**
** Experts have no capacity limit, because a limit would depend on the layout. Rows are sent in the
** order of experts, whose owners follow each other in ep, and are grouped by expert where they
** arrive. Matrices of experts are cut over tp like the dense ones. The sum over tp is taken on the
** rank that the token came from, over all T tokens, before the gate multiplies, so that each rank
** of tp has the whole gradient of the gate.
*/
#include "model.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

void moe_room(model *m, moe_cache *c) {
  size_t T = (size_t)m->T, n = (size_t)m->l.ep.size, D = (size_t)m->c.width, most = T * n;
  c->expert = room(T, sizeof(int));
  c->order = room(T, sizeof(int));
  c->sent = room(n, sizeof(int));
  c->received = room(n, sizeof(int));
  c->rows = room((size_t)m->experts, sizeof(int));
  c->place = room(most, sizeof(int));
  c->chance = reals(T * (size_t)m->c.experts);
  c->gate = reals(T);
  c->y = reals(T * D);
  c->x = reals(most * D);
  c->before = reals(most * (size_t)m->hidden);
  c->after = reals(most * (size_t)m->hidden);
}

/* The best expert of each token (the first of equal ones) and its probability. */
static void route(model *m, layer_params *p, moe_cache *c, const real *x) {
  int E = m->c.experts;
  linear_forward(p->router, x, c->chance, m->T);
  for (int t = 0; t < m->T; t++) {
    real *z = c->chance + (size_t)t * E;
    int best = 0;
    double sum = 0, top;
    for (int e = 1; e < E; e++)
      if (z[e] > z[best]) best = e;
    top = z[best];
    for (int e = 0; e < E; e++) sum += exp(z[e] - top);
    for (int e = 0; e < E; e++) z[e] = (real)(exp(z[e] - top) / sum);
    c->expert[t] = best;
    c->gate[t] = z[best];
  }
}

/* Compute the numbers of rows to send and receive, and the place of each row: c->order, sent,
** received, rows, place. */
static void address(model *m, moe_cache *c) {
  int E = m->c.experts, mine = m->experts, n = m->l.ep.size;
  int *out = room((size_t)E * 3, sizeof *out), *in = out + E, *next = in + E;
  for (int t = 0; t < m->T; t++) out[c->expert[t]]++;
  for (int e = 1; e < E; e++) next[e] = next[e - 1] + out[e - 1];
  for (int t = 0; t < m->T; t++) c->order[next[c->expert[t]]++] = t;
  group_exchange_counts(&m->l.ep, out, in, mine);

  c->total = 0;
  memset(c->rows, 0, (size_t)mine * sizeof(int));
  for (int r = 0; r < n; r++) {
    c->sent[r] = c->received[r] = 0;
    for (int e = 0; e < mine; e++) {
      c->sent[r] += out[r * mine + e];
      c->received[r] += in[r * mine + e];
      c->rows[e] += in[r * mine + e];
    }
    c->total += c->received[r];
  }
  next[0] = 0;
  for (int e = 1; e < mine; e++) next[e] = next[e - 1] + c->rows[e - 1];
  for (int r = 0, i = 0; r < n; r++) /* rows arrive rank by rank, expert by expert */
    for (int e = 0; e < mine; e++)
      for (int k = 0; k < in[r * mine + e]; k++) c->place[i++] = next[e]++;
  free(out);
}

static void copy_row(real *to, int i, const real *from, int j, int D) {
  memcpy(to + (size_t)i * D, from + (size_t)j * D, (size_t)D * sizeof *to);
}

/* Send the rows of tokens to the owners of their experts, and sort them by expert there. */
static void dispatch(model *m, const moe_cache *c, const real *x, real *there) {
  int D = m->c.width;
  for (int i = 0; i < m->T; i++) copy_row(m->b2, i, x, c->order[i], D);
  group_exchange_rows(&m->l.ep, m->b2, c->sent, m->b3, c->received, D);
  for (int i = 0; i < c->total; i++) copy_row(there, c->place[i], m->b3, i, D);
}

/* Send the rows back to the ranks of their tokens, and sum over tp. */
static void combine(model *m, const moe_cache *c, const real *there, real *x) {
  int D = m->c.width;
  for (int i = 0; i < c->total; i++) copy_row(m->b3, i, there, c->place[i], D);
  group_exchange_rows(&m->l.ep, m->b3, c->received, m->b2, c->sent, D);
  for (int i = 0; i < m->T; i++) copy_row(x, c->order[i], m->b2, i, D);
  group_sum(&m->l.tp, x, m->T * D);
}

void moe_forward(model *m, layer_params *p, moe_cache *c, const real *x, real *y) {
  size_t D = (size_t)m->c.width, H = (size_t)m->hidden, at = 0;
  route(m, p, c, x);
  address(m, c);
  dispatch(m, c, x, c->x);
  for (int e = 0; e < m->experts; at += (size_t)c->rows[e++]) {
    linear_forward(p->experts[2 * e], c->x + at * D, c->before + at * H, c->rows[e]);
    activation_forward(c->before + at * H, c->after + at * H, (size_t)c->rows[e] * H);
    linear_forward(p->experts[2 * e + 1], c->after + at * H, m->b1 + at * D, c->rows[e]);
  }
  combine(m, c, m->b1, c->y);
  for (int t = 0; t < m->T; t++)
    for (size_t i = 0; i < D; i++) y[(size_t)t * D + i] = c->gate[t] * c->y[(size_t)t * D + i];
}

void moe_backward(model *m, layer_params *p, moe_cache *c, const real *x, const real *dy,
                  real *dx) {
  size_t D = (size_t)m->c.width, H = (size_t)m->hidden, at = 0;
  int E = m->c.experts;
  real *back = reals((size_t)c->total * D), *inner = reals((size_t)c->total * H),
       *dchance = reals((size_t)m->T * (size_t)E);

  for (int t = 0; t < m->T; t++) {
    const real *z = c->chance + (size_t)t * E;
    double dgate = 0;
    for (size_t i = 0; i < D; i++) {
      dgate += (double)dy[(size_t)t * D + i] * c->y[(size_t)t * D + i];
      m->b1[(size_t)t * D + i] = c->gate[t] * dy[(size_t)t * D + i];
    }
    for (int e = 0; e < E; e++)
      dchance[(size_t)t * E + e] = (real)(dgate * c->gate[t] * ((e == c->expert[t]) - z[e]));
  }
  dispatch(m, c, m->b1, back);
  for (int e = 0; e < m->experts; at += (size_t)c->rows[e++]) {
    linear_backward(p->experts[2 * e + 1], c->after + at * H, back + at * D, inner + at * H,
                    c->rows[e]);
    activation_backward(c->before + at * H, inner + at * H, (size_t)c->rows[e] * H);
    linear_backward(p->experts[2 * e], c->x + at * D, inner + at * H, m->b1 + at * D, c->rows[e]);
  }
  combine(m, c, m->b1, dx);
  linear_backward(p->router, x, dchance, m->b1, m->T);
  for (size_t i = 0; i < (size_t)m->T * D; i++) dx[i] += m->b1[i];
  free(back);
  free(inner);
  free(dchance);
}
