/* SPDX-License-Identifier: MIT
**
** cli.h - subcommands, and what they share: options, messages, text to stdout.
**
** A subcommand is one row, a cli_command, at the end of its own file. main.c lists those of the core; slices list
** theirs (slice.h).
*/
#ifndef MGRID_CLI_H
#define MGRID_CLI_H

#include "base/base.h"
#include "moongrid.h"

#include <jansson.h>
#include <stddef.h>
#include <stdio.h>

enum { CLI_ARGS_MAX = 256, CLI_OPTIONS_MAX = 24, CLI_COMMON_MAX = 5 };
enum { CLI_KNOWN_MAX = CLI_OPTIONS_MAX + CLI_COMMON_MAX, CLI_VALUES_MAX = 18 };
enum {
  CLI_ADDITIONS_MAX = 5,
  CLI_ADDED_MAX = 16
}; /* of slices, for a subcommand: additions and a NULL, values of their options */

typedef union cli_value {
  bool        flag;
  int64_t     number;
  const char *text;
} cli_value;

/* The values of a command line that every subcommand has. A subcommand with its own options has a struct that starts
** with a cli, and sets the defaults in it before cli_parse. */
typedef struct cli {
  const struct cli_command *command;
  struct cli               *other;  /* the other side of "A vs B"; NULL: none */
  const char               *recipe; /* a file, a bundled name or "-"; NULL: none */
  size_t                    nargs;
  const char               *args[CLI_ARGS_MAX]; /* NAME=VALUE, as typed */
  const char               *params;             /* a file; NULL: none */
  const char               *machine;            /* where ranks run: a number of ranks, or what a slice reads; NULL */
  int64_t                   world;              /* of --world N; 0: not given */
  const char               *color;              /* as typed; NULL: auto */
  const char               *print;              /* which ranks print what recipes print: all, none; else rank 0 */
  bool                      help;
  int64_t      me, ranks; /* rank and number of ranks, from the launcher's environment; 0 and 1 without a launcher */
  bool         launched;  /* by a launcher */
  int          columns;   /* of the terminal; 80 if stdout is not one */
  mgrid_status code;      /* what to return if cli_parse is false */
  cli_value    added[CLI_ADDED_MAX]; /* of the options that slices add: slice.h */
} cli;

/* Reads the value of an option into *to, or refuses it with a message. `name` is the option with its dashes. `value` is
** NULL only for cli_flag. */
typedef mgrid_status cli_reader(const cli *c, const char *name, const char *value, void *to);

cli_reader cli_flag;    /* bool: the option takes no value */
cli_reader cli_text;    /* const char *: any text */
cli_reader cli_number;  /* int64_t, 1 or more; 0 can mean that the option was not given */
cli_reader cli_machine; /* const char *: --machine. Without a slice for machines only a number of ranks is allowed */
cli_reader cli_world;   /* int64_t, a world; 0: not given. Refused if given twice */

/* Read one of a list such as "5,8..15" at *at: set *first and *last, and move *at to the comma behind it, or to the end.
** False: *at is the character that is wrong. */
bool cli_range(const char **at, int64_t *first, int64_t *last);

/* List the values that an option may have; return how many. */
typedef size_t cli_values(const char *values[CLI_VALUES_MAX]);

/* An option, complete: help, manual pages, completion, checks and "A vs B" follow from its row. */
typedef struct cli_option {
  const char *name;   /* without its dashes */
  cli_reader *read;   /* the type of its value */
  size_t      at;     /* the offset of the value in the subcommand's struct */
  const char *value;  /* what help calls the value; NULL: none. "a|b|c" are all that it may be, and completion offers
                     ** files for FILE and FOLDER, recipes for RECIPE, families for F,G, and for T the things of a plan whose kind is
                     ** called as the option */
  const char *help;   /* its effect; NULL: help leaves it out */
  cli_values *values; /* the names allowed, instead of `value`; NULL: none */
  const char *head;   /* lines before it in the help; NULL: none */
  bool        letter; /* has a short form, -o for --output */
  bool        side;   /* each side of "A vs B" has its own; else it applies to both, on whichever side it is */
  bool        agreed; /* all ranks of a launcher must have the same value */
} cli_option;

/* The row of --world, in every subcommand that takes one world. */
#define CLI_WORLD(does) \
  { "world", cli_world, offsetof(cli, world), "N", .help = (does), .side = true }

/* A subcommand, which takes RECIPE and NAME=VALUE. --help, --color, --machine, --params and --option belong to every one and
** are not in `options`. */
typedef struct cli_command {
  const char *name;
  int         place;          /* its line in `moongrid --help` is between those with less and more; 0: it has none */
  const char *takes, *does;   /* what that says */
  const char *usage, *about;  /* `moongrid NAME --help`: these, the options, */
  const char *notes, *sample; /* paragraphs or NULL, and an example */
  cli_option  options[CLI_OPTIONS_MAX];
  mgrid_status (*run)(const struct cli_command *self, int argc, char **argv); /* argv[0] is the name */
  const struct cli_addition *additions[CLI_ADDITIONS_MAX];                    /* of slices, by cli_add; NULL ends */
} cli_command;

/* Set me, ranks and launched, from the launcher's environment. */
void cli_find_launcher(cli *c);

/* Read the command line of `command` into the struct that starts with *c. False: nothing is left to do, because help
** was printed or the line was refused; c->code is the status then. */
bool cli_parse(cli *c, const cli_command *command, int argc, char **argv);

/* Refuse an output that would replace an input, or have it in OUTPUT.part, where it is made (base/output.h). `tree`: nothing
** is to be written into the input either, if it is a folder. apart.c */
mgrid_status cli_apart(const char *output, const char *input, bool tree, mgrid_error *err);
/* Refuse, with a message, an --output that is a file or folder which the command line reads, by device and inode; one that
** lies in a folder which is read; and one in whose place that lies. apart.c */
mgrid_status cli_check_output(const cli *c, int argc, char **argv);

/* List the options of a command, its own first. Return how many. */
size_t cli_options_of(const cli_command *command, const cli_option *known[CLI_KNOWN_MAX]);
/* Append those options given, as typed, that all ranks must have with the same values. */
void cli_agreed(const cli *c, mgrid_text *t);
/* Print the help of c->command, by lua/command/base/help.lua. tell.c */
mgrid_status cli_help(const cli *c);

/* Return MGRID_USAGE, with a message, if there is no recipe, or no world (0). A saved plan has a world. */
mgrid_status cli_needs(const cli *c, int64_t world);

/* cli_parse for "A ... vs B ...", into two structs of one type. Afterwards they are identical except for a side's own
** values. B without a recipe has that of A. Both may leave out the world, because the launcher has one. False as above. */
bool cli_parse_sides(cli *a, cli *b, const cli_command *command, int argc, char **argv);

/* On a rank of a launcher: if the launcher ends the job, print what the rank is `in`. NULL: print nothing, because an
** error was printed. The text must stay valid. guard.c */
void cli_guard(const cli *c, const char *in);
/* Until cli_guard_end: after `seconds` print "after N seconds <what>: ..." and exit with status 4. If MPI ends the
** process by exit, print who started it. */
void cli_guard_alarm(const cli *c, double seconds, const char *what);
void cli_guard_end(void);

/* Print "moongrid: message" on stderr; return the status. cli_say is for errors that all ranks have: only rank 0
** prints. cli_say_own is for errors that only this rank may have: every rank prints, rank 0 first, whose exit may end
** the job before the others repeat it. cli_usage is a cli_say_own with MGRID_USAGE. */
mgrid_status cli_say(const cli *c, const mgrid_error *e);
mgrid_status cli_say_own(const cli *c, const mgrid_error *e);
mgrid_status cli_usage(const cli *c, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Show progress, in progress.c: after the first second, until the end, show on the last line of the terminal what is
** being done and for how long. Does nothing if stderr is not a terminal. A second call before the end changes the text
** and keeps the time. End it before anything is printed. _wrote: add to the bytes written, which are shown. _hide:
** remove the line to print something in between. */
void cli_progress(const cli *c, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void cli_progress_wrote(size_t bytes);
void cli_progress_hide(void);
void cli_progress_end(void);

/* Write the text to a file of this name. */
mgrid_status cli_write_file(const char *path, const mgrid_text *t, mgrid_error *err);
/* Print JSON with sorted keys. MGRID_NO_MEMORY if `v` is NULL. */
mgrid_status cli_put_json(const json_t *v, mgrid_error *err);
/* Flush stdout. A full disk or a closed pipe is an error. */
mgrid_status cli_finish(const cli *c, mgrid_status s);

/* Return whether the recipe is read from standard input. */
bool cli_from_stdin(const cli *c);
/* Return whether it is a saved plan, in a file or on standard input. Such a plan has its world, and takes no
** parameters. */
bool cli_is_saved(const cli *c);
/* Return a runtime with the recipe loaded, which the caller frees; NULL: *err says why. */
mgrid_runtime *cli_load(const cli *c, mgrid_error *err);
/* The same, but a saved plan needs no runtime: *rt is NULL for it. */
mgrid_status cli_open(const cli *c, mgrid_runtime **rt, mgrid_error *err);
/* Return the recipe's plan for `world` ranks, with the parameters of the command line; with rt NULL the saved plan (world 0:
** of any). The caller frees it. */
mgrid_plan *cli_plan(const cli *c, mgrid_runtime *rt, int64_t world, mgrid_error *err);
/* Do both for the world of --world, or load the saved plan (*rt is NULL then, and the world 0 is that of the plan). The
** caller frees *rt as well, also on failure. */
mgrid_plan *cli_evaluate(const cli *c, mgrid_runtime **rt, mgrid_error *err);

/* Make the error about a family that the plan does not have, with the nearest name. */
mgrid_status cli_unknown_family(const mgrid_plan *p, const char *name, mgrid_error *err);

/* Call a function of lua/command/base/overview.lua: print the "head" of the plan, "show" it (word "json": as JSON), print its
** "notes", or name what is "unheeded" by a backend (word: its name). tell.c */
mgrid_status cli_tell(const cli *c, const char *function, const mgrid_plan *p, const char *word, mgrid_error *err);
/* Print words after a label, folded to fit the terminal. Frees the text. */
void cli_wrap(const cli *c, const char *label, mgrid_text *words);
/* Find the families that "F,G" names, each once, *n of them. `family` has room for all of the plan. */
mgrid_status cli_families(const mgrid_plan *p, const char *list, int *family, size_t *n, mgrid_error *err);
/* Append the limits of the system for this process: all, or those too low for the job's ranks. Return whether all are
** enough. limits.c */
bool cli_limits(const cli *c, bool all, mgrid_text *words);
/* Print those that are too low as a note, on every rank that has some: without enough of them MPI_Init ends the process
** or waits forever, and its messages do not name the limit. */
void cli_note_limits(const cli *c);

/* Format bytes, such as "1.5 GiB". */
const char *cli_bytes(int64_t bytes, char *buf, size_t len);

/* Measure the bandwidth of every communicator of a state; rank 0 prints. Collective. */
mgrid_status cli_bandwidth(mgrid_state *s, mgrid_error *err);

#endif
