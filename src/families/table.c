/* SPDX-License-Identifier: MIT
**
** table.c - families of explicit lists, the last resort: lists of the user, results of map and of
** without. Lists that follow a rule of modes become strided.
*/
#include "families/family.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static int ascending(const void *a, const void *b) {
  uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
  return (x > y) - (x < y);
}

/* Is every member in the window, and no group empty? */
static mgrid_status check_members(mgrid_window w, int64_t count, const int64_t *starts, const int32_t *ranks,
                                  mgrid_error *err) {
  for (int64_t g = 0; g < count; g++) {
    if (starts[g + 1] <= starts[g]) return mgrid_fail(err, MGRID_REFUSED, "group %" PRId64 " of the table is empty", g);
    for (int64_t i = starts[g]; i < starts[g + 1]; i++)
      if (ranks[i] < w.offset || ranks[i] >= w.offset + w.size)
        return mgrid_fail(err, MGRID_OUT_OF_RANGE,
                          "rank %" PRId32 " of group %" PRId64 " is out of range; ranks are %" PRId64 " to %" PRId64,
                          ranks[i], g, w.offset, w.offset + w.size - 1);
  }
  return MGRID_OK;
}

/* Walk the members sorted by rank: check them against the declared coverage, and set *overlap if a rank occurs
** twice. With `hint` the message says what the user can declare instead. */
static mgrid_status check_coverage(mgrid_window w, const mgrid_family *f, mgrid_coverage declared, bool hint,
                                   bool *overlap, mgrid_error *err) {
  const uint64_t *key = f->as.table.by_rank;
  int64_t         next = w.offset; /* the lowest rank not seen yet */
  for (int64_t i = 0; i < f->total; i++) {
    int64_t rank = (int64_t)(key[i] >> 32), slot = (int64_t)(key[i] & UINT32_MAX);
    if (i > 0 && rank == (int64_t)(key[i - 1] >> 32)) {
      int64_t before = mgrid_table_group(f, (int64_t)(key[i - 1] & UINT32_MAX));
      int64_t group = mgrid_table_group(f, slot);
      if (before == group)
        return mgrid_fail(err, MGRID_DUPLICATE, "rank %" PRId64 " occurs twice in group %" PRId64 " of the table", rank,
                          group);
      if (declared != MGRID_COVER)
        return mgrid_fail(err, MGRID_REFUSED, "rank %" PRId64 " is in groups %" PRId64 " and %" PRId64 "%s", rank,
                          before, group,
                          hint ? " of the table; declare a 'cover' if that is meant" : "; groups must be disjoint");
      *overlap = true;
    } else if (declared == MGRID_PARTITION && rank != next) {
      break;
    }
    next = rank + 1;
  }
  if (declared == MGRID_PARTITION && next != w.offset + w.size)
    return mgrid_fail(err, MGRID_REFUSED,
                      "rank %" PRId64 " is in no group of the table; declare it 'partial' if that is meant", next);
  return MGRID_OK;
}

/* The strided family with the same groups; NULL with *err untouched if there is none. */
static mgrid_family *recognized(const mgrid_family *f, mgrid_error *err) {
  const int32_t *ranks = f->as.table.ranks;
  int64_t        n = f->size, count = f->count;
  if (f->overlapping || n < 1 || count < 1) return NULL;
  for (int64_t g = 1; g < count; g++)
    for (int64_t p = 1; p < n; p++)
      if (ranks[g * n + p] - ranks[g * n] != ranks[p] - ranks[0]) return NULL;
  int64_t *offsets = malloc((size_t)(n > count ? n : count) * sizeof *offsets);
  if (!offsets) return mgrid_null_oom(err); /* not "there is none": another form would be another digest */
  MGRID_MODES(inside);
  MGRID_MODES(index);
  mgrid_family *s = NULL;
  for (int64_t p = 0; p < n; p++) offsets[p] = ranks[p] - ranks[0];
  if (mgrid_modes_of(offsets, n, &inside)) {
    for (int64_t g = 0; g < count; g++) offsets[g] = ranks[g * n] - ranks[0];
    if (mgrid_modes_of(offsets, count, &index)) s = mgrid_strided_new(f->world, ranks[0], &inside, &index, err);
  }
  free(offsets);
  return s;
}

/* Sort the members by rank, for mgrid_family_locate, and check their coverage. */
static mgrid_status index_by_rank(mgrid_window w, mgrid_family *f, mgrid_coverage declared, bool hint,
                                  mgrid_error *err) {
  if (f->total > (int64_t)UINT32_MAX) return mgrid_fail(err, MGRID_OVERFLOW, "a table of more than 2^32 members");
  uint64_t *key = malloc((size_t)(f->total ? f->total : 1) * sizeof *key);
  if (!key) return mgrid_oom(err);
  f->as.table.by_rank = key;
  for (int64_t i = 0; i < f->total; i++) key[i] = (uint64_t)f->as.table.ranks[i] << 32 | (uint64_t)i;
  qsort(key, (size_t)f->total, sizeof *key, ascending);
  f->low = f->total > 0 ? (int64_t)(key[0] >> 32) : 0;
  f->high = f->total > 0 ? (int64_t)(key[f->total - 1] >> 32) : -1;
  mgrid_status s = check_coverage(w, f, declared, hint, &f->overlapping, err);
  return s || !f->overlapping ? s : mgrid_table_rounds(f, err);
}

static void set_sizes(mgrid_family *f, int64_t count, const int64_t *starts) {
  f->count = count;
  f->total = starts[count];
  f->size = f->max_size = count > 0 ? starts[1] : 0;
  for (int64_t g = 1; g < count; g++) {
    int64_t n = starts[g + 1] - starts[g];
    if (n != f->size) f->size = -1;
    if (n > f->max_size) f->max_size = n;
  }
}

static mgrid_family *adopt(mgrid_window w, int64_t count, int64_t *starts, int32_t *ranks, mgrid_coverage declared,
                           bool hint, bool recognize, mgrid_error *err) {
  mgrid_family *f = starts && ranks ? mgrid_family_alloc(MGRID_TABLE, w.world, 0, err) : mgrid_null_oom(err);
  if (!f) {
    free(starts);
    free(ranks);
    return NULL;
  }
  f->as.table.starts = starts;
  f->as.table.ranks = ranks;
  set_sizes(f, count, starts);
  f->bytes += (size_t)(count + 1) * sizeof *starts + (size_t)f->total * (sizeof *ranks + sizeof *f->as.table.by_rank);
  if (check_members(w, count, starts, ranks, err) || index_by_rank(w, f, declared, hint, err)) {
    mgrid_family_free(f);
    return NULL;
  }
  mgrid_error   why = MGRID_ERROR_INIT;
  mgrid_family *strided = recognize ? recognized(f, &why) : NULL;
  if (!strided && !why.status) return f;
  mgrid_family_free(f);
  if (!strided) mgrid_error_pass(err, &why);
  return strided;
}

mgrid_family *mgrid_table_adopt(mgrid_window w, int64_t count, int64_t *starts, int32_t *ranks, mgrid_coverage declared,
                                bool recognize, mgrid_error *err) {
  return adopt(w, count, starts, ranks, declared, false, recognize, err);
}

mgrid_family *mgrid_family_table(mgrid_window w, int64_t ngroups, const int64_t *starts, const int32_t *ranks,
                                 mgrid_coverage declared, mgrid_error *err) {
  if (w.world < 1 || w.world > MGRID_WORLD_MAX || w.offset < 0 || w.size < 1 || w.size > w.world - w.offset)
    return mgrid_null(err, MGRID_OUT_OF_RANGE, "the table's window does not fit its world");
  if (ngroups < 1) return mgrid_null(err, MGRID_REFUSED, "a table without groups");
  if (mgrid_lacks(starts, "the list of starts", err) || mgrid_lacks(ranks, "the list of ranks", err)) return NULL;
  if (declared != MGRID_PARTITION && declared != MGRID_PARTIAL && declared != MGRID_COVER)
    return mgrid_null(err, MGRID_BAD_VALUE, "a coverage is MGRID_PARTITION, MGRID_PARTIAL or MGRID_COVER, not %d",
                      (int)declared);
  if (mgrid_count_check("table", (size_t)ngroups, err)) return NULL;
  for (int64_t g = 0; g < ngroups; g++)
    if (starts[0] != 0 || starts[g + 1] <= starts[g])
      return mgrid_null(err, MGRID_REFUSED,
                        starts[0] ? "the starts of a table begin with 0" : "group %" PRId64 " of the table is empty",
                        g);
  int64_t  total = starts[ngroups];
  int64_t *s = malloc((size_t)(ngroups + 1) * sizeof *s);
  int32_t *r = malloc((size_t)(total > 0 ? total : 1) * sizeof *r);
  if (s && r) {
    memcpy(s, starts, (size_t)(ngroups + 1) * sizeof *s);
    if (total > 0) memcpy(r, ranks, (size_t)total * sizeof *r);
  }
  return adopt(w, ngroups, s, r, declared, true, true, err);
}

/* ----------------------------------------------- families as explicit lists */

void *mgrid_needs_lists(const char *operation, const mgrid_family *f, mgrid_error *err) {
  static const char *const form[] = { "strided", "picked", "neighbours", "cut", "union", "zip", "table" };
  return mgrid_null(err, MGRID_REFUSED,
                    "%s of a %s family works on explicit lists alone: call lists() first, which "
                    "costs by rank",
                    operation, form[f->form]);
}

/* Write f's groups as the lists of a table; the caller frees *starts and *ranks, also on failure. */
static bool write_out(const mgrid_family *f, int64_t **starts, int32_t **ranks) {
  *starts = malloc((size_t)(f->count + 1) * sizeof **starts);
  *ranks = malloc((size_t)(f->total > 0 ? f->total : 1) * sizeof **ranks);
  if (!*starts || !*ranks) return false;
  (*starts)[0] = 0;
  for (int64_t g = 0; g < f->count; g++) {
    mgrid_family_members(f, g, *ranks + (*starts)[g]);
    (*starts)[g + 1] = (*starts)[g] + mgrid_family_size(f, g);
  }
  return true;
}

mgrid_coverage mgrid_table_coverage(const mgrid_family *f) { return f->overlapping ? MGRID_COVER : MGRID_PARTIAL; }

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
  int64_t  cap = 4 * f->max_size > 1024 ? 4 * f->max_size : 1024, total = 0, room = f->total + cap;
  int64_t *starts = malloc((size_t)(f->count + 1) * sizeof *starts);
  int32_t *ranks = malloc((size_t)room * sizeof *ranks);
  if (starts) starts[0] = 0;
  bool failed = !starts || !ranks;
  if (failed) mgrid_oom(err);
  for (int64_t g = 0; g < f->count && !failed; g++) {
    if (room - total < cap) {
      int32_t *more = realloc(ranks, (size_t)(2 * room) * sizeof *ranks);
      if (!more) {
        mgrid_oom(err);
        failed = true;
        break;
      }
      ranks = more;
      room *= 2;
    }
    mgrid_family_members(f, g, ranks + total);
    mgrid_error *own = mgrid_error_open(err);
    if ((failed = !own)) break;
    int64_t n = fn(ud, g, ranks + total, mgrid_family_size(f, g), cap, own);
    failed = n < 0 || n > cap;
    mgrid_error_close(own, n < 0, "the function of a map", err);
    if (n > cap) mgrid_fail(err, MGRID_REFUSED, "map: group %" PRId64 " came out with %" PRId64 " ranks", g, n);
    total += failed ? 0 : n;
    starts[g + 1] = total;
  }
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
  for (int64_t g = 0, at = 0; g < f->count; g++) {
    for (int64_t end = starts[g + 1]; at < end; at++)
      if (members[at] >= 0) members[kept++] = members[at];
    if (kept > starts[groups]) starts[++groups] = kept;
  }
  return mgrid_table_adopt(mgrid_world(f->world), groups, starts, members, mgrid_table_coverage(f), true, err);
}
