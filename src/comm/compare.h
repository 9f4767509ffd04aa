/* SPDX-License-Identifier: MIT
**
** compare.h - compare digests between ranks. One minimum over all ranks shows whether they are equal. If
** not, the ranks find the first that differs, and all get the same message with the text of both sides.
** agree.c does so for plans, recipe/policy.c for results of policies.
*/
#ifndef MGRID_COMPARE_H
#define MGRID_COMPARE_H

#include "comm/state.h"

/* What ranks bring to a call of ours over all ranks, and what comes of it. */
typedef struct mgrid_meeting {
  uint64_t     call;          /* of mgrid_meet_call */
  bool         have;          /* this rank has what is to be compared */
  mgrid_status status;        /* why not */
  uint64_t     first, second; /* what is compared, if it has it */
  uint64_t     least;         /* any number below the largest; out: the smallest, if `all` */
  bool         all, none;     /* out: all ranks have the same; none has any */
  uint64_t *each; /* out: [MGRID_MET * world], if it is neither: of each rank its status, first and second. Free it. */
} mgrid_meeting;
enum { MGRID_MET = 5 };
/* The begin of a call of ours over all ranks: its name, which errors have, and a digest of the name and of the library's
** version. plans: ranks agree on a plan in it. Local. */
uint64_t mgrid_meet_call(mgrid_backend *b, bool plans, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
/* A digest that goes with every call in which ranks agree on a plan: of a rank that has none. */
enum { MGRID_ANY_PLAN = 1 };
/* All ranks meet, in one all-reduce of 64 bytes if they have the same; each also learns whether they are on one machine.
** MGRID_DISAGREE if they are in unlike calls, told on all. Collective. rendezvous.c */
mgrid_status mgrid_meet_over(mgrid_backend *b, mgrid_meeting *m, mgrid_error *err);
/* The same where nothing is compared but the call. */
mgrid_status mgrid_meet(mgrid_backend *b, uint64_t call, mgrid_error *err);

/* mgrid_agree as a part of that call. Where no rank has a plan each returns its own error, or, `alike`, that of rank 0. */
mgrid_status mgrid_agree_in(mgrid_backend *b, uint64_t call, const mgrid_plan *plan, bool alike,
                            const mgrid_error *failed, mgrid_error *err);

/* The ranks that compare: all of a backend, or the members of one group. */
typedef struct mgrid_peers {
  mgrid_backend     *backend;
  const mgrid_group *group;  /* NULL: all ranks */
  void              *buffer; /* of a group: the backend's memory for one statement */
  bool               alone;  /* no other rank to compare with */
} mgrid_peers;

mgrid_peers mgrid_peers_all(mgrid_backend *b);
/* The members of g, which outlives *p. `alone` if g is NULL or has one member, and in a dry state. Allocates
** the buffer, so that no rank misses a comparison for want of memory; false where there is none for it. Local. */
bool mgrid_peers_group(mgrid_peers *p, const mgrid_group *g, mgrid_error *err);
void mgrid_peers_close(mgrid_peers *p);

/* Collective over the peers, of whom there are at least two. The n words become their element-wise minimum.
** For a group they must fit into a statement of mgrid_compare. */
mgrid_status mgrid_peers_min(const mgrid_peers *p, uint64_t *words, size_t n, mgrid_error *err);
/* Broadcast data, whole words, from the peer at position `from` (of all ranks: rank `from`), which
** is looked at. Same limit. */
mgrid_status mgrid_peers_tell(const mgrid_peers *p, uint64_t from, void *data, size_t bytes, mgrid_error *err);

/* A word and its complement. After a minimum over ranks the two are still complements exactly if all ranks
** brought the same word. */
static inline void mgrid_pair_words(uint64_t pair[2], uint64_t word) { pair[0] = word, pair[1] = ~word; }
static inline bool mgrid_pair_same(const uint64_t pair[2]) { return pair[0] == ~pair[1]; }

enum { MGRID_TOLD = 240 }; /* characters of a text in a statement, the final 0 included */
/* What a peer brings. */
typedef struct mgrid_brought {
  uint64_t    digest;
  const char *text; /* what it says of that, "returned 3" */
  const char *of;   /* what was asked for, "policy 'lr'"; another one differs, whatever the digests */
} mgrid_brought;
/* MGRID_OK if all peers bring the same digest of the same, else MGRID_DISAGREE on all of them. The message has the
** first peer and the first that differs from it: "ranks differ: rank 0 returned 3, rank 5 returned 4", or "rank 0 asked
** for policy 'lr', rank 5 for policy 'stages'". Collective over the peers; alone always MGRID_OK. */
mgrid_status mgrid_compare(const mgrid_peers *p, const mgrid_brought *mine, mgrid_error *err);

#endif
