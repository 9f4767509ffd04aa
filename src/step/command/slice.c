/* SPDX-License-Identifier: MIT
**
** slice.c - what the step adds to the command: run --step.
*/
#include "command/slice.h"

mgrid_status cli_run_step(const cli *c, mgrid_runtime *rt, mgrid_state *state, bool json,
                          mgrid_error *err); /* run_step.c */

static const cli_addition additions[] = {
  { .to = "run",
    .usage =
        "mpirun -n N moongrid run RECIPE [NAME=VALUE ...] --step STEPS [--scale X] [--compute sleep|gemm] [--unproved]",
    .before = "devices",
    .options = { { "step", cli_number, 0, "STEPS",
                   .help = "then execute the step of the recipe that many times, over MPI or on streams of GPUs: every "
                           "call with its "
                           "bytes; and compare planned with measured values, by family (moongrid step)",
                   .agreed = true },
                 { "scale", cli_text, 0, "X", .help = "multiply the bytes and the compute of a step by X; default: 1",
                   .head = "with --step", .agreed = true },
                 { "compute", cli_text, 0, "sleep|gemm",
                   .help = "spend the time of computes: asleep (their seconds, and their flops at 100 TFLOP/s), or by "
                           "multiplying matrices; default: none is spent",
                   .agreed = true },
                 { "output", cli_text, 0, "FILE.json", .letter = true,
                   .help = "write what each rank did in the last step, in the trace event format of Chrome",
                   .agreed = true },
                 { "unproved", cli_flag,
                   .help = "execute even a step that is not proved and may wait forever: each call has a "
                           "deadline, --timeout",
                   .agreed = true } },
    .use = cli_run_step },
  { .to = NULL },
};

extern const cli_slice cli_slice_step;
const cli_slice        cli_slice_step = { .additions = additions };
