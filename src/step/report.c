/* SPDX-License-Identifier: MIT
**
** report.c - a step and its price as JSON, for the command, C and Lua.
*/
#include "moongrid_step.h"
#include "plan/json.h"
#include "step/price.h"

#include <inttypes.h>
#include <stdlib.h>

/* Return the sums by family of the rank with the most, to be freed; NULL: no memory. */
static step_sum *report_most_of(const mgrid_step *s) {
  size_t n = s->plan->content.nentries;
  step_sum *most = calloc(2 * n + 1, sizeof *most);
  for (size_t i = 0; most && i < s->nprograms; i++) {
    step_sum *one = most + n;
    mgrid_step_sums(s, &s->program[i], one);
    for (size_t k = 0; k < n; k++) {
      if (one[k].calls > most[k].calls) most[k].calls = one[k].calls;
      if (one[k].bytes > most[k].bytes) most[k].bytes = one[k].bytes;
    }
  }
  return most;
}

static json_t *report_families_json(const mgrid_step *s, const step_sum *most) {
  json_t *all = json_object();
  for (size_t i = 0; i < s->plan->content.nentries; i++)
    if (most[i].calls)
      json_object_set_new(all, s->plan->content.entry[i].name,
                          mgrid_json_pack("{sIsI}", "calls", (json_int_t)most[i].calls, "bytes",
                                          (json_int_t)most[i].bytes));
  return all;
}

static json_t *memory_json(const mgrid_step *s, const step_memory *m) {
  json_t *by = json_object();
  for (size_t i = 0; i < m->n; i++)
    if (m->bytes[i]) json_object_set_new(by, s->word[m->name[i]], json_integer(m->bytes[i]));
  return mgrid_json_pack("{sIsssIso}", "peak", (json_int_t)m->peak, "at", s->word[m->at], "rank",
                         (json_int_t)m->rank, "by", by);
}

/* ------------------------------------------------------------------- price */

static double bubble_of(const step_price *p) {
  double rest = p->seconds - p->mean.compute - p->mean.exposed;
  return rest > 0 ? rest : 0;
}

static void busiest_text(const step_price *p, mgrid_text *t) {
  const step_busiest *b = &p->busiest;
  const char *name = mgrid_machine_domain_name(p->by.m, (size_t)b->level, b->domain);
  mgrid_text_add(t, "%s ", p->by.m->tier[b->level].name);
  name ? mgrid_text_str(t, name) : mgrid_text_add(t, "%" PRId64, b->domain);
}

static void report_add_family(const step_price *p, size_t entry, json_t *to) {
  const step_family_price *f = &p->family[entry];
  json_t *levels = json_object(), *ways = json_object();
  for (size_t l = 0; l < p->by.m->ntiers; l++) {
    const step_crossing *x = &p->crossing[entry * p->by.m->ntiers + l];
    if (x->bytes > 0 || x->calls > 0)
      json_object_set_new(levels, p->by.m->tier[l].name,
                          mgrid_json_pack("{sfsf}", "calls", x->calls, "bytes", x->bytes));
  }
  for (int i = 0; i < STEP_KINDS; i++)
    if (f->way[i]) json_object_set_new(ways, mgrid_step_rows[i].name, json_string(f->way[i]));
  json_object_set_new(to, "seconds", json_real(f->seconds));
  json_object_set_new(to, "levels", levels);
  json_object_set_new(to, "algorithms", ways);
}

/* What the seconds rest on. Of published training runs (373 rows of 18 tables) the price from data
** sheets was 48 % too low in the median: they took 1.3 to 3 times as long. */
static json_t *estimate_json(const step_price *p, bool fitted) {
  const char *source = p->by.costs.source;
  if (*source || fitted)
    return mgrid_json_pack("{ss}", "from", *source ? source : "measured calls");
  return mgrid_json_pack("{sss[ff]}", "from", "data sheets", "longer", 1.3, 3.0);
}

static void put_price(const step_price *p, json_t *all) {
  const mgrid_content *c = &p->by.s->plan->content;
  json_t *families = json_object_get(all, "families");
  mgrid_text machine = { 0 }, link = { 0 };
  mgrid_machine_text(p->by.m, &machine);
  json_object_set_new(all, "seconds", json_real(p->seconds));
  json_object_set_new(all, "compute", json_real(p->mean.compute));
  json_object_set_new(all, "exposed", json_real(p->mean.exposed));
  json_object_set_new(all, "hidden", json_real(p->mean.hidden));
  json_object_set_new(all, "bubble", json_real(bubble_of(p)));
  json_object_set_new(all, "types", json_integer((json_int_t)p->by.types.n));
  json_object_set_new(all, "machine", json_string(mgrid_text_chars(&machine)));
  json_object_set_new(all, "flops", json_real(p->by.costs.flops));
  json_object_set_new(all, "source", json_string(p->by.costs.source));
  json_t *fits = json_object();
  for (size_t l = 0; l < p->by.m->ntiers; l++) {
    const step_fit *f = &p->by.costs.fit[l];
    if (f->n)
      json_object_set_new(fits, p->by.m->tier[l].name,
                          mgrid_json_pack("{sIsfsfsfsf}", "measured", (json_int_t)f->n, "latency",
                                          f->latency, "share", f->share, "median_error", f->median,
                                          "worst_error", f->worst));
  }
  json_object_set_new(all, "estimate", estimate_json(p, json_object_size(fits) > 0));
  json_object_set_new(all, "fits", fits);
  if (p->busiest.level >= 0) {
    busiest_text(p, &link);
    json_object_set_new(all, "busiest",
                        mgrid_json_pack("{sssssIsfsf}", "link", mgrid_text_chars(&link), "level",
                                        p->by.m->tier[p->busiest.level].name, "domain",
                                        (json_int_t)p->busiest.domain, "bytes", p->busiest.bytes,
                                        "seconds", p->busiest.seconds));
  }
  for (size_t i = 0; i < c->nentries; i++) {
    json_t *to = json_object_get(families, c->entry[i].name);
    if (to) report_add_family(p, i, to);
  }
  mgrid_text_free(&machine);
  mgrid_text_free(&link);
}

json_t *mgrid_step_report(const mgrid_step *s, const step_price *price, mgrid_error *err) {
  step_memory memory;
  step_sum *most = report_most_of(s);
  json_t *all = NULL;
  if (!most) return mgrid_null_oom(err);
  if (!mgrid_step_memory(s, &memory, err)) {
    all = mgrid_json_pack("{soso}", "families", report_families_json(s, most), "memory",
                          memory_json(s, &memory));
    if (price && all) put_price(price, all);
    if (!all) mgrid_oom(err);
  }
  free(most);
  return all;
}

/* ------------------------------------------------------------ for programs */

mgrid_status mgrid_step_price_with(const mgrid_step *s, const mgrid_machine_model *m,
                                   const mgrid_step_price_options *given, step_records *records,
                                   step_price *out, mgrid_error *err) {
  mgrid_step_price_options o = MGRID_STEP_PRICE_OPTIONS_INIT;
  step_costs costs;
  mgrid_status status = mgrid_struct_read(&o, sizeof o, given, "mgrid_step_price_options", err);
  if (!status && (!(o.flops >= 0) || o.eager < 0))
    status = mgrid_fail(err, MGRID_BAD_VALUE, "flops and eager of a price are 0 or more");
  if (!status) status = mgrid_step_costs_of(m, o.blocking, o.costs, &costs, err);
  if (status) return status;
  if (o.flops > 0) costs.flops = o.flops;
  costs.eager = o.eager;
  return mgrid_step_price_of(s, m, &costs, STEP_AS_NEEDED, records, out, err);
}

static mgrid_status print_price(const mgrid_step *s, const step_price *p, mgrid_sink sink, void *ud,
                                mgrid_error *err) {
  json_t *all = mgrid_step_report(s, p, err);
  mgrid_text t = { 0 };
  if (!all) return err->status;
  mgrid_json_text(all, JSON_INDENT(2), &t);
  mgrid_text_str(&t, "\n");
  mgrid_status status = mgrid_text_flush(&t, sink, ud, err);
  mgrid_text_free(&t);
  json_decref(all);
  return status;
}

mgrid_status mgrid_step_price(const mgrid_step *s, const mgrid_machine_model *m,
                              const mgrid_step_price_options *options, mgrid_step_time *out,
                              mgrid_sink sink, void *ud, mgrid_error *err) {
  step_price p;
  mgrid_step_time own = MGRID_STEP_TIME_INIT;
  mgrid_error mine = MGRID_ERROR_INIT;
  if (!s || !m) return MGRID_USAGE;
  if (out) mgrid_struct_check(out, sizeof own, "mgrid_step_time", &mine);
  if (mine.status || mgrid_step_price_with(s, m, options, NULL, &p, &mine))
    return mgrid_error_pass(err, &mine);
  own.seconds = p.seconds;
  own.compute = p.mean.compute, own.exposed = p.mean.exposed, own.hidden = p.mean.hidden;
  own.bubble = bubble_of(&p);
  own.types = p.by.types.n;
  if (!sink || !print_price(s, &p, sink, ud, &mine)) mgrid_struct_write(out, &own, sizeof own);
  mgrid_step_price_free(&p);
  return mgrid_error_pass(err, &mine);
}
