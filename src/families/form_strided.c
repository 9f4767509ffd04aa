/* SPDX-License-Identifier: MIT
**
** form_strided.c - the form STRIDED: a rule of modes, which answers by division. Its operations
** move modes between `inside` and `index`. Where no modes describe the result, a split or a pick
** makes a view (form_view.c), and a bundle is refused.
*/
#include "families/classes.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* -------------------------------------------------------------------- making */

/* Fill the digits, largest stride first. Return whether the strides are superincreasing
** (family.h). */
static bool order_digits(mgrid_strided *s) {
  const mgrid_modes *list[2] = { &s->inside, &s->index };
  s->ndigits = 0;
  for (int side = 0; side < 2; side++) {
    int64_t weight = 1;
    for (int i = 0; i < list[side]->n; i++) {
      mgrid_mode m = list[side]->at[i];
      int place = s->ndigits++;
      for (; place > 0 && s->digits[place - 1].stride < m.stride; place--)
        s->digits[place] = s->digits[place - 1];
      s->digits[place] = (mgrid_digit){ m.stride, m.size, weight, side == 0 };
      weight *= m.size;
    }
  }
  int64_t reach = 0;
  for (int i = s->ndigits - 1; i >= 0; i--) {
    if (s->digits[i].stride <= reach) return false;
    reach += (s->digits[i].size - 1) * s->digits[i].stride;
  }
  return true;
}

mgrid_family *mgrid_strided_new(int64_t world, int64_t offset, const mgrid_modes *inside,
                                const mgrid_modes *index, mgrid_error *err) {
  size_t n = (size_t)(inside->n + index->n);
  mgrid_family *f = mgrid_family_alloc(
      &mgrid_strided_form, world,
      sizeof(mgrid_strided) + n * (sizeof(mgrid_mode) + sizeof(mgrid_digit)), err);

  if (!f) return NULL;
  mgrid_strided *s = f->rule = f->own;
  mgrid_mode *room = (mgrid_mode *)(s + 1);
  s->offset = offset;
  s->inside = (mgrid_modes){ inside->n, room };
  s->index = (mgrid_modes){ index->n, room + inside->n };
  s->digits = (mgrid_digit *)(room + n);
  memcpy(s->inside.at, inside->at, (size_t)inside->n * sizeof *room);
  memcpy(s->index.at, index->at, (size_t)index->n * sizeof *room);
  if (!order_digits(s)) {
    mgrid_family_free(f);
    return NULL;
  }
  f->size = f->max_size = mgrid_modes_count(inside);
  f->count = mgrid_modes_count(index);
  f->total = f->size * f->count;
  f->low = offset;
  f->high = offset + mgrid_modes_span(inside) + mgrid_modes_span(index);
  return f;
}

bool mgrid_strided_equal(const mgrid_strided *x, const mgrid_strided *y) {
  return x->offset == y->offset && mgrid_modes_equal(&x->inside, &y->inside)
         && mgrid_modes_equal(&x->index, &y->index);
}

/* ----------------------------------------------------------------- questions */

static int64_t strided_rank(const mgrid_family *f, int64_t group, int64_t position) {
  return mgrid_strided_start(f->rule, group) + mgrid_modes_offset(&f->rule->inside, position);
}

static bool strided_locate(const mgrid_family *f, int64_t rank, int64_t nth, int64_t *group,
                           int64_t *position) {
  const mgrid_strided *s = f->rule;
  int64_t rest = rank - s->offset, side[2] = { 0, 0 };
  if (rest < 0 || nth > 0) return false;
  for (int i = 0; i < s->ndigits; i++) {
    const mgrid_digit *d = &s->digits[i];
    int64_t digit = rest / d->stride;
    if (digit >= d->size) return false;
    rest -= digit * d->stride;
    side[d->inside] += digit * d->weight;
  }
  *group = side[false];
  *position = side[true];
  return rest == 0;
}

/* Repeat the n ranks at `out` until they occur `times` times. Each copy is shifted by another
** `stride`. */
static void repeat(int32_t *out, int64_t n, int64_t times, int64_t stride) {
  for (int64_t k = 1; k < times; k++) {
    int32_t shift = (int32_t)(k * stride), *next = out + k * n;
    for (int64_t i = 0; i < n; i++) next[i] = out[i] + shift;
  }
}

/* Write n ranks, from index `at` on, of the list of all groups one after the other. The inside
** modes and then the index modes count through that list. First make a pattern from the first
** modes, and as many steps of the next mode as keep it in the L1 cache. The rest is this pattern,
** shifted; so memory is written but not read. */
static void strided_write_out(const mgrid_strided *s, int64_t at, int64_t n, int32_t *out) {
  enum { PATTERN = 2048 };
  int32_t pattern[PATTERN];
  const mgrid_mode *mode = s->inside.at, *end = mode + s->inside.n + s->index.n;
  int64_t most = n < PATTERN ? n : PATTERN, filled = 1;

  pattern[0] = 0;
  for (; mode < end && filled * mode->size <= most; mode++) {
    repeat(pattern, filled, mode->size, mode->stride);
    filled *= mode->size;
  }
  /* the mode of which the pattern holds only some steps */
  mgrid_mode cut = mode < end ? *mode : (mgrid_mode){ 1, 0 };
  int64_t steps = cut.size == 1 ? 1 : most / filled, period = filled * steps,
          span = filled * cut.size;
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

static void strided_slice(const mgrid_family *f, int64_t group, int64_t position, int64_t n,
                          int32_t *out) {
  strided_write_out(f->rule, group * f->size + position, n, out);
}

static int64_t strided_range(const mgrid_family *f, int64_t group, int64_t n, int32_t *out) {
  strided_write_out(f->rule, group * f->size, n * f->size, out);
  return n * f->size;
}

static bool strided_same_rule(const mgrid_family *a, const mgrid_family *b) {
  return mgrid_strided_equal(a->rule, b->rule);
}

static mgrid_tristate strided_same_group(const mgrid_family *a, int64_t ga, const mgrid_family *b,
                                         int64_t gb) {
  return mgrid_modes_equal(&a->rule->inside, &b->rule->inside)
                 && mgrid_strided_start(a->rule, ga) == mgrid_strided_start(b->rule, gb)
             ? MGRID_YES
             : MGRID_NO;
}

static void strided_text(const mgrid_family *f, mgrid_text *t) {
  mgrid_modes_text(&f->rule->inside, t);
  mgrid_text_str(t, " x ");
  mgrid_modes_text(&f->rule->index, t);
  if (f->rule->offset == 0) return;
  mgrid_text_str(t, " + ");
  mgrid_text_int(t, f->rule->offset);
}

static void strided_json(const mgrid_family *f, mgrid_text *t) {
  mgrid_text_str(t, "{\"inside\":");
  mgrid_modes_json(&f->rule->inside, t);
  mgrid_text_str(t, ",\"index\":");
  mgrid_modes_json(&f->rule->index, t);
  if (f->rule->offset) mgrid_text_str(t, ",\"offset\":"), mgrid_text_int(t, f->rule->offset);
  mgrid_text_str(t, "}");
}

/* Append "8 ranks, 2 apart", or "16 ranks: 4 that are 2 apart, those 4 times, 16 apart". */
static void explain_modes(mgrid_text *t, const mgrid_modes *m, const char *what) {
  int64_t n = mgrid_modes_count(m);
  mgrid_text_add(t, "%" PRId64 " %s%s", n, what, mgrid_s_of(n));
  if (m->n == 1) mgrid_text_add(t, ", %" PRId64 " apart", m->at[0].stride);
  for (int i = 0; i < m->n && m->n > 1; i++)
    mgrid_text_add(t,
                   i ? ", those %" PRId64 " times, %" PRId64 " apart"
                     : ": %" PRId64 " that are %" PRId64 " apart",
                   m->at[i].size, m->at[i].stride);
}

static void strided_explain(const mgrid_family *f, mgrid_text *t) {
  mgrid_text_str(t, "a group is ");
  explain_modes(t, &f->rule->inside, "rank");
  if (f->rule->index.n == 0) {
    mgrid_text_add(t, "; the only one begins at rank %" PRId64, f->rule->offset);
    return;
  }
  mgrid_text_str(t, "; the groups begin at ");
  explain_modes(t, &f->rule->index, "place");
  mgrid_text_add(t, ", from rank %" PRId64 " on", f->rule->offset);
}

/* ------------------------------------------------------------ all groups at once */

static bool strided_classes(const mgrid_family *f, mgrid_classes *list) {
  const mgrid_modes *inside = &f->rule->inside, *index = &f->rule->index;
  mgrid_class *c = mgrid_classes_add(list);
  int64_t weight = 1;
  if (!c) return false;
  *c = (mgrid_class){
    .start = f->rule->offset, .size = f->size, .ruled = true, .nshape = inside->n
  };
  memcpy(c->shape, inside->at, (size_t)inside->n * sizeof *inside->at);
  for (int i = 0; i < index->n; i++) {
    mgrid_class_step(c, index->at[i].size, index->at[i].stride, weight);
    weight *= index->at[i].size;
  }
  return true;
}

static bool strided_members(const mgrid_family *f, mgrid_sets *list) {
  mgrid_points *set = mgrid_sets_add(list);
  if (!set) return false;
  MGRID_MODES(merged); /* consecutive modes become one, so that a whole window is one run */
  for (int i = f->rule->ndigits; i-- > 0;)
    mgrid_modes_push(&merged, f->rule->digits[i].size, f->rule->digits[i].stride);
  *set = (mgrid_points){ .offset = f->rule->offset };
  for (int i = 0; i < merged.n; i++) mgrid_points_push(set, merged.at[i].size, merged.at[i].stride);
  return true;
}

static mgrid_shapes strided_shapes(const mgrid_family *f) {
  return (mgrid_shapes){ 1, 1, f->rule };
}

static int64_t strided_distance(const mgrid_family *f, bool *around) {
  *around = false;
  return f->rule->inside.at[0].stride;
}

/* ---------------------------------------------------------------- operations */

/* Make one half of a split: its groups get the modes `inside`. The modes of the other half join the
** index modes. */
static mgrid_family *half(const mgrid_splitting *x, const mgrid_family *f,
                          const mgrid_modes *inside, const mgrid_modes *pieces, mgrid_error *err) {
  MGRID_MODES(index);
  mgrid_modes_append(&index, x->by_row ? &f->rule->index : pieces);
  mgrid_modes_append(&index, x->by_row ? pieces : &f->rule->index);
  return mgrid_strided_new(f->world, f->rule->offset, inside, &index, err);
}

static mgrid_status strided_split(mgrid_splitting *x, const mgrid_family *f, mgrid_error *err) {
  MGRID_MODES(in);
  MGRID_MODES(out);
  mgrid_mode blocking;
  if (f->size % x->k != 0) return mgrid_split_refuse(f, x->k, NULL, err);
  if (!mgrid_modes_cut(&f->rule->inside, x->k, &in, &out, &blocking))
    return x->lists ? mgrid_split_cut(x, f, err) : mgrid_split_refuse(f, x->k, &blocking, err);
  x->inner = half(x, f, &in, &out, err);
  x->outer = half(x, f, &out, &in, err);
  return x->inner && x->outer ? MGRID_OK : MGRID_NO_MEMORY;
}

/* Join n groups into one: move their index modes to the end of the inside modes. */
static mgrid_family *strided_bundle(const mgrid_family *f, int64_t n, mgrid_error *err) {
  MGRID_MODES(joined);
  MGRID_MODES(index);
  MGRID_MODES(inside);
  mgrid_mode blocking;
  if (!mgrid_modes_cut(&f->rule->index, n, &joined, &index, &blocking))
    return mgrid_null(err, MGRID_REFUSED,
                      "bundle(%" PRId64 "): %" PRId64 " does not meet index mode (%" PRId64
                      ":%" PRId64 "); call lists() first",
                      n, n, blocking.size, blocking.stride);
  mgrid_modes_append(&inside, &f->rule->inside);
  mgrid_modes_append(&inside, &joined);
  return mgrid_strided_new(f->world, f->rule->offset, &inside, &index, err);
}

/* Pick positions. The result is STRIDED if modes describe it, else PICKED. */
static mgrid_family *strided_pick(const mgrid_family *f, int64_t n, const int64_t *positions,
                                  mgrid_error *err) {
  const mgrid_strided *s = f->rule;
  int64_t *offset = malloc((size_t)n * sizeof *offset),
          first = mgrid_modes_offset(&s->inside, positions[0]);
  if (!offset) return mgrid_null_oom(err);
  for (int64_t i = 0; i < n; i++) offset[i] = mgrid_modes_offset(&s->inside, positions[i]) - first;
  MGRID_MODES(inside);
  mgrid_family *g = NULL;
  mgrid_error why = MGRID_ERROR_INIT; /* separates "out of memory" from "no rule" */
  if (mgrid_modes_of(offset, n, &inside))
    g = mgrid_strided_new(f->world, s->offset + first, &inside, &s->index, &why);
  free(offset);
  if (why.status) mgrid_error_pass(err, &why);
  return g || why.status ? g : mgrid_picked_new(f, n, positions, err);
}

static mgrid_family *strided_groups(const mgrid_family *f, int64_t n, const int64_t *order,
                                    mgrid_error *err) {
  const mgrid_modes *old = &f->rule->index;
  int64_t *offset = malloc((size_t)n * sizeof *offset), first = mgrid_modes_offset(old, order[0]);
  if (!offset) return mgrid_null_oom(err);
  for (int64_t i = 0; i < n; i++) offset[i] = mgrid_modes_offset(old, order[i]) - first;
  MGRID_MODES(index);
  mgrid_family *g = NULL;
  if (mgrid_modes_of(offset, n, &index))
    g = mgrid_strided_new(f->world, f->rule->offset + first, &f->rule->inside, &index, err);
  free(offset);
  return g;
}

const mgrid_form mgrid_strided_form = {
  .name = "strided",
  .rank = strided_rank,
  .locate = strided_locate,
  .slice = strided_slice,
  .range = strided_range,
  .same_rule = strided_same_rule,
  .same_group = strided_same_group,
  .text = strided_text,
  .json = strided_json,
  .explain = strided_explain,
  .classes = strided_classes,
  .members = strided_members,
  .shapes = strided_shapes,
  .distance = strided_distance,
  .split = strided_split,
  .bundle = strided_bundle,
  .pick = strided_pick,
  .groups = strided_groups,
};
