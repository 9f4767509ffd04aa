/* SPDX-License-Identifier: MIT
**
** op_renumber.c - the same groups in another order, or only some of them. The result has a rule if
** modes give that order, else it is lists.
*/
#include "families/family.h"

#include <inttypes.h>
#include <stdlib.h>

/* Check that the list holds each group of f once. */
static mgrid_status renumber_check_order(const mgrid_family *f, size_t n, const int64_t *order,
                                         mgrid_error *err) {
  if (mgrid_lacks_list(n, order, "groups", err)) return MGRID_USAGE;
  if ((uint64_t)n != (uint64_t)f->count)
    return mgrid_fail(err, MGRID_REFUSED,
                      "renumber: the list names %zu, but there are %" PRId64 " groups", n,
                      f->count);
  bool *seen = calloc(n + 1, sizeof *seen);
  if (!seen) return mgrid_oom(err);
  mgrid_status s = MGRID_OK;
  for (size_t i = 0; i < n && !s; i++) {
    if (order[i] < 0 || order[i] >= f->count)
      s = mgrid_fail(err, MGRID_OUT_OF_RANGE,
                     "renumber: group %" PRId64 " is out of range (0 to %" PRId64 ")", order[i],
                     f->count - 1);
    else if (seen[order[i]])
      s = mgrid_fail(err, MGRID_DUPLICATE, "renumber: group %" PRId64 " is listed twice", order[i]);
    else
      seen[order[i]] = true;
  }
  free(seen);
  return s;
}

/* Make n groups as lists, in that order. */
static mgrid_family *by_lists(const mgrid_family *f, int64_t n, const int64_t *order,
                              mgrid_error *err) {
  int64_t *starts = malloc((size_t)(n + 1) * sizeof *starts);
  for (int64_t i = 0, total = 0; starts && i <= n; i++) {
    starts[i] = total;
    if (i < n) total += mgrid_family_size(f, order[i]);
  }
  int32_t *ranks = starts ? malloc((size_t)(starts[n] > 0 ? starts[n] : 1) * sizeof *ranks) : NULL;
  for (int64_t i = 0; ranks && i < n; i++) mgrid_family_group(f, order[i], ranks + starts[i]);
  return mgrid_table_adopt(mgrid_world(f->world), n, starts, ranks, mgrid_table_coverage(f), true,
                           err);
}

mgrid_family *mgrid_renumber_by_rule(const mgrid_family *f, size_t n, const int64_t *order,
                                     mgrid_error *err) {
  if (renumber_check_order(f, n, order, err)) return NULL;
  if (n == 0) return mgrid_family_origin(f);
  return f->form->groups ? f->form->groups(f, f->count, order, err) : NULL;
}

mgrid_family *mgrid_family_renumber(const mgrid_family *f, size_t n, const int64_t *order,
                                    mgrid_error *err) {
  mgrid_error why = MGRID_ERROR_INIT;
  mgrid_family *g = f ? mgrid_renumber_by_rule(f, n, order, &why) : NULL;
  if (g || !f) return g;
  if (!why.status) return by_lists(f, f->count, order, err);
  mgrid_error_pass(err, &why);
  return NULL;
}

/* ---------------------------------------------------------------- some groups */

/* Return a copy of the list, in which negative numbers are counted from the start; free it. NULL
** after an error. */
static int64_t *renumber_resolve(const mgrid_family *f, size_t n, const int64_t *groups,
                                 mgrid_error *err) {
  if (mgrid_lacks_list(n, groups, "groups", err)) return NULL;
  if (n == 0)
    return mgrid_null(err, MGRID_REFUSED, "groups: name at least one of the %" PRId64 " groups",
                      f->count);
  if (n > (uint64_t)f->count)
    return mgrid_null(err, MGRID_REFUSED,
                      "groups: the list names %zu, but there are %" PRId64 " groups", n, f->count);

  int64_t *own = malloc(n * sizeof *own);
  uint64_t *key = malloc(n * sizeof *key), twice = 0;
  bool fine = own && key;
  if (!fine) mgrid_oom(err);
  for (size_t i = 0; i < n && fine; i++) {
    own[i] = groups[i] < 0 ? groups[i] + f->count : groups[i];
    fine = own[i] >= 0 && own[i] < f->count;
    key[i] = (uint64_t)own[i];
    if (!fine)
      mgrid_fail(err, MGRID_OUT_OF_RANGE,
                 "groups: group %" PRId64 " is out of range (0 to %" PRId64 ", or -1 to %" PRId64
                 " from the end)",
                 groups[i], f->count - 1, -f->count);
  }

  if (fine) qsort(key, n, sizeof *key, mgrid_key_order);
  for (size_t i = 1; i < n && fine && !twice; i++)
    if (key[i] == key[i - 1]) twice = key[i] + 1;
  if (twice)
    mgrid_fail(err, MGRID_DUPLICATE, "groups: group %" PRIu64 " is listed twice", twice - 1);

  free(key);
  if (fine && !twice) return own;
  free(own);
  return NULL;
}

static mgrid_family *some(const mgrid_family *f, size_t n, const int64_t *groups, bool lists,
                          mgrid_error *err) {
  mgrid_error why = MGRID_ERROR_INIT;
  int64_t *own = renumber_resolve(f, n, groups, &why);
  mgrid_family *g = own && f->form->groups ? f->form->groups(f, (int64_t)n, own, &why) : NULL;
  if (!g && !why.status && lists) g = by_lists(f, (int64_t)n, own, &why);
  free(own);
  mgrid_error_pass(err, &why);
  return g;
}

mgrid_family *mgrid_select_by_rule(const mgrid_family *f, size_t n, const int64_t *groups,
                                   mgrid_error *err) {
  return some(f, n, groups, false, err);
}

mgrid_family *mgrid_family_select(const mgrid_family *f, size_t n, const int64_t *groups,
                                  mgrid_error *err) {
  return f ? some(f, n, groups, true, err) : NULL;
}
