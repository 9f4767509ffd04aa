/* SPDX-License-Identifier: MIT
**
** reshape.c - make a grid from another: a dim cut into several, adjacent dims joined, other names, the part at some
** coordinates.
*/
#include "families/grid.h"

#include <inttypes.h>
#include <stdlib.h>

/* Append the dims [from, to) of g to the *n that are in out. */
static void copy_dims(const mgrid_grid *g, size_t from, size_t to, mgrid_dim *out, size_t *n) {
  for (size_t i = from; i < to; i++) out[(*n)++] = mgrid_grid_dim(g, i);
}

mgrid_grid *mgrid_grid_unflatten(const mgrid_grid *g, const char *dim, size_t n, const mgrid_dim *dims,
                                 mgrid_error *err) {
  if (!g || mgrid_dims_check(n, dims, err)) return NULL;
  int64_t d = mgrid_grid_require(g, dim, err);
  if (d < 0) return NULL;
  mgrid_whole whole = { g->axis[d].size, g->axis[d].name, NULL };
  int64_t     fill = mgrid_dims_fill(&whole, n, dims, err);
  if (!fill) return NULL;
  mgrid_dim all[2 * MGRID_DIMS_MAX];
  size_t    nall = 0;
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

/* Refuse to flatten dims, because dim `between` lies between them. */
static void *refuse_flatten(const mgrid_grid *g, size_t between, size_t first, size_t last, mgrid_error *err) {
  mgrid_text t = { 0 };
  order_text(g, &t);
  if (t.failed)
    mgrid_oom(err);
  else
    mgrid_fail(err, MGRID_REFUSED,
               "dims '%s' and '%s' are not adjacent in %s; flatten '%s' of size %" PRId64
               " with them, or make them adjacent in the order of the grid",
               g->axis[first].name, g->axis[last].name, t.data, g->axis[between].name, g->axis[between].size);
  mgrid_text_free(&t);
  return NULL;
}

mgrid_grid *mgrid_grid_flatten(const mgrid_grid *g, const char *name, size_t n, const char *const *dims,
                               mgrid_error *err) {
  mgrid_chosen c;
  if (!g || mgrid_grid_choose(g, n, dims, MGRID_GRID_ORDER, &c, err)) return NULL;
  if (n == 0) return mgrid_null(err, MGRID_REFUSED, "flatten of no dims; name one or more");
  mgrid_dim all[MGRID_DIMS_MAX], one = { name, 1 };
  size_t    nall = 0, first = c.in[0], last = c.in[n - 1];
  for (size_t i = 0; i < n; i++) one.size *= g->axis[c.in[i]].size;
  for (size_t i = 0; i < c.nix; i++)
    if (c.ix[i] > first && c.ix[i] < last && g->axis[c.ix[i]].size > 1)
      return refuse_flatten(g, c.ix[i], first, last, err);
  copy_dims(g, 0, first, all, &nall);
  all[nall++] = one;
  for (size_t i = 0; i < c.nix; i++) /* those between have size 1 and follow it */
    if (c.ix[i] > first) copy_dims(g, c.ix[i], c.ix[i] + 1, all, &nall);
  return mgrid_grid_like(g, nall, all, err);
}

mgrid_grid *mgrid_grid_rename(const mgrid_grid *g, const char *const *names, mgrid_error *err) {
  if (!g || mgrid_lacks_list(g->n, names, "names", err)) return NULL;
  mgrid_dim all[MGRID_DIMS_MAX];
  size_t    n = 0;
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

/* Make an order of the ranks at all coordinates of the free dims, starting at position `first`. */
static mgrid_family *part_order(const mgrid_grid *g, const mgrid_chosen *c, int64_t first, mgrid_error *err) {
  MGRID_MODES(positions);
  MGRID_MODES(inside);
  MGRID_MODES(none);
  if (mgrid_grid_modes(g, c->nin, c->in, &positions, &inside)) {
    int64_t rank = g->order ? mgrid_family_rank(g->order, 0, first) : g->window.offset + first;
    return mgrid_strided_new(g->window.world, rank, &inside, &none, err);
  }
  int64_t  n = mgrid_modes_count(&positions);
  int32_t *ranks = malloc((size_t)n * sizeof *ranks);
  for (int64_t i = 0; i < n && ranks; i++)
    ranks[i] = (int32_t)mgrid_family_rank(g->order, 0, first + mgrid_modes_offset(&positions, i));
  return mgrid_order_list(mgrid_world(g->window.world), n, ranks, err);
}

mgrid_grid *mgrid_grid_at(const mgrid_grid *g, const int64_t *coords, mgrid_error *err) {
  if (!g || mgrid_lacks_list(g->n, coords, "coordinates", err)) return NULL;
  mgrid_chosen c;
  mgrid_dim    dims[MGRID_DIMS_MAX];
  size_t       n = 0;
  int64_t      first = 0;
  for (size_t i = 0; i < g->n; i++) {
    if (coords[i] < -1 || coords[i] >= g->axis[i].size)
      return mgrid_null(err, MGRID_OUT_OF_RANGE,
                        "coordinate %" PRId64 " of dim '%s' is out of range (0 to %" PRId64 ")", coords[i],
                        g->axis[i].name, g->axis[i].size - 1);
    if (coords[i] < 0)
      copy_dims(g, i, i + 1, dims, &n);
    else
      first += coords[i] * g->axis[i].stride;
  }
  mgrid_grid_free_dims(g, coords, &c);
  mgrid_family *order = part_order(g, &c, first, err);
  mgrid_grid   *part = mgrid_grid_over(order, n, dims, err);
  mgrid_family_free(order);
  return part;
}

mgrid_status mgrid_grid_around(const mgrid_grid *g, int64_t rank, size_t n, const char *const *dims, int64_t *coords,
                               mgrid_error *err) {
  mgrid_chosen c;
  mgrid_status s = mgrid_grid_choose(g, n, dims, MGRID_GRID_ORDER, &c, err);
  for (size_t i = 0; i < g->n && !s; i++) coords[i] = mgrid_grid_coord(g, rank, i);
  for (size_t i = 0; i < c.nin && !s; i++) coords[c.in[i]] = -1;
  return s;
}
