/* SPDX-License-Identifier: MIT
**
** verify.c - checks a plan instead of trusting it. For each family it checks that "rank at a
** position" and "position of a rank" are inverse, and for the schedule that the premises of the
** proof in plan.h hold. The rehearsal plays all ranks of a plan, and checks that each reaches the
** end of its creations.
*/
#include "plan/plan.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

/* ============================================================== the premises */

/* The premises of the proof: all ranks create their groups in one order of all groups; a rank is in
** each of its groups at the position that its view says; all members of a group create it. The
** check goes through members and ranks one after the other, so its memory does not grow with the
** world. */

/* ---------------------------------------------------------------- schedule */

/* Return a hash of one member of one creation. */
static uint64_t verify_mark(const mgrid_creation *c, int64_t position) {
  const int64_t what[3] = { c->entry, c->group, position };
  return XXH3_64bits(what, sizeof what);
}

static mgrid_status out_of_order(const mgrid_plan *p, int64_t rank, const mgrid_creation *a,
                                 const mgrid_creation *b, mgrid_error *err) {
  return mgrid_fail(err, MGRID_UNPROVED,
                    "rank %" PRId64 " creates %s[%" PRId64 "] before %s[%" PRId64
                    "], against the order of the schedule",
                    rank, p->content.entry[a->entry].name, a->group,
                    p->content.entry[b->entry].name, b->group);
}

/* Check that the rank is a member of each group that it creates, at the position in its view, and
** that these groups are in the order of the schedule. place[entry]: the index of an entry in the
** schedule. */
static mgrid_status check_own(const mgrid_plan *p, const int *place, const mgrid_view *v,
                              mgrid_error *err) {
  for (size_t i = 0; i < v->ncomms; i++) {
    const mgrid_creation *c = &v->comm[i], *before = i ? c - 1 : NULL;
    const mgrid_entry *e = &p->content.entry[c->entry];
    if (mgrid_family_rank(e->family, c->group, c->position) != v->rank
        || mgrid_family_size(e->family, c->group) != c->size)
      return mgrid_fail(err, MGRID_UNPROVED,
                        "rank %" PRId64 " creates %s[%" PRId64 "] as member %" PRId64 " of %" PRId64
                        ", but is not this member",
                        v->rank, e->name, c->group, c->position, c->size);
    if (!before) continue;
    int step = place[c->entry] - place[before->entry];
    int64_t round = c->round - before->round;
    if (step < 0 || (step == 0 && (round < 0 || (round == 0 && c->group <= before->group))))
      return out_of_order(p, v->rank, before, c, err);
  }
  return MGRID_OK;
}

/* Check that the next member of each of the rank's groups creates the group, too. For all ranks
** together, this finds the same faults as the sum of marks in mgrid_plan_verify. It also names the
** rank that is missing, but takes several times longer. */
static mgrid_status check_next(const mgrid_plan *p, const mgrid_view *v, mgrid_error *err) {
  for (size_t i = 0; i < v->ncomms; i++) {
    const mgrid_creation *c = &v->comm[i];
    const mgrid_entry *e = &p->content.entry[c->entry];
    int64_t next = (c->position + 1) % c->size,
            other = mgrid_family_rank(e->family, c->group, next);
    mgrid_view theirs = { 0 };
    bool there = false;
    mgrid_status s = other < 0 ? MGRID_OK : mgrid_view_init(&theirs, p, other, err);
    if (s) return s;
    for (size_t k = 0; k < theirs.ncomms && !there; k++)
      there = theirs.comm[k].entry == c->entry && theirs.comm[k].group == c->group
              && theirs.comm[k].position == next;
    mgrid_view_free(&theirs);
    if (!there)
      return mgrid_fail(err, MGRID_UNPROVED,
                        "rank %" PRId64 " would wait forever in %s[%" PRId64 "]: rank %" PRId64
                        " does not arrive",
                        v->rank, e->name, c->group, other);
  }
  return MGRID_OK;
}

/* One sum over all ranks checks that every group is created by all its members. For each group that
** it creates, a rank adds its own mark; the rank at position 0 also subtracts the marks of all
** members. So the sum is 0 if all members create the group. */
mgrid_status mgrid_plan_verify(const mgrid_plan *p, int64_t sample, mgrid_created *out,
                               mgrid_error *err) {
  int64_t world = p->content.world, step = sample > 0 && sample < world ? world / sample : 1;
  uint64_t sum = 0;
  mgrid_status s = MGRID_OK;
  /* [entry]: its index in the schedule */
  int *place = malloc((p->content.nentries + 1) * sizeof *place);

  if (!place) return mgrid_oom(err);
  for (size_t k = 0; k < p->content.nentries; k++) place[p->order[k]] = (int)k;
  *out = (mgrid_created){ 0 };
  for (int64_t r = 0; r < world && !s; r += step) {
    mgrid_view v;
    if ((s = mgrid_view_init(&v, p, r, err))) break;
    s = check_own(p, place, &v, err);
    if (!s && step > 1) s = check_next(p, &v, err);
    out->memberships += (int64_t)v.ncomms;
    if ((int64_t)v.ncomms > out->most_per_rank) out->most_per_rank = (int64_t)v.ncomms;
    for (size_t i = 0; i < v.ncomms && !s; i++) {
      const mgrid_creation *c = &v.comm[i];
      sum += verify_mark(c, c->position);
      if (c->position != 0) continue;
      out->communicators++;
      /* the sum says nothing if only a sample of ranks is added */
      for (int64_t k = 0; k < c->size && step == 1; k++) sum -= verify_mark(c, k);
    }
    mgrid_view_free(&v);
  }
  /* the sum is not 0, so a member is missing: find it */
  for (int64_t r = 0; r < world && !s && step == 1 && sum != 0; r++) {
    mgrid_view v;
    if ((s = mgrid_view_init(&v, p, r, err))) break;
    s = check_next(p, &v, err);
    mgrid_view_free(&v);
  }
  if (!s && step == 1 && sum != 0)
    s = mgrid_fail(err, MGRID_UNPROVED, "a group is created by a rank that is not a member of it");
  free(place);
  return s;
}

/* ---------------------------------------------------------------- families */

enum { PIECE = 1024 }; /* how many members are listed at a time */

static mgrid_status not_found(const mgrid_entry *e, int64_t group, int64_t position,
                              mgrid_error *err) {
  return mgrid_fail(err, MGRID_UNPROVED,
                    "family '%s': position %" PRId64 " of group %" PRId64
                    " has a rank that is not found there when it is looked up",
                    e->name, position, group);
}

/* Check one member: its group and position give a rank, and this rank gives the same group and
** position. */
static bool inverse_holds(const mgrid_family *f, int64_t group, int64_t position) {
  int64_t g, p, rank = mgrid_family_rank(f, group, position);
  for (int64_t nth = 0; rank >= 0 && mgrid_family_locate(f, rank, nth, &g, &p); nth++)
    if (g == group && p == position) return true;
  return false;
}

/* Check every member of every group, PIECE members at a time. Except in covers, mgrid_family_locate
** finds a rank in only one group. So if every member is found where it is listed, no rank is listed
** twice. At the end, compare the number of members with f->total. That is enough for a partition,
** too: it lists no rank twice, and its f->total is the number of ranks in the world. */
static mgrid_status verify_check_members(const mgrid_entry *e, int64_t *checked, mgrid_error *err) {
  const mgrid_family *f = e->family;
  int32_t ranks[PIECE];
  int64_t members = 0;

  for (int64_t g = 0; g < f->count; g++) {
    int64_t size = mgrid_family_size(f, g);
    for (int64_t first = 0; first < size; first += PIECE) {
      int64_t n = size - first < PIECE ? size - first : PIECE;
      mgrid_family_slice(f, g, first, n, ranks);
      for (int64_t i = 0; i < n; i++)
        if (ranks[i] < 0 || ranks[i] >= f->world || mgrid_family_rank(f, g, first + i) != ranks[i]
            || !inverse_holds(f, g, first + i))
          return not_found(e, g, first + i, err);
    }
    members += size;
  }
  *checked += members;
  if (members == f->total) return MGRID_OK;
  return mgrid_fail(err, MGRID_UNPROVED,
                    "family '%s' has %" PRId64 " members in all its groups, but reports %" PRId64,
                    e->name, members, f->total);
}

static mgrid_status check_some_members(const mgrid_entry *e, int64_t *checked, mgrid_error *err) {
  const mgrid_family *f = e->family;
  uint64_t x = 88172645463325252u; /* xorshift from a fixed number: the same sample everywhere */
  for (int i = 0; i < MGRID_CHECK_SOME && f->count > 0; i++, ++*checked) {
    x ^= x << 13, x ^= x >> 7, x ^= x << 17;
    int64_t group = (int64_t)(x % (uint64_t)f->count), size = mgrid_family_size(f, group);
    int64_t position = (int64_t)((x >> 32) % (uint64_t)size);
    if (!inverse_holds(f, group, position)) return not_found(e, group, position, err);
  }
  return MGRID_OK;
}

mgrid_status mgrid_plan_check(const mgrid_plan *p, mgrid_plan_checked *out, mgrid_error *err) {
  if (!p) return MGRID_USAGE;
  mgrid_plan_checked c = MGRID_PLAN_CHECKED_INIT;
  mgrid_created schedule;
  mgrid_status s = out ? mgrid_struct_check(out, sizeof c, "mgrid_plan_checked", err) : MGRID_OK;
  c.sampled = p->content.world > MGRID_CHECK_WHOLE;
  for (size_t i = 0; i < p->content.nentries && !s; i++)
    s = (c.sampled ? check_some_members : verify_check_members)(&p->content.entry[i], &c.members,
                                                                err);
  if (!s) s = mgrid_plan_verify(p, c.sampled ? MGRID_CHECK_SOME / 4 : 0, &schedule, err);
  if (s) return s;
  c.communicators = schedule.communicators, c.memberships = schedule.memberships;
  c.most_per_rank = schedule.most_per_rank;
  mgrid_struct_write(out, &c, sizeof c);
  return MGRID_OK;
}

/* ============================================================= the rehearsal */

/* Play all ranks of a plan in one process. Each rank goes through its creations in its own order,
** and in each waits until all members have arrived. This needs memory for all ranks at once. */

enum { MGRID_REHEARSED_MAX = 1 << 20 }; /* most ranks; each takes a few hundred bytes */

/* -------------------------------------------------------------- itinerary */

mgrid_status mgrid_itinerary_of(mgrid_itinerary *it, const mgrid_plan *p, mgrid_error *err) {
  int64_t world = mgrid_plan_world(p);
  size_t n = 0;
  memset(it, 0, sizeof *it);
  it->world = world;
  it->start = malloc((size_t)(world + 1) * sizeof *it->start);
  if (!it->start) return mgrid_oom(err);
  it->start[0] = 0;
  for (int64_t r = 0; r < world; r++) {
    mgrid_view v;
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

/* -------------------------------------------------------------------- play */

/* Progress of every rank. Group g of entry e has the number base[e] + g. */
typedef struct progress {
  int64_t *base;    /* [nentries] */
  int32_t *arrived; /* [groups]: how many members wait in the group with that number */
  int64_t *at; /* [world]: index of a rank's current step; start[rank + 1]: the rank has finished */
  int64_t *ready; /* [world]: a stack of the ranks that are not waiting */
  int64_t nready;
} progress;

static mgrid_status verify_stuck(const progress *now, const mgrid_itinerary *it,
                                 const mgrid_plan *p, int64_t rank, mgrid_error *err) {
  const mgrid_creation *c = &it->step[now->at[rank]];
  const mgrid_entry *e = &p->content.entry[c->entry];
  int64_t absent = -1;
  for (int64_t i = 0; i < c->size && absent < 0; i++) {
    int64_t other = mgrid_family_rank(e->family, c->group, i);
    bool there = now->at[other] < it->start[other + 1] && it->step[now->at[other]].entry == c->entry
                 && it->step[now->at[other]].group == c->group;
    if (!there) absent = other;
  }
  return mgrid_fail(err, MGRID_UNPROVED,
                    "rank %" PRId64 " would wait forever in %s[%" PRId64 "]: %d of %" PRId64
                    " members arrived, rank %" PRId64 " does not",
                    rank, e->name, c->group, now->arrived[now->base[c->entry] + c->group], c->size,
                    absent);
}

/* Let each rank that is not waiting arrive at its next group. When the last member of a group
** arrives, all its members go on. */
static mgrid_status verify_walk(progress *now, const mgrid_itinerary *it, const mgrid_plan *p,
                                mgrid_created *out, mgrid_error *err) {
  while (now->nready > 0) {
    int64_t rank = now->ready[--now->nready];
    if (now->at[rank] == it->start[rank + 1]) continue;

    const mgrid_creation *c = &it->step[now->at[rank]];
    const mgrid_family *f = p->content.entry[c->entry].family;
    if (mgrid_family_rank(f, c->group, c->position) != rank
        || mgrid_family_size(f, c->group) != c->size)
      return mgrid_fail(err, MGRID_UNPROVED,
                        "rank %" PRId64 " creates %s[%" PRId64 "] as member %" PRId64 " of %" PRId64
                        ", but is not this member",
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

mgrid_status mgrid_itinerary_play(const mgrid_itinerary *it, const mgrid_plan *p,
                                  mgrid_created *out, mgrid_error *err) {
  progress now = { 0 };
  int64_t groups = 0;

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
  if (!status) status = verify_walk(&now, it, p, out, err);
  for (int64_t r = 0; r < it->world && !status; r++)
    if (now.at[r] < it->start[r + 1]) status = verify_stuck(&now, it, p, r, err);
  free(now.base);
  free(now.arrived);
  free(now.at);
  free(now.ready);
  return status;
}

mgrid_status mgrid_plan_rehearse(const mgrid_plan *p, mgrid_created *out, mgrid_error *err) {
  if (!p) return MGRID_USAGE;
  mgrid_itinerary steps = { 0 };
  mgrid_created seen;
  mgrid_status s = MGRID_OK;
  if (p->content.world > MGRID_REHEARSED_MAX)
    s = mgrid_fail(err, MGRID_OUT_OF_RANGE,
                   "a rehearsal plays every rank of a world of at most %d ranks, and this one has "
                   "%" PRId64 "; the check of a plan takes samples of larger worlds",
                   MGRID_REHEARSED_MAX, p->content.world);
  if (!s) s = mgrid_itinerary_of(&steps, p, err);
  if (!s) s = mgrid_itinerary_play(&steps, p, &seen, err);
  mgrid_itinerary_free(&steps);
  if (!s && out) *out = seen;
  return s;
}
