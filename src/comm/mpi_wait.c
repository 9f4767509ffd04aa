/* SPDX-License-Identifier: MIT
**
** mpi_wait.c - what waits for other ranks. A backend without a deadline calls MPI on the host's
** communicator and waits as MPI does. One with a deadline (the nccl backend asks for it) works
** on duplicates of its own, looks at its clock, and when somebody does not come, finds out who.
*/
#include "comm/mpi.h"

#include <inttypes.h>
#include <limits.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { TAG_FAILED = 1, TAG_HERE = 2, TAG_MISSING = 3 }; /* on `notes` */

/* How long after the deadline rank 0 collects the names of those who came. */
#define ROLL_CALL 2.0

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Between two looks: soon at first, then every millisecond. */
static void pause_a_bit(int look) {
  if (look < 200) {
    sched_yield();
    return;
  }
  struct timespec t = { 0, look < 1000 ? 50000 : 1000000 };
  nanosleep(&t, NULL);
}

/* ------------------------------------------------------------------ roll call */

static void list_missing(const char *here, int64_t world, char *text, size_t size) {
  enum { SHOWN = 8 };
  size_t  len = 0;
  int64_t n = 0;
  for (int64_t r = 0; r < world; r++) {
    if (here[r] || n++ >= SHOWN) continue;
    len += (size_t)snprintf(text + len, size - len, "%s%" PRId64, n > 1 ? ", " : "", r);
  }
  if (n == 0) snprintf(text, size, "some rank, which came too late,");
  if (n > SHOWN) snprintf(text + len, size - len, " and %" PRId64 " more", n - SHOWN);
}

/* Everybody whose wait ended reports to rank 0, which tells them who did not. */
static void call_roll(mpi_backend *m, char *missing, size_t size) {
  int64_t world = m->base.world;
  double  until = now() + ROLL_CALL;
  int     there = 0;
  if (m->base.rank != 0) {
    char        text[256] = "";
    MPI_Request sent, got;
    MPI_Isend(NULL, 0, MPI_BYTE, 0, TAG_HERE, m->notes, &sent);
    MPI_Request_free(&sent);
    MPI_Irecv(text, sizeof text, MPI_CHAR, 0, TAG_MISSING, m->notes, &got);
    for (int look = 0; !there && now() < until + ROLL_CALL; look++) {
      MPI_Test(&got, &there, MPI_STATUS_IGNORE);
      pause_a_bit(look);
    }
    if (!there) {
      MPI_Cancel(&got);
      MPI_Request_free(&got);
    }
    snprintf(missing, size, "%s", there ? text : "0");
    return;
  }
  char   *here = calloc((size_t)world, 1);
  int64_t n = 1;
  if (here) here[0] = 1;
  for (int look = 0; here && n < world && now() < until; look++) {
    MPI_Status from;
    MPI_Iprobe(MPI_ANY_SOURCE, TAG_HERE, m->notes, &there, &from);
    if (there) {
      MPI_Recv(NULL, 0, MPI_BYTE, from.MPI_SOURCE, TAG_HERE, m->notes, MPI_STATUS_IGNORE);
      n += !here[from.MPI_SOURCE];
      here[from.MPI_SOURCE] = 1;
    } else {
      pause_a_bit(look);
    }
  }
  char text[256] = "some rank";
  if (here) list_missing(here, world, text, sizeof text);
  for (int64_t r = 1; here && r < world; r++) {
    if (!here[r]) continue;
    MPI_Request sent;
    MPI_Isend(text, sizeof text, MPI_CHAR, (int)r, TAG_MISSING, m->notes, &sent);
    MPI_Wait(&sent, MPI_STATUS_IGNORE); /* 256 bytes to one who is waiting for them */
  }
  free(here);
  snprintf(missing, size, "%s", text);
}

/* Wait for a call over all ranks. */
static mg_status finish(mpi_backend *m, MPI_Request *request, int rc, const char *call, mg_error *err) {
  double begun = now();
  int    done = 0;
  if (rc) return mg_mpi_failed(err, rc, call, "agreement");
  for (int look = 0; !done; look++) {
    rc = MPI_Test(request, &done, MPI_STATUS_IGNORE);
    if (rc) return mg_mpi_failed(err, rc, call, "agreement");
    if (done) return MG_OK;
    if (now() - begun > m->base.seconds) break;
    pause_a_bit(look);
  }
  char missing[256];
  m->broken = true;
  call_roll(m, missing, sizeof missing);
  return mg_fail(err, MG_BACKEND, "after %g seconds not all ranks had come: rank%s %s %s not there", m->base.seconds,
                 strchr(missing, ',') ? "s" : "", missing, strchr(missing, ',') ? "are" : "is");
}

static mg_status usable(const mpi_backend *m, mg_error *err) {
  if (!m->broken) return MG_OK;
  return mg_fail(err, MG_BACKEND, "mpi: an earlier call over all ranks did not end; the job cannot go on");
}

/* ------------------------------------------------------ over the whole parent */

mg_status mg_mpi_allreduce(mg_backend *b, uint64_t *words, size_t n, mg_error *err) {
  mpi_backend *m = (mpi_backend *)b;
  if (usable(m, err)) return MG_BACKEND;
  if (b->seconds > 0) {
    MPI_Request request;
    int rc = MPI_Iallreduce(MPI_IN_PLACE, words, (int)n, MPI_UINT64_T, MPI_MIN, m->own, &request);
    return finish(m, &request, rc, "MPI_Iallreduce", err);
  }
  MPI_Errhandler was = mg_mpi_quiet(m->parent);
  int            rc = MPI_Allreduce(MPI_IN_PLACE, words, (int)n, MPI_UINT64_T, MPI_MIN, m->parent);
  mg_mpi_restore(m->parent, was);
  return rc ? mg_mpi_failed(err, rc, "MPI_Allreduce", "agreement") : MG_OK;
}

mg_status mg_mpi_allgather(mg_backend *b, const void *mine, void *all, size_t bytes, mg_error *err) {
  mpi_backend *m = (mpi_backend *)b;
  if (usable(m, err)) return MG_BACKEND;
  if (b->seconds > 0) {
    MPI_Request request;
    int rc = MPI_Iallgather(mine, (int)bytes, MPI_BYTE, all, (int)bytes, MPI_BYTE, m->own, &request);
    return finish(m, &request, rc, "MPI_Iallgather", err);
  }
  MPI_Errhandler was = mg_mpi_quiet(m->parent);
  int            rc = MPI_Allgather(mine, (int)bytes, MPI_BYTE, all, (int)bytes, MPI_BYTE, m->parent);
  mg_mpi_restore(m->parent, was);
  return rc ? mg_mpi_failed(err, rc, "MPI_Allgather", "agreement") : MG_OK;
}

mg_status mg_mpi_bcast(mg_backend *b, void *data, size_t bytes, int64_t root, mg_error *err) {
  mpi_backend *m = (mpi_backend *)b;
  mg_status    s = usable(m, err);
  bool         timed = b->seconds > 0;
  if (s) return s;
  MPI_Errhandler was = timed ? MPI_ERRHANDLER_NULL : mg_mpi_quiet(m->parent);
  for (size_t at = 0; at < bytes && !s; at += INT_MAX) {
    int n = (int)(bytes - at < INT_MAX ? bytes - at : INT_MAX), rc;
    if (timed) {
      MPI_Request request;
      rc = MPI_Ibcast((char *)data + at, n, MPI_BYTE, (int)root, m->own, &request);
      s = finish(m, &request, rc, "MPI_Ibcast", err);
    } else if ((rc = MPI_Bcast((char *)data + at, n, MPI_BYTE, (int)root, m->parent))) {
      s = mg_mpi_failed(err, rc, "MPI_Bcast", "agreement");
    }
  }
  if (!timed) mg_mpi_restore(m->parent, was);
  return s;
}

/* ---------------------------------------------------------- between two ranks */

mg_status mg_mpi_own(mg_backend *b, double seconds, int *local_rank, int *local_size, mg_error *err) {
  mpi_backend   *m = (mpi_backend *)b;
  MPI_Comm       local = MPI_COMM_NULL;
  MPI_Errhandler was = mg_mpi_quiet(m->parent);
  const char    *call = "MPI_Comm_dup";
  int            rc = MPI_SUCCESS;
  if (m->own == MPI_COMM_NULL) rc = MPI_Comm_dup(m->parent, &m->own);
  if (!rc && m->notes == MPI_COMM_NULL) rc = MPI_Comm_dup(m->parent, &m->notes);
  if (!rc) {
    call = "MPI_Comm_split_type";
    rc = MPI_Comm_split_type(m->parent, MPI_COMM_TYPE_SHARED, (int)b->rank, MPI_INFO_NULL, &local);
  }
  mg_mpi_restore(m->parent, was);
  if (rc) return mg_mpi_failed(err, rc, call, "the channel of the library");
  MPI_Comm_set_errhandler(m->own, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(m->notes, MPI_ERRORS_RETURN);
  MPI_Comm_rank(local, local_rank);
  MPI_Comm_size(local, local_size);
  MPI_Comm_free(&local);
  b->seconds = seconds;
  return MG_OK;
}

static mg_status finish_message(mpi_backend *m, MPI_Request *request, int rc, const char *call, int64_t peer,
                                double seconds, mg_error *err) {
  double begun = now();
  for (int look = 0, done = 0; !rc; look++) {
    rc = MPI_Test(request, &done, MPI_STATUS_IGNORE);
    if (!rc && done) return MG_OK;
    bool    late = now() - begun > seconds;
    int64_t who = late ? -1 : mg_mpi_heard(&m->base);
    if (rc || late || who >= 0) {
      MPI_Cancel(request);
      MPI_Request_free(request);
      if (who >= 0) return mg_fail(err, MG_BACKEND, "rank %" PRId64 " gave up", who);
      if (late) return mg_fail(err, MG_BACKEND, "rank %" PRId64 " did not come within %g seconds", peer, seconds);
      break;
    }
    pause_a_bit(look);
  }
  return mg_mpi_failed(err, rc, call, "the channel of the library");
}

mg_status mg_mpi_send(mg_backend *b, int64_t to, int tag, const void *data, size_t bytes, double seconds,
                      mg_error *err) {
  mpi_backend *m = (mpi_backend *)b;
  MPI_Request  request;
  int          rc = MPI_Isend(data, (int)bytes, MPI_BYTE, (int)to, tag, m->own, &request);
  return finish_message(m, &request, rc, "MPI_Isend", to, seconds, err);
}

mg_status mg_mpi_recv(mg_backend *b, int64_t from, int tag, void *data, size_t bytes, double seconds, mg_error *err) {
  mpi_backend *m = (mpi_backend *)b;
  MPI_Request  request;
  int          rc = MPI_Irecv(data, (int)bytes, MPI_BYTE, (int)from, tag, m->own, &request);
  return finish_message(m, &request, rc, "MPI_Irecv", from, seconds, err);
}

/* A word to one who may be waiting for us: we gave up, in this creation. */
void mg_mpi_tell(mg_backend *b, int64_t to) {
  mpi_backend *m = (mpi_backend *)b;
  uint64_t     epoch = b->epoch;
  MPI_Request  request;
  if (to == b->rank || MPI_Isend(&epoch, sizeof epoch, MPI_BYTE, (int)to, TAG_FAILED, m->notes, &request)) return;
  MPI_Wait(&request, MPI_STATUS_IGNORE); /* 8 bytes are on their way at once */
}

/* Who gave up, or -1: each word is heard once. */
int64_t mg_mpi_heard(mg_backend *b) {
  mpi_backend *m = (mpi_backend *)b;
  int          there = 0;
  uint64_t     epoch = 0;
  MPI_Status   from;
  if (MPI_Iprobe(MPI_ANY_SOURCE, TAG_FAILED, m->notes, &there, &from) || !there) return -1;
  MPI_Recv(&epoch, sizeof epoch, MPI_BYTE, from.MPI_SOURCE, TAG_FAILED, m->notes, MPI_STATUS_IGNORE);
  return epoch == b->epoch ? from.MPI_SOURCE : -1;
}
