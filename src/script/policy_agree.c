/* SPDX-License-Identifier: MIT
**
** policy_agree.c - a policy that is agreed cannot split the job: one that failed somewhere, or gave
** something else, is an error everywhere, and everybody is told of two ranks that differ.
*/
#include "script/policy.h"
#include "types/values.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

/* What one rank tells the others; whole words, since GPUs carry it too. */
typedef struct answer {
  int64_t hash; /* of the result, 0 or more; 0: it failed */
  int64_t rank;
  char    text[240];
} answer;

enum { ANSWER_WORDS = sizeof(answer) / sizeof(int64_t) };

mgrid_status mgrid_policy_open_circle(mgrid_policy *p, mgrid_error *err) {
  mgrid_backend     *b = p->state->backend;
  const mgrid_group *g = strcmp(p->agreed, "world") == 0 || !*p->agreed ? NULL
                                                                        : mgrid_state_group(p->state, p->agreed, NULL);
  if (!g || mgrid_group_size(g) == 1 || !b->ops->collective) return MGRID_OK; /* the world; or alone, or a dry state */
  p->buffer = b->ops->buffer_new(b, mgrid_group_kind(g), sizeof(answer), err);
  p->group = g;
  return p->buffer ? MGRID_OK : MGRID_BACKEND;
}

void mgrid_policy_close_circle(mgrid_policy *p) {
  if (p->buffer) p->state->backend->ops->buffer_free(p->state->backend, mgrid_group_kind(p->group), p->buffer);
}

/* One collective over the group, in place. */
static mgrid_status over_group(const mgrid_policy *p, mgrid_call call, int64_t root, int64_t *data, size_t n,
                               mgrid_error *err) {
  mgrid_backend *b = p->state->backend;
  const char    *kind = mgrid_group_kind(p->group);
  mgrid_work     w = { .call = call,
                       .type = MGRID_INT64,
                       .reduction = MGRID_MIN,
                       .send = p->buffer,
                       .recv = p->buffer,
                       .count = n,
                       .root = root };
  mgrid_status   s = b->ops->copy(b, kind, p->buffer, data, n * sizeof *data, true, err);
  if (!s) s = mgrid_group_work(p->group, &w, err);
  if (!s) s = b->ops->copy(b, kind, data, p->buffer, n * sizeof *data, false, err);
  return s;
}

static mgrid_status minimum(const mgrid_policy *p, int64_t *words, size_t n, mgrid_error *err) {
  mgrid_backend *b = p->state->backend;
  if (p->group) return over_group(p, MGRID_ALLREDUCE, 0, words, n, err);
  return b->ops->allreduce_min(b, (uint64_t *)words, n, err); /* none is negative */
}

static mgrid_status tell(const mgrid_policy *p, answer *a, int64_t position, mgrid_error *err) {
  mgrid_backend *b = p->state->backend;
  if (p->group) return over_group(p, MGRID_BROADCAST, position, (int64_t *)a, ANSWER_WORDS, err);
  return b->ops->bcast(b, a, sizeof *a, position, err);
}

/* The result in canonical text, which equal values have alike on every rank; NULL: there is none. */
static char *canonical(const mgrid_policy *p) {
  lua_State *L = p->rt->L;
  lua_rawgeti(L, LUA_REGISTRYINDEX, p->result);
  json_t *v = mgrid_json_of(L, -1);
  lua_settop(L, 0);
  char *text = v ? json_dumps(v, JSON_COMPACT | JSON_SORT_KEYS | JSON_ENCODE_ANY) : NULL;
  json_decref(v);
  return text;
}

static answer answer_of(const mgrid_policy *p, mgrid_status status, const mgrid_error *failed) {
  char  *text = status ? NULL : canonical(p);
  answer a = { .hash = text     ? (int64_t)(XXH3_64bits(text, strlen(text)) >> 1 | 2)
                       : status ? 0
                                : 1,
               .rank = p->state->view.rank };
  if (text)
    snprintf(a.text, sizeof a.text, "returned %.200s", text);
  else if (status)
    snprintf(a.text, sizeof a.text, "failed (%.200s)", failed->message);
  else
    snprintf(a.text, sizeof a.text, "returned what ranks cannot compare");
  free(text);
  return a;
}

/* The first rank, and the first of those that differ from it, each tell all what they have. */
static mgrid_status tell_difference(const mgrid_policy *p, const answer *mine, mgrid_error *err) {
  int64_t      position = p->group ? mgrid_group_rank(p->group) : mine->rank;
  answer       first = *mine, other = *mine;
  mgrid_status s = tell(p, &first, 0, err);
  int64_t      who = first.hash == mine->hash ? INT64_MAX : position;
  if (!s) s = minimum(p, &who, 1, err);
  if (!s) s = tell(p, &other, who, err);
  if (s) return s;
  s = mgrid_fail(err, MGRID_DISAGREE,
                 "%spolicy '%s' is agreed by %s%s, and ranks differ: rank %" PRId64 " %.239s, rank %" PRId64 " %.239s",
                 p->where, p->name, p->group ? "" : "the ", p->agreed, first.rank, first.text, other.rank, other.text);
  mgrid_budget_position(err);
  return s;
}

mgrid_status mgrid_policy_agree(mgrid_policy *p, mgrid_status status, mgrid_error *err) {
  bool         alone = !p->group && strcmp(p->agreed, "world") != 0;
  answer       mine = answer_of(p, status, err);
  int64_t      words[2] = { mine.hash, INT64_MAX - mine.hash };
  mgrid_error  why = { 0 };
  mgrid_status s = alone ? MGRID_OK : minimum(p, words, 2, &why);
  if (!s && words[0] != INT64_MAX - words[1]) s = tell_difference(p, &mine, &why);
  if (!s && !status && mine.hash == 1) {
    s = mgrid_fail(&why, MGRID_REFUSED,
                   "%spolicy '%s' is agreed, and returned what ranks cannot compare: a number that is not "
                   "finite, text that is not UTF-8, or a table that is neither a list nor by name",
                   p->where, p->name);
  }
  if (status && s != MGRID_BACKEND) return status; /* its own error is the one to see */
  if (s) mgrid_policy_place(p, &why), *err = why;
  return s;
}
