/* SPDX-License-Identifier: MIT
**
** recovery.c - the nccl backend where NCCL is hard: ranks that die, errors that stay, kernels that
** run, aborts that wait. Under mpirun with the stand-in libraries of standin/ in LD_LIBRARY_PATH.
** TAP from rank 0.
**
**     recovery latched|nonblocking|mixed|shrunk|gone|busy|beside|host|retries|stays|worse
*/
#include "trainer.h"

static char said[4096]; /* lines of the library's log, one after the other */

static void note(void *ud, mgrid_level level, const char *message) {
  size_t len = strlen(said);
  (void)ud;
  if (level != MGRID_LOG_DEBUG) snprintf(said + len, sizeof said - len, "%s\n", message);
}

static mgrid_backend *open_backend(mgrid_backend *mpi, double timeout, bool blocking,
                                   mgrid_error *e) {
  mgrid_nccl_options o = MGRID_NCCL_OPTIONS_INIT;
  mgrid_hooks hooks = MGRID_HOOKS_INIT;
  o.timeout = timeout, o.nonblocking = !blocking;
  mgrid_backend *b = mgrid_backend_over(mpi, maker(), &o, anew(e));
  hooks.log = note;
  if (b) mgrid_backend_set_hooks(b, &hooks, e);
  return b;
}

/* As if this process were killed, which would end the job under this launcher. */
static void vanish(void) {
  void *nccl = dlopen(on_hip() ? "librccl.so.1" : "libnccl.so.2", RTLD_NOW),
       *found = dlsym(nccl, "standin_vanish");
  void (*call)(void) = NULL;
  memcpy(&call, &found, sizeof call);
  if (call) call();
}

/* One AllReduce of the trainer's own, not waited for. */
static ncclResult_t begin_sum(ncclComm_t comm, cudaStream_t stream, void *buffer) {
  return p_AllReduce(buffer, buffer, 1, ncclInt64, ncclSum, comm, stream);
}

static ncclResult_t state_of(ncclComm_t comm) {
  ncclResult_t state = ncclInternalError;
  p_CommGetAsyncError(comm, &state);
  return state;
}

static void leave_early(void) {
  if (rank == 0) printf("1..%d\n", number);
  fflush(stdout);
  MPI_Barrier(MPI_COMM_WORLD);
  _exit(failures ? 1 : 0); /* a rank has died: MPI knows nothing of it */
}

/* Rank 2 dies while dp runs, and tp as well: its members have an error that stays. Revoke, and dp
** is made anew. */
static void latched_on(mgrid_backend *mpi, bool blocking) {
  mgrid_error e = MGRID_ERROR_INIT;
  mgrid_plan *p = two(true, false, &e);
  mgrid_backend *b = open_backend(mpi, 4, blocking, &e);
  mgrid_state *s = mgrid_materialize(p, b, "train", anew(&e)), *left = NULL;
  int64_t lost[] = { 2 };
  void *buffer = NULL;
  test(proved(s, &e), s ? "all are there, and proved" : e.message);
  const mgrid_group *dp = mgrid_state_group(s, "dp", NULL), *tp = mgrid_state_group(s, "tp", NULL);
  bool hit = mgrid_group_position_of(dp, 2) >= 0, beside = mgrid_group_position_of(tp, 2) >= 0;
  p_Malloc(&buffer, 8);
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 2) vanish();
  for (int k = 0; k < 2 && rank != 2; k++) {
    const mgrid_group *g = k ? tp : dp;
    if (k ? beside : hit) {
      begin_sum(mgrid_nccl_comm(g), mgrid_nccl_stream(g), buffer);
      while (state_of(mgrid_nccl_comm(g)) != ncclRemoteError) usleep(1000);
    }
  }
  test(rank == 2 || !hit || state_of(mgrid_nccl_comm(dp)) == ncclRemoteError,
       "who waits for the dead has an error");
  double begun = MPI_Wtime();
  bool ok = rank == 2 || mgrid_state_revoke(s, anew(&e)) == MGRID_OK;
  test(ok && MPI_Wtime() - begun < 3,
       ok ? "revoke ends what hangs, although the error stays" : e.message);
  test(rank == 2 || !hit || state_of(mgrid_nccl_comm(dp)) == ncclRemoteError, "it does");
  if (rank != 2) left = mgrid_state_shrink(s, "dp", 1, lost, anew(&e));
  const mgrid_group *now = left ? mgrid_state_group(left, "dp", NULL) : NULL;
  test(rank == 2 || !hit || (now && sum_of(now, rank) == want_of(now)),
       left ? "dp is made anew" : e.message);
  bool told = strstr(said, "shrunk/dp[0]: created again with 3 ranks, from a fresh id, because the "
                           "old communicator has an error: ");
  test(rank == 2 || !hit || told, told ? "and the log says so" : said);
  begun = MPI_Wtime();
  mgrid_state_free(left);
  if (rank != 2) mgrid_state_free(s);
  test(MPI_Wtime() - begun < 5, "and all ends in time");
  leave_early();
}

/* With STANDIN_ASYNC_ERROR=4:N one rank alone has the error: all members of its group agree to
** begin anew. */
static void mixed(mgrid_backend *mpi) {
  mgrid_error e = MGRID_ERROR_INIT;
  mgrid_plan *p = two(true, false, &e);
  mgrid_backend *b = open_backend(mpi, 4, true, &e);
  mgrid_state *s = mgrid_materialize(p, b, "train", anew(&e)), *left = NULL;
  int64_t lost[] = { 2 };
  void *buffer = NULL;
  test(s != NULL, s ? "all are there" : e.message);
  const mgrid_group *dp = mgrid_state_group(s, "dp", NULL);
  p_Malloc(&buffer, 8);
  begin_sum(mgrid_nccl_comm(dp), mgrid_nccl_stream(dp), buffer); /* the first of each rank */
  while (rank == 4 && state_of(mgrid_nccl_comm(dp)) != ncclRemoteError) usleep(1000);
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 2) vanish();
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank != 2) left = mgrid_state_shrink(s, "dp", 1, lost, anew(&e));
  const mgrid_group *now = left ? mgrid_state_group(left, "dp", NULL) : NULL;
  test(rank == 2 || (now && sum_of(now, rank) == want_of(now)),
       left || rank == 2 ? "the others go on" : e.message);
  bool anew_ = strstr(said, "created again with 3 ranks") != NULL;
  test(rank == 2 || anew_ == (rank % 2 == 0),
       "the group of the error is made anew on all its ranks");
  mgrid_state_free(left);
  if (rank != 2) mgrid_state_free(s);
  leave_early();
}

/* With STANDIN_FAIL_INIT=4:3 what is made third fails on rank 4: ncclCommShrink, and a new one is
** made; or, where an error forbids shrink (STANDIN_ASYNC_ERROR=4:1), the new one, which is an error
** on all its ranks at once. With CUDARIG_FAIL=6:cudaDeviceSynchronize:2 rank 6 fails before
** that. */
static void worse(mgrid_backend *mpi) {
  mgrid_error e = MGRID_ERROR_INIT;
  mgrid_plan *p = two(true, false, &e);
  mgrid_backend *b = open_backend(mpi, 20, false, &e);
  mgrid_state *s = mgrid_materialize(p, b, "train", anew(&e)), *left = NULL;
  int64_t lost[] = { 2 };
  void *buffer = NULL;
  bool error = getenv("STANDIN_ASYNC_ERROR") != NULL, hit = rank % 2 == 0 && rank != 2;
  int who = getenv("CUDARIG_FAIL") ? 6 : 4;
  const mgrid_group *dp = mgrid_state_group(s, "dp", NULL);
  p_Malloc(&buffer, 8);
  if (error) begin_sum(mgrid_nccl_comm(dp), mgrid_nccl_stream(dp), buffer);
  while (error && rank == 4 && state_of(mgrid_nccl_comm(dp)) != ncclRemoteError) usleep(1000);
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 2) vanish();
  double begun = MPI_Wtime();
  if (rank != 2) left = mgrid_state_shrink(s, "dp", 1, lost, anew(&e));
  if (error)
    test(!hit
             || (!left
                 && strstr(e.message, rank != who ? "gave up"
                                      : who == 4  ? "creation for shrunk/dp[0]"
                                                  : "DeviceSync")),
         e.message);
  else
    test(!hit || (left && right(left, "dp") && strstr(said, "created again with 3 ranks")),
         e.message);
  test(MPI_Wtime() - begun < 10, "in time");
  mgrid_state_free(left);
  if (rank != 2) mgrid_state_free(s);
  leave_early();
}

static void shrunk(mgrid_backend *mpi) {
  mgrid_error e = MGRID_ERROR_INIT;
  mgrid_plan *p = two(true, false, &e);
  mgrid_backend *b = open_backend(mpi, 4, true, &e);
  mgrid_state *s = mgrid_materialize(p, b, "train", anew(&e)), *left = NULL;
  int64_t lost[] = { 2 };
  if (rank != 2) left = mgrid_state_shrink(s, "dp", 1, lost, anew(&e));
  bool hit = rank % 2 == 0 && rank != 2;
  test(rank == 2 || (left && !hit == !strstr(said, "shrunk/dp[0]: 3 ranks, by ncclCommShrink\n")),
       left        ? "without an error it is NCCL that shrinks"
       : rank == 2 ? ""
                   : e.message);
  mgrid_state_free(left);
  mgrid_state_free(s);
  mgrid_backend_free(b);
  mgrid_plan_free(p);
}

/* Rank 2 is gone after use: the others shrink, and end in time without it. */
static void gone(mgrid_backend *mpi) {
  mgrid_error e = MGRID_ERROR_INIT;
  mgrid_nccl_options o = MGRID_NCCL_OPTIONS_INIT;
  mgrid_plan *p = two(true, false, &e);
  int64_t lost[] = { 2 };
  o.timeout = 3;
  mgrid_backend *b = mgrid_backend_over(mpi, maker(), &o, anew(&e));
  mgrid_state *s = mgrid_materialize(p, b, "train", anew(&e)), *left = NULL;
  test(proved(s, &e), "all are there, and proved");
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 2) vanish();
  if (rank != 2) left = mgrid_state_shrink(s, "dp", 1, lost, anew(&e));
  const mgrid_group *now = left ? mgrid_state_group(left, "dp", anew(&e)) : NULL;
  test(rank == 2 || (now && sum_of(now, rank) == want_of(now)),
       left ? "the others go on" : e.message);
  double begun = MPI_Wtime();
  mgrid_state_free(left);
  if (rank != 2) mgrid_state_free(s);
  test(MPI_Wtime() - begun < 10, "and end without it");
  leave_early();
}

/* A kernel that waits for a partner: a creation beside it is refused in time, on all ranks, and
** made when it has ended. */
static void busy(mgrid_backend *mpi) {
  mgrid_error e = MGRID_ERROR_INIT;
  mgrid_plan *p = two(true, false, &e);
  mgrid_backend *b = open_backend(mpi, 1.5, true, &e);
  mgrid_state *s = mgrid_materialize(p, b, "first", anew(&e)), *second;
  void *buffer = NULL;
  test(proved(s, &e), "all are there, and proved");
  const mgrid_group *tp = mgrid_state_group(s, "tp", NULL);
  p_Malloc(&buffer, 8);
  /* rank 0 comes later */
  if (rank == 1) begin_sum(mgrid_nccl_comm(tp), mgrid_nccl_stream(tp), buffer);
  second = mgrid_materialize(p, b, "second", anew(&e));
  bool told = strstr(
      e.message,
      "rank 1: nccl: GPU 1 was not idle within 1.5 seconds, before second/tp[0]: communicators are "
      "not created beside running kernels");
  test(!second && told, told ? "a creation beside a running kernel is refused" : e.message);
  if (rank == 0) begin_sum(mgrid_nccl_comm(tp), mgrid_nccl_stream(tp), buffer);
  p_StreamSynchronize(mgrid_nccl_stream(tp));
  second = mgrid_materialize(p, b, "second", anew(&e));
  test(second && right(second, "tp"), second ? "and made when that has ended" : e.message);
  p_Free(buffer);
  mgrid_state_free(second);
  mgrid_state_free(s);
  mgrid_backend_free(b);
  mgrid_plan_free(p);
}

/* A communicator and a stream of the trainer's own, where a kernel waits for rank 0: proofs do not
** wait for it. */
static void beside(mgrid_backend *mpi) {
  mgrid_error e = MGRID_ERROR_INIT;
  mgrid_plan *p = two(true, false, &e);
  mgrid_backend *b = open_backend(mpi, 4, true, &e);
  mgrid_state *s = mgrid_materialize(p, b, "train", anew(&e));
  ncclComm_t world = NULL;
  cudaStream_t stream = NULL; /* an ordinary one, which the legacy stream waits for */
  ncclUniqueId id;
  void *buffer = NULL;
  if (rank == 0) p_GetUniqueId(&id);
  MPI_Bcast(&id, sizeof id, MPI_BYTE, 0, MPI_COMM_WORLD);
  p_Malloc(&buffer, 8), p_StreamCreate(&stream);
  test(p_CommInitRank(&world, size, id, rank) == ncclSuccess
           && begin_sum(world, stream, buffer) == ncclSuccess
           && p_StreamSynchronize(stream) == cudaSuccess,
       "the trainer has a communicator of its own");
  if (rank) begin_sum(world, stream, buffer);
  test(proved(s, &e), e.status ? e.message : "what runs there is not waited for");
  if (!rank) begin_sum(world, stream, buffer);
  test(p_StreamSynchronize(stream) == cudaSuccess, "and goes on");
  p_Free(buffer), p_StreamDestroy(stream), p_CommDestroy(world);
  mgrid_state_free(s);
  mgrid_backend_free(b);
  mgrid_plan_free(p);
}

/* By default a trainer's own check, that every call returns ncclSuccess, holds; also in a group
** with its own. */
static void host(mgrid_backend *mpi) {
  mgrid_error e = MGRID_ERROR_INIT;
  mgrid_plan *p = two(true, false, &e);
  mgrid_backend *b = mgrid_backend_over(mpi, maker(), NULL, anew(&e));
  mgrid_state *s = mgrid_materialize(p, b, "train", anew(&e));
  ncclComm_t world = NULL, comm = mgrid_nccl_comm(mgrid_state_group(s, "dp", anew(&e)));
  cudaStream_t stream = mgrid_nccl_stream(mgrid_state_group(s, "dp", anew(&e)));
  ncclUniqueId id;
  void *buffer = NULL;
  p_Malloc(&buffer, 16);
  bool ok = begin_sum(comm, stream, buffer) == ncclSuccess
            && begin_sum(comm, stream, buffer) == ncclSuccess;
  test(ok && p_StreamSynchronize(stream) == cudaSuccess,
       "calls return ncclSuccess, the first one, too");
  if (rank == 0) p_GetUniqueId(&id);
  MPI_Bcast(&id, sizeof id, MPI_BYTE, 0, MPI_COMM_WORLD);
  p_CommInitRank(&world, size, id, rank);
  p_GroupStart();
  ok = begin_sum(world, stream, buffer) == ncclSuccess
       && begin_sum(comm, stream, (char *)buffer + 8) == ncclSuccess;
  test(ok && p_GroupEnd() == ncclSuccess && p_StreamSynchronize(stream) == cudaSuccess,
       "one group holds them and the trainer's own communicator");
  p_Free(buffer), p_CommDestroy(world);
  mgrid_state_free(s);
  mgrid_backend_free(b);
  /* and otherwise where that is asked for */
  b = open_backend(mpi, 4, false, &e);
  s = mgrid_materialize(p, b, "train", anew(&e));
  comm = mgrid_nccl_comm(mgrid_state_group(s, "dp", anew(&e)));
  stream = mgrid_nccl_stream(mgrid_state_group(s, "dp", anew(&e)));
  p_Malloc(&buffer, 8);
  ncclResult_t r = begin_sum(comm, stream, buffer);
  while (state_of(comm) == ncclInProgress) usleep(1000);
  test(r == ncclInProgress || r == ncclSuccess, "or not, where the backend is opened so");
  p_StreamSynchronize(stream), p_Free(buffer);
  mgrid_state_free(s);
  mgrid_backend_free(b);
  mgrid_plan_free(p);
}

/* With STANDIN_FAIL_INIT=3:0 no creation of rank 3 works: the tries end before the process is full
** of threads. */
static void retries(mgrid_backend *mpi) {
  mgrid_error e = MGRID_ERROR_INIT;
  mgrid_plan *p = two(true, false, &e);
  mgrid_backend *b = open_backend(mpi, 4, true, &e);
  int tries = 0;
  bool told = false;
  while (!told && tries++ < 100 && !mgrid_materialize(p, b, "train", anew(&e)))
    told = strstr(e.message, "nccl: failed creations have left ")
           && strstr(e.message, "restart the process");
  test(told && tries > 5 && tries < 40,
       told ? "the tries of a creation that fails are counted" : e.message);
  if (rank == 0) printf("1..%d\n", number);
  fflush(stdout);
  MPI_Barrier(MPI_COMM_WORLD);
  _exit(failures ? 1 : 0); /* threads are inside NCCL */
}

/* Rank 0 keeps its communicators: the others, of the same machine, cannot end theirs. */
static void stays(mgrid_backend *mpi) {
  mgrid_error e = MGRID_ERROR_INIT;
  mgrid_plan *p = two(true, false, &e);
  mgrid_backend *b = open_backend(mpi, 1, true, &e);
  mgrid_state *s = mgrid_materialize(p, b, "train", anew(&e));
  test(proved(s, &e), "all are there, and proved");
  double begun = MPI_Wtime();
  if (rank) mgrid_state_free(s);
  bool near = rank && (rank == 1 || rank % 2 == 0); /* in a group with rank 0 */
  bool told = strstr(said, "did not end within") && strstr(said, "still use ")
              && strstr(said, "; end the process");
  test(MPI_Wtime() - begun < 15 && (!near || told), "what does not end is left behind, and told");
  leave_early();
}

int main(int argc, char **argv) {
  mgrid_error e = MGRID_ERROR_INIT;
  tap_begin(&argc, &argv);
  load();
  as_hosts();
  mgrid_backend *mpi = mgrid_mpi_backend(MPI_COMM_WORLD, NULL, anew(&e));
  const char *what = argc > 1 ? argv[1] : "latched";
  if (strcmp(what, "latched") == 0) latched_on(mpi, true);
  if (strcmp(what, "nonblocking") == 0) latched_on(mpi, false);
  if (strcmp(what, "mixed") == 0) mixed(mpi);
  if (strcmp(what, "shrunk") == 0) shrunk(mpi);
  if (strcmp(what, "gone") == 0) gone(mpi);
  if (strcmp(what, "busy") == 0) busy(mpi);
  if (strcmp(what, "beside") == 0) beside(mpi);
  if (strcmp(what, "host") == 0) host(mpi);
  if (strcmp(what, "retries") == 0) retries(mpi);
  if (strcmp(what, "stays") == 0) stays(mpi);
  if (strcmp(what, "worse") == 0) worse(mpi);
  mgrid_backend_free(mpi);
  return tap_end();
}
