/* SPDX-License-Identifier: MIT
**
** placing.h - what place shows, for its files alone.
*/
#ifndef MGRID_MACHINE_PLACING_H
#define MGRID_MACHINE_PLACING_H

#include "machine/command/given.h"
#include "machine/command/sending.h"
#include "plan/plan.h"

#include <jansson.h>

/* What is shown: counts of families at levels, and the bytes of flows. */
typedef struct placing {
  const cli                 *c;
  const mgrid_plan          *p;
  const mgrid_machine_model *m;
  const sending             *sends;
  const mgrid_traffic       *traffic; /* NULL: none is known */
  int                       *family;  /* [n] entries of the plan */
  size_t                     n, levels;
  mgrid_machine_counts      *counts;  /* [n * levels] */
  double                    *bytes;   /* the same; -1: not known */
  double                   **leaving; /* [levels]: of each domain, or NULL */
  int64_t                   *domains; /* [levels] of `leaving` */
} placing;

static inline size_t cli_placed(const placing *x, size_t family, size_t level) { return family * x->levels + level; }
static inline const mgrid_entry *cli_placed_entry(const placing *x, size_t i) {
  return &x->p->content.entry[x->family[i]];
}

/* Print what follows for NCCL: the families inside NVLink domains, those that keep to their rails, variables to set. facts.c */
void    cli_nccl_facts(const placing *x);
json_t *cli_nccl_json(const placing *x);

#endif
