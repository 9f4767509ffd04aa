/* SPDX-License-Identifier: MIT
**
** mpi.h - what the files of the mpi backend share: mpi.c, mpi_open.c, mpi_wait.c, mpi_move.c.
*/
#ifndef MGRID_COMM_MPI_H
#define MGRID_COMM_MPI_H

#include "comm/backend.h"
#include "moongrid_mpi.h"

/* MPICH's MPI_STATUSES_IGNORE is the address 1, which gcc takes for an array that is too short. */
#if defined(__GNUC__) && !defined(__clang__) && !defined(OPEN_MPI)
#pragma GCC diagnostic ignored "-Wstringop-overflow"
#endif

typedef struct mpi_backend {
  mgrid_backend base; /* first: ops get a pointer to it */
  /* Duplicates of the host's communicator, which is never used for our traffic: for calls over all ranks and
  ** creations; for notices; for the messages of a carrier, made by its `start`. Errors on them return. */
  MPI_Comm       comm, notes, talk;
  MPI_Comm       given;          /* the host's own in place of `comm`, which ends as it was; else MPI_COMM_NULL */
  MPI_Errhandler handler;        /* of the host's communicator when it was handed over: that of the groups */
  MPI_Group      members;        /* of comm */
  bool           finalize;       /* mpi_open has initialized MPI, so close finalizes it */
  bool           main;           /* MPI lets the main thread alone call it */
  double         seconds, usual; /* a call over all ranks may take: now; unless a carrier's user says otherwise */
  uint64_t       phase;          /* notices of this phase count: mgrid_carrier_ops.phase */
  uint64_t       few[8];         /* memory of small calls over all ranks; leaked if one did not end */
  uint64_t       calls;          /* calls over all ranks so far; equal on all ranks */
  /* Of a move: mpi_move.c. */
  MPI_Request *request; /* [nrequests], by slot */
  int          nrequests;
  double       before; /* `seconds` as it was before */
  bool         broken; /* a call over all ranks did not end: make no more calls of MPI */
} mpi_backend;

mgrid_status mgrid_mpi_failed(mgrid_error *err, int rc, const char *call, const char *what);
/* May MPI be called now, here? Not when it is finalized, from a thread that may not, or after a call that did not end. */
mgrid_status mgrid_mpi_usable(const mpi_backend *m, mgrid_error *err);
/* Let errors of a communicator return while we use it: _quiet gives the handler that it had before. */
MPI_Errhandler mgrid_mpi_quiet(MPI_Comm comm);
void           mgrid_mpi_restore(MPI_Comm comm, MPI_Errhandler was);

extern const mgrid_backend_ops mgrid_mpi_ops; /* mpi.c */
mgrid_status                   mgrid_mpi_revoke(mgrid_backend *b, size_t n, void **native, mgrid_error *err);
void                           mgrid_mpi_close(mgrid_backend *b);

/* mpi_launch.c: is one MPI library in this process, and was it its launcher that started it? */
enum { MGRID_MPI_VERSION = 16384 }; /* more than any library's MPI_MAX_LIBRARY_VERSION_STRING: it may be another's */
mgrid_status mgrid_mpi_one_library(mgrid_error *err);
mgrid_status mgrid_mpi_launched(mgrid_error *err); /* after MPI_Init; for the world */
/* Was Open MPI started with ULFM on (mpirun --with-ft ulfm)? Without, what it revokes hangs on some ranks. */
bool mgrid_mpi_survives(void);

/* The least of unsigned words is asked for as that of signed ones, turned over before and after: MPICH 4.0.2 (Debian
** 12) compares unsigned long as if it were signed. */
static inline void mgrid_mpi_turn(uint64_t *words, size_t n) {
  for (size_t i = 0; i < n; i++) words[i] ^= UINT64_C(1) << 63;
}

/* mpi_wait.c: what waits for other ranks. */
mgrid_status mgrid_mpi_allreduce(mgrid_backend *b, uint64_t *words, size_t n, mgrid_error *err);
mgrid_status mgrid_mpi_allgather(mgrid_backend *b, const void *mine, void *all, size_t bytes, mgrid_error *err);
mgrid_status mgrid_mpi_bcast(mgrid_backend *b, void *data, size_t bytes, int64_t root, mgrid_error *err);
/* Duplicate a communicator. Collective over it; the missing are not known by name before there are `notes`. */
mgrid_status                   mgrid_mpi_duplicate(mpi_backend *m, MPI_Comm from, MPI_Comm *to, mgrid_error *err);
extern const mgrid_carrier_ops mgrid_mpi_carrier;

/* Tags on `notes`: a rank failed (has its phase); it is in a call (has the number); who is missing (an mgrid_missing);
** the data of a move. */
enum { MGRID_TAG_FAILED = 1, MGRID_TAG_HERE = 2, MGRID_TAG_MISSING = 3, MGRID_TAG_MOVE = 4 };

/* mpi_move.c */
extern const mgrid_transport_ops mgrid_mpi_transport;

#endif
