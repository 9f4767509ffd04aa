/* SPDX-License-Identifier: MIT
**
** messages.c - the messages of one rank: what it sends, receives, and already holds. Sender and
** receiver compute the same numbers for the ranks that need a shard, so they need no communication.
** move.h has the rules and the terms.
*/
#include "tensors/move.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ================================================================= receivers */
/* -------------------------------------------------------------------- a pair */

static mgrid_status messages_check_alike(const mgrid_tensor *a, const mgrid_tensor *b,
                                         const char *name, mgrid_error *err) {
  if (a->type != b->type)
    return mgrid_fail(err, MGRID_REFUSED, "tensor '%s' is %s on one side and %s on the other", name,
                      a->type, b->type);
  if (a->naxes != b->naxes)
    return mgrid_fail(err, MGRID_REFUSED,
                      "tensor '%s' has %zu axes on one side and %zu on the other", name, a->naxes,
                      b->naxes);
  for (size_t i = 0; i < a->naxes; i++)
    if (strcmp(a->axis[i].name, b->axis[i].name) != 0 || a->axis[i].length != b->axis[i].length)
      return mgrid_fail(
          err, MGRID_REFUSED,
          "tensor '%s': axis %zu is %s %" PRId64 " on one side and %s %" PRId64 " on the other",
          name, i, a->axis[i].name, a->axis[i].length, b->axis[i].name, b->axis[i].length);
  return MGRID_OK;
}

/* Return whether a window ends before a rank, or with machines before that rank's machine. */
static bool ends_before(mgrid_window w, int64_t rank, int64_t machine) {
  return w.offset + w.size <= (machine ? rank / machine * machine : rank);
}

mgrid_status mgrid_pair_init(mgrid_pair *p, const mgrid_tensor *from, const mgrid_tensor *to,
                             const mgrid_renaming *names, const mgrid_renaming *olds, int64_t turn,
                             int64_t machine, const char *name, mgrid_error *err) {
  mgrid_window a = from->grid->window, b = to->grid->window;
  mgrid_status s = messages_check_alike(from, to, name, err);
  if (s) return s;
  p->from = from;
  p->to = to;
  p->names = names;
  p->olds = olds;
  p->turn = turn;
  p->machine = machine > 1 ? machine : 0;
  p->flat = from->flat || to->flat;
  p->apart = !names->n && !olds->n
             && (ends_before(a, b.offset, p->machine) || ends_before(b, a.offset, p->machine));
  p->ranged = !p->apart && !p->flat && from->copies > MGRID_FEW && mgrid_ranges_find(p);
  return MGRID_OK;
}

/* Return the rank of the move that has a part of `to`. */
static int64_t pair_rank(const mgrid_pair *p, const mgrid_coords *at) {
  int64_t rank = mgrid_tensor_rank(p->to, at);
  return p->names->n ? p->names->ranks[rank] : rank;
}

bool mgrid_pair_coords(const mgrid_pair *p, int64_t rank, mgrid_coords *at) {
  if (p->names->n) rank = rank < p->names->nback ? p->names->back[rank] : -1;
  return rank >= 0 && mgrid_tensor_coords(p->to, rank, at);
}

/* Return the rank of the move that holds a copy of a shard of `from`; -1 if that rank is lost. */
static int64_t pair_holder(const mgrid_pair *p, const mgrid_coords *at) {
  int64_t rank = mgrid_tensor_rank(p->from, at);
  return p->olds->n ? p->olds->ranks[rank] : rank;
}

bool mgrid_pair_held(const mgrid_pair *p, int64_t rank, mgrid_coords *at) {
  if (p->olds->n) rank = rank < p->olds->nback ? p->olds->back[rank] : -1;
  return rank >= 0 && mgrid_tensor_coords(p->from, rank, at);
}

/* Return how many copies of a shard are left. Unless `before` is NULL, set *before to how many of
** them come before the copy in `shard`. O(1) if no ranks are lost, else O(copies). */
static int64_t pair_left(const mgrid_pair *p, const mgrid_coords *shard, int64_t *before) {
  int64_t copies = p->from->copies, left = 0, first = shard->copy;
  if (p->olds->n) {
    first = 0;
    mgrid_coords at = *shard;
    for (at.copy = 0; at.copy < copies; at.copy++) {
      bool is_left = pair_holder(p, &at) >= 0;
      left += is_left, first += is_left && at.copy < shard->copy;
    }
  }
  if (before) *before = first;
  return p->olds->n ? left : copies;
}

/* Return the nth copy that is left, from 0. */
static int64_t pair_nth_left(const mgrid_pair *p, const mgrid_coords *shard, int64_t nth) {
  mgrid_coords at = *shard;
  if (!p->olds->n) return nth;
  for (at.copy = 0; at.copy < p->from->copies; at.copy++)
    if (pair_holder(p, &at) >= 0 && nth-- == 0) break;
  return at.copy;
}

/* ------------------------------------------------------------- held numbers */

static int messages_ascending(const void *a, const void *b) {
  int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
  return (x > y) - (x < y);
}

static bool same_shard(const mgrid_pair *p, const mgrid_coords *a, const mgrid_coords *b) {
  for (size_t i = 0; i < p->from->naxes; i++)
    if (a->piece[i] != b->piece[i]) return false;
  return a->slice == b->slice;
}

/* Return whether a rank holds the shard. */
static bool holds(const mgrid_pair *p, const mgrid_coords *shard, int64_t rank) {
  mgrid_coords own;
  return mgrid_pair_held(p, rank, &own) && same_shard(p, &own, shard);
}

/* Return the number of the rank with a part of `to`; -1 if the part has no element of the shard. */
static int64_t needs_number(const mgrid_needs *d, const mgrid_coords *at) {
  int64_t number = 0;
  for (size_t i = 0; i < d->pair->to->naxes; i++) {
    int64_t index = mgrid_overlaps_index(&d->overlaps[i], at->piece[i]);
    if (index < 0) return -1;
    number = number * d->overlaps[i].n + index;
  }
  return number * d->pair->to->copies + at->copy;
}

/* List the held numbers. */
static bool begin_list(mgrid_needs *d) {
  const mgrid_pair *p = d->pair;
  mgrid_coords shard = { .slice = 0 }, at;
  int64_t near = p->machine ? p->machine : 1, most = p->from->copies * near;
  if (most > d->total) most = d->total;
  if (most > MGRID_FEW && !MGRID_ROOM(d->more, d->room, (size_t)most)) return false;
  d->list = most > MGRID_FEW ? d->more : d->few;
  memcpy(shard.piece, d->piece, sizeof shard.piece);
  for (shard.copy = 0; shard.copy < p->from->copies; shard.copy++) {
    int64_t rank = pair_holder(p, &shard), first = rank / near * near, r = first;
    if (rank < 0) continue;
    while (r < rank && !holds(p, &shard, r)) r++;
    if (r < rank) continue; /* another copy is on this machine, so its ranks are listed already */
    for (r = first; r < first + near; r++) {
      int64_t number = mgrid_pair_coords(p, r, &at) ? needs_number(d, &at) : -1;
      if (number >= 0) d->list[d->held++] = number;
    }
  }
  if (d->held > 1) qsort(d->list, (size_t)d->held, sizeof *d->list, messages_ascending);
  return true;
}

void mgrid_needs_begin(mgrid_needs *d, const mgrid_pair *p) {
  d->pair = p;
  for (size_t i = 0; i < p->to->naxes; i++) {
    d->piece[i] = -1;
    d->overlaps[i] = (mgrid_overlaps){ .n = 0 };
  }
  d->more = NULL;
  d->room = 0;
}

bool mgrid_needs_of(mgrid_needs *d, const mgrid_coords *shard) {
  const mgrid_pair *p = d->pair;
  d->total = p->to->copies;
  d->held = 0;
  d->ranged = p->ranged;
  for (size_t i = 0; i < p->to->naxes; i++) {
    if (d->piece[i] != shard->piece[i]) {
      d->piece[i] = shard->piece[i];
      if (!mgrid_overlaps_find(&d->overlaps[i], &p->from->axis[i], d->piece[i], &p->to->axis[i]))
        return false;
    }
    d->total *= d->overlaps[i].n;
    d->ranged &= !d->overlaps[i].list;
  }
  if (p->apart || d->total == 0) return true;
  if (!d->ranged) return begin_list(d);
  d->held = mgrid_ranges_of(d);
  return true;
}

void mgrid_needs_free(mgrid_needs *d) {
  for (size_t i = 0; i < d->pair->to->naxes; i++) free(d->overlaps[i].room);
  free(d->more);
}

/* ------------------------------------------------------------------ numbers */

/* Find the part that has a number. */
static void needs_part_of(const mgrid_needs *d, int64_t number, mgrid_coords *at) {
  at->copy = number % d->pair->to->copies;
  number /= d->pair->to->copies;
  for (size_t i = d->pair->to->naxes; i-- > 0; number /= d->overlaps[i].n)
    at->piece[i] = mgrid_overlaps_at(&d->overlaps[i], number % d->overlaps[i].n);
}

/* Return how many held numbers are smaller than a number. */
static int64_t needs_before(const mgrid_needs *d, int64_t number) {
  if (d->held == 0) return 0;
  if (number >= d->total) return d->held;
  if (d->ranged) {
    mgrid_coords at;
    needs_part_of(d, number, &at);
    return mgrid_ranges_before(d, &at);
  }
  /* in the list, numbers before index `low` are smaller than `number`, numbers from index `high` on
  ** are not */
  int64_t low = 0, high = d->held;
  while (low < high) {
    int64_t middle = low + (high - low) / 2;
    if (d->list[middle] < number)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

enum { STEPS = 12 }; /* enough if the held numbers are scattered */

/* The number to find is i plus the count of held numbers below it. Start with the estimate i; the
** next estimate is i plus the count of held numbers up to the last estimate. This never goes too
** far, and usually takes few steps. If held numbers are consecutive, a step may add only 1, so
** later steps bisect. */
int mgrid_needs_coords(const mgrid_needs *d, int64_t i, mgrid_coords *at) {
  int64_t low = i, high = i + d->held; /* the range in which the result is */
  int step = 0;
  for (; low < high; step++) {
    int64_t number = step < STEPS ? low : low + (high - low) / 2,
            next = i + needs_before(d, number + 1);
    if (next > number)
      low = next;
    else
      high = number;
  }
  needs_part_of(d, low, at);
  return step;
}

/* ============================================================== near senders */

/* Return whether the rank needs elements of the shard, and does not hold it. Set *part to its part
** of `to`. d is NULL if a side is flat. */
static bool wants(const mgrid_pair *p, const mgrid_needs *d, const mgrid_coords *shard,
                  int64_t rank, mgrid_coords *part) {
  if (!mgrid_pair_coords(p, rank, part) || holds(p, shard, rank)) return false;
  return d ? needs_number(d, part) >= 0 : mgrid_common_bytes(p, shard, part) > 0;
}

/* Find the copy of a shard that a rank, which does not hold the shard, receives from its own
** machine. Return false if no holder is on this machine. d is NULL if a side is flat. O(dims) for
** each rank of the machine. */
static bool near_sender(const mgrid_pair *p, const mgrid_needs *d, const mgrid_coords *shard,
                        int64_t rank, int64_t *copy) {
  if (!p->machine) return false;
  int64_t first = rank / p->machine * p->machine, end = first + p->machine, holders = 0, number = 0;
  mgrid_coords at;
  for (int64_t r = first; r < end; r++) {
    holders += holds(p, shard, r);
    if (r < rank) number += wants(p, d, shard, r, &at);
  }
  if (holders == 0) return false;
  int64_t left = (number + p->turn) % holders;
  for (int64_t r = first; left >= 0; r++)
    if (mgrid_pair_held(p, r, &at) && same_shard(p, &at, shard) && left-- == 0) *copy = at.copy;
  return true;
}

/* Walks the ranks on a holder's machine to which the holder sends its shard. */
typedef struct near_walk {
  const mgrid_pair *pair;
  const mgrid_needs *needs;
  const mgrid_coords *shard;
  int64_t holders, mine; /* holders on the machine; index of this holder among them */
  int64_t next, end, number;
} near_walk;

static near_walk near_begin(const mgrid_pair *p, const mgrid_needs *d, const mgrid_coords *shard,
                            int64_t rank) {
  near_walk w = { .pair = p, .needs = d, .shard = shard };
  if (!p->machine) return w;
  w.next = rank / p->machine * p->machine;
  w.end = w.next + p->machine;
  for (int64_t r = w.next; r < w.end; r++) {
    if (r == rank) w.mine = w.holders;
    w.holders += holds(p, shard, r);
  }
  return w;
}

static bool near_next(near_walk *w, int64_t *rank, mgrid_coords *part) {
  while (w->next < w->end) {
    *rank = w->next++;
    if (wants(w->pair, w->needs, w->shard, *rank, part)
        && (w->number++ + w->pair->turn) % w->holders == w->mine)
      return true;
  }
  return false;
}

/* ================================================================= the list */

static bool append_message(mgrid_messages *list, mgrid_message m) {
  if (!MGRID_ROOM(list->at, list->room, list->n + 1)) return false;
  list->at[list->n++] = m;
  return true;
}

/* Append a message to receive. If its `from` is -1, count the bytes as missing instead. */
static bool append_receipt(mgrid_messages *list, mgrid_message m) {
  if (m.from >= 0) return append_message(list, m);
  list->missing += m.bytes;
  return true;
}

/* ========================================================== senders of flats */

/* If a side is flat, find the tuples that overlap, axis by axis, as for other tensors. Then find the
** slices of each tuple from the first to the last element in common. */

/* Walks the parts of `to` that need a given shard, or the shards that a given part needs: tuple by
** tuple, and in each tuple slice by slice. `at.copy` is 0. */
typedef struct overlap {
  const mgrid_pair *pair;
  bool parts;                /* walk parts of `to`, not shards */
  const mgrid_coords *given; /* the shard, or the part */
  mgrid_blocks of_given;     /* its elements */
  mgrid_coords at;           /* the current part, or shard */
  int64_t elements;          /* how many elements it has in common with the given one */
  mgrid_overlaps overlaps[MGRID_AXES_MAX];
  int64_t tuple, tuples; /* the next tuple; how many there are */
  int64_t last;          /* the last slice of the current tuple to look at */
} overlap;

static const mgrid_tensor *walked(const overlap *w) {
  return w->parts ? w->pair->to : w->pair->from;
}

/* Begin a walk. False: no memory; the walk must still be ended. */
static bool overlap_begin(overlap *w, const mgrid_pair *p, bool parts, const mgrid_coords *given) {
  const mgrid_tensor *mine = parts ? p->from : p->to, *theirs = parts ? p->to : p->from;
  *w = (overlap){ .pair = p, .parts = parts, .given = given, .tuples = 1, .last = -1 };
  w->of_given = mgrid_blocks_begin(mine, given);
  for (size_t i = 0; i < mine->naxes; i++) {
    if (!mgrid_overlaps_find(&w->overlaps[i], &mine->axis[i], given->piece[i], &theirs->axis[i]))
      return false;
    w->tuples *= w->overlaps[i].n;
  }
  return true;
}

static void overlap_end(overlap *w) {
  for (size_t i = 0; i < w->pair->from->naxes; i++) free(w->overlaps[i].room);
}

static mgrid_common common_with(const overlap *w, const mgrid_blocks *walked) {
  return w->parts ? mgrid_common_of(w->pair, w->given, &w->at, &w->of_given, walked)
                  : mgrid_common_of(w->pair, &w->at, w->given, walked, &w->of_given);
}

/* Go to the next tuple, and to its first slice with elements in common. */
static void next_tuple(overlap *w) {
  const mgrid_tensor *t = walked(w);
  int64_t rest = w->tuple++, each = 1, start = 0;
  for (size_t i = t->naxes; i-- > 0; rest /= w->overlaps[i].n)
    w->at.piece[i] = mgrid_overlaps_at(&w->overlaps[i], rest % w->overlaps[i].n);
  mgrid_blocks all = mgrid_blocks_whole(t, &w->at);
  mgrid_common o = common_with(w, &all);
  w->at.slice = 0;
  w->last = o.elements > 0 ? 0 : -1;
  if (!t->flat || o.elements == 0) return;
  start = mgrid_flat_start(t, &w->at, &each);
  w->at.slice = (start + (w->parts ? o.to_first : o.from_first)) / each;
  w->last = (start + (w->parts ? o.to_last : o.from_last)) / each;
}

static bool overlap_next(overlap *w) {
  w->at.copy = 0;
  for (w->at.slice++;; w->at.slice++) {
    while (w->at.slice > w->last) {
      if (w->tuple == w->tuples) return false;
      next_tuple(w);
    }
    mgrid_blocks blocks = mgrid_blocks_begin(walked(w), &w->at);
    w->elements = common_with(w, &blocks).elements;
    if (w->elements > 0) return true;
  }
}

/* ----------------------------------------------------------------- messages */

static bool flats_send(const mgrid_pair *p, int64_t rank, const mgrid_coords *shard, int64_t tensor,
                       mgrid_messages *list) {
  overlap w;
  int64_t number = 0, left = pair_left(p, shard, NULL);
  bool ok = overlap_begin(&w, p, true, shard);
  while (ok && overlap_next(&w))
    for (w.at.copy = 0; w.at.copy < p->to->copies && ok; w.at.copy++) {
      int64_t to = pair_rank(p, &w.at), copy;
      if (holds(p, shard, to)) continue;
      if (!near_sender(p, NULL, shard, to, &copy))
        copy = pair_nth_left(p, shard, (number++ + p->turn) % left);
      if (copy != shard->copy) continue;
      ok = append_message(list, (mgrid_message){ rank, to, tensor, w.elements * p->from->width });
    }
  overlap_end(&w);
  return ok;
}

/* Find the copy of a shard that is sent to a part whose rank does not hold the shard. *copy is -1
** if no copy is left. False: no memory. */
static bool find_sender(const mgrid_pair *p, const mgrid_coords *shard, const mgrid_coords *part,
                        int64_t *copy) {
  overlap w;
  int64_t number = 0, rank = pair_rank(p, part), near, left = pair_left(p, shard, NULL);
  bool found = false;
  *copy = left > 0 ? 0 : -1;
  if (p->from->copies == 1 || left == 0 || near_sender(p, NULL, shard, rank, copy)) return true;
  bool ok = overlap_begin(&w, p, true, shard);
  while (ok && !found && overlap_next(&w))
    for (w.at.copy = 0; w.at.copy < p->to->copies && !found; w.at.copy++) {
      int64_t to = pair_rank(p, &w.at);
      if (to == rank)
        found = true;
      else
        number += !holds(p, shard, to) && !near_sender(p, NULL, shard, to, &near);
    }
  *copy = pair_nth_left(p, shard, (number + p->turn) % left);
  overlap_end(&w);
  return ok;
}

static bool flats_receive(const mgrid_pair *p, int64_t rank, const mgrid_coords *part,
                          int64_t tensor, mgrid_messages *list) {
  overlap w;
  bool ok = overlap_begin(&w, p, false, part);
  while (ok && overlap_next(&w)) {
    mgrid_coords shard = w.at;
    if (holds(p, &shard, rank)) continue;
    ok = find_sender(p, &shard, part, &shard.copy);
    int64_t from = shard.copy < 0 ? -1 : pair_holder(p, &shard);
    ok =
        ok
        && append_receipt(list, (mgrid_message){ from, rank, tensor, w.elements * p->from->width });
  }
  overlap_end(&w);
  return ok;
}

static bool flats_go(const mgrid_pair *p, const mgrid_coords *shard, const mgrid_coords *part,
                     bool *goes) {
  int64_t copy;
  *goes = !holds(p, shard, pair_rank(p, part)) && mgrid_common_bytes(p, shard, part) > 0;
  if (!*goes) return true;
  bool ok = find_sender(p, shard, part, &copy);
  *goes = ok && copy == shard->copy;
  return ok;
}

/* ================================================================== messages */

int64_t mgrid_pair_stays(const mgrid_pair *p, int64_t rank) {
  mgrid_coords shard, part;
  return mgrid_pair_held(p, rank, &shard) && mgrid_pair_coords(p, rank, &part)
             ? mgrid_common_bytes(p, &shard, &part)
             : 0;
}

bool mgrid_pair_sends(const mgrid_pair *p, int64_t rank, int64_t tensor, mgrid_messages *list) {
  mgrid_coords shard, part;
  mgrid_needs d;
  if (!mgrid_pair_held(p, rank, &shard)) return true;
  if (p->flat) return flats_send(p, rank, &shard, tensor, list);
  mgrid_needs_begin(&d, p);
  int64_t copy, copies = pair_left(p, &shard, &copy),
                first = (copy - p->turn % copies + copies) % copies;
  bool ok = mgrid_needs_of(&d, &shard);
  for (int64_t i = first; ok && i < d.total - d.held; i += copies) {
    mgrid_needs_coords(&d, i, &part);
    ok = append_message(list, (mgrid_message){ rank, pair_rank(p, &part), tensor,
                                               mgrid_common_bytes(p, &shard, &part) });
  }
  int64_t to;
  near_walk near = ok ? near_begin(p, &d, &shard, rank) : (near_walk){ .next = 0 };
  while (ok && near_next(&near, &to, &part))
    ok = append_message(list,
                        (mgrid_message){ rank, to, tensor, mgrid_common_bytes(p, &shard, &part) });
  mgrid_needs_free(&d);
  return ok;
}

/* Return the copy of a shard that is sent to a part whose rank does not hold the shard; -1 if no
** copy is left. */
static int64_t sender_of(const mgrid_needs *d, const mgrid_coords *shard, const mgrid_coords *part,
                         int64_t rank) {
  int64_t number = needs_number(d, part), copy;
  if (near_sender(d->pair, d, shard, rank, &copy)) return copy;
  int64_t left = pair_left(d->pair, shard, NULL);
  return left ? pair_nth_left(d->pair, shard,
                              (number - needs_before(d, number) + d->pair->turn) % left)
              : -1;
}

bool mgrid_pair_goes(const mgrid_pair *p, const mgrid_coords *shard, const mgrid_coords *part,
                     bool *goes) {
  int64_t rank = pair_rank(p, part);
  if (p->flat) return flats_go(p, shard, part, goes);
  *goes = !holds(p, shard, rank);
  if (!*goes || p->from->copies == 1) return true;
  mgrid_needs d;
  mgrid_needs_begin(&d, p);
  bool ok = mgrid_needs_of(&d, shard);
  *goes = ok && needs_number(&d, part) >= 0 && sender_of(&d, shard, part, rank) == shard->copy;
  mgrid_needs_free(&d);
  return ok;
}

bool mgrid_pair_receives(const mgrid_pair *p, int64_t rank, int64_t tensor, mgrid_messages *list) {
  mgrid_coords own, shard = { .slice = 0 }, part;
  mgrid_overlaps overlaps[MGRID_AXES_MAX] = { { 0 } }; /* the shards that overlap on each axis */
  mgrid_needs d;
  int64_t shards = 1;
  bool ok = true, holds = mgrid_pair_held(p, rank, &own);

  if (!mgrid_pair_coords(p, rank, &part)) return true;
  if (p->flat) return flats_receive(p, rank, &part, tensor, list);
  mgrid_needs_begin(&d, p);
  for (size_t i = 0; i < p->to->naxes && ok; i++) {
    ok = mgrid_overlaps_find(&overlaps[i], &p->to->axis[i], part.piece[i], &p->from->axis[i]);
    shards *= overlaps[i].n;
  }
  for (int64_t k = 0; k < shards && ok; k++) {
    int64_t rest = k;
    for (size_t i = p->to->naxes; i-- > 0; rest /= overlaps[i].n)
      shard.piece[i] = mgrid_overlaps_at(&overlaps[i], rest % overlaps[i].n);
    if (holds && same_shard(p, &own, &shard)) continue;
    shard.copy = 0;
    if (p->from->copies > 1) {
      if (!(ok = mgrid_needs_of(&d, &shard))) break;
      shard.copy = sender_of(&d, &shard, &part, rank);
    }
    int64_t from = shard.copy < 0 ? -1 : pair_holder(p, &shard),
            bytes = mgrid_common_bytes(p, &shard, &part);
    ok = append_receipt(list, (mgrid_message){ from, rank, tensor, bytes });
  }
  for (size_t i = 0; i < p->to->naxes; i++) free(overlaps[i].room);
  mgrid_needs_free(&d);
  return ok;
}
