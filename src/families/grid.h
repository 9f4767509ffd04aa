/* SPDX-License-Identifier: MIT
**
** grid.h - the inside of a grid: dims over positions, and an order, which gives the rank at each
** position. An order is a family of one group. It is STRIDED where a rule of modes makes it, else a
** TABLE; consecutive ascending ranks need no order. So equal grids have one form.
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

/* The required product of the sizes of dims, and its name in messages: a dim, or the ranks of a
** place. */
typedef struct mgrid_whole {
  int64_t size;
  const char *dim;   /* NULL: ranks */
  const char *place; /* of ranks: "world", "window", "order" */
} mgrid_whole;

/* Check the number of dims, that each has a distinct name and a valid size, and that at most one is
** to be inferred. */
mgrid_status mgrid_dims_check(size_t n, const mgrid_dim *dims, mgrid_error *err);
/* Return the size of the dim that is to be inferred, 1 where there is none. Return 0 after a
** refusal, which names sizes that fit. */
int64_t mgrid_dims_fill(const mgrid_whole *whole, size_t n, const mgrid_dim *dims,
                        mgrid_error *err);

/* -------------------------------------------------------------------- grid.c */

/* Make a grid over the same ranks with other dims, whose product is the same. */
mgrid_grid *mgrid_grid_like(const mgrid_grid *g, size_t n, const mgrid_dim *dims, mgrid_error *err);
/* Return the index of a dim, or -1 after a refusal with the nearest name. */
int64_t mgrid_grid_require(const mgrid_grid *g, const char *dim, mgrid_error *err);
/* Append the text of mgrid_grid_describe. */
void mgrid_grid_text(const mgrid_grid *g, mgrid_text *t);
/* Append its fields of an object, which mgrid_grid_read reads. */
void mgrid_grid_json(const mgrid_grid *g, mgrid_text *t);

/* ------------------------------------------------------------- family_read.c */

/* Read the fields that mgrid_grid_json wrote, of an object that may have more. NULL after a fault,
** or once the budget is exhausted. */
#define MGRID_GRID_FIELDS "dims order offset size"
mgrid_grid *mgrid_grid_read(const mgrid_field *s, int64_t world);

/* ------------------------------------------------------------ grid.c: orders */

/* Make an order from a list, which it owns from now on, also on failure; NULL: report out of
** memory. */
mgrid_family *mgrid_order_list(mgrid_window w, int64_t n, int32_t *ranks, mgrid_error *err);
/* Make an order from a family of one group. O(members) unless it is strided. */
mgrid_family *mgrid_order_of(const mgrid_family *f, mgrid_error *err);
/* Return the window from the lowest rank to the highest. *plain: whether the order is exactly these
** ranks, ascending. */
mgrid_window mgrid_order_window(const mgrid_family *order, bool *plain);
/* Turn modes of positions, as dims of a grid over the order make them, into modes of ranks. False:
** the ranks follow no rule of modes. */
bool mgrid_order_modes(const mgrid_family *order, const mgrid_modes *positions, mgrid_modes *ranks);
/* Append the ranks, as in mgrid_grid_describe. */
void mgrid_order_text(const mgrid_family *order, mgrid_text *t);

/* ----------------------------------------------------------------- op_grid.c */

typedef struct mgrid_chosen { /* dims of a grid, by index */
  size_t nin, nix;
  /* [nin] inside the groups, [nix] that distinguish them */
  size_t in[MGRID_DIMS_MAX], ix[MGRID_DIMS_MAX];
} mgrid_chosen;

/* Resolve the names of mgrid_grid_along and mgrid_grid_along_by. */
mgrid_status mgrid_grid_choose(const mgrid_grid *g, size_t n, const char *const *dims,
                               mgrid_order order, mgrid_chosen *c, mgrid_error *err);
mgrid_status mgrid_grid_choose_by(const mgrid_grid *g, size_t n, const char *const *dims,
                                  size_t nindex, const char *const *index, mgrid_chosen *c,
                                  mgrid_error *err);
/* Return how many ranks must be listed for the family of the chosen dims, or with nix = 0 for its
** first group; 0 where a rule of modes makes it. */
int64_t mgrid_grid_listed(const mgrid_grid *g, const mgrid_chosen *c);
mgrid_family *mgrid_grid_family(const mgrid_grid *g, const mgrid_chosen *c, mgrid_error *err);

/* As mgrid_family_where, without lists. NULL with *err untouched where no rule of modes finds the
** groups. */
mgrid_family *mgrid_where_by_rule(const mgrid_family *f, const mgrid_grid *g, const int64_t *coords,
                                  mgrid_error *err);

/* Choose the dims that coords[0 .. ndims) leave free (-1) as the inside of *c, with nix = 0. */
void mgrid_grid_free_dims(const mgrid_grid *g, const int64_t *coords, mgrid_chosen *c);
/* Fill coords for mgrid_grid_at, for the part along n dims that contains a rank of the grid. */
mgrid_status mgrid_grid_around(const mgrid_grid *g, int64_t rank, size_t n, const char *const *dims,
                               int64_t *coords, mgrid_error *err);

#endif
