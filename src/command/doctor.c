/* SPDX-License-Identifier: MIT
**
** doctor.c - moongrid doctor: report what works on this machine, and why the rest does not.
*/
#include "comm/open.h"
#include "command/slice.h"
#include "plan/json.h"
#include "recipe/runtime.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

typedef struct options {
  cli  cli;
  bool json;
} options;

enum { FINDINGS_MAX = MGRID_BACKENDS_MAX + CLI_ADDITIONS_MAX + 3 };

/* Fill in the findings; return how many there are. */
static size_t examine(const cli *c, cli_finding f[FINDINGS_MAX]) {
  mgrid_error err = MGRID_ERROR_INIT;
  f[0] = (cli_finding){ "planning", true, "" };
  snprintf(f[0].text, sizeof f[0].text, "moongrid %s, %s", mgrid_version(), mgrid_lua_release());
  size_t n = 1;
  for (const mgrid_descriptor *d = mgrid_backends; d->name; d++) {
    if (!d->library) continue;
    f[n] = (cli_finding){ d->name, false, "" };
    mgrid_error_clear(&err);
    f[n].works = mgrid_backend_probe(d, f[n].text, sizeof f[n].text, &err) == MGRID_OK;
    if (!f[n].works) snprintf(f[n].text, sizeof f[n].text, "%s", err.message);
    f[n].text[strcspn(f[n].text, "\n")] = '\0';
    n++;
  }
  for (const cli_addition *const *a = c->command->additions; *a; a++)
    if ((*a)->examine) (*a)->examine(&f[n++]);
  f[n] = (cli_finding){ "launcher", c->launched, "none: start with mpirun to run on several ranks" };
  if (c->launched) snprintf(f[n].text, sizeof f[n].text, "rank %lld of %lld", (long long)c->me, (long long)c->ranks);
  mgrid_text limits = { 0 };
  f[n + 1] = (cli_finding){ "limits", cli_limits(c, true, &limits), "" };
  snprintf(f[n + 1].text, sizeof f[n + 1].text, "%s", limits.data ? limits.data : "none");
  mgrid_text_free(&limits);
  for (size_t i = 0; i < n + 2; i++)
    mgrid_show(f[i].text, sizeof f[i].text); /* it may come from the environment, or from files */
  return n + 2;
}

static mgrid_status run(const cli_command *self, int argc, char **argv) {
  options     c = { 0 };
  cli_finding f[FINDINGS_MAX];
  if (!cli_parse(&c.cli, self, argc, argv)) return c.cli.code;
  const cli_addition *by = cli_switched(&c.cli);
  if (by) return by->run(&c.cli);
  for (const cli_addition *const *a = self->additions; *a; a++)
    if ((*a)->recipe && (c.cli.recipe || c.cli.world || c.cli.nargs))
      return cli_usage(&c.cli, "doctor takes a recipe and --world only with --%s", (*a)->options[0].name);
  size_t n = examine(&c.cli, f);
  if (c.cli.me != 0) return MGRID_OK;
  json_t *all = json_object();
  for (size_t i = 0; i < n; i++) {
    if (c.json)
      json_object_set_new(all, f[i].part, mgrid_json_pack("{sbss}", "works", f[i].works, "text", f[i].text));
    else
      printf("%-10s %-4s %s\n", f[i].part, f[i].works ? "yes" : "no", f[i].text);
  }
  mgrid_error  e = MGRID_ERROR_INIT;
  mgrid_status s = c.json ? cli_put_json(all, &e) : MGRID_OK;
  if (s) cli_say(&c.cli, &e);
  json_decref(all);
  return cli_finish(&c.cli, s);
}

const cli_command command_doctor = {
  .name = "doctor",
  .takes = "",
  .does = "what works on this machine",
  .usage = "moongrid doctor [--json]",
  .about = "Report what works here: planning, the backends, the launcher, and whether the limits on memory, threads\n"
           "and open files (ulimit, cgroup) are enough for this job's ranks.",
  .sample = "moongrid doctor --json",
  .options = { { "json", cli_flag, offsetof(options, json), .help = "as JSON" } },
  .run = run,
};
