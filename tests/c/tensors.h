/* SPDX-License-Identifier: MIT
**
** tensors.h - random tensors, and what each rank holds of them by plain dealing: lists of indices
** are cut by loops that count, without a division of the library.
*/
#ifndef TEST_TENSORS_H
#define TEST_TENSORS_H

#include "random.h"

#include "tensors/move.h"

enum {
  DEALT_AXES = 3,
  DEALT_LENGTH = 24,
  DEALT_WORLD = 96,
  DEALT_ELEMENTS = DEALT_LENGTH * DEALT_LENGTH
};

typedef struct dealt_axis {
  mgrid_tensor_axis given;
  const char *dims[DRAWN_DIMS];
  int64_t shared; /* pieces that get the same unit */
  int64_t parts[4], bounds[DEALT_WORLD * 4 + 1], owners[DEALT_LENGTH];
} dealt_axis;

typedef struct dealt {
  drawn d;
  mgrid_tensor *tensor;
  size_t naxes;
  dealt_axis axis[DEALT_AXES];
  bool on[DEALT_WORLD];                            /* by rank: holds it at all */
  bool has[DEALT_AXES][DEALT_WORLD][DEALT_LENGTH]; /* by axis, rank and index */
  bool flat;                                       /* then this, too: */
  bool slice[DEALT_WORLD][DEALT_ELEMENTS]; /* by rank and element: is it in the rank's slice? */
  int64_t first[DEALT_WORLD], offset[DEALT_WORLD], each[DEALT_WORLD];
} dealt;

static inline void dealt_free(dealt *t) {
  mgrid_tensor_free(t->tensor);
  mgrid_grid_free(t->d.grid);
}

/* ------------------------------------------------------------------- dealing */

/* Keep of the n indices those that coordinate c of k gets; returns how many. */
static inline int64_t deal(const dealt_axis *a, int64_t n, int64_t *index, int64_t k, int64_t c) {
  int64_t size[DEALT_WORLD] = { 0 }, unit = a->given.unit ? a->given.unit : 1, kept = 0;
  if (a->given.cutting == MGRID_CUT_CYCLIC) {
    int64_t who = 0, in = 0;
    for (int64_t i = 0; i < n; i++) {
      if (i > 0 && (in == a->given.block || index[i] != index[i - 1] + 1))
        who = (who + 1) % k, in = 0;
      if (who == c) index[kept++] = index[i];
      in++;
    }
    return kept;
  }
  if (a->given.cutting == MGRID_CUT_EVEN) {
    for (int64_t i = 0; i < n / unit; i++) size[i % k] += unit;
  } else {
    int64_t each = 0;
    while (each * k < n / unit) each++;
    for (int64_t i = 0, left = n; i < k; i++) {
      size[i] = left < each * unit ? left : each * unit;
      left -= size[i];
    }
  }
  int64_t from = 0;
  for (int64_t i = 0; i < c; i++) from += size[i];
  for (int64_t i = 0; i < size[c]; i++) index[kept++] = index[from + i];
  return kept;
}

/* The blocks of an axis that were dealt before stay apart: index lists of a cyclic axis are of
** whole blocks, with gaps between. */
static inline void deal_axis(dealt *t, size_t at, int64_t rank, const int64_t *place,
                             const int64_t *count) {
  const dealt_axis *a = &t->axis[at];
  int64_t part[5] = { 0, a->given.length }, nparts = 1;
  if (a->given.ndims && a->given.nparts) {
    nparts = (int64_t)a->given.nparts;
    for (int64_t i = 0; i < nparts; i++) part[i + 1] = part[i] + a->parts[i];
  }
  for (int64_t p = 0; p < nparts; p++) {
    int64_t index[DEALT_LENGTH], n = 0, piece = 0;
    for (int64_t i = part[p]; i < part[p + 1]; i++) index[n++] = i;
    for (size_t k = 0; k < a->given.ndims; k++) {
      size_t d = 0;
      while (strcmp(t->d.dim[d].name, a->dims[k]) != 0) d++;
      piece = piece * count[d] + place[d];
      if (a->given.cutting < MGRID_CUT_BOUNDS && a->shared <= 1)
        n = deal(a, n, index, count[d], place[d]);
    }
    if (a->shared > 1) { /* the unit of this piece alone */
      n = a->given.unit;
      memmove(index, index + piece / a->shared * n, (size_t)n * sizeof *index);
    }
    for (int64_t i = 0; i < n; i++) {
      bool mine = true;
      if (a->given.ndims > 0 && a->given.cutting == MGRID_CUT_BOUNDS)
        mine = a->bounds[piece] <= index[i] && index[i] < a->bounds[piece + 1];
      if (a->given.ndims > 0 && a->given.cutting == MGRID_CUT_OWNERS)
        mine = a->owners[index[i] / a->given.unit] == piece;
      t->has[at][rank][index[i]] = mine;
    }
  }
}

/* Fill `has`: `some[d][c]` tells which coordinates of a dim hold the tensor. */
static inline void deal_all(dealt *t, bool some[DRAWN_DIMS][DEALT_WORLD]) {
  int64_t count[DRAWN_DIMS] = { 0 };
  for (size_t d = 0; d < t->d.n; d++)
    for (int64_t c = 0; c < t->d.dim[d].size; c++) count[d] += some[d][c];
  for (int64_t at = 0; at < t->d.window.size; at++) {
    int64_t rest = at, rank = t->d.window.offset + at, place[DRAWN_DIMS] = { 0 };
    bool holds = true;
    for (size_t d = 0; d < t->d.n; d++) {
      int64_t c = rest % t->d.dim[d].size;
      rest /= t->d.dim[d].size;
      holds = holds && some[d][c];
      for (int64_t i = 0; i < c; i++) place[d] += some[d][i];
    }
    t->on[rank] = holds;
    for (size_t a = 0; a < t->naxes && holds; a++) deal_axis(t, a, rank, place, count);
  }
}

/* ------------------------------------------------------------------- drawing */

static inline void draw_parts(rng *r, dealt_axis *a) {
  int64_t left = a->given.length / a->given.unit, n = rng_between(r, 2, 4);
  if (left < n) return;
  for (int64_t i = 0; i < n; i++) {
    int64_t units = i + 1 == n ? left : rng_between(r, 1, left - (n - 1 - i));
    a->parts[i] = units * a->given.unit;
    left -= units;
  }
  a->given.nparts = (size_t)n;
  a->given.parts = a->parts;
}

/* Into how many neighbouring pieces does each unit go, if there are fewer units than pieces? 0: it
** cannot be done. The neighbours of each unit must be all combinations of some coordinates. */
static inline int64_t shared_by(const dealt_axis *a, const int64_t *size, int64_t pieces) {
  int64_t shared = -1;
  for (size_t i = 0; i < (a->given.nparts ? a->given.nparts : 1); i++) {
    int64_t n = a->given.nparts ? a->parts[i] : a->given.length, units = 0, all = 1;
    for (; n > 0; n -= a->given.unit) units++;
    while (units < pieces && all * units < pieces) all++;
    if (units < pieces && all * units != pieces) return 0;
    if (shared >= 0 && all != shared) return 0;
    shared = all;
  }
  for (int64_t from = 0; from < pieces; from += shared) {
    int64_t combinations = 1, below = pieces;
    for (size_t k = 0; k < a->given.ndims; k++) {
      bool seen[DEALT_WORLD] = { false };
      int64_t n = 0;
      below /= size[k];
      for (int64_t i = from; i < from + shared; i++)
        if (!seen[i / below % size[k]]) seen[i / below % size[k]] = true, n++;
      combinations *= n;
    }
    if (combinations != shared) return 0;
  }
  return shared;
}

/* How an axis is cut by the dims that it has. */
static inline void draw_cut(rng *r, const dealt *t, dealt_axis *a, const int64_t *count) {
  int64_t pieces = 1, size[DRAWN_DIMS];
  for (size_t k = 0; k < a->given.ndims; k++)
    for (size_t d = 0; d < t->d.n; d++)
      if (strcmp(t->d.dim[d].name, a->dims[k]) == 0) pieces *= size[k] = count[d];
  a->given.cutting = (mgrid_cutting)(rng_chance(r, 40) ? MGRID_CUT_EVEN : rng_between(r, 0, 4));
  a->given.unit = 1;
  if (a->given.cutting == MGRID_CUT_CYCLIC) {
    a->given.block = rng_between(r, 1, 4);
    a->given.unit = 0;
  } else if (a->given.cutting == MGRID_CUT_BOUNDS) {
    for (int64_t i = 1; i < pieces; i++) a->bounds[i] = rng_between(r, 0, a->given.length);
    for (int64_t i = 1; i < pieces; i++)
      for (int64_t k = i + 1; k < pieces; k++)
        if (a->bounds[k] < a->bounds[i]) {
          int64_t kept = a->bounds[i];
          a->bounds[i] = a->bounds[k];
          a->bounds[k] = kept;
        }
    a->bounds[0] = 0;
    a->bounds[pieces] = a->given.length;
    a->given.bounds = a->bounds;
    a->given.nbounds = (size_t)pieces + 1;
  } else if (a->given.cutting == MGRID_CUT_OWNERS) {
    if (rng_chance(r, 30)) a->given.unit = rng_divisor(r, a->given.length);
    a->given.nowners = (size_t)(a->given.length / a->given.unit);
    for (size_t i = 0; i < a->given.nowners; i++) /* often that of the one before */
      a->owners[i] = i > 0 && rng_chance(r, 40) ? a->owners[i - 1] : rng_between(r, 0, pieces - 1);
    a->given.owners = a->owners;
  } else {
    if (rng_chance(r, 30)) a->given.unit = rng_divisor(r, a->given.length);
    if (rng_chance(r, 25)) draw_parts(r, a);
  }
  if (a->given.cutting < MGRID_CUT_CYCLIC && rng_chance(r, 50)) {
    a->shared = shared_by(a, size, pieces);
    a->given.copies = a->shared > 0;
  }
}

/* A tensor over a drawn grid, with axes of given lengths, on a part of its ranks sometimes. */
static inline void draw_tensor(rng *r, dealt *t, size_t naxes, const int64_t *length, bool odd) {
  static const char *const axis_name[] = { "x", "y", "z" };
  mgrid_error err;
  mgrid_family *on = NULL;
  bool some[DRAWN_DIMS][DEALT_WORLD];
  int64_t count[DRAWN_DIMS];
  size_t order[DRAWN_DIMS];
  t->naxes = naxes;
  for (size_t d = 0; d < t->d.n; d++) {
    order[d] = d;
    count[d] = 0;
    for (int64_t c = 0; c < t->d.dim[d].size; c++) count[d] += some[d][c] = true;
  }
  if (odd && rng_chance(r, 20) && t->d.n > 0) { /* some coordinates of each dim */
    int64_t n = 0, starts[2] = { 0, 0 };
    int64_t *ranks = malloc((size_t)t->d.window.size * sizeof *ranks);
    assert_non_null(ranks);
    for (size_t d = 0; d < t->d.n; d++) {
      int64_t keep = rng_between(r, 0, t->d.dim[d].size - 1);
      for (int64_t c = 0; c < t->d.dim[d].size; c++)
        if (c != keep && rng_chance(r, 40)) some[d][c] = false, count[d]--;
    }
    for (int64_t at = 0; at < t->d.window.size; at++) {
      int64_t rest = at;
      bool holds = true;
      for (size_t d = 0; d < t->d.n; rest /= t->d.dim[d++].size)
        holds = holds && some[d][rest % t->d.dim[d].size];
      if (holds) ranks[n++] = (int64_t)(t->d.window.offset + at);
    }
    starts[1] = n;
    on = mgrid_family_table(mgrid_world(t->d.window.world), 1, starts, ranks, MGRID_PARTIAL,
                            anew(&err));
    check(r, on != NULL);
    free(ranks);
  }
  rng_shuffle(r, t->d.n, order);
  mgrid_tensor_axis given[DEALT_AXES];
  size_t used = 0;
  for (size_t i = 0; i < naxes; i++) {
    dealt_axis *a = &t->axis[i];
    a->given = (mgrid_tensor_axis)MGRID_TENSOR_AXIS_INIT;
    a->given.name = axis_name[i];
    a->given.length = length[i];
    a->given.dims = a->dims;
    while (used < t->d.n && a->given.ndims < 2 && rng_chance(r, 55))
      a->dims[a->given.ndims++] = drawn_name(order[used++]);
    if (a->given.ndims) draw_cut(r, t, a, count);
    given[i] = a->given;
  }
  t->tensor = mgrid_tensor_new(t->d.grid, "f32", naxes, given, on, anew(&err));
  if (!t->tensor) fail_msg("%s; MOONGRID_SEED=%" PRIu64, err.message, r->seed);
  mgrid_family_free(on);
  deal_all(t, some);
}

/* --------------------------------------------------------------------- flats */

/* Does the tensor hold an element before it is cut into slices? */
static inline bool dealt_whole(const dealt *t, int64_t rank, int64_t element) {
  if (!t->on[rank]) return false;
  for (size_t i = t->naxes; i-- > 0; element /= t->axis[i].given.length)
    if (!t->has[i][rank][element % t->axis[i].given.length]) return false;
  return true;
}

static inline int64_t dealt_elements(const dealt *t) {
  int64_t n = 1;
  for (size_t i = 0; i < t->naxes; i++) n *= t->axis[i].given.length;
  return n;
}

static inline int64_t dealt_count(const dealt *t, int64_t rank) {
  int64_t n = 0, all = dealt_elements(t);
  for (int64_t e = 0; e < all; e++) n += dealt_whole(t, rank, e);
  return n;
}

static inline bool dealt_cut_by(const dealt *t, const char *dim) {
  for (size_t i = 0; i < t->naxes; i++)
    for (size_t k = 0; k < t->axis[i].given.ndims; k++)
      if (strcmp(t->axis[i].dims[k], dim) == 0) return true;
  return false;
}

/* Walk the array of a rank from its beginning: its slice is that of its coordinates. */
static inline void deal_slice(dealt *t, const dealt *member, size_t n, size_t at, const size_t *dim,
                              size_t ndims, int64_t pad, int64_t rank) {
  int64_t total = 0, slices = 1, mine = 0, each = 0, before = 0, k = 0;
  for (size_t i = 0; i < ndims; i++) {
    int64_t rest = rank - t->d.window.offset;
    for (size_t d = 0; d < dim[i]; d++) rest /= t->d.dim[d].size;
    mine = mine * t->d.dim[dim[i]].size + rest % t->d.dim[dim[i]].size;
    slices *= t->d.dim[dim[i]].size;
  }
  for (size_t i = 0; i < n; i++) {
    if (i == at) before = total;
    total += dealt_count(&member[i], rank);
  }
  while (each * slices < total) each += pad;
  t->each[rank] = each;
  t->first[rank] = t->offset[rank] = -1;
  for (int64_t e = 0, all = dealt_elements(t); e < all; e++) {
    if (!dealt_whole(t, rank, e)) continue;
    int64_t place = before + k++;
    if (place < mine * each || place >= (mine + 1) * each) continue;
    if (t->first[rank] < 0) t->first[rank] = k - 1, t->offset[rank] = place - mine * each;
    t->slice[rank][e] = true;
  }
}

/* Lay the tensor between others and cut all by dims that are left, if there are any and the parts
** allow it. */
static inline void draw_flat(rng *r, dealt *t) {
  size_t n = (size_t)rng_between(r, 1, 3), at = (size_t)rng_between(r, 0, (int64_t)n - 1),
         dim[DRAWN_DIMS], ndims = 0;
  int64_t pad = rng_between(r, 1, 5);
  dealt *member = calloc(n, sizeof *member);
  assert_non_null(member);
  for (size_t i = 0; i < n; i++) {
    int64_t length[DEALT_AXES];
    size_t naxes = (size_t)rng_between(r, 1, 2);
    if (i == at) {
      member[i] = *t;
      continue;
    }
    for (size_t a = 0; a < naxes; a++) length[a] = rng_between(r, 1, 12);
    member[i].d = t->d;
    draw_tensor(r, &member[i], naxes, length, false);
  }
  const mgrid_tensor *tensors[3] = { NULL };
  const char *names[DRAWN_DIMS];
  mgrid_tensor *out[3] = { NULL };
  mgrid_error err;
  for (size_t i = 0; i < n; i++) tensors[i] = member[i].tensor;
  for (size_t d = 0; d < t->d.n && ndims < 2; d++) {
    bool cut = false;
    for (size_t i = 0; i < n; i++) cut = cut || dealt_cut_by(&member[i], t->d.dim[d].name);
    if (cut || rng_chance(r, 20)) continue;
    names[ndims] = t->d.dim[d].name;
    dim[ndims++] = d;
  }
  mgrid_status s = ndims ? mgrid_tensor_flatten(n, tensors, ndims, names, pad, out, anew(&err))
                         : MGRID_REFUSED;
  check(r, s == MGRID_OK || s == MGRID_REFUSED);
  if (!s) {
    mgrid_tensor_free(t->tensor);
    t->tensor = out[at];
    t->flat = true;
    for (size_t i = 0; i < n; i++)
      if (i != at) mgrid_tensor_free(out[i]); /* the flat keeps what it needs of them */
    for (int64_t rank = 0; rank < DEALT_WORLD; rank++)
      if (t->on[rank]) deal_slice(t, member, n, at, dim, ndims, pad, rank);
  }
  for (size_t i = 0; i < n; i++)
    if (i != at) mgrid_tensor_free(member[i].tensor);
  free(member);
}

#endif
