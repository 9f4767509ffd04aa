/* SPDX-License-Identifier: MIT
**
** assign.h - find out which node should run which ranks. Ranks are taken in blocks of consecutive
** ranks: a block has as many ranks as a node has places. Blocks that send much to each other go to
** nodes below the same switch. README.md of this folder explains machines, places, levels and
** domains.
*/
#ifndef MGRID_MACHINE_ASSIGN_H
#define MGRID_MACHINE_ASSIGN_H

#include "machine/traffic.h"

typedef struct mgrid_assignment {
  size_t level;   /* the level whose domains are nodes */
  int64_t each;   /* ranks of one node */
  int64_t blocks; /* blocks of ranks, hence nodes that run ranks */
  int32_t *node;  /* [blocks]: the node of each block */
} mgrid_assignment;

/* Find nodes for the blocks of a plan, level by level from the farthest. If each block runs on a
** node of its own now, one start of the search is the present order of the nodes: then the result
** never sends more bytes between domains of the farthest level. MGRID_REFUSED unless
** mgrid_assignable. */
mgrid_status mgrid_assign(const mgrid_machine_model *m, const mgrid_plan *p,
                          const mgrid_traffic *traffic, mgrid_assignment *out, mgrid_error *err);
void mgrid_assignment_free(mgrid_assignment *a);
/* Return a copy of the machine with the ranks on these nodes. If `nodes` is NULL, the ranks are in
** the order of places. */
mgrid_machine_model *mgrid_assigned(const mgrid_machine_model *m, const mgrid_assignment *a,
                                    const int32_t *nodes, int64_t world, mgrid_error *err);
/* Return whether mgrid_assign can work on the machine: its nodes, at most 16384, have one size and
** lie in several domains of the level before, and the ranks need more than one node. */
bool mgrid_assignable(const mgrid_machine_model *m, int64_t world);

#endif
