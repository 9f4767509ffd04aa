/* SPDX-License-Identifier: MIT
**
** run_streams.c - execute a program on GPU streams, in the order of its text. This rank puts each
** call into its stream and goes on at once; the call begins when all earlier operations of the
** stream have ended. A step ends when all streams have ended.
*/
#include "step/run.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A rank waits when so many calls and computes are in one stream. CUDA's own queue of kernels has
** about this length. */
enum { FLYING_MAX = 1024, ENDED_MAX = 64 };

bool mgrid_step_streams(const step_runner *r) { return r->state->backend->ops->streams != NULL; }

mgrid_status mgrid_step_streams_open(step_runner *r) {
  mgrid_backend *b = r->state->backend;
  size_t marks = r->p->nstreams; /* one mark for each stream, then one for each event */
  r->stuck = (uint32_t)r->p->n;
  r->reached = calloc(r->s->nslots + 1, sizeof *r->reached);
  r->mark = calloc(r->p->n + 1, sizeof *r->mark);
  if (!r->reached || !r->mark) return mgrid_oom(r->err);
  for (uint32_t i = 0; i < r->p->n; i++)
    if (r->p->node[i].kind == STEP_EVENT) r->mark[i] = (uint32_t)marks++;
  return b->ops->streams->open(b, r->p->nstreams ? r->p->nstreams : 1, marks, r->err);
}

mgrid_status mgrid_step_streams_zero(step_runner *r) {
  return r->state->backend->ops->streams->zero(r->state->backend, r->err);
}

/* ------------------------------------------------------------------- waiting */

/* Count the calls of an entry as ended. */
static void run_streams_count(step_runner *r, uint32_t at) {
  for (uint32_t i = at; i < r->p->node[at].end; i++)
    if (r->p->node[i].slot >= 0) r->reached[r->p->node[i].slot]++;
}

/* Take the calls that have ended in a stream. *in: the first entry that has not ended, or the
** program's n. */
static mgrid_status run_streams_take(step_runner *r, int stream, size_t *taken, uint32_t *in) {
  mgrid_backend *b = r->state->backend;
  mgrid_timed_call ended[ENDED_MAX];
  uint64_t first = UINT64_MAX;
  mgrid_status s = b->ops->streams->look(b, stream, ENDED_MAX, ended, taken, &first, r->err);
  *in = first == UINT64_MAX ? (uint32_t)r->p->n : (uint32_t)first;
  if (s) r->stuck = *in;
  r->flying[stream] -= (int64_t)*taken;
  for (size_t i = 0; i < *taken; i++) {
    mgrid_step_spend(r, (uint32_t)ended[i].tag, ended[i].begun, ended[i].seconds);
    run_streams_count(r, (uint32_t)ended[i].tag);
  }
  return s;
}

/* Return the seconds that an entry may take: the timeout for a call, and more for a compute. */
static double patience(const step_runner *r, uint32_t in) {
  const step_node *n = in < r->p->n ? &r->p->node[in] : NULL;
  return r->how->timeout + (n && n->kind == STEP_COMPUTE ? mgrid_step_sleeps(r, n) : 0);
}

typedef struct step_wait {
  step_runner *r;
  int from, to; /* the streams from `from` to to - 1 */
  int64_t most; /* calls that may be left in each stream */
  double since; /* when a call last ended */
} step_wait;

/* An mgrid_look. The first call of a stream may wait for the first call of another stream. So every
** stream may take as long as the slowest. */
static mgrid_outcome few_are_left(void *ud) {
  step_wait *w = ud;
  bool busy = false;
  double longest = 0;
  uint32_t first = 0;
  for (int i = 0; i < w->r->p->nstreams; i++) {
    size_t taken = 0;
    uint32_t in = 0;
    if (w->r->flying[i] == 0) continue;
    if (run_streams_take(w->r, i, &taken, &in)) return (mgrid_outcome)w->r->err->status;
    if (taken) w->since = mgrid_now();
    if (w->r->flying[i] > 0) longest = fmax(longest, patience(w->r, in));
    if (i < w->from || i >= w->to || w->r->flying[i] <= w->most) continue;
    if (!busy) first = in;
    busy = true;
  }
  if (!busy || mgrid_now() - w->since <= longest) return busy ? MGRID_NOT_YET : MGRID_OK;
  w->r->stuck = first;
  return mgrid_fail(w->r->err, MGRID_TIMED_OUT, "a call of the step did not end within %g seconds",
                    w->r->how->timeout);
}

/* Wait until at most `most` calls are left in a stream; -1: in each stream. */
static mgrid_status run_streams_wait_for(step_runner *r, int stream, int64_t most) {
  step_wait w = { r, stream < 0 ? 0 : stream, stream < 0 ? r->p->nstreams : stream + 1, most,
                  mgrid_now() };
  int64_t who = -1;
  mgrid_outcome s = mgrid_wait(few_are_left, &w, HUGE_VAL, r->state->backend->carrier, &who);
  if (s != MGRID_GAVE_UP) return (mgrid_status)s;
  return mgrid_fail(r->err, MGRID_OTHER_RANK, "rank %" PRId64 " gave up", who);
}

mgrid_status mgrid_step_streams_end(step_runner *r) { return run_streams_wait_for(r, -1, 0); }

/* -------------------------------------------------------------------- entries */

static mgrid_status begin_calls(step_runner *r, uint32_t at) {
  step_calls c;
  const step_node *n = &r->p->node[at];
  mgrid_status s = mgrid_step_calls_of(r, at, &c);
  if (s || c.n == 0) return s;
  if (r->flying[n->stream] >= FLYING_MAX) s = run_streams_wait_for(r, n->stream, FLYING_MAX - 1);
  if (s) return s;
  mgrid_outcome o = mgrid_pool_begin(r->state->backend, n->stream, c.n, c.comm, c.work, at,
                                     r->how->timeout, r->err);
  if (o) r->stuck = at, r->connects = true;
  if (o == MGRID_GAVE_UP) return MGRID_OTHER_RANK;
  if (!o) r->flying[n->stream]++;
  return (mgrid_status)o;
}

static mgrid_status begin_compute(step_runner *r, uint32_t at) {
  const step_node *n = &r->p->node[at];
  mgrid_backend *b = r->state->backend;
  double seconds = r->how->sleeps ? mgrid_step_sleeps(r, n) : 0;
  if (!(seconds > 0)) return MGRID_OK;
  mgrid_status s = r->flying[n->stream] >= FLYING_MAX
                       ? run_streams_wait_for(r, n->stream, FLYING_MAX - 1)
                       : MGRID_OK;
  if (!s) s = b->ops->streams->sleep(b, n->stream, seconds, at, r->err);
  if (!s) r->flying[n->stream]++;
  return s;
}

/* Let this stream wait for another stream or for an event. */
static mgrid_status order(step_runner *r, const step_node *n) {
  mgrid_backend *b = r->state->backend;
  if (n->listed) return b->ops->streams->after(b, n->stream, r->mark[n->other], r->err);
  mgrid_status s = b->ops->streams->mark(b, n->other, (size_t)n->other, r->err);
  return s ? s : b->ops->streams->after(b, n->stream, (size_t)n->other, r->err);
}

mgrid_status mgrid_step_streams_begin(step_runner *r, uint32_t at) {
  const step_node *n = &r->p->node[at];
  mgrid_backend *b = r->state->backend;
  switch (n->kind) {
  case STEP_ALLOC:
  case STEP_FREE:
  case STEP_MARK: return MGRID_OK;
  case STEP_COMPUTE: return begin_compute(r, at);
  case STEP_EVENT: return b->ops->streams->mark(b, n->stream, r->mark[at], r->err);
  case STEP_WAIT: return order(r, n);
  case STEP_HOST_WAIT: return run_streams_wait_for(r, n->other, 0);
  default: return begin_calls(r, at);
  }
}

/* ------------------------------------------------------------------- the end */

/* What each rank tells the others: the entry that did not end, and the number of calls that it has
** reached in each slot. */
typedef struct brought {
  size_t width;
  uint64_t *all; /* [world x width] */
} brought;

static uint64_t told(const brought *x, int64_t rank, size_t i) {
  return x->all[(size_t)rank * x->width + i];
}

/* Return a member of the call's group that has not reached the call; for a send or a receive the
** other member; -1: all members have reached it. */
static int64_t missing(const step_runner *r, const brought *x, int64_t rank, const step_node *n) {
  const step_slot *slot = &r->s->slot[n->slot];
  const mgrid_family *f = r->s->plan->content.entry[slot->entry].family;
  int64_t group = -1, position = -1;
  if (!mgrid_family_locate(f, rank, slot->nth, &group, &position)) return -1;
  if (mgrid_step_rows[n->kind].role == STEP_POINT) return mgrid_family_rank(f, group, n->number);
  for (int64_t i = 0; i < mgrid_family_size(f, group); i++) {
    int64_t who = mgrid_family_rank(f, group, i);
    if (told(x, who, 1 + (size_t)n->slot) < told(x, rank, 1 + (size_t)n->slot)) return who;
  }
  return -1;
}

/* Append who waits for whom, beginning with the lowest rank whose call did not end. */
static void tell_stuck(const step_runner *r, const brought *x, mgrid_text *t) {
  step_verdict v = { .told = STEP_CYCLE };
  int64_t world = r->s->plan->content.world, rank = 0;
  while (rank < world && told(x, rank, 0) == UINT64_MAX) rank++;
  while (rank < world && v.n < STEP_WAITING_MAX && told(x, rank, 0) != UINT64_MAX) {
    int32_t number = r->s->class[r->s->of[rank]].program;
    const step_program *p = &r->s->program[number];
    uint32_t at = (uint32_t)told(x, rank, 0), part = at;
    int64_t next = -1;
    for (size_t i = 0; i < v.n; i++)
      if (v.waiting[i].rank == rank) rank = world; /* the ranks wait in a cycle */
    if (rank == world || at >= p->n) break;
    for (uint32_t i = at; i < p->node[at].end && next < 0; i++)
      if (p->node[i].slot >= 0) next = missing(r, x, rank, &p->node[part = i]);
    v.waiting[v.n++] = (step_waiting){ rank, next, number, part, false };
    rank = next < 0 ? world : next;
  }
  mgrid_step_verdict_text(r->s, &v, t);
}

/* Make the error about calls that did not end, the same on all ranks. Collective. */
static mgrid_status gather_stuck(step_runner *r, bool stuck) {
  mgrid_backend *b = r->state->backend;
  size_t slots = r->s->nslots;
  brought x = { slots + 1, calloc((size_t)mgrid_backend_world(b) * (slots + 1), sizeof(uint64_t)) };
  uint64_t *mine = calloc(slots + 1, sizeof *mine);
  mgrid_error own = MGRID_ERROR_INIT;
  mgrid_text t = { 0 };
  mgrid_status s = mgrid_verdict(b, mine && x.all ? MGRID_OK : MGRID_NO_MEMORY, NULL, &own);

  if (!s) {
    mine[0] = stuck && r->stuck < r->p->n ? r->stuck : UINT64_MAX;
    memcpy(mine + 1, r->reached, slots * sizeof *mine);
    s = b->ops->allgather(b, mine, x.all, x.width * sizeof *mine, &own);
  }
  if (!s) tell_stuck(r, &x, &t);
  if (!s)
    s = mgrid_fail(&own, MGRID_TIMED_OUT,
                   "after %g seconds calls of the step had not ended: %.800s", r->how->timeout,
                   mgrid_text_chars(&t));
  mgrid_text_free(&t);
  free(mine);
  free(x.all);
  mgrid_error_clear(r->err);
  return mgrid_error_pass(r->err, &own);
}

/* The first call of each stream has not ended, but this rank has reached it: count it. */
static void count_first(step_runner *r) {
  mgrid_timed_call ended[1];
  for (int i = 0; i < r->p->nstreams; i++) {
    uint64_t in = UINT64_MAX;
    size_t n = 0;
    if (r->flying[i]
        && !r->state->backend->ops->streams->look(r->state->backend, i, 0, ended, &n, &in, NULL)
        && in < r->p->n)
      run_streams_count(r, (uint32_t)in);
  }
  if (r->stuck < r->p->n && r->connects) run_streams_count(r, r->stuck);
}

mgrid_status mgrid_step_streams_close(step_runner *r, mgrid_status mine) {
  mgrid_backend *b = r->state->backend;
  bool late = mine == MGRID_TIMED_OUT || mine == MGRID_OTHER_RANK;
  mgrid_outcome failed = late ? MGRID_OK : (mgrid_outcome)mine;
  uint64_t words[2] = { mgrid_verdict_of(b, failed), !late };
  if (late) count_first(r);
  b->ops->streams->close(b, mine != MGRID_OK);
  mgrid_status s = mgrid_verdict_min(b, words, 2, mine, r->err, r->err);
  if (!s) s = mgrid_verdict_tell(b, words[0], failed, r->err, r->err);
  if (!s && !words[1]) s = gather_stuck(r, late);
  free(r->reached);
  free(r->mark);
  return s;
}
