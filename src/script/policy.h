/* SPDX-License-Identifier: MIT
**
** policy.h - what a policy is inside, for the files that make it: policy.c finds, calls and reads it,
** policy_agree.c compares what ranks got.
*/
#ifndef MG_SCRIPT_POLICY_H
#define MG_SCRIPT_POLICY_H

#include "script/runtime.h"

struct mg_policy {
  mg_runtime *rt;
  mg_state   *state;
  int         function, box, params, result; /* references in the registry */
  char        name[64], agreed[64];          /* "": nobody compares; "world" or a family */
  char        where[256];                    /* "file:line: " of the function */
  const mg_group *group; /* who compares, where it is a family; NULL: the world, or this rank alone */
  void           *buffer; /* of the backend, for what they tell each other */
};

/* What has no place in the recipe, such as a limit that is hit below it, happened in this policy. */
void mg_policy_place(const mg_policy *p, mg_error *err);
/* Room for the comparison, so that no rank misses one for want of memory. Local. */
mg_status mg_policy_open_circle(mg_policy *p, mg_error *err);
void      mg_policy_close_circle(mg_policy *p);
/* The call came to `status` here, and to *err: does it, and its result, on all who agree? Collective over
** them. */
mg_status mg_policy_agree(mg_policy *p, mg_status status, mg_error *err);

#endif
