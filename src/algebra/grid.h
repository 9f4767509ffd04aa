/* SPDX-License-Identifier: MIT
**
** grid.h - what a grid is inside.
*/
#ifndef MG_GRID_H
#define MG_GRID_H

#include "algebra/family.h"

enum { MG_DIMS_MAX = 64 };

typedef struct mg_axis {
  char    name[MG_NAME_MAX + 1];
  int64_t size, stride;
} mg_axis;

struct mg_grid {
  atomic_int refs;
  mg_window  window;
  size_t     n;
  mg_axis    axis[];
};

mg_grid *mg_grid_ref(const mg_grid *g);

#endif
