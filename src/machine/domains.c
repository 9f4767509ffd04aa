/* SPDX-License-Identifier: MIT
**
** domains.c - the domains of a machine and the families of a plan: domains as families themselves
** (machine.node), and the laws about families and domains (within, aligned, spread). A law
** that does not hold is refused with the first group that breaks it, and with advice.
*/
#include "machine/count.h"
#include "machine/machine_item.h"
#include "machine/model.h"
#include "plan/plan.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* =============================================================== as families */

/* At any world size, modes (families/modes.h) describe the domains of a regular level: the full
** domains, and the last domain, which the world may fill only in part. */

/* Return a family of modes over `size` ranks from `offset` on. Modes of size 1 are left out. */
static mgrid_family *modes(int64_t world, int64_t offset, int64_t size, const mgrid_mode *inside,
                           size_t ninside, const mgrid_mode *index, size_t nindex,
                           mgrid_error *err) {
  return mgrid_family_modes((mgrid_window){ world, offset, size }, offset, ninside, inside, nindex,
                            index, err);
}

/* Return groups of `each` consecutive ranks; the last group has the rest. */
static mgrid_family *blocks(int64_t each, int64_t world, mgrid_error *err) {
  int64_t full = world / each, rest = world % each;
  mgrid_mode in = { each, 1 }, by = { full, each }, last = { rest, 1 };
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

/* Return groups of consecutive ranks, of different sizes. */
static mgrid_family *segments(const mgrid_tier *t, int64_t world, mgrid_error *err) {
  int64_t n = mgrid_tier_used(t, world), *sizes = malloc((size_t)n * sizeof *sizes);
  mgrid_mode all = { world, 1 };
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

/* Return the family of domains that cross levels. A domain has `run` consecutive ranks of each
** `period` ranks, and each `span` ranks have domains of their own. Return NULL and set *ruled to
** false if the machine or the world is not regular enough. */
static mgrid_family *crossing(const mgrid_machine_model *m, const mgrid_crossing *x, int64_t world,
                              bool *ruled, mgrid_error *err) {
  const mgrid_tier *of = &m->tier[x->of];
  int64_t period = x->of ? m->tier[x->of - 1].each : world;
  int64_t span = x->in < 0 ? world : m->tier[x->in].each, run = of->each * x->share;
  *ruled = !m->at && of->each && period && span && of->ncounts == 1 && of->counts[0] % x->share == 0
           && world % span == 0 && span % period == 0 && (x->of || world == m->places);
  if (!*ruled) return NULL;
  mgrid_mode in[] = { { run, 1 }, { span / period, period } },
             by[] = { { period / run, run }, { world / span, span } };
  return modes(world, 0, world, in, 2, by, 2, err);
}

/* Return the family of domains as lists of ranks, for ranks at any places. O(world), and a sort. */
static mgrid_family *domains_listed(const mgrid_machine_model *m, size_t level, int64_t world,
                                    mgrid_error *err) {
  if (world > MGRID_COUNTED_MAX)
    return mgrid_null(
        err, MGRID_LIMIT,
        "the domains of '%s' follow no rule, so they are listed, for up to %d ranks, not %" PRId64,
        mgrid_level_name(m, level), MGRID_COUNTED_MAX, world);

  uint64_t *key = malloc((size_t)world * sizeof *key);
  int32_t *ranks = malloc((size_t)world * sizeof *ranks);
  int64_t *starts = malloc((size_t)(world + 1) * sizeof *starts), n = 0;
  if (!key || !ranks || !starts) {
    free(key);
    free(ranks);
    free(starts);
    return mgrid_null_oom(err);
  }

  for (int64_t r = 0; r < world; r++)
    key[r] = (uint64_t)mgrid_place_domain(m, level, mgrid_machine_at(m, r)) << 32 | (uint64_t)r;
  qsort(key, (size_t)world, sizeof *key, mgrid_key_order);
  for (int64_t i = 0; i < world; i++) {
    if (i == 0 || key[i] >> 32 != key[i - 1] >> 32) starts[n++] = i;
    ranks[i] = (int32_t)(key[i] & UINT32_MAX);
  }
  starts[n] = world;

  free(key);
  return mgrid_table_adopt(mgrid_world(world), n, starts, ranks, MGRID_PARTITION, true, err);
}

mgrid_family *mgrid_machine_family(const mgrid_machine_model *m, const char *level, int64_t world,
                                   mgrid_error *err) {
  bool ruled = true;
  if (!m) return NULL;
  int64_t i = mgrid_machine_require(m, level, err);
  if (i < 0 || mgrid_machine_fits(m, world, err)) return NULL;
  const mgrid_tier *t = (size_t)i < m->ntiers ? &m->tier[i] : NULL;
  if (t && !m->at) return t->each ? blocks(t->each, world, err) : segments(t, world, err);
  mgrid_family *f = t ? NULL : crossing(m, &m->crossing[(size_t)i - m->ntiers], world, &ruled, err);
  return f || (!t && ruled) ? f : domains_listed(m, (size_t)i, world, err);
}

/* ====================================================================== laws */

void mgrid_domain_text(const mgrid_machine_model *m, size_t level, int64_t domain, mgrid_text *t) {
  const char *name = mgrid_machine_domain_name(m, level, domain);
  mgrid_text_add(t, "%s %" PRId64, mgrid_level_name(m, level), domain);
  if (!name) return;
  mgrid_text_str(t, " (");
  mgrid_text_shown(t, name);
  mgrid_text_str(t, ")");
}

static int64_t domain_at(const mgrid_machine_model *m, size_t level, const mgrid_family *f,
                         int64_t g, int64_t p) {
  return mgrid_place_domain(m, level, mgrid_machine_at(m, mgrid_family_rank(f, g, p)));
}

/* ------------------------------------------------------------------- within */

static int64_t not_within(const mgrid_machine_model *m, const mgrid_family *f, size_t level,
                          int64_t *first, mgrid_text *wrong, mgrid_error *err) {
  mgrid_machine_counts c = MGRID_MACHINE_COUNTS_INIT;
  if (mgrid_machine_count(m, f, mgrid_level_name(m, level), &c, err)) return -1;
  if (c.crossing == 0) return 0;
  *first = mgrid_first_crossing(m, f, level);
  int64_t p = 1, d = domain_at(m, level, f, *first, 0);
  while (domain_at(m, level, f, *first, p) == d) p++;
  mgrid_text_add(wrong, "its rank %" PRId64 " is in ", mgrid_family_rank(f, *first, 0));
  mgrid_domain_text(m, level, d, wrong);
  mgrid_text_add(wrong, " and rank %" PRId64 " in ", mgrid_family_rank(f, *first, p));
  mgrid_domain_text(m, level, domain_at(m, level, f, *first, p), wrong);
  return c.crossing;
}

/* Return whether the ranks fill the places in order, in domains of one size, and the family cuts
** the world into groups by modes, as the dims of a grid do. */
static bool is_plain(const mgrid_machine_model *m, const mgrid_family *f,
                     const mgrid_machine_level *l) {
  return !m->at && l->regular && f->rule && !f->overlapping && f->total == f->world;
}

static void advise_order(const mgrid_machine_model *m, mgrid_text *t) {
  mgrid_text_add(
      t,
      "use another order of dims, other sizes, or another order of %s (ranks = ... lists "
      "the place of each rank)",
      m->tier[0].starts || m->ntiers < 2 ? "nodes" : "ranks");
}

/* Name the sizes that divide the places of a domain. Without the places that groups of this size
** leave idle, the machine may have too few for the world. */
static void advise_divide(const mgrid_machine_model *m, const mgrid_family *f,
                          const mgrid_machine_level *l, mgrid_text *t) {
  int64_t below, above, idle = l->most % f->max_size;
  mgrid_nearest_divisors(l->most, f->max_size, &below, &above);
  mgrid_text_add(t,
                 "groups of %" PRId64 " do not divide the %" PRId64
                 " places of a %s: use groups of %" PRId64,
                 f->max_size, l->most, l->name, below);
  if (above) mgrid_text_add(t, " or %" PRId64, above);
  if (!m->places || m->places / l->most * (l->most - idle) >= f->world)
    mgrid_text_add(t, ", or leave %" PRId64 " place%s of each idle", idle, mgrid_s_of(idle));
}

static void advise_within(const mgrid_machine_model *m, const mgrid_family *f, size_t level,
                          mgrid_text *t) {
  mgrid_machine_level l = MGRID_MACHINE_LEVEL_INIT;

  mgrid_machine_describe_level(m, level, &l, NULL);
  if (l.most > 0 && f->max_size > l.most && (l.regular || !l.crosses)) {
    mgrid_text_add(t, "the largest %s has %" PRId64 " place%s, so use groups of at most %" PRId64,
                   l.name, l.most, mgrid_s_of(l.most), l.most);
    return;
  }
  const bool plain = is_plain(m, f, &l) && !l.crosses;
  const bool apart = plain && mgrid_modes_span(&f->rule->inside) >= f->max_size;
  const bool odd = plain && l.most % f->max_size != 0;
  if (apart && f->rule->inside.n == 1)
    mgrid_text_add(t, "its members are %" PRId64 " apart", f->rule->inside.at[0].stride);
  else if (apart)
    mgrid_text_str(t, "its members do not follow each other");
  if (apart) mgrid_text_str(t, ": put its dims first in the order of the grid");
  if (apart && odd) mgrid_text_str(t, "; ");
  if (odd) advise_divide(m, f, &l, t);
  if (!apart && !odd) advise_order(m, t);
}

/* ------------------------------------------------------------------ aligned */

/* A domain that a group uses, the domain around it (of the level before), and a rank of the group
** in both. */
typedef struct use {
  int64_t around, domain, rank;
} use;

static int by_use(const void *a, const void *b) {
  const use *x = a, *y = b;
  if (x->around != y->around) return x->around < y->around ? -1 : 1;
  return (x->domain > y->domain) - (x->domain < y->domain);
}

/* Sort the uses and drop duplicates. Return how many are left. */
static int64_t sort_uses(use *u, int64_t n) {
  int64_t kept = 0;
  qsort(u, (size_t)n, sizeof *u, by_use);
  for (int64_t i = 0; i < n; i++)
    if (i == 0 || by_use(&u[i], &u[kept - 1]) != 0) u[kept++] = u[i];
  return kept;
}

/* Return whether a group uses the same domains inside every domain around them. If not, set *a and
** *b to two uses that show the difference. */
static bool is_aligned(const use *u, int64_t n, int64_t *a, int64_t *b) {
  int64_t each = 0;
  while (each < n && u[each].around == u[0].around) each++;
  for (int64_t at = each; at < n; at += each)
    for (int64_t i = 0; true; i++) {
      bool more = at + i < n && u[at + i].around == u[at].around; /* the other one has an ith use */
      if (i == each && !more) break;
      *a = i < each ? i : each - 1, *b = more ? at + i : at + i - 1;
      if (i == each || !more || u[*b].domain != u[i].domain) return false;
    }
  return true;
}

static int64_t not_aligned(const mgrid_machine_model *m, const mgrid_family *f, size_t level,
                           int64_t *first, mgrid_text *wrong, mgrid_error *err) {
  int64_t broken = 0;

  if (level < m->ntiers) {
    mgrid_fail(err, MGRID_BAD_VALUE,
               "aligned needs domains that cross levels, as rail = gpu makes them; %s is a level",
               mgrid_level_name(m, level));
    return -1;
  }
  const mgrid_crossing *x = &m->crossing[level - m->ntiers];
  use *u = malloc((size_t)(f->max_size + 1) * sizeof *u);
  if (!u) return mgrid_oom(err), -1;
  for (int64_t g = 0; g < f->count; g++) {
    int64_t n = mgrid_family_size(f, g), a = 0, b = 0;
    for (int64_t p = 0; p < n; p++) {
      int64_t rank = mgrid_family_rank(f, g, p), place = mgrid_machine_at(m, rank);
      u[p] = (use){ x->of ? mgrid_tier_domain(&m->tier[x->of - 1], place) : 0,
                    mgrid_place_domain(m, level, place), rank };
    }
    n = sort_uses(u, n);
    if (is_aligned(u, n, &a, &b) || broken++) continue;
    *first = g;
    for (int i = 0; i < 2; i++) {
      const use *one = &u[i ? b : a];
      mgrid_text_add(wrong, "%srank %" PRId64 " in ", i ? ", and its " : "its ", one->rank);
      if (x->of) mgrid_domain_text(m, x->of - 1, one->around, wrong);
      mgrid_text_str(wrong, " is on ");
      mgrid_domain_text(m, level, one->domain, wrong);
    }
  }
  free(u);
  return broken;
}

static void advise_aligned(const mgrid_machine_model *m, const mgrid_family *f, size_t level,
                           mgrid_text *t) {
  const mgrid_crossing *x = &m->crossing[level - m->ntiers];
  const mgrid_tier *node = &m->tier[x->of ? x->of - 1 : 0],
                   *end = x->in < 0 ? NULL : &m->tier[x->in];
  mgrid_machine_counts n = MGRID_MACHINE_COUNTS_INIT;

  if (end && !mgrid_machine_count(m, f, end->name, &n, NULL) && n.crossing)
    mgrid_text_add(t, "a %s ends at its %s, so use groups inside one %s", x->name, end->name,
                   end->name);
  else if (m->at || !node->each)
    advise_order(m, t);
  else
    mgrid_text_add(t,
                   "put its members whole %ss apart: the sizes of the dims before its own then "
                   "multiply to a multiple of the places of a %s",
                   node->name, node->name);
}

/* ------------------------------------------------------------------- spread */

static int64_t not_spread(const mgrid_machine_model *m, const mgrid_family *f, size_t level,
                          int64_t *first, mgrid_text *wrong, mgrid_error *err) {
  mgrid_machine_counts c = MGRID_MACHINE_COUNTS_INIT;
  int64_t broken = 0;

  if (mgrid_machine_count(m, f, mgrid_level_name(m, level), &c, err)) return -1;
  if (c.touched == f->total) return 0;
  use *u = malloc((size_t)(f->max_size + 1) * sizeof *u);
  if (!u) return mgrid_oom(err), -1;
  for (int64_t g = 0; g < f->count; g++) {
    int64_t n = mgrid_family_size(f, g), i = 1;
    for (int64_t p = 0; p < n; p++) {
      int64_t rank = mgrid_family_rank(f, g, p);
      u[p] = (use){ mgrid_place_domain(m, level, mgrid_machine_at(m, rank)), rank, rank };
    }
    qsort(u, (size_t)n, sizeof *u, by_use);
    while (i < n && u[i].around != u[i - 1].around) i++;
    if (i >= n || broken++) continue;
    *first = g;
    mgrid_text_add(wrong, "its ranks %" PRId64 " and %" PRId64 " are both in ", u[i - 1].rank,
                   u[i].rank);
    mgrid_domain_text(m, level, u[i].around, wrong);
  }
  free(u);
  return broken;
}

/* Return the number of domains in which ranks run; 0: it cannot be counted. */
static int64_t domains_used(const mgrid_machine_model *m, const char *level, int64_t world) {
  mgrid_family *f = mgrid_machine_family(m, level, world, NULL);
  int64_t n = f ? f->count : 0;
  mgrid_family_free(f);
  return n;
}

static void advise_spread(const mgrid_machine_model *m, const mgrid_family *f, size_t level,
                          mgrid_text *t) {
  mgrid_machine_level l = MGRID_MACHINE_LEVEL_INIT;

  mgrid_machine_describe_level(m, level, &l, NULL);
  const bool plain = is_plain(m, f, &l) && !l.crosses;
  /* the ranks of a full domain are in as many groups, so the size of a group is at most the number
  ** of full domains */
  int64_t used = domains_used(m, l.name, f->world), most = plain ? f->world / l.most : used;

  if (l.domains >= 0 && f->max_size > l.domains && (l.regular || !l.crosses))
    mgrid_text_add(t, "there %s %" PRId64 " %s%s, so use groups of at most %" PRId64,
                   l.domains == 1 ? "is" : "are", l.domains, l.name, mgrid_s_of(l.domains),
                   l.domains);
  else if (used && f->max_size > used)
    mgrid_text_add(t, "the ranks are in %" PRId64 " %s%s, so use groups of at most %" PRId64, used,
                   l.name, mgrid_s_of(used), used);
  else if (most && f->max_size > most)
    mgrid_text_add(t, "the ranks fill %" PRId64 " %s%s, so use groups of at most %" PRId64, most,
                   l.name, mgrid_s_of(most), most);
  else if (plain)
    mgrid_text_add(
        t, "move its dims later in the order of the grid, so that its members are a whole %s apart",
        l.name);
  else
    advise_order(m, t);
}

/* -------------------------------------------------------------------- by name */

static const mgrid_machine_law laws[] = {
  { "within", not_within, "crosses", "cross", advise_within },
  { "aligned", not_aligned, "is not aligned", "are not aligned", advise_aligned },
  { "spread", not_spread, "is not spread", "are not spread", advise_spread },
  { NULL, NULL, NULL, NULL, NULL },
};

const mgrid_machine_law *mgrid_machine_law_named(const char *name) {
  const mgrid_machine_law *l = laws;
  while (l->name && strcmp(l->name, name) != 0) l++;
  return l->name ? l : NULL;
}

mgrid_status mgrid_machine_hold(const mgrid_machine_law *law, const mgrid_machine_model *m,
                                const mgrid_family *f, const char *family, const char *level,
                                mgrid_error *err) {
  mgrid_text wrong = { 0 };
  int64_t first = 0, i = mgrid_machine_require(m, level, err);
  if (i < 0) return MGRID_UNKNOWN_NAME;
  mgrid_error why = MGRID_ERROR_INIT;
  mgrid_status s = mgrid_machine_fits(m, f->world, &why);
  int64_t broken = s ? -1 : law->broken(m, f, (size_t)i, &first, &wrong, &why);
  if (broken > 0) {
    mgrid_text_str(&wrong, "; ");
    law->advise(m, f, (size_t)i, &wrong);
    s = mgrid_fail(&why, MGRID_REFUSED,
                   "%" PRId64 " of %" PRId64 " group%s of %s %s: the first is group %" PRId64
                   ": %s",
                   broken, f->count, mgrid_s_of(f->count), family,
                   broken == 1 ? law->breaks : law->break_, first, mgrid_text_chars(&wrong));
  }
  mgrid_text_free(&wrong);
  return broken == 0 ? MGRID_OK : mgrid_error_pass(err, &why);
}

bool mgrid_machine_is_law(const char *law) {
  char name[MGRID_NAME_MAX + 1] = "";
  sscanf(law, " %31[a-z]", name);
  return strstr(law, "machine.") || strcmp(name, "aligned") == 0 || strcmp(name, "spread") == 0;
}

mgrid_status mgrid_machine_check_law(const mgrid_machine_model *m, const mgrid_plan *p,
                                     const char *law, mgrid_error *err) {
  char name[MGRID_NAME_MAX + 1], family[MGRID_NAME_MAX + 1], level[MGRID_NAME_MAX + 1], tail[512];
  int end = 0, n = sscanf(law, " %31[a-z] ( %31[A-Za-z0-9_] , machine.%31[A-Za-z0-9_] ) %n", name,
                          family, level, &end);

  if (n != 3 || end == 0 || law[end])
    return mgrid_fail(
        err, MGRID_BAD_VALUE,
        "a law about the machine is within(a, machine.node), aligned(a, machine.rail) or "
        "spread(a, machine.rack), not '%s'",
        law);
  const mgrid_machine_law *row = mgrid_machine_law_named(name);
  if (!row) {
    const char *known[] = { "within", "aligned", "spread" };
    mgrid_suggest(tail, sizeof tail, name, known, 3);
    return mgrid_fail(err, MGRID_UNKNOWN_NAME, "unknown law '%s'%s", name, tail);
  }
  mgrid_error why = MGRID_ERROR_INIT;
  int entry = mgrid_content_require(&p->content, "", family, &why);
  if (entry < 0) return mgrid_fail(err, why.status, "law %s: %s", law, why.message);
  if (!m)
    return mgrid_fail(
        err, MGRID_USAGE,
        "law %s needs a machine: --machine FILE, TEXT or PRESET, or machine = in the recipe", law);
  const mgrid_family *f = p->content.entry[entry].family;
  mgrid_status s = mgrid_machine_hold(row, m, f, family, level, &why);
  if (!s) return MGRID_OK;
  return mgrid_fail(err, s, "law %s%s: %s", law, s == MGRID_REFUSED ? " does not hold" : "",
                    why.message);
}
