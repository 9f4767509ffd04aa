/* SPDX-License-Identifier: MIT
**
** picked.c - the form PICKED: some positions of the groups of a strided base, stored as a list.
*/
#include "families/classes.h"

#include <stdlib.h>
#include <string.h>

typedef struct picked {
  mgrid_family *base;
  int64_t      *positions; /* [size], in the order of the members */
  uint64_t     *sorted;    /* [size]: position in the base << 32 | position here, ascending */
} picked;

mgrid_family *mgrid_picked_new(const mgrid_family *base, int64_t n, const int64_t *positions, mgrid_error *err) {
  mgrid_family *f =
      mgrid_family_alloc(&mgrid_picked_form, base->world, sizeof(picked) + (size_t)n * 2 * sizeof(int64_t), err);
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

static bool picked_locate(const mgrid_family *f, int64_t rank, int64_t nth, int64_t *group, int64_t *position) {
  const picked *own = f->own;
  int64_t       p, found;
  if (!mgrid_family_locate(own->base, rank, nth, group, &p)) return false;
  found = mgrid_key_at(own->sorted, f->size, p);
  if (found == f->size || own->sorted[found] >> 32 != (uint64_t)p) return false;
  *position = (int64_t)(own->sorted[found] & UINT32_MAX);
  return true;
}

/* The groups are shifted copies of each other. */
static int64_t picked_range(const mgrid_family *f, int64_t group, int64_t n, int32_t *out) {
  const mgrid_strided *rule = ((const picked *)f->own)->base->rule;
  int64_t              size = f->size, first = mgrid_strided_start(rule, group);
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

/* Make one class: that of the base, with another first group. */
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

/* Bundle the base, and pick the same positions of each of the n groups. */
static mgrid_family *picked_bundle(const mgrid_family *f, int64_t n, mgrid_error *err) {
  const picked *own = f->own;
  mgrid_family *base = mgrid_bundle(own->base, n, err), *bundled = NULL;
  int64_t      *positions = base ? malloc((size_t)(f->size * n) * sizeof *positions) : NULL;
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

static mgrid_family *picked_pick(const mgrid_family *f, int64_t n, const int64_t *positions, mgrid_error *err) {
  const picked *own = f->own;
  int64_t      *of_base = malloc((size_t)n * sizeof *of_base);
  if (!of_base) return mgrid_null_oom(err);
  for (int64_t i = 0; i < n; i++) of_base[i] = own->positions[positions[i]];
  mgrid_family *g = own->base->form->pick(own->base, n, of_base, err);
  free(of_base);
  return g;
}

static mgrid_family *picked_groups(const mgrid_family *f, int64_t n, const int64_t *order, mgrid_error *err) {
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
