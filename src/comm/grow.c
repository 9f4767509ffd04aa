/* SPDX-License-Identifier: MIT
**
** grow.c - a state in a larger world: each communicator of the smaller one is kept, grown or created again. Also the memory
** of a state: suspend, resume, count.
*/
#include "comm/state.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct mgrid_growing {
  const mgrid_state *from;   /* NULL: this rank is new */
  mgrid_origin      *origin; /* [entries of the batch], as the next */
  mgrid_shared     **was;    /* the old state's communicator of origin.native */
};

/* ---------------------------------------------------------------------- the old ones */

/* Return whether the new group starts with the members of the old one, in the same order. */
static bool begins(const mgrid_group *old, const mgrid_shared *c) {
  bool same = old->size <= c->size;
  for (int64_t p = 0; p < old->size && same; p++) same = mgrid_group_at(old, p) == c->ranks[p];
  return same;
}

/* Find this rank's old communicator of the group, if it can be kept or grown. */
static void find_origin(mgrid_growing *g, size_t i, const char *family, const mgrid_shared *c) {
  const mgrid_group *old;
  for (size_t nth = 0; (old = mgrid_state_group_nth(g->from, family, nth, NULL)); nth++) {
    if (!mgrid_group_native(old) || !old->comm->backend->grows || !begins(old, c)) continue;
    bool same = strcmp(old->comm->options->identity, c->options->identity) == 0;
    if (old->size == c->size && (!same || old->comm->users > 1)) continue;
    g->origin[i].native = old->comm->native;
    g->origin[i].can = old->size == c->size ? MGRID_KEPT : MGRID_GROWN;
    for (size_t k = 0; k < g->from->view.ncomms; k++)
      if (g->from->comm[k] == old->comm) g->was[i] = g->from->comm[k];
    return;
  }
}

mgrid_status mgrid_growing_new(const mgrid_state *from, const mgrid_state *s, mgrid_growing **out, mgrid_error *err) {
  size_t         room = s->batch.n + 1;
  mgrid_growing *g = *out = calloc(1, sizeof *g);
  if (!g) return mgrid_oom(err);
  g->from = from;
  g->origin = calloc(room, sizeof *g->origin);
  g->was = calloc(room, sizeof(mgrid_shared *));
  if (!g->origin || !g->was) return mgrid_oom(err);
  for (size_t i = 0; from && !s->backend->whole && i < s->batch.n; i++)
    for (size_t k = 0; k < s->view.ncomms; k++)
      if (s->comm[k] == s->batch.entry[i] && s->comm[k]->ranks)
        find_origin(g, i, s->plan->content.entry[s->view.comm[k].entry].name, s->comm[k]);
  return MGRID_OK;
}

void mgrid_growing_free(mgrid_growing *g) {
  if (!g) return;
  free(g->origin);
  free(g->was);
  free(g);
}

/* -------------------------------------------------------------------------- create */

/* Sort the batch: first what is created again, then what grows, then what is kept, each in schedule order. One call moves
** the entries of one kind to index `at` and on, and returns the index after them. */
static size_t sort_batch(mgrid_batch *batch, mgrid_growing *g, mgrid_growth how, size_t at) {
  for (size_t i = at; i < batch->n; i++) {
    if (g->origin[i].agreed != how) continue;
    mgrid_shared   *entry = batch->entry[i], *was = g->was[i];
    mgrid_comm_spec spec = batch->spec[i];
    mgrid_origin    origin = g->origin[i];
    size_t          behind = i - at;
    memmove(&batch->entry[at + 1], &batch->entry[at], behind * sizeof(mgrid_shared *));
    memmove(&batch->spec[at + 1], &batch->spec[at], behind * sizeof spec);
    memmove(&g->origin[at + 1], &g->origin[at], behind * sizeof origin);
    memmove(&g->was[at + 1], &g->was[at], behind * sizeof(mgrid_shared *));
    batch->entry[at] = entry, batch->spec[at] = spec, g->origin[at] = origin, g->was[at] = was;
    at++;
  }
  return at;
}

/* Find out whether any rank failed. The verdict after the creation names it. */
static mgrid_outcome all_of(mgrid_backend *b, mgrid_outcome mine) {
  mgrid_error  told = MGRID_ERROR_INIT;
  mgrid_status s = mgrid_verdict(b, mine, NULL, &told);
  mgrid_error_clear(&told);
  return mine ? mine : s ? MGRID_GAVE_UP : MGRID_OK;
}

/* Every rank makes the same calls over all ranks, whether it failed or not. */
mgrid_outcome mgrid_pool_grow(mgrid_backend *b, mgrid_batch *batch, mgrid_growing *g, mgrid_error *err) {
  bool          votes = b->ops->growth && !b->whole;
  mgrid_outcome s = MGRID_OK;
  mgrid_pool_count(b);
  if (votes) s = all_of(b, b->ops->growth(b, batch->n, batch->spec, g->origin, err));
  if (s) return s;
  size_t anew = sort_batch(batch, g, MGRID_ANEW, 0), grown = sort_batch(batch, g, MGRID_GROWN, anew);
  s = b->ops->create(b, anew, batch->spec, batch->native, err);
  if (votes) s = all_of(b, s);
  for (size_t i = anew; i < grown && !s; i++)
    s = b->ops->grow(b, &batch->spec[i], &g->origin[i], &batch->native[i], err);
  for (size_t i = 0; i < grown; i++) {
    if (!batch->entry[i]) continue;
    batch->entry[i]->native = batch->native[i];
    batch->entry[i]->real = s == MGRID_OK || batch->native[i];
  }
  return s;
}

void mgrid_growing_end(mgrid_state *s, mgrid_growing *g) {
  static const char *const how[] = { "created again", "grown by ncclCommGrow", "kept" };
  mgrid_backend           *b = s->backend;
  for (size_t i = 0; i < s->batch.n; i++) {
    mgrid_shared *c = s->batch.entry[i];
    if (!c) continue;
    if (g->origin[i].agreed == MGRID_KEPT && g->was[i]) {
      c->native = g->origin[i].native, c->real = true;
      g->was[i]->native = NULL, g->was[i]->real = false;
      b->ops->adopt(b, g->from->backend, c->native);
    }
    mgrid_log(&b->hooks, MGRID_LOG_INFO, "%s: %" PRId64 " ranks, %s%s%s", c->name, c->size, how[g->origin[i].agreed],
              *g->origin[i].why ? ", because " : "", g->origin[i].why);
  }
}

/* A communicator split from a parent would have to grow with its parent. */
static void refuse_parents(const mgrid_plan *plan, mgrid_error *err) {
  for (size_t i = 0; plan && i < plan->content.nentries; i++)
    if (*plan->content.entry[i].choice->asked.parent)
      mgrid_fail(err, MGRID_UNSUPPORTED, "family '%s' has a parent: a state with such families cannot grow",
                 plan->content.entry[i].name);
}

mgrid_state *mgrid_state_grow(mgrid_state *s, const mgrid_plan *plan, mgrid_backend *larger, const char *name,
                              mgrid_error *err) {
  if (!s || !larger) return NULL;
  mgrid_error mine = MGRID_ERROR_INIT;
  int64_t     was = s->plan->content.world;
  if (larger == s->backend || larger->world < was)
    mgrid_fail(&mine, MGRID_USAGE, "a state of %" PRId64 " ranks grows into another backend, of as many ranks or more",
               was);
  else if (larger->rank != s->view.rank)
    mgrid_fail(&mine, MGRID_REFUSED,
               "rank %" PRId64 " is rank %" PRId64 " of the larger world; ranks that were there keep their numbers",
               s->view.rank, larger->rank);
  refuse_parents(plan, &mine);
  return mgrid_state_make(plan, larger, name, NULL, &(mgrid_grown){ s, &mine }, err);
}

mgrid_state *mgrid_state_join(const mgrid_plan *plan, mgrid_backend *larger, const char *name, mgrid_error *err) {
  mgrid_error mine = MGRID_ERROR_INIT;
  if (!larger) return NULL;
  refuse_parents(plan, &mine);
  return mgrid_state_make(plan, larger, name, NULL, &(mgrid_grown){ NULL, &mine }, err);
}

/* --------------------------------------------------------------------------- memory */

/* List this rank's existing communicators in s->batch.native, in schedule order, and return their number. */
static size_t natives(mgrid_state *s) {
  size_t n = 0;
  for (size_t i = 0; i < s->view.ncomms; i++)
    if (s->comm[i]->real && s->comm[i]->native) s->batch.native[n++] = s->comm[i]->native;
  return n;
}

static mgrid_status suspend(mgrid_state *s, bool resume, mgrid_error *err) {
  if (!s) return MGRID_USAGE;
  mgrid_backend *b = s->backend;
  mgrid_error    mine = MGRID_ERROR_INIT;
  mgrid_status   status = MGRID_OK;
  if (!b->ops->suspend) return MGRID_OK;
  for (int dry = 1; dry >= 0 && !status; dry--) {
    mgrid_outcome own = b->ops->suspend(b, natives(s), s->batch.native, resume, dry, &mine);
    status = mgrid_verdict(b, own, &mine, &mine);
  }
  return status ? mgrid_error_pass(err, &mine) : MGRID_OK;
}

mgrid_status mgrid_state_suspend(mgrid_state *s, mgrid_error *err) { return suspend(s, false, err); }
mgrid_status mgrid_state_resume(mgrid_state *s, mgrid_error *err) { return suspend(s, true, err); }

mgrid_status mgrid_state_held_memory(const mgrid_state *s, mgrid_held_memory *out, mgrid_error *err) {
  if (!s) return MGRID_USAGE;
  mgrid_held_memory m = MGRID_HELD_MEMORY_INIT;
  mgrid_status      status = mgrid_struct_check(out, sizeof m, "mgrid_held_memory", err);
  if (!status && s->backend->ops->held)
    status = s->backend->ops->held(s->backend, natives((mgrid_state *)s), s->batch.native, &m, err);
  if (!status) mgrid_struct_write(out, &m, sizeof m);
  return status;
}
