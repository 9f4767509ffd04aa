/* SPDX-License-Identifier: MIT
**
** spoil.c - a disk that is full, or a process that is killed, at a place that SPOIL says: "write 500 full" fails, with
** ENOSPC, the write that would bring the 501st byte into a regular file, "write 500 kill" kills after these 500; "rename 1
** kill" and "unlink 0 kill" kill before the second rename, the first unlink. LD_PRELOAD.
*/
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static long left_of(const char *call, int *kills) {
  const char *what = getenv("SPOIL");
  char        name[16] = "", how[16] = "";
  long        at = -1;
  if (!what || sscanf(what, "%15s %ld %15s", name, &at, how) != 3 || strcmp(name, call) != 0) return -1;
  *kills = strcmp(how, "kill") == 0;
  return at;
}

static int full(int kills) {
  if (kills) raise(SIGKILL);
  errno = ENOSPC;
  return -1;
}

/* The bytes before the place are written, as they are where a disk becomes full. */
ssize_t write(int fd, const void *data, size_t n) {
  static long written;
  int         kills = 0;
  long        at = left_of("write", &kills);
  struct stat about;
  ssize_t (*real)(int, const void *, size_t) = (ssize_t(*)(int, const void *, size_t))dlsym(RTLD_NEXT, "write");
  if (at < 0 || fstat(fd, &about) || !S_ISREG(about.st_mode)) return real(fd, data, n);
  if (written >= at) return full(kills);
  if (n > (size_t)(at - written)) n = (size_t)(at - written);
  ssize_t done = real(fd, data, n);
  if (done > 0) written += done;
  if (kills && written >= at) full(kills);
  return done;
}

static int passes(const char *call, long *calls) {
  int  kills = 0;
  long at = left_of(call, &kills);
  return at < 0 || (*calls)++ != at || full(kills) == 0;
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
