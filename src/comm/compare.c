/* SPDX-License-Identifier: MIT
**
** compare.c - compare digests between ranks: all ranks by the backend's collectives, a group by those of its
** communicator.
*/
#include "comm/compare.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

/* What a rank broadcasts when digests differ. Whole words, because collectives on GPUs carry it too. */
typedef struct statement {
  uint64_t digest, of; /* of: a digest, too */
  int64_t  rank;
  char     text[MGRID_TOLD], name[96];
} statement;

mgrid_peers mgrid_peers_all(mgrid_backend *b) { return (mgrid_peers){ .backend = b }; }

bool mgrid_peers_group(mgrid_peers *p, const mgrid_group *g, mgrid_error *err) {
  mgrid_backend *b = g ? g->state->backend : NULL;
  *p = (mgrid_peers){ .backend = b, .group = g, .alone = !g || g->size == 1 || !b->ops->collective };
  if (!p->alone) p->buffer = b->ops->buffer_new(b, mgrid_group_kind(g), sizeof(statement), err);
  return p->alone || p->buffer;
}

void mgrid_peers_close(mgrid_peers *p) {
  if (p->buffer) p->backend->ops->buffer_free(p->backend, mgrid_group_kind(p->group), p->buffer);
  p->buffer = NULL;
}

/* Run one collective over the group on n words, in place. */
static mgrid_status over_group(const mgrid_peers *p, mgrid_call call, int64_t root, void *words, size_t n,
                               mgrid_error *err) {
  mgrid_backend          *b = p->backend;
  const mgrid_descriptor *kind = mgrid_group_kind(p->group);
  mgrid_work              w = { .call = call,
                                .type = MGRID_INT64,
                                .reduction = MGRID_MIN,
                                .send = p->buffer,
                                .recv = p->buffer,
                                .count = n,
                                .root = root,
                                .ours = true };
  mgrid_status            s = b->ops->copy(b, kind, p->buffer, words, n * sizeof(int64_t), true, err);
  if (!s) s = mgrid_group_work(p->group, &w, err);
  if (!s) s = b->ops->copy(b, kind, words, p->buffer, n * sizeof(int64_t), false, err);
  return s;
}

/* Collectives of groups take the minimum of signed words: flip the highest bit to keep the unsigned order. */
static void flip(uint64_t *words, size_t n) {
  for (size_t i = 0; i < n; i++) words[i] ^= UINT64_C(1) << 63;
}

mgrid_status mgrid_peers_min(const mgrid_peers *p, uint64_t *words, size_t n, mgrid_error *err) {
  if (!p->group) return p->backend->ops->allreduce_min(p->backend, words, n, err);
  flip(words, n);
  mgrid_status s = over_group(p, MGRID_ALLREDUCE, 0, words, n, err);
  flip(words, n);
  return s;
}

mgrid_status mgrid_peers_tell(const mgrid_peers *p, uint64_t from, void *data, size_t bytes, mgrid_error *err) {
  if (!p->group) return mgrid_hear(p->backend, from, data, bytes, err);
  mgrid_error bad = MGRID_ERROR_INIT;
  if (mgrid_rank_heard(from, p->group->size, &bad) < 0) return mgrid_error_pass(err, &bad);
  return over_group(p, MGRID_BROADCAST, (int64_t)from, data, bytes / sizeof(int64_t), err);
}

/* Over all ranks this is a rendezvous, which also finds ranks that are in other calls. */
static mgrid_status same_of_all(const mgrid_peers *p, const mgrid_brought *mine, uint64_t of, bool *same,
                                mgrid_error *err) {
  mgrid_backend *b = p->backend;
  mgrid_meeting  met = {
     .call = mgrid_meet_call(b, false, "compare"), .have = true, .first = mine->digest, .second = of
  };
  snprintf(b->doing, sizeof b->doing, "%s", mine->of);
  mgrid_status s = mgrid_meet_over(b, &met, err);
  *same = met.all;
  free(met.each);
  return s;
}

static mgrid_status same_of_group(const mgrid_peers *p, const mgrid_brought *mine, uint64_t of, bool *same,
                                  mgrid_error *err) {
  uint64_t words[4];
  snprintf(p->backend->doing, sizeof p->backend->doing, "%s", mine->of);
  mgrid_pair_words(words, mine->digest), mgrid_pair_words(words + 2, of);
  mgrid_status s = mgrid_peers_min(p, words, 4, err);
  *same = mgrid_pair_same(words) && mgrid_pair_same(words + 2);
  return s;
}

static void hear(statement *told) {
  mgrid_show(told->text, sizeof told->text);
  mgrid_show(told->name, sizeof told->name);
}

mgrid_status mgrid_compare(const mgrid_peers *p, const mgrid_brought *mine, mgrid_error *err) {
  uint64_t who, of = XXH3_64bits(mine->of, strlen(mine->of));
  bool     all;
  if (p->alone) return MGRID_OK;
  mgrid_status s = (p->group ? same_of_group : same_of_all)(p, mine, of, &all, err);
  if (s || all) return s;
  statement first = { mine->digest, of, p->backend->rank, "", "" };
  snprintf(first.text, sizeof first.text, "%s", mine->text);
  snprintf(first.name, sizeof first.name, "%s", mine->of);
  statement other = first; /* each side is broadcast by the rank that has it */
  s = mgrid_peers_tell(p, 0, &first, sizeof first, err);
  bool same = first.digest == mine->digest && first.of == of;
  who = same ? UINT64_MAX : (uint64_t)(p->group ? p->group->position : p->backend->rank);
  if (!s) s = mgrid_peers_min(p, &who, 1, err);
  if (!s) s = mgrid_peers_tell(p, who, &other, sizeof other, err);
  if (s) return s;
  hear(&first), hear(&other);
  if (first.of != other.of)
    return mgrid_fail(err, MGRID_DISAGREE, "ranks differ: rank %" PRId64 " asked for %s, rank %" PRId64 " for %s",
                      first.rank, first.name, other.rank, other.name);
  return mgrid_fail(err, MGRID_DISAGREE, "ranks differ: rank %" PRId64 " %s, rank %" PRId64 " %s", first.rank,
                    first.text, other.rank, other.text);
}
