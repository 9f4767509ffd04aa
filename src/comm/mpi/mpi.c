/* SPDX-License-Identifier: MIT
**
** mpi.c - use communicators of MPI: check, destroy, prove. They are created in create.c; a backend is opened and closed in
** open.c; wait.c waits for all ranks; together.c has collectives, move.c moves data.
** No call of MPI here aborts the job: errors on the library's duplicate return, and a group's communicator has the error
** handler MPI_ERRORS_RETURN during such a call and its own afterwards.
*/
#include "comm/mpi/mpi.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

mgrid_status mgrid_mpi_failed(mgrid_error *err, int rc, const char *call, const char *what) {
  char text[MPI_MAX_ERROR_STRING] = "";
  int  len = 0;
  if (MPI_Error_string(rc, text, &len) != MPI_SUCCESS) snprintf(text, sizeof text, "error %d", rc);
  return mgrid_fail(err, MGRID_BACKEND, "mpi: %s%s%s: %.300s", call, *what ? " for " : "", what, text);
}

/* Another thread may do the same with MPI_COMM_SELF. So MPI_ERRORS_RETURN, which may be of that thread, is neither set again
** nor restored: the thread that set it restores what it found. */
MPI_Errhandler mgrid_mpi_quiet(MPI_Comm comm) {
  MPI_Errhandler was = MPI_ERRHANDLER_NULL;
  MPI_Comm_get_errhandler(comm, &was);
  if (was != MPI_ERRORS_RETURN) MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  return was;
}

void mgrid_mpi_restore(MPI_Comm comm, MPI_Errhandler was) {
  if (was != MPI_ERRORS_RETURN) MPI_Comm_set_errhandler(comm, was);
  MPI_Errhandler_free(&was);
}

/* ------------------------------------------------------------ communicators */

/* MPI numbers its communicators. When the numbers run out some versions hang instead of failing, so refuse before that. Some
** numbers are left for the host and other backends, whose use is not known. */
static int64_t most_of(const mpi_backend *m) {
#ifdef OPEN_MPI
  const int64_t library = 65000; /* 16 bits */
#else
  const int64_t library = 1900; /* MPICH has 2048 */
#endif
  return m->most > 0 ? m->most : library;
}

static mgrid_status mpi_check(mgrid_backend *b, size_t n, const mgrid_comm_spec *spec, mgrid_error *err) {
  for (size_t i = 0; i < n; i++)
    if (spec[i].backend->native != MGRID_NATIVE_MPI)
      return mgrid_fail(err, MGRID_REFUSED,
                        "%s needs the backend '%s', and this job runs on mpi alone; start it with "
                        "--backend %s, or open that backend",
                        spec[i].name, spec[i].backend->name, spec[i].backend->name);
  int64_t here = ((mpi_backend *)b)->made, most = most_of((mpi_backend *)b);
  if (here + (int64_t)n <= most) return MGRID_OK;
  return mgrid_fail(err, MGRID_LIMIT,
                    "mpi: this rank has %" PRId64 " communicators and needs %zu more; MPI numbers at most %" PRId64
                    " of ours; free a state first, or share groups",
                    here, n, most);
}

static void mpi_destroy(mgrid_backend *b, size_t n, void **native) {
  bool gone = !mgrid_mpi_there((mpi_backend *)b);
  for (size_t i = 0; i < n; i++) {
    mpi_comm *c = native[i];
    if (!c) continue;
    ((mpi_backend *)b)->made--;
    c->ends = true;
    bool stays = !gone && (((mpi_backend *)b)->broken || c->stuck); /* and so does its box */
    if (!gone && !stays) MPI_Comm_free(&c->comm);
    if (!stays) free(c);
  }
}

/* Keep the first failure. Make the later calls all the same, because other members wait in them. */
static void keep(mgrid_status *s, mgrid_error *err, const mgrid_comm_spec *spec, int rc, const char *call) {
  if (rc && !*s) *s = mgrid_mpi_failed(err, rc, call, spec->name);
}

/* Check the Cartesian topology: dims, periods and this rank's coordinates. MPI's dims go slowest first. */
static mgrid_status prove_shape(const mgrid_comm_spec *spec, MPI_Comm comm, mgrid_error *err) {
  const mgrid_shape *shape = spec->options->shape;
  int                dims[MGRID_DIMS_MAX], periods[MGRID_DIMS_MAX], coords[MGRID_DIMS_MAX], kind = MPI_UNDEFINED, n = 0;
  mgrid_status       s = MGRID_OK;
  if (!shape) return s;
  keep(&s, err, spec, MPI_Topo_test(comm, &kind), "MPI_Topo_test");
  if (!s && kind == MPI_CART) keep(&s, err, spec, MPI_Cartdim_get(comm, &n), "MPI_Cartdim_get");
  if (!s && n != shape->n)
    s = mgrid_fail(err, MGRID_UNPROVED, "mpi: %s has a Cartesian topology of %d dims, not %d", spec->name, n, shape->n);
  if (!s) keep(&s, err, spec, MPI_Cart_get(comm, n, dims, periods, coords), "MPI_Cart_get");
  for (int i = 0; i < n && !s; i++) {
    const mgrid_side *side = &shape->side[n - 1 - i];
    int64_t           at = mgrid_shape_coord(shape, spec->position, n - 1 - i);
    if (dims[i] != side->size || !periods[i] != !side->periodic || coords[i] != at)
      s = mgrid_fail(err, MGRID_UNPROVED, "mpi: in %s dim '%s' is %d of %d%s instead of %" PRId64 " of %" PRId64 "%s",
                     spec->name, side->name, coords[i], dims[i], periods[i] ? ", periodic," : "", at, side->size,
                     side->periodic ? ", periodic" : "");
  }
  return s;
}

/* A proof in progress; its first failure is kept. */
typedef struct proving {
  mpi_backend           *m;
  const mgrid_comm_spec *spec;
  mpi_comm              *c;
  double                 until; /* a quarter of the deadline is left for the verdict */
  mgrid_status           s;
  mgrid_error           *err;
} proving;

/* Wait for a call that was started. Return false if it did not end: then no other may follow. After other failures the proof
** continues, because other members wait in it. */
static bool ended(proving *p, mpi_request call, const char *name) {
  double       left = p->until - mgrid_now(), least = p->m->seconds / 16;
  mgrid_status s = call.rc ? mgrid_mpi_failed(NULL, call.rc, name, "")
                           : mgrid_mpi_finish_group(p->m, p->spec, p->c, call, left > least ? left : least, name,
                                                    p->s ? NULL : p->err);
  if (call.rc) keep(&p->s, p->err, p->spec, call.rc, name);
  if (s && !p->s) p->s = s;
  return !p->c->stuck;
}

/* Each member sends each other one its rank and the position that it believes the other has. */
static void prove_pairs(proving *p, mpi_proof *d, int size) {
  const mgrid_comm_spec *spec = p->spec;
  mpi_request            call = { 0 };
  for (int i = 0; i < size; i++) d->to[2 * i] = d->mine, d->to[2 * i + 1] = i;
  memset(d->from, -1, sizeof d->from);
  call.rc = MPI_Ialltoall(d->to, 2, MPI_INT32_T, d->from, 2, MPI_INT32_T, p->c->comm, &call.request);
  if (!ended(p, call, "MPI_Ialltoall")) return;
  for (int i = 0; i < size && !p->s; i++)
    if (d->from[2 * i] != spec->ranks[i] || d->from[2 * i + 1] != spec->position)
      p->s = mgrid_fail(p->err, MGRID_UNPROVED,
                        "mpi: the all-to-all of %s brought rank %" PRId32 " what rank %" PRId32
                        " sent position %" PRId32,
                        spec->name, d->mine, d->from[2 * i], d->from[2 * i + 1]);
}

/* Check members and order, a sum, a broadcast from every position, a ring in group order, an all-to-all, the topology. */
static void prove(proving *p, mpi_proof *d) {
  const mgrid_comm_spec *spec = p->spec;
  MPI_Comm               comm = p->c->comm;
  mgrid_error           *err = p->err;
  mpi_request            call = { 0 };
  int                    rank = -1, size = 0;
  keep(&p->s, err, spec, MPI_Comm_rank(comm, &rank), "MPI_Comm_rank");
  keep(&p->s, err, spec, MPI_Comm_size(comm, &size), "MPI_Comm_size");
  if (!p->s && (rank != spec->position || size != spec->size))
    p->s = mgrid_fail(err, MGRID_UNPROVED, "mpi: %s made rank %" PRId64 " %d of %d instead of %" PRId64 " of %" PRId64,
                      spec->name, p->m->base.rank, rank, size, spec->position, spec->size);
  d->mine = (int32_t)p->m->base.rank, d->before = d->sent = -1, d->sum = p->m->base.rank;
  long long want = 0;
  for (int64_t i = 0; i < spec->size; i++) want += spec->ranks[i];
  for (int root = 0; root < size; root++) { /* each member broadcasts its rank */
    d->sent = rank == root ? d->mine : -1;
    call.rc = MPI_Ibcast(&d->sent, 1, MPI_INT32_T, root, comm, &call.request);
    if (!ended(p, call, "MPI_Ibcast")) return;
    if (!p->s && d->sent != spec->ranks[root])
      p->s = mgrid_fail(err, MGRID_UNPROVED, "mpi: position %d of %s is rank %" PRId32 ", not %" PRId32, root,
                        spec->name, d->sent, spec->ranks[root]);
  }
  call.rc = MPI_Iallreduce(MPI_IN_PLACE, &d->sum, 1, MPI_LONG_LONG, MPI_SUM, comm, &call.request);
  if (!ended(p, call, "MPI_Iallreduce")) return;
  if (!p->s && d->sum != want)
    p->s = mgrid_fail(err, MGRID_UNPROVED, "mpi: the ranks of %s sum to %lld, not %lld", spec->name, d->sum, want);
  if (size > 0) {
    mpi_request sent = { 0 };
    call.rc = MPI_Irecv(&d->before, 1, MPI_INT32_T, (rank + size - 1) % size, 0, comm, &call.request);
    sent.rc = MPI_Isend(&d->mine, 1, MPI_INT32_T, (rank + 1) % size, 0, comm, &sent.request);
    if (!ended(p, call, "MPI_Irecv") || !ended(p, sent, "MPI_Isend")) return;
    if (!p->s && d->before != spec->ranks[(rank + size - 1) % size])
      p->s = mgrid_fail(err, MGRID_UNPROVED, "mpi: the ring of %s brought rank %" PRId32, spec->name, d->before);
  }
  if (size <= MGRID_PAIRS_MAX) prove_pairs(p, d, size);
  if (p->c->stuck) return;
  if (!p->s) p->s = prove_shape(spec, comm, err);
}

static mgrid_outcome mpi_prove(mgrid_backend *b, const mgrid_comm_spec *spec, void *native, mgrid_error *err) {
  mpi_backend *m = (mpi_backend *)b;
  mpi_comm    *c = native;
  proving      p = { m, spec, c, mgrid_now() + m->seconds * 3 / 4, mgrid_mpi_usable(m, err), err };
  mpi_proof   *d = malloc(sizeof *d);
  if (p.s || m->hurry) return free(d), p.s; /* hurry: an earlier proof of this state did not end */
  MPI_Errhandler was = mgrid_mpi_quiet(c->comm);
  prove(&p, d ? d : &m->spare);
  mgrid_mpi_restore(c->comm, was);
  if (!c->stuck) free(d);
  return p.s;
}

/* ---------------------------------------------------------------------- use */

static void *mpi_buffer_new(mgrid_backend *b, const mgrid_descriptor *kind, size_t bytes, mgrid_error *err) {
  void *buffer = calloc(bytes ? bytes : 1, 1);
  (void)b, (void)kind;
  return buffer ? buffer : mgrid_null_oom(err);
}

static void mpi_buffer_free(mgrid_backend *b, const mgrid_descriptor *kind, void *buffer) {
  (void)kind;
  if (!((mpi_backend *)b)->pending) free(buffer); /* else MPI may still write there */
}

static mgrid_status mpi_copy(mgrid_backend *b, const mgrid_descriptor *kind, void *to, const void *from, size_t bytes,
                             bool to_buffer, mgrid_error *err) {
  (void)b, (void)kind, (void)to_buffer, (void)err;
  memcpy(to, from, bytes);
  return MGRID_OK;
}

const mgrid_backend_ops mgrid_mpi_ops = {
  .allreduce_min = mgrid_mpi_allreduce,
  .allgather = mgrid_mpi_allgather,
  .bcast = mgrid_mpi_bcast,
  .check = mpi_check,
  .create = mgrid_mpi_create,
  .destroy = mpi_destroy,
  .revoke = mgrid_mpi_revoke,
  .prove = mpi_prove,
  .close = mgrid_mpi_close,
  .buffer_new = mpi_buffer_new,
  .buffer_free = mpi_buffer_free,
  .copy = mpi_copy,
  .collective = mgrid_mpi_collective,
  .together = mgrid_mpi_together,
  .carrier = &mgrid_mpi_carrier,
  .transport = &mgrid_mpi_transport,
  .survival = &mgrid_mpi_survival,
};
