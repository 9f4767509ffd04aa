/* SPDX-License-Identifier: MIT
**
** check.c - moongrid check: the laws of a recipe's families at several world sizes.
*/
#include "command/cli.h"

#include <inttypes.h>
#include <jansson.h>

static const char help[] =
    "usage: moongrid check RECIPE --world N[,N...] [NAME=VALUE ...] [--json]\n"
    "\n"
    "Check a recipe at several world sizes: every family asked by rank gives the groups that\n"
    "it lists, partitions hold each rank once, and the creation schedule lets every rank\n"
    "through. Worlds above 1048576 ranks are sampled, and said to be.\n"
    "\n"
    "  --world N,... worlds to check\n"
    "  --params FILE parameters: JSON, YAML, or Lua that returns a table; NAME=VALUE overrides them\n"
    "  --option FAMILY.OPTION=VALUE  an option of a family, as tp.max_ctas=8; * stands for any: '*.timeout=600'\n"
    "  --json        an array with one object per world\n"
    "  --color WHEN  accepted by every command; this one has none\n";

typedef struct options {
  cli       cli;
  cli_sizes worlds;
  bool      json;
} options;

static void print_line(int64_t world, const mgrid_plan *p, const mgrid_plan_checked *v) {
  char digest[33];
  mgrid_plan_digest(p, digest);
  printf("%10" PRId64 "  ok       %zu families, %" PRId64 " members %s, ", world, mgrid_plan_nfamilies(p), v->members,
         v->sampled ? "sampled" : "checked");
  if (v->sampled)
    printf("schedule sampled");
  else
    printf("%" PRId64 " communicators in order", v->communicators);
  printf("  %s\n", digest);
}

static json_t *json_line(int64_t world, const mgrid_plan *p, const mgrid_plan_checked *v, mgrid_status s,
                         const mgrid_error *err) {
  char digest[33];
  if (s) return json_pack("{sIsbsiss}", "world", (json_int_t)world, "ok", 0, "status", (int)s, "message", err->message);
  mgrid_plan_digest(p, digest);
  return json_pack("{sIsbsIsIsbsoss}", "world", (json_int_t)world, "ok", 1, "families",
                   (json_int_t)mgrid_plan_nfamilies(p), "members", (json_int_t)v->members, "sampled", v->sampled,
                   "communicators", v->sampled ? json_null() : json_integer(v->communicators), "digest", digest);
}

static mgrid_status run(const cli_command *self, int argc, char **argv) {
  options      c = { 0 };
  mgrid_error  err = MGRID_ERROR_INIT;
  mgrid_status worst = MGRID_OK;
  if (!cli_parse(&c.cli, self, argc, argv)) return c.cli.code;
  if (!c.cli.recipe) return cli_usage(&c.cli, "check wants a recipe: a file, or one that 'moongrid recipes' lists");
  if (!c.worlds.n) return cli_usage(&c.cli, "check wants --world N[,N...], the numbers of ranks");
  mgrid_runtime *rt = cli_load(&c.cli, &err);
  if (!rt) return cli_finish(&c.cli, cli_say(&c.cli, &err));
  json_t *lines = json_array();
  for (size_t i = 0; i < c.worlds.n; i++) {
    mgrid_plan_checked v = MGRID_PLAN_CHECKED_INIT;
    mgrid_error_clear(&err); /* of the world before */
    mgrid_plan  *p = cli_plan(&c.cli, rt, c.worlds.at[i], &err);
    mgrid_status s = p ? mgrid_plan_check(p, &v, &err) : err.status;
    if (!s) cli_note_plan(&c.cli, p);
    if (c.json)
      json_array_append_new(lines, json_line(c.worlds.at[i], p, &v, s, &err));
    else if (!s)
      print_line(c.worlds.at[i], p, &v);
    else
      printf("%10" PRId64 "  %-8s %s\n", c.worlds.at[i], p ? "BROKEN" : "refused", err.message);
    if (s && !worst) worst = s;
    mgrid_plan_free(p);
  }
  if (c.json) {
    json_dumpf(lines, stdout, JSON_INDENT(2) | JSON_SORT_KEYS);
    printf("\n");
  }
  json_decref(lines);
  mgrid_runtime_free(rt);
  return cli_finish(&c.cli, worst);
}

const cli_command command_check = {
  .name = "check",
  .takes = "RECIPE --world N,N,... [NAME=VALUE ...]",
  .does = "its laws at several sizes",
  .help = help,
  .recipe = true,
  .options = { { "world", cli_worlds, offsetof(options, worlds) }, { "json", cli_flag, offsetof(options, json) } },
  .run = run,
};
