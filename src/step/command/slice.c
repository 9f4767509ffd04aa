/* SPDX-License-Identifier: MIT
**
** slice.c - what the step adds to the command: run --step, diff --step, the proof of check, the traffic of place.
*/
#include "command/slice.h"
#include "step/command/sends.h"
#include "step/step.h"

mgrid_status cli_run_step(const cli *c, mgrid_runtime *rt, mgrid_state *state, bool json,
                          mgrid_error *err); /* run_step.c */

mgrid_status cli_diff_step(const cli *c, mgrid_runtime *const rt[2], const mgrid_plan *const plan[2], bool json,
                           bool *differ, mgrid_error *err); /* diff_step.c */

/* For check: whether the step of the recipe is proved, under the rules of NCCL. */
static mgrid_status holds(mgrid_runtime *rt, const mgrid_plan *p, bool *has, mgrid_error *err) {
  *has = rt && mgrid_plan_world(p) <= STEP_WORLD_MAX;
  bool        none = false;
  mgrid_step *s = *has ? mgrid_step_of(rt, p, NULL, &none, err) : NULL;
  if (none) *has = false;
  if (!s) return *has ? err->status : MGRID_OK;
  step_verdict v;
  mgrid_text   why = { 0 };
  mgrid_status status = mgrid_step_conclude(s, STEP_NCCL, 0, &v, err);
  if (!status && v.told != STEP_PROVED) {
    mgrid_step_verdict_text(s, &v, &why);
    status = mgrid_fail(err, MGRID_REFUSED, "the step is not proved (%s): %.800s", mgrid_step_told_names[v.told],
                        mgrid_text_chars(&why));
  }
  mgrid_text_free(&why);
  mgrid_step_free(s);
  return status;
}

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
  { .to = "diff",
    .usage =
        "moongrid diff A --world N [...] vs B [...] --step [--machine MACHINE] [--flops X] [--costs FILE] [--json]",
    .options = { { "step", cli_flag,
                   .help = "compare the steps instead: calls, bytes and memory, and with --machine time, by "
                           "family (moongrid step)" },
                 { "flops", cli_text, 0, "X",
                   .help = "with --step and --machine: flops of a GPU in a second, as 400T" },
                 { "costs", cli_text, 0, "FILE", .help = "... JSON: flops, latencies, measured efficiencies" } },
    .compare = cli_diff_step },
  { .to = NULL },
};

extern const cli_slice cli_slice_step;
const cli_slice cli_slice_step = { .additions = additions, .proves = "step", .holds = holds, .sends = cli_step_sends };
