/* SPDX-License-Identifier: MIT
**
** priced.h - the price of a step on the command line.
*/
#ifndef MGRID_STEP_PRICED_H
#define MGRID_STEP_PRICED_H

#include "command/cli.h"
#include "step/price.h"

typedef struct step_priced { /* options; NULL: not given */
  const char *flops, *costs;
} step_priced;

/* Price a step, by the rules of NCCL, on the machine of the command line, or of the plan; *priced false: there is none, which
** is refused where an option needs it. */
mgrid_status cli_price(const cli *c, const step_priced *o, const mgrid_step *s, step_price *out, bool *priced,
                       mgrid_error *err);
#endif
