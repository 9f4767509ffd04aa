/* SPDX-License-Identifier: MIT
**
** meet.c - every call of ours over all ranks begins with a meeting: one all-reduce of 64 bytes, equal in size for all
** of them. So ranks that make unlike calls, or make them beside other states, meet and are told; none waits for what
** will not come.
*/
#include "comm/compare.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

/* Words of the one all-reduce; every rank gets the minimum of each. */
enum {
  HAVE,        /* this rank has what is compared: 1 + its `least`; else 0 */
  MISS,        /* 1: this rank has none */
  FIRST,       /* [2] its first half and the call, as mgrid_pair_words */
  SECOND = 4,  /* [2] the other half and the call */
  MACHINE = 6, /* [2] the machine of this rank */
  WORDS = 8
};

/* What ranks in unlike calls say. */
typedef struct side {
  int64_t rank;
  char    doing[96], states[240], version[24];
} side;

uint64_t mgrid_meet_call(mgrid_backend *b, bool plans, const char *fmt, ...) {
  va_list args;
  va_start(args, fmt);
  vsnprintf(b->doing, sizeof b->doing, fmt, args);
  va_end(args);
  uint64_t h = XXH3_64bits_withSeed(MGRID_VERSION, strlen(MGRID_VERSION), XXH3_64bits(b->doing, strlen(b->doing)));
  for (const mgrid_state *s = b->states; s; s = s->next)
    if (!s->partial && s->name) h = XXH3_64bits_withSeed(s->name, strlen(s->name) + 1, h);
  return (h | MGRID_ANY_PLAN) - !plans;
}

static side side_of(const mgrid_backend *b) {
  side   mine = { .rank = b->rank, .version = MGRID_VERSION };
  size_t at = 0;
  snprintf(mine.doing, sizeof mine.doing, "%s", b->doing);
  for (const mgrid_state *s = b->states; s && at < sizeof mine.states; s = s->next)
    if (!s->partial && s->name)
      at += (size_t)snprintf(mine.states + at, sizeof mine.states - at, "%s'%s'", at ? ", " : "", s->name);
  return mine;
}

/* Two sides of the difference: the calls; if they are the same the versions; else the states. */
static mgrid_status tell(const side *a, const side *o, mgrid_error *err) {
  const char *what = "have unlike states", *verb = "has", *x = a->states, *y = o->states;
  const char *remedy = "all make the same calls in one order";
  if (strcmp(a->doing, o->doing) != 0)
    what = "make unlike calls", verb = "is in", x = a->doing, y = o->doing;
  else if (strcmp(a->version, o->version) != 0)
    what = "have unlike versions of moongrid", x = a->version, y = o->version, remedy = "install one on all hosts";
  return mgrid_fail(err, MGRID_DISAGREE, "ranks %s: rank %" PRId64 " %s %s, rank %" PRId64 " %s %s; %s", what, a->rank,
                    verb, *x ? x : "none", o->rank, verb, *y ? y : "none", remedy);
}

static void hear(side *told) {
  mgrid_show(told->doing, sizeof told->doing);
  mgrid_show(told->states, sizeof told->states);
  mgrid_show(told->version, sizeof told->version);
}

static bool goes_with(uint64_t call, uint64_t other) {
  return call == other || (other == MGRID_ANY_PLAN && (call & MGRID_ANY_PLAN));
}

/* Two ranks in unlike calls speak: the first that names its call, and the first that does not go with it. */
static mgrid_status look_for_unlike(mgrid_backend *b, const uint64_t *each, mgrid_error *err) {
  int64_t one = 0, who = 0;
  while (one < b->world - 1 && each[MGRID_MET * one + 3] == MGRID_ANY_PLAN) one++;
  while (who < b->world && goes_with(each[MGRID_MET * one + 3], each[MGRID_MET * who + 3])) who++;
  if (who >= b->world) return MGRID_OK;
  side         first = side_of(b), other = first;
  mgrid_status s = mgrid_hear(b, (uint64_t)one, &first, sizeof first, err);
  if (!s) s = mgrid_hear(b, (uint64_t)who, &other, sizeof other, err);
  if (s) return s;
  hear(&first), hear(&other);
  return tell(&first, &other, err);
}

mgrid_status mgrid_meet_over(mgrid_backend *b, mgrid_meeting *m, mgrid_error *err) {
  mgrid_error told = MGRID_ERROR_INIT;
  uint64_t    words[WORDS] = {
       m->have ? m->least + 1 : 0, !m->have, UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX, 0, 0
  };
  m->all = m->none = false, m->each = NULL;
  b->meetings++;
  if (m->have)
    mgrid_pair_words(words + FIRST, m->first ^ m->call), mgrid_pair_words(words + SECOND, m->second ^ m->call);
  if (!b->place.machines) mgrid_pair_words(words + MACHINE, mgrid_machine_id());
  if (b->ops->allreduce_min(b, words, WORDS, &told)) {
    mgrid_doing_add(b, &told);
    return mgrid_error_pass(err, &told);
  }
  if (mgrid_pair_same(words + MACHINE)) /* all ranks are on one machine */
    b->place.machines = 1, b->place.local_size = b->world, b->place.local_rank = b->rank;
  m->none = words[MISS] != 0;
  m->all = words[HAVE] != 0 && mgrid_pair_same(words + FIRST) && mgrid_pair_same(words + SECOND);
  if (m->all) m->least = words[HAVE] - 1;
  if (m->all || m->none) return MGRID_OK;
  uint64_t own[MGRID_MET] = { m->status, m->have ? m->first : 0, m->have ? m->second : 0, m->call };
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
  mgrid_status  s = mgrid_meet_over(b, &m, err);
  free(m.each);
  return s;
}
