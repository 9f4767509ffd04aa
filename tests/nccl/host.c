/* SPDX-License-Identifier: MIT
**
** host.c - the nccl backend on NCCL's own host code, over the CUDA runtime of tests/cuda, where no kernel runs: so what
** is made is compared with the plan, and no value of a collective is looked at. Under mpirun; host.sh runs it. TAP from rank 0.
**
**     host made RECIPE [NAME=VALUE ...]    each communicator of the recipe: size and rank; then all are gone
**     host memory|cycles|denied|shrink|split
*/
#include "trainer.h"

#include <dirent.h>

static long long (*count)(const char *); /* cudarig_count of the runtime */

static void load_rig(void) {
  void *rig = dlopen("libcuda.so.1", RTLD_NOW), *found = rig ? dlsym(rig, "cudarig_count") : NULL;
  if (!found) exit(77);
  memcpy(&count, &found, sizeof count);
}

static long long device_bytes(void) { return count("device") + count("cumem"); }

static mgrid_backend *open_nccl(mgrid_backend *mpi, mgrid_error *e) {
  mgrid_nccl_options o = MGRID_NCCL_OPTIONS_INIT;
  o.timeout = 40;
  return mgrid_backend_over(mpi, "nccl", &o, e);
}

/* Is what NCCL says of a communicator what the plan says of the group? */
static bool as_planned(const mgrid_state *s, int *n) {
  const mgrid_plan *p = mgrid_state_plan(s);
  bool              ok = true;
  for (size_t i = 0; i < mgrid_plan_nfamilies(p); i++) {
    mgrid_error        e = MGRID_ERROR_INIT;
    const mgrid_group *g = mgrid_state_group(s, mgrid_plan_family_name(p, i), &e);
    int                members = -1, me = -1;
    if (!g || !mgrid_nccl_comm(g)) continue;
    p_CommCount(mgrid_nccl_comm(g), &members);
    p_CommUserRank(mgrid_nccl_comm(g), &me);
    ok &= members == mgrid_group_size(g) && me == mgrid_group_position(g);
    ++*n;
  }
  return ok;
}

static void made(mgrid_backend *mpi, const char *recipe, size_t nargs, const char *const *args) {
  mgrid_error    e = MGRID_ERROR_INIT;
  char           what[256];
  int            n = 0, all = 0;
  mgrid_backend *b = open_nccl(mpi, &e);
  mgrid_state   *s = mgrid_open(b, recipe, nargs, args, NULL, &e);
  if (!s) fprintf(stderr, "# rank %d: %s\n", rank, e.message);
  bool ok = s && as_planned(s, &n);
  MPI_Allreduce(&n, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  snprintf(what, sizeof what, "%s: %d memberships in NCCL's communicators, each with its size and rank", recipe, all);
  test(ok && all > 0, what);
  mgrid_state_free(s);
  mgrid_backend_free(b);
  snprintf(what, sizeof what, "%s: no memory of the device is left", recipe);
  if (count("cumem")) fprintf(stderr, "# rank %d: %lld bytes\n", rank, count("cumem"));
  test(count("cumem") == 0, what);
}

/* One family over all ranks, with the options of a text. */
static mgrid_state *world_of(mgrid_backend *b, const char *options, mgrid_error *e) {
  char               text[512];
  mgrid_open_options o = MGRID_OPEN_OPTIONS_INIT;
  snprintf(text, sizeof text,
           "return recipe { build = function(world) local t = topology(world) "
           "t.w = grid(world, 'a', { a = fill }) 'a':with { unique = true, nccl = { %s } } return t end }",
           options);
  o.text = text, o.length = strlen(text), o.name = options;
  return mgrid_open(b, "world", 0, NULL, &o, e);
}

static void memory(mgrid_backend *mpi) {
  mgrid_error    e = MGRID_ERROR_INIT;
  mgrid_backend *b = open_nccl(mpi, &e);
  mgrid_state   *first = world_of(b, "min_ctas = 1, max_ctas = 1", &e);
  for (int channels = 2; channels <= 32; channels *= channels == 2 ? 2 : 8) {
    mgrid_gpu_memory predicted = MGRID_GPU_MEMORY_INIT;
    char             options[64], what[160];
    long long        before = device_bytes();
    snprintf(options, sizeof options, "min_ctas = %d, max_ctas = %d", channels, channels);
    mgrid_state *s = world_of(b, options, anew(&e));
    if (!s) fprintf(stderr, "# rank %d: %s\n", rank, e.message);
    long long bytes = device_bytes() - before;
    mgrid_plan_gpu_memory(mgrid_state_plan(s), rank, &predicted, &e);
    snprintf(what, sizeof what, "%d channels: %lld MiB are counted and %lld predicted", channels, bytes >> 20,
             (long long)predicted.created >> 20);
    test(s && bytes == (long long)predicted.created && bytes == (3LL * channels + 2) * (2 << 20), what);
    mgrid_state_free(s);
  }
  mgrid_state_free(first);
  mgrid_backend_free(b);
}

static int entries(const char *folder) {
  DIR *d = opendir(folder);
  int  n = 0;
  while (d && readdir(d)) n++;
  if (d) closedir(d);
  return n;
}

static void cycles(mgrid_backend *mpi) {
  enum { CYCLES = 100, WARM = 10 };
  mgrid_error    e = MGRID_ERROR_INIT;
  mgrid_backend *b = open_nccl(mpi, &e);
  int            files = 0, threads = 0, streams = 0, n = 0;
  long long      bytes = 0, pinned = 0;
  for (; n < CYCLES; n++) {
    mgrid_state *s = world_of(b, "max_ctas = 2", anew(&e));
    if (!s) break;
    mgrid_state_free(s);
    MPI_Barrier(MPI_COMM_WORLD);
    if (n != WARM) continue;
    files = entries("/proc/self/fd"), threads = entries("/proc/self/task");
    bytes = device_bytes(), pinned = count("host"), streams = (int)(count("streams") + count("events"));
  }
  if (n < CYCLES) fprintf(stderr, "# rank %d: cycle %d: %s\n", rank, n, e.message);
  test(n == CYCLES, "a hundred states are made and freed");
  test(device_bytes() == bytes && count("host") == pinned,
       "no memory of the device and no pinned memory more than after ten");
  test(count("streams") + count("events") == streams, "no stream and no event more");
  /* a thread that ends may be seen for a moment */
  for (int i = 0; i < 100 && entries("/proc/self/task") > threads; i++) usleep(20000);
  if (entries("/proc/self/fd") > files || entries("/proc/self/task") > threads)
    fprintf(stderr, "# rank %d: files %d of %d, threads %d of %d\n", rank, entries("/proc/self/fd"), files,
            entries("/proc/self/task"), threads);
  test(entries("/proc/self/fd") <= files, "no file more");
  test(entries("/proc/self/task") <= threads, "no thread more");
  mgrid_backend_free(b);
}

/* host.sh allows rank 2 too little memory. */
static void denied(mgrid_backend *mpi) {
  mgrid_error    e = MGRID_ERROR_INIT;
  mgrid_backend *b = open_nccl(mpi, &e);
  mgrid_state   *s = world_of(b, "min_ctas = 32, max_ctas = 32", anew(&e));
  test(!s && e.status != MGRID_OK, "memory refused on one rank is an error on all");
  test(strstr(e.message, "rank 2") != NULL, "that names the rank");
  if (rank == 0) fprintf(stderr, "# %s\n", e.message);
  mgrid_backend_free(b);
}

static void shrink(mgrid_backend *mpi) {
  mgrid_error    e = MGRID_ERROR_INIT;
  mgrid_backend *b = open_nccl(mpi, &e);
  mgrid_state   *s = world_of(b, "max_ctas = 2", &e), *left = NULL;
  int64_t        lost[] = { size - 1 };
  int            n = 0;
  test(s != NULL, "a state over all ranks");
  if (rank != lost[0]) left = mgrid_state_shrink(s, "w", 1, lost, anew(&e));
  if (rank != lost[0] && !left) fprintf(stderr, "# rank %d: %s\n", rank, e.message);
  const mgrid_group *g = left ? mgrid_state_group(left, "w", anew(&e)) : NULL;
  test(rank == lost[0] || (g && mgrid_group_size(g) == size - 1 && as_planned(left, &n)), "the last rank is left out");
  mgrid_state_free(left);
  mgrid_state_free(s);
  mgrid_backend_free(b);
}

static void split(mgrid_backend *mpi) {
  static const char  text[] = "return recipe { build = function(world) local t = topology(world) "
                              "local g = grid(world, 'tp-dp', { tp = 2, dp = fill }) "
                              "t.everyone = g('tp', 'dp') t.tp = g 'tp':with { parent = 'everyone' } "
                              "t.dp = g 'dp':with { parent = 'everyone' } return t end }";
  mgrid_error        e = MGRID_ERROR_INIT;
  mgrid_open_options o = MGRID_OPEN_OPTIONS_INIT;
  int                n = 0;
  o.text = text, o.length = strlen(text), o.name = "host";
  mgrid_backend *b = open_nccl(mpi, &e);
  mgrid_state   *s = mgrid_open(b, "split", 0, NULL, &o, &e);
  if (!s) fprintf(stderr, "# rank %d: %s\n", rank, e.message);
  test(s && as_planned(s, &n) && n == 3, "two families split from a parent");
  mgrid_state_free(s);
  mgrid_backend_free(b);
}

int main(int argc, char **argv) {
  mgrid_error e = MGRID_ERROR_INIT;
  const char *what = argc > 1 ? argv[1] : "";
  load();
  load_rig();
  tap_begin(&argc, &argv);
  const char *hosts = getenv("MOONGRID_TEST_HOSTS"); /* that NCCL is to see */
  if (hosts && atoi(hosts) > 0) {
    char id[32];
    snprintf(id, sizeof id, "host%d", rank * atoi(hosts) / size);
    setenv("NCCL_HOSTID", id, 1);
  }
  mgrid_backend *mpi = mgrid_mpi_backend(MPI_COMM_WORLD, NULL, &e);
  if (strcmp(what, "made") == 0 && argc > 2)
    made(mpi, argv[2], (size_t)(argc - 3), (const char *const *)argv + 3);
  else if (strcmp(what, "memory") == 0)
    memory(mpi);
  else if (strcmp(what, "cycles") == 0)
    cycles(mpi);
  else if (strcmp(what, "denied") == 0)
    denied(mpi);
  else if (strcmp(what, "shrink") == 0)
    shrink(mpi);
  else if (strcmp(what, "split") == 0)
    split(mpi);
  else
    test(false, "usage: host made RECIPE ... | memory | cycles | denied | shrink | split");
  mgrid_backend_free(mpi);
  return tap_end();
}
