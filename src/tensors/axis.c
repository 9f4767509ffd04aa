/* SPDX-License-Identifier: MIT
**
** axis.c - how one axis is cut: where each piece starts and ends, which pieces of two rules overlap. All by division;
** loops are over runs.
*/
#include "tensors/tensor.h"

#include <stdlib.h>
#include <string.h>

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t most(int64_t a, int64_t b) { return a > b ? a : b; }

/* ---------------------------------------------------------- pieces of a part */

/* Return the share of piece `c` of `k` in n elements: its first element, and how many. */
static mgrid_run share(mgrid_cutting cutting, int64_t n, int64_t k, int64_t c) {
  if (cutting == MGRID_CUT_CEIL) {
    int64_t each = n / k + (n % k > 0), start = least(c * each, n);
    return (mgrid_run){ start, least(each, n - start) };
  }
  return (mgrid_run){ c * (n / k) + least(c, n % k), n / k + (c < n % k) };
}

/* Return which of the k shares has element x of n. */
static int64_t share_of(mgrid_cutting cutting, int64_t n, int64_t k, int64_t x) {
  if (cutting == MGRID_CUT_CEIL) return x / (n / k + (n % k > 0));
  int64_t each = n / k, larger = n % k, before = larger * (each + 1);
  return x < before ? x / (each + 1) : larger + (x - before) / each;
}

/* Return the run of a piece in a part of n elements: cut dim after dim. Not for cyclic axes. */
static mgrid_run run_in(const mgrid_slicing *s, int64_t n, int64_t piece) {
  if (s->cutting == MGRID_CUT_BOUNDS) return (mgrid_run){ s->bounds[piece], s->bounds[piece + 1] - s->bounds[piece] };
  int64_t   below = s->pieces;
  mgrid_run r = { 0, n / s->unit };
  for (size_t i = 0; i < s->ndims; i++) {
    below /= s->size[i];
    mgrid_run in = share(s->cutting, r.length, s->size[i], piece / below % s->size[i]);
    r = (mgrid_run){ r.start + in.start, in.length };
  }
  return (mgrid_run){ r.start * s->unit, r.length * s->unit };
}

/* Return the piece that has element x of a part of n elements. Not for cyclic axes. */
static int64_t piece_in(const mgrid_slicing *s, int64_t n, int64_t x) {
  int64_t piece = 0;
  if (s->cutting == MGRID_CUT_BOUNDS) { /* the last one that starts at x or before */
    int64_t high = s->pieces;
    while (high - piece > 1) {
      int64_t middle = piece + (high - piece) / 2;
      if (s->bounds[middle] <= x)
        piece = middle;
      else
        high = middle;
    }
    return piece;
  }
  x /= s->unit;
  n /= s->unit;
  for (size_t i = 0; i < s->ndims; i++) {
    int64_t   c = share_of(s->cutting, n, s->size[i], x);
    mgrid_run in = share(s->cutting, n, s->size[i], c);
    piece = piece * s->size[i] + c;
    x -= in.start;
    n = in.length;
  }
  return piece;
}

/* Return the first block of a piece, which gets every `pieces`-th block from there. Blocks are dealt by the first dim,
** and those of a coordinate by the next. */
static int64_t first_block(const mgrid_slicing *s, int64_t piece) {
  int64_t below = s->pieces, before = 1, block = 0;
  for (size_t i = 0; i < s->ndims; i++) {
    below /= s->size[i];
    block += piece / below % s->size[i] * before;
    before *= s->size[i];
  }
  return block;
}

/* Return the piece that gets a block: the inverse of first_block. */
static int64_t piece_dealt(const mgrid_slicing *s, int64_t block) {
  int64_t piece = 0;
  for (size_t i = 0; i < s->ndims; i++) {
    piece = piece * s->size[i] + block % s->size[i];
    block /= s->size[i];
  }
  return piece;
}

/* ------------------------------------------------------------------- walking */

/* Go to the next run, which may touch the one before. */
static bool step(mgrid_walk *w, mgrid_run *run) {
  const mgrid_slicing *s = w->s;
  if (s->owners) {
    if (w->block < 0) w->block = s->first[w->piece];
    if (w->block == s->first[w->piece + 1]) return false;
    *run = s->runs[w->block++];
    return true;
  }
  for (; w->part < s->nparts; w->part++, w->block = -1) {
    int64_t from = s->starts[w->part], n = s->starts[w->part + 1] - from;
    if (s->pieces == 1 || s->cutting != MGRID_CUT_CYCLIC) {
      *run = s->pieces == 1 ? (mgrid_run){ 0, n } : run_in(s, n, w->piece);
      run->start += from;
      if (run->length == 0) continue;
      w->part++;
      return true;
    }
    if (w->block < 0) w->block = first_block(s, w->piece);
    if (w->block >= mgrid_slicing_blocks(s, n)) continue;
    *run = (mgrid_run){ from + w->block * s->block, least(s->block, n - w->block * s->block) };
    w->block += s->pieces;
    return true;
  }
  return false;
}

mgrid_walk mgrid_walk_begin(const mgrid_slicing *s, int64_t piece) {
  mgrid_walk w = { s, piece, 0, -1, { 0, 0 } };
  if (!step(&w, &w.next)) w.next.length = 0;
  return w;
}

bool mgrid_walk_next(mgrid_walk *w, mgrid_run *run) {
  if (w->next.length == 0) return false;
  *run = w->next;
  while (step(w, &w->next)) {
    if (w->next.start != run->start + run->length) return true;
    run->length += w->next.length;
  }
  w->next.length = 0;
  return true;
}

/* ----------------------------------------------------------------- questions */

/* Return the only run of a piece of a plain slicing. */
static mgrid_run only_run(const mgrid_slicing *s, int64_t piece) {
  return s->pieces == 1 ? (mgrid_run){ 0, s->length } : run_in(s, s->length, piece);
}

/* Return how many indices two runs have in common. */
static int64_t both(mgrid_run x, mgrid_run y) {
  return most(0, least(x.start + x.length, y.start + y.length) - most(x.start, y.start));
}

int64_t mgrid_piece_in_part(const mgrid_slicing *s, size_t part, int64_t piece) {
  int64_t n = s->starts[part + 1] - s->starts[part], sum = 0;
  if (s->pieces == 1) return n;
  if (s->owners) {
    for (int64_t i = s->first[piece]; i < s->first[piece + 1]; i++) sum += s->runs[i].length;
    return sum;
  }
  if (s->cutting != MGRID_CUT_CYCLIC) return run_in(s, n, piece).length;
  int64_t first = first_block(s, piece), blocks = n / s->block; /* whole blocks; the rest of one comes after them */
  sum = (blocks / s->pieces + (first < blocks % s->pieces)) * s->block;
  return first == blocks % s->pieces ? sum + n % s->block : sum;
}

int64_t mgrid_piece_size(const mgrid_slicing *s, int64_t piece) {
  int64_t sum = 0;
  if (s->pieces == 1) return s->length;
  for (size_t i = 0; i < s->nparts; i++) sum += mgrid_piece_in_part(s, i, piece);
  return sum;
}

int64_t mgrid_pieces_common(const mgrid_slicing *a, int64_t p, const mgrid_slicing *b, int64_t q) {
  if (a->plain && b->plain) return both(only_run(a, p), only_run(b, q));
  mgrid_walk wa = mgrid_walk_begin(a, p), wb = mgrid_walk_begin(b, q);
  mgrid_run  x, y;
  int64_t    sum = 0;
  bool       more = mgrid_walk_next(&wa, &x) && mgrid_walk_next(&wb, &y);
  while (more) {
    sum += both(x, y);
    more = x.start + x.length < y.start + y.length ? mgrid_walk_next(&wa, &x) : mgrid_walk_next(&wb, &y);
  }
  return sum;
}

/* ------------------------------------------------------- which pieces meet */

static int64_t piece_at(const mgrid_slicing *s, int64_t x) { return s->pieces == 1 ? 0 : piece_in(s, s->length, x); }

/* Mark in room[0 .. pieces) the pieces that have elements of a run. */
static void mark(const mgrid_slicing *s, mgrid_run run, int64_t *room) {
  if (s->owners) {
    for (int64_t k = run.start / s->unit; k <= (run.start + run.length - 1) / s->unit; k++) room[s->owners[k]] = 1;
    return;
  }
  for (size_t i = 0; i < s->nparts; i++) {
    int64_t from = s->starts[i], n = s->starts[i + 1] - from;
    int64_t low = most(run.start, from) - from, high = least(run.start + run.length, from + n) - from;
    if (low >= high) continue;
    if (s->pieces > 1 && s->cutting == MGRID_CUT_CYCLIC) {
      int64_t first = low / s->block, last = first + least((high - 1) / s->block - first, s->pieces - 1);
      for (int64_t k = first; k <= last; k++) room[piece_dealt(s, k % s->pieces)] = 1;
      continue;
    }
    int64_t last = s->pieces == 1 ? 0 : piece_in(s, n, high - 1);
    for (int64_t k = s->pieces == 1 ? 0 : piece_in(s, n, low); k <= last; k++)
      if (s->pieces == 1 || run_in(s, n, k).length > 0) room[k] = 1;
  }
}

bool mgrid_meets_find(mgrid_meets *m, const mgrid_slicing *a, int64_t p, const mgrid_slicing *b) {
  m->list = NULL;
  m->n = m->low = 0;
  if (a->plain && b->plain) {
    mgrid_run r = only_run(a, p);
    if (r.length == 0) return true;
    m->low = piece_at(b, r.start);
    m->n = piece_at(b, r.start + r.length - 1) - m->low + 1;
    return true;
  }
  int64_t *room = realloc(m->room, (size_t)b->pieces * sizeof *room);
  if (!room) return false;
  m->room = room;
  memset(room, 0, (size_t)b->pieces * sizeof *room);
  mgrid_run  run;
  mgrid_walk w = mgrid_walk_begin(a, p);
  while (mgrid_walk_next(&w, &run)) mark(b, run, room);
  for (int64_t k = 0; k < b->pieces; k++)
    if (room[k]) room[m->n++] = k;
  m->low = m->n ? room[0] : 0;
  if (m->n && room[m->n - 1] - room[0] != m->n - 1) m->list = room;
  return true;
}

int64_t mgrid_meets_index(const mgrid_meets *m, int64_t piece) {
  if (!m->list) return piece >= m->low && piece - m->low < m->n ? piece - m->low : -1;
  int64_t low = 0, high = m->n;
  while (high - low > 1) {
    int64_t middle = low + (high - low) / 2;
    if (m->list[middle] <= piece)
      low = middle;
    else
      high = middle;
  }
  return m->n && m->list[low] == piece ? low : -1;
}
