/* SPDX-License-Identifier: MIT
**
** run.c - execute the program of this rank for real, over the communicators of a state: every call
** with as many bytes as it says, times a scale, in buffers that are used again. A group of one rank
** sends nothing.
*/
#include "step/run.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { ELEMENT = sizeof(float) };

/* The group of an entry: a handle of the state. */
static const mgrid_group *group_of(const step_runner *r, const step_node *n) {
  const step_slot *slot = &r->s->slot[n->slot];
  return &r->state->group[r->state->first[slot->entry] + (size_t)slot->nth];
}

static size_t elements(const step_runner *r, int64_t bytes) {
  double scaled = (double)bytes * r->how->scale / ELEMENT;
  return scaled < 1 ? bytes > 0 : (size_t)scaled;
}

/* Each member's part of a buffer; 1 element at least. */
static size_t run_each(size_t all, int64_t members) {
  size_t n = all / (size_t)members;
  return n || !all ? n : 1;
}

static mgrid_work work_of(const step_runner *r, const step_node *n, int64_t members,
                          const step_buffers *in) {
  size_t all = elements(r, n->bytes);
  mgrid_work w = { .type = MGRID_FLOAT,
                   .reduction = MGRID_SUM,
                   .send = in->send,
                   .recv = in->recv,
                   .to = -1,
                   .from = -1 };
  w.count = all, w.root = n->number;
  switch (n->kind) {
  case STEP_REDUCE: w.rooted = true; /* fall through */
  case STEP_ALL_REDUCE: w.call = MGRID_ALLREDUCE; break;
  case STEP_GATHER: w.rooted = true; /* fall through */
  case STEP_ALL_GATHER: w.call = MGRID_ALLGATHER, w.count = run_each(all, members); break;
  case STEP_SCATTER: w.rooted = true; /* fall through */
  case STEP_ALL_TO_ALL: w.call = MGRID_ALL_TO_ALL, w.count = run_each(all, members); break;
  case STEP_REDUCE_SCATTER: w.call = MGRID_REDUCE_SCATTER, w.count = run_each(all, members); break;
  case STEP_BROADCAST: w.call = MGRID_BROADCAST; break;
  case STEP_SEND: w.call = MGRID_SENDRECV, w.to = n->number; break;
  case STEP_RECV: w.call = MGRID_SENDRECV, w.from = n->number; break;
  default: w.call = MGRID_BARRIER; break;
  }
  return w;
}

/* ------------------------------------------------------------------ compute */

/* While a rank computes, it says that it is there. An error: other ranks are missing. */
static mgrid_outcome run_look(const step_runner *r) {
  size_t n = 0;
  return r->watch ? r->watch->look(r->state->backend, true, &n, NULL, r->err) : MGRID_OK;
}

static mgrid_outcome sleep_for(const step_runner *r, double seconds) {
  const double slice = 0.02;
  const double until = mgrid_now() + seconds;
  mgrid_outcome s = MGRID_OK;
  for (double left = seconds; left > 0 && !s; left = until - mgrid_now()) {
    double some = left < slice ? left : slice;
    struct timespec t = { 0, (long)(some * 1e9) };
    nanosleep(&t, NULL);
    s = run_look(r);
  }
  return s;
}

/* Let the host work until so many operations are done. */
static mgrid_outcome work(const step_runner *r, double flops) {
  mgrid_outcome s = MGRID_OK;
  while (flops > 0 && !s) {
    flops -= r->how->work(r->how->ud, flops);
    s = run_look(r);
  }
  return s;
}

double mgrid_step_sleeps(const step_runner *r, const step_node *n) {
  return (n->seconds + n->flops / r->how->flops) * r->how->scale;
}

static mgrid_outcome run_compute(const step_runner *r, uint32_t at) {
  const step_node *n = &r->p->node[at];
  double begun = mgrid_now();
  mgrid_outcome s = MGRID_OK;
  if (!r->how->sleeps && !r->how->work) return MGRID_OK;
  s = sleep_for(r, r->how->sleeps ? mgrid_step_sleeps(r, n) : n->seconds * r->how->scale);
  if (!s && r->how->work) s = work(r, n->flops * r->how->scale);
  mgrid_step_spend(r, at, begun - r->zero, mgrid_now() - begun);
  return s;
}

/* -------------------------------------------------------------------- calls */

/* Say where this rank was, at the end of an error. */
static void run_failed(const step_runner *r, const step_node *n, mgrid_error *own) {
  mgrid_text t = { 0 };
  mgrid_step_node_text(r->s, n, &t);
  mgrid_error_reword(own, "%.700s: rank %lld in %s %s:%d of the step", own->message,
                     (long long)r->rank, mgrid_text_chars(&t), r->s->word[n->file], n->line);
  mgrid_text_free(&t);
  mgrid_error_pass(r->err, own);
}

/* Whether the communicator is one of the carrier of the state's backend. */
static bool is_carried(const step_runner *r, const mgrid_shared *c) {
  return c->backend != r->state->backend->kind
         && strcmp(c->backend->name, r->state->backend->kind->name) != 0;
}

/* Where some all-to-all of the step has bytes by position, all are messages: what others send is
** not known here, but that none is larger than the buffer. */
static mgrid_status add_by_position(const step_runner *r, const step_node *n, const mgrid_group *g,
                                    const step_buffers *in, step_calls *out) {
  const char *at = r->s->word[n->name];
  if (mgrid_step_streams(r))
    return mgrid_fail(r->err, MGRID_UNSUPPORTED,
                      "%s of the step has bytes by position, line %d: that runs over MPI alone",
                      mgrid_step_rows[n->kind].name, n->line);
  if (out->n + 2 * (size_t)(g->size - 1) > MGRID_TOGETHER_MAX)
    return mgrid_fail(
        r->err, MGRID_LIMIT,
        "%s of the step has bytes by position, line %d: that runs in groups of %d at most",
        mgrid_step_rows[n->kind].name, n->line, MGRID_TOGETHER_MAX / 2 + 1);
  for (int64_t i = 0; i < g->size; i++) {
    char *end = NULL;
    int64_t bytes = n->listed ? strtoll(at, &end, 10) : n->bytes / g->size;
    mgrid_work w = { .call = MGRID_SENDRECV,
                     .type = MGRID_FLOAT,
                     .send = in->send,
                     .recv = in->recv,
                     .to = i,
                     .from = -1 };
    if (end) at = end + (*end == ',');
    if (i == g->position) continue;
    w.count = elements(r, bytes);
    out->comm[out->n] = g->comm, out->work[out->n++] = w;
    w.to = -1, w.from = i, w.count = r->room;
    out->comm[out->n] = g->comm, out->work[out->n++] = w;
  }
  return MGRID_OK;
}

mgrid_status mgrid_step_calls_of(const step_runner *r, uint32_t at, step_calls *out) {
  out->n = 0;
  for (uint32_t i = at; i < r->p->node[at].end; i++) {
    const step_node *q = &r->p->node[i];
    if (q->slot < 0) continue;
    const mgrid_group *g = group_of(r, q);
    if (g->size == 1) continue;
    if (out->n == MGRID_TOGETHER_MAX)
      return mgrid_fail(r->err, MGRID_LIMIT, "a group of a step has %d calls at most",
                        MGRID_TOGETHER_MAX);
    if (!mgrid_group_native(g))
      return mgrid_fail(r->err, MGRID_UNSUPPORTED,
                        "the family %s of the step has no communicator: it is of backend none",
                        g->name);
    const step_buffers *in = is_carried(r, g->comm) ? &r->carried : &r->own;
    if (q->kind == STEP_ALL_TO_ALL && r->by_position) {
      mgrid_status s = add_by_position(r, q, g, in, out);
      if (s) return s;
      continue;
    }
    out->comm[out->n] = g->comm;
    out->work[out->n++] = work_of(r, q, g->size, in);
  }
  return MGRID_OK;
}

static void add_span(step_spans *x, uint32_t node, double begun, double seconds) {
  x->full |= x->n == STEP_SPANS_MAX || !MGRID_ROOM(x->span, x->room, x->n + 1);
  if (!x->full) x->span[x->n++] = (step_span){ node, (float)seconds, begun };
}

void mgrid_step_spend(const step_runner *r, uint32_t at, double begun, double seconds) {
  double calls = 0;
  if (r->last && r->spans->on) add_span(r->spans, at, begun, seconds);
  for (int pass = 0; pass < 2; pass++)
    for (uint32_t i = at; i < r->p->node[at].end; i++) {
      const step_node *q = &r->p->node[i];
      if (q->slot < 0 || group_of(r, q)->size == 1) continue;
      step_spent *to = &r->spent[r->s->slot[q->slot].entry];
      if (pass == 0)
        calls++;
      else
        to->calls++, to->bytes += (double)q->bytes, to->seconds += seconds / calls;
    }
}

/* Make the calls of an entry, and wait for them. */
static mgrid_outcome run_call(const step_runner *r, uint32_t at) {
  step_calls c;
  mgrid_error own = MGRID_ERROR_INIT;
  mgrid_outcome s = mgrid_step_calls_of(r, at, &c);
  if (s || c.n == 0) return s;
  double begun = mgrid_now();
  s = mgrid_pool_together(r->state->backend, c.n, c.comm, c.work, r->how->timeout, &own);
  if (s) return run_failed(r, &r->p->node[at], &own), s;
  mgrid_step_spend(r, at, begun - r->zero, mgrid_now() - begun);
  return MGRID_OK;
}

static mgrid_outcome run_execute(step_runner *r, bool streams, uint32_t from, uint32_t end) {
  mgrid_outcome s = MGRID_OK;
  for (uint32_t i = from; i < end && !s; i = r->p->node[i].end) {
    const step_node *n = &r->p->node[i];
    for (int64_t k = 0; n->kind == STEP_LOOP && k < n->number && !s; k++)
      s = run_execute(r, streams, i + 1, n->end);
    if (n->kind == STEP_LOOP) continue;
    if (streams)
      s = mgrid_step_streams_begin(r, i);
    else if (n->kind == STEP_COMPUTE)
      s = run_compute(r, i);
    else if (n->slot >= 0 || n->kind == STEP_GROUP || n->kind == STEP_SENDRECV)
      s = run_call(r, i);
  }
  return s;
}

/* ---------------------------------------------------------------------- run */

static bool has_lists(const mgrid_step *s) {
  for (size_t i = 0; i < s->nprograms; i++)
    for (uint32_t k = 0; k < s->program[i].n; k++)
      if (s->program[i].node[k].kind == STEP_ALL_TO_ALL && s->program[i].node[k].listed)
        return true;
  return false;
}

/* The most elements of a call; those of parts are rounded up. Of calls by position those of any
** rank. */
static size_t most_elements(const step_runner *r) {
  size_t most = 1;
  for (size_t i = 0; i < r->s->nprograms && r->by_position; i++)
    for (uint32_t k = 0; k < r->s->program[i].n; k++) {
      const step_node *n = &r->s->program[i].node[k];
      if (n->kind == STEP_ALL_TO_ALL && elements(r, n->bytes) > most) most = elements(r, n->bytes);
    }
  for (uint32_t i = 0; i < r->p->n; i++) {
    const step_node *n = &r->p->node[i];
    if (n->slot < 0) continue;
    size_t all = elements(r, n->bytes) + (size_t)group_of(r, n)->size;
    if (all > most) most = all;
  }
  return most;
}

/* Allocate the buffers of each kind of communicator that the program uses. Local. */
static mgrid_status make_buffers(step_runner *r) {
  mgrid_backend *b = r->state->backend;
  size_t bytes = (r->room = most_elements(r)) * ELEMENT;
  for (uint32_t i = 0; i < r->p->n; i++) {
    const step_node *n = &r->p->node[i];
    if (n->slot < 0 || group_of(r, n)->size == 1 || !mgrid_group_native(group_of(r, n))) continue;
    const mgrid_shared *c = group_of(r, n)->comm;
    step_buffers *to = is_carried(r, c) ? &r->carried : &r->own;
    if (!to->send) to->send = b->ops->buffer_new(b, c->backend, bytes, r->err);
    if (to->send && !to->recv) to->recv = b->ops->buffer_new(b, c->backend, bytes, r->err);
    if (!to->recv) return r->err->status;
  }
  return MGRID_OK;
}

static void free_buffers(step_runner *r) {
  mgrid_backend *b = r->state->backend;
  step_buffers *all[] = { &r->own, &r->carried };
  mgrid_descriptor carried = b->carrier ? *b->carrier->kind : *b->kind;
  for (int i = 0; i < 2; i++) {
    if (all[i]->send) b->ops->buffer_free(b, i ? &carried : b->kind, all[i]->send);
    if (all[i]->recv) b->ops->buffer_free(b, i ? &carried : b->kind, all[i]->recv);
  }
}

/* Prepare to watch all ranks as in a move. Local. */
static mgrid_status run_watch(step_runner *r) {
  mgrid_backend *b = r->state->backend;
  double seconds = r->how->timeout;
  if (mgrid_step_streams(r) || !b->ops->transport || !b->ops->transport->watches) return MGRID_OK;
  mgrid_status s = b->ops->transport->open(b, &seconds, r->err);
  if (s) return s;
  r->watch = b->ops->transport;
  return r->watch->prepare(b, 0, r->err);
}

/* Execute the steps of this rank. */
static mgrid_outcome run_run(step_runner *r, bool streams) {
  mgrid_outcome s = r->watch ? r->watch->connect(r->state->backend, r->err) : MGRID_OK;
  for (int64_t i = 0; i < r->how->steps && !s; i++) {
    r->last = i + 1 == r->how->steps, r->zero = mgrid_now();
    if (streams) s = mgrid_step_streams_zero(r);
    if (!s) s = run_execute(r, streams, 0, (uint32_t)r->p->n);
    if (streams && !s) s = mgrid_step_streams_end(r);
  }
  return s;
}

mgrid_status mgrid_step_execute(const mgrid_step *s, mgrid_state *state, const step_how *how,
                                step_spent *spent, step_spans *spans, double *seconds,
                                mgrid_error *err) {
  mgrid_error own = MGRID_ERROR_INIT;
  mgrid_backend *b = state->backend;
  int64_t rank = mgrid_backend_rank(b);
  step_runner r = { .s = s,
                    .p = &s->program[s->class[s->of[rank]].program],
                    .state = state,
                    .how = how,
                    .spent = spent,
                    .spans = spans,
                    .rank = rank,
                    .by_position = has_lists(s),
                    .err = &own };
  bool streams = mgrid_step_streams(&r);
  mgrid_outcome status = make_buffers(&r);
  memset(spent, 0, s->plan->content.nentries * sizeof *spent);
  if (!status && streams) status = mgrid_step_streams_open(&r);
  if (!status) status = run_watch(&r);
  snprintf(b->doing, sizeof b->doing, "execute a step");
  status = mgrid_verdict(b, status, &own, &own);
  bool began = !status;
  double begun = mgrid_now();
  if (began) status = run_run(&r, streams);
  *seconds = mgrid_now() - begun;
  if (streams && began) status = mgrid_step_streams_close(&r, mgrid_status_of(status));
  if (r.watch && began) status = mgrid_verdict(b, status, &own, &own);
  if (r.watch) r.watch->close(b, began && status);
  if (!status || !began) free_buffers(&r); /* else calls may still use them */
  return status ? mgrid_error_pass(err, &own) : MGRID_OK;
}
