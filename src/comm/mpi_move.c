/* SPDX-License-Identifier: MIT
**
** mpi_move.c - messages of moves on MPI: a non-blocking call for each parcel, on a communicator of the library.
*/
#include "comm/mpi.h"

#include <stdlib.h>

static mgrid_status mpi_move_open(mgrid_backend *b, double *seconds, mgrid_error *err) {
  mpi_backend *m = (mpi_backend *)b;
  mgrid_status s = mgrid_mpi_usable(m, err);
  if (s) return s;
  m->before = m->seconds;
  if (*seconds > 0) m->seconds = *seconds;
  *seconds = m->seconds;
  m->phase += UINT64_C(1) << 32; /* what ranks tell each other is of this move */
  return MGRID_OK;
}

static mgrid_status mpi_move_prepare(mgrid_backend *b, size_t n, mgrid_error *err) {
  mpi_backend *m = (mpi_backend *)b;
  MPI_Request *more = realloc(m->request, (n ? n : 1) * sizeof *more);
  if (!more) return mgrid_oom(err);
  m->request = more;
  m->nrequests = (int)n;
  for (size_t i = 0; i < n; i++) more[i] = MPI_REQUEST_NULL;
  return MGRID_OK;
}

static mgrid_status mpi_move_post(mgrid_backend *b, size_t n, const mgrid_post *message, mgrid_error *err) {
  mpi_backend *m = (mpi_backend *)b;
  for (size_t i = 0; i < n; i++) {
    const mgrid_post *p = &message[i];
    MPI_Request      *request = &m->request[p->slot];
    int rc = p->receive ? MPI_Irecv(p->data, (int)p->bytes, MPI_BYTE, (int)p->peer, MGRID_TAG_MOVE, m->notes, request)
                        : MPI_Isend(p->data, (int)p->bytes, MPI_BYTE, (int)p->peer, MGRID_TAG_MOVE, m->notes, request);
    if (rc) return mgrid_mpi_failed(err, rc, p->receive ? "MPI_Irecv" : "MPI_Isend", "a move");
  }
  return MGRID_OK;
}

static mgrid_status mpi_move_look(mgrid_backend *b, size_t *n, int *ended, mgrid_error *err) {
  mpi_backend *m = (mpi_backend *)b;
  int          count = 0, rc = MPI_Testsome(m->nrequests, m->request, &count, ended, MPI_STATUSES_IGNORE);
  *n = count == MPI_UNDEFINED ? 0 : (size_t)count;
  return rc ? mgrid_mpi_failed(err, rc, "MPI_Testsome", "a move") : MGRID_OK;
}

static bool mpi_move_close(mgrid_backend *b, bool failed) {
  mpi_backend *m = (mpi_backend *)b;
  m->seconds = m->before;
  if (failed) m->broken = true; /* messages that were sent would be taken for those of the next move */
  return !failed;
}

const mgrid_transport_ops mgrid_mpi_transport = { .open = mpi_move_open,
                                                  .prepare = mpi_move_prepare,
                                                  .post = mpi_move_post,
                                                  .look = mpi_move_look,
                                                  .close = mpi_move_close };
