/* SPDX-License-Identifier: MIT
**
** create.c - all NCCL communicators of a rank at once. First the ids, in schedule order; then
** every creation is begun without waiting (config.blocking = 0) and looked at until all are
** done, or one has failed, or its time is over. Whoever gives up tells the other members of
** what is not done, who give up at once instead of waiting for their own clocks.
*/
#include "comm/nccl/nccl.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

double mgrid_nccl_patience(const nccl_backend *n, const mgrid_comm_spec *spec) {
  return spec->options->asked.timeout > 0 ? spec->options->asked.timeout : n->options.timeout;
}

/* One creation on its way. */
typedef struct flight {
  const mgrid_comm_spec *spec; /* NULL: not ours */
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
  return mgrid_fail(err, MGRID_BACKEND,
                    "nccl: %s was not made within %g seconds: rank %" PRId64 " of it waits for some of its "
                    "%s",
                    spec->name, mgrid_nccl_patience(n, spec), n->base.rank, members);
}

/* ---------------------------------------------------------------------- begin */

static mgrid_status prepare(nccl_backend *n, const mgrid_comm_spec *spec, flight *f, mgrid_error *err) {
  f->spec = spec;
  mgrid_status s = mgrid_nccl_new(n, spec, &f->made, &f->config, err);
  double       left = n->begun + mgrid_nccl_patience(n, spec) - mgrid_now();
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
** They are made in one NCCL group, whose end waits for all of them; flights are copies, because
** the thread may outlive the call. */

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

static mgrid_status create_blocking(nccl_backend *n, size_t nflights, flight *f, mgrid_error *err) {
  blocking_job *job = calloc(1, sizeof *job + nflights * sizeof job->f[0]);
  double        seconds = 0;
  if (!job) return mgrid_oom(err);
  for (size_t i = 0; i < nflights; i++) {
    if (!f[i].spec || !f[i].made->blocking) continue;
    flight *mine = &job->f[job->n++];
    *mine = f[i];
    f[i].ids = NULL; /* taken over */
    if (mgrid_nccl_patience(n, f[i].spec) > seconds) seconds = mgrid_nccl_patience(n, f[i].spec);
  }
  if (job->n == 0) {
    free_job(job);
    return MGRID_OK;
  }
  bool         left_behind;
  double       left = n->begun + seconds - mgrid_now();
  mgrid_status s = mgrid_nccl_watch(n, left > 0.1 ? left : 0.1, true, run_blocking, job, "the creation",
                                    job->f[0].spec->name, &left_behind, err);
  for (size_t i = 0; i < nflights; i++) {
    if (!f[i].spec || !f[i].made->blocking) continue;
    if (left_behind)
      f[i].made = NULL; /* the thread writes there */
    else
      f[i].begun = f[i].made->comm != NULL, f[i].done = s == MGRID_OK;
  }
  if (!left_behind) free_job(job);
  return s;
}

/* ----------------------------------------------------------------------- wait */

/* All that has begun, until it is done. */
static mgrid_status wait_all(nccl_backend *n, size_t nflights, flight *f, mgrid_error *err) {
  for (int look = 0;; look++) {
    size_t left = 0;
    for (size_t i = 0; i < nflights; i++) {
      if (!f[i].begun || f[i].done) continue;
      ncclResult_t state = ncclSuccess, r = n->lib.CommGetAsyncError(f[i].made->comm, &state);
      if (r != ncclSuccess) return mgrid_nccl_failed(n, err, r, "ncclCommGetAsyncError", f[i].spec->name);
      if (state != ncclSuccess && state != ncclInProgress)
        return mgrid_nccl_failed(n, err, state, "creation", f[i].spec->name);
      f[i].done = state == ncclSuccess;
      if (f[i].done) continue;
      if (mgrid_now() - n->begun > mgrid_nccl_patience(n, f[i].spec)) return too_late(n, f[i].spec, err);
      left++;
    }
    if (left == 0) return MGRID_OK;
    int64_t who = n->host->ops->heard(n->host);
    if (who >= 0) {
      mgrid_fail(err, MGRID_BACKEND, "nccl: rank %" PRId64 " gave up", who);
      return MGRID_GAVE_UP;
    }
    mgrid_pause(look);
  }
}

mgrid_status mgrid_nccl_finish(nccl_backend *n, const mgrid_comm_spec *spec, nccl_comm *made, mgrid_error *err) {
  const nccl_library *lib = &n->lib;
  int                 count = -1, rank = -1, device = -1, low = 0, high = 0;
  ncclResult_t        r = lib->CommCount(made->comm, &count);
  if (r == ncclSuccess) r = lib->CommUserRank(made->comm, &rank);
  if (r == ncclSuccess) r = lib->CommCuDevice(made->comm, &device);
  if (r != ncclSuccess) return mgrid_nccl_failed(n, err, r, "ncclCommCount", spec->name);
  if (count != spec->size || rank != spec->position || device != n->device)
    return mgrid_fail(err, MGRID_BACKEND,
                      "nccl: %s made rank %" PRId64 " %d of %d on GPU %d instead of %" PRId64 " of %" PRId64
                      " on GPU %d",
                      spec->name, n->base.rank, rank, count, device, spec->position, spec->size, n->device);
  cudaError_t e = lib->cudaDeviceGetStreamPriorityRange(&low, &high);
  if (e == cudaSuccess)
    e = lib->cudaStreamCreateWithPriority(&made->stream, cudaStreamNonBlocking,
                                          spec->options->asked.high_priority ? high : low);
  return e == cudaSuccess ? MGRID_OK : mgrid_cuda_failed(n, err, e, "cudaStreamCreateWithPriority", spec->name);
}

void mgrid_nccl_keep(nccl_backend *n, nccl_comm *made) {
  made->next = n->made;
  n->made = made;
  n->bytes += made->bytes;
}

/* ---------------------------------------------------------------------- create */

void mgrid_nccl_tell(nccl_backend *n, const mgrid_comm_spec *spec) {
  for (int64_t p = 0; p < spec->size; p++) n->host->ops->tell(n->host, spec->ranks[p]);
}

/* A creation that failed may have failed because another rank gave up, and the word of that is
** still on its way. Who fails listens before telling, so that the first of all hears nothing. */
static mgrid_status whose_failure(nccl_backend *n, mgrid_status s) {
  const double listen = 0.1, until = mgrid_now() + listen;
  for (int look = 0; s == MGRID_BACKEND && mgrid_now() < until; look++) {
    if (n->host->ops->heard(n->host) >= 0) return MGRID_GAVE_UP;
    mgrid_pause(look);
  }
  return s;
}

/* Whoever may wait for us in anything that is not done is told, also where we have not begun: all
** before the first is aborted, which others may notice sooner than a word. */
static void give_up(nccl_backend *n, size_t nspecs, const mgrid_comm_spec *spec, flight *f) {
  for (size_t i = 0; i < nspecs; i++)
    if (strcmp(spec[i].backend, "nccl") == 0 && !f[i].done) mgrid_nccl_tell(n, &spec[i]);
  for (size_t i = 0; i < nspecs; i++) {
    if (f[i].made && f[i].made->stream) n->lib.cudaStreamDestroy(f[i].made->stream);
    if (f[i].made && f[i].made->comm) n->lib.CommAbort(f[i].made->comm);
    mgrid_nccl_drop(f[i].made);
    f[i].made = NULL;
  }
}

/* The groups that their families want from the host backend, in schedule order. This may not be
** left out after a failure: MPI knows no deadline, and other members would wait for ever. */
static mgrid_status create_on_host(nccl_backend *n, size_t nspecs, const mgrid_comm_spec *spec, void **native,
                                   mgrid_error *err) {
  mgrid_status s = MGRID_OK;
  for (size_t i = 0; i < nspecs; i++) {
    if (spec[i].size == 0 || strcmp(spec[i].backend, "nccl") == 0) continue;
    mgrid_status one = n->host->ops->create(n->host, 1, &spec[i], &native[i], s ? NULL : err);
    if (!s) s = one;
  }
  return s;
}

mgrid_status mgrid_nccl_create(mgrid_backend *b, size_t nspecs, const mgrid_comm_spec *spec, void **native,
                               mgrid_error *err) {
  nccl_backend *n = (nccl_backend *)b;
  mgrid_error   why = { 0 };
  n->host->epoch = 2 * b->epoch; /* odd while communicators are used: words do not cross over */
  n->begun = mgrid_now();
  n->after = true;
  if (b->whole) {
    mgrid_status host = create_on_host(n, nspecs, spec, native, &why);
    mgrid_status split = mgrid_nccl_split_all(n, nspecs, spec, native, host ? NULL : &why);
    if ((host || split) && err) *err = why;
    return host ? host : split;
  }
  flight      *f = calloc(nspecs + 1, sizeof *f);
  mgrid_status s = f ? MGRID_OK : mgrid_oom(&why);
  cudaError_t  e = n->lib.cudaSetDevice(n->device); /* of this thread; the host may have another one */
  if (e != cudaSuccess && !s) s = mgrid_cuda_failed(n, &why, e, "cudaSetDevice", "");
  for (size_t i = 0; i < nspecs && !s; i++)
    if (strcmp(spec[i].backend, "nccl") == 0) s = prepare(n, &spec[i], &f[i], &why);
  mgrid_status on_host = create_on_host(n, nspecs, spec, native, s ? NULL : &why);
  if (!s) s = on_host;
  bool alone = s != MGRID_OK; /* what failed until here concerns nobody else */
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
  if (s && err) *err = why;
  return s;
}
