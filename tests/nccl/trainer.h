/* SPDX-License-Identifier: MIT
**
** trainer.h - what the trainers here share: the functions of NCCL and CUDA that they call
** themselves, sums through the communicators that they get, and a plan.
*/
#ifndef TEST_TRAINER_H
#define TEST_TRAINER_H

#include "tap.h"

#include "moongrid_mpi.h"
#include "moongrid_nccl.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* NCCL and CUDA as the trainer has them: the same libraries, opened once more. */
/* clang-format off */
#define FUNCTIONS(X) \
  X(nccl, GetVersion) X(nccl, CommCount) \
  X(nccl, CommUserRank) X(nccl, AllReduce) X(nccl, AllGather) X(nccl, Send) X(nccl, Recv) X(nccl, CommGetAsyncError) X(nccl, GetUniqueId) X(nccl, CommInitRank) \
      X(nccl, CommDestroy) X(nccl, GroupStart) X(nccl, GroupEnd) X(cuda, Malloc) X(cuda, Free) X(cuda, Memcpy) \
          X(cuda, StreamCreate) X(cuda, StreamDestroy) X(cuda, StreamSynchronize) X(cuda, SetDevice) X(cuda, GetDevice) \
              X(cuda, GetDeviceCount)
#define X(lib, name) static __typeof__(lib##name) *p_##name;
FUNCTIONS(X)
#undef X

/* SLOW=from:to: a rank waits 0.2 s before each message to another one, so what a third rank sends
** meanwhile overtakes it. */
int MPI_Isend(const void *data, int n, MPI_Datatype type, int to, int tag, MPI_Comm comm, MPI_Request *r) {
  int         from = -1, slow = -1;
  const char *text = getenv("SLOW");
  if (text && sscanf(text, "%d:%d", &from, &slow) == 2 && from == rank && slow == to) usleep(200000);
  return PMPI_Isend(data, n, type, to, tag, comm, r);
}

/* The backend: of $MAKER, nccl or rccl. */
static inline const char *maker(void) { return getenv("MAKER") ? getenv("MAKER") : "nccl"; }
static inline bool        on_hip(void) { return strcmp(maker(), "rccl") == 0; }

static inline void *symbol_of(void *lib, const char *prefix, const char *name) {
  char whole[64];
  snprintf(whole, sizeof whole, "%s%s", on_hip() && strcmp(prefix, "cuda") == 0 ? "hip" : prefix, name);
  return dlsym(lib, whole);
}

static inline void load(void) {
  void *nccl = dlopen(on_hip() ? "librccl.so.1" : "libnccl.so.2", RTLD_NOW);
  void *cuda = dlopen(on_hip() ? "libamdhip64.so.6" : "libcudart.so.13", RTLD_NOW);
#define X(lib, name) \
  void *found_##name = nccl && cuda ? symbol_of(lib, #lib, #name) : NULL; \
  if (!found_##name) exit(77); \
  memcpy(&p_##name, &found_##name, sizeof p_##name);
  FUNCTIONS(X)
#undef X
}

static inline long long want_of(const mgrid_group *g) {
  long long want = 0;
  for (int64_t i = 0; i < mgrid_group_size(g); i++) want += mgrid_group_at(g, i);
  return want;
}

/* On NCCL's own host code without a GPU (host.sh) calls end and write nothing: then that is what is
** tested. */
static inline bool no_kernels(void) { return getenv("MOONGRID_TEST_NO_KERNELS") != NULL; }

static inline bool proved(mgrid_state *s, mgrid_error *e) {
  return s && mgrid_state_prove(s, NULL, anew(e)) == (no_kernels() ? MGRID_NO_KERNEL : MGRID_OK);
}

/* With MOONGRID_TEST_HOSTS=n NCCL takes the ranks for those of n hosts. */
static inline int as_hosts(void) {
  const char *hosts = getenv("MOONGRID_TEST_HOSTS");
  char        id[32];
  int         n = hosts ? atoi(hosts) : 0;
  if (n < 1) return 1;
  snprintf(id, sizeof id, "host%d", rank * n / size);
  setenv("NCCL_HOSTID", id, 1);
  return n;
}

/* A sum through NCCL's own function on the group's communicator and stream. */
static inline long long sum_of(const mgrid_group *g, long long mine) {
  void     *buffer = NULL;
  long long sum = -1;
  if (p_Malloc(&buffer, sizeof mine) != cudaSuccess) return -1;
  p_Memcpy(buffer, &mine, sizeof mine, cudaMemcpyHostToDevice);
  ncclResult_t r = p_AllReduce(buffer, buffer, 1, ncclInt64, ncclSum, mgrid_nccl_comm(g), mgrid_nccl_stream(g));
  /* the communicator does not block: the call is begun, not yet in the stream */
  while (r == ncclInProgress) {
    usleep(1000);
    if (p_CommGetAsyncError(mgrid_nccl_comm(g), &r) != ncclSuccess) break;
  }
  if (r == ncclSuccess) p_StreamSynchronize(mgrid_nccl_stream(g));
  p_Memcpy(&sum, buffer, sizeof sum, cudaMemcpyDeviceToHost);
  p_Free(buffer);
  return no_kernels() && sum == mine && r == ncclSuccess ? want_of(g) : sum;
}

static inline bool right(const mgrid_state *s, const char *family) {
  mgrid_error        e = MGRID_ERROR_INIT;
  const mgrid_group *g = mgrid_state_group(s, family, anew(&e));
  int                count = -1, me = -1;
  if (!g) return true;
  p_CommCount(mgrid_nccl_comm(g), &count);
  p_CommUserRank(mgrid_nccl_comm(g), &me);
  return count == mgrid_group_size(g) && me == mgrid_group_position(g) && sum_of(g, rank) == want_of(g);
}

/* tp2 and dp, without a recipe; and before them the first ranks alone, by MPI. */
static inline mgrid_plan *two(bool unique, bool some, mgrid_error *e) {
  const mgrid_dim dims[] = { { "tp", 2 }, { "dp", MGRID_FILL } };
  const char     *names[] = { "tp", "dp" };
  const int64_t   first[] = { 0, 1 };
  mgrid_options   o = MGRID_OPTIONS_INIT, on_cpu = MGRID_OPTIONS_INIT;
  mgrid_grid     *g = mgrid_grid_new(mgrid_world(size), 2, dims, e);
  mgrid_topology *t = mgrid_topology_new(size, e);
  o.unique = unique, on_cpu.backend = "mpi";
  if (some) {
    mgrid_family *all = mgrid_grid_along(g, 2, names, MGRID_GRID_ORDER, e), *few = mgrid_family_pick(all, 2, first, e);
    mgrid_topology_add(t, "some", few, &on_cpu, e);
    mgrid_family_free(few);
    mgrid_family_free(all);
  }
  for (int i = 0; i < 2; i++) {
    mgrid_family *f = mgrid_grid_along(g, 1, &names[i], MGRID_GRID_ORDER, e);
    mgrid_topology_add(t, names[i], f, &o, e);
    mgrid_family_free(f);
  }
  mgrid_plan *p = mgrid_plan_new(t, e);
  mgrid_topology_free(t);
  mgrid_grid_free(g);
  return p;
}

#endif
