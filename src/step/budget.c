/* SPDX-License-Identifier: MIT
**
** budget.c - what an evaluation, a proof or a price of a step may spend.
*/
#include "step/step.h"

#include <inttypes.h>

static bool pay(void *ud, int64_t work) {
  step_budget *b = ud;
  b->count += (uint64_t)work;
  b->slow |= mgrid_processor_now() - b->began > b->limits->seconds;
  return !b->slow && b->count <= b->limits->instructions;
}

void mgrid_step_budget_begin(step_budget *b, const mgrid_limits *limits, const char *what) {
  *b = (step_budget){ .limits = limits, .what = what, .began = mgrid_processor_now() };
  b->payer = (mgrid_payer){ pay, b, 0, false };
}

bool mgrid_step_budget_hold(step_budget *b, size_t bytes) {
  b->held += bytes;
  b->large |= b->held > STEP_MEMORY_MAX;
  b->payer.spent |= b->large;
  return !b->large;
}

mgrid_status mgrid_step_budget_spent(const step_budget *b, mgrid_error *err) {
  if (b->large)
    return mgrid_fail(err, MGRID_LIMIT, "%s needs more than %zu MiB of memory", b->what, STEP_MEMORY_MAX >> 20);
  if (b->slow)
    return mgrid_fail(err, MGRID_LIMIT, "%s takes more than %g s of processor time", b->what, b->limits->seconds);
  return mgrid_fail(err, MGRID_LIMIT, "%s takes more than %" PRIu64 " instructions", b->what, b->limits->instructions);
}
