/* SPDX-License-Identifier: MIT
**
** deepspeed.c - reinforcement learning on DeepSpeed's ParallelState (deepspeedai/DeepSpeed, pull
** request 7726): actor, critic and reference model have layouts of their own and are alive
** together. The actor has experts, whose tokens go by an all-to-all; the critic has Ulysses
** sequence parallelism, another all-to-all; both shard their optimizer as ZeRO does; the reference
** has tensor parallelism and a pipeline. All numbers are whole, and every result is compared with
** the expected number.
**
** In DeepSpeed each model has a ParallelState, and wrappers switch which of them is current
** (deepspeed/utils/parallel_state_wrappers.py); equal groups of two models have two communicators.
** Here each model has a state, which is an argument of every call, and equal groups share one
** communicator, which lives as long as one of the states that use it.
**
**     mpirun -n 8 deepspeed
*/
#include "port.h"

/* --- the set-up: ParallelState.initialize_model_parallel (deepspeed/utils/parallel_state.py), for each
** model */

typedef struct model {
  mgrid_state *state;
  const mgrid_group *tp, *pp, *dp, *tp_dp, *ep, *ep_tp, *ep_dp, *sp, *sp_dp;
} model;

static bool set_up(model *m, mgrid_backend *mpi, const char *name, int n, const char *const *args) {
  mgrid_state *s = m->state = port_state(mpi, "deepspeed", n, args, name);
  m->tp = port_group(s, "get_tensor_model_parallel_group");
  m->pp = port_group(s, "get_pipeline_model_parallel_group");
  m->dp = port_group(s, "get_data_parallel_group");
  m->tp_dp = port_group(s, "get_tensor_and_data_parallel_group");
  m->ep = port_group(s, "get_expert_model_parallel_group");
  m->ep_tp = port_group(s, "get_expert_tensor_parallel_group");
  m->ep_dp = port_group(s, "get_expert_data_parallel_group");
  if (port_ask(s, "sequence_parallel_world_size") > 1)
    m->sp = port_group(s, "get_sequence_parallel_group");
  m->sp_dp = port_group(s, "get_sequence_and_data_parallel_group");
  return s != NULL;
}

static void tear_down(model *m) { mgrid_state_free(m->state); }

/* --- the end of the set-up */

enum {
  RANKS = 8,
  TP = 2,
  EP = 2,
  TOKENS = 3,
  SP = 4,
  LOCAL = 2,
  LENGTH = SP * LOCAL,
  HEADS = 2 * SP,
  PARAMETERS = 48
};

/* The layouts: tp is the fastest dim of the actor's grids, sp of the critic's. */
static const char *const actor_args[] = { "tp=2", "ep=2" },
                         *const critic_args[] = { "sp=4", "order=sp-dp" },
                         *const reference_args[] = { "tp=4", "pp=2" };

/* ------------------------------------------------------------------ experts: the actor */

static double expert_weight(int expert, int part) { return 10 * expert + part + 1; }
static double token(int replica, int expert, int i) { return 100 * replica + 10 * expert + i; }

/* MOELayer.forward (deepspeed/moe/sharded_moe.py): _AllToAll over the expert-parallel group to the
** experts, the experts, _AllToAll back. An expert is cut over its tensor-parallel group, which sums
** the products of the parts; the gradient of a part is averaged over the expert-data-parallel
** group. */
static void run_experts(const model *actor) {
  double sent[EP][TOKENS], there[EP][TOKENS], back[EP][TOKENS], grad = 0, want = 0;
  int replica = port_rank / TP, mine = (int)mgrid_group_position(actor->ep),
      part = (int)mgrid_group_position(actor->ep_tp);
  for (int e = 0; e < EP; e++) /* the same on both ranks of tp */
    for (int i = 0; i < TOKENS; i++) sent[e][i] = token(replica, e, i);
  MPI_Alltoall(sent, TOKENS, MPI_DOUBLE, there, TOKENS, MPI_DOUBLE, mgrid_mpi_comm(actor->ep));
  for (int from = 0; from < EP; from++)
    for (int i = 0; i < TOKENS; i++) {
      EXPECT(there[from][i] == token((int)mgrid_group_at(actor->ep, from) / TP, mine, i));
      grad += there[from][i];
      there[from][i] *= expert_weight(mine, part);
    }
  MPI_Allreduce(MPI_IN_PLACE, there, EP * TOKENS, MPI_DOUBLE, MPI_SUM,
                mgrid_mpi_comm(actor->ep_tp));
  MPI_Alltoall(there, TOKENS, MPI_DOUBLE, back, TOKENS, MPI_DOUBLE, mgrid_mpi_comm(actor->ep));
  for (int e = 0; e < EP; e++)
    for (int i = 0; i < TOKENS; i++)
      EXPECT(back[e][i] == token(replica, e, i) * (expert_weight(e, 0) + expert_weight(e, 1)));

  int copies = port_ask(actor->state, "expert_data_parallel_world_size");
  MPI_Allreduce(MPI_IN_PLACE, &grad, 1, MPI_DOUBLE, MPI_SUM, mgrid_mpi_comm(actor->ep_dp));
  /* the tokens of all replicas go through one of the expert's copies */
  for (int r = 0; r < RANKS / TP; r++)
    for (int i = 0; i < TOKENS; i++) want += token(r, mine, i);
  EXPECT(copies == RANKS / TP / EP && grad / copies == want / copies);
}

/* --------------------------------------------------------------- sequence: the critic */

static double state_at(int replica, int position, int head) {
  return 1000 * replica + 10 * position + head;
}

/* single_all_to_all (deepspeed/sequence/layer.py): from all heads of a part of the sequence to the
** whole sequence of a part of the heads, and back. Blocks for one rank must lie together, so both
** ways are packed. */
static void to_heads(const model *critic, double local[LOCAL][HEADS],
                     double whole[LENGTH][HEADS / SP]) {
  double packed[SP][LOCAL][HEADS / SP];
  for (int to = 0; to < SP; to++)
    for (int s = 0; s < LOCAL; s++)
      for (int h = 0; h < HEADS / SP; h++) packed[to][s][h] = local[s][to * (HEADS / SP) + h];
  MPI_Alltoall(packed, LOCAL * HEADS / SP, MPI_DOUBLE, whole, LOCAL * HEADS / SP, MPI_DOUBLE,
               mgrid_mpi_comm(critic->sp));
}

static void to_sequence(const model *critic, double whole[LENGTH][HEADS / SP],
                        double local[LOCAL][HEADS]) {
  double packed[SP][LOCAL][HEADS / SP];
  MPI_Alltoall(whole, LOCAL * HEADS / SP, MPI_DOUBLE, packed, LOCAL * HEADS / SP, MPI_DOUBLE,
               mgrid_mpi_comm(critic->sp));
  for (int from = 0; from < SP; from++)
    for (int s = 0; s < LOCAL; s++)
      for (int h = 0; h < HEADS / SP; h++) local[s][from * (HEADS / SP) + h] = packed[from][s][h];
}

/* DistributedAttention.forward (deepspeed/sequence/layer.py). The attention here is the sum over
** all positions up to its own. */
static void run_attention(const model *critic) {
  double local[LOCAL][HEADS], whole[LENGTH][HEADS / SP];
  int replica = port_rank / SP, first = LOCAL * port_ask(critic->state, "sequence_parallel_rank");
  for (int s = 0; s < LOCAL; s++)
    for (int h = 0; h < HEADS; h++) local[s][h] = state_at(replica, first + s, h);
  to_heads(critic, local, whole);
  for (int s = 1; s < LENGTH; s++)
    for (int h = 0; h < HEADS / SP; h++) whole[s][h] += whole[s - 1][h];
  to_sequence(critic, whole, local);
  for (int s = 0; s < LOCAL; s++)
    for (int h = 0; h < HEADS; h++) {
      double want = 0;
      for (int before = 0; before <= first + s; before++) want += state_at(replica, before, h);
      EXPECT(local[s][h] == want);
    }
}

/* ------------------------------------------------------------------------------- ZeRO */

/* reduce_scatter_coalesced (deepspeed/runtime/comm/coalesced_collectives.py) over the data-parallel
** group: each rank gets the mean of its shard, updates it, and gathers the parameters. With
** sequence parallelism the group is sequence x data. */
static void run_zero(const model *m, const mgrid_group *dp, const char *getter) {
  double grad[PARAMETERS], parameter[PARAMETERS], ranks = 0;
  int n = (int)mgrid_group_size(dp), shard = PARAMETERS / n,
      first = shard * (int)mgrid_group_position(dp);
  MPI_Comm comm = mgrid_mpi_comm(dp);
  EXPECT(port_ask(m->state, getter) == n);
  for (int i = 0; i < PARAMETERS; i++) grad[i] = (port_rank + 1) * i, parameter[i] = 7;
  for (int k = 0; k < n; k++) ranks += (double)mgrid_group_at(dp, k) + 1;
  /* written to the front of grad */
  MPI_Reduce_scatter_block(MPI_IN_PLACE, grad, shard, MPI_DOUBLE, MPI_SUM, comm);
  for (int i = 0; i < shard; i++) parameter[first + i] -= grad[i] / n;
  MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, parameter, shard, MPI_DOUBLE, comm);
  for (int i = 0; i < PARAMETERS; i++) EXPECT(parameter[i] == 7 - ranks * i / n);
}

/* ---------------------------------------------------------------------- the reference */

/* Forward only: a layer cut over tp, then the next stage. MPI wants positions in the pipeline
** group, which are the stages; the system's getters of neighbours return ranks of the world. */
static void run_reference(const model *reference) {
  MPI_Comm tp = mgrid_mpi_comm(reference->tp), pp = mgrid_mpi_comm(reference->pp);
  int stage = port_ask(reference->state, "pipeline_model_parallel_rank");
  double score = 1;
  if (stage == 1) MPI_Recv(&score, 1, MPI_DOUBLE, 0, 0, pp, MPI_STATUS_IGNORE);
  score *= port_ask(reference->state, "tensor_model_parallel_rank") + 1;
  MPI_Allreduce(MPI_IN_PLACE, &score, 1, MPI_DOUBLE, MPI_SUM, tp);
  if (stage == 0) MPI_Send(&score, 1, MPI_DOUBLE, 1, 0, pp);
  MPI_Bcast(&score, 1, MPI_DOUBLE, 1, pp);
  EXPECT(score == 10 * 10); /* 1 + 2 + 3 + 4, twice */
}

int main(int argc, char **argv) {
  model actor, critic, reference;
  mgrid_backend *mpi = port_begin(&argc, &argv);
  if (!set_up(&actor, mpi, "actor", 2, actor_args)
      || !set_up(&critic, mpi, "critic", 2, critic_args)
      || !set_up(&reference, mpi, "reference", 2, reference_args) || port_size != RANKS)
    port_give_up("deepspeed, on 8 ranks");

  run_experts(&actor);
  run_reference(&reference);
  run_attention(&critic);
  run_zero(&actor, actor.dp, "data_parallel_world_size");
  run_zero(&critic, critic.sp_dp, "sequence_data_parallel_world_size");

  /* One getter has three answers. */
  EXPECT(port_ask(actor.state, "tensor_model_parallel_world_size") == 2);
  EXPECT(port_ask(critic.state, "tensor_model_parallel_world_size") == 1);
  EXPECT(port_ask(reference.state, "tensor_model_parallel_world_size") == 4);
  /* The group of all ranks is in two models, and has one communicator. */
  EXPECT(mgrid_group_size(actor.tp_dp) == RANKS && mgrid_group_size(critic.sp_dp) == RANKS);
  EXPECT(mgrid_mpi_comm(actor.tp_dp) == mgrid_mpi_comm(critic.sp_dp));
  size_t apart = mgrid_state_ncomms(actor.state) + mgrid_state_ncomms(critic.state)
                 + mgrid_state_ncomms(reference.state);
  EXPECT(mgrid_backend_ncomms(mpi) < apart);

  tear_down(&critic); /* the actor goes on with the communicator that they shared */
  double one = 1;
  MPI_Allreduce(MPI_IN_PLACE, &one, 1, MPI_DOUBLE, MPI_SUM, mgrid_mpi_comm(actor.tp_dp));
  EXPECT(one == RANKS);
  run_experts(&actor);
  tear_down(&actor);
  run_reference(&reference);
  tear_down(&reference);
  return port_end("deepspeed", mpi);
}
