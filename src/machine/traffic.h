/* SPDX-License-Identifier: MIT
**
** traffic.h - what the families of a plan send ("2 GiB all_reduce x 96"), and what this costs on a
** machine: the bytes between the domains of each level, the seconds of the busiest links, and a
** lower bound of the bytes for any order of the ranks.
*/
#ifndef MGRID_MACHINE_TRAFFIC_H
#define MGRID_MACHINE_TRAFFIC_H

#include "machine/model.h"
#include "plan/topology.h"

/* Which members of a group exchange bytes in a collective. */
typedef enum mgrid_pattern {
  /* consecutive members, and the last with the first: each edge of the ring carries a share */
  MGRID_RING,
  MGRID_CHAIN, /* only consecutive members: each edge carries all bytes */
  MGRID_PAIRS  /* every pair of members, in both directions */
} mgrid_pattern;

typedef struct mgrid_collective {
  const char *name;
  mgrid_pattern pattern;
  double times; /* one edge of a ring of n members carries times * (n - 1) / n of the bytes */
} mgrid_collective;
extern const mgrid_collective mgrid_collectives[]; /* ends with a NULL name */

/* One collective that every group of a family calls. */
typedef struct mgrid_flow {
  char family[MGRID_NAME_MAX + 1];
  const mgrid_collective *by;
  double bytes; /* size of the whole buffer in one call */
  int64_t calls;
} mgrid_flow;

typedef struct mgrid_traffic {
  atomic_int refs;
  int64_t world; /* world of the plan */
  size_t n;
  mgrid_flow *flow;
} mgrid_traffic;

extern const mgrid_item_kind mgrid_traffic_kind;
#define MGRID_TRAFFIC_NAME "traffic"
mgrid_traffic *mgrid_traffic_new(int64_t world, mgrid_error *err);
void mgrid_traffic_free(mgrid_traffic *t);
/* Add what a family sends: "2 GiB all_reduce x 96", or several of these joined by "+". */
mgrid_status mgrid_traffic_add(mgrid_traffic *t, const char *family, const char *text,
                               mgrid_error *err);
/* Read "tp = 2 GiB all_reduce x 96; dp = ...". */
mgrid_status mgrid_traffic_parse(mgrid_traffic *t, const char *text, mgrid_error *err);
/* Return the traffic that the plan's recipe gives; NULL: none. */
const mgrid_traffic *mgrid_plan_traffic(const mgrid_plan *p);
/* Return the bytes that one edge of a group of n members carries in all calls; for MGRID_PAIRS the
** bytes between two members in one direction. */
double mgrid_flow_edge(const mgrid_flow *f, int64_t n);

/* Unless `out` is NULL, add to out[d] the bytes of one flow that leave each domain d of a level;
** the bytes of an edge between two domains count for each of the two. Return the bytes that go from
** one domain to another, where an edge counts once; or -1 after an error. O(members). */
double mgrid_flow_leaving(const mgrid_flow *flow, const mgrid_family *f, const int32_t *domain,
                          int64_t ndomains, double *out, mgrid_error *err);

/* ---------------------------------------------------------------------- cost */

/* The cost of a plan, by level from far to near: the bytes between the domains of each level. The
** last level, whose domains are single places, is left out unless the machine has no other. For
** each level of known bandwidth, `seconds` adds the time of its busiest link. */
typedef struct mgrid_cost {
  size_t n;
  double bytes[MGRID_LEVELS_MAX];
  double seconds;
  /* by level: with groups of these sizes, no order of the ranks sends fewer bytes */
  double bound[MGRID_LEVELS_MAX];
} mgrid_cost;

/* Compute the cost of a plan. traffic NULL: every family with communicators of its own calls an
** all_reduce of 1 GiB. `timed`: compute seconds, too. Rings of strided families take O(families x
** levels x modes); other flows, and seconds, take O(members). */
mgrid_status mgrid_cost_of(const mgrid_machine_model *m, const mgrid_plan *p,
                           const mgrid_traffic *traffic, bool timed, mgrid_cost *out,
                           mgrid_error *err);

#endif
