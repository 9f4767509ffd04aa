/* SPDX-License-Identifier: MIT
**
** count.c - how groups lie in the domains of a level, by going through their members. This is what closed.c is proved
** against, and what counts where no modes tell.
*/
#include "machine/count.h"

#include <inttypes.h>
#include <stdlib.h>

int64_t mgrid_domains_of(const mgrid_machine_model *m, size_t level, int64_t world, int32_t *domain) {
  const mgrid_tier *t = level < m->ntiers ? &m->tier[level] : NULL;
  int64_t           at = 0, n = 0;
  for (int64_t r = 0; r < world; r++) {
    int64_t place = mgrid_machine_at(m, r);
    if (t && !m->at && t->starts) /* places in order */
      while (t->starts[at + 1] <= place) at++;
    else
      at = mgrid_place_domain(m, level, place);
    domain[r] = (int32_t)at;
    if (at >= n) n = at + 1;
  }
  return n;
}

/* Where the members of a group are, one after the other. */
typedef struct walk {
  const int32_t *domain;
  int64_t       *seen; /* of each domain: the last group that was there, plus 1 */
  int64_t        first, last, position;
  int64_t        edges, touched;
} walk;

static void step(walk *w, int64_t group, int32_t rank) {
  int64_t d = w->domain[rank];
  if (w->position++ == 0)
    w->first = d;
  else
    w->edges += d != w->last;
  w->touched += w->seen[d] != group + 1;
  w->seen[d] = group + 1;
  w->last = d;
}

mgrid_status mgrid_count_each(const mgrid_machine_model *m, const mgrid_family *f, size_t level,
                              mgrid_machine_counts *c, mgrid_error *err) {
  enum { PIECE = 4096 };
  int32_t piece[PIECE];
  if (f->world > MGRID_COUNTED_MAX)
    return mgrid_fail(err, MGRID_LIMIT,
                      "no rule counts how these groups cross '%s'; one by one up to %d ranks are counted, not %" PRId64,
                      mgrid_level_name(m, level), MGRID_COUNTED_MAX, f->world);
  int32_t *domain = malloc((size_t)f->world * sizeof *domain);
  int64_t  domains = domain ? mgrid_domains_of(m, level, f->world, domain) : 0;
  walk     w = { .domain = domain, .seen = calloc((size_t)domains + 1, sizeof *w.seen) };
  for (int64_t g = 0; domain && w.seen && g < f->count; g++) {
    int64_t size = mgrid_family_size(f, g), touched = w.touched;
    w.position = 0;
    for (int64_t at = 0; at < size; at += PIECE) {
      int64_t n = size - at < PIECE ? size - at : PIECE;
      mgrid_family_slice(f, g, at, n, piece);
      for (int64_t i = 0; i < n; i++) step(&w, g, piece[i]);
    }
    w.edges += size > 2 && w.first != w.last;
    c->inside += w.touched == touched + 1;
  }
  bool failed = !domain || !w.seen;
  free(domain);
  free(w.seen);
  if (failed) return mgrid_oom(err);
  c->crossing = f->count - c->inside;
  c->edges = w.edges;
  c->touched = w.touched;
  return MGRID_OK;
}

int64_t mgrid_first_crossing(const mgrid_machine_model *m, const mgrid_family *f, size_t level, int64_t from) {
  for (int64_t g = from; g < f->count; g++) {
    int64_t d = mgrid_place_domain(m, level, mgrid_machine_at(m, mgrid_family_rank(f, g, 0)));
    for (int64_t p = 1, n = mgrid_family_size(f, g); p < n; p++)
      if (mgrid_place_domain(m, level, mgrid_machine_at(m, mgrid_family_rank(f, g, p))) != d) return g;
  }
  return -1;
}

mgrid_status mgrid_machine_count(const mgrid_machine_model *m, const mgrid_family *f, const char *level,
                                 mgrid_machine_counts *out, mgrid_error *err) {
  mgrid_machine_counts c = MGRID_MACHINE_COUNTS_INIT;
  if (!m || !f) return MGRID_USAGE;
  mgrid_status s = mgrid_struct_check(out, sizeof c, "mgrid_machine_counts", err);
  if (s) return s;
  int64_t i = mgrid_machine_require(m, level, err);
  if (i < 0) return level ? MGRID_UNKNOWN_NAME : MGRID_USAGE;
  s = mgrid_machine_fits(m, f->world, err);
  if (!s && !mgrid_count_closed(m, f, (size_t)i, &c)) {
    c = (mgrid_machine_counts)MGRID_MACHINE_COUNTS_INIT;
    s = mgrid_count_each(m, f, (size_t)i, &c, err);
  }
  if (!s) mgrid_struct_write(out, &c, sizeof c);
  return s;
}
