/* SPDX-License-Identifier: MIT
**
** grow.c - changes a state while the job runs. Old ranks grow it to a larger world, which new ranks
** join. After a loss the remaining members of a family shrink its groups. A state can also give up
** the memory of its communicators for a while. origins.c decides what becomes of each communicator
** in a larger world; state.c makes the new state.
*/
#include "comm/state.h"

#include <inttypes.h>
#include <stdlib.h>

/* ==================================================== larger, and its memory */

/* Refuse families with a parent: their communicators would have to grow together with the
** parent's. */
static void refuse_parents(const mgrid_plan *plan, mgrid_error *err) {
  for (size_t i = 0; plan && i < plan->content.nentries; i++)
    if (*plan->content.entry[i].choice->asked.parent)
      mgrid_fail(err, MGRID_UNSUPPORTED,
                 "family '%s' has a parent: a state with such families cannot grow",
                 plan->content.entry[i].name);
}

mgrid_state *mgrid_state_grow(mgrid_state *s, const mgrid_plan *plan, mgrid_backend *larger,
                              const char *name, mgrid_error *err) {
  if (!s || !larger) return NULL;
  mgrid_error mine = MGRID_ERROR_INIT;
  int64_t was = s->plan->content.world;
  if (larger == s->backend || larger->world < was)
    mgrid_fail(&mine, MGRID_USAGE,
               "a state of %" PRId64 " ranks grows into another backend, of as many ranks or more",
               was);
  else if (larger->rank != s->view.rank)
    mgrid_fail(&mine, MGRID_REFUSED,
               "rank %" PRId64 " is rank %" PRId64
               " of the larger world; ranks that were there keep their numbers",
               s->view.rank, larger->rank);
  refuse_parents(plan, &mine);
  return mgrid_state_make(plan, larger, name, NULL, &(mgrid_grown){ .from = s, .why = &mine }, err);
}

mgrid_state *mgrid_state_join(const mgrid_plan *plan, mgrid_backend *larger, const char *name,
                              mgrid_error *err) {
  mgrid_error mine = MGRID_ERROR_INIT;
  if (!larger) return NULL;
  refuse_parents(plan, &mine);
  return mgrid_state_make(plan, larger, name, NULL, &(mgrid_grown){ .why = &mine }, err);
}

/* --------------------------------------------------------------------------- memory */

/* Write the handles of this rank's communicators into s->batch.native, in schedule order. Leave out
** those that do not exist. Return how many there are. */
static size_t natives(mgrid_state *s) {
  size_t n = 0;
  for (size_t i = 0; i < s->view.ncomms; i++)
    if (s->comm[i]->real && s->comm[i]->native) s->batch.native[n++] = s->comm[i]->native;
  return n;
}

static mgrid_status suspend(mgrid_state *s, bool resume, mgrid_error *err) {
  if (!s) return MGRID_USAGE;
  mgrid_backend *b = s->backend;
  mgrid_error mine = MGRID_ERROR_INIT;
  mgrid_status status = MGRID_OK;
  if (!b->ops->suspend) return MGRID_OK;
  for (int dry = 1; dry >= 0 && !status; dry--) {
    mgrid_outcome own = b->ops->suspend(b, natives(s), s->batch.native, resume, dry, &mine);
    status = mgrid_verdict(b, own, &mine, &mine);
  }
  return status ? mgrid_error_pass(err, &mine) : MGRID_OK;
}

mgrid_status mgrid_state_suspend(mgrid_state *s, mgrid_error *err) {
  return suspend(s, false, err);
}
mgrid_status mgrid_state_resume(mgrid_state *s, mgrid_error *err) { return suspend(s, true, err); }

mgrid_status mgrid_state_held_memory(const mgrid_state *s, mgrid_held_memory *out,
                                     mgrid_error *err) {
  if (!s) return MGRID_USAGE;
  mgrid_held_memory m = MGRID_HELD_MEMORY_INIT;
  mgrid_status status = mgrid_struct_check(out, sizeof m, "mgrid_held_memory", err);
  if (!status && s->backend->ops->held)
    status = s->backend->ops->held(s->backend, natives((mgrid_state *)s), s->batch.native, &m, err);
  if (!status) mgrid_struct_write(out, &m, sizeof m);
  return status;
}

/* ======================================================== without lost ranks */

/* Make a plan of one family: `left`, which is the family of e without the lost ranks. Groups may
** have lost members, so they get no Cartesian shape. */
static mgrid_plan *grow_plan_of(const mgrid_entry *e, mgrid_family *left, mgrid_error *err) {
  mgrid_topology *t = mgrid_topology_new(left->world, err);
  mgrid_choice *choice = NULL;
  mgrid_status s = t ? mgrid_choice_shapeless(e->choice, &choice, err) : MGRID_NO_MEMORY;
  if (!s) s = mgrid_topology_put(t, e->name, left, choice, err);
  mgrid_plan *p = s ? NULL : mgrid_plan_new(t, err);
  mgrid_choice_free(choice);
  mgrid_topology_free(t);
  return p;
}

/* If this rank's group lost no member, keep its communicator; else shrink it. */
static mgrid_status shrink_own(mgrid_state *now, const mgrid_group *old, size_t n,
                               const int64_t *lost, mgrid_error *err) {
  mgrid_shared *from = old ? old->comm : NULL;

  /* this rank is in no group, or is the only member that is left in its group */
  if (now->view.ncomms == 0) return MGRID_OK;
  if (!from)
    return mgrid_fail(err, MGRID_NOT_NOW, "%s: there is no communicator to shrink",
                      now->comm[0]->name);
  int *positions = malloc((n + 1) * sizeof *positions), gone = 0;
  if (!positions) return mgrid_oom(err);
  for (size_t i = 0; i < n; i++) {
    int64_t p = mgrid_group_position_of(old, lost[i]);
    if (p >= 0) positions[gone++] = (int)p;
  }
  mgrid_status s = MGRID_OK;
  if (gone > 0) {
    s = mgrid_pool_shrink(now->backend, now->comm[0], from, gone, positions, err);
    /* mgrid_pool_take may have made a new entry: use the old communicator instead */
  } else if (now->comm[0] != from) {
    mgrid_pool_release(now->backend, 1, now->comm, &now->batch);
    now->comm[0] = from;
    now->group[0].comm = from;
    from->users++;
  }
  free(positions);
  return s;
}

/* Mark the communicators that have a lost member: they will be aborted, because destroy would wait
** for that member. */
static void grow_lose_all(mgrid_state *s, size_t n, const int64_t *lost) {
  for (size_t i = 0; i < s->view.ncomms; i++) {
    const mgrid_creation *c = &s->view.comm[i];
    const mgrid_family *f = s->plan->content.entry[c->entry].family;
    for (size_t k = 0; k < n; k++) {
      int64_t group, position;
      for (int64_t nth = 0; mgrid_family_locate(f, lost[k], nth, &group, &position); nth++)
        if (group == c->group) mgrid_pool_lose(s->backend, s->comm[i]);
    }
  }
}

mgrid_state *mgrid_state_shrink(mgrid_state *s, const char *family, size_t n, const int64_t *lost,
                                mgrid_error *err) {
  if (!s || mgrid_lacks_list(n, lost, "lost ranks", err)) return NULL;
  int entry = mgrid_content_require(&s->plan->content, "", family, err);
  if (entry < 0) return NULL;
  const mgrid_entry *e = &s->plan->content.entry[entry];
  if (e->family->overlapping)
    return mgrid_null(err, MGRID_REFUSED, "'%s' cannot shrink: its groups share ranks", family);
  if (mgrid_count_check("shrink", n, err)) return NULL;
  for (size_t i = 0; i < n; i++) {
    if (mgrid_check_rank(lost[i], s->plan->content.world, err)) return NULL;
    if (lost[i] == s->view.rank)
      return mgrid_null(err, MGRID_LOST_RANK, "rank %" PRId64 " lists itself as lost", lost[i]);
  }

  mgrid_family *left = mgrid_family_without(e->family, n, lost, err);
  mgrid_plan *p = left ? grow_plan_of(e, left, err) : NULL;
  mgrid_state *now = p ? mgrid_state_new(s->backend, err) : NULL;
  mgrid_error why = MGRID_ERROR_INIT;
  if (now) now->partial = true;

  /* unset below: a creation over all ranks would need the lost ranks */
  bool whole = s->backend->whole;
  s->backend->whole = false;
  mgrid_status status = now ? mgrid_state_prepare(now, p, "shrunk", &why) : MGRID_NO_MEMORY;
  s->backend->whole = whole;
  if (!status) status = shrink_own(now, mgrid_state_group(s, family, NULL), n, lost, &why);
  if (!status) grow_lose_all(s, n, lost);

  if (now) now->batch.n = 0;
  mgrid_plan_free(p);
  mgrid_family_free(left);
  if (!status) return now;
  mgrid_state_free(now);
  if (why.status) mgrid_error_pass(err, &why);
  return NULL;
}

mgrid_status mgrid_state_revoke(mgrid_state *s, mgrid_error *err) {
  return s ? mgrid_pool_revoke(s->backend, s->view.ncomms, s->comm, &s->batch, err) : MGRID_USAGE;
}
