/* SPDX-License-Identifier: MIT
**
** fast_clock.c - preloaded: the processor time of a thread, which the limits of a recipe count,
** runs ten times as fast.
*/
#include <dlfcn.h>
#include <string.h>
#include <time.h>

int clock_gettime(clockid_t id, struct timespec *t) {
  static int (*real)(clockid_t, struct timespec *);
  if (!real) {
    void *found = dlsym(RTLD_NEXT, "clock_gettime");
    memcpy(&real, &found, sizeof real);
  }
  int rc = real(id, t);
  if (id != CLOCK_THREAD_CPUTIME_ID) return rc;
  long long ns = 10 * (1000000000LL * t->tv_sec + t->tv_nsec);
  t->tv_sec = ns / 1000000000, t->tv_nsec = ns % 1000000000;
  return rc;
}
