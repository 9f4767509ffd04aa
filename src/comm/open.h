/* SPDX-License-Identifier: MIT
**
** open.h - what the command asks about backends without opening one.
*/
#ifndef MGRID_OPEN_H
#define MGRID_OPEN_H

#include "comm/backend.h"

/* The MPI library behind the mpi backend, or why it cannot be loaded. */
MGRID_API mgrid_status mgrid_mpi_version_text(char *buf, size_t len, mgrid_error *err);

/* The NCCL and the GPUs of this machine, or what is missing. */
MGRID_API mgrid_status mgrid_nccl_version_text(char *buf, size_t len, mgrid_error *err);

/* nccl over this backend, which it then owns if `own`, where every rank can have it; else the backend
** itself. Collective. */
MGRID_API mgrid_backend *mgrid_backend_best(mgrid_backend *mpi, const mgrid_nccl_options *options, bool own);

#endif
