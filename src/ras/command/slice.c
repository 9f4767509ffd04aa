/* SPDX-License-Identifier: MIT
**
** slice.c - moongrid doctor --ras: what NCCL's watchers say of a job that hangs.
*/
#include "command/slice.h"
#include "ras/findings.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>

typedef struct options {
  cli  cli;
  bool ras, json;
} options;

static void print_findings(const cli *c, const json_t *answer, const json_t *list, const char *address) {
  const char *version = json_string_value(json_object_get(answer, "nccl_version"));
  size_t      i, waiting = 0;
  json_t     *one;
  json_array_foreach(list, i, one) waiting += *json_string_value(json_object_get(one, "finding")) != '\0';
  mgrid_text where = { 0 };
  mgrid_text_shown(&where, address);
  printf("NCCL %s at %s: %zu communicators, of which %zu wait\n", version ? version : "?", mgrid_text_chars(&where),
         json_array_size(list), waiting);
  mgrid_text_free(&where);
  json_array_foreach(list, i, one) {
    const char *groups = json_string_value(json_object_get(one, "groups"));
    const char *text = json_string_value(json_object_get(one, "finding"));
    printf("%-18s %-16s %4" PRId64 " ranks  %s\n", json_string_value(json_object_get(one, "hash")),
           *groups     ? groups
           : c->recipe ? "of no family"
                       : "-",
           (int64_t)json_integer_value(json_object_get(one, "size")), *text ? text : "nobody waits");
  }
}

static void print_text(const char *text) {
  mgrid_text t = { 0 };
  mgrid_text_shown_lines(&t, text);
  printf("NCCL before 2.28.7 tells text alone, in which no communicator can be told from another:\n%s",
         mgrid_text_chars(&t));
  mgrid_text_free(&t);
}

/* Every process of a launcher would ask the same one: only the first does. */
static mgrid_status ask(const cli *c, bool json) {
  const char    *address = getenv("NCCL_RAS_ADDR");
  mgrid_error    err = MGRID_ERROR_INIT;
  mgrid_runtime *rt = NULL;
  mgrid_plan    *plan = NULL;
  json_t        *answer = NULL, *list;
  char          *text = NULL;
  if (!c->recipe != !c->world)
    return cli_usage(c, "doctor --ras needs a recipe together with --world N, the ranks of the job, or neither");
  if (!address || !*address) address = "localhost:28028";
  if (c->recipe && !(plan = cli_evaluate(c, &rt, &err))) {
    mgrid_runtime_free(rt);
    return cli_say(c, &err);
  }
  mgrid_status s = c->me == 0 ? ras_ask(address, &answer, &text, &err) : MGRID_OK;
  if (s) cli_say(c, &err);
  if (text) print_text(text);
  if (answer) {
    s = ras_findings(answer, plan, &list, &err);
    if (!s && json)
      s = cli_put_json(list, &err);
    else if (!s)
      print_findings(c, answer, list, address);
    if (s) cli_say(c, &err);
    json_decref(list);
  }
  json_decref(answer);
  free(text);
  mgrid_plan_free(plan);
  mgrid_runtime_free(rt);
  return cli_finish(c, s);
}

static mgrid_status run(const cli_command *self, int argc, char **argv) {
  options c = { 0 };
  if (!cli_parse(&c.cli, self, argc, argv)) return c.cli.code;
  return ask(&c.cli, c.json);
}

/* What lua/command/doctor.lua starts, and what tells it that --ras is here: in no help, nobody types it. */
static const cli_command ras = {
  .name = "ras",
  .options = { { "ras", cli_flag, offsetof(options, ras), .help = "" },
               { "json", cli_flag, offsetof(options, json), .help = "" },
               CLI_WORLD("") },
  .run = run,
};

static const cli_command *const commands[] = { &ras, NULL };

extern const cli_slice cli_slice_ras;
const cli_slice        cli_slice_ras = { .commands = commands };
