/* SPDX-License-Identifier: MIT
**
** moongrid_mpi.h - the few functions of moongrid that speak of MPI. Link libmoongrid_mpi
** and libmoongrid.
*/
#ifndef MOONGRID_MPI_H
#define MOONGRID_MPI_H

#include "moongrid.h"

#ifdef __cplusplus /* the C++ bindings that MPI 3 removed would want a library of their own */
#define OMPI_SKIP_MPICXX  1
#define MPICH_SKIP_MPICXX 1
#endif
#include <mpi.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A backend over the host's communicator, whose ranks are the world. MPI is initialized
** and stays the host's: free the backend and its states before MPI_Finalize. `parent` is
** borrowed and must outlive the backend. Local. */
MGRID_API mgrid_backend *mgrid_mpi_backend(MPI_Comm parent, mgrid_error *err);

/* The communicator of a group, ranks in group order. Borrowed: never MPI_Comm_free it; it
** may be shared by families of equal members. A group of one rank has MPI_COMM_SELF; a
** rank that is in no group (g NULL), a lazy family not created yet, a dry state, a family of
** backend "none" and a group whose communicator is NCCL's have MPI_COMM_NULL. */
static inline MPI_Comm mgrid_mpi_comm(const mgrid_group *g) {
  if (!g) return MPI_COMM_NULL;
  if (mgrid_group_native_kind(g) == MGRID_NATIVE_MPI) return *(MPI_Comm *)mgrid_group_native(g);
  return mgrid_group_size(g) == 1 && !*mgrid_group_backend(g) ? MPI_COMM_SELF : MPI_COMM_NULL;
}

#ifdef __cplusplus
}
#endif
#endif
