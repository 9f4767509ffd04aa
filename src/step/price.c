/* SPDX-License-Identifier: MIT
**
** price.c - the price of a step: its time, by an execution with a clock; what the ranks do in it,
** on average; what families need.
*/
#include "step/clock.h"

#include <stdlib.h>
#include <string.h>

/* Below so many operations of one rank of each type, no loop is taken as one: then all times are
** exact, those of calls that travel next to computes, too. */
#define EVERY_ONE 100000.0

void mgrid_step_records_free(step_records *r) {
  free(r->record);
  free(r->repeat);
  memset(r, 0, sizeof *r);
}

void mgrid_step_price_free(step_price *p) {
  mgrid_step_shapes_free(&p->by.shapes);
  mgrid_step_types_free(&p->by.types);
  free(p->use);
  free(p->family);
  free(p->crossing);
  memset(p, 0, sizeof *p);
}

/* --------------------------------------------------------------- families */

typedef struct timing {
  const step_pricing *p;
  step_budget *budget;
  int32_t type;
  step_family_price *family; /* of all types */
  double *mine;              /* [entries]: seconds of this type */
} timing;

static void add_times(const timing *x, const step_program *p, uint32_t from, uint32_t end,
                      double often) {
  for (uint32_t i = from; i < end && mgrid_spend(&x->budget->work, 1); i = p->node[i].end) {
    const step_node *n = &p->node[i];
    if (mgrid_step_rows[n->kind].role == STEP_BLOCK)
      add_times(x, p, i + 1, n->end, n->kind == STEP_LOOP ? often * (double)n->number : often);
    if (n->slot < 0) continue;
    int32_t entry = x->p->s->slot[n->slot].entry;
    step_way way = mgrid_step_way_of(x->p, x->type, n, n->bytes);
    step_family_price *f = &x->family[entry];
    x->mine[entry] += often * way.seconds;
    if (*way.algorithm && often * way.seconds >= f->most[n->kind])
      f->most[n->kind] = often * way.seconds, f->way[n->kind] = way.algorithm;
  }
}

static mgrid_status time_families(step_price *out, step_budget *b, mgrid_error *err) {
  const mgrid_step *s = out->by.s;
  size_t entries = s->plan->content.nentries;
  double *mine = calloc(entries + 1, sizeof *mine);
  if (!mine) return mgrid_oom(err);
  for (size_t t = 0; t < out->by.types.n; t++) {
    const step_program *p = &s->program[s->class[out->by.types.type[t].class].program];
    timing x = { &out->by, b, (int32_t)t, out->family, mine };
    memset(mine, 0, entries * sizeof *mine);
    add_times(&x, p, 0, (uint32_t)p->n, 1);
    for (size_t i = 0; i < entries; i++)
      if (mine[i] > out->family[i].seconds) out->family[i].seconds = mine[i];
  }
  free(mine);
  return b->work.exhausted ? mgrid_step_budget_spent(b, err) : MGRID_OK;
}

/* -------------------------------------------------------------------- time */

static double operations_of(const step_pricing *p) {
  double sum = 0;
  for (size_t t = 0; t < p->types.n; t++)
    sum += (double)p->s->program[p->s->class[p->types.type[t].class].program].leaves;
  return sum;
}

static mgrid_status price_execute(step_price *out, bool whole, step_records *records,
                                  step_budget *b, mgrid_error *err) {
  const step_pricing *p = &out->by;
  step_clock c = { .pricing = p, .whole = whole, .records = records };
  step_machine m;
  bool done;
  mgrid_status status =
      mgrid_step_machine_run(&m, p->s, &p->types, p->rules, p->costs.eager, &c, b, &done, err);
  if (!status && !done)
    status = mgrid_fail(err, MGRID_UNPROVED,
                        "a step is priced if every rank reaches its end, which this one's do not");
  if (!status) mgrid_step_clock_settle(&m);
  out->seconds = (double)c.now / STEP_SECOND;
  double world = (double)p->s->plan->content.world;
  for (size_t t = 0; t < p->types.n && !status; t++) {
    double ranks = (double)p->types.type[t].ranks / world;
    step_use *u = &out->use[t];
    *u = (step_use){ c.use[t].compute / STEP_SECOND, c.use[t].hidden / STEP_SECOND,
                     c.use[t].exposed / STEP_SECOND };
    out->mean.compute += ranks * u->compute, out->mean.hidden += ranks * u->hidden;
    out->mean.exposed += ranks * u->exposed;
  }
  mgrid_step_machine_free(&m);
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
  mgrid_status status = mgrid_step_shapes_of(s, m, &b, &out->by.shapes, &out->by.types, err);
  if (!status) status = mgrid_step_priceable(&out->by, err);
  if (!status) {
    out->use = calloc(out->by.types.n + 1, sizeof *out->use);
    out->family = calloc(entries + 1, sizeof *out->family);
    out->crossing = calloc(entries * m->ntiers + 1, sizeof *out->crossing);
    if (!out->use || !out->family || !out->crossing) status = mgrid_oom(err);
  }
  bool short_of = detail == STEP_IN_SHORT
                  || (detail == STEP_AS_NEEDED && operations_of(&out->by) > EVERY_ONE);
  if (!status) status = price_execute(out, short_of, records, &b, err);
  if (!status) status = time_families(out, &b, err);
  if (!status) status = mgrid_step_links(&out->by, &b, out->crossing, &out->busiest, err);
  if (status) mgrid_step_price_free(out);
  return status;
}
