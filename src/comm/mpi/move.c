/* SPDX-License-Identifier: MIT
**
** move.c - messages of moves over MPI: one non-blocking call for each, on the library's communicator. Long strided rows
** become a datatype, which saves the copy of packing; persistent messages are no faster (scripts/README.md).
*/
#include "comm/mpi/mpi.h"

#include <stdlib.h>

/* This backend is its own carrier. */
static mgrid_backend *mpi_move_carrier(mgrid_backend *b) { return b; }

static mgrid_status mpi_move_open(mgrid_backend *b, double *seconds, mgrid_error *err) {
  mpi_backend *m = (mpi_backend *)b;
  mgrid_status s = mgrid_mpi_usable(m, err);
  if (s) return s;
  m->before = m->seconds;
  m->cuda.used = m->moving.on = false;
  if (*seconds > 0) m->seconds = *seconds;
  *seconds = m->seconds;
  m->phase += UINT64_C(1) << 32; /* notices of earlier moves do not count */
  return MGRID_OK;
}

static mgrid_status mpi_move_connect(mgrid_backend *b, mgrid_error *err) {
  (void)err; /* messages go over `comm`, which exists */
  mgrid_mpi_moving((mpi_backend *)b);
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

/* Make a datatype of strided rows: contiguous bytes, and loops around them. */
static int type_of(const mgrid_rows *rows, MPI_Datatype *out) {
  MPI_Datatype type = MPI_BYTE;
  int          block = (int)rows->row, rc = MPI_SUCCESS;
  for (int k = rows->n; k-- > 0 && !rc; block = 1) {
    MPI_Datatype inner = type;
    rc = MPI_Type_create_hvector((int)rows->length[k], block, (MPI_Aint)rows->stride[k], inner, &type);
    if (inner != MPI_BYTE) MPI_Type_free(&inner);
  }
  *out = type;
  return rc ? rc : MPI_Type_commit(out);
}

static int post_one(mpi_backend *m, const mgrid_post *p) {
  MPI_Datatype type = MPI_BYTE;
  MPI_Request *request = &m->request[p->slot];
  int          n = p->rows ? 1 : (int)p->bytes, rc = p->rows ? type_of(p->rows, &type) : MPI_SUCCESS;
  if (rc) return rc;
  rc = p->receive ? MPI_Irecv(p->data, n, type, (int)p->peer, MGRID_TAG_MOVE, m->comm, request)
                  : MPI_Isend(p->data, n, type, (int)p->peer, MGRID_TAG_MOVE, m->comm, request);
  if (p->rows) MPI_Type_free(&type); /* MPI keeps it until the message has ended */
  return rc;
}

static mgrid_outcome mpi_move_post(mgrid_backend *b, size_t n, const mgrid_post *message, mgrid_error *err) {
  for (size_t i = 0; i < n; i++) {
    int rc = post_one((mpi_backend *)b, &message[i]);
    if (rc) return mgrid_mpi_failed(err, rc, message[i].receive ? "MPI_Irecv" : "MPI_Isend", "a move");
  }
  return MGRID_OK;
}

static mgrid_outcome mpi_move_look(mgrid_backend *b, bool news, size_t *n, int *ended, mgrid_error *err) {
  mpi_backend *m = (mpi_backend *)b;
  int          count = 0, rc = MPI_Testsome(m->nrequests, m->request, &count, ended, MPI_STATUSES_IGNORE);
  *n = count == MPI_UNDEFINED ? 0 : (size_t)count;
  if (rc) return mgrid_mpi_failed(err, rc, "MPI_Testsome", "a move");
  return mgrid_mpi_goes_on(m, *n + news, err);
}

static bool mpi_move_close(mgrid_backend *b, bool failed) {
  mpi_backend *m = (mpi_backend *)b;
  m->seconds = m->before;
  if (failed) m->broken = true; /* messages under way would be taken for those of the next move */
  return !failed;
}

const mgrid_transport_ops mgrid_mpi_transport = { .typed = true,
                                                  .watches = true,
                                                  .carrier = mpi_move_carrier,
                                                  .open = mpi_move_open,
                                                  .reaches = mgrid_mpi_reaches,
                                                  .copies = mgrid_mpi_copies,
                                                  .copy = mgrid_mpi_copy,
                                                  .connect = mpi_move_connect,
                                                  .prepare = mpi_move_prepare,
                                                  .post = mpi_move_post,
                                                  .look = mpi_move_look,
                                                  .close = mpi_move_close };
