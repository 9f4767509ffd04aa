/* SPDX-License-Identifier: MIT
**
** why.c - moongrid why: what two ranks have in common.
*/
#include "command/slice.h"

typedef struct options {
  cli     cli;
  int64_t rank[2];
  bool    json;
} options;

static mgrid_status show(const cli *c, mgrid_runtime *const rt[2], const mgrid_plan *const plan[2], mgrid_error *err) {
  const options    *o = (const options *)c;
  const mgrid_plan *p = plan[0];
  (void)rt;
  mgrid_status s = mgrid_plan_why(p, o->rank[0], o->rank[1], o->json, cli_sink, stdout, err);
  for (const cli_slice *const *slice = cli_slices; *slice && !s && !o->json; slice++)
    if ((*slice)->pair) (*slice)->pair(c, p, o->rank[0], o->rank[1]);
  return s;
}

static mgrid_status run(const cli_command *self, int argc, char **argv) {
  options c = { 0 };
  if (!cli_parse(&c.cli, self, argc, argv)) return c.cli.code;
  if (cli_needs(&c.cli, c.cli.world)) return MGRID_USAGE;
  if (c.cli.nwords != 2) return cli_usage(&c.cli, "why needs two ranks: moongrid why RECIPE --world N A B");
  for (int i = 0; i < 2; i++) {
    if (cli_index(&c.cli, "a rank", c.cli.words[i], &c.rank[i])) return MGRID_USAGE;
    if (cli_beyond(&c.cli, c.rank[i], c.cli.world)) return MGRID_USAGE;
  }
  return cli_with_plans(&c.cli, NULL, show);
}

const cli_command command_why = {
  .name = "why",
  .takes = "RECIPE --world N [...] A B",
  .does = "what two ranks have in common",
  .usage = "moongrid why RECIPE --world N [NAME=VALUE ...] A B [--json]",
  .about =
      "Why does rank A talk to rank B? Every group with both, the smallest first, their positions in it and\n"
      "the ranks between, the communicator, and where they first meet when communicators are created. Ranks without\n"
      "a common group: the shortest chain of groups from one to the other.",
  .sample = "moongrid why megatron --world 16 tp=2 pp=2 0 9",
  .recipe = true,
  .words = 2,
  .options = { CLI_WORLD("ranks in the world"),
               { "json", cli_flag, offsetof(options, json), .help = "one JSON object" } },
  .run = run,
};
