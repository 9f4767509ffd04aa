/* SPDX-License-Identifier: MIT
**
** move_run.c - runs a move. First all ranks agree that they run the same move. Then each rank sends
** and receives chunks until none is left. This loop has a deadline.
*/
#include "comm/backend.h"
#include "comm/compare.h"
#include "comm/state.h"
#include "tensors/between_plans.h"
#include "tensors/chunks.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

/* ================================================================= transfers */

/* THE LANES. A lane is a message to a peer or from a peer, while the move runs. Its buffer has two
** halves, so that one chunk is packed while the other is on its way. A half has at most 1 / (2 x
** lanes) of the window, where `lanes` is the most lanes of any rank; all ranks learn it when they
** agree. So both sides cut the same chunks, every lane always has a buffer, and no ranks wait for
** each other in a cycle. With rounds, a rank has one lane in each direction at a time.
**
** NCCL runs the calls of a group together, so the groups of two ranks must match. There the lanes
** go in step: chunk i of each lane is in step i, one group, on both sides. So a step waits only for
** the same step of other ranks, and for earlier steps. */

/* Bytes of a half: the fewest; the most; the most where the lanes go in step. Packed data should be
** read while it is still in the fastest caches: chunks of 128 KiB took 0.6 times as long as chunks
** of 4 MiB (scripts/lab/costs.md). But with small chunks, NCCL's groups cost too much. */
enum { HALF_LEAST = 64, HALF_MOST = 128 << 10, HALF_MOST_TOGETHER = 4 << 20 };

typedef struct lane {
  int64_t peer, bytes, round;
  bool receives, ended; /* ended: no chunk is left to post */
  mgrid_chunks *ahead;  /* plans the chunk to post next; NULL: not begun, or ended */
  mgrid_chunks
      *behind; /* of a receiver: plans the chunk to unpack next; NULL: not begun, or ended */
  /* how many chunks were posted, how many have finished, and how many `behind` has planned. Chunk i
  ** is in half i % 2 */
  uint64_t posted, finished, passed;
  bool busy[2];   /* by half: the chunk is on its way */
  bool placed[2]; /* by half: the chunk is in its place in the tensor, and not in the half */
  int64_t half;   /* bytes of a half */
  char *buffer;
} lane;

/* A move that runs. */
typedef struct running {
  const mgrid_move *move;
  mgrid_backend *backend;
  const mgrid_transport_ops *ops;
  char **from, **to;   /* [tensors] */
  size_t nlanes, left; /* left: lanes that have not ended */
  lane *lane;          /* [nlanes]: the nsend senders first; each direction is sorted by round */
  size_t nsend;
  char *staging;
  int *ended;        /* [2 * nlanes]: what ops->look reports */
  mgrid_post *step;  /* [nlanes]: posted at once */
  mgrid_rows *boxes; /* [MGRID_BOXES_MAX]: of the chunk that was planned last */
  mgrid_error *err;
} running;

/* ----------------------------------------------------------------- one lane */

static bool through(const lane *l) { return l->ended && l->finished == l->posted; }

/* Return whether a half of the lane is free for another chunk. */
static bool has_room(const lane *l) { return !l->ended && l->posted - l->finished < 2; }

static void move_run_drop(mgrid_chunks **p) {
  if (*p) mgrid_chunks_end(*p);
  free(*p);
  *p = NULL;
}

/* Plan chunk `number` of a lane, by its planner *p. A planner is allocated for the first chunk and
** freed after the last. Usually only one exists at a time, so the lanes use the same few kilobytes,
** which stay in the fastest caches. */
static mgrid_status next(running *r, lane *l, mgrid_chunks **p, uint64_t number, mgrid_handling how,
                         mgrid_chunk *chunk) {
  if (!*p) {
    if (!(*p = malloc(sizeof **p))) return mgrid_oom(r->err);
    mgrid_chunks_begin(*p, r->move, l->receives ? MGRID_RECEIVES : MGRID_SENDS, l->peer,
                       l->receives ? r->to : r->from, r->boxes, r->backend);
  }
  return mgrid_chunks_next(*p, l->half, l->buffer + (int64_t)(number % 2) * l->half, how, chunk,
                           r->err);
}

/* Prepare the next chunk, in a free half. *more is false if there is none. */
static mgrid_status move_run_fill(running *r, lane *l, mgrid_post *post, bool *more) {
  int h = (int)(l->posted % 2);
  mgrid_chunk chunk;
  mgrid_status s =
      next(r, l, &l->ahead, l->posted, l->receives ? MGRID_MEASURE : MGRID_PACK, &chunk);
  l->ended = !s && chunk.bytes == 0;
  *more = !s && !l->ended;
  if (l->ended) move_run_drop(&l->ahead);
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
static mgrid_outcome feed(running *r, lane *l) {
  while (has_room(l)) {
    mgrid_post post;
    bool more;
    mgrid_outcome s = move_run_fill(r, l, &post, &more);
    if (!s && more) s = r->ops->post(r->backend, 1, &post, r->err);
    if (s) return s;
  }
  return MGRID_OK;
}

/* Unpack a chunk. Skip the chunks before it, which were received in their place. */
static mgrid_outcome move_run_unpack(running *r, lane *l, uint64_t number) {
  mgrid_outcome s = MGRID_OK;
  for (; l->passed <= number && !s; l->passed++) {
    mgrid_chunk chunk;
    s = next(r, l, &l->behind, l->passed, l->passed < number ? MGRID_MEASURE : MGRID_UNPACK,
             &chunk);
  }
  return s;
}

/* Finish the chunks that have arrived, in their order. */
static mgrid_outcome drain(running *r, lane *l) {
  mgrid_outcome s = MGRID_OK;
  for (; l->finished < l->posted && !l->busy[l->finished % 2] && !s; l->finished++)
    if (l->receives && !l->placed[l->finished % 2]) s = move_run_unpack(r, l, l->finished);
  if (through(l)) move_run_drop(&l->behind);
  return s;
}

static mgrid_outcome move_run_go_on(running *r, lane *l) {
  mgrid_outcome s = MGRID_OK;
  for (uint64_t before = UINT64_MAX; before != l->finished && !s && !through(l);) {
    before = l->finished;
    s = feed(r, l);
    if (!s) s = drain(r, l);
  }
  if (!s && through(l)) r->left--;
  return s;
}

/* --------------------------------------------------------------- all lanes */

/* An mgrid_look that ends when a chunk has been sent or received. */
static mgrid_outcome move_run_progress(void *ud) {
  running *r = ud;
  size_t n;
  mgrid_outcome s = r->ops->look(r->backend, false, &n, r->ended, r->err);
  if (s) return s;
  for (size_t i = 0; i < n && !s; i++) {
    lane *l = &r->lane[r->ended[i] / 2];
    l->busy[r->ended[i] % 2] = false;
    s = r->ops->together ? drain(r, l) : move_run_go_on(r, l);
  }
  if (s) return s;
  return n ? MGRID_OK : r->ops->polled ? MGRID_BUSY : MGRID_NOT_YET;
}

/* Make the error of a move in which nothing moved. It names a rank for which this rank waits. */
static mgrid_status move_run_late(const running *r, double seconds, mgrid_error *err) {
  const lane *first = NULL;
  size_t n = 0;
  for (size_t i = 0; i < r->nlanes; i++) {
    const lane *l = &r->lane[i];
    if (l->posted == 0 || through(l)) continue;
    n++;
    if (!first || (l->receives && !first->receives)) first = l;
  }
  return mgrid_fail(err, MGRID_TIMED_OUT,
                    "nothing moved for %g seconds: rank %" PRId64
                    " %s, and %zu messages are in transit",
                    seconds, first ? first->peer : -1,
                    first && first->receives ? "has not sent all" : "has not received all", n);
}

/* Return the carrier over which ranks tell each other that they give up; NULL if there is none. */
static mgrid_backend *move_run_carrier_of(const running *r) {
  return r->ops && r->ops->carrier ? r->ops->carrier(r->backend) : NULL;
}

static mgrid_outcome move_run_wait_for(running *r, mgrid_look *look, double seconds) {
  int64_t who = -1;
  double until = seconds > 0 && !r->ops->watches ? mgrid_now() + seconds : HUGE_VAL;
  mgrid_outcome o = mgrid_wait(look, r, until, move_run_carrier_of(r), &who);
  if (o == MGRID_LATE) return move_run_late(r, seconds, r->err);
  if (who >= 0) mgrid_fail(r->err, MGRID_OTHER_RANK, "rank %" PRId64 " gave up", who);
  return o;
}

/* Run all lanes at once. Elements that stay on this rank are copied while the first chunks are on
** their way. */
static mgrid_outcome flow(running *r, double seconds) {
  mgrid_outcome s = MGRID_OK;
  for (size_t i = r->nlanes; i-- > 0 && !s;) s = feed(r, &r->lane[i]); /* receivers first */
  if (!s) s = mgrid_chunks_stay(r->move, r->from, r->to, r->backend, r->err);
  while (r->left > 0 && !s) s = move_run_wait_for(r, move_run_progress, seconds);
  return s;
}

/* Run the lanes by rounds: in each direction a lane starts when the one before it has ended. */
static mgrid_outcome by_rounds(running *r, double seconds) {
  mgrid_outcome s = mgrid_chunks_stay(r->move, r->from, r->to, r->backend, r->err);
  size_t at[2] = { 0, r->nsend }, end[2] = { r->nsend, r->nlanes };
  while (r->left > 0 && !s) {
    for (int way = 0; way < 2 && !s; way++) {
      while (at[way] < end[way] && through(&r->lane[at[way]])) at[way]++;
      if (at[way] < end[way]) s = feed(r, &r->lane[at[way]]);
    }
    if (!s) s = move_run_wait_for(r, move_run_progress, seconds);
  }
  return s;
}

/* Post one step of the lanes of a round. Without rounds, all lanes have round -1. */
static mgrid_outcome try_round(running *r, int64_t round) {
  size_t n = 0;
  mgrid_outcome s = MGRID_OK;
  for (lane *l = r->lane; l < r->lane + r->nlanes && !s; l++) {
    bool more = false;
    if (l->round == round && !l->ended) s = move_run_fill(r, l, &r->step[n], &more);
    n += more;
  }
  return s || n == 0 ? s : r->ops->post(r->backend, n, r->step, r->err);
}

/* Run the lanes in step. A step is packed while the step before it is on its way. */
static mgrid_outcome in_step(running *r, double seconds) {
  int64_t first = r->move->sums.rounds ? 0 : -1,
          end = r->move->sums.rounds ? r->move->sums.rounds : 0;
  mgrid_outcome s = try_round(r, first);
  if (!s) s = mgrid_chunks_stay(r->move, r->from, r->to, r->backend, r->err);
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
      s = more && room ? try_round(r, round) : move_run_wait_for(r, move_run_progress, seconds);
    }
  }
  return s;
}

/* An mgrid_look that ends when the transport's copies have ended. */
static mgrid_outcome are_copied(void *ud) {
  running *r = ud;
  return r->ops->copied(r->backend, r->err);
}

/* Run all lanes, and copy the elements that stay on this rank. Fail after `seconds` without
** progress; 0: never. Errors go to r->err. */
static mgrid_outcome lanes_run(running *r, double seconds) {
  if (!r->ops) return mgrid_chunks_stay(r->move, r->from, r->to, r->backend, r->err);
  mgrid_outcome s = r->ops->together       ? in_step(r, seconds)
                    : r->move->sums.rounds ? by_rounds(r, seconds)
                                           : flow(r, seconds);
  return !s && r->ops->copied ? move_run_wait_for(r, are_copied, seconds) : s;
}

/* ------------------------------------------------------------ making, ending */

static int move_run_by_round(const void *a, const void *b) {
  const lane *x = a, *y = b;
  return (x->round > y->round) - (x->round < y->round);
}

/* Add a lane for every peer. Start with the peer after this rank, so that not all ranks start with
** the same one. */
static void add_lanes(running *r, bool receives) {
  const mgrid_move *m = r->move;
  size_t first = 0, begun = r->nlanes;
  while (first < m->npeers && m->peer[first].rank < m->rank) first++;
  for (size_t k = 0; k < m->npeers; k++) {
    const mgrid_move_peer *p = &m->peer[(first + k) % m->npeers];
    int64_t bytes = receives ? p->receive : p->send;
    if (bytes == 0) continue;
    r->lane[r->nlanes++] = (lane){ .peer = p->rank,
                                   .bytes = bytes,
                                   .round = receives ? p->receive_round : p->send_round,
                                   .receives = receives };
  }
  if (m->sums.rounds) qsort(r->lane + begun, r->nlanes - begun, sizeof *r->lane, move_run_by_round);
}

/* Make the lanes of this rank, with at most `window` bytes of memory. `lanes` is the most lanes that
** any rank has. */
static mgrid_outcome lanes_new(running *r, int64_t window, int64_t lanes, mgrid_error *err) {
  const mgrid_move *m = r->move;
  int64_t half = lanes ? window / (2 * lanes) / HALF_LEAST * HALF_LEAST : HALF_LEAST, bytes = 0,
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
    lane *l = &r->lane[i];
    int64_t room = 2 * (l->half = l->bytes < half ? l->bytes : half);
    if (m->sums.rounds) /* the lanes of a direction use one memory in turn */
      bytes = room > bytes ? room : bytes;
    else
      bytes += room;
  }
  if (r->nlanes == 0) return MGRID_OK;
  if (m->sums.rounds) bytes *= 2;
  r->staging = r->ops->memory ? r->ops->memory(r->backend, (size_t)bytes, err)
                              : malloc((size_t)bytes);
  if (!r->staging) return mgrid_oom(err);
  if (m->sums.rounds) bytes /= 2;
  for (size_t i = 0; i < r->nlanes; i++) {
    lane *l = &r->lane[i];
    l->buffer = r->staging + (m->sums.rounds ? (l->receives ? bytes : 0) : at);
    at += 2 * l->half;
  }
  return r->ops->prepare(r->backend, 2 * r->nlanes, err);
}

/* Free the lanes, if there are any. `ours`: the transport no longer uses their memory. */
static void lanes_free(running *r, bool ours) {
  for (size_t i = 0; i < r->nlanes; i++) {
    move_run_drop(&r->lane[i].ahead);
    move_run_drop(&r->lane[i].behind);
  }
  free(r->lane);
  free(r->ended);
  free(r->step);
  free(r->boxes);
  if (ours && !(r->ops && r->ops->memory)) free(r->staging);
}

/* ================================================================== the move */

/* ------------------------------------------------------------------- agree */

static mgrid_status move_run_check_side(running *r, bool from, const mgrid_buffer *buffer,
                                        char **part, mgrid_error *err) {
  const mgrid_move *m = r->move;

  for (size_t i = 0; i < m->pairs.n; i++) {
    const mgrid_pair *p = &m->pairs.pair[i];
    const mgrid_tensor *t = mgrid_pairs_tensor(&m->pairs, i, from);
    mgrid_coords at;
    bool held = from ? mgrid_pair_held(p, m->rank, &at) : mgrid_pair_coords(p, m->rank, &at);
    int64_t bytes = held ? mgrid_tensor_elements(t, &at) * t->width : 0;
    if (bytes > 0 && (!buffer[i].data || buffer[i].bytes < bytes))
      return mgrid_fail(err, MGRID_REFUSED,
                        "the part of tensor '%s' %s the move has %" PRId64
                        " bytes, its buffer on rank %" PRId64 " %" PRId64,
                        m->pairs.name[i], from ? "before" : "after", bytes, m->rank,
                        buffer[i].data ? buffer[i].bytes : 0);
    part[i] = buffer[i].data;
    if (bytes == 0 || !r->ops || !r->ops->reaches) continue;
    mgrid_text what = { 0 };
    mgrid_status s = MGRID_OK;
    mgrid_text_add(&what, "the part of tensor '%s' %s the move on rank %" PRId64, m->pairs.name[i],
                   from ? "before" : "after", m->rank);
    s = what.failed ? mgrid_oom(err) : r->ops->reaches(r->backend, part[i], what.data, err);
    mgrid_text_free(&what);
    if (s) return s;
  }
  return MGRID_OK;
}

/* Check the arguments, without the other ranks. */
static mgrid_status check(running *r, const mgrid_buffer *from, const mgrid_buffer *to,
                          const mgrid_move_run_options *o, mgrid_error *err) {
  const mgrid_move *m = r->move;

  if (!m) return err->status ? err->status : mgrid_fail(err, MGRID_USAGE, "no move was given");
  if (m->pairs.ranks != r->backend->world)
    return mgrid_fail(err, MGRID_REFUSED,
                      "the move is of %" PRId64 " ranks, the communicator has %" PRId64,
                      m->pairs.ranks, r->backend->world);
  if (m->rank != r->backend->rank)
    return mgrid_fail(err, MGRID_REFUSED,
                      "the move is seen from rank %" PRId64 ", this is rank %" PRId64, m->rank,
                      r->backend->rank);
  if (o->window < 1 || !(o->timeout >= 0))
    return mgrid_fail(
        err, MGRID_OUT_OF_RANGE,
        "a move needs a window of 0 (the default) or more bytes and a timeout of 0 or more");
  if (mgrid_lacks_list(m->pairs.n, from, "parts before the move", err)
      || mgrid_lacks_list(m->pairs.n, to, "parts after the move", err))
    return MGRID_USAGE;
  if (!r->ops && r->backend->world > 1)
    return mgrid_fail(err, MGRID_UNSUPPORTED, "the %s backend moves no data",
                      r->backend->kind->name);
  r->from = calloc(m->pairs.n + 1, sizeof *r->from);
  r->to = calloc(m->pairs.n + 1, sizeof *r->to);
  if (!r->from || !r->to) return mgrid_oom(err);
  mgrid_status s = r->ops && r->ops->ready ? r->ops->ready(r->backend, err) : MGRID_OK;
  if (!s) s = move_run_check_side(r, true, from, r->from, err);
  if (!s) s = move_run_check_side(r, false, to, r->to, err);
  bool gpu = r->ops && r->ops->copy && (!r->ops->copies || r->ops->copies(r->backend));
  for (size_t i = 0; i < m->pairs.n && gpu && !s; i++)
    if (mgrid_pairs_converts(&m->pairs, i))
      s = mgrid_fail(err, MGRID_UNSUPPORTED,
                     "tensor '%s' is %s before the move and %s after it; a move in GPU memory "
                     "cannot change types",
                     m->pairs.name[i], mgrid_pairs_tensor(&m->pairs, i, true)->type,
                     mgrid_pairs_tensor(&m->pairs, i, false)->type);
  return s;
}

/* Describe the move, for the message if moves of ranks differ. Return the digest of the move. */
static uint64_t move_run_name_it(const mgrid_move *m, const mgrid_move_run_options *o, char *text,
                                 size_t len) {
  const mgrid_plan *from = m->pairs.from, *to = m->pairs.to;
  const mgrid_renaming *names = &m->pairs.names, *olds = &m->pairs.olds;
  int64_t numbers[] = { names->n, m->sums.rounds, o->window, (int64_t)m->pairs.n,
                        m->pairs.machine };
  size_t at = (size_t)snprintf(
      text, len, "moves plan %08" PRIx64 " to %08" PRIx64 "%s, window %" PRId64 ":",
      from->digest[0] >> 32, to->digest[0] >> 32, m->sums.rounds ? " in rounds" : "", o->window);
  uint64_t h = XXH3_64bits(numbers, sizeof numbers);
  h = XXH3_64bits_withSeed(from->digest, sizeof from->digest, h);
  h = XXH3_64bits_withSeed(to->digest, sizeof to->digest, h);
  if (names->n) h = XXH3_64bits_withSeed(names->ranks, (size_t)names->n * sizeof *names->ranks, h);
  if (olds->n) h = XXH3_64bits_withSeed(olds->ranks, (size_t)olds->n * sizeof *olds->ranks, h);
  for (size_t i = 0; i < m->pairs.n; i++) {
    h = XXH3_64bits_withSeed(m->pairs.name[i], strlen(m->pairs.name[i]), h);
    if (at < len) at += (size_t)snprintf(text + at, len - at, " %s", m->pairs.name[i]);
  }
  mgrid_text_ellipsis(text, len, at);
  return h;
}

/* Agree with all ranks that they run the same move. Set *lanes to the most lanes that any rank has.
** This takes one call over all ranks, the rendezvous, and more calls only if a rank has failed or
** the moves differ. */
static mgrid_status move_run_agree(running *r, const mgrid_move_run_options *o, int64_t *lanes,
                                   mgrid_error *err) {
  char text[MGRID_TOLD] = "";
  mgrid_status failed = err->status, s;
  uint64_t who = UINT64_MAX;
  mgrid_error lost = MGRID_ERROR_INIT;
  mgrid_meeting met = { .have = true, .status = failed, .second = failed != MGRID_OK };

  met.call = mgrid_meet_call(r->backend, false, "a move of tensors");
  if (!failed) {
    met.first = move_run_name_it(r->move, o, text, sizeof text);
    met.least =
        INT64_MAX
        - (uint64_t)(r->move->sums.rounds ? 2 : r->move->sums.sends + r->move->sums.receives);
  }
  uint64_t digest = met.first;
  if (mgrid_meet_over(r->backend, &met, &lost)) {
    mgrid_error_clear(err);
    return mgrid_error_pass(err, &lost);
  }
  if (met.each) /* return the error of the first rank that failed, if any did */
    for (int64_t i = r->backend->world; i-- > 0;) who = met.each[MGRID_MET * i] ? (uint64_t)i : who;
  else if (failed) /* all ranks have failed */
    who = 0;
  s = mgrid_verdict_tell(r->backend, who, failed, err, err);
  if (!s && met.each) {
    const mgrid_peers all = mgrid_peers_all(r->backend);
    s = mgrid_compare(&all, &(mgrid_brought){ .digest = digest, .of = "", .text = text }, err);
  }
  free(met.each);
  *lanes = s ? 0 : (int64_t)(INT64_MAX - met.least);
  if (*lanes < 0 || *lanes > INT64_MAX / (4 * HALF_LEAST))
    s = mgrid_cannot_be(err, "%" PRId64 " messages at a time", *lanes), *lanes = 0;
  if (!s && *lanes > 0 && o->window / (2 * *lanes) < HALF_LEAST)
    s = mgrid_fail(err, MGRID_REFUSED,
                   "a window of %" PRId64 " bytes is too small for %" PRId64
                   " messages at a time: %" PRId64 " at least",
                   o->window, *lanes, 2 * HALF_LEAST * *lanes);
  return s;
}

/* --------------------------------------------------------------------- run */

mgrid_move *mgrid_state_move(const mgrid_state *from, const mgrid_state *to, size_t ntensors,
                             const char *const *tensors, const mgrid_move_options *given,
                             mgrid_error *err) {
  mgrid_move_options options = MGRID_MOVE_OPTIONS_INIT;
  if (!from || !to || mgrid_struct_read(&options, sizeof options, given, "mgrid_move_options", err))
    return NULL;
  if (options.machine == 0) options.machine = mgrid_states_machine(from, to);
  return mgrid_move_new(from->plan, to->plan, from->view.rank, ntensors, tensors, &options, err);
}

/* Move the data. A rank that fails notifies its peers, because they would wait for it. */
static mgrid_outcome carry(running *r, const mgrid_move_run_options *o, int64_t lanes,
                           mgrid_error *err) {
  mgrid_outcome s = lanes_new(r, o->window, lanes, err);
  r->err = err;
  if (!s) s = lanes_run(r, o->timeout);
  mgrid_backend *tells = s ? move_run_carrier_of(r) : NULL;
  for (size_t i = 0; i < r->move->npeers && tells; i++)
    tells->ops->carrier->tell(tells, r->move->peer[i].rank);
  return s;
}

mgrid_status mgrid_move_begin(const mgrid_move *m, mgrid_backend *b, const mgrid_buffer *from,
                              const mgrid_buffer *to, const mgrid_move_run_options *given,
                              bool *begun, mgrid_error *err) {
  *begun = false;
  if (!b || mgrid_layout_check(b->layout, "the backend's library", err))
    return b ? MGRID_MISSING : MGRID_USAGE;

  mgrid_move_run_options o = MGRID_MOVE_RUN_OPTIONS_INIT;
  mgrid_error mine = MGRID_ERROR_INIT;
  running r = { .move = m, .backend = b, .ops = b->ops->transport };
  mgrid_outcome carried = MGRID_OK;
  int64_t lanes = 0;
  if (!m && err) mgrid_error_pass(&mine, err); /* the error of mgrid_move_new; all ranks get it */

  mgrid_status read = mgrid_struct_read(&o, sizeof o, given, "mgrid_move_run_options", &mine);
  if (o.window == 0) o.window = (int64_t)64 << 20;
  if (!read) check(&r, from, to, &o, &mine);
  if (!(o.timeout >= 0)) o.timeout = 0;

  mgrid_status s = r.ops ? r.ops->open(b, &o.timeout, &mine) : MGRID_OK;
  bool opened = r.ops && !s;
  if (!s) s = move_run_agree(&r, &o, &lanes, &mine);
  *begun = !s;
  if (!s && lanes > 0 && r.ops->connect) s = r.ops->connect(b, &mine);
  if (!s) {
    carried = carry(&r, &o, lanes, &mine);
    s = mgrid_verdict(b, carried, &mine, &mine);
  }

  bool ours = !opened || r.ops->close(b, s && r.lane);
  lanes_free(&r, ours);
  free(r.from);
  free(r.to);
  return s ? mgrid_error_pass(err, &mine) : MGRID_OK;
}

mgrid_status mgrid_move_run(const mgrid_move *m, mgrid_backend *b, const mgrid_buffer *from,
                            const mgrid_buffer *to, const mgrid_move_run_options *given,
                            mgrid_error *err) {
  bool begun;
  return mgrid_move_begin(m, b, from, to, given, &begun, err);
}
