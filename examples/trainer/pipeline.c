/* SPDX-License-Identifier: MIT
**
** pipeline.c - one step: the microbatches through the stages, forward and backward.
**
** One forward, one backward (1F1B): a stage lets as many microbatches in as there are stages
** after it, then takes turns, then lets the rest out. At most that many and one are in flight,
** each in a slot of its own. Sends do not wait: what they send stays in the slot, and is long
** received when the slot is used again.
*/
#include "model.h"

#include <string.h>

enum { FORWARD = 0, BACKWARD = 1 }; /* tags: 2 x microbatch + direction */

static slot *slot_of(model *m, int microbatch) { return &m->slots[microbatch % m->nslots]; }

static void load(model *m, slot *s, int64_t step, int microbatch) {
  int sample = m->l.dp.rank * m->samples + microbatch * m->b;
  for (int i = 0; i < m->b; i++)
    data_sample(m->text, m->length, &m->c, step, sample + i, m->l.cp.rank * m->s, m->s, s->symbols + i * m->s,
                s->targets + i * m->s);
}

static double forward(model *m, int64_t step, int microbatch) {
  slot *s = slot_of(m, microbatch);
  int   n = m->T * m->c.width;
  group_sent(&m->l.pp, &s->sent_x);
  if (m->first || m->last) load(m, s, step, microbatch);
  if (m->first) embed_forward(m, s);
  else group_receive(&m->l.pp, m->l.pp.rank - 1, 2 * microbatch + FORWARD, s->x, n);
  for (int i = 0; i < m->nlayers; i++) {
    attention_forward(m, &m->layers[i], &s->layers[i], s->x);
    mlp_forward(m, &m->layers[i], &s->layers[i], s->x);
  }
  if (m->last) return head_forward(m, s);
  s->sent_x = group_send(&m->l.pp, m->l.pp.rank + 1, 2 * microbatch + FORWARD, s->x, n);
  return 0;
}

static void backward(model *m, int microbatch) {
  slot *s = slot_of(m, microbatch);
  int   n = m->T * m->c.width;
  group_sent(&m->l.pp, &s->sent_d);
  if (m->last) head_backward(m, s);
  else group_receive(&m->l.pp, m->l.pp.rank + 1, 2 * microbatch + BACKWARD, s->d, n);
  for (int i = m->nlayers - 1; i >= 0; i--) {
    mlp_backward(m, &m->layers[i], &s->layers[i], s->d);
    attention_backward(m, &m->layers[i], &s->layers[i], s->d);
  }
  if (m->first) embed_backward(m, s);
  else s->sent_d = group_send(&m->l.pp, m->l.pp.rank - 1, 2 * microbatch + BACKWARD, s->d, n);
}

double pipeline_step(model *m, int64_t step) {
  double loss = 0;
  memset(m->memory + m->nvalues, 0, m->nvalues * sizeof(real)); /* gradients */
  for (int i = 0; i < m->warmup; i++) loss += forward(m, step, i);
  for (int i = m->warmup; i < m->microbatches; i++) {
    loss += forward(m, step, i);
    backward(m, i - m->warmup);
  }
  for (int i = m->microbatches - m->warmup; i < m->microbatches; i++) backward(m, i);
  for (int i = 0; i < m->nslots; i++) {
    group_sent(&m->l.pp, &m->slots[i].sent_x);
    group_sent(&m->l.pp, &m->slots[i].sent_d);
  }
  return loss;
}

double pipeline_loss(model *m, double sum) {
  group_sum_double(&m->l.dp_cp, &sum, 1);
  group_spread(&m->l.pp, &sum, 1, m->l.pp.size - 1);
  return sum / ((double)m->c.batch * m->c.seq);
}
