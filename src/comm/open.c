/* SPDX-License-Identifier: MIT
**
** open.c - backends by name: their libraries are loaded only when somebody asks, so that
** planning works, and starts fast, where MPI is not installed.
*/
#include "comm/open.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

/* The file that this code is in: libmoongrid, or a program that is linked with libmoongrid.a. Of a
** program the loader may know only the name it was called by, so we ask /proc. */
static bool own_file(char path[PATH_MAX]) {
  Dl_info info;
  bool    found = dladdr((void *)(uintptr_t)&mgrid_backend_open, &info) && info.dli_fname;
  return found && realpath(strchr(info.dli_fname, '/') ? info.dli_fname : "/proc/self/exe", path);
}

/* Load a backend's library: from beside that file (build tree), from ../lib (a command in bin/), else
** from where the loader looks. */
static void *load(const mgrid_descriptor *d, mgrid_error *err) {
  static const char *const folders[] = { "", "../lib/" };
  char                     self[PATH_MAX], path[PATH_MAX + 64];
  void                    *lib = NULL;
  if (own_file(self))
    for (size_t i = 0; i < 2 && !lib; i++) {
      int dir = (int)(strrchr(self, '/') - self) + 1;
      snprintf(path, sizeof path, "%.*s%s%s", dir, self, folders[i], d->library);
      lib = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    }
  if (!lib) lib = dlopen(d->library, RTLD_NOW | RTLD_LOCAL);
  if (!lib) {
    const char *why = dlerror();
    return mgrid_null(err, MGRID_BACKEND, "the %s backend is not here: %s", d->name, why ? why : "unknown reason");
  }
  return lib; /* stays loaded: an MPI library must not be unloaded */
}

/* The way into a backend's library, or NULL. */
static const mgrid_backend_entry *entry_of(const mgrid_descriptor *d, mgrid_error *err) {
  void *lib = load(d, err), *found = lib ? dlsym(lib, d->entry) : NULL;
  if (lib && !found) mgrid_fail(err, MGRID_BACKEND, "%s does not have %s", d->library, d->entry);
  return found;
}

static mgrid_backend *open_alone(const mgrid_descriptor *d, mgrid_error *err) {
  const mgrid_backend_entry *entry = entry_of(d, err);
  return entry ? entry->open(err) : NULL;
}

mgrid_backend *mgrid_nccl_backend(mgrid_backend *carrier, const mgrid_nccl_options *options, mgrid_error *err) {
  const mgrid_descriptor *nccl = &mgrid_backends[MGRID_NATIVE_NCCL];
  mgrid_error             why = { 0 };
  mgrid_backend          *mine = carrier ? NULL : open_alone(nccl->carrier, err), *b = NULL;
  if (!carrier && !(carrier = mine)) return NULL;
  if (!carrier->ops->carrier)
    return mgrid_null(err, MGRID_USAGE, "the %s backend stands on %s, not on %s", nccl->name, nccl->carrier->name,
                      carrier->kind->name);
  if (options && (options->size < sizeof(size_t) || options->size > 4096))
    mgrid_fail(&why, MGRID_USAGE, "nccl options without MGRID_NCCL_OPTIONS_INIT (size %zu)", options->size);
  const mgrid_backend_entry *entry = why.status ? NULL : entry_of(nccl, &why);
  mgrid_status s = mgrid_verdict(carrier, why.status, &why, &why); /* all ranks have it, or none goes on */
  if (!s) b = entry->over(carrier, options, mine != NULL, &why);
  if (b) return b;
  if (err) *err = why;
  mgrid_backend_free(mine);
  return NULL;
}

mgrid_backend *mgrid_backend_best(mgrid_backend *carrier, const mgrid_nccl_options *options, bool own) {
  char                       text[256];
  mgrid_error                why;
  const mgrid_backend_entry *entry = entry_of(&mgrid_backends[MGRID_NATIVE_NCCL], &why);
  uint64_t                   all = entry && entry->probe(text, sizeof text, &why) == MGRID_OK;
  if (carrier->ops->allreduce_min(carrier, &all, 1, &why) || !all) return carrier;
  mgrid_backend *nccl = entry->over(carrier, options, own, &why);
  return nccl ? nccl : carrier;
}

mgrid_backend *mgrid_backend_open(const char *name, mgrid_error *err) {
  const mgrid_descriptor *d = mgrid_backend_named(name);
  if (d && d->carrier) return mgrid_nccl_backend(NULL, NULL, err);
  if (d && d->library) return open_alone(d, err);
  if (d) return mgrid_null(err, MGRID_USAGE, "the %s backend has no world of its own: use mgrid_backend_dry", d->name);
  if (strcmp(name, "auto") == 0) {
    mgrid_backend *carrier = open_alone(mgrid_backends[MGRID_NATIVE_NCCL].carrier, err);
    return carrier ? mgrid_backend_best(carrier, NULL, true) : NULL;
  }
  const char *known[1 + MGRID_BACKENDS_MAX] = { "auto" };
  char        tail[128];
  mgrid_suggest(tail, sizeof tail, name, known, 1 + mgrid_backend_names(known + 1));
  return mgrid_null(err, MGRID_USAGE, "unknown backend '%s'%s", name, tail);
}

mgrid_status mgrid_backend_probe(const mgrid_descriptor *d, char *buf, size_t len, mgrid_error *err) {
  const mgrid_backend_entry *entry = entry_of(d, err);
  return entry ? entry->probe(buf, len, err) : MGRID_BACKEND;
}
