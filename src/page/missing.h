/* SPDX-License-Identifier: MIT
**
** missing.h - what the C library of WebAssembly lacks; `make wasm` includes it before every file.
*/
#ifndef MGRID_PAGE_MISSING_H
#define MGRID_PAGE_MISSING_H

#include <sched.h>
#include <stdlib.h>
#include <time.h>

/* A page has no clock for the processor time of a thread. The wall clock replaces it, because the
** page's worker does nothing else meanwhile. */
#undef CLOCK_THREAD_CPUTIME_ID
#define CLOCK_THREAD_CPUTIME_ID CLOCK_MONOTONIC

/* Which processors may be used is not known. */
#define sched_getaffinity(pid, size, set) ((void)(set), -1)
#undef CPU_COUNT
#define CPU_COUNT(set) 0

/* qsort_r, with its arguments in globals: a page has one thread. */
typedef int missing_order(const void *, const void *, void *);
static missing_order *missing_by;
static void *missing_ud;
static inline int missing_compare(const void *a, const void *b) {
  return missing_by(a, b, missing_ud);
}
static inline void qsort_r(void *base, size_t n, size_t size, missing_order *by, void *ud) {
  missing_by = by, missing_ud = ud;
  qsort(base, n, size, missing_compare);
}

#endif
