/* SPDX-License-Identifier: MIT
**
** communicators.c - creates, proves and destroys the communicators of groups. The members of a
** group alone create its communicator, on the library's duplicate (MPI_Comm_create_group). All
** ranks have just agreed, so there is no rendezvous between creations; watchdog.c watches the
** deadline in a thread. Where MPI survives losses, all ranks create together (MPI_Comm_create),
** because in Open MPI 5.0.11 nothing ends the wait for a lost member in MPI_Comm_create_group.
** Errors never end the job: a group's communicator has MPI_ERRORS_RETURN during a call of the
** library, and the host's handler otherwise.
*/
#include "comm/mpi/mpi.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------------ create */

/* Return how many communicators this backend may have. MPI numbers its communicators, and some
** versions hang when the numbers run out, so mgrid_mpi_check refuses earlier. The limits leave some
** numbers for the host and for other backends. */
static int64_t communicators_most_of(const mpi_backend *m) {
#ifdef OPEN_MPI
  const int64_t library = 65000; /* 16 bits */
#else
  const int64_t library = 1900; /* MPICH has 2048 */
#endif
  return m->most > 0 ? m->most : library;
}

mgrid_status mgrid_mpi_check(mgrid_backend *b, size_t n, const mgrid_comm_spec *spec,
                             mgrid_error *err) {
  for (size_t i = 0; i < n; i++)
    if (spec[i].backend->native != MGRID_NATIVE_MPI)
      return mgrid_fail(err, MGRID_REFUSED,
                        "%s needs the backend '%s', and this job runs on mpi alone; start it with "
                        "--backend %s, or open that backend",
                        spec[i].name, spec[i].backend->name, spec[i].backend->name);
  int64_t here = ((mpi_backend *)b)->made, most = communicators_most_of((mpi_backend *)b);
  if (here + (int64_t)n <= most) return MGRID_OK;
  return mgrid_fail(err, MGRID_LIMIT,
                    "mpi: this rank has %" PRId64
                    " communicators and needs %zu more; MPI numbers at most %" PRId64
                    " of ours; free a state first, or share groups",
                    here, n, most);
}

/* Replace a communicator by one with the Cartesian topology of its family. MPI lists the slowest
** dim first. Ranks keep their order. */
static int attach_shape(const mgrid_shape *shape, MPI_Comm *comm) {
  int dims[MGRID_DIMS_MAX], periods[MGRID_DIMS_MAX];
  MPI_Comm plain = *comm;
  for (int i = 0; i < shape->n; i++) {
    const mgrid_side *side = &shape->side[shape->n - 1 - i];
    dims[i] = (int)side->size;
    periods[i] = side->periodic;
  }
  int rc = MPI_Cart_create(plain, shape->n, dims, periods, 0, comm);
  return rc ? rc : MPI_Comm_free(&plain);
}

/* Create a communicator. If spec->size is 0, only take part in the call; then *made is not set. */
static mgrid_status create_one(mpi_backend *m, const mgrid_comm_spec *spec, MPI_Comm *made,
                               mgrid_error *err) {
  const bool together = m->survives && spec->size != 1;
  MPI_Group group;
  MPI_Comm comm = MPI_COMM_NULL;
  const char *call = "MPI_Group_incl",
             *creates = together ? "MPI_Comm_create" : "MPI_Comm_create_group";
  int rc = MPI_Group_incl(m->members, (int)spec->size, spec->ranks, &group);

  mgrid_watch_enter(m, spec, creates);
  if (!rc) {
    call = creates;
    int tag = MGRID_TAGS + spec->tag % (32768 - MGRID_TAGS);
    rc = together ? MPI_Comm_create(m->comm, group, &comm)
                  : MPI_Comm_create_group(m->comm, group, tag, &comm);
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
    return mgrid_fail(err, MGRID_BACKEND, "mpi: %s gave rank %" PRId64 " no communicator",
                      spec->name, m->base.rank);
  char name[MPI_MAX_OBJECT_NAME];
  snprintf(name, sizeof name, "%.*s", MPI_MAX_OBJECT_NAME - 1, spec->name);
  MPI_Comm_set_name(comm, name);
  MPI_Comm_set_errhandler(comm, m->handler);
  *made = comm;
  return MGRID_OK;
}

int mgrid_mpi_keeps(MPI_Comm comm, int key, void *box, void *backend) {
  const mpi_backend *m = backend;
  char name[MPI_MAX_OBJECT_NAME] = "";
  int len;
  (void)key;
  if (((const mpi_comm *)box)->ends) return MPI_SUCCESS;
  MPI_Comm_get_name(comm, name, &len);
  mgrid_log(&m->base.hooks, MGRID_LOG_WARN,
            "mpi: MPI_Comm_free of %s, which is borrowed: mgrid_state_free frees it with its state",
            name);
  return MPI_ERR_COMM;
}

/* Create a communicator and its mpi_comm. If there is no memory for the mpi_comm, create the
** communicator even so, because other members wait in the call; then free it. */
static mgrid_status keep_one(mpi_backend *m, const mgrid_comm_spec *spec, void **native,
                             mgrid_error *err) {
  mpi_comm here = { .comm = MPI_COMM_NULL }, *box = calloc(1, sizeof *box);
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

/* Return whether a group of one rank gets a communicator of its own. Otherwise it uses
** MPI_COMM_SELF, which does not exist with sessions. */
bool mgrid_mpi_wants_single(const mgrid_backend *b, const mgrid_choice *c) {
  bool all = ((const mpi_backend *)b)->sessions;
  return !c->none && (all || c->asked.single || c->asked.unique || c->shape || c->lane > 0);
}

/* Make the communicator of a group of one rank. MPI_Comm_create_group with one member waits for no
** other rank. A duplicate of MPI_COMM_SELF will not do: it would call the host's attribute
** functions, and a host with sessions has no MPI_COMM_SELF. */
mgrid_status mgrid_mpi_single(mgrid_backend *b, const mgrid_comm_spec *spec, void **native,
                              mgrid_error *err) {
  mgrid_status s = mgrid_mpi_usable((mpi_backend *)b, err);
  if (!s) s = b->ops->check(b, 1, spec, err);
  return s ? s : keep_one((mpi_backend *)b, spec, native, err);
}

/* Return whether MPI makes this communicator; if not, a backend over this one does. */
static bool is_mpis(const mgrid_comm_spec *spec) {
  return spec->size > 0 && spec->backend->native == MGRID_NATIVE_MPI;
}

/* Of the communicators that MPI makes, return the index of the one with the lowest turn after
** `done`. n: there is none. */
static size_t find_next(size_t n, const mgrid_comm_spec *spec, int64_t done) {
  size_t next = n;
  for (size_t i = 0; i < n; i++)
    if (is_mpis(&spec[i]) && spec[i].turn > done && (next == n || spec[i].turn < spec[next].turn))
      next = i;
  return next;
}

/* All ranks create the communicators of one turn together, then those of the next. A rank without a
** group in a turn still takes part. Before each turn the ranks agree which turn is next; so they
** also notice missing ranks. */
static mgrid_outcome create_together(mpi_backend *m, size_t n, const mgrid_comm_spec *spec,
                                     void **native, mgrid_error *err) {
  const int32_t nobody = 0;
  const mgrid_comm_spec others = { .name = "groups of other ranks", .ranks = &nobody };
  mgrid_status s = MGRID_OK;
  for (int64_t done = -1; s != MGRID_LOST_RANK;) {
    size_t next = find_next(n, spec, done);
    uint64_t own = next < n ? (uint64_t)spec[next].turn : UINT64_MAX, turn = own;
    mgrid_status met = mgrid_mpi_allreduce(&m->base, &turn, 1, s ? NULL : err);
    if (met || turn == UINT64_MAX) return s ? s : met;
    done = (int64_t)turn;
    mgrid_watch_begin(m);
    MPI_Comm none;
    mgrid_status one = own == turn ? keep_one(m, &spec[next], &native[next], s ? NULL : err)
                                   : create_one(m, &others, &none, s ? NULL : err);
    mgrid_watch_through(m);
    if (!s) s = one;
  }
  return s;
}

/* Create one communicator after the other. Each creation takes three rounds of messages among its
** members. Three alternatives were not faster: MPI_Comm_idup for equal members, threads, and
** another order (scripts/lab/costs.md). After an error, create the others even so, because other
** members wait in these calls; after the verdict all are destroyed. */
mgrid_outcome mgrid_mpi_create(mgrid_backend *b, size_t n, const mgrid_comm_spec *spec,
                               void **native, mgrid_error *err) {
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

void mgrid_mpi_destroy(mgrid_backend *b, size_t n, void **native) {
  bool gone = !mgrid_mpi_there((mpi_backend *)b);
  for (size_t i = 0; i < n; i++) {
    mpi_comm *c = native[i];
    if (!c) continue;
    ((mpi_backend *)b)->made--;
    c->ends = true;
    /* MPI may still use the communicator, whose attribute points to *c */
    bool stays = !gone && (((mpi_backend *)b)->broken || c->stuck);
    if (!gone && !stays) MPI_Comm_free(&c->comm);
    if (!stays) free(c);
  }
}

/* ------------------------------------------------------------------- prove */

/* Keep the first failure. The caller goes on, because other members wait in later calls. */
static void communicators_keep(mgrid_status *s, mgrid_error *err, const mgrid_comm_spec *spec,
                               int rc, const char *call) {
  if (rc && !*s) *s = mgrid_mpi_failed(err, rc, call, spec->name);
}

/* Check the Cartesian topology: dims, periods, and this rank's coordinates. */
static mgrid_status prove_shape(const mgrid_comm_spec *spec, MPI_Comm comm, mgrid_error *err) {
  const mgrid_shape *shape = spec->options->shape;
  int dims[MGRID_DIMS_MAX], periods[MGRID_DIMS_MAX], coords[MGRID_DIMS_MAX], kind = MPI_UNDEFINED,
                                                                             n = 0;
  mgrid_status s = MGRID_OK;

  if (!shape) return s;
  communicators_keep(&s, err, spec, MPI_Topo_test(comm, &kind), "MPI_Topo_test");
  if (!s && kind == MPI_CART)
    communicators_keep(&s, err, spec, MPI_Cartdim_get(comm, &n), "MPI_Cartdim_get");
  if (!s && n != shape->n)
    s = mgrid_fail(err, MGRID_UNPROVED, "mpi: %s has a Cartesian topology of %d dims, not %d",
                   spec->name, n, shape->n);
  if (!s)
    communicators_keep(&s, err, spec, MPI_Cart_get(comm, n, dims, periods, coords), "MPI_Cart_get");
  for (int i = 0; i < n && !s; i++) {
    const mgrid_side *side = &shape->side[n - 1 - i];
    int64_t at = mgrid_shape_coord(shape, spec->position, n - 1 - i);
    if (dims[i] != side->size || !periods[i] != !side->periodic || coords[i] != at)
      s = mgrid_fail(err, MGRID_UNPROVED,
                     "mpi: in %s dim '%s' is %d of %d%s instead of %" PRId64 " of %" PRId64 "%s",
                     spec->name, side->name, coords[i], dims[i], periods[i] ? ", periodic," : "",
                     at, side->size, side->periodic ? ", periodic" : "");
  }
  return s;
}

/* A proof in progress; its first failure is kept. */
typedef struct proving {
  mpi_backend *m;
  const mgrid_comm_spec *spec;
  mpi_comm *c;
  double until; /* a quarter of the deadline stays for the verdict */
  mgrid_status s;
  mgrid_error *err;
} proving;

/* Wait for a call that was started. Return false if it did not end: then no other call on this
** communicator may follow. After any other failure the proof goes on, because other members wait in
** its calls. */
static bool ended(proving *p, mpi_request call, const char *name) {
  double left = p->until - mgrid_now(), least = p->m->seconds / 16;
  mgrid_status s = call.rc ? mgrid_mpi_failed(NULL, call.rc, name, "")
                           : mgrid_mpi_finish_group(p->m, p->spec, p->c, call,
                                                    left > least ? left : least, name,
                                                    p->s ? NULL : p->err);
  if (call.rc) communicators_keep(&p->s, p->err, p->spec, call.rc, name);
  if (s && !p->s) p->s = s;
  return !p->c->stuck;
}

/* By an all-to-all, each member sends to each other member its own rank, and the position that it
** believes the other has. */
static void prove_pairs(proving *p, mpi_proof *d, int size) {
  const mgrid_comm_spec *spec = p->spec;
  mpi_request call = { 0 };
  for (int i = 0; i < size; i++) d->to[2 * i] = d->mine, d->to[2 * i + 1] = i;
  memset(d->from, -1, sizeof d->from);
  call.rc =
      MPI_Ialltoall(d->to, 2, MPI_INT32_T, d->from, 2, MPI_INT32_T, p->c->comm, &call.request);
  if (!ended(p, call, "MPI_Ialltoall")) return;
  for (int i = 0; i < size && !p->s; i++)
    if (d->from[2 * i] != spec->ranks[i] || d->from[2 * i + 1] != spec->position)
      p->s = mgrid_fail(p->err, MGRID_UNPROVED,
                        "mpi: the all-to-all of %s brought rank %" PRId32 " what rank %" PRId32
                        " sent position %" PRId32,
                        spec->name, d->mine, d->from[2 * i], d->from[2 * i + 1]);
}

/* Check members and order, a broadcast from every position, a sum, a ring in group order, an
** all-to-all (of up to MGRID_PAIRS_MAX ranks), and the topology. */
static void communicators_prove(proving *p, mpi_proof *d) {
  const mgrid_comm_spec *spec = p->spec;
  MPI_Comm comm = p->c->comm;
  mgrid_error *err = p->err;
  mpi_request call = { 0 };
  int rank = -1, size = 0;

  communicators_keep(&p->s, err, spec, MPI_Comm_rank(comm, &rank), "MPI_Comm_rank");
  communicators_keep(&p->s, err, spec, MPI_Comm_size(comm, &size), "MPI_Comm_size");
  if (!p->s && (rank != spec->position || size != spec->size))
    p->s = mgrid_fail(err, MGRID_UNPROVED,
                      "mpi: %s made rank %" PRId64 " %d of %d instead of %" PRId64 " of %" PRId64,
                      spec->name, p->m->base.rank, rank, size, spec->position, spec->size);
  d->mine = (int32_t)p->m->base.rank, d->before = d->sent = -1, d->sum = p->m->base.rank;
  long long want = 0;
  for (int64_t i = 0; i < spec->size; i++) want += spec->ranks[i];
  for (int root = 0; root < size; root++) { /* each member broadcasts its rank */
    d->sent = rank == root ? d->mine : -1;
    call.rc = MPI_Ibcast(&d->sent, 1, MPI_INT32_T, root, comm, &call.request);
    if (!ended(p, call, "MPI_Ibcast")) return;
    if (!p->s && d->sent != spec->ranks[root])
      p->s = mgrid_fail(err, MGRID_UNPROVED,
                        "mpi: position %d of %s is rank %" PRId32 ", not %" PRId32, root,
                        spec->name, d->sent, spec->ranks[root]);
  }
  call.rc = MPI_Iallreduce(MPI_IN_PLACE, &d->sum, 1, MPI_LONG_LONG, MPI_SUM, comm, &call.request);
  if (!ended(p, call, "MPI_Iallreduce")) return;
  if (!p->s && d->sum != want)
    p->s = mgrid_fail(err, MGRID_UNPROVED, "mpi: the ranks of %s sum to %lld, not %lld", spec->name,
                      d->sum, want);
  if (size > 0) {
    mpi_request sent = { 0 };
    call.rc =
        MPI_Irecv(&d->before, 1, MPI_INT32_T, (rank + size - 1) % size, 0, comm, &call.request);
    sent.rc = MPI_Isend(&d->mine, 1, MPI_INT32_T, (rank + 1) % size, 0, comm, &sent.request);
    if (!ended(p, call, "MPI_Irecv") || !ended(p, sent, "MPI_Isend")) return;
    if (!p->s && d->before != spec->ranks[(rank + size - 1) % size])
      p->s = mgrid_fail(err, MGRID_UNPROVED, "mpi: the ring of %s brought rank %" PRId32,
                        spec->name, d->before);
  }
  if (size <= MGRID_PAIRS_MAX) prove_pairs(p, d, size);
  if (p->c->stuck) return;
  if (!p->s) p->s = prove_shape(spec, comm, err);
}

mgrid_outcome mgrid_mpi_prove(mgrid_backend *b, const mgrid_comm_spec *spec, void *native,
                              mgrid_error *err) {
  mpi_backend *m = (mpi_backend *)b;
  mpi_comm *c = native;
  proving p = { m, spec, c, mgrid_now() + m->seconds * 3 / 4, mgrid_mpi_usable(m, err), err };
  mpi_proof *d = malloc(sizeof *d);
  if (p.s || m->hurry) return free(d), p.s; /* hurry: an earlier proof of this state did not end */
  MPI_Errhandler was = mgrid_mpi_quiet(c->comm);
  communicators_prove(&p, d ? d : &m->spare);
  mgrid_mpi_restore(c->comm, was);
  if (!c->stuck) free(d);
  return p.s;
}
