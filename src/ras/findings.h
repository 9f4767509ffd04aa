/* SPDX-License-Identifier: MIT
**
** findings.h - what NCCL's RAS reports of a running job.
*/
#ifndef MGRID_RAS_H
#define MGRID_RAS_H

#include "base/base.h"
#include "moongrid.h"

#include <jansson.h>

enum { RAS_MOST = 64 << 20 }; /* bytes of an answer; enough for 16,384 ranks in 6 communicators each */

/* Query the RAS at "host:port". *answer: its JSON as of ras_read; before NCCL 2.28.7 NULL, with its text in *text. The
** caller frees both. One deadline covers the whole exchange. ask.c */
mgrid_status ras_ask(const char *address, json_t **answer, char **text, mgrid_error *err);
/* Parse and check an answer. A number out of range (a rank outside its communicator) or a value of another type is an
** error. Strings are escaped by mgrid_shown. read.c */
mgrid_status ras_read(const char *address, const char *text, size_t len, json_t **answer, mgrid_error *err);
/* Set *list: for each communicator its hash, its groups in the plan (NULL: no plan) as "dp[1]", its size, and who waits for
** whom ("": nobody). MGRID_LIMIT if the comparison with the plan takes too long. findings.c */
mgrid_status ras_findings(const json_t *answer, const mgrid_plan *plan, json_t **list, mgrid_error *err);

#endif
