/* SPDX-License-Identifier: MIT
**
** run.h - a step that is executed.
*/
#ifndef MGRID_STEP_RUN_H
#define MGRID_STEP_RUN_H

#include "comm/state.h"
#include "step/step.h"

typedef enum step_computing { STEP_NOTHING, STEP_SLEEP, STEP_GEMM } step_computing;

typedef struct step_how {
  int64_t        steps;
  double         scale;   /* of bytes and of compute */
  double         flops;   /* of a GPU in a second, for STEP_SLEEP */
  double         timeout; /* seconds that a call may take */
  step_computing compute;
} step_how;

typedef struct step_spent { /* by this rank over one family, in all steps */
  double calls, bytes, seconds;
} step_spent;

/* Execute the program of this rank, how->steps times; spent[nentries] by family, *seconds in all. Collective. After an
** error communicators may hold calls that did not end. MGRID_TIMED_OUT: a call took longer, and the message says which. */
mgrid_status mgrid_step_execute(const mgrid_step *s, mgrid_state *state, const step_how *how, step_spent *spent,
                                double *seconds, mgrid_error *err);

#endif
