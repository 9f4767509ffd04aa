/* SPDX-License-Identifier: MIT
**
** rehearse.c - play every rank of a plan in one process: each goes through its creations in its own order and waits in
** each until all members have arrived. It shows what follows from the premises that verify.c checks, and needs memory
** for all ranks at once.
*/
#include "plan/plan.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { MGRID_REHEARSED_MAX = 1 << 20 }; /* ranks: each takes some hundred bytes */

/* -------------------------------------------------------------- itinerary */

mgrid_status mgrid_itinerary_of(mgrid_itinerary *it, const mgrid_plan *p, mgrid_error *err) {
  int64_t world = mgrid_plan_world(p);
  size_t  n = 0;
  memset(it, 0, sizeof *it);
  it->world = world;
  it->start = malloc((size_t)(world + 1) * sizeof *it->start);
  if (!it->start) return mgrid_oom(err);
  it->start[0] = 0;
  for (int64_t r = 0; r < world; r++) {
    mgrid_view   v;
    mgrid_status status = mgrid_view_init(&v, p, r, err);
    if (!status && !MGRID_GROW(it->step, n, v.ncomms)) status = mgrid_oom(err);
    if (!status && v.ncomms) memcpy(it->step + n, v.comm, v.ncomms * sizeof *v.comm);
    n += status ? 0 : v.ncomms;
    mgrid_view_free(&v);
    if (status) return status;
    it->start[r + 1] = (int64_t)n;
  }
  return MGRID_OK;
}

void mgrid_itinerary_free(mgrid_itinerary *it) {
  free(it->start);
  free(it->step);
  memset(it, 0, sizeof *it);
}

/* --------------------------------------------------------------- rehearsal */

/* Progress of every rank. Group g of entry e has the number base[e] + g. */
typedef struct progress {
  int64_t *base;    /* [nentries] */
  int32_t *arrived; /* [groups]: members that wait in a group, by its number */
  int64_t *at;      /* [world]: the current step of a rank; start[rank + 1]: it has finished */
  int64_t *ready;   /* [world]: a stack of the ranks that are not waiting */
  int64_t  nready;
} progress;

static mgrid_status stuck(const progress *now, const mgrid_itinerary *it, const mgrid_plan *p, int64_t rank,
                          mgrid_error *err) {
  const mgrid_creation *c = &it->step[now->at[rank]];
  const mgrid_entry    *e = &p->content.entry[c->entry];
  int64_t               absent = -1;
  for (int64_t i = 0; i < c->size && absent < 0; i++) {
    int64_t other = mgrid_family_rank(e->family, c->group, i);
    bool    there = now->at[other] < it->start[other + 1] && it->step[now->at[other]].entry == c->entry
                 && it->step[now->at[other]].group == c->group;
    if (!there) absent = other;
  }
  return mgrid_fail(err, MGRID_UNPROVED,
                    "rank %" PRId64 " would wait forever in %s[%" PRId64 "]: %d of %" PRId64
                    " members arrived, rank %" PRId64 " does not",
                    rank, e->name, c->group, now->arrived[now->base[c->entry] + c->group], c->size, absent);
}

/* Move each rank that does not wait to its next group. The last member to arrive lets all members continue. */
static mgrid_status walk(progress *now, const mgrid_itinerary *it, const mgrid_plan *p, mgrid_created *out,
                         mgrid_error *err) {
  while (now->nready > 0) {
    int64_t rank = now->ready[--now->nready];
    if (now->at[rank] == it->start[rank + 1]) continue;
    const mgrid_creation *c = &it->step[now->at[rank]];
    const mgrid_family   *f = p->content.entry[c->entry].family;
    if (mgrid_family_rank(f, c->group, c->position) != rank || mgrid_family_size(f, c->group) != c->size)
      return mgrid_fail(err, MGRID_UNPROVED,
                        "rank %" PRId64 " creates %s[%" PRId64 "] as %" PRId64 " of %" PRId64
                        ", but is not that member",
                        rank, p->content.entry[c->entry].name, c->group, c->position, c->size);
    out->memberships++;
    if (++now->arrived[now->base[c->entry] + c->group] < c->size) continue;
    out->communicators++;
    now->arrived[now->base[c->entry] + c->group] = 0;
    for (int64_t i = 0; i < c->size; i++) {
      int64_t member = mgrid_family_rank(f, c->group, i);
      now->at[member]++;
      now->ready[now->nready++] = member;
    }
  }
  return MGRID_OK;
}

mgrid_status mgrid_itinerary_play(const mgrid_itinerary *it, const mgrid_plan *p, mgrid_created *out,
                                  mgrid_error *err) {
  progress now = { 0 };
  int64_t  groups = 0;
  *out = (mgrid_created){ 0 };
  now.base = malloc((p->content.nentries + 1) * sizeof *now.base);
  for (size_t i = 0; now.base && i < p->content.nentries; i++) {
    now.base[i] = groups;
    groups += p->content.entry[i].family->count;
  }
  now.arrived = calloc((size_t)groups + 1, sizeof *now.arrived);
  now.at = malloc((size_t)it->world * sizeof *now.at);
  now.ready = malloc((size_t)it->world * sizeof *now.ready);
  mgrid_status status = now.base && now.arrived && now.at && now.ready ? MGRID_OK : mgrid_oom(err);
  for (int64_t r = 0; r < it->world && !status; r++) {
    int64_t n = it->start[r + 1] - it->start[r];
    if (n > out->most_per_rank) out->most_per_rank = n;
    now.at[r] = it->start[r];
    now.ready[now.nready++] = r;
  }
  if (!status) status = walk(&now, it, p, out, err);
  for (int64_t r = 0; r < it->world && !status; r++)
    if (now.at[r] < it->start[r + 1]) status = stuck(&now, it, p, r, err);
  free(now.base);
  free(now.arrived);
  free(now.at);
  free(now.ready);
  return status;
}

mgrid_status mgrid_plan_rehearse(const mgrid_plan *p, mgrid_created *out, mgrid_error *err) {
  if (!p) return MGRID_USAGE;
  mgrid_itinerary steps = { 0 };
  mgrid_created   seen;
  mgrid_status    s = MGRID_OK;
  if (p->content.world > MGRID_REHEARSED_MAX)
    s = mgrid_fail(err, MGRID_OUT_OF_RANGE,
                   "a rehearsal goes through every rank, at most %d of them, not %" PRId64
                   "; the check of a plan samples "
                   "larger worlds",
                   MGRID_REHEARSED_MAX, p->content.world);
  if (!s) s = mgrid_itinerary_of(&steps, p, err);
  if (!s) s = mgrid_itinerary_play(&steps, p, &seen, err);
  mgrid_itinerary_free(&steps);
  if (!s && out) *out = seen;
  return s;
}
