/* SPDX-License-Identifier: MIT
**
** ranges.c - counts how many holders of a shard have a number (move.h) below a given number. The
** holders have a range of coordinates in each dim of `from`; the ranks with numbers below the given
** one are a union of sets with a range of coordinates in each dim of `to`. The ranks in one range
** are runs that repeat with a period. The ranks that are in all ranges repeat with the least common
** multiple of the periods: count them in one stretch of that length, and multiply by the number of
** stretches. Within a stretch go through the runs of the range with the longest period, and in each
** run through the runs of the next range.
*/
#include "tensors/move.h"

#include <stdlib.h>
#include <string.h>

/* Count by ranges if this takes fewer than n + STEPS steps; a list of the holders has up to n
** entries. */
enum { STEPS = 64 };

static int64_t period(const mgrid_range *c) { return c->stride * c->size; }
static bool free_of(const mgrid_range *c) { return c->low == 0 && c->high == c->size; }

/* Return the least common multiple, or `enough` if it is at least that. */
static int64_t multiple(int64_t a, int64_t b, int64_t enough) {
  int64_t x = a, y = b;
  while (y) {
    int64_t rest = x % y;
    x = y;
    y = rest;
  }
  return b / x <= (enough - 1) / a ? a * (b / x) : enough;
}

/* ----------------------------------------------------------------- counting */

static int64_t ranges_count(const mgrid_range *c, size_t n, int64_t begin, int64_t end);

/* Count the ranks in all n ranges, run by run of the first range. */
static int64_t count_runs(const mgrid_range *c, size_t n, int64_t begin, int64_t end) {
  int64_t sum = 0;
  for (int64_t at = begin - (begin - c->origin) % period(c); at < end; at += period(c))
    sum += ranges_count(c + 1, n - 1, mgrid_max(begin, at + c->low * c->stride),
                        mgrid_min(end, at + c->high * c->stride));
  return sum;
}

/* Count the ranks from `begin` to end - 1 that are in all n ranges. */
static int64_t ranges_count(const mgrid_range *c, size_t n, int64_t begin, int64_t end) {
  while (n > 0 && free_of(c)) c++, n--;
  if (begin >= end || n == 0) return mgrid_max(0, end - begin);
  int64_t common = period(c), length = end - begin;
  for (size_t i = 1; i < n && common <= length; i++)
    if (!free_of(&c[i]) && common % period(&c[i]) != 0)
      common = multiple(common, period(&c[i]), length + 1);
  if (common > length) return count_runs(c, n, begin, end);
  int64_t times = length / common;
  return times * count_runs(c, n, begin, begin + common)
         + count_runs(c, n, begin + times * common, end);
}

/* ------------------------------------------------------------------- numbers */

/* The ranges of a shard's holders, narrowed to the numbers that are being counted. */
typedef struct view {
  const mgrid_needs *needs;
  mgrid_range range[MGRID_RANGES_MAX];
} view;

/* Set *dim to the dims of axis i of `to`, outermost first, and return their number. The index after
** the last axis stands for the copies. */
static size_t dims_of(const mgrid_tensor *t, size_t i, const uint8_t **dim) {
  *dim = i < t->naxes ? t->axis[i].dim : t->free_dim;
  return i < t->naxes ? t->axis[i].ndims : t->nfree;
}

/* The number of a piece, or of a copy, has one digit for each dim of the axis. This is the digit of
** one dim: it has `size` values, and each value stands for `each` coordinates of the dim. */
typedef struct digits {
  int64_t size, each;
} digits;

static digits digits_of(const mgrid_tensor *t, size_t i, uint8_t dim) {
  int64_t share = t->share[dim];
  return i < t->naxes ? (digits){ t->grid->axis[dim].size / share, share } : (digits){ share, 1 };
}

/* Limit the digit of a dim to low .. high - 1. If share[dim] is more than 1 and less than the size
** of the dim, the dim has two digits: one of the piece and one of the copy. The digit of the piece
** is limited first, to consecutive coordinates; the digit of the copy chooses among these
** coordinates. Dims of size 1 have no range. */
static void ranges_narrow(view *v, size_t i, uint8_t dim, int64_t low, int64_t high) {
  const mgrid_pair *p = v->needs->pair;
  if (p->to->grid->axis[dim].size == 1) return;
  mgrid_range *c = &v->range[p->range_of[dim]];
  digits d = digits_of(p->to, i, dim);
  int64_t from = i < p->to->naxes ? 0 : c->low / d.size * d.size;
  c->low = from + low * d.each;
  c->high = from + high * d.each;
}

static int64_t all_from(view *v, size_t i);

/* In axis i the digits of the dims from dim k on together make a number from 0 to pieces - 1. Count
** the ranks in the ranges of v for which this number is x .. y - 1. In v the digits of the dims
** before dim k are limited already. */
static int64_t ranges_between(view *v, size_t i, size_t k, int64_t pieces, int64_t x, int64_t y) {
  const uint8_t *dim;
  if (x >= y) return 0;
  if (y - x == pieces) return all_from(v, i + 1);
  dims_of(v->needs->pair->to, i, &dim);
  int64_t size = digits_of(v->needs->pair->to, i, dim[k]).size, inner = pieces / size, sum = 0;
  while (x < y) { /* first up to the next whole digit, then whole digits, then the rest */
    int64_t digit = x / inner, first = x % inner, n = first || y - x < inner ? 1 : (y - x) / inner;
    int64_t last = mgrid_min(y - digit * inner, n == 1 ? inner : n * inner);
    ranges_narrow(v, i, dim[k], digit, digit + n);
    sum += n > 1 ? all_from(v, i + 1) : ranges_between(v, i, k + 1, inner, first, last);
    x = digit * inner + last;
  }
  ranges_narrow(v, i, dim[k], 0, size);
  return sum;
}

/* Count the ranks in the ranges of v which, on each axis from i on, have a piece that overlaps with
** the shard. */
static int64_t all_from(view *v, size_t i) {
  const mgrid_needs *d = v->needs;
  const mgrid_pair *p = d->pair;
  if (i >= p->to->naxes) return ranges_count(v->range, p->nranges, p->first, p->end);
  return ranges_between(v, i, 0, p->to->axis[i].pieces, d->overlaps[i].low,
                        d->overlaps[i].low + d->overlaps[i].n);
}

int64_t mgrid_ranges_before(const mgrid_needs *d, const mgrid_coords *at) {
  const mgrid_tensor *t = d->pair->to;
  const uint8_t *dim;
  int64_t sum = 0;
  view v;
  v.needs = d;
  memcpy(v.range, d->range, d->pair->nranges * sizeof *v.range);
  for (size_t i = 0; i <= t->naxes; i++) {
    int64_t piece = i < t->naxes ? at->piece[i] : at->copy;
    sum += ranges_between(&v, i, 0, i < t->naxes ? t->axis[i].pieces : t->copies,
                          i < t->naxes ? d->overlaps[i].low : 0, piece);
    for (size_t k = dims_of(t, i, &dim); k-- > 0;) {
      int64_t size = digits_of(t, i, dim[k]).size, digit = piece % size;
      ranges_narrow(&v, i, dim[k], digit, digit + 1);
      piece /= size;
    }
  }
  return sum;
}

int64_t mgrid_ranges_of(mgrid_needs *d) {
  const mgrid_pair *p = d->pair;
  const mgrid_tensor *f = p->from;
  int64_t coord[MGRID_DIMS_MAX];
  view v;
  for (size_t i = 0; i < f->naxes; i++) {
    int64_t piece = d->piece[i];
    for (size_t k = f->axis[i].ndims; k-- > 0; piece /= f->axis[i].size[k])
      coord[f->axis[i].dim[k]] = piece % f->axis[i].size[k] * f->share[f->axis[i].dim[k]];
  }
  for (size_t i = 0; i < p->nranges; i++) {
    d->range[i] = p->range[i];
    if (p->range[i].dim < 0) continue;
    int64_t low = coord[p->range[i].dim], high = low + f->share[p->range[i].dim],
            div = p->range[i].div;
    d->range[i].low = low / div;
    d->range[i].high = (high + div - 1) / div;
  }
  v.needs = d;
  memcpy(v.range, d->range, p->nranges * sizeof *v.range);
  return all_from(&v, 0);
}

/* -------------------------------------------------------------------- a pair */

/* Widen a range of holders to all ranks on their machines: each c->div coordinates, which share a
** machine, become one. False: the size of a machine and the stride, or the size of a machine and
** the period, do not divide each other. */
static bool ranges_widen(mgrid_range *c, int64_t machine) {
  bool whole = machine % period(c) == 0;
  if (period(c) <= machine) {
    c->size = 1;
    return whole;
  }
  if (c->stride >= machine) return c->stride % machine == 0;
  if (machine % c->stride != 0 || period(c) % machine != 0) return false;
  c->div = (int32_t)(machine / c->stride);
  c->size /= c->div;
  c->stride = machine;
  return true;
}

static int by_period(const void *a, const void *b) {
  int64_t x = period(a), y = period(b);
  return (x < y) - (x > y);
}

/* Return a bound for the steps of counting, or `enough` if it is at least that. For each range take
** the number of its periods that fit into one period of the range before it (for the first range:
** into the ranks from p->first to p->end - 1), or into the least common multiple of its own and the
** later periods, if that is shorter. Add 1 to this number, unless each later period divides the
** period of the range and starts together with it. The bound is the product of these numbers.
** Ranges that nest take one step. */
static int64_t steps_of(const mgrid_pair *p, int64_t enough) {
  int64_t steps = 1, within = mgrid_max(1, p->end - p->first);
  for (size_t i = 0; i < p->nranges; i++) {
    int64_t one = period(&p->range[i]), common = one;
    bool together = true;
    for (size_t k = i + 1; k < p->nranges; k++) {
      common = multiple(common, period(&p->range[k]), within);
      together &= (p->range[i].origin - p->range[k].origin) % period(&p->range[k]) == 0;
    }
    int64_t runs = mgrid_min(common, within) / one + !(together && common == one);
    if (runs >= enough / steps) return enough;
    steps *= mgrid_max(1, runs);
    within = one;
  }
  return steps;
}

static bool same_numbers(const mgrid_pair *p) {
  const mgrid_grid *a = p->from->grid, *b = p->to->grid;
  if (p->names->n || p->olds->n || !a->order != !b->order) return false;
  return !a->order || mgrid_family_same_rule(a->order, b->order);
}

static bool ranges_add(mgrid_pair *p, mgrid_range c) {
  if (p->nranges == MGRID_RANGES_MAX) return false;
  p->range[p->nranges++] = c;
  return true;
}

bool mgrid_ranges_find(mgrid_pair *p) {
  const mgrid_tensor *f = p->from, *t = p->to;
  const mgrid_grid *a = f->grid, *b = t->grid;
  int64_t machine = p->machine ? p->machine : 1;
  int64_t from = a->order ? 0 : a->window.offset, to = b->order ? 0 : b->window.offset;

  p->nranges = 0;
  /* with an order, consecutive positions of the grid may be on different machines */
  if (!same_numbers(p) || (p->machine && (a->order || from % machine != 0))) return false;
  for (size_t d = 0; d < a->n; d++) {
    mgrid_range c = { from, a->axis[d].stride, a->axis[d].size, 0, a->axis[d].size, (int32_t)d, 1 };
    if (f->some[d]) return false;
    if (f->share[d] == c.size) continue; /* the dim cuts nothing */
    if (!ranges_widen(&c, machine) || (c.size > 1 && !ranges_add(p, c))) return false;
  }
  for (size_t d = 0; d < b->n; d++) {
    mgrid_range c = {
      to, b->axis[d].stride, b->axis[d].size, 0, b->axis[d].size, -1 - (int32_t)d, 1
    };
    if (t->some[d] || (c.size > 1 && !ranges_add(p, c))) return false;
  }
  qsort(p->range, p->nranges, sizeof *p->range, by_period);
  for (size_t i = 0; i < p->nranges; i++)
    if (p->range[i].dim < 0) p->range_of[-1 - p->range[i].dim] = (uint8_t)i;
  p->first = mgrid_max(from, to);
  p->end = mgrid_min((from + a->size + machine - 1) / machine * machine, to + b->size);
  return steps_of(p, f->copies * machine + STEPS) < f->copies * machine + STEPS;
}
