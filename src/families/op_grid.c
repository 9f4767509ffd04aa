/* SPDX-License-Identifier: MIT
**
** op_grid.c - what is made from a grid: families along its dims, the groups of a family that lie at
** some of its coordinates, and other grids. The result is strided if the grid's order turns modes
** of positions into modes of ranks. Else it is listed, or its groups are checked one by one.
*/
#include "families/grid.h"

#include <inttypes.h>
#include <stdlib.h>

/* ======================================================= families along dims */

/* List the indices of the named dims, in the order of the names, and set their flags in taken[]. */
static mgrid_status grid_resolve(const mgrid_grid *g, size_t n, const char *const *names,
                                 bool *taken, size_t *list, mgrid_error *err) {
  if (mgrid_lacks_list(n, names, "dims", err)) return MGRID_USAGE;
  for (size_t i = 0; i < n; i++) {
    int64_t d = mgrid_grid_require(g, names[i], err);
    if (d < 0) return names[i] ? MGRID_UNKNOWN_NAME : MGRID_USAGE;
    if (taken[d]) return mgrid_fail(err, MGRID_DUPLICATE, "dim '%s' is named twice", names[i]);
    taken[d] = true;
    list[i] = (size_t)d;
  }
  return MGRID_OK;
}

mgrid_status mgrid_grid_choose(const mgrid_grid *g, size_t n, const char *const *dims,
                               mgrid_order order, mgrid_chosen *c, mgrid_error *err) {
  bool taken[MGRID_DIMS_MAX] = { 0 };
  if (n > g->n)
    return mgrid_fail(err, MGRID_REFUSED, "%zu dims asked of a grid that has %zu", n, g->n);
  if (order != MGRID_GRID_ORDER && order != MGRID_AS_WRITTEN)
    return mgrid_fail(err, MGRID_BAD_VALUE,
                      "an order of members is MGRID_GRID_ORDER or MGRID_AS_WRITTEN, not %d",
                      (int)order);
  mgrid_status s = grid_resolve(g, n, dims, taken, c->in, err);
  c->nin = c->nix = 0;
  for (size_t d = 0; d < g->n && !s; d++) {
    if (!taken[d])
      c->ix[c->nix++] = d;
    else if (order == MGRID_AS_WRITTEN)
      c->nin++; /* grid_resolve has listed them in this order */
    else
      c->in[c->nin++] = d;
  }
  return s;
}

mgrid_status mgrid_grid_choose_by(const mgrid_grid *g, size_t n, const char *const *dims,
                                  size_t nindex, const char *const *index, mgrid_chosen *c,
                                  mgrid_error *err) {
  bool taken[MGRID_DIMS_MAX] = { 0 };
  if (n > g->n || nindex > g->n - n) /* not n + nindex > g->n, because the sum might wrap around */
    return mgrid_fail(err, MGRID_REFUSED, "%zu and %zu dims asked of a grid that has %zu", n,
                      nindex, g->n);
  mgrid_status s = grid_resolve(g, n, dims, taken, c->in, err);
  if (!s) s = grid_resolve(g, nindex, index, taken, c->ix, err);
  for (size_t d = 0; d < g->n && !s; d++)
    if (!taken[d] && g->axis[d].size > 1)
      s = mgrid_fail(err, MGRID_REFUSED,
                     "dim '%s' of size %" PRId64 " is neither inside nor in the index",
                     g->axis[d].name, g->axis[d].size);
  c->nin = n;
  c->nix = nindex;
  return s;
}

/* Find the modes of the ranks along some dims, and for a grid with an order first the modes of the
** positions. Both lists are empty before. False: no modes describe the ranks. */
static bool grid_modes(const mgrid_grid *g, size_t n, const size_t *dims, mgrid_modes *positions,
                       mgrid_modes *ranks) {
  /* without an order positions and ranks have the same modes */
  mgrid_modes *to = g->order ? positions : ranks;
  for (size_t i = 0; i < n; i++)
    mgrid_modes_push(to, g->axis[dims[i]].size, g->axis[dims[i]].stride);
  return !g->order || mgrid_order_modes(g->order, positions, ranks);
}

/* Make the groups as lists: find positions in the grid, then the ranks at them. */
static mgrid_family *grid_listed(const mgrid_grid *g, const mgrid_modes *inside,
                                 const mgrid_modes *index, mgrid_error *err) {
  mgrid_family *positions = mgrid_strided_new(g->size, 0, inside, index, err);
  if (!positions) return NULL;
  int64_t size = positions->size, count = positions->count;
  int64_t *starts = malloc((size_t)(count + 1) * sizeof *starts);
  int32_t *ranks = malloc((size_t)g->size * sizeof *ranks),
          *order = malloc((size_t)g->size * sizeof *order);
  if (starts && ranks && order) {
    mgrid_family_groups(positions, 0, count, ranks);
    mgrid_family_group(g->order, 0, order);
    for (int64_t i = 0; i <= count; i++) starts[i] = i * size;
    for (int64_t i = 0; i < g->size; i++) ranks[i] = order[ranks[i]];
  } else {
    free(starts);
    starts = NULL;
  }
  free(order);
  mgrid_family_free(positions);
  return mgrid_table_adopt(mgrid_world(g->window.world), count, starts, ranks, MGRID_PARTIAL, true,
                           err);
}

int64_t mgrid_grid_listed(const mgrid_grid *g, const mgrid_chosen *c) {
  if (!g->order) return 0;
  MGRID_MODES(in);
  MGRID_MODES(ix);
  MGRID_MODES(inside);
  MGRID_MODES(index);
  bool rule = grid_modes(g, c->nin, c->in, &in, &inside)
              && grid_modes(g, c->nix, c->ix, &ix, &index);
  if (rule) return 0;
  return c->nix ? g->size : mgrid_modes_count(&in);
}

mgrid_family *mgrid_grid_family(const mgrid_grid *g, const mgrid_chosen *c, mgrid_error *err) {
  MGRID_MODES(in);
  MGRID_MODES(ix);
  MGRID_MODES(inside);
  MGRID_MODES(index);
  bool rule = grid_modes(g, c->nin, c->in, &in, &inside);
  rule &= grid_modes(g, c->nix, c->ix, &ix, &index);
  if (!rule) return grid_listed(g, &in, &ix, err);
  return mgrid_strided_new(g->window.world, g->window.offset, &inside, &index, err);
}

mgrid_family *mgrid_grid_along(const mgrid_grid *g, size_t n, const char *const *dims,
                               mgrid_order order, mgrid_error *err) {
  mgrid_chosen c;
  return g && mgrid_grid_choose(g, n, dims, order, &c, err) == MGRID_OK
             ? mgrid_grid_family(g, &c, err)
             : NULL;
}

mgrid_family *mgrid_grid_along_by(const mgrid_grid *g, size_t n, const char *const *dims,
                                  size_t nindex, const char *const *index, mgrid_error *err) {
  mgrid_chosen c;
  return g && mgrid_grid_choose_by(g, n, dims, nindex, index, &c, err) == MGRID_OK
             ? mgrid_grid_family(g, &c, err)
             : NULL;
}

/* ===================================================== groups at coordinates */

/* Check that each coordinate is in its dim, or -1. */
static mgrid_status grid_check_coords(const mgrid_grid *g, const int64_t *coords,
                                      mgrid_error *err) {
  if (mgrid_lacks_list(g->n, coords, "coordinates", err)) return MGRID_USAGE;
  for (size_t d = 0; d < g->n; d++)
    if (coords[d] < -1 || coords[d] >= g->axis[d].size)
      return mgrid_fail(err, MGRID_OUT_OF_RANGE,
                        "coordinate %" PRId64 " of dim '%s' is out of range (0 to %" PRId64 ")",
                        coords[d], g->axis[d].name, g->axis[d].size - 1);
  return MGRID_OK;
}

/* Where modes determine a coordinate, the modes that change it are removed from the index.
** Otherwise each group is checked. */

/* Refuse, and say which coordinates have no group and why. Always return NULL. */
static mgrid_family *grid_refuse(const mgrid_family *f, const mgrid_grid *g, const int64_t *coords,
                                 mgrid_error *err) {
  mgrid_text t = { 0 };
  const char *varies = NULL;
  size_t named = 0;
  mgrid_text_str(&t, "where: no group has all its ranks ");
  for (size_t d = 0; d < g->n; d++) {
    if (coords[d] < 0) continue;
    mgrid_text_add(&t, "%s%s %" PRId64, named++ ? ", " : "at ", g->axis[d].name, coords[d]);
    int64_t last = mgrid_family_rank(f, 0, mgrid_family_size(f, 0) - 1);
    if (mgrid_grid_coord(g, mgrid_family_rank(f, 0, 0), d) != mgrid_grid_coord(g, last, d))
      varies = g->axis[d].name;
  }
  if (!named) mgrid_text_str(&t, "in the grid");
  if (varies) mgrid_text_add(&t, "; %s varies inside the groups", varies);
  if (t.failed)
    mgrid_oom(err);
  else
    mgrid_fail(err, MGRID_REFUSED, "%s", t.data);
  mgrid_text_free(&t);
  return NULL;
}

/* ------------------------------------------------------------------- by rule */

/* The rule of f while it is narrowed, dim by dim. The modes of the index are cut where a dim starts
** and ends. */
typedef struct narrowing {
  int64_t at; /* the lowest rank of the family, counted from the first rank of the grid */
  const mgrid_modes *inside;
  int n; /* modes of the index */
  mgrid_mode index[MGRID_MODES_MAX];
} narrowing;

typedef enum outcome { FOUND, NONE, UNCLEAR } outcome;

/* Cut the modes of the index that cross `stride`. False: a mode does not meet it. */
static bool cut_at(narrowing *w, int64_t stride) {
  for (int i = 0; i < w->n; i++) {
    mgrid_mode m = w->index[i];
    if (m.stride >= stride || (m.size - 1) * m.stride < stride) continue;
    int64_t below = stride / m.stride;
    if (stride % m.stride || m.size % below) return false;
    for (int k = w->n++; k > i + 1; k--) w->index[k] = w->index[k - 1];
    w->index[i] = (mgrid_mode){ below, m.stride };
    w->index[i + 1] = (mgrid_mode){ m.size / below, stride };
  }
  return true;
}

/* Sum how far the modes with strides in [low, high) reach. False: a stride from `low` on is not a
** multiple of `low`, or a smaller mode reaches across it. */
static bool reach(int n, const mgrid_mode *m, int64_t low, int64_t high, int64_t *sum) {
  for (int i = 0; i < n; i++) {
    if (m[i].stride >= low && m[i].stride % low) return false;
    if (m[i].stride < low && (m[i].size - 1) * m[i].stride >= low) return false;
    if (m[i].stride >= low && m[i].stride < high) *sum += (m[i].size - 1) * m[i].stride;
  }
  return true;
}

/* Keep the groups at coordinate `want` of a dim. Every rank is w->at plus steps of the modes. Steps
** that are smaller than the dim's stride, or larger than the dim, do not change the coordinate,
** unless they carry. */
static outcome grid_narrow(narrowing *w, const mgrid_axis *dim, int64_t want) {
  int64_t low = dim->stride, high = low * dim->size, below = w->at % low,
          within = w->at % high / low * low, fixed = 0;

  if (!cut_at(w, low) || !cut_at(w, high)) return UNCLEAR;
  const mgrid_modes *in = w->inside;
  if (!reach(in->n, in->at, low, high, &fixed) || !reach(w->n, w->index, low, high, &within))
    return UNCLEAR;
  if (!reach(in->n, in->at, high, INT64_MAX, &(int64_t){ 0 })
      || !reach(w->n, w->index, high, INT64_MAX, &(int64_t){ 0 }))
    return UNCLEAR;
  if (!reach(in->n, in->at, 1, low, &below) || !reach(w->n, w->index, 1, low, &below))
    return UNCLEAR;
  if (below >= low || within + fixed >= high) return UNCLEAR; /* a carry is possible */
  if (fixed) return NONE;
  int64_t rest = want * low - w->at % high / low * low;
  if (rest < 0) return NONE;
  while (true) { /* strides are superincreasing, so the largest one left decides first */
    int top = -1;
    for (int i = 0; i < w->n; i++)
      if (w->index[i].stride >= low && w->index[i].stride < high
          && (top < 0 || w->index[i].stride > w->index[top].stride))
        top = i;
    if (top < 0) return rest == 0 ? FOUND : NONE;
    int64_t step = rest / w->index[top].stride;
    if (step >= w->index[top].size) return NONE;
    rest -= step * w->index[top].stride;
    w->at += step * w->index[top].stride;
    w->n--;
    for (int i = top; i < w->n; i++) w->index[i] = w->index[i + 1];
  }
}

mgrid_family *mgrid_where_by_rule(const mgrid_family *f, const mgrid_grid *g, const int64_t *coords,
                                  mgrid_error *err) {
  if (grid_check_coords(g, coords, err)) return NULL;
  if (f->world != g->window.world)
    return mgrid_null(err, MGRID_REFUSED,
                      "where: the family is of a world of %" PRId64 " ranks, the grid of %" PRId64,
                      f->world, g->window.world);
  int64_t first = g->window.offset;
  if (!f->rule || g->order || f->low < first || f->high >= first + g->window.size) return NULL;
  const mgrid_strided *rule = f->rule;
  narrowing w = { .at = rule->offset - first, .inside = &rule->inside, .n = rule->index.n };
  for (int i = 0; i < w.n; i++) w.index[i] = rule->index.at[i];
  for (size_t d = 0; d < g->n; d++) {
    if (coords[d] < 0 || g->axis[d].size == 1) continue;
    outcome o = grid_narrow(&w, &g->axis[d], coords[d]);
    if (o == UNCLEAR) return NULL;
    if (o == NONE) return grid_refuse(f, g, coords, err);
  }
  MGRID_MODES(index);
  for (int i = 0; i < w.n; i++) mgrid_modes_push(&index, w.index[i].size, w.index[i].stride);
  return mgrid_strided_new(f->world, first + w.at, &rule->inside, &index, err);
}

/* ------------------------------------------------------------ group by group */

static bool lies_there(const mgrid_grid *g, const int64_t *coords, int64_t rank) {
  if (mgrid_grid_position(g, rank) < 0) return false;
  for (size_t d = 0; d < g->n; d++)
    if (coords[d] >= 0 && mgrid_grid_coord(g, rank, d) != coords[d]) return false;
  return true;
}

mgrid_family *mgrid_family_where(const mgrid_family *f, const mgrid_grid *g, const int64_t *coords,
                                 mgrid_error *err) {
  mgrid_error why = MGRID_ERROR_INIT;

  if (!f || !g) return NULL;
  mgrid_family *by_rule = mgrid_where_by_rule(f, g, coords, &why);
  if (by_rule) return by_rule;
  if (why.status) {
    mgrid_error_pass(err, &why);
    return NULL;
  }
  int64_t *starts = malloc((size_t)(f->count + 1) * sizeof *starts), groups = 0, kept = 0;
  int32_t *ranks = malloc((size_t)(f->total > 0 ? f->total : 1) * sizeof *ranks);
  if (starts) starts[0] = 0;
  for (int64_t i = 0; starts && ranks && i < f->count; i++) {
    int64_t size = mgrid_family_size(f, i), p = 0;
    mgrid_family_group(f, i, ranks + kept);
    while (p < size && lies_there(g, coords, ranks[kept + p])) p++;
    if (p < size) continue;
    kept += size;
    starts[++groups] = kept;
  }
  if (!starts || !ranks || groups > 0)
    return mgrid_table_adopt(mgrid_world(f->world), groups, starts, ranks, mgrid_table_coverage(f),
                             true, err);
  free(starts);
  free(ranks);
  return grid_refuse(f, g, coords, err);
}

/* =============================================================== other grids */

/* Append dims from to (to - 1) of g to `out`, which has *n. */
static void copy_dims(const mgrid_grid *g, size_t from, size_t to, mgrid_dim *out, size_t *n) {
  for (size_t i = from; i < to; i++) out[(*n)++] = mgrid_grid_dim(g, i);
}

mgrid_grid *mgrid_grid_unflatten(const mgrid_grid *g, const char *dim, size_t n,
                                 const mgrid_dim *dims, mgrid_error *err) {
  if (!g || mgrid_dims_check(n, dims, err)) return NULL;
  int64_t d = mgrid_grid_require(g, dim, err);
  if (d < 0) return NULL;
  mgrid_whole whole = { g->axis[d].size, g->axis[d].name, NULL };
  int64_t fill = mgrid_dims_fill(&whole, n, dims, err);
  if (!fill) return NULL;
  mgrid_dim all[2 * MGRID_DIMS_MAX];
  size_t nall = 0;
  copy_dims(g, 0, (size_t)d, all, &nall);
  for (size_t i = 0; i < n; i++)
    all[nall++] = (mgrid_dim){ dims[i].name, dims[i].size == MGRID_FILL ? fill : dims[i].size };
  copy_dims(g, (size_t)d + 1, g->n, all, &nall);
  return mgrid_grid_like(g, nall, all, err);
}

/* Append "tp-dp-pp". */
static void order_text(const mgrid_grid *g, mgrid_text *t) {
  for (size_t i = 0; i < g->n; i++) mgrid_text_add(t, "%s%s", i ? "-" : "", g->axis[i].name);
}

/* Refuse to flatten dims, because dim `between` is between them. */
static void *refuse_flatten(const mgrid_grid *g, size_t between, size_t first, size_t last,
                            mgrid_error *err) {
  mgrid_text t = { 0 };
  order_text(g, &t);
  if (t.failed)
    mgrid_oom(err);
  else
    mgrid_fail(err, MGRID_REFUSED,
               "dims '%s' and '%s' are not adjacent in %s; flatten '%s' of size %" PRId64
               " with them, or make them adjacent in the order of the grid",
               g->axis[first].name, g->axis[last].name, t.data, g->axis[between].name,
               g->axis[between].size);
  mgrid_text_free(&t);
  return NULL;
}

mgrid_grid *mgrid_grid_flatten(const mgrid_grid *g, const char *name, size_t n,
                               const char *const *dims, mgrid_error *err) {
  mgrid_chosen c;
  if (!g || mgrid_grid_choose(g, n, dims, MGRID_GRID_ORDER, &c, err)) return NULL;
  if (n == 0) return mgrid_null(err, MGRID_REFUSED, "flatten: name one dim or more");
  mgrid_dim all[MGRID_DIMS_MAX], one = { name, 1 };
  size_t nall = 0, first = c.in[0], last = c.in[n - 1];
  for (size_t i = 0; i < n; i++) one.size *= g->axis[c.in[i]].size;
  for (size_t i = 0; i < c.nix; i++)
    if (c.ix[i] > first && c.ix[i] < last && g->axis[c.ix[i]].size > 1)
      return refuse_flatten(g, c.ix[i], first, last, err);
  copy_dims(g, 0, first, all, &nall);
  all[nall++] = one;
  /* the dims between them have size 1; they go after the new dim */
  for (size_t i = 0; i < c.nix; i++)
    if (c.ix[i] > first) copy_dims(g, c.ix[i], c.ix[i] + 1, all, &nall);
  return mgrid_grid_like(g, nall, all, err);
}

mgrid_grid *mgrid_grid_rename(const mgrid_grid *g, const char *const *names, mgrid_error *err) {
  if (!g || mgrid_lacks_list(g->n, names, "names", err)) return NULL;
  mgrid_dim all[MGRID_DIMS_MAX];
  size_t n = 0;
  copy_dims(g, 0, g->n, all, &n);
  for (size_t i = 0; i < n; i++)
    if (names[i]) all[i].name = names[i];
  return mgrid_grid_like(g, n, all, err);
}

/* ------------------------------------------------------------------ a part */

void mgrid_grid_free_dims(const mgrid_grid *g, const int64_t *coords, mgrid_chosen *c) {
  c->nin = c->nix = 0;
  for (size_t i = 0; i < g->n; i++)
    if (coords[i] < 0) c->in[c->nin++] = i;
}

/* Make the order of a part: the ranks at all coordinates of the free dims, from position `first`
** on. */
static mgrid_family *part_order(const mgrid_grid *g, const mgrid_chosen *c, int64_t first,
                                mgrid_error *err) {
  MGRID_MODES(positions);
  MGRID_MODES(inside);
  MGRID_MODES(none);
  if (grid_modes(g, c->nin, c->in, &positions, &inside)) {
    int64_t rank = g->order ? mgrid_family_rank(g->order, 0, first) : g->window.offset + first;
    return mgrid_strided_new(g->window.world, rank, &inside, &none, err);
  }
  int64_t n = mgrid_modes_count(&positions);
  int32_t *ranks = malloc((size_t)n * sizeof *ranks);
  for (int64_t i = 0; i < n && ranks; i++)
    ranks[i] = (int32_t)mgrid_family_rank(g->order, 0, first + mgrid_modes_offset(&positions, i));
  return mgrid_order_list(mgrid_world(g->window.world), n, ranks, err);
}

mgrid_grid *mgrid_grid_at(const mgrid_grid *g, const int64_t *coords, mgrid_error *err) {
  if (!g || grid_check_coords(g, coords, err)) return NULL;
  mgrid_chosen c;
  mgrid_dim dims[MGRID_DIMS_MAX];
  size_t n = 0;
  int64_t first = 0;
  for (size_t i = 0; i < g->n; i++)
    if (coords[i] < 0)
      copy_dims(g, i, i + 1, dims, &n);
    else
      first += coords[i] * g->axis[i].stride;
  mgrid_grid_free_dims(g, coords, &c);
  mgrid_family *order = part_order(g, &c, first, err);
  mgrid_grid *part = mgrid_grid_over(order, n, dims, err);
  mgrid_family_free(order);
  return part;
}

mgrid_status mgrid_grid_around(const mgrid_grid *g, int64_t rank, size_t n, const char *const *dims,
                               int64_t *coords, mgrid_error *err) {
  mgrid_chosen c;
  mgrid_status s = mgrid_grid_choose(g, n, dims, MGRID_GRID_ORDER, &c, err);
  for (size_t i = 0; i < g->n && !s; i++) coords[i] = mgrid_grid_coord(g, rank, i);
  for (size_t i = 0; i < c.nin && !s; i++) coords[c.in[i]] = -1;
  return s;
}
