/* SPDX-License-Identifier: MIT
**
** readable_peers.h - the ranks of this host that a rank can read, and the board by which it lets them: the inside of peer_memory.h.
*/
#ifndef MGRID_BOARD_H
#define MGRID_BOARD_H

#include "tensors/peer_memory.h"

#include <sys/uio.h>

/* How a file begins. Behind it are the addresses of the parts, in the memory of its rank, then what is packed. */
typedef struct mgrid_board {
  uint64_t cookie, number; /* of this one; of the meeting of the move, 0: nothing may be read */
  int64_t  size, parts;    /* bytes of the file; where the addresses begin */
  int64_t  packed[];       /* [group], by rank: where what is packed for it begins; 0: it gets messages */
} mgrid_board;
enum { MGRID_NOWHERE = 1 }; /* of mgrid_board.packed: nothing is */

/* A rank that is near, whose board is mapped here. */
typedef struct mgrid_mapped {
  int64_t      rank;
  uint64_t     cookie;
  int          pid, file;
  mgrid_board *board; /* so many bytes of it */
  int64_t      size;
} mgrid_mapped;

typedef struct mgrid_card mgrid_card; /* what ranks tell each other of themselves */

struct mgrid_reading {
  mgrid_attached base;
  uint64_t       cookie;
  int            file;
  mgrid_board   *board; /* of this rank; NULL: it has none */
  bool           found, on;
  size_t         n;
  mgrid_mapped  *near;  /* [n], the group without this rank, by rank */
  size_t         place; /* of this rank in the group */
  mgrid_card    *cards; /* [world], until they are found */
};

/* Bytes of a board. */
int64_t mgrid_board_size(const mgrid_reading *r);
/* Make the own file so long, with all its memory; the board may move. False: errno says why. */
bool mgrid_board_grow(mgrid_reading *r, int64_t size);
/* That rank; NULL: it is not near. And its place in the group, in which this one is, too. */
mgrid_mapped *mgrid_mapped_of(const mgrid_reading *r, int64_t rank);
size_t        mgrid_mapped_place(const mgrid_reading *r, const mgrid_mapped *n);
/* Map all of another's file, which may have grown. Returns errno. */
int mgrid_mapped_renew(mgrid_mapped *n, int64_t size);
/* Read spans of another process into as many bytes here, in their order. Returns errno. */
int mgrid_read_spans(int pid, size_t nto, struct iovec *to, size_t nfrom, struct iovec *from);
int mgrid_read_bytes(int pid, void *to, const void *from, size_t bytes);

#endif
