/* SPDX-License-Identifier: MIT
**
** origins.c - creates the communicators of a state when the world has changed, from those of the
** old state where that is possible. In a larger world a communicator is kept, grown or created
** again; among survivors it is shrunk or created again. The members of a group decide this
** together, by a vote of the backend. state.c calls this file between the agreement and the
** verdict.
*/
#include "comm/state.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct mgrid_growing {
  mgrid_grown what;
  size_t n;             /* entries of the batch */
  mgrid_origin *origin; /* [n] */
  /* [n]: the entry of the old state that has origin[i].native; NULL: there is none, or a shrink
  ** uses it */
  mgrid_shared **was;
};

/* ----------------------------------------------------- find the old communicators */

/* Return whether the new group starts with the members of the old group, in the same order. */
static bool origins_begins(const mgrid_group *old, const mgrid_shared *c) {
  bool same = old->size <= c->size;
  for (int64_t p = 0; p < old->size && same; p++) same = mgrid_group_at(old, p) == c->ranks[p];
  return same;
}

/* Find the communicator that this rank had for entry i of the batch, if it can be kept or grown. */
static void find_origin(mgrid_growing *g, size_t i, const char *family, const mgrid_shared *c) {
  const mgrid_group *old;
  for (size_t nth = 0; (old = mgrid_state_group_nth(g->what.from, family, nth, NULL)); nth++) {
    if (!mgrid_group_native(old) || !old->comm->backend->grows || !origins_begins(old, c)) continue;
    bool same = strcmp(old->comm->options->identity, c->options->identity) == 0;
    if (old->size == c->size && (!same || old->comm->users > 1)) continue;
    g->origin[i].native = old->comm->native;
    g->origin[i].can = old->size == c->size ? MGRID_KEPT : MGRID_GROWN;
    g->was[i] = old->comm;
    return;
  }
}

/* Return whether the new group is the old group, in the same order, without some members, which are
** lost or have another place now. List the positions of these members. */
static bool remains(const mgrid_grown *what, const mgrid_group *old, const mgrid_shared *c,
                    mgrid_origin *o) {
  int64_t at = 0;
  o->nlost = 0;
  for (int64_t p = 0; p < old->size; p++) {
    if (at < c->size && what->now[mgrid_group_at(old, p)] == c->ranks[at])
      at++;
    else if (o->nlost < old->size - c->size)
      o->lost[o->nlost++] = (int)p;
    else
      return false;
  }
  return at == c->size;
}

/* Find the communicator that this rank had for entry i of the batch, if it can be shrunk. */
static mgrid_status find_larger(mgrid_growing *g, size_t i, const char *family,
                                const mgrid_shared *c, mgrid_error *err) {
  const mgrid_group *old;
  mgrid_origin *o = &g->origin[i];
  for (size_t nth = 0; (old = mgrid_state_group_nth(g->what.from, family, nth, NULL)); nth++) {
    if (!mgrid_group_native(old) || !old->comm->backend->shrinks || old->size <= c->size) continue;
    if (strcmp(old->comm->options->identity, c->options->identity) != 0) continue;
    free(o->lost);
    o->lost = malloc((size_t)(old->size - c->size) * sizeof *o->lost);
    if (!o->lost) return mgrid_oom(err);
    if (!remains(&g->what, old, c, o)) continue;
    o->native = old->comm->native, o->can = MGRID_SHRUNK;
    return MGRID_OK;
  }
  return MGRID_OK;
}

/* Return whether the plan has families with a parent. */
static bool has_parents(const mgrid_plan *p) {
  bool any = false;
  for (size_t i = 0; i < p->content.nentries; i++)
    any |= *p->content.entry[i].choice->asked.parent != '\0';
  return any;
}

mgrid_status mgrid_growing_new(const mgrid_grown *grown, const mgrid_state *s, mgrid_growing **out,
                               mgrid_error *err) {
  mgrid_growing *g = *out = calloc(1, sizeof *g);
  mgrid_status status = MGRID_OK;
  if (!g) return mgrid_oom(err);
  g->what = *grown, g->n = s->batch.n;
  g->origin = calloc(g->n + 1, sizeof *g->origin);
  g->was = calloc(g->n + 1, sizeof(mgrid_shared *));
  if (!g->origin || !g->was) return mgrid_oom(err);
  bool looks = grown->from && !s->backend->whole && !(grown->now && has_parents(s->plan));
  for (size_t i = 0; looks && i < g->n; i++)
    for (size_t k = 0; k < s->view.ncomms && !status; k++) {
      if (s->comm[k] != s->batch.entry[i] || !s->comm[k]->ranks) continue;
      const char *family = s->plan->content.entry[s->view.comm[k].entry].name;
      if (grown->now)
        status = find_larger(g, i, family, s->comm[k], err);
      else
        find_origin(g, i, family, s->comm[k]);
    }
  return status;
}

void mgrid_growing_free(mgrid_growing *g) {
  if (!g) return;
  for (size_t i = 0; g->origin && i < g->n; i++) free(g->origin[i].lost);
  free(g->origin);
  free(g->was);
  free(g);
}

/* -------------------------------------------------------------------------- create */

/* Move the entries whose groups agreed on `how` to index `at` and the next indices of the batch, in
** schedule order. Return the index after them. */
static size_t sort_batch(mgrid_batch *batch, mgrid_growing *g, mgrid_growth how, size_t at) {
  for (size_t i = at; i < batch->n; i++) {
    if (g->origin[i].agreed != how) continue;
    mgrid_shared *entry = batch->entry[i], *was = g->was[i];
    void *native = batch->native[i];
    mgrid_comm_spec spec = batch->spec[i];
    mgrid_origin origin = g->origin[i];
    size_t before = i - at;
    memmove(&batch->entry[at + 1], &batch->entry[at], before * sizeof(mgrid_shared *));
    memmove(&batch->spec[at + 1], &batch->spec[at], before * sizeof spec);
    memmove(&batch->native[at + 1], &batch->native[at], before * sizeof native);
    memmove(&g->origin[at + 1], &g->origin[at], before * sizeof origin);
    memmove(&g->was[at + 1], &g->was[at], before * sizeof(mgrid_shared *));
    batch->entry[at] = entry, batch->spec[at] = spec, batch->native[at] = native;
    g->origin[at] = origin, g->was[at] = was;
    at++;
  }
  return at;
}

/* Find out whether any rank failed. The verdict after the creation will report that rank's
** error. */
static mgrid_outcome all_of(mgrid_backend *b, mgrid_outcome mine) {
  mgrid_error told = MGRID_ERROR_INIT;
  mgrid_status s = mgrid_verdict(b, mine, NULL, &told);
  mgrid_error_clear(&told);
  return mine ? mine : s ? MGRID_GAVE_UP : MGRID_OK;
}

/* Shrink what can be shrunk, and create the rest. */
static mgrid_outcome remake(mgrid_backend *b, mgrid_batch *batch, mgrid_growing *g,
                            mgrid_error *err) {
  mgrid_outcome s = MGRID_OK;
  if (b->ops->remake && !b->whole) {
    b->ops->remake(b, batch->n, batch->spec, g->origin, batch->native);
    s = all_of(b, MGRID_OK);
  }
  if (!s) {
    size_t anew = sort_batch(batch, g, MGRID_ANEW, 0);
    s = b->ops->create(b, anew, batch->spec, batch->native, err);
  }
  return mgrid_batch_keep(batch, batch->n, s);
}

/* Every rank makes the same calls over all ranks here, whether it failed or not. */
mgrid_outcome mgrid_pool_grow(mgrid_backend *b, mgrid_batch *batch, mgrid_growing *g,
                              mgrid_error *err) {
  bool votes = b->ops->growth && !b->whole;
  mgrid_outcome s = MGRID_OK;
  mgrid_pool_count(b);
  if (g->what.now) return remake(b, batch, g, err);
  if (votes) s = all_of(b, b->ops->growth(b, batch->n, batch->spec, g->origin, err));
  if (s) return s;
  size_t anew = sort_batch(batch, g, MGRID_ANEW, 0),
         grown = sort_batch(batch, g, MGRID_GROWN, anew);
  s = b->ops->create(b, anew, batch->spec, batch->native, err);
  if (votes) s = all_of(b, s);
  for (size_t i = anew; i < grown && !s; i++)
    s = b->ops->grow(b, &batch->spec[i], &g->origin[i], &batch->native[i], err);
  return mgrid_batch_keep(batch, grown, s);
}

void mgrid_growing_end(mgrid_state *s, mgrid_growing *g) {
  static const char *const how[] = { "created again", "by ncclCommShrink", "grown by ncclCommGrow",
                                     "kept" };
  mgrid_backend *b = s->backend;
  for (size_t i = 0; i < s->batch.n; i++) {
    mgrid_shared *c = s->batch.entry[i];
    if (!c) continue;
    if (g->origin[i].agreed == MGRID_KEPT && g->was[i]) {
      c->native = g->origin[i].native, c->real = true;
      g->was[i]->native = NULL, g->was[i]->real = false;
      b->ops->adopt(b, g->what.from->backend, c->native);
    }
    mgrid_log(&b->hooks, MGRID_LOG_INFO, "%s: %" PRId64 " ranks, %s%s%s", c->name, c->size,
              how[g->origin[i].agreed], *g->origin[i].why ? ", because " : "", g->origin[i].why);
  }
}
