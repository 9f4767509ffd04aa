/* SPDX-License-Identifier: MIT
**
** open.h - what the command asks about backends without opening one.
*/
#ifndef MG_OPEN_H
#define MG_OPEN_H

#include "comm/backend.h"

/* The MPI library behind the mpi backend, or why it cannot be loaded. */
MG_API mg_status mg_mpi_version_text(char *buf, size_t len, mg_error *err);

#endif
