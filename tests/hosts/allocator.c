/* SPDX-License-Identifier: MIT
**
** allocator.c - a host's own malloc, as jemalloc and tcmalloc are: linked into the program, or
** preloaded. Its free ends the process where a block is not its own, so memory of another allocator
** that comes here is found.
*/
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { MARK = 0x4d474d47 };

typedef struct head {
  size_t size;
  uint32_t mark, pad;
} head;

static char *at, *end;
static size_t blocks;

static void die(const char *why) {
  (void)!write(2, why, strlen(why));
  _exit(99);
}

void *malloc(size_t size) {
  size_t whole = (size + sizeof(head) + 15) & ~(size_t)15;
  if ((size_t)(end - at) < whole) {
    size_t chunk = whole > ((size_t)64 << 20) ? whole : (size_t)64 << 20;
    at = mmap(NULL, chunk, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED) die("no memory\n");
    end = at + chunk;
  }
  head *h = (head *)(void *)at;
  *h = (head){ size, MARK, 0 };
  at += whole;
  blocks++;
  return h + 1;
}

void free(void *block) {
  if (!block) return;
  head *h = (head *)block - 1;
  if (h->mark != MARK) die("free of a block that is not of this allocator\n");
  h->mark = 0;
}

void *calloc(size_t n, size_t size) { return memset(malloc(n * size), 0, n * size); }

void *realloc(void *block, size_t size) {
  void *larger = malloc(size);
  if (!block) return larger;
  head *h = (head *)block - 1;
  if (h->mark != MARK) die("realloc of a block that is not of this allocator\n");
  memcpy(larger, block, h->size < size ? h->size : size);
  free(block);
  return larger;
}

void *aligned_alloc(size_t alignment, size_t size) {
  (void)alignment;
  return malloc(size);
}
