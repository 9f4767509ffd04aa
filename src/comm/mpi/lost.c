/* SPDX-License-Identifier: MIT
**
** lost.c - makes the errors of failed calls of MPI, and finds the lost ranks where MPI survives a
** loss and reports it (Open MPI 5 under mpirun --with-ft ulfm). With other MPIs a lost rank is a
** silent rank, found at the deadline (arrivals.c). mgrid_mpi_failed_in waits a moment for MPI's
** news of lost ranks, so that the error of a failed call names them. This file calls no other file
** of this folder.
*/
#include "comm/mpi/mpi.h"

#include <stdlib.h>

/* ----------------------------------------------------------- errors of MPI */

mgrid_status mgrid_mpi_failed(mgrid_error *err, int rc, const char *call, const char *what) {
  char text[MPI_MAX_ERROR_STRING] = "";
  int len = 0;
  if (MPI_Error_string(rc, text, &len) != MPI_SUCCESS) snprintf(text, sizeof text, "error %d", rc);
  return mgrid_fail(err, MGRID_BACKEND, "mpi: %s%s%s: %.300s", call, *what ? " for " : "", what,
                    text);
}

/* Another thread may call this for MPI_COMM_SELF, too. So if MPI_ERRORS_RETURN is set already, it
** is neither set again nor replaced at the end: the thread that has set it restores the handler. */
MPI_Errhandler mgrid_mpi_quiet(MPI_Comm comm) {
  MPI_Errhandler was = MPI_ERRHANDLER_NULL;
  MPI_Comm_get_errhandler(comm, &was);
  if (was != MPI_ERRORS_RETURN) MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  return was;
}

void mgrid_mpi_restore(MPI_Comm comm, MPI_Errhandler was) {
  if (was != MPI_ERRORS_RETURN) MPI_Comm_set_errhandler(comm, was);
  MPI_Errhandler_free(&was);
}

/* --------------------------------------------------------- what MPI can do */

/* The functions of ULFM; NULL where there are none. MPICH has some of these functions, but ends the
** process if its device (ch4) lacks them, so they are not used with MPICH. */
#ifdef OPEN_MPI
#ifndef MPI_ERR_REVOKED
#define MPI_ERR_PROC_FAILED 75
#define MPI_ERR_REVOKED     77 /* for a build with headers of Open MPI 4, which has the same ABI */
#endif
extern int MPIX_Comm_get_failed(MPI_Comm comm, MPI_Group *failed) __attribute__((weak));
extern int MPIX_Comm_revoke(MPI_Comm comm) __attribute__((weak));
extern int MPIX_Comm_is_revoked(MPI_Comm comm, int *flag) __attribute__((weak));
static int (*const get_failed)(MPI_Comm, MPI_Group *) = MPIX_Comm_get_failed;
static int (*const revoke_comm)(MPI_Comm) = MPIX_Comm_revoke;
static int (*const is_revoked)(MPI_Comm, int *) = MPIX_Comm_is_revoked;

bool mgrid_mpi_survives(void) {
  int level, index, count = 0, on = 0;
  MPI_T_cvar_handle handle;
  if (!get_failed) return false; /* before 5.0, where the query below takes a fifth of a second */
  /* pass MPI's own level of threads, because Open MPI 4 would change it to the level that is asked
  ** for here */
  MPI_Query_thread(&level);
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
#define MPI_ERR_PROC_FAILED MPI_ERR_LASTCODE
#define MPI_ERR_REVOKED     MPI_ERR_LASTCODE
static int (*const get_failed)(MPI_Comm, MPI_Group *) = NULL;
static int (*const revoke_comm)(MPI_Comm) = NULL;
static int (*const is_revoked)(MPI_Comm, int *) = NULL;
bool mgrid_mpi_survives(void) { return false; }
#endif

/* ------------------------------------------------------------ who is lost */

/* Return the *n ranks whose processes have failed. The caller frees the list. NULL: there are
** none. */
static int *failed_ranks(const mpi_backend *m, int *n) {
  MPI_Group failed;
  int *ours = NULL, most = 0;
  *n = 0;
  if (!get_failed || !m->survives || m->comm == MPI_COMM_NULL || get_failed(m->comm, &failed))
    return NULL;
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
  int n;
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
  int n, *ours = failed_ranks(m, &n);
  uint8_t *lost = n > 0 ? calloc((size_t)m->base.world, sizeof *lost) : NULL;
  for (int i = 0; i < n && lost; i++) lost[ours[i]] = 1;
  free(ours);
  return lost;
}

/* Let MPI handle what has arrived, such as news of a loss: it does so only during its calls. */
static void lost_progress(const mpi_backend *m) {
  int some;
  if (!m->sessions) MPI_Iprobe(MPI_ANY_SOURCE, 0, MPI_COMM_SELF, &some, MPI_STATUS_IGNORE);
}

/* Return whether this error of MPI may mean that a rank is lost, or has left the call to
** recover. */
static bool tells_of_loss(int rc) {
  int class = MPI_SUCCESS;
  if (!is_revoked || !rc || MPI_Error_class(rc, &class)) return false;
  return class == MPI_ERR_IN_STATUS || (class >= MPI_ERR_PROC_FAILED && class <= MPI_ERR_REVOKED);
}

bool mgrid_mpi_is_interrupted(const mpi_backend *m) {
  int revoked = 0;
  return is_revoked && m->comm != MPI_COMM_NULL && (is_revoked(m->comm, &revoked) || revoked);
}

bool mgrid_mpi_is_hurt(const mpi_backend *m) {
  mgrid_missing lost;
  if (!is_revoked) return false;
  lost_progress(m);
  return mgrid_mpi_is_interrupted(m) || mgrid_mpi_lost(m, NULL, 0, &lost);
}

/* Another rank may revoke a communicator before this rank learns of the loss. Wait this long for
** the news. */
#define NEWS_SECONDS 1.0

typedef struct hearing {
  const mpi_backend *m;
  mgrid_missing lost;
} hearing;

static mgrid_outcome has_heard(void *ud) { /* mgrid_look */
  hearing *h = ud;
  lost_progress(h->m);
  return mgrid_mpi_lost(h->m, NULL, 0, &h->lost) ? MGRID_OK : MGRID_NOT_YET;
}

mgrid_status mgrid_mpi_fail_interrupted(mgrid_error *err, const char *what) {
  return mgrid_fail(err, MGRID_LOST_RANK,
                    "another rank left %s to recover from a loss that this one does not see", what);
}

mgrid_status mgrid_mpi_failed_in(const mpi_backend *m, mgrid_error *err, int rc, const char *call,
                                 const char *what) {
  hearing h = { .m = m };
  bool news = tells_of_loss(rc);
  if (mgrid_wait(has_heard, &h, news ? mgrid_now() + NEWS_SECONDS : 0, NULL, NULL) == MGRID_OK)
    return mgrid_missing_fail(&h.lost, 0, err);
  if (news && mgrid_mpi_is_interrupted(m)) return mgrid_mpi_fail_interrupted(err, what);
  return mgrid_mpi_failed(err, rc, call, what);
}

/* ------------------------------------------------- end the waits of others */

void mgrid_mpi_end_waits(MPI_Comm comm) {
  if (revoke_comm && comm != MPI_COMM_NULL) revoke_comm(comm);
}
