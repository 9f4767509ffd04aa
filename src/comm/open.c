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

/* The file that this code is in: this library, or a program that has it in itself, of which
** the loader only knows what it was called by. */
static bool own_file(char path[PATH_MAX]) {
  Dl_info info;
  bool    found = dladdr((void *)(uintptr_t)&mgrid_backend_open, &info) && info.dli_fname;
  return found && realpath(strchr(info.dli_fname, '/') ? info.dli_fname : "/proc/self/exe", path);
}

/* Beside that file (build tree), in ../lib (a command in bin/), else where the loader looks. */
static void *load(const char *name, const char *file, mgrid_error *err) {
  static const char *const folders[] = { "", "../lib/" };
  char                     self[PATH_MAX], path[PATH_MAX + 64];
  void                    *lib = NULL;
  if (own_file(self))
    for (size_t i = 0; i < 2 && !lib; i++) {
      int dir = (int)(strrchr(self, '/') - self) + 1;
      snprintf(path, sizeof path, "%.*s%s%s", dir, self, folders[i], file);
      lib = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    }
  if (!lib) lib = dlopen(file, RTLD_NOW | RTLD_LOCAL);
  if (!lib) {
    const char *why = dlerror();
    return mgrid_null(err, MGRID_BACKEND, "the %s backend is not here: %s", name, why ? why : "unknown reason");
  }
  return lib; /* stays loaded: an MPI library must not be unloaded */
}

/* A function that a backend library exports; *function is a pointer to it. */
static mgrid_status symbol(const char *backend, const char *file, const char *name, void *function, mgrid_error *err) {
  void *lib = load(backend, file, err), *found = lib ? dlsym(lib, name) : NULL;
  if (!lib) return MGRID_BACKEND;
  if (!found) return mgrid_fail(err, MGRID_BACKEND, "%s does not have %s", file, name);
  memcpy(function, &found, sizeof found);
  return MGRID_OK;
}

static mgrid_backend *open_mpi(mgrid_error *err) {
  mgrid_backend_opener *open_it = NULL;
  return symbol("mpi", MGRID_MPI_LIBRARY, "mgrid_mpi_open", &open_it, err) ? NULL : open_it(err);
}

mgrid_backend *mgrid_nccl_backend(mgrid_backend *host, const mgrid_nccl_options *options, mgrid_error *err) {
  mgrid_backend_over *over = NULL;
  mgrid_error         why = { 0 };
  mgrid_backend      *mine = host ? NULL : open_mpi(err), *b = NULL;
  if (!host && !(host = mine)) return NULL;
  if (strcmp(host->ops->name, "mpi") != 0)
    return mgrid_null(err, MGRID_USAGE, "the nccl backend stands on mpi, not on %s", host->ops->name);
  if (options && (options->size < sizeof(size_t) || options->size > 4096))
    mgrid_fail(&why, MGRID_USAGE, "nccl options without MGRID_NCCL_OPTIONS_INIT (size %zu)", options->size);
  mgrid_status s = why.status ? why.status : symbol("nccl", MGRID_NCCL_LIBRARY, "mgrid_nccl_over", &over, &why);
  s = mgrid_verdict(host, s, &why, &why); /* all ranks have it, or none goes on */
  if (!s) b = over(host, options, mine != NULL, &why);
  if (b) return b;
  if (err) *err = why;
  mgrid_backend_free(mine);
  return NULL;
}

mgrid_backend *mgrid_backend_best(mgrid_backend *mpi, const mgrid_nccl_options *options, bool own) {
  mgrid_backend_over   *over = NULL;
  mgrid_backend_prober *probe = NULL;
  char                  text[256];
  mgrid_error           why;
  bool                  here = symbol("nccl", MGRID_NCCL_LIBRARY, "mgrid_nccl_over", &over, &why) == MGRID_OK
              && symbol("nccl", MGRID_NCCL_LIBRARY, "mgrid_nccl_probe", &probe, &why) == MGRID_OK
              && probe(text, sizeof text, &why) == MGRID_OK;
  uint64_t all = here;
  if (mpi->ops->allreduce_min(mpi, &all, 1, &why) || !all) return mpi;
  mgrid_backend *nccl = over(mpi, options, own, &why);
  return nccl ? nccl : mpi;
}

mgrid_backend *mgrid_backend_open(const char *name, mgrid_error *err) {
  static const char *const known[] = { "auto", "mpi", "nccl" };
  if (strcmp(name, "mpi") == 0) return open_mpi(err);
  if (strcmp(name, "nccl") == 0) return mgrid_nccl_backend(NULL, NULL, err);
  if (strcmp(name, "auto") == 0) {
    mgrid_backend *mpi = open_mpi(err);
    return mpi ? mgrid_backend_best(mpi, NULL, true) : NULL;
  }
  if (strcmp(name, "dry") == 0)
    return mgrid_null(err, MGRID_USAGE, "the dry backend has no world of its own: use mgrid_backend_dry");
  char tail[128];
  mgrid_suggest(tail, sizeof tail, name, known, 3);
  return mgrid_null(err, MGRID_USAGE, "unknown backend '%s'%s", name, tail);
}

mgrid_status mgrid_mpi_version_text(char *buf, size_t len, mgrid_error *err) {
  mgrid_backend_describer *describe = NULL;
  mgrid_status             s = symbol("mpi", MGRID_MPI_LIBRARY, "mgrid_mpi_describe", &describe, err);
  if (!s) describe(buf, len);
  return s;
}

mgrid_status mgrid_nccl_version_text(char *buf, size_t len, mgrid_error *err) {
  mgrid_backend_prober *probe = NULL;
  mgrid_status          s = symbol("nccl", MGRID_NCCL_LIBRARY, "mgrid_nccl_probe", &probe, err);
  return s ? s : probe(buf, len, err);
}
