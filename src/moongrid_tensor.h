/* SPDX-License-Identifier: MIT
**
** moongrid_tensor.h - tensors, how a layout cuts them, and moves from one layout to another. moongrid.h includes
** this header, and its rules hold here.
**
** WORDS
**   tensor    an array with named axes, slowest first as C stores it, and a rule that cuts it over dims of a grid
**   part      what one rank holds of it: on each axis some runs of indices, and of these every combination, stored
**             in C order one behind the other
**   copies    ranks that hold the same part
**   move      who sends which elements to whom, so that the tensors of one plan become those of another
*/
#ifndef MOONGRID_TENSOR_H
#define MOONGRID_TENSOR_H

#include "moongrid.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ----------------------------------------------------------------- tensors */

enum { MGRID_AXES_MAX = 8 }; /* axes of a tensor, at most */

/* How an axis of n elements becomes pieces, one for each coordinate of a dim. Over several dims the pieces of the
** first are cut by the second, and so on. */
typedef enum mgrid_cutting {
  MGRID_CUT_EVEN = 0,   /* sizes differ by one at most, larger ones first */
  MGRID_CUT_CEIL = 1,   /* all but the last have n / pieces, rounded up; trailing ones may be empty */
  MGRID_CUT_CYCLIC = 2, /* blocks of `block` elements, dealt to the pieces in turn */
  MGRID_CUT_BOUNDS = 3  /* piece i is bounds[i] to bounds[i + 1] - 1 */
} mgrid_cutting;

typedef struct mgrid_tensor_axis {
  size_t             size;    /* sizeof(mgrid_tensor_axis); in an array that of the first is that of all */
  const char        *name;    /* as that of a dim */
  int64_t            length;  /* elements, 1 or more */
  size_t             ndims;   /* 0: not cut */
  const char *const *dims;    /* [ndims], outermost first */
  mgrid_cutting      cutting; /* without dims not looked at, and so the following */
  int64_t            block;   /* of MGRID_CUT_CYCLIC, 1 or more */
  int64_t            unit;    /* pieces are multiples of it, which divides the length (whole heads); 0 is 1 */
  size_t             nparts;  /* the axis is several arrays side by side, each cut by itself (fused QKV); 0: one */
  const int64_t     *parts;   /* [nparts], their lengths, which sum to `length` */
  size_t             nbounds; /* of MGRID_CUT_BOUNDS: pieces + 1 */
  const int64_t     *bounds;  /* [nbounds], from 0 to `length`, ascending; equal neighbours are an empty piece */
} mgrid_tensor_axis;
#define MGRID_TENSOR_AXIS_INIT \
  { sizeof(mgrid_tensor_axis), "", 0, 0, NULL, MGRID_CUT_EVEN, 0, 0, 0, NULL, 0, NULL }

typedef struct mgrid_tensor mgrid_tensor;

/* A tensor over a grid: each rank of the grid holds the part that its coordinates say, so that there are copies along
** dims that cut nothing; other ranks of the world hold nothing. `type` is "bf16", "f32", ... (a refusal lists all);
** naxes in [1, 8]; a dim cuts one axis at most. `on` (NULL: all ranks of the grid) says which of them hold it at all:
** the members of a family, which must be every combination of some coordinates of each dim. A dim that has only
** some of its coordinates there counts as that many. Immutable and counted. O(axes x dims), with `on` O(its members). */
MGRID_API mgrid_tensor *mgrid_tensor_new(const mgrid_grid *over, const char *type, size_t naxes,
                                         const mgrid_tensor_axis *axes, const mgrid_family *on, mgrid_error *err);
MGRID_API mgrid_tensor *mgrid_tensor_ref(const mgrid_tensor *t); /* another owner; never fails */
MGRID_API void          mgrid_tensor_free(mgrid_tensor *t);

MGRID_API size_t      mgrid_tensor_naxes(const mgrid_tensor *t);
MGRID_API const char *mgrid_tensor_axis_name(const mgrid_tensor *t, size_t axis); /* NULL: no such axis */
MGRID_API int64_t     mgrid_tensor_length(const mgrid_tensor *t, size_t axis);    /* -1: no such axis */
MGRID_API const char *mgrid_tensor_type(const mgrid_tensor *t);
MGRID_API int64_t     mgrid_tensor_bytes(const mgrid_tensor *t);   /* of the whole, held once */
MGRID_API int64_t     mgrid_tensor_copies(const mgrid_tensor *t);  /* ranks that hold the same part */
MGRID_API int64_t     mgrid_tensor_holders(const mgrid_tensor *t); /* ranks that hold it, some maybe an empty part */
/* Canonical text of the rule, as snprintf: "bf16 layer 32 by pp, hidden 4096 over pp 2 x dp 4 over ranks 0..7". */
MGRID_API size_t mgrid_tensor_describe(const mgrid_tensor *t, char *buf, size_t len);

/* Name a tensor in a topology: printed, and part of the digest. Names of families, grids and tensors are one name
** space. It needs no communicator. */
MGRID_API mgrid_status mgrid_topology_add_tensor(mgrid_topology *topology, const char *name, const mgrid_tensor *t,
                                                 mgrid_error *err);
MGRID_API size_t       mgrid_plan_ntensors(const mgrid_plan *p);
MGRID_API const char  *mgrid_plan_tensor_name(const mgrid_plan *p, size_t i);           /* NULL: no such tensor */
MGRID_API const mgrid_tensor *mgrid_plan_tensor(const mgrid_plan *p, const char *name); /* or NULL */

/* The part of a rank. Its runs on an axis are those of mgrid_tensor_runs. */
typedef struct mgrid_tensor_part {
  size_t  size;                  /* sizeof(mgrid_tensor_part) */
  bool    held;                  /* false: the rank holds nothing of this tensor; all else is 0 */
  size_t  naxes;                 /* of the tensor */
  int64_t shape[MGRID_AXES_MAX]; /* elements of the part on each axis; one may be 0 */
  int64_t elements, bytes;       /* of the part */
  int64_t copy;                  /* which of the copies this rank has, 0 to mgrid_tensor_copies - 1 */
} mgrid_tensor_part;
#define MGRID_TENSOR_PART_INIT \
  { sizeof(mgrid_tensor_part), false, 0, { 0 }, 0, 0, 0 }
/* What a rank holds of a plan's tensor. MGRID_UNKNOWN_NAME with the nearest name, MGRID_OUT_OF_RANGE for the rank.
** Local, O(dims), no allocation. */
MGRID_API mgrid_status mgrid_tensor_local(const mgrid_plan *p, const char *name, int64_t rank, mgrid_tensor_part *out,
                                          mgrid_error *err);
typedef struct mgrid_run { /* never changes */
  int64_t start, length;   /* indices of the tensor's axis */
} mgrid_run;
/* The runs of a rank's part on an axis, ascending, at most `cap` of them; returns how many there are, 0 where the
** rank holds none, or -1 after filling *err. Local, O(dims + runs), no allocation. */
MGRID_API int64_t mgrid_tensor_runs(const mgrid_plan *p, const char *name, int64_t rank, size_t axis, size_t cap,
                                    mgrid_run *runs, mgrid_error *err);

#ifdef __cplusplus
}
#endif
#endif
