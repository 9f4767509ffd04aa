/* SPDX-License-Identifier: MIT
**
** process.h - count what a process holds: file descriptors, threads, its memory and the GPU's. For
** programs that create and destroy communicators repeatedly, and must not hold more each time.
*/
#ifndef PROCESS_H
#define PROCESS_H

#include "gpu.h"

#include <dirent.h>
#include <malloc.h>

/* Memory of the process is what malloc has given out, in MiB: resident memory grows by what malloc
** keeps for each thread that was ever in NCCL. Memory of the GPU, in MiB, is all that is in use on
** it. */
typedef struct process {
  double fds, threads, host, device;
} process;

static inline double entries(const char *folder) {
  DIR *d = opendir(folder);
  double n = 0;
  while (d && readdir(d)) n++;
  if (d) closedir(d);
  return n;
}

static inline process process_now(void) {
  size_t unused = 0, total = 0;
  struct mallinfo2 m = mallinfo2();
  cuda_must(gpu.cudaMemGetInfo(&unused, &total), "cudaMemGetInfo");
  return (process){ entries("/proc/self/fd"), entries("/proc/self/task"),
                    (double)(m.uordblks + m.hblkhd) / (1 << 20),
                    (double)(total - unused) / (1 << 20) };
}

/* Check what `rounds` cycles left behind: nothing may grow with every cycle. */
static inline void process_grown(const process *before, const process *after, int rounds) {
  enum { HOST = 64, DEVICE = 32 }; /* MiB: what allocators keep may come once */
  double fds = after->fds - before->fds, threads = after->threads - before->threads;
  double host = after->host - before->host, device = after->device - before->device;
  tell(before->fds, "file descriptors after the first cycles");
  tell(before->threads, "threads after the first cycles");
  tell(fds, "file descriptors more after %d cycles", rounds);
  tell(threads, "threads more after %d cycles", rounds);
  tell(host, "MiB of malloc more after %d cycles", rounds);
  tell(device, "MiB of the GPU more after %d cycles", rounds);
  if (fds >= rounds) fail("%.0f file descriptors stay of %d cycles", fds, rounds);
  if (threads >= rounds) fail("%.0f threads stay of %d cycles", threads, rounds);
  if (host > HOST) fail("the process grows: %.0f MiB more after %d cycles", host, rounds);
  if (device > DEVICE) fail("GPU memory grows: %.0f MiB more after %d cycles", device, rounds);
}

#endif
