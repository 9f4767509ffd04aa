/* SPDX-License-Identifier: MIT
**
** slice.h - what a slice adds to the command: one row, in src/NAME/command/slice.c. The command iterates over the
** rows, and calls nothing else of a slice.
*/
#ifndef MGRID_CLI_SLICE_H
#define MGRID_CLI_SLICE_H

#include "command/cli.h"

enum { CLI_ADDED_OPTIONS_MAX = 8 };

/* What a slice adds to a subcommand of the core: options, of which the first is the switch, and what is done instead if
** the switch is given. What is missing is NULL. */
typedef struct cli_addition {
  const char *to;     /* the subcommand */
  const char *usage;  /* added to `moongrid NAME --help`: a line */
  const char *before; /* the options go before this one of the subcommand; NULL: after all */
  /* `at` is 0: cli_added_flag, _number or _text returns the value, which starts as false, NULL or 0. Or it is an offset in cli. */
  cli_option options[CLI_ADDED_OPTIONS_MAX];

  /* For run, which then takes two sides: go from one plan to the other. `sides` says why there are two, such as "move
  ** tensors from one to the other". A plan that is NULL: *planning says why. `machine` is that of mgrid_move_options.
  ** Collective; rank 0 prints. */
  const char *sides;
  mgrid_status (*go)(const cli *c, mgrid_backend *b, const mgrid_plan *from, const mgrid_plan *to, int64_t machine,
                     mgrid_error *planning, mgrid_error *err);
  /* For run with one side: use its state, after it was proved. Collective; rank 0 prints, and with `json` nobody else. */
  mgrid_status (*use)(const cli *c, mgrid_runtime *rt, mgrid_state *state, bool json, mgrid_error *err);
} cli_addition;

typedef struct cli_slice {
  const cli_command *const *commands;  /* its subcommands; NULL ends */
  const cli_addition       *additions; /* to those of the core; ends with .to NULL */
  /* Before the plans of a recipe: give the runtime what the command line says. After each plan, also a saved one: refuse
  ** it, if that contradicts it. */
  mgrid_status (*before)(const cli *c, mgrid_runtime *rt, mgrid_error *err);
  mgrid_status (*after)(const cli *c, const mgrid_plan *p, mgrid_error *err);
  /* Check that --machine can be read. */
  mgrid_status (*machine)(const cli *c, const char *machine, mgrid_error *err);
  /* For run, before communicators are created: say on stderr what of the command line differs from the job. Collective. */
  mgrid_status (*meets)(const cli *c, mgrid_backend *b, const mgrid_plan *p, mgrid_error *err);
} cli_slice;

/* One row for each slice that has src/NAME/command/slice.c, cli_slice_NAME; NULL ends. The Makefile writes it from SLICES. */
extern const cli_slice *const cli_slices[];

/* Add the slices' additions to the row of a subcommand. slice_rows.c */
void cli_add(cli_command *command);
/* Call `before`, `after` and `meets` of all slices, until one fails. */
mgrid_status cli_before_plans(const cli *c, mgrid_runtime *rt, mgrid_error *err);
mgrid_status cli_before_ranks(const cli *c, mgrid_backend *b, const mgrid_plan *p, mgrid_error *err);
mgrid_status cli_after_plan(const cli *c, const mgrid_plan *p, mgrid_error *err);
/* Return the addition to this line's command whose switch was given; NULL: none. */
const cli_addition *cli_switched(const cli *c);
/* Return the value of an option that slices added to this line's command, by its name. */
bool        cli_added_flag(const cli *c, const char *option);
int64_t     cli_added_number(const cli *c, const char *option);
const char *cli_added_text(const cli *c, const char *option);

#endif
