/* SPDX-License-Identifier: MIT
**
** measure.c - a step that is executed, and what all ranks measured beside what was planned.
*/
#include "step/run.h"
#include "plan/json.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------------- before */

/* Whether all communicators of the step are of the backend of GPUs. */
static bool is_all_of(const mgrid_step *s, const mgrid_backend *b) {
  for (size_t i = 0; i < s->nslots; i++) {
    const mgrid_descriptor *d = s->plan->content.entry[s->slot[i].entry].choice->backend;
    if (d && d->native && strcmp(d->name, b->kind->name) != 0) return false;
  }
  return true;
}

/* Refuse a step that may wait forever: on streams, or, where some call blocks, with each call
** ending before the next begins. */
static mgrid_status check_proved(const mgrid_step *s, const mgrid_backend *b, mgrid_error *err) {
  step_verdict v;
  bool streams = b->ops->streams && is_all_of(s, b);
  mgrid_status status = mgrid_step_conclude(s, streams ? STEP_NCCL : STEP_BLOCKING, 0, &v, err);
  if (status || v.told == STEP_PROVED) return status;
  mgrid_text why = { 0 };
  mgrid_step_verdict_text(s, &v, &why);
  status =
      mgrid_fail(err, MGRID_REFUSED,
                 "the step is not proved under the rules of %s (%s), --unproved runs it: %.700s",
                 streams ? "NCCL" : "MPI", mgrid_step_told_names[v.told], mgrid_text_chars(&why));
  mgrid_text_free(&why);
  return status;
}

static mgrid_status measure_check(const mgrid_step *s, const mgrid_state *state,
                                  const step_how *how, mgrid_error *err) {
  mgrid_backend *b = state->backend;
  if (!b->ops->together && !b->ops->streams)
    return mgrid_fail(err, MGRID_UNSUPPORTED,
                      "--step runs over MPI or on GPUs; %s begins no calls together",
                      mgrid_backend_name(b));
  if (b->ops->streams && how->work)
    return mgrid_fail(err, MGRID_UNSUPPORTED,
                      "computes of a function run on the CPU; with %s take sleep",
                      mgrid_backend_name(b));
  if (state->partial)
    return mgrid_fail(err, MGRID_NOT_NOW,
                      "a state without the ranks that were lost executes no step");
  return how->unproved ? MGRID_OK : check_proved(s, b, err);
}

/* Create the lazy families of the step, as a trainer's first call over them does. Collective. */
static mgrid_status create_lazy(const mgrid_step *s, mgrid_state *state, mgrid_error *err) {
  mgrid_status status = MGRID_OK;
  for (size_t i = 0; i < s->nslots && !status; i++) {
    const mgrid_entry *e = &s->plan->content.entry[s->slot[i].entry];
    if (e->choice->asked.lazy) status = mgrid_state_create(state, e->name, err);
  }
  return status;
}

/* -------------------------------------------------------------------- report */

/* What every rank brings: the seconds of a step, then of each family calls, bytes and seconds of
** all steps. */
typedef struct gathered {
  const mgrid_step *s;
  size_t width;
  int64_t world;
  double *all;
  step_sum *sum; /* [nprograms * families]: planned */
  double *scratch;
} gathered;

static double of(const gathered *g, int64_t rank, size_t family, int field) {
  return g->all[(size_t)rank * g->width + 1 + 3 * family + (size_t)field];
}

static int measure_ascending(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

/* Return what all ranks did over a family, a step; NULL: it is not used, or no memory. */
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

/* The rank that others wait for: it spends the least time in calls. -1: there is no difference to
** speak of. */
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

enum { ROUND = 1024 }; /* spans of a rank that are gathered at once */

/* Add the spans of a round; a node past the program's: none. */
static void add_round(const mgrid_step *s, int64_t world, const step_span *all, step_records *to) {
  for (int64_t rank = 0; rank < world; rank++) {
    const step_program *p = &s->program[s->class[s->of[rank]].program];
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

/* Collect the spans of all ranks into *to; NULL: drop them. Collective, also for a rank that failed
** with *err. */
static mgrid_status gather_spans(const mgrid_step *s, mgrid_backend *b, const step_spans *mine,
                                 step_records *to, mgrid_error *err) {
  int64_t world = mgrid_backend_world(b);
  step_span *part = calloc(ROUND, sizeof *part), *all = calloc((size_t)world * ROUND, sizeof *all);
  uint64_t left = UINT64_MAX - mine->n; /* the minimum over ranks is that of the most */
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
