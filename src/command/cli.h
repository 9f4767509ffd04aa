/* SPDX-License-Identifier: MIT
**
** cli.h - what a subcommand is, and what the subcommands share: options, messages, text to stdout.
**
** A subcommand is one row, a cli_command, at the end of its own file; main.c lists the rows.
*/
#ifndef MGRID_CLI_H
#define MGRID_CLI_H

#include "moongrid.h"

#include <stddef.h>
#include <stdio.h>

enum { CLI_ARGS_MAX = 256, CLI_WORLDS_MAX = 64, CLI_OPTIONS_MAX = 16 };

/* What a command line says to every subcommand. A subcommand with options of its own has a struct
** that begins with a cli, and sets the defaults in it before cli_parse. */
typedef struct cli {
  const struct cli_command *command;
  const char               *recipe; /* a file or a bundled name; NULL: none */
  size_t                    nargs;
  const char               *args[CLI_ARGS_MAX]; /* NAME=VALUE, as typed */
  const char               *params;             /* a file; NULL: none */
  const char               *color;              /* as typed; NULL: auto */
  bool                      help;
  int64_t                   me, ranks;      /* from the launcher's environment: 0 of 1 without one */
  bool                      launched, bold; /* bold: stdout shows colour */
  mgrid_status              code;           /* what to end with where cli_parse is false */
} cli;

/* Reads the value of an option into *to, or says what is wrong with it. `name` is the option's,
** with its dashes; `value` is NULL for cli_flag alone. */
typedef mgrid_status cli_reader(const cli *c, const char *name, const char *value, void *to);

cli_reader cli_flag;   /* bool: the option takes no value */
cli_reader cli_text;   /* const char *: any text */
cli_reader cli_index;  /* int64_t, 0 or more */
cli_reader cli_number; /* int64_t, 1 or more; so 0 can mean that the option was not given */
cli_reader cli_world;  /* int64_t, a world; 0: not given. Given twice, it is refused */
cli_reader cli_worlds; /* cli_sizes: N[,N...] */

typedef struct cli_sizes {
  size_t  n;
  int64_t at[CLI_WORLDS_MAX];
} cli_sizes;

typedef struct cli_option {
  const char *name; /* without its dashes */
  cli_reader *read; /* what kind of value it takes */
  size_t      at;   /* where the value goes: an offset in the subcommand's struct */
} cli_option;

/* A subcommand. --help and --color are every subcommand's and not in `options`; nor is --params,
** which goes with `recipe`. */
typedef struct cli_command {
  const char *name;
  const char *takes, *does; /* its line in `moongrid --help` */
  const char *help;         /* `moongrid NAME --help`, whole */
  bool        recipe;       /* takes RECIPE and NAME=VALUE */
  cli_option  options[CLI_OPTIONS_MAX];
  mgrid_status (*run)(const struct cli_command *self, int argc, char **argv); /* argv[0] is the name */
} cli_command;

/* Read the command line of `command` into the struct that begins with *c. False when nothing is
** left to do, because it asked for help or was refused: c->code says which then. */
bool cli_parse(cli *c, const cli_command *command, int argc, char **argv);

/* "moongrid: message" on stderr; returns the status. cli_say is for what all ranks know alike: rank
** 0 alone speaks. cli_say_own is for what may be true on this rank alone: every rank speaks, rank 0
** first, and where its exit ends the job the others no longer repeat it. cli_usage is a cli_say_own
** with MGRID_USAGE. */
mgrid_status cli_say(const cli *c, const mgrid_error *e);
mgrid_status cli_say_own(const cli *c, const mgrid_error *e);
mgrid_status cli_usage(const cli *c, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* An mgrid_sink to a FILE *. */
int cli_sink(void *file, const char *text, size_t len);
/* Flush stdout; a full disk or a closed pipe is a failure. */
mgrid_status cli_finish(const cli *c, mgrid_status s);

/* A runtime with the recipe loaded, which the caller frees; NULL after filling *err. */
mgrid_runtime *cli_load(const cli *c, mgrid_error *err);
/* The recipe's plan for `world` ranks, with the parameters of the command line. The caller frees it. */
mgrid_plan *cli_plan(const cli *c, mgrid_runtime *rt, int64_t world, mgrid_error *err);

/* The plan at a glance: grids, a line per family, communicators, digest. */
mgrid_status cli_show_plan(const cli *c, const mgrid_plan *p, mgrid_error *err);

/* Measure every communicator of a state; rank 0 prints. Collective. */
mgrid_status cli_bandwidth(mgrid_state *s, mgrid_error *err);

#endif
