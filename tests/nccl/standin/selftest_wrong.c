/* SPDX-License-Identifier: MIT
**
** selftest_wrong.c - a broken rule of NCCL, or a fault of the environment, must be found within the
** deadline, on the ranks it concerns, with its line.
*/
#include "selftest.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define HANG "real NCCL would hang here"

static void nap(double s) {
  nanosleep(&(struct timespec){ (time_t)s, (long)((s - (double)(long)s) * 1e9) }, NULL);
}

static void abort_of(ncclComm_t c) {
  double start = MPI_Wtime();
  CHECK(ncclCommAbort(c) == ncclSuccess);
  CHECK(MPI_Wtime() - start < 1); /* not the deadline */
}

/* One call of one rank of a world that is already there. */
static ncclResult_t sum(ncclComm_t c, void *p, cudaStream_t s) {
  return ncclAllReduce(p, p, 1, ncclInt32, ncclSum, c, s);
}

static void warm(ncclComm_t c, void *p, cudaStream_t s) {
  CHECK(sum(c, p, s) == ncclSuccess && cudaStreamSynchronize(s) == cudaSuccess);
}

/* -------------------------------------------------------------------------- creation */

static ncclResult_t init(ncclComm_t *c, int n, ncclUniqueId id, int rank) {
  ncclConfig_t config = config_of(1, NULL);
  return ncclCommInitRankConfig(c, n, id, rank, &config);
}

static void nranks_differ(void) {
  ncclUniqueId id;
  ncclComm_t c = NULL;
  fresh_ids(&id, 1);
  CHECK(init(&c, me ? world : world + 1, id, me) == ncclInternalError && said("nranks differ")
        && said(HANG));
  abort_of(c);
}

static void rank_twice(void) {
  ncclUniqueId id;
  ncclComm_t c = NULL;
  fresh_ids(&id, 1);
  CHECK(init(&c, world, id, me == 1 ? 0 : me) == ncclInternalError && said("is there twice")
        && said(HANG));
  abort_of(c);
}

static void missing_rank(void) {
  ncclUniqueId id;
  ncclComm_t c = NULL;
  fresh_ids(&id, 1);
  if (me != 1)
    CHECK(init(&c, world, id, me) == ncclInternalError && said("missing rank 1 after")
          && said(HANG));
  CHECK(ncclCommAbort(c) == ncclSuccess);
}

static void opposite_creation(void) {
  ncclUniqueId id[2];
  ncclComm_t c[2] = { NULL, NULL };
  int found = 0;
  fresh_ids(id, 2);
  for (int i = 0; i < 2; i++) {
    int k = me % 2 ? 1 - i : i;
    found += init(&c[k], world, id[k], me) == ncclInternalError && said(HANG);
  }
  CHECK(found); /* a slow rank may see the second meeting complete, and the first one given up */
  abort_of(c[0]), abort_of(c[1]);
}

static void id_again(void) {
  ncclUniqueId id;
  ncclComm_t c = NULL, d = NULL;
  fresh_ids(&id, 1);
  CHECK(init(&c, world, id, me) == ncclSuccess);
  CHECK(init(&d, world, id, me) == ncclInternalError && said("used before") && said(HANG));
  CHECK(ncclCommAbort(d) == ncclSuccess && ncclCommDestroy(c) == ncclSuccess);
  id.internal[20]++;
  CHECK(init(&d, world, id, me) == ncclInvalidArgument && said("changed on its way") && !d);
}

static void ids_differ(void) {
  ncclUniqueId id[3];
  ncclComm_t c = NULL;
  fresh_ids(id, 3);
  if (me == 1) id[1] = id[2];
  CHECK(ncclCommInitRankScalable(&c, world, me, 2, id, NULL) == ncclInternalError
        && said("unique ids differ"));
  abort_of(c);
  ncclUniqueId five[64];
  memset(five, 0, sizeof five);
  CHECK(ncclCommInitRankScalable(&c, world, me, world + 1, five, NULL) == ncclInvalidArgument
        && said("nId = "));
}

static void config_mismatch(void) {
  ncclUniqueId id;
  ncclComm_t c = NULL;
  ncclConfig_t config = config_of(1, NULL);
  fresh_ids(&id, 1);
  config.minCTAs = 1, config.maxCTAs = me == 1 ? 8 : 4;
  CHECK(ncclCommInitRankConfig(&c, world, id, me, &config) == ncclInvalidUsage
        && said("config mismatch: maxCTAs="));
  abort_of(c);
}

static void duplicate_gpu(void) {
  ncclUniqueId id;
  ncclComm_t c = NULL;
  fresh_ids(&id, 1);
  cudaSetDevice(me == 1 ? 0 : me);
  CHECK(init(&c, world, id, me) == (me < 2 ? ncclInvalidUsage : ncclRemoteError));
  CHECK(said("Duplicate GPU detected : rank 0 and rank 1 both on CUDA device"));
  abort_of(c);
  cudaSetDevice(me);
}

static void bad_config(void) {
  static const struct {
    size_t at;
    int value;
  } bad[] = {
    { offsetof(ncclConfig_t, blocking), 2 },
    { offsetof(ncclConfig_t, cgaClusterSize), -1 },
    { offsetof(ncclConfig_t, minCTAs), 4 }, /* alone */
    { offsetof(ncclConfig_t, maxCTAs), 4 }, /* alone */
    { offsetof(ncclConfig_t, splitShare), 2 },
    { offsetof(ncclConfig_t, collnetEnable), -1 },
    { offsetof(ncclConfig_t, CTAPolicy), 3 },
    { offsetof(ncclConfig_t, shrinkShare), 2 },
    { offsetof(ncclConfig_t, nvlsCTAs), 0 },
    { offsetof(ncclConfig_t, nChannelsPerNetPeer), 65 },
    { offsetof(ncclConfig_t, nvlinkCentricSched), 2 },
  };
  ncclUniqueId id;
  fresh_ids(&id, 1);
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    ncclComm_t c = (ncclComm_t)1;
    memcpy((char *)&config + bad[i].at, &bad[i].value, sizeof bad[i].value);
    CHECK(ncclCommInitRankConfig(&c, world, id, me, &config) == ncclInvalidArgument && !c
          && said("Invalid config"));
    if (i == 2) CHECK(said("channels attribute value 4/-2147483648"));
  }
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  ncclComm_t c = NULL;
  config.magic = 0;
  CHECK(ncclCommInitRankConfig(&c, world, id, me, &config) == ncclInvalidArgument
        && said("NCCL_CONFIG_INITIALIZER"));
  CHECK(init(&c, world, id, world) == ncclInvalidArgument && said("Invalid rank requested"));
}

static void busy(void) {
  ncclUniqueId id;
  ncclComm_t c = NULL;
  ncclConfig_t config = config_of(0, NULL);
  int n;
  fresh_ids(&id, 1);
  if (me) {
    CHECK(ncclCommInitRankConfig(&c, world, id, me, &config) == ncclInProgress);
    CHECK(ncclCommCount(c, &n) == ncclInvalidArgument
          && said("before the previous operation returned ncclSuccess"));
    CHECK(ncclCommDestroy(c) == ncclInvalidArgument); /* and leaves the group open */
    CHECK(ncclGroupEnd() == ncclSuccess || said("previous operation"));
  }
  barrier();
  if (!me) CHECK(ncclCommInitRankConfig(&c, world, id, me, &config) != ncclInvalidArgument);
  CHECK(settle(c) == ncclSuccess && ncclCommCount(c, &n) == ncclSuccess
        && ncclCommDestroy(c) == ncclSuccess);
}

/* Two in a row without blocking: the one whose partner never comes is identified. */
static void one_stuck(void) {
  ncclUniqueId id[2];
  ncclComm_t c[2] = { NULL, NULL };
  ncclConfig_t config = config_of(0, NULL);
  ncclResult_t r;
  cudaStream_t s = new_stream();
  void *p = device_ints(1, 1);
  fresh_ids(id, 2);
  for (int k = 0; k < 2; k++)
    if (k || me)
      CHECK(ncclCommInitRankConfig(&c[k], world, id[k], me, &config) != ncclInvalidArgument);
  CHECK(settle(c[1]) == ncclSuccess);
  if (me) CHECK(ncclCommGetAsyncError(c[0], &r) == ncclSuccess && r == ncclInProgress);
  if (me) abort_of(c[0]);
  CHECK(sum(c[1], p, s) != ncclInvalidArgument && settle(c[1]) == ncclSuccess);
  CHECK(cudaStreamSynchronize(s) == cudaSuccess && ncclCommDestroy(c[1]) == ncclSuccess);
  CHECK(cudaStreamDestroy(s) == cudaSuccess && cudaFree(p) == cudaSuccess);
}

/* In one group nobody can tell which one is stuck, and an abort ends them all. */
static void group_stuck(void) {
  ncclUniqueId id[2];
  ncclComm_t c[2] = { NULL, NULL };
  ncclConfig_t config = config_of(0, NULL);
  ncclResult_t r;
  fresh_ids(id, 2);
  CHECK(ncclGroupStart() == ncclSuccess);
  for (int k = 0; k < 2; k++)
    if (k || me) CHECK(ncclCommInitRankConfig(&c[k], world, id[k], me, &config) == ncclSuccess);
  CHECK(ncclGroupEnd() == ncclInProgress);
  nap(0.1);
  for (int k = 0; k < 2 && me; k++)
    CHECK(ncclCommGetAsyncError(c[k], &r) == ncclSuccess && r == ncclInProgress);
  barrier();
  CHECK(ncclCommAbort(c[0]) == ncclSuccess);
  if (me) CHECK(settle(c[1]) == ncclInternalError);
  abort_of(c[1]);
}

/* ---------------------------------------------------------------------------- groups */

static void groups(void) {
  ncclUniqueId id[2];
  ncclComm_t c[2] = { NULL, NULL }, w = world_comm(1, NULL), kids[2];
  cudaStream_t s = new_stream();
  void *p = device_ints(1, 1);
  fresh_ids(id, 2);
  ncclConfig_t config = config_of(0, NULL);
  CHECK(ncclGroupEnd() == ncclInvalidUsage && said("not in a group call"));
  CHECK(ncclGroupStart() == ncclSuccess && init(&c[0], world, id[0], me) == ncclSuccess);
  CHECK(ncclCommInitRankConfig(&c[1], world, id[1], me, &config) == ncclInvalidArgument && !c[1]);
  CHECK(said("Blocking and nonblocking communicators") && ncclGroupEnd() == ncclInvalidArgument);
  abort_of(c[0]);
  CHECK(ncclGroupStart() == ncclSuccess && init(&c[0], world, id[1], me) == ncclSuccess);
  CHECK(sum(w, p, s) == ncclInvalidUsage && said("mixed in one group")
        && ncclGroupEnd() == ncclInvalidUsage);
  abort_of(c[0]);
  CHECK(ncclGroupStart() == ncclSuccess && ncclCommSplit(w, 0, 0, &kids[0], NULL) == ncclSuccess);
  CHECK(ncclCommSplit(w, 0, 0, &kids[1], NULL) == ncclInvalidUsage && said("broken in real NCCL"));
  CHECK(ncclGroupEnd() == ncclInvalidUsage);
  warm(w, p, s);
  CHECK(ncclCommDestroy(w) == ncclSuccess && cudaStreamDestroy(s) == cudaSuccess
        && cudaFree(p) == cudaSuccess);
}

/* ------------------------------------------------------------------------------ life */

static void life(void) {
  ncclComm_t c = world_comm(1, NULL), child = NULL;
  cudaStream_t s = new_stream();
  void *p = device_ints(1, 1);
  char name[] = "short-lived";
  int n, self[1] = { me };
  CHECK(ncclCommShrink(c, self, 1, &child, NULL, 0) == ncclInvalidArgument
        && said("must not call it"));
  CHECK(ncclCommFinalize(c) == ncclSuccess);
  CHECK(sum(c, p, s) == ncclInvalidUsage && said("after its finalize"));
  CHECK(ncclCommFinalize(c) == ncclInvalidArgument && said("finalized already"));
  CHECK(ncclCommDestroy(c) == ncclSuccess);
  CHECK(ncclCommDestroy(c) == ncclInvalidArgument && said("after its destroy"));
  CHECK(ncclCommCount(c, &n) == ncclInvalidArgument && sum(c, p, s) == ncclInvalidArgument);
  CHECK(ncclCommCount((ncclComm_t)&n, &n) == ncclInvalidArgument && said("is not a communicator"));
  c = world_comm(1, name);
  name[0] = 'S';
  CHECK(ncclCommDestroy(c) == ncclSuccess); /* selftest.sh looks for the line */
  CHECK(cudaStreamDestroy(s) == cudaSuccess && cudaFree(p) == cudaSuccess);
}

static void opposite_destroy(void) {
  ncclComm_t c[] = { world_comm(1, "a"), world_comm(1, "b") };
  cudaStream_t s = new_stream();
  void *p = device_ints(1, 1);
  for (int i = 0; i < 2; i++) warm(c[i], p, s);
  int found = 0;
  for (int i = 0; i < 2; i++)
    found += ncclCommDestroy(c[me % 2 ? 1 - i : i]) == ncclInternalError && said(HANG);
  CHECK(found);
  CHECK(cudaStreamDestroy(s) == cudaSuccess && cudaFree(p) == cudaSuccess);
}

/* Aborting a child that shares resources breaks its parent, too. */
static void family(void) {
  ncclUniqueId id;
  ncclComm_t c = NULL, a = NULL, b = NULL;
  ncclConfig_t config = config_of(1, NULL);
  config.splitShare = 1;
  fresh_ids(&id, 1);
  CHECK(ncclCommInitRankConfig(&c, world, id, me, &config) == ncclSuccess);
  CHECK(ncclCommSplit(c, 0, 0, &a, NULL) == ncclSuccess);
  abort_of(a);
  CHECK(ncclCommSplit(c, 0, 0, &b, NULL) == ncclInternalError && said("shares resources"));
  abort_of(c);
}

/* ------------------------------------------------------------------------------ calls */

static void opposite_first_use(void) {
  ncclComm_t c[] = { world_comm(1, "a"), world_comm(1, "b") };
  cudaStream_t s = new_stream();
  void *p = device_ints(1, 1);
  int found = 0;
  for (int i = 0; i < 2; i++)
    found += sum(c[me % 2 ? 1 - i : i], p, s) == ncclInternalError && said(HANG);
  CHECK(found);
  abort_of(c[0]), abort_of(c[1]);
  CHECK(cudaStreamDestroy(s) == cudaSuccess && cudaFree(p) == cudaSuccess);
}

/* After a first use the calling thread does not wait, but one stream does. */
static void opposite_on_a_stream(void) {
  ncclComm_t c[] = { world_comm(1, "a"), world_comm(1, "b") };
  cudaStream_t s = new_stream();
  void *p = device_ints(1, 1);
  for (int i = 0; i < 2; i++) warm(c[i], p, s);
  for (int i = 0; i < 2; i++) CHECK(sum(c[me % 2 ? 1 - i : i], p, s) == ncclSuccess);
  CHECK(cudaStreamQuery(s) == cudaErrorNotReady);
  CHECK(cudaStreamSynchronize(s) == cudaErrorLaunchTimeout && said(HANG));
  abort_of(c[0]), abort_of(c[1]);
  CHECK(cudaStreamDestroy(s) == cudaSuccess && cudaFree(p) == cudaSuccess);
}

static void mismatches(void) {
  static const char *const what[] = { "count", "datatype", "redop", "root", "ncclBroadcast" };
  for (int k = 0; k < 5; k++) {
    ncclComm_t c = world_comm(1, NULL);
    cudaStream_t s = new_stream();
    void *p = device_ints(8, 1);
    bool odd = me == 1;
    ncclResult_t r;
    if (k == 3 || (k == 4 && odd))
      r = ncclBroadcast(p, p, 4, ncclInt32, odd, c, s);
    else
      r = ncclAllReduce(p, p, odd && !k ? 2 : 4, odd && k == 1 ? ncclFloat32 : ncclInt32,
                        odd && k == 2 ? ncclMax : ncclSum, c, s);
    CHECK(r == ncclSuccess && cudaStreamSynchronize(s) == cudaErrorLaunchTimeout);
    CHECK(said("mismatch") && said(what[k]));
    CHECK(ncclCommGetAsyncError(c, &r) == ncclSuccess && r == ncclInternalError);
    CHECK(sum(c, p, s) == ncclInternalError);
    abort_of(c);
    CHECK(cudaStreamDestroy(s) == cudaSuccess && cudaFree(p) == cudaSuccess);
  }
}

static void pointers(void) {
  ncclComm_t c = world_comm(1, NULL);
  cudaStream_t s = new_stream(), gone = new_stream(), far = NULL;
  int host[4] = { 0 }, *p = device_ints(8, 1), *other = NULL;
  CHECK(sum(c, host, s) == ncclInvalidArgument && said("real NCCL would fault here"));
  CHECK(ncclAllReduce(p, p, 9, ncclInt32, ncclSum, c, s) == ncclInvalidArgument
        && said("36 bytes"));
  CHECK(ncclAllReduce(p, p + 1, 4, ncclInt32, ncclSum, c, s) == ncclInvalidArgument
        && said("overlap"));
  CHECK(ncclAllReduce(p, p, 1, ncclFloat8e4m3, ncclSum, c, s) == ncclInvalidArgument
        && said("fp8"));
  CHECK(ncclBroadcast(p, p, 1, ncclInt32, world, c, s) == ncclInvalidArgument && said("root"));
  CHECK(cudaStreamDestroy(gone) == cudaSuccess && sum(c, p, gone) == ncclInvalidArgument
        && said("no live stream"));
  cudaSetDevice((me + 1) % world);
  CHECK(cudaStreamCreate(&far) == cudaSuccess && cudaMalloc((void **)&other, 4) == cudaSuccess);
  cudaSetDevice(me);
  CHECK(sum(c, p, far) == ncclInvalidArgument && said("the stream is on device"));
  CHECK(sum(c, other, s) == ncclInvalidArgument && said("not in live memory of device"));
  CHECK(cudaMemcpy(p, p, 4, cudaMemcpyHostToDevice) == cudaErrorInvalidValue);
  CHECK(cudaMemcpy(host, p, 4, cudaMemcpyDeviceToDevice) == cudaErrorInvalidValue);
  CHECK(cudaMemset(host, 0, 4) == cudaErrorInvalidValue);
  CHECK(cudaMemcpy2DAsync(p, 4, p + 4, 8, 8, 2, cudaMemcpyDeviceToDevice, s)
        == cudaErrorInvalidPitchValue);
  CHECK(cudaMemcpy2DAsync(p, 16, p + 2, 16, 8, 3, cudaMemcpyDeviceToDevice, s)
        == cudaErrorInvalidValue);
  CHECK(cudaMemcpy2DAsync(host, 8, p, 8, 8, 2, cudaMemcpyDeviceToDevice, s)
        == cudaErrorInvalidValue);
  CHECK(cudaStreamSynchronize(gone) == cudaErrorInvalidResourceHandle);
  CHECK(cudaFree(p) == cudaSuccess && cudaFree(p) == cudaErrorInvalidValue
        && cudaFree(other) == cudaSuccess);
  CHECK(sum(c, p, s) == ncclInvalidArgument);
  CHECK(cudaStreamDestroy(s) == cudaSuccess && cudaStreamDestroy(far) == cudaSuccess);
  CHECK(ncclCommDestroy(c) == ncclSuccess);
}

static void parcels(void) {
  ncclComm_t c = world_comm(1, NULL);
  cudaStream_t s = new_stream();
  int *p = device_ints(8, 1), peer = me ^ 1;
  /* no rank receives: the first use reports it in the call */
  if (!me)
    CHECK(ncclSend(p, 1, ncclInt32, 1, c, s) == ncclInternalError && said("has not called")
          && said(HANG));
  barrier();
  abort_of(c);
  /* an exchange without a group: connected, and then each stream waits for the other */
  c = world_comm(1, NULL);
  CHECK(ncclGroupStart() == ncclSuccess && ncclSend(p, 1, ncclInt32, peer, c, s) == ncclSuccess);
  CHECK(ncclRecv(p + 4, 1, ncclInt32, peer, c, s) == ncclSuccess && ncclGroupEnd() == ncclSuccess);
  CHECK(cudaStreamSynchronize(s) == cudaSuccess
        && ncclSend(p, 1, ncclInt32, peer, c, s) == ncclSuccess);
  CHECK(ncclRecv(p + 4, 1, ncclInt32, peer, c, s) == ncclSuccess);
  CHECK(cudaStreamSynchronize(s) == cudaErrorLaunchTimeout && said(HANG));
  abort_of(c);
  CHECK(cudaStreamDestroy(s) == cudaSuccess);
  /* different counts, of two ranks: what is wrong with them ends what others do with the
  ** communicator */
  c = world_comm(1, NULL), s = new_stream();
  if (me < 2) {
    CHECK((me ? ncclRecv(p, 2, ncclInt32, 0, c, s) : ncclSend(p, 1, ncclInt32, 1, c, s))
          == ncclSuccess);
    CHECK(cudaStreamSynchronize(s) == cudaErrorLaunchTimeout && said("mismatch: recv of 2"));
  }
  abort_of(c);
  CHECK(cudaStreamDestroy(s) == cudaSuccess && cudaFree(p) == cudaSuccess);
}

/* A collective whose partner never comes ends with an abort, at once. */
static void abort_running(void) {
  ncclComm_t c = world_comm(0, NULL);
  cudaStream_t s = new_stream();
  void *p = device_ints(1, 1);
  CHECK(sum(c, p, s) != ncclInvalidArgument && settle(c) == ncclSuccess
        && cudaStreamSynchronize(s) == cudaSuccess);
  if (me) CHECK(sum(c, p, s) != ncclInvalidArgument && settle(c) == ncclSuccess);
  nap(0.05);
  CHECK(cudaStreamQuery(s) == (me ? cudaErrorNotReady : cudaSuccess));
  barrier();
  abort_of(c);
  CHECK(cudaStreamSynchronize(s) == cudaSuccess && cudaStreamDestroy(s) == cudaSuccess
        && cudaFree(p) == cudaSuccess);
}

/* ---------------------------------------------------- faults: selftest.sh sets their switches */

static void no_driver(void) {
  ncclUniqueId id;
  ncclComm_t c = (ncclComm_t)1;
  int n = -7, want = getenv("STANDIN_NO_DRIVER") ? 35 : getenv("STANDIN_STUB_DRIVER") ? 34 : 100;
  void *p = &n;
  CHECK(cudaDriverGetVersion(&n) == cudaSuccess && (want == 100 ? n == CUDART_VERSION : n == 0));
  n = -7;
  CHECK((int)cudaGetDeviceCount(&n) == want && n == -7 && (int)cudaMalloc(&p, 8) == want
        && p == &n);
  CHECK((int)cudaGetLastError() == want && (int)cudaSetDevice(0) == want
        && (int)cudaFree(NULL) == want);
  CHECK(ncclGetUniqueId(&id) == ncclSuccess); /* works without a GPU */
  CHECK(ncclGroupEnd() == ncclInvalidUsage);
  CHECK(init(&c, 1, id, 0) == ncclUnhandledCudaError && c == (ncclComm_t)1
        && said("Cuda failure '"));
  /* the group was left open */
  CHECK(ncclGroupEnd() == ncclSuccess && ncclGroupEnd() == ncclInvalidUsage);
  CHECK(ncclCommInitRank(&c, 0, id, 0) == ncclUnhandledCudaError
        && ncclGroupEnd() == ncclInvalidUsage);
}

/* One rank fails in its first creation, or never joins; or the second of two. */
static void stuck_init(void) {
  ncclUniqueId id[2];
  ncclComm_t c[2] = { NULL, NULL };
  ncclConfig_t config = config_of(0, "stuck");
  bool fails = getenv("STANDIN_FAIL_INIT") != NULL;
  ncclResult_t r;
  fresh_ids(id, 2);
  for (int k = 0; k < 2; k++)
    CHECK(ncclCommInitRankConfig(&c[k], world, id[k], me, &config) != ncclInvalidArgument);
  CHECK(settle(c[0]) == ncclSuccess);
  nap(0.1);
  CHECK(ncclCommGetAsyncError(c[1], &r) == ncclSuccess
        && r == (fails && me == 1 ? ncclSystemError : ncclInProgress));
  barrier();
  abort_of(c[1]);
  CHECK(ncclCommDestroy(c[0]) == ncclSuccess);
}

static void late_init(void) {
  double start = MPI_Wtime();
  ncclComm_t c = world_comm(1, NULL);
  CHECK(MPI_Wtime() - start >= 0.25 && ncclCommDestroy(c) == ncclSuccess);
}

static void async_error(void) {
  ncclComm_t c = world_comm(0, NULL);
  cudaStream_t s = new_stream();
  void *p = device_ints(1, 1);
  ncclResult_t r = ncclSuccess;
  for (int i = 0; i < 2; i++)
    CHECK(sum(c, p, s) != ncclInvalidArgument && settle(c) >= ncclSuccess);
  if (me == 1)
    while (!ncclCommGetAsyncError(c, &r) && r != ncclRemoteError) nap(0.005);
  CHECK(cudaStreamQuery(s) == cudaErrorNotReady);
  barrier();
  abort_of(c);
  CHECK(cudaStreamSynchronize(s) == cudaSuccess && cudaStreamDestroy(s) == cudaSuccess
        && cudaFree(p) == cudaSuccess);
}

static void dies(void) { world_comm(1, NULL); }

static void no_memory(void) {
  ncclUniqueId id;
  ncclComm_t c = NULL;
  fresh_ids(&id, 1);
  CHECK(init(&c, world, id, me) == ncclUnhandledCudaError && said("out of memory"));
  abort_of(c);
}

static void old_version(void) {
  int v = 0;
  ncclUniqueId id;
  ncclComm_t c = NULL;
  ncclConfig_t config = config_of(1, "not known yet");
  config.CTAPolicy = 77; /* nor is this: silently ignored */
  fresh_ids(&id, 1);
  CHECK(ncclGetVersion(&v) == ncclSuccess && v == 22603);
  CHECK(ncclCommInitRankConfig(&c, world, id, me, &config) == ncclSuccess
        && ncclCommDestroy(c) == ncclSuccess);
}

static void leaks(void) {
  ncclUniqueId id;
  cudaEvent_t e;
  CHECK(world_comm(1, "forgotten") && new_stream() && device_ints(1, 1)
        && cudaEventCreate(&e) == cudaSuccess);
  if (!me) CHECK(ncclGetUniqueId(&id) == ncclSuccess);
}

const test wrong_tests[] = {
  { "nranks_differ", nranks_differ },
  { "rank_twice", rank_twice },
  { "missing_rank", missing_rank },
  { "opposite_creation", opposite_creation },
  { "id_again", id_again },
  { "ids_differ", ids_differ },
  { "config_mismatch", config_mismatch },
  { "duplicate_gpu", duplicate_gpu },
  { "bad_config", bad_config },
  { "busy", busy },
  { "one_stuck", one_stuck },
  { "group_stuck", group_stuck },
  { "groups", groups },
  { "life", life },
  { "opposite_destroy", opposite_destroy },
  { "family", family },
  { "opposite_first_use", opposite_first_use },
  { "opposite_on_a_stream", opposite_on_a_stream },
  { "mismatches", mismatches },
  { "pointers", pointers },
  { "parcels", parcels },
  { "abort_running", abort_running },
  { "no_driver", no_driver },
  { "stuck_init", stuck_init },
  { "late_init", late_init },
  { "async_error", async_error },
  { "dies", dies },
  { "no_memory", no_memory },
  { "old_version", old_version },
  { "leaks", leaks },
  { NULL, NULL },
};
