/* SPDX-License-Identifier: MIT
**
** compare.c - calls of NCCL that need no kernel, each with what it returns, so that the stand-in
** can be compared with NCCL's own host code, call by call (host.sh). Under mpirun with 2 processes;
** rank 0 prints a line for each call.
*/
#include <cuda_runtime_api.h>
#include <mpi.h>
#include <nccl.h>

#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int rank, size, version;
static void *library, *runtime;

static void *entry(void *from, const char *name) {
  void *f = dlsym(from, name);
  if (!f) exit(77);
  return f;
}
#define CALL(name) ((__typeof__(nccl##name) *)(uintptr_t)entry(library, "nccl" #name))
#define CUDA(name) ((__typeof__(cuda##name) *)(uintptr_t)entry(runtime, "cuda" #name))

/* Every rank makes the call; the line has what rank 0 got, and whether the others got the same. */
static ncclResult_t say(const char *what, ncclResult_t r) {
  int least, most, mine = (int)r;
  MPI_Allreduce(&mine, &least, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
  MPI_Allreduce(&mine, &most, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  if (rank == 0) printf("%s: %d%s\n", what, mine, least == most ? "" : ", and otherwise on rank 1");
  fflush(stdout);
  return r;
}

static ncclUniqueId new_id(void) {
  ncclUniqueId id;
  if (rank == 0) CALL(GetUniqueId)(&id);
  MPI_Bcast(&id, sizeof id, MPI_BYTE, 0, MPI_COMM_WORLD);
  return id;
}

static ncclComm_t made(void) {
  ncclComm_t c = NULL;
  if (CALL(CommInitRank)(&c, size, new_id(), rank) != ncclSuccess) exit(1);
  return c;
}

/* One field of a configuration that NCCL is to refuse, or to take. */
static void configured(const char *what, ncclConfig_t config) {
  ncclComm_t c = NULL;
  ncclResult_t r = say(what, CALL(CommInitRankConfig)(&c, size, new_id(), rank, &config));
  if (r == ncclSuccess) CALL(CommDestroy)(c);
}

#define CONFIGURED(field, value) \
  do { \
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER; \
    config.field = value; \
    configured("config " #field " = " #value, config); \
  } while (0)

static void creation(void) {
  ncclComm_t c = NULL;
  ncclUniqueId id = new_id();
  say("init of rank 5 of 2", CALL(CommInitRank)(&c, 2, id, 5));
  say("init of rank -1", CALL(CommInitRank)(&c, 2, id, -1));
  say("init of 0 ranks", CALL(CommInitRank)(&c, 0, id, 0));
  say("init without a place", CALL(CommInitRank)(NULL, 2, id, rank));
  CONFIGURED(magic, 1);
  CONFIGURED(blocking, 2);
  CONFIGURED(cgaClusterSize, 9);
  CONFIGURED(cgaClusterSize, -1);
  CONFIGURED(minCTAs, 0);
  CONFIGURED(maxCTAs, 0);
  CONFIGURED(minCTAs, 4); /* and no upper bound */
  CONFIGURED(splitShare, 2);
  CONFIGURED(collnetEnable, 2);
  CONFIGURED(CTAPolicy, 9);
  CONFIGURED(shrinkShare, 2);
  CONFIGURED(nvlsCTAs, 0);
  CONFIGURED(trafficClass, 3);
}

static void questions(ncclComm_t c) {
  int n = 0;
  ncclResult_t state = ncclInternalError;
  say("count", CALL(CommCount)(c, &n));
  say("count of no communicator", CALL(CommCount)(NULL, &n));
  say("count without a place", CALL(CommCount)(c, NULL));
  say("rank", CALL(CommUserRank)(c, &n));
  say("device", CALL(CommCuDevice)(c, &n));
  say("state", CALL(CommGetAsyncError)(c, &state));
  say("the state", state);
}

static void wrong_calls(ncclComm_t c, cudaStream_t stream) {
  float *buffer = NULL;
  ((cudaError_t(*)(void **, size_t))(uintptr_t)entry(runtime, "cudaMalloc"))((void **)&buffer,
                                                                             4096);
  say("all-reduce of type 99",
      CALL(AllReduce)(buffer, buffer, 1, (ncclDataType_t)99, ncclSum, c, stream));
  say("all-reduce by operation 99",
      CALL(AllReduce)(buffer, buffer, 1, ncclFloat, (ncclRedOp_t)99, c, stream));
  say("all-reduce of no communicator",
      CALL(AllReduce)(buffer, buffer, 1, ncclFloat, ncclSum, NULL, stream));
  say("broadcast from rank 7", CALL(Broadcast)(buffer, buffer, 1, ncclFloat, 7, c, stream));
  say("send to rank 7", CALL(Send)(buffer, 1, ncclFloat, 7, c, stream));
  say("receive from rank -1", CALL(Recv)(buffer, 1, ncclFloat, -1, c, stream));
  say("end of no group", CALL(GroupEnd)());
  say("free of nothing", CALL(MemFree)(NULL));
  CUDA(Free)(buffer);
}

static void derived(ncclComm_t c) {
  ncclComm_t child = NULL;
  int lost = 1;
  say("split without a color", CALL(CommSplit)(c, NCCL_SPLIT_NOCOLOR, 0, &child, NULL));
  say("it gives nothing", child ? ncclInternalError : ncclSuccess);
  say("split with a negative color", CALL(CommSplit)(c, -5, 0, &child, NULL));
  say("split of no communicator", CALL(CommSplit)(NULL, 0, 0, &child, NULL));
  if (say("split", CALL(CommSplit)(c, 0, rank, &child, NULL)) == ncclSuccess)
    say("its end", CALL(CommDestroy)(child));
  child = NULL;
  if (rank != lost) {
    CALL(CommShrink)(c, &lost, 1, &child, NULL, NCCL_SHRINK_DEFAULT);
    CALL(CommDestroy)(child);
  }
  say("shrink by nobody", CALL(CommShrink)(c, &lost, 0, &child, NULL, NCCL_SHRINK_DEFAULT));
}

static void scalable(void) {
  ncclUniqueId id[3] = { new_id(), new_id(), new_id() };
  ncclComm_t c = NULL;
  say("init with no id", CALL(CommInitRankScalable)(&c, size, rank, 0, id, NULL));
  say("init with more ids than ranks", CALL(CommInitRankScalable)(&c, size, rank, 3, id, NULL));
  say("init of rank 5 of 2 by ids", CALL(CommInitRankScalable)(&c, size, 5, 2, id, NULL));
}

static void memory(ncclComm_t c) {
  void *p = NULL, *q = NULL;
  ncclWindow_t window = NULL;
  say("memory without a place", CALL(MemAlloc)(NULL, 4096));
  if (say("memory", CALL(MemAlloc)(&p, 1 << 21)) != ncclSuccess) return;
  say("a window of no memory",
      CALL(CommWindowRegister)(c, NULL, 1 << 21, &window, NCCL_WIN_COLL_SYMMETRIC));
  say("it is none", window ? ncclInternalError : ncclSuccess);
  say("a window of no bytes", CALL(CommWindowRegister)(c, p, 0, &window, NCCL_WIN_COLL_SYMMETRIC));
  say("it is none", window ? ncclInternalError : ncclSuccess);
  if (version >= 22902)
    say("a window without a place",
        CALL(CommWindowRegister)(c, p, 1 << 21, NULL, NCCL_WIN_COLL_SYMMETRIC));
  say("a window", CALL(CommWindowRegister)(c, p, 1 << 21, &window, NCCL_WIN_COLL_SYMMETRIC));
  say("it is one", window ? ncclSuccess : ncclInternalError);
  say("its end", CALL(CommWindowDeregister)(c, window));
  say("the end of none", CALL(CommWindowDeregister)(c, NULL));
  say("memory again", CALL(MemAlloc)(&q, 4096));
  say("its end", CALL(MemFree)(q));
  say("the end of the first", CALL(MemFree)(p));
}

/* NCCL 2.29.7 and later; the headers of this build may be older. */
static void suspended(void) {
  ncclResult_t (*suspend)(ncclComm_t, int) = NULL, (*resume)(ncclComm_t) = NULL;
  ncclResult_t (*stats)(ncclComm_t, int, uint64_t *) = NULL;
  if (version < 22907) return;
  suspend = (ncclResult_t(*)(ncclComm_t, int))(uintptr_t)entry(library, "ncclCommSuspend");
  resume = (ncclResult_t(*)(ncclComm_t))(uintptr_t)entry(library, "ncclCommResume");
  stats =
      (ncclResult_t(*)(ncclComm_t, int, uint64_t *))(uintptr_t)entry(library, "ncclCommMemStats");
  uint64_t n = 7;
  ncclComm_t c = made();
  say("statistics of no communicator", stats(NULL, 0, &n));
  say("statistics without a place", stats(c, 0, NULL));
  say("statistics of kind 4", stats(c, 4, &n));
  say("is it suspended", stats(c, 1, &n));
  say("it is not", n == 0 ? ncclSuccess : ncclInternalError);
  say("resume of what is not suspended", resume(c));
  say("suspend of no communicator", suspend(NULL, 1));
  say("suspend with flag 2", suspend(c, 2));
  say("suspend", suspend(c, 1));
  say("suspend again", suspend(c, 1));
  say("is it suspended now", stats(c, 1, &n));
  say("it is", n == 1 ? ncclSuccess : ncclInternalError);
  say("resume", resume(c));
  say("resume again", resume(c));
  say("destroy", CALL(CommDestroy)(c));
}

/* NCCL 2.29.2 and later: what is refused. */
static void grown(void) {
  ncclResult_t (*get_id)(ncclComm_t, ncclUniqueId *) = NULL;
  ncclResult_t (*grow)(ncclComm_t, int, const ncclUniqueId *, int, ncclComm_t *, ncclConfig_t *) =
      NULL;
  if (version < 22902) return;
  get_id = (__typeof__(get_id))(uintptr_t)entry(library, "ncclCommGetUniqueId");
  grow = (__typeof__(grow))(uintptr_t)entry(library, "ncclCommGrow");
  ncclUniqueId id;
  ncclComm_t c = made(), more = NULL;
  say("id for no communicator", get_id(NULL, &id));
  say("id without a place", get_id(c, NULL));
  say("grow to as many ranks", grow(c, size, NULL, -1, &more, NULL));
  say("grow to no ranks", grow(c, 0, NULL, -1, &more, NULL));
  say("grow without a place", grow(c, size + 1, NULL, -1, NULL, NULL));
  say("grow with a rank", grow(c, size + 1, NULL, rank, &more, NULL));
  say("grow of nothing without an id", grow(NULL, size + 1, NULL, size, &more, NULL));
  say("destroy", CALL(CommDestroy)(c));
}

static void ends(cudaStream_t stream) {
  float *buffer = NULL;
  ncclComm_t c = made();
  ((cudaError_t(*)(void **, size_t))(uintptr_t)entry(runtime, "cudaMalloc"))((void **)&buffer,
                                                                             4096);
  say("finalize", CALL(CommFinalize)(c));
  say("finalize again", CALL(CommFinalize)(c));
  say("destroy after it", CALL(CommDestroy)(c));
  say("destroy of nothing", CALL(CommDestroy)(NULL));
  say("abort of nothing", CALL(CommAbort)(NULL));
  c = made();
  say("revoke with flags", CALL(CommRevoke)(c, 1));
  say("revoke", CALL(CommRevoke)(c, NCCL_REVOKE_DEFAULT));
  say("revoke again", CALL(CommRevoke)(c, NCCL_REVOKE_DEFAULT));
  say("all-reduce after revoke", CALL(AllReduce)(buffer, buffer, 1, ncclFloat, ncclSum, c, stream));
  say("split after revoke", CALL(CommSplit)(c, 0, rank, &(ncclComm_t){ NULL }, NULL));
  say("finalize after revoke", CALL(CommFinalize)(c));
  say("abort after revoke", CALL(CommAbort)(c));
  CUDA(Free)(buffer);
}

int main(int argc, char **argv) {
  cudaStream_t stream = NULL;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  library = dlopen("libnccl.so.2", RTLD_NOW), runtime = dlopen("libcudart.so.13", RTLD_NOW);
  if (!library || !runtime) return 77;
  CALL(GetVersion)(&version);
  CUDA(SetDevice)(rank);
  CUDA(StreamCreateWithFlags)(&stream, cudaStreamNonBlocking);
  creation();
  ncclComm_t c = made();
  questions(c);
  wrong_calls(c, stream);
  derived(c);
  memory(c);
  say("destroy", CALL(CommDestroy)(c));
  ends(stream);
  scalable();
  suspended();
  grown();
  MPI_Finalize();
  return 0;
}
