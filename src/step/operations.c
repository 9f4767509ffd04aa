/* SPDX-License-Identifier: MIT
**
** operations.c - the operations of a step, a row each.
*/
#include "step/step.h"

const step_operation mgrid_step_rows[STEP_KINDS] = {
  [STEP_ALL_REDUCE] = { "all_reduce", STEP_TOGETHER, .sized = true, .takes = "(group, bytes)" },
  [STEP_ALL_GATHER] = { "all_gather", STEP_TOGETHER, .sized = true, .takes = "(group, bytes)" },
  [STEP_REDUCE_SCATTER] = { "reduce_scatter", STEP_TOGETHER, .sized = true,
                            .takes = "(group, bytes)" },
  [STEP_ALL_TO_ALL] = { "all_to_all", STEP_TOGETHER, .sized = true,
                        .takes = "(group, bytes or a list by position)" },
  [STEP_BROADCAST] = { "broadcast", STEP_TOGETHER, true, true,
                       "(group, bytes, { root = position })" },
  [STEP_REDUCE] = { "reduce", STEP_TOGETHER, true, true, "(group, bytes, { root = position })" },
  [STEP_GATHER] = { "gather", STEP_TOGETHER, true, true, "(group, bytes, { root = position })" },
  [STEP_SCATTER] = { "scatter", STEP_TOGETHER, true, true, "(group, bytes, { root = position })" },
  [STEP_BARRIER] = { "barrier", STEP_TOGETHER, .takes = "(group)" },
  [STEP_SEND] = { "send", STEP_POINT, .sized = true, .takes = "(group, position, bytes)" },
  [STEP_RECV] = { "recv", STEP_POINT, .sized = true, .takes = "(group, position, bytes)" },
  [STEP_SENDRECV] = { "sendrecv", STEP_BLOCK, .sized = true, .takes = "(group, to, from, bytes)" },
  [STEP_GROUP] = { "group", STEP_BLOCK, .takes = "(function() ... end)" },
  [STEP_LOOP] = { "loop", STEP_BLOCK, .takes = "(count, function() ... end)" },
  [STEP_COMPUTE] = { "compute", STEP_LOCAL, .takes = "{ flops, bytes, seconds, name }" },
  [STEP_ALLOC] = { "alloc", STEP_LOCAL, .sized = true, .takes = "(name, bytes)" },
  [STEP_FREE] = { "free", STEP_LOCAL, .takes = "(name)" },
  [STEP_MARK] = { "mark", STEP_LOCAL, .takes = "(name)" },
  [STEP_EVENT] = { "event", STEP_ORDER, .takes = "()" },
  [STEP_WAIT] = { "wait", STEP_ORDER, .takes = "(stream or event)" },
  [STEP_HOST_WAIT] = { "host_wait", STEP_ORDER, .takes = "(stream)" },
};
