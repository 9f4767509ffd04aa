/* SPDX-License-Identifier: MIT
**
** agree.c - the step of a state: all ranks have the same programs, or none gets them.
*/
#include "comm/compare.h"
#include "step/step.h"

#include <stdio.h>

mgrid_step *mgrid_state_step(mgrid_runtime *rt, const mgrid_state *state, const char *file,
                             mgrid_error *err) {
  mgrid_error own = MGRID_ERROR_INIT;
  char digest[33], text[64];
  if (!rt || !state) return NULL;
  mgrid_peers all = mgrid_peers_all(state->backend);
  mgrid_step *s = mgrid_step_new(rt, state->plan, file, &own);
  mgrid_status status = mgrid_verdict(state->backend, s ? MGRID_OK : own.status, &own, &own);
  mgrid_step_digest(s, digest);
  snprintf(text, sizeof text, "has the step %s", digest);
  mgrid_brought mine = { s ? s->digest[0] ^ s->digest[1] : 0, text, "the step" };
  if (!status) status = mgrid_compare(&all, &mine, &own);
  if (!status) return s;
  mgrid_step_free(s);
  mgrid_error_pass(err, &own);
  return NULL;
}
