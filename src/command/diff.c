/* SPDX-License-Identifier: MIT
**
** diff.c - moongrid diff: the differences between two recipes, sets of parameters or worlds, and the communicators
** that a running job would keep, create and destroy.
*/
#include "command/slice.h"
#include "plan/json.h"
#include "plan/plan.h"

#include <jansson.h>
#include <limits.h>
#include <string.h>

typedef struct options {
  cli     cli;
  int64_t rank; /* -1: not given */
  bool    json, exit_code;
} options;

/* Return a grid of a plan as JSON. */
static json_t *grid_json(const mgrid_content *c, const char *name) {
  const mgrid_grid *g = c->grid[mgrid_content_grid(c, name)].grid;
  json_t           *all = mgrid_json_pack("{sI}", "size", (json_int_t)g->size), *dims = json_array();
  for (size_t d = 0; d < g->n; d++)
    json_array_append_new(dims, mgrid_json_pack("[sI]", g->axis[d].name, (json_int_t)g->axis[d].size));
  if (!g->order) json_object_set_new(all, "offset", json_integer(g->window.offset));
  json_object_set_new(all, "dims", dims);
  return all;
}

/* Return a family as JSON, without its groups: there may be as many as ranks. */
static json_t *family_json(const mgrid_content *c, const char *name) {
  const mgrid_entry  *e = &c->entry[mgrid_content_find(c, name)];
  const mgrid_family *f = e->family;
  char                rule[512];
  mgrid_family_describe(f, rule, sizeof rule);
  return mgrid_json_pack("{sIsossss}", "count", (json_int_t)f->count, "size",
                         f->size < 0 ? json_null() : json_integer(f->size), "rule", f->form->listed ? "list" : rule,
                         "options", e->choice->text + (*e->choice->text == ' '));
}

static json_t *value_json(const mgrid_plan *p, const char *what, const char *name, const char *text) {
  if (strcmp(what, "world") == 0) return json_integer(mgrid_plan_world(p));
  if (strcmp(what, "grid") == 0) return grid_json(&p->content, name);
  if (strcmp(what, "family") == 0) return family_json(&p->content, name);
  return json_string(text);
}

/* What --json collects. */
typedef struct collected {
  const mgrid_plan *was, *is;
  json_t           *changes;
} collected;

/* An mgrid_tell: {"kind", "what", "name", "from", "to"}. */
static void collect(void *ud, const mgrid_difference *d) {
  collected *c = ud;
  json_t    *change = mgrid_json_pack("{ss%ss}", "kind", &d->sign, (size_t)1, "what", d->what);
  if (d->from || d->to) json_object_set_new(change, "name", json_string(d->name)); /* otherwise it is a sentence */
  if (d->from && *d->from) json_object_set_new(change, "from", value_json(c->was, d->what, d->name, d->from));
  if (d->to && *d->to) json_object_set_new(change, "to", value_json(c->is, d->what, d->name, d->to));
  json_array_append_new(c->changes, change);
}

/* Print {"differ", "changes", "kept", "created", "dropped"}; the counts only in one world. */
static mgrid_status print_json(const mgrid_plan *was, const mgrid_plan *is, int64_t rank, bool *differ,
                               mgrid_error *err) {
  collected    c = { was, is, json_array() };
  mgrid_change change = MGRID_CHANGE_INIT;
  mgrid_status s = mgrid_plan_differences(was, is, rank, &change, collect, NULL, &c, err);
  *differ = json_array_size(c.changes) > 0;
  json_t *all = mgrid_json_pack("{sbso}", "differ", *differ, "changes", c.changes);
  if (mgrid_plan_world(was) == mgrid_plan_world(is))
    json_object_update_new(all, mgrid_json_pack("{sIsIsI}", "kept", (json_int_t)change.kept, "created",
                                                (json_int_t)change.created, "dropped", (json_int_t)change.dropped));
  if (!s) s = cli_put_json(all, err);
  json_decref(all);
  return s;
}

/* What the text collects. */
typedef struct lines {
  mgrid_text text;
  bool       differ;
} lines;

static void note(void *ud, const mgrid_difference *d) {
  (void)d;
  ((lines *)ud)->differ = true;
}

static int put_line(void *ud, const char *s, size_t len) { return mgrid_text_sink(&((lines *)ud)->text, s, len); }

/* Print the lines. */
static mgrid_status print_text(const cli *c, const mgrid_plan *was, const mgrid_plan *is, int64_t rank, bool *differ,
                               mgrid_error *err) {
  lines        t = { { 0 }, false };
  mgrid_status s = mgrid_plan_differences(was, is, rank, NULL, note, put_line, &t, err);
  if (!s && t.text.failed) s = mgrid_oom(err);
  *differ = t.differ;
  cli whole = *c;
  if (!whole.lines) whole.fold = INT_MAX;
  if (!s) cli_fold(&whole, mgrid_text_chars(&t.text), t.text.len);
  mgrid_text_free(&t.text);
  return s;
}

static mgrid_status show(const cli *c, mgrid_runtime *const rt[2], const mgrid_plan *const plan[2], mgrid_error *err) {
  const options      *o = (const options *)c;
  const cli_addition *by = cli_switched(c);
  bool                differ = false;
  mgrid_status        s = by && by->compare ? by->compare(c, rt, plan, o->json, &differ, err)
                          : o->json         ? print_json(plan[0], plan[1], o->rank, &differ, err)
                                            : print_text(c, plan[0], plan[1], o->rank, &differ, err);
  return !s && differ && o->exit_code ? MGRID_REFUSED : s; /* its exit code is 1 */
}

static mgrid_status run(const cli_command *self, int argc, char **argv) {
  options a = { .rank = -1 }, b = { .rank = -1 };
  if (!cli_parse_sides(&a.cli, &b.cli, false, self, argc, argv)) return a.cli.code;
  return cli_with_plans(&a.cli, &b.cli, show);
}

const cli_command command_diff = {
  .name = "diff",
  .takes = "A --world N [...] vs B [...]",
  .does = "what changes from one plan to another",
  .usage = "moongrid diff RECIPE --world N [NAME=VALUE ...] vs [RECIPE] [--world N] [NAME=VALUE ...] [--rank R]\n"
           "       [--json] [--exit-code]\n"
           "       moongrid diff SAVED SAVED [--rank R] ...",
  .about = "Compare two plans: + new, - gone, ~ changed. The second recipe defaults to the\n"
           "first one, and a world given on one side is that of both; parameters are\n"
           "not carried over. In worlds of one size, also print the communicators that a rank (0, or R) keeps,\n"
           "creates and destroys when the trainer reloads (except lazy ones). The exit code is 0 even if the plans\n"
           "differ. Each side may be a plan that 'moongrid plan' saved.",
  .sample = "moongrid diff megatron --world 16 tp=2 vs tp=4",
  .recipe = true,
  .options = { CLI_WORLD("ranks in the world"),
               { "rank", cli_index, offsetof(options, rank), "R", .help = "the rank whose communicators are listed" },
               { "json", cli_flag, offsetof(options, json),
                 .help = "one object: changes, and the communicators of the rank" },
               { "exit-code", cli_flag, offsetof(options, exit_code), .help = "exit with 1 if the plans differ" } },
  .run = run,
};
