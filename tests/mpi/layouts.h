/* SPDX-License-Identifier: MIT
**
** layouts.h - random layouts of tensors, and the parts of a rank in them. A formula gives each
** element its value, and behind each part are bytes that a move may not change.
*/
#ifndef TESTS_LAYOUTS_H
#define TESTS_LAYOUTS_H

#include "../c/random.h" /* before tap.h: functions of these have a `size` of their own */
#include "comm/backend.h"
#include "moongrid_mpi.h"
#include "tap.h"

#include <stdlib.h>
#include <string.h>

enum { TENSORS = 3, AXES = 3, GUARD = 16, LONGEST = 600 };
static const char *const dim_names[] = { "x", "y", "z" };
static const char *const tensor_names[] = { "a", "b", "c" };
static const char *const axis_names[] = { "i", "j", "k" };
static const char *const types[] = { "f64", "bf16", "f8_e4m3" };
static const int64_t widths[] = { 8, 2, 1 };

/* A grid of three dims over `ranks` from `offset`, and the tensors with these axes cut over it
** somehow. */
static mgrid_plan *layout(rng *r, int64_t offset, int64_t ranks, int64_t (*length)[AXES],
                          int ntensors, mgrid_error *e) {
  mgrid_window w = { size, offset, ranks };
  int64_t x = rng_divisor(r, ranks), y = rng_divisor(r, ranks / x);
  mgrid_dim dims[] = { { "x", x }, { "y", y }, { "z", ranks / x / y } };
  mgrid_grid *g = mgrid_grid_new(w, 3, dims, e);
  mgrid_topology *t = mgrid_topology_new(size, e);
  for (int k = 0; k < ntensors; k++) {
    mgrid_tensor_axis axis[AXES];
    int64_t owners[AXES][LONGEST];
    size_t order[] = { 0, 1, 2 };
    rng_shuffle(r, 3, order);
    for (int i = 0; i < AXES; i++) {
      axis[i] = (mgrid_tensor_axis)MGRID_TENSOR_AXIS_INIT;
      axis[i].name = axis_names[i];
      axis[i].length = length[k][i];
      axis[i].ndims = rng_chance(r, 70);
      axis[i].dims = &dim_names[order[i]];
      axis[i].cutting = (mgrid_cutting)rng_between(r, 0, 3);
      axis[i].block = rng_between(r, 1, 4);
      /* which would be many numbers: by owners instead */
      if (axis[i].cutting != MGRID_CUT_BOUNDS) continue;
      axis[i].cutting = MGRID_CUT_OWNERS;
      axis[i].nowners = (size_t)axis[i].length;
      axis[i].owners = owners[i];
      for (int64_t n = 0; n < axis[i].length; n++)
        owners[i][n] = rng_between(r, 0, dims[order[i]].size - 1);
    }
    mgrid_tensor *tensor = mgrid_tensor_new(g, types[k], AXES, axis, NULL, e);
    mgrid_topology_add_tensor(t, tensor_names[k], tensor, e);
    mgrid_tensor_free(tensor);
  }
  mgrid_plan *p = mgrid_plan_new(t, e);
  mgrid_topology_free(t);
  mgrid_grid_free(g);
  return p;
}

/* The bytes of an element, by its index in the whole. */
static uint64_t element(int tensor, int64_t index) {
  rng r = rng_new((uint64_t)index * TENSORS + (uint64_t)tensor + 1);
  return rng_next(&r);
}

/* Fill this rank's part, or count the elements that are wrong. */
static int64_t walk(const mgrid_plan *p, int k, const int64_t *length, char *data, bool check,
                    mgrid_error *e) {
  mgrid_run runs[AXES][LONGEST];
  int64_t n[AXES], wrong = 0, offset = 0;
  for (size_t i = 0; i < AXES; i++)
    n[i] = mgrid_tensor_runs(p, tensor_names[k], rank, i, LONGEST, runs[i], e);
  for (int64_t a = 0; a < n[0]; a++)
    for (int64_t i = runs[0][a].start; i < runs[0][a].start + runs[0][a].length; i++)
      for (int64_t b = 0; b < n[1]; b++)
        for (int64_t j = runs[1][b].start; j < runs[1][b].start + runs[1][b].length; j++)
          for (int64_t c = 0; c < n[2]; c++)
            for (int64_t q = runs[2][c].start; q < runs[2][c].start + runs[2][c].length;
                 q++, offset++) {
              uint64_t value = element(k, (i * length[1] + j) * length[2] + q);
              char *at = data + offset * widths[k];
              if (check)
                wrong += memcmp(at, &value, (size_t)widths[k]) != 0;
              else
                memcpy(at, &value, (size_t)widths[k]);
            }
  return wrong;
}

typedef struct parts {
  mgrid_buffer buffer[TENSORS]; /* GUARD bytes more than the part */
  int64_t bytes[TENSORS];
} parts;

static parts make_parts(const mgrid_plan *p, int ntensors, int64_t (*length)[AXES], bool fill,
                        mgrid_error *e) {
  parts out;
  for (int k = 0; k < ntensors; k++) {
    mgrid_tensor_part part = MGRID_TENSOR_PART_INIT;
    mgrid_tensor_local(p, tensor_names[k], rank, &part, e);
    out.bytes[k] = part.bytes;
    out.buffer[k] = (mgrid_buffer){ malloc((size_t)part.bytes + GUARD), part.bytes + GUARD };
    memset(out.buffer[k].data, 0x5a, (size_t)out.buffer[k].bytes);
    if (fill && part.bytes) walk(p, k, length[k], out.buffer[k].data, false, e);
  }
  return out;
}

static bool guards_are_whole(const parts *p, int ntensors) {
  bool ok = true;
  for (int k = 0; k < ntensors; k++)
    for (int64_t i = p->bytes[k]; i < p->buffer[k].bytes; i++)
      ok &= ((char *)p->buffer[k].data)[i] == 0x5a;
  return ok;
}

static void free_parts(parts *p, int ntensors) {
  for (int k = 0; k < ntensors; k++) free(p->buffer[k].data);
}

#endif
