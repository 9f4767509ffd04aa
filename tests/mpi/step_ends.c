/* SPDX-License-Identifier: MIT
**
** step_ends.c [N] - run N random steps (200). A step that is proved ends on every rank; a step with
** a cyclic wait does not, until the deadline. Sends wait for their receivers, as large sends do.
** TAP from rank 0.
*/
#include <mpi.h>

#include "../c/stepping.h"

#include "comm/state.h"
#include "moongrid_mpi.h"
#include "step/run.h"

#include "tap.h"

#include <math.h>

static mgrid_backend *mpi;

static void open_backend(void) {
  mgrid_error err = MGRID_ERROR_INIT;
  mgrid_mpi_options o = MGRID_MPI_OPTIONS_INIT;
  mpi = mgrid_mpi_backend(MPI_COMM_WORLD, &o, &err);
}

/* Execute a step; *told is its verdict. Return whether it ended on all ranks as that says. */
static bool ends_as_proved(uint64_t seed, step_verdict_kind *told) {
  mgrid_error err = MGRID_ERROR_INIT, failed = MGRID_ERROR_INIT;
  mgrid_text text = { 0 };
  rng r;
  stepping x = { .r = &r, .t = &text, .plain = true, .mutate = (int)(seed % 2) * 40 };
  int64_t world = 0;
  for (uint64_t k = 0; world != size; k++) {
    r = rng_new(seed * 1000 + k);
    text.len = 0;
    world = draw_step(&x);
  }
  mgrid_runtime *rt = mgrid_runtime_new(NULL, NULL, &err);
  mgrid_runtime_load(rt, "random.lua", mgrid_text_chars(&text), text.len, &err);
  mgrid_plan *plan = mgrid_runtime_plan(rt, world, NULL, 0, NULL, &err);
  mgrid_step *s = plan ? mgrid_step_new(rt, plan, NULL, &err) : NULL;
  step_verdict v = { .told = STEP_MISMATCH };
  if (!s || mgrid_step_conclude(s, STEP_BLOCKING, 0, &v, &err))
    fprintf(stderr, "# seed %" PRIu64 ": %s\n", seed, err.message);
  bool as_said = s != NULL;
  *told = v.told;
  if (v.told == STEP_PROVED || v.told == STEP_CYCLE) {
    mgrid_state *state = mgrid_materialize(plan, mpi, NULL, &err);
    step_spent *spent = calloc(plan->content.nentries, sizeof *spent);
    step_how how = STEP_HOW_INIT;
    step_spans spans = { 0 };
    double seconds;
    how.steps = 2, how.timeout = v.told == STEP_PROVED ? 60 : 0.7;
    mgrid_status is = state ? mgrid_step_execute(s, state, &how, spent, &spans, &seconds, &failed)
                            : err.status;
    int late = is == MGRID_TIMED_OUT, any = 0;
    MPI_Allreduce(&late, &any, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    as_said = v.told == STEP_PROVED ? is == MGRID_OK : any;
    if (!as_said)
      fprintf(stderr, "# seed %" PRIu64 ", rank %d, %s: %s\n", seed, rank,
              mgrid_step_verdict_names[v.told], failed.message);
    if (!any) mgrid_state_free(state);
    if (any) open_backend(); /* calls over communicators of the last one are still there */
    free(spent);
  }
  mgrid_step_free(s);
  mgrid_plan_free(plan);
  mgrid_runtime_free(rt);
  mgrid_text_free(&text);
  return as_said;
}

int main(int argc, char **argv) {
  int n = argc > 1 ? atoi(argv[1]) : 200, cycles = 0, proved = 0;
  tap_begin(&argc, &argv);
  open_backend();
  test(mpi != NULL, "the backend opens");
  bool all = mpi != NULL;
  for (uint64_t seed = first_seed(); mpi && proved + cycles < n && all; seed++) {
    step_verdict_kind told;
    bool as_said = ends_as_proved(seed, &told);
    int mine = as_said, both;
    MPI_Allreduce(&mine, &both, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    all = both;
    proved += told == STEP_PROVED, cycles += told == STEP_CYCLE;
    if (getenv("MOONGRID_SEED")) break;
  }
  test(all, "proved steps end, cyclic ones do not");
  test(cycles >= n / 20, "some are cyclic");
  if (rank == 0) printf("# %d proved, %d cyclic\n", proved, cycles);
  fflush(stdout);
  int code = tap_total();
  MPI_Barrier(MPI_COMM_WORLD);
  if (cycles) _Exit(code); /* calls that did not end keep MPI_Finalize waiting */
  mgrid_backend_free(mpi);
  MPI_Finalize();
  return code;
}
