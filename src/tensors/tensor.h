/* SPDX-License-Identifier: MIT
**
** tensor.h - the structs of this folder: how one axis is cut, tensors, and which ranks hold which
** part. All are integers; nothing here loops over ranks.
*/

/* HOW A TENSOR IS CUT. Each axis is cut by its own dims, independently of the others. So a part is
** a tuple with one piece of each axis, and its elements are all combinations of the pieces'
** indices. A rank's tuple follows from its coordinates. Dims that cut no axis number the copies of
** a part. A dim may do both if it has more coordinates than there are pieces: coordinate / share is
** the piece, coordinate % share is the copy. A flat cuts the parts once more. The parts that a rank
** would have of several tensors are concatenated, and each rank has a slice of that array. What the
** rank has of one tensor is then a range of its part in C order, which is a few boxes.
*/

#ifndef MGRID_TENSOR_H
#define MGRID_TENSOR_H

#include "families/grid.h"

/* ----------------------------------------------------------------- slicing.c */

/* One axis and its rule. Pieces are numbered by the coordinates of its dims, the outermost
** slowest. */
typedef struct mgrid_slicing {
  char name[MGRID_NAME_MAX + 1];
  int64_t length;
  size_t ndims;                 /* 0: there is one piece, the whole axis */
  uint8_t dim[MGRID_DIMS_MAX];  /* [ndims]: dims of the grid, outermost first */
  int64_t size[MGRID_DIMS_MAX]; /* [ndims]: how many pieces each dim makes */
  int64_t pieces;               /* their product */
  int64_t copies;               /* how many neighbours along its dims get the same piece */
  mgrid_cutting cutting;
  int64_t block, unit; /* elements of a block of a cyclic axis; elements that no cut divides */
  size_t nparts;       /* 1 or more */
  int64_t *starts;     /* [nparts + 1]: where the parts, which are cut alone, start; the length */
  int64_t *bounds;     /* [pieces + 1], or NULL */
  /* [length / unit]: the piece of each unit, or NULL. With owners the next two are set, too */
  int32_t *owners;
  int64_t *first;  /* [pieces + 1]: where the runs of a piece start in `runs` */
  mgrid_run *runs; /* [first[pieces]]: ascending for each piece, neighbours are joined */
  bool plain;      /* each piece is one run, and only the last ones may be empty */
} mgrid_slicing;

/* Check an axis whose name, length and dims are set, and complete it from `given`. This frees
** nothing. With copies, sizes and pieces become smaller. */
mgrid_status mgrid_slicing_init(mgrid_slicing *s, const mgrid_grid *g,
                                const mgrid_tensor_axis *given, mgrid_error *err);
void mgrid_slicing_free(mgrid_slicing *s);
size_t mgrid_slicing_held(const mgrid_slicing *s); /* bytes of its lists */
void mgrid_slicing_text(const mgrid_slicing *s, const mgrid_grid *g, mgrid_text *t);
void mgrid_slicing_json(const mgrid_slicing *s, const mgrid_grid *g, mgrid_text *t);
/* append "dp 2 x tp 3 = 6" */
void mgrid_slicing_dims(const mgrid_slicing *s, const mgrid_grid *g, mgrid_text *t);

/* Return whether a piece may be larger than piece 0. */
static inline bool mgrid_slicing_listed(const mgrid_slicing *s) { return s->bounds || s->owners; }
/* Return how many blocks a cyclic axis has in a part of n elements. The last block may be
** shorter. */
static inline int64_t mgrid_slicing_blocks(const mgrid_slicing *s, int64_t n) {
  return n / s->block + (n % s->block > 0);
}

/* Return how many units, or blocks, of a part are dealt out to the pieces. */
static inline int64_t mgrid_slicing_units(const mgrid_slicing *s, size_t part) {
  int64_t n = s->starts[part + 1] - s->starts[part];
  return s->cutting == MGRID_CUT_CYCLIC ? mgrid_slicing_blocks(s, n) : n / s->unit;
}

/* --------------------------------------------------------- slicing.c: pieces */

/* Walks the runs of a piece, ascending. Neighbours are joined. */
typedef struct mgrid_walk {
  const mgrid_slicing *s;
  int64_t piece;
  size_t part; /* the next part to walk */
  /* for a cyclic axis: the next block of that part. With owners: the next run; -1: the first */
  int64_t block;
  mgrid_run next; /* found in advance; length 0: there is none */
} mgrid_walk;
mgrid_walk mgrid_walk_begin(const mgrid_slicing *s, int64_t piece);
bool mgrid_walk_next(mgrid_walk *w, mgrid_run *run);

int64_t mgrid_piece_size(const mgrid_slicing *s, int64_t piece); /* elements */
int64_t mgrid_piece_in_part(const mgrid_slicing *s, size_t part, int64_t piece);
/* Return how many elements a piece of `a` and a piece of `b` have in common. Both axes have one
** length. O(runs). */
int64_t mgrid_pieces_common(const mgrid_slicing *a, int64_t p, const mgrid_slicing *b, int64_t q);

/* The pieces of one slicing that share elements with a piece of another, ascending. */
typedef struct mgrid_overlaps {
  int64_t n;     /* how many they are */
  int64_t low;   /* they are low, low + 1, ... */
  int64_t *list; /* or, if this is set, list[0 .. n) */
  int64_t *room; /* memory for list; the owner frees it */
} mgrid_overlaps;
/* Find these pieces. O(dims) for plain slicings, else O(runs + pieces). False: no memory. m is { 0
** } at first, and may be used again. */
bool mgrid_overlaps_find(mgrid_overlaps *m, const mgrid_slicing *a, int64_t p,
                         const mgrid_slicing *b);
static inline int64_t mgrid_overlaps_at(const mgrid_overlaps *m, int64_t i) {
  return m->list ? m->list[i] : m->low + i;
}
/* Return the index of a piece among these pieces, or -1. */
int64_t mgrid_overlaps_index(const mgrid_overlaps *m, int64_t piece);

/* ---------------------------------------------------------------- tensor.c */

typedef struct mgrid_flat mgrid_flat;

struct mgrid_tensor {
  atomic_int refs;
  mgrid_flat *flat; /* or NULL. With a flat, all pointers below belong to its member */
  size_t at;        /* index of this tensor in the flat */
  mgrid_grid *grid;
  mgrid_family *on; /* as given; NULL: all ranks of the grid */
  const char *type; /* a constant */
  int64_t width;    /* bytes of an element */
  int64_t bytes;    /* of the whole */
  int64_t copies;   /* product of the counts of the free dims */
  /* [dim of the grid]: how many coordinates have ranks that hold parts */
  int64_t count[MGRID_DIMS_MAX];
  int64_t *some[MGRID_DIMS_MAX]; /* [count]: which coordinates these are, ascending; NULL: all */
  /* how many neighbours along a dim have one part: 1, or all, */
  int64_t share[MGRID_DIMS_MAX];
  size_t nfree; /* or some, where an axis has copies */
  /* [nfree]: the dims that share parts or cut no axis, slowest first */
  uint8_t free_dim[MGRID_DIMS_MAX];
  size_t naxes;
  mgrid_slicing axis[MGRID_AXES_MAX]; /* [naxes], slowest first */
};

/* Coordinates of a rank: its piece of each axis, its slice of the flat, and its copy. */
typedef struct mgrid_coords {
  int64_t piece[MGRID_AXES_MAX];
  int64_t copy;
  int64_t slice; /* 0 without a flat */
} mgrid_coords;

/* The n coordinates of a dim that hold parts, ascending in at[]; n 0: all. There is one struct for
** each dim of the grid. */
typedef struct mgrid_some {
  size_t n;
  int64_t *at;
} mgrid_some;
mgrid_tensor *mgrid_tensor_at_some(const mgrid_grid *over, const char *type, size_t naxes,
                                   const mgrid_tensor_axis *axes, const mgrid_some *some,
                                   mgrid_error *err);

/* false: the rank holds nothing */
bool mgrid_tensor_coords(const mgrid_tensor *t, int64_t rank, mgrid_coords *at);
int64_t mgrid_tensor_rank(const mgrid_tensor *t, const mgrid_coords *at);
/* Return how many bytes of memory the tensor holds, without its grid and family. */
size_t mgrid_tensor_held(const mgrid_tensor *t);
/* Return how many elements the part at these coordinates has. */
int64_t mgrid_tensor_elements(const mgrid_tensor *t, const mgrid_coords *at);
/* Return the bytes of the largest part. */
int64_t mgrid_tensor_largest(const mgrid_tensor *t);
void mgrid_tensor_part_of(const mgrid_tensor *t, int64_t rank, mgrid_tensor_part *out);
void mgrid_tensor_text(const mgrid_tensor *t, mgrid_text *text);

/* ------------------------------------------------ tensors_item.c: empty parts */

/* Return how many ranks have pieces without any element of the tensor, as with 4 heads over 8
** ranks. Slices of flats do not count. O(dims), for lists O(pieces). */
int64_t mgrid_tensor_hollow(const mgrid_tensor *t);
/* Return whether an axis leaves ranks without any element of it, or of one of the arrays that are
** concatenated in it. If so, append the tensor's name (NULL: do not), how the axis is cut, which
** ranks these are, and the nearest size that leaves none. The cost is as above; if there are such
** ranks, 2^16 ranks are looked at, too. */
bool mgrid_axis_hollow(const mgrid_tensor *t, size_t axis, const char *name, mgrid_text *out);

/* ------------------------------------------------------------------ flat.c */

struct mgrid_flat {
  atomic_int refs;
  size_t n;
  mgrid_tensor **member;       /* [n], owned, none of them flat */
  size_t ndims;                /* the dims that cut it, */
  uint8_t dim[MGRID_DIMS_MAX]; /* outermost first. They cut no member */
  int64_t slices;              /* how many pieces these dims make */
  int64_t pad;                 /* slices are multiples of it */
  /* each member has as many elements on every rank; then the next fields are set */
  bool even;
  int64_t each, *start; /* elements of a slice; [n]: where the members start */
  uint64_t rule;        /* digest of its members and of how it is cut */
};

void mgrid_flat_free(mgrid_flat *f); /* remove an owner */
/* For a flat tensor, append " flat 2 of 3 by dp pad 64 as HASH". */
void mgrid_flat_text(const mgrid_tensor *t, mgrid_text *text);
/* Append the fields of a tensor, without its flat, as JSON. There is no comma before the first. */
void mgrid_tensor_put(const mgrid_tensor *x, mgrid_text *t);
/* Append the flat's rule as JSON, as it is in the rule of its first tensor. */
void mgrid_flat_json(const mgrid_flat *f, mgrid_text *t);
/* Make member i, cut as the flat cuts it. */
mgrid_tensor *mgrid_flat_member(mgrid_flat *f, size_t i, mgrid_error *err);
/* Return where the tensor starts in a rank's array. *each: elements of a slice. O(1); O(members x
** dims) if parts are uneven. */
int64_t mgrid_flat_start(const mgrid_tensor *t, const mgrid_coords *at, int64_t *each);
/* Return how many elements the largest part has. For uneven parts of more than 4096 sizes, this is
** an upper bound. */
int64_t mgrid_flat_largest(const mgrid_tensor *t);
/* Return which elements, in C order, the coordinates have of the part of their pieces. Without a
** flat: all. */
mgrid_run mgrid_tensor_range(const mgrid_tensor *t, const mgrid_coords *at);

/* Elements of an array in C order, as boxes of the array: at most 2 x naxes - 1, ascending
** (boxes.c). */
typedef struct mgrid_blocks {
  size_t naxes;
  int64_t shape[MGRID_AXES_MAX];
  int64_t at, end;
  /* the current box has the indices low to high - 1 */
  int64_t low[MGRID_AXES_MAX], high[MGRID_AXES_MAX];
} mgrid_blocks;
/* begin with the elements at the coordinates */
mgrid_blocks mgrid_blocks_begin(const mgrid_tensor *t, const mgrid_coords *at);
/* begin with the elements of all slices of their pieces */
mgrid_blocks mgrid_blocks_whole(const mgrid_tensor *t, const mgrid_coords *at);
bool mgrid_blocks_next(mgrid_blocks *w);

#endif
