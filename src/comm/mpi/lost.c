/* SPDX-License-Identifier: MIT
**
** lost.c - ranks whose processes have failed, where MPI survives and reports that: Open MPI 5.0 or later under mpirun
** --with-ft ulfm. With other MPIs silent ranks are found at the deadline (arrivals.c).
*/
#include "comm/mpi/mpi.h"

#include <stdlib.h>

/* Not with MPICH: it has the function, but ends the process if its device lacks it (ch4). */
#ifdef OPEN_MPI
extern int MPIX_Comm_get_failed(MPI_Comm comm, MPI_Group *failed) __attribute__((weak));
static int (*const get_failed)(MPI_Comm comm, MPI_Group *failed) = MPIX_Comm_get_failed;

bool mgrid_mpi_survives(void) {
  int               level, index, count = 0, on = 0;
  MPI_T_cvar_handle handle;
  if (!get_failed) return false; /* before 5.0, where the query below takes a fifth of a second */
  MPI_Query_thread(&level);      /* Open MPI 4 makes the level asked for here that of MPI itself */
  if (MPI_T_init_thread(level, &level) != MPI_SUCCESS) return false;
  if (MPI_T_cvar_get_index("mpi_ft_enable", &index) == MPI_SUCCESS
      && MPI_T_cvar_handle_alloc(index, NULL, &handle, &count) == MPI_SUCCESS) {
    if (count != 1 || MPI_T_cvar_read(handle, &on) != MPI_SUCCESS) on = 0;
    MPI_T_cvar_handle_free(&handle);
  }
  MPI_T_finalize();
  return on;
}
#else
static int (*const get_failed)(MPI_Comm comm, MPI_Group *failed) = NULL;
bool mgrid_mpi_survives(void) { return false; }
#endif

/* Return the ranks whose processes have failed; the caller frees the list. NULL: there are none. */
static int *failed_ranks(const mpi_backend *m, int *n) {
  MPI_Group failed;
  int      *ours = NULL, most = 0;
  *n = 0;
  if (!get_failed || !m->survives || m->comm == MPI_COMM_NULL || get_failed(m->comm, &failed)) return NULL;
  MPI_Group_size(failed, &most);
  if (most > 0) ours = malloc(2 * (size_t)most * sizeof *ours);
  for (int i = 0; i < most && ours; i++) ours[most + i] = i;
  if (ours && !MPI_Group_translate_ranks(failed, most, ours + most, m->members, ours))
    for (int i = 0; i < most; i++)
      if (ours[i] != MPI_UNDEFINED) ours[(*n)++] = ours[i];
  MPI_Group_free(&failed);
  return ours;
}

bool mgrid_mpi_lost(const mpi_backend *m, const int32_t *ranks, int64_t size, mgrid_missing *lost) {
  int  n;
  int *ours = failed_ranks(m, &n);
  *lost = (mgrid_missing){ .lost = true };
  for (int i = 0; i < n; i++) {
    bool takes_part = !ranks;
    for (int64_t k = 0; k < size && ranks && !takes_part; k++) takes_part = ranks[k] == ours[i];
    if (takes_part) mgrid_missing_add(lost, ours[i]);
  }
  free(ours);
  return lost->n > 0;
}

uint8_t *mgrid_mpi_all_lost(const mpi_backend *m) {
  int      n, *ours = failed_ranks(m, &n);
  uint8_t *lost = n > 0 ? calloc((size_t)m->base.world, sizeof *lost) : NULL;
  for (int i = 0; i < n && lost; i++) lost[ours[i]] = 1;
  free(ours);
  return lost;
}

void mgrid_mpi_progress(const mpi_backend *m) {
  int some;
  if (!m->sessions) MPI_Iprobe(MPI_ANY_SOURCE, 0, MPI_COMM_SELF, &some, MPI_STATUS_IGNORE);
}

/* Another rank may revoke a communicator before this one learns of the loss; wait this long for it. */
#define NEWS_SECONDS 1.0

typedef struct hearing {
  const mpi_backend *m;
  mgrid_missing      lost;
} hearing;

static mgrid_outcome has_heard(void *ud) { /* mgrid_look */
  hearing *h = ud;
  mgrid_mpi_progress(h->m);
  return mgrid_mpi_lost(h->m, NULL, 0, &h->lost) ? MGRID_OK : MGRID_NOT_YET;
}

mgrid_status mgrid_mpi_fail_interrupted(mgrid_error *err, const char *what) {
  return mgrid_fail(err, MGRID_LOST_RANK, "another rank left %s to recover from a loss that this one does not see",
                    what);
}

mgrid_status mgrid_mpi_failed_in(const mpi_backend *m, mgrid_error *err, int rc, const char *call, const char *what) {
  hearing h = { .m = m };
  bool    news = mgrid_mpi_tells_of_loss(rc);
  if (mgrid_wait(has_heard, &h, news ? mgrid_now() + NEWS_SECONDS : 0, NULL, NULL) == MGRID_OK)
    return mgrid_missing_fail(&h.lost, 0, err);
  if (news && mgrid_mpi_is_interrupted(m)) return mgrid_mpi_fail_interrupted(err, what);
  return mgrid_mpi_failed(err, rc, call, what);
}
