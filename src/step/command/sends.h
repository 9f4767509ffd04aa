/* SPDX-License-Identifier: MIT
**
** sends.h - what a step sends.
*/
#ifndef MGRID_STEP_SENDS_H
#define MGRID_STEP_SENDS_H

#include "command/slice.h"

mgrid_status cli_step_sends(const cli *c, mgrid_runtime *rt, const mgrid_plan *p, bool *has, mgrid_text *traffic,
                            double *seconds, mgrid_error *err); /* `sends` of cli_slice */

#endif
