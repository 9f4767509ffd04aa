/* SPDX-License-Identifier: MIT
**
** lists.c - lists of numbers, each kept once: equal lists have one number.
*/
#include "step/step.h"

#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

void mgrid_step_lists_free(step_lists *x) {
  free(x->start);
  free(x->data);
  free(x->index);
  free(x->hash);
}

static bool grow(step_lists *x) {
  if (2 * (x->n + 1) <= x->room) return true;
  size_t   room = x->room ? 2 * x->room : 256;
  int32_t *index = malloc(room * sizeof *index);
  if (!index) return false;
  memset(index, -1, room * sizeof *index);
  for (size_t i = 0; i < x->n; i++) {
    size_t at = x->hash[i] & (room - 1);
    while (index[at] >= 0) at = (at + 1) & (room - 1);
    index[at] = (int32_t)i;
  }
  free(x->index);
  x->index = index, x->room = room;
  return true;
}

int32_t mgrid_step_lists_put(step_lists *x, const int32_t *list, size_t n) {
  if (!grow(x)) return -1;
  uint64_t hash = XXH3_64bits(list, n * sizeof *list);
  size_t   at = hash & (x->room - 1);
  for (; x->index[at] >= 0; at = (at + 1) & (x->room - 1)) {
    size_t i = (size_t)x->index[at], length = x->start[i + 1] - x->start[i];
    if (x->hash[i] == hash && length == n && memcmp(&x->data[x->start[i]], list, n * sizeof *list) == 0)
      return (int32_t)i;
  }
  size_t   *start = x->n & (x->n - 1) ? x->start : realloc(x->start, ((x->n ? 2 * x->n : 1) + 1) * sizeof *start);
  uint64_t *hashes = start ? mgrid_grow(x->hash, x->n, sizeof *hashes) : NULL;
  if (start) x->start = start;
  if (!hashes) return -1;
  x->hash = hashes;
  if (x->n == 0) x->start[0] = 0;
  if (x->used + n > x->cap) {
    size_t   cap = 2 * (x->used + n) + 64;
    int32_t *data = realloc(x->data, cap * sizeof *data);
    if (!data) return -1;
    x->data = data, x->cap = cap;
  }
  if (n) memcpy(&x->data[x->used], list, n * sizeof *list);
  x->used += n;
  x->hash[x->n] = hash;
  x->start[x->n + 1] = x->used;
  x->index[at] = (int32_t)x->n;
  return (int32_t)x->n++;
}
