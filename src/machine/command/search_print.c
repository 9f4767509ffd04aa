/* SPDX-License-Identifier: MIT
**
** search_print.c - the best that place --search order found, as text and as JSON.
*/
#include "machine/command/searching.h"
#include "plan/json.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* The level whose bytes are the number of a cost: the farthest that some of the best cross. */
static size_t level_of(const search *x) {
  for (size_t l = 0; l < x->best[0].cost.n; l++)
    for (size_t i = 0; i < x->nbest; i++)
      if (x->best[i].cost.bytes[l] > 0) return l;
  return 0;
}

static double cost_of(const search *x, const found *f) {
  return x->goal == GOAL_POLICY ? f->value : x->goal == GOAL_TIME ? f->cost.seconds : f->cost.bytes[level_of(x)];
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
  return mgrid_json_pack("{sssfsfsfsfsoso}", "level", x->costing.m->tier[l].name, "arrival", x->arrival.bytes[l],
                         "sorted", x->sorted.bytes[l], "cost", x->assigned.bytes[l], "bound", x->assigned.bound[l],
                         "order", order, "ranks", ranks);
}

mgrid_status cli_search_json(const search *x, mgrid_error *err) {
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
        mgrid_json_pack("{sosfsoso}", "parameters", params, "cost", cost_of(x, f), "levels", levels, "bound", bounds);
    if (x->costing.timed) json_object_set_new(one, "seconds", json_real(f->cost.seconds));
    if (cli_search_is_now(x, f)) json_object_set_new(one, "present", json_true());
    json_array_append_new(best, one);
  }
  mgrid_machine_text(x->costing.m, &t);
  json_t *all = mgrid_json_pack("{sssIsssssIsIsbso}", "machine", mgrid_text_chars(&t), "world", (json_int_t)x->c->world,
                                "objective", x->s->objective ? x->s->objective : "bytes", "level",
                                x->costing.m->tier[level_of(x)].name, "evaluated", (json_int_t)x->evaluated, "refused",
                                (json_int_t)x->refused, "exhaustive", x->whole, "best", best);
  t.len = 0;
  cli_sending_text(&x->sends, &t);
  json_object_set_new(all, "traffic", json_string(cli_sending_name(&x->sends)));
  if (x->sends.by == SENDING_ASSUMED) json_object_set_new(all, "assumed", json_string(mgrid_text_chars(&t)));
  if (x->stopped) json_object_set_new(all, "stopped", json_true());
  if (x->now_seconds >= 0)
    json_object_set_new(all, "step_seconds",
                        mgrid_json_pack("{sfsf}", "first", x->first_seconds, "present", x->now_seconds));
  mgrid_text_free(&t);
  if (x->pruned > 0) json_object_set_new(all, "pruned", json_real(x->pruned));
  if (x->least.n) json_object_set_new(all, "bound", json_real(x->least.bound[level_of(x)]));
  if (x->hosts.host) json_object_set_new(all, "hosts", hosts_json(x));
  mgrid_status s = cli_put_json(all, err);
  json_decref(all);
  return s;
}

void cli_search_text(const search *x) {
  char       b[64];
  mgrid_text t = { 0 };
  size_t     level = level_of(x);
  if (x->sends.by == SENDING_ASSUMED) mgrid_text_str(&t, "assumed: ");
  cli_sending_text(&x->sends, &t);
  cli_wrap(x->c, "traffic", &t);
  cli_show_machine(x->c, x->costing.m);
  mgrid_text_add(&t, "%" PRId64 " combination%s", x->evaluated, mgrid_s_of(x->evaluated));
  if (x->pruned > 0)
    mgrid_text_add(&t, "; the sizes of %.0f others cost more in every order", x->pruned);
  else if (x->whole)
    mgrid_text_str(&t, ", all there are");
  if (x->stopped)
    mgrid_text_add(&t, " of %.0f, stopped after %" PRId64 " s", x->all, x->s->limit);
  else if (!x->whole)
    mgrid_text_add(&t, "%s of %.0f", x->least.n ? ", some orders of each" : ", by local search from several starts,",
                   x->all);
  if (x->refused) mgrid_text_add(&t, ", of which %" PRId64 " refused", x->refused);
  cli_wrap(x->c, "evaluated", &t);
  printf("\n");
  for (size_t l = 0; l < x->best[0].cost.n; l++) printf("%12s", x->costing.m->tier[l].name);
  if (x->costing.timed) printf("%12s", "seconds");
  if (x->goal == GOAL_POLICY) printf("%12.11s", x->s->objective);
  printf("  parameters\n");
  for (size_t i = 0; i < x->nbest; i++) {
    const found *f = &x->best[i];
    for (size_t l = 0; l < f->cost.n; l++) printf("%12s", cli_bytes((int64_t)f->cost.bytes[l], b, sizeof b));
    if (x->costing.timed) printf("%12.4g", f->cost.seconds);
    if (x->goal == GOAL_POLICY) printf("%12.6g", f->value);
    printf(" ");
    for (size_t k = 0; k < x->n; k++) printf(" %s=%s", x->param[k].name, x->param[k].value[f->at[k]]);
    if (cli_search_is_now(x, f)) printf(x->listed ? "  (listed first)" : "  (present)");
    printf("\n");
  }
  if (x->now_seconds >= 0) {
    mgrid_text_add(&t, "moongrid step prices the first at %.4g s, and the present at %.4g s", x->first_seconds,
                   x->now_seconds);
    if (x->first_seconds > x->now_seconds) mgrid_text_str(&t, ", which is faster: --objective time finds the fastest");
    printf("\n");
    cli_wrap(x->c, "time", &t);
  }
  const mgrid_cost *first = &x->best[0].cost;
  mgrid_text_add(&t, "with the sizes of the best one, no order of ranks puts fewer than %s across a %s",
                 cli_bytes((int64_t)first->bound[level], b, sizeof b), x->costing.m->tier[level].name);
  if (first->bound[level] > 0) mgrid_text_add(&t, "; its gap is %.3g", first->bytes[level] / first->bound[level]);
  if (x->least.n) mgrid_text_add(&t, "; with any sizes %s", cli_bytes((int64_t)x->least.bound[level], b, sizeof b));
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
