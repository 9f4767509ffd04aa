/* SPDX-License-Identifier: MIT
**
** search.c - the order that costs least. Free are: a text parameter that holds an order of dims, all of whose orders are
** candidates, or those in a list, order=tp-dp-pp,dp-tp-pp; and each parameter that has a list of values, tp=2,4,8. Up to
** WHOLE combinations are all evaluated; of more, a local search from several starts changes one thing at a time.
*/
#include "machine/command/search.h"

#include "machine/assign.h"
#include "machine/command/ranks.h"
#include "plan/plan.h"
#include "recipe/runtime.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

enum { WHOLE = 50000, DIMS = 10, BEST = 10, FREE = 16, STARTS = 6, ROUNDS = 200, SHOWN = 80 };

typedef struct free_param {
  const char *name;
  size_t      n;
  char      **value;
} free_param;

typedef struct found {
  mgrid_cost cost;
  size_t     at[FREE]; /* the value of each parameter */
} found;

typedef struct search {
  const cli_search    *s;
  const cli           *c;
  mgrid_runtime       *rt;
  const mgrid_traffic *traffic; /* of the command line */
  mgrid_costing        costing;
  bool                 timed;
  size_t               n;
  free_param           param[FREE];
  const char          *arg[CLI_ARGS_MAX + FREE]; /* those that are fixed, then the free ones */
  size_t               nfixed;
  size_t               nbest;
  found                best[BEST];
  int64_t              evaluated, refused;
  mgrid_machine_model *own;                       /* the machine, if the recipe says it */
  mgrid_assignment     hosts;                     /* of the best plan; host NULL: there is nothing to assign */
  mgrid_machine_model *with_hosts;                /* the machine with its ranks on them */
  mgrid_cost           arrival, sorted, assigned; /* as they are listed, in the order of places, as found */
  mgrid_error          refusal;                   /* the first one */
  bool                 whole;
} search;

/* ------------------------------------------------------------------ candidates */

static bool add_value(free_param *p, const char *text, size_t len) {
  char **more = mgrid_grow(p->value, p->n, sizeof *more), *own = strndup(text, len);
  if (more) p->value = more;
  if (!more || !own) return free(own), false;
  p->value[p->n++] = own;
  return true;
}

/* Add all orders of the words of "tp-dp-pp", each once. */
static mgrid_status add_orders(free_param *p, const char *order, mgrid_error *err) {
  char  *copy = mgrid_strdup(order), *word[DIMS + 1], *save = NULL;
  size_t n = 0, at[DIMS] = { 0 };
  for (char *w = copy ? strtok_r(copy, "-", &save) : NULL; w && n <= DIMS; w = strtok_r(NULL, "-", &save))
    word[n++] = w;
  if (copy && n > DIMS) {
    free(copy);
    return mgrid_fail(err, MGRID_LIMIT, "order '%.60s' has more than %d dims; list orders: %s=A,B,C", order, DIMS,
                      p->name);
  }
  bool   whole = copy != NULL;
  size_t all = 1;
  for (size_t i = 2; i <= n; i++) all *= i;
  if (all > WHOLE) all = WHOLE; /* the rest is reached by a list alone */
  for (size_t k = 0; k < all && whole; k++) {
    char   text[256] = "";
    bool   used[DIMS] = { false };
    size_t left = k;
    for (size_t i = 0, radix = n; i < n; i++, radix--) {
      at[i] = left % radix;
      left /= radix;
      size_t which = 0;
      for (size_t skip = at[i]; used[which] || skip > 0; which++) skip -= !used[which];
      used[which] = true;
      snprintf(text + strlen(text), sizeof text - strlen(text), "%s%s", i ? "-" : "", word[which]);
    }
    whole = add_value(p, text, strlen(text));
  }
  free(copy);
  return whole ? MGRID_OK : mgrid_oom(err);
}

static mgrid_status add_list(free_param *p, const char *list, mgrid_error *err) {
  for (const char *at = list;; at++) {
    size_t len = strcspn(at, ",");
    if (!add_value(p, at, len)) return mgrid_oom(err);
    at += len;
    if (!*at) return MGRID_OK;
  }
}

static bool is_order(const char *text) {
  const char *dash = text ? strchr(text, '-') : NULL;
  return dash && dash > text && dash[1]
         && text[strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-")] == '\0';
}

/* The parameter of the recipe with this name or alias; NULL: there is none. */
static const json_t *declared(const json_t *params, const char *name, size_t len) {
  size_t        i, k;
  const json_t *one, *alias;
  json_array_foreach(params, i, one) {
    const char *full = json_string_value(json_object_get(one, "name"));
    if (full && strlen(full) == len && memcmp(full, name, len) == 0) return one;
    json_array_foreach(json_object_get(one, "aliases"), k, alias) {
      const char *other = json_string_value(alias);
      if (other && strlen(other) == len && memcmp(other, name, len) == 0) return one;
    }
  }
  return NULL;
}

static const char *text_at(const json_t *object, const char *key) {
  const char *text = json_string_value(json_object_get(object, key));
  return text ? text : "";
}

/* Choose what is free: the lists on the command line, and an order that is not given. */
static mgrid_status choose_free(search *x, const json_t *params, mgrid_error *err) {
  mgrid_status  s = MGRID_OK;
  bool          ordered = false;
  size_t        i;
  const json_t *one;
  for (size_t k = 0; k < x->c->nargs && !s; k++) {
    const char   *arg = x->c->args[k], *eq = strchr(arg, '=');
    const json_t *p = eq ? declared(params, arg, (size_t)(eq - arg)) : NULL;
    bool list = p && strchr(eq, ',') && strcmp(text_at(p, "kind"), "list") != 0 && *eq && eq[1] != '{' && eq[1] != '[';
    ordered |= p && is_order(text_at(p, "default"));
    if (!list) {
      x->arg[x->nfixed++] = arg;
      continue;
    }
    if (x->n == FREE) return mgrid_fail(err, MGRID_LIMIT, "at most %d parameters are free", FREE);
    x->param[x->n].name = text_at(p, "name");
    s = add_list(&x->param[x->n++], eq + 1, err);
  }
  json_array_foreach(params, i, one) {
    if (s || ordered || x->n == FREE || !is_order(text_at(one, "default"))) continue;
    const char *kind = text_at(one, "kind");
    if (strcmp(kind, "text") != 0 && strcmp(kind, "order") != 0) continue;
    ordered = true;
    x->param[x->n].name = text_at(one, "name");
    s = add_orders(&x->param[x->n++], text_at(one, "default"), err);
  }
  return s;
}

/* ------------------------------------------------------------------ evaluation */

/* Keep one among the best, if it is. Equal costs keep the order in which they were found. */
static void keep(search *x, const found *f) {
  size_t at = x->nbest;
  for (size_t i = 0; i < x->nbest; i++)
    if (memcmp(x->best[i].at, f->at, sizeof f->at) == 0) return;
  while (at > 0 && mgrid_cost_compare(&f->cost, &x->best[at - 1].cost, x->timed) < 0) at--;
  if (at == BEST) return;
  size_t kept = x->nbest < BEST ? x->nbest++ : BEST - 1;
  memmove(&x->best[at + 1], &x->best[at], (kept - at) * sizeof *x->best);
  x->best[at] = *f;
}

/* Evaluate the recipe with these values; a plan that it refuses is no candidate. False: an error that ends the search. */
static bool evaluate(search *x, found *f, bool *is_plan, mgrid_error *err) {
  mgrid_error why = MGRID_ERROR_INIT;
  char       *own[FREE] = { NULL };
  bool        starved = false;
  size_t      n = x->nfixed;
  for (size_t i = 0; i < x->n; i++) {
    starved |= asprintf(&own[i], "%s=%s", x->param[i].name, x->param[i].value[f->at[i]]) < 0;
    x->arg[n++] = own[i];
  }
  mgrid_plan *p = starved ? NULL : mgrid_runtime_plan_file(x->rt, x->c->world, x->c->params, n, x->arg, &why);
  for (size_t i = 0; i < x->n; i++) free(own[i]);
  if (starved) return mgrid_oom(err), false;
  *is_plan = p != NULL;
  x->evaluated++;
  if (!p) {
    x->refused++;
    if (!x->refusal.status) x->refusal = why;
    return why.status / 100 == MGRID_REFUSED / 100 || mgrid_error_pass(err, &why) == MGRID_OK;
  }
  const mgrid_traffic *t = x->traffic ? x->traffic : mgrid_plan_traffic(p);
  bool                 done = mgrid_cost_of(&x->costing, p, t, &f->cost, err) == MGRID_OK;
  mgrid_plan_free(p);
  if (done) keep(x, f);
  return done;
}

static bool search_whole(search *x, mgrid_error *err) {
  found f = { .at = { 0 } };
  for (;;) {
    bool   is_plan;
    size_t i = 0;
    if (!evaluate(x, &f, &is_plan, err)) return false;
    while (i < x->n && ++f.at[i] == x->param[i].n) f.at[i++] = 0;
    if (i == x->n) return true;
  }
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
        if (!is_plan || (was && mgrid_cost_compare(&f.cost, &next.cost, x->timed) >= 0)) continue;
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

/* ----------------------------------------------------------------------- print */

/* The level whose bytes are the number of a cost: the farthest that some of the best cross. */
static size_t level_of(const search *x) {
  for (size_t l = 0; l < x->best[0].cost.n; l++)
    for (size_t i = 0; i < x->nbest; i++)
      if (x->best[i].cost.bytes[l] > 0) return l;
  return 0;
}

static double cost_of(const search *x, const found *f) {
  return x->timed ? f->cost.seconds : f->cost.bytes[level_of(x)];
}

/* The level whose bytes tell assignments of hosts apart: the farthest that the order of arrival crosses. */
static size_t hosts_level(const search *x) {
  size_t l = 0;
  while (l + 1 < x->arrival.n && x->arrival.bytes[l] <= 0) l++;
  return l;
}

/* Which host takes which ranks: hosts in the order of their ranks, the place of each rank, and what three orders cost. */
static json_t *hosts_json(const search *x) {
  json_t *order = json_array(), *ranks = json_array();
  size_t  l = hosts_level(x);
  for (int64_t b = 0; b < x->hosts.blocks; b++) {
    const char *name = mgrid_machine_domain_name(x->costing.m, x->hosts.node, x->hosts.host[b]);
    json_array_append_new(order, name ? json_string(name) : json_integer(x->hosts.host[b]));
  }
  for (int64_t r = 0; r < x->c->world; r++)
    json_array_append_new(ranks, json_integer(mgrid_machine_at(x->with_hosts, r)));
  return json_pack("{sssfsfsfsfsoso}", "level", x->costing.m->tier[l].name, "arrival", x->arrival.bytes[l], "sorted",
                   x->sorted.bytes[l], "cost", x->assigned.bytes[l], "bound", x->assigned.bound[l], "order", order,
                   "ranks", ranks);
}

static mgrid_status print_json(const search *x, mgrid_error *err) {
  json_t    *best = json_array();
  mgrid_text t = { 0 };
  for (size_t i = 0; i < x->nbest; i++) {
    const found *f = &x->best[i];
    json_t      *params = json_object(), *levels = json_object(), *bounds = json_object();
    for (size_t k = 0; k < x->n; k++)
      json_object_set_new(params, x->param[k].name, json_string(x->param[k].value[f->at[k]]));
    for (size_t l = 0; l < f->cost.n; l++) {
      json_object_set_new(levels, x->costing.m->tier[l].name, json_real(f->cost.bytes[l]));
      json_object_set_new(bounds, x->costing.m->tier[l].name, json_real(f->cost.bound[l]));
    }
    json_t *one =
        json_pack("{sosfsoso}", "parameters", params, "cost", cost_of(x, f), "levels", levels, "bound", bounds);
    if (x->timed) json_object_set_new(one, "seconds", json_real(f->cost.seconds));
    json_array_append_new(best, one);
  }
  mgrid_machine_text(x->costing.m, &t);
  json_t *all = json_pack("{sssIsssssIsIsbso}", "machine", mgrid_text_chars(&t), "world", (json_int_t)x->c->world,
                          "objective", x->timed ? "time" : "bytes", "level", x->costing.m->tier[level_of(x)].name,
                          "evaluated", (json_int_t)x->evaluated, "refused", (json_int_t)x->refused, "exhaustive",
                          x->whole, "best", best);
  mgrid_text_free(&t);
  if (x->hosts.host) json_object_set_new(all, "hosts", hosts_json(x));
  mgrid_status s = cli_put_json(all, err);
  json_decref(all);
  return s;
}

static void print_text(const search *x) {
  char       b[64];
  mgrid_text t = { 0 };
  size_t     level = level_of(x);
  cli_show_machine(x->c, x->costing.m);
  mgrid_text_add(&t, "%" PRId64 " combination%s, %s%s", x->evaluated, mgrid_s_of(x->evaluated),
                 x->whole ? "all there are" : "by local search from several starts", x->refused ? ", of which " : "");
  if (x->refused) mgrid_text_add(&t, "%" PRId64 " refused", x->refused);
  cli_wrap(x->c, "evaluated", &t);
  printf("\n");
  for (size_t l = 0; l < x->best[0].cost.n; l++) printf("%12s", x->costing.m->tier[l].name);
  if (x->timed) printf("%12s", "seconds");
  printf("  parameters\n");
  for (size_t i = 0; i < x->nbest; i++) {
    const found *f = &x->best[i];
    for (size_t l = 0; l < f->cost.n; l++) printf("%12s", cli_bytes((int64_t)f->cost.bytes[l], b, sizeof b));
    if (x->timed) printf("%12.4g", f->cost.seconds);
    printf(" ");
    for (size_t k = 0; k < x->n; k++) printf(" %s=%s", x->param[k].name, x->param[k].value[f->at[k]]);
    printf("\n");
  }
  const mgrid_cost *first = &x->best[0].cost;
  mgrid_text_add(&t, "with the sizes of the best one, no order of ranks puts fewer than %s across a %s",
                 cli_bytes((int64_t)first->bound[level], b, sizeof b), x->costing.m->tier[level].name);
  if (first->bound[level] > 0) mgrid_text_add(&t, "; its gap is %.3g", first->bytes[level] / first->bound[level]);
  printf("\n");
  cli_wrap(x->c, "bound", &t);
  if (!x->hosts.host) return;
  size_t l = hosts_level(x);
  mgrid_text_add(&t, "%s across a %s, with the best parameters;", cli_bytes((int64_t)x->assigned.bytes[l], b, sizeof b),
                 x->costing.m->tier[l].name);
  mgrid_text_add(&t, " %s as the hosts are listed,", cli_bytes((int64_t)x->arrival.bytes[l], b, sizeof b));
  mgrid_text_add(&t, " %s in the order of places", cli_bytes((int64_t)x->sorted.bytes[l], b, sizeof b));
  cli_wrap(x->c, "hosts", &t);
}

/* ------------------------------------------------------------------------ run */

/* The machine of the command line, or that of the recipe, which a plan has. */
static mgrid_status find_machine(search *x, mgrid_error *err) {
  if (!x->c->machine) {
    mgrid_plan *p = mgrid_runtime_plan_file(x->rt, x->c->world, x->c->params, x->nfixed, x->arg, NULL);
    x->own = mgrid_machine_ref(mgrid_plan_machine(p));
    mgrid_plan_free(p);
  }
  x->costing.m = x->own ? x->own : cli_required_machine(x->c, NULL, err);
  return x->costing.m ? mgrid_machine_fits(x->costing.m, x->c->world, err) : err->status;
}

static mgrid_status prepare(search *x, json_t **info, mgrid_traffic **traffic, mgrid_error *err) {
  const cli_search *s = x->s;
  mgrid_status      status = mgrid_runtime_info_json(x->rt, info, err);
  if (!status) status = choose_free(x, json_object_get(*info, "params"), err);
  if (!status) status = find_machine(x, err);
  if (!status && x->n == 0 && !mgrid_assignable(x->costing.m, x->c->world))
    status = mgrid_fail(err, MGRID_USAGE,
                        "--search order: nothing is free: the recipe has no text parameter with an order of dims, as "
                        "\"tp-dp-pp\", and none has a list of values, as tp=2,4,8");
  if (!status && s->traffic) {
    *traffic = mgrid_traffic_new(x->c->world, err);
    status = *traffic ? mgrid_traffic_parse(*traffic, s->traffic, err) : MGRID_NO_MEMORY;
    x->traffic = *traffic;
  }
  x->costing.world = x->c->world;
  x->costing.timed = x->timed;
  bool known = false;
  for (size_t l = 0; !status && l < mgrid_cost_levels(x->costing.m); l++)
    known |= x->costing.m->tier[l].link.bandwidth > 0;
  if (!status && x->timed && !known)
    status = mgrid_fail(err, MGRID_USAGE, "--objective time needs bandwidths, as in node:4[400GB/s]");
  return status;
}

/* Cost of the best plan on another machine. */
static mgrid_status cost_on(search *x, const mgrid_machine_model *m, const mgrid_plan *p, mgrid_cost *out,
                            mgrid_error *err) {
  mgrid_costing        c = { .m = m, .world = x->c->world, .timed = x->timed };
  const mgrid_traffic *t = x->traffic ? x->traffic : mgrid_plan_traffic(p);
  mgrid_status         s = m ? mgrid_cost_of(&c, p, t, out, err) : MGRID_NO_MEMORY;
  mgrid_costing_free(&c);
  return s;
}

/* Find hosts for the best plan. */
static mgrid_status assign_hosts(search *x, mgrid_error *err) {
  char  *own[FREE] = { NULL };
  size_t n = x->nfixed;
  if (!mgrid_assignable(x->costing.m, x->c->world)) return MGRID_OK;
  for (size_t i = 0; i < x->n; i++) {
    if (asprintf(&own[i], "%s=%s", x->param[i].name, x->param[i].value[x->best[0].at[i]]) < 0) own[i] = NULL;
    x->arg[n++] = own[i];
  }
  mgrid_plan          *p = mgrid_runtime_plan_file(x->rt, x->c->world, x->c->params, n, x->arg, err);
  mgrid_machine_model *plain = NULL;
  mgrid_status s = p ? mgrid_assign(x->costing.m, p, x->traffic ? x->traffic : mgrid_plan_traffic(p), &x->hosts, err)
                     : err->status;
  if (!s) x->with_hosts = mgrid_assigned(x->costing.m, &x->hosts, x->hosts.host, x->c->world, err);
  if (!s) plain = mgrid_assigned(x->costing.m, &x->hosts, NULL, x->c->world, err);
  if (!s) s = cost_on(x, x->costing.m, p, &x->arrival, err);
  if (!s) s = cost_on(x, plain, p, &x->sorted, err);
  if (!s) s = cost_on(x, x->with_hosts, p, &x->assigned, err);
  for (size_t i = 0; i < x->n; i++) free(own[i]);
  mgrid_machine_free(plain);
  mgrid_plan_free(p);
  return s;
}

static mgrid_status find(search *x, mgrid_error *err) {
  double all = 1;
  for (size_t i = 0; i < x->n; i++) all *= (double)x->param[i].n;
  x->whole = all <= WHOLE;
  cli_progress(x->c, "evaluating %.0f combinations", all);
  bool done = x->whole ? search_whole(x, err) : search_some(x, err);
  cli_progress_end();
  if (!done) return err->status;
  if (x->nbest == 0)
    return mgrid_fail(err, MGRID_REFUSED, "the recipe refuses all %" PRId64 " combinations; the first: %s",
                      x->evaluated, x->refusal.message);
  mgrid_status               s = assign_hosts(x, err);
  const mgrid_machine_model *m = x->with_hosts ? x->with_hosts : x->costing.m;
  if (!s && x->s->output) s = cli_write_ranks(x->s->output, m, x->c->world, err);
  if (s) return s;
  if (x->s->json) return print_json(x, err);
  print_text(x);
  return MGRID_OK;
}

mgrid_status cli_search_order(const cli_search *s) {
  search x = {
    .s = s, .c = s->c, .refusal = MGRID_ERROR_INIT, .timed = s->objective && strcmp(s->objective, "time") == 0
  };
  mgrid_error    err = MGRID_ERROR_INIT;
  mgrid_traffic *traffic = NULL;
  json_t        *info = NULL;
  x.rt = cli_load(s->c, &err);
  mgrid_status status = x.rt ? prepare(&x, &info, &traffic, &err) : err.status;
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
  mgrid_traffic_free(traffic);
  json_decref(info);
  mgrid_runtime_free(x.rt);
  return cli_finish(s->c, status);
}
