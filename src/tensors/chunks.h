/* SPDX-License-Identifier: MIT
**
** chunks.h - messages of a move cut into chunks, the same on both sides without communication: a
** large piece by itself, smaller ones packed together. What is contiguous in a rank's part is sent
** and received in place, and so are long rows if the transport takes them strided (MPI datatypes).
** The rest goes through a buffer.
*/
#ifndef MGRID_CHUNKS_H
#define MGRID_CHUNKS_H

#include "comm/backend.h"
#include "tensors/between_plans.h"

enum {
  MGRID_LARGE = 64 << 10, /* bytes of a piece that is not packed together with others */
  /* bytes of a chunk that needs no buffer on either side: MPI counts in int */
  MGRID_CHUNK_MAX = 1 << 30
};

/* Set r to the rows of a piece of the ith tensor on one side, in the rank's part, which starts at
** `part`. */
void mgrid_rows_of(mgrid_rows *r, const mgrid_pairs *p, const mgrid_move_piece *piece, bool from,
                   char *part);

typedef enum mgrid_handling {
  MGRID_PACK,   /* into the buffer */
  MGRID_UNPACK, /* out of it */
  MGRID_MEASURE /* pass over it, to learn the next chunk's bytes and place */
} mgrid_handling;

/* Copy the next bytes of the rows, and advance. */
mgrid_status mgrid_rows_copy(mgrid_backend *b, mgrid_rows *r, char *buffer, int64_t bytes,
                             mgrid_handling how, mgrid_error *err);

typedef struct mgrid_chunks { /* { 0 } may be ended */
  mgrid_stream stream;
  mgrid_backend *backend; /* its transport copies; what it cannot, the CPU does */
  char *const *part;      /* [tensors], where this rank's parts start */
  int64_t left;           /* bytes left of the current piece */
  bool converts;          /* one side holds the elements in another type */
  bool whole;             /* the piece is one row on both sides */
  bool direct;            /* the transport moves its rows from memory to memory */
  mgrid_rows rows;
  mgrid_rows *boxes; /* [MGRID_BOXES_MAX], of the last chunk; not owned */
} mgrid_chunks;

typedef struct mgrid_chunk {
  void *data; /* in the part, or the buffer */
  size_t bytes;
  size_t nboxes; /* of the part; 0: the bytes are contiguous */
} mgrid_chunk;

void mgrid_chunks_begin(mgrid_chunks *p, const mgrid_move *m, mgrid_way way, int64_t peer,
                        char *const *part, mgrid_rows *boxes, mgrid_backend *b);
void mgrid_chunks_end(mgrid_chunks *p);
/* Cut the next chunk, of `most` bytes at most if it needs `buffer`, which has that size. Bytes 0:
** there are no more. */
mgrid_status mgrid_chunks_next(mgrid_chunks *p, int64_t most, char *buffer, mgrid_handling how,
                               mgrid_chunk *out, mgrid_error *err);

/* Copy what a rank needs and already holds. */
mgrid_status mgrid_chunks_stay(const mgrid_move *m, char *const *from, char *const *to,
                               mgrid_backend *b, mgrid_error *err);

/* Elements of moves that change their type: f32 in the tensor, bf16 where they are packed. */
enum { MGRID_CONVERT_SCALE = 2 }; /* bytes in the tensor for each packed byte */

/* Return the upper half of a float, rounded to nearest, ties to even. A NaN stays a NaN. */
static inline uint16_t mgrid_bf16_of(uint32_t f32) {
  if ((f32 & 0x7fffffff) > 0x7f800000) return (uint16_t)(f32 >> 16 | 0x40);
  return (uint16_t)((f32 + 0x7fff + (f32 >> 16 & 1)) >> 16);
}
static inline uint32_t mgrid_f32_of(uint16_t bf16) { return (uint32_t)bf16 << 16; }

/* Convert strided rows of f32 to contiguous bf16, or back. */
void mgrid_convert(const mgrid_slab *s);

/* As mgrid_move_run. *begun: messages may have been sent, so that after a failure something may
** still write to `to`. move_run.c */
mgrid_status mgrid_move_begin(const mgrid_move *m, mgrid_backend *b, const mgrid_buffer *from,
                              const mgrid_buffer *to, const mgrid_move_run_options *given,
                              bool *begun, mgrid_error *err);

#endif
