/* SPDX-License-Identifier: MIT
**
** remain.c - the survivors of a loss, where MPI survives it (Open MPI 5.0 or later under mpirun --with-ft ulfm). They interrupt
** the library's duplicate of the host's communicator, shrink it, and open a backend over the shrunk one. The host's own
** communicators are not touched. The others would wait for ever for a rank that is stopped, but not dead; so every agreement
** has a deadline. MPIX_Comm_shrink and MPI_Comm_split have none; they are called only after all survivors have agreed, and the
** watchdog names who was stopped in them. A rank that dies there does not hold up the others.
*/
#include "comm/mpi/mpi.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#ifdef OPEN_MPI
#ifndef MPI_ERR_REVOKED
#define MPI_ERR_PROC_FAILED 75
#define MPI_ERR_REVOKED     77 /* built with headers of Open MPI 4, which has the same ABI */
#endif
extern int MPIX_Comm_revoke(MPI_Comm comm) __attribute__((weak));
extern int MPIX_Comm_is_revoked(MPI_Comm comm, int *flag) __attribute__((weak));
extern int MPIX_Comm_shrink(MPI_Comm comm, MPI_Comm *rest) __attribute__((weak));
extern int MPIX_Comm_iagree(MPI_Comm comm, int *flag, MPI_Request *request) __attribute__((weak));
static int (*const revoke_comm)(MPI_Comm) = MPIX_Comm_revoke;
static int (*const is_revoked)(MPI_Comm, int *) = MPIX_Comm_is_revoked;
static int (*const shrink_comm)(MPI_Comm, MPI_Comm *) = MPIX_Comm_shrink;
static int (*const begin_agree)(MPI_Comm, int *, MPI_Request *) = MPIX_Comm_iagree;
#else
#define MPI_ERR_PROC_FAILED MPI_ERR_LASTCODE
#define MPI_ERR_REVOKED     MPI_ERR_LASTCODE
static int (*const revoke_comm)(MPI_Comm) = NULL;
static int (*const is_revoked)(MPI_Comm, int *) = NULL;
static int (*const shrink_comm)(MPI_Comm, MPI_Comm *) = NULL;
static int (*const begin_agree)(MPI_Comm, int *, MPI_Request *) = NULL;
#endif

mgrid_status mgrid_mpi_revoke(mgrid_backend *b, size_t n, void **native, mgrid_error *err) {
  mgrid_status s = mgrid_mpi_callable((mpi_backend *)b, err); /* allowed also after a call that did not end */
  if (s) return s;
  if (!revoke_comm)
    return mgrid_fail(err, MGRID_UNSUPPORTED,
                      "mpi: this MPI cannot revoke communicators; Open MPI can, since 5.0 (MPIX_Comm_revoke)");
  if (!((const mpi_backend *)b)->survives)
    return mgrid_fail(err, MGRID_UNSUPPORTED,
                      "mpi: this job cannot revoke communicators; it can if it is started by mpirun --with-ft ulfm");
  for (size_t i = 0; i < n; i++) { /* go on after a failure */
    MPI_Comm       comm = *(MPI_Comm *)native[i];
    MPI_Errhandler was = mgrid_mpi_quiet(comm);
    int            rc = revoke_comm(comm);
    mgrid_mpi_restore(comm, was);
    if (rc && !s) s = mgrid_mpi_failed(err, rc, "MPIX_Comm_revoke", "");
  }
  return s;
}

bool mgrid_mpi_tells_of_loss(int rc) {
  int class = MPI_SUCCESS;
  if (!is_revoked || !rc || MPI_Error_class(rc, &class)) return false;
  return class == MPI_ERR_IN_STATUS || (class >= MPI_ERR_PROC_FAILED && class <= MPI_ERR_REVOKED);
}

bool mgrid_mpi_is_interrupted(const mpi_backend *m) {
  int revoked = 0;
  return is_revoked && m->comm != MPI_COMM_NULL && (is_revoked(m->comm, &revoked) || revoked);
}

static mgrid_status able(const mgrid_backend *b, mgrid_error *err) {
  mgrid_status s = mgrid_mpi_callable((const mpi_backend *)b, err);
  if (s) return s;
  if (!shrink_comm || !begin_agree)
    return mgrid_fail(
        err, MGRID_UNSUPPORTED,
        "mpi: this MPI ends with its first lost rank; Open MPI goes on, since 5.0, under mpirun --with-ft "
        "ulfm; else start the job again from its last checkpoint");
  if (!((const mpi_backend *)b)->survives)
    return mgrid_fail(
        err, MGRID_UNSUPPORTED,
        "mpi: this job ends with its first lost rank; it goes on if it is started by mpirun --with-ft ulfm; "
        "else start it again from its last checkpoint");
  return MGRID_OK;
}

void mgrid_mpi_end_waits(MPI_Comm comm) {
  if (revoke_comm && comm != MPI_COMM_NULL) revoke_comm(comm);
}

static void interrupt(mgrid_backend *b) {
  mpi_backend *m = (mpi_backend *)b;
  m->broken = true;
  mgrid_mpi_end_waits(m->comm);
  mgrid_mpi_end_waits(m->talk);
}

static bool hurt(mgrid_backend *b) {
  mgrid_missing lost;
  if (!is_revoked || mgrid_mpi_callable((mpi_backend *)b, NULL)) return false;
  mgrid_mpi_progress((mpi_backend *)b);
  return mgrid_mpi_is_interrupted((mpi_backend *)b) || mgrid_mpi_lost((mpi_backend *)b, NULL, 0, &lost);
}

typedef struct agreement {
  mpi_request  call;
  mpi_backend *m;
  double       leave; /* at this time, if a rank is lost */
} agreement;

static mgrid_outcome have_agreed(void *ud) {
  agreement    *a = ud;
  mgrid_missing lost;
  mgrid_outcome through = mgrid_mpi_through(&a->call);
  if (through != MGRID_NOT_YET || mgrid_now() < a->leave || !mgrid_mpi_lost(a->m, NULL, 0, &lost)) return through;
  return MGRID_GAVE_UP;
}

/* The flag is memory of its own: leaked if the call does not end. After a timeout this rank still shows that it has come, since
** others may look later. A rank that died may have taken the result along: Open MPI (5.0) then tells some ranks, and others
** wait for ever. Who asked whether all live knows the answer by then, and leaves; all meet again in the recovery. */
static mgrid_status settle(mgrid_backend *b, uint64_t *mine, double seconds, mgrid_error *err) {
  mpi_backend *m = (mpi_backend *)b;
  int         *flag = malloc(sizeof *flag);
  if (!flag) return mgrid_oom(err);
  if (!(seconds > 0)) seconds = m->usual;
  const double now = mgrid_now();
  agreement    a = { .m = m, .leave = *mine & MGRID_SETTLE_ALL ? now + seconds / 8 : INFINITY };
  *flag = (int)*mine;
  mgrid_watch_recovery(m, seconds);
  a.call.rc = begin_agree(m->comm, flag, &a.call.request);
  mgrid_outcome came = mgrid_wait(have_agreed, &a, now + seconds, NULL, NULL);
  if (came == MGRID_LATE) return mgrid_watch_survivors(m, err);
  mgrid_watch_end(m);
  if (came == MGRID_GAVE_UP) return *mine = 0, MGRID_OK;
  /* While a loss is not acknowledged to MPI this call returns an error, the same on all ranks; the flag is valid all the same. */
  *mine = (uint64_t)(unsigned)*flag & (a.call.rc ? ~(uint64_t)MGRID_SETTLE_ALL : UINT64_MAX);
  free(flag);
  return MGRID_OK;
}

static const mgrid_comm_spec survivors = { .name = "a communicator of the survivors" };

mgrid_status mgrid_mpi_all_opened(mpi_backend *m, MPI_Comm parent, mgrid_status mine, mgrid_error *err) {
  int        *flag = malloc(sizeof *flag); /* leaked if the call does not end */
  mpi_request call = { 0 };
  if (!flag) return mgrid_oom(err); /* the others find it missing at their deadline */
  *flag = !mine;
  call.rc = begin_agree(parent, flag, &call.request);
  if (mgrid_wait(mgrid_mpi_through, &call, mgrid_now() + m->seconds, NULL, NULL) == MGRID_LATE)
    return mgrid_missing_fail(&(mgrid_missing){ 0 }, m->seconds, err);
  bool all = *flag && !call.rc;
  free(flag);
  if (all || mine) return mine;
  return call.rc ? mgrid_mpi_failed_in(m, err, call.rc, "MPIX_Comm_iagree", "the channel of the library")
                 : mgrid_fail(err, MGRID_LOST_RANK, "a rank was lost before all had opened their backend");
}

/* The ranks of m that are not in `rest`. */
static mgrid_status find_lost(const mpi_backend *m, MPI_Comm rest, bool *lost, mgrid_error *err) {
  const int n = (int)m->base.world;
  MPI_Group left = MPI_GROUP_NULL;
  int      *all = malloc(2 * (size_t)n * sizeof *all), *theirs = all ? all + n : NULL;
  if (!all) return mgrid_oom(err);
  for (int i = 0; i < n; i++) all[i] = i;
  int rc = MPI_Comm_group(rest, &left);
  if (!rc) rc = MPI_Group_translate_ranks(m->members, n, all, left, theirs);
  for (int i = 0; i < n && !rc; i++) lost[i] = theirs[i] == MPI_UNDEFINED;
  if (left != MPI_GROUP_NULL) MPI_Group_free(&left);
  free(all);
  return rc ? mgrid_mpi_failed(err, rc, "MPI_Group_translate_ranks", "the survivors") : MGRID_OK;
}

static mgrid_status find(mgrid_backend *b, bool *lost, mgrid_error *err) {
  mpi_backend *m = (mpi_backend *)b;
  if (m->rest != MPI_COMM_NULL) MPI_Comm_free(&m->rest); /* of an attempt in which another rank was lost */
  m->rest = MPI_COMM_NULL;
  mgrid_watch_recovery(m, m->usual);
  mgrid_watch_enter(m, &survivors, "MPIX_Comm_shrink");
  int rc = shrink_comm(m->comm, &m->rest);
  mgrid_watch_end(m);
  if (rc) return mgrid_mpi_failed(err, rc, "MPIX_Comm_shrink", "the channel of the library");
  MPI_Comm_set_errhandler(m->rest, MPI_ERRORS_RETURN);
  return find_lost(m, m->rest, lost, err);
}

static mgrid_backend *rest_of(mgrid_backend *b, int64_t rank, mgrid_error *err) {
  mpi_backend *m = (mpi_backend *)b;
  MPI_Comm     mine = MPI_COMM_NULL;
  mgrid_watch_recovery(m, m->usual);
  mgrid_watch_enter(m, &survivors, "MPI_Comm_split");
  int rc = MPI_Comm_split(m->rest, 0, (int)rank, &mine);
  mgrid_watch_end(m);
  if (rc) mgrid_mpi_failed_in(m, err, rc, "MPI_Comm_split", "the survivors");
  if (!rc) MPI_Comm_set_errhandler(mine, m->handler);
  mgrid_backend *left = rc ? NULL : mgrid_mpi_inherit(m, mine, err);
  if (!left) revoke_comm(m->rest); /* others may wait there */
  if (!left && !rc) revoke_comm(mine);
  return left;
}

const mgrid_survival_ops mgrid_mpi_survival = {
  .able = able, .interrupt = interrupt, .hurt = hurt, .settle = settle, .find = find, .rest = rest_of
};
