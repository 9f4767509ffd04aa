/* SPDX-License-Identifier: MIT
**
** strike.c - kill ranks of a running trainer at any moment. For scripts/lab/survive.
**
**   strike CURVE STEP [PARTS RANK,RANK... | PARTS !COMMAND]...
**
** Wait until the curve has STEP steps, then for PARTS of a step's time (such as 0.37; the curve
** gives a step's time). Then send SIGKILL to these ranks: the processes that were started with
** --curve CURVE, by the variable that RANK_NAME names. Or run COMMAND, which takes a host or its
** link away. Prints a line for each strike, which ends with its time, by CLOCK_MONOTONIC as in the
** trainer.
*/
#define _GNU_SOURCE
#include <ctype.h>
#include <dirent.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <time.h>

enum { RANKS = 64, STRIKES = 4, SECONDS_MAX = 60 };

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void wait_for(double seconds) {
  struct timespec t = { (time_t)seconds, (long)(1e9 * (seconds - (double)(time_t)seconds)) };
  nanosleep(&t, NULL);
}

/* The last step in the curve, 0 without one. */
static int steps_of(const char *curve) {
  char line[256];
  int last = 0;
  FILE *f = fopen(curve, "r");
  while (f && fgets(line, sizeof line, f))
    if (isdigit((unsigned char)*line) && strchr(line, '\n')) last = atoi(line);
  if (f) fclose(f);
  return last;
}

/* Return whether this text is one of the strings of /proc/PID/WHAT. */
static bool has(const char *pid, const char *what, const char *text) {
  static char all[1 << 20];
  char path[300];
  snprintf(path, sizeof path, "/proc/%s/%s", pid, what);
  FILE *f = fopen(path, "r");
  size_t n = f ? fread(all, 1, sizeof all - 1, f) : 0;
  bool found = false;
  if (f) fclose(f);
  all[n] = 0;
  for (size_t at = 0; at < n && !found; at += strlen(all + at) + 1)
    found = strcmp(all + at, text) == 0;
  return found;
}

/* Return the process of a rank, or 0 if there is none. */
static pid_t process_of(const char *rank, const char *curve) {
  char text[64];
  pid_t pid = 0;
  DIR *all = opendir("/proc");
  struct dirent *one;
  snprintf(text, sizeof text, "%.32s=%.20s", getenv("RANK_NAME"), rank);
  while (all && !pid && (one = readdir(all)))
    if (isdigit((unsigned char)*one->d_name) && has(one->d_name, "cmdline", curve)
        && has(one->d_name, "environ", text))
      pid = (pid_t)atoi(one->d_name);
  if (all) closedir(all);
  return pid;
}

typedef struct blow {
  double parts;
  const char *command; /* NULL: kill the ranks */
  int n;
  pid_t pid[RANKS];
} blow;

int main(int argc, char **argv) {
  static blow blows[STRIKES];
  const double begun = now();
  double first = 0;
  const int step = argc > 2 ? atoi(argv[2]) : 0, n = (argc - 3) / 2;
  if (argc < 5 || argc % 2 == 0 || n > STRIKES || !getenv("RANK_NAME"))
    return fprintf(stderr, "strike: strike CURVE STEP [PARTS RANKS]...\n"), 2;
  for (int at = 0; (at = steps_of(argv[1])) < step; wait_for(1e-3)) {
    if (at && first == 0) first = now();
    if (now() - begun > SECONDS_MAX) return 1;
  }
  const double each = first > 0 && step > 1 ? (now() - first) / (step - 1) : 5e-3;
  for (int i = 0; i < n; i++) { /* find all before the first is killed */
    char *who = argv[4 + 2 * i];
    blows[i].parts = atof(argv[3 + 2 * i]);
    if (*who == '!') blows[i].command = who + 1;
    for (char *rank = strtok(who, ","); rank && *who != '!' && blows[i].n < RANKS;
         rank = strtok(NULL, ","))
      if ((blows[i].pid[blows[i].n] = process_of(rank, argv[1]))) blows[i].n++;
  }
  for (int i = 0; i < n; i++) {
    const blow *b = &blows[i];
    if (!b->command && !b->n) return 1; /* the job has ended */
    wait_for(b->parts * each);
    const double at = now();
    for (int k = 0; k < b->n; k++) kill(b->pid[k], SIGKILL);
    if (b->command && system(b->command)) return 1;
    printf("fault: %d ranks, %.2f parts of a step after step %d, at %.6f\n", b->n, b->parts, step,
           at);
    fflush(stdout);
  }
  return 0;
}
