/* SPDX-License-Identifier: MIT
**
** search.c - the order that costs least: search_free.c says what is free. Up to WHOLE combinations are all evaluated. Of more,
** sizes whose bound is above the best found are left out; where even that is too much, some orders are evaluated, or a local
** search from several starts changes one thing at a time.
*/
#include "machine/command/searching.h"

#include "machine/command/ranks.h"
#include "plan/plan.h"
#include "recipe/runtime.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------------ evaluation */

/* Order of found: the goal, then bytes at the farthest level that differs. */
static int compare(const search *x, const found *a, const found *b) {
  if (x->goal == GOAL_POLICY && a->value != b->value) return a->value < b->value ? -1 : 1;
  return mgrid_cost_compare(&a->cost, &b->cost, x->goal == GOAL_TIME);
}

bool cli_search_is_now(const search *x, const found *f) { return memcmp(x->now.at, f->at, sizeof f->at) == 0; }

/* Keep one among the best, if it is. Equal costs keep the order in which they were found; the present one is the first. */
static void keep(search *x, const found *f) {
  size_t at = x->nbest;
  for (size_t i = 0; i < x->nbest; i++)
    if (memcmp(x->best[i].at, f->at, sizeof f->at) == 0) return;
  while (at > 0 && compare(x, f, &x->best[at - 1]) < 0) at--;
  if (at == BEST) return;
  size_t kept = x->nbest < BEST ? x->nbest++ : BEST - 1;
  memmove(&x->best[at + 1], &x->best[at], (kept - at) * sizeof *x->best);
  x->best[at] = *f;
}

static mgrid_status call_policy(search *x, mgrid_state *state, const mgrid_cost *cost, double *value,
                                mgrid_error *err) {
  mgrid_arg     bytes[MGRID_LEVELS_MAX], bound[MGRID_LEVELS_MAX], args[3];
  mgrid_policy *p = mgrid_policy_new(x->rt, state, x->s->objective, err);
  if (!p) return err->status;
  for (size_t l = 0; l < cost->n; l++) {
    bytes[l] = mgrid_arg_number(x->costing.m->tier[l].name, cost->bytes[l]);
    bound[l] = mgrid_arg_number(x->costing.m->tier[l].name, cost->bound[l]);
  }
  args[0] = mgrid_arg_table("bytes", cost->n, bytes);
  args[1] = mgrid_arg_table("bound", cost->n, bound);
  args[2] = mgrid_arg_number("seconds", cost->seconds);
  mgrid_status s = mgrid_policy_call(p, 3, args, err);
  mgrid_arg    given = MGRID_ARG_INIT;
  if (!s) s = mgrid_policy_result(p, NULL, MGRID_IS_NUMBER, &given, err);
  *value = given.as.number;
  if (!s && *value != *value) s = mgrid_fail(err, MGRID_BAD_VALUE, "policy '%s' returns nan", x->s->objective);
  mgrid_policy_free(p);
  return s;
}

/* What the policy says about a plan and its cost, on rank 0 of a state without communicators. */
static mgrid_status value_of(search *x, const mgrid_plan *p, const mgrid_cost *cost, double *value, mgrid_error *err) {
  mgrid_backend *b = mgrid_backend_dry(x->c->world, 0, err);
  mgrid_state   *state = b ? mgrid_materialize(p, b, "place", err) : NULL;
  mgrid_status   s = state ? call_policy(x, state, cost, value, err) : err->status;
  mgrid_state_free(state);
  mgrid_backend_free(b);
  return s;
}

/* The plan with these values. */
static mgrid_plan *plan_of(search *x, const found *f, mgrid_error *err) {
  char  *own[FREE] = { NULL };
  bool   starved = false;
  size_t n = x->nfixed;
  for (size_t i = 0; i < x->n; i++) {
    if (asprintf(&own[i], "%s=%s", x->param[i].name, x->param[i].value[f->at[i]]) < 0) starved = true, own[i] = NULL;
    x->arg[n++] = own[i];
  }
  mgrid_plan *p = starved ? mgrid_null_oom(err) : mgrid_runtime_plan(x->rt, x->c->world, x->c->params, n, x->arg, err);
  for (size_t i = 0; i < x->n; i++) free(own[i]);
  return p;
}

/* Find the cost of a plan. Under `time` a step costs what its price says. */
static mgrid_status cost_of(search *x, const mgrid_plan *p, found *f, mgrid_error *err) {
  mgrid_traffic *t = NULL;
  double         seconds = -1;
  bool           priced = x->goal == GOAL_TIME;
  mgrid_status   s = cli_sending_of(x->c, x->rt, p, &x->sends, &t, priced ? &seconds : NULL, err);
  if (!s) s = mgrid_cost_of(&x->costing, p, t, &f->cost, err);
  if (!s && seconds >= 0) f->cost.seconds = seconds;
  if (!s && x->goal == GOAL_POLICY) s = value_of(x, p, &f->cost, &f->value, err);
  mgrid_traffic_free(t);
  return s;
}

/* Evaluate the recipe with these values; a plan that it refuses, or whose step it does, is no candidate. The present values
** are evaluated once. False: an error that ends the search, or its time is over. */
static bool evaluate(search *x, found *f, bool *is_plan, mgrid_error *err) {
  mgrid_error why = MGRID_ERROR_INIT;
  bool        is_now = cli_search_is_now(x, f);
  if (is_now && x->looked) return *is_plan = x->has_now, *f = x->now, true;
  if (x->until > 0 && x->looked && mgrid_now() > x->until) return x->stopped = true, false;
  mgrid_plan *p = plan_of(x, f, &why);
  bool        decided = x->sends.by != SENDING_UNDECIDED, costs = p && cost_of(x, p, f, &why) == MGRID_OK;
  *is_plan = costs;
  x->evaluated++;
  if (!costs) {
    bool refused = why.status / 100 == MGRID_REFUSED / 100 && (!p || (decided && x->sends.by == SENDING_STEP));
    x->refused++;
    if (!x->refusal.status) x->refusal = why;
    mgrid_plan_free(p);
    return refused || mgrid_error_pass(err, &why) == MGRID_OK;
  }
  mgrid_plan_free(p);
  if (is_now) x->now = *f, x->has_now = true;
  keep(x, f);
  return true;
}

/* Evaluate the present values first: they are always in the table, before others that cost as much. */
static bool evaluate_now(search *x, mgrid_error *err) {
  found f = x->now;
  bool  is_plan, done = evaluate(x, &f, &is_plan, err);
  x->looked = true;
  return done;
}

/* If others are better than all ten, put the present values behind them. */
static void show_now(search *x) {
  bool there = !x->has_now;
  for (size_t i = 0; i < x->nbest; i++) there |= cli_search_is_now(x, &x->best[i]);
  if (!there) x->best[x->nbest++] = x->now;
}

/* The next combination of all but `fixed`; false: that was the last. */
static bool next_values(const search *x, found *f, int fixed) {
  for (size_t i = 0; i < x->n; i++) {
    if ((int)i == fixed) continue;
    if (++f->at[i] < x->param[i].n) return true;
    f->at[i] = 0;
  }
  return false;
}

static bool search_whole(search *x, mgrid_error *err) {
  found f = { .at = { 0 } };
  bool  is_plan;
  do
    if (!evaluate(x, &f, &is_plan, err)) return false;
  while (next_values(x, &f, -1));
  return true;
}

/* From a start, take the best change of one parameter as long as it is better. */
static bool climb(search *x, found start, mgrid_error *err) {
  bool is_plan, was;
  if (!evaluate(x, &start, &was, err)) return false;
  for (int round = 0; round < ROUNDS; round++) {
    found next = start;
    bool  better = false;
    for (size_t i = 0; i < x->n; i++) {
      size_t step = x->param[i].n > 4096 ? x->param[i].n / 4096 : 1;
      for (size_t v = 0; v < x->param[i].n; v += step) {
        found f = start;
        f.at[i] = v;
        if (v == start.at[i]) continue;
        if (!evaluate(x, &f, &is_plan, err)) return false;
        if (!is_plan || (was && compare(x, &f, &next) >= 0)) continue;
        next = f;
        better = was = true;
      }
    }
    if (!better) return true;
    start = next;
  }
  return true;
}

static bool search_some(search *x, mgrid_error *err) {
  for (size_t k = 0; k < STARTS; k++) {
    found f = { .at = { 0 } };
    for (size_t i = 0; i < x->n; i++) f.at[i] = k * x->param[i].n / STARTS;
    if (!climb(x, f, err)) return false;
  }
  return true;
}

/* ------------------------------------------------------------- branch and bound
** Sizes alone, without the order, give a bound on the bytes of every order: cost.c. So the sizes are taken in the order of
** their bounds, and all orders of each are evaluated, until the bound of the next ones is above the best found. */

typedef struct branch {
  mgrid_cost bound; /* its .bytes are these */
  found      at;
} branch;

static int by_bound(const void *a, const void *b) {
  return mgrid_cost_compare(&((const branch *)a)->bound, &((const branch *)b)->bound, false);
}

/* Evaluate these sizes with one order after the other until the recipe accepts one; its bound is that of all. */
static bool bound_of(search *x, branch *b, bool *any, mgrid_error *err) {
  found f = b->at;
  *any = false;
  for (size_t k = 0; k < x->param[x->order].n && !*any; k++) {
    f.at[x->order] = k;
    if (!evaluate(x, &f, any, err)) return false;
  }
  b->bound = f.cost;
  memcpy(b->bound.bytes, f.cost.bound, sizeof b->bound.bytes);
  return true;
}

/* All orders of some sizes. */
static bool search_orders(search *x, found f, mgrid_error *err) {
  bool is_plan;
  for (size_t k = 0; k < x->param[x->order].n; k++) {
    f.at[x->order] = k;
    if (!evaluate(x, &f, &is_plan, err)) return false;
  }
  return true;
}

/* Some orders of some sizes, evenly: where all are too many. */
static bool sample_orders(search *x, found f, mgrid_error *err) {
  enum { SOME = 2000 };
  size_t n = x->param[x->order].n, step = n > SOME ? n / SOME : 1;
  bool   is_plan;
  for (size_t k = 0; k < n; k += step) {
    f.at[x->order] = k;
    if (!evaluate(x, &f, &is_plan, err)) return false;
  }
  return true;
}

static bool search_branches(search *x, branch *b, size_t n, mgrid_error *err) {
  size_t kept = 0, orders = x->param[x->order].n;
  for (size_t i = 0; i < n; i++) {
    bool any;
    if (!bound_of(x, &b[i], &any, err)) return false;
    if (any) b[kept++] = b[i];
  }
  qsort(b, kept, sizeof *b, by_bound);
  x->whole = !x->sampled;
  for (size_t i = 0; i < kept; i++) {
    if (x->nbest && mgrid_cost_compare(&b[i].bound, &x->best[0].cost, false) > 0) {
      x->pruned = (double)(kept - i) * (double)orders;
      return true;
    }
    bool all = x->evaluated + (int64_t)orders <= MANY;
    if (!(all ? search_orders(x, b[i].at, err) : sample_orders(x, b[i].at, err))) return false;
    if ((!all || x->sampled) && x->least.n == 0) x->least = b[i].bound; /* the first of them is the least */
    x->whole &= all;
  }
  return true;
}

/* False, with *fits false: there are too many sizes. */
static bool search_bounded(search *x, bool *fits, mgrid_error *err) {
  double  sizes = x->order < 0 ? HUGE_VAL : x->all / (double)x->param[x->order].n;
  branch *b = NULL;
  size_t  n = 0;
  found   f = { .at = { 0 } };
  *fits = x->goal == GOAL_BYTES && sizes <= WHOLE;
  if (!*fits) return false;
  if (!(b = malloc((size_t)sizes * sizeof *b))) return mgrid_oom(err), false;
  do b[n++] = (branch){ .at = f };
  while (next_values(x, &f, x->order));
  bool done = search_branches(x, b, n, err);
  free(b);
  return done;
}

/* ------------------------------------------------------------------------ run */

/* The machine of the command line, or that of the recipe, which a plan has. */
static mgrid_status find_machine(search *x, mgrid_error *err) {
  if (!x->c->machine) {
    mgrid_plan *p = mgrid_runtime_plan(x->rt, x->c->world, x->c->params, x->nfixed, x->arg, NULL);
    x->own = mgrid_machine_ref(mgrid_plan_machine(p));
    mgrid_plan_free(p);
  }
  x->costing.m = x->own ? x->own : cli_required_machine(x->c, NULL, err);
  return x->costing.m ? mgrid_machine_fits(x->costing.m, x->c->world, err) : err->status;
}

/* bytes, time, or a policy of the recipe. */
static mgrid_status choose_goal(search *x, const json_t *info, mgrid_error *err) {
  enum { NAMES = 64 };
  const char   *name = x->s->objective, *known[NAMES + 2] = { "bytes", "time" };
  size_t        i, n = 2;
  const json_t *policy;
  char          tail[512];
  x->goal = !name || strcmp(name, "bytes") == 0 ? GOAL_BYTES : strcmp(name, "time") == 0 ? GOAL_TIME : GOAL_POLICY;
  if (x->goal != GOAL_POLICY) return MGRID_OK;
  json_array_foreach(json_object_get(info, "policies"), i, policy) {
    const char *one = json_string_value(json_object_get(policy, "name"));
    if (one && strcmp(one, name) == 0) return MGRID_OK;
    if (one && n < NAMES + 2) known[n++] = one;
  }
  mgrid_suggest(tail, sizeof tail, name, known, n);
  return mgrid_fail(err, MGRID_USAGE, "--objective is bytes, time or a policy of the recipe, not '%s'%s", name, tail);
}

static mgrid_status prepare(search *x, json_t **info, mgrid_error *err) {
  const cli_search *s = x->s;
  mgrid_status      status = mgrid_runtime_info_json(x->rt, info, err);
  if (!status) status = choose_goal(x, *info, err);
  if (!status) status = cli_search_free(x, json_object_get(*info, "params"), err);
  if (!status) status = find_machine(x, err);
  if (!status && x->n == 0 && !mgrid_assignable(x->costing.m, x->c->world))
    status = mgrid_fail(err, MGRID_USAGE,
                        "--search order: nothing is free: the recipe has no text parameter with an order of dims, as "
                        "\"tp-dp-pp\", and none has a list of values, as tp=2,4,8");
  if (!status) status = cli_sending_begin(&x->sends, s->traffic, x->c->world, err);
  x->costing.world = x->c->world;
  x->costing.timed = x->goal != GOAL_BYTES;
  bool known = false;
  for (size_t l = 0; !status && l < mgrid_cost_levels(x->costing.m); l++)
    known |= x->costing.m->tier[l].link.bandwidth > 0;
  if (!status && x->goal == GOAL_TIME && !known)
    status = mgrid_fail(err, MGRID_USAGE, "--objective time needs bandwidths, as in node:4[400GB/s]");
  return status;
}

/* Cost of the best plan on another machine. */
static mgrid_status cost_on(search *x, const mgrid_machine_model *m, const mgrid_plan *p, const mgrid_traffic *t,
                            mgrid_cost *out, mgrid_error *err) {
  mgrid_costing c = { .m = m, .world = x->c->world, .timed = x->costing.timed };
  mgrid_status  s = m ? mgrid_cost_of(&c, p, t, out, err) : MGRID_NO_MEMORY;
  mgrid_costing_free(&c);
  return s;
}

/* The price of the step with these values; -1: not known. */
static mgrid_status seconds_of(search *x, const found *f, double *seconds, mgrid_error *err) {
  mgrid_traffic *t = NULL;
  mgrid_plan    *p = plan_of(x, f, err);
  mgrid_status   s = p ? cli_sending_of(x->c, x->rt, p, &x->sends, &t, seconds, err) : err->status;
  mgrid_traffic_free(t);
  mgrid_plan_free(p);
  return s;
}

/* Fewer bytes between the farthest domains may take longer, if more go between nearer ones: price the first and the present
** values. */
static mgrid_status compare_times(search *x, mgrid_error *err) {
  x->first_seconds = x->now_seconds = -1;
  if (x->goal != GOAL_BYTES || x->sends.by != SENDING_STEP || !x->has_now || x->stopped) return MGRID_OK;
  if (cli_search_is_now(x, &x->best[0])) return MGRID_OK;
  mgrid_status s = seconds_of(x, &x->best[0], &x->first_seconds, err);
  return s ? s : seconds_of(x, &x->now, &x->now_seconds, err);
}

/* Find hosts for the best plan. */
static mgrid_status assign_hosts(search *x, mgrid_error *err) {
  if (!mgrid_assignable(x->costing.m, x->c->world)) return MGRID_OK;
  mgrid_plan          *p = plan_of(x, &x->best[0], err);
  mgrid_machine_model *plain = NULL;
  mgrid_traffic       *t = NULL;
  mgrid_status         s = p ? cli_sending_of(x->c, x->rt, p, &x->sends, &t, NULL, err) : err->status;
  if (!s) s = mgrid_assign(x->costing.m, p, t, &x->hosts, err);
  if (!s) x->with_hosts = mgrid_assigned(x->costing.m, &x->hosts, x->hosts.host, x->c->world, err);
  if (!s) plain = mgrid_assigned(x->costing.m, &x->hosts, NULL, x->c->world, err);
  if (!s) s = cost_on(x, x->costing.m, p, t, &x->arrival, err);
  if (!s) s = cost_on(x, plain, p, t, &x->sorted, err);
  if (!s) s = cost_on(x, x->with_hosts, p, t, &x->assigned, err);
  mgrid_machine_free(plain);
  mgrid_traffic_free(t);
  mgrid_plan_free(p);
  return s;
}

static mgrid_status find(search *x, mgrid_error *err) {
  bool fits = true;
  x->all = 1;
  for (size_t i = 0; i < x->n; i++) x->all *= (double)x->param[i].n;
  x->whole = x->all <= WHOLE && !x->sampled;
  cli_progress(x->c, "evaluating %.0f combinations", x->all);
  bool done = evaluate_now(x, err);
  if (done) done = x->whole ? search_whole(x, err) : search_bounded(x, &fits, err);
  if (!fits) done = search_some(x, err);
  cli_progress_end();
  if (!done && !x->stopped) return err->status;
  x->whole &= !x->stopped;
  if (x->nbest == 0 && x->stopped)
    return mgrid_fail(err, MGRID_LIMIT,
                      "--limit %" PRId64 ": the recipe refuses all %" PRId64 " of the %.0f "
                      "combinations that were evaluated; the first: %s",
                      x->s->limit, x->evaluated, x->all, x->refusal.message);
  if (x->nbest == 0)
    return mgrid_fail(err, MGRID_REFUSED, "the recipe refuses all %" PRId64 " combinations; the first: %s",
                      x->evaluated, x->refusal.message);
  show_now(x);
  mgrid_status s = compare_times(x, err);
  if (!s) s = assign_hosts(x, err);
  const mgrid_machine_model *m = x->with_hosts ? x->with_hosts : x->costing.m;
  if (!s && x->s->output) s = cli_write_ranks(x->s->output, m, x->c->world, err);
  if (s) return s;
  if (x->s->json && (s = cli_search_json(x, err))) return s;
  if (!x->s->json) cli_search_text(x);
  if (!x->stopped) return MGRID_OK;
  return mgrid_fail(err, MGRID_LIMIT,
                    "--limit %" PRId64 ": %" PRId64 " of %.0f combinations were evaluated; the table has "
                    "the best of them",
                    x->s->limit, x->evaluated, x->all);
}

mgrid_status cli_search_order(const cli_search *s) {
  search      x = { .s = s, .c = s->c, .refusal = MGRID_ERROR_INIT };
  mgrid_error err = MGRID_ERROR_INIT;
  json_t     *info = NULL;
  if (s->limit) x.until = mgrid_now() + (double)s->limit;
  x.rt = cli_load(s->c, &err);
  mgrid_status status = x.rt ? prepare(&x, &info, &err) : err.status;
  if (!status) status = find(&x, &err);
  if (status) cli_say(s->c, &err);
  for (size_t i = 0; i < x.n; i++) {
    for (size_t k = 0; k < x.param[i].n; k++) free(x.param[i].value[k]);
    free(x.param[i].value);
  }
  mgrid_costing_free(&x.costing);
  mgrid_machine_free(x.own);
  mgrid_machine_free(x.with_hosts);
  free(x.hosts.host);
  cli_sending_end(&x.sends);
  json_decref(info);
  mgrid_runtime_free(x.rt);
  return cli_finish(s->c, status);
}
