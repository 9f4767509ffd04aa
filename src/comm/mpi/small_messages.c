/* SPDX-License-Identifier: MIT
**
** small_messages.c - send small messages without waiting for them. MPI accepts most at once, but not the first one to a host that
** was cut off before a connection existed: a rank that waits for it cannot notify the others.
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

/* Free the messages that MPI has accepted. */
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

static int post(mpi_backend *m, int64_t to, int tag, const void *data, size_t bytes, bool received) {
  mpi_note *n = malloc(sizeof *n);
  if (!n) return MPI_Send(data, (int)bytes, MPI_BYTE, (int)to, tag, m->comm);
  memcpy(n->data, data, bytes);
  int rc = received ? MPI_Issend(n->data, (int)bytes, MPI_BYTE, (int)to, tag, m->comm, &n->sent)
                    : MPI_Isend(n->data, (int)bytes, MPI_BYTE, (int)to, tag, m->comm, &n->sent);
  if (rc) return free(n), rc;
  n->next = m->note;
  m->note = n;
  sweep(m);
  return MPI_SUCCESS;
}

int mgrid_mpi_post(mpi_backend *m, int64_t to, int tag, const void *data, size_t bytes) {
  return post(m, to, tag, data, bytes, false);
}

int mgrid_mpi_post_received(mpi_backend *m, int64_t to, int tag, const void *data, size_t bytes) {
  return post(m, to, tag, data, bytes, true);
}

bool mgrid_mpi_posted(mpi_backend *m, double seconds) {
  return mgrid_wait(sweep, m, mgrid_now() + seconds, NULL, NULL) == MGRID_OK;
}
