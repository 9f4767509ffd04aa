/* SPDX-License-Identifier: MIT
**
** flat_senders.c - which rank sends to which if a side is flat. The tuples of pieces that overlap are found axis by
** axis, as for other tensors; then the slices of each, between the first and the last element in common.
*/
#include "tensors/move.h"

#include <stdlib.h>

/* The seats of one side that have elements of a given seat of the other, by tuple, then slice; their copy is 0. */
typedef struct meeting {
  const mgrid_pair *pair;
  bool              parts; /* true: walk seats of `to` that need a shard; false: shards that a part needs */
  const mgrid_seat *given;
  mgrid_blocks      of_given;
  mgrid_seat        at; /* the current seat */
  int64_t           elements;
  mgrid_meets       meets[MGRID_AXES_MAX];
  int64_t           tuple, tuples, last; /* the next tuple, how many, the last slice to check of the current one */
} meeting;

static const mgrid_tensor *walked(const meeting *w) { return w->parts ? w->pair->to : w->pair->from; }

/* Start a walk. False: no memory; end it nevertheless. */
static bool meeting_begin(meeting *w, const mgrid_pair *p, bool parts, const mgrid_seat *given) {
  const mgrid_tensor *mine = parts ? p->from : p->to, *theirs = parts ? p->to : p->from;
  *w = (meeting){ .pair = p, .parts = parts, .given = given, .tuples = 1, .last = -1 };
  w->of_given = mgrid_blocks_begin(mine, given);
  for (size_t i = 0; i < mine->naxes; i++) {
    if (!mgrid_meets_find(&w->meets[i], &mine->axis[i], given->piece[i], &theirs->axis[i])) return false;
    w->tuples *= w->meets[i].n;
  }
  return true;
}

static void meeting_end(meeting *w) {
  for (size_t i = 0; i < w->pair->from->naxes; i++) free(w->meets[i].room);
}

static mgrid_common common_with(const meeting *w, const mgrid_blocks *walked) {
  return w->parts ? mgrid_common_of(w->pair, w->given, &w->at, &w->of_given, walked)
                  : mgrid_common_of(w->pair, &w->at, w->given, walked, &w->of_given);
}

/* Go to the next tuple. Its slices are those from the first to the last element in common. */
static void next_tuple(meeting *w) {
  const mgrid_tensor *t = walked(w);
  int64_t             rest = w->tuple++, each = 1, start = 0;
  for (size_t i = t->naxes; i-- > 0; rest /= w->meets[i].n)
    w->at.piece[i] = mgrid_meets_at(&w->meets[i], rest % w->meets[i].n);
  mgrid_blocks all = mgrid_blocks_whole(t, &w->at);
  mgrid_common o = common_with(w, &all);
  w->at.slice = 0;
  w->last = o.elements > 0 ? 0 : -1;
  if (!t->flat || o.elements == 0) return;
  start = mgrid_flat_start(t, &w->at, &each);
  w->at.slice = (start + (w->parts ? o.to_first : o.from_first)) / each;
  w->last = (start + (w->parts ? o.to_last : o.from_last)) / each;
}

static bool meeting_next(meeting *w) {
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

bool mgrid_flats_send(const mgrid_pair *p, int64_t rank, const mgrid_seat *shard, int64_t tensor,
                      mgrid_messages *list) {
  meeting w;
  int64_t number = 0, left = mgrid_pair_left(p, shard, NULL);
  bool    ok = meeting_begin(&w, p, true, shard);
  while (ok && meeting_next(&w))
    for (w.at.copy = 0; w.at.copy < p->to->copies && ok; w.at.copy++) {
      int64_t to = mgrid_pair_rank(p, &w.at), copy;
      if (mgrid_holds(p, shard, to)) continue;
      if (!mgrid_near_sender(p, NULL, shard, to, &copy))
        copy = mgrid_pair_nth_left(p, shard, (number++ + p->turn) % left);
      if (copy != shard->copy) continue;
      ok = mgrid_append_message(list, (mgrid_message){ rank, to, tensor, w.elements * p->from->width });
    }
  meeting_end(&w);
  return ok;
}

/* Find which copy sends a shard to a part, whose rank does not hold it: *copy, -1 if none is left. False: no memory. */
static bool find_sender(const mgrid_pair *p, const mgrid_seat *shard, const mgrid_seat *part, int64_t *copy) {
  meeting w;
  int64_t number = 0, rank = mgrid_pair_rank(p, part), near, left = mgrid_pair_left(p, shard, NULL);
  bool    found = false;
  *copy = left > 0 ? 0 : -1;
  if (p->from->copies == 1 || left == 0 || mgrid_near_sender(p, NULL, shard, rank, copy)) return true;
  bool ok = meeting_begin(&w, p, true, shard);
  while (ok && !found && meeting_next(&w))
    for (w.at.copy = 0; w.at.copy < p->to->copies && !found; w.at.copy++) {
      int64_t to = mgrid_pair_rank(p, &w.at);
      if (to == rank)
        found = true;
      else
        number += !mgrid_holds(p, shard, to) && !mgrid_near_sender(p, NULL, shard, to, &near);
    }
  *copy = mgrid_pair_nth_left(p, shard, (number + p->turn) % left);
  meeting_end(&w);
  return ok;
}

bool mgrid_flats_receive(const mgrid_pair *p, int64_t rank, const mgrid_seat *part, int64_t tensor,
                         mgrid_messages *list) {
  meeting w;
  bool    ok = meeting_begin(&w, p, false, part);
  while (ok && meeting_next(&w)) {
    mgrid_seat shard = w.at;
    if (mgrid_holds(p, &shard, rank)) continue;
    ok = find_sender(p, &shard, part, &shard.copy);
    int64_t from = shard.copy < 0 ? -1 : mgrid_pair_holder(p, &shard);
    ok = ok && mgrid_append_receipt(list, (mgrid_message){ from, rank, tensor, w.elements * p->from->width });
  }
  meeting_end(&w);
  return ok;
}

bool mgrid_flats_go(const mgrid_pair *p, const mgrid_seat *shard, const mgrid_seat *part, bool *goes) {
  int64_t copy;
  *goes = !mgrid_holds(p, shard, mgrid_pair_rank(p, part)) && mgrid_common_bytes(p, shard, part) > 0;
  if (!*goes) return true;
  bool ok = find_sender(p, shard, part, &copy);
  *goes = ok && copy == shard->copy;
  return ok;
}
