/* SPDX-License-Identifier: MIT
**
** doctor.c - moongrid doctor: what works on this machine, and why the rest does not.
*/
#include "comm/open.h"
#include "command/cli.h"
#include "script/runtime.h"

#include <jansson.h>
#include <string.h>

static const char help[] = "usage: moongrid doctor [--json]\n"
                           "\n"
                           "Say what works here: planning, the mpi backend, the nccl backend, the launcher.\n";

typedef struct options {
  cli  cli;
  bool json;
} options;

enum { FINDINGS_MAX = MGRID_BACKENDS_MAX + 2 };

typedef struct finding {
  const char *part;
  bool        works;
  char        text[1100];
} finding;

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
  f[n] = (finding){ "launcher", c->launched, "none: start with mpirun to run on several ranks" };
  if (c->launched) snprintf(f[n].text, sizeof f[n].text, "rank %lld of %lld", (long long)c->me, (long long)c->ranks);
  return n + 1;
}

static mgrid_status run(const cli_command *self, int argc, char **argv) {
  options c = { 0 };
  finding f[FINDINGS_MAX];
  if (!cli_parse(&c.cli, self, argc, argv)) return c.cli.code;
  size_t n = examine(&c.cli, f);
  if (c.cli.me != 0) return MGRID_OK;
  json_t *all = json_object();
  for (size_t i = 0; i < n; i++) {
    if (c.json)
      json_object_set_new(all, f[i].part, json_pack("{sbss}", "works", f[i].works, "text", f[i].text));
    else
      printf("%-10s %-4s %s\n", f[i].part, f[i].works ? "yes" : "no", f[i].text);
  }
  if (c.json) {
    json_dumpf(all, stdout, JSON_INDENT(2) | JSON_SORT_KEYS);
    printf("\n");
  }
  json_decref(all);
  return cli_finish(&c.cli, MGRID_OK);
}

const cli_command command_doctor = {
  .name = "doctor",
  .takes = "",
  .does = "what works on this machine",
  .help = help,
  .options = { { "json", cli_flag, offsetof(options, json) } },
  .run = run,
};
