/* SPDX-License-Identifier: MIT
**
** assign.h - find out which host should run which ranks. Ranks are taken in blocks of consecutive
** ranks: a block has as many ranks as a host has places. Blocks that send much to each other go to
** hosts below the same switch. lua/sending.c calls these functions for machine:assign(plan).
** README.md of this folder explains machines, places, levels and domains.
*/
#ifndef MGRID_MACHINE_ASSIGN_H
#define MGRID_MACHINE_ASSIGN_H

#include "machine/traffic.h"

typedef struct mgrid_assignment {
  size_t node;    /* the level whose domains are hosts */
  int64_t each;   /* ranks of one host */
  int64_t blocks; /* blocks of ranks, hence hosts that run ranks */
  int32_t *host;  /* [blocks]: the host of each block */
} mgrid_assignment;

/* Find hosts for the blocks of a plan, level by level from the farthest. The search starts from
** several orders, also from the order in which the machine has the hosts now. So the result is
** never worse than the present order. MGRID_REFUSED if hosts have different numbers of places, or
** no level lies above the hosts. */
mgrid_status mgrid_assign(const mgrid_machine_model *m, const mgrid_plan *p,
                          const mgrid_traffic *traffic, mgrid_assignment *out, mgrid_error *err);
void mgrid_assignment_free(mgrid_assignment *a);
/* Return the machine with the ranks on these hosts; hosts NULL: with the ranks in the order of
** places. */
mgrid_machine_model *mgrid_assigned(const mgrid_machine_model *m, const mgrid_assignment *a,
                                    const int32_t *hosts, int64_t world, mgrid_error *err);
/* Return whether mgrid_assign can work on the machine: its hosts have one size and lie in several
** domains. */
bool mgrid_assignable(const mgrid_machine_model *m, int64_t world);

#endif
