/* SPDX-License-Identifier: MIT
**
** derive.c - communicators out of others: split from one that the host handed over, and what
** remains of one that lost ranks.
*/
#include "comm/nccl/nccl.h"

#include <stdlib.h>
#include <string.h>

/* The call was begun on `from`; its child is there when nothing is in progress on `from` any more,
** and is then looked at itself. */
static mg_status settle_child(nccl_backend *n, ncclComm_t from, ncclResult_t r, const char *call,
                              const mg_comm_spec *spec, nccl_comm *child, mg_error *err) {
  nccl_comm parent = { .comm = from };
  double    seconds = nccl_patience(n, spec);
  if (r != ncclSuccess && r != ncclInProgress) return nccl_failed(n, err, r, call, spec->name);
  mg_status s = nccl_settle(n, &parent, seconds, call, spec->name, err);
  if (s || spec->size == 0) return s;
  if (!child->comm) return mg_fail(err, MG_BACKEND, "nccl: %s gave no communicator for %s", call, spec->name);
  return nccl_settle(n, child, seconds, call, spec->name, err);
}

static nccl_comm *new_comm(nccl_backend *n, const mg_comm_spec *spec, mg_nccl_values *v, ncclConfig_t *config,
                           mg_status *s, mg_error *err) {
  nccl_comm *made = calloc(1, sizeof *made);
  if (!made) {
    *s = mg_oom(err);
    return NULL;
  }
  snprintf(made->name, sizeof made->name, "%s", spec->name);
  *s = nccl_config(n, spec, made->name, v, config, err);
  if (!*s) made->bytes = mg_nccl_memory(v, spec->size);
  made->blocking = v->given[MG_NCCL_BLOCKING] && v->number[MG_NCCL_BLOCKING];
  return made;
}

static void drop(nccl_backend *n, nccl_comm *made) {
  if (made && made->stream) n->lib.cudaStreamDestroy(made->stream);
  if (made && made->comm) n->lib.CommAbort(made->comm);
  free(made);
}

/* -------------------------------------------------------------------------- split */

static mg_status split_one(nccl_backend *n, const mg_comm_spec *spec, void **native, mg_error *err) {
  ncclConfig_t   config;
  mg_nccl_values v;
  mg_status      s = MG_OK;
  ncclComm_t     parent = n->options.parent;
  if (spec->size == 0) { /* of others: a color of nobody */
    ncclComm_t none = NULL;
    return settle_child(n, parent, n->lib.CommSplit(parent, NCCL_SPLIT_NOCOLOR, 0, &none, NULL), "ncclCommSplit", spec,
                        NULL, err);
  }
  nccl_comm *made = new_comm(n, spec, &v, &config, &s, err);
  if (!s) {
    ncclResult_t r = n->lib.CommSplit(parent, (int)spec->group, (int)spec->position, &made->comm, &config);
    s = settle_child(n, parent, r, "ncclCommSplit", spec, made, err);
  }
  if (!s) s = nccl_finish(n, spec, made, err);
  if (s) {
    drop(n, made);
    return s;
  }
  nccl_keep(n, made);
  *native = made;
  return MG_OK;
}

/* One after the other: several splits of one parent at once break NCCL. */
mg_status nccl_split_all(nccl_backend *n, size_t nspecs, const mg_comm_spec *spec, void **native, mg_error *err) {
  mg_status   s = MG_OK;
  cudaError_t e = n->lib.cudaSetDevice(n->device);
  if (e != cudaSuccess) s = cuda_failed(n, err, e, "cudaSetDevice", "");
  for (size_t i = 0; i < nspecs && !s; i++)
    if (spec[i].size == 0 || strcmp(spec[i].backend, "nccl") == 0) {
      s = split_one(n, &spec[i], &native[i], err);
      if (!s) continue;
      for (int64_t r = 0; r < n->base.world; r++) n->host->ops->tell(n->host, r); /* all are in it */
    }
  return s;
}

/* ------------------------------------------------------------------------- shrink */

mg_status nccl_shrink(mg_backend *b, const mg_comm_spec *spec, void *from, int count, const int *positions,
                      void **native, mg_error *err) {
  nccl_backend  *n = (nccl_backend *)b;
  nccl_comm     *old = from;
  ncclConfig_t   config;
  mg_nccl_values v;
  mg_status      s = MG_OK;
  char           text[24];
  if (!n->lib.CommShrink)
    return mg_fail(err, MG_BACKEND, "nccl: %s: ncclCommShrink came with NCCL 2.27; this is %s", spec->name,
                   nccl_version_text(n->lib.version, text));
  if (!old->comm) return mg_fail(err, MG_BACKEND, "nccl: %s: the old communicator was aborted", spec->name);
  old->lost = true; /* nobody waits for the lost when it ends */
  int *list = malloc(((size_t)count + 1) * sizeof *list); /* NCCL sorts it in place */
  if (!list) return mg_oom(err);
  memcpy(list, positions, (size_t)count * sizeof *list);
  nccl_comm  *made = new_comm(n, spec, &v, &config, &s, err);
  cudaError_t e = s ? cudaSuccess : n->lib.cudaSetDevice(n->device);
  if (e != cudaSuccess) s = cuda_failed(n, err, e, "cudaSetDevice", spec->name);
  if (!s) {
    ncclResult_t r = n->lib.CommShrink(old->comm, list, count, &made->comm, &config, NCCL_SHRINK_ABORT);
    s = settle_child(n, old->comm, r, "ncclCommShrink", spec, made, err);
  }
  if (!s) s = nccl_finish(n, spec, made, err);
  free(list);
  if (s) {
    drop(n, made);
    return s;
  }
  nccl_keep(n, made);
  *native = made;
  return MG_OK;
}

mg_status nccl_revoke(mg_backend *b, const mg_comm_spec *spec, void *native, mg_error *err) {
  nccl_backend *n = (nccl_backend *)b;
  nccl_comm    *c = native;
  char          text[24];
  if (!n->lib.CommRevoke)
    return mg_fail(err, MG_BACKEND, "nccl: %s: ncclCommRevoke came with NCCL 2.28.7; this is %s", spec->name,
                   nccl_version_text(n->lib.version, text));
  if (!c->comm) return MG_OK;
  c->lost = true;
  ncclResult_t r = n->lib.CommRevoke(c->comm, 0);
  if (r == ncclInProgress) return nccl_settle(n, c, nccl_patience(n, spec), "ncclCommRevoke", spec->name, err);
  return r == ncclSuccess ? MG_OK : nccl_failed(n, err, r, "ncclCommRevoke", spec->name);
}
