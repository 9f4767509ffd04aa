/* SPDX-License-Identifier: MIT
**
** collect.h - the machine of the running job.
*/
#ifndef MGRID_MACHINE_COLLECT_H
#define MGRID_MACHINE_COLLECT_H

#include "comm/state.h"
#include "command/cli.h"
#include "machine/model.h"

/* Find the hosts of the launcher's ranks, and their GPUs. *m on rank 0 only; append the boot ids of its hosts, as JSON
** strings with commas between. Collective. */
mgrid_status cli_collect_machine(const cli *c, mgrid_machine_model **m, mgrid_text *boots, mgrid_error *err);

#endif
