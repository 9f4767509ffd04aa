/* SPDX-License-Identifier: MIT
**
** host.c - the nccl backend on NCCL's own host code, over the CUDA runtime of tests/cuda, where no
** kernel runs: so what is made is compared with the plan, and no value of a collective is looked
** at. Under mpirun; host.sh runs it. TAP from rank 0.
**
**     host made RECIPE [NAME=VALUE ...]    each communicator of the recipe: size and rank; then all are gone
**     host memory|cycles|fields|scalable|denied|shrink|revoked|split|gathered|stopped
*/
#include "rigged.h"

#include <signal.h>
#include <sys/wait.h>

/* Is what NCCL says of a communicator what the plan says of the group? */
static bool as_planned(const mgrid_state *s, int *n) {
  const mgrid_plan *p = mgrid_state_plan(s);
  bool ok = true;
  for (size_t i = 0; i < mgrid_plan_nfamilies(p); i++) {
    mgrid_error e = MGRID_ERROR_INIT;
    const mgrid_group *g = mgrid_state_group(s, mgrid_plan_family_name(p, i), &e);
    int members = -1, me = -1;
    if (!g || !mgrid_nccl_comm(g)) continue;
    p_CommCount(mgrid_nccl_comm(g), &members);
    p_CommUserRank(mgrid_nccl_comm(g), &me);
    ok &= members == mgrid_group_size(g) && me == mgrid_group_position(g);
    ++*n;
  }
  return ok;
}

static void made(mgrid_backend *mpi, const char *recipe, size_t nargs, const char *const *args) {
  mgrid_error e = MGRID_ERROR_INIT;
  char what[256];
  int n = 0, all = 0;
  mgrid_backend *b = open_nccl(mpi, &e);
  mgrid_state *s = mgrid_open(b, recipe, nargs, args, NULL, &e);
  if (!s) fprintf(stderr, "# rank %d: %s\n", rank, e.message);
  bool ok = s && as_planned(s, &n);
  MPI_Allreduce(&n, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  snprintf(what, sizeof what,
           "%s: %d memberships in NCCL's communicators, each with its size and rank", recipe, all);
  test(ok && all > 0, what);
  mgrid_state_free(s);
  mgrid_backend_free(b);
  snprintf(what, sizeof what, "%s: no memory of the device is left", recipe);
  if (count("cumem")) fprintf(stderr, "# rank %d: %lld bytes\n", rank, count("cumem"));
  test(count("cumem") == 0, what);
}

static void memory(mgrid_backend *mpi) {
  mgrid_error e = MGRID_ERROR_INIT;
  mgrid_backend *b = open_nccl(mpi, &e);
  mgrid_state *first = world_of(b, "min_ctas = 1, max_ctas = 1", &e);
  for (int channels = 2; channels <= 32; channels *= channels == 2 ? 2 : 8) {
    mgrid_gpu_memory predicted = MGRID_GPU_MEMORY_INIT;
    char options[64], what[160];
    long long before = device_bytes();
    snprintf(options, sizeof options, "min_ctas = %d, max_ctas = %d", channels, channels);
    mgrid_state *s = world_of(b, options, anew(&e));
    if (!s) fprintf(stderr, "# rank %d: %s\n", rank, e.message);
    long long bytes = device_bytes() - before;
    mgrid_plan_gpu_memory(mgrid_state_plan(s), rank, &predicted, &e);
    snprintf(what, sizeof what, "%d channels: %lld MiB are counted and %lld predicted", channels,
             bytes >> 20, (long long)predicted.created >> 20);
    test(s && bytes == (long long)predicted.created && bytes == (3LL * channels + 2) * (2 << 20),
         what);
    mgrid_state_free(s);
  }
  mgrid_state_free(first);
  mgrid_backend_free(b);
}

static void cycles(mgrid_backend *mpi) {
  enum { WARM = 10 };
  const int most = getenv("CYCLES") ? atoi(getenv("CYCLES")) : 100;
  char what[64];
  mgrid_error e = MGRID_ERROR_INIT;
  mgrid_backend *b = open_nccl(mpi, &e);
  int files = 0, threads = 0, streams = 0, n = 0;
  long long bytes = 0, pinned = 0;
  for (; n < most; n++) {
    mgrid_state *s = world_of(b, "max_ctas = 2", anew(&e));
    if (!s) break;
    mgrid_state_free(s);
    MPI_Barrier(MPI_COMM_WORLD);
    if (n != WARM) continue;
    files = entries("/proc/self/fd"), threads = entries("/proc/self/task");
    bytes = device_bytes(), pinned = count("host"),
    streams = (int)(count("streams") + count("events"));
  }
  if (n < most) fprintf(stderr, "# rank %d: cycle %d: %s\n", rank, n, e.message);
  snprintf(what, sizeof what, "%d states are made and freed", n);
  test(n == most, what);
  test(device_bytes() == bytes && count("host") == pinned,
       "no memory of the device and no pinned memory more than after ten");
  test(count("streams") + count("events") == streams, "no stream and no event more");
  /* a thread that ends may be seen for a moment */
  for (int i = 0; i < 100 && entries("/proc/self/task") > threads; i++) usleep(20000);
  if (entries("/proc/self/fd") > files || entries("/proc/self/task") > threads)
    fprintf(stderr, "# rank %d: files %d of %d, threads %d of %d\n", rank, entries("/proc/self/fd"),
            files, entries("/proc/self/task"), threads);
  test(entries("/proc/self/fd") <= files, "no file more");
  test(entries("/proc/self/task") <= threads, "no thread more");
  mgrid_backend_free(b);
}

/* host.sh allows rank 2 too little memory. */
static void denied(mgrid_backend *mpi) {
  mgrid_error e = MGRID_ERROR_INIT;
  mgrid_backend *b = open_nccl(mpi, &e);
  mgrid_state *s = world_of(b, "min_ctas = 32, max_ctas = 32", anew(&e));
  test(!s && e.status != MGRID_OK, "memory refused on one rank is an error on all");
  test(strstr(e.message, "rank 2") != NULL, "that names the rank");
  if (rank == 0) fprintf(stderr, "# %s\n", e.message);
  mgrid_backend_free(b);
}

static void shrink(mgrid_backend *mpi) {
  mgrid_error e = MGRID_ERROR_INIT;
  mgrid_backend *b = open_nccl(mpi, &e);
  mgrid_state *s = world_of(b, "max_ctas = 2", &e), *left = NULL;
  int64_t lost[] = { size - 1 };
  int n = 0;
  test(s != NULL, "a state over all ranks");
  if (rank != lost[0]) left = mgrid_state_shrink(s, "w", 1, lost, anew(&e));
  if (rank != lost[0] && !left) fprintf(stderr, "# rank %d: %s\n", rank, e.message);
  const mgrid_group *g = left ? mgrid_state_group(left, "w", anew(&e)) : NULL;
  test(rank == lost[0] || (g && mgrid_group_size(g) == size - 1 && as_planned(left, &n)),
       "the last rank is left out");
  mgrid_state_free(left);
  mgrid_state_free(s);
  mgrid_backend_free(b);
}

static void split(mgrid_backend *mpi) {
  static const char text[] =
      "return recipe { build = function(world) local t = topology(world) "
      "local g = grid(world, 'tp-dp', { tp = 2, dp = fill }) "
      "t.everyone = g('tp', 'dp') t.tp = g 'tp':with { parent = 'everyone' } "
      "t.dp = g 'dp':with { parent = 'everyone' } return t end }";
  mgrid_error e = MGRID_ERROR_INIT;
  mgrid_open_options o = MGRID_OPEN_OPTIONS_INIT;
  int n = 0;
  o.text = text, o.length = strlen(text), o.name = "host";
  mgrid_backend *b = open_nccl(mpi, &e);
  mgrid_state *s = mgrid_open(b, "split", 0, NULL, &o, &e);
  if (!s) fprintf(stderr, "# rank %d: %s\n", rank, e.message);
  test(s && as_planned(s, &n) && n == 3, "two families split from a parent");
  mgrid_state_free(s);
  mgrid_backend_free(b);
}

/* Every field of ncclConfig_t that the headers of this build have. */
static void fields(mgrid_backend *mpi) {
  static const char *const given[] = {
    "blocking = 0",
    "blocking = 1",
    "cga_cluster_size = 2",
    "collnet_enable = 0",
    "cta_policy = 1",
    "cta_policy = 2",
    "max_ctas = 2",
    "min_ctas = 2, max_ctas = 4",
    "net_name = 'Socket'",
    "nvls_ctas = 4",
    "shrink_share = 1",
    "split_share = 1",
    "traffic_class = 3",
    "n_channels_per_net_peer = 2",
    "nvlink_centric_sched = 1",
  };
  mgrid_error e = MGRID_ERROR_INIT;
  mgrid_backend *b = open_nccl(mpi, &e);
  for (size_t i = 0; i < sizeof given / sizeof *given; i++) {
    int n = 0;
    mgrid_state *s = world_of(b, given[i], anew(&e));
    if (!s) fprintf(stderr, "# rank %d: %s\n", rank, e.message);
    test(s && as_planned(s, &n) && n == 1, given[i]);
    mgrid_state_free(s);
  }
  mgrid_backend_free(b);
}

/* Several ids for a communicator, each served by another rank. */
static void scalable(mgrid_backend *mpi) {
  mgrid_error e = MGRID_ERROR_INIT;
  mgrid_nccl_options o = MGRID_NCCL_OPTIONS_INIT;
  for (int per = 1; per <= 4; per *= 2) {
    char what[80];
    int n = 0;
    o.timeout = 40, o.ranks_per_id = per;
    mgrid_backend *b = mgrid_backend_over(mpi, "nccl", &o, anew(&e));
    mgrid_state *s = world_of(b, "max_ctas = 2", &e);
    if (!s) fprintf(stderr, "# rank %d: %s\n", rank, e.message);
    snprintf(what, sizeof what, "%d ranks with an id for %d of them each", size, per);
    test(s && as_planned(s, &n) && n == 1, what);
    mgrid_state_free(s);
    mgrid_backend_free(b);
  }
}

static void revoked(mgrid_backend *mpi) {
  mgrid_error e = MGRID_ERROR_INIT;
  mgrid_backend *b = open_nccl(mpi, &e);
  mgrid_state *s = world_of(b, "max_ctas = 2", &e), *left = NULL;
  int64_t lost[] = { size - 1 };
  int n = 0;
  mgrid_status done = s ? mgrid_state_revoke(s, anew(&e)) : e.status;
  test(!done, done ? e.message : "a state is revoked");
  void *buffer = NULL;
  const mgrid_group *g = mgrid_state_group(s, "w", anew(&e));
  p_Malloc(&buffer, 8);
  ncclResult_t r =
      p_AllReduce(buffer, buffer, 1, ncclInt64, ncclSum, mgrid_nccl_comm(g), mgrid_nccl_stream(g));
  test(r != ncclSuccess && r != ncclInProgress, "then NCCL takes no call");
  p_Free(buffer);
  if (rank != lost[0]) left = mgrid_state_shrink(s, "w", 1, lost, anew(&e));
  if (rank != lost[0] && !left) fprintf(stderr, "# rank %d: %s\n", rank, e.message);
  test(rank == lost[0] || (left && as_planned(left, &n) && n == 1),
       "and the others go on without the last rank");
  mgrid_state_free(left);
  mgrid_state_free(s);
  mgrid_backend_free(b);
}

/* An all-gather by copy engines, which needs no kernel: real data. */
static void gathered(mgrid_backend *mpi) {
  enum { COUNT = 1 << 15 };
  static const char text[] =
      "return recipe { build = function(world) local t = topology(world) "
      "t.w = grid(world, 'a', { a = fill }) 'a':with { nccl = { cta_policy = 2 }, "
      "windows = { all = 4 << 20, part = 1 << 20 } } return t end }";
  mgrid_error e = MGRID_ERROR_INIT;
  mgrid_open_options o = MGRID_OPEN_OPTIONS_INIT;
  o.text = text, o.length = strlen(text), o.name = "gathered";
  mgrid_backend *b = open_nccl(mpi, &e);
  mgrid_state *s = mgrid_open(b, "gathered", 0, NULL, &o, &e);
  const mgrid_group *g = mgrid_state_group(s, "w", &e);
  mgrid_nccl_window all = MGRID_NCCL_WINDOW_INIT, part = MGRID_NCCL_WINDOW_INIT;
  long long *host = malloc(8 * sizeof *host * COUNT);
  if (!s) fprintf(stderr, "# rank %d: %s\n", rank, e.message);
  bool ok = s && host && !mgrid_group_window(g, "all", &all, &e)
            && !mgrid_group_window(g, "part", &part, &e);
  for (int i = 0; ok && i < COUNT; i++) host[i] = (long long)rank * COUNT + i;
  long long before = count("launches");
  ok = ok
       && p_Memcpy(part.buffer, host, COUNT * sizeof *host, cudaMemcpyHostToDevice) == cudaSuccess;
  ncclResult_t r = ok ? p_AllGather(part.buffer, all.buffer, COUNT, ncclInt64, mgrid_nccl_comm(g),
                                    mgrid_nccl_stream(g))
                      : ncclInternalError;
  ok = ok && r == ncclSuccess && p_StreamSynchronize(mgrid_nccl_stream(g)) == cudaSuccess;
  test(ok && count("launches") == before, "an all-gather by the copy engine launches no kernel");
  if (ok) p_Memcpy(host, all.buffer, (size_t)size * COUNT * sizeof *host, cudaMemcpyDeviceToHost);
  for (long long i = 0; ok && i < (long long)size * COUNT; i++) ok = host[i] == i;
  test(ok, "and brings every element");
  free(host);
  mgrid_state_free(s);
  mgrid_backend_free(b);
}

/* The state of a process, as /proc has it: 'T' is stopped. */
static char state_of(pid_t pid) {
  char path[64], line[512] = "", *at;
  FILE *f = NULL;
  snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
  if ((f = fopen(path, "r")) && !fgets(line, sizeof line, f)) *line = '\0';
  if (f) fclose(f);
  at = strrchr(line, ')');
  return at && at[1] ? at[2] : '\0';
}

/* A process that stops the last rank a moment after a creation has begun, until the others have
** ended it. */
static pid_t stopper(double after, double seconds) {
  pid_t pid = fork(), target = getppid();
  if (pid) return pid;
  usleep((useconds_t)(after * 1e6));
  kill(target, SIGSTOP);
  while (state_of(target) != 'T') usleep(1000);
  usleep((useconds_t)(seconds * 1e6));
  kill(target, SIGCONT);
  _exit(0);
}

/* The last rank stops within a creation: the others have an error that names it, in time. */
static void stopped(mgrid_backend *mpi) {
  enum { TIMEOUT = 5, GRACE = 3 };
  mgrid_error e = MGRID_ERROR_INIT;
  mgrid_nccl_options o = MGRID_NCCL_OPTIONS_INIT;
  char what[64];
  o.timeout = TIMEOUT;
  mgrid_backend *b = mgrid_backend_over(mpi, "nccl", &o, anew(&e));
  mgrid_plan *p = two(true, false, &e);
  bool last = rank == size - 1;
  MPI_Barrier(MPI_COMM_WORLD);
  pid_t pid = last ? stopper(0.2, TIMEOUT + GRACE + 1) : 0;
  double begun = MPI_Wtime();
  mgrid_state *s = mgrid_materialize(p, b, "stopped", anew(&e));
  double took = MPI_Wtime() - begun;
  snprintf(what, sizeof what, "rank %d is not there", size - 1);
  test(last || (!s && strstr(e.message, what)), e.status ? e.message : "no error");
  test(last || took < TIMEOUT + GRACE, "in time");
  if (pid) waitpid(pid, NULL, 0);
  mgrid_state_free(s);
  mgrid_backend_free(b);
  mgrid_plan_free(p);
}

typedef struct test_row {
  const char *name;
  void (*run)(mgrid_backend *mpi);
} test_row;
static const test_row tests[] = {
  { "memory", memory },     { "cycles", cycles }, { "fields", fields },
  { "scalable", scalable }, { "denied", denied }, { "shrink", shrink },
  { "revoked", revoked },   { "split", split },   { "gathered", gathered },
  { "stopped", stopped },
};

int main(int argc, char **argv) {
  mgrid_error e = MGRID_ERROR_INIT;
  const char *what = argc > 1 ? argv[1] : "";
  bool known = false;
  load();
  load_rig();
  tap_begin(&argc, &argv);
  as_hosts();
  mgrid_backend *mpi = mgrid_mpi_backend(MPI_COMM_WORLD, NULL, &e);
  if (argc > 2 && strcmp(what, "made") == 0) {
    made(mpi, argv[2], (size_t)(argc - 3), (const char *const *)argv + 3);
    known = true;
  }
  for (size_t i = 0; i < sizeof tests / sizeof *tests && !known; i++)
    if (strcmp(what, tests[i].name) == 0) tests[i].run(mpi), known = true;
  if (!known) test(false, "a word that host.c does not know");
  mgrid_backend_free(mpi);
  return tap_end();
}
