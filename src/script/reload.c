/* SPDX-License-Identifier: MIT
**
** reload.c - a changed recipe while the trainer runs: everything new is made beside the old, which
** stays as it is until the new is complete on every rank.
*/
#include "script/runtime.h"

#include <string.h>

mg_status mg_reload(const mg_runtime *rt, mg_state *s, const char *recipe, size_t n, const char *const *args,
                    mg_runtime **new_rt, mg_state **new_s, mg_change *change, mg_error *err) {
  mg_error mine = { 0 };
  *new_rt = NULL;
  *new_s = NULL;
  if (!rt || !s) return MG_USAGE;
  mg_runtime *fresh = mg_runtime_new(&rt->budget.limits, &mine);
  mg_runtime_load(fresh, recipe ? recipe : rt->recipe, &mine);
  mg_plan *plan = mg_runtime_plan(fresh, mg_plan_world(s->plan), n, args, &mine);
  /* Collective from here on: who has no plan says so, and every rank is told. */
  mg_state *state = mg_materialize(plan, s->backend, "reload", &mine);
  if (state && change) mg_plan_diff(s->plan, plan, s->view.rank, change, NULL, NULL, NULL);
  mg_plan_free(plan);
  if (state) {
    *new_rt = fresh;
    *new_s = state;
    return MG_OK;
  }
  mg_runtime_free(fresh);
  if (err) *err = mine;
  return mine.status ? mine.status : MG_BACKEND;
}
