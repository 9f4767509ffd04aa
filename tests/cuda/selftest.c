/* SPDX-License-Identifier: MIT
**
** selftest.c - the rig against what CUDA documents, function by function. Prints TAP. With a word:
** what the environment changes (selftest.sh sets it).
*/
#include "selftest.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static int tests, wrong;

void check(bool ok, const char *what) {
  printf("%sok %d %s\n", ok ? "" : "not ", ++tests, what);
  wrong += !ok;
  fflush(stdout);
}

/* A driver's function by the way that NCCL takes. */
static void *entry(const char *name) {
  void *f = NULL;
  enum cudaDriverEntryPointQueryResult status;
  if (cudaGetDriverEntryPointByVersion(name, &f, 13000, cudaEnableDefault, &status)) return NULL;
  return status == cudaDriverEntryPointSuccess ? f : NULL;
}

static void devices(void) {
  int n = 0, d = -1, v = 0;
  char id[32];
  OK(cudaGetDeviceCount(&n));
  check(n == 8, "8 devices");
  IS(cudaSetDevice(8), cudaErrorInvalidDevice);
  IS(cudaGetLastError(), cudaErrorInvalidDevice);
  OK(cudaGetLastError());
  OK(cudaSetDevice(3));
  OK(cudaGetDevice(&d));
  check(d == 3, "the device that was set");
  OK(cudaDeviceGetPCIBusId(id, sizeof id, 3));
  OK(cudaDeviceGetByPCIBusId(&d, id));
  check(d == 3, "the device of a bus id");
  IS(cudaDeviceGetPCIBusId(id, 5, 3), cudaErrorInvalidValue);
  OK(cudaDeviceCanAccessPeer(&d, 0, 1));
  check(d == 1, "peers");
  OK(cudaDeviceCanAccessPeer(&d, 1, 1));
  check(d == 0, "no peer of itself");
  OK(cudaDeviceGetAttribute(&v, cudaDevAttrComputeCapabilityMajor, 0));
  check(v == 9, "capability 9");
  IS(cudaDeviceGetAttribute(&v, (enum cudaDeviceAttr)9999, 0), cudaErrorNotSupported);
  OK(cudaDriverGetVersion(&v));
  check(v >= 13000, "a driver of CUDA 13");

  CUresult (*uuid)(CUuuid *, CUdevice) =
      (CUresult(*)(CUuuid *, CUdevice))(uintptr_t)entry("cuDeviceGetUuid");
  CUuuid a, b;
  OK(uuid(&a, 0));
  OK(uuid(&b, 1));
  check(memcmp(&a, &b, sizeof a) != 0, "each device has its own identity");
  IS(uuid(&a, 8), CUDA_ERROR_INVALID_DEVICE);
  CUresult (*describe)(CUresult, const char **) =
      (CUresult(*)(CUresult, const char **))(uintptr_t)entry("cuGetErrorString");
  const char *text = NULL;
  OK(describe(CUDA_ERROR_OUT_OF_MEMORY, &text));
  check(text && !strcmp(text, "out of memory"), "an error is described, not named");
  IS(describe((CUresult)12345, &text), CUDA_ERROR_INVALID_VALUE);
}

static void memory(void) {
  size_t before, after, total, size = 0;
  void *p = NULL, *h = NULL, *base = NULL;
  char own[64] = "own", back[64] = "";
  long long live = cudarig_count("device");
  struct cudaPointerAttributes a;
  CUresult (*range)(CUdeviceptr *, size_t *, CUdeviceptr) =
      (CUresult(*)(CUdeviceptr *, size_t *, CUdeviceptr))(uintptr_t)entry("cuMemGetAddressRange");
  OK(cudaMemGetInfo(&before, &total));
  OK(cudaMalloc(&p, 1 << 20));
  OK(cudaMemGetInfo(&after, &total));
  check(*(unsigned char *)p == 0xA5, "new memory is not zeros");
  check(before - after == 1 << 20 && cudarig_count("device") == live + (1 << 20),
        "memory is counted");
  OK(cudaPointerGetAttributes(&a, (char *)p + 100));
  check(a.type == cudaMemoryTypeDevice && a.device == 3 && !a.hostPointer,
        "attributes of device memory");
  check(range && !range((CUdeviceptr *)&base, &size, (uintptr_t)p + 5) && base == p
            && size == 1 << 20,
        "its range");
  OK(cudaMemcpy(p, own, sizeof own, cudaMemcpyHostToDevice));
  OK(cudaMemcpy(back, p, sizeof back, cudaMemcpyDeviceToHost));
  check(!strcmp(back, "own"), "copied there and back");
  IS(cudaMemcpy(own, back, 4, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
  IS(cudaFree((char *)p + 1), cudaErrorInvalidValue);
  OK(cudaMemset(p, 7, 1 << 20));
  OK(cudaMemset((char *)p + 1, 0, (1 << 20) - 2));
  const char *c = p;
  check(c[0] == 7 && !c[1] && !c[(1 << 19)] && !c[(1 << 20) - 2] && c[(1 << 20) - 1] == 7,
        "set, in whole pages and not");
  IS(cudaMemset(p, 0, (1 << 20) + 1), cudaErrorInvalidValue);
  OK(cudaHostAlloc(&h, 4096, cudaHostAllocMapped));
  OK(cudaPointerGetAttributes(&a, h));
  check(a.type == cudaMemoryTypeHost && a.hostPointer == h, "attributes of pinned memory");
  IS(cudaFree(h), cudaErrorInvalidValue);
  OK(cudaFreeHost(h));
  OK(cudaHostRegister(own, sizeof own, 0));
  IS(cudaHostRegister(own, sizeof own, 0), cudaErrorHostMemoryAlreadyRegistered);
  OK(cudaHostUnregister(own));
  IS(cudaHostUnregister(own), cudaErrorHostMemoryNotRegistered);
  OK(cudaPointerGetAttributes(&a, own));
  check(a.type == cudaMemoryTypeUnregistered, "attributes of other memory");
  OK(cudaFree(p));
  IS(cudaFree(p), cudaErrorInvalidValue);
  OK(cudaFree(NULL));
  check(cudarig_count("device") == live, "memory is given back");
  IS(cudaMalloc(&p, (size_t)1 << 45), cudaErrorMemoryAllocation);
}

static void strides(void) {
  char *p = NULL, *q = NULL, back[64];
  OK(cudaMalloc((void **)&p, 4096));
  OK(cudaMalloc((void **)&q, 4096));
  for (int i = 0; i < 64; i++) p[i] = (char)i;
  OK(cudaMemcpy2D(q, 4, p, 16, 4, 4, cudaMemcpyDeviceToDevice));
  OK(cudaMemcpy(back, q, 16, cudaMemcpyDeviceToHost));
  check(back[3] == 3 && back[4] == 16 && back[15] == 51, "rows");
  IS(cudaMemcpy2D(q, 3, p, 16, 4, 4, cudaMemcpyDeviceToDevice), cudaErrorInvalidPitchValue);
  IS(cudaGetLastError(), cudaErrorInvalidPitchValue);
  struct cudaMemcpy3DParms a = { .srcPtr = { p, 4, 4, 4 },
                                 .dstPtr = { q, 2, 2, 2 },
                                 .extent = { 2, 2, 2 },
                                 .kind = cudaMemcpyDeviceToDevice };
  a.srcPos.x = 1;
  OK(cudaMemcpy3DAsync(&a, NULL));
  OK(cudaDeviceSynchronize());
  check(q[0] == 1 && q[2] == 5 && q[4] == 17 && q[7] == 22, "planes");
  OK(cudaFree(p));
  OK(cudaFree(q));
}

static void sleep_then(void *arg) {
  struct timespec t = { 0, 50000000 };
  nanosleep(&t, NULL);
  *(volatile int *)arg = 1;
}

static void order(void) {
  cudaStream_t s, t;
  cudaEvent_t e, f;
  float ms = -1;
  int done = 0;
  unsigned *word = NULL;
  CUresult (*batch)(CUstream, unsigned, CUstreamBatchMemOpParams *, unsigned) =
      (CUresult(*)(CUstream, unsigned, CUstreamBatchMemOpParams *, unsigned))(uintptr_t)entry(
          "cuStreamBatchMemOp");
  OK(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
  OK(cudaStreamCreate(&t));
  OK(cudaEventCreate(&e));
  OK(cudaEventCreate(&f));
  OK(cudaMalloc((void **)&word, 64));
  OK(cudaEventRecord(e, s));
  OK(cudaLaunchHostFunc(s, sleep_then, &done));
  IS(cudaStreamQuery(s), cudaErrorNotReady);
  OK(cudaGetLastError());
  OK(cudaEventRecord(f, s));
  IS(cudaEventQuery(f), cudaErrorNotReady);
  OK(cudaStreamWaitEvent(t, f, 0));
  OK(cudaMemsetAsync(word, 1, 4, t));
  check(*(volatile unsigned *)word == 0xA5A5A5A5, "a stream waits for an event");
  OK(cudaStreamSynchronize(t));
  check(done && *word == 0x01010101, "and goes on after it");
  OK(cudaEventSynchronize(f));
  OK(cudaEventElapsedTime(&ms, e, f));
  check(ms >= 49 && ms < 5000, "time between events");
  CUstreamBatchMemOpParams o = { .waitValue = { .operation = CU_STREAM_MEM_OP_WAIT_VALUE_32,
                                                .address = (uintptr_t)word,
                                                .value = 5 } };
  o.waitValue.flags = CU_STREAM_WAIT_VALUE_EQ;
  check(batch && !batch(s, 1, &o, 0), "a wait for a value");
  IS(cudaStreamQuery(s), cudaErrorNotReady);
  o.operation = CU_STREAM_MEM_OP_WRITE_VALUE_32, o.writeValue.flags = 0;
  check(batch && !batch(t, 1, &o, 0), "a write of it by another stream");
  OK(cudaStreamSynchronize(s));
  check(*word == 5, "the value");
  o.operation = (CUstreamBatchMemOpType)77;
  check(batch && batch(t, 1, &o, 0) == CUDA_ERROR_NOT_SUPPORTED, "an unknown operation is refused");
  done = 0;
  OK(cudaLaunchHostFunc(t, sleep_then, &done));
  OK(cudaMemset(word, 0, 4));
  check(done == 1, "the default stream waits for a blocking one");
  IS(cudaStreamDestroy(NULL), cudaErrorInvalidResourceHandle);
  OK(cudaStreamDestroy(s));
  OK(cudaStreamDestroy(t));
  IS(cudaStreamSynchronize(s), cudaErrorInvalidResourceHandle);
  OK(cudaEventDestroy(e));
  OK(cudaEventDestroy(f));
  IS(cudaEventQuery(e), cudaErrorInvalidResourceHandle);
  IS(cudaStreamBeginCapture(NULL, cudaStreamCaptureModeGlobal), cudaErrorNotSupported);
  OK(cudaFree(word));
  check(cudarig_count("streams") == 0 && cudarig_count("events") == 0,
        "streams and events are counted");
}

static void cumem(void) {
  CUmemAllocationProp prop = { .type = CU_MEM_ALLOCATION_TYPE_PINNED,
                               .requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
                               .location = { .type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 3 } };
  CUmemAccessDesc access = { .location = prop.location,
                             .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE };
  CUmemGenericAllocationHandle h, again;
  CUdeviceptr p = 0, q = 0;
  size_t g = 0, n = 4 << 20;
  int file = -1;
  long long live = cudarig_count("cumem");
  OK(cuMemGetAllocationGranularity(&g, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
  check(g == 2 << 20, "granule of 2 MiB");
  IS(cuMemCreate(&h, n + 1, &prop, 0), CUDA_ERROR_INVALID_VALUE);
  OK(cuMemCreate(&h, n, &prop, 0));
  check(cudarig_count("cumem") == live + (long long)n, "cuMem memory is counted");
  OK(cuMemAddressReserve(&p, n, 0, 0, 0));
  OK(cuMemAddressReserve(&q, n, 0, 0, 0));
  OK(cuMemMap(p, n, 0, h, 0));
  IS(cuMemMap(p, n, 0, h, 0), CUDA_ERROR_INVALID_VALUE);
  OK(cuMemSetAccess(p, n, &access, 1));
  *(int *)p = 4711;
  OK(cuMemExportToShareableHandle(&file, h, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
  IS(cuMemExportToShareableHandle(&file, h, CU_MEM_HANDLE_TYPE_FABRIC, 0),
     CUDA_ERROR_NOT_SUPPORTED);
  OK(cuMemImportFromShareableHandle(&again, (void *)(intptr_t)file,
                                    CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
  close(file);
  OK(cuMemMap(q, n, 0, again, 0));
  OK(cuMemSetAccess(q, n, &access, 1));
  check(*(int *)q == 4711 && cudarig_count("cumem") == live + (long long)n,
        "the same memory, counted once");
  OK(cuMemUnmap(p, n));
  OK(cuMemUnmap(q, n));
  OK(cuMemRelease(h));
  OK(cuMemRelease(again));
  IS(cuMemRelease(h), CUDA_ERROR_INVALID_VALUE);
  OK(cuMemAddressFree(p, n));
  OK(cuMemAddressFree(q, n));
  IS(cuMemAddressFree(q, n), CUDA_ERROR_INVALID_VALUE);
  check(cudarig_count("cumem") == live, "it is given back");
  CUmulticastObjectProp many = { .numDevices = 2, .size = n };
  IS(cuMulticastCreate(&h, &many), CUDA_ERROR_NOT_SUPPORTED);
  check(!entry("cuNoSuchFunction"), "no entry point of another name");
}

/* The child of the process opens what the parent has made. */
static void processes(void) {
  cudaIpcMemHandle_t h;
  int *p = NULL, status = -1;
  void *mine;
  OK(cudaMalloc((void **)&p, 1 << 16));
  *p = 1;
  OK(cudaIpcGetMemHandle(&h, p));
  IS(cudaIpcOpenMemHandle(&mine, h, cudaIpcMemLazyEnablePeerAccess), cudaErrorDeviceUninitialized);
  pid_t child = fork();
  if (!child) {
    int *theirs = NULL;
    if (cudaIpcOpenMemHandle((void **)&theirs, h, cudaIpcMemLazyEnablePeerAccess) || *theirs != 1)
      _exit(1);
    *theirs = 2;
    _exit(cudaIpcCloseMemHandle(theirs) ? 2 : 0);
  }
  waitpid(child, &status, 0);
  check(status == 0 && *p == 2, "memory of another process");
  OK(cudaFree(p));
}

static void kernels(void) {
  static const char not_a_kernel;
  struct cudaFuncAttributes a;
  long long n = cudarig_count("launches");
  IS(cudaFuncGetAttributes(&a, &not_a_kernel), cudaErrorInvalidDeviceFunction);
  CUlaunchConfig config = { .gridDimX = 1 };
  OK(cuLaunchKernelEx(&config, (CUfunction)(uintptr_t)&not_a_kernel, NULL, NULL));
  check(cudarig_count("launches") == n + 1, "a launch is counted");
}

/* Faults that a program asks for while it runs. */
static void asked(void) {
  void *p = NULL;
  long calls = 0;
  int i = 0;
  cudarig_fail("cudaMalloc", 2, 700);
  OK(cudaMalloc(&p, 4096));
  OK(cudaFree(p));
  IS(cudaMalloc(&p, 4096), 700);
  OK(cudaMalloc(&p, 4096));
  cudarig_fail("*", 0, 46);
  IS(cudaFree(p), 46);
  IS(cudaDeviceSynchronize(), 46);
  cudarig_fail(NULL, 0, 0);
  OK(cudaFree(p));
  while (cudarig_function(i, &calls)
         && strcmp(cudarig_function(i, &calls), "cudaDeviceSynchronize"))
    i++;
  check(cudarig_function(i, NULL) && calls == cudarig_count("cudaDeviceSynchronize"),
        "functions by name, with their calls");
}

/* What the environment of selftest.sh has changed. */
static void faults(void) {
  void *p = NULL;
  OK(cudaMalloc(&p, 1 << 20));
  IS(cudaMalloc(&p, 1 << 20), 700);
  OK(cudaMalloc(&p, 1 << 20));
  IS(cudaMalloc(&p, 1 << 20), cudaErrorMemoryAllocation); /* CUDARIG_MEMORY=2 */
  struct timespec a, b;
  clock_gettime(CLOCK_MONOTONIC, &a);
  OK(cudaFree(p));
  clock_gettime(CLOCK_MONOTONIC, &b);
  check((b.tv_sec - a.tv_sec) * 1000 + (b.tv_nsec - a.tv_nsec) / 1000000 >= 99,
        "cudaFree waits for 100 ms");
}

static char told[2][256];

static void hear(const char *text) {
  static int n;
  snprintf(told[n++ % 2], sizeof *told, "%s", text);
}

/* Whoever has the rig inside hears of calls that are wrong and of what was never freed. */
static void manners(void) {
  void *p = NULL;
  cudaStream_t s;
  rig_the_manner.wrong = hear;
  OK(cudaMalloc(&p, 4096));
  IS(cudaMemcpy(p, p, 4096, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
  check(!strcmp(told[0], "cudaMemcpy: invalid argument"), "a wrong call is told");
  IS(cudaMemset((char *)p + 1, 0, 4096), cudaErrorInvalidValue);
  check(!strcmp(told[1], "cudaMemset: invalid argument"), "the next one, too");
  OK(cudaStreamCreate(&s));
  rig_leaks();
  check(!strcmp(told[0], "leak: a stream on device 0 was never destroyed"),
        "a stream that is left");
  check(!strcmp(told[1], "leak: 4096 bytes of memory on device 0 were never freed"),
        "memory that is left");
  rig_stream_fail(s, cudaErrorLaunchTimeout);
  IS(cudaStreamSynchronize(s), cudaErrorLaunchTimeout);
  IS(cudaDeviceSynchronize(), cudaErrorLaunchTimeout);
  check(!strcmp(told[1], "leak: 4096 bytes of memory on device 0 were never freed"),
        "an error of a kernel is not a wrong call");
  OK(cudaStreamDestroy(s));
  OK(cudaFree(p));
}

/* A driver that is missing, a stub, or too old: every call says so, and leaves its results
** alone. */
static void no_driver(const char *word) {
  int n = -7, version = -7;
  void *p = &n;
  cudaError_t e = !strcmp(word, "stub") ? cudaErrorStubLibrary : cudaErrorInsufficientDriver;
  IS(cudaGetDeviceCount(&n), e);
  IS(cudaMalloc(&p, 8), e);
  IS(cudaFree(NULL), e);
  check(n == -7 && p == &n && cudaGetLastError() == e, "results are left alone");
  OK(cudaRuntimeGetVersion(&version));
  check(version == CUDART_VERSION, "the runtime has a version");
  OK(cudaDriverGetVersion(&version));
  check(version == (!strcmp(word, "old") ? 12040 : 0), "and the driver has that, or none");
}

static void machines(const char *word) {
  int n = 0, can = -1;
  cudaError_t e = cudaGetDeviceCount(&n);
  if (!strcmp(word, "none")) {
    check(e == cudaErrorNoDevice, "a machine that cannot be read has no device");
    return;
  }
  check(n
            == (!strcmp(word, "hosts")   ? 16
                : !strcmp(word, "pairs") ? 4
                                         : 8),
        "as many devices as the machine has");
  OK(cudaDeviceCanAccessPeer(&can, 0, n - 1));
  check(can == !!strcmp(word, "hosts"), "peers on one host, none on another");
  check(rig_linked(0, 1) == !!strcmp(word, "pcie") && rig_linked(0, 2) == (n == 16), "links");
}

int main(int argc, char **argv) {
  const char *word = argc > 1 ? argv[1] : "";
  if (!strcmp(word, "faults"))
    faults();
  else if (!strcmp(word, "nvls"))
    multicast();
  else if (!strcmp(word, "old") || !strcmp(word, "stub") || !strcmp(word, "missing"))
    no_driver(word);
  else if (*word)
    machines(word);
  else {
    devices();
    memory();
    strides();
    order();
    cumem();
    processes();
    kernels();
    asked();
    OK(cudaSetDevice(0));
    manners();
  }
  printf("1..%d\n", tests);
  return wrong != 0;
}
