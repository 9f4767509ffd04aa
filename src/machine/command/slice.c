/* SPDX-License-Identifier: MIT
**
** slice.c - what machines add to subcommands of C: --machine for every plan.
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

/* A machine that the plan has read is compared when its state is made, and refused; of another one only figures depend, as
** the slots of multicast. */
static mgrid_status meets(const cli *c, mgrid_backend *b, const mgrid_plan *p, mgrid_error *err) {
  const mgrid_machine_item  *item = mgrid_content_machine(&p->content);
  const mgrid_machine_model *m = c->machine ? cli_given_machine(c, p, err) : NULL;
  mgrid_error                mine = MGRID_ERROR_INIT, told = MGRID_ERROR_INIT;
  char                       name[256] = "";
  if (!m || (item && !item->unread)) return MGRID_OK; /* on all ranks, because --machine is the same */
  uint64_t    *hosts = malloc((size_t)mgrid_plan_world(p) * sizeof *hosts);
  mgrid_status s = mgrid_verdict(b, hosts ? MGRID_OK : mgrid_oom(&mine), &mine, err);
  if (!s) s = mgrid_hosts_find(b, hosts, err);
  gethostname(name, sizeof name - 1);
  if (!s) mgrid_verdict(b, mgrid_machine_meets(m, hosts, b->world, b->rank, name, &mine), &mine, &told);
  free(hosts);
  if (!s && told.status && b->rank == 0) fprintf(stderr, "moongrid: note: %s\n", told.message);
  return s || told.status == MGRID_OK || told.status == MGRID_REFUSED ? s : mgrid_error_pass(err, &told);
}

extern const cli_slice cli_slice_machine;
const cli_slice        cli_slice_machine = { .before = before, .after = after, .machine = check, .meets = meets };
