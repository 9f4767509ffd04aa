/* SPDX-License-Identifier: MIT
**
** cost.h - what the traffic of a plan costs on a machine, level by level, and what it costs at least in any order of ranks.
*/
#ifndef MGRID_MACHINE_COST_H
#define MGRID_MACHINE_COST_H

#include "machine/traffic.h"

/* Bytes between the domains of each level but the last, the farthest first; and the seconds of the busiest link of each
** level whose bandwidth is known, added up. */
typedef struct mgrid_cost {
  size_t n;
  double bytes[MGRID_LEVELS_MAX];
  double seconds;
  double bound[MGRID_LEVELS_MAX]; /* no order of the ranks has fewer bytes at this level, with the same sizes */
} mgrid_cost;

/* What is kept between plans of one world: the domain of each rank. */
typedef struct mgrid_costing {
  const mgrid_machine_model *m;
  int64_t                    world;
  bool                       timed; /* compute seconds */
  int32_t                   *domain[MGRID_LEVELS_MAX];
  int64_t                    domains[MGRID_LEVELS_MAX];
} mgrid_costing;

void mgrid_costing_free(mgrid_costing *c);
/* Return the levels that costs are of: all but the last, whose domains are places; the only one of a machine counts. */
size_t mgrid_cost_levels(const mgrid_machine_model *m);
/* Compute the cost of a plan. traffic NULL: every family with communicators of its own does an all_reduce of 1 GiB.
** O(families x levels x modes) for rings of strided families; else O(members). */
mgrid_status mgrid_cost_of(mgrid_costing *c, const mgrid_plan *p, const mgrid_traffic *traffic, mgrid_cost *out,
                           mgrid_error *err);
/* Order of costs: fewer bytes at the farthest level that differs; or fewer seconds, then bytes. */
int mgrid_cost_compare(const mgrid_cost *a, const mgrid_cost *b, bool timed);

#endif
