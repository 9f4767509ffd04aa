/* SPDX-License-Identifier: MIT
**
** traffic.c - what families send, and what of it leaves domains. A ring of n members, as NCCL makes for large messages,
** carries 2 (n - 1) / n of the bytes of an all_reduce over each of its edges, and (n - 1) / n of those of an all_gather or a
** reduce_scatter, whose bytes are those of the whole buffer (Patarasuk and Yuan, Bandwidth optimal all-reduce algorithms,
** 2009). In an all_to_all every pair exchanges 1 / n of them in both directions.
*/
#include "machine/traffic.h"

#include "plan/json.h"
#include "plan/plan.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

const mgrid_collective mgrid_collectives[] = {
  { "all_reduce", MGRID_RING, 2 },  { "all_gather", MGRID_RING, 1 }, { "reduce_scatter", MGRID_RING, 1 },
  { "all_to_all", MGRID_PAIRS, 1 }, { "broadcast", MGRID_CHAIN, 1 }, { "reduce", MGRID_CHAIN, 1 },
  { "send", MGRID_CHAIN, 1 },       { NULL, MGRID_RING, 0 },
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
  double      of;
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

static void skip(const char **at) { *at += strspn(*at, " \t\r\n"); }

static mgrid_status refuse(const char *family, const char *text, const char *expected, const char *at,
                           mgrid_error *err) {
  return mgrid_fail(err, MGRID_BAD_VALUE, "traffic of %s, '%.60s': %s expected, not '%.20s'", family, text, expected,
                    at);
}

/* Read "2 GiB all_reduce x 96" at *at. */
static mgrid_status read_flow(const char *text, const char **at, mgrid_flow *f, mgrid_error *err) {
  char *end;
  skip(at);
  f->bytes = **at >= '0' && **at <= '9' ? mgrid_read_double(*at, &end) : -1;
  if (!(f->bytes >= 0)) return refuse(f->family, text, "a number of bytes, as in '2 GiB all_reduce x 96',", *at, err);
  *at = end;
  skip(at);
  size_t len = strspn(*at, "abcdefghijklmnopqrstuvwxyzBGKMT"), i = 0;
  while (units[i].name && (strlen(units[i].name) != len || memcmp(units[i].name, *at, len) != 0)) i++;
  if (!units[i].name) return refuse(f->family, text, "a unit behind the number, as GiB or GB,", *at, err);
  f->bytes *= units[i].of;
  if (!(f->bytes < 1e18)) return refuse(f->family, text, "fewer than 1e18 bytes", *at, err);
  *at += len;
  skip(at);
  len = strspn(*at, "abcdefghijklmnopqrstuvwxyz_");
  for (f->by = mgrid_collectives; f->by->name; f->by++)
    if (strlen(f->by->name) == len && memcmp(f->by->name, *at, len) == 0) break;
  if (!f->by->name) {
    const char *known[16];
    char        word[40], tail[256];
    size_t      n = 0;
    for (const mgrid_collective *c = mgrid_collectives; c->name; c++) known[n++] = c->name;
    snprintf(word, sizeof word, "%.*s", (int)len, *at);
    mgrid_suggest(tail, sizeof tail, word, known, n);
    return mgrid_fail(err, MGRID_UNKNOWN_NAME, "traffic of %s, '%.60s': unknown collective '%s'%s", f->family, text,
                      word, tail);
  }
  *at += len;
  skip(at);
  f->calls = 1;
  if (**at != 'x') return MGRID_OK;
  ++*at;
  skip(at);
  f->calls = **at >= '0' && **at <= '9' ? strtoll(*at, &end, 10) : 0;
  if (f->calls < 1 || f->calls > MGRID_WORLD_MAX)
    return refuse(f->family, text, "how many times, 1 or more,", *at, err);
  *at = end;
  skip(at);
  return MGRID_OK;
}

/* Read flows up to the end of the text, or a semicolon. */
static mgrid_status add(mgrid_traffic *t, const char *family, const char *text, const char **at, mgrid_error *err) {
  do {
    mgrid_flow one = { .calls = 1 };
    snprintf(one.family, sizeof one.family, "%s", family);
    if (!MGRID_GROW(t->flow, t->n, 1)) return mgrid_oom(err);
    mgrid_status s = read_flow(text, at, &one, err);
    if (s) return s;
    t->flow[t->n++] = one;
  } while (**at == '+' && ++*at);
  return **at && **at != ';' ? refuse(family, text, "'x', '+' or the end", *at, err) : MGRID_OK;
}

mgrid_status mgrid_traffic_add(mgrid_traffic *t, const char *family, const char *text, mgrid_error *err) {
  const char  *at = text;
  mgrid_status s = add(t, family, text, &at, err);
  return !s && *at ? refuse(family, text, "the end", at, err) : s;
}

mgrid_status mgrid_traffic_parse(mgrid_traffic *t, const char *text, mgrid_error *err) {
  for (const char *at = text;;) {
    char family[MGRID_NAME_MAX + 1];
    int  n = 0;
    skip(&at);
    if (!*at) return MGRID_OK;
    if (sscanf(at, "%31[A-Za-z0-9_] = %n", family, &n) != 1 || n == 0)
      return mgrid_fail(err, MGRID_BAD_VALUE,
                        "traffic is written as 'tp = 2 GiB all_reduce x 96; dp = ...', not '%.40s'", at);
    at += n;
    mgrid_status s = add(t, family, at, &at, err);
    if (s) return s;
    if (*at == ';') at++;
  }
}

/* ---------------------------------------------------------------------- item */

static int64_t world_of(const void *x) { return ((const mgrid_traffic *)x)->world; }

static void *ref(const void *x) {
  mgrid_traffic *own = (mgrid_traffic *)(uintptr_t)x;
  atomic_fetch_add_explicit(&own->refs, 1, memory_order_relaxed);
  return own;
}

static void   free_item(void *x) { mgrid_traffic_free(x); }
static size_t held(const void *x) { return sizeof(mgrid_traffic) + ((const mgrid_traffic *)x)->n * sizeof(mgrid_flow); }

static void text(const void *x, mgrid_text *out) {
  const mgrid_traffic *t = x;
  for (size_t i = 0; i < t->n; i++)
    mgrid_text_add(out, "%s%s = %.17g B %s x %" PRId64, i ? "; " : "", t->flow[i].family, t->flow[i].bytes,
                   t->flow[i].by->name, t->flow[i].calls);
}

static void json(const void *x, int64_t rank, mgrid_json *w) {
  mgrid_text t = { 0 };
  (void)rank;
  text(x, &t);
  mgrid_json_value(w, t.failed ? NULL : json_string(mgrid_text_chars(&t)));
  mgrid_text_free(&t);
}

const mgrid_item_kind mgrid_traffic_kind = {
  .name = "machine", /* of its lines in the text of a plan: item_reader.c */
  .names = "traffic",
  .world = world_of,
  .ref = ref,
  .free = free_item,
  .held = held,
  .text = text,
  .json = json,
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

/* The bytes of an edge between two domains, into both. */
static double cross(const int32_t *domain, int32_t a, int32_t b, double bytes, double *out) {
  if (domain[a] == domain[b]) return 0;
  if (out) out[domain[a]] += bytes, out[domain[b]] += bytes;
  return bytes;
}

double mgrid_flow_leaving(const mgrid_flow *flow, const mgrid_family *f, const int32_t *domain, int64_t ndomains,
                          double *out, mgrid_error *err) {
  int32_t *group = malloc((size_t)(f->max_size + 1) * sizeof *group);
  int64_t *here = calloc((size_t)ndomains + 1, sizeof *here); /* members of a group in each domain */
  double   sum = 0;
  if (!group || !here) {
    free(group);
    free(here);
    mgrid_oom(err);
    return -1;
  }
  for (int64_t g = 0; g < f->count; g++) {
    int64_t n = mgrid_family_size(f, g);
    double  bytes = mgrid_flow_edge(flow, n);
    mgrid_family_group(f, g, group);
    if (flow->by->pattern != MGRID_PAIRS) {
      for (int64_t p = 0; p + 1 < n; p++) sum += cross(domain, group[p], group[p + 1], bytes, out);
      if (flow->by->pattern == MGRID_RING && n > 2) sum += cross(domain, group[n - 1], group[0], bytes, out);
      continue;
    }
    for (int64_t p = 0; p < n; p++) here[domain[group[p]]]++;
    for (int64_t p = 0; p < n; p++) { /* each domain once: then its count is 0 */
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
