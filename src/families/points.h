/* SPDX-License-Identifier: MIT
**
** points.h - sets of points described by modes, and which points of one set are in others, in time that does not grow
** with the size of the sets. A point is a rank, or a group with its first rank (classes.h). The search goes through the
** modes of a set, largest stride first. Where several steps of a mode look the same to all other sets, one of them
** stands for all.
*/
#ifndef MGRID_POINTS_H
#define MGRID_POINTS_H

#include "families/modes.h"

enum { MGRID_POINTS_MODES = 64 }; /* modes of a set, including those from cutting a mode in two */

typedef struct mgrid_points {
  int64_t    offset; /* the lowest point */
  int        n;
  mgrid_mode at[MGRID_POINTS_MODES]; /* [n], largest stride first; each stride exceeds the reach of the smaller ones */
} mgrid_points;

/* Add a mode, in any order. False: there are too many. */
bool mgrid_points_push(mgrid_points *p, int64_t size, int64_t stride);
/* Return whether each stride is larger than the reach of the smaller ones together. */
bool mgrid_points_apart(const mgrid_points *p);

/* Receive points of a set: `weight` of them, of which `point` is the lowest in every mode, are first found in
** others[in], or with in = -1 in none. Return false to end the walk. */
typedef bool (*mgrid_points_fn)(void *ud, int64_t point, int64_t weight, int64_t in);
/* Report for all points of a in which of the n others they are. With `every`, report points together only if they are
** all in the same others: if one set has `point`, it has all points of that weight. False: `fn` or the budget ended the
** walk, out of memory, or the modes fit together so badly that it would take too long. */
bool mgrid_points_each(const mgrid_points *a, size_t n, const mgrid_points *const *others, bool every,
                       mgrid_points_fn fn, void *ud, mgrid_budget *budget);

#endif
