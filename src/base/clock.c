/* SPDX-License-Identifier: MIT
**
** clock.c - the time, and pauses for loops that poll.
*/
#include "base/base.h"

#include <sched.h>
#include <time.h>

double mgrid_now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

double mgrid_processor_now(void) {
  struct timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

void mgrid_pause(int look) {
  struct timespec t = { 0, look < 1000 ? 50000 : 1000000 };
  if (look >= 200)
    nanosleep(&t, NULL);
  else if (look >= 16)
    sched_yield();
}
