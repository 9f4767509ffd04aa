/* SPDX-License-Identifier: MIT
**
** resources.c - what the NCCL communicators of a plan take from a rank's GPU, its process and its
** node, which this file, as mgrid_site, calls a machine. That depends on how many members of a
** group are on one machine, so all ranks of the machine are looked at.
*/
#include "families/classes.h"
#include "plan/plan.h"

#include <inttypes.h>
#include <stdlib.h>

/* =================================================== GPU memory of all ranks */

/* Return the NCCL fields of a family. The fields that `site` has, from the job's environment,
** override them. */
static mgrid_nccl_values values_at(const mgrid_entry *e, const mgrid_site *site) {
  mgrid_nccl_values v = e->choice->nccl;
  const struct {
    int field;
    int64_t value;
  } set[] = { { MGRID_NCCL_MIN_CTAS, site->min_ctas }, { MGRID_NCCL_MAX_CTAS, site->max_ctas } };
  for (int i = 0; i < 2; i++)
    if (set[i].value) v.given[set[i].field] = true, v.number[set[i].field] = set[i].value;
  return v;
}

/* Any backend may make a family whose options name no backend. So compute the demand of each
** backend, and take the one with the most memory. */
void mgrid_entry_demand(const mgrid_entry *e, int64_t size, int64_t local, const mgrid_site *site,
                        mgrid_demand *out) {
  const mgrid_nccl_values v = values_at(e, site);
  *out = (mgrid_demand){ 0 };
  for (const mgrid_descriptor *d = mgrid_backends; d->name && size >= 2; d++) {
    mgrid_demand one = { 0 };
    if (!d->demand || (e->choice->backend && e->choice->backend != d)) continue;
    d->demand(&v, size, local, !site->no_nvls, &one);
    if (one.created + one.ring > out->created + out->ring) *out = one;
  }
}

static void add_memory(const mgrid_entry *e, int64_t size, int64_t times, const mgrid_site *site,
                       mgrid_gpu_memory *out) {
  mgrid_demand d;
  /* the fields used here are the same wherever the ranks are */
  mgrid_entry_demand(e, size, 1, site, &d);
  out->communicators += d.created > 0 ? times : 0;
  out->created += times * d.created;
  out->first_use += times * d.ring;
}

/* Return an upper bound for `rank`: count each family whose lowest rank is at most `rank` and whose
** highest rank is at least `rank`. */
static mgrid_gpu_memory at_rank(const mgrid_plan *p, int64_t rank, const mgrid_site *site) {
  mgrid_gpu_memory m = MGRID_GPU_MEMORY_INIT;
  /* a rank is in at most one group of each round of a family (mgrid_family_rounds) */
  for (size_t i = 0; i < p->content.nentries; i++) {
    const mgrid_entry *e = &p->content.entry[i];
    const mgrid_family *f = e->family;
    if (p->shares[i] < 0 && !e->choice->none && f->low <= rank && rank <= f->high)
      add_memory(e, f->max_size, mgrid_family_rounds(f), site, &m);
  }
  return m;
}

static void take_most(mgrid_gpu_memory *most, const mgrid_gpu_memory *m) {
  if (m->communicators > most->communicators) most->communicators = m->communicators;
  if (m->created > most->created) most->created = m->created;
  if (m->first_use > most->first_use) most->first_use = m->first_use;
}

/* ----------------------------------------------------------- kinds of ranks */

typedef struct kinds {
  const mgrid_plan *p;
  const mgrid_site *site;
  mgrid_gpu_memory most;
  int seen;
  bool failed;
} kinds;

/* Take the memory of one rank of a kind. */
static bool look_at_kind(void *ud, int64_t rank, int64_t weight, int64_t in) {
  enum { KINDS_MAX = 1024 };
  kinds *k = ud;
  mgrid_error err = MGRID_ERROR_INIT;
  mgrid_gpu_memory m = MGRID_GPU_MEMORY_INIT;
  mgrid_view v;
  (void)weight;
  if (in < 0) return true; /* in no group */
  k->failed = ++k->seen > KINDS_MAX || mgrid_view_init(&v, k->p, rank, &err);
  mgrid_error_clear(&err);
  if (k->failed) return false;
  for (size_t i = 0; i < v.ncomms; i++)
    add_memory(&k->p->content.entry[v.comm[i].entry], v.comm[i].size, 1, k->site, &m);
  mgrid_view_free(&v);
  take_most(&k->most, &m);
  return true;
}

/* Add sets of points for a class: one set of all its members, or a set for each position if
** `positions` is true or no modes describe the members. Sets for each position are needed so that
** ranks in groups that another class has, too, count as a separate kind. */
static bool resources_add_class(const mgrid_family *f, const mgrid_class *c, bool positions,
                                mgrid_sets *sets) {
  enum { LISTED = 256 };
  mgrid_points *set = NULL;
  if (c->size == 1) return true;
  if (c->ruled && !positions) {
    if (!(set = mgrid_sets_add(sets))) return false;
    bool told = mgrid_class_starts(c, set);
    for (int i = 0; i < c->nshape && told; i++)
      told = mgrid_points_push(set, c->shape[i].size, c->shape[i].stride);
    if (told && mgrid_points_apart(set)) return true;
    sets->n--;
  }
  for (int64_t p = 0; p < c->size; p++)
    if (c->size > LISTED || !mgrid_class_position(f, c, p, sets)) return false;
  return true;
}

static bool resources_add_entry(const mgrid_plan *p, int i, mgrid_sets *sets) {
  bool compared = false; /* whether groups of this entry may also be groups of another */
  mgrid_classes classes = { 0 };
  for (size_t e = 0, later = 0; e < p->content.nentries && !compared; e++) {
    int j = p->order[e];
    if (j == i)
      later = 1;
    else
      compared = p->shares[j] < 0
                 && (later ? mgrid_plan_rivals(p, j, i) : mgrid_plan_rivals(p, i, j));
  }
  const mgrid_family *f = p->content.entry[i].family;
  bool told = mgrid_classes_of(f, &classes);
  for (size_t k = 0; k < classes.n && told; k++)
    told = resources_add_class(f, &classes.at[k], compared, sets);
  free(classes.at);
  return told;
}

/* Ranks in groups of the same classes (families/classes.h) are of one kind, and take the same
** memory. So look at one rank of each kind, and set each field of *most to the largest value that
** one of them has. Return false if modes (families/modes.h) cannot tell which ranks are of one
** kind, if there are too many families or kinds, or if memory ran out. */
static bool by_kinds(const mgrid_plan *p, const mgrid_site *site, mgrid_gpu_memory *most) {
  enum { ENTRIES = 256 }; /* entries that are compared with each other */
  kinds k = { .p = p, .site = site, .most = MGRID_GPU_MEMORY_INIT };
  mgrid_sets sets = { 0 };
  mgrid_points world = { .offset = 0 };
  bool told = p->content.nentries <= ENTRIES && mgrid_points_push(&world, p->content.world, 1);
  for (size_t i = 0; i < p->content.nentries && told; i++)
    if (p->shares[i] < 0 && !p->content.entry[i].choice->none)
      told = resources_add_entry(p, (int)i, &sets);
  told = told && mgrid_sets_each(&world, &sets, true, look_at_kind, &k, NULL) && !k.failed;
  free(sets.at);
  *most = k.most;
  return told;
}

/* ------------------------------------------------------------------- bounds */

/* Return an upper bound for all ranks: count each family at all ranks from its lowest to its
** highest. The sum is largest at the lowest rank of some family, so look at these ranks. If they
** are too many, add up all families. */
static mgrid_gpu_memory bound(const mgrid_plan *p, const mgrid_site *site) {
  enum { STARTS = 64 };
  int64_t start[STARTS];
  int n = 0;
  mgrid_gpu_memory most = MGRID_GPU_MEMORY_INIT;

  for (size_t i = 0; i < p->content.nentries && n <= STARTS; i++) {
    const mgrid_family *f = p->content.entry[i].family;
    bool known = f->low > f->high;
    for (int k = 0; k < n && !known; k++) known = start[k] == f->low;
    if (known) continue;
    if (n < STARTS) start[n] = f->low;
    n++;
  }
  if (n > STARTS) {
    for (size_t i = 0; i < p->content.nentries; i++) {
      const mgrid_entry *e = &p->content.entry[i];
      if (p->shares[i] < 0 && !e->choice->none)
        add_memory(e, e->family->max_size, mgrid_family_rounds(e->family), site, &most);
    }
    return most;
  }
  for (int k = 0; k < n; k++) {
    mgrid_gpu_memory m = at_rank(p, start[k], site);
    take_most(&most, &m);
  }
  return most;
}

/* Set each field of *out to the most that any rank takes, or to an upper bound. */
static void any_rank(const mgrid_plan *p, const mgrid_site *site, mgrid_gpu_memory *out) {
  if (!by_kinds(p, site, out)) *out = bound(p, site);
}

mgrid_status mgrid_plan_gpu_memory(const mgrid_plan *p, int64_t rank, mgrid_gpu_memory *out,
                                   mgrid_error *err) {
  if (!p) return MGRID_USAGE;
  const mgrid_site site = MGRID_SITE_INIT;
  mgrid_gpu_memory m = MGRID_GPU_MEMORY_INIT;
  mgrid_view v = { 0 };
  mgrid_status s = mgrid_struct_check(out, sizeof m, "mgrid_gpu_memory", err);
  if (!s && rank >= 0) s = mgrid_view_init(&v, p, rank, err);
  if (s) return s;
  for (size_t i = 0; i < v.ncomms; i++)
    add_memory(&p->content.entry[v.comm[i].entry], v.comm[i].size, 1, &site, &m);
  mgrid_view_free(&v);
  if (rank < 0) any_rank(p, &site, &m);
  mgrid_struct_write(out, &m, sizeof m);
  return MGRID_OK;
}

/* ===================================================== one rank, one machine */

/* In worlds of up to WHOLE ranks, or on up to three machines, all ranks are counted. Otherwise the
** ranks of three machines are counted: the first, one in the middle, and the last. */
enum { WHOLE = 4096 };

/* A communicator on one rank. */
typedef struct use {
  int entry;
  int64_t group, size, rank;
} use;

typedef struct machine {
  int64_t first, ranks;
  size_t n, room;
  use *uses;              /* [n] */
  mgrid_resources *taken; /* [ranks] */
} machine;

static int by_group(const void *a, const void *b) {
  const use *x = a, *y = b;
  if (x->entry != y->entry) return x->entry < y->entry ? -1 : 1;
  return (x->group > y->group) - (x->group < y->group);
}

static int64_t resources_larger(int64_t a, int64_t b) { return a > b ? a : b; }

/* Return the thread blocks of the largest communicator that a family uses on this rank. */
static int64_t blocks_of(const mgrid_plan *p, const mgrid_view *v, const char *family,
                         const mgrid_site *site) {
  int entry = mgrid_content_find(&p->content, family);
  int64_t most = 0;
  for (size_t i = 0; i < v->nmembers; i++) {
    mgrid_demand d;
    if (v->member[i].entry != entry || v->member[i].comm < 0) continue;
    mgrid_entry_demand(&p->content.entry[entry], v->member[i].size, 1, site, &d);
    most = resources_larger(most, d.blocks);
  }
  return most;
}

/* Look at one rank: its communicators, and the thread blocks that may be on its GPU at once. Such
** thread blocks are those of one communicator, or of the families in a list of concurrent
** families. */
static mgrid_status resources_look(machine *m, const mgrid_plan *p, int64_t rank,
                                   const mgrid_site *site, mgrid_error *err) {
  mgrid_view v;
  mgrid_demand d;
  mgrid_resources *taken = &m->taken[rank - m->first];
  mgrid_status s = mgrid_view_init(&v, p, rank, err);

  if (s) return s;
  if (!MGRID_ROOM(m->uses, m->room, m->n + v.ncomms)) {
    mgrid_view_free(&v);
    return mgrid_oom(err);
  }
  for (size_t i = 0; i < v.ncomms; i++) {
    const mgrid_creation *c = &v.comm[i];
    m->uses[m->n++] = (use){ c->entry, c->group, c->size, rank };
    mgrid_entry_demand(&p->content.entry[c->entry], c->size, 1, site, &d);
    taken->blocks = resources_larger(taken->blocks, d.blocks);
  }
  for (size_t i = 0; i < p->content.nconcurrent; i++) {
    int64_t at_once = 0;
    for (size_t k = 0; k < p->content.concurrent[i].n; k++)
      at_once += blocks_of(p, &v, p->content.concurrent[i].name[k], site);
    taken->blocks = resources_larger(taken->blocks, at_once);
  }
  mgrid_view_free(&v);
  return MGRID_OK;
}

static void add_demand(mgrid_resources *r, const mgrid_demand *d) {
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
static mgrid_status scan(machine *m, const mgrid_plan *p, const mgrid_site *site,
                         mgrid_error *err) {
  mgrid_status s = MGRID_OK;
  int64_t slots = 0;
  m->n = 0;
  for (int64_t i = 0; i < m->ranks && !s; i++) {
    m->taken[i] = (mgrid_resources)MGRID_RESOURCES_INIT;
    s = resources_look(m, p, m->first + i, site, err);
  }
  if (s) return s;
  if (m->n > 1) qsort(m->uses, m->n, sizeof *m->uses, by_group);
  for (size_t first = 0, end; first < m->n; first = end) {
    mgrid_demand d;
    for (end = first + 1; end < m->n && by_group(&m->uses[first], &m->uses[end]) == 0;) end++;
    mgrid_entry_demand(&p->content.entry[m->uses[first].entry], m->uses[first].size,
                       (int64_t)(end - first), site, &d);
    slots += d.multicast;
    for (size_t i = first; i < end; i++) add_demand(&m->taken[m->uses[i].rank - m->first], &d);
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
    *most = resources_larger(*most, *mgrid_resources_number(other, row));
  }
}

static void choose_machine(machine *m, const mgrid_plan *p, const mgrid_site *site, int64_t which) {
  int64_t left = p->content.world - which * site->machine_ranks;
  m->first = which * site->machine_ranks;
  m->ranks = left < site->machine_ranks ? left : site->machine_ranks;
}

static mgrid_status of_any(machine *m, const mgrid_plan *p, const mgrid_site *site,
                           mgrid_resources *r, mgrid_error *err) {
  int64_t machines = (p->content.world - 1) / site->machine_ranks + 1;
  mgrid_gpu_memory bound = MGRID_GPU_MEMORY_INIT;
  mgrid_status s = MGRID_OK;
  r->sampled = p->content.world > WHOLE && machines > 3;
  for (int64_t i = 0; i < (r->sampled ? 3 : machines) && !s; i++) {
    choose_machine(m, p, site, !r->sampled ? i : i == 0 ? 0 : i == 1 ? machines / 2 : machines - 1);
    s = scan(m, p, site, err);
    for (int64_t k = 0; k < m->ranks && !s; k++) take_larger(r, &m->taken[k]);
  }
  if (r->sampled) { /* these fields are known for all ranks */
    any_rank(p, site, &bound);
    r->communicators = bound.communicators, r->created = bound.created, r->ring = bound.first_use;
  }
  return s;
}

static mgrid_status check_site(const mgrid_site *site, mgrid_error *err) {
  if (site->machine_ranks < 1 || site->machine_ranks > MGRID_MACHINE_RANKS_MAX)
    return mgrid_fail(err, MGRID_OUT_OF_RANGE, "a machine has 1 to %d ranks, not %" PRId64,
                      MGRID_MACHINE_RANKS_MAX, site->machine_ranks);
  const int64_t low = mgrid_nccl_fields[MGRID_NCCL_MAX_CTAS].low,
                high = mgrid_nccl_fields[MGRID_NCCL_MAX_CTAS].high;
  const int64_t given[] = { site->min_ctas, site->max_ctas };
  for (int i = 0; i < 2; i++)
    if (given[i] != 0 && (given[i] < low || given[i] > high))
      return mgrid_fail(err, MGRID_OUT_OF_RANGE,
                        "%s_ctas of a site is %" PRId64 " to %" PRId64 ", not %" PRId64,
                        i ? "max" : "min", low, high, given[i]);
  return MGRID_OK;
}

mgrid_status mgrid_plan_resources(const mgrid_plan *p, int64_t rank, const mgrid_site *given,
                                  mgrid_resources *out, mgrid_error *err) {
  if (!p) return MGRID_USAGE;
  mgrid_site site = MGRID_SITE_INIT;
  mgrid_resources r = MGRID_RESOURCES_INIT;

  mgrid_status s = mgrid_struct_read(&site, sizeof site, given, "mgrid_site", err);
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
