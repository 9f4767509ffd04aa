/* SPDX-License-Identifier: MIT
**
** read.c - read families and grids from their canonical text, which family.c and grid.c write. Each rule becomes the
** form that it was, so its text is the same again. Text that the library cannot have written is refused, here or by the
** functions that make the form.
*/
#include "families/grid.h"

#include <inttypes.h>
#include <stdlib.h>

enum { MEMBER = 4 }; /* work for a member of a list, which is sorted */

typedef mgrid_family family;

static family *read_rule(mgrid_scan *s, int64_t world, int depth);

/* Return f; or free it and return NULL after a failure, or once the budget is exhausted. */
static family *made(mgrid_scan *s, family *f) {
  if (f && (!s->budget || !s->budget->exhausted) && !s->failed) return f;
  mgrid_family_free(f);
  mgrid_scan_fail(s);
  return NULL;
}

/* ------------------------------------------------------------------- modes */

/* Read "(2:1)(4:8)", or "(1)" for none. */
static size_t read_modes(mgrid_scan *s, mgrid_mode modes[MGRID_MODES_MAX]) {
  size_t n = 0;
  if (mgrid_scan_take(s, "(1)")) return 0;
  if (!mgrid_scan_next(s, "(")) mgrid_scan_fault(s, "a rule of a family");
  while (mgrid_scan_take(s, "(")) {
    if (n == MGRID_MODES_MAX) mgrid_scan_fault(s, "at most 30 modes");
    if (s->failed) return 0;
    modes[n].size = mgrid_scan_number(s);
    mgrid_scan_want(s, ":");
    modes[n++].stride = mgrid_scan_number(s);
    mgrid_scan_want(s, ")");
  }
  return s->failed ? 0 : n;
}

/* Read what follows modes: " + 8", or nothing. */
static int64_t read_offset(mgrid_scan *s) { return mgrid_scan_take(s, " + ") ? mgrid_scan_number(s) : 0; }

/* Read "(2:1) x (4:2) + 8"; an order of a grid has no index modes. Not inlined, to keep the frame of read_rule small,
** which calls itself. */
static __attribute__((noinline)) family *read_strided(mgrid_scan *s, int64_t world, bool order) {
  mgrid_mode  inside[MGRID_MODES_MAX], index[MGRID_MODES_MAX];
  const char *from = s->at;
  size_t      n = read_modes(s, inside), m = 0;
  if (!order) {
    mgrid_scan_want(s, " x ");
    m = read_modes(s, index);
  }
  int64_t     offset = read_offset(s);
  mgrid_error why = MGRID_ERROR_INIT;
  if (s->failed) return NULL;
  family *f = mgrid_layout_modes(mgrid_world(world), offset, n, inside, m, index, false, &why);
  if (!f && why.status) {
    mgrid_error_pass(s->err, &why);
  } else if (!f) {
    s->at = from;
    mgrid_scan_fault(s, "modes whose strides each exceed the reach of the smaller ones");
  }
  return made(s, f);
}

/* ------------------------------------------------------------------- lists */

/* Read "{0,3}{1,2}", or nothing for no groups. */
static family *read_table(mgrid_scan *s, int64_t world) {
  int64_t *starts = mgrid_scan_room(s, NULL, 0, sizeof *starts), *more, count = 0, total = 0;
  int32_t *ranks = mgrid_scan_room(s, NULL, 0, sizeof *ranks), *longer;
  if (starts) starts[0] = 0;
  while (starts && ranks && mgrid_scan_take(s, "{")) {
    do {
      const char *from = s->at;
      int64_t     rank = mgrid_scan_number(s);
      if (rank >= world) {
        s->at = from;
        mgrid_scan_fault(s, "a rank of this world");
      }
      if (!(longer = mgrid_scan_room(s, ranks, (size_t)total, sizeof *ranks))) break;
      ranks = longer;
      ranks[total++] = (int32_t)rank;
    } while (mgrid_scan_take(s, ","));
    mgrid_scan_want(s, "}");
    if (!(more = mgrid_scan_room(s, starts, (size_t)++count, sizeof *starts))) break;
    starts = more;
    starts[count] = total;
  }
  if (s->failed || !mgrid_spend(s->budget, total * MEMBER)) {
    free(starts);
    free(ranks);
    return made(s, NULL);
  }
  return made(s, mgrid_table_adopt(mgrid_world(world), count, starts, ranks, MGRID_COVER, false, s->err));
}

/* -------------------------------------------------- families of other families */

/* Read " of [...]". */
static family *read_base(mgrid_scan *s, int64_t world, int depth) {
  mgrid_scan_want(s, " of [");
  family *base = read_rule(s, world, depth + 1);
  mgrid_scan_want(s, "]");
  return made(s, base);
}

/* Read the base of a cut, whose groups have one size and share no ranks. */
static family *read_whole(mgrid_scan *s, int64_t world, int depth) {
  const char *from = s->at;
  family     *base = read_base(s, world, depth);
  if (!base || (!base->overlapping && base->size > 0)) return base;
  s->at = from;
  mgrid_scan_fault(s, "a family with groups of one size that share no ranks");
  return made(s, base);
}

/* Read what follows "split(": runs of k positions; or "links(": every k-th position. */
static family *read_evenly(mgrid_scan *s, int64_t world, bool links, int depth) {
  const char     *from = s->at;
  mgrid_splitting x = { .k = mgrid_scan_number(s), .by_row = mgrid_scan_take(s, " by row") };
  mgrid_scan_want(s, ")");
  family *base = read_whole(s, world, depth);
  if (base && x.k < 1) {
    s->at = from;
    mgrid_scan_fault(s, "a number above 0");
  } else if (base) {
    mgrid_split_cut(&x, base, s->err);
  }
  mgrid_family_free(base);
  mgrid_family_free(links ? x.inner : x.outer);
  return made(s, links ? x.outer : x.inner);
}

/* Read what follows "segments{": the sizes. */
static family *read_segments(mgrid_scan *s, int64_t world, int depth) {
  size_t   n;
  int64_t *sizes = mgrid_scan_numbers(s, &n), fill, *starts;
  bool     by_row = mgrid_scan_take(s, " by row");
  mgrid_scan_want(s, "}");
  family *base = read_whole(s, world, depth), *f = NULL;
  if (base && !mgrid_segments_check(base->size, n, sizes, &fill, s->err)) {
    if ((starts = malloc((n + 1) * sizeof *starts))) starts[0] = 0;
    for (size_t i = 0; i < n && starts; i++) starts[i + 1] = starts[i] + sizes[i];
    f = mgrid_cut_at(base, (int64_t)n, starts, by_row, s->err);
  }
  free(sizes);
  mgrid_family_free(base);
  return made(s, f);
}

/* Read what follows "pick{": positions of the groups of a rule of modes. */
static family *read_pick(mgrid_scan *s, int64_t world) {
  size_t   n;
  int64_t *positions = mgrid_scan_numbers(s, &n);
  mgrid_scan_want(s, "} of ");
  family *base = s->failed ? NULL : read_strided(s, world, false);
  family *f = base && mgrid_spend(s->budget, (int64_t)n * MEMBER) ? mgrid_family_pick(base, n, positions, s->err)
                                                                  : NULL;
  free(positions);
  mgrid_family_free(base);
  return made(s, f);
}

/* Read what follows "neighbours(". */
static family *read_pairs(mgrid_scan *s, int64_t world, int depth) {
  int64_t step = mgrid_scan_number(s);
  bool    wrap = mgrid_scan_take(s, ", wrap");
  mgrid_scan_want(s, ")");
  const char *from = s->at;
  family     *base = read_base(s, world, depth), *f = NULL;
  if (base && base->size < 0) {
    s->at = from;
    mgrid_scan_fault(s, "a family with groups of one size");
  } else if (base) {
    f = mgrid_family_neighbours(base, step, wrap, s->err);
  }
  mgrid_family_free(base);
  return made(s, f);
}

/* Read what follows "union[" or "zip[": families with " | " between them. */
static family *read_parts(mgrid_scan *s, int64_t world, bool zip, int depth) {
  family **child = NULL, **more, *f = NULL;
  size_t   n = 0;
  do {
    family *one = read_rule(s, world, depth + 1);
    if (!one || !(more = mgrid_scan_room(s, child, n, sizeof *child))) {
      mgrid_family_free(one);
      break;
    }
    child = more;
    child[n++] = one;
    if (n > MGRID_PARTS_MAX) mgrid_scan_fault(s, "at most 4096 families");
  } while (mgrid_scan_take(s, " | "));
  mgrid_scan_want(s, "]");
  if (!s->failed) f = mgrid_family_combine(zip, n, (const family *const *)child, s->budget, s->err);
  mgrid_families_free(n, child);
  return made(s, f);
}

static family *read_rule(mgrid_scan *s, int64_t world, int depth) {
  if (depth > MGRID_DEPTH_MAX) mgrid_scan_fault(s, "at most 64 nested families");
  if (s->failed) return NULL;
  if (mgrid_scan_take(s, "pick{")) return read_pick(s, world);
  if (mgrid_scan_take(s, "neighbours(")) return read_pairs(s, world, depth);
  if (mgrid_scan_take(s, "segments{")) return read_segments(s, world, depth);
  if (mgrid_scan_take(s, "split(")) return read_evenly(s, world, false, depth);
  if (mgrid_scan_take(s, "links(")) return read_evenly(s, world, true, depth);
  if (mgrid_scan_take(s, "union[")) return read_parts(s, world, false, depth);
  if (mgrid_scan_take(s, "zip[")) return read_parts(s, world, true, depth);
  bool none = s->at == s->end || *s->at == ' ' || *s->at == ']'; /* a table without groups has no text */
  return none || *s->at == '{' ? read_table(s, world) : read_strided(s, world, false);
}

family *mgrid_family_read(mgrid_scan *s, int64_t world) {
  family *f = read_rule(s, world, 0);
  if (f && f->count == 0) mgrid_scan_want(s, " (no groups)");
  return made(s, f);
}

/* ------------------------------------------------------------------- grids */

/* Read "3,2,1,0", a family of one group of these ranks. */
static family *read_order(mgrid_scan *s, int64_t world) {
  size_t      n;
  const char *from = s->at;
  int64_t    *list = mgrid_scan_numbers(s, &n);
  int32_t    *ranks = NULL;
  for (size_t i = 0; i < n && !s->failed; i++) {
    if (list[i] < world) continue;
    s->at = from;
    mgrid_scan_fault(s, "ranks of this world");
  }
  if (!s->failed && mgrid_spend(s->budget, (int64_t)n * MEMBER) && !(ranks = malloc(n * sizeof *ranks)))
    mgrid_oom(s->err);
  for (size_t i = 0; i < n && ranks; i++) ranks[i] = (int32_t)list[i];
  free(list);
  return made(s, ranks ? mgrid_order_list(mgrid_world(world), (int64_t)n, ranks, s->err) : NULL);
}

mgrid_grid *mgrid_grid_read(mgrid_scan *s, int64_t world) {
  char        name[MGRID_DIMS_MAX][MGRID_NAME_MAX + 1];
  mgrid_dim   dims[MGRID_DIMS_MAX];
  size_t      n = 0;
  mgrid_grid *g = NULL;
  if (!mgrid_scan_take(s, "1")) {
    do {
      if (n == MGRID_DIMS_MAX) mgrid_scan_fault(s, "at most 64 dims");
      if (s->failed) return NULL;
      mgrid_scan_name(s, name[n]);
      mgrid_scan_want(s, " ");
      dims[n] = (mgrid_dim){ name[n], mgrid_scan_number(s) };
      n++;
    } while (mgrid_scan_take(s, " x "));
  }
  mgrid_scan_want(s, " over ranks ");
  const char *from = s->at;
  family     *order = NULL;
  int64_t     low = mgrid_scan_next(s, "(") ? -1 : mgrid_scan_number(s);
  if (low >= 0 && mgrid_scan_take(s, "..")) {
    from = s->at;
    int64_t high = mgrid_scan_number(s);
    if (!s->failed && high < low) mgrid_scan_fault(s, "a highest rank that is not below the lowest");
    if (!s->failed && high >= world) s->at = from, mgrid_scan_fault(s, "a rank of this world");
    if (!s->failed) g = mgrid_grid_new((mgrid_window){ world, low, high - low + 1 }, n, dims, s->err);
  } else if (!s->failed) {
    s->at = from;
    order = low < 0 ? read_strided(s, world, true) : read_order(s, world);
    g = order ? mgrid_grid_over(order, n, dims, s->err) : NULL;
  }
  mgrid_family_free(order);
  if (!g) mgrid_scan_fail(s);
  return g;
}
