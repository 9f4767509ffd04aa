/* SPDX-License-Identifier: MIT
**
** cli.h - what a subcommand is, and what the subcommands share: options, messages, text to stdout.
**
** A subcommand is one row, a cli_command, at the end of its own file; main.c lists those of the way, slices have theirs
** (slice.h).
*/
#ifndef MGRID_CLI_H
#define MGRID_CLI_H

#include "base/base.h"
#include "moongrid.h"

#include <jansson.h>
#include <stddef.h>
#include <stdio.h>

enum { CLI_ARGS_MAX = 256, CLI_WORLDS_MAX = 64, CLI_OPTIONS_MAX = 24, CLI_NAMES_MAX = 2, CLI_COMMON_MAX = 4 };
enum { CLI_KNOWN_MAX = CLI_OPTIONS_MAX + CLI_COMMON_MAX, CLI_VALUES_MAX = 18, CLI_VALUES_LEN = 64 };
enum {
  CLI_ADDITIONS_MAX = 5,
  CLI_ADDED_MAX = 16
}; /* of slices to a subcommand: additions and a NULL, values of their options */

typedef union cli_value {
  bool        flag;
  int64_t     number;
  const char *text;
} cli_value;

/* The values of a command line that every subcommand has. A subcommand with options of its own has a struct
** that begins with a cli, and sets the defaults in it before cli_parse. */
typedef struct cli {
  const struct cli_command *command;
  struct cli               *other;  /* the other side of "A vs B"; NULL: there is none */
  const char               *recipe; /* a file, a bundled name or "-"; NULL: none */
  size_t                    nargs;
  const char               *args[CLI_ARGS_MAX]; /* NAME=VALUE, as typed */
  size_t                    nwords;
  const char               *words[CLI_NAMES_MAX]; /* what stands after the recipe and is no NAME=VALUE */
  size_t                    before;               /* of args: those that stand before the last of these words */
  const char               *params;               /* a file; NULL: none */
  int64_t                   world;                /* of --world N; 0: not given */
  const char               *color;                /* as typed; NULL: auto */
  const char               *print;                /* who says what recipes print: all, none; else rank 0 */
  bool                      help;
  int64_t      me, ranks; /* rank and number of ranks, from the launcher's environment; 0 and 1 without a launcher */
  bool         launched, bold; /* by a launcher; print colour */
  int          columns, lines; /* of the terminal; 80 and 0 where stdout is none */
  int          fold;           /* where words and rows go on below: `columns`; INT_MAX: nowhere */
  bool         unicode;        /* the locale has lines for boxes */
  mgrid_status code;           /* what to return if cli_parse is false */
  cli_value    added[CLI_ADDED_MAX]; /* of the options that slices add: slice.h */
} cli;

/* Reads the value of an option into *to, or refuses it with a message. `name` is the option's,
** with its dashes; `value` is NULL for cli_flag alone. */
typedef mgrid_status cli_reader(const cli *c, const char *name, const char *value, void *to);

cli_reader cli_flag;    /* bool: the option takes no value */
cli_reader cli_text;    /* const char *: any text */
cli_reader cli_maybe;   /* const char *: text, or "" where no word follows that can be it */
cli_reader cli_index;   /* int64_t, 0 or more */
cli_reader cli_number;  /* int64_t, 1 or more; so 0 can mean that the option was not given */
cli_reader cli_machine; /* int64_t, ranks of a machine */
cli_reader cli_world;   /* int64_t, a world; 0: not given. Given twice, it is refused */
cli_reader cli_worlds;  /* cli_sizes: N[,N...], a range A-B by doubling */

typedef struct cli_sizes {
  size_t  n;
  int64_t at[CLI_WORLDS_MAX];
} cli_sizes;

/* The values that an option may have; how many. */
typedef size_t cli_values(const char *values[CLI_VALUES_MAX]);

/* An option, whole: help, manual pages, completion, checks and "A vs B" follow from its row. */
typedef struct cli_option {
  const char *name;   /* without its dashes */
  cli_reader *read;   /* what kind of value it takes */
  size_t      at;     /* where the value goes: an offset in the subcommand's struct */
  const char *value;  /* what help calls the value; NULL: none. "a|b|c" are all that it may be, and completion offers
                     ** files for FILE and FOLDER, recipes for RECIPE, families for F,G, and for T the things of a plan whose kind is
                     ** called as the option */
  const char *help;   /* what it does; NULL: help leaves it out */
  cli_values *values; /* names that are all it may be, in place of `value`; NULL: not so */
  const char *head;   /* lines before it in the help; NULL: none */
  bool        letter; /* has a short form, -o for --output */
  bool        side;   /* each side of "A vs B" has its own; else it counts for both, on whichever side it stands */
  bool        agreed; /* all ranks of a launcher must have it alike */
} cli_option;

/* The row of --world, in every subcommand that takes one world. */
#define CLI_WORLD(does) \
  { "world", cli_world, offsetof(cli, world), "N", .help = (does), .side = true }

/* A subcommand. --help and --color are every subcommand's and not in `options`; nor are --params and --option, which go
** with the parameters of a recipe. */
typedef struct cli_command {
  const char *name;
  const char *takes, *does;   /* its line in `moongrid --help` */
  const char *usage, *about;  /* `moongrid NAME --help`: these, the options, */
  const char *notes, *sample; /* paragraphs or NULL, and an example */
  bool        recipe;         /* takes RECIPE and NAME=VALUE */
  bool        bare;           /* the recipe without NAME=VALUE */
  const char *recipe_from;    /* the option that has the recipe; NULL: it is a word */
  size_t      words;          /* takes so many words more */
  cli_option  options[CLI_OPTIONS_MAX];
  mgrid_status (*run)(const struct cli_command *self, int argc, char **argv); /* argv[0] is the name */
  const char                *after;                        /* of a slice's: the one that it stands behind in the help */
  const struct cli_addition *additions[CLI_ADDITIONS_MAX]; /* of slices, by cli_add; NULL ends */
} cli_command;

/* Read the command line of `command` into the struct that begins with *c. False when nothing is left to do,
** because help was printed or the line was refused; c->code is the status then. */
bool cli_parse(cli *c, const cli_command *command, int argc, char **argv);

/* The options of a command, its own first; how many. */
size_t cli_options_of(const cli_command *command, const cli_option *known[CLI_KNOWN_MAX]);
/* All values that an option may have, how many; 0: others, too. `room` is for their letters. */
size_t cli_values_of(const cli_option *o, const char *values[CLI_VALUES_MAX], char room[CLI_VALUES_LEN]);
/* Append the options that were given and that all ranks must have alike, as they are typed. */
void cli_agreed(const cli *c, mgrid_text *t);
/* Print the help of c->command; false: stdout fails. help.c */
bool cli_help(cli *c);

/* MGRID_USAGE, and said, where there is no recipe, or no world (0), which a saved plan has. */
mgrid_status cli_wants(const cli *c, int64_t world);
/* MGRID_USAGE, and said, for a rank beyond the world. */
mgrid_status cli_beyond(const cli *c, int64_t rank, int64_t world);

/* cli_parse for "A ... vs B ...", two structs of one type: but for what is a side's own they are equal afterwards. What
** one side leaves out, the recipe of B or a world, is that of the other; with `launched` a world may be left out, as the
** launcher has one. False as above. */
bool cli_parse_sides(cli *a, cli *b, bool launched, const cli_command *command, int argc, char **argv);

/* guard.c. On a rank of a launcher: say what it is in when the launcher ends the job; `in` NULL: say nothing, as an
** error was said. The text must live on. */
void cli_guard(const cli *c, const char *in);
/* Until cli_guard_end: say "after N seconds <what>: ..." and end with status 4; say who started this process, if MPI ends
** it by exit. */
void cli_guard_alarm(const cli *c, double seconds, const char *what);
void cli_guard_end(void);

/* Print "moongrid: message" on stderr; return the status. cli_say is for errors that all ranks have: only rank
** 0 prints. cli_say_own is for errors that this rank may have alone: every rank prints, rank 0 first, whose exit
** may end the job before the others repeat it. cli_usage is a cli_say_own with MGRID_USAGE. */
mgrid_status cli_say(const cli *c, const mgrid_error *e);
mgrid_status cli_say_own(const cli *c, const mgrid_error *e);
mgrid_status cli_usage(const cli *c, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* progress.c. From the second second on, and until the end, say on the last line of the terminal on stderr what is done
** and since when; nothing where stderr is no terminal. Called again before the end it says something else, since the same
** time. End it before anything is printed. _wrote: so many bytes more are written, which are told. _hide: something is
** printed in between. */
void cli_progress(const cli *c, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void cli_progress_wrote(size_t bytes);
void cli_progress_hide(void);
void cli_progress_end(void);

/* An mgrid_sink to a FILE *. */
int cli_sink(void *file, const char *text, size_t len);
/* Print JSON, keys sorted; MGRID_NO_MEMORY where it could not be made. */
mgrid_status cli_put_json(const json_t *v, mgrid_error *err);
/* Flush stdout; a full disk or a closed pipe is a failure. */
mgrid_status cli_finish(const cli *c, mgrid_status s);

/* Is the recipe what is on standard input? */
bool cli_from_stdin(const cli *c);
/* Is it a plan that was saved, in a file or on standard input? Then it has its world, and takes no parameters. */
bool cli_is_saved(const cli *c);
/* A runtime with the recipe loaded, which the caller frees; NULL after filling *err. */
mgrid_runtime *cli_load(const cli *c, mgrid_error *err);
/* The recipe's plan for `world` ranks, with the parameters of the command line. The caller frees it. */
mgrid_plan *cli_plan(const cli *c, mgrid_runtime *rt, int64_t world, mgrid_error *err);
/* Both of these, for the world of --world, or the plan that was saved (*rt is NULL then, and the world 0 that of the plan);
** the caller frees *rt as well, also on failure. */
mgrid_plan *cli_evaluate(const cli *c, mgrid_runtime **rt, mgrid_error *err);

/* Budgets of `moongrid plan`; 0: none. */
typedef struct cli_budgets {
  int64_t gpu_memory; /* MiB */
  int64_t sms, nvls_slots, files;
} cli_budgets;

/* Put into *site what the environment changes about the numbers of NCCL, with a note on stderr of rank 0. resources.c */
void cli_site(const cli *c, mgrid_site *site);
/* The ranks of a machine: those asked for, else (0) the recipe's own gpus_per_node, else as they are. */
void cli_machine_of(const mgrid_plan *p, int64_t asked, mgrid_site *site);
/* MGRID_LIMIT where a rank (-1: any) may take more than a budget. */
mgrid_status cli_check_budgets(const cli_budgets *b, const mgrid_plan *p, int64_t rank, const mgrid_site *site,
                               mgrid_error *err);
/* Print what NCCL takes of any rank. b may be NULL. */
mgrid_status cli_show_resources(const cli *c, const cli_budgets *b, const mgrid_plan *p, const mgrid_site *site,
                                mgrid_error *err);

/* Plan the recipe of a, and with b of b, do the work, say why it failed, and finish. `work` gets b's plan as `to`, NULL
** without b, and may cast c to the subcommand's struct. A status without an error is returned and not said. */
typedef mgrid_status cli_work(const cli *c, const mgrid_plan *p, const mgrid_plan *to, mgrid_error *err);
mgrid_status         cli_with_plans(const cli *a, const cli *b, cli_work *work);

/* The error about a family that the plan has not, with the nearest name. */
mgrid_status cli_unknown_family(const mgrid_plan *p, const char *name, mgrid_error *err);

/* Print a note on stderr about options that the backend does not heed, if there are any; only rank 0 does. */
void cli_note_unheeded(const cli *c, const mgrid_plan *p, const char *backend);
/* Print notes on stderr about ranks in no group, unless the recipe allows them, about parameters that were given and that
** build does not read, and those of its items; only rank 0 does. */
void cli_note_plan(const cli *c, const mgrid_plan *p);
/* The last of these alone, each behind "after: " or so. */
void cli_note_items(const cli *c, const mgrid_plan *p, const char *when);
/* An mgrid_sink to stdout of whole lines, for a cli *: those of a table that are too long for the terminal go on below their
** last column. */
int cli_fold(void *c, const char *text, size_t len);
/* Print words after a label, in lines that fit the terminal. Takes what is in the text. */
void cli_wrap(const cli *c, const char *label, mgrid_text *words);
/* Print `before`, the recipe, the world and the parameters that are not at their defaults, or `all`. */
void cli_show_head(const cli *c, const mgrid_plan *p, const char *before, bool all);
/* Print an overview of the plan: that, grids, a line per family, communicators, what NCCL takes, digest. b may be NULL. */
mgrid_status cli_show_plan(const cli *c, const cli_budgets *b, const mgrid_plan *p, const mgrid_site *site, bool all,
                           mgrid_error *err);
/* Print one rank's coordinates, groups, neighbours and creations. */
mgrid_status cli_show_rank(const cli *c, const mgrid_plan *p, int64_t rank, bool all, mgrid_error *err);
/* Print the plan as JSON, or one rank's view of it (-1: none). */
mgrid_status cli_print_json(const cli *c, const mgrid_plan *p, int64_t rank, const mgrid_site *site, mgrid_error *err);
/* The families that "F,G" names, each once, *n of them; `family` has room for all of the plan. */
mgrid_status cli_families(const mgrid_plan *p, const char *list, int *family, size_t *n, mgrid_error *err);
/* Print the groups of all families (""), or of those in a list "F,G". */
mgrid_status cli_show_groups(const cli *c, const mgrid_plan *p, const char *family, mgrid_error *err);

/* Append the limits of the system on this process, all of them or those that are low for the job's ranks; are they all
** enough? limits.c */
bool cli_limits(const cli *c, bool all, mgrid_text *words);
/* Print those that are low as a note, on every rank that has some, since MPI_Init ends the process or waits for ever where
** it lacks something, and of its many words none is the limit. */
void cli_note_limits(const cli *c);

/* Refuse what has something to say of every rank of a large world. */
mgrid_status cli_all_ranks(const char *what, int64_t ranks, mgrid_error *err);
/* "1.5 GiB" */
const char *cli_bytes(int64_t bytes, char *buf, size_t len);

/* Measure the bandwidth of every communicator of a state; rank 0 prints. Collective. */
mgrid_status cli_bandwidth(mgrid_state *s, mgrid_error *err);

#endif
