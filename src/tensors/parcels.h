/* SPDX-License-Identifier: MIT
**
** parcels.h - a message of a move as parcels, which both sides cut alike without a word: a large piece by itself,
** smaller ones packed together. What lies side by side in the part of a rank is sent from there and received there, and
** so are long rows where the transport takes them as they lie (datatypes of MPI); the rest goes through a buffer.
*/
#ifndef MGRID_PARCELS_H
#define MGRID_PARCELS_H

#include "comm/backend.h"
#include "tensors/between_plans.h"

enum {
  MGRID_LARGE = 64 << 10,    /* bytes of a piece that is not packed together with others */
  MGRID_ROW_LEAST = 512,     /* bytes of rows that a transport is given as they lie */
  MGRID_PARCEL_MAX = 1 << 30 /* bytes of one that needs no buffer on either side: MPI counts in int */
};

/* Rows of this side of a piece of the ith tensor; `part` is where the part begins. */
void mgrid_rows_of(mgrid_rows *r, const mgrid_pairs *p, const mgrid_move_piece *piece, bool from, char *part);

typedef enum mgrid_handling {
  MGRID_PACK,   /* into the buffer */
  MGRID_UNPACK, /* out of it */
  MGRID_MEASURE /* pass over it: to know what will come */
} mgrid_handling;

/* Copy the next bytes of rows, and go on behind them. */
mgrid_status mgrid_rows_copy(mgrid_backend *b, mgrid_rows *r, char *buffer, int64_t bytes, mgrid_handling how,
                             mgrid_error *err);
/* Go on by bytes of the current row, which has no fewer left. */
void mgrid_rows_pass(mgrid_rows *r, int64_t bytes);

typedef struct mgrid_parcels { /* { 0 } may be ended */
  mgrid_stream   stream;
  mgrid_backend *backend;  /* whose transport copies; what it cannot do the CPU does */
  char *const   *part;     /* [tensors], where this rank's parts begin */
  int64_t        left;     /* bytes of the current piece to come */
  bool           converts; /* one side has the elements in another type */
  bool           whole;    /* the piece is one row on both sides */
  bool           direct;   /* it is one parcel, whose rows go from memory to memory, as the transport takes them */
  mgrid_rows     rows;
} mgrid_parcels;

typedef struct mgrid_parcel {
  void      *data; /* in the part, or the buffer */
  size_t     bytes;
  bool       in_rows;
  mgrid_rows rows; /* of the part, where it goes in rows */
} mgrid_parcel;

void mgrid_parcels_begin(mgrid_parcels *p, const mgrid_move *m, mgrid_way way, int64_t peer, char *const *part,
                         mgrid_backend *b);
void mgrid_parcels_end(mgrid_parcels *p);
/* The next one, of `most` bytes at most if it needs a buffer, which has as many; bytes 0: it was the last. */
mgrid_status mgrid_parcels_next(mgrid_parcels *p, int64_t most, char *buffer, mgrid_handling how, mgrid_parcel *out,
                                mgrid_error *err);

/* Copy what a rank needs and has. */
mgrid_status mgrid_parcels_stay(const mgrid_move *m, char *const *from, char *const *to, mgrid_backend *b,
                                mgrid_error *err);

#endif
