/* SPDX-License-Identifier: MIT
**
** views.h - a tensor as it is wanted, of tensors as they are stored: renamed, concatenated, cut out
** of a larger one, stacked, transposed, of another type. A view is a list of boxes, each of which
** is a box of a stored tensor; together they are the wanted tensor, each element once.
*/
#ifndef MGRID_VIEWS_H
#define MGRID_VIEWS_H

#include "checkpoints/shards.h"

typedef struct view_box {
  const shards_tensor *of;
  int64_t start[MGRID_AXES_MAX], length[MGRID_AXES_MAX]; /* in the wanted tensor */
  /* the stored tensor's axis for each wanted one; -1: none, length is 1 */
  int8_t axis[MGRID_AXES_MAX];
  int64_t at[MGRID_AXES_MAX]; /* where it starts, by the stored tensor's axes */
  int64_t blocks;             /* such boxes, one after the other: */
  size_t along;               /* on this wanted axis, */
  int64_t step, at_step; /* each that much further in the wanted tensor, and in the stored one */
} view_box;

typedef struct view {
  const char *type; /* wanted */
  size_t naxes;
  int64_t shape[MGRID_AXES_MAX];
  size_t n;
  view_box *box; /* [n] */
  bool plain;    /* the stored tensor as it is */
} view;

/* Start the view of a tensor of this shape, as a copy of the stored one if that is not NULL. */
mgrid_status view_begin(view *v, const char *type, size_t naxes, const int64_t *shape,
                        const shards_tensor *same, mgrid_error *err);
/* Append room for one more box, of one block, else all zeros. NULL: out of memory. */
view_box *view_add(view *v, mgrid_error *err);
void view_free(view *v);
/* Read elements from to from + n - 1 of a rank's part. Takes memory for as many elements again,
** unless the view is plain. */
mgrid_status view_read(shards *s, const view *v, const shards_part *want, int64_t from, int64_t n,
                       void *to, mgrid_error *err);

/* Return whether elements of a type can become those of the other: equal types, or f64, f32, f16
** and bf16. */
bool elements_convert(const char *from, const char *to);

#endif
