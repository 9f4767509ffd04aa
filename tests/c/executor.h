/* SPDX-License-Identifier: MIT
**
** executor.h - execute the programs of all ranks with their loops unrolled, one rank at a time, by
** the definition alone: the k-th call of a rank on a communicator meets the k-th calls of the
** others. A rank's host creates a lazy communicator, with all members, before its first call.
*/
#ifndef TEST_EXECUTOR_H
#define TEST_EXECUTOR_H

#include "random.h"

#include "step/step.h"

enum { RANKS = 16, PARTS = 4, CREATES = -2 };

typedef struct part {
  const step_node *node;
  int64_t comm; /* the first entry of the plan whose group has the same members, and the group */
  int from, to;
  int k; /* of the calls of this rank on it */
  bool met;
} part;

typedef struct entry {
  const step_node *node;
  uint32_t number;
  int nparts;
  part part[PARTS];
  int after; /* of a wait for an event: entries before this one, on its stream */
  bool creates, begun, done;
} entry;

typedef struct executor {
  const mgrid_step *s;
  int64_t world;
  step_rules rules;
  bool lazy; /* communicators are created when they are lazy */
  int n[RANKS];
  entry *all[RANKS];
} executor;

static inline int64_t comm_of(const executor *x, int64_t rank, const step_slot *slot) {
  const mgrid_content *c = &x->s->plan->content;
  int64_t group, position;
  int64_t own[RANKS], other[RANKS];
  assert_true(
      mgrid_family_locate(c->entry[slot->entry].family, rank, slot->nth, &group, &position));
  int64_t n = mgrid_family_members(c->entry[slot->entry].family, group, 1, RANKS, own);
  for (int e = 0; e <= slot->entry; e++) {
    const mgrid_family *f = c->entry[e].family;
    if (e != slot->entry && (f->twin || c->entry[slot->entry].family->twin)) continue;
    for (int64_t g = 0; g < mgrid_family_count(f); g++)
      if (mgrid_family_members(f, g, 1, RANKS, other) == n
          && memcmp(own, other, (size_t)n * sizeof *own) == 0)
        return (int64_t)e << 32 | g;
  }
  return -1;
}

/* Whether no family that is made before the step has the members of a communicator. */
static inline bool is_created(const executor *x, const step_slot *slot, int64_t rank) {
  const mgrid_content *c = &x->s->plan->content;
  const mgrid_family *own = c->entry[slot->entry].family;
  int64_t group, position, members[RANKS], other[RANKS];
  mgrid_family_locate(own, rank, slot->nth, &group, &position);
  int64_t n = mgrid_family_members(own, group, 1, RANKS, members);
  for (size_t e = 0; e < c->nentries; e++) {
    const mgrid_family *f = c->entry[e].family;
    if (c->entry[e].choice->asked.lazy || (f != own && (f->twin || own->twin))) continue;
    for (int64_t g = 0; g < mgrid_family_count(f); g++)
      if (mgrid_family_members(f, g, 1, RANKS, other) == n
          && memcmp(members, other, (size_t)n * sizeof *other) == 0)
        return true;
  }
  return n < 2;
}

/* Put the creations before an entry whose calls are the first on their communicators. */
static inline void put_creations(executor *x, int64_t rank, const step_program *p, uint32_t i) {
  for (uint32_t k = i; k < p->node[i].end && x->lazy; k++) {
    const step_node *q = &p->node[k];
    if (q->slot < 0 || is_created(x, &x->s->slot[q->slot], rank)) continue;
    int64_t comm = comm_of(x, rank, &x->s->slot[q->slot]);
    bool first = true;
    for (int b = 0; b < x->n[rank]; b++)
      for (int j = 0; j < x->all[rank][b].nparts; j++)
        first &= x->all[rank][b].part[j].comm != comm;
    if (!first) continue;
    x->all[rank][x->n[rank]++] = (entry){ .node = q,
                                          .number = k,
                                          .creates = true,
                                          .nparts = 1,
                                          .part[0] = { q, comm, CREATES, CREATES, 0, false } };
  }
}

static inline void unroll(executor *x, int64_t rank, const step_program *p, uint32_t from,
                          uint32_t end, int last[]) {
  for (uint32_t i = from; i < end; i = p->node[i].end) {
    const step_node *n = &p->node[i];
    if (n->kind == STEP_LOOP) {
      for (int64_t k = 0; k < n->number; k++) unroll(x, rank, p, i + 1, n->end, last);
      continue;
    }
    put_creations(x, rank, p, i);
    entry *e = &x->all[rank][x->n[rank]];
    *e = (entry){ .node = n, .number = i };
    if (n->kind == STEP_EVENT) last[i] = x->n[rank];
    if (n->kind == STEP_WAIT) e->after = n->listed ? last[n->other] : x->n[rank];
    bool block = n->kind == STEP_GROUP || n->kind == STEP_SENDRECV;
    for (uint32_t k = block ? i + 1 : i; k < n->end; k++) {
      const step_node *q = &p->node[k];
      if (q->slot < 0) continue;
      int64_t group, position;
      assert_true(e->nparts < PARTS);
      part *a = &e->part[e->nparts++];
      mgrid_family_locate(x->s->plan->content.entry[x->s->slot[q->slot].entry].family, rank,
                          x->s->slot[q->slot].nth, &group, &position);
      *a = (part){ q, comm_of(x, rank, &x->s->slot[q->slot]), -1, -1, 0, false };
      if (q->kind == STEP_SEND) a->from = (int)position, a->to = (int)q->number;
      if (q->kind == STEP_RECV) a->from = (int)q->number, a->to = (int)position;
      for (int b = 0; b <= x->n[rank]; b++) /* the calls before it on the same way */
        for (int j = 0; j < x->all[rank][b].nparts; j++) {
          const part *o = &x->all[rank][b].part[j];
          if (o != a && o->comm == a->comm && o->from == a->from && o->to == a->to
              && (a->from < 0 || o->node->kind == q->kind))
            a->k++;
        }
    }
    x->n[rank]++;
  }
}

static inline int stream_at(const executor *x, const entry *e) {
  return x->rules == STEP_NCCL ? e->node->stream : 0;
}

/* Whether entry i of a rank may begin. */
static inline bool may_begin(const executor *x, int64_t rank, int i) {
  const entry *all = x->all[rank], *e = &all[i];
  for (int b = 0; b < i; b++) {
    const entry *o = &all[b];
    bool order = o->node->kind == STEP_HOST_WAIT;
    if (o->done) continue;
    if (o->creates || (e->creates && (order || x->rules == STEP_BLOCKING))) return false;
    if (e->creates) continue;
    /* the host is on no stream */
    if (x->rules == STEP_NCCL && e->node->kind == STEP_HOST_WAIT && !order) continue;
    if (stream_at(x, o) == stream_at(x, e) || (x->rules == STEP_NCCL && order)) return false;
    for (int j = 0; j < o->nparts; j++)
      for (int k = 0; k < e->nparts; k++)
        if (o->part[j].comm == e->part[k].comm) return false;
  }
  if (x->rules != STEP_NCCL || e->creates) return true;
  if (e->node->kind == STEP_HOST_WAIT || (e->node->kind == STEP_WAIT && !e->node->listed)) {
    for (int b = 0; b < i; b++)
      if (all[b].node->stream == e->node->other && !all[b].done) return false;
  } else if (e->node->kind == STEP_WAIT) {
    for (int b = 0; b < e->after; b++)
      if (all[b].node->stream == all[e->after].node->stream && !all[b].done) return false;
  }
  return true;
}

/* Find the part of a rank that meets this one; NULL: the rank never makes it. *owner: the entry
** that it is in. */
static inline part *meets(const executor *x, int64_t rank, const part *a, entry **owner) {
  for (int i = 0; i < x->n[rank]; i++)
    for (int j = 0; j < x->all[rank][i].nparts; j++) {
      part *o = &x->all[rank][i].part[j];
      bool way = a->from < 0 || (o->node->kind != a->node->kind);
      if (o->comm != a->comm || o->from != a->from || o->to != a->to || o->k != a->k || !way)
        continue;
      *owner = &x->all[rank][i];
      return o;
    }
  return NULL;
}

/* The ranks that a part needs. */
static inline int needed(const executor *x, int64_t rank, const part *a, int64_t out[RANKS]) {
  const step_slot *slot = &x->s->slot[a->node->slot];
  const mgrid_family *f = x->s->plan->content.entry[slot->entry].family;
  int64_t group, position;
  mgrid_family_locate(f, rank, slot->nth, &group, &position);
  int n = (int)mgrid_family_members(f, group, 1, RANKS, out);
  if (a->from < 0) return n;
  out[0] = out[a->node->number];
  return 1;
}

static inline bool same_call(const step_node *a, const step_node *b) {
  bool point = a->kind == STEP_SEND || a->kind == STEP_RECV;
  return (point || (a->kind == b->kind && a->number == b->number)) && a->bytes == b->bytes;
}

static inline bool can_meet(const executor *x, int64_t rank, const part *a) {
  int64_t who[RANKS];
  int n = needed(x, rank, a, who);
  for (int i = 0; i < n; i++) {
    entry *e;
    part *o = who[i] == rank && a->from < 0 ? (part *)(uintptr_t)a : meets(x, who[i], a, &e);
    if (o == a) continue;
    if (!o || !e->begun || (a->from != CREATES && !same_call(a->node, o->node))) return false;
  }
  return true;
}

/* Execute until nothing changes; return whether all is done. */
static inline bool execute_all(executor *x) {
  for (bool changed = true; changed;) {
    changed = false;
    for (int64_t r = 0; r < x->world; r++)
      for (int i = 0; i < x->n[r]; i++) {
        entry *e = &x->all[r][i];
        if (e->done || (!e->begun && !may_begin(x, r, i))) continue;
        changed |= !e->begun;
        e->begun = true;
      }
    for (int64_t r = 0; r < x->world; r++)
      for (int i = 0; i < x->n[r]; i++) {
        entry *e = &x->all[r][i];
        bool all = e->begun && !e->done;
        for (int k = 0; k < e->nparts && e->begun && !e->done; k++) {
          if (!e->part[k].met) e->part[k].met = can_meet(x, r, &e->part[k]);
          all &= e->part[k].met;
        }
        e->done |= all;
        changed |= all;
      }
  }
  for (int64_t r = 0; r < x->world; r++)
    for (int i = 0; i < x->n[r]; i++)
      if (!x->all[r][i].done) return false;
  return true;
}

static inline step_verdict_kind told_of(const executor *x) {
  bool missing = false, stuck = false;
  for (int64_t r = 0; r < x->world; r++)
    for (int i = 0; i < x->n[r]; i++)
      for (int k = 0; k < x->all[r][i].nparts && x->all[r][i].begun; k++) {
        const part *a = &x->all[r][i].part[k];
        int64_t who[RANKS];
        int n = needed(x, r, a, who);
        bool after = false; /* an earlier part on its communicator, which is what waits */
        for (int j = 0; j < k && a->from == -1; j++)
          after |= x->all[r][i].part[j].comm == a->comm && x->all[r][i].part[j].from == -1
                   && !x->all[r][i].part[j].met;
        if (a->met || after) continue;
        stuck = true;
        for (int j = 0; j < n; j++) {
          entry *e;
          part *o = who[j] == r && a->from < 0 ? (part *)(uintptr_t)a : meets(x, who[j], a, &e);
          if (!o)
            missing = true;
          else if (o != a && e->begun && a->from != CREATES && !same_call(a->node, o->node))
            return STEP_MISMATCH;
        }
      }
  return missing ? STEP_UNMATCHED : stuck ? STEP_CYCLE : STEP_PROVED;
}

static inline executor executor_new(const mgrid_step *s, step_rules rules, bool lazy) {
  executor x = { .s = s, .world = mgrid_plan_world(s->plan), .rules = rules, .lazy = lazy };
  for (int64_t r = 0; r < x.world; r++) {
    const step_program *p = &s->program[s->class[s->of[r]].program];
    int *last = calloc(p->n + 1, sizeof *last);
    x.all[r] = calloc((size_t)p->leaves + s->nslots + 1, sizeof *x.all[r]);
    unroll(&x, r, p, 0, (uint32_t)p->n, last);
    free(last);
  }
  return x;
}

static inline void executor_free(executor *x) {
  for (int64_t r = 0; r < x->world; r++) free(x->all[r]);
}

/* The verdict of executing everything. */
static inline step_verdict_kind executor_told(const mgrid_step *s, step_rules rules, bool lazy) {
  executor x = executor_new(s, rules, lazy);
  step_verdict_kind told = execute_all(&x) ? STEP_PROVED : told_of(&x);
  executor_free(&x);
  return told;
}

#endif
