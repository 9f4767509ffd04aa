/* SPDX-License-Identifier: MIT
**
** mpi_calls.c - calls that wait for other ranks: over all ranks on the library's duplicate, over
** one group, and messages as a carrier. Each call begins without blocking and has a deadline. A
** rank that waits takes part in the roll call (arrivals.c), which finds out who is missing. MPI
** cannot cancel such calls: if a call does not end, it stays in progress, its memory is not freed,
** and MPI is not finalized.
*/
#include "comm/mpi/mpi.h"

#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---------------------------------------------- the minimum over all ranks
** The minimum of a few words, by messages along a tree: up to rank 0 and down again. In each wait,
** a rank that shares its core waits for the time slices of others. Here it waits twice; in an
** MPI_Iallreduce log2(ranks) times, which takes two to three times as long (scripts/lab/costs.md). */

static int64_t first_child(const mpi_backend *m) { return m->base.rank * MGRID_TREE_CHILDREN + 1; }

static int from_child(mpi_backend *m, int i, size_t n) {
  return MPI_Irecv(m->tree.child[i], (int)n, MPI_UINT64_T, (int)first_child(m) + i, MGRID_TAG_RISE,
                   m->comm, &m->tree.children[i]);
}

static mpi_request tree_begin(mpi_backend *m, const uint64_t *words, size_t n) {
  mpi_tree *t = &m->tree;
  int64_t left = m->base.world - first_child(m);
  mpi_request call = { .tree = m };
  t->phase = MGRID_TREE_RISES, t->n = n;
  t->nchildren = left < 0 ? 0 : left < MGRID_TREE_CHILDREN ? (int)left : MGRID_TREE_CHILDREN;
  t->own[0] = t->own[1] = MPI_REQUEST_NULL;
  memcpy(t->words, words, n * sizeof *words);
  for (int i = 0; i < t->nchildren; i++) t->children[i] = MPI_REQUEST_NULL;
  for (int i = 0; i < t->nchildren && !call.rc; i++) call.rc = from_child(m, i, n);
  return call;
}

/* All children have reported. Begin to report to the parent, and to receive its answer. */
static int rise(mpi_backend *m, mpi_tree *t) {
  for (int i = 0; i < t->nchildren; i++)
    for (size_t k = 0; k < t->n; k++)
      if (t->child[i][k] < t->words[k]) t->words[k] = t->child[i][k];
  t->phase = MGRID_TREE_FALLS;
  if (m->base.rank == 0) return MPI_SUCCESS;
  int n = (int)t->n, parent = (int)((m->base.rank - 1) / MGRID_TREE_CHILDREN);
  int rc = MPI_Irecv(t->answer, n, MPI_UINT64_T, parent, MGRID_TAG_FALL, m->comm, &t->own[0]);
  return rc ? rc
            : MPI_Isend(t->words, n, MPI_UINT64_T, parent, MGRID_TAG_RISE, m->comm, &t->own[1]);
}

static int fall(mpi_backend *m, mpi_tree *t) {
  int rc = MPI_SUCCESS;
  t->phase = MGRID_TREE_ENDS;
  if (m->base.rank > 0) memcpy(t->words, t->answer, t->n * sizeof *t->words);
  for (int i = 0; i < t->nchildren && !rc; i++)
    rc = MPI_Isend(t->words, (int)t->n, MPI_UINT64_T, (int)first_child(m) + i, MGRID_TAG_FALL,
                   m->comm, &t->children[i]);
  return rc;
}

static mgrid_outcome tree_through(mpi_backend *m, int *rc) {
  mpi_tree *t = &m->tree;
  int done = 1;
  while (!*rc && done) {
    bool falls = t->phase == MGRID_TREE_FALLS;
    *rc = MPI_Testall(falls ? 2 : t->nchildren, falls ? t->own : t->children, &done,
                      MPI_STATUSES_IGNORE);
    if (*rc || !done) break;
    if (t->phase == MGRID_TREE_ENDS) return MGRID_OK;
    *rc = falls ? fall(m, t) : rise(m, t);
  }
  return *rc ? MGRID_BACKEND : MGRID_NOT_YET;
}

/* --------------------------------------------------- wait, with a deadline */

mgrid_outcome mgrid_mpi_through(void *ud) {
  mpi_request *w = ud;
  int done = 0;
  if (w->tree) return tree_through(w->tree, &w->rc);
  if (!w->rc) w->rc = MPI_Test(&w->request, &done, MPI_STATUS_IGNORE);
  return w->rc ? MGRID_BACKEND : done ? MGRID_OK : MGRID_NOT_YET;
}

typedef struct waiting { /* a call over all ranks or over a group */
  mpi_request call;
  mpi_roll *roll;
} waiting;

/* An mgrid_look. A rank that waits takes part in the roll call. */
static mgrid_outcome have_all_come(void *ud) {
  waiting *w = ud;
  mgrid_outcome through = mgrid_mpi_through(&w->call);
  return through == MGRID_NOT_YET && mgrid_roll_look(w->roll) ? MGRID_LATE : through;
}

/* Wait for a call over all ranks. own: its buffer, to which MPI may still write after a failure.
** NULL: there was no memory for that; then the buffer is the caller's, and the wait has no
** deadline. */
static mgrid_status calls_finish(mpi_backend *m, mpi_request call, const void *own,
                                 const char *name, mgrid_error *err) {
  /* true: this call is the verdict on creations, whose deadline has not passed */
  const bool watched = mgrid_watch_is_on(m);
  mpi_roll roll = mgrid_roll_begin(m, NULL, m->base.world, ++m->calls, m->seconds);
  waiting w = { call, &roll };
  double seconds = m->hurry ? m->seconds / 4 : m->seconds;

  if (m->hurry) roll.next = roll.next_to_0 = 0;
  m->hurry = false;
  mgrid_outcome came =
      mgrid_wait(have_all_come, &w, own ? roll.begun + seconds : INFINITY, NULL, NULL);
  mgrid_status s = MGRID_OK;
  if (w.call.rc) {
    s = mgrid_mpi_failed_in(m, err, w.call.rc, name, "agreement");
  } else if (came == MGRID_LATE) {
    mgrid_missing missing = { 0 };
    bool lost = roll.missing.lost, known = watched && !lost && mgrid_watch_missing(m, &missing);
    if (!known) missing = mgrid_roll_end(&roll);
    bool left = roll.guessed && mgrid_mpi_is_interrupted(m);
    /* a silent rank may wait inside MPI for another rank */
    bool unsure = watched && !known && !lost && !left;
    s = left     ? mgrid_mpi_fail_interrupted(err, "agreement")
        : unsure ? mgrid_watch_fail(m, &missing, err)
                 : mgrid_missing_fail(&missing, m->base.waited + seconds, err);
    if (unsure)
      mgrid_error_reword(err, "%.800s; those that wait in MPI for another say so on stderr",
                         err->message);
  }
  mgrid_watch_end(m);
  m->broken |= s != MGRID_OK;
  return s;
}

/* Return the number of the nth call over a group: a hash of the group's name (FNV-1a), and n. */
static uint64_t calls_number_of(const char *name, uint64_t nth) {
  uint64_t h = UINT64_C(0xcbf29ce484222325);
  for (; *name; name++) h = (h ^ (unsigned char)*name) * UINT64_C(0x100000001b3);
  return UINT64_C(1) << 63 | h << MGRID_MPI_CALL_BITS | (nth & ((1 << MGRID_MPI_CALL_BITS) - 1));
}

static mgrid_status finish_with(mpi_roll *roll, const mgrid_comm_spec *spec, mpi_comm *c,
                                mpi_request call, const char *name, mgrid_error *err) {
  mpi_backend *m = roll->m;
  double seconds = roll->seconds;
  waiting w = { call, roll };
  if (mgrid_wait(have_all_come, &w, roll->begun + seconds, NULL, NULL) == MGRID_OK) return MGRID_OK;
  m->hurry = m->pending = c->stuck = true;
  if (w.call.rc) return mgrid_mpi_failed_in(m, err, w.call.rc, name, spec->name);
  mgrid_missing missing = mgrid_roll_end(roll);
  mgrid_error who = MGRID_ERROR_INIT;
  mgrid_missing_fail(&missing, seconds, &who);
  mgrid_error_reword(&who, "%.700s, in %s over %s", who.message, name, spec->name);
  return mgrid_error_pass(err, &who);
}

mgrid_status mgrid_mpi_finish_group(mpi_backend *m, const mgrid_comm_spec *spec, mpi_comm *c,
                                    mpi_request call, double seconds, const char *name,
                                    mgrid_error *err) {
  mpi_roll roll = mgrid_roll_begin(m, spec->ranks, spec->size,
                                   calls_number_of(spec->name, ++c->calls), seconds);
  return finish_with(&roll, spec, c, call, name, err);
}

/* Wait for a message between two members. The other member may wait for a third one, so it would
** not act as the first rank of a roll call of this message. So each of the two is the first rank of
** a roll call of its own, and asks the other. */
static mgrid_status finish_pair(mpi_backend *m, const mgrid_comm_spec *spec, mpi_comm *c,
                                mpi_request call, int64_t position, double seconds,
                                const char *name, mgrid_error *err) {
  const int32_t me = (int32_t)m->base.rank,
                pair[] = { me, spec->ranks ? spec->ranks[position] : me };
  mpi_roll roll = mgrid_roll_begin(m, pair, position == spec->position ? 1 : 2,
                                   calls_number_of(name, 0), seconds);
  roll.pairs = true;
  return finish_with(&roll, spec, c, call, name, err);
}

/* --------------------------------------------------------------- over all ranks
** Data goes through memory that the calls below allocate. If a call does not end, this memory is
** not freed, because MPI may still write to it. */

static mgrid_status reduce(mpi_backend *m, uint64_t *words, size_t n, mgrid_error *err) {
  mpi_request call = { 0 };
  uint64_t *own = malloc(n * sizeof *own), *at = own ? own : words;
  if (own) memcpy(own, words, n * sizeof *words);
  mgrid_flip(at, n);
  call.rc = MPI_Iallreduce(MPI_IN_PLACE, at, (int)n, MPI_INT64_T, MPI_MIN, m->comm, &call.request);
  mgrid_status s = calls_finish(m, call, own, "MPI_Iallreduce", err);
  if (s) return s;
  mgrid_flip(at, n);
  if (own) memcpy(words, own, n * sizeof *words);
  free(own);
  return MGRID_OK;
}

static mgrid_status reduce_few(mpi_backend *m, uint64_t *words, size_t n, mgrid_error *err) {
  mpi_request call = tree_begin(m, words, n);
  mgrid_status s = calls_finish(m, call, m->tree.words, "a tree of messages", err);
  if (!s) memcpy(words, m->tree.words, n * sizeof *words);
  return s;
}

/* --------------------------------------------------------------- the end of a move
** Some ranks finish long before others, and wait in the verdict while the others still move. So a
** whole move has one roll call and one deadline. */

void mgrid_mpi_moving(mpi_backend *m) {
  m->moving.on = true, m->moving.stalled = false;
  m->moving.last = mgrid_now();
  m->moving.roll = mgrid_roll_begin(m, NULL, m->base.world, ++m->calls, m->seconds);
  m->moving.roll.moves = true;
}

/* Note that nothing moves although all ranks answer the roll call; if this is new, the roll call
** goes on. Return whether it was noted before. */
static bool stalls(mpi_backend *m) {
  bool before = m->moving.stalled;
  m->moving.stalled = true;
  m->moving.roll.told = before;
  m->moving.roll.since = m->moving.last = mgrid_now();
  return before;
}

mgrid_outcome mgrid_mpi_goes_on(mpi_backend *m, size_t n, mgrid_error *err) {
  if (!m->moving.on) return MGRID_OK;
  m->moving.count += n;
  if (n) m->moving.last = mgrid_now();
  if (!mgrid_roll_look(&m->moving.roll)) return MGRID_OK;
  if (m->moving.roll.missing.n == 0) return stalls(m), MGRID_LATE;
  mgrid_fail(err, MGRID_OTHER_RANK, "ranks are missing");
  return MGRID_GAVE_UP;
}

/* An mgrid_look. If nothing moves, the ranks that still wait for messages notice it, too, and then
** come to this verdict; so wait for them once more. A rank that waits here does not sleep, because
** that would add to the time of the move. */
static mgrid_outcome have_moved(void *ud) {
  waiting *w = ud;
  mpi_backend *m = w->roll->m;
  mgrid_outcome o = have_all_come(w);
  bool goes = o == MGRID_LATE && w->roll->missing.n == 0 && !stalls(m);
  return goes || o == MGRID_NOT_YET ? MGRID_BUSY : o;
}

static mgrid_status reduce_moved(mpi_backend *m, uint64_t *word, mgrid_error *err) {
  waiting w = { tree_begin(m, word, 1), &m->moving.roll };
  mgrid_status s = MGRID_OK;
  m->moving.on = false;
  if (mgrid_wait(have_moved, &w, INFINITY, NULL, NULL) == MGRID_LATE)
    s = mgrid_missing_fail(&w.roll->missing, m->seconds, err);
  if (w.call.rc) s = mgrid_mpi_failed_in(m, err, w.call.rc, "a tree of messages", "a move");
  m->broken |= s != MGRID_OK;
  *word = m->tree.words[0];
  return s;
}

mgrid_status mgrid_mpi_allreduce(mgrid_backend *b, uint64_t *words, size_t n, mgrid_error *err) {
  mpi_backend *m = (mpi_backend *)b;
  mgrid_status s = mgrid_mpi_usable(m, err);
  if (s) return s;
  if (m->moving.on && n == 1) return reduce_moved(m, words, err);
  return n <= MGRID_TREE_WORDS ? reduce_few(m, words, n, err) : reduce(m, words, n, err);
}

mgrid_status mgrid_mpi_allgather(mgrid_backend *b, const void *mine, void *all, size_t bytes,
                                 mgrid_error *err) {
  mpi_backend *m = (mpi_backend *)b;
  mgrid_status s = mgrid_mpi_usable(m, err);
  if (s) return s;
  size_t whole = bytes * (size_t)b->world;
  char *own = malloc(whole + bytes);
  if (own) memcpy(own + whole, mine, bytes);
  mpi_request call = { 0 };
  call.rc = MPI_Iallgather(own ? own + whole : mine, (int)bytes, MPI_BYTE, own ? own : all,
                           (int)bytes, MPI_BYTE, m->comm, &call.request);
  s = calls_finish(m, call, own, "MPI_Iallgather", err);
  if (s) return s;
  if (own) memcpy(all, own, whole);
  free(own);
  return MGRID_OK;
}

static mgrid_status bcast_piece(mpi_backend *m, void *data, int bytes, int root, mgrid_error *err) {
  char *own = malloc((size_t)bytes + 1);
  if (own) memcpy(own, data, (size_t)bytes);
  mpi_request call = { 0 };
  call.rc = MPI_Ibcast(own ? own : data, bytes, MPI_BYTE, root, m->comm, &call.request);
  mgrid_status s = calls_finish(m, call, own, "MPI_Ibcast", err);
  if (s) return s;
  if (own) memcpy(data, own, (size_t)bytes);
  free(own);
  return MGRID_OK;
}

mgrid_status mgrid_mpi_bcast(mgrid_backend *b, void *data, size_t bytes, int64_t root,
                             mgrid_error *err) {
  mpi_backend *m = (mpi_backend *)b;
  mgrid_status s = mgrid_mpi_usable(m, err);
  for (size_t at = 0; at < bytes && !s; at += INT_MAX)
    s = bcast_piece(m, (char *)data + at, (int)(bytes - at < INT_MAX ? bytes - at : INT_MAX),
                    (int)root, err);
  return s;
}

/* Duplicate a communicator. Collective over it. */
static mgrid_status duplicate(mpi_backend *m, MPI_Comm from, MPI_Comm *to, mgrid_error *err) {
  mpi_request call = { 0 };
  call.rc = MPI_Comm_idup(from, to, &call.request);
  mgrid_status s = calls_finish(m, call, to, "MPI_Comm_idup", err);
  if (!s) MPI_Comm_set_errhandler(*to, MPI_ERRORS_RETURN);
  return s;
}

enum { WORK_TAG = 1 };

/* Begin a call. received: a send ends only when it is received, as in a step, which may not rely on
** buffers of MPI. */
static int begin_work(MPI_Comm comm, const mgrid_work *w, bool received, MPI_Request *request) {
  static const MPI_Datatype types[] = { MPI_INT32_T, MPI_INT64_T, MPI_FLOAT, MPI_DOUBLE };
  static const MPI_Op ops[] = { MPI_SUM, MPI_PROD, MPI_MIN, MPI_MAX };
  MPI_Datatype type = types[w->type];
  MPI_Op op = ops[w->reduction];
  int n = (int)w->count, root = (int)w->root;
  const void *from = w->send == w->recv ? MPI_IN_PLACE : w->send;

  switch (w->call) {
  case MGRID_ALLREDUCE:
    return w->rooted ? MPI_Ireduce(w->send, w->recv, n, type, op, root, comm, request)
                     : MPI_Iallreduce(from, w->recv, n, type, op, comm, request);
  case MGRID_BROADCAST: return MPI_Ibcast(w->recv, n, type, root, comm, request);
  case MGRID_ALLGATHER:
    return w->rooted ? MPI_Igather(w->send, n, type, w->recv, n, type, root, comm, request)
                     : MPI_Iallgather(from, n, type, w->recv, n, type, comm, request);
  case MGRID_REDUCE_SCATTER:
    return MPI_Ireduce_scatter_block(from, w->recv, n, type, op, comm, request);
  case MGRID_SENDRECV:
    return w->to < 0  ? MPI_Irecv(w->recv, n, type, (int)w->from, WORK_TAG, comm, request)
           : received ? MPI_Issend(w->send, n, type, (int)w->to, WORK_TAG, comm, request)
                      : MPI_Isend(w->send, n, type, (int)w->to, WORK_TAG, comm, request);
  case MGRID_BARRIER: return MPI_Ibarrier(comm, request);
  case MGRID_ALL_TO_ALL:
    return w->rooted ? MPI_Iscatter(w->send, n, type, w->recv, n, type, root, comm, request)
                     : MPI_Ialltoall(w->send, n, type, w->recv, n, type, comm, request);
  }
  return MPI_ERR_ARG;
}

static mgrid_status check_work(const mgrid_comm_spec *spec, const mpi_comm *c, const mgrid_work *w,
                               mgrid_error *err) {
  if (c && c->stuck)
    return mgrid_fail(err, MGRID_TIMED_OUT,
                      "mpi: an earlier call over %s did not end; it cannot be used", spec->name);
  if (w->count > INT32_MAX)
    return mgrid_fail(err, MGRID_USAGE, "mpi: a call of %zu elements over %s; at most %d", w->count,
                      spec->name, INT32_MAX);
  return MGRID_OK;
}

/* ---------------------------------------------------- a call over a group */

static const char *const call_names[] = { "an all-reduce",    "a broadcast", "an all-gather",
                                          "a reduce-scatter", "a message",   "a barrier",
                                          "an all-to-all" };

/* Begin a send, a receive, or another call, and wait for it. */
static mgrid_status call_one(mpi_backend *m, const mgrid_comm_spec *spec, mpi_comm *c,
                             const mgrid_work *w, double seconds, mgrid_error *err) {
  mpi_comm alone = { .comm = MPI_COMM_SELF }, *on = c ? c : &alone;
  mpi_request call = { 0 };
  const char *name = w->ours ? m->base.doing : call_names[w->call];
  int64_t other = w->to >= 0 ? w->to : w->from;
  call.rc = begin_work(on->comm, w, false, &call.request);
  if (call.rc) return mgrid_mpi_failed_in(m, err, call.rc, name, spec->name);
  if (w->call == MGRID_SENDRECV) return finish_pair(m, spec, on, call, other, seconds, name, err);
  return mgrid_mpi_finish_group(m, spec, on, call, seconds, name, err);
}

/* Begin the receive, then the send, and wait for both. */
static mgrid_status calls_exchange(mpi_backend *m, const mgrid_comm_spec *spec, mpi_comm *c,
                                   const mgrid_work *w, mgrid_error *err) {
  mgrid_work in = *w, out = *w;
  mpi_request call = { 0 };
  double until = mgrid_now() + m->seconds;
  in.to = out.from = -1;
  call.rc = begin_work(c ? c->comm : MPI_COMM_SELF, &in, false, &call.request);
  if (call.rc) return mgrid_mpi_failed_in(m, err, call.rc, call_names[w->call], spec->name);
  mgrid_status s = call_one(m, spec, c, &out, m->seconds, err);
  m->pending |= s != MGRID_OK; /* the receive stays in progress */
  if (s) return s;
  mpi_comm alone = { .comm = MPI_COMM_SELF };
  return finish_pair(m, spec, c ? c : &alone, call, in.from, until - mgrid_now(),
                     call_names[w->call], err);
}

mgrid_outcome mgrid_mpi_collective(mgrid_backend *b, const mgrid_comm_spec *spec, void *native,
                                   const mgrid_work *w, mgrid_error *err) {
  mpi_backend *m = (mpi_backend *)b;
  mpi_comm *c = native; /* NULL: a group of one rank */
  mgrid_status s = mgrid_mpi_usable(m, err);
  if (!s) s = check_work(spec, c, w, err);
  if (s) return s;
  MPI_Comm comm = c ? c->comm : MPI_COMM_SELF;
  MPI_Errhandler was = mgrid_mpi_quiet(comm);
  bool both = w->call == MGRID_SENDRECV && w->to >= 0 && w->from >= 0;
  s = both ? calls_exchange(m, spec, c, w, err) : call_one(m, spec, c, w, m->seconds, err);
  mgrid_mpi_restore(comm, was);
  m->hurry = false; /* there is no verdict after this */
  return s;
}

/* ----------------------------------------------------- the calls of a step */

typedef struct step_waiting {
  mpi_backend *m;
  size_t n;
  MPI_Request *request;
  int rc;
  mgrid_error *err;
} step_waiting;

/* An mgrid_look: whether all calls have ended. Between mgrid_mpi_moving and its verdict, also look
** whether ranks are missing, or nothing moves. */
static mgrid_outcome have_ended(void *ud) {
  step_waiting *w = ud;
  int flag = 0;
  w->rc = MPI_Testall((int)w->n, w->request, &flag, MPI_STATUSES_IGNORE);
  if (w->rc) return MGRID_BACKEND;
  mgrid_outcome on = mgrid_mpi_goes_on(w->m, flag ? w->n : 0, w->err);
  return on ? on : flag ? MGRID_OK : MGRID_NOT_YET;
}

static mgrid_outcome wait_for_all(mpi_backend *m, size_t n, const mgrid_together *calls,
                                  MPI_Request *request, double seconds, mgrid_error *err) {
  step_waiting w = { m, n, request, 0, err };
  double until = m->moving.on ? INFINITY : mgrid_now() + seconds;
  mpi_comm *alone = n == 1 && calls[0].work.call != MGRID_SENDRECV ? calls[0].native : NULL;
  if (alone && !m->moving.on)
    return mgrid_mpi_finish_group(m, calls[0].spec, alone, (mpi_request){ .request = request[0] },
                                  seconds, "a step", err);
  mgrid_outcome ended = mgrid_wait(have_ended, &w, until, NULL, NULL);
  if (ended == MGRID_OK) return MGRID_OK;
  m->pending = true;
  for (size_t i = 0; i < n; i++)
    if (calls[i].native) ((mpi_comm *)calls[i].native)->stuck = true;
  if (w.rc) return mgrid_mpi_failed_in(m, err, w.rc, "a call of a step", calls[0].spec->name);
  if (ended == MGRID_GAVE_UP) return ended;
  return mgrid_fail(err, MGRID_TIMED_OUT, "after %g seconds %s %s had not met, and nothing moved",
                    seconds, alone ? "the members of" : "messages over", calls[0].spec->name);
}

mgrid_outcome mgrid_mpi_together(mgrid_backend *b, size_t n, const mgrid_together *calls,
                                 double seconds, mgrid_error *err) {
  MPI_Request request[MGRID_TOGETHER_MAX];
  mpi_backend *m = (mpi_backend *)b;
  mgrid_status s = mgrid_mpi_usable(m, err);
  for (size_t i = 0; i < n && !s; i++)
    s = check_work(calls[i].spec, calls[i].native, &calls[i].work, err);
  if (s) return s;
  for (size_t i = 0; i < n && !s; i++) {
    mpi_comm *c = calls[i].native;
    MPI_Comm comm = c ? c->comm : MPI_COMM_SELF;
    MPI_Errhandler was = mgrid_mpi_quiet(comm);
    int rc = begin_work(comm, &calls[i].work, true, &request[i]);
    mgrid_mpi_restore(comm, was);
    if (rc) s = mgrid_mpi_failed_in(m, err, rc, "a call of a step", calls[i].spec->name);
  }
  if (!s) return wait_for_all(m, n, calls, request, seconds, err);
  m->pending = true;
  return s;
}

/* ------------------------------------------------------------------- a carrier */

static mgrid_status carrier_start(mgrid_backend *b, double seconds, int *local_rank,
                                  int *local_size, mgrid_error *err) {
  mpi_backend *m = (mpi_backend *)b;
  mgrid_status s = mgrid_mpi_usable(m, err);
  if (!s) m->seconds = seconds;
  if (!s && m->talk == MPI_COMM_NULL) s = duplicate(m, m->comm, &m->talk, err);
  uint64_t own = mgrid_machine_id(), *all = s ? NULL : malloc((size_t)b->world * sizeof own);
  if (!s) s = mgrid_verdict(b, all ? MGRID_OK : mgrid_oom(err), err, err);
  if (!s) s = mgrid_mpi_allgather(b, &own, all, sizeof own, err);
  *local_rank = *local_size = 0;
  for (int64_t r = 0; r < b->world && !s; r++) {
    *local_size += all[r] == own;
    *local_rank += all[r] == own && r < b->rank;
  }
  free(all);
  return s;
}

static void carrier_deadline(mgrid_backend *b, double seconds) {
  mpi_backend *m = (mpi_backend *)b;
  m->seconds = seconds > 0 ? seconds : m->usual;
}

static void carrier_phase(mgrid_backend *b, uint64_t number) { ((mpi_backend *)b)->phase = number; }

/* Wait until the send, or the receive, has ended. */
static mgrid_outcome finish_message(mpi_backend *m, mpi_request *w, const char *call, int64_t peer,
                                    double seconds, mgrid_error *err) {
  int64_t who;
  mgrid_outcome outcome = mgrid_wait(mgrid_mpi_through, w, mgrid_now() + seconds, &m->base, &who);
  if (w->rc) return mgrid_mpi_failed_in(m, err, w->rc, call, "the channel of the library");
  if (outcome == MGRID_LATE)
    return mgrid_fail(err, MGRID_TIMED_OUT, "rank %" PRId64 " did not come within %.3g seconds",
                      peer, seconds);
  if (outcome == MGRID_GAVE_UP) mgrid_fail(err, MGRID_OTHER_RANK, "rank %" PRId64 " gave up", who);
  return outcome;
}

static mgrid_outcome carrier_send(mgrid_backend *b, int64_t to, int tag, const void *data,
                                  size_t bytes, double seconds, mgrid_error *err) {
  mpi_backend *m = (mpi_backend *)b;
  mpi_request w = { 0 };
  void *own = malloc(bytes + 1);
  if (!own) return mgrid_oom(err);
  memcpy(own, data, bytes);
  w.rc = MPI_Isend(own, (int)bytes, MPI_BYTE, (int)to, tag, m->talk, &w.request);
  mgrid_outcome outcome = finish_message(m, &w, "MPI_Isend", to, seconds, err);
  /* otherwise the send is still in progress, and cannot be cancelled */
  if (outcome == MGRID_OK || w.rc) free(own);
  return outcome;
}

static mgrid_outcome carrier_recv(mgrid_backend *b, int64_t from, int tag, void *data, size_t bytes,
                                  double seconds, mgrid_error *err) {
  mpi_backend *m = (mpi_backend *)b;
  mpi_request w = { 0 };
  w.rc = MPI_Irecv(data, (int)bytes, MPI_BYTE, (int)from, tag, m->talk, &w.request);
  mgrid_outcome outcome = finish_message(m, &w, "MPI_Irecv", from, seconds, err);
  if (outcome != MGRID_OK && !w.rc) { /* cancel the receive, because the caller may free `data` */
    MPI_Cancel(&w.request);
    MPI_Wait(&w.request, MPI_STATUS_IGNORE);
  }
  return outcome;
}

static void calls_tell(mgrid_backend *b, int64_t to) {
  mpi_backend *m = (mpi_backend *)b;
  if (to != b->rank) mgrid_mpi_post(m, to, MGRID_TAG_FAILED, &m->phase, sizeof m->phase);
}

static int64_t calls_heard(mgrid_backend *b) {
  mpi_backend *m = (mpi_backend *)b;
  int there = 0;
  uint64_t phase = 0;
  MPI_Status from;
  if (MPI_Iprobe(MPI_ANY_SOURCE, MGRID_TAG_FAILED, m->comm, &there, &from) || !there) return -1;
  MPI_Recv(&phase, sizeof phase, MPI_BYTE, from.MPI_SOURCE, MGRID_TAG_FAILED, m->comm,
           MPI_STATUS_IGNORE);
  return phase == m->phase ? from.MPI_SOURCE : -1;
}

const mgrid_carrier_ops mgrid_mpi_carrier = { .start = carrier_start,
                                              .deadline = carrier_deadline,
                                              .send = carrier_send,
                                              .recv = carrier_recv,
                                              .tell = calls_tell,
                                              .heard = calls_heard,
                                              .phase = carrier_phase };
