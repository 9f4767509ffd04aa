/* SPDX-License-Identifier: MIT
**
** empty_parts.c - cuts that leave ranks without any element of a tensor, for example 4 heads over 8 ranks.
**
** Pieces with elements are counted by division, for any world. Ranks are checked one by one only to name the first
** ones of a cut that leaves some empty.
*/
#include "tensors/tensor.h"

#include <inttypes.h>

enum { LOOKED_AT = 1 << 16, RANGES = 4 }; /* ranks checked for names; ranges of them that are named */

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

/* k dims cut n units into pieces, each dim rounding up: return how many pieces get any. */
static int64_t filled_up(const int64_t *size, size_t k, int64_t n) {
  while (k && *size == 1) size++, k--;
  if (k == 0 || n == 0) return n > 0;
  int64_t each = n / *size + (n % *size > 0), full = n / each;
  return full * filled_up(size + 1, k - 1, each) + (n % each ? filled_up(size + 1, k - 1, n % each) : 0);
}

/* Return how many pieces have elements of a part. */
static int64_t filled(const mgrid_slicing *s, size_t part) {
  int64_t n = 0;
  if (s->pieces == 1) return 1;
  if (s->cutting == MGRID_CUT_CEIL) return filled_up(s->size, s->ndims, mgrid_slicing_units(s, part));
  if (!mgrid_slicing_listed(s)) return least(mgrid_slicing_units(s, part), s->pieces);
  for (int64_t i = 0; i < s->pieces; i++) n += mgrid_piece_size(s, i) > 0;
  return n;
}

/* Return how many pieces have elements of any part. The largest such set of a part includes the others, except where
** several dims each round up: then pieces are counted, if there are not too many. */
static int64_t filled_any(const mgrid_slicing *s) {
  int64_t n = 0;
  if (s->cutting == MGRID_CUT_CEIL && s->ndims > 1 && s->nparts > 1 && s->pieces <= LOOKED_AT) {
    for (int64_t i = 0; i < s->pieces; i++) n += mgrid_piece_size(s, i) > 0;
    return n;
  }
  for (size_t k = 0; k < s->nparts; k++) {
    int64_t some = filled(s, k);
    if (some > n) n = some;
  }
  return n;
}

int64_t mgrid_tensor_hollow(const mgrid_tensor *t) {
  int64_t with = 1, all = 1;
  for (size_t i = 0; i < t->naxes; i++) {
    with *= filled_any(&t->axis[i]);
    all *= t->axis[i].pieces;
  }
  return mgrid_tensor_holders(t) / all * (all - with);
}

/* Return the most pieces, at most `now`, of which none is empty; 0: unknown. */
static int64_t nearest(const mgrid_slicing *s, int64_t now) {
  if (s->cutting != MGRID_CUT_CEIL) return now;
  if (s->ndims > 1) return 0;
  for (bool less = true; less;) { /* another part may have fewer */
    less = false;
    for (size_t i = 0; i < s->nparts; i++) {
      int64_t n = filled_up(&now, 1, mgrid_slicing_units(s, i));
      less |= n < now;
      now = n;
    }
  }
  return now;
}

/* Append "ranks 4..7, 12..15": the n ranks whose piece has nothing of the part, as far as they are checked. */
static void add_ranks(const mgrid_tensor *t, size_t axis, size_t part, int64_t n, mgrid_text *out) {
  const mgrid_slicing *s = &t->axis[axis];
  int64_t              world = t->grid->window.world, last = least(world, LOOKED_AT), begun = -1;
  int                  ranges = 0;
  mgrid_text_str(out, n == 1 ? "rank" : "ranks");
  for (int64_t rank = 0; rank <= last && ranges <= RANGES; rank++) {
    mgrid_seat at;
    bool empty = rank < last && mgrid_tensor_seat(t, rank, &at) && mgrid_piece_in_part(s, part, at.piece[axis]) == 0;
    if (empty && begun < 0) begun = rank;
    if (empty || begun < 0) continue;
    if (ranges++ < RANGES) mgrid_text_add(out, "%s%" PRId64, ranges > 1 ? ", " : " ", begun);
    if (ranges <= RANGES && rank - begun > 1) mgrid_text_add(out, "..%" PRId64, rank - 1);
    begun = -1;
  }
  if (ranges > RANGES || (ranges && last < world)) mgrid_text_str(out, ", ...");
}

/* Append "axis 'head' has 4 units of 128 for tp 8, so ". */
static void add_cut(const mgrid_tensor *t, const mgrid_slicing *s, size_t part, mgrid_text *out) {
  int64_t n = mgrid_slicing_units(s, part), each = s->cutting == MGRID_CUT_CYCLIC ? s->block : s->unit;
  if (s->nparts > 1) mgrid_text_add(out, "part %zu of ", part);
  mgrid_text_add(out, "axis '%s' has ", s->name);
  if (mgrid_slicing_listed(s)) {
    mgrid_text_add(out, "%s that leave pieces of ", s->owners ? "owners" : "bounds");
    mgrid_slicing_dims(s, t->grid, out);
    mgrid_text_str(out, " empty, so ");
    return;
  }
  mgrid_text_add(out, "%" PRId64 " %s%s", n,
                 s->cutting == MGRID_CUT_CYCLIC ? "block"
                 : each > 1                     ? "unit"
                                                : "element",
                 n == 1 ? "" : "s");
  if (each > 1) mgrid_text_add(out, " of %" PRId64, each);
  mgrid_text_str(out, s->cutting == MGRID_CUT_CEIL ? ", rounded up, for " : " for ");
  mgrid_slicing_dims(s, t->grid, out);
  mgrid_text_str(out, ", so ");
}

bool mgrid_axis_hollow(const mgrid_tensor *t, size_t axis, const char *name, mgrid_text *out) {
  const mgrid_slicing *s = &t->axis[axis];
  int64_t              fewest = s->pieces;
  size_t               part = 0;
  for (size_t i = 0; i < s->nparts; i++) {
    int64_t n = filled(s, i);
    if (n >= fewest) continue;
    fewest = n;
    part = i;
  }
  if (fewest == s->pieces) return false;
  int64_t holders = mgrid_tensor_holders(t), n = holders / s->pieces * (s->pieces - fewest), near = nearest(s, fewest);
  if (name) mgrid_text_add(out, "tensor '%s': ", name);
  add_cut(t, s, part, out);
  add_ranks(t, axis, part, n, out);
  mgrid_text_add(out, " (%" PRId64 " of %" PRId64 ") %s nothing of it", n, holders, n == 1 ? "has" : "have");
  if (mgrid_slicing_listed(s) || !near) return true;
  mgrid_text_str(out, "; nearest: ");
  if (s->ndims == 1)
    mgrid_text_add(out, "%s %" PRId64, t->grid->axis[s->dim[0]].name, near);
  else
    mgrid_text_add(out, "%" PRId64 " piece%s", near, near == 1 ? "" : "s");
  if (s->cutting < MGRID_CUT_CYCLIC && s->nparts == 1 && s->ndims == 1 && s->pieces % mgrid_slicing_units(s, 0) == 0)
    mgrid_text_str(out, ", or copies = true");
  return true;
}
