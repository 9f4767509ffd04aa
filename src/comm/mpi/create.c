/* SPDX-License-Identifier: MIT
**
** create.c - create communicators of MPI on the library's duplicate of the host's communicator, by their members only
** (MPI_Comm_create_group). All ranks have just agreed, so they need no further rendezvous between creations. Every creation of
** MPI blocks, so a thread (watchdog.c) watches the deadline.
**
** Where MPI survives losses, all ranks create together (MPI_Comm_create). In Open MPI (5.0.11) nothing ends the wait for a lost
** member in MPI_Comm_create_group, not even a revoke; both end the calls over all ranks, which take as long.
*/
#include "comm/mpi/mpi.h"

#include <inttypes.h>
#include <stdlib.h>

/* Replace the communicator by one with the Cartesian topology of its family. MPI's dims go slowest first. Ranks keep their
** order. */
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

/* Without a communicator if the group has size 0. */
static mgrid_status create_one(mpi_backend *m, const mgrid_comm_spec *spec, MPI_Comm *made, mgrid_error *err) {
  const bool  together = m->survives && spec->size != 1;
  MPI_Group   group;
  MPI_Comm    comm = MPI_COMM_NULL;
  const char *call = "MPI_Group_incl", *creates = together ? "MPI_Comm_create" : "MPI_Comm_create_group";
  int         rc = MPI_Group_incl(m->members, (int)spec->size, spec->ranks, &group);
  mgrid_watch_enter(m, spec, creates);
  if (!rc) {
    call = creates;
    int tag = MGRID_TAGS + spec->tag % (32768 - MGRID_TAGS);
    rc = together ? MPI_Comm_create(m->comm, group, &comm) : MPI_Comm_create_group(m->comm, group, tag, &comm);
    if (spec->size > 0) MPI_Group_free(&group);
  }
  if (!rc && comm != MPI_COMM_NULL && spec->options->shape) {
    call = "MPI_Cart_create";
    rc = attach_shape(spec->options->shape, &comm);
  }
  mgrid_watch_enter(m, NULL, NULL);
  if (rc) return mgrid_mpi_failed_in(m, err, rc, call, spec->name);
  if (spec->size == 0) return MGRID_OK;
  if (comm == MPI_COMM_NULL)
    return mgrid_fail(err, MGRID_BACKEND, "mpi: %s gave rank %" PRId64 " no communicator", spec->name, m->base.rank);
  char name[MPI_MAX_OBJECT_NAME];
  snprintf(name, sizeof name, "%.*s", MPI_MAX_OBJECT_NAME - 1, spec->name);
  MPI_Comm_set_name(comm, name);
  MPI_Comm_set_errhandler(comm, m->handler);
  *made = comm;
  return MGRID_OK;
}

int mgrid_mpi_keeps(MPI_Comm comm, int key, void *box, void *backend) {
  const mpi_backend *m = backend;
  char               name[MPI_MAX_OBJECT_NAME] = "";
  int                len;
  (void)key;
  if (((const mpi_comm *)box)->ends) return MPI_SUCCESS;
  MPI_Comm_get_name(comm, name, &len);
  mgrid_log(&m->base.hooks, MGRID_LOG_WARN,
            "mpi: MPI_Comm_free of %s, which is borrowed: mgrid_state_free frees it with its state", name);
  return MPI_ERR_COMM;
}

/* Create a communicator and its box. Without memory for the box create it all the same, because other members wait in it. */
static mgrid_status keep_one(mpi_backend *m, const mgrid_comm_spec *spec, void **native, mgrid_error *err) {
  mpi_comm     here = { .comm = MPI_COMM_NULL }, *box = calloc(1, sizeof *box);
  mgrid_status s = create_one(m, spec, &here.comm, err);
  if (!s && !box) s = mgrid_oom(err);
  if (!s) *box = here;
  int rc = s ? MPI_SUCCESS : MPI_Comm_set_attr(here.comm, m->guard, box);
  if (rc) s = mgrid_mpi_failed(err, rc, "MPI_Comm_set_attr", spec->name);
  if (!s) {
    *native = box;
    m->made++;
    return s;
  }
  if (here.comm != MPI_COMM_NULL) MPI_Comm_free(&here.comm);
  free(box);
  return s;
}

/* Other groups of one rank use MPI_COMM_SELF, which does not exist with sessions. */
bool mgrid_mpi_wants_single(const mgrid_backend *b, const mgrid_choice *c) {
  bool all = ((const mpi_backend *)b)->sessions;
  return !c->none && (all || c->asked.single || c->asked.unique || c->shape || c->lane > 0);
}

/* MPI_Comm_create_group with one member waits for no other rank. A duplicate of MPI_COMM_SELF would call the host's
** attribute functions, and a host with sessions has no MPI_COMM_SELF. */
mgrid_status mgrid_mpi_single(mgrid_backend *b, const mgrid_comm_spec *spec, void **native, mgrid_error *err) {
  mgrid_status s = mgrid_mpi_usable((mpi_backend *)b, err);
  if (!s) s = b->ops->check(b, 1, spec, err);
  return s ? s : keep_one((mpi_backend *)b, spec, native, err);
}

/* A backend over this one makes the others. */
static bool is_mpis(const mgrid_comm_spec *spec) { return spec->size > 0 && spec->backend->native == MGRID_NATIVE_MPI; }

/* Find the creation of MPI with the lowest turn after `done`; n: there is none. */
static size_t find_next(size_t n, const mgrid_comm_spec *spec, int64_t done) {
  size_t next = n;
  for (size_t i = 0; i < n; i++)
    if (is_mpis(&spec[i]) && spec[i].turn > done && (next == n || spec[i].turn < spec[next].turn)) next = i;
  return next;
}

/* All ranks make the groups of one turn after another; those in none of them take part. They agree on the next turn, and so
** also notice before it who is missing. */
static mgrid_outcome create_together(mpi_backend *m, size_t n, const mgrid_comm_spec *spec, void **native,
                                     mgrid_error *err) {
  const int32_t         nobody = 0;
  const mgrid_comm_spec others = { .name = "groups of other ranks", .ranks = &nobody };
  mgrid_status          s = MGRID_OK;
  for (int64_t done = -1; s != MGRID_LOST_RANK;) {
    size_t       next = find_next(n, spec, done);
    uint64_t     own = next < n ? (uint64_t)spec[next].turn : UINT64_MAX, turn = own;
    mgrid_status met = mgrid_mpi_allreduce(&m->base, &turn, 1, s ? NULL : err);
    if (met || turn == UINT64_MAX) return s ? s : met;
    done = (int64_t)turn;
    mgrid_watch_begin(m);
    MPI_Comm     none;
    mgrid_status one = own == turn ? keep_one(m, &spec[next], &native[next], s ? NULL : err)
                                   : create_one(m, &others, &none, s ? NULL : err);
    mgrid_watch_through(m);
    if (!s) s = one;
  }
  return s;
}

/* Create in sequence: each is three rounds of messages among its members. MPI_Comm_idup for equal members, threads and
** another order were not faster (scripts/README.md). After an error create the rest all the same, because other members
** wait in them. The verdict then undoes all. */
mgrid_outcome mgrid_mpi_create(mgrid_backend *b, size_t n, const mgrid_comm_spec *spec, void **native,
                               mgrid_error *err) {
  mpi_backend *m = (mpi_backend *)b;
  mgrid_status s = MGRID_OK;
  if (m->survives) return create_together(m, n, spec, native, err);
  if (find_next(n, spec, -1) < n) mgrid_watch_begin(m);
  for (size_t i = 0; i < n; i++) {
    if (!is_mpis(&spec[i])) continue;
    mgrid_status one = keep_one(m, &spec[i], &native[i], s ? NULL : err);
    if (!s) s = one;
  }
  mgrid_watch_through(m);
  return s;
}
