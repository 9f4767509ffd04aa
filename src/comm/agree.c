/* SPDX-License-Identifier: MIT
**
** agree.c - do all ranks hold the same plan? One all-reduce of 64 bytes when they do, which also
** tells whether they all are on one machine. When they do not, a few more exchanges tell every rank
** the same story: what differs first, and who.
*/
#include "comm/state.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

/* One line of the canonical text: compared by hash, shown by its beginning. */
typedef struct line {
  uint64_t hash[2];
  char     text[176];
} line;

typedef struct sheet { /* lines of the head (world, parameters, grids), then families */
  size_t nhead, n;
  line  *at;
} sheet;

static mg_status add_lines(sheet *s, const char *text) {
  while (*text) {
    const char *end = strchr(text, '\n');
    size_t      len = end ? (size_t)(end - text) : strlen(text);
    line       *more = realloc(s->at, (s->n + 1) * sizeof *more);
    if (!more) return MG_LIMIT;
    s->at = more;
    line *l = &more[s->n++];
    memset(l, 0, sizeof *l);
    XXH128_hash_t h = XXH3_128bits(text, len);
    l->hash[0] = h.high64, l->hash[1] = h.low64;
    if (len < sizeof l->text) {
      memcpy(l->text, text, len);
    } else {
      memcpy(l->text, text, sizeof l->text - 4);
      memcpy(l->text + sizeof l->text - 4, "...", 4);
    }
    text = end ? end + 1 : text + len;
  }
  return MG_OK;
}

static mg_status make_sheet(sheet *s, const mg_plan *p, mg_error *err) {
  mg_text   t = { 0 };
  mg_status status = mg_plan_head_text(p, &t, err);
  if (!status && add_lines(s, t.data)) status = mg_oom(err);
  s->nhead = s->n;
  for (size_t i = 0; i < p->content.nentries && !status; i++) {
    mg_text_free(&t);
    status = mg_plan_entry_text(p, i, &t, err);
    if (!status && add_lines(s, t.data)) status = mg_oom(err);
  }
  mg_text_free(&t);
  return status;
}

/* Index of the first line of [from, to) in which two sheets differ; UINT32_MAX for none. */
static uint64_t first_difference(const line *a, size_t na, const line *b, size_t nb) {
  for (size_t i = 0; i < na || i < nb; i++)
    if (i >= na || i >= nb || memcmp(a[i].hash, b[i].hash, sizeof a->hash) != 0) return i;
  return UINT32_MAX;
}

/* Who differs from the reference: "ranks 2, 3, 7 and 5 more". */
static void list_ranks(mg_text *t, const uint64_t *digest, int64_t world, int64_t reference) {
  enum { SHOWN = 8 };
  int64_t n = 0;
  for (int64_t r = 0; r < world; r++) {
    if (memcmp(&digest[3 * r], &digest[3 * reference], 3 * sizeof *digest) == 0) continue;
    if (n++ < SHOWN) mg_text_add(t, "%s%" PRId64, n > 1 ? ", " : "", r);
  }
  if (n > SHOWN) mg_text_add(t, " and %" PRId64 " more", n - SHOWN);
}

/* The lowest rank that holds the most frequent plan. O(world x different plans). */
static int64_t majority(const uint64_t *digest, int64_t world) {
  int64_t best = 0, most = 0;
  for (int64_t r = 0; r < world && most <= world / 2; r++) {
    int64_t n = 0;
    if (digest[3 * r] != MG_OK) continue;
    for (int64_t k = 0; k < world; k++) n += memcmp(&digest[3 * k], &digest[3 * r], 3 * sizeof *digest) == 0;
    if (n > most) most = n, best = r;
  }
  return best;
}

/* One side of a difference: what rank `from` has at line i of a section, or that it has none. */
static mg_status exchange_line(mg_backend *b, const line *at, size_t n, uint64_t i, int64_t from, char *text,
                               size_t size, mg_error *err) {
  memset(text, 0, size);
  if (b->rank == from) snprintf(text, size, "%s", i < n ? at[i].text : "nothing");
  return b->ops->bcast(b, text, size, from, err);
}

/* All ranks have a plan; tell what differs between the reference and the first that differs. */
static mg_status explain(mg_backend *b, const mg_plan *plan, const uint64_t *digest, int64_t reference,
                         mg_error *err) {
  sheet     mine = { 0 }, theirs = { 0 };
  mg_text   story = { 0 };
  uint64_t  count[2] = { 0, 0 };
  mg_status s = make_sheet(&mine, plan, err);
  s = mg_verdict(b, s, err, err);
  if (!s) {
    count[0] = mine.nhead, count[1] = mine.n;
    s = b->ops->bcast(b, count, sizeof count, reference, err);
  }
  if (!s) {
    theirs.nhead = count[0], theirs.n = count[1];
    theirs.at = calloc(theirs.n + 1, sizeof *theirs.at);
    if (theirs.at && b->rank == reference) memcpy(theirs.at, mine.at, mine.n * sizeof *mine.at);
    s = mg_verdict(b, theirs.at ? MG_OK : mg_oom(err), err, err);
  }
  if (!s) s = b->ops->bcast(b, theirs.at, theirs.n * sizeof *theirs.at, reference, err);
  for (int section = 1; section >= 0 && !s; section--) { /* families first: they matter more */
    const line *a = section ? mine.at + mine.nhead : mine.at;
    const line *r = section ? theirs.at + theirs.nhead : theirs.at;
    size_t      na = section ? mine.n - mine.nhead : mine.nhead;
    size_t      nr = section ? theirs.n - theirs.nhead : theirs.nhead;
    uint64_t    first = first_difference(a, na, r, nr);
    uint64_t    where = first << 32 | (first == UINT32_MAX ? UINT32_MAX : (uint64_t)b->rank);
    if ((s = b->ops->allreduce_min(b, &where, 1, err)) || where >> 32 == UINT32_MAX) continue;
    char    here[sizeof a->text], there[sizeof a->text];
    int64_t who = (int64_t)(where & UINT32_MAX);
    s = exchange_line(b, a, na, where >> 32, who, here, sizeof here, err);
    if (!s) s = exchange_line(b, a, na, where >> 32, reference, there, sizeof there, err);
    if (!s)
      mg_text_add(&story, "%s rank %" PRId64 " has \"%s\", rank %" PRId64 " has \"%s\"", story.len ? ";" : "", who,
                  here, reference, there);
  }
  if (!s && story.len == 0)
    mg_text_str(&story, " the groups are the same, but not the text of the recipe, and it has policies");
  if (!s) {
    mg_text_add(&story, "; differing from rank %" PRId64 ": ", reference);
    list_ranks(&story, digest, b->world, reference);
    s = story.failed ? mg_oom(err) : mg_fail(err, MG_DISAGREE, "ranks do not have the same plan:%s", story.data);
  }
  free(mine.at);
  free(theirs.at);
  mg_text_free(&story);
  return s;
}

/* Some ranks have a plan and some do not: pass on the first failure. */
static mg_status tell_failure(mg_backend *b, const uint64_t *digest, const mg_error *failed, mg_error *err) {
  mg_error first = { 0 };
  int64_t  who = 0, n = 0;
  for (int64_t r = b->world - 1; r >= 0; r--)
    if (digest[3 * r] != MG_OK) who = r, n++;
  if (b->rank == who && failed) first = *failed;
  mg_status s = b->ops->bcast(b, &first, sizeof first, who, err);
  if (s) return s;
  mg_fail(err, MG_DISAGREE, "ranks do not have the same plan: rank %" PRId64 "%s has none (%.800s)", who,
          n > 1 ? " and others" : "", first.message);
  return MG_DISAGREE;
}

mg_status mg_agree(mg_backend *b, const mg_plan *plan, const mg_error *failed, mg_error *err) {
  mg_error mine; /* err may be the same object as failed */
  if (!b) return MG_USAGE;
  memset(&mine, 0, sizeof mine);
  if (!plan) {
    if (failed && failed->status)
      mine = *failed;
    else
      mg_fail(&mine, MG_USAGE, "no plan was given");
  } else if (mg_plan_world(plan) != b->world) {
    mg_fail(&mine, MG_REFUSED, "the plan is for %" PRId64 " ranks, the communicator has %" PRId64,
            mg_plan_world(plan), b->world);
    plan = NULL;
  }
  uint64_t d0 = plan ? plan->digest[0] : 0, d1 = plan ? plan->digest[1] ^ plan->content.policies : 0;
  uint64_t words[8] = { plan ? 1 : 0, plan ? 0 : 1, UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX, 0, 0 };
  if (plan) words[2] = d0, words[3] = d1, words[4] = ~d0, words[5] = ~d1;
  if (!b->place.hosts) words[6] = mg_machine_id(), words[7] = ~words[6];
  mg_status s = b->ops->allreduce_min(b, words, 8, err);
  if (s) return s;
  if (words[6] == ~words[7]) /* all ranks are on one machine */
    b->place.hosts = 1, b->place.local_size = b->world, b->place.local_rank = b->rank;
  if (words[1] != 0) { /* nobody has a plan: to each its own reason */
    if (err) *err = mine;
    return mine.status;
  }
  if (words[0] == 1 && words[2] == ~words[4] && words[3] == ~words[5]) return MG_OK;
  uint64_t *digest = malloc((size_t)b->world * 3 * sizeof *digest), own[3] = { mine.status, d0, d1 };
  s = mg_verdict(b, digest ? MG_OK : mg_oom(err), err, err);
  if (!s) s = b->ops->allgather(b, own, digest, sizeof own, err);
  if (!s) s = words[0] == 0 ? tell_failure(b, digest, &mine, err) : explain(b, plan, digest, majority(digest, b->world), err);
  free(digest);
  return s;
}
