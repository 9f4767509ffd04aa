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

typedef struct finding {
  const char *part;
  bool        works;
  char        text[1100];
} finding;

static void examine(const cli *c, finding *f) {
  mgrid_error err = { 0 };
  f[0] = (finding){ "planning", true, "" };
  snprintf(f[0].text, sizeof f[0].text, "moongrid %s, %s", mgrid_version(), mgrid_lua_release());
  f[1] = (finding){ "mpi", false, "" };
  f[1].works = mgrid_mpi_version_text(f[1].text, sizeof f[1].text, &err) == MGRID_OK;
  if (!f[1].works) snprintf(f[1].text, sizeof f[1].text, "%s", err.message);
  f[1].text[strcspn(f[1].text, "\n")] = '\0';
  f[2] = (finding){ "nccl", false, "" };
  f[2].works = mgrid_nccl_version_text(f[2].text, sizeof f[2].text, &err) == MGRID_OK;
  if (!f[2].works) snprintf(f[2].text, sizeof f[2].text, "%s", err.message);
  f[3] = (finding){ "launcher", c->launched, "none: start with mpirun to run on several ranks" };
  if (c->launched) snprintf(f[3].text, sizeof f[3].text, "rank %lld of %lld", (long long)c->me, (long long)c->ranks);
}

static int run(const cli_command *self, int argc, char **argv) {
  enum { N = 4 };
  options c = { 0 };
  finding f[N];
  if (!cli_parse(&c.cli, self, argc, argv)) return c.cli.code;
  examine(&c.cli, f);
  if (c.cli.me != 0) return MGRID_OK;
  json_t *all = json_object();
  for (int i = 0; i < N; i++) {
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
