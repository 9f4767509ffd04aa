/* SPDX-License-Identifier: MIT
**
** selftest.c - a program of MPI and NCCL against the stand-ins: what must work. selftest.sh
** runs it. `selftest NAME...` runs the tests of these names, in this order.
*/
#include "selftest.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

int me, world, failures;

void test_check(bool ok, const char *file, int line, const char *text) {
  if (ok) return;
  failures++;
  printf("FAIL rank %d %s:%d: %s (last error: %s)\n", me, file, line, text, ncclGetLastError(NULL));
  fflush(stdout);
}

bool said(const char *text) { return strstr(ncclGetLastError(NULL), text) != NULL; }

void barrier(void) { MPI_Barrier(MPI_COMM_WORLD); }

void fresh_ids(ncclUniqueId *ids, int n) {
  for (int i = 0; i < n && me == 0; i++) CHECK(ncclGetUniqueId(&ids[i]) == ncclSuccess);
  MPI_Bcast(ids, n * (int)sizeof *ids, MPI_BYTE, 0, MPI_COMM_WORLD);
}

ncclConfig_t config_of(int blocking, const char *name) {
  ncclConfig_t c = NCCL_CONFIG_INITIALIZER;
  c.blocking = blocking;
  c.commName = name;
  return c;
}

ncclResult_t settle(ncclComm_t c) {
  ncclResult_t r = ncclInProgress;
  while (r == ncclInProgress && ncclCommGetAsyncError(c, &r) == ncclSuccess)
    nanosleep(&(struct timespec){ 0, 2000000 }, NULL);
  return r;
}

ncclComm_t world_comm(int blocking, const char *name) {
  ncclUniqueId id;
  ncclComm_t c = NULL;
  ncclConfig_t config = config_of(blocking, name);
  fresh_ids(&id, 1);
  ncclResult_t r = ncclCommInitRankConfig(&c, world, id, me, &config);
  CHECK(blocking ? r == ncclSuccess
                 : (r == ncclInProgress || r == ncclSuccess) && settle(c) == ncclSuccess);
  return c;
}

void *device_ints(int n, int first) {
  int *host = malloc((size_t)n * sizeof *host);
  void *p = NULL;
  for (int i = 0; i < n; i++) host[i] = first + i;
  CHECK(cudaMalloc(&p, (size_t)n * sizeof *host) == cudaSuccess);
  CHECK(cudaMemcpy(p, host, (size_t)n * sizeof *host, cudaMemcpyHostToDevice) == cudaSuccess);
  free(host);
  return p;
}

cudaStream_t new_stream(void) {
  cudaStream_t s = NULL;
  CHECK(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking) == cudaSuccess);
  return s;
}

static int int_at(const void *p, int i) {
  int x = -1;
  CHECK(cudaMemcpy(&x, (const int *)p + i, sizeof x, cudaMemcpyDeviceToHost) == cudaSuccess);
  return x;
}

/* An AllReduce of one int, and what it must give. */
static void sum_of(ncclComm_t c, int mine, int want) {
  cudaStream_t s = new_stream();
  void *p = device_ints(1, mine);
  ncclResult_t r = ncclAllReduce(p, p, 1, ncclInt32, ncclSum, c, s);
  CHECK(r == ncclSuccess || (r == ncclInProgress && settle(c) == ncclSuccess));
  CHECK(cudaStreamSynchronize(s) == cudaSuccess);
  CHECK(int_at(p, 0) == want);
  CHECK(cudaFree(p) == cudaSuccess && cudaStreamDestroy(s) == cudaSuccess);
}

/* -------------------------------------------------------------------------- creation */

static void blocking(void) {
  ncclUniqueId id;
  ncclComm_t c = NULL;
  int n = -1, r = -1, d = -1;
  fresh_ids(&id, 1);
  CHECK(ncclCommInitRank(&c, world, id, me) == ncclSuccess && c);
  CHECK(ncclCommCount(c, &n) == ncclSuccess && n == world);
  CHECK(ncclCommUserRank(c, &r) == ncclSuccess && r == me);
  CHECK(ncclCommCuDevice(c, &d) == ncclSuccess && d == me);
  CHECK(ncclCommDestroy(c) == ncclSuccess);
  CHECK(ncclGetVersion(&n) == ncclSuccess && n == NCCL_VERSION_CODE);
  CHECK(ncclCommDestroy(NULL) == ncclSuccess && ncclCommAbort(NULL) == ncclSuccess);
  CHECK(ncclCommFinalize(NULL) == ncclSuccess);
}

static void nonblocking(void) {
  ncclComm_t c = world_comm(0, "nonblocking");
  sum_of(c, me, world * (world - 1) / 2);
  ncclResult_t r = ncclCommFinalize(c);
  CHECK((r == ncclInProgress || r == ncclSuccess) && settle(c) == ncclSuccess);
  CHECK(ncclCommDestroy(c) == ncclSuccess);
}

#define SIX 6
/* Communicator k: the ranks but rank k (the last two: all), in descending order if k is odd. */
static int position(int k, int *n) {
  int rank = 0, out = k < 4 ? k % world : -1;
  *n = world - (out >= 0);
  if (me == out) return -1;
  for (int r = 0; r < world; r++) rank += r != out && (k % 2 ? r > me : r < me);
  return rank;
}

static int total_of(int k) {
  int sum = 0;
  for (int r = 0; r < world; r++) sum += k < 4 && r == k % world ? 0 : r;
  return sum;
}

static void six(int is_blocking, bool grouped) {
  ncclUniqueId ids[SIX];
  ncclComm_t c[SIX] = { NULL };
  int n, at;
  fresh_ids(ids, SIX);
  if (grouped) CHECK(ncclGroupStart() == ncclSuccess);
  for (int i = 0; i < SIX; i++) { /* every rank in an order of its own */
    int k = me % 2 ? SIX - 1 - i : (i + me) % SIX;
    ncclConfig_t config = config_of(is_blocking, NULL);
    if ((at = position(k, &n)) < 0) continue;
    ncclResult_t r = ncclCommInitRankConfig(&c[k], n, ids[k], at, &config);
    CHECK(r == ncclSuccess || (!is_blocking && r == ncclInProgress));
  }
  if (grouped) CHECK(ncclGroupEnd() == (is_blocking ? ncclSuccess : ncclInProgress));
  for (int k = 0; k < SIX; k++)
    if (c[k]) CHECK(settle(c[k]) == ncclSuccess);
  for (int k = 0; k < SIX; k++)
    if (c[k]) sum_of(c[k], me, total_of(k));
  for (int i = 0; i < SIX; i++) { /* finalize in one order, destroy in another: both are free */
    int k = me % 2 ? SIX - 1 - i : i;
    if (!c[k]) continue;
    CHECK(is_blocking ? ncclCommFinalize(c[k]) == ncclSuccess
                      : (ncclCommFinalize(c[k]), settle(c[k])) == ncclSuccess);
  }
  for (int i = 0; i < SIX; i++) CHECK(ncclCommDestroy(c[me % 2 ? i : SIX - 1 - i]) == ncclSuccess);
}

static void group(void) { six(1, true); }
static void group_nonblocking(void) { six(0, true); }
static void overlapping(void) { six(0, false); }

static void scalable(void) {
  ncclUniqueId ids[2];
  ncclComm_t c = NULL;
  ncclConfig_t config = config_of(1, "scalable");
  fresh_ids(ids, 2);
  CHECK(ncclCommInitRankScalable(&c, world, me, 2, ids, &config) == ncclSuccess);
  sum_of(c, 1, world);
  CHECK(ncclCommDestroy(c) == ncclSuccess);
}

static void one_rank(void) {
  ncclUniqueId id;
  ncclComm_t c = NULL;
  size_t before, after, total;
  CHECK(cudaMemGetInfo(&before, &total) == cudaSuccess);
  CHECK(ncclGetUniqueId(&id) == ncclSuccess
        && ncclCommInitRankConfig(&c, 1, id, 0, NULL) == ncclSuccess);
  CHECK(cudaMemGetInfo(&after, &total) == cudaSuccess && before - after == (size_t)388 << 20);
  sum_of(c, 7, 7);
  CHECK(ncclCommDestroy(c) == ncclSuccess);
  CHECK(cudaMemGetInfo(&after, &total) == cudaSuccess && before == after);
}

/* All ranks on one device, each as if on a machine of its own: before any other communicator. */
static void hostid(void) {
  char text[16];
  snprintf(text, sizeof text, "%d", me);
  setenv("NCCL_HOSTID", text, 1);
  cudaSetDevice(0);
  ncclComm_t c = world_comm(1, "hostid");
  sum_of(c, 1, world);
  CHECK(ncclCommDestroy(c) == ncclSuccess);
}

static void split(void) {
  ncclComm_t parent = world_comm(1, "parent"), half = NULL, none = (ncclComm_t)1;
  int n = 0, r = -1;
  CHECK(ncclCommSplit(parent, me % 2, -me, &half, NULL) == ncclSuccess && half);
  CHECK(ncclCommCount(half, &n) == ncclSuccess && n == (world + 1 - me % 2) / 2);
  CHECK(ncclCommUserRank(half, &r) == ncclSuccess && r == n - 1 - me / 2); /* descending keys */
  sum_of(half, 1, n);
  CHECK(ncclCommSplit(parent, me ? -7 : NCCL_SPLIT_NOCOLOR, 0, &none, NULL) == ncclSuccess);
  CHECK(me ? none != NULL : none == NULL);
  if (none) sum_of(none, 1, world - 1);
  CHECK(ncclCommDestroy(none) == ncclSuccess);
  CHECK(ncclCommDestroy(half) == ncclSuccess);
  CHECK(ncclCommDestroy(parent) == ncclSuccess);
  parent = world_comm(0, "parent"), half = (ncclComm_t)1;
  /* 0, and the parent is polled */
  CHECK(ncclCommSplit(parent, me % 2, 0, &half, NULL) == ncclSuccess);
  CHECK(settle(parent) == ncclSuccess && half && half != (ncclComm_t)1);
  sum_of(half, 1, (world + 1 - me % 2) / 2);
  CHECK(ncclCommFinalize(half) != ncclInvalidArgument && settle(half) == ncclSuccess);
  CHECK(ncclCommDestroy(half) == ncclSuccess && ncclCommDestroy(parent) == ncclSuccess);
}

static void shrink(void) {
  ncclComm_t parent = world_comm(1, NULL), less = NULL;
  int out[] = { world - 1, 1 }, n = 0, r = -1;
  cudaStream_t s = new_stream();
  if (me != 1 && me != world - 1) {
    CHECK(ncclCommShrink(parent, out, 2, &less, NULL, NCCL_SHRINK_DEFAULT) == ncclSuccess);
    CHECK(ncclCommCount(less, &n) == ncclSuccess && n == world - 2);
    CHECK(ncclCommUserRank(less, &r) == ncclSuccess && r == (me ? me - 1 : 0));
    sum_of(less, 1, world - 2);
    CHECK(ncclCommDestroy(less) == ncclSuccess);
  }
  sum_of(parent, 1, world);
  barrier();
  if (me != world - 1) { /* the last rank is gone: what runs is ended, and the rest goes on */
    void *p = device_ints(1, 1);
    int last = world - 1;
    CHECK(ncclAllReduce(p, p, 1, ncclInt32, ncclSum, parent, s) == ncclSuccess);
    nanosleep(&(struct timespec){ 0, 50000000 }, NULL);
    CHECK(cudaStreamQuery(s) == cudaErrorNotReady);
    CHECK(ncclCommShrink(parent, &last, 1, &less, NULL, NCCL_SHRINK_ABORT) == ncclSuccess);
    CHECK(cudaStreamSynchronize(s) == cudaSuccess);
    sum_of(less, 1, world - 1);
    CHECK(ncclCommDestroy(less) == ncclSuccess && cudaFree(p) == cudaSuccess);
  }
  CHECK(cudaStreamDestroy(s) == cudaSuccess && ncclCommAbort(parent) == ncclSuccess);
}

/* -------------------------------------------------------------------------- the data */

#define BIG 40000 /* ints: more than a payload */

static void values_int(ncclComm_t c, cudaStream_t s, int n) {
  int *a = device_ints(n * world, me * 100000), *b = device_ints(n * world, 0);
  int sum = 100000 * (world * (world - 1) / 2), probe[] = { 0, n / 2, n - 1 };
  CHECK(ncclAllReduce(a, b, (size_t)n, ncclInt32, ncclSum, c, s) == ncclSuccess);
  CHECK(cudaStreamSynchronize(s) == cudaSuccess);
  for (int i = 0; i < 3; i++) CHECK(int_at(b, probe[i]) == sum + world * probe[i]);
  CHECK(ncclBroadcast(a, b, (size_t)n, ncclInt32, 1, c, s) == ncclSuccess);
  CHECK(cudaStreamSynchronize(s) == cudaSuccess);
  for (int i = 0; i < 3; i++) CHECK(int_at(b, probe[i]) == 100000 + probe[i]);
  CHECK(ncclReduce(a, me == 2 ? b : NULL, (size_t)n, ncclInt32, ncclMax, 2, c, s) == ncclSuccess);
  CHECK(cudaStreamSynchronize(s) == cudaSuccess);
  for (int i = 0; i < 3; i++)
    CHECK(int_at(b, probe[i]) == (me == 2 ? world - 1 : 1) * 100000 + probe[i]);
  CHECK(ncclAllGather(a, b, (size_t)n, ncclInt32, c, s) == ncclSuccess);
  CHECK(cudaStreamSynchronize(s) == cudaSuccess);
  for (int r = 0; r < world; r++)
    for (int i = 0; i < 3; i++) CHECK(int_at(b, r * n + probe[i]) == r * 100000 + probe[i]);
  CHECK(ncclReduceScatter(a, b, (size_t)n, ncclInt32, ncclSum, c, s) == ncclSuccess);
  CHECK(cudaStreamSynchronize(s) == cudaSuccess);
  for (int i = 0; i < 3; i++) CHECK(int_at(b, probe[i]) == sum + world * (me * n + probe[i]));
  /* in place: the result lies over its own part of the input */
  CHECK(ncclReduceScatter(a, a + me * n, (size_t)n, ncclInt32, ncclMin, c, s) == ncclSuccess);
  CHECK(ncclAllGather(a + me * n, a, (size_t)n, ncclInt32, c, s) == ncclSuccess);
  CHECK(cudaStreamSynchronize(s) == cudaSuccess);
  for (int r = 0; r < world; r++) CHECK(int_at(a, r * n + probe[1]) == r * n + probe[1]);
  CHECK(cudaFree(a) == cudaSuccess && cudaFree(b) == cudaSuccess);
}

#define TYPED(NAME, T, TYPE, TOLERANCE) \
  static void NAME(ncclComm_t c, cudaStream_t s) { \
    T mine[3] = { (T)(me + 1), (T)2, (T)(world - me) }, got[3], *p = NULL; \
    double sum = world * (world + 1) / 2.0, prod = 1, d; \
    for (int r = 0; r < world; r++) prod *= 2; \
    CHECK(cudaMalloc((void **)&p, sizeof mine) == cudaSuccess); \
    for (int op = 0; op < 5; op++) { \
      double all[] = { sum, prod, world, 1, sum / world }, \
             want = all[op]; /* in the order of ncclRedOp_t */ \
      int i = op == ncclProd ? 1 : 0; \
      CHECK(cudaMemcpyAsync(p, mine, sizeof mine, cudaMemcpyHostToDevice, s) == cudaSuccess); \
      CHECK(ncclAllReduce(p, p, 3, TYPE, (ncclRedOp_t)op, c, s) == ncclSuccess); \
      CHECK(cudaMemcpyAsync(got, p, sizeof got, cudaMemcpyDeviceToHost, s) == cudaSuccess); \
      CHECK(cudaStreamSynchronize(s) == cudaSuccess); \
      d = (double)got[i] - want; \
      CHECK((d < 0 ? -d : d) <= TOLERANCE); \
    } \
    CHECK(cudaFree(p) == cudaSuccess); \
  }

TYPED(values_i8, signed char, ncclInt8, 0.5)
TYPED(values_u8, unsigned char, ncclUint8, 0.5)
TYPED(values_i32, int, ncclInt32, 0.5)
TYPED(values_u32, unsigned, ncclUint32, 0.5)
TYPED(values_i64, long long, ncclInt64, 0.5)
TYPED(values_u64, unsigned long long, ncclUint64, 0.5)
TYPED(values_f32, float, ncclFloat32, 1e-6)
TYPED(values_f64, double, ncclFloat64, 1e-12)

/* 1.5 of every rank, in 16 bits: exact up to 16 ranks. */
static void values_half(ncclComm_t c, cudaStream_t s, ncclDataType_t type,
                        unsigned short one_and_half, int fraction) {
  unsigned short got = 0, *p = NULL;
  CHECK(cudaMalloc((void **)&p, sizeof *p) == cudaSuccess);
  CHECK(cudaMemcpyAsync(p, &one_and_half, sizeof *p, cudaMemcpyHostToDevice, s) == cudaSuccess);
  CHECK(ncclAllReduce(p, p, 1, type, ncclSum, c, s) == ncclSuccess);
  CHECK(cudaMemcpyAsync(&got, p, sizeof *p, cudaMemcpyDeviceToHost, s) == cudaSuccess);
  CHECK(cudaStreamSynchronize(s) == cudaSuccess);
  double want = 1.5 * world, power = 1, value;
  int e = (got >> fraction & ((1 << (15 - fraction)) - 1)) - ((1 << (14 - fraction)) - 1);
  for (; e > 0; e--) power *= 2;
  value = power * (1 + (double)(got & ((1 << fraction) - 1)) / (1 << fraction));
  CHECK(value > want - 1e-9 && value < want + 1e-9);
  CHECK(cudaFree(p) == cudaSuccess);
}

static void values(void) {
  ncclComm_t c = world_comm(1, "values");
  cudaStream_t s = new_stream();
  values_int(c, s, 5);
  values_int(c, s, BIG);
  values_i8(c, s), values_u8(c, s), values_i32(c, s), values_u32(c, s), values_i64(c, s),
      values_u64(c, s);
  values_f32(c, s), values_f64(c, s);
  values_half(c, s, ncclFloat16, 0x3e00, 10);
  values_half(c, s, ncclBfloat16, 0x3fc0, 7);
  CHECK(ncclAllReduce(NULL, NULL, 0, ncclInt32, ncclSum, c, s) == ncclSuccess);
  CHECK(cudaStreamSynchronize(s) == cudaSuccess);
  CHECK(cudaStreamDestroy(s) == cudaSuccess && ncclCommDestroy(c) == ncclSuccess);
}

static void ring(void) {
  ncclComm_t c = world_comm(1, "ring");
  cudaStream_t s = new_stream();
  int n = BIG, next = (me + 1) % world, last = (me + world - 1) % world;
  int *a = device_ints(n, me * 1000), *b = device_ints(n, 0), *d = device_ints(n, 0),
      *e = device_ints(1, 5);
  for (int turn = 0; turn < 2; turn++) {
    /* a ring, both ways, to itself, and a collective among them */
    CHECK(ncclGroupStart() == ncclSuccess);
    CHECK(ncclSend(a, (size_t)n, ncclInt32, next, c, s) == ncclSuccess);
    if (me % 2) CHECK(ncclAllReduce(e, e, 1, ncclInt32, ncclMax, c, s) == ncclSuccess);
    CHECK(ncclRecv(b, (size_t)n, ncclInt32, last, c, s) == ncclSuccess);
    CHECK(ncclSend(a, 1, ncclInt32, last, c, s) == ncclSuccess
          && ncclRecv(d, 1, ncclInt32, next, c, s) == ncclSuccess);
    CHECK(ncclSend(a, 0, ncclInt32, me, c, s) == ncclSuccess
          && ncclRecv(d, 0, ncclInt32, me, c, s) == ncclSuccess);
    if (me % 2 == 0) CHECK(ncclAllReduce(e, e, 1, ncclInt32, ncclMax, c, s) == ncclSuccess);
    CHECK(ncclGroupEnd() == ncclSuccess);
    CHECK(cudaStreamSynchronize(s) == cudaSuccess);
    CHECK(int_at(b, 0) == last * 1000 && int_at(b, n - 1) == last * 1000 + n - 1
          && int_at(d, 0) == next * 1000);
  }
  if (me == 0) CHECK(ncclSend(a, 3, ncclInt32, 1, c, s) == ncclSuccess);
  if (me == 1) CHECK(ncclRecv(b, 3, ncclInt32, 0, c, s) == ncclSuccess);
  CHECK(cudaStreamSynchronize(s) == cudaSuccess && (me != 1 || int_at(b, 2) == 2));
  CHECK(cudaFree(a) == cudaSuccess && cudaFree(b) == cudaSuccess);
  CHECK(cudaFree(d) == cudaSuccess && cudaFree(e) == cudaSuccess);
  CHECK(cudaStreamDestroy(s) == cudaSuccess && ncclCommDestroy(c) == ncclSuccess);
}

/* Two used communicators: grouped ends in any order; first uses in opposite order in a group. */
static void teardown(void) {
  ncclComm_t c[] = { world_comm(1, "one"), world_comm(1, "two") };
  cudaStream_t s[] = { new_stream(), new_stream() };
  int *p[] = { device_ints(1, 1), device_ints(1, 1) };
  CHECK(ncclGroupStart() == ncclSuccess);
  for (int i = 0; i < 2; i++) {
    int k = me % 2 ? 1 - i : i;
    CHECK(ncclAllReduce(p[k], p[k], 1, ncclInt32, ncclSum, c[k], s[k]) == ncclSuccess);
  }
  CHECK(ncclGroupEnd() == ncclSuccess);
  for (int i = 0; i < 2; i++)
    CHECK(cudaStreamSynchronize(s[i]) == cudaSuccess && int_at(p[i], 0) == world);
  CHECK(ncclGroupStart() == ncclSuccess);
  for (int i = 0; i < 2; i++) CHECK(ncclCommDestroy(c[me % 2 ? 1 - i : i]) == ncclSuccess);
  CHECK(ncclGroupEnd() == ncclSuccess);
  for (int i = 0; i < 2; i++)
    CHECK(cudaStreamDestroy(s[i]) == cudaSuccess && cudaFree(p[i]) == cudaSuccess);
}

static void revoke(void) {
  ncclComm_t c = world_comm(1, NULL), half = NULL;
  cudaStream_t s = new_stream();
  int *p = device_ints(1, 1);
  sum_of(c, 1, world);
  /* rank 0 never comes */
  if (me) CHECK(ncclAllReduce(p, p, 1, ncclInt32, ncclSum, c, s) == ncclSuccess);
  CHECK(ncclCommRevoke(c, NCCL_REVOKE_DEFAULT) == ncclSuccess
        && cudaStreamSynchronize(s) == cudaSuccess);
  CHECK(ncclCommSplit(c, me % 2, 0, &half, NULL) == ncclSuccess
        && ncclCommDestroy(half) == ncclSuccess);
  CHECK(ncclCommDestroy(c) == ncclSuccess && cudaStreamDestroy(s) == cudaSuccess
        && cudaFree(p) == cudaSuccess);
}

static cudaError_t late(void) {
  nanosleep(&(struct timespec){ 0, 30000000 }, NULL);
  return cudaSuccess;
}

static void cuda(void) {
  cudaStream_t s = NULL, t = new_stream();
  cudaEvent_t a = NULL, b = NULL;
  char id[32] = "";
  int least = 9, most = 9, n = 0, x = 3, *p = device_ints(1, 1);
  float ms = -1;
  CHECK(cudaGetDeviceCount(&n) == cudaSuccess && n > me
        && cudaDeviceGetPCIBusId(id, sizeof id, me) == cudaSuccess);
  CHECK(strlen(id) == 12 && cudaSetDevice(n) == cudaErrorInvalidDevice
        && cudaGetLastError() == cudaErrorInvalidDevice);
  CHECK(cudaGetLastError() == cudaSuccess
        && strcmp(cudaGetErrorName(cudaErrorNotReady), "cudaErrorNotReady") == 0);
  CHECK(cudaDeviceGetStreamPriorityRange(&least, &most) == cudaSuccess && least == 0 && most < 0);
  CHECK(cudaStreamCreateWithPriority(&s, cudaStreamDefault, most) == cudaSuccess);
  CHECK(cudaEventCreate(&a) == cudaSuccess
        && cudaEventCreateWithFlags(&b, cudaEventDefault) == cudaSuccess);
  CHECK(cudaEventRecord(a, t) == cudaSuccess && cudaMemsetAsync(p, 0, sizeof *p, t) == cudaSuccess);
  CHECK(late() == cudaSuccess);
  CHECK(cudaEventRecord(b, t) == cudaSuccess && cudaStreamWaitEvent(s, b, 0) == cudaSuccess);
  CHECK(cudaMemcpyAsync(&x, p, sizeof x, cudaMemcpyDeviceToHost, s) == cudaSuccess);
  CHECK(cudaStreamSynchronize(s) == cudaSuccess && x == 0
        && cudaEventSynchronize(b) == cudaSuccess);
  CHECK(cudaEventElapsedTime(&ms, a, b) == cudaSuccess && ms > 20 && ms < 2000);
  CHECK(cudaDeviceSynchronize() == cudaSuccess && cudaStreamQuery(s) == cudaSuccess);
  CHECK(cudaEventDestroy(a) == cudaSuccess && cudaEventDestroy(b) == cudaSuccess
        && cudaFree(p) == cudaSuccess);
  CHECK(cudaStreamDestroy(s) == cudaSuccess && cudaStreamDestroy(t) == cudaSuccess
        && cudaFree(NULL) == cudaSuccess);
}

/* Rows that are apart: 2 x 3 of 2 ints, each in 4 ints, each plane in 4 rows; and what memory a
** pointer is in. */
static void strided(void) {
  enum { ROW = 2, PITCH = 4, ROWS = 3, HEIGHT = 4, PLANES = 2, PLANE = PITCH * HEIGHT };
  cudaStream_t s = new_stream();
  int *apart = device_ints(PLANES * PLANE, 0), *packed = device_ints(PLANES * ROWS * ROW, 0), x;
  struct cudaPointerAttributes of;
  struct cudaMemcpy3DParms all = { .srcPtr = { apart, PITCH * sizeof x, ROW * sizeof x, HEIGHT },
                                   .dstPtr = { packed, ROW * sizeof x, ROW * sizeof x, ROWS },
                                   .extent = { ROW * sizeof x, ROWS, PLANES },
                                   .kind = cudaMemcpyDeviceToDevice };
  CHECK(cudaMemcpy3DAsync(&all, s) == cudaSuccess && cudaStreamSynchronize(s) == cudaSuccess);
  for (int i = 0; i < PLANES * ROWS * ROW; i++)
    CHECK(int_at(packed, i) == i / (ROWS * ROW) * PLANE + i / ROW % ROWS * PITCH + i % ROW);
  CHECK(cudaMemcpy2DAsync(apart + 1, PITCH * sizeof x, packed, ROW * sizeof x, ROW * sizeof x, ROWS,
                          cudaMemcpyDeviceToDevice, s)
        == cudaSuccess);
  CHECK(cudaStreamSynchronize(s) == cudaSuccess && int_at(apart, 0) == 0 && int_at(apart, 1) == 0);
  CHECK(int_at(apart, 2) == 1 && int_at(apart, 3) == 3
        && int_at(apart, PITCH + 1) == int_at(packed, ROW));
  CHECK(cudaPointerGetAttributes(&of, apart + 3) == cudaSuccess && of.type == cudaMemoryTypeDevice
        && of.device == me);
  CHECK(cudaPointerGetAttributes(&of, &x) == cudaSuccess && of.type == cudaMemoryTypeUnregistered);
  CHECK(cudaFree(apart) == cudaSuccess && cudaFree(packed) == cudaSuccess
        && cudaStreamDestroy(s) == cudaSuccess);
}

/* 12 communicators of all ranks, without blocking, each used: for many ranks on few cores. */
static void many(void) {
  enum { N = 12 };
  ncclUniqueId ids[N];
  ncclComm_t c[N];
  double start = MPI_Wtime();
  fresh_ids(ids, N);
  for (int i = 0; i < N; i++) {
    int k = (i + me) % N;
    ncclConfig_t config = config_of(0, NULL);
    CHECK(ncclCommInitRankConfig(&c[k], world, ids[k], me, &config) == ncclInProgress
          || settle(c[k]) == ncclSuccess);
  }
  for (int i = 0; i < N; i++) CHECK(settle(c[i]) == ncclSuccess);
  for (int i = 0; i < N; i++) sum_of(c[i], me, world * (world - 1) / 2);
  for (int i = 0; i < N; i++) CHECK((ncclCommFinalize(c[i]), settle(c[i])) == ncclSuccess);
  for (int i = 0; i < N; i++) CHECK(ncclCommDestroy(c[i]) == ncclSuccess);
  barrier();
  if (!me) printf("%d ranks, %d communicators each: %.2f s\n", world, N, MPI_Wtime() - start);
}

static const test right_tests[] = {
  { "blocking", blocking },
  { "nonblocking", nonblocking },
  { "group", group },
  { "group_nonblocking", group_nonblocking },
  { "overlapping", overlapping },
  { "scalable", scalable },
  { "one_rank", one_rank },
  { "hostid", hostid },
  { "split", split },
  { "shrink", shrink },
  { "values", values },
  { "ring", ring },
  { "teardown", teardown },
  { "revoke", revoke },
  { "cuda", cuda },
  { "strided", strided },
  { "many", many },
  { NULL, NULL },
};

static bool run_one(const test *t, const char *name) {
  for (; t->name; t++) {
    if (strcmp(t->name, name) != 0) continue;
    int before = failures;
    t->run();
    barrier();
    if (failures > before) printf("FAILED rank %d: %s\n", me, name);
    return true;
  }
  return false;
}

int main(int argc, char **argv) {
  int level, all = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &level);
  MPI_Comm_rank(MPI_COMM_WORLD, &me);
  MPI_Comm_size(MPI_COMM_WORLD, &world);
  cudaSetDevice(me);
  for (int i = 1; i < argc; i++)
    if (!run_one(right_tests, argv[i]) && !run_one(wrong_tests, argv[i])
        && !run_one(hard_tests, argv[i]))
      CHECK(!"a test of this name");
  MPI_Allreduce(&failures, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  if (!me && !all) printf("ok: %d tests on %d ranks\n", argc - 1, world);
  MPI_Finalize();
  return all ? 1 : 0;
}
