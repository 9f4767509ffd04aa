/* SPDX-License-Identifier: MIT
**
** families.c - the domains of a machine as families. Regular levels follow modes at any world size: full domains, and a
** last one that the world does not fill.
*/
#include "machine/model.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* A family of modes over `size` ranks from `offset` on; a mode of size 1 is nothing. */
static mgrid_family *modes(int64_t world, int64_t offset, int64_t size, const mgrid_mode *inside, size_t ninside,
                           const mgrid_mode *index, size_t nindex, mgrid_error *err) {
  return mgrid_family_modes((mgrid_window){ world, offset, size }, offset, ninside, inside, nindex, index, err);
}

/* Groups of `each` consecutive ranks, the last one with the rest. */
static mgrid_family *blocks(int64_t each, int64_t world, mgrid_error *err) {
  int64_t       full = world / each, rest = world % each;
  mgrid_mode    in = { each, 1 }, by = { full, each }, last = { rest, 1 };
  mgrid_family *part[2] = { NULL, NULL }, *f = NULL;
  if (full) part[0] = modes(world, 0, full * each, &in, 1, &by, 1, err);
  if (rest) part[1] = modes(world, full * each, rest, &last, 1, NULL, 0, err);
  if (full && rest && part[0] && part[1])
    f = mgrid_family_union(2, (const mgrid_family *const *)part, err);
  else if (!(full && rest))
    f = mgrid_family_ref(part[0] ? part[0] : part[1]);
  mgrid_family_free(part[0]);
  mgrid_family_free(part[1]);
  return f;
}

/* Groups of consecutive ranks of different sizes. */
static mgrid_family *segments(const mgrid_tier *t, int64_t world, mgrid_error *err) {
  int64_t       n = mgrid_tier_used(t, world), *sizes = malloc((size_t)n * sizeof *sizes);
  mgrid_mode    all = { world, 1 };
  mgrid_family *whole = modes(world, 0, world, &all, 1, NULL, 0, err), *f = NULL;
  for (int64_t d = 0; sizes && d < n; d++) {
    int64_t end = mgrid_tier_start(t, d + 1);
    sizes[d] = (end < world ? end : world) - mgrid_tier_start(t, d);
  }
  if (!sizes)
    mgrid_oom(err);
  else if (whole)
    f = mgrid_family_segments(whole, (size_t)n, sizes, err);
  mgrid_family_free(whole);
  free(sizes);
  return f;
}

/* Domains that cross levels: their ranks are `run` consecutive ones, again after each `period`, apart in each `span`. NULL
** with *ruled false: the machine or the world is not regular enough. */
static mgrid_family *crossing(const mgrid_machine_model *m, const mgrid_crossing *x, int64_t world, bool *ruled,
                              mgrid_error *err) {
  const mgrid_tier *of = &m->tier[x->of];
  int64_t           period = x->of ? m->tier[x->of - 1].each : world;
  int64_t           span = x->in < 0 ? world : m->tier[x->in].each, run = of->each * x->share;
  *ruled = !m->at && of->each && period && span && of->ncounts == 1 && of->counts[0] % x->share == 0
           && world % span == 0 && span % period == 0 && (x->of || world == m->places);
  if (!*ruled) return NULL;
  mgrid_mode in[] = { { run, 1 }, { span / period, period } }, by[] = { { period / run, run }, { world / span, span } };
  return modes(world, 0, world, in, 2, by, 2, err);
}

static int by_key(const void *a, const void *b) { return mgrid_key_order(a, b); }

/* Groups of any ranks, listed: O(world) and its sorting. */
static mgrid_family *listed(const mgrid_machine_model *m, size_t level, int64_t world, mgrid_error *err) {
  if (world > MGRID_COUNTED_MAX)
    return mgrid_null(err, MGRID_LIMIT, "no rule makes the domains of '%s'; up to %d ranks are listed, not %" PRId64,
                      mgrid_level_name(m, level), MGRID_COUNTED_MAX, world);
  uint64_t *key = malloc((size_t)world * sizeof *key);
  int32_t  *ranks = malloc((size_t)world * sizeof *ranks);
  int64_t  *starts = malloc((size_t)(world + 1) * sizeof *starts), n = 0;
  if (!key || !ranks || !starts) {
    free(key);
    free(ranks);
    free(starts);
    return mgrid_null_oom(err);
  }
  for (int64_t r = 0; r < world; r++)
    key[r] = (uint64_t)mgrid_place_domain(m, level, mgrid_machine_at(m, r)) << 32 | (uint64_t)r;
  qsort(key, (size_t)world, sizeof *key, by_key);
  for (int64_t i = 0; i < world; i++) {
    if (i == 0 || key[i] >> 32 != key[i - 1] >> 32) starts[n++] = i;
    ranks[i] = (int32_t)(key[i] & UINT32_MAX);
  }
  starts[n] = world;
  free(key);
  return mgrid_table_adopt(mgrid_world(world), n, starts, ranks, MGRID_PARTITION, true, err);
}

mgrid_family *mgrid_machine_family(const mgrid_machine_model *m, const char *level, int64_t world, mgrid_error *err) {
  bool ruled = true;
  if (!m) return NULL;
  int64_t i = mgrid_machine_require(m, level, err);
  if (i < 0 || mgrid_machine_fits(m, world, err)) return NULL;
  const mgrid_tier *t = (size_t)i < m->ntiers ? &m->tier[i] : NULL;
  if (t && !m->at) return t->each ? blocks(t->each, world, err) : segments(t, world, err);
  mgrid_family *f = t ? NULL : crossing(m, &m->crossing[(size_t)i - m->ntiers], world, &ruled, err);
  return f || (!t && ruled) ? f : listed(m, (size_t)i, world, err);
}
