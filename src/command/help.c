/* SPDX-License-Identifier: MIT
**
** help.c - moongrid NAME --help, printed from the row of the subcommand and those of its options.
*/
#include "command/slice.h"

#include <string.h>
#include <unistd.h>

enum { COLUMN = 20, WIDE = 110 }; /* column of the options' texts; line length if stdout is not a terminal */

static void put_option(mgrid_text *t, const cli_option *o) {
  const char *values[CLI_VALUES_MAX];
  char        room[CLI_VALUES_LEN];
  size_t      begin = t->len, n = o->values ? cli_values_of(o, values, room) : 0;
  mgrid_text_str(t, "  ");
  if (o->letter) mgrid_text_add(t, "-%c, ", *o->name);
  mgrid_text_add(t, "--%s", o->name);
  if (o->value) mgrid_text_add(t, " %s", o->value);
  for (size_t i = 0; i < n; i++) mgrid_text_add(t, "%c%s", i ? '|' : ' ', values[i]);
  int used = (int)(t->len - begin) + 2;
  mgrid_text_add(t, "%*s%s\n", used < COLUMN ? COLUMN - used + 2 : 2, "", o->help);
}

bool cli_help(cli *c) {
  const cli_command *command = c->command;
  const cli_option  *known[CLI_KNOWN_MAX];
  mgrid_text         t = { 0 };
  mgrid_text_add(&t, "usage: %s\n", command->usage);
  for (const cli_addition *const *a = command->additions; *a; a++)
    if ((*a)->usage) mgrid_text_add(&t, "       %s\n", (*a)->usage);
  mgrid_text_add(&t, "\n%s\n\n", command->about);
  bool heads = false; /* under one: a blank line before the options of every command */
  for (size_t i = 0, n = cli_options_of(command, known); i < n; i++) {
    bool own = known[i] >= command->options && known[i] < command->options + CLI_OPTIONS_MAX;
    if (heads && !own) mgrid_text_str(&t, "\n");
    heads = own && (heads || known[i]->head);
    if (known[i]->head) mgrid_text_add(&t, "\n%s\n", known[i]->head);
    if (known[i]->help) put_option(&t, known[i]);
  }
  if (command->notes) mgrid_text_add(&t, "\n%s\n", command->notes);
  mgrid_text_add(&t, "\nexample: %s\n", command->sample);
  if (!isatty(STDOUT_FILENO)) c->fold = WIDE;
  bool done = !t.failed && cli_fold(c, t.data, t.len) == 0;
  mgrid_text_free(&t);
  return done;
}
