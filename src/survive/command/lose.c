/* SPDX-License-Identifier: MIT
**
** lose.c - moongrid lose: what a job becomes when ranks, or whole nodes, are lost.
*/
#include "plan/json.h"
#include "survive/command/words.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Read "5,13" or "8..15" as numbers below `end`, which messages call `what`. */
static mgrid_status read_list(const char *text, const char *option, const char *what, int64_t end, int64_t **out,
                              size_t *n, mgrid_error *err) {
  int64_t *list = malloc((size_t)end * sizeof *list);
  if (!list) return mgrid_oom(err);
  *out = list;
  *n = 0;
  for (const char *p = text;; p++) {
    int64_t first, last;
    if (!cli_range(&p, &first, &last))
      return mgrid_fail(err, MGRID_USAGE, "%s '%.100s', character %zu: expected a %s, or a range such as 8..15", option,
                        text, (size_t)(p - text) + 1, what);
    if (last >= end)
      return mgrid_fail(err, MGRID_OUT_OF_RANGE, "%s: %s %" PRId64 " is out of range (0 to %" PRId64 ")", option, what,
                        last, end - 1);
    for (; first <= last; first++) {
      for (size_t i = 0; i < *n; i++)
        if (list[i] == first)
          return mgrid_fail(err, MGRID_DUPLICATE, "%s: %s %" PRId64 " is given twice", option, what, first);
      list[(*n)++] = first;
    }
    if (!*p) return MGRID_OK;
  }
}

static int by_key(const void *a, const void *b) { return mgrid_key_order(a, b); }

mgrid_status cli_lose_units(lose_units *u, const mgrid_machine_model *m, const char *level, int64_t world,
                            mgrid_error *err) {
  int64_t l = level ? mgrid_machine_require(m, level, err) : 0;
  if (l < 0) return err->status;
  *u = (lose_units){ .name = level ? level : "rank" };
  uint64_t *key = malloc((size_t)world * sizeof *key);
  u->start = malloc((size_t)(world + 1) * sizeof *u->start);
  u->rank = malloc((size_t)world * sizeof *u->rank);
  if (!key || !u->start || !u->rank) {
    free(key);
    cli_lose_units_free(u);
    return mgrid_oom(err);
  }
  for (int64_t r = 0; r < world; r++)
    key[r] = (uint64_t)(level ? mgrid_place_domain(m, (size_t)l, mgrid_machine_at(m, r)) : r) << 32 | (uint64_t)r;
  qsort(key, (size_t)world, sizeof *key, by_key);
  for (int64_t i = 0; i < world; i++) {
    if (i == 0 || key[i] >> 32 != key[i - 1] >> 32) u->start[u->n++] = i;
    u->rank[i] = (int64_t)(key[i] & UINT32_MAX);
  }
  u->start[u->n] = world;
  free(key);
  return MGRID_OK;
}

void cli_lose_units_free(lose_units *u) {
  free(u->start);
  free(u->rank);
  *u = (lose_units){ .n = 0 };
}

/* --------------------------------------------------------------------- hints */

/* Return the domain of a level that has all copies of some part of a tensor; -1: there is none. */
static int64_t together(const mgrid_machine_model *m, size_t level, const mgrid_tensor *t, int64_t world,
                        int64_t *first) {
  for (int64_t r = 0; r < world; r++) {
    mgrid_seat at;
    if (!mgrid_tensor_seat(t, r, &at) || at.copy != 0 || mgrid_tensor_elements(t, &at) == 0) continue;
    int64_t domain = mgrid_place_domain(m, level, mgrid_machine_at(m, r)), copy = 1;
    for (at.copy = 1; at.copy < t->copies; at.copy++, copy++)
      if (mgrid_place_domain(m, level, mgrid_machine_at(m, mgrid_tensor_rank(t, &at))) != domain) break;
    *first = r;
    if (copy == t->copies) return domain;
  }
  return -1;
}

/* Return a family with a group that has all holders of the part of a rank; NULL: there is none. */
static const char *family_of(const mgrid_plan *p, const mgrid_tensor *t, int64_t rank) {
  for (size_t i = 0; i < p->content.nentries; i++) {
    const mgrid_family *f = p->content.entry[i].family;
    int64_t             group, other, position;
    mgrid_seat          at;
    if (!mgrid_family_locate(f, rank, 0, &group, &position) || mgrid_family_size(f, group) != t->copies) continue;
    bool all = mgrid_tensor_seat(t, rank, &at);
    for (at.copy = 0; all && at.copy < t->copies; at.copy++)
      all = mgrid_family_locate(f, mgrid_tensor_rank(t, &at), 0, &other, &position) && other == group;
    if (all) return p->content.entry[i].name;
  }
  return NULL;
}

/* Say where the recipe has no on_lost, but a policy whose name is nearly that. */
static void hint_policy(mgrid_runtime *rt) {
  mgrid_text               t = { 0 };
  json_t                  *all = NULL, *one;
  size_t                   i;
  const char              *near = NULL;
  static const char *const wanted[] = { "on_lost" };
  if (!mgrid_runtime_describe(rt, true, mgrid_text_sink, &t, NULL) && !t.failed)
    all = json_loads(mgrid_text_chars(&t), 0, NULL);
  json_array_foreach(json_object_get(all, "policies"), i, one) {
    const char *name = json_string_value(json_object_get(one, "name"));
    if (name && strcmp(name, wanted[0]) == 0) break;
    if (name && mgrid_nearest(name, wanted, 1)) near = name;
  }
  if (near && i == json_array_size(json_object_get(all, "policies")))
    printf("hint           the recipe has a policy '%s', and none with the name on_lost\n", near);
  json_decref(all);
  mgrid_text_free(&t);
}

void cli_lose_hints(const lose_options *o, const mgrid_machine_model *m, const mgrid_plan *p) {
  int64_t level = m ? mgrid_machine_find(m, o->level ? o->level : "node") : -1, single = 0;
  size_t  n = mgrid_plan_ntensors(p);
  for (size_t i = 0; i < n; i++) single += mgrid_plan_tensor(p, mgrid_plan_tensor_name(p, i))->copies == 1;
  if (single)
    printf("hint           %" PRId64 " of %zu tensors %s one copy of each part: any rank that is lost loses some\n",
           single, n, single == 1 ? "has" : "have");
  for (size_t i = 0; i < n && level >= 0; i++) {
    const char         *name = mgrid_plan_tensor_name(p, i);
    const mgrid_tensor *t = mgrid_plan_tensor(p, name);
    mgrid_text          at = { 0 };
    int64_t             first = 0;
    int64_t             domain = t->copies > 1 ? together(m, (size_t)level, t, mgrid_plan_world(p), &first) : -1;
    if (domain < 0) continue;
    const char *family = family_of(p, t, first);
    mgrid_domain_text(m, (size_t)level, domain, &at);
    printf("hint           all %" PRId64 " copies of some of '%s' are in %s", t->copies, name, mgrid_text_chars(&at));
    if (family)
      printf("; spread(%s, machine.%s) in the recipe refuses such a layout", family,
             mgrid_level_name(m, (size_t)level));
    printf("\n");
    mgrid_text_free(&at);
    return; /* one is enough: the others are cut alike */
  }
}

/* ------------------------------------------------------------------------ run */

/* The number of the domain of a rank; 0 if there is no such level, an error that follows. */
static int64_t units_before(const mgrid_machine_model *m, const char *level, int64_t rank) {
  int64_t l = mgrid_machine_find(m, level);
  return l < 0 ? 0 : mgrid_place_domain(m, (size_t)l, mgrid_machine_at(m, rank));
}

static mgrid_status lose(const lose_options *o, const mgrid_machine_model *m, mgrid_losses *l, const mgrid_plan *p,
                         mgrid_error *err) {
  lose_units   u = { .n = 0 };
  int64_t      world = mgrid_plan_world(p), *unit = NULL, *lost = NULL;
  size_t       n = 0, nlost = 0;
  const char  *level = o->level ? o->level : o->nodes ? "node" : NULL;
  mgrid_status s = cli_lose_units(&u, m, level, world, err);
  if (!s && o->all) {
    s = cli_lose_all(o, &u, l, err);
  } else if (!s) {
    if (o->ranks)
      s = read_list(o->ranks, "--ranks", "rank", world, &unit, &n, err);
    else
      s = read_list(o->nodes, "--nodes", level, u.n, &unit, &n, err);
    lost = malloc((size_t)world * sizeof *lost);
    if (!s && !lost) s = mgrid_oom(err);
    for (size_t i = 0; i < n && !s; i++)
      for (int64_t k = o->ranks ? 0 : u.start[unit[i]]; k < (o->ranks ? 1 : u.start[unit[i] + 1]); k++)
        lost[nlost++] = o->ranks ? unit[i] : u.rank[k];
    mgrid_loss *x = s ? NULL : mgrid_loss_new(l, nlost, lost, err);
    if (!s && !x) s = err->status;
    cli_progress_end();
    if (!s && !o->json) cli_show_head(&o->cli, p, "", false);
    if (!s) s = mgrid_loss_print(x, o->json, cli_sink, stdout, err);
    mgrid_loss_free(x);
  }
  cli_progress_end();
  if (!s && !o->json && !o->how) hint_policy(l->rt);
  if (!s && !o->json) cli_lose_hints(o, m, p);
  cli_lose_units_free(&u);
  free(unit);
  free(lost);
  return s;
}

static mgrid_status show(const cli *c, mgrid_runtime *const rt[2], const mgrid_plan *const plan[2], mgrid_error *err) {
  const lose_options        *o = (const lose_options *)c;
  mgrid_losses_options       how = MGRID_LOSSES_OPTIONS_INIT;
  const mgrid_machine_model *m = o->nodes || o->level ? cli_required_machine(c, plan[0], err)
                                                      : cli_given_machine(c, plan[0], err);
  how.how = o->how, how.params = c->params;
  int64_t world = mgrid_plan_world(plan[0]), units = o->level && m ? 1 + units_before(m, o->level, world - 1) : world;
  if (o->all && !err->status) cli_lose_can_try(o, o->level, world, units, err);
  mgrid_losses *l = err->status ? NULL : mgrid_losses_new(rt[0], plan[0], c->nargs, c->args, &how, err);
  mgrid_status  s = l ? lose(o, m, l, plan[0], err) : err->status;
  mgrid_losses_free(l);
  return s;
}

static mgrid_status run(const cli_command *self, int argc, char **argv) {
  lose_options o = { .all = 0 };
  if (!cli_parse(&o.cli, self, argc, argv)) return o.cli.code;
  if (cli_needs(&o.cli, o.cli.world)) return MGRID_USAGE;
  if (cli_is_saved(&o.cli))
    return cli_usage(&o.cli, "a saved plan cannot be made for fewer ranks; lose takes the recipe");
  if (!o.ranks + !o.nodes + !o.all != 2)
    return cli_usage(&o.cli, "lose takes one of --ranks 5,13, --nodes 2 and --all 1");
  if (o.ranks && o.level) return cli_usage(&o.cli, "--level is for --nodes and --all");
  cli_progress(&o.cli, "planning for losses of %" PRId64 " ranks", o.cli.world);
  return cli_with_plans(&o.cli, NULL, show);
}

extern const cli_command command_lose;
const cli_command        command_lose = {
         .name = "lose",
         .takes = "RECIPE --world N [NAME=VALUE ...]",
         .does = "what the job becomes when ranks or nodes are lost",
         .usage = "moongrid lose RECIPE --world N [NAME=VALUE ...] --ranks 5,13 | --nodes 2 | --all 1|2\n"
                         "       [--level LEVEL] [--how ANSWER] [--machine M] [--json]",
         .about = "Decide what a job becomes when these ranks are lost. Its policy on_lost chooses: spares take their\n"
                         "places (spares = 2 in a recipe), or the survivors get the largest layout that the recipe accepts, or\n"
                         "the job stops. Print the communicators that stay, those that are made, the bytes that surviving\n"
                         "copies send, and the parts that have no copy left. --all tries each rank, or each pair, in turn.",
         .sample = "moongrid lose megatron --world 64 tp=4 pp=4 --ranks 5,13",
         .recipe = true,
         .options = { CLI_WORLD("ranks in the world"),
                      { "ranks", cli_text, offsetof(lose_options, ranks), "RANKS", .help = "lose these, as 5,13 or 8..15" },
                      { "nodes", cli_text, offsetof(lose_options, nodes), "NODES",
                        .help = "lose all ranks of these nodes of the machine, by number" },
                      { "all", cli_number, offsetof(lose_options, all), "1|2",
                        .help = "lose each rank, or each pair, in turn" },
                      { "level", cli_text, offsetof(lose_options, level), "LEVEL",
                        .help = "lose whole domains of this level of the machine at once, as rack" },
                      { "how", cli_text, offsetof(lose_options, how), "replace|shrink|stop",
                        .help = "the answer, instead of asking the recipe's policy on_lost" },
                      { "json", cli_flag, offsetof(lose_options, json), .help = "one JSON object" } },
         .run = run,
         .after = "diff",
};
