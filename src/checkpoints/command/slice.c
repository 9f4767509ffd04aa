/* SPDX-License-Identifier: MIT
**
** slice.c - what checkpoints add to the command: reshard.
*/
#include "command/slice.h"

extern const cli_command command_reshard;

static const cli_command *const commands[] = { &command_reshard, NULL };

extern const cli_slice cli_slice_checkpoints;
const cli_slice        cli_slice_checkpoints = { .commands = commands };
