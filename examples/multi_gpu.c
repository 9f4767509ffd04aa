/* SPDX-License-Identifier: MIT
**
** multi_gpu.c - moongrid in an existing trainer. Such a trainer usually has a struct with its rank
** and one communicator over all ranks. It makes them by MPI_Comm_split for the ranks of a machine,
** a unique id that rank 0 broadcasts, and ncclCommInitRank. set_up below replaces that in 12 lines.
** Groups then come from a recipe: data parallel by default; an argument adds tensor parallelism,
** without a change here.
**
**     mpirun -n 8 multi_gpu mpi
**     mpirun -n 8 multi_gpu nccl tp=2          (built with -DWITH_NCCL)
*/
#include <moongrid_mpi.h>
#ifdef WITH_NCCL
#include <moongrid_nccl.h>
#endif

#include <stdio.h>
#include <string.h>

/* The trainer's data. Only the last four fields are moongrid's. */
typedef struct multi_gpu {
  int process_rank, num_processes;
#ifdef WITH_NCCL
  ncclComm_t nccl_comm; /* for gradients: of the data-parallel group */
  cudaStream_t nccl_stream;
#endif
  MPI_Comm mpi_comm; /* of the same group, if the backend is MPI */
  mgrid_backend *mpi, *backend;
  mgrid_state *state;
  const mgrid_group *dp;
} multi_gpu;

static mgrid_status set_up(multi_gpu *m, const char *backend, int nargs, char **args,
                           mgrid_error *err) {
  MPI_Comm_rank(MPI_COMM_WORLD, &m->process_rank);
  MPI_Comm_size(MPI_COMM_WORLD, &m->num_processes);
  m->mpi = mgrid_mpi_backend(MPI_COMM_WORLD, NULL, err);
  m->backend = strcmp(backend, "nccl") == 0 && m->mpi
                   ? mgrid_backend_over(m->mpi, "nccl", NULL, err)
                   : m->mpi;
  m->state =
      mgrid_open(m->backend, "picotron", (size_t)nargs, (const char *const *)args, NULL, err);
  if (!m->state) return err->status;
  m->dp = mgrid_state_group(m->state, "dp", err);
  m->mpi_comm = mgrid_mpi_comm(m->dp);
#ifdef WITH_NCCL
  m->nccl_comm = mgrid_nccl_comm(m->dp);
  m->nccl_stream = mgrid_nccl_stream(m->dp);
#endif
  /* use all communicators for the first time, in one order */
  return mgrid_state_prove(m->state, NULL, err);
}

static void tear_down(multi_gpu *m) {
  mgrid_state_free(m->state);
  if (m->backend != m->mpi) mgrid_backend_free(m->backend);
  mgrid_backend_free(m->mpi);
}

int main(int argc, char **argv) {
  multi_gpu m = { 0 };
  mgrid_error err = MGRID_ERROR_INIT;
  MPI_Init(&argc, &argv);
  const char *backend = argc > 1 ? argv[1] : "mpi";
  mgrid_status s = set_up(&m, backend, argc > 2 ? argc - 2 : 0, argv + 2, &err);
  if (s) {
    if (m.process_rank == 0) fprintf(stderr, "multi_gpu: %s\n", err.message);
  } else {
    const char *have = m.mpi_comm != MPI_COMM_NULL ? "an MPI_Comm" : "no communicator";
#ifdef WITH_NCCL
    if (m.nccl_comm) have = "an ncclComm_t";
#endif
    if (m.process_rank == 0)
      printf("rank 0 of %d is %d of %d in dp, and has %s\n", m.num_processes,
             (int)mgrid_group_position(m.dp), (int)mgrid_group_size(m.dp), have);
  }
  tear_down(&m);
  MPI_Finalize();
  return s != MGRID_OK;
}
