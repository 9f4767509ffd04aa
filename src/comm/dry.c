/* SPDX-License-Identifier: MIT
**
** dry.c - no communicators at all: one process is one rank of a world that does not exist,
** or plays every rank of it to see that the schedule fits together.
*/
#include "comm/state.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------- one rank, dry */

static mg_status dry_allreduce(mg_backend *b, uint64_t *words, size_t n, mg_error *err) {
  (void)b, (void)words, (void)n, (void)err; /* the minimum over one */
  return MG_OK;
}

static mg_status dry_allgather(mg_backend *b, const void *mine, void *all, size_t bytes, mg_error *err) {
  (void)err;
  for (int64_t r = 0; r < b->world; r++) memcpy((char *)all + (size_t)r * bytes, mine, bytes);
  return MG_OK;
}

static mg_status dry_bcast(mg_backend *b, void *data, size_t bytes, int64_t root, mg_error *err) {
  (void)b, (void)data, (void)bytes, (void)root, (void)err;
  return MG_OK;
}

static mg_status dry_create(mg_backend *b, size_t n, const mg_comm_spec *spec, void **native, mg_error *err) {
  (void)b, (void)n, (void)spec, (void)native, (void)err;
  return MG_OK;
}

static void dry_destroy(mg_backend *b, size_t n, void **native) { (void)b, (void)n, (void)native; }

static mg_status dry_check(mg_backend *b, size_t n, const mg_comm_spec *spec, mg_error *err) {
  (void)b, (void)n, (void)spec, (void)err; /* whatever the families ask for, none of it is made */
  return MG_OK;
}

static mg_status dry_prove(mg_backend *b, const mg_comm_spec *spec, void *native, mg_error *err) {
  (void)b, (void)native;
  return mg_fail(err, MG_BACKEND, "%s: a dry state has no communicators to prove", spec->name);
}

static void dry_close(mg_backend *b) { free(b); }

mg_backend *mg_backend_dry(int64_t world, int64_t rank, mg_error *err) {
  static const mg_backend_ops ops = {
    .name = "dry", .allreduce_min = dry_allreduce, .allgather = dry_allgather, .bcast = dry_bcast,
    .check = dry_check, .create = dry_create, .destroy = dry_destroy, .prove = dry_prove, .close = dry_close,
  };
  if (world < 1 || world > MG_WORLD_MAX || rank < 0 || rank >= world)
    return mg_null(err, MG_USAGE, "rank %" PRId64 " is out of range in a world of %" PRId64, rank, world);
  mg_backend *b = calloc(1, sizeof *b);
  if (!b) return mg_null_oom(err);
  *b = (mg_backend){ .ops = &ops, .rank = rank, .world = world, .users = 1 };
  b->place = (mg_place){ 1, 0, world, rank, 0, 0 }; /* the whole job is here */
  return b;
}

/* -------------------------------------------------------- every rank, rehearsed */

mg_status mg_script_of(mg_script *s, const mg_plan *p, mg_error *err) {
  int64_t world = mg_plan_world(p);
  size_t  room = 0, n = 0;
  memset(s, 0, sizeof *s);
  s->world = world;
  s->start = malloc((size_t)(world + 1) * sizeof *s->start);
  if (!s->start) return mg_oom(err);
  s->start[0] = 0;
  for (int64_t r = 0; r < world; r++) {
    mg_view   v;
    mg_status status = mg_view_init(&v, p, r, err);
    if (!status && n + v.ncomms > room) {
      room = 2 * (n + v.ncomms);
      mg_creation *more = realloc(s->step, room * sizeof *more);
      if (more)
        s->step = more;
      else
        status = mg_oom(err);
    }
    if (!status && v.ncomms) memcpy(s->step + n, v.comm, v.ncomms * sizeof *v.comm);
    n += status ? 0 : v.ncomms;
    mg_view_free(&v);
    if (status) return status;
    s->start[r + 1] = (int64_t)n;
  }
  return MG_OK;
}

void mg_script_free(mg_script *s) {
  free(s->start);
  free(s->step);
  memset(s, 0, sizeof *s);
}

/* All groups of the plan numbered through: base[entry] + group. */
typedef struct hall {
  int64_t *base;
  int32_t *arrived; /* how many members wait at each group */
  int64_t *at;      /* [world]: the step at which a rank is */
  int64_t *ready;   /* ranks that may walk on: a stack */
  int64_t  nready;
} hall;

static mg_status stuck(const hall *h, const mg_script *s, const mg_plan *p, int64_t rank, mg_error *err) {
  const mg_creation *c = &s->step[h->at[rank]];
  const mg_entry    *e = &p->content.entry[c->entry];
  int64_t            absent = -1;
  for (int64_t i = 0; i < c->size && absent < 0; i++) {
    int64_t other = mg_family_rank(e->family, c->group, i);
    bool    there = h->at[other] < s->start[other + 1] && s->step[h->at[other]].entry == c->entry &&
                 s->step[h->at[other]].group == c->group;
    if (!there) absent = other;
  }
  return mg_fail(err, MG_BACKEND, "rank %" PRId64 " would wait for ever in %s[%" PRId64 "]: %d of %" PRId64
                 " members came, rank %" PRId64 " does not",
                 rank, e->name, c->group, h->arrived[h->base[c->entry] + c->group], c->size, absent);
}

/* A rank that may walk reaches its next group; the last member to arrive frees them all. */
static mg_status walk(hall *h, const mg_script *s, const mg_plan *p, mg_rehearsal *out, mg_error *err) {
  while (h->nready > 0) {
    int64_t rank = h->ready[--h->nready];
    if (h->at[rank] == s->start[rank + 1]) continue;
    const mg_creation *c = &s->step[h->at[rank]];
    const mg_family   *f = p->content.entry[c->entry].family;
    if (mg_family_rank(f, c->group, c->position) != rank || mg_family_size(f, c->group) != c->size)
      return mg_fail(err, MG_BACKEND, "rank %" PRId64 " goes to %s[%" PRId64 "] as %" PRId64
                     " of %" PRId64 ", where it is not",
                     rank, p->content.entry[c->entry].name, c->group, c->position, c->size);
    out->memberships++;
    if (++h->arrived[h->base[c->entry] + c->group] < c->size) continue;
    out->communicators++;
    h->arrived[h->base[c->entry] + c->group] = 0;
    for (int64_t i = 0; i < c->size; i++) {
      int64_t member = mg_family_rank(f, c->group, i);
      h->at[member]++;
      h->ready[h->nready++] = member;
    }
  }
  return MG_OK;
}

mg_status mg_script_play(const mg_script *s, const mg_plan *p, mg_rehearsal *out, mg_error *err) {
  hall    h = { 0 };
  int64_t groups = 0;
  memset(out, 0, sizeof *out);
  h.base = malloc((p->content.nentries + 1) * sizeof *h.base);
  for (size_t i = 0; h.base && i < p->content.nentries; i++) {
    h.base[i] = groups;
    groups += p->content.entry[i].family->count;
  }
  h.arrived = calloc((size_t)groups + 1, sizeof *h.arrived);
  h.at = malloc((size_t)s->world * sizeof *h.at);
  h.ready = malloc((size_t)s->world * sizeof *h.ready);
  mg_status status = h.base && h.arrived && h.at && h.ready ? MG_OK : mg_oom(err);
  for (int64_t r = 0; r < s->world && !status; r++) {
    int64_t n = s->start[r + 1] - s->start[r];
    if (n > out->most_per_rank) out->most_per_rank = n;
    h.at[r] = s->start[r];
    h.ready[h.nready++] = r;
  }
  if (!status) status = walk(&h, s, p, out, err);
  for (int64_t r = 0; r < s->world && !status; r++)
    if (h.at[r] < s->start[r + 1]) status = stuck(&h, s, p, r, err);
  free(h.base);
  free(h.arrived);
  free(h.at);
  free(h.ready);
  return status;
}

mg_status mg_plan_rehearse(const mg_plan *p, mg_rehearsal *out, mg_error *err) {
  if (!p) return MG_USAGE;
  mg_script    script;
  mg_rehearsal unused;
  mg_status    s = mg_script_of(&script, p, err);
  if (!s) s = mg_script_play(&script, p, out ? out : &unused, err);
  mg_script_free(&script);
  return s;
}
