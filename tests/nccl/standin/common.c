/* SPDX-License-Identifier: MIT
**
** common.c - the log, the environment, the faults and the trace of the stand-ins, and how the CUDA
** runtime of ../../cuda behaves for them: it tells of every call that breaks a rule, and of what
** was never freed.
*/
#include "standin.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static atomic_long violations;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static int log_fd = STDERR_FILENO, trace_fd = -1;

long standin_env(const char *name, long otherwise) {
  const char *text = getenv(name);
  char *end;
  if (!text || !*text) return otherwise;
  long value = strtol(text, &end, 10);
  return *end ? otherwise : value;
}

int standin_rank(void) {
  static const char *const names[] = { "OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK" };
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (getenv(names[i])) return (int)standin_env(names[i], 0);
  return 0;
}

double standin_deadline(void) {
  const char *text = getenv("STANDIN_DEADLINE");
  double seconds = text ? strtod(text, NULL) : 0;
  return seconds > 0 ? seconds : 10;
}

double standin_now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

void standin_nap(double seconds) {
  struct timespec t = { (time_t)seconds, 0 };
  t.tv_nsec = (long)((seconds - (double)t.tv_sec) * 1e9);
  nanosleep(&t, NULL);
}

bool standin_fault(const char *name, long nth) {
  const char *text = getenv(name);
  char *end;
  if (!text || !*text) return false;
  long rank = strtol(text, &end, 10), which = *end == ':' ? strtol(end + 1, NULL, 10) : 1;
  return rank == standin_rank() && (which == nth || which == 0);
}

double standin_fault_seconds(const char *name) {
  const char *text = getenv(name);
  char *end;
  if (!text || !*text) return 0;
  long rank = strtol(text, &end, 10);
  return rank == standin_rank() && *end == ':' ? strtod(end + 1, NULL) : 0;
}

/* ------------------------------------------------------------------- log and trace */

static void open_files(void) {
  const char *log = getenv("STANDIN_LOG"), *trace = getenv("STANDIN_TRACE");
  char path[4096];
  if (log && *log) {
    int fd = open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    if (fd >= 0) log_fd = fd;
  }
  if (!trace || !*trace) return;
  snprintf(path, sizeof path, "%s.%d", trace, standin_rank());
  trace_fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
}

/* A line is one write, so that the lines of many ranks do not mix. */
static void put(int fd, char *line, size_t room, size_t at, const char *format, va_list args) {
  int n = vsnprintf(line + at, room - at - 1, format, args);
  at += n < 0 ? 0 : (size_t)n < room - at - 1 ? (size_t)n : room - at - 2;
  line[at++] = '\n';
  ssize_t written = write(fd, line, at);
  (void)written; /* there is no other place to report to */
}

static void say(const char *format, va_list args) {
  char line[SI_TEXT];
  pthread_once(&once, open_files);
  int n = snprintf(line, sizeof line, STANDIN_NAME ": rank %d: ", standin_rank());
  put(log_fd, line, sizeof line, (size_t)n, format, args);
}

void standin_log(const char *format, ...) {
  va_list args;
  va_start(args, format);
  say(format, args);
  va_end(args);
}

void standin_violation(const char *format, ...) {
  va_list args;
  va_start(args, format);
  say(format, args);
  va_end(args);
  atomic_fetch_add(&violations, 1);
}

void standin_trace(const char *format, ...) {
  char line[SI_TEXT];
  va_list args;
  pthread_once(&once, open_files);
  if (trace_fd < 0) return;
  va_start(args, format);
  put(trace_fd, line, sizeof line, 0, format, args);
  va_end(args);
}

/* -------------------------------------------------------------------------- the end */

static void wrong(const char *text) { standin_violation("%s", text); }

__attribute__((constructor)) static void the_beginning(void) {
  static char machine[160];
  long gpus = standin_env("STANDIN_DEVICES", 8);
  if (gpus < 0) gpus = 0;
  if (gpus > RIG_DEVICES) gpus = RIG_DEVICES;
  int n = snprintf(machine, sizeof machine, "gpus=%ld memory=%ld", gpus,
                   standin_env("STANDIN_MEMORY", 80L << 10));
  long driver = standin_env("STANDIN_NO_DRIVER", 0) ? 0 : standin_env("STANDIN_DRIVER", RIG_SAME);
  if (standin_env("STANDIN_STUB_DRIVER", 0))
    snprintf(machine + n, sizeof machine - (size_t)n, " driver=stub");
  else if (driver >= 0)
    snprintf(machine + n, sizeof machine - (size_t)n, " driver=%ld", driver);
  rig_the_manner = (rig_manner){ machine, wrong, STANDIN_RUNTIME, STANDIN_RUNTIME, STANDIN_MAJOR };
}

/* Runs after the NCCL part's own, for that library needs this one. */
__attribute__((destructor)) static void the_end(void) {
  rig_leaks();
  long n = atomic_load(&violations);
  if (!n || !standin_env("STANDIN_STRICT", 0)) return;
  standin_log("%ld violation%s: ending with 99 (STANDIN_STRICT)", n, n == 1 ? "" : "s");
  fflush(NULL); /* _exit would drop what the program has printed */
  _exit(99);
}
