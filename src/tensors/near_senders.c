/* SPDX-License-Identifier: MIT
**
** near_senders.c - which rank sends a shard within the machine where it is needed. All ranks of the machine are checked.
*/
#include "tensors/move.h"

bool mgrid_holds(const mgrid_pair *p, const mgrid_seat *shard, int64_t rank) {
  mgrid_seat own;
  return mgrid_pair_held(p, rank, &own) && mgrid_same_shard(p, &own, shard);
}

/* Return whether the rank needs elements of the shard, and does not hold it. */
static bool wants(const mgrid_pair *p, const mgrid_needs *d, const mgrid_seat *shard, int64_t rank, mgrid_seat *part) {
  if (!mgrid_pair_seat(p, rank, part) || mgrid_holds(p, shard, rank)) return false;
  return d ? mgrid_needs_number(d, part) >= 0 : mgrid_common_bytes(p, shard, part) > 0;
}

bool mgrid_near_sender(const mgrid_pair *p, const mgrid_needs *d, const mgrid_seat *shard, int64_t rank,
                       int64_t *copy) {
  if (!p->machine) return false;
  int64_t    first = rank / p->machine * p->machine, end = first + p->machine, holders = 0, number = 0;
  mgrid_seat at;
  for (int64_t r = first; r < end; r++) {
    holders += mgrid_holds(p, shard, r);
    if (r < rank) number += wants(p, d, shard, r, &at);
  }
  if (holders == 0) return false;
  int64_t left = (number + p->turn) % holders;
  for (int64_t r = first; left >= 0; r++)
    if (mgrid_pair_held(p, r, &at) && mgrid_same_shard(p, &at, shard) && left-- == 0) *copy = at.copy;
  return true;
}

mgrid_near mgrid_near_begin(const mgrid_pair *p, const mgrid_needs *d, const mgrid_seat *shard, int64_t rank) {
  mgrid_near w = { .pair = p, .needs = d, .shard = shard };
  if (!p->machine) return w;
  w.next = rank / p->machine * p->machine;
  w.end = w.next + p->machine;
  for (int64_t r = w.next; r < w.end; r++) {
    if (r == rank) w.mine = w.holders;
    w.holders += mgrid_holds(p, shard, r);
  }
  return w;
}

bool mgrid_near_next(mgrid_near *w, int64_t *rank, mgrid_seat *part) {
  while (w->next < w->end) {
    *rank = w->next++;
    if (wants(w->pair, w->needs, w->shard, *rank, part) && (w->number++ + w->pair->turn) % w->holders == w->mine)
      return true;
  }
  return false;
}
