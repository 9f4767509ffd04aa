/* SPDX-License-Identifier: MIT
**
** topologies.h - random topologies in which families overlap, repeat each other in part, and
** differ in their options, to test dedup and the schedule.
*/
#ifndef TEST_TOPOLOGIES_H
#define TEST_TOPOLOGIES_H

#include "lists.h"

#include "plan/plan.h"

enum { DRAWN_FAMILIES = 7 };

typedef struct drawn_options {
  mgrid_options o;
  bool unique;         /* by option or because the family is a twin */
  const char *backend; /* "none": no communicators */
  int nccl;            /* number of the configuration: equal numbers, equal configurations */
} drawn_options;

typedef struct drawn_topology {
  int64_t world;
  size_t n;
  drawn_options options[DRAWN_FAMILIES];
  mgrid_topology *topology;
} drawn_topology;

/* Most families have the defaults, or nothing would be shared. */
static inline drawn_options draw_options(rng *r) {
  static const char *const nccl[] = { "max_ctas=16 min_ctas=4", "min_ctas=4,max_ctas=16",
                                      "  min_ctas=4\tmax_ctas=16 " };
  static const char *const backend[] = { "mpi", "nccl", "none" };
  drawn_options d = { .o = MGRID_OPTIONS_INIT, .backend = "" };
  if (rng_chance(r, 65)) return d;
  d.o.unique = d.unique = rng_chance(r, 15);
  d.o.high_priority = rng_chance(r, 15);
  if (rng_chance(r, 20)) d.o.first = true;
  if (!d.o.first && rng_chance(r, 20)) d.o.lazy = true;
  if (rng_chance(r, 15)) d.o.timeout = (double)rng_between(r, 1, 2) / 2;
  if (rng_chance(r, 20)) d.o.backend = d.backend = backend[rng_between(r, 0, 2)];
  if (rng_chance(r, 20)) { /* one configuration in three spellings */
    d.o.nccl = nccl[rng_between(r, 0, 2)];
    d.nccl = 1;
  }
  return d;
}

/* A cover or a partial table of the world, sometimes with a group twice. */
static inline mgrid_family *draw_table(rng *r, int64_t world) {
  mgrid_error err;
  bool overlap = rng_chance(r, 60);
  lists l = draw_lists(r, world, overlap);
  if (overlap && rng_chance(r, 30)) {
    int64_t again = rng_between(r, 0, l.n - 1);
    for (int64_t p = 0, n = lists_size(&l, again); p < n; p++)
      lists_add(&l, lists_group(&l, again)[p]);
    lists_close(&l);
  }
  mgrid_family *f = table_of(&l, world, &err);
  check(r, f != NULL);
  lists_free(&l);
  return f;
}

/* A family of the world: of a grid over all of it or a window, of a union of two, or a table;
** or some groups of an earlier family. */
static inline mgrid_family *draw_any_family(rng *r, int64_t world, const mgrid_family *earlier) {
  lists l;
  mgrid_error err;
  mgrid_family *f;
  if (rng_chance(r, 15)) return draw_table(r, world);
  if (earlier && rng_chance(r, 20))
    return rng_chance(r, 40) ? mgrid_family_lists(earlier, anew(&err)) : mgrid_family_ref(earlier);
  if (earlier && rng_chance(r, 5)) return mgrid_family_twin(earlier, anew(&err));
  int64_t cut = rng_chance(r, 35) ? rng_between(r, 0, world - 1) : 0;
  drawn d = draw_grid_over(r, (mgrid_window){ world, cut, world - cut });
  f = draw_family(r, &d, (int)rng_between(r, 0, 2), &l);
  mgrid_grid_free(d.grid);
  lists_free(&l);
  if (cut > 0 && rng_chance(r, 60)) {
    drawn low = draw_grid_over(r, (mgrid_window){ world, 0, cut });
    const mgrid_family *both[2] = { f, draw_family(r, &low, (int)rng_between(r, 0, 1), &l) };
    mgrid_family *u = mgrid_family_union(2, both, anew(&err));
    check(r, u != NULL);
    mgrid_family_free(f);
    mgrid_family_free((mgrid_family *)both[1]);
    mgrid_grid_free(low.grid);
    lists_free(&l);
    f = u;
  }
  return f;
}

static inline drawn_topology draw_topology(rng *r, int64_t most) {
  static const char *const name[DRAWN_FAMILIES] = { "f0", "f1", "f2", "f3", "f4", "f5", "f6" };
  mgrid_error err;
  drawn_topology t = { .world = rng_between(r, 1, most / 2) * rng_between(r, 1, 2) };
  mgrid_family *f[DRAWN_FAMILIES];
  t.topology = mgrid_topology_new(t.world, anew(&err));
  t.n = (size_t)rng_between(r, 1, DRAWN_FAMILIES);
  for (size_t i = 0; i < t.n; i++) {
    t.options[i] = draw_options(r);
    f[i] = draw_any_family(r, t.world, i ? f[rng_between(r, 0, (int64_t)i - 1)] : NULL);
    check(r, f[i] != NULL);
    t.options[i].unique |= f[i]->twin;
    check(r,
          mgrid_topology_add(t.topology, name[i], f[i], &t.options[i].o, anew(&err)) == MGRID_OK);
  }
  for (size_t i = 0; i < t.n; i++) mgrid_family_free(f[i]);
  return t;
}

static inline void topology_free(drawn_topology *t) { mgrid_topology_free(t->topology); }

#endif
