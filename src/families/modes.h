/* SPDX-License-Identifier: MIT
**
** modes.h - modes, the arithmetic below every family, and sets of points that modes describe. A
** mode is a size and a stride.
**
** A list of modes, fastest first, stands for the ordered offsets
**     sum of digit_i * stride_i,   0 <= digit_i < size_i,   digit_0 varying fastest.
** Lists are kept canonical: no mode has size 1, and no two adjacent modes form one run
** (stride_{i+1} == size_i * stride_i). The canonical list of given offsets is unique: its first
** mode is the longest run at the front. Sizes are 2 or more and their product is below 2^31, so 30
** modes always suffice.
*/
#ifndef MGRID_MODES_H
#define MGRID_MODES_H

#include "base/base.h"

enum { MGRID_MODES_MAX = 30 };

/* A list of modes. The array belongs to whoever made the list: a family, or a function that fills a
** list. */
typedef struct mgrid_modes {
  int n;
  mgrid_mode *at; /* [n] */
} mgrid_modes;

/* Declare a local, empty list with room for MGRID_MODES_MAX modes. */
#define MGRID_MODES(list) \
  mgrid_mode list##_room[MGRID_MODES_MAX]; \
  mgrid_modes list = { 0, list##_room }

void mgrid_modes_push(mgrid_modes *m, int64_t size, int64_t stride); /* keeps m canonical */
void mgrid_modes_append(mgrid_modes *m, const mgrid_modes *tail);
int64_t mgrid_modes_count(const mgrid_modes *m);             /* product of the sizes */
int64_t mgrid_modes_offset(const mgrid_modes *m, int64_t i); /* i-th offset, i in [0, count) */
int64_t mgrid_modes_span(const mgrid_modes *m);              /* largest offset */
bool mgrid_modes_equal(const mgrid_modes *a, const mgrid_modes *b);

/* Cut after the first k offsets: `inner` gets these, `outer` the first offsets of all runs of k. k
** >= 1 divides the count. False: a mode cannot be cut at k, because the runs of k are not shifted
** copies of each other (k = 4 of 6:1 2:10). That mode becomes *blocking (which may be NULL). */
bool mgrid_modes_cut(const mgrid_modes *m, int64_t k, mgrid_modes *inner, mgrid_modes *outer,
                     mgrid_mode *blocking);

/* Find the modes, with positive strides, of n offsets. The first offset is 0. False: there are
** none. */
bool mgrid_modes_of(const int64_t *offsets, int64_t n, mgrid_modes *out);

/* Find the nearest divisors of n below and above k, for messages. 0: there is none. */
void mgrid_nearest_divisors(int64_t n, int64_t k, int64_t *below, int64_t *above);
int64_t mgrid_gcd(int64_t a, int64_t b);

void mgrid_modes_text(const mgrid_modes *m, mgrid_text *t); /* "(2:1)(4:8)", "(1)" when empty */
void mgrid_modes_json(const mgrid_modes *m, mgrid_text *t); /* [[2,1],[4,8]] */

/* ------------------------------------------------------------ sets of points */

/* Sets of points that modes describe, and the search for the points of one set that are in other
** sets. A point is a rank, or a group and its first rank (classes.h). The time of a search does not
** grow with the size of the sets: it goes through the modes of a set, largest stride first. If
** several steps of a mode look the same to all other sets, it visits only one of them. */
enum { MGRID_POINTS_MODES = 64 }; /* modes of a set; a cut of a mode makes two */

typedef struct mgrid_points {
  int64_t offset; /* the lowest point */
  int n;
  /* [n], largest stride first. Each stride is larger than all smaller modes together reach */
  mgrid_mode at[MGRID_POINTS_MODES];
} mgrid_points;

/* Add a mode, in any order. False: the set has MGRID_POINTS_MODES already. */
bool mgrid_points_push(mgrid_points *p, int64_t size, int64_t stride);
/* Return whether each stride is larger than all smaller modes together reach. */
bool mgrid_points_apart(const mgrid_points *p);

/* Receives `weight` points of a set at once; `point` is the lowest of them. others[in] is the first
** of the other sets that has them; in = -1: none has them. Return false to end the search. */
typedef bool (*mgrid_points_fn)(void *ud, int64_t point, int64_t weight, int64_t in);
/* Report for every point of a which of the n others has it. Points reported together have the same
** first set; with `every` they are in exactly the same sets. False: `fn` or the budget ended the
** search, memory ran out, or the search would take too long because the modes fit together
** badly. */
bool mgrid_points_each(const mgrid_points *a, size_t n, const mgrid_points *const *others,
                       bool every, mgrid_points_fn fn, void *ud, mgrid_budget *budget);

#endif
