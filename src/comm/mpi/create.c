/* SPDX-License-Identifier: MIT
**
** create.c - communicators of MPI, created by their members alone (MPI_Comm_create_group) on our duplicate of the
** host's. All ranks have met when they agreed, so each goes from creation to creation without another meeting; a watch
** (watchdog.c) looks at the clock meanwhile, because MPI has no creation that does not block.
*/
#include "comm/mpi/mpi.h"

#include <inttypes.h>
#include <stdlib.h>

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

static mgrid_status create_one(mpi_backend *m, const mgrid_comm_spec *spec, MPI_Comm *made, mgrid_error *err) {
  MPI_Group   group;
  MPI_Comm    comm = MPI_COMM_NULL;
  const char *call = "MPI_Group_incl";
  int         rc = MPI_Group_incl(m->members, (int)spec->size, spec->ranks, &group);
  mgrid_watch_enter(m, spec);
  if (!rc) {
    call = "MPI_Comm_create_group";
    int tag = MGRID_TAGS + spec->tag % (32768 - MGRID_TAGS);
    rc = MPI_Comm_create_group(m->comm, group, tag, &comm);
    MPI_Group_free(&group);
  }
  if (!rc && comm != MPI_COMM_NULL && spec->options->shape) {
    call = "MPI_Cart_create";
    rc = attach_shape(spec->options->shape, &comm);
  }
  mgrid_watch_enter(m, NULL);
  if (rc) return mgrid_mpi_failed(err, rc, call, spec->name);
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

/* Create one, and remember it; without memory, too, because other members wait in it. */
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

/* The others have MPI_COMM_SELF, if there is one. */
bool mgrid_mpi_wants_single(const mgrid_backend *b, const mgrid_choice *c) {
  bool all = ((const mpi_backend *)b)->sessions;
  return !c->none && (all || c->asked.single || c->asked.unique || c->shape || c->lane > 0);
}

/* MPI_Comm_create_group with one member waits for nobody. A duplicate of MPI_COMM_SELF would call the host's attribute
** functions, and a host with sessions has none. */
mgrid_status mgrid_mpi_single(mgrid_backend *b, const mgrid_comm_spec *spec, void **native, mgrid_error *err) {
  mgrid_status s = mgrid_mpi_usable((mpi_backend *)b, err);
  if (!s) s = b->ops->check(b, 1, spec, err);
  return s ? s : keep_one((mpi_backend *)b, spec, native, err);
}

/* One after the other: each is three rounds of messages among its members. MPI_Comm_idup for equal members, threads, and
** another order were not faster: see scripts/README.md. After an error the others are made all the same, because their
** members wait in them: without memory, too. The verdict then undoes all. */
mgrid_outcome mgrid_mpi_create(mgrid_backend *b, size_t n, const mgrid_comm_spec *spec, void **native,
                               mgrid_error *err) {
  mpi_backend *m = (mpi_backend *)b;
  mgrid_status s = MGRID_OK;
  if (n > 0) mgrid_watch_begin(m);
  for (size_t i = 0; i < n; i++) {
    mgrid_status one = keep_one(m, &spec[i], &native[i], s ? NULL : err);
    if (!s) s = one;
  }
  mgrid_watch_through(m);
  return s;
}
