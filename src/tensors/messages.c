/* SPDX-License-Identifier: MIT
**
** messages.c - what a rank sends, what it receives, and what it already holds.
*/
#include "tensors/move.h"

#include <stdlib.h>

bool mgrid_append_message(mgrid_messages *list, mgrid_message m) {
  if (!MGRID_ROOM(list->at, list->room, list->n + 1)) return false;
  list->at[list->n++] = m;
  return true;
}

bool mgrid_append_receipt(mgrid_messages *list, mgrid_message m) {
  if (m.from >= 0) return mgrid_append_message(list, m);
  list->missing += m.bytes;
  return true;
}

int64_t mgrid_pair_stays(const mgrid_pair *p, int64_t rank) {
  mgrid_seat shard, part;
  return mgrid_pair_held(p, rank, &shard) && mgrid_pair_seat(p, rank, &part) ? mgrid_common_bytes(p, &shard, &part) : 0;
}

bool mgrid_pair_sends(const mgrid_pair *p, int64_t rank, int64_t tensor, mgrid_messages *list) {
  mgrid_seat  shard, part;
  mgrid_needs d;
  if (!mgrid_pair_held(p, rank, &shard)) return true;
  if (p->flat) return mgrid_flats_send(p, rank, &shard, tensor, list);
  mgrid_needs_begin(&d, p);
  int64_t copy, copies = mgrid_pair_left(p, &shard, &copy), first = (copy - p->turn % copies + copies) % copies;
  bool    ok = mgrid_needs_of(&d, &shard);
  for (int64_t i = first; ok && i < d.total - d.held; i += copies) {
    mgrid_needs_seat(&d, i, &part);
    ok = mgrid_append_message(
        list, (mgrid_message){ rank, mgrid_pair_rank(p, &part), tensor, mgrid_common_bytes(p, &shard, &part) });
  }
  int64_t    to;
  mgrid_near near = ok ? mgrid_near_begin(p, &d, &shard, rank) : (mgrid_near){ .next = 0 };
  while (ok && mgrid_near_next(&near, &to, &part))
    ok = mgrid_append_message(list, (mgrid_message){ rank, to, tensor, mgrid_common_bytes(p, &shard, &part) });
  mgrid_needs_free(&d);
  return ok;
}

bool mgrid_same_shard(const mgrid_pair *p, const mgrid_seat *a, const mgrid_seat *b) {
  for (size_t i = 0; i < p->from->naxes; i++)
    if (a->piece[i] != b->piece[i]) return false;
  return a->slice == b->slice;
}

/* Return the copy that sends a shard to a part of a rank that does not hold it; -1: none is left. */
static int64_t sender_of(const mgrid_needs *d, const mgrid_seat *shard, const mgrid_seat *part, int64_t rank) {
  int64_t number = mgrid_needs_number(d, part), copy;
  if (mgrid_near_sender(d->pair, d, shard, rank, &copy)) return copy;
  int64_t left = mgrid_pair_left(d->pair, shard, NULL);
  return left ? mgrid_pair_nth_left(d->pair, shard, (number - mgrid_needs_before(d, number) + d->pair->turn) % left)
              : -1;
}

bool mgrid_pair_goes(const mgrid_pair *p, const mgrid_seat *shard, const mgrid_seat *part, bool *goes) {
  int64_t rank = mgrid_pair_rank(p, part);
  if (p->flat) return mgrid_flats_go(p, shard, part, goes);
  *goes = !mgrid_holds(p, shard, rank);
  if (!*goes || p->from->copies == 1) return true;
  mgrid_needs d;
  mgrid_needs_begin(&d, p);
  bool ok = mgrid_needs_of(&d, shard);
  *goes = ok && mgrid_needs_number(&d, part) >= 0 && sender_of(&d, shard, part, rank) == shard->copy;
  mgrid_needs_free(&d);
  return ok;
}

bool mgrid_pair_receives(const mgrid_pair *p, int64_t rank, int64_t tensor, mgrid_messages *list) {
  mgrid_seat  own, shard = { .slice = 0 }, part;
  mgrid_meets meets[MGRID_AXES_MAX] = { { 0 } }; /* shards on each axis */
  mgrid_needs d;
  int64_t     shards = 1;
  bool        ok = true, holds = mgrid_pair_held(p, rank, &own);
  if (!mgrid_pair_seat(p, rank, &part)) return true;
  if (p->flat) return mgrid_flats_receive(p, rank, &part, tensor, list);
  mgrid_needs_begin(&d, p);
  for (size_t i = 0; i < p->to->naxes && ok; i++) {
    ok = mgrid_meets_find(&meets[i], &p->to->axis[i], part.piece[i], &p->from->axis[i]);
    shards *= meets[i].n;
  }
  for (int64_t k = 0; k < shards && ok; k++) {
    int64_t rest = k;
    for (size_t i = p->to->naxes; i-- > 0; rest /= meets[i].n)
      shard.piece[i] = mgrid_meets_at(&meets[i], rest % meets[i].n);
    if (holds && mgrid_same_shard(p, &own, &shard)) continue;
    shard.copy = 0;
    if (p->from->copies > 1) {
      if (!(ok = mgrid_needs_of(&d, &shard))) break;
      shard.copy = sender_of(&d, &shard, &part, rank);
    }
    int64_t from = shard.copy < 0 ? -1 : mgrid_pair_holder(p, &shard), bytes = mgrid_common_bytes(p, &shard, &part);
    ok = mgrid_append_receipt(list, (mgrid_message){ from, rank, tensor, bytes });
  }
  for (size_t i = 0; i < p->to->naxes; i++) free(meets[i].room);
  mgrid_needs_free(&d);
  return ok;
}
