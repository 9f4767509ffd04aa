/* SPDX-License-Identifier: MIT
**
** fortran.c - the functions of moongrid_mpi.h that take or give a communicator as Fortran has it, an INTEGER.
*/
#include "comm/mpi/mpi.h"
#include "moongrid_mpi.h"

#include <string.h>

/* Return the communicator of a handle that this MPI may have given out; else MPI_COMM_NULL. A handle of another MPI library
** is a number as well: Open MPI's are small, MPICH's have the kind of object in their upper bits. MPICH ends the process for an
** invalid one. */
static MPI_Comm comm_of(MPI_Fint comm) {
#ifdef MPICH_VERSION
  unsigned bits = (unsigned)comm, object = bits >> 26 & 0xf, place = bits >> 30;
  if (object != 1 || place == 0) return MPI_COMM_NULL;
#endif
  return MPI_Comm_f2c(comm);
}

mgrid_backend *mgrid_mpi_backend_f(MPI_Fint comm, const mgrid_mpi_options *options, mgrid_error *err) {
  MPI_Comm parent = comm_of(comm);
  int      ready = 0, over = 0;
  MPI_Initialized(&ready);
  MPI_Finalized(&over);
  bool none = parent == MPI_COMM_NULL || parent == (MPI_Comm)0; /* Open MPI has both */
  if (ready && !over && none && comm != MPI_Comm_c2f(MPI_COMM_NULL)) {
    char version[MPI_MAX_LIBRARY_VERSION_STRING] = "";
    int  n = 0;
    MPI_Get_library_version(version, &n);
    version[strcspn(version, ",\n")] = '\0';
    return mgrid_null(err, MGRID_USAGE,
                      "mpi: %d is not a communicator of %.80s, which libmoongrid_mpi uses; was the program built with "
                      "another MPI library?",
                      (int)comm, version);
  }
  return mgrid_mpi_backend(parent, options, err);
}

MPI_Fint mgrid_mpi_native_f(const void *native, bool self) {
  return MPI_Comm_c2f(native ? *(const MPI_Comm *)native : self ? MPI_COMM_SELF : MPI_COMM_NULL);
}
