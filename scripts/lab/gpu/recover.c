/* SPDX-License-Identifier: MIT
**
** recover.c - test on the real NCCL what moongrid documents about lost ranks: it tests the promises
** of moongrid.h and src/comm/README.md, whatever the implementation. Run it under mpirun. Rank 0
** prints "KEY<tab>VALUE", each line flushed.
**
**     recover late      a rank that does not arrive at a creation is named on all others, in time
**     recover lost      the last rank is missing in an all-reduce: revoke ends it, shrink leaves a group that
**                       sums, free returns
**     recover killed    the same after kill -9 of the last rank; mpirun must not end the job for it
**     recover remade    the last rank stays away: mgrid_state_recover with the host's list, by new ids and by
**                       ncclCommShrink, gives groups that sum
**     recover cycles N  materialize, prove, free, N times: file descriptors, threads, memory
*/
#include "job.h"
#include "process.h"

#include <signal.h>

enum { TIMEOUT = 5, SLACK = 10, PATIENCE = 20 }; /* seconds */

static ncclComm_t comm_of(mgrid_state *state, const char *family, const mgrid_group **group) {
  mgrid_error e = MGRID_ERROR_INIT;
  *group = mgrid_state_group(state, family, &e);
  if (!*group || !mgrid_nccl_comm(*group)) fail("%s has no communicator: %s", family, e.message);
  return mgrid_nccl_comm(*group);
}

/* End without MPI_Finalize, because MPI is unusable after a rank was lost. */
__attribute__((noreturn)) static void leave(const char *done) {
  if (gpu.rank == 0) puts(done);
  fflush(NULL);
  _exit(0);
}

static mgrid_state *made(const mgrid_plan *p, mgrid_backend *b, const char *name) {
  mgrid_error e = MGRID_ERROR_INIT;
  mgrid_state *s = mgrid_materialize(p, b, name, &e);
  if (!s) fail("%s", e.message);
  if (mgrid_state_prove(s, NULL, &e)) fail("%s", e.message);
  return s;
}

/* ------------------------------------------------------------------------- late */

static void late(mgrid_backend *mpi) {
  mgrid_error e = MGRID_ERROR_INIT;
  mgrid_backend *b = job_backend(mpi, TIMEOUT);
  mgrid_plan *p = job_world_plan(1, "max_ctas=1");
  char name[64];
  snprintf(name, sizeof name, "rank %d", gpu.ranks - 1);
  made(p, b, "first");
  if (gpu.rank == gpu.ranks - 1) {
    sleep(TIMEOUT + SLACK);
    leave("");
  }
  double begun = now();
  mgrid_state *second = mgrid_materialize(p, b, "second", &e);
  double took = now() - begun;
  tell(1e3 * took, "until the missing rank is named, ms");
  if (second) fail("a creation succeeded without %s", name);
  if (!strstr(e.message, name)) fail("the message does not name %s: %s", name, e.message);
  if (took > TIMEOUT + SLACK) fail("%.1f seconds with a timeout of %d", took, TIMEOUT);
  if (gpu.rank == 0) printf("message: %s\n", e.message);
  leave("named, and ended"); /* the first state's end would be a call over all ranks */
}

/* ------------------------------------------------------------------- lost, killed */

/* Start an all-reduce that waits for the lost rank. If the rank died, measure how soon an error
** reports it. */
static void wait_in_vain(ncclComm_t comm, lane l, bool died) {
  ncclResult_t r = gpu.AllReduce(l.data, l.data, 1, ncclInt64, ncclSum, comm, l.stream);
  double begun = now(), most = died ? PATIENCE : 2;
  while ((r == ncclSuccess || r == ncclInProgress) && now() - begun < most) {
    usleep(1000);
    if (gpu.CommGetAsyncError(comm, &r) != ncclSuccess) break;
  }
  bool error = r != ncclSuccess && r != ncclInProgress;
  if (error) {
    tell(ms_since(begun), "until NCCL tells an error, ms");
    if (gpu.rank == 0) printf("error: %s\n", gpu.GetErrorString(r));
  }
  if (died && !error) fail("no error within %d seconds after the last rank was killed", PATIENCE);
}

static void lost(mgrid_backend *mpi, bool die) {
  mgrid_error e = MGRID_ERROR_INIT;
  mgrid_backend *b = job_backend(mpi, TIMEOUT);
  mgrid_plan *p = job_world_plan(1, "max_ctas=1");
  mgrid_state *state = made(p, b, "train");
  const mgrid_group *group;
  int64_t gone[] = { gpu.ranks - 1 }, left = gpu.ranks - 1;
  lane l = lane_open();
  ncclComm_t comm = comm_of(state, "copy_0", &group);
  MPI_Barrier(MPI_COMM_WORLD);
  if (gpu.rank == gone[0]) {
    if (die) raise(SIGKILL);
    sleep(2 * SLACK); /* its process does not end yet, so its sockets stay open */
    leave("");
  }
  if (die) sleep(1);
  wait_in_vain(comm, l, die);
  double begun = now();
  mgrid_status s = mgrid_state_revoke(state, &e);
  if (s == MGRID_UNSUPPORTED && gpu.rank == 0) printf("revoke: %s\n", e.message);
  if (s && s != MGRID_UNSUPPORTED) fail("revoke: %s", e.message);
  tell(ms_since(begun), "revoke, ms");
  begun = now();
  e = (mgrid_error)MGRID_ERROR_INIT;
  mgrid_state *rest = mgrid_state_shrink(state, "copy_0", 1, gone, &e);
  if (!rest) fail("shrink: %s", e.message);
  tell(ms_since(begun), "shrink, ms");
  if (gpu.rank == 0 && *e.message) printf("note: %s\n", e.message);
  const mgrid_group *now_group;
  ncclComm_t now_comm = comm_of(rest, "copy_0", &now_group);
  if (mgrid_group_size(now_group) != left || mgrid_group_position_of(now_group, gone[0]) >= 0)
    fail("the group without rank %lld has %lld ranks", (long long)gone[0],
         (long long)mgrid_group_size(now_group));
  lane fresh = lane_open();
  sum_checked(now_comm, fresh.stream, fresh.data, LANE, left, left * (left - 1) / 2,
              "the ranks that are left");
  begun = now();
  mgrid_state_free(rest);
  mgrid_state_free(state);
  tell(ms_since(begun), "free of both states, ms");
  leave("went on without it");
}

/* ----------------------------------------------------------------------- cycles */

static void cycles(mgrid_backend *mpi, int rounds) {
  mgrid_backend *b = job_backend(mpi, 0);
  mgrid_plan *p = job_world_plan(2, "max_ctas=2");
  process first = { 0 }, last = { 0 };
  double begun = now();
  for (int i = 0; i < rounds; i++) {
    mgrid_state_free(made(p, b, "cycle"));
    cuda_must(gpu.cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    MPI_Barrier(MPI_COMM_WORLD);
    if (i == 1) first = process_now();
    if (i > 1) last = process_now();
    MPI_Barrier(MPI_COMM_WORLD);
  }
  tell(ms_since(begun) / rounds, "a cycle, ms");
  process_grown(&first, &last, rounds - 2);
  mgrid_plan_free(p);
  mgrid_backend_free(b);
}

/* ----------------------------------------------------------------------- remade */

/* Recover as a host that knows the lost ranks: pass a backend of the survivors, and the list. */
static void recovered(mgrid_state *state, mgrid_losses *losses, MPI_Comm rest, int64_t gone,
                      bool shrinks) {
  mgrid_error e = MGRID_ERROR_INIT;
  mgrid_recover_options o = MGRID_RECOVER_OPTIONS_INIT;
  mgrid_state *next = NULL;
  const mgrid_group *group;
  int64_t left = gpu.ranks - 1;
  mgrid_backend *mpi = mgrid_mpi_backend(rest, NULL, &e);
  if (!mpi) fail("%s", e.message);
  o.backend = job_backend(mpi, TIMEOUT), o.nlost = 1, o.lost = &gone, o.nccl_shrink = shrinks;
  double begun = now();
  if (mgrid_state_recover(state, losses, &o, &next, NULL, NULL, &e)) fail("recover: %s", e.message);
  tell(ms_since(begun), shrinks ? "recover by ncclCommShrink, ms" : "recover by new ids, ms");
  ncclComm_t comm = comm_of(next, "all", &group);
  if (mgrid_group_size(group) != left)
    fail("%lld ranks remain", (long long)mgrid_group_size(group));
  lane fresh = lane_open();
  sum_checked(comm, fresh.stream, fresh.data, LANE, left, left * (left - 1) / 2,
              "the ranks that are left");
}

static void remade(mgrid_backend *mpi) {
  static const char text[] =
      "return recipe { build = function(world) local t = topology(world) "
      "t.all = grid(world, 'a', { a = fill }) 'a':with { unique = true, nccl = { max_ctas = 1 } } "
      "return t end }";
  mgrid_error e = MGRID_ERROR_INIT;
  MPI_Comm rest;
  int64_t gone = gpu.ranks - 1;
  mgrid_runtime *rt = mgrid_runtime_new(NULL, NULL, &e);
  if (!rt || mgrid_runtime_load(rt, "remade", text, strlen(text), &e)) fail("%s", e.message);
  mgrid_plan *p = mgrid_runtime_plan(rt, gpu.ranks, NULL, 0, NULL, &e);
  mgrid_losses *losses = p ? mgrid_losses_new(rt, p, 0, NULL, NULL, &e) : NULL;
  if (!losses) fail("%s", e.message);
  mgrid_backend *b = job_backend(mpi, TIMEOUT);
  mgrid_state *one = made(p, b, "one"), *two = made(p, b, "two");
  MPI_Comm_split(MPI_COMM_WORLD, gpu.rank == gone, gpu.rank, &rest);
  if (gpu.rank == gone) {
    sleep(2 * SLACK);
    leave("");
  }
  recovered(one, losses, rest, gone, false);
  recovered(two, losses, rest, gone, true);
  leave("went on without it");
}

/* ------------------------------------------------------------------------- main */

int main(int argc, char **argv) {
  mgrid_error e = MGRID_ERROR_INIT;
  const char *what = argc > 1 ? argv[1] : "";
  int rounds = argc == 3 ? atoi(argv[2]) : 20;
  job_begin(&argc, &argv);
  if (gpu.ranks < 2) fail("at least 2 ranks");
  mgrid_backend *mpi = mgrid_mpi_backend(MPI_COMM_WORLD, NULL, &e);
  if (!mpi) fail("%s", e.message);
  if (strcmp(what, "late") == 0)
    late(mpi);
  else if (strcmp(what, "lost") == 0)
    lost(mpi, false);
  else if (strcmp(what, "killed") == 0)
    lost(mpi, true);
  else if (strcmp(what, "remade") == 0)
    remade(mpi);
  else if (strcmp(what, "cycles") == 0 && rounds > 2)
    cycles(mpi, rounds);
  else
    fail("recover late | lost | killed | remade | cycles N");
  mgrid_backend_free(mpi);
  MPI_Finalize();
  if (gpu.rank == 0) puts("done");
  return 0;
}
