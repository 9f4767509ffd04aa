/* SPDX-License-Identifier: MIT
**
** executor.c - execute one rank of each type. A cursor says how far one stream of a type has come.
** An operation begins when the earlier operations on its stream, on its communicator, and on the
** streams that it waits for have ended. It ends when all other ranks that it needs have begun their
** operations. The executor begins operations until none can begin. The final state does not depend
** on their order, because an operation that can begin can still begin later.
*/
#include "step/clock.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { LONG_LOOP = 4 }; /* loops with more iterations left may be skipped in part */
/* value of `from` for a match that creates the communicator of its circle */
enum { CREATION = -2 };

const step_program *mgrid_step_executor_program(const step_executor *m, int32_t type) {
  return mgrid_step_of_type(m->step, m->types, type);
}

step_stops mgrid_step_executor_stops(const step_executor *m, const step_cursor *c) {
  int32_t program = m->step->class[m->types->type[c->type].class].program;
  return (step_stops){ &m->step->program[program],
                       &m->sizes[program],
                       m->types->type[c->type].circle,
                       c->stream,
                       c->circle,
                       m->clock,
                       c->type,
                       &m->budget->work };
}

/* ---------------------------------------------------------------- matches */

static uint64_t executor_hash_of(const step_match *key) {
  uint64_t x = ((uint64_t)(uint32_t)key->circle << 32 | (uint32_t)key->from)
               * UINT64_C(0x9E3779B97F4A7C15);
  x = (x ^ x >> 31 ^ (uint32_t)key->to) * UINT64_C(0xC2B2AE3D27D4EB4F);
  return x ^ x >> 29;
}

/* Return the key of the match in which the cursor's operation at entry `node` meets other ranks:
** the circle, and for a message the two positions. The key is a match without posts. */
static step_match match_key(const step_executor *m, const step_cursor *c, uint32_t node) {
  if (c->creates) return (step_match){ .circle = c->circle, .from = CREATION, .to = CREATION };
  const step_node *n = &mgrid_step_executor_program(m, c->type)->node[node];
  const step_type *t = &m->types->type[c->type];
  step_match key = { .circle = t->circle[n->slot], .from = -1, .to = -1 };
  if (n->kind == STEP_SEND) key.from = t->position[n->slot], key.to = (int32_t)n->number;
  if (n->kind == STEP_RECV) key.from = (int32_t)n->number, key.to = t->position[n->slot];
  return key;
}

static step_match *executor_find(const step_executor *m, const step_match *key) {
  uint64_t hash = executor_hash_of(key);
  size_t at = 0;
  for (int32_t i; (i = mgrid_index_next(&m->matches, hash, &at)) >= 0;) {
    step_match *x = &m->match[i];
    if (x->circle == key->circle && x->from == key->from && x->to == key->to) return x;
  }
  return NULL;
}

static step_match *match_of(step_executor *m, const step_post *post) {
  step_match key = match_key(m, &m->cursor[post->cursor], post->node),
             *found = executor_find(m, &key);
  if (found) return found;
  if (!MGRID_GROW(m->match, m->nmatches, 1)
      || !mgrid_index_put(&m->matches, executor_hash_of(&key), (int32_t)m->nmatches))
    return NULL;
  m->match[m->nmatches] = key;
  return &m->match[m->nmatches++];
}

const step_match *mgrid_step_executor_match(const step_executor *m, const step_cursor *c,
                                            uint32_t node) {
  step_match key = match_key(m, c, node);
  return executor_find(m, &key);
}

static void executor_push(step_executor *m, step_match *x, int side, step_post post) {
  if (!mgrid_step_budget_hold(m->budget, sizeof post)) return;
  m->failed |= !MGRID_GROW(x->post[side], x->first[side] + x->nposts[side], 1);
  if (!m->failed) mgrid_step_posts(x, side)[x->nposts[side]++] = post;
}

static void drop_first(step_executor *m, step_match *x, int side) {
  m->budget->memory.used -= sizeof **x->post;
  x->first[side]++, x->nposts[side]--;
  /* move the rest only if it is no longer than the dropped part, so that all moves together take
  ** linear time */
  if (x->first[side] < x->nposts[side]) return;
  memmove(x->post[side], mgrid_step_posts(x, side), x->nposts[side] * sizeof *x->post[side]);
  x->first[side] = 0;
}

/* Return whether two calls that meet can be one collective or one message. Their types must be
** equal, and their bytes unless they are given by position; in a collective also operation and
** root. */
static bool fit(const step_node *a, const step_node *b) {
  if (mgrid_step_rows[a->kind].role == STEP_TOGETHER
      && (a->kind != b->kind || a->number != b->number))
    return false;
  return a->type == b->type && (a->bytes == b->bytes || a->listed || b->listed);
}

/* ------------------------------------------------------------------ progress */

/* The cursors to look at are a heap, so the lowest cursor goes on first. Then the next state
** follows from the present state alone, whatever came before, and loops.c can find out that an
** execution repeats. */
static void executor_look_at(step_executor *m, int32_t cursor) {
  if (m->cursor[cursor].queued) return;
  m->cursor[cursor].queued = true;
  size_t i = m->queued++;
  for (; i > 0 && m->queue[(i - 1) / 2] > cursor; i = (i - 1) / 2)
    m->queue[i] = m->queue[(i - 1) / 2];
  m->queue[i] = cursor;
}

static int32_t take_first(step_executor *m) {
  int32_t first = m->queue[0], last = m->queue[--m->queued];
  size_t i = 0, n = m->queued;
  for (size_t k; (k = 2 * i + 1) < n; i = k) {
    if (k + 1 < n && m->queue[k + 1] < m->queue[k]) k++;
    if (m->queue[k] >= last) break;
    m->queue[i] = m->queue[k];
  }
  m->queue[i] = last;
  m->cursor[first].queued = false;
  return first;
}

static void executor_go_on(step_executor *m, int32_t cursor) {
  step_cursor *c = &m->cursor[cursor];
  step_stops w = mgrid_step_executor_stops(m, c);
  bool again = mgrid_step_place_next(&w, &c->place, LONG_LOOP);
  if (again) m->again = cursor;
  executor_look_at(m, cursor);
}

/* The operation of a cursor has ended: move the cursor on, and also the cursors that keep order on
** the operation's communicators. Then look again at all cursors of the type, because they may have
** waited for the operation. */
static void executor_complete(step_executor *m, int32_t cursor) {
  step_cursor *c = &m->cursor[cursor];
  int64_t at = c->place.at;
  size_t first = m->first[c->type], end = m->first[c->type + 1];
  c->posted = false;
  mgrid_spend(&m->budget->work, (int64_t)(end - first));
  for (size_t i = first; i < end; i++)
    if (m->cursor[i].circle >= 0 && !m->cursor[i].creates && m->cursor[i].place.at == at) {
      step_stops w = mgrid_step_executor_stops(m, &m->cursor[i]);
      mgrid_step_place_next(&w, &m->cursor[i].place, INT64_MAX);
    }
  executor_go_on(m, cursor);
  for (size_t i = first; i < end && end - first > 1; i++) executor_look_at(m, (int32_t)i);
}

static void end_creation(step_executor *m, int32_t cursor) {
  step_cursor *c = &m->cursor[cursor];
  const step_program *p = mgrid_step_executor_program(m, c->type);
  c->posted = false;
  c->place = (step_place){ .node = (uint32_t)p->n, .at = p->leaves };
  for (size_t i = m->first[c->type]; i < m->first[c->type + 1]; i++)
    executor_look_at(m, (int32_t)i);
}

static void part_done(step_executor *m, int32_t cursor) {
  if (cursor < 0 || --m->cursor[cursor].parts > 0) return;
  if (m->cursor[cursor].creates)
    end_creation(m, cursor);
  else
    executor_complete(m, cursor);
}

/* A part of a cursor's operation has met all ranks that it needs; `by` is the type that came last.
** With a clock the part takes time and ends later, else it ends now. */
static void is_matched(step_executor *m, int32_t cursor, uint32_t node, int64_t takes, int32_t by) {
  if (cursor >= 0 && m->clock)
    mgrid_step_clock_move(m, cursor, node, takes, by);
  else
    part_done(m, cursor);
}

static int64_t takes(const step_executor *m, const step_post *posts, uint32_t n) {
  return m->clock ? mgrid_step_clock_cost(m, posts, n) : 0;
}

static bool odd(step_executor *m, step_post a, step_post b) {
  const step_node *x = &mgrid_step_executor_program(m, a.type)->node[a.node],
                  *y = &mgrid_step_executor_program(m, b.type)->node[b.node];
  if (fit(x, y)) return false;
  if (m->odd[0].type < 0) m->odd[0] = a, m->odd[1] = b;
  return true;
}

/* Return whether the post is a call of a group of operations, and an earlier call of this group
** waits in the match. Calls on one communicator run in order, so the later call must wait for the
** earlier one. */
static bool is_after_part(const step_executor *m, const step_match *x, const step_post *post) {
  const step_cursor *c = &m->cursor[post->cursor];
  const step_program *p = mgrid_step_executor_program(m, c->type);
  const int32_t *circle = m->types->type[c->type].circle;
  uint32_t part = c->place.node + 1;
  if (c->creates) return false;
  while (part < post->node
         && (mgrid_step_rows[p->node[part].kind].role != STEP_TOGETHER
             || circle[p->node[part].slot] != x->circle))
    part++;
  mgrid_spend(&m->budget->work, part - c->place.node);
  if (part >= post->node) return false;
  mgrid_spend(&m->budget->work, x->nposts[0]);
  for (uint32_t i = 0; i < x->nposts[0]; i++)
    if (mgrid_step_posts(x, 0)[i].cursor == post->cursor) return true;
  return false;
}

static void post_together(step_executor *m, step_post post, const step_node *n) {
  const step_circle *circle = &m->types->circle[m->types->type[post.type].circle[n->slot]];

  if (circle->size == 1) {
    part_done(m, post.cursor);
    return;
  }
  step_match *x = match_of(m, &post);
  bool after = x && is_after_part(m, x, &post);
  if (x) executor_push(m, x, after, post);
  m->failed |= !x;
  if (m->failed || m->budget->memory.exhausted || after) return;
  bool creates = x->from == CREATION;
  if ((x->nposts[0] > 1 && !creates && odd(m, mgrid_step_posts(x, 0)[0], post))
      || x->nposts[0] < (uint32_t)circle->n)
    return;
  step_post *all = mgrid_step_posts(x, 0), *later = x->post[1];
  uint32_t count = x->nposts[0], nlater = x->nposts[1];
  for (uint32_t i = 1; i < count && !creates; i++)
    if (!fit(&mgrid_step_executor_program(m, all[0].type)->node[all[0].node],
             &mgrid_step_executor_program(m, all[i].type)->node[all[i].node]))
      return;
  /* is_matched may add matches, which moves m->match in memory, so take the posts out first */
  x->post[0] = x->post[1] = NULL, x->nposts[0] = x->nposts[1] = 0;
  m->budget->memory.used -= (count + nlater) * sizeof *all;
  int64_t time = takes(m, all, count);
  for (uint32_t i = 0; i < count; i++) is_matched(m, all[i].cursor, all[i].node, time, post.type);
  free(all);
  for (uint32_t i = 0; i < nlater && !m->failed; i++)
    post_together(m, later[i], &mgrid_step_executor_program(m, later[i].type)->node[later[i].node]);
  free(later);
}

static void post_point(step_executor *m, step_post post, const step_node *n) {
  int side = n->kind == STEP_RECV;
  step_match *x = match_of(m, &post);
  bool sent = !side && m->rules == STEP_BLOCKING && n->bytes <= m->eager && m->eager > 0;

  if (!x) {
    m->failed = true;
    return;
  }
  /* if earlier posts of this side wait, although the other side has posts, they differ: this post
  ** must not overtake them */
  bool first = x->nposts[side] == 0 && x->nposts[!side] > 0;
  step_post other = first ? mgrid_step_posts(x, !side)[0] : (step_post){ -1, -1, 0, 0 };
  if (first && !odd(m, side ? other : post, side ? post : other)) {
    int64_t time = takes(m, &post, 1);
    if (m->clock && other.cursor < 0)
      time = other.ready > m->clock->now ? other.ready - m->clock->now : 0;
    drop_first(m, x, !side);
    is_matched(m, other.cursor, other.node, time, post.type);
    is_matched(m, post.cursor, post.node, time, other.type);
    return;
  }
  step_post mine = post;
  int64_t time = sent ? takes(m, &post, 1) : 0;
  if (sent) mine.cursor = -1;
  if (sent && m->clock) mine.ready = m->clock->now + time;
  executor_push(m, x, side, mine);
  if (sent) is_matched(m, post.cursor, post.node, time, post.type);
}

static void post(step_executor *m, int32_t cursor, uint32_t node) {
  int32_t type = m->cursor[cursor].type;
  const step_node *n = &mgrid_step_executor_program(m, type)->node[node];
  step_post p = { cursor, type, node, 0 };
  if (mgrid_step_rows[n->kind].role == STEP_TOGETHER)
    post_together(m, p, n);
  else
    post_point(m, p, n);
}

int32_t mgrid_step_executor_earlier(const step_executor *m, const step_cursor *c) {
  const step_program *p = mgrid_step_executor_program(m, c->type);
  const int32_t *circle = m->types->type[c->type].circle;
  for (size_t i = m->first[c->type]; i < m->first[c->type + 1]; i++) {
    const step_cursor *o = &m->cursor[i];
    if (o->circle < 0 || o->place.at >= c->place.at) continue;
    mgrid_spend(&m->budget->work, p->node[c->place.node].end - c->place.node);
    for (uint32_t k = c->place.node; k < p->node[c->place.node].end; k++)
      if (p->node[k].slot >= 0 && circle[p->node[k].slot] == o->circle) return (int32_t)i;
  }
  return -1;
}

/* The cursors of creations are the last cursors of a type, in the order of the program. */
int32_t mgrid_step_executor_creation(const step_executor *m, const step_cursor *c) {
  size_t first = m->first[c->type], i = m->first[c->type + 1];
  int32_t found = -1;
  for (; i > first && m->cursor[i - 1].creates; i--) {
    const step_place *at = &m->cursor[i - 1].place;
    if (&m->cursor[i - 1] == c || at->node == mgrid_step_executor_program(m, c->type)->n) continue;
    if (c->creates ? at->at < c->place.at || &m->cursor[i - 1] < c : at->at <= c->place.at)
      found = (int32_t)i - 1;
  }
  return found;
}

/* The host waits only where the program says host_wait; other operations before a creation may
** still run. Under the rules of MPI the host waits for every operation. A creation belongs to the
** first call on a communicator, so the loops around this call are in their first iteration. */
int32_t mgrid_step_executor_host(const step_executor *m, const step_cursor *c) {
  const step_program *p = mgrid_step_executor_program(m, c->type);
  for (size_t i = m->first[c->type]; i < m->first[c->type + 1]; i++) {
    const step_cursor *o = &m->cursor[i];
    if (o->circle >= 0 || o->place.at >= c->place.at) continue;
    if (m->rules == STEP_BLOCKING) return (int32_t)i;
    uint32_t from = o->place.node;
    /* a loop with iterations left comes back to its beginning */
    for (int k = o->place.depth; k > 0; k--) {
      uint32_t loop = o->place.in[k - 1].loop;
      if (loop < c->place.node && c->place.node < p->node[loop].end) break;
      if (o->place.in[k - 1].left > 0) from = loop + 1;
    }
    for (uint32_t k = from; k < c->place.node && mgrid_spend(&m->budget->work, 1); k++)
      if (p->node[k].kind == STEP_HOST_WAIT && (o->stream < 0 || p->node[k].other == o->stream))
        return (int32_t)i;
  }
  return -1;
}

/* Begin the operation of a cursor if it can begin. */
static void advance(step_executor *m, int32_t cursor) {
  step_cursor *c = &m->cursor[cursor];
  const step_program *p = mgrid_step_executor_program(m, c->type);

  if ((c->circle >= 0 && !c->creates) || c->posted || c->place.node == p->n) return;
  const step_node *n = &p->node[c->place.node];
  if (mgrid_step_executor_creation(m, c) >= 0) return;
  if (c->creates) {
    if (mgrid_step_executor_host(m, c) >= 0) return;
    c->posted = true, c->parts = 1;
    post_together(m, (step_post){ cursor, c->type, c->place.node, 0 }, n);
    return;
  }
  if (mgrid_step_rows[n->kind].role == STEP_ORDER) {
    step_stops w = mgrid_step_executor_stops(m, c);
    int32_t of = n->listed ? p->node[n->other].stream : n->other;
    int64_t until = n->listed ? mgrid_step_place_of(&w, &c->place, (uint32_t)n->other)
                              : c->place.at;
    if (m->cursor[m->first[c->type] + (size_t)of].place.at >= until) executor_complete(m, cursor);
    return;
  }
  if (mgrid_step_executor_earlier(m, c) >= 0) return;
  c->posted = true;
  c->parts = 1;
  if (m->clock) m->clock->began[cursor] = m->clock->now;
  if (n->kind == STEP_COMPUTE || n->kind == STEP_LOOP) { /* only with a clock */
    mgrid_step_clock_work(m, cursor);
    return;
  }
  uint32_t begin = c->place.node, end = n->end;
  if (mgrid_step_rows[n->kind].role == STEP_BLOCK) {
    /* one part for each operation in the block, and one more, so that the block does not end while
    ** its operations begin */
    c->parts += (int32_t)(end - ++begin);
    for (uint32_t i = begin; i < end; i++) post(m, cursor, i);
    part_done(m, cursor);
  } else {
    post(m, cursor, begin);
  }
}

/* ---------------------------------------------------------------- beginning */

/* Set list[] to the circles that a type uses on several streams. Return how many there are.
** `scratch` has room for two numbers for each slot. */
static size_t shared_circles(const step_executor *m, int32_t type, int32_t *scratch,
                             int32_t *list) {
  enum { NONE = -1, SEVERAL = -2 };
  const step_program *p = mgrid_step_executor_program(m, type);
  const int32_t *circle = m->types->type[type].circle;
  size_t n = 0, slots = m->step->nslots;

  if (m->rules != STEP_NCCL || p->nstreams < 2 || !mgrid_spend(&m->budget->work, (int64_t)p->n))
    return 0;
  /* the first slot of a circle notes its stream for all slots of the circle */
  for (size_t a = 0; a < slots; a++) {
    if (!mgrid_spend(&m->budget->work, (int64_t)a / 8)) return 0;
    size_t first = 0;
    while (circle[first] != circle[a]) first++;
    scratch[a] = first < a ? (int32_t)first : NONE, scratch[slots + a] = NONE;
  }
  for (uint32_t i = 0; i < p->n; i++) {
    int32_t slot = p->node[i].slot, stream = p->node[i].stream;
    if (slot < 0 || circle[slot] < 0) continue;
    int32_t *on = &scratch[slots + (size_t)(scratch[slot] < 0 ? slot : scratch[slot])];
    *on = *on == NONE || *on == stream ? stream : SEVERAL;
  }
  for (size_t a = 0; a < slots; a++)
    if (scratch[slots + a] == SEVERAL) list[n++] = circle[a];
  return n;
}

/* Return whether a family's communicators are created at their first calls. They are not if a
** family that is not lazy may have a group with the same members, because the two groups then share
** a communicator. */
static bool is_lazy(const mgrid_plan *p, int32_t family) {
  bool lazy = p->content.entry[family].choice->asked.lazy;
  for (int32_t i = 0; i < (int32_t)p->content.nentries && lazy; i++)
    if (!p->content.entry[i].choice->asked.lazy)
      lazy = mgrid_step_leader(p, i) != mgrid_step_leader(p, family)
             && !(i < family ? mgrid_plan_rivals(p, family, i) : mgrid_plan_rivals(p, i, family));
  return lazy;
}

typedef struct creations {
  const step_executor *m;
  int32_t type;
  const bool *lazy; /* [nslots] */
  size_t n;
  step_cursor *out; /* [n]; NULL: count */
  int32_t *circle;  /* [nslots]: the circles found so far */
} creations;

/* Find the first calls on circles with lazy communicators, in the entries `from` to end - 1. `at`:
** operations before `from`, with loops unrolled. Return the number of operations before `end`. */
static int64_t find_creations(creations *x, const step_program *p, uint32_t from, uint32_t end,
                              int64_t at) {
  const int32_t *circle = x->m->types->type[x->type].circle;
  for (uint32_t i = from; i < end && mgrid_spend(&x->m->budget->work, 1); i = p->node[i].end) {
    const step_node *n = &p->node[i];
    if (n->kind == STEP_LOOP) {
      int64_t after = find_creations(x, p, i + 1, n->end, at);
      at += n->number * (after - at);
      continue;
    }

    for (uint32_t k = i; k < n->end; k++) {
      int32_t slot = p->node[k].slot, is = slot < 0 ? -1 : circle[slot];
      bool is_new = is >= 0 && x->lazy[slot] && x->m->types->circle[is].size > 1;
      for (size_t j = 0; j < x->n && is_new; j++) is_new = x->circle[j] != is;
      if (!is_new) continue;
      if (x->out)
        x->out[x->n] = (step_cursor){ .type = x->type,
                                      .stream = -1,
                                      .circle = is,
                                      .creates = true,
                                      .place = { k, 0, at, { { 0 } } } };
      x->circle[x->n++] = is;
    }
    at++;
  }
  return at;
}

/* Set `out` to the creations that the host makes during the program of a type. Return how many
** there are. With a clock there are none, because a price leaves them out. */
static size_t creations_of(const step_executor *m, int32_t type, const bool *lazy, int32_t *scratch,
                           step_cursor *out) {
  const step_program *p = mgrid_step_executor_program(m, type);
  creations x = { m, type, lazy, 0, out, scratch };
  bool any = false;
  for (size_t i = 0; i < m->step->nslots; i++) any |= lazy[i];
  if (any && !m->clock) find_creations(&x, p, 0, (uint32_t)p->n, 0);
  return x.n;
}

static mgrid_status begin(step_executor *m, mgrid_error *err) {
  size_t types = m->types->n, room = 0, slots = m->step->nslots;
  int32_t *scratch = malloc((4 * slots + 1) * sizeof *scratch), *shared = scratch + 2 * slots;
  bool *lazy = (bool *)(scratch + 3 * slots);

  m->first = malloc((types + 1) * sizeof *m->first);
  m->sizes = calloc(m->step->nprograms + 1, sizeof *m->sizes);
  if (!m->first || !m->sizes || !scratch) return free(scratch), mgrid_oom(err);
  for (size_t i = 0; i < m->step->nprograms; i++)
    if (mgrid_step_sizes_of(&m->step->program[i], &m->sizes[i], err))
      return free(scratch), err->status;
  for (size_t i = 0; i < slots; i++) lazy[i] = is_lazy(m->step->plan, m->step->slot[i].entry);
  for (size_t t = 0; t < types; t++) {
    size_t streams = m->rules == STEP_NCCL ? mgrid_step_executor_program(m, (int32_t)t)->nstreams
                                           : 1;
    m->first[t] = room;
    room += streams + shared_circles(m, (int32_t)t, scratch, shared);
    room += creations_of(m, (int32_t)t, lazy, scratch, NULL);
  }
  m->first[types] = m->ncursors = room;
  if (!mgrid_step_budget_hold(m->budget, 3 * room * sizeof *m->cursor))
    return free(scratch), MGRID_OK; /* 3: loops.c keeps two more copies of the cursors */
  m->cursor = calloc(room + 1, sizeof *m->cursor);
  m->queue = malloc((room + 1) * sizeof *m->queue);
  if (!m->cursor || !m->queue) return free(scratch), mgrid_oom(err);
  for (size_t t = 0; t < types && !m->budget->work.exhausted; t++) {
    size_t n = shared_circles(m, (int32_t)t, scratch, shared),
           last = m->first[t + 1] - creations_of(m, (int32_t)t, lazy, scratch, NULL),
           streams = last - m->first[t] - n;
    creations_of(m, (int32_t)t, lazy, scratch, &m->cursor[last]);
    for (size_t i = 0; i < streams + n; i++) {
      step_cursor *c = &m->cursor[m->first[t] + i];
      *c = (step_cursor){ .type = (int32_t)t,
                          .stream = m->rules == STEP_NCCL ? (int32_t)i : -1,
                          .circle = -1 };
      if (i >= streams) c->circle = shared[i - streams];
    }
    for (size_t i = m->first[t]; i < m->first[t + 1]; i++) {
      step_stops w = mgrid_step_executor_stops(m, &m->cursor[i]);
      if (i < last) mgrid_step_place_stop(&w, &m->cursor[i].place, INT64_MAX);
      executor_look_at(m, (int32_t)i);
    }
  }
  free(scratch);
  return MGRID_OK;
}

/* The budget is exhausted: fail, and say how far all ranks came. */
static mgrid_status executor_give_up(const step_executor *m, mgrid_error *err) {
  mgrid_error why = MGRID_ERROR_INIT;
  const step_cursor *last = NULL;
  const step_program *p = NULL;
  double least = 2;

  mgrid_step_budget_spent(m->budget, &why);
  for (size_t i = 0; m->cursor && i < m->ncursors; i++) {
    const step_cursor *c = &m->cursor[i];
    const step_program *of = mgrid_step_executor_program(m, c->type);
    double share = (double)c->place.at / (double)(of->leaves + 1);
    if (c->circle < 0 && share < least) least = share, last = c, p = of;
  }
  if (!last) return mgrid_fail(err, MGRID_LIMIT, "%s before the first operation", why.message);
  mgrid_fail(err, MGRID_LIMIT,
             "%s; %s so far: all ranks get to operation %" PRId64 " of %" PRId64
             " or further, rank %" PRId64 " is last",
             why.message, m->clock ? "priced" : "proved", last->place.at, p->leaves,
             m->types->type[last->type].first);

  /* the budget may have ended the search for a stop at the end of a loop with iterations left */
  const step_place *at = &last->place;
  uint32_t node = at->node == p->n && at->depth ? at->in[at->depth - 1].loop + 1 : at->node;
  if (node < p->n && p->node[node].line)
    mgrid_error_reword(err, "%s, in line %d", err->message, p->node[node].line);
  return MGRID_LIMIT;
}

mgrid_status mgrid_step_executor_run(step_executor *m, const mgrid_step *s, const step_types *t,
                                     step_rules rules, int64_t eager, step_clock *clock,
                                     step_budget *b, bool *done, mgrid_error *err) {
  *m = (step_executor){
    .step = s, .types = t, .rules = rules, .again = -1, .clock = clock, .budget = b
  };
  m->eager = rules == STEP_BLOCKING ? eager : 0;
  m->odd[0].type = m->odd[1].type = -1;
  if (clock) clock->executor = m;

  mgrid_status status = begin(m, err);
  if (!status && clock) status = mgrid_step_clock_begin(m, err);

  while (!status && !b->work.exhausted && (m->queued || clock)) {
    if (m->queued) {
      advance(m, take_first(m));
    } else {
      int32_t cursor = mgrid_step_clock_next(m);
      if (cursor < 0) break;
      part_done(m, cursor);
    }
    if (clock && m->queued) continue; /* first begin everything that can begin now */
    if (m->again >= 0 && m->eager == 0 && !(clock && mgrid_step_clock_every(m)))
      /* with eager sends the state would also contain the sends that are not received yet */
      mgrid_step_skip(m);
    m->again = -1;
    if (m->failed) status = mgrid_oom(err);
    if (!status && clock) status = mgrid_step_clock_check(m, err);
  }

  if (!status && b->work.exhausted) status = executor_give_up(m, err);
  *done = !status;
  for (size_t i = 0; i < m->ncursors && *done; i++)
    *done = m->cursor[i].place.node == mgrid_step_executor_program(m, m->cursor[i].type)->n;
  for (size_t i = 0; i < m->nmatches && *done; i++)
    *done = m->match[i].nposts[0] + m->match[i].nposts[1] == 0;
  return status;
}

void mgrid_step_executor_free(step_executor *m) {
  for (size_t i = 0; i < m->nmatches; i++) free(m->match[i].post[0]), free(m->match[i].post[1]);
  for (size_t i = 0; m->sizes && i < m->step->nprograms; i++) mgrid_step_sizes_free(&m->sizes[i]);
  mgrid_step_skips_free(m->skips);
  free(m->sizes);
  free(m->first);
  free(m->cursor);
  free(m->queue);
  free(m->match);
  mgrid_index_free(&m->matches);
}
