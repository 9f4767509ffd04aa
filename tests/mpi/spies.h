/* SPDX-License-Identifier: MIT
**
** spies.h - functions in place of MPI's, which count the messages and bytes of a move, and wait,
** die or never end when a test asks for it.
*/
#ifndef TESTS_SPIES_H
#define TESTS_SPIES_H

#include "tap.h"

#include <signal.h>
#include <unistd.h>

/* ------------------------------------------------ what MPI is asked to send */

static int64_t sent, hang = -1; /* bytes so far; messages until this rank hangs */
static int dawdle;              /* milliseconds that each message takes */
static bool loses, dies;        /* the next one is lost; this rank is killed in it */

/* the tag of a move, which has a communicator of the library to itself but for notices */
enum { DATA = 4 };

int MPI_Isend(const void *data, int n, MPI_Datatype type, int to, int tag, MPI_Comm comm,
              MPI_Request *request) {
  int width;
  MPI_Type_size(type, &width);
  if (tag != DATA) return PMPI_Isend(data, n, type, to, tag, comm, request);
  sent += (int64_t)n * width;
  if (hang >= 0 && hang-- == 0) sleep(4);
  if (dies) raise(SIGKILL);
  if (loses) { /* this never ends */
    static char never[1];
    loses = false;
    return PMPI_Irecv(never, 1, MPI_BYTE, rank, DATA + 90, MPI_COMM_WORLD, request);
  }
  if (dawdle) usleep((useconds_t)dawdle * 1000);
  return PMPI_Isend(data, n, type, to, tag, comm, request);
}

#endif
