/* SPDX-License-Identifier: MIT
**
** job.h - shared by the programs of gpu-test that mpirun starts and that use moongrid as a trainer
** does: ranks, a GPU for each, the backend, a plan of families of the whole world.
*/
#ifndef JOB_H
#define JOB_H

#include "gpu.h"
#include "moongrid_mpi.h"
#include "moongrid_nccl.h"

static inline void job_end_all(void) { MPI_Abort(MPI_COMM_WORLD, 1); }

/* Choose the GPU as moongrid does: by the index of the rank on this machine. */
static inline void job_begin(int *argc, char ***argv) {
  MPI_Comm here;
  int local;
  MPI_Init(argc, argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &gpu.rank);
  MPI_Comm_size(MPI_COMM_WORLD, &gpu.ranks);
  gpu.end_all = job_end_all;
  gpu_open();
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, gpu.rank, MPI_INFO_NULL, &here);
  MPI_Comm_rank(here, &local);
  MPI_Comm_free(&here);
  choose_device(local);
}

/* `timeout`: seconds of a creation; 0: 30 */
static inline mgrid_backend *job_backend(mgrid_backend *mpi, double timeout) {
  mgrid_error e = MGRID_ERROR_INIT;
  mgrid_nccl_options o = MGRID_NCCL_OPTIONS_INIT;
  o.devices = &gpu.device, o.ndevices = 1;
  o.share_gpu = gpu.devices < gpu.ranks;
  o.timeout = timeout > 0 ? timeout : 30;
  mgrid_backend *b = mgrid_backend_over(mpi, "nccl", &o, &e);
  if (!b) fail("%s", e.message);
  return b;
}

/* Families copy_0, copy_1, ... of all ranks, each with a communicator of its own. */
static inline mgrid_plan *job_world_plan(int copies, const char *spec) {
  mgrid_error e = MGRID_ERROR_INIT;
  mgrid_dim dim = { "world", gpu.ranks };
  const char *name = dim.name;
  mgrid_options options = MGRID_OPTIONS_INIT;
  mgrid_topology *t = mgrid_topology_new(gpu.ranks, &e);
  mgrid_grid *grid = mgrid_grid_new(mgrid_world(gpu.ranks), 1, &dim, &e);
  mgrid_family *f = mgrid_grid_along(grid, 1, &name, MGRID_GRID_ORDER, &e);
  mgrid_status s = f && t ? MGRID_OK : MGRID_USAGE;
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

#endif
