/* SPDX-License-Identifier: MIT
**
** words.h - what the files of moongrid lose share.
*/
#ifndef MGRID_SURVIVE_COMMAND_H
#define MGRID_SURVIVE_COMMAND_H

#include "machine/command/given.h"
#include "survive/next.h"

typedef struct lose_options {
  cli         cli;
  const char *ranks, *nodes, *level, *how;
  int64_t     all; /* 0: not given */
  bool        json;
} lose_options;

/* What is lost at once: a rank, or the ranks of a domain of the machine. */
typedef struct lose_units {
  const char *name; /* "rank", or the level */
  int64_t     n;
  int64_t    *start; /* [n + 1], in ranks */
  int64_t    *rank;
} lose_units;

/* Find the ranks of each domain of a level; level NULL: each rank alone. */
mgrid_status cli_lose_units(lose_units *u, const mgrid_machine_model *m, const char *level, int64_t world,
                            mgrid_error *err);
void         cli_lose_units_free(lose_units *u);

/* Check that so many units of a world are not too many to try, before anything is allocated. */
mgrid_status cli_lose_can_try(const lose_options *o, const char *level, int64_t world, int64_t units, mgrid_error *err);

/* Lose every unit, or every two of them, and print a table of what the job becomes. */
mgrid_status cli_lose_all(const lose_options *o, const lose_units *u, mgrid_losses *l, mgrid_error *err);

/* Print, for each tensor, a level of the machine of which one domain has all copies of something. */
void cli_lose_hints(const lose_options *o, const mgrid_machine_model *m, const mgrid_plan *p);

#endif
