/* SPDX-License-Identifier: MIT
**
** where.c - the groups of a family that lie at some coordinates of a grid. Where modes determine a coordinate, the
** modes that change it are removed from the index; else each group is checked.
*/
#include "families/grid.h"

#include <inttypes.h>
#include <stdlib.h>

static mgrid_status check(const mgrid_family *f, const mgrid_grid *g, const int64_t *coords, mgrid_error *err) {
  if (mgrid_lacks_list(g->n, coords, "coordinates", err)) return MGRID_USAGE;
  if (f->world != g->window.world)
    return mgrid_fail(err, MGRID_REFUSED, "where: the family is of a world of %" PRId64 " ranks, the grid of %" PRId64,
                      f->world, g->window.world);
  for (size_t d = 0; d < g->n; d++)
    if (coords[d] < -1 || coords[d] >= g->axis[d].size)
      return mgrid_fail(err, MGRID_OUT_OF_RANGE,
                        "coordinate %" PRId64 " of dim '%s' is out of range (0 to %" PRId64 ")", coords[d],
                        g->axis[d].name, g->axis[d].size - 1);
  return MGRID_OK;
}

/* Refuse: say which coordinates have no group, and why. Always return NULL. */
static mgrid_family *refuse(const mgrid_family *f, const mgrid_grid *g, const int64_t *coords, mgrid_error *err) {
  mgrid_text  t = { 0 };
  const char *varies = NULL;
  size_t      named = 0;
  mgrid_text_str(&t, "where: no group has all its ranks ");
  for (size_t d = 0; d < g->n; d++) {
    if (coords[d] < 0) continue;
    mgrid_text_add(&t, "%s%s %" PRId64, named++ ? ", " : "at ", g->axis[d].name, coords[d]);
    int64_t last = mgrid_family_rank(f, 0, mgrid_family_size(f, 0) - 1);
    if (mgrid_grid_coord(g, mgrid_family_rank(f, 0, 0), d) != mgrid_grid_coord(g, last, d)) varies = g->axis[d].name;
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

/* The rule as it is narrowed, dim by dim. The index is kept in fine modes, cut where a dim starts and ends. */
typedef struct narrowing {
  int64_t            at; /* offset from the first rank of the grid */
  const mgrid_modes *inside;
  int                n; /* modes of the index */
  mgrid_mode         index[MGRID_MODES_MAX];
} narrowing;

typedef enum outcome { FOUND, NONE, UNCLEAR } outcome;

/* Cut the modes of the index that cross `stride`; false where one does not meet it. */
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

/* Sum the reach of modes with strides in [low, high). False if a stride from `low` on is not a multiple of it, or if a
** smaller mode reaches across it. */
static bool reach(int n, const mgrid_mode *m, int64_t low, int64_t high, int64_t *sum) {
  for (int i = 0; i < n; i++) {
    if (m[i].stride >= low && m[i].stride % low) return false;
    if (m[i].stride < low && (m[i].size - 1) * m[i].stride >= low) return false;
    if (m[i].stride >= low && m[i].stride < high) *sum += (m[i].size - 1) * m[i].stride;
  }
  return true;
}

/* Keep the groups at coordinate `want` of a dim. Every rank is w->at plus steps of the modes. Steps smaller than the
** dim's stride, or beyond its end, do not change the coordinate unless they carry. */
static outcome narrow(narrowing *w, const mgrid_axis *dim, int64_t want) {
  int64_t low = dim->stride, high = low * dim->size, below = w->at % low, within = w->at % high / low * low, fixed = 0;
  if (!cut_at(w, low) || !cut_at(w, high)) return UNCLEAR;
  const mgrid_modes *in = w->inside;
  if (!reach(in->n, in->at, low, high, &fixed) || !reach(w->n, w->index, low, high, &within)) return UNCLEAR;
  if (!reach(in->n, in->at, high, INT64_MAX, &(int64_t){ 0 })
      || !reach(w->n, w->index, high, INT64_MAX, &(int64_t){ 0 }))
    return UNCLEAR;
  if (!reach(in->n, in->at, 1, low, &below) || !reach(w->n, w->index, 1, low, &below)) return UNCLEAR;
  if (below >= low || within + fixed >= high) return UNCLEAR; /* a carry */
  if (fixed) return NONE;
  int64_t rest = want * low - w->at % high / low * low;
  if (rest < 0) return NONE;
  while (true) { /* strides are superincreasing, so the largest that is left decides first */
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

mgrid_family *mgrid_where_by_rule(const mgrid_family *f, const mgrid_grid *g, const int64_t *coords, mgrid_error *err) {
  if (check(f, g, coords, err)) return NULL;
  int64_t first = g->window.offset;
  if (!f->rule || g->order || f->low < first || f->high >= first + g->window.size) return NULL;
  const mgrid_strided *rule = f->rule;
  narrowing            w = { .at = rule->offset - first, .inside = &rule->inside, .n = rule->index.n };
  for (int i = 0; i < w.n; i++) w.index[i] = rule->index.at[i];
  for (size_t d = 0; d < g->n; d++) {
    if (coords[d] < 0 || g->axis[d].size == 1) continue;
    outcome o = narrow(&w, &g->axis[d], coords[d]);
    if (o == UNCLEAR) return NULL;
    if (o == NONE) return refuse(f, g, coords, err);
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

mgrid_family *mgrid_family_where(const mgrid_family *f, const mgrid_grid *g, const int64_t *coords, mgrid_error *err) {
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
    return mgrid_table_adopt(mgrid_world(f->world), groups, starts, ranks, mgrid_table_coverage(f), true, err);
  free(starts);
  free(ranks);
  return refuse(f, g, coords, err);
}
