/* SPDX-License-Identifier: MIT
**
** slice.c - what machines add to the command: --machine for every plan, and place.
*/
#include "machine/command/given.h"

#include "comm/state.h"
#include "plan/plan.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The machine of this process's command line: read once, though several plans are made for it. */
static struct {
  const char          *source;
  mgrid_machine_model *model;
} given;

static const mgrid_machine_model *read_given(const char *source, mgrid_error *err) {
  if (given.source && strcmp(given.source, source) == 0) return given.model;
  mgrid_machine_model *m = mgrid_machine_open(source, err);
  if (!m) return NULL;
  mgrid_machine_free(given.model);
  given.source = source, given.model = m;
  return m;
}

const mgrid_machine_model *cli_given_machine(const cli *c, const mgrid_plan *p, mgrid_error *err) {
  return c->machine ? read_given(c->machine, err) : p ? mgrid_plan_machine(p) : NULL;
}

const mgrid_machine_model *cli_required_machine(const cli *c, const mgrid_plan *p, mgrid_error *err) {
  mgrid_error                why = MGRID_ERROR_INIT;
  const mgrid_machine_model *m = cli_given_machine(c, p, &why);
  if (why.status) mgrid_error_pass(err, &why);
  if (!m && !why.status)
    mgrid_fail(
        err, MGRID_USAGE,
        "%s needs a machine: --machine \"node:4 gpu:8\", a preset as dgx-h100, or a file; or machine = in the recipe",
        c->command->name);
  return m;
}

void cli_show_machine(const cli *c, const mgrid_machine_model *m) {
  enum { SHOWN = 240 };
  mgrid_text t = { 0 };
  mgrid_machine_text(m, &t);
  if (!t.failed && t.len > SHOWN) {
    t.len = SHOWN;
    while (t.len > 0 && t.data[t.len - 1] != ',' && t.data[t.len - 1] != ' ') t.len--;
    mgrid_text_str(&t, "...");
  }
  cli_wrap(c, "machine", &t);
}

static mgrid_status check(const cli *c, const char *machine, mgrid_error *err) {
  (void)c;
  if (read_given(machine, err)) return MGRID_OK;
  if (!mgrid_machine_is_file(machine)) err->status = MGRID_USAGE; /* as any value that an option cannot have */
  return err->status;
}

static mgrid_status before(const cli *c, mgrid_runtime *rt, mgrid_error *err) {
  if (!c->machine) return MGRID_OK;
  const mgrid_machine_model *m = read_given(c->machine, err);
  return m ? mgrid_runtime_machine(rt, m, err) : err->status;
}

static mgrid_status after(const cli *c, const mgrid_plan *p, mgrid_error *err) {
  if (!c->machine) return MGRID_OK;
  const mgrid_machine_model *m = read_given(c->machine, err);
  return m ? mgrid_machine_fits(m, mgrid_plan_world(p), err) : err->status;
}

extern const cli_command command_place;

static const cli_command *const commands[] = { &command_place, NULL };

extern const cli_slice cli_slice_machine;
const cli_slice        cli_slice_machine = { .commands = commands, .before = before, .after = after, .machine = check };
