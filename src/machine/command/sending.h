/* SPDX-License-Identifier: MIT
**
** sending.h - whose traffic place counts: that of the command line, of the recipe, of its step, or an assumption.
*/
#ifndef MGRID_MACHINE_SENDING_H
#define MGRID_MACHINE_SENDING_H

#include "command/slice.h"
#include "machine/traffic.h"

typedef enum sending_by { SENDING_UNDECIDED, SENDING_GIVEN, SENDING_RECIPE, SENDING_STEP, SENDING_ASSUMED } sending_by;

typedef struct sending {
  const char    *asked; /* --traffic as typed; NULL: not given */
  sending_by     by;
  mgrid_traffic *given; /* of --traffic */
  mgrid_error    why;   /* assumed: why the step is refused; no status: there is none */
} sending;

/* Read --traffic. cli_sending_end frees it, also after a refusal. */
mgrid_status cli_sending_begin(sending *x, const char *asked, int64_t world, mgrid_error *err);
void         cli_sending_end(sending *x);
/* Set *out to what the families of a plan send, to be freed; NULL: it is assumed. The first plan decides for all. With
** `seconds` also price a step (-1: there is none, or no bandwidth is known). */
mgrid_status cli_sending_of(const cli *c, mgrid_runtime *rt, const mgrid_plan *p, sending *x, mgrid_traffic **out,
                            double *seconds, mgrid_error *err);
/* Append whose it is, and what is assumed. The name of it, "step". */
void        cli_sending_text(const sending *x, mgrid_text *t);
const char *cli_sending_name(const sending *x);

#endif
