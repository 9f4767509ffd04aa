/* SPDX-License-Identifier: MIT
**
** traffic.h - what families send: "2 GiB all_reduce x 96", and the bytes that this puts on edges
** between domains. What the traffic of a plan costs on a machine, level by level, and what it costs
** at least in any order of ranks.
*/
#ifndef MGRID_MACHINE_TRAFFIC_H
#define MGRID_MACHINE_TRAFFIC_H

#include "machine/model.h"
#include "plan/topology.h"

/* How a collective's bytes travel. */
typedef enum mgrid_pattern {
  /* every edge of the ring carries a share: consecutive members, and the last with the first */
  MGRID_RING,
  MGRID_CHAIN, /* consecutive members only, all bytes */
  MGRID_PAIRS  /* every pair of members, in both directions */
} mgrid_pattern;

typedef struct mgrid_collective {
  const char *name;
  mgrid_pattern pattern;
  double times; /* of (n - 1) / n of the bytes, on each edge of a ring of n members */
} mgrid_collective;
extern const mgrid_collective mgrid_collectives[]; /* ends with a NULL name */

/* One thing that every group of a family does. */
typedef struct mgrid_flow {
  char family[MGRID_NAME_MAX + 1];
  const mgrid_collective *by;
  double bytes; /* of one call, on each rank: the whole buffer */
  int64_t calls;
} mgrid_flow;

typedef struct mgrid_traffic {
  atomic_int refs;
  int64_t world; /* of the plan */
  size_t n;
  mgrid_flow *flow;
} mgrid_traffic;

extern const mgrid_item_kind mgrid_traffic_kind;
#define MGRID_TRAFFIC_NAME "traffic"
mgrid_traffic *mgrid_traffic_new(int64_t world, mgrid_error *err);
void mgrid_traffic_free(mgrid_traffic *t);
/* Add what a family sends, "2 GiB all_reduce x 96", or several of these with "+" between. */
mgrid_status mgrid_traffic_add(mgrid_traffic *t, const char *family, const char *text,
                               mgrid_error *err);
/* Read "tp = 2 GiB all_reduce x 96; dp = ...". */
mgrid_status mgrid_traffic_parse(mgrid_traffic *t, const char *text, mgrid_error *err);
/* Return the traffic that the plan's recipe says; NULL: none. */
const mgrid_traffic *mgrid_plan_traffic(const mgrid_plan *p);
/* Return the bytes on one edge of a group of n members, of all calls; of a pair in one direction
** for MGRID_PAIRS. */
double mgrid_flow_edge(const mgrid_flow *f, int64_t n);

/* Add to out[d] the bytes that leave each domain d of a level for others, of one flow; return their
** sum over all domains, or -1 after an error. A ring's edge between two domains counts in both.
** O(members), for MGRID_PAIRS O(members + domains touched). out may be NULL. */
double mgrid_flow_leaving(const mgrid_flow *flow, const mgrid_family *f, const int32_t *domain,
                          int64_t ndomains, double *out, mgrid_error *err);

/* ---------------------------------------------------------------------- cost */

/* Bytes between the domains of each level but the last, whose domains are places, the farthest
** first (the only level of a machine counts); and the seconds of the busiest link of each level
** whose bandwidth is known, added up. */
typedef struct mgrid_cost {
  size_t n;
  double bytes[MGRID_LEVELS_MAX];
  double seconds;
  /* no order of the ranks has fewer bytes at this level, with the same sizes */
  double bound[MGRID_LEVELS_MAX];
} mgrid_cost;

/* Compute the cost of a plan. traffic NULL: every family with communicators of its own does an
** all_reduce of 1 GiB. `timed`: with seconds. O(families x levels x modes) for rings of strided
** families; else, and for seconds, O(members). */
mgrid_status mgrid_cost_of(const mgrid_machine_model *m, const mgrid_plan *p,
                           const mgrid_traffic *traffic, bool timed, mgrid_cost *out,
                           mgrid_error *err);

#endif
