/* SPDX-License-Identifier: MIT
**
** move_prove.c - proves a move: runs it with elements whose values identify tensor and index, and
** checks each element that arrives.
*/
#include "comm/backend.h"
#include "comm/compare.h"
#include "comm/state.h"
#include "tensors/between_plans.h"
#include "tensors/chunks.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

/* A rank's part of a tensor before or after the move. The index of an element is its index in the
** whole tensor. */
typedef struct part {
  const mgrid_tensor *tensor;
  int64_t number; /* the tensor's index in the move */
  /* of a part after the move, if the type changes: bytes of an element before the move; else 0 */
  int64_t was;
  int64_t shape[MGRID_AXES_MAX];  /* all 0: the rank holds nothing */
  int64_t stride[MGRID_AXES_MAX]; /* strides of the whole tensor, in elements */
  int64_t *index[MGRID_AXES_MAX]; /* [shape]: the part's indices on each axis */
  int64_t first, bytes;           /* the range of the part that the rank has; without a flat, all */
  void *host, *buffer;            /* in the CPU's and in the backend's memory, maybe the same */
} part;

/* Return the value of element `index` before the move. */
static uint64_t stamp(int64_t tensor, int64_t index) {
  uint64_t x = (uint64_t)index + (uint64_t)(tensor + 1) * UINT64_C(0x9e3779b97f4a7c15);
  x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
  x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
  return x ^ x >> 31;
}

/* Write element `index` in the type of the part. */
static void element(const part *p, int64_t index, char bytes[16]) {
  uint64_t value = stamp(p->number, index);
  memcpy(bytes, &value, sizeof value);
  memcpy(bytes + sizeof value, &value, sizeof value);
  if (p->was == 0) return;
  uint32_t wide = (uint32_t)value;
  uint16_t narrow = (uint16_t)value;
  if (p->was == (int64_t)sizeof wide) {
    narrow = mgrid_bf16_of(wide);
    memcpy(bytes, &narrow, sizeof narrow);
  } else {
    wide = mgrid_f32_of(narrow);
    memcpy(bytes, &wide, sizeof wide);
  }
}

/* Write the elements of the part, or if `check` compare them. Return the offset of the first wrong
** element and set *wrong to its index, or return -1. */
static int64_t part_walk(const part *p, bool check, int64_t *wrong) {
  const mgrid_tensor *t = p->tensor;
  size_t last = t->naxes - 1;
  int64_t at[MGRID_AXES_MAX] = { 0 }, width = t->width, offset = 0;
  char *to = p->host;

  for (int64_t i = (int64_t)last, rest = p->first; i >= 0 && p->bytes > 0; rest /= p->shape[i--])
    at[i] = rest % p->shape[i];
  while (offset * width < p->bytes) {
    int64_t base = 0;
    for (size_t i = 0; i < last; i++) base += p->index[i][at[i]] * p->stride[i];
    for (int64_t k = at[last]; k < p->shape[last] && offset * width < p->bytes; k++, offset++) {
      char bytes[16];
      element(p, base + p->index[last][k], bytes);
      char *place = to + offset * width;
      if (!check) {
        memcpy(place, bytes, (size_t)width);
      } else if (memcmp(place, bytes, (size_t)width) != 0) {
        *wrong = base + p->index[last][k];
        return offset;
      }
    }
    at[last] = 0;
    for (size_t i = last; i-- > 0 && ++at[i] == p->shape[i];) at[i] = 0;
  }
  return -1;
}

static mgrid_status open_part(part *p, const mgrid_tensor *t, const mgrid_coords *coords,
                              mgrid_error *err) {
  int64_t stride = 1;

  p->tensor = t;
  if (coords) {
    mgrid_run range = mgrid_tensor_range(t, coords);
    p->first = range.start;
    p->bytes = range.length * t->width;
  }
  for (size_t i = t->naxes; i-- > 0;) {
    p->stride[i] = stride;
    stride *= mgrid_tensor_length(t, i);
    if (!coords) continue;
    int64_t n = 0;
    p->shape[i] = mgrid_piece_size(&t->axis[i], coords->piece[i]);
    if (!(p->index[i] = malloc(((size_t)p->shape[i] + 1) * sizeof *p->index[i])))
      return mgrid_oom(err);
    mgrid_run run;
    mgrid_walk w = mgrid_walk_begin(&t->axis[i], coords->piece[i]);
    while (mgrid_walk_next(&w, &run))
      for (int64_t k = 0; k < run.length; k++) p->index[i][n++] = run.start + k;
  }
  return MGRID_OK;
}

/* Allocate the part in the backend's memory. If the CPU cannot use that memory, or the backend has
** none, also allocate it in the CPU's memory. */
static mgrid_status open_memory(part *p, mgrid_backend *b, mgrid_error *err) {
  if (p->bytes == 0) return MGRID_OK;
  if (b->ops->buffer_new && !(p->buffer = b->ops->buffer_new(b, b->kind, (size_t)p->bytes, err)))
    return err->status;
  p->host = p->buffer && !b->kind->gpu ? p->buffer : malloc((size_t)p->bytes);
  return p->host ? MGRID_OK : mgrid_oom(err);
}

/* `ours`: the transport no longer writes to the buffers. */
static void close_parts(part *p, size_t n, mgrid_backend *b, bool ours) {
  for (size_t k = 0; k < n; k++) {
    for (size_t i = 0; i < MGRID_AXES_MAX; i++) free(p[k].index[i]);
    if (p[k].host != p[k].buffer) free(p[k].host);
    if (p[k].buffer && ours) b->ops->buffer_free(b, b->kind, p[k].buffer);
  }
}

static mgrid_status open_side(part *p, const mgrid_move *m, bool from, mgrid_backend *b,
                              mgrid_error *err) {
  for (size_t i = 0; i < m->pairs.n; i++) {
    const mgrid_pair *pair = &m->pairs.pair[i];
    mgrid_coords coords;
    bool held = from ? mgrid_pair_held(pair, m->rank, &coords)
                     : mgrid_pair_coords(pair, m->rank, &coords);
    p[i].number = (int64_t)i;
    if (mgrid_pairs_converts(&m->pairs, i) && !from)
      p[i].was = mgrid_pairs_tensor(&m->pairs, i, true)->width;
    mgrid_status s =
        open_part(&p[i], mgrid_pairs_tensor(&m->pairs, i, from), held ? &coords : NULL, err);
    if (!s) s = open_memory(&p[i], b, err);
    if (!s && p[i].bytes && from) part_walk(&p[i], false, NULL);
    if (!s && p[i].bytes && from && p[i].buffer && p[i].host != p[i].buffer)
      s = b->ops->copy(b, b->kind, p[i].buffer, p[i].host, (size_t)p[i].bytes, true, err);
    if (s) return s;
  }
  return MGRID_OK;
}

static mgrid_status check_part(const part *p, const mgrid_move *m, mgrid_backend *b,
                               mgrid_error *err) {
  mgrid_text text = { 0 };
  int64_t wrong = 0;
  mgrid_status s = MGRID_OK;
  if (p->bytes == 0) return s;
  if (p->buffer && p->host != p->buffer)
    s = b->ops->copy(b, b->kind, p->host, p->buffer, (size_t)p->bytes, false, err);
  if (s || part_walk(p, true, &wrong) < 0) return s;
  for (size_t i = 0; i < p->tensor->naxes; i++)
    mgrid_text_add(&text, "%s%s %" PRId64, i ? ", " : "", mgrid_tensor_axis_name(p->tensor, i),
                   wrong / p->stride[i] % mgrid_tensor_length(p->tensor, i));
  s = mgrid_fail(err, MGRID_UNPROVED,
                 "tensor '%s': element %s is wrong after the move on rank %" PRId64,
                 m->pairs.name[p->number], mgrid_text_chars(&text), m->rank);
  mgrid_text_free(&text);
  return s;
}

mgrid_status mgrid_move_prove(const mgrid_move *m, mgrid_backend *b,
                              const mgrid_move_run_options *options, mgrid_error *err) {
  if (!b || mgrid_layout_check(b->layout, "the backend's library", err))
    return b ? MGRID_MISSING : MGRID_USAGE;
  mgrid_error mine = MGRID_ERROR_INIT;
  size_t n = mgrid_move_ntensors(m);
  part *from = calloc(2 * n + 1, sizeof *from), *to = from ? from + n : NULL;
  mgrid_buffer *buffer = calloc(2 * n + 1, sizeof *buffer);
  mgrid_status s = from && buffer ? MGRID_OK : mgrid_oom(&mine);
  if (!m && err) s = mgrid_error_pass(&mine, err);
  if (m && m->sums.missing && !s)
    s = mgrid_fail(
        &mine, MGRID_REFUSED,
        "rank %" PRId64 " needs %" PRId64
        " bytes of which no copy is left: to prove the move, plan it without the tensors "
        "of these bytes",
        m->rank, m->sums.missing);
  if (m && !s) s = open_side(from, m, true, b, &mine);
  if (m && !s) s = open_side(to, m, false, b, &mine);
  for (size_t i = 0; i < 2 * n && !s; i++)
    buffer[i] = (mgrid_buffer){ from[i].buffer ? from[i].buffer : from[i].host, from[i].bytes };

  /* A rank that has failed takes part without a move, and all get its error. */
  bool begun;
  s = mgrid_move_begin(s ? NULL : m, b, buffer, buffer ? buffer + n : NULL, options, &begun, &mine);
  bool moved = !s, ours = moved || !begun;
  for (size_t i = 0; i < n && !s; i++) s = check_part(&to[i], m, b, &mine);
  if (moved) s = mgrid_verdict(b, s, &mine, &mine);
  if (from) close_parts(from, 2 * n, b, ours);
  free(from);
  free(buffer);
  return s ? mgrid_error_pass(err, &mine) : MGRID_OK;
}
