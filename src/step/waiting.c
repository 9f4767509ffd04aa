/* SPDX-License-Identifier: MIT
**
** waiting.c - who waits for whom in an execution that came to a halt: from types back to ranks.
*/
#include "step/waiting.h"

#include <stdlib.h>
#include <string.h>

/* -------------------------------------------------------------- one rank on */

typedef struct wanted {  /* the call that another rank waits for */
  const int32_t *circle; /* of the slots of the type that is to make it */
  int32_t on, kind, peer;
} wanted;

static bool is_wanted(const step_program *p, uint32_t node, const void *ud) {
  const wanted *x = ud;
  const step_node *n = &p->node[node];
  if (n->slot < 0 || x->circle[n->slot] != x->on) return false;
  if (x->kind < 0) return mgrid_step_rows[n->kind].role == STEP_TOGETHER;
  return n->kind == x->kind && n->number == x->peer;
}

/* Return the cursor of a type that has begun and is before the cursor i: i itself, or what it waits
** for. -1: none. */
static int32_t begun(const step_machine *m, int32_t i) {
  const step_cursor *c = &m->cursor[i];
  size_t first = m->first[c->type], end = m->first[c->type + 1];
  for (size_t tries = 0; tries <= end - first; tries++, c = &m->cursor[i]) {
    const step_program *p = mgrid_step_machine_program(m, c->type);
    if (c->posted) return i;
    if (c->place.node == p->n) return -1;
    const step_node *n = &p->node[c->place.node];
    if (mgrid_step_rows[n->kind].role == STEP_ORDER) {
      i = (int32_t)first + (n->listed ? p->node[n->other].stream : n->other);
      continue;
    }
    int32_t before = -1; /* an operation before it on its communicator, on another stream */
    for (size_t k = first; k < end && before < 0; k++)
      if (m->cursor[k].circle >= 0 && m->cursor[k].place.at < c->place.at
          && m->cursor[k].place.node < p->n)
        before = (int32_t)first + p->node[m->cursor[k].place.node].stream;
    if (before < 0) return -1;
    i = before;
  }
  return -1;
}

/* Find where a type will make a call: *cursor is what it is in now, -1 if it has ended. False:
** never. */
static bool will_call(const step_machine *m, int32_t type, const wanted *x, int32_t *cursor) {
  const step_program *p = mgrid_step_machine_program(m, type);
  for (size_t i = m->first[type]; i < m->first[type + 1]; i++) {
    const step_cursor *c = &m->cursor[i];
    if (c->circle >= 0) continue;
    step_place at = c->place;
    /* what has begun, and did not meet, is not that call */
    if (c->posted) at.node = p->node[at.node].end;
    uint32_t node = mgrid_step_place_find(p, &at, &m->budget->work, is_wanted, x);
    if (node == p->n || (c->stream >= 0 && p->node[node].stream != c->stream)) continue;
    *cursor = begun(m, (int32_t)i);
    return true;
  }
  *cursor = -1;
  for (size_t i = m->first[type]; i < m->first[type + 1] && *cursor < 0; i++)
    if (m->cursor[i].circle < 0) *cursor = begun(m, (int32_t)i);
  return false;
}

static bool has_come(const step_meeting *x, int side, int32_t type) {
  for (uint32_t i = 0; x && i < x->nposts[side]; i++)
    if (mgrid_step_posts(x, side)[i].type == type) return true;
  return false;
}

static bool is_unmet(const step_machine *m, int32_t cursor, uint32_t node) {
  const step_cursor *c = &m->cursor[cursor];
  const step_meeting *x = mgrid_step_machine_meeting(m, c->type, node);
  for (int side = 0; x && side < 2; side++)
    for (uint32_t i = 0; i < x->nposts[side] && mgrid_spend(&m->budget->work, 1); i++)
      if (mgrid_step_posts(x, side)[i].cursor == cursor
          && mgrid_step_posts(x, side)[i].node == node)
        return true;
  return false;
}

bool mgrid_step_each_awaited(const step_machine *m, const step_wait *from,
                             mgrid_step_awaited_fn *fn, void *ud) {
  const step_cursor *c = &m->cursor[from->cursor];
  const step_program *p = mgrid_step_machine_program(m, c->type);
  uint32_t end = p->node[c->place.node].end;
  for (uint32_t node = c->place.node; node < end; node++) {
    const step_node *n = &p->node[node];
    if (!mgrid_spend(&m->budget->work, 1)) return false;
    if (n->slot < 0 || !is_unmet(m, from->cursor, node)) continue;
    const step_slot *slot = &m->step->slot[n->slot];
    const mgrid_family *f = m->step->plan->content.entry[slot->entry].family;
    const step_meeting *x = mgrid_step_machine_meeting(m, c->type, node);
    int64_t group, position;
    f->form->locate(f, from->rank, slot->nth, &group, &position);
    bool point = mgrid_step_rows[n->kind].role == STEP_POINT;
    int64_t size = f->size >= 0 ? f->size : f->form->size(f, group);
    for (int64_t i = point ? n->number : 0; i < (point ? n->number + 1 : size); i++) {
      if (!mgrid_spend(&m->budget->work, 1 + (x ? x->nposts[0] : 0) / 4)) return false;
      int64_t rank = f->form->rank(f, group, i);
      int32_t type = m->types->of[rank];
      step_wait to = { rank, -1, node };
      wanted want = { m->types->type[type].circle, m->types->type[c->type].circle[n->slot], -1,
                      (int32_t)position };
      if (point) want.kind = n->kind == STEP_SEND ? STEP_RECV : STEP_SEND;
      if (!point && has_come(x, 0, type)) continue;
      bool will = will_call(m, type, &want, &to.cursor);
      if (fn(&to, will, ud)) return true;
    }
  }
  return false;
}

/* ---------------------------------------------------------- the shortest way */

enum { SEEN_MAX = 1 << 15 };

typedef struct seen {
  step_wait at;
  int32_t parent;
  uint32_t node; /* of the parent: the entry in which it waits for this one */
} seen;

typedef struct search {
  size_t n;
  seen *all;         /* [SEEN_MAX] */
  mgrid_index index; /* of those */
  int32_t from, found;
  bool failed; /* out of memory */
} search;

static uint64_t waiting_hash_of(const step_wait *at) {
  return (uint64_t)at->rank * UINT64_C(0x9E3779B97F4A7C15) ^ (uint64_t)at->cursor * 0x85EBCA6B;
}

static void waiting_note(search *s, seen x) {
  s->failed = !mgrid_index_put(&s->index, waiting_hash_of(&x.at), (int32_t)s->n);
  if (!s->failed) s->all[s->n++] = x;
}

/* An mgrid_step_awaited_fn: note a rank that was not seen yet; end at the first one. */
static bool waiting_visit(const step_wait *to, bool will, void *ud) {
  search *s = ud;
  if (!will || to->cursor < 0) return false;
  size_t at = 0;
  int32_t i = mgrid_index_next(&s->index, waiting_hash_of(to), &at);
  while (i >= 0 && (s->all[i].at.rank != to->rank || s->all[i].at.cursor != to->cursor))
    i = mgrid_index_next(&s->index, waiting_hash_of(to), &at);
  if (i == 0) {
    s->found = s->from;
    s->all[0].node = to->node;
    return true;
  }
  if (i < 0 && s->n < SEEN_MAX) waiting_note(s, (seen){ *to, s->from, to->node });
  return s->failed;
}

/* Write the shortest cycle through the first one seen; return its length, 0: none. */
static size_t cycle_through(const step_machine *m, search *s, step_wait start, size_t most,
                            step_wait *out) {
  if (!mgrid_spend(&m->budget->work, SEEN_MAX / 16)) return 0;
  mgrid_index_clear(&s->index);
  s->n = 0, s->found = -1;
  waiting_note(s, (seen){ start, -1, 0 });
  for (s->from = 0; (size_t)s->from < s->n && !s->failed; s->from++) {
    size_t depth = 1;
    for (int32_t i = s->from; i > 0; i = s->all[i].parent) depth++;
    if (depth >= most) return 0;
    if (mgrid_step_each_awaited(m, &s->all[s->from].at, waiting_visit, s)) break;
  }
  if (s->found < 0) return 0;
  size_t n = 0;
  for (int32_t i = s->found; i >= 0; i = s->all[i].parent) n++;
  uint32_t node = s->all[0].node;
  size_t at = n;
  for (int32_t i = s->found; i >= 0; i = s->all[i].parent) {
    out[--at] = s->all[i].at;
    out[at].node = node;
    node = s->all[i].node;
  }
  return n;
}

size_t mgrid_step_shortest_cycle(const step_machine *m, size_t most, step_wait *out,
                                 mgrid_error *err) {
  search s = { 0 };
  size_t best = 0, starts = 0;
  int64_t world = m->step->plan->content.world;
  bool all = world <= 1024;
  s.all = malloc(SEEN_MAX * sizeof *s.all);
  step_wait *found = malloc((most + 1) * sizeof *found);
  s.failed = !s.all || !found;
  for (int64_t i = 0; !s.failed && i < (all ? world : (int64_t)m->types->n) && starts < 1024; i++) {
    int64_t rank = all ? i : m->types->type[i].first;
    int32_t type = m->types->of[rank];
    for (size_t k = m->first[type]; k < m->first[type + 1]; k++) {
      if (!m->cursor[k].posted || best == 2 || s.failed) continue;
      starts++;
      size_t n =
          cycle_through(m, &s, (step_wait){ rank, (int32_t)k, 0 }, best ? best : most + 1, found);
      if (n && (!best || n < best)) memcpy(out, found, (best = n) * sizeof *out);
    }
  }
  if (s.failed) mgrid_oom(err);
  free(s.all);
  mgrid_index_free(&s.index);
  free(found);
  return best;
}
