/* SPDX-License-Identifier: MIT
**
** selftest_hard.c - where NCCL is hard: errors that stay, aborts that wait, creations beside
** running kernels. Each test shows both the trap and the way around it.
*/
#include "selftest.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define HANG "real NCCL would hang here"

void standin_vanish(void);

static void nap(double s) {
  nanosleep(&(struct timespec){ (time_t)s, (long)((s - (double)(long)s) * 1e9) }, NULL);
}

static ncclResult_t sum(ncclComm_t c, void *p, cudaStream_t s) {
  return ncclAllReduce(p, p, 1, ncclInt32, ncclSum, c, s);
}

static void warm(ncclComm_t c, void *p, cudaStream_t s) {
  ncclResult_t r = sum(c, p, s);
  CHECK((r == ncclSuccess || r == ncclInProgress) && settle(c) == ncclSuccess);
  CHECK(cudaStreamSynchronize(s) == cudaSuccess);
}

static ncclResult_t error_of(ncclComm_t c) {
  ncclResult_t r = ncclSuccess;
  CHECK(ncclCommGetAsyncError(c, &r) == ncclSuccess);
  return r;
}

static void end(cudaStream_t s, void *p) {
  CHECK(cudaStreamSynchronize(s) == cudaSuccess && cudaStreamDestroy(s) == cudaSuccess
        && cudaFree(p) == cudaSuccess);
}

/* The last rank dies while the others wait for it: each of them has an error that no call makes
** good again. */
static void latched_on(int blocking) {
  ncclComm_t c = world_comm(blocking, NULL), less = NULL;
  cudaStream_t s = new_stream();
  void *p = device_ints(1, 1);
  int last = world - 1;
  warm(c, p, s);
  barrier();
  if (me == last) {
    standin_vanish();
  } else {
    ncclResult_t r = sum(c, p, s);
    CHECK(r == ncclSuccess || r == ncclInProgress || r == ncclRemoteError);
    while (error_of(c) != ncclRemoteError) nap(0.005);
    CHECK(cudaStreamQuery(s) == cudaErrorNotReady); /* the kernel does not end by itself */
    CHECK(ncclCommShrink(c, &last, 1, &less, NULL, NCCL_SHRINK_ABORT) == ncclRemoteError && !less);
    CHECK(cudaStreamSynchronize(s) == cudaSuccess && error_of(c) == ncclRemoteError);
    r = ncclCommRevoke(c, NCCL_REVOKE_DEFAULT);
    CHECK(blocking ? r == ncclSuccess : r == ncclInProgress || r == ncclRemoteError);
    CHECK(settle(c) == ncclRemoteError);
    CHECK(ncclCommShrink(c, &last, 1, &less, NULL, NCCL_SHRINK_DEFAULT) == ncclRemoteError
          && !less);
  }
  CHECK(ncclCommAbort(c) == ncclSuccess); /* the rank that is gone is not waited for */
  end(s, p);
}

static void latched(void) { latched_on(1); }
static void latched_nonblocking(void) { latched_on(0); }

/* The abort of one rank waits for that of the others on its machine. */
static void abort_late(void) {
  ncclComm_t c = world_comm(1, NULL);
  cudaStream_t s = new_stream();
  void *p = device_ints(1, 1);
  warm(c, p, s);
  barrier();
  double start = MPI_Wtime();
  if (me == world - 1) nap(0.3);
  CHECK(ncclCommAbort(c) == ncclSuccess && MPI_Wtime() - start > 0.25 && MPI_Wtime() - start < 2);
  end(s, p);
}

/* With STANDIN_DEADLINE of a second: rank 0 never aborts. */
static void abort_alone(void) {
  ncclComm_t c = world_comm(1, NULL);
  cudaStream_t s = new_stream();
  void *p = device_ints(1, 1);
  warm(c, p, s);
  barrier();
  if (me) CHECK(ncclCommAbort(c) == ncclInternalError && said("rank 0 is connected") && said(HANG));
  barrier();
  if (!me) CHECK(ncclCommAbort(c) == ncclSuccess);
  end(s, p);
}

/* Two communicators, a hung kernel on the second: an abort of the first alone waits for that
** kernel. */
static void abort_kernel(void) {
  bool old = getenv("STANDIN_NCCL_VERSION") != NULL; /* before 2.22 a group does not help */
  for (int grouped = 0; grouped < 2; grouped++) {
    ncclComm_t c[] = { world_comm(1, "one"), world_comm(grouped, "two") };
    cudaStream_t s = new_stream();
    void *p = device_ints(1, 1);
    for (int i = 0; i < 2; i++) warm(c[i], p, s);
    barrier();
    /* rank 0 never comes */
    if (me) CHECK(sum(c[1], p, s) != ncclInvalidArgument && settle(c[1]) == ncclSuccess);
    barrier();
    bool waits = me && (old || !grouped);
    if (grouped) CHECK(ncclGroupStart() == ncclSuccess);
    ncclResult_t first = ncclCommAbort(c[0]);
    CHECK(first == (waits && (!grouped || old) ? ncclInternalError : ncclSuccess));
    if (waits) CHECK(said("waits for the kernel of") && said(HANG));
    barrier();
    CHECK(ncclCommAbort(c[1]) == ncclSuccess);
    if (grouped) CHECK(ncclGroupEnd() == ncclSuccess);
    end(s, p);
    barrier();
  }
}

/* The partner of a running kernel comes only after the creation, which waits for the kernel. */
static void create_beside(void) {
  ncclComm_t c = world_comm(1, NULL), d = NULL;
  cudaStream_t s = new_stream();
  void *p = device_ints(1, 1);
  ncclUniqueId id;
  warm(c, p, s);
  fresh_ids(&id, 1);
  if (me) CHECK(sum(c, p, s) == ncclSuccess);
  ncclResult_t r = ncclCommInitRank(&d, world, id, me);
  CHECK(r == (me ? ncclInternalError : ncclSuccess));
  if (me) CHECK(said("waits for what runs on device") && said(HANG));
  barrier();
  /* the kernel of c may still run */
  CHECK(ncclCommAbort(c) == ncclSuccess && ncclCommAbort(d) == ncclSuccess);
  CHECK(cudaStreamDestroy(s) == cudaSuccess && cudaFree(p) == cudaSuccess);
}

/* A connect that is tried again does not look at the abort flag. */
static void connect_retry(void) {
  ncclUniqueId id;
  ncclComm_t c = NULL;
  ncclConfig_t config = config_of(0, NULL);
  fresh_ids(&id, 1);
  double start = MPI_Wtime();
  if (me) CHECK(ncclCommInitRankConfig(&c, world, id, me, &config) == ncclInProgress);
  if (me) nap(0.1); /* it has joined by then */
  CHECK(ncclCommAbort(c) == ncclSuccess && (me != 1 || MPI_Wtime() - start > 0.45));
}

/* Every process sees one GPU, as device 0: another one each, or two the same one. */
static void one_visible(void) {
  char text[16], id[32];
  int n = 0;
  snprintf(text, sizeof text, "%d", me);
  setenv("CUDA_VISIBLE_DEVICES", text, 1);
  CHECK(cudaGetDeviceCount(&n) == cudaSuccess && n == 1
        && cudaSetDevice(1) == cudaErrorInvalidDevice);
  CHECK(cudaSetDevice(0) == cudaSuccess && cudaDeviceGetPCIBusId(id, sizeof id, 0) == cudaSuccess);
  snprintf(text, sizeof text, "0000:%02X:00.0", 0x10 + me);
  CHECK(strcmp(id, text) == 0);
  ncclComm_t c = world_comm(1, NULL), d = NULL;
  ncclUniqueId twice;
  CHECK(ncclCommDestroy(c) == ncclSuccess);
  if (me == 1) setenv("CUDA_VISIBLE_DEVICES", "0,9,2", 1); /* 9 is none: the list ends there */
  CHECK(cudaGetDeviceCount(&n) == cudaSuccess && n == 1);
  fresh_ids(&twice, 1);
  CHECK(ncclCommInitRank(&d, world, twice, me) == (me < 2 ? ncclInvalidUsage : ncclRemoteError));
  CHECK(said("Duplicate GPU detected : rank 0 and rank 1"));
  CHECK(ncclCommAbort(d) == ncclSuccess);
}

/* The host's communicator and a non-blocking one: not in one group. */
static void hosts_group(void) {
  ncclComm_t c[] = { world_comm(1, "host"), world_comm(1, "ours"), world_comm(0, "other") };
  cudaStream_t s = new_stream();
  void *p = device_ints(1, 1);
  for (int i = 0; i < 3; i++) warm(c[i], p, s);
  CHECK(sum(c[1], p, s) == ncclSuccess); /* and never ncclInProgress */
  CHECK(ncclGroupStart() == ncclSuccess && sum(c[0], p, s) == ncclSuccess
        && sum(c[1], p, s) == ncclSuccess);
  CHECK(ncclGroupEnd() == ncclSuccess && cudaStreamSynchronize(s) == cudaSuccess);
  CHECK(ncclGroupStart() == ncclSuccess && sum(c[0], p, s) == ncclSuccess);
  CHECK(sum(c[2], p, s) != ncclSuccess && said("Blocking and nonblocking communicators"));
  CHECK(ncclGroupEnd() == ncclInvalidArgument);
  for (int i = 0; i < 3; i++) CHECK(ncclCommAbort(c[i]) == ncclSuccess);
  end(s, p);
}

/* The driver of CUDA 12: the newer runtime fails, and the older one works beside it. */
static void old_driver(void) {
  int n = -7, version = 0;
  CHECK(cudaDriverGetVersion(&version) == cudaSuccess && version == 12040);
  CHECK(cudaGetDeviceCount(&n) == cudaErrorInsufficientDriver && n == -7);
  void *older = dlopen("libcudart.so.12", RTLD_NOW | RTLD_LOCAL);
  CHECK(older && cudaGetDeviceCount(&n) == cudaSuccess && n == 8);
  cudaError_t (*runtime)(int *) = NULL;
  void *found = older ? dlsym(older, "cudaRuntimeGetVersion") : NULL;
  memcpy(&runtime, &found, sizeof runtime);
  CHECK(runtime && runtime(&version) == cudaSuccess && version / 1000 == 12);
}

const test hard_tests[] = {
  { "latched", latched },
  { "latched_nonblocking", latched_nonblocking },
  { "abort_late", abort_late },
  { "abort_alone", abort_alone },
  { "abort_kernel", abort_kernel },
  { "create_beside", create_beside },
  { "connect_retry", connect_retry },
  { "one_visible", one_visible },
  { "hosts_group", hosts_group },
  { "old_driver", old_driver },
  { NULL, NULL },
};
