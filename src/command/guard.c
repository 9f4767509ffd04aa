/* SPDX-License-Identifier: MIT
**
** guard.c - messages of a rank that cannot return. An alarm covers waits of MPI or the launcher for
** all ranks, which have no deadline. A handler covers the signal by which launchers end a job after
** another rank has died.
*/
#include "command/cli.h"

#include <inttypes.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

/* Handlers read these while the program writes them. A text is written before a handler that reads
** it can run. */
static char head[64];  /* "moongrid: [rank 3/8] " */
static char slow[256]; /* the text of the alarm */
/* what the rank is doing; NULL: it has ended, or has printed an error */
static _Atomic(const char *) doing;
/* whether this rank prints what all ranks know: rank 0 does, and rank 1 in case rank 0 is dead */
static volatile sig_atomic_t speaks;
/* the launcher, while an alarm is set: MPI starts or ends, and may end the process; else NULL */
static _Atomic(const char *) starter;
/* mgrid_cgroup_kills before the job started; -1: there is no such count */
static _Atomic int64_t killed;
static bool heard; /* on_exit_of_mpi is registered with atexit; no handler reads it */

enum { FAILED = MGRID_BACKEND / 100 };

/* Print a text. Call only functions that signal handlers may call. */
static void guard_say(const char *text) {
  ssize_t n = write(STDERR_FILENO, text, strlen(text));
  (void)n;
}

/* Say whether the kernel has killed another rank for lack of memory. This calls functions that
** signal handlers may not call: the process is about to end, and has printed its other messages. */
static void say_of_memory(void) {
  mgrid_allowance all[MGRID_ALLOWANCES];
  char words[MGRID_ALLOWED], line[64 + MGRID_ALLOWED + sizeof head];
  const int64_t before = killed;
  int64_t now = before;
  if (before < 0 || !mgrid_cgroup_kills(&now) || now <= before) return;
  snprintf(words, sizeof words, "its cgroup has no more memory");
  for (size_t i = mgrid_allowances(all); i-- > 0;)
    if (all[i].of == MGRID_SCARCE_MEMORY && strcmp(all[i].whose, "cgroup") == 0)
      mgrid_allowance_words(&all[i], words, sizeof words);
  snprintf(line, sizeof line,
           "%sout of memory: %s; the kernel has ended %" PRId64 " of its processes\n", head, words,
           now - before);
  guard_say(line);
}

static void on_alarm(int nr) {
  /* ranks 0 and 1 print first, because the launcher may end them when another rank ends */
  const struct timespec first = { 0, 500000000 };
  /* launchers may lose what a rank prints just before it ends */
  const struct timespec forwarded = { 0, 200000000 };
  (void)nr;
  if (!speaks) nanosleep(&first, NULL);
  guard_say(head), guard_say(slow);
  nanosleep(&forwarded, NULL);
  _exit(FAILED);
}

static void on_term(int nr) {
  const char *in = doing;
  if (speaks && in) {
    guard_say(head);
    guard_say("the launcher ends the job, while this rank was in: ");
    guard_say(in);
    guard_say("; another rank has died or failed, which the launcher names\n");
    say_of_memory();
    _exit(FAILED);
  }
  signal(nr, SIG_DFL);
  raise(nr);
}

/* MPI has called exit. MPI's message names neither the launcher nor this program. */
static void on_exit_of_mpi(void) {
  const char *by = starter, *in = doing;
  if (!by || !speaks || !in) return;
  guard_say(head);
  guard_say("MPI has ended this process in ");
  guard_say(in);
  guard_say("; its own message says why; it was started by ");
  guard_say(by);
  guard_say(", which must belong to the MPI that moongrid was built with\n");
}

static void handle(int nr, void (*what)(int)) {
  struct sigaction a = { .sa_handler = what };
  sigemptyset(&a.sa_mask);
  sigaction(nr, &a, NULL);
}

void cli_guard(const char *in) {
  const mgrid_launched l = mgrid_launcher();
  if (!l.by) return;
  if (!*head) {
    int64_t before;
    killed = mgrid_cgroup_kills(&before) ? before : -1;
    snprintf(head, sizeof head, "moongrid: [rank %" PRId64 "/%" PRId64 "] ", l.rank, l.size);
  }
  speaks = l.rank < 2;
  doing = in;
  handle(SIGALRM, on_alarm);
  handle(SIGTERM, on_term);
}

void cli_guard_alarm(double seconds, const char *what) {
  struct itimerval none = { .it_value = { 0, 0 } };
  struct itimerval t = { .it_value = { (time_t)seconds,
                                       (suseconds_t)((seconds - (double)(time_t)seconds) * 1e6) } };
  if (!mgrid_launcher().by) return;
  setitimer(ITIMER_REAL, &none, NULL);
  mgrid_format(
      slow, sizeof slow,
      "after %g seconds %s: some rank is late, stopped or dead, or was not started as this one\n",
      seconds, what);
  setitimer(ITIMER_REAL, &t, NULL);
  if (!heard) heard = atexit(on_exit_of_mpi) == 0;
  starter = mgrid_launcher().by;
}

void cli_guard_end(void) {
  struct itimerval none = { .it_value = { 0, 0 } };
  setitimer(ITIMER_REAL, &none, NULL);
  starter = NULL;
}
