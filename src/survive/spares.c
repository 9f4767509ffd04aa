/* SPDX-License-Identifier: MIT
**
** spares.c - spares: ranks that a plan keeps out of all families, to take the places of lost ranks.
** The spares of a topology or plan are one item of it.
*/
#include "families/grid.h"
#include "plan/json.h"
#include "machine/model.h"
#include "survive/next.h"

#include <inttypes.h>
#include <stdlib.h>

mgrid_spares *mgrid_spares_new(int64_t world, int64_t n, int32_t *ranks, mgrid_error *err) {
  mgrid_spares *x = calloc(1, sizeof *x);
  if (!x || !ranks) {
    free(ranks);
    free(x);
    return mgrid_null_oom(err);
  }
  atomic_init(&x->refs, 1);
  x->world = world;
  if (n == 0) { /* such an item is lent to a runtime: the plan has no spares */
    free(ranks);
    return x;
  }
  x->f = mgrid_order_list(mgrid_world(world), n, ranks, err);
  if (x->f) return x;
  free(x);
  return NULL;
}

static int64_t spares_world_of(const void *x) { return ((const mgrid_spares *)x)->world; }

static void *spares_ref(const void *x) {
  mgrid_spares *own = (mgrid_spares *)(uintptr_t)x;
  atomic_fetch_add_explicit(&own->refs, 1, memory_order_relaxed);
  return own;
}

static void free_spares(void *x) {
  mgrid_spares *own = x;
  if (atomic_fetch_sub_explicit(&own->refs, 1, memory_order_acq_rel) > 1) return;
  mgrid_family_free(own->f);
  free(own);
}

static size_t spares_held(const void *x) {
  const mgrid_spares *own = x;
  return sizeof *own + (own->f ? own->f->bytes : 0);
}

static void spares_text(const void *x, mgrid_text *t) {
  mgrid_family_text(((const mgrid_spares *)x)->f, t);
}

static void rule(const mgrid_content *c, size_t i, mgrid_text *t) {
  mgrid_text_str(t, ",\"rule\":");
  mgrid_family_json(((const mgrid_spares *)c->item[i].x)->f, t);
}

static const mgrid_family *unused(const void *x) { return ((const mgrid_spares *)x)->f; }

/* Write the spares; or, for one rank, whether it is a spare. */
static void spares_json(const void *x, int64_t rank, mgrid_json *w) {
  const mgrid_family *f = ((const mgrid_spares *)x)->f;
  int64_t group, position;
  if (rank >= 0) {
    mgrid_json_value(w, json_boolean(mgrid_family_locate(f, rank, 0, &group, &position)));
    return;
  }
  mgrid_json_open(w, "[");
  for (int64_t i = 0; i < f->total; i++)
    mgrid_json_element(w, w->first ? "" : " ", json_integer(mgrid_family_rank(f, 0, i)));
  mgrid_json_close(w, "]");
}

const mgrid_item_kind mgrid_spares_kind = {
  .name = "spares",
  .names = "spares",
  .world = spares_world_of,
  .ref = spares_ref,
  .free = free_spares,
  .held = spares_held,
  .text = spares_text,
  .rule = rule,
  .json = spares_json,
  .unused = unused,
};

const mgrid_spares *mgrid_content_spares(const mgrid_content *c) {
  const mgrid_item *item = mgrid_content_nth(c, &mgrid_spares_kind, 0);
  return item ? item->x : NULL;
}

mgrid_status mgrid_spares_check(const mgrid_spares *x, const mgrid_content *c, mgrid_error *err) {
  int64_t group, position;
  for (int64_t i = 0; i < x->f->total; i++) {
    int64_t rank = mgrid_family_rank(x->f, 0, i);
    for (size_t k = 0; k < c->nentries; k++)
      if (mgrid_family_locate(c->entry[k].family, rank, 0, &group, &position))
        return mgrid_fail(err, MGRID_REFUSED,
                          "rank %" PRId64 " is a spare, and in group %" PRId64
                          " of family '%s'; families are made over the World that build gets",
                          rank, group, c->entry[k].name);
  }
  return MGRID_OK;
}

static int by_rank(const void *a, const void *b) {
  int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
  return (x > y) - (x < y);
}

mgrid_spares *mgrid_spares_per(const mgrid_machine_model *m, const char *level, int64_t count,
                               int64_t world, mgrid_error *err) {
  int64_t l = mgrid_machine_require(m, level, err), n = 0, nth = 0;

  if (l < 0) return NULL;
  uint64_t *key = malloc((size_t)world * sizeof *key);
  int32_t *list = malloc((size_t)world * sizeof *list);
  for (int64_t r = 0; r < world && key; r++)
    key[r] = (uint64_t)mgrid_place_domain(m, (size_t)l, mgrid_machine_at(m, r)) << 32
             | (uint64_t)(world - r);
  /* by domain, and within a domain the last rank first */
  if (key) qsort(key, (size_t)world, sizeof *key, mgrid_key_order);
  for (int64_t i = 0; i < world && key && list; i++, nth++) {
    if (i > 0 && key[i] >> 32 != key[i - 1] >> 32) nth = 0;
    if (nth < count) list[n++] = (int32_t)(world - (int64_t)(key[i] & UINT32_MAX));
  }
  free(key);
  if (!key || !list) {
    free(list);
    return mgrid_null_oom(err);
  }
  if (n == world) {
    free(list);
    return mgrid_null(err, MGRID_REFUSED, "%" PRId64 " spare%s in each %s %s all %" PRId64 " ranks",
                      count, mgrid_s_of(count), level, count == 1 ? "is" : "are", world);
  }
  qsort(list, (size_t)n, sizeof *list, by_rank);
  return mgrid_spares_new(world, n, list, err);
}

mgrid_status mgrid_topology_spares(mgrid_topology *t, size_t n, const int64_t *ranks,
                                   mgrid_error *err) {
  mgrid_error mine = MGRID_ERROR_INIT;

  if (!t || mgrid_lacks_list(n, ranks, "spares", err)) return MGRID_USAGE;
  mgrid_spares *x = NULL;
  int32_t *list = malloc((n + 1) * sizeof *list);
  int64_t world = t->content.world, bad = -1;
  if (!list) return mgrid_oom(err);
  for (size_t i = 0; i < n && bad < 0; i++) {
    if (ranks[i] < 0 || ranks[i] >= world) bad = (int64_t)i;
    list[i] = (int32_t)ranks[i];
  }
  if (n == 0 || (int64_t)n >= world) {
    mgrid_fail(&mine, MGRID_OUT_OF_RANGE,
               "a world of %" PRId64 " ranks has 1 to %" PRId64 " spares, not %zu", world,
               world - 1, n);
  } else if (bad >= 0) {
    mgrid_fail(&mine, MGRID_OUT_OF_RANGE, "spare %" PRId64 " is out of range (0 to %" PRId64 ")",
               ranks[bad], world - 1);
  } else {
    qsort(list, n, sizeof *list, by_rank);
    for (size_t i = 1; i < n && !mine.status; i++)
      if (list[i] == list[i - 1])
        mgrid_fail(&mine, MGRID_DUPLICATE, "rank %" PRId32 " is given twice as a spare", list[i]);
  }
  if (mine.status)
    free(list);
  else
    x = mgrid_spares_new(world, (int64_t)n, list, &mine);
  if (x && !mgrid_spares_check(x, &t->content, &mine))
    mgrid_topology_add_item(t, MGRID_SPARES_NAME, &mgrid_spares_kind, x, &mine);
  if (x) free_spares(x);
  if (!mine.status) return MGRID_OK;
  if (!t->broken.status) mgrid_error_replace(&t->broken, &mine);
  return mgrid_error_pass(err, &mine);
}

int64_t mgrid_plan_nspares(const mgrid_plan *p) {
  const mgrid_spares *x = p ? mgrid_content_spares(&p->content) : NULL;
  return x ? x->f->total : 0;
}

int64_t mgrid_plan_spare(const mgrid_plan *p, int64_t i) {
  const mgrid_spares *x = p ? mgrid_content_spares(&p->content) : NULL;
  return x && i >= 0 && i < x->f->total ? mgrid_family_rank(x->f, 0, i) : -1;
}
