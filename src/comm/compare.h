/* SPDX-License-Identifier: MIT
**
** compare.h - do ranks have the same, and where not, who has what? Each rank brings digests; one
** minimum over all ranks tells whether they are equal. Where they are not, the ranks find one that
** differs, and all hear the same words of both sides. agree.c does so for plans, policies for their
** results.
*/
#ifndef MGRID_COMPARE_H
#define MGRID_COMPARE_H

#include "comm/state.h"

/* Who compares: all ranks of a backend, or the members of one group. */
typedef struct mgrid_peers {
  mgrid_backend     *backend;
  const mgrid_group *group;  /* NULL: all ranks */
  void              *buffer; /* of a group: the backend's memory for what its members tell each other */
  bool               alone;  /* there is nobody to compare with */
} mgrid_peers;

mgrid_peers mgrid_peers_all(mgrid_backend *b);
/* The members of g, which outlives *p. Alone where g is NULL or has one member, and in a dry state. Makes
** the buffer, so that no rank misses a comparison for want of memory; false where there is none for it. Local. */
bool mgrid_peers_group(mgrid_peers *p, const mgrid_group *g, mgrid_error *err);
void mgrid_peers_close(mgrid_peers *p);

/* Collective over the peers, who are not alone; of a group n words or bytes of at most a statement of
** mgrid_compare. The words become the element-wise minimum. */
mgrid_status mgrid_peers_min(const mgrid_peers *p, uint64_t *words, size_t n, mgrid_error *err);
/* What the peer at position `from` (of all ranks: rank `from`) has in data, whole words, becomes everybody's. */
mgrid_status mgrid_peers_tell(const mgrid_peers *p, int64_t from, void *data, size_t bytes, mgrid_error *err);

/* A word as it goes through a minimum: with its complement, so that afterwards the two are complements
** still exactly where all ranks brought the same word. */
static inline void mgrid_pair(uint64_t pair[2], uint64_t word) { pair[0] = word, pair[1] = ~word; }
static inline bool mgrid_pair_same(const uint64_t pair[2]) { return pair[0] == ~pair[1]; }

enum { MGRID_TOLD = 240 }; /* characters that a rank tells of what it has, the final 0 included */
/* Do all peers bring the same digest? Else MGRID_DISAGREE on all of them, with the first peer and the first
** that differs from it: "ranks differ: rank 0 returned 3, rank 5 returned 4", where "returned 3" is the
** text that rank 0 brings. Collective over the peers; alone always MGRID_OK. */
mgrid_status mgrid_compare(const mgrid_peers *p, uint64_t digest, const char *text, mgrid_error *err);

#endif
