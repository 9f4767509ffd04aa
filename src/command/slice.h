/* SPDX-License-Identifier: MIT
**
** slice.h - what a slice adds to the command: one row, in src/NAME/command/slice.c. The command iterates over the
** rows, and calls nothing else of a slice.
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

/* What a slice adds to a subcommand of the core: options, of which the first is the switch, and what is done instead if
** the switch is given. What is missing is NULL. */
typedef struct cli_addition {
  const char *to;            /* the subcommand */
  const char *takes;         /* added to its line in `moongrid --help` */
  const char *usage, *notes; /* added to `moongrid NAME --help`: a line, a paragraph */
  const char *before;        /* the options go before this one of the subcommand; NULL: after all */
  bool        recipe;        /* takes a recipe if the switch is given */
  /* `at` is 0: cli_added finds the value, which starts as false, NULL or 0. Or it is an offset in cli. */
  cli_option options[CLI_ADDED_OPTIONS_MAX];

  /* For plan: print this of the plan, or of the rank (-1: none). */
  mgrid_status (*show)(const cli *c, const mgrid_plan *p, int64_t rank, mgrid_error *err);
  /* For run, which then takes two sides: go from one plan to the other. `sides` says why there are two, such as "move
  ** tensors from one to the other". A plan that is NULL: *planning says why. `machine` is that of mgrid_move_options.
  ** Collective; rank 0 prints. */
  const char *sides;
  mgrid_status (*go)(const cli *c, mgrid_backend *b, const mgrid_plan *from, const mgrid_plan *to, int64_t machine,
                     mgrid_error *planning, mgrid_error *err);
  /* For doctor: run with the switch; and one more line without it. */
  mgrid_status (*run)(const cli *c);
  void (*examine)(cli_finding *f);
} cli_addition;

typedef struct cli_slice {
  const cli_command *const *commands;  /* its subcommands, each after the core's one in `after`; NULL ends */
  const cli_addition       *additions; /* to those of the core; ends with .to NULL */
  void (*overview)(const cli *c, const mgrid_plan *p); /* print lines of the overview of a plan, after its families */
} cli_slice;

/* One row for each slice that has src/NAME/command/slice.c, cli_slice_NAME; NULL ends. The Makefile writes it from SLICES. */
extern const cli_slice *const cli_slices[];

/* Add the slices' additions to the row of a subcommand. slices.c */
void cli_add(cli_command *command);
/* Return the addition to this line's command whose switch was given; NULL: none. */
const cli_addition *cli_switched(const cli *c);
/* Return the value of an option that slices added to this line's command, by its name. */
const void *cli_added(const cli *c, const char *option);
bool        cli_added_flag(const cli *c, const char *option);
int64_t     cli_added_number(const cli *c, const char *option);
const char *cli_added_text(const cli *c, const char *option);

#endif
