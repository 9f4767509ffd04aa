/* SPDX-License-Identifier: MIT
**
** modes.h - lists of (size, stride), fastest first: the arithmetic below every family.
**
** A list of modes stands for the ordered offsets
**     sum of digit_i * stride_i,   0 <= digit_i < size_i,   digit_0 varying fastest.
** Lists are kept canonical: no mode of size 1, no two neighbours that are one run
** (stride_{i+1} == size_i * stride_i). The canonical list of given offsets is unique:
** its first mode is the longest run at the front. Sizes are 2 or more and their product
** is below 2^31, so 31 modes are always enough.
*/
#ifndef MG_MODES_H
#define MG_MODES_H

#include "base/base.h"

enum { MG_MODES_MAX = 31 };

typedef struct mg_mode {
  int64_t size, stride;
} mg_mode;

/* The array belongs to whoever made the list: a family, or a function that fills one. */
typedef struct mg_modes {
  int      n;
  mg_mode *at;
} mg_modes;

/* A local, empty list with room for whatever comes. */
#define MG_MODES(list) \
  mg_mode  list##_room[MG_MODES_MAX]; \
  mg_modes list = { 0, list##_room }

void    mg_modes_push(mg_modes *m, int64_t size, int64_t stride); /* keeps m canonical */
void    mg_modes_append(mg_modes *m, const mg_modes *tail);
int64_t mg_modes_count(const mg_modes *m);             /* product of the sizes */
int64_t mg_modes_offset(const mg_modes *m, int64_t i); /* i-th offset, i in [0, count) */
int64_t mg_modes_span(const mg_modes *m);              /* largest offset */
bool    mg_modes_equal(const mg_modes *a, const mg_modes *b);

/* Cut after the first k offsets: inner has those, outer the starts of all runs of k.
** False when k meets no mode boundary, which is exactly when the runs of k are not
** shifted copies of each other: then *blocking is the mode in the way. k >= 1 divides
** the count. */
bool mg_modes_cut(const mg_modes *m, int64_t k, mg_modes *inner, mg_modes *outer, mg_mode *blocking);

/* The modes of n offsets that begin with 0, if there are any with positive strides. */
bool mg_modes_of(const int64_t *offsets, int64_t n, mg_modes *out);

/* Nearest divisors of n on both sides of k, 0 where there is none: for messages. */
void mg_nearest_divisors(int64_t n, int64_t k, int64_t *below, int64_t *above);

void mg_modes_text(const mg_modes *m, mg_text *t); /* "(2:1)(4:8)", "(1)" when empty */

#endif
