/* SPDX-License-Identifier: MIT
**
** nccl.c - create NCCL communicators in one way, under mpirun, on NCCL's own host code over the
** CUDA runtime of tests/cuda (or on GPUs). Rank 0 prints the seconds from one barrier to another.
**
**     nccl ours|plain|split|group RECIPE [NAME=VALUE ...]
**
** ours: moongrid. plain: the same communicators; the first member sends the id of each to the other
** members by MPI_Send, and a rank begins all its creations before it waits for any. split: a
** communicator of the world, then ncclCommSplit for each family that shares no communicators.
** group: every group of every family, one after the other, with its id sent to all ranks, as
** trainers do by new_group.
*/
#include "moongrid_mpi.h"
#include "moongrid_nccl.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* clang-format off */
#define FUNCTIONS(X) \
  X(GetUniqueId) X(CommInitRank) X(CommInitRankConfig) X(CommSplit) X(CommGetAsyncError) X(CommFinalize) X(CommDestroy) \
      X(GroupStart) X(GroupEnd)
/* clang-format on */
#define X(name) static __typeof__(nccl##name) *p_##name;
FUNCTIONS(X)
#undef X
static __typeof__(cudaSetDevice) *p_SetDevice;

enum { MOST = 256 };
static int rank, size, n;
static ncclComm_t comm[MOST];

static void die(const char *what) {
  fprintf(stderr, "bench: rank %d: %s\n", rank, what);
  MPI_Abort(MPI_COMM_WORLD, 1);
}

static void load(void) {
  void *nccl = dlopen("libnccl.so.2", RTLD_NOW), *cuda = dlopen("libcudart.so.13", RTLD_NOW),
       *found;
  if (!nccl || !cuda) die("no NCCL, or no CUDA runtime");
#define X(name) \
  if (!(found = dlsym(nccl, "nccl" #name))) die("NCCL has no nccl" #name); \
  memcpy(&p_##name, &found, sizeof found);
  FUNCTIONS(X)
#undef X
  found = dlsym(cuda, "cudaSetDevice");
  memcpy(&p_SetDevice, &found, sizeof found);
}

static void wait_for(ncclComm_t c) {
  ncclResult_t state = ncclInProgress;
  while (state == ncclInProgress) {
    if (p_CommGetAsyncError(c, &state) != ncclSuccess) break;
    if (state == ncclInProgress) usleep(500);
  }
  if (state != ncclSuccess) die("a communicator was not made");
}

/* The families of groups of several ranks that share no communicators with an earlier family. */
static const mgrid_family *own(const mgrid_plan *p, size_t i) {
  const char *name = mgrid_plan_family_name(p, i);
  const mgrid_family *f = mgrid_plan_family(p, name);
  return mgrid_plan_shares(p, name) || mgrid_family_max_size(f) < 2 ? NULL : f;
}

static void plain(const mgrid_plan *p) {
  static ncclConfig_t config[MOST];
  for (size_t i = 0; i < mgrid_plan_nfamilies(p); i++) {
    const mgrid_family *f = own(p, i);
    int64_t group, at;
    ncclUniqueId id;
    if (!f || !mgrid_family_locate(f, rank, 0, &group, &at)) continue;
    int members = (int)mgrid_family_size(f, group);
    if (members < 2) continue;
    if (at == 0 && p_GetUniqueId(&id) != ncclSuccess) die("ncclGetUniqueId failed");
    for (int k = 1; at == 0 && k < members; k++)
      MPI_Send(&id, sizeof id, MPI_BYTE, (int)mgrid_family_rank(f, group, k), (int)i,
               MPI_COMM_WORLD);
    if (at > 0)
      MPI_Recv(&id, sizeof id, MPI_BYTE, (int)mgrid_family_rank(f, group, 0), (int)i,
               MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    config[n] = (ncclConfig_t)NCCL_CONFIG_INITIALIZER;
    config[n].blocking = 0;
    ncclResult_t r = p_CommInitRankConfig(&comm[n], members, id, (int)at, &config[n]);
    if (r != ncclSuccess && r != ncclInProgress) die("ncclCommInitRankConfig failed");
    n++;
  }
  for (int i = 0; i < n; i++) wait_for(comm[i]);
}

static void split(const mgrid_plan *p) {
  ncclUniqueId id;
  if (rank == 0) p_GetUniqueId(&id);
  MPI_Bcast(&id, sizeof id, MPI_BYTE, 0, MPI_COMM_WORLD);
  if (p_CommInitRank(&comm[n++], size, id, rank) != ncclSuccess) die("ncclCommInitRank failed");
  for (size_t i = 0; i < mgrid_plan_nfamilies(p); i++) {
    const mgrid_family *f = own(p, i);
    int64_t group = 0, at = 0;
    if (!f) continue;
    bool in = mgrid_family_locate(f, rank, 0, &group, &at);
    comm[n] = NULL;
    if (p_CommSplit(comm[0], in ? (int)group : NCCL_SPLIT_NOCOLOR, (int)at, &comm[n], NULL)
        != ncclSuccess)
      die("ncclCommSplit failed");
    n += comm[n] != NULL;
  }
}

static void by_group(const mgrid_plan *p) {
  for (size_t i = 0; i < mgrid_plan_nfamilies(p); i++) {
    const mgrid_family *f = mgrid_plan_family(p, mgrid_plan_family_name(p, i));
    for (int64_t group = 0; group < mgrid_family_count(f); group++) {
      int64_t mine = -1, at = -1, first = mgrid_family_rank(f, group, 0);
      int members = (int)mgrid_family_size(f, group);
      ncclUniqueId id;
      if (members < 2) continue;
      if (first == rank) p_GetUniqueId(&id);
      MPI_Bcast(&id, sizeof id, MPI_BYTE, (int)first, MPI_COMM_WORLD);
      if (!mgrid_family_locate(f, rank, 0, &mine, &at) || mine != group || n == MOST) continue;
      if (p_CommInitRank(&comm[n++], members, id, (int)at) != ncclSuccess)
        die("ncclCommInitRank failed");
    }
  }
}

static void ours(const mgrid_plan *p, mgrid_backend *b, mgrid_state **s) {
  mgrid_error e = MGRID_ERROR_INIT;
  if (!(*s = mgrid_materialize(p, b, "bench", &e))) die(e.message);
  n = (int)mgrid_state_ncomms(*s);
}

int main(int argc, char **argv) {
  mgrid_error e = MGRID_ERROR_INIT;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (argc < 3) die("nccl WAY RECIPE [NAME=VALUE ...]");
  load();
  mgrid_backend *mpi = mgrid_mpi_backend(MPI_COMM_WORLD, NULL, &e),
                *b = mgrid_backend_over(mpi, "nccl", NULL, &e);
  mgrid_runtime *rt = b ? mgrid_runtime_new(NULL, NULL, &e) : NULL;
  mgrid_plan *p = rt && !mgrid_runtime_load(rt, argv[2], NULL, 0, &e) ? mgrid_runtime_plan(
                      rt, size, NULL, (size_t)argc - 3, (const char *const *)argv + 3, &e)
                                                                      : NULL;
  mgrid_state *s = NULL;
  if (!p) die(e.message);
  p_SetDevice(rank % 8);
  MPI_Barrier(MPI_COMM_WORLD);
  double begun = MPI_Wtime();
  if (strcmp(argv[1], "plain") == 0)
    plain(p);
  else if (strcmp(argv[1], "split") == 0)
    split(p);
  else if (strcmp(argv[1], "group") == 0)
    by_group(p);
  else
    ours(p, b, &s);
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) printf("seconds\t%.4f\ncomms\t%d\n", MPI_Wtime() - begun, n);
  fflush(stdout);
  MPI_Finalize();
  _exit(0); /* what was made is not measured, and ends with the process */
}
