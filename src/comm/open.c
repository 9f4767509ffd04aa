/* SPDX-License-Identifier: MIT
**
** open.c - open backends by name. A backend's library is loaded when the backend is opened, so planning works without MPI
** and starts fast. A program linked with a backend's archive uses that.
*/
#include "comm/open.h"

#include "comm/library.h"

#include <string.h>

/* The entries of the backends' archives, in a program that was linked with them; else NULL. */
#define LINKED __attribute__((weak, visibility("hidden")))
extern const mgrid_backend_entry mgrid_mpi_entry LINKED, mgrid_nccl_entry LINKED, mgrid_pmix_entry LINKED;

static const mgrid_backend_entry *const linked[] = { [MGRID_NATIVE_MPI] = &mgrid_mpi_entry,
                                                     [MGRID_NATIVE_NCCL] = &mgrid_nccl_entry,
                                                     [MGRID_BACKEND_PMIX] = &mgrid_pmix_entry };

/* The entry points of a backend of this table, or NULL. */
static const mgrid_backend_entry *entry_of(const mgrid_descriptor *d, mgrid_error *err) {
  char                       what[64];
  const mgrid_backend_entry *here = linked[d - mgrid_backends];
  snprintf(what, sizeof what, "the %s backend", d->name);
  if (here) return mgrid_layout_check(here->layout, what, err) ? NULL : here;
  return mgrid_library_entry(d->library, 0, d->entry, what, err);
}

static mgrid_backend *open_alone(const mgrid_descriptor *d, const mgrid_mpi_options *o, mgrid_error *err) {
  const mgrid_backend_entry *entry = entry_of(d, err);
  return entry ? entry->open(o, err) : NULL;
}

mgrid_backend *mgrid_nccl_backend(mgrid_backend *carrier, const mgrid_nccl_options *options, mgrid_error *err) {
  const mgrid_descriptor *nccl = &mgrid_backends[MGRID_NATIVE_NCCL];
  const mgrid_mpi_options usual = MGRID_MPI_OPTIONS_INIT;
  mgrid_error             why = MGRID_ERROR_INIT;
  mgrid_nccl_options      o = MGRID_NCCL_OPTIONS_INIT;
  mgrid_backend          *b = NULL;
  if (carrier && mgrid_layout_check(carrier->layout, "the carrier's library", err)) return NULL;
  carrier = carrier ? mgrid_backend_ref(carrier) : open_alone(nccl->carrier, &usual, err);
  if (!carrier) return NULL;
  if (!carrier->ops->carrier) {
    mgrid_fail(err, MGRID_USAGE, "the %s backend stands on %s, pmix or a carrier of the host, not on %s", nccl->name,
               nccl->carrier->name, carrier->kind->name);
  } else {
    const mgrid_backend_entry *entry =
        mgrid_struct_read(&o, sizeof o, options, "mgrid_nccl_options", &why) ? NULL : entry_of(nccl, &why);
    mgrid_status s = mgrid_verdict(carrier, why.status, &why, &why); /* go on only if it opened on all ranks */
    if (!s) b = entry->over(carrier, &o, &why);
    if (!b) mgrid_error_pass(err, &why);
  }
  mgrid_backend_free(carrier); /* b holds its own reference */
  return b;
}

mgrid_backend *mgrid_backend_best(mgrid_backend *carrier, const mgrid_nccl_options *options) {
  mgrid_nccl_options         o = MGRID_NCCL_OPTIONS_INIT;
  char                       text[256];
  mgrid_error                why = MGRID_ERROR_INIT;
  const mgrid_backend_entry *entry = entry_of(&mgrid_backends[MGRID_NATIVE_NCCL], &why);
  uint64_t                   all = entry && entry->probe(text, sizeof text, &why) == MGRID_OK;
  if (options) o = *options; /* from the command, which is of this version: no size to check */
  if (carrier->ops->allreduce_min(carrier, &all, 1, &why) || !all) return mgrid_backend_ref(carrier);
  mgrid_backend *nccl = entry->over(carrier, &o, &why);
  return nccl ? nccl : mgrid_backend_ref(carrier);
}

mgrid_backend *mgrid_backend_open(const char *name, const mgrid_mpi_options *options, mgrid_error *err) {
  mgrid_mpi_options o = MGRID_MPI_OPTIONS_INIT;
  if (mgrid_lacks(name, "the name of the backend", err)) return NULL;
  if (mgrid_struct_read(&o, sizeof o, options, "mgrid_mpi_options", err)) return NULL;
  const mgrid_descriptor *d = mgrid_backend_named(name);
  if (d && d->library && !d->carrier) return open_alone(d, &o, err);
  if ((d && d->carrier) || strcmp(name, "auto") == 0) {
    mgrid_backend *carrier = open_alone(mgrid_backends[MGRID_NATIVE_NCCL].carrier, &o, err), *opened = NULL;
    if (carrier) opened = d ? mgrid_nccl_backend(carrier, NULL, err) : mgrid_backend_best(carrier, NULL);
    mgrid_backend_free(carrier); /* a backend over it holds its own reference */
    return opened;
  }
  if (d)
    return mgrid_null(err, MGRID_USAGE, "the %s backend has no world of its own: use mgrid_%s", d->name,
                      d == &mgrid_backends[MGRID_NATIVE_NONE] ? "backend_dry" : "carrier_backend");
  const char *known[1 + MGRID_BACKENDS_MAX] = { "auto" };
  char        tail[128];
  mgrid_suggest(tail, sizeof tail, name, known, 1 + mgrid_backend_names(known + 1, false));
  return mgrid_null(err, MGRID_UNKNOWN_NAME, "unknown backend '%s'%s", name, tail);
}

mgrid_status mgrid_backend_probe(const mgrid_descriptor *d, char *buf, size_t len, mgrid_error *err) {
  const mgrid_backend_entry *entry = entry_of(d, err);
  return entry ? entry->probe(buf, len, err) : MGRID_MISSING;
}
