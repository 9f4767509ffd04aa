/* SPDX-License-Identifier: MIT
**
** position.c - where an execution is in a program whose loops are not unrolled.
*/
#include "step/clock.h"

#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------------- sizes */

static void measure(const step_program *p, const step_sizes *s, uint32_t from, uint32_t end,
                    int64_t *leaves, uint32_t *streams, uint32_t *busy) {
  *leaves = 0, *streams = *busy = 0;
  for (uint32_t i = from; i < end; i = p->node[i].end) {
    const step_node *n = &p->node[i];
    step_role role = mgrid_step_rows[n->kind].role;
    if (n->kind == STEP_LOOP) {
      measure(p, s, i + 1, n->end, &s->leaves[i], &s->streams[i], &s->busy[i]);
      *leaves += n->number * s->leaves[i];
      *streams |= s->streams[i];
      *busy |= s->busy[i];
    } else {
      ++*leaves;
      if (n->kind == STEP_HOST_WAIT)
        *streams = UINT32_MAX;
      else if (role == STEP_TOGETHER || role == STEP_POINT || role == STEP_BLOCK
               || n->kind == STEP_WAIT)
        *streams |= UINT32_C(1) << n->stream;
      else if (n->kind == STEP_COMPUTE)
        *busy |= UINT32_C(1) << n->stream;
      *busy |= *streams;
    }
  }
}

mgrid_status mgrid_step_sizes_of(const step_program *p, step_sizes *out, mgrid_error *err) {
  int64_t leaves, at = 0;
  uint32_t streams, busy;
  out->last = calloc(p->n + 1, sizeof *out->last);
  out->leaves = calloc(p->n + 1, sizeof *out->leaves);
  out->streams = calloc(p->n + 1, sizeof *out->streams);
  out->busy = calloc(p->n + 1, sizeof *out->busy);
  if (!out->last || !out->leaves || !out->streams || !out->busy) {
    mgrid_step_sizes_free(out);
    return mgrid_oom(err);
  }
  measure(p, out, 0, (uint32_t)p->n, &leaves, &streams, &busy);
  for (uint32_t i = 0; i < p->n;) {
    const step_node *n = &p->node[i];
    bool loop = n->kind == STEP_LOOP;
    out->last[i] = at;
    at += loop ? (n->number - 1) * out->leaves[i] : 1;
    i = loop ? i + 1 : n->end;
  }
  return MGRID_OK;
}

void mgrid_step_sizes_free(step_sizes *s) {
  free(s->last);
  free(s->leaves);
  free(s->streams);
  free(s->busy);
  *s = (step_sizes){ 0 };
}

/* ------------------------------------------------------------------- walks */

/* Whether an entry, or one in its block, goes over the circle. */
static bool is_on(const step_stops *w, uint32_t i) {
  mgrid_spend(w->budget, w->program->node[i].end - i);
  for (uint32_t k = i; k < w->program->node[i].end; k++) {
    const step_node *n = &w->program->node[k];
    if (n->slot >= 0 && w->circle[n->slot] == w->only) return true;
  }
  return false;
}

static bool is_stop(const step_stops *w, uint32_t i) {
  const step_node *n = &w->program->node[i];
  step_role role = mgrid_step_rows[n->kind].role;
  if (w->only >= 0) return is_on(w, i);
  if (role == STEP_TOGETHER || role == STEP_POINT || role == STEP_BLOCK
      || (w->clock && n->kind == STEP_COMPUTE))
    return w->stream < 0 || n->stream == w->stream;
  if (w->stream < 0) return false; /* without streams nothing waits for one */
  return n->kind == STEP_HOST_WAIT || (n->kind == STEP_WAIT && n->stream == w->stream);
}

static bool has_stop(const step_stops *w, uint32_t loop) {
  if (w->only >= 0) return is_on(w, loop);
  uint32_t has = w->clock ? w->sizes->busy[loop] : w->sizes->streams[loop];
  return w->stream < 0 ? has != 0 : has >> w->stream & 1;
}

bool mgrid_step_place_settle(const step_stops *w, step_place *at, int64_t least) {
  const step_program *p = w->program;
  bool again = false;
  while (mgrid_spend(w->budget, 1)) {
    while (at->depth && at->node == p->node[at->in[at->depth - 1].loop].end) {
      if (at->in[at->depth - 1].left > 0) {
        again |= at->in[at->depth - 1].left-- > least;
        at->node = at->in[at->depth - 1].loop + 1;
        at->in[at->depth - 1].began = at->at;
      } else {
        at->depth--;
      }
    }
    if (at->node == p->n) return again;
    const step_node *n = &p->node[at->node];
    if (n->kind == STEP_LOOP && has_stop(w, at->node)) {
      if (w->clock && w->only < 0 && mgrid_step_clock_whole(w, at->node)) return again;
      at->in[at->depth].loop = at->node;
      at->in[at->depth].left = n->number - 1;
      at->in[at->depth++].began = at->at;
      at->node++;
    } else if (n->kind == STEP_LOOP) {
      at->at += n->number * w->sizes->leaves[at->node];
      at->node = n->end;
    } else if (is_stop(w, at->node)) {
      return again;
    } else {
      at->at++;
      at->node = n->end;
    }
  }
  return again;
}

bool mgrid_step_place_next(const step_stops *w, step_place *at, int64_t least) {
  const step_node *n = &w->program->node[at->node];
  at->at += n->kind == STEP_LOOP ? n->number * w->sizes->leaves[at->node] : 1;
  at->node = n->end;
  return mgrid_step_place_settle(w, at, least);
}

int64_t mgrid_step_place_of(const step_stops *w, const step_place *at, uint32_t node) {
  const step_node *all = w->program->node;
  const int64_t *last = w->sizes->last;
  int k = at->depth;
  while (k && !(at->in[k - 1].loop < node && node < all[at->in[k - 1].loop].end)) k--;
  if (k == 0) return last[node];
  uint32_t loop =
      /* the innermost around both: the entry is as far behind its beginning as in the last */
      at->in[k - 1].loop;
  return at->in[k - 1].began + last[node] - last[loop + 1];
}

uint32_t mgrid_step_place_find(const step_program *p, const step_place *at, mgrid_budget *budget,
                               bool (*is)(const step_program *p, uint32_t node, const void *ud),
                               const void *ud) {
  uint32_t node = at->node;
  for (int k = at->depth; k >= 0; k--) {
    uint32_t begin = k ? at->in[k - 1].loop + 1 : 0,
             end = k ? p->node[at->in[k - 1].loop].end : (uint32_t)p->n;
    for (uint32_t i = node; i < end && mgrid_spend(budget, 1); i++)
      if (is(p, i, ud)) return i;
    for (uint32_t i = begin; k && at->in[k - 1].left > 0 && i < node && mgrid_spend(budget, 1); i++)
      if (is(p, i, ud)) return i;
    node = end;
  }
  return (uint32_t)p->n;
}
