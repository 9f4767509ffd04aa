/* SPDX-License-Identifier: MIT
**
** machine.c - moongrid machine: what a machine is, as text or as JSON; without one that of the running job, or the presets.
*/
#include "machine/command/collect.h"
#include "machine/command/given.h"
#include "plan/json.h"

#include <inttypes.h>
#include <jansson.h>
#include <string.h>

typedef struct options {
  cli  cli;
  bool json;
} options;

/* Print the levels of a machine: how many domains, how many places each has, and its link; and what its file has besides. */
static void print_levels(const cli *c, const mgrid_machine_model *m) {
  cli_show_machine(c, m);
  printf("\n%-16s %12s %12s  %s\n", "level", "domains", "places", "link");
  for (size_t i = 0; i < mgrid_machine_nlevels(m); i++) {
    mgrid_machine_level l = MGRID_MACHINE_LEVEL_INIT;
    mgrid_text          t = { 0 };
    mgrid_machine_describe_level(m, i, &l, NULL);
    mgrid_link_text((mgrid_link){ l.bandwidth, l.latency }, &t);
    printf("%-16s ", l.name);
    if (l.domains < 0)
      printf("%12s ", "*");
    else
      printf("%12" PRId64 " ", l.domains);
    if (l.most < 0)
      printf("%12s", "*");
    else
      printf("%s%*" PRId64, l.regular ? "" : "<=", l.regular ? 12 : 10, l.most);
    printf("%s%s\n", t.len ? "  " : "", mgrid_text_chars(&t));
    mgrid_text_free(&t);
  }
  for (const char *note = m->notes, *end; note && (end = strchr(note, '\n')); note = end + 1) {
    mgrid_text t = { 0 };
    mgrid_text_put(&t, note, (size_t)(end - note));
    if (note == m->notes) printf("\n");
    cli_wrap(c, "note", &t);
  }
}

static mgrid_status print_presets(bool json, mgrid_error *err) {
  const char *name, *text, *source;
  json_t     *all = json_object();
  for (size_t i = 0; mgrid_machine_preset(i, &name, &text, &source); i++) {
    if (json)
      json_object_set_new(all, name, mgrid_json_pack("{ssss}", "text", text, "source", source));
    else
      printf("%s%-12s %s\n  %s\n", i ? "\n" : "", name, text, source);
  }
  mgrid_status s = json ? cli_put_json(all, err) : MGRID_OK;
  json_decref(all);
  return s;
}

/* The JSON of a machine, with the boot ids of its hosts. */
static mgrid_status print_collected(const mgrid_machine_model *m, mgrid_text *boots, mgrid_error *err) {
  mgrid_text   t = { 0 };
  mgrid_status s = mgrid_machine_print_json(m, mgrid_text_sink, &t, err);
  if (!s && t.len > 3) {
    t.len -= 3; /* the end of the object */
    mgrid_text_add(&t, ",\n  \"boot_ids\": [");
    mgrid_text_put(&t, mgrid_text_chars(boots), boots->len);
    mgrid_text_str(&t, "]\n}\n");
  }
  if (!s)
    s = t.failed ? mgrid_oom(err) : cli_sink(stdout, mgrid_text_chars(&t), t.len) ? mgrid_unwritten(err) : MGRID_OK;
  mgrid_text_free(&t);
  return s;
}

/* Print the machine of the running job. */
static mgrid_status collect(options *c, mgrid_error *err) {
  mgrid_machine_model *m = NULL;
  mgrid_text           boots = { 0 };
  mgrid_status         s = cli_collect_machine(&c->cli, &m, &boots, err);
  if (m && !s && c->json)
    s = print_collected(m, &boots, err);
  else if (m && !s)
    print_levels(&c->cli, m);
  mgrid_machine_free(m);
  mgrid_text_free(&boots);
  return s;
}

static mgrid_status run(const cli_command *self, int argc, char **argv) {
  options     c = { 0 };
  mgrid_error err = MGRID_ERROR_INIT;
  if (!cli_parse(&c.cli, self, argc, argv)) return c.cli.code;
  if (c.cli.nwords && c.cli.machine)
    return cli_usage(&c.cli, "the machine is given twice, as '%s' and by --machine", c.cli.words[0]);
  mgrid_status s = c.cli.nwords ? cli_machine(&c.cli, "the machine", c.cli.words[0], &c.cli.machine) : MGRID_OK;
  if (s) return s;
  const mgrid_machine_model *m = cli_given_machine(&c.cli, NULL, &err);
  s = err.status;
  if (!m && !s && c.cli.launched)
    s = collect(&c, &err);
  else if (!m && !s)
    s = print_presets(c.json, &err);
  else if (!s && c.json)
    s = mgrid_machine_print_json(m, cli_sink, stdout, &err);
  else if (!s)
    print_levels(&c.cli, m);
  if (s) cli_say(&c.cli, &err);
  return cli_finish(&c.cli, s);
}

extern const cli_command command_machine;
const cli_command        command_machine = {
         .name = "machine",
         .takes = "[M]",
         .does = "the levels of a machine, of the running job, or the presets",
         .usage = "moongrid machine [M | --machine M] [--json]\n"
                         "       mpirun -n N moongrid machine [--json]",
         .about = "Show a machine, M: its levels from far to near, their domains, places and links. As JSON it has the names\n"
                         "of domains, too, and is a file for --machine. Under a launcher, without a machine: that of the job, its\n"
                         "hosts, the GPU of each rank by its PCI id, NVLink cliques where NVML says them. Else the presets.",
         .sample = "moongrid machine \"rack:4 node:18[400GB/s,3us] gpu:4 rail = gpu\"",
         .words = 1,
         .options = { { "machine", cli_machine, offsetof(cli, machine), "MACHINE",
                        .help = "levels, as \"node:4 gpu:8\", a preset, a file, or the ranks of a machine" },
                      { "json", cli_flag, offsetof(options, json), .help = "one JSON object" } },
         .run = run,
         .after = "why",
};
