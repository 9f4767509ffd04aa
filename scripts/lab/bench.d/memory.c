/* SPDX-License-Identifier: MIT
**
** memory.c - replaces the C library's allocator for the whole process, the shared
** libraries included, and counts. Not thread-safe.
*/
#include "bench.h"

#include <errno.h>
#include <malloc.h>

memory memory_used;

/* The C library's own functions, which it exports under these names. */
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t n, size_t each);
void *__libc_realloc(void *p, size_t size);
void *__libc_memalign(size_t align, size_t size);
void __libc_free(void *p);

static void *took(void *p) {
  memory_used.calls++;
  if (p) memory_used.live += malloc_usable_size(p);
  if (memory_used.live > memory_used.peak) memory_used.peak = memory_used.live;
  return p;
}

static void gave(void *p) {
  if (p) memory_used.live -= malloc_usable_size(p);
}

void *malloc(size_t size) { return took(__libc_malloc(size)); }
void *calloc(size_t n, size_t each) { return took(__libc_calloc(n, each)); }
void *memalign(size_t align, size_t size) { return took(__libc_memalign(align, size)); }
void *aligned_alloc(size_t align, size_t size) { return took(__libc_memalign(align, size)); }

int posix_memalign(void **p, size_t align, size_t size) {
  void *got = took(__libc_memalign(align, size));
  if (!got) return ENOMEM;
  *p = got;
  return 0;
}

void *realloc(void *p, size_t size) {
  gave(p);
  return took(__libc_realloc(p, size));
}

void free(void *p) {
  gave(p);
  __libc_free(p);
}
