/* SPDX-License-Identifier: MIT
**
** run.c - execute the program of this rank for real, over the communicators of a state: every call with as many bytes as
** it says, times a scale, in buffers that are used again. A group of one rank sends nothing.
*/
#include "step/run.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { PARTS_MAX = 64, ELEMENT = sizeof(float) };

typedef struct runner {
  const mgrid_step   *s;
  const step_program *p;
  mgrid_state        *state;
  const step_how     *how;
  step_spent         *spent; /* [nentries] */
  int64_t             rank;
  void               *send, *recv;
  mgrid_error        *err;
} runner;

/* The group of an entry: a handle of the state. */
static const mgrid_group *group_of(const runner *r, const step_node *n) {
  const step_slot *slot = &r->s->slot[n->slot];
  return &r->state->group[r->state->first[slot->entry] + (size_t)slot->nth];
}

static size_t elements(const runner *r, int64_t bytes) {
  double scaled = (double)bytes * r->how->scale / ELEMENT;
  return scaled < 1 ? bytes > 0 : (size_t)scaled;
}

/* Each member's part of a buffer; 1 element at least. */
static size_t each(size_t all, int64_t members) {
  size_t n = all / (size_t)members;
  return n || !all ? n : 1;
}

static mgrid_work work_of(const runner *r, const step_node *n, int64_t members) {
  size_t     all = elements(r, n->bytes);
  mgrid_work w = {
    .type = MGRID_FLOAT, .reduction = MGRID_SUM, .send = r->send, .recv = r->recv, .to = -1, .from = -1
  };
  w.count = all, w.root = n->number;
  switch (n->kind) {
  case STEP_REDUCE: w.rooted = true; /* fall through */
  case STEP_ALL_REDUCE: w.call = MGRID_ALLREDUCE; break;
  case STEP_GATHER: w.rooted = true; /* fall through */
  case STEP_ALL_GATHER: w.call = MGRID_ALLGATHER, w.count = each(all, members); break;
  case STEP_SCATTER: w.rooted = true; /* fall through */
  case STEP_ALL_TO_ALL: w.call = MGRID_ALL_TO_ALL, w.count = each(all, members); break;
  case STEP_REDUCE_SCATTER: w.call = MGRID_REDUCE_SCATTER, w.count = each(all, members); break;
  case STEP_BROADCAST: w.call = MGRID_BROADCAST; break;
  case STEP_SEND: w.call = MGRID_SENDRECV, w.to = n->number; break;
  case STEP_RECV: w.call = MGRID_SENDRECV, w.from = n->number; break;
  default: w.call = MGRID_BARRIER; break;
  }
  return w;
}

/* ------------------------------------------------------------------ compute */

static void sleep_for(double seconds) {
  struct timespec t = { (time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9) };
  nanosleep(&t, NULL);
}

/* Multiply small matrices until so many operations are done. */
static void multiply(double flops) {
  enum { N = 48 };
  float          a[N][N] = { { 1 } }, b[N][N] = { { 1 } }, c[N][N] = { { 0 } };
  volatile float kept = 0; /* or the compiler would leave it out */
  for (double done = 0; done < flops; done += 2.0 * N * N * N)
    for (int i = 0; i < N; i++)
      for (int k = 0; k < N; k++)
        for (int j = 0; j < N; j++) c[i][j] += a[i][k] * b[k][j];
  kept = c[0][0];
  (void)kept;
}

static void compute(const runner *r, const step_node *n) {
  if (r->how->compute == STEP_SLEEP) sleep_for((n->seconds + n->flops / r->how->flops) * r->how->scale);
  if (r->how->compute == STEP_GEMM) {
    if (n->seconds > 0) sleep_for(n->seconds * r->how->scale);
    multiply(n->flops * r->how->scale);
  }
}

/* -------------------------------------------------------------------- calls */

/* Say where this rank was, at the end of an error. */
static mgrid_status failed(const runner *r, const step_node *n, mgrid_error *own) {
  mgrid_text t = { 0 };
  mgrid_step_node_text(r->s, n, &t);
  mgrid_error_reword(own, "%.700s: rank %lld in %s %s:%d of the step", own->message, (long long)r->rank,
                     mgrid_text_chars(&t), r->s->word[n->file], n->line);
  mgrid_text_free(&t);
  return mgrid_error_pass(r->err, own);
}

/* Make the calls of an entry: one, or all of its block. */
static mgrid_status call(const runner *r, uint32_t at) {
  const step_node *n = &r->p->node[at];
  mgrid_shared    *comm[PARTS_MAX];
  mgrid_work       work[PARTS_MAX];
  const step_node *first = NULL;
  mgrid_error      own = MGRID_ERROR_INIT;
  size_t           k = 0;
  for (uint32_t i = at; i < n->end; i++) {
    const step_node *q = &r->p->node[i];
    if (q->slot < 0) continue;
    const mgrid_group *g = group_of(r, q);
    if (g->size == 1) continue;
    if (k == PARTS_MAX) return mgrid_fail(r->err, MGRID_LIMIT, "a group of a step has %d calls at most", PARTS_MAX);
    if (!mgrid_group_native(g))
      return mgrid_fail(r->err, MGRID_UNSUPPORTED,
                        "the family %s of the step has no communicator: it is lazy, or of backend none", g->name);
    comm[k] = g->comm, work[k] = work_of(r, q, g->size);
    if (!first) first = q;
    k++;
  }
  if (k == 0) return MGRID_OK;
  double       begun = mgrid_now();
  mgrid_status s = mgrid_pool_together(r->state->backend, k, comm, work, r->how->timeout, &own);
  double       took = mgrid_now() - begun;
  if (s) return failed(r, n, &own);
  for (uint32_t i = at; i < n->end; i++) {
    const step_node *q = &r->p->node[i];
    if (q->slot < 0 || group_of(r, q)->size == 1) continue;
    step_spent *to = &r->spent[r->s->slot[q->slot].entry];
    to->calls++;
    to->bytes += (double)q->bytes;
    to->seconds += took / (double)k;
  }
  return MGRID_OK;
}

static mgrid_status execute(const runner *r, uint32_t from, uint32_t end) {
  mgrid_status s = MGRID_OK;
  for (uint32_t i = from; i < end && !s; i = r->p->node[i].end) {
    const step_node *n = &r->p->node[i];
    if (n->kind == STEP_COMPUTE) compute(r, n);
    for (int64_t k = 0; n->kind == STEP_LOOP && k < n->number && !s; k++) s = execute(r, i + 1, n->end);
    if (n->slot >= 0 || n->kind == STEP_GROUP || n->kind == STEP_SENDRECV) s = call(r, i);
  }
  return s;
}

/* ---------------------------------------------------------------------- run */

/* The most elements of a call; those of parts are rounded up. */
static size_t most_elements(const runner *r) {
  size_t most = 1;
  for (uint32_t i = 0; i < r->p->n; i++) {
    const step_node *n = &r->p->node[i];
    if (n->slot < 0) continue;
    size_t all = elements(r, n->bytes) + (size_t)group_of(r, n)->size;
    if (all > most) most = all;
  }
  return most;
}

mgrid_status mgrid_step_execute(const mgrid_step *s, mgrid_state *state, const step_how *how, step_spent *spent,
                                double *seconds, mgrid_error *err) {
  mgrid_backend *b = state->backend;
  mgrid_error    own = MGRID_ERROR_INIT;
  int64_t        rank = mgrid_backend_rank(b);
  runner         r = { s, &s->program[s->class[s->of[rank]].program], state, how, spent, rank, NULL, NULL, &own };
  memset(spent, 0, s->plan->content.nentries * sizeof *spent);
  size_t bytes = most_elements(&r) * ELEMENT;
  r.send = b->ops->buffer_new(b, b->kind, bytes, &own);
  if (r.send) r.recv = b->ops->buffer_new(b, b->kind, bytes, &own);
  mgrid_status status = mgrid_verdict(b, r.recv ? MGRID_OK : MGRID_NO_MEMORY, &own, &own);
  double       begun = mgrid_now();
  for (int64_t i = 0; i < how->steps && !status; i++) status = execute(&r, 0, (uint32_t)r.p->n);
  *seconds = mgrid_now() - begun;
  if (!status || status == MGRID_NO_MEMORY) {
    if (r.send) b->ops->buffer_free(b, b->kind, r.send);
    if (r.recv) b->ops->buffer_free(b, b->kind, r.recv);
  }
  return status ? mgrid_error_pass(err, &own) : MGRID_OK;
}
