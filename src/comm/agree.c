/* SPDX-License-Identifier: MIT
**
** agree.c - checks that all ranks of a backend have the same plan, or that all ranks or the members
** of a group have the same result. One rendezvous (for a group one minimum) compares digests. If
** they differ, a few more exchanges give every rank the same message, with the first difference and
** the ranks that differ.
*/
#include "comm/compare.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

/* =================================================================== digests */

/* What a rank broadcasts when digests differ. The size is a multiple of 8 bytes, because a group
** sends it as 64-bit integers, which NCCL can carry, too. */
typedef struct statement {
  uint64_t digest, of; /* of: the digest of mgrid_brought.of */
  int64_t rank;
  char text[MGRID_TOLD], name[96];
} statement;

mgrid_peers mgrid_peers_all(mgrid_backend *b) { return (mgrid_peers){ .backend = b }; }

bool mgrid_peers_group(mgrid_peers *p, const mgrid_group *g, mgrid_error *err) {
  mgrid_backend *b = g ? g->state->backend : NULL;
  *p =
      (mgrid_peers){ .backend = b, .group = g, .alone = !g || g->size == 1 || !b->ops->collective };
  if (!p->alone) p->buffer = b->ops->buffer_new(b, mgrid_group_kind(g), sizeof(statement), err);
  return p->alone || p->buffer;
}

void mgrid_peers_close(mgrid_peers *p) {
  if (p->buffer) p->backend->ops->buffer_free(p->backend, mgrid_group_kind(p->group), p->buffer);
  p->buffer = NULL;
}

/* Run a collective over the group, in place on n words. */
static mgrid_status over_group(const mgrid_peers *p, mgrid_call call, int64_t root, void *words,
                               size_t n, mgrid_error *err) {
  mgrid_backend *b = p->backend;
  const mgrid_descriptor *kind = mgrid_group_kind(p->group);
  mgrid_work w = { .call = call,
                   .type = MGRID_INT64,
                   .reduction = MGRID_MIN,
                   .send = p->buffer,
                   .recv = p->buffer,
                   .count = n,
                   .root = root,
                   .ours = true };
  mgrid_status s = b->ops->copy(b, kind, p->buffer, words, n * sizeof(int64_t), true, err);
  if (!s) s = mgrid_group_work(p->group, &w, err);
  if (!s) s = b->ops->copy(b, kind, words, p->buffer, n * sizeof(int64_t), false, err);
  return s;
}

mgrid_status mgrid_peers_min(const mgrid_peers *p, uint64_t *words, size_t n, mgrid_error *err) {
  if (!p->group) return p->backend->ops->allreduce_min(p->backend, words, n, err);
  mgrid_flip(words, n);
  mgrid_status s = over_group(p, MGRID_ALLREDUCE, 0, words, n, err);
  mgrid_flip(words, n);
  return s;
}

mgrid_status mgrid_peers_tell(const mgrid_peers *p, uint64_t from, void *data, size_t bytes,
                              mgrid_error *err) {
  if (!p->group) return mgrid_hear(p->backend, from, data, bytes, err);
  mgrid_error bad = MGRID_ERROR_INIT;
  if (mgrid_rank_heard(from, p->group->size, &bad) < 0) return mgrid_error_pass(err, &bad);
  return over_group(p, MGRID_BROADCAST, (int64_t)from, data, bytes / sizeof(int64_t), err);
}

/* Compare over all ranks. This is a rendezvous, so it also finds ranks in other calls. */
static mgrid_status same_of_all(const mgrid_peers *p, const mgrid_brought *mine, uint64_t of,
                                bool *same, mgrid_error *err) {
  mgrid_backend *b = p->backend;
  mgrid_meeting met = {
    .call = mgrid_meet_call(b, false, "compare"), .have = true, .first = mine->digest, .second = of
  };
  snprintf(b->doing, sizeof b->doing, "%s", mine->of);
  mgrid_status s = mgrid_meet_over(b, &met, err);
  *same = met.all;
  free(met.each);
  return s;
}

static mgrid_status same_of_group(const mgrid_peers *p, const mgrid_brought *mine, uint64_t of,
                                  bool *same, mgrid_error *err) {
  uint64_t words[4];
  snprintf(p->backend->doing, sizeof p->backend->doing, "%s", mine->of);
  mgrid_pair_words(words, mine->digest), mgrid_pair_words(words + 2, of);
  mgrid_status s = mgrid_peers_min(p, words, 4, err);
  *same = mgrid_pair_same(words) && mgrid_pair_same(words + 2);
  return s;
}

/* Replace control characters in the texts of another rank. */
static void agree_clean(statement *told) {
  mgrid_show(told->text, sizeof told->text);
  mgrid_show(told->name, sizeof told->name);
}

mgrid_status mgrid_compare(const mgrid_peers *p, const mgrid_brought *mine, mgrid_error *err) {
  uint64_t who, of = XXH3_64bits(mine->of, strlen(mine->of));
  bool all;

  if (p->alone) return MGRID_OK;
  mgrid_status s = (p->group ? same_of_group : same_of_all)(p, mine, of, &all, err);
  if (s || all) return s;
  statement first = { mine->digest, of, p->backend->rank, "", "" };
  snprintf(first.text, sizeof first.text, "%s", mine->text);
  snprintf(first.name, sizeof first.name, "%s", mine->of);
  statement other = first; /* each side is broadcast by its own rank */
  s = mgrid_peers_tell(p, 0, &first, sizeof first, err);
  bool same = first.digest == mine->digest && first.of == of;
  who = same ? UINT64_MAX : (uint64_t)(p->group ? p->group->position : p->backend->rank);
  if (!s) s = mgrid_peers_min(p, &who, 1, err);
  if (!s) s = mgrid_peers_tell(p, who, &other, sizeof other, err);
  if (s) return s;
  agree_clean(&first), agree_clean(&other);
  if (first.of != other.of)
    return mgrid_fail(err, MGRID_DISAGREE,
                      "ranks differ: rank %" PRId64 " asked for %s, rank %" PRId64 " for %s",
                      first.rank, first.name, other.rank, other.name);
  return mgrid_fail(err, MGRID_DISAGREE, "ranks differ: rank %" PRId64 " %s, rank %" PRId64 " %s",
                    first.rank, first.text, other.rank, other.text);
}

/* ===================================================================== plans */

/* One line of a plan. The hash of its rule is compared; the first characters of its text are
** shown. */
typedef struct line {
  uint64_t hash[2];
  char text[176];
} line;

/* A plan as lines: first a head (world, parameters, grids, lists, items), then one line for each
** family. */
typedef struct sheet {
  size_t nhead, n; /* lines of the head; all lines */
  line *at;        /* [n] */
} sheet;

/* Add line i of the plan, if there is such a line. */
static bool agree_add_line(sheet *s, const mgrid_plan *p, size_t i, mgrid_text *t) {
  line *l = &s->at[s->n];
  t->len = 0;
  if (!mgrid_plan_rule(p, i, t)) return !t->failed;
  XXH128_hash_t h = XXH3_128bits(t->data, t->len);
  l->hash[0] = h.high64, l->hash[1] = h.low64;
  t->len = 0;
  mgrid_plan_line(p, i, t);
  if (t->failed) return false;
  t->data[t->len - 1] = '\0'; /* in the place of its newline */
  snprintf(l->text, sizeof l->text, "%s", t->data);
  mgrid_text_ellipsis(l->text, sizeof l->text, t->len - 1);
  s->n++;
  return true;
}

static mgrid_status make_sheet(sheet *s, const mgrid_plan *p, mgrid_error *err) {
  const size_t families = mgrid_plan_first_family(p), lists = mgrid_plan_first_list(p),
               n = mgrid_plan_nlines(p);
  mgrid_text t = { 0 };
  bool made = (s->at = calloc(n, sizeof *s->at)) != NULL;
  for (size_t i = 0; i < n && made; i++)
    if (i < families || i >= lists) made = agree_add_line(s, p, i, &t);
  s->nhead = s->n;
  for (size_t i = families; i < lists && made; i++) made = agree_add_line(s, p, i, &t);
  mgrid_text_free(&t);
  return made ? MGRID_OK : mgrid_oom(err);
}

/* Return the index of the first line that differs, or that only one side has; UINT32_MAX: none. */
static uint64_t first_difference(const line *a, size_t na, const line *b, size_t nb) {
  for (size_t i = 0; i < na || i < nb; i++)
    if (i >= na || i >= nb || memcmp(a[i].hash, b[i].hash, sizeof a->hash) != 0) return i;
  return UINT32_MAX;
}

/* Append the ranks that differ from the reference: "2, 3, 7 and 5 more". */
static void list_ranks(mgrid_text *t, const uint64_t *digest, int64_t world, int64_t reference) {
  enum { SHOWN = 8 };
  int64_t n = 0;
  for (int64_t r = 0; r < world; r++) {
    if (memcmp(&digest[MGRID_MET * r], &digest[MGRID_MET * reference], 3 * sizeof *digest) == 0)
      continue;
    if (n++ < SHOWN) mgrid_text_add(t, "%s%" PRId64, n > 1 ? ", " : "", r);
  }
  if (n > SHOWN) mgrid_text_add(t, " and %" PRId64 " more", n - SHOWN);
}

/* Return the lowest of the ranks with the most frequent plan. At worst O(world^2). */
static int64_t majority(const uint64_t *digest, int64_t world) {
  int64_t best = 0, most = 0;
  for (int64_t r = 0; r < world && most <= world / 2; r++) {
    int64_t n = 0;
    if (digest[MGRID_MET * r] != MGRID_OK) continue;
    for (int64_t k = 0; k < world; k++)
      n += memcmp(&digest[MGRID_MET * k], &digest[MGRID_MET * r], 3 * sizeof *digest) == 0;
    if (n > most) most = n, best = r;
  }
  return best;
}

enum { LINES_MOST = 1 << 20 };

/* Broadcast the sheet of rank `reference` to all ranks. */
static mgrid_status get_reference(const mgrid_peers *all, const sheet *mine, int64_t reference,
                                  sheet *theirs, mgrid_error *err) {
  uint64_t count[2] = { mine->nhead, mine->n };
  mgrid_status s = mgrid_peers_tell(all, reference, count, sizeof count, err);
  if (s) return s;
  if (count[0] > count[1] || count[1] > LINES_MOST)
    s = mgrid_cannot_be(err, "a plan of %" PRIu64 " lines, its head of %" PRIu64, count[1],
                        count[0]);
  else
    theirs->nhead = count[0], theirs->n = count[1];
  if (!s) theirs->at = calloc(theirs->n + 1, sizeof *theirs->at);
  if (!s && !theirs->at) s = mgrid_oom(err);
  if (!s && all->backend->rank == reference)
    memcpy(theirs->at, mine->at, mine->n * sizeof *mine->at);
  s = mgrid_verdict(all->backend, s, err, err);
  if (!s) s = mgrid_peers_tell(all, reference, theirs->at, theirs->n * sizeof *theirs->at, err);
  for (size_t i = 0; i < theirs->n && !s; i++)
    mgrid_show(theirs->at[i].text, sizeof theirs->at[i].text);
  return s;
}

/* Find the first line in which any rank differs from the reference, and append to *story the line
** of that rank and the line of the reference. If no rank differs, append nothing. a[na]: the lines
** of this rank; r[nr]: those of the reference. */
static mgrid_status tell_line(const mgrid_peers *all, const line *a, size_t na, const line *r,
                              size_t nr, int64_t reference, mgrid_text *story, mgrid_error *err) {
  uint64_t first = first_difference(a, na, r, nr);
  uint64_t where = first << 32 | (first == UINT32_MAX ? UINT32_MAX : (uint64_t)all->backend->rank);
  mgrid_status s = mgrid_peers_min(all, &where, 1, err);
  if (s || where >> 32 == UINT32_MAX) return s;
  size_t i = where >> 32;
  int64_t who = (int64_t)(where & UINT32_MAX);
  char here[sizeof a->text];
  memset(here, 0, sizeof here);
  snprintf(here, sizeof here, "%s", i < na ? a[i].text : "nothing");
  s = mgrid_peers_tell(all, (uint64_t)who, here, sizeof here, err);
  if (s) return s;
  mgrid_show(here, sizeof here);
  mgrid_text_add(story, "%s rank %" PRId64 " has \"%s\", rank %" PRId64 " has \"%s\"",
                 story->len ? ";" : "", who, here, reference, i < nr ? r[i].text : "nothing");
  return MGRID_OK;
}

/* Every rank has a plan, but the plans differ. Fail with the first differences from the plan of
** rank `reference`, and list the ranks that differ from it. */
static mgrid_status agree_explain(const mgrid_peers *all, const mgrid_plan *plan,
                                  const uint64_t *digest, int64_t reference, mgrid_error *err) {
  sheet mine = { 0 }, theirs = { 0 };
  mgrid_text story = { 0 };
  mgrid_status s = make_sheet(&mine, plan, err);

  s = mgrid_verdict(all->backend, s, err, err);
  if (!s) s = get_reference(all, &mine, reference, &theirs, err);
  if (!s) /* families before the head, because they matter more */
    s = tell_line(all, mine.at + mine.nhead, mine.n - mine.nhead, theirs.at + theirs.nhead,
                  theirs.n - theirs.nhead, reference, &story, err);
  if (!s) s = tell_line(all, mine.at, mine.nhead, theirs.at, theirs.nhead, reference, &story, err);
  if (!s && story.len == 0)
    mgrid_text_str(&story,
                   " the groups are the same, but not the text of the recipe, and it has policies");
  if (!s) {
    mgrid_text_add(&story, "; differing from rank %" PRId64 ": ", reference);
    list_ranks(&story, digest, all->backend->world, reference);
    s = story.failed
            ? mgrid_oom(err)
            : mgrid_fail(err, MGRID_DISAGREE, "ranks do not have the same plan:%s", story.data);
  }
  free(mine.at);
  free(theirs.at);
  mgrid_text_free(&story);
  return s;
}

/* Some ranks have no plan. Give all ranks the error of the first rank without a plan. */
static mgrid_status tell_failure(mgrid_backend *b, const uint64_t *digest,
                                 const mgrid_error *failed, mgrid_error *err) {
  mgrid_error first = MGRID_ERROR_INIT;
  int64_t who = 0, n = 0;
  for (int64_t r = b->world - 1; r >= 0; r--)
    if (digest[MGRID_MET * r] != MGRID_OK) who = r, n++;
  if (b->rank == who) mgrid_error_replace(&first, failed);
  mgrid_status s = mgrid_hear(b, (uint64_t)who, &first, sizeof first, err);
  if (s) return s;
  mgrid_error_heard(&first);
  return mgrid_fail(err, MGRID_DISAGREE,
                    "ranks do not have the same plan: rank %" PRId64 "%s has none (%.800s)", who,
                    n > 1 ? " and others" : "", first.message);
}

mgrid_status mgrid_agree_in(mgrid_backend *b, uint64_t call, const mgrid_plan *plan, bool alike,
                            const mgrid_error *failed, mgrid_error *err) {
  mgrid_error mine = MGRID_ERROR_INIT, told = MGRID_ERROR_INIT;

  if (!plan) {
    if (failed && failed->status)
      mgrid_error_replace(&mine, failed);
    else
      mgrid_fail(&mine, MGRID_USAGE, "no plan was given");
  } else if (mgrid_plan_world(plan) != b->world) {
    mgrid_fail(&mine, MGRID_REFUSED,
               "the plan is for %" PRId64 " ranks, the communicator has %" PRId64,
               mgrid_plan_world(plan), b->world);
    plan = NULL;
  }
  mgrid_meeting met = { .call = call, .have = plan, .status = mine.status };
  if (plan) met.first = plan->digest[0], met.second = plan->digest[1] ^ plan->content.policies;
  mgrid_status s = mgrid_meet_over(b, &met, &told);
  if (!s && met.none && alike) s = b->ops->bcast(b, &mine, sizeof mine, 0, &told);
  if (!s && met.none) {
    if (err && err == failed) mgrid_error_clear(err);
    return mgrid_error_pass(err, &mine);
  }
  if (!s && met.all) return MGRID_OK;
  const mgrid_peers all = mgrid_peers_all(b);
  bool have = plan != NULL;
  for (int64_t r = 0; r < b->world && !s; r++) have &= met.each[MGRID_MET * r] == MGRID_OK;
  if (!s)
    s = have ? agree_explain(&all, plan, met.each, majority(met.each, b->world), &told)
             : tell_failure(b, met.each, &mine, &told);
  free(met.each);

  /* *err becomes the error that all ranks return */
  if (err && err == failed) mgrid_error_clear(err);
  return mgrid_error_pass(err, &told);
}

mgrid_status mgrid_agree(mgrid_backend *b, const mgrid_plan *plan, const mgrid_error *failed,
                         mgrid_error *err) {
  mgrid_status s = b ? mgrid_layout_check(b->layout, "the backend's library", err) : MGRID_USAGE;
  if (s) return s;
  uint64_t call = mgrid_meet_call(b, true, "agree on a plan");
  return mgrid_agree_in(b, plan ? call : MGRID_ANY_PLAN, plan, false, failed, err);
}
