/* SPDX-License-Identifier: MIT
**
** family_read.c - makes families from text: from their modes, or from the JSON of a saved plan. If
** the JSON was changed since it was saved, either a function that makes a form refuses it, or the
** digest of the plan is not the saved one.
*/
#include "families/family.h"
#include "families/grid.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ===================================================================== modes */

typedef struct layout { /* the modes so far: inside, then index */
  mgrid_modes side[2];
  int64_t members, span; /* of all modes */
} layout;

/* -------------------------------------------------------------- the members */

/* Make lists of the members of a family whose modes division cannot resolve. The table checks that
** no member occurs twice. */
static mgrid_family *as_lists(mgrid_window w, int64_t offset, const mgrid_modes *inside,
                              const mgrid_modes *index, const char *text, mgrid_error *err) {
  int64_t size = mgrid_modes_count(inside), count = mgrid_modes_count(index);
  int64_t *starts = malloc((size_t)(count + 1) * sizeof *starts);
  int32_t *ranks = malloc((size_t)(count * size) * sizeof *ranks);
  mgrid_error why = MGRID_ERROR_INIT;
  if (starts && ranks) {
    for (int64_t g = 0; g <= count; g++) starts[g] = g * size;
    for (int64_t g = 0; g < count; g++)
      for (int64_t p = 0; p < size; p++)
        ranks[g * size + p] =
            (int32_t)(offset + mgrid_modes_offset(index, g) + mgrid_modes_offset(inside, p));
  }
  mgrid_family *f = mgrid_table_adopt(w, count, starts, ranks, MGRID_PARTIAL, true, &why);
  if (f) return f;
  if (why.status != MGRID_NO_MEMORY)
    mgrid_error_reword(&why, "modes %s overlap: %s", text, why.message);
  mgrid_error_pass(err, &why);
  return NULL;
}

/* Make the family of modes that have been checked. If it needs lists and `lists` is false, return
** NULL and leave *err as it is. */
static mgrid_family *family_of(mgrid_window w, int64_t offset, const layout *l, bool lists,
                               mgrid_error *err) {
  const mgrid_modes *inside = &l->side[0], *index = &l->side[1];
  mgrid_text t = { 0 };

  mgrid_modes_text(inside, &t);
  mgrid_text_str(&t, " x ");
  mgrid_modes_text(index, &t);
  int64_t last = w.offset + w.size - 1;
  mgrid_family *f = NULL;
  mgrid_error why = MGRID_ERROR_INIT; /* separates "out of memory" from "no rule" */
  if (t.failed)
    mgrid_oom(err);
  else if (offset < w.offset || offset > last)
    mgrid_fail(err, MGRID_OUT_OF_RANGE,
               "modes %s: offset %" PRId64 " is out of range; ranks are %" PRId64 " to %" PRId64,
               t.data, offset, w.offset, last);
  else if (l->span > last - offset)
    mgrid_fail(err, MGRID_OUT_OF_RANGE,
               "modes %s: rank %" PRId64 " is out of range; ranks are %" PRId64 " to %" PRId64,
               t.data, offset + l->span, w.offset, last);
  else if (l->members > l->span + 1)
    mgrid_fail(err, MGRID_REFUSED,
               "modes %s overlap: %" PRId64 " members, but only %" PRId64 " ranks", t.data,
               l->members, l->span + 1);
  else if (!(f = mgrid_strided_new(w.world, offset, inside, index, &why)) && why.status)
    mgrid_error_pass(err, &why);
  else if (!f && lists)
    f = as_lists(w, offset, inside, index, t.data, err);
  mgrid_text_free(&t);
  return f;
}

/* ----------------------------------------------------------------- the modes */

/* Add a mode; `name` is its name in a refusal. */
static mgrid_status add_mode(layout *l, int side, int64_t size, int64_t stride, const char *name,
                             mgrid_error *err) {
  if (size < 1)
    return mgrid_fail(err, MGRID_OUT_OF_RANGE, "%s has size %" PRId64 "; sizes are 1 to %" PRId64,
                      name, size, MGRID_WORLD_MAX);
  if (stride < (size > 1)) /* CuTe writes 1:0, so a mode of size 1 may have stride 0 */
    return mgrid_fail(err, MGRID_OUT_OF_RANGE,
                      "%s has stride %" PRId64 "; strides are 1 to %" PRId64, name, stride,
                      MGRID_WORLD_MAX);
  int64_t reach;
  if (__builtin_mul_overflow(l->members, size, &l->members) || l->members > MGRID_WORLD_MAX
      || __builtin_mul_overflow(size - 1, stride, &reach)
      || __builtin_add_overflow(l->span, reach, &l->span) || l->span > MGRID_WORLD_MAX)
    return mgrid_fail(err, MGRID_OVERFLOW, "%s makes the modes larger than any world", name);
  mgrid_modes_push(&l->side[side], size, stride);
  return MGRID_OK;
}

mgrid_family *mgrid_layout_modes(mgrid_window w, int64_t offset, size_t ninside,
                                 const mgrid_mode *inside, size_t nindex, const mgrid_mode *index,
                                 bool lists, mgrid_error *err) {
  MGRID_MODES(in);
  MGRID_MODES(ix);
  layout l = { { in, ix }, 1, 0 };
  const mgrid_mode *const modes[2] = { inside, index };
  const size_t n[2] = { ninside, nindex };
  if (mgrid_window_check(w, err)) return NULL;
  for (int side = 0; side < 2; side++)
    for (size_t i = 0; i < n[side]; i++) {
      char name[48];
      snprintf(name, sizeof name, "%s mode %zu", side == 0 ? "inside" : "index", i);
      if (add_mode(&l, side, modes[side][i].size, modes[side][i].stride, name, err)) return NULL;
    }
  return family_of(w, offset, &l, lists, err);
}

mgrid_family *mgrid_family_modes(mgrid_window w, int64_t offset, size_t ninside,
                                 const mgrid_mode *inside, size_t nindex, const mgrid_mode *index,
                                 mgrid_error *err) {
  if (mgrid_lacks_list(ninside, inside, "inside modes", err)) return NULL;
  if (mgrid_lacks_list(nindex, index, "index modes", err)) return NULL;
  return mgrid_layout_modes(w, offset, ninside, inside, nindex, index, true, err);
}

/* ------------------------------------------------------------------ the text */

typedef struct reading {
  const char *text, *at;
  mgrid_error *err;
  bool failed;
} reading;

static void family_read_fault(reading *r, const char *expected) {
  if (r->failed) return;
  r->failed = true;
  if (*r->at)
    mgrid_fail(r->err, MGRID_BAD_VALUE, "layout '%.200s', character %zu: %s expected, not '%.20s'",
               r->text, (size_t)(r->at - r->text) + 1, expected, r->at);
  else
    mgrid_fail(r->err, MGRID_BAD_VALUE, "layout '%.200s' ends where %s is expected", r->text,
               expected);
}

static void family_read_skip_blanks(reading *r) {
  while (mgrid_is_space(*r->at)) r->at++;
}

static bool next_is(reading *r, char c) {
  family_read_skip_blanks(r);
  return !r->failed && *r->at == c;
}

static bool family_read_take(reading *r, char c) {
  bool found = next_is(r, c);
  r->at += found;
  return found;
}

static int64_t family_read_number(reading *r) {
  int64_t n = 0;
  family_read_skip_blanks(r);
  if (!mgrid_is_digit(*r->at)) family_read_fault(r, "a number");
  for (; !r->failed && mgrid_is_digit(*r->at); r->at++)
    if (__builtin_mul_overflow(n, 10, &n) || __builtin_add_overflow(n, *r->at - '0', &n))
      family_read_fault(r, "a smaller number");
  return n;
}

enum { NUMBERS = 128 };

/* Read a number, or numbers in parentheses, nested or not: "(2,(4,2),)". Append at most NUMBERS
** values in their order. */
static void family_read_numbers(reading *r, int64_t *values, size_t *n, int depth) {
  if (!family_read_take(r, '(')) {
    if (*n == NUMBERS) family_read_fault(r, "at most 128 numbers");
    if (!r->failed) values[(*n)++] = family_read_number(r);
    return;
  }
  if (depth == 16) family_read_fault(r, "at most 16 levels of parentheses");
  while (!r->failed && !next_is(r, ')')) {
    family_read_numbers(r, values, n, depth + 1);
    if (!family_read_take(r, ',') && !next_is(r, ')')) family_read_fault(r, "',' or ')'");
  }
  family_read_take(r, ')');
}

/* Return whether a mode "(2:1)" comes next, or the "(1)" for no modes; else it is a list of
** sizes. */
static bool at_mode(reading *r) {
  const char *p = r->at + strspn(r->at, " \t(");
  p += strspn(p, "0123456789 \t");
  return next_is(r, '(') && (*p == ':' || (*p == ')' && p[1 + strspn(p + 1, " \t")] != ':'));
}

/* Read one side of the text: "(2:1)(4:8)", "(1)", "(2,4):(1,8)" or "8:1". */
static void family_read_side(reading *r, layout *l, int side) {
  if (at_mode(r)) {
    while (family_read_take(r, '(')) {
      const char *begin = r->at;
      int64_t size = family_read_number(r), stride = 0;
      if (family_read_take(r, ':'))
        stride = family_read_number(r);
      else if (size != 1)
        family_read_fault(r, "':'");
      if (!family_read_take(r, ')')) family_read_fault(r, "')'");
      char name[64];
      snprintf(name, sizeof name, "mode (%.*s", (int)(r->at - begin < 48 ? r->at - begin : 48),
               begin);
      if (!r->failed) r->failed = add_mode(l, side, size, stride, name, r->err) != MGRID_OK;
    }
    return;
  }

  int64_t sizes[NUMBERS], strides[NUMBERS];
  size_t n = 0, nstrides = 0;
  const char *begin = r->at;

  family_read_numbers(r, sizes, &n, 0);
  if (!family_read_take(r, ':')) family_read_fault(r, "':' and the strides");
  family_read_numbers(r, strides, &nstrides, 0);
  if (!r->failed && n != nstrides) {
    r->failed = true;
    mgrid_fail(r->err, MGRID_REFUSED, "layout '%.200s': %zu sizes and %zu strides in '%.*s'",
               r->text, n, nstrides, (int)(r->at - begin < 200 ? r->at - begin : 200), begin);
  }

  for (size_t i = 0; i < n && !r->failed; i++) {
    char name[64];
    snprintf(name, sizeof name, "mode %" PRId64 ":%" PRId64, sizes[i], strides[i]);
    r->failed = add_mode(l, side, sizes[i], strides[i], name, r->err) != MGRID_OK;
  }
}

mgrid_family *mgrid_layout_parse(mgrid_window w, const char *text, bool lists, mgrid_error *err) {
  MGRID_MODES(in);
  MGRID_MODES(ix);
  layout l = { { in, ix }, 1, 0 };
  reading r = { text, text, err, false };
  int64_t offset = 0;
  if (mgrid_window_check(w, err)) return NULL;
  family_read_skip_blanks(&r);
  family_read_side(&r, &l, 0);
  if (family_read_take(&r, 'x')) {
    family_read_skip_blanks(&r);
    family_read_side(&r, &l, 1);
  }
  if (family_read_take(&r, '+')) offset = family_read_number(&r);
  family_read_skip_blanks(&r);
  if (*r.at) family_read_fault(&r, "'x', '+' or the end");
  return r.failed ? NULL : family_of(w, offset, &l, lists, err);
}

mgrid_family *mgrid_family_parse(mgrid_window w, const char *text, mgrid_error *err) {
  return mgrid_lacks(text, "the text of a family", err) ? NULL
                                                        : mgrid_layout_parse(w, text, true, err);
}

/* ====================================================================== JSON */

/* Each rule gives the form that it was written from, so writing it again gives the same JSON. */

enum { MEMBER = 4 }; /* work for one member of a list, because lists are sorted */

/* Read the family that a rule is made from, in the field `of`. */
static mgrid_family *read_base(const mgrid_field *s, int64_t world) {
  const mgrid_field of = mgrid_field_of(s, "of");
  return mgrid_family_read(&of, world);
}

/* ------------------------------------------------------------------- modes */

/* Read [[2,1],[4,8]]. */
static size_t read_modes(const mgrid_field *s, const char *name,
                         mgrid_mode modes[MGRID_MODES_MAX]) {
  const mgrid_field list = mgrid_field_of(s, name);
  const size_t n = mgrid_field_list(&list, 0, MGRID_MODES_MAX);
  for (size_t i = 0; i < n; i++) {
    const mgrid_field mode = mgrid_field_at(&list, i);
    mgrid_field_list(&mode, 2, 2);
    const mgrid_field size = mgrid_field_at(&mode, 0), stride = mgrid_field_at(&mode, 1);
    modes[i] = (mgrid_mode){ mgrid_field_number(&size, 1, MGRID_WORLD_MAX),
                             mgrid_field_number(&stride, 1, MGRID_WORLD_MAX) };
  }
  return n;
}

static mgrid_family *read_strided(const mgrid_field *s, int64_t world) {
  mgrid_mode inside[MGRID_MODES_MAX], index[MGRID_MODES_MAX];
  const size_t n = read_modes(s, "inside", inside), m = read_modes(s, "index", index);
  const mgrid_field at = mgrid_field_of(s, "offset");
  const int64_t offset = at.v ? mgrid_field_number(&at, 0, world - 1) : 0;
  if (s->all->failed) return NULL;
  mgrid_family *f =
      mgrid_layout_modes(mgrid_world(world), offset, n, inside, m, index, false, s->all->err);
  if (!f && !s->all->err->status)
    mgrid_field_fault(s, "modes whose strides each exceed the reach of the smaller ones");
  return f;
}

/* Read the positions that a PICKED family keeps. */
static mgrid_family *read_pick(const mgrid_field *s, int64_t world) {
  const mgrid_field pick = mgrid_field_of(s, "pick"), of = mgrid_field_of(s, "of"),
                    in = mgrid_field_of(&of, "inside");
  size_t n;
  int64_t *positions = mgrid_field_numbers(&pick, 0, MGRID_WORLD_MAX, &n);
  mgrid_family *f = NULL, *base = NULL;
  if (!in.v) mgrid_field_fault(&of, "a rule with 'inside'");
  if (!s->all->failed) base = mgrid_family_read(&of, world);
  if (base && mgrid_field_spend(s, (int64_t)n * MEMBER))
    f = mgrid_family_pick(base, n, positions, s->all->err);
  free(positions);
  mgrid_family_free(base);
  return f;
}

/* ------------------------------------------------------------------- lists */

/* Read [[0,3],[1,2]]. */
static mgrid_family *read_table(const mgrid_field *s, int64_t world) {
  const mgrid_field groups = mgrid_field_of(s, "groups");
  const size_t n = mgrid_field_list(&groups, 0, SIZE_MAX);
  int64_t *starts = malloc((n + 1) * sizeof *starts), total = 0;
  int32_t *ranks = NULL;

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
    return mgrid_table_adopt(mgrid_world(world), (int64_t)n, starts, ranks, MGRID_COVER, false,
                             s->all->err);
  free(starts);
  free(ranks);
  return NULL;
}

/* -------------------------------------------------- families of other families */

/* Read the base of a CUT. Its groups have one size and share no ranks. */
static mgrid_family *read_whole(const mgrid_field *s, int64_t world) {
  mgrid_family *base = read_base(s, world);
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

/* Read a CUT into runs of k positions, or with `links` into every k-th position. */
static mgrid_family *read_evenly(const mgrid_field *s, int64_t world, bool links) {
  const mgrid_field k = mgrid_field_of(s, links ? "links" : "split");
  mgrid_splitting x = { .k = mgrid_field_number(&k, 1, MGRID_WORLD_MAX), .by_row = read_by_row(s) };
  mgrid_family *base = read_whole(s, world);
  if (base) mgrid_split_cut(&x, base, s->all->err);
  mgrid_family_free(base);
  mgrid_family_free(links ? x.inner : x.outer);
  return links ? x.outer : x.inner;
}

static mgrid_family *read_split(const mgrid_field *s, int64_t world) {
  return read_evenly(s, world, false);
}
static mgrid_family *read_links(const mgrid_field *s, int64_t world) {
  return read_evenly(s, world, true);
}

static mgrid_family *read_segments(const mgrid_field *s, int64_t world) {
  const mgrid_field list = mgrid_field_of(s, "segments");
  size_t n;
  int64_t *sizes = mgrid_field_numbers(&list, 1, MGRID_WORLD_MAX, &n), fill, *starts;
  const bool by_row = read_by_row(s);
  mgrid_family *base = read_whole(s, world), *f = NULL;
  if (base && !mgrid_segments_check(base->size, n, sizes, &fill, s->all->err)) {
    if ((starts = malloc((n + 1) * sizeof *starts))) starts[0] = 0;
    for (size_t i = 0; i < n && starts; i++) starts[i + 1] = starts[i] + sizes[i];
    f = mgrid_cut_at(base, (int64_t)n, starts, by_row, s->all->err);
  }
  free(sizes);
  mgrid_family_free(base);
  return f;
}

static mgrid_family *read_pairs(const mgrid_field *s, int64_t world) {
  const mgrid_field neighbours = mgrid_field_of(s, "neighbours"), wrap = mgrid_field_of(s, "wrap");
  const int64_t step = mgrid_field_number(&neighbours, 0, MGRID_WORLD_MAX);
  const bool around = mgrid_field_flag(&wrap);
  mgrid_family *base = read_base(s, world), *f = NULL;
  const mgrid_field of = mgrid_field_of(s, "of");
  if (base && base->size < 0)
    mgrid_field_fault(&of, "a family with groups of one size");
  else if (base && !s->all->failed)
    f = mgrid_family_neighbours(base, step, around, s->all->err);
  mgrid_family_free(base);
  return f;
}

static mgrid_family *family_read_parts(const mgrid_field *s, int64_t world, bool zip) {
  const mgrid_field list = mgrid_field_of(s, zip ? "zip" : "union");
  const size_t n = mgrid_field_list(&list, 1, MGRID_PARTS_MAX);
  mgrid_family **child = calloc(n + 1, sizeof *child), *f = NULL;
  for (size_t i = 0; i < n && child; i++) {
    const mgrid_field one = mgrid_field_at(&list, i);
    child[i] = mgrid_family_read(&one, world);
  }
  if (!child) mgrid_oom(s->all->err);
  if (child && !s->all->failed)
    f = mgrid_family_combine(zip, n, (const mgrid_family *const *)child, s->all->budget,
                             s->all->err);
  mgrid_families_free(child ? n : 0, child);
  return f;
}

static mgrid_family *read_union(const mgrid_field *s, int64_t world) {
  return family_read_parts(s, world, false);
}
static mgrid_family *read_zip(const mgrid_field *s, int64_t world) {
  return family_read_parts(s, world, true);
}

/* The field that identifies each kind of rule, and all its fields. */
static const struct {
  const char *name, *fields;
  mgrid_family *(*read)(const mgrid_field *s, int64_t world);
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

mgrid_family *mgrid_family_read(const mgrid_field *s, int64_t world) {
  size_t i = 0;
  while (i < RULES && !json_object_get(s->v, rules[i].name)) i++;
  if (i == RULES)
    mgrid_field_fault(s, "a rule with 'inside', 'groups', 'pick', 'split', 'links', 'segments', "
                         "'neighbours', 'union' or 'zip'");
  else
    mgrid_field_only(s, rules[i].fields);
  if (s->all->failed) return NULL;
  mgrid_family *f = rules[i].read(s, world);
  if (f && mgrid_field_spend(s, 1)) return f;
  mgrid_family_free(f);
  mgrid_field_fail(s);
  return NULL;
}

/* ------------------------------------------------------------------- grids */

mgrid_grid *mgrid_grid_read(const mgrid_field *s, int64_t world) {
  mgrid_dim dims[MGRID_DIMS_MAX];
  const mgrid_field list = mgrid_field_of(s, "dims"), order = mgrid_field_of(s, "order");
  const size_t n = mgrid_field_list(&list, 0, MGRID_DIMS_MAX);
  mgrid_grid *g = NULL;

  for (size_t i = 0; i < n; i++) {
    const mgrid_field dim = mgrid_field_at(&list, i);
    mgrid_field_list(&dim, 2, 2);
    const mgrid_field name = mgrid_field_at(&dim, 0), size = mgrid_field_at(&dim, 1);
    dims[i] = (mgrid_dim){ mgrid_field_text(&name), mgrid_field_number(&size, 1, MGRID_WORLD_MAX) };
  }
  if (order.v) {
    mgrid_family *ranks = mgrid_family_read(&order, world);
    if (ranks && mgrid_field_spend(s, ranks->rule ? 1 : ranks->total * MEMBER))
      g = mgrid_grid_over(ranks, n, dims, s->all->err);
    mgrid_family_free(ranks);
  } else {
    const mgrid_field offset = mgrid_field_of(s, "offset"), size = mgrid_field_of(s, "size");
    const int64_t from = mgrid_field_number(&offset, 0, world - 1),
                  count = mgrid_field_number(&size, 1, world);
    if (!s->all->failed)
      g = mgrid_grid_new((mgrid_window){ world, from, count }, n, dims, s->all->err);
  }
  if (!g) mgrid_field_fail(s);
  return g;
}
