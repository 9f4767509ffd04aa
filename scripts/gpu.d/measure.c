/* SPDX-License-Identifier: MIT
**
** measure.c - what communicators cost on a real GPU: time to make those of a layout, by moongrid
** and by plain calls of NCCL, and memory of the GPU for one, beside the prediction. It uses moongrid
** as a trainer does: the public headers and the shared libraries. Every communicator is used, and
** every value that comes back is checked. Rank 0 prints "KEY<tab>VALUE".
**
**     measure about                              what libraries and GPU are here; without mpirun
**     measure create ours|serial|serial_all|split|split_all
**     measure memory "max_ctas=4"                options of a family, or ""
*/
#include "gpu.h"
#include "layout.h"
#include "moongrid_mpi.h"
#include "moongrid_nccl.h"

enum { MOST = 64, COPIES = 4, ELEMENTS = 65536 };

/* ------------------------------------------------------------------------ about */

/* The GPU's name, asked of the driver: the CUDA runtime tells it only in a struct whose layout changes
** from version to version. */
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
  void   *lib = dlopen(library, RTLD_NOW), *at = lib ? dlsym(lib, function) : NULL;
  char   *path = at && dladdr(at, &info) ? realpath(info.dli_fname, NULL) : NULL;
  printf("%s\t%s\n", key, path ? path : "unknown");
  free(path);
}

static void about(void) {
  int    nccl = 0, runtime = 0, driver = 0, major = 0, minor = 0;
  size_t free_now = 0, total = 0;
  char   name[128], cudart[32];
  nccl_must(gpu.GetVersion(&nccl), "ncclGetVersion");
  cuda_must(gpu.cudaRuntimeGetVersion(&runtime), "cudaRuntimeGetVersion");
  cuda_must(gpu.cudaDriverGetVersion(&driver), "cudaDriverGetVersion");
  cuda_must(gpu.cudaSetDevice(0), "cudaSetDevice");
  gpu.cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, 0); /* may fail: only for the report */
  gpu.cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, 0);
  cuda_must(gpu.cudaMemGetInfo(&free_now, &total), "cudaMemGetInfo");
  device_name(name, sizeof name);
  snprintf(cudart, sizeof cudart, "libcudart.so.%d", CUDART_VERSION / 1000);
  printf("name\t%s\ndevices\t%d\ncompute\t%d.%d\n", name, gpu.devices, major, minor);
  printf("memory\t%zu\nfree\t%zu\n", total >> 20, free_now >> 20);
  printf("nccl\t%d.%d.%d\nheaders\t%d.%d.%d\n", nccl / 10000, nccl % 10000 / 100, nccl % 100, NCCL_MAJOR, NCCL_MINOR,
         NCCL_PATCH);
  printf("runtime\t%d.%d\ndriver\t%d.%d\n", runtime / 1000, runtime % 1000 / 10, driver / 1000, driver % 1000 / 10);
  say_file("nccl file", "libnccl.so.2", "ncclGetVersion");
  say_file("cudart file", cudart, "cudaRuntimeGetVersion");
  printf("success\t%s\n", gpu.GetErrorString(ncclSuccess)); /* the real NCCL and the stand-in answer differently */
}

/* ----------------------------------------------------------------------- create */

typedef struct held {
  ncclComm_t          comm;
  const mgrid_family *family;
  int64_t             group, position;
} held;

typedef struct job {
  const mgrid_plan *plan;
  int               n; /* communicators held */
  held              comm[MOST];
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

/* Families with groups of several ranks; of those with equal members all, or the first alone, as
** moongrid shares them. */
static bool wanted(const job *j, size_t i, bool all) {
  return mgrid_family_max_size(mgrid_plan_family(j->plan, i)) > 1 && (all || mgrid_plan_shares(j->plan, i) < 0);
}

static ncclComm_t init(const mgrid_family *f, int64_t group, int64_t position, int tag) {
  ncclUniqueId id;
  ncclConfig_t config = plain_config();
  ncclComm_t   comm = NULL;
  int64_t      size = mgrid_family_size(f, group);
  if (position > 0) {
    MPI_Recv(&id, sizeof id, MPI_BYTE, (int)mgrid_family_rank(f, group, 0), tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  } else {
    nccl_must(gpu.GetUniqueId(&id), "ncclGetUniqueId");
    for (int64_t p = 1; p < size; p++)
      MPI_Send(&id, sizeof id, MPI_BYTE, (int)mgrid_family_rank(f, group, p), tag, MPI_COMM_WORLD);
  }
  nccl_must(gpu.CommInitRankConfig(&comm, (int)size, id, (int)position, &config), "ncclCommInitRankConfig");
  return comm;
}

/* One after the other, in the order of the families: the same on all ranks, so nobody waits for ever. */
static void by_init(job *j, bool all) {
  for (size_t i = 0; i < mgrid_plan_nfamilies(j->plan); i++) {
    const mgrid_family *f = mgrid_plan_family(j->plan, i);
    int64_t             group, position;
    if (!wanted(j, i, all) || !mgrid_family_locate(f, gpu.rank, 0, &group, &position)) continue;
    if (mgrid_family_size(f, group) > 1) hold(j, init(f, group, position, (int)i), f, group, position);
  }
}

/* A communicator of the world, and of it a split for each family, by everybody. */
static void by_split(job *j, const mgrid_family *world, bool all) {
  ncclComm_t parent = init(world, 0, gpu.rank, MOST);
  hold(j, parent, world, 0, gpu.rank);
  for (size_t i = 0; i < mgrid_plan_nfamilies(j->plan); i++) {
    const mgrid_family *f = mgrid_plan_family(j->plan, i);
    int64_t             group = -1, position = 0;
    ncclComm_t          comm = NULL;
    if (!wanted(j, i, all)) continue;
    bool in = mgrid_family_locate(f, gpu.rank, 0, &group, &position);
    nccl_must(gpu.CommSplit(parent, in ? (int)group : NCCL_SPLIT_NOCOLOR, (int)position, &comm, NULL), "ncclCommSplit");
    if (in) hold(j, comm, f, group, position);
  }
}

static void by_moongrid(job *j, mgrid_state *state) {
  for (size_t i = 0; i < mgrid_plan_nfamilies(j->plan); i++) {
    mgrid_error         e = MGRID_ERROR_INIT;
    const mgrid_family *f = mgrid_plan_family(j->plan, i);
    const mgrid_group  *g = mgrid_state_group(state, mgrid_plan_family_name(j->plan, i), &e);
    if (wanted(j, i, false) && mgrid_nccl_comm(g))
      hold(j, mgrid_nccl_comm(g), f, mgrid_group_index(g), mgrid_group_rank(g));
  }
}

/* Size, rank and the sum of the members, of each communicator in order. */
static void use(const job *j, int64_t *data, cudaStream_t stream) {
  for (int i = 0; i < j->n; i++) {
    const held *h = &j->comm[i];
    int         count = -1, rank = -1;
    char        what[32];
    int64_t     sum = 0, size = mgrid_family_size(h->family, h->group);
    for (int64_t p = 0; p < size; p++) sum += mgrid_family_rank(h->family, h->group, p);
    nccl_must(gpu.CommCount(h->comm, &count), "ncclCommCount");
    nccl_must(gpu.CommUserRank(h->comm, &rank), "ncclCommUserRank");
    if (count != size || rank != h->position) fail("communicator %d: rank %d of %d", i, rank, count);
    snprintf(what, sizeof what, "communicator %d", i);
    sum_checked(h->comm, stream, data, 1, size, sum, what);
  }
}

/* All are finalized before the first is destroyed: then no order can make two ranks wait for each
** other. */
static void destroy(const job *j) {
  for (int i = 0; i < j->n; i++) settle(j->comm[i].comm, gpu.CommFinalize(j->comm[i].comm), "ncclCommFinalize");
  nccl_must(gpu.GroupStart(), "ncclGroupStart");
  for (int i = 0; i < j->n; i++) nccl_must(gpu.CommDestroy(j->comm[i].comm), "ncclCommDestroy");
  nccl_must(gpu.GroupEnd(), "ncclGroupEnd");
}

/* From the first rank that began to the last that was done, in ms. */
static void say_wall(const char *key, double began, double done) {
  double first, last;
  MPI_Reduce(&began, &first, 1, MPI_DOUBLE, MPI_MIN, 0, MPI_COMM_WORLD);
  MPI_Reduce(&done, &last, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
  if (gpu.rank == 0) printf("%s\t%.1f\n", key, 1e3 * (last - first));
}

static mgrid_backend *open_backend(mgrid_backend *mpi) {
  mgrid_error        e = MGRID_ERROR_INIT;
  mgrid_nccl_options o = MGRID_NCCL_OPTIONS_INIT;
  o.device = gpu.device;
  o.share_gpu = gpu.devices < gpu.ranks;
  mgrid_backend *b = mgrid_nccl_backend(mpi, &o, &e);
  if (!b) fail("%s", e.message);
  return b;
}

static void create(const char *way) {
  static const sizes of[] = { { 2, 2, 1, 1, 2, 1 }, { 4, 2, 1, 2, 2, 1 }, { 8, 2, 2, 2, 2, 2 } };
  mgrid_error        e = MGRID_ERROR_INIT;
  const sizes       *s = NULL;
  for (int i = 0; i < 3; i++)
    if (of[i].world == gpu.ranks) s = &of[i];
  if (!s) fail("the layouts are for 2, 4 and 8 ranks");
  mgrid_topology *t = layout_topology(&MEGATRON, *s, false, &e);
  mgrid_plan     *p = mgrid_plan_new(t, &e);
  mgrid_dim       dim = { "world", gpu.ranks };
  const char     *name = dim.name;
  mgrid_grid     *grid = mgrid_grid_new(mgrid_world(gpu.ranks), 1, &dim, &e);
  mgrid_family   *world = mgrid_grid_along(grid, 1, &name, MGRID_GRID_ORDER, &e);
  mgrid_backend  *mpi = mgrid_mpi_backend(MPI_COMM_WORLD, &e);
  if (!p || !world || !mpi) fail("%s", e.message);
  mgrid_topology_free(t);
  mgrid_grid_free(grid);

  int64_t     *data = NULL;
  cudaStream_t stream;
  cuda_must(gpu.cudaMalloc((void **)&data, sizeof *data), "cudaMalloc"); /* start CUDA before the clock starts */
  cuda_must(gpu.cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
  bool ours = strcmp(way, "ours") == 0, all = strstr(way, "_all") != NULL;
  if (!ours && strncmp(way, "serial", 6) != 0 && strncmp(way, "split", 5) != 0) fail("no way '%s'", way);
  for (int turn = 0; turn < 2; turn++) {
    job            j = { .plan = p };
    mgrid_backend *b = NULL;
    mgrid_state   *state = NULL;
    MPI_Barrier(MPI_COMM_WORLD);
    double began = now();
    if (ours) {
      b = open_backend(mpi);
      double opened = now();
      state = mgrid_materialize(p, b, "gpu", &e);
      double done = now();
      if (!state) fail("%s", e.message);
      say_wall(turn ? "again" : "cold", opened, done);
      if (turn == 0) say_wall("open", began, opened);
      by_moongrid(&j, state);
    } else {
      if (way[1] == 'p')
        by_split(&j, world, all);
      else
        by_init(&j, all);
      double done = now();
      say_wall(turn ? "again" : "cold", began, done);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    began = now();
    use(&j, data, stream);
    if (turn == 0) say_wall("first", began, now());
    if (turn == 0 && gpu.rank == 0) printf("comms\t%d\n", j.n);
    MPI_Barrier(MPI_COMM_WORLD);
    if (!ours) destroy(&j);
    mgrid_state_free(state);
    mgrid_backend_free(b);
  }
  cuda_must(gpu.cudaStreamDestroy(stream), "cudaStreamDestroy");
  cuda_must(gpu.cudaFree(data), "cudaFree");
  mgrid_backend_free(mpi);
  mgrid_family_free(world);
  mgrid_plan_free(p);
}

/* ----------------------------------------------------------------------- memory */

typedef struct level {
  double device, cpu; /* MiB in use, as rank 0 sees it while all ranks stand still */
} level;

static double cpu_available(
    void) { /* MiB of the machine, which includes pinned memory, and memory of other processes */
  FILE  *f = fopen("/proc/meminfo", "r");
  char   line[128];
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

/* The number of ranks whose GPU memory rank 0 sees: those on its GPU. To check this the last of them allocates
** some. */
static int seen_ranks(void) {
  enum { MIB = 64 };
  int   device = gpu.device, on = 0, last = 0;
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

static mgrid_plan *world_plan(int copies, const char *spec) {
  mgrid_error     e = MGRID_ERROR_INIT;
  mgrid_dim       dim = { "world", gpu.ranks };
  const char     *name = dim.name;
  mgrid_options   options = MGRID_OPTIONS_INIT;
  mgrid_topology *t = mgrid_topology_new(gpu.ranks, &e);
  mgrid_grid     *grid = mgrid_grid_new(mgrid_world(gpu.ranks), 1, &dim, &e);
  mgrid_family   *f = mgrid_grid_along(grid, 1, &name, MGRID_GRID_ORDER, &e);
  mgrid_status    s = f && t ? MGRID_OK : MGRID_USAGE;
  options.unique = true; /* equal members would share one */
  options.nccl = spec;
  for (int i = 0; i < copies && !s; i++) {
    char family[16];
    snprintf(family, sizeof family, "copy_%d", i);
    s = mgrid_topology_add(t, family, f, &options, &e);
  }
  mgrid_plan *p = s ? NULL : mgrid_plan_new(t, &e);
  if (!p) fail("%s", e.message);
  mgrid_family_free(f);
  mgrid_grid_free(grid);
  mgrid_topology_free(t);
  return p;
}

static mgrid_state *make(const mgrid_plan *p, mgrid_backend *b, const char *name) {
  mgrid_error  e = MGRID_ERROR_INIT;
  mgrid_state *state = mgrid_materialize(p, b, name, &e);
  if (!state) fail("%s", e.message);
  return state;
}

static void use_state(mgrid_state *state, int64_t *data) {
  int64_t sum = (int64_t)gpu.ranks * (gpu.ranks - 1) / 2;
  for (size_t i = 0; i < mgrid_plan_nfamilies(mgrid_state_plan(state)); i++) {
    mgrid_error        e = MGRID_ERROR_INIT;
    const char        *name = mgrid_plan_family_name(mgrid_state_plan(state), i);
    const mgrid_group *g = mgrid_state_group(state, name, &e);
    if (!mgrid_nccl_comm(g)) fail("%s has no communicator", name);
    sum_checked(mgrid_nccl_comm(g), mgrid_nccl_stream(g), data, ELEMENTS, gpu.ranks, sum, name);
  }
}

static void say(const char *key, double sum, double by) {
  if (gpu.rank == 0) printf("%s\t%.1f\n", key, sum / by);
}

/* The first communicator of a process also allocates what all share, so make and use one before measuring. */
static void cost(const char *spec) {
  mgrid_error      e = MGRID_ERROR_INIT;
  mgrid_gpu_memory predicted = MGRID_GPU_MEMORY_INIT;
  int64_t         *data = NULL;
  mgrid_plan      *one = world_plan(1, spec), *more = world_plan(COPIES, spec);
  mgrid_backend   *mpi = mgrid_mpi_backend(MPI_COMM_WORLD, &e);
  if (!mpi) fail("%s", e.message);
  cuda_must(gpu.cudaMalloc((void **)&data, ELEMENTS * sizeof *data), "cudaMalloc");
  int            seen = seen_ranks();
  mgrid_backend *b = open_backend(mpi);
  mgrid_state   *first = make(one, b, "first");
  use_state(first, data);
  level        before = look();
  mgrid_state *state = make(more, b, "more");
  level        made = look();
  use_state(state, data);
  level used = look();
  mgrid_state_free(state);
  level freed = look();
  if (mgrid_plan_gpu_memory(more, 0, &predicted, &e)) fail("%s", e.message);
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
  cuda_must(gpu.cudaFree(data), "cudaFree");
  mgrid_plan_free(one);
  mgrid_plan_free(more);
}

/* ------------------------------------------------------------------------- main */

/* Choose as moongrid does, by the index on this machine. Several ranks on one GPU have to look like different
** machines to NCCL, which reads NCCL_HOSTID once, so set it before the first call. */
static void choose_device(void) {
  MPI_Comm here;
  char     id[32];
  int      local;
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, gpu.rank, MPI_INFO_NULL, &here);
  MPI_Comm_rank(here, &local);
  MPI_Comm_free(&here);
  gpu.device = local % gpu.devices;
  snprintf(id, sizeof id, "moongrid-%d", gpu.rank);
  if (gpu.devices < gpu.ranks) setenv("NCCL_HOSTID", id, 0);
  cuda_must(gpu.cudaSetDevice(gpu.device), "cudaSetDevice");
}

int main(int argc, char **argv) {
  const char *what = argc > 1 ? argv[1] : "";
  if (argc == 2 && strcmp(what, "about") == 0) {
    gpu_open();
    about();
    return 0;
  }
  bool making = strcmp(what, "create") == 0;
  if (argc != 3 || (!making && strcmp(what, "memory") != 0)) fail("about | create WAY | memory OPTIONS");
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &gpu.rank);
  MPI_Comm_size(MPI_COMM_WORLD, &gpu.ranks);
  gpu_open();
  choose_device();
  if (making)
    create(argv[2]);
  else
    cost(argv[2]);
  MPI_Finalize();
  return 0;
}
