/* SPDX-License-Identifier: MIT
**
** readable_peers.h - the ranks of this host that a rank can read, and the board that lets them read it: internals of
** peer_memory.h.
*/
#ifndef MGRID_READABLE_PEERS_H
#define MGRID_READABLE_PEERS_H

#include "tensors/peer_memory.h"

#include <sys/uio.h>

/* The start of a file. After it, at mgrid_board_size, come the addresses of the parts, in the memory of its rank, then packed
** rows. Another process may write to its board at any time: read each field once. */
typedef struct mgrid_board {
  uint64_t cookie, number; /* of this board; of the move's rendezvous, 0: nothing may be read */
  int64_t  size;           /* bytes of the file */
  int64_t  packed[];       /* [group], by rank: where the rows packed for it start; 0: it gets messages */
} mgrid_board;
enum { MGRID_NOWHERE = 1 }; /* of mgrid_board.packed: nothing is packed */

/* A rank of the group, whose board is mapped here. */
typedef struct mgrid_mapped {
  int64_t      rank;
  uint64_t     cookie;
  int          pid, file;
  mgrid_board *board; /* [size] bytes are mapped */
  int64_t      size;
} mgrid_mapped;

typedef struct mgrid_card mgrid_card; /* what ranks send to each other about themselves */

struct mgrid_reading {
  mgrid_attached base;
  uint64_t       cookie;
  int            file;
  mgrid_board   *board; /* of this rank; NULL: none */
  bool           found, on;
  size_t         n;
  mgrid_mapped  *near;  /* [n], the group without this rank, by rank */
  size_t         place; /* of this rank in the group */
  mgrid_card    *cards; /* [world], until the group is known */
};

/* Return the bytes of a board; identical in the group. */
int64_t mgrid_board_size(const mgrid_reading *r);
/* Grow this rank's file to `size` bytes, with all its memory; the board may move. False: errno says why. */
bool mgrid_board_grow(mgrid_reading *r, int64_t size);
/* Return the entry of that rank; NULL: it is not in the group. */
mgrid_mapped *mgrid_mapped_of(const mgrid_reading *r, int64_t rank);
/* Return its index in the group, in which this rank counts, too. */
size_t mgrid_mapped_place(const mgrid_reading *r, const mgrid_mapped *n);
/* Map all of another rank's file, which may have grown. Return errno. */
int mgrid_mapped_renew(mgrid_mapped *n, int64_t size);
/* Read spans of another process into as many bytes here, in order. Return errno. */
int mgrid_read_spans(int pid, size_t nto, struct iovec *to, size_t nfrom, struct iovec *from);
int mgrid_read_bytes(int pid, void *to, const void *from, size_t bytes);

#endif
