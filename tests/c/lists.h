/* SPDX-License-Identifier: MIT
**
** lists.h - the reference: groups as plain lists of ranks, and every operation on them done in the
** obvious way. It shares no arithmetic with the library: coordinates are found by counting, not by
** dividing. lists_check compares the answers of a family to all questions with such lists.
*/
#ifndef TEST_LISTS_H
#define TEST_LISTS_H

#include "random.h"

#include "families/family.h"

typedef struct lists {
  int64_t n;       /* complete groups */
  int64_t total;   /* members, those of the open group included */
  int64_t *starts; /* [n + 1] */
  int64_t *ranks;  /* [total] */
  bool pairs;      /* made by neighbours, so declared a cover even if no rank is in two groups */
} lists;

static inline void *lists_room(void *array, size_t n, size_t each) {
  /* full only when n is a power of two; doubled then */
  if (n != 0 && (n & (n - 1)) != 0) return array;
  void *more = realloc(array, (n ? 2 * n : 1) * each);
  assert_non_null(more);
  return more;
}

static inline lists lists_new(void) {
  lists l = { 0 };
  l.starts = lists_room(NULL, 0, sizeof *l.starts);
  l.starts[0] = 0;
  return l;
}

static inline void lists_add(lists *l, int64_t rank) {
  l->ranks = lists_room(l->ranks, (size_t)l->total, sizeof *l->ranks);
  l->ranks[l->total++] = (int64_t)rank;
}

/* make a group of the members added since the last call */
static inline void lists_close(lists *l) {
  l->starts = lists_room(l->starts, (size_t)l->n + 1, sizeof *l->starts);
  l->starts[++l->n] = l->total;
}

static inline void lists_free(lists *l) {
  free(l->starts);
  free(l->ranks);
  memset(l, 0, sizeof *l);
}

static inline void lists_replace(lists *l, lists by) {
  lists_free(l);
  *l = by;
}

static inline int64_t lists_size(const lists *l, int64_t g) {
  return l->starts[g + 1] - l->starts[g];
}
static inline const int64_t *lists_group(const lists *l, int64_t g) {
  return l->ranks + l->starts[g];
}

static inline bool lists_same(const lists *a, const lists *b) {
  return a->n == b->n && a->total == b->total
         && memcmp(a->starts, b->starts, (size_t)(a->n + 1) * sizeof *a->starts) == 0
         && (a->total == 0 || memcmp(a->ranks, b->ranks, (size_t)a->total * sizeof *a->ranks) == 0);
}

static inline bool lists_same_group(const lists *a, int64_t ga, const lists *b, int64_t gb) {
  return lists_size(a, ga) == lists_size(b, gb)
         && memcmp(lists_group(a, ga), lists_group(b, gb),
                   (size_t)lists_size(a, ga) * sizeof(int64_t))
                == 0;
}

/* The groups that a family lists, taken as they are; lists_check compares them. */
static inline lists lists_of(const mgrid_family *f) {
  lists l = lists_new();
  int64_t *members = malloc((size_t)(mgrid_family_max_size(f) + 1) * sizeof *members);
  assert_non_null(members);
  for (int64_t g = 0; g < mgrid_family_count(f); g++) {
    mgrid_family_members(f, g, 1, (size_t)mgrid_family_max_size(f), members);
    for (int64_t p = 0; p < mgrid_family_size(f, g); p++) lists_add(&l, members[p]);
    lists_close(&l);
  }
  free(members);
  return l;
}

/* --------------------------------------------------------------- operations */

/* Ranks of the window are walked with their coordinates, the first dim fastest; each rank
** goes to the place that its coordinates name. */
static inline lists lists_along(const drawn *d, size_t nin, const size_t *in, size_t nix,
                                const size_t *ix) {
  int64_t coord[DRAWN_DIMS] = { 0 }, size = 1;
  lists l = lists_new();
  for (size_t i = 0; i < nin; i++) size *= d->dim[in[i]].size;
  for (int64_t i = 0; i < d->window.size; i++) {
    lists_add(&l, -1);
    if (l.total % size == 0) lists_close(&l);
  }
  for (int64_t rank = d->window.offset; rank < d->window.offset + d->window.size; rank++) {
    int64_t group = 0, position = 0;
    for (size_t i = nix; i > 0; i--) group = group * d->dim[ix[i - 1]].size + coord[ix[i - 1]];
    for (size_t i = nin; i > 0; i--)
      position = position * d->dim[in[i - 1]].size + coord[in[i - 1]];
    l.ranks[group * size + position] = (int64_t)rank;
    for (size_t i = 0; i < d->n && ++coord[i] == d->dim[i].size; i++) coord[i] = 0;
  }
  return l;
}

/* The runs of k positions of every group (inner), or the ranks at equal places of the runs (outer).
** k must divide every group size. */
static inline lists lists_split(const lists *l, int64_t k, bool inner) {
  lists out = lists_new();
  for (int64_t g = 0; g < l->n; g++) {
    int64_t runs = lists_size(l, g) / k;
    const int64_t *from = lists_group(l, g);
    for (int64_t i = 0; i < (inner ? runs : k); i++) {
      for (int64_t j = 0; j < (inner ? k : runs); j++)
        lists_add(&out, inner ? from[i * k + j] : from[j * k + i]);
      lists_close(&out);
    }
  }
  return out;
}

/* Groups in another order: group i is group order[i]. */
static inline lists lists_renumber(const lists *l, const int64_t *order) {
  lists out = lists_new();
  for (int64_t i = 0; i < l->n; i++) {
    for (int64_t p = 0; p < lists_size(l, order[i]); p++)
      lists_add(&out, lists_group(l, order[i])[p]);
    lists_close(&out);
  }
  return out;
}

/* Of groups that are `pieces` for each group of another family, piece after piece: each piece of
** all those groups before the next piece. */
static inline lists lists_by_row(const lists *l, int64_t pieces) {
  int64_t *order = malloc((size_t)(l->n + 1) * sizeof *order), at = 0;
  assert_non_null(order);
  for (int64_t p = 0; p < pieces; p++)
    for (int64_t g = p; g < l->n; g += pieces) order[at++] = g;
  lists out = lists_renumber(l, order);
  free(order);
  return out;
}

static inline lists lists_segments(const lists *l, size_t n, const int64_t *sizes) {
  lists out = lists_new();
  for (int64_t g = 0; g < l->n; g++) {
    int64_t at = 0;
    for (size_t i = 0; i < n; i++) {
      for (int64_t k = 0; k < sizes[i]; k++) lists_add(&out, lists_group(l, g)[at++]);
      lists_close(&out);
    }
  }
  return out;
}

static inline lists lists_pick(const lists *l, size_t n, const int64_t *positions) {
  lists out = lists_new();
  for (int64_t g = 0; g < l->n; g++) {
    for (size_t i = 0; i < n; i++) {
      int64_t p = positions[i] < 0 ? lists_size(l, g) + positions[i] : positions[i];
      int64_t rank = lists_group(l, g)[p];
      bool seen = false;
      for (int64_t k = out.starts[out.n]; k < out.total && !seen; k++) seen = out.ranks[k] == rank;
      if (!seen) lists_add(&out, rank);
    }
    lists_close(&out);
  }
  return out;
}

static inline lists lists_bundle(const lists *l, int64_t n) {
  lists out = lists_new();
  for (int64_t g = 0; g < l->n; g++) {
    for (int64_t p = 0; p < lists_size(l, g); p++) lists_add(&out, lists_group(l, g)[p]);
    if (g % n == n - 1) lists_close(&out);
  }
  return out;
}

static inline lists lists_pairs(const lists *l, int64_t step, bool wrap) {
  lists out = lists_new();
  out.pairs = true;
  for (int64_t g = 0; g < l->n; g++)
    for (int64_t p = 0, size = lists_size(l, g); p < size && size > 1; p++) {
      if (p + step >= size && (!wrap || 2 * step == size)) continue; /* no pair twice */
      lists_add(&out, lists_group(l, g)[p]);
      lists_add(&out, lists_group(l, g)[p + step < size ? p + step : p + step - size]);
      lists_close(&out);
    }
  return out;
}

static inline lists lists_without(const lists *l, size_t n, const int64_t *ranks) {
  lists out = lists_new();
  for (int64_t g = 0; g < l->n; g++) {
    for (int64_t p = 0; p < lists_size(l, g); p++) {
      bool gone = false;
      for (size_t i = 0; i < n; i++) gone |= ranks[i] == lists_group(l, g)[p];
      if (!gone) lists_add(&out, lists_group(l, g)[p]);
    }
    if (out.total > out.starts[out.n]) lists_close(&out);
  }
  return out;
}

static inline lists lists_reversed(const lists *l) { /* inside every group */
  lists out = lists_new();
  for (int64_t g = 0; g < l->n; g++) {
    for (int64_t p = lists_size(l, g); p > 0; p--) lists_add(&out, lists_group(l, g)[p - 1]);
    lists_close(&out);
  }
  return out;
}

static inline lists lists_union(const lists *a, const lists *b) {
  lists out = lists_new();
  const lists *both[2] = { a, b };
  out.pairs = a->pairs || b->pairs;
  for (int i = 0; i < 2; i++)
    for (int64_t g = 0; g < both[i]->n; g++) {
      for (int64_t p = 0; p < lists_size(both[i], g); p++)
        lists_add(&out, lists_group(both[i], g)[p]);
      lists_close(&out);
    }
  return out;
}

static inline lists lists_zip(const lists *a, const lists *b) {
  lists out = lists_new();
  for (int64_t g = 0; g < a->n; g++) {
    for (int64_t p = 0; p < lists_size(a, g); p++) lists_add(&out, lists_group(a, g)[p]);
    for (int64_t p = 0; p < lists_size(b, g); p++) lists_add(&out, lists_group(b, g)[p]);
    lists_close(&out);
  }
  return out;
}

static inline bool lists_overlap(const lists *l, int64_t world) {
  char *seen = calloc((size_t)world + 1, 1);
  bool twice = false;
  assert_non_null(seen);
  for (int64_t i = 0; i < l->total; i++) twice |= seen[l->ranks[i]]++ != 0;
  free(seen);
  return twice;
}

/* --------------------------------------------------------------- comparison */

/* Groups asked one by one, by group and position. */
static inline void lists_check_groups(const rng *r, const mgrid_family *f, const lists *l) {
  int64_t largest = 0;
  int64_t *members;
  for (int64_t g = 0; g < l->n; g++)
    if (lists_size(l, g) > largest) largest = lists_size(l, g);
  check(r, mgrid_family_count(f) == l->n);
  check(r, mgrid_family_total(f) == l->total);
  check(r, mgrid_family_max_size(f) == largest);
  check(r, mgrid_family_size(f, -1) == -1 && mgrid_family_size(f, l->n) == -1);
  check(r, mgrid_family_rank(f, -1, 0) == -1 && mgrid_family_rank(f, l->n, 0) == -1);
  members = malloc((size_t)(largest + 1) * sizeof *members);
  assert_non_null(members);
  for (int64_t g = 0; g < l->n; g++) {
    int64_t n = lists_size(l, g);
    check(r, mgrid_family_size(f, g) == n);
    members[n] = members[n / 2] =
        /* mgrid_family_members must not write past the group, nor past what there is room for */
        -7;
    check(r, mgrid_family_members(f, g, 1, (size_t)n / 2, members) == n && members[n / 2] == -7);
    check(r, mgrid_family_members(f, g, 1, (size_t)n + 1, members) == n && members[n] == -7);
    for (int64_t p = 0; p < n; p++) {
      check(r, members[p] == lists_group(l, g)[p]);
      check(r, mgrid_family_rank(f, g, p) == lists_group(l, g)[p]);
    }
    check(r, mgrid_family_rank(f, g, -1) == -1 && mgrid_family_rank(f, g, n) == -1);
  }
  free(members);
}

/* Every rank is asked where it is: its groups in index order and none besides. */
static inline void lists_check_ranks(const rng *r, const mgrid_family *f, const lists *l) {
  int64_t world = mgrid_family_world(f), group = -7, position = -7;
  size_t *nth = calloc((size_t)world + 1, sizeof *nth);
  assert_non_null(nth);
  for (int64_t g = 0; g < l->n; g++)
    for (int64_t p = 0; p < lists_size(l, g); p++) {
      int64_t rank = lists_group(l, g)[p];
      check(r, mgrid_family_locate(f, rank, (int64_t)nth[rank]++, &group, &position));
      check(r, group == g && position == p);
    }
  for (int64_t rank = 0; rank < world; rank++)
    check(r, !mgrid_family_locate(f, rank, (int64_t)nth[rank], &group, &position));
  free(nth);
  const int64_t outside[] = { -1, world, world + 1, INT64_MIN, INT64_MAX };
  for (size_t i = 0; i < sizeof outside / sizeof *outside; i++)
    check(r, !mgrid_family_locate(f, outside[i], 0, &group, &position));
}

/* Several groups at once, and pieces of one: every run of groups, every cut of every group. */
static inline void lists_check_pieces(const rng *r, const mgrid_family *f, const lists *l) {
  size_t room = (size_t)l->total + 1;
  int64_t *out = malloc(room * sizeof *out);
  int32_t *piece = malloc(room * sizeof *piece);
  assert_true(out && piece);
  int64_t step = l->n / 5 + 1;
  for (int64_t from = 0; from < l->n; from += step)
    for (int64_t n = 0; from + n <= l->n; n += step) {
      int64_t ranks = l->starts[from + n] - l->starts[from];
      check(r, mgrid_family_members(f, from, n, room, out) == ranks);
      check(r, memcmp(out, l->ranks + l->starts[from], (size_t)ranks * sizeof *out) == 0);
      size_t some = (size_t)ranks / 2;
      out[some] = -7;
      check(r, mgrid_family_members(f, from, n, some, out) == ranks && out[some] == -7);
      check(r, memcmp(out, l->ranks + l->starts[from], some * sizeof *out) == 0);
    }
  check(r, mgrid_family_members(f, 0, l->n + 1, room, out) == -1
               && mgrid_family_members(f, -1, 1, room, out) == -1);
  for (int64_t g = 0; g < l->n; g += step)
    for (int64_t at = 0; at < lists_size(l, g); at++) {
      int64_t n = (at * 7 + g) % (lists_size(l, g) - at) + 1;
      mgrid_family_slice(f, g, at, n, piece);
      for (int64_t i = 0; i < n; i++) check(r, piece[i] == lists_group(l, g)[at + i]);
    }
  free(out);
  free(piece);
}

static inline void lists_check(const rng *r, const mgrid_family *f, const lists *l) {
  lists_check_groups(r, f, l);
  lists_check_pieces(r, f, l);
  lists_check_ranks(r, f, l);
  mgrid_coverage said = mgrid_family_coverage(f);
  if (lists_overlap(l, mgrid_family_world(f)))
    check(r, said == MGRID_COVER);
  else if (!(l->pairs && said == MGRID_COVER))
    check(r, said == (l->total == mgrid_family_world(f) ? MGRID_PARTITION : MGRID_PARTIAL));
}

/* ------------------------------------------------------------ random families */

static inline mgrid_family *table_of(const lists *l, int64_t world, mgrid_error *err) {
  return mgrid_family_table(mgrid_world(world), l->n, l->starts, l->ranks, MGRID_COVER, err);
}

/* Lists of up to 12 groups of up to 6 ranks that share no rank, or may. */
static inline lists draw_lists(rng *r, int64_t world, bool overlap) {
  lists l = lists_new();
  size_t *ranks = malloc((size_t)world * sizeof *ranks), at = 0;
  assert_non_null(ranks);
  for (size_t i = 0; i < (size_t)world; i++) ranks[i] = i;
  rng_shuffle(r, (size_t)world, ranks);
  for (int64_t groups = rng_between(r, 1, 12); groups > 0; groups--) {
    int64_t n = rng_between(r, 1, world < 6 ? world : 6);
    if (overlap) {
      rng_shuffle(r, (size_t)world, ranks);
      at = 0;
    }
    for (; n > 0 && at < (size_t)world; n--) lists_add(&l, (int64_t)ranks[at++]);
    if (l.total == l.starts[l.n]) break;
    lists_close(&l);
  }
  free(ranks);
  return l;
}

static inline int64_t reverse_map(void *ud, int64_t group, int64_t *ranks, int64_t n, int64_t cap,
                                  mgrid_error *err) {
  (void)ud, (void)group, (void)cap, (void)err;
  for (int64_t i = 0; i < n / 2; i++) {
    int64_t kept = ranks[i];
    ranks[i] = ranks[n - 1 - i];
    ranks[n - 1 - i] = kept;
  }
  return n;
}

/* Positions 0 .. size - 1 in any order: the first `cut` of them, and the others. */
static inline size_t draw_positions(rng *r, int64_t size, int64_t *positions) {
  size_t *any = malloc((size_t)size * sizeof *any);
  assert_non_null(any);
  for (size_t i = 0; i < (size_t)size; i++) any[i] = i;
  if (rng_chance(r, 60)) rng_shuffle(r, (size_t)size, any);
  for (size_t i = 0; i < (size_t)size; i++) positions[i] = (int64_t)any[i];
  free(any);
  return (size_t)rng_between(r, 1, size);
}

/* Pick some positions, and join them with the others by union or zip: (*f, *l) becomes that. */
static inline mgrid_family *draw_joined(rng *r, const mgrid_family *f, lists *l) {
  int64_t size = mgrid_family_max_size(f), *positions = malloc((size_t)size * sizeof *positions);
  assert_non_null(positions);
  size_t cut = draw_positions(r, size, positions), rest = (size_t)size - cut;
  mgrid_error err;
  mgrid_family *half[2] = { mgrid_family_pick(f, cut, positions, anew(&err)), NULL },
               *joined = half[0];
  if (!half[0]) { /* a form that picks only from lists */
    free(positions);
    return NULL;
  }
  lists a = lists_pick(l, cut, positions);
  if (rest > 0 && rng_chance(r, 60)) {
    half[1] = mgrid_family_pick(f, rest, positions + cut, anew(&err));
    if (!half[1]) { /* a zip refuses positions in another order than its parts have */
      check(r, strstr(err.message, "zip family works on explicit lists") != NULL);
      mgrid_family_free(half[0]);
      lists_free(&a);
      free(positions);
      return NULL;
    }
    lists b = lists_pick(l, rest, positions + cut);
    const mgrid_family *const *both = (const mgrid_family *const *)half;
    bool zip = rng_chance(r, 50);
    joined = zip ? mgrid_family_zip(2, both, false, anew(&err))
                 : mgrid_family_union(2, both, anew(&err));
    check(r, joined != NULL);
    lists_replace(&a, zip ? lists_zip(&a, &b) : lists_union(&a, &b));
    lists_free(&b);
    mgrid_family_free(half[0]);
    mgrid_family_free(half[1]);
  }
  free(positions);
  lists_replace(l, a);
  return joined;
}

/* Sizes of 1 or more that sum to `sum`, at most 8; returns how many. */
static inline size_t draw_sizes(rng *r, int64_t sum, int64_t *sizes) {
  size_t n = 0;
  while (n < 7 && sum > 1 && rng_chance(r, 80)) sum -= sizes[n++] = rng_between(r, 1, sum - 1);
  sizes[n++] = sum;
  return n;
}

/* Segments of groups of one size, some of them by fill. */
static inline mgrid_family *draw_segments(rng *r, const mgrid_family *f, lists *l) {
  mgrid_error err;
  int64_t sizes[8], asked[8];
  size_t n = draw_sizes(r, mgrid_family_size(f, 0), sizes);
  mgrid_family *g;
  memcpy(asked, sizes, sizeof asked);
  if (rng_chance(r, 30)) asked[rng_between(r, 0, (int64_t)n - 1)] = MGRID_FILL;
  if ((g = mgrid_family_segments(f, n, asked, anew(&err))))
    lists_replace(l, lists_segments(l, n, sizes));
  return g;
}

/* The groups in any order. */
static inline mgrid_family *draw_order(rng *r, const mgrid_family *f, lists *l) {
  mgrid_error err;
  size_t n = (size_t)l->n, *any = malloc(n * sizeof *any);
  int64_t *order = malloc(n * sizeof *order);
  assert_true(any && order);
  for (size_t i = 0; i < n; i++) any[i] = i;
  rng_shuffle(r, n, any);
  for (size_t i = 0; i < n; i++) order[i] = (int64_t)any[i];
  mgrid_family *g = mgrid_family_renumber(f, n, order, anew(&err));
  check(r, g != NULL);
  lists_replace(l, lists_renumber(l, order));
  free(any);
  free(order);
  return g;
}

/* One more operation on a family of groups of one size; NULL where the library refuses. */
static inline mgrid_family *draw_operation(rng *r, const mgrid_family *f, lists *l) {
  mgrid_error err;
  mgrid_family *inner = NULL, *outer = NULL, *g = NULL;
  int64_t size = mgrid_family_size(f, 0), n;
  bool flag = rng_chance(r, 50);
  switch (rng_between(r, 0, 8)) {
  case 0:
    n = rng_divisor(r, size);
    if (mgrid_family_split(f, n, rng_chance(r, 50), false, flag ? &inner : NULL,
                           flag ? NULL : &outer, anew(&err)))
      return NULL;
    lists_replace(l, lists_split(l, n, flag));
    return flag ? inner : outer;
  case 1:
    n = rng_divisor(r, mgrid_family_count(f));
    if ((g = mgrid_family_bundle(f, n, anew(&err)))) lists_replace(l, lists_bundle(l, n));
    return g;
  case 2: return flag ? mgrid_family_twin(f, anew(&err)) : mgrid_family_lists(f, anew(&err));
  case 3:
    if ((g = mgrid_family_map(f, reverse_map, NULL, anew(&err))))
      lists_replace(l, lists_reversed(l));
    return g;
  case 4:
    n = rng_divisor(r, size);
    if (mgrid_family_split(f, n, rng_chance(r, 50), true, flag ? &inner : NULL,
                           flag ? NULL : &outer, anew(&err)))
      return NULL;
    lists_replace(l, lists_split(l, n, flag));
    lists_replace(l, lists_by_row(l, flag ? size / n : n));
    return flag ? inner : outer;
  case 5: return draw_segments(r, f, l);
  case 6: return draw_order(r, f, l);
  default: return draw_joined(r, f, l);
  }
}

/* A family of the grid after `steps` operations and perhaps neighbours; *l has the groups that it
** must have. */
static inline mgrid_family *draw_family(rng *r, const drawn *d, int steps, lists *l) {
  mgrid_error err;
  drawn_along a = draw_along(r, d);
  mgrid_family *f = mgrid_grid_along_by(d->grid, a.nin, a.in_name, a.nix, a.ix_name, anew(&err));
  check(r, f != NULL);
  *l = lists_along(d, a.nin, a.in, a.nix, a.ix);
  while (steps-- > 0) {
    bool uniform = true;
    for (int64_t g = 1; g < l->n && uniform; g++) uniform = lists_size(l, g) == lists_size(l, 0);
    mgrid_family *next = uniform ? draw_operation(r, f, l) : NULL;
    if (!next) continue;
    mgrid_family_free(f);
    f = next;
  }
  if (mgrid_family_max_size(f) > 1 && rng_chance(r, 20)) {
    int64_t step = rng_between(r, 1, mgrid_family_max_size(f) - 1);
    bool wrap = rng_chance(r, 50);
    mgrid_family *pairs = mgrid_family_neighbours(f, step, wrap, anew(&err));
    if (pairs) {
      mgrid_family_free(f);
      f = pairs;
      lists_replace(l, lists_pairs(l, step, wrap));
    }
  }
  return f;
}

#endif
