/* SPDX-License-Identifier: MIT
**
** traffic.c - the cost of a plan on a machine: the bytes that its families send, how many of them
** go from domain to domain, and a lower bound of this number. `moongrid place` prints the cost.
*/
#include "machine/traffic.h"
#include "machine/count.h"
#include "plan/json.h"
#include "plan/plan.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ============================================================== what is sent */

/* NCCL uses rings for large messages. In a ring of n members, each edge carries 2 (n - 1) / n of
** the bytes of an all_reduce, and (n - 1) / n of the bytes of an all_gather or a reduce_scatter
** (Patarasuk and Yuan, Bandwidth optimal all-reduce algorithms, 2009). The bytes are those of the
** whole buffer. In an all_to_all every member sends 1 / n of the bytes to each other member. */

const mgrid_collective mgrid_collectives[] = {
  { "all_reduce", MGRID_RING, 2 },     { "all_gather", MGRID_RING, 1 },
  { "reduce_scatter", MGRID_RING, 1 }, { "all_to_all", MGRID_PAIRS, 1 },
  { "broadcast", MGRID_CHAIN, 1 },     { "reduce", MGRID_CHAIN, 1 },
  { "send", MGRID_CHAIN, 1 },          { NULL, MGRID_RING, 0 },
};

mgrid_traffic *mgrid_traffic_new(int64_t world, mgrid_error *err) {
  mgrid_traffic *t = calloc(1, sizeof *t);
  if (!t) return mgrid_null_oom(err);
  atomic_init(&t->refs, 1);
  t->world = world;
  return t;
}

void mgrid_traffic_free(mgrid_traffic *t) {
  if (!t || atomic_fetch_sub_explicit(&t->refs, 1, memory_order_acq_rel) > 1) return;
  free(t->flow);
  free(t);
}

/* ---------------------------------------------------------------------- text */

static const struct {
  const char *name;
  double of;
} units[] = { { "GiB", 1073741824 },
              { "MiB", 1048576 },
              { "KiB", 1024 },
              { "TiB", 1099511627776 },
              { "GB", 1e9 },
              { "MB", 1e6 },
              { "kB", 1e3 },
              { "TB", 1e12 },
              { "B", 1 },
              { NULL, 0 } };

static void traffic_skip(const char **at) { *at += strspn(*at, " \t\r\n"); }

static mgrid_status traffic_refuse(const char *family, const char *text, const char *expected,
                                   const char *at, mgrid_error *err) {
  return mgrid_fail(err, MGRID_BAD_VALUE, "traffic of %s, '%.60s': %s expected, not '%.20s'",
                    family, text, expected, at);
}

/* Read one flow, "2 GiB all_reduce x 96", at *at. */
static mgrid_status read_flow(const char *text, const char **at, mgrid_flow *f, mgrid_error *err) {
  char *end;

  traffic_skip(at);
  f->bytes = **at >= '0' && **at <= '9' ? mgrid_read_double(*at, &end) : -1;
  if (!(f->bytes >= 0))
    return traffic_refuse(f->family, text, "a number of bytes, as in '2 GiB all_reduce x 96',", *at,
                          err);
  *at = end;
  traffic_skip(at);
  size_t len = strspn(*at, "abcdefghijklmnopqrstuvwxyzBGKMT"), i = 0;
  while (units[i].name && (strlen(units[i].name) != len || memcmp(units[i].name, *at, len) != 0))
    i++;
  if (!units[i].name)
    return traffic_refuse(f->family, text, "a unit after the number, as GiB or GB,", *at, err);
  f->bytes *= units[i].of;
  if (!(f->bytes < 1e18)) return traffic_refuse(f->family, text, "fewer than 1e18 bytes", *at, err);
  *at += len;
  traffic_skip(at);
  len = strspn(*at, "abcdefghijklmnopqrstuvwxyz_");
  for (f->by = mgrid_collectives; f->by->name; f->by++)
    if (strlen(f->by->name) == len && memcmp(f->by->name, *at, len) == 0) break;
  if (!f->by->name) {
    const char *known[16];
    char word[40], tail[256];
    size_t n = 0;
    for (const mgrid_collective *c = mgrid_collectives; c->name; c++) known[n++] = c->name;
    snprintf(word, sizeof word, "%.*s", (int)len, *at);
    mgrid_suggest(tail, sizeof tail, word, known, n);
    return mgrid_fail(err, MGRID_UNKNOWN_NAME, "traffic of %s, '%.60s': unknown collective '%s'%s",
                      f->family, text, word, tail);
  }
  *at += len;
  traffic_skip(at);
  f->calls = 1;
  if (**at != 'x') return MGRID_OK;
  ++*at;
  traffic_skip(at);
  f->calls = **at >= '0' && **at <= '9' ? strtoll(*at, &end, 10) : 0;
  if (f->calls < 1 || f->calls > MGRID_WORLD_MAX)
    return traffic_refuse(f->family, text, "how many times, 1 or more,", *at, err);
  *at = end;
  traffic_skip(at);
  return MGRID_OK;
}

/* Read flows up to a semicolon or the end of the text. */
static mgrid_status traffic_add(mgrid_traffic *t, const char *family, const char *text,
                                const char **at, mgrid_error *err) {
  do {
    mgrid_flow one = { .calls = 1 };
    snprintf(one.family, sizeof one.family, "%s", family);
    if (!MGRID_GROW(t->flow, t->n, 1)) return mgrid_oom(err);
    mgrid_status s = read_flow(text, at, &one, err);
    if (s) return s;
    t->flow[t->n++] = one;
  } while (**at == '+' && ++*at);
  return **at && **at != ';' ? traffic_refuse(family, text, "'x', '+' or the end", *at, err)
                             : MGRID_OK;
}

mgrid_status mgrid_traffic_add(mgrid_traffic *t, const char *family, const char *text,
                               mgrid_error *err) {
  const char *at = text;
  mgrid_status s = traffic_add(t, family, text, &at, err);
  return !s && *at ? traffic_refuse(family, text, "the end", at, err) : s;
}

mgrid_status mgrid_traffic_parse(mgrid_traffic *t, const char *text, mgrid_error *err) {
  for (const char *at = text;;) {
    char family[MGRID_NAME_MAX + 1];
    int n = 0;
    traffic_skip(&at);
    if (!*at) return MGRID_OK;
    if (sscanf(at, "%31[A-Za-z0-9_] = %n", family, &n) != 1 || n == 0)
      return mgrid_fail(err, MGRID_BAD_VALUE,
                        "traffic is written as 'tp = 2 GiB all_reduce x 96; dp = ...', not '%.40s'",
                        at);
    at += n;
    mgrid_status s = traffic_add(t, family, at, &at, err);
    if (s) return s;
    if (*at == ';') at++;
  }
}

/* ---------------------------------------------------------------------- item */

static int64_t traffic_world_of(const void *x) { return ((const mgrid_traffic *)x)->world; }

static void *traffic_ref(const void *x) {
  mgrid_traffic *own = (mgrid_traffic *)(uintptr_t)x;
  atomic_fetch_add_explicit(&own->refs, 1, memory_order_relaxed);
  return own;
}

static void traffic_free_item(void *x) { mgrid_traffic_free(x); }
static size_t traffic_held(const void *x) {
  return sizeof(mgrid_traffic) + ((const mgrid_traffic *)x)->n * sizeof(mgrid_flow);
}

static void traffic_text(const void *x, mgrid_text *out) {
  const mgrid_traffic *t = x;
  for (size_t i = 0; i < t->n; i++)
    mgrid_text_add(out, "%s%s = %.17g B %s x %" PRId64, i ? "; " : "", t->flow[i].family,
                   t->flow[i].bytes, t->flow[i].by->name, t->flow[i].calls);
}

static void traffic_json(const void *x, int64_t rank, mgrid_json *w) {
  mgrid_text t = { 0 };
  (void)rank;
  traffic_text(x, &t);
  mgrid_json_value(w, t.failed ? NULL : json_string(mgrid_text_chars(&t)));
  mgrid_text_free(&t);
}

const mgrid_item_kind mgrid_traffic_kind = {
  .name = "machine", /* its lines in the text of a plan begin with this: machine_item.c */
  .names = "traffic",
  .world = traffic_world_of,
  .ref = traffic_ref,
  .free = traffic_free_item,
  .held = traffic_held,
  .text = traffic_text,
  .json = traffic_json,
};

const mgrid_traffic *mgrid_plan_traffic(const mgrid_plan *p) {
  const mgrid_item *item = mgrid_content_nth(&p->content, &mgrid_traffic_kind, 0);
  return item ? item->x : NULL;
}

/* --------------------------------------------------------------------- bytes */

double mgrid_flow_edge(const mgrid_flow *f, int64_t n) {
  if (n < 2) return 0;
  double all = f->bytes * (double)f->calls;
  return f->by->pattern == MGRID_RING    ? f->by->times * (double)(n - 1) / (double)n * all
         : f->by->pattern == MGRID_CHAIN ? all
                                         : all / (double)n;
}

/* If an edge joins two domains, add its bytes to each of them. Return the bytes that cross. */
static double cross(const int32_t *domain, int32_t a, int32_t b, double bytes, double *out) {
  if (domain[a] == domain[b]) return 0;
  if (out) out[domain[a]] += bytes, out[domain[b]] += bytes;
  return bytes;
}

double mgrid_flow_leaving(const mgrid_flow *flow, const mgrid_family *f, const int32_t *domain,
                          int64_t ndomains, double *out, mgrid_error *err) {
  int32_t *group = malloc((size_t)(f->max_size + 1) * sizeof *group);
  /* members of the group in each domain */
  int64_t *here = calloc((size_t)ndomains + 1, sizeof *here);
  double sum = 0;

  if (!group || !here) {
    free(group);
    free(here);
    mgrid_oom(err);
    return -1;
  }
  for (int64_t g = 0; g < f->count; g++) {
    int64_t n = mgrid_family_size(f, g);
    double bytes = mgrid_flow_edge(flow, n);
    mgrid_family_group(f, g, group);
    if (flow->by->pattern != MGRID_PAIRS) {
      for (int64_t p = 0; p + 1 < n; p++) sum += cross(domain, group[p], group[p + 1], bytes, out);
      if (flow->by->pattern == MGRID_RING && n > 2)
        sum += cross(domain, group[n - 1], group[0], bytes, out);
      continue;
    }
    for (int64_t p = 0; p < n; p++) here[domain[group[p]]]++;
    for (int64_t p = 0; p < n; p++) { /* a count is negated after use, so each domain counts once */
      int32_t d = domain[group[p]];
      if (here[d] <= 0) continue;
      double leaving = (double)here[d] * (double)(n - here[d]) * bytes;
      here[d] = -here[d];
      sum += leaving;
      if (out) out[d] += leaving;
    }
    for (int64_t p = 0; p < n; p++) here[domain[group[p]]] = 0;
  }
  free(group);
  free(here);
  return sum;
}

/* ======================================================== the cost of a plan */

/* The lower bound of the bytes, for any order of the ranks. A group of n members needs at least
** ceil(n / C) domains of C places. A ring enters each of these domains, so as many of its edges
** lead to another domain (only one edge if the group has two members). A chain needs one such edge
** fewer. The fewest pairs of members are in different domains if all domains but the last are
** full. */

typedef struct costing {
  const mgrid_machine_model *m;
  const mgrid_plan *p;
  const mgrid_traffic *traffic;
  size_t level;
  int32_t *domain; /* of each rank; NULL: not computed yet */
  int64_t domains;
  double *leaving; /* bytes that leave each domain, to find the busiest; NULL: not needed */
} costing;

static mgrid_status need_domains(costing *c, mgrid_error *err) {
  int64_t world = mgrid_plan_world(c->p);
  if (c->domain) return MGRID_OK;
  if (!(c->domain = malloc((size_t)world * sizeof *c->domain))) return mgrid_oom(err);
  c->domains = mgrid_domains_of(c->m, c->level, world, c->domain);
  return MGRID_OK;
}

static double traffic_least(const mgrid_flow *flow, const mgrid_family *f, int64_t most) {
  double sum = 0;
  for (int64_t g = 0; g < (f->size > 0 ? 1 : f->count); g++) {
    int64_t n = mgrid_family_size(f, g), domains = most ? (n - 1) / most + 1 : 1,
            whole = most ? n / most : 0;
    double bytes = mgrid_flow_edge(flow, n);
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

static mgrid_status traffic_add_flow(costing *c, const mgrid_flow *flow, const mgrid_family *f,
                                     mgrid_cost *out, mgrid_error *err) {
  const mgrid_tier *t = &c->m->tier[c->level];
  out->bound[c->level] += traffic_least(flow, f, t->most);
  if (flow->by->pattern == MGRID_RING && f->size > 0 && !c->leaving) {
    mgrid_machine_counts n = MGRID_MACHINE_COUNTS_INIT;
    mgrid_status s = mgrid_machine_count(c->m, f, t->name, &n, err);
    out->bytes[c->level] += (double)n.edges * mgrid_flow_edge(flow, f->size);
    return s;
  }
  mgrid_status s = need_domains(c, err);
  double sum = s ? -1 : mgrid_flow_leaving(flow, f, c->domain, c->domains, c->leaving, err);
  out->bytes[c->level] += sum;
  return sum < 0 ? MGRID_NO_MEMORY : MGRID_OK;
}

/* Add the flows of a family that the traffic lists; without traffic, add one all_reduce. */
static mgrid_status traffic_add_family(costing *c, size_t i, mgrid_cost *out, mgrid_error *err) {
  const mgrid_entry *e = &c->p->content.entry[i];
  const mgrid_flow usual = { .by = mgrid_collectives, .bytes = 1 << 30, .calls = 1 };
  mgrid_status s = MGRID_OK;
  if (!c->traffic)
    return c->p->shares[i] >= 0 || e->choice->none || e->family->max_size < 2
               ? MGRID_OK
               : traffic_add_flow(c, &usual, e->family, out, err);
  for (size_t k = 0; k < c->traffic->n && !s; k++)
    if (strcmp(c->traffic->flow[k].family, e->name) == 0)
      s = traffic_add_flow(c, &c->traffic->flow[k], e->family, out, err);
  return s;
}

/* Add the cost of one level. */
static mgrid_status traffic_add_level(costing *c, bool timed, mgrid_cost *out, mgrid_error *err) {
  double bandwidth = c->m->tier[c->level].link.bandwidth, most = 0;
  mgrid_status s = MGRID_OK;
  timed &= bandwidth > 0;
  if (timed) s = need_domains(c, err);
  if (timed && !s && !(c->leaving = calloc((size_t)c->domains + 1, sizeof *c->leaving)))
    s = mgrid_oom(err);
  for (size_t i = 0; i < c->p->content.nentries && !s; i++) s = traffic_add_family(c, i, out, err);
  for (int64_t d = 0; c->leaving && d < c->domains; d++)
    if (c->leaving[d] > most) most = c->leaving[d];
  if (timed) out->seconds += most / bandwidth;
  free(c->leaving);
  free(c->domain);
  return s;
}

mgrid_status mgrid_cost_of(const mgrid_machine_model *m, const mgrid_plan *p,
                           const mgrid_traffic *traffic, bool timed, mgrid_cost *out,
                           mgrid_error *err) {
  mgrid_status s = MGRID_OK;
  *out = (mgrid_cost){ .n = m->ntiers > 1 ? m->ntiers - 1 : 1 };
  for (size_t l = 0; l < out->n && !s; l++)
    s = traffic_add_level(&(costing){ .m = m, .p = p, .traffic = traffic, .level = l }, timed, out,
                          err);
  return s;
}
