/* SPDX-License-Identifier: MIT
**
** failing.h - allocations that fail when a test says so: the linker routes malloc, calloc and
** realloc of the program and of the libraries that it is linked from through this file (--wrap).
** Included by one file of a program.
*/
#ifndef TEST_FAILING_H
#define TEST_FAILING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

void *__real_malloc(size_t bytes);
void *__real_calloc(size_t n, size_t bytes);
void *__real_realloc(void *p, size_t bytes);
void *__wrap_malloc(size_t bytes);
void *__wrap_calloc(size_t n, size_t bytes);
void *__wrap_realloc(void *p, size_t bytes);

#ifndef MOST_AT_ONCE
#define MOST_AT_ONCE SIZE_MAX /* bytes; more is never given */
#endif

long until_failure = -1; /* allocations left before one fails; -1: none does */

static bool fails(size_t bytes) {
  return bytes > MOST_AT_ONCE || (until_failure >= 0 && until_failure-- == 0);
}

void *__wrap_malloc(size_t bytes) { return fails(bytes) ? NULL : __real_malloc(bytes); }
void *__wrap_calloc(size_t n, size_t bytes) {
  return fails(bytes && n > SIZE_MAX / bytes ? SIZE_MAX : n * bytes) ? NULL
                                                                     : __real_calloc(n, bytes);
}
void *__wrap_realloc(void *p, size_t bytes) {
  return fails(bytes) ? NULL : __real_realloc(p, bytes);
}

#endif
