/* SPDX-License-Identifier: MIT
**
** complete.h - candidates for the last word of a command line.
*/
#ifndef MGRID_COMPLETE_H
#define MGRID_COMPLETE_H

#include "command/cli.h"

/* Print the candidates for the last of argc words, which follow "moongrid"; `commands` are the n subcommands. */
mgrid_status cli_complete(const cli_command *commands, size_t n, int argc, char **argv);

#endif
