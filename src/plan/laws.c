/* SPDX-License-Identifier: MIT
**
** laws.c - what a recipe may claim about its families, and the first place where that is not so.
*/
#include "plan/plan.h"

#include <inttypes.h>
#include <string.h>

enum { RULE = 160 };

mgrid_status mgrid_law_same(const mgrid_family *a, const mgrid_family *b, mgrid_error *err) {
  char x[RULE], y[RULE];
  if (mgrid_family_equal(a, b)) return MGRID_OK;
  mgrid_family_describe(a, x, sizeof x);
  mgrid_family_describe(b, y, sizeof y);
  if (a->world != b->world || a->count != b->count)
    return mgrid_fail(err, MGRID_REFUSED, "the families are not the same: %" PRId64 " groups %s, %" PRId64 " groups %s",
                      a->count, x, b->count, y);
  int64_t g = 0, p = 0;
  while (mgrid_same_group(a, g, b, g)) g++;
  while (mgrid_family_rank(a, g, p) == mgrid_family_rank(b, g, p)) p++;
  int64_t in_a = mgrid_family_rank(a, g, p), in_b = mgrid_family_rank(b, g, p);
  if (in_a < 0 || in_b < 0)
    return mgrid_fail(err, MGRID_REFUSED,
                      "the families are not the same: group %" PRId64 " has %" PRId64 " ranks in %s and %" PRId64
                      " in %s",
                      g, mgrid_family_size(a, g), x, mgrid_family_size(b, g), y);
  return mgrid_fail(err, MGRID_REFUSED,
                    "the families are not the same: position %" PRId64 " of group %" PRId64 " is rank %" PRId64
                    " in %s and rank %" PRId64 " in %s",
                    p, g, in_a, x, in_b, y);
}

static bool has(const mgrid_family *f, int64_t group, int64_t rank) {
  int64_t at, position;
  for (int64_t nth = 0; mgrid_family_locate(f, rank, nth, &at, &position); nth++)
    if (at == group) return true;
  return false;
}

/* How many members of group g of a are in that group of b, from the first on? */
static int64_t members_in(const mgrid_family *a, int64_t g, const mgrid_family *b, int64_t group) {
  int64_t n = 0;
  while (n < mgrid_family_size(a, g) && has(b, group, mgrid_family_rank(a, g, n))) n++;
  return n;
}

mgrid_status mgrid_law_within(const mgrid_family *a, const mgrid_family *b, const mgrid_law_names *names,
                              mgrid_error *err) {
  if (a->world != b->world)
    return mgrid_fail(err, MGRID_REFUSED, "the families are of worlds of %" PRId64 " and %" PRId64 " ranks", a->world,
                      b->world);
  for (int64_t g = 0; g < a->count; g++) {
    int64_t first = mgrid_family_rank(a, g, 0), size = mgrid_family_size(a, g), most = 0, group, position;
    for (int64_t nth = 0; most < size && mgrid_family_locate(b, first, nth, &group, &position); nth++) {
      int64_t n = members_in(a, g, b, group);
      if (n > most) most = n;
    }
    if (most == size) continue;
    if (most == 0)
      return mgrid_fail(err, MGRID_REFUSED, "rank %" PRId64 " of group %" PRId64 " of %s is in no group of %s", first,
                        g, names->a, names->b);
    return mgrid_fail(err, MGRID_REFUSED,
                      "group %" PRId64 " of %s has ranks %" PRId64 " and %" PRId64 ", and no group of %s has both", g,
                      names->a, first, mgrid_family_rank(a, g, most), names->b);
  }
  return MGRID_OK;
}

mgrid_status mgrid_law_disjoint(const mgrid_family *a, const mgrid_family *b, const mgrid_law_names *names,
                                mgrid_error *err) {
  const mgrid_family *f = a->total < b->total ? a : b, *other = f == a ? b : a;
  int64_t             group, position;
  for (int64_t g = 0; g < f->count; g++)
    for (int64_t k = 0, n = mgrid_family_size(f, g); k < n; k++) {
      int64_t rank = mgrid_family_rank(f, g, k);
      if (mgrid_family_locate(other, rank, 0, &group, &position))
        return mgrid_fail(err, MGRID_REFUSED,
                          "rank %" PRId64 " is in group %" PRId64 " of %s and in group %" PRId64 " of %s", rank,
                          f == a ? g : group, names->a, f == a ? group : g, names->b);
    }
  return MGRID_OK;
}

mgrid_status mgrid_law_covers(const mgrid_family *f, mgrid_error *err) {
  int64_t group, position;
  if (mgrid_family_coverage(f) == MGRID_PARTITION) return MGRID_OK;
  for (int64_t r = 0; r < f->world; r++)
    if (!mgrid_family_locate(f, r, 0, &group, &position))
      return mgrid_fail(err, MGRID_REFUSED, "rank %" PRId64 " is in no group", r);
  return MGRID_OK;
}

/* ------------------------------------------------------------------ by text */

mgrid_status mgrid_plan_law(const mgrid_plan *p, const char *law, mgrid_error *err) {
  static const char *const known[] = { "same", "within", "disjoint", "covers" };
  char                     name[MGRID_NAME_MAX + 1], word[2][MGRID_NAME_MAX + 1], tail[512];
  int                      end = 0, n = sscanf(law, " %31[a-z] ( %31[A-Za-z0-9_] %n", name, word[0], &end);
  bool                     two = n == 2 && sscanf(law + end, " , %31[A-Za-z0-9_] %n", word[1], &n) == 1;
  if (two) end += n;
  if (end == 0 || strcmp(law + end, ")") != 0)
    return mgrid_fail(err, MGRID_BAD_VALUE, "a law is within(a, b), disjoint(a, b), same(a, b) or covers(a), not '%s'",
                      law);
  size_t which = 0;
  while (which < 4 && strcmp(known[which], name) != 0) which++;
  if (which == 4) {
    mgrid_suggest(tail, sizeof tail, name, known, 4);
    return mgrid_fail(err, MGRID_UNKNOWN_NAME, "unknown law '%s'%s", name, tail);
  }
  if (two != (which < 3))
    return mgrid_fail(err, MGRID_BAD_VALUE, "law '%s' is of %s", name, which < 3 ? "two families" : "one family");
  const mgrid_family *f[2] = { NULL, NULL };
  for (int i = 0; i <= two; i++) {
    int at = mgrid_content_find(&p->content, word[i]);
    if (at < 0) {
      mgrid_content_suggest(&p->content, word[i], tail, sizeof tail);
      return mgrid_fail(err, MGRID_UNKNOWN_NAME, "law %s: unknown family '%s'%s", law, word[i], tail);
    }
    f[i] = p->content.entry[at].family;
  }
  mgrid_error     why = MGRID_ERROR_INIT;
  mgrid_law_names names = { word[0], word[1] };
  mgrid_status    s = which == 0   ? mgrid_law_same(f[0], f[1], &why)
                      : which == 1 ? mgrid_law_within(f[0], f[1], &names, &why)
                      : which == 2 ? mgrid_law_disjoint(f[0], f[1], &names, &why)
                                   : mgrid_law_covers(f[0], &why);
  return s ? mgrid_fail(err, s, "law %s does not hold: %s", law, why.message) : s;
}
