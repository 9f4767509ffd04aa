/* SPDX-License-Identifier: MIT
**
** run_step.c - moongrid run --step: execute the step of a recipe, and compare what was planned with what was measured.
*/
#include "machine/command/given.h"
#include "step/run.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

mgrid_status cli_run_step(const cli *c, mgrid_runtime *rt, mgrid_state *state, bool json, mgrid_error *err);

static mgrid_status read_how(const cli *c, step_how *how, mgrid_error *err) {
  const char *scale = cli_added_text(c, "scale"), *by = cli_added_text(c, "compute");
  char       *end = NULL;
  int64_t     timeout = cli_added_number(c, "timeout");
  how->steps = cli_added_number(c, "step");
  how->unproved = cli_added_flag(c, "unproved");
  how->trace = cli_added_text(c, "output");
  if (timeout) how->timeout = (double)timeout;
  if (scale) how->scale = mgrid_read_double(scale, &end);
  if (scale && (*end || end == scale || !(how->scale > 0) || !isfinite(how->scale)))
    return mgrid_fail(err, MGRID_USAGE, "--scale is a number above 0, as 0.01, not '%s'", scale);
  return by ? mgrid_step_computing_of("--compute", by, &how->compute, err) : MGRID_OK;
}

/* Price the step on the machine of the command line or of the plan, on rank 0; *priced false: there is none. Computes of
** an unknown rate take as long as those that sleep. */
static mgrid_status price(const cli *c, const mgrid_step *s, const mgrid_backend *b, const step_how *how,
                          step_price *out, step_records *records, bool *priced, mgrid_error *err) {
  step_costs costs;
  if (b->rank != 0 || how->unproved) return MGRID_OK;
  const mgrid_machine_model *m = cli_given_machine(c, s->plan, err);
  if (err->status || !m) return err->status;
  mgrid_status status = mgrid_step_costs_of(m, !b->ops->streams, NULL, &costs, err);
  if (!status && !(costs.flops > 0)) costs.flops = how->flops;
  if (!status) status = mgrid_step_price_of(s, m, &costs, STEP_AS_NEEDED, how->trace ? records : NULL, out, err);
  *priced = !status;
  return status;
}

/* Add what was planned to what was measured. */
static void add_planned(const mgrid_plan *p, const step_price *price, json_t *all) {
  json_object_set_new(all, "planned", json_real(price->seconds));
  for (size_t i = 0; i < mgrid_plan_nfamilies(p); i++) {
    json_t *one = json_object_get(json_object_get(all, "families"), mgrid_plan_family_name(p, i));
    if (one) json_object_set_new(one, "planned_seconds", json_real(price->family[i].seconds));
  }
}

static double number(const json_t *v, const char *name) { return json_number_value(json_object_get(v, name)); }

static void print_family(const char *name, const json_t *w) {
  char bytes[32], planned[32];
  printf("  %-22s %12.0f %12.0f %12s %12s %12.3f %12.3f %6.0f %12.3f\n", name, number(w, "calls"),
         number(w, "planned_calls"), cli_bytes((int64_t)number(w, "bytes"), bytes, sizeof bytes),
         cli_bytes((int64_t)number(w, "planned_bytes"), planned, sizeof planned), 1e3 * number(w, "seconds"),
         1e3 * number(w, "worst"), number(w, "worst_rank"), 1e3 * number(w, "waiting"));
}

static void print(const mgrid_plan *p, const json_t *all, const step_how *how) {
  const json_t *late = json_object_get(all, "late"), *families = json_object_get(all, "families");
  printf("\nstep           %" PRId64 " time%s on %.0f ranks: %.3g ms each (median), %.3g ms on the slowest rank\n\n"
         "  %-22s %12s %12s %12s %12s %12s %12s %6s %12s   of all ranks, a step\n",
         how->steps, mgrid_s_of(how->steps), number(all, "ranks"), 1e3 * number(all, "seconds"),
         1e3 * number(all, "worst"), "family", "calls", "planned", "bytes", "planned", "median ms", "worst ms", "rank",
         "waiting ms");
  for (size_t i = 0; i < mgrid_plan_nfamilies(p); i++) {
    const json_t *one = json_object_get(families, mgrid_plan_family_name(p, i));
    if (one) print_family(mgrid_plan_family_name(p, i), one);
  }
  if (json_object_get(all, "planned"))
    printf("\nplanned        %.3g ms a step on the machine that was given, at scale 1\n", 1e3 * number(all, "planned"));
  if (json_is_integer(late))
    printf("\nlate           rank %" PRId64 ": it waits the least, so the others wait for it\n",
           (int64_t)json_integer_value(late));
  if (how->trace) printf("\ntrace          %s, of the last step: opens in Perfetto (ui.perfetto.dev)\n", how->trace);
}

mgrid_status cli_run_step(const cli *c, mgrid_runtime *rt, mgrid_state *state, bool json, mgrid_error *err) {
  mgrid_error    own = MGRID_ERROR_INIT;
  mgrid_backend *b = state->backend;
  step_how       how = STEP_HOW_INIT;
  json_t        *measured = NULL;
  mgrid_step    *s = NULL;
  mgrid_status   status = read_how(c, &how, &own);
  if (!status && !rt) status = mgrid_fail(&own, MGRID_USAGE, "--step needs the recipe: a saved plan has no step");
  status = mgrid_verdict(b, status, &own, &own);
  if (!status && !(s = mgrid_state_step(rt, state, NULL, &own))) status = own.status;
  step_price   planned = { 0 };
  step_records records = { .every = 20000 };
  bool         priced = false;
  if (s) status = mgrid_verdict(b, price(c, s, b, &how, &planned, &records, &priced, &own), &own, &own);
  if (priced) how.price = &planned, how.records = &records;
  cli_progress(c, "executing the step");
  if (!status) status = mgrid_step_measure(s, state, &how, &measured, &own);
  cli_progress_end();
  if (!status && priced) add_planned(state->plan, &planned, measured);
  if (!status && b->rank == 0 && json) status = cli_put_json(measured, &own);
  if (!status && b->rank == 0 && !json) print(state->plan, measured, &how);
  fflush(stdout);
  if (priced) mgrid_step_price_free(&planned);
  mgrid_step_records_free(&records);
  json_decref(measured);
  mgrid_step_free(s);
  return status ? mgrid_error_pass(err, &own) : MGRID_OK;
}
