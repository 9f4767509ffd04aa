/* SPDX-License-Identifier: MIT
**
** of_plan.h - tensors in a topology and in a plan (tensors_item.c).
*/
#ifndef MGRID_OF_PLAN_H
#define MGRID_OF_PLAN_H

#include "plan/plan.h"
#include "tensors/tensor.h"

extern const mgrid_item_kind mgrid_tensor_kind;

/* Return the tensor of that name. NULL: there is none; the error has the nearest name. */
const mgrid_tensor *mgrid_plan_require_tensor(const mgrid_plan *p, const char *name,
                                              mgrid_error *err);
#endif
