/* SPDX-License-Identifier: MIT
**
** waiting.h - who waits for whom in an execution that came to a halt.
*/
#ifndef MGRID_STEP_WAITING_H
#define MGRID_STEP_WAITING_H

#include "step/step.h"

typedef struct step_wait {
  int64_t rank;
  int32_t cursor; /* of the rank's type: what it is in; -1: it has ended */
  uint32_t node;  /* the entry in which it waits */
} step_wait;

/* Receives a rank that another one waits for in to->node, and whether it will make that call; true
** ends the walk. */
typedef bool mgrid_step_awaited_fn(const step_wait *to, bool will, void *ud);
/* Call fn for each rank that this one waits for. */
bool mgrid_step_each_awaited(const step_machine *m, const step_wait *from,
                             mgrid_step_awaited_fn *fn, void *ud);
/* Write a shortest cycle, at most `most` ranks, each waiting for the next and the last for the
** first; return how many. In worlds of up to 1024 ranks none is shorter; in larger ones none
** through the first ranks of the types. */
size_t mgrid_step_shortest_cycle(const step_machine *m, size_t most, step_wait *out,
                                 mgrid_error *err);

#endif
