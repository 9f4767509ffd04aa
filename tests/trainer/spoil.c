/* SPDX-License-Identifier: MIT
**
** spoil.c - a disk that is full, or a process that ends or stops, at a place that SPOIL says: "write 500 full" fails, with
** ENOSPC, the write that would bring the 501st byte into a regular file, "write 500 kill" kills after these 500, "read 500
** kill" when so many were read of files at a place; "rename 1 kill" and "unlink 0 kill" kill before the second rename, the
** first unlink. Beside kill there are leave, stop (killed after some seconds, so that its launcher ends) and pause (goes on
** after a moment); those of reads and writes print "struck SECONDS", of the clock of the day. LD_PRELOAD.
*/
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

typedef enum way { FULL, KILL, LEAVE, STOP, PAUSE } way;

static long left_of(const char *call, way *how) {
  static const char *const ways[] = { "full", "kill", "leave", "stop", "pause" };
  const char              *what = getenv("SPOIL");
  char                     name[16] = "", word[16] = "";
  long                     at = -1;
  if (!what || sscanf(what, "%15s %ld %15s", name, &at, word) != 3 || strcmp(name, call) != 0) return -1;
  for (*how = FULL; *how < PAUSE && strcmp(word, ways[*how]) != 0;) ++*how;
  return at;
}

/* Another process lets this one go on, or ends it. */
static void stop(double seconds, int then) {
  struct timespec t = { (time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9) };
  pid_t           me = getpid();
  if (fork() == 0) {
    nanosleep(&t, NULL);
    kill(me, then);
    _exit(0);
  }
  raise(SIGSTOP);
}

static int strike(way how) {
  if (how == KILL) raise(SIGKILL);
  if (how == LEAVE) _exit(0);
  if (how == STOP) stop(8, SIGKILL);
  if (how == PAUSE) stop(0.6, SIGCONT);
  errno = ENOSPC;
  return -1;
}

static void strike_and_say(way how) {
  struct timespec t;
  clock_gettime(CLOCK_REALTIME, &t);
  dprintf(2, "struck %.3f\n", (double)t.tv_sec + 1e-9 * (double)t.tv_nsec);
  strike(how);
}

/* The bytes before the place are written, as they are where a disk becomes full. */
ssize_t write(int fd, const void *data, size_t n) {
  static long written;
  way         how = FULL;
  long        at = left_of("write", &how);
  struct stat about;
  ssize_t (*real)(int, const void *, size_t) = (ssize_t(*)(int, const void *, size_t))dlsym(RTLD_NEXT, "write");
  if (at < 0 || written < 0 || fstat(fd, &about) || !S_ISREG(about.st_mode)) return real(fd, data, n);
  if (written >= at && how == FULL) return strike(how);
  size_t  some = n > (size_t)(at - written) ? (size_t)(at - written) : n;
  ssize_t done = some ? real(fd, data, some) : 0;
  if (done > 0) written += done;
  if (how == FULL || written < at) return done;
  strike_and_say(how);
  written = -1; /* once; after a pause it goes on */
  return some ? done : real(fd, data, n);
}

ssize_t pread(int fd, void *data, size_t n, off_t from) {
  static long read;
  way         how = FULL;
  long        at = left_of("read", &how);
  ssize_t (*real)(int, void *, size_t, off_t) = (ssize_t(*)(int, void *, size_t, off_t))dlsym(RTLD_NEXT, "pread");
  ssize_t done = real(fd, data, n, from);
  if (at < 0 || read < 0 || done < 0) return done;
  read += done;
  if (read >= at) strike_and_say(how), read = -1;
  return done;
}

static int passes(const char *call, long *calls) {
  way  how = FULL;
  long at = left_of(call, &how);
  return at < 0 || (*calls)++ != at || strike(how) == 0;
}

int rename(const char *from, const char *to) {
  static long calls;
  int (*real)(const char *, const char *) = (int (*)(const char *, const char *))dlsym(RTLD_NEXT, "rename");
  return passes("rename", &calls) ? real(from, to) : -1;
}

/* Of checkpoints alone: MPI has files of its own. */
int unlink(const char *path) {
  static long calls;
  int (*real)(const char *) = (int (*)(const char *))dlsym(RTLD_NEXT, "unlink");
  return !strstr(path, ".safetensors") || passes("unlink", &calls) ? real(path) : -1;
}
