/* SPDX-License-Identifier: MIT
**
** doctor.c - moongrid doctor: what works on this machine, and why the rest does not.
*/
#include "comm/open.h"
#include "command/cli.h"
#include "ras/findings.h"
#include "recipe/runtime.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

typedef struct options {
  cli  cli;
  bool json, ras;
} options;

enum { FINDINGS_MAX = MGRID_BACKENDS_MAX + 4 };

typedef struct finding {
  const char *part;
  bool        works;
  char        text[1100];
} finding;

static finding examine_reading(void) {
  mgrid_error err = MGRID_ERROR_INIT;
  finding     f = { "reading", cli_reading(&err) == MGRID_OK, "" };
  if (f.works)
    snprintf(f.text, sizeof f.text, "ranks of this host read each other's memory when tensors move over MPI");
  else
    snprintf(f.text, sizeof f.text, "between ranks of this host tensors move by messages: %s", err.message);
  return f;
}

/* Fill in the findings; return how many there are. */
static size_t examine(const cli *c, finding f[FINDINGS_MAX]) {
  mgrid_error err = MGRID_ERROR_INIT;
  f[0] = (finding){ "planning", true, "" };
  snprintf(f[0].text, sizeof f[0].text, "moongrid %s, %s", mgrid_version(), mgrid_lua_release());
  size_t n = 1;
  for (const mgrid_descriptor *d = mgrid_backends; d->name; d++) {
    if (!d->library) continue;
    f[n] = (finding){ d->name, false, "" };
    mgrid_error_clear(&err);
    f[n].works = mgrid_backend_probe(d, f[n].text, sizeof f[n].text, &err) == MGRID_OK;
    if (!f[n].works) snprintf(f[n].text, sizeof f[n].text, "%s", err.message);
    f[n].text[strcspn(f[n].text, "\n")] = '\0';
    n++;
  }
  f[n++] = examine_reading();
  f[n] = (finding){ "launcher", c->launched, "none: start with mpirun to run on several ranks" };
  if (c->launched) snprintf(f[n].text, sizeof f[n].text, "rank %lld of %lld", (long long)c->me, (long long)c->ranks);
  mgrid_text limits = { 0 };
  f[n + 1] = (finding){ "limits", cli_limits(c, true, &limits), "" };
  snprintf(f[n + 1].text, sizeof f[n + 1].text, "%s", limits.data ? limits.data : "none");
  mgrid_text_free(&limits);
  for (size_t i = 0; i < n + 2; i++) mgrid_show(f[i].text, sizeof f[i].text); /* of the environment, of files */
  return n + 2;
}

static void print_json(const json_t *value) {
  json_dumpf(value, stdout, JSON_INDENT(2) | JSON_SORT_KEYS);
  printf("\n");
}

static void print_findings(const options *c, const json_t *answer, const json_t *list, const char *address) {
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
           *groups         ? groups
           : c->cli.recipe ? "of no family"
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
static mgrid_status ask_ras(const options *c) {
  const char    *address = getenv("NCCL_RAS_ADDR");
  mgrid_error    err = MGRID_ERROR_INIT;
  mgrid_runtime *rt = NULL;
  mgrid_plan    *plan = NULL;
  json_t        *answer = NULL, *list;
  char          *text = NULL;
  if (!address || !*address) address = "localhost:28028";
  if (c->cli.recipe && !(plan = cli_evaluate(&c->cli, &rt, &err))) {
    mgrid_runtime_free(rt);
    return cli_say(&c->cli, &err);
  }
  mgrid_status s = c->cli.me == 0 ? ras_ask(address, &answer, &text, &err) : MGRID_OK;
  if (s) cli_say(&c->cli, &err);
  if (text) print_text(text);
  if (answer) {
    s = ras_findings(answer, plan, &list, &err);
    if (s)
      cli_say(&c->cli, &err);
    else if (c->json)
      print_json(list);
    else
      print_findings(c, answer, list, address);
    json_decref(list);
  }
  json_decref(answer);
  free(text);
  mgrid_plan_free(plan);
  mgrid_runtime_free(rt);
  return cli_finish(&c->cli, s);
}

static mgrid_status run(const cli_command *self, int argc, char **argv) {
  options c = { 0 };
  finding f[FINDINGS_MAX];
  if (!cli_parse(&c.cli, self, argc, argv)) return c.cli.code;
  if (!c.ras && (c.cli.recipe || c.cli.world || c.cli.nargs))
    return cli_usage(&c.cli, "doctor takes a recipe and --world only with --ras");
  if (c.ras && !c.cli.recipe != !c.cli.world)
    return cli_usage(&c.cli, "doctor --ras wants a recipe together with --world N, the ranks of the job, or neither");
  if (c.ras) return ask_ras(&c);
  size_t n = examine(&c.cli, f);
  if (c.cli.me != 0) return MGRID_OK;
  json_t *all = json_object();
  for (size_t i = 0; i < n; i++) {
    if (c.json)
      json_object_set_new(all, f[i].part, json_pack("{sbss}", "works", f[i].works, "text", f[i].text));
    else
      printf("%-10s %-4s %s\n", f[i].part, f[i].works ? "yes" : "no", f[i].text);
  }
  if (c.json) print_json(all);
  json_decref(all);
  return cli_finish(&c.cli, MGRID_OK);
}

const cli_command command_doctor = {
  .name = "doctor",
  .takes = "[--ras [RECIPE --world N]]",
  .does = "what works on this machine",
  .usage = "moongrid doctor [--json]\n"
           "       moongrid doctor --ras [RECIPE --world N] [NAME=VALUE ...] [--json]",
  .about = "Say what works here: planning, the backends, whether ranks may read each other's memory, as moves of\n"
           "tensors on one host do (else they send messages), the launcher, and whether the limits on memory, threads\n"
           "and open files (ulimit, cgroup) are enough for this job's ranks.",
  .sample = "moongrid doctor --ras megatron --world 16",
  .recipe = true,
  .options = { { "json", cli_flag, offsetof(options, json), .help = "as JSON" },
               { "ras", cli_flag, offsetof(options, ras),
                 .help =
                     "of a job with NCCL that runs on this machine: its communicators, and who waits for whom, as "
                     "NCCL's RAS knows it (at localhost:28028, or where NCCL_RAS_ADDR says). With the job's "
                     "recipe and number of ranks they have the names of families; start it as the user of the job" },
               CLI_WORLD("the number of ranks of the job") },
  .run = run,
};
