/* SPDX-License-Identifier: MIT
**
** predicted.c - what a plan says that NCCL takes, against what the CUDA runtime of tests/cuda and
** the kernel count, on NCCL's own host code. Under mpirun; host.sh runs it. TAP from rank 0, a line
** for each figure, the most of any rank.
**
**     predicted split             a family and one that is split from it, with and without split_share
**     predicted [CHANNELS ...]    with NCCL_ALGO=NVLS on a machine with multicast: NVLink SHARP
*/
#include "rigged.h"

typedef struct figures {
  long long bytes;
  int files, threads;
} figures;

/* Descriptors without those by which the runtime here keeps memory of the GPU: a driver's have no
** number. */
static int files(void) {
  const char *folder = "/proc/self/fd";
  DIR *d = opendir(folder);
  struct dirent *one;
  int n = 0;
  while (d && (one = readdir(d))) {
    char path[300], target[64];
    snprintf(path, sizeof path, "%s/%s", folder, one->d_name);
    ssize_t len = readlink(path, target, sizeof target);
    n += len > 0 && strncmp(target, "/memfd:", 7) != 0;
  }
  if (d) closedir(d);
  return n;
}

static figures now(void) {
  return (figures){ device_bytes(), files(), entries("/proc/self/task") };
}

/* The most of any rank. */
static long long most(long long mine) {
  long long all = 0;
  MPI_Allreduce(&mine, &all, 1, MPI_LONG_LONG, MPI_MAX, MPI_COMM_WORLD);
  return all;
}

static void row(const char *what, int channels, long long predicted, long long counted,
                bool exact) {
  char line[200];
  bool ok = exact ? counted == predicted : counted <= predicted;
  snprintf(line, sizeof line, "%d channels, %s: %.0f MiB predicted, %.0f counted", channels, what,
           (double)most(predicted) / (1 << 20), (double)most(counted) / (1 << 20));
  test(ok, line);
}

static void wait_for(const mgrid_group *g, ncclResult_t r) {
  while (r == ncclInProgress) {
    usleep(1000);
    if (p_CommGetAsyncError(mgrid_nccl_comm(g), &r) != ncclSuccess) break;
  }
  p_StreamSynchronize(mgrid_nccl_stream(g));
  test(r == ncclSuccess, "NCCL takes the calls");
}

/* A message from each member to each other one. */
static void talk(const mgrid_group *g, long long *buffer) {
  ncclComm_t comm = mgrid_nccl_comm(g);
  p_GroupStart();
  for (int peer = 0; peer < size; peer++) {
    if (peer == rank) continue;
    p_Send(buffer, 1, ncclInt64, peer, comm, mgrid_nccl_stream(g));
    p_Recv(buffer + 1, 1, ncclInt64, peer, comm, mgrid_nccl_stream(g));
  }
  wait_for(g, p_GroupEnd());
}

static void measure(mgrid_backend *b, int channels, int hosts) {
  mgrid_error e = MGRID_ERROR_INIT;
  mgrid_resources r = MGRID_RESOURCES_INIT;
  mgrid_site site = MGRID_SITE_INIT;
  char options[64], line[200];
  long long *buffer = NULL;
  p_Malloc((void **)&buffer, 16);
  snprintf(options, sizeof options, "min_ctas = %d, max_ctas = %d", channels, channels);
  figures before = now();
  mgrid_state *s = world_of(b, options, anew(&e));
  if (!s) {
    test(false, e.message);
    return;
  }
  figures made = now();
  const mgrid_group *g = mgrid_state_group(s, "w", &e);
  site.machine_ranks = size / hosts;
  mgrid_plan_resources(mgrid_state_plan(s), rank, &site, &r, &e);
  bool nvls = getenv("NCCL_ALGO") && !strcmp(getenv("NCCL_ALGO"), "NVLS");
  row("created", channels, r.created + (nvls ? r.nvls_created : 0), made.bytes - before.bytes,
      true);
  wait_for(g, p_AllReduce(buffer, buffer, 1, ncclInt64, ncclSum, mgrid_nccl_comm(g),
                          mgrid_nccl_stream(g)));
  figures used = now();
  row("first all-reduce", channels, nvls ? r.nvls : r.ring + r.tree, used.bytes - made.bytes, nvls);
  talk(g, buffer);
  figures talked = now();
  row("first messages between all", channels, r.p2p, talked.bytes - used.bytes, false);
  bool fits = used.files - before.files <= r.files;
  snprintf(line, sizeof line, "%d channels: %lld files predicted, %lld counted; %lld threads",
           channels, most(r.files), most(used.files - before.files),
           most(used.threads - before.threads));
  test(fits, line);
  mgrid_state_free(s);
  p_Free(buffer);
}

static void split(mgrid_backend *b) {
  for (int share = 0; share < 2; share++) {
    mgrid_error e = MGRID_ERROR_INIT;
    mgrid_open_options o = MGRID_OPEN_OPTIONS_INIT;
    mgrid_resources r = MGRID_RESOURCES_INIT;
    mgrid_site site = MGRID_SITE_INIT;
    char text[512];
    snprintf(
        text, sizeof text,
        "return recipe { build = function(world) local t = topology(world) "
        "local g = grid(world, 'tp-dp', { tp = 2, dp = fill }) "
        "t.all = g('tp', 'dp'):with { nccl = { min_ctas = 4, max_ctas = 4, split_share = %s } } "
        "t.dp = g 'dp':with { parent = 'all', nccl = { min_ctas = 4, max_ctas = 4 } } return t end "
        "}",
        share ? "true" : "false");
    o.text = text, o.length = strlen(text), o.name = "split";
    long long before = device_bytes();
    mgrid_state *s = mgrid_open(b, "split", 0, NULL, &o, &e);
    if (!s) {
      test(false, e.message);
      continue;
    }
    site.machine_ranks = size;
    mgrid_plan_resources(mgrid_state_plan(s), rank, &site, &r, &e);
    row(share ? "created, and split from with split_share" : "created, and split from", 4,
        r.created, device_bytes() - before, !share);
    mgrid_state_free(s);
  }
}

int main(int argc, char **argv) {
  mgrid_error e = MGRID_ERROR_INIT;
  load();
  load_rig();
  tap_begin(&argc, &argv);
  int hosts = as_hosts();
  mgrid_backend *mpi = mgrid_mpi_backend(MPI_COMM_WORLD, NULL, &e), *b = open_nccl(mpi, &e);
  mgrid_state *first = world_of(b, "max_ctas = 1", &e); /* what a process takes once */
  bool splits = argc > 1 && !strcmp(argv[1], "split");
  if (splits) split(b);
  for (int i = 1; i < argc && !splits; i++) measure(b, atoi(argv[i]), hosts);
  mgrid_state_free(first);
  mgrid_backend_free(b);
  mgrid_backend_free(mpi);
  return tap_end();
}
