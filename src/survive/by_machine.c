/* SPDX-License-Identifier: MIT
**
** by_machine.c - survivors of a recipe that reads the machine: they run where they ran before, so the next plan is made for
** a machine with their places.
*/
#include "machine/item.h"
#include "survive/next.h"

#include "comm/recipe.h"

#include <stdlib.h>
#include <string.h>

const struct mgrid_machine_model *mgrid_losses_machine(const mgrid_losses *l) {
  const mgrid_machine_item *item = mgrid_content_machine(&l->plan->content);
  return item && !item->unread ? item->model : NULL;
}

size_t mgrid_losses_near(const mgrid_losses *l, int64_t a, int64_t b) {
  const mgrid_machine_item *item = mgrid_content_machine(&l->plan->content);
  size_t                    level = 0;
  if (!item) return 0;
  const mgrid_machine_model *m = item->model;
  int64_t                    x = mgrid_machine_at(m, a), y = mgrid_machine_at(m, b);
  while (level < m->ntiers && mgrid_tier_domain(&m->tier[level], x) == mgrid_tier_domain(&m->tier[level], y)) level++;
  return level;
}

int32_t *mgrid_loss_seats(const mgrid_losses *l, const mgrid_loss *x, mgrid_error *err) {
  int32_t *at = malloc((size_t)x->survivors * sizeof *at);
  int64_t  n = 0;
  if (!at) return mgrid_null_oom(err);
  for (int64_t r = 0; r < x->world && !x->was; r++)
    if (x->is[r] != -2) at[n++] = (int32_t)mgrid_machine_at(mgrid_losses_machine(l), r);
  for (int64_t i = 0; i < x->survivors && x->was; i++)
    at[i] = (int32_t)mgrid_machine_at(mgrid_losses_machine(l), x->was[i]);
  return at;
}

/* Lend the runtime the machine with these places; *before: the machine lent before, with one more owner. */
mgrid_status mgrid_losses_lend(const mgrid_losses *l, int64_t n, const int32_t *at, void **before, mgrid_error *err) {
  mgrid_lent_request   r = { .kind = &mgrid_machine_kind };
  int32_t             *own = malloc((size_t)n * sizeof *own);
  mgrid_machine_model *m = own ? mgrid_machine_copy(mgrid_losses_machine(l), err) : mgrid_null_oom(err);
  if (!m) {
    free(own);
    return err->status;
  }
  memcpy(own, at, (size_t)n * sizeof *own);
  mgrid_status s = mgrid_machine_set_ranks(m, n, own, err);
  if (!s) s = mgrid_runtime_serve(l->rt, "survive", &r, err);
  if (!s) s = mgrid_runtime_machine(l->rt, m, err);
  if (s && r.x) mgrid_machine_kind.free(r.x);
  *before = s ? NULL : r.x;
  mgrid_machine_free(m);
  return s;
}

void mgrid_losses_lend_again(const mgrid_losses *l, void *before) {
  mgrid_runtime_lend(l->rt, &mgrid_machine_kind, before, NULL);
  if (before) mgrid_machine_kind.free(before);
}

/* No old rank has a new rank yet. */
static void reset(mgrid_loss *x) {
  free(x->was);
  x->was = NULL;
  memset(x->is, -1, (size_t)x->world * sizeof *x->is);
  for (size_t i = 0; i < x->nlost; i++) x->is[x->lost[i]] = -2;
}

static mgrid_plan *plan_at(mgrid_losses *l, const mgrid_next *next, const mgrid_loss *x, mgrid_error *err) {
  int32_t    *at = mgrid_loss_seats(l, x, err);
  mgrid_plan *p =
      at ? mgrid_next_plan(l, x->survivors, next->places, next->nargs, (const char *const *)next->args, at, err) : NULL;
  free(at);
  return p;
}

mgrid_status mgrid_next_try_places(mgrid_losses *l, mgrid_next *next, mgrid_loss *x, mgrid_error *why) {
  mgrid_fold fold[MGRID_FOLDS_MAX];
  size_t     n = mgrid_folds_of(l, next->places, fold);
  for (size_t i = 0; i < n && !next->plan; i++) {
    mgrid_error mine = MGRID_ERROR_INIT;
    reset(x);
    next->fold = fold[i];
    if (!mgrid_loss_place(l, next, x, &mine)) next->plan = plan_at(l, next, x, &mine);
    if (mine.status == MGRID_NO_MEMORY) return mgrid_error_pass(why, &mine);
    if (i == 0 && !next->plan) mgrid_error_pass(why, &mine);
  }
  if (!next->plan) reset(x);
  return MGRID_OK;
}

static bool same_comms(const mgrid_comm_list *a, const mgrid_comm_list *b) {
  return a->n == b->n && memcmp(a->start, b->start, (a->n + 1) * sizeof *a->start) == 0
         && memcmp(a->member, b->member, (size_t)a->start[a->n] * sizeof *a->member) == 0;
}

mgrid_status mgrid_loss_place_again(mgrid_losses *l, const mgrid_next *next, mgrid_loss *x, mgrid_error *err) {
  int32_t        *was = x->was, *is = malloc((size_t)x->world * sizeof *is);
  mgrid_error     why = MGRID_ERROR_INIT;
  mgrid_comm_list comms = { 0 };
  if (!is) return mgrid_oom(err);
  memcpy(is, x->is, (size_t)x->world * sizeof *is);
  x->was = NULL;
  reset(x);
  mgrid_status s = mgrid_loss_place(l, next, x, &why);
  bool         same = !s && memcmp(was, x->was, (size_t)x->survivors * sizeof *was) == 0;
  mgrid_plan  *p = s || same ? NULL : plan_at(l, next, x, &why);
  if (p && !mgrid_comm_list_make(&comms, p, &why) && same_comms(&comms, &next->comms)) {
    mgrid_plan_free(x->plan);
    x->plan = mgrid_plan_ref(p);
    same = true;
  }
  if (!same) { /* it stays as the recipe has accepted it */
    int32_t *now = x->was;
    x->was = was, was = now;
    memcpy(x->is, is, (size_t)x->world * sizeof *is);
  }
  mgrid_comm_list_free(&comms);
  mgrid_plan_free(p);
  free(was);
  free(is);
  return why.status == MGRID_NO_MEMORY ? mgrid_error_pass(err, &why) : MGRID_OK;
}
