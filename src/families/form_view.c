/* SPDX-License-Identifier: MIT
**
** form_view.c - the forms CUT and PICKED: parts of the groups of another family, their base. The
** base answers for its ranks, so a view needs memory only for the positions that it keeps. Other
** forms make a view where no modes describe the result of a split or a pick.
*/
#include "families/classes.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ======================================================================= CUT */

/* A CUT has pieces of the groups of the base: segments of any sizes, or splits that no modes
** describe. */

typedef struct cut {
  mgrid_family *base; /* groups of one size, disjoint */
  int64_t n;          /* pieces of every group, 2 or more */
  /* [n + 1]: piece i starts at position starts[i]; NULL: all pieces have one size */
  int64_t *starts;
  bool links; /* true: piece i has the positions i, i + n, i + 2n, ... instead */
  /* true: the first pieces of all groups come first, then all second pieces; false: the pieces of a
  ** group follow each other */
  bool by_row;
} cut;

/* -------------------------------------------------------------------- making */

/* Return the number of members of a piece. */
static int64_t cut_size(const mgrid_family *f, int64_t piece) {
  const int64_t *starts = ((const cut *)f->own)->starts;
  return starts ? starts[piece + 1] - starts[piece] : f->size;
}

/* Make a CUT whose pieces have `size` members; -1: they differ. Take `starts` over, also on
** failure. */
static mgrid_family *new_cut(const mgrid_family *base, int64_t n, int64_t *starts, int64_t size,
                             mgrid_error *err) {
  mgrid_family *f = mgrid_family_alloc(&mgrid_cut_form, base->world, sizeof(cut), err);
  if (!f) {
    free(starts);
    return NULL;
  }
  *(cut *)f->own = (cut){ .base = mgrid_family_origin(base), .n = n, .starts = starts };
  f->bytes += starts ? (size_t)(n + 1) * sizeof *starts : 0;
  if (mgrid_family_put_above(f, base, err)) {
    mgrid_family_free(f);
    return NULL;
  }
  f->count = base->count * n;
  f->size = f->max_size = size;
  for (int64_t i = 0; i < n && starts; i++)
    if (cut_size(f, i) > f->max_size) f->max_size = cut_size(f, i);
  f->total = base->total;
  f->low = base->low;
  f->high = base->high;
  return f;
}

/* Cut each group into n equal runs of consecutive positions. With `links`, cut it into size / n
** runs instead; piece i has the ranks at position i of each run. */
static mgrid_family *cut_evenly(const mgrid_family *base, int64_t n, bool links, bool by_row,
                                mgrid_error *err) {
  if (n <= 1 || base->count == 0) return mgrid_family_origin(base);
  mgrid_family *f = new_cut(base, n, NULL, base->size / n, err);
  if (!f) return NULL;
  cut *own = f->own;
  own->links = links && f->size > 1; /* a piece of one position is both a run and a link */
  own->by_row = by_row && base->count > 1;
  return f;
}

/* Append the sizes that a split accepts, the smallest first. `inside` NULL: every divisor. */
static void admissible_text(const mgrid_modes *inside, int64_t size, mgrid_text *t) {
  enum { SHOWN = 12 };
  MGRID_MODES(inner);
  MGRID_MODES(outer);
  int shown = 0;
  for (int64_t k = 0; k < size && shown < SHOWN;) {
    int64_t below;
    mgrid_nearest_divisors(size, k, &below, &k); /* k becomes the next divisor */
    if (!inside || mgrid_modes_cut(inside, k, &inner, &outer, NULL))
      mgrid_text_add(t, "%s%" PRId64, shown++ ? ", " : " ", k);
  }
}

mgrid_status mgrid_split_refuse(const mgrid_family *f, int64_t k, const mgrid_mode *blocking,
                                mgrid_error *err) {
  const mgrid_modes *inside = f->rule ? &f->rule->inside : NULL;
  mgrid_text t = { 0 };
  mgrid_text_add(&t, "split(%" PRId64 ") of groups of %" PRId64 ": ", k, f->size);
  if (blocking) {
    mgrid_text_add(&t, "%" PRId64 " does not meet mode (%" PRId64 ":%" PRId64 ") of ", k,
                   blocking->size, blocking->stride);
    mgrid_modes_text(inside, &t);
  } else {
    mgrid_text_add(&t, "%" PRId64 " does not divide %" PRId64, k, f->size);
  }
  mgrid_text_add(&t, "; sizes that do:");
  admissible_text(inside, f->size, &t);
  mgrid_status s = t.failed ? mgrid_oom(err) : mgrid_fail(err, MGRID_REFUSED, "%s", t.data);
  mgrid_text_free(&t);
  return s;
}

mgrid_status mgrid_split_cut(mgrid_splitting *x, const mgrid_family *f, mgrid_error *err) {
  if (f->size % x->k != 0) return mgrid_split_refuse(f, x->k, NULL, err);
  x->inner = cut_evenly(f, f->size / x->k, false, x->by_row, err);
  x->outer = cut_evenly(f, x->k, true, x->by_row, err);
  return x->inner && x->outer ? MGRID_OK : MGRID_NO_MEMORY;
}

mgrid_status mgrid_split_lists(mgrid_splitting *x, const mgrid_family *f, mgrid_error *err) {
  mgrid_family *table = x->lists ? x->write_out(f, err) : mgrid_needs_lists("a split", f, err);
  mgrid_status s = table ? mgrid_split(x, table, err) : x->lists ? MGRID_NO_MEMORY : MGRID_REFUSED;
  mgrid_family_free(table);
  return s;
}

mgrid_status mgrid_split(mgrid_splitting *x, const mgrid_family *f, mgrid_error *err) {
  if (f->count == 0) x->by_row = false;
  if (f->form->split) return f->form->split(x, f, err);
  return f->size < 0 ? mgrid_split_lists(x, f, err) : mgrid_split_cut(x, f, err);
}

mgrid_family *mgrid_cut_at(const mgrid_family *base, int64_t n, int64_t *starts, bool by_row,
                           mgrid_error *err) {
  if (!starts) return mgrid_null_oom(err);
  int64_t first = starts[1], equal = 1;
  while (equal < n && starts[equal + 1] - starts[equal] == first) equal++;
  if (equal == n) {
    mgrid_splitting x = { .k = first, .by_row = by_row, .lists = true };
    free(starts);
    mgrid_status s = mgrid_split(&x, base, err);
    mgrid_family_free(x.outer);
    if (!s) return x.inner;
    mgrid_family_free(x.inner);
    return NULL;
  }
  mgrid_family *f = new_cut(base, n, starts, -1, err);
  if (f) ((cut *)f->own)->by_row = by_row && base->count > 1;
  return f;
}

/* ----------------------------------------------------------------- questions */

/* Return the position in the base of a position in a piece. */
static int64_t in_base(const mgrid_family *f, int64_t piece, int64_t position) {
  const cut *own = f->own;
  if (own->links) return piece + position * own->n;
  return position + (own->starts ? own->starts[piece] : piece * f->size);
}

/* Return which piece a group is. *group becomes the group of the base that contains it. */
static int64_t piece_of(const cut *own, int64_t *group) {
  int64_t index = *group, groups = own->base->count;
  *group = own->by_row ? index % groups : index / own->n;
  return own->by_row ? index / groups : index % own->n;
}

static int64_t cut_group_size(const mgrid_family *f, int64_t group) {
  return cut_size(f, piece_of(f->own, &group));
}

static int64_t cut_rank(const mgrid_family *f, int64_t group, int64_t position) {
  const cut *own = f->own;
  int64_t piece = piece_of(own, &group);
  return mgrid_family_rank(own->base, group, in_base(f, piece, position));
}

/* Return the piece that contains a position of the base. *position becomes the position in that
** piece. */
static int64_t view_piece_at(const mgrid_family *f, int64_t *position) {
  const cut *own = f->own;
  int64_t offset = *position;
  if (own->links) {
    *position = offset / own->n;
    return offset % own->n;
  }
  if (!own->starts) {
    *position = offset % f->size;
    return offset / f->size;
  }
  int64_t piece = mgrid_run_at(own->starts, own->n, offset);
  *position = offset - own->starts[piece];
  return piece;
}

static bool cut_locate(const mgrid_family *f, int64_t rank, int64_t nth, int64_t *group,
                       int64_t *position) {
  const cut *own = f->own;
  if (nth > 0 || !mgrid_family_locate(own->base, rank, 0, group, position)) return false;
  int64_t piece = view_piece_at(f, position);
  *group = own->by_row ? *group + piece * own->base->count : piece + *group * own->n;
  return true;
}

static void cut_slice(const mgrid_family *f, int64_t group, int64_t position, int64_t n,
                      int32_t *out) {
  const cut *own = f->own;
  int64_t piece = piece_of(own, &group);
  if (!own->links) {
    mgrid_family_slice(own->base, group, in_base(f, piece, position), n, out);
    return;
  }
  for (int64_t p = 0; p < n; p++)
    out[p] = (int32_t)mgrid_family_rank(own->base, group, in_base(f, piece, position + p));
}

static bool cut_same_rule(const mgrid_family *a, const mgrid_family *b) {
  const cut *x = a->own, *y = b->own;
  return x->n == y->n && x->links == y->links && x->by_row == y->by_row && !x->starts == !y->starts
         && (!x->starts
             || memcmp(x->starts, y->starts, (size_t)(x->n + 1) * sizeof *x->starts) == 0)
         && mgrid_family_same_rule(x->base, y->base);
}

/* Two pieces of one group are equal if they have the same first and last position. */
static mgrid_tristate cut_same_group(const mgrid_family *a, int64_t ga, const mgrid_family *b,
                                     int64_t gb) {
  const cut *x = a->own, *y = b->own;
  int64_t last = mgrid_family_size(a, ga) - 1, piece_x = piece_of(x, &ga),
          piece_y = piece_of(y, &gb);
  return ga == gb && in_base(a, piece_x, 0) == in_base(b, piece_y, 0)
                 && in_base(a, piece_x, last) == in_base(b, piece_y, last)
                 && mgrid_family_same_rule(x->base, y->base)
             ? MGRID_YES
             : MGRID_UNDECIDED;
}

static void cut_text(const mgrid_family *f, mgrid_text *t) {
  const cut *own = f->own;
  mgrid_text_str(t, own->starts ? "segments{" : own->links ? "links(" : "split(");
  for (int64_t i = 0; i < own->n && own->starts; i++) {
    if (i) mgrid_text_str(t, ",");
    mgrid_text_int(t, cut_size(f, i));
  }
  if (!own->starts) mgrid_text_int(t, own->links ? own->n : f->size);
  if (own->by_row) mgrid_text_str(t, " by row");
  mgrid_text_str(t, own->starts ? "} of [" : ") of [");
  own->base->form->text(own->base, t);
  mgrid_text_str(t, "]");
}

static void cut_json(const mgrid_family *f, mgrid_text *t) {
  const cut *own = f->own;
  mgrid_text_str(t, own->starts ? "{\"segments\":" : own->links ? "{\"links\":" : "{\"split\":");
  for (int64_t i = 0; i < own->n && own->starts; i++) {
    mgrid_text_str(t, i ? "," : "[");
    mgrid_text_int(t, cut_size(f, i));
  }
  if (own->starts)
    mgrid_text_str(t, "]");
  else
    mgrid_text_int(t, own->links ? own->n : f->size);
  mgrid_text_str(t, own->by_row ? ",\"by_row\":true,\"of\":" : ",\"of\":");
  mgrid_family_json(own->base, t);
  mgrid_text_str(t, "}");
}

static void cut_explain(const mgrid_family *f, mgrid_text *t) {
  mgrid_text_add(t, "%" PRId64 " pieces of each group of a rule", ((const cut *)f->own)->n);
}

static void cut_free(mgrid_family *f) {
  cut *own = f->own;
  mgrid_family_free(own->base);
  free(own->starts);
}

/* ------------------------------------------------------------ all groups at once */

/* Add a class of the groups that are piece i of the groups of a class of the base. `out` may be
** NULL. */
static bool view_add_piece(mgrid_classes *list, const mgrid_family *f, const mgrid_class *base,
                           int64_t i, mgrid_class **out) {
  const cut *own = f->own;
  int64_t n = own->n, groups = own->base->count;
  mgrid_class *c = mgrid_classes_add(list);
  if (!c) return false;
  *c = *base;
  if (!own->by_row) mgrid_class_spread(c, n);
  c->group = own->by_row ? i * groups + base->group : base->group * n + i;
  c->start = mgrid_family_rank(f, c->group, 0);
  c->ruled = false;
  c->size = cut_size(f, i);
  if (base->ruled && base->nshape == 1)
    mgrid_class_line(c, c->size, base->shape[0].stride * (own->links ? n : 1));
  if (out) *out = c;
  return true;
}

/* Add the classes of equal runs of positions. Such runs repeat with a period of the modes: add the
** runs of the first period, with the periods as steps. */
static bool add_periods(mgrid_classes *list, const mgrid_family *f, const mgrid_class *base) {
  const cut *own = f->own;
  int64_t size = f->size, unit = own->by_row ? own->base->count : 1;
  const mgrid_modes shape = { base->nshape, (mgrid_mode *)base->shape };
  MGRID_MODES(inner);
  MGRID_MODES(outer);
  for (int64_t pieces = 1; pieces <= MGRID_LISTED_MAX && pieces <= own->n; pieces++) {
    int64_t weight = unit * pieces;
    bool told = true;
    if (own->n % pieces || !mgrid_modes_cut(&shape, pieces * size, &inner, &outer, NULL)) continue;
    for (int64_t i = 0; i < pieces && told; i++, weight = unit * pieces) {
      mgrid_class *c;
      told = view_add_piece(list, f, base, i, &c);
      for (int k = 0; k < outer.n && told; weight *= outer.at[k++].size)
        told = mgrid_class_step(c, outer.at[k].size, outer.at[k].stride, weight);
    }
    return told;
  }
  return false;
}

static bool cut_classes(const mgrid_family *f, mgrid_classes *list) {
  const cut *own = f->own;
  mgrid_classes base = { 0 };
  int64_t n = own->n, unit = own->by_row ? own->base->count : 1;
  bool told = mgrid_classes_of(own->base, &base);
  for (size_t i = 0; i < base.n && told; i++) {
    const mgrid_class *b = &base.at[i];
    /* here the pieces of a group are shifted copies of each other, too */
    if (b->ruled && b->nshape == 1 && !own->starts) {
      mgrid_class *c;
      told = view_add_piece(list, f, b, 0, &c)
             && mgrid_class_step(c, n, b->shape[0].stride * (own->links ? 1 : f->size), unit);
    } else if (n > MGRID_LISTED_MAX) {
      told = b->ruled && !own->starts && !own->links && add_periods(list, f, b);
    } else {
      for (int64_t k = 0; k < n && told; k++) told = view_add_piece(list, f, b, k, NULL);
    }
  }
  free(base.at);
  return told;
}

static bool cut_members(const mgrid_family *f, mgrid_sets *list) {
  return mgrid_members_of(((const cut *)f->own)->base, list);
}

static int64_t cut_singles(const mgrid_family *f) {
  const cut *own = f->own;
  int64_t n = 0;
  for (int64_t i = 0; i < own->n; i++) n += cut_size(f, i) == 1 ? own->base->count : 0;
  return n;
}

/* Return the shapes: one for each piece of the first group of the base. */
static mgrid_shapes cut_shapes(const mgrid_family *f) {
  const cut *own = f->own;
  mgrid_shapes none = { 0 },
               base = own->base->form->shapes ? own->base->form->shapes(own->base) : none;
  return base.n == 1 ? (mgrid_shapes){ own->n, own->by_row ? own->base->count : 1, base.root }
                     : none;
}

/* ---------------------------------------------------------------- operations */

/* Join adjacent pieces into larger pieces, or into whole groups of the base. */
static mgrid_family *cut_bundle(const mgrid_family *f, int64_t n, mgrid_error *err) {
  const cut *own = f->own;
  int64_t left = own->n / n;
  if (own->links || own->by_row || (n % own->n != 0 && own->n % n != 0))
    return mgrid_needs_lists("this bundle", f, err);
  if (n % own->n == 0) return mgrid_bundle(own->base, n / own->n, err);
  int64_t *starts = malloc((size_t)(left + 1) * sizeof *starts);
  for (int64_t i = 0; i < left && starts; i++) starts[i] = in_base(f, i * n, 0);
  if (starts) starts[left] = own->base->size;
  return mgrid_cut_at(own->base, left, starts, false, err);
}

/* Pick positions of each piece: pick them from the base, piece by piece, and cut the result into
** pieces again. */
static mgrid_family *cut_pick_by(const mgrid_family *f, mgrid_pick_fn fn, void *ud,
                                 mgrid_error *err) {
  const cut *own = f->own;
  int64_t pieces = own->n, cap = mgrid_pick_room(f->max_size), n = 0;
  int64_t *some = malloc((size_t)cap * sizeof *some), *all = NULL;
  int64_t *starts = malloc((size_t)(pieces + 1) * sizeof *starts);
  bool failed = !some || !starts;

  if (failed) mgrid_oom(err);
  for (int64_t i = 0, filled = 0; i < pieces && !failed; i++) {
    if (i == 0 || cut_size(f, i) != cut_size(f, i - 1))
      n = mgrid_pick_ask(fn, ud, cut_size(f, i), some, cap, err);
    if (n > 0 && !MGRID_GROW(all, (size_t)filled, (size_t)n)) mgrid_oom(err), n = -1;
    failed = n < 0;
    starts[i] = filled;
    for (int64_t k = 0; k < n; k++) all[filled++] = in_base(f, i, some[k]);
    starts[i + 1] = filled;
  }
  free(some);
  mgrid_family *picked = failed ? NULL
                                : mgrid_family_pick(own->base, (size_t)starts[pieces], all, err),
               *made = NULL;
  free(all);
  if (picked)
    made = mgrid_cut_at(picked, pieces, starts, own->by_row, err);
  else
    free(starts);
  mgrid_family_free(picked);
  return made;
}

const mgrid_form mgrid_cut_form = {
  .name = "cut",
  .size = cut_group_size,
  .rank = cut_rank,
  .locate = cut_locate,
  .slice = cut_slice,
  .same_rule = cut_same_rule,
  .same_group = cut_same_group,
  .text = cut_text,
  .json = cut_json,
  .explain = cut_explain,
  .free = cut_free,
  .classes = cut_classes,
  .members = cut_members,
  .singles = cut_singles,
  .shapes = cut_shapes,
  .bundle = cut_bundle,
  .pick_by = cut_pick_by,
};

/* ==================================================================== PICKED */

/* A PICKED family has some positions of the groups of a strided base, stored as a list. */

typedef struct picked {
  mgrid_family *base;
  int64_t *positions; /* [size], in the order of the members */
  uint64_t *sorted;   /* [size]: position in the base << 32 | position here, ascending */
} picked;

mgrid_family *mgrid_picked_new(const mgrid_family *base, int64_t n, const int64_t *positions,
                               mgrid_error *err) {
  mgrid_family *f = mgrid_family_alloc(&mgrid_picked_form, base->world,
                                       sizeof(picked) + (size_t)n * 2 * sizeof(int64_t), err);

  if (!f) return NULL;
  picked *own = f->own;
  own->base = mgrid_family_origin(base);
  own->positions = (int64_t *)(own + 1);
  own->sorted = (uint64_t *)(own->positions + n);
  f->bytes += own->base->bytes;
  f->size = f->max_size = n;
  f->count = base->count;
  f->total = n * f->count;
  f->low = INT64_MAX;
  for (int64_t i = 0; i < n; i++) {
    int64_t low = base->rule->offset + mgrid_modes_offset(&base->rule->inside, positions[i]);
    int64_t high = low + mgrid_modes_span(&base->rule->index);
    own->positions[i] = positions[i];
    own->sorted[i] = (uint64_t)positions[i] << 32 | (uint64_t)i;
    if (low < f->low) f->low = low;
    if (high > f->high) f->high = high;
  }
  qsort(own->sorted, (size_t)n, sizeof *own->sorted, mgrid_key_order);
  return f;
}

/* ----------------------------------------------------------------- questions */

static int64_t picked_rank(const mgrid_family *f, int64_t group, int64_t position) {
  const picked *own = f->own;
  return mgrid_family_rank(own->base, group, own->positions[position]);
}

static bool picked_locate(const mgrid_family *f, int64_t rank, int64_t nth, int64_t *group,
                          int64_t *position) {
  const picked *own = f->own;
  int64_t p, found;
  if (!mgrid_family_locate(own->base, rank, nth, group, &p)) return false;
  found = mgrid_key_at(own->sorted, f->size, p);
  if (found == f->size || own->sorted[found] >> 32 != (uint64_t)p) return false;
  *position = (int64_t)(own->sorted[found] & UINT32_MAX);
  return true;
}

/* Write n groups. They are all shifted copies of one. */
static int64_t picked_range(const mgrid_family *f, int64_t group, int64_t n, int32_t *out) {
  const mgrid_strided *rule = ((const picked *)f->own)->base->rule;
  int64_t size = f->size, first = mgrid_strided_start(rule, group);
  mgrid_family_slice(f, group, 0, size, out);
  for (int64_t g = 1; g < n; g++) {
    int32_t shift = (int32_t)(mgrid_strided_start(rule, group + g) - first), *next = out + g * size;
    for (int64_t i = 0; i < size; i++) next[i] = out[i] + shift;
  }
  return n * size;
}

static bool picked_same_rule(const mgrid_family *a, const mgrid_family *b) {
  const picked *x = a->own, *y = b->own;
  return mgrid_family_same_rule(x->base, y->base)
         && memcmp(x->positions, y->positions, (size_t)a->size * sizeof *x->positions) == 0;
}

static void picked_text(const mgrid_family *f, mgrid_text *t) {
  const picked *own = f->own;
  mgrid_text_str(t, "pick{");
  for (int64_t i = 0; i < f->size; i++) {
    if (i) mgrid_text_str(t, ",");
    mgrid_text_int(t, own->positions[i]);
  }
  mgrid_text_str(t, "} of ");
  mgrid_family_text(own->base, t);
}

static void picked_json(const mgrid_family *f, mgrid_text *t) {
  const picked *own = f->own;
  mgrid_text_str(t, "{\"pick\":");
  mgrid_text_numbers(t, (size_t)f->size, own->positions);
  mgrid_text_str(t, ",\"of\":");
  mgrid_family_json(own->base, t);
  mgrid_text_str(t, "}");
}

static void picked_explain(const mgrid_family *f, mgrid_text *t) {
  (void)f;
  mgrid_text_str(t, "some positions of the groups of a rule, in an irregular order");
}

static void picked_free(mgrid_family *f) { mgrid_family_free(((picked *)f->own)->base); }

/* Make one class: that of the base, but with another first group. */
static bool picked_classes(const mgrid_family *f, mgrid_classes *list) {
  if (!mgrid_classes_of(((const picked *)f->own)->base, list)) return false;
  mgrid_class *c = &list->at[list->n - 1];
  c->start = mgrid_family_rank(f, 0, 0);
  c->size = f->size;
  c->ruled = false;
  return true;
}

static mgrid_shapes picked_shapes(const mgrid_family *f) {
  return (mgrid_shapes){ 1, 1, ((const picked *)f->own)->base->rule };
}

/* ---------------------------------------------------------------- operations */

/* Bundle n groups of the base, and pick the same positions in each of them. */
static mgrid_family *picked_bundle(const mgrid_family *f, int64_t n, mgrid_error *err) {
  const picked *own = f->own;
  mgrid_family *base = mgrid_bundle(own->base, n, err), *bundled = NULL;
  int64_t *positions = base ? malloc((size_t)(f->size * n) * sizeof *positions) : NULL;
  for (int64_t i = 0; i < f->size * n && positions; i++)
    positions[i] = own->positions[i % f->size] + i / f->size * own->base->size;
  if (positions)
    bundled = base->form->pick(base, f->size * n, positions, err);
  else if (base)
    mgrid_oom(err);
  free(positions);
  mgrid_family_free(base);
  return bundled;
}

static bool picked_bundle_lists(const mgrid_family *f, int64_t n, int64_t *work) {
  *work = n < 1 ? 0 : n < f->count ? n * f->size : f->total;
  return false;
}

static mgrid_family *picked_pick(const mgrid_family *f, int64_t n, const int64_t *positions,
                                 mgrid_error *err) {
  const picked *own = f->own;
  int64_t *of_base = malloc((size_t)n * sizeof *of_base);
  if (!of_base) return mgrid_null_oom(err);
  for (int64_t i = 0; i < n; i++) of_base[i] = own->positions[positions[i]];
  mgrid_family *g = own->base->form->pick(own->base, n, of_base, err);
  free(of_base);
  return g;
}

static mgrid_family *picked_groups(const mgrid_family *f, int64_t n, const int64_t *order,
                                   mgrid_error *err) {
  const picked *own = f->own;
  mgrid_family *base = own->base->form->groups(own->base, n, order, err);
  mgrid_family *g = base ? base->form->pick(base, f->size, own->positions, err) : NULL;
  mgrid_family_free(base);
  return g;
}

const mgrid_form mgrid_picked_form = {
  .name = "picked",
  .rank = picked_rank,
  .locate = picked_locate,
  .range = picked_range,
  .same_rule = picked_same_rule,
  .text = picked_text,
  .json = picked_json,
  .explain = picked_explain,
  .free = picked_free,
  .classes = picked_classes,
  .shapes = picked_shapes,
  .bundle = picked_bundle,
  .bundle_lists = picked_bundle_lists,
  .pick = picked_pick,
  .groups = picked_groups,
};
