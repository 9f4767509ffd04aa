/* SPDX-License-Identifier: MIT
**
** spoil.c - a disk that is full, or a process that ends or stops, at a place that SPOIL says:
** "write 500 full" fails, with ENOSPC, the write that would bring the 501st byte into a regular
** file, "write 500 kill" kills after these 500, "read 500 kill" when so many were read of files at
** a place; "rename 0 kill" and "unlink 0 kill" kill before the first renameat, the first unlink.
** Beside kill there are leave, stop (killed after some seconds, so that its launcher ends) and
** pause (goes on after a moment); those of reads and writes print "struck SECONDS", of the clock of
** the day. "call 7 kill" kills before the eighth call that changes something below the folder of
** SPOIL_UNDER; in a write, after half of it. Streams of libc write without being seen. LD_PRELOAD.
*/
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
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
  const char *what = getenv("SPOIL");
  char name[16] = "", word[16] = "";
  long at = -1;
  if (!what || sscanf(what, "%15s %ld %15s", name, &at, word) != 3 || strcmp(name, call) != 0)
    return -1;
  for (*how = FULL; *how < PAUSE && strcmp(word, ways[*how]) != 0;) ++*how;
  return at;
}

/* Another process lets this one go on, or ends it. */
static void stop(double seconds, int then) {
  struct timespec t = { (time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9) };
  pid_t me = getpid();
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

/* ------------------------------------------------- calls that change something */

/* Return whether this call, on a path or on an open file, is where SPOIL strikes. */
static int is_next(int fd, const char *path) {
  static long calls;
  way how = KILL;
  char link[64], open_file[4096] = "";
  long at = left_of("call", &how);
  const char *under = at < 0 ? NULL : getenv("SPOIL_UNDER");
  if (!under) return 0;
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  if ((!path || (*path != '/' && fd != AT_FDCWD))
      && readlink(link, open_file, sizeof open_file - 1) > 0)
    path = open_file;
  return path && strncmp(path, under, strlen(under)) == 0 && calls++ == at;
}

#define REAL(name, ...) ((int (*)(__VA_ARGS__))dlsym(RTLD_NEXT, #name))

int open(const char *path, int flags, ...) {
  va_list args;
  va_start(args, flags);
  mode_t mode = flags & O_CREAT ? va_arg(args, mode_t) : 0;
  va_end(args);
  if (flags & O_CREAT && is_next(AT_FDCWD, path)) strike(KILL);
  return REAL(open, const char *, int, mode_t)(path, flags, mode);
}

int openat(int folder, const char *path, int flags, ...) {
  va_list args;
  va_start(args, flags);
  mode_t mode = flags & O_CREAT ? va_arg(args, mode_t) : 0;
  va_end(args);
  if (flags & O_CREAT && is_next(folder, path)) strike(KILL);
  return REAL(openat, int, const char *, int, mode_t)(folder, path, flags, mode);
}

int mkdir(const char *path, mode_t mode) {
  if (is_next(AT_FDCWD, path)) strike(KILL);
  return REAL(mkdir, const char *, mode_t)(path, mode);
}

int fsync(int fd) {
  if (is_next(fd, NULL)) strike(KILL);
  return REAL(fsync, int)(fd);
}

int rename(const char *from, const char *to) {
  if (is_next(AT_FDCWD, from)) strike(KILL);
  return REAL(rename, const char *, const char *)(from, to);
}

int unlinkat(int folder, const char *path, int flags) {
  if (is_next(folder, path)) strike(KILL);
  return REAL(unlinkat, int, const char *, int)(folder, path, flags);
}

int rmdir(const char *path) {
  if (is_next(AT_FDCWD, path)) strike(KILL);
  return REAL(rmdir, const char *)(path);
}

/* ---------------------------------------------------------- the other places */

/* The bytes before the place are written, as they are where a disk becomes full. */
ssize_t write(int fd, const void *data, size_t n) {
  static long written;
  way how = FULL;
  long at = left_of("write", &how);
  struct stat about;
  ssize_t (*real)(int, const void *, size_t) =
      (ssize_t(*)(int, const void *, size_t))dlsym(RTLD_NEXT, "write");
  if (is_next(fd, NULL)) real(fd, data, n / 2), strike(KILL);
  if (at < 0 || written < 0 || fstat(fd, &about) || !S_ISREG(about.st_mode))
    return real(fd, data, n);
  if (written >= at && how == FULL) return strike(how);
  size_t some = n > (size_t)(at - written) ? (size_t)(at - written) : n;
  ssize_t done = some ? real(fd, data, some) : 0;
  if (done > 0) written += done;
  if (how == FULL || written < at) return done;
  strike_and_say(how);
  written = -1; /* once; after a pause it goes on */
  return some ? done : real(fd, data, n);
}

ssize_t pread(int fd, void *data, size_t n, off_t from) {
  static long read;
  way how = FULL;
  long at = left_of("read", &how);
  ssize_t (*real)(int, void *, size_t, off_t) =
      (ssize_t(*)(int, void *, size_t, off_t))dlsym(RTLD_NEXT, "pread");
  ssize_t done = real(fd, data, n, from);
  if (at < 0 || read < 0 || done < 0) return done;
  read += done;
  if (read >= at) strike_and_say(how), read = -1;
  return done;
}

static int passes(const char *call, long *calls) {
  way how = FULL;
  long at = left_of(call, &how);
  return at < 0 || (*calls)++ != at || strike(how) == 0;
}

int renameat(int from_folder, const char *from, int to_folder, const char *to) {
  static long calls;
  if (is_next(from_folder, from)) strike(KILL);
  return passes("rename", &calls) ? REAL(renameat, int, const char *, int,
                                         const char *)(from_folder, from, to_folder, to)
                                  : -1;
}

/* Of checkpoints alone: MPI has files of its own. */
int unlink(const char *path) {
  static long calls;
  int (*real)(const char *) = (int (*)(const char *))dlsym(RTLD_NEXT, "unlink");
  return !strstr(path, ".safetensors") || passes("unlink", &calls) ? real(path) : -1;
}
