/* SPDX-License-Identifier: MIT
**
** measure.c - the cost of communicators on a real GPU: the time to make those of a layout, by
** moongrid and by plain calls of NCCL, and the memory of the GPU for a communicator, with the
** prediction. It uses moongrid as a trainer does: the public headers and the shared libraries.
** Every communicator is used, and every result is checked. Rank 0 prints lines "KEY<tab>VALUE",
** each flushed, so that what was measured stays if the next step hangs.
**
**     measure create TURNS                  each of five ways TURNS times, after a first turn
**     measure memory "max_ctas=4" "" ...    options of a family, in turn
*/
#include "job.h"
#include "layout.h"

enum { MOST = 64, COPIES = 4 };

/* ----------------------------------------------------------------------- create */

typedef struct held {
  ncclComm_t comm;
  const mgrid_family *family;
  int64_t group, position;
} held;

typedef struct job {
  const mgrid_plan *plan;
  int n; /* communicators held */
  held comm[MOST];
} job;

static ncclConfig_t plain_config(void) {
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 1;
  return config;
}

static void hold(job *j, ncclComm_t comm, const mgrid_family *f, int64_t group, int64_t position) {
  if (j->n == MOST) fail("too many communicators");
  j->comm[j->n++] = (held){ comm, f, group, position };
}

/* Return whether the ith family gets communicators: if it has groups of several ranks and, unless
** `all`, shares none with an earlier family. */
static bool wanted(const job *j, size_t i, bool all) {
  return mgrid_family_max_size(family_of(j->plan, i)) > 1
         && (all || !mgrid_plan_shares(j->plan, mgrid_plan_family_name(j->plan, i)));
}

static ncclComm_t init(const mgrid_family *f, int64_t group, int64_t position, int tag) {
  ncclUniqueId id;
  ncclConfig_t config = plain_config();
  ncclComm_t comm = NULL;
  int64_t size = mgrid_family_size(f, group);
  if (position > 0) {
    MPI_Recv(&id, sizeof id, MPI_BYTE, (int)mgrid_family_rank(f, group, 0), tag, MPI_COMM_WORLD,
             MPI_STATUS_IGNORE);
  } else {
    nccl_must(gpu.GetUniqueId(&id), "ncclGetUniqueId");
    for (int64_t p = 1; p < size; p++)
      MPI_Send(&id, sizeof id, MPI_BYTE, (int)mgrid_family_rank(f, group, p), tag, MPI_COMM_WORLD);
  }
  nccl_must(gpu.CommInitRankConfig(&comm, (int)size, id, (int)position, &config),
            "ncclCommInitRankConfig");
  return comm;
}

/* Make the communicators one after the other in the order of the families, which is the same on all
** ranks, so no rank waits for ever. */
static void by_init(job *j, bool all) {
  for (size_t i = 0; i < mgrid_plan_nfamilies(j->plan); i++) {
    const mgrid_family *f = family_of(j->plan, i);
    int64_t group, position;
    if (!wanted(j, i, all) || !mgrid_family_locate(f, gpu.rank, 0, &group, &position)) continue;
    if (mgrid_family_size(f, group) > 1)
      hold(j, init(f, group, position, (int)i), f, group, position);
  }
}

/* Make a communicator of the world; all ranks split it for each family. */
static void by_split(job *j, const mgrid_family *world, bool all) {
  ncclComm_t parent = init(world, 0, gpu.rank, MOST);
  hold(j, parent, world, 0, gpu.rank);
  for (size_t i = 0; i < mgrid_plan_nfamilies(j->plan); i++) {
    const mgrid_family *f = family_of(j->plan, i);
    int64_t group = -1, position = 0;
    ncclComm_t comm = NULL;
    if (!wanted(j, i, all)) continue;
    bool in = mgrid_family_locate(f, gpu.rank, 0, &group, &position);
    nccl_must(
        gpu.CommSplit(parent, in ? (int)group : NCCL_SPLIT_NOCOLOR, (int)position, &comm, NULL),
        "ncclCommSplit");
    if (in) hold(j, comm, f, group, position);
  }
}

static void by_moongrid(job *j, mgrid_state *state) {
  for (size_t i = 0; i < mgrid_plan_nfamilies(j->plan); i++) {
    mgrid_error e = MGRID_ERROR_INIT;
    const mgrid_family *f = family_of(j->plan, i);
    const mgrid_group *g = mgrid_state_group(state, mgrid_plan_family_name(j->plan, i), &e);
    if (wanted(j, i, false) && mgrid_nccl_comm(g))
      hold(j, mgrid_nccl_comm(g), f, mgrid_group_index(g), mgrid_group_position(g));
  }
}

/* Check the size, the rank and the sum of the members of each communicator, in order. */
static void use(const job *j, lane own) {
  for (int i = 0; i < j->n; i++) {
    const held *h = &j->comm[i];
    int count = -1, rank = -1;
    char what[32];
    int64_t sum = 0, size = mgrid_family_size(h->family, h->group);
    for (int64_t p = 0; p < size; p++) sum += mgrid_family_rank(h->family, h->group, p);
    nccl_must(gpu.CommCount(h->comm, &count), "ncclCommCount");
    nccl_must(gpu.CommUserRank(h->comm, &rank), "ncclCommUserRank");
    if (count != size || rank != h->position)
      fail("communicator %d: rank %d of %d", i, rank, count);
    snprintf(what, sizeof what, "communicator %d", i);
    sum_checked(h->comm, own.stream, own.data, 1, size, sum, what);
  }
}

/* Finalize all before the first is destroyed, so that no two ranks can wait for each other. */
static void destroy(const job *j) {
  for (int i = 0; i < j->n; i++)
    settle(j->comm[i].comm, gpu.CommFinalize(j->comm[i].comm), "ncclCommFinalize");
  nccl_must(gpu.GroupStart(), "ncclGroupStart");
  for (int i = 0; i < j->n; i++) nccl_must(gpu.CommDestroy(j->comm[i].comm), "ncclCommDestroy");
  nccl_must(gpu.GroupEnd(), "ncclGroupEnd");
}

/* Print the ms from when the first rank began to when the last rank was done. */
static void say_wall(const char *way, const char *key, double began, double done) {
  double first, last;
  MPI_Reduce(&began, &first, 1, MPI_DOUBLE, MPI_MIN, 0, MPI_COMM_WORLD);
  MPI_Reduce(&done, &last, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
  tell(1e3 * (last - first), "%s.%s", way, key);
}

typedef struct layout_of {
  mgrid_plan *plan;
  mgrid_family *world;
  mgrid_backend *mpi;
} layout_of;

/* Make, use and destroy all communicators once. The first turn is not compared with others: in it
** NCCL starts, and the first way also loads CUDA's kernels. */
static void turn_of(const char *way, int turn, const layout_of *l, lane own) {
  mgrid_error e = MGRID_ERROR_INIT;
  job j = { .plan = l->plan };
  mgrid_backend *b = NULL;
  mgrid_state *state = NULL;
  bool all = strstr(way, "_all") != NULL;
  const char *key = turn ? "again" : "cold";
  MPI_Barrier(MPI_COMM_WORLD);
  double began = now();
  if (strcmp(way, "ours") == 0) {
    b = job_backend(l->mpi, 0);
    double opened = now();
    state = mgrid_materialize(l->plan, b, "gpu", &e);
    double done = now();
    if (!state) fail("%s", e.message);
    say_wall(way, key, opened, done);
    if (turn == 0) say_wall(way, "open", began, opened);
    by_moongrid(&j, state);
  } else {
    if (strncmp(way, "split", 5) == 0)
      by_split(&j, l->world, all);
    else
      by_init(&j, all);
    say_wall(way, key, began, now());
  }
  MPI_Barrier(MPI_COMM_WORLD);
  began = now();
  use(&j, own);
  if (turn == 0) say_wall(way, "first", began, now());
  if (turn == 0) tell(j.n, "%s.comms", way);
  MPI_Barrier(MPI_COMM_WORLD);
  if (!state) destroy(&j);
  mgrid_state_free(state);
  mgrid_backend_free(b);
}

static void create(int turns) {
  static const sizes of[] = { { 2, 2, 1, 1, 2, 1 }, { 4, 2, 1, 2, 2, 1 }, { 8, 2, 2, 2, 2, 2 } };
  static const char *const ways[] = { "ours", "serial", "split", "serial_all", "split_all" };
  mgrid_error e = MGRID_ERROR_INIT;
  const sizes *s = NULL;
  for (int i = 0; i < 3; i++)
    if (of[i].world == gpu.ranks) s = &of[i];
  if (!s) fail("the layouts are for 2, 4 and 8 ranks");
  mgrid_topology *t = layout_topology(&MEGATRON, *s, false, &e);
  mgrid_dim dim = { "world", gpu.ranks };
  const char *name = dim.name;
  mgrid_grid *grid = mgrid_grid_new(mgrid_world(gpu.ranks), 1, &dim, &e);
  layout_of l = { mgrid_plan_new(t, &e), mgrid_grid_along(grid, 1, &name, MGRID_GRID_ORDER, &e),
                  mgrid_mpi_backend(MPI_COMM_WORLD, NULL, &e) };
  if (!l.plan || !l.world || !l.mpi) fail("%s", e.message);
  mgrid_topology_free(t);
  mgrid_grid_free(grid);
  lane own = lane_open(); /* start CUDA before the clock starts */
  for (int turn = 0; turn <= turns; turn++)
    for (size_t w = 0; w < sizeof ways / sizeof *ways; w++) turn_of(ways[w], turn, &l, own);
  lane_close(own);
  mgrid_backend_free(l.mpi);
  mgrid_family_free(l.world);
  mgrid_plan_free(l.plan);
}

/* ----------------------------------------------------------------------- memory */

typedef struct level {
  double device, cpu; /* MiB in use; rank 0 reads them while all ranks wait */
} level;

/* Return the MiB that are available on the machine. Pinned memory and other processes reduce it. */
static double cpu_available(void) {
  FILE *f = fopen("/proc/meminfo", "r");
  char line[128];
  double kib = 0;
  while (f && fgets(line, sizeof line, f)) sscanf(line, "MemAvailable: %lf", &kib);
  if (f) fclose(f);
  return kib / 1024;
}

static level look(void) {
  size_t unused = 0, total = 0;
  cuda_must(gpu.cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  MPI_Barrier(MPI_COMM_WORLD);
  cuda_must(gpu.cudaMemGetInfo(&unused, &total), "cudaMemGetInfo");
  level l = { (double)(total - unused) / (1 << 20), -cpu_available() };
  MPI_Barrier(MPI_COMM_WORLD);
  return l;
}

/* Return the number of ranks whose GPU memory rank 0 sees: the ranks on its GPU or, if rank 0 does
** not see an allocation by the last of them, 1. */
static int seen_ranks(void) {
  enum { MIB = 64 };
  int device = gpu.device, on = 0, last = 0;
  void *block = NULL;
  MPI_Bcast(&device, 1, MPI_INT, 0, MPI_COMM_WORLD);
  int mine = device == gpu.device, highest = mine ? gpu.rank : 0;
  MPI_Allreduce(&mine, &on, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  MPI_Allreduce(&highest, &last, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  level before = look();
  if (last > 0 && gpu.rank == last) cuda_must(gpu.cudaMalloc(&block, MIB << 20), "cudaMalloc");
  level after = look();
  if (block) cuda_must(gpu.cudaFree(block), "cudaFree");
  int seen = after.device - before.device > MIB / 2 ? on : 1;
  MPI_Bcast(&seen, 1, MPI_INT, 0, MPI_COMM_WORLD);
  return seen;
}

static mgrid_state *make(const mgrid_plan *p, mgrid_backend *b, const char *name) {
  mgrid_error e = MGRID_ERROR_INIT;
  mgrid_state *state = mgrid_materialize(p, b, name, &e);
  if (!state) fail("%s", e.message);
  return state;
}

static void use_state(mgrid_state *state, int64_t *data) {
  int64_t sum = (int64_t)gpu.ranks * (gpu.ranks - 1) / 2;
  for (size_t i = 0; i < mgrid_plan_nfamilies(mgrid_state_plan(state)); i++) {
    mgrid_error e = MGRID_ERROR_INIT;
    const char *name = mgrid_plan_family_name(mgrid_state_plan(state), i);
    const mgrid_group *g = mgrid_state_group(state, name, &e);
    if (!mgrid_nccl_comm(g)) fail("%s has no communicator", name);
    sum_checked(mgrid_nccl_comm(g), mgrid_nccl_stream(g), data, LANE, gpu.ranks, sum, name);
  }
}

static void say(const char *key, double sum, double by) { tell(sum / by, "%s", key); }

/* The first communicator of a process also allocates memory for all later ones, so make and use a
** communicator before measuring. */
static void cost(const char *spec) {
  mgrid_error e = MGRID_ERROR_INIT;
  mgrid_gpu_memory predicted = MGRID_GPU_MEMORY_INIT;
  mgrid_plan *one = job_world_plan(1, spec), *more = job_world_plan(COPIES, spec);
  mgrid_backend *mpi = mgrid_mpi_backend(MPI_COMM_WORLD, NULL, &e);
  if (!mpi) fail("%s", e.message);
  lane own = lane_open();
  int seen = seen_ranks();
  mgrid_backend *b = job_backend(mpi, 0);
  mgrid_state *first = make(one, b, "first");
  use_state(first, own.data);
  level before = look();
  mgrid_state *state = make(more, b, "more");
  level made = look();
  use_state(state, own.data);
  level used = look();
  mgrid_state_free(state);
  level freed = look();
  if (mgrid_plan_gpu_memory(more, 0, &predicted, &e)) fail("%s", e.message);
  if (gpu.rank == 0) printf("options\t%s\n", spec);
  double by = (double)COPIES * seen, mib = 1 << 20, all = (double)COPIES * gpu.ranks;
  say("seen", seen, 1);
  say("created", made.device - before.device, by);
  say("first_use", used.device - made.device, by);
  say("kept", freed.device - before.device, by);
  say("host_created", made.cpu - before.cpu, all);
  say("host_first_use", used.cpu - made.cpu, all);
  say("predicted_created", (double)predicted.created, COPIES * mib);
  say("predicted_first_use", (double)predicted.first_use, COPIES * mib);
  mgrid_state_free(first);
  mgrid_backend_free(b);
  mgrid_backend_free(mpi);
  lane_close(own);
  mgrid_plan_free(one);
  mgrid_plan_free(more);
}

/* ------------------------------------------------------------------------- main */

int main(int argc, char **argv) {
  const char *what = argc > 2 ? argv[1] : "";
  job_begin(&argc, &argv);
  if (strcmp(what, "create") == 0 && argc == 3) {
    create(atoi(argv[2]));
  } else if (strcmp(what, "memory") == 0) {
    for (int i = 2; i < argc; i++) cost(argv[i]);
  } else {
    fail("measure create TURNS | memory OPTIONS ...");
  }
  MPI_Finalize();
  return 0;
}
