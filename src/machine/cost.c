/* SPDX-License-Identifier: MIT
**
** cost.c - the cost of a plan on a machine.
**
** The bound: a group of n members needs ceil(n / C) domains of C places, wherever its ranks are. Its ring enters each of
** them, so as many of its edges lie between domains (one, if it has two members); a chain has one fewer; and of pairs the
** fewest are apart if all domains but the last are full.
*/
#include "machine/cost.h"

#include "machine/count.h"
#include "plan/plan.h"

#include <stdlib.h>
#include <string.h>

void mgrid_costing_free(mgrid_costing *c) {
  for (size_t l = 0; l < MGRID_LEVELS_MAX; l++) free(c->domain[l]);
}

size_t mgrid_cost_levels(const mgrid_machine_model *m) { return m->ntiers > 1 ? m->ntiers - 1 : 1; }

/* The domains of the ranks at a level, found once. */
static mgrid_status need_domains(mgrid_costing *c, size_t level, mgrid_error *err) {
  if (c->domain[level]) return MGRID_OK;
  c->domain[level] = mgrid_domains_of(c->m, level, c->world);
  if (!c->domain[level]) return mgrid_oom(err);
  for (int64_t r = 0; r < c->world; r++)
    if (c->domain[level][r] >= c->domains[level]) c->domains[level] = c->domain[level][r] + 1;
  return MGRID_OK;
}

static double least(const mgrid_flow *flow, const mgrid_family *f, int64_t most) {
  double sum = 0;
  for (int64_t g = 0; g < (f->size > 0 ? 1 : f->count); g++) {
    int64_t n = mgrid_family_size(f, g), domains = most ? (n - 1) / most + 1 : 1, whole = most ? n / most : 0;
    double  bytes = mgrid_flow_edge(flow, n);
    if (domains < 2) continue;
    if (flow->by->pattern == MGRID_PAIRS)
      sum += bytes
             * ((double)n * (double)n - (double)whole * (double)most * (double)most
                - (double)(n - whole * most) * (double)(n - whole * most));
    else
      sum += bytes * (double)(flow->by->pattern == MGRID_CHAIN || n == 2 ? domains - 1 : domains);
  }
  return f->size > 0 ? sum * (double)f->count : sum;
}

/* Add the cost of a flow. `leaving`: what leaves each domain, for the busiest; NULL: not needed. */
static mgrid_status add_flow(mgrid_costing *c, const mgrid_flow *flow, const mgrid_family *f, size_t level,
                             double *leaving, mgrid_cost *out, mgrid_error *err) {
  const mgrid_tier *t = &c->m->tier[level];
  out->bound[level] += least(flow, f, t->most);
  if (flow->by->pattern == MGRID_RING && f->size > 0 && !leaving) {
    mgrid_machine_counts n = MGRID_MACHINE_COUNTS_INIT;
    mgrid_status         s = mgrid_machine_count(c->m, f, t->name, &n, err);
    out->bytes[level] += (double)n.edges * mgrid_flow_edge(flow, f->size);
    return s;
  }
  mgrid_status s = need_domains(c, level, err);
  double       sum = s ? -1 : mgrid_flow_leaving(flow, f, c->domain[level], c->domains[level], leaving, err);
  out->bytes[level] += sum;
  return sum < 0 ? MGRID_NO_MEMORY : MGRID_OK;
}

/* The flows of a family: those of the traffic, or one all_reduce. */
static mgrid_status add_family(mgrid_costing *c, const mgrid_plan *p, size_t i, const mgrid_traffic *traffic,
                               size_t level, double *leaving, mgrid_cost *out, mgrid_error *err) {
  const mgrid_entry *e = &p->content.entry[i];
  const mgrid_flow   usual = { .by = mgrid_collectives, .bytes = 1 << 30, .calls = 1 };
  mgrid_status       s = MGRID_OK;
  if (!traffic)
    return p->shares[i] >= 0 || e->choice->none || e->family->max_size < 2
               ? MGRID_OK
               : add_flow(c, &usual, e->family, level, leaving, out, err);
  for (size_t k = 0; k < traffic->n && !s; k++)
    if (strcmp(traffic->flow[k].family, e->name) == 0)
      s = add_flow(c, &traffic->flow[k], e->family, level, leaving, out, err);
  return s;
}

mgrid_status mgrid_cost_of(mgrid_costing *c, const mgrid_plan *p, const mgrid_traffic *traffic, mgrid_cost *out,
                           mgrid_error *err) {
  mgrid_status s = MGRID_OK;
  *out = (mgrid_cost){ .n = mgrid_cost_levels(c->m) };
  for (size_t l = 0; l < out->n && !s; l++) {
    double  bandwidth = c->m->tier[l].link.bandwidth, most = 0;
    bool    timed = c->timed && bandwidth > 0;
    double *leaving = NULL;
    if (timed) s = need_domains(c, l, err);
    if (timed && !s && !(leaving = calloc((size_t)c->domains[l] + 1, sizeof *leaving))) s = mgrid_oom(err);
    for (size_t i = 0; i < p->content.nentries && !s; i++) s = add_family(c, p, i, traffic, l, leaving, out, err);
    for (int64_t d = 0; leaving && d < c->domains[l]; d++)
      if (leaving[d] > most) most = leaving[d];
    if (timed) out->seconds += most / bandwidth;
    free(leaving);
  }
  return s;
}

int mgrid_cost_compare(const mgrid_cost *a, const mgrid_cost *b, bool timed) {
  if (timed && a->seconds != b->seconds) return a->seconds < b->seconds ? -1 : 1;
  for (size_t l = 0; l < a->n; l++)
    if (a->bytes[l] != b->bytes[l]) return a->bytes[l] < b->bytes[l] ? -1 : 1;
  return 0;
}
