/* SPDX-License-Identifier: MIT
**
** price.c - the price of a step on a machine: how the step's groups lie there (shapes), what they
** send over each level, and the time, by an execution with a clock.
*/
#include "machine/count.h"
#include "step/clock.h"

#include <stdlib.h>
#include <string.h>

/* =================================================================== shapes */

/* The time of a call follows from the shape of its group: how many domains of each level the group
** touches, and how many groups of the family share the links of these domains. Ranks whose groups
** differ in shape become different types (types.c). So one rank still stands for all ranks of its
** type. */

typedef struct finding {
  const mgrid_step *s;
  const mgrid_machine_model *m;
  step_shapes *out;
  int64_t world;
  int32_t *members, *seen, *list; /* seen: by domain, members of the present group */
  int32_t *touched;
  /* in: by rank, its groups that leave its domain; most: by domain, the maximum of `in` */
  int32_t *in, *most;
  bool *by_position; /* by slot: messages go from position to position */
  step_budget *budget;
  int32_t *leaving[MGRID_LEVELS_MAX]; /* by domain: groups of the family that leave it at once */
} finding;

/* Return the number of levels whose domains have several places. */
static size_t wide_levels(const mgrid_machine_model *m) { return m->ntiers - 1; }

static int32_t domain_of(const step_shapes *x, const mgrid_machine_model *m, size_t level,
                         int32_t rank) {
  return level < wide_levels(m) ? x->domain[level][rank] : rank;
}

/* Set x->touched to the domains of a level that the group touches, and x->seen to the number of
** members in each. Return the number of these domains. */
static int32_t touch(finding *x, size_t level, int64_t n) {
  const int32_t *domain = x->out->domain[level];
  int32_t count = 0;
  for (int64_t i = 0; i < n; i++)
    if (x->seen[domain[x->members[i]]]++ == 0) x->touched[count++] = domain[x->members[i]];
  return count;
}

static void shapes_forget(finding *x, int32_t count) {
  for (int32_t i = 0; i < count; i++) x->seen[x->touched[i]] = 0;
}

/* A rank is in one call at a time. So if it is in several groups that leave its domain, only a
** part of these groups is active at once. */
static void share_turns(finding *x, size_t level) {
  for (int64_t d = 0; d < x->out->domains[level]; d++) {
    int32_t *leaving = &x->leaving[level][d], turns = x->most[d];
    if (turns > 1) *leaving = (*leaving + turns - 1) / turns;
    x->most[d] = 0;
  }
  memset(x->in, 0, (size_t)x->world * sizeof *x->in);
}

static void shapes_count_leaving(finding *x, const mgrid_family *f) {
  for (size_t l = 0; l < wide_levels(x->m); l++) {
    memset(x->leaving[l], 0, (size_t)(x->out->domains[l] + 1) * sizeof *x->leaving[l]);
    for (int64_t g = 0; g < f->count; g++) {
      int64_t n = mgrid_family_size(f, g);
      if (!mgrid_spend(&x->budget->work, 1 + n / 8)) return;
      mgrid_family_group(f, g, x->members);
      int32_t count = touch(x, l, n);
      for (int32_t i = 0; i < count && count > 1; i++) x->leaving[l][x->touched[i]]++;
      shapes_forget(x, count);
      for (int64_t i = 0; i < n && f->overlapping && count > 1; i++) {
        int32_t rank = x->members[i], *most = &x->most[x->out->domain[l][rank]];
        if (++x->in[rank] > *most) *most = x->in[rank];
      }
    }
    if (f->overlapping) share_turns(x, l);
  }
}

/* Write the shape of a group to x->list: four numbers for each level, then, with `ordered`, the
** domain of each position. Return the length. */
static size_t shapes_describe(finding *x, int64_t n, bool ordered) {
  size_t at = 0, levels = x->m->ntiers;
  int32_t least, most, share, count;

  x->list[at++] = (int32_t)n;
  for (size_t l = 0; l < levels; l++) {
    count = (int32_t)n, least = most = share = 1;
    if (l < wide_levels(x->m)) {
      count = touch(x, l, n), least = INT32_MAX, most = share = 0;
      for (int32_t i = 0; i < count; i++) {
        int32_t d = x->touched[i], here = x->seen[d];
        least = here < least ? here : least, most = here > most ? here : most;
        share = x->leaving[l][d] > share ? x->leaving[l][d] : share;
      }
      shapes_forget(x, count);
    }
    x->list[at++] = count, x->list[at++] = least, x->list[at++] = most,
    x->list[at++] = count > 1 ? share : 0;
  }
  for (size_t l = 0; l < levels && ordered; l++) {
    int32_t next = 0;
    /* domains get numbers in order of appearance; `seen` has the number, from 1 on */
    for (int64_t i = 0; i < n; i++) {
      if (l < wide_levels(x->m)) {
        int32_t d = domain_of(x->out, x->m, l, x->members[i]);
        if (!x->seen[d]) x->touched[next] = d, x->seen[d] = ++next;
        x->list[at++] = x->seen[d] - 1;
      } else {
        x->list[at++] = (int32_t)i;
      }
    }
    shapes_forget(x, l < wide_levels(x->m) ? next : 0);
  }
  return at;
}

/* Set the shape of each rank's group in a slot. */
static bool find_shapes(finding *x, size_t slot, step_lists *shapes, int32_t *of) {
  const mgrid_family *f = x->s->plan->content.entry[x->s->slot[slot].entry].family;
  bool ordered = x->by_position[slot];
  memset(of, -1, (size_t)x->world * sizeof *of);
  shapes_count_leaving(x, f);
  for (int64_t g = 0; g < f->count; g++) {
    int64_t n = mgrid_family_size(f, g);
    if (!mgrid_spend(&x->budget->work, 1 + n / 4)) return true;
    mgrid_family_group(f, g, x->members);
    int32_t shape = mgrid_step_lists_put(shapes, x->list, shapes_describe(x, n, ordered));
    if (shape < 0) return false;
    for (int64_t i = 0; i < n; i++)
      if (mgrid_step_has(x->s, slot, x->members[i], g)) of[x->members[i]] = shape;
  }
  return true;
}

static bool write_shapes(const step_lists *shapes, size_t levels, step_shapes *out) {
  out->n = shapes->n;
  out->shape = calloc(shapes->n + 1, sizeof *out->shape);
  out->where = malloc((shapes->used + 1) * sizeof *out->where);
  if (!out->shape || !out->where) return false;
  if (shapes->used) memcpy(out->where, shapes->data, shapes->used * sizeof *out->where);
  for (size_t i = 0; i < shapes->n; i++) {
    step_shape *shape = &out->shape[i];
    int32_t *list = out->where + shapes->start[i];
    size_t n = shapes->start[i + 1] - shapes->start[i];
    shape->size = *list++;
    for (size_t l = 0; l < levels; l++, list += 4)
      shape->at[l] = (step_reach){ list[0], list[1], list[2], list[3] };
    if (n > 1 + 4 * levels) shape->where = list;
  }
  return true;
}

static bool shapes_prepare(finding *x) {
  int64_t most = x->world;

  for (size_t l = 0; l < wide_levels(x->m); l++) {
    x->out->domain[l] = malloc((size_t)x->world * sizeof *x->out->domain[l]);
    if (!x->out->domain[l]) return false;
    x->out->domains[l] = mgrid_domains_of(x->m, l, x->world, x->out->domain[l]);
    if (x->out->domains[l] > most) most = x->out->domains[l];
    x->leaving[l] = malloc((size_t)(x->out->domains[l] + 1) * sizeof *x->leaving[l]);
    if (!x->leaving[l]) return false;
  }
  size_t group = (size_t)mgrid_step_largest(x->s);
  x->members = malloc(group * sizeof *x->members);
  x->touched = malloc(group * sizeof *x->touched);
  x->list = malloc((group + 4) * x->m->ntiers * sizeof *x->list + sizeof *x->list);
  x->seen = calloc((size_t)most + 1, sizeof *x->seen);
  x->most = calloc((size_t)most + 1, sizeof *x->most);
  x->in = calloc((size_t)x->world, sizeof *x->in);
  x->by_position = malloc(x->s->nslots + 1);
  if (x->by_position) mgrid_step_by_position(x->s, x->by_position);
  return x->by_position && x->members && x->touched && x->list && x->seen && x->most && x->in;
}

static void free_shapes(step_shapes *x) {
  for (size_t l = 0; l < MGRID_LEVELS_MAX; l++) free(x->domain[l]);
  free(x->shape);
  free(x->of);
  free(x->where);
  memset(x, 0, sizeof *x);
}

/* Find the shapes of all groups, and the types of ranks whose groups have equal shapes. It takes
** O(world x families x levels). */
static mgrid_status price_shapes_of(const mgrid_step *s, const mgrid_machine_model *m,
                                    step_budget *b, step_shapes *out, step_types *types,
                                    mgrid_error *err) {
  finding x = { .s = s, .m = m, .out = out, .budget = b, .world = s->plan->content.world };
  step_lists shapes = { 0 }, pairs = { 0 };

  memset(out, 0, sizeof *out);
  memset(types, 0, sizeof *types);
  mgrid_status status = mgrid_machine_fits(m, x.world, err);
  if (!status && !mgrid_step_hold_slots(s, b)) status = mgrid_step_budget_spent(b, err);
  if (status) return status;
  size_t world = (size_t)x.world;
  int32_t *of = malloc((world * s->nslots + 1) * sizeof *of),
          *apart = calloc(world + 1, sizeof *apart);
  bool done = shapes_prepare(&x) && of && apart;
  for (size_t i = 0; i < s->nslots && done && !b->work.exhausted; i++) {
    done = find_shapes(&x, i, &shapes, of + i * world);
    for (size_t r = 0; r < world && done; r++) {
      int32_t pair[2] = { apart[r], of[i * world + r] };
      apart[r] = mgrid_step_lists_put(&pairs, pair, 2);
      done = apart[r] >= 0;
    }
  }
  done = done && write_shapes(&shapes, m->ntiers, out);
  if (done)
    status = b->work.exhausted ? mgrid_step_budget_spent(b, err)
                               : mgrid_step_types_of(s, apart, b, types, err);
  if (done && !status) out->of = malloc((types->n * s->nslots + 1) * sizeof *out->of);
  for (size_t t = 0; out->of && t < types->n; t++)
    for (size_t i = 0; i < s->nslots; i++)
      out->of[t * s->nslots + i] = of[i * world + (size_t)types->type[t].first];
  for (size_t l = 0; l < wide_levels(m); l++) free(x.leaving[l]);
  mgrid_step_lists_free(&shapes);
  mgrid_step_lists_free(&pairs);
  free(x.members);
  free(x.touched);
  free(x.list);
  free(x.seen);
  free(x.most);
  free(x.in);
  free(x.by_position);
  free(of);
  free(apart);
  if (done && !status && out->of) return MGRID_OK;
  free_shapes(out);
  mgrid_step_types_free(types);
  return status ? status : mgrid_oom(err);
}

/* ==================================================================== links */

/* Bytes out of domains are counted as if collectives used rings, as in src/machine/traffic.c: in an
** all-reduce a member sends 2 (n-1)/n of the bytes to the next member. But if switches reduce, a
** member sends the bytes once. No execution is needed: the bytes of a loop are those of one
** iteration, multiplied. */

typedef struct sent { /* what a rank of a type sends over a slot in one step */
  double calls;       /* collective calls */
  /* ring, chain: bytes to the next member; in a chain the last member sends nothing */
  double ring, chain;
  double pairs; /* bytes to each other member */
} sent;

typedef struct peer { /* bytes that a rank sends to a position, or gets from it */
  int32_t slot, position;
  bool from;
  double calls, bytes;
} peer;

typedef struct adding {
  const step_pricing *p;
  step_budget *budget;
  step_lists known; /* finds a peer by its type, slot, position and direction (`from`) */
  size_t slots, levels, npeers;
  sent *sent;                    /* [types * slots] */
  peer *peer;                    /* by type */
  size_t *first;                 /* [types + 1]: where the peers of a type begin */
  step_family_price *family;     /* [entries]: maxima over all types so far */
  double *seconds;               /* [entries]: in calls of the present type */
  double *out[MGRID_LEVELS_MAX]; /* bytes that leave each domain */
  int32_t *members, *here;       /* here: by domain, members of the present group */
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
    int32_t entry = x->p->s->slot[n->slot].entry;
    step_family_price *f = &x->family[entry];
    step_way way = mgrid_step_way_of(x->p, type, n, n->bytes);
    double took = often * way.seconds;
    x->seconds[entry] += took;
    if (*way.algorithm && took >= f->most[n->kind])
      f->most[n->kind] = took, f->way[n->kind] = way.algorithm;

    sent *s = &x->sent[(size_t)type * x->slots + (size_t)n->slot];
    double size = (double)t->circle[t->type[type].circle[n->slot]].size,
           bytes = often * (double)n->bytes;
    const step_operation *o = &mgrid_step_rows[n->kind];
    if (o->travel == STEP_MESSAGE)
      add_peer(x, type, (peer){ n->slot, (int32_t)n->number, false, often, bytes });
    if (o->role != STEP_TOGETHER || size < 2) continue;
    s->calls += often;
    switch (o->travel) {
    case STEP_AROUND: s->ring += (size - 1) / size * bytes; break;
    case STEP_AROUND_TWICE:
      s->ring += bytes * (strcmp(way.algorithm, "nvls") == 0 ? 1 : 2 * (size - 1) / size);
      break;
    case STEP_ALONG: s->chain += bytes; break;
    case STEP_PAIRS: s->pairs += bytes / size; break;
    case STEP_TO_ROOT:
    case STEP_FROM_ROOT:
      add_peer(x, type,
               (peer){ n->slot, (int32_t)n->number, o->travel == STEP_FROM_ROOT, 0, bytes / size });
      break;
    case STEP_MESSAGE:
    case STEP_STAYS: break;
    }
  }
}

/* ------------------------------------------------------------------ groups */

/* Add what goes from one member to another, at each level where they are in different domains. */
static void add_way(adding *x, int32_t a, int32_t b, double calls, double bytes,
                    step_crossing *to) {
  for (size_t l = 0; l < x->levels && a != b; l++) {
    int32_t d = domain_of(&x->p->shapes, x->p->m, l, a);
    if (d == domain_of(&x->p->shapes, x->p->m, l, b)) continue;
    x->out[l][d] += bytes;
    to[l].bytes += bytes, to[l].calls += calls;
  }
}

/* Add what each member sends to all others. */
static void add_pairs(adding *x, int64_t g, size_t slot, int64_t n, step_crossing *to) {
  for (size_t l = 0; l < x->levels; l++) {
    for (int64_t i = 0; i < n; i++) x->here[domain_of(&x->p->shapes, x->p->m, l, x->members[i])]++;
    for (int64_t i = 0; i < n; i++) {
      int32_t rank = x->members[i], d = domain_of(&x->p->shapes, x->p->m, l, rank);
      if (!mgrid_step_has(x->p->s, slot, rank, g)) continue;
      double bytes = x->sent[(size_t)x->p->types.of[rank] * x->slots + slot].pairs
                     * (double)(n - x->here[d]);
      x->out[l][d] += bytes;
      to[l].bytes += bytes;
    }
    for (int64_t i = 0; i < n; i++)
      x->here[domain_of(&x->p->shapes, x->p->m, l, x->members[i])] = 0;
  }
}

static void add_group(adding *x, const mgrid_family *f, int64_t g, size_t slot, step_crossing *to) {
  int64_t n = mgrid_family_size(f, g);
  const int32_t *r = x->members;
  double calls = 0;
  bool pairs = false;
  int32_t shape = -1;

  mgrid_family_group(f, g, x->members);
  for (int64_t i = 0; i < n; i++) {
    int32_t type = x->p->types.of[r[i]];
    if (!mgrid_spend(&x->budget->work, 1 + (int64_t)(x->first[type + 1] - x->first[type]))) return;
    if (!mgrid_step_has(x->p->s, slot, r[i], g)) continue;
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
  if (pairs) add_pairs(x, g, slot, n, to);
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

/* Add up the programs: set the times of the families, what they send over each level, and the
** busiest link. */
static mgrid_status links_of(step_price *price, step_budget *b, mgrid_error *err) {
  const step_pricing *p = &price->by;
  const mgrid_step *s = p->s;
  size_t entries = s->plan->content.nentries;
  int64_t world = s->plan->content.world, domains[MGRID_LEVELS_MAX], most = world;
  adding x = {
    .p = p, .budget = b, .slots = s->nslots, .levels = p->m->ntiers, .family = price->family
  };

  x.sent = calloc(p->types.n * s->nslots + 1, sizeof *x.sent);
  x.first = calloc(p->types.n + 1, sizeof *x.first);
  x.seconds = malloc((entries + 1) * sizeof *x.seconds);
  x.failed = !x.sent || !x.first || !x.seconds;
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
    const step_program *of = mgrid_step_of_type(s, &p->types, (int32_t)t);
    memset(x.seconds, 0, entries * sizeof *x.seconds);
    add_program(&x, (int32_t)t, of, 0, (uint32_t)of->n, 1);
    x.first[t + 1] = x.npeers;
    for (size_t i = 0; i < entries; i++)
      if (x.seconds[i] > x.family[i].seconds) x.family[i].seconds = x.seconds[i];
  }
  for (size_t i = 0; i < s->nslots && !x.failed; i++) {
    const mgrid_family *f = s->plan->content.entry[s->slot[i].entry].family;
    step_crossing *to = price->crossing + (size_t)s->slot[i].entry * x.levels;
    for (int64_t g = 0, n = used(&x, i) ? f->count : 0; g < n && mgrid_spend(&b->work, 1); g++)
      add_group(&x, f, g, i, to);
  }
  if (!x.failed) find_busiest(&x, domains, &price->busiest);
  for (size_t l = 0; l < x.levels; l++) free(x.out[l]);
  free(x.sent);
  free(x.peer);
  free(x.first);
  free(x.seconds);
  free(x.members);
  free(x.here);
  mgrid_step_lists_free(&x.known);
  if (b->work.exhausted) return mgrid_step_budget_spent(b, err);
  return x.failed ? mgrid_oom(err) : MGRID_OK;
}

/* ================================================================ the price */

/* If the executed ranks, one of each type, have at most so many operations in all, no loop is taken
** as one operation. Then also the times of calls beside computes are exact. */
#define EVERY_ONE 100000.0

void mgrid_step_records_free(step_records *r) {
  free(r->record);
  free(r->repeat);
  memset(r, 0, sizeof *r);
}

void mgrid_step_price_free(step_price *p) {
  free_shapes(&p->by.shapes);
  mgrid_step_types_free(&p->by.types);
  free(p->family);
  free(p->crossing);
  memset(p, 0, sizeof *p);
}

/* -------------------------------------------------------------------- time */

static double operations_of(const step_pricing *p) {
  double sum = 0;
  for (size_t t = 0; t < p->types.n; t++)
    sum += (double)mgrid_step_of_type(p->s, &p->types, (int32_t)t)->leaves;
  return sum;
}

static mgrid_status price_execute(step_price *out, bool whole, step_records *records,
                                  step_budget *b, mgrid_error *err) {
  const step_pricing *p = &out->by;
  step_clock c = { .pricing = p, .whole = whole, .records = records };
  step_executor m;
  bool done;

  mgrid_status status =
      mgrid_step_executor_run(&m, p->s, &p->types, p->rules, p->costs.eager, &c, b, &done, err);
  if (!status && !done)
    status = mgrid_fail(err, MGRID_UNPROVED,
                        "the step has no price, because some rank does not reach its end");
  if (!status) mgrid_step_clock_charge(&m);
  out->seconds = (double)c.now / STEP_SECOND;
  double world = (double)p->s->plan->content.world;
  for (size_t t = 0; t < p->types.n && !status; t++) {
    double ranks = (double)p->types.type[t].ranks / world;
    out->mean.compute += ranks * (c.use[t].compute / STEP_SECOND);
    out->mean.hidden += ranks * (c.use[t].hidden / STEP_SECOND);
    out->mean.exposed += ranks * (c.use[t].exposed / STEP_SECOND);
  }
  mgrid_step_executor_free(&m);
  mgrid_step_clock_free(&c);
  return status;
}

mgrid_status mgrid_step_price_of(const mgrid_step *s, const mgrid_machine_model *m,
                                 const step_costs *costs, step_detail detail, step_records *records,
                                 step_price *out, mgrid_error *err) {
  size_t entries = s->plan->content.nentries;
  step_budget b;

  memset(out, 0, sizeof *out);
  mgrid_step_budget_begin(&b, &s->limits, "the price of the step");
  out->by = (step_pricing){
    .s = s, .m = m, .rules = costs->mpi ? STEP_BLOCKING : STEP_NCCL, .costs = *costs
  };
  mgrid_status status = price_shapes_of(s, m, &b, &out->by.shapes, &out->by.types, err);
  if (!status) status = mgrid_step_priceable(&out->by, err);
  if (!status) {
    out->family = calloc(entries + 1, sizeof *out->family);
    out->crossing = calloc(entries * m->ntiers + 1, sizeof *out->crossing);
    if (!out->family || !out->crossing) status = mgrid_oom(err);
  }
  bool short_of = detail == STEP_IN_SHORT
                  || (detail == STEP_AS_NEEDED && operations_of(&out->by) > EVERY_ONE);
  if (!status) status = price_execute(out, short_of, records, &b, err);
  if (!status) status = links_of(out, &b, err);
  if (status) mgrid_step_price_free(out);
  return status;
}
