/* SPDX-License-Identifier: MIT
**
** along.c - families along dims of a grid. Dims are modes of positions. A family is strided where the grid's order
** turns them into modes of ranks; else its groups are listed.
*/
#include "families/grid.h"

#include <inttypes.h>
#include <stdlib.h>

/* Mark the named dims in marks[dim] with `mark`, and list their indices in the order of the names. */
static mgrid_status resolve(const mgrid_grid *g, size_t n, const char *const *names, char mark, char *marks,
                            size_t *list, mgrid_error *err) {
  if (mgrid_lacks_list(n, names, "dims", err)) return MGRID_USAGE;
  for (size_t i = 0; i < n; i++) {
    int64_t d = mgrid_grid_require(g, names[i], err);
    if (d < 0) return names[i] ? MGRID_UNKNOWN_NAME : MGRID_USAGE;
    if (marks[d]) return mgrid_fail(err, MGRID_DUPLICATE, "dim '%s' is named twice", names[i]);
    marks[d] = mark;
    list[i] = (size_t)d;
  }
  return MGRID_OK;
}

mgrid_status mgrid_grid_choose(const mgrid_grid *g, size_t n, const char *const *dims, mgrid_order order,
                               mgrid_chosen *c, mgrid_error *err) {
  char marks[MGRID_DIMS_MAX] = { 0 };
  if (n > g->n) return mgrid_fail(err, MGRID_REFUSED, "%zu dims asked of a grid that has %zu", n, g->n);
  if (order != MGRID_GRID_ORDER && order != MGRID_AS_WRITTEN)
    return mgrid_fail(err, MGRID_BAD_VALUE, "an order of members is MGRID_GRID_ORDER or MGRID_AS_WRITTEN, not %d",
                      (int)order);
  mgrid_status s = resolve(g, n, dims, 'i', marks, c->in, err);
  c->nin = c->nix = 0;
  for (size_t d = 0; d < g->n && !s; d++) {
    if (!marks[d])
      c->ix[c->nix++] = d;
    else if (order == MGRID_AS_WRITTEN)
      c->nin++; /* as resolve listed them */
    else
      c->in[c->nin++] = d;
  }
  return s;
}

mgrid_status mgrid_grid_choose_by(const mgrid_grid *g, size_t n, const char *const *dims, size_t nindex,
                                  const char *const *index, mgrid_chosen *c, mgrid_error *err) {
  char marks[MGRID_DIMS_MAX] = { 0 };
  if (n > g->n || nindex > g->n - n) /* the sum of two arbitrary sizes might wrap around */
    return mgrid_fail(err, MGRID_REFUSED, "%zu and %zu dims asked of a grid that has %zu", n, nindex, g->n);
  mgrid_status s = resolve(g, n, dims, 'i', marks, c->in, err);
  if (!s) s = resolve(g, nindex, index, 'x', marks, c->ix, err);
  for (size_t d = 0; d < g->n && !s; d++)
    if (!marks[d] && g->axis[d].size > 1)
      s = mgrid_fail(err, MGRID_REFUSED, "dim '%s' of size %" PRId64 " is neither inside nor in the index",
                     g->axis[d].name, g->axis[d].size);
  c->nin = n;
  c->nix = nindex;
  return s;
}

bool mgrid_grid_modes(const mgrid_grid *g, size_t n, const size_t *dims, mgrid_modes *positions, mgrid_modes *ranks) {
  mgrid_modes *to = g->order ? positions : ranks; /* without an order positions and ranks have the same modes */
  for (size_t i = 0; i < n; i++) mgrid_modes_push(to, g->axis[dims[i]].size, g->axis[dims[i]].stride);
  return !g->order || mgrid_order_modes(g->order, positions, ranks);
}

/* Make the groups as lists: positions in the grid, then the ranks there. */
static mgrid_family *listed(const mgrid_grid *g, const mgrid_modes *inside, const mgrid_modes *index,
                            mgrid_error *err) {
  mgrid_family *positions = mgrid_strided_new(g->size, 0, inside, index, err);
  if (!positions) return NULL;
  int64_t  size = positions->size, count = positions->count;
  int64_t *starts = malloc((size_t)(count + 1) * sizeof *starts);
  int32_t *ranks = malloc((size_t)g->size * sizeof *ranks), *order = malloc((size_t)g->size * sizeof *order);
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
  return mgrid_table_adopt(mgrid_world(g->window.world), count, starts, ranks, MGRID_PARTIAL, true, err);
}

int64_t mgrid_grid_listed(const mgrid_grid *g, const mgrid_chosen *c) {
  if (!g->order) return 0;
  MGRID_MODES(in);
  MGRID_MODES(ix);
  MGRID_MODES(inside);
  MGRID_MODES(index);
  bool rule = mgrid_grid_modes(g, c->nin, c->in, &in, &inside) && mgrid_grid_modes(g, c->nix, c->ix, &ix, &index);
  if (rule) return 0;
  return c->nix ? g->size : mgrid_modes_count(&in);
}

mgrid_family *mgrid_grid_family(const mgrid_grid *g, const mgrid_chosen *c, mgrid_error *err) {
  MGRID_MODES(in);
  MGRID_MODES(ix);
  MGRID_MODES(inside);
  MGRID_MODES(index);
  bool rule = mgrid_grid_modes(g, c->nin, c->in, &in, &inside);
  rule &= mgrid_grid_modes(g, c->nix, c->ix, &ix, &index);
  if (!rule) return listed(g, &in, &ix, err);
  return mgrid_strided_new(g->window.world, g->window.offset, &inside, &index, err);
}

mgrid_family *mgrid_grid_along(const mgrid_grid *g, size_t n, const char *const *dims, mgrid_order order,
                               mgrid_error *err) {
  mgrid_chosen c;
  return g && mgrid_grid_choose(g, n, dims, order, &c, err) == MGRID_OK ? mgrid_grid_family(g, &c, err) : NULL;
}

mgrid_family *mgrid_grid_along_by(const mgrid_grid *g, size_t n, const char *const *dims, size_t nindex,
                                  const char *const *index, mgrid_error *err) {
  mgrid_chosen c;
  return g && mgrid_grid_choose_by(g, n, dims, nindex, index, &c, err) == MGRID_OK ? mgrid_grid_family(g, &c, err)
                                                                                   : NULL;
}
