/* SPDX-License-Identifier: MIT
**
** recipes.c - moongrid recipes: the bundled recipes, and the parameters of one.
*/
#include "command/cli.h"
#include "script/runtime.h"

#include <string.h>

static const char help[] = "usage: moongrid recipes [RECIPE] [--json]\n"
                           "\n"
                           "Without RECIPE: the bundled recipes, a line each. With one (bundled, or a file): its\n"
                           "parameters and settings with their defaults and other names, its policies and who\n"
                           "agrees on them, its queries, and its families.\n";

typedef struct options {
  cli  cli;
  bool json;
} options;

/* The families at the recipe's defaults, at the smallest of some worlds that it takes. */
static mgrid_plan *default_plan(mgrid_runtime *rt) {
  for (int64_t world = 1; world <= 4096; world *= 2) {
    mgrid_plan *p = mgrid_runtime_plan(rt, world, 0, NULL, NULL);
    if (p) return p;
  }
  return NULL;
}

static mgrid_status describe(const options *c, mgrid_error *err) {
  mgrid_runtime *rt = cli_load(&c->cli, err);
  if (!rt) return err->status;
  mgrid_status s = mgrid_runtime_describe(rt, c->json, cli_sink, stdout, err);
  mgrid_plan  *p = s || c->json ? NULL : default_plan(rt);
  if (p) printf("\nfamilies at the defaults\n ");
  for (size_t i = 0; p && i < mgrid_plan_nfamilies(p); i++) printf(" %s", mgrid_plan_family_name(p, i));
  if (p) printf("\n");
  mgrid_plan_free(p);
  mgrid_runtime_free(rt);
  return s;
}

static mgrid_status list_all(const options *c, mgrid_error *err) {
  json_t      *all = json_array();
  mgrid_status s = MGRID_OK;
  for (const char *const *name = mgrid_recipe_names(); *name && !s; name++) {
    cli     one = c->cli;
    json_t *info = NULL;
    one.recipe = *name;
    mgrid_runtime *rt = cli_load(&one, err);
    s = rt ? mgrid_runtime_info_json(rt, &info, err) : err->status;
    if (!s && c->json) {
      json_object_set_new(info, "name", json_string(*name));
      json_array_append(all, info);
    } else if (!s) {
      printf("%-24s %s\n", *name, json_string_value(json_object_get(info, "doc")));
    }
    json_decref(info);
    mgrid_runtime_free(rt);
  }
  if (c->json && !s) {
    json_dumpf(all, stdout, JSON_INDENT(2) | JSON_SORT_KEYS);
    printf("\n");
  }
  json_decref(all);
  return s;
}

static mgrid_status run(const cli_command *self, int argc, char **argv) {
  options     c = { 0 };
  mgrid_error err = MGRID_ERROR_INIT;
  if (!cli_parse(&c.cli, self, argc, argv)) return c.cli.code;
  if (c.cli.nargs) return cli_usage(&c.cli, "recipes takes one recipe and no NAME=VALUE");
  mgrid_status s = c.cli.recipe ? describe(&c, &err) : list_all(&c, &err);
  if (s) cli_say(&c.cli, &err);
  return cli_finish(&c.cli, s);
}

const cli_command command_recipes = {
  .name = "recipes",
  .takes = "[RECIPE]",
  .does = "what is bundled, and its parameters",
  .help = help,
  .recipe = true,
  .options = { { "json", cli_flag, offsetof(options, json) } },
  .run = run,
};
