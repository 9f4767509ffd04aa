/* SPDX-License-Identifier: MIT
**
** budget.c - what an evaluation, a proof or a price of a step may spend.
*/
#include "step/step.h"

#include <inttypes.h>

void mgrid_step_budget_begin(step_budget *b, const mgrid_limits *limits, const char *what) {
  *b = (step_budget){ mgrid_budget_new(limits->instructions, limits->seconds),
                      mgrid_budget_new(STEP_MEMORY_MAX, 0), limits, what };
}

bool mgrid_step_budget_hold(step_budget *b, size_t bytes) {
  b->work.exhausted |= !mgrid_spend(&b->memory, (int64_t)bytes);
  return !b->memory.exhausted;
}

mgrid_status mgrid_step_budget_spent(const step_budget *b, mgrid_error *err) {
  if (b->memory.exhausted)
    return mgrid_fail(err, MGRID_LIMIT, "%s needs more than %zu MiB of memory", b->what,
                      STEP_MEMORY_MAX >> 20);
  if (b->work.slow)
    return mgrid_fail(err, MGRID_LIMIT, "%s takes more than %g s of processor time", b->what,
                      b->limits->seconds);
  return mgrid_fail(err, MGRID_LIMIT, "%s takes more than %" PRIu64 " instructions", b->what,
                    b->limits->instructions);
}
