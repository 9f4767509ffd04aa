/* SPDX-License-Identifier: MIT
**
** assign.h - which host takes which ranks. Ranks are taken in blocks, as many as a host has places;
** blocks that send much to each other go to hosts below one switch.
*/
#ifndef MGRID_MACHINE_ASSIGN_H
#define MGRID_MACHINE_ASSIGN_H

#include "machine/traffic.h"

typedef struct mgrid_assignment {
  size_t node;    /* the level of hosts */
  int64_t each;   /* ranks of a host */
  int64_t blocks; /* hosts that take ranks */
  int32_t *host;  /* [blocks]: of each block */
} mgrid_assignment;

/* Find hosts for the blocks of a plan, level by level from the farthest: by swaps from several
** starts, among them the order in which the machine has the hosts now, so the result is never worse
** than that. MGRID_REFUSED if hosts have different numbers of places, or nothing is above them. */
mgrid_status mgrid_assign(const mgrid_machine_model *m, const mgrid_plan *p,
                          const mgrid_traffic *traffic, mgrid_assignment *out, mgrid_error *err);
void mgrid_assignment_free(mgrid_assignment *a);
/* The machine with ranks on these hosts; hosts NULL: in the order of places. */
mgrid_machine_model *mgrid_assigned(const mgrid_machine_model *m, const mgrid_assignment *a,
                                    const int32_t *hosts, int64_t world, mgrid_error *err);
/* Return whether there is something to assign: hosts of one size below several domains. */
bool mgrid_assignable(const mgrid_machine_model *m, int64_t world);

#endif
