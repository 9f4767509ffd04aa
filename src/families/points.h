/* SPDX-License-Identifier: MIT
**
** points.h - sets of points by modes, and what one of them shares with others, in time that does not grow with their
** sizes. A point is a rank, or a group with its first rank (classes.h). It is found by going through the modes of the
** set, largest stride first: where some steps of a mode look the same to all other sets, one of them stands for all.
*/
#ifndef MGRID_POINTS_H
#define MGRID_POINTS_H

#include "families/modes.h"

enum { MGRID_POINTS_MODES = 64 }; /* modes of a set, with those that come from cutting modes in two */

typedef struct mgrid_points {
  int64_t    offset; /* the lowest point */
  int        n;
  mgrid_mode at[MGRID_POINTS_MODES]; /* [n], largest stride first; each stride is larger than the smaller ones reach */
} mgrid_points;

/* The next modes of a set, in any order. False where there are too many. */
bool mgrid_points_push(mgrid_points *p, int64_t size, int64_t stride);
/* Is each stride larger than what the smaller ones reach together? */
bool mgrid_points_apart(const mgrid_points *p);
bool mgrid_points_has(const mgrid_points *p, int64_t point);

/* What is said of the points of a set: `weight` of them, of which `point` is the lowest in every mode, are first found in
** others[in], or with -1 in none. False ends the walk. */
typedef bool (*mgrid_points_fn)(void *ud, int64_t point, int64_t weight, int64_t in);
/* Say of all points of a in which of the n others they are; with `every`, of points that are all in the same ones of
** them, so that one that has `point` has the others of its weight, too. False: `fn` or the payer ended it, there is no memory, or
** the modes fit so badly together that this would take too long. */
bool mgrid_points_each(const mgrid_points *a, size_t n, const mgrid_points *const *others, bool every,
                       mgrid_points_fn fn, void *ud, mgrid_payer *payer);

#endif
