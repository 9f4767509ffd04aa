/* SPDX-License-Identifier: MIT
**
** price.c - what the command line says of the price of a step.
*/
#include "machine/command/given.h"
#include "step/command/priced.h"

#include <math.h>
#include <string.h>

/* ----------------------------------------------------------------- options */

static mgrid_status read_flops(const char *text, double *flops, mgrid_error *err) {
  static const char units[] = "kMGTPE";
  char             *end;
  double            x = mgrid_read_double(text, &end);
  const char       *unit = *end ? strchr(units, *end) : NULL;
  if (end != text && unit) x *= pow(1000, (double)(unit - units + 1)), end++;
  if (end == text || (*end && strcmp(end, "FLOP/s") != 0 && strcmp(end, "flops") != 0) || !(x > 0) || !(x < 1e24))
    return mgrid_fail(err, MGRID_USAGE, "--flops is what a GPU does in a second, as 400e12 or 400T, not '%s'", text);
  return *flops = x, MGRID_OK;
}

/* ---------------------------------------------------------------------- price */

static mgrid_status check(const step_priced *o, bool machine, mgrid_error *err) {
  const char *needs = o->flops ? "flops" : o->costs ? "costs" : NULL;
  if (needs && !machine)
    return mgrid_fail(err, MGRID_USAGE,
                      "--%s needs a machine: --machine dgx-h100, or levels, as 'node:*[50GB/s] gpu:8[300GB/s]'", needs);
  return MGRID_OK;
}

mgrid_status cli_price(const cli *c, const step_priced *o, const mgrid_step *s, step_price *out, bool *priced,
                       mgrid_error *err) {
  step_costs                 costs;
  mgrid_text                 t = { 0 };
  const mgrid_machine_model *m = cli_given_machine(c, s->plan, err);
  mgrid_status               status = err->status ? err->status : check(o, m != NULL, err);
  if (status || !m) return status;
  if (o->costs || (c->machine && m->source))
    status = mgrid_step_costs_file(o->costs ? o->costs : m->source, !o->costs, &t, err);
  if (!status) status = mgrid_step_costs_of(m, false, mgrid_text_chars(&t), &costs, err);
  if (!status && o->flops) status = read_flops(o->flops, &costs.flops, err);
  if (!status) status = mgrid_step_price_of(s, m, &costs, STEP_AS_NEEDED, NULL, out, err);
  *priced = !status;
  mgrid_text_free(&t);
  return status;
}
