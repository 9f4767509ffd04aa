/* SPDX-License-Identifier: MIT
**
** compare.h - compare digests between ranks. One minimum over the ranks shows whether all are
** equal. If not, the ranks find the first that differs, and all get one message with the text of
** both sides. agree.c compares plans, recipe/policy.c results of policies.
*/
#ifndef MGRID_COMPARE_H
#define MGRID_COMPARE_H

#include "comm/state.h"

/* What a rank brings to a rendezvous of all ranks, and its result. */
typedef struct mgrid_meeting {
  uint64_t call;          /* of mgrid_meet_call */
  bool have;              /* this rank has a digest to compare */
  mgrid_status status;    /* if not: why */
  uint64_t first, second; /* the digest */
  uint64_t least; /* any number below UINT64_MAX; out: the smallest of all ranks, if `all` */
  bool all, none; /* out: all ranks have the same digest; no rank has one */
  uint64_t *
      each; /* out, if neither: [MGRID_MET * world], of each rank status, first, second, call and states. Free it. */
} mgrid_meeting;
enum { MGRID_MET = 5 };
/* Start a collective of the library: set the name that errors quote, and return a digest of that
** name and of the library's version. plans: the ranks agree on a plan in it. Local. */
uint64_t mgrid_meet_call(mgrid_backend *b, bool plans, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* The call of a rank without a plan: it fits every call in which ranks agree on one. */
enum { MGRID_ANY_PLAN = 1 };
/* Rendezvous of all ranks: one all-reduce of 64 bytes if their digests are equal. Each rank also
** learns whether all are on one machine. MGRID_DISAGREE on all ranks if they are in different
** calls. Collective. rendezvous.c */
mgrid_status mgrid_meet_over(mgrid_backend *b, mgrid_meeting *m, mgrid_error *err);
/* The same, comparing only the call. */
mgrid_status mgrid_meet(mgrid_backend *b, uint64_t call, mgrid_error *err);

/* mgrid_agree as part of that call. If no rank has a plan, each returns its own error; with `alike`
** all return that of rank 0. */
mgrid_status mgrid_agree_in(mgrid_backend *b, uint64_t call, const mgrid_plan *plan, bool alike,
                            const mgrid_error *failed, mgrid_error *err);

/* The ranks that compare: all of a backend, or the members of one group. */
typedef struct mgrid_peers {
  mgrid_backend *backend;
  const mgrid_group *group; /* NULL: all ranks */
  void *buffer;             /* of a group: the backend's memory for one statement */
  bool alone;               /* there is no other rank */
} mgrid_peers;

mgrid_peers mgrid_peers_all(mgrid_backend *b);
/* The members of g, which must outlive *p; `alone` if g is NULL, has one member, or is of a dry
** state. Allocates the buffer now, so that no rank lacks memory during a comparison; returns false
** if that fails. Local. */
bool mgrid_peers_group(mgrid_peers *p, const mgrid_group *g, mgrid_error *err);
void mgrid_peers_close(mgrid_peers *p);

/* Replace the n words by their element-wise minimum over the peers, at least two. A group's words
** must fit into a statement of mgrid_compare. Collective. */
mgrid_status mgrid_peers_min(const mgrid_peers *p, uint64_t *words, size_t n, mgrid_error *err);
/* Broadcast whole words from the peer at position `from` (of all ranks: rank `from`), after
** checking that it exists. Same limit. */
mgrid_status mgrid_peers_tell(const mgrid_peers *p, uint64_t from, void *data, size_t bytes,
                              mgrid_error *err);

/* A word and its complement. After a minimum over ranks they are still complements if and only if
** all ranks brought the same word. */
static inline void mgrid_pair_words(uint64_t pair[2], uint64_t word) {
  pair[0] = word, pair[1] = ~word;
}
static inline bool mgrid_pair_same(const uint64_t pair[2]) { return pair[0] == ~pair[1]; }

enum { MGRID_TOLD = 240 }; /* bytes of a text in a statement, with its final 0 */
/* What a peer brings to mgrid_compare. */
typedef struct mgrid_brought {
  uint64_t digest;
  const char *text; /* describes the digest: "returned 3" */
  /* what was asked for: "policy 'lr'"; if this differs, ranks differ even with equal digests */
  const char *of;
} mgrid_brought;
/* Return MGRID_OK if all peers bring equal digests of the same thing, else MGRID_DISAGREE on all of
** them. The message names the first peer and the first that differs: "ranks differ: rank 0 returned
** 3, rank 5 returned 4", or "rank 0 asked for policy 'lr', rank 5 for policy 'stages'". Collective
** over the peers; `alone`: MGRID_OK. */
mgrid_status mgrid_compare(const mgrid_peers *p, const mgrid_brought *mine, mgrid_error *err);

#endif
