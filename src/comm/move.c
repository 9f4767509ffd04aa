/* SPDX-License-Identifier: MIT
**
** move.c - a move carried out: all ranks agree that it is the same one, then each sends and receives parcels until
** nothing is left.
**
** A lane is what goes to one peer or comes from it. It has two halves of a buffer, so that one parcel is packed while
** the other is on its way, and these are all of the window: a half is window / (2 x lanes), with the lanes of the
** busiest rank of the job, which all ranks learn when they agree. So every lane can always go on, nothing waits in a
** circle, and both sides cut parcels alike. With rounds a rank has one lane in each direction at a time.
**
** Where what all ranks post at once must fit together (NCCL's groups), lanes go in step: parcel i of each lane is in step
** i on both its sides, so each step waits only for the same one of other ranks, and for earlier ones.
*/
#include "comm/compare.h"
#include "comm/reads.h"
#include "comm/state.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

/* Of a half. What is packed is read while it is in the nearest caches: parcels of 128 KiB took 0.6 of the time of those of
** 4 MiB (scripts/README.md). A group of NCCL is too dear for that. */
enum { HALF_LEAST = 64, HALF_MOST = 128 << 10, HALF_MOST_TOGETHER = 4 << 20 };

typedef struct lane {
  int64_t        peer, bytes, round;
  bool           receives, ended; /* ended: there are no more parcels to post */
  mgrid_parcels *ahead, *behind;  /* what is posted next; of a receiver, what is unpacked next; NULL: not now */
  uint64_t       posted, finished, passed; /* parcels so far: i is in half i % 2; those that `behind` is past */
  bool           busy[2], placed[2];       /* placed: it is in the part, nothing is unpacked */
  int64_t        half;                     /* bytes of one */
  char          *buffer;
  mgrid_rows     rows; /* of the parcel that is posted last */
} lane;

typedef struct running {
  const mgrid_move          *move;
  mgrid_backend             *backend;
  const mgrid_transport_ops *ops;
  char                     **from, **to; /* [tensors] */
  size_t                     nlanes, left;
  lane                      *lane; /* senders first; each sort by round */
  size_t                     nsend;
  char                      *staging;
  mgrid_read                *read;         /* what is read of ranks of this host, in no lane: reads.h */
  int64_t                   *reads;        /* [nreads], of whom */
  size_t                     nreads, done; /* done: so many of them */
  bool                       news;         /* some was read since ops->look */
  int                       *ended;        /* [2 * nlanes], of ops->look */
  mgrid_post                *step;         /* [nlanes], what is posted at once */
  mgrid_error               *err;
} running;

/* ------------------------------------------------------------------- lanes */

static bool through(const lane *l) { return l->ended && l->finished == l->posted; }

/* May it have another parcel on its way? */
static bool has_room(const lane *l) { return !l->ended && l->posted - l->finished < 2; }

static void drop(mgrid_parcels **p) {
  if (*p) mgrid_parcels_end(*p);
  free(*p);
  *p = NULL;
}

/* The next parcel of a lane. What plans its parcels is there from the first to the last one alone: mostly there is one, so
** that all lanes are planned in the same few kilobytes, which stay in the nearest caches. */
static mgrid_status next(running *r, lane *l, mgrid_parcels **p, uint64_t number, mgrid_handling how,
                         mgrid_parcel *parcel) {
  if (!*p) {
    if (!(*p = malloc(sizeof **p))) return mgrid_oom(r->err);
    mgrid_parcels_begin(*p, r->move, l->receives ? MGRID_RECEIVES : MGRID_SENDS, l->peer, l->receives ? r->to : r->from,
                        r->backend);
  }
  return mgrid_parcels_next(*p, l->half, l->buffer + (int64_t)(number % 2) * l->half, how, parcel, r->err);
}

/* The next parcel, in a half that is free; false: there are no more. */
static mgrid_status fill(running *r, lane *l, mgrid_post *post, bool *more) {
  int          h = (int)(l->posted % 2);
  mgrid_parcel parcel;
  mgrid_status s = next(r, l, &l->ahead, l->posted, l->receives ? MGRID_MEASURE : MGRID_PACK, &parcel);
  l->ended = !s && parcel.bytes == 0;
  *more = !s && !l->ended;
  if (l->ended) drop(&l->ahead);
  if (!*more) return s;
  *post = (mgrid_post){ .slot = (size_t)(l - r->lane) * 2 + (size_t)h,
                        .peer = l->peer,
                        .receive = l->receives,
                        .data = parcel.data,
                        .bytes = parcel.bytes };
  if (parcel.in_rows) l->rows = parcel.rows, post->rows = &l->rows;
  l->busy[h] = true;
  l->placed[h] = parcel.data != l->buffer + h * l->half;
  l->posted++;
  return MGRID_OK;
}

/* Post parcels into the halves that are free. */
static mgrid_outcome feed(running *r, lane *l) {
  while (has_room(l)) {
    mgrid_post    post;
    bool          more;
    mgrid_outcome s = fill(r, l, &post, &more);
    if (!s && more) s = r->ops->post(r->backend, 1, &post, r->err);
    if (s) return s;
  }
  return MGRID_OK;
}

/* Unpack a parcel, after those before it that lie in the part already. */
static mgrid_outcome unpack(running *r, lane *l, uint64_t number) {
  mgrid_outcome s = MGRID_OK;
  for (; l->passed <= number && !s; l->passed++) {
    mgrid_parcel parcel;
    s = next(r, l, &l->behind, l->passed, l->passed < number ? MGRID_MEASURE : MGRID_UNPACK, &parcel);
  }
  return s;
}

/* Take what has arrived, in its order. */
static mgrid_outcome drain(running *r, lane *l) {
  mgrid_outcome s = MGRID_OK;
  for (; l->finished < l->posted && !l->busy[l->finished % 2] && !s; l->finished++)
    if (l->receives && !l->placed[l->finished % 2]) s = unpack(r, l, l->finished);
  if (through(l)) drop(&l->behind);
  return s;
}

static mgrid_outcome go_on(running *r, lane *l) {
  mgrid_outcome s = MGRID_OK;
  for (uint64_t before = UINT64_MAX; before != l->finished && !s && !through(l);) {
    before = l->finished;
    s = feed(r, l);
    if (!s) s = drain(r, l);
  }
  if (!s && through(l)) r->left--;
  return s;
}

/* Read about a MiB. */
static mgrid_outcome read_on(running *r) {
  int64_t       before = r->backend->read;
  mgrid_outcome s = MGRID_OK;
  while (r->done < r->nreads && !s && r->backend->read - before < 1 << 20) {
    bool more = false;
    s = mgrid_read_some(r->read, r->reads[r->done], &more, r->err);
    r->done += !s && !more;
  }
  r->news = true;
  return s;
}

/* mgrid_look: MGRID_OK when something ended. */
static mgrid_outcome progress(void *ud) {
  running      *r = ud;
  size_t        n;
  mgrid_outcome s = r->ops->look(r->backend, r->news, &n, r->ended, r->err);
  r->news = false;
  if (s) return s;
  if (n == 0 && r->done < r->nreads) return read_on(r);
  for (size_t i = 0; i < n && !s; i++) {
    lane *l = &r->lane[r->ended[i] / 2];
    l->busy[r->ended[i] % 2] = false;
    s = r->ops->together ? drain(r, l) : go_on(r, l);
  }
  if (s) return s;
  return n ? (mgrid_outcome)MGRID_OK : MGRID_NOT_YET;
}

/* Who is behind, for the message. */
static mgrid_status late(const running *r, double seconds, mgrid_error *err) {
  const lane *first = NULL;
  size_t      n = 0;
  for (size_t i = 0; i < r->nlanes; i++) {
    const lane *l = &r->lane[i];
    if (l->posted == 0 || through(l)) continue;
    n++;
    if (!first || (l->receives && !first->receives)) first = l;
  }
  return mgrid_fail(err, MGRID_TIMED_OUT,
                    "nothing moved for %g seconds: rank %" PRId64 " %s, and %zu messages are on their way", seconds,
                    first ? first->peer : -1, first && first->receives ? "has not sent all" : "has not taken all", n);
}

static mgrid_backend *carrier(const running *r) {
  return r->ops && r->ops->carrier ? r->ops->carrier(r->backend) : NULL;
}

static mgrid_outcome wait_for(running *r, mgrid_look *look, double seconds) {
  int64_t       who = -1;
  mgrid_outcome o = mgrid_wait(look, r, seconds > 0 ? mgrid_now() + seconds : HUGE_VAL, carrier(r), &who);
  if (o == MGRID_LATE) return late(r, seconds, r->err);
  if (o == MGRID_GAVE_UP) mgrid_fail(r->err, MGRID_OTHER_RANK, "rank %" PRId64 " gave up", who);
  return o;
}

static bool goes_on(const running *r) { return r->left > 0 || r->done < r->nreads; }

/* All lanes at once; what stays is copied while the first parcels are on their way. */
static mgrid_outcome flow(running *r, double seconds) {
  mgrid_outcome s = MGRID_OK;
  for (size_t i = r->nlanes; i-- > 0 && !s;) s = feed(r, &r->lane[i]); /* receives first */
  if (!s) s = mgrid_parcels_stay(r->move, r->from, r->to, r->backend, r->err);
  while (goes_on(r) && !s) s = wait_for(r, progress, seconds);
  return s;
}

/* By rounds: the ith lane of each direction begins when the one before it has ended. */
static mgrid_outcome by_rounds(running *r, double seconds) {
  mgrid_outcome s = mgrid_parcels_stay(r->move, r->from, r->to, r->backend, r->err);
  size_t        at[2] = { 0, r->nsend }, end[2] = { r->nsend, r->nlanes };
  while (goes_on(r) && !s) {
    for (int way = 0; way < 2 && !s; way++) {
      while (at[way] < end[way] && through(&r->lane[at[way]])) at[way]++;
      if (at[way] < end[way]) s = feed(r, &r->lane[at[way]]);
    }
    if (!s) s = wait_for(r, progress, seconds);
  }
  return s;
}

/* One step of the lanes of a round, or of all. */
static mgrid_outcome step(running *r, int64_t round) {
  size_t        n = 0;
  mgrid_outcome s = MGRID_OK;
  for (lane *l = r->lane; l < r->lane + r->nlanes && !s; l++) {
    bool more = false;
    if (l->round == round && !l->ended) s = fill(r, l, &r->step[n], &more);
    n += more;
  }
  return s || n == 0 ? s : r->ops->post(r->backend, n, r->step, r->err);
}

/* In step, while one step is on its way the next one is packed. */
static mgrid_outcome in_step(running *r, double seconds) {
  int64_t       first = r->move->sums.rounds ? 0 : -1, end = r->move->sums.rounds ? r->move->sums.rounds : 0;
  mgrid_outcome s = step(r, first);
  if (!s) s = mgrid_parcels_stay(r->move, r->from, r->to, r->backend, r->err);
  for (int64_t round = first; round < end && !s; round++) {
    for (bool goes = true; goes && !s;) {
      bool room = true, more = false;
      goes = false;
      for (const lane *l = r->lane; l < r->lane + r->nlanes; l++) {
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
  running *r = ud;
  return r->ops->copied(r->backend, r->err);
}

static mgrid_outcome data(running *r, double seconds) {
  if (!r->ops) return mgrid_parcels_stay(r->move, r->from, r->to, r->backend, r->err);
  mgrid_outcome s = r->ops->together       ? in_step(r, seconds)
                    : r->move->sums.rounds ? by_rounds(r, seconds)
                                           : flow(r, seconds);
  return !s && r->ops->copied ? wait_for(r, are_copied, seconds) : s;
}

/* ----------------------------------------------------------------- prepare */

static int by_round(const void *a, const void *b) {
  const lane *x = a, *y = b;
  return (x->round > y->round) - (x->round < y->round);
}

/* Is the message read, by this rank or by the peer? */
static mgrid_outcome is_read(running *r, int64_t peer, bool receives, bool *reads, mgrid_error *err) {
  *reads = !receives && r->read && mgrid_reading_offered(r->backend->reading, peer);
  return receives && r->read ? mgrid_read_ask(r->read, peer, reads, err) : MGRID_OK;
}

/* Lanes to every peer, the one after this rank first, so that ranks do not all begin with the same one. */
static mgrid_outcome add_lanes(running *r, bool receives, mgrid_error *err) {
  const mgrid_move *m = r->move;
  size_t            first = 0, begun = r->nlanes;
  mgrid_outcome     s = MGRID_OK;
  while (first < m->npeers && m->peer[first].rank < m->rank) first++;
  for (size_t k = 0; k < m->npeers && !s; k++) {
    const mgrid_move_peer *p = &m->peer[(first + k) % m->npeers];
    int64_t                bytes = receives ? p->receive : p->send;
    bool                   reads;
    if (bytes == 0 || (s = is_read(r, p->rank, receives, &reads, err))) continue;
    if (reads && receives) r->reads[r->nreads++] = p->rank;
    if (reads) continue;
    r->lane[r->nlanes++] = (lane){
      .peer = p->rank, .bytes = bytes, .round = receives ? p->receive_round : p->send_round, .receives = receives
    };
  }
  if (m->sums.rounds) qsort(r->lane + begun, r->nlanes - begun, sizeof *r->lane, by_round);
  return s;
}

static mgrid_outcome prepare(running *r, int64_t window, bool messages, int64_t lanes, mgrid_error *err) {
  const mgrid_move *m = r->move;
  int64_t           half = lanes ? window / (2 * lanes) / HALF_LEAST * HALF_LEAST : HALF_LEAST, bytes = 0, at = 0;
  int64_t           most = r->ops && r->ops->together ? HALF_MOST_TOGETHER : HALF_MOST;
  if (half > most) half = most;
  r->lane = calloc((size_t)(m->sums.sends + m->sums.receives) + 1, sizeof *r->lane);
  r->ended = malloc(((size_t)(m->sums.sends + m->sums.receives) * 2 + 1) * sizeof *r->ended);
  r->step = malloc(((size_t)(m->sums.sends + m->sums.receives) + 1) * sizeof *r->step);
  if (!r->lane || !r->ended || !r->step) return mgrid_oom(err);
  if (mgrid_reading_on(r->backend->reading) && !messages) {
    r->reads = malloc(((size_t)m->sums.receives + 1) * sizeof *r->reads);
    r->read = r->reads ? mgrid_read_new(m, r->backend, r->to, err) : NULL;
    if (!r->read) return mgrid_oom(err);
  }
  mgrid_outcome s = add_lanes(r, false, err);
  r->nsend = r->nlanes;
  if (!s) s = add_lanes(r, true, err);
  if (s) return s;
  r->left = r->nlanes;
  for (size_t i = 0; i < r->nlanes; i++) {
    lane   *l = &r->lane[i];
    int64_t room = 2 * (l->half = l->bytes < half ? l->bytes : half);
    if (m->sums.rounds) /* one after the other in the same memory, a half of it for each direction */
      bytes = room > bytes ? room : bytes;
    else
      bytes += room;
  }
  if (r->nlanes == 0) return r->nreads ? r->ops->prepare(r->backend, 0, err) : MGRID_OK;
  if (m->sums.rounds) bytes *= 2;
  r->staging = r->ops->memory ? r->ops->memory(r->backend, (size_t)bytes, err) : malloc((size_t)bytes);
  if (!r->staging) return mgrid_oom(err);
  if (m->sums.rounds) bytes /= 2;
  for (size_t i = 0; i < r->nlanes; i++) {
    lane *l = &r->lane[i];
    l->buffer = r->staging + (m->sums.rounds ? (l->receives ? bytes : 0) : at);
    at += 2 * l->half;
  }
  return r->ops->prepare(r->backend, 2 * r->nlanes, err);
}

static void end(running *r, bool ours) {
  for (size_t i = 0; i < r->nlanes; i++) {
    drop(&r->lane[i].ahead);
    drop(&r->lane[i].behind);
  }
  free(r->lane);
  free(r->ended);
  free(r->step);
  free(r->reads);
  mgrid_read_free(r->read);
  if (ours && !(r->ops && r->ops->memory)) free(r->staging); /* else what is on its way may still be read from it */
  free(r->from);
  free(r->to);
}

/* ------------------------------------------------------------------- agree */

static mgrid_status check_side(running *r, bool from, const mgrid_buffer *buffer, char **part, mgrid_error *err) {
  const mgrid_move *m = r->move;
  for (size_t i = 0; i < m->pairs.n; i++) {
    const mgrid_pair   *p = &m->pairs.pair[i];
    const mgrid_tensor *t = mgrid_pairs_tensor(&m->pairs, i, from);
    mgrid_seat          at;
    bool                held = from ? mgrid_tensor_seat(t, m->rank, &at) : mgrid_pair_seat(p, m->rank, &at);
    int64_t             bytes = held ? mgrid_tensor_elements(t, &at) * t->width : 0;
    if (bytes > 0 && (!buffer[i].data || buffer[i].bytes < bytes))
      return mgrid_fail(
          err, MGRID_REFUSED,
          "the part of tensor '%s' %s the move has %" PRId64 " bytes, its buffer on rank %" PRId64 " %" PRId64,
          m->pairs.name[i], from ? "before" : "after", bytes, m->rank, buffer[i].data ? buffer[i].bytes : 0);
    part[i] = buffer[i].data;
    if (bytes == 0 || !r->ops || !r->ops->reaches) continue;
    mgrid_text   what = { 0 };
    mgrid_status s = MGRID_OK;
    mgrid_text_add(&what, "the part of tensor '%s' %s the move on rank %" PRId64, m->pairs.name[i],
                   from ? "before" : "after", m->rank);
    s = what.failed ? mgrid_oom(err) : r->ops->reaches(r->backend, part[i], what.data, err);
    mgrid_text_free(&what);
    if (s) return s;
  }
  return MGRID_OK;
}

/* What can be said without the other ranks. */
static mgrid_status check(running *r, const mgrid_buffer *from, const mgrid_buffer *to, const mgrid_move_run_options *o,
                          mgrid_error *err) {
  const mgrid_move *m = r->move;
  if (!m) return err->status ? err->status : mgrid_fail(err, MGRID_USAGE, "no move was given");
  if (m->pairs.ranks != r->backend->world)
    return mgrid_fail(err, MGRID_REFUSED, "the move is of %" PRId64 " ranks, the communicator has %" PRId64,
                      m->pairs.ranks, r->backend->world);
  if (m->rank != r->backend->rank)
    return mgrid_fail(err, MGRID_REFUSED, "the move is seen from rank %" PRId64 ", this is rank %" PRId64, m->rank,
                      r->backend->rank);
  if (o->window < 1 || !(o->timeout >= 0))
    return mgrid_fail(err, MGRID_OUT_OF_RANGE, "a move wants a window of 1 byte or more, a timeout of 0 or more");
  if (mgrid_lacks_list(m->pairs.n, from, "parts before the move", err)
      || mgrid_lacks_list(m->pairs.n, to, "parts after the move", err))
    return MGRID_USAGE;
  if (!r->ops && r->backend->world > 1)
    return mgrid_fail(err, MGRID_UNSUPPORTED, "the %s backend moves no data", r->backend->kind->name);
  r->from = calloc(m->pairs.n + 1, sizeof *r->from);
  r->to = calloc(m->pairs.n + 1, sizeof *r->to);
  if (!r->from || !r->to) return mgrid_oom(err);
  mgrid_status s = r->ops && r->ops->ready ? r->ops->ready(r->backend, err) : MGRID_OK;
  if (!s) s = check_side(r, true, from, r->from, err);
  if (!s) s = check_side(r, false, to, r->to, err);
  bool gpu = r->ops && r->ops->copy && (!r->ops->copies || r->ops->copies(r->backend));
  for (size_t i = 0; i < m->pairs.n && gpu && !s; i++)
    if (mgrid_pairs_converts(&m->pairs, i))
      s = mgrid_fail(err, MGRID_UNSUPPORTED,
                     "tensor '%s' is %s before the move and %s after it; in memory of a GPU no type changes",
                     m->pairs.name[i], mgrid_pairs_tensor(&m->pairs, i, true)->type,
                     mgrid_pairs_tensor(&m->pairs, i, false)->type);
  return s;
}

/* A move in words, for ranks that differ; returns its digest. */
static uint64_t name_it(const mgrid_move *m, const mgrid_move_run_options *o, char *text, size_t len) {
  const mgrid_plan     *from = m->pairs.from, *to = m->pairs.to;
  const mgrid_renaming *names = &m->pairs.names;
  int64_t  numbers[] = { names->n, m->sums.rounds, o->window, o->messages, (int64_t)m->pairs.n, m->pairs.machine };
  size_t   at = (size_t)snprintf(text, len, "moves plan %08" PRIx64 " to %08" PRIx64 "%s%s, window %" PRId64 ":",
                                 from->digest[0] >> 32, to->digest[0] >> 32, m->sums.rounds ? " in rounds" : "",
                               o->messages ? " by messages" : "", o->window);
  uint64_t h = XXH3_64bits(numbers, sizeof numbers);
  h = XXH3_64bits_withSeed(from->digest, sizeof from->digest, h);
  h = XXH3_64bits_withSeed(to->digest, sizeof to->digest, h);
  if (names->n) h = XXH3_64bits_withSeed(names->ranks, (size_t)names->n * sizeof *names->ranks, h);
  for (size_t i = 0; i < m->pairs.n; i++) {
    h = XXH3_64bits_withSeed(m->pairs.name[i], strlen(m->pairs.name[i]), h);
    if (at < len) at += (size_t)snprintf(text + at, len - at, " %s", m->pairs.name[i]);
  }
  mgrid_text_ellipsis(text, len, at);
  return h;
}

/* Are all ranks here with the same move? *lanes: of the busiest rank. One call over all ranks, the meeting, if they are. */
static mgrid_status agree(running *r, const mgrid_move_run_options *o, int64_t *lanes, mgrid_error *err) {
  char          text[MGRID_TOLD] = "";
  mgrid_status  failed = err->status, s;
  uint64_t      who = UINT64_MAX;
  mgrid_error   lost = MGRID_ERROR_INIT;
  mgrid_meeting met = { .have = true, .status = failed, .second = failed != MGRID_OK };
  met.call = mgrid_meet_call(r->backend, false, "a move of tensors");
  if (!failed) {
    met.first = name_it(r->move, o, text, sizeof text);
    met.least = INT64_MAX - (uint64_t)(r->move->sums.rounds ? 2 : r->move->sums.sends + r->move->sums.receives);
  }
  uint64_t digest = met.first;
  if (mgrid_meet_over(r->backend, &met, &lost)) {
    mgrid_error_clear(err);
    return mgrid_error_pass(err, &lost);
  }
  if (met.each) /* who failed first, if any did */
    for (int64_t i = r->backend->world; i-- > 0;) who = met.each[MGRID_MET * i] ? (uint64_t)i : who;
  else if (failed) /* all did */
    who = 0;
  s = mgrid_verdict_tell(r->backend, who, failed, err, err);
  if (!s && met.each) {
    const mgrid_peers all = mgrid_peers_all(r->backend);
    s = mgrid_compare(&all, &(mgrid_brought){ .digest = digest, .of = "", .text = text }, err);
  }
  free(met.each);
  *lanes = s ? 0 : (int64_t)(INT64_MAX - met.least);
  if (!s && *lanes > 0 && o->window / (2 * *lanes) < HALF_LEAST)
    s = mgrid_fail(err, MGRID_REFUSED,
                   "a window of %" PRId64 " bytes is too small for %" PRId64 " messages at a time: %" PRId64
                   " at least",
                   o->window, *lanes, 2 * HALF_LEAST * *lanes);
  return s;
}

/* --------------------------------------------------------------------- run */

mgrid_move *mgrid_state_move(const mgrid_state *from, const mgrid_state *to, size_t ntensors,
                             const char *const *tensors, const mgrid_move_options *given, mgrid_error *err) {
  mgrid_move_options options = MGRID_MOVE_OPTIONS_INIT;
  if (!from || !to || mgrid_struct_read(&options, sizeof options, given, "mgrid_move_options", err)) return NULL;
  if (options.machine == 0) options.machine = mgrid_states_machine(from, to);
  return mgrid_move_new(from->plan, to->plan, from->view.rank, ntensors, tensors, &options, err);
}

/* Carry the data; a rank that fails tells its peers, which would wait for it. */
static mgrid_outcome carry(running *r, const mgrid_move_run_options *o, int64_t lanes, mgrid_error *err) {
  int64_t       window = o->window - (o->messages ? 0 : mgrid_reading_room(r->backend, o->window));
  mgrid_outcome s = prepare(r, window, o->messages, lanes, err);
  r->err = err;
  if (!s) s = data(r, o->timeout);
  mgrid_backend *tells = s ? carrier(r) : NULL;
  for (size_t i = 0; i < r->move->npeers && tells; i++) tells->ops->carrier->tell(tells, r->move->peer[i].rank);
  return s;
}

mgrid_status mgrid_move_run(const mgrid_move *m, mgrid_backend *b, const mgrid_buffer *from, const mgrid_buffer *to,
                            const mgrid_move_run_options *given, mgrid_error *err) {
  if (!b || mgrid_layout_check(b->layout, "the backend's library", err)) return b ? MGRID_MISSING : MGRID_USAGE;
  mgrid_move_run_options o = MGRID_MOVE_RUN_OPTIONS_INIT;
  mgrid_error            mine = MGRID_ERROR_INIT;
  running                r = { .move = m, .backend = b, .ops = b->ops->transport };
  mgrid_outcome          carried = MGRID_OK;
  int64_t                lanes = 0;
  if (!m && err) mgrid_error_pass(&mine, err); /* why there is no move: all ranks get this error */
  if (!mgrid_struct_read(&o, sizeof o, given, "mgrid_move_run_options", &mine)) check(&r, from, to, &o, &mine);
  if (!(o.timeout >= 0)) o.timeout = 0;
  mgrid_status s = r.ops ? r.ops->open(b, &o.timeout, &mine) : MGRID_OK;
  bool         opened = r.ops && !s, reads = opened && r.ops->reads && !o.messages;
  mgrid_offer  offer = { m, r.from, o.window };
  if (reads && !mine.status) mgrid_reading_new(b, &mine);
  if (reads && !mine.status && mgrid_reading_found(b->reading)) mgrid_reading_offer(b, &offer);
  if (!s) s = agree(&r, &o, &lanes, &mine);
  if (!s && reads && lanes > 0 && !mgrid_reading_found(b->reading)) s = mgrid_reading_find(b, &offer, &mine);
  if (!s && lanes > 0 && r.ops->connect) s = r.ops->connect(b, &mine);
  if (!s) {
    carried = carry(&r, &o, lanes, &mine);
    s = mgrid_verdict(b, carried, &mine, &mine);
  }
  mgrid_reading_end(b->reading);
  bool ours = !opened || r.ops->close(b, s && r.lane);
  end(&r, ours);
  return s ? mgrid_error_pass(err, &mine) : MGRID_OK;
}
