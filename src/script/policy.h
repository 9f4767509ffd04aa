/* SPDX-License-Identifier: MIT
**
** policy.h - what a policy is inside, for the files that make it: policy.c finds, calls and reads it,
** policy_agree.c compares what ranks got.
*/
#ifndef MGRID_SCRIPT_POLICY_H
#define MGRID_SCRIPT_POLICY_H

#include "script/runtime.h"

struct mgrid_policy {
  mgrid_runtime     *rt;
  mgrid_state       *state;
  int                function, box, params, result; /* references in the registry */
  char               name[64], agreed[64];          /* "": nobody compares; "world" or a family */
  char               where[256];                    /* "file:line: " of the function */
  const mgrid_group *group;  /* who compares, where it is a family; NULL: the world, or this rank alone */
  void              *buffer; /* of the backend, for what they tell each other */
};

/* What has no place in the recipe, such as a limit that is hit below it, happened in this policy. */
void mgrid_policy_place(const mgrid_policy *p, mgrid_error *err);
/* Room for the comparison, so that no rank misses one for want of memory. Local. */
mgrid_status mgrid_policy_open_circle(mgrid_policy *p, mgrid_error *err);
void         mgrid_policy_close_circle(mgrid_policy *p);
/* The call came to `status` here, and to *err: does it, and its result, on all who agree? Collective over
** them. */
mgrid_status mgrid_policy_agree(mgrid_policy *p, mgrid_status status, mgrid_error *err);

#endif
