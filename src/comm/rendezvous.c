/* SPDX-License-Identifier: MIT
**
** rendezvous.c - the rendezvous with which most calls over all ranks begin: one all-reduce of 64
** bytes, the same size for all calls. Ranks that make different calls, or hold different states,
** still meet in this all-reduce, and all get an error. So no rank waits for a call that the others
** do not make.
*/
#include "comm/compare.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

/* The words of the all-reduce; every rank gets the minimum of each. A rank brings the digest of an
** mgrid_meeting and its number `least`, or no digest. [2]: two words, a value and its complement,
** as mgrid_pair_words writes them. If two ranks have different values a < b, the minimums are a and
** ~b, which are not complements. */
enum {
  /* 1 + this rank's `least`, so that all ranks get the smallest one; 0: this rank has no digest */
  HAVE,
  MISS, /* 1: this rank has no digest; else 0 */
  /* [2]: the first half of the digest, xor the call; so ranks in different calls differ here */
  FIRST,
  SECOND = 4, /* [2]: the second half of the digest xor the call */
  /* [2]: this rank's node. Used until the nodes of all ranks are known, which is before the first
  ** state is made */
  NODE = 6,
  /* [2]: a digest of this rank's states. Used once the nodes are known. A rank that has left a
  ** state (mgrid_state_leave) writes UINT64_MAX into both words, which changes no minimum */
  STATES = 6,
  WORDS = 8
};

/* What a rank tells the others about itself when calls or states differ. */
typedef struct side {
  int64_t rank;
  /* when states are compared one by one: a hash of the name of the nth state; 0: there is none */
  uint64_t hash;
  char doing[96];   /* the call in which the rank is */
  char states[240]; /* the names of its states, cut if they are longer */
  char version[24]; /* the version of its library */
} side;

/* Return whether ranks compare this state: all of them have it. */
static bool rendezvous_counts(const mgrid_state *s) { return s->made && !s->partial; }

/* Return a digest of this rank's states, never 0. */
static uint64_t states_of(const mgrid_backend *b) {
  uint64_t h = 0;
  for (const mgrid_state *s = b->states; s; s = s->next)
    if (rendezvous_counts(s)) h = XXH3_64bits_withSeed(s->name, strlen(s->name) + 1, h);
  return h | 1;
}

uint64_t mgrid_meet_call(mgrid_backend *b, bool plans, const char *fmt, ...) {
  char whole[1024]; /* longer than b->doing, so that calls with long names get different digests */
  va_list args;
  va_start(args, fmt);
  int n = mgrid_vformat(whole, sizeof whole, fmt, args);
  va_end(args);
  mgrid_format(b->doing, sizeof b->doing, "%s", whole);
  mgrid_text_ellipsis(b->doing, sizeof b->doing, n < 0 ? 0 : (size_t)n);
  uint64_t h =
      XXH3_64bits_withSeed(MGRID_VERSION, strlen(MGRID_VERSION), XXH3_64bits(whole, strlen(whole)));
  return (h | MGRID_ANY_PLAN) - !plans; /* the lowest bit is `plans`, which goes_with reads */
}

static side side_of(const mgrid_backend *b) {
  side mine = { .rank = b->rank, .version = MGRID_VERSION };
  size_t at = 0;
  snprintf(mine.doing, sizeof mine.doing, "%s", b->doing);
  for (const mgrid_state *s = b->states; s && at < sizeof mine.states; s = s->next)
    if (rendezvous_counts(s))
      at += (size_t)snprintf(mine.states + at, sizeof mine.states - at, "%s'%s'", at ? ", " : "",
                             s->name);
  return mine;
}

/* Replace control characters in the texts of another rank. */
static void rendezvous_clean(side *told) {
  mgrid_show(told->doing, sizeof told->doing);
  mgrid_show(told->states, sizeof told->states);
  mgrid_show(told->version, sizeof told->version);
}

/* Broadcast the sides of the ranks `one` and `who` to all ranks. */
static mgrid_status broadcast_sides(mgrid_backend *b, int64_t one, side *first, int64_t who,
                                    side *other, mgrid_error *err) {
  mgrid_status s = mgrid_hear(b, (uint64_t)one, first, sizeof *first, err);
  if (!s) s = mgrid_hear(b, (uint64_t)who, other, sizeof *other, err);
  rendezvous_clean(first), rendezvous_clean(other);
  return s;
}

/* Set the states of a side to the nth state alone. */
static void show_state(const mgrid_backend *b, side *mine, size_t nth) {
  const mgrid_state *s = b->states;
  while (s && (!rendezvous_counts(s) || nth-- > 0)) s = s->next;
  mine->hash = s ? XXH3_64bits(s->name, strlen(s->name)) | 1 : 0;
  snprintf(mine->states, sizeof mine->states, s ? "'%s'" : "%s", s ? s->name : "");
}

/* The lists of states are equal as far as they fit into side.states. So compare the states of the
** two ranks one by one, until two differ. */
static mgrid_status find_unlike(mgrid_backend *b, int64_t one, side *first, int64_t who,
                                side *other, mgrid_error *err) {
  mgrid_status s = MGRID_OK;
  for (size_t nth = 0; !s; nth++) {
    /* on other ranks, the broadcast below overwrites this */
    show_state(b, b->rank == one ? first : other, nth);
    s = broadcast_sides(b, one, first, who, other, err);
    if (first->hash != other->hash || !first->hash) break;
  }
  return s;
}

/* Fail, and say what differs between two sides: their calls, else their versions, else their
** states. */
static mgrid_status fail_unlike(const side *a, const side *o, mgrid_error *err) {
  const char *what = "have unlike states", *verb = "has", *x = a->states, *y = o->states;
  const char *remedy = "a state must be freed on all ranks; a rank that is in none of its "
                       "groups may leave it instead (mgrid_state_leave)";
  if (strcmp(a->doing, o->doing) != 0)
    what = "make unlike calls", verb = "is in", x = a->doing, y = o->doing,
    remedy = "all ranks must make the same calls in the same order";
  else if (strcmp(a->version, o->version) != 0)
    what = "have unlike versions of moongrid", x = a->version, y = o->version,
    remedy = "install one version on all nodes";
  return mgrid_fail(err, MGRID_DISAGREE,
                    "ranks %s: rank %" PRId64 " %s %s, rank %" PRId64 " %s %s; %s", what, a->rank,
                    verb, *x ? x : "none", o->rank, verb, *y ? y : "none", remedy);
}

/* Return whether a rank in the call `other` may meet a rank in `call`. A rank without a plan fits
** every call in which ranks agree on a plan. */
static bool goes_with(uint64_t call, uint64_t other) {
  return call == other || (other == MGRID_ANY_PLAN && (call & MGRID_ANY_PLAN));
}

/* Look for two ranks whose calls or states differ, and fail with both sides; MGRID_OK: there are
** none. If calls differ, the two are the first rank that names its call, and the first rank with
** another call. Else they are the first rank that reports its states, and the first that reports
** others. each: MGRID_MET words for each rank. Word 3 is its call. Word 4 is a digest of its
** states, or 0 if it does not report them. */
static mgrid_status look_for_unlike(mgrid_backend *b, const uint64_t *each, mgrid_error *err) {
  int64_t one = 0, who = 0;
  bool states = false;
  while (one < b->world - 1 && each[MGRID_MET * one + 3] == MGRID_ANY_PLAN) one++;
  while (who < b->world && goes_with(each[MGRID_MET * one + 3], each[MGRID_MET * who + 3])) who++;
  if (who >= b->world) {
    states = true, one = who = 0;
    while (one < b->world - 1 && !each[MGRID_MET * one + 4]) one++;
    while (
        who < b->world
        && (!each[MGRID_MET * who + 4] || each[MGRID_MET * who + 4] == each[MGRID_MET * one + 4]))
      who++;
  }
  if (who >= b->world) return MGRID_OK;
  side first = side_of(b), other = first;
  mgrid_status s = broadcast_sides(b, one, &first, who, &other, err);
  if (!s && states && strcmp(first.states, other.states) == 0)
    s = find_unlike(b, one, &first, who, &other, err);
  return s ? s : fail_unlike(&first, &other, err);
}

/* Return whether all ranks that report their states have the same ones. A rank that has left a
** state reports nothing until the others have freed this state, too. */
static bool same_states(mgrid_backend *b, const uint64_t pair[2]) {
  if (pair[0] == UINT64_MAX && pair[1] == UINT64_MAX) return true; /* no rank reports */
  if (mgrid_pair_same(pair) && pair[0] == states_of(b)) b->left = false;
  return mgrid_pair_same(pair);
}

mgrid_status mgrid_meet_over(mgrid_backend *b, mgrid_meeting *m, mgrid_error *err) {
  mgrid_error told = MGRID_ERROR_INIT;
  uint64_t words[WORDS] = {
    m->have ? m->least + 1 : 0, !m->have, UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX, 0, 0
  };

  m->all = m->none = false, m->each = NULL;
  b->meetings++;
  if (m->have)
    mgrid_pair_words(words + FIRST, m->first ^ m->call),
        mgrid_pair_words(words + SECOND, m->second ^ m->call);
  const bool nodes_known = b->spread.nodes > 0;
  if (!nodes_known)
    mgrid_pair_words(words + NODE, mgrid_machine_id());
  else if (b->left)
    words[STATES] = words[STATES + 1] = UINT64_MAX;
  else
    mgrid_pair_words(words + STATES, states_of(b));
  if (b->ops->allreduce_min(b, words, WORDS, &told)) {
    mgrid_doing_add(b, &told);
    return mgrid_error_pass(err, &told);
  }
  if (!nodes_known && mgrid_pair_same(words + NODE)) /* all ranks are on one node */
    b->spread.nodes = 1, b->spread.local_size = b->world, b->spread.local_rank = b->rank;
  m->none = words[MISS] != 0;
  m->all = words[HAVE] != 0 && mgrid_pair_same(words + FIRST) && mgrid_pair_same(words + SECOND);
  if (nodes_known) m->all = same_states(b, words + STATES) && m->all;
  if (m->all) m->least = words[HAVE] - 1;
  if (m->all || m->none) return MGRID_OK;
  uint64_t own[MGRID_MET] = { m->status, m->have ? m->first : 0, m->have ? m->second : 0, m->call,
                              b->left ? 0 : states_of(b) };
  m->each = malloc((size_t)b->world * sizeof own);
  mgrid_status s = mgrid_verdict(b, m->each ? MGRID_OK : mgrid_oom(&told), &told, &told);
  if (!s) s = b->ops->allgather(b, own, m->each, sizeof own, &told);
  if (!s) s = look_for_unlike(b, m->each, &told);
  if (!s) return MGRID_OK;
  free(m->each);
  m->each = NULL;
  return mgrid_error_pass(err, &told);
}

mgrid_status mgrid_meet(mgrid_backend *b, uint64_t call, mgrid_error *err) {
  mgrid_meeting m = { .call = call, .have = true };
  mgrid_status s = mgrid_meet_over(b, &m, err);
  free(m.each);
  return s;
}
