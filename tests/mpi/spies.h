/* SPDX-License-Identifier: MIT
**
** spies.h - functions of MPI and of the kernel in place of their own, which count what a move sends and reads, and fail, wait or
** never end when a test says so.
*/
#ifndef TESTS_SPIES_H
#define TESTS_SPIES_H

#include "tap.h"

#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

/* ------------------------------------------------ what MPI is asked to send */

static int64_t sent, hang = -1; /* bytes so far; messages until this rank hangs */
static int     dawdle;          /* milliseconds that each message takes */
static bool    loses;           /* the next one */

enum { DATA = 4 }; /* the tag of a move, which has a communicator of the library to itself but for notices */

int MPI_Isend(const void *data, int n, MPI_Datatype type, int to, int tag, MPI_Comm comm, MPI_Request *request) {
  int width;
  MPI_Type_size(type, &width);
  if (tag != DATA) return PMPI_Isend(data, n, type, to, tag, comm, request);
  sent += (int64_t)n * width;
  if (hang >= 0 && hang-- == 0) sleep(4);
  if (loses) { /* this never ends */
    static char never[1];
    loses = false;
    return PMPI_Irecv(never, 1, MPI_BYTE, rank, DATA + 90, MPI_COMM_WORLD, request);
  }
  if (dawdle) usleep((useconds_t)dawdle * 1000);
  return PMPI_Isend(data, n, type, to, tag, comm, request);
}

/* -------------------------------------------------- what the kernel is asked to read */

static int64_t calls, allowed; /* of other processes so far; before they fail */
static int     refuses;        /* with this errno, if not 0 */
static bool    in_parts;       /* they end early, as they may */
static bool    naps, dies;     /* the next one takes 4 seconds before it reads; or this rank is killed in it */

/* MPICH 5 reads so, too, and takes no part for the whole. */
static bool is_ours(const void *caller) {
  Dl_info info;
  return dladdr(caller, &info) && strstr(info.dli_fname, "libmoongrid");
}

MGRID_API ssize_t process_vm_readv(pid_t pid, const struct iovec *to, unsigned long nto, const struct iovec *from,
                                   unsigned long nfrom, unsigned long flags) {
  struct iovec half;
  if (!is_ours(__builtin_return_address(0))) return syscall(SYS_process_vm_readv, pid, to, nto, from, nfrom, flags);
  if (pid != getpid() && calls++ >= allowed && refuses) return errno = refuses, -1;
  if (dies && pid != getpid()) raise(SIGKILL);
  if (naps && pid != getpid()) sleep(4);
  if (pid != getpid()) naps = false;
  if (in_parts && calls % 2 && nto == 1 && nfrom == 1 && to->iov_len > 1) {
    half = (struct iovec){ to->iov_base, to->iov_len / 2 };
    to = &half;
  } else if (in_parts && nto > 1 && nfrom > 1) { /* not a whole number of spans of the other side */
    nto /= 2;
  }
  return syscall(SYS_process_vm_readv, pid, to, nto, from, nfrom, flags);
}

#endif
