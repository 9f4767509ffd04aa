/* SPDX-License-Identifier: MIT
**
** loops.c - places in programs whose loops are not unrolled, and iterations that an execution may
** skip.
*/
#include "step/clock.h"

#include <stdlib.h>
#include <string.h>

/* =================================================================== places */

/* ------------------------------------------------------------------- sizes */

static void measure(const step_program *p, const step_sizes *s, uint32_t from, uint32_t end,
                    int64_t *leaves, uint32_t *streams, uint32_t *busy) {
  *leaves = 0, *streams = *busy = 0;

  for (uint32_t i = from; i < end; i = p->node[i].end) {
    const step_node *n = &p->node[i];
    if (n->kind == STEP_LOOP) {
      measure(p, s, i + 1, n->end, &s->leaves[i], &s->streams[i], &s->busy[i]);
      *leaves += n->number * s->leaves[i];
      *streams |= s->streams[i];
      *busy |= s->busy[i];
    } else {
      ++*leaves;
      if (n->kind == STEP_HOST_WAIT)
        *streams = UINT32_MAX;
      else if (n->kind < STEP_CALLS || n->kind == STEP_WAIT
               || mgrid_step_rows[n->kind].role == STEP_BLOCK)
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

/* Return whether an entry, or an entry in its block, is a call on the circle w->only. */
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
  if (w->only >= 0) return is_on(w, i);
  if (n->kind < STEP_CALLS || mgrid_step_rows[n->kind].role == STEP_BLOCK
      || (w->clock && n->kind == STEP_COMPUTE))
    return w->stream < 0 || n->stream == w->stream;
  /* the cursor is of all streams, which run in one order, so nothing waits for a stream */
  if (w->stream < 0) return false;
  return n->kind == STEP_HOST_WAIT || (n->kind == STEP_WAIT && n->stream == w->stream);
}

static bool has_stop(const step_stops *w, uint32_t loop) {
  if (w->only >= 0) return is_on(w, loop);
  uint32_t has = w->clock ? w->sizes->busy[loop] : w->sizes->streams[loop];
  return w->stream < 0 ? has != 0 : has >> w->stream & 1;
}

bool mgrid_step_place_stop(const step_stops *w, step_place *at, int64_t least) {
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
  return mgrid_step_place_stop(w, at, least);
}

int64_t mgrid_step_place_of(const step_stops *w, const step_place *at, uint32_t node) {
  const step_node *all = w->program->node;
  const int64_t *last = w->sizes->last;
  int k = at->depth;
  while (k && !(at->in[k - 1].loop < node && node < all[at->in[k - 1].loop].end)) k--;
  if (k == 0) return last[node];
  /* in each iteration of this loop the entry has the same distance from the beginning of the
  ** iteration */
  uint32_t loop = at->in[k - 1].loop;
  return at->in[k - 1].began + last[node] - last[loop + 1];
}

/* Return the first of the entries `from` to end - 1 that `is` accepts, or the group that it is in;
** end: there is none. */
static uint32_t first_entry(const step_program *p, uint32_t from, uint32_t end,
                            mgrid_budget *budget,
                            bool (*is)(const step_program *p, uint32_t node, const void *ud),
                            const void *ud) {
  uint32_t group = from, after = from;
  for (uint32_t i = from; i < end && mgrid_spend(budget, 1); i++) {
    if (mgrid_step_rows[p->node[i].kind].role == STEP_BLOCK) group = i, after = p->node[i].end;
    if (is(p, i, ud)) return i < after ? group : i;
  }
  return end;
}

int64_t mgrid_step_place_find(const step_stops *w, const step_place *at, mgrid_budget *budget,
                              bool (*is)(const step_program *p, uint32_t node, const void *ud),
                              const void *ud) {
  const step_program *p = w->program;
  uint32_t node = at->node;
  for (int k = at->depth; k >= 0; k--) {
    uint32_t loop = k ? at->in[k - 1].loop : 0, end = k ? p->node[loop].end : (uint32_t)p->n;
    uint32_t found = first_entry(p, node, end, budget, is, ud);
    if (found < end) return mgrid_step_place_of(w, at, found);
    if (k && at->in[k - 1].left > 0) {
      found = first_entry(p, loop + 1, node, budget, is, ud);
      if (found < node) return mgrid_step_place_of(w, at, found) + w->sizes->leaves[loop];
    }
    node = end;
  }
  return -1;
}

/* ==================================================================== skips */

/* How iterations are skipped. The state of the executor is: the place of each cursor, which
** operations have begun, and how many iterations the loops have left. If two states differ only in
** the iterations left, then all that happened between them (a round) happens again, until a loop
** ends. So skip rounds, but leave at least two iterations of each loop that has advanced. */

/* To find rounds, keep a state and compare later states with it; keep a new state each time that
** the number of comparisons has doubled (Brent, 1980). Two states are kept, each for one watched
** cursor. State `inside` is compared when the innermost loop of its cursor begins a new iteration;
** if that cursor stops while others move, another cursor is watched. State `around` is compared
** when its cursor enters its innermost loop again, to find rounds of the loops around that loop.
** With a clock the parts under way must also have equal times left. */

typedef struct kept {
  int64_t times, next;     /* comparisons so far; when the next state is kept */
  size_t nmatches;         /* SIZE_MAX: no state is kept */
  step_cursor *was;        /* [ncursors] */
  uint32_t *posts;         /* [2 * nmatches]: posts that wait */
  size_t room;             /* elements for which `posts` has memory */
  step_snapshot *snapshot; /* with a clock: its state */
} kept;

/* A cursor at whose new iterations states are compared. */
typedef struct watch {
  kept kept;
  int32_t cursor; /* -1: none */
  size_t others;  /* new iterations of other cursors since the last one of this cursor */
  step_place last;
} watch;

struct step_skips {
  watch inside, around;
};

static bool loops_begin(watch *w, size_t ncursors) {
  *w = (watch){ .cursor = -1,
                .kept = { .nmatches = SIZE_MAX,
                          .was = malloc((ncursors + 1) * sizeof *w->kept.was) } };
  return w->kept.was != NULL;
}

static void loops_forget(kept *k) { k->times = k->next = 0, k->nmatches = SIZE_MAX; }

void mgrid_step_skips_free(struct step_skips *s) {
  if (!s) return;
  for (int i = 0; i < 2; i++) {
    kept *k = i ? &s->around.kept : &s->inside.kept;
    free(k->was), free(k->posts);
    mgrid_step_snapshot_free(k->snapshot);
  }
  free(s);
}

static void loops_keep(step_executor *m, kept *s) {
  bool whole = MGRID_ROOM(s->posts, s->room, 2 * m->nmatches);
  s->nmatches = whole ? m->nmatches : SIZE_MAX;
  for (size_t i = 0; whole && i < m->nmatches; i++)
    s->posts[2 * i] = m->match[i].nposts[0], s->posts[2 * i + 1] = m->match[i].nposts[1];
  memcpy(s->was, m->cursor, m->ncursors * sizeof *s->was);
  mgrid_spend(&m->budget->work, (int64_t)m->ncursors / 16);
  if (m->clock && !mgrid_step_snapshot_keep(m, &s->snapshot)) s->nmatches = SIZE_MAX;
}

/* Find the loop that has fewer iterations left in b than in a; *by: how many fewer. Return its
** level; -1: there is no such loop; -2: a and b differ also in other ways. */
static int moved(const step_cursor *a, const step_cursor *b, int64_t *by) {
  int level = -1;
  *by = 0;
  if (a->posted != b->posted || a->parts != b->parts || a->place.node != b->place.node
      || a->place.depth != b->place.depth)
    return -2;
  for (int k = 0; k < a->place.depth; k++) {
    if (a->place.in[k].loop != b->place.in[k].loop || b->place.in[k].left > a->place.in[k].left)
      return -2;
    if (a->place.in[k].left == b->place.in[k].left) continue;
    if (level >= 0) return -2;
    level = k;
    *by = a->place.in[k].left - b->place.in[k].left;
  }
  if (level < 0 && a->place.at != b->place.at) return -2;
  return level;
}

/* Return whether all cursors of the type in this loop have `by` fewer iterations left. Then a skip
** lets no cursor overtake another. */
static bool loops_together(const step_executor *m, const kept *s, const step_cursor *c, int level,
                           int64_t by) {
  uint32_t loop = c->place.in[level].loop;
  for (size_t i = m->first[c->type]; i < m->first[c->type + 1]; i++) {
    const step_place *now = &m->cursor[i].place, *was = &s->was[i].place;
    for (int k = 0; k < now->depth; k++)
      if (now->in[k].loop == loop && was->in[k].left - now->in[k].left != by) return false;
  }
  return true;
}

/* Return how often the round since the kept state may be repeated; 0: not at all. */
static int64_t loops_rounds(const step_executor *m, const kept *s) {
  int64_t most = INT64_MAX;
  if (s->nmatches != m->nmatches) return 0;
  for (size_t i = 0; i < m->ncursors; i++) {
    int64_t by;
    int level = moved(&s->was[i], &m->cursor[i], &by);
    if (level == -2 || (i % 16 == 0 && !mgrid_spend(&m->budget->work, 1))) return 0;
    if (level < 0) continue;
    if (!loops_together(m, s, &m->cursor[i], level, by)) return 0;
    int64_t can = (m->cursor[i].place.in[level].left - 2) / by;
    if (can < most) most = can;
  }
  for (size_t i = 0; i < m->nmatches; i++)
    if (s->posts[2 * i] != m->match[i].nposts[0] || s->posts[2 * i + 1] != m->match[i].nposts[1])
      return 0;
  if (most == INT64_MAX || most < 0) return 0;
  return m->clock && most && !mgrid_step_snapshot_same(m, s->snapshot) ? 0 : most;
}

static void loops_skip(step_executor *m, const kept *s, int64_t times) {
  if (m->clock) mgrid_step_snapshot_skip(m, s->snapshot, times);
  for (size_t i = 0; i < m->ncursors; i++) {
    step_place *now = &m->cursor[i].place;
    int64_t by, passed = now->at - s->was[i].place.at;
    int level = moved(&s->was[i], &m->cursor[i], &by);
    if (level < 0) continue;
    now->in[level].left -= times * by;
    now->at += times * passed;
    for (int k = level; k < now->depth; k++) now->in[k].began += times * passed;
  }
}

/* Compare the present state with the kept one, and skip rounds if only iterations differ. Keep the
** present state after a skip, or when a new state is due. Return whether rounds were skipped. */
static bool loops_look(step_executor *m, kept *k) {
  int64_t times = loops_rounds(m, k);
  if (times) loops_skip(m, k, times);
  if (times || k->times >= k->next) {
    loops_keep(m, k);
    k->next = 2 * k->times;
  }
  k->times++;
  return times > 0;
}

/* Return whether from a to b a cursor has entered another loop, or begun a new iteration of a loop
** around its innermost loop. */
static bool entered(const step_place *a, const step_place *b) {
  if (a->depth != b->depth) return true;
  for (int k = 0; k < a->depth; k++)
    if (a->in[k].loop != b->in[k].loop || (k + 1 < a->depth && a->in[k].left != b->in[k].left))
      return true;
  return false;
}

/* Return whether m->again is the watched cursor. If the watched cursor has not moved for long,
** watch m->again instead. */
static bool is_watched(const step_executor *m, watch *w, size_t events) {
  if (w->cursor != m->again) {
    w->others += events;
    if (w->cursor >= 0 && w->others <= 2 * m->ncursors) return false;
    w->cursor = m->again, w->last.depth = -1;
    loops_forget(&w->kept);
  }
  w->others = 0;
  return true;
}

void mgrid_step_skip(step_executor *m) {
  struct step_skips *s = m->skips;
  if (!s) {
    s = m->skips = calloc(1, sizeof *s);
    if (!s || !loops_begin(&s->inside, m->ncursors) || !loops_begin(&s->around, m->ncursors)) {
      m->failed = true;
      return;
    }
  }
  const step_place *now = &m->cursor[m->again].place;
  bool inside = is_watched(m, &s->inside, 1), fresh = inside && entered(&s->inside.last, now),
       skipped = false;
  if (is_watched(m, &s->around, fresh)) {
    if (entered(&s->around.last, now)) skipped = loops_look(m, &s->around.kept);
    s->around.last = *now;
  }
  if (!inside) return;
  if (skipped || fresh) loops_forget(&s->inside.kept);
  loops_look(m, &s->inside.kept);
  s->inside.last = *now;
}
