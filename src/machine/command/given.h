/* SPDX-License-Identifier: MIT
**
** given.h - the machine of a command line.
*/
#ifndef MGRID_MACHINE_GIVEN_H
#define MGRID_MACHINE_GIVEN_H

#include "command/slice.h"
#include "machine/item.h"

/* Return the machine of --machine, or of the plan, whose recipe read one; NULL with *err untouched: neither has one, with *err
** set: it cannot be read. Borrowed: until the process ends, or the plan is freed. */
const mgrid_machine_model *cli_given_machine(const cli *c, const mgrid_plan *p, mgrid_error *err);

#endif
