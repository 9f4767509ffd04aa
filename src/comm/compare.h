/* SPDX-License-Identifier: MIT
**
** compare.h - compares digests between ranks. One minimum over the ranks shows whether all digests
** are equal. If not, the ranks find the first rank that differs, and all get the same message,
** which has the texts of two ranks. agree.c compares plans, recipe/policy.c the results of
** policies.
*/
#ifndef MGRID_COMPARE_H
#define MGRID_COMPARE_H

#include "comm/state.h"

/* A rendezvous is the all-reduce with which most calls over all ranks begin (rendezvous.c). What a
** rank brings to it, and what it gets from it. */
typedef struct mgrid_meeting {
  uint64_t call;          /* the result of mgrid_meet_call, or MGRID_ANY_PLAN */
  bool have;              /* this rank has a digest to compare */
  mgrid_status status;    /* if `have` is false: why this rank has no digest */
  uint64_t first, second; /* the digest */
  uint64_t least; /* below UINT64_MAX; after the call, if `all`: the minimum over all ranks */
  bool all, none; /* after the call: all ranks have the same digest; no rank has one */
  /* after a call that returned MGRID_OK, if neither `all` nor `none`: [MGRID_MET * world], for each
  ** rank its status, first, second, call and a digest of its states. The caller frees it. */
  uint64_t *each;
} mgrid_meeting;
enum { MGRID_MET = 5 };
/* Note that this rank begins a call over all ranks. fmt: the name of the call, for errors. Return a
** digest of this name and of the library's version. plans: in this call the ranks agree on a plan.
** Local. */
uint64_t mgrid_meet_call(mgrid_backend *b, bool plans, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* In mgrid_agree a rank without a plan passes this instead of that digest. It fits every call in
** which ranks agree on a plan. */
enum { MGRID_ANY_PLAN = 1 };
/* Make a rendezvous of all ranks: one all-reduce of 64 bytes, and more calls if digests differ.
** Each rank also learns whether all ranks are on one node. If ranks are in different calls, all get
** MGRID_DISAGREE. Collective. rendezvous.c */
mgrid_status mgrid_meet_over(mgrid_backend *b, mgrid_meeting *m, mgrid_error *err);
/* Make a rendezvous that compares only the calls and the states of the ranks. */
mgrid_status mgrid_meet(mgrid_backend *b, uint64_t call, mgrid_error *err);

/* Do the work of mgrid_agree. call: mgrid_meeting.call. If no rank has a plan, each rank returns
** its own error; with `alike` all return the error of rank 0. */
mgrid_status mgrid_agree_in(mgrid_backend *b, uint64_t call, const mgrid_plan *plan, bool alike,
                            const mgrid_error *failed, mgrid_error *err);

/* The ranks that compare: all ranks of a backend, by its calls over all ranks; or the members of a
** group, by collectives of its communicator. */
typedef struct mgrid_peers {
  mgrid_backend *backend;
  const mgrid_group *group; /* NULL: all ranks */
  void *buffer;             /* for a group: memory for its collectives (mgrid_peers_group) */
  bool alone;               /* there is no other rank to compare with */
} mgrid_peers;

mgrid_peers mgrid_peers_all(mgrid_backend *b);
/* Make the members of g the peers; g must outlive *p. `alone` is set if g is NULL or has one
** member, or if its backend has no communicators. Otherwise allocate the buffer for mgrid_compare
** now, so that no rank lacks memory during the comparison. Return false if there is no memory.
** Local. */
bool mgrid_peers_group(mgrid_peers *p, const mgrid_group *g, mgrid_error *err);
void mgrid_peers_close(mgrid_peers *p);

/* Replace each of the n words by its minimum over the peers, of which there are at least two. For a
** group, the words must fit into `buffer`. Collective. */
mgrid_status mgrid_peers_min(const mgrid_peers *p, uint64_t *words, size_t n, mgrid_error *err);
/* Broadcast bytes, a multiple of 8, from the peer at position `from`, after a check that there is
** such a peer. For a group, they must fit into `buffer`. Collective. */
mgrid_status mgrid_peers_tell(const mgrid_peers *p, uint64_t from, void *data, size_t bytes,
                              mgrid_error *err);

/* Write a word and its complement. After a minimum over ranks the two are still complements if and
** only if all ranks brought the same word. */
static inline void mgrid_pair_words(uint64_t pair[2], uint64_t word) {
  pair[0] = word, pair[1] = ~word;
}
static inline bool mgrid_pair_same(const uint64_t pair[2]) { return pair[0] == ~pair[1]; }

enum { MGRID_TOLD = 240 }; /* the most bytes of a text that other ranks get, with its final 0 */
/* What a peer brings to mgrid_compare. */
typedef struct mgrid_brought {
  uint64_t digest;
  const char *text; /* what the digest stands for: "returned 3" */
  const char *of;   /* what the digest is about: "policy 'lr'"; compared, too */
} mgrid_brought;
/* Return MGRID_OK if all peers bring equal digests of the same thing (`of`), else MGRID_DISAGREE on
** all peers. The message names the first peer, and the first peer that differs from it: "ranks
** differ: rank 0 returned 3, rank 5 returned 4", or "rank 0 asked for policy 'lr', rank 5 for
** policy 'stages'". Collective over the peers. With `alone`, return MGRID_OK. */
mgrid_status mgrid_compare(const mgrid_peers *p, const mgrid_brought *mine, mgrid_error *err);

#endif
