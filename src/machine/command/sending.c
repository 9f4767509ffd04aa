/* SPDX-License-Identifier: MIT
**
** sending.c - whose traffic place counts.
*/
#include "machine/command/sending.h"

#include "plan/plan.h"

#include <string.h>

static bool asks_for_step(const sending *x) { return x->asked && strcmp(x->asked, "step") == 0; }

mgrid_status cli_sending_begin(sending *x, const char *asked, int64_t world, mgrid_error *err) {
  *x = (sending){ .asked = asked, .why = MGRID_ERROR_INIT };
  if (!asked || asks_for_step(x)) return MGRID_OK;
  x->by = SENDING_GIVEN;
  x->given = mgrid_traffic_new(world, err);
  return x->given ? mgrid_traffic_parse(x->given, asked, err) : MGRID_NO_MEMORY;
}

void cli_sending_end(sending *x) { mgrid_traffic_free(x->given); }

/* Set *has, and the traffic of the step of the plan's recipe, if it has one. */
static mgrid_status step_of(const cli *c, mgrid_runtime *rt, const mgrid_plan *p, bool *has, mgrid_traffic **out,
                            double *seconds, mgrid_error *err) {
  mgrid_text   t = { 0 };
  mgrid_status s = MGRID_OK;
  *has = false;
  for (const cli_slice *const *row = cli_slices; *row && !s && !*has; row++)
    if ((*row)->sends) s = (*row)->sends(c, rt, p, has, &t, seconds, err);
  if (!s && *has) {
    *out = mgrid_traffic_new(mgrid_plan_world(p), err);
    s = *out ? mgrid_traffic_parse(*out, mgrid_text_chars(&t), err) : MGRID_NO_MEMORY;
  }
  mgrid_text_free(&t);
  return s;
}

static mgrid_status decide(const cli *c, mgrid_runtime *rt, const mgrid_plan *p, sending *x, mgrid_traffic **out,
                           double *seconds, mgrid_error *err) {
  mgrid_error  why = MGRID_ERROR_INIT;
  bool         has, asked = asks_for_step(x);
  mgrid_status s = step_of(c, rt, p, &has, out, seconds, &why);
  if (!s && !has && asked)
    return mgrid_fail(
        err, MGRID_USAGE,
        "--traffic step: there is no step to count; step = steps.transformer() in the recipe would do, or "
        "--traffic \"tp = 2 GiB all_reduce x 96; ...\"");
  if (s && (asked || s / 100 != MGRID_REFUSED / 100)) return mgrid_error_pass(err, &why);
  if (has) x->why = why;
  x->by = has && !s ? SENDING_STEP : SENDING_ASSUMED;
  return MGRID_OK;
}

mgrid_status cli_sending_of(const cli *c, mgrid_runtime *rt, const mgrid_plan *p, sending *x, mgrid_traffic **out,
                            double *seconds, mgrid_error *err) {
  const mgrid_traffic *own = mgrid_plan_traffic(p);
  bool                 has;
  *out = NULL;
  if (seconds) *seconds = -1;
  if (x->by == SENDING_UNDECIDED && own && !asks_for_step(x)) x->by = SENDING_RECIPE;
  if (x->by == SENDING_UNDECIDED) return decide(c, rt, p, x, out, seconds, err);
  if (x->by == SENDING_STEP) return step_of(c, rt, p, &has, out, seconds, err);
  if (x->by == SENDING_GIVEN) own = x->given;
  if (x->by != SENDING_ASSUMED && own) *out = mgrid_traffic_kind.ref(own);
  return MGRID_OK;
}

void cli_sending_text(const sending *x, mgrid_text *t) {
  static const char *const whose[] = { [SENDING_GIVEN] = "as --traffic says",
                                       [SENDING_RECIPE] = "that of the recipe",
                                       [SENDING_STEP] = "that of the recipe's step" };
  if (x->by != SENDING_ASSUMED) {
    mgrid_text_str(t, whose[x->by]);
    return;
  }
  mgrid_text_str(t, "every family that has its own communicators does an all_reduce of 1 GiB, because ");
  if (x->why.status)
    mgrid_text_add(t, "the recipe's step is refused (%s)", x->why.message);
  else
    mgrid_text_str(t, "the recipe has neither traffic nor a step");
  mgrid_text_str(t, "; --traffic says what they send");
}

const char *cli_sending_name(const sending *x) {
  static const char *const names[] = { "", "given", "recipe", "step", "assumed" };
  return names[x->by];
}
