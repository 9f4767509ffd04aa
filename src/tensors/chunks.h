/* SPDX-License-Identifier: MIT
**
** chunks.h - cuts messages of a move into chunks, the same on both sides without communication. A
** large piece is cut by itself; smaller ones are packed together. Bytes that are contiguous in a
** rank's part are sent and received in place; so are long rows, if the transport takes them strided
** (MPI datatypes). All else goes through a buffer.
*/
#ifndef MGRID_CHUNKS_H
#define MGRID_CHUNKS_H

#include "comm/backend.h"
#include "tensors/between_plans.h"

enum {
  MGRID_LARGE = 64 << 10, /* a piece of so many bytes is not packed together with others */
  /* most bytes of a chunk that needs no buffer on either side, because MPI counts in int */
  MGRID_CHUNK_MAX = 1 << 30
};

/* Set r to the rows of a piece of tensor i, on one side. The rank's part starts at `part`. */
void mgrid_rows_of(mgrid_rows *r, const mgrid_pairs *p, const mgrid_move_piece *piece, bool from,
                   char *part);

typedef enum mgrid_handling {
  MGRID_PACK,   /* into the buffer */
  MGRID_UNPACK, /* out of it */
  MGRID_MEASURE /* skip these bytes, only to learn the next chunk's size and place */
} mgrid_handling;

/* Copy the next bytes of the rows, and advance. */
mgrid_status mgrid_rows_copy(mgrid_backend *b, mgrid_rows *r, char *buffer, int64_t bytes,
                             mgrid_handling how, mgrid_error *err);

typedef struct mgrid_chunks { /* may be { 0 } when it is ended */
  mgrid_stream stream;
  /* its transport makes the copies that it can, and the CPU makes the others */
  mgrid_backend *backend;
  char *const *part; /* [tensors]: where this rank's parts start */
  int64_t left;      /* bytes left of the current piece */
  bool converts;     /* one side has the elements in another type */
  bool whole;        /* the piece is one row on both sides */
  bool direct;       /* the transport moves the piece's rows from memory to memory */
  mgrid_rows rows;
  mgrid_rows *boxes; /* [MGRID_BOXES_MAX]: of the last chunk; not owned */
} mgrid_chunks;

typedef struct mgrid_chunk {
  void *data; /* where the bytes are: in the part, or in the buffer */
  size_t bytes;
  size_t nboxes; /* boxes of the part; 0: the bytes are contiguous */
} mgrid_chunk;

void mgrid_chunks_begin(mgrid_chunks *p, const mgrid_move *m, mgrid_way way, int64_t peer,
                        char *const *part, mgrid_rows *boxes, mgrid_backend *b);
void mgrid_chunks_end(mgrid_chunks *p);
/* Cut the next chunk. If it needs `buffer`, it has at most `most` bytes, which is the buffer's
** size. A chunk with 0 bytes: there are no more. */
mgrid_status mgrid_chunks_next(mgrid_chunks *p, int64_t most, char *buffer, mgrid_handling how,
                               mgrid_chunk *out, mgrid_error *err);

/* Copy what a rank needs and already holds. */
mgrid_status mgrid_chunks_stay(const mgrid_move *m, char *const *from, char *const *to,
                               mgrid_backend *b, mgrid_error *err);

/* For elements that change their type: they are f32 in the tensor, and bf16 where they are
** packed. */
enum { MGRID_CONVERT_SCALE = 2 }; /* bytes in the tensor for each packed byte */

/* Round a float to bf16: to the nearest, ties to even. A NaN stays a NaN. */
static inline uint16_t mgrid_bf16_of(uint32_t f32) {
  if ((f32 & 0x7fffffff) > 0x7f800000) return (uint16_t)(f32 >> 16 | 0x40);
  return (uint16_t)((f32 + 0x7fff + (f32 >> 16 & 1)) >> 16);
}
static inline uint32_t mgrid_f32_of(uint16_t bf16) { return (uint32_t)bf16 << 16; }

/* Convert strided rows of f32 to contiguous bf16, or back. */
void mgrid_convert(const mgrid_slab *s);

/* As mgrid_move_run. *begun: messages may have been sent, so after a failure something may still
** write to `to`. move_run.c */
mgrid_status mgrid_move_begin(const mgrid_move *m, mgrid_backend *b, const mgrid_buffer *from,
                              const mgrid_buffer *to, const mgrid_move_run_options *given,
                              bool *begun, mgrid_error *err);

#endif
