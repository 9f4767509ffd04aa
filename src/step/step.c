/* SPDX-License-Identifier: MIT
**
** step.c - the public questions about a step.
*/
#include "step/step.h"

#include "comm/recipe.h"

#include <inttypes.h>

mgrid_step *mgrid_step_new(mgrid_runtime *rt, const mgrid_plan *plan, const char *file,
                           mgrid_error *err) {
  step_request r = { .plan = plan, .file = file };
  return rt && plan && mgrid_runtime_serve(rt, "step", &r, err) == MGRID_OK ? r.made : NULL;
}

size_t mgrid_step_nclasses(const mgrid_step *s) { return s ? s->nclasses : 0; }

int64_t mgrid_step_class(const mgrid_step *s, int64_t rank) {
  return s && rank >= 0 && rank < s->plan->content.world ? s->of[rank] : -1;
}

int64_t mgrid_step_operations(const mgrid_step *s, int64_t rank) {
  int64_t class = mgrid_step_class(s, rank);
  return class < 0 ? -1 : s->program[s->class[class].program].leaves;
}

void mgrid_step_digest(const mgrid_step *s, char out[33]) {
  if (out)
    snprintf(out, 33, "%016" PRIx64 "%016" PRIx64, s ? s->digest[0] : 0, s ? s->digest[1] : 0);
}

mgrid_status mgrid_step_prove(const mgrid_step *s, bool blocking, mgrid_error *err) {
  step_verdict v;
  mgrid_text why = { 0 };
  if (!s) return MGRID_USAGE;
  mgrid_status status = mgrid_step_conclude(s, blocking ? STEP_BLOCKING : STEP_NCCL, 0, &v, err);
  if (status || v.told == STEP_PROVED) return status;
  mgrid_step_verdict_text(s, &v, &why);
  status = mgrid_fail(err, MGRID_UNPROVED, "%s: %.900s", mgrid_step_told_names[v.told],
                      mgrid_text_chars(&why));
  mgrid_text_free(&why);
  return status;
}
