/* SPDX-License-Identifier: MIT
**
** ask.c - moongrid ask and moongrid policy: answers of a recipe's queries, getters and policies without a program.
*/
#include "command/cli.h"
#include "base/base.h"
#include "recipe/runtime.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

typedef struct options {
  cli     cli;
  int64_t rank; /* NONE: not given; ALL */
  bool    json;
} options;

/* The command line, before QUERY and after it. */
typedef struct question {
  size_t      nparams;
  const char *params[CLI_ARGS_MAX]; /* NAME=VALUE of the plan */
  json_t     *settings, *args;      /* for each state; for the query */
} question;

enum { NONE = -2, ALL = -1 };

/* A cli_reader of --rank: an index, or all. */
static mgrid_status read_rank(const cli *c, const char *name, const char *value, void *to) {
  if (strcmp(value, "all") != 0) return cli_index(c, name, value, to);
  *(int64_t *)to = ALL;
  return MGRID_OK;
}

/* Set NAME=VALUE in an object. A value is JSON, otherwise text. */
static bool put_value(json_t *all, const char *arg) {
  const char *eq = strchr(arg, '=');
  json_t     *value = json_loads(eq + 1, JSON_DECODE_ANY, NULL);
  if (!value) value = json_string(eq + 1);
  char *name = mgrid_strdup(arg);
  if (name) name[eq - arg] = '\0';
  bool put = name && value && json_object_set(all, name, value) == 0;
  json_decref(value);
  free(name);
  return put;
}

/* Return whether the list of a recipe's declarations has this name, as a name or an alias. */
static bool declares(const json_t *list, const char *name, size_t len) {
  for (size_t i = 0; i < json_array_size(list); i++) {
    const json_t *one = json_array_get(list, i), *aliases = json_object_get(one, "aliases");
    const char   *own = json_string_value(json_object_get(one, "name"));
    for (size_t k = 0; own; k++) {
      if (strlen(own) == len && memcmp(own, name, len) == 0) return true;
      own = json_string_value(json_array_get(aliases, k));
    }
  }
  return false;
}

/* Return the name in a list of declarations that is nearest to NAME=VALUE, NULL if none is near. */
static const char *near_declared(const json_t *list, const char *arg, size_t len) {
  char        word[64];
  const char *names[64];
  size_t      n = 0;
  if (len >= sizeof word) return NULL;
  memcpy(word, arg, len);
  word[len] = '\0';
  for (size_t i = 0; i < json_array_size(list) && n < 64; i++)
    names[n++] = json_string_value(json_object_get(json_array_get(list, i), "name"));
  return mgrid_nearest(word, names, n);
}

/* Sort the arguments typed. */
static mgrid_status read_question(const cli *c, const json_t *info, question *q, mgrid_error *err) {
  const json_t *params = json_object_get(info, "params"), *settings = json_object_get(info, "settings");
  const char   *near;
  bool          done = (q->settings = json_object()) && (q->args = json_object());
  for (size_t i = 0; i < c->nargs && done; i++) {
    const char *arg = c->args[i];
    size_t      len = strcspn(arg, "=");
    if (i >= c->before)
      done = put_value(q->args, arg);
    else if (declares(settings, arg, len) && !declares(params, arg, len))
      done = put_value(q->settings, arg);
    else if (!declares(params, arg, len) && !near_declared(params, arg, len)
             && (near = near_declared(settings, arg, len)))
      return mgrid_fail(err, MGRID_UNKNOWN_NAME, "unknown setting '%.*s'; nearest is '%s'", (int)len, arg, near);
    else
      q->params[q->nparams++] = arg;
  }
  return done ? MGRID_OK : mgrid_oom(err);
}

/* Return whether the name is a getter, or meant as one. A query may be asked under the system's own name, get_NAME. */
static bool is_getter(const json_t *info, const char *name) {
  const json_t *list = json_object_get(info, "getters"), *queries = json_object_get(info, "queries");
  bool          like_one = strncmp(name, "get_", 4) == 0 && json_array_size(list) > 0;
  if (declares(list, name, strlen(name))) return true;
  for (size_t i = 0; i < json_array_size(queries) && like_one; i++) {
    const char *query = json_string_value(json_array_get(queries, i));
    like_one = strcmp(query, name) != 0 && strcmp(query, name + 4) != 0;
  }
  return like_one;
}

static json_t *ranks_of(const mgrid_group *g) {
  if (!g) return json_null();
  json_t *list = json_array();
  for (int64_t i = 0; i < mgrid_group_size(g); i++) json_array_append_new(list, json_integer(mgrid_group_at(g, i)));
  return list;
}

/* Ask on one rank; *answer is a new reference. */
typedef mgrid_status asker(mgrid_runtime *rt, mgrid_state *s, const char *name, const json_t *args, json_t **answer,
                           mgrid_error *err);

static mgrid_status ask_query(mgrid_runtime *rt, mgrid_state *s, const char *name, const json_t *args, json_t **answer,
                              mgrid_error *err) {
  return mgrid_runtime_ask_json(rt, s, name, args, answer, err);
}

static mgrid_status ask_getter(mgrid_runtime *rt, mgrid_state *s, const char *name, const json_t *args, json_t **answer,
                               mgrid_error *err) {
  const mgrid_group *g;
  mgrid_status       status = mgrid_runtime_group_json(rt, s, name, args, &g, err);
  if (!status) *answer = ranks_of(g);
  return status;
}

static mgrid_status call_policy(mgrid_runtime *rt, mgrid_state *s, const char *name, const json_t *args,
                                json_t **answer, mgrid_error *err) {
  return mgrid_policy_call_json(rt, s, name, args, answer, err);
}

/* Print JSON. Characters that control a terminal, which Jansson does not escape, are printed as \u009b. */
static void print_json(const char *text) {
  static const unsigned char mask[] = { 0, 0x7f, 0x1f, 0x0f, 0x07 };
  for (size_t n; *text; text += n) {
    unsigned char first = (unsigned char)*text;
    unsigned      code = 0;
    n = first < 0x80 ? 1 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
    for (size_t i = 0; i < n; i++) code = i ? code << 6 | (text[i] & 0x3f) : first & mask[n];
    if (mgrid_is_shown(text, n))
      fwrite(text, 1, n, stdout);
    else
      printf("\\u%04x", code);
  }
}

/* Print one answer: JSON; for all ranks a line of a table, with the head before the first, or an element of a list. */
static void print_answer(const options *c, int64_t rank, const char *text) {
  bool all = c->rank == ALL, list = all && c->json;
  if (all && !list && rank == 0) printf("%8s  %s\n", "rank", c->cli.words[0]);
  if (list)
    printf("%s", rank == 0 ? "[" : ",\n ");
  else if (all)
    printf("%8" PRId64 "  ", rank);
  print_json(text);
  printf("%s", !list ? "\n" : rank + 1 == c->cli.world ? "]\n" : "");
}

static mgrid_status set_all(mgrid_runtime *rt, mgrid_state *state, json_t *settings, mgrid_error *err) {
  const char  *name;
  json_t      *value;
  mgrid_status s = MGRID_OK;
  json_object_foreach(settings, name, value) {
    if (!s) s = mgrid_runtime_set_json(rt, state, name, value, err);
  }
  return s;
}

static mgrid_status ask_rank(const options *c, const mgrid_plan *p, mgrid_runtime *rt, asker *ask, int64_t rank,
                             const question *q, mgrid_error *err) {
  mgrid_backend *b = mgrid_backend_dry(c->cli.world, rank, err);
  mgrid_state   *state = b ? mgrid_materialize(p, b, NULL, err) : NULL;
  json_t        *answer = NULL;
  mgrid_status   s = state ? set_all(rt, state, q->settings, err) : err->status;
  if (!s) s = ask(rt, state, c->cli.words[0], q->args, &answer, err);
  char *text = s ? NULL : json_dumps(answer, JSON_SORT_KEYS | JSON_ENCODE_ANY);
  if (!s && !text) s = mgrid_oom(err); /* what a recipe gives is UTF-8 */
  if (text) print_answer(c, rank, text);
  free(text);
  json_decref(answer);
  mgrid_state_free(state);
  mgrid_backend_free(b);
  return s;
}

static mgrid_status answer(const options *c, bool policy, mgrid_error *err) {
  json_t        *info = NULL;
  question       q = { 0 };
  mgrid_plan    *p = NULL;
  mgrid_runtime *rt = cli_load(&c->cli, err);
  mgrid_status   s = rt ? mgrid_runtime_info_json(rt, &info, err) : err->status;
  if (!s) s = read_question(&c->cli, info, &q, err);
  if (!s && !(p = mgrid_runtime_plan_file(rt, c->cli.world, c->cli.params, q.nparams, q.params, err))) s = err->status;
  asker *ask = policy ? call_policy : is_getter(info, c->cli.words[0]) ? ask_getter : ask_query;
  for (int64_t r = c->rank == ALL ? 0 : c->rank; r < (c->rank == ALL ? c->cli.world : c->rank + 1) && !s; r++)
    s = ask_rank(c, p, rt, ask, r, &q, err);
  json_decref(info);
  json_decref(q.settings);
  json_decref(q.args);
  mgrid_plan_free(p);
  mgrid_runtime_free(rt);
  return s;
}

static mgrid_status run(const cli_command *self, int argc, char **argv) {
  options     c = { .rank = NONE };
  mgrid_error err = MGRID_ERROR_INIT;
  bool        policy = strcmp(self->name, "policy") == 0;
  if (!cli_parse(&c.cli, self, argc, argv)) return c.cli.code;
  if (cli_needs(&c.cli, c.cli.world)) return MGRID_USAGE;
  if (!c.cli.nwords)
    return cli_usage(&c.cli, "%s needs the name of a %s; 'moongrid recipes %s' lists them", self->name,
                     policy ? "policy" : "query or getter", c.cli.recipe);
  if (c.rank == NONE) return cli_usage(&c.cli, "%s needs --rank R, or --rank all", self->name);
  if (cli_beyond(&c.cli, c.rank, c.cli.world)) return MGRID_USAGE;
  mgrid_status s = answer(&c, policy, &err);
  if (s) cli_say(&c.cli, &err);
  return cli_finish(&c.cli, s);
}

#define OPTIONS \
  { \
    CLI_WORLD("ranks in the world"), \
        { "rank", read_rank, offsetof(options, rank), "R", .help = "the rank that asks; all: a line for each rank" }, \
    { \
      "json", cli_flag, offsetof(options, json), NULL, \
          "with --rank all, one list of the answers in the order of the ranks" \
    } \
  }

const cli_command command_ask = {
  .name = "ask",
  .takes = "RECIPE --world N --rank R QUERY [ARG=VALUE]",
  .does = "an answer of a recipe",
  .usage = "moongrid ask RECIPE --world N [NAME=VALUE ...] --rank R QUERY [ARG=VALUE ...]",
  .about = "Ask a query of a recipe, or the group of a getter (the modelled system's own names; 'moongrid recipes\n"
           "RECIPE' lists them), as a rank would. What comes before QUERY are parameters and settings, what comes\n"
           "after it its arguments; a value is JSON, otherwise text. The answer is JSON; null: none on this rank.",
  .sample = "moongrid ask megatron --world 16 tp=2 --rank 3 context_parallel_rank",
  .recipe = true,
  .words = 1,
  .options = OPTIONS,
  .run = run,
};

const cli_command command_policy = {
  .name = "policy",
  .takes = "RECIPE --world N --rank R NAME [...]",
  .does = "a decision of a recipe",
  .usage = "moongrid policy RECIPE --world N [NAME=VALUE ...] --rank R POLICY [ARG=VALUE ...]",
  .about = "Call a policy of a recipe as a rank would. What comes before POLICY are parameters, what comes after\n"
           "it its arguments; a value is JSON, otherwise text. The answer is JSON. Ranks do not compare theirs here,\n"
           "even if the recipe declares the policy as agreed.",
  .sample = "moongrid policy examples/dynamic_context.lua --world 8 --rank 0 POLICY ARG=VALUE",
  .recipe = true,
  .words = 1,
  .options = OPTIONS,
  .run = run,
};
