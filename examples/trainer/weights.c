/* SPDX-License-Identifier: MIT
**
** weights.c - the part of the model that a rank has, and its first values.
**
** Every rank declares the parameters of the whole model in the same order, and keeps its own parts.
*/
#include "model.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The state while parameters are declared, and the first error. */
typedef struct declaring {
  model *m;
  holders where; /* of the next parameters */
  mgrid_error *err;
} declaring;

static bool is_here(const declaring *d) {
  const layout *l = &d->m->l;
  return (d->where.pp[0] == l->pp.rank || d->where.pp[1] == l->pp.rank)
         && (d->where.ep < 0 || d->where.ep == l->ep.rank);
}

/* Declare a parameter of the whole model. Return it, or NULL if this rank has nothing of it. */
static param *declare(const declaring *d, cut how, int rows, int cols, real middle, double range,
                      const char *format, ...) {
  model *m = d->m;
  char name[PARAM_NAME];
  va_list args;
  va_start(args, format);
  vsnprintf(name, sizeof name, format, args);
  va_end(args);
  tensor_declare(m, name, how, rows, cols, d->where, d->err);
  m->whole += (size_t)rows * (size_t)cols;
  if (!is_here(d)) return NULL;
  int parts = m->l.tp.size, i = m->l.tp.rank;
  param *p = &m->params[m->nparams++];
  *p = (param){
    .rows = rows, .cols = cols, .nrows = rows, .ncols = cols, .middle = middle, .range = (real)range
  };
  if (how == BY_ROWS) p->nrows = rows / parts, p->row0 = i * p->nrows;
  if (how == BY_COLUMNS) p->ncols = cols / parts, p->col0 = i * p->ncols;
  memcpy(p->name, name, sizeof name);
  m->nvalues += (size_t)p->nrows * (size_t)p->ncols;
  return p;
}

static norm_params declare_norm(const declaring *d, const char *name) {
  norm_params n;
  n.gain = declare(d, WHOLE, 1, d->m->c.width, 1, 0, "%s.gain", name);
  n.bias = declare(d, WHOLE, 1, d->m->c.width, 0, 0, "%s.bias", name);
  return n;
}

static void declare_layer(declaring *d, int layer) {
  model *m = d->m;
  layer_params none, *p = &none;
  for (int i = 0; i < m->nchunks; i++) {
    const chunk *k = &m->chunks[i];
    if (layer >= k->layer0 && layer < k->layer0 + k->nlayers)
      p = &m->layers[k->at + layer - k->layer0];
  }
  bool here = p != &none;
  d->where = (holders){ { m->place[layer], m->place[layer] }, -1 };
  int D = m->c.width, H = m->c.hidden, E = m->c.experts, first = m->l.ep.rank * m->experts;
  double in = sqrt(3.0 / D), out = sqrt(3.0 / H) / sqrt(2.0 * m->c.layers);
  char name[32];
  memset(p, 0, sizeof *p);
  snprintf(name, sizeof name, "layer%d.norm1", layer);
  p->norm1 = declare_norm(d, name);
  p->q = declare(d, BY_ROWS, D, D, 0, in, "layer%d.q", layer);
  p->k = declare(d, BY_ROWS, D, D, 0, in, "layer%d.k", layer);
  p->v = declare(d, BY_ROWS, D, D, 0, in, "layer%d.v", layer);
  p->out = declare(d, BY_COLUMNS, D, D, 0, in / sqrt(2.0 * m->c.layers), "layer%d.out", layer);
  snprintf(name, sizeof name, "layer%d.norm2", layer);
  p->norm2 = declare_norm(d, name);
  p->moe = m->c.moe_every && (layer + 1) % m->c.moe_every == 0;
  if (!p->moe) {
    p->up = declare(d, BY_ROWS, H, D, 0, in, "layer%d.up", layer);
    p->down = declare(d, BY_COLUMNS, D, H, 0, out, "layer%d.down", layer);
    return;
  }
  p->router = declare(d, WHOLE, E, D, 0, in, "layer%d.router", layer);
  if (here) p->experts = room((size_t)m->experts * 2, sizeof *p->experts);
  for (int e = 0; e < E; e++) {
    bool mine = here && e >= first && e < first + m->experts;
    d->where.ep = e / m->experts;
    param *up = declare(d, BY_ROWS, H, D, 0, in, "layer%d.expert%d.up", layer, e);
    param *down = declare(d, BY_COLUMNS, D, H, 0, out, "layer%d.expert%d.down", layer, e);
    if (!mine) continue;
    up->expert = down->expert = true;
    p->experts[2 * (e - first)] = up;
    p->experts[2 * (e - first) + 1] = down;
  }
}

/* A first value depends only on the seed, the parameter's name and the value's place in it, so it
** is the same on all ranks that have the value. */
static void first_values(model *m, param *p) {
  uint64_t key = m->c.seed;
  for (const char *n = p->name; *n; n++) key = data_mix(key, (uint64_t)(unsigned char)*n);
  for (int r = 0; r < p->nrows; r++)
    for (int c = 0; c < p->ncols; c++) {
      uint64_t at = (uint64_t)(p->row0 + r) * (uint64_t)p->cols + (uint64_t)(p->col0 + c);
      double u = (double)(data_mix(key, at) >> 11) * 0x1p-52 - 1;
      p->w[(size_t)r * p->ncols + c] = (real)(p->middle + p->range * u);
    }
}

static void place_values(model *m) {
  for (int i = 0; i < m->nparams; i++) m->nstate += m->params[i].n;
  real *w = m->memory = reals((m->nvalues + m->nstate) * 2), *state = w + 2 * m->nvalues;
  for (int i = 0; i < m->nparams; i++) {
    param *p = &m->params[i];
    p->w = w;
    p->g = p->w + m->nvalues;
    p->m = state;
    p->v = p->m + m->nstate;
    w += (size_t)p->nrows * (size_t)p->ncols;
    state += p->n;
    first_values(m, p);
  }
}

static void make_slots(model *m) {
  size_t T = (size_t)m->T, D = (size_t)m->c.width, n = (size_t)m->mine, S = (size_t)m->c.seq,
         b = (size_t)m->b;
  m->slots = room((size_t)m->nslots * (size_t)m->nchunks, sizeof *m->slots);
  for (int i = 0; i < m->nslots * m->nchunks; i++) {
    slot *s = &m->slots[i];
    const chunk *stage = &m->chunks[i / m->nslots];
    s->x = reals(T * D);
    s->d = reals(T * D);
    s->symbols = room(T, sizeof(int));
    s->targets = room(T, sizeof(int));
    s->sent_x = s->sent_d = MPI_REQUEST_NULL;
    s->layers = room((size_t)stage->nlayers, sizeof *s->layers);
    if (stage->last) {
      norm_room(&s->norm, m->T, m->c.width);
      s->dlogits = reals(T * (size_t)m->vocab);
    }
    for (int k = 0; k < stage->nlayers; k++) {
      layer_cache *c = &s->layers[k];
      norm_room(&c->norm1, m->T, m->c.width);
      norm_room(&c->norm2, m->T, m->c.width);
      c->qkv = reals(T * 3 * n);
      c->kv = reals(b * S * 2 * n);
      c->chance = reals(T * (size_t)m->heads * S);
      c->mixed = reals(T * n);
      if (m->layers[stage->at + k].moe) {
        moe_room(m, &c->moe);
      } else {
        c->before = reals(T * (size_t)m->hidden);
        c->after = reals(T * (size_t)m->hidden);
      }
    }
  }
}

static bool fits(int what, int by, const char *name, const char *dim, mgrid_error *err) {
  if (by >= 1 && what % by == 0) return true;
  refuse(err, "%s %d of the model does not divide by %s %d", name, what, dim, by);
  return false;
}

static void cut_up(model *m, policies *ask, mgrid_error *err) {
  const config *c = &m->c;
  const layout *l = &m->l;
  if (!fits(c->width, c->heads, "width", "heads", err)
      || !fits(c->heads, l->tp.size, "heads", "tp", err)
      || !fits(c->hidden, l->tp.size, "hidden", "tp", err)
      || !fits(VOCAB, l->tp.size, "vocabulary", "tp", err)
      || !fits(c->seq, l->cp.size, "seq", "cp", err)
      || !fits(c->batch, l->dp.size, "batch", "dp", err)
      || !fits(c->experts, l->ep.size, "experts", "ep", err))
    return;
  int ranks = l->pp.size;
  const char *order = "";
  m->samples = c->batch / l->dp.size;
  if (policy_schedule(ask, m->samples, ranks, &m->microbatches, &m->nchunks, &order, err)) return;
  int stages = ranks * m->nchunks, layers = 0, total = m->microbatches * m->nchunks;
  int64_t *each = room((size_t)stages, sizeof *each);
  bool ok = !policy_layers(ask, c->layers, stages, each, err);
  m->chunks = room((size_t)m->nchunks, sizeof *m->chunks);
  m->place = room((size_t)c->layers, sizeof *m->place);
  for (int i = 0; ok && i < stages; layers += (int)each[i++]) {
    for (int k = 0; k < each[i]; k++) m->place[layers + k] = i % ranks;
    if (i % ranks != l->pp.rank) continue;
    m->chunks[i / ranks] = (chunk){ layers, (int)each[i], m->nlayers, i == 0, i == stages - 1 };
    m->nlayers += (int)each[i];
  }
  free(each);
  int early = ranks - 1 - l->pp.rank;
  if (m->nchunks > 1) early = 2 * early + (m->nchunks - 1) * ranks;
  if (strcmp(order, "gpipe") == 0) early = total;
  m->warmup = early < total ? early : total;
  m->nslots = l->idle ? 0 : m->nchunks == 1 && m->warmup < total ? m->warmup + 1 : m->microbatches;
}

/* Choose the families over which gradients are summed, and the sizes of buckets. After an error
** make the other calls nevertheless, because agreed policies are collective: all ranks ask about
** the same families, and the ranks of a dp_cp group about the same parameters. */
static void choose_sums(model *m, policies *ask, mgrid_error *err) {
  sharing *both[] = { &m->dense, &m->expert };
  m->dense = (sharing){ &m->l.dp_cp, &m->l.shard, &m->l.copies, 0 };
  m->expert = (sharing){ &m->l.expert_data, &m->l.expert_shard, &m->l.expert_copies, 0 };
  for (int i = 0; i < 2; i++) {
    const group *all = both[i]->all;
    mgrid_error one = MGRID_ERROR_INIT;
    if (policy_bucket_bytes(ask, all->family, all->size, &both[i]->bucket, &one) && !err->status)
      *err = one;
  }
  for (int i = 0; i < m->nparams; i++) {
    param *p = &m->params[i];
    const char *family = "";
    mgrid_error one = MGRID_ERROR_INIT;
    mgrid_status s = policy_gradient_family(ask, p->name, p->expert, &family, &one);
    for (int k = 0; k < 2 && !s; k++)
      if (strcmp(family, both[k]->all->family) == 0) p->sum = both[k];
    if (!s && !p->sum)
      s = refuse(
          &one,
          "policy 'gradient_family' returned '%s' for %s; 'dp_cp' and 'expert_data' are known",
          family, p->name);
    if (s && !err->status) *err = one;
  }
}

model *model_new(const config *c, const layout *l, policies *ask, const char *text, size_t length,
                 mgrid_error *err) {
  model *m = room(1, sizeof *m);
  m->c = *c, m->l = *l, m->text = text, m->length = length;
  cut_up(m, ask, err);
  if (!everybody(l, err)) {
    free(m->chunks), free(m->place);
    free(m);
    return NULL;
  }
  m->b = m->samples / m->microbatches, m->s = c->seq / l->cp.size, m->T = m->b * m->s;
  m->heads = c->heads / l->tp.size, m->mine = c->width / l->tp.size,
  m->hidden = c->hidden / l->tp.size;
  m->vocab = VOCAB / l->tp.size, m->experts = c->experts / l->ep.size;

  m->params = room((size_t)(4 + m->nlayers * (9 + 2 * m->experts)), sizeof *m->params);
  m->layers = room((size_t)m->nlayers, sizeof *m->layers);
  int end = l->pp.size - 1;
  declaring d = { m, { { 0, end }, -1 }, err };
  m->topology = mgrid_topology_new(mgrid_grid_window(l->dense).world, err);
  m->embedding = declare(&d, BY_ROWS, VOCAB, c->width, 0, 0.1, "embedding");
  d.where = (holders){ { 0, 0 }, -1 };
  m->position = declare(&d, WHOLE, c->seq, c->width, 0, 0.1, "position");
  for (int i = 0; i < c->layers; i++) declare_layer(&d, i);
  d.where = (holders){ { end, end }, -1 };
  m->norm = declare_norm(&d, "norm");
  m->tensors = mgrid_plan_new(m->topology, err);
  tensor_slices(m, err);
  place_values(m);
  make_slots(m);

  /* Scratch memory for the largest need of any layer. */
  size_t T = (size_t)m->T, D = (size_t)c->width, S = (size_t)c->seq;
  m->scratch = T * (size_t)l->ep.size * (D + (size_t)m->hidden) + 2 * (size_t)m->b * S * D
               + 3 * T * D + (size_t)m->s * S;
  m->a = reals(4 * m->scratch);
  m->b1 = m->a + m->scratch, m->b2 = m->b1 + m->scratch, m->b3 = m->b2 + m->scratch;
  choose_sums(m, ask, err);
  buckets_cut(m);
  if (everybody(l, err)) return m;
  model_free(m);
  return NULL;
}

static void free_norm(norm_cache *n) { free(n->unit), free(n->scale), free(n->y); }

static void free_layer(layer_cache *c) {
  moe_cache *e = &c->moe;
  free_norm(&c->norm1), free_norm(&c->norm2);
  free(c->qkv), free(c->kv), free(c->chance), free(c->mixed), free(c->before), free(c->after);
  free(e->expert), free(e->order), free(e->sent), free(e->received), free(e->rows), free(e->place);
  free(e->chance), free(e->gate), free(e->x), free(e->before), free(e->after), free(e->y);
}

void model_forget(model *m) {
  if (!m) return;
  for (int i = 0; i < m->nslots * m->nchunks; i++) {
    slot *s = &m->slots[i];
    if (!group_forget(&s->sent_x)) s->x = NULL;
    if (!group_forget(&s->sent_d)) s->d = NULL;
  }
  buckets_forget(m);
}

void model_free(model *m) {
  if (!m) return;
  for (int i = 0; i < m->nslots * m->nchunks; i++) {
    slot *s = &m->slots[i];
    for (int k = 0; k < m->chunks[i / m->nslots].nlayers; k++) free_layer(&s->layers[k]);
    free_norm(&s->norm);
    free(s->layers), free(s->x), free(s->d), free(s->symbols), free(s->targets), free(s->dlogits);
  }
  for (int k = 0; k < m->nlayers; k++) free(m->layers[k].experts);
  free(m->slots), free(m->chunks), free(m->layers), free(m->params), free(m->memory), free(m->a),
      free(m->place), free(m->buckets);
  mgrid_topology_free(m->topology);
  mgrid_plan_free(m->tensors);
  free(m);
}
