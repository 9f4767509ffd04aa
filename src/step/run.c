/* SPDX-License-Identifier: MIT
**
** run.c - execute the program of this rank over the communicators of a state. Every call moves as
** many bytes as the program says, times a scale, in buffers that are used again. Groups of one rank
** send nothing. At the end the measurements of all ranks are gathered into a report, which also has
** the planned numbers.
*/
#include "plan/json.h"
#include "step/run.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* ================================================================= one rank */

enum { ELEMENT = sizeof(float) };

/* Return the group of an entry, as a handle of the state. */
static const mgrid_group *group_of(const step_runner *r, const step_node *n) {
  const step_slot *slot = &r->s->slot[n->slot];
  return &r->state->group[r->state->first[slot->entry] + (size_t)slot->nth];
}

static size_t elements(const step_runner *r, int64_t bytes) {
  double scaled = (double)bytes * r->how->scale / ELEMENT;
  return scaled < 1 ? bytes > 0 : (size_t)scaled;
}

/* Return the elements of each member's part of a buffer, at least 1 unless the buffer is empty. */
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
  const step_operation *o = &mgrid_step_rows[n->kind];
  w.call = o->call, w.root = n->number;
  w.count = o->parts ? run_each(all, members) : all;
  w.rooted = o->rooted && o->call != MGRID_BROADCAST;
  if (n->kind == STEP_SEND) w.to = n->number;
  if (n->kind == STEP_RECV) w.from = n->number;
  return w;
}

/* ------------------------------------------------------------------ compute */

/* Called while this rank computes: tell the other ranks that it is alive. Fail if other ranks are
** silent. */
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

/* Let the host's function work until so many flops are done. */
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

/* Append this rank and its entry to an error, and pass the error on. */
static void run_failed(const step_runner *r, const step_node *n, mgrid_error *own) {
  mgrid_text t = { 0 };
  mgrid_step_node_text(r->s, n, &t);
  mgrid_error_reword(own, "%.700s: rank %lld in %s %s:%d of the step", own->message,
                     (long long)r->rank, mgrid_text_chars(&t), r->s->word[n->file], n->line);
  mgrid_text_free(&t);
  mgrid_error_pass(r->err, own);
}

/* Return whether the communicator belongs to the carrier of the state's backend. */
static bool is_carried(const step_runner *r, const mgrid_shared *c) {
  return c->backend != r->state->backend->kind
         && strcmp(c->backend->name, r->state->backend->kind->name) != 0;
}

/* If some all_to_all of the step gives bytes by position, messages replace every all_to_all. This
** rank does not know how many bytes another rank sends to it, so it receives up to the size of its
** buffer. */
static mgrid_status add_by_position(const step_runner *r, const step_node *n, const mgrid_group *g,
                                    const step_buffers *in, step_calls *out) {
  const char *at = r->s->word[n->name];

  if (mgrid_step_streams(r))
    return mgrid_fail(r->err, MGRID_UNSUPPORTED,
                      "%s of the step, line %d, has bytes by position, which run over MPI only",
                      mgrid_step_rows[n->kind].name, n->line);
  if (out->n + 2 * (size_t)(g->size - 1) > MGRID_TOGETHER_MAX)
    return mgrid_fail(
        r->err, MGRID_LIMIT,
        "%s of the step, line %d, has bytes by position, which run in groups of at most %d",
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

/* Make the calls of an entry, and wait for their end. */
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

/* Return the elements that a buffer needs for the largest call, whose parts may be rounded up. With
** bytes by position the largest all_to_all of any rank counts, too. */
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

/* Allocate buffers for each kind of communicator that the program uses. Local. */
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

/* Prepare to watch all ranks, as a move of tensors does. Local. */
static mgrid_status run_watch(step_runner *r) {
  mgrid_backend *b = r->state->backend;
  double seconds = r->how->timeout;
  if (mgrid_step_streams(r) || !b->ops->transport || !b->ops->transport->watches) return MGRID_OK;
  mgrid_status s = b->ops->transport->open(b, &seconds, r->err);
  if (s) return s;
  r->watch = b->ops->transport;
  return r->watch->prepare(b, 0, r->err);
}

/* Execute all steps on this rank. */
static mgrid_outcome run_steps(step_runner *r, bool streams) {
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
                    .p = mgrid_step_of_rank(s, rank),
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
  if (began) status = run_steps(&r, streams);
  *seconds = mgrid_now() - begun;
  if (streams && began) status = mgrid_step_streams_close(&r, mgrid_status_of(status));
  if (r.watch && began) status = mgrid_verdict(b, status, &own, &own);
  if (r.watch) r.watch->close(b, began && status);
  if (!status || !began) free_buffers(&r); /* otherwise calls may still use them */
  return status ? mgrid_error_pass(err, &own) : MGRID_OK;
}

/* ================================================================ all ranks */

/* ------------------------------------------------------------------- before */

/* Return whether all communicators of the step belong to the backend itself. */
static bool is_all_of(const mgrid_step *s, const mgrid_backend *b) {
  for (size_t i = 0; i < s->nslots; i++) {
    const mgrid_descriptor *d = s->plan->content.entry[s->slot[i].entry].choice->backend;
    if (d && d->native && strcmp(d->name, b->kind->name) != 0) return false;
  }
  return true;
}

/* Refuse a step that may wait forever. If all calls run on streams, the rules of NCCL apply, else
** the rules of MPI. */
static mgrid_status check_proved(const mgrid_step *s, const mgrid_backend *b, mgrid_error *err) {
  step_verdict v;
  bool streams = b->ops->streams && is_all_of(s, b);
  mgrid_status status = mgrid_step_conclude(s, streams ? STEP_NCCL : STEP_BLOCKING, 0, &v, err);
  if (status || v.told == STEP_PROVED) return status;
  mgrid_text why = { 0 };
  mgrid_step_verdict_text(s, &v, &why);
  status = mgrid_fail(
      err, MGRID_REFUSED,
      "the step is not proved under the rules of %s (%s), --unproved runs it: %.700s",
      streams ? "NCCL" : "MPI", mgrid_step_verdict_names[v.told], mgrid_text_chars(&why));
  mgrid_text_free(&why);
  return status;
}

static mgrid_status measure_check(const mgrid_step *s, const mgrid_state *state,
                                  const step_how *how, mgrid_error *err) {
  mgrid_backend *b = state->backend;
  if (!b->ops->together && !b->ops->streams)
    return mgrid_fail(err, MGRID_UNSUPPORTED, "a step runs over MPI or on GPUs, not over %s",
                      mgrid_backend_name(b));
  if (b->ops->streams && how->work)
    return mgrid_fail(err, MGRID_UNSUPPORTED,
                      "computes of a function run on the CPU; with %s use \"sleep\"",
                      mgrid_backend_name(b));
  if (state->partial)
    return mgrid_fail(err, MGRID_NOT_NOW,
                      "ranks of this state were lost, and a step needs all ranks");
  return how->unproved ? MGRID_OK : check_proved(s, b, err);
}

/* Create the lazy communicators of the step, as the first calls of a trainer would. Collective. */
static mgrid_status create_lazy(const mgrid_step *s, mgrid_state *state, mgrid_error *err) {
  mgrid_status status = MGRID_OK;
  for (size_t i = 0; i < s->nslots && !status; i++) {
    const mgrid_entry *e = &s->plan->content.entry[s->slot[i].entry];
    if (e->choice->asked.lazy) status = mgrid_state_create(state, e->name, err);
  }
  return status;
}

/* -------------------------------------------------------------------- report */

/* `all` has a row for each rank, with sums over all steps: its seconds; then the calls, bytes and
** seconds of each family. */
typedef struct gathered {
  const mgrid_step *s;
  size_t width;
  int64_t world;
  double *all;
  step_sum *sum; /* [nprograms * families]: the planned sums */
  double *scratch;
} gathered;

static double of(const gathered *g, int64_t rank, size_t family, int field) {
  return g->all[(size_t)rank * g->width + 1 + 3 * family + (size_t)field];
}

static int measure_ascending(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

/* Return as JSON what all ranks did in a family, per step; NULL: the family is not used, or
** memory is exhausted. */
static json_t *measure_family_json(const gathered *g, size_t family, double steps) {
  double calls = 0, bytes = 0, planned_calls = 0, planned_bytes = 0, worst = 0, least = HUGE_VAL;
  int64_t worst_rank = -1;
  size_t n = 0, families = (g->width - 1) / 3;
  for (int64_t r = 0; r < g->world; r++) {
    const step_sum *sum = &g->sum[(size_t)g->s->class[g->s->of[r]].program * families + family];
    if (sum->calls == 0) continue;
    double seconds = of(g, r, family, 2) / steps;
    planned_calls += (double)sum->calls, planned_bytes += (double)sum->bytes;
    calls += of(g, r, family, 0), bytes += of(g, r, family, 1);
    g->scratch[n++] = seconds;
    if (seconds < least) least = seconds;
    if (seconds >= worst) worst = seconds, worst_rank = r;
  }
  if (n == 0) return NULL;
  qsort(g->scratch, n, sizeof *g->scratch, measure_ascending);
  return mgrid_json_pack("{sfsfsfsfsfsfsIsf}", "calls", calls / steps, "bytes", bytes / steps,
                         "planned_calls", planned_calls, "planned_bytes", planned_bytes, "seconds",
                         g->scratch[n / 2], "worst", worst, "worst_rank", (json_int_t)worst_rank,
                         "waiting", worst - least);
}

/* Return the rank for which the others wait: it spends the least time in calls. -1: the ranks
** hardly differ. */
static int64_t late_rank(const gathered *g) {
  double least = HUGE_VAL, most = 0;
  int64_t late = -1;
  for (int64_t r = 0; r < g->world; r++) {
    double sum = 0;
    for (size_t i = 0; i < (g->width - 1) / 3; i++) sum += of(g, r, i, 2);
    if (sum < least) least = sum, late = r;
    if (sum > most) most = sum;
  }
  return most > 1.5 * least ? late : -1;
}

static json_t *report(const gathered *g, const step_how *how) {
  const mgrid_content *c = &g->s->plan->content;
  double steps = (double)how->steps;
  json_t *families = json_object();
  for (size_t i = 0; i < c->nentries; i++) {
    json_t *one = measure_family_json(g, i, steps);
    if (one) json_object_set_new(families, c->entry[i].name, one);
  }
  for (int64_t r = 0; r < g->world; r++) g->scratch[r] = g->all[(size_t)r * g->width] / steps;
  qsort(g->scratch, (size_t)g->world, sizeof *g->scratch, measure_ascending);
  int64_t late = late_rank(g);
  return mgrid_json_pack("{sIsIsfsfsfsoso}", "steps", (json_int_t)how->steps, "ranks",
                         (json_int_t)g->world, "scale", how->scale, "seconds",
                         g->scratch[g->world / 2], "worst", g->scratch[g->world - 1], "late",
                         late < 0 ? json_null() : json_integer(late), "families", families);
}

/* ---------------------------------------------------------------------- all */

static mgrid_status measure_prepare(gathered *g, step_spent **spent, double **mine,
                                    mgrid_error *err) {
  size_t families = g->s->plan->content.nentries;
  *spent = calloc(families + 1, sizeof **spent);
  *mine = calloc(g->width, sizeof **mine);
  g->all = calloc((size_t)g->world * g->width, sizeof *g->all);
  g->scratch = calloc((size_t)g->world + 1, sizeof *g->scratch);
  g->sum = calloc(g->s->nprograms * families + 1, sizeof *g->sum);
  if (!*spent || !*mine || !g->all || !g->scratch || !g->sum) return mgrid_oom(err);
  for (size_t i = 0; i < g->s->nprograms; i++)
    mgrid_step_sums(g->s, &g->s->program[i], &g->sum[i * families]);
  return MGRID_OK;
}

/* --------------------------------------------------------------------- spans */

enum { ROUND = 1024 }; /* spans that a rank gives in one exchange */

/* Add the spans of one exchange. A node beyond the program ends the spans of a rank. */
static void add_round(const mgrid_step *s, int64_t world, const step_span *all, step_records *to) {
  for (int64_t rank = 0; rank < world; rank++) {
    const step_program *p = mgrid_step_of_rank(s, rank);
    for (const step_span *x = all + rank * ROUND, *end = x + ROUND; x < end && x->node < p->n;
         x++) {
      to->full |= to->n == STEP_RECORDS_MAX || !MGRID_ROOM(to->record, to->room, to->n + 1);
      if (to->full) return;
      int64_t begun = mgrid_step_ticks(x->begun),
              ended = begun + mgrid_step_ticks((double)x->seconds);
      to->record[to->n++] =
          (step_record){ (int32_t)rank, p->node[x->node].stream, x->node, 0, begun, begun, ended };
    }
  }
}

/* Collect the spans of all ranks into *to; NULL: drop them. Collective, also for a rank that has
** failed with *err. */
static mgrid_status gather_spans(const mgrid_step *s, mgrid_backend *b, const step_spans *mine,
                                 step_records *to, mgrid_error *err) {
  int64_t world = mgrid_backend_world(b);
  step_span *part = calloc(ROUND, sizeof *part), *all = calloc((size_t)world * ROUND, sizeof *all);
  /* the minimum of this number over ranks tells the largest number of spans */
  uint64_t left = UINT64_MAX - mine->n;
  if (!err->status && !(part && all)) mgrid_oom(err);
  mgrid_status status = mgrid_verdict(b, err->status, err, err);
  if (!status) status = b->ops->allreduce_min(b, &left, 1, err);
  for (size_t at = 0; at < UINT64_MAX - left && !status; at += ROUND) {
    size_t n = at < mine->n ? mine->n - at : 0;
    memset(part, 0xFF, ROUND * sizeof *part);
    if (n) memcpy(part, mine->span + at, (n < ROUND ? n : ROUND) * sizeof *part);
    status = b->ops->allgather(b, part, all, ROUND * sizeof *part, err);
    if (!status && to) add_round(s, world, all, to);
  }
  if (to) to->full |= mine->full;
  free(part);
  free(all);
  return status;
}

mgrid_status mgrid_step_measure(const mgrid_step *s, mgrid_state *state, const step_how *how,
                                step_records *last, json_t **out, mgrid_error *err) {
  mgrid_backend *b = state->backend;
  mgrid_error own = MGRID_ERROR_INIT;
  gathered g = { s, 1 + 3 * s->plan->content.nentries, mgrid_backend_world(b), NULL, NULL, NULL };
  step_spent *spent = NULL;
  double *mine = NULL;
  step_spans spans = { .on = last != NULL };

  *out = NULL;
  mgrid_status status = measure_check(s, state, how, &own);
  if (!status) status = measure_prepare(&g, &spent, &mine, &own);
  status = mgrid_verdict(b, status, &own, &own);
  if (!status) status = create_lazy(s, state, &own);
  if (!status) status = mgrid_step_execute(s, state, how, spent, &spans, &mine[0], &own);
  for (size_t i = 0; !status && i < s->plan->content.nentries; i++)
    mine[1 + 3 * i] = spent[i].calls, mine[2 + 3 * i] = spent[i].bytes,
                 mine[3 + 3 * i] = spent[i].seconds;
  if (!status) status = b->ops->allgather(b, mine, g.all, g.width * sizeof *mine, &own);
  if (!status && !(*out = report(&g, how))) mgrid_oom(&own);
  if (!status && how->broken) mgrid_error_pass(&own, how->broken);
  if (!status) status = gather_spans(s, b, &spans, b->rank == 0 ? last : NULL, &own);
  if (status && *out) json_decref(*out), *out = NULL;
  free(spent);
  free(mine);
  free(g.all);
  free(g.scratch);
  free(g.sum);
  free(spans.span);
  return status ? mgrid_error_pass(err, &own) : MGRID_OK;
}
