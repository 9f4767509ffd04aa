/* SPDX-License-Identifier: MIT
**
** receivers.c - which ranks need a shard, by number. Sender and receiver compute the same numbers, so they need no
** communication.
*/
#include "tensors/move.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* -------------------------------------------------------------------- a pair */

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

/* Return whether a window ends before a rank, and before that rank's machine. */
static bool ends_before(mgrid_window w, int64_t rank, int64_t machine) {
  return w.offset + w.size <= (machine ? rank / machine * machine : rank);
}

mgrid_status mgrid_pair_init(mgrid_pair *p, const mgrid_tensor *from, const mgrid_tensor *to,
                             const mgrid_renaming *names, const mgrid_renaming *olds, int64_t turn, int64_t machine,
                             const char *name, mgrid_error *err) {
  mgrid_window a = from->grid->window, b = to->grid->window;
  mgrid_status s = check_alike(from, to, name, err);
  if (s) return s;
  p->from = from;
  p->to = to;
  p->names = names;
  p->olds = olds;
  p->turn = turn;
  p->machine = machine > 1 ? machine : 0;
  p->flat = from->flat || to->flat;
  p->apart = !names->n && !olds->n && (ends_before(a, b.offset, p->machine) || ends_before(b, a.offset, p->machine));
  p->ranged = !p->apart && !p->flat && from->copies > MGRID_FEW && mgrid_ranges_find(p);
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

int64_t mgrid_pair_holder(const mgrid_pair *p, const mgrid_seat *at) {
  int64_t rank = mgrid_tensor_rank(p->from, at);
  return p->olds->n ? p->olds->ranks[rank] : rank;
}

bool mgrid_pair_held(const mgrid_pair *p, int64_t rank, mgrid_seat *at) {
  if (p->olds->n) rank = rank < p->olds->nback ? p->olds->back[rank] : -1;
  return rank >= 0 && mgrid_tensor_seat(p->from, rank, at);
}

int64_t mgrid_pair_left(const mgrid_pair *p, const mgrid_seat *shard, int64_t *before) {
  int64_t copies = p->from->copies, left = 0, first = shard->copy;
  if (p->olds->n) {
    first = 0;
    mgrid_seat at = *shard;
    for (at.copy = 0; at.copy < copies; at.copy++) {
      bool is_left = mgrid_pair_holder(p, &at) >= 0;
      left += is_left, first += is_left && at.copy < shard->copy;
    }
  }
  if (before) *before = first;
  return p->olds->n ? left : copies;
}

int64_t mgrid_pair_nth_left(const mgrid_pair *p, const mgrid_seat *shard, int64_t nth) {
  mgrid_seat at = *shard;
  if (!p->olds->n) return nth;
  for (at.copy = 0; at.copy < p->from->copies; at.copy++)
    if (mgrid_pair_holder(p, &at) >= 0 && nth-- == 0) break;
  return at.copy;
}

/* --------------------------------------------------------------- the holders */

static int ascending(const void *a, const void *b) {
  int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
  return (x > y) - (x < y);
}

/* List the numbers of the shard's holders, with machines of all ranks on their machines. */
static bool begin_list(mgrid_needs *d) {
  const mgrid_pair *p = d->pair;
  mgrid_seat        shard = { .slice = 0 }, at;
  int64_t           near = p->machine ? p->machine : 1, most = p->from->copies * near;
  if (most > d->total) most = d->total;
  if (most > MGRID_FEW && !MGRID_ROOM(d->more, d->room, (size_t)most)) return false;
  d->list = most > MGRID_FEW ? d->more : d->few;
  memcpy(shard.piece, d->piece, sizeof shard.piece);
  for (shard.copy = 0; shard.copy < p->from->copies; shard.copy++) {
    int64_t rank = mgrid_pair_holder(p, &shard), first = rank / near * near, r = first;
    if (rank < 0) continue;
    while (r < rank && !mgrid_holds(p, &shard, r)) r++;
    if (r < rank) continue; /* another copy is on this machine; its ranks are listed */
    for (r = first; r < first + near; r++) {
      int64_t number = mgrid_pair_seat(p, r, &at) ? mgrid_needs_number(d, &at) : -1;
      if (number >= 0) d->list[d->held++] = number;
    }
  }
  if (d->held > 1) qsort(d->list, (size_t)d->held, sizeof *d->list, ascending);
  return true;
}

void mgrid_needs_begin(mgrid_needs *d, const mgrid_pair *p) {
  d->pair = p;
  for (size_t i = 0; i < p->to->naxes; i++) {
    d->piece[i] = -1;
    d->meets[i] = (mgrid_meets){ .n = 0 };
  }
  d->more = NULL;
  d->room = 0;
}

bool mgrid_needs_of(mgrid_needs *d, const mgrid_seat *shard) {
  const mgrid_pair *p = d->pair;
  d->total = p->to->copies;
  d->held = 0;
  d->ranged = p->ranged;
  for (size_t i = 0; i < p->to->naxes; i++) {
    if (d->piece[i] != shard->piece[i]) {
      d->piece[i] = shard->piece[i];
      if (!mgrid_meets_find(&d->meets[i], &p->from->axis[i], d->piece[i], &p->to->axis[i])) return false;
    }
    d->total *= d->meets[i].n;
    d->ranged &= !d->meets[i].list;
  }
  if (p->apart || d->total == 0) return true;
  if (!d->ranged) return begin_list(d);
  d->held = mgrid_ranges_of(d);
  return true;
}

void mgrid_needs_free(mgrid_needs *d) {
  for (size_t i = 0; i < d->pair->to->naxes; i++) free(d->meets[i].room);
  free(d->more);
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
  if (d->ranged) {
    mgrid_seat at;
    seat_of(d, number, &at);
    return mgrid_ranges_before(d, &at);
  }
  int64_t low = 0, high = d->held; /* numbers before `low` are smaller, none from `high` on */
  while (low < high) {
    int64_t middle = low + (high - low) / 2;
    if (d->list[middle] < number)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

enum { STEPS = 12 }; /* enough for scattered holders */

/* The result is i plus the number of holders before it. Start too low: adding the holders that come before the estimate
** never overshoots, and usually takes few steps. But where holders are consecutive, a step may add only one; so later
** steps bisect. */
int mgrid_needs_seat(const mgrid_needs *d, int64_t i, mgrid_seat *at) {
  int64_t low = i, high = i + d->held; /* the range that it is in */
  int     step = 0;
  for (; low < high; step++) {
    int64_t number = step < STEPS ? low : low + (high - low) / 2, next = i + mgrid_needs_before(d, number + 1);
    if (next > number)
      low = next;
    else
      high = number;
  }
  seat_of(d, low, at);
  return step;
}
