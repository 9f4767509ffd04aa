/* SPDX-License-Identifier: MIT
**
** skips.c - the iterations of long loops that an execution need not go through. The machine's state
** is where every cursor is, which operations have begun, and how many iterations the loops have
** left. If it comes back to a state that differs only in the last, then what happened in between
** happens again, as long as no loop ends. So go on by as many such rounds at once as leave every
** loop that moved two iterations or more. Rounds are found as Brent (1980) finds cycles: compare
** with a state that is kept for twice as long each time. Two are kept. One cursor is watched for
** rounds of the loop that it is in, until others move and it does not; and one for rounds of the
** loops around that, each time that it has entered its loop. With a clock, what is under way must
** also have as long to go as then.
*/
#include "step/clock.h"

#include <stdlib.h>
#include <string.h>

typedef struct kept {
  int64_t times, next; /* compared; when to keep another state */
  size_t nmeetings;    /* SIZE_MAX: nothing is kept */
  step_cursor *was;    /* [ncursors] */
  uint32_t *posts;     /* [2 * nmeetings], */
  size_t room;         /* in room for so many */
  step_moment *moment; /* with a clock: what it showed */
} kept;

/* A cursor that is watched. */
typedef struct watch {
  kept kept;
  int32_t cursor; /* -1: none */
  size_t others;  /* that began loops again since it did */
  step_place last;
} watch;

struct step_skips {
  watch inside, around;
};

static bool skips_begin(watch *w, size_t ncursors) {
  *w = (watch){ .cursor = -1,
                .kept = { .nmeetings = SIZE_MAX,
                          .was = malloc((ncursors + 1) * sizeof *w->kept.was) } };
  return w->kept.was != NULL;
}

static void skips_forget(kept *k) { k->times = k->next = 0, k->nmeetings = SIZE_MAX; }

void mgrid_step_skips_free(struct step_skips *s) {
  if (!s) return;
  for (int i = 0; i < 2; i++) {
    kept *k = i ? &s->around.kept : &s->inside.kept;
    free(k->was), free(k->posts);
    mgrid_step_moment_free(k->moment);
  }
  free(s);
}

static void skips_keep(step_machine *m, kept *s) {
  bool whole = MGRID_ROOM(s->posts, s->room, 2 * m->nmeetings);
  s->nmeetings = whole ? m->nmeetings : SIZE_MAX;
  for (size_t i = 0; whole && i < m->nmeetings; i++)
    s->posts[2 * i] = m->meeting[i].nposts[0], s->posts[2 * i + 1] = m->meeting[i].nposts[1];
  memcpy(s->was, m->cursor, m->ncursors * sizeof *s->was);
  mgrid_spend(&m->budget->work, (int64_t)m->ncursors / 16);
  if (m->clock && !mgrid_step_moment_keep(m, &s->moment)) s->nmeetings = SIZE_MAX;
}

/* The loop of a cursor that lost iterations since; *by: how many. -1: none; -2: the states
** differ. */
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

/* Whether all cursors of a type that are in this loop lost as many iterations of it: then none
** overtakes another. */
static bool skips_together(const step_machine *m, const kept *s, const step_cursor *c, int level,
                           int64_t by) {
  uint32_t loop = c->place.in[level].loop;
  for (size_t i = m->first[c->type]; i < m->first[c->type + 1]; i++) {
    const step_place *now = &m->cursor[i].place, *was = &s->was[i].place;
    for (int k = 0; k < now->depth; k++)
      if (now->in[k].loop == loop && was->in[k].left - now->in[k].left != by) return false;
  }
  return true;
}

/* Return how often the round since the kept state may be repeated; 0: not. */
static int64_t skips_rounds(const step_machine *m, const kept *s) {
  int64_t most = INT64_MAX;
  if (s->nmeetings != m->nmeetings) return 0;
  for (size_t i = 0; i < m->ncursors; i++) {
    int64_t by;
    int level = moved(&s->was[i], &m->cursor[i], &by);
    if (level == -2 || (i % 16 == 0 && !mgrid_spend(&m->budget->work, 1))) return 0;
    if (level < 0) continue;
    if (!skips_together(m, s, &m->cursor[i], level, by)) return 0;
    int64_t can = (m->cursor[i].place.in[level].left - 2) / by;
    if (can < most) most = can;
  }
  for (size_t i = 0; i < m->nmeetings; i++)
    if (s->posts[2 * i] != m->meeting[i].nposts[0]
        || s->posts[2 * i + 1] != m->meeting[i].nposts[1])
      return 0;
  if (most == INT64_MAX || most < 0) return 0;
  return m->clock && most && !mgrid_step_moment_same(m, s->moment) ? 0 : most;
}

static void skips_skip(step_machine *m, const kept *s, int64_t times) {
  if (m->clock) mgrid_step_moment_skip(m, s->moment, times);
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

/* Compare with the state that is kept, and go on if it comes back; then keep this one if it is
** time. */
static bool skips_look(step_machine *m, kept *k) {
  int64_t times = skips_rounds(m, k);
  if (times) skips_skip(m, k, times);
  if (times || k->times >= k->next) {
    skips_keep(m, k);
    k->next = 2 * k->times;
  }
  k->times++;
  return times > 0;
}

/* Whether a cursor is in another iteration of a loop around the one that it is in, or in another
** loop. */
static bool entered(const step_place *a, const step_place *b) {
  if (a->depth != b->depth) return true;
  for (int k = 0; k < a->depth; k++)
    if (a->in[k].loop != b->in[k].loop || (k + 1 < a->depth && a->in[k].left != b->in[k].left))
      return true;
  return false;
}

/* Watch this cursor, unless another one is watched that has not stood still for long. */
static bool is_watched(const step_machine *m, watch *w, size_t events) {
  if (w->cursor != m->again) {
    w->others += events;
    if (w->cursor >= 0 && w->others <= 2 * m->ncursors) return false;
    w->cursor = m->again, w->last.depth = -1;
    skips_forget(&w->kept);
  }
  w->others = 0;
  return true;
}

void mgrid_step_skip(step_machine *m) {
  struct step_skips *s = m->skips;
  if (!s) {
    s = m->skips = calloc(1, sizeof *s);
    if (!s || !skips_begin(&s->inside, m->ncursors) || !skips_begin(&s->around, m->ncursors)) {
      m->failed = true;
      return;
    }
  }
  const step_place *now = &m->cursor[m->again].place;
  bool inside = is_watched(m, &s->inside, 1), fresh = inside && entered(&s->inside.last, now),
       skipped = false;
  if (is_watched(m, &s->around, fresh)) {
    if (entered(&s->around.last, now)) skipped = skips_look(m, &s->around.kept);
    s->around.last = *now;
  }
  if (!inside) return;
  if (skipped || fresh) skips_forget(&s->inside.kept);
  skips_look(m, &s->inside.kept);
  s->inside.last = *now;
}
