/* SPDX-License-Identifier: MIT
**
** outputs.h - finds the stored tensors of which each tensor of the result is made.
*/
#ifndef MGRID_OUTPUTS_H
#define MGRID_OUTPUTS_H

#include "checkpoints/names.h"
#include "checkpoints/views.h"
#include "plan/plan.h"

typedef struct output { /* a tensor of the result */
  const char *name;
  const char *of; /* the tensor of the plan that has this output's cut */
  const mgrid_tensor *tensor;
  view view;
} output;

typedef struct outputs {
  const mgrid_plan *plan;
  const shards *from;
  const char *recipe; /* for messages */
  const names *given; /* rules of --names; NULL: none */
  const names *own;   /* rules of the recipe; NULL: none */
  bool convert;
  size_t n;
  output *at;              /* [n] */
  bool *used;              /* [stored tensors]: an output needs the tensor, or a rule drops it */
  bool *made;              /* [tensors of the plan]: the tensor has an output */
  json_t *stored, *wanted; /* by name, the index of a tensor of the checkpoint, and of the plan */
} outputs;

/* Find all outputs. The caller has set the fields up to `convert`. Refuse stored tensors that
** nothing needs, and tensors of the plan that nothing makes. */
mgrid_status outputs_find(outputs *o, mgrid_error *err);
void outputs_free(outputs *o);

#endif
