/* SPDX-License-Identifier: MIT
**
** order.c - orders of ranks, which grids lie over: position -> rank and back, and modes of positions as modes of ranks.
*/
#include "families/grid.h"

#include <inttypes.h>
#include <stdlib.h>

/* Check that each rank is in the window and occurs once. */
static mgrid_status check_list(mgrid_window w, int64_t n, const int32_t *ranks, mgrid_error *err) {
  if (n < 1) return mgrid_fail(err, MGRID_REFUSED, "an order without ranks; it needs 1 to %" PRId64, w.size);
  for (int64_t i = 0; i < n; i++)
    if (ranks[i] < w.offset || ranks[i] >= w.offset + w.size)
      return mgrid_fail(err, MGRID_OUT_OF_RANGE,
                        "rank %" PRId32 " at position %" PRId64 " of the order is out of range; ranks are %" PRId64
                        " to %" PRId64,
                        ranks[i], i, w.offset, w.offset + w.size - 1);
  uint64_t *key = malloc((size_t)n * sizeof *key); /* rank << 32 | position */
  if (!key) return mgrid_oom(err);
  for (int64_t i = 0; i < n; i++) key[i] = (uint64_t)ranks[i] << 32 | (uint64_t)i;
  qsort(key, (size_t)n, sizeof *key, mgrid_key_order);
  mgrid_status s = MGRID_OK;
  for (int64_t i = 1; i < n && !s; i++)
    if (key[i] >> 32 == key[i - 1] >> 32)
      s = mgrid_fail(err, MGRID_DUPLICATE,
                     "rank %" PRIu64 " is at positions %" PRIu64 " and %" PRIu64 " of the order; each is there once",
                     key[i] >> 32, key[i - 1] & UINT32_MAX, key[i] & UINT32_MAX);
  free(key);
  return s;
}

mgrid_family *mgrid_order_list(mgrid_window w, int64_t n, int32_t *ranks, mgrid_error *err) {
  int64_t *starts = ranks ? malloc(2 * sizeof *starts) : NULL;
  if (starts && check_list(w, n, ranks, err)) {
    free(starts);
    free(ranks);
    return NULL;
  }
  if (starts) starts[0] = 0, starts[1] = n;
  return mgrid_table_adopt(w, 1, starts, ranks, MGRID_PARTIAL, true, err);
}

mgrid_family *mgrid_order_of(const mgrid_family *f, mgrid_error *err) {
  if (f->count != 1)
    return mgrid_null(err, MGRID_REFUSED, "a grid needs a family of one group; this one has %" PRId64 "", f->count);
  if (f->rule) return mgrid_family_origin(f);
  int32_t *ranks = malloc((size_t)f->total * sizeof *ranks);
  if (ranks) mgrid_family_group(f, 0, ranks);
  return mgrid_order_list(mgrid_world(f->world), f->total, ranks, err);
}

mgrid_window mgrid_order_window(const mgrid_family *order, bool *plain) {
  const mgrid_modes *inside = order->rule ? &order->rule->inside : NULL;
  *plain = inside && (inside->n == 0 || (inside->n == 1 && inside->at[0].stride == 1));
  return (mgrid_window){ order->world, order->low, order->high - order->low + 1 };
}

/* A mode of positions, (size, stride), is every `stride`-th position of the order, `size` of them. */
bool mgrid_order_modes(const mgrid_family *order, const mgrid_modes *positions, mgrid_modes *ranks) {
  MGRID_MODES(before);
  MGRID_MODES(every);
  MGRID_MODES(these);
  MGRID_MODES(behind);
  ranks->n = 0;
  if (!order->rule) return false;
  for (int i = 0; i < positions->n; i++) {
    mgrid_mode m = positions->at[i];
    if (!mgrid_modes_cut(&order->rule->inside, m.stride, &before, &every, NULL)
        || !mgrid_modes_cut(&every, m.size, &these, &behind, NULL))
      return false;
    mgrid_modes_append(ranks, &these);
  }
  return true;
}

void mgrid_order_text(const mgrid_family *order, mgrid_text *t) {
  if (order->rule) {
    mgrid_modes_text(&order->rule->inside, t);
    if (order->low == 0) return;
    mgrid_text_str(t, " + ");
    mgrid_text_int(t, order->low);
    return;
  }
  for (int64_t i = 0; i < order->total; i++) {
    if (i) mgrid_text_str(t, ",");
    mgrid_text_int(t, mgrid_family_rank(order, 0, i));
  }
}
