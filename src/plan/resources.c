/* SPDX-License-Identifier: MIT
**
** resources.c - what the NCCL communicators of a plan take from a rank's GPU, its process and its machine. All ranks of
** a machine are checked to find which members of a group are on it.
*/
#include "plan/plan.h"

#include <inttypes.h>
#include <stdlib.h>

/* Worlds of up to WHOLE ranks are checked completely; of larger ones the first machine, one in the middle, and the
** last. */
enum { WHOLE = 4096 };

/* A communicator on one rank. */
typedef struct use {
  int     entry;
  int64_t group, size, rank;
} use;

typedef struct machine {
  int64_t          first, ranks;
  size_t           n, room;
  use             *uses;  /* [n] */
  mgrid_resources *taken; /* [ranks] */
} machine;

static int by_group(const void *a, const void *b) {
  const use *x = a, *y = b;
  if (x->entry != y->entry) return x->entry < y->entry ? -1 : 1;
  return (x->group > y->group) - (x->group < y->group);
}

static int64_t larger(int64_t a, int64_t b) { return a > b ? a : b; }

/* Return the thread blocks of the largest communicator that a family uses on this rank. */
static int64_t blocks_of(const mgrid_plan *p, const mgrid_view *v, const char *family, const mgrid_site *site) {
  int     entry = mgrid_content_find(&p->content, family);
  int64_t most = 0;
  for (size_t i = 0; i < v->nmembers; i++) {
    mgrid_demand d;
    if (v->member[i].entry != entry || v->member[i].comm < 0) continue;
    mgrid_entry_demand(&p->content.entry[entry], v->member[i].size, 1, site, &d);
    most = larger(most, d.blocks);
  }
  return most;
}

/* Inspect one rank: its communicators, and the thread blocks that may be on its GPU at once: those of a list of
** concurrent families, or of one communicator. */
static mgrid_status look(machine *m, const mgrid_plan *p, int64_t rank, const mgrid_site *site, mgrid_error *err) {
  mgrid_view       v;
  mgrid_demand     d;
  mgrid_resources *taken = &m->taken[rank - m->first];
  mgrid_status     s = mgrid_view_init(&v, p, rank, err);
  if (s) return s;
  if (!MGRID_ROOM(m->uses, m->room, m->n + v.ncomms)) {
    mgrid_view_free(&v);
    return mgrid_oom(err);
  }
  for (size_t i = 0; i < v.ncomms; i++) {
    const mgrid_creation *c = &v.comm[i];
    m->uses[m->n++] = (use){ c->entry, c->group, c->size, rank };
    mgrid_entry_demand(&p->content.entry[c->entry], c->size, 1, site, &d);
    taken->blocks = larger(taken->blocks, d.blocks);
  }
  for (size_t i = 0; i < p->content.nconcurrent; i++) {
    int64_t at_once = 0;
    for (size_t k = 0; k < p->content.concurrent[i].n; k++)
      at_once += blocks_of(p, &v, p->content.concurrent[i].name[k], site);
    taken->blocks = larger(taken->blocks, at_once);
  }
  mgrid_view_free(&v);
  return MGRID_OK;
}

static void add(mgrid_resources *r, const mgrid_demand *d) {
  r->communicators += d->created > 0;
  r->created += d->created;
  r->nvls_created += d->nvls_created;
  r->ring += d->ring;
  r->tree += d->tree;
  r->nvls += d->nvls;
  r->p2p += d->p2p;
  r->files += d->files;
}

/* Fill m->taken, for every rank of the machine. */
static mgrid_status scan(machine *m, const mgrid_plan *p, const mgrid_site *site, mgrid_error *err) {
  mgrid_status s = MGRID_OK;
  int64_t      slots = 0;
  m->n = 0;
  for (int64_t i = 0; i < m->ranks && !s; i++) {
    m->taken[i] = (mgrid_resources)MGRID_RESOURCES_INIT;
    s = look(m, p, m->first + i, site, err);
  }
  if (s) return s;
  if (m->n > 1) qsort(m->uses, m->n, sizeof *m->uses, by_group);
  for (size_t first = 0, end; first < m->n; first = end) {
    mgrid_demand d;
    for (end = first + 1; end < m->n && by_group(&m->uses[first], &m->uses[end]) == 0;) end++;
    mgrid_entry_demand(&p->content.entry[m->uses[first].entry], m->uses[first].size, (int64_t)(end - first), site, &d);
    slots += d.multicast;
    for (size_t i = first; i < end; i++) add(&m->taken[m->uses[i].rank - m->first], &d);
  }
  for (int64_t i = 0; i < m->ranks; i++) m->taken[i].nvls_slots = slots;
  return MGRID_OK;
}

const mgrid_resources_row mgrid_resources_rows[] = {
  { "communicators", offsetof(mgrid_resources, communicators) },
  { "created", offsetof(mgrid_resources, created) },
  { "nvls_created", offsetof(mgrid_resources, nvls_created) },
  { "ring", offsetof(mgrid_resources, ring) },
  { "tree", offsetof(mgrid_resources, tree) },
  { "nvls", offsetof(mgrid_resources, nvls) },
  { "p2p", offsetof(mgrid_resources, p2p) },
  { "blocks", offsetof(mgrid_resources, blocks) },
  { "nvls_slots", offsetof(mgrid_resources, nvls_slots) },
  { "files", offsetof(mgrid_resources, files) },
  { NULL, 0 },
};

static void take_larger(mgrid_resources *r, const mgrid_resources *other) {
  for (const mgrid_resources_row *row = mgrid_resources_rows; row->name; row++) {
    int64_t *most = mgrid_resources_number(r, row);
    *most = larger(*most, *mgrid_resources_number(other, row));
  }
}

static void choose_machine(machine *m, const mgrid_plan *p, const mgrid_site *site, int64_t which) {
  int64_t left = p->content.world - which * site->machine_ranks;
  m->first = which * site->machine_ranks;
  m->ranks = left < site->machine_ranks ? left : site->machine_ranks;
}

static mgrid_status of_any(machine *m, const mgrid_plan *p, const mgrid_site *site, mgrid_resources *r,
                           mgrid_error *err) {
  int64_t          machines = (p->content.world - 1) / site->machine_ranks + 1;
  mgrid_gpu_memory bound = MGRID_GPU_MEMORY_INIT;
  mgrid_status     s = MGRID_OK;
  r->sampled = p->content.world > WHOLE && machines > 3;
  for (int64_t i = 0; i < (r->sampled ? 3 : machines) && !s; i++) {
    choose_machine(m, p, site, !r->sampled ? i : i == 0 ? 0 : i == 1 ? machines / 2 : machines - 1);
    s = scan(m, p, site, err);
    for (int64_t k = 0; k < m->ranks && !s; k++) take_larger(r, &m->taken[k]);
  }
  if (r->sampled) { /* these are known for all ranks */
    mgrid_plan_memory_bound(p, site, &bound);
    r->communicators = bound.communicators, r->created = bound.created, r->ring = bound.first_use;
  }
  return s;
}

static mgrid_status check_site(const mgrid_site *site, mgrid_error *err) {
  if (site->machine_ranks < 1 || site->machine_ranks > MGRID_MACHINE_RANKS_MAX)
    return mgrid_fail(err, MGRID_OUT_OF_RANGE, "a machine has 1 to %d ranks, not %" PRId64, MGRID_MACHINE_RANKS_MAX,
                      site->machine_ranks);
  const int64_t low = mgrid_nccl_fields[MGRID_NCCL_MAX_CTAS].low, high = mgrid_nccl_fields[MGRID_NCCL_MAX_CTAS].high;
  const int64_t given[] = { site->min_ctas, site->max_ctas };
  for (int i = 0; i < 2; i++)
    if (given[i] != 0 && (given[i] < low || given[i] > high))
      return mgrid_fail(err, MGRID_OUT_OF_RANGE, "%s_ctas of a site is %" PRId64 " to %" PRId64 ", not %" PRId64,
                        i ? "max" : "min", low, high, given[i]);
  return MGRID_OK;
}

mgrid_status mgrid_plan_resources(const mgrid_plan *p, int64_t rank, const mgrid_site *given, mgrid_resources *out,
                                  mgrid_error *err) {
  if (!p) return MGRID_USAGE;
  mgrid_site      site = MGRID_SITE_INIT;
  mgrid_resources r = MGRID_RESOURCES_INIT;
  mgrid_status    s = mgrid_struct_read(&site, sizeof site, given, "mgrid_site", err);
  if (!s) s = mgrid_struct_check(out, sizeof r, "mgrid_resources", err);
  if (site.machine_ranks == 0) site.machine_ranks = MGRID_SITE_RANKS;
  if (!s) s = check_site(&site, err);
  if (!s && rank >= 0) s = mgrid_check_rank(rank, p->content.world, err);
  if (s) return s;
  machine m = { .taken = malloc((size_t)site.machine_ranks * sizeof *m.taken) };
  s = m.taken ? MGRID_OK : mgrid_oom(err);
  if (!s && rank >= 0) {
    choose_machine(&m, p, &site, rank / site.machine_ranks);
    s = scan(&m, p, &site, err);
    if (!s) r = m.taken[rank - m.first];
  } else if (!s) {
    s = of_any(&m, p, &site, &r, err);
  }
  free(m.uses);
  free(m.taken);
  if (!s) mgrid_struct_write(out, &r, sizeof r);
  return s;
}
