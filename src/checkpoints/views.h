/* SPDX-License-Identifier: MIT
**
** views.h - a view makes a wanted tensor from stored tensors: renamed, concatenated, cut out of a
** larger one, stacked, transposed, or of another type. It is a list of boxes of the wanted tensor,
** which together have each element once. Each box is also a box of a stored tensor.
*/
#ifndef MGRID_VIEWS_H
#define MGRID_VIEWS_H

#include "checkpoints/shards.h"

typedef struct view_box {
  const shards_tensor *of;
  int64_t start[MGRID_AXES_MAX], length[MGRID_AXES_MAX]; /* in the wanted tensor */
  /* for each axis of the wanted tensor, the axis of the stored tensor; -1: the stored tensor does
  ** not have this axis, and the length is 1 */
  int8_t axis[MGRID_AXES_MAX];
  int64_t at[MGRID_AXES_MAX]; /* where the box starts in the stored tensor */
  /* the box is repeated `blocks` times along an axis of the wanted tensor, each time `step` indices
  ** further in the wanted tensor and `at_step` indices further in the stored tensor */
  int64_t blocks;
  size_t along;
  int64_t step, at_step;
} view_box;

typedef struct view {
  const char *type; /* of the wanted tensor */
  size_t naxes;
  int64_t shape[MGRID_AXES_MAX];
  size_t n;
  view_box *box; /* [n] */
  bool plain;    /* the view is the stored tensor, unchanged */
} view;

/* Begin the view of a tensor of this shape. same: a stored tensor of this shape that is the whole
** view; NULL: boxes will be added. */
mgrid_status view_begin(view *v, const char *type, size_t naxes, const int64_t *shape,
                        const shards_tensor *same, mgrid_error *err);
/* Append a box of one block, whose other fields are zero. NULL: out of memory. */
view_box *view_add(view *v, mgrid_error *err);
void view_free(view *v);
/* Read elements `from` to `from` + n - 1 of a rank's part. Unless the view is plain, this takes
** memory for n stored elements. */
mgrid_status view_read(shards *s, const view *v, const shards_part *want, int64_t from, int64_t n,
                       void *to, mgrid_error *err);

/* Return whether elements of one type can become elements of the other: the types are equal, or
** both are f64, f32, f16 or bf16. */
bool elements_convert(const char *from, const char *to);

#endif
