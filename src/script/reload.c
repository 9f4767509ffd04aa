/* SPDX-License-Identifier: MIT
**
** reload.c - takes a changed recipe while the trainer runs. Makes the new runtime and state beside the old
** ones, which stay as they are until the new ones are complete on every rank.
*/
#include "script/runtime.h"

#include <string.h>

mgrid_status mgrid_reload(const mgrid_runtime *rt, mgrid_state *s, const char *recipe, size_t n,
                          const char *const *args, mgrid_runtime **new_rt, mgrid_state **new_s, mgrid_change *change,
                          mgrid_error *err) {
  mgrid_error mine = MGRID_ERROR_INIT;
  *new_rt = NULL;
  *new_s = NULL;
  if (!rt || !s) return MGRID_USAGE;
  mgrid_runtime *fresh = mgrid_runtime_new(&rt->budget.limits, &rt->budget.hooks, &mine);
  mgrid_runtime_load(fresh, recipe ? recipe : rt->recipe, &mine);
  mgrid_plan *plan = mgrid_runtime_plan(fresh, mgrid_plan_world(s->plan), n, args, &mine);
  /* Collective from here on: a rank without a plan takes part too, so that every rank is told. */
  mgrid_state *state = mgrid_materialize(plan, s->backend, s->name, &mine);
  if (state && change) mgrid_plan_diff(s->plan, plan, s->view.rank, change, NULL, NULL, NULL);
  mgrid_plan_free(plan);
  if (state) {
    *new_rt = fresh;
    *new_s = state;
    return MGRID_OK;
  }
  mgrid_runtime_free(fresh);
  if (!mine.status) mgrid_fail(&mine, MGRID_BACKEND, "the new state was not made");
  return mgrid_error_pass(err, &mine);
}
