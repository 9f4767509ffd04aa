/* SPDX-License-Identifier: MIT
**
** operations.c - the operations of a step, one row for each, and the time of each call. Proof,
** price, traffic and runs read from the row all that distinguishes a collective from others.
**
** The time of a call is the sum of the latencies of its successive hops, plus the time of its bytes
** at the rate of the slowest link (the model of Hockney, Parallel Computing 20, 1994). Of the
** algorithms below (sources in brackets) that the library has, the fastest counts, because the
** library would choose it. S: the bytes; n: members. For a level l with D(l) domains in the group,
** a(l) is the latency, and r(l) the rate of the group on the link of one domain (a share of the
** link, if other groups of the family use it).
**
**   ring            one turn, for an all-reduce two: the hops, and (n-1)/n S at the slowest r
**                   [Patarasuk and Yuan 2009; NCCL]
**   chain           the hops once, and S at the slowest r  [pipelined; NCCL's broadcast]
**   tree            up and down a tree: twice log2 D(l) a(l), and 2 S at the slowest r
**                   [two trees: Sanders, Speck and Traeff 2009; NCCL]
**   nvls            the switches of a domain reduce: twice a(l), and 6/5 S at the slowest r, or the
**                   time of a ring's bytes if that is longer; a tree between domains
**                   [NCCL, src/graph/tuning.cc: 5/6 of the bandwidth; nccl-tests: no bus bandwidth
**                   above the links']
**   halving         log2 n exchanges by all members at once, the largest ones farthest
**                   [Thakur, Rabenseifner, Gropp 2005]
**   doubling        log2 n exchanges of all bytes  [the same, section 4.1]
**   hierarchical    rings within domains and between domains; for an all-reduce each of them twice
**                   [Open MPI, coll/han]
**   binomial        log2 n times all bytes; of gather and scatter (n-1)/n S at the root
**                   [Thakur and others 2005]
**   pairs           all messages at once: the bytes that the busiest domain sends, at its r
*/
#include "step/price.h"

#include <math.h>
#include <string.h>

typedef struct call {
  const step_pricing *p;
  const step_shape *x;
  size_t levels;
  double n, bytes, share; /* share of the bandwidth that such calls reach */
} call;

static double cost_domains(const call *c, size_t l) { return (double)c->x->at[l].domains; }
static double above(const call *c, size_t l) { return l ? cost_domains(c, l - 1) : 1; }
static bool crosses(const call *c, size_t l) { return c->x->at[l].domains > 1; }
static double cost_late(const call *c, size_t l) { return c->p->costs.latency[l]; }

/* Return the rate at which a group sends out of a domain with `members` of its members, if `share`
** groups use the link of the domain. */
static double rate_of(const call *c, size_t l, double share, double members) {
  const mgrid_machine_model *m = c->p->m;
  double rate = m->tier[l].link.bandwidth / share;
  if (!(rate > 0)) rate = HUGE_VAL;
  for (size_t i = 0; i < m->ncrossings; i++) { /* rails carry only what leaves an NVLink domain */
    const mgrid_crossing *x = &m->crossing[i];
    bool beyond = l < x->of && (c->p->costs.nvlink < 0 || l <= (size_t)c->p->costs.nvlink);
    if (beyond && x->link.bandwidth > 0) rate = fmin(rate, x->link.bandwidth * members);
  }
  return rate * c->share;
}

static double rate(const call *c, size_t l) {
  return rate_of(c, l, (double)c->x->at[l].share, (double)c->x->at[l].least);
}

static double slowest(const call *c, size_t from) {
  double least = HUGE_VAL;
  for (size_t l = from; l < c->levels; l++)
    if (crosses(c, l)) least = fmin(least, rate(c, l));
  return least;
}

/* Return the sum of the latencies of the hops around a ring. */
static double hops(const call *c) {
  double sum = 0;
  for (size_t l = 0; l < c->levels; l++)
    sum += (cost_domains(c, l) - above(c, l)) * cost_late(c, l);
  return sum;
}

static double logs(const call *c, size_t l) {
  return ceil(log2(cost_domains(c, l) / above(c, l)) - 1e-9);
}
static double depth(const call *c) {
  double sum = 0;
  for (size_t l = 0; l < c->levels; l++) sum += logs(c, l) * cost_late(c, l);
  return sum;
}

static size_t farthest(const call *c) {
  size_t l = 0;
  while (l + 1 < c->levels && !crosses(c, l)) l++;
  return l;
}

/* -------------------------------------------------------------- algorithms */

static double once(const call *c) { return hops(c) + (c->n - 1) / c->n * c->bytes / slowest(c, 0); }
static double ring_twice(const call *c) { return 2 * once(c); }
static double cost_chain(const call *c) { return hops(c) + c->bytes / slowest(c, 0); }
static double tree(const call *c) { return 2 * depth(c) + 2 * c->bytes / slowest(c, 0); }

static double nvls(const call *c) {
  const step_costs *k = &c->p->costs;
  size_t inside = (size_t)k->nvlink + 1; /* the first level below the NVLink domains */
  if (!k->nvls || c->x->at[k->nvlink].most < 2
      || c->x->at[k->nvlink].least != c->x->at[k->nvlink].most)
    return HUGE_VAL;
  double q = (double)c->x->at[k->nvlink].most, between = 0,
         time = 2 * cost_late(c, c->levels - 1)
                + fmax(1.2, 2 * (q - 1) / q) * c->bytes / slowest(c, inside);
  for (size_t l = 0; l < inside; l++)
    if (crosses(c, l))
      time += 2 * logs(c, l) * cost_late(c, l), between = fmax(between, 2 * c->bytes / rate(c, l));
  return time + between;
}

/* All members send at once, so the members of a domain share its link. The largest parts go
** farthest. */
static double halving(const call *c) {
  double time = depth(c);
  for (size_t l = 0; l < c->levels; l++)
    if (crosses(c, l))
      time += c->bytes * (1 / above(c, l) - 1 / cost_domains(c, l)) * (double)c->x->at[l].most
              / rate(c, l);
  return time;
}
static double halving_twice(const call *c) { return 2 * halving(c); }

static double doubling(const call *c) {
  double time = depth(c);
  for (size_t l = 0; l < c->levels; l++)
    if (crosses(c, l)) time += logs(c, l) * c->bytes * (double)c->x->at[l].most / rate(c, l);
  return time;
}

static double in_levels(const call *c, double outer, double inner) {
  size_t l = farthest(c);
  double q = (double)c->x->at[l].most, d = cost_domains(c, l);
  if (q < 2 || c->x->at[l].least != c->x->at[l].most) return HUGE_VAL;
  /* count only the domains within one domain of level l */
  call in = *c;
  double within = 0, least = HUGE_VAL;
  for (size_t k = l + 1; k < c->levels; k++) {
    double of = cost_domains(c, k) / d, upper = k == l + 1 ? 1 : cost_domains(c, k - 1) / d;
    within += fmax(0, ceil(of) - ceil(upper)) * cost_late(c, k);
    least = fmin(least, rate(&in, k));
  }
  return inner * (within + (q - 1) / q * c->bytes / least)
         + outer * ((d - 1) * cost_late(c, l) + (d - 1) / d * c->bytes / rate(c, l));
}
static double levels_reduce(const call *c) { return in_levels(c, 2, 2); }
static double levels_gather(const call *c) { return in_levels(c, 1, 1); }

static double binomial(const call *c) {
  double time = depth(c);
  for (size_t l = 0; l < c->levels; l++)
    if (crosses(c, l)) time += logs(c, l) * c->bytes / rate(c, l);
  return time;
}
/* a scatter by halving, then a gather around a ring */
static double two_halves(const call *c) { return halving(c) + once(c); }

/* Return `latency` plus the time of the bytes between the root's domain and the other domains. */
static double to_root(const call *c, double latency) {
  double time = 0;
  for (size_t l = 0; l < c->levels; l++)
    if (crosses(c, l))
      time = fmax(time, (c->n - (double)c->x->at[l].least) / c->n * c->bytes / rate(c, l));
  return latency + time;
}
static double linear(const call *c) { return to_root(c, cost_late(c, farthest(c))); }
static double cost_by_tree(const call *c) { return to_root(c, depth(c)); }

static double pairs_after(const call *c, double latency) {
  double time = 0;
  for (size_t l = 0; l < c->levels; l++) {
    double out = 0, least = (double)c->x->at[l].least, most = (double)c->x->at[l].most;
    if (!crosses(c, l)) continue;
    out = fmax(least * (c->n - least), most * (c->n - most)) / c->n * c->bytes;
    time = fmax(time, out / rate(c, l));
  }
  return latency + time;
}
static double cost_pairs(const call *c) { return pairs_after(c, cost_late(c, farthest(c))); }
static double pairs_in_turn(const call *c) { return pairs_after(c, hops(c)); }
static double cost_rounds(const call *c) { return depth(c); }

/* -------------------------------------------------------------- operations */

struct step_algorithm {
  const char *name; /* "ring" */
  double (*time)(const call *c);
};
#define BY(...) \
  (const step_algorithm[]) { \
    __VA_ARGS__, { NULL, NULL } \
  }

/* The rows, in the order of step_kind. Only operations that communicate have all columns. */
const step_operation mgrid_step_rows[] = {
  { "all_reduce", STEP_TOGETHER, false, true, "(group, bytes)", STEP_AROUND_TWICE, false,
    MGRID_ALLREDUCE, "all_reduce", BY({ "ring", ring_twice }, { "tree", tree }, { "nvls", nvls }),
    BY({ "ring", ring_twice }, { "halving", halving_twice }, { "doubling", doubling },
       { "hierarchical", levels_reduce }) },
  { "all_gather", STEP_TOGETHER, false, true, "(group, bytes)", STEP_AROUND, true, MGRID_ALLGATHER,
    "all_gather", BY({ "ring", once }),
    BY({ "ring", once }, { "doubling", halving }, { "hierarchical", levels_gather }) },
  { "reduce_scatter", STEP_TOGETHER, false, true, "(group, bytes)", STEP_AROUND, true,
    MGRID_REDUCE_SCATTER, "reduce_scatter", BY({ "ring", once }),
    BY({ "ring", once }, { "halving", halving }, { "hierarchical", levels_gather }) },
  { "all_to_all", STEP_TOGETHER, false, true, "(group, bytes or a list by position)", STEP_PAIRS,
    true, MGRID_ALL_TO_ALL, "all_to_all", BY({ "pairs", cost_pairs }),
    BY({ "pairs", pairs_in_turn }) },
  { "broadcast", STEP_TOGETHER, true, true, "(group, bytes, { root = position })", STEP_ALONG,
    false, MGRID_BROADCAST, "broadcast", BY({ "chain", cost_chain }),
    BY({ "chain", cost_chain }, { "binomial", binomial }, { "halving and ring", two_halves }) },
  { "reduce", STEP_TOGETHER, true, true, "(group, bytes, { root = position })", STEP_ALONG, false,
    MGRID_ALLREDUCE, "reduce", BY({ "chain", cost_chain }),
    BY({ "chain", cost_chain }, { "binomial", binomial }) },
  { "gather", STEP_TOGETHER, true, true, "(group, bytes, { root = position })", STEP_TO_ROOT, true,
    MGRID_ALLGATHER, "broadcast", BY({ "linear", linear }), BY({ "binomial", cost_by_tree }) },
  { "scatter", STEP_TOGETHER, true, true, "(group, bytes, { root = position })", STEP_FROM_ROOT,
    true, MGRID_ALL_TO_ALL, "broadcast", BY({ "linear", linear }),
    BY({ "binomial", cost_by_tree }) },
  { "barrier", STEP_TOGETHER, false, false, "(group)", STEP_STAYS, false, MGRID_BARRIER, NULL,
    BY({ "rounds", cost_rounds }), BY({ "rounds", cost_rounds }) },
  { "send", STEP_POINT, false, true, "(group, position, bytes)", STEP_MESSAGE, false,
    MGRID_SENDRECV, "send", NULL, NULL },
  { "recv", STEP_POINT, false, true, "(group, position, bytes)", STEP_STAYS, false, MGRID_SENDRECV,
    NULL, NULL, NULL },
  { "sendrecv", STEP_BLOCK, .sized = true, .takes = "(group, to, from, bytes)",
    .traffic = "all_gather" },
  { "group", STEP_BLOCK, .takes = "(function() ... end)" },
  { "loop", STEP_BLOCK, .takes = "(count, function() ... end)" },
  { "compute", STEP_LOCAL, .takes = "{ flops, bytes, seconds, name }" },
  { "alloc", STEP_LOCAL, .sized = true, .takes = "(name, bytes)" },
  { "free", STEP_LOCAL, .takes = "(name)" },
  { "mark", STEP_LOCAL, .takes = "(name)" },
  { "event", STEP_ORDER, .takes = "()" },
  { "wait", STEP_ORDER, .takes = "(stream or event)" },
  { "host_wait", STEP_ORDER, .takes = "(stream)" },
};
_Static_assert(sizeof mgrid_step_rows / sizeof *mgrid_step_rows == STEP_KINDS, "a row for each");

/* --------------------------------------------------------------- efficiency */

/* Return the share of the bandwidth that calls with so many bytes reach. Between two measured sizes
** the share is interpolated over the logarithm of the bytes. */
static double cost_share_of(const step_costs *k, step_kind kind, size_t level, double bytes) {
  for (int wide = 0; wide < 4; wide++) { /* rows for this kind and this level come first */
    step_kind of = wide & 2 ? STEP_KINDS : kind;
    int at = wide & 1 ? -1 : (int)level;
    const step_rate *below = NULL;
    for (size_t i = 0; i < k->nrates; i++) {
      const step_rate *r = &k->rate[i];
      if (r->kind != of || r->level != at) continue;
      if (r->bytes >= bytes && !below) return r->share;
      if (r->bytes >= bytes)
        return below->share
               + (r->share - below->share) * (log(bytes) - log(below->bytes))
                     / (log(r->bytes) - log(below->bytes));
      below = r;
    }
    if (below) return below->share;
  }
  return 1;
}

/* ------------------------------------------------------------------- calls */

/* Return how a message between two positions travels: over the farthest level that it crosses, and
** all nearer levels. */
static step_way cost_point(call *c, int32_t type, const step_node *n) {
  const step_types *t = &c->p->types;
  int64_t size = c->x->size, a = t->type[type].position[n->slot], b = n->number;
  step_way way = { 0, "direct", (int)c->levels - 1 };
  double least = HUGE_VAL;
  if (a == b) return way;
  for (size_t l = c->levels; l-- > 0;)
    if (c->x->where[(int64_t)l * size + a] != c->x->where[(int64_t)l * size + b])
      way.level = (int)l;
  /* a message takes equally long for its sender and its receiver, whoever comes last */
  c->share = cost_share_of(&c->p->costs, STEP_SEND, (size_t)way.level, c->bytes);
  for (size_t l = (size_t)way.level; l < c->levels; l++)
    least = fmin(least, rate_of(c, l, (double)c->x->at[l].share, 1));
  way.seconds = cost_late(c, (size_t)way.level) + c->bytes / least;
  return way;
}

step_way mgrid_step_way_of(const step_pricing *p, int32_t type, const step_node *n, int64_t bytes) {
  int32_t shape = p->shapes.of[(size_t)type * p->s->nslots + (size_t)n->slot];
  const step_shape *x = &p->shapes.shape[shape];
  const step_operation *o = &mgrid_step_rows[n->kind];
  const step_algorithm *by = p->costs.mpi ? o->mpi : o->nccl;
  call c = { p, x, p->m->ntiers, (double)x->size, (double)bytes, 1 };
  step_way best = { 0, by ? by->name : "direct", (int)farthest(&c) };
  if (!by) {
    best = cost_point(&c, type, n);
  } else if (x->size < 2) {
    return (step_way){ 0, "", (int)c.levels - 1 };
  } else {
    c.share = cost_share_of(&p->costs, (step_kind)n->kind, (size_t)best.level, c.bytes);
    best.seconds = by->time(&c);
    while ((++by)->name) {
      double time = by->time(&c);
      if (time < best.seconds) best.seconds = time, best.algorithm = by->name;
    }
  }
  best.seconds += p->costs.call;
  return best;
}

double mgrid_step_work_of(const step_pricing *p, const step_node *n) {
  double start = n->flops > 0 ? p->costs.start : 0;
  double of_flops = n->flops > 0 && p->costs.flops > 0 ? n->flops / p->costs.flops : 0;
  double of_bytes = n->bytes > 0 && p->costs.memory > 0 ? (double)n->bytes / p->costs.memory : 0;
  return start + (n->seconds > 0 ? n->seconds : 0) + fmax(of_flops, of_bytes);
}

int64_t mgrid_step_ticks(double seconds) {
  return seconds * STEP_SECOND < 9e18 ? (int64_t)(seconds * STEP_SECOND + 0.5) : INT64_MAX;
}

/* ------------------------------------------------------------------ checks */

static mgrid_status refuse_flops(const step_pricing *p, const step_node *n, mgrid_error *err) {
  char line[40] = "";
  if (n->line) snprintf(line, sizeof line, ", line %d,", n->line);
  return mgrid_fail(err, MGRID_REFUSED,
                    "compute%s%s%s%s has flops, but the flops of a GPU in a second are not known; "
                    "--flops 400T gives them",
                    n->name ? " '" : "", n->name ? p->s->word[n->name] : "", n->name ? "'" : "",
                    line);
}

mgrid_status mgrid_step_priceable(const step_pricing *p, mgrid_error *err) {
  const mgrid_step *s = p->s;

  for (size_t i = 0; i < s->nprograms; i++)
    for (size_t k = 0; k < s->program[i].n; k++)
      if (s->program[i].node[k].kind == STEP_COMPUTE && s->program[i].node[k].flops > 0
          && !(p->costs.flops > 0))
        return refuse_flops(p, &s->program[i].node[k], err);
  for (size_t t = 0; t < p->types.n; t++)
    for (size_t i = 0; i < s->nslots; i++) {
      int32_t shape = p->shapes.of[t * s->nslots + i];
      const step_shape *x = shape < 0 ? NULL : &p->shapes.shape[shape];
      size_t far = p->m->ntiers;
      double known = 0;
      for (size_t l = 0; x && x->size > 1 && l < p->m->ntiers; l++) {
        if (x->at[l].domains < 2) continue;
        if (far == p->m->ntiers) far = l;
        known = fmax(known, p->m->tier[l].link.bandwidth);
      }
      if (far < p->m->ntiers && !(p->m->tier[far].link.bandwidth > 0))
        return mgrid_fail(err, MGRID_REFUSED,
                          "groups of %s cross the level %s, whose bandwidth is not known; a "
                          "machine gives it as %s[50GB/s]%s",
                          s->plan->content.entry[s->slot[i].entry].name, p->m->tier[far].name,
                          p->m->tier[far].name,
                          known > 0 ? "; the bandwidth of a nearer level does not replace it" : "");
    }
  return MGRID_OK;
}
