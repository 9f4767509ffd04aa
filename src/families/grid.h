/* SPDX-License-Identifier: MIT
**
** grid.h - what a grid is inside: dims over positions, and an order, which says the rank at each position.
** An order is a family of one group. It is STRIDED where a rule of modes makes it, else a TABLE; ranks that
** follow each other need none. So equal grids have one form.
*/
#ifndef MGRID_GRID_H
#define MGRID_GRID_H

#include "families/family.h"

enum { MGRID_DIMS_MAX = 64 }; /* dims of a grid, at most */

typedef struct mgrid_axis { /* one dim of a grid */
  char    name[MGRID_NAME_MAX + 1];
  int64_t size, stride; /* stride in positions: the product of the sizes before it */
} mgrid_axis;

struct mgrid_grid {
  atomic_int    refs;   /* owners */
  mgrid_window  window; /* from its lowest rank to its highest */
  mgrid_family *order;  /* position -> rank; NULL: the ranks of the window, ascending */
  int64_t       size;   /* positions */
  size_t        n;      /* dims */
  mgrid_axis    axis[]; /* [n], fastest-varying first */
};

/* -------------------------------------------------------------------- dims.c */

/* What the sizes of dims have to make, and how messages call it: a dim, or the ranks of a place. */
typedef struct mgrid_whole {
  int64_t     size;
  const char *dim;   /* NULL: ranks */
  const char *place; /* of ranks: "world", "window", "order" */
} mgrid_whole;

/* Are there not too many, has each a name of its own and a size, and is one at most to be inferred? */
mgrid_status mgrid_dims_check(size_t n, const mgrid_dim *dims, mgrid_error *err);
/* The size of the dim that is to be inferred, 1 where there is none; or 0 after a refusal that names sizes
** which make the whole. */
int64_t mgrid_dims_fill(const mgrid_whole *whole, size_t n, const mgrid_dim *dims, mgrid_error *err);

/* -------------------------------------------------------------------- grid.c */

/* A grid over the same ranks with other dims, whose product is the same. */
mgrid_grid *mgrid_grid_like(const mgrid_grid *g, size_t n, const mgrid_dim *dims, mgrid_error *err);
/* The index of a dim, or -1 after a refusal with the nearest name. */
int64_t mgrid_grid_require(const mgrid_grid *g, const char *dim, mgrid_error *err);
/* Append the text of mgrid_grid_describe. */
void mgrid_grid_text(const mgrid_grid *g, mgrid_text *t);

/* -------------------------------------------------------------------- read.c */

/* The grid that mgrid_grid_text wrote; NULL after a fault, or where the payer pays no more. */
mgrid_grid *mgrid_grid_read(mgrid_scan *s, int64_t world);

/* ------------------------------------------------------------------- order.c */

/* An order from a list, which it owns from now on, also on failure; NULL is out of memory. */
mgrid_family *mgrid_order_list(mgrid_window w, int64_t n, int32_t *ranks, mgrid_error *err);
/* An order from a family of one group. O(members) unless it is strided. */
mgrid_family *mgrid_order_of(const mgrid_family *f, mgrid_error *err);
/* The ranks from the lowest to the highest; *plain: are they all there, ascending? */
mgrid_window mgrid_order_window(const mgrid_family *order, bool *plain);
/* Turn offsets in positions, which dims of a grid over the order make, into offsets in ranks. False where these
** follow no rule of modes. */
bool mgrid_order_modes(const mgrid_family *order, const mgrid_modes *positions, mgrid_modes *ranks);
/* Append the ranks, as in mgrid_grid_describe. */
void mgrid_order_text(const mgrid_family *order, mgrid_text *t);

/* ------------------------------------------------------------------- along.c */

typedef struct mgrid_chosen { /* dims of a grid, by index */
  size_t nin, nix;
  size_t in[MGRID_DIMS_MAX], ix[MGRID_DIMS_MAX]; /* [nin] inside the groups, [nix] that tell them apart */
} mgrid_chosen;

/* Resolve the names of mgrid_grid_along and mgrid_grid_along_by. */
mgrid_status mgrid_grid_choose(const mgrid_grid *g, size_t n, const char *const *dims, mgrid_order order,
                               mgrid_chosen *c, mgrid_error *err);
mgrid_status mgrid_grid_choose_by(const mgrid_grid *g, size_t n, const char *const *dims, size_t nindex,
                                  const char *const *index, mgrid_chosen *c, mgrid_error *err);
/* Dims as modes of positions, and these as modes of ranks; for a grid without an order the latter alone. False
** where there are no such modes. Both lists are empty before. */
bool mgrid_grid_modes(const mgrid_grid *g, size_t n, const size_t *dims, mgrid_modes *positions, mgrid_modes *ranks);
/* How many ranks have to be listed for the family of the chosen dims, or with nix = 0 for its first group;
** 0 where a rule of modes makes it. */
int64_t       mgrid_grid_listed(const mgrid_grid *g, const mgrid_chosen *c);
mgrid_family *mgrid_grid_family(const mgrid_grid *g, const mgrid_chosen *c, mgrid_error *err);

/* ------------------------------------------------------------------- where.c */

/* mgrid_family_where without lists; NULL with *err untouched where no rule of modes tells the groups. */
mgrid_family *mgrid_where_by_rule(const mgrid_family *f, const mgrid_grid *g, const int64_t *coords, mgrid_error *err);

/* ----------------------------------------------------------------- reshape.c */

/* The dims that coords[0 .. ndims) leave free (-1), as the inside of *c, and its nix = 0. */
void mgrid_grid_free_dims(const mgrid_grid *g, const int64_t *coords, mgrid_chosen *c);
/* coords for mgrid_grid_at of the part along n dims that has a rank of the grid. */
mgrid_status mgrid_grid_around(const mgrid_grid *g, int64_t rank, size_t n, const char *const *dims, int64_t *coords,
                               mgrid_error *err);

#endif
