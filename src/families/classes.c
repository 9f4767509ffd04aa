/* SPDX-License-Identifier: MIT
**
** classes.c - the groups of a family in classes, and its members as sets of points.
*/
#include "families/classes.h"

#include <stdlib.h>
#include <string.h>

enum { LISTED_MAX = 256, COMPARED_MAX = 4096 }; /* positions that are looked at one by one */

static mgrid_class *append(mgrid_classes *list) {
  if (list->n == list->room) {
    size_t       room = list->room ? 2 * list->room : 4;
    mgrid_class *more = list->n < MGRID_CLASSES_MAX ? realloc(list->at, room * sizeof *more) : NULL;
    if (!more) return NULL;
    list->at = more;
    list->room = room;
  }
  return &list->at[list->n++];
}

/* Group numbers of the steps of a class become so many times as large. */
static void spread(mgrid_class *c, int64_t times) {
  for (int i = 0; i < c->nsteps; i++) c->step[i].weight *= times;
}

static bool add_step(mgrid_class *c, int64_t size, int64_t stride, int64_t weight) {
  if (size == 1) return true;
  if (c->nsteps == MGRID_MODES_MAX) return false;
  c->step[c->nsteps++] = (mgrid_step){ size, stride, weight };
  return true;
}

static void one_mode(mgrid_class *c, int64_t size, int64_t stride) {
  c->ruled = true;
  c->size = size;
  c->nshape = size > 1;
  c->shape[0] = (mgrid_mode){ size, stride };
}

/* -------------------------------------------------------------------- forms */

static bool add_strided(mgrid_classes *list, const mgrid_family *f) {
  bool                 picked = f->form == MGRID_PICKED;
  const mgrid_strided *rule = picked ? &f->as.picked.base : &f->as.strided;
  mgrid_class         *c = append(list);
  int64_t              weight = 1;
  if (!c) return false;
  *c = (mgrid_class){ .start = mgrid_family_rank(f, 0, 0), .size = f->size, .ruled = !picked };
  for (int i = 0; i < rule->index.n; i++) {
    add_step(c, rule->index.at[i].size, rule->index.at[i].stride, weight);
    weight *= rule->index.at[i].size;
  }
  if (picked) return true;
  c->nshape = rule->inside.n;
  memcpy(c->shape, rule->inside.at, (size_t)rule->inside.n * sizeof *rule->inside.at);
  return true;
}

/* Pairs i of `length` from `first` on of groups along one mode, or every `every`th run of so many; round -1: of several. */
typedef struct run {
  int64_t first, length, times, every, round;
} run;

static bool add_run(mgrid_classes *list, const mgrid_family *f, const mgrid_class *base, run r) {
  int64_t      n = base->size, step = f->as.pairs.step, stride = base->shape[0].stride;
  mgrid_class *c = r.length > 0 && r.times > 0 ? append(list) : NULL;
  if (!c) return r.length <= 0 || r.times <= 0;
  *c = *base;
  c->group = base->group * mgrid_pairs_of(n, step, f->as.pairs.wrap) + r.first;
  c->start = base->start + r.first * stride;
  c->round = r.round;
  spread(c, mgrid_pairs_of(n, step, f->as.pairs.wrap));
  one_mode(c, 2, step * stride);
  c->ruled = r.first + step < n; /* else around the end, and back */
  return add_step(c, r.length, stride, 1) && add_step(c, r.times, r.every * stride, r.every);
}

/* Pairs of groups along one mode: those of the even runs of `step`, those of the odd ones, and those around the end. */
static bool add_line(mgrid_classes *list, const mgrid_family *f, const mgrid_class *base) {
  int64_t n = base->size, step = f->as.pairs.step, line = n - step, runs = line / step;
  bool    wrap = f->as.pairs.wrap, rounds = !wrap || n % step == 0;
  if (!rounds)
    return add_run(list, f, base, (run){ 0, line, 1, 1, -1 }) && add_run(list, f, base, (run){ line, step, 1, 1, -1 });
  return add_run(list, f, base, (run){ 0, step, (runs + 1) / 2, 2 * step, 0 })
         && add_run(list, f, base, (run){ step, step, runs / 2, 2 * step, 1 })
         && add_run(list, f, base, (run){ runs * step, line % step, 1, 1, runs % 2 })
         && (!wrap || add_run(list, f, base, (run){ line, step, 1, 1, n / step % 2 ? 2 : 1 }));
}

/* Pairs of groups along several modes: adding `step` to a position carries, or does not, at each of them. */
static bool add_carries(mgrid_classes *list, const mgrid_family *f, const mgrid_class *base, int mode, bool carry,
                        const mgrid_class *so_far, int64_t below) {
  int64_t per = mgrid_pairs_of(base->size, f->as.pairs.step, f->as.pairs.wrap);
  if (mode == base->nshape) {
    if (carry && !f->as.pairs.wrap) return true;
    mgrid_class *c = append(list);
    if (!c) return false;
    *c = *so_far;
    int64_t step = mgrid_family_rank(f, c->group, 1) - c->start;
    one_mode(c, 2, step);
    c->ruled = step > 0;
    return true;
  }
  mgrid_mode m = base->shape[mode];
  int64_t    step = f->as.pairs.step, add = step / below % m.size + carry, low = add < m.size ? m.size - add : 0;
  run        runs[3] = { { 0, low, 1, 1, so_far->round }, { low, m.size - low, 1, 1, so_far->round } };
  if (mode == 0) runs[0].round = runs[1].round = -1;
  if (mode == 0 && m.size % (2 * step) == 0) { /* the first mode tells the round */
    runs[1] = (run){ low, step, 1, 1, 1 };
    runs[0] = (run){ 0, step, m.size / step / 2, 2 * step, 0 };
    runs[2] = (run){ step, step, m.size / step / 2 - 1, 2 * step, 1 };
  }
  for (int i = 0; i < 3; i++) { /* digits with a carry are the second */
    mgrid_class c = *so_far;
    if (runs[i].length == 0 || runs[i].times == 0) continue;
    if (mode == 0) {
      c.group = base->group * per;
      spread(&c, per);
    }
    c.group += runs[i].first * below;
    c.start += runs[i].first * m.stride;
    c.round = runs[i].round;
    if (!add_step(&c, runs[i].length, m.stride, below)
        || !add_step(&c, runs[i].times, runs[i].every * m.stride, runs[i].every * below)
        || !add_carries(list, f, base, mode + 1, i == 1, &c, below * m.size))
      return false;
  }
  return true;
}

static bool add_pairs(mgrid_classes *list, const mgrid_family *f) {
  const mgrid_family *below = f->as.pairs.base;
  mgrid_classes       base = { 0 };
  int64_t             per = mgrid_pairs_of(below->size, f->as.pairs.step, f->as.pairs.wrap);
  bool                told = mgrid_classes_of(below, &base) && (per <= LISTED_MAX || base.n == 0 || base.at[0].ruled);
  for (size_t i = 0; i < base.n && told; i++) {
    const mgrid_class *b = &base.at[i];
    if (b->ruled) {
      told = b->nshape == 1 ? add_line(list, f, b) : add_carries(list, f, b, 0, false, b, 1);
      continue;
    }
    for (int64_t k = 0; k < per && told; k++) {
      mgrid_class *c = append(list);
      if (!(told = c)) break;
      *c = *b;
      spread(c, per);
      c->group = b->group * per + k;
      c->start = mgrid_family_rank(f, c->group, 0);
      c->size = 2;
      c->round = mgrid_family_round(f, c->group);
    }
  }
  free(base.at);
  return told;
}

/* Piece i of the groups of a class of the base. */
static bool add_piece(mgrid_classes *list, const mgrid_family *f, const mgrid_class *base, int64_t i,
                      mgrid_class **out) {
  int64_t      n = f->as.cut.n, groups = f->as.cut.base->count;
  mgrid_class *c = append(list);
  if (!c) return false;
  *c = *base;
  if (!f->as.cut.by_row) spread(c, n);
  c->group = f->as.cut.by_row ? i * groups + base->group : base->group * n + i;
  c->start = mgrid_family_rank(f, c->group, 0);
  c->ruled = false;
  c->size = mgrid_cut_size(f, i);
  if (base->ruled && base->nshape == 1) one_mode(c, c->size, base->shape[0].stride * (f->as.cut.links ? n : 1));
  if (out) *out = c;
  return true;
}

/* Equal runs of positions repeat with a period of the modes; add those of the first period, and the periods as steps. */
static bool add_periods(mgrid_classes *list, const mgrid_family *f, const mgrid_class *base) {
  int64_t           size = f->size, unit = f->as.cut.by_row ? f->as.cut.base->count : 1;
  const mgrid_modes shape = { base->nshape, (mgrid_mode *)base->shape };
  MGRID_MODES(inner);
  MGRID_MODES(outer);
  for (int64_t pieces = 1; pieces <= LISTED_MAX && pieces <= f->as.cut.n; pieces++) {
    int64_t weight = unit * pieces;
    bool    told = true;
    if (f->as.cut.n % pieces || !mgrid_modes_cut(&shape, pieces * size, &inner, &outer, NULL)) continue;
    for (int64_t i = 0; i < pieces && told; i++, weight = unit * pieces) {
      mgrid_class *c;
      told = add_piece(list, f, base, i, &c);
      for (int k = 0; k < outer.n && told; weight *= outer.at[k++].size)
        told = add_step(c, outer.at[k].size, outer.at[k].stride, weight);
    }
    return told;
  }
  return false;
}

static bool add_cut(mgrid_classes *list, const mgrid_family *f) {
  mgrid_classes base = { 0 };
  int64_t       n = f->as.cut.n, unit = f->as.cut.by_row ? f->as.cut.base->count : 1;
  bool          told = mgrid_classes_of(f->as.cut.base, &base);
  for (size_t i = 0; i < base.n && told; i++) {
    const mgrid_class *b = &base.at[i];
    if (b->ruled && b->nshape == 1 && !f->as.cut.starts) { /* the pieces are shifted, too */
      mgrid_class *c;
      told = add_piece(list, f, b, 0, &c) && add_step(c, n, b->shape[0].stride * (f->as.cut.links ? 1 : f->size), unit);
    } else if (n > LISTED_MAX) {
      told = b->ruled && !f->as.cut.starts && !f->as.cut.links && add_periods(list, f, b);
    } else {
      for (int64_t k = 0; k < n && told; k++) told = add_piece(list, f, b, k, NULL);
    }
  }
  free(base.at);
  return told;
}

static bool add_union(mgrid_classes *list, const mgrid_family *f) {
  int64_t before = 0;
  for (size_t i = 0; i < f->as.parts.n; i++) {
    size_t first = list->n;
    if (!mgrid_classes_of(f->as.parts.child[i], list)) return false;
    for (; first < list->n; first++) list->at[first].group += before;
    before += f->as.parts.child[i]->count;
  }
  return true;
}

/* Families with equal steps: a group of the zip is shifted as its parts are. */
static bool add_zip(mgrid_classes *list, const mgrid_family *f) {
  size_t first = list->n;
  bool   told = mgrid_classes_of(f->as.parts.child[0], list);
  size_t n = list->n - first;
  for (size_t i = 1; i < f->as.parts.n && told; i++) {
    mgrid_classes other = { 0 };
    told = mgrid_classes_of(f->as.parts.child[i], &other) && other.n == n;
    for (size_t k = 0; k < n && told; k++) {
      mgrid_class       *c = &list->at[first + k];
      const mgrid_class *d = &other.at[k];
      told = c->group == d->group && c->nsteps == d->nsteps
             && memcmp(c->step, d->step, (size_t)c->nsteps * sizeof *c->step) == 0;
      c->size += d->size;
      c->ruled = false;
    }
    free(other.at);
  }
  return told;
}

static bool add_table(mgrid_classes *list, const mgrid_family *f) {
  for (int64_t g = 0; g < f->count; g++) {
    mgrid_class *c = f->count <= MGRID_CLASSES_MAX ? append(list) : NULL;
    if (!c) return false;
    *c = (mgrid_class){ .group = g,
                        .start = mgrid_family_rank(f, g, 0),
                        .size = mgrid_family_size(f, g),
                        .round = mgrid_family_round(f, g) };
  }
  return true;
}

bool mgrid_classes_of(const mgrid_family *f, mgrid_classes *list) {
  if (f->count == 0) return true;
  switch (f->form) {
  case MGRID_STRIDED:
  case MGRID_PICKED: return add_strided(list, f);
  case MGRID_PAIRS: return add_pairs(list, f);
  case MGRID_CUT: return add_cut(list, f);
  case MGRID_UNION: return add_union(list, f);
  case MGRID_ZIP: return add_zip(list, f);
  case MGRID_TABLE: return add_table(list, f);
  }
  return false;
}

/* ---------------------------------------------------------------- questions */

bool mgrid_class_starts(const mgrid_class *c, mgrid_points *out) {
  out->offset = c->start;
  out->n = 0;
  for (int i = 0; i < c->nsteps; i++) mgrid_points_push(out, c->step[i].size, c->step[i].stride);
  return mgrid_points_apart(out);
}

bool mgrid_class_numbered(const mgrid_class *c, mgrid_points *out) {
  out->offset = c->group << 31 | c->start;
  out->n = 0;
  for (int i = 0; i < c->nsteps; i++)
    mgrid_points_push(out, c->step[i].size, (c->step[i].weight << 31) + c->step[i].stride);
  return mgrid_points_apart(out);
}

mgrid_told mgrid_class_alike(const mgrid_family *f, const mgrid_class *c, const mgrid_family *g, const mgrid_class *d) {
  if (c->size != d->size) return MGRID_NO;
  if (c->ruled && d->ruled)
    return c->nshape == d->nshape && memcmp(c->shape, d->shape, (size_t)c->nshape * sizeof *c->shape) == 0 ? MGRID_YES
                                                                                                           : MGRID_NO;
  int64_t shift = d->start - c->start, last = c->size - 1;
  if (mgrid_family_rank(f, c->group, last) + shift != mgrid_family_rank(g, d->group, last)) return MGRID_NO;
  for (int64_t p = 1; p < last; p++) {
    if (p == COMPARED_MAX) return MGRID_UNTOLD;
    if (mgrid_family_rank(f, c->group, p) + shift != mgrid_family_rank(g, d->group, p)) return MGRID_NO;
  }
  return MGRID_YES;
}

bool mgrid_sets_each(const mgrid_points *a, const mgrid_sets *sets, bool every, mgrid_points_fn fn, void *ud,
                     mgrid_payer *payer) {
  const mgrid_points **others = malloc((sets->n + 1) * sizeof *others);
  for (size_t i = 0; i < sets->n && others; i++) others[i] = &sets->at[i];
  bool done = others && mgrid_points_each(a, sets->n, others, every, fn, ud, payer);
  free(others);
  return done;
}

static bool find_outside(void *lowest, int64_t point, int64_t weight, int64_t in) {
  int64_t *low = lowest;
  (void)weight;
  if (in < 0 && (*low < 0 || point < *low)) *low = point;
  return true;
}

bool mgrid_sets_lack(const mgrid_points *a, const mgrid_sets *sets, int64_t *lowest, mgrid_payer *payer) {
  *lowest = -1;
  return mgrid_sets_each(a, sets, false, find_outside, lowest, payer);
}

static bool find_inside(void *lowest, int64_t point, int64_t weight, int64_t in) {
  return in < 0 || find_outside(lowest, point, weight, -1);
}

bool mgrid_sets_meet(const mgrid_points *a, const mgrid_sets *sets, int64_t *lowest, mgrid_payer *payer) {
  *lowest = -1;
  return mgrid_sets_each(a, sets, false, find_inside, lowest, payer);
}

/* ----------------------------------------------------------------- partners */

bool mgrid_class_position(const mgrid_family *f, const mgrid_class *c, int64_t p, mgrid_sets *list) {
  mgrid_points *set = mgrid_sets_add(list);
  if (!set || !mgrid_class_starts(c, set)) return false;
  set->offset = mgrid_family_rank(f, c->group, p);
  return true;
}

/* Ways to write a distance as steps of the modes of a shape, forwards or backwards: those of modes at[n - 1] and below
** that make `left`. Digits that such a step does not lead beyond its mode make a set. */
static bool add_ways(mgrid_sets *list, const mgrid_class *c, const mgrid_points *shape, int mode, int64_t left,
                     const mgrid_points *so_far) {
  if (mode == shape->n) {
    mgrid_points *set = left == 0 ? mgrid_sets_add(list) : NULL;
    if (!set) return left != 0;
    *set = *so_far;
    for (int i = 0; i < c->nsteps; i++)
      if (!mgrid_points_push(set, c->step[i].size, c->step[i].stride)) return false;
    return mgrid_points_apart(set);
  }
  mgrid_mode m = shape->at[mode];
  int64_t    low = left / m.stride - (left % m.stride < 0), reach = 0;
  for (int i = mode + 1; i < shape->n; i++) reach += (shape->at[i].size - 1) * shape->at[i].stride;
  for (int64_t step = low; step <= low + 1; step++) {
    int64_t rest = left - step * m.stride, length = m.size - (step < 0 ? -step : step);
    if (length < 1 || rest > reach || -rest > reach) continue;
    mgrid_points set = *so_far;
    if (step < 0) set.offset -= step * m.stride;
    if (!mgrid_points_push(&set, length, m.stride) || !add_ways(list, c, shape, mode + 1, rest, &set)) return false;
  }
  return true;
}

bool mgrid_class_partners(const mgrid_family *f, const mgrid_class *c, int64_t distance, mgrid_sets *list) {
  if (c->ruled) {
    mgrid_points shape = { 0 }, none = { .offset = c->start };
    for (int i = 0; i < c->nshape; i++) mgrid_points_push(&shape, c->shape[i].size, c->shape[i].stride);
    return add_ways(list, c, &shape, 0, distance, &none);
  }
  if (c->size > LISTED_MAX) return false;
  for (int64_t p = 0; p < c->size; p++)
    for (int64_t q = 0; q < c->size; q++)
      if (mgrid_family_rank(f, c->group, q) - mgrid_family_rank(f, c->group, p) == distance
          && !mgrid_class_position(f, c, p, list))
        return false;
  return true;
}

/* ------------------------------------------------------------------ members */

mgrid_points *mgrid_sets_add(mgrid_sets *list) {
  if (list->n == list->room) {
    size_t        room = list->room ? 2 * list->room : 4;
    mgrid_points *more = list->n < MGRID_CLASSES_MAX ? realloc(list->at, room * sizeof *more) : NULL;
    if (!more) return NULL;
    list->at = more;
    list->room = room;
  }
  return &list->at[list->n++];
}

static bool by_class(mgrid_sets *list, const mgrid_family *f) {
  mgrid_classes classes = { 0 };
  bool          told = mgrid_classes_of(f, &classes);
  for (size_t i = 0; i < classes.n && told; i++)
    for (int64_t p = 0; p < classes.at[i].size && told; p++) told = mgrid_class_position(f, &classes.at[i], p, list);
  free(classes.at);
  return told;
}

static bool add_strided_members(mgrid_sets *list, const mgrid_strided *rule) {
  mgrid_points *set = mgrid_sets_add(list);
  if (!set) return false;
  MGRID_MODES(merged); /* modes that follow each other are one: whole windows are a run */
  for (int i = rule->ndigits; i-- > 0;) mgrid_modes_push(&merged, rule->digits[i].size, rule->digits[i].stride);
  *set = (mgrid_points){ .offset = rule->offset };
  for (int i = 0; i < merged.n; i++) mgrid_points_push(set, merged.at[i].size, merged.at[i].stride);
  return true;
}

/* The ranks of a table, which are sorted, in runs. */
static bool add_listed(mgrid_sets *list, const mgrid_family *f) {
  mgrid_points *set = NULL;
  int64_t       length = 0;
  for (int64_t i = 0; i < f->total; i++) {
    int64_t rank = (int64_t)(f->as.table.by_rank[i] >> 32), next = set ? set->offset + length : -1;
    if (set && rank < next) continue; /* again */
    if (rank != next) {
      length = 0;
      if (!(set = mgrid_sets_add(list))) return false;
      *set = (mgrid_points){ .offset = rank };
    }
    set->n = ++length > 1;
    set->at[0] = (mgrid_mode){ length, 1 };
  }
  return true;
}

bool mgrid_members_of(const mgrid_family *f, mgrid_sets *list) {
  if (f->count == 0) return true;
  switch (f->form) {
  case MGRID_STRIDED: return add_strided_members(list, &f->as.strided);
  case MGRID_PICKED:
  case MGRID_PAIRS: return f->size <= LISTED_MAX && by_class(list, f);
  case MGRID_CUT: return mgrid_members_of(f->as.cut.base, list);
  case MGRID_UNION:
  case MGRID_ZIP:
    for (size_t i = 0; i < f->as.parts.n; i++)
      if (!mgrid_members_of(f->as.parts.child[i], list)) return false;
    return true;
  case MGRID_TABLE: return add_listed(list, f);
  }
  return false;
}
