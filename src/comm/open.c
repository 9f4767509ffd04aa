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
  bool    found = dladdr((void *)(uintptr_t)&mg_backend_open, &info) && info.dli_fname;
  return found && realpath(strchr(info.dli_fname, '/') ? info.dli_fname : "/proc/self/exe", path);
}

/* Beside that file (build tree), in ../lib (a command in bin/), else where the loader looks. */
static void *load(const char *name, const char *file, mg_error *err) {
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
    return mg_null(err, MG_BACKEND, "the %s backend is not here: %s", name, why ? why : "unknown reason");
  }
  return lib; /* stays loaded: an MPI library must not be unloaded */
}

/* A function that a backend library exports; *function is a pointer to it. */
static mg_status symbol(const char *backend, const char *file, const char *name, void *function, mg_error *err) {
  void *lib = load(backend, file, err), *found = lib ? dlsym(lib, name) : NULL;
  if (!lib) return MG_BACKEND;
  if (!found) return mg_fail(err, MG_BACKEND, "%s does not have %s", file, name);
  memcpy(function, &found, sizeof found);
  return MG_OK;
}

static mg_backend *open_mpi(mg_error *err) {
  mg_backend_opener *open_it = NULL;
  return symbol("mpi", MG_MPI_LIBRARY, "mg_mpi_open", &open_it, err) ? NULL : open_it(err);
}

mg_backend *mg_nccl_backend(mg_backend *host, const mg_nccl_options *options, mg_error *err) {
  mg_backend_over *over = NULL;
  mg_error         why = { 0 };
  mg_backend      *mine = host ? NULL : open_mpi(err), *b = NULL;
  if (!host && !(host = mine)) return NULL;
  if (strcmp(host->ops->name, "mpi") != 0)
    return mg_null(err, MG_USAGE, "the nccl backend stands on mpi, not on %s", host->ops->name);
  if (options && (options->size < sizeof(size_t) || options->size > 4096))
    mg_fail(&why, MG_USAGE, "nccl options without MG_NCCL_OPTIONS_INIT (size %zu)", options->size);
  mg_status s = why.status ? why.status : symbol("nccl", MG_NCCL_LIBRARY, "mg_nccl_over", &over, &why);
  s = mg_verdict(host, s, &why, &why); /* all ranks have it, or none goes on */
  if (!s) b = over(host, options, mine != NULL, &why);
  if (b) return b;
  if (err) *err = why;
  mg_backend_free(mine);
  return NULL;
}

mg_backend *mg_backend_best(mg_backend *mpi, const mg_nccl_options *options, bool own) {
  mg_backend_over   *over = NULL;
  mg_backend_prober *probe = NULL;
  char               text[256];
  mg_error           why;
  bool               here = symbol("nccl", MG_NCCL_LIBRARY, "mg_nccl_over", &over, &why) == MG_OK &&
              symbol("nccl", MG_NCCL_LIBRARY, "mg_nccl_probe", &probe, &why) == MG_OK &&
              probe(text, sizeof text, &why) == MG_OK;
  uint64_t all = here;
  if (mpi->ops->allreduce_min(mpi, &all, 1, &why) || !all) return mpi;
  mg_backend *nccl = over(mpi, options, own, &why);
  return nccl ? nccl : mpi;
}

mg_backend *mg_backend_open(const char *name, mg_error *err) {
  static const char *const known[] = { "auto", "mpi", "nccl" };
  if (strcmp(name, "mpi") == 0) return open_mpi(err);
  if (strcmp(name, "nccl") == 0) return mg_nccl_backend(NULL, NULL, err);
  if (strcmp(name, "auto") == 0) {
    mg_backend *mpi = open_mpi(err);
    return mpi ? mg_backend_best(mpi, NULL, true) : NULL;
  }
  if (strcmp(name, "dry") == 0)
    return mg_null(err, MG_USAGE, "the dry backend has no world of its own: use mg_backend_dry");
  char tail[128];
  mg_suggest(tail, sizeof tail, name, known, 3);
  return mg_null(err, MG_USAGE, "unknown backend '%s'%s", name, tail);
}

mg_status mg_mpi_version_text(char *buf, size_t len, mg_error *err) {
  mg_backend_describer *describe = NULL;
  mg_status             s = symbol("mpi", MG_MPI_LIBRARY, "mg_mpi_describe", &describe, err);
  if (!s) describe(buf, len);
  return s;
}

mg_status mg_nccl_version_text(char *buf, size_t len, mg_error *err) {
  mg_backend_prober *probe = NULL;
  mg_status          s = symbol("nccl", MG_NCCL_LIBRARY, "mg_nccl_probe", &probe, err);
  return s ? s : probe(buf, len, err);
}
