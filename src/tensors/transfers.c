/* SPDX-License-Identifier: MIT
**
** transfers.c - carry the messages: each lane sends or receives its chunks until nothing is left.
*/
#include "tensors/transfers.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

/* Limits for a half. Packed data is to be read while it is in the fastest caches: chunks of 128 KiB took 0.6 of the
** time of 4 MiB (scripts/README.md). But NCCL's groups cost too much for small chunks. */
enum { HALF_MOST = 128 << 10, HALF_MOST_TOGETHER = 4 << 20 };

struct mgrid_lane {
  int64_t       peer, bytes, round;
  bool          receives, ended; /* ended: no chunks are left to post */
  mgrid_chunks *ahead,
      *behind; /* plan what is posted next; for a receiver, what is unpacked next. NULL: not needed now */
  uint64_t posted, finished, passed; /* chunks so far: i is in half i % 2; those that `behind` has passed */
  bool     busy[2], placed[2];       /* placed: it is in the part already */
  int64_t  half;                     /* bytes of a half */
  char    *buffer;
};

/* ----------------------------------------------------------------- one lane */

static bool through(const mgrid_lane *l) { return l->ended && l->finished == l->posted; }

/* Return whether another chunk may be in transit. */
static bool has_room(const mgrid_lane *l) { return !l->ended && l->posted - l->finished < 2; }

static void drop(mgrid_chunks **p) {
  if (*p) mgrid_chunks_end(*p);
  free(*p);
  *p = NULL;
}

/* Plan the next chunk of a lane. The planner lives from the first chunk to the last one. Mostly there is only one, so
** all lanes are planned in the same few kilobytes, which stay in the fastest caches. */
static mgrid_status next(mgrid_running *r, mgrid_lane *l, mgrid_chunks **p, uint64_t number, mgrid_handling how,
                         mgrid_chunk *chunk) {
  if (!*p) {
    if (!(*p = malloc(sizeof **p))) return mgrid_oom(r->err);
    mgrid_chunks_begin(*p, r->move, l->receives ? MGRID_RECEIVES : MGRID_SENDS, l->peer, l->receives ? r->to : r->from,
                       r->boxes, r->backend);
  }
  return mgrid_chunks_next(*p, l->half, l->buffer + (int64_t)(number % 2) * l->half, how, chunk, r->err);
}

/* Prepare the next chunk, in a free half. *more false: there are none left. */
static mgrid_status fill(mgrid_running *r, mgrid_lane *l, mgrid_post *post, bool *more) {
  int          h = (int)(l->posted % 2);
  mgrid_chunk  chunk;
  mgrid_status s = next(r, l, &l->ahead, l->posted, l->receives ? MGRID_MEASURE : MGRID_PACK, &chunk);
  l->ended = !s && chunk.bytes == 0;
  *more = !s && !l->ended;
  if (l->ended) drop(&l->ahead);
  if (!*more) return s;
  *post = (mgrid_post){ .slot = (size_t)(l - r->lane) * 2 + (size_t)h,
                        .peer = l->peer,
                        .receive = l->receives,
                        .data = chunk.data,
                        .bytes = chunk.bytes,
                        .nboxes = chunk.nboxes,
                        .boxes = r->boxes };
  l->busy[h] = true;
  l->placed[h] = chunk.data != l->buffer + h * l->half;
  l->posted++;
  return MGRID_OK;
}

/* Post chunks into the free halves. */
static mgrid_outcome feed(mgrid_running *r, mgrid_lane *l) {
  while (has_room(l)) {
    mgrid_post    post;
    bool          more;
    mgrid_outcome s = fill(r, l, &post, &more);
    if (!s && more) s = r->ops->post(r->backend, 1, &post, r->err);
    if (s) return s;
  }
  return MGRID_OK;
}

/* Unpack a chunk; skip those before it that are in the part already. */
static mgrid_outcome unpack(mgrid_running *r, mgrid_lane *l, uint64_t number) {
  mgrid_outcome s = MGRID_OK;
  for (; l->passed <= number && !s; l->passed++) {
    mgrid_chunk chunk;
    s = next(r, l, &l->behind, l->passed, l->passed < number ? MGRID_MEASURE : MGRID_UNPACK, &chunk);
  }
  return s;
}

/* Finish what has arrived, in order. */
static mgrid_outcome drain(mgrid_running *r, mgrid_lane *l) {
  mgrid_outcome s = MGRID_OK;
  for (; l->finished < l->posted && !l->busy[l->finished % 2] && !s; l->finished++)
    if (l->receives && !l->placed[l->finished % 2]) s = unpack(r, l, l->finished);
  if (through(l)) drop(&l->behind);
  return s;
}

static mgrid_outcome go_on(mgrid_running *r, mgrid_lane *l) {
  mgrid_outcome s = MGRID_OK;
  for (uint64_t before = UINT64_MAX; before != l->finished && !s && !through(l);) {
    before = l->finished;
    s = feed(r, l);
    if (!s) s = drain(r, l);
  }
  if (!s && through(l)) r->left--;
  return s;
}

/* -------------------------------------------------------------- all of them */

/* mgrid_look: MGRID_OK when something ended. */
static mgrid_outcome progress(void *ud) {
  mgrid_running *r = ud;
  size_t         n;
  mgrid_outcome  s = r->ops->look(r->backend, false, &n, r->ended, r->err);
  if (s) return s;
  for (size_t i = 0; i < n && !s; i++) {
    mgrid_lane *l = &r->lane[r->ended[i] / 2];
    l->busy[r->ended[i] % 2] = false;
    s = r->ops->together ? drain(r, l) : go_on(r, l);
  }
  if (s) return s;
  return n ? MGRID_OK : r->ops->polled ? MGRID_BUSY : MGRID_NOT_YET;
}

/* Name the rank that is late, for the message. */
static mgrid_status late(const mgrid_running *r, double seconds, mgrid_error *err) {
  const mgrid_lane *first = NULL;
  size_t            n = 0;
  for (size_t i = 0; i < r->nlanes; i++) {
    const mgrid_lane *l = &r->lane[i];
    if (l->posted == 0 || through(l)) continue;
    n++;
    if (!first || (l->receives && !first->receives)) first = l;
  }
  return mgrid_fail(
      err, MGRID_TIMED_OUT, "nothing moved for %g seconds: rank %" PRId64 " %s, and %zu messages are in transit",
      seconds, first ? first->peer : -1, first && first->receives ? "has not sent all" : "has not received all", n);
}

mgrid_backend *mgrid_running_carrier(const mgrid_running *r) {
  return r->ops && r->ops->carrier ? r->ops->carrier(r->backend) : NULL;
}

static mgrid_outcome wait_for(mgrid_running *r, mgrid_look *look, double seconds) {
  int64_t       who = -1;
  double        until = seconds > 0 && !r->ops->watches ? mgrid_now() + seconds : HUGE_VAL;
  mgrid_outcome o = mgrid_wait(look, r, until, mgrid_running_carrier(r), &who);
  if (o == MGRID_LATE) return late(r, seconds, r->err);
  if (who >= 0) mgrid_fail(r->err, MGRID_OTHER_RANK, "rank %" PRId64 " gave up", who);
  return o;
}

/* Run all lanes at once. What stays is copied while the first chunks are in transit. */
static mgrid_outcome flow(mgrid_running *r, double seconds) {
  mgrid_outcome s = MGRID_OK;
  for (size_t i = r->nlanes; i-- > 0 && !s;) s = feed(r, &r->lane[i]); /* receivers first */
  if (!s) s = mgrid_chunks_stay(r->move, r->from, r->to, r->backend, r->err);
  while (r->left > 0 && !s) s = wait_for(r, progress, seconds);
  return s;
}

/* Run by rounds: the ith lane of a direction starts when the one before it has ended. */
static mgrid_outcome by_rounds(mgrid_running *r, double seconds) {
  mgrid_outcome s = mgrid_chunks_stay(r->move, r->from, r->to, r->backend, r->err);
  size_t        at[2] = { 0, r->nsend }, end[2] = { r->nsend, r->nlanes };
  while (r->left > 0 && !s) {
    for (int way = 0; way < 2 && !s; way++) {
      while (at[way] < end[way] && through(&r->lane[at[way]])) at[way]++;
      if (at[way] < end[way]) s = feed(r, &r->lane[at[way]]);
    }
    if (!s) s = wait_for(r, progress, seconds);
  }
  return s;
}

/* Post one step of the lanes of a round, or of all lanes. */
static mgrid_outcome step(mgrid_running *r, int64_t round) {
  size_t        n = 0;
  mgrid_outcome s = MGRID_OK;
  for (mgrid_lane *l = r->lane; l < r->lane + r->nlanes && !s; l++) {
    bool more = false;
    if (l->round == round && !l->ended) s = fill(r, l, &r->step[n], &more);
    n += more;
  }
  return s || n == 0 ? s : r->ops->post(r->backend, n, r->step, r->err);
}

/* Run in step: the next step is packed while one is in transit. */
static mgrid_outcome in_step(mgrid_running *r, double seconds) {
  int64_t       first = r->move->sums.rounds ? 0 : -1, end = r->move->sums.rounds ? r->move->sums.rounds : 0;
  mgrid_outcome s = step(r, first);
  if (!s) s = mgrid_chunks_stay(r->move, r->from, r->to, r->backend, r->err);
  for (int64_t round = first; round < end && !s; round++) {
    for (bool goes = true; goes && !s;) {
      bool room = true, more = false;
      goes = false;
      for (const mgrid_lane *l = r->lane; l < r->lane + r->nlanes; l++) {
        if (l->round != round || through(l)) continue;
        goes = true;
        more |= !l->ended;
        room &= l->ended || has_room(l);
      }
      if (!goes) break;
      s = more && room ? step(r, round) : wait_for(r, progress, seconds);
    }
  }
  return s;
}

/* mgrid_look */
static mgrid_outcome are_copied(void *ud) {
  mgrid_running *r = ud;
  return r->ops->copied(r->backend, r->err);
}

mgrid_outcome mgrid_lanes_run(mgrid_running *r, double seconds) {
  if (!r->ops) return mgrid_chunks_stay(r->move, r->from, r->to, r->backend, r->err);
  mgrid_outcome s = r->ops->together       ? in_step(r, seconds)
                    : r->move->sums.rounds ? by_rounds(r, seconds)
                                           : flow(r, seconds);
  return !s && r->ops->copied ? wait_for(r, are_copied, seconds) : s;
}

/* ------------------------------------------------------------ making, ending */

static int by_round(const void *a, const void *b) {
  const mgrid_lane *x = a, *y = b;
  return (x->round > y->round) - (x->round < y->round);
}

/* Add lanes to every peer, starting with the one after this rank, so that not all ranks start with the same one. */
static void add_lanes(mgrid_running *r, bool receives) {
  const mgrid_move *m = r->move;
  size_t            first = 0, begun = r->nlanes;
  while (first < m->npeers && m->peer[first].rank < m->rank) first++;
  for (size_t k = 0; k < m->npeers; k++) {
    const mgrid_move_peer *p = &m->peer[(first + k) % m->npeers];
    int64_t                bytes = receives ? p->receive : p->send;
    if (bytes == 0) continue;
    r->lane[r->nlanes++] = (mgrid_lane){
      .peer = p->rank, .bytes = bytes, .round = receives ? p->receive_round : p->send_round, .receives = receives
    };
  }
  if (m->sums.rounds) qsort(r->lane + begun, r->nlanes - begun, sizeof *r->lane, by_round);
}

mgrid_outcome mgrid_lanes_new(mgrid_running *r, int64_t window, int64_t lanes, mgrid_error *err) {
  const mgrid_move *m = r->move;
  int64_t half = lanes ? window / (2 * lanes) / MGRID_HALF_LEAST * MGRID_HALF_LEAST : MGRID_HALF_LEAST, bytes = 0,
          at = 0;
  int64_t most = r->ops && r->ops->together ? HALF_MOST_TOGETHER : HALF_MOST;
  if (half > most) half = most;
  r->lane = calloc((size_t)(m->sums.sends + m->sums.receives) + 1, sizeof *r->lane);
  r->ended = malloc(((size_t)(m->sums.sends + m->sums.receives) * 2 + 1) * sizeof *r->ended);
  r->step = malloc(((size_t)(m->sums.sends + m->sums.receives) + 1) * sizeof *r->step);
  r->boxes = malloc(MGRID_BOXES_MAX * sizeof *r->boxes);
  if (!r->lane || !r->ended || !r->step || !r->boxes) return mgrid_oom(err);
  add_lanes(r, false);
  r->nsend = r->nlanes;
  add_lanes(r, true);
  r->left = r->nlanes;
  for (size_t i = 0; i < r->nlanes; i++) {
    mgrid_lane *l = &r->lane[i];
    int64_t     room = 2 * (l->half = l->bytes < half ? l->bytes : half);
    if (m->sums.rounds) /* in sequence in the same memory, half of it for each direction */
      bytes = room > bytes ? room : bytes;
    else
      bytes += room;
  }
  if (r->nlanes == 0) return MGRID_OK;
  if (m->sums.rounds) bytes *= 2;
  r->staging = r->ops->memory ? r->ops->memory(r->backend, (size_t)bytes, err) : malloc((size_t)bytes);
  if (!r->staging) return mgrid_oom(err);
  if (m->sums.rounds) bytes /= 2;
  for (size_t i = 0; i < r->nlanes; i++) {
    mgrid_lane *l = &r->lane[i];
    l->buffer = r->staging + (m->sums.rounds ? (l->receives ? bytes : 0) : at);
    at += 2 * l->half;
  }
  return r->ops->prepare(r->backend, 2 * r->nlanes, err);
}

void mgrid_lanes_free(mgrid_running *r, bool ours) {
  for (size_t i = 0; i < r->nlanes; i++) {
    drop(&r->lane[i].ahead);
    drop(&r->lane[i].behind);
  }
  free(r->lane);
  free(r->ended);
  free(r->step);
  free(r->boxes);
  if (ours && !(r->ops && r->ops->memory)) free(r->staging); /* otherwise data in transit may still be read from it */
}
