/* SPDX-License-Identifier: MIT
**
** probe.c - the first rungs of gpu-test: what one process can do with the GPU and NCCL, without MPI
** and without moongrid. Prints "KEY<tab>VALUE", each line flushed.
**
**     probe about      print which libraries and GPUs this machine has
**     probe lo         set the loopback interface up (root)
**     probe copy       memory of every GPU: allocate, copy there and back, compare
**     probe hold       keep a CUDA context until the parent ends, so that the driver stays loaded
**     probe one        a communicator of one rank: create, use, destroy
**     probe calls      several communicators of one rank, and every NCCL call that moongrid makes
**     probe memory     memory of the GPU for a communicator of one rank, by channels
*/
#include "gpu.h"

#include <errno.h>
#include <net/if.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>

enum { COMMS = 3 };

/* ------------------------------------------------------------------------ about */

/* Return the GPU's name, from the driver: the CUDA runtime has it only in a struct whose layout
** changes from version to version. */
static void device_name(char *name, int len) {
  void *cuda = dlopen("libcuda.so.1", RTLD_NOW);
  int (*init)(unsigned) = NULL, (*get)(int *, int) = NULL, (*ask)(char *, int, int) = NULL;
  int device = 0;
  snprintf(name, (size_t)len, "unknown");
  if (!cuda) return;
  gpu_symbol(cuda, "cuInit", &init);
  gpu_symbol(cuda, "cuDeviceGet", &get);
  gpu_symbol(cuda, "cuDeviceGetName", &ask);
  if (init(0) || get(&device, 0) || ask(name, len, device)) snprintf(name, (size_t)len, "unknown");
}

static void say_file(const char *key, const char *library, const char *function) {
  Dl_info info;
  void *lib = dlopen(library, RTLD_NOW), *at = lib ? dlsym(lib, function) : NULL;
  char *path = at && dladdr(at, &info) ? realpath(info.dli_fname, NULL) : NULL;
  printf("%s\t%s\n", key, path ? path : "unknown");
  free(path);
}

static void about(void) {
  int nccl = 0, runtime = 0, driver = 0, major = 0, minor = 0;
  size_t free_now = 0, total = 0;
  char name[128], cudart[32];
  nccl_must(gpu.GetVersion(&nccl), "ncclGetVersion");
  cuda_must(gpu.cudaRuntimeGetVersion(&runtime), "cudaRuntimeGetVersion");
  cuda_must(gpu.cudaDriverGetVersion(&driver), "cudaDriverGetVersion");
  cuda_must(gpu.cudaSetDevice(0), "cudaSetDevice");
  /* these may fail, since they are only for the report */
  gpu.cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, 0);
  gpu.cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, 0);
  cuda_must(gpu.cudaMemGetInfo(&free_now, &total), "cudaMemGetInfo");
  device_name(name, sizeof name);
  snprintf(cudart, sizeof cudart, "libcudart.so.%d", CUDART_VERSION / 1000);
  printf("name\t%s\ndevices\t%d\ncompute\t%d.%d\n", name, gpu.devices, major, minor);
  printf("memory\t%zu\nfree\t%zu\n", total >> 20, free_now >> 20);
  printf("nccl\t%d.%d.%d\nheaders\t%d.%d.%d\n", nccl / 10000, nccl % 10000 / 100, nccl % 100,
         NCCL_MAJOR, NCCL_MINOR, NCCL_PATCH);
  printf("nccl_code\t%d\n", nccl);
  printf("runtime\t%d.%d\ndriver\t%d.%d\n", runtime / 1000, runtime % 1000 / 10, driver / 1000,
         driver % 1000 / 10);
  say_file("nccl_file", "libnccl.so.2", "ncclGetVersion");
  say_file("cudart_file", cudart, "cudaRuntimeGetVersion");
  /* the real NCCL and the stand-in answer differently */
  printf("success\t%s\n", gpu.GetErrorString(ncclSuccess));
}

/* --------------------------------------------------------------------------- lo */

/* Set up the loopback interface, which Open MPI and NCCL need: without a network it may be down. */
static void loopback_up(void) {
  struct ifreq r = { .ifr_name = "lo" };
  int s = socket(AF_INET, SOCK_DGRAM, 0);
  if (s < 0 || ioctl(s, SIOCGIFFLAGS, &r)) fail("the interface lo: %s", strerror(errno));
  bool up = (r.ifr_flags & IFF_UP) != 0;
  r.ifr_flags |= IFF_UP | IFF_RUNNING;
  if (!up && ioctl(s, SIOCSIFFLAGS, &r))
    fail("lo is down, and cannot be set up: %s", strerror(errno));
  puts(up ? "lo is up" : "lo was down, and is up now");
  close(s);
}

/* ------------------------------------------------------------------------- copy */

static void copy(void) {
  enum { BYTES = 16 << 20 };
  unsigned char *host = malloc(BYTES);
  if (!host) fail("no memory");
  for (int d = 0; d < gpu.devices; d++) {
    void *data = NULL;
    double begun = now();
    cuda_must(gpu.cudaSetDevice(d), "cudaSetDevice");
    cuda_must(gpu.cudaMalloc(&data, BYTES), "cudaMalloc");
    tell(ms_since(begun), "GPU %d: start of CUDA and cudaMalloc, ms", d);
    for (size_t i = 0; i < BYTES; i++) host[i] = (unsigned char)(i * 7 + (i >> 8) + (size_t)d);
    cuda_must(gpu.cudaMemcpy(data, host, BYTES, cudaMemcpyHostToDevice), "cudaMemcpy to the GPU");
    memset(host, 0, BYTES);
    begun = now();
    cuda_must(gpu.cudaMemcpy(host, data, BYTES, cudaMemcpyDeviceToHost), "cudaMemcpy from the GPU");
    tell(ms_since(begun), "GPU %d: 16 MiB from it, ms", d);
    for (size_t i = 0; i < BYTES; i++)
      if (host[i] != (unsigned char)(i * 7 + (i >> 8) + (size_t)d))
        fail("GPU %d: byte %zu came back wrong", d, i);
    cuda_must(gpu.cudaFree(data), "cudaFree");
  }
  free(host);
  puts("every byte came back");
}

static void hold(void) {
  void *data = NULL;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  cuda_must(gpu.cudaSetDevice(0), "cudaSetDevice");
  cuda_must(gpu.cudaMalloc(&data, 1 << 20), "cudaMalloc");
  puts("held");
  fflush(stdout);
  for (pid_t parent = getppid(); getppid() == parent;) sleep(1);
}

/* ---------------------------------------------------------------- one rank alone */

static ncclConfig_t config_of(int blocking) {
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = blocking;
  config.minCTAs = 1, config.maxCTAs = 2; /* else a communicator of one rank takes 64 channels */
  return config;
}

static ncclComm_t alone(int blocking) {
  ncclUniqueId id;
  ncclConfig_t config = config_of(blocking);
  ncclComm_t comm = NULL;
  nccl_must(gpu.GetUniqueId(&id), "ncclGetUniqueId");
  settle_new(&comm, gpu.CommInitRankConfig(&comm, 1, id, 0, &config), "ncclCommInitRankConfig");
  return comm;
}

/* Check an all-reduce: in a communicator of one rank the sum is the rank's own numbers. */
static void used_alone(ncclComm_t comm, lane l, const char *what) {
  int count = -1, rank = -1, device = -1;
  nccl_must(gpu.CommCount(comm, &count), "ncclCommCount");
  nccl_must(gpu.CommUserRank(comm, &rank), "ncclCommUserRank");
  nccl_must(gpu.CommCuDevice(comm, &device), "ncclCommCuDevice");
  if (count != 1 || rank != 0 || device != gpu.device)
    fail("%s: rank %d of %d on GPU %d", what, rank, count, device);
  sum_checked(comm, l.stream, l.data, LANE, 1, 0, what);
}

static void one(void) {
  lane l = lane_open();
  double begun = now();
  ncclComm_t comm = alone(1);
  tell(ms_since(begun), "creation, ms");
  begun = now();
  used_alone(comm, l, "a communicator of one rank");
  tell(ms_since(begun), "first all-reduce, ms");
  begun = now();
  nccl_must(gpu.CommDestroy(comm), "ncclCommDestroy");
  tell(ms_since(begun), "destroy, ms");
  lane_close(l);
  puts("made, used, destroyed");
}

/* ------------------------------------------------------------------------ calls */

/* What a collective of one rank leaves in `to`: what was in `from`. */
static void moved(const char *call, ncclComm_t comm, cudaStream_t stream, int64_t *from,
                  int64_t *to) {
  static int64_t host[LANE];
  size_t n = LANE;
  double begun = now();
  ncclResult_t r = ncclInvalidArgument;
  for (size_t i = 0; i < n; i++) host[i] = (int64_t)(i * 3 + 1);
  cuda_must(gpu.cudaMemcpy(from, host, sizeof host, cudaMemcpyHostToDevice), "cudaMemcpy");
  cuda_must(gpu.cudaMemset(to, 0, sizeof host), "cudaMemset");
  cuda_must(gpu.cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  if (strcmp(call, "ncclBroadcast") == 0)
    r = gpu.Broadcast(from, to, n, ncclInt64, 0, comm, stream);
  if (strcmp(call, "ncclReduce") == 0)
    r = gpu.Reduce(from, to, n, ncclInt64, ncclSum, 0, comm, stream);
  if (strncmp(call, "ncclAllGather", 13) == 0)
    r = gpu.AllGather(from, to, n, ncclInt64, comm, stream);
  if (strcmp(call, "ncclReduceScatter") == 0)
    r = gpu.ReduceScatter(from, to, n, ncclInt64, ncclSum, comm, stream);
  if (strcmp(call, "ncclSend, ncclRecv") == 0) {
    nccl_must(gpu.GroupStart(), "ncclGroupStart");
    nccl_must(gpu.Send(from, n, ncclInt64, 0, comm, stream), "ncclSend");
    nccl_must(gpu.Recv(to, n, ncclInt64, 0, comm, stream), "ncclRecv");
    r = gpu.GroupEnd();
  }
  settle(comm, r, call);
  cuda_must(gpu.cudaStreamSynchronize(stream), "cudaStreamSynchronize");
  cuda_must(gpu.cudaMemcpy(host, to, sizeof host, cudaMemcpyDeviceToHost), "cudaMemcpy");
  for (size_t i = 0; i < n; i++)
    if (host[i] != (int64_t)(i * 3 + 1))
      fail("%s: element %zu is %lld", call, i, (long long)host[i]);
  tell(ms_since(begun), "%s, ms", call);
}

static void collectives(ncclComm_t comm, cudaStream_t stream, int64_t *from, int64_t *to) {
  static const char *const calls[] = { "ncclBroadcast", "ncclReduce", "ncclAllGather",
                                       "ncclReduceScatter", "ncclSend, ncclRecv" };
  for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) moved(calls[i], comm, stream, from, to);
}

/* Create several at once, in one group, each with its own id, as moongrid creates communicators that
** block. */
static void in_group(lane l) {
  ncclComm_t comm[COMMS] = { NULL };
  ncclUniqueId id[COMMS];
  ncclConfig_t config = config_of(1);
  double begun = now();
  for (int i = 0; i < COMMS; i++) nccl_must(gpu.GetUniqueId(&id[i]), "ncclGetUniqueId");
  nccl_must(gpu.GroupStart(), "ncclGroupStart");
  for (int i = 0; i < COMMS; i++)
    nccl_must(gpu.CommInitRankConfig(&comm[i], 1, id[i], 0, &config),
              "ncclCommInitRankConfig in a group");
  nccl_must(gpu.GroupEnd(), "ncclGroupEnd of creations");
  tell(ms_since(begun), "%d creations in one group, ms", COMMS);
  for (int i = 0; i < COMMS; i++) used_alone(comm[i], l, "one made in a group");
  begun = now();
  for (int i = 0; i < COMMS; i++) nccl_must(gpu.CommFinalize(comm[i]), "ncclCommFinalize");
  nccl_must(gpu.GroupStart(), "ncclGroupStart");
  for (int i = 0; i < COMMS; i++) nccl_must(gpu.CommDestroy(comm[i]), "ncclCommDestroy in a group");
  nccl_must(gpu.GroupEnd(), "ncclGroupEnd of destroys");
  tell(ms_since(begun), "%d finalized, then destroyed in one group, ms", COMMS);
}

/* Begin one after the other without waiting, as moongrid creates communicators that do not block. */
static void without_blocking(lane l) {
  ncclComm_t comm[COMMS] = { NULL };
  ncclConfig_t config = config_of(0);
  ncclResult_t begun_as[COMMS];
  double begun = now();
  for (int i = 0; i < COMMS; i++) {
    ncclUniqueId id;
    nccl_must(gpu.GetUniqueId(&id), "ncclGetUniqueId");
    begun_as[i] = gpu.CommInitRankConfig(&comm[i], 1, id, 0, &config);
  }
  for (int i = 0; i < COMMS; i++)
    settle_new(&comm[i], begun_as[i], "ncclCommInitRankConfig without blocking");
  tell(ms_since(begun), "%d creations without blocking, ms", COMMS);
  for (int i = 0; i < COMMS; i++) used_alone(comm[i], l, "one that does not block");
  if (gpu.CommRevoke) {
    begun = now();
    settle(comm[0], gpu.CommRevoke(comm[0], 0), "ncclCommRevoke");
    tell(ms_since(begun), "ncclCommRevoke, ms");
  } else {
    puts("this NCCL has no ncclCommRevoke (2.28.7)");
  }
  begun = now();
  nccl_must(gpu.GroupStart(), "ncclGroupStart");
  for (int i = 0; i < COMMS; i++) nccl_begun(gpu.CommAbort(comm[i]), "ncclCommAbort in a group");
  nccl_begun(gpu.GroupEnd(), "ncclGroupEnd of aborts");
  tell(ms_since(begun), "%d aborted in one group, ms", COMMS);
}

static void split(lane l) {
  ncclComm_t parent = alone(1), child = NULL, none = NULL;
  double begun = now();
  nccl_must(gpu.CommSplit(parent, 0, 0, &child, NULL), "ncclCommSplit");
  tell(ms_since(begun), "ncclCommSplit, ms");
  used_alone(child, l, "a split");
  nccl_must(gpu.CommSplit(parent, NCCL_SPLIT_NOCOLOR, 0, &none, NULL),
            "ncclCommSplit without a color");
  if (none) fail("ncclCommSplit without a color made a communicator");
  nccl_must(gpu.CommDestroy(child), "ncclCommDestroy of a split");
  nccl_must(gpu.CommDestroy(parent), "ncclCommDestroy of the parent");
}

static void scalable(lane l) {
  ncclComm_t comm = NULL;
  ncclUniqueId id;
  ncclConfig_t config = config_of(1);
  double begun = now();
  if (!gpu.CommInitRankScalable) {
    puts("this NCCL has no ncclCommInitRankScalable (2.23.4)");
    return;
  }
  nccl_must(gpu.GetUniqueId(&id), "ncclGetUniqueId");
  nccl_must(gpu.CommInitRankScalable(&comm, 1, 0, 1, &id, &config), "ncclCommInitRankScalable");
  tell(ms_since(begun), "ncclCommInitRankScalable, ms");
  used_alone(comm, l, "one of ncclCommInitRankScalable");
  nccl_must(gpu.CommDestroy(comm), "ncclCommDestroy");
}

static void calls(void) {
  lane l = lane_open(), other = lane_open();
  ncclComm_t comm = alone(1);
  collectives(comm, l.stream, l.data, other.data);
  if (gpu.MemAlloc && gpu.MemFree) {
    int64_t *mine = NULL;
    nccl_must(gpu.MemAlloc((void **)&mine, LANE * sizeof *mine), "ncclMemAlloc");
    moved("ncclAllGather into ncclMemAlloc", comm, l.stream, l.data, mine);
    nccl_must(gpu.MemFree(mine), "ncclMemFree");
  }
  nccl_must(gpu.CommDestroy(comm), "ncclCommDestroy");
  in_group(l);
  without_blocking(l);
  split(l);
  scalable(l);
  lane_close(l);
  lane_close(other);
  puts("every call did what it says");
}

/* ----------------------------------------------------------------------- memory */

static double used_mib(void) {
  size_t unused = 0, total = 0;
  cuda_must(gpu.cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  cuda_must(gpu.cudaMemGetInfo(&unused, &total), "cudaMemGetInfo");
  return (double)(total - unused) / (1 << 20);
}

/* One rank needs no buffers to others, so a creation takes (3 C + 2) x 2 MiB for C channels: 388
** MiB for the 64 channels that NCCL chooses by itself. This was counted with NCCL's host code over
** the runtime of tests/cuda. */
static void memory_alone(void) {
  static const int channels[] = {
    1, 1, 2, 4, 32, 64, 0
  }; /* the first is not counted: allocators take a granule once */
  int wrong = 0;
  lane l = lane_open();
  ncclComm_t first = alone(1);
  /* what all communicators of a process share is there from here on */
  used_alone(first, l, "the first");
  for (size_t i = 0; i < sizeof channels / sizeof *channels; i++) {
    int c = channels[i];
    char which[32];
    ncclUniqueId id;
    ncclComm_t comm = NULL;
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 1;
    if (c > 0) config.minCTAs = c, config.maxCTAs = c;
    snprintf(which, sizeof which, c > 0 ? "%d channels" : "NCCL's own choice", c);
    nccl_must(gpu.GetUniqueId(&id), "ncclGetUniqueId");
    double before = used_mib();
    nccl_must(gpu.CommInitRankConfig(&comm, 1, id, 0, &config), "ncclCommInitRankConfig");
    double made = used_mib();
    used_alone(comm, l, which);
    double used = used_mib();
    nccl_must(gpu.CommDestroy(comm), "ncclCommDestroy");
    if (i == 0) continue;
    tell(made - before, "%s: created, MiB", which);
    tell(used - made, "%s: first all-reduce, MiB", which);
    tell(used_mib() - before, "%s: kept when destroyed, MiB", which);
    double expected = 2.0 * (3 * (c > 0 ? c : 64) + 2);
    if (made - before != expected) printf("%s: %.0f MiB expected\n", which, expected), wrong++;
  }
  nccl_must(gpu.CommDestroy(first), "ncclCommDestroy");
  lane_close(l);
  puts(wrong ? "memory differs from what its host code was counted to take"
             : "memory is what its host code takes");
}

/* ------------------------------------------------------------------------- main */

int main(int argc, char **argv) {
  static const struct {
    const char *name;
    void (*run)(void);
  } what[] = { { "about", about }, { "copy", copy },   { "hold", hold },
               { "one", one },     { "calls", calls }, { "memory", memory_alone } };
  if (argc == 2 && strcmp(argv[1], "lo") == 0) {
    loopback_up();
    return 0;
  }
  for (size_t i = 0; argc == 2 && i < sizeof what / sizeof *what; i++) {
    if (strcmp(argv[1], what[i].name) != 0) continue;
    gpu_open();
    cuda_must(gpu.cudaSetDevice(0), "cudaSetDevice");
    what[i].run();
    return 0;
  }
  fail("probe about | lo | copy | hold | one | calls | memory");
}
