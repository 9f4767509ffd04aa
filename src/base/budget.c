/* SPDX-License-Identifier: MIT
**
** budget.c - what long work may cost.
*/
#include "base/base.h"

enum { LOOK = 4096 }; /* work between two looks at the clock */

mgrid_budget mgrid_budget_new(uint64_t limit, double seconds) {
  mgrid_budget b = { .limit = limit < INT64_MAX ? limit : INT64_MAX, .seconds = seconds };
  if (seconds <= 0) b.look = b.limit + 1;
  mgrid_budget_resume(&b);
  return b;
}

void mgrid_budget_resume(mgrid_budget *b) {
  b->began = b->looked = mgrid_now();
  b->processor = -1;
}

void mgrid_budget_pause(mgrid_budget *b) {
  if (b->processor >= 0) b->spent += mgrid_processor_now() - b->processor;
}

/* Return whether this thread has worked longer than allowed. The kernel is asked only if that much time has passed at
** all. */
static bool is_slow(mgrid_budget *b) {
  double left = b->seconds - b->spent;
  if (b->processor < 0) b->processor = mgrid_processor_now();
  b->looked = mgrid_now();
  return b->looked - b->began > left && mgrid_processor_now() - b->processor > left;
}

bool mgrid_budget_look(mgrid_budget *b, int64_t work) {
  if (b->exhausted) return false;
  b->used = (uint64_t)work <= b->limit - b->used ? b->used + (uint64_t)work : b->limit + 1;
  b->slow = b->seconds > 0 && is_slow(b);
  b->exhausted = b->slow || b->used > b->limit;
  b->look = b->seconds > 0 && b->limit - b->used >= LOOK ? b->used + LOOK : b->limit + 1;
  return !b->exhausted;
}
