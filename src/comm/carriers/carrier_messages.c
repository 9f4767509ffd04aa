/* SPDX-License-Identifier: MIT
**
** carrier_messages.c - messages and notices between two ranks, over the host's functions. If the
** host has only a store, a message is a value under a key. The key contains the number of the call,
** so no rank takes a message of an earlier call for one of this call.
*/
#include "comm/carriers/carrier.h"

#include <inttypes.h>
#include <stdlib.h>

mgrid_status mgrid_relay_failed(mgrid_relay *m, mgrid_status s, const char *call,
                                mgrid_error *err) {
  const char *why = m->host.reason ? m->host.reason(m->host.ud) : NULL;
  return mgrid_fail(err, MGRID_BACKEND, "%s: %s failed: %.300s", m->base.kind->name, call,
                    why && *why ? why : mgrid_status_text(s));
}

enum { KEY = 128 };

static void key_of(const mgrid_relay *m, char key[KEY], uint64_t number, int tag, uint64_t nth,
                   int64_t from, int64_t to) {
  snprintf(key, KEY, "moongrid.%" PRIu64 ".%" PRIu64 ".%d.%" PRIu64 ".%" PRId64 "-%" PRId64,
           m->opened, number, tag, nth, from, to);
}

/* Return the tag that the host gets: the lowest 15 bits of `number`, and `tag`. It repeats after
** 32768 calls or phases. */
static int wire_tag(uint64_t number, int tag) { return (int)((number & 0x7fff) << 16) | tag; }

mgrid_status mgrid_relay_post(mgrid_relay *m, uint64_t number, int tag, uint64_t nth, int64_t to,
                              const void *data, size_t bytes, double seconds, mgrid_error *err) {
  char key[KEY];
  mgrid_status s;
  if (m->host.send) {
    s = m->host.send(m->host.ud, to, wire_tag(number, tag), data, bytes, seconds);
    if (s == MGRID_TIMED_OUT)
      return mgrid_fail(err, s, "rank %" PRId64 " did not take a message within %.3g seconds", to,
                        seconds);
  } else {
    key_of(m, key, number, tag, nth, m->base.rank, to);
    s = m->host.put(m->host.ud, key, data, bytes);
  }
  return s ? mgrid_relay_failed(m, s, m->host.send ? "send" : "put", err) : MGRID_OK;
}

/* Receive a message, or get it from the store, within `seconds`. */
static mgrid_status messages_look(mgrid_relay *m, const char *key, int64_t from, int tag,
                                  void *data, size_t bytes, double seconds) {
  if (m->host.recv) return m->host.recv(m->host.ud, from, tag, data, bytes, seconds);
  mgrid_status s = m->host.get(m->host.ud, from, key, data, bytes, seconds);
  /* a value that is not erased does no harm */
  if (!s && m->host.erase) (void)m->host.erase(m->host.ud, key);
  return s;
}

mgrid_outcome mgrid_relay_take(mgrid_relay *m, uint64_t number, int tag, uint64_t nth, int64_t from,
                               void *data, size_t bytes, double until, int64_t *who,
                               mgrid_error *err) {
  const double longest = 0.25; /* seconds between two looks for a notice, at most */
  char key[KEY];
  key_of(m, key, number, tag, nth, from, m->base.rank);
  for (double slice = 0.01;; slice = slice < longest / 2 ? 2 * slice : longest) {
    double left = until - mgrid_now(), seconds = left < slice ? left : slice;
    mgrid_status s =
        messages_look(m, key, from, wire_tag(number, tag), data, bytes, seconds > 0 ? seconds : 0);
    if (s != MGRID_TIMED_OUT)
      return s ? mgrid_relay_failed(m, s, m->host.recv ? "recv" : "get", err) : MGRID_OK;
    if (left <= 0) return MGRID_LATE;
    if (who && (*who = mgrid_relay_heard(&m->base)) >= 0) return MGRID_GAVE_UP;
  }
}

mgrid_status mgrid_relay_enter(mgrid_relay *m, mgrid_error *err) {
  char key[KEY];
  if (!m->host.put) return MGRID_OK;
  snprintf(key, sizeof key, "moongrid.opened.%" PRId64, m->base.rank);
  mgrid_status s = m->host.get(m->host.ud, m->base.rank, key, &m->opened, sizeof m->opened, 0);
  if (s && s != MGRID_TIMED_OUT) return mgrid_relay_failed(m, s, "get", err);
  m->opened = s ? 0 : m->opened + 1;
  s = m->host.put(m->host.ud, key, &m->opened, sizeof m->opened);
  return s ? mgrid_relay_failed(m, s, "put", err) : MGRID_OK;
}

/* ---------------------------------------------------- messages of the nccl backend */

static uint64_t which_of(bool sent, int tag, int64_t peer) {
  return (uint64_t)sent << 63 | (uint64_t)tag << 32 | (uint64_t)peer;
}

static uint64_t *find_ordinal(const mgrid_relay *m, uint64_t which) {
  for (size_t i = 0; i < m->ordinals; i++)
    if (m->ordinal[i].which == which) return &m->ordinal[i].count;
  return NULL;
}

/* Return the address of the count of these messages in this phase. NULL: out of memory. */
static uint64_t *ordinal_of(mgrid_relay *m, uint64_t which) {
  uint64_t *there = find_ordinal(m, which);
  if (there) return there;
  if (!MGRID_ROOM(m->ordinal, m->room, m->ordinals + 1)) return NULL;
  m->ordinal[m->ordinals] = (mgrid_ordinal){ which, 0 };
  return &m->ordinal[m->ordinals++].count;
}

mgrid_outcome mgrid_relay_send(mgrid_backend *b, int64_t to, int tag, const void *data,
                               size_t bytes, double seconds, mgrid_error *err) {
  mgrid_relay *m = (mgrid_relay *)b;
  uint64_t *nth = ordinal_of(m, which_of(true, tag, to));
  if (!nth) return mgrid_oom(err);
  mgrid_status s = mgrid_relay_post(m, m->phase, tag, *nth, to, data, bytes, seconds, err);
  if (!s) ++*nth;
  return s;
}

mgrid_outcome mgrid_relay_recv(mgrid_backend *b, int64_t from, int tag, void *data, size_t bytes,
                               double seconds, mgrid_error *err) {
  mgrid_relay *m = (mgrid_relay *)b;
  uint64_t which = which_of(false, tag, from), *nth = ordinal_of(m, which);
  int64_t who;
  if (!nth) return mgrid_oom(err);
  mgrid_outcome outcome =
      mgrid_relay_take(m, m->phase, tag, *nth, from, data, bytes, mgrid_now() + seconds, &who, err);
  if (outcome == MGRID_LATE)
    return mgrid_fail(err, MGRID_TIMED_OUT, "rank %" PRId64 " did not come within %.3g seconds",
                      from, seconds);
  if (outcome == MGRID_GAVE_UP) mgrid_fail(err, MGRID_OTHER_RANK, "rank %" PRId64 " gave up", who);
  /* look for the count again, because a notice may have moved the list */
  if (!outcome) ++*find_ordinal(m, which);
  return outcome;
}

/* --------------------------------------------------------------------- notices
** In a store each rank has one key for the notices to it. Without a store, or if `get` of the store
** must name the rank that put the value (by_rank), a rank instead asks a few other ranks at each
** look, in turn. Looks are rare enough to keep the load of the store low. */

enum { ASKED = 16 }; /* how many ranks to ask at each look */

typedef struct notice {
  uint64_t from, count; /* the rank that gave up; how many notices it has sent */
} notice;

static bool has_notice_key(const mgrid_relay *m) { return m->host.put && !m->host.by_rank; }

static void notice_key_of(const mgrid_relay *m, char key[KEY], int64_t rank) {
  snprintf(key, KEY, "moongrid.%" PRIu64 ".%" PRIu64 ".notice.%" PRId64, m->opened, m->phase, rank);
}

void mgrid_relay_tell(mgrid_backend *b, int64_t to) {
  mgrid_relay *m = (mgrid_relay *)b;
  /* seconds for each notice. A rank that does not get the notice has its own deadline */
  const double patience = 0.1;
  notice mine = { (uint64_t)b->rank, ++m->tells };
  char key[KEY];
  if (to == b->rank) return;
  notice_key_of(m, key, to);
  if (has_notice_key(m))
    (void)m->host.put(m->host.ud, key, &mine, sizeof mine);
  else
    (void)mgrid_relay_send(b, to, MGRID_TAG_NOTICE, &mine, sizeof mine, patience, NULL);
}

/* Return the rank that put a new notice under this rank's key, or -1 if there is none. */
static int64_t get_notice(mgrid_relay *m) {
  char key[KEY];
  notice there;
  notice_key_of(m, key, m->base.rank);
  if (m->host.get(m->host.ud, -1, key, &there, sizeof there, 0)) return -1;
  if (m->told[0] == there.from && m->told[1] == there.count) return -1;
  m->told[0] = there.from, m->told[1] = there.count;
  /* ignore a rank that does not exist */
  return there.from < (uint64_t)m->base.world ? (int64_t)there.from : -1;
}

/* Ask some of the other ranks, from m->next on. Return a rank that has sent a notice, or -1. */
static int64_t ask_for_notice(mgrid_relay *m) {
  for (int64_t n = 0; n < ASKED && n < m->base.world; n++) {
    int64_t from = m->next;
    uint64_t which = which_of(false, MGRID_TAG_NOTICE, from);
    uint64_t *heard = find_ordinal(m, which);
    notice there;
    m->next = (from + 1) % m->base.world;
    if (from == m->base.rank) continue;
    if (mgrid_relay_take(m, m->phase, MGRID_TAG_NOTICE, heard ? *heard : 0, from, &there,
                         sizeof there, 0, NULL, NULL))
      continue;
    if (!heard) heard = ordinal_of(m, which);
    if (heard) ++*heard;
    return from;
  }
  return -1;
}

int64_t mgrid_relay_heard(mgrid_backend *b) {
  mgrid_relay *m = (mgrid_relay *)b;
  /* seconds between two looks: `rest`, and `each` for every rank of the world */
  const double rest = 0.02, each = 1e-5;
  if (mgrid_now() < m->look) return -1;
  m->look = mgrid_now() + rest + each * (double)b->world;
  return has_notice_key(m) ? get_notice(m) : ask_for_notice(m);
}

void mgrid_relay_phase(mgrid_backend *b, uint64_t number) {
  mgrid_relay *m = (mgrid_relay *)b;
  m->phase = number;
  m->ordinals = 0;
  m->look = 0;
}
