/* SPDX-License-Identifier: MIT
**
** main.c - the command moongrid: a file per subcommand.
*/
#include "base/base.h"
#include "host/cli.h"

#include <string.h>

static const char help[] = "usage: moongrid COMMAND ...\n"
                           "\n"
                           "Process groups of parallel training, from a recipe to communicators.\n"
                           "\n"
                           "  plan RECIPE --world N [NAME=VALUE ...]       what groups a recipe makes\n"
                           "  run RECIPE [NAME=VALUE ...]                  create and prove them, under mpirun\n"
                           "  check RECIPE --world N,N,... [NAME=VALUE ...]  its laws at several sizes\n"
                           "  diff A --world N [...] vs B [...]            what changes from one plan to another\n"
                           "  recipes [RECIPE]                             what is bundled, and its parameters\n"
                           "  doctor                                       what works on this machine\n"
                           "\n"
                           "  --help after a command tells more; --version.\n"
                           "\n"
                           "Exit codes: 0 ok, 1 recipe or sizes refused, 2 usage, 3 limit hit, 4 backend failed,\n"
                           "5 ranks disagree.\n";

static const struct {
  const char *name;
  int (*run)(int argc, char **argv);
} commands[] = {
  { "plan", cli_run_plan }, { "run", cli_run_run },         { "check", cli_run_check },
  { "diff", cli_run_diff }, { "recipes", cli_run_recipes }, { "doctor", cli_run_doctor },
};
enum { COMMANDS = sizeof commands / sizeof commands[0] };

int main(int argc, char **argv) {
  char        option_help[] = "--help";
  const char *word = argc > 1 ? argv[1] : "--help";
  if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0 || (strcmp(word, "help") == 0 && argc == 2)) {
    fputs(help, argc > 1 ? stdout : stderr);
    return argc > 1 ? MGRID_OK : MGRID_USAGE;
  }
  if (strcmp(word, "--version") == 0) {
    printf("moongrid %s\n", mgrid_version());
    return MGRID_OK;
  }
  if (strcmp(word, "help") == 0) { /* help COMMAND: COMMAND --help */
    argv[1] = argv[2];
    argv[2] = option_help;
    word = argv[1];
  }
  for (int i = 0; i < COMMANDS; i++)
    if (strcmp(commands[i].name, word) == 0) return commands[i].run(argc - 1, argv + 1);
  const char *known[COMMANDS];
  char        tail[128];
  for (int i = 0; i < COMMANDS; i++) known[i] = commands[i].name;
  mgrid_suggest(tail, sizeof tail, word, known, COMMANDS);
  fprintf(stderr, "moongrid: unknown command '%s'%s\n", word, tail);
  return MGRID_USAGE;
}
