/* SPDX-License-Identifier: MIT
**
** end.c - destroys, aborts and revokes communicators. Destroying a used communicator is a call over
** its members, so two ranks that destroy two communicators in opposite order wait for each other
** forever. Therefore all communicators of a state end together: wait for the streams, finalize
** each, then destroy all in two NCCL groups, one for non-blocking communicators, one for blocking.
** Failed communicators are aborted, all in one group. It sets the abort flag of each before it
** waits for any, because an abort may wait for kernels of other communicators, or for the proxy
** thread, which lives while ranks of this node are connected. Each of these calls has a deadline.
*/
#include "comm/nccl/nccl.h"

#include <pthread.h>
#include <stdlib.h>

/* ------------------------------------------ one call with several communicators */

typedef struct bundle { /* not freed if the call does not end, because its thread still uses it */
  size_t n;
  ncclComm_t comm[];
} bundle;

static ncclResult_t in_group(const nccl_library *lib, const bundle *b,
                             ncclResult_t (*call)(ncclComm_t)) {
  ncclResult_t first = lib->GroupStart();
  for (size_t i = 0; i < b->n; i++) {
    ncclResult_t r = call(b->comm[i]);
    if (mgrid_nccl_is_error(r) && first == ncclSuccess) first = r;
  }
  return mgrid_nccl_group_end(lib, first);
}

static ncclResult_t run_finalize(const nccl_library *lib, void *ud) {
  return in_group(lib, ud, lib->CommFinalize);
}
static ncclResult_t run_destroy(const nccl_library *lib, void *ud) {
  return in_group(lib, ud, lib->CommDestroy);
}

static ncclResult_t run_revoke(const nccl_library *lib, void *ud) {
  bundle *b = ud;
  ncclResult_t first = lib->GroupStart(), r;
  for (size_t i = 0; i < b->n; i++) {
    r = lib->CommRevoke(b->comm[i], NCCL_REVOKE_DEFAULT);
    /* ncclInvalidArgument is about this call; any other error was there before */
    if (r == ncclInvalidArgument && first == ncclSuccess) first = r;
  }
  lib->GroupEnd();
  return first;
}

typedef struct one_abort {
  const nccl_library *lib;
  ncclComm_t comm;
  pthread_t thread;
  bool threaded;
} one_abort;

static void *abort_one(void *ud) {
  one_abort *a = ud;
  a->lib->CommAbort(a->comm);
  return NULL;
}

/* Before NCCL 2.22 a group cannot contain aborts. So abort each communicator in a thread of its
** own, because the first abort may wait for something that the last abort ends. */
static ncclResult_t run_aborts_beside(const nccl_library *lib, const bundle *b) {
  one_abort *all = calloc(b->n + 1, sizeof *all);
  for (size_t i = 0; i < b->n && all; i++) {
    all[i] = (one_abort){ .lib = lib, .comm = b->comm[i] };
    all[i].threaded = pthread_create(&all[i].thread, NULL, abort_one, &all[i]) == 0;
  }
  for (size_t i = 0; i < b->n && all; i++) {
    if (all[i].threaded) pthread_join(all[i].thread, NULL);
    if (!all[i].threaded) abort_one(&all[i]);
  }
  free(all);
  return all ? ncclSuccess : ncclSystemError;
}

static ncclResult_t run_abort(const nccl_library *lib, void *ud) {
  return lib->version < NCCL_GROUPS_ABORTS ? run_aborts_beside(lib, ud)
                                           : in_group(lib, ud, lib->CommAbort);
}

/* Make one call for all communicators i with chosen[i] (NULL: for all). If the call does not end,
** mark them as stuck. */
static mgrid_outcome end_together(nccl_backend *n, size_t count, nccl_comm **comm,
                                  const bool *chosen, double seconds,
                                  ncclResult_t (*run)(const nccl_library *, void *),
                                  const char *what, mgrid_error *err) {
  bundle *b = malloc(sizeof *b + (count + 1) * sizeof *b->comm);
  const char *name = "";

  if (!b) return mgrid_oom(err);
  b->n = 0;
  for (size_t i = 0; i < count; i++) {
    if (!comm[i] || !comm[i]->comm || (chosen && !chosen[i])) continue;
    if (b->n == 0) name = comm[i]->name;
    b->comm[b->n++] = comm[i]->comm;
  }
  bool left_behind = false;
  mgrid_error why = MGRID_ERROR_INIT;
  mgrid_outcome s = b->n == 0 ? MGRID_OK
                              : mgrid_nccl_watch(n, seconds > 0.1 ? seconds : 0.1, false, run, b,
                                                 what, name, &left_behind, &why);
  if (left_behind) {
    n->broken = true;
    char more[48] = "";
    if (b->n > 1) snprintf(more, sizeof more, " and %zu more", b->n - 1);
    mgrid_log(&n->base.hooks, MGRID_LOG_WARN,
              MAKER ": %s of %s%s did not end within %.3g seconds: other ranks of this node, or "
                    "kernels, still use %s; end the process",
              what, name, more, seconds, b->n > 1 ? "them" : "it");
    for (size_t i = 0; i < count; i++)
      if (comm[i] && comm[i]->comm && (!chosen || chosen[i]))
        comm[i]->comm = NULL, comm[i]->stuck = true;
  } else {
    free(b);
  }
  if (s) mgrid_error_pass(err, &why);
  return s;
}

void mgrid_nccl_abort_all(nccl_backend *n, size_t count, nccl_comm **comm) {
  end_together(n, count, comm, NULL, NCCL_END_SECONDS, run_abort, "ncclCommAbort", NULL);
  for (size_t i = 0; i < count; i++)
    if (comm[i]) comm[i]->comm = NULL;
}

void mgrid_nccl_abort_one(nccl_backend *n, nccl_comm *made) {
  mgrid_nccl_abort_all(n, 1, &made);
  if (made->stream) n->lib.cudaStreamDestroy(made->stream);
  mgrid_nccl_drop(made);
}

/* ---------------------------------------------------------------------------- destroy */

typedef struct stream_look {
  nccl_backend *n;
  nccl_comm *comm;
} stream_look;

/* An mgrid_look: whether the stream is empty. */
static mgrid_outcome is_empty(void *ud) {
  const stream_look *l = ud;
  cudaError_t e = l->n->lib.cudaStreamQuery(l->comm->stream);
  return e == cudaErrorNotReady ? MGRID_NOT_YET : e == cudaSuccess ? MGRID_OK : MGRID_BACKEND;
}

/* Wait until all calls in the stream have ended. False: they failed, or did not end before
** `until`. */
static bool drained(nccl_backend *n, nccl_comm *c, double until) {
  stream_look l = { n, c };
  return mgrid_wait(is_empty, &l, until, NULL, NULL) == MGRID_OK;
}

/* Destroy the communicators that the carrier made, and set their native[i] to NULL. */
static void destroy_carried(nccl_backend *n, size_t count, void **native) {
  for (size_t i = 0; i < count; i++) {
    if (!native[i] || mgrid_nccl_find(n, native[i])) continue;
    n->carrier->ops->destroy(n->carrier, 1, &native[i]);
    native[i] = NULL;
  }
}

/* Finalize the communicators with clean[i], and set clean[i] to false if that fails. Set
** blocking[i] for those that are blocking: for them ncclCommFinalize waits. For others it returns
** at once, and this function waits afterwards. */
static void end_finalize(nccl_backend *n, size_t count, nccl_comm **comm, bool *clean,
                         bool *blocking, double until) {
  for (size_t i = 0; i < count; i++) blocking[i] = clean[i] && comm[i]->blocking;
  if (end_together(n, count, comm, blocking, until - mgrid_now(), run_finalize, "ncclCommFinalize",
                   NULL))
    for (size_t i = 0; i < count; i++) clean[i] &= !blocking[i];
  for (size_t i = 0; i < count; i++) {
    if (!clean[i] || blocking[i]) continue;
    ncclResult_t r = n->lib.CommFinalize(comm[i]->comm);
    clean[i] = !mgrid_nccl_is_error(r);
  }
  /* ncclCommFinalize has begun for all communicators, so they may end in any order */
  for (size_t i = 0; i < count; i++) {
    double left = until - mgrid_now();
    if (clean[i] && !blocking[i])
      clean[i] = mgrid_nccl_wait(n, comm[i], left > 0.1 ? left : 0.1, false, "ncclCommFinalize",
                                 comm[i]->name, NULL)
                 == MGRID_OK;
  }
}

static void forget_all(nccl_backend *n, size_t count, nccl_comm **comm) {
  for (size_t i = 0; i < count; i++) {
    if (!comm[i]) continue;
    /* do not free the windows: kernels that hang may still use them */
    if (n->broken) comm[i]->nwindows = 0;
    if (comm[i]->stream) n->lib.cudaStreamDestroy(comm[i]->stream);
    mgrid_nccl_forget(n, comm[i]);
  }
}

void mgrid_nccl_destroy(mgrid_backend *b, size_t count, void **native) {
  nccl_backend *n = (nccl_backend *)b;
  nccl_comm **comm = (nccl_comm **)native;
  bool *clean = calloc(3 * count + 1, sizeof *clean), *blocking = clean + count,
       *other = blocking + count;

  if (n->broken || !clean) {
    free(clean);
    mgrid_nccl_abort(b, count, native);
    return;
  }
  destroy_carried(n, count, native);
  n->lib.cudaSetDevice(n->device);
  double until = mgrid_now() + n->options.timeout; /* one deadline for all */
  for (size_t i = 0; i < count; i++)
    clean[i] = comm[i] && comm[i]->comm && !comm[i]->lost && !comm[i]->idle
               && drained(n, comm[i], until);
  for (size_t i = 0; i < count; i++) {
    if (clean[i] && comm[i]->suspended)
      clean[i] = mgrid_nccl_resume_one(n, comm[i], NULL) == MGRID_OK;
    if (clean[i]) mgrid_nccl_clear(n, comm[i]);
  }
  end_finalize(n, count, comm, clean, blocking, until);
  for (size_t i = 0; i < count; i++) other[i] = !clean[i];
  end_together(n, count, comm, other, NCCL_END_SECONDS, run_abort, "ncclCommAbort", NULL);
  for (size_t i = 0; i < count; i++) {
    blocking[i] &= clean[i];
    other[i] = clean[i] && !blocking[i];
  }
  end_together(n, count, comm, other, until - mgrid_now(), run_destroy, "ncclCommDestroy", NULL);
  end_together(n, count, comm, blocking, until - mgrid_now(), run_destroy, "ncclCommDestroy", NULL);
  forget_all(n, count, comm);
  free(clean);
}

void mgrid_nccl_abort(mgrid_backend *b, size_t count, void **native) {
  nccl_backend *n = (nccl_backend *)b;
  destroy_carried(n, count, native);
  mgrid_nccl_abort_all(n, count, (nccl_comm **)native);
  forget_all(n, count, (nccl_comm **)native);
  n->used = true; /* others may still abort: the next call over all ranks waits longer */
}

/* ----------------------------------------------------------------------------- revoke */

/* Choose the blocking, or the non-blocking, communicators that are not revoked yet, and mark them
** as revoked. */
static void end_choose(size_t count, nccl_comm **comm, bool blocking, bool *chosen) {
  for (size_t i = 0; i < count; i++) {
    chosen[i] = comm[i] && comm[i]->comm && !comm[i]->revoked && comm[i]->blocking == blocking;
    if (chosen[i]) comm[i]->lost = comm[i]->revoked = true;
  }
}

/* NCCL before 2.28.7 cannot revoke, so there communicators are aborted. To revoke does not clear an
** earlier error, and a communicator with an error cannot shrink: mgrid_nccl_shrink then creates the
** smaller communicator from a fresh id. */
mgrid_status mgrid_nccl_revoke(mgrid_backend *b, size_t count, void **native, mgrid_error *err) {
  nccl_backend *n = (nccl_backend *)b;
  nccl_comm **comm = malloc((count + 1) * sizeof *comm);
  bool *chosen = calloc(count + 1, sizeof *chosen);
  mgrid_outcome s = comm && chosen ? MGRID_OK : mgrid_oom(err);
  double until = mgrid_now() + n->options.timeout;

  /* NULL: a communicator of the carrier */
  for (size_t i = 0; i < count && !s; i++) comm[i] = mgrid_nccl_find(n, native[i]);
  if (!s && !n->lib.CommRevoke) {
    mgrid_nccl_abort_all(n, count, comm);
  } else {
    for (int blocking = 0; blocking < 2 && !s; blocking++) {
      end_choose(count, comm, blocking, chosen);
      s = end_together(n, count, comm, chosen, until - mgrid_now(), run_revoke, "ncclCommRevoke",
                       err);
      for (size_t i = 0; i < count && !s; i++)
        if (chosen[i] && !blocking)
          s = mgrid_nccl_wait_out(n, comm[i], until, "ncclCommRevoke", err);
    }
  }
  free(comm);
  free(chosen);
  return mgrid_status_of(s);
}
