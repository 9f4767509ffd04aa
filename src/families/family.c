/* SPDX-License-Identifier: MIT
**
** family.c - life of a family and the questions: rank -> (group, position) and back.
** Every answer costs O(modes), or O(log) of what had to be listed.
*/
#include "families/family.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* -------------------------------------------------------------------- life */

mgrid_family *mgrid_family_alloc(mgrid_form form, int64_t world, int nmodes, mgrid_error *err) {
  mgrid_family *f = malloc(sizeof *f + (size_t)nmodes * (sizeof(mgrid_mode) + sizeof(mgrid_digit)));
  if (!f) return mgrid_null_oom(err);
  memset(f, 0, sizeof *f);
  atomic_init(&f->refs, 1);
  f->form = form;
  f->world = world;
  f->nodes = 1;
  f->bytes = sizeof *f + (size_t)nmodes * (sizeof(mgrid_mode) + sizeof(mgrid_digit));
  return f;
}

mgrid_status mgrid_family_put_above(mgrid_family *f, const mgrid_family *below, mgrid_error *err) {
  if (below->depth >= f->depth) f->depth = below->depth + 1;
  f->nodes += below->nodes;
  f->bytes += below->bytes;
  if (f->depth > MGRID_DEPTH_MAX)
    return mgrid_fail(err, MGRID_OUT_OF_RANGE, "a family made of others more than %d deep", MGRID_DEPTH_MAX);
  if (f->nodes > MGRID_PARTS_MAX)
    return mgrid_fail(err, MGRID_OUT_OF_RANGE, "a family of more than %d parts, with all that these are made of",
                      MGRID_PARTS_MAX);
  return MGRID_OK;
}

mgrid_family *mgrid_family_ref(const mgrid_family *f) {
  mgrid_family *owned = (mgrid_family *)f; /* only the count changes */
  if (owned) atomic_fetch_add(&owned->refs, 1);
  return owned;
}

void mgrid_family_free(mgrid_family *f) {
  if (!f || atomic_fetch_sub(&f->refs, 1) != 1) return;
  if (f->origin) {
    mgrid_family_free(f->origin);
  } else {
    switch (f->form) {
    case MGRID_STRIDED: break;
    case MGRID_PICKED:
      free(f->as.picked.positions);
      free(f->as.picked.sorted);
      break;
    case MGRID_PAIRS: mgrid_family_free(f->as.pairs.base); break;
    case MGRID_CUT:
      mgrid_family_free(f->as.cut.base);
      free(f->as.cut.starts);
      break;
    case MGRID_UNION:
    case MGRID_ZIP: mgrid_families_free(f->as.parts.n, f->as.parts.child); break;
    case MGRID_TABLE:
      free(f->as.table.starts);
      free(f->as.table.ranks);
      free(f->as.table.by_rank);
      free(f->as.table.round);
      break;
    }
  }
  free(f);
}

mgrid_status mgrid_count_check(const char *what, size_t n, mgrid_error *err) {
  if (n <= (size_t)MGRID_WORLD_MAX) return MGRID_OK;
  return mgrid_fail(err, MGRID_OUT_OF_RANGE, "%s: %zu elements; at most %" PRId64, what, n, MGRID_WORLD_MAX);
}

void mgrid_families_free(size_t n, mgrid_family **f) {
  for (size_t i = 0; i < n; i++) mgrid_family_free(f[i]);
  free(f);
}

mgrid_family *mgrid_family_twin(const mgrid_family *f, mgrid_error *err) {
  if (!f) return NULL;
  mgrid_family *twin = malloc(sizeof *twin);
  if (!twin) return mgrid_null_oom(err);
  size_t after = offsetof(mgrid_family, form); /* not the count of owners, which other threads may change */
  memcpy((char *)twin + after, (const char *)f + after, sizeof *twin - after);
  atomic_init(&twin->refs, 1);
  twin->origin = mgrid_family_ref(f->origin ? f->origin : f); /* of a twin: never a chain */
  twin->bytes = twin->origin->bytes + sizeof *twin;
  twin->twin = true;
  return twin;
}

/* ----------------------------------------------------------------- strided */

/* Sort the digits by stride and check that no two sums of digits can meet. */
static bool order_digits(mgrid_strided *s) {
  const mgrid_modes *list[2] = { &s->inside, &s->index };
  s->ndigits = 0;
  for (int side = 0; side < 2; side++) {
    int64_t weight = 1;
    for (int i = 0; i < list[side]->n; i++) {
      mgrid_mode m = list[side]->at[i];
      int        at = s->ndigits++;
      for (; at > 0 && s->digits[at - 1].stride < m.stride; at--) s->digits[at] = s->digits[at - 1];
      s->digits[at] = (mgrid_digit){ m.stride, m.size, weight, side == 0 };
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

bool mgrid_strided_put(mgrid_family *f, mgrid_strided *s, int64_t offset, const mgrid_modes *inside,
                       const mgrid_modes *index) {
  mgrid_mode *room = (mgrid_mode *)(f + 1);
  s->offset = offset;
  s->inside = (mgrid_modes){ inside->n, room };
  s->index = (mgrid_modes){ index->n, room + inside->n };
  s->digits = (mgrid_digit *)(room + inside->n + index->n);
  memcpy(s->inside.at, inside->at, (size_t)inside->n * sizeof *room);
  memcpy(s->index.at, index->at, (size_t)index->n * sizeof *room);
  return order_digits(s);
}

mgrid_family *mgrid_strided_new(int64_t world, int64_t offset, const mgrid_modes *inside, const mgrid_modes *index,
                                mgrid_error *err) {
  mgrid_family *f = mgrid_family_alloc(MGRID_STRIDED, world, inside->n + index->n, err);
  if (!f) return NULL;
  if (!mgrid_strided_put(f, &f->as.strided, offset, inside, index)) {
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

static bool strided_locate(const mgrid_strided *s, int64_t rank, int64_t *group, int64_t *position) {
  int64_t rest = rank - s->offset, side[2] = { 0, 0 };
  if (rest < 0) return false;
  for (int i = 0; i < s->ndigits; i++) {
    const mgrid_digit *d = &s->digits[i];
    int64_t            digit = rest / d->stride;
    if (digit >= d->size) return false;
    rest -= digit * d->stride;
    side[d->inside] += digit * d->weight;
  }
  *group = side[false];
  *position = side[true];
  return rest == 0;
}

/* --------------------------------------------------------- the other forms */

static bool picked_position(const mgrid_family *f, int64_t base_position, int64_t *position) {
  const int64_t *sorted = f->as.picked.sorted; /* pairs (position in the base, position) */
  int64_t        lo = 0, hi = f->size;
  while (lo < hi) {
    int64_t mid = lo + (hi - lo) / 2;
    if (sorted[2 * mid] < base_position)
      lo = mid + 1;
    else
      hi = mid;
  }
  if (lo == f->size || sorted[2 * lo] != base_position) return false;
  *position = sorted[2 * lo + 1];
  return true;
}

int64_t mgrid_pairs_of(int64_t n, int64_t step, bool wrap) { return n < 2 ? 0 : wrap ? n : n - step; }

/* A rank at base position p is the first of pair p and the second of pair p - step: find the nth of these
** two, in index order. */
static bool pairs_locate(const mgrid_family *f, int64_t rank, int64_t nth, int64_t *group, int64_t *position) {
  const mgrid_family *base = f->as.pairs.base;
  int64_t             n = base->size, step = f->as.pairs.step, g, p;
  int64_t             per = mgrid_pairs_of(n, step, f->as.pairs.wrap);
  if (per == 0 || !mgrid_family_locate(base, rank, 0, &g, &p)) return false;
  int64_t opens = p < per ? p : -1;
  int64_t closes = p >= step ? p - step : f->as.pairs.wrap ? p - step + n : -1;
  int64_t lower = opens < closes ? opens : closes, upper = opens < closes ? closes : opens;
  int64_t pair = lower < 0 ? (nth == 0 ? upper : -1) : (nth == 0 ? lower : nth == 1 ? upper : -1);
  if (pair < 0) return false;
  *group = g * per + pair;
  *position = pair == opens ? 0 : 1;
  return true;
}

int64_t mgrid_table_group(const mgrid_family *f, int64_t slot) {
  return mgrid_run_at(f->as.table.starts, f->count, slot);
}

static bool table_locate(const mgrid_family *f, int64_t rank, int64_t nth, int64_t *group, int64_t *position) {
  const uint64_t *by_rank = f->as.table.by_rank;
  int64_t         lo = 0, hi = f->total;
  while (lo < hi) {
    int64_t mid = lo + (hi - lo) / 2;
    if (by_rank[mid] < (uint64_t)rank << 32)
      lo = mid + 1;
    else
      hi = mid;
  }
  if (nth >= f->total - lo || by_rank[lo + nth] >> 32 != (uint64_t)rank) return false;
  int64_t slot = (int64_t)(by_rank[lo + nth] & UINT32_MAX);
  *group = mgrid_table_group(f, slot);
  *position = slot - f->as.table.starts[*group];
  return true;
}

const mgrid_family *mgrid_union_child(const mgrid_family *f, int64_t *group) {
  size_t i = 0;
  while (*group >= f->as.parts.child[i]->count) *group -= f->as.parts.child[i++]->count;
  return f->as.parts.child[i];
}

/* --------------------------------------------------------------- questions */

int64_t mgrid_family_world(const mgrid_family *f) { return f ? f->world : -1; }
int64_t mgrid_family_count(const mgrid_family *f) { return f ? f->count : -1; }
int64_t mgrid_family_max_size(const mgrid_family *f) { return f ? f->max_size : -1; }
int64_t mgrid_family_total(const mgrid_family *f) { return f ? f->total : -1; }

mgrid_coverage mgrid_family_coverage(const mgrid_family *f) {
  if (!f) return MGRID_PARTIAL;
  return f->overlapping ? MGRID_COVER : f->total == f->world ? MGRID_PARTITION : MGRID_PARTIAL;
}

int64_t mgrid_family_size(const mgrid_family *f, int64_t group) {
  if (!f || group < 0 || group >= f->count) return -1;
  if (f->size >= 0) return f->size;
  if (f->form == MGRID_TABLE) return f->as.table.starts[group + 1] - f->as.table.starts[group];
  if (f->form == MGRID_CUT) return mgrid_cut_size(f, mgrid_cut_piece(f, &group));
  if (f->form == MGRID_UNION) {
    const mgrid_family *child = mgrid_union_child(f, &group);
    return mgrid_family_size(child, group);
  }
  int64_t size = 0; /* ZIP */
  for (size_t i = 0; i < f->as.parts.n; i++) size += mgrid_family_size(f->as.parts.child[i], group);
  return size;
}

int64_t mgrid_family_rank(const mgrid_family *f, int64_t group, int64_t position) {
  if (position < 0 || position >= mgrid_family_size(f, group)) return -1;
  switch (f->form) {
  case MGRID_STRIDED:
    return mgrid_strided_start(&f->as.strided, group) + mgrid_modes_offset(&f->as.strided.inside, position);
  case MGRID_PICKED:
    return mgrid_strided_start(&f->as.picked.base, group)
           + mgrid_modes_offset(&f->as.picked.base.inside, f->as.picked.positions[position]);
  case MGRID_PAIRS: {
    const mgrid_family *base = f->as.pairs.base;
    int64_t             per = mgrid_pairs_of(base->size, f->as.pairs.step, f->as.pairs.wrap);
    int64_t             at = group % per + position * f->as.pairs.step;
    return mgrid_family_rank(base, group / per, at % base->size);
  }
  case MGRID_CUT: {
    int64_t piece = mgrid_cut_piece(f, &group);
    return mgrid_family_rank(f->as.cut.base, group, mgrid_cut_position(f, piece, position));
  }
  case MGRID_UNION: {
    const mgrid_family *child = mgrid_union_child(f, &group);
    return mgrid_family_rank(child, group, position);
  }
  case MGRID_ZIP:
    for (size_t i = 0; i < f->as.parts.n; i++) {
      int64_t n = mgrid_family_size(f->as.parts.child[i], group);
      if (position < n) return mgrid_family_rank(f->as.parts.child[i], group, position);
      position -= n;
    }
    return -1;
  case MGRID_TABLE: return f->as.table.ranks[f->as.table.starts[group] + position];
  }
  return -1;
}

bool mgrid_family_locate(const mgrid_family *f, int64_t rank, int64_t nth, int64_t *group, int64_t *position) {
  if (!f || rank < f->low || rank > f->high || nth < 0) return false;
  switch (f->form) {
  case MGRID_STRIDED: return nth == 0 && strided_locate(&f->as.strided, rank, group, position);
  case MGRID_PICKED: {
    int64_t p;
    return nth == 0 && strided_locate(&f->as.picked.base, rank, group, &p) && picked_position(f, p, position);
  }
  case MGRID_PAIRS: return pairs_locate(f, rank, nth, group, position);
  case MGRID_CUT: return nth == 0 && mgrid_cut_locate(f, rank, group, position);
  case MGRID_UNION: {
    int64_t before = 0;
    for (size_t i = 0; i < f->as.parts.n; i++) {
      const mgrid_family *child = f->as.parts.child[i];
      for (int64_t k = 0; mgrid_family_locate(child, rank, k, group, position); k++)
        if (nth-- == 0) {
          *group += before;
          return true;
        }
      before += child->count;
    }
    return false;
  }
  case MGRID_ZIP:
    if (nth > 0) return false;
    for (size_t i = 0; i < f->as.parts.n; i++) {
      if (!mgrid_family_locate(f->as.parts.child[i], rank, 0, group, position)) continue;
      for (size_t k = 0; k < i; k++) *position += mgrid_family_size(f->as.parts.child[k], *group);
      return true;
    }
    return false;
  case MGRID_TABLE: return table_locate(f, rank, nth, group, position);
  }
  return false;
}

/* ----------------------------------------------------------- rules and text */

bool mgrid_strided_equal(const mgrid_strided *x, const mgrid_strided *y) {
  return x->offset == y->offset && mgrid_modes_equal(&x->inside, &y->inside) && mgrid_modes_equal(&x->index, &y->index);
}

bool mgrid_family_same_rule(const mgrid_family *a, const mgrid_family *b) {
  if (a->form != b->form || a->count != b->count || a->total != b->total || a->size != b->size) return false;
  switch (a->form) {
  case MGRID_STRIDED: return mgrid_strided_equal(&a->as.strided, &b->as.strided);
  case MGRID_PICKED:
    return mgrid_strided_equal(&a->as.picked.base, &b->as.picked.base)
           && memcmp(a->as.picked.positions, b->as.picked.positions, (size_t)a->size * sizeof *a->as.picked.positions)
                  == 0;
  case MGRID_PAIRS:
    return a->as.pairs.step == b->as.pairs.step && a->as.pairs.wrap == b->as.pairs.wrap
           && mgrid_family_same_rule(a->as.pairs.base, b->as.pairs.base);
  case MGRID_CUT: return mgrid_cut_same_rule(a, b);
  case MGRID_UNION:
  case MGRID_ZIP:
    if (a->as.parts.n != b->as.parts.n) return false;
    for (size_t i = 0; i < a->as.parts.n; i++)
      if (!mgrid_family_same_rule(a->as.parts.child[i], b->as.parts.child[i])) return false;
    return true;
  case MGRID_TABLE:
    return memcmp(a->as.table.ranks, b->as.table.ranks, (size_t)a->total * sizeof *a->as.table.ranks) == 0
           && memcmp(a->as.table.starts, b->as.table.starts, (size_t)a->count * sizeof *a->as.table.starts) == 0;
  }
  return false;
}

static void strided_text(const mgrid_strided *s, mgrid_text *t) {
  mgrid_modes_text(&s->inside, t);
  mgrid_text_str(t, " x ");
  mgrid_modes_text(&s->index, t);
  if (s->offset == 0) return;
  mgrid_text_str(t, " + ");
  mgrid_text_int(t, s->offset);
}

static void rule_text(const mgrid_family *f, mgrid_text *t) {
  switch (f->form) {
  case MGRID_STRIDED: strided_text(&f->as.strided, t); return;
  case MGRID_PICKED:
    mgrid_text_str(t, "pick{");
    for (int64_t i = 0; i < f->size; i++) {
      if (i) mgrid_text_str(t, ",");
      mgrid_text_int(t, f->as.picked.positions[i]);
    }
    mgrid_text_str(t, "} of ");
    strided_text(&f->as.picked.base, t);
    return;
  case MGRID_PAIRS:
    mgrid_text_add(t, "neighbours(%" PRId64 "%s) of [", f->as.pairs.step, f->as.pairs.wrap ? ", wrap" : "");
    rule_text(f->as.pairs.base, t);
    mgrid_text_add(t, "]");
    return;
  case MGRID_CUT:
    mgrid_cut_text(f, t);
    mgrid_text_str(t, " of [");
    rule_text(f->as.cut.base, t);
    mgrid_text_str(t, "]");
    return;
  case MGRID_UNION:
  case MGRID_ZIP:
    mgrid_text_add(t, f->form == MGRID_UNION ? "union[" : "zip[");
    for (size_t i = 0; i < f->as.parts.n; i++) {
      if (i) mgrid_text_add(t, " | ");
      rule_text(f->as.parts.child[i], t);
    }
    mgrid_text_add(t, "]");
    return;
  case MGRID_TABLE:
    for (int64_t g = 0; g < f->count; g++) {
      for (int64_t i = f->as.table.starts[g]; i < f->as.table.starts[g + 1]; i++) {
        mgrid_text_str(t, i == f->as.table.starts[g] ? "{" : ",");
        mgrid_text_int(t, f->as.table.ranks[i]);
      }
      mgrid_text_str(t, "}");
    }
    return;
  }
}

void mgrid_family_text(const mgrid_family *f, mgrid_text *t) {
  rule_text(f, t);
  if (f->count == 0) mgrid_text_str(t, " (no groups)");
}

size_t mgrid_family_describe(const mgrid_family *f, char *buf, size_t len) {
  mgrid_text t = { 0 };
  if (f) mgrid_family_text(f, &t);
  return mgrid_text_finish(&t, buf, len);
}
