/* SPDX-License-Identifier: MIT
**
** main.c - the command moongrid: find the subcommand and start it.
*/
#include "base/base.h"
#include "command/complete.h"
#include "command/slice.h"

#include <string.h>

/* Every subcommand of the core, in the order of the help: X(name) stands for command_name of src/command/name.c; policy
** is in ask.c. */
#define COMMANDS(X) \
  X(plan) X(run) X(check) X(diff) X(why) X(explain) X(ask) X(policy) X(shell) X(init) X(recipes) X(doctor)

#define DECLARE(name) extern const cli_command command_##name;
COMMANDS(DECLARE)

#define ROW(name) &command_##name,
static const cli_command *const way[] = { COMMANDS(ROW) };
enum { WAY = sizeof way / sizeof way[0], COMMANDS_MAX = 32 };

/* List all subcommands, with what slices add. Return how many. */
static size_t collect(cli_command *all) {
  size_t n = 0;
  for (size_t i = 0; i < WAY; i++) {
    all[n] = *way[i];
    cli_add(&all[n++]);
    for (const cli_slice *const *s = cli_slices; *s; s++)
      for (const cli_command *const *c = (*s)->commands; c && *c; c++)
        if (strcmp((*c)->after, way[i]->name) == 0 && n + WAY < COMMANDS_MAX) all[n++] = **c;
  }
  return n;
}

static void print_help(const cli_command *commands, size_t count, FILE *out) {
  fputs("usage: moongrid COMMAND ...\n"
        "\n"
        "Process groups of parallel training, from a recipe to communicators.\n"
        "\n",
        out);
  for (size_t i = 0; i < count; i++) {
    int n = fprintf(out, "  %s %s", commands[i].name, commands[i].takes);
    for (const cli_addition *const *a = commands[i].additions; *a; a++)
      if ((*a)->takes) n += fprintf(out, "%s", (*a)->takes);
    fprintf(out, "%*s  %s\n", n < 45 ? 45 - n : 0, "", commands[i].does);
  }
  fputs("\n"
        "  RECIPE is a file, the name of a bundled one, or - for standard input.\n"
        "  --help after a command tells more; --version.\n"
        "\n"
        "Exit codes: 0 ok, 1 recipe or sizes refused, 2 usage, 3 limit hit, 4 backend failed,\n"
        "5 ranks disagree.\n",
        out);
}

/* The exit code is the status divided by 100. */
static int exit_code(mgrid_status s) { return (int)s / 100; }

int main(int argc, char **argv) {
  cli_command commands[COMMANDS_MAX];
  size_t      count = collect(commands);
  char        option_help[] = "--help";
  const char *word = argc > 1 ? argv[1] : "--help";
  mgrid_locale_plain(); /* a preloaded library may have set another; printf below writes numbers for other programs */
  if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0 || (strcmp(word, "help") == 0 && argc == 2)) {
    print_help(commands, count, argc > 1 ? stdout : stderr);
    return exit_code(argc > 1 ? MGRID_OK : MGRID_USAGE);
  }
  if (strcmp(word, "--version") == 0) {
    printf("moongrid %s\n", mgrid_version());
    return exit_code(MGRID_OK);
  }
  if (strcmp(word, "complete") == 0) return exit_code(cli_complete(commands, count, argc - 2, argv + 2));
  if (strcmp(word, "-V") == 0 || strcmp(word, "-v") == 0 || strcmp(word, "version") == 0) {
    fprintf(stderr, "moongrid: unknown %s '%s'; --version tells the version\n", *word == '-' ? "option" : "command",
            word);
    return exit_code(MGRID_USAGE);
  }
  if (strcmp(word, "help") == 0) { /* help COMMAND is COMMAND --help */
    argv[1] = argv[2];
    argv[2] = option_help;
    word = argv[1];
  }
  const char *known[COMMANDS_MAX];
  char        tail[128];
  for (size_t i = 0; i < count; i++) {
    known[i] = commands[i].name;
    if (strcmp(known[i], word) == 0) return exit_code(commands[i].run(&commands[i], argc - 1, argv + 1));
  }
  static const char *const alone[] = { "help", "version" };
  bool                     option = strncmp(word, "--", 2) == 0;
  mgrid_suggest(tail, sizeof tail, option ? word + 2 : word, option ? alone : known, option ? 2 : count);
  mgrid_error e = MGRID_ERROR_INIT; /* its message may contain control characters, which mgrid_fail escapes */
  mgrid_fail(&e, MGRID_USAGE, "unknown %s '%s'%s%s", option ? "option" : "command", word, tail,
             option ? "; other options go after a command" : "");
  fprintf(stderr, "moongrid: %s\n", e.message);
  return exit_code(MGRID_USAGE);
}
