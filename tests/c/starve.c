/* SPDX-License-Identifier: MIT
**
** starve.c - preloaded into a program: its allocation number STARVE fails, and with STARVE_ALL
** every later one.
*/
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t n, size_t bytes);
void *__libc_realloc(void *p, size_t bytes);

static bool fails(void) {
  static long until = -2;
  if (until == -2) until = getenv("STARVE") ? strtol(getenv("STARVE"), NULL, 10) : -1;
  if (until > 0)
    until--;
  else if (until == 0) {
    if (!getenv("STARVE_ALL")) until = -1;
    errno = ENOMEM;
    return true;
  }
  return false;
}

void *malloc(size_t bytes) { return fails() ? NULL : __libc_malloc(bytes); }
void *calloc(size_t n, size_t bytes) { return fails() ? NULL : __libc_calloc(n, bytes); }
void *realloc(void *p, size_t bytes) { return fails() ? NULL : __libc_realloc(p, bytes); }
