/* SPDX-License-Identifier: MIT
**
** listing.c - write out members: of a group, of a piece of one, of many groups.
*/
#include "families/family.h"

#include <string.h>

/* Repeat the n ranks at out until they are there `times` times, each time shifted by stride more. */
static void repeat(int32_t *out, int64_t n, int64_t times, int64_t stride) {
  for (int64_t k = 1; k < times; k++) {
    int32_t shift = (int32_t)(k * stride), *to = out + k * n;
    for (int64_t i = 0; i < n; i++) to[i] = out[i] + shift;
  }
}

/* Write the ranks at .. at + n of the list of all groups, one group after the other; the inside modes and
** then the index modes count through that list. A pattern that stays in the nearest cache is made of the
** first modes, and of as many steps of the next mode as there is room for. All else is the pattern shifted,
** so that memory is written once and not read. */
static void strided_slice(const mgrid_strided *s, int64_t at, int64_t n, int32_t *out) {
  enum { PATTERN = 2048 };
  int32_t           pattern[PATTERN];
  const mgrid_mode *mode = s->inside.at, *end = mode + s->inside.n + s->index.n;
  int64_t           most = n < PATTERN ? n : PATTERN, filled = 1;
  pattern[0] = 0;
  for (; mode < end && filled * mode->size <= most; mode++) {
    repeat(pattern, filled, mode->size, mode->stride);
    filled *= mode->size;
  }
  mgrid_mode cut = mode < end ? *mode : (mgrid_mode){ 1, 0 }; /* the mode that the pattern has only some steps of */
  int64_t    steps = cut.size == 1 ? 1 : most / filled, period = filled * steps, span = filled * cut.size;
  repeat(pattern, filled, steps, cut.stride);
  while (n > 0) {
    int64_t base = s->offset, over = at / span, in_span = at % span, i = in_span % period;
    int64_t piece = period - i;
    for (const mgrid_mode *m = mode + 1; m < end; m++) {
      base += over % m->size * m->stride;
      over /= m->size;
    }
    base += in_span / period * steps * cut.stride;
    if (piece > span - in_span) piece = span - in_span;
    if (piece > n) piece = n;
    int32_t shift = (int32_t)base;
    for (int64_t k = 0; k < piece; k++) out[k] = pattern[i + k] + shift;
    at += piece, out += piece, n -= piece;
  }
}

void mgrid_family_slice(const mgrid_family *f, int64_t group, int64_t position, int64_t n, int32_t *out) {
  switch (f->form) {
  case MGRID_STRIDED: strided_slice(&f->as.strided, group * f->size + position, n, out); return;
  case MGRID_TABLE:
    memcpy(out, f->as.table.ranks + f->as.table.starts[group] + position, (size_t)n * sizeof *out);
    return;
  case MGRID_UNION: {
    const mgrid_family *child = mgrid_union_child(f, &group);
    mgrid_family_slice(child, group, position, n, out);
    return;
  }
  case MGRID_ZIP:
    for (size_t i = 0; n > 0; i++) {
      const mgrid_family *child = f->as.parts.child[i];
      int64_t             size = mgrid_family_size(child, group), here = size - position;
      if (here > n) here = n;
      if (here > 0) {
        mgrid_family_slice(child, group, position, here, out);
        out += here, n -= here;
      }
      position = position > size ? position - size : 0;
    }
    return;
  case MGRID_CUT:
    if (!f->as.cut.links) {
      int64_t piece = mgrid_cut_piece(f, &group);
      mgrid_family_slice(f->as.cut.base, group, mgrid_cut_position(f, piece, position), n, out);
      return;
    }
    /* fall through */
  case MGRID_PICKED:
  case MGRID_PAIRS:
    for (int64_t p = 0; p < n; p++) out[p] = (int32_t)mgrid_family_rank(f, group, position + p);
    return;
  }
}

void mgrid_family_members(const mgrid_family *f, int64_t group, int32_t *out) {
  int64_t n = mgrid_family_size(f, group);
  if (n > 0 && out) mgrid_family_slice(f, group, 0, n, out);
}

/* The groups of a picked family are shifted copies of each other. */
static void picked_range(const mgrid_family *f, int64_t group, int64_t n, int32_t *out) {
  const mgrid_strided *base = &f->as.picked.base;
  int64_t              size = f->size, first = mgrid_strided_start(base, group);
  mgrid_family_slice(f, group, 0, size, out);
  for (int64_t g = 1; g < n; g++) {
    int32_t shift = (int32_t)(mgrid_strided_start(base, group + g) - first), *to = out + g * size;
    for (int64_t i = 0; i < size; i++) to[i] = out[i] + shift;
  }
}

int64_t mgrid_family_range(const mgrid_family *f, int64_t group, int64_t n, int32_t *out) {
  if (!f || !out || group < 0 || n < 0 || n > f->count - group) return -1;
  if (n == 0) return 0;
  if (f->form == MGRID_STRIDED) {
    strided_slice(&f->as.strided, group * f->size, n * f->size, out);
    return n * f->size;
  }
  if (f->form == MGRID_PICKED) {
    picked_range(f, group, n, out);
    return n * f->size;
  }
  if (f->form == MGRID_TABLE) {
    const int64_t *starts = f->as.table.starts;
    memcpy(out, f->as.table.ranks + starts[group], (size_t)(starts[group + n] - starts[group]) * sizeof *out);
    return starts[group + n] - starts[group];
  }
  int64_t written = 0;
  for (int64_t g = group; g < group + n;) {
    int64_t             own = g, some = 1;
    const mgrid_family *child = f;
    if (f->form == MGRID_UNION) { /* as many groups as are left of this child */
      child = mgrid_union_child(f, &own);
      some = child->count - own < group + n - g ? child->count - own : group + n - g;
      written += mgrid_family_range(child, own, some, out + written);
    } else {
      int64_t size = mgrid_family_size(f, g);
      mgrid_family_slice(f, g, 0, size, out + written);
      written += size;
    }
    g += some;
  }
  return written;
}
