/* SPDX-License-Identifier: MIT
**
** slice_rows.c - what slices add to the subcommands of the core.
*/
#include "command/slice.h"
#include "plan/plan.h"

#include <stdlib.h>
#include <string.h>

static size_t length(const cli_option *options, size_t most) {
  size_t n = 0;
  while (n < most && options[n].name) n++;
  return n;
}

/* False, and said: cli.h has too little room. */
static bool add(cli_command *command, const cli_addition *a, size_t nth, size_t *values) {
  size_t n = length(command->options, CLI_OPTIONS_MAX), more = length(a->options, CLI_ADDED_OPTIONS_MAX), at = 0;
  while (at < n && !(a->before && strcmp(command->options[at].name, a->before) == 0)) at++;
  if (n + more > CLI_OPTIONS_MAX || nth + 1 >= CLI_ADDITIONS_MAX || *values + more > CLI_ADDED_MAX) {
    fprintf(stderr, "moongrid: slices add more to %s than there is room for in cli.h\n", command->name);
    return false;
  }
  memmove(&command->options[at + more], &command->options[at], (n - at) * sizeof *command->options);
  for (size_t i = 0; i < more; i++) {
    cli_option *o = &command->options[at + i];
    *o = a->options[i];
    if (o->at == 0) o->at = offsetof(cli, added) + (*values)++ * sizeof(cli_value);
  }
  command->additions[nth] = a;
  return true;
}

void cli_add(cli_command *command) {
  size_t n = 0, values = 0;
  for (const cli_slice *const *s = cli_slices; *s; s++)
    for (const cli_addition *a = (*s)->additions; a && a->to; a++)
      if (strcmp(a->to, command->name) == 0) n += add(command, a, n, &values);
}

static const void *added(const cli *c, const char *option) {
  const cli_option *o = c->command->options;
  while (strcmp(o->name, option) != 0) o++;
  return (const char *)c + o->at;
}

bool        cli_added_flag(const cli *c, const char *option) { return *(const bool *)added(c, option); }
int64_t     cli_added_number(const cli *c, const char *option) { return *(const int64_t *)added(c, option); }
const char *cli_added_text(const cli *c, const char *option) { return *(const char *const *)added(c, option); }

const cli_addition *cli_switched(const cli *c) {
  for (const cli_addition *const *a = c->command->additions; *a; a++) {
    const cli_option *o = (*a)->options;
    if (o->name && (o->read == cli_flag ? cli_added_flag(c, o->name) : cli_added_text(c, o->name) != NULL)) return *a;
  }
  return NULL;
}

mgrid_status cli_before_plans(const cli *c, mgrid_runtime *rt, mgrid_error *err) {
  mgrid_status status = MGRID_OK;
  for (const cli_slice *const *s = cli_slices; *s && !status; s++)
    if ((*s)->before) status = (*s)->before(c, rt, err);
  return status;
}

mgrid_status cli_after_plan(const cli *c, const mgrid_plan *p, mgrid_error *err) {
  mgrid_status status = MGRID_OK;
  for (const cli_slice *const *s = cli_slices; *s && !status; s++)
    if ((*s)->after) status = (*s)->after(c, p, err);
  return status;
}

mgrid_status cli_before_ranks(const cli *c, mgrid_backend *b, const mgrid_plan *p, mgrid_error *err) {
  mgrid_status status = MGRID_OK;
  for (const cli_slice *const *s = cli_slices; *s && !status; s++)
    if ((*s)->meets) status = (*s)->meets(c, b, p, err);
  return status;
}

static bool is_number(const char *text) { return *text && text[strspn(text, "0123456789")] == '\0'; }

mgrid_status cli_machine(const cli *c, const char *name, const char *value, void *to) {
  const cli_slice *const *s = cli_slices;
  mgrid_error             err = MGRID_ERROR_INIT;
  int64_t                 ranks = 0;
  while (*s && !(*s)->machine) s++;
  if (is_number(value) || !*s) {
    mgrid_status status = cli_number(c, name, value, &ranks);
    if (!status && ranks > MGRID_MACHINE_RANKS_MAX)
      status = cli_usage(c, "%s is an integer from 1 to %d, not '%s'", name, MGRID_MACHINE_RANKS_MAX, value);
    if (status) return status;
  }
  if (*s && (*s)->machine(c, value, &err)) return cli_say_own(c, &err);
  *(const char **)to = value;
  return MGRID_OK;
}
