/* SPDX-License-Identifier: MIT
**
** clock.c - the clock of an execution. An operation ends when the time that it takes has passed,
** and the executor always goes on with the operation that ends first. So an operation begins when
** the last operation for which it waits has ended, and the times do not depend on the order in
** which the executor looks at ranks. Between two ends a type computes, moves bytes, does both or
** neither; its account (step_use) counts the time of each.
*/
#include "step/clock.h"

#include <stdlib.h>
#include <string.h>

#define TIME_MAX (INT64_C(1) << 62) /* 53 days */

/* ---------------------------------------------------------------- the heap */

static bool before(step_event a, step_event b) {
  return a.time != b.time ? a.time < b.time : a.cursor < b.cursor;
}

static void clock_put(step_executor *m, int64_t takes, int32_t cursor) {
  step_clock *c = m->clock;
  if (takes > TIME_MAX - c->now) takes = TIME_MAX - c->now, c->over = true;
  if (!MGRID_ROOM(c->event, c->room, c->n + 1)) {
    m->failed = true;
    return;
  }
  step_event e = { c->now + takes, cursor };
  size_t i = c->n++;
  for (; i > 0 && before(e, c->event[(i - 1) / 2]); i = (i - 1) / 2)
    c->event[i] = c->event[(i - 1) / 2];
  c->event[i] = e;
}

static step_event clock_take(step_clock *c) {
  step_event first = c->event[0], last = c->event[--c->n];
  size_t i = 0;
  for (size_t k; (k = 2 * i + 1) < c->n; i = k) {
    if (k + 1 < c->n && before(c->event[k + 1], c->event[k])) k++;
    if (!before(c->event[k], last)) break;
    c->event[i] = c->event[k];
  }
  if (c->n) c->event[i] = last;
  return first;
}

/* ---------------------------------------------------------------- accounts */

/* Add the time since the last change to the account of a type. A loop that is taken as one
** operation computes for one share of its time, and moves bytes for the rest. If another stream
** runs beside the loop, the shares of the two streams are multiplied, as if they were
** independent. */
static void clock_charge(step_executor *m, int32_t type) {
  step_clock *c = m->clock;
  double dt = (double)(c->now - c->at[type]), rests = 1, idle = 1, still = 1;
  c->at[type] = c->now;
  if (dt <= 0) return;
  for (size_t i = m->first[type]; i < m->first[type + 1]; i++) {
    const step_busy *b = &c->busy[i];
    rests *= 1 - b->computing, idle *= 1 - b->computing - b->moving, still *= 1 - b->moving;
  }
  c->use[type].compute += dt * (1 - rests);
  c->use[type].exposed += dt * (rests - idle);
  c->use[type].hidden += dt * (1 - still - (rests - idle));
}

void mgrid_step_clock_charge(step_executor *m) {
  for (size_t t = 0; t < m->types->n; t++) clock_charge(m, (int32_t)t);
}

static void clock_note(step_executor *m, int32_t cursor, uint32_t node, int64_t takes, int32_t by) {
  step_clock *c = m->clock;
  step_records *r = c->records;
  if (!r) return;
  r->full |= r->n == STEP_RECORDS_MAX || !MGRID_ROOM(r->record, r->room, r->n + 1);
  if (r->full) return;
  const step_cursor *at = &m->cursor[cursor];
  int32_t stream = mgrid_step_executor_program(m, at->type)->node[at->place.node].stream;
  r->record[r->n++] =
      (step_record){ at->type, stream, node, by, c->began[cursor], c->now, c->now + takes };
}

/* -------------------------------------------------------------- operations */

mgrid_status mgrid_step_clock_begin(step_executor *m, mgrid_error *err) {
  step_clock *c = m->clock;
  c->busy = calloc(m->ncursors + 1, sizeof *c->busy);
  c->began = calloc(m->ncursors + 1, sizeof *c->began);
  c->use = calloc(m->types->n + 1, sizeof *c->use);
  c->at = calloc(m->types->n + 1, sizeof *c->at);
  return c->busy && c->began && c->use && c->at ? MGRID_OK : mgrid_oom(err);
}

void mgrid_step_clock_free(step_clock *c) {
  free(c->event);
  free(c->busy);
  free(c->began);
  free(c->use);
  free(c->at);
}

mgrid_status mgrid_step_clock_check(const step_executor *m, mgrid_error *err) {
  return m->clock->over ? mgrid_fail(err, MGRID_LIMIT, "the step takes more than 53 days")
                        : MGRID_OK;
}

int32_t mgrid_step_clock_next(step_executor *m) {
  step_clock *c = m->clock;
  if (c->n == 0) return -1;
  step_event e = clock_take(c);
  step_busy *b = &c->busy[e.cursor];
  step_cursor *at = &m->cursor[e.cursor];
  c->now = e.time;
  clock_charge(m, at->type);
  if (b->active > 0) b->active--;
  if (b->active == 0) b->computing = b->moving = 0;
  return e.cursor;
}

bool mgrid_step_clock_every(const step_executor *m) {
  return m->clock->records && m->clock->records->n < m->clock->records->every;
}

void mgrid_step_clock_move(step_executor *m, int32_t cursor, uint32_t node, int64_t takes,
                           int32_t by) {
  step_busy *b = &m->clock->busy[cursor];
  clock_charge(m, m->cursor[cursor].type);
  b->active++, b->moving = 1;
  clock_note(m, cursor, node, takes, by);
  clock_put(m, takes, cursor);
}

int64_t mgrid_step_clock_cost(const step_executor *m, const step_post *posts, uint32_t n) {
  const step_node *first = &mgrid_step_executor_program(m, posts[0].type)->node[posts[0].node];
  int64_t bytes = first->bytes;
  /* the bytes of an all_to_all may differ by rank; the largest decide */
  for (uint32_t i = 1; i < n && first->kind == STEP_ALL_TO_ALL; i++) {
    int64_t other = mgrid_step_executor_program(m, posts[i].type)->node[posts[i].node].bytes;
    if (other > bytes) bytes = other;
  }
  return mgrid_step_ticks(
      mgrid_step_way_of(m->clock->pricing, posts[0].type, first, bytes).seconds);
}

/* ----------------------------------------------------------- loops as one */

/* Add to *compute and *move the picoseconds of the stream's entries from `from` to `end`. Return
** false if a rank may wait in one of these entries, or the budget is exhausted. */
static bool add_up(const step_stops *w, uint32_t from, uint32_t end, double *compute,
                   double *move) {
  const step_clock *c = w->clock;
  const step_program *p = w->program;

  for (uint32_t i = from; i < end; i = p->node[i].end) {
    const step_node *n = &p->node[i];
    step_role role = mgrid_step_rows[n->kind].role;
    if (!mgrid_spend(w->budget, 1)) return false;
    if (w->stream >= 0 && (role == STEP_ORDER)) return false;
    if (n->kind == STEP_LOOP) {
      double a = 0, b = 0;
      if (!add_up(w, i + 1, n->end, &a, &b)) return false;
      *compute += a * (double)n->number, *move += b * (double)n->number;
      continue;
    }
    if (w->stream >= 0 && n->stream != w->stream) continue;
    if (role == STEP_POINT || role == STEP_BLOCK) return false;
    if (n->kind == STEP_COMPUTE)
      *compute += (double)mgrid_step_ticks(mgrid_step_work_of(c->pricing, n));
    if (role != STEP_TOGETHER) continue;
    const step_circle *x = &c->pricing->types.circle[w->circle[n->slot]];
    if (x->n != 1) return false;
    if (x->size > 1)
      *move +=
          (double)mgrid_step_ticks(mgrid_step_way_of(c->pricing, w->type, n, n->bytes).seconds);
  }
  return true;
}

/* Return whether a type uses some communicator on several streams. Then the type's last cursor
** keeps the calls on such a communicator in order. */
static bool shares(const step_clock *c, int32_t type) {
  const step_executor *m = c->executor;
  return m->cursor[m->first[type + 1] - 1].circle >= 0;
}

bool mgrid_step_clock_whole(const step_stops *w, uint32_t loop) {
  const step_clock *c = w->clock;
  double compute = 0, move = 0;
  return c->whole && !shares(c, w->type)
         && add_up(w, loop + 1, w->program->node[loop].end, &compute, &move);
}

void mgrid_step_clock_work(step_executor *m, int32_t cursor) {
  step_clock *c = m->clock;
  const step_cursor *at = &m->cursor[cursor];
  step_stops w = mgrid_step_executor_stops(m, at);
  const step_node *n = &w.program->node[at->place.node];
  double compute = 0, move = 0;
  if (n->kind == STEP_LOOP)
    add_up(&w, at->place.node + 1, n->end, &compute, &move);
  else
    compute = (double)mgrid_step_ticks(mgrid_step_work_of(c->pricing, n));
  double times = n->kind == STEP_LOOP ? (double)n->number : 1, takes = (compute + move) * times;
  clock_charge(m, at->type);
  c->busy[cursor] = takes > 0
                        ? (step_busy){ compute / (compute + move), move / (compute + move), 0 }
                        : (step_busy){ 0, 0, 0 };
  if (takes >= (double)TIME_MAX) c->over = true, takes = 0;
  clock_note(m, cursor, at->place.node, (int64_t)takes, at->type);
  clock_put(m, (int64_t)takes, cursor);
}

/* ----------------------------------------------------------------- snapshots */

struct step_snapshot {
  int64_t now;
  size_t n;
  step_event *event; /* [n], sorted; times count from `now` */
  step_busy *busy;   /* [ncursors] */
  step_use *use;     /* [types] */
};

void mgrid_step_snapshot_free(step_snapshot *x) {
  if (!x) return;
  free(x->event);
  free(x->busy);
  free(x->use);
  free(x);
}

static int by_time(const void *a, const void *b) {
  const step_event *x = a, *y = b;
  return before(*x, *y) ? -1 : before(*y, *x);
}

static step_event *sorted(const step_clock *c) {
  step_event *all = malloc((c->n + 1) * sizeof *all);
  if (!all) return NULL;
  for (size_t i = 0; i < c->n; i++)
    all[i] = (step_event){ c->event[i].time - c->now, c->event[i].cursor };
  qsort(all, c->n, sizeof *all, by_time);
  return all;
}

bool mgrid_step_snapshot_keep(step_executor *m, step_snapshot **keep) {
  const step_clock *c = m->clock;
  mgrid_step_clock_charge(m);
  step_snapshot *x = calloc(1, sizeof *x);
  if (x) {
    x->now = c->now, x->n = c->n;
    x->event = sorted(c);
    x->busy = malloc((m->ncursors + 1) * sizeof *x->busy);
    x->use = malloc((m->types->n + 1) * sizeof *x->use);
  }
  if (!x || !x->event || !x->busy || !x->use) {
    mgrid_step_snapshot_free(x);
    return false;
  }
  memcpy(x->busy, c->busy, m->ncursors * sizeof *x->busy);
  memcpy(x->use, c->use, m->types->n * sizeof *x->use);
  mgrid_step_snapshot_free(*keep);
  *keep = x;
  return true;
}

bool mgrid_step_snapshot_same(const step_executor *m, const step_snapshot *was) {
  const step_clock *c = m->clock;
  if (!was || was->n != c->n || memcmp(was->busy, c->busy, m->ncursors * sizeof *c->busy) != 0)
    return false;
  step_event *now = sorted(c);
  bool same = now != NULL;
  for (size_t i = 0; i < c->n && same; i++)
    same = now[i].time == was->event[i].time && now[i].cursor == was->event[i].cursor;
  free(now);
  return same;
}

void mgrid_step_snapshot_skip(step_executor *m, const step_snapshot *was, int64_t times) {
  step_clock *c = m->clock;
  int64_t round = c->now - was->now, by = 0;

  mgrid_step_clock_charge(m);
  if (round && times > (TIME_MAX - c->now) / round)
    c->over = true;
  else
    by = round * times;
  step_records *r = c->records;
  if (r && by && MGRID_GROW(r->repeat, r->nrepeats, 1))
    r->repeat[r->nrepeats++] = (step_repeat){ c->now, c->now + by, times };
  c->now += by;
  for (size_t i = 0; i < c->n; i++) c->event[i].time += by;
  for (size_t i = 0; i < m->ncursors; i++) c->began[i] += by;
  for (size_t t = 0; t < m->types->n; t++) {
    step_use *now = &c->use[t], then = was->use[t];
    double k = (double)times;
    now->compute += k * (now->compute - then.compute);
    now->hidden += k * (now->hidden - then.hidden);
    now->exposed += k * (now->exposed - then.exposed);
    c->at[t] = c->now;
  }
}
