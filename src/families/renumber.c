/* SPDX-License-Identifier: MIT
**
** renumber.c - the same groups in another order.
*/
#include "families/family.h"

#include <inttypes.h>
#include <stdlib.h>

/* Check that the list holds each group of f once. */
static mgrid_status check_order(const mgrid_family *f, size_t n, const int64_t *order, mgrid_error *err) {
  if ((uint64_t)n != (uint64_t)f->count)
    return mgrid_fail(err, MGRID_REFUSED, "renumber: a list of %zu for %" PRId64 " groups", n, f->count);
  bool *seen = calloc(n + 1, sizeof *seen);
  if (!seen) return mgrid_oom(err);
  mgrid_status s = MGRID_OK;
  for (size_t i = 0; i < n && !s; i++) {
    if (order[i] < 0 || order[i] >= f->count)
      s = mgrid_fail(err, MGRID_OUT_OF_RANGE, "renumber: group %" PRId64 " is out of range (0 to %" PRId64 ")",
                     order[i], f->count - 1);
    else if (seen[order[i]])
      s = mgrid_fail(err, MGRID_DUPLICATE, "renumber: group %" PRId64 " is listed twice", order[i]);
    else
      seen[order[i]] = true;
  }
  free(seen);
  return s;
}

/* Make all groups as lists, in that order. */
static mgrid_family *by_lists(const mgrid_family *f, const int64_t *order, mgrid_error *err) {
  int64_t *starts = malloc((size_t)(f->count + 1) * sizeof *starts);
  int32_t *ranks = malloc((size_t)(f->total > 0 ? f->total : 1) * sizeof *ranks);
  if (starts && ranks) {
    starts[0] = 0;
    for (int64_t i = 0; i < f->count; i++) {
      mgrid_family_group(f, order[i], ranks + starts[i]);
      starts[i + 1] = starts[i] + mgrid_family_size(f, order[i]);
    }
  }
  return mgrid_table_adopt(mgrid_world(f->world), f->count, starts, ranks, mgrid_table_coverage(f), true, err);
}

mgrid_family *mgrid_renumber_by_rule(const mgrid_family *f, size_t n, const int64_t *order, mgrid_error *err) {
  if (check_order(f, n, order, err)) return NULL;
  if (n == 0) return mgrid_family_origin(f);
  return f->form->renumber ? f->form->renumber(f, order, err) : NULL;
}

mgrid_family *mgrid_family_renumber(const mgrid_family *f, size_t n, const int64_t *order, mgrid_error *err) {
  mgrid_error   why = MGRID_ERROR_INIT;
  mgrid_family *g = f ? mgrid_renumber_by_rule(f, n, order, &why) : NULL;
  if (g || !f) return g;
  if (!why.status) return by_lists(f, order, err);
  mgrid_error_pass(err, &why);
  return NULL;
}
