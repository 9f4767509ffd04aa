/* SPDX-License-Identifier: MIT
**
** mpi_wait.c - what waits for other ranks. A backend without a deadline calls MPI on the host's
** communicator and waits as MPI does. One with a deadline (the nccl backend asks for it) works
** on duplicates of its own, looks at its clock, and when somebody does not come, finds out who.
*/
#include "comm/mpi.h"

#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

enum { TAG_FAILED = 1, TAG_HERE = 2, TAG_MISSING = 3 }; /* on `notes` */

enum { ANSWER = 256 }; /* bytes of rank 0's word on who is missing */

/* ------------------------------------------------------------------ roll call
** When a call over all ranks takes long, everybody in it reports to rank 0, which notes who is
** there while it waits itself, and tells the others at its deadline who is not. Presence is a
** matter of having come, not of whose clock runs out first. */

typedef struct waiting { /* one call over all ranks */
  mpi_backend *m;
  uint64_t     number; /* of the call: equal on all ranks */
  double       begun;
  bool         reported;
  char        *here; /* rank 0: [world], once somebody has reported */
} waiting;

static void report(waiting *w) {
  MPI_Request sent;
  if (w->reported || w->m->base.rank == 0) return;
  w->reported = true;
  if (!MPI_Isend(&w->number, sizeof w->number, MPI_BYTE, 0, TAG_HERE, w->m->notes, &sent))
    MPI_Wait(&sent, MPI_STATUS_IGNORE); /* 8 bytes are on their way at once */
}

/* Rank 0: who has reported so far? */
static void take_reports(waiting *w) {
  mpi_backend *m = w->m;
  for (int there = 1; there && m->base.rank == 0;) {
    MPI_Status from;
    uint64_t   number = 0;
    if (MPI_Iprobe(MPI_ANY_SOURCE, TAG_HERE, m->notes, &there, &from) || !there) return;
    MPI_Recv(&number, sizeof number, MPI_BYTE, from.MPI_SOURCE, TAG_HERE, m->notes, MPI_STATUS_IGNORE);
    if (!w->here) w->here = calloc((size_t)m->base.world, 1);
    if (w->here && number == w->number) w->here[from.MPI_SOURCE] = 1;
  }
}

static void list_missing(const waiting *w, char *text, size_t size) {
  enum { SHOWN = 8 };
  size_t  len = 0;
  int64_t n = 0;
  for (int64_t r = 1; r < w->m->base.world; r++) {
    if ((w->here && w->here[r]) || n++ >= SHOWN) continue;
    len += (size_t)snprintf(text + len, size - len, "%s%" PRId64, n > 1 ? ", " : "", r);
  }
  if (n == 0) snprintf(text, size, "some rank");
  if (n > SHOWN) snprintf(text + len, size - len, " and %" PRId64 " more", n - SHOWN);
}

/* The end of a wait: rank 0 tells all who are there, the others hear it. Whoever is later than
** rank 0's deadline hears nothing, and does not know who is missing. */
static void end_roll(waiting *w, char *missing, size_t size) {
  mpi_backend *m = w->m;
  char         text[ANSWER] = "";
  MPI_Request  request;
  int          there = 0;
  if (m->base.rank != 0) {
    double until = mgrid_now() + m->base.seconds + 1; /* rank 0 may have come later than we did */
    MPI_Irecv(text, sizeof text, MPI_CHAR, 0, TAG_MISSING, m->notes, &request);
    for (int look = 0; !there && mgrid_now() < until; look++) {
      MPI_Test(&request, &there, MPI_STATUS_IGNORE);
      mgrid_pause(look);
    }
    if (!there) {
      MPI_Cancel(&request);
      MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    snprintf(missing, size, "%s", there ? text : "0");
    return;
  }
  list_missing(w, text, sizeof text);
  for (int64_t r = 1; r < m->base.world; r++)
    if (w->here && w->here[r] && !MPI_Isend(text, sizeof text, MPI_CHAR, (int)r, TAG_MISSING, m->notes, &request))
      MPI_Wait(&request, MPI_STATUS_IGNORE); /* small, and its receiver waits for it */
  snprintf(missing, size, "%s", text);
}

/* Wait for a call over all ranks, whose buffers are ours: after a failure MPI may still write there. */
static mgrid_status finish(mpi_backend *m, MPI_Request *request, int rc, const char *call, mgrid_error *err) {
  waiting w = { m, ++m->calls, mgrid_now(), false, NULL };
  int     done = 0;
  for (int look = 0; !rc && !done; look++) {
    rc = MPI_Test(request, &done, MPI_STATUS_IGNORE);
    if (rc || done) break;
    double waited = mgrid_now() - w.begun;
    if (waited > m->base.seconds / 4) report(&w);
    take_reports(&w);
    if (waited > m->base.seconds) break;
    mgrid_pause(look);
  }
  mgrid_status s = MGRID_OK;
  if (rc) {
    s = mgrid_mpi_failed(err, rc, call, "agreement");
  } else if (!done) {
    char missing[ANSWER];
    end_roll(&w, missing, sizeof missing);
    bool several = strchr(missing, ',') || strstr(missing, " and ");
    s = mgrid_fail(err, MGRID_BACKEND, "after %g seconds not all ranks had come: %s%s %s not there", m->base.seconds,
                   *missing == 's' ? ""
                   : several       ? "ranks "
                                   : "rank ",
                   missing, several ? "are" : "is");
  }
  m->broken |= s != MGRID_OK;
  free(w.here);
  return s;
}

static mgrid_status usable(const mpi_backend *m, mgrid_error *err) {
  if (!m->broken) return MGRID_OK;
  return mgrid_fail(err, MGRID_BACKEND, "mpi: an earlier call over all ranks did not end; the job cannot go on");
}

/* ------------------------------------------------------ over the whole parent
** With a deadline all data goes through memory of our own, which is left behind where the call
** did not end. */

static mgrid_status timed_allreduce(mpi_backend *m, uint64_t *words, size_t n, mgrid_error *err) {
  MPI_Request request;
  uint64_t   *own = n <= sizeof m->few / sizeof *m->few ? m->few : m->words;
  memcpy(own, words, n * sizeof *words);
  int          rc = MPI_Iallreduce(MPI_IN_PLACE, own, (int)n, MPI_UINT64_T, MPI_MIN, m->own, &request);
  mgrid_status s = finish(m, &request, rc, "MPI_Iallreduce", err);
  if (!s) memcpy(words, own, n * sizeof *words);
  return s;
}

static mgrid_status timed_allgather(mpi_backend *m, const void *mine, void *all, size_t bytes, mgrid_error *err) {
  size_t whole = bytes * (size_t)m->base.world;
  char  *own = malloc(whole + bytes);
  if (!own) return mgrid_oom(err);
  memcpy(own + whole, mine, bytes);
  MPI_Request  request;
  int          rc = MPI_Iallgather(own + whole, (int)bytes, MPI_BYTE, own, (int)bytes, MPI_BYTE, m->own, &request);
  mgrid_status s = finish(m, &request, rc, "MPI_Iallgather", err);
  if (s) return s;
  memcpy(all, own, whole);
  free(own);
  return MGRID_OK;
}

static mgrid_status timed_bcast(mpi_backend *m, void *data, int bytes, int root, mgrid_error *err) {
  char *own = malloc((size_t)bytes + 1);
  if (!own) return mgrid_oom(err);
  memcpy(own, data, (size_t)bytes);
  MPI_Request  request;
  int          rc = MPI_Ibcast(own, bytes, MPI_BYTE, root, m->own, &request);
  mgrid_status s = finish(m, &request, rc, "MPI_Ibcast", err);
  if (s) return s;
  memcpy(data, own, (size_t)bytes);
  free(own);
  return MGRID_OK;
}

mgrid_status mgrid_mpi_allreduce(mgrid_backend *b, uint64_t *words, size_t n, mgrid_error *err) {
  mpi_backend *m = (mpi_backend *)b;
  if (usable(m, err)) return MGRID_BACKEND;
  if (b->seconds > 0) return timed_allreduce(m, words, n, err);
  MPI_Errhandler was = mgrid_mpi_quiet(m->parent);
  int            rc = MPI_Allreduce(MPI_IN_PLACE, words, (int)n, MPI_UINT64_T, MPI_MIN, m->parent);
  mgrid_mpi_restore(m->parent, was);
  return rc ? mgrid_mpi_failed(err, rc, "MPI_Allreduce", "agreement") : MGRID_OK;
}

mgrid_status mgrid_mpi_allgather(mgrid_backend *b, const void *mine, void *all, size_t bytes, mgrid_error *err) {
  mpi_backend *m = (mpi_backend *)b;
  if (usable(m, err)) return MGRID_BACKEND;
  if (b->seconds > 0) return timed_allgather(m, mine, all, bytes, err);
  MPI_Errhandler was = mgrid_mpi_quiet(m->parent);
  int            rc = MPI_Allgather(mine, (int)bytes, MPI_BYTE, all, (int)bytes, MPI_BYTE, m->parent);
  mgrid_mpi_restore(m->parent, was);
  return rc ? mgrid_mpi_failed(err, rc, "MPI_Allgather", "agreement") : MGRID_OK;
}

mgrid_status mgrid_mpi_bcast(mgrid_backend *b, void *data, size_t bytes, int64_t root, mgrid_error *err) {
  mpi_backend *m = (mpi_backend *)b;
  mgrid_status s = usable(m, err);
  bool         timed = b->seconds > 0;
  if (s) return s;
  MPI_Errhandler was = timed ? MPI_ERRHANDLER_NULL : mgrid_mpi_quiet(m->parent);
  for (size_t at = 0; at < bytes && !s; at += INT_MAX) {
    int   n = (int)(bytes - at < INT_MAX ? bytes - at : INT_MAX), rc = MPI_SUCCESS;
    char *piece = (char *)data + at;
    if (timed)
      s = timed_bcast(m, piece, n, (int)root, err);
    else if ((rc = MPI_Bcast(piece, n, MPI_BYTE, (int)root, m->parent)))
      s = mgrid_mpi_failed(err, rc, "MPI_Bcast", "agreement");
  }
  if (!timed) mgrid_mpi_restore(m->parent, was);
  return s;
}

/* ---------------------------------------------------------- between two ranks */

mgrid_status mgrid_mpi_own(mgrid_backend *b, double seconds, int *local_rank, int *local_size, mgrid_error *err) {
  mpi_backend   *m = (mpi_backend *)b;
  MPI_Comm       local = MPI_COMM_NULL;
  MPI_Errhandler was = mgrid_mpi_quiet(m->parent);
  const char    *call = "MPI_Comm_dup";
  int            rc = MPI_SUCCESS;
  if (m->own == MPI_COMM_NULL) rc = MPI_Comm_dup(m->parent, &m->own);
  if (!rc && m->notes == MPI_COMM_NULL) rc = MPI_Comm_dup(m->parent, &m->notes);
  if (!rc) {
    call = "MPI_Comm_split_type";
    rc = MPI_Comm_split_type(m->parent, MPI_COMM_TYPE_SHARED, (int)b->rank, MPI_INFO_NULL, &local);
  }
  mgrid_mpi_restore(m->parent, was);
  if (rc) return mgrid_mpi_failed(err, rc, call, "the channel of the library");
  MPI_Comm_set_errhandler(m->own, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(m->notes, MPI_ERRORS_RETURN);
  MPI_Comm_rank(local, local_rank);
  MPI_Comm_size(local, local_size);
  MPI_Comm_free(&local);
  b->seconds = seconds;
  if (!m->words) m->words = malloc((size_t)(b->world + 1) * sizeof *m->words);
  return m->words ? MGRID_OK : mgrid_oom(err); /* MGRID_LIMIT: a verdict can still be had */
}

/* Until the message is through; a receive that is given up is taken back. *through: may the buffer be
** used again? */
static mgrid_status finish_message(mpi_backend *m, MPI_Request *request, int rc, const char *call, int64_t peer,
                                   bool send, double seconds, bool *through, mgrid_error *err) {
  double begun = mgrid_now();
  *through = true;
  for (int look = 0, done = 0; !rc; look++) {
    rc = MPI_Test(request, &done, MPI_STATUS_IGNORE);
    if (!rc && done) return MGRID_OK;
    bool    late = mgrid_now() - begun > seconds;
    int64_t who = late ? -1 : mgrid_mpi_heard(&m->base);
    if (rc) break;
    if (late || who >= 0) {
      *through = !send; /* MPI does not take back what is sent */
      if (!send) {
        MPI_Cancel(request);
        MPI_Wait(request, MPI_STATUS_IGNORE);
      }
      if (late)
        return mgrid_fail(err, MGRID_BACKEND, "rank %" PRId64 " did not come within %.3g seconds", peer, seconds);
      mgrid_fail(err, MGRID_BACKEND, "rank %" PRId64 " gave up", who);
      return MGRID_GAVE_UP;
    }
    mgrid_pause(look);
  }
  return mgrid_mpi_failed(err, rc, call, "the channel of the library");
}

mgrid_status mgrid_mpi_send(mgrid_backend *b, int64_t to, int tag, const void *data, size_t bytes, double seconds,
                            mgrid_error *err) {
  mpi_backend *m = (mpi_backend *)b;
  MPI_Request  request;
  bool         through;
  void        *own = malloc(bytes + 1); /* left behind where the message is not through */
  if (!own) return mgrid_oom(err);
  memcpy(own, data, bytes);
  int          rc = MPI_Isend(own, (int)bytes, MPI_BYTE, (int)to, tag, m->own, &request);
  mgrid_status s = finish_message(m, &request, rc, "MPI_Isend", to, true, seconds, &through, err);
  if (through) free(own);
  return s;
}

mgrid_status mgrid_mpi_recv(mgrid_backend *b, int64_t from, int tag, void *data, size_t bytes, double seconds,
                            mgrid_error *err) {
  mpi_backend *m = (mpi_backend *)b;
  MPI_Request  request;
  bool         through;
  int          rc = MPI_Irecv(data, (int)bytes, MPI_BYTE, (int)from, tag, m->own, &request);
  return finish_message(m, &request, rc, "MPI_Irecv", from, false, seconds, &through, err);
}

/* A word to one who may be waiting for us: we gave up, in this creation. */
void mgrid_mpi_tell(mgrid_backend *b, int64_t to) {
  mpi_backend *m = (mpi_backend *)b;
  uint64_t     epoch = b->epoch;
  MPI_Request  request;
  if (to == b->rank || MPI_Isend(&epoch, sizeof epoch, MPI_BYTE, (int)to, TAG_FAILED, m->notes, &request)) return;
  MPI_Wait(&request, MPI_STATUS_IGNORE); /* 8 bytes are on their way at once */
}

/* Who gave up, or -1: each word is heard once. */
int64_t mgrid_mpi_heard(mgrid_backend *b) {
  mpi_backend *m = (mpi_backend *)b;
  int          there = 0;
  uint64_t     epoch = 0;
  MPI_Status   from;
  if (MPI_Iprobe(MPI_ANY_SOURCE, TAG_FAILED, m->notes, &there, &from) || !there) return -1;
  MPI_Recv(&epoch, sizeof epoch, MPI_BYTE, from.MPI_SOURCE, TAG_FAILED, m->notes, MPI_STATUS_IGNORE);
  return epoch == b->epoch ? from.MPI_SOURCE : -1;
}
