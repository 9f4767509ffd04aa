/* SPDX-License-Identifier: MIT
**
** needs.c - who needs a shard, by number: the place where a sender and a receiver meet without a word.
*/
#include "tensor/move.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------------- digits */

static int ascending(const void *a, const void *b) {
  int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
  return (x > y) - (x < y);
}

/* The strides of all dims of both grids, and of machines, if each divides the next; else 0. */
static int strides_of(const mgrid_grid *a, const mgrid_grid *b, int64_t machine, int64_t *out) {
  const mgrid_grid *side[] = { a, b };
  int               n = 0, kept = 0;
  for (int i = 0; i < 2; i++)
    for (size_t d = 0; d < side[i]->n; d++)
      if (side[i]->axis[d].size > 1) out[n++] = side[i]->axis[d].stride;
  if (machine) out[n++] = machine;
  qsort(out, (size_t)n, sizeof *out, ascending);
  for (int i = 0; i < n; i++) {
    if (kept && out[i] == out[kept - 1]) continue;
    if (kept && out[i] % out[kept - 1] != 0) return 0;
    out[kept++] = out[i];
  }
  return kept;
}

/* The dim that varies at a stride; -1 where the grid ends before. */
static int dim_at(const mgrid_grid *g, int64_t stride) {
  for (size_t d = 0; d < g->n; d++)
    if (g->axis[d].size > 1 && g->axis[d].stride <= stride && stride < g->axis[d].stride * g->axis[d].size)
      return (int)d;
  return -1;
}

static bool cuts(const mgrid_tensor *t, int dim) {
  for (size_t i = 0; i < t->nfree; i++)
    if (t->free_dim[i] == dim) return false;
  return true;
}

/* What a shard says about the digit between a stride and the next, which has `radix` values. False: it is none of
** `from`. */
static bool digit_of(const mgrid_pair *p, int64_t stride, int64_t next, int64_t radix, mgrid_place_digit *out) {
  const mgrid_grid *g = p->from->grid;
  int               d = dim_at(g, stride);
  *out = (mgrid_place_digit){ radix, 1, radix, -1, 1, 1, stride < p->machine };
  if (d < 0) { /* `from` ends below: its ranks have 0 here */
    out->high = 1;
    return stride >= g->size;
  }
  int64_t end = g->axis[d].stride * g->axis[d].size, upto = next && next < end ? next : end;
  if (upto % stride != 0) return false;
  if (cuts(p->from, d)) {
    out->dim = d;
    out->div = stride / g->axis[d].stride;
    out->mod = upto / stride;
  } else if (upto / stride < radix) {
    out->high = upto / stride;
  }
  return true;
}

/* Add the digits of one dim of `to`, the largest first. */
static bool add_dim(mgrid_pair *p, size_t dim, const int64_t *stride, int n, int *used) {
  const mgrid_axis *a = &p->to->grid->axis[dim];
  int64_t           end = a->stride * a->size;
  for (int i = n - 1; i >= 0 && a->size > 1; i--) {
    if (stride[i] < a->stride || stride[i] >= end) continue;
    int64_t next = i + 1 < n ? stride[i + 1] : 0, upto = next && next < end ? next : end;
    if (upto % stride[i] != 0 || *used == MGRID_PLACE_DIGITS) return false;
    if (!digit_of(p, stride[i], next, upto / stride[i], &p->digit[(*used)++])) return false;
  }
  return true;
}

/* Find the digits, if there are any: both grids count the same ranks from 0, and their strides divide each other. */
static bool find_digits(mgrid_pair *p) {
  const mgrid_tensor *f = p->from, *t = p->to;
  int64_t             stride[2 * MGRID_DIMS_MAX + 1];
  int                 used = 0, n;
  if (p->machine && (f->grid->order || f->grid->window.offset % p->machine != 0)) return false;
  if (p->names->n || !f->grid->order != !t->grid->order) return false;
  if (f->grid->order ? !mgrid_family_same_rule(f->grid->order, t->grid->order)
                     : f->grid->window.offset != t->grid->window.offset)
    return false;
  for (size_t d = 0; d < f->grid->n; d++)
    if (f->some[d]) return false;
  for (size_t d = 0; d < t->grid->n; d++)
    if (t->some[d]) return false;
  n = strides_of(f->grid, t->grid, p->machine, stride);
  if (n == 0 && (f->grid->size > 1 || t->grid->size > 1)) return false;
  for (size_t i = 0; i < t->naxes; i++) {
    p->begin[i] = used;
    for (size_t k = 0; k < t->axis[i].ndims; k++)
      if (!add_dim(p, t->axis[i].dim[k], stride, n, &used)) return false;
  }
  p->begin[t->naxes] = used;
  for (size_t k = 0; k < t->nfree; k++)
    if (!add_dim(p, t->free_dim[k], stride, n, &used)) return false;
  p->begin[t->naxes + 1] = used;
  for (size_t i = 0; i <= t->naxes; i++)
    for (int64_t k = p->begin[i + 1], weight = 1; k-- > p->begin[i]; weight *= p->digit[k].radix)
      p->digit[k].weight = weight;
  for (int i = 0; i < n; i++) { /* where `to` has ended: its ranks have 0 there */
    mgrid_place_digit *o = &p->outer[p->nouter];
    if (stride[i] < t->grid->size || dim_at(f->grid, stride[i]) < 0) continue;
    if (p->nouter == MGRID_DIMS_MAX || !digit_of(p, stride[i], i + 1 < n ? stride[i + 1] : 0, 1, o)) return false;
    p->nouter += o->dim >= 0;
  }
  return true;
}

static mgrid_status check_alike(const mgrid_tensor *a, const mgrid_tensor *b, const char *name, mgrid_error *err) {
  if (a->type != b->type)
    return mgrid_fail(err, MGRID_REFUSED, "tensor '%s' is %s on one side and %s on the other", name, a->type, b->type);
  if (a->naxes != b->naxes)
    return mgrid_fail(err, MGRID_REFUSED, "tensor '%s' has %zu axes on one side and %zu on the other", name, a->naxes,
                      b->naxes);
  for (size_t i = 0; i < a->naxes; i++)
    if (strcmp(a->axis[i].name, b->axis[i].name) != 0 || a->axis[i].length != b->axis[i].length)
      return mgrid_fail(err, MGRID_REFUSED,
                        "tensor '%s': axis %zu is %s %" PRId64 " on one side and %s %" PRId64 " on the other", name, i,
                        a->axis[i].name, a->axis[i].length, b->axis[i].name, b->axis[i].length);
  return MGRID_OK;
}

/* Does a window end before a rank, and not on its machine? */
static bool ends_before(mgrid_window w, int64_t rank, int64_t machine) {
  return w.offset + w.size <= (machine ? rank / machine * machine : rank);
}

mgrid_status mgrid_pair_init(mgrid_pair *p, const mgrid_tensor *from, const mgrid_tensor *to,
                             const mgrid_renaming *names, int64_t turn, int64_t machine, const char *name,
                             mgrid_error *err) {
  mgrid_window a = from->grid->window, b = to->grid->window;
  mgrid_status s = check_alike(from, to, name, err);
  if (s) return s;
  p->nouter = 0;
  p->from = from;
  p->to = to;
  p->names = names;
  p->turn = turn;
  p->machine = machine > 1 ? machine : 0;
  p->flat = from->flat || to->flat;
  p->apart = !names->n && (ends_before(a, b.offset, p->machine) || ends_before(b, a.offset, p->machine));
  p->closed = !p->apart && !p->flat && find_digits(p);
  return MGRID_OK;
}

int64_t mgrid_pair_rank(const mgrid_pair *p, const mgrid_seat *at) {
  int64_t rank = mgrid_tensor_rank(p->to, at);
  return p->names->n ? p->names->ranks[rank] : rank;
}

bool mgrid_pair_seat(const mgrid_pair *p, int64_t rank, mgrid_seat *at) {
  if (p->names->n) rank = rank < p->names->nback ? p->names->back[rank] : -1;
  return rank >= 0 && mgrid_tensor_seat(p->to, rank, at);
}

/* ----------------------------------------------------------------- counting */

/* How many numbers below x have the digits of holders, on axis i (the last one: copies). *is: has x itself? */
static int64_t count_below(const mgrid_needs *d, size_t i, int64_t x, bool *is) {
  const mgrid_pair *p = d->pair;
  int64_t           sum = 0;
  int               first = p->begin[i], last = p->begin[i + 1];
  *is = true;
  for (int k = first; k < last; k++) {
    int64_t digit = x / p->digit[k].weight; /* of an x behind the last one, the first digit is its radix */
    x -= digit * p->digit[k].weight;
    if (digit < d->low[k] || digit >= d->high[k]) {
      *is = false;
      return digit < d->low[k] ? sum : sum + (d->high[k] - d->low[k]) * d->wide[k];
    }
    sum += (digit - d->low[k]) * d->wide[k];
  }
  if (first == last && x > 0) return *is = false, 1; /* one piece: number 0 alone */
  return sum;
}

/* Prepare the digits of holders of this shard. */
static void begin_digits(mgrid_needs *d) {
  const mgrid_pair   *p = d->pair;
  const mgrid_tensor *f = p->from, *t = p->to;
  int64_t             coord[MGRID_DIMS_MAX];
  for (size_t i = 0; i < f->naxes; i++) {
    int64_t piece = d->piece[i];
    for (size_t k = f->axis[i].ndims; k-- > 0; piece /= f->axis[i].size[k])
      coord[f->axis[i].dim[k]] = piece % f->axis[i].size[k];
  }
  bool none = false;
  for (int k = 0; k < p->nouter; k++) {
    const mgrid_place_digit *o = &p->outer[k];
    none |= !o->near && coord[o->dim] / o->div % o->mod != 0;
  }
  for (int k = 0; k < p->begin[t->naxes + 1]; k++) {
    const mgrid_place_digit *g = &p->digit[k];
    d->low[k] = 0;
    d->high[k] = g->near ? g->radix : g->high;
    if (g->dim < 0 || g->near) continue;
    d->low[k] = coord[g->dim] / g->div % g->mod;
    d->high[k] = d->low[k] + 1;
    none |= d->low[k] >= g->radix;
  }
  d->held = !none;
  for (size_t i = 0; i <= t->naxes && d->held; i++) {
    int64_t low = i < t->naxes ? d->meets[i].low : 0, n = i < t->naxes ? d->meets[i].n : t->copies, wide = 1;
    bool    is;
    for (int k = p->begin[i + 1]; k-- > p->begin[i]; wide *= d->high[k] - d->low[k]) d->wide[k] = wide;
    d->below[i] = count_below(d, i, low, &is);
    d->within[i] = count_below(d, i, low + n, &is) - d->below[i];
    d->held *= d->within[i];
  }
}

/* Or list the numbers of the copies of the shard, or of all ranks on their machines. */
static bool begin_list(mgrid_needs *d) {
  const mgrid_pair *p = d->pair;
  mgrid_seat        shard = { .slice = 0 }, at;
  int64_t           near = p->machine ? p->machine : 1, most = p->from->copies * near;
  if (most > d->total) most = d->total;
  if (d->room < most) {
    int64_t *more = realloc(d->list, (size_t)most * sizeof *more);
    if (!more) return false;
    d->list = more;
    d->room = most;
  }
  memcpy(shard.piece, d->piece, sizeof shard.piece);
  for (shard.copy = 0; shard.copy < p->from->copies; shard.copy++) {
    int64_t rank = mgrid_tensor_rank(p->from, &shard), first = rank / near * near, r = first;
    while (r < rank && !mgrid_holds(p, &shard, r)) r++;
    if (r < rank) continue; /* the machine of another copy, too */
    for (r = first; r < first + near; r++) {
      int64_t number = mgrid_pair_seat(p, r, &at) ? mgrid_needs_number(d, &at) : -1;
      if (number >= 0) d->list[d->held++] = number;
    }
  }
  qsort(d->list, (size_t)d->held, sizeof *d->list, ascending);
  return true;
}

bool mgrid_needs_of(mgrid_needs *d, const mgrid_pair *p, const mgrid_seat *shard) {
  bool fresh = d->pair != p;
  d->pair = p;
  d->total = p->to->copies;
  d->held = 0;
  d->closed = p->closed;
  for (size_t i = 0; i < p->to->naxes; i++) {
    if (fresh || d->piece[i] != shard->piece[i]) {
      d->piece[i] = shard->piece[i];
      if (!mgrid_meets_find(&d->meets[i], &p->from->axis[i], d->piece[i], &p->to->axis[i])) {
        d->pair = NULL;
        return false;
      }
    }
    d->total *= d->meets[i].n;
    d->closed &= !d->meets[i].list;
  }
  if (p->apart || d->total == 0) return true;
  if (!d->closed) return begin_list(d);
  begin_digits(d);
  return true;
}

void mgrid_needs_free(mgrid_needs *d) {
  for (size_t i = 0; i < MGRID_AXES_MAX; i++) free(d->meets[i].room);
  free(d->list);
}

/* ------------------------------------------------------------------ numbers */

int64_t mgrid_needs_number(const mgrid_needs *d, const mgrid_seat *at) {
  int64_t number = 0;
  for (size_t i = 0; i < d->pair->to->naxes; i++) {
    int64_t index = mgrid_meets_index(&d->meets[i], at->piece[i]);
    if (index < 0) return -1;
    number = number * d->meets[i].n + index;
  }
  return number * d->pair->to->copies + at->copy;
}

static void seat_of(const mgrid_needs *d, int64_t number, mgrid_seat *at) {
  at->copy = number % d->pair->to->copies;
  number /= d->pair->to->copies;
  for (size_t i = d->pair->to->naxes; i-- > 0; number /= d->meets[i].n)
    at->piece[i] = mgrid_meets_at(&d->meets[i], number % d->meets[i].n);
}

int64_t mgrid_needs_before(const mgrid_needs *d, int64_t number) {
  if (d->held == 0) return 0;
  if (number >= d->total) return d->held;
  if (!d->closed) {
    int64_t low = 0, high = d->held; /* all below `low` are before the number, none from `high` on */
    while (low < high) {
      int64_t middle = low + (high - low) / 2;
      if (d->list[middle] < number)
        low = middle + 1;
      else
        high = middle;
    }
    return low;
  }
  mgrid_seat at;
  int64_t    sum = 0, rest = d->held;
  size_t     n = d->pair->to->naxes;
  seat_of(d, number, &at);
  for (size_t i = 0; i <= n; i++) {
    bool is;
    rest /= d->within[i];
    sum += (count_below(d, i, i < n ? at.piece[i] : at.copy, &is) - d->below[i]) * rest;
    if (!is) break; /* no holder is there, whatever the axes behind */
  }
  return sum;
}

void mgrid_needs_seat(const mgrid_needs *d, int64_t i, mgrid_seat *at) {
  int64_t number = i; /* too small by the holders up to it, until there are no more of them */
  for (int64_t next; d->held && (next = i + mgrid_needs_before(d, number + 1)) != number;) number = next;
  seat_of(d, number, at);
}
