/* SPDX-License-Identifier: MIT
**
** slice.c - what the step adds to the command: the traffic of place.
*/
#include "command/slice.h"
#include "step/command/sends.h"

extern const cli_slice cli_slice_step;
const cli_slice        cli_slice_step = { .sends = cli_step_sends };
