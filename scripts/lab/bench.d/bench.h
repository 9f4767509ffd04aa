/* SPDX-License-Identifier: MIT
**
** bench.h - shared by the programs of the benchmark: a clock, output, counted memory.
**
** A program prints lines "KEY<tab>NUMBER"; a repeated key is another sample of the
** same quantity. scripts/lab/bench.d/bench.lua makes tables of them.
*/
#ifndef BENCH_H
#define BENCH_H

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static inline double now(void) { /* seconds; one clock for all processes of the machine */
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

__attribute__((format(printf, 2, 3))) static inline void sample(double value, const char *key,
                                                                ...) {
  va_list args;
  va_start(args, key);
  vprintf(key, args);
  va_end(args);
  printf("\t%.9g\n", value);
}

__attribute__((noreturn)) static inline void die(const char *why) {
  fprintf(stderr, "bench: %s\n", why);
  exit(1);
}

/* memory.c, in the programs that are built with it: every allocation of the process. */
typedef struct memory {
  long calls;        /* malloc, calloc, realloc, ... */
  size_t live, peak; /* bytes, as malloc_usable_size counts them */
} memory;
extern memory memory_used;

#endif
