/* SPDX-License-Identifier: MIT
**
** classes.h - the groups of a family, sorted into classes. The groups of one class are shifted
** copies of one group. So a question about all groups becomes a question about a few classes, and
** its cost does not grow with the world.
*/
#ifndef MGRID_CLASSES_H
#define MGRID_CLASSES_H

#include "families/family.h"
#include "families/modes.h"

enum {
  MGRID_CLASSES_MAX = 1024, /* classes of one family, and sets of its members */
  MGRID_LISTED_MAX = 256    /* positions or pieces that are checked one by one */
};

typedef struct mgrid_repeat { /* a mode by which the groups of a class repeat */
  int64_t size, stride;       /* in ranks */
  int64_t weight;             /* the step between group numbers */
} mgrid_repeat;

typedef struct mgrid_class {
  int64_t group, start, size; /* its first group, the first rank of that group, ranks per group */
  /* the round of all its groups (mgrid_family_rounds); -1: they are in several rounds */
  int64_t round;
  /* true: `shape` gives the ranks of a group; false: the ranks are those of `group`, shifted */
  bool ruled;
  int nsteps, nshape;
  mgrid_repeat step[MGRID_MODES_MAX];
  mgrid_mode shape[MGRID_MODES_MAX]; /* canonical */
} mgrid_class;

struct mgrid_classes {
  size_t n;
  mgrid_class *at; /* [n]; the caller frees it */
};

struct mgrid_sets {
  size_t n;
  mgrid_points *at; /* [n]; the caller frees it */
};

/* Add a class, which the caller fills. NULL: there are too many, or out of memory. */
mgrid_class *mgrid_classes_add(mgrid_classes *list);
/* Multiply the steps between group numbers by `times`. */
void mgrid_class_spread(mgrid_class *c, int64_t times);
/* Repeat the groups of a class `size` times; each copy is shifted by `stride` ranks and `weight`
** group numbers. False: there are too many steps. */
bool mgrid_class_step(mgrid_class *c, int64_t size, int64_t stride, int64_t weight);
/* Let `shape` be one mode: `size` ranks, `stride` apart. */
void mgrid_class_line(mgrid_class *c, int64_t size, int64_t stride);

/* Append the classes of a family. False: out of memory, there are too many (as in long lists), or
** modes do not describe the groups. */
bool mgrid_classes_of(const mgrid_family *f, mgrid_classes *list);
/* Make a set of points of the first ranks of the groups of a class. False: no modes describe it. */
bool mgrid_class_starts(const mgrid_class *c, mgrid_points *out);
/* Make a set of points that identify the groups of a class: each point combines the number of a
** group and its first rank. False: no modes describe the set. */
bool mgrid_class_numbered(const mgrid_class *c, mgrid_points *out);
/* Return the number of the group that such a point identifies. */
static inline int64_t mgrid_numbered_group(int64_t point) { return point >> 31; }

/* Return whether the groups of the two classes are the same up to a shift. */
mgrid_tristate mgrid_class_alike(const mgrid_family *f, const mgrid_class *c, const mgrid_family *g,
                                 const mgrid_class *d);

/* Add a set, which the caller fills. NULL: there are too many, or out of memory. */
mgrid_points *mgrid_sets_add(mgrid_sets *list);
/* As mgrid_points_each, with a list of sets. */
bool mgrid_sets_each(const mgrid_points *a, const mgrid_sets *sets, bool every, mgrid_points_fn fn,
                     void *ud, mgrid_budget *budget);
/* Find the lowest point of a that is in none of the sets; -1: there is none. Return false in the
** cases of mgrid_points_each. */
bool mgrid_sets_lack(const mgrid_points *a, const mgrid_sets *sets, int64_t *lowest,
                     mgrid_budget *budget);
/* Find the lowest point of a that is in one of the sets; -1: there is none. Return false in the
** cases of mgrid_points_each. */
bool mgrid_sets_overlap(const mgrid_points *a, const mgrid_sets *sets, int64_t *lowest,
                        mgrid_budget *budget);
/* Return whether a and b have the same groups in the same order. *differs becomes the first group
** that differs; differs may be NULL. Both families have one world and the same number of groups. */
mgrid_tristate mgrid_classes_equal(const mgrid_family *a, const mgrid_family *b, int64_t *differs,
                                   mgrid_budget *budget);
/* Append one set: the ranks at this position in all groups of a class. */
bool mgrid_class_position(const mgrid_family *f, const mgrid_class *c, int64_t position,
                          mgrid_sets *list);
/* Append sets of those ranks x of a class for which x + distance is in the same group as x.
** distance is not 0. */
bool mgrid_class_partners(const mgrid_family *f, const mgrid_class *c, int64_t distance,
                          mgrid_sets *list);

/* Append sets that together hold exactly the members of a family. False: there are too many, or out
** of memory. */
bool mgrid_members_of(const mgrid_family *f, mgrid_sets *list);

#endif
