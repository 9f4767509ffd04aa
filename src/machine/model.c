/* SPDX-License-Identifier: MIT
**
** model.c - functions that add levels to a machine, complete it, and find the domain of a place.
*/
#include "machine/model.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------------ owners */

mgrid_machine_model *mgrid_machine_alloc(mgrid_error *err) {
  mgrid_machine_model *m = calloc(1, sizeof *m);
  if (!m) return mgrid_null_oom(err);
  atomic_init(&m->refs, 1);
  return m;
}

mgrid_machine_model *mgrid_machine_ref(const mgrid_machine_model *m) {
  mgrid_machine_model *own = (mgrid_machine_model *)(uintptr_t)m;
  if (own) atomic_fetch_add_explicit(&own->refs, 1, memory_order_relaxed);
  return own;
}

void mgrid_machine_free(mgrid_machine_model *m) {
  if (!m || atomic_fetch_sub_explicit(&m->refs, 1, memory_order_acq_rel) > 1) return;
  for (size_t i = 0; i < m->ntiers; i++) {
    mgrid_tier *t = &m->tier[i];
    for (int64_t d = 0; t->names && d < t->domains; d++) free(t->names[d]);
    free(t->names);
    free(t->counts);
    free(t->starts);
  }
  free(m->at);
  free(m->notes);
  free(m->source);
  free(m);
}

/* ------------------------------------------------------------------ levels */

/* Check the name of a new level, or of new domains that cross levels. */
static mgrid_status model_check_name(const mgrid_machine_model *m, const char *name,
                                     mgrid_error *err) {
  if (!mgrid_is_name(name))
    return mgrid_fail(
        err, MGRID_BAD_VALUE,
        "'%.40s' is not a name of a level: letters, digits and _, at most %d, not a digit first",
        name, MGRID_NAME_MAX);
  for (size_t i = 0; i < m->ntiers + m->ncrossings; i++)
    if (strcmp(mgrid_level_name(m, i), name) == 0)
      return mgrid_fail(err, MGRID_DUPLICATE, "level '%s' is there twice", name);
  return MGRID_OK;
}

static mgrid_status model_too_many(mgrid_error *err) {
  return mgrid_fail(err, MGRID_OUT_OF_RANGE,
                    "a machine has at most %d levels, and as many that cross them",
                    MGRID_LEVELS_MAX);
}

mgrid_status mgrid_machine_add(mgrid_machine_model *m, const char *name, size_t n,
                               const int64_t *counts, mgrid_link link, mgrid_error *err) {
  mgrid_status s = model_check_name(m, name, err);

  if (!s && m->ntiers == MGRID_LEVELS_MAX) s = model_too_many(err);
  const mgrid_tier *before = m->ntiers ? &m->tier[m->ntiers - 1] : NULL;
  mgrid_tier t = { .ncounts = (int64_t)n, .link = link };
  bool same = true, open = !before && counts[0] == 0;
  for (size_t i = 0; i < n && !s; i++) {
    same &= counts[i] == counts[0];
    if (counts[i] < 1 && !open)
      s = mgrid_fail(err, MGRID_OUT_OF_RANGE,
                     "level '%s' has 1 or more domains in each of the level before, not %" PRId64,
                     name, counts[i]);
  }
  int64_t parents = before ? before->domains : 1;
  if (!s && n > 1 && (int64_t)n != parents)
    s = mgrid_fail(err, MGRID_REFUSED,
                   before ? "level '%s' has %zu numbers, and there %s %" PRId64
                            " domain%s of '%s' before it"
                          : "level '%s' has %zu numbers; the first level has one",
                   name, n, parents == 1 ? "is" : "are", parents, mgrid_s_of(parents),
                   before ? before->name : "");
  if (s) return s;
  if (same) t.ncounts = 1;
  int64_t all = t.ncounts;
  for (size_t i = 0; i < m->ntiers; i++) all += m->tier[i].ncounts;
  if (all > MGRID_COUNTS_MAX)
    return mgrid_fail(err, MGRID_LIMIT,
                      "the levels up to '%s' have %" PRId64
                      " numbers of domains; a machine has at most %d",
                      name, all, MGRID_COUNTS_MAX);
  for (int64_t i = 0; i < (same ? 1 : (int64_t)n); i++)
    if (__builtin_add_overflow(t.domains, counts[i], &t.domains)) t.domains = INT64_MAX;
  if (same && __builtin_mul_overflow(counts[0], parents, &t.domains)) t.domains = INT64_MAX;
  if (t.domains > MGRID_WORLD_MAX)
    return mgrid_fail(err, MGRID_OVERFLOW, "level '%s' has more than %" PRId64 " domains", name,
                      MGRID_WORLD_MAX);
  t.counts = malloc((size_t)t.ncounts * sizeof *t.counts);
  if (!t.counts) return mgrid_oom(err);
  memcpy(t.counts, counts, (size_t)t.ncounts * sizeof *counts);
  snprintf(t.name, sizeof t.name, "%s", name);
  m->tier[m->ntiers++] = t;
  return MGRID_OK;
}

mgrid_status mgrid_machine_number(mgrid_machine_model *m, int64_t n, mgrid_link link,
                                  mgrid_error *err) {
  int64_t domains = n;

  m->tier[0].counts[0] = n;
  if (link.bandwidth > 0) m->tier[0].link = link;
  for (size_t i = 0; i < m->ntiers; i++) {
    mgrid_tier *t = &m->tier[i];
    if (i && __builtin_mul_overflow(domains, t->counts[0], &domains)) domains = INT64_MAX;
    if (domains > MGRID_WORLD_MAX)
      return mgrid_fail(err, MGRID_OVERFLOW, "level '%s' has more than %" PRId64 " domains",
                        t->name, MGRID_WORLD_MAX);
    t->domains = domains;
  }
  return MGRID_OK;
}

/* Return how many domains of the next level are in a domain. */
static int64_t children(const mgrid_tier *next, int64_t domain) {
  return next->counts[next->ncounts > 1 ? domain : 0];
}

/* Compute the bounds of a level from the bounds of the next level. If all domains are equal, store
** only `each`. */
static mgrid_status model_bound(mgrid_tier *t, const mgrid_tier *next, mgrid_error *err) {
  if (next->ncounts == 1 && next->each) {
    if (__builtin_mul_overflow(next->each, next->counts[0], &t->each) || t->each > MGRID_WORLD_MAX)
      return mgrid_fail(err, MGRID_OVERFLOW, "a domain of '%s' has more than %" PRId64 " places",
                        t->name, MGRID_WORLD_MAX);
    t->most = t->each;
    return MGRID_OK;
  }

  int64_t *starts = malloc((size_t)(t->domains + 1) * sizeof *starts), at = 0;
  if (!starts) return mgrid_oom(err);

  bool same = true;
  for (int64_t d = 0; d < t->domains; d++) {
    starts[d] = mgrid_tier_start(next, at);
    at += children(next, d);
    int64_t n = mgrid_tier_start(next, at) - starts[d];
    if (n > t->most) t->most = n;
    same &= n == mgrid_tier_start(next, children(next, 0));
  }
  starts[t->domains] = mgrid_tier_start(next, at);

  if (same) t->each = t->most;
  if (same)
    free(starts);
  else
    t->starts = starts;
  return MGRID_OK;
}

static int64_t crossing_domains(const mgrid_machine_model *m, const mgrid_crossing *x) {
  return x->in < 0 ? x->width : x->width * m->tier[x->in].domains;
}

mgrid_status mgrid_machine_finish(mgrid_machine_model *m, mgrid_error *err) {
  if (m->ntiers == 0)
    return mgrid_fail(err, MGRID_BAD_VALUE, "a machine has one level or more, as in node:4 gpu:8");
  mgrid_tier *last = &m->tier[m->ntiers - 1];
  for (mgrid_tier *t = m->tier; t <= last; t++) { /* words may have changed a complete machine */
    free(t->starts);
    t->starts = NULL;
    t->each = t->most = 0;
  }
  last->each = last->most = 1;
  for (size_t i = m->ntiers - 1; i-- > 0;) {
    mgrid_status s = model_bound(&m->tier[i], &m->tier[i + 1], err);
    if (s) return s;
  }
  m->places = m->tier[0].domains ? last->domains : 0;
  for (size_t i = 0; i < m->ncrossings; i++)
    m->crossing[i].domains = crossing_domains(m, &m->crossing[i]);
  return MGRID_OK;
}

/* ------------------------------------------------------------- beside levels */

static int64_t tier_named(const mgrid_machine_model *m, const char *name) {
  for (size_t i = 0; i < m->ntiers; i++)
    if (strcmp(m->tier[i].name, name) == 0) return (int64_t)i;
  return -1;
}

static int64_t require_tier(const mgrid_machine_model *m, const char *name, mgrid_error *err) {
  const char *known[MGRID_LEVELS_MAX];
  char tail[512];
  int64_t i = tier_named(m, name);
  for (size_t k = 0; k < m->ntiers; k++) known[k] = m->tier[k].name;
  if (i >= 0) return i;
  mgrid_suggest(tail, sizeof tail, name, known, m->ntiers);
  mgrid_fail(err, MGRID_UNKNOWN_NAME, "unknown level '%.40s'%s", name, tail);
  return -1;
}

mgrid_status mgrid_machine_add_crossing(mgrid_machine_model *m, const char *name, const char *of,
                                        int64_t share, const char *in, mgrid_link link,
                                        mgrid_error *err) {
  mgrid_status s = model_check_name(m, name, err);
  mgrid_crossing x = { .share = share, .in = -1, .link = link };

  if (!s && m->ncrossings == MGRID_LEVELS_MAX) s = model_too_many(err);
  if (s) return s;
  int64_t tier = require_tier(m, of, err), around = in ? require_tier(m, in, err) : -1;
  if (tier < 0 || (in && around < 0)) return MGRID_UNKNOWN_NAME;
  const mgrid_tier *t = &m->tier[tier];
  if (around >= tier)
    return mgrid_fail(err, MGRID_REFUSED, "%s = %s in %s: '%s' is not a level before '%s'", name,
                      of, in, in, of);
  if (share < 1)
    return mgrid_fail(err, MGRID_OUT_OF_RANGE, "%s = %s / %" PRId64 " divides by 1 or more", name,
                      of, share);
  for (int64_t i = 0; i < t->ncounts; i++)
    if (t->counts[i] > x.width) x.width = t->counts[i];
  if (x.width == 0)
    return mgrid_fail(err, MGRID_REFUSED,
                      "%s = %s: '%s' has as many domains as the ranks need; give it a number", name,
                      of, of);
  x.width = (x.width - 1) / share + 1;
  x.of = (size_t)tier, x.in = (int)around;
  x.domains = crossing_domains(m, &x);
  snprintf(x.name, sizeof x.name, "%s", name);
  m->crossing[m->ncrossings++] = x;
  return MGRID_OK;
}

static int model_by_place(const void *a, const void *b) {
  return (*(const int32_t *)a > *(const int32_t *)b) - (*(const int32_t *)a < *(const int32_t *)b);
}

/* Refuse if two ranks run at one place. `high` is the highest place. If it is more than 256 times
** the number of ranks, sort the places; otherwise mark places in an array of bits. */
static mgrid_status check_apart(int64_t n, const int32_t *at, int64_t high, mgrid_error *err) {
  mgrid_status s = MGRID_OK;

  if (high / 256 > n) {
    int32_t *sorted = malloc((size_t)(n + 1) * sizeof *sorted);
    if (!sorted) return mgrid_oom(err);
    if (n) memcpy(sorted, at, (size_t)n * sizeof *sorted);
    qsort(sorted, (size_t)n, sizeof *sorted, model_by_place);
    for (int64_t r = 1; r < n && !s; r++)
      if (sorted[r] == sorted[r - 1])
        s = mgrid_fail(err, MGRID_DUPLICATE, "two ranks run at place %d", sorted[r]);
    free(sorted);
    return s;
  }
  uint8_t *seen = calloc((size_t)high / 8 + 1, 1);
  if (!seen) return mgrid_oom(err);
  for (int64_t r = 0; r < n && !s; r++) {
    uint8_t bit = (uint8_t)(1 << at[r] % 8);
    if (seen[at[r] / 8] & bit)
      s = mgrid_fail(err, MGRID_DUPLICATE, "two ranks run at place %d", at[r]);
    seen[at[r] / 8] |= bit;
  }
  free(seen);
  return s;
}

mgrid_status mgrid_machine_set_ranks(mgrid_machine_model *m, int64_t n, int32_t *at,
                                     mgrid_error *err) {
  int64_t most = m->places ? m->places : MGRID_WORLD_MAX, high = 0;
  bool plain = n == m->places;
  mgrid_status s = MGRID_OK;
  for (int64_t r = 0; r < n && !s; r++) {
    plain &= at[r] == r;
    if (at[r] > high) high = at[r];
    if (at[r] < 0 || at[r] >= most)
      s = mgrid_fail(err, MGRID_OUT_OF_RANGE,
                     "rank %" PRId64 " runs at place %d; places are 0 to %" PRId64, r, at[r],
                     most - 1);
  }
  if (!s) s = check_apart(n, at, high, err);
  free(m->at);
  m->at = s || plain ? NULL : at;
  m->nranks = m->at ? n : 0;
  if (!m->at) free(at);
  return s;
}

size_t mgrid_machine_held(const mgrid_machine_model *m) {
  size_t bytes = sizeof *m + (size_t)m->nranks * sizeof *m->at;
  for (size_t i = 0; i < m->ntiers; i++)
    bytes += (size_t)(m->tier[i].ncounts + (m->tier[i].starts ? m->tier[i].domains : 0))
             * sizeof(int64_t);
  return bytes;
}

mgrid_status mgrid_machine_name_domain(mgrid_machine_model *m, size_t tier, int64_t domain,
                                       const char *name, mgrid_error *err) {
  char what[MGRID_NAME_MAX + 16];
  mgrid_tier *t = &m->tier[tier];
  snprintf(what, sizeof what, "the name of a %s", t->name);
  if (mgrid_check_line(what, name, strlen(name), err)) return MGRID_BAD_VALUE;
  if (!t->names && !(t->names = calloc((size_t)t->domains, sizeof *t->names)))
    return mgrid_oom(err);
  free(t->names[domain]);
  t->names[domain] = mgrid_strdup(name);
  return t->names[domain] ? MGRID_OK : mgrid_oom(err);
}

static void *copy_of(const void *from, size_t bytes, bool *failed) {
  void *to = from ? malloc(bytes) : NULL;
  if (to) memcpy(to, from, bytes);
  *failed |= from && !to;
  return to;
}

mgrid_machine_model *mgrid_machine_copy(const mgrid_machine_model *m, mgrid_error *err) {
  mgrid_machine_model *own = mgrid_machine_alloc(err);
  bool failed = false;

  if (!own) return NULL;
  *own = *m;
  atomic_init(&own->refs, 1);
  own->at = copy_of(m->at, (size_t)m->nranks * sizeof *m->at, &failed);
  own->notes = copy_of(m->notes, m->notes ? strlen(m->notes) + 1 : 0, &failed);
  own->source = copy_of(m->source, m->source ? strlen(m->source) + 1 : 0, &failed);
  for (size_t i = 0; i < m->ntiers; i++) {
    const mgrid_tier *t = &m->tier[i];
    mgrid_tier *to = &own->tier[i];
    to->counts = copy_of(t->counts, (size_t)t->ncounts * sizeof *t->counts, &failed);
    to->starts = copy_of(t->starts, (size_t)(t->domains + 1) * sizeof *t->starts, &failed);
    to->names = t->names ? calloc((size_t)t->domains, sizeof *t->names) : NULL;
    failed |= t->names && !to->names;
    for (int64_t d = 0; to->names && d < t->domains; d++)
      to->names[d] = copy_of(t->names[d], t->names[d] ? strlen(t->names[d]) + 1 : 0, &failed);
  }
  if (!failed) return own;
  mgrid_machine_free(own);
  return mgrid_null_oom(err);
}

/* ---------------------------------------------------------------- questions */

int64_t mgrid_tier_domain(const mgrid_tier *t, int64_t place) {
  return t->starts ? mgrid_run_at(t->starts, t->domains, place) : place / t->each;
}

int64_t mgrid_tier_used(const mgrid_tier *t, int64_t world) {
  return t->starts ? mgrid_tier_domain(t, world - 1) + 1 : (world - 1) / t->each + 1;
}

static int64_t crossing_domain(const mgrid_machine_model *m, const mgrid_crossing *x,
                               int64_t place) {
  int64_t domain = mgrid_tier_domain(&m->tier[x->of], place), first = 0;
  if (x->of > 0) {
    const mgrid_tier *parent = &m->tier[x->of - 1];
    first = mgrid_tier_domain(&m->tier[x->of],
                              mgrid_tier_start(parent, mgrid_tier_domain(parent, place)));
  }
  int64_t around = x->in < 0 ? 0 : mgrid_tier_domain(&m->tier[x->in], place);
  return (domain - first) / x->share + around * x->width;
}

int64_t mgrid_place_domain(const mgrid_machine_model *m, size_t level, int64_t place) {
  return level < m->ntiers ? mgrid_tier_domain(&m->tier[level], place)
                           : crossing_domain(m, &m->crossing[level - m->ntiers], place);
}

const char *mgrid_level_name(const mgrid_machine_model *m, size_t level) {
  return level < m->ntiers ? m->tier[level].name : m->crossing[level - m->ntiers].name;
}

int64_t mgrid_machine_places(const mgrid_machine_model *m) { return m ? m->places : 0; }
size_t mgrid_machine_nlevels(const mgrid_machine_model *m) {
  return m ? m->ntiers + m->ncrossings : 0;
}

int64_t mgrid_machine_find(const mgrid_machine_model *m, const char *level) {
  for (size_t i = 0; m && level && i < m->ntiers + m->ncrossings; i++)
    if (strcmp(mgrid_level_name(m, i), level) == 0) return (int64_t)i;
  return -1;
}

int64_t mgrid_machine_require(const mgrid_machine_model *m, const char *level, mgrid_error *err) {
  const char *known[2 * MGRID_LEVELS_MAX];
  char tail[512];
  int64_t i = mgrid_machine_find(m, level);
  size_t n = mgrid_machine_nlevels(m);
  if (i >= 0 || mgrid_lacks(level, "the name of the level", err)) return i;
  for (size_t k = 0; k < n; k++) known[k] = mgrid_level_name(m, k);
  mgrid_suggest(tail, sizeof tail, level, known, n);
  mgrid_fail(err, MGRID_UNKNOWN_NAME, "unknown level of the machine '%.40s'%s", level, tail);
  return -1;
}

size_t mgrid_node_level(const mgrid_machine_model *m) {
  int64_t l = mgrid_machine_find(m, "node");
  return l >= 0 && (size_t)l < m->ntiers ? (size_t)l : m->ntiers > 1 ? m->ntiers - 2 : 0;
}

size_t mgrid_nvlink_level(const mgrid_machine_model *m) {
  const char *const named[] = { "clique", "nvlink" };
  for (int i = 0; i < 2; i++) {
    int64_t l = mgrid_machine_find(m, named[i]);
    if (l >= 0 && (size_t)l + 1 < m->ntiers) return (size_t)l;
  }
  size_t level = mgrid_node_level(m);
  double place = m->tier[m->ntiers - 1].link.bandwidth;
  while (level > 0 && place > 0
         && m->tier[level].link.bandwidth >= place * (double)m->tier[level].most)
    level--;
  return level;
}

mgrid_status mgrid_machine_fits(const mgrid_machine_model *m, int64_t world, mgrid_error *err) {
  if (world < 1 || world > MGRID_WORLD_MAX)
    return mgrid_fail(err, MGRID_OUT_OF_RANGE, "a world has 1 to %" PRId64 " ranks, not %" PRId64,
                      MGRID_WORLD_MAX, world);
  if (m->at && world > m->nranks)
    return mgrid_fail(err, MGRID_REFUSED,
                      "the machine lists the places of %" PRId64
                      " rank%s, and the world has %" PRId64,
                      m->nranks, mgrid_s_of(m->nranks), world);
  if (!m->places || world <= m->places) return MGRID_OK;
  return mgrid_fail(err, MGRID_REFUSED,
                    "a world of %" PRId64 " ranks does not fit the machine, which has %" PRId64
                    " place%s",
                    world, m->places, mgrid_s_of(m->places));
}

int64_t mgrid_machine_domain(const mgrid_machine_model *m, size_t i, int64_t rank) {
  if (i >= mgrid_machine_nlevels(m) || rank < 0 || mgrid_machine_fits(m, rank + 1, NULL)) return -1;
  return mgrid_place_domain(m, i, mgrid_machine_at(m, rank));
}

const char *mgrid_machine_domain_name(const mgrid_machine_model *m, size_t i, int64_t domain) {
  if (!m || i >= m->ntiers || domain < 0 || domain >= m->tier[i].domains || !m->tier[i].names)
    return NULL;
  return m->tier[i].names[domain];
}

mgrid_status mgrid_machine_describe_level(const mgrid_machine_model *m, size_t i,
                                          mgrid_machine_level *out, mgrid_error *err) {
  mgrid_machine_level l = MGRID_MACHINE_LEVEL_INIT;

  if (!m) return MGRID_USAGE;
  mgrid_status s = mgrid_struct_check(out, sizeof l, "mgrid_machine_level", err);
  if (!s && i >= mgrid_machine_nlevels(m))
    s = mgrid_fail(err, MGRID_OUT_OF_RANGE, "the machine has %zu levels, no level %zu",
                   mgrid_machine_nlevels(m), i);
  if (s) return s;
  l.name = mgrid_level_name(m, i);
  l.crosses = i >= m->ntiers;
  const mgrid_link *link = l.crosses ? &m->crossing[i - m->ntiers].link : &m->tier[i].link;
  l.bandwidth = link->bandwidth, l.latency = link->latency;
  if (l.crosses) {
    const mgrid_crossing *x = &m->crossing[i - m->ntiers];
    const mgrid_tier *of = &m->tier[x->of];
    int64_t period = x->of ? m->tier[x->of - 1].each : m->places;
    l.domains = x->domains ? x->domains : -1;
    l.regular = period && of->each && of->ncounts == 1 && of->counts[0] % x->share == 0
                && (x->in < 0 || m->tier[x->in].each);
    int64_t span = x->in < 0 ? m->places : m->tier[x->in].most;
    l.most = !span ? -1 : !l.regular ? span : span / period * x->share * of->each;
  } else {
    l.domains = m->tier[i].domains ? m->tier[i].domains : -1;
    l.most = m->tier[i].most;
    l.regular = m->tier[i].each != 0;
  }
  mgrid_struct_write(out, &l, sizeof l);
  return MGRID_OK;
}
