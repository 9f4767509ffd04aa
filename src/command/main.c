/* SPDX-License-Identifier: MIT
**
** main.c - the command moongrid: finds the subcommand and starts it.
*/
#include "base/base.h"
#include "command/cli.h"
#include "command/complete.h"

#include <string.h>

/* Every subcommand, in the order of the help: X(name) stands for command_name of
** src/command/name.c; policy is in ask.c. */
#define COMMANDS(X) \
  X(plan) X(draw) X(run) X(check) X(diff) X(move) X(reshard) X(why) X(explain) X(ask) X(policy) X(recipes) X(doctor)

#define DECLARE(name) extern const cli_command command_##name;
COMMANDS(DECLARE)

#define ROW(name) &command_##name,
static const cli_command *const commands[] = { COMMANDS(ROW) };
enum { COUNT = sizeof commands / sizeof commands[0] };

static void print_help(FILE *out) {
  fputs("usage: moongrid COMMAND ...\n"
        "\n"
        "Process groups of parallel training, from a recipe to communicators.\n"
        "\n",
        out);
  for (int i = 0; i < COUNT; i++) {
    int n = fprintf(out, "  %s %s", commands[i]->name, commands[i]->takes);
    fprintf(out, "%*s  %s\n", n < 45 ? 45 - n : 0, "", commands[i]->does);
  }
  fputs("\n"
        "  RECIPE is a file, the name of a bundled one, or - for standard input.\n"
        "  --help after a command tells more; --version.\n"
        "\n"
        "Exit codes: 0 ok, 1 recipe or sizes refused, 2 usage, 3 limit hit, 4 backend failed,\n"
        "5 ranks disagree.\n",
        out);
}

/* The hundreds of a status are the exit code. */
static int exit_code(mgrid_status s) { return (int)s / 100; }

int main(int argc, char **argv) {
  char        option_help[] = "--help";
  const char *word = argc > 1 ? argv[1] : "--help";
  if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0 || (strcmp(word, "help") == 0 && argc == 2)) {
    print_help(argc > 1 ? stdout : stderr);
    return exit_code(argc > 1 ? MGRID_OK : MGRID_USAGE);
  }
  if (strcmp(word, "--version") == 0) {
    printf("moongrid %s\n", mgrid_version());
    return exit_code(MGRID_OK);
  }
  if (strcmp(word, "complete") == 0) return exit_code(cli_complete(commands, COUNT, argc - 2, argv + 2));
  if (strcmp(word, "-V") == 0 || strcmp(word, "-v") == 0 || strcmp(word, "version") == 0) {
    fprintf(stderr, "moongrid: unknown %s '%s'; --version tells the version\n", *word == '-' ? "option" : "command",
            word);
    return exit_code(MGRID_USAGE);
  }
  if (strcmp(word, "help") == 0) { /* help COMMAND: COMMAND --help */
    argv[1] = argv[2];
    argv[2] = option_help;
    word = argv[1];
  }
  const char *known[COUNT];
  char        tail[128];
  for (int i = 0; i < COUNT; i++) {
    known[i] = commands[i]->name;
    if (strcmp(known[i], word) == 0) return exit_code(commands[i]->run(commands[i], argc - 1, argv + 1));
  }
  static const char *const alone[] = { "help", "version" };
  bool                     option = strncmp(word, "--", 2) == 0;
  mgrid_suggest(tail, sizeof tail, option ? word + 2 : word, option ? alone : known, option ? 2 : COUNT);
  mgrid_error e = MGRID_ERROR_INIT; /* its message may be shown */
  mgrid_fail(&e, MGRID_USAGE, "unknown %s '%s'%s%s", option ? "option" : "command", word, tail,
             option ? "; other options stand behind a command" : "");
  fprintf(stderr, "moongrid: %s\n", e.message);
  return exit_code(MGRID_USAGE);
}
