/* SPDX-License-Identifier: MIT
**
** mpi.c - communicators of MPI, created by their members alone (MPI_Comm_create_group) on our duplicate of the
** host's. How a backend begins and ends is in mpi_open.c, what waits for all ranks in
** mpi_wait.c, what moves data in mpi_move.c.
** No call of MPI here aborts the job: errors of our duplicate return, and a group's communicator has the error
** handler MPI_ERRORS_RETURN during such a call, and afterwards the one that it had.
*/
#include "comm/mpi.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

mgrid_status mgrid_mpi_failed(mgrid_error *err, int rc, const char *call, const char *what) {
  char text[MPI_MAX_ERROR_STRING] = "";
  int  len = 0;
  if (MPI_Error_string(rc, text, &len) != MPI_SUCCESS) snprintf(text, sizeof text, "error %d", rc);
  return mgrid_fail(err, MGRID_BACKEND, "mpi: %s%s%s: %.300s", call, *what ? " for " : "", what, text);
}

MPI_Errhandler mgrid_mpi_quiet(MPI_Comm comm) {
  MPI_Errhandler was = MPI_ERRHANDLER_NULL;
  MPI_Comm_get_errhandler(comm, &was);
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  return was;
}

void mgrid_mpi_restore(MPI_Comm comm, MPI_Errhandler was) {
  MPI_Comm_set_errhandler(comm, was);
  MPI_Errhandler_free(&was);
}

/* ------------------------------------------------------------ communicators */

static mgrid_status mpi_check(mgrid_backend *b, size_t n, const mgrid_comm_spec *spec, mgrid_error *err) {
  (void)b;
  for (size_t i = 0; i < n; i++)
    if (spec[i].backend->native != MGRID_NATIVE_MPI)
      return mgrid_fail(err, MGRID_REFUSED,
                        "%s wants the backend '%s', and this job runs on mpi alone; start it with "
                        "--backend %s, or open that backend",
                        spec[i].name, spec[i].backend->name, spec[i].backend->name);
  return MGRID_OK;
}

/* Give the communicator the Cartesian topology of its family: MPI's dims go slowest first. The ranks stay, so the
** one without a topology has done its work. */
static int attach_shape(const mgrid_shape *shape, MPI_Comm *comm) {
  int      dims[MGRID_DIMS_MAX], periods[MGRID_DIMS_MAX];
  MPI_Comm plain = *comm;
  for (int i = 0; i < shape->n; i++) {
    const mgrid_side *side = &shape->side[shape->n - 1 - i];
    dims[i] = (int)side->size;
    periods[i] = side->periodic;
  }
  int rc = MPI_Cart_create(plain, shape->n, dims, periods, 0, comm);
  return rc ? rc : MPI_Comm_free(&plain);
}

static mgrid_status create_one(mpi_backend *m, const mgrid_comm_spec *spec, void **native, mgrid_error *err) {
  MPI_Group   group;
  MPI_Comm    comm = MPI_COMM_NULL;
  const char *call = "MPI_Group_incl";
  int         rc = MPI_Group_incl(m->members, (int)spec->size, spec->ranks, &group);
  if (!rc) {
    call = "MPI_Comm_create_group";
    rc = MPI_Comm_create_group(m->comm, group, spec->tag, &comm);
    MPI_Group_free(&group);
  }
  if (!rc && comm != MPI_COMM_NULL && spec->options->shape) {
    call = "MPI_Cart_create";
    rc = attach_shape(spec->options->shape, &comm);
  }
  if (rc) return mgrid_mpi_failed(err, rc, call, spec->name);
  if (comm == MPI_COMM_NULL)
    return mgrid_fail(err, MGRID_BACKEND, "mpi: %s gave rank %" PRId64 " no communicator", spec->name, m->base.rank);
  MPI_Comm *box =
      malloc(sizeof *box);         /* allocated only now: a rank without memory still takes part in the call above */
  if (!box) return mgrid_oom(err); /* comm is not freed: that would be a call over its members */
  char name[MPI_MAX_OBJECT_NAME];
  snprintf(name, sizeof name, "%.*s", MPI_MAX_OBJECT_NAME - 1, spec->name);
  MPI_Comm_set_name(comm, name);
  MPI_Comm_set_errhandler(comm, m->handler);
  *box = comm;
  *native = box;
  return MGRID_OK;
}

/* One after the other: each is three rounds of messages among its members, and MPI has no non-blocking
** creation. MPI_Comm_idup for equal members, threads, and another order were not faster: see
** scripts/README.md. */
static mgrid_outcome mpi_create(mgrid_backend *b, size_t n, const mgrid_comm_spec *spec, void **native,
                                mgrid_error *err) {
  mgrid_status s = MGRID_OK;
  for (size_t i = 0; i < n; i++) {
    mgrid_status one = create_one((mpi_backend *)b, &spec[i], &native[i], s ? NULL : err);
    if (!s) s = one;
  }
  return s;
}

static void mpi_destroy(mgrid_backend *b, size_t n, void **native) {
  int gone = 0;
  MPI_Finalized(&gone);
  for (size_t i = 0; i < n; i++) {
    MPI_Comm *comm = native[i];
    if (comm && !gone && !((mpi_backend *)b)->broken) MPI_Comm_free(comm);
    free(comm);
  }
}

/* Keep the first failure. Later calls are made all the same, because the other members wait in them. */
static void keep(mgrid_status *s, mgrid_error *err, const mgrid_comm_spec *spec, int rc, const char *call) {
  if (rc && !*s) *s = mgrid_mpi_failed(err, rc, call, spec->name);
}

/* The topology of the communicator: dims, periods and this rank's coordinates, from the back. */
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

/* Members and order, a sum, a broadcast from every position, a ring in group order. */
static mgrid_status prove(mgrid_backend *b, const mgrid_comm_spec *spec, MPI_Comm comm, mgrid_error *err) {
  int          rank = -1, size = 0;
  mgrid_status s = MGRID_OK;
  keep(&s, err, spec, MPI_Comm_rank(comm, &rank), "MPI_Comm_rank");
  keep(&s, err, spec, MPI_Comm_size(comm, &size), "MPI_Comm_size");
  if (!s && (rank != spec->position || size != spec->size))
    s = mgrid_fail(err, MGRID_UNPROVED, "mpi: %s made rank %" PRId64 " %d of %d instead of %" PRId64 " of %" PRId64,
                   spec->name, b->rank, rank, size, spec->position, spec->size);
  int32_t   mine = (int32_t)b->rank, before = -1;
  long long sum = mine, want = 0;
  for (int64_t i = 0; i < spec->size; i++) want += spec->ranks[i];
  for (int root = 0; root < size; root++) { /* each member broadcasts its rank */
    int32_t sent = rank == root ? mine : -1;
    keep(&s, err, spec, MPI_Bcast(&sent, 1, MPI_INT32_T, root, comm), "MPI_Bcast");
    if (!s && sent != spec->ranks[root])
      s = mgrid_fail(err, MGRID_UNPROVED, "mpi: position %d of %s is rank %" PRId32 ", not %" PRId32, root, spec->name,
                     sent, spec->ranks[root]);
  }
  keep(&s, err, spec, MPI_Allreduce(MPI_IN_PLACE, &sum, 1, MPI_LONG_LONG, MPI_SUM, comm), "MPI_Allreduce");
  if (!s && sum != want)
    s = mgrid_fail(err, MGRID_UNPROVED, "mpi: the ranks of %s sum to %lld, not %lld", spec->name, sum, want);
  if (size > 0)
    keep(&s, err, spec,
         MPI_Sendrecv(&mine, 1, MPI_INT32_T, (rank + 1) % size, 0, &before, 1, MPI_INT32_T, (rank + size - 1) % size, 0,
                      comm, MPI_STATUS_IGNORE),
         "MPI_Sendrecv");
  if (!s && before != spec->ranks[(rank + size - 1) % size])
    s = mgrid_fail(err, MGRID_UNPROVED, "mpi: the ring of %s brought rank %" PRId32, spec->name, before);
  return s ? s : prove_shape(spec, comm, err);
}

static mgrid_outcome mpi_prove(mgrid_backend *b, const mgrid_comm_spec *spec, void *native, mgrid_error *err) {
  MPI_Comm     comm = *(MPI_Comm *)native;
  mgrid_status s = mgrid_mpi_usable((mpi_backend *)b, err);
  if (s) return s;
  MPI_Errhandler was = mgrid_mpi_quiet(comm);
  s = prove(b, spec, comm, err);
  mgrid_mpi_restore(comm, was);
  return s;
}

/* ---------------------------------------------------------------------- use */

static void *mpi_buffer_new(mgrid_backend *b, const mgrid_descriptor *kind, size_t bytes, mgrid_error *err) {
  void *buffer = calloc(bytes ? bytes : 1, 1);
  (void)b, (void)kind;
  return buffer ? buffer : mgrid_null_oom(err);
}

static void mpi_buffer_free(mgrid_backend *b, const mgrid_descriptor *kind, void *buffer) {
  (void)b, (void)kind;
  free(buffer);
}

static mgrid_status mpi_copy(mgrid_backend *b, const mgrid_descriptor *kind, void *to, const void *from, size_t bytes,
                             bool to_buffer, mgrid_error *err) {
  (void)b, (void)kind, (void)to_buffer, (void)err;
  memcpy(to, from, bytes);
  return MGRID_OK;
}

static int collective(MPI_Comm comm, const mgrid_work *w) {
  static const MPI_Datatype types[] = { MPI_INT32_T, MPI_INT64_T, MPI_FLOAT, MPI_DOUBLE };
  static const MPI_Op       ops[] = { MPI_SUM, MPI_PROD, MPI_MIN, MPI_MAX };
  MPI_Datatype              type = types[w->type];
  MPI_Op                    op = ops[w->reduction];
  int                       n = (int)w->count;
  bool                      in_place = w->send == w->recv;
  switch (w->call) {
  case MGRID_ALLREDUCE: return MPI_Allreduce(in_place ? MPI_IN_PLACE : w->send, w->recv, n, type, op, comm);
  case MGRID_BROADCAST: return MPI_Bcast(w->recv, n, type, (int)w->root, comm);
  case MGRID_ALLGATHER: return MPI_Allgather(in_place ? MPI_IN_PLACE : w->send, n, type, w->recv, n, type, comm);
  case MGRID_REDUCE_SCATTER:
    return MPI_Reduce_scatter_block(in_place ? MPI_IN_PLACE : w->send, w->recv, n, type, op, comm);
  case MGRID_SENDRECV:
    return MPI_Sendrecv(w->send, w->to < 0 ? 0 : n, type, w->to < 0 ? MPI_PROC_NULL : (int)w->to, 0, w->recv,
                        w->from < 0 ? 0 : n, type, w->from < 0 ? MPI_PROC_NULL : (int)w->from, 0, comm,
                        MPI_STATUS_IGNORE);
  case MGRID_BARRIER: return MPI_Barrier(comm);
  case MGRID_ALL_TO_ALL: return MPI_Alltoall(w->send, n, type, w->recv, n, type, comm);
  }
  return MPI_ERR_ARG;
}

static mgrid_outcome mpi_collective(mgrid_backend *b, const mgrid_comm_spec *spec, void *native, const mgrid_work *w,
                                    mgrid_error *err) {
  static const char *const names[] = { "MPI_Allreduce", "MPI_Bcast",   "MPI_Allgather", "MPI_Reduce_scatter_block",
                                       "MPI_Sendrecv",  "MPI_Barrier", "MPI_Alltoall" };
  MPI_Comm                 comm = native ? *(MPI_Comm *)native : MPI_COMM_SELF; /* a group of one rank */
  mgrid_status             s = mgrid_mpi_usable((mpi_backend *)b, err);
  if (s) return s;
  if (w->count > INT32_MAX)
    return mgrid_fail(err, MGRID_USAGE, "mpi: %s of %zu elements; at most %d", names[w->call], w->count, INT32_MAX);
  MPI_Errhandler was = mgrid_mpi_quiet(comm);
  int            rc = collective(comm, w);
  mgrid_mpi_restore(comm, was);
  return rc ? mgrid_mpi_failed(err, rc, names[w->call], spec->name) : MGRID_OK;
}

const mgrid_backend_ops mgrid_mpi_ops = {
  .allreduce_min = mgrid_mpi_allreduce,
  .allgather = mgrid_mpi_allgather,
  .bcast = mgrid_mpi_bcast,
  .check = mpi_check,
  .create = mpi_create,
  .destroy = mpi_destroy,
  .revoke = mgrid_mpi_revoke,
  .prove = mpi_prove,
  .close = mgrid_mpi_close,
  .buffer_new = mpi_buffer_new,
  .buffer_free = mpi_buffer_free,
  .copy = mpi_copy,
  .collective = mpi_collective,
  .carrier = &mgrid_mpi_carrier,
  .transport = &mgrid_mpi_transport,
};
