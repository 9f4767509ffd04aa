/* SPDX-License-Identifier: MIT
**
** strided.c - copies of rows that are apart, between places in device memory, and what memory a pointer is in. As hard
** as CUDA: a pitch is at least a row and below 2 GiB, and every byte of a row lies in a live allocation.
*/
#include "cudart.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef struct slab {
  char       *to;
  const char *from;
  size_t      row, rows, planes;    /* bytes, and how many */
  size_t      to_pitch, from_pitch; /* bytes from row to row */
  size_t      to_plane, from_plane; /* and from plane to plane */
} slab;

static cudaError_t copy_slab(void *arg) {
  slab *s = arg;
  for (size_t k = 0; k < s->planes; k++)
    for (size_t i = 0; i < s->rows; i++)
      memcpy(s->to + k * s->to_plane + i * s->to_pitch, s->from + k * s->from_plane + i * s->from_pitch, s->row);
  free(s);
  return cudaSuccess;
}

/* From the first byte to the last. */
static bool lives(const char *at, const slab *s, size_t pitch, size_t plane) {
  return cuda_live(at, (s->planes - 1) * plane + (s->rows - 1) * pitch + s->row);
}

static cudaError_t submit(const char *call, slab s, enum cudaMemcpyKind kind, cudaStream_t stream, bool wait) {
  cudaError_t e = standin_driver();
  if (e || s.row == 0 || s.rows == 0 || s.planes == 0) return cuda_answer(e);
  if (kind != cudaMemcpyDeviceToDevice && kind != cudaMemcpyDefault)
    return cuda_wrong(cudaErrorInvalidValue, "%s: kind %d is not played", call, (int)kind);
  if (s.to_pitch < s.row || s.from_pitch < s.row || s.to_pitch > INT32_MAX || s.from_pitch > INT32_MAX)
    return cuda_wrong(cudaErrorInvalidPitchValue, "%s: rows of %zu bytes, pitches %zu and %zu", call, s.row, s.to_pitch,
                      s.from_pitch);
  bool any = kind == cudaMemcpyDefault, to = any || lives(s.to, &s, s.to_pitch, s.to_plane);
  if (!to || (!any && !lives(s.from, &s, s.from_pitch, s.from_plane)))
    return cuda_wrong(cudaErrorInvalidValue,
                      "%s of %zu x %zu x %zu bytes: the %s is no live device memory; real CUDA would fault here", call,
                      s.planes, s.rows, s.row, to ? "source" : "target");
  slab *kept = malloc(sizeof *kept);
  if (!kept) return cuda_answer(cudaErrorMemoryAllocation);
  *kept = s;
  return cuda_answer(cuda_submit(stream, copy_slab, kept, wait));
}

SI_API cudaError_t cudaMemcpy2DAsync(void *dst, size_t dpitch, const void *src, size_t spitch, size_t width,
                                     size_t height, enum cudaMemcpyKind kind, cudaStream_t stream) {
  return submit("cudaMemcpy2DAsync", (slab){ dst, src, width, height, 1, dpitch, spitch, 0, 0 }, kind, stream, false);
}

SI_API cudaError_t cudaMemcpy2D(void *dst, size_t dpitch, const void *src, size_t spitch, size_t width, size_t height,
                                enum cudaMemcpyKind kind) {
  return submit("cudaMemcpy2D", (slab){ dst, src, width, height, 1, dpitch, spitch, 0, 0 }, kind, NULL, true);
}

SI_API cudaError_t cudaMemcpy3DAsync(const struct cudaMemcpy3DParms *p, cudaStream_t stream) {
  if (!p || p->srcArray || p->dstArray || p->srcPos.x || p->srcPos.y || p->srcPos.z || p->dstPos.x || p->dstPos.y
      || p->dstPos.z)
    return cuda_wrong(cudaErrorInvalidValue, "cudaMemcpy3DAsync: arrays and positions are not played");
  if (p->srcPtr.ysize < p->extent.height || p->dstPtr.ysize < p->extent.height)
    return cuda_wrong(cudaErrorInvalidValue, "cudaMemcpy3DAsync: planes of %zu and %zu rows, %zu to copy",
                      p->srcPtr.ysize, p->dstPtr.ysize, p->extent.height);
  return submit("cudaMemcpy3DAsync",
                (slab){ p->dstPtr.ptr, p->srcPtr.ptr, p->extent.width, p->extent.height, p->extent.depth,
                        p->dstPtr.pitch, p->srcPtr.pitch, p->dstPtr.pitch * p->dstPtr.ysize,
                        p->srcPtr.pitch * p->srcPtr.ysize },
                p->kind, stream, false);
}

/* Memory that CUDA does not know is no error, but of no type. */
SI_API cudaError_t cudaPointerGetAttributes(struct cudaPointerAttributes *a, const void *p) {
  cudaError_t e = standin_driver();
  if (!e && !a) e = cudaErrorInvalidValue;
  if (e) return cuda_answer(e);
  *a = (struct cudaPointerAttributes){ .type = cudaMemoryTypeUnregistered, .device = -2 };
  for (int d = 0; d < SI_MAX_DEVICE; d++)
    if (standin_on_device(p, 1, d)) {
      *a = (struct cudaPointerAttributes){ .type = cudaMemoryTypeDevice, .device = d };
      a->devicePointer = (void *)(uintptr_t)p;
    }
  return cudaSuccess;
}
