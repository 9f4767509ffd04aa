/* SPDX-License-Identifier: MIT
**
** slice.c - what losses add to the command: lose.
*/
#include "survive/command/words.h"

extern const cli_command command_lose;

static const cli_command *const commands[] = { &command_lose, NULL };

extern const cli_slice cli_slice_survive;
const cli_slice        cli_slice_survive = { .commands = commands };
