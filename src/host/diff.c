/* SPDX-License-Identifier: MIT
**
** diff.c - moongrid diff: what changes between two recipes, sets of parameters or worlds; what a
** running job would keep, create and destroy.
*/
#include "host/cli.h"

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
    "  --params FILE parameters, JSON or Lua that returns a table; NAME=VALUE overrides them\n"
    "  --rank R      whose communicators\n"
    "  --color WHEN  accepted by every command; this one has none\n";

static mgrid_plan *evaluate(const cli *c, mgrid_runtime **rt, mgrid_error *err) {
  *rt = cli_load(c, err);
  return *rt ? cli_plan(c, *rt, c->worlds[0], err) : NULL;
}

int cli_run_diff(int argc, char **argv) {
  cli            a, b;
  mgrid_error    err = { 0 };
  mgrid_runtime *rt[2] = { NULL, NULL };
  int            at = 1;
  while (at < argc && strcmp(argv[at], "vs") != 0) at++;
  mgrid_status s = cli_parse(&a, at, argv, "rwk");
  if (s) return s;
  if (a.help) return fputs(help, stdout) < 0;
  if (at == argc) return cli_usage(&a, "diff wants two sides with 'vs' between: moongrid diff A --world N vs B");
  argv[at] = argv[0];
  if ((s = cli_parse(&b, argc - at, argv + at, "rwk"))) return s;
  if (!a.recipe) return cli_usage(&a, "diff wants a recipe: a file, or one that 'moongrid recipes' lists");
  if (!a.nworlds && !b.nworlds) return cli_usage(&a, "diff wants --world N, the number of ranks");
  if (!b.recipe) b.recipe = a.recipe;
  if (!b.nworlds) b.worlds[0] = a.worlds[0];
  if (!a.nworlds) a.worlds[0] = b.worlds[0];
  mgrid_plan *was = evaluate(&a, &rt[0], &err), *is = was ? evaluate(&b, &rt[1], &err) : NULL;
  if (was && is)
    s = mgrid_plan_diff(was, is, b.rank >= 0 ? b.rank : a.rank, NULL, cli_sink, stdout, &err);
  else
    s = err.status;
  if (s) cli_say(&a, &err);
  mgrid_plan_free(was);
  mgrid_plan_free(is);
  mgrid_runtime_free(rt[0]);
  mgrid_runtime_free(rt[1]);
  return cli_finish(&a, s);
}
