/* SPDX-License-Identifier: MIT
**
** library.c - opens the libraries, and checks that there are a driver and GPUs. Without a driver no
** communicator may be created: ncclCommInitRankConfig would fail, and leave an NCCL group open in
** its thread.
*/
#include "comm/nccl/library.h"

#include <dlfcn.h>
#include <string.h>
#include <unistd.h>

/* Before 2.19 two threads could not abort at the same time (NVIDIA/nccl#992). */
enum { OLDEST = 21900 };

const char *mgrid_nccl_library_text(int version, char text[24]) {
  /* up to 2.8 the format was 2804 */
  int major = version >= 10000 ? version / 10000 : version / 1000;
  int rest = version >= 10000 ? version % 10000 : version % 1000;
  snprintf(text, 24, "%d.%d.%d", major, rest / 100, rest % 100);
  return text;
}

mgrid_status mgrid_nccl_has(const nccl_library *lib, bool found, const char *function, int since,
                            const char *what, mgrid_error *err) {
  char text[24], first[24];
  if (found) return MGRID_OK;
  if (lib->version >= since) /* the library claims to follow a newer NCCL than it does */
    return mgrid_fail(err, MGRID_UNSUPPORTED,
                      "%s needs %s, which this " MAKER_TITLE " %s does not have", what, function,
                      mgrid_nccl_library_text(lib->version, text));
  return mgrid_fail(err, MGRID_UNSUPPORTED,
                    "%s needs %s, which came with NCCL %s; this is " MAKER_TITLE " %s", what,
                    function, mgrid_nccl_library_text(since, first),
                    mgrid_nccl_library_text(lib->version, text));
}

/* Write the address of a function into *function, a pointer to a function of any type. */
static bool library_symbol(void *lib, const char *name, void *function) {
  void *found = dlsym(lib, name);
  if (found) memcpy(function, &found, sizeof found);
  return found != NULL;
}

static void *library_open(const char *file, mgrid_error *err) {
  void *lib = dlopen(file, RTLD_NOW | RTLD_LOCAL);
  if (lib) return lib; /* never closed, because threads of the library may still run */
  const char *why = dlerror();
  return mgrid_null(err, MGRID_MISSING,
                    MAKER ": %s was not found (is its folder in LD_LIBRARY_PATH?): %s", file,
                    why ? why : "unknown reason");
}

/* Return whether the driver is new enough for this runtime. If the major numbers are equal, it
** is. */
static bool library_fits(void *runtime, int major) {
  int driver = 0;
  cudaError_t (*get)(int *) = NULL;
  return library_symbol(runtime, GPU_CALL("DriverGetVersion"), &get) && get(&driver) == cudaSuccess
         && GPU_MAJOR(driver) >= major;
}

/* Open a runtime that fits the driver: one that the process has loaded, else the newest. If none
** fits, return the newest that is installed. If none is installed, the error is about the
** newest. */
static void *open_runtime(char file[32], mgrid_error *err) {
  mgrid_error newest = MGRID_ERROR_INIT;
  int found = 0;
  for (int pass = 0; pass < 2; pass++)
    for (int major = GPU_NEWEST; major >= GPU_OLDEST; major--) {
      snprintf(file, 32, GPU_FILE, major);
      void *lib = pass == 0 ? dlopen(file, RTLD_NOW | RTLD_NOLOAD) : library_open(file, &newest);
      if (lib && library_fits(lib, major)) return lib;
      if (lib && major > found) found = major;
    }
  /* `newest` keeps its first error, which is about the runtime to install */
  if (found == 0) {
    mgrid_error_pass(err, &newest);
    return NULL;
  }
  mgrid_error_clear(&newest);
  snprintf(file, 32, GPU_FILE, found);
  return library_open(file, err);
}

static mgrid_status library_load(nccl_library *lib, mgrid_error *err) {
  char runtime[32];
  void *nccl = library_open(MAKER_FILE, err);

  if (!nccl) return MGRID_MISSING;
#define X(name) \
  if (!library_symbol(nccl, "nccl" #name, &lib->name)) \
    return mgrid_fail(err, MGRID_MISSING, MAKER ": " MAKER_FILE " has no function nccl%s", #name);
  NCCL_FUNCTIONS(X)
#undef X
#define X(name) library_symbol(nccl, "nccl" #name, &lib->name);
  NCCL_OPTIONAL_FUNCTIONS(X)
#undef X
  char text[24], oldest[24], header[24];
  if (lib->GetVersion(&lib->version) != ncclSuccess)
    return mgrid_fail(err, MGRID_BACKEND, MAKER ": ncclGetVersion failed");
  if (lib->version < OLDEST)
    return mgrid_fail(err, MGRID_MISSING,
                      MAKER ": this is " MAKER_TITLE
                            " %s; moongrid needs %s or later (it was built with the headers of "
                            "%s)",
                      mgrid_nccl_library_text(lib->version, text),
                      mgrid_nccl_library_text(OLDEST, oldest),
                      mgrid_nccl_library_text(NCCL_VERSION_CODE, header));
#define X(name, since, parameters) \
  if (lib->version >= since) library_symbol(nccl, "nccl" #name, &lib->name);
  NCCL_NEWER_FUNCTIONS(X)
#undef X
  void *cuda = open_runtime(runtime, err);
  if (!cuda) return MGRID_MISSING;
#define X(name) \
  if (!library_symbol(cuda, GPU_CALL(#name), &lib->cuda##name)) \
    return mgrid_fail(err, MGRID_MISSING, MAKER ": %s has no function %s", runtime, \
                      GPU_CALL(#name));
  CUDA_FUNCTIONS(X)
#undef X
  return MGRID_OK;
}

static mgrid_status probe_driver(nccl_library *lib, mgrid_error *err) {
  char nccl[24];
  int devices = 0; /* a call that fails does not set it */
  cudaError_t driver = lib->cudaDriverGetVersion(&lib->driver), r;

  if (driver != cudaSuccess) lib->driver = 0;
  lib->cudaRuntimeGetVersion(&lib->runtime);
  mgrid_nccl_library_text(lib->version, nccl);
  r = lib->cudaGetDeviceCount(&devices);
  const char *name = lib->cudaGetErrorName(r);
  if (r == cudaErrorStubLibrary)
    return mgrid_fail(
        err, MGRID_MISSING,
        MAKER ": the " GPU_TITLE " driver on host %s is the toolkit's stub library, which works "
              "nowhere (" GPU_CALL("GetDeviceCount") ": %s); " MAKER_TITLE " %s is present",
        lib->node, name, nccl);
  if (lib->driver == 0)
    return mgrid_fail(err, MGRID_MISSING,
                      MAKER ": no " GPU_TITLE " driver on host %s (" GPU_CALL(
                          "GetDeviceCount") ": %s, driver version 0); " MAKER_TITLE
                                            " %s is present",
                      lib->node, name, nccl);
  if (r == cudaErrorInsufficientDriver)
    return mgrid_fail(err, MGRID_MISSING,
                      MAKER ": the " GPU_TITLE " driver on host %s is too old: it knows " GPU_TITLE
                            " %d.%d, the runtime is %d.%d; " MAKER_TITLE " %s is present",
                      lib->node, GPU_MAJOR(lib->driver), GPU_MINOR(lib->driver),
                      GPU_MAJOR(lib->runtime), GPU_MINOR(lib->runtime), nccl);
  if (r != cudaSuccess && r != cudaErrorNoDevice)
    return mgrid_fail(err, MGRID_MISSING,
                      MAKER ": " GPU_CALL("GetDeviceCount") " on host %s: %s (%s); " MAKER_TITLE
                                                            " %s is present",
                      lib->node, name, lib->cudaGetErrorString(r), nccl);
  if (r == cudaErrorNoDevice || devices == 0)
    return mgrid_fail(err, MGRID_MISSING,
                      MAKER ": no GPU is visible on host %s (" GPU_MASK
                            "?); driver %d.%d and " MAKER_TITLE " %s are present",
                      lib->node, GPU_MAJOR(lib->driver), GPU_MINOR(lib->driver), nccl);
  lib->devices = devices;
  return MGRID_OK;
}

mgrid_status mgrid_nccl_open(nccl_library *lib, mgrid_error *err) {
  memset(lib, 0, sizeof *lib);
  if (gethostname(lib->node, sizeof lib->node - 1) != 0) snprintf(lib->node, sizeof lib->node, "?");
  mgrid_status s = library_load(lib, err);
  return s ? s : probe_driver(lib, err);
}
