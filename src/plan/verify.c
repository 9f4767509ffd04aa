/* SPDX-License-Identifier: MIT
**
** verify.c - the premises of the proof in plan.h, looked at rank by rank, in memory that does
** not grow with the world: every rank creates its groups in the one order of all groups, stands
** in each where it thinks it stands, and all members of a group go there.
*/
#include "plan/plan.h"

#include <inttypes.h>
#include <stdlib.h>
#include <xxhash.h>

/* A member of a creation as a number that no other one has, but by a chance of 2^-64. */
static uint64_t mark(const mgrid_creation *c, int64_t position) {
  const int64_t what[3] = { c->entry, c->group, position };
  return XXH3_64bits(what, sizeof what);
}

static mgrid_status out_of_order(const mgrid_plan *p, int64_t rank, const mgrid_creation *a, const mgrid_creation *b,
                                 mgrid_error *err) {
  return mgrid_fail(err, MGRID_BACKEND,
                    "rank %" PRId64 " creates %s[%" PRId64 "] before %s[%" PRId64
                    "], against the order of the schedule",
                    rank, p->content.entry[a->entry].name, a->group, p->content.entry[b->entry].name, b->group);
}

/* Is the rank where its schedule says, in ascending order? */
static mgrid_status check_own(const mgrid_plan *p, const int *place, const mgrid_view *v, mgrid_error *err) {
  for (size_t i = 0; i < v->ncomms; i++) {
    const mgrid_creation *c = &v->comm[i], *before = i ? c - 1 : NULL;
    const mgrid_entry    *e = &p->content.entry[c->entry];
    if (mgrid_family_rank(e->family, c->group, c->position) != v->rank
        || mgrid_family_size(e->family, c->group) != c->size)
      return mgrid_fail(err, MGRID_BACKEND,
                        "rank %" PRId64 " goes to %s[%" PRId64 "] as %" PRId64 " of %" PRId64 ", where it is not",
                        v->rank, e->name, c->group, c->position, c->size);
    if (!before) continue;
    int     step = place[c->entry] - place[before->entry];
    int64_t round = c->round - before->round;
    if (step < 0 || (step == 0 && (round < 0 || (round == 0 && c->group <= before->group))))
      return out_of_order(p, v->rank, before, c, err);
  }
  return MGRID_OK;
}

/* Does the next member of each of the rank's groups create it too? Over all ranks that says
** the same as the sum of the marks, and tells who does not come; it costs several times more. */
static mgrid_status check_next(const mgrid_plan *p, const mgrid_view *v, mgrid_error *err) {
  for (size_t i = 0; i < v->ncomms; i++) {
    const mgrid_creation *c = &v->comm[i];
    const mgrid_entry    *e = &p->content.entry[c->entry];
    int64_t               next = (c->position + 1) % c->size, other = mgrid_family_rank(e->family, c->group, next);
    mgrid_view            theirs = { 0 };
    bool                  there = false;
    mgrid_status          s = other < 0 ? MGRID_OK : mgrid_view_init(&theirs, p, other, err);
    if (s) return s;
    for (size_t k = 0; k < theirs.ncomms && !there; k++)
      there = theirs.comm[k].entry == c->entry && theirs.comm[k].group == c->group && theirs.comm[k].position == next;
    mgrid_view_free(&theirs);
    if (!there)
      return mgrid_fail(err, MGRID_BACKEND,
                        "rank %" PRId64 " would wait for ever in %s[%" PRId64 "]: rank %" PRId64 " does not come",
                        v->rank, e->name, c->group, other);
  }
  return MGRID_OK;
}

mgrid_status mgrid_plan_verify(const mgrid_plan *p, int64_t sample, mgrid_rehearsal *out, mgrid_error *err) {
  int64_t      world = p->content.world, step = sample > 0 && sample < world ? world / sample : 1;
  uint64_t     sum = 0;
  mgrid_status s = MGRID_OK;
  int         *place = malloc((p->content.nentries + 1) * sizeof *place); /* of an entry in the order */
  if (!place) return mgrid_oom(err);
  for (size_t k = 0; k < p->content.nentries; k++) place[p->order[k]] = (int)k;
  *out = (mgrid_rehearsal){ 0, 0, 0 };
  for (int64_t r = 0; r < world && !s; r += step) {
    mgrid_view v;
    if ((s = mgrid_view_init(&v, p, r, err))) break;
    s = check_own(p, place, &v, err);
    if (!s && step > 1) s = check_next(p, &v, err);
    out->memberships += (int64_t)v.ncomms;
    if ((int64_t)v.ncomms > out->most_per_rank) out->most_per_rank = (int64_t)v.ncomms;
    for (size_t i = 0; i < v.ncomms && !s; i++) {
      const mgrid_creation *c = &v.comm[i];
      sum += mark(c, c->position);
      if (c->position != 0) continue;
      out->communicators++;
      for (int64_t k = 0; k < c->size; k++) sum -= mark(c, k);
    }
    mgrid_view_free(&v);
  }
  for (int64_t r = 0; r < world && !s && step == 1 && sum != 0; r++) { /* somebody is missing: who? */
    mgrid_view v;
    if ((s = mgrid_view_init(&v, p, r, err))) break;
    s = check_next(p, &v, err);
    mgrid_view_free(&v);
  }
  if (!s && step == 1 && sum != 0)
    s = mgrid_fail(err, MGRID_BACKEND, "a group is created by somebody who is no member of it");
  free(place);
  return s;
}
