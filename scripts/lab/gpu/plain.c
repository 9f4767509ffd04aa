/* SPDX-License-Identifier: MIT
**
** plain.c - communicators of several ranks by NCCL's own calls, without MPI and without moongrid:
** the ranks are processes that this program starts, on one GPU or on several. If it works and
** moongrid does not, the fault is moongrid's; if it fails, the fault is NCCL's, the driver's or the
** machine's. Rank 0 prints "KEY<tab>VALUE", each line flushed.
**
**     plain pair RANKS           one communicator: create, use, destroy
**     plain cost RANKS           the cost of a call on a blocking communicator, and on a non-blocking one
**     plain missing RANKS        the last rank never joins: how soon abort ends the creation, what stays
**     plain abort RANKS          kernels wait for the last rank: how soon one group of aborts ends them
**     plain killed RANKS         kill -9 of the last rank after use: how soon the others get an error
**     plain cycles RANKS ROUNDS  create, use and destroy repeatedly: file descriptors, threads, memory
*/
#include "gpu.h"
#include "process.h"

#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>

enum { MOST = 16, COMMS = 3, CALLS = 1000 };
enum { PATIENCE = 20 }; /* seconds that an error of a dead rank may take */

/* Memory that the ranks share: the ids that rank 0 makes, and barriers. */
static struct shared {
  atomic_int ids, there[64], failed;
  ncclUniqueId id[64];
} * shared;
static int places, ids;
static pid_t rank_pid[MOST];
static const int wait_seconds = 60;

static void end_ranks(void) { atomic_store(&shared->failed, 1); }

static void wait_for(atomic_int *value, int least, const char *what) {
  for (double begun = now(); atomic_load(value) < least; usleep(200)) {
    if (atomic_load(&shared->failed)) fail("another rank failed");
    if (now() - begun > wait_seconds)
      fail("%s: not all ranks came within %d seconds", what, wait_seconds);
  }
}

/* A barrier of the first n ranks. */
static void meet(int n) {
  atomic_fetch_add(&shared->there[places], 1);
  wait_for(&shared->there[places++], n, "a meeting of the processes");
}

static const ncclUniqueId *next_id(void) {
  if (gpu.rank == 0) {
    nccl_must(gpu.GetUniqueId(&shared->id[ids]), "ncclGetUniqueId");
    atomic_store(&shared->ids, ids + 1);
  }
  wait_for(&shared->ids, ids + 1, "a unique id");
  return &shared->id[ids++];
}

static ncclResult_t begin(ncclComm_t *comm, int blocking) {
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = blocking;
  config.minCTAs = 1, config.maxCTAs = 2;
  *comm = NULL;
  return gpu.CommInitRankConfig(comm, gpu.ranks, *next_id(), gpu.rank, &config);
}

static ncclComm_t made(int blocking) {
  ncclComm_t comm;
  ncclResult_t r = begin(&comm, blocking);
  settle_new(&comm, r, "ncclCommInitRankConfig");
  return comm;
}

static void use(ncclComm_t comm, lane l) {
  sum_checked(comm, l.stream, l.data, LANE, gpu.ranks, (int64_t)gpu.ranks * (gpu.ranks - 1) / 2,
              "all ranks");
}

/* ------------------------------------------------------------------------- pair */

static void pair(void) {
  const char *host = getenv("NCCL_HOSTID");
  printf("rank %d: GPU %d, NCCL_HOSTID %s\n", gpu.rank, gpu.device, host ? host : "is not set");
  lane l = lane_open();
  double begun = now();
  ncclComm_t comm = made(1);
  tell(ms_since(begun), "creation, ms");
  begun = now();
  use(comm, l);
  tell(ms_since(begun), "first all-reduce, ms");
  begun = now();
  for (int i = 0; i < 10; i++) use(comm, l);
  tell(ms_since(begun) / 10, "an all-reduce of 512 KiB after it, copied and checked, ms");
  begun = now();
  nccl_must(gpu.CommDestroy(comm), "ncclCommDestroy");
  tell(ms_since(begun), "destroy, ms");
  lane_close(l);
}

/* ------------------------------------------------------------------------- cost */

/* Measure the time of the calling thread; the kernels run later. */
static void cost_of(int blocking, lane l) {
  const char *how = blocking ? "blocking" : "without blocking";
  double begun = now();
  ncclComm_t comm = made(blocking);
  tell(ms_since(begun), "%s: creation, ms", how);
  use(comm, l);
  double spent = 0, waited = 0, all = now();
  for (int i = 0; i < CALLS; i++) {
    double start = now();
    ncclResult_t r = gpu.AllReduce(l.data, l.data, 1, ncclInt64, ncclSum, comm, l.stream);
    double returned = now();
    while (r == ncclInProgress) nccl_must(gpu.CommGetAsyncError(comm, &r), "ncclCommGetAsyncError");
    nccl_must(r, "ncclAllReduce");
    spent += returned - start, waited += now() - returned;
    if (i % 50 == 49) cuda_must(gpu.cudaStreamSynchronize(l.stream), "cudaStreamSynchronize");
  }
  cuda_must(gpu.cudaStreamSynchronize(l.stream), "cudaStreamSynchronize");
  tell(1e6 * spent / CALLS, "%s: a call of ncclAllReduce, us", how);
  tell(1e6 * waited / CALLS, "%s: until it was in the stream, us more", how);
  tell(1e6 * (now() - all) / CALLS, "%s: with the kernel, us", how);
  settle(comm, gpu.CommFinalize(comm), "ncclCommFinalize");
  nccl_must(gpu.CommDestroy(comm), "ncclCommDestroy");
}

static void cost(void) {
  lane l = lane_open();
  cost_of(1, l);
  cost_of(0, l);
  lane_close(l);
}

/* ------------------------------------------------------- what goes wrong on purpose */

static void missing(void) {
  ncclComm_t comm = NULL;
  if (gpu.rank == gpu.ranks - 1) {
    next_id(); /* take the id, but do not join */
    meet(gpu.ranks);
    return;
  }
  process before = process_now();
  ncclResult_t r = begin(&comm, 0);
  for (double begun = now(); now() - begun < 3; usleep(1000)) {
    if (r == ncclInProgress && comm && gpu.CommGetAsyncError(comm, &r) != ncclSuccess) break;
    if (r != ncclInProgress)
      fail("the creation ended (%s) though rank %d never came", gpu.GetErrorString(r),
           gpu.ranks - 1);
  }
  if (!comm) fail("the creation has given no communicator that could be aborted");
  double begun = now();
  nccl_begun(gpu.CommAbort(comm), "ncclCommAbort of a creation");
  tell(ms_since(begun), "abort of the creation, ms");
  sleep(1); /* until NCCL's threads have ended */
  process after = process_now();
  tell(after.fds - before.fds, "file descriptors that stay");
  tell(after.threads - before.threads, "threads that stay");
  meet(gpu.ranks);
}

static void aborted(void) {
  ncclComm_t comm[COMMS];
  lane l[COMMS];
  for (int i = 0; i < COMMS; i++) {
    l[i] = lane_open(), comm[i] = made(0);
    use(comm[i], l[i]);
  }
  meet(gpu.ranks);
  bool out = gpu.rank == gpu.ranks - 1;
  if (!out) {
    for (int i = 0; i < COMMS; i++)
      settle(comm[i],
             gpu.AllReduce(l[i].data, l[i].data, 1, ncclInt64, ncclSum, comm[i], l[i].stream),
             "ncclAllReduce");
    sleep(2);
    for (int i = 0; i < COMMS; i++)
      if (gpu.cudaStreamQuery(l[i].stream) != cudaErrorNotReady)
        fail("an all-reduce ended without the last rank");
  }
  meet(gpu.ranks);
  double begun = now();
  nccl_must(gpu.GroupStart(), "ncclGroupStart");
  for (int i = 0; i < COMMS; i++) nccl_begun(gpu.CommAbort(comm[i]), "ncclCommAbort");
  nccl_begun(gpu.GroupEnd(), "ncclGroupEnd of aborts");
  tell(ms_since(begun), "%d aborted in one group, while their kernels wait, ms", COMMS);
  for (int i = 0; i < COMMS; i++) gpu.cudaStreamSynchronize(l[i].stream);
  tell(ms_since(begun), "until the streams are free, ms");
  for (int i = 0; i < COMMS; i++) lane_close(l[i]);
  meet(gpu.ranks);
}

static void killed(void) {
  lane l = lane_open();
  ncclComm_t comm = made(0);
  use(comm, l);
  meet(gpu.ranks);
  if (gpu.rank == gpu.ranks - 1) raise(SIGKILL);
  sleep(1);
  ncclResult_t r = gpu.AllReduce(l.data, l.data, 1, ncclInt64, ncclSum, comm, l.stream);
  double begun = now();
  while ((r == ncclSuccess || r == ncclInProgress) && now() - begun < PATIENCE) {
    usleep(1000);
    if (gpu.CommGetAsyncError(comm, &r) != ncclSuccess) break;
  }
  bool error = r != ncclSuccess && r != ncclInProgress;
  if (error) printf("rank %d: %s\n", gpu.rank, gpu.GetErrorString(r));
  if (error) tell(ms_since(begun), "until the error is told, ms");
  begun = now();
  gpu.CommAbort(comm);
  tell(ms_since(begun), "abort after it, ms");
  begun = now();
  gpu.cudaStreamSynchronize(l.stream);
  tell(ms_since(begun), "until the stream is free, ms");
  lane_close(l);
  meet(gpu.ranks - 1);
  if (!error) fail("no error within %d seconds after rank %d was killed", PATIENCE, gpu.ranks - 1);
}

/* ----------------------------------------------------------------------- cycles */

static void cycles(int rounds) {
  lane l = lane_open();
  process first = { 0 }, last = { 0 };
  double begun = now();
  for (int i = 0; i < rounds; i++) {
    ncclComm_t comm = made(i % 2);
    use(comm, l);
    settle(comm, gpu.CommFinalize(comm), "ncclCommFinalize");
    nccl_must(gpu.CommDestroy(comm), "ncclCommDestroy");
    cuda_must(gpu.cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    meet(gpu.ranks);
    if (i == 1) first = process_now(); /* after one that does not block and one that blocks */
    if (i > 1) last = process_now();
    meet(gpu.ranks);
  }
  tell(ms_since(begun) / rounds, "a cycle, ms");
  lane_close(l);
  process_grown(&first, &last, rounds - 2);
}

/* ------------------------------------------------------------------------- main */

/* Run a rank, in a process of its own. The environment has the rank as a launcher sets it. */
static void be_rank(int rank, const char *what, int rounds) {
  char text[16];
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  gpu.rank = rank;
  gpu.end_all = end_ranks;
  snprintf(text, sizeof text, "%d", rank);
  setenv("PMI_RANK", text, 1);
  gpu_open();
  choose_device(rank);
  if (strcmp(what, "pair") == 0) pair();
  if (strcmp(what, "cost") == 0) cost();
  if (strcmp(what, "missing") == 0) missing();
  if (strcmp(what, "abort") == 0) aborted();
  if (strcmp(what, "killed") == 0) killed();
  if (strcmp(what, "cycles") == 0) cycles(rounds);
}

/* Return 0 if all ranks ended well, except a rank that was to be killed. After a failure the other
** ranks get five seconds. */
static int ended_well(const char *what) {
  bool well = true, spare = strcmp(what, "killed") == 0;
  double until = 0;
  for (int left = gpu.ranks; left > 0;) {
    int status = 0;
    pid_t pid = waitpid(-1, &status, WNOHANG);
    if (pid <= 0) {
      if (until > 0 && now() > until)
        for (int r = 0; r < gpu.ranks; r++) kill(rank_pid[r], SIGKILL);
      usleep(2000);
      continue;
    }
    left--;
    bool victim = spare && pid == rank_pid[gpu.ranks - 1] && WIFSIGNALED(status)
                  && WTERMSIG(status) == SIGKILL;
    if (victim || (WIFEXITED(status) && WEXITSTATUS(status) == 0)) continue;
    if (well && WIFSIGNALED(status))
      fprintf(stderr, "plain: a rank ended by signal %d\n", WTERMSIG(status));
    if (well) until = now() + 5;
    well = false;
    atomic_store(&shared->failed, 1);
  }
  return well ? 0 : 1;
}

int main(int argc, char **argv) {
  static const char *const known[] = { "pair", "cost", "missing", "abort", "killed", "cycles" };
  bool fine = argc >= 3 && argc <= 4;
  size_t k = 0;
  while (fine && k < sizeof known / sizeof *known && strcmp(known[k], argv[1]) != 0) k++;
  gpu.ranks = fine ? atoi(argv[2]) : 0;
  int rounds = argc == 4 ? atoi(argv[3]) : 20;
  if (!fine || k == sizeof known / sizeof *known || gpu.ranks < 2 || gpu.ranks > MOST || rounds < 3
      || rounds > 60)
    fail("plain pair|cost|missing|abort|killed|cycles RANKS(2..%d) [ROUNDS(3..60)]", MOST);
  shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED) fail("no shared memory");
  fflush(NULL);
  for (int r = 0; r < gpu.ranks; r++) {
    rank_pid[r] = fork();
    if (rank_pid[r] < 0) fail("cannot start a process");
    if (rank_pid[r] > 0) continue;
    be_rank(r, argv[1], rounds);
    return 0;
  }
  int rc = ended_well(argv[1]);
  if (rc == 0) puts("all ranks ended well");
  return rc;
}
