/* SPDX-License-Identifier: MIT
**
** policy.h - the inside of a policy: policy.c finds and calls it, policy_result.c reads its result.
*/
#ifndef MGRID_SCRIPT_POLICY_H
#define MGRID_SCRIPT_POLICY_H

#include "comm/compare.h"
#include "recipe/runtime.h"

struct mgrid_policy {
  mgrid_made_by  made_by;
  mgrid_runtime *rt;
  mgrid_state   *state;
  int            function, box, params, result; /* references in the registry; box: the State that the recipe sees */
  char           name[64];
  char           agreed[64]; /* "world" or the family whose groups compare its results; "": not compared */
  char           where[256]; /* "file:line: " of the function */
  mgrid_peers    peers;      /* the ranks that compare */
};

#endif
