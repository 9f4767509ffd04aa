/* SPDX-License-Identifier: MIT
**
** grid.h - what a grid is inside.
*/
#ifndef MGRID_GRID_H
#define MGRID_GRID_H

#include "algebra/family.h"

enum { MGRID_DIMS_MAX = 64 };

typedef struct mgrid_axis { /* a dim in its grid */
  char    name[MGRID_NAME_MAX + 1];
  int64_t size, stride;
} mgrid_axis;

struct mgrid_grid {
  atomic_int   refs;
  mgrid_window window; /* the ranks it lies over */
  size_t       n;      /* dims */
  mgrid_axis   axis[]; /* [n], fastest-varying first */
};

/* Another owner; never fails. */

#endif
