/* SPDX-License-Identifier: MIT
**
** read.c - read families and grids from the JSON that their forms and grid.c write. Each rule becomes the form that it
** was, so its JSON is the same again; what the library cannot have written is refused by the functions that make the
** form, or the plan has another digest.
*/
#include "families/grid.h"

#include <stdlib.h>

enum { MEMBER = 4 }; /* work for a member of a list, which is sorted */

typedef mgrid_family family;

static family *read_rule(const mgrid_field *s, int64_t world);

/* Return f; or free it and return NULL after a failure, or once the budget is exhausted. */
static family *made(const mgrid_field *s, family *f) {
  if (f && mgrid_field_spend(s, 1)) return f;
  mgrid_family_free(f);
  mgrid_field_fail(s);
  return NULL;
}

/* Read what is beside the first field of a rule. */
static family *read_base(const mgrid_field *s, int64_t world) {
  const mgrid_field of = mgrid_field_of(s, "of");
  return read_rule(&of, world);
}

/* ------------------------------------------------------------------- modes */

/* Read [[2,1],[4,8]]. */
static size_t read_modes(const mgrid_field *s, const char *name, mgrid_mode modes[MGRID_MODES_MAX]) {
  const mgrid_field list = mgrid_field_of(s, name);
  const size_t      n = mgrid_field_list(&list, 0, MGRID_MODES_MAX);
  for (size_t i = 0; i < n; i++) {
    const mgrid_field mode = mgrid_field_at(&list, i);
    mgrid_field_list(&mode, 2, 2);
    const mgrid_field size = mgrid_field_at(&mode, 0), stride = mgrid_field_at(&mode, 1);
    modes[i] =
        (mgrid_mode){ mgrid_field_number(&size, 1, MGRID_WORLD_MAX), mgrid_field_number(&stride, 1, MGRID_WORLD_MAX) };
  }
  return n;
}

static family *read_strided(const mgrid_field *s, int64_t world) {
  mgrid_mode        inside[MGRID_MODES_MAX], index[MGRID_MODES_MAX];
  const size_t      n = read_modes(s, "inside", inside), m = read_modes(s, "index", index);
  const mgrid_field at = mgrid_field_of(s, "offset");
  const int64_t     offset = at.v ? mgrid_field_number(&at, 0, world - 1) : 0;
  if (s->all->failed) return NULL;
  family *f = mgrid_layout_modes(mgrid_world(world), offset, n, inside, m, index, false, s->all->err);
  if (!f && !s->all->err->status) mgrid_field_fault(s, "modes whose strides each exceed the reach of the smaller ones");
  return f;
}

/* Read positions of the groups of a rule of modes. */
static family *read_pick(const mgrid_field *s, int64_t world) {
  const mgrid_field pick = mgrid_field_of(s, "pick"), of = mgrid_field_of(s, "of"), in = mgrid_field_of(&of, "inside");
  size_t            n;
  int64_t          *positions = mgrid_field_numbers(&pick, 0, MGRID_WORLD_MAX, &n);
  family           *f = NULL, *base = NULL;
  if (!in.v) mgrid_field_fault(&of, "a rule with 'inside'");
  if (!s->all->failed) base = read_rule(&of, world);
  if (base && mgrid_field_spend(s, (int64_t)n * MEMBER)) f = mgrid_family_pick(base, n, positions, s->all->err);
  free(positions);
  mgrid_family_free(base);
  return f;
}

/* ------------------------------------------------------------------- lists */

/* Read [[0,3],[1,2]]. */
static family *read_table(const mgrid_field *s, int64_t world) {
  const mgrid_field groups = mgrid_field_of(s, "groups");
  const size_t      n = mgrid_field_list(&groups, 0, SIZE_MAX);
  int64_t          *starts = malloc((n + 1) * sizeof *starts), total = 0;
  int32_t          *ranks = NULL;
  for (size_t i = 0; i < n && starts; i++) {
    const mgrid_field group = mgrid_field_at(&groups, i);
    starts[i] = total;
    total += (int64_t)mgrid_field_list(&group, 1, SIZE_MAX);
  }
  if (starts) starts[n] = total;
  if (!mgrid_field_spend(s, total * MEMBER)) return free(starts), NULL;
  if (starts) ranks = malloc(((size_t)total + 1) * sizeof *ranks);
  for (size_t i = 0; i < n && ranks; i++) {
    const mgrid_field group = mgrid_field_at(&groups, i);
    for (int64_t k = starts[i]; k < starts[i + 1]; k++) {
      const mgrid_field rank = mgrid_field_at(&group, (size_t)(k - starts[i]));
      ranks[k] = (int32_t)mgrid_field_number(&rank, 0, world - 1);
    }
  }
  if (!s->all->failed)
    return mgrid_table_adopt(mgrid_world(world), (int64_t)n, starts, ranks, MGRID_COVER, false, s->all->err);
  free(starts);
  free(ranks);
  return NULL;
}

/* -------------------------------------------------- families of other families */

/* Read the base of a cut, whose groups have one size and share no ranks. */
static family *read_whole(const mgrid_field *s, int64_t world) {
  family           *base = read_base(s, world);
  const mgrid_field of = mgrid_field_of(s, "of");
  if (base && (base->overlapping || base->size < 1))
    mgrid_field_fault(&of, "a family with groups of one size that share no ranks");
  if (!s->all->failed) return base;
  mgrid_family_free(base);
  return NULL;
}

static bool read_by_row(const mgrid_field *s) {
  const mgrid_field by_row = mgrid_field_of(s, "by_row");
  return mgrid_field_flag(&by_row);
}

/* Read runs of k positions, or every k-th position. */
static family *read_evenly(const mgrid_field *s, int64_t world, bool links) {
  const mgrid_field k = mgrid_field_of(s, links ? "links" : "split");
  mgrid_splitting   x = { .k = mgrid_field_number(&k, 1, MGRID_WORLD_MAX), .by_row = read_by_row(s) };
  family           *base = read_whole(s, world);
  if (base) mgrid_split_cut(&x, base, s->all->err);
  mgrid_family_free(base);
  mgrid_family_free(links ? x.inner : x.outer);
  return links ? x.outer : x.inner;
}

static family *read_split(const mgrid_field *s, int64_t world) { return read_evenly(s, world, false); }
static family *read_links(const mgrid_field *s, int64_t world) { return read_evenly(s, world, true); }

static family *read_segments(const mgrid_field *s, int64_t world) {
  const mgrid_field list = mgrid_field_of(s, "segments");
  size_t            n;
  int64_t          *sizes = mgrid_field_numbers(&list, 1, MGRID_WORLD_MAX, &n), fill, *starts;
  const bool        by_row = read_by_row(s);
  family           *base = read_whole(s, world), *f = NULL;
  if (base && !mgrid_segments_check(base->size, n, sizes, &fill, s->all->err)) {
    if ((starts = malloc((n + 1) * sizeof *starts))) starts[0] = 0;
    for (size_t i = 0; i < n && starts; i++) starts[i + 1] = starts[i] + sizes[i];
    f = mgrid_cut_at(base, (int64_t)n, starts, by_row, s->all->err);
  }
  free(sizes);
  mgrid_family_free(base);
  return f;
}

static family *read_pairs(const mgrid_field *s, int64_t world) {
  const mgrid_field neighbours = mgrid_field_of(s, "neighbours"), wrap = mgrid_field_of(s, "wrap");
  const int64_t     step = mgrid_field_number(&neighbours, 0, MGRID_WORLD_MAX);
  const bool        around = mgrid_field_flag(&wrap);
  family           *base = read_base(s, world), *f = NULL;
  const mgrid_field of = mgrid_field_of(s, "of");
  if (base && base->size < 0)
    mgrid_field_fault(&of, "a family with groups of one size");
  else if (base && !s->all->failed)
    f = mgrid_family_neighbours(base, step, around, s->all->err);
  mgrid_family_free(base);
  return f;
}

static family *read_parts(const mgrid_field *s, int64_t world, bool zip) {
  const mgrid_field list = mgrid_field_of(s, zip ? "zip" : "union");
  const size_t      n = mgrid_field_list(&list, 1, MGRID_PARTS_MAX);
  family          **child = calloc(n + 1, sizeof *child), *f = NULL;
  for (size_t i = 0; i < n && child; i++) {
    const mgrid_field one = mgrid_field_at(&list, i);
    child[i] = read_rule(&one, world);
  }
  if (!child) mgrid_oom(s->all->err);
  if (child && !s->all->failed)
    f = mgrid_family_combine(zip, n, (const family *const *)child, s->all->budget, s->all->err);
  mgrid_families_free(child ? n : 0, child);
  return f;
}

static family *read_union(const mgrid_field *s, int64_t world) { return read_parts(s, world, false); }
static family *read_zip(const mgrid_field *s, int64_t world) { return read_parts(s, world, true); }

/* A rule has the first of its fields, by which it is found. */
static const struct {
  const char *name, *fields;
  family *(*read)(const mgrid_field *s, int64_t world);
} rules[] = {
  { "inside", "inside index offset", read_strided },
  { "groups", "groups", read_table },
  { "pick", "pick of", read_pick },
  { "split", "split by_row of", read_split },
  { "links", "links by_row of", read_links },
  { "segments", "segments by_row of", read_segments },
  { "neighbours", "neighbours wrap of", read_pairs },
  { "union", "union", read_union },
  { "zip", "zip", read_zip },
};
enum { RULES = sizeof rules / sizeof rules[0] };

static family *read_rule(const mgrid_field *s, int64_t world) {
  size_t i = 0;
  while (i < RULES && !json_object_get(s->v, rules[i].name)) i++;
  if (i == RULES)
    mgrid_field_fault(s, "a rule with 'inside', 'groups', 'pick', 'split', 'links', 'segments', 'neighbours', 'union' "
                         "or 'zip'");
  else
    mgrid_field_only(s, rules[i].fields);
  return s->all->failed ? NULL : made(s, rules[i].read(s, world));
}

family *mgrid_family_read(const mgrid_field *s, int64_t world) { return read_rule(s, world); }

/* ------------------------------------------------------------------- grids */

mgrid_grid *mgrid_grid_read(const mgrid_field *s, int64_t world) {
  mgrid_dim         dims[MGRID_DIMS_MAX];
  const mgrid_field list = mgrid_field_of(s, "dims"), order = mgrid_field_of(s, "order");
  const size_t      n = mgrid_field_list(&list, 0, MGRID_DIMS_MAX);
  mgrid_grid       *g = NULL;
  for (size_t i = 0; i < n; i++) {
    const mgrid_field dim = mgrid_field_at(&list, i);
    mgrid_field_list(&dim, 2, 2);
    const mgrid_field name = mgrid_field_at(&dim, 0), size = mgrid_field_at(&dim, 1);
    dims[i] = (mgrid_dim){ mgrid_field_text(&name), mgrid_field_number(&size, 1, MGRID_WORLD_MAX) };
  }
  if (order.v) {
    family *ranks = read_rule(&order, world);
    if (ranks && mgrid_field_spend(s, ranks->rule ? 1 : ranks->total * MEMBER))
      g = mgrid_grid_over(ranks, n, dims, s->all->err);
    mgrid_family_free(ranks);
  } else {
    const mgrid_field offset = mgrid_field_of(s, "offset"), size = mgrid_field_of(s, "size");
    const int64_t     from = mgrid_field_number(&offset, 0, world - 1), count = mgrid_field_number(&size, 1, world);
    if (!s->all->failed) g = mgrid_grid_new((mgrid_window){ world, from, count }, n, dims, s->all->err);
  }
  if (!g) mgrid_field_fail(s);
  return g;
}
