/* SPDX-License-Identifier: MIT
**
** notes.c - small messages to other ranks that nobody waits for. MPI takes most at once, but not the first to a host
** that was cut off before there was a connection to it: whoever waited for that could tell nobody else.
*/
#include "comm/mpi/mpi.h"

#include <stdlib.h>
#include <string.h>

enum { NOTE_MOST = 160 }; /* bytes */

struct mpi_note {
  mpi_note   *next;
  MPI_Request sent;
  char        data[NOTE_MOST];
};

/* Let go of those that MPI has taken. */
static mgrid_outcome sweep(void *ud) { /* mgrid_look */
  mpi_backend *m = ud;
  for (mpi_note **at = &m->note; *at;) {
    mpi_note *n = *at;
    int       taken = 0;
    if (MPI_Test(&n->sent, &taken, MPI_STATUS_IGNORE) || taken) {
      *at = n->next;
      free(n);
    } else {
      at = &n->next;
    }
  }
  return m->note ? MGRID_NOT_YET : MGRID_OK;
}

int mgrid_mpi_post(mpi_backend *m, int64_t to, int tag, const void *data, size_t bytes) {
  mpi_note *n = malloc(sizeof *n);
  if (!n) return MPI_Send(data, (int)bytes, MPI_BYTE, (int)to, tag, m->comm);
  memcpy(n->data, data, bytes);
  int rc = MPI_Isend(n->data, (int)bytes, MPI_BYTE, (int)to, tag, m->comm, &n->sent);
  if (rc) return free(n), rc;
  n->next = m->note;
  m->note = n;
  sweep(m);
  return MPI_SUCCESS;
}

bool mgrid_mpi_posted(mpi_backend *m) { return mgrid_wait(sweep, m, mgrid_now() + m->seconds, NULL, NULL) == MGRID_OK; }
