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
  MPI_Group     members; /* of the parent */
  bool          finalize;
  /* Of a carrier (mgrid_mpi_carrier.start): our own duplicates of the parent, since a call that never
  ** ends would block the host's. */
  MPI_Comm own, notes;
  double   seconds;        /* deadline of a call over all ranks; 0: none */
  uint64_t phase;          /* whose words are heard: mgrid_carrier_ops.phase */
  uint64_t few[8], *words; /* [world + 1]: what a call with a deadline works on; left behind where it did not end */
  uint64_t calls;          /* over all ranks with a deadline, so far: equal on all */
  bool     broken;         /* a call over all ranks did not end: MPI cannot be relied on any more */
} mpi_backend;

mgrid_status mgrid_mpi_failed(mgrid_error *err, int rc, const char *call, const char *what);
/* The error handler of a communicator while we use it, and what it was before. */
MPI_Errhandler mgrid_mpi_quiet(MPI_Comm comm);
void           mgrid_mpi_restore(MPI_Comm comm, MPI_Errhandler was);

/* mpi_wait.c: what waits for other ranks. */
mgrid_status mgrid_mpi_allreduce(mgrid_backend *b, uint64_t *words, size_t n, mgrid_error *err);
mgrid_status mgrid_mpi_allgather(mgrid_backend *b, const void *mine, void *all, size_t bytes, mgrid_error *err);
mgrid_status mgrid_mpi_bcast(mgrid_backend *b, void *data, size_t bytes, int64_t root, mgrid_error *err);
extern const mgrid_carrier_ops mgrid_mpi_carrier;

#endif
