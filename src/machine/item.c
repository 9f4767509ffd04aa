/* SPDX-License-Identifier: MIT
**
** item.c - a machine in a topology and a plan, and one that a host lends to a runtime.
*/
#include "machine/item.h"

#include "comm/recipe.h"
#include "plan/json.h"
#include "plan/plan.h"

#include <stdlib.h>
#include <string.h>

mgrid_machine_item *mgrid_machine_item_new(const mgrid_machine_model *m, int64_t world, mgrid_error *err) {
  mgrid_machine_item *x = calloc(1, sizeof *x);
  if (!x) return mgrid_null_oom(err);
  atomic_init(&x->refs, 1);
  x->model = mgrid_machine_ref(m);
  x->world = world;
  return x;
}

static int64_t world_of(const void *x) { return ((const mgrid_machine_item *)x)->world; }

static void *ref(const void *x) {
  mgrid_machine_item *own = (mgrid_machine_item *)(uintptr_t)x;
  atomic_fetch_add_explicit(&own->refs, 1, memory_order_relaxed);
  return own;
}

static void free_item(void *x) {
  mgrid_machine_item *own = x;
  if (atomic_fetch_sub_explicit(&own->refs, 1, memory_order_acq_rel) > 1) return;
  mgrid_machine_free(own->model);
  mgrid_text_free(&own->laws);
  free(own);
}

static size_t held(const void *x) {
  const mgrid_machine_model *m = ((const mgrid_machine_item *)x)->model;
  size_t                     n = sizeof *m + (size_t)m->nranks * sizeof *m->at;
  for (size_t i = 0; i < m->ntiers; i++)
    n += (size_t)(m->tier[i].ncounts + (m->tier[i].starts ? m->tier[i].domains : 0)) * sizeof(int64_t);
  return n;
}

static bool unread(const void *x) { return ((const mgrid_machine_item *)x)->unread; }

static void text(const void *x, mgrid_text *t) { mgrid_machine_text(((const mgrid_machine_item *)x)->model, t); }

/* Write the domains of a rank, or the machine and the laws that held. */
static void json(const void *x, int64_t rank, mgrid_json *w) {
  const mgrid_machine_item  *item = x;
  const mgrid_machine_model *m = item->model;
  mgrid_text                 t = { 0 };
  mgrid_json_open(w, "{");
  for (size_t i = 0; i < m->ntiers + m->ncrossings && rank >= 0; i++)
    mgrid_json_integer(w, mgrid_level_name(m, i), mgrid_place_domain(m, i, mgrid_machine_at(m, rank)));
  if (rank < 0) {
    mgrid_machine_text(m, &t);
    mgrid_json_field(w, "text", t.failed ? NULL : json_string(mgrid_text_chars(&t)));
    mgrid_json_in(w, " ", "laws", "[");
    for (const char *at = mgrid_text_chars(&item->laws), *end; (end = strchr(at, '\n')); at = end + 1) {
      mgrid_json_element(w, w->first ? "" : " ", json_stringn(at, (size_t)(end - at)));
    }
    mgrid_json_close(w, "]");
  }
  mgrid_json_close(w, "}");
  mgrid_text_free(&t);
}

static mgrid_status meets(const void *x, const uint64_t *host, int64_t world, int64_t rank, const char *name,
                          mgrid_error *err) {
  return mgrid_machine_meets(((const mgrid_machine_item *)x)->model, host, world, rank, name, err);
}

const mgrid_item_kind mgrid_machine_kind = {
  .name = "machine",
  .names = "machines",
  .world = world_of,
  .ref = ref,
  .free = free_item,
  .held = held,
  .unread = unread,
  .text = text,
  .json = json,
  .meets = meets,
};

const mgrid_machine_item *mgrid_content_machine(const mgrid_content *c) {
  const mgrid_item *item = mgrid_content_nth(c, &mgrid_machine_kind, 0);
  return item ? item->x : NULL;
}

const mgrid_machine_model *mgrid_plan_machine(const mgrid_plan *p) {
  const mgrid_machine_item *item = p ? mgrid_content_machine(&p->content) : NULL;
  return item ? item->model : NULL;
}

mgrid_status mgrid_runtime_machine(mgrid_runtime *rt, const mgrid_machine_model *m, mgrid_error *err) {
  if (!rt) return MGRID_USAGE;
  mgrid_machine_item *item = m ? mgrid_machine_item_new(m, 0, err) : NULL;
  if (m && !item) return MGRID_NO_MEMORY;
  mgrid_status s = mgrid_runtime_lend(rt, &mgrid_machine_kind, item, err);
  if (item) free_item(item);
  return s;
}
