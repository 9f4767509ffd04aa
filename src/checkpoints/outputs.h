/* SPDX-License-Identifier: MIT
**
** outputs.h - finds which stored tensors make which tensors of the result.
*/
#ifndef MGRID_OUTPUTS_H
#define MGRID_OUTPUTS_H

#include "checkpoints/names.h"
#include "checkpoints/views.h"
#include "plan/plan.h"

typedef struct output {
  const char *name; /* in the result */
  const char *of;   /* the tensor of the plan by which it is cut */
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
  bool *used;              /* [stored tensors] */
  bool *made;              /* [tensors of the plan] */
  json_t *stored, *wanted; /* name -> index, of the checkpoint's tensors and of the plan's */
} outputs;

/* Find them; the fields up to `convert` are set. Refuse stored tensors that nothing needs, and
** tensors of the plan that nothing makes. */
mgrid_status outputs_find(outputs *o, mgrid_error *err);
void outputs_free(outputs *o);

#endif
