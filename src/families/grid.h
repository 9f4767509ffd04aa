/* SPDX-License-Identifier: MIT
**
** grid.h - the inside of a grid: dims over positions, and an order, which gives the rank at each
** position. An order is a family of one group. It is STRIDED where modes describe it, else a TABLE.
** Consecutive ascending ranks need no order. So the orders of equal grids are stored in the same
** way.
*/
#ifndef MGRID_GRID_H
#define MGRID_GRID_H

#include "families/family.h"

enum { MGRID_DIMS_MAX = 64 }; /* dims of a grid, at most */

typedef struct mgrid_axis { /* one dim of a grid */
  char name[MGRID_NAME_MAX + 1];
  int64_t size, stride; /* stride in positions: the product of the sizes before it */
} mgrid_axis;

struct mgrid_grid {
  atomic_int refs;     /* owners */
  mgrid_window window; /* from its lowest rank to its highest */
  mgrid_family *order; /* position -> rank; NULL: the ranks of the window, ascending */
  int64_t size;        /* positions */
  size_t n;            /* dims */
  mgrid_axis axis[];   /* [n], fastest-varying first */
};

/* --------------------------------------------------- grid.c: names and sizes */

/* The number to which the sizes of dims must multiply, and what messages call it: a dim, or the
** ranks of a world, window or order. */
typedef struct mgrid_whole {
  int64_t size;
  const char *dim;   /* NULL: ranks */
  const char *place; /* of ranks: "world", "window", "order" */
} mgrid_whole;

/* Check the number of dims. Each must have a valid size and a name of its own, and at most one size
** is MGRID_FILL. */
mgrid_status mgrid_dims_check(size_t n, const mgrid_dim *dims, mgrid_error *err);
/* Return the size of the dim that is MGRID_FILL, or 1 if there is none. If the sizes do not fit,
** refuse them, name sizes that do, and return 0. */
int64_t mgrid_dims_fill(const mgrid_whole *whole, size_t n, const mgrid_dim *dims,
                        mgrid_error *err);

/* -------------------------------------------------------------------- grid.c */

/* Make a grid over the same ranks with other dims. The product of their sizes must be that of the
** dims of g. */
mgrid_grid *mgrid_grid_like(const mgrid_grid *g, size_t n, const mgrid_dim *dims, mgrid_error *err);
/* Return the index of a dim, or -1 after a refusal with the nearest name. */
int64_t mgrid_grid_require(const mgrid_grid *g, const char *dim, mgrid_error *err);
/* Append the text of mgrid_grid_describe. */
void mgrid_grid_text(const mgrid_grid *g, mgrid_text *t);
/* Append the fields of the grid as JSON, without braces. mgrid_grid_read reads them. */
void mgrid_grid_json(const mgrid_grid *g, mgrid_text *t);

/* ------------------------------------------------------------- family_read.c */

/* Read the fields that mgrid_grid_json wrote; the object may have others. Return NULL after an
** error, or once the budget is exhausted. */
#define MGRID_GRID_FIELDS "dims order offset size"
mgrid_grid *mgrid_grid_read(const mgrid_field *s, int64_t world);

/* ------------------------------------------------------------ grid.c: orders */

/* Make an order from a list of ranks. Take the list over, also on failure; NULL means out of
** memory. */
mgrid_family *mgrid_order_list(mgrid_window w, int64_t n, int32_t *ranks, mgrid_error *err);
/* Make an order from a family of one group. O(members) unless it is strided. */
mgrid_family *mgrid_order_of(const mgrid_family *f, mgrid_error *err);
/* Return the window from the lowest rank to the highest. *plain: whether the order has exactly the
** ranks of the window, ascending. */
mgrid_window mgrid_order_window(const mgrid_family *order, bool *plain);
/* Turn modes of positions into modes of the ranks at them. A mode (size, stride) of positions takes
** `size` positions of the order, `stride` apart. False: no modes describe these ranks. */
bool mgrid_order_modes(const mgrid_family *order, const mgrid_modes *positions, mgrid_modes *ranks);
/* Append the ranks, as in mgrid_grid_describe. */
void mgrid_order_text(const mgrid_family *order, mgrid_text *t);

/* ----------------------------------------------------------------- op_grid.c */

typedef struct mgrid_chosen { /* dims of a grid, as indices */
  size_t nin, nix;
  /* [nin]: dims inside the groups; [nix]: dims that number the groups */
  size_t in[MGRID_DIMS_MAX], ix[MGRID_DIMS_MAX];
} mgrid_chosen;

/* Resolve the names of mgrid_grid_along and mgrid_grid_along_by. */
mgrid_status mgrid_grid_choose(const mgrid_grid *g, size_t n, const char *const *dims,
                               mgrid_order order, mgrid_chosen *c, mgrid_error *err);
mgrid_status mgrid_grid_choose_by(const mgrid_grid *g, size_t n, const char *const *dims,
                                  size_t nindex, const char *const *index, mgrid_chosen *c,
                                  mgrid_error *err);
/* Return how many ranks must be listed to make the family of the chosen dims; with nix = 0, only
** its first group. 0: modes describe them. */
int64_t mgrid_grid_listed(const mgrid_grid *g, const mgrid_chosen *c);
mgrid_family *mgrid_grid_family(const mgrid_grid *g, const mgrid_chosen *c, mgrid_error *err);

/* As mgrid_family_where, but without lists. Return NULL and leave *err as it is if no modes find
** the groups. */
mgrid_family *mgrid_where_by_rule(const mgrid_family *f, const mgrid_grid *g, const int64_t *coords,
                                  mgrid_error *err);

/* Choose as inside dims the free ones: those with coords[i] -1. Set nix to 0. coords: [g->n]. */
void mgrid_grid_free_dims(const mgrid_grid *g, const int64_t *coords, mgrid_chosen *c);
/* Fill coords, for mgrid_grid_at, with the coordinates of `rank`, but with -1 for the n named dims.
** So mgrid_grid_at returns the part along these dims that contains the rank. */
mgrid_status mgrid_grid_around(const mgrid_grid *g, int64_t rank, size_t n, const char *const *dims,
                               int64_t *coords, mgrid_error *err);

#endif
