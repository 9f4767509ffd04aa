/* SPDX-License-Identifier: MIT
**
** cartesian.h - the Cartesian shape of a family: every group is a grid, whose dims have names, sizes and periods. It is the
** value of the option `cartesian`. Dims go fastest first, as everywhere here. MPI's go slowest first, so MPI's
** coordinates are these in reverse.
*/
#ifndef MGRID_CARTESIAN_H
#define MGRID_CARTESIAN_H

#include "families/grid.h"

typedef struct mgrid_side { /* one dim of a shape */
  char    name[MGRID_NAME_MAX + 1];
  int64_t size;
  bool    periodic; /* its last coordinate is followed by the first */
} mgrid_side;

typedef struct mgrid_shape {
  int        n;      /* dims, 1 to MGRID_DIMS_MAX */
  mgrid_side side[]; /* [n], fastest first */
} mgrid_shape;

/* Read "x:4:periodic y:2", separated by blanks or commas; for "" and NULL there is no shape, *out becomes NULL. Release
** the result with free. */
mgrid_status mgrid_shape_read(const char *text, mgrid_shape **out, mgrid_error *err);
/* Write the same in canonical form: separated by one blank. */
void mgrid_shape_text(const mgrid_shape *s, mgrid_text *t);
/* Refuse a family whose groups do not have as many ranks as this shape; `name` is the family's. Positions are read as a
** grid, whatever their ranks; which ranks are adjacent is not checked. O(1). */
mgrid_status mgrid_shape_fits(const mgrid_shape *s, const char *name, const mgrid_family *f, mgrid_error *err);

/* Return the index of a dim, or -1 after filling *err. */
int mgrid_shape_find(const mgrid_shape *s, const char *dim, mgrid_error *err);
/* Return the coordinate of a position in dim i. */
int64_t mgrid_shape_coord(const mgrid_shape *s, int64_t position, int i);
/* Return the position `steps` further along dim i (`back`: before it), or -1 if that is outside. */
int64_t mgrid_shape_step(const mgrid_shape *s, int64_t position, int i, int64_t steps, bool back);

#endif
