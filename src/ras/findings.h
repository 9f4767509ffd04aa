/* SPDX-License-Identifier: MIT
**
** findings.h - what NCCL's RAS says of a job that runs.
*/
#ifndef MGRID_RAS_H
#define MGRID_RAS_H

#include "base/base.h"
#include "moongrid.h"

#include <jansson.h>

enum { RAS_MOST = 64 << 20 }; /* bytes of an answer; 16,384 ranks in 6 communicators each are as many */

/* Ask the RAS at "host:port". *answer is its JSON, as of ras_read, or where NCCL is older than 2.28.7 NULL and *text its
** text. The caller gives both back. The whole conversation has a deadline. ask.c */
mgrid_status ras_ask(const char *address, json_t **answer, char **text, mgrid_error *err);
/* The JSON that somebody at this address gave. A number that cannot be (a rank outside of its communicator) and what is
** of another type is an error; texts are as mgrid_shown writes them. read.c */
mgrid_status ras_read(const char *address, const char *text, size_t len, json_t **answer, mgrid_error *err);
/* *list: of each communicator its hash, its groups in the plan (NULL: none) as "dp[1]", its size, and who waits for whom,
** "" for nobody. MGRID_LIMIT where comparing with the plan takes too long. ras.c */
mgrid_status ras_findings(const json_t *answer, const mgrid_plan *plan, json_t **list, mgrid_error *err);

#endif
