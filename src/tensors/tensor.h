/* SPDX-License-Identifier: MIT
**
** tensor.h - how an axis is cut into pieces, which rank holds which part of a tensor, and flats:
** tensors that are concatenated and cut as one array.
*/

/* HOW A TENSOR IS CUT. Each axis is cut into pieces by its own dims, independently of the other
** axes. A part of the tensor has one piece of each axis; the numbers of these pieces are the part's
** tuple. The elements of the part are all combinations of the indices in its pieces. A rank's tuple
** follows from its coordinates. Dims that cut no axis number the copies of a part. If a dim has
** more coordinates than pieces, `share` neighbouring coordinates have the same piece: coordinate /
** share is the piece, coordinate % share is the copy.
**
** A flat concatenates the parts that a rank would have of several tensors, and cuts this array into
** slices. A rank with such a slice has a range of each part, in C order. Such a range is a few
** boxes.
*/

#ifndef MGRID_TENSOR_H
#define MGRID_TENSOR_H

#include "families/grid.h"

static inline int64_t mgrid_min(int64_t a, int64_t b) { return a < b ? a : b; }
static inline int64_t mgrid_max(int64_t a, int64_t b) { return a > b ? a : b; }

/* ----------------------------------------------------------------- slicing.c */

/* How an axis is cut. Pieces are numbered by the coordinates of the dims that cut it, the outermost
** slowest. An axis may consist of several arrays side by side, as q, k and v of a fused qkv; in
** slicing.c, and for its functions below, a `part` is one of these arrays. */
typedef struct mgrid_slicing {
  char name[MGRID_NAME_MAX + 1];
  int64_t length;
  size_t ndims;                 /* 0: there is one piece, the whole axis */
  uint8_t dim[MGRID_DIMS_MAX];  /* [ndims]: dims of the grid, outermost first */
  int64_t size[MGRID_DIMS_MAX]; /* [ndims]: how many pieces each dim makes */
  int64_t pieces;               /* the product of the sizes */
  int64_t copies;               /* how many neighbours along the dims have the same piece */
  mgrid_cutting cutting;
  int64_t block;   /* elements of a block of a cyclic axis */
  int64_t unit;    /* so many consecutive elements stay in one piece */
  size_t nparts;   /* how many arrays are side by side; each is cut by itself; 1 or more */
  int64_t *starts; /* [nparts + 1]: where each of them starts; then the length of the axis */
  int64_t *bounds; /* [pieces + 1], or NULL */
  int32_t *owners; /* [length / unit]: the piece of each unit; or NULL */
  int64_t *first;  /* with owners, [pieces + 1]: where the runs of each piece start in `runs` */
  mgrid_run *runs; /* with owners: the runs of piece 0, ascending, then those of piece 1, ... */
  bool plain;      /* each piece is one run, and only the last ones may be empty */
} mgrid_slicing;

/* Check an axis whose name, length, dims and sizes are set, and complete it from `given`. If pieces
** have copies, divide the sizes by the number of copies. After an error the caller frees the
** axis. */
mgrid_status mgrid_slicing_init(mgrid_slicing *s, const mgrid_grid *g,
                                const mgrid_tensor_axis *given, mgrid_error *err);
void mgrid_slicing_free(mgrid_slicing *s);
size_t mgrid_slicing_held(const mgrid_slicing *s); /* bytes of its lists */
void mgrid_slicing_text(const mgrid_slicing *s, const mgrid_grid *g, mgrid_text *t);
void mgrid_slicing_json(const mgrid_slicing *s, const mgrid_grid *g, mgrid_text *t);
/* Append the dims that cut the axis: "tp 3", or "dp 2 x tp 3 = 6". */
void mgrid_slicing_dims(const mgrid_slicing *s, const mgrid_grid *g, mgrid_text *t);

/* Return whether the pieces are listed (bounds, owners). Otherwise no piece is larger than piece
** 0. */
static inline bool mgrid_slicing_listed(const mgrid_slicing *s) { return s->bounds || s->owners; }
/* Return how many blocks n elements of a cyclic axis have. The last block may be shorter. */
static inline int64_t mgrid_slicing_blocks(const mgrid_slicing *s, int64_t n) {
  return n / s->block + (n % s->block > 0);
}

/* Return how many units, or blocks of a cyclic axis, a part is divided into. */
static inline int64_t mgrid_slicing_units(const mgrid_slicing *s, size_t part) {
  int64_t n = s->starts[part + 1] - s->starts[part];
  return s->cutting == MGRID_CUT_CYCLIC ? mgrid_slicing_blocks(s, n) : n / s->unit;
}

/* --------------------------------------------------------- slicing.c: pieces */

/* Walks the runs of a piece, ascending. Runs that touch are joined. */
typedef struct mgrid_walk {
  const mgrid_slicing *s;
  int64_t piece;
  size_t part; /* the next part to walk */
  /* of a cyclic axis the next block of `part`; with owners the next run; -1: the piece's first */
  int64_t block;
  mgrid_run next; /* the run to return next; length 0: none */
} mgrid_walk;
mgrid_walk mgrid_walk_begin(const mgrid_slicing *s, int64_t piece);
bool mgrid_walk_next(mgrid_walk *w, mgrid_run *run);

int64_t mgrid_piece_size(const mgrid_slicing *s, int64_t piece); /* elements */
int64_t mgrid_piece_in_part(const mgrid_slicing *s, size_t part, int64_t piece);
/* Return how many elements a piece of `a` and a piece of `b` have in common. Both axes have one
** length. O(runs). */
int64_t mgrid_pieces_common(const mgrid_slicing *a, int64_t p, const mgrid_slicing *b, int64_t q);

/* The n pieces of a slicing that share elements with a piece of another slicing, ascending. */
typedef struct mgrid_overlaps {
  int64_t n;
  int64_t low;   /* the pieces are low, low + 1, ..., unless they are listed */
  int64_t *list; /* [n], or NULL */
  int64_t *room; /* memory for the list; the owner of the struct frees it */
} mgrid_overlaps;
/* Find the pieces of `b` that share elements with piece p of `a`. O(dims) for plain slicings, else
** O(runs + pieces), and with owners O(units). False: no memory. *m is zero at the first call, and
** may be used again. */
bool mgrid_overlaps_find(mgrid_overlaps *m, const mgrid_slicing *a, int64_t p,
                         const mgrid_slicing *b);
static inline int64_t mgrid_overlaps_at(const mgrid_overlaps *m, int64_t i) {
  return m->list ? m->list[i] : m->low + i;
}
/* Return the index of a piece in m, or -1. */
int64_t mgrid_overlaps_index(const mgrid_overlaps *m, int64_t piece);

/* ---------------------------------------------------------------- tensor.c */

typedef struct mgrid_flat mgrid_flat;

struct mgrid_tensor {
  atomic_int refs;
  mgrid_flat *flat; /* or NULL. With a flat, its member owns what the pointers below point to */
  size_t at;        /* index of this tensor in the flat */
  mgrid_grid *grid;
  mgrid_family *on; /* the ranks that hold parts; NULL: all ranks of the grid */
  const char *type; /* a constant */
  int64_t width;    /* bytes of an element */
  int64_t bytes;    /* of the whole tensor */
  int64_t copies;   /* ranks that hold the same part: the product of the shares */
  /* for each dim of the grid: how many of its coordinates hold parts */
  int64_t count[MGRID_DIMS_MAX];
  int64_t *some[MGRID_DIMS_MAX]; /* [count]: these coordinates, ascending; NULL: all */
  /* for each dim: how many neighbouring coordinates hold the same part. 1: each coordinate has its
  ** own piece; all of them: the dim cuts no axis; a number between: the dim's axis has copies */
  int64_t share[MGRID_DIMS_MAX];
  size_t nfree;
  uint8_t free_dim[MGRID_DIMS_MAX]; /* [nfree]: dims that number copies, slowest first */
  size_t naxes;
  mgrid_slicing axis[MGRID_AXES_MAX]; /* [naxes], slowest first */
};

/* What a rank has: its piece of each axis, its slice of the flat, and which copy of these. */
typedef struct mgrid_coords {
  int64_t piece[MGRID_AXES_MAX];
  int64_t copy;
  int64_t slice; /* 0 without a flat */
} mgrid_coords;

/* The coordinates of a dim that hold parts. */
typedef struct mgrid_some {
  size_t n;    /* 0: all of the dim */
  int64_t *at; /* [n], ascending */
} mgrid_some;
/* Make a tensor on some coordinates of each dim. some: [dims of the grid]. */
mgrid_tensor *mgrid_tensor_at_some(const mgrid_grid *over, const char *type, size_t naxes,
                                   const mgrid_tensor_axis *axes, const mgrid_some *some,
                                   mgrid_error *err);

/* Find the part that a rank has. Return false if the rank has none. */
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

/* Return how many ranks have an empty part of the tensor, as with 4 heads over 8 ranks. Slices of
** flats do not count. O(dims), for lists O(pieces). */
int64_t mgrid_tensor_hollow(const mgrid_tensor *t);
/* Return whether ranks have an empty piece of an axis, or of one of the arrays side by side on it.
** If so, append `name` (the tensor's, or NULL), how the axis is cut, these ranks, and if it is
** known the nearest size with which no rank has an empty piece. The cost is that of
** mgrid_tensor_hollow, and to name the ranks that of checking the first 2^16 ranks. */
bool mgrid_axis_hollow(const mgrid_tensor *t, size_t axis, const char *name, mgrid_text *out);

/* ------------------------------------------------------------------ flat.c */

struct mgrid_flat {
  atomic_int refs;
  size_t n;
  mgrid_tensor **member; /* [n], owned, none of them flat */
  size_t ndims;
  uint8_t dim[MGRID_DIMS_MAX]; /* [ndims]: the dims that cut the flat, outermost first */
  int64_t slices;              /* how many slices these dims make */
  int64_t pad;                 /* a slice has a multiple of so many elements */
  bool even;                   /* all parts of a member have the same size */
  int64_t each, *start; /* if even: elements of a slice; [n]: where each member's part starts */
  uint64_t rule;        /* digest of the members and of how the flat is cut */
};

void mgrid_flat_free(mgrid_flat *f); /* remove an owner */
/* For a flat tensor, append " flat 2 of 3 by dp pad 64 as HASH". */
void mgrid_flat_text(const mgrid_tensor *t, mgrid_text *text);
/* Append the JSON fields of a tensor without its flat: "type":"bf16",... */
void mgrid_tensor_put(const mgrid_tensor *x, mgrid_text *t);
/* Append the flat as the JSON object that a saved plan has. */
void mgrid_flat_json(const mgrid_flat *f, mgrid_text *t);
/* Make the flat tensor of member i. */
mgrid_tensor *mgrid_flat_member(mgrid_flat *f, size_t i, mgrid_error *err);
/* Return where the tensor's part starts in the concatenated parts of a rank. Set *each to the
** elements of a slice. O(1); O(members x dims) if parts are uneven. */
int64_t mgrid_flat_start(const mgrid_tensor *t, const mgrid_coords *at, int64_t *each);
/* Return how many elements the largest range of a part has. If uneven parts have more than 4096
** tuples, return an upper bound. */
int64_t mgrid_flat_largest(const mgrid_tensor *t);
/* Return the range of elements, in C order, that a rank has of its part. Without a flat: all. */
mgrid_run mgrid_tensor_range(const mgrid_tensor *t, const mgrid_coords *at);

/* ----------------------------------------------------------------- boxes.c */

/* Walks a range of an array, in C order, box by box: at most 2 x naxes - 1 boxes. */
typedef struct mgrid_blocks {
  size_t naxes;
  int64_t shape[MGRID_AXES_MAX]; /* of the array */
  int64_t at, end;               /* the rest of the range */
  /* the current box has the indices low to high - 1 */
  int64_t low[MGRID_AXES_MAX], high[MGRID_AXES_MAX];
} mgrid_blocks;
/* Walk the range of a part that a rank has. */
mgrid_blocks mgrid_blocks_begin(const mgrid_tensor *t, const mgrid_coords *at);
/* Walk the whole part, with the elements of all slices. */
mgrid_blocks mgrid_blocks_whole(const mgrid_tensor *t, const mgrid_coords *at);

#endif
