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

static mgrid_status dry_allreduce(mgrid_backend *b, uint64_t *words, size_t n, mgrid_error *err) {
  (void)b, (void)words, (void)n, (void)err; /* the minimum over one */
  return MGRID_OK;
}

static mgrid_status dry_allgather(mgrid_backend *b, const void *mine, void *all, size_t bytes, mgrid_error *err) {
  (void)err;
  for (int64_t r = 0; r < b->world; r++) memcpy((char *)all + (size_t)r * bytes, mine, bytes);
  return MGRID_OK;
}

static mgrid_status dry_bcast(mgrid_backend *b, void *data, size_t bytes, int64_t root, mgrid_error *err) {
  (void)b, (void)data, (void)bytes, (void)root, (void)err;
  return MGRID_OK;
}

static mgrid_status dry_create(mgrid_backend *b, size_t n, const mgrid_comm_spec *spec, void **native,
                               mgrid_error *err) {
  (void)b, (void)n, (void)spec, (void)native, (void)err;
  return MGRID_OK;
}

static void dry_destroy(mgrid_backend *b, size_t n, void **native) { (void)b, (void)n, (void)native; }

static mgrid_status dry_check(mgrid_backend *b, size_t n, const mgrid_comm_spec *spec, mgrid_error *err) {
  (void)b, (void)n, (void)spec, (void)err; /* whatever the families ask for, none of it is made */
  return MGRID_OK;
}

static mgrid_status dry_prove(mgrid_backend *b, const mgrid_comm_spec *spec, void *native, mgrid_error *err) {
  (void)b, (void)native;
  return mgrid_fail(err, MGRID_BACKEND, "%s: a dry state has no communicators to prove", spec->name);
}

static void dry_close(mgrid_backend *b) { free(b); }

mgrid_backend *mgrid_backend_dry(int64_t world, int64_t rank, mgrid_error *err) {
  static const mgrid_backend_ops ops = {
    .name = "dry",
    .allreduce_min = dry_allreduce,
    .allgather = dry_allgather,
    .bcast = dry_bcast,
    .check = dry_check,
    .create = dry_create,
    .destroy = dry_destroy,
    .prove = dry_prove,
    .close = dry_close,
  };
  if (world < 1 || world > MGRID_WORLD_MAX || rank < 0 || rank >= world)
    return mgrid_null(err, MGRID_USAGE, "rank %" PRId64 " is out of range in a world of %" PRId64, rank, world);
  mgrid_backend *b = calloc(1, sizeof *b);
  if (!b) return mgrid_null_oom(err);
  *b = (mgrid_backend){ .ops = &ops, .rank = rank, .world = world, .users = 1 };
  b->place = (mgrid_place){ 1, 0, world, rank, 0, 0 }; /* the whole job is here */
  return b;
}

/* -------------------------------------------------------- every rank, rehearsed */

mgrid_status mgrid_script_of(mgrid_script *s, const mgrid_plan *p, mgrid_error *err) {
  int64_t world = mgrid_plan_world(p);
  size_t  room = 0, n = 0;
  memset(s, 0, sizeof *s);
  s->world = world;
  s->start = malloc((size_t)(world + 1) * sizeof *s->start);
  if (!s->start) return mgrid_oom(err);
  s->start[0] = 0;
  for (int64_t r = 0; r < world; r++) {
    mgrid_view   v;
    mgrid_status status = mgrid_view_init(&v, p, r, err);
    if (!status && n + v.ncomms > room) {
      room = 2 * (n + v.ncomms);
      mgrid_creation *more = realloc(s->step, room * sizeof *more);
      if (more)
        s->step = more;
      else
        status = mgrid_oom(err);
    }
    if (!status && v.ncomms) memcpy(s->step + n, v.comm, v.ncomms * sizeof *v.comm);
    n += status ? 0 : v.ncomms;
    mgrid_view_free(&v);
    if (status) return status;
    s->start[r + 1] = (int64_t)n;
  }
  return MGRID_OK;
}

void mgrid_script_free(mgrid_script *s) {
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

static mgrid_status stuck(const hall *h, const mgrid_script *s, const mgrid_plan *p, int64_t rank, mgrid_error *err) {
  const mgrid_creation *c = &s->step[h->at[rank]];
  const mgrid_entry    *e = &p->content.entry[c->entry];
  int64_t               absent = -1;
  for (int64_t i = 0; i < c->size && absent < 0; i++) {
    int64_t other = mgrid_family_rank(e->family, c->group, i);
    bool    there = h->at[other] < s->start[other + 1] && s->step[h->at[other]].entry == c->entry
                 && s->step[h->at[other]].group == c->group;
    if (!there) absent = other;
  }
  return mgrid_fail(err, MGRID_BACKEND,
                    "rank %" PRId64 " would wait for ever in %s[%" PRId64 "]: %d of %" PRId64
                    " members came, rank %" PRId64 " does not",
                    rank, e->name, c->group, h->arrived[h->base[c->entry] + c->group], c->size, absent);
}

/* A rank that may walk reaches its next group; the last member to arrive frees them all. */
static mgrid_status walk(hall *h, const mgrid_script *s, const mgrid_plan *p, mgrid_rehearsal *out, mgrid_error *err) {
  while (h->nready > 0) {
    int64_t rank = h->ready[--h->nready];
    if (h->at[rank] == s->start[rank + 1]) continue;
    const mgrid_creation *c = &s->step[h->at[rank]];
    const mgrid_family   *f = p->content.entry[c->entry].family;
    if (mgrid_family_rank(f, c->group, c->position) != rank || mgrid_family_size(f, c->group) != c->size)
      return mgrid_fail(err, MGRID_BACKEND,
                        "rank %" PRId64 " goes to %s[%" PRId64 "] as %" PRId64 " of %" PRId64 ", where it is not", rank,
                        p->content.entry[c->entry].name, c->group, c->position, c->size);
    out->memberships++;
    if (++h->arrived[h->base[c->entry] + c->group] < c->size) continue;
    out->communicators++;
    h->arrived[h->base[c->entry] + c->group] = 0;
    for (int64_t i = 0; i < c->size; i++) {
      int64_t member = mgrid_family_rank(f, c->group, i);
      h->at[member]++;
      h->ready[h->nready++] = member;
    }
  }
  return MGRID_OK;
}

mgrid_status mgrid_script_play(const mgrid_script *s, const mgrid_plan *p, mgrid_rehearsal *out, mgrid_error *err) {
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
  mgrid_status status = h.base && h.arrived && h.at && h.ready ? MGRID_OK : mgrid_oom(err);
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

mgrid_status mgrid_plan_rehearse(const mgrid_plan *p, mgrid_rehearsal *out, mgrid_error *err) {
  if (!p) return MGRID_USAGE;
  mgrid_script    script;
  mgrid_rehearsal unused;
  mgrid_status    s = mgrid_script_of(&script, p, err);
  if (!s) s = mgrid_script_play(&script, p, out ? out : &unused, err);
  mgrid_script_free(&script);
  return s;
}
