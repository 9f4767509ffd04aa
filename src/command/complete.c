/* SPDX-License-Identifier: MIT
**
** complete.c - moongrid complete WORD ...: print candidates for the last of these words, for the shells
** (scripts/complete).
**
** The words are those of a command line, without "moongrid". The last is what was typed of a word, and may be empty.
** Each candidate is a line with the whole word, and a tab and a short description if there is one. A candidate that
** ends in "=" or "/" is to be continued. Subcommands and options come from their rows, parameters from the recipe on
** the line. Sizes and words are offered if the recipe accepts them with the parameters before them, in the world of
** the line. There is no message about a wrong line, or a recipe that does not load; then there are no candidates.
*/
#include "command/cli.h"
#include "command/complete.h"
#include "plan/plan.h"
#include "recipe/runtime.h"

#include <glob.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* The words before the last. */
typedef struct line {
  cli               cli;    /* command, recipe, parameters, words after the recipe */
  const char       *before; /* the recipe before "vs" */
  bool              vs;
  const cli_option *awaited; /* the option whose value the last word is; NULL: none */
  const char       *last;    /* what was typed of it */
  const char       *head;    /* what precedes it in its word: "--color=" */
  size_t            nhead;
} line;

/* ---------------------------------------------------------------- candidates */

/* Offer a word that starts as typed, unless it would control the terminal as a file's name may; `about` may be NULL. */
static void offer(const line *l, const char *word, const char *about) {
  if (strncmp(word, l->last, strlen(l->last)) != 0 || !mgrid_is_shown(word, strlen(word))) return;
  printf("%.*s%s", (int)l->nhead, l->head, word);
  if (about && *about) printf("\t%.*s", (int)strcspn(about, "\n\t"), about);
  printf("\n");
}

static void offer_each(const line *l, const char *words) {
  char word[64];
  for (int n = 0; sscanf(words, "%63s%n", word, &n) == 1; words += n) offer(l, word, NULL);
}

/* Offer folders, and files with this ending; NULL: all files. */
static void offer_files(const line *l, const char *ending) {
  mgrid_text pattern = { 0 };
  glob_t     found;
  for (const char *at = l->last; *at; at++) mgrid_text_add(&pattern, strchr("*?[]\\", *at) ? "\\%c" : "%c", *at);
  mgrid_text_add(&pattern, "*");
  if (pattern.data && glob(pattern.data, GLOB_MARK, NULL, &found) == 0) {
    for (size_t i = 0; i < found.gl_pathc; i++) {
      const char *path = found.gl_pathv[i];
      size_t      len = strlen(path), n = ending ? strlen(ending) : 0;
      if (path[len - 1] == '/' || (len >= n && strcmp(path + len - n, ending ? ending : "") == 0)) offer(l, path, NULL);
    }
    globfree(&found);
  }
  mgrid_text_free(&pattern);
}

static void offer_recipes(const line *l) {
  for (const char *const *name = mgrid_recipe_names(); *name; name++) {
    cli     one = { .recipe = *name, .print = "none" };
    json_t *info = NULL;
    if (strncmp(*name, l->last, strlen(l->last)) != 0) continue;
    mgrid_runtime *rt = cli_load(&one, NULL);
    if (rt) mgrid_runtime_info_json(rt, &info, NULL);
    offer(l, *name, json_string_value(json_object_get(info, "doc")));
    json_decref(info);
    mgrid_runtime_free(rt);
  }
  offer_files(l, ".lua");
}

/* ------------------------------------------------------------ of a recipe */

static const char *text_at(const json_t *object, const char *key) {
  const char *text = json_string_value(json_object_get(object, key));
  return text ? text : "";
}

/* Return whether the recipe accepts NAME=VALUE after the parameters of the line. */
static bool takes(const line *l, mgrid_runtime *rt, int64_t world, const char *name, const char *value) {
  char        arg[256];
  cli         with = l->cli;
  mgrid_error e = MGRID_ERROR_INIT;
  if (with.nargs == CLI_ARGS_MAX) return false;
  if (snprintf(arg, sizeof arg, "%s=%s", name, value) >= (int)sizeof arg) return false;
  with.args[with.nargs++] = arg;
  mgrid_plan *p = cli_plan(&with, rt, world, &e);
  mgrid_plan_free(p);
  return p != NULL;
}

/* Return a plan, for its names, in the world of the line or the smallest that the recipe accepts. */
static mgrid_plan *any_plan(const line *l, mgrid_runtime *rt) {
  mgrid_plan *p = l->cli.world ? cli_plan(&l->cli, rt, l->cli.world, NULL) : NULL;
  for (int64_t world = 1; world <= 4096 && !p && !l->cli.world; world *= 2) p = cli_plan(&l->cli, rt, world, NULL);
  return p;
}

/* Offer the divisors of the world that the recipe accepts; all of them if it accepts none, because other parameters
** must come first. Without a world, offer powers of two. */
static void offer_sizes(const line *l, mgrid_runtime *rt, const char *name) {
  enum { MOST = 64 };
  char size[32];
  for (int all = 0, offered = 0; all < 2 && !offered; all++)
    for (int64_t n = 1, tried = 0; n <= (l->cli.world ? l->cli.world : 64) && n <= 1 << 20 && tried < MOST; n++) {
      if (l->cli.world ? l->cli.world % n != 0 : (n & (n - 1)) != 0) continue;
      snprintf(size, sizeof size, "%" PRId64, n), tried++;
      if (l->cli.world && !all && !takes(l, rt, l->cli.world, name, size)) continue;
      offer(l, size, NULL), offered++;
    }
}

/* Offer the words of its documentation that the recipe accepts, unless it accepts any. */
static void offer_choices(const line *l, mgrid_runtime *rt, const json_t *param, const char *name) {
  mgrid_plan *p = any_plan(l, rt);
  int64_t     world = p ? mgrid_plan_world(p) : 0;
  const char *usual = text_at(param, "default");
  mgrid_plan_free(p);
  if (*usual) offer(l, usual, "default");
  if (!world || takes(l, rt, world, name, "no-such-word")) return;
  for (const char *at = text_at(param, "doc"); *at; at += strcspn(at, " ,;()")) {
    char word[64];
    at += strspn(at, " ,;()");
    int n = (int)strcspn(at, " ,;()");
    if (n == 0 || n >= (int)sizeof word) continue;
    snprintf(word, sizeof word, "%.*s", n, at);
    if (strcmp(word, usual) != 0 && takes(l, rt, world, name, word)) offer(l, word, NULL);
  }
}

/* Return whether this is the parameter's name or an alias. */
static bool is_called(const json_t *param, const char *name, size_t len) {
  const char *own = text_at(param, "name");
  if (strlen(own) == len && strncmp(own, name, len) == 0) return true;
  const json_t *names = json_object_get(param, "aliases");
  for (size_t i = 0; i < json_array_size(names); i++) {
    const char *other = json_string_value(json_array_get(names, i));
    if (strlen(other) == len && strncmp(other, name, len) == 0) return true;
  }
  return false;
}

static void offer_declared(const line *l, const json_t *choices) {
  for (size_t i = 0; i < json_array_size(choices); i++)
    offer(l, json_string_value(json_array_get(choices, i)), i ? NULL : "default");
}

/* Offer the values of NAME=. */
static void offer_values(line *l, mgrid_runtime *rt, const json_t *params) {
  size_t n = strcspn(l->last, "=");
  for (size_t i = 0; i < json_array_size(params); i++) {
    const json_t *param = json_array_get(params, i);
    const char   *kind = text_at(param, "kind"), *name = text_at(param, "name");
    if (!is_called(param, l->last, n)) continue;
    l->head = l->last, l->nhead = n + 1, l->last += n + 1;
    if (strcmp(kind, "flag") == 0)
      offer_each(l, "true false");
    else if (strcmp(kind, "size") == 0)
      offer_sizes(l, rt, name);
    else if (strcmp(kind, "file") == 0)
      offer_files(l, NULL);
    else if (json_array_size(json_object_get(param, "choices")) > 0)
      offer_declared(l, json_object_get(param, "choices"));
    else if (strcmp(kind, "text") == 0)
      offer_choices(l, rt, param, name);
    else
      offer(l, text_at(param, "default"), "default");
    return;
  }
}

/* Offer NAME= for all parameters not on the line yet, and for their aliases. */
static void offer_names(const line *l, const json_t *params) {
  char word[128];
  for (size_t i = 0; i < json_array_size(params); i++) {
    const json_t *param = json_array_get(params, i), *names = json_object_get(param, "aliases");
    bool          given = false;
    for (size_t k = 0; k < l->cli.nargs && !given; k++)
      given = is_called(param, l->cli.args[k], strcspn(l->cli.args[k], "="));
    for (size_t k = 0; k <= json_array_size(names) && !given; k++) {
      const char *name = k ? json_string_value(json_array_get(names, k - 1)) : text_at(param, "name");
      if (snprintf(word, sizeof word, "%s=", name) < (int)sizeof word) offer(l, word, text_at(param, "doc"));
    }
  }
}

static void offer_families(const line *l, mgrid_runtime *rt) {
  mgrid_plan *p = any_plan(l, rt);
  for (size_t i = 0; p && i < mgrid_plan_nfamilies(p); i++) offer(l, mgrid_plan_family_name(p, i), NULL);
  mgrid_plan_free(p);
}

/* Offer the items of a kind. */
static void offer_items(const line *l, mgrid_runtime *rt, const char *kind) {
  mgrid_plan *p = any_plan(l, rt);
  for (size_t i = 0; p && i < p->content.nitems; i++)
    if (strcmp(p->content.item[i].kind->name, kind) == 0) offer(l, p->content.item[i].name, NULL);
  mgrid_plan_free(p);
}

/* Offer texts, or the names of objects. */
static void offer_named(const line *l, const json_t *list) {
  for (size_t i = 0; i < json_array_size(list); i++) {
    const json_t *one = json_array_get(list, i);
    offer(l, json_is_string(one) ? json_string_value(one) : text_at(one, "name"), text_at(one, "doc"));
  }
}

/* Offer what may follow the recipe: the words that the subcommand takes, "vs", parameters and their values. */
static void offer_of_recipe(line *l, mgrid_runtime *rt) {
  json_t     *info = NULL;
  const char *command = l->cli.command->name;
  bool        asks = strcmp(command, "ask") == 0, decides = strcmp(command, "policy") == 0;
  bool        sides = strstr(l->cli.command->usage, " vs ");
  if (mgrid_runtime_info_json(rt, &info, NULL)) return;
  const json_t *params = json_object_get(info, asks && l->cli.nwords ? "arguments" : "params");
  if (!l->cli.command->bare && strchr(l->last, '=')) {
    offer_values(l, rt, params);
  } else if (!l->cli.command->bare) {
    bool word = l->cli.nwords < l->cli.command->words;
    if (word && asks)
      offer_named(l, json_object_get(info, "queries")), offer_named(l, json_object_get(info, "getters"));
    if (word && decides) offer_named(l, json_object_get(info, "policies"));
    if (sides && !l->vs) offer(l, "vs", "the other side");
    if (!decides || !l->cli.nwords) offer_names(l, params);
  }
  json_decref(info);
}

/* ------------------------------------------------------------------- options */

/* Offer the values of the option: those that its row lists, or those that the row's name for the value stands for. */
static void offer_option_values(const line *l, mgrid_runtime *rt) {
  const char *known[CLI_VALUES_MAX], *kind = l->awaited->value ? l->awaited->value : "";
  char        room[CLI_VALUES_LEN];
  size_t      n = cli_values_of(l->awaited, known, room);
  for (size_t i = 0; i < n; i++) offer(l, known[i], NULL);
  if (strcmp(kind, "RECIPE") == 0) offer_recipes(l);
  if (strcmp(kind, "FILE") == 0 || strcmp(kind, "FOLDER") == 0) offer_files(l, NULL);
  if (strcmp(kind, "F,G") == 0 && rt) offer_families(l, rt);
  if (strcmp(kind, "T") == 0 && rt) offer_items(l, rt, l->awaited->name);
}

static void offer_options(const line *l) {
  const cli_option *known[CLI_KNOWN_MAX];
  char              word[64];
  size_t            n = cli_options_of(l->cli.command, known);
  for (size_t i = 0; i < n; i++) {
    snprintf(word, sizeof word, "--%s", known[i]->name);
    offer(l, word, known[i]->help);
  }
}

/* Return the option that a word is, with one dash or two, or followed by "=VALUE". */
static const cli_option *option_of(const cli_command *command, const char *word) {
  const cli_option *known[CLI_KNOWN_MAX];
  size_t            n = cli_options_of(command, known), len = strcspn(word, "=");
  for (size_t i = 0; i < n; i++) {
    if (strncmp(word, "--", 2) == 0 && strlen(known[i]->name) == len - 2
        && strncmp(known[i]->name, word + 2, len - 2) == 0)
      return known[i];
    if (known[i]->letter && word[1] == *known[i]->name && word[2] == '\0') return known[i];
  }
  return NULL;
}

/* ----------------------------------------------------------------- the line */

static void read_value(line *l, const cli_option *o, const char *value) {
  if (o->read == cli_text && o->at == offsetof(cli, recipe)) l->cli.recipe = value;
  if (o->read == cli_text && o->at == offsetof(cli, params)) l->cli.params = value;
  if (strcmp(o->name, "world") == 0) l->cli.world = strtoll(value, NULL, 10);
  if (strcmp(o->name, "option") == 0 && l->cli.nargs < CLI_ARGS_MAX) l->cli.args[l->cli.nargs++] = value;
}

static void read_word(line *l, const char *word) {
  const cli_option *o = *word == '-' ? option_of(l->cli.command, word) : NULL;
  const char       *eq = strchr(word, '=');
  if (l->awaited) {
    read_value(l, l->awaited, word);
    l->awaited = NULL;
  } else if (o && eq) {
    read_value(l, o, eq + 1);
  } else if (o) {
    l->awaited = o->read == cli_flag || o->read == cli_maybe ? NULL : o;
  } else if (strcmp(word, "vs") == 0) {
    l->vs = true, l->before = l->cli.recipe;
    l->cli.recipe = NULL, l->cli.nargs = 0;
  } else if (eq && !memchr(word, '/', (size_t)(eq - word))) {
    if (l->cli.nargs < CLI_ARGS_MAX) l->cli.args[l->cli.nargs++] = word;
  } else if ((*word != '-' || !word[1]) && !l->cli.recipe && !l->cli.command->recipe_from) {
    l->cli.recipe = word;
  } else if (*word != '-' && l->cli.nwords < l->cli.command->words) {
    l->cli.words[l->cli.nwords++] = word;
  }
}

static void complete_command(line *l) {
  const cli_option *o = *l->last == '-' ? option_of(l->cli.command, l->last) : NULL;
  const char       *eq = strchr(l->last, '=');
  if (o && eq && !l->awaited) {
    l->awaited = o;
    l->head = l->last, l->nhead = (size_t)(eq + 1 - l->last), l->last = eq + 1;
  }
  if (*l->last == '-' && !l->awaited) {
    offer_options(l);
    return;
  }
  bool bare = !l->cli.recipe && !l->cli.command->recipe_from;
  bool file = l->cli.command->recipe_from && l->cli.nwords < l->cli.command->words;
  if (bare) l->cli.recipe = l->before; /* of B: that of A, if not given */
  l->cli.print = "none";
  mgrid_runtime *rt = l->cli.recipe && !cli_from_stdin(&l->cli) ? cli_load(&l->cli, NULL) : NULL;
  if (l->awaited)
    offer_option_values(l, rt);
  else if (file && !strchr(l->last, '='))
    offer_files(l, NULL);
  else if (bare && l->cli.command->recipe && !strchr(l->last, '='))
    offer_recipes(l);
  if (!l->awaited && rt) offer_of_recipe(l, rt);
  mgrid_runtime_free(rt);
}

mgrid_status cli_complete(const cli_command *commands, size_t n, int argc, char **argv) {
  line        l = { .last = argc > 0 ? argv[argc - 1] : "", .head = "" };
  const char *name = argc > 1 && strcmp(argv[0], "help") != 0 ? argv[0] : NULL;
  for (size_t i = 0; i < n && !name && argc < 3; i++) offer(&l, commands[i].name, commands[i].does);
  if (!name && argc < 2) offer_each(&l, "help --help --version");
  for (size_t i = 0; i < n && name; i++)
    if (strcmp(commands[i].name, name) == 0) l.cli.command = &commands[i];
  if (!l.cli.command) return cli_finish(&l.cli, MGRID_OK);
  for (int i = 1; i < argc - 1; i++) read_word(&l, argv[i]);
  complete_command(&l);
  return cli_finish(&l.cli, MGRID_OK);
}
