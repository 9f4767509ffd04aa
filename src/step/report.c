/* SPDX-License-Identifier: MIT
**
** report.c - sums of a step: calls and bytes by family, the largest memory, traffic; and a report
** as JSON, with the sums and the price. Loops are multiplied, not executed.
*/
#include "moongrid_step.h"
#include "plan/json.h"
#include "step/price.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ===================================================================== sums */

static int64_t sums_add(int64_t a, int64_t b) { return b > INT64_MAX - a ? INT64_MAX : a + b; }
static int64_t times(int64_t a, int64_t b) { return a && b > INT64_MAX / a ? INT64_MAX : a * b; }

static void sum_up(const mgrid_step *s, const step_program *p, uint32_t from, uint32_t end,
                   int64_t often, step_sum *sum) {
  for (uint32_t i = from; i < end; i = p->node[i].end) {
    const step_node *n = &p->node[i];
    if (mgrid_step_rows[n->kind].role == STEP_BLOCK)
      sum_up(s, p, i + 1, n->end, n->kind == STEP_LOOP ? times(often, n->number) : often, sum);
    if (n->slot < 0) continue;
    step_sum *to = &sum[s->slot[n->slot].entry];
    to->calls = sums_add(to->calls, often);
    to->bytes = sums_add(to->bytes, times(often, n->bytes));
  }
}

void mgrid_step_sums(const mgrid_step *s, const step_program *p, step_sum *sum) {
  memset(sum, 0, s->plan->content.nentries * sizeof *sum);
  sum_up(s, p, 0, (uint32_t)p->n, 1, sum);
}

int64_t mgrid_step_total(const mgrid_step *s) {
  int64_t total = 0;
  for (size_t i = 0; i < s->nclasses; i++)
    total = sums_add(total, times(s->program[s->class[i].program].calls, s->class[i].ranks));
  return total;
}

/* ------------------------------------------------------------------- memory */

enum { STEP_NAMED_MAX = 64 }; /* different names of allocations */
typedef struct memory {
  int64_t peak; /* bytes */
  uint32_t at;  /* a word: the last mark before the peak; 0: none */
  int64_t rank; /* the lowest rank with this peak */
  size_t n;
  uint32_t name[STEP_NAMED_MAX]; /* words */
  int64_t bytes[STEP_NAMED_MAX];
} memory;

typedef struct held {
  const step_program *p;
  mgrid_budget *budget;
  memory now, most;             /* now.peak: bytes in use; now.at: the last mark */
  int64_t last[STEP_NAMED_MAX]; /* bytes of the last allocation with this name */
} held;

static size_t index_of(held *m, uint32_t name) {
  size_t i = 0;
  while (i < m->now.n && m->now.name[i] != name) i++;
  if (i == STEP_NAMED_MAX) return i - 1; /* all further names count as the last one */
  if (i == m->now.n) m->now.name[m->now.n++] = name;
  return i;
}

static void sums_change(held *m, size_t i, int64_t by) {
  m->now.bytes[i] = by > 0 ? sums_add(m->now.bytes[i], by) : m->now.bytes[i] + by;
  m->now.peak = by > 0 ? sums_add(m->now.peak, by) : m->now.peak + by;
  if (m->now.peak > m->most.peak) m->most = m->now;
}

/* Memory in a loop: if an iteration keeps memory, the last iteration has the peak; if it frees
** memory, the first iteration has it. So only these two iterations are looked at. */
static void go_through(held *m, uint32_t from, uint32_t end) {
  for (uint32_t i = from; i < end && mgrid_spend(m->budget, 1); i = m->p->node[i].end) {
    const step_node *n = &m->p->node[i];
    if (n->kind == STEP_MARK) m->now.at = n->name;

    if (n->kind == STEP_ALLOC) {
      size_t k = index_of(m, n->name);
      m->last[k] = n->bytes;
      sums_change(m, k, n->bytes);
    } else if (n->kind == STEP_FREE) {
      size_t k = index_of(m, n->name);
      int64_t has = m->now.bytes[k];
      sums_change(m, k, -(m->last[k] < has ? m->last[k] : has));
    } else if (n->kind == STEP_LOOP) {
      memory before = m->now;
      go_through(m, i + 1, n->end);
      for (size_t k = 0; k < m->now.n && n->number > 2; k++) {
        int64_t by = m->now.bytes[k] - before.bytes[k];
        if (by > 0) sums_change(m, k, times(by, n->number - 2));
        if (by < 0)
          sums_change(m, k,
                      times(-by, n->number - 2) > m->now.bytes[k] ? -m->now.bytes[k]
                                                                  : by * (n->number - 2));
      }
      if (n->number > 1) go_through(m, i + 1, n->end);
    }
  }
}

/* Find the largest memory of all ranks. */
static mgrid_status most_memory(const mgrid_step *s, memory *out, mgrid_error *err) {
  step_budget b;
  bool *seen = calloc(s->nprograms + 1, sizeof *seen);
  memset(out, 0, sizeof *out);
  out->rank = -1;
  if (!seen) return mgrid_oom(err);
  mgrid_step_budget_begin(&b, &s->limits, "the memory of the step");
  /* the first class of a program contains its lowest rank */
  for (size_t i = 0; i < s->nclasses; i++) {
    const step_program *p = &s->program[s->class[i].program];
    held m = { .p = p, .budget = &b.work };
    if (seen[s->class[i].program]) continue;
    seen[s->class[i].program] = true;
    go_through(&m, 0, (uint32_t)p->n);
    if (m.most.peak <= out->peak) continue;
    *out = m.most;
    out->rank = s->class[i].first;
  }
  free(seen);
  return b.work.exhausted ? mgrid_step_budget_spent(&b, err) : MGRID_OK;
}

/* ================================================================== traffic */

/* What a step sends, as traffic of families: mean values over all members of a family's groups. */

typedef struct summing {
  const mgrid_step *s;
  const step_program *p;
  double (*sum)[STEP_KINDS]; /* [entries of the plan]: bytes of all ranks */
} summing;

/* Add entries of a program `often` times. `ring`: the sends belong to sendrecvs in both
** directions. */
static void sends_add(const summing *x, uint32_t from, uint32_t end, double often, bool ring) {
  for (uint32_t i = from; i < end; i = x->p->node[i].end) {
    const step_node *n = &x->p->node[i];
    bool both = n->kind == STEP_SENDRECV && i + 2 < n->end;
    if (mgrid_step_rows[n->kind].role == STEP_BLOCK)
      sends_add(x, i + 1, n->end, n->kind == STEP_LOOP ? often * (double)n->number : often, both);
    else if (n->slot >= 0 && mgrid_step_rows[n->kind].traffic)
      x->sum[x->s->slot[n->slot].entry][ring && n->kind == STEP_SEND ? STEP_SENDRECV : n->kind] +=
          often * (double)n->bytes;
  }
}

/* Append the traffic of a family: "tp = 12 B all_reduce + 3 B all_gather". The sums are divided so
** that traffic.c puts the right bytes on each edge. A chain of n members has n - 1 edges, each with
** all bytes of a send. A ring has n edges, each with (n - 1) / n of the bytes of an all_gather. */
static void put_family(const mgrid_entry *e, const double sum[STEP_KINDS], mgrid_text *t) {
  double members = (double)e->family->total, groups = (double)e->family->count;
  bool some = false;
  for (int k = 0; k < STEP_KINDS; k++) {
    double by = k == STEP_SEND ? members - groups : k == STEP_SENDRECV ? members - groups : members;
    if (!(sum[k] > 0) || !(by > 0)) continue;
    double bytes = sum[k] / by;
    if (!some) mgrid_text_add(t, "%s%s =", t->len ? "; " : "", e->name);
    mgrid_text_add(t, "%s %.17g B %s", some ? " +" : "", bytes < 9e17 ? bytes : 9e17,
                   mgrid_step_rows[k].traffic);
    some = true;
  }
}

mgrid_status mgrid_step_sends(const mgrid_step *s, mgrid_text *t, mgrid_error *err) {
  size_t entries = s->plan->content.nentries;
  summing x = { s, NULL, calloc(entries + 1, sizeof *x.sum) };
  if (!x.sum) return mgrid_oom(err);
  for (size_t i = 0; i < s->nprograms; i++) {
    double ranks = 0;
    for (size_t k = 0; k < s->nclasses; k++)
      if ((size_t)s->class[k].program == i) ranks += (double)s->class[k].ranks;
    x.p = &s->program[i];
    sends_add(&x, 0, (uint32_t)x.p->n, ranks, false);
  }
  for (size_t i = 0; i < entries; i++) put_family(&s->plan->content.entry[i], x.sum[i], t);
  free(x.sum);
  return t->failed ? mgrid_oom(err) : MGRID_OK;
}

/* ===================================================================== JSON */

/* Return for each family the most calls and the most bytes of any rank. The caller frees the list;
** NULL: no memory. */
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

static json_t *memory_json(const mgrid_step *s, const memory *m) {
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
  for (int i = 0; i < STEP_CALLS; i++)
    if (f->way[i]) json_object_set_new(ways, mgrid_step_rows[i].name, json_string(f->way[i]));
  json_object_set_new(to, "seconds", json_real(f->seconds));
  json_object_set_new(to, "levels", levels);
  json_object_set_new(to, "algorithms", ways);
}

/* Say what the seconds are based on. For published training runs (373 rows of 18 tables) the price
** from data sheets was 48 % too low in the median; the runs took 1.3 to 3 times as long. */
static json_t *estimate_json(const step_price *p, bool fitted) {
  const char *source = p->by.costs.source;
  if (p->by.costs.error > 0)
    return mgrid_json_pack("{sssf}", "from", *source ? source : "measured steps", "error",
                           p->by.costs.error);
  if (*source || fitted)
    return mgrid_json_pack("{ss}", "from", *source ? source : "measured calls");
  return mgrid_json_pack("{sss[ff]}", "from", "data sheets", "longer", 1.3, 3.0);
}

/* Add the memory of a GPU, and the bytes that a rank holds apart from the step. */
static void put_capacity(const step_costs *k, json_t *to) {
  if (k->capacity > 0) json_object_set_new(to, "capacity", json_real(k->capacity));
  if (k->beside > 0) json_object_set_new(to, "beside", json_real(k->beside));
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
  put_capacity(&p->by.costs, json_object_get(all, "memory"));
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
  memory most_held;
  step_sum *most = report_most_of(s);
  json_t *all = NULL;
  if (!most) return mgrid_null_oom(err);
  if (!most_memory(s, &most_held, err)) {
    all = mgrid_json_pack("{soso}", "families", report_families_json(s, most), "memory",
                          memory_json(s, &most_held));
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
