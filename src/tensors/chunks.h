/* SPDX-License-Identifier: MIT
**
** chunks.h - cuts the messages of a move into chunks. Both sides cut a message into the same
** chunks, without communication. A large piece of a message (mgrid_move_piece) is cut by itself;
** smaller pieces are packed together. Bytes that are contiguous in a rank's part are sent and
** received in place. So are long rows, if the transport takes strided rows (MPI datatypes). All
** other bytes go through a buffer.
*/
#ifndef MGRID_CHUNKS_H
#define MGRID_CHUNKS_H

#include "comm/backend.h"
#include "tensors/between_plans.h"

enum {
  MGRID_LARGE = 64 << 10,   /* a piece of so many bytes is not packed together with others */
  MGRID_CHUNK_MAX = 1 << 30 /* most bytes of a chunk that needs no buffer: MPI counts in int */
};

typedef enum mgrid_handling {
  MGRID_PACK,   /* into the buffer */
  MGRID_UNPACK, /* out of the buffer */
  MGRID_MEASURE /* copy nothing, only find the chunk's size and place */
} mgrid_handling;

/* Walks the chunks of a message. */
typedef struct mgrid_chunks {
  mgrid_stream stream;
  mgrid_backend *backend; /* its transport copies if it can, otherwise the CPU does */
  char *const *part;      /* [tensors]: where this rank's parts start */
  int64_t left;           /* bytes left of the current piece */
  bool converts;          /* the piece's elements have another type on the other side */
  bool whole;             /* the piece is large, and one row on both sides */
  bool direct;            /* the transport moves the piece's rows from memory to memory */
  mgrid_rows rows;        /* of the current piece */
  mgrid_rows *boxes;      /* [MGRID_BOXES_MAX]: rows of the last chunk, by piece; not owned */
} mgrid_chunks;

typedef struct mgrid_chunk {
  void *data; /* in the part, or in the buffer */
  size_t bytes;
  size_t nboxes; /* how many of `boxes` the chunk has; 0: its bytes are contiguous */
} mgrid_chunk;

void mgrid_chunks_begin(mgrid_chunks *p, const mgrid_move *m, mgrid_way way, int64_t peer,
                        char *const *part, mgrid_rows *boxes, mgrid_backend *b);
void mgrid_chunks_end(mgrid_chunks *p);
/* Cut the next chunk. A chunk that goes through `buffer` has at most `most` bytes, the buffer's
** size. A chunk of 0 bytes is the end. */
mgrid_status mgrid_chunks_next(mgrid_chunks *p, int64_t most, char *buffer, mgrid_handling how,
                               mgrid_chunk *out, mgrid_error *err);

/* Copy what a rank needs and already holds. */
mgrid_status mgrid_chunks_stay(const mgrid_move *m, char *const *from, char *const *to,
                               mgrid_backend *b, mgrid_error *err);

/* Elements that change their type are f32 in the parts of one side, and bf16 in messages. */
enum { MGRID_CONVERT_SCALE = 2 }; /* bytes of an f32 for each byte of a bf16 */

/* Round a float to bf16: to the nearest, ties to even. A NaN stays a NaN. */
static inline uint16_t mgrid_bf16_of(uint32_t f32) {
  if ((f32 & 0x7fffffff) > 0x7f800000) return (uint16_t)(f32 >> 16 | 0x40);
  return (uint16_t)((f32 + 0x7fff + (f32 >> 16 & 1)) >> 16);
}
static inline uint32_t mgrid_f32_of(uint16_t bf16) { return (uint32_t)bf16 << 16; }

/* Do what mgrid_move_run does. *begun is true once messages may have been sent; then the transport
** may write to `to` even after a failure. The function is in move_run.c. */
mgrid_status mgrid_move_begin(const mgrid_move *m, mgrid_backend *b, const mgrid_buffer *from,
                              const mgrid_buffer *to, const mgrid_move_run_options *given,
                              bool *begun, mgrid_error *err);

#endif
