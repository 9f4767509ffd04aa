/* SPDX-License-Identifier: MIT
**
** copy.c - what streams do: copies and fills of lines, rows and planes, functions of the host,
** waits for a value in memory and writes of one.
*/
#include "rig.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

typedef struct task {
  rig_slab slab;
  char *stage; /* a copy of pageable memory as it was when the call was made */
} task;

/* Zeros in whole pages are given back to the system: NCCL clears much that it never uses. */
static void fill(char *at, int value, size_t n) {
  uintptr_t first = RIG_ROUND((uintptr_t)at, RIG_PAGE), end = ((uintptr_t)at + n) & ~(RIG_PAGE - 1);
  if (!value && end > first + 16 * RIG_PAGE && !madvise((void *)first, end - first, MADV_REMOVE)) {
    memset(at, 0, first - (uintptr_t)at);
    memset((void *)end, 0, (uintptr_t)at + n - end);
  } else
    memset(at, value, n);
}

/* What lies behind one line of a copy or a fill; a multicast object has several. */
static void line(char *to, const char *from, int value, size_t n) {
  rig_block b;
  if (rig_find(to, &b) && b.write)
    b.write(b.physical, (size_t)(to - b.at), from, value, n);
  else if (from)
    memmove(to, from, n);
  else
    fill(to, value, n);
}

static void work(void *arg) {
  task *t = arg;
  const rig_slab *s = &t->slab;
  for (size_t k = 0; k < s->planes; k++)
    for (size_t i = 0; i < s->rows; i++) {
      const char *from = s->from ? s->from + k * s->from_plane + i * s->from_pitch : NULL;
      line(s->to + k * s->to_plane + i * s->to_pitch, from, s->value, s->row);
    }
  free(t->stage);
  free(t);
}

int rig_copy(rig_slab slab, CUstream stream, bool wait) {
  rig_block b;
  if (!slab.row || !slab.rows || !slab.planes)
    return wait                                                    ? 0
           : rig_stream_query(stream) == CUDA_ERROR_INVALID_HANDLE ? CUDA_ERROR_INVALID_HANDLE
                                                                   : 0;
  if ((slab.rows > 1 && slab.to_pitch < slab.row)
      || (slab.from && slab.rows > 1 && slab.from_pitch < slab.row))
    return CUDA_ERROR_INVALID_VALUE;
  /* reading needs a kernel */
  if (slab.from && rig_find(slab.from, &b) && b.write) return CUDA_ERROR_NOT_SUPPORTED;
  task *t = calloc(1, sizeof *t);
  if (!t) return CUDA_ERROR_OUT_OF_MEMORY;
  t->slab = slab;
  if (!wait && slab.from && slab.rows == 1 && slab.planes == 1 && !rig_find(slab.from, &b)) {
    t->stage = malloc(slab.row);
    if (!t->stage) return free(t), CUDA_ERROR_OUT_OF_MEMORY;
    t->slab.from = memcpy(t->stage, slab.from, slab.row);
  }
  int e = rig_submit(stream, work, t, false);
  if (e) {
    free(t->stage);
    free(t);
  }
  return e || !wait ? e : rig_stream_wait(stream);
}

int rig_copy_line(void *to, const void *from, size_t bytes, CUstream stream, bool wait) {
  if (bytes && (!to || !from)) return CUDA_ERROR_INVALID_VALUE;
  return rig_copy((rig_slab){ .to = to, .from = from, .row = bytes, .rows = 1, .planes = 1 },
                  stream, wait);
}

int rig_set(void *at, int value, size_t bytes, CUstream stream, bool wait) {
  rig_block b;
  if (bytes && (!rig_find(at, &b) || (size_t)((char *)at - b.at) + bytes > b.bytes))
    return CUDA_ERROR_INVALID_VALUE;
  return rig_copy((rig_slab){ .to = at, .value = value, .row = bytes, .rows = 1, .planes = 1 },
                  stream, wait);
}

/* ---------------------------------------------------------------- functions of the host */

typedef struct call {
  void (*function)(void *);
  void *arg;
} call;

static void make_call(void *arg) {
  call c = *(call *)arg;
  free(arg);
  c.function(c.arg);
}

/* Never on the caller's thread, which may hold what the function wants. */
int rig_host_function(CUstream stream, void (*function)(void *), void *arg) {
  call *c = function ? malloc(sizeof *c) : NULL;
  if (!c) return function ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_ERROR_INVALID_VALUE;
  *c = (call){ function, arg };
  int e = rig_submit(stream, make_call, c, true);
  if (e) free(c);
  return e;
}

/* -------------------------------------------------------------------- values in memory */

typedef struct value {
  uint64_t at, value;
  unsigned flags;
  int bits;
} value;

static bool holds(const value *v) {
  const void *at = (const void *)(uintptr_t)v->at;
  uint64_t x = v->bits == 32 ? __atomic_load_n((const uint32_t *)at, __ATOMIC_ACQUIRE)
                             : __atomic_load_n((const uint64_t *)at, __ATOMIC_ACQUIRE);
  uint64_t apart = x - v->value, sign = (uint64_t)1 << (v->bits - 1);
  uint64_t mask = v->bits == 32 ? UINT32_MAX : UINT64_MAX;
  switch (v->flags & 3) {
  case CU_STREAM_WAIT_VALUE_GEQ: return !(apart & sign);
  case CU_STREAM_WAIT_VALUE_EQ: return !(apart & mask);
  case CU_STREAM_WAIT_VALUE_AND: return x & v->value & mask;
  default: return ~(x | v->value) & mask;
  }
}

static void wait_value(void *arg) {
  struct timespec nap = { 0, 50000 };
  for (int spins = 0; !holds(arg); spins++)
    if (spins > 1000) nanosleep(&nap, NULL);
  free(arg);
}

static void write_value(void *arg) {
  value *v = arg;
  void *at = (void *)(uintptr_t)v->at;
  rig_block b;
  uint32_t low = (uint32_t)v->value;
  if (rig_find(at, &b) && b.write)
    b.write(b.physical, (size_t)((char *)at - b.at),
            v->bits == 32 ? (void *)&low : (void *)&v->value, 0, (size_t)v->bits / 8);
  else if (v->bits == 32)
    __atomic_store_n((uint32_t *)at, (uint32_t)v->value, __ATOMIC_RELEASE);
  else
    __atomic_store_n((uint64_t *)at, v->value, __ATOMIC_RELEASE);
  free(arg);
}

int rig_value(CUstream stream, uint64_t at, uint64_t what, unsigned flags, int bits, bool write) {
  rig_block b;
  if (at % (unsigned)(bits / 8) || !rig_find((const void *)(uintptr_t)at, &b))
    return CUDA_ERROR_INVALID_VALUE;
  if (!write && flags & ~3u) return CUDA_ERROR_NOT_SUPPORTED; /* flushing of remote writes */
  value *v = malloc(sizeof *v);
  if (!v) return CUDA_ERROR_OUT_OF_MEMORY;
  *v = (value){ at, what, flags, bits };
  bool may_wait = !write && !holds(v);
  int e = rig_submit(stream, write ? write_value : wait_value, v, may_wait);
  if (e) free(v);
  return e;
}
