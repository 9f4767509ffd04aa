/* SPDX-License-Identifier: MIT
**
** state.c - makes and frees states, and counts the users of their backend. To make a state, all
** ranks agree on the plan and then create its communicators in schedule order. Either every rank
** gets the state or none does, and a rank that fails still makes the same collective calls as the
** others. Communicators are destroyed in reverse order. The last user of a backend closes it, and
** frees the states that the host has abandoned.
*/
#include "comm/compare.h"
#include "comm/recipe.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ================================================================== backends */

const char *mgrid_backend_name(const mgrid_backend *b) { return b ? b->kind->name : NULL; }
int64_t mgrid_backend_rank(const mgrid_backend *b) { return b ? b->rank : -1; }
int64_t mgrid_backend_world(const mgrid_backend *b) { return b ? b->world : -1; }

mgrid_backend *mgrid_backend_ref(mgrid_backend *b) {
  if (b) b->users++;
  return b;
}

mgrid_status mgrid_backend_set_hooks(mgrid_backend *b, const mgrid_hooks *hooks, mgrid_error *err) {
  if (!b) return MGRID_USAGE;
  mgrid_hooks h = MGRID_HOOKS_INIT;
  mgrid_status s = mgrid_layout_check(b->layout, "the backend's library", err);
  if (!s && b->hooks_fixed)
    s = mgrid_fail(
        err, MGRID_NOT_NOW,
        "hooks must be set before the first state of a backend; this %s backend has had one",
        b->kind->name);
  if (!s) s = mgrid_struct_read(&h, sizeof h, hooks, "mgrid_hooks", err);
  if (!s) b->hooks = h;
  return s;
}

void mgrid_backend_free(mgrid_backend *b) {
  if (!b || --b->users > 0) return;
  /* The host has abandoned these states. mgrid_state_abandon has already subtracted each from
  ** b->users, and mgrid_state_end subtracts it once more, so add 1 first. Add another 1, so that b
  ** is not closed inside the loop, and subtract it afterwards. */
  while (b->states) {
    b->users += 2;
    mgrid_state_end(b->states);
    b->users--;
  }
  b->ops->close(b);
}

/* ==================================================================== states */

mgrid_state *mgrid_state_ref(mgrid_state *s) {
  if (s) atomic_fetch_add(&s->refs, 1);
  return s;
}

static bool is_last_owner(mgrid_state *s) { return atomic_fetch_sub(&s->refs, 1) == 1; }

void mgrid_state_abandon(mgrid_state *s) {
  if (is_last_owner(s)) mgrid_backend_free(s->backend);
}

static bool state_is_lazy(const mgrid_state *s, size_t comm) {
  return s->plan->content.entry[s->view.comm[comm].entry].choice->asked.lazy;
}

/* Return an upper bound of the number of creations in which this rank takes part. If a creation is
** a call over all ranks of the world (`whole`) or of the parent, each round of the family counts,
** even one in which this rank has no group. */
static size_t batch_room(const mgrid_state *s) {
  size_t n = s->view.ncomms + s->view.nmembers; /* including groups of one rank */
  for (size_t i = 0; i < s->plan->content.nentries; i++)
    if (s->backend->whole || *s->plan->content.entry[i].choice->asked.parent)
      n += (size_t)mgrid_family_rounds(s->plan->content.entry[i].family);
  return n;
}

/* Return the turn of a creation in this rank's view (mgrid_comm_spec.turn). Turns grow in schedule
** order: by family, then by round. */
static int64_t state_turn_of(const mgrid_state *s, size_t comm) {
  const mgrid_creation *c = &s->view.comm[comm];
  int64_t at = 0;
  while (s->plan->order[at] != c->entry) at++;
  return at * MGRID_ROUNDS_MAX + c->round;
}

/* Fill the batch for a backend whose every creation is a call over all ranks (`whole`): for each
** family, add one creation for each round in which some rank creates a communicator. */
static void state_add_whole(mgrid_state *s) {
  const mgrid_plan *p = s->plan;
  for (size_t k = 0; k < p->content.nentries; k++) {
    int entry = p->order[k];
    int64_t rounds = mgrid_family_rounds(p->content.entry[entry].family), led[MGRID_ROUNDS_MAX];
    mgrid_plan_led_by_round(p, entry, led, NULL);
    for (int64_t r = 0; r < rounds; r++) {
      size_t i = 0;
      if (led[r] == 0) continue;
      while (i < s->view.ncomms && (s->view.comm[i].entry != entry || s->view.comm[i].round != r))
        i++;
      const mgrid_entry *e = &p->content.entry[entry];
      const mgrid_descriptor *own = s->backend->kind, *wanted = e->choice->backend;
      if (i < s->view.ncomms) mgrid_batch_add(&s->batch, s->comm[i], state_turn_of(s, i));
      /* This rank is in no group of the round. It still takes part if the state's own backend makes
      ** the family; another backend calls only the members. */
      else if (!wanted || mgrid_same_backend(wanted, own))
        mgrid_batch_add_absent(&s->batch, e, own);
    }
  }
}

/* Return this rank's communicator of a family whose groups do not overlap, or NULL. */
static mgrid_shared *state_comm_of(const mgrid_state *s, int entry) {
  for (size_t i = 0; i < s->view.nmembers; i++)
    if (s->view.member[i].entry == entry && s->view.member[i].comm >= 0)
      return s->comm[s->view.member[i].comm];
  return NULL;
}

/* Return the address of a communicator's handle. If the batch still has to create the communicator,
** its handle will be stored there. */
static void *const *state_handle_of(const mgrid_state *s, const mgrid_shared *c) {
  for (size_t i = 0; i < s->batch.n; i++)
    if (s->batch.entry[i] == c) return &s->batch.native[i];
  return (void *const *)&c->native;
}

/* Fill the batch with all communicators except lazy ones, in schedule order. A split is a call over
** all ranks of the parent, so also add those splits of this rank's parents in which this rank gets
** no communicator. */
static mgrid_status add_all(mgrid_state *s, mgrid_error *err) {
  const mgrid_plan *p = s->plan;
  mgrid_status status = MGRID_OK;
  size_t next = 0;

  for (size_t k = 0; k < p->content.nentries && !status; k++) {
    int entry = p->order[k];
    const mgrid_choice *choice = p->content.entry[entry].choice;
    const mgrid_descriptor *made_by = choice->backend ? choice->backend : s->backend->kind;
    size_t first = s->batch.n;
    for (; next < s->view.ncomms && s->view.comm[next].entry == entry; next++) {
      if (!state_is_lazy(s, next))
        mgrid_batch_add(&s->batch, s->comm[next], state_turn_of(s, next));
      if (*choice->asked.parent)
        status = mgrid_plan_check_parent(p, entry, s->view.comm[next].group, err);
    }
    if (!*choice->asked.parent || !made_by->splits || status) continue;
    const mgrid_shared *parent =
        state_comm_of(s, mgrid_content_find(&p->content, choice->asked.parent));
    if (parent && s->batch.n == first)
      mgrid_batch_add_absent(&s->batch, &p->content.entry[entry], made_by);
    if (parent && s->batch.n > first) s->batch.spec[first].parent = state_handle_of(s, parent);
  }
  return status;
}

static size_t comm_bytes(const mgrid_state *s) {
  return (s->view.ncomms + s->view.nmembers + 1) * sizeof *s->comm;
}
static size_t group_bytes(const mgrid_state *s) {
  return (s->view.nmembers + 1) * sizeof *s->group;
}
static size_t first_bytes(const mgrid_state *s) {
  return (s->plan->content.nentries + 2) * sizeof *s->first;
}

mgrid_state *mgrid_state_new(mgrid_backend *b, mgrid_error *err) {
  mgrid_state *s = mgrid_zeroed(&b->hooks, sizeof *s);
  b->hooks_fixed = true;
  if (!s) return mgrid_null_oom(err);
  atomic_init(&s->refs, 1);
  s->backend = mgrid_backend_ref(b);
  s->next = b->states;
  b->states = s;
  return s;
}

/* Make the communicators of groups of one rank, if the family asks for them and its backend can
** make them. They need no other rank, so they are made before the ranks agree, outside of the
** schedule. */
static mgrid_status add_singles(mgrid_state *s, mgrid_error *err) {
  mgrid_backend *b = s->backend;
  mgrid_status status = MGRID_OK;
  for (size_t i = 0; i < s->view.nmembers && b->single && !status; i++) {
    const mgrid_member *m = &s->view.member[i];
    const mgrid_choice *choice = s->plan->content.entry[m->entry].choice;
    const mgrid_descriptor *by = choice->backend ? choice->backend : b->kind;
    const mgrid_creation made = { m->entry, m->group, 0, m->position, m->size };
    if (m->size > 1 || !by->singles || !b->wants_single(b, choice)) continue;
    mgrid_shared *c = mgrid_pool_take(b, s->plan, &made, s->name, err);
    if (!c) return MGRID_NO_MEMORY;
    s->comm[s->ncomms++] = s->group[i].comm = c;
    if (!choice->asked.lazy) status = mgrid_pool_single(b, c, err);
  }
  return status;
}

mgrid_status mgrid_state_prepare(mgrid_state *s, const mgrid_plan *plan, const char *name,
                                 mgrid_error *err) {
  mgrid_backend *b = s->backend;
  mgrid_status status = mgrid_view_init(&s->view, plan, b->rank, err);

  if (status) return status;
  s->plan = mgrid_plan_ref(plan);
  s->name = mgrid_strdup(name);
  s->comm = mgrid_zeroed(&b->hooks, comm_bytes(s));
  s->group = mgrid_zeroed(&b->hooks, group_bytes(s));
  s->first = mgrid_zeroed(&b->hooks, first_bytes(s));
  if (!s->name || !s->comm || !s->group || !s->first) return mgrid_oom(err);
  if ((status = mgrid_batch_init(&s->batch, &b->hooks, batch_room(s), err))) return status;
  for (size_t i = 0; i < s->view.ncomms; i++)
    if (!(s->comm[s->ncomms++] = mgrid_pool_take(b, plan, &s->view.comm[i], name, err)))
      return MGRID_NO_MEMORY;
  for (size_t i = 0; i < s->view.nmembers; i++) {
    const mgrid_member *m = &s->view.member[i];
    const mgrid_entry *e = &s->plan->content.entry[m->entry];
    s->group[i] = (mgrid_group){ s,
                                 e->name,
                                 e->family,
                                 m->group,
                                 m->position,
                                 m->size,
                                 m->comm < 0 ? NULL : s->comm[m->comm],
                                 e->choice->none };
    s->first[m->entry + 1]++;
  }
  for (size_t i = 0; i < plan->content.nentries; i++) s->first[i + 1] += s->first[i];
  if (b->whole)
    state_add_whole(s);
  else
    status = add_all(s, err);
  if (!status) status = add_singles(s, err);
  return status ? status : mgrid_pool_check(b, &s->batch, err);
}

void mgrid_state_end(mgrid_state *s) {
  mgrid_backend *b = s->backend;
  const mgrid_hooks h = b->hooks; /* a copy, because b may be freed before the last use */
  mgrid_state **at = &b->states;
  while (*at != s) at = &(*at)->next;
  *at = s->next;
  if (s->comm) mgrid_pool_release(b, s->ncomms, s->comm, &s->batch);
  mgrid_batch_free(&s->batch, &h);
  if (s->comm) mgrid_realloc(&h, s->comm, comm_bytes(s), 0);
  if (s->group) mgrid_realloc(&h, s->group, group_bytes(s), 0);
  if (s->first) mgrid_realloc(&h, s->first, first_bytes(s), 0);
  mgrid_view_free(&s->view);
  mgrid_plan_free(s->plan);
  mgrid_runtime_end(s->runtime);
  free(s->name);
  json_decref(s->settings);
  mgrid_realloc(&h, s, sizeof *s, 0);
  mgrid_backend_free(b);
}

void mgrid_state_free(mgrid_state *s) {
  if (s && is_last_owner(s)) mgrid_state_end(s);
}

mgrid_status mgrid_state_leave(mgrid_state *s, mgrid_error *err) {
  if (!s) return MGRID_USAGE;
  for (size_t i = 0; i < s->view.nmembers; i++)
    if (s->view.member[i].comm >= 0)
      return mgrid_fail(err, MGRID_REFUSED,
                        "rank %" PRId64 " shares group %" PRId64
                        " of '%s' with other ranks, so it cannot leave the state "
                        "'%s' before them; mgrid_state_free on all ranks ends it",
                        s->view.rank, s->group[i].index, s->group[i].name, s->name);
  /* ranks do not compare partial states (mgrid_state_shrink), so those may be left silently */
  s->backend->left |= !s->partial;
  mgrid_state_free(s);
  return MGRID_OK;
}

/* Create the batch on all ranks, or on none if any rank fails. */
static mgrid_status create(mgrid_state *s, mgrid_location *locations, mgrid_growing *g,
                           mgrid_error *err) {
  mgrid_outcome mine = g ? mgrid_pool_grow(s->backend, &s->batch, g, err)
                         : mgrid_pool_create(s->backend, &s->batch, err);
  mgrid_status status = mgrid_locations_verdict(s->backend, locations, mine, err, err);
  if (status)
    mgrid_pool_undo(s->backend, &s->batch);
  else if (g)
    mgrid_growing_end(s, g);
  else
    mgrid_pool_log(s->backend, &s->batch);
  s->batch.n = 0;
  return status;
}

/* Refuse the name if a state other than `old` has it with another plan. All ranks have the same
** states, so all get the same result. */
static mgrid_status state_check_name(const mgrid_backend *b, const mgrid_plan *plan,
                                     const char *name, const mgrid_state *old, mgrid_error *err) {
  for (const mgrid_state *s = *name ? b->states : NULL; s; s = s->next)
    if (s != old && s->name && strcmp(s->name, name) == 0
        && memcmp(s->plan->digest, plan->digest, sizeof plan->digest) != 0)
      return mgrid_fail(err, MGRID_DUPLICATE,
                        "there is already a state '%s' with another plan; free it first, or give "
                        "this one another name",
                        name);
  return MGRID_OK;
}

/* Warn about options of the plan that this backend ignores. */
static void log_unheeded(const mgrid_backend *b, const mgrid_plan *plan, const char *name) {
  mgrid_text t = { 0 };
  if (b->kind->native) mgrid_plan_unheeded(plan, b->kind, &t);
  if (t.len && !t.failed)
    mgrid_log(&b->hooks, MGRID_LOG_WARN, "state '%s': without effect on %s: %s", name,
              b->kind->name, t.data);
  mgrid_text_free(&t);
}

mgrid_state *mgrid_state_make(const mgrid_plan *plan, mgrid_backend *b, const char *name,
                              const mgrid_state *old, const mgrid_grown *grown, mgrid_error *err) {
  mgrid_error mine = MGRID_ERROR_INIT;

  if (!b || mgrid_layout_check(b->layout, "the backend's library", err)) return NULL;
  if (grown && grown->why && grown->why->status) {
    mgrid_error_pass(&mine, grown->why);
    plan = NULL;
  }
  /* *err says why this rank has no plan; the other ranks return this error, too */
  if (!plan && err) mgrid_error_pass(&mine, err);
  /* In a reload all ranks must return the same error, perhaps that of another rank. *err would keep
  ** its first error, the reason of this rank, so clear it. */
  if (!plan && old) mgrid_error_clear(err);
  bool fits = plan && mgrid_plan_world(plan) == b->world; /* if not, mgrid_agree fails */

  /* b->longest must be the same on all ranks. So look at all families of the plan, not only at the
  ** families of this rank. */
  for (size_t i = 0; plan && i < plan->content.nentries; i++) {
    double longest = plan->content.entry[i].choice->asked.timeout;
    if (longest > b->longest) b->longest = longest;
  }
  const uint64_t call =
      mgrid_meet_call(b, true, "%s '%s'", old ? "reload" : "materialize", name ? name : "");
  mgrid_status status = plan ? state_check_name(b, plan, name ? name : "", old, &mine)
                             : mine.status;
  mgrid_state *s = plan && !status ? mgrid_state_new(b, &mine) : NULL;
  mgrid_location *locations = NULL;
  mgrid_growing *growing = NULL;
  uint64_t *nodes = NULL;
  status = s && fits ? mgrid_state_prepare(s, plan, name ? name : "", &mine) : mine.status;
  if (!status) status = mgrid_locations_new(b, &locations, &mine);
  if (!status && plan) status = mgrid_nodes_new(plan, &nodes, &mine);
  if (!status && grown && s) status = mgrid_growing_new(grown, s, &growing, &mine);

  /* From here on every rank makes the same collective calls, whether it failed or not. */
  status = mgrid_agree_in(b, call, status ? NULL : plan, old, &mine, &mine);
  if (!status) status = mgrid_nodes_check(b, plan, nodes, &mine);
  if (!status) status = create(s, locations, growing, &mine);
  free(nodes);
  free(locations);
  mgrid_growing_free(growing);
  if (!status) {
    s->made = true;
    mgrid_log(&b->hooks, MGRID_LOG_INFO,
              "state '%s' is made: rank %" PRId64 " of %" PRId64 ", %zu groups, %zu communicators",
              s->name, b->rank, b->world, s->view.nmembers, mgrid_state_ncomms(s));
    log_unheeded(b, plan, s->name);
    return s;
  }
  mgrid_log(&b->hooks, MGRID_LOG_WARN, "state '%s' is not made: %s", name ? name : "",
            mine.message);
  mgrid_state_free(s);
  mgrid_error_pass(err, &mine);
  return NULL;
}

mgrid_state *mgrid_materialize(const mgrid_plan *plan, mgrid_backend *b, const char *name,
                               mgrid_error *err) {
  return mgrid_state_make(plan, b, name, NULL, NULL, err);
}

mgrid_status mgrid_state_create(mgrid_state *s, const char *family, mgrid_error *err) {
  if (!s) return MGRID_USAGE;
  mgrid_error mine = MGRID_ERROR_INIT;
  int entry = mgrid_content_require(&s->plan->content, "", family, &mine);
  mgrid_status status = mine.status;
  s->batch.n = 0;
  for (size_t c = 0; c < s->view.ncomms && entry >= 0; c++) { /* in schedule order */
    bool wanted = false;
    for (size_t i = 0; i < s->view.nmembers; i++)
      wanted |= s->view.member[i].entry == entry && s->view.member[i].comm == (int)c;
    if (wanted) mgrid_batch_add(&s->batch, s->comm[c], state_turn_of(s, c));
  }
  for (size_t i = 0; i < s->view.nmembers && !status; i++)
    if (s->view.member[i].entry == entry && s->group[i].comm && s->group[i].size == 1)
      status = mgrid_pool_single(s->backend, s->group[i].comm, &mine);

  /* check this before any rank begins to create */
  if (!status) status = mgrid_pool_check(s->backend, &s->batch, &mine);
  uint64_t call =
      mgrid_meet_call(s->backend, false, "create '%.32s' of '%s'", family ? family : "", s->name);
  mgrid_error unlike = MGRID_ERROR_INIT;
  if (mgrid_meet(s->backend, call, &unlike)) {
    s->batch.n = 0;
    return mgrid_error_pass(err, &unlike);
  }
  status = mgrid_verdict(s->backend, status, &mine, &mine);
  if (!status) status = create(s, NULL, NULL, &mine);
  s->batch.n = 0;
  return status ? mgrid_error_pass(err, &mine) : MGRID_OK;
}

mgrid_status mgrid_state_prove(mgrid_state *s, int64_t *proved, mgrid_error *err) {
  if (proved) *proved = 0;
  if (!s) return MGRID_USAGE;
  mgrid_error mine = MGRID_ERROR_INIT;
  mgrid_outcome own = MGRID_OK;
  int64_t n = 0;
  if (mgrid_meet(s->backend, mgrid_meet_call(s->backend, false, "prove '%s'", s->name), &mine))
    return mgrid_error_pass(err, &mine);
  for (size_t i = 0; i < s->ncomms; i++) {
    /* there is nothing to prove if a lazy communicator is not made yet, or the state is dry */
    if (!s->comm[i]->real || !s->comm[i]->native) continue;
    mgrid_outcome one = mgrid_pool_prove(s->backend, s->comm[i], own ? NULL : &mine);
    if (!own) own = one;
    n += i < s->view.ncomms;
  }
  mgrid_status status = mgrid_verdict(s->backend, own, &mine, &mine);
  if (proved) *proved = n;
  return status ? mgrid_error_pass(err, &mine) : MGRID_OK;
}
