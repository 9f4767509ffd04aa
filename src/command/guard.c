/* SPDX-License-Identifier: MIT
**
** guard.c - what a rank says when it cannot return to say it: an alarm where MPI or the launcher waits for all ranks
** without a deadline, and the signal by which launchers end a job after another rank died.
*/
#include "command/cli.h"

#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static char        head[64];  /* "moongrid: [rank 3/8] " */
static char        slow[256]; /* what the alarm says */
static const char *doing;     /* what the rank is in; NULL: it has ended, or has said an error */
static bool        speaks;    /* of what all ranks know alike: rank 0, and 1 for it */
static const char *starter;   /* the launcher, while MPI starts, which may end the process; else NULL */
static bool        heard;     /* atexit knows on_exit_of_mpi */
static int64_t     killed;    /* mgrid_cgroup_kills before the job has started; -1: nobody counts */

enum { FAILED = MGRID_BACKEND / 100 };

/* Functions that signals may call, alone. */
static void say(const char *text) {
  ssize_t n = write(STDERR_FILENO, text, strlen(text));
  (void)n;
}

/* The process ends: what the kernel has done to the other rank is worth more than a call that signals may not make. */
static void say_of_memory(void) {
  mgrid_allowance all[MGRID_ALLOWANCES];
  char            words[MGRID_ALLOWED], line[64 + MGRID_ALLOWED + sizeof head];
  int64_t         now = killed;
  if (killed < 0 || !mgrid_cgroup_kills(&now) || now <= killed) return;
  snprintf(words, sizeof words, "its cgroup has no more memory");
  for (size_t i = mgrid_allowances(all); i-- > 0;)
    if (all[i].of == MGRID_SCARCE_MEMORY && strcmp(all[i].whose, "cgroup") == 0)
      mgrid_allowance_words(&all[i], words, sizeof words);
  snprintf(line, sizeof line, "%sout of memory: %s; the kernel has ended %" PRId64 " of its processes\n", head, words,
           now - killed);
  say(line);
}

static void on_alarm(int nr) {
  /* ranks 0 and 1 speak first: the end of another may end them before they do */
  const struct timespec first = { 0, 500000000 };
  const struct timespec forwarded = { 0, 200000000 }; /* launchers may drop what a rank says as it ends */
  (void)nr;
  if (!speaks) nanosleep(&first, NULL);
  say(head), say(slow);
  nanosleep(&forwarded, NULL);
  _exit(FAILED);
}

static void on_term(int nr) {
  if (speaks && doing) {
    say(head);
    say("the launcher ends the job, while this rank was in: ");
    say(doing);
    say("; another rank has died or failed, whom the launcher names\n");
    say_of_memory();
    _exit(FAILED);
  }
  signal(nr, SIG_DFL);
  raise(nr);
}

/* MPI has called exit: its own words name neither the launcher nor this program. */
static void on_exit_of_mpi(void) {
  if (!starter || !speaks || !doing) return;
  say(head);
  say("MPI has ended this process in ");
  say(doing);
  say(", and says why itself; it was started by ");
  say(starter);
  say(", which has to be of the MPI that moongrid was built with\n");
}

static void handle(int nr, void (*what)(int)) {
  struct sigaction a = { .sa_handler = what };
  sigemptyset(&a.sa_mask);
  sigaction(nr, &a, NULL);
}

void cli_guard(const cli *c, const char *in) {
  if (!c->launched) return;
  if (!*head && !mgrid_cgroup_kills(&killed)) killed = -1;
  snprintf(head, sizeof head, "moongrid: [rank %" PRId64 "/%" PRId64 "] ", c->me, c->ranks);
  speaks = c->me < 2;
  doing = in;
  handle(SIGALRM, on_alarm);
  handle(SIGTERM, on_term);
}

void cli_guard_alarm(const cli *c, double seconds, const char *what) {
  struct itimerval t = { .it_value = { (time_t)seconds, (suseconds_t)((seconds - (double)(time_t)seconds) * 1e6) } };
  if (!c->launched) return;
  snprintf(slow, sizeof slow,
           "after %g seconds %s: some rank is late, stopped or dead, or was not started as this one\n", seconds, what);
  setitimer(ITIMER_REAL, &t, NULL);
  if (!heard) heard = atexit(on_exit_of_mpi) == 0;
  starter = mgrid_launcher().by;
}

void cli_guard_end(void) {
  struct itimerval none = { .it_value = { 0, 0 } };
  setitimer(ITIMER_REAL, &none, NULL);
  starter = NULL;
}
