/* SPDX-License-Identifier: MIT
**
** watchdog.c - a thread that watches the clock while MPI creates communicators. MPI has no creation that does not
** block, and a blocked one cannot be cancelled: if a rank dies or stops between two creations, its peers wait inside
** MPI forever. So a thread of each rank finds out at the deadline which ranks are missing, and reports it for ranks
** that cannot.
**
** The thread does not call MPI, which would be wrong below MPI_THREAD_MULTIPLE. Ranks of one machine see each other
** by abstract sockets, which end with their process: before the deadline each rank that is inside a creation, or has
** finished all, opens one whose name all ranks know. A rank without one at the deadline is missing. Ranks of other
** machines cannot be seen, and a rank may wait for another through others, so all ranks that cannot be seen are
** listed.
**
** The thread starts with the first creation of a backend and sleeps until the backend ends: starting and joining a
** thread for each call took as long as two creations of 8 ranks.
*/
#include "comm/mpi/mpi.h"

#include <inttypes.h>
#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

enum { LIST = 640, LINE = 1024 }; /* characters of the list of unseen ranks; of the line printed */

typedef enum place { OUTSIDE, INSIDE, THROUGH } place; /* of the creations of MPI */

struct mpi_watch {
  const mpi_backend     *m;
  pthread_t              thread;
  pthread_mutex_t        lock; /* of what follows */
  pthread_cond_t         woken;
  bool                   on, ends; /* creations, or the verdict on them, are running; the thread is to end */
  double                 begun, seconds, wake; /* start of the creations; their deadline; when the thread wakes up */
  uint64_t               call;                 /* number of the verdict on them */
  place                  at;                   /* where the main thread is */
  const mgrid_comm_spec *spec;                 /* INSIDE: the creation */
  int                    sign;                 /* the socket; -1: none */
  bool                   looked;               /* the deadline has passed, and then: */
  uint8_t               *seen;                 /* [world] whether a rank shows a sign; NULL: no sign can be seen */
  mgrid_missing          missing;              /* ranks of this machine that show none */
};

/* Set the name of the socket by which a rank is seen: from the job, these creations, and the rank. */
static socklen_t sign_name(const mpi_watch *w, int64_t rank, struct sockaddr_un *to) {
  *to = (struct sockaddr_un){ .sun_family = AF_UNIX }; /* a first byte of zero: no file */
  int len = snprintf(to->sun_path + 1, sizeof to->sun_path - 1, "moongrid/%016" PRIx64 "/%" PRIu64 "/%" PRId64,
                     w->m->job, w->call, rank);
  return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)len);
}

static void show_sign(mpi_watch *w) {
  struct sockaddr_un name;
  socklen_t          len = sign_name(w, w->m->base.rank, &name);
  w->sign = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (w->sign >= 0 && bind(w->sign, (struct sockaddr *)&name, len)) close(w->sign), w->sign = -1;
}

/* Find the ranks that are known to be on this machine: [*from, *to). None if that is not known, as in the first
** creation of a job on several machines. */
static void find_mates(const mgrid_backend *b, int64_t *from, int64_t *to) {
  const int64_t block = b->place.machines == 1 ? b->world : b->place.block;
  *from = block ? b->rank - b->rank % block : 0;
  *to = !block ? 0 : *from + block < b->world ? *from + block : b->world;
}

/* Find out which ranks show a sign. A rank without its own sign cannot know. O(world), once, at a deadline. */
static void look_around(mpi_watch *w) {
  const mgrid_backend *b = &w->m->base;
  int                  from = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  int64_t              first, end;
  w->looked = true;
  w->seen = from >= 0 && w->sign >= 0 ? calloc((size_t)b->world, sizeof *w->seen) : NULL;
  for (int64_t r = 0; r < b->world && w->seen; r++) {
    struct sockaddr_un name;
    socklen_t          len = sign_name(w, r, &name);
    w->seen[r] = connect(from, (struct sockaddr *)&name, len) == 0;
  }
  if (from >= 0) close(from);
  find_mates(b, &first, &end);
  for (int64_t r = first; r < end && w->seen; r++)
    if (!w->seen[r]) mgrid_missing_add(&w->missing, r);
}

static bool is_unseen(const mpi_watch *w, int64_t r) { return r != w->m->base.rank && !(w->seen && w->seen[r]); }

/* List the ranks that cannot be seen, "0 to 3, 6, 7", by runs, so that those of other machines take few words. Return
** how many there are. */
static int64_t list_unseen(const mpi_watch *w, char *to, size_t room) {
  const int64_t world = w->m->base.world;
  const size_t  tail = 32; /* room for the end of the text */
  size_t        len = 0;
  int64_t       n = 0, shown = 0;
  for (int64_t r = 0, end; r < world; r = end) {
    end = r + 1;
    if (!is_unseen(w, r)) continue;
    while (end < world && is_unseen(w, end)) end++;
    n += end - r;
    if (len + tail + 48 > room) continue;
    len += (size_t)snprintf(to + len, room - len, "%s%" PRId64, len ? ", " : "", r);
    if (end - r > 1) len += (size_t)snprintf(to + len, room - len, "%s%" PRId64, end - r > 2 ? " to " : ", ", end - 1);
    shown = n;
  }
  if (shown < n) snprintf(to + len, room - len, " and %" PRId64 " more", n - shown);
  return n;
}

/* Name the missing rank, or the ranks of which one is missing. False: all can be seen. */
static bool name_unseen(const mpi_watch *w, char to[LIST]) {
  char    ranks[LIST - 64] = "";
  int64_t n = list_unseen(w, ranks, sizeof ranks);
  if (n > 1)
    snprintf(to, LIST, "one of ranks %s, which cannot be seen from here, is not there", ranks);
  else
    snprintf(to, LIST, "rank %s is not there", ranks);
  return n > 0;
}

static const mgrid_comm_spec the_end = { .name = "the job" };

/* Print one line on stderr, in one write: other threads may not use the host's log. */
static void say_stuck(const mpi_watch *w) {
  const mpi_backend     *m = w->m;
  const mgrid_comm_spec *s = w->spec;
  char                   line[LINE], unseen[LIST];
  const size_t           room = sizeof line - 80;
  mgrid_error            who = MGRID_ERROR_INIT;
  if (w->missing.n > 0) mgrid_missing_fail(&w->missing, w->seconds, &who);
  const char *names = strrchr(who.message, ':');
  if (names)
    names += 2;
  else if (name_unseen(w, unseen))
    names = unseen;
  const char *call = s == &the_end ? "MPI_Finalize has not ended"
                     : s->ranks    ? "MPI_Comm_create_group has not made"
                                   : "MPI_Comm_create has not made";
  size_t      len = (size_t)mgrid_format(line, room,
                                         "moongrid: [rank %" PRId64 "/%" PRId64 "] after %g seconds %s %s: ", m->base.rank,
                                         m->base.world, w->seconds, call, s->name);
  if (len < room)
    len += (size_t)snprintf(line + len, room - len, "%s",
                            names      ? names
                            : s->ranks ? "one of its ranks, or one that they wait for, was stopped inside:"
                                       : "a rank died or was stopped inside");
  for (int64_t i = 0; i < s->size && len < room && !names; i++)
    len += (size_t)snprintf(line + len, room - len, " %" PRId32, s->ranks[i]);
  if (len > room) len = room;
  len += (size_t)snprintf(line + len, sizeof line - len, "%s\n",
                          m->dies ? "; this process ends" : "; MPI cannot cancel that, it keeps waiting");
  ssize_t written = write(STDERR_FILENO, line, len);
  (void)written;
}

/* Sleep until that time; 0 or no limit: until the thread is woken. The caller holds the lock. */
static void rest_until(mpi_watch *w, double until) {
  const bool      ends = until > 0 && until < 1e15;
  struct timespec t = { .tv_sec = ends ? (time_t)until : 0 };
  t.tv_nsec = ends ? (long)((until - (double)t.tv_sec) * 1e9) : 0;
  w->wake = until;
  if (ends)
    pthread_cond_timedwait(&w->woken, &w->lock, &t);
  else
    pthread_cond_wait(&w->woken, &w->lock);
}

static void *watch(void *ud) {
  const double show = 0.75, again = 0.01, others = 0.5; /* parts of the deadline; seconds for others to see this rank */
  mpi_watch   *w = ud;
  pthread_mutex_lock(&w->lock);
  while (!w->ends) {
    double now = mgrid_now(), past = now - w->begun;
    if (!w->on || (w->looked && !(w->m->dies && w->at == INSIDE))) {
      rest_until(w, 0);
    } else if (past < show * w->seconds) {
      rest_until(w, w->begun + show * w->seconds);
    } else if (past < w->seconds) {
      if (w->sign < 0 && w->at != OUTSIDE) show_sign(w);
      rest_until(w, w->sign < 0 ? now + again * w->seconds : w->begun + w->seconds);
    } else if (!w->looked) {
      look_around(w);
      if (w->at == INSIDE) say_stuck(w);
    } else if (past < w->seconds + others) {
      rest_until(w, w->begun + w->seconds + others);
    } else {
      _exit(4);
    }
  }
  pthread_mutex_unlock(&w->lock);
  return NULL;
}

static mpi_watch *start(const mpi_backend *m) {
  mpi_watch         *w = calloc(1, sizeof *w);
  pthread_condattr_t clock;
  if (!w) return NULL;
  w->m = m, w->sign = -1;
  pthread_mutex_init(&w->lock, NULL);
  pthread_condattr_init(&clock);
  pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
  pthread_cond_init(&w->woken, &clock);
  pthread_condattr_destroy(&clock);
  if (pthread_create(&w->thread, NULL, watch, w) == 0) return w;
  pthread_cond_destroy(&w->woken);
  pthread_mutex_destroy(&w->lock);
  free(w);
  return NULL;
}

void mgrid_watch_begin(mpi_backend *m) {
  if (!m->watch) m->watch = start(m); /* without a thread nothing is watched */
  mpi_watch *w = m->watch;
  if (!w) return;
  mgrid_watch_end(m);
  pthread_mutex_lock(&w->lock);
  free(w->seen);
  w->on = true, w->looked = false, w->missing.n = 0, w->seen = NULL;
  w->at = OUTSIDE;
  w->begun = mgrid_now(), w->seconds = m->seconds, w->call = m->calls + 1;
  if (w->wake == 0 || w->wake > w->begun + w->seconds / 2) pthread_cond_signal(&w->woken);
  pthread_mutex_unlock(&w->lock);
}

static void set_place(mpi_backend *m, place at, const mgrid_comm_spec *spec) {
  if (!m->watch) return;
  pthread_mutex_lock(&m->watch->lock);
  m->watch->at = at, m->watch->spec = spec;
  pthread_mutex_unlock(&m->watch->lock);
}

void mgrid_watch_finalize(mpi_backend *m) {
  mgrid_watch_begin(m);
  set_place(m, INSIDE, &the_end);
}

void mgrid_watch_enter(mpi_backend *m, const mgrid_comm_spec *spec) { set_place(m, spec ? INSIDE : OUTSIDE, spec); }
void mgrid_watch_through(mpi_backend *m) { set_place(m, THROUGH, NULL); }

bool mgrid_watch_is_on(const mpi_backend *m) {
  mpi_watch *w = m->watch;
  if (!w) return false;
  pthread_mutex_lock(&w->lock);
  bool on = w->on && !w->looked;
  pthread_mutex_unlock(&w->lock);
  return on;
}

bool mgrid_watch_missing(const mpi_backend *m, mgrid_missing *missing) {
  const double others = 0.4; /* seconds for them to see this rank, whose sign ends after that */
  for (int turn = 0; mgrid_watch_is_on(m); turn++) mgrid_pause(turn);
  for (int turn = 0; mgrid_now() < m->watch->begun + m->watch->seconds + others; turn++) mgrid_pause(turn);
  *missing = m->watch->missing; /* the thread writes no more */
  return missing->n > 0;
}

/* Of the ranks that did not report to rank 0, name those that this rank does not see. If rank 0 itself is silent, name all unseen
** ranks: rank 0 may wait in MPI as well. */
static int64_t name_silent(const mpi_watch *w, const mgrid_missing *silent, char to[LIST]) {
  char    ranks[LIST - 64] = "";
  size_t  len = 0;
  int64_t n = 0;
  if (silent->n == 1 && silent->rank[0] == 0) return name_unseen(w, to);
  for (int64_t i = 0; i < silent->n && i < MGRID_MISSING_SHOWN; i++)
    if (is_unseen(w, silent->rank[i]))
      len += (size_t)snprintf(ranks + len, sizeof ranks - len, "%s%" PRId64, n++ ? ", " : "", silent->rank[i]);
  if (silent->n > MGRID_MISSING_SHOWN)
    snprintf(ranks + len, sizeof ranks - len, " and %" PRId64 " more", silent->n - MGRID_MISSING_SHOWN), n += 2;
  snprintf(to, LIST, n > 1 ? "one of ranks %s is not there" : "rank %s is not there", ranks);
  return n;
}

mgrid_status mgrid_watch_fail(const mpi_backend *m, const mgrid_missing *silent, mgrid_error *err) {
  char who[LIST];
  if (!name_silent(m->watch, silent, who)) return mgrid_missing_fail(silent, m->seconds, err);
  return mgrid_fail(err, MGRID_TIMED_OUT, "after %.3g seconds not all ranks had come: %s", m->seconds, who);
}

void mgrid_watch_end(mpi_backend *m) {
  mpi_watch *w = m->watch;
  if (!w) return;
  pthread_mutex_lock(&w->lock);
  w->on = false;
  if (w->sign >= 0) close(w->sign);
  w->sign = -1;
  pthread_mutex_unlock(&w->lock);
}

void mgrid_watch_free(mpi_backend *m) {
  mpi_watch *w = m->watch;
  if (!w) return;
  if (m->pid != getpid()) { /* a forked child has no such thread, and perhaps its lock */
    free(w->seen), free(w);
    m->watch = NULL;
    return;
  }
  mgrid_watch_end(m);
  pthread_mutex_lock(&w->lock);
  w->ends = true;
  pthread_cond_signal(&w->woken);
  pthread_mutex_unlock(&w->lock);
  pthread_join(w->thread, NULL);
  pthread_cond_destroy(&w->woken);
  pthread_mutex_destroy(&w->lock);
  free(w->seen);
  free(w);
  m->watch = NULL;
}
