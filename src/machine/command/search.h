/* SPDX-License-Identifier: MIT
**
** search.h - moongrid place --search order.
*/
#ifndef MGRID_MACHINE_SEARCH_H
#define MGRID_MACHINE_SEARCH_H

#include "machine/command/given.h"
#include "machine/cost.h"

typedef struct cli_search {
  const cli  *c;
  const char *traffic, *objective, *output; /* as typed; NULL: that of the recipe; bytes; no file */
  int64_t     limit;                        /* seconds; 0: none */
  bool        json;
} cli_search;

/* Evaluate the recipe with each combination of the parameters that are free, print the best ones, and return the status. */
mgrid_status cli_search_order(const cli_search *s);

#endif
