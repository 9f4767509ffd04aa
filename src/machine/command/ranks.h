/* SPDX-License-Identifier: MIT
**
** ranks.h - where ranks run, written for launchers.
*/
#ifndef MGRID_MACHINE_RANKS_H
#define MGRID_MACHINE_RANKS_H

#include "command/cli.h"
#include "machine/model.h"

/* Refuse a file whose name says no known form. */
mgrid_status cli_check_ranks_file(const cli *c, const char *path);
/* Write where the ranks of a world run. */
mgrid_status cli_write_ranks(const char *path, const mgrid_machine_model *m, int64_t world, mgrid_error *err);

#endif
