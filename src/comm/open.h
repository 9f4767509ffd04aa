/* SPDX-License-Identifier: MIT
**
** open.h - what the command asks about backends without opening one.
*/
#ifndef MG_OPEN_H
#define MG_OPEN_H

#include "comm/backend.h"

/* The MPI library behind the mpi backend, or why it cannot be loaded. */
MG_API mg_status mg_mpi_version_text(char *buf, size_t len, mg_error *err);

/* The NCCL and the GPUs of this machine, or what is missing. */
MG_API mg_status mg_nccl_version_text(char *buf, size_t len, mg_error *err);

/* nccl over this backend, which it then owns if `own`, where every rank can have it; else the backend
** itself. Collective. */
MG_API mg_backend *mg_backend_best(mg_backend *mpi, const mg_nccl_options *options, bool own);

#endif
