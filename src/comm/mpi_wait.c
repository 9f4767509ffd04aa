/* SPDX-License-Identifier: MIT
**
** mpi_wait.c - calls that wait for other ranks, on our duplicate of the host's communicator. Each has a deadline:
** it watches the clock, and if ranks are missing finds out which.
*/
#include "comm/mpi.h"

#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

mgrid_outcome mgrid_mpi_through(void *ud) {
  mpi_request *w = ud;
  int          done = 0;
  if (w->tree) return mgrid_mpi_tree_through(w->tree, &w->rc);
  if (!w->rc) w->rc = MPI_Test(&w->request, &done, MPI_STATUS_IGNORE);
  return w->rc ? MGRID_BACKEND : done ? MGRID_OK : MGRID_NOT_YET;
}

typedef struct waiting { /* one call over all ranks, or over a group */
  mpi_request call;
  mpi_roll    roll;
} waiting;

/* mgrid_look: while it waits, a rank takes part in the roll call. */
static mgrid_outcome have_all_come(void *ud) {
  waiting      *w = ud;
  mgrid_outcome through = mgrid_mpi_through(&w->call);
  if (through == MGRID_NOT_YET) mgrid_roll_look(&w->roll);
  return through;
}

/* Wait for a call over all ranks. Its buffers are `own`, of the backend, as MPI may still write there after a
** failure; where there was no memory for that they are the caller's, and the wait has no deadline. */
static mgrid_status finish(mpi_backend *m, mpi_request call, const void *own, const char *name, mgrid_error *err) {
  const bool watched = mgrid_watch_is_on(m); /* this is the verdict on creations, and their deadline has not passed */
  waiting    w = { call, mgrid_roll_begin(m, NULL, m->base.world, ++m->calls, m->seconds) };
  double     seconds = m->hurry ? m->seconds / 4 : m->seconds;
  w.roll.hurry = m->hurry;
  m->hurry = false;
  mgrid_outcome came = mgrid_wait(have_all_come, &w, own ? w.roll.begun + seconds : INFINITY, NULL, NULL);
  mgrid_status  s = MGRID_OK;
  if (w.call.rc) {
    s = mgrid_mpi_failed(err, w.call.rc, name, "agreement");
  } else if (came == MGRID_LATE) {
    mgrid_missing missing = { 0 };
    bool          known = watched && mgrid_watch_missing(m, &missing);
    if (!known) missing = mgrid_roll_end(&w.roll);
    s = mgrid_missing_fail(&missing, m->seconds, err);
    if (watched && !known)
      mgrid_error_reword(err, "%.800s; those that wait in MPI for another say so on stderr", err->message);
  }
  mgrid_watch_end(m);
  m->broken |= s != MGRID_OK;
  return s;
}

mgrid_status mgrid_mpi_finish_group(mpi_backend *m, const mgrid_comm_spec *spec, mpi_comm *c, mpi_request call,
                                    double seconds, const char *name, mgrid_error *err) {
  uint64_t number = mgrid_mpi_number(spec->name, ++c->calls);
  waiting  w = { call, mgrid_roll_begin(m, spec->ranks, spec->size, number, seconds) };
  if (mgrid_wait(have_all_come, &w, w.roll.begun + seconds, NULL, NULL) == MGRID_OK) return MGRID_OK;
  m->hurry = m->pending = c->stuck = true;
  if (w.call.rc) return mgrid_mpi_failed(err, w.call.rc, name, spec->name);
  mgrid_missing missing = mgrid_roll_end(&w.roll);
  mgrid_error   who = MGRID_ERROR_INIT;
  mgrid_missing_fail(&missing, seconds, &who);
  return mgrid_fail(err, MGRID_TIMED_OUT, "%.700s, in %s over %s", who.message, name, spec->name);
}

/* --------------------------------------------------------------- over all ranks
** Data goes through memory of the backend, which is leaked if the call does not end, because MPI may still write
** there. */

static mgrid_status reduce(mpi_backend *m, uint64_t *words, size_t n, mgrid_error *err) {
  mpi_request call = { 0 };
  uint64_t   *own = malloc(n * sizeof *own), *at = own ? own : words;
  if (own) memcpy(own, words, n * sizeof *words);
  mgrid_mpi_turn(at, n);
  call.rc = MPI_Iallreduce(MPI_IN_PLACE, at, (int)n, MPI_INT64_T, MPI_MIN, m->comm, &call.request);
  mgrid_status s = finish(m, call, own, "MPI_Iallreduce", err);
  if (s) return s;
  mgrid_mpi_turn(at, n);
  if (own) memcpy(words, own, n * sizeof *words);
  free(own);
  return MGRID_OK;
}

static mgrid_status reduce_few(mpi_backend *m, uint64_t *words, size_t n, mgrid_error *err) {
  mpi_request  call = mgrid_mpi_tree_begin(m, words, n);
  mgrid_status s = finish(m, call, m->tree.words, "a tree of messages", err);
  if (!s) memcpy(words, m->tree.words, n * sizeof *words);
  return s;
}

/* The verdict on a move, where some ranks are through long before others. A rank that is not through, and has moved on
** since, comes to calls like this one all the same, each a quarter of the deadline after the last, with a word that it is
** not: then all have another deadline. */
void mgrid_mpi_moving(mpi_backend *m) {
  m->moving.on = true, m->moving.news = false;
  m->moving.last = mgrid_now(), m->moving.look = 0;
  m->moving.request = MPI_REQUEST_NULL;
}

mgrid_status mgrid_mpi_goes_on(mpi_backend *m, bool news, mgrid_error *err) {
  const double rest = 0.005;
  double       now = mgrid_now();
  int          rc = MPI_SUCCESS, done = 0;
  if (!m->moving.on) return MGRID_OK;
  m->moving.news |= news;
  if (now < m->moving.look) return MGRID_OK;
  m->moving.look = now + rest;
  if (m->base.rank == 0) mgrid_roll_answer(m); /* those who wait ask whether the first is there */
  if (m->moving.request != MPI_REQUEST_NULL) {
    rc = MPI_Test(&m->moving.request, &done, MPI_STATUS_IGNORE);
    m->calls += done != 0;
  } else if (m->moving.news && now - m->moving.last >= m->seconds / 4) {
    m->moving.news = false;
    m->moving.last = now;
    m->moving.words[0] = UINT64_MAX, m->moving.words[1] = 0;
    mgrid_mpi_turn(m->moving.words, 2);
    rc = MPI_Iallreduce(MPI_IN_PLACE, m->moving.words, 2, MPI_INT64_T, MPI_MIN, m->comm, &m->moving.request);
  }
  return rc ? mgrid_mpi_failed(err, rc, "MPI_Iallreduce", "a move") : MGRID_OK;
}

static mgrid_status reduce_moved(mpi_backend *m, uint64_t *word, mgrid_error *err) {
  mgrid_status s = MGRID_OK;
  uint64_t     words[2] = { 0 };
  if (m->moving.request != MPI_REQUEST_NULL)
    s = finish(m, (mpi_request){ .request = m->moving.request }, m->moving.words, "MPI_Iallreduce", err);
  while (!s && !words[1]) { /* until all are through */
    words[0] = *word, words[1] = 1;
    s = reduce(m, words, 2, err);
  }
  m->moving.on = false;
  *word = words[0];
  return s;
}

mgrid_status mgrid_mpi_allreduce(mgrid_backend *b, uint64_t *words, size_t n, mgrid_error *err) {
  mpi_backend *m = (mpi_backend *)b;
  mgrid_status s = mgrid_mpi_usable(m, err);
  if (s) return s;
  if (m->moving.on && n == 1) return reduce_moved(m, words, err);
  return n <= MGRID_TREE_WORDS ? reduce_few(m, words, n, err) : reduce(m, words, n, err);
}

mgrid_status mgrid_mpi_allgather(mgrid_backend *b, const void *mine, void *all, size_t bytes, mgrid_error *err) {
  mpi_backend *m = (mpi_backend *)b;
  mgrid_status s = mgrid_mpi_usable(m, err);
  if (s) return s;
  size_t whole = bytes * (size_t)b->world;
  char  *own = malloc(whole + bytes);
  if (own) memcpy(own + whole, mine, bytes);
  mpi_request call = { 0 };
  call.rc = MPI_Iallgather(own ? own + whole : mine, (int)bytes, MPI_BYTE, own ? own : all, (int)bytes, MPI_BYTE,
                           m->comm, &call.request);
  s = finish(m, call, own, "MPI_Iallgather", err);
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
  mgrid_status s = finish(m, call, own, "MPI_Ibcast", err);
  if (s) return s;
  if (own) memcpy(data, own, (size_t)bytes);
  free(own);
  return MGRID_OK;
}

mgrid_status mgrid_mpi_bcast(mgrid_backend *b, void *data, size_t bytes, int64_t root, mgrid_error *err) {
  mpi_backend *m = (mpi_backend *)b;
  mgrid_status s = mgrid_mpi_usable(m, err);
  for (size_t at = 0; at < bytes && !s; at += INT_MAX)
    s = bcast_piece(m, (char *)data + at, (int)(bytes - at < INT_MAX ? bytes - at : INT_MAX), (int)root, err);
  return s;
}

mgrid_status mgrid_mpi_duplicate(mpi_backend *m, MPI_Comm from, MPI_Comm *to, mgrid_error *err) {
  mpi_request   call = { 0 };
  mgrid_missing unknown = { 0 };
  call.rc = MPI_Comm_idup(from, to, &call.request);
  mgrid_outcome came = mgrid_wait(mgrid_mpi_through, &call, mgrid_now() + m->seconds, NULL, NULL);
  m->broken |= came != MGRID_OK;
  if (came == MGRID_LATE) return mgrid_missing_fail(&unknown, m->seconds, err);
  if (came) return mgrid_mpi_failed(err, call.rc, "MPI_Comm_idup", "the channel of the library");
  MPI_Comm_set_errhandler(*to, MPI_ERRORS_RETURN);
  return MGRID_OK;
}

/* ------------------------------------------------------------------- a carrier */

static mgrid_status carrier_start(mgrid_backend *b, double seconds, int *local_rank, int *local_size,
                                  mgrid_error *err) {
  mpi_backend *m = (mpi_backend *)b;
  MPI_Comm     local = MPI_COMM_NULL;
  mgrid_status s = mgrid_mpi_usable(m, err);
  if (!s) m->seconds = seconds;
  if (!s && m->talk == MPI_COMM_NULL) s = mgrid_mpi_duplicate(m, m->comm, &m->talk, err);
  if (s) return s;
  int rc = MPI_Comm_split_type(m->comm, MPI_COMM_TYPE_SHARED, (int)b->rank, MPI_INFO_NULL, &local);
  if (rc) return mgrid_mpi_failed(err, rc, "MPI_Comm_split_type", "the channel of the library");
  MPI_Comm_rank(local, local_rank);
  MPI_Comm_size(local, local_size);
  MPI_Comm_free(&local);
  return MGRID_OK;
}

static void carrier_deadline(mgrid_backend *b, double seconds) {
  mpi_backend *m = (mpi_backend *)b;
  m->seconds = seconds > 0 ? seconds : m->usual;
}

static void carrier_phase(mgrid_backend *b, uint64_t number) { ((mpi_backend *)b)->phase = number; }

/* Wait until the message is sent or received. */
static mgrid_outcome finish_message(mpi_backend *m, mpi_request *w, const char *call, int64_t peer, double seconds,
                                    mgrid_error *err) {
  int64_t       who;
  mgrid_outcome outcome = mgrid_wait(mgrid_mpi_through, w, mgrid_now() + seconds, &m->base, &who);
  if (w->rc) return mgrid_mpi_failed(err, w->rc, call, "the channel of the library");
  if (outcome == MGRID_LATE)
    return mgrid_fail(err, MGRID_TIMED_OUT, "rank %" PRId64 " did not come within %.3g seconds", peer, seconds);
  if (outcome == MGRID_GAVE_UP) mgrid_fail(err, MGRID_OTHER_RANK, "rank %" PRId64 " gave up", who);
  return outcome;
}

static mgrid_outcome carrier_send(mgrid_backend *b, int64_t to, int tag, const void *data, size_t bytes, double seconds,
                                  mgrid_error *err) {
  mpi_backend *m = (mpi_backend *)b;
  mpi_request  w = { 0 };
  void        *own = malloc(bytes + 1);
  if (!own) return mgrid_oom(err);
  memcpy(own, data, bytes);
  w.rc = MPI_Isend(own, (int)bytes, MPI_BYTE, (int)to, tag, m->talk, &w.request);
  mgrid_outcome outcome = finish_message(m, &w, "MPI_Isend", to, seconds, err);
  if (outcome == MGRID_OK || w.rc) free(own); /* else leaked: a send cannot be cancelled */
  return outcome;
}

static mgrid_outcome carrier_recv(mgrid_backend *b, int64_t from, int tag, void *data, size_t bytes, double seconds,
                                  mgrid_error *err) {
  mpi_backend *m = (mpi_backend *)b;
  mpi_request  w = { 0 };
  w.rc = MPI_Irecv(data, (int)bytes, MPI_BYTE, (int)from, tag, m->talk, &w.request);
  mgrid_outcome outcome = finish_message(m, &w, "MPI_Irecv", from, seconds, err);
  if (outcome != MGRID_OK && !w.rc) { /* cancel it: the memory is the caller's */
    MPI_Cancel(&w.request);
    MPI_Wait(&w.request, MPI_STATUS_IGNORE);
  }
  return outcome;
}

void mgrid_mpi_tell(mgrid_backend *b, int64_t to) {
  mpi_backend *m = (mpi_backend *)b;
  if (to != b->rank) mgrid_mpi_post(m, to, MGRID_TAG_FAILED, &m->phase, sizeof m->phase);
}

int64_t mgrid_mpi_heard(mgrid_backend *b) {
  mpi_backend *m = (mpi_backend *)b;
  int          there = 0;
  uint64_t     phase = 0;
  MPI_Status   from;
  if (MPI_Iprobe(MPI_ANY_SOURCE, MGRID_TAG_FAILED, m->comm, &there, &from) || !there) return -1;
  MPI_Recv(&phase, sizeof phase, MPI_BYTE, from.MPI_SOURCE, MGRID_TAG_FAILED, m->comm, MPI_STATUS_IGNORE);
  return phase == m->phase ? from.MPI_SOURCE : -1;
}

const mgrid_carrier_ops mgrid_mpi_carrier = { .start = carrier_start,
                                              .deadline = carrier_deadline,
                                              .send = carrier_send,
                                              .recv = carrier_recv,
                                              .tell = mgrid_mpi_tell,
                                              .heard = mgrid_mpi_heard,
                                              .phase = carrier_phase };
