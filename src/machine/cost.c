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

typedef struct costing {
  const mgrid_machine_model *m;
  const mgrid_plan          *p;
  const mgrid_traffic       *traffic;
  size_t                     level;
  int32_t                   *domain; /* of each rank; NULL: not needed yet */
  int64_t                    domains;
  double                    *leaving; /* of each domain, for the busiest; NULL: not needed */
} costing;

static mgrid_status need_domains(costing *c, mgrid_error *err) {
  int64_t world = mgrid_plan_world(c->p);
  if (c->domain) return MGRID_OK;
  if (!(c->domain = malloc((size_t)world * sizeof *c->domain))) return mgrid_oom(err);
  c->domains = mgrid_domains_of(c->m, c->level, world, c->domain);
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

static mgrid_status add_flow(costing *c, const mgrid_flow *flow, const mgrid_family *f, mgrid_cost *out,
                             mgrid_error *err) {
  const mgrid_tier *t = &c->m->tier[c->level];
  out->bound[c->level] += least(flow, f, t->most);
  if (flow->by->pattern == MGRID_RING && f->size > 0 && !c->leaving) {
    mgrid_machine_counts n = MGRID_MACHINE_COUNTS_INIT;
    mgrid_status         s = mgrid_machine_count(c->m, f, t->name, &n, err);
    out->bytes[c->level] += (double)n.edges * mgrid_flow_edge(flow, f->size);
    return s;
  }
  mgrid_status s = need_domains(c, err);
  double       sum = s ? -1 : mgrid_flow_leaving(flow, f, c->domain, c->domains, c->leaving, err);
  out->bytes[c->level] += sum;
  return sum < 0 ? MGRID_NO_MEMORY : MGRID_OK;
}

/* The flows of a family: those of the traffic, or one all_reduce. */
static mgrid_status add_family(costing *c, size_t i, mgrid_cost *out, mgrid_error *err) {
  const mgrid_entry *e = &c->p->content.entry[i];
  const mgrid_flow   usual = { .by = mgrid_collectives, .bytes = 1 << 30, .calls = 1 };
  mgrid_status       s = MGRID_OK;
  if (!c->traffic)
    return c->p->shares[i] >= 0 || e->choice->none || e->family->max_size < 2
               ? MGRID_OK
               : add_flow(c, &usual, e->family, out, err);
  for (size_t k = 0; k < c->traffic->n && !s; k++)
    if (strcmp(c->traffic->flow[k].family, e->name) == 0) s = add_flow(c, &c->traffic->flow[k], e->family, out, err);
  return s;
}

/* Add the cost at a level. */
static mgrid_status add_level(costing *c, bool timed, mgrid_cost *out, mgrid_error *err) {
  double       bandwidth = c->m->tier[c->level].link.bandwidth, most = 0;
  mgrid_status s = MGRID_OK;
  timed &= bandwidth > 0;
  if (timed) s = need_domains(c, err);
  if (timed && !s && !(c->leaving = calloc((size_t)c->domains + 1, sizeof *c->leaving))) s = mgrid_oom(err);
  for (size_t i = 0; i < c->p->content.nentries && !s; i++) s = add_family(c, i, out, err);
  for (int64_t d = 0; c->leaving && d < c->domains; d++)
    if (c->leaving[d] > most) most = c->leaving[d];
  if (timed) out->seconds += most / bandwidth;
  free(c->leaving);
  free(c->domain);
  return s;
}

mgrid_status mgrid_cost_of(const mgrid_machine_model *m, const mgrid_plan *p, const mgrid_traffic *traffic, bool timed,
                           mgrid_cost *out, mgrid_error *err) {
  mgrid_status s = MGRID_OK;
  *out = (mgrid_cost){ .n = m->ntiers > 1 ? m->ntiers - 1 : 1 };
  for (size_t l = 0; l < out->n && !s; l++)
    s = add_level(&(costing){ .m = m, .p = p, .traffic = traffic, .level = l }, timed, out, err);
  return s;
}
