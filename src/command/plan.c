/* SPDX-License-Identifier: MIT
**
** plan.c - moongrid plan: plan a recipe for any world size, without a launcher.
*/
#include "command/slice.h"
#include "plan/plan.h"

#include <inttypes.h>
#include <limits.h>

typedef struct options {
  cli         cli;
  int64_t     rank; /* print this rank's view; -1: the whole plan */
  cli_budgets budgets;
  mgrid_site  site;
  const char *groups; /* only these families, F,G; "": all; NULL: not given */
  bool        json, rules, schedule, text, all;
} options;

static mgrid_status show_form(const options *c, const mgrid_plan *p, mgrid_error *err) {
  const cli_addition *by = cli_switched(&c->cli);
  if (by) return by->show(&c->cli, p, c->rank, err);
  if (c->json) return cli_print_json(&c->cli, p, c->rank, &c->site, err);
  if (c->rules) return mgrid_plan_save(p, cli_sink, stdout, err);
  if (c->schedule) return mgrid_plan_print_schedule(p, c->rank, cli_sink, stdout, err);
  if (c->text) return mgrid_plan_print(p, cli_sink, stdout, err);
  if (c->groups) return cli_show_groups(&c->cli, p, c->groups, err);
  return c->rank >= 0 ? cli_show_rank(&c->cli, p, c->rank, c->all, err)
                      : cli_show_plan(&c->cli, &c->budgets, p, &c->site, c->all, err);
}

static mgrid_status show(const cli *c, mgrid_runtime *const rt[2], const mgrid_plan *const plan[2], mgrid_error *err) {
  options           o = *(const options *)c;
  const mgrid_plan *p = plan[0];
  (void)rt;
  cli_site(c, &o.site);
  cli_machine_of(c, p, &o.site);
  mgrid_status s = cli_check_budgets(&o.budgets, p, o.rank, &o.site, err);
  if (!s) s = show_form(&o, p, err);
  if (!s) cli_note_unheeded(c, p, mgrid_backend_usual()->name);
  if (!s) cli_note_plan(c, p);
  return s;
}

static mgrid_status run(const cli_command *self, int argc, char **argv) {
  options c = { .rank = -1, .site = MGRID_SITE_INIT };
  if (!cli_parse(&c.cli, self, argc, argv)) return c.cli.code;
  if (cli_needs(&c.cli, c.cli.world)) return MGRID_USAGE;
  const int           formats = c.json + c.rules + c.schedule + c.text;
  const cli_addition *by = cli_switched(&c.cli);
  const char         *what = by ? by->options[0].name : "";
  if (c.groups && (formats || c.rank >= 0))
    return cli_usage(&c.cli, "--family and --groups take no --rank, --json, --rules, --schedule or --text");
  if (c.groups && by) return cli_usage(&c.cli, "--family and --groups take no --%s", what);
  if (formats > 1) return cli_usage(&c.cli, "--json, --rules, --schedule and --text exclude each other");
  if (c.text + c.rules && c.rank >= 0)
    return cli_usage(&c.cli, "--%s prints the whole plan; it takes no --rank", c.text ? "text" : "rules");
  if (by && formats) return cli_usage(&c.cli, "--%s is shown as lines; --json has all %ss", what, what);
  if (cli_beyond(&c.cli, c.rank, c.cli.world)) return MGRID_USAGE;
  if (!c.cli.lines) c.cli.fold = INT_MAX; /* in a pipe a family is one line, for grep and pagers */
  return cli_with_plans(&c.cli, NULL, show);
}

const cli_command command_plan = {
  .name = "plan",
  .takes = "RECIPE --world N [NAME=VALUE ...]",
  .does = "what groups a recipe makes",
  .usage = "moongrid plan RECIPE --world N [NAME=VALUE ...] [--rank R] [--family F,G | --groups]\n"
           "       [--json | --rules | --schedule | --text]\n"
           "       moongrid plan SAVED ...",
  .about = "Evaluate a recipe (a file, the name of a bundled one, or - for standard input) for a world\n"
           "of N ranks and show its groups. Nothing is created and no launcher is needed. Or read a plan\n"
           "that was saved by --json, --rules or --text (a file, or -), which has its world and parameters.",
  .notes = "\"GPU memory\" is what NCCL itself allocates on the GPU of one rank, at most: first when communicators are\n"
           "made, more when each is first used in a ring (most collectives), then more if NCCL chooses trees, if\n"
           "all members of a group send to all others (all-to-all), and if the switch reduces (NVLink SHARP). It\n"
           "depends on the ranks of a machine: those of --machine, else the recipe's parameter gpus_per_node, else\n"
           "8; with 1 there is no NVLink.",
  .sample = "moongrid plan megatron --world 16 tp=2 pp=2",
  .recipe = true,
  .options = {
      CLI_WORLD("ranks in the world, 1 to 2147483647"),
      { "rank", cli_index, offsetof(options, rank), "R",
        .help = "the view of one rank: coordinates, groups, neighbours, creations" },
      { "family", cli_text, offsetof(options, groups), "F,G", .help = "all groups of these families" },
      { "groups", cli_maybe, offsetof(options, groups), .help = "the first groups of every family" },
      { "all", cli_flag, offsetof(options, all), .help = "also parameters that have their defaults" },
      { "json", cli_flag, offsetof(options, json),
        .help = "one JSON object with all groups (with --rank: that rank's)" },
      { "rules", cli_flag, offsetof(options, rules),
        .help = "one JSON object with only its rules, small at any world: to save a plan" },
      { "schedule", cli_flag, offsetof(options, schedule), .help = "the order in which communicators are created" },
      { "text", cli_flag, offsetof(options, text), .help = "the canonical text whose digest is printed" },
      { "gpu-memory", cli_number, offsetof(options, budgets.gpu_memory), "MIB",
        .help = "refuse a plan whose NCCL communicators may take more memory of a GPU" },
      { "sms", cli_number, offsetof(options, budgets.sms), "N",
        .help = "... whose kernels of NCCL may run on more SMs at once (of 132, on an H100)" },
      { "nvls-slots", cli_number, offsetof(options, budgets.nvls_slots), "N",
        .help = "... that may take more multicast slots of a machine (of 128, with 8 H200)" },
      { "files", cli_number, offsetof(options, budgets.files), "N",
        .help = "... that may take more file descriptors of a process" },
  },
  .run = run,
};
