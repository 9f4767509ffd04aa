/* SPDX-License-Identifier: MIT
**
** of_plan.h - tensors as things of a topology and a plan.
*/
#ifndef MGRID_OF_PLAN_H
#define MGRID_OF_PLAN_H

#include "plan/plan.h"
#include "tensors/tensor.h"

extern const mgrid_item_kind mgrid_tensor_kind;

/* The tensor of that name; NULL after a refusal with the nearest. */
const mgrid_tensor *mgrid_plan_require_tensor(const mgrid_plan *p, const char *name, mgrid_error *err);
void                mgrid_tensor_json(const mgrid_tensor *t, int64_t rank, struct mgrid_json *w); /* json.c */
/* Write the members of flats that are no tensors of the plan, which the texts of the others do not have. */
void mgrid_tensors_json_flats(const struct mgrid_content *c, struct mgrid_json *w);

#endif
