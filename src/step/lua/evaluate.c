/* SPDX-License-Identifier: MIT
**
** evaluate.c - evaluate the step of a recipe for a plan: once for each class of ranks, each time
** with the budget of one call. At the end the step is evaluated once more for rank 0, to check that
** it still makes the same program.
*/
#include "recipe/prelude.h"
#include "recipe/runtime.h"
#include "step/lua/step_words.h"

#include <inttypes.h>
#include <string.h>

static const char function_key = 'f', anchor_key = 'a'; /* keys of the registry: their addresses */

typedef struct preparation {
  const step_request *request;
  bool found;
} preparation;

/* Put the step, which is a function of s, into the registry. */
static int prepare_body(lua_State *L) {
  preparation *x = lua_touserdata(L, 1);
  mgrid_prelude_push(L, "step");
  lua_rawgetp(L, LUA_REGISTRYINDEX, &mgrid_recipe_key);
  mgrid_plan **box = mgrid_lua_new_plan(L);
  *box = mgrid_plan_ref(x->request->plan);
  if (x->request->file) {
    int top = lua_gettop(L);
    mgrid_prelude_load(L, x->request->file);
    lua_call(L, 0, 1);
    lua_replace(L, top + 1);
    lua_settop(L, top + 1);
    if (!lua_isfunction(L, -1))
      return mgrid_lua_raise(L, "%s returned %s; a file of a step returns a function (s, p)",
                             x->request->file, mgrid_lua_kind(L, -1));
  }
  lua_call(L, x->request->file ? 3 : 2, 2);
  x->found = !lua_isnil(L, -2) && !(x->request->ask && lua_toboolean(L, -1));
  lua_pop(L, 1);
  lua_rawsetp(L, LUA_REGISTRYINDEX, &function_key);
  return 0;
}

/* Raise an error with the line of an entry. */
static int evaluate_raise_at(lua_State *L, const step_writer *w, uint32_t node, mgrid_status status,
                             const char *message) {
  const step_node *n = &w->now.node[node];
  mgrid_lua_note(L, status, message);
  /* + 1: behind the @ of the file's name */
  lua_pushfstring(L, "%s:%d: %s", w->step->word[n->file] + 1, n->line, message);
  return lua_error(L);
}

static int evaluate_body(lua_State *L) {
  step_writer *w = lua_touserdata(L, 1);
  lua_rawgetp(L, LUA_REGISTRYINDEX, &function_key);
  mgrid_step_lua_push(L, w, &anchor_key);
  lua_call(L, 1, 0);
  if (w->depth)
    return evaluate_raise_at(L, w, w->open[w->depth - 1], MGRID_REFUSED,
                             "an error left this block of the step, and was caught");
  uint32_t at = mgrid_step_count(&w->now);
  return at < w->now.n ? evaluate_raise_at(
             L, w, at, MGRID_LIMIT, "up to here the step has more than 2^60 operations on one rank")
                       : 0;
}

/* Evaluate the step for a rank. The code after the call allocates no memory of Lua, because nothing
** there catches an error. */
static mgrid_status evaluate_rank(mgrid_runtime *rt, step_writer *w, mgrid_step *s, int64_t rank,
                                  mgrid_error *err) {
  mgrid_step_writer_begin(w, s, rank);
  mgrid_status status = mgrid_runtime_call(rt, evaluate_body, w, err);
  if (lua_rawgetp(rt->L, LUA_REGISTRYINDEX, &anchor_key) == LUA_TUSERDATA)
    ((step_anchor *)lua_touserdata(rt->L, -1))->writer = NULL;
  lua_settop(rt->L, 0);
  return status;
}

static mgrid_status evaluate_add_class(mgrid_runtime *rt, step_writer *w, mgrid_step *s,
                                       int64_t rank, mgrid_error *err) {
  if (s->nclasses >= STEP_CLASSES_MAX) {
    mgrid_text reads = { 0 };
    mgrid_step_reads_text(s, &reads);
    mgrid_fail(err, MGRID_LIMIT, "the step reads %s, which makes more than %d classes of ranks",
               mgrid_text_chars(&reads), STEP_CLASSES_MAX);
    mgrid_text_free(&reads);
    return err->status;
  }
  mgrid_status status = evaluate_rank(rt, w, s, rank, err);
  if (status) return status;
  int32_t program = mgrid_step_keep(w);
  return program < 0 ? mgrid_oom(err) : mgrid_step_add_class(w, program, err);
}

/* Evaluate the step for rank 0 again, and fail if the program differs. */
static mgrid_status check_pure(mgrid_runtime *rt, step_writer *w, mgrid_step *s, mgrid_error *err) {
  mgrid_status status = evaluate_rank(rt, w, s, 0, err);
  if (status) return status;
  int32_t again = mgrid_step_keep(w);
  if (again < 0) return mgrid_oom(err);
  if (again == s->class[s->of[0]].program) return MGRID_OK;
  return mgrid_fail(err, MGRID_REFUSED,
                    "the step made another program for rank 0 when it was evaluated again: it may "
                    "not change anything that "
                    "the next evaluation sees");
}

/* Lua's names of files begin with @ or =. Replace them by the names that a host uses. A path may
** contain any bytes, so it is escaped. */
static mgrid_status name_files(lua_State *L, mgrid_step *s, mgrid_error *err) {
  bool *file = mgrid_zeroed(NULL, s->nwords * sizeof *file);
  if (!file) return mgrid_oom(err);
  for (size_t k = 0; k < s->nprograms; k++)
    for (size_t n = 0; n < s->program[k].n; n++) file[s->program[k].node[n].file] = true;
  mgrid_status status = MGRID_OK;
  for (size_t i = 0; i < s->nwords && !status; i++) {
    const char *name = s->word[i];
    char path[MGRID_PLACE_MAX], shown[MGRID_PLACE_MAX];
    if (!file[i] || (*name != '@' && *name != '=')) continue;
    mgrid_budget_path(L, name + 1, strlen(name + 1), path, sizeof path);
    mgrid_shown(shown, sizeof shown, path, strlen(path));
    char *copy = mgrid_strdup(shown);
    if (!copy)
      status = mgrid_oom(err);
    else
      mgrid_release(s->word[i]), s->word[i] = copy;
  }
  mgrid_release(file);
  return status;
}

/* Fail, because the budget is exhausted. */
static mgrid_status evaluate_give_up(const mgrid_step *s, const step_budget *b, int64_t rank,
                                     mgrid_error *err) {
  mgrid_error why = MGRID_ERROR_INIT;
  mgrid_text reads = { 0 };
  mgrid_step_budget_spent(b, &why);
  mgrid_step_reads_text(s, &reads);
  mgrid_fail(err, MGRID_LIMIT,
             "%s: so far ranks below %" PRId64
             " have their programs, in %zu classes; the step reads %.200s",
             why.message, rank, s->nclasses, mgrid_text_chars(&reads));
  mgrid_text_free(&reads);
  return MGRID_LIMIT;
}

static mgrid_status evaluate_all(mgrid_runtime *rt, step_writer *w, mgrid_step *s,
                                 mgrid_error *err) {
  int64_t world = s->plan->content.world;
  step_budget b;
  mgrid_step_budget_begin(&b, &s->limits, "the evaluation of the step for all ranks");
  for (int64_t rank = 0; rank < world; rank++) {
    int32_t class = mgrid_step_find_class(s, rank);
    if (!mgrid_spend(&b.work, 1)) return evaluate_give_up(s, &b, rank, err);
    if (class < 0) {
      mgrid_status status = evaluate_add_class(rt, w, s, rank, err);
      if (status) return status;
      /* only the time counts here: each class may use the instructions of one call */
      if (!mgrid_budget_look(&b.work, 0)) return evaluate_give_up(s, &b, rank, err);
      class = (int32_t)s->nclasses - 1;
    }
    s->of[rank] = class;
    s->class[class].ranks++;
  }
  return check_pure(rt, w, s, err);
}

static mgrid_status evaluate_check(const mgrid_runtime *rt, const mgrid_plan *p, mgrid_error *err) {
  mgrid_status status = mgrid_runtime_check_loaded(rt, err);
  if (status) return status;
  if (strcmp(p->content.recipe, rt->recipe) != 0)
    return mgrid_fail(err, MGRID_NOT_NOW, "the plan is not of this recipe (%s) but of %s",
                      rt->recipe, *p->content.recipe ? p->content.recipe : "none");
  if (p->content.world > STEP_WORLD_MAX)
    return mgrid_fail(err, MGRID_LIMIT, "a step is evaluated for up to %d ranks, not for %" PRId64,
                      STEP_WORLD_MAX, p->content.world);
  return MGRID_OK;
}

mgrid_status mgrid_step_lua_serve(mgrid_runtime *rt, void *request, mgrid_error *err) {
  step_request *r = request;
  preparation x = { r, false };
  step_writer w = { 0 };
  mgrid_status status = evaluate_check(rt, r->plan, err);

  if (status) return status;
  mgrid_budget_keep_home(rt->L);
  status = mgrid_runtime_protected(rt, prepare_body, &x, err);
  r->none = !status && !x.found;
  if (status || r->ask) {
    mgrid_budget_back_home(rt->L);
    return status;
  }
  if (r->none)
    status = mgrid_fail(
        err, MGRID_UNKNOWN_NAME,
        "the recipe %s has no step: step = function(s, p) ... end makes one, or a file of its own",
        rt->recipe);
  mgrid_step *s = status ? NULL : mgrid_step_alloc(r->plan, err);
  if (!status && !s) status = err->status;
  if (s) s->limits = rt->budget.limits;
  if (!status) status = evaluate_all(rt, &w, s, err);
  if (!status) status = name_files(rt->L, s, err);
  if (!status) status = mgrid_step_take_digest(s, err);
  mgrid_budget_back_home(rt->L);
  mgrid_step_writer_free(&w);
  if (status)
    mgrid_step_free(s);
  else
    r->made = s;
  return status;
}
