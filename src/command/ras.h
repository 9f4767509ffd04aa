/* SPDX-License-Identifier: MIT
**
** ras.h - what NCCL's RAS says of a job that runs.
*/
#ifndef MGRID_RAS_H
#define MGRID_RAS_H

#include "base/base.h"
#include "moongrid.h"

#include <jansson.h>

/* Ask the RAS at "host:port". *answer is its JSON, or where NCCL is older than 2.28.7 NULL and *text its text. The
** caller gives both back. */
mgrid_status ras_ask(const char *address, json_t **answer, char **text, mgrid_error *err);
/* A list: of each communicator its hash, its groups in the plan (NULL: none) as "dp[1]", its size, and who waits for whom,
** "" for nobody. */
json_t *ras_findings(const json_t *answer, const mgrid_plan *plan);

#endif
