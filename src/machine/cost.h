/* SPDX-License-Identifier: MIT
**
** cost.h - what the traffic of a plan costs on a machine, level by level, and what it costs at least in any order of ranks.
*/
#ifndef MGRID_MACHINE_COST_H
#define MGRID_MACHINE_COST_H

#include "machine/traffic.h"

/* Bytes between the domains of each level but the last, whose domains are places, the farthest first (the only level of a
** machine counts); and the seconds of the busiest link of each level whose bandwidth is known, added up. */
typedef struct mgrid_cost {
  size_t n;
  double bytes[MGRID_LEVELS_MAX];
  double seconds;
  double bound[MGRID_LEVELS_MAX]; /* no order of the ranks has fewer bytes at this level, with the same sizes */
} mgrid_cost;

/* Compute the cost of a plan. traffic NULL: every family with communicators of its own does an all_reduce of 1 GiB. `timed`:
** with seconds. O(families x levels x modes) for rings of strided families; else, and for seconds, O(members). */
mgrid_status mgrid_cost_of(const mgrid_machine_model *m, const mgrid_plan *p, const mgrid_traffic *traffic, bool timed,
                           mgrid_cost *out, mgrid_error *err);

#endif
