/* SPDX-License-Identifier: MIT
**
** call.c - calls over all ranks, as messages along a tree of ranks. Messages go up to rank 0, which
** then knows which ranks arrived, and come down with the result or with the missing ranks. If the
** host has an all-gather, all-gathers and small minimums use that, and then the tree only finds out
** who is missing.
*/
#include "comm/carriers/carrier.h"

#include <string.h>

/* This rank in the tree: the first rank of its subtree, which has the ranks lo to hi - 1. The other
** ranks of the subtree are cut into runs of consecutive ranks; the first rank of each run is a
** child. */
enum { BRANCHES = 16, FEW = 8 };

typedef struct node {
  int64_t lo, hi, parent; /* parent -1: rank 0 */
  int64_t run;            /* ranks of a run; the last run may have fewer */
  int depth;              /* steps to rank 0 */
} node;

static int64_t call_run_of(int64_t lo, int64_t hi) { return (hi - lo - 2 + BRANCHES) / BRANCHES; }

static node find_node(int64_t rank, int64_t world) {
  node at = { 0, world, -1, call_run_of(0, world), 0 };
  while (at.lo != rank) {
    int64_t lo = at.lo + 1 + (rank - at.lo - 1) / at.run * at.run,
            hi = lo + at.run < at.hi ? lo + at.run : at.hi;
    at = (node){ lo, hi, at.lo, call_run_of(lo, hi), at.depth + 1 };
  }
  return at;
}

/* Return how many levels a tree of `size` ranks has below its first rank. */
static int height_of(int64_t size) {
  int height = 0;
  for (; size > 1; size = call_run_of(0, size)) height++;
  return height;
}

/* A message. It holds data of up to 64 bytes; longer data follows in a second message. */
typedef struct report {
  /* on the way up: the missing ranks of the sender's subtree; on the way down: of the world */
  mgrid_missing missing;
  uint64_t few[FEW];
} report;

static mgrid_status call_pass(mgrid_relay *m, int tag, int64_t to, report *p, const void *data,
                              size_t bytes, mgrid_error *err) {
  if (bytes <= sizeof p->few && bytes) memcpy(p->few, data, bytes);
  mgrid_status s = mgrid_relay_post(m, m->calls, tag, 0, to, p, sizeof *p, m->seconds, err);
  if (!s && bytes > sizeof p->few)
    s = mgrid_relay_post(m, m->calls, tag, 1, to, data, bytes, m->seconds, err);
  return s;
}

static mgrid_outcome fetch(mgrid_relay *m, int tag, int64_t from, report *p, void *data,
                           size_t bytes, double until, mgrid_error *err) {
  mgrid_outcome s = mgrid_relay_take(m, m->calls, tag, 0, from, p, sizeof *p, until, NULL, err);
  if (!s && bytes > sizeof p->few)
    return mgrid_relay_take(m, m->calls, tag, 1, from, data, bytes, until + 1, NULL, err);
  if (!s && bytes) memcpy(data, p->few, bytes);
  return s;
}

typedef enum call_kind {
  MINIMUM, /* the minimum of each word */
  GATHER,  /* each rank gives a block; that of rank r begins at data + r * bytes */
  /* data of the root for all ranks; the root sends it to rank 0, and nothing else goes up */
  BROADCAST
} call_kind;

typedef struct tree_call {
  mgrid_relay *m;
  call_kind kind;
  char *data;
  size_t bytes; /* of one rank */
  int64_t root; /* the root of BROADCAST; else -1 */
  node at;
  double begun, seconds;
} tree_call;

/* Each level waits this much longer than the level below. Otherwise a rank that waits for a missing
** rank would itself be called missing. */
static double grace(const tree_call *t) { return t->seconds < 4 ? t->seconds / 4 : 1; }

/* For MINIMUM and GATHER: receive from the children, combine their data with that of this rank, and
** send the result to the parent. */
static mgrid_status go_up(tree_call *t, report *p, mgrid_error *err) {
  mgrid_relay *m = t->m;
  mgrid_status s = MGRID_OK;
  int levels = height_of(t->at.hi - t->at.lo);
  double until = t->begun + t->seconds + (levels > 1 ? levels - 1 : 0) * grace(t);

  for (int64_t c = t->at.lo + 1; c < t->at.hi && !s; c += t->at.run) {
    int64_t end = c + t->at.run < t->at.hi ? c + t->at.run : t->at.hi;
    report got;
    size_t bytes = t->kind == GATHER ? (size_t)(end - c) * t->bytes : t->bytes;
    void *where = t->kind == GATHER ? t->data + (size_t)c * t->bytes : (char *)m->words;
    mgrid_outcome outcome = fetch(m, MGRID_TAG_UP, c, &got, where, bytes, until, err);
    if (outcome == MGRID_LATE) {
      mgrid_missing_add(&p->missing, c);
      continue;
    }
    if (outcome) return mgrid_status_of(outcome);
    if ((s = mgrid_missing_heard(&got.missing, m->base.world, err))) return s;
    for (int64_t i = 0; i < got.missing.n; i++)
      mgrid_missing_add(&p->missing, i < MGRID_MISSING_SHOWN ? got.missing.rank[i] : -1);
    for (size_t i = 0; t->kind == MINIMUM && i < t->bytes / sizeof(uint64_t); i++)
      if (m->words[i] < ((uint64_t *)t->data)[i]) ((uint64_t *)t->data)[i] = m->words[i];
  }
  if (t->at.parent < 0) return MGRID_OK;
  size_t up = t->kind == GATHER ? (size_t)(t->at.hi - t->at.lo) * t->bytes : t->bytes;
  return call_pass(m, MGRID_TAG_UP, t->at.parent, p,
                   t->kind == GATHER ? t->data + (size_t)t->at.lo * t->bytes : t->data, up, err);
}

/* Receive the answer from the parent and send it to the children. If the parent does not answer,
** the children get an answer that names the parent as missing. The wait is longer than one
** deadline, because the parent may have begun its call a deadline later, and waits for its own
** parent. */
static mgrid_status go_down(tree_call *t, report *p, mgrid_error *err) {
  mgrid_relay *m = t->m;
  size_t bytes = t->kind == GATHER ? (size_t)m->base.world * t->bytes : t->bytes;
  mgrid_status s = MGRID_OK;
  if (t->at.parent >= 0) {
    double until = t->begun + 2 * t->seconds + (height_of(m->base.world) + t->at.depth) * grace(t);
    size_t come = m->base.rank == t->root ? 0 : bytes; /* the root has its data already */
    mgrid_outcome outcome = fetch(m, MGRID_TAG_DOWN, t->at.parent, p, t->data, come, until, err);
    if (outcome == MGRID_LATE)
      p->missing = (mgrid_missing){ .n = 1, .rank = { t->at.parent } };
    else if (outcome)
      return mgrid_status_of(outcome);
    else
      s = mgrid_missing_heard(&p->missing, m->base.world, err);
  }
  for (int64_t c = t->at.lo + 1; c < t->at.hi && !s; c += t->at.run)
    s = call_pass(m, MGRID_TAG_DOWN, c, p, t->data, c == t->root ? 0 : bytes, err);
  return s;
}

/* Make a call along the tree. *missing: the ranks that did not arrive. */
static mgrid_status run_tree_call(mgrid_relay *m, call_kind kind, void *data, size_t bytes,
                                  double seconds, int64_t root, mgrid_missing *missing,
                                  mgrid_error *err) {
  tree_call t = { .m = m,
                  .kind = kind,
                  .data = data,
                  .bytes = bytes,
                  .root = kind == BROADCAST ? root : -1,
                  .at = find_node(m->base.rank, m->base.world),
                  .begun = mgrid_now(),
                  .seconds = seconds };
  report p = { .missing = { 0 } };
  mgrid_outcome s = MGRID_OK;

  m->calls++;
  if (kind != BROADCAST)
    s = go_up(&t, &p, err);
  else if (root != 0 && m->base.rank == root)
    s = call_pass(m, MGRID_TAG_ROOT, 0, &p, data, bytes, err);
  else if (root != 0 && m->base.rank == 0)
    s = fetch(m, MGRID_TAG_ROOT, root, &p, data, bytes, t.begun + seconds, err);
  if (s == MGRID_LATE) mgrid_missing_add(&p.missing, root), s = MGRID_OK;
  if (!s) s = go_down(&t, &p, err);
  *missing = p.missing;
  return mgrid_status_of(s);
}

/* ----------------------------------------------------------------- the three calls */

static mgrid_status call_usable(const mgrid_relay *m, mgrid_error *err) {
  if (!m->broken) return MGRID_OK;
  return mgrid_fail(err, MGRID_TIMED_OUT,
                    "%s: an earlier call over all ranks did not end; the job cannot go on",
                    m->base.kind->name);
}

static mgrid_status call_by_tree(mgrid_relay *m, call_kind kind, void *data, size_t bytes,
                                 int64_t root, mgrid_error *err) {
  mgrid_missing missing;
  mgrid_status s = run_tree_call(m, kind, data, bytes, m->seconds, root, &missing, err);
  if (!s && missing.n) s = mgrid_missing_fail(&missing, m->base.waited + m->seconds, err);
  m->broken |= s != MGRID_OK;
  return s;
}

/* Call the host's all-gather. If it does not end by its deadline, the ranks that were in it find
** out along the tree who is missing. */
static mgrid_status call_by_host(mgrid_relay *m, const void *mine, void *all, size_t bytes,
                                 mgrid_error *err) {
  const double apart = 2; /* seconds between the deadlines of two ranks, at most */
  mgrid_missing missing = { 0 };
  mgrid_status s = m->host.allgather(m->host.ud, mine, all, bytes, m->seconds);
  if (!s) return MGRID_OK;
  m->broken = true;
  if (s != MGRID_TIMED_OUT) return mgrid_relay_failed(m, s, "allgather", err);
  s = run_tree_call(m, MINIMUM, NULL, 0, apart, 0, &missing, err);
  return s ? s : mgrid_missing_fail(&missing, m->base.waited + m->seconds, err);
}

mgrid_status mgrid_relay_allgather(mgrid_backend *b, const void *mine, void *all, size_t bytes,
                                   mgrid_error *err) {
  mgrid_relay *m = (mgrid_relay *)b;
  mgrid_status s = call_usable(m, err);
  if (s) return s;
  m->calls += m->host.allgather != NULL; /* run_tree_call counts its own calls */
  char *own = (char *)all + (size_t)b->rank * bytes;
  if (m->host.allgather) {
    s = call_by_host(m, mine, all, bytes, err);
  } else {
    memcpy(own, mine, bytes);
    s = call_by_tree(m, GATHER, all, bytes, 0, err);
  }
  /* copied again, because the host may have returned another value of this rank */
  if (bytes) memcpy(own, mine, bytes);
  return s;
}

mgrid_status mgrid_relay_allreduce(mgrid_backend *b, uint64_t *words, size_t n, mgrid_error *err) {
  mgrid_relay *m = (mgrid_relay *)b;
  mgrid_status s = call_usable(m, err);
  if (s) return s;
  /* m->words has room for FEW words of each rank */
  if (n > FEW) return call_by_tree(m, MINIMUM, words, n * sizeof *words, 0, err);
  if (!m->host.allgather) {
    uint64_t own[FEW];
    memcpy(own, words, n * sizeof *words);
    s = call_by_tree(m, MINIMUM, words, n * sizeof *words, 0, err);
    for (size_t i = 0; i < n && !s; i++)
      if (words[i] > own[i]) s = mgrid_cannot_be(err, "a minimum above the number of this rank");
    m->broken |= s != MGRID_OK;
    return s;
  }
  s = mgrid_relay_allgather(b, words, m->words, n * sizeof *words, err);
  for (size_t i = 0; i < n * (size_t)b->world && !s; i++)
    if (m->words[i] < words[i % n]) words[i % n] = m->words[i];
  return s;
}

mgrid_status mgrid_relay_bcast(mgrid_backend *b, void *data, size_t bytes, int64_t root,
                               mgrid_error *err) {
  mgrid_relay *m = (mgrid_relay *)b;
  mgrid_status s = call_usable(m, err);
  return s ? s : call_by_tree(m, BROADCAST, data, bytes, root, err);
}

void mgrid_relay_leave(mgrid_relay *m, double seconds) {
  mgrid_missing missing;
  double until = mgrid_now() + 2 * seconds;
  char bye = 1;
  if (m->broken || m->calls == 0) return;
  if (m->host.allgather) {
    (void)m->host.allgather(m->host.ud, &bye, m->words, 0, 2 * seconds);
    return;
  }
  if (run_tree_call(m, MINIMUM, NULL, 0, seconds, 0, &missing, NULL) || missing.n) return;
  if (m->base.rank != 0)
    (void)mgrid_relay_post(m, m->calls, MGRID_TAG_BYE, 0, 0, &bye, 1, seconds, NULL);
  for (int64_t r = 1; r < m->base.world && m->base.rank == 0; r++)
    (void)mgrid_relay_take(m, m->calls, MGRID_TAG_BYE, 0, r, &bye, 1, until, NULL, NULL);
}
