/* SPDX-License-Identifier: MIT
**
** parcels.h - a message of a move as parcels, which both sides cut alike without a word: a large piece by itself,
** smaller ones packed together. What lies side by side in the part of a rank is sent from there and received there;
** the rest goes through a buffer.
*/
#ifndef MGRID_PARCELS_H
#define MGRID_PARCELS_H

#include "plan/moves.h"

enum {
  MGRID_LARGE = 64 << 10,    /* bytes of a piece that is not packed together with others */
  MGRID_PARCEL_MAX = 1 << 30 /* bytes of one that needs no buffer on either side: MPI counts in int */
};

/* The rows of a box in the part of one rank: bytes that lie side by side. */
typedef struct mgrid_rows {
  char   *at;        /* the current row */
  int64_t row, done; /* bytes of a row, and of the current one those that are done */
  int     n;         /* loops around it, the slowest first */
  int64_t length[MGRID_AXES_MAX], stride[MGRID_AXES_MAX], index[MGRID_AXES_MAX]; /* [n]; strides in bytes */
} mgrid_rows;

/* Rows of this side of a piece; `part` is where the part begins. */
void mgrid_rows_of(mgrid_rows *r, const mgrid_move_piece *piece, bool from, int64_t width, char *part);

typedef struct mgrid_parcels { /* { 0 } may be ended */
  mgrid_stream stream;
  char *const *part;  /* [tensors], where this rank's parts begin */
  int64_t      left;  /* bytes of the current piece to come */
  bool         whole; /* it is one row on both sides */
  mgrid_rows   rows;
} mgrid_parcels;

typedef enum mgrid_handling {
  MGRID_PACK,   /* into the buffer */
  MGRID_UNPACK, /* out of it */
  MGRID_MEASURE /* pass over it: to know what will come */
} mgrid_handling;

typedef struct mgrid_parcel {
  void  *data; /* in the part, or the buffer */
  size_t bytes;
} mgrid_parcel;

void mgrid_parcels_begin(mgrid_parcels *p, const mgrid_move *m, mgrid_way way, int64_t peer, char *const *part);
void mgrid_parcels_end(mgrid_parcels *p);
/* The next one, of `most` bytes at most if it needs a buffer, which has as many; bytes 0: it was the last. */
mgrid_status mgrid_parcels_next(mgrid_parcels *p, int64_t most, char *buffer, mgrid_handling how, mgrid_parcel *out,
                                mgrid_error *err);

/* Copy what a rank needs and has. */
mgrid_status mgrid_parcels_stay(const mgrid_move *m, char *const *from, char *const *to, mgrid_error *err);

#endif
