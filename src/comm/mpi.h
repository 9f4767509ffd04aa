/* SPDX-License-Identifier: MIT
**
** mpi.h - what the two files of the mpi backend share.
*/
#ifndef MG_COMM_MPI_H
#define MG_COMM_MPI_H

#include "comm/backend.h"
#include "moongrid_mpi.h"

typedef struct mpi_backend {
  mg_backend base; /* first: ops get a pointer to it */
  MPI_Comm   parent;
  MPI_Group  members; /* of the parent */
  bool       finalize;
  /* Of a backend that waits no longer than base.seconds (mg_mpi_own): our own duplicates of the
  ** parent, since a call that never ends would block the host's. */
  MPI_Comm own, notes;
  uint64_t few[8], *words; /* [world + 1]: what a call with a deadline works on; left behind where it did not end */
  uint64_t calls;  /* over all ranks with a deadline, so far: equal on all */
  bool     broken; /* a call over all ranks did not end: MPI cannot be relied on any more */
} mpi_backend;

mg_status mg_mpi_failed(mg_error *err, int rc, const char *call, const char *what);
/* The error handler of a communicator while we use it, and what it was before. */
MPI_Errhandler mg_mpi_quiet(MPI_Comm comm);
void           mg_mpi_restore(MPI_Comm comm, MPI_Errhandler was);

/* mpi_wait.c: the operations of mg_backend_ops that wait for other ranks. */
mg_status mg_mpi_allreduce(mg_backend *b, uint64_t *words, size_t n, mg_error *err);
mg_status mg_mpi_allgather(mg_backend *b, const void *mine, void *all, size_t bytes, mg_error *err);
mg_status mg_mpi_bcast(mg_backend *b, void *data, size_t bytes, int64_t root, mg_error *err);
mg_status mg_mpi_own(mg_backend *b, double seconds, int *local_rank, int *local_size, mg_error *err);
mg_status mg_mpi_send(mg_backend *b, int64_t to, int tag, const void *data, size_t bytes, double seconds, mg_error *err);
mg_status mg_mpi_recv(mg_backend *b, int64_t from, int tag, void *data, size_t bytes, double seconds, mg_error *err);
void      mg_mpi_tell(mg_backend *b, int64_t to);
int64_t   mg_mpi_heard(mg_backend *b);

#endif
