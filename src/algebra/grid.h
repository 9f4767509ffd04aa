/* SPDX-License-Identifier: MIT
**
** grid.h - what a grid is inside.
*/
#ifndef MGRID_GRID_H
#define MGRID_GRID_H

#include "algebra/family.h"

enum { MGRID_DIMS_MAX = 64 }; /* dims of a grid, at most */

typedef struct mgrid_axis { /* one dim of a grid */
  char    name[MGRID_NAME_MAX + 1];
  int64_t size, stride; /* stride in ranks: the product of the sizes before it */
} mgrid_axis;

struct mgrid_grid {
  atomic_int   refs;   /* owners */
  mgrid_window window; /* the ranks that it covers */
  size_t       n;      /* dims */
  mgrid_axis   axis[]; /* [n], fastest-varying first */
};

#endif
