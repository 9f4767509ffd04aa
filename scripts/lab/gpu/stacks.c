/* SPDX-License-Identifier: MIT
**
** stacks.c - a library for LD_PRELOAD: on SIGUSR2 a process writes the stacks of all its threads to
** its standard error, for machines that have no debugger. gpu-test loads it when it repeats a
** command that hung or failed.
*/
#include <dirent.h>
#include <execinfo.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { DEPTH = 40, MOST = 256 };

static volatile sig_atomic_t asked; /* the first signal has come; this process sends the others */
static pid_t asker;

static void say(const char *text) {
  ssize_t n = write(STDERR_FILENO, text, strlen(text));
  (void)n;
}

static void say_number(long n) {
  char text[24];
  char *p = text + sizeof text - 1;
  *p = 0;
  do *--p = (char)('0' + n % 10);
  while (n /= 10);
  say(p);
}

static void own_stack(void) {
  void *frame[DEPTH];
  int n = backtrace(frame, DEPTH);
  say("--- stack of thread ");
  say_number(syscall(SYS_gettid));
  say(" of process ");
  say_number(getpid());
  say("\n");
  backtrace_symbols_fd(frame, n, STDERR_FILENO);
}

/* Reading a folder in a signal handler is not safe in general, but this process hangs, and will be
** killed. */
static void each_thread(void) {
  DIR *d = opendir("/proc/self/task");
  long self = syscall(SYS_gettid);
  int n = 0;
  struct dirent *at;
  while (d && (at = readdir(d)) && n < MOST) {
    long tid = atol(at->d_name);
    if (tid <= 0 || tid == self) continue;
    syscall(SYS_tgkill, getpid(), tid, SIGUSR2);
    usleep(20000); /* one after the other, so that lines do not mix */
    n++;
  }
  if (d) closedir(d);
}

static void on_signal(int number) {
  (void)number;
  if (asked && getpid() == asker) {
    own_stack();
    return;
  }
  asked = 1, asker = getpid();
  own_stack();
  each_thread();
}

__attribute__((constructor)) static void install(void) {
  void *frame[2];
  struct sigaction a;
  memset(&a, 0, sizeof a);
  a.sa_handler = on_signal;
  a.sa_flags = SA_RESTART | SA_NODEFER;
  sigaction(SIGUSR2, &a, NULL);
  backtrace(frame, 2); /* loads what it needs, now and not in the handler */
}
