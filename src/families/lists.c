/* SPDX-License-Identifier: MIT
**
** lists.c - families as explicit lists: written out, mapped, or without some ranks.
*/
#include "families/family.h"

#include <inttypes.h>
#include <stdlib.h>

/* Write f's groups as the lists of a table; the caller frees *starts and *ranks, also on failure. */
static bool write_out(const mgrid_family *f, int64_t **starts, int32_t **ranks) {
  *starts = malloc((size_t)(f->count + 1) * sizeof **starts);
  *ranks = malloc((size_t)(f->total > 0 ? f->total : 1) * sizeof **ranks);
  if (!*starts || !*ranks) return false;
  (*starts)[0] = 0;
  for (int64_t g = 0; g < f->count; g++) {
    mgrid_family_group(f, g, *ranks + (*starts)[g]);
    (*starts)[g + 1] = (*starts)[g] + mgrid_family_size(f, g);
  }
  return true;
}

mgrid_family *mgrid_family_lists(const mgrid_family *f, mgrid_error *err) {
  int64_t *starts = NULL;
  int32_t *ranks = NULL;
  if (!f) return NULL;
  if (!write_out(f, &starts, &ranks)) {
    free(starts);
    free(ranks);
    return mgrid_null_oom(err);
  }
  return mgrid_table_adopt(mgrid_world(f->world), f->count, starts, ranks, mgrid_table_coverage(f), false, err);
}

mgrid_family *mgrid_family_map(const mgrid_family *f, mgrid_map_fn fn, void *ud, mgrid_error *err) {
  if (!f || mgrid_lacks(fn, "the function of a map", err)) return NULL;
  int64_t  cap = 4 * f->max_size > 1024 ? 4 * f->max_size : 1024, total = 0;
  int64_t *starts = malloc((size_t)(f->count + 1) * sizeof *starts);
  size_t   room = (size_t)(f->total + cap);
  int32_t *ranks = malloc(room * sizeof *ranks);
  int64_t *given = malloc((size_t)cap * sizeof *given);
  if (starts) starts[0] = 0;
  bool failed = !starts || !ranks || !given;
  if (failed) mgrid_oom(err);
  for (int64_t g = 0; g < f->count && !failed; g++) {
    if (!MGRID_ROOM(ranks, room, (size_t)(total + cap))) {
      mgrid_oom(err);
      failed = true;
      break;
    }
    mgrid_error *own = mgrid_error_open(err);
    if ((failed = !own)) break;
    int64_t n = fn(ud, g, given, mgrid_family_members(f, g, 1, (size_t)cap, given), cap, own);
    failed = n < 0 || n > cap;
    mgrid_error_close(own, n < 0, "the function of a map", err);
    if (n > cap)
      mgrid_fail(err, MGRID_REFUSED, "map: group %" PRId64 " got %" PRId64 " ranks; at most %" PRId64, g, n, cap);
    failed |= !failed && mgrid_ranks_copy(mgrid_world(f->world), g, n, given, ranks + total, err);
    total += failed ? 0 : n;
    starts[g + 1] = total;
  }
  free(given);
  if (failed) {
    free(starts);
    free(ranks);
    return NULL;
  }
  return mgrid_table_adopt(mgrid_world(f->world), f->count, starts, ranks, mgrid_table_coverage(f), true, err);
}

mgrid_family *mgrid_family_without(const mgrid_family *f, size_t n, const int64_t *ranks, mgrid_error *err) {
  int64_t *starts = NULL, group, position;
  int32_t *members = NULL;
  if (!f || mgrid_count_check("without", n, err) || mgrid_lacks_list(n, ranks, "ranks", err)) return NULL;
  for (size_t i = 0; i < n; i++)
    if (ranks[i] < 0 || ranks[i] >= f->world)
      return mgrid_null(err, MGRID_OUT_OF_RANGE, "without: rank %" PRId64 " is out of range; ranks are 0 to %" PRId64,
                        ranks[i], f->world - 1);
  if (!write_out(f, &starts, &members)) {
    free(starts);
    free(members);
    return mgrid_null_oom(err);
  }
  for (size_t i = 0; i < n; i++)
    for (int64_t nth = 0; mgrid_family_locate(f, ranks[i], nth, &group, &position); nth++)
      members[starts[group] + position] = -1;
  int64_t groups = 0, kept = 0; /* in place: the write position never passes the read position */
  for (int64_t g = 0, slot = 0; g < f->count; g++) {
    for (int64_t end = starts[g + 1]; slot < end; slot++)
      if (members[slot] >= 0) members[kept++] = members[slot];
    if (kept > starts[groups]) starts[++groups] = kept;
  }
  return mgrid_table_adopt(mgrid_world(f->world), groups, starts, members, mgrid_table_coverage(f), true, err);
}
