/* SPDX-License-Identifier: MIT
**
** links.c - what a step sends out of the domains of each level, and the link that needs the longest
** for it. Bytes are those of rings, as in src/machine/traffic.c: a member sends 2 (n-1)/n of an
** all-reduce to the next one, whatever the algorithm; where switches reduce, its bytes once. They
** do not depend on time, so loops are multiplied.
*/
#include "step/price.h"

#include <stdlib.h>
#include <string.h>

typedef struct sent { /* by one rank of a type over a slot, in a step */
  double calls;       /* over all members */
  double ring, chain; /* bytes to the next member; of a chain all but the last send */
  double pairs;       /* to each other member */
} sent;

typedef struct peer { /* bytes that a rank sends to a position, or gets from it */
  int32_t slot, position;
  bool from;
  double calls, bytes;
} peer;

typedef struct adding {
  const step_pricing *p;
  step_budget *budget;
  step_lists known; /* of peers: the type, and what tells them apart */
  size_t slots, levels, npeers;
  sent *sent;                    /* [types * slots] */
  peer *peer;                    /* by type */
  size_t *first;                 /* [types + 1]: of peer */
  double *out[MGRID_LEVELS_MAX]; /* bytes by domain */
  int32_t *members, *here;       /* here: members of a group by domain */
  bool failed;
} adding;

/* --------------------------------------------------------------- programs */

static void add_peer(adding *x, int32_t type, peer of) {
  int32_t key[] = { type, of.slot, of.position, of.from };
  int32_t i = mgrid_step_lists_put(&x->known, key, sizeof key / sizeof *key);
  if (i >= 0 && (size_t)i < x->npeers) {
    x->peer[i].calls += of.calls, x->peer[i].bytes += of.bytes;
    return;
  }
  x->failed = i < 0 || !mgrid_step_budget_hold(x->budget, 2 * sizeof of)
              || !MGRID_GROW(x->peer, x->npeers, 1);
  if (!x->failed) x->peer[x->npeers++] = of;
}

static void add_program(adding *x, int32_t type, const step_program *p, uint32_t from, uint32_t end,
                        double often) {
  const step_types *t = &x->p->types;
  for (uint32_t i = from; i < end && mgrid_spend(&x->budget->work, 1); i = p->node[i].end) {
    const step_node *n = &p->node[i];
    if (mgrid_step_rows[n->kind].role == STEP_BLOCK)
      add_program(x, type, p, i + 1, n->end,
                  n->kind == STEP_LOOP ? often * (double)n->number : often);
    if (n->slot < 0) continue;
    sent *s = &x->sent[(size_t)type * x->slots + (size_t)n->slot];
    double size = (double)t->circle[t->type[type].circle[n->slot]].size,
           bytes = often * (double)n->bytes;
    if (n->kind == STEP_SEND)
      add_peer(x, type, (peer){ n->slot, (int32_t)n->number, false, often, bytes });
    if (mgrid_step_rows[n->kind].role != STEP_TOGETHER || size < 2) continue;
    s->calls += often;
    bool switched = n->kind == STEP_ALL_REDUCE
                    && strcmp(mgrid_step_way_of(x->p, type, n, n->bytes).algorithm, "nvls") == 0;
    if (n->kind == STEP_ALL_REDUCE) s->ring += (switched ? 1 : 2 * (size - 1) / size) * bytes;
    if (n->kind == STEP_ALL_GATHER || n->kind == STEP_REDUCE_SCATTER)
      s->ring += (size - 1) / size * bytes;
    if (n->kind == STEP_BROADCAST || n->kind == STEP_REDUCE) s->chain += bytes;
    if (n->kind == STEP_ALL_TO_ALL) s->pairs += bytes / size;
    if (n->kind == STEP_GATHER || n->kind == STEP_SCATTER)
      add_peer(x, type,
               (peer){ n->slot, (int32_t)n->number, n->kind == STEP_SCATTER, 0, bytes / size });
  }
}

/* ------------------------------------------------------------------ groups */

static int32_t links_domain_of(const adding *x, size_t l, int32_t rank) {
  return l + 1 < x->levels ? x->p->shapes.domain[l][rank] : rank;
}

/* Add what goes from one member to another, at each level at which they are apart. */
static void add_way(adding *x, int32_t a, int32_t b, double calls, double bytes,
                    step_crossing *to) {
  for (size_t l = 0; l < x->levels && a != b; l++) {
    int32_t d = links_domain_of(x, l, a);
    if (d == links_domain_of(x, l, b)) continue;
    x->out[l][d] += bytes;
    to[l].bytes += bytes, to[l].calls += calls;
  }
}

/* Add what each member sends to all others. */
static void add_pairs(adding *x, size_t slot, int64_t n, step_crossing *to) {
  for (size_t l = 0; l < x->levels; l++) {
    for (int64_t i = 0; i < n; i++) x->here[links_domain_of(x, l, x->members[i])]++;
    for (int64_t i = 0; i < n; i++) {
      int32_t rank = x->members[i], d = links_domain_of(x, l, rank);
      double bytes = x->sent[(size_t)x->p->types.of[rank] * x->slots + slot].pairs
                     * (double)(n - x->here[d]);
      x->out[l][d] += bytes;
      to[l].bytes += bytes;
    }
    for (int64_t i = 0; i < n; i++) x->here[links_domain_of(x, l, x->members[i])] = 0;
  }
}

static void add_group(adding *x, const mgrid_family *f, int64_t g, size_t slot, step_crossing *to) {
  int64_t n = f->size >= 0 ? f->size : f->form->size(f, g), group, position;
  const int32_t *r = x->members;
  double calls = 0;
  bool pairs = false;
  int32_t shape = -1;
  mgrid_family_group(f, g, x->members);
  for (int64_t i = 0; i < n; i++) {
    int32_t nth = x->p->s->slot[slot].nth, type = x->p->types.of[r[i]];
    if (!mgrid_spend(&x->budget->work, 1 + (int64_t)(x->first[type + 1] - x->first[type]))) return;
    if (f->overlapping && (!f->form->locate(f, r[i], nth, &group, &position) || group != g))
      continue;
    const sent *s = &x->sent[(size_t)type * x->slots + slot];
    shape = x->p->shapes.of[(size_t)type * x->slots + slot];
    calls = s->calls, pairs |= s->pairs > 0;
    if (s->ring > 0) add_way(x, r[i], r[i + 1 < n ? i + 1 : 0], 0, s->ring, to);
    if (s->chain > 0 && i + 1 < n) add_way(x, r[i], r[i + 1], 0, s->chain, to);
    for (size_t k = x->first[type]; k < x->first[type + 1]; k++) {
      const peer *q = &x->peer[k];
      if (q->slot != (int32_t)slot) continue;
      add_way(x, q->from ? r[q->position] : r[i], q->from ? r[i] : r[q->position], q->calls,
              q->bytes, to);
    }
  }
  if (pairs) add_pairs(x, slot, n, to);
  for (size_t l = 0; l < x->levels && shape >= 0; l++)
    if (x->p->shapes.shape[shape].at[l].domains > 1) to[l].calls += calls;
}

static bool used(const adding *x, size_t slot) {
  for (size_t t = 0; t < x->p->types.n; t++)
    if (x->p->types.type[t].circle[slot] >= 0) return true;
  return false;
}

/* -------------------------------------------------------------------- links */

static void find_busiest(const adding *x, const int64_t *domains, step_busiest *b) {
  *b = (step_busiest){ .level = -1 };
  for (size_t l = 0; l < x->levels; l++) {
    double rate = x->p->m->tier[l].link.bandwidth;
    for (int64_t d = 0; d < domains[l]; d++) {
      double bytes = x->out[l][d], seconds = rate > 0 ? bytes / rate : 0;
      if (bytes > 0 && (b->level < 0 || seconds > b->seconds))
        *b = (step_busiest){ (int)l, d, bytes, seconds };
    }
  }
}

mgrid_status mgrid_step_links(const step_pricing *p, step_budget *b, step_crossing *crossing,
                              step_busiest *busiest, mgrid_error *err) {
  const mgrid_step *s = p->s;
  int64_t world = s->plan->content.world, domains[MGRID_LEVELS_MAX], most = world;
  adding x = { .p = p, .budget = b, .slots = s->nslots, .levels = p->m->ntiers };
  x.sent = calloc(p->types.n * s->nslots + 1, sizeof *x.sent);
  x.first = calloc(p->types.n + 1, sizeof *x.first);
  x.failed = !x.sent || !x.first;
  for (size_t l = 0; l < x.levels && !x.failed; l++) {
    domains[l] = l + 1 < x.levels ? p->shapes.domains[l] : world;
    most = domains[l] > most ? domains[l] : most;
    x.out[l] = calloc((size_t)domains[l] + 1, sizeof *x.out[l]);
    x.failed = !x.out[l];
  }
  x.members = malloc((size_t)(world + 1) * sizeof *x.members);
  x.here = calloc((size_t)most + 1, sizeof *x.here);
  x.failed |= !x.members || !x.here;
  for (size_t t = 0; t < p->types.n && !x.failed; t++) {
    const step_program *of = &s->program[s->class[p->types.type[t].class].program];
    add_program(&x, (int32_t)t, of, 0, (uint32_t)of->n, 1);
    x.first[t + 1] = x.npeers;
  }
  for (size_t i = 0; i < s->nslots && !x.failed; i++) {
    const mgrid_family *f = s->plan->content.entry[s->slot[i].entry].family;
    step_crossing *to = crossing + (size_t)s->slot[i].entry * x.levels;
    for (int64_t g = 0, n = used(&x, i) ? f->count : 0; g < n && mgrid_spend(&b->work, 1); g++)
      add_group(&x, f, g, i, to);
  }
  if (!x.failed) find_busiest(&x, domains, busiest);
  for (size_t l = 0; l < x.levels; l++) free(x.out[l]);
  free(x.sent);
  free(x.peer);
  free(x.first);
  free(x.members);
  free(x.here);
  mgrid_step_lists_free(&x.known);
  if (b->work.exhausted) return mgrid_step_budget_spent(b, err);
  return x.failed ? mgrid_oom(err) : MGRID_OK;
}
