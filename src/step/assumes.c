/* SPDX-License-Identifier: MIT
**
** assumes.c - calls that a GPU may have under way at the same time on two streams: nothing on the
** rank makes one wait for the other. Kernels of two streams start in any order, whatever the order
** of the calls, and nobody promises that those of two communicators progress side by side (NCCL's
** user guide, "Using multiple NCCL communicators concurrently"; nccl#195, #217, #522, #783). So the
** proof of such a step assumes that they fit on the GPU together, or start in one order on all
** ranks. The programs are walked once, loops at most twice: what a second round leaves behind, the
** later ones do, too.
*/
#include "step/step.h"

#include <stdlib.h>
#include <string.h>

/* Times are numbers of calls walked. known[s][t]: what is on stream t up to then is done before
** what follows on s. */
typedef struct knowledge {
  int64_t of[STEP_STREAMS_MAX];
} knowledge;

typedef struct walk {
  const mgrid_step *step;
  const step_program *program;
  mgrid_budget *budget;
  size_t nstreams, families;
  int64_t now;
  knowledge known[STEP_STREAMS_MAX];
  int64_t *last;       /* [nstreams * families]: the last call of a family on a stream */
  knowledge *over;     /* [families]: what the last call on a communicator knew, itself included */
  knowledge *recorded; /* [n]: what an event knows */
  bool *pairs;         /* [families * families] */
} walk;

static void learn(knowledge *to, const knowledge *from, size_t n) {
  for (size_t i = 0; i < n; i++)
    if (from->of[i] > to->of[i]) to->of[i] = from->of[i];
}

/* The family whose communicator a family uses. */
static int32_t assumes_leader_of(const mgrid_step *s, int32_t family) {
  return s->plan->shares[family] >= 0 ? s->plan->shares[family] : family;
}

static void assumes_put_call(walk *w, const step_node *n) {
  const mgrid_step *s = w->step;
  int32_t family = s->slot[n->slot].entry, leader = assumes_leader_of(s, family);
  size_t on = n->stream;
  knowledge *mine = &w->known[on];
  if (s->plan->content.entry[family].family->max_size < 2) return; /* nothing travels */
  w->now++;
  /* calls on one communicator are in the order of issue */
  learn(mine, &w->over[leader], w->nstreams);
  for (size_t t = 0; t < w->nstreams; t++)
    for (size_t f = 0; f < w->families && t != on; f++)
      if (w->last[t * w->families + f] > mine->of[t] && assumes_leader_of(s, (int32_t)f) != leader)
        w->pairs[f < (size_t)family ? f * w->families + (size_t)family
                                    : (size_t)family * w->families + f] = true;
  mgrid_spend(w->budget, (int64_t)(w->nstreams * w->families) / 8);
  mine->of[on] = w->last[on * w->families + (size_t)family] = w->now;
  w->over[leader] = *mine;
}

static void put_order(walk *w, uint32_t at) {
  const step_node *n = &w->program->node[at];
  if (n->kind == STEP_HOST_WAIT) {
    knowledge from = w->known[n->other];
    for (size_t i = 0; i < w->nstreams; i++) learn(&w->known[i], &from, w->nstreams);
  } else {
    learn(&w->known[n->stream], n->listed ? &w->recorded[n->other] : &w->known[n->other],
          w->nstreams);
  }
}

static void walk_block(walk *w, uint32_t from, uint32_t end) {
  for (uint32_t i = from; i < end && mgrid_spend(w->budget, 1); i = w->program->node[i].end) {
    const step_node *n = &w->program->node[i];
    step_role role = mgrid_step_rows[n->kind].role;
    if (n->kind == STEP_LOOP) {
      for (int64_t round = 0; round < n->number && round < 2; round++) walk_block(w, i + 1, n->end);
    } else if (role == STEP_BLOCK) {
      walk_block(w, i + 1, n->end);
    } else if (role == STEP_TOGETHER || role == STEP_POINT) {
      assumes_put_call(w, n);
    } else if (n->kind == STEP_EVENT) {
      w->recorded[i] = w->known[n->stream];
    } else if (role == STEP_ORDER) {
      put_order(w, i);
    }
  }
}

static bool starts_in_order(const mgrid_step *s, size_t family) {
  return s->plan->content.entry[family].choice->nccl.number[MGRID_NCCL_LAUNCH_ORDER_IMPLICIT] == 1;
}

/* Whether the recipe lists both families as used at once. */
static bool is_allowed(const mgrid_step *s, size_t a, size_t b) {
  const mgrid_content *c = &s->plan->content;
  for (size_t i = 0; i < c->nconcurrent; i++) {
    int has = 0;
    for (size_t j = 0; j < c->concurrent[i].n; j++)
      has |= (strcmp(c->concurrent[i].name[j], c->entry[a].name) == 0)
             | (strcmp(c->concurrent[i].name[j], c->entry[b].name) == 0) << 1;
    if (has == 3) return true;
  }
  return starts_in_order(s, a) && starts_in_order(s, b);
}

mgrid_status mgrid_step_assumptions(const mgrid_step *s, step_budget *b, step_verdict *v,
                                    mgrid_error *err) {
  size_t families = s->plan->content.nentries;
  walk w = { .step = s, .budget = &b->work, .families = families };
  w.pairs = calloc(families * families + 1, sizeof *w.pairs);
  w.last = malloc((STEP_STREAMS_MAX * families + 1) * sizeof *w.last);
  w.over = malloc((families + 1) * sizeof *w.over);
  bool done = w.pairs && w.last && w.over;
  for (size_t i = 0; i < s->nprograms && done; i++) {
    if (s->program[i].nstreams < 2) continue;
    w.program = &s->program[i], w.nstreams = s->program[i].nstreams, w.now = 0;
    memset(w.known, 0, sizeof w.known);
    memset(w.last, 0, STEP_STREAMS_MAX * families * sizeof *w.last);
    memset(w.over, 0, families * sizeof *w.over);
    w.recorded = calloc(s->program[i].n + 1, sizeof *w.recorded);
    done = w.recorded != NULL;
    if (done) walk_block(&w, 0, (uint32_t)s->program[i].n);
    free(w.recorded);
  }
  for (size_t i = 0; done && i < families * families && v->nassumes < STEP_ASSUMES_MAX; i++)
    if (w.pairs[i] && !is_allowed(s, i / families, i % families))
      v->assumes[v->nassumes++] = (step_pair){ (int32_t)(i / families), (int32_t)(i % families) };
  free(w.pairs);
  free(w.last);
  free(w.over);
  if (!done) return mgrid_oom(err);
  return b->work.exhausted ? mgrid_step_budget_spent(b, err) : MGRID_OK;
}
