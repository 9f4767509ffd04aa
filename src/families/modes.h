/* SPDX-License-Identifier: MIT
**
** modes.h - lists of (size, stride), fastest first: the arithmetic below every family.
**
** A list of modes stands for the ordered offsets
**     sum of digit_i * stride_i,   0 <= digit_i < size_i,   digit_0 varying fastest.
** Lists are kept canonical: no mode has size 1, and no two adjacent modes form one run (stride_{i+1} == size_i *
** stride_i). The canonical list of given offsets is unique: its first mode is the longest run at the front. Sizes are 2
** or more and their product is below 2^31, so 30 modes always suffice.
*/
#ifndef MGRID_MODES_H
#define MGRID_MODES_H

#include "base/base.h"

enum { MGRID_MODES_MAX = 30 }; /* modes of a list, at most */

/* The array belongs to the maker of the list: a family, or a function that fills one. */
typedef struct mgrid_modes {
  int         n;  /* modes in the list */
  mgrid_mode *at; /* [n] */
} mgrid_modes;

/* Declare a local, empty list with room for MGRID_MODES_MAX modes. */
#define MGRID_MODES(list) \
  mgrid_mode  list##_room[MGRID_MODES_MAX]; \
  mgrid_modes list = { 0, list##_room }

void    mgrid_modes_push(mgrid_modes *m, int64_t size, int64_t stride); /* keeps m canonical */
void    mgrid_modes_append(mgrid_modes *m, const mgrid_modes *tail);
int64_t mgrid_modes_count(const mgrid_modes *m);             /* product of the sizes */
int64_t mgrid_modes_offset(const mgrid_modes *m, int64_t i); /* i-th offset, i in [0, count) */
int64_t mgrid_modes_span(const mgrid_modes *m);              /* largest offset */
bool    mgrid_modes_equal(const mgrid_modes *a, const mgrid_modes *b);

/* Cut after the first k offsets: inner has those, outer the starts of all runs of k. False when k meets no mode
** boundary. That is exactly when the runs of k are not shifted copies of each other; *blocking is then the mode in the
** way. k >= 1 divides the count. */
bool mgrid_modes_cut(const mgrid_modes *m, int64_t k, mgrid_modes *inner, mgrid_modes *outer, mgrid_mode *blocking);

/* Find the modes, with positive strides, of n offsets of which the first is 0. False: there are none. */
bool mgrid_modes_of(const int64_t *offsets, int64_t n, mgrid_modes *out);

/* Find the nearest divisors of n below and above k, 0 where there is none: for messages. */
void mgrid_nearest_divisors(int64_t n, int64_t k, int64_t *below, int64_t *above);

void mgrid_modes_text(const mgrid_modes *m, mgrid_text *t); /* "(2:1)(4:8)", "(1)" when empty */
void mgrid_modes_json(const mgrid_modes *m, mgrid_text *t); /* [[2,1],[4,8]] */

#endif
