/* SPDX-License-Identifier: MIT
**
** op_pick.c - picks positions of every group, in any order. This file finds which positions; the
** family's form then picks them.
*/
#include "families/family.h"

#include <inttypes.h>
#include <stdlib.h>

/* ----------------------------------------------------------------- positions */

/* Drop positions that occurred before; the others keep their order. Return how many are left, or
** -1. O(n log n): sort, and mark all but the first of equal positions. */
static int64_t drop_repeats(int64_t *positions, int64_t n, mgrid_error *err) {
  uint64_t *key = malloc((size_t)n * sizeof *key); /* position << 32 | index in the list */
  int64_t kept = 0;
  if (!key) {
    mgrid_oom(err);
    return -1;
  }
  for (int64_t i = 0; i < n; i++) key[i] = (uint64_t)positions[i] << 32 | (uint64_t)i;
  qsort(key, (size_t)n, sizeof *key, mgrid_key_order);
  for (int64_t i = 1; i < n; i++)
    if (key[i] >> 32 == key[i - 1] >> 32) positions[key[i] & UINT32_MAX] = -1;
  for (int64_t i = 0; i < n; i++)
    if (positions[i] >= 0) positions[kept++] = positions[i];
  free(key);
  return kept;
}

/* Turn positions as the user wrote them into distinct positions in [0, size), in place. Return how
** many are left, or -1 after an error. */
static int64_t pick_resolve(int64_t size, int64_t *positions, int64_t n, mgrid_error *err) {
  if (n <= 0) {
    mgrid_fail(err, MGRID_REFUSED, "pick: name at least one position of groups of %" PRId64, size);
    return -1;
  }
  for (int64_t i = 0; i < n; i++) {
    int64_t p = positions[i] < 0 ? positions[i] + size : positions[i];
    if (p < 0 || p >= size) {
      mgrid_fail(err, MGRID_OUT_OF_RANGE,
                 "pick of position %" PRId64 ": groups of %" PRId64 " have positions 0 to %" PRId64
                 ", or -1 to %" PRId64 " from the end",
                 positions[i], size, size - 1, -size);
      return -1;
    }
    positions[i] = p;
  }
  return drop_repeats(positions, n, err);
}

int64_t mgrid_pick_ask(mgrid_pick_fn fn, void *ud, int64_t size, int64_t *positions, int64_t cap,
                       mgrid_error *err) {
  mgrid_error *own = mgrid_error_open(err);
  if (!own) return -1;
  int64_t n = fn(ud, size, positions, cap, own);
  mgrid_error_close(own, n < 0, "the function of a pick", err);
  if (n > cap)
    mgrid_fail(err, MGRID_REFUSED,
               "pick: %" PRId64 " positions of groups of %" PRId64 "; name at most %" PRId64, n,
               size, cap);
  return n < 0 || n > cap ? -1 : pick_resolve(size, positions, n, err);
}

/* Pick from groups of one size, so the function is called once. */
static mgrid_family *pick_even(const mgrid_family *f, mgrid_pick_fn fn, void *ud,
                               mgrid_error *err) {
  int64_t cap = mgrid_pick_room(f->size);
  int64_t *positions = malloc((size_t)cap * sizeof *positions);
  if (!positions) return mgrid_null_oom(err);
  int64_t n = mgrid_pick_ask(fn, ud, f->size, positions, cap, err);
  mgrid_family *picked = n > 0 ? f->form->pick(f, n, positions, err) : NULL;
  free(positions);
  return picked;
}

mgrid_family *mgrid_family_pick_by(const mgrid_family *f, mgrid_pick_fn fn, void *ud,
                                   mgrid_error *err) {
  if (!f || mgrid_lacks(fn, "the function of a pick", err)) return NULL;
  if (f->form->pick_by) return f->form->pick_by(f, fn, ud, err);
  return f->form->pick && f->size >= 0 ? pick_even(f, fn, ud, err)
                                       : mgrid_needs_lists("a pick", f, err);
}

struct fixed_list {
  size_t n;
  const int64_t *positions;
};

static int64_t fixed_positions(void *ud, int64_t size, int64_t *positions, int64_t cap,
                               mgrid_error *err) {
  const struct fixed_list *list = ud;
  (void)size, (void)err;
  for (size_t i = 0; i < list->n && (int64_t)i < cap; i++) positions[i] = list->positions[i];
  return (int64_t)list->n;
}

mgrid_family *mgrid_family_pick(const mgrid_family *f, size_t n, const int64_t *positions,
                                mgrid_error *err) {
  if (mgrid_count_check("pick", n, err)) return NULL;
  struct fixed_list list = { n, positions };
  if (mgrid_lacks_list(n, positions, "positions", err)) return NULL;
  return mgrid_family_pick_by(f, fixed_positions, &list, err);
}
