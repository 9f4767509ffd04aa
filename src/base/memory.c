/* SPDX-License-Identifier: MIT
**
** memory.c - memory and log lines through the host's hooks, arrays that grow, the hash table of
** index.h, and the budget of long work. Nothing here makes an error; callers do.
*/
#include "base/base.h"
#include "base/index.h"

#include <stdlib.h>
#include <string.h>

/* ========================================================= hooks of the host */

void *mgrid_allocate(void *ud, void *block, size_t was, size_t bytes) {
  (void)ud, (void)was;
  if (bytes > 0) return block ? realloc(block, bytes) : malloc(bytes); /* realloc(NULL) is slower */
  free(block);
  return NULL;
}

void *mgrid_realloc(const mgrid_hooks *h, void *block, size_t was, size_t bytes) {
  return h && h->allocate ? h->allocate(h->ud, block, was, bytes)
                          : mgrid_allocate(NULL, block, was, bytes);
}

void *mgrid_zeroed(const mgrid_hooks *h, size_t bytes) {
  if (!h || !h->allocate) return calloc(1, bytes);
  void *block = h->allocate(h->ud, NULL, 0, bytes);
  return block ? memset(block, 0, bytes) : NULL;
}

void mgrid_release(void *block) { free(block); }

char *mgrid_strdup(const char *s) {
  size_t len = strlen(s) + 1;
  char *copy = malloc(len);
  if (copy) memcpy(copy, s, len);
  return copy;
}

void mgrid_log(const mgrid_hooks *h, mgrid_level level, const char *fmt, ...) {
  char line[1024];
  va_list args;
  if (!h || !h->log) return;
  va_start(args, fmt);
  mgrid_vformat(line, sizeof line, fmt, args);
  va_end(args);
  /* the host gets a recipe's output unchanged */
  if (level != MGRID_LOG_RECIPE) mgrid_show(line, sizeof line);
  h->log(h->ud, level, line);
}

/* ==================================================================== arrays */

bool mgrid_room(void *array, size_t *room, size_t n, size_t each) {
  size_t most = *room ? *room : 1;
  void *block; /* the array, whose pointer type is not known here */
  if (n <= *room) return true;
  if (n > SIZE_MAX / 2 / each) return false; /* possible where sizes have 32 bits */
  while (most < n) most *= 2;
  memcpy(&block, array, sizeof block);
  if (!(block = realloc(block, most * each))) return false;
  memcpy(array, &block, sizeof block);
  *room = most;
  return true;
}

bool mgrid_grow(void *array, size_t n, size_t more, size_t each) {
  size_t room = n;
  if (n & (n - 1)) room = (size_t)1 << (64 - __builtin_clzll(n)); /* the next power of two */
  return mgrid_room(array, &room, n + more, each);
}

/* ============================================================ the hash table */

static void memory_put(const mgrid_index *x, mgrid_slot s) {
  size_t at = s.hash;
  while (x->slot[at & (x->room - 1)].number) at++;
  x->slot[at & (x->room - 1)] = s;
}

bool mgrid_index_put(mgrid_index *x, uint64_t hash, int32_t number) {
  if (2 * (x->n + 1) > x->room) {
    mgrid_index more = { .n = x->n, .room = x->room ? 2 * x->room : 32 };
    if (!(more.slot = calloc(more.room, sizeof *more.slot))) return false;
    for (size_t i = 0; i < x->room; i++)
      if (x->slot[i].number) memory_put(&more, x->slot[i]);
    free(x->slot);
    *x = more;
  }
  memory_put(x, (mgrid_slot){ (uint32_t)hash, number + 1 });
  x->n++;
  return true;
}

void mgrid_index_clear(mgrid_index *x) {
  if (x->slot) memset(x->slot, 0, x->room * sizeof *x->slot);
  x->n = 0;
}

void mgrid_index_free(mgrid_index *x) {
  free(x->slot);
  *x = (mgrid_index){ 0 };
}

/* ================================================================ the budget */

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

/* Return whether this thread has worked longer than allowed. Ask the kernel for processor time only
** if that much time has passed on the clock. */
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
