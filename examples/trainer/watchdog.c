/* SPDX-License-Identifier: MIT
**
** watchdog.c - a thread that ends this process if a call of MPI waits for another rank longer than
** --deadline. Calls of MPI have no deadline, and a program cannot leave a call that blocks: without
** ULFM (Open MPI 4, MPICH) the other ranks would wait for a stopped rank for ever.
**
** The thread does not call MPI. To find the missing rank, each rank that waits or computes for long
** opens an abstract socket, which a stopped rank cannot do. Only ranks of the same node see it.
*/
#include "model.h"

#include "moongrid_mpi.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

static atomic_int calls; /* begins and ends of calls of MPI: odd while this rank is in a call */
static atomic_int rank, world;
static double deadline;
static const char *folder;

_Noreturn void end_now(const char *why, mgrid_status s) {
  char index[4096] = "";
  if (folder) snprintf(index, sizeof index, "%s/model.safetensors.index.json", folder);
  bool saved = *index && access(index, R_OK) == 0;
  fprintf(stderr, "trainer: rank %d: %s%s%s\n", rank, why,
          saved ? "; the job goes on from its last checkpoint by --resume " : "",
          saved ? folder : "");
  fflush(NULL);
  _exit(exit_code(s)); /* MPI_Finalize would wait, too */
}

/* The name of a rank's socket. All ranks of a node have the same parent, the launcher. */
static socklen_t sign_of(int r, struct sockaddr_un *to) {
  *to = (struct sockaddr_un){ .sun_family = AF_UNIX };
  int n = snprintf(to->sun_path + 1, sizeof to->sun_path - 1, "moongrid-trainer/%ld/%d/%d",
                   (long)getppid(), world, r);
  return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n);
}

static int show_sign(void) {
  struct sockaddr_un name;
  socklen_t length = sign_of(rank, &name);
  int sign = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (sign >= 0 && bind(sign, (struct sockaddr *)&name, length)) close(sign), sign = -1;
  return sign;
}

static void name_missing(char *out, size_t size) {
  int from = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0), n = 0;
  size_t at = 0;
  for (int r = 0; r < world && from >= 0; r++) {
    struct sockaddr_un name;
    socklen_t length = sign_of(r, &name);
    if (r == rank || connect(from, (struct sockaddr *)&name, length) == 0) continue;
    if (at + 16 < size) at += (size_t)snprintf(out + at, size - at, "%s%d", n ? ", " : "", r);
    n++;
  }
  if (from >= 0) close(from);
  snprintf(out + at, size - at, "%s", n == 0 ? "one of them" : n == 1 ? "" : " (one of them)");
}

/* End the process, unless the call ends while others look for this rank. */
static void end_here(int call) {
  char who[200] = "", text[300];
  name_missing(who, sizeof who);
  snprintf(text, sizeof text, "after %g seconds in a call of MPI: it waits for rank %s", deadline,
           who);
  /* give the other ranks time to find this rank's socket */
  nanosleep(&(struct timespec){ .tv_nsec = 500000000 }, NULL);
  if (atomic_load(&calls) == call) end_now(text, MGRID_TIMED_OUT);
}

static void *watch(void *unused) {
  const int looks = 20; /* in a deadline */
  double pause = deadline / looks;
  struct timespec t = { (time_t)pause, (long)((pause - (double)(time_t)pause) * 1e9) };
  int last = -1, still = 0, silent = 0, sign = -1;
  while (!unused) {
    nanosleep(&t, NULL);
    int now = atomic_load(&calls);
    still = now == last ? still + 1 : 0;
    silent = now == last && now % 2 != 0 ? silent + 1 : 0;
    last = now;
    if (still >= looks * 3 / 4 && sign < 0) sign = show_sign();
    if (!still && sign >= 0) close(sign), sign = -1;
    if (silent > looks) end_here(now);
  }
  return NULL;
}

void watch_begin(int r, int n, double seconds, const char *checkpoint) {
  pthread_t thread;
  deadline = seconds > 0 ? seconds : 120;
  folder = checkpoint;
  watch_as(r, n);
  if (n > 1) pthread_create(&thread, NULL, watch, NULL); /* without the thread no call is watched */
}

void watch_as(int r, int n) {
  rank = r;
  world = n;
}

void watch_call(void) { atomic_fetch_add(&calls, 1); }
