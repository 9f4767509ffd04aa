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
static void *load(mg_error *err) {
  static const char *const folders[] = { "", "../lib/" };
  char                     self[PATH_MAX], path[PATH_MAX + 64];
  void                    *lib = NULL;
  if (own_file(self))
    for (size_t i = 0; i < 2 && !lib; i++) {
      int dir = (int)(strrchr(self, '/') - self) + 1;
      snprintf(path, sizeof path, "%.*s%s%s", dir, self, folders[i], MG_MPI_LIBRARY);
      lib = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    }
  if (!lib) lib = dlopen(MG_MPI_LIBRARY, RTLD_NOW | RTLD_LOCAL);
  if (!lib) {
    const char *why = dlerror();
    return mg_null(err, MG_BACKEND, "the mpi backend is not here: %s", why ? why : "unknown reason");
  }
  return lib; /* stays loaded: an MPI library must not be unloaded */
}

static void *symbol(const char *name, mg_error *err) {
  void *lib = load(err), *found = lib ? dlsym(lib, name) : NULL;
  if (lib && !found) return mg_null(err, MG_BACKEND, "%s does not have %s", MG_MPI_LIBRARY, name);
  return found;
}

mg_backend *mg_backend_open(const char *name, mg_error *err) {
  static const char *const known[] = { "mpi" };
  if (strcmp(name, "dry") == 0)
    return mg_null(err, MG_USAGE, "the dry backend has no world of its own: use mg_backend_dry");
  if (strcmp(name, "mpi") != 0) {
    char tail[128];
    mg_suggest(tail, sizeof tail, name, known, 1);
    return mg_null(err, MG_USAGE, "unknown backend '%s'%s", name, tail);
  }
  mg_backend_opener *open_it;
  void              *found = symbol("mg_mpi_open", err);
  if (!found) return NULL;
  memcpy(&open_it, &found, sizeof open_it);
  return open_it(err);
}

mg_status mg_mpi_version_text(char *buf, size_t len, mg_error *err) {
  mg_backend_describer *describe;
  void                 *found = symbol("mg_mpi_describe", err);
  if (!found) return MG_BACKEND;
  memcpy(&describe, &found, sizeof describe);
  describe(buf, len);
  return MG_OK;
}
