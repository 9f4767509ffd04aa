/* SPDX-License-Identifier: MIT
**
** diff.c - moongrid diff: the differences between two recipes, sets of parameters or worlds, and the
** communicators that a running job would keep, create and destroy.
*/
#include "command/cli.h"

#include <jansson.h>
#include <string.h>

typedef struct options {
  cli     cli;
  int64_t rank; /* -1: not given */
  bool    json, exit_code;
} options;

/* Does a line of a difference tell a change? Others sum up. */
static bool is_change(const char *line) { return *line && strchr("+-~", *line) && line[1] == ' '; }

/* {"differ", "changes": [{"kind": "+", "text"}], "kept", "created", "dropped"}; the counts only in one world. */
static mgrid_status print_json(const char *text, bool differ, bool counted, const mgrid_change *change,
                               mgrid_error *err) {
  json_t *changes = json_array(), *all = json_pack("{sb}", "differ", differ);
  for (const char *line = text; *line;) {
    size_t len = strcspn(line, "\n");
    if (is_change(line))
      json_array_append_new(changes, json_pack("{ss#ss#}", "kind", line, 1, "text", line + 2, (int)len - 2));
    line += len + (line[len] == '\n');
  }
  if (json_object_set_new(all, "changes", changes) != 0) json_decref(all), all = NULL;
  if (counted)
    json_object_update_new(all, json_pack("{sIsIsI}", "kept", (json_int_t)change->kept, "created",
                                          (json_int_t)change->created, "dropped", (json_int_t)change->dropped));
  mgrid_status s = all ? MGRID_OK : mgrid_oom(err);
  if (all) json_dumpf(all, stdout, JSON_INDENT(2) | JSON_SORT_KEYS);
  if (all) printf("\n");
  json_decref(all);
  return s;
}

static mgrid_status show(const cli *c, const mgrid_plan *was, const mgrid_plan *is, mgrid_error *err) {
  const options *o = (const options *)c;
  bool           differ = false;
  mgrid_text     t = { 0 };
  mgrid_change   change = MGRID_CHANGE_INIT;
  mgrid_status   s = mgrid_plan_diff(was, is, o->rank, &change, mgrid_text_sink, &t, err);
  if (!s && t.failed) s = mgrid_oom(err);
  const char *text = mgrid_text_chars(&t);
  for (const char *line = text; !s && line; line = strchr(line, '\n'), line += line != NULL) differ |= is_change(line);
  if (!s && o->json) s = print_json(text, differ, mgrid_plan_world(was) == mgrid_plan_world(is), &change, err);
  if (!s && !o->json) fputs(text, stdout);
  mgrid_text_free(&t);
  return !s && differ && o->exit_code ? MGRID_REFUSED : s; /* whose exit code is 1 */
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
  .about = "Compare two plans: + what is new, - what is gone, ~ what is another. The second recipe is the\n"
           "first one where it is not given, and a world given on one side is that of both; parameters are\n"
           "not carried over. In one world also the communicators that a rank (0, or R) keeps, creates and\n"
           "destroys when the trainer reloads (lazy ones aside). Exit code 0, also where they differ. Each\n"
           "side may be a plan that 'moongrid plan' saved.",
  .sample = "moongrid diff megatron --world 16 tp=2 vs tp=4",
  .recipe = true,
  .options = { CLI_WORLD("ranks in the world"),
               { "rank", cli_index, offsetof(options, rank), "R", .help = "whose communicators" },
               { "json", cli_flag, offsetof(options, json),
                 .help = "one object: changes, and the communicators of the rank" },
               { "exit-code", cli_flag, offsetof(options, exit_code), .help = "exit with 1 where the plans differ" } },
  .run = run,
};
