/* SPDX-License-Identifier: MIT
**
** per.c - spares by the machine: the last ranks of each node.
*/
#include "machine/model.h"
#include "survive/next.h"

#include <inttypes.h>
#include <stdlib.h>

/* Sort by domain; within one the last rank first. */
static int by_domain(const void *a, const void *b) { return mgrid_key_order(a, b); }

static int by_rank(const void *a, const void *b) {
  int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
  return (x > y) - (x < y);
}

mgrid_spares *mgrid_spares_per(const mgrid_machine_model *m, const char *level, int64_t count, int64_t world,
                               mgrid_error *err) {
  int64_t l = mgrid_machine_require(m, level, err), n = 0, nth = 0;
  if (l < 0) return NULL;
  uint64_t *key = malloc((size_t)world * sizeof *key);
  int32_t  *list = malloc((size_t)world * sizeof *list);
  for (int64_t r = 0; r < world && key; r++)
    key[r] = (uint64_t)mgrid_place_domain(m, (size_t)l, mgrid_machine_at(m, r)) << 32 | (uint64_t)(world - r);
  if (key) qsort(key, (size_t)world, sizeof *key, by_domain);
  for (int64_t i = 0; i < world && key && list; i++, nth++) {
    if (i > 0 && key[i] >> 32 != key[i - 1] >> 32) nth = 0;
    if (nth < count) list[n++] = (int32_t)(world - (int64_t)(key[i] & UINT32_MAX));
  }
  free(key);
  if (!key || !list) {
    free(list);
    return mgrid_null_oom(err);
  }
  if (n == world) {
    free(list);
    return mgrid_null(err, MGRID_REFUSED, "%" PRId64 " spare%s in each %s %s all %" PRId64 " ranks", count,
                      mgrid_s_of(count), level, count == 1 ? "is" : "are", world);
  }
  qsort(list, (size_t)n, sizeof *list, by_rank);
  return mgrid_spares_new(world, n, list, err);
}
