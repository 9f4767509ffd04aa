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

typedef struct memory {
  int64_t peak;   /* bytes */
  uint32_t at;    /* a word: the last mark before the peak; 0: none */
  int64_t rank;   /* the lowest rank with this peak; -1: none holds memory */
  size_t n;       /* names of allocations */
  uint32_t *name; /* [n]: words */
  int64_t *bytes; /* [n]: at the peak */
} memory;

/* What entries make of the x bytes of a name: max(least, x + change) bytes. */
typedef struct effect {
  int64_t least, change;
} effect;

typedef struct held {
  const step_program *p;
  mgrid_budget *budget;
  uint32_t *of;  /* [words]: the index of each name */
  int64_t *last; /* [n]: bytes of the last allocation of each name */
  /* [n]: [0] the effect of all entries so far, so that `least` is what the rank holds; [k] that of
  ** the present iteration of the k-th open loop */
  effect *effect[STEP_DEPTH_MAX + 1];
  int depth; /* open loops that have an effect */
  int64_t now;
  uint32_t at;  /* a word: the last mark */
  bool highest; /* nothing was freed since the peak, so the bytes of each name are not noted yet */
  memory most;
  bool failed;
} held;

static void memory_free(memory *m) {
  free(m->name);
  free(m->bytes);
  *m = (memory){ .rank = -1 };
}

static int64_t sums_shift(int64_t a, int64_t by) {
  if (a > 0 && by > 0) return sums_add(a, by);
  return a < 0 && by < 0 && a < -INT64_MAX - by ? -INT64_MAX : a + by;
}
static int64_t multiple(int64_t a, int64_t by) { return a < 0 ? -times(-a, by) : times(a, by); }
static int64_t larger(int64_t a, int64_t b) { return a > b ? a : b; }

static void note_highest(held *m) {
  for (size_t i = 0; i < m->most.n && m->highest; i++) m->most.bytes[i] = m->effect[0][i].least;
  m->highest = false;
}

/* Apply the effect on name i to the bytes that the rank holds, and to the open loops. */
static void sums_change(held *m, size_t i, effect by) {
  int64_t had = m->effect[0][i].least;
  for (int k = 0; k <= m->depth; k++) {
    effect *e = &m->effect[k][i];
    e->least = larger(by.least, sums_shift(e->least, by.change));
    e->change = sums_shift(e->change, by.change);
  }
  m->now = sums_shift(m->now, m->effect[0][i].least - had);
}

static void go_through(held *m, uint32_t from, uint32_t end);

/* Return whether the next iteration of a loop has the same effect as this one, and lets each name
** grow by as much. was: before this iteration the bytes held, and those of the last allocation. */
static bool is_steady(const held *m, const effect *own, const effect *was) {
  for (size_t i = 0; i < m->most.n; i++)
    if (m->last[i] != was[i].change
        || (own[i].change > 0 && m->effect[0][i].least - was[i].least != own[i].change))
      return false;
  return true;
}

/* All iterations have one effect, except perhaps the first: a free gives back the bytes of the
** latest alloc. If it makes no name grow, no later iteration holds more. Else each moment of an
** iteration holds the most in the first of them or in the last. */
static void go_around(held *m, uint32_t loop) {
  const step_node *n = &m->p->node[loop];
  effect *own = calloc(2 * m->most.n + 1, sizeof *own), *was = own ? own + m->most.n : NULL;
  int64_t left = n->number;
  bool steady = false, grows = false;

  m->failed |= !own;
  for (size_t i = 0; i < m->most.n && !m->failed; i++)
    was[i] = (effect){ m->effect[0][i].least, m->last[i] };
  for (int round = 0; round < 2 && left > 0 && !steady && !m->failed; round++, left--) {
    memset(own, 0, m->most.n * sizeof *own);
    m->effect[++m->depth] = own;
    go_through(m, loop + 1, n->end);
    m->depth--;
    steady = is_steady(m, own, was);
  }
  for (size_t i = 0; i < m->most.n && !m->failed; i++) grows |= own[i].change > 0;

  int64_t more = left - grows;
  if (more > 0 && !m->failed) note_highest(m);
  for (size_t i = 0; i < m->most.n && more > 0 && !m->failed && mgrid_spend(m->budget, 1); i++) {
    int64_t by = own[i].change > 0 ? multiple(own[i].change, more - 1) : 0;
    sums_change(m, i, (effect){ sums_add(own[i].least, by), multiple(own[i].change, more) });
  }
  if (grows && left > 0) go_through(m, loop + 1, n->end);
  free(own);
}

static void go_through(held *m, uint32_t from, uint32_t end) {
  for (uint32_t i = from; i < end && !m->failed && mgrid_spend(m->budget, 1);
       i = m->p->node[i].end) {
    const step_node *n = &m->p->node[i];
    size_t k = m->of[n->name];
    if (n->kind == STEP_MARK) {
      m->at = n->name;
    } else if (n->kind == STEP_ALLOC) {
      m->last[k] = n->bytes;
      sums_change(m, k, (effect){ n->bytes, n->bytes });
      if (m->now > m->most.peak) m->most.peak = m->now, m->most.at = m->at, m->highest = true;
    } else if (n->kind == STEP_FREE) {
      note_highest(m);
      sums_change(m, k, (effect){ 0, -m->last[k] });
    } else if (n->kind == STEP_LOOP) {
      go_around(m, i);
    }
  }
}

/* Give each name of an allocation an index. */
static void find_names(held *m) {
  memory *x = &m->most;
  for (size_t i = 0; i < m->p->n && mgrid_spend(m->budget, 1); i++) {
    const step_node *n = &m->p->node[i];
    if (n->kind != STEP_ALLOC || (m->of[n->name] < x->n && x->name[m->of[n->name]] == n->name))
      continue;
    if (!MGRID_GROW(x->name, x->n, 1)) m->failed = true;
    if (m->failed) return;
    m->of[n->name] = (uint32_t)x->n;
    x->name[x->n++] = n->name;
  }
}

/* Find the largest memory of the ranks with a program. `of`: [words]. */
static bool program_memory(const step_program *p, mgrid_budget *budget, uint32_t *of, memory *out) {
  held m = { .p = p, .budget = budget, .of = of };
  find_names(&m);
  m.last = calloc(m.most.n + 1, sizeof *m.last);
  m.effect[0] = calloc(m.most.n + 1, sizeof *m.effect[0]);
  m.most.bytes = calloc(m.most.n + 1, sizeof *m.most.bytes);
  m.failed |= !m.last || !m.effect[0] || !m.most.bytes;
  if (!m.failed && m.most.n) go_through(&m, 0, (uint32_t)p->n);
  if (!m.failed) note_highest(&m);
  free(m.last);
  free(m.effect[0]);
  *out = m.most;
  return !m.failed;
}

/* Find the largest memory of all ranks. */
static mgrid_status most_memory(const mgrid_step *s, memory *out, mgrid_error *err) {
  step_budget b;
  bool *seen = calloc(s->nprograms + 1, sizeof *seen), done = seen != NULL;
  uint32_t *of = calloc(s->nwords + 1, sizeof *of);
  *out = (memory){ .rank = -1 };
  done = done && of;
  mgrid_step_budget_begin(&b, &s->limits, "the memory of the step");

  /* the first class of a program contains its lowest rank */
  for (size_t i = 0; i < s->nclasses && done; i++) {
    memory one;
    if (seen[s->class[i].program]) continue;
    seen[s->class[i].program] = true;
    done = program_memory(&s->program[s->class[i].program], &b.work, of, &one);
    one.rank = s->class[i].first;
    memory less = one.peak > out->peak ? *out : one;
    if (one.peak > out->peak) *out = one;
    memory_free(&less);
  }

  free(seen);
  free(of);
  if (done && !b.work.exhausted) return MGRID_OK;
  memory_free(out);
  return done ? mgrid_step_budget_spent(&b, err) : mgrid_oom(err);
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
    memory_free(&most_held);
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
