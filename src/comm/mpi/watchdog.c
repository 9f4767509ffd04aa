/* SPDX-License-Identifier: MIT
**
** watchdog.c - a thread that watches the deadline while MPI creates communicators. At the deadline
** it finds the missing ranks, and prints them if this rank waits inside MPI. communicators.c and
** open.c tell it where this rank is; mpi_calls.c and open.c ask it which ranks are missing.
*/

/* WHY A THREAD. MPI cannot cancel a creation, and a creation blocks. If a rank dies or stops
** between two creations, its peers wait inside MPI forever. So a thread watches. It may not call
** MPI below MPI_THREAD_MULTIPLE. Instead, near the deadline, each rank that is inside a creation,
** or has made all, opens an abstract Unix socket, which has a name but no file, as a sign. All
** ranks of its node know the socket's name, and the socket ends with its process. A rank without a
** socket is missing; so is a rank that is stopped. Ranks of other nodes cannot be seen, so they are
** all listed. The thread lives until the backend ends, because to start a thread for each call took
** as long as two creations of 8 ranks.
*/

#include "comm/mpi/mpi.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

enum { LIST = 640, LINE = 1024 }; /* characters of the list of unseen ranks; of the printed line */

#define RECOVERY UINT64_MAX /* in the place of a call's number */

/* where the main thread is: outside of the creations, in one, or done with all */
typedef enum stage { OUTSIDE, INSIDE, THROUGH } stage;

struct mpi_watch {
  const mpi_backend *m;
  pthread_t thread;
  pthread_mutex_t lock; /* guards the next fields */
  pthread_cond_t woken;
  /* creations (or another watched call), or their verdict, are in progress; the thread must end */
  bool on, ends;
  /* when the watch began; its deadline in seconds; when the thread wakes up */
  double begun, seconds, wake;
  double show;   /* the part of the deadline after which this rank opens its socket */
  uint64_t call; /* number of the verdict on the creations, or RECOVERY */
  stage at;
  const mgrid_comm_spec *spec; /* if INSIDE: the creation */
  const char *name;            /* if INSIDE: the call of MPI that makes it */
  int sign;                    /* the socket; -1: it is not open */
  bool looked;                 /* the deadline has passed, and the next fields are set */
  uint8_t *seen;               /* [world]: whether a rank is seen; NULL: this rank sees none */
  /* [world]: whether MPI says that a rank has failed; NULL: none has */
  uint8_t *lost;
  mgrid_missing missing; /* ranks of this node that are not seen */
};

/* Set the name of a rank's socket. It consists of the job, the number of the call, and the rank. */
static socklen_t sign_name(const mpi_watch *w, int64_t rank, struct sockaddr_un *to) {
  /* the first byte of the name is zero, so it is not a file */
  *to = (struct sockaddr_un){ .sun_family = AF_UNIX };
  int len = snprintf(to->sun_path + 1, sizeof to->sun_path - 1,
                     "moongrid/%016" PRIx64 "/%" PRIu64 "/%" PRId64, w->m->job, w->call, rank);
  return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)len);
}

static void hide_sign(mpi_watch *w) {
  if (w->sign >= 0) close(w->sign);
  w->sign = -1;
}

static void show_sign(mpi_watch *w) {
  struct sockaddr_un name;
  socklen_t len = sign_name(w, w->m->base.rank, &name);
  w->sign = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (w->sign >= 0 && (bind(w->sign, (struct sockaddr *)&name, len) || listen(w->sign, SOMAXCONN)))
    hide_sign(w);
}

/* Return whether the process at the other end of a connection is stopped. */
static bool is_stopped(int connection) {
  struct ucred who = { 0 };
  socklen_t len = sizeof who;
  char path[64], state = 0;
  if (getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &who, &len) || who.pid <= 0) return false;
  snprintf(path, sizeof path, "/proc/%d/stat", (int)who.pid);
  /* the file has "123 (name) T"; a name may have brackets and spaces */
  FILE *f = fopen(path, "re");
  if (!f) return false;
  for (int c; (c = fgetc(f)) != EOF;)
    if (c == ')' && fscanf(f, " %c", &state) != 1) break;
  fclose(f);
  return state == 'T' || state == 't';
}

/* Look whether a rank has its socket open. A rank that was seen stays seen when it closes its
** socket, because it may have reached its own deadline. */
static void watchdog_look_at(mpi_watch *w, int64_t rank) {
  struct sockaddr_un name;
  socklen_t len = sign_name(w, rank, &name);
  int from = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  bool shown = from >= 0 && (connect(from, (struct sockaddr *)&name, len) == 0 || errno == EAGAIN);
  if (shown) w->seen[rank] = !is_stopped(from);
  if (from >= 0) close(from);
}

/* Find the ranks that are known to be on this node: *from to *to - 1. On several nodes there are
** none in the first creation, and none if the nodes do not have equally many consecutive ranks. */
static void find_mates(const mgrid_backend *b, int64_t *from, int64_t *to) {
  const int64_t block = b->spread.nodes == 1 ? b->world : b->spread.block;
  *from = block ? b->rank - b->rank % block : 0;
  *to = !block ? 0 : *from + block < b->world ? *from + block : b->world;
}

static bool is_unseen(const mpi_watch *w, int64_t r) {
  return r != w->m->base.rank && !(w->lost && w->lost[r]) && !(w->seen && w->seen[r]);
}

static void watchdog_find_missing(mpi_watch *w) {
  int64_t first, end;
  w->missing.n = 0;
  find_mates(&w->m->base, &first, &end);
  for (int64_t r = first; r < end && w->seen; r++)
    if (is_unseen(w, r)) mgrid_missing_add(&w->missing, r);
}

/* Find out which ranks have their socket open. A rank that could open no socket itself sees none.
** This takes O(world), and happens only at a deadline, or in a recovery that takes long. */
static void look_around(mpi_watch *w) {
  const mgrid_backend *b = &w->m->base;
  if (w->sign >= 0 && !w->seen) w->seen = calloc((size_t)b->world, sizeof *w->seen);
  for (int64_t r = 0; r < b->world && w->seen; r++) watchdog_look_at(w, r);
  watchdog_find_missing(w);
}

/* List the ranks that are not seen, as "0 to 3, 6, 7": runs keep the list short on several nodes,
** where most ranks are not seen. *first: the first rank that is not seen. Return how many there
** are. */
static int64_t list_unseen(const mpi_watch *w, char *to, size_t room, int64_t *first) {
  const int64_t world = w->m->base.world;
  const size_t tail = 32; /* room for the end of the text */
  size_t len = 0;
  int64_t n = 0, shown = 0;
  for (int64_t r = 0, end; r < world; r = end) {
    end = r + 1;
    if (!is_unseen(w, r)) continue;
    while (end < world && is_unseen(w, end)) end++;
    if (n == 0) *first = r;
    n += end - r;
    if (len + tail + 48 > room) continue;
    len += (size_t)snprintf(to + len, room - len, "%s%" PRId64, len ? ", " : "", r);
    if (end - r > 1)
      len += (size_t)snprintf(to + len, room - len, "%s%" PRId64, end - r > 2 ? " to " : ", ",
                              end - 1);
    shown = n;
  }
  if (shown < n) snprintf(to + len, room - len, " and %" PRId64 " more", n - shown);
  return n;
}

/* If one rank is not seen, write that it is missing. If several are not seen, write that one of
** them is missing. *first: the first rank that is not seen. Return how many are not seen. */
static int64_t name_unseen(const mpi_watch *w, char to[LIST], int64_t *first) {
  char ranks[LIST - 64] = "";
  int64_t n = list_unseen(w, ranks, sizeof ranks, first);
  if (n > 1)
    snprintf(to, LIST, "one of ranks %s, which cannot be seen from here, is not there", ranks);
  else if (n == 1)
    mgrid_missing_text(&(mgrid_missing){ .n = 1, .rank = { *first } }, to);
  return n;
}

static const mgrid_comm_spec the_end = { .name = "the job" };

/* Write which ranks of this node are missing. If there are none, write about the ranks that are not
** seen. Return false if all are seen. */
static bool name_absent(const mpi_watch *w, char to[LIST]) {
  int64_t first;
  return w->missing.n == 0 ? name_unseen(w, to, &first) > 0
                           : mgrid_missing_text(&w->missing, to) != NULL;
}

/* Say on stderr, in one line by one write, that this rank is stuck in MPI. The host's log may not
** be used in this thread. */
static void say_stuck(const mpi_watch *w) {
  const mpi_backend *m = w->m;
  const mgrid_comm_spec *s = w->spec;
  char line[LINE], absent[LIST];
  const size_t room = sizeof line - 80;
  const char *names = name_absent(w, absent) ? absent : NULL;
  size_t len = (size_t)mgrid_format(
      line, room,
      "moongrid: [rank %" PRId64 "/%" PRId64 "] after %g seconds %s has not %s %s: ", m->base.rank,
      m->base.world, w->seconds, w->name, s == &the_end ? "ended" : "made", s->name);

  if (len < room)
    len += (size_t)snprintf(line + len, room - len, "%s",
                            names ? names
                            : s->ranks
                                ? "one of its ranks, or one that they wait for, was stopped inside:"
                                : "a rank died or was stopped inside");
  for (int64_t i = 0; i < s->size && len < room && !names; i++)
    len += (size_t)snprintf(line + len, room - len, " %" PRId32, s->ranks[i]);
  if (len > room) len = room;
  len += (size_t)snprintf(line + len, sizeof line - len, "%s\n",
                          m->dies ? "; this process ends"
                                  : "; MPI cannot cancel that, so it keeps waiting");
  ssize_t written = write(STDERR_FILENO, line, len);
  (void)written;
}

/* Sleep until this time, or until the thread is woken. 0, or a time far away: sleep until the
** thread is woken. The caller holds the lock. */
static void rest_until(mpi_watch *w, double until) {
  const bool ends = until > 0 && until < 1e15;
  struct timespec t = { .tv_sec = ends ? (time_t)until : 0 };
  t.tv_nsec = ends ? (long)((until - (double)t.tv_sec) * 1e9) : 0;
  w->wake = until;
  if (ends)
    pthread_cond_timedwait(&w->woken, &w->lock, &t);
  else
    pthread_cond_wait(&w->woken, &w->lock);
}

static void *watchdog_watch(void *ud) {
  /* again: the part of the deadline after which to try again to open the socket. others: seconds
  ** after the deadline in which others can see this rank */
  const double again = 0.01, others = 0.5;
  mpi_watch *w = ud;

  pthread_mutex_lock(&w->lock);
  while (!w->ends) {
    double now = mgrid_now(), past = now - w->begun;
    if (!w->on || (w->looked && !(w->m->dies && w->at == INSIDE))) {
      rest_until(w, 0);
    } else if (past < w->show * w->seconds) {
      rest_until(w, w->begun + w->show * w->seconds);
    } else if (past < w->seconds) {
      if (w->sign < 0 && w->at != OUTSIDE) show_sign(w);
      if (w->call == RECOVERY) look_around(w);
      double next = now + (w->sign < 0 ? again : w->show) * w->seconds,
             last = w->begun + w->seconds;
      rest_until(w, next < last ? next : last);
    } else if (!w->looked) {
      look_around(w);
      w->looked = true;
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

static mpi_watch *watchdog_start(const mpi_backend *m) {
  mpi_watch *w = calloc(1, sizeof *w);
  pthread_condattr_t clock;
  if (!w) return NULL;
  w->m = m, w->sign = -1;
  pthread_mutex_init(&w->lock, NULL);
  pthread_condattr_init(&clock);
  pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
  pthread_cond_init(&w->woken, &clock);
  pthread_condattr_destroy(&clock);
  if (pthread_create(&w->thread, NULL, watchdog_watch, w) == 0) return w;
  pthread_cond_destroy(&w->woken);
  pthread_mutex_destroy(&w->lock);
  free(w);
  return NULL;
}

/* Begin to watch. lost: mpi_watch.lost; the watchdog frees it. */
static void watchdog_begin(mpi_backend *m, uint64_t call, double seconds, double show, stage at,
                           uint8_t *lost) {
  if (!m->watch) m->watch = watchdog_start(m); /* without a thread nothing is watched */
  mpi_watch *w = m->watch;
  if (!w) {
    free(lost);
    return;
  }
  pthread_mutex_lock(&w->lock);
  if (w->call != call) hide_sign(w);
  free(w->seen), free(w->lost);
  w->on = true, w->looked = false, w->missing.n = 0, w->seen = NULL, w->lost = lost;
  w->at = at;
  w->begun = mgrid_now(), w->seconds = seconds, w->show = show, w->call = call;
  if (w->wake == 0 || w->wake > w->begun + show * seconds / 2) pthread_cond_signal(&w->woken);
  pthread_mutex_unlock(&w->lock);
}

void mgrid_watch_begin(mpi_backend *m) {
  watchdog_begin(m, m->calls + 1, m->seconds, 0.75, OUTSIDE, NULL);
}

/* A recovery has no number of a call, because ranks notice a loss in different calls. */
void mgrid_watch_recovery(mpi_backend *m, double seconds) {
  watchdog_begin(m, RECOVERY, seconds, 0.125, THROUGH, mgrid_mpi_all_lost(m));
}

static void set_stage(mpi_backend *m, stage at, const mgrid_comm_spec *spec, const char *call) {
  if (!m->watch) return;
  pthread_mutex_lock(&m->watch->lock);
  m->watch->at = at, m->watch->spec = spec, m->watch->name = call;
  pthread_mutex_unlock(&m->watch->lock);
}

void mgrid_watch_finalize(mpi_backend *m) {
  mgrid_watch_begin(m);
  set_stage(m, INSIDE, &the_end, "MPI_Finalize");
}

void mgrid_watch_enter(mpi_backend *m, const mgrid_comm_spec *spec, const char *call) {
  set_stage(m, spec ? INSIDE : OUTSIDE, spec, call);
}
void mgrid_watch_through(mpi_backend *m) { set_stage(m, THROUGH, NULL, NULL); }

bool mgrid_watch_is_on(const mpi_backend *m) {
  mpi_watch *w = m->watch;
  if (!w) return false;
  pthread_mutex_lock(&w->lock);
  bool on = w->on && !w->looked;
  pthread_mutex_unlock(&w->lock);
  return on;
}

bool mgrid_watch_missing(const mpi_backend *m, mgrid_missing *missing) {
  const double others = 0.4; /* seconds after the deadline in which others can see this rank */
  for (int turn = 0; mgrid_watch_is_on(m); turn++) mgrid_pause(turn);
  for (int turn = 0; mgrid_now() < m->watch->begun + m->watch->seconds + others; turn++)
    mgrid_pause(turn);
  *missing = m->watch->missing; /* the thread does not write it any more */
  return missing->n > 0;
}

/* Of the ranks that did not report to rank 0 (`silent`), take those that this rank does not see,
** and write that one of them is missing. If rank 0 itself is silent, it may wait inside MPI, too;
** then write about all ranks that are not seen. *first: the first rank of the list. Return how many
** there are; of a long list, 2 or more. */
static int64_t name_silent(const mpi_watch *w, const mgrid_missing *silent, char to[LIST],
                           int64_t *first) {
  char ranks[LIST - 64] = "";
  size_t len = 0;
  int64_t n = 0;
  if (silent->n == 1 && silent->rank[0] == 0) return name_unseen(w, to, first);
  for (int64_t i = 0; i < silent->n && i < MGRID_MISSING_SHOWN; i++)
    if (is_unseen(w, silent->rank[i])) {
      if (n == 0) *first = silent->rank[i];
      len += (size_t)snprintf(ranks + len, sizeof ranks - len, "%s%" PRId64, n++ ? ", " : "",
                              silent->rank[i]);
    }
  if (silent->n > MGRID_MISSING_SHOWN)
    snprintf(ranks + len, sizeof ranks - len, " and %" PRId64 " more",
             silent->n - MGRID_MISSING_SHOWN),
        n += 2;
  snprintf(to, LIST, "one of ranks %s is not there", ranks);
  return n;
}

mgrid_status mgrid_watch_fail(const mpi_backend *m, const mgrid_missing *silent, mgrid_error *err) {
  char who[LIST];
  int64_t first = -1, n = name_silent(m->watch, silent, who, &first);
  mgrid_missing one = { .n = 1, .rank = { first } };
  if (n <= 1) return mgrid_missing_fail(n ? &one : silent, m->seconds, err);
  return mgrid_fail(err, MGRID_TIMED_OUT, "after %.3g seconds not all ranks had come: %s",
                    m->seconds, who);
}

mgrid_status mgrid_watch_survivors(const mpi_backend *m, mgrid_error *err) {
  mpi_watch *w = m->watch;
  double seconds = w ? w->seconds : m->seconds;
  mgrid_error e = MGRID_ERROR_INIT;
  mgrid_missing absent = { 0 };
  int64_t first;
  char who[LIST] = "one is stopped, or went on without a recovery";

  if (w) {
    mgrid_watch_missing(m, &absent);
    free(w->lost); /* the thread does not read it any more */
    w->lost = mgrid_mpi_all_lost(m);
    watchdog_find_missing(w);
    absent = w->missing;
    if (absent.n > 0)
      mgrid_missing_text(&absent, who);
    else if (w->seen && name_unseen(w, who, &first) == 1)
      mgrid_missing_add(&absent, first);
  }
  mgrid_missing_fail(&absent, seconds, &e);
  mgrid_error_reword(
      &e, "after %.3g seconds not all survivors had come: %s; go on from the last checkpoint",
      seconds, who);
  return mgrid_error_pass(err, &e);
}

void mgrid_watch_end(mpi_backend *m) {
  mpi_watch *w = m->watch;
  if (!w) return;
  pthread_mutex_lock(&w->lock);
  w->on = false;
  hide_sign(w);
  pthread_mutex_unlock(&w->lock);
}

void mgrid_watch_free(mpi_backend *m) {
  mpi_watch *w = m->watch;
  if (!w) return;
  if (m->pid != getpid()) { /* a forked child does not have the thread, and the lock may be held */
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
  free(w->seen), free(w->lost);
  free(w);
  m->watch = NULL;
}
