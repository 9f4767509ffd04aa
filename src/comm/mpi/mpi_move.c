/* SPDX-License-Identifier: MIT
**
** mpi_move.c - messages of moves: one non-blocking call for each message, on the library's
** communicator. Boxes of long rows become a datatype, so they need not be packed. Persistent
** messages are not faster (scripts/lab/costs.md). Parts may be in GPU memory: a CUDA-aware MPI
** reads it directly, and packing uses the CUDA runtime that the process has loaded. This library is
** built without CUDA's headers, so it declares the few functions that it needs. tensors/ calls this
** file through mgrid_transport_ops.
*/
#include "comm/mpi/mpi.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

/* ---------------------------------------------------------------- messages */

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
  m->phase += UINT64_C(1) << 32; /* a new phase, so that notices of earlier moves do not count */
  return MGRID_OK;
}

static mgrid_status mpi_move_connect(mgrid_backend *b, mgrid_error *err) {
  (void)err; /* messages use `comm`, which exists */
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

/* Make a datatype of strided rows: loops around contiguous bytes. The rows are *block elements of
** *type. */
static int move_box_of(const mgrid_rows *rows, MPI_Datatype *type, int *block) {
  int rc = MPI_SUCCESS;
  *type = MPI_BYTE, *block = (int)rows->row;
  for (int k = rows->n; k-- > 0 && !rc; *block = 1) {
    MPI_Datatype inner = *type;
    rc = MPI_Type_create_hvector((int)rows->length[k], *block, (MPI_Aint)rows->stride[k], inner,
                                 type);
    if (inner != MPI_BYTE) MPI_Type_free(&inner);
    if (rc) *type = MPI_BYTE;
  }
  return rc;
}

static bool move_is_alike(const mgrid_rows *a, const mgrid_rows *b) {
  size_t bytes = (size_t)a->n * sizeof *a->length;
  return a->n == b->n && a->row == b->row && memcmp(a->length, b->length, bytes) == 0
         && memcmp(a->stride, b->stride, bytes) == 0;
}

/* Make a datatype of all boxes of a message. Consecutive boxes of one shape share a type. */
static int type_of(const mgrid_post *p, MPI_Datatype *out) {
  MPI_Datatype type[MGRID_BOXES_MAX];
  MPI_Aint at[MGRID_BOXES_MAX];
  int count[MGRID_BOXES_MAX], n = 0, rc = MPI_SUCCESS;
  do {
    at[n] = p->boxes[n].at - (char *)p->data;
    if (n > 0 && move_is_alike(&p->boxes[n - 1], &p->boxes[n]))
      type[n] = type[n - 1], count[n] = count[n - 1];
    else
      rc = move_box_of(&p->boxes[n], &type[n], &count[n]);
  } while (++n < (int)p->nboxes && !rc);
  if (!rc) rc = MPI_Type_create_struct(n, count, at, type, out);
  for (; n > 0; n--)
    if (type[n - 1] != MPI_BYTE && (n == 1 || type[n - 1] != type[n - 2]))
      MPI_Type_free(&type[n - 1]);
  return rc;
}

static int post_one(mpi_backend *m, const mgrid_post *p) {
  MPI_Datatype type = MPI_BYTE;
  MPI_Request *request = &m->request[p->slot];
  int n = p->nboxes > 1 ? 1 : (int)p->bytes, rc = MPI_SUCCESS;
  if (p->nboxes) rc = p->nboxes == 1 ? move_box_of(p->boxes, &type, &n) : type_of(p, &type);
  if (p->nboxes && !rc) rc = MPI_Type_commit(&type);
  if (rc) return rc;
  rc = p->receive ? MPI_Irecv(p->data, n, type, (int)p->peer, MGRID_TAG_MOVE, m->comm, request)
                  : MPI_Isend(p->data, n, type, (int)p->peer, MGRID_TAG_MOVE, m->comm, request);
  if (p->nboxes) MPI_Type_free(&type); /* MPI keeps it until the message has ended */
  return rc;
}

static mgrid_outcome mpi_move_post(mgrid_backend *b, size_t n, const mgrid_post *message,
                                   mgrid_error *err) {
  for (size_t i = 0; i < n; i++) {
    int rc = post_one((mpi_backend *)b, &message[i]);
    if (rc)
      return mgrid_mpi_failed(err, rc, message[i].receive ? "MPI_Irecv" : "MPI_Isend", "a move");
  }
  return MGRID_OK;
}

static mgrid_outcome mpi_move_look(mgrid_backend *b, bool news, size_t *n, int *ended,
                                   mgrid_error *err) {
  mpi_backend *m = (mpi_backend *)b;
  int count = 0, rc = MPI_Testsome(m->nrequests, m->request, &count, ended, MPI_STATUSES_IGNORE);
  *n = count == MPI_UNDEFINED ? 0 : (size_t)count;
  if (rc) return mgrid_mpi_failed(err, rc, "MPI_Testsome", "a move");
  return mgrid_mpi_goes_on(m, *n + news, err);
}

static bool mpi_move_close(mgrid_backend *b, bool failed) {
  mpi_backend *m = (mpi_backend *)b;
  m->seconds = m->before;
  /* messages that are still on their way would be received as messages of the next move */
  if (failed) m->broken = true;
  return !failed;
}

/* --------------------------------------------------------- memory of a GPU */

/* cudaMemoryTypeDevice, cudaMemcpyDefault, the largest pitch of cudaMemcpy2D */
enum { ON_DEVICE = 2, ANY_DIRECTION = 4, PITCH_MOST = INT32_MAX };

/* The beginning of cudaPointerAttributes. It is the same in every version since CUDA 11; the struct
** may grow. */
typedef struct attributes {
  int type, device;
  char rest[248];
} attributes;

static void *runtime(void) {
  static const char *const files[] = { "libcudart.so.13", "libcudart.so.12", "libcudart.so.11.0" };
  for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
    void *lib = dlopen(files[i], RTLD_NOW | RTLD_NOLOAD);
    if (lib) return lib; /* never closed, so it stays loaded */
  }
  return NULL;
}

static bool move_symbol(void *lib, const char *name, void *function) {
  void *found = dlsym(lib, name);
  if (found) memcpy(function, &found, sizeof found);
  return found != NULL;
}

static bool is_cuda_aware(void) {
  int (*query)(void) = NULL;
  return move_symbol(RTLD_DEFAULT, "MPIX_Query_cuda_support", &query) && query() == 1;
}

static void look_for_runtime(mpi_backend *m) {
  if (!m->cuda.looked) m->cuda.lib = runtime(), m->cuda.looked = true;
}

static mgrid_status mpi_move_reaches(mgrid_backend *b, const void *data, const char *what,
                                     mgrid_error *err) {
  mpi_backend *m = (mpi_backend *)b;
  attributes of = { 0 };
  int (*ask)(attributes *, const void *) = NULL;
  look_for_runtime(m);
  if (!m->cuda.lib || !move_symbol(m->cuda.lib, "cudaPointerGetAttributes", &ask)
      || ask(&of, data) != 0 || of.type != ON_DEVICE)
    return MGRID_OK;
  if (is_cuda_aware() && move_symbol(m->cuda.lib, "cudaMemcpy2D", &m->cuda.copy)) {
    m->cuda.used = true;
    return MGRID_OK;
  }
  return mgrid_fail(err, MGRID_UNSUPPORTED,
                    "%s is in memory of GPU %d, which this MPI does not reach, since it is not "
                    "CUDA-aware; the nccl backend moves it",
                    what, of.device);
}

static bool mpi_move_copies(mgrid_backend *b) { return ((mpi_backend *)b)->cuda.used; }

/* Copy rows. The copy has ended when the call returns, because MPI would not wait for a stream. */
static mgrid_status mpi_move_copy(mgrid_backend *b, const mgrid_slab *s, mgrid_error *err) {
  mpi_backend *m = (mpi_backend *)b;
  bool rows = s->stride > PITCH_MOST; /* copy row by row */
  for (int64_t k = 0; k < s->planes; k++)
    for (int64_t i = 0; i < (rows ? s->count : 1); i++) {
      char *apart = s->apart + k * s->plane_stride + i * s->stride,
           *packed = s->packed + (k * s->count + i) * s->row;
      size_t row = (size_t)s->row, pitch = rows || s->count == 1 ? row : (size_t)s->stride;
      int e = m->cuda.copy(s->pack ? packed : apart, s->pack ? row : pitch,
                           s->pack ? apart : packed, s->pack ? pitch : row, row,
                           rows ? 1 : (size_t)s->count, ANY_DIRECTION);
      if (e)
        return mgrid_fail(err, MGRID_BACKEND, "mpi: cudaMemcpy2D for a move failed with error %d",
                          e);
    }
  return MGRID_OK;
}

const mgrid_transport_ops mgrid_mpi_transport = { .typed = true,
                                                  .polled = true,
                                                  .watches = true,
                                                  .carrier = mpi_move_carrier,
                                                  .open = mpi_move_open,
                                                  .reaches = mpi_move_reaches,
                                                  .copies = mpi_move_copies,
                                                  .copy = mpi_move_copy,
                                                  .connect = mpi_move_connect,
                                                  .prepare = mpi_move_prepare,
                                                  .post = mpi_move_post,
                                                  .look = mpi_move_look,
                                                  .close = mpi_move_close };
