/* SPDX-License-Identifier: MIT
**
** create.c - create all NCCL communicators of a rank at once. First send the ids, in schedule
** order; then begin every creation without waiting (config.blocking = 0) and poll until all are done,
** one has failed, or a deadline has passed. A rank that gives up tells the other members of its
** unfinished communicators, so that they give up at once.
*/
#include "comm/nccl/nccl.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

/* One creation in progress. */
typedef struct flight {
  const mgrid_comm_spec *spec; /* NULL: not made by NCCL here */
  nccl_comm             *made;
  ncclUniqueId          *ids;
  int                    nids;
  ncclConfig_t           config;
  bool                   begun, done;
} flight;

/* "4 ranks: 0 2 4 6", "1024 ranks: 0 1 2 3 4 5 6 ... 1023" */
static void members_text(const mgrid_comm_spec *spec, char *text, size_t size) {
  enum { SHOWN = 8 };
  size_t len = (size_t)snprintf(text, size, "%" PRId64 " ranks:", spec->size);
  for (int64_t i = 0; i < spec->size; i++) {
    if (spec->size > SHOWN && i == SHOWN - 1) {
      len += (size_t)snprintf(text + len, size - len, " ...");
      i = spec->size - 1;
    }
    len += (size_t)snprintf(text + len, size - len, " %" PRId32, spec->ranks[i]);
  }
}

static mgrid_status too_late(const nccl_backend *n, const mgrid_comm_spec *spec, mgrid_error *err) {
  char members[160];
  members_text(spec, members, sizeof members);
  return mgrid_fail(err, MGRID_TIMED_OUT,
                    "nccl: %s was not made within %g seconds: rank %" PRId64 " of it waits for some of its "
                    "%s",
                    spec->name, mgrid_nccl_patience(n, spec), n->base.rank, members);
}

/* ---------------------------------------------------------------------- begin */

static mgrid_outcome prepare(nccl_backend *n, const mgrid_comm_spec *spec, flight *f, mgrid_error *err) {
  f->spec = spec;
  mgrid_outcome s = mgrid_nccl_new(n, spec, &f->made, &f->config, err);
  double        left = n->begun + mgrid_nccl_patience(n, spec) - mgrid_now();
  return s ? s : mgrid_nccl_ids(n, spec, left > 0.1 ? left : 0.1, &f->ids, &f->nids, err);
}

static ncclResult_t init(const nccl_library *lib, flight *f, ncclComm_t *comm) {
  const mgrid_comm_spec *spec = f->spec;
  if (f->nids > 1)
    return lib->CommInitRankScalable(comm, (int)spec->size, (int)spec->position, f->nids, f->ids, &f->config);
  return lib->CommInitRankConfig(comm, (int)spec->size, f->ids[0], (int)spec->position, &f->config);
}

static mgrid_status begin(nccl_backend *n, flight *f, mgrid_error *err) {
  ncclResult_t r = init(&n->lib, f, &f->made->comm);
  f->begun = f->made->comm != NULL;
  if (r == ncclSuccess || r == ncclInProgress) return MGRID_OK;
  return mgrid_nccl_failed(n, err, r, f->nids > 1 ? "ncclCommInitRankScalable" : "ncclCommInitRankConfig",
                           f->spec->name);
}

/* ----------------------------------------------------------- blocking = 1, on demand
** They are made in one NCCL group, whose end waits for all of them. The thread gets copies, because it
** may outlive the call. */

typedef struct blocking_job {
  size_t n;
  flight f[]; /* [n] */
} blocking_job;

static ncclResult_t run_blocking(const nccl_library *lib, void *ud) {
  blocking_job *job = ud;
  ncclResult_t  r = lib->GroupStart(), end;
  for (size_t i = 0; i < job->n && r == ncclSuccess; i++) r = init(lib, &job->f[i], &job->f[i].made->comm);
  end = lib->GroupEnd();
  return r == ncclSuccess ? end : r;
}

static void free_job(blocking_job *job) {
  for (size_t i = 0; i < job->n; i++) free(job->f[i].ids);
  free(job);
}

static mgrid_outcome create_blocking(nccl_backend *n, size_t nflights, flight *f, mgrid_error *err) {
  blocking_job *job = calloc(1, sizeof *job + nflights * sizeof job->f[0]);
  double        seconds = 0;
  if (!job) return mgrid_oom(err);
  for (size_t i = 0; i < nflights; i++) {
    if (!f[i].spec || !f[i].made->blocking) continue;
    flight *mine = &job->f[job->n++];
    *mine = f[i];
    f[i].ids = NULL; /* freed with the copy */
    if (mgrid_nccl_patience(n, f[i].spec) > seconds) seconds = mgrid_nccl_patience(n, f[i].spec);
  }
  if (job->n == 0) {
    free_job(job);
    return MGRID_OK;
  }
  bool          left_behind;
  double        left = n->begun + seconds - mgrid_now();
  mgrid_outcome s = mgrid_nccl_watch(n, left > 0.1 ? left : 0.1, true, run_blocking, job, "the creation",
                                     job->f[0].spec->name, &left_behind, err);
  for (size_t i = 0; i < nflights; i++) {
    if (!f[i].spec || !f[i].made->blocking) continue;
    if (left_behind)
      f[i].made = NULL; /* leaked: the thread may still write there */
    else
      f[i].begun = f[i].made->comm != NULL, f[i].done = s == MGRID_OK;
  }
  if (!left_behind) free_job(job);
  return s;
}

/* ----------------------------------------------------------------------- wait */

typedef struct flights {
  nccl_backend *n;
  size_t        count;
  flight       *at; /* [count] */
  mgrid_error  *err;
} flights;

/* mgrid_look: poll all creations, each with its own deadline. */
static mgrid_outcome in_flight(void *ud) {
  const flights *all = ud;
  nccl_backend  *n = all->n;
  size_t         left = 0;
  for (flight *f = all->at; f < all->at + all->count; f++) {
    if (!f->begun || f->done) continue;
    ncclResult_t state = ncclSuccess, r = n->lib.CommGetAsyncError(f->made->comm, &state);
    if (r != ncclSuccess) return mgrid_nccl_failed(n, all->err, r, "ncclCommGetAsyncError", f->spec->name);
    if (state != ncclSuccess && state != ncclInProgress)
      return mgrid_nccl_failed(n, all->err, state, "creation", f->spec->name);
    f->done = state == ncclSuccess;
    if (f->done) continue;
    if (mgrid_now() - n->begun > mgrid_nccl_patience(n, f->spec)) return too_late(n, f->spec, all->err);
    left++;
  }
  return left ? MGRID_NOT_YET : MGRID_OK;
}

/* Wait for all creations that have begun. */
static mgrid_outcome wait_all(nccl_backend *n, size_t count, flight *f, mgrid_error *err) {
  int64_t       who;
  flights       all = { n, count, f, err };
  mgrid_outcome outcome = mgrid_wait(in_flight, &all, INFINITY, n->carrier, &who);
  return outcome == MGRID_GAVE_UP ? mgrid_nccl_gave_up(who, err) : outcome;
}

/* ---------------------------------------------------------------------- create */

/* mgrid_look */
static mgrid_outcome never(void *ud) {
  (void)ud;
  return MGRID_NOT_YET;
}

/* A creation may have failed here because another rank gave up and its notice has not arrived yet. So a rank
** that fails listens for a moment before it tells others. If no notice arrives, it is the one that failed
** first. */
static mgrid_outcome whose_failure(nccl_backend *n, mgrid_outcome s) {
  const double listen = 0.1;
  int64_t      who;
  if (s / 100 != MGRID_BACKEND / 100) return s;
  return mgrid_wait(never, NULL, mgrid_now() + listen, n->carrier, &who) == MGRID_GAVE_UP ? MGRID_GAVE_UP : s;
}

/* Tell the members of all unfinished creations, also of those not begun here, because they may wait there.
** Tell all before the first abort, because a member may notice an abort sooner than a notice. */
static void give_up(nccl_backend *n, size_t nspecs, const mgrid_comm_spec *spec, flight *f) {
  for (size_t i = 0; i < nspecs; i++)
    if (mgrid_nccl_makes(spec[i].backend) && !f[i].done) mgrid_nccl_tell(n, &spec[i]);
  for (size_t i = 0; i < nspecs; i++) {
    if (f[i].made && f[i].made->stream) n->lib.cudaStreamDestroy(f[i].made->stream);
    if (f[i].made && f[i].made->comm) n->lib.CommAbort(f[i].made->comm);
    mgrid_nccl_drop(f[i].made);
    f[i].made = NULL;
  }
}

/* The groups whose families ask for the carrier, in schedule order. Create them even after a failure: MPI has
** no deadline, and other members would wait for ever. */
static mgrid_outcome create_carried(nccl_backend *n, size_t nspecs, const mgrid_comm_spec *spec, void **native,
                                    mgrid_error *err) {
  mgrid_outcome s = MGRID_OK;
  for (size_t i = 0; i < nspecs; i++) {
    if (spec[i].size == 0 || mgrid_nccl_makes(spec[i].backend)) continue;
    mgrid_outcome one = n->carrier->ops->create(n->carrier, 1, &spec[i], &native[i], s ? NULL : err);
    if (!s) s = one;
  }
  return s;
}

mgrid_outcome mgrid_nccl_create(mgrid_backend *b, size_t nspecs, const mgrid_comm_spec *spec, void **native,
                                mgrid_error *err) {
  nccl_backend *n = (nccl_backend *)b;
  mgrid_error   why = MGRID_ERROR_INIT;
  n->carry->phase(n->carrier, 2 * b->epoch); /* even: creation; odd: use */
  n->begun = mgrid_now();
  n->after = true;
  if (b->whole) {
    mgrid_outcome carried = create_carried(n, nspecs, spec, native, &why);
    mgrid_outcome split = mgrid_nccl_split_all(n, nspecs, spec, native, carried ? NULL : &why);
    if (carried || split) mgrid_error_pass(err, &why);
    return carried ? carried : split;
  }
  flight       *f = calloc(nspecs + 1, sizeof *f);
  mgrid_outcome s = f ? MGRID_OK : mgrid_oom(&why);
  cudaError_t   e = n->lib.cudaSetDevice(n->device); /* the trainer may have set another device in this thread */
  if (e != cudaSuccess && !s) s = mgrid_cuda_failed(n, &why, e, "cudaSetDevice", "");
  for (size_t i = 0; i < nspecs && !s; i++)
    if (mgrid_nccl_makes(spec[i].backend)) s = prepare(n, &spec[i], &f[i], &why);
  mgrid_outcome carried = create_carried(n, nspecs, spec, native, s ? NULL : &why);
  if (!s) s = carried;
  bool alone = s != MGRID_OK; /* failed before any call of NCCL, so no other rank caused it */
  for (size_t i = 0; i < nspecs && !s; i++) {
    if (!f[i].spec || f[i].made->blocking) continue;
    s = begin(n, &f[i], &why);
  }
  if (!s) s = wait_all(n, nspecs, f, &why);
  if (!s) s = create_blocking(n, nspecs, f, &why);
  for (size_t i = 0; i < nspecs && !s; i++)
    if (f[i].spec) s = mgrid_nccl_finish(n, f[i].spec, f[i].made, &why);
  if (!alone) s = whose_failure(n, s);
  if (s && f) give_up(n, nspecs, spec, f);
  for (size_t i = 0; f && i < nspecs; i++) {
    free(f[i].ids);
    if (s || !f[i].made) continue;
    mgrid_nccl_keep(n, f[i].made);
    native[i] = f[i].made;
  }
  free(f);
  if (s) mgrid_error_pass(err, &why);
  return s;
}
