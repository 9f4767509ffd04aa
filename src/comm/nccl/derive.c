/* SPDX-License-Identifier: MIT
**
** derive.c - make communicators from others: split one that the host passed in, and shrink one that lost ranks
** (recover.c decides when). Both calls block if the older communicator is blocking, so they run in a thread (watch.c).
** Memory that NCCL may still write to is never freed.
*/
#include "comm/nccl/nccl.h"

#include <stdlib.h>
#include <string.h>

typedef struct derive_job { /* one call; leaked if it does not end, because its thread still uses it */
  ncclComm_t   from;
  int          color, key;   /* split */
  int          nlost, *lost; /* shrink: NCCL sorts the list in place */
  bool         refused;      /* shrink failed at once: the older communicator may point to memory that NCCL has freed */
  nccl_comm   *made;         /* NULL: this rank is not in any group of this split */
  ncclComm_t   nobody;
  ncclConfig_t config;
} derive_job;

static ncclResult_t run_split(const nccl_library *lib, void *ud) {
  derive_job *j = ud;
  if (!j->made) return lib->CommSplit(j->from, NCCL_SPLIT_NOCOLOR, 0, &j->nobody, NULL);
  return lib->CommSplit(j->from, j->color, j->key, &j->made->comm, &j->config);
}

static ncclResult_t run_shrink(const nccl_library *lib, void *ud) {
  derive_job  *j = ud;
  ncclResult_t r = lib->CommShrink(j->from, j->lost, j->nlost, &j->made->comm, &j->config, NCCL_SHRINK_ABORT);
  j->refused = r != ncclSuccess && r != ncclInProgress && !j->made->comm;
  return r;
}

/* Make the call, and wait three times: for the call; for the older communicator, because the new one exists only when
** nothing is in progress on the older; for the new one. */
static mgrid_outcome derive(nccl_backend *n, const mgrid_comm_spec *spec, derive_job *j,
                            ncclResult_t (*call)(const nccl_library *, void *), const char *what, bool listen,
                            bool *keep, mgrid_error *err) {
  nccl_comm     from = { .comm = j->from };
  double        seconds = mgrid_nccl_left(n, spec), until = mgrid_now() + seconds;
  mgrid_outcome s = mgrid_nccl_watch(n, seconds, listen, call, j, what, spec->name, keep, err);
  if (s) return s;
  s = mgrid_nccl_wait(n, &from, until - mgrid_now(), listen, what, spec->name, err);
  *keep = s != MGRID_OK; /* NCCL may still write there */
  if (s || !j->made) return s;
  if (!j->made->comm) return mgrid_fail(err, MGRID_BACKEND, MAKER ": %s gave no communicator for %s", what, spec->name);
  s = mgrid_nccl_wait(n, j->made, until - mgrid_now(), listen, what, spec->name, err);
  if (!s) s = mgrid_nccl_finish(n, spec, j->made, err);
  if (!s) s = mgrid_nccl_furnish(n, spec, j->made, err);
  return s;
}

/* End a split: hand the new communicator out, or abort it; in a creation over all ranks that is done after the verdict. */
static void dispose(nccl_backend *n, derive_job *j, mgrid_outcome s, bool keep, void **native) {
  if (keep) return; /* NCCL may still write there */
  if (j->made && (!s || n->creates)) {
    j->made->lost = s != MGRID_OK;
    *native = j->made;
  } else if (j->made) {
    mgrid_nccl_abort_one(n, j->made);
  }
  free(j->lost);
  free(j);
}

static derive_job *new_job(ncclComm_t from, mgrid_error *err) {
  derive_job *j = calloc(1, sizeof *j);
  if (!j) return mgrid_null_oom(err);
  j->from = from;
  return j;
}

/* -------------------------------------------------------------------------- split */

static mgrid_outcome split_one(nccl_backend *n, const mgrid_comm_spec *spec, ncclComm_t from, void **native,
                               mgrid_error *err) {
  bool        keep = false;
  derive_job *j = new_job(from, err);
  if (!j) return MGRID_NO_MEMORY;
  mgrid_outcome s = spec->size > 0 ? mgrid_nccl_new(n, spec, &j->made, &j->config, err) : MGRID_OK;
  j->color = (int)spec->group, j->key = (int)spec->position;
  if (!s) s = derive(n, spec, j, run_split, "ncclCommSplit", true, &keep, err);
  dispose(n, j, s, keep, native);
  if (*native) mgrid_nccl_keep(n, *native);
  return s;
}

/* In sequence: NCCL fails if several splits of one parent are in progress. */
mgrid_outcome mgrid_nccl_split_all(nccl_backend *n, size_t nspecs, const mgrid_comm_spec *spec, void **native,
                                   mgrid_error *err) {
  mgrid_outcome s = MGRID_OK;
  cudaError_t   e = n->lib.cudaSetDevice(n->device);
  if (e != cudaSuccess) s = mgrid_cuda_failed(n, err, e, GPU_CALL("SetDevice"), "");
  if (!s && nspecs > 0) s = mgrid_nccl_idle(n, mgrid_nccl_patience(n, &spec[0]), spec[0].name, err);
  for (size_t i = 0; i < nspecs && !s; i++)
    if (mgrid_nccl_makes(spec[i].backend)) s = split_one(n, &spec[i], n->options.parent, &native[i], err);
  if (s) mgrid_nccl_tell_world(n); /* a split is a call over all ranks */
  return s;
}

mgrid_outcome mgrid_nccl_split_parents(nccl_backend *n, size_t nspecs, const mgrid_comm_spec *spec, void **native,
                                       mgrid_error *err) {
  mgrid_outcome s = MGRID_OK;
  for (size_t i = 0; i < nspecs && !s; i++) {
    nccl_comm *parent = spec[i].parent ? mgrid_nccl_find(n, *spec[i].parent) : NULL;
    if (!spec[i].parent) continue;
    int before = n->leaks;
    if (parent && parent->comm)
      s = split_one(n, &spec[i], parent->comm, &native[i], err);
    else
      s = mgrid_fail(err, MGRID_BACKEND, MAKER ": %s: the communicator of its parent cannot be used", spec[i].name);
    if (n->leaks > before) parent->comm = NULL, parent->stuck = true; /* a thread still uses it */
    if (s) s = mgrid_nccl_whose(n, s);
    if (s && s != MGRID_GAVE_UP) mgrid_nccl_tell_world(n);
  }
  return s;
}

/* ------------------------------------------------------------------------- shrink */

mgrid_outcome mgrid_nccl_derive(nccl_backend *n, const mgrid_comm_spec *spec, nccl_comm *from, int nlost,
                                const int *lost, nccl_comm **made, mgrid_error *err) {
  bool        keep = false;
  derive_job *j = new_job(from->comm, err);
  if (!j) return MGRID_NO_MEMORY;
  j->lost = malloc(((size_t)nlost + 1) * sizeof *j->lost);
  mgrid_outcome s = j->lost ? mgrid_nccl_new(n, spec, &j->made, &j->config, err) : mgrid_oom(err);
  if (j->lost) memcpy(j->lost, lost, (size_t)nlost * sizeof *j->lost);
  j->nlost = nlost;
  int before = n->leaks;
  if (!s) s = derive(n, spec, j, run_shrink, "ncclCommShrink", true, &keep, err);
  if (n->leaks > before) {
    from->comm = NULL, from->stuck = true; /* the thread still uses it */
  } else if (keep) {                       /* still in progress: the abort of the older one ends it */
    if (s != MGRID_GAVE_UP) mgrid_nccl_tell(n, spec);
    mgrid_nccl_abort_all(n, 1, &from);
    keep = from->stuck;
  } else if (j->refused) {
    from->comm = NULL, from->stuck = true;
    mgrid_log(&n->base.hooks, MGRID_LOG_WARN,
              MAKER ": %s: ncclCommShrink refused; the old communicator stays, because NCCL may not be able to end it",
              spec->name);
  }
  if (keep) return s;
  *made = j->made;
  if (s && *made) (*made)->lost = true;
  free(j->lost);
  free(j);
  return s;
}
