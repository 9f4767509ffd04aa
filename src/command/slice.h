/* SPDX-License-Identifier: MIT
**
** slice.h - what a slice has for the command: one row, in src/NAME/command/slice.c. The command goes through the rows, and
** calls nothing of a slice otherwise.
*/
#ifndef MGRID_CLI_SLICE_H
#define MGRID_CLI_SLICE_H

#include "command/cli.h"

enum { CLI_FINDING_TEXT = 1100, CLI_ADDED_OPTIONS_MAX = 8 };

/* A line of moongrid doctor. */
typedef struct cli_finding {
  const char *part;
  bool        works;
  char        text[CLI_FINDING_TEXT];
} cli_finding;

/* What a slice adds to a subcommand of the way: options, of which the first is the switch, and what is done in place of the
** usual where the switch is given. Whatever there is not is NULL. */
typedef struct cli_addition {
  const char *to;            /* the subcommand */
  const char *takes;         /* more of its line in `moongrid --help` */
  const char *usage, *notes; /* of `moongrid NAME --help`: a line more, a paragraph more */
  const char *before;        /* the options stand before this one of the subcommand; NULL: behind all */
  bool        recipe;        /* with the switch it takes a recipe */
  /* `at` is 0: cli_added finds the value, which begins as false, NULL or 0; or it is an offset in cli. */
  cli_option options[CLI_ADDED_OPTIONS_MAX];

  /* Of plan: print this of the plan, or of the rank (-1: none). */
  mgrid_status (*show)(const cli *c, const mgrid_plan *p, int64_t rank, mgrid_error *err);
  /* Of run, which then takes two sides: go from one plan to the other; `sides` says why there are two, "move tensors from one
  ** to the other". A plan is NULL: *planning says why. `machine` is that of mgrid_move_options. Collective; rank 0 prints. */
  const char *sides;
  mgrid_status (*go)(const cli *c, mgrid_backend *b, const mgrid_plan *from, const mgrid_plan *to, int64_t machine,
                     mgrid_error *planning, mgrid_error *err);
  /* Of doctor: all of it; and, without a switch, a line more. */
  mgrid_status (*run)(const cli *c);
  void (*examine)(cli_finding *f);
} cli_addition;

typedef struct cli_slice {
  const cli_command *const
                     *commands;  /* its subcommands, each behind the one of the way that `after` names; NULL ends */
  const cli_addition *additions; /* to those of the way; ends with .to NULL */
  void (*overview)(const cli *c, const mgrid_plan *p); /* print lines of the overview of a plan, behind its families */
} cli_slice;

/* One row for each slice that has src/NAME/command/slice.c, cli_slice_NAME; NULL ends. The Makefile writes it from SLICES. */
extern const cli_slice *const cli_slices[];

/* Put what slices add into the row of a subcommand. slices.c */
void cli_add(cli_command *command);
/* The addition to the command of this line whose switch was given; NULL: none. */
const cli_addition *cli_switched(const cli *c);
/* Where the value of an option of this line's command is, by its name. */
const void *cli_added(const cli *c, const char *option);
bool        cli_added_flag(const cli *c, const char *option);
int64_t     cli_added_number(const cli *c, const char *option);
const char *cli_added_text(const cli *c, const char *option);

#endif
