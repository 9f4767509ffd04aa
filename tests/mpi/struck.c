/* SPDX-License-Identifier: MIT
**
** struck.c - run a command as a rank, for scripts/lab/faults: struck KIND ODD DEADLINE SEED FOLDER
** COMMAND... Rank ODD is struck at an instant that SEED chooses, after it has made the file
** FOLDER/begun.RANK, or, if SEED ends in +, some time after its start: stop, kill, pause (for less
** than the deadline) or delay (for longer). For each other rank print "ended RANK SECONDS CODE":
** the seconds from the strike, or from the beginning of the call if it was later, to the end of the
** command. This process measures them, which no launcher delays, and leaves out the time that a
** busy machine took from it.
*/
#include "base/base.h"
#include "struck.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static const char *folder;
static double deadline;
static int64_t me;

static void rest(double seconds) {
  struct timespec t = { (time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9) };
  if (seconds > 0) nanosleep(&t, NULL);
}

static void note_hit(void) {
  char name[400], own[440];
  snprintf(name, sizeof name, "%s/hit", folder);
  snprintf(own, sizeof own, "%s.new", name);
  FILE *f = fopen(own, "w");
  if (!f || fprintf(f, "%.6f\n", mgrid_now()) < 0 || fclose(f) || rename(own, name)) _exit(3);
}

/* Rest a moment; return by how much it was too long. */
static double moment(void) {
  const double some = 0.005, usual = 0.05;
  double begun = mgrid_now();
  rest(some);
  double over = mgrid_now() - begun - usual;
  return over > 0 ? over : 0;
}

static bool ended(pid_t child, int *code) {
  int state = 0;
  if (waitpid(child, &state, WNOHANG) != child) return false;
  *code = WIFEXITED(state) ? WEXITSTATUS(state) : 128 + WTERMSIG(state);
  return true;
}

static void say(const char *what, double seconds, int code) {
  char line[100];
  int n = snprintf(line, sizeof line, "%s %lld %.2f %d\n", what, (long long)me, seconds, code);
  if (write(STDOUT_FILENO, line, (size_t)n) != n) _exit(3);
}

/* Wait for the command, until then at most. *lost: the time that the machine took. */
static bool wait_for(pid_t child, double until, int *code, double *lost) {
  while (!ended(child, code)) {
    if (mgrid_now() > until) return false;
    *lost += moment();
  }
  return true;
}

static int strike(pid_t child, const char *kind, const char *seed) {
  bool blind = strchr(seed, '+') != NULL;
  char begun[400];
  double give_up = mgrid_now() + 30, lost = 0;
  int code = 0;
  srand((unsigned)atoi(seed));
  double part = (double)rand() / RAND_MAX;
  snprintf(begun, sizeof begun, "%s/begun.%lld", folder, (long long)me);
  while (!blind && access(begun, F_OK) && mgrid_now() < give_up && !ended(child, &code))
    rest(0.001);
  rest(blind ? 0.1 + 0.9 * part : strchr(seed, '-') ? 0.05 * part : 0.6 * part * part);
  if (ended(child, &code)) return say("missed", 0, code), 0;
  note_hit();
  kill(child, strcmp(kind, "kill") == 0 ? SIGKILL : SIGSTOP);
  double since = mgrid_now(), limit = since + deadline + 2;
  if (strcmp(kind, "pause") == 0 || strcmp(kind, "delay") == 0) {
    rest(deadline * (*kind == 'p' ? 0.3 : 1.6));
    kill(child, SIGCONT);
    since = mgrid_now(), limit = since + 4 * deadline + 10;
    bool well = wait_for(child, limit, &code, &lost);
    if (well) return say(*kind == 'p' ? "ended" : "late", mgrid_now() - since - lost, code), 0;
    say("stuck", mgrid_now() - since, 0);
  }
  rest(limit - mgrid_now());
  kill(child, SIGKILL);
  return 0;
}

int main(int argc, char **argv) {
  if (argc < 7) return 2;
  int code = 0;
  pid_t child;
  double slack = 2, lost = 0, began = mgrid_now();
  me = mgrid_launcher().rank;
  folder = argv[5], deadline = atof(argv[3]);
  if ((child = fork()) == 0) {
    execvp(argv[6], argv + 6);
    perror(argv[6]);
    _exit(127);
  }
  signal(SIGTERM, SIG_IGN); /* a launcher that ends the job; the command gets it, too */
  if (me == atoi(argv[2])) return strike(child, argv[1], argv[4]);
  while (!ended(child, &code)) { /* 20 s after it is far too late */
    double at = struck_at(folder), over = moment();
    if (at > 0) lost += over;
    if (at > 0 && mgrid_now() > at + deadline + 20) {
      say("stuck", mgrid_now() - at, 0);
      kill(child, SIGKILL);
      rest(1);
    }
  }
  double at = struck_at(folder), now = mgrid_now();
  say("ended", at > 0 ? now - (at > began ? at : began) - lost : 0, code);
  if (at > 0) rest(at + deadline + slack - mgrid_now()); /* the end of a rank may end the others */
  return 0;
}
