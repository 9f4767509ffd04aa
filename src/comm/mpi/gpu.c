/* SPDX-License-Identifier: MIT
**
** gpu.c - moves of parts in GPU memory. A CUDA-aware MPI sends from and receives into it directly; packing uses the CUDA
** runtime that the process has loaded. This library is built without CUDA's headers, so the few functions are declared
** here.
*/
#include "comm/mpi/mpi.h"

#include <dlfcn.h>
#include <string.h>

enum { ON_DEVICE = 2, ANY_DIRECTION = 4, PITCH_MOST = INT32_MAX }; /* cudaMemoryTypeDevice, cudaMemcpyDefault */

/* cudaPointerAttributes begins like this in every version since CUDA 11, and may grow. */
typedef struct attributes {
  int  type, device;
  char rest[248];
} attributes;

static void *runtime(void) {
  static const char *const files[] = { "libcudart.so.13", "libcudart.so.12", "libcudart.so.11.0" };
  for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
    void *lib = dlopen(files[i], RTLD_NOW | RTLD_NOLOAD);
    if (lib) return lib; /* keep this reference while the process lives */
  }
  return NULL;
}

static bool symbol(void *lib, const char *name, void *function) {
  void *found = dlsym(lib, name);
  if (found) memcpy(function, &found, sizeof found);
  return found != NULL;
}

static bool is_cuda_aware(void) {
  int (*query)(void) = NULL;
  return symbol(RTLD_DEFAULT, "MPIX_Query_cuda_support", &query) && query() == 1;
}

static void look_for_runtime(mpi_backend *m) {
  if (!m->cuda.looked) m->cuda.lib = runtime(), m->cuda.looked = true;
}

mgrid_status mgrid_mpi_reaches(mgrid_backend *b, const void *data, const char *what, mgrid_error *err) {
  mpi_backend *m = (mpi_backend *)b;
  attributes   of = { 0 };
  int (*ask)(attributes *, const void *) = NULL;
  look_for_runtime(m);
  if (!m->cuda.lib || !symbol(m->cuda.lib, "cudaPointerGetAttributes", &ask) || ask(&of, data) != 0
      || of.type != ON_DEVICE)
    return MGRID_OK;
  if (is_cuda_aware() && symbol(m->cuda.lib, "cudaMemcpy2D", &m->cuda.copy)) {
    m->cuda.used = true;
    return MGRID_OK;
  }
  return mgrid_fail(err, MGRID_UNSUPPORTED,
                    "%s is in memory of GPU %d, which this MPI does not reach, since it is not CUDA-aware; the nccl "
                    "backend moves it",
                    what, of.device);
}

bool mgrid_mpi_copies(mgrid_backend *b) { return ((mpi_backend *)b)->cuda.used; }

/* The copy has ended when the call returns, because MPI knows no streams. */
mgrid_status mgrid_mpi_copy(mgrid_backend *b, const mgrid_slab *s, mgrid_error *err) {
  mpi_backend *m = (mpi_backend *)b;
  bool         rows = s->stride > PITCH_MOST; /* row by row */
  for (int64_t k = 0; k < s->planes; k++)
    for (int64_t i = 0; i < (rows ? s->count : 1); i++) {
      char  *apart = s->apart + k * s->plane_stride + i * s->stride, *packed = s->packed + (k * s->count + i) * s->row;
      size_t row = (size_t)s->row, pitch = rows || s->count == 1 ? row : (size_t)s->stride;
      int    e = m->cuda.copy(s->pack ? packed : apart, s->pack ? row : pitch, s->pack ? apart : packed,
                           s->pack ? pitch : row, row, rows ? 1 : (size_t)s->count, ANY_DIRECTION);
      if (e) return mgrid_fail(err, MGRID_BACKEND, "mpi: cudaMemcpy2D for a move failed with error %d", e);
    }
  return MGRID_OK;
}
