/* SPDX-License-Identifier: MIT
**
** tensor.h - what this folder knows: how one axis is cut, tensors, which ranks hold which part. Integers only.
**
** A tensor's axes are cut independently, each over dims of its own. So a part is a tuple of pieces, one of each axis,
** its elements are every combination of theirs, and a rank's tuple is read off its coordinates. Dims that cut no axis
** number the copies of a part. Nothing here loops over ranks.
** A flat cuts the parts once more: those that a rank would have of several tensors lie one after the other, and each
** rank has a slice of that array. What it has of one tensor is a range of the part in C order: some boxes.
*/
#ifndef MGRID_TENSOR_H
#define MGRID_TENSOR_H

#include "families/grid.h"

/* --------------------------------------------------------------- slicing.c */

/* One axis and its rule. Pieces are numbered by the coordinates of its dims, the outermost slowest. */
typedef struct mgrid_slicing {
  char          name[MGRID_NAME_MAX + 1];
  int64_t       length;
  size_t        ndims;                /* 0: one piece, the whole */
  uint8_t       dim[MGRID_DIMS_MAX];  /* [ndims] of the grid, outermost first */
  int64_t       size[MGRID_DIMS_MAX]; /* [ndims], pieces that each makes */
  int64_t       pieces;               /* their product */
  mgrid_cutting cutting;
  int64_t       block, unit;
  size_t        nparts; /* 1 or more */
  int64_t      *starts; /* [nparts + 1], where the parts begin, and the length */
  int64_t      *bounds; /* [pieces + 1], or NULL */
  int32_t      *owners; /* [length / unit], the piece of each unit, or NULL; then also */
  int64_t      *first;  /* [pieces + 1], where the runs of a piece begin, */
  mgrid_run    *runs;   /* [first[pieces]], ascending for each piece, neighbours joined */
  bool          plain;  /* each piece is one run, and no empty one is between others */
} mgrid_slicing;

/* Check an axis whose name, length and dims are there, and finish it by the rest of `given`. Frees nothing. */
mgrid_status mgrid_slicing_init(mgrid_slicing *s, const mgrid_grid *g, const mgrid_tensor_axis *given,
                                mgrid_error *err);
void         mgrid_slicing_free(mgrid_slicing *s);
size_t       mgrid_slicing_held(const mgrid_slicing *s); /* bytes of its lists */
void         mgrid_slicing_text(const mgrid_slicing *s, const mgrid_grid *g, mgrid_text *t);
void         mgrid_slicing_dims(const mgrid_slicing *s, const mgrid_grid *g, mgrid_text *t); /* "dp 2 x tp 3 = 6" */

/* May a piece be larger than piece 0? */
static inline bool mgrid_slicing_listed(const mgrid_slicing *s) { return s->bounds || s->owners; }
/* Of a cyclic axis, in a part of n elements; the last one may be shorter. */
static inline int64_t mgrid_slicing_blocks(const mgrid_slicing *s, int64_t n) {
  return n / s->block + (n % s->block > 0);
}

/* ------------------------------------------------------------------ axis.c */

/* Walks the runs of a piece, ascending; neighbours are joined. */
typedef struct mgrid_walk {
  const mgrid_slicing *s;
  int64_t              piece;
  size_t               part; /* the next to look into */
  int64_t   block; /* of a cyclic axis: the next block of that part; of one by owners: the next run; -1: its first */
  mgrid_run next;  /* found already; length 0: none */
} mgrid_walk;
mgrid_walk mgrid_walk_begin(const mgrid_slicing *s, int64_t piece);
bool       mgrid_walk_next(mgrid_walk *w, mgrid_run *run);

int64_t mgrid_piece_size(const mgrid_slicing *s, int64_t piece); /* elements */
int64_t mgrid_piece_in_part(const mgrid_slicing *s, size_t part, int64_t piece);
/* Elements that a piece of each of two slicings of one length have in common. O(runs). */
int64_t mgrid_pieces_common(const mgrid_slicing *a, int64_t p, const mgrid_slicing *b, int64_t q);

/* The pieces of a slicing that have elements of a piece of another one, ascending. */
typedef struct mgrid_meets {
  int64_t  n;    /* how many */
  int64_t  low;  /* they are low, low + 1, ..., */
  int64_t *list; /* unless this is set: then they are list[0 .. n) */
  int64_t *room; /* what list points into; its owner frees it */
} mgrid_meets;
/* O(dims) for plain ones, else O(runs + pieces). False: no memory. m begins as { 0 }, and may be used again. */
bool                  mgrid_meets_find(mgrid_meets *m, const mgrid_slicing *a, int64_t p, const mgrid_slicing *b);
static inline int64_t mgrid_meets_at(const mgrid_meets *m, int64_t i) { return m->list ? m->list[i] : m->low + i; }
/* Where a piece is among them, or -1. */
int64_t mgrid_meets_index(const mgrid_meets *m, int64_t piece);

/* ---------------------------------------------------------------- tensor.c */

typedef struct mgrid_flat mgrid_flat;

struct mgrid_tensor {
  atomic_int    refs;
  mgrid_flat   *flat; /* or NULL. With one, all that is pointed to below is its member's */
  size_t        at;   /* which of its tensors this is */
  mgrid_grid   *grid;
  mgrid_family *on;                    /* as it was given; NULL: all ranks of the grid */
  const char   *type;                  /* a static name */
  int64_t       width;                 /* bytes of an element */
  int64_t       bytes;                 /* of the whole */
  int64_t       copies;                /* product of the counts of the free dims */
  int64_t       count[MGRID_DIMS_MAX]; /* coordinates of each dim that ranks with parts have; dims of the grid */
  int64_t      *some[MGRID_DIMS_MAX];  /* [count], which ones, ascending; NULL: all */
  size_t        nfree;
  uint8_t       free_dim[MGRID_DIMS_MAX]; /* [nfree]: those that cut no axis, slowest first */
  size_t        naxes;
  mgrid_slicing axis[MGRID_AXES_MAX]; /* [naxes], slowest first */
};

/* A rank's place: its piece of each axis, its slice of the flat, and which copy it has. */
typedef struct mgrid_seat {
  int64_t piece[MGRID_AXES_MAX];
  int64_t copy;
  int64_t slice; /* 0 without a flat */
} mgrid_seat;

/* mgrid_tensor_new for ranks at some coordinates: of each dim of the grid `n` in at[], ascending; 0: at all. */
typedef struct mgrid_some {
  size_t   n;
  int64_t *at;
} mgrid_some;
mgrid_tensor *mgrid_tensor_at_some(const mgrid_grid *over, const char *type, size_t naxes,
                                   const mgrid_tensor_axis *axes, const mgrid_some *some, mgrid_error *err);

bool    mgrid_tensor_seat(const mgrid_tensor *t, int64_t rank, mgrid_seat *at); /* false: it holds nothing */
int64_t mgrid_tensor_rank(const mgrid_tensor *t, const mgrid_seat *at);
/* Bytes of memory that it holds, without its grid and family. */
size_t mgrid_tensor_held(const mgrid_tensor *t);
/* Elements of the part there. */
int64_t mgrid_tensor_elements(const mgrid_tensor *t, const mgrid_seat *at);
/* Bytes of the largest part. */
int64_t mgrid_tensor_largest(const mgrid_tensor *t);
void    mgrid_tensor_part_of(const mgrid_tensor *t, int64_t rank, mgrid_tensor_part *out);
void    mgrid_tensor_text(const mgrid_tensor *t, mgrid_text *text);

/* ---------------------------------------------------------------- hollow.c */

/* Ranks whose pieces have no element of the tensor, as of 4 heads over 8 ranks; slices of a flat are not looked at. O(dims),
** with lists O(pieces). */
int64_t mgrid_tensor_hollow(const mgrid_tensor *t);
/* Does an axis leave ranks without anything of it, or of one of the arrays that lie side by side in it? Then append the
** tensor's name (NULL: not), how it is cut, which ranks, and the nearest size that leaves none. The same cost, and a look
** at 2^16 ranks if there are any. */
bool mgrid_axis_hollow(const mgrid_tensor *t, size_t axis, const char *name, mgrid_text *out);

/* ------------------------------------------------------------------ flat.c */

struct mgrid_flat {
  atomic_int     refs;
  size_t         n;
  mgrid_tensor **member;              /* [n], owned, none of them flat */
  size_t         ndims;               /* that cut it, */
  uint8_t        dim[MGRID_DIMS_MAX]; /* outermost first: no member is cut by them */
  int64_t        slices;              /* pieces that they make */
  int64_t        pad;                 /* of whose multiples slices are */
  bool           even;                /* a member has as many elements on each rank: then */
  int64_t        each, *start;        /* elements of a slice; [n], where the members begin */
  uint64_t       rule;                /* digest of its members and how it is cut */
};

void mgrid_flat_free(mgrid_flat *f); /* of one owner */
/* Append " flat 2 of 3 by dp pad 64 as HASH" of a flat tensor. _nth: the whole text of any of its members. */
void mgrid_flat_text(const mgrid_tensor *t, mgrid_text *text);
void mgrid_flat_nth_text(const mgrid_flat *f, size_t i, mgrid_text *text);
/* Where the tensor begins in the array of a rank, and the elements of a slice. O(1), and where parts are uneven O(members
** x dims). */
int64_t mgrid_flat_start(const mgrid_tensor *t, const mgrid_seat *at, int64_t *each);
/* Elements of the largest part. Where parts are uneven, and of more than 4096 sizes in all, no less than that. */
int64_t mgrid_flat_largest(const mgrid_tensor *t);
/* Which elements of its pieces' part, in C order, a seat has: all of them without a flat. */
mgrid_run mgrid_tensor_range(const mgrid_tensor *t, const mgrid_seat *at);

/* Elements of an array in C order, as boxes of it: 2 x naxes - 1 at most, ascending. */
typedef struct mgrid_blocks {
  size_t  naxes;
  int64_t shape[MGRID_AXES_MAX];
  int64_t at, end;
  int64_t low[MGRID_AXES_MAX], high[MGRID_AXES_MAX]; /* the last box: indices low to high - 1 */
} mgrid_blocks;
mgrid_blocks mgrid_blocks_begin(const mgrid_tensor *t, const mgrid_seat *at); /* what the seat has, */
mgrid_blocks mgrid_blocks_whole(const mgrid_tensor *t, const mgrid_seat *at); /* or all slices of its pieces */
bool         mgrid_blocks_next(mgrid_blocks *w);

#endif
