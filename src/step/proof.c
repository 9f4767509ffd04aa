/* SPDX-License-Identifier: MIT
**
** proof.c - the verdict about a step: proved (perhaps with assumptions), or a shortest
** counterexample. The executor runs one rank of each type. Each stream of such a rank has a cursor,
** which says how far the stream has come. If the execution comes to a halt before the end, the
** functions here find out which ranks wait for which others. step.h explains circle (a
** communicator), slot (the nth group of each rank in a family) and post (an operation that waits).
*/
#include "step/step.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ======================================================= who waits for whom */

/* The execution has come to a halt. Its state is about types; a counterexample is about ranks. */

typedef struct step_wait {
  int64_t rank;
  int32_t cursor; /* the cursor, of the rank's type, that waits; -1: the rank has ended */
  uint32_t node;  /* the entry in which the rank waits for another rank */
} step_wait;

/* ------------------------------------------------------- the ranks waited for */

typedef struct wanted { /* a call for which some rank waits; another type should make it */
  /* [nslots]: the circle of each slot, for the type that should make the call */
  const int32_t *circle;
  int32_t on; /* the circle of the call */
  /* STEP_SEND or STEP_RECV; TOGETHER: any collective; ANY_CALL: any call on the circle */
  int32_t kind;
  int32_t peer;   /* of a send or receive: the position of the rank that waits */
  int32_t stream; /* of the cursor that should make the call; -1: any */
} wanted;

enum { TOGETHER = -1, ANY_CALL = -2 };

static bool is_wanted(const step_program *p, uint32_t node, const void *ud) {
  const wanted *x = ud;
  const step_node *n = &p->node[node];
  if (n->slot < 0 || x->circle[n->slot] != x->on) return false;
  if (x->stream >= 0 && n->stream != x->stream) return false;
  if (x->kind == ANY_CALL) return true;
  if (x->kind == TOGETHER) return mgrid_step_rows[n->kind].role == STEP_TOGETHER;
  return n->kind == x->kind && n->number == x->peer;
}

/* A cursor may wait for another cursor of its own rank. Follow such cursors from i on. Return the
** first whose operation has begun, so that it waits for other ranks; -1: none. */
static int32_t begun(const step_executor *m, int32_t i) {
  const step_cursor *c = &m->cursor[i];
  size_t first = m->first[c->type], end = m->first[c->type + 1];

  for (size_t tries = 0; tries <= end - first; tries++, c = &m->cursor[i]) {
    const step_program *p = mgrid_step_executor_program(m, c->type);
    if (c->posted) return i;
    if (c->place.node == p->n) return -1;
    int32_t creation = mgrid_step_executor_creation(m, c);
    if (creation < 0 && c->creates) creation = mgrid_step_executor_host(m, c);
    if (creation >= 0) {
      i = creation;
      continue;
    }

    const step_node *n = &p->node[c->place.node];
    if (mgrid_step_rows[n->kind].role == STEP_ORDER) {
      i = (int32_t)first + (n->listed ? p->node[n->other].stream : n->other);
      continue;
    }

    const int32_t earlier = mgrid_step_executor_earlier(m, c);
    if (earlier < 0) return -1;
    i = (int32_t)first + p->node[m->cursor[earlier].place.node].stream;
  }
  return -1;
}

/* Return whether the type will still make the call. *cursor: the cursor in which the type waits
** before that; -1: in none, because it has ended. Calls on one communicator run in the order of the
** program, so of several streams the one with the earliest such call counts. */
static bool will_call(const step_executor *m, int32_t type, wanted *x, int32_t *cursor) {
  const step_program *p = mgrid_step_executor_program(m, type);
  int64_t earliest = -1;

  *cursor = -1;
  for (size_t i = m->first[type]; i < m->first[type + 1]; i++) {
    const step_cursor *c = &m->cursor[i];
    if (c->circle >= 0) continue;
    step_place at = c->place;
    /* An operation that has begun is not the wanted call: otherwise it would have met the rank that
    ** waits. So begin the search after the operation. */
    if (c->posted) at.node = p->node[at.node].end;
    x->stream = c->stream;
    step_stops w = mgrid_step_executor_stops(m, c);
    int64_t found = mgrid_step_place_find(&w, &at, &m->budget->work, is_wanted, x);
    if (found < 0 || (earliest >= 0 && earliest <= found)) continue;
    earliest = found;
    *cursor = (int32_t)i;
  }

  if (earliest >= 0) return *cursor = begun(m, *cursor), true;
  for (size_t i = m->first[type]; i < m->first[type + 1] && *cursor < 0; i++)
    if (m->cursor[i].circle < 0) *cursor = begun(m, (int32_t)i);
  return false;
}

/* Return whether an operation of the type waits already on one side of a match. */
static bool has_come(const step_match *x, int side, int32_t type) {
  for (uint32_t i = 0; x && i < x->nposts[side]; i++)
    if (mgrid_step_posts(x, side)[i].type == type) return true;
  return false;
}

/* Return whether the cursor's operation at `node` has begun and still waits for others. */
static bool is_unmet(const step_executor *m, int32_t cursor, uint32_t node) {
  const step_cursor *c = &m->cursor[cursor];
  const step_match *x = mgrid_step_executor_match(m, c, node);
  /* A match has two sides. For collectives side 0 has those that wait for other ranks. Side 1 has
  ** those that wait for an earlier collective between ncclGroupStart and ncclGroupEnd: skip it. */
  int sides = x && x->from == -1 ? 1 : 2;
  for (int side = 0; x && side < sides; side++)
    for (uint32_t i = 0; i < x->nposts[side] && mgrid_spend(&m->budget->work, 1); i++)
      if (mgrid_step_posts(x, side)[i].cursor == cursor
          && mgrid_step_posts(x, side)[i].node == node)
        return true;
  return false;
}

/* Called with a rank `to` for which another rank waits. to->node: the entry in which the other rank
** waits. `will`: the rank `to` will still make the call for which the other rank waits. Return true
** to stop. */
typedef bool awaited_fn(const step_wait *to, bool will, void *ud);

/* Call fn for each rank for which rank from->rank waits, until fn returns true. Return whether fn
** did. */
static bool each_awaited(const step_executor *m, const step_wait *from, awaited_fn *fn, void *ud) {
  const step_cursor *c = &m->cursor[from->cursor];
  const step_program *p = mgrid_step_executor_program(m, c->type);
  uint32_t end = p->node[c->place.node].end;

  for (uint32_t node = c->place.node; node < end; node++) {
    const step_node *n = &p->node[node];
    if (!mgrid_spend(&m->budget->work, 1)) return false;
    if (n->slot < 0 || !is_unmet(m, from->cursor, node)) continue;
    const step_slot *slot = &m->step->slot[n->slot];
    const mgrid_family *f = m->step->plan->content.entry[slot->entry].family;
    const step_match *x = mgrid_step_executor_match(m, c, node);
    int64_t group, position;
    f->form->locate(f, from->rank, slot->nth, &group, &position);
    /* a send or receive waits for one position of the group; any other call for all members */
    bool point = mgrid_step_rows[n->kind].role == STEP_POINT && !c->creates;
    int64_t size = mgrid_family_size(f, group);
    for (int64_t i = point ? n->number : 0; i < (point ? n->number + 1 : size); i++) {
      if (!mgrid_spend(&m->budget->work, 1 + (x ? x->nposts[0] : 0) / 4)) return false;
      int64_t rank = f->form->rank(f, group, i);
      int32_t type = m->types->of[rank];
      step_wait to = { rank, -1, node };
      wanted want = { m->types->type[type].circle, m->types->type[c->type].circle[n->slot],
                      c->creates ? ANY_CALL : TOGETHER, (int32_t)position, -1 };
      if (point) want.kind = n->kind == STEP_SEND ? STEP_RECV : STEP_SEND;
      if (!point && has_come(x, 0, type)) continue;
      bool will = will_call(m, type, &want, &to.cursor);
      if (fn(&to, will, ud)) return true;
    }
  }
  return false;
}

/* -------------------------------------------------------- the shortest cycle */

enum { SEEN_MAX = 1 << 15 }; /* limit of the ranks in one search */

typedef struct seen {
  step_wait at;
  int32_t parent;
  uint32_t node; /* where the parent waits for this rank */
} seen;

typedef struct search {
  size_t n;
  seen *all;         /* [SEEN_MAX]: the waiting ranks found so far; all[0] is the start */
  mgrid_index index; /* finds an entry of `all` */
  int32_t from;      /* index in `all`: the rank whose awaited ranks are looked at now */
  int32_t found;     /* index in `all`: a rank that waits for the start; -1: none yet */
  bool failed;       /* out of memory */
} search;

static uint64_t waiting_hash_of(const step_wait *at) {
  return (uint64_t)at->rank * UINT64_C(0x9E3779B97F4A7C15) ^ (uint64_t)at->cursor * 0x85EBCA6B;
}

static void waiting_note(search *s, seen x) {
  s->failed = !mgrid_index_put(&s->index, waiting_hash_of(&x.at), (int32_t)s->n);
  if (!s->failed) s->all[s->n++] = x;
}

/* An awaited_fn: note a rank that was not found before. Stop if the rank is the one where the
** search began. */
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

/* Find the shortest cycle through `start` with fewer than `most` ranks, by a breadth-first search.
** Return its length; 0: none. */
static size_t cycle_through(const step_executor *m, search *s, step_wait start, size_t most,
                            step_wait *out) {
  if (!mgrid_spend(&m->budget->work, SEEN_MAX / 16)) return 0;
  mgrid_index_clear(&s->index);
  s->n = 0, s->found = -1;

  waiting_note(s, (seen){ start, -1, 0 });
  for (s->from = 0; (size_t)s->from < s->n && !s->failed; s->from++) {
    size_t depth = 1;
    for (int32_t i = s->from; i > 0; i = s->all[i].parent) depth++;
    if (depth >= most) return 0;
    if (each_awaited(m, &s->all[s->from].at, waiting_visit, s)) break;
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

/* Find a shortest cycle of at most `most` ranks: each waits for the next, and the last for the
** first. Return its length; 0: none. In worlds of up to 1024 ranks every rank is tried as a start,
** in larger worlds only the first rank of each type. After 1024 waiting cursors no further rank is
** tried. So a shorter cycle may exist. */
static size_t shortest_cycle(const step_executor *m, size_t most, step_wait *out,
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
      /* no cycle is shorter than one of two ranks */
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

/* ===================================================== what a proof assumes */

/* What a proof under the rules of NCCL assumes. Two calls on two streams may run on a GPU at the
** same time, unless something on the rank orders them. Kernels of two streams start in any order,
** whatever the order of the calls. And NCCL does not promise that kernels of two communicators
** progress side by side (NCCL's user guide, "Using multiple NCCL communicators concurrently";
** nccl#195, #217, #522, #783). So for each pair of families with such calls the proof assumes that
** these calls fit on the GPU together, or start in one order on all ranks. The code below finds the
** pairs. It goes once through each program, and at most twice through each loop, because later
** iterations add no pairs. */

/* What has certainly ended before some point of the program. Calls are numbered in the order of the
** program. of[t]: the calls on stream t up to this number have ended. */
typedef struct knowledge {
  int64_t of[STEP_STREAMS_MAX];
} knowledge;

typedef struct walk {
  const mgrid_step *step;
  const step_program *program;
  const bool *several; /* [nslots]: the group of some rank with this program has several members */
  mgrid_budget *budget;
  size_t nstreams, families;
  int64_t now;                       /* the number of the last call */
  knowledge known[STEP_STREAMS_MAX]; /* [nstreams]: what has ended before the stream's next call */
  int64_t *last;       /* [nstreams * families]: the last call of a family on a stream */
  knowledge *over;     /* [families]: what is known after the last call on a communicator */
  knowledge *recorded; /* [n]: what is known at an event */
  bool *pairs;         /* [families * families]: the pairs found; the lower family comes first */
} walk;

/* Add to `to` what is known in `from`. */
static void learn(knowledge *to, const knowledge *from, size_t n) {
  for (size_t i = 0; i < n; i++)
    if (from->of[i] > to->of[i]) to->of[i] = from->of[i];
}

static void assumes_put_call(walk *w, const step_node *n) {
  const mgrid_step *s = w->step;
  int32_t family = s->slot[n->slot].entry, leader = mgrid_step_leader(s->plan, family);
  size_t on = n->stream;
  knowledge *mine = &w->known[on];
  if (!w->several[n->slot]) return; /* groups of one rank send nothing */
  w->now++;
  /* calls on one communicator run in order, so earlier calls on this one have ended */
  learn(mine, &w->over[leader], w->nstreams);
  for (size_t t = 0; t < w->nstreams; t++)
    for (size_t f = 0; f < w->families && t != on; f++)
      if (w->last[t * w->families + f] > mine->of[t]
          && mgrid_step_leader(s->plan, (int32_t)f) != leader)
        w->pairs[f < (size_t)family ? f * w->families + (size_t)family
                                    : (size_t)family * w->families + f] = true;
  mgrid_spend(w->budget, (int64_t)(w->nstreams * w->families) / 8);
  mine->of[on] = w->last[on * w->families + (size_t)family] = w->now;
  w->over[leader] = *mine;
}

static void put_order(walk *w, uint32_t at) {
  const step_node *n = &w->program->node[at];
  if (n->kind == STEP_HOST_WAIT) {
    knowledge from = w->known[n->other];
    for (size_t i = 0; i < w->nstreams; i++) learn(&w->known[i], &from, w->nstreams);
  } else {
    learn(&w->known[n->stream], n->listed ? &w->recorded[n->other] : &w->known[n->other],
          w->nstreams);
  }
}

static void walk_block(walk *w, uint32_t from, uint32_t end) {
  for (uint32_t i = from; i < end && mgrid_spend(w->budget, 1); i = w->program->node[i].end) {
    const step_node *n = &w->program->node[i];
    if (n->kind == STEP_LOOP) {
      for (int64_t round = 0; round < n->number && round < 2; round++) walk_block(w, i + 1, n->end);
    } else if (n->kind < STEP_CALLS) {
      assumes_put_call(w, n);
    } else if (n->kind == STEP_EVENT) {
      w->recorded[i] = w->known[n->stream];
    } else if (mgrid_step_rows[n->kind].role == STEP_BLOCK) {
      walk_block(w, i + 1, n->end);
    } else if (mgrid_step_rows[n->kind].role == STEP_ORDER) {
      put_order(w, i);
    }
  }
}

static bool starts_in_order(const mgrid_step *s, size_t family) {
  return s->plan->content.entry[family].choice->nccl.number[MGRID_NCCL_LAUNCH_ORDER_IMPLICIT] == 1;
}

static bool is_in_list(const mgrid_concurrent *all, const char *family) {
  return mgrid_concurrent_place(all, family) < all->n;
}

/* Return whether the recipe removes the assumption about two families: it lists both as concurrent,
** or both start in order. */
static bool is_allowed(const mgrid_step *s, size_t a, size_t b) {
  const mgrid_content *c = &s->plan->content;
  for (size_t i = 0; i < c->nconcurrent; i++)
    if (is_in_list(&c->concurrent[i], c->entry[a].name)
        && is_in_list(&c->concurrent[i], c->entry[b].name))
      return true;
  return starts_in_order(s, a) && starts_in_order(s, b);
}

/* Set for each program and slot whether the group of some rank has several members. Ranks of one
** class have groups of one size. */
static void find_several(const mgrid_step *s, mgrid_budget *budget, bool *several) {
  for (size_t i = 0; i < s->nclasses; i++)
    for (size_t k = 0; k < s->nslots && mgrid_spend(budget, 1); k++) {
      step_read read = { STEP_ASKED_SIZE, s->slot[k].entry, s->slot[k].nth };
      bool *of = &several[(size_t)s->class[i].program * s->nslots + k];
      *of = *of || mgrid_step_answer(s->plan, &read, s->class[i].first) > 1;
    }
}

/* Set v->assumes for the rules of NCCL. */
static mgrid_status assumptions(const mgrid_step *s, step_budget *b, step_verdict *v,
                                mgrid_error *err) {
  size_t families = s->plan->content.nentries;
  walk w = { .step = s, .budget = &b->work, .families = families };
  if (!mgrid_step_budget_hold(b, s->nprograms * s->nslots)) return mgrid_step_budget_spent(b, err);

  w.pairs = calloc(families * families + 1, sizeof *w.pairs);
  w.last = malloc((STEP_STREAMS_MAX * families + 1) * sizeof *w.last);
  w.over = malloc((families + 1) * sizeof *w.over);
  bool *several = calloc(s->nprograms * s->nslots + 1, sizeof *several);
  bool done = w.pairs && w.last && w.over && several;
  if (done) find_several(s, w.budget, several);
  for (size_t i = 0; i < s->nprograms && done; i++) {
    if (s->program[i].nstreams < 2) continue;
    w.program = &s->program[i], w.nstreams = s->program[i].nstreams, w.now = 0;
    w.several = several + i * s->nslots;
    memset(w.known, 0, sizeof w.known);
    memset(w.last, 0, STEP_STREAMS_MAX * families * sizeof *w.last);
    memset(w.over, 0, families * sizeof *w.over);
    w.recorded = calloc(s->program[i].n + 1, sizeof *w.recorded);
    done = w.recorded != NULL;
    if (done) walk_block(&w, 0, (uint32_t)s->program[i].n);
    free(w.recorded);
  }

  size_t found = 0;
  for (size_t i = 0; done && i < families * families; i++)
    if (w.pairs[i] && !is_allowed(s, i / families, i % families) && found++ < STEP_ASSUMES_MAX)
      v->assumes[v->nassumes++] = (step_pair){ (int32_t)(i / families), (int32_t)(i % families) };

  free(w.pairs);
  free(w.last);
  free(w.over);
  free(several);
  if (!done) return mgrid_oom(err);
  if (b->work.exhausted) return mgrid_step_budget_spent(b, err);
  if (found > STEP_ASSUMES_MAX)
    return mgrid_fail(err, MGRID_LIMIT,
                      "the proof would assume something about %zu pairs of families; %d at most",
                      found, STEP_ASSUMES_MAX);
  return MGRID_OK;
}

/* ============================================================== the verdict */

const char *const mgrid_step_verdict_names[] = { "proved", "mismatch", "unmatched", "cycle",
                                                 "hazard" };

/* Add a rank to the counterexample. `cursor`: the cursor in which the rank waits, also that of a
** creation; -1: none. */
static void verdict_add(const step_executor *m, step_verdict *v, int64_t rank, int32_t cursor,
                        uint32_t node, int64_t waits_for) {
  const mgrid_step *s = m->step;
  v->waiting[v->n++] = (step_waiting){ rank, waits_for, s->class[s->of[rank]].program, node,
                                       cursor >= 0 && m->cursor[cursor].creates };
}

/* ----------------------------------------------------------------- mismatch */

/* Return another rank of the given type in the group of `rank` in a slot; -1: there is none. */
static int64_t member_of_type(const step_executor *m, int64_t rank, int32_t slot, int32_t type) {
  const mgrid_family *f = m->step->plan->content.entry[m->step->slot[slot].entry].family;
  int64_t group, position;
  if (!f->form->locate(f, rank, m->step->slot[slot].nth, &group, &position)) return -1;
  int64_t size = mgrid_family_size(f, group);
  for (int64_t i = 0; i < size; i++)
    if (m->types->of[f->form->rank(f, group, i)] == type && f->form->rank(f, group, i) != rank)
      return f->form->rank(f, group, i);
  return -1;
}

static void tell_mismatch(const step_executor *m, step_verdict *v) {
  const step_post *a = &m->odd[0], *b = &m->odd[1];
  int64_t rank = m->types->type[a->type].first;
  int32_t slot = mgrid_step_executor_program(m, a->type)->node[a->node].slot;
  /* a message from one rank to another of the same type is one from the rank to itself */
  int64_t other = a->type == b->type ? rank : member_of_type(m, rank, slot, b->type);
  v->told = STEP_MISMATCH;
  verdict_add(m, v, rank, -1, a->node, other);
  if (other >= 0) verdict_add(m, v, other, -1, b->node, rank);
}

/* ---------------------------------------------------------------- unmatched */

typedef struct missing {
  const step_executor *m;
  step_wait who; /* the rank that will not make the call */
  uint32_t node; /* the entry in which another rank waits for that call */
  bool found;
} missing;

/* An awaited_fn: stop at the first rank that will not make the call. */
static bool verdict_find_missing(const step_wait *to, bool will, void *ud) {
  missing *x = ud;
  if (will) return false;
  x->who = *to, x->node = to->node, x->found = true;
  return true;
}

static bool tell_unmatched(const step_executor *m, step_verdict *v) {
  for (size_t t = 0; t < m->types->n; t++)
    for (size_t i = m->first[t]; i < m->first[t + 1]; i++) {
      int64_t rank = m->types->type[t].first;
      missing x = { .m = m };
      if (!m->cursor[i].posted
          || !each_awaited(m, &(step_wait){ rank, (int32_t)i, 0 }, verdict_find_missing, &x)
          || !x.found)
        continue;
      const step_program *p = mgrid_step_executor_program(m, m->types->of[x.who.rank]);
      v->told = STEP_UNMATCHED;
      verdict_add(m, v, rank, (int32_t)i, x.node, x.who.rank);
      verdict_add(m, v, x.who.rank, x.who.cursor,
                  x.who.cursor < 0 ? (uint32_t)p->n : m->cursor[x.who.cursor].place.node, -1);
      return true;
    }
  return false;
}

/* Find a send that ended without waiting and that nobody receives. Return false if there is
** none. */
static bool tell_unreceived(const step_executor *m, step_verdict *v) {
  for (size_t i = 0; i < m->nmatches; i++) {
    const step_match *x = &m->match[i];
    if (!x->nposts[0] || mgrid_step_posts(x, 0)->cursor >= 0) continue;
    const step_post *p = mgrid_step_posts(x, 0);
    v->told = STEP_UNMATCHED;
    verdict_add(m, v, m->types->type[p->type].first, -1, p->node, -1);
    return true;
  }
  return false;
}

/* ------------------------------------------------------------------ verdict */

static mgrid_status verdict_tell(const step_executor *m, step_verdict *v, mgrid_error *err) {
  step_wait cycle[STEP_WAITING_MAX];
  if (m->odd[0].type >= 0) return tell_mismatch(m, v), MGRID_OK;
  if (tell_unmatched(m, v) && !m->budget->work.exhausted) return MGRID_OK;
  v->told = STEP_CYCLE;
  size_t n = shortest_cycle(m, STEP_WAITING_MAX, cycle, err);
  for (size_t i = 0; i < n; i++)
    verdict_add(m, v, cycle[i].rank, cycle[i].cursor, cycle[i].node, cycle[(i + 1) % n].rank);
  if (m->budget->work.exhausted) {
    mgrid_error why = MGRID_ERROR_INIT;
    mgrid_step_budget_spent(m->budget, &why);
    return mgrid_fail(err, MGRID_LIMIT,
                      "%s: the step is not proved, because some rank waits forever; finding that "
                      "rank needs a larger budget",
                      why.message);
  }
  if (!n && !err->status) tell_unreceived(m, v);
  return err->status;
}

/* Return whether the recipe lists all families of the counterexample as concurrent, in one list.
** Concurrent families leave SMs for each other's kernels (concurrent.c of src/plan). */
static bool is_concurrent(const mgrid_step *s, const step_verdict *v) {
  const mgrid_content *c = &s->plan->content;
  for (size_t i = 0; i < c->nconcurrent; i++) {
    bool all = v->n > 0;
    for (size_t k = 0; k < v->n && all; k++) {
      const step_program *p = &s->program[v->waiting[k].program];
      if (v->waiting[k].node == p->n) continue;
      all = is_in_list(&c->concurrent[i], mgrid_step_family_of(s, &p->node[v->waiting[k].node]));
    }
    if (all) return true;
  }
  return false;
}

static bool has_streams(const mgrid_step *s) {
  for (size_t i = 0; i < s->nprograms; i++)
    if (s->program[i].nstreams > 1) return true;
  return false;
}

static mgrid_status verdict_execute(const mgrid_step *s, const step_types *t, step_rules rules,
                                    int64_t eager, step_budget *b, step_verdict *v,
                                    mgrid_error *err) {
  step_executor m;
  bool done;
  mgrid_status status = mgrid_step_executor_run(&m, s, t, rules, eager, NULL, b, &done, err);
  if (!status && !done) status = verdict_tell(&m, v, err);
  mgrid_step_executor_free(&m);
  return status;
}

mgrid_status mgrid_step_conclude(const mgrid_step *s, step_rules rules, int64_t eager,
                                 step_verdict *v, mgrid_error *err) {
  step_types t;
  step_budget b;
  mgrid_error own = MGRID_ERROR_INIT;
  *v = (step_verdict){ .told = STEP_PROVED };
  mgrid_step_budget_begin(&b, &s->limits, "the proof of the step");
  if (mgrid_step_types_of(s, NULL, &b, &t, &own)) return mgrid_error_pass(err, &own);
  mgrid_status status = verdict_execute(s, &t, rules, eager, &b, v, &own);
  /* Execute the step again, with one operation at a time on each GPU. If some ranks then wait
  ** forever, the step hangs where a GPU has no room for two kernels: a hazard. */
  if (!status && v->told == STEP_PROVED && rules == STEP_NCCL && has_streams(s)) {
    status = verdict_execute(s, &t, STEP_ISSUED, 0, &b, v, &own);
    if (v->told != STEP_PROVED) {
      bool allowed = is_concurrent(s, v);
      v->told = allowed ? STEP_PROVED : STEP_HAZARD;
      if (allowed) v->n = 0;
    }
    if (!status && v->told == STEP_PROVED) status = assumptions(s, &b, v, &own);
  }
  mgrid_step_types_free(&t);
  return status ? mgrid_error_pass(err, &own) : MGRID_OK;
}

/* --------------------------------------------------------------------- text */

/* Append the positions of a rank in the families of the counterexample: " (pp 1, tp 1)". */
static void put_positions(const mgrid_step *s, const step_verdict *v, int64_t rank, mgrid_text *t) {
  bool any = false;
  for (size_t i = 0; i < s->nslots; i++) {
    bool named = false;
    for (size_t k = 0; k < v->n && !named; k++) {
      const step_program *p = &s->program[v->waiting[k].program];
      named = v->waiting[k].node < p->n && p->node[v->waiting[k].node].slot == (int32_t)i;
    }
    step_read read = { STEP_ASKED_POSITION, s->slot[i].entry, s->slot[i].nth };
    int64_t at = named ? mgrid_step_answer(s->plan, &read, rank) : -1;
    if (at < 0) continue;
    mgrid_text_add(t, "%s%s %" PRId64, any ? ", " : " (",
                   s->plan->content.entry[s->slot[i].entry].name, at);
    any = true;
  }
  if (any) mgrid_text_str(t, ")");
}

/* Append a call: "all_reduce(tp) line 12". `files`: with the file; `size`: with bytes, root and
** type. */
static void verdict_put_call(const mgrid_step *s, const step_waiting *w, bool files, bool size,
                             mgrid_text *t) {
  const step_node *n = &s->program[w->program].node[w->node];
  if (w->creates)
    mgrid_text_add(t, "the creation of %s at its first call, ", mgrid_step_family_of(s, n));
  mgrid_step_node_text(s, n, t);
  if (size && mgrid_step_rows[n->kind].sized) mgrid_text_add(t, " of %" PRId64 " bytes", n->bytes);
  if (size && mgrid_step_rows[n->kind].rooted) mgrid_text_add(t, ", root %" PRId64, n->number);
  if (size && n->type) mgrid_text_add(t, ", %s", s->word[n->type]);
  if (n->line && files)
    mgrid_text_add(t, " %s:%d", s->word[n->file], n->line);
  else if (n->line)
    mgrid_text_add(t, " line %d", n->line);
}

static bool has_files(const mgrid_step *s, const step_verdict *v) {
  uint32_t file = 0;
  for (size_t i = 0; i < v->n; i++) {
    const step_program *p = &s->program[v->waiting[i].program];
    if (v->waiting[i].node == p->n) continue;
    uint32_t is = p->node[v->waiting[i].node].file;
    if (file && is != file) return true;
    file = is;
  }
  return false;
}

void mgrid_step_verdict_text(const mgrid_step *s, const step_verdict *v, mgrid_text *t) {
  bool files = has_files(s, v), sizes = v->told == STEP_MISMATCH;

  for (size_t i = 0; i < v->n; i++) {
    const step_waiting *w = &v->waiting[i];
    bool ended = w->node == s->program[w->program].n;
    if (i == 0) mgrid_text_add(t, "rank %" PRId64, w->rank);
    if (i == 0) put_positions(s, v, w->rank, t);
    if (v->told == STEP_UNMATCHED && i == 1) {
      mgrid_text_str(t, ", which does not make that call");
      mgrid_text_str(t, ended ? ": it has ended" : ", and is in ");
      if (!ended) verdict_put_call(s, w, files, false, t);
      return;
    }
    if (v->told == STEP_MISMATCH) {
      if (i) mgrid_text_add(t, ", and rank %" PRId64, w->rank);
      if (i) put_positions(s, v, w->rank, t);
      mgrid_text_str(t, i ? " in " : " is in ");
      verdict_put_call(s, w, files, sizes, t);
      continue;
    }
    /* a send that nobody receives has ended: it did not wait */
    bool sent = v->told == STEP_UNMATCHED && w->waits_for < 0;
    mgrid_text_str(t, i ? ", which waits in " : sent ? " makes " : " waits in ");
    verdict_put_call(s, w, files, false, t);
    if (w->waits_for >= 0) mgrid_text_add(t, " for rank %" PRId64, w->waits_for);
    if (w->waits_for >= 0 && i + 1 < v->n) put_positions(s, v, w->waits_for, t);
    if (sent) mgrid_text_str(t, ", and nobody receives it");
  }
}
