/* SPDX-License-Identifier: MIT
**
** fault.c - kill or stop a rank at a point of a step: --die and --hang, for
** ../../scripts/lab/survive.
*/
#include "model.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { FAULTS = 16 };

static struct {
  int rank, signal;
  int64_t step;
  char point[16];
} faults[FAULTS];
static int nfaults, rank = -1;
static int64_t now = -1;

bool fault_plan(const char *text, int signal) {
  int end = 0;
  int64_t step = 0;
  if (nfaults == FAULTS) return false;
  if (sscanf(text, "%d:%" SCNd64 ":%15[a-z]%n", &faults[nfaults].rank, &step, faults[nfaults].point,
             &end)
      != 3)
    return false;
  faults[nfaults].signal = signal, faults[nfaults].step = step;
  nfaults += !text[end];
  return !text[end];
}

void fault_begin(int r) { rank = r; }
void fault_step(int64_t step) { now = step; }

void fault_at(const char *point) {
  for (int i = 0; i < nfaults; i++) {
    if (faults[i].rank != rank || faults[i].step != now || strcmp(faults[i].point, point) != 0)
      continue;
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    fprintf(stderr, "fault: rank %d at step %" PRId64 ", %s, pid %d, at %.6f\n", rank, now, point,
            (int)getpid(), (double)t.tv_sec + 1e-9 * (double)t.tv_nsec);
    fflush(stderr);
    raise(faults[i].signal);
  }
}
