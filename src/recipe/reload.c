/* SPDX-License-Identifier: MIT
**
** reload.c - load a changed recipe while the trainer runs. It makes a new runtime and state and leaves the old ones
** alone, so a failure on any rank changes nothing.
*/
#include "recipe/entry.h"
#include "recipe/function.h"
#include "recipe/runtime.h"

#include <inttypes.h>

/* Load the recipe of that name; NULL: that of rt again, whose text the host may have given. */
static mgrid_status load(mgrid_runtime *fresh, const mgrid_runtime *rt, const char *recipe, mgrid_error *err) {
  if (recipe) return mgrid_script_load(fresh, recipe, NULL, 0, err);
  return mgrid_script_load(fresh, rt->recipe, rt->text.data, rt->text.len, err);
}

/* Do all that is local: load the recipe, make its plan, and find what changes on this rank. NULL after filling *err. */
static mgrid_plan *evaluate(mgrid_runtime *fresh, const mgrid_runtime *rt, const mgrid_state *s, const char *recipe,
                            size_t n, const char *const *args, mgrid_change *what, mgrid_error *err) {
  mgrid_plan *plan = NULL;
  if (err->status || mgrid_functions_copy(fresh, rt, err)) return NULL;
  for (size_t i = 0; i < MGRID_LENT_MAX; i++)
    if (rt->lent[i].x && mgrid_script_lend(fresh, rt->lent[i].kind, rt->lent[i].x, err)) return NULL;
  if (load(fresh, rt, recipe, err) == MGRID_OK)
    plan = mgrid_script_plan(fresh, mgrid_plan_world(s->plan), NULL, n, args, err);
  if (!plan || mgrid_plan_diff(s->plan, plan, s->view.rank, what, NULL, NULL, err) == MGRID_OK) return plan;
  mgrid_plan_free(plan);
  return NULL;
}

mgrid_status mgrid_script_reload(const mgrid_runtime *rt, mgrid_state *s, const char *recipe, size_t n,
                                 const char *const *args, mgrid_state **new_s, mgrid_change *change, mgrid_error *err) {
  mgrid_error    mine = MGRID_ERROR_INIT;
  mgrid_change   what = MGRID_CHANGE_INIT;
  mgrid_runtime *fresh = NULL;
  if (change) mgrid_struct_check(change, sizeof what, "mgrid_change", &mine);
  if (recipe || mgrid_runtime_check_loaded(rt, &mine) == MGRID_OK)
    fresh = mgrid_script_runtime_new(&rt->budget.limits, &rt->budget.hooks, &mine);
  mgrid_plan *plan = evaluate(fresh, rt, s, recipe, n, args, &what, &mine);
  /* Collective from here on: a rank without a plan takes part, too, so that all ranks get its error. */
  mgrid_state *state = mgrid_state_make(plan, s->backend, s->name, s, NULL, &mine);
  mgrid_plan_free(plan);
  if (!state) {
    mgrid_script_runtime_free(fresh);
    return mgrid_error_pass(err, &mine);
  }
  mgrid_struct_write(change, &what, sizeof what);
  mgrid_log(&rt->budget.hooks, MGRID_LOG_INFO,
            "recipe %s is taken anew: %" PRId64 " communicators kept, %" PRId64 " created, %" PRId64 " to go",
            fresh->recipe, what.kept, what.created, what.dropped);
  state->runtime = fresh;
  *new_s = state;
  return MGRID_OK;
}
