/* SPDX-License-Identifier: MIT
**
** classes.h - the groups of a family in classes: those of a class are one group, shifted along modes. So questions about
** all groups are questions about a few classes, and what they cost does not grow with the world.
*/
#ifndef MGRID_CLASSES_H
#define MGRID_CLASSES_H

#include "families/family.h"
#include "families/points.h"

enum {
  MGRID_CLASSES_MAX = 1024, /* classes of one family, and sets of its members */
  MGRID_LISTED_MAX = 256    /* positions or pieces that are looked at one by one */
};

typedef struct mgrid_step { /* of the groups of a class */
  int64_t size, stride;     /* in ranks */
  int64_t weight;           /* in numbers of groups */
} mgrid_step;

typedef struct mgrid_class {
  int64_t    group, start, size; /* its first group, the first rank of that, ranks of a group */
  int64_t    round;              /* of all its groups; -1: they have several */
  bool       ruled;              /* does `shape` say the ranks of a group? Else they are those of `group`, shifted */
  int        nsteps, nshape;
  mgrid_step step[MGRID_MODES_MAX];
  mgrid_mode shape[MGRID_MODES_MAX]; /* canonical */
} mgrid_class;

struct mgrid_classes {
  size_t       n;
  mgrid_class *at; /* [n], to be freed */
};

struct mgrid_sets {
  size_t        n;
  mgrid_points *at; /* [n], to be freed */
};

/* A new class, to be filled; NULL where there are too many, or no memory. */
mgrid_class *mgrid_classes_add(mgrid_classes *list);
/* Group numbers of its steps become so many times as large. */
void mgrid_class_spread(mgrid_class *c, int64_t times);
/* Its groups are repeated, `stride` ranks and `weight` group numbers apart. False where there are too many steps. */
bool mgrid_class_step(mgrid_class *c, int64_t size, int64_t stride, int64_t weight);
/* The ranks of its groups are `size` along one mode. */
void mgrid_class_line(mgrid_class *c, int64_t size, int64_t stride);

/* Append the classes of a family. False where there are too many, as of long lists, or no memory. */
bool mgrid_classes_of(const mgrid_family *f, mgrid_classes *list);
/* The first ranks of the groups of a class; the numbers of its groups, each with its first rank. False where they have
** no such form. */
bool mgrid_class_starts(const mgrid_class *c, mgrid_points *out);
bool mgrid_class_numbered(const mgrid_class *c, mgrid_points *out);
/* The group of a point of mgrid_class_numbered. */
static inline int64_t mgrid_numbered_group(int64_t point) { return point >> 31; }

/* Are the groups of the two classes alike but for where they begin? */
mgrid_told mgrid_class_alike(const mgrid_family *f, const mgrid_class *c, const mgrid_family *g, const mgrid_class *d);

/* A new set, to be filled; NULL where there are too many, or no memory. */
mgrid_points *mgrid_sets_add(mgrid_sets *list);
/* mgrid_points_each of a list of sets. */
bool mgrid_sets_each(const mgrid_points *a, const mgrid_sets *sets, bool every, mgrid_points_fn fn, void *ud,
                     mgrid_payer *payer);
/* The lowest point of a that is in none of the sets, or that is in one; -1: there is none. False as mgrid_points_each. */
bool mgrid_sets_lack(const mgrid_points *a, const mgrid_sets *sets, int64_t *lowest, mgrid_payer *payer);
bool mgrid_sets_meet(const mgrid_points *a, const mgrid_sets *sets, int64_t *lowest, mgrid_payer *payer);
/* Are the groups of a those of b, in the same order? *differs becomes the first group that differs; it may be NULL. The
** families are of one world, with as many groups. */
mgrid_told mgrid_classes_equal(const mgrid_family *a, const mgrid_family *b, int64_t *differs, mgrid_payer *payer);
/* Append the ranks at a position of the groups of a class. */
bool mgrid_class_position(const mgrid_family *f, const mgrid_class *c, int64_t position, mgrid_sets *list);
/* Append the ranks x of a class for which x and x + distance are in one group of it, distance not 0. */
bool mgrid_class_partners(const mgrid_family *f, const mgrid_class *c, int64_t distance, mgrid_sets *list);

/* Append sets that have together the members of a family, and no other ranks. False as above. */
bool mgrid_members_of(const mgrid_family *f, mgrid_sets *list);

#endif
