/* SPDX-License-Identifier: MIT
**
** entry.c - two other ways to open the backend: from Fortran, where handles of MPI are integers,
** and by its name.
*/
#include "comm/mpi/mpi.h"

#include <string.h>

/* Open MPI ends the process if a handle is converted while neither MPI nor a session exists. */
#ifdef OPEN_MPI
enum { FORTRAN_SELF = 1, FORTRAN_NULL = 2, FORTRAN_PREDEFINED = 3 };
#endif

/* Convert a handle of a host that uses only sessions. Return MPI_COMM_NULL if there is no such
** handle. */
static MPI_Comm of_session(MPI_Fint comm) {
#if !defined(OPEN_MPI)
  return MPI_Comm_f2c(comm); /* in C the handle is a number, too */
#elif defined(MGRID_MPI_SESSIONS)
  MPI_Session here;
  if (comm < FORTRAN_PREDEFINED || MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &here))
    return MPI_COMM_NULL;
  MPI_Comm found = MPI_Comm_f2c(comm);
  MPI_Session_finalize(&here);
  return found;
#else
  (void)comm;
  return MPI_COMM_NULL;
#endif
}

/* Return the communicator of a handle, or MPI_COMM_NULL if it cannot be a handle of this MPI. The
** number may be a handle of another MPI library: handles of Open MPI are small numbers, those of
** MPICH have the kind of object in their upper bits. MPICH ends the process for an invalid
** handle. */
static MPI_Comm open_comm_of(MPI_Fint comm, bool there) {
#ifdef MPICH_VERSION
  unsigned bits = (unsigned)comm, object = bits >> 26 & 0xf, place = bits >> 30;
  if (object != 1 || place == 0) return MPI_COMM_NULL;
#endif
  MPI_Comm found = there ? MPI_Comm_f2c(comm) : of_session(comm);
  return found == (MPI_Comm)0 ? MPI_COMM_NULL : found; /* Open MPI may return 0, too */
}

mgrid_backend *mgrid_mpi_backend_f(MPI_Fint comm, const mgrid_mpi_options *options,
                                   mgrid_error *err) {
  bool there = !mgrid_mpi_initialized(NULL);
  MPI_Comm parent = open_comm_of(comm, there);
  if (!there && parent == MPI_COMM_NULL && mgrid_mpi_initialized(err)) return NULL;
  if (parent == MPI_COMM_NULL && comm != MPI_Comm_c2f(MPI_COMM_NULL)) {
    char version[MPI_MAX_LIBRARY_VERSION_STRING] = "";
    int n = 0;
    MPI_Get_library_version(version, &n);
    version[strcspn(version, ",\n")] = '\0';
    return mgrid_null(err, MGRID_USAGE,
                      "mpi: %d is not a communicator of %.80s, which libmoongrid_mpi uses; was the "
                      "program built with another MPI library?",
                      (int)comm, version);
  }
  return mgrid_mpi_backend(parent, options, err);
}

MPI_Fint mgrid_mpi_native_f(const void *native, bool self) {
#ifdef OPEN_MPI
  int gone = 0;
  MPI_Finalized(&gone);
  if (gone || !native) return self && !gone ? FORTRAN_SELF : FORTRAN_NULL;
#endif
  return MPI_Comm_c2f(native ? *(const MPI_Comm *)native : self ? MPI_COMM_SELF : MPI_COMM_NULL);
}

/* ----------------------------------------------------------------- by name */

/* Open the backend for mgrid_backend_open. If MPI is not initialized, initialize it; then mpi_close
** finalizes it. */
static mgrid_backend *mpi_open(const mgrid_backend_options *options, mgrid_error *err) {
  const mgrid_mpi_options *o = options->mpi;
  int ready = 0, gone = 0, level;
  mgrid_mpi_options own = *o;
  own.borrow = false;
  if (own.timeout == 0) own.timeout = options->timeout;
  /* check this before o->comm, because a handle of another MPI ends the process */
  if (mgrid_mpi_one_library(err)) return NULL;
  if (o->comm) return mgrid_mpi_backend_f(*o->comm, &own, err);
  MPI_Initialized(&ready);
  MPI_Finalized(&gone);
  if (!ready && !gone && mgrid_mpi_launched(MPI_COMM_NULL, err)) return NULL;
  if (!ready && !gone
      && MPI_Init_thread(NULL, NULL, mgrid_mpi_level(o->threads), &level) != MPI_SUCCESS)
    return mgrid_null(err, MGRID_BACKEND, "mpi: MPI_Init_thread failed");
  mgrid_backend *b = mgrid_mpi_backend(MPI_COMM_WORLD, &own, err);
  if (b)
    ((mpi_backend *)b)->finalize = !ready;
  else if (!ready && !gone)
    MPI_Finalize();
  return b;
}

static mgrid_status mpi_probe(char *buf, size_t len, mgrid_error *err) {
  char text[MGRID_MPI_VERSION];
  int n = 0;
  (void)err;
  MPI_Get_library_version(text, &n);
  snprintf(buf, len, "%s", text);
  return MGRID_OK;
}

MGRID_ENTRY(mpi) = { MGRID_LAYOUT, .open = mpi_open, .probe = mpi_probe };
