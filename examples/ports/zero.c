/* SPDX-License-Identifier: MIT
**
** zero.c - what llm.c's llmc/zero.cuh sets up (karpathy/llm.c): rank, size, communicator, and the
** shards of ZeRO stage 1; then training steps with and without shards, compared with a serial run.
** The original has one communicator of all ranks; here `shards` of zero.lua says how many ranks
** share one copy of the optimizer's state.
**
**     mpirun -n 8 zero examples/ports/zero.lua shards=4
*/
#include "port.h"

/* --- the set-up, in place of multi_gpu_get_local_device_idx, multi_gpu_config_init,
** multi_gpu_config_free, multi_gpu_get_shard_offset and set_zero_configs */

typedef struct multi_gpu_config { /* as MultiGpuConfig; the communicators are by group */
  int process_rank, num_processes, local_device_idx;
  int zero_stage;
  size_t shard_num_parameters;
  mgrid_state *state;
  const mgrid_group *shard, *copy;
} multi_gpu_config;

/* multi_gpu_config_init hashes host names to find the index on the machine, broadcasts a unique id
** (over MPI, a socket or a file), makes one communicator. */
static bool config_init(multi_gpu_config *c, mgrid_backend *backend, const char *recipe, int n,
                        const char *const *args) {
  mgrid_machine here = MGRID_MACHINE_INIT;
  *c = (multi_gpu_config){ .process_rank = port_rank, .num_processes = port_size };
  c->state = port_state(backend, recipe, n, args, "zero");
  c->shard = mgrid_state_group(c->state, "shard", &port_error);
  c->copy = mgrid_state_group(c->state, "copy", &port_error);
  mgrid_state_machine(c->state, &here, &port_error);
  c->local_device_idx = (int)here.local_rank;
  return c->state != NULL;
}

/* Turn ZeRO off if the parameters cannot be cut equally, as set_zero_configs does. The original
** cuts them over all ranks, this function over the group `shard`. */
static void set_zero(multi_gpu_config *c, int stage, size_t parameters) {
  size_t shards = (size_t)mgrid_group_size(c->shard);
  c->zero_stage = stage == 1 && parameters % shards == 0;
  c->shard_num_parameters = c->zero_stage ? parameters / shards : parameters;
}

typedef struct shard_info {
  size_t offset, size;
} shard_info;

/* multi_gpu_get_shard_offset takes the rank in the job; this takes the position in `shard`. */
static shard_info shard_of(const multi_gpu_config *c, size_t elements) {
  size_t size = c->zero_stage ? elements / (size_t)mgrid_group_size(c->shard) : elements;
  return (shard_info){ c->zero_stage ? size * (size_t)mgrid_group_position(c->shard) : 0, size };
}

/* --- the end of the set-up */

enum { PARAMETERS = 8 * 9 * 5, STEPS = 3 };

/* Whole numbers, so that sums in any order are exact. */
static double gradient(int rank, int step, size_t i) {
  return (double)((rank + 2) * (step + 1)) + (double)(i % 7);
}

/* One step: multi_gpu_async_reduce_gradient (ncclReduceScatter into the own shard, or
** ncclAllReduce), the update of the shard in gpt2_update of train_gpt2.cu, and its ncclAllGather of
** the parameters. */
static void train_step(const multi_gpu_config *c, int step, double *parameter, double *momentum) {
  double grad[PARAMETERS];
  shard_info s = shard_of(c, PARAMETERS);
  MPI_Comm shard = mgrid_mpi_comm(c->shard), copy = mgrid_mpi_comm(c->copy);
  for (size_t i = 0; i < PARAMETERS; i++) grad[i] = gradient(c->process_rank, step, i);
  if (c->zero_stage == 1) /* to the front of grad */
    MPI_Reduce_scatter_block(MPI_IN_PLACE, grad, (int)s.size, MPI_DOUBLE, MPI_SUM, shard);
  else
    MPI_Allreduce(MPI_IN_PLACE, grad, PARAMETERS, MPI_DOUBLE, MPI_SUM, shard);
  /* the original has one copy */
  MPI_Allreduce(MPI_IN_PLACE, grad, (int)s.size, MPI_DOUBLE, MPI_SUM, copy);
  for (size_t i = 0; i < s.size; i++) { /* the shard's sums are at the front of grad */
    momentum[i] = momentum[i] / 2 + grad[i] / c->num_processes;
    parameter[s.offset + i] -= momentum[i] / 8;
  }
  if (c->zero_stage == 1)
    MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, parameter, (int)s.size, MPI_DOUBLE, shard);
}

/* The same steps for one parameter, by one process that has the gradients of all ranks. */
static double serial(size_t i) {
  double parameter = (double)i, momentum = 0;
  for (int step = 0; step < STEPS; step++) {
    double sum = 0;
    for (int rank = 0; rank < port_size; rank++) sum += gradient(rank, step, i);
    momentum = momentum / 2 + sum / port_size;
    parameter -= momentum / 8;
  }
  return parameter;
}

int main(int argc, char **argv) {
  multi_gpu_config c;
  double parameter[PARAMETERS], *momentum;
  mgrid_backend *mpi = port_begin(&argc, &argv);
  if (argc < 2 || !config_init(&c, mpi, argv[1], argc - 2, (const char *const *)argv + 2))
    port_give_up("zero RECIPE [shards=N]");
  EXPECT(mgrid_group_size(c.shard) * mgrid_group_size(c.copy) == port_size);
  EXPECT(c.local_device_idx == port_rank); /* the ports run on one machine */

  set_zero(&c, 1, PARAMETERS + 1);
  EXPECT(c.zero_stage == (mgrid_group_size(c.shard) == 1)); /* off: the sizes do not divide */
  for (int stage = 0; stage <= 1; stage++) {
    set_zero(&c, stage, PARAMETERS);
    EXPECT(c.zero_stage == stage);
    shard_info s = shard_of(&c, PARAMETERS);
    EXPECT(s.size == c.shard_num_parameters && s.offset + s.size <= PARAMETERS);
    unsigned long long mine = s.size, all = 0; /* the shards of a group are the whole, once */
    MPI_Allreduce(&mine, &all, 1, MPI_UNSIGNED_LONG_LONG, MPI_SUM, mgrid_mpi_comm(c.shard));
    EXPECT(all == PARAMETERS * (stage ? 1ull : (unsigned long long)mgrid_group_size(c.shard)));

    /* the state of the optimizer: as large as the shard */
    momentum = calloc(s.size, sizeof *momentum);
    if (!momentum) MPI_Abort(MPI_COMM_WORLD, 1);
    for (size_t i = 0; i < PARAMETERS; i++) parameter[i] = (double)i;
    for (int step = 0; step < STEPS; step++) train_step(&c, step, parameter, momentum);
    for (size_t i = 0; i < PARAMETERS; i++) EXPECT(parameter[i] == serial(i));
    free(momentum);
  }
  mgrid_state_free(c.state);
  return port_end("zero", mpi);
}
