/* SPDX-License-Identifier: MIT
**
** library.c - find and load moongrid's own libraries.
*/
#include "comm/library.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Find the path of the file that contains this code: libmoongrid, or a program linked with libmoongrid.a. The loader may
** know a program only by argv[0], so ask /proc. */
static bool own_file(char path[PATH_MAX]) {
  Dl_info info;
  bool    found = dladdr((void *)(uintptr_t)&mgrid_library_open, &info) && info.dli_fname;
  return found && realpath(strchr(info.dli_fname, '/') ? info.dli_fname : "/proc/self/exe", path);
}

/* If the loader's message says that the library needs the private symbols of another version of libmoongrid
** (scripts/exports), point *version at that version, "1.2.3", and return its length; else return 0. */
static size_t version_wanted(const char *why, const char **version) {
  static const char node[] = "mgrid_private_";
  *version = why ? strstr(why, node) : NULL;
  if (*version) *version += sizeof node - 1;
  return *version ? strspn(*version, "0123456789.") : 0;
}

/* Search the folder of that file (build tree), then ../lib (a command in bin/), then the loader's search path. Stop at a
** file that exists but cannot be loaded: its error is the one to report. */
void *mgrid_library_open(const char *file, int flags, const char *what, mgrid_error *err) {
  static const char *const folders[] = { "", "../lib/" };
  char                     self[PATH_MAX], path[PATH_MAX + 64], most[MGRID_ALLOWED];
  void                    *lib = NULL;
  bool                     there = false;
  flags |= RTLD_NOW | RTLD_LOCAL;
  errno = 0;
  if (own_file(self))
    for (size_t i = 0; i < 2 && !lib && !there; i++) {
      int dir = (int)(strrchr(self, '/') - self) + 1;
      snprintf(path, sizeof path, "%.*s%s%s", dir, self, folders[i], file);
      there = access(path, F_OK) == 0;
      if (there) lib = dlopen(path, flags);
    }
  if (!lib && !there) lib = dlopen(file, flags);
  if (!lib) {
    int         number = errno;
    const char *why = dlerror(), *of = NULL;
    size_t      digits = version_wanted(why, &of);
    if (digits > 0)
      return mgrid_null(err, MGRID_MISSING, "%s is of moongrid %.*s, this is %s; install both from one version", file,
                        (int)digits, of, MGRID_VERSION);
    return mgrid_null(err, MGRID_MISSING, "%s %s: %s%s", what, there ? "cannot be loaded" : "is not here",
                      why ? why : "unknown reason", mgrid_allowed_by(number, most));
  }
  return lib; /* stays loaded: an MPI library must not be unloaded */
}

const void *mgrid_library_entry(const char *file, int flags, const char *name, const char *what, mgrid_error *err) {
  void      *lib = mgrid_library_open(file, flags, what, err);
  const int *layout = lib ? dlsym(lib, name) : NULL;
  if (lib && !layout) mgrid_fail(err, MGRID_MISSING, "%s does not have %s", file, name);
  return layout && mgrid_layout_check(*layout, file, err) == MGRID_OK ? layout : NULL;
}
