/* SPDX-License-Identifier: MIT
**
** words.h - what the files of this folder call in each other.
*/
#ifndef MGRID_TENSORS_COMMAND_H
#define MGRID_TENSORS_COMMAND_H

#include "command/slice.h"

/* run A vs B --move: move the tensors of one plan to the other and prove every element. run_move.c */
mgrid_status cli_run_move(const cli *c, mgrid_backend *b, const mgrid_plan *from, const mgrid_plan *to, int64_t machine,
                          mgrid_error *planning, mgrid_error *err);

#endif
