/* SPDX-License-Identifier: MIT
**
** slice.c - what pictures add to the command: draw.
*/
#include "command/slice.h"

extern const cli_command command_draw;

static const cli_command *const commands[] = { &command_draw, NULL };

extern const cli_slice cli_slice_pictures;
const cli_slice        cli_slice_pictures = { .commands = commands };
