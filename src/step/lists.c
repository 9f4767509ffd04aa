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
  mgrid_index_free(&x->index);
}

int32_t mgrid_step_lists_put(step_lists *x, const int32_t *list, size_t n) {
  uint64_t hash = XXH3_64bits(list, n * sizeof *list);
  size_t at = 0;
  for (int32_t i; (i = mgrid_index_next(&x->index, hash, &at)) >= 0;)
    if (x->start[i + 1] - x->start[i] == n
        && memcmp(&x->data[x->start[i]], list, n * sizeof *list) == 0)
      return i;
  if (!MGRID_GROW(x->start, x->n ? x->n + 1 : 0, 2) || !MGRID_GROW(x->data, x->used, n)) return -1;
  if (!mgrid_index_put(&x->index, hash, (int32_t)x->n)) return -1;
  if (n) memcpy(&x->data[x->used], list, n * sizeof *list);
  x->start[0] = 0;
  x->start[x->n + 1] = x->used += n;
  return (int32_t)x->n++;
}
