/* SPDX-License-Identifier: MIT
**
** weights.c - the part of the model that a rank has, and its first values.
**
** Every rank walks over the whole model in the same order and keeps what is its own.
*/
#include "model.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef enum cut { WHOLE, BY_ROWS, BY_COLUMNS } cut;

/* A parameter of the whole model; NULL where this rank has nothing of it. */
static param *declare(model *m, bool here, cut how, int rows, int cols, real middle, double range, const char *name,
                      ...) {
  size_t  place = m->whole;
  va_list args;
  m->whole += (size_t)rows * (size_t)cols;
  if (!here) return NULL;
  int    parts = m->l.tp.size, i = m->l.tp.rank;
  param *p = &m->params[m->nparams++];
  *p = (param){
    .rows = rows, .cols = cols, .nrows = rows, .ncols = cols, .place = place, .middle = middle, .range = (real)range
  };
  if (how == BY_ROWS) p->nrows = rows / parts, p->row0 = i * p->nrows;
  if (how == BY_COLUMNS) p->ncols = cols / parts, p->col0 = i * p->ncols;
  va_start(args, name);
  vsnprintf(p->name, sizeof p->name, name, args);
  va_end(args);
  m->nvalues += (size_t)p->nrows * (size_t)p->ncols;
  return p;
}

static norm_params declare_norm(model *m, bool here, const char *name) {
  norm_params n;
  n.gain = declare(m, here, WHOLE, 1, m->c.width, 1, 0, "%s.gain", name);
  n.bias = declare(m, here, WHOLE, 1, m->c.width, 0, 0, "%s.bias", name);
  return n;
}

static void declare_layer(model *m, int layer) {
  layer_params none, *p = &none;
  for (int i = 0; i < m->nchunks; i++) {
    const chunk *k = &m->chunks[i];
    if (layer >= k->layer0 && layer < k->layer0 + k->nlayers) p = &m->layers[k->at + layer - k->layer0];
  }
  bool   here = p != &none;
  int    D = m->c.width, H = m->c.hidden, E = m->c.experts, first = m->l.ep.rank * m->experts;
  double in = sqrt(3.0 / D), out = sqrt(3.0 / H) / sqrt(2.0 * m->c.layers);
  char   name[32];
  memset(p, 0, sizeof *p);
  snprintf(name, sizeof name, "layer%d.norm1", layer);
  p->norm1 = declare_norm(m, here, name);
  p->q = declare(m, here, BY_ROWS, D, D, 0, in, "layer%d.q", layer);
  p->k = declare(m, here, BY_ROWS, D, D, 0, in, "layer%d.k", layer);
  p->v = declare(m, here, BY_ROWS, D, D, 0, in, "layer%d.v", layer);
  p->out = declare(m, here, BY_COLUMNS, D, D, 0, in / sqrt(2.0 * m->c.layers), "layer%d.out", layer);
  snprintf(name, sizeof name, "layer%d.norm2", layer);
  p->norm2 = declare_norm(m, here, name);
  p->moe = m->c.moe_every && (layer + 1) % m->c.moe_every == 0;
  if (!p->moe) {
    p->up = declare(m, here, BY_ROWS, H, D, 0, in, "layer%d.up", layer);
    p->down = declare(m, here, BY_COLUMNS, D, H, 0, out, "layer%d.down", layer);
    return;
  }
  p->router = declare(m, here, WHOLE, E, D, 0, in, "layer%d.router", layer);
  if (here) p->experts = room((size_t)m->experts * 2, sizeof *p->experts);
  for (int e = 0; e < E; e++) {
    bool   mine = here && e >= first && e < first + m->experts;
    param *up = declare(m, mine, BY_ROWS, H, D, 0, in, "layer%d.expert%d.up", layer, e);
    param *down = declare(m, mine, BY_COLUMNS, D, H, 0, out, "layer%d.expert%d.down", layer, e);
    if (!mine) continue;
    up->expert = down->expert = true;
    p->experts[2 * (e - first)] = up;
    p->experts[2 * (e - first) + 1] = down;
  }
}

/* First values depend on name and place alone, so all ranks that have a value start with the same one. */
static void first_values(model *m, param *p) {
  uint64_t key = m->c.seed;
  for (const char *n = p->name; *n; n++) key = data_mix(key, (uint64_t)(unsigned char)*n);
  for (int r = 0; r < p->nrows; r++)
    for (int c = 0; c < p->ncols; c++) {
      uint64_t at = (uint64_t)(p->row0 + r) * (uint64_t)p->cols + (uint64_t)(p->col0 + c);
      double   u = (double)(data_mix(key, at) >> 11) * 0x1p-52 - 1;
      p->w[(size_t)r * p->ncols + c] = (real)(p->middle + p->range * u);
    }
}

static void place_values(model *m) {
  real *w = m->memory = reals(m->nvalues * 4);
  for (int i = 0; i < m->nparams; i++) {
    param *p = &m->params[i];
    p->w = w;
    p->g = p->w + m->nvalues;
    p->m = p->g + m->nvalues;
    p->v = p->m + m->nvalues;
    w += (size_t)p->nrows * (size_t)p->ncols;
    first_values(m, p);
  }
}

static void make_slots(model *m) {
  size_t T = (size_t)m->T, D = (size_t)m->c.width, n = (size_t)m->mine, S = (size_t)m->c.seq, b = (size_t)m->b;
  m->slots = room((size_t)m->nslots * (size_t)m->nchunks, sizeof *m->slots);
  for (int i = 0; i < m->nslots * m->nchunks; i++) {
    slot        *s = &m->slots[i];
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
  if (!fits(c->width, c->heads, "width", "heads", err) || !fits(c->heads, l->tp.size, "heads", "tp", err)
      || !fits(c->hidden, l->tp.size, "hidden", "tp", err) || !fits(VOCAB, l->tp.size, "vocabulary", "tp", err)
      || !fits(c->seq, l->cp.size, "seq", "cp", err) || !fits(c->batch, l->dp.size, "batch", "dp", err)
      || !fits(c->experts, l->ep.size, "experts", "ep", err))
    return;
  int         ranks = l->pp.size;
  const char *order = "";
  m->samples = c->batch / l->dp.size;
  if (policy_schedule(ask, m->samples, ranks, &m->microbatches, &m->nchunks, &order, err)) return;
  int      stages = ranks * m->nchunks, layers = 0, total = m->microbatches * m->nchunks;
  int64_t *each = room((size_t)stages, sizeof *each);
  bool     ok = !policy_layers(ask, c->layers, stages, each, err);
  m->chunks = room((size_t)m->nchunks, sizeof *m->chunks);
  for (int i = 0; ok && i < stages; layers += (int)each[i++]) {
    if (i % ranks != l->pp.rank) continue;
    m->chunks[i / ranks] = (chunk){ layers, (int)each[i], m->nlayers, i == 0, i == stages - 1 };
    m->nlayers += (int)each[i];
  }
  free(each);
  int early = ranks - 1 - l->pp.rank;
  if (m->nchunks > 1) early = 2 * early + (m->nchunks - 1) * ranks;
  if (strcmp(order, "gpipe") == 0) early = total;
  m->warmup = early < total ? early : total;
  m->nslots = m->nchunks == 1 && m->warmup < total ? m->warmup + 1 : m->microbatches;
}

/* Choose the families over which gradients are summed, and the sizes of buckets. After an error ask the other
** questions all the same, because agreed policies are collective: every rank asks the same about families,
** and ranks of a dp_cp group ask the same about parameters. */
static void choose_sums(model *m, policies *ask, mgrid_error *err) {
  group *both[] = { &m->l.dp_cp, &m->l.expert_data };
  for (int i = 0; i < 2; i++) {
    mgrid_error one = MGRID_ERROR_INIT;
    if (policy_bucket_bytes(ask, both[i]->family, both[i]->size, &both[i]->bucket, &one) && !err->status) *err = one;
  }
  for (int i = 0; i < m->nparams; i++) {
    param       *p = &m->params[i];
    const char  *family = "";
    mgrid_error  one = MGRID_ERROR_INIT;
    mgrid_status s = policy_gradient_family(ask, p->name, p->expert, &family, &one);
    p->sum = s ? NULL : layout_find(&m->l, family);
    if (!s && p->sum != both[0] && p->sum != both[1])
      s = refuse(&one, "policy 'gradient_family' returned '%s' for %s; 'dp_cp' and 'expert_data' are known", family,
                 p->name);
    if (s && !err->status) *err = one;
  }
}

model *model_new(const config *c, const layout *l, policies *ask, const char *text, size_t length, mgrid_error *err) {
  model *m = room(1, sizeof *m);
  m->c = *c, m->l = *l, m->text = text, m->length = length;
  layout_ask(&m->l, ask);
  cut_up(m, ask, err);
  if (!everybody(&l->job, err)) {
    free(m->chunks);
    free(m);
    return NULL;
  }
  m->first = l->pp.rank == 0, m->last = l->pp.rank == l->pp.size - 1;
  m->b = m->samples / m->microbatches, m->s = c->seq / l->cp.size, m->T = m->b * m->s;
  m->heads = c->heads / l->tp.size, m->mine = c->width / l->tp.size, m->hidden = c->hidden / l->tp.size;
  m->vocab = VOCAB / l->tp.size, m->experts = c->experts / l->ep.size;

  m->params = room((size_t)(4 + m->nlayers * (9 + 2 * m->experts)), sizeof *m->params);
  m->layers = room((size_t)m->nlayers, sizeof *m->layers);
  m->embedding = declare(m, m->first || m->last, BY_ROWS, VOCAB, c->width, 0, 0.1, "embedding");
  m->position = declare(m, m->first, WHOLE, c->seq, c->width, 0, 0.1, "position");
  for (int i = 0; i < c->layers; i++) declare_layer(m, i);
  m->norm = declare_norm(m, m->last, "norm");
  place_values(m);
  make_slots(m);

  /* Scratch: room for the largest use of any layer. */
  size_t T = (size_t)m->T, D = (size_t)c->width, S = (size_t)c->seq;
  m->scratch = T * (size_t)l->ep.size * (D + (size_t)m->hidden) + 2 * (size_t)m->b * S * D + 3 * T * D
               + (size_t)m->s * S;
  m->a = reals(4 * m->scratch);
  m->b1 = m->a + m->scratch, m->b2 = m->b1 + m->scratch, m->b3 = m->b2 + m->scratch;
  choose_sums(m, ask, err);
  if (everybody(&l->job, err)) return m;
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

void model_free(model *m) {
  if (!m) return;
  for (int i = 0; i < m->nslots * m->nchunks; i++) {
    slot *s = &m->slots[i];
    for (int k = 0; k < m->chunks[i / m->nslots].nlayers; k++) free_layer(&s->layers[k]);
    free_norm(&s->norm);
    free(s->layers), free(s->x), free(s->d), free(s->symbols), free(s->targets), free(s->dlogits);
  }
  for (int k = 0; k < m->nlayers; k++) free(m->layers[k].experts);
  free(m->slots), free(m->chunks), free(m->layers), free(m->params), free(m->memory), free(m->a);
  free(m);
}
