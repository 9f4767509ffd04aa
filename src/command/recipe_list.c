/* SPDX-License-Identifier: MIT
**
** recipe_list.c - moongrid recipes: the bundled recipes, and the parameters of one.
*/
#include "command/cli.h"
#include "command/built_in_texts.h"
#include "recipe/runtime.h"

#include <string.h>
#include <unistd.h>

typedef struct options {
  cli  cli;
  bool json, source, getters;
} options;

/* Return the plan of the recipe's defaults, in the smallest power of two that it accepts. */
static mgrid_plan *default_plan(mgrid_runtime *rt) {
  for (int64_t world = 1; world <= 4096; world *= 2) {
    mgrid_plan *p = mgrid_runtime_plan(rt, world, 0, NULL, NULL);
    if (p) return p;
  }
  return NULL;
}

/* Print the description as JSON. Frees the runtime. */
static mgrid_status describe_json(mgrid_runtime *rt, mgrid_error *err) {
  json_t      *info = NULL, *names = json_array();
  mgrid_status s = mgrid_runtime_info_json(rt, &info, err);
  mgrid_plan  *p = s ? NULL : default_plan(rt);
  for (size_t i = 0; p && i < mgrid_plan_nfamilies(p); i++)
    json_array_append_new(names, json_string(mgrid_plan_family_name(p, i)));
  if (p) json_object_set(info, "default_families", names);
  if (!s) s = cli_put_json(info, err);
  json_decref(names);
  json_decref(info);
  mgrid_plan_free(p);
  mgrid_runtime_free(rt);
  return s;
}

static const char *text_at(const json_t *object, const char *key) {
  return json_string_value(json_object_get(object, key));
}

/* Print the text, folded, and free it. */
static void print_folded(const options *c, mgrid_text *t) {
  if (t->data && !t->failed) cli_fold((void *)(uintptr_t)&c->cli, t->data, t->len);
  mgrid_text_free(t);
}

static mgrid_status describe(const options *c, mgrid_error *err) {
  mgrid_runtime *rt = cli_load(&c->cli, err);
  if (!rt) return err->status;
  if (c->json) return describe_json(rt, err);
  mgrid_status s = mgrid_runtime_describe(rt, false, cli_fold, (void *)(uintptr_t)&c->cli, err);
  mgrid_plan  *p = s ? NULL : default_plan(rt);
  mgrid_text   t = { 0 };
  if (p) mgrid_text_str(&t, "\nfamilies at the defaults\n ");
  for (size_t i = 0; p && i < mgrid_plan_nfamilies(p); i++) mgrid_text_add(&t, " %s", mgrid_plan_family_name(p, i));
  print_folded(c, &t);
  mgrid_plan_free(p);
  mgrid_runtime_free(rt);
  return s;
}

/* Return the bytes before the next newline or tab, some 64 at most, without cutting a character; 0: the text starts
** with one. */
static size_t run_of(const char *text, size_t len) {
  size_t n = 0;
  while (n < len && n < 64 && text[n] != '\n' && text[n] != '\t') n++;
  while (n > 0 && n < len && n < 68 && ((unsigned char)text[n] & 0xc0) == 0x80) n++;
  return n;
}

/* Print the text unchanged; on a terminal escape what would control it. */
static void put_source(const char *text, size_t len) {
  char shown[1024];
  if (!isatty(STDOUT_FILENO)) {
    fwrite(text, 1, len, stdout);
    return;
  }
  for (size_t n; len > 0; text += n, len -= n) {
    n = run_of(text, len);
    if (n > 0)
      fwrite(shown, 1, mgrid_shown(shown, sizeof shown, text, n), stdout);
    else
      fwrite(text, 1, n = 1, stdout);
  }
}

/* Print the text of a file, or of a bundled recipe and its parts, each after a line that names it. */
static mgrid_status show_source(const options *c, mgrid_error *err) {
  const char *name = c->cli.recipe, *text = cli_text_of(name);
  if (text) {
    size_t len = strlen(name);
    fputs(text, stdout);
    for (const cli_file *f = cli_files; f->name; f++)
      if (strncmp(f->name, name, len) == 0 && f->name[len] == '.') printf("\n-- %s\n%s", f->name, f->text);
    return MGRID_OK;
  }
  mgrid_runtime *rt = cli_load(&c->cli, err); /* reports what is wrong with the name, or the file */
  mgrid_text     t = { 0 };
  if (rt && cli_from_stdin(&c->cli))
    put_source(cli_text_of(CLI_STDIN), strlen(cli_text_of(CLI_STDIN)));
  else if (rt && mgrid_read_file(name, &t, err) == MGRID_OK)
    put_source(mgrid_text_chars(&t), t.len);
  mgrid_text_free(&t);
  mgrid_runtime_free(rt);
  return err->status;
}

/* Print a line for each family that a getter returns, "get_x(with_cp=true) -> dp_cp". Not folded, for grep. */
static mgrid_status show_getters(const options *c, mgrid_error *err) {
  mgrid_runtime *rt = cli_load(&c->cli, err);
  json_t        *info = NULL;
  mgrid_status   s = rt ? mgrid_runtime_info_json(rt, &info, err) : err->status;
  mgrid_text     t = { 0 };
  const json_t  *getters = json_object_get(info, "getters"), *families = json_object_get(info, "families");
  if (!s && json_array_size(getters) == 0)
    s = mgrid_fail(err, MGRID_BAD_VALUE, "recipe '%s' models no getters of groups; its families have only their names",
                   c->cli.recipe);
  for (size_t i = 0; i < json_array_size(getters) && !s && !c->json; i++) {
    const json_t *getter = json_array_get(getters, i), *gives = json_object_get(getter, "gives");
    for (size_t k = 0; k < json_array_size(gives); k++) {
      const json_t *one = json_array_get(gives, k);
      printf("%s(", text_at(getter, "name"));
      for (const char *at = text_at(one, "arguments"); *at; at++) /* "a=1 b=2" */
        *at == ' ' ? fputs(", ", stdout) : putchar(*at);
      printf(") -> %s\n", text_at(one, "family"));
    }
    if (json_array_size(gives) == 0) printf("%s: needs arguments that have no default\n", text_at(getter, "name"));
  }
  if (json_array_size(families) > 0 && !s && !c->json) mgrid_text_str(&t, "\nfamilies that exist with\n");
  for (size_t i = 0; i < json_array_size(families) && !s && !c->json; i++)
    mgrid_text_add(&t, "  %-36s %s\n", text_at(json_array_get(families, i), "name"),
                   text_at(json_array_get(families, i), "with"));
  print_folded(c, &t);
  if (!s && c->json) s = cli_put_json(getters, err);
  json_decref(info);
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
      mgrid_text t = { 0 };
      mgrid_text_add(&t, "%-24s %s", *name, text_at(info, "doc"));
      print_folded(c, &t);
    }
    json_decref(info);
    mgrid_runtime_free(rt);
  }
  if (c->json && !s) s = cli_put_json(all, err);
  json_decref(all);
  return s;
}

static mgrid_status run(const cli_command *self, int argc, char **argv) {
  options     c = { 0 };
  mgrid_error err = MGRID_ERROR_INIT;
  if (!cli_parse(&c.cli, self, argc, argv)) return c.cli.code;
  if (c.cli.nargs) return cli_usage(&c.cli, "recipes takes one recipe and no NAME=VALUE");
  if ((c.source || c.getters) && !c.cli.recipe)
    return cli_usage(&c.cli, "--%s needs a recipe: a file, or one that 'moongrid recipes' lists",
                     c.source ? "source" : "getters");
  if (c.source && c.getters + c.json) return cli_usage(&c.cli, "--source takes no --getters and no --json");
  mgrid_status s = c.source       ? show_source(&c, &err)
                   : c.getters    ? show_getters(&c, &err)
                   : c.cli.recipe ? describe(&c, &err)
                                  : list_all(&c, &err);
  if (s) cli_say(&c.cli, &err);
  return cli_finish(&c.cli, s);
}

const cli_command command_recipes = {
  .name = "recipes",
  .takes = "[RECIPE]",
  .does = "the bundled recipes, and their parameters",
  .usage = "moongrid recipes [RECIPE] [--json | --source | --getters]",
  .about = "Without RECIPE: the bundled recipes, a line each. With one (bundled, or a file): its\n"
           "parameters and settings with their defaults and other names, its policies and which\n"
           "ranks agree on them, its queries, and its families.",
  .sample = "moongrid recipes megatron --getters",
  .recipe = true,
  .bare = true,
  .options = { { "json", cli_flag, offsetof(options, json), .help = "one JSON object, or a list of all recipes" },
               { "source", cli_flag, offsetof(options, source),
                 .help = "the text of the recipe, and of the other files of a bundled one" },
               { "getters", cli_flag, offsetof(options, getters),
                 .help =
                     "the system's own getters of groups, with the family that each returns, for the arguments that "
                     "change it, and with which parameters families exist" } },
  .run = run,
};
