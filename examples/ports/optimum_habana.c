/* SPDX-License-Identifier: MIT
**
** optimum_habana.c - gradients and evaluation of optimum-habana (huggingface/optimum-habana,
** optimum/habana/parallel_state.py at commit f3e24ce9) on the recipe `optimum_habana`: with
** sequence parallelism the file's data-parallel group is sequence x data. So a mean of ones is 1:
** the sum is divided by the size of this group, not by the number of replicas. In evaluation every
** rank reads whole sequences, and the getters say so, but the groups stay.
**
**     mpirun -n 8 optimum_habana sp=2
*/
#include "port.h"

/* --- the set-up: initialize_model_parallel, which also switches to training */

typedef struct parallel_state {
  mgrid_state *state;
  const mgrid_group *sp, *dp, *copies; /* dp is the file's data-parallel group: sequence x data */
} parallel_state;

static bool set_up(parallel_state *p, mgrid_backend *mpi, int n, const char *const *args) {
  const char *all[] = { "version=f3e24ce9", n > 0 ? args[0] : NULL };
  p->state = port_state(mpi, "optimum_habana", n > 0 ? 2 : 1, all, "habana");
  p->sp = port_group(p->state, "get_sequence_parallel_group");
  p->dp = port_group(p->state, "get_data_parallel_group");
  p->copies = mgrid_state_group(p->state, "dp", &port_error);
  return p->state != NULL;
}

/* --- the end of the set-up */

static int ask(const parallel_state *p, const char *getter) { return port_ask(p->state, getter); }

/* set_training_mode and set_eval_mode: globals of the module there, a setting of this state
** here. */
static void set_training(const parallel_state *p, bool training) {
  mgrid_arg mode = mgrid_arg_boolean("training", training);
  mgrid_runtime_set(mgrid_state_runtime(p->state), p->state, &mode, &port_error);
}

/* The mean that a trainer makes of gradients: a sum over get_data_parallel_group, divided by
** get_data_parallel_world_size. */
static double mean(const parallel_state *p, double value) {
  MPI_Allreduce(MPI_IN_PLACE, &value, 1, MPI_DOUBLE, MPI_SUM, mgrid_mpi_comm(p->dp));
  return value / ask(p, "data_parallel_world_size");
}

/* Sum the tokens of a sequence that this rank reads: a part in training, all of them in evaluation.
** modeling_llama.py uses get_sequence_parallel_world_size and _rank in this way. */
static double tokens_sum(const parallel_state *p, int length) {
  int parts = ask(p, "sequence_parallel_world_size"), part = ask(p, "sequence_parallel_rank");
  double sum = 0;
  for (int i = length / parts * part; i < length / parts * (part + 1); i++) sum += i;
  return sum;
}

int main(int argc, char **argv) {
  enum { LENGTH = 64, ALL = LENGTH * (LENGTH - 1) / 2 };
  parallel_state p;
  mgrid_backend *mpi = port_begin(&argc, &argv);
  if (argc > 2 || !set_up(&p, mpi, argc - 1, (const char *const *)argv + 1))
    port_give_up("optimum_habana [sp=N]");
  int sp = (int)mgrid_group_size(p.sp), copies = (int)mgrid_group_size(p.copies);
  EXPECT(sp * copies == port_size && mgrid_group_size(p.dp) == port_size);

  /* train, evaluate, and train again: switching back restores the answers */
  for (int round = 0; round < 2; round++) {
    EXPECT(ask(&p, "is_training_mode") == 1);
    EXPECT(ask(&p, "data_parallel_world_size") == port_size);
    EXPECT(ask(&p, "sequence_parallel_world_size") == sp);
    EXPECT(ask(&p, "sequence_parallel_rank") == port_rank % sp
           && ask(&p, "sequence_parallel_src_rank") == port_rank / sp * sp);
    EXPECT(mean(&p, 1) == 1); /* not sp, and not 1 / sp */
    EXPECT(mean(&p, port_rank) == (port_size - 1) / 2.0);
    double sum = tokens_sum(&p, LENGTH);
    MPI_Allreduce(MPI_IN_PLACE, &sum, 1, MPI_DOUBLE, MPI_SUM, mgrid_mpi_comm(p.sp));
    EXPECT(sum == ALL); /* each token once */

    set_training(&p, false);
    EXPECT(ask(&p, "is_training_mode") == 0);
    EXPECT(ask(&p, "sequence_parallel_world_size") == 1 && ask(&p, "sequence_parallel_rank") == 0);
    EXPECT(ask(&p, "sequence_parallel_src_rank") == port_rank);
    EXPECT(ask(&p, "data_parallel_world_size") == port_size); /* in both modes */
    EXPECT(tokens_sum(&p, LENGTH) == ALL);
    EXPECT(mgrid_group_size(p.sp) == sp && mean(&p, 1) == 1); /* the groups stay */
    set_training(&p, true);
  }
  mgrid_state_free(p.state);
  return port_end("optimum_habana", mpi);
}
