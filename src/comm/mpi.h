/* SPDX-License-Identifier: MIT
**
** mpi.h - what the two files of the mpi backend share.
*/
#ifndef MGRID_COMM_MPI_H
#define MGRID_COMM_MPI_H

#include "comm/backend.h"
#include "moongrid_mpi.h"

typedef struct mpi_backend {
  mgrid_backend base; /* first: ops get a pointer to it */
  MPI_Comm      parent;
  MPI_Group     members;  /* of the parent */
  bool          finalize; /* mpi_open has initialized MPI, so close finalizes it */
  /* Of a carrier, made by its `start`: duplicates of the parent, so that a call that never ends does not
  ** block the host's communicator. */
  MPI_Comm own, notes;     /* for calls over all ranks; for messages between two */
  double   seconds;        /* a call over all ranks may take; 0: no limit */
  uint64_t phase;          /* notices of this phase count: mgrid_carrier_ops.phase */
  uint64_t few[8], *words; /* [world + 1]. Both: memory of calls with a deadline; leaked if one did not end */
  uint64_t calls;          /* calls over all ranks with a deadline so far; equal on all ranks */
  bool     broken;         /* a call over all ranks did not end: make no more calls of MPI */
} mpi_backend;

mgrid_status mgrid_mpi_failed(mgrid_error *err, int rc, const char *call, const char *what);
/* Let errors of a communicator return while we use it: _quiet gives the handler that it had before. */
MPI_Errhandler mgrid_mpi_quiet(MPI_Comm comm);
void           mgrid_mpi_restore(MPI_Comm comm, MPI_Errhandler was);

/* mpi_wait.c: what waits for other ranks. */
mgrid_status mgrid_mpi_allreduce(mgrid_backend *b, uint64_t *words, size_t n, mgrid_error *err);
mgrid_status mgrid_mpi_allgather(mgrid_backend *b, const void *mine, void *all, size_t bytes, mgrid_error *err);
mgrid_status mgrid_mpi_bcast(mgrid_backend *b, void *data, size_t bytes, int64_t root, mgrid_error *err);
extern const mgrid_carrier_ops mgrid_mpi_carrier;

#endif
