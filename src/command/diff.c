/* SPDX-License-Identifier: MIT
**
** diff.c - moongrid diff: the differences between two recipes, sets of parameters or worlds, and the
** communicators that a running job would keep, create and destroy.
*/
#include "command/cli.h"

#include <string.h>

static const char help[] =
    "usage: moongrid diff RECIPE --world N [NAME=VALUE ...] vs [RECIPE] [--world N] [NAME=VALUE ...] [--rank R]\n"
    "\n"
    "Compare two plans: + what is new, - what is gone, ~ what is another. The second recipe is the\n"
    "first one where it is not given, and a world given on one side is that of both; parameters are\n"
    "not carried over. In one world also the communicators that a rank (0, or R) keeps, creates and\n"
    "destroys when the trainer reloads (lazy ones aside). Exit code 0, also where they differ.\n"
    "\n"
    "  --world N     ranks in the world\n"
    "  --params FILE parameters: JSON, YAML, or Lua that returns a table; NAME=VALUE overrides them\n"
    "  --option FAMILY.OPTION=VALUE  an option of a family, as tp.max_ctas=8; * stands for any: '*.timeout=600'\n"
    "  --rank R      whose communicators\n"
    "  --color WHEN  accepted by every command; this one has none\n";

typedef struct options {
  cli     cli;
  int64_t world, rank; /* rank -1: not given */
} options;

static mgrid_status run(const cli_command *self, int argc, char **argv) {
  options        a = { .rank = -1 }, b = { .rank = -1 };
  mgrid_error    err = MGRID_ERROR_INIT;
  mgrid_runtime *rt[2] = { NULL, NULL };
  if (!cli_parse_sides(&a.cli, &a.world, &b.cli, &b.world, false, self, argc, argv)) return a.cli.code;
  mgrid_plan *was = cli_evaluate(&a.cli, a.world, &rt[0], &err),
             *is = was ? cli_evaluate(&b.cli, b.world, &rt[1], &err) : NULL;
  mgrid_status s = err.status;
  if (was && is) s = mgrid_plan_diff(was, is, b.rank >= 0 ? b.rank : a.rank, NULL, cli_sink, stdout, &err);
  if (s) cli_say(&a.cli, &err);
  mgrid_plan_free(was);
  mgrid_plan_free(is);
  mgrid_runtime_free(rt[0]);
  mgrid_runtime_free(rt[1]);
  return cli_finish(&a.cli, s);
}

const cli_command command_diff = {
  .name = "diff",
  .takes = "A --world N [...] vs B [...]",
  .does = "what changes from one plan to another",
  .help = help,
  .recipe = true,
  .options = { { "world", cli_world, offsetof(options, world) }, { "rank", cli_index, offsetof(options, rank) } },
  .run = run,
};
