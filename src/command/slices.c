/* SPDX-License-Identifier: MIT
**
** slices.c - what slices add to the subcommands of the core.
*/
#include "command/slice.h"

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
  command->recipe |= a->recipe;
  return true;
}

void cli_add(cli_command *command) {
  size_t n = 0, values = 0;
  for (const cli_slice *const *s = cli_slices; *s; s++)
    for (const cli_addition *a = (*s)->additions; a && a->to; a++)
      if (strcmp(a->to, command->name) == 0) n += add(command, a, n, &values);
}

const void *cli_added(const cli *c, const char *option) {
  const cli_option *o = c->command->options;
  while (strcmp(o->name, option) != 0) o++;
  return (const char *)c + o->at;
}

bool        cli_added_flag(const cli *c, const char *option) { return *(const bool *)cli_added(c, option); }
int64_t     cli_added_number(const cli *c, const char *option) { return *(const int64_t *)cli_added(c, option); }
const char *cli_added_text(const cli *c, const char *option) { return *(const char *const *)cli_added(c, option); }

const cli_addition *cli_switched(const cli *c) {
  for (const cli_addition *const *a = c->command->additions; *a; a++) {
    const cli_option *o = (*a)->options;
    if (o->name && (o->read == cli_flag ? cli_added_flag(c, o->name) : cli_added_text(c, o->name) != NULL)) return *a;
  }
  return NULL;
}
