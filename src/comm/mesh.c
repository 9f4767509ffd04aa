/* SPDX-License-Identifier: MIT
**
** mesh.c - this rank's coordinates in the plan's named grids.
*/
#include "comm/state.h"

/* Return the grid called `name`; fail and suggest the nearest name if there is none. */
static const mgrid_grid *named_grid(const mgrid_state *s, const char *name, mgrid_error *err) {
  const mgrid_grid *g = mgrid_plan_grid(s->plan, name);
  if (g || mgrid_lacks(name, "the name of the grid", err)) return g;
  const mgrid_content *c = &s->plan->content;
  const char          *known[MGRID_DIMS_MAX];
  char                 tail[512];
  size_t               n = 0;
  for (; n < c->ngrids && n < MGRID_DIMS_MAX; n++) known[n] = c->grid[n].name;
  mgrid_suggest(tail, sizeof tail, name, known, n);
  return mgrid_null(err, MGRID_UNKNOWN_NAME, "unknown grid '%s'%s", name, tail);
}

int64_t mgrid_state_coord(const mgrid_state *s, const char *grid, const char *dim, mgrid_error *err) {
  const mgrid_grid *g = s ? named_grid(s, grid, err) : NULL;
  int64_t           d = g ? mgrid_grid_require(g, dim, err) : -1;
  return d < 0 ? -1 : mgrid_grid_coord(g, s->view.rank, (size_t)d);
}

mgrid_grid *mgrid_state_submesh(const mgrid_state *s, const char *grid, size_t n, const char *const *dims,
                                mgrid_error *err) {
  const mgrid_grid *g = s ? named_grid(s, grid, err) : NULL;
  int64_t           coords[MGRID_DIMS_MAX];
  if (!g || mgrid_grid_around(g, s->view.rank, n, dims, coords, err)) return NULL;
  return mgrid_grid_position(g, s->view.rank) < 0 ? NULL : mgrid_grid_at(g, coords, err);
}
