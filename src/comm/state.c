/* SPDX-License-Identifier: MIT
**
** state.c - a plan made real: agree, create in schedule order, all or nothing; destroy in
** the opposite order.
*/
#include "comm/state.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

const char *mg_backend_name(const mg_backend *b) { return b->ops->name; }
int64_t     mg_backend_rank(const mg_backend *b) { return b->rank; }
int64_t     mg_backend_world(const mg_backend *b) { return b->world; }

void mg_backend_free(mg_backend *b) {
  if (!b || --b->users > 0) return;
  while (b->abandoned) { /* each of them counts as a user while it is freed */
    mg_state *s = b->abandoned;
    b->abandoned = s->next;
    b->users += 2;
    mg_state_free(s);
    b->users--;
  }
  b->ops->close(b);
}

void mg_state_abandon(mg_state *s) {
  mg_backend *b = s->backend;
  s->next = b->abandoned;
  b->abandoned = s;
  mg_backend_free(b);
}

static bool is_lazy(const mg_state *s, size_t comm) {
  return s->plan->content.entry[s->view.comm[comm].entry].choice.lazy;
}

/* Where a creation is a call over all ranks, each rank goes through every family and round of the
** job that has anything to create: its own communicator there, or that of others. */
static size_t batch_room(const mg_state *s) {
  size_t n = s->view.ncomms;
  for (size_t i = 0; s->backend->whole && i < s->plan->content.nentries; i++)
    n += (size_t)mg_family_rounds(s->plan->content.entry[i].family);
  return n;
}

static void name_all(mg_state *s) {
  const mg_plan *p = s->plan;
  for (size_t k = 0; k < p->content.nentries; k++) {
    int     entry = p->order[k];
    int64_t rounds = mg_family_rounds(p->content.entry[entry].family);
    for (int64_t r = 0; r < rounds; r++) {
      size_t i = 0;
      if (mg_plan_led(p, entry, rounds > 1 ? r : -1) == 0) continue;
      while (i < s->view.ncomms && (s->view.comm[i].entry != entry || s->view.comm[i].round != r)) i++;
      const char *wanted = p->content.entry[entry].choice.backend; /* what another backend makes is its members' alone */
      if (i < s->view.ncomms)
        mg_batch_add(&s->batch, s->comm[i]);
      else if (!*wanted || strcmp(wanted, s->backend->ops->name) == 0)
        mg_batch_add_absent(&s->batch, p->content.entry[entry].name, s->backend->ops->name);
    }
  }
}

mg_status mg_state_prepare(mg_state *s, const mg_plan *plan, mg_backend *b, const char *name, mg_error *err) {
  mg_status status = mg_view_init(&s->view, plan, b->rank, err);
  if (status) return status;
  s->plan = mg_plan_ref(plan);
  s->backend = b;
  b->users++;
  s->comm = calloc(s->view.ncomms + 1, sizeof *s->comm);
  s->group = calloc(s->view.nmembers + 1, sizeof *s->group);
  s->first = calloc(plan->content.nentries + 2, sizeof *s->first);
  if (!s->comm || !s->group || !s->first) return mg_oom(err);
  if ((status = mg_batch_init(&s->batch, batch_room(s), err))) return status;
  for (size_t i = 0; i < s->view.ncomms; i++)
    if (!(s->comm[i] = mg_pool_take(b, plan, &s->view.comm[i], name, err))) return MG_LIMIT;
  for (size_t i = 0; i < s->view.nmembers; i++) {
    const mg_member *m = &s->view.member[i];
    const mg_entry  *e = &s->plan->content.entry[m->entry];
    s->group[i] = (mg_group){ s,           e->name, e->family, m->group, m->position, m->size,
                              m->comm < 0 ? NULL : s->comm[m->comm] };
    s->first[m->entry + 1]++;
  }
  for (size_t i = 0; i < plan->content.nentries; i++) s->first[i + 1] += s->first[i];
  if (b->whole)
    name_all(s);
  else
    for (size_t i = 0; i < s->view.ncomms; i++)
      if (!is_lazy(s, i)) mg_batch_add(&s->batch, s->comm[i]);
  return mg_pool_check(b, &s->batch, err);
}

void mg_state_free(mg_state *s) {
  if (!s) return;
  if (s->comm) mg_pool_release(s->backend, s->view.ncomms, s->comm, &s->batch);
  mg_backend_free(s->backend);
  mg_batch_free(&s->batch);
  mg_view_free(&s->view);
  mg_plan_free(s->plan);
  free(s->comm);
  free(s->group);
  free(s->first);
  free(s);
}

static mg_status first_of(mg_status a, mg_status b) { return a ? a : b; }

/* Create the batch on all ranks, or on none. */
static mg_status create(mg_state *s, mg_seat *seats, mg_error *err) {
  mg_status status = mg_pool_create(s->backend, &s->batch, err);
  status = mg_seats_verdict(s->backend, seats, status, err, err);
  if (status) mg_pool_undo(s->backend, &s->batch);
  s->batch.n = 0;
  return status;
}

mg_state *mg_materialize(const mg_plan *plan, mg_backend *b, const char *name, mg_error *err) {
  mg_error mine = { 0 };
  if (!b) return NULL;
  if (!plan && err) mine = *err; /* why there is none: the other ranks are told */
  bool      fits = plan && mg_plan_world(plan) == b->world; /* agree tells when not */
  for (size_t i = 0; plan && i < plan->content.nentries; i++) { /* the same on all ranks, whatever they are in */
    double longest = (double)plan->content.entry[i].choice.timeout_us / 1e6;
    if (longest > b->longest) b->longest = longest;
  }
  mg_state *s = calloc(1, sizeof *s);
  mg_seat  *seats = NULL;
  mg_status status = !s && plan ? mg_oom(&mine) : s && fits ? mg_state_prepare(s, plan, b, name ? name : "", &mine) : MG_OK;
  if (!status) status = mg_seats_new(b, &seats, &mine);
  /* From here on every rank goes through the same collectives, whatever happened to it. */
  status = mg_agree(b, status ? NULL : plan, &mine, &mine);
  if (!status) status = create(s, seats, &mine);
  free(seats);
  if (!status) return s;
  mg_state_free(s);
  if (err) *err = mine;
  return NULL;
}

mg_status mg_state_unknown(const mg_state *s, const char *family, mg_error *err) {
  const mg_content *c = &s->plan->content;
  const char      **known = malloc((c->nentries + 1) * sizeof *known);
  char              tail[512] = "";
  for (size_t i = 0; known && i < c->nentries; i++) known[i] = c->entry[i].name;
  if (known) mg_suggest(tail, sizeof tail, family, known, c->nentries);
  free(known);
  return mg_fail(err, MG_USAGE, "unknown family '%s'%s", family, tail);
}

mg_status mg_state_create(mg_state *s, const char *family, mg_error *err) {
  if (!s) return MG_USAGE;
  mg_error  mine = { 0 };
  int       entry = mg_plan_find(s->plan, family);
  mg_status status = entry < 0 ? mg_state_unknown(s, family, &mine) : MG_OK;
  s->batch.n = 0;
  for (size_t c = 0; c < s->view.ncomms && entry >= 0; c++) { /* in schedule order */
    bool wanted = false;
    for (size_t i = 0; i < s->view.nmembers; i++)
      wanted |= s->view.member[i].entry == entry && s->view.member[i].comm == (int)c;
    if (wanted) mg_batch_add(&s->batch, s->comm[c]);
  }
  /* what cannot be made here is told before anybody begins */
  if (!status) status = mg_pool_check(s->backend, &s->batch, &mine);
  status = mg_verdict(s->backend, status, &mine, &mine);
  if (!status) status = create(s, NULL, &mine);
  s->batch.n = 0;
  if (status && err) *err = mine;
  return status;
}

mg_status mg_state_prove(mg_state *s, int64_t *proved, mg_error *err) {
  if (!s) return MG_USAGE;
  mg_error  mine = { 0 };
  mg_status status = MG_OK;
  int64_t   n = 0;
  for (size_t i = 0; i < s->view.ncomms; i++) {
    if (!s->comm[i]->real || !s->comm[i]->native) continue; /* lazy, or a dry state */
    status = first_of(status, mg_pool_prove(s->backend, s->comm[i], status ? NULL : &mine));
    n++;
  }
  status = mg_verdict(s->backend, status, &mine, &mine);
  if (status && err) *err = mine;
  if (proved) *proved = n;
  return status;
}

/* --------------------------------------------------------------- questions */

const mg_plan *mg_state_plan(const mg_state *s) { return s->plan; }
int64_t        mg_state_rank(const mg_state *s) { return s->view.rank; }
size_t         mg_state_ngroups(const mg_state *s) { return s->view.nmembers; }

size_t mg_state_ncomms(const mg_state *s) {
  size_t n = 0;
  for (size_t i = 0; i < s->view.ncomms; i++) n += s->comm[i]->real;
  return n;
}

const mg_group *mg_state_group_nth(const mg_state *s, const char *family, size_t nth, mg_error *err) {
  if (!s) return NULL;
  int entry = mg_plan_find(s->plan, family);
  if (entry < 0) {
    mg_state_unknown(s, family, err);
    return NULL;
  }
  if (err) err->status = MG_OK;
  return nth < s->first[entry + 1] - s->first[entry] ? &s->group[s->first[entry] + nth] : NULL;
}

const mg_group *mg_state_group(const mg_state *s, const char *family, mg_error *err) {
  return mg_state_group_nth(s, family, 0, err);
}

int64_t mg_state_coord(const mg_state *s, const char *grid, const char *dim, mg_error *err) {
  if (!s) return -1;
  const mg_grid *g = mg_plan_grid(s->plan, grid);
  int            d = g ? mg_grid_find(g, dim) : -1;
  if (d < 0) {
    const mg_content *c = &s->plan->content;
    const char       *known[MG_DIMS_MAX];
    char              tail[512];
    size_t            n = 0, all = g ? g->n : c->ngrids;
    for (; n < all && n < MG_DIMS_MAX; n++) known[n] = g ? g->axis[n].name : c->grid[n].name;
    mg_suggest(tail, sizeof tail, g ? dim : grid, known, n);
    mg_fail(err, MG_USAGE, "unknown %s '%s'%s", g ? "dim" : "grid", g ? dim : grid, tail);
    return -1;
  }
  if (err) err->status = MG_OK;
  return mg_grid_coord(g, s->view.rank, (size_t)d);
}

const char *mg_group_family(const mg_group *g) { return g->name; }
int64_t     mg_group_rank(const mg_group *g) { return g->position; }
int64_t     mg_group_size(const mg_group *g) { return g->size; }
int64_t     mg_group_index(const mg_group *g) { return g->index; }

int64_t mg_group_at(const mg_group *g, int64_t position) {
  return mg_family_rank(g->family, g->index, position);
}

int64_t mg_group_first(const mg_group *g) { return mg_group_at(g, 0); }
int64_t mg_group_last(const mg_group *g) { return mg_group_at(g, g->size - 1); }

int64_t mg_group_next(const mg_group *g, bool wrap) {
  int64_t at = g->position + 1;
  return at < g->size ? mg_group_at(g, at) : wrap ? mg_group_at(g, 0) : -1;
}

int64_t mg_group_prev(const mg_group *g, bool wrap) {
  int64_t at = g->position - 1;
  return at >= 0 ? mg_group_at(g, at) : wrap ? mg_group_at(g, g->size - 1) : -1;
}

int64_t mg_group_position(const mg_group *g, int64_t rank) {
  int64_t group, position;
  for (int64_t nth = 0; mg_family_locate(g->family, rank, nth, &group, &position); nth++)
    if (group == g->index) return position;
  return -1;
}

void mg_group_ranks(const mg_group *g, int32_t *out) { mg_family_members(g->family, g->index, out); }

void *mg_group_native(const mg_group *g) { return g->comm && g->comm->real ? g->comm->native : NULL; }

const char *mg_group_backend(const mg_group *g) { return g->comm ? g->comm->backend : ""; }

const char *mg_group_kind(const mg_group *g) { return g->comm ? g->comm->backend : g->state->backend->ops->name; }

mg_status mg_group_work(const mg_group *g, const mg_work *w, mg_error *err) {
  mg_backend *b = g->state->backend;
  if (!b->ops->collective) return mg_fail(err, MG_USAGE, "%s: a %s state has no communicators", g->name, b->ops->name);
  if (g->comm && !g->comm->real)
    return mg_fail(err, MG_USAGE, "%s is lazy, and its communicator not created yet (mg_state_create)", g->name);
  if (g->comm) return mg_pool_work(b, g->comm, w, err);
  const mg_comm_spec alone = { .name = g->name, .backend = b->ops->name, .nccl = "", .size = 1 };
  return b->ops->collective(b, &alone, NULL, w, err);
}
