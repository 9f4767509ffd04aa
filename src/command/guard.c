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

enum { FAILED = MGRID_BACKEND / 100 };

/* Functions that signals may call, alone. */
static void say(const char *text) {
  ssize_t n = write(STDERR_FILENO, text, strlen(text));
  (void)n;
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
    _exit(FAILED);
  }
  signal(nr, SIG_DFL);
  raise(nr);
}

static void handle(int nr, void (*what)(int)) {
  struct sigaction a = { .sa_handler = what };
  sigemptyset(&a.sa_mask);
  sigaction(nr, &a, NULL);
}

void cli_guard(const cli *c, const char *in) {
  if (!c->launched) return;
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
}

void cli_guard_end(void) {
  struct itimerval none = { .it_value = { 0, 0 } };
  setitimer(ITIMER_REAL, &none, NULL);
}
