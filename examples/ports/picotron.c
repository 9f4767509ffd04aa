/* SPDX-License-Identifier: MIT
**
** picotron.c - a training step of picotron (huggingface/picotron) on the recipe `picotron`: tensor
** parallelism by all-reduce, the ring of ring attention, 1F1B pipeline stages, gradients averaged
** over cp x dp. The model is small and all its numbers are whole, so that every result must equal
** that of the serial run below to the last bit.
**
** Ranks in calls: the getters of the system (pp_next_rank, cp_send_rank) return ranks of the world,
** which torch's calls want even over a group; MPI's calls want ranks of their communicator. So here
** the pipeline, which picotron runs over the world, uses the getters as they are, and the ring,
** which it runs over cp_group, uses positions in that group.
**
**     mpirun -n 8 picotron tp=2 cp=2 pp=2
*/
#include "port.h"

enum { MICROBATCHES = 6, WIDTH = 3, STAGES_MAX = 64 };

/* --- the set-up: ProcessGroupManager.__init__ (picotron/process_group_manager.py) */

typedef struct manager {
  mgrid_state *state;
  MPI_Comm tp, cp, cp_dp; /* pp sends over the world */
  int tp_rank, tp_size, cp_rank, cp_size, pp_rank, pp_size, dp_rank, dp_size, cp_dp_size;
  int pp_next, pp_prev; /* ranks of the world, -1 at the ends */
  int cp_next, cp_prev; /* positions in cp */
  bool is_first_stage, is_last_stage;
} manager;

static bool set_up(manager *m, mgrid_backend *mpi, int n, const char *const *args) {
  mgrid_state *s = m->state = port_state(mpi, "picotron", n, args, "picotron");
  if (!s) return false;
  const mgrid_group *cp = port_group(s, "cp_group");
  m->tp = mgrid_mpi_comm(port_group(s, "tp_group"));
  m->cp = mgrid_mpi_comm(cp);
  m->cp_dp = mgrid_mpi_comm(port_group(s, "cp_dp_group"));
  m->tp_rank = port_ask(s, "tp_rank"), m->tp_size = port_ask(s, "tp_world_size");
  m->cp_rank = port_ask(s, "cp_rank"), m->cp_size = port_ask(s, "cp_world_size");
  m->pp_rank = port_ask(s, "pp_rank"), m->pp_size = port_ask(s, "pp_world_size");
  m->dp_rank = port_ask(s, "dp_rank"), m->dp_size = port_ask(s, "dp_world_size");
  m->cp_dp_size = port_ask(s, "cp_dp_world_size");
  m->pp_next = port_ask(s, "pp_next_rank"), m->pp_prev = port_ask(s, "pp_prev_rank");
  m->cp_next = (int)mgrid_group_position_of(cp, port_ask(s, "cp_send_rank"));
  m->cp_prev = (int)mgrid_group_position_of(cp, port_ask(s, "cp_recv_rank"));
  m->is_first_stage = port_ask(s, "pp_is_first_stage"),
  m->is_last_stage = port_ask(s, "pp_is_last_stage");
  return true;
}

/* --- the end of the set-up */

typedef double tensor[WIDTH]; /* the part of a sequence on one rank of cp */

/* The weight of a stage on one rank of tp, and a token of one part of a sequence. */
static double weight(const manager *m, int stage, int tp_rank) {
  return stage * m->tp_size + tp_rank + 1;
}
static double token(int dp_rank, int microbatch, int cp_rank, int i) {
  return 1 + i + 2 * cp_rank + 3 * microbatch + 5 * dp_rank;
}

/* ------------------------------------------------------------- tensor parallelism */

/* Row-parallel linear layer: each rank has a part of the weights, and the products are summed. The
** original sums in ReduceFromModelParallelRegion.forward, and gradients in
** CopyToModelParallelRegion.backward (picotron/tensor_parallel/tp_communications.py), both by
** dist.all_reduce over tp_group. */
static void linear(const manager *m, const tensor x, tensor y) {
  for (int i = 0; i < WIDTH; i++) y[i] = weight(m, m->pp_rank, m->tp_rank) * x[i];
  MPI_Allreduce(MPI_IN_PLACE, y, WIDTH, MPI_DOUBLE, MPI_SUM, m->tp);
}

/* ------------------------------------------------------------------- ring of cp */

/* ContextCommunicate.send_recv, commit and wait (picotron/context_parallel/cp_communications.py):
** send to the next rank, receive from the one before. P2POp with cp_group wants ranks of the world,
** MPI wants positions. */
static void rotate(const manager *m, tensor t) {
  MPI_Sendrecv_replace(t, WIDTH, MPI_DOUBLE, m->cp_next, 0, m->cp_prev, 0, m->cp,
                       MPI_STATUS_IGNORE);
}

/* RingAttentionFunc.forward (picotron/context_parallel/context_parallel.py): in step s a rank has
** the keys and values of the part s places before its own in the ring. With a causal mask it uses
** them only if its position is at least s. The attention here is the sum of these parts. */
static void attend(const manager *m, const tensor x, tensor out) {
  tensor other;
  for (int i = 0; i < WIDTH; i++) other[i] = x[i], out[i] = 0;
  for (int step = 0; step < m->cp_size; step++) {
    if (step <= m->cp_rank)
      for (int i = 0; i < WIDTH; i++) out[i] += other[i];
    if (step + 1 < m->cp_size) rotate(m, other);
  }
}

/* RingAttentionFunc.backward: the gradients of keys and values (d_kv_comm) travel around the ring
** until they are back on the rank of their part. */
static void attend_backward(const manager *m, const tensor grad_out, tensor grad_x) {
  for (int i = 0; i < WIDTH; i++) grad_x[i] = 0;
  for (int step = 0; step < m->cp_size; step++) {
    if (step <= m->cp_rank)
      for (int i = 0; i < WIDTH; i++) grad_x[i] += grad_out[i];
    rotate(m, grad_x);
  }
}

/* ---------------------------------------------------------------- pipeline: 1F1B */

/* pipeline_communicate (picotron/pipeline_parallel/pp_communications.py): isend to and irecv from
** ranks of the world. At the ends of the pipeline it does nothing; MPI_PROC_NULL does the same. */
static int peer(int rank) { return rank < 0 ? MPI_PROC_NULL : rank; }

static void send_to(int rank, const tensor t) {
  MPI_Send(t, WIDTH, MPI_DOUBLE, peer(rank), 0, MPI_COMM_WORLD);
}
static void recv_from(int rank, tensor t) {
  MPI_Recv(t, WIDTH, MPI_DOUBLE, peer(rank), 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}
/* bidirectional_pipeline_communicate: send and receive at once, or two stages would deadlock. */
static void exchange(int rank, const tensor out, tensor in) {
  MPI_Sendrecv(out, WIDTH, MPI_DOUBLE, peer(rank), 0, in, WIDTH, MPI_DOUBLE, peer(rank), 0,
               MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

typedef struct step {
  /* kept for the backward pass, first in first out */
  tensor input[MICROBATCHES], hidden[MICROBATCHES];
  int forwards, backwards;
  double loss, grad; /* of the last stage; of this rank's weight, summed over microbatches */
} step;

static void forward(const manager *m, step *s, const tensor input, tensor output) {
  int k = s->forwards++;
  for (int i = 0; i < WIDTH; i++)
    s->input[k][i] = m->is_first_stage ? token(m->dp_rank, k, m->cp_rank, i) : input[i];
  linear(m, s->input[k], s->hidden[k]);
  attend(m, s->hidden[k], output);
  for (int i = 0; i < WIDTH && m->is_last_stage; i++) s->loss += (i + 1) * output[i];
}

static void backward(const manager *m, step *s, const tensor grad_output, tensor grad_input) {
  int k = s->backwards++;
  tensor grad_out, grad_hidden;
  for (int i = 0; i < WIDTH; i++) grad_out[i] = m->is_last_stage ? i + 1 : grad_output[i];
  attend_backward(m, grad_out, grad_hidden);
  for (int i = 0; i < WIDTH; i++) s->grad += grad_hidden[i] * s->input[k][i];
  linear(m, grad_hidden, grad_input);
}

/* train_step_pipeline_1f1b (picotron/pipeline_parallel/pipeline_parallel.py): forwards until the
** pipeline is full, one forward and one backward in turn, the backwards that are left. Then the
** gradients: Bucket.sync_gradient (picotron/data_parallel/bucket.py), an all-reduce over
** cp_dp_group of what was divided by its size. */
static void train_step(const manager *m, step *s) {
  int warmup = m->pp_size - m->pp_rank - 1 < MICROBATCHES ? m->pp_size - m->pp_rank - 1
                                                          : MICROBATCHES;
  int left = MICROBATCHES - warmup;
  tensor in = { 0 }, out = { 0 }, grad_out = { 0 }, grad_in = { 0 };
  *s = (step){ .forwards = 0 };
  for (int k = 0; k < warmup; k++) {
    recv_from(m->pp_prev, in);
    forward(m, s, in, out);
    send_to(m->pp_next, out);
  }
  if (left > 0) recv_from(m->pp_prev, in);
  for (int k = 0; k < left; k++) {
    forward(m, s, in, out);
    exchange(m->pp_next, out, grad_out); /* send_fwd_recv_bwd */
    backward(m, s, grad_out, grad_in);
    if (k + 1 < left)
      exchange(m->pp_prev, grad_in, in); /* send_bwd_recv_fwd */
    else
      send_to(m->pp_prev, grad_in);
  }
  for (int k = 0; k < warmup; k++) {
    recv_from(m->pp_next, grad_out);
    backward(m, s, grad_out, grad_in);
    send_to(m->pp_prev, grad_in);
  }
  s->grad /= m->cp_dp_size;
  MPI_Allreduce(MPI_IN_PLACE, &s->grad, 1, MPI_DOUBLE, MPI_SUM, m->cp_dp);
}

/* ------------------------------------------------------------------------- serial */

/* The same step by one process, without messages: the loss of this rank's parts of sequences, and
** the mean gradient of this rank's stage, which is the same for all weights of the stage. */
static void serial(const manager *m, double *loss_here, double *grad) {
  /* [stage][part]; one element of the tensors at a time */
  static double x[STAGES_MAX + 1][STAGES_MAX], g[STAGES_MAX];
  double sum[STAGES_MAX] = { 0 };
  *loss_here = *grad = 0;
  for (int dp = 0; dp < m->dp_size; dp++)
    for (int k = 0; k < MICROBATCHES; k++)
      for (int i = 0; i < WIDTH; i++) {
        for (int part = 0; part < m->cp_size; part++)
          x[0][part] = token(dp, k, part, i), g[part] = i + 1;
        for (int stage = 0; stage < m->pp_size; stage++) {
          double all = 0, before = 0;
          for (int t = 0; t < m->tp_size; t++) all += weight(m, stage, t);
          for (int part = 0; part < m->cp_size; part++)
            x[stage + 1][part] = before += all * x[stage][part];
        }
        if (dp == m->dp_rank) *loss_here += (i + 1) * x[m->pp_size][m->cp_rank];
        for (int stage = m->pp_size - 1; stage >= 0; stage--) {
          double all = 0, after = 0;
          for (int t = 0; t < m->tp_size; t++) all += weight(m, stage, t);
          for (int part = m->cp_size - 1; part >= 0; part--) {
            after += g[part];
            sum[stage] += after * x[stage][part];
            g[part] = all * after;
          }
        }
      }
  *grad = sum[m->pp_rank] / m->cp_dp_size;
}

int main(int argc, char **argv) {
  manager m;
  step s;
  double loss, grad;
  mgrid_backend *mpi = port_begin(&argc, &argv);
  if (!set_up(&m, mpi, argc - 1, (const char *const *)argv + 1))
    port_give_up("picotron [tp=N] [cp=N] [pp=N]");
  if (m.pp_size > STAGES_MAX || m.cp_size > STAGES_MAX) MPI_Abort(MPI_COMM_WORLD, 1);
  EXPECT(m.tp_size * m.cp_size * m.pp_size * m.dp_size == port_size
         && m.cp_dp_size == m.cp_size * m.dp_size);
  EXPECT(m.is_first_stage == (m.pp_prev < 0) && m.is_last_stage == (m.pp_next < 0));
  train_step(&m, &s);
  serial(&m, &loss, &grad);
  EXPECT(s.forwards == MICROBATCHES && s.backwards == MICROBATCHES);
  EXPECT(s.loss == (m.is_last_stage ? loss : 0));
  EXPECT(s.grad == grad && grad > 0);
  mgrid_state_free(m.state);
  return port_end("picotron", mpi);
}
