/* SPDX-License-Identifier: MIT
**
** backend.c - opens backends by name, and loads the libraries of moongrid. The library of a backend
** is loaded when the backend is opened, so planning works without MPI and starts fast. A program
** that was linked with a backend's archive uses the archive instead. recipe.c loads libmoongrid_lua
** through this file, too.
*/
#include "comm/backend_open.h"
#include "comm/state.h"

#include <dlfcn.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ============================================================= our libraries */

/* Find the path of the file with this code: libmoongrid, or a program with libmoongrid.a. If the
** loader's name of the file has no '/', it is a program's argv[0], and the path comes from
** /proc. */
static bool own_file(char path[PATH_MAX]) {
  Dl_info info;
  bool found = dladdr((void *)(uintptr_t)&mgrid_library_open, &info) && info.dli_fname;
  return found && realpath(strchr(info.dli_fname, '/') ? info.dli_fname : "/proc/self/exe", path);
}

/* If the loader's error says that the library needs private symbols of another version of
** libmoongrid (scripts/make/exports), point *version at that version, "1.2.3", and return its
** length; else return 0. */
static size_t version_wanted(const char *why, const char **version) {
  static const char node[] = "mgrid_private_";
  *version = why ? strstr(why, node) : NULL;
  if (*version) *version += sizeof node - 1;
  return *version ? strspn(*version, "0123456789.") : 0;
}

/* Search the folder of our own file (in a build tree), then ../lib (for a command in bin/), then
** the loader's search path. Stop at a file that exists but cannot be loaded, and report its
** error. */
void *mgrid_library_open(const char *file, int flags, const char *what, mgrid_error *err) {
  static const char *const folders[] = { "", "../lib/" };
  char self[PATH_MAX], path[PATH_MAX + 64], most[MGRID_ALLOWED];
  void *lib = NULL;
  bool there = false;

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
    int number = errno;
    const char *why = dlerror(), *of = NULL;
    size_t digits = version_wanted(why, &of);
    if (digits > 0)
      return mgrid_null(err, MGRID_MISSING,
                        "%s is of moongrid %.*s, this is %s; install both from one version", file,
                        (int)digits, of, MGRID_VERSION);
    return mgrid_null(err, MGRID_MISSING, "%s %s: %s%s", what,
                      there ? "cannot be loaded" : "is not here", why ? why : "unknown reason",
                      mgrid_allowed_by(number, most));
  }
  return lib; /* it stays loaded, because an MPI library must not be unloaded */
}

const void *mgrid_library_entry(const char *file, int flags, const char *name, const char *what,
                                mgrid_error *err) {
  void *lib = mgrid_library_open(file, flags, what, err);
  const int *layout = lib ? dlsym(lib, name) : NULL;
  if (lib && !layout) mgrid_fail(err, MGRID_MISSING, "%s does not have %s", file, name);
  return layout && mgrid_layout_check(*layout, file, err) == MGRID_OK ? layout : NULL;
}

/* =========================================================== the dry backend */

/* The dry backend has no communicators: one process plays one rank of a world that does not exist.
** So every question about a plan can be asked without a launcher. */

static mgrid_status dry_allreduce(mgrid_backend *b, uint64_t *words, size_t n, mgrid_error *err) {
  (void)b, (void)words, (void)n, (void)err; /* the minimum over one rank */
  return MGRID_OK;
}

static mgrid_status dry_allgather(mgrid_backend *b, const void *mine, void *all, size_t bytes,
                                  mgrid_error *err) {
  (void)err;
  for (int64_t r = 0; r < b->world; r++) memcpy((char *)all + (size_t)r * bytes, mine, bytes);
  return MGRID_OK;
}

static mgrid_status dry_bcast(mgrid_backend *b, void *data, size_t bytes, int64_t root,
                              mgrid_error *err) {
  (void)b, (void)data, (void)bytes, (void)root, (void)err;
  return MGRID_OK;
}

static mgrid_outcome dry_create(mgrid_backend *b, size_t n, const mgrid_comm_spec *spec,
                                void **native, mgrid_error *err) {
  (void)b, (void)n, (void)spec, (void)native, (void)err;
  return MGRID_OK;
}

static void dry_destroy(mgrid_backend *b, size_t n, void **native) {
  (void)b, (void)n, (void)native;
}

static mgrid_status dry_check(mgrid_backend *b, size_t n, const mgrid_comm_spec *spec,
                              mgrid_error *err) {
  (void)b, (void)n, (void)spec, (void)err; /* any options will do, because nothing is created */
  return MGRID_OK;
}

static void dry_close(mgrid_backend *b) { free(b); }

mgrid_backend *mgrid_backend_dry(int64_t world, int64_t rank, mgrid_error *err) {
  static const mgrid_backend_ops ops = {
    .allreduce_min = dry_allreduce,
    .allgather = dry_allgather,
    .bcast = dry_bcast,
    .check = dry_check,
    .create = dry_create,
    .destroy = dry_destroy,
    .close = dry_close,
  };

  if (world < 1 || world > MGRID_WORLD_MAX || rank < 0 || rank >= world)
    return mgrid_null(err, MGRID_OUT_OF_RANGE,
                      "rank %" PRId64 " is out of range in a world of %" PRId64, rank, world);
  mgrid_backend *b = calloc(1, sizeof *b);
  if (!b) return mgrid_null_oom(err);
  *b = (mgrid_backend){ .layout = MGRID_LAYOUT,
                        .kind = mgrid_backend_named("dry"),
                        .ops = &ops,
                        .rank = rank,
                        .world = world,
                        .users = 1 };
  /* as if the whole job ran on this node */
  b->spread = (mgrid_rank_spread){ .nodes = 1, .local_size = world, .local_rank = rank };
  return b;
}

/* ============================================================== open by name */

/* The entries of backends whose archives were linked into the program; NULL for others. */
#define LINKED __attribute__((weak, visibility("hidden")))
#define BUILT_IN(backend, ...)
#define ROW(backend, ...) extern const mgrid_backend_entry mgrid_##backend##_entry LINKED;
#include "plan/backend_table.h"
#undef ROW
#undef BUILT_IN

static const mgrid_backend_entry *const linked[] = {
#define BUILT_IN(backend, ...) NULL,
#define ROW(backend, ...)      &mgrid_##backend##_entry,
#include "plan/backend_table.h"
};

/* Return the entry points of a backend, or NULL. */
static const mgrid_backend_entry *backend_entry_of(const mgrid_descriptor *d, mgrid_error *err) {
  char what[64];
  const mgrid_backend_entry *here = linked[d - mgrid_backends];
  snprintf(what, sizeof what, "the %s backend", d->name);
  if (here) return mgrid_layout_check(here->layout, what, err) ? NULL : here;
  return mgrid_library_entry(d->library, 0, d->entry, what, err);
}

/* Open a backend without a carrier. The options are complete. */
static mgrid_backend *backend_open_alone(const mgrid_descriptor *d, const mgrid_backend_options *o,
                                         mgrid_error *err) {
  const mgrid_backend_entry *entry = backend_entry_of(d, err);
  return entry ? entry->open(o, err) : NULL;
}

/* Fail because no backend has this name, or because its backend is opened by another function. */
static mgrid_backend *unknown_name(const char *name, const char *const names[], size_t n,
                                   mgrid_error *err) {
  const mgrid_descriptor *d = mgrid_backend_named(name);
  char tail[128];
  if (d && d->opener)
    return mgrid_null(err, MGRID_USAGE, "the %s backend has no world of its own: use %s", name,
                      d->opener);
  if (d)
    return mgrid_null(err, MGRID_USAGE,
                      "the %s backend stands on no carrier: use mgrid_backend_open", name);
  mgrid_suggest(tail, sizeof tail, name, names, n);
  return mgrid_null(err, MGRID_UNKNOWN_NAME, "unknown backend '%s'%s", name, tail);
}

static mgrid_backend *backend_open_over(mgrid_backend *carrier, const mgrid_descriptor *d,
                                        const mgrid_nccl_options *options, mgrid_error *err) {
  const mgrid_mpi_options mpi = MGRID_MPI_OPTIONS_INIT;
  const mgrid_backend_options usual = { sizeof usual, 0, &mpi };
  mgrid_error why = MGRID_ERROR_INIT;
  mgrid_nccl_options o = MGRID_NCCL_OPTIONS_INIT;
  mgrid_backend *b = NULL;

  if (carrier && mgrid_layout_check(carrier->layout, "the carrier's library", err)) return NULL;
  carrier = carrier ? mgrid_backend_ref(carrier)
                    : backend_open_alone(mgrid_backend_usual(), &usual, err);
  if (!carrier) return NULL;
  if (!carrier->ops->carrier) {
    char text[MGRID_BACKENDS_TEXT];
    mgrid_fail(err, MGRID_USAGE,
               "the %s backend stands on %s, or on a carrier of the host, not on %s", d->name,
               mgrid_backend_list(text, MGRID_BACKENDS_CARRIERS), carrier->kind->name);
  } else {
    const mgrid_backend_entry *entry =
        mgrid_struct_read(&o, sizeof o, options, "mgrid_nccl_options", &why)
                || mgrid_timeout_check(o.timeout, d->name, &why)
            ? NULL
            : backend_entry_of(d, &why);
    /* go on only if the library opened on all ranks */
    mgrid_status s = mgrid_verdict(carrier, why.status, &why, &why);
    if (!s) b = entry->over(carrier, &o, &why);
    if (!b) mgrid_error_pass(err, &why);
  }
  mgrid_backend_free(carrier); /* b is another owner */
  return b;
}

mgrid_backend *mgrid_backend_over(mgrid_backend *carrier, const char *name,
                                  const mgrid_nccl_options *options, mgrid_error *err) {
  const char *known[MGRID_BACKENDS_MAX];
  if (mgrid_lacks(name, "the name of the backend", err)) return NULL;
  const mgrid_descriptor *d = mgrid_backend_named(name);
  if (d && d->carried) return backend_open_over(carrier, d, options, err);
  return unknown_name(name, known, mgrid_backend_names(known, MGRID_BACKENDS_CARRIED), err);
}

mgrid_backend *mgrid_backend_best(mgrid_backend *carrier, const mgrid_nccl_options *options,
                                  mgrid_error *err) {
  mgrid_nccl_options o = MGRID_NCCL_OPTIONS_INIT;
  const mgrid_backend_entry *entry[MGRID_BACKENDS_MAX];
  uint64_t
      all[MGRID_BACKENDS_MAX]; /* 1: this rank can open the backend; after the minimum: all can */
  char text[256];
  mgrid_error why = MGRID_ERROR_INIT;
  size_t n = 0;

  if (options) o = *options; /* no check of the size, because the command is of this version */
  for (const mgrid_descriptor *d = mgrid_backends; d->name; d++) {
    if (!d->gpu) continue;
    mgrid_error_clear(&why);
    entry[n] = backend_entry_of(d, &why);
    all[n] = entry[n] && entry[n]->probe(text, sizeof text, &why) == MGRID_OK;
    n++;
  }
  if (carrier->ops->allreduce_min(carrier, all, n, err)) return NULL;
  for (size_t i = 0; i < n; i++) {
    mgrid_error_clear(&why);
    mgrid_backend *best = all[i] ? entry[i]->over(carrier, &o, &why) : NULL;
    if (best) return best;
  }
  return mgrid_backend_ref(carrier);
}

mgrid_backend *mgrid_backend_open(const char *name, const mgrid_backend_options *options,
                                  mgrid_error *err) {
  mgrid_backend_options o = MGRID_BACKEND_OPTIONS_INIT;
  mgrid_mpi_options mpi = MGRID_MPI_OPTIONS_INIT;
  mgrid_nccl_options over = MGRID_NCCL_OPTIONS_INIT;
  const char *known[1 + MGRID_BACKENDS_MAX] = { "auto" };

  if (mgrid_lacks(name, "the name of the backend", err)) return NULL;
  if (mgrid_struct_read(&o, sizeof o, options, "mgrid_backend_options", err)
      || mgrid_struct_read(&mpi, sizeof mpi, o.mpi, "mgrid_mpi_options", err)
      || mgrid_timeout_check(o.timeout, "the backend", err))
    return NULL;
  o.mpi = &mpi;
  const mgrid_descriptor *d = mgrid_backend_named(name);
  if (d && d->library && !d->carried) return backend_open_alone(d, &o, err);
  if ((d && d->carried) || strcmp(name, known[0]) == 0) {
    mgrid_backend *carrier = backend_open_alone(mgrid_backend_usual(), &o, err), *opened = NULL;
    over.timeout = o.timeout;
    if (carrier)
      opened = d ? backend_open_over(carrier, d, &over, err)
                 : mgrid_backend_best(carrier, &over, err);
    mgrid_backend_free(carrier); /* a backend over it is another owner */
    return opened;
  }
  return unknown_name(name, known, 1 + mgrid_backend_names(known + 1, MGRID_BACKENDS_OPENED), err);
}

mgrid_status mgrid_backend_probe(const mgrid_descriptor *d, char *buf, size_t len,
                                 mgrid_error *err) {
  const mgrid_backend_entry *entry = backend_entry_of(d, err);
  return entry ? entry->probe(buf, len, err) : MGRID_MISSING;
}
