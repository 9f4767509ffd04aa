/* SPDX-License-Identifier: MIT
**
** pipeline.c - one step: the microbatches through the stages, forward and backward.
**
** One forward, one backward (1F1B): a rank begins with a forward pass for each rank after it, then
** alternates forward and backward, then does the backward passes that remain. Interleaved, a rank
** has several stages and runs as many microbatches as there are ranks through each in turn
** (Narayanan et al., 2021, section 2.2); it begins with more forward passes, and every microbatch
** has a slot in every stage. Sends do not wait: the data stays in its slot, and the send has ended
** before the slot is used again. Sums of gradients start in the backward pass of the last
** microbatch, and overlap it (reduce.c).
*/
#include "model.h"

#include <string.h>

enum { FORWARD = 0, BACKWARD = 1 };

/* The work of one stage on one microbatch, forward or backward. */
typedef struct work {
  const chunk *stage;
  slot *s;
  int microbatch;
  int in, out; /* tags of messages from the stage before and to the one after */
} work;

/* Return the n-th forward or backward work of this rank in a step. */
static work nth(model *m, int n, bool back) {
  int ranks = m->l.pp.size, turn = n / ranks % m->nchunks, i = back ? m->nchunks - 1 - turn : turn;
  int round = n / (ranks * m->nchunks), microbatch = round * ranks + n % ranks;
  int stage = i * ranks + m->l.pp.rank;
  return (work){ &m->chunks[i], &m->slots[i * m->nslots + microbatch % m->nslots], microbatch,
                 2 * (stage * m->microbatches + microbatch),
                 2 * ((stage + 1) * m->microbatches + microbatch) };
}

static int before(const model *m) { return (m->l.pp.rank + m->l.pp.size - 1) % m->l.pp.size; }
static int after(const model *m) { return (m->l.pp.rank + 1) % m->l.pp.size; }

static void load(model *m, slot *s, int64_t step, int microbatch) {
  int sample = m->l.dp.rank * m->samples + microbatch * m->b;
  for (int i = 0; i < m->b; i++)
    data_sample(m->text, m->length, &m->c, step, sample + i, m->l.cp.rank * m->s, m->s,
                s->symbols + i * m->s, s->targets + i * m->s);
}

static double forward(model *m, int64_t step, work w) {
  slot *s = w.s;
  int n = m->T * m->c.width;
  group_finish(&m->l.pp, &s->sent_x);
  if (w.stage->first || w.stage->last) load(m, s, step, w.microbatch);
  if (w.stage->first)
    embed_forward(m, s);
  else
    group_receive(&m->l.pp, before(m), w.in + FORWARD, s->x, n);
  for (int i = 0; i < w.stage->nlayers; i++) {
    attention_forward(m, &m->layers[w.stage->at + i], &s->layers[i], s->x);
    mlp_forward(m, &m->layers[w.stage->at + i], &s->layers[i], s->x);
  }
  if (w.microbatch == 0) fault_at("forward");
  if (w.stage->last) return head_forward(m, s);
  s->sent_x = group_send(&m->l.pp, after(m), w.out + FORWARD, s->x, n);
  return 0;
}

static void backward(model *m, work w) {
  slot *s = w.s;
  int n = m->T * m->c.width;
  /* its gradients are final, layer by layer */
  const bool last = w.microbatch == m->microbatches - 1;
  group_finish(&m->l.pp, &s->sent_d);
  if (w.stage->last)
    head_backward(m, s);
  else
    group_receive(&m->l.pp, after(m), w.out + BACKWARD, s->d, n);
  for (int i = w.stage->nlayers - 1; i >= 0; i--) {
    layer_params *p = &m->layers[w.stage->at + i];
    mlp_backward(m, p, &s->layers[i], s->d);
    if (last) gradients_final(m, p->norm2.gain);
    attention_backward(m, p, &s->layers[i], s->d);
    if (last) gradients_final(m, p->norm1.gain);
  }
  if (w.microbatch == 0) fault_at("backward");
  if (w.stage->first)
    embed_backward(m, s);
  else
    s->sent_d = group_send(&m->l.pp, before(m), w.in + BACKWARD, s->d, n);
}

double pipeline_step(model *m, int64_t step) {
  double loss = 0;
  int all = m->microbatches * m->nchunks;
  weights_gather(m);
  memset(m->memory + m->nvalues, 0, m->nvalues * sizeof(real)); /* gradients */
  for (int i = 0; i < m->warmup; i++) loss += forward(m, step, nth(m, i, false));
  for (int i = m->warmup; i < all; i++) {
    loss += forward(m, step, nth(m, i, false));
    backward(m, nth(m, i - m->warmup, true));
  }
  for (int i = all - m->warmup; i < all; i++) backward(m, nth(m, i, true));
  gradients_final(m, m->params);
  for (int i = 0; i < m->nslots * m->nchunks; i++) {
    group_finish(&m->l.pp, &m->slots[i].sent_x);
    group_finish(&m->l.pp, &m->slots[i].sent_d);
  }
  return loss;
}

double pipeline_loss(model *m, double sum) {
  group_sum_double(&m->l.dp_cp, &sum, 1);
  group_spread(&m->l.pp, &sum, 1, m->l.pp.size - 1);
  return sum / ((double)m->c.batch * m->c.seq);
}
