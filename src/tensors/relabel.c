/* SPDX-License-Identifier: MIT
**
** relabel.c - mgrid_relabel: decides which piece gets which new set of elements, so that elements
** of the greatest total weight stay in their piece. In this file a piece is called the name of its
** set.
*/

/* THE HUNGARIAN METHOD. The cost of a set under a name is minus the weight of the elements that the
** set has in common with the old piece of this name. The sets get names one after the other, each
** along the shortest path of swaps. Sets and names have prices, under which no other name is better
** for a set than the name that it has. Empty sets get the remaining names. This takes O(sets) steps
** of O(sets x pieces). The costs of one set at a time are computed from lists, so the memory is
** O(elements + pieces).
*/

#include "base/base.h"
#include "moongrid_tensor.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { PIECES_MOST = 1024 }; /* takes about 2 s in the worst case */

typedef struct matching {
  const int64_t *was, *weight; /* weight NULL: all weights are 1 */
  int64_t pieces;
  int64_t *begin, *member;    /* [pieces + 1], [n]: the elements of each set */
  int64_t *row;               /* [pieces]: the costs of a set, by name */
  int64_t *set_price, *price; /* [pieces]: of sets, of names */
  /* [pieces + 1], by name: the least cost to extend a searched path by the name; the name before it
  ** on that path */
  int64_t *slack, *before;
  int64_t *taken; /* [pieces + 1]: the set that has each name, or -1 */
  bool *seen;     /* [pieces + 1], by name: it is on a searched path */
} matching;

static int64_t weight_of(const matching *m, int64_t i) { return m->weight ? m->weight[i] : 1; }

static mgrid_status relabel_check(size_t n, const int64_t *was, const int64_t *now,
                                  const int64_t *weight, int64_t pieces, mgrid_error *err) {
  int64_t sum = 0;

  if (mgrid_lacks_list(n, was, "owners before", err) || mgrid_lacks_list(n, now, "new owners", err))
    return MGRID_USAGE;
  if (pieces < 1 || pieces > PIECES_MOST)
    return mgrid_fail(err, MGRID_OUT_OF_RANGE, "%" PRId64 " pieces; there are 1 to %d", pieces,
                      PIECES_MOST);
  for (size_t i = 0; i < n; i++) {
    if (now[i] < 0 || now[i] >= pieces)
      return mgrid_fail(err, MGRID_OUT_OF_RANGE,
                        "new owner %zu is %" PRId64 "; %" PRId64 " pieces are 0 to %" PRId64, i,
                        now[i], pieces, pieces - 1);
    if (was[i] < 0)
      return mgrid_fail(err, MGRID_OUT_OF_RANGE, "owner %zu is %" PRId64 "; owners are 0 or more",
                        i, was[i]);
    if (weight && weight[i] < 0)
      return mgrid_fail(err, MGRID_OUT_OF_RANGE, "weight %zu is %" PRId64 "; weights are 0 or more",
                        i, weight[i]);
    if (weight && (__builtin_add_overflow(sum, weight[i], &sum) || sum > INT64_MAX / 4))
      return mgrid_fail(err, MGRID_OVERFLOW, "the weights sum to more than 2^61 at number %zu", i);
  }
  return MGRID_OK;
}

/* List the elements of each set, by counting. */
static void sort_members(matching *m, size_t n, const int64_t *now) {
  for (size_t i = 0; i < n; i++) m->begin[now[i] + 1]++;
  for (int64_t k = 0; k < m->pieces; k++) m->begin[k + 1] += m->begin[k];
  for (size_t i = n; i-- > 0;) m->member[--m->begin[now[i] + 1]] = (int64_t)i;
  memmove(m->begin, m->begin + 1, (size_t)m->pieces * sizeof *m->begin);
  m->begin[m->pieces] = (int64_t)n;
}

static void set_row(matching *m, int64_t set) {
  memset(m->row, 0, (size_t)m->pieces * sizeof *m->row);
  for (int64_t k = m->begin[set]; k < m->begin[set + 1]; k++) {
    int64_t i = m->member[k];
    if (m->was[i] < m->pieces) m->row[m->was[i]] -= weight_of(m, i);
  }
}

/* Give a name to one more set. At first it has the name `pieces`, which stands for none. */
static void name_set(matching *m, int64_t set) {
  int64_t none = m->pieces, name = none;

  for (int64_t j = 0; j <= none; j++) m->slack[j] = INT64_MAX, m->seen[j] = false;
  m->taken[none] = set;
  do {
    int64_t next = none, least = INT64_MAX, who = m->taken[name];
    m->seen[name] = true;
    set_row(m, who);
    for (int64_t j = 0; j < none; j++) {
      if (m->seen[j]) continue;
      int64_t over = m->row[j] - m->set_price[who] - m->price[j];
      if (over < m->slack[j]) m->slack[j] = over, m->before[j] = name;
      if (m->slack[j] < least) least = m->slack[j], next = j;
    }
    for (int64_t j = 0; j <= none; j++) {
      if (m->seen[j])
        m->set_price[m->taken[j]] += least, m->price[j] -= least;
      else if (m->slack[j] < INT64_MAX)
        m->slack[j] -= least;
    }
    name = next;
  } while (m->taken[name] >= 0);
  for (; name != none; name = m->before[name]) m->taken[name] = m->taken[m->before[name]];
}

mgrid_status mgrid_relabel(size_t n, const int64_t *was, const int64_t *now, const int64_t *weight,
                           int64_t pieces, int64_t *out, int64_t *kept, mgrid_error *err) {
  if (kept) *kept = 0;
  mgrid_status s = relabel_check(n, was, now, weight, pieces, err);
  matching m = { .was = was, .weight = weight, .pieces = pieces };
  if (s) return s;
  if (n && mgrid_lacks(out, "room for the owners", err)) return MGRID_USAGE;

  size_t k = (size_t)pieces + 1;
  int64_t *room = calloc(7 * k + n, sizeof *room);
  m.seen = calloc(k, sizeof *m.seen);
  if (!room || !m.seen) {
    free(room);
    free(m.seen);
    return mgrid_oom(err);
  }

  m.begin = room, m.row = room + k, m.set_price = room + 2 * k, m.price = room + 3 * k;
  m.slack = room + 4 * k, m.before = room + 5 * k, m.taken = room + 6 * k, m.member = room + 7 * k;

  sort_members(&m, n, now);
  for (int64_t j = 0; j < pieces; j++) m.taken[j] = -1;
  for (int64_t i = 0; i < pieces; i++)
    if (m.begin[i] < m.begin[i + 1]) name_set(&m, i);
  int64_t *name = m.row, sum = 0; /* [pieces]: the name of each set */
  for (int64_t j = 0; j < pieces; j++)
    if (m.taken[j] >= 0) name[m.taken[j]] = j;

  for (size_t i = 0; i < n; i++) {
    int64_t own = name[now[i]];
    if (own == was[i]) sum += weight_of(&m, (int64_t)i);
    out[i] = own;
  }
  if (kept) *kept = sum;

  free(room);
  free(m.seen);
  return MGRID_OK;
}
